"""The algorithm: the method table, segments, labels, loss and update."""

"""One run: its settings, the loop of Algorithm 1, its files and its result."""

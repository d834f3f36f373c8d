"""What lies on disk and on the screen: checkpoints, tables, locks, provenance, interruption, progress."""

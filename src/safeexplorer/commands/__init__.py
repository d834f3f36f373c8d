"""The command line: arguments and one call each."""

"""`python -m safeexplorer` is `safeexplorer`."""

import sys

from safeexplorer.cli import main

if __name__ == "__main__":
    sys.exit(main())

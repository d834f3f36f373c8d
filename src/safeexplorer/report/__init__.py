"""One page that shows a comparison of runs; it opens offline."""

from safeexplorer.report.page import write_page

__all__ = ["write_page"]

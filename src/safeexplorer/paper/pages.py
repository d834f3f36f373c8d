"""Tables and figures inside a Markdown page, made again from the results.

<!-- render main-results --seeds 3 -->
(whatever `safeexplorer render main-results --seeds 3 --format md` prints; of a figure the picture)
<!-- end -->
"""

import re
from collections.abc import Callable

BLOCK = re.compile(r"(<!-- render (?P<words>[^\n]*?) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill_page(page: str, render: Callable[[list[str]], str]) -> str:
    """The page with every block made anew; `render` gets the words of a block."""
    if not BLOCK.search(page):
        raise ValueError("the page has no block to fill: <!-- render NAME ... --> up to <!-- end -->")
    return BLOCK.sub(lambda m: f"{m[1]}\n{render(m['words'].split()).strip()}\n\n{m[3]}", page)

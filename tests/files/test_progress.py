"""What a person sees while something long runs."""

import io

from rich.console import Console

from safeexplorer.files import progress as progress_display
from safeexplorer.files.progress import ProgressDisplay

LABEL = "half_cheetah safeexplorer seed 1"
FACTS = "return 6,345  falls 12,345  recovery 12.3%  d 0.410"
SPEED = "16,000 steps/s  "


class Display(ProgressDisplay):
    waiting = "compiling"

    def facts(self, row):
        return [FACTS]


def shown(monkeypatch, terminal, steps, seconds=0.0):
    """The text of a display of 80 columns that sees these steps of 8 million, a million every 62.5 seconds."""
    monkeypatch.setattr(progress_display, "PRINT_SECONDS", seconds)
    clock = iter(1.0 + done * 62.5e-6 for done in steps)
    monkeypatch.setattr(progress_display.time, "perf_counter", lambda: next(clock))
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=80, color_system=None)
    with Display(LABEL, 8_000_000, console) as display:
        for done in steps:
            display(None, {"steps": done})
    return file.getvalue()


def test_bar_and_facts_are_whole_in_80_columns(monkeypatch):
    text = shown(monkeypatch, True, [1_000_000, 2_000_000])
    assert LABEL in text and " 25%" in text and "━" in text
    assert SPEED + FACTS in text  # 1e6 / 62.5 = 16,000


def test_without_a_terminal_lines_are_printed(monkeypatch):
    lines = shown(monkeypatch, False, [1_000_000, 8_000_000]).splitlines()
    assert lines == [f"{LABEL}   1,000,000 steps  {FACTS}", f"{LABEL}   8,000,000 steps  {SPEED}{FACTS}"]


def test_without_a_terminal_lines_keep_their_distance_but_the_last_is_printed(monkeypatch):
    lines = shown(monkeypatch, False, [1_000_000, 2_000_000, 8_000_000], seconds=1e9).splitlines()
    assert len(lines) == 1 and "8,000,000" in lines[0]

"""Texts of others reach the terminal as texts, and what is said to people ends nothing."""

from __future__ import annotations

import io
import os
import subprocess
import sys

from rich.table import Table
from rich.text import Text

from safeexplorer.files.console import PlainConsole, notice, visible


def test_what_would_steer_the_terminal_is_made_visible():
    assert visible("\x1b[31mred\x07 \u202eback") == "\\x1b[31mred\\x07 \\u202eback"
    assert visible("two\nlines, \u00e9 and \udcff") == "two\nlines, \u00e9 and \\udcff"


def test_brackets_and_colons_in_tables_titles_and_sentences_are_no_markup():
    out = io.StringIO()
    console = PlainConsole(file=out, width=80)
    table = Table("[/head]", title="[/title] :smile:", caption="\x1b[2J")
    table.add_row("[red]cell[/red]")
    table.add_row(Text("\x1b[31mtext", style="bold"))
    console.print(table)
    console.print("[/foo]")
    said = out.getvalue()
    for text in ("[/head]", "[/title] :smile:", "\\x1b[2J", "[red]cell[/red]", "\\x1b[31mtext", "[/foo]"):
        assert text in said
    assert "\x1b" not in said


def test_nobody_listens(monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    stream = os.fdopen(writer, "w")
    monkeypatch.setattr(sys, "stderr", stream)
    notice("is anybody there?")
    notice("is anybody there?")
    stream.close()  # what was buffered fails no more
    notice("the file is closed")
    monkeypatch.setattr(sys, "stderr", None)
    notice("there is no file")


def test_letters_that_the_terminal_does_not_know_are_replaced(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(written, encoding="ascii", write_through=True))
    notice("Größe [/red] [bold]")
    assert written.getvalue() == b"Gr??e [/red] [bold]\n"


CLOSED = """
import os, sys
from safeexplorer.files.console import lead_closed_streams_nowhere
lead_closed_streams_nowhere()
with open(sys.argv[1], "w") as record:
    os.write(2, b"a warning of a library")
    record.write(f"descriptor {record.fileno()}")
"""


def test_a_record_never_gets_what_libraries_print_to_a_closed_stream(tmp_path):
    path = tmp_path / "metrics.csv"
    words = ["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh", sys.executable, "-c", CLOSED, str(path)]
    assert subprocess.run(words).returncode == 0
    assert path.read_text() == "descriptor 3"

"""The page of the command line: its commands run in order, and print what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from layoutalg.cli import main
from layoutalg.cli.answers import EXIT_CODES
from layoutalg.cli.commands import SHORT, command_line

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```", PAGE, re.S | re.M)


def test_the_page_has_every_command_and_exit_code():
    assert len(BLOCKS) == 5
    names = re.search(r"\{([a-z_,]+)\}", command_line().format_help())[1].split(",")
    listed = PAGE.partition("## From")[0]
    assert [name for name in names if f"| `{name}" not in listed] == list(SHORT.values())
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", PAGE, re.M)
    assert {int(code): says for code, says in rows} == EXIT_CODES


@pytest.mark.parametrize("block", BLOCKS)
def test_what_is_shown_is_printed(block, tmp_path, monkeypatch):
    """A page shows the beginning of each line, and the first lines of an answer."""
    monkeypatch.chdir(tmp_path)
    steps = re.split(r"^\$ layoutalg ", block, flags=re.M)[1:]
    assert len(steps) >= 2
    for step in steps:
        command, *shown = step.splitlines()
        told = io.StringIO()
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
            main(shlex.split(command))
        lines = told.getvalue().splitlines()
        assert len(lines) >= len(shown)
        assert [line[: len(wanted)] for line, wanted in zip(lines, shown, strict=False)] == shown

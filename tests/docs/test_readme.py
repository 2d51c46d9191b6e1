"""Every block of the README and of the pages that show code runs and prints what it says; ``--update-golden``."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from docs.executed import ROOT, blocks, run

from layoutalg.cli import main

BLOCKS = blocks((ROOT / "README.md").read_text(encoding="utf-8"))
PAGES = ("README.md", "docs/asking.md", "docs/families.md", "docs/howto.md", "docs/json.md")


def test_the_readme_has_blocks_of_each_kind():
    assert {kind for kind, _ in BLOCKS} == {"python", "text", "console"}


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_print_the_text_block_that_follows(page, request):
    assert run(page, update=request.config.getoption("--update-golden")) >= 2


@pytest.mark.parametrize("body", [body for kind, body in BLOCKS if kind == "console"])
def test_console_blocks_run(body, tmp_path, monkeypatch, capsys):
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    lines = body.splitlines()
    assert lines
    for line in lines:
        assert line.startswith("$ ")
        words = shlex.split(line[2:])
        if words[0] == "make":
            done = subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        else:
            assert words[0] == "layoutalg"
            assert main(words[1:]) == 0, capsys.readouterr().err
            assert capsys.readouterr().out

"""Every block of the README and of the pages that show code runs and prints what it says; ``--update-golden``."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from layoutalg.cli import main

ROOT = Path(__file__).parents[2]


def blocks(page: str) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.S | re.M)


BLOCKS = blocks("README.md")
PAGES = ("README.md", "docs/asking.md", "docs/families.md", "docs/howto.md", "docs/json.md")
ANSWERED = re.compile(r"(^```python\n(?:(?!^```).*\n)*```\n\n```text\n)(?:(?!^```).*\n)*```", re.M)


def test_the_readme_has_blocks_of_each_kind():
    assert {kind for kind, _ in BLOCKS} == {"python", "text", "console"}


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_print_the_text_block_that_follows(page, request):
    names: dict[str, object] = {}
    printed = []
    found = blocks(page)
    for index, (kind, body) in enumerate(found):
        if kind != "python":
            continue
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(body, page, "exec"), names)
        following, text = found[index + 1]
        assert following == "text"
        if not request.config.getoption("--update-golden"):
            assert output.getvalue() == text
        printed.append(output.getvalue())
    assert len(printed) >= 2
    if request.config.getoption("--update-golden"):
        answers, path = iter(printed), ROOT / page
        renewed = ANSWERED.sub(lambda block: block[1] + next(answers) + "```", path.read_text(encoding="utf-8"))
        path.write_text(renewed, encoding="utf-8")


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

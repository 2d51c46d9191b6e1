"""Every block of the README and of the pages that show code runs and prints what it says; ``--update-golden``."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib

import pytest
from docs.executed import ROOT, blocks, run

import layoutalg as la
from layoutalg.cli import main

BLOCKS = blocks((ROOT / "README.md").read_text(encoding="utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PICTURE = ROOT / "docs" / "tile.svg"
HERO = ROOT / "docs" / "banks.svg"
PAGES = (
    "README.md",
    "docs/asking.md",
    "docs/banks.md",
    "docs/certificates.md",
    "docs/families.md",
    "docs/hierarchical_equations.md",
    "docs/howto.md",
    "docs/indirect.md",
    "docs/json.md",
    "docs/notation.md",
    "docs/tensormap_modes.md",
    "docs/testing.md",
    "docs/tour.md",
    "docs/use_from_a_pass.md",
)


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
        elif words[0] == "pip":
            assert words[1] in ("install", "wheel")
            extras = re.findall(r"\.\[(\w+)\]", words[-1])
            assert set(extras) <= set(PROJECT["optional-dependencies"])
        else:
            assert words[0].removeprefix(".venv/bin/") == "layoutalg"  # what make demo, or pip, has installed
            assert main(words[1:]) == 0, capsys.readouterr().err
            assert bool(capsys.readouterr().out) == ("-o" not in words or words[1] == "synth")


def test_the_picture_is_the_one_of_a_plan(request):
    plan = la.tensormap(la.Tensor((20, 160), dtype="bf16"), (8, 64), "Sw<3,3,3> o 0 o (8,64):(64,1)")
    if request.config.getoption("--update-golden"):
        PICTURE.write_text(la.draw.svg(plan), encoding="utf-8")
    assert PICTURE.read_text(encoding="utf-8") == la.draw.svg(plan), "after review, --update-golden"
    assert f"]({PICTURE.name})" in (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")


def test_the_first_picture_shows_the_conflict_and_its_end(request):
    text = la.draw.svg(la.banks("ldmatrix", "(128,64):(64,1)"))
    assert 'class="k2"' in text.partition("with Sw&lt;3,3,3&gt;")[0]
    assert 'class="k' not in text.partition("with Sw&lt;3,3,3&gt;")[2]
    assert "{fill:url(#la-k2)}" in text  # hatched: not by its colour alone
    if request.config.getoption("--update-golden"):
        HERO.write_text(text, encoding="utf-8")
    assert HERO.read_text(encoding="utf-8") == text, "after review, --update-golden"
    assert f"]({HERO.relative_to(ROOT)})" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_is_short_and_its_table_names_what_there_is():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 900
    named = re.findall(r"`la\.(\w+)`", text)
    assert len(named) >= 12
    assert set(named) <= set(la.__all__)
    words = re.sub(r"```.*?```", "", text, flags=re.S)
    files = [target.partition("#")[0] for target in re.findall(r"\]\(([^)]+)\)", words)]
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_what_readme_says_of_installing_is_what_the_project_asks_for():
    words = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Install")[2].partition("```")[0]
    assert PROJECT["requires-python"].replace(">=", ">= ") in words
    needed = [re.split(r"[<>=]", entry)[0] for entry in PROJECT["dependencies"]]
    assert all(name in words for name in needed)

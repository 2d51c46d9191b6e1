"""The short tier has fewer examples and cases and says what it left out; a run of nothing is no success."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).parents[1] / "conftest.py"
SAMPLE = """
import pytest
from hypothesis import given, settings, strategies as st

ran = {"named": 0, "usual": 0, "few": 0}

@settings(max_examples=80)
@given(st.integers())
def test_named(_):
    ran["named"] += 1

@given(st.integers())
def test_usual(_):
    ran["usual"] += 1

@settings(max_examples=3)
@given(st.integers())
def test_few(_):
    ran["few"] += 1

@pytest.mark.nightly
def test_late(): ...

@pytest.mark.nightly(one_of=3)
@pytest.mark.parametrize("case", range(7))
def test_some(case):
    print("case", case)

def test_ran(portion):
    print("ran", *ran.values(), *portion([1, 2, 3, 4, 5]))
"""


def said(folder: Path, *options: str) -> tuple[int, list[str], str]:
    """Return the exit code of a run of the sample, what its tests print, and all it said."""
    shutil.copy(CONFTEST, folder)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = nightly\n")
    (folder / "test_sample.py").write_text(SAMPLE)
    command = [sys.executable, "-m", "pytest", "-qsra", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, re.findall(r"(case \d|ran [\d ]+)$", done.stdout, re.M), done.stdout + done.stderr


def test_the_short_tier_and_the_whole(tmp_path):
    code, printed, told = said(tmp_path)
    assert (code, printed) == (0, ["case 0", "case 3", "case 6", "ran 20 25 3 1 5"]), told
    assert "only at full strength: make test-all" in told
    assert "5 skipped" in told
    code, printed, told = said(tmp_path, "--full")
    assert (code, printed) == (0, [*(f"case {case}" for case in range(7)), "ran 80 100 3 1 2 3 4 5"]), told
    assert "skipped" not in told


def test_a_run_of_nothing_is_no_success(tmp_path):
    code, _, told = said(tmp_path, "-k", "late")
    assert "1 skipped" in told
    assert code == 5

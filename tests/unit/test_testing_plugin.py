"""The pytest plugin in runs of its own: what a failing test of a user prints, where pictures go, what a start costs."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import layoutalg as la
from layoutalg.testing import assert_bijective, assert_equivalent

pytest_plugins = ("pytester",)
ROOT = Path(__file__).parents[2]
LOADED = (la.CuteLayout, la.cute, assert_bijective, assert_equivalent)
"""What the user's tests need: a run inside this process must not load numpy a second time."""
USERS = """
import layoutalg as la
from layoutalg.testing import assert_bijective, assert_equivalent


def transposed(i):
    return i % 4 * 8 + i // 4


def test_equivalent():
    assert_equivalent("(4,8):(8,1)", transposed)
    assert_equivalent("(4,8):(9,1)", transposed)


def test_bijective():
    assert_bijective("Sw<1,0,2> o 0 o (4,2):(1,4)")
    assert_bijective("(4,2):(1,5)")


def test_same_function_in_another_form():
    assert la.parse("(4,2):(1,4)") == la.parse("8:1")


def test_other_function():
    assert la.parse("(4,2):(2,1)") == la.parse("8:1")


def test_folder(layoutalg_pictures):
    assert layoutalg_pictures.is_dir()
    assert_equivalent("4:1", "4:2")
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[..., pytest.RunResult]:
    """Run the user's tests with the plugin alone, whether or not the package is installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("COLUMNS", "100")
    pytester.makepyfile(test_user=USERS)

    def call(*options: str) -> pytest.RunResult:
        return pytester.runpytest_inprocess("-p", "layoutalg.testing.plugin", "-p", "no:cacheprovider", *options)

    return call


def test_failures_print_as_they_did(
    run: Callable[..., pytest.RunResult], golden: Callable[[str, str], None], pytester: pytest.Pytester
) -> None:
    result = run("--tb=short", "-vv", "--basetemp=temporary")
    result.assert_outcomes(failed=5)
    said = [
        line.rstrip().replace(str(pytester.path), "...")
        for line in result.stdout.lines
        if line.startswith(("E  ", "____"))
    ]
    golden("testing/plugin.txt", "\n".join(line.strip("_") if line[0] == "_" else line for line in said) + "\n")
    assert [path.name for path in pytester.path.rglob("*.svg")] == ["test_user.py_test_folder.svg"]


def test_the_traceback_ends_in_the_line_of_the_user(run: Callable[..., pytest.RunResult]) -> None:
    said = run("-k", "test_equivalent or test_bijective").stdout.str()
    assert '>       assert_equivalent("(4,8):(9,1)", transposed)' in said
    assert re.findall(r"^(\S+\.py):\d+: AssertionError$", said, re.MULTILINE) == ["test_user.py"] * 2


def test_pictures_go_where_the_option_says(run: Callable[..., pytest.RunResult], pytester: pytest.Pytester) -> None:
    run("--layoutalg-pictures=shots").assert_outcomes(failed=5)
    found = sorted(path.name for path in (pytester.path / "shots").iterdir())
    assert found == [f"test_user.py_test_{name}.svg" for name in ("equivalent", "folder", "other_function")]


def test_pictures_go_into_the_folder_of_the_test(run: Callable[..., pytest.RunResult]) -> None:
    said = run("-k", "folder").stdout.str()
    where = re.search(r"picture  (\S+test_folder0/test_user.py_test_folder.svg)", said)
    assert where is not None
    assert Path(where[1]).read_text(encoding="utf-8").startswith("<svg")


def test_the_plugin_is_in_the_help(run: Callable[..., pytest.RunResult]) -> None:
    run("--help").stdout.fnmatch_lines(["*--layoutalg-pictures=DIR*"])
    run("--fixtures").stdout.fnmatch_lines(["*layoutalg_pictures*"])


def test_a_start_loads_no_layouts() -> None:
    code = "import contextvars, pytest, sys; before = set(sys.modules); import layoutalg.testing.plugin; " + (
        "print(*sorted(name for name in set(sys.modules) - before if not name.startswith('layoutalg')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == []
    code = "import layoutalg.testing.plugin, sys; print(len([n for n in sys.modules if n.startswith('layoutalg')]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert int(done.stdout) < 12

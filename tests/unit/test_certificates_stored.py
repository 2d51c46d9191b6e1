"""Stored certificates of every kind, checked where only numpy is; wrong ones named by their first wrong fact."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layoutalg.cli import main
from layoutalg.proofs import checker
from layoutalg.proofs.certify import KINDS
from layoutalg.proofs.checker import equality

SOURCE = Path(checker.__file__).parent
STORED = Path(__file__).parents[1] / "data" / "certificates"
RIGHT = sorted(STORED.glob("*.json"))
WRONG = sorted((STORED / "wrong").glob("*.json"))
FACTS = dict(line.split(": ", 1) for line in (STORED / "wrong" / "facts.txt").read_text(encoding="utf-8").splitlines())
SOLVED = "equality-parametric"
ALONE = """
import importlib.util, runpy, sys
sys.path.insert(0, "site")
assert all(importlib.util.find_spec(name) is None for name in ("layoutalg", "z3", "cvc5"))
sys.argv = ["checker", *sys.argv[1:]]
runpy.run_path("checker", run_name="__main__")
"""


def document(name: str) -> dict[str, Any]:
    return json.loads((STORED / f"{name}.json").read_text(encoding="utf-8"))


def checked(path: Path) -> tuple[int, str]:
    return checker.check(checker.parsed(path.read_text(encoding="utf-8")))  # type: ignore[return-value]


def named(told: str, name: str) -> str:
    """A sentence without the point that a solver found."""
    return re.sub(r", at \[.*", "", told) if name == SOLVED else told


def test_every_kind_is_stored_right_and_wrong() -> None:
    for paths in (RIGHT, WRONG):
        found = {json.loads(path.read_text(encoding="utf-8"))["kind"] for path in paths}
        assert found == set(KINDS)
    assert set(FACTS) == {path.stem for path in WRONG}


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_a_stored_certificate_proves(path: Path) -> None:
    code, told = checked(path)
    assert code == 0, told


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_a_wrong_certificate_is_named_by_its_first_wrong_fact(path: Path) -> None:
    code, told = checked(path)
    assert (code, named(told, path.stem)) == (1, FACTS[path.stem])


# --- alone ------------------------------------------------------------------------------------------------------------


def test_the_folder_imports_numpy_alone() -> None:
    files = sorted(SOURCE.glob("*.py"))
    assert 1 < len(files) <= 8
    imported: set[str] = set()
    for node in (node for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        assert not isinstance(node, ast.ImportFrom) or node.level == 1  # of the folder
        assert not (isinstance(node, ast.Name) and node.id in ("__import__", "eval", "exec", "open"))
    assert imported - set(sys.stdlib_module_names) == {"numpy"}
    assert not {"subprocess", "os", "socket", "ctypes", "pickle"} & imported


def test_solvers_are_all_that_is_imported_late(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def recorded(name: str) -> Any:
        asked.append(name)
        return importlib.import_module(name)

    monkeypatch.setattr(equality, "importlib", type("Recorded", (), {"import_module": staticmethod(recorded)}))
    assert all(checked(path)[0] == 0 for path in RIGHT)
    assert set(asked) == {"z3", "cvc5.pythonic"}


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder with the checker, the certificates and numpy, and nothing else."""
    shutil.copytree(SOURCE, tmp_path / "checker")
    shutil.copytree(STORED, tmp_path / "certificates")
    (tmp_path / "site").mkdir()
    installed = Path(np.__file__).parent
    for found in (installed, *installed.parent.glob("numpy.libs")):
        os.symlink(found, tmp_path / "site" / found.name)
    return tmp_path


def alone(folder: Path, *names: str) -> tuple[int, list[str]]:
    """Run the checker in an interpreter that finds the standard library and numpy."""
    command = [sys.executable, "-I", "-S", "-c", ALONE, *names]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, env={}, check=False)
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout.splitlines()


def test_the_folder_alone_checks_all(elsewhere: Path) -> None:
    names = [f"certificates/{path.name}" for path in RIGHT]
    code, lines = alone(elsewhere, *names)
    assert len(lines) == len(RIGHT)
    for path, line in zip(RIGHT, lines, strict=True):
        word = "unknown" if path.stem == SOLVED else "proved"
        assert line.startswith(f"{word:<10} certificates/{path.name}: ")
    assert code == 2
    code, lines = alone(elsewhere, "certificates/wrong")
    assert code == 2  # the claim about parameters is for solvers
    assert [line.startswith("refuted ") for line in lines] == [path.stem != SOLVED for path in WRONG]
    said = {path.stem: line.split(": ", 1)[1] for path, line in zip(WRONG, lines, strict=True)}
    assert {**said, SOLVED: FACTS[SOLVED]} == FACTS


# --- solvers ----------------------------------------------------------------------------------------------------------


def hide(monkeypatch: pytest.MonkeyPatch, *hidden: str) -> None:
    def found(name: str) -> Any:
        if name.split(".")[0] in hidden:
            raise ImportError(name)
        return importlib.import_module(name)

    monkeypatch.setattr(equality, "importlib", type("Hiding", (), {"import_module": staticmethod(found)}))


@pytest.mark.parametrize("hidden", [(), ("z3",), ("cvc5",), ("z3", "cvc5")], ids=str)
def test_either_solver_decides_and_none_leaves_it_unknown(hidden: tuple[str, ...], monkeypatch) -> None:
    hide(monkeypatch, *hidden)
    left = " and ".join(name for name in ("z3", "cvc5") if name not in hidden)
    code, told = checker.check(document(SOLVED))
    assert (code, told) == ((0, f"f = g by {left}") if left else (2, told))
    code, told = checker.check(document(f"wrong/{SOLVED}"))
    assert (code, named(told, SOLVED)) == ((1, FACTS[SOLVED]) if left else (2, told))
    assert left or told == "this rule asks solvers, and none is installed: z3-solver, cvc5"


@pytest.mark.parametrize("name", [SOLVED, f"wrong/{SOLVED}"])
@pytest.mark.parametrize("liar", ["z3", "cvc5.pythonic"])
def test_solvers_that_disagree_refute(name: str, liar: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Lying:
        """A solver that says the contrary; what it calls a model is the origin."""

        def __init__(self, solver: Any, smt: Any) -> None:
            self.solver, self.smt = solver, smt

        def __getattr__(self, name: str) -> Any:
            return getattr(self.solver, name)

        def check(self) -> Any:
            return {"sat": "unsat", "unsat": "sat"}[str(self.solver.check())]

        def model(self) -> Any:
            zero = type("Zero", (), {"as_long": staticmethod(lambda: 0)})
            return type("Model", (), {"eval": staticmethod(lambda *_: zero)})

    class Module:
        def __init__(self, smt: Any) -> None:
            self.smt = smt

        def __getattr__(self, name: str) -> Any:
            return getattr(self.smt, name)

        def Solver(self, **given: Any) -> Lying:  # noqa: N802
            return Lying(self.smt.Solver(**given), self.smt)

    def found(name: str) -> Any:
        smt = importlib.import_module(name)
        return Module(smt) if name == liar else smt

    monkeypatch.setattr(equality, "importlib", type("Planted", (), {"import_module": staticmethod(found)}))
    code, told = checker.check(document(name))
    assert (code, told.partition(",")[0]) == (1, "the solvers disagree")


# --- the command line -------------------------------------------------------------------------------------------------


def both(capsys: pytest.CaptureFixture[str], path: Path | str) -> tuple[tuple[int, str], tuple[int, str]]:
    """Exit code and standard output of ``layoutalg check`` and of the file."""
    mine = main(["check", str(path)]), capsys.readouterr().out
    return mine, (checker.main([str(path)]), capsys.readouterr().out)


@pytest.mark.parametrize("path", [*RIGHT, *WRONG], ids=lambda path: path.stem)
def test_the_command_line_says_the_same(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, other = both(capsys, path)
    assert mine == other


def test_the_command_line_says_the_same_of_a_folder(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    mine, other = both(capsys, STORED)
    assert mine == other
    assert mine[0] == 1
    assert len(mine[1].splitlines()) == len(RIGHT) + len(WRONG)
    assert main(["check", str(STORED), "--json"]) == 1
    answers = json.loads(capsys.readouterr().out)
    assert [answer["verdict"] for answer in answers] == [line.split()[0] for line in mine[1].splitlines()]
    with open(RIGHT[0], encoding="utf-8") as file:
        monkeypatch.setattr("sys.stdin", file)
        assert main(["check", "-"]) == 0
    assert capsys.readouterr().out.startswith("proved     standard input: ")


def one(**changes: object) -> str:
    return json.dumps(document("equality-table") | changes)


BROKEN = {
    "no JSON": "{",
    "nothing": "",
    "deep": "[" * 100_000,
    "deep inside": one().replace('"evidence": {', '"evidence": {"x": ' + "[" * 3000 + "]" * 3000 + ", "),
    "a list": f"[{one()}]",
    "an empty list": "[]",
    "a number": "5",
    "another schema": one(schema="layoutalg/certificate/1"),
    "no schema": '{"kind": "equality"}',
    "an unknown kind": one(kind="truth"),
    "a kind that is a list": one(kind=[]),
    "a number with a point": one(evidence={"by": 1.0}),
    "not a number": one(evidence={"by": float("nan")}),
    "a name twice": one().replace('"kind":', '"kind": "equality", "kind":'),
    "binary": b"\x00\xff\xfe{",
    "a mark of byte order": b"\xef\xbb\xbf" + one().encode(),
    "UTF-16": one().encode("utf-16"),
    "a lone surrogate": one(seal="\ud800"),
    "no seal": json.dumps({name: entry for name, entry in document("equality-table").items() if name != "seal"}),
    "a huge number": one(evidence={"by": "digits", "digits": [10**4000]}),
    "a number of 5000 digits": one().replace('"table"', "1" * 5000),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_end_with_one_code(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence is the checker's wherever a file holds a certificate, and the library's diagnostic elsewhere."""
    path, raw = tmp_path / "broken.json", BROKEN[name]
    path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    mine, other = both(capsys, path)
    assert mine[0] == other[0]
    assert other[0] in (0, 1, 64)
    if other[0] != 64 or "kind" in name or "schema/1" in name:
        assert mine == other
    assert other[1].count("\n") == 1
    assert both(capsys, tmp_path)[0][0] == other[0]


def test_no_file_and_an_empty_folder_end_with_one_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (tmp_path, tmp_path / "missing.json"):
        mine, other = both(capsys, path)
        assert (mine[0], other[0]) == (64, 64)
    assert checker.main([]) == 64


def test_a_folder_may_hold_plans_and_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(RIGHT[0], tmp_path / "a.json")
    problem = Path(__file__).parents[1] / "data" / "examples" / "problem.json"
    assert main(["synth", "tensormap", str(problem), "-o", str(tmp_path / "b.json")]) == 0
    (tmp_path / "c.json").write_text(f"[{(tmp_path / 'b.json').read_text(encoding='utf-8')}, 5]", encoding="utf-8")
    capsys.readouterr()
    assert main(["check", str(tmp_path)]) == 64
    words = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert [word for word, _ in words] == ["proved", "proved", "proved", "unreadable"]
    assert [Path(path).name for _, path in words] == ["a.json:", "b.json:", "c.json[0]:", "c.json[1]:"]


def test_the_checker_is_found_and_copied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checker"]) == 0
    assert Path(capsys.readouterr().out.strip()).samefile(SOURCE)
    texts = {path.name: path.read_text(encoding="utf-8") for path in SOURCE.glob("*.py")}
    assert main(["checker", "-o", str(tmp_path / "copy")]) == 0
    assert {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "copy").iterdir()} == texts
    assert main(["checker", "-o", str(tmp_path / "copy")]) == 64
    assert main(["checker", "-o", str(tmp_path / "copy/__init__.py")]) == 64
    capsys.readouterr()
    assert main(["checker", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == texts
    command = [sys.executable, "-I", str(tmp_path / "copy"), str(RIGHT[0])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.split()[0]) == (0, "proved")

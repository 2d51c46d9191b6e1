"""The stored mutants are in place, and what runs them runs the copy that they change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mutants.sandbox import Sandbox
from mutants.stored import KILLERS, ROOT, Mutant, faults, load, mutated

LEAST = 150
ONE = Mutant("one", "layoutalg/ground/sizes.py", "", "", "", ("tests/unit/test_ground.py",), False, "", "")


def test_every_mutant_is_in_place():
    mutants = load()
    assert faults(mutants) == []
    assert len(mutants) >= LEAST
    rooms = ("proofs/", "synth/", "targets/", "codegen/", "layoutalg/")
    fewest = min(sum(mutant.path.startswith(room) for mutant in mutants) for room in rooms)
    assert fewest >= LEAST // 10
    assert all(mutant.checker for mutant in mutants if mutant.path.startswith("proofs/"))
    assert all(mutant.killer or mutant.waits for mutant in mutants)


def test_every_kept_killer_is_of_a_mutant():
    names = {mutant.name for mutant in load()}
    assert KILLERS.exists()
    assert {mutant.name for mutant in load() if mutant.killer} <= names


TEXT = '''def one(x):
    """Double x < 4."""
    return x < 4


class Two:
    def three(self, x):
        return x < 4
'''


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"old": "x < 5"}, "stands 0 times"),
        ({"old": "return x < 4"}, "stands 2 times"),
        ({"old": "x < 4", "within": "four"}, "has no four"),
        ({"old": "x < 4", "within": "one"}, "stands 2 times"),
        ({"old": "Double x", "within": "one", "new": "Halve x"}, "means what"),
        ({"old": "return x < 4", "within": "one", "new": "return (x < 4)"}, "means what"),
        ({"old": "return x < 4", "within": "one", "new": "return x <"}, "invalid syntax"),
    ],
)
def test_a_mutant_out_of_place_is_refused(changes, told):
    with pytest.raises((ValueError, SyntaxError), match=told):
        mutated(replace(ONE, **changes), TEXT)


def test_a_function_in_a_class_is_found_by_both_names():
    mutant = replace(ONE, old="x < 4", new="x <= 4", within="Two.three")
    assert mutated(mutant, TEXT) == TEXT.replace("        return x < 4", "        return x <= 4")


def test_faults_are_named(tmp_path):
    (tmp_path / "layoutalg/ground").mkdir(parents=True)
    (tmp_path / "layoutalg/ground/sizes.py").write_text("x = 1\n")
    (tmp_path / "tests/unit").mkdir(parents=True)
    (tmp_path / "tests/unit/test_ground.py").write_text("def test_one(): ...\n")
    right = replace(ONE, old="1", new="2", killer="tests/unit/test_ground.py::test_one")
    assert faults([right], tmp_path) == []
    for wrong, told in (
        (replace(right, old="3"), "one: '3' stands 0 times in layoutalg/ground/sizes.py, not once"),
        (replace(right, tests=("tests/unit/test_other.py",), killer=""), "one: no tests ['tests/unit/test_other.py']"),
        (replace(right, killer="tests/unit/test_ground.py::test_two"), "::test_two is gone"),
        (replace(right, killer="tests/unit/test_it.py::test_one"), "is not of its tests"),
    ):
        (fault,) = faults([wrong], tmp_path)
        assert told in fault
    assert faults([right, right], tmp_path) == ["one: stored twice"]


@pytest.mark.nightly
def test_tests_run_what_the_copy_holds(tmp_path):
    sandbox = Sandbox(tmp_path)
    assert not (sandbox.root / ".git").exists()
    names = "layoutalg", "layoutalg.proofs.checker", "layoutalg.synth", "layoutalg.targets", "layoutalg.codegen"
    told = sandbox.python("-c", f"import {', '.join(names)}, sys; print(*(sys.modules[n].__file__ for n in {names}))")
    assert told.stdout.split(), told.stderr
    assert all(path.startswith(f"{sandbox.root}/") for path in told.stdout.split())

    test = sandbox.root / "tests/unit/test_sample.py"
    test.write_text(
        "from layoutalg.proofs.checker import base\n\ndef test_it():\n    assert base.SOLVER_SECONDS == 20\n"
    )
    mutant = Mutant("", "proofs/checker/base.py", "", "SOLVER_SECONDS = 20", "SOLVER_SECONDS = 21", (), True, "", "")
    before = (sandbox.root / mutant.path).read_bytes()
    assert before == (ROOT / mutant.path).read_bytes()
    for _ in range(2):  # the compiled file of the one must not pass for the other
        assert sandbox.tests("tests/unit/test_sample.py").status == "survived"
        outcome = sandbox.mutant(mutant, "tests/unit/test_sample.py")
        assert (outcome.status, outcome.killer) == ("killed", "tests/unit/test_sample.py::test_it")
        assert (sandbox.root / mutant.path).read_bytes() == before
    assert (
        sandbox.mutant(replace(mutant, new="SOLVER_SECONDS = 20 // 0"), "tests/unit/test_sample.py").status == "broken"
    )
    assert sandbox.tests("tests/unit/test_none.py").status == "broken"

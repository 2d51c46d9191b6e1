"""Every law that solvers decide is proved, and the solvers run Python as Python does."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from layoutalg.ground.errors import BudgetError, Diagnostic, MalformedError
from layoutalg.ground.verdict import Proved, Refuted, Unknown
from layoutalg.proofs import laws as door
from layoutalg.proofs.laws import Law, Obligation
from layoutalg.proofs.laws.__main__ import main
from layoutalg.proofs.laws.solvers import BITWUZLA, CVC5, Z3, Answerer, installed
from layoutalg.proofs.laws.term import every, some
from layoutalg.proofs.laws.trial import Trial, explored, violated_at

OBLIGATIONS = [
    pytest.param(each, id=f"{law.name} by {each.engine} {place}")
    for law in door.laws()
    for place, each in enumerate(law.obligations)
]
SOLVERS = [each for each in (Z3, CVC5, BITWUZLA) if installed(each)]


def needs(obligation: Obligation) -> None:
    for solver in (CVC5, BITWUZLA):
        if obligation.engine == solver.name and not installed(solver):
            pytest.skip(f"{solver.name} is not installed")


@pytest.mark.nightly(one_of=5)
@pytest.mark.parametrize("obligation", OBLIGATIONS)
def test_every_obligation_is_proved(obligation: Obligation) -> None:
    needs(obligation)
    verdict = obligation.prove()
    assert isinstance(verdict, Proved), str(verdict)


def test_every_file_with_laws_is_a_subject() -> None:
    files = {path.stem for path in Path(door.__file__).parent.glob("*.py") if "\nLAWS" in path.read_text("utf-8")}
    assert files == {subject.__name__.rpartition(".")[2] for subject in door.SUBJECTS}


def test_names_are_unique_and_say_their_subject() -> None:
    names = [law.name for law in door.laws()]
    assert len(set(names)) == len(names)
    assert all(name.count(".") == 1 for name in names)
    assert all(law.statement and law.obligations for law in door.laws())


def test_a_law_is_proved_by_name() -> None:
    assert isinstance(door.prove("coalesce.idempotent"), Proved)
    assert isinstance(door.prove("coalesce.idempotent", seconds=0), Unknown)
    with pytest.raises(MalformedError, match="LA441"):
        door.law("coalesce")


def test_the_command_lists_and_proves(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == [law.name for law in door.laws()]
    assert main(["--prove", "coalesce.idempotent"]) == 0
    assert "proved" in capsys.readouterr().out
    assert main(["--prove", "nothing"]) == 2
    assert "LA441" in capsys.readouterr().err


def rounding(trial: Trial) -> None:
    x, y = trial.integer("x"), trial.integer("y")
    trial.assume(y != 0)
    quotient, rest = divmod(x, y)
    trial.claim(quotient * y + rest == x, "the parts")
    trial.claim(some(every(rest >= 0, rest < y), every(rest <= 0, rest > y)), "the sign")


def truncating(trial: Trial) -> None:
    x = trial.integer("x")
    trial.claim(x // 3 * 3 >= x - 2 and x % 3 != 2, "a fault")


@pytest.mark.parametrize("solver", SOLVERS[:2], ids=lambda solver: solver.name)
def test_solvers_divide_as_python_does(solver: Answerer) -> None:
    assert isinstance(explored(rounding, solver), Proved)
    verdict = explored(truncating, solver)
    assert isinstance(verdict, Refuted)
    assert violated_at(truncating, verdict.witness)


def signs(trial: Trial) -> None:
    x, y = trial.bits("x", 6), trial.bits("y", 5)
    trial.claim((x ^ y) + 2 * (x & y) == x + y, "exclusive or is addition without carries")
    trial.claim((x >> 2) << 2 == x - (x & 3), "a shift rounds down")
    trial.claim(x * y == y * x, "products commute")
    trial.claim(~x == -x - 1, "two's complement")


def overflowing(trial: Trial) -> None:
    x = trial.bits("x", 6)
    trial.claim(x + 1 <= 31, "a sum leaves the width of its parts")


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
def test_bit_vectors_are_integers(solver: Answerer) -> None:
    assert isinstance(explored(signs, solver), Proved)
    verdict = explored(overflowing, solver)
    assert isinstance(verdict, Refuted)
    assert verdict.witness["x"] == 31


def test_every_way_through_a_claim_is_gone() -> None:
    seen = set()

    def branching(trial: Trial) -> None:
        x, y = trial.integer("x"), trial.integer("y")
        way = (bool(x > 0), bool(y > 0), bool(x > 5))
        seen.add(way)
        trial.claim(not way[2] or way[0], "above 5 is above 0")

    assert isinstance(explored(branching, Z3), Proved)
    assert len(seen) == 6


def test_a_claim_that_assumes_too_much_proves_nothing() -> None:
    def empty(trial: Trial) -> None:
        x = trial.extent("x")
        trial.assume(x < 1)
        trial.claim(x == 7, "anything")

    assert isinstance(explored(empty, Z3), Unknown)


def test_a_refusal_where_a_law_claims_a_value_is_a_fault() -> None:
    def refuses(trial: Trial) -> None:
        x = trial.extent("x")
        if x > 3:
            raise MalformedError(door._check.malformed("x", "must be small", 4).diagnostic)
        trial.claim(x <= 3, "small")

    verdict = explored(refuses, Z3)
    assert isinstance(verdict, Refuted)
    assert violated_at(refuses, verdict.witness)


def test_what_happens_on_a_way_that_cannot_be_taken_is_no_fault() -> None:
    def fails(trial: Trial, least: int) -> None:
        x, y = trial.integer("x"), trial.extent("y")
        trial.assume(x * y == 35, x > least, y > least)
        if x * y > 30:
            trial.claim(x + y == 12, "5 and 7")
        else:
            raise KeyError(x)

    def never(text: str, names: Mapping[str, int], seconds: float) -> dict[str, int] | None:
        if not names:
            raise BudgetError(Diagnostic("LA001", "the time is up"))
        return Z3.ask(text, names, seconds)

    assert isinstance(explored(partial(fails, least=1), Answerer("slow", never)), Proved)
    with pytest.raises(KeyError):
        explored(partial(broken, least=1), Z3)


def broken(trial: Trial, least: int) -> None:
    if trial.integer("x") > least:
        raise KeyError(least)
    trial.claim(True, "nothing")


def test_engines_that_disagree_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    law = door.law("coalesce.idempotent")
    refuted = Obligation(Z3, "nothing", lambda trial: trial.claim(trial.integer("x") < 1, "small"))
    monkeypatch.setattr(door, "law", lambda _: Law("a.b", "", (law.obligations[0], refuted)))
    with pytest.raises(BudgetError, match="LA440"):
        door.prove("a.b")


def test_a_solver_whose_counterexample_holds_is_not_believed() -> None:
    lying = Answerer("liar", lambda _text, names, _seconds: dict.fromkeys(names, 0))
    with pytest.raises(BudgetError, match="LA005"):
        explored(lambda trial: trial.claim(trial.integer("x") < 1, "small"), lying)


def test_solvers_not_installed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layoutalg.proofs.laws.solvers.find_spec", lambda _: None)
    first, second = [Obligation(solver, "all integers", rounding) for solver in (Z3, CVC5)]
    assert isinstance(first.prove(), Proved)
    verdict = second.prove()
    assert isinstance(verdict, Unknown)
    assert "not installed" in verdict.reason

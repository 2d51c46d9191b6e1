"""What decides obligations: solvers on symbols, enumeration, polynomials; each with the law planted wrong beside it.

Notation: a claim (``layoutalg.proofs.laws.trial``) states a law; ``wrong`` is the same claim with one fault planted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import TypeVar

from layoutalg.ground import clock
from layoutalg.ground.errors import LayoutError
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
from layoutalg.proofs.laws.law import Obligation, Witness
from layoutalg.proofs.laws.solvers import BITWUZLA, CVC5, Z3, Answerer, installed
from layoutalg.proofs.laws.trial import Claim, explored, identical, tried_at, violated_at

Case = TypeVar("Case")


def integers(claim: Claim, wrong: Claim, scope: str = "all integers") -> tuple[Obligation, ...]:
    """Return the obligations of z3 and cvc5 for a claim about integers.

    Args:
        claim: The law.
        wrong: The law planted wrong.
        scope: The values.
    """
    return tuple([_solved(answerer, claim, wrong, scope) for answerer in (Z3, CVC5)])


def by(answerer: Answerer, claim: Claim, wrong: Claim, scope: str = "all integers") -> tuple[Obligation, ...]:
    """Return the obligation of one solver, where the other was tried and does not end."""
    return (_solved(answerer, claim, wrong, scope),)


def bit_vectors(claim: Claim, wrong: Claim, scope: str) -> tuple[Obligation, ...]:
    """Return the obligations of z3 and bitwuzla for a claim about bit-vectors.

    Args:
        claim: The law; ``Trial.bits`` says how wide.
        wrong: The law planted wrong.
        scope: The values, with their widths.
    """
    return tuple([_solved(answerer, claim, wrong, scope) for answerer in (Z3, BITWUZLA)])


def _solved(answerer: Answerer, claim: Claim, wrong: Claim, scope: str) -> Obligation:
    def ask(asked: Claim) -> Verdict:
        if not installed(answerer):
            return Unknown(f"{answerer.name} is not installed", (answerer.name,))
        return explored(asked, answerer)

    return Obligation(answerer.name, scope, True, lambda: ask(claim), lambda: ask(wrong), _replayed(wrong))


def polynomials(claim: Claim, wrong: Claim, scope: str = "all integers") -> tuple[Obligation, ...]:
    """Return the obligation that the equations of a claim without branches are identities of polynomials."""
    return (
        Obligation("polynomials", scope, True, lambda: identical(claim), lambda: identical(wrong), _replayed(wrong)),
    )


def _replayed(wrong: Claim) -> Callable[[Witness], bool]:
    return lambda witness: violated_at(wrong, witness)


def boxed(
    claim: Claim, wrong: Claim, scope: str, box: Mapping[str, Sequence[int]], cases: int
) -> tuple[Obligation, ...]:
    """Return the obligation that a claim holds at all numbers of a box that satisfy what it assumes.

    Args:
        claim: The law.
        wrong: The law planted wrong.
        scope: The values in words.
        box: The numbers of each name.
        cases: How many satisfy what the claim assumes; counted while proving and compared.
    """

    def all_of() -> Iterable[dict[str, object]]:
        return (dict(zip(box, values, strict=True)) for values in product(*box.values()))

    def decide(asked: Claim, expected: int | None) -> Verdict:
        seen = 0
        for values in all_of():
            clock.check("a law")
            inside, witness = tried_at(asked, values)
            if witness is not None:
                return Refuted(_ENUMERATION, witness)
            seen += inside
        return _counted(seen, expected)

    return (_exhaustive(scope, cases, lambda: decide(claim, cases), lambda: decide(wrong, None), _replayed(wrong)),)


def enumerated(
    cases: Callable[[], Iterable[Case]],
    fails: Callable[[Case], str | None],
    wrong: Callable[[Case], str | None],
    scope: str,
    count: int,
) -> tuple[Obligation, ...]:
    """Return the obligation that a law holds in every case of a list.

    Args:
        cases: Makes the cases.
        fails: What is wrong in a case; None where the law holds. A refusal of the library counts as a fault, so
            a law that speaks of what is defined says so itself.
        wrong: The same with a fault planted.
        scope: The cases in words.
        count: How many there are; counted while proving and compared.
    """

    def decide(asked: Callable[[Case], str | None], expected: int | None) -> Verdict:
        seen = 0
        for case in cases():
            clock.check("a law")
            fault = _fault(asked, case)
            if fault is not None:
                return Refuted(_ENUMERATION, {"what": fault, "case": case})
            seen += 1
        return _counted(seen, expected)

    def violated(witness: Witness) -> bool:
        return _fault(wrong, witness["case"]) is not None  # type: ignore[arg-type]

    return (_exhaustive(scope, count, lambda: decide(fails, count), lambda: decide(wrong, None), violated),)


_ENUMERATION = "enumeration"


def _fault(asked: Callable[[Case], str | None], case: Case) -> str | None:
    try:
        return asked(case)
    except LayoutError as error:
        return f"refused: {error}"


def _counted(seen: int, expected: int | None) -> Verdict:
    if expected is not None and seen != expected:
        return Unknown(f"there were {seen} cases, not {expected}", (_ENUMERATION,))
    return Proved(_ENUMERATION, {"cases": seen})


def _exhaustive(
    scope: str,
    cases: int,
    prove: Callable[[], Verdict],
    planted: Callable[[], Verdict],
    violated: Callable[[Witness], bool],
) -> Obligation:
    return Obligation(_ENUMERATION, f"{scope}: {cases:,} case{'s' * (cases != 1)}", False, prove, planted, violated)


def decided(
    engine: str,
    scope: str,
    prove: Callable[[], Verdict],
    planted: Callable[[], Verdict],
    violated: Callable[[Witness], bool],
    *,
    for_all: bool = True,
) -> tuple[Obligation, ...]:
    """Return the obligation of an engine of its own, such as ISL.

    Args: those of ``Obligation``.
    """
    return (Obligation(engine, scope, for_all, prove, planted, violated),)

"""Which variant runs at which sizes, and the proof that the choice is right.

A *dispatch* asks a few questions about the sizes, each a clause of a guard; the answers lead to a branch. What was
answered with yes is the branch's guard: its code relies on nothing else, a no is never relied on. ``prove_dispatch``
shows that

1. exactly one branch is chosen at all sizes of the domain;
2. the guard of a branch implies that of its plan, which ``checker.prove`` has proved;
3. no other branch whose guard holds at these sizes is more specific (has a guard that implies this one);
4. the general branch holds at all sizes of the domain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from layoutalg.ground.assumptions import Assumptions
from layoutalg.ground.check import Checker
from layoutalg.ground.decide import sizes_with
from layoutalg.ground.errors import BudgetError
from layoutalg.ground.record import Checked
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
from layoutalg.proofs.symbolic.checker import prove
from layoutalg.proofs.symbolic.guard import Clause, Compiled, Guard, predicate, python_text
from layoutalg.proofs.symbolic.plan import SymbolicPlan

CHECK: Final = Checker("LA867", "invalid dispatch on sizes")
CLAIM: Final = "at all sizes of the domain one branch is chosen, its plan holds, and no more specific branch does"
Answers: TypeAlias = tuple[tuple[Clause, bool], ...]


@dataclass(frozen=True, slots=True)
class Branch(Checked, code="LA867"):
    """One variant.

    Example:
        >>> from layoutalg.ground.conditions import condition
        >>> print(Branch((((condition("n <= 64"),), False), ((condition("n % 8 == 0"),), True))).guard)
        n % 8 == 0
    """

    answers: Answers  # the questions asked on the way to it, in order, with their answers
    plan: SymbolicPlan | None = field(default=None, hash=False)  # its symbolic plan, or None

    def _validate(self) -> None:
        questions = [clause for clause, _ in self.answers]
        if len(set(questions)) != len(questions):
            raise CHECK.malformed("answers", "must not ask a question twice", str(self.guard))

    @property
    def guard(self) -> Guard:
        """What the branch relies on, besides the domain."""
        return Guard(tuple(clause for clause, yes in self.answers if yes))


@dataclass(frozen=True, slots=True)
class Dispatch(Compiled, Checked, code="LA867"):
    """The branches of one kernel, and which one runs.

    Example:
        >>> from layoutalg.ground.conditions import condition
        >>> whole = (condition("n % 8 == 0"),)
        >>> choice = Dispatch(Guard(("n <= 8192",)), (Branch(((whole, True),)), Branch(((whole, False),))))
        >>> choice.choose({"n": 16}), choice.choose({"n": 17}), choice.choose({"n": 9000})
        (0, 1, None)
    """

    domain: Guard  # the sizes for which there is a choice
    # in the order of their answers; they share their first question, those of each answer the next, ...
    branches: tuple[Branch, ...]
    general: SymbolicPlan | None = field(default=None, hash=False)  # the plan that holds everywhere, or None

    def _validate(self) -> None:
        tree = _expression([(branch.answers, place) for place, branch in enumerate(self.branches)])
        inside = [f"sizes[{name!r}] >= 1" for name in self.domain.names] + list(map(python_text, self.domain))
        object.__setattr__(self, "_text", f"({tree}) if ({' and '.join(inside) or 'True'}) else None")

    def choose(self, sizes: Mapping[str, int]) -> int | None:
        """Return the number of the branch for sizes (integers, one per name); None outside the domain."""
        try:
            test = self._test
        except AttributeError:
            test = predicate(self._text)
            object.__setattr__(self, "_test", test)
        found: int | None = test(sizes)
        return found


def _expression(open_branches: list[tuple[Answers, int]]) -> str:
    """Return the questions of these branches as one nested conditional expression."""
    if len(open_branches) == 1 and not open_branches[0][0]:
        return str(open_branches[0][1])
    first = {answers[0][0] if answers else None for answers, _ in open_branches}
    question = first.pop() if len(first) == 1 else None
    if question is None:
        raise CHECK.malformed("branches", "must be told apart by the same first question", len(open_branches))
    sides = {yes: [(rest[1:], place) for rest, place in open_branches if rest[0][1] == yes] for yes in (True, False)}
    if not all(sides.values()):  # the other answer is impossible here
        return _expression(sides[True] or sides[False])
    return f"({_expression(sides[True])} if {python_text(question)} else {_expression(sides[False])})"


def prove_dispatch(dispatch: Dispatch) -> Verdict:
    """Decide whether a dispatch chooses right at all sizes of its domain.

    Returns:
        ``Proved`` with the certificate, ``Refuted`` with sizes at which the choice is wrong, or ``Unknown``.

    Example:
        >>> from layoutalg.ground.conditions import condition
        >>> whole, small = (condition("n % 8 == 0"),), (condition("n <= 64"),)
        >>> first = Branch(((small, True), (whole, True))), Branch(((small, True), (whole, False)))
        >>> print(prove_dispatch(Dispatch(Guard(("n <= 8192",)), (*first, Branch(((small, False),))))).engine)
        interval x congruence, z3
        >>> print(prove_dispatch(Dispatch(Guard(("n <= 8192",)), first)).witness["at"])
        {'n': 65}
    """
    CHECK.kind(dispatch, Dispatch, "dispatch")
    try:
        found = next(_mistakes(dispatch), None)
    except BudgetError as spent:
        return Unknown(spent.diagnostic.because, ("interval x congruence", "z3"))
    if isinstance(found, (Refuted, Unknown)):
        return found
    guards = [str(branch.guard) for branch in dispatch.branches]
    certificate = {"claim": CLAIM, "domain": str(dispatch.domain), "guards": guards}
    return Proved("interval x congruence, z3", certificate)


def _mistakes(dispatch: Dispatch) -> Iterator[Verdict]:
    """Yield what is wrong or undecided, in the order of the module's list."""
    yield from _unanswered(dispatch, [branch.answers for branch in dispatch.branches], ())
    plans = [(branch.guard, branch.plan) for branch in dispatch.branches]
    for guard, plan in [*plans, (Guard(()), dispatch.general)]:
        if plan is not None:
            verdict = prove(plan)
            if not isinstance(verdict, Proved):
                yield verdict
            for clause in plan.guard:
                at = _sizes(dispatch.domain, [*_all_of(guard), (clause, False)])
                if at is not None:
                    yield Refuted(
                        "z3", {"what": f"the guard of a branch allows sizes that break {plan.guard}", "at": at}
                    )
    for chosen in dispatch.branches:
        for other in dispatch.branches:
            if other is not chosen and more_specific(other.guard, chosen.guard, dispatch.domain):
                at = _sizes(dispatch.domain, [*chosen.answers, *_all_of(other.guard)])
                if at is not None:
                    what = f"({other.guard}) is more specific than the chosen ({chosen.guard})"
                    yield Refuted("z3", {"what": what, "at": at})


def _unanswered(dispatch: Dispatch, rests: list[Answers], before: Answers) -> Iterator[Verdict]:
    """Yield sizes that follow ``before`` to an answer that no branch has."""
    if rests == [()]:
        return
    question = rests[0][0][0]
    for yes in (True, False):
        side = [rest[1:] for rest in rests if rest[0][1] == yes]
        path = (*before, (question, yes))
        if side:
            yield from _unanswered(dispatch, side, path)
            continue
        at = _sizes(dispatch.domain, path)
        if at is not None:
            yield Refuted("z3", {"what": "no branch is chosen", "at": at})


def more_specific(one: Guard, other: Guard, domain: Guard) -> bool:
    """Return whether, in the domain, ``one`` implies ``other`` and not conversely.

    Example:
        >>> more_specific(Guard(("n % 128 == 0",)), Guard(("n % 8 == 0",)), Guard(("n <= 8192",)))
        True
    """

    def implies(left: Guard, right: Guard) -> bool:
        return all(_sizes(domain, [*_all_of(left), (clause, False)]) is None for clause in right)

    return implies(one, other) and not implies(other, one)


def _all_of(guard: Guard) -> list[tuple[Clause, bool]]:
    return [(clause, True) for clause in guard]


def _sizes(domain: Guard, answers: Sequence[tuple[Clause, bool]]) -> dict[str, int] | None:
    """Return sizes of the domain with these answers, or None if there are none."""
    for clause, yes in answers:
        if not yes and clause in [other for other, wanted in answers if wanted]:
            return None
    more = [(clause, True) for clause in domain if len(clause) > 1]
    found = sizes_with(Assumptions(domain.conditions), [*more, *answers], frozenset(domain.names))
    return None if found is None else dict(found)

"""Run a builder on symbolic sizes: find the facts it consults, and with them all variants it can build.

The builder asks ``sizes.holds("n % 8 == 0")``. What follows from the facts known so far is answered, what they exclude
is denied; if both are possible, the run continues with yes, and another run follows with no. A no means only "not
known": the code must be right either way, so the guard of a variant is the conjunction of what was answered with yes.
Facts are intervals and congruences, decided by ``ground.decide``.

If there would be too many variants, the question that was first asked last is always answered with no (widening: the
variants that differ in it are joined), until there are few enough. A builder asks first what matters most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from layoutalg.ground.assumptions import Assumptions
from layoutalg.ground.conditions import conditions
from layoutalg.ground.decide import decide, sizes_with
from layoutalg.ground.errors import BudgetError, Diagnostic, LayoutError
from layoutalg.proofs.symbolic.dispatch import CHECK, Answers, Branch, Dispatch
from layoutalg.proofs.symbolic.guard import Clause, Guard
from layoutalg.proofs.symbolic.plan import SymbolicPlan

VARIANTS: Final = 10
"""variants: of one kernel, by default"""
MOST_RUNS: Final = 256
"""runs: of a builder on symbolic sizes, before questions are dropped"""


class SymbolicSizes:
    """What a builder knows about the sizes; it answers questions and keeps the facts that were consulted.

    Args:
        domain: The sizes for which there are variants.
        answers: Answers of an earlier run, to be given again; None to know nothing but the domain.
        dropped: Questions answered with no because there would be too many variants.

    Example:
        >>> sizes = SymbolicSizes(Guard(("n <= 8192",)), ())
        >>> sizes.holds("n % 128 == 0"), sizes.holds("n % 8 == 0"), sizes.holds("n <= 64"), sizes.assume
        (True, True, False, ('8192 >= n', 'n % 128 == 0'))
    """

    def __init__(self, domain: Guard, answers: Answers | None, dropped: frozenset[Clause] = frozenset()) -> None:
        self.domain = domain
        self.path: list[tuple[Clause, bool]] = []
        self.forks: list[Answers] = []
        self._given = None if answers is None else dict(answers)
        self._dropped = dropped
        self._known = Assumptions(domain.conditions)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sizes."""
        return self.domain.names

    @property
    def assume(self) -> tuple[str, ...]:
        """The facts known so far, as a ``Tensor`` takes them."""
        return tuple(map(str, self._known.conditions))

    def holds(self, question: object) -> bool:
        """Return whether a condition, a chain of conditions or a clause (conditions, one of which holds) is known."""
        if isinstance(question, tuple):
            return self._answer(tuple(part for entry in question for part in conditions(entry)))
        return all(self._answer((entry,)) for entry in conditions(question))

    def case(self, plan: SymbolicPlan) -> SymbolicPlan | None:
        """Return the first case of a plan all of whose guard holds, or None."""
        for case in plan.cases:
            if all(self._answer(clause) for clause in case.guard):
                return case
        return None

    def _answer(self, clause: Clause) -> bool:
        if strange := sorted({name for entry in clause for name in entry.names} - set(self.names)):
            raise CHECK.malformed("question", f"must be about {', '.join(self.names)}", strange[0])
        if (clause, True) in self.path or any(decide(self._known, entry).status for entry in clause):
            return True
        if (clause, False) in self.path or self._given is None or clause in self._dropped:
            return False
        if clause not in self._given:
            if not self._possible(clause, True):
                return False
            if self._possible(clause, False):
                self.forks.append((*self.path, (clause, False)))
        yes = self._given.get(clause, True)
        self.path.append((clause, yes))
        if yes and len(clause) == 1:
            self._known = self._known.extended(clause)
        return yes

    def _possible(self, clause: Clause, yes: bool) -> bool:
        """Return whether some sizes give this answer after those on the path. Undecided: only a no is possible."""
        more = [(other, True) for other in self.domain if len(other) > 1]
        try:
            found = sizes_with(self._known, [*more, *self.path, (clause, yes)], frozenset(self.names))
        except BudgetError:
            return not yes
        return found is not None


def explore(
    build: Callable[[SymbolicSizes], Any], domain: Guard, *, most: int = VARIANTS
) -> tuple[Dispatch, tuple[Any, ...]]:
    """Return the dispatch of all variants of a builder, and what it built for each.

    Mathematically: the leaves of the builder's decision tree over the domain; two leaves are joined by dropping the
    question that tells them apart.

    Args:
        build: Takes ``SymbolicSizes`` and returns a plan, a kernel, or (plan, kernel). It must be deterministic. Where
            it raises a ``LayoutError``, that error is what was built.
        domain: The sizes for which there are variants, with all names.
        most: Maximum number of variants.

    Raises: MalformedError: LA867: an argument, or a builder that is not deterministic. BudgetError: LA868.

    Example:
        >>> def vector(sizes):
        ...     return 16 if sizes.holds("n % 8 == 0") else 2
        >>> dispatch, built = explore(vector, Guard(("n <= 8192",)))
        >>> [str(branch.guard) for branch in dispatch.branches], built
        (['n % 8 == 0', 'only sizes >= 1'], (16, 2))
    """
    CHECK.kind(domain, Guard, "domain")
    CHECK.integer(most, "most", 1, MOST_RUNS + 1)
    if not callable(build):
        raise CHECK.malformed("build", "must be callable", build)
    dropped: list[Clause] = []
    while True:
        runs = _runs(build, domain, frozenset(dropped))
        if len(runs) <= most:
            branches = tuple(Branch(answers, plan_of(made)) for answers, made in runs)
            return Dispatch(domain, branches), tuple(made for _, made in runs)
        questions = list(dict.fromkeys(clause for answers, _ in runs for clause, _ in answers))
        while sum(all((clause, True) not in answers for clause in dropped) for answers, _ in runs) > most:
            dropped.append(questions.pop())


def _runs(
    build: Callable[[SymbolicSizes], Any], domain: Guard, dropped: frozenset[Clause]
) -> list[tuple[Answers, Any]]:
    """Run the builder once per leaf of its decision tree."""
    done: list[tuple[Answers, Any]] = []
    waiting: list[Answers] = [()]
    while waiting:
        if len(done) + len(waiting) > MOST_RUNS:
            because = f"the builder distinguishes more than {MOST_RUNS} cases; ask fewer questions"
            raise BudgetError(Diagnostic("LA868", "too many variants", (str(domain),), because))
        given = waiting.pop()
        sizes = SymbolicSizes(domain, given, dropped)
        made = run(build, sizes)
        if tuple(sizes.path[: len(given)]) != given:
            where = f"after {Branch(given[:-1]).guard}" if given else "at first"
            raise CHECK.malformed("build", "must ask the same questions in every run", where)
        done.append((tuple(sizes.path), made))
        waiting += sizes.forks[::-1]
    return sorted(done, key=lambda entry: [not yes for _, yes in entry[0]])


def run(build: Callable[[SymbolicSizes], Any], sizes: SymbolicSizes) -> Any:
    """Return what a builder makes for some sizes, or its refusal."""
    try:
        return build(sizes)
    except LayoutError as refusal:
        return refusal


def plan_of(made: Any) -> SymbolicPlan | None:
    """Return the symbolic plan among what a builder returned, or None."""
    parts = made if isinstance(made, tuple) else (made,)
    return next((part for part in parts if isinstance(part, SymbolicPlan)), None)

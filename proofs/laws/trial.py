"""Claims: one Python function states a law, and runs on symbols and on numbers.

Notation: a claim takes a ``Trial``, asks it for integers, assumes, calls the library and claims what must hold:

    def commutes(trial: Trial) -> None:
        x, y = trial.integer("x"), trial.integer("y")
        trial.claim(x + y == y + x, "x + y = y + x")

Main statements: on symbols a claim runs once for every feasible way through its branches; it is proved where on each
way no values satisfy the assumptions and deny a claim. What was claimed before may be used after.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from layoutalg.ground import clock
from layoutalg.ground.digits import Flat
from layoutalg.ground.errors import BudgetError, LayoutError
from layoutalg.ground.solver import wrong_answer
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
from layoutalg.proofs.laws.solvers import Answerer, Model
from layoutalg.proofs.laws.term import Condition, Path, Step, every

SECONDS = 30.0
"""For one question to a solver."""
BRANCH_SECONDS = 0.25
"""For the question whether a way through a claim can be taken; one that is left open is gone as well."""
PATHS = 2000
"""Ways through one claim."""


class Trial(ABC):
    """What a claim sees."""

    @abstractmethod
    def integer(self, name: str) -> Any:
        """Return any integer."""

    @abstractmethod
    def bits(self, name: str, width: int) -> Any:
        """Return any integer of that many bits in two's complement."""

    @abstractmethod
    def assume(self, *conditions: Condition) -> None:
        """Go on only where these hold."""

    @abstractmethod
    def claim(self, condition: Condition, what: str) -> None:
        """State that this holds here."""

    def divides(self, value: Any, by: Any, quotient: Any, rest: Any = 0) -> None:
        """State quotient and remainder of a division by a positive number; the solvers then need not look for them.

        Mathematically: value = by * quotient + rest with 0 <= rest < by has one solution.
        """
        self.claim(every(by > 0, rest >= 0, rest < by), "the remainder is smaller than the divisor")
        self.claim(by * quotient + rest == value, "quotient and remainder make the value")

    def extent(self, name: str) -> Any:
        """Return an integer of at least 1."""
        value = self.integer(name)
        self.assume(value >= 1)
        return value

    def digit(self, name: str, below: Any) -> Any:
        """Return an integer from 0 to ``below - 1``."""
        value = self.integer(name)
        self.assume(value >= 0, value < below)
        return value

    def flag(self, name: str) -> bool:
        """Return False or True; the claim runs with both."""
        return bool(self.digit(name, 2) == 1)


Claim = Callable[[Trial], None]


class _Over(BaseException):
    """This run is at its end: nothing satisfies what it assumed, or a claim failed with these values."""

    def __init__(self, witness: Mapping[str, object] | None = None) -> None:
        self.witness = witness


_FAULTS = (LayoutError, ArithmeticError)
"""What a claim does not raise: a law that speaks of refusals catches them."""


def _raised(error: Exception) -> str:
    return f"raises {type(error).__name__}: {error}"


class Numbers(Trial):
    """Given numbers; a name without a number is 0."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self.values = values

    def integer(self, name: str) -> Any:
        return self.values.get(name, 0)

    def bits(self, name: str, width: int) -> Any:
        value: Any = self.values.get(name, 0)
        if not -(1 << width - 1) <= value < 1 << width - 1:
            raise _Over
        return value

    def assume(self, *conditions: Condition) -> None:
        if not all(conditions):
            raise _Over

    def claim(self, condition: Condition, what: str) -> None:
        if not condition:
            raise _Over({"what": what, **self.values})


def violated_at(claim: Claim, values: Mapping[str, object]) -> bool:
    """Return whether a claim fails at these numbers, all it assumes being satisfied.

    Example:
        >>> def wrong(trial):
        ...     x = trial.extent("x")
        ...     trial.claim(x * x > x, "a square is greater")
        >>> violated_at(wrong, {"x": 1}), violated_at(wrong, {"x": 0}), violated_at(wrong, {"x": 2})
        (True, False, False)
    """
    try:
        claim(Numbers(values))
    except _Over as over:
        return over.witness is not None
    except BudgetError:
        raise
    except _FAULTS:
        return True
    return False


class _Symbols(Trial):
    """One way through a claim, without values."""

    def __init__(self, path: Path, answerer: Answerer) -> None:
        self.path, self.answerer = path, answerer
        self.claims = 0

    def integer(self, name: str) -> Any:
        return self.path.declare(name, 0)

    def bits(self, name: str, width: int) -> Any:
        return self.path.declare(name, width)

    def assume(self, *conditions: Condition) -> None:
        for condition in conditions:
            if isinstance(condition, bool):
                if not condition:
                    raise _Over
            else:
                self.path.require(condition.text)

    def claim(self, condition: Condition, what: str) -> None:
        self.claims += 1
        if condition is True:
            return
        denial = "true" if condition is False else f"(not {condition.text})"
        clock.check("a law")
        model = self.answerer.ask(self.path.asked(denial), self.path.names, SECONDS)
        if model is not None:
            raise _Over({"what": what, **model})
        if condition is False:
            raise _Over
        self.path.require(condition.text)

    def divides(self, value: Any, by: Any, quotient: Any, rest: Any = 0) -> None:
        super().divides(value, by, quotient, rest)
        self.path.divided(value, by, quotient, rest)


def explored(claim: Claim, answerer: Answerer) -> Verdict:
    """Return whether a claim holds for all values, as a solver decides it.

    Args:
        claim: The claim.
        answerer: The solver.

    Raises: BudgetError: LA005: the solver's own counterexample satisfies the claim.

    Example:
        >>> from layoutalg.proofs.laws.solvers import Z3
        >>> def rounds(trial):
        ...     x, y = trial.integer("x"), trial.extent("y")
        ...     trial.claim(x // y * y <= x, "a quotient rounds down")
        >>> bool(explored(rounds, Z3))
        True
    """
    questions = 0
    witness: Model | None = None

    def feasible(text: str) -> bool:
        nonlocal questions
        questions += 1
        clock.check("a law")
        try:
            return answerer.ask(text, {}, BRANCH_SECONDS) is not None
        except BudgetError:
            clock.check("a law")
            return True

    ahead: tuple[Step, ...] | None = ()
    paths = claims = 0
    tried = (answerer.name,)
    while ahead is not None:
        path = Path(feasible, ahead)
        trial = _Symbols(path, answerer)
        try:
            claim(trial)
        except _Over as over:
            if over.witness is not None:
                if not violated_at(claim, over.witness):
                    raise wrong_answer("a law", f"the claim holds at {dict(over.witness)}") from None
                return Refuted(answerer.name, over.witness)
        except BudgetError as error:
            return Unknown(f"{error.diagnostic.what}: {error.diagnostic.because}", tried)
        except Exception as error:  # what happens on a way that cannot be taken is no fault
            try:
                model = answerer.ask(path.asked(), path.names, SECONDS)
            except BudgetError as late:
                return Unknown(f"{late.diagnostic.what}: {late.diagnostic.because}", tried)
            if model is not None:
                if not isinstance(error, _FAULTS):
                    raise
                return Refuted(answerer.name, {"what": _raised(error), **model})
        claims += trial.claims
        paths += 1
        if paths > PATHS:
            return Unknown(f"the claim has more than {PATHS} ways through", tried)
        if witness is None and trial.claims:
            try:
                witness = answerer.ask(path.asked(), path.names, SECONDS)
            except BudgetError:
                clock.check("a law")
        ahead = _next(path)
    if witness is None:
        return Unknown("no values that satisfy what the claim assumes were found", tried)
    return Proved(answerer.name, {"questions": questions + claims, "paths": paths, "example": witness})


def _next(path: Path) -> tuple[Step, ...] | None:
    """Return the decisions of the next way: the last one left open goes the other way."""
    for place in range(len(path.taken) - 1, -1, -1):
        answer, free = path.taken[place]
        if free:
            return (*path.taken[:place], (not answer, False))
    return None


def modes(trial: Trial, count: int, extent: str = "s", stride: str = "d") -> Flat:
    """Return that many modes with any extents >= 1 and any strides, named ``s0``, ``d0``, ``s1``, ..."""
    return tuple([(trial.extent(f"{extent}{k}"), trial.integer(f"{stride}{k}")) for k in range(count)])


def digits_of(trial: Trial, name: str, extents: Sequence[Any]) -> list[Any]:
    """Return any digits of these extents, named ``i0``, ``i1``, ..."""
    return [trial.digit(f"{name}{k}", extent) for k, extent in enumerate(extents)]


def index(trial: Trial, digits: Sequence[Any], extents: Sequence[Any]) -> Any:
    """Return the 1-D coordinate with these digits, its divisions by the extents stated."""
    value = digits[-1]
    for digit, extent in zip(reversed(digits[:-1]), reversed(extents[:-1]), strict=True):
        value = digit + extent * value
    state_digits(trial, value, digits, extents)
    return value


def state_digits(trial: Trial, value: Any, digits: Sequence[Any], extents: Sequence[Any]) -> None:
    """State that a number in the radix of these extents has these digits and nothing behind them."""
    rests = [0]
    for digit, extent in zip(reversed(digits), reversed(extents), strict=True):
        rests.append(digit + extent * rests[-1])
    rests.reverse()
    for digit, extent, rest in zip(digits, extents, rests[1:], strict=True):
        trial.divides(value, extent, rest, digit)
        value = rest

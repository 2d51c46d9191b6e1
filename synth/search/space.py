"""A space of named choices: what is legal, and which legal choices should be fastest."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from layoutalg.ground.errors import BudgetError, Diagnostic, InfeasibleError, LayoutError
from layoutalg.ground.record import Checked
from layoutalg.ground.refusal import Broken
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.admission import Admitted, Refused
from layoutalg.synth.search.roofline import CHECK, Work, cycles, times

Choice: TypeAlias = Mapping[str, Any]
POINTS: Final = 2**16
"""points: of a space of choices"""
MOST_NAMES: Final = 32
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Ranked(Checked, code="LA886"):
    """A legal choice and its estimate.

    Args:
        choice: The choice.
        cycles: The estimate.
        bound: The resource that bounds it.
    """

    choice: Mapping[str, Any] = field(hash=False)
    cycles: float
    bound: str


@dataclass(frozen=True, slots=True)
class Space(Checked, code="LA886"):
    """Named choices of a kernel builder.

    Args:
        name: Name of the space; results are kept under it.
        choices: The values of each choice: numbers and texts.
        legal: From a choice to why it is refused: a ``Broken`` rule or a ``Refused`` admission; an ``Admitted`` one or
            None if it is legal. A ``LayoutError`` refuses as well.
        work: From a legal choice to its ``Work``.
        target: Architecture.
        dtype: Element type.
        guard: The sizes for which results count, as text.
        legality: Version of the rules of ``legal``; results under other rules are not reused.

    Example:
        >>> def fits(choice):
        ...     if choice["stages"] * choice["rows"] * 128 > 232448:
        ...         return Broken("SHARED_BYTES", "the ring does not fit shared memory")
        >>> def work(choice):
        ...     return Work(4096 // choice["rows"], "bf16", macs=choice["rows"] * 64 * 4096)
        >>> space = Space("demo", {"rows": (64, 128, 512), "stages": (2, 4)}, fits, work)
        >>> [dict(each.choice) for each in space.ranked()[0]][:2]
        [{'rows': 64, 'stages': 2}, {'rows': 64, 'stages': 4}]
    """

    name: str
    choices: Mapping[str, tuple[Any, ...]] = field(hash=False)
    legal: Callable[[Choice], object] = field(hash=False)
    work: Callable[[Choice], Work] = field(hash=False)
    target: str = "sm_90a"
    dtype: str = ""
    guard: str = ""
    legality: str = "1"

    def __post_init__(self) -> None:
        for name in ("name", "target", "dtype", "guard", "legality"):
            CHECK.kind(getattr(self, name), str, name)
        for name in ("legal", "work"):
            if not callable(getattr(self, name)):
                raise CHECK.malformed(name, "must be callable", getattr(self, name))
        found: dict[str, tuple[Any, ...]] = {}
        for name, values in CHECK.pairs(self.choices, "choices"):
            found[name] = CHECK.entries(values, f"choices[{name!r}]", POINTS)
            if not found[name] or not all(type(value) in (int, str, bool) for value in found[name]):
                raise CHECK.malformed(f"choices[{name!r}]", "must be one or more numbers and texts", values)
            if len(set(found[name])) < len(found[name]):
                raise CHECK.malformed(f"choices[{name!r}]", "must not repeat a value", values)
        if not 1 <= len(found) <= MOST_NAMES:
            raise CHECK.malformed("choices", f"must be 1 to {MOST_NAMES} choices", len(found))
        points = math.prod(map(len, found.values()))
        if points > POINTS:
            because = f"it has {points} points, at most {POINTS} are searched"
            raise BudgetError(Diagnostic("LA888", "the space of choices is too large", (self.name,), because))
        object.__setattr__(self, "choices", found)

    def ranked(self) -> tuple[tuple[Ranked, ...], tuple[tuple[Choice, Broken], ...]]:
        """Return the legal choices, fastest estimate first, and the refused ones with their reasons.

        Equal estimates are ordered by their second slowest resource, and so on.

        Raises: InfeasibleError: LA887: nothing is legal; the message has the reasons.
        """
        kept: list[tuple[list[float], Ranked]] = []
        refused: list[tuple[Choice, Broken]] = []
        for values in itertools.product(*self.choices.values()):
            choice = dict(zip(self.choices, values, strict=True))
            broken = self._broken(choice)
            if broken is None:
                work = CHECK.kind(self.work(choice), Work, "the answer of work")
                order = sorted(times(work, self.target).values(), reverse=True)
                kept.append((order, Ranked(choice, *cycles(work, self.target))))
            else:
                refused.append((choice, broken))
        if not kept:
            raise self._empty(refused)
        return tuple(each for _, each in sorted(kept, key=lambda pair: pair[0])), tuple(refused)

    def _broken(self, choice: Choice) -> Broken | None:
        try:
            answer = self.legal(choice)
        except LayoutError as error:
            return Broken(error.diagnostic.code, error.diagnostic.because or error.diagnostic.what)
        if answer is None or isinstance(answer, (Broken, Admitted)):
            return answer if isinstance(answer, Broken) else None
        if isinstance(answer, Refused):
            return Broken(answer.rules[0], answer.reasons[0], answer.witness)
        if isinstance(answer, Unknown):
            return Broken("UNDECIDED", answer.reason)
        raise CHECK.malformed("legal", "must return None, Broken or an answer of admissible", answer)

    def _empty(self, refused: list[tuple[Choice, Broken]]) -> InfeasibleError:
        counts = Counter((broken.rule, broken.reason) for _, broken in refused)
        lines = [
            f"{rule}: {reason} ({count} of {len(refused)})" for (rule, reason), count in counts.most_common(_SHOWN)
        ]
        if len(counts) > _SHOWN:
            lines.append(f"and {len(counts) - _SHOWN} further reasons")
        return InfeasibleError(
            Diagnostic("LA887", "every choice of the space is refused", (self.name,), "\n         ".join(lines))
        )


def key_of(choice: Choice) -> str:
    """Return a choice as canonical text."""
    return json.dumps(dict(choice), sort_keys=True)

"""What a law of the algebra is: a named sentence, the functions that rest on it, and the obligations that prove it.

Notation: an obligation is for all values where nothing but widths, ranks or sizes that ``scope`` states is bounded; the
others are decided by going through every case up to the bound in ``scope``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from layoutalg.ground.verdict import Verdict

Witness = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Obligation:
    """One engine's part in a law.

    Args:
        engine: What decides it, such as ``"z3"`` or ``"enumeration"``.
        scope: The values it speaks of, such as ``"all integers"``, bounds stated.
        for_all: Whether values are unbounded (a stated bound on widths or ranks aside).
        prove: Decides it, under the deadline of ``layoutalg.ground.clock``.
        planted: The same engine on the law planted wrong; it must be refuted.
        violated: Whether the law planted wrong fails at a witness, computed with plain numbers.
    """

    engine: str
    scope: str
    for_all: bool
    prove: Callable[[], Verdict] = field(repr=False, compare=False)
    planted: Callable[[], Verdict] = field(repr=False, compare=False)
    violated: Callable[[Witness], bool] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Law:
    """A named sentence about the library's own functions.

    Args:
        name: Subject and property, such as ``"composition.associative"``.
        statement: One mathematical sentence; where the proof is by induction, over what.
        about: Dotted names of the functions whose correctness rests on it.
        obligations: Its proofs, each complete within its scope.
        why_bounded: Where no obligation is for all values: why, and what was tried.
    """

    name: str
    statement: str
    about: tuple[str, ...]
    obligations: tuple[Obligation, ...]
    why_bounded: str = ""

    @property
    def for_all(self) -> bool:
        """Whether some engine proves it for all values."""
        return any(each.for_all for each in self.obligations)

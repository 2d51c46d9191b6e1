"""Assumptions about symbolic sizes, and what follows from them.

``Assumptions.entails`` returns True only if the condition holds for every assignment that the assumptions allow, False
only if it fails for every one, otherwise None.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from layoutalg.ground.check import Checker
from layoutalg.ground.conditions import Condition, Known, condition
from layoutalg.ground.conditions import conditions as read
from layoutalg.ground.decide import DECISION_MS, Decision, decide
from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.ground.facts import facts_of
from layoutalg.ground.lazy import later
from layoutalg.ground.polynomial import malformed, name_of, require_names, sizes_of

if TYPE_CHECKING:
    import sympy
else:
    sympy = later("sympy")

CONDITIONS: Final = 500
"""conditions: one set of assumptions about symbolic sizes"""
NAMES: Final = 1 << 16
"""unrestricted names of one set of assumptions"""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Assumptions(Known):
    """Conditions on symbolic sizes.

    Mathematically: the set of integer assignments at which all conditions hold and every name outside ``integers`` is
    at least 1.

    Args:
        conditions: Conditions, or their text.
        integers: Names that may be any integer; all others are at least 1.

    Example:
        >>> known = Assumptions(("M % 16 == 0", "N >= 64"))
        >>> print(known)
        M % 16 == 0, N >= 64
        >>> known.entails("M >= 16"), known.entails("N <= 32"), known.entails("M % 64 == 0")
        (True, False, None)
    """

    def __init__(self, conditions: Iterable[object] | str = (), integers: Iterable[object] = ()) -> None:
        texts: Iterable[object] = (conditions,) if isinstance(conditions, str) else conditions
        found: dict[Condition, None] = {}
        try:
            for entry in texts:
                found.update(dict.fromkeys(read(entry)))
        except TypeError as error:
            raise malformed("assumptions", "must be a sequence of conditions", conditions) from error
        free = integers if isinstance(integers, str) else Checker("LA620").entries(integers, "integers", NAMES)
        names = sorted({name_of(name, f"integers[{place}]") for place, name in enumerate(free)})
        if len(found) > CONDITIONS:
            raise malformed("assumptions", f"must be at most {CONDITIONS} conditions", f"{len(found)}")
        object.__setattr__(self, "conditions", tuple(found))
        object.__setattr__(self, "integers", tuple(names))
        if facts_of(self).contradiction:
            raise contradiction(self)

    def extended(self, extra: Iterable[object] = (), integers: Iterable[str] = ()) -> Assumptions:
        """Return the assumptions with conditions and unrestricted names added."""
        free = (*self.integers, *Assumptions((), integers).integers)
        return Assumptions((*self.conditions, *Assumptions(extra, free).conditions), free)

    def violated_by(self, sizes: Mapping[str, int]) -> Condition | None:
        """Return the first condition that ``sizes`` violate (sizes >= 1 included), or None."""
        values = sizes_of(sizes)
        require_names(self.names, values, str(self))
        return self.broken_at(values)

    def decide(self, claim: object, timeout_ms: float = DECISION_MS) -> Decision:
        """Decide whether a condition follows; the answer names the engine and example sizes.

        Args:
            claim: A condition or its text.
            timeout_ms: Wall time for the whole decision; an earlier deadline of the caller also applies.
        """
        return decide(self, condition(claim), timeout_ms)

    def entails(self, claim: object, timeout_ms: float = DECISION_MS) -> bool | None:
        """Return True if the claim always holds, False if it never holds, None if neither was shown."""
        return self.decide(claim, timeout_ms).status

    def to_sympy(self, symbols: Mapping[str, Any] | None = None) -> Any:
        """Return the conjunction of the conditions; sizes >= 1 is encoded in the symbols (positive integers)."""
        known = {name: sympy.Symbol(name, integer=True) for name in self.integers}
        return sympy.And(*[entry.to_sympy({**known, **(symbols or {})}) for entry in self.conditions])

    _sympy_ = to_sympy

    def _repr_latex_(self) -> str:
        return f"${sympy.latex(self.to_sympy())}$"

    def __str__(self) -> str:
        parts = [str(entry) for entry in self.conditions] + [f"{name} any integer" for name in self.integers]
        return ", ".join(parts) if parts else "nothing but sizes >= 1"

    def __repr__(self) -> str:
        texts = tuple([str(entry) for entry in self.conditions])
        return f"Assumptions({texts!r}, {self.integers!r})" if self.integers else f"Assumptions({texts!r})"


def contradiction(assumptions: Assumptions) -> MalformedError:
    """Return the error for unsatisfiable assumptions."""
    return MalformedError(
        Diagnostic(
            code="LA621", what="the assumptions contradict each other", because=f"no sizes satisfy {assumptions}"
        )
    )


@dataclass(frozen=True, slots=True)
class SideCondition:
    """A condition that a result depends on, and whether it is proved.

    Args:
        condition: The condition.
        status: True if the assumptions and earlier conditions entail it, None if open. (An operation refuses a
            condition that never holds.)
        reason: The engine that decided, or why it is open.

    Example:
        >>> print(SideCondition(condition("M % 64 == 0"), None, "both possible"))
        M % 64 == 0 [open: both possible]
    """

    condition: Condition
    status: bool | None
    reason: str = ""

    def __post_init__(self) -> None:
        refuse = Checker("LA622").malformed
        if not isinstance(self.condition, Condition):
            raise refuse("condition", "must be a Condition", self.condition)
        if self.status is not None and self.status is not True:
            raise refuse("status", "must be True or None", self.status)
        if not isinstance(self.reason, str):
            raise refuse("reason", "must be text", self.reason)

    def __str__(self) -> str:
        return f"{self.condition} [{'proved' if self.status else 'open'}: {self.reason}]"

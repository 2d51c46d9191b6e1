"""Diagnostics and exceptions: one value that explains, one small tree that carries it.

Main definitions: ``Diagnostic``, ``Repair``, ``LayoutError`` and its subclasses.

Implementation notes: every exception of the library is a ``LayoutError`` and owns a ``Diagnostic``. Malformed input is
also a ``ValueError``; giving up (``BudgetError``) is also a ``TimeoutError`` and is never mixed with a proof of
impossibility (``InfeasibleError``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Repair:
    """A change of the input that the library has re-checked.

    Args:
        name: Short imperative phrase, for example ``"pad the pitch"``.
        detail: What to change, with the numbers.
        document: The repaired input as JSON-ready data, ready to be submitted again; None where no document applies.
    """

    name: str
    detail: str
    document: Mapping[str, object] | None = field(default=None, hash=False)

    def to_json(self) -> dict[str, object]:
        """Return the repair as JSON-ready data."""
        answer: dict[str, object] = {"name": self.name, "detail": self.detail}
        if self.document is not None:
            answer["document"] = dict(self.document)
        return answer


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Why an operation refused: the condition, the numbers, the first offending coordinate and what would help.

    Args:
        code: Stable identifier, ``LA`` and three digits.
        what: One sentence.
        where: The call and its operands in the field's notation, or a JSON pointer for documents.
        because: The violated condition with the actual numbers.
        witness: The first coordinate where the contract would break, with both values.
        repairs: Re-checked repairs.
        source: Paper, manual section or rule id.
    """

    code: str
    what: str
    where: tuple[str, ...] = ()
    because: str = ""
    witness: Mapping[str, object] | None = field(default=None, hash=False)
    repairs: tuple[Repair, ...] = ()
    source: str | None = None

    def __str__(self) -> str:
        lines = [f"{self.code} {self.what}"]
        lines += [f"  {'in' if index == 0 else '  '}     {line}" for index, line in enumerate(self._where_lines())]
        if self.because:
            lines.append(f"  since  {self.because}")
        if self.witness is not None:
            lines.append("  at     " + ", ".join(f"{key}={_shown(value)}" for key, value in self.witness.items()))
        lines += [f"  try    {repair.name}: {repair.detail}" for repair in self.repairs]
        if self.source:
            lines.append(f"  see    {self.source}")
        return "\n".join(lines)

    def _where_lines(self) -> list[str]:
        return [line for entry in self.where for line in entry.split("\n")]

    def to_json(self) -> dict[str, object]:
        """Return the diagnostic as JSON-ready data."""
        return {
            "code": self.code,
            "what": self.what,
            "where": list(self.where),
            "because": self.because,
            "witness": None if self.witness is None else dict(self.witness),
            "repairs": [repair.to_json() for repair in self.repairs],
            "source": self.source,
        }


def _shown(value: object) -> str:
    """Return a witness as text; Python refuses to write out integers of more than 4300 digits."""
    try:
        return str(value)
    except ValueError:
        return hex(value) if isinstance(value, int) else f"a {type(value).__name__} of numbers too long to write"


class LayoutError(Exception):
    """Base of every error the library raises on purpose; ``.diagnostic`` explains it."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic)
        self.diagnostic = diagnostic

    def __str__(self) -> str:
        return str(self.diagnostic)


class MalformedError(LayoutError, ValueError):
    """The input is not a value of the type asked for: bad shape, stride, axis, dtype name or document."""


class AdmissibilityError(LayoutError, ValueError):
    """The operation is not defined on these operands; the diagnostic names the first coordinate that shows it."""


class RepresentabilityError(LayoutError, ValueError):
    """The result exists but not in the family asked for; the diagnostic offers the family that holds it."""


class TargetRuleError(LayoutError, ValueError):
    """A hardware rule is broken; ``.rule`` is the rule id."""

    def __init__(self, diagnostic: Diagnostic, rule: str) -> None:
        super().__init__(diagnostic)
        self.rule = rule

    def __reduce__(self) -> tuple[type, tuple[Diagnostic, str]]:
        return type(self), (self.diagnostic, self.rule)


class InfeasibleError(LayoutError):
    """Proved impossible."""


class BudgetError(LayoutError, TimeoutError):
    """Gave up within the budget; says what was tried. Never a proof of impossibility."""


class DeviceMismatchError(LayoutError):
    """A device contradicts the model; the diagnostic carries the first difference."""


class MissingExtraError(LayoutError, ImportError):
    """An optional dependency is absent; the message names the extra to install."""

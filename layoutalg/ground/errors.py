"""Exceptions, and the diagnostics they carry.

Every exception of the library is a ``LayoutError`` with a ``Diagnostic``. Malformed input is also a ``ValueError``.
Giving up (``BudgetError``) is also a ``TimeoutError`` and distinct from a proof of impossibility (``InfeasibleError``).
Messages can contain values of any size: ``shown`` truncates without writing out the rest, and ``plain`` makes a
diagnostic JSON-ready.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from layoutalg.ground.picture import in_one_line

SHOWN_CHARACTERS = 120
"""Maximum characters of a value in a message."""
WITNESS_CHARACTERS = 1_000
"""Maximum characters of one witness entry in a message."""
_DECIMAL_BITS = 14_000
"""Python refuses to print integers of more than 4300 digits."""
_SHOWN_DEPTH = 20
_PLAIN_DEPTH = 100


@dataclass(frozen=True, slots=True, order=True)
class Cost:
    """Cost of a repair, ordered by bytes, then instructions, then changes.

    Args:
        added_bytes: Additional bytes of memory compared with the original request.
        instructions: Instructions, copies or descriptors of the repaired answer.
        changes: Number of changed entries of the request.

    Example:
        >>> print(Cost(128, 16, 1))
        128 bytes more, 16 instructions, 1 change
    """

    added_bytes: int
    instructions: int
    changes: int

    def __str__(self) -> str:
        words = (("byte", " more"), ("instruction", ""), ("change", ""))
        numbers = self.added_bytes, self.instructions, self.changes
        return ", ".join(
            f"{number} {noun}{'s' * (number != 1)}{tail}" for number, (noun, tail) in zip(numbers, words, strict=True)
        )

    def to_json(self) -> dict[str, int]:
        """Return the cost as JSON-ready data."""
        return {"added_bytes": self.added_bytes, "instructions": self.instructions, "changes": self.changes}


@dataclass(frozen=True, slots=True)
class Repair:
    """A change of the input that the library has re-checked.

    Args:
        name: Short imperative phrase, for example ``"pad the pitch"``.
        detail: What to change, with the numbers.
        document: The repaired input as JSON-ready data, ready to be resubmitted; None if no document applies.
        cost: Its cost; None if not computed.
        movement: How data that lies in the refused layout gets to the repaired one, JSON-ready: ``mechanism``,
            ``cycles``, ...; None if not planned.
    """

    name: str
    detail: str
    document: Mapping[str, object] | None = field(default=None, hash=False)
    cost: Cost | None = None
    movement: Mapping[str, Any] | None = field(default=None, hash=False)

    def __str__(self) -> str:
        moved = ""
        if self.movement is not None:
            moved = "; moving the data takes {cycles:g} cycles ({mechanism})".format_map(self.movement)
        return f"{self.name}: {self.detail}" + (f" ({self.cost})" if self.cost else "") + moved

    def to_json(self) -> dict[str, object]:
        """Return the repair as JSON-ready data."""
        answer: dict[str, object] = {"name": self.name, "detail": self.detail}
        if self.cost is not None:
            answer["cost"] = self.cost.to_json()
        if self.document is not None:
            answer["document"] = plain(self.document)
        if self.movement is not None:
            answer["movement"] = plain(self.movement)
        return answer


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Why an operation refused: the condition, the numbers, the first offending coordinate and possible repairs.

    Args:
        code: Stable identifier, ``LA`` and three digits.
        what: One sentence.
        where: The call and its operands, or a JSON pointer for documents.
        because: The violated condition with the actual numbers.
        witness: The first offending coordinate, with both values.
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
        told = "actual" if self.because.find(", not ") >= 0 else None  # `because` ends with the value that was given
        entries = [f"{key}={_as_text(value)}" for key, value in (self.witness or {}).items() if key != told]
        if entries:
            lines.append("  at     " + ", ".join(entries))
        lines += [f"  try    {repair.name}: {repair.detail}" for repair in self.repairs]
        if self.source:
            lines.append(f"  see    {self.source}")
        return "\n".join([printable(line) for line in "\n".join(lines).split("\n")])

    def _where_lines(self) -> list[str]:
        return [line for entry in self.where for line in entry.split("\n")]

    def to_json(self) -> dict[str, object]:
        """Return the diagnostic as JSON-ready data."""
        return {
            "code": self.code,
            "what": self.what,
            "where": list(self.where),
            "because": self.because,
            "witness": plain(self.witness),
            "repairs": [repair.to_json() for repair in self.repairs],
            "source": self.source,
        }


def printable(line: str) -> str:
    """Return a line with control, format and bidirectional characters escaped."""
    return line if line.isprintable() else "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)


def shown(value: object, limit: int = SHOWN_CHARACTERS) -> str:
    """Return ``repr(value)`` truncated to ``limit`` characters; the rest is never written out.

    Args:
        value: Anything, even if its ``repr`` fails.
        limit: Maximum characters.

    Example:
        >>> shown((1, "two")), shown(tuple(range(10**6)), 20), shown(1 << 20_000)
        ("(1, 'two')", '(0, 1, 2, 3, 4, 5...', 'a number of 20001 bits')
    """
    text = _repr_prefix(value, limit + 1, 0)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _repr_prefix(value: object, room: int, depth: int) -> str:
    """Return ``repr(value)``, or a prefix of more than ``room`` characters."""
    if type(value) is str or type(value) is bytes:
        return repr(value[: room + 1])
    if type(value) is int:
        return str(value) if value.bit_length() <= _DECIMAL_BITS else f"a number of {value.bit_length()} bits"
    if depth > _SHOWN_DEPTH:
        return "..."
    if type(value) is tuple and len(value) == 1:
        return f"({_repr_prefix(value[0], room, depth + 1)},)"
    if type(value) is tuple:
        return "(" + _join_prefix(value, room, depth + 1) + ")"
    if type(value) is list:
        return "[" + _join_prefix(value, room, depth + 1) + "]"
    if type(value) is dict:
        text, left = "{", room
        for index, (key, entry) in enumerate(value.items()):
            pair = (
                f"{', ' if index else ''}{_repr_prefix(key, left, depth + 1)}: {_repr_prefix(entry, left, depth + 1)}"
            )
            text, left = text + pair, left - len(pair)
            if left < 0:
                break
        return text + "}"
    try:
        return in_one_line(value)
    except Exception:  # foreign code, nesting too deep, or numbers too long to print
        return f"a {type(value).__name__} that cannot be printed"


def _join_prefix(values: Iterable[object], room: int, depth: int) -> str:
    parts: list[str] = []
    for value in values:
        parts.append(_repr_prefix(value, room, depth))
        room -= len(parts[-1]) + 2
        if room < 0:
            break
    return ", ".join(parts)


def _as_text(value: object) -> str:
    """Return a witness entry as text."""
    if isinstance(value, (int, tuple, list, dict)):
        return shown(value, WITNESS_CHARACTERS)
    try:
        text = str(value)
    except Exception:
        text = shown(value)
    return text if len(text) <= WITNESS_CHARACTERS else text[: WITNESS_CHARACTERS - 3] + "..."


def plain(value: object) -> object:
    """Return ``value`` as data that any JSON writer accepts; values that JSON cannot represent become strings.

    Integers of more than 4300 digits, non-finite floats, complex numbers, bytes, foreign objects, values nested deeper
    than 100 levels and cycles become strings; tuples and arrays become lists, keys strings.

    Example:
        >>> plain({"at": (1, 2j), 3: float("nan")})
        {'at': [1, '2j'], '3': 'nan'}
    """
    return _plain(value, ())


def _plain(value: object, around: tuple[int, ...]) -> object:
    """Return ``value`` as plain data; ``around`` has the ids of the values that contain it."""
    if value is None or type(value) is bool or type(value) is str:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, int):
        return int(value) if value.bit_length() <= _DECIMAL_BITS else hex(value)
    if len(around) < _PLAIN_DEPTH and id(value) not in around:
        inside = (*around, id(value))
        if isinstance(value, Mapping):
            return {key if type(key) is str else _as_text(key): _plain(entry, inside) for key, entry in value.items()}
        if isinstance(value, (tuple, list)):
            return [_plain(entry, inside) for entry in value]
        if type(value).__module__ == "numpy" and hasattr(value, "tolist"):  # array or scalar
            return _plain(value.tolist(), inside)
    return _as_text(value)


class LayoutError(Exception):
    """Base of every error the library raises on purpose; see ``.diagnostic``."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic)
        self.diagnostic = diagnostic

    def __str__(self) -> str:
        return str(self.diagnostic)


class MalformedError(LayoutError, ValueError):
    """Invalid input: bad shape, stride, axis, dtype name or document."""


class AdmissibilityError(LayoutError, ValueError):
    """The operation is undefined for these operands; the diagnostic has the first offending coordinate."""


class RepresentabilityError(LayoutError, ValueError):
    """The result is not representable in the requested family; the diagnostic names one that can represent it."""


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
    """Gave up within the budget; the diagnostic says what was tried. Never a proof of impossibility."""


class DeviceMismatchError(LayoutError):
    """A device contradicts the model; the diagnostic has the first difference."""


class MissingExtraError(LayoutError, ImportError):
    """An optional dependency is missing; the message names the extra to install."""

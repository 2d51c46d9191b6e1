"""Checks of what users pass, and the one way in which a bad argument is reported.

Implementation notes: a family states its error code and its sentence once, ``check = Checker("LA200", "this is not a
linear layout")``; every check then names the argument, the rule and the value found. Where the family has no sentence,
"ARGUMENT is malformed" is the sentence.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from layoutalg.ground import memory
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError, shown

Kind = TypeVar("Kind")
_INT = {int}
_PLAIN = frozenset({int, str, bool, type(None)})


@dataclass(frozen=True, slots=True)
class Checker:
    """The checks of one family's input.

    Args:
        code: Error code of what they raise.
        what: The error's sentence; empty for "ARGUMENT is malformed".

    Example:
        >>> check = Checker("LA200", "this is not a linear layout")
        >>> check.integer(np.int32(7), "index", 0, 8)
        7
        >>> check.integer(8, "index", 0, 8)
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA200 this is not a linear layout
          in     index
          since  must be in [0, 8), not 8
          at     actual=8
    """

    code: str
    what: str = ""

    def malformed(self, argument: str, rule: str, actual: object, hint: str = "") -> MalformedError:
        """Return the error for a bad argument: its name, the rule (``"must be ..."``) and the value that broke it."""
        because = f"{rule}, not {shown(actual)}{hint}"
        if not self.what:
            return MalformedError(Diagnostic(self.code, f"{argument} is malformed", because=f"{argument} {because}"))
        witness = {"actual": actual if type(actual) in _PLAIN else shown(actual)}
        return MalformedError(Diagnostic(self.code, self.what, (argument,), because, witness))

    def integer(
        self,
        value: object,
        argument: str,
        low: int | None = None,
        high: int | None = None,
        rule: str = "must be an integer",
    ) -> int:
        """Return ``value`` as an int of [low, high); numpy's integers are taken, booleans and floats are not.

        Args:
            value: Anything.
            argument: Name of the argument, for the message.
            low: Least value; None for no bound.
            high: First value above; None for no bound.
            rule: What is said of a value that is not an integer.
        """
        if type(value) is not int:
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
                raise self.malformed(argument, rule, value)
            value = int(value)
        if (low is not None and value < low) or (high is not None and value >= high):
            if low is None:
                bounds = f"must be below {shown(high)}"
            else:
                bounds = f"must be at least {low}" if high is None else f"must be in [{low}, {shown(high)})"
            raise self.malformed(argument, bounds, value)
        return value

    def kind(self, value: object, kind: type[Kind], argument: str) -> Kind:
        """Return ``value`` if it is one of these."""
        if not isinstance(value, kind):
            raise self.malformed(
                argument, f"must be {'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}", value
            )
        return value

    def name(self, value: object, argument: str, seen: Collection[str] = ()) -> str:
        """Return an axis name: an identifier that was not seen before."""
        if not isinstance(value, str) or not value.isidentifier():
            raise self.malformed(argument, "must be an identifier", value)
        if value in seen:
            raise self.malformed(argument, "must be distinct from the names before it", value)
        return value

    def names(self, value: object, argument: str, known: Collection[str], whole: bool = False) -> tuple[str, ...]:
        """Return distinct names among the known ones, all of them where ``whole``; one name stands for itself."""
        names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, (tuple, list)) else None
        fits = names is not None and all(isinstance(name, str) and name in known for name in names)
        if names is None or not fits or len(set(names)) != len(names) or (whole and len(names) != len(known)):
            kind = "a permutation of" if whole else "distinct names among"
            raise self.malformed(argument, f"must be {kind} {list(known)}", value)
        return names

    def pairs(self, value: object, argument: str) -> list[tuple[str, Any]]:
        """Return a mapping or a sequence of (name, entry) pairs as a list; the names are distinct identifiers."""
        if not isinstance(value, (Mapping, tuple, list)):
            raise self.malformed(argument, "must be a mapping or a sequence of (name, entry) pairs", value)
        found: dict[str, Any] = {}
        where = f"a name in {argument}"
        for entry in value.items() if isinstance(value, Mapping) else value:
            if not isinstance(entry, (tuple, list)) or len(entry) != 2:
                raise self.malformed(argument, "must hold (name, entry) pairs", entry)
            found[self.name(entry[0], where, found)] = entry[1]
        return list(found.items())

    def vector(self, value: object, argument: str, length: int | None = None) -> tuple[int, ...]:
        """Return a sequence of integers, of the given length where one is given, as a tuple of ints."""
        if isinstance(value, np.ndarray):
            value = value.tolist() if value.dtype.kind in "iuO" else value
        if not isinstance(value, (tuple, list)):
            raise self.malformed(argument, "must be a sequence of integers", value)
        if length is not None and len(value) != length:
            raise self.malformed(argument, f"must have {length} entries", value)
        if set(map(type, value)) <= _INT:
            return tuple(value)
        return tuple([self.integer(entry, f"{argument}[{place}]") for place, entry in enumerate(value)])

    def coordinate(self, value: object, argument: str, extent: int) -> int | npt.NDArray[Any]:
        """Return integers of [0, extent): one as an int, many as an array, int64 where the extent allows.

        Args:
            value: An integer, or anything that numpy reads as an array of integers.
            argument: Name of the axis, for the message, which names the first value outside.
            extent: First value above.
        """
        if type(value) is int and 0 <= value < extent:
            return value
        if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
            return self.integer(value, argument, 0, extent)
        array = integers(value, argument)
        if array is None:
            raise self.malformed(argument, "must hold integers", value)
        if array.size and (int(array.min()) < 0 or int(array.max()) >= extent):
            flat = array.reshape(-1)
            place = int(np.flatnonzero((flat < 0) | (flat >= extent))[0])
            raise self.malformed(argument, f"must be in [0, {shown(extent)})", int(flat[place]))
        return array.astype(np.int64 if extent <= 1 << 63 else object, copy=False)


def refuse(
    code: str, what: str, because: str, witness: Mapping[str, object] | None, *operands: object
) -> AdmissibilityError:
    """Return the error of an operation that is not defined on these operands, which are shown in their notation."""
    return AdmissibilityError(Diagnostic(code, what, tuple(map(str, operands)), because, witness))


def integers(value: object, argument: str) -> npt.NDArray[Any] | None:
    """Return what numpy reads as an array of integers, of a fixed width or of Python's; None for everything else.

    Args:
        value: Anything; an empty list counts as integers.
        argument: What the numbers are, for the refusal of more than memory holds.

    Raises: BudgetError: LA002.

    Example:
        >>> integers([1, 2**70], "i").dtype, integers([0.5], "i"), integers([], "i").dtype
        (dtype('O'), None, dtype('int64'))
    """
    memory.reserve_items(argument, value)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError, RuntimeError, MemoryError):  # ragged, too long or too deep
        return None
    if not array.size and isinstance(value, (tuple, list)):
        return array.astype(np.int64)  # no entry says otherwise; numpy would make it float
    exact = array.dtype.kind in "iu" or (array.dtype.kind == "O" and all(type(entry) is int for entry in array.flat))
    return array if exact else None

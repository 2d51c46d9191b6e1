"""Argument checks with uniform error messages.

A family sets its error code and headline once, ``check = Checker("LA200", "invalid linear layout")``; each check then
reports the argument, the rule and the actual value. Without a headline, "ARGUMENT is malformed" is used.
"""

from __future__ import annotations

import difflib
import inspect
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from layoutalg.ground import memory
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError, shown

Kind = TypeVar("Kind")
_INT = {int}
_PLAIN = frozenset({int, str, bool, type(None)})
_ALIASES = {"arch": "target", "architecture": "target", "gpu": "target", "chip": "target", "device": "target"}
"""What other libraries call a parameter -> its name here."""


@dataclass(frozen=True, slots=True)
class Checker:
    """Input checks of one family.

    Args:
        code: Error code.
        what: Headline of the error; empty for "ARGUMENT is malformed".

    Example:
        >>> check = Checker("LA200", "invalid linear layout")
        >>> check.integer(np.int32(7), "index", 0, 8)
        7
        >>> check.integer(8, "index", 0, 8)
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA200 invalid linear layout
          in     index
          since  must be in [0, 8), not 8
    """

    code: str
    what: str = ""

    def malformed(self, argument: str, rule: str, actual: object, hint: str = "") -> MalformedError:
        """Return the error for a bad argument: its name, the rule (``"must be ..."``) and the actual value."""
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
        """Return ``value`` as an int in [low, high); accepts numpy integers, not booleans or floats.

        ``rule`` is the message for values that are not integers.
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
        """Return ``value`` if it is an instance of ``kind``."""
        if not isinstance(value, kind):
            raise self.malformed(
                argument, f"must be {'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}", value
            )
        return value

    def choice(self, value: object, argument: str, known: Collection[str]) -> str:
        """Return ``value`` if it is one of the known strings."""
        if not isinstance(value, str) or value not in known:
            raise self.malformed(argument, f"must be one of {', '.join(known)}", value)
        return value

    def options(
        self, given: Iterable[str], known: Iterable[str], call: Callable[..., object], purpose: str = ""
    ) -> None:
        """Raise for a keyword that is no option of ``call``; the message names near options and parameters.

        Example:
            >>> def plan(tile, target="sm_90a", **options):
            ...     Checker("LA372", "invalid call").options(options, ("bounds", "axes"), plan)
            >>> plan(8, bound=3)
            Traceback (most recent call last):
            layoutalg.ground.errors.MalformedError: LA372 invalid call
              in     options
              since  must be among bounds, axes, not 'bound'; near: bounds=
        """
        options = tuple(known)
        for name in [each for each in given if each not in options]:
            own = [each.name for each in inspect.signature(call).parameters.values() if each.kind != each.VAR_KEYWORD]
            named = (*options, *own)
            near = [_ALIASES[name]] if _ALIASES.get(name) in named else difflib.get_close_matches(name, named, 2, 0.6)
            hint = f"; near: {', '.join(f'{each}=' for each in near)}" if near else ""
            rule = f"must be among {', '.join(options)}" if options else "must be empty"
            raise self.malformed("options", f"{rule}{purpose}", name, hint)

    def name(self, value: object, argument: str, seen: Collection[str] = ()) -> str:
        """Return an axis name: an identifier not in ``seen``."""
        if not isinstance(value, str) or not value.isidentifier():
            raise self.malformed(argument, "must be an identifier", value)
        if value in seen:
            raise self.malformed(argument, "must not repeat an earlier name", value)
        return value

    def names(self, value: object, argument: str, known: Collection[str], whole: bool = False) -> tuple[str, ...]:
        """Return distinct names among the known ones, all of them if ``whole``; a single name may be a plain string."""
        names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, (tuple, list)) else None
        fits = names is not None and all(isinstance(name, str) and name in known for name in names)
        if names is None or not fits or len(set(names)) != len(names) or (whole and len(names) != len(known)):
            kind = "a permutation of" if whole else "distinct names among"
            raise self.malformed(argument, f"must be {kind} {list(known)}", value)
        return names

    def pairs(self, value: object, argument: str) -> list[tuple[str, Any]]:
        """Return a mapping or a sequence of (name, entry) pairs as a list with distinct identifiers as names."""
        if not isinstance(value, (Mapping, tuple, list)):
            raise self.malformed(argument, "must be a mapping or a sequence of (name, entry) pairs", value)
        found: dict[str, Any] = {}
        where = f"a name in {argument}"
        for entry in value.items() if isinstance(value, Mapping) else value:
            if not isinstance(entry, (tuple, list)) or len(entry) != 2:
                raise self.malformed(argument, "must be (name, entry) pairs", entry)
            found[self.name(entry[0], where, found)] = entry[1]
        return list(found.items())

    def texts(self, value: object, argument: str, known: Collection[str], length: int | None = None) -> tuple[str, ...]:
        """Return a sequence of known strings (of length ``length`` if given) as a tuple; they may repeat."""
        if not isinstance(value, (tuple, list)):
            raise self.malformed(argument, "must be a sequence of strings", value)
        if length is not None and len(value) != length:
            raise self.malformed(argument, f"must have {length} entries", value)
        return tuple([self.choice(entry, f"{argument}[{place}]", known) for place, entry in enumerate(value)])

    def entries(self, value: object, argument: str, most: int, rule: str = "must be a sequence") -> tuple[Any, ...]:
        """Return an iterable of at most ``most`` entries as a tuple; texts and mappings are none."""
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            raise self.malformed(argument, rule, value)
        try:
            found = tuple(itertools.islice(value, most + 1))
        except TypeError:  # an array without axes
            raise self.malformed(argument, rule, value) from None
        if len(found) > most:
            raise self.malformed(argument, f"must have at most {most} entries", value)
        return found

    def vector(
        self, value: object, argument: str, length: int | None = None, low: int | None = None
    ) -> tuple[int, ...]:
        """Return a sequence of integers (of length ``length`` and at least ``low``, if given) as a tuple of ints."""
        if isinstance(value, np.ndarray):
            value = value.tolist() if value.dtype.kind in "iuO" else value
        if not isinstance(value, (tuple, list)):
            raise self.malformed(argument, "must be a sequence of integers", value)
        if length is not None and len(value) != length:
            raise self.malformed(argument, f"must have {length} entries", value)
        if set(map(type, value)) <= _INT and (low is None or min(value, default=low) >= low):
            return tuple(value)
        return tuple([self.integer(entry, f"{argument}[{place}]", low) for place, entry in enumerate(value)])

    def coordinate(self, value: object, argument: str, extent: int) -> int | npt.NDArray[Any]:
        """Return integers in [0, extent): one as an int, many as an array (int64 if the extent allows).

        ``argument`` is the axis name for the message, which shows the first value out of bounds.
        """
        if type(value) is int and 0 <= value < extent:
            return value
        if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
            return self.integer(value, argument, 0, extent)
        array = integers(value, argument)
        if array is None:
            raise self.malformed(argument, "must contain integers", value)
        if array.size and (int(array.min()) < 0 or int(array.max()) >= extent):
            flat = array.reshape(-1)
            place = int(np.flatnonzero((flat < 0) | (flat >= extent))[0])
            raise self.malformed(argument, f"must be in [0, {shown(extent)})", int(flat[place]))
        return array.astype(np.int64 if extent <= 1 << 63 else object, copy=False)


def refuse(
    code: str, what: str, because: str, witness: Mapping[str, object] | None, *operands: object
) -> AdmissibilityError:
    """Return the error of an operation that is undefined for these operands."""
    return AdmissibilityError(Diagnostic(code, what, tuple(map(str, operands)), because, witness))


def integers(value: object, argument: str) -> npt.NDArray[Any] | None:
    """Return ``value`` as an array of fixed-width or Python integers; None if it is not one.

    Args:
        value: Anything; an empty list counts as integers.
        argument: Its name, for the error if it would not fit in memory.
    """
    memory.reserve_items(argument, value)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError, RuntimeError, MemoryError):  # ragged, too long or too deeply nested
        return None
    if not array.size and isinstance(value, (tuple, list)):
        return array.astype(np.int64)  # numpy would make an empty list float
    exact = array.dtype.kind in "iu" or (array.dtype.kind == "O" and all(type(entry) is int for entry in array.flat))
    return array if exact else None

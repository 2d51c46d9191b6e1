"""Checks and small steps that the operations on linear layouts share.

Main definitions: ``linear``, ``place``, ``selected``, ``field``, ``insert``, ``gather``, ``refuse``.

Notation: a *place* is the pair (lowest bit, bits) of one axis inside the packed integer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from layoutalg.errors import AdmissibilityError, Diagnostic, MalformedError
from layoutalg.f2.axes import Axes, fields
from layoutalg.f2.layout import LinearLayout


def linear(value: object, argument: str) -> LinearLayout:
    """Return ``value`` if it is a linear layout.

    Raises:
        MalformedError: LA241, naming the argument.
    """
    if not isinstance(value, LinearLayout):
        raise bad_argument(argument, "must be a LinearLayout", value)
    return value


def bad_argument(argument: str, rule: str, actual: object, where: Sequence[str] = ()) -> MalformedError:
    """Return the error for an argument that no layout could make valid, or that names no axis."""
    shown = repr(actual)
    return MalformedError(
        Diagnostic(
            code="LA241",
            what="this argument does not fit the linear layout",
            where=(argument, *where),
            because=f"{rule}, not {shown if len(shown) <= 120 else shown[:117] + '...'}",
            witness={"actual": actual},
        )
    )


def refuse(
    code: str, what: str, because: str, witness: Mapping[str, object], *layouts: LinearLayout
) -> AdmissibilityError:
    """Return the error for an operation that is not defined on these layouts."""
    where = tuple(map(str, layouts))
    return AdmissibilityError(Diagnostic(code=code, what=what, where=where, because=because, witness=witness))


def place(axes: Axes, name: object, argument: str) -> tuple[int, int]:
    """Return (lowest bit, bits) of the axis ``name``.

    Raises:
        MalformedError: LA241, there is no such axis.

    Example:
        >>> place((("row", 2), ("col", 3)), "col", "axis")
        (2, 3)
    """
    for candidate, low, bits in fields(axes):
        if candidate == name:
            return low, bits
    raise bad_argument(argument, f"must be one of {[known for known, _ in axes]}", name)


def selected(axes: Axes, names: object, argument: str) -> tuple[str, ...]:
    """Return the axis names asked for, distinct and known, in the order of ``axes``; one name may stand alone.

    Raises:
        MalformedError: LA241.

    Example:
        >>> selected((("row", 2), ("col", 3)), ["col", "row"], "names")
        ('row', 'col')
    """
    wanted = as_names(names, argument)
    known = [name for name, _ in axes]
    for name in wanted:
        if name not in known:
            raise bad_argument(argument, f"must be among {known}", name)
    return tuple(name for name in known if name in wanted)


def as_names(names: object, argument: str) -> tuple[str, ...]:
    """Return one name or an iterable of names as a tuple of distinct strings."""
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, Iterable):
        raise bad_argument(argument, "must be an axis name or a sequence of them", names)
    found = tuple(names)
    for index, name in enumerate(found):
        if not isinstance(name, str):
            raise bad_argument(argument, "must hold axis names", name)
        if name in found[:index]:
            raise bad_argument(argument, "must hold distinct axis names", name)
    return found


def field(value: int, where: tuple[int, int]) -> int:
    """Return the bits of ``value`` at a place, shifted down.

    Example:
        >>> field(0b11010, (1, 3))
        5
    """
    return value >> where[0] & ((1 << where[1]) - 1)


def insert(value: int, low: int, bits: int) -> int:
    """Return ``value`` with ``bits`` zero bits inserted at position ``low``.

    Example:
        >>> bin(insert(0b1011, 2, 1))
        '0b10011'
    """
    return value & ((1 << low) - 1) | value >> low << (low + bits)


def gather(value: int, places: Sequence[tuple[int, int]]) -> int:
    """Return the bits at the places, concatenated, the first place lowest.

    Example:
        >>> gather(0b11010, ((3, 2), (1, 1)))
        7
    """
    answer = position = 0
    for low, bits in places:
        answer |= (value >> low & ((1 << bits) - 1)) << position
        position += bits
    return answer


def columns_of(layout: LinearLayout, name: str) -> tuple[int, ...]:
    """Return the packed columns of one input axis."""
    low, bits = place(layout.inputs, name, "axis")
    return layout.columns[low : low + bits]


def bit_name(layout: LinearLayout, index: int) -> str:
    """Return the name of an input bit, as ``lane[2]``."""
    for name, low, bits in fields(layout.inputs):
        if low <= index < low + bits:
            return f"{name}[{index - low}]"
    return "constant"

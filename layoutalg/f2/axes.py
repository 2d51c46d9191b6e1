"""Named power-of-two axes, and points of their product packed into one integer.

Main definitions: ``Axes``, ``fields``, ``resized``, ``pack``, ``unpack``, and the checks of user input that linear
layouts share.

Notation: the first axis sits in the low bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from layoutalg.ground import limits
from layoutalg.ground.errors import Diagnostic, MalformedError, shown

Axes: TypeAlias = tuple[tuple[str, int], ...]
"""Axis names with their number of bits, minor to major."""


def malformed(argument: str, rule: str, actual: object) -> MalformedError:
    """Return the error for a bad argument: its name, the rule and the value that broke the rule."""
    return MalformedError(
        Diagnostic(
            code="LA200",
            what="this is not a linear layout",
            where=(argument,),
            because=f"{rule}, not {shown(actual)}",
            witness={"actual": actual},
        )
    )


def width(bits: int, argument: str) -> int:
    """Return the number of bits of an axis if an axis may have that many."""
    if bits > limits.F2_AXIS_BITS:
        raise malformed(argument, f"an axis has at most {limits.F2_AXIS_BITS} bits", bits)
    return bits


def integer(value: object, argument: str, rule: str = "must be an integer") -> int:
    """Return ``value`` as int; bools and floats are refused, numpy integers accepted."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise malformed(argument, rule, value)
    return int(value)


def log2(size: object, argument: str) -> int:
    """Return the exponent of a power of two."""
    number = integer(size, argument, "must be an integer power of two")
    if number < 1 or number & (number - 1):
        raise malformed(argument, "must be a power of two", number)
    return width(number.bit_length() - 1, argument)


def pairs(value: object, argument: str) -> list[tuple[str, object]]:
    """Return a mapping or a sequence of (name, entry) pairs as a list with distinct, valid names."""
    if isinstance(value, Mapping):
        entries: Iterable[object] = list(value.items())
    elif isinstance(value, (tuple, list)):
        entries = value
    else:
        raise malformed(argument, "must be a mapping or a sequence of (name, entry) pairs", value)
    found: dict[str, object] = {}
    for entry in entries:
        if not isinstance(entry, (tuple, list)) or len(entry) != 2:
            raise malformed(argument, "must hold (name, entry) pairs", entry)
        check_name(entry[0], argument, found)
        found[entry[0]] = entry[1]
    return list(found.items())


def check_name(name: object, argument: str, seen: Iterable[str]) -> None:
    """Refuse a name that is not an identifier or was seen before."""
    if not isinstance(name, str) or not name.isidentifier():
        raise malformed(argument, "axis names must be identifiers", name)
    if name in seen:
        raise malformed(argument, "axis names must be distinct", name)


def check_axes(axes: object, argument: str) -> Axes:
    """Return ``axes`` if it is a tuple of (name, bits) with distinct, valid names."""
    if not isinstance(axes, tuple):
        raise malformed(argument, "must be a tuple of (name, bits)", axes)
    seen: set[str] = set()
    for axis in axes:
        if not isinstance(axis, tuple) or len(axis) != 2:
            raise malformed(argument, "must hold (name, bits) pairs", axis)
        check_name(axis[0], argument, seen)
        seen.add(axis[0])
        if type(axis[1]) is not int or axis[1] < 0:
            raise malformed(argument, "bits must be a non-negative integer", axis[1])
        width(axis[1], argument)
    return axes


def fields(axes: Axes) -> Iterator[tuple[str, int, int]]:
    """Yield (name, position of the lowest bit, bits) of each axis inside the packed integer."""
    position = 0
    for name, bits in axes:
        yield name, position, bits
        position += bits


def resized(axes: Axes, name: str, bits: int) -> Axes:
    """Return the axes with another number of bits on one of them.

    Example:
        >>> resized((("row", 1), ("col", 2)), "col", 5)
        (('row', 1), ('col', 5))
    """
    return tuple((axis, bits if axis == name else count) for axis, count in axes)


def unpack(value: int, axes: Axes) -> dict[str, int]:
    """Return the coordinates of a packed point.

    Example:
        >>> unpack(0b110, (("row", 1), ("col", 2)))
        {'row': 0, 'col': 3}
    """
    return {name: value >> position & ((1 << bits) - 1) for name, position, bits in fields(axes)}


def pack(image: object, places: Sequence[tuple[str, int, int]], argument: str, bit: int | None = None) -> int:
    """Return one point of the codomain as a packed integer.

    Args:
        image: One component per output axis.
        places: ``fields`` of the output axes.
        argument: Name for messages; ``bit`` is its index where it has one.
        bit: See ``argument``.
    """
    if isinstance(image, np.ndarray):
        image = image.tolist()
    if not isinstance(image, (tuple, list)) or len(image) != len(places):
        raise malformed(_place(argument, bit), f"must have {len(places)} components, one per output axis", image)
    packed = 0
    for component, (name, low, bits) in zip(image, places, strict=True):
        value = component if type(component) is int else integer(component, _place(argument, bit))
        # a negative number shifts to -1, never to 0
        if value >> bits:
            raise malformed(_place(argument, bit), f"component {name} must be in [0, {1 << bits})", value)
        packed |= value << low
    return packed


def _place(argument: str, bit: int | None) -> str:
    return argument if bit is None else f"{argument}[{bit}]"


def pack_offset(offset: object, outputs: Axes) -> int:
    """Return an offset, by name or in order or None, as a packed integer."""
    if offset is None:
        return 0
    if isinstance(offset, Mapping):
        names = [name for name, _ in outputs]
        for name in offset:
            if name not in names:
                raise malformed("offset", f"axes must be among {names}", name)
        offset = [offset.get(name, 0) for name in names]
    return pack(offset, tuple(fields(outputs)), "offset")

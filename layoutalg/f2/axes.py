"""Named power-of-two axes, points packed into one integer, and checks of both.

Notation: the first axis is in the low bits. A *place* is the pair (lowest bit, bits) of one axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from typing import Final, TypeAlias

import numpy as np

from layoutalg.ground.check import Checker, refuse
from layoutalg.ground.errors import AdmissibilityError, shown

AxisBits: TypeAlias = tuple[tuple[str, int], ...]
"""Axis names with their number of bits, minor to major."""

Place: TypeAlias = tuple[int, int]
Moves: TypeAlias = list[tuple[int, int, int]]
"""Per field of a packed integer: lowest bit, mask of its width, new lowest bit."""

F2_AXIS_BITS: Final = 13_000
"""bits: one axis of an F2 layout, so that Python can still print its size"""

fields_check = Checker("LA200", "invalid linear layout")
"""For the parts of a layout: axes, sizes and bases."""
argument_check = Checker("LA241", "invalid argument for this linear layout")
"""For arguments of operations on layouts."""

malformed, bad_argument = fields_check.malformed, argument_check.malformed


def width(bits: int, argument: str) -> int:
    """Return the number of bits of an axis if it is within the limit."""
    if bits > F2_AXIS_BITS:
        raise malformed(argument, f"must have at most {F2_AXIS_BITS} bits", bits)
    return bits


def log2(size: object, argument: str) -> int:
    """Return the exponent of a power of two."""
    number = fields_check.integer(size, argument, rule="must be an integer power of two")
    if number < 1 or number & (number - 1):
        raise malformed(argument, "must be a power of two", number)
    return width(number.bit_length() - 1, argument)


def axes_of(sizes: object, argument: str) -> AxisBits:
    """Return the axes given as name -> size, powers of two."""
    return tuple((name, log2(size, f"{argument}[{name!r}]")) for name, size in fields_check.pairs(sizes, argument))


def check_axes(axes: object, argument: str) -> AxisBits:
    """Return ``axes`` if it is a tuple of (name, bits) with distinct, valid names."""
    if not isinstance(axes, tuple):
        raise malformed(argument, "must be a tuple of (name, bits)", axes)
    for name, bits in fields_check.pairs(axes, argument):
        if type(bits) is not int or bits < 0:
            raise malformed(argument, f"{name!r} must have a non-negative integer number of bits", bits)
        width(bits, argument)
    return axes


def fields(axes: AxisBits) -> Iterator[tuple[str, int, int]]:
    """Yield (name, position of the lowest bit, bits) of each axis inside the packed integer."""
    position = 0
    for name, bits in axes:
        yield name, position, bits
        position += bits


def resized(axes: AxisBits, name: str, bits: int) -> AxisBits:
    """Return the axes with the number of bits of one of them changed."""
    return tuple((axis, bits if axis == name else count) for axis, count in axes)


def misfit(room: AxisBits, given: AxisBits) -> str | None:
    """Return the first axis that only one side has, or that is larger in ``given``; None if all fit."""
    sizes, bits = dict(room), dict(given)
    return next((n for n in (*sizes, *bits) if n not in sizes or n not in bits or bits[n] > sizes[n]), None)


def summed(inner: object, outer: object, left: AxisBits, right: AxisBits, side: str) -> AxisBits:
    """Return the union of two ordered sets of axes, bits of shared axes added, in an order that agrees with both.

    Args:
        inner: Owner of the axes ``left``, for the error.
        outer: Owner of the axes ``right``.
        side: "input" or "output", for the error.
    """
    if left == right:
        return tuple((name, width(2 * bits, f"{side} axis {name}")) for name, bits in left)

    def conflict(name: str, other: str) -> AdmissibilityError:
        because = f"one has {side} axis {name!r} before {other!r}, the other after it"
        what = "the linear layouts order their axes differently"
        return refuse("LA242", what, because, {"axis": name, "other": other}, inner, outer)

    first, second = dict(left), dict(right)
    order: list[str] = []
    rest = [name for name, _ in right]
    for name, _ in left:
        if name in second:
            if name not in rest:
                raise conflict(name, next(other for other, _ in left if other in second and other in order))
            cut = rest.index(name)
            for passed in rest[:cut]:
                if passed in first:
                    raise conflict(name, passed)
            order += rest[:cut]
            rest = rest[cut + 1 :]
        order.append(name)
    total = ((name, first.get(name, 0) + second.get(name, 0)) for name in (*order, *rest))
    return tuple((name, width(bits, f"{side} axis {name}")) for name, bits in total)


def unpack(value: int, axes: AxisBits) -> dict[str, int]:
    """Return the coordinates of a packed point."""
    return {name: value >> position & ((1 << bits) - 1) for name, position, bits in fields(axes)}


def pack(image: object, places: Sequence[tuple[str, int, int]], argument: str, bit: int | None = None) -> int:
    """Return one point of the codomain as a packed integer.

    Args:
        image: One component per output axis.
        places: ``fields`` of the output axes.
        argument: Name for messages; ``bit`` is its index, if any.
    """
    if isinstance(image, np.ndarray):
        image = image.tolist()
    if not isinstance(image, (tuple, list)) or len(image) != len(places):
        raise malformed(_label(argument, bit), f"must have {len(places)} components, one per output axis", image)
    packed = 0
    for component, (name, low, bits) in zip(image, places, strict=True):
        value = component if type(component) is int else fields_check.integer(component, _label(argument, bit))
        # a negative number shifts to -1, never to 0
        if value >> bits:
            raise malformed(_label(argument, bit), f"component {name} must be in [0, {shown(1 << bits)})", value)
        packed |= value << low
    return packed


def _label(argument: str, bit: int | None) -> str:
    return argument if bit is None else f"{argument}[{bit}]"


def pack_offset(offset: object, outputs: AxisBits) -> int:
    """Return an offset (mapping, sequence or None) as a packed integer."""
    if offset is None:
        return 0
    if isinstance(offset, Mapping):
        names = [name for name, _ in outputs]
        for name in offset:
            if name not in names:
                raise malformed("offset", f"axes must be among {names}", name)
        offset = [offset.get(name, 0) for name in names]
    return pack(offset, tuple(fields(outputs)), "offset")


def flag(value: object, argument: str) -> bool:
    """Return ``value`` if it is a bool."""
    if not isinstance(value, bool):
        raise bad_argument(argument, "must be True or False", value)
    return value


def place(axes: AxisBits, name: object, argument: str) -> Place:
    """Return (lowest bit, bits) of the axis ``name``."""
    if isinstance(name, str):
        for candidate, low, bits in fields(axes):
            if candidate == name:
                return low, bits
    raise bad_argument(argument, f"must be one of {[known for known, _ in axes]}", name)


def selected(axes: AxisBits, names: object, argument: str) -> tuple[str, ...]:
    """Return the given axis names, which must be distinct and known, in the order of ``axes``."""
    wanted = as_names(names, argument)
    for name in wanted:
        place(axes, name, argument)
    return tuple(name for name, _ in axes if name in wanted)


def as_names(names: object, argument: str, *, ordered: bool = False) -> tuple[str, ...]:
    """Return one name or an iterable of names as a tuple of distinct strings.

    With ``ordered``, sets are refused.
    """
    if isinstance(names, str):
        return (names,)
    if ordered and isinstance(names, Set):
        raise bad_argument(argument, "must be ordered", names)
    found: list[str] = []
    for name in items(names, argument, "must be an axis name or a sequence of them"):
        if not isinstance(name, str):
            raise bad_argument(argument, "must contain axis names", name)
        if name in found:
            raise bad_argument(argument, "must contain distinct axis names", name)
        found.append(name)
    return tuple(found)


def items(values: object, argument: str, rule: str) -> Iterator[object]:
    """Return the entries of an iterable other than text or a mapping."""
    if not isinstance(values, (str, bytes, Mapping)) and isinstance(values, Iterable):
        # a zero-dimensional array claims to be iterable but is not
        with suppress(TypeError):
            return iter(values)
    raise bad_argument(argument, rule, values)


def packed_point(axes: AxisBits, values: object, argument: str, *, complete: bool = False, flat: bool = False) -> int:
    """Return a point given by axis name as a packed integer, absent axes at 0.

    Args:
        complete: No axis may be absent.
        flat: Also accept a packed integer.
    """
    if not isinstance(values, Mapping):
        if not flat:
            raise bad_argument(argument, "must map axis names to integers", values)
        return _below(sum(bits for _, bits in axes), values, argument)
    if complete and len(values) < len(axes):
        raise bad_argument(argument, f"must have the axes {[name for name, _ in axes]}", list(values))
    answer = 0
    for name, value in values.items():
        low, bits = place(axes, name, argument)
        answer |= _below(bits, value, f"{argument}[{name!r}]") << low
    return answer


def _below(bits: int, value: object, argument: str) -> int:
    number = fields_check.integer(value, argument)
    # a negative number shifts to -1, never to 0
    if number >> bits:
        raise bad_argument(argument, f"must be in [0, 2**{bits})", number)
    return number


def field(value: int, where: Place) -> int:
    """Return the bits of ``value`` at a place, shifted down."""
    return value >> where[0] & ((1 << where[1]) - 1)


def insert(value: int, low: int, bits: int) -> int:
    """Return ``value`` with ``bits`` zero bits inserted at position ``low``."""
    return value & ((1 << low) - 1) | value >> low << (low + bits)


def gather(value: int, places: Sequence[Place]) -> int:
    """Return the bits at the places, concatenated, the first place lowest."""
    answer = position = 0
    for low, bits in places:
        answer |= (value >> low & ((1 << bits) - 1)) << position
        position += bits
    return answer


def moves(source: AxisBits, target: AxisBits, shifts: Mapping[str, int] | None = None) -> Moves:
    """Return how the fields of a point of ``source`` map to the axes of ``target``, by name.

    Args:
        source: Axes, a subset of those of ``target``.
        shifts: Per axis of ``source``, its lowest bit within the target axis; absent axes 0.
    """
    placed = {name: low for name, low, _ in fields(target)}
    shifts = shifts or {}
    return [(low, (1 << bits) - 1, placed[name] + shifts.get(name, 0)) for name, low, bits in fields(source)]


def move(value: int, along: Moves) -> int:
    """Return the packed integer with its fields moved; see ``moves``."""
    answer = 0
    if value:
        for low, mask, target in along:
            answer |= (value >> low & mask) << target
    return answer

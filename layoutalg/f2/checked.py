"""Checks and small steps that the operations on linear layouts share.

Main definitions: the checks ``linear``, ``flag``, ``place``, ``selected``, ``as_names``, ``items``,
``packed_point``; the errors
``bad_argument`` and ``refuse``; the steps on packed integers ``field``, ``insert``, ``gather``, ``moves``, ``move``;
the steps on layouts ``mapped``, ``recolumned``, ``restricted``.

Notation: a *place* is the pair (lowest bit, bits) of one axis inside the packed integer.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress

from layoutalg.f2.axes import Axes, fields, integer, resized
from layoutalg.f2.layout import LinearLayout, _trusted
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError, shown

Moves = list[tuple[int, int, int]]
"""Per field of a packed integer: lowest bit, mask of its width, new lowest bit."""


def linear(value: object, argument: str) -> LinearLayout:
    """Return ``value`` if it is a linear layout.

    Raises: MalformedError: LA241.
    """
    if not isinstance(value, LinearLayout):
        raise bad_argument(argument, "must be a LinearLayout", value)
    return value


def flag(value: object, argument: str) -> bool:
    """Return ``value`` if it is a bool."""
    if not isinstance(value, bool):
        raise bad_argument(argument, "must be True or False", value)
    return value


def bad_argument(argument: str, rule: str, actual: object) -> MalformedError:
    """Return the error for an argument that no layout could make valid, or that names no axis."""
    return MalformedError(
        Diagnostic(
            code="LA241",
            what="this argument does not fit the linear layout",
            where=(argument,),
            because=f"{rule}, not {shown(actual)}",
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

    Raises: MalformedError: LA241.

    Example:
        >>> place((("row", 2), ("col", 3)), "col", "axis")
        (2, 3)
    """
    if isinstance(name, str):
        for candidate, low, bits in fields(axes):
            if candidate == name:
                return low, bits
    raise bad_argument(argument, f"must be one of {[known for known, _ in axes]}", name)


def selected(axes: Axes, names: object, argument: str) -> tuple[str, ...]:
    """Return the axis names asked for, distinct and known, in the order of ``axes``; one name may stand alone.

    Raises: MalformedError: LA241.

    Example:
        >>> selected((("row", 2), ("col", 3)), ["col", "row"], "names")
        ('row', 'col')
    """
    wanted = as_names(names, argument)
    for name in wanted:
        place(axes, name, argument)
    return tuple(name for name, _ in axes if name in wanted)


def as_names(names: object, argument: str, *, ordered: bool = False) -> tuple[str, ...]:
    """Return one name or an iterable of names as a tuple of distinct strings.

    Where the order matters a set is refused, since it has none.
    """
    if isinstance(names, str):
        return (names,)
    if ordered and isinstance(names, Set):
        raise bad_argument(argument, "must be in order", names)
    found: list[str] = []
    for name in items(names, argument, "must be an axis name or a sequence of them"):
        if not isinstance(name, str):
            raise bad_argument(argument, "must hold axis names", name)
        if name in found:
            raise bad_argument(argument, "must hold distinct axis names", name)
        found.append(name)
    return tuple(found)


def items(values: object, argument: str, rule: str) -> Iterator[object]:
    """Return the entries of an iterable; text and mappings are refused, since their entries are not what is meant."""
    if not isinstance(values, (str, bytes, Mapping)) and isinstance(values, Iterable):
        # an array without dimensions only claims to be iterable
        with suppress(TypeError):
            return iter(values)
    raise bad_argument(argument, rule, values)


def packed_point(axes: Axes, values: object, argument: str, *, complete: bool = False, flat: bool = False) -> int:
    """Return a point given by axis name as a packed integer, absent axes at 0.

    Args:
        axes: Where the point lies.
        values: Coordinate per axis.
        argument: Name for messages.
        complete: No axis may be absent.
        flat: The packed integer itself will do, too.

    Raises: MalformedError: LA241, LA200.

    Example:
        >>> packed_point((("row", 2), ("col", 3)), {"col": 5}, "point")
        20
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
    number = integer(value, argument)
    # a negative number shifts to -1, never to 0
    if number >> bits:
        raise bad_argument(argument, f"must be in [0, 2**{bits})", number)
    return number


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


def moves(source: Axes, target: Axes, shifts: Mapping[str, int] | None = None) -> Moves:
    """Return how a point of ``source`` lies among the axes of ``target``, by name.

    Args:
        source: Axes, all of them among those of ``target``.
        target: Axes.
        shifts: Per axis of ``source`` how many bits of the target axis lie below it; absent axes 0.

    Example:
        >>> move(0b11, moves((("col", 1), ("row", 1)), (("row", 2), ("col", 2)), {"row": 1}))
        6
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


def mapped(layout: LinearLayout, outputs: Axes, change: Callable[[int], int]) -> LinearLayout:
    """Return the layout after a linear map of packed values, onto the axes ``outputs``."""
    return _trusted(layout.inputs, outputs, tuple(map(change, layout.columns)), change(layout.constant))


def recolumned(layout: LinearLayout, name: str, columns: Sequence[int]) -> LinearLayout:
    """Return the layout with other columns, any number of them, on one input axis."""
    low, bits = place(layout.inputs, name, "name")
    rest = layout.columns[low + bits :]
    inputs = resized(layout.inputs, name, len(columns))
    return _trusted(inputs, layout.outputs, (*layout.columns[:low], *columns, *rest), layout.constant)


def restricted(layout: LinearLayout, ins: Container[str], outs: Container[str]) -> LinearLayout:
    """Return the layout with all other input axes at 0 and all other output axes forgotten."""
    places = [(low, bits) for name, low, bits in fields(layout.outputs) if name in outs]
    columns: list[int] = []
    for name, low, bits in fields(layout.inputs):
        if name in ins:
            columns += [gather(column, places) for column in layout.columns[low : low + bits]]
    inputs = tuple(axis for axis in layout.inputs if axis[0] in ins)
    outputs = tuple(axis for axis in layout.outputs if axis[0] in outs)
    return _trusted(inputs, outputs, tuple(columns), gather(layout.constant, places))


def columns_of(layout: LinearLayout, name: str, argument: str) -> tuple[int, ...]:
    """Return the packed columns of one input axis."""
    low, bits = place(layout.inputs, name, argument)
    return layout.columns[low : low + bits]


def bit_name(layout: LinearLayout, index: int) -> str:
    """Return the name of an input bit, as ``lane[2]``."""
    for name, low, bits in fields(layout.inputs):
        if low <= index < low + bits:
            return f"{name}[{index - low}]"
    return "constant"

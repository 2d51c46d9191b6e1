"""Named boxes, the five levels of a GPU, and the cuts between them.

Notation: the axes of a box are listed fastest first; flat indices are colexicographic. ``LEVELS`` is outermost first,
so a box of levels starts with ``register``. A cut ``lower|upper`` separates the levels up to ``lower`` (below) from
those from ``upper`` on (above). The points with equal coordinates above the cut form a *block*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from layoutalg.ground import digits
from layoutalg.ground.check import Checker, refuse

Level: TypeAlias = Literal["cluster", "cta", "warp", "lane", "register"]
"""A level of the machine. ``cluster`` counts clusters, ``cta`` CTAs of a cluster, ``register`` values of a lane."""

LEVELS: tuple[Level, ...] = get_args(Level)
Cut: TypeAlias = Literal["register|lane", "lane|warp", "warp|cta", "cta|cluster"]
CUTS: tuple[Cut, ...] = get_args(Cut)
Mechanism: TypeAlias = Literal["register", "shuffle", "shared", "cluster", "global"]
MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)
"""What moves data across no cut (registers of a lane), the first cut (warp shuffles), the second (shared memory of a
CTA), the third (shared memory of the cluster), the last (global memory)."""


check = Checker("LA750", "invalid hierarchical layout")
malformed, require = check.malformed, check.kind

HIERARCHY_BITS: Final = 4_096
"""bits: each extent, stride and size of a hierarchical layout, so that it can be printed and read"""


def integer(value: object, argument: str, low: int, high: int | None = None) -> int:
    """Return ``value`` as an int in [low, high) and below 2**4096 in magnitude; see ``Checker.integer``."""
    if type(value) is int and high is not None and low <= value < high:  # the common case
        return value
    number = check.integer(value, argument)
    if number.bit_length() > HIERARCHY_BITS:
        raise malformed(argument, f"must be below 2**{HIERARCHY_BITS} in magnitude", number)
    return check.integer(number, argument, low, high)


@dataclass(frozen=True, slots=True)
class Box:
    """A product of named axes of any extents.

    Args:
        axes: (name, extent) pairs, fastest first, or a mapping; names are distinct identifiers, extents at least 1.

    Example:
        >>> box = Box.of(row=3, col=5)
        >>> box.size, box.flat({"row": 2, "col": 1}), box.point(5)
        (15, 5, {'row': 2, 'col': 1})
    """

    axes: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", digits.checked_axes(self.axes, "axes", check, 1))
        if self.size >> HIERARCHY_BITS:
            raise malformed("axes", f"must have fewer than 2**{HIERARCHY_BITS} points", self.size)

    @classmethod
    def of(cls, /, **extents: int) -> Box:
        """Return the box with these axes, fastest first."""
        return cls(tuple(extents.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """Axis names, fastest first."""
        return tuple(name for name, _ in self.axes)

    @property
    def dims(self) -> dict[str, int]:
        """Axis name -> extent, fastest first."""
        return dict(self.axes)

    @property
    def size(self) -> int:
        """Number of points."""
        return digits.size(self.axes)

    @property
    def is_hierarchy(self) -> bool:
        """Whether the axes are the five levels, innermost first."""
        return self.names == LEVELS[::-1]

    def stride(self, name: str) -> int:
        """Return the weight of an axis in the flat index."""
        weight = 1
        for other, extent in self.axes:
            if isinstance(name, str) and other == name:
                return weight
            weight *= extent
        raise malformed("axis", f"must be among {list(self.names)}", name)

    def flat(self, point: Mapping[str, int]) -> int:
        """Return the flat index of a point given by all its coordinates."""
        return digits.flat_index(self.axes, point, check)

    def point(self, index: int) -> dict[str, int]:
        """Return the coordinates of a flat index."""
        return digits.point_at(self.axes, integer(index, "index", 0, self.size))

    def __str__(self) -> str:
        return ", ".join(f"{name}:{extent}" for name, extent in self.axes)


def hierarchy(*, cluster: int = 1, cta: int = 1, warp: int = 1, lane: int = 1, register: int = 1) -> Box:
    """Return the box of the five levels; ``register`` is the fastest axis.

    Example:
        >>> str(hierarchy(warp=4, lane=32, register=8))
        'register:8, lane:32, warp:4, cta:1, cluster:1'
    """
    return Box((("register", register), ("lane", lane), ("warp", warp), ("cta", cta), ("cluster", cluster)))


def cut_level(cut: object, argument: str = "cut") -> int:
    """Return the number of a cut, 0 for the innermost; the levels below it have numbers up to this one."""
    for number, name in enumerate(CUTS):
        if isinstance(cut, str) and cut == name:
            return number
    raise malformed(argument, f"must be among {list(CUTS)}", cut)


def block_size(box: Box, cut: str) -> int:
    """Return the number of points of one block of a cut: the product of the extents below it."""
    level = cut_level(cut)
    if not require(box, Box, "box").is_hierarchy:
        raise malformed("box", f"must have the axes {list(LEVELS[::-1])}", str(box))
    size = 1
    for _, extent in box.axes[: level + 1]:
        size *= extent
    return size


def same_levels(first: Box, second: Box, *where: object) -> None:
    """Check that both boxes are the same box of levels; the witness is the level or the wrong axes."""
    if first.is_hierarchy and first == second:
        return
    other = next((box for box in (first, second) if not box.is_hierarchy), None)
    if other is not None:
        because = f"one side has axes ({other}), expected {list(LEVELS[::-1])}"
        witness: dict[str, object] = {"axes": list(other.names)}
    else:
        because = f"one side has ({first}), the other ({second})"
        name = next(name for name in first.names if first.dims[name] != second.dims[name])
        witness = {"level": name, "first": first.dims[name], "second": second.dims[name]}
    raise refuse("LA756", "both sides must be the same box of levels", because, witness, *where)

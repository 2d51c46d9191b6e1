"""Grow a layout from one hardware tile to a whole tensor: the rules common to register and shared-memory families.

Notation: tensor dimensions are ``dim0``, ``dim1``, ... in the tensor's own order; hardware axes are ``register``,
``lane``, ``warp``, ``block`` for values in threads and ``offset``, ``block`` for elements in shared memory.

Implementation notes: a tile is a list of basis vectors per hardware axis and the number of bits covered in each
dimension. Growing appends one-hot (or zero) vectors; a product with a second level shifts that level past the bits
covered so far. Fitting to a shape repeats a small tile in the first hardware axis and folds a large one: the bits that
leave the tensor become zero vectors, so the hardware index bits they belong to hold copies.

References: arXiv 2505.23819 section 4 (layouts of Triton as linear layouts); Triton 3.9.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError, Repair, shown
from layoutalg.ground.kinds import checked_kinds

Vector: TypeAlias = tuple[int, ...]
Entry = TypeVar("Entry")
Bases: TypeAlias = tuple[tuple[str, tuple[Vector, ...]], ...]

THREAD_AXES = ("register", "lane", "warp")
LOWERING_SOURCE = "arXiv 2505.23819 section 4; Triton 3.9.0 layout conversions"


def malformed(
    argument: str,
    rule: str,
    actual: object,
    code: str = "LA700",
    source: str | None = None,
    repairs: tuple[Repair, ...] = (),
) -> MalformedError:
    """Return the error for a bad argument of a layout family: its name, the rule, the value and repairs."""
    return MalformedError(
        Diagnostic(
            code=code,
            what="invalid layout parameter",
            where=(argument,),
            because=f"{argument} {rule}, not {shown(actual)}",
            witness={"actual": actual},
            repairs=repairs,
            source=source,
        )
    )


def integer(value: object, argument: str, minimum: int = 0) -> int:
    """Return an integer of at least ``minimum``; bools and floats are refused, numpy integers accepted."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise malformed(argument, f"must be an integer of at least {minimum}", value)
    return int(value)


def power(value: object, argument: str) -> int:
    """Return a positive power of two."""
    number = integer(value, argument, 1)
    if number & (number - 1):
        below = 1 << (number.bit_length() - 1)
        near = Repair("use a power of two", f"{argument} = {shown(below)} or {shown(2 * below)}")
        raise malformed(argument, "must be a power of two", number, repairs=(near,))
    return number


def powers(values: object, argument: str, rank: int | None = None) -> tuple[int, ...]:
    """Return a sequence of positive powers of two, of length ``rank`` if that is given."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not isinstance(values, (tuple, list)) or not values:
        raise malformed(argument, "must be a non-empty sequence of powers of two", values)
    if rank is not None and len(values) != rank:
        raise malformed(argument, f"must have {rank} entries, one per tensor dimension", values)
    return tuple(power(value, f"{argument}[{index}]") for index, value in enumerate(values))


def choice(value: object, argument: str, allowed: Sequence[int], source: str) -> int:
    """Return an integer that must be one of ``allowed``."""
    number = integer(value, argument)
    if number not in allowed:
        raise malformed(argument, f"must be one of {tuple(allowed)}", number, "LA701", source)
    return number


def entry(name: object, argument: str, table: Mapping[str, Entry], source: str) -> Entry:
    """Look up a name in a table of instructions or architectures."""
    if not isinstance(name, str) or name not in table:
        raise malformed(argument, f"must be one of {sorted(table)}", name, "LA701", source)
    return table[name]


def matrix_shape(shape: object) -> tuple[int, ...]:
    """Return the shape of a matrix, or of a batch of matrices."""
    sizes = powers(shape, "shape")
    if len(sizes) not in (2, 3):
        raise malformed("shape", "must have two dimensions, or three with a batch first", sizes)
    return sizes


def permutation(values: object, argument: str, rank: int) -> tuple[int, ...]:
    """Return a permutation of range(rank): dimensions from the fastest to the slowest."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not isinstance(values, (tuple, list)):
        raise malformed(argument, f"must be a permutation of range({rank})", values)
    entries = tuple(integer(value, f"{argument}[{index}]") for index, value in enumerate(values))
    if sorted(entries) != list(range(rank)):
        raise malformed(argument, f"must be a permutation of range({rank})", values)
    return entries


def flag(value: object, argument: str) -> bool:
    """Return a bool; values of other types are refused."""
    if not isinstance(value, (bool, np.bool_)):
        raise malformed(argument, "must be True or False", value)
    return bool(value)


def vectors(values: object, argument: str, rank: int) -> tuple[Vector, ...]:
    """Return basis vectors whose components are 0 or a power of two, one component per tensor dimension."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not isinstance(values, (tuple, list)):
        raise malformed(argument, "must be a sequence of basis vectors", values)
    found = []
    for index, entry in enumerate(values):
        if isinstance(entry, np.ndarray):
            entry = entry.tolist()
        if not isinstance(entry, (tuple, list)) or len(entry) != rank:
            raise malformed(f"{argument}[{index}]", f"must have {rank} components", entry)
        vector = tuple(integer(part, f"{argument}[{index}]") for part in entry)
        if any(part & (part - 1) for part in vector):
            raise malformed(f"{argument}[{index}]", "must have components that are 0 or a power of two", entry)
        found.append(vector)
    return tuple(found)


def extents(bases: Iterable[Vector], rank: int) -> tuple[int, ...]:
    """Return per dimension the smallest power of two above every component."""
    columns = list(bases)
    return tuple(1 << max((vector[dim].bit_length() for vector in columns), default=0) for dim in range(rank))


def dims(rank: int) -> tuple[str, ...]:
    """Return the names of the tensor dimensions.

    Example:
        >>> dims(3)
        ('dim0', 'dim1', 'dim2')
    """
    return tuple(f"dim{index}" for index in range(rank))


def cga_bases(values: object, rank: int) -> tuple[Vector, ...]:
    """Return checked cluster bases, in units of one block's tile."""
    bases = vectors(values, "cga", rank)
    check_level("cga", "block", bases, rank)
    return bases


def check_level(argument: str, unit: str, bases: Sequence[Vector], rank: int) -> None:
    """Refuse bases of one level that do not enumerate a box of its units exactly once, copies aside."""
    sizes = extents(bases, rank)
    level = LinearLayout.from_bases({unit: bases}, tuple(zip(dims(rank), sizes, strict=True)))
    moving = [vector for vector in bases if any(vector)]
    if not level.is_surjective:
        what = f"the bases leave {unit} positions empty"
        because = f"the bases span a box of {sizes} {unit}s but reach only {1 << level.rank} positions"
    elif len(moving) > level.rank:
        what = f"two bases reach the same {unit} positions"
        because = f"{len(moving)} nonzero bases reach {1 << level.rank} positions; {level.rank} bases suffice for that"
    elif any(sum(map(bool, vector)) > 1 for vector in moving):
        crossing = next(vector for vector in moving if sum(map(bool, vector)) > 1)
        what = "a basis moves in more than one dimension"
        because = f"{crossing} is not a step along one dimension"
    else:
        return
    raise AdmissibilityError(
        Diagnostic(
            code="LA703",
            what=what,
            where=(argument, str(level)),
            because=f"{argument}: {because}",
            witness={"box": sizes, "reached": 1 << level.rank},
            source=LOWERING_SOURCE,
        )
    )


def shape_per_cta(shape: Sequence[int], cga: Sequence[Vector]) -> tuple[int, ...]:
    """Return the part of the tensor in one block: the shape divided by the box of the cluster bases.

    Example:
        >>> shape_per_cta((64, 64), ((0, 1), (0, 0)))
        (64, 32)
    """
    sizes = extents(cga, len(shape))
    return tuple(max(1, size // split) for size, split in zip(shape, sizes, strict=True))


@dataclass(frozen=True, slots=True)
class Tile:
    """One hardware tile on the way to a layout: basis vectors per hardware axis and bits covered per dimension.

    Example:
        >>> tile = Tile.start((1, 0)).grow("register", 1, 2).grow("lane", 0, 4)
        >>> str(tile.fit((4, 4)))
        'F2[register=(0,1)(0,2), lane=(1,0)(2,0), warp=, block= -> dim0:4, dim1:4]'

    Source: arXiv 2505.23819 section 4.
    """

    order: tuple[int, ...]  # dimensions in the order in which a small tile is repeated
    bits: tuple[int, ...]  # bits covered in each dimension, by dimension number
    bases: Bases  # per hardware axis the basis vectors, low bit first

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")
        rank = len(self.bits)
        permutation(self.order, "order", rank)
        if any(bits < 0 for bits in self.bits):
            raise malformed("bits", "must not be negative", self.bits)
        vectors = [vector for _, images in self.bases for vector in images]
        if any(len(vector) != rank or any(part < 0 for part in vector) for vector in vectors):
            raise malformed("bases", f"must be vectors of {rank} nonnegative components", self.bases)

    @classmethod
    def start(cls, order: Sequence[int], axes: Sequence[str] = THREAD_AXES) -> Tile:
        """Return the tile of one element, to be repeated in ``order`` by ``fit``."""
        return cls(tuple(order), (0,) * len(order), tuple((axis, ()) for axis in axes))

    @property
    def rank(self) -> int:
        """Number of tensor dimensions."""
        return len(self.bits)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Extent covered in each dimension."""
        return tuple(1 << bits for bits in self.bits)

    def grow(self, axis: str, dim: int, size: int) -> Tile:
        """Return the tile with ``log2(size)`` more bits of ``axis`` running along ``dim``."""
        count = size.bit_length() - 1
        images = tuple(
            tuple(1 << (self.bits[dim] + bit) if index == dim else 0 for index in range(self.rank))
            for bit in range(count)
        )
        bits = tuple(have + (count if index == dim else 0) for index, have in enumerate(self.bits))
        return Tile(self.order, bits, _extended(self.bases, {axis: images}))

    def grow_all(self, axis: str, sizes: Sequence[int], order: Sequence[int]) -> Tile:
        """Return the tile with ``axis`` running over a whole box, dimensions in ``order``."""
        tile = self
        for dim in order:
            tile = tile.grow(axis, dim, sizes[dim])
        return tile

    def copies(self, axis: str, count: int) -> Tile:
        """Return the tile with ``log2(count)`` more bits of ``axis`` that hold copies."""
        zero = ((0,) * self.rank,) * (count.bit_length() - 1)
        return Tile(self.order, self.bits, _extended(self.bases, {axis: zero}))

    def times(self, level: Mapping[str, Sequence[Vector]]) -> Tile:
        """Return the tile with one more level whose bases count whole tiles."""
        sizes = extents((vector for images in level.values() for vector in images), self.rank)
        shifted = {
            axis: tuple(tuple(part << bits for part, bits in zip(vector, self.bits, strict=True)) for vector in images)
            for axis, images in level.items()
        }
        bits = tuple(have + size.bit_length() - 1 for have, size in zip(self.bits, sizes, strict=True))
        return Tile(self.order, bits, _extended(self.bases, shifted))

    def fit(self, shape: Sequence[int], cga: Sequence[Vector] = (), drop_register_copies: bool = False) -> LinearLayout:
        """Return the layout of a tensor: repeat or fold the tile to one block's part, then place the blocks.

        Mathematically: with s = shape / cluster box, dimension d is repeated in the first hardware axis while the tile
        covers less than s[d], in the order of ``order``; components of s[d] or more are dropped; then the block axis
        is a direct summand.

        Args:
            shape: Tensor shape, powers of two.
            cga: Checked cluster bases in units of one block's part.
            drop_register_copies: Drop register bits that folding turned into copies instead of keeping zero vectors.

        Source: Triton 3.9.0 (combination of block tile, cluster layout and shape).
        """
        cluster = tuple(
            tuple(part if part < size else 0 for part, size in zip(vector, shape, strict=True)) for vector in cga
        )
        sizes = extents(cluster, self.rank)
        part = tuple(max(1, size // split) for size, split in zip(shape, sizes, strict=True))
        tile = self
        for dim in self.order:
            missing = part[dim] // tile.sizes[dim]
            if missing > 1:
                tile = tile.grow(self.bases[0][0], dim, missing)
        bases = [(axis, tuple(_folded(vector, part) for vector in images)) for axis, images in tile.bases]
        if drop_register_copies:
            bases = [(axis, tuple(v for v in images if axis != "register" or any(v))) for axis, images in bases]
        blocks = tuple(tuple(step * size for step, size in zip(vector, part, strict=True)) for vector in cluster)
        named = tuple(zip(dims(self.rank), shape, strict=True))
        return LinearLayout.from_bases((*bases, ("block", blocks)), named)


def _extended(bases: Bases, more: Mapping[str, Sequence[Vector]]) -> Bases:
    return tuple((axis, (*images, *more.get(axis, ()))) for axis, images in bases)


def _folded(vector: Vector, sizes: Sequence[int]) -> Vector:
    return tuple(part if part < size else 0 for part, size in zip(vector, sizes, strict=True))

"""A tile of a tensor and its shared-memory layout, with parameters known as intervals and residues.

Notation: gamma of an abstract tile is the set of concrete ones whose every parameter is in gamma of its values. All
parameters are in elements, dimensions outermost first.

Each operation f is sound: f(t) is in gamma(f(T)) for all t in gamma(T), and ``join`` contains both its arguments. So
what is known after a chain of operations holds on every path through it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from layoutalg.ground.check import Checker
from layoutalg.ground.digits import Flat
from layoutalg.ground.values import Values, constant
from layoutalg.proofs.tensormap import TensorMapProblem
from layoutalg.targets.nvidia.tensormap import element_bytes

CHECK = Checker("LA891", "invalid argument to AbstractTile")
BASE_ALIGN = constant(256)
"""Alignment that device memory allocators guarantee, in bytes."""
Digit: TypeAlias = tuple[Values, Values]
"""Extent and element stride of a digit of shared memory."""


@dataclass(frozen=True, slots=True)
class AbstractTile:
    """Tiles of tensors in shared memory with partially known parameters.

    Args:
        size: Bytes per element.
        offset: Elements from the tensor's base to its first element.
        extents: Extents of the tensor.
        strides: Its element strides.
        shared: Per tile dimension its digits in shared memory, fastest first.
        base_align: Known alignment of the base address, in bytes.

    Example:
        >>> tile = AbstractTile.dense(2, (64, Values(8, 64, 8)))
        >>> print(tile.strides[0], "|", tile.padded(0, Values(0, 8)).strides[0])
        8 to 64, 0 mod 8 | 8 to 72
    """

    size: int
    offset: Values
    extents: tuple[Values, ...]
    strides: tuple[Values, ...]
    shared: tuple[tuple[Digit, ...], ...]
    base_align: Values = BASE_ALIGN

    def __post_init__(self) -> None:
        CHECK.integer(self.size, "size", 1, 17)
        if not len(self.extents) == len(self.strides) == len(self.shared) or not self.extents:
            raise CHECK.malformed("strides", "must have one entry per dimension", len(self.strides))

    @classmethod
    def of(cls, problem: TensorMapProblem) -> AbstractTile | None:
        """Return the exact tile of a problem; None if the problem has unsupported features.

        Unsupported: element strides above 1, bounds other than the tensor's, tile origins off the grid of tiles.

        Example:
            >>> found = AbstractTile.of(TensorMapProblem.of(((64, 64), None, "f16"), (8, 64), "(8,64):(64,1)"))
            >>> print(found.strides[0], *found.shared[0][0])
            64 8 64
        """
        grid = all(
            multiple == (tile if high > tile else 0)
            for multiple, tile, (_, high) in zip(problem.origin_multiple, problem.tile, problem.bounds, strict=True)
        )
        plain = all(step == 1 for step in problem.element_strides)
        if not (grid and plain) or problem.bounds != tuple((0, extent) for extent in problem.global_shape):
            return None
        return cls(
            problem.element_bytes,
            constant(problem.base_elem_offset),
            tuple([constant(extent) for extent in problem.global_shape]),
            tuple([constant(stride) for stride in problem.global_strides]),
            tuple([_digits(modes) for modes in problem.smem_modes]),
            constant(problem.base_align_bytes),
        )

    @classmethod
    def dense(cls, dtype: str | int, shape: Sequence[Values | int]) -> AbstractTile:
        """Return a row-major tensor that is one row-major tile.

        Args:
            dtype: TensorMap type, or bytes per element.
            shape: Extents, outermost first.
        """
        size = element_bytes(dtype) if isinstance(dtype, str) else dtype
        extents = tuple([constant(extent) for extent in shape])
        strides = [constant(1)]
        for extent in extents[:0:-1]:
            strides.append(strides[-1] * extent)
        strides.reverse()
        shared = tuple([((extent, stride),) for extent, stride in zip(extents, strides, strict=True)])
        return cls(size, constant(0), extents, tuple(strides), shared)

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.extents)

    def tile_extent(self, dim: int) -> Values:
        """Return the extent of the tile along a dimension."""
        found = constant(1)
        for extent, _ in self.shared[dim]:
            found = found * extent
        return found

    def holds(self, tile: AbstractTile) -> bool:
        """Return whether a fully known tile is one of these."""
        mine, its = self._values(), tile._values()
        return self._form() == tile._form() and all(
            value.single in own for own, value in zip(mine, its, strict=True) if value.single is not None
        )

    # operations on the tensor

    def sliced(self, dim: int, start: Values | int, extent: Values | int) -> AbstractTile:
        """Slice the tensor along a dimension: ``extent`` entries from ``start``."""
        at = self._dim(dim)
        offset = self.offset + constant(start) * self.strides[at]
        return replace(self, offset=offset, extents=_put(self.extents, at, constant(extent)))

    def stepped(self, dim: int, step: int) -> AbstractTile:
        """Return every ``step``-th entry along a dimension."""
        at, by = self._dim(dim), CHECK.integer(step, "step", 1)
        extent = (self.extents[at] + (by - 1)).quotient(by)
        return replace(
            self, extents=_put(self.extents, at, extent), strides=_put(self.strides, at, self.strides[at] * by)
        )

    def permuted(self, order: Sequence[int]) -> AbstractTile:
        """Permute the dimensions of the tensor and the shared tile."""
        if sorted(order) != list(range(self.rank)):
            raise CHECK.malformed("order", f"must be a permutation of 0..{self.rank - 1}", order)
        extents, strides = (tuple([part[dim] for dim in order]) for part in (self.extents, self.strides))
        return replace(self, extents=extents, strides=strides, shared=tuple([self.shared[dim] for dim in order]))

    def padded(self, dim: int, elements: Values | int) -> AbstractTile:
        """Increase the tensor's stride along a dimension."""
        at = self._dim(dim)
        return replace(self, strides=_put(self.strides, at, self.strides[at] + constant(elements)))

    def shifted(self, elements: Values | int) -> AbstractTile:
        """Move the tensor's first element."""
        return replace(self, offset=self.offset + constant(elements))

    # operations on the tile

    def stored(self, dim: int, digits: Sequence[tuple[Values | int, Values | int]]) -> AbstractTile:
        """Replace the shared-memory digits of a dimension."""
        at = self._dim(dim)
        made = tuple([(constant(extent), constant(stride)) for extent, stride in digits])
        return replace(self, shared=_put(self.shared, at, made))

    def spread(self, dim: int, digit: int, elements: Values | int) -> AbstractTile:
        """Increase the shared-memory stride of one digit."""
        at = self._dim(dim)
        place = CHECK.integer(digit, "digit", 0, len(self.shared[at]))
        extent, stride = self.shared[at][place]
        return replace(
            self, shared=_put(self.shared, at, _put(self.shared[at], place, (extent, stride + constant(elements))))
        )

    def join(self, other: AbstractTile) -> AbstractTile:
        """Return the join of two tiles with the same dimensions, digits and element size."""
        if self._form() != other._form():
            raise CHECK.malformed("other", "must have the same element size, dimensions and digits", other._form())
        return self._with(Values.join, other)

    def _form(self) -> tuple[int, tuple[int, ...]]:
        return self.size, tuple([len(digits) for digits in self.shared])

    def _values(self) -> list[Values]:
        flat = [value for digits in self.shared for digit in digits for value in digit]
        return [self.offset, self.base_align, *self.extents, *self.strides, *flat]

    def _with(self, merge: Callable[[Values, Values], Values], other: AbstractTile) -> AbstractTile:
        merged = iter([merge(a, b) for a, b in zip(self._values(), other._values(), strict=True)])
        offset, align = next(merged), next(merged)
        extents, strides = (tuple([next(merged) for _ in range(self.rank)]) for _ in range(2))
        shared = tuple([tuple([(next(merged), next(merged)) for _ in digits]) for digits in self.shared])
        return AbstractTile(self.size, offset, extents, strides, shared, align)

    def _dim(self, dim: int) -> int:
        return CHECK.integer(dim, "dim", 0, self.rank)


def _digits(modes: Flat) -> tuple[Digit, ...]:
    return tuple([(constant(extent), constant(stride)) for extent, stride in modes])


def _put(items: tuple, place: int, item: object) -> tuple:  # type: ignore[type-arg]
    return (*items[:place], item, *items[place + 1 :])

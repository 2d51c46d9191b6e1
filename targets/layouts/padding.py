"""Shared-memory layouts with padding elements between runs of elements.

Notation: as in ``shared``; an address counts elements, padding included.

References: Triton 3.9.0 (``PaddedSharedLayout``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from layoutalg.f2 import LinearLayout, kernel_of
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic, RepresentabilityError
from layoutalg.ground.layout import Written
from layoutalg.targets.layouts.shared import SHARED_AXES
from layoutalg.targets.layouts.tile import (
    Tile,
    cga_bases,
    extents,
    integer,
    malformed,
    permutation,
    power,
    powers,
    shape_per_cta,
    vectors,
)

if TYPE_CHECKING:
    from layoutalg.piecewise import PiecewiseLayout

PADDED_SOURCE = "Triton 3.9.0 PaddedSharedLayout"
LIST_BITS = 27
"""Maximum number of offset bits for which ``addresses`` lists everything."""


@dataclass(frozen=True, slots=True)
class PaddedShared(Written):
    """A shared layout with padding inserted at fixed intervals.

    Mathematically: the element at ``offset`` o of ``linear`` has address o + sum over pairs (i, p) of p (o div i), in
    elements: an injection that is affine over Z in the bits of o, and linear over F2 only if no carry can occur.

    Args:
        linear: (offset, block) -> tensor coordinates; surjective, and injective in each block.
        pairs: (interval, padding) in elements, both powers of two, intervals distinct.

    Example:
        >>> padded = padded_shared((8,), [(2, 1), (4, 2)], order=(0,))
        >>> padded.addresses().tolist()
        [0, 1, 3, 4, 8, 9, 11, 12]

    Source: Triton 3.9.0 ``PaddedSharedLayout``.
    """

    linear: LinearLayout
    pairs: tuple[tuple[int, int], ...]
    title = "shared memory with padding"

    def __post_init__(self) -> None:
        if not isinstance(self.linear, LinearLayout) or tuple(self.linear.in_dims) != ("offset", "block"):
            raise malformed("linear", "must be a LinearLayout of offset and block", self.linear)
        one_block = LinearLayout.from_bases({"offset": self.linear.bases["offset"]}, self.linear.out_dims)
        if not self.linear.is_surjective or not one_block.is_injective:
            raise AdmissibilityError(
                Diagnostic(
                    code="LA706",
                    what="the linear part of a padded layout must be surjective, and injective in each block",
                    where=(str(self.linear),),
                    because=f"{one_block.in_bits} offset bits have rank {one_block.rank}, all bits together "
                    f"{self.linear.rank}; the tensor has {self.linear.out_bits} bits",
                    witness={"kernel": kernel_of(one_block).points},
                    source=PADDED_SOURCE,
                )
            )
        if not isinstance(self.pairs, tuple) or any(
            not isinstance(pair, tuple) or len(pair) != 2 for pair in self.pairs
        ):
            raise malformed("pairs", "must be a tuple of (interval, padding) tuples", self.pairs)
        for index, (interval, padding) in enumerate(self.pairs):
            power(interval, f"pairs[{index}][0]")
            power(padding, f"pairs[{index}][1]")
        intervals = [interval for interval, _ in self.pairs]
        if len(set(intervals)) != len(intervals):
            raise malformed("pairs", "must have distinct intervals", intervals)

    @property
    def weights(self) -> tuple[int, ...]:
        """The address increment of each offset bit."""
        bits = dict(self.linear.in_axes)["offset"]
        return tuple(
            (1 << bit) + sum(padding * ((1 << bit) // interval) for interval, padding in self.pairs)
            for bit in range(bits)
        )

    @property
    def cosize(self) -> int:
        """One more than the largest address of an element, in elements."""
        return 1 + sum(self.weights)

    def address(self, offset: int) -> int:
        """Return the address of the element at ``offset``, in elements."""
        position = integer(offset, "offset")
        if position >= self.linear.in_dims["offset"]:
            raise malformed("offset", f"must be below {self.linear.in_dims['offset']}", position)
        return position + sum(padding * (position // interval) for interval, padding in self.pairs)

    def addresses(self) -> npt.NDArray[np.int64]:
        """Return the address of every offset, int64."""
        bits = dict(self.linear.in_axes)["offset"]
        if bits > LIST_BITS or self.cosize >> 63:
            raise BudgetError(
                Diagnostic(
                    code="LA708",
                    what="the buffer is too large to list its addresses",
                    where=("addresses",),
                    because=f"{bits} offset bits reach address {self.cosize - 1}; at most {LIST_BITS} bits and 63-bit "
                    "addresses can be listed, address() has no limit",
                )
            )
        offsets = np.arange(self.linear.in_dims["offset"], dtype=np.int64)
        reached = [(interval, padding) for interval, padding in self.pairs if interval < len(offsets)]
        return offsets + sum((padding * (offsets // interval) for interval, padding in reached), start=np.int64(0))

    def to_piecewise(self) -> PiecewiseLayout:
        """Return the address as a piecewise layout of the offset: ``[offset] -> [address]``.

        Example:
            >>> padded_shared((8,), [(4, 1)], order=(0,)).to_piecewise().table().tolist()
            [0, 1, 2, 3, 5, 6, 7, 8]
        """
        from layoutalg.piecewise import PiecewiseLayout

        extent = self.linear.in_dims["offset"]
        terms = "".join(f" + {padding}*floor(offset/{interval})" for interval, padding in self.pairs)
        return PiecewiseLayout(f"{{ [offset] -> [address = offset{terms}] : 0 <= offset < {extent} }}")

    def to_linear(self) -> LinearLayout:
        """Return (offset, block) -> (address, block) over F2 if the padding never carries.

        Mathematically: the address is a sum of one weight per offset bit, so it is linear over F2 iff no two weights
        share a bit: if w(a) and w(b) do, then w(a) + w(b) differs from w(a) xor w(b).

        Example:
            >>> str(padded_shared((16,), [(4, 4)], order=(0,)).to_linear())
            'F2[offset=(1,0)(2,0)(8,0)(16,0), block= -> address:32, block:1]'
        """
        weights = self.weights
        for high in range(len(weights)):
            for low in range(high):
                if weights[low] & weights[high]:
                    x, y = 1 << low, 1 << high
                    raise RepresentabilityError(
                        Diagnostic(
                            code="LA705",
                            what="this padded layout is not linear over F2",
                            where=(str(self),),
                            because=(
                                f"offsets {x} and {y} have addresses {weights[low]} and {weights[high]}, {x ^ y} has "
                                f"{weights[low] + weights[high]}, not their xor {weights[low] ^ weights[high]}; "
                                "to_piecewise() is exact"
                            ),
                            witness={"x": x, "y": y, "sum": weights[low] + weights[high]},
                            source=PADDED_SOURCE,
                        )
                    )
        blocks = self.linear.in_dims["block"]
        steps = tuple((0, 1 << bit) for bit in range(blocks.bit_length() - 1))
        size = 1 << max((weight.bit_length() for weight in weights), default=0)
        return LinearLayout.from_bases(
            {"offset": tuple((weight, 0) for weight in weights), "block": steps}, (("address", size), ("block", blocks))
        )

    def __str__(self) -> str:
        pairs = ", ".join(f"{interval}:+{padding}" for interval, padding in self.pairs)
        if self.linear.constant:  # Triton's attribute cannot express a constant part
            return f"padded[{pairs}] of {self.linear}"
        bases = [f"{axis} = {[list(image) for image in images]}" for axis, images in self.linear.bases.items()]
        shape = list(self.linear.out_dims.values())
        return f"#ttg.padded_shared<[{pairs}] {{{', '.join(bases)}, shape = {shape}}}>"


def padded_shared(
    shape: Sequence[int],
    pairs: Sequence[Sequence[int]],
    order: Sequence[int] | None = None,
    offset_bases: Sequence[Sequence[int]] | None = None,
    cga: Sequence[Sequence[int]] = (),
) -> PaddedShared:
    """Return a padded shared layout over an identity or a given linear arrangement.

    Args:
        shape: Tensor shape, powers of two.
        pairs: (interval, padding) in elements, powers of two.
        order: Dimensions, fastest first, for the plain arrangement; None for the last dimension first.
        offset_bases: Tensor coordinate of each offset bit, in place of ``order``. (Triton 3.9.0 accepts only bits that
            step along one dimension.)
        cga: Cluster bases in units of one block's part.

    Example:
        >>> padded_shared((4, 4), [(4, 1)]).address(5)
        6

    Source: Triton 3.9.0 ``PaddedSharedLayout``.
    """
    sizes = powers(shape, "shape")
    rank = len(sizes)
    bases = cga_bases(cga, rank)
    part = shape_per_cta(sizes, bases)
    split = extents(bases, rank)
    if any(blocks > size for blocks, size in zip(split, sizes, strict=True)):
        raise AdmissibilityError(
            Diagnostic(
                code="LA706",
                what="the cluster has more blocks than the tensor has elements",
                where=(f"shape={sizes}", f"cga={bases}"),
                because=f"the blocks divide the tensor by {split}",
                witness={"split": split},
                source=PADDED_SOURCE,
            )
        )
    if order is not None and offset_bases is not None:
        raise malformed("offset_bases", "must be None if order is given", offset_bases)
    if offset_bases is None:
        fastest = tuple(range(rank - 1, -1, -1)) if order is None else permutation(order, "order", rank)
        linear = Tile.start(fastest, SHARED_AXES).grow_all("offset", part, fastest).fit(sizes, bases)
    else:
        images = vectors(offset_bases, "offset_bases", rank)
        for index, image in enumerate(images):
            if any(value >= size for value, size in zip(image, part, strict=True)):
                raise malformed(f"offset_bases[{index}]", f"must stay below the block's part {part}", image)
        covered = tuple(size.bit_length() - 1 for size in part)
        linear = Tile(tuple(range(rank)), covered, (("offset", images),)).fit(sizes, bases)
    if isinstance(pairs, np.ndarray):
        pairs = pairs.tolist()
    if not isinstance(pairs, (tuple, list)):
        raise malformed("pairs", "must be a sequence of (interval, padding) pairs", pairs)
    found: list[tuple[int, int]] = []
    for index, pair in enumerate(pairs):
        checked = powers(pair, f"pairs[{index}]")
        if len(checked) != 2:
            raise malformed(f"pairs[{index}]", "must be an (interval, padding) pair", pair)
        found.append((checked[0], checked[1]))
    return PaddedShared(linear, tuple(found))

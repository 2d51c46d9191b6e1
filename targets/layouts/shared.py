"""Shared-memory layouts: swizzled by phases, NVIDIA's 32/64/128-byte swizzles, and padded.

Main definitions: ``swizzled_shared``, ``nvmma_shared``, ``padded_shared``, ``PaddedShared``.

Notation: a layout maps ``offset`` (element offset inside a block's buffer) and ``block`` to tensor coordinates; its
inverse places a coordinate.

References: PTX ISA 9.1 section 5.5.7 (swizzle modes); Triton 3.9.0 (``SwizzledSharedLayout``, ``NVMMASharedLayout``,
``PaddedSharedLayout``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layoutalg.affine import PiecewiseLayout
from layoutalg.errors import AdmissibilityError, Diagnostic, RepresentabilityError
from layoutalg.f2 import LinearLayout
from layoutalg.targets.layouts.tile import (
    Tile,
    Vector,
    cga_bases,
    flag,
    integer,
    malformed,
    permutation,
    power,
    powers,
    shape_per_cta,
    vectors,
)

SWIZZLE_SOURCE = "PTX ISA 9.1 section 5.5.7 (tensor swizzling modes); Triton 3.9.0 NVMMASharedLayout"
PADDED_SOURCE = "Triton 3.9.0 PaddedSharedLayout"
TMA_BOX = 256
"""Largest extent of one TMA box; longer outer dimensions take several boxes, one after the other."""
SHARED_AXES = ("offset",)


def swizzled_shared(
    shape: Sequence[int],
    vec: int,
    per_phase: int,
    max_phase: int,
    order: Sequence[int],
    cga: Sequence[Sequence[int]] = (),
) -> LinearLayout:
    """Return the shared layout whose rows are permuted in vectors by an XOR with the row's phase.

    Mathematically: with c = ``order[0]`` of extent C and r = ``order[1]``, offset x + C y holds column
    x xor (vec ((y div per_phase) mod max_phase) mod C) of row y; the other dimensions follow in ``order``.

    Args:
        shape: Tensor shape, powers of two. A vector is not swizzled.
        vec: Elements moved together.
        per_phase: Rows that share a phase.
        max_phase: Number of phases.
        order: Dimensions, fastest first.
        cga: Cluster bases in units of one block's part.

    Raises:
        MalformedError: LA700, naming the argument, the rule and the value.

    Example:
        >>> str(swizzled_shared((4, 4), 1, 1, 4, (1, 0)))
        'F2[offset=(0,1)(0,2)(1,1)(2,2), block= -> dim0:4, dim1:4]'

    Source: Triton 3.9.0 ``SwizzledSharedLayout``.
    """
    sizes = powers(shape, "shape")
    rank = len(sizes)
    fastest = permutation(order, "order", rank)
    vector, rows, phases = power(vec, "vec"), power(per_phase, "per_phase"), power(max_phase, "max_phase")
    bases = cga_bases(cga, rank)
    part = shape_per_cta(sizes, bases)
    column = fastest[0]
    images = list(_steps(column, part[column], rank))
    for position, dim in enumerate(fastest[1:]):
        for image in _steps(dim, part[dim], rank):
            if position == 0:
                shift = vector * (image[dim] // rows % phases) % part[column]
                image = tuple(shift if index == column else value for index, value in enumerate(image))
            images.append(image)
    bits = tuple(size.bit_length() - 1 for size in part)
    return Tile(fastest, bits, (("offset", tuple(images)),)).fit(sizes, bases)


def nvmma_shared(
    shape: Sequence[int],
    swizzle_bytes: int,
    element_bits: int,
    transposed: bool = False,
    fp4_padded: bool = False,
    cga: Sequence[Sequence[int]] = (),
) -> LinearLayout:
    """Return the shared layout that TMA writes and wgmma or tcgen05 read: 8-row cores with a 0/32/64/128-byte swizzle.

    Mathematically: with s swizzle bytes, rows of s bytes are stacked; in row y, 16-byte chunk number x holds chunk
    x xor ((y mod 8) div (128 / s)). All dimensions but the contiguous one form the rows, the last of them fastest, in
    boxes of at most 256; then the remaining columns, boxes first along dim0. Without swizzle, the identity on boxes of
    256.

    Args:
        shape: Tensor shape, powers of two.
        swizzle_bytes: 0, 32, 64 or 128.
        element_bits: 8, 16, 32 or 64.
        transposed: Whether dim0 is contiguous instead of dim1; rank 2 only.
        fp4_padded: Pairs of 4-bit elements, each 8 bytes followed by 8 bytes of padding (128-byte swizzle, 8-bit
            elements); the padding offsets are copies of the data before them.
        cga: Cluster bases in units of one block's part.

    Raises:
        MalformedError: LA700 a bad argument, LA701 no such swizzle or element.
        AdmissibilityError: LA706, a block's part holds no whole core.

    Example:
        >>> str(nvmma_shared((8, 16), 32, 16))
        'F2[offset=(0,1)(0,2)(0,4)(0,8)(1,0)(2,0)(4,8), block= -> dim0:8, dim1:16]'

    Source: PTX ISA 9.1 section 5.5.7; Triton 3.9.0 ``NVMMASharedLayout``.
    """
    sizes = powers(shape, "shape")
    rank = len(sizes)
    swizzle, bits = integer(swizzle_bytes, "swizzle_bytes"), power(element_bits, "element_bits")
    if swizzle not in (0, 32, 64, 128):
        raise malformed("swizzle_bytes", "must be 0, 32, 64 or 128", swizzle, "LA701", SWIZZLE_SOURCE)
    if bits not in (8, 16, 32, 64):
        raise malformed("element_bits", "must be 8, 16, 32 or 64", bits, "LA701", SWIZZLE_SOURCE)
    padded = flag(fp4_padded, "fp4_padded")
    if padded and (swizzle, bits) != (128, 8):
        raise malformed(
            "fp4_padded", "needs 128 swizzle bytes and 8 element bits", (swizzle, bits), "LA701", SWIZZLE_SOURCE
        )
    turned = flag(transposed, "transposed")
    if turned and rank != 2:
        # beyond two dimensions compilers disagree on which outer dimension carries the swizzle phase
        raise malformed(
            "transposed", f"must be False for a tensor of rank {rank}: only rank 2 has one reading", True, "LA701"
        )
    inner = 0 if turned else rank - 1
    outer = tuple(dim for dim in range(rank - 1, -1, -1) if dim != inner)
    bases = cga_bases(cga, rank)
    part = shape_per_cta(sizes, bases)
    box = [min(size, TMA_BOX) for size in part]
    if swizzle == 0:
        tile = Tile.start((inner, *outer), SHARED_AXES)
        return tile.grow_all("offset", box, (inner, *outer)).fit(sizes, bases)
    columns = 8 * swizzle // bits // (2 if padded else 1)
    stacked = 1
    for dim in outer:
        stacked *= box[dim]
    if stacked < 8 or part[inner] < columns:
        raise AdmissibilityError(
            Diagnostic(
                code="LA706",
                what="the tensor holds no whole swizzle core",
                where=(f"nvmma_shared({sizes}, {swizzle}, {bits})",),
                because=f"a core is 8 rows of {columns} elements; a block's part has {stacked} rows of {part[inner]}",
                witness={"rows": stacked, "columns": part[inner]},
                source=SWIZZLE_SOURCE,
            )
        )
    chunk, per_phase = 128 // bits, 128 // swizzle
    images = [_unit(rank, inner, _packed(1 << bit, padded)) for bit in range((8 * swizzle // bits).bit_length() - 1)]
    row = 1
    for dim in outer:
        for image in _steps(dim, box[dim], rank):
            shift = _packed(chunk * (row // per_phase), padded) if row < 8 else 0
            images.append(tuple(shift if index == inner else value for index, value in enumerate(image)))
            row *= 2
    box[inner] = columns
    covered = tuple(size.bit_length() - 1 for size in box)
    return Tile(tuple(range(rank)), covered, (("offset", tuple(images)),)).fit(sizes, bases)


@dataclass(frozen=True, slots=True)
class PaddedShared:
    """A shared layout with padding elements after every so many elements.

    Mathematically: the element at ``offset`` o of ``linear`` lies at address o + sum over pairs (i, p) of p (o div i),
    all in
    elements: an injection that is affine over Z on the bits of o, and linear over F2 only where no carry can occur.

    Args:
        linear: (offset, block) -> tensor coordinates, invertible.
        pairs: (interval, padding) in elements, both powers of two, intervals distinct.

    Example:
        >>> padded = padded_shared((8,), [(2, 1), (4, 2)], order=(0,))
        >>> padded.addresses().tolist()
        [0, 1, 3, 4, 8, 9, 11, 12]

    Source: Triton 3.9.0 ``PaddedSharedLayout``.
    """

    linear: LinearLayout
    pairs: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        if not isinstance(self.linear, LinearLayout) or tuple(self.linear.in_dims) != ("offset", "block"):
            raise malformed("linear", "must be a LinearLayout of offset and block", self.linear)
        if not self.linear.is_invertible:
            raise AdmissibilityError(
                Diagnostic(
                    code="LA706",
                    what="the linear part of a padded layout must be invertible",
                    where=(str(self.linear),),
                    because=f"its rank is {self.linear.rank}, the tensor has {self.linear.out_bits} bits",
                    witness={"kernel": self.linear.kernel()},
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
        """What each bit of the offset adds to the address."""
        bits = dict(self.linear.inputs)["offset"]
        return tuple(
            (1 << bit) + sum(padding * ((1 << bit) // interval) for interval, padding in self.pairs)
            for bit in range(bits)
        )

    @property
    def cosize(self) -> int:
        """One more than the largest address of an element, in elements."""
        return 1 + sum(self.weights)

    def address(self, offset: int) -> int:
        """Return the address of the element at ``offset``, in elements.

        Raises:
            MalformedError: LA700, not an offset of the buffer.
        """
        position = integer(offset, "offset")
        if position >= self.linear.in_dims["offset"]:
            raise malformed("offset", f"must be below {self.linear.in_dims['offset']}", position)
        return position + sum(padding * (position // interval) for interval, padding in self.pairs)

    def addresses(self) -> npt.NDArray[np.int64]:
        """Return the address of every offset, int64."""
        offsets = np.arange(self.linear.in_dims["offset"], dtype=np.int64)
        return offsets + sum((padding * (offsets // interval) for interval, padding in self.pairs), start=np.int64(0))

    def to_piecewise(self) -> PiecewiseLayout:
        """Return the address as a piecewise layout of the offset: ``[offset] -> [address]``.

        Example:
            >>> padded_shared((8,), [(4, 1)], order=(0,)).to_piecewise().table().tolist()
            [0, 1, 2, 3, 5, 6, 7, 8]
        """
        extent = self.linear.in_dims["offset"]
        terms = "".join(f" + {padding}*floor(offset/{interval})" for interval, padding in self.pairs)
        return PiecewiseLayout(f"{{ [offset] -> [address = offset{terms}] : 0 <= offset < {extent} }}")

    def to_linear(self) -> LinearLayout:
        """Return (offset, block) -> (address, block) over F2 where the padding never carries.

        Mathematically: the address is a sum of one weight per offset bit, so it is linear over F2 iff no two weights
            share a
        bit: if bit patterns w(a) and w(b) do, then w(a) + w(b) differs from w(a) xor w(b).

        Raises:
            RepresentabilityError: LA705, with two offsets that show it.

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
                                f"offsets {x} and {y} lie at {weights[low]} and {weights[high]}, offset {x ^ y} at "
                                f"{weights[low] + weights[high]}, not at their xor {weights[low] ^ weights[high]}; "
                                "to_piecewise() holds it exactly"
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
        return f"padded[{pairs}] of {self.linear}"


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
        offset_bases: Tensor coordinate of each offset bit, in place of ``order``.
        cga: Cluster bases in units of one block's part.

    Raises:
        MalformedError: LA700, naming the argument, the rule and the value.
        AdmissibilityError: LA706, the arrangement is not invertible.

    Example:
        >>> padded_shared((4, 4), [(4, 1)]).address(5)
        6

    Source: Triton 3.9.0 ``PaddedSharedLayout``.
    """
    sizes = powers(shape, "shape")
    rank = len(sizes)
    bases = cga_bases(cga, rank)
    part = shape_per_cta(sizes, bases)
    if order is not None and offset_bases is not None:
        raise malformed("offset_bases", "must be None where order is given", offset_bases)
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


def _steps(dim: int, size: int, rank: int) -> tuple[Vector, ...]:
    return tuple(_unit(rank, dim, 1 << bit) for bit in range(size.bit_length() - 1))


def _unit(rank: int, dim: int, value: int) -> Vector:
    return tuple(value if index == dim else 0 for index in range(rank))


def _packed(column: int, padded: bool) -> int:
    """Return the data column of a padded column: of 16 bytes the first 8 are data, the rest copies."""
    return column // 16 * 8 + column % 8 if padded else column

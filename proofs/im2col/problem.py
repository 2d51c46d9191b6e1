"""Im2col problems and plans: rows of a convolution's matrix, loaded by issues of one map.

The matrix has a row for every output element (n, (od, (oh,)) ow), W fastest, and a block of C columns for every filter
tap. Row m, tap k, channel c is the input element (n, .., o * stride - padding + k * dilation, .., c), or 0 outside the
input. Spatial tuples are outermost first, like the tensor's shape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from layoutalg.ground.check import Checker
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Checked, Record
from layoutalg.proofs.tensor import Tensor
from layoutalg.targets.nvidia.im2col import Im2colMap, encode, row_bytes, row_pitch_bytes

CHECK = Checker("LA859", "invalid convolution or im2col plan")


@dataclass(frozen=True, slots=True)
class ConvolutionProblem(Checked, code="LA859"):
    """A convolution whose input is loaded as tiles of its im2col matrix.

    Args:
        tensor: The input (N, W, C), (N, H, W, C) or (N, D, H, W, C); any strides, channels contiguous.
        filter: Taps along each spatial dimension.
        pixels: Rows of the tile.
        channels: Channels of the tile, within one tap.
        stride: Filter stride; empty for all 1.
        dilation: Tap distance; empty for all 1.
        padding: Zeros before the input; empty for none.
        padding_after: Zeros after it; empty for ``padding``.
        swizzle: Swizzle of the tile in shared memory; None for the widest that a row fills.
        target: Architecture.

    Example:
        >>> problem = ConvolutionProblem(Tensor((2, 8, 8, 64)), (3, 3), 64, 64, padding=(1, 1))
        >>> problem.outputs, problem.rows
        ((8, 8), 128)
    """

    tensor: Tensor
    filter: tuple[int, ...]
    pixels: int
    channels: int
    stride: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    padding_after: tuple[int, ...] = ()
    swizzle: str | None = None
    target: str = "sm_90a"

    def _validate(self) -> None:
        put = object.__setattr__
        spatial = len(self.tensor.shape) - 2
        if not 1 <= spatial <= 3 or not all(isinstance(extent, int) for extent in self.tensor.shape):
            raise CHECK.malformed("tensor", "must be (N, W, C), (N, H, W, C) or (N, D, H, W, C)", self.tensor.shape)
        for name, least, usual in (
            ("filter", 1, ()), ("stride", 1, (1,)), ("dilation", 1, (1,)), ("padding", 0, (0,)),
            ("padding_after", 0, ()),
        ):  # fmt: skip
            values = getattr(self, name) or (self.padding if name == "padding_after" else usual * spatial)
            if len(values) != spatial or min(values) < least:
                raise CHECK.malformed(name, f"must be {spatial} integers >= {least}", values)
            put(self, name, tuple(values))
        if self.pixels < 1 or self.channels < 1:
            raise CHECK.malformed("pixels, channels", "must be at least 1", (self.pixels, self.channels))
        if min(self.outputs) < 1:
            raise CHECK.malformed("filter", "must fit the padded input", self.filter)

    @property
    def outputs(self) -> tuple[int, ...]:
        """Extents of the output."""
        return tuple(
            (extent + before + after - gap * (taps - 1) - 1) // step + 1
            for extent, before, after, gap, taps, step in zip(
                self.tensor.shape[1:-1], self.padding, self.padding_after, self.dilation, self.filter, self.stride,
                strict=True,
            )
        )  # fmt: skip

    @property
    def rows(self) -> int:
        """Rows of the whole matrix."""
        return int(self.tensor.shape[0]) * math.prod(self.outputs)


@dataclass(frozen=True, slots=True)
class ColumnIssue(Checked, code="LA859"):
    """One instruction of a plan, relative to the tile's first row and channel.

    Args:
        row: Row offset in the tile.
        channel: Channel offset in the tile.
        smem_offset_bytes: Offset of its column in the tile.
    """

    row: int
    channel: int
    smem_offset_bytes: int


@dataclass(frozen=True, slots=True)
class ConvolutionPlan(
    Record,
    Shown,
    code="LA859",
    schema="layoutalg/im2col-plan/1",
    json="arch=problem.target hex=raw shape=problem.tensor.shape filter=problem.filter stride=problem.stride "
    "dilation=problem.dilation padding=problem.padding padding_after=problem.padding_after "
    "lower_corner=tensor_map.lower_corner upper_corner=tensor_map.upper_corner swizzle=tensor_map.swizzle "
    "channels_per_pixel=tensor_map.channels_per_pixel pixels_per_column=tensor_map.pixels_per_column "
    "issues expect_tx_bytes smem_bytes",
):
    """A map and the issues that load a tile of an im2col matrix, for every first row, tap and channel.

    Args:
        problem: The problem.
        tensor_map: The map, with base address 0.
        issues: The instructions, in order.
    """

    problem: ConvolutionProblem
    tensor_map: Im2colMap
    issues: tuple[ColumnIssue, ...]

    @property
    def raw(self) -> bytes:
        """The 128 bytes of the map."""
        return encode(self.tensor_map, self.problem.target)

    @property
    def expect_tx_bytes(self) -> int:
        """Bytes that the tile's barrier must expect."""
        return len(self.issues) * row_bytes(self.tensor_map) * self.tensor_map.pixels_per_column

    @property
    def smem_bytes(self) -> int:
        """Shared memory of the tile, in bytes."""
        return len(self.issues) * row_pitch_bytes(self.tensor_map) * self.tensor_map.pixels_per_column

    def start(self, issue: ColumnIssue, row: int, channel: int) -> tuple[int, ...]:
        """Return the coordinates (C, W, (H, (D,)) N) of an issue for the tile at a row and channel."""
        left = CHECK.integer(row, "row", 0, self.problem.rows) + issue.row
        places = []
        for extent, step, before in zip(
            reversed(self.problem.outputs), reversed(self.problem.stride), reversed(self.problem.padding), strict=True
        ):
            left, place = divmod(left, extent)
            places.append(place * step - before)
        return (CHECK.integer(channel, "channel", 0, 1 << 31) + issue.channel, *places, left)

    def offsets(self, tap: Sequence[int]) -> tuple[int, ...]:
        """Return the offsets (W, (H, (D))) of a tap given outermost first."""
        if len(tap) != len(self.problem.filter):
            raise CHECK.malformed("tap", f"must be {len(self.problem.filter)} integers", tuple(tap))
        taken = [
            CHECK.integer(at, "tap", 0, taps) * gap
            for at, taps, gap in zip(tap, self.problem.filter, self.problem.dilation, strict=True)
        ]
        return tuple(reversed(taken))

    def __str__(self) -> str:
        tm = self.tensor_map
        return (
            f"im2col map    {tm.dtype} dims {tm.dims}, corners {tm.lower_corner} to {tm.upper_corner}, steps "
            f"{tm.element_strides}\n"
            f"  column      {tm.pixels_per_column} pixels x {tm.channels_per_pixel} channels, swizzle {tm.swizzle}\n"
            f"  issues      {len(self.issues)}, {self.expect_tx_bytes} bytes\n"
            f"  hex         {self.raw[:64].hex()}"
        )

    def to_json(self) -> dict[str, object]:
        """Return the plan as JSON-ready data."""
        issues = [[issue.row, issue.channel, issue.smem_offset_bytes] for issue in self.issues]
        return Record.to_json(self) | {"issues": issues}

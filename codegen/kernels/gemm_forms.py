"""Forms of matrix products: tiles, warpgroups, clusters; and which one a shape should take.

The times are those of an NVIDIA H200 (132 multiprocessors, driver 580.159.04, 2026-11-28), bf16: ``benchmarks/device.py
products`` times every form on shapes from 300 to 8192; the numbers are its least error in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from layoutalg.ground.check import Checker
from layoutalg.ground.record import Checked
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE

CHECK = Checker("LA945", "cannot generate this kernel")
GROUP_ROWS: Final = 64
"""Rows of a warpgroup multiply (PTX ISA 9.1, section 9.7.15.2)."""
WARPS: Final = 4
UNITS: Final = 132
"""Multiprocessors of the chip on which the times were found."""
LINE_BYTES: Final = 128
"""Rows that begin at multiples of this touch half as many lines of the L2 cache."""
K_BYTES: Final = 32
"""Bytes of K of one ``wgmma``, of every type (PTX ISA 9.1, section 9.7.15.2)."""
MOST_DEPTH: Final = 512
SPANS: Final = {name: SWIZZLE_TABLE[name].span_bytes for name in ("128B", "64B", "32B")}


@dataclass(frozen=True, slots=True)
class Form(Checked, code="LA945"):
    """How a product is computed.

    Args:
        rows: Rows of a tile, a multiple of 64 times ``consumers``.
        columns: Columns of a tile, a multiple of 16 up to 256.
        consumers: Warpgroups that multiply, 1 to 3.
        leaving: Columns of a result that leave at once.
        cluster: Blocks that share the columns of a tile, a power of two: each loads a part of B for all.
        behind: Multiplies in flight when the next are started, 0 or 1.
        stages: Slots of the ring; 0: what shared memory holds, at most 8.
        together: Rows of tiles that are taken together, for the L2 cache.
        depth: Bytes of K of a step, a multiple of 32; 0: the span of the swizzle.
        swizzle: Of tiles of A and B: 128B, 64B, 32B. A span that divides the rows of a K-major operand leaves no step
            half empty.

    Example:
        >>> Form(128, 256, cluster=2).accumulators, Form(128, 256, swizzle="64B").step_bytes
        (128, 64)
    """

    rows: int
    columns: int
    consumers: int = 2
    leaving: int = 64
    cluster: int = 1
    behind: int = 0
    stages: int = 0
    together: int = 16
    depth: int = 0
    swizzle: str = "128B"

    def _validate(self) -> None:
        CHECK.integer(self.consumers, "consumers", 1, 4)
        step = GROUP_ROWS * self.consumers
        if CHECK.integer(self.rows, "rows", 1) % step:
            raise CHECK.malformed("rows", f"must be a multiple of {step} for {self.consumers} consumers", self.rows)
        if CHECK.integer(self.columns, "columns", 1, 257) % 16:
            raise CHECK.malformed("columns", "must be a multiple of 16 up to 256", self.columns)
        leaving = CHECK.integer(self.leaving, "leaving", 1, 257)
        if self.columns % leaving or leaving % 16 or (leaving > 64 and leaving % 64):
            rule = f"must divide {self.columns}, be a multiple of 16, and of 64 above that"
            raise CHECK.malformed("leaving", rule, leaving)
        if CHECK.integer(self.cluster, "cluster", 1, 9) & (self.cluster - 1) or self.columns % (16 * self.cluster):
            raise CHECK.malformed("cluster", f"must be a power of two that divides {self.columns // 16}", self.cluster)
        CHECK.integer(self.behind, "behind", 0, 2)
        if CHECK.integer(self.stages, "stages", 0, 9) == 1:
            raise CHECK.malformed("stages", "must be 0, or 2 to 8", self.stages)
        CHECK.integer(self.together, "together", 1, 1 << 16)
        CHECK.choice(self.swizzle, "swizzle", SPANS)
        if CHECK.integer(self.depth, "depth", 0, MOST_DEPTH + 1) % K_BYTES:
            raise CHECK.malformed("depth", f"must be a multiple of {K_BYTES} bytes", self.depth)

    @property
    def step_bytes(self) -> int:
        """Bytes of K of a step."""
        return self.depth or SPANS[self.swizzle]

    @property
    def accumulators(self) -> int:
        """Accumulators of a thread."""
        return self.rows // self.consumers * self.columns // (32 * WARPS)

    @property
    def parts(self) -> int:
        """Parts in which a consumer's results leave."""
        return self.rows // GROUP_ROWS // self.consumers * (self.columns // self.leaving)


TIMES: Final[dict[Form, tuple[float, float, float]]] = {
    Form(128, 256, 2, 128): (0.64, 0.875, 1.5),
    Form(128, 256, 2, 128, cluster=2, together=8): (0.645, 0.68, 2.0),
    Form(192, 192, 3, 64): (0.70, 0.865, 2.0),
    Form(192, 192, 3, 64, cluster=2, together=8): (0.755, 0.795, 2.0),
    Form(128, 192, 2, 64): (0.53, 0.715, 1.5),
    Form(128, 192, 2, 64, cluster=2, together=8): (0.525, 0.56, 1.5),
    Form(128, 128, 2, 128, behind=1): (0.38, 0.58, 1.0),
    Form(128, 128, 2, 128, cluster=2, behind=1, together=8): (0.41, 0.445, 1.0),
    Form(64, 256, 1, 128, behind=1): (0.35, 0.705, 1.5),
    Form(64, 256, 1, 128, cluster=2, behind=1, together=8): (0.365, 0.485, 1.5),
    Form(64, 128, 1, 128, behind=1): (0.235, 0.445, 0.5),
    Form(64, 128, 1, 128, cluster=2, behind=1, together=8): (0.255, 0.295, 0.8),
}
"""Microseconds of a step of 128 bytes of K, with rows at multiples of ``LINE_BYTES`` and otherwise, and of a tile."""


def forms(shape: tuple[int, int, int], element_bytes: int, even: bool) -> list[tuple[float, Form]]:
    """Return the forms, best first, with the microseconds that they should take on the chip of ``TIMES``.

    Args:
        shape: (M, N, K).
        element_bytes: Bytes of an element of A and B.
        even: Whether the rows of A and B begin at multiples of ``LINE_BYTES``.

    Example:
        >>> best = forms((4096, 4096, 4096), 2, True)[0][1]
        >>> best.rows, best.columns, best.cluster
        (128, 256, 1)
        >>> forms((1000, 1000, 1000), 2, False)[0][1].rows
        64
    """
    return sorted(_timed(shape, element_bytes, even), key=lambda each: each[0])


def _timed(shape: tuple[int, int, int], element_bytes: int, even: bool) -> Iterator[tuple[float, Form]]:
    m, n, k = shape
    steps = -(-k * element_bytes // LINE_BYTES)
    for form, (aligned, other, tile) in TIMES.items():
        tiles = -(-m // (form.rows * form.cluster)) * -(-n // form.columns)
        turns = -(-tiles // (UNITS // form.cluster))
        yield turns * (steps * (aligned if even else other) + tile), form


def fitted(form: Form, stage_bytes: int, leaving_bytes: int, room: int) -> Form:
    """Return the form with as many stages as shared memory holds, at most 8."""
    if form.stages:
        return form
    return replace(form, stages=max(2, min(8, (room - leaving_bytes) // stage_bytes)))

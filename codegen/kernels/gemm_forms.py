"""Forms of matrix products: tiles, warpgroups, clusters; and which one a shape should take.

The times are those of an NVIDIA H200 (132 multiprocessors, driver 580.159.04, 2026-11-28), bf16: ``benchmarks/device.py
products`` times every form on shapes from 300 to 8192; the numbers are its least error in microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from layoutalg.codegen.pipeline.program import SLOT_ALIGN
from layoutalg.ground.check import Checker
from layoutalg.ground.record import Checked
from layoutalg.proofs.pipeline.resources import WARPGROUP
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap.limits import MAX_SMEM_BYTES

CHECK = Checker("LA945", "cannot generate this kernel")
GROUP_ROWS: Final = 64
"""Rows of a warpgroup multiply (PTX ISA 9.1, section 9.7.15.2)."""
WARPS: Final = WARPGROUP
UNITS: Final = 132
"""Multiprocessors of the chip on which the times were found."""
K_BYTES: Final = 32
"""Bytes of K of one ``wgmma``, of every type (PTX ISA 9.1, section 9.7.15.2)."""
MOST_DEPTH: Final = 512
SPANS: Final = {name: SWIZZLE_TABLE[name].span_bytes for name in ("128B", "64B", "32B")}
SPAN: Final = SPANS["128B"]
BARRIERS_BYTES: Final = 256
"""Room for barriers, 16 bytes a slot, and the word of waits that gave up."""
ROOM: Final = MAX_SMEM_BYTES - SLOT_ALIGN - BARRIERS_BYTES
"""Bytes of shared memory for the ring and results."""


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
        split: Blocks of a cluster that share the K of one tile, a power of two: each multiplies a part of K, then they
            exchange partial sums through shared memory, and each stores a part of the columns. Not with ``cluster``.

    Example:
        >>> Form(128, 256, cluster=2).accumulators, Form(128, 256, swizzle="64B").step_bytes
        (128, 64)
        >>> Form(64, 128, 1, 32, split=4).exchanged
        24576
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
    split: int = 1

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
        if CHECK.integer(self.split, "split", 1, 9) & (self.split - 1) or (self.split > 1 and self.cluster > 1):
            raise CHECK.malformed("split", "must be 1, 2, 4 or 8, and 1 with a cluster", self.split)
        if self.split > 1 and (self.rows != step or self.columns % (self.split * leaving)):
            rule = f"must be 1, or leave {leaving} columns of {self.columns} per block, with 64 rows per consumer"
            raise CHECK.malformed("split", rule, self.split)
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
        return self.rows // GROUP_ROWS // self.consumers * (self.columns // (self.leaving * self.split))

    @property
    def shared_columns(self) -> int:
        """Columns of B that a block loads, for all blocks of a cluster."""
        return self.columns // self.cluster

    @property
    def ctas(self) -> int:
        """Blocks of a cluster."""
        return self.cluster * self.split

    @property
    def piece(self) -> int:
        """Bytes of the partial sums that a consumer sends to one block at once."""
        return GROUP_ROWS * self.leaving * 4

    @property
    def exchanged(self) -> int:
        """Bytes of partial sums that a consumer sends at once, and receives."""
        return (self.split - 1) * self.piece

    @property
    def leaving_bytes(self) -> int:
        """Bytes of shared memory that results need on their way out."""
        return self.consumers * (GROUP_ROWS * self.leaving * 2 + 2 * self.exchanged)


TIMES: Final[dict[Form, tuple[float, float, float]]] = {
    Form(128, 256, 2, 128): (0.702, 0.897, 1.85),
    Form(128, 256, 2, 128, cluster=2, together=8): (0.718, 0.707, 1.78),
    Form(192, 192, 3, 64): (0.774, 0.891, 2.04),
    Form(192, 192, 3, 64, cluster=2, together=8): (0.802, 0.796, 1.81),
    Form(128, 192, 2, 64): (0.537, 0.754, 1.37),
    Form(128, 192, 2, 64, cluster=2, together=8): (0.543, 0.56, 1.39),
    Form(128, 128, 2, 128, behind=1): (0.353, 0.512, 0.932),
    Form(128, 128, 2, 128, cluster=2, behind=1, together=8): (0.367, 0.458, 0.925),
    Form(64, 256, 1, 128, behind=1): (0.357, 0.705, 1.22),
    Form(64, 256, 1, 128, cluster=2, behind=1, together=8): (0.377, 0.484, 1.03),
    Form(64, 128, 1, 128, behind=1): (0.223, 0.482, 0.304),
    Form(64, 128, 1, 128, cluster=2, behind=1, together=8): (0.216, 0.253, 1.73),
    Form(192, 128, 3, 64, behind=1): (0.523, 0.747, 1.24),
    Form(192, 128, 3, 64, cluster=2, behind=1, together=8): (0.536, 0.62, 1.2),
    Form(192, 64, 3, 64, behind=1): (0.396, 0.53, 0.787),
    Form(128, 96, 2, 48, behind=1): (0.261, 0.41, 1.13),
    Form(128, 96, 2, 48, cluster=2, behind=1, together=8): (0.386, 0.421, 1.04),
    Form(128, 64, 2, 64, behind=1): (0.26, 0.463, 0.6),
    Form(64, 192, 1, 64, behind=1): (0.324, 0.553, 1.2),
    Form(64, 64, 1, 64, behind=1): (0.202, 0.348, 0.135),
    Form(64, 32, 1, 32, behind=1): (0.198, 0.259, 0.4),
    Form(128, 128, 2, 64, behind=1, split=2): (0.398, 0.581, 3.57),
    Form(128, 128, 2, 32, behind=1, split=4): (0.30, 0.45, 4.25),
    Form(64, 256, 1, 64, behind=1, split=4): (0.271, 0.705, 8.05),
    Form(64, 128, 1, 64, behind=1, split=2): (0.243, 0.445, 2.38),
    Form(192, 128, 3, 32, behind=1, split=2): (0.594, 0.804, 3.86),
    Form(192, 64, 3, 16, behind=1, split=4): (0.382, 0.58, 3.54),
    Form(64, 192, 1, 48, behind=1, split=4): (0.395, 0.58, 3.64),
    Form(64, 64, 1, 32, behind=1, split=2): (0.258, 0.245, 1.94),
}
"""Microseconds of a step of 128 bytes of K, with rows at multiples of ``LINE_BYTES``, which touch half as many lines of
the L2 cache, and otherwise, and of a tile. Where too few shapes told a tile from a step, the time of the tile is
reasoned; 64 x 192 and 128 x 128 shared by four are set by the one or two shapes on which they are the fastest. Eight
blocks that share K never paid."""
LAUNCH: Final = 1.4
"""Microseconds of a launch beside its steps and tiles, by the same fit."""
CLUSTERS: Final = {1: UNITS, 2: UNITS // 2, 4: 30, 8: 15}
"""Clusters of so many blocks that run at once, as the driver says there (``cuOccupancyMaxActiveClusters``)."""


def stages_of(form: Form) -> int:
    """Return the stages that shared memory holds beside results."""
    return (ROOM - form.leaving_bytes) // ((form.rows + form.columns) * form.step_bytes)


def forms(shape: tuple[int, int, int], element_bytes: int, even: bool) -> list[tuple[float, Form]]:
    """Return the forms, best first, with the microseconds that they should take on the chip of ``TIMES``.

    Where blocks share K, a tile takes the steps of one block and an exchange of partial sums; each has a step.

    Args:
        shape: (M, N, K).
        element_bytes: Bytes of an element of A and B.
        even: Whether the rows of A and B begin at multiples of ``LINE_BYTES``.

    Example:
        >>> best = forms((4096, 4096, 4096), 2, True)[0][1]
        >>> best.rows, best.columns, best.cluster, best.split
        (128, 256, 1, 1)
        >>> forms((1000, 1000, 1000), 2, False)[0][1].rows
        64
        >>> forms((512, 512, 8192), 2, True)[0][1].split
        4
    """
    found = []
    for form, (aligned, other, tile) in TIMES.items():
        turns, steps = work(form, shape, element_bytes)
        if form.split <= -(-shape[2] * element_bytes // form.step_bytes):
            found.append((LAUNCH + turns * (steps * (aligned if even else other) + tile), form))
    return sorted(found, key=lambda each: each[0])


def work(form: Form, shape: tuple[int, int, int], element_bytes: int) -> tuple[int, int]:
    """Return the tiles that the busiest block takes, and its steps in each.

    Example:
        >>> work(Form(64, 128, 1, 32, split=4), (512, 512, 8192), 2)
        (2, 32)
    """
    m, n, k = shape
    tiles = -(-m // (form.rows * form.cluster)) * -(-n // form.columns)
    return -(-tiles // CLUSTERS[form.ctas]), -(-k * element_bytes // (form.step_bytes * form.split))


def fitted(form: Form) -> Form:
    """Return the form with as many stages as shared memory holds, at most 8."""
    return form if form.stages else replace(form, stages=max(2, min(8, stages_of(form))))

"""The space of warpgroup matrix products: tiles, roles, stages, swizzles, and the tier that A is read from."""

from __future__ import annotations

from functools import lru_cache

from layoutalg.ground.refusal import Broken
from layoutalg.proofs.dtypes import element_type
from layoutalg.synth.admission import admissible
from layoutalg.synth.search.roofline import CHECK, Work
from layoutalg.synth.search.space import Choice, Space
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.pipeline_costs import pipeline_costs
from layoutalg.targets.target_model import model_of

TILES: dict[str, tuple[int | str, ...]] = {"rows": (64, 128, 192, 256), "columns": (64, 128, 192, 256)}
SPANS = {name: SWIZZLE_TABLE[name].span_bytes for name in ("NONE", "32B", "64B", "128B")}
ROW_BYTES = 128
"""Bytes of a step in K."""
GROUP = 64
"""Rows of a warpgroup multiply (PTX ISA 9.1, section 9.7.15.2)."""
WARPS = 4
THREADS = 128
OTHER_REGISTERS = 32
"""Registers of a thread that multiplies beside its accumulators."""


def gemm_space(shape: tuple[int, int, int], dtype: str = "bf16", target: str = "sm_90a") -> Space:
    """Return the space of kernels for D = A B^T by ``wgmma``, f32 accumulators, one role that loads.

    Legal is what ``admissible`` admits as ``wgmma.A`` and ``wgmma.B``, and what fits the registers and the shared
    memory of a block.

    Args:
        shape: (M, N, K).
        dtype: Element type of A and B.
        target: Architecture.

    Example:
        >>> best = gemm_space((8192, 8192, 8192)).ranked()[0][0]
        >>> best.choice["rows"] * best.choice["columns"], best.bound
        (24576, 'mma')
    """
    m, n, k = (CHECK.integer(extent, "shape", 1, 2**31) for extent in CHECK.vector(shape, "shape", 3))
    size = element_type(dtype).bits // 8
    limits, costs = model_of(target).limits, pipeline_costs(target)

    def limit(name: str) -> int:
        value = limits[name].value if name in limits else 0
        return value if isinstance(value, int) else 0

    def legal(choice: Choice) -> object:
        rows, columns, roles = choice["rows"], choice["columns"], choice["roles"]
        if rows % (GROUP * roles):
            return Broken("ROLES", "the rows are no multiple of 64 for each role that multiplies")
        in_registers = choice["a_tier"] == "registers"
        accumulators = rows * columns // roles // THREADS
        operand = rows // roles * ROW_BYTES // THREADS // 4 if in_registers else 0
        most = min(limit("registers_per_thread"), limit("registers_per_block") // (THREADS * (roles + 1)))
        if accumulators + operand + OTHER_REGISTERS > most:
            return Broken("REGISTERS", f"accumulators and operands need more than the {most} registers of a thread")
        result = rows * columns * 2
        if choice["stages"] * (rows + columns) * ROW_BYTES + result > limit("shared_bytes_per_block_optin"):
            return Broken("SHARED_BYTES", "ring and result exceed the shared memory of a block")
        operands = ("wgmma.B",) if in_registers else ("wgmma.A", "wgmma.B")
        for consumer in operands:
            extent = rows // roles if consumer == "wgmma.A" else columns
            answer = _admitted(consumer, extent, ROW_BYTES // size, choice["swizzle"], dtype, target)
            if not answer:
                return answer
        return None

    def work(choice: Choice) -> Work:
        rows, columns = choice["rows"], choice["columns"]
        blocks = -(-m // rows) * -(-n // columns)
        steps = -(-k * size // ROW_BYTES)
        loaded = (rows + columns) * ROW_BYTES * steps
        reads = (rows * (choice["a_tier"] == "shared") + columns * choice["roles"]) * ROW_BYTES * steps
        copies = ROW_BYTES // SPANS[choice["swizzle"]] * 2
        kib = (rows + columns) * ROW_BYTES / 1024
        arrives = costs.load(kib, copies)[1] + costs.mma(rows, columns, ROW_BYTES // size, dtype)[1] + costs.crossing
        return Work(
            blocks=blocks,
            dtype=dtype,
            macs=rows * columns * steps * (ROW_BYTES // size),
            shared_bytes=loaded + reads,
            issues=(rows // GROUP * (ROW_BYTES // 32) * WARPS + copies) * steps,
            latency=steps * arrives // choice["stages"],
            l2_bytes=blocks * loaded,
            hbm_bytes=(m * k + n * k) * size + m * n * 2,
        )

    choices = TILES | {"roles": (1, 2, 3), "stages": (2, 3, 4, 6, 8), "swizzle": tuple(SPANS)}
    choices["a_tier"] = ("shared", "registers")
    return Space(f"gemm {m} {n} {k}", choices, legal, work, target, dtype, f"M == {m}, N == {n}, K == {k}")


@lru_cache(maxsize=256)
def _admitted(consumer: str, extent: int, k: int, swizzle: str, dtype: str, target: str) -> object:
    """Return whether an operand's tile of 128-byte rows has descriptors."""
    bits = element_type(dtype).bits
    shift = {8: 0, 16: 1, 32: 2}[bits]
    span = SPANS[swizzle] * 8 // bits
    count = (SPANS[swizzle] // 16).bit_length() - 1
    text = f"({extent},({span},{k // span})):({span},(1,{extent * span}))"
    if count:
        text = f"Sw<{count},{4 - shift},3> o 0 o {text}"
    return admissible(text, consumer, target, dtype)

"""Where the rings of a pipeline are in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from layoutalg.codegen.kernels.answer import fitting
from layoutalg.codegen.pipeline.program import SLOT_ALIGN
from layoutalg.proofs.pipeline.document import Pipeline
from layoutalg.proofs.pipeline.resources import BARRIER_BYTES


@dataclass(frozen=True, slots=True)
class Memory:
    """Where rings are in shared memory."""

    buffers: dict[str, tuple[int, int]]  # name to (first byte, bytes from slot to slot)
    barriers: dict[str, int]  # name to the first byte
    failed: int  # byte of the word that says which wait gave up
    size: int  # bytes in all, with the alignment


def placed(pipeline: Pipeline, target: str) -> Memory:
    """Return where buffers and barriers go: buffers first, in order, then barriers.

    Raises: InfeasibleError: LA946.
    """
    at, buffers, barriers = 0, {}, {}
    for name, buffer in pipeline.buffers:
        if name in pipeline.registers:
            continue
        stride = -(-buffer.bytes // SLOT_ALIGN) * SLOT_ALIGN
        buffers[name] = at, stride
        at += stride * buffer.slots
    for name, barrier in pipeline.barriers:
        barriers[name] = at
        at += BARRIER_BYTES * barrier.slots
    size = fitting(at + BARRIER_BYTES + SLOT_ALIGN, target, f"{len(buffers)} buffers and {len(barriers)} barriers")
    return Memory(buffers, barriers, at, size)

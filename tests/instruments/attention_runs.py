"""Runs of attention kernels on the CPU, for tests that compare them with a judge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from judges.attention_judge import Halves

from layoutalg.codegen import hostsim
from layoutalg.codegen.kernels.attention import AttentionKernel


def placed(shape: Sequence[int], fill: int = 0) -> Halves:
    """An array at a multiple of 128 bytes."""
    raw = np.full(int(np.prod(shape)) + 64, fill, dtype=np.uint16)
    return raw[-raw.ctypes.data % 128 // 2 :][: int(np.prod(shape))].reshape(shape)


def on_the_cpu(
    made: AttentionKernel, given: Sequence[Halves], seed: int = 0, fault: str = "none"
) -> tuple[Halves, np.ndarray]:
    arrays = [placed(each.shape) for each in given]
    for array, values in zip(arrays, given, strict=True):
        array[...] = values
    into, status = placed(given[0].shape, 0x7FFF), np.zeros(made.blocks, dtype=np.int32)
    regions = [(array.ctypes.data, array.nbytes) for array in (*arrays, into, status)]
    arguments = made.arguments(*arrays, into, status)
    found = hostsim.run(made.kernel, arguments, blocks=made.blocks, regions=regions, seed=seed)
    assert hostsim.FAULTS[found].startswith(fault)
    return into, status

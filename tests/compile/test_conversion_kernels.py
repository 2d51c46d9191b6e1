"""Kernels of conversions as machine code: NVIDIA by the run-time compiler, AMD by clang."""

import dataclasses
import re

import numpy as np
import pytest
from instruments.conversion_steps import random_plan

from layoutalg.codegen import hip
from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.conversion import conversion_kernel
from layoutalg.codegen.kernel import KernelSource
from layoutalg.synth import conversion
from layoutalg.targets.registry import lookup

SEEDS = range(2, 6)


def kernel(seed: int, arch: str) -> KernelSource | None:
    """The kernel of random steps; none where the target lacks an instruction."""
    plan = random_plan(seed, "gfx942" if lookup(arch).lanes == 64 else "sm_90a")
    if "matrix" in repr(plan.steps) and arch not in ("sm_90a", "sm_100a"):
        return None
    return conversion_kernel(dataclasses.replace(plan, target=arch))


def listed(arch: str) -> list[KernelSource]:
    """Kernels of layouts that are no maps of bits: addresses by digits, by tables, and of some threads alone."""
    lanes = lookup(arch).lanes
    window = np.add.outer(np.arange(lanes), np.arange(3)).reshape(1, lanes, 3)
    pairs = [
        (f"({3 * lanes},5):(5,1)", f"({3 * lanes},5):(1,{3 * lanes})", 32),
        (f"({lanes},6):(6,1)", f"({lanes},(3,2)):(1,({2 * lanes},{lanes}))", 16),
        (window, window[:, ::-1] * 7 % lanes, 8),
    ]
    return [conversion_kernel(conversion(*pair, arch, mechanism="shared")) for pair in pairs]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_nvidia(arch: str) -> None:
    pytest.importorskip("cuda.core", reason='no run-time compiler: pip install "layoutalg[cuda]"')
    made = [found for seed in SEEDS if (found := kernel(seed, arch))] + listed(arch)
    assert len(made) >= 5
    assert all(to_cubin(each)[:4] == b"\x7fELF" for each in made)


@pytest.mark.skipif(not hip.available(), reason='no clang for AMD: pip install "layoutalg[hip]"')
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_amd_without_local_memory(arch: str) -> None:
    made = [found for seed in SEEDS if (found := kernel(seed, arch))][:2] + listed(arch)
    assert len(made) >= 4
    for each in made:
        assert hip.to_code_object(each)[:4] == b"\x7fELF"
        assert re.search(r"\.private_segment_fixed_size: 0\b", hip.to_assembly(each))

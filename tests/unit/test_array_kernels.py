"""Gathers, staging, transposes and conversions of registers, run on the CPU for warps of 32 and waves of 64."""

import pytest
from judges.array_kernels import converted, gathered, picked, relabelled, staged, transposed

from layoutalg.codegen import hostsim

pytestmark = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")


def on_the_cpu(kernel, arguments, blocks):
    assert hostsim.FAULTS[hostsim.run(kernel, arguments, blocks=blocks)] == "none"


@pytest.mark.parametrize(("arch", "way", "size"), [
    ("sm_90a", "warp", 4), ("gfx942", "warp", 2), ("sm_90a", "shared", 1), ("gfx942", "shared", 8),
    ("sm_90a", "direct", 2), ("gfx1201", "direct", 4),
])  # fmt: skip
def test_gathers(arch, way, size):
    gathered(on_the_cpu, arch, way, size, seed=size)


@pytest.mark.parametrize(("arch", "size"), [("sm_90a", 2), ("sm_90a", 4), ("gfx942", 8)])
def test_staging(arch, size):
    staged(on_the_cpu, arch, size, seed=size)


@pytest.mark.parametrize(("arch", "size"), [("sm_90a", 1), ("gfx942", 4)])
def test_transposes(arch, size):
    transposed(on_the_cpu, arch, size, seed=size)


@pytest.mark.parametrize(("arch", "bits", "dense"), [("sm_90a", 8, False), ("sm_90a", 16, True), ("gfx942", 32, True)])
def test_conversions(arch, bits, dense):
    converted(on_the_cpu, arch, bits, seed=bits, dense=dense)


@pytest.mark.nightly(one_of=3)
@pytest.mark.parametrize("arch", ["sm_90a", "gfx942"])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_conversions_of_tables_and_gathers_of_registers(bits: int, arch: str) -> None:
    for seed in range(2):
        relabelled(on_the_cpu, arch, bits, seed)
        picked(on_the_cpu, arch, bits, seed)

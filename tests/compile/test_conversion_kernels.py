"""Kernels of conversions as machine code: NVIDIA by the run-time compiler, AMD by clang; every kind of step."""

import re

import pytest
from instruments.conversion_steps import counted_again, random_plan
from instruments.elf import local_bytes
from instruments.joined_texts import joined

from layoutalg.codegen import hip
from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.conversion import conversion_kernel
from layoutalg.codegen.kernel import KernelSource
from layoutalg.targets.registry import lookup

KINDS = {"Take", "Read", "Choose", "Exchange", "Move", "Rename", "ShufflePlan", "Through"}


def kernels(arch: str) -> list[KernelSource]:
    """Kernels of random steps, of as many plans as it takes for every kind; matrices where the target has them."""
    found, seen = list[KernelSource](), set[str]()
    for seed in range(24):
        plan = random_plan(seed, "gfx942" if lookup(arch).lanes == 64 else "sm_90a")
        matrices = "matrix" in repr(plan.steps)
        if matrices and arch not in ("sm_90a", "sm_100a"):
            continue
        kinds = {type(step).__name__ for step in plan.steps} | ({"matrices"} if matrices else set())
        if kinds - seen:
            seen |= kinds
            found.append(conversion_kernel(counted_again(plan, arch)))
    assert seen >= KINDS
    assert len(found) <= 9
    return found


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a", "sm_120a"])
def test_nvidia(arch: str) -> None:
    pytest.importorskip("cuda.core", reason='no run-time compiler: pip install "layoutalg[cuda]"')
    code = to_cubin(joined(kernels(arch)))
    assert code[:4] == b"\x7fELF"
    assert arch == "sm_80" or local_bytes(code) == 0


@pytest.mark.skipif(not hip.available(), reason='no clang for AMD: pip install "layoutalg[hip]"')
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_amd_without_local_memory(arch: str) -> None:
    made = kernels(arch)
    text = joined(made)
    assert hip.to_code_object(text)[:4] == b"\x7fELF"
    frames = re.findall(r"\.private_segment_fixed_size: (\d+)\b", hip.to_assembly(text))
    assert frames == ["0"] * len(made)

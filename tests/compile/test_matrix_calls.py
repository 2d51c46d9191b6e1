"""Every matrix instruction that kernels call compiles for its target, and is the instruction of that name."""

import re

import pytest

from layoutalg.codegen import hip
from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.fragment_product import fragment_text
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.matrix_calls import MatrixCall, callable_instructions, matrix_call
from layoutalg.codegen.portable import portable_prelude
from layoutalg.targets.registry import lookup


def unit(arch: str) -> tuple[list[MatrixCall], KernelSource]:
    """One text with a kernel for every instruction."""
    calls = [matrix_call(arch, name) for name in callable_instructions(arch)]
    text = portable_prelude(arch) + "".join(call.text + fragment_text(call, call.name + "_k") for call in calls)
    return calls, KernelSource("all", text, arch, lookup(arch).lanes, 0, ())


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_120a"])
def test_nvidia(arch):
    pytest.importorskip("cuda.core", reason='no run-time compiler: pip install "layoutalg[cuda]"')
    calls, made = unit(arch)
    code = to_cubin(made)
    assert len(calls) == 18
    assert all(call.name.encode() + b"_k" in code for call in calls)


@pytest.mark.skipif(not hip.available(), reason='no clang for AMD: pip install "layoutalg[hip]"')
@pytest.mark.parametrize(
    ("arch", "many"), [("gfx90a", 20), ("gfx942", 15), ("gfx950", 21), ("gfx1100", 5), ("gfx1201", 5)]
)
def test_amd(arch, many):
    calls, made = unit(arch)
    assert hip.to_code_object(made)[:4] == b"\x7fELF"
    text = hip.to_assembly(made)
    assert len(calls) == many
    for call in calls:
        body = text.split(f"\n{call.name}_k:", 1)[1].split("s_endpgm", 1)[0]
        (found,) = re.findall(r"\bv_(?:mfma|wmma)_\w+", body)
        wanted = call.instruction.partition(".")[2]
        assert plain(found) == plain(wanted)
    assert set(re.findall(r"\.private_segment_fixed_size: (\d+)", text)) == {"0"}


def plain(name: str) -> str:
    """An instruction's name without the number of products and underscores, which assemblers spell in two ways."""
    return re.sub(r"_\d+b(?=_)|_(?:e64|w32)\b|_", "", name)

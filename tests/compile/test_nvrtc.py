"""Kernel texts compile to machine code with the run-time compiler, with no GPU and no driver."""

from __future__ import annotations

import sys

import pytest
from instruments.fragments import matrix_move_kernel, mma_kernel, wgmma_register_kernel
from instruments.runner import runner_kernel
from instruments.wgmma_chain import Shape, chain_kernel

from layoutalg.codegen.compile import CompileError, _compiled, to_cubin, to_ptx
from layoutalg.codegen.prelude import CLUSTER_PRELUDE, PIPELINE_PRELUDE, PRELUDE, wgmma_prelude
from layoutalg.ground.errors import MalformedError, MissingExtraError
from layoutalg.targets.layouts.nvidia_instructions import MMA
from layoutalg.targets.nvidia.accesses import access_form

pytestmark = pytest.mark.compile


def is_cubin(code: bytes, name: str) -> bool:
    return code[:4] == b"\x7fELF" and name.encode() in code


def test_a_chain_of_warpgroup_multiplies() -> None:
    kernel = chain_kernel(Shape("bf16", "bf16", "f32", 16))
    assert is_cubin(to_cubin(kernel), kernel.name)


@pytest.mark.parametrize("direction", ["load", "store"])
@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_runners(rank: int, direction: str) -> None:
    kernel = runner_kernel(rank, direction)
    assert is_cubin(to_cubin(kernel), kernel.name)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("n", [8, 24, 64, 256])
def test_every_kind_of_warpgroup_multiply(n: int, dtype: str) -> None:
    calls = "".join(f"    la_wgmma_m64n{n}k16_{dtype}<{a}, {b}>(d, x, y, {a});\n" for a in range(2) for b in range(2))
    body = (
        f'extern "C" __global__ void __launch_bounds__(128) multiply(float* out, la_u64 x, la_u64 y)\n'
        f"{{\n    float d[{n // 2}];\n    for (int v = 0; v < {n // 2}; ++v) d[v] = out[v];\n    la_wgmma_fence();\n"
        f"{calls}    la_wgmma_commit();\n    la_wgmma_wait();\n"
        f"    for (int v = 0; v < {n // 2}; ++v) out[v] = d[v];\n}}\n"
    )
    assert is_cubin(to_cubin(PRELUDE + wgmma_prelude(dtype, n) + body), "multiply")


ROLES = r"""
extern "C" __global__ void __launch_bounds__(128) roles(const __grid_constant__ la_tensor_map map, float* out, la_u64 x)
{
    const la_u32 barrier = la_shared_address(la_shared());
    la_mbarrier_init(barrier, 2);
    la_cluster_arrive();
    la_cluster_wait();
    la_registers_dec<24>();
    la_registers_inc<240>();
    la_expect_tx(barrier, 4096);
    la_arrive(barrier);
    la_arrive_many(barrier, 2);
    la_arrive_remote(barrier, la_cluster_rank() ^ 1);
    la_role_barrier(1, 128);
    la_tma_load_multicast_1d(barrier + 1024, &map, barrier, 3, 0);
    la_tma_load_multicast_5d(barrier + 1024, &map, barrier, 3, 0, 1, 2, 3, 4);
    la_store_wait_read<1>();
    float d[8] = {};
    la_wgmma_fence();
    la_wgmma_m64n16k32_TYPE<>(d, x, x, 0);
    la_wgmma_m64n16k32_TYPE<0, 0>(d, x, x, 1);
    la_wgmma_commit();
    la_wgmma_wait<1>();
    la_wgmma_wait();
    out[threadIdx.x] = __uint_as_float(la_pack_bf16(d[0], d[1]) ^ la_pack_f16(d[2], d[3]));
}
"""


@pytest.mark.parametrize("dtype", ["e4m3", "e5m2"])
def test_what_blocks_of_several_roles_need(dtype: str) -> None:
    prelude = PRELUDE + PIPELINE_PRELUDE + CLUSTER_PRELUDE + wgmma_prelude(dtype, 16)
    assert is_cubin(to_cubin(prelude + ROLES.replace("TYPE", dtype)), "roles")


def test_kernels_of_single_matrix_instructions() -> None:
    moves = [matrix_move_kernel(k, n, t) for k in ("ldmatrix", "stmatrix") for n in (1, 2, 4) for t in (False, True)]
    products = [wgmma_register_kernel(dtype, n, 0, 32 * n) for dtype in ("f16", "bf16") for n in (8, 200, 256)]
    for kernel in [*map(mma_kernel, MMA), *moves, *products]:
        assert is_cubin(to_cubin(kernel), kernel.name)


def test_the_compilers_log_is_shown() -> None:
    with pytest.raises(CompileError, match="LA511") as caught:
        to_cubin('extern "C" __global__ void broken() { nonsense(); }')
    assert "nonsense" in caught.value.diagnostic.because


def test_an_instruction_of_another_architecture_is_refused() -> None:
    text = PRELUDE + wgmma_prelude("f16", 8) + 'extern "C" __global__ void f() { la_wgmma_fence(); }'
    with pytest.raises(CompileError, match="wgmma"):
        to_cubin(text, "sm_80")


@pytest.mark.parametrize("arch", ["90a", "sm_9x", "compute_90", "", "gfx942"])
def test_bad_architecture(arch: str) -> None:
    with pytest.raises(MalformedError, match="LA512"):
        to_cubin("", arch)


def test_missing_extra_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    _compiled.cache_clear()
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    with pytest.raises(MissingExtraError, match=r'pip install "layoutalg\[cuda\]"'):
        to_cubin("// never compiled")


def test_loads_and_stores_of_shared_memory_are_those_of_the_assembler() -> None:
    types = [f"{letter}{bits}" for letter in "busf" for bits in (8, 16, 32, 64, 128)]
    kinds = ("ld.shared", "st.shared", "st.async")
    names = [f"{kind}{count}.{of}" for kind in kinds for count in ("", ".v2", ".v4") for of in types]
    bodies = {name: _vector_assembly(name) for name in names}
    taken = [name for name in names if _known(name)]
    assert len(taken) == 2 * 39 + 20
    text = "".join(bodies[name] for name in taken)
    assert is_cubin(to_cubin(f'extern "C" __global__ void moves(unsigned a) {{ {text} }}'), "moves")
    for name in (
        "ld.shared.v4.b64",
        "st.shared.v2.b128",
        "ld.shared.u128",
        "st.shared.f16",
        "st.async.v4.b64",
        "st.async.b16",
    ):
        assert name not in taken
        with pytest.raises(CompileError):
            to_cubin(f'extern "C" __global__ void moves(unsigned a) {{ {bodies[name]} }}')


def _known(name: str) -> bool:
    try:
        return bool(access_form(name))
    except MalformedError:
        return False


def _vector_assembly(name: str) -> str:
    words = name.split(".")
    count = int(words[2][1:]) if len(words) == 4 else 1
    bits = max(16, int(words[-1][1:]))
    registers = ", ".join(f"t{place}" for place in range(count))
    moved = f"{{{registers}}}" if count > 1 else registers
    places = f"{moved}, [%0]" if name.startswith("ld") else f"[%0], {moved}"
    if name.startswith("st.async"):
        name, places = name.replace("st.async", "st.async.mbarrier::complete_tx::bytes"), f"{places}, [%0]"
    kind = words[-1] if words[-1][0] == "f" and bits > 16 else f"b{bits}"
    return f'asm volatile("{{ .reg .{kind} {registers}; {name} {places}; }}" :: "r"(a) : "memory");'


def test_an_empty_log_leaves_the_interpreters_own_bytes_alone():
    to_ptx('extern "C" __global__ void nothing() {}', "sm_90a")  # its log is one byte, which NVRTC writes
    every = bytes(range(256))
    assert [value for value in range(256) if every[value : value + 1][0] != value] == []

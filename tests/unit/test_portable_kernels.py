"""Portable kernel texts on the CPU: shuffles of warps and waves, permuted bytes, matrices, and the log of accesses."""

import numpy as np
import pytest

from layoutalg.codegen import hostsim
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.portable import portable_prelude
from layoutalg.targets.banks import turns

pytestmark = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
POINTERS = (("const la_u32*", "from"), ("la_u32*", "into"))
HEAD = 'extern "C" __global__ void __launch_bounds__(128) it(const la_u32* from, la_u32* into)\n{\n'


def kernel(arch: str, body: str, smem: int = 8192) -> KernelSource:
    return KernelSource("it", f"{portable_prelude(arch)}{HEAD}{body}}}\n", arch, 128, smem, POINTERS)


@pytest.mark.parametrize(("arch", "lanes"), [("sm_90a", 32), ("gfx1201", 32), ("gfx942", 64), ("gfx90a", 64)])
def test_shuffles_stay_in_the_warp_or_wave(arch, lanes):
    body = """    const la_u32 t = threadIdx.x;
    la_u32 word = from[t];
    for (int i = 0; i < 3; ++i) word = la_shuffle(word, t * 5 + 1) + LA_LANES;
    into[t] = word;
"""
    words = np.random.default_rng(1).integers(0, 2**31, 128, dtype=np.uint32)
    found = np.zeros_like(words)
    assert hostsim.run(kernel(arch, body), [words, found]) == 0
    wanted, t = words.copy(), np.arange(128)
    for _ in range(3):
        wanted = wanted[t // lanes * lanes + (5 * t + 1) % lanes] + np.uint32(lanes)
    assert (found == wanted).all()


def test_a_warp_may_shuffle_alone():
    body = """    const la_u32 t = threadIdx.x;
    la_u32 word = from[t];
    for (la_u32 i = 0; i < t / 32; ++i) word = la_shuffle(word, t + 1);
    into[t] = word;
"""
    words, found = np.arange(128, dtype=np.uint32), np.zeros(128, dtype=np.uint32)
    assert hostsim.run(kernel("sm_90a", body), [words, found]) == 0
    t = np.arange(128)
    assert (found == t // 32 * 32 + (t % 32 + t // 32) % 32).all()


def test_a_shuffle_that_lanes_leave_out_is_a_deadlock():
    body = """    const la_u32 t = threadIdx.x;
    la_u32 word = from[t];
    if (t % 32 < 31) word = la_shuffle(word, 0);
    __syncthreads();
    into[t] = word;
"""
    words, found = np.arange(128, dtype=np.uint32), np.zeros(128, dtype=np.uint32)
    assert hostsim.FAULTS[hostsim.run(kernel("sm_90a", body), [words, found])] == "deadlock"


@pytest.mark.parametrize("selector", [0x3210, 0x7654, 0x5140, 0x0123, 0x7362])
def test_permutations_of_bytes(selector):
    body = f"    const la_u32 t = threadIdx.x;\n    into[t] = la_permute(from[t], from[127 - t], {selector}u);\n"
    words = np.random.default_rng(2).integers(0, 2**32, 128, dtype=np.uint32)
    found = np.zeros_like(words)
    assert hostsim.run(kernel("sm_90a", body), [words, found]) == 0
    eight = np.concatenate([words.view(np.uint8).reshape(128, 4), words[::-1].copy().view(np.uint8).reshape(128, 4)], 1)
    picked = eight[:, [selector >> 4 * i & 7 for i in range(4)]]
    assert (found == np.ascontiguousarray(picked).view(np.uint32).ravel()).all()


@pytest.mark.parametrize(("many", "kind"), [(1, "la_u32"), (2, "la_words2"), (4, "la_words4")])
@pytest.mark.parametrize("trans", ["", "_trans"])
def test_matrices_are_those_of_the_manual(many, kind, trans):
    body = f"""    const la_u32 t = threadIdx.x;
    for (la_u32 i = 0; i < 4; ++i) la_shared_store_b32(16 * t + 4 * i, from[4 * t + i]);
    __syncthreads();
    {kind} words = la_ldmatrix_x{many}{trans}(16 * (t ^ 3));
    for (la_u32 i = 0; i < {many}; ++i) into[4 * t + i] = ((la_u32*)&words)[i];
"""
    rows = np.random.default_rng(3).integers(0, 2**16, (4, 32, 8), dtype=np.uint16)
    found = np.zeros((4, 32, 4), dtype=np.uint32)
    assert hostsim.run(kernel("sm_90a", body), [rows.view(np.uint32).reshape(-1), found]) == 0
    for warp in range(4):
        for matrix in range(many):
            square = np.array([rows[warp, (8 * matrix + row) ^ 3] for row in range(8)])
            square = square.T if trans else square
            for lane in range(32):
                pair = square[lane // 4, 2 * (lane % 4) : 2 * (lane % 4) + 2].astype(np.uint32)
                assert found[warp, lane, matrix] == pair[0] | pair[1] << 16


@pytest.mark.parametrize("trans", ["", "_trans"])
def test_stored_matrices_are_read_back(trans):
    body = f"""    const la_u32 t = threadIdx.x;
    la_words4 words = {{from[4 * t], from[4 * t + 1], from[4 * t + 2], from[4 * t + 3]}};
    la_stmatrix_x4{trans}(16 * (t ^ 5), words);
    __syncthreads();
    words = la_ldmatrix_x4{trans}(16 * (t ^ 5));
    for (la_u32 i = 0; i < 4; ++i) into[4 * t + i] = words.word[i];
"""
    words = np.random.default_rng(4).integers(0, 2**32, 512, dtype=np.uint32)
    found = np.zeros_like(words)
    assert hostsim.run(kernel("sm_90a", body), [words, found]) == 0
    assert (found == words).all()


@pytest.mark.parametrize("arch", ["sm_90a", "gfx942"])
@pytest.mark.parametrize("bits", [32, 64, 128])
def test_turns_of_the_executed_text(arch, bits):
    size, lanes = bits // 8, 64 if arch.startswith("gfx") else 32
    word = "" if bits == 32 else ".word[0]"
    body = f"""    const la_u32 t = threadIdx.x;
    for (la_u32 i = 0; i < 3; ++i)
        if (t % 4 != 3) into[t] += la_shared_load_b{bits}({size} * (t * (i + 1) % 64)){word};
"""
    words, found = np.zeros(128, dtype=np.uint32), np.zeros(128, dtype=np.uint32)
    trace = hostsim.trace(kernel(arch, body), [words, found])
    assert trace.fault == 0
    assert len(trace.accesses) == 3 * 128 // lanes
    name = trace.accesses[0].instruction(arch)
    wanted = 0
    for i in range(3):
        for first in range(0, 128, lanes):
            threads = range(first, first + lanes)
            wanted += turns(arch, name, [size * (t * (i + 1) % 64) if t % 4 != 3 else None for t in threads])
    assert trace.turns() == wanted


def test_a_log_that_is_full_ends_the_run_and_so_does_a_misaligned_address():
    body = "    into[threadIdx.x] = la_shared_load_b32(4 * threadIdx.x);\n"
    arrays = [np.zeros(128, dtype=np.uint32), np.zeros(128, dtype=np.uint32)]
    trace = hostsim.trace(kernel("sm_90a", body), arrays, capacity=100)
    assert hostsim.FAULTS[trace.fault].startswith("more threads")
    assert len(trace.accesses) == 4
    body = "    into[threadIdx.x] = la_shared_load_b64(4 * threadIdx.x).word[0];\n"
    assert hostsim.FAULTS[hostsim.run(kernel("sm_90a", body), arrays)].startswith("shared address not a multiple")

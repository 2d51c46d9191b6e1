"""Kernels of several roles on the CPU: device functions, hangs by name, asynchronous reads, schedules by seed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from layoutalg.codegen import hostsim
from layoutalg.codegen.host_report import Report
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.kernels.gemm import MatmulKernel, gemm_kernel
from layoutalg.codegen.kernels.gemm_forms import Form
from layoutalg.codegen.launch import place_map
from layoutalg.codegen.portable import TENSOR_PRELUDE
from layoutalg.codegen.prelude import CLUSTER_PRELUDE, PIPELINE_PRELUDE, wgmma_prelude
from layoutalg.ground.errors import MalformedError
from layoutalg.synth.tensormap import synthesize_tensormap

pytestmark = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
PRELUDES = TENSOR_PRELUDE + PIPELINE_PRELUDE + CLUSTER_PRELUDE
PACK = """
extern "C" __global__ void pack(const float* from, la_u32* into)
{
    const float low = from[2 * threadIdx.x], high = from[2 * threadIdx.x + 1];
    into[2 * threadIdx.x] = la_pack_bf16(low, high);
    into[2 * threadIdx.x + 1] = la_pack_f16(low, high);
}
"""


def test_floats_are_packed_to_nearest_even() -> None:
    rng = np.random.default_rng(5)
    values = (rng.standard_normal(1024) * 2.0 ** rng.integers(-30, 17, 1024)).astype(np.float32)
    values[:8] = [65504, 65519.99, 65520, 2**-24, 2**-25, 2**-25 * 1.001, np.inf, -0.0]
    words = np.zeros(1024, dtype=np.uint32)
    parameters = (("const float*", "from"), ("la_u32*", "into"))
    assert hostsim.run(KernelSource("pack", PRELUDES + PACK, "sm_90a", 512, 0, parameters), [values, words]) == 0
    with np.errstate(over="ignore"):
        assert (words[1::2].copy().view(np.float16) == values.astype(np.float16)).all()
    kept = words[::2].copy().view(np.uint16)
    near, bits = (kept.astype(np.uint32) << 16).view(np.float32), values.view(np.uint32).astype(np.int64)
    assert (kept == (bits >> 16) + (bits % 65536 + (bits >> 16 & 1) > 32768)).all()
    assert (near[np.isinf(values)] == values[np.isinf(values)]).all()


MULTIPLY = """
extern "C" __global__ void __launch_bounds__(128) multiply(const unsigned char* a, const unsigned char* b, float* into)
{
    for (int i = threadIdx.x; i < 2048; i += 128) la_shared()[i] = a[i];
    for (int i = threadIdx.x; i < 256; i += 128) la_shared()[2048 + i] = b[i];
    la_fence_async();
    __syncthreads();
    const la_u64 at = (la_shared_address(la_shared()) & 0x3FFFF) >> 4;
    float d[4];
    la_wgmma_fence();
    la_wgmma_m64n8k32_TYPE<>(d, at | 64ull << 16 | 8ull << 32, (at + 128) | 8ull << 16 | 16ull << 32, 0);
    la_wgmma_commit();
    la_wgmma_wait();
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    for (int v = 0; v < 4; ++v) into[(row + v / 2 * 8) * 8 + column + v % 2] = d[v];
}
"""


def byte_values(dtype: str) -> npt.NDArray[np.float32]:
    """The 256 values of a type of 8 bits, from its definition (OCP 8-bit floating point, 1.0)."""
    bits = np.arange(256)
    many, bias = (3, 7) if dtype == "e4m3" else (2, 15)
    exponent, fraction = bits >> many & (255 >> (many + 1)), (bits & (1 << many) - 1) / (1 << many)
    values = np.where(exponent > 0, (1 + fraction) * 2.0 ** (exponent - bias), fraction * 2.0 ** (1 - bias))
    if dtype == "e4m3":
        values[bits % 128 == 127] = np.nan
    else:
        values[bits % 128 == 124] = np.inf
        values[bits % 128 > 124] = np.nan
    return np.where(bits >> 7, -values, values).astype(np.float32)


@pytest.mark.parametrize("dtype", ["e4m3", "e5m2"])
def test_products_of_bytes(dtype: str) -> None:
    """Rows of A in core matrices of 8 x 16 bytes: leading between those along k, stride between those along rows."""
    text = PRELUDES + wgmma_prelude(dtype, 8) + MULTIPLY.replace("TYPE", dtype)
    parameters = (("const unsigned char*", "a"), ("const unsigned char*", "b"), ("float*", "into"))
    kernel = KernelSource("multiply", text, "sm_90a", 128, 4096, parameters)
    rng, values = np.random.default_rng(7), byte_values(dtype)
    finite = np.flatnonzero(np.isfinite(values) & (np.abs(values) < 64) & (np.abs(values) >= 1 / 64))
    for round in range(5):
        a = rng.choice(finite, (64, 32)).astype(np.uint8)
        b = rng.choice(finite, (8, 32)).astype(np.uint8)
        if round < 4:  # every byte once, times 1
            a[:], b[:] = 0, 0
            a[:, 5], b[:, 5] = np.arange(64 * round, 64 * round + 64), np.flatnonzero(values == 1)[0]
        images = [m.reshape(-1, 8, 2, 16).transpose(2, 0, 1, 3).copy().reshape(-1) for m in (a, b)]
        into = np.zeros((64, 8), dtype=np.float32)
        assert hostsim.run(kernel, [*images, into]) == 0
        wanted = values[a].astype(np.float64) @ values[b].astype(np.float64).T
        assert np.allclose(into, wanted, rtol=1e-5, atol=1e-3, equal_nan=True)


SEEDS = range(13)
"""Schedules that a right kernel survives; a mutant must be caught on one of the first five."""
MAP = "const __grid_constant__ la_tensor_map"
HEAD = """
extern "C" __global__ void __launch_bounds__({threads}) ring({parameters})
{{
    const la_u32 base = (la_u32)(la_aligned_shared(1024) - la_shared());
    const la_u32 address = la_shared_address(la_shared() + base);
    const la_u32 full = address + {full}, empty = address + {full} + 8 * SLOTS;
    const int warp = threadIdx.x / 32;
    if (threadIdx.x == 0)
        for (int s = 0; s < SLOTS; ++s) {{
            la_mbarrier_init(full + 8 * s, {fulls});
            la_mbarrier_init(empty + 8 * s, {empties});
        }}
    __syncthreads();
    int slot = 0, parity = 0;
    bool done = true;
"""
NEXT = "        if (++slot == SLOTS) slot = 0, parity ^= 1;\n"
READ_RING = (
    HEAD
    + """
    if (warp == 0) {{
        if (la_elect())
            for (int k = 0; k < trips && done; ++k) {{
                done = la_wait_parity(empty + 8 * slot, parity ^ 1);
                la_arrive_expect_tx(full + 8 * slot, 1024);
                la_tma_load_1d(address + 1024 * slot, &map, full + 8 * slot, 256 * k);
        {next}            }}
    }} else
        for (int k = 0; k < trips && done; ++k) {{
            done = la_wait_parity(full + 8 * slot, parity);
            for (la_u32 i = threadIdx.x - 32; i < 256; i += 64)
                into[256 * k + i] = 3 * la_shared_load_b32(base + 1024 * slot + 4 * i);
            la_fence_async();
            la_sync_warp();
            if (la_elect()) la_arrive(empty + 8 * slot);
    {next}        }}
    if (threadIdx.x % 32 == 0) status[warp] = done ? 1 : 2;
}}
"""
)
WRITE_RING = (
    HEAD
    + """
    if (warp != 0)
        for (int k = 0; k < trips && done; ++k) {{
            done = la_wait_parity(empty + 8 * slot, parity ^ 1);
            for (la_u32 i = threadIdx.x - 32; i < 256; i += 64)
                la_shared_store_b32(base + 1024 * slot + 4 * i, 3 * from[256 * k + i]);
            la_fence_async();
            la_role_barrier(3, 64);
            if (threadIdx.x == 32) la_arrive(full + 8 * slot);
    {next}        }}
    else if (la_elect()) {{
        for (int k = 0; k < trips && done; ++k) {{
            done = la_wait_parity(full + 8 * slot, parity);
            la_tma_store_1d(&map, address + 1024 * slot, 256 * k);
            la_store_commit();
            if (k) {{
                la_store_wait_read<1>();
                la_arrive(empty + 8 * ((slot + SLOTS - 1) % SLOTS));
            }}
    {next}        }}
        la_store_wait();
    }}
    if (threadIdx.x % 32 == 0) status[warp] = done ? 1 : 2;
}}
"""
)
MULTIPLY_RING = (
    HEAD
    + """
    if (warp >= 4) {{
        if (warp == 4 && la_elect())
            for (int k = 0; k < trips && done; ++k) {{
                done = la_wait_parity(empty + 8 * slot, parity ^ 1);
                la_expect_tx(full + 8 * slot, 9216);
                la_tma_load_2d(address + 9216 * slot, &map_a, full + 8 * slot, 64 * k, 0);
                la_tma_load_2d(address + 9216 * slot + 8192, &map_b, full + 8 * slot, 64 * k, 0);
                la_arrive(full + 8 * slot);
        {next}            }}
    }} else {{
        float d[4];
        for (int v = 0; v < 4; ++v) d[v] = 0.0f;
        la_wgmma_fence();
        for (int k = 0; k < trips && done; ++k) {{
            done = la_wait_parity(full + 8 * slot, parity);
            const la_u64 a = (address + 9216 * slot & 0x3FFFF) >> 4, b = (address + 9216 * slot + 8192 & 0x3FFFF) >> 4;
            for (int s = 0; s < 4; ++s)
                la_wgmma_m64n8k16_bf16<0, 0>(d, (a + 2 * s) | LAYOUT, (b + 2 * s) | LAYOUT, 1);
            la_wgmma_commit();
            la_wgmma_wait<1>();
            if (k && la_elect()) la_arrive(empty + 8 * ((slot + SLOTS - 1) % SLOTS));
    {next}        }}
        la_wgmma_wait();
        const int row = warp * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
        for (int v = 0; v < 4; ++v) into[(row + v / 2 * 8) * 8 + column + v % 2] = d[v];
    }}
    if (threadIdx.x % 32 == 0) status[warp] = done ? 1 : 2;
}}
"""
)


def ring(body: str, threads: int, slot: int, counts: tuple[int, int], parameters: Sequence[tuple[str, str]],
         roles: tuple[tuple[str, int, int], ...], slots: int) -> KernelSource:  # fmt: skip
    """A kernel of a ring: its slots, then its barriers."""
    given = (*parameters, ("int*", "status"), ("int", "trips"))
    text = body.format(
        threads=threads, parameters=", ".join(f"{kind} {name}" for kind, name in given), full=slot * slots,
        fulls=counts[0], empties=counts[1], next=NEXT,
    )  # fmt: skip
    layout = f"#define SLOTS {slots}\n#define LAYOUT (1ull << 16 | 64ull << 32 | 1ull << 62)\n"
    barriers = (("full", slot * slots, slots), ("empty", slot * slots + 8 * slots, slots))
    text = PRELUDES + wgmma_prelude("bf16", 8) + layout + text
    return KernelSource(
        "ring", text, "sm_90a", threads, slot * slots + 16 * slots + 1024, given, barriers=barriers, roles=roles
    )


@cache
def raw_map(direction: str, shape: tuple[int, ...], tile: tuple[int, ...], dtype: str, swizzle: str) -> bytes:
    stride = [shape[1], 1] if len(shape) == 2 else [1]
    modes = [[[tile[0], tile[1]]], [[tile[1], 1]]] if len(tile) == 2 else [[[tile[0], 1]]]
    return synthesize_tensormap(
        {
            "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": direction,
            "global": {"shape": list(shape), "stride": stride, "dtype": dtype, "base_align_bytes": 128},
            "tile": list(tile), "smem": {"modes": modes, "swizzle": swizzle},
        }
    ).raw  # fmt: skip


def aligned(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    store = np.zeros(values.nbytes + 128, dtype=np.uint8)
    at = -store.ctypes.data % 128
    kept = store[at : at + values.nbytes].view(values.dtype).reshape(values.shape)
    kept[...] = values
    return kept


SLOTS = 3
LOADS = (("load", 0, 1), ("math", 1, 2))
READS = ring(READ_RING, 96, 1024, (1, 2), ((MAP, "map"), ("la_u32*", "into")), LOADS, SLOTS)
WRITES = ring(WRITE_RING, 96, 1024, (1, 1), ((MAP, "map"), ("const la_u32*", "from")),
              (("store", 0, 1), ("math", 1, 2)), SLOTS)  # fmt: skip
MULTIPLIES = ring(MULTIPLY_RING, 160, 9216, (1, 4), ((MAP, "map_a"), (MAP, "map_b"), ("float*", "into")),
                  (("math", 0, 4), ("load", 4, 1)), SLOTS)  # fmt: skip
Outcome = tuple[Report, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.int32]]


def reads(kernel: KernelSource, seed: int, trips: int = 8) -> Outcome:
    source = aligned(np.arange(256 * trips, dtype=np.uint32) * 7 + 1)
    into, status = np.zeros(256 * trips, dtype=np.uint32), np.zeros(3, dtype=np.int32)
    raw = place_map(raw_map("load", (256 * trips,), (256,), "u32", "NONE"), source.ctypes.data)
    report = hostsim.examine(
        kernel, [raw, into, status, trips], regions=[(source.ctypes.data, source.nbytes)], seed=seed
    )
    return report, into, 3 * source, status


def writes(kernel: KernelSource, seed: int, trips: int = 8) -> Outcome:
    source = np.arange(256 * trips, dtype=np.uint32) * 7 + 1
    into, status = aligned(np.zeros(256 * trips, dtype=np.uint32)), np.zeros(3, dtype=np.int32)
    raw = place_map(raw_map("store", (256 * trips,), (256,), "u32", "NONE"), into.ctypes.data)
    report = hostsim.examine(kernel, [raw, source, status, trips], regions=[(into.ctypes.data, into.nbytes)], seed=seed)
    return report, into, 3 * source, status


def multiplies(kernel: KernelSource, seed: int, trips: int = 5) -> Outcome:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, (rows, 64 * trips)).astype(np.float32) for rows in (64, 8))
    halves = [aligned((m.view(np.uint32) >> 16).astype(np.uint16)) for m in (a, b)]
    maps = [
        place_map(raw_map("load", m.shape, (m.shape[0], 64), "bf16", "128B"), m.ctypes.data) for m in halves
    ]  # fmt: skip
    into, status = np.zeros((64, 8), dtype=np.float32), np.zeros(5, dtype=np.int32)
    known = [(m.ctypes.data, m.nbytes) for m in halves]
    report = hostsim.examine(kernel, [*maps, into, status, trips], regions=known, seed=seed)
    return report, into, a @ b.T, status


RINGS: dict[str, tuple[KernelSource, Callable[[KernelSource, int], Outcome]]] = {
    "reads": (READS, reads), "writes": (WRITES, writes), "multiplies": (MULTIPLIES, multiplies),
}  # fmt: skip


@pytest.mark.parametrize("name", RINGS)
def test_a_right_ring_gives_the_same_in_every_schedule(name: str) -> None:
    kernel, run = RINGS[name]
    for seed in SEEDS:
        report, found, wanted, status = run(kernel, seed)
        assert report == Report(0, "", ()), (seed, report.why)
        assert (found == wanted).all(), seed
        assert (status == 1).all()


PRODUCER, CONSUMER = (
    "done = la_wait_parity(empty + 8 * slot, parity ^ 1);",
    "done = la_wait_parity(full + 8 * slot, parity);",
)
EXPECT = "la_arrive_expect_tx(full + 8 * slot, 1024);"
RELEASE = "if (la_elect()) la_arrive(empty + 8 * slot);"
"""Ring, name, texts before and after, and what all of the report must say on some of the first seeds."""
MUTANTS: list[tuple[str, str, Sequence[tuple[str, str]], Sequence[str]]] = [
    ("reads", "missing expect", [(EXPECT, "la_arrive(full + 8 * slot);")], ["load in flight", "role math", "full[0]"]),
    ("reads", "half the bytes", [("slot, 1024);", "slot, 512);")],
     ["role math waits for full[0], phase 0: 0 of 1 arrivals missing, 512 bytes more than expected were delivered"]),
    ("reads", "twice the bytes", [("slot, 1024);", "slot, 2048);")],
     ["role math waits for full[0], phase 0: 0 of 1 arrivals missing, 1024 bytes have not been delivered"]),
    ("reads", "expect without arrive", [(EXPECT, "la_expect_tx(full + 8 * slot, 1024);")],
     ["role math waits for full[0], phase 0: 1 of 1 arrivals missing"]),
    ("reads", "arrive before the reads", [(RELEASE, ""), (CONSUMER, f"{CONSUMER} la_sync_warp(); {RELEASE}")],
     ["role math", "full["]),
    ("reads", "no wait for empty", [(PRODUCER, "")], ["role load", "full[0]"]),
    ("reads", "wrong first parity", [(PRODUCER, PRODUCER.replace(" ^ 1", ""))],
     ["role load waits for empty[0], phase 0: 2 of 2 arrivals missing"]),
    ("reads", "inverted parity of full", [(CONSUMER, CONSUMER.replace("parity)", "parity ^ 1)"))],
     ["role math", "full[0]"]),
    ("reads", "one arrival too many counted", [("empty + 8 * s, 2)", "empty + 8 * s, 3)")],
     ["role load waits for empty[0], phase 0: 1 of 3 arrivals missing"]),
    ("reads", "one arrival too few counted", [("empty + 8 * s, 2)", "empty + 8 * s, 1)")],
     ["role math", "[0]"]),
    ("reads", "every lane arrives", [(RELEASE, "la_arrive(empty + 8 * slot);")], ["role ", "empty[0]"]),
    ("reads", "three arrivals", [(RELEASE, "if (la_elect()) la_arrive_many(empty + 8 * slot, 3);")],
     ["role math", "empty[0]: 3 arrivals with 2 pending"]),
    ("reads", "no initialisation", [("la_mbarrier_init(full + 8 * s, 1);", "")],
     ["before its initialisation", "full[0]"]),
    ("reads", "no release", [(RELEASE, "")], ["role load waits for empty[0], phase 0: 2 of 2 arrivals missing"]),
    ("reads", "no fence before the refill", [("la_fence_async();\n            la_sync", "la_sync")],
     ["role load", "full[0]", "role math", "has not called la_fence_async"]),
    ("reads", "slots never alternate", [(NEXT, "")], ["role "]),
    ("writes", "no fence before the store", [("la_fence_async();\n            la_role", "la_role")],
     ["role store", "role math", "has not called la_fence_async"]),
    ("writes", "no role barrier", [("la_role_barrier(3, 64);", "")], ["role "]),
    ("writes", "released one group early", [("la_store_wait_read<1>", "la_store_wait_read<2>")],
     ["store in flight was overwritten", "role math", "a store of thread 0 (role store) reads it"]),
    ("writes", "never waits for the stores", [("la_store_wait();", "")],
     ["kernel ended with a store not waited for", "role store"]),
    ("multiplies", "released while it is read",
     [("if (k && la_elect()) la_arrive(empty + 8 * ((slot + SLOTS - 1) % SLOTS));", RELEASE)],
     ["multiply in flight", "role load", "full[0]", "(role math) reads it"]),
    ("multiplies", "accumulators read too early", [("        la_wgmma_wait();", "")],
     ["kernel ended with a multiply not waited for"]),
    ("multiplies", "no commit", [("            la_wgmma_commit();", "")], ["multiply in flight", "full[0]"]),
    ("multiplies", "no fence of registers", [("        la_wgmma_fence();", "")],
     ["without la_wgmma_fence", "role math"]),
    ("multiplies", "one operand expected", [("slot, 9216);", "slot, 8192);")],
     ["role math waits for full[0], phase 0: 0 of 1 arrivals missing, 1024 bytes more than expected were delivered"]),
    ("multiplies", "does not wait for full", [(CONSUMER, "")], ["load in flight", "role math", "full[0]"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "mutant", "edits", "says"), MUTANTS, ids=[f"{m[0]}: {m[1]}" for m in MUTANTS])
def test_a_wrong_ring_is_caught(name: str, mutant: str, edits: Sequence[tuple[str, str]], says: Sequence[str]) -> None:
    kernel, run = RINGS[name]
    text = kernel.text
    for before, after in edits:
        assert before in text
        text = text.replace(before, after)
    told = []
    for seed in range(5):
        report = run(replace(kernel, text=text), seed)[0]
        told.append(f"{hostsim.FAULTS[report.fault]}; {'; '.join(map(str, report.waits))}; {report.why}")
    assert any(all(word in each for word in says) for each in told), told


def test_a_late_hang_names_role_slot_and_phase() -> None:
    text = READS.text.replace("slot, 1024);", "slot, k == 11 ? 1024 + 16384 : 1024);")
    report, _, _, status = reads(replace(READS, text=text), 0, 12)
    assert status.tolist() == [1, 2, 2]
    assert report.fault == 0
    assert report.why == str(report.waits[0])
    assert report.why == (
        "role math waits for full[2], phase 3: 0 of 1 arrivals missing, 16384 bytes have not been delivered"
    )
    bare = replace(READS, text=text, roles=(), barriers=())
    assert reads(bare, 0, 12)[0].why.startswith("warp 1 waits for the barrier at byte 3088, phase 3")


def test_accumulators_hold_nothing_before_the_wait() -> None:
    wait = "        la_wgmma_wait();\n"
    begin = MULTIPLIES.text.index(wait)
    early = MULTIPLIES.text[:begin] + MULTIPLIES.text[begin + len(wait) :].replace(
        "v % 2] = d[v];\n", f"v % 2] = d[v];\n{wait}", 1
    )
    report, found, _, _ = multiplies(replace(MULTIPLIES, text=early), 0)
    assert report.fault == 0
    assert np.isnan(found).all()
    written = MULTIPLIES.text.replace("la_wgmma_wait<1>();", "d[0] = 1.0f; la_wgmma_wait<1>();")
    assert hostsim.FAULTS[multiplies(replace(MULTIPLIES, text=written), 0)[0].fault].startswith(
        "accumulator of a multiply"
    )


def test_operands_that_change_before_the_wait_through_a_plain_pointer() -> None:
    text = MULTIPLIES.text.replace(
        "la_wgmma_wait<1>();", "la_shared()[base + 9216 * slot + 77] += 1; la_wgmma_wait<1>();"
    )
    report = multiplies(replace(MULTIPLIES, text=text), 0)[0]
    assert hostsim.FAULTS[report.fault] == "shared memory of a multiply in flight was overwritten"
    assert "byte 77; a multiply of thread 0 (role math) reads it" in report.why


def test_warps_that_issue_different_multiplies() -> None:
    for before, after in (
        ("| LAYOUT, 1)", "| LAYOUT, warp != 2)"), ("(d, (a + 2 * s)", "(d, (a + 2 * (s ^ (warp == 3)))"),
        ("(d, (a + 2 * s)", "(d, (a + 2 * (s ^ threadIdx.x % 2))"),
    ):  # fmt: skip
        assert before in MULTIPLIES.text
        found = multiplies(replace(MULTIPLIES, text=MULTIPLIES.text.replace(before, after)), 0)[0]
        assert hostsim.FAULTS[found.fault].startswith("warps or lanes of a warpgroup")


CLUSTER_RING = (
    HEAD.replace("    __syncthreads();", "    la_cluster_arrive();\n    la_cluster_wait();")
    + """
    const la_u32 rank = la_cluster_rank();
    if (warp == 0) {{
        if (la_elect())
            for (int k = 0; k < trips && done; ++k) {{
                done = la_wait_parity(empty + 8 * slot, parity ^ 1);
                la_arrive_expect_tx(full + 8 * slot, 1024);
                const la_u32 half = 1024 * slot + 512 * rank;
                la_tma_load_multicast_1d(address + half, &map, full + 8 * slot, 3, 256 * k + 128 * rank);
        {next}            }}
    }} else
        for (int k = 0; k < trips && done; ++k) {{
            done = la_wait_parity(full + 8 * slot, parity);
            for (la_u32 i = threadIdx.x - 32; i < 256; i += 64)
                into[256 * (trips * blockIdx.x + k) + i] =
                    (3 + blockIdx.x) * la_shared_load_b32(base + 1024 * slot + 4 * i);
            la_fence_async();
            la_sync_warp();
            if (la_elect()) la_arrive_remote(empty + 8 * slot, 0), la_arrive_remote(empty + 8 * slot, 1);
    {next}        }}
    if (threadIdx.x % 32 == 0) status[3 * blockIdx.x + warp] = done ? 1 : 2;
    la_cluster_arrive();
    la_cluster_wait();
}}
"""
)
PAIRS = ring(CLUSTER_RING, 96, 1024, (1, 4), ((MAP, "map"), ("la_u32*", "into")), LOADS, SLOTS)


def pairs(kernel: KernelSource, seed: int, trips: int = 8, cluster: int = 2) -> Outcome:
    """Two clusters of two blocks; each block loads half of every tile for both."""
    source = aligned(np.arange(256 * trips, dtype=np.uint32) * 7 + 1)
    into, status = np.zeros((4, 256 * trips), dtype=np.uint32), np.zeros(12, dtype=np.int32)
    raw = place_map(raw_map("load", (256 * trips,), (128,), "u32", "NONE"), source.ctypes.data)
    report = hostsim.examine(
        kernel, [raw, into, status, trips], regions=[(source.ctypes.data, source.nbytes)], seed=seed, blocks=4,
        cluster=cluster,
    )  # fmt: skip
    return report, into, np.arange(3, 7, dtype=np.uint32)[:, None] * source, status


def test_blocks_of_a_cluster_share_their_loads() -> None:
    for seed in SEEDS:
        report, found, wanted, status = pairs(PAIRS, seed)
        assert report == Report(0, "", ()), (seed, report.why)
        assert (found == wanted).all(), seed
        assert (status == 1).all()


MEET = "    la_cluster_arrive();\n    la_cluster_wait();\n"
PEER = "la_arrive_remote(empty + 8 * slot, 0), la_arrive_remote(empty + 8 * slot, 1)"


@pytest.mark.parametrize(("before", "after", "says"), [
    (PEER, "la_arrive_remote(empty + 8 * slot, rank)", "waits for empty[0], phase 0: 2 of 4 arrivals missing"),
    (PEER, f"{PEER}, la_arrive_remote(empty + 8 * slot, 2)", "does not exist"),
    ("slot, 1024);", "slot, 512);", "a load of thread 0 (role load) writes it"),
    ("slot, 3, 256", "slot, 1u << rank, 256", "512 bytes have not been delivered"),
    ("slot, 3, 256", "slot, 7, 256", "does not exist"),
    (f"{MEET}    int", "    __syncthreads();\n    int", "before its initialisation"),
    (f"{MEET}}}", "}", "has ended"),
    ("s, 4);", "s, 2);", "role math"),
    ("            la_fence_async();\n", "", "has not called la_fence_async"),
])  # fmt: skip
def test_a_wrong_cluster_is_caught(before: str, after: str, says: str) -> None:
    assert before in PAIRS.text
    told = []
    for seed in range(8):
        report = pairs(replace(PAIRS, text=PAIRS.text.replace(before, after)), seed)[0]
        told.append(f"{hostsim.FAULTS[report.fault]}; {'; '.join(map(str, report.waits))}; {report.why}")
    assert any(says in each for each in told), told


def test_launches_of_clusters_and_seeds_are_checked() -> None:
    for options in ({"cluster": 3}, {"cluster": 0}, {"cluster": 32}, {"seed": -1}, {"seed": 2**32}):
        with pytest.raises(MalformedError, match="LA522"):
            hostsim.run(PAIRS, [bytes(128), 0, 0, 0], blocks=4, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [
    {"roles": (("", 0, 1),)}, {"roles": (("a\nb", 0, 1),)}, {"roles": (("load", -1, 1),)}, {"roles": (("load", 0, 0),)},
    {"barriers": (("full", 0, 0),)}, {"barriers": (("full", -8, 1),)},
])  # fmt: skip
def test_names_of_roles_and_barriers_are_checked(given: dict[str, Any]) -> None:
    with pytest.raises(MalformedError, match="LA506"):
        replace(READS, **given)


SYNCHRONISES = (
    r"(?:if \([^;{}]*?\) )?\bla_(?:arrive\w*|fence_async|role_barrier|cluster_arrive|wgmma_(?:wait|commit|fence)"
    r"|store_commit|store_wait\w*|wait_phase\w*)(?:<\d+>)?\([^;]*\);"
)


@cache
def product(cluster: int) -> tuple[MatmulKernel, tuple[npt.NDArray[np.uint16], ...], npt.NDArray[np.uint16]]:
    """An emitted product of three tiles that one cluster makes, its operands, and what it gives."""
    m, n, k = 64 * cluster, 192, 192
    form = Form(64, 64, consumers=1, cluster=cluster, behind=1, stages=3)
    made = gemm_kernel((m, n, k), form=form)
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, (rows, k)).astype(np.float32) for rows in (m, n))
    bits = (a @ b.T).view(np.uint32)
    nearest = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return made, tuple(aligned((each.view(np.uint32) >> 16).astype(np.uint16)) for each in (a, b)), nearest


def multiplied(cluster: int, text: str, seed: int) -> tuple[Report, bool]:
    made, (a, b), wanted = product(cluster)
    d, status = aligned(np.zeros_like(wanted)), np.zeros(cluster, dtype=np.int32)
    report = hostsim.examine(
        replace(made.kernel, text=text), made.arguments(a, b, d, cluster, status), blocks=cluster,
        cluster=cluster, seed=seed, regions=[(each.ctypes.data, each.nbytes) for each in (a, b, d)],
    )  # fmt: skip
    return report, bool((d == wanted).all())


@pytest.mark.parametrize("cluster", [1, 2])
def test_an_emitted_product_gives_the_same_in_every_schedule(cluster: int) -> None:
    text = product(cluster)[0].kernel.text
    for seed in SEEDS:
        assert multiplied(cluster, text, seed) == (Report(0, "", ()), True)


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("cluster", [1, 2])
def test_every_synchronisation_of_an_emitted_product_is_needed(cluster: int, part: int) -> None:
    """Without one of its waits, arrivals, fences, commits or barriers, some of twelve schedules goes wrong.

    Behind the last tile only stores are waited for, and the other blocks of the cluster.
    """
    text = product(cluster)[0].kernel.text
    begin = text.index('extern "C" __global__')
    last = text.rindex("la_store_commit") - begin
    found = [
        call
        for call in re.finditer(SYNCHRONISES, text[begin:])
        if call.start() <= last or "la_store" in call[0] or "la_cluster" in call[0]
    ]
    assert len(found) >= 12
    for call in found[part::4]:
        without = text[: begin + call.start()] + ";" + text[begin + call.end() :]
        runs = (multiplied(cluster, without, seed) for seed in range(12))
        assert any(run != (Report(0, "", ()), True) for run in runs), call[0]

"""What ``la.pipeline.schedule`` assumes: latency and occupancy of copies, the rate of ``wgmma``, barriers of warps.

One block runs alone. Every number is a difference of a long and a short loop of one thread or warpgroup by its clock.
*load*: one thread starts some copies of a box of so many rows of 128 bytes into one barrier and waits; the tile lies in
L2 from the second turn on. What another copy costs besides is its occupancy; the rest of one alone is latency.
*mma*: one or two warpgroups multiply by a chain of ``wgmma`` of zeros. *wait*: one waits for each of them.
*barrier*: two warps pass a turn back and forth.

``pipelines`` also writes ``pipeline_costs.json``, the entry for ``targets/pipeline_costs.json``.
"""

from __future__ import annotations

import json
import statistics
from typing import Any

import numpy as np
from device import Fault, Launch, MapAt, Run, cuda

from layoutalg.codegen.cuda import MAP_TYPE
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.prelude import PRELUDE, wgmma_prelude
from layoutalg.proofs.tensor import Tensor
from layoutalg.proofs.tensormap import TensorMapProblem
from layoutalg.synth import synthesize_tensormap
from layoutalg.targets.nvidia.wgmma import MatrixDescriptor
from layoutalg.targets.pipeline_costs import pipeline_costs

SHORT, LONG, TIMES = 16, 144, 9
ROWS, COPIES = (8, 32, 64, 128, 256), (1, 2, 4, 6)
SMEM_BYTES = 228 * 1024 - 2048
COLUMNS = (64, 128, 256)

LOAD = """
extern "C" __global__ void load_cost(
    {map} map, const unsigned char* tensor, long long* cycles, int rows, int copies, int turns)
{{
    unsigned char* base = la_aligned_shared(1024);
    la_u32 barrier = la_shared_address(base), data = barrier + 1024, parity = 0;
    if (threadIdx.x) return;
    la_mbarrier_init(barrier, 1);
    la_fence_async();
    long long begin = 0;
    for (int turn = -4; turn < turns; ++turn) {{
        if (turn == 0) begin = clock64();
        la_arrive_expect_tx(barrier, 128 * rows * copies);
        for (int copy = 0; copy < copies; ++copy)
            la_tma_load_2d(data + 128 * rows * copy, &map, barrier, 0, rows * copy);
        if (!la_wait_parity(barrier, parity)) return;
        parity ^= 1;
    }}
    cycles[0] = clock64() - begin;
}}
"""

MMA = """
extern "C" __global__ void mma_cost_{n}(long long* cycles, float* sink, int each, int turns)
{{
    unsigned char* base = la_aligned_shared(1024);
    for (int i = threadIdx.x; i < 16384; i += blockDim.x) ((la_u32*)base)[i] = 0;
    la_fence_async();
    __syncthreads();
    la_u64 a = {descriptor}ull + (la_shared_address(base) >> 4), b = a + 1024;
    float d[{registers}];
    for (int i = 0; i < {registers}; ++i) d[i] = 0;
    la_wgmma_fence();
    long long begin = clock64();
    if (each)
        for (int turn = 0; turn < turns; ++turn) {{
            la_wgmma_fence();
            la_wgmma_m64n{n}k16_bf16<0, 0>(d, a, b, 1);
            la_wgmma_commit();
            la_wgmma_wait();
        }}
    else
        for (int turn = 0; turn < turns; ++turn) la_wgmma_m64n{n}k16_bf16<0, 0>(d, a, b, 1);
    la_wgmma_commit();
    la_wgmma_wait();
    long long end = clock64();
    if (threadIdx.x % 128 == 0) cycles[threadIdx.x / 128] = end - begin;
    float sum = 0;
    for (int i = 0; i < {registers}; ++i) sum += d[i];
    sink[threadIdx.x] = sum;
}}
"""

BARRIER = """
__device__ __forceinline__ void bench_arrive(la_u32 barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}

extern "C" __global__ void barrier_cost(long long* cycles, int alone, int turns)
{
    la_u32 there = la_shared_address(la_aligned_shared(1024)), back = there + 8;
    if (threadIdx.x == 0) { la_mbarrier_init(there, 1); la_mbarrier_init(back, 1); }
    __syncthreads();
    long long begin = clock64();
    if (threadIdx.x == 0)
        for (int turn = 0; turn < turns; ++turn) {
            bench_arrive(there);
            if (!alone && !la_wait_parity(back, turn & 1)) return;
        }
    if (threadIdx.x == 32 && !alone)
        for (int turn = 0; turn < turns; ++turn) {
            if (!la_wait_parity(there, turn & 1)) return;
            bench_arrive(back);
        }
    if (threadIdx.x == 0) cycles[0] = clock64() - begin;
}
"""


def load_launch(rows: int, copies: int, turns: int) -> Launch:
    """Copies of a box of so many rows."""
    problem = TensorMapProblem.of(Tensor((4096, 64), None, "bf16"), (rows, 64), swizzle="128B")
    plan = synthesize_tensormap(problem)
    parameters = (
        (MAP_TYPE, "map"), ("const unsigned char*", "tensor"), ("long long*", "cycles"), ("int", "rows"),
        ("int", "copies"), ("int", "turns"),
    )  # fmt: skip
    kernel = KernelSource("load_cost", PRELUDE + LOAD.format(map=MAP_TYPE), "sm_90a", 32, SMEM_BYTES, parameters)
    data = np.zeros(4096 * 128, dtype=np.uint8)
    given = [MapAt(plan.raw, 1), data, np.zeros(1, dtype=np.int64), rows, copies, turns]
    return Launch(f"load {rows} {copies}", kernel, given, (2,))


def mma_launch(n: int, groups: int, turns: int, each: int = 0) -> Launch:
    """A chain of one instruction in so many warpgroups; with ``each`` every one is waited for."""
    descriptor = MatrixDescriptor(0, 16, 1024, 0, "128B").encode()
    text = PRELUDE + wgmma_prelude("bf16", n) + MMA.format(n=n, registers=n // 2, descriptor=descriptor)
    parameters = (("long long*", "cycles"), ("float*", "sink"), ("int", "each"), ("int", "turns"))
    kernel = KernelSource(f"mma_cost_{n}", text, "sm_90a", 128 * groups, 80 * 1024, parameters)
    given = [np.zeros(groups, dtype=np.int64), np.zeros(128 * groups, dtype=np.float32), each, turns]
    return Launch(f"mma {n} {groups}", kernel, given, (0,))


def wait_launch(n: int, turns: int) -> Launch:
    """The same in one warpgroup, which waits for every instruction."""
    return mma_launch(n, 1, turns, each=1)


def barrier_launch(alone: int, turns: int) -> Launch:
    """A turn passed between two warps, or arrivals alone."""
    parameters = (("long long*", "cycles"), ("int", "alone"), ("int", "turns"))
    kernel = KernelSource("barrier_cost", PRELUDE + BARRIER, "sm_90a", 64, 4096, parameters)
    return Launch(f"barrier {alone}", kernel, [np.zeros(1, dtype=np.int64), alone, turns], (0,))


LAUNCHES = {"load": load_launch, "mma": mma_launch, "wait": wait_launch, "barrier": barrier_launch}
CASES = [("load", (rows, copies)) for rows in ROWS for copies in COPIES if 128 * rows * copies <= SMEM_BYTES - 4096]
CASES += (
    [("mma", (n, groups)) for n in COLUMNS for groups in (1, 2)]
    + [("wait", (n,)) for n in COLUMNS]
    + [("barrier", (0,)), ("barrier", (1,))]
)


def run_case(case: tuple[str, tuple[int, ...]]) -> dict[str, Any]:
    """The cycles of a turn, and of a single one with its start and end."""
    kind, sizes = case

    def once(turns: int) -> int:
        one = LAUNCHES[kind](*sizes, turns)
        return int(max(next(iter(cuda().run(one).values()))))

    turn = statistics.median((once(LONG) - once(SHORT)) / (LONG - SHORT) for _ in range(TIMES))
    single = statistics.median(once(1) for _ in range(TIMES))
    return {"kind": kind, "sizes": sizes, "cycles": round(turn, 2), "single": single}


def fitted(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The entries of ``targets/pipeline_costs.json`` that were measured."""
    cycles = {(row["kind"], *row["sizes"]): row["cycles"] for row in rows if "cycles" in row}
    more = {}  # by rows: what one more copy costs
    for size in ROWS:
        counts = [copies for copies in COPIES if ("load", size, copies) in cycles]
        if len(counts) > 1:
            last, before = counts[-1], counts[-2]
            more[size] = (cycles["load", size, last] - cycles["load", size, before]) / (last - before)
    wide = max(more)
    per_kib = more[wide] / (wide / 8)
    sizes = np.array([size / 8 for size in ROWS])
    alone = np.array([cycles["load", size, 1] for size in ROWS]) - np.maximum(more[min(more)], per_kib * sizes)
    slope, base = np.polyfit(sizes, alone, 1)
    second = cycles["load", 64, 2] - cycles["load", 64, 1] - max(more[min(more)], per_kib * 8)
    rate = cycles["mma", 256, 2]
    round_trip, arrive = cycles["barrier", 0], cycles["barrier", 1]
    known = pipeline_costs("sm_90a").macs
    ratio = 2 * 64 * 256 * 16 / rate / known["bf16"]
    macs = dict(known) if abs(ratio - 1) < 0.02 else {name: round(each * ratio) for name, each in known.items()}
    waited = {"mma_latency": round(cycles["wait", 256] - 128, 1)} if ("wait", 256) in cycles else {}
    return waited | {
        "load_latency": round(float(base), 1),
        "load_latency_per_kib": round(max(0.0, float(slope)), 2),
        "load_latency_per_issue": round(max(0.0, float(second)), 1),
        "load_occupancy": round(float(more[min(more)]), 1),
        "load_occupancy_per_kib": round(float(per_kib), 2),
        "macs": macs,
        "arrive": round(min(arrive, round_trip / 2), 1),
        "wait": round(max(0.0, round_trip / 2 - arrive), 1),
    }


def pipelines_job(run: Run) -> None:
    """Run every case in one child; write the rows and the entry."""
    run.compile(LAUNCHES[kind](*sizes, SHORT).kernel for kind, sizes in CASES)
    answers = run.each(run_case, CASES, group=len(CASES), workers=1, seconds=run.options.seconds)
    rows = [{"kind": kind, "sizes": sizes, "error": answer.text} if isinstance(answer, Fault) else answer
            for (kind, sizes), answer in zip(CASES, answers, strict=True)]  # fmt: skip
    errors = sum("error" in row for row in rows)
    run.write("pipeline_costs_dev", {"cases": len(rows), "errors": errors}, rows=rows)
    if not errors:
        facts = run.facts()
        known = pipeline_costs("sm_90a").to_json()
        told = {"chip": str(facts["device"]).split(",")[0], "date": facts["date"], "evidence": "measured",
                "method": "benchmarks/device.py pipelines; stores and CUDA cores as documented or assumed"}  # fmt: skip
        entry = {"sm_90a": known | told | fitted(rows)}
        (run.out / "pipeline_costs.json").write_text(json.dumps(entry, indent=2) + "\n", encoding="utf-8")

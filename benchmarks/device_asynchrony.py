"""What the manuals leave open about asynchronous copies, fences and warpgroups, and copies by rank.

*pieces*: a phase expects half of the bytes of one copy; if a copy reported its bytes in pieces, the phase could
complete early. *store*: threads write a tile, one stores it by TMA; the proxy fence is the writers', the issuer's
alone, or missing; stale words are counted. *refill*: threads read a tile and one refills it by TMA, with and without
the fence between; words that are not the old ones are counted. *rendezvous*: the last warp of a warpgroup is late for
a multiply; when do the others come through the wait? *ranks*: copies of equal size by rank, in GB/s.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from device import Fault, Launch, MapAt, Run, cuda

from layoutalg.codegen.cuda import MAP_TYPE
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.kernels import copy_kernel
from layoutalg.codegen.portable import TENSOR_PRELUDE
from layoutalg.codegen.prelude import PIPELINE_PRELUDE, wgmma_prelude
from layoutalg.proofs.tensor import Tensor
from layoutalg.proofs.tensormap import TensorMapProblem
from layoutalg.synth import synthesize_tensormap
from layoutalg.targets.nvidia.wgmma import MatrixDescriptor

ROWS, COLUMNS, TILES = 64, 64, 64
WORDS = ROWS * COLUMNS
SMEM = 4 * WORDS + 2048
TRIALS = 4000
SHAPES = [(1 << 26,), (8192, 8192), (256, 512, 512), (64, 64, 128, 128), (16, 32, 32, 64, 64)]

PIECES = """
extern "C" __global__ void pieces({map} map, const la_u32* tensor, la_u32* early, int trials)
{{
    unsigned char* base = la_aligned_shared(1024);
    const la_u32 tile = la_shared_address(base), barriers = tile + 4 * {words};
    if (threadIdx.x) return;
    la_u32 found = 0;
    for (int i = 0; i < trials; ++i) {{
        const la_u32 barrier = barriers + 8 * (i % 64);
        if (i >= 64) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(barrier) : "memory");
        la_mbarrier_init(barrier, 1);
        la_arrive_expect_tx(barrier, 2 * {words});
        la_tma_load_2d(tile, &map, barrier, 0, {rows} * (i % {tiles}));
        bool passed = false;
        for (int spin = 0; spin < 400 && !passed; ++spin) {{
            la_u32 done;
            asm volatile("{{ .reg .pred p;\\n"
                         "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0;\\n"
                         "selp.u32 %0, 1, 0, p; }}" : "=r"(done) : "r"(barrier) : "memory");
            passed = done;
        }}
        found += passed;
        if (!passed) {{ la_expect_tx(barrier, 2 * {words}); la_wait_parity(barrier, 0); }}
        else __nanosleep(4000);
    }}
    early[blockIdx.x] = found;
}}
"""
STORE = """
extern "C" __global__ void store_{fence}({map} map, la_u32* tensor, la_u32* stale, int trials)
{{
    unsigned char* base = la_aligned_shared(1024);
    const la_u32 tile = la_shared_address(base);
    la_u32* const words = (la_u32*)base;
    la_u32 wrong = 0;
    for (int i = 0; i < trials; ++i) {{
        for (int j = threadIdx.x; j < {words}; j += 128) words[j] = i * {words} + j + (blockIdx.x << 26);
        {before}
        __syncthreads();
        if (threadIdx.x == 0) {{
            {after}
            la_tma_store_2d(&map, tile, 0, {rows} * (int)blockIdx.x);
            la_store_commit();
            la_store_wait();
            __threadfence();
        }}
        __syncthreads();
        volatile la_u32* const there = tensor + blockIdx.x * {words};
        for (int j = threadIdx.x; j < {words}; j += 128) wrong += there[j] != i * {words} + j + (blockIdx.x << 26);
        __syncthreads();
    }}
    atomicAdd(stale + blockIdx.x, wrong);
}}
"""
REFILL = """
extern "C" __global__ void refill_{fence}({map} map, const la_u32* tensor, la_u32* stale, int trials)
{{
    unsigned char* base = la_aligned_shared(1024);
    const la_u32 tile = la_shared_address(base), barrier = tile + 4 * {words};
    la_u32* const words = (la_u32*)base;
    if (threadIdx.x == 0) la_mbarrier_init(barrier, 1);
    __syncthreads();
    la_u32 wrong = 0;
    for (int i = 0; i < trials; ++i) {{
        if (threadIdx.x == 0) {{
            la_arrive_expect_tx(barrier, 4 * {words});
            la_tma_load_2d(tile, &map, barrier, 0, {rows} * (i % {tiles}));
        }}
        la_wait_parity(barrier, i & 1);
        la_u32 sum = 0;
        #pragma unroll 8
        for (int j = threadIdx.x; j < {words}; j += 128) sum |= words[j] ^ (i % {tiles} * {words} + j);
        wrong += sum != 0;
        {before}
        __syncthreads();
    }}
    atomicAdd(stale + blockIdx.x, wrong);
}}
"""
RENDEZVOUS = """
extern "C" __global__ void rendezvous(la_u32* ends, float* sink, int delay)
{{
    unsigned char* base = la_aligned_shared(1024);
    for (int i = threadIdx.x; i < 8192; i += 128) ((la_u32*)base)[i] = 0;
    la_fence_async();
    __syncthreads();
    const la_u64 a = {descriptor}ull + (la_shared_address(base) >> 4), b = a + 512;
    float d[32];
    for (int i = 0; i < 32; ++i) d[i] = 0;
    const long long begin = clock64();
    if (threadIdx.x / 32 == 3) while (clock64() - begin < delay) {{}}
    la_wgmma_fence();
    la_wgmma_m64n64k16_bf16<0, 0>(d, a, b, 1);
    la_wgmma_commit();
    la_wgmma_wait();
    const long long end = clock64();
    if (threadIdx.x % 32 == 0) ends[threadIdx.x / 32] = (la_u32)(end - begin);
    float sum = 0;
    for (int i = 0; i < 32; ++i) sum += d[i];
    sink[threadIdx.x] = sum;
}}
"""
BLOCKS = 64
FENCES = {"writers": ("la_fence_async();", ""), "issuer": ("", "la_fence_async();"), "none": ("", "")}


def text(form: str, **fields: object) -> str:
    """Return a kernel's text behind its preludes."""
    known = {"map": MAP_TYPE, "words": WORDS, "rows": ROWS, "tiles": TILES} | fields
    return TENSOR_PRELUDE + PIPELINE_PRELUDE + form.format(**known)


def plan(direction: str) -> Any:
    """A tile of 64 x 64 words of a tensor of 64 tiles."""
    tensor = Tensor((ROWS * TILES, COLUMNS), None, "u32")
    return synthesize_tensormap(TensorMapProblem.of(tensor, (ROWS, COLUMNS), direction=direction, swizzle="NONE"))


def launches() -> list[Launch]:
    """Every probe."""
    parameters = ((MAP_TYPE, "map"), ("la_u32*", "tensor"), ("la_u32*", "found"), ("int", "trials"))
    data, zero = np.arange(TILES * WORDS, dtype=np.uint32), np.zeros(BLOCKS, dtype=np.uint32)
    found = []

    def add(name: str, form: str, direction: str, threads: int, **fields: object) -> None:
        kernel = KernelSource(name, text(form, **fields), "sm_90a", threads, SMEM, parameters)
        given = [MapAt(plan(direction).raw, 1), data, zero, TRIALS]
        found.append(Launch(name, kernel, given, (2,), BLOCKS))

    add("pieces", PIECES, "load", 32)
    for fence, (before, after) in FENCES.items():
        add(f"store_{fence}", STORE, "store", 128, fence=fence, before=before, after=after)
    for fence in ("writers", "none"):
        add(f"refill_{fence}", REFILL, "load", 128, fence=fence, before=FENCES[fence][0])
    descriptor = MatrixDescriptor(0, 16, 1024, 0, "128B").encode()
    kernel = KernelSource(
        "rendezvous", text(wgmma_prelude("bf16", 64).replace("{", "{{").replace("}", "}}") + RENDEZVOUS,
                           descriptor=descriptor), "sm_90a", 128, 40 * 1024,
        (("la_u32*", "ends"), ("float*", "sink"), ("int", "delay")),
    )  # fmt: skip
    for delay in (0, 20000, 200000):
        given = [np.zeros(4, dtype=np.uint32), np.zeros(128, dtype=np.float32), delay]
        found.append(Launch(f"rendezvous {delay}", kernel, given, (0,)))
    return found


def run_rank(shape: tuple[int, ...]) -> dict[str, Any]:
    """The bandwidth of a copy by the copy engine, beside the driver's."""
    from device_kernels import Case, device

    made = copy_kernel(shape, "f32", way="tma")
    from layoutalg.codegen.compile import to_cubin

    torch = device().torch
    source = torch.empty(shape, dtype=torch.int32, device="cuda").random_(0, 1 << 30)
    result = torch.empty_like(source)
    row = device().run(made, to_cubin(made.kernel), Case(source, result, source))
    memcpy = device().references(shape, source, result)["memcpy"]
    return {"shape": shape, "equal": row["equal"], "gbps": row["gbps"], "of_memcpy": memcpy / row["ms"]}


def run_probe(job: Launch) -> list[int]:
    """The counts of one probe."""
    return [int(value) for value in next(iter(cuda().run(job).values()))]


def asynchrony_job(run: Run) -> None:
    """Run every probe in a child of its own, and the copies."""
    jobs = launches()
    run.compile([job.kernel for job in jobs])
    answers = run.each(run_probe, jobs, alone=[True] * len(jobs), seconds=60)
    ranks = run.each(run_rank, SHAPES, group=len(SHAPES), workers=1, seconds=90)
    rows = [{"probe": job.name, **({"fault": found.text} if isinstance(found, Fault) else {"counts": found})}
            for job, found in zip(jobs, answers, strict=True)]  # fmt: skip
    copies = [{"fault": found.text} if isinstance(found, Fault) else found for found in ranks]
    summary = {row["probe"]: row.get("fault") or (row["counts"] if "rendezvous" in row["probe"] else sum(row["counts"]))
               for row in rows}  # fmt: skip
    run.write("asynchrony_dev", {"trials": TRIALS * BLOCKS, **summary}, rows=rows, ranks=copies)

"""Jobs that ask a device about copies of runs of bytes (``cp.async.bulk``) and multicast loads of tiles.

Notation: block b of a cluster has its image at row b; blocks that the mask leaves out must stay as they were.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from device import Launch, MapAt
from device_accesses import POISON, WIDTHS, table_of, tile_of

import layoutalg as la
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.prelude import PRELUDE

SMEM_BYTES = 66 * 1024
SPINS = 1 << 20

_LOAD = """
extern "C" __global__ void {cluster}__launch_bounds__(128) {name}({map}const unsigned char* memory,
    const int* copies, int count, int expect, int mask, unsigned char* image, int bytes, int* status)
{{
    __shared__ __align__(8) la_u64 bars[1];
    unsigned char* tile = la_aligned_shared(1024);
    const la_u32 bar = la_shared_address(bars), base = la_shared_address(tile);
    la_u32 rank;
    asm volatile("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
    for (int i = threadIdx.x; i < bytes; i += 128) tile[i] = 0xEE;
    const bool heard = mask >> rank & 1;
    if (threadIdx.x == 0) {{
        la_mbarrier_init(bar, 1);
        if (heard) la_arrive_expect_tx(bar, expect);
    }}
    la_fence_async();
    __syncthreads();
    asm volatile("barrier.cluster.arrive.aligned;\\nbarrier.cluster.wait.aligned;" ::: "memory");
    const unsigned short receivers = (unsigned short)mask;
    if (threadIdx.x == 0)
        for (int q = 0; q < count; ++q) {{
            const int* head = copies + 8 * q;
            if (head[7] != rank) continue;
            {issue}
        }}
    bool done = !heard || la_wait_parity(bar, 0);
    __syncthreads();
    for (int i = threadIdx.x; i < bytes; i += 128) image[(la_u64)bytes * blockIdx.x + i] = tile[i];
    if (threadIdx.x == 0) status[blockIdx.x] = done ? 1 : 2;
    asm volatile("barrier.cluster.arrive.aligned;\\nbarrier.cluster.wait.aligned;" ::: "memory");
}}
"""

_STORE = """
extern "C" __global__ void __launch_bounds__(128) {name}(unsigned char* memory, const int* copies, int count,
    const unsigned char* image, int bytes, int* status)
{{
    unsigned char* tile = la_aligned_shared(1024);
    const la_u32 base = la_shared_address(tile);
    for (int i = threadIdx.x; i < bytes; i += 128) tile[i] = image[i];
    la_fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {{
        for (int q = 0; q < count; ++q) {{
            const int* head = copies + 8 * q;
            asm volatile("{instruction} [%0], [%1], %2;"
                         :: "l"(memory + head[0]), "r"(base + head[1]), "r"(head[2]) : "memory");
        }}
        la_store_commit();
        la_store_wait();
        status[0] = 1;
    }}
}}
"""

_RUN = (
    'asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{cast} [%0], [%1], %2, [%3]{mask};"'
    ' :: "r"(base + head[1]), "l"(memory + head[0]), "r"(head[2]), "r"(bar){value} : "memory");'
)


def load_kernel(kind: str, ctas: int = 1) -> KernelSource:
    """Return the kernel that loads runs (``kind`` is ``bulk``) or boxes of a map of some rank (``1`` to ``5``).

    Its ``copies`` are eight integers each: of a run: global byte, shared byte, size; of a box: shared byte and start
    coordinates; then the block of the cluster that issues it, last.
    """
    many = ctas > 1
    name = f"la_form_load_{kind}_{ctas}"
    if kind == "bulk":
        issue = _RUN.format(
            cast=".multicast::cluster" if many else "", mask=", %4" if many else "",
            value=', "h"(receivers)' if many else "",
        )  # fmt: skip
    else:
        rank = int(kind)
        slots = ", ".join(f"%{3 + j}" for j in range(rank))
        values = ", ".join(f'"r"(head[{1 + j}])' for j in range(rank))
        cast = ".multicast::cluster" if many else ""
        tail = f", %{3 + rank}" if many else ""
        issue = (
            f'asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{cast}'
            f' [%0], [%1, {{{slots}}}], [%2]{tail};" :: "r"(base + head[0]), "l"(&map), "r"(bar), {values}'
            + (', "h"(receivers)' if many else "") + ' : "memory");'
        )  # fmt: skip
    boxes = kind != "bulk"
    text = _LOAD.format(
        cluster=f"__cluster_dims__({ctas}, 1, 1) " if many else "", name=name, issue=issue,
        map="const __grid_constant__ la_tensor_map map, " if boxes else "",
    )  # fmt: skip
    parameters = (
        *((("const __grid_constant__ la_tensor_map", "map"),) if boxes else ()), ("const unsigned char*", "memory"),
        ("const int*", "copies"), ("int", "count"), ("int", "expect"), ("int", "mask"), ("unsigned char*", "image"),
        ("int", "bytes"), ("int*", "status"),
    )  # fmt: skip
    return KernelSource(name, PRELUDE + text, "sm_90a", 128, SMEM_BYTES, parameters)


def runs_kernel(instruction: str) -> KernelSource:
    """Return the kernel (memory, copies, count, image, bytes, status) that stores or adds runs of shared memory."""
    tail = instruction.partition("bulk_group")[2].replace(".", "_")
    name = f"la_form_runs{tail}"
    parameters = (
        ("unsigned char*", "memory"), ("const int*", "copies"), ("int", "count"), ("const unsigned char*", "image"),
        ("int", "bytes"), ("int*", "status"),
    )  # fmt: skip
    text = PRELUDE + _STORE.format(name=name, instruction=instruction)
    return KernelSource(name, text, "sm_90a", 128, SMEM_BYTES, parameters)


def copies_table(rows: Sequence[Sequence[int]], issuers: Sequence[int]) -> np.ndarray:
    """Return the copies as the kernels take them."""
    table = np.zeros((len(rows), 8), dtype=np.int32)
    for at, (row, issuer) in enumerate(zip(rows, issuers, strict=True)):
        table[at, : len(row)] = row
        table[at, 7] = issuer
    return table


def random_tensor(rng: random.Random, dtype: str, extents: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return a shape of whole tiles, and strides whose rows start at multiples of 16 bytes."""
    unit = max(1, 16 // WIDTHS[dtype])
    shape = (extents[0] * rng.choice([1, 2]), extents[1] * rng.choice([1, 2, 3]))
    return shape, (-(-shape[1] // unit) * unit + unit * rng.choice([0, 1, 4]), 1)


def bulk_jobs(plans: int, seed: int) -> list[Launch]:
    """Return admitted plans of ``bulk``, ``bulk.multicast`` and ``bulk.store``, and runs that the rules refuse."""
    jobs = []
    rng = random.Random(seed)
    for consumer in ("bulk", "bulk.store", "bulk.multicast"):
        made = tried = 0
        while made < plans and tried < 100 * plans:
            tried += 1
            dtype = rng.choice(list(WIDTHS))
            size = WIDTHS[dtype]
            layout, extents = tile_of(rng, size)
            shape, strides = random_tensor(rng, dtype, extents)
            ctas = rng.choice([2, 4]) if consumer == "bulk.multicast" else 1
            options = {"ctas": ctas} if ctas > 1 else {}
            answer = la.admissible(
                layout, consumer, dtype=dtype, tile=extents, tensor=(shape, strides, dtype), **options
            )
            if not isinstance(answer, la.Admitted) or len(answer.descriptor.copies) > 400:
                continue
            made += 1
            table = table_of(layout, extents)
            origin = [extent * rng.randrange(whole // extent) for extent, whole in zip(extents, shape, strict=True)]
            job = _bulk(consumer, answer.descriptor, table, strides, origin, size, ctas, rng.randrange(2**32))
            job.facts |= {"dtype": dtype, "layout": str(layout)[:120], "ctas": ctas}
            jobs.append(job)
    for direction in ("load", "store"):
        for what, copy in (
            ("size 8", (0, 0, 8)), ("size 24", (0, 0, 24)), ("size 17", (0, 0, 17)), ("size 0", (0, 0, 0)),
            ("shared address 8 bytes off", (0, 8, 32)), ("shared address 4 bytes off", (0, 4, 32)),
            ("global address 8 bytes off", (8, 0, 32)), ("global address 4 bytes off", (4, 0, 32)),
        ):  # fmt: skip
            jobs.append(_refused_run(direction, what, copy))
    return jobs


def _bulk(
    consumer: str, plan: la.proofs.bulk.BulkPlan, table: np.ndarray, strides: tuple[int, int], origin: list[int],
    size: int, ctas: int, seed: int,
) -> Launch:  # fmt: skip
    random_bytes = np.random.default_rng(seed)
    points = np.indices(table.shape)
    start = (origin[0] * strides[0] + origin[1]) * size
    held = start + (points[0] * strides[0] + points[1]) * size
    reach = -(-int((table.max() + 1) * size) // 16) * 16
    copies = [(start + source, to, many) for source, to, many in plan.copies]
    facts = {"instruction": plan.instruction, "kind": "admitted", "copies": len(copies)}
    status = np.zeros(max(ctas, 1), dtype=np.int32)
    memory = random_bytes.integers(0, 256, int(held.max()) + 64, dtype=np.uint8)
    if consumer == "bulk.store":
        image = random_bytes.integers(0, 256, reach, dtype=np.uint8)
        expected = memory.copy()
        for byte in range(size):
            expected[held + byte] = image[table * size + byte]
        arguments = [memory, copies_table(copies, [0] * len(copies)), len(copies), image, reach, status]
        return Launch(
            consumer, runs_kernel(plan.instruction), arguments, (0, 5), 1, {0: expected, 5: status + 1}, facts
        )
    mask = 1 if ctas == 1 else int(random_bytes.integers(1, 1 << ctas))
    issuers = random_bytes.integers(0, ctas, len(copies)).tolist()
    images = np.full((ctas, reach), POISON, dtype=np.uint8)
    for block in range(ctas):
        if mask >> block & 1:
            for byte in range(size):
                images[block, table * size + byte] = memory[held + byte]
    facts["mask"] = mask
    arguments = [memory, copies_table(copies, issuers), len(copies), plan.expect_tx_bytes, mask,
                 np.zeros((ctas, reach), dtype=np.uint8), reach, status]  # fmt: skip
    return Launch(consumer, load_kernel("bulk", ctas), arguments, (5, 7), ctas, {5: images, 7: status + 1}, facts)


def _refused_run(direction: str, what: str, copy: tuple[int, int, int]) -> Launch:
    facts = {"instruction": f"cp.async.bulk, {direction}", "kind": "refused", "what": what}
    status = np.zeros(1, dtype=np.int32)
    source = (np.arange(4096) % 199 + 1).astype(np.uint8)
    if direction == "load":
        arguments = [source, copies_table([copy], [0]), 1, copy[2], 1, np.zeros(256, dtype=np.uint8), 256, status]
        return Launch(f"bulk load {what}", load_kernel("bulk"), arguments, (7, 5), 1, None, facts, True)
    instruction = "cp.async.bulk.global.shared::cta.bulk_group"
    arguments = [np.full(4096, POISON, dtype=np.uint8), copies_table([copy], [0]), 1, source, 4096, status]
    return Launch(f"bulk store {what}", runs_kernel(instruction), arguments, (5, 0), 1, None, facts, True)


def multicast_jobs(plans: int, seed: int) -> list[Launch]:
    """Return admitted plans of ``tma.multicast`` for clusters of 2 and 4, random masks and issuing blocks."""
    jobs = []
    rng = random.Random(seed)
    tried = 0
    while len(jobs) < plans and tried < 60 * plans:
        tried += 1
        dtype = rng.choice(["u8", "f16", "f32", "f64"])
        size = WIDTHS[dtype]
        if rng.random() < 0.5:
            columns = 128 // size
            swizzle = f"Sw<{rng.choice([1, 2, 3])},{(16 // size).bit_length() - 1},3>"
            layout, extents = la.parse(f"{swizzle} o 0 o (32,{columns}):({columns},1)"), (32, columns)
        else:
            layout, extents = tile_of(rng, size)
        shape, strides = random_tensor(rng, dtype, extents)
        answer = la.admissible(layout, "tma.multicast", dtype=dtype, tile=extents, tensor=(shape, strides, dtype))
        if not isinstance(answer, la.Admitted):
            continue
        plan = answer.descriptor
        table = table_of(layout, extents)
        reach = -(-int((table.max() + 1) * size) // 16) * 16
        if reach > SMEM_BYTES - 2048 or len(plan.issues) > 400:
            continue
        random_bytes = np.random.default_rng(rng.randrange(2**32))
        origin = [extent * rng.randrange(whole // extent) for extent, whole in zip(extents, shape, strict=True)]
        ctas = rng.choice([2, 4])
        mask = rng.randrange(1, 1 << ctas)
        memory = random_bytes.integers(0, 256, -(-shape[0] * strides[0] * size // 16) * 16, dtype=np.uint8)
        points = np.indices(extents)
        held = ((points[0] + origin[0]) * strides[0] + points[1] + origin[1]) * size
        images = np.full((ctas, reach), POISON, dtype=np.uint8)
        for block in range(ctas):
            if mask >> block & 1:
                for byte in range(size):
                    images[block, table * size + byte] = memory[held + byte]
        starts = plan.coordinates(origin)
        rows = [
            (issue.smem_offset_bytes, *coords) for issue, coords in zip(plan.issues, starts, strict=True)
        ]  # fmt: skip
        copies = copies_table(rows, [rng.randrange(ctas) for _ in rows])
        status = np.zeros(ctas, dtype=np.int32)
        arguments = [MapAt(plan.raw, 1), memory, copies, len(rows), plan.expect_tx_bytes, mask,
                     np.zeros((ctas, reach), dtype=np.uint8), reach, status]  # fmt: skip
        kernel = load_kernel(str(len(plan.tensor_map.box)), ctas)
        facts = {"instruction": "cp.async.bulk.tensor, multicast", "kind": "admitted", "ctas": ctas, "mask": mask,
                 "dtype": dtype, "layout": str(layout)[:120], "copies": len(rows)}  # fmt: skip
        jobs.append(Launch("tma.multicast", kernel, arguments, (6, 8), ctas, {6: images, 8: status + 1}, facts))
    return jobs

"""Jobs that ask a device about loads, stores, ``st.async`` and ``cp.async`` of every width: admitted plans and faults.

Notation: ``expected`` comes from the layouts that were asked for, not from the plan's addresses.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
from device import Launch
from device_accesses import POISON, SMEM_BYTES, WIDTHS, move_launches, table_of, tile_of

import layoutalg as la
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.prelude import PRELUDE
from layoutalg.targets.nvidia.accesses import FORMS, access_form

VECTORS = [name for name in FORMS if name.startswith(("ld.shared.", "st.shared.", "st.async."))]
COPIES = [name for name in FORMS if name.startswith("cp.async.")]
REGISTERS = {8: ("unsigned", "r", "unsigned char"), 16: ("unsigned short", "h", "unsigned short"),
             32: ("unsigned", "r", "unsigned"), 64: ("la_u64", "l", "la_u64")}  # fmt: skip

_MOVE = """
extern "C" __global__ void {cluster}__launch_bounds__(32) {name}({image_type} image, const int* addresses,
    {words_type} words, int count, int bytes)
{{
    const la_u32 base = la_shared_address(la_shared());
    for (int i = threadIdx.x; i < bytes; i += 32) la_shared()[i] = {initial};
    __syncwarp();
    {begin}
    for (int n = 0; n < count; ++n) {{
        const la_u32 address = base + addresses[32 * n + threadIdx.x];
        {type} w[{many}];
        for (int v = 0; v < {many}; ++v) w[v] = (({kept}*)words)[(32 * n + threadIdx.x) * {many} + v];
        {statement}
        {out}
    }}
    __syncwarp();
    {back}
}}
"""

_CLUSTER = """__shared__ la_u64 barrier;
    la_u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    const la_u32 done = la_shared_address(&barrier);
    if (threadIdx.x == 0) la_mbarrier_init(done, 1);
    asm volatile("barrier.cluster.arrive.aligned;\\nbarrier.cluster.wait.aligned;" ::: "memory");"""
_REMOTE = """la_u32 there, counts;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank ^ 1));
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(counts) : "r"(done), "r"(rank ^ 1));
        if (threadIdx.x == 0) la_arrive_expect_tx(done, {bytes});
        __syncwarp();
        asm volatile("{text}" :: "r"(there), {operands}, "r"(counts) : "memory");
        if (!la_wait_parity(done, n & 1)) return;"""
"""st.async: two blocks of a cluster fill each other's shared memory; a barrier counts the bytes that arrive."""

_COPY = """
extern "C" __global__ void __launch_bounds__(32) {name}(const unsigned char* memory, const int* shared_bytes,
    const int* global_bytes, const int* source_bytes, unsigned char* image, int count, int bytes)
{{
    const la_u32 base = la_shared_address(la_shared());
    for (int i = threadIdx.x; i < bytes; i += 32) la_shared()[i] = 0xEE;
    __syncwarp();
    for (int n = 0; n < count; ++n) {{
        const int at = 32 * n + threadIdx.x;
        asm volatile("cp.async.{cache}.shared.global [%0], [%1], {size}, %2;"
                     :: "r"(base + shared_bytes[at]), "l"(memory + global_bytes[at]), "r"(source_bytes[at]) : "memory");
    }}
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncwarp();
    for (int i = threadIdx.x; i < bytes; i += 32) image[i] = la_shared()[i];
}}
"""


def move_kernel(name: str) -> KernelSource:
    """Return the kernel (image, addresses, words, count, bytes) of a load or store, with registers of its own width."""
    form = access_form(name)
    bits = int(name.rpartition(".b")[2])
    count = form.row_bits // bits
    width, wide = (64, 2) if bits == 128 else (bits, count)
    kind, letter, kept = REGISTERS[width]
    first = int(form.store)
    slots = [f"%{first + v}" for v in range(wide)]
    group = slots[0] if count == 1 else "{" + ", ".join(slots) + "}"
    address = f"[%{0 if form.store else wide}]"
    if bits == 128:
        pair = "{" + ", ".join(slots) + "}"
        body = (
            f"mov.b128 x, {pair}; {name} {address}, x;" if form.store else f"{name} x, {address}; mov.b128 {pair}, x;"
        )
        text = f"{{ .reg .b128 x; {body} }}"
    else:
        text = f"{name} {address}, {group};" if form.store else f"{name} {group}, {address};"
    operands = ", ".join(f'"{"" if form.store else "="}{letter}"(w[{v}])' for v in range(wide))
    given = '"r"(address)'
    sides = f":: {given}, {operands}" if form.store else f": {operands} : {given}"
    symbol = "la_form_" + name.replace(".", "_")
    store = form.store
    made = f'asm volatile("{text}" {sides} : "memory");'
    if remote := name.startswith("st.async"):
        full = name.replace("st.async", "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes")
        text = f"{full} [%0], {group}, [%{1 + wide}];"
        made = _REMOTE.format(bytes=4 * form.row_bits, text=text, operands=operands)
    body = _MOVE.format(
        name=symbol, type=kind, kept=kept, many=wide, statement=made, begin=_CLUSTER if remote else "",
        cluster="__cluster_dims__(2, 1, 1) " if remote else "",
        image_type="unsigned char*" if store else "const unsigned char*",
        words_type="const unsigned char*" if store else "unsigned char*",
        initial="0xEE" if store else "image[i]",
        out="" if store else f"for (int v = 0; v < {wide}; ++v) "
            f"(({kept}*)words)[(32 * n + threadIdx.x) * {wide} + v] = ({kept})w[v];",
        back="for (int i = threadIdx.x; i < bytes; i += 32) image[i] = la_shared()[i];" if store else "",
    )  # fmt: skip
    parameters = (
        ("unsigned char*" if store else "const unsigned char*", "image"), ("const int*", "addresses"),
        ("const unsigned char*" if store else "unsigned char*", "words"), ("int", "count"), ("int", "bytes"),
    )  # fmt: skip
    return KernelSource(symbol, PRELUDE + body, "sm_90a", 32, SMEM_BYTES, parameters)


def copy_kernel(name: str) -> KernelSource:
    """Return the kernel (memory, shared_bytes, global_bytes, source_bytes, image, count, bytes) of a ``cp.async``."""
    cache, size = name.split(".")[2:]
    symbol = "la_form_" + name.replace(".", "_")
    parameters = (
        ("const unsigned char*", "memory"), ("const int*", "shared_bytes"), ("const int*", "global_bytes"),
        ("const int*", "source_bytes"), ("unsigned char*", "image"), ("int", "count"), ("int", "bytes"),
    )  # fmt: skip
    body = _COPY.format(name=symbol, cache=cache, size=size)
    return KernelSource(symbol, PRELUDE + body, "sm_90a", 32, SMEM_BYTES, parameters)


def move_jobs(plans: int, seed: int) -> list[Launch]:
    """Return admitted plans of every load and store of shared memory, and their instructions at wrong addresses."""
    jobs: list[Launch] = []
    for number, name in enumerate(VECTORS):
        size = access_form(name).row_bits // 8
        made = [*move_launches(name, plans, 1000 * seed + number, size, move_kernel(name))]
        made += [_misplaced(name, off) for off in (1, 2, 4, 8) if off < size]
        jobs += [replace(one, blocks=2) for one in made] if name.startswith("st.async") else made
    return jobs


def _misplaced(name: str, off: int) -> Launch:
    """Return the instruction with every address that many bytes behind a multiple of its size: refused by the rules."""
    size = access_form(name).row_bits // 8
    image = np.arange(4096, dtype=np.uint8)
    addresses = (size * np.arange(32) + off).astype(np.int32)[None]
    arguments = [image, addresses, np.zeros((1, 32, size), dtype=np.uint8), 1, 4096]
    facts = {"instruction": name, "kind": "refused", "what": f"address {off} bytes off a multiple of {size}"}
    return Launch(f"misplaced {name} {off}", move_kernel(name), arguments, (0, 2), 1, None, facts, True)


def copy_jobs(plans: int, seed: int) -> list[Launch]:
    """Return admitted plans of every ``cp.async``, half of them with zeros behind an edge, and wrong addresses."""
    jobs = []
    for number, name in enumerate(COPIES):
        rng = random.Random(2000 * seed + number)
        made = tried = 0
        while made < plans and tried < 200 * plans:
            tried += 1
            dtype = rng.choice(["u8", "f16", "f32", "f64"])
            size = WIDTHS[dtype]
            layout, extents = tile_of(rng, size)
            rows, columns = extents
            unit = max(1, 16 // size)
            pitch = columns + unit * rng.randrange(3) if rng.random() < 0.8 else columns + rng.randrange(4)
            source = la.CuteLayout((rows, columns), (pitch, 1))
            bounds = (rows - rng.choice([0, 3]), columns - rng.choice([0, 1, 5, columns])) if made % 2 else extents
            options = {"global": source, "bounds": bounds}
            answer = la.admissible(layout, name, dtype=dtype, tile=extents, **options)
            if not isinstance(answer, la.Admitted):
                continue
            made += 1
            jobs.append(_copied(name, answer.descriptor, layout, extents, bounds, size, pitch, rng.randrange(2**32)))
            jobs[-1].facts |= {"dtype": dtype, "layout": str(layout)[:120], "pitch": pitch}
        width = int(name.rpartition(".")[2])
        for side in ("shared", "global"):
            jobs += [_copy_misplaced(name, side, off, width) for off in (1, 2, 4, 8) if off < width]
        jobs += [_copy_sized(name, many, width) for many in (0, 1, 3, width - 1, width, width + 1)]
    return jobs


def _copied(
    name: str, plan: Any, layout: Any, extents: tuple[int, int], bounds: tuple[int, int], size: int, pitch: int,
    seed: int,
) -> Launch:  # fmt: skip
    table = table_of(layout, extents)
    points = np.indices(extents)
    held = (points[0] * pitch + points[1]) * size
    memory = np.random.default_rng(seed).integers(0, 256, int(held.max()) + 64, dtype=np.uint8)
    reach = -(-int((table.max() + 1) * size) // 16) * 16
    image = np.full(reach, POISON, dtype=np.uint8)
    inside = (points[0] < bounds[0]) & (points[1] < bounds[1])
    for byte in range(size):
        image[table * size + byte] = np.where(inside, memory[held + byte], 0)
    shared = np.asarray(plan.addresses.table()).reshape(32, -1, order="F").T.astype(np.int32)
    source = np.asarray(plan.global_bytes.table()).reshape(32, -1, order="F").T.astype(np.int32)
    width = int(name.rpartition(".")[2])
    given = np.array(plan.source_bytes or [width] * shared.size, dtype=np.int32).reshape(shared.shape)
    arguments = [memory, shared, source, given, np.zeros(reach, dtype=np.uint8), len(shared), reach]
    facts = {"instruction": name, "kind": "admitted", "bounds": list(bounds), "extents": list(extents)}
    facts["filled"] = int((given < width).sum())
    return Launch(f"copy {name}", copy_kernel(name), arguments, (4,), 1, {4: image}, facts)


def _copy_misplaced(name: str, side: str, off: int, width: int) -> Launch:
    places = (width * np.arange(32)).astype(np.int32)[None]
    shared, source = (places + (off if side == one else 0) for one in ("shared", "global"))
    memory, image = np.arange(4096, dtype=np.uint8), np.zeros(4096, dtype=np.uint8)
    arguments = [memory, shared, source, np.full_like(places, width), image, 1, 4096]
    facts = {"instruction": name, "kind": "refused", "what": f"{side} address {off} bytes off a multiple of {width}"}
    return Launch(f"copy misplaced {name} {side} {off}", copy_kernel(name), arguments, (4,), 1, None, facts, True)


def _copy_sized(name: str, many: int, width: int) -> Launch:
    """Return one copy with a source size: what is behind it is zero; a size above the copy's is not allowed."""
    places = (width * np.arange(32)).astype(np.int32)[None]
    memory, image = (np.arange(4096) % 251 + 1).astype(np.uint8), np.full(4096, POISON, dtype=np.uint8)
    cells = image[: 32 * width].reshape(32, width)
    cells[:] = 0
    kept = min(many, width)
    cells[:, :kept] = memory[: 32 * width].reshape(32, width)[:, :kept]
    arguments = [memory, places, places, np.full_like(places, many), np.zeros(4096, dtype=np.uint8), 1, 4096]
    legal = many <= width
    facts = {"instruction": name, "kind": "sized" if legal else "refused", "what": f"source size {many} of {width}"}
    expected = {4: image} if legal else None
    return Launch(f"copy sized {name} {many}", copy_kernel(name), arguments, (4,), 1, expected, facts, not legal)

"""The less travelled modes of tensor maps: im2col, im2col-wide and interleave; the driver's verdicts, loads and stores.

Notation: ``params`` of im2col holds 29 numbers: data type, rank, base, dim0..4, stride1..4 (bytes), lower corner 0..2,
upper corner 0..2, channels, pixels, element stride 0..4, interleave, swizzle, L2 promotion, fill; of tiled maps the 26
of ``device_copies``. Unused entries are -1 (corners: 0). Everything is innermost first.

Implementation notes: word i of the source holds 0x40000000 + i, so that an image tells which word came where. The
barrier of a load waits for two arrivals that come late, and its raw state is read before and after the load, so that
the bytes that the engine counted are known even where the prediction was wrong. The prediction of a store is the load
read backwards: each pixel, or slice, inside the tensor is written, in whole chunks of 16 bytes where the channels end
inside one.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import numpy as np
from device import Encoder, Fault, Run, cuda
from device_copies import ELEMENT_BYTES, FLOATS, SPAN

from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.prelude import PRELUDE
from layoutalg.targets.nvidia import im2col, tensormap
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap import batch
from layoutalg.targets.nvidia.tensormap.execute import interleaved_places
from layoutalg.targets.nvidia.tensormap.fields import DTYPES, INTERLEAVE_CODES, L2_PROMOTION_CODES, OOB_FILL_CODES

Case = dict[str, Any]
IMAGE_BYTES = 16384
ROOM_BYTES = 160 * 1024
BUFFER_WORDS = 1 << 24
HOME = 1 << 24  # bytes from the buffer's start to the tensor's base
HEAD_INTS = 12
NOTES = 8
WINDOW_BYTES = 40960  # global memory that a store may touch
MARGIN = 4096  # bytes from the window's start to the tensor's base
SOURCE_BYTES = 32768
POISON = 0xA5
_SPATIAL = 2
CORNERS = {3: (-32768, 32767), 4: (-128, 127), 5: (-16, 15)}

_LOAD = """
{prelude}
__device__ __forceinline__ la_u64 state(la_u32 barrier)
{{
    la_u64 value;
    asm volatile("ld.volatile.shared.b64 %0, [%1];" : "=l"(value) : "r"(barrier) : "memory");
    return value;
}}

extern "C" __global__ void __launch_bounds__(128) {name}(
    const la_tensor_map* maps, const int* heads, unsigned char* images, int image_bytes, int room_bytes, la_u64* notes)
{{
    __shared__ __align__(8) la_u64 bars[2];
    __shared__ unsigned last, touched;
    const la_tensor_map* map = maps + blockIdx.x;
    const int* head = heads + {head_ints} * blockIdx.x;
    la_u64* note = notes + {notes} * blockIdx.x;
    unsigned char* base = la_aligned_shared(1024);
    la_u32* words = (la_u32*)base;
    for (int i = threadIdx.x; i < room_bytes / 4; i += 128) words[i] = 0xEEEEEEEEu;
    const la_u32 bar = la_shared_address(&bars[0]), spare = la_shared_address(&bars[1]);
    if (threadIdx.x == 0) {{ last = 0; touched = 0; la_mbarrier_init(bar, 2); la_mbarrier_init(spare, 2); }}
    la_fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {{
        note[0] = state(spare);
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" :: "r"(spare), "r"(16) : "memory");
        note[1] = state(spare);
        la_fence_tensor_map(map);
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(head[0]) : "memory");
        note[2] = state(bar);
        const la_u32 destination = la_shared_address(base) + head[1];
        {issue}
        la_u64 began, now;
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(began));
        do {{ asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); }} while (now - began < 200000);
        note[3] = state(bar);
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory");
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory");
        bool done = false;
        for (int spin = 0; spin < 4096 && !done; ++spin) {{
            la_u32 flag;
            asm volatile("{{\\n.reg .pred p;\\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0;\\n"
                         "selp.u32 %0, 1, 0, p;\\n}}\\n" : "=r"(flag) : "r"(bar) : "memory");
            done = flag;
        }}
        note[4] = done;
        note[5] = state(bar);
    }}
    __syncthreads();
    unsigned top = 0, count = 0;
    for (int i = threadIdx.x; i < room_bytes; i += 128) if (base[i] != 0xEE) {{ top = i + 1; ++count; }}
    atomicMax(&last, top);
    atomicAdd(&touched, count);
    for (int i = threadIdx.x; i < image_bytes; i += 128) images[(la_u64)image_bytes * blockIdx.x + i] = base[i];
    __syncthreads();
    if (threadIdx.x == 0) {{ note[6] = last; note[7] = touched; }}
}}
"""

_STORE = """
{prelude}
extern "C" __global__ void __launch_bounds__(128) {name}(
    const la_tensor_map* maps, const int* heads, int source_bytes, la_u64* notes)
{{
    const la_tensor_map* map = maps + blockIdx.x;
    const int* head = heads + {head_ints} * blockIdx.x;
    unsigned char* base = la_aligned_shared(1024);
    la_u32* words = (la_u32*)base;
    for (int i = threadIdx.x; i < source_bytes / 4; i += 128) words[i] = 0x40000000u + i;
    la_fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {{
        la_fence_tensor_map(map);
        const la_u32 source = la_shared_address(base) + head[1];
        asm volatile("cp.async.bulk.tensor.{rank}d.global.shared::cta.{mode}.bulk_group [%0, {{{slots}}}], [%1];"
                     :: "l"(map), "r"(source), {values} : "memory");
        la_store_commit();
        la_store_wait();
        notes[{notes} * blockIdx.x + 4] = 1;
    }}
}}
"""


def load_kernel(mode: str, rank: int) -> KernelSource:
    """Return the kernel that runs one load per block."""
    slots = ", ".join(f"%{3 + j}" for j in range(rank))
    values = ", ".join(f'"r"(head[{2 + j}])' for j in range(rank))
    tail = ""
    if mode == "im2col":
        tail = ", {" + ", ".join(f"%{3 + rank + j}" for j in range(rank - 2)) + "}"
        values += "".join(f', "h"((unsigned short)head[{7 + j}])' for j in range(rank - 2))
    issue = (
        f'asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes"\n'
        f'            " [%0], [%1, {{{slots}}}], [%2]{tail};"\n'
        f'            :: "r"(destination), "l"(map), "r"(bar), {values} : "memory");'
    )
    name = f"la_mode_{mode}_{rank}d"
    text = _LOAD.format(prelude=PRELUDE, name=name, issue=issue, head_ints=HEAD_INTS, notes=NOTES)
    parameters = (
        ("const la_tensor_map*", "maps"), ("const int*", "heads"), ("unsigned char*", "images"), ("int", "image_bytes"),
        ("int", "room_bytes"), ("unsigned long long*", "notes"),
    )  # fmt: skip
    return KernelSource(name, text.lstrip("\n"), "sm_90a", 128, ROOM_BYTES + 1024, parameters)


def store_kernel(mode: str, rank: int) -> KernelSource:
    """Return the kernel that runs one store per block."""
    slots = ", ".join(f"%{2 + j}" for j in range(rank))
    values = ", ".join(f'"r"(head[{2 + j}])' for j in range(rank))
    name = f"la_store_{mode}_{rank}d"
    text = _STORE.format(
        prelude=PRELUDE, name=name, slots=slots, values=values, rank=rank, head_ints=HEAD_INTS, notes=NOTES,
        mode="im2col_no_offs" if mode == "im2col" else mode,
    )  # fmt: skip
    parameters = (
        ("const la_tensor_map*", "maps"), ("const int*", "heads"), ("int", "source_bytes"),
        ("unsigned long long*", "notes"),
    )  # fmt: skip
    return KernelSource(name, text.lstrip("\n"), "sm_90a", 128, SOURCE_BYTES + 1024, parameters)


# --------------------------------------------------------------------------------------------------------------- loads


OFFSETS = {3: 65535, 4: 255, 5: 31}


def im2col_case(rng: np.random.Generator, how: str) -> Case | None:
    """Return one load; ``how`` says what is out of the ordinary."""
    rank = int(rng.integers(3, 6))
    dtype = int(rng.choice((1, 2, 2, 4, 6, 7, 9, 0, 11) if how != "words" else (2,)))
    size = ELEMENT_BYTES[dtype]
    swizzle = int(rng.integers(1, 4)) if how in ("swizzle", "narrow") else 0
    span = SPAN[swizzle] or 128
    inner = 16 * int(rng.integers(1, span // 16 + 1)) if how != "swizzle" else span
    channels = inner // size
    most = min(1024, IMAGE_BYTES // (SPAN[swizzle] or inner))
    pixels = int(rng.integers(1, min(most, 65) + 1)) if rng.random() < 0.8 else int(rng.integers(1, most + 1))
    unit = max(1, 16 // size)
    dims = [unit * int(rng.integers(1, 2 * channels // unit + 2))]
    dims += [int(rng.integers(1, 10)) for _ in range(rank - 2)] + [int(rng.integers(1, 5))]
    steps = [1] * rank
    if how in ("steps", "steps_c", "steps_outside", "mixed"):
        steps[1:-1] = [int(rng.integers(1, 5)) for _ in range(rank - 2)]
    if how == "steps_c":
        steps[0] = int(rng.integers(1, 9))
        steps[-1] = int(rng.integers(1, 4))
    lower, upper = [], []
    for j in range(1, rank - 1):
        low = int(rng.integers(-4, 4))
        least = low - (dims[j] - 1)
        high = int(rng.integers(least, 4)) if least < 4 else least
        lower.append(low)
        upper.append(high)
    pitch = -(-dims[0] * size // 16) * 16
    strides = []
    for j in range(1, rank):
        strides.append(pitch + 16 * int(rng.integers(0, 3)))
        pitch = strides[-1] * dims[j]
    coords = [0] * 5
    coords[0] = unit * int(rng.integers(0, max(1, dims[0] // unit)))
    if how in ("channels", "mixed"):
        coords[0] = unit * int(rng.integers(-channels // unit - 1, dims[0] // unit + 2))
    for j in range(1, rank - 1):
        first, count = lower[j - 1], dims[j] + upper[j - 1] - lower[j - 1]
        coords[j] = first + int(rng.integers(0, count)) // steps[j] * steps[j]
        if how in ("outside", "steps_outside") and rng.random() < 0.6:
            coords[j] = first + int(rng.integers(-4, count + 4))
    coords[rank - 1] = int(rng.integers(0, dims[-1]))
    if how in ("batch", "mixed"):
        coords[rank - 1] = int(rng.integers(-2, dims[-1] + 2))
    most_offset = min(OFFSETS[rank], 12)
    offsets = [int(rng.integers(0, most_offset // 2)) if rng.random() < 0.7 else 0 for _ in range(rank - 2)]
    if how == "offsets":
        offsets = [int(rng.integers(0, OFFSETS[rank] + 1)) if rng.random() < 0.4 else o for o in offsets]
    if how == "offsets_beyond":
        offsets = [int(rng.integers(OFFSETS[rank] + 1, 4 * OFFSETS[rank])) % 65536 for _ in offsets]
    p = [dtype, rank, 16 * int(rng.integers(0, 8)), *dims, *[-1] * (5 - rank), *strides, *[-1] * (5 - rank)]
    p += [*lower, *[0] * (5 - rank), *upper, *[0] * (5 - rank), channels, pixels, *steps, *[-1] * (5 - rank)]
    p += [0, swizzle, int(rng.integers(0, 4)), int(rng.integers(0, 2)) if dtype in FLOATS and how != "words" else 0]
    offset = 128 * int(rng.integers(0, 4)) if how == "shifted" else 0
    if (SPAN[swizzle] or inner) * pixels + offset > IMAGE_BYTES:
        return None
    return {"mode": "im2col", "params": p, "coords": coords, "offsets": offsets, "expect": channels * pixels * size,
            "offset": offset}  # fmt: skip


def interleaved(**edit: object) -> Case:
    """Return one interleaved load that differs from a plain one in the fields given."""
    rank = int(edit.get("rank", 3))
    f = {
        "dtype": 1, "dims": (64, 8, 8, 4, 4)[:rank], "strides": (1 << 10, 1 << 15, 1 << 19, 1 << 21)[: rank - 1],
        "box": (8, 2, 2, 2, 2)[:rank], "steps": (1,) * rank, "interleave": 1, "swizzle": 0, "fill": 0, "base": 0,
        "coords": (0,) * rank, "expect": None, "offset": 0,
    } | edit  # fmt: skip
    pad = [-1] * (5 - rank)
    p = [f["dtype"], rank, f["base"], *f["dims"], *pad, *f["strides"], *pad, *f["box"], *pad, *f["steps"], *pad]
    p += [f["interleave"], f["swizzle"], 0, f["fill"]]
    expect = f["expect"]
    if expect is None:
        expect = int(np.prod([-(-b // s) for b, s in zip(f["box"], f["steps"], strict=True)])) * ELEMENT_BYTES[p[0]]
    return {"mode": "tile", "params": p, "coords": [*f["coords"], *[0] * (5 - rank)], "offsets": [],
            "expect": expect, "offset": f["offset"]}  # fmt: skip


def interleave_cases() -> list[Case]:
    """Return loads that vary one parameter at a time."""
    cases = []
    for kind in (1, 2):
        unit = 8 * kind
        edits: list[Case] = [{}]
        edits += [{"box": (b, 2, 2)} for b in (8, 16, 24, 32, 48, 64, 128)]
        edits += [{"box": b} for b in ((unit, 1, 1), (unit, 1, 4), (unit, 4, 1), (unit, 3, 5))]
        edits += [{"coords": (c, 0, 0)} for c in (1, 4, 7, 8, 16, 32, 60, 64, -8, -1)]
        edits += [{"coords": (0, *c)} for c in ((1, 0), (0, 1), (3, 2), (-1, 0), (0, -1), (7, 7))]
        edits += [{"coords": (8, 7, 0)}]
        edits += [{"dims": (d, 8, 8)} for d in (1, 2, 4, 8, 12, 16)]
        edits += [{"dims": (1, 1, 1)}, {"dims": (64, 1, 8)}]
        edits += [{"dtype": d} for d in (0, 2, 4, 6, 7)]
        edits += [{"dtype": d, "box": (16 * kind // ELEMENT_BYTES[d], 2, 2)} for d in (0, 2, 4)]
        edits += [{"swizzle": s, "box": (b, 4, 8)} for b in (unit, 2 * unit) for s in (1, 2, 3)]
        steps = ((2, 1, 1), (1, 2, 1), (1, 1, 2), (1, 3, 2), (8, 1, 1))
        edits += [{"steps": s, "box": (unit, 4, 4)} for s in steps]
        edits += [{"strides": s} for s in ((32, 1 << 15), (1 << 10, 64), (0, 1 << 15), (1 << 10, 0), (64, 1 << 12))]
        starts = ((0,) * 5, (8, 0, 0, 0, 0), (0, 1, 2, 3, 1), (2, 1, 1, 1, 1), (0, 0, 0, 0, 1))
        edits += [{"rank": r, "box": (unit, 2, 2, 2, 2)[:r], "coords": c[:r]} for r in (4, 5) for c in starts]
        edits += [{"dtype": 6, "fill": 1, "coords": (0, 7, 7)}]
        edits += [{"base": b} for b in (32, 64, 4096)]
        edits += [{"offset": 128, "swizzle": s, "box": (unit, 4, 8)} for s in (0, 1, 3)]
        cases += [interleaved(**{"interleave": kind, "box": (unit, 2, 2)} | edit) for edit in edits]
    return cases


def interleaved_im2col() -> list[Case]:
    """Return a few im2col loads of interleaved tensors."""
    cases = []
    for kind in (1, 2):
        for channels, pixels, first in ((8, 4, 0), (16, 4, 0), (32, 4, 0), (16, 4, 8), (16, 4, 1), (16, 4, 16)):
            for rank in (3, 4, 5):
                pad = [-1] * (5 - rank)
                p = [1, rank, 0, *(64, 8, 8, 4, 4)[:rank], *pad]
                p += [*(1 << 10, 1 << 15, 1 << 19, 1 << 21)[: rank - 1], *pad, 0, 0, 0, 0, 0, 0, channels, pixels]
                p += [*[1] * rank, *pad, kind, 0, 0, 0]
                cases.append({"mode": "im2col", "params": p, "coords": [first, *[0] * 4], "offsets": [0] * (rank - 2),
                              "expect": channels * pixels * 2, "offset": 0})  # fmt: skip
    return cases


def random_interleaved(rng: np.random.Generator, mode: str) -> Case | None:
    """Return one random interleaved load, or None when it does not fit; a slice of 16 or 32 bytes is the element."""
    rank, kind, swizzle = int(rng.integers(3, 6)), int(rng.integers(1, 3)), int(rng.integers(0, 4))
    dtype = int(rng.choice((0, 1, 2, 4, 6, 7, 9, 11)))
    size, unit = ELEMENT_BYTES[dtype], 16 * kind
    dims = [int(rng.integers(1, 20)), *[int(rng.integers(1, 9)) for _ in range(rank - 1)]]
    strides, pitch = [], unit * dims[0]
    for j in range(1, rank):
        strides.append(pitch + 32 * int(rng.integers(0, 3)) + (-pitch) % 32)
        pitch = strides[-1] * dims[j]
    steps = [int(rng.integers(1, 4)) if rng.random() < 0.4 else 1 for _ in range(rank)]
    pad = [-1] * (5 - rank)
    base, offset = 32 * int(rng.integers(0, 8)), 128 * int(rng.integers(0, 4)) if rng.random() < 0.3 else 0
    tail = [kind, swizzle, int(rng.integers(0, 4)), int(rng.integers(0, 2)) if dtype in FLOATS else 0]
    if mode == "tile":
        box = [16 // size * int(rng.integers(1, 5)), *[int(rng.integers(1, 6)) for _ in range(rank - 1)]]
        box[rank - 2] = int(rng.choice((1, 2, 8, 16, 64, 256)))
        slices = int(np.prod([-(-b // s) for j, (b, s) in enumerate(zip(box, steps, strict=True)) if j != rank - 2]))
        whole = int(np.prod([b // s for b, s in zip(box, steps, strict=True)])) * size
        if whole > 233472 or unit * slices + offset > IMAGE_BYTES:
            return None
        coords = [int(rng.integers(-3, d + 2)) for d in dims]
        p = [dtype, rank, base, *dims, *pad, *strides, *pad, *box, *pad, *steps, *pad, *tail]
        return {"mode": mode, "params": p, "coords": [*coords, *[0] * (5 - rank)], "offsets": [],
                "expect": unit * slices, "offset": offset}  # fmt: skip
    lower, upper, coords = [], [], []
    for j in range(rank - 2):
        low = int(rng.integers(-4, 4))
        least = low - (dims[j] - 1)
        high = int(rng.integers(least, 4)) if least < 4 else least
        lower.append(low)
        upper.append(high)
        coords.append(low + int(rng.integers(0, dims[j] + high - low)) // steps[j] * steps[j])
    coords += [int(rng.integers(-1, dims[-2] + 1)), int(rng.integers(-1, dims[-1] + 1))]
    offsets = [int(rng.integers(0, 6)) for _ in range(rank - 2)]
    channels, pixels = 16 // size * int(rng.integers(1, 5)), int(rng.integers(1, 200))
    if unit * pixels + offset > IMAGE_BYTES:
        return None
    short = [0] * (5 - rank)
    p = [dtype, rank, base, *dims, *pad, *strides, *pad, *lower, *short, *upper, *short, channels, pixels]
    return {"mode": mode, "params": [*p, *steps, *pad, *tail], "coords": [*coords, *[0] * (5 - rank)],
            "offsets": offsets, "expect": unit * pixels, "offset": offset}  # fmt: skip


def load_cases(scale: float, seed: int) -> list[Case]:
    """Return the loads by group: interleaved ones, random and one parameter at a time, and random im2col ones."""
    sizes = {"words": 120, "plain": 160, "steps": 160, "steps_c": 60, "outside": 12, "steps_outside": 12,
             "channels": 80, "batch": 60, "offsets": 80, "offsets_beyond": 24, "swizzle": 100, "narrow": 80,
             "shifted": 40, "mixed": 160}  # fmt: skip
    drawn = [("random tile", 400, 9000, lambda rng: random_interleaved(rng, "tile")),
             ("random im2col", 240, 9001, lambda rng: random_interleaved(rng, "im2col"))]  # fmt: skip
    drawn += [(how, count, seed + number, functools.partial(im2col_case, how=how))
              for number, (how, count) in enumerate(sizes.items())]  # fmt: skip
    found = [case | {"group": "one at a time"} for case in interleave_cases()]
    found += [case | {"group": "im2col"} for case in interleaved_im2col()]
    for group, count, start, draw in drawn:
        rng, many = np.random.default_rng(start), 0
        while many < max(4, int(count * scale)):
            case = draw(rng)
            if case is not None:
                found.append(case | {"group": group})
                many += 1
    return found


# -------------------------------------------------------------------------------------------------------------- stores

_NAMES = (
    {entry.code: name for name, entry in DTYPES.items()},
    {code: name for name, code in INTERLEAVE_CODES.items()},
    {entry.map_code: name for name, entry in SWIZZLE_TABLE.items()},
    {code: name for name, code in L2_PROMOTION_CODES.items()},
    {code: name for name, code in OOB_FILL_CODES.items()},
)


def im2col_map(p: list[int]) -> im2col.Im2colMap:
    """Return the im2col map of 29 numbers."""
    rank = p[1]
    dtype, *names = (table[code] for code, table in zip((p[0], *p[25:29]), _NAMES, strict=True))
    spatial = rank - _SPATIAL
    return im2col.Im2colMap(
        dtype, tuple(p[3 : 3 + rank]), tuple(p[8 : 7 + rank]), tuple(p[12 : 12 + spatial]),
        tuple(p[15 : 15 + spatial]), p[18], p[19], tuple(p[20 : 20 + rank]), *names, p[2],
    )  # fmt: skip


def predicted(case: Case) -> np.ndarray:
    """Return the window that the store is believed to leave."""
    p = list(case["params"])
    p[2] += MARGIN
    coords = list(case["coords"])[: p[1]]
    if case["mode"] == "tile":
        tm = batch.from_row(p)
        address, inside = interleaved_places(tm, coords)
        width = pitch = tensormap.unit_bytes(tm)
        swizzle = tm.swizzle
    else:
        tm = im2col_map(p)
        address, inside = im2col.pixel_addresses(tm, coords, [0] * (tm.rank - _SPATIAL))
        width, pitch, swizzle = im2col.row_bytes(tm), im2col.row_pitch_bytes(tm), tm.swizzle
    chunks = np.arange(0, width, 16, dtype=np.int64)
    at = int(case["offset"]) + pitch * np.arange(address.size, dtype=np.int64)[:, None] + chunks
    source = (np.arange(SOURCE_BYTES // 4, dtype=np.uint32) + np.uint32(0x40000000)).view(np.uint8)
    values = source[tensormap.apply_swizzle(swizzle, at)[..., None] + np.arange(16)]
    kept = np.broadcast_to(inside[:, None], at.shape)
    to = address[:, None] + chunks
    if case["mode"] == "im2col" and tm.interleave == "NONE":
        size = tensormap.element_bytes(tm.dtype)
        first = coords[0] * size + chunks  # the first byte of each chunk along C
        kept = kept & (first >= 0) & (first < tm.dims[0] * size)
        to = to + coords[0] * size
    window = np.full(WINDOW_BYTES, POISON, np.uint8)
    window[to[kept][:, None] + np.arange(16)] = values[kept]
    return window


def reach(p: list[int]) -> int:
    """Return the bytes from the window's start to the end of the tensor, with a spare chunk."""
    rank = p[1]
    inner = 32 if p[25 if len(p) == 29 else 22] else ELEMENT_BYTES[p[0]]
    return (
        MARGIN + p[2] + inner * p[3] + sum((d - 1) * s for d, s in zip(p[4 : 3 + rank], p[8 : 7 + rank], strict=True))
    )


def group_of(how: str, case: Case) -> str:
    """Return the group of a case; stores that may fault stand apart: box beyond the tensor, negative starts."""
    p, rank, mode = case["params"], case["params"][1], case["mode"]
    if mode == "im2col":
        if min(p[12:15]) < 0 or max(p[15:18]) > 0:
            return "risky/beyond"
        if how == "outside":
            return "risky/outside"
    if min(case["coords"][:rank]) < 0:
        last = {"im2col": "im2col", "tile": "interleaved"}[mode]
        return f"risky/negative_{last}" + ("_n" if case["coords"][rank - 1] < 0 else "")
    return f"{mode}/{how}"


def pulled_inside(rng: np.random.Generator, case: Case) -> None:
    """Move the corner's box of a case into the tensor, and the start into the box."""
    p, rank, coords = case["params"], case["params"][1], case["coords"]
    first = 0 if p[25] else 1
    for j in range(rank - _SPATIAL):
        extent = p[3 + first + j]
        p[12 + j] = min(max(p[12 + j], 0), extent - 1)
        p[15 + j] = max(min(p[15 + j], 0), p[12 + j] - extent + 1)
        coords[first + j] = int(rng.integers(p[12 + j], extent + p[15 + j]))


def store_cases(scale: float) -> list[Case]:
    """Return random stores; of groups that may fault few."""
    sizes = {"plain": 160, "steps": 120, "steps_c": 40, "channels": 60, "batch": 40, "swizzle": 100, "narrow": 60,
             "shifted": 40, "mixed": 120, "outside": 0, "interleaved_im2col": 120, "interleaved": 240}  # fmt: skip
    risky = 20
    found: dict[str, list[Case]] = {}
    for number, (how, count) in enumerate(sizes.items()):
        rng = np.random.default_rng(6100 + number)
        taken = drawn = 0
        while taken < int(count * scale) or drawn < 400:
            drawn += 1
            if how.startswith("interleaved"):
                case = random_interleaved(rng, "im2col" if how.endswith("im2col") else "tile")
            else:
                case = im2col_case(rng, how)
            if case is None or reach(case["params"]) > WINDOW_BYTES - 1024:
                continue
            case["offsets"] = []
            if case["mode"] == "im2col" and how != "outside" and rng.random() < 0.9:
                pulled_inside(rng, case)
            group = group_of(how, case)
            if rng.random() < 0.9 and (predicted(case) != POISON).sum() < 64:
                continue  # most stores are to write something
            most = min(risky, 4 + number * 4) if group.startswith("risky") else int(count * scale)
            if len(found.get(group, ())) < most:
                found.setdefault(group, []).append(case | {"group": group})
                taken += not group.startswith("risky")
    return [case for cases in found.values() for case in cases]


# ------------------------------------------------------------------------------------------------------------- running


@functools.cache
def buffer() -> int:
    """The global memory that loads of this child read."""
    return cuda().upload(np.arange(BUFFER_WORDS, dtype=np.uint32) + np.uint32(0x40000000))


def run_case(case: Case, storing: bool) -> Case:
    """Run one load or store; return the driver's status, the map, the image or window, and the notes."""
    device, mode, p = cuda(), case["mode"], case["params"]
    home = device.filled(WINDOW_BYTES, POISON) + MARGIN if storing else buffer() + HOME
    encoder = Encoder(device.lib)
    status, raw = (encoder.im2col if mode == "im2col" else encoder.tiled)(p, home + p[2])
    image = np.zeros(WINDOW_BYTES if storing else IMAGE_BYTES, dtype=np.uint8)
    notes = np.zeros(NOTES, dtype=np.uint64)
    if status == 0:
        heads = np.zeros(HEAD_INTS, dtype=np.int32)
        heads[0], heads[1], heads[2:7] = case["expect"], case["offset"], case["coords"]
        heads[7 : 7 + len(case["offsets"])] = case["offsets"]
        there = [device.upload(each) for each in (np.frombuffer(raw, dtype=np.uint8), heads, image, notes)]
        if storing:
            device.launch(store_kernel(mode, p[1]), [there[0], there[1], SOURCE_BYTES, there[3]])
        else:
            device.launch(load_kernel(mode, p[1]), [*there[:3], IMAGE_BYTES, ROOM_BYTES, there[3]])
        device.download(home - MARGIN if storing else there[2], image)
        device.download(there[3], notes)
        device.free(*there)
    if storing:
        device.free(home - MARGIN)
    return {"status": status, "maps": np.frombuffer(raw, dtype=np.uint8), "image": image, "notes": notes, "fault": ""}


def answers(run: Run, cases: list[Case], storing: bool) -> list[Case]:
    """Run loads or stores; faults are answers. Those that may fault run alone."""
    blank = {"status": -1, "maps": np.zeros(128, np.uint8), "notes": np.zeros(NOTES, np.uint64),
             "image": np.zeros(WINDOW_BYTES if storing else IMAGE_BYTES, np.uint8)}  # fmt: skip
    found = run.each(run_case, cases, storing, alone=[case["group"].startswith("risky") for case in cases])
    return [blank | {"fault": each.text} if isinstance(each, Fault) else each for each in found]


def save(run: Run, name: str, cases: list[Case], rows: list[Case]) -> None:
    """Write every case with its answer: a digest of each image, and some images in full."""
    width = max(len(case["params"]) for case in cases)
    padded = {"params": [[*case["params"], *[-1] * (width - len(case["params"]))] for case in cases],
              "offsets": [[*case["offsets"], *[-1] * (3 - len(case["offsets"]))] for case in cases]}  # fmt: skip
    fields = {field: np.array([case[field] for case in cases])
              for field in ("group", "mode", "coords", "expect", "offset")}  # fmt: skip
    fields |= {field: np.array([row[field] for row in rows]) for field in ("status", "fault", "notes", "maps")}
    digests = [hashlib.blake2b(row["image"].tobytes(), digest_size=8).digest() for row in rows]
    chosen = np.arange(0, len(rows), 16)
    run.save(
        name, **fields, **{key: np.array(value) for key, value in padded.items()},
        done=fields["notes"][:, 4], last=fields["notes"][:, 6], touched=fields["notes"][:, 7],
        digest=np.frombuffer(b"".join(digests), dtype="<u8"), rows=chosen,
        images=np.array([rows[at]["image"] for at in chosen]),
    )  # fmt: skip


def counts_of(cases: list[Case], rows: list[Case]) -> dict[str, Case]:
    """What became of each group."""
    found: dict[str, Case] = {}
    for case, row in zip(cases, rows, strict=True):
        group = found.setdefault(case["group"], {"cases": 0, "refused": 0, "completed": 0, "faults": {}})
        group["cases"] += 1
        group["refused"] += row["status"] > 0
        group["completed"] += int(row["notes"][4])
        if row["fault"]:
            group["faults"][row["fault"]] = group["faults"].get(row["fault"], 0) + 1
    return found


def ask_driver(rows: np.ndarray, wide: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """The driver's verdicts and words; None where it has no such call."""
    encoder = Encoder(cuda().lib)
    modes = np.random.default_rng(9).integers(0, 2, len(rows)).tolist()
    try:
        found = [encoder.wide(p, p[2], mode) if wide else encoder.im2col(p, p[2])
                 for p, mode in zip(rows.tolist(), modes, strict=True)]  # fmt: skip
    except AttributeError:
        return None
    words = np.frombuffer(b"".join(raw for _, raw in found), dtype="<u8").reshape(-1, 16)
    return np.array([status for status, _ in found], dtype=np.int32), words


KINDS = [(mode, rank) for mode in ("tile", "im2col") for rank in (3, 4, 5)]


def modes_job(run: Run) -> None:
    """Verdicts and bytes of im2col maps, verdicts of wide ones, and loads into poisoned shared memory."""
    run.compile(load_kernel(*kind) for kind in KINDS)
    seed = 4000 if run.options.seed == 1 else run.options.seed
    for name, count, start in (("im2col_dev", run.options.count, seed), ("wide", 2000, seed + 1)):
        rows = driver_rows(count, start)
        [found] = run.each(ask_driver, [rows], name == "wide")
        if isinstance(found, tuple):
            run.save(name, params=rows, status=found[0], words=found[1])
            run.write(name, {"asked": count, "accepted": int((found[0] == 0).sum())})
    cases = load_cases(run.options.scale, seed)
    rows_of = answers(run, cases, False)
    for name, plain in (("interleave_loads_dev", False), ("im2col_loads_dev", True)):
        chosen = [at for at, case in enumerate(cases) if (case["mode"] == "im2col" and not case["params"][25]) == plain]
        mine, rows = [cases[at] for at in chosen], [rows_of[at] for at in chosen]
        save(run, name, mine, rows)
        run.write(name, {"loads": len(mine)}, groups=counts_of(mine, rows))


def stores_job(run: Run) -> None:
    """Stores through im2col and interleaved maps; every window is compared with the one predicted."""
    run.compile(store_kernel(*kind) for kind in KINDS)
    cases = [{"expect": 0} | case for case in store_cases(run.options.scale)]
    rows = answers(run, cases, True)
    save(run, "im2col_stores_dev", cases, rows)
    ran = [at for at, row in enumerate(rows) if not row["fault"] and row["status"] == 0]
    wrong = [at for at in ran if not np.array_equal(predicted(cases[at]), rows[at]["image"])]
    summary = {"stores": len(cases), "compared": len(ran), "wrong": wrong[:8]}
    run.write("im2col_stores_dev", summary, groups=counts_of(cases, rows))


def driver_rows(count: int, seed: int) -> np.ndarray:
    """Return random im2col parameters; most differ from a legal row in at most two fields."""
    rng = np.random.default_rng(seed)
    rows = []
    pick = lambda *options: int(rng.choice(options))  # noqa: E731
    for _ in range(count):
        rank = pick(3, 4, 5)
        dtype = int(rng.integers(0, 13))
        size = ELEMENT_BYTES[dtype]
        swizzle, interleave = int(rng.integers(0, 4)), pick(0, 0, 0, 0, 1, 2)
        low, high = CORNERS[rank]
        unit = 32 if interleave == 2 else 16
        span = SPAN[swizzle] or 256
        channels = min(256, max(1, 16 * int(rng.integers(1, span // 16 + 1)) // size))
        dims = [pick(1, 2, 7, 64, 512, 4096, 1 << 20) for _ in range(rank)]
        lower = [int(rng.integers(max(low, -9), min(high, 9) + 1)) for _ in range(rank - 2)]
        upper = [int(rng.integers(max(low, -9), min(high, 9) + 1)) for _ in range(rank - 2)]
        if rng.random() < 0.25:
            lower = [int(rng.integers(low, high + 1)) for _ in lower]
            upper = [int(rng.integers(low, high + 1)) for _ in upper]
        p = [dtype, rank, unit * pick(0, 1, 3, 256, 1 << 32), *dims, *[-1] * (5 - rank)]
        p += [unit * pick(0, 1, 3, 64, 1000, 1 << 20) for _ in range(rank - 1)] + [-1] * (5 - rank)
        p += [*lower, *[0] * (5 - rank), *upper, *[0] * (5 - rank), channels, pick(1, 2, 31, 64, 256, 1000, 1023, 1024)]
        p += [pick(1, 1, 1, 2, 3, 8) for _ in range(rank)] + [-1] * (5 - rank)
        p += [interleave, swizzle, int(rng.integers(0, 4)), int(rng.integers(0, 2)) if dtype in FLOATS else 0]
        for _ in range(pick(0, 0, 1, 1, 2)):
            what, mode, corner = pick(*range(16)), int(rng.integers(0, rank)), int(rng.integers(0, rank - 2))
            if what == 0:
                p[0] = pick(0, 1, 6, 8, 12, 13, 14, 15, 16)
            elif what == 1:
                p[1] = pick(1, 2, 3, 4, 5, 6) if rng.random() < 0.5 else p[1]
                p = [v if v >= 0 or 12 <= i < 18 else 1 for i, v in enumerate(p)]
            elif what == 2:
                p[2] += pick(1, 8, 16)
            elif what == 3:
                p[3 + mode] = pick(0, 1, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, 1 << 31, 3)
            elif what == 4:
                p[8 + min(mode, rank - 2)] = pick(8, 16, 24, (1 << 40) - 16, (1 << 40) - 32, 1 << 40, 0)
            elif what in (5, 6, 7):
                p[12 + corner] = pick(low, low - 1, high, high + 1, 0, -dims[1 + corner], dims[1 + corner],
                                      dims[1 + corner] - 1)  # fmt: skip
            elif what in (8, 9, 10):
                least = p[12 + corner] - dims[1 + corner] + 1
                p[15 + corner] = pick(low, low - 1, high, high + 1, least - 1, least, least + 1)
            elif what == 11:
                p[18] = pick(0, 1, 2, 3, 4, 8, 16, 17, 64, 128, 255, 256, 257)
            elif what == 12:
                p[19] = pick(0, 1, 255, 256, 257, 512, 1023, 1024, 1025, 2048)
            elif what == 13:
                p[20 + mode] = pick(0, 1, 4, 8, 9)
            elif what == 14:
                p[25], p[26] = pick(0, 1, 2, 3), pick(0, 1, 2, 3, 4, 5, 6, 7)
            else:
                p[27], p[28] = pick(0, 1, 2, 3, 4), pick(0, 1, 2)
        limit = 2**31 - 1
        p[12:18] = [max(-limit, min(limit, v)) for v in p[12:18]]
        rows.append(p)
    return np.array(rows, dtype=np.int64)

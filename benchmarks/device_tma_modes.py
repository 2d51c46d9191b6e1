"""Ask a device about the less travelled modes of tensor maps: im2col, im2col-wide and interleave.

    python3 benchmarks/device_tma_modes.py --out DIR [--count 10000] [--seconds 200]

Needs a GPU with compute capability 9.0 and its driver. Writes

- ``driver.npz``: verdict and 128 bytes of ``cuTensorMapEncodeIm2col`` on random parameters around the legal boundaries;
- ``wide.npz``: verdicts of ``cuTensorMapEncodeIm2colWide``;
- ``im2col.npz``, ``interleave.npz``: loads executed into poisoned shared memory: the image, what the barrier counted.

Notation: ``params`` of im2col holds 29 numbers: data type, rank, base, dim0..4, stride1..4 (bytes), lower corner 0..2,
upper corner 0..2, channels, pixels, element stride 0..4, interleave, swizzle, L2 promotion, fill; of tiled maps the 26
of ``device_copies``. Unused entries are -1 (corners: 0). Everything is innermost first.

Implementation notes: word i of global memory holds 0x40000000 + i, so that one image tells which word came where. The
barrier waits for two arrivals that come late, and its raw state is read before and after the load, so that the bytes
that the engine counted are known even where the prediction was wrong. Every batch runs in a child process; a batch that
faults is halved until the faulting cases stand alone.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from device_backends import Cuda  # noqa: E402

from layoutalg.codegen.kernel import KernelSource  # noqa: E402
from layoutalg.codegen.prelude import PRELUDE  # noqa: E402

ELEMENT_BYTES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)
FLOATS = (6, 7, 8, 9, 10, 11, 12)
SPAN = (0, 32, 64, 128)
IMAGE_BYTES = 16384
ROOM_BYTES = 160 * 1024
BUFFER_WORDS = 1 << 24
HOME = 1 << 24  # bytes from the buffer's start to the tensor's base
CORNERS = {3: (-32768, 32767), 4: (-128, 127), 5: (-16, 15)}
OFFSETS = {3: 65535, 4: 255, 5: 31}
HEAD_INTS = 12
NOTES = 8

_KERNEL = """
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


def kernel(mode: str, rank: int) -> KernelSource:
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
    text = _KERNEL.format(prelude=PRELUDE, name=name, issue=issue, head_ints=HEAD_INTS, notes=NOTES)
    parameters = (
        ("const la_tensor_map*", "maps"), ("const int*", "heads"), ("unsigned char*", "images"), ("int", "image_bytes"),
        ("int", "room_bytes"), ("unsigned long long*", "notes"),
    )  # fmt: skip
    return KernelSource(name, text.lstrip("\n"), "sm_90a", 128, ROOM_BYTES + 1024, parameters)


# --- the driver ---------------------------------------------------------------------------------------------------


class Encoder:
    """The driver's three encoding calls."""

    def __init__(self, lib: ctypes.CDLL) -> None:
        self.lib = lib
        self.room = (ctypes.c_uint8 * 256)()
        self.map = (ctypes.addressof(self.room) + 127) // 128 * 128

    def _arrays(self, p: list[int]) -> tuple[object, ...]:
        rank = p[1]
        limit = max(0, min(rank, 5))
        dims = (ctypes.c_uint64 * 5)(*[v % 2**64 for v in p[3 : 3 + limit]])
        strides = (ctypes.c_uint64 * 5)(*[v % 2**64 for v in p[8 : 8 + max(limit - 1, 0)]])
        return dims, strides

    def _answer(self, status: int) -> tuple[int, bytes]:
        return status, ctypes.string_at(self.map, 128) if status == 0 else bytes(128)

    def im2col(self, p: list[int], base: int) -> tuple[int, bytes]:
        dims, strides = self._arrays(p)
        lower, upper = (ctypes.c_int * 3)(*p[12:15]), (ctypes.c_int * 3)(*p[15:18])
        steps = (ctypes.c_uint32 * 5)(*[v % 2**32 for v in p[20:25]])
        ctypes.memset(self.map, 0, 128)
        return self._answer(self.lib.cuTensorMapEncodeIm2col(
            ctypes.c_void_p(self.map), p[0], ctypes.c_uint32(p[1]), ctypes.c_void_p(base % 2**64), dims, strides, lower,
            upper, ctypes.c_uint32(p[18]), ctypes.c_uint32(p[19]), steps, *p[25:29]
        ))  # fmt: skip

    def wide(self, p: list[int], base: int, mode: int) -> tuple[int, bytes]:
        dims, strides = self._arrays(p)
        steps = (ctypes.c_uint32 * 5)(*[v % 2**32 for v in p[20:25]])
        ctypes.memset(self.map, 0, 128)
        return self._answer(self.lib.cuTensorMapEncodeIm2colWide(
            ctypes.c_void_p(self.map), p[0], ctypes.c_uint32(p[1]), ctypes.c_void_p(base % 2**64), dims, strides, p[12],
            p[15], ctypes.c_uint32(p[18]), ctypes.c_uint32(p[19]), steps, p[25], mode, p[26], p[27], p[28]
        ))  # fmt: skip

    def tiled(self, p: list[int], base: int) -> tuple[int, bytes]:
        dims, strides = self._arrays(p)
        box = (ctypes.c_uint32 * 5)(*[v % 2**32 for v in p[12:17]])
        steps = (ctypes.c_uint32 * 5)(*[v % 2**32 for v in p[17:22]])
        ctypes.memset(self.map, 0, 128)
        return self._answer(self.lib.cuTensorMapEncodeTiled(
            ctypes.c_void_p(self.map), p[0], ctypes.c_uint32(p[1]), ctypes.c_void_p(base % 2**64), dims, strides, box,
            steps, *p[22:26]
        ))  # fmt: skip


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


def ask_driver(device: Cuda, out: Path, count: int, seed: int) -> None:
    """Record the driver's verdicts and bytes."""
    encoder = Encoder(device.lib)
    rows = driver_rows(count, seed)
    answers = [encoder.im2col(p, p[2]) for p in rows.tolist()]
    status = np.array([a[0] for a in answers], dtype=np.int32)
    words = np.frombuffer(b"".join(a[1] for a in answers), dtype="<u8").reshape(-1, 16)
    np.savez_compressed(out / "driver.npz", params=rows, status=status, words=words)
    print(f"driver: {count} asked, {int((status == 0).sum())} accepted", flush=True)
    rows = driver_rows(2000, seed + 1)
    modes = np.random.default_rng(9).integers(0, 2, len(rows))
    try:
        answers = [encoder.wide(p, p[2], int(m)) for p, m in zip(rows.tolist(), modes, strict=True)]
    except AttributeError as error:
        print("wide:", error)
        return
    status = np.array([a[0] for a in answers], dtype=np.int32)
    words = np.frombuffer(b"".join(a[1] for a in answers), dtype="<u8").reshape(-1, 16)
    np.savez_compressed(out / "wide.npz", params=rows, modes=modes, status=status, words=words)
    print("wide:", dict(zip(*[v.tolist() for v in np.unique(status, return_counts=True)], strict=True)), flush=True)


# --- im2col loads -------------------------------------------------------------------------------------------------


def im2col_case(rng: np.random.Generator, how: str) -> dict[str, object] | None:
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


def im2col_groups(scale: float, seed: int) -> dict[str, list[dict[str, object]]]:
    """Return the groups of random im2col loads."""
    groups = {}
    sizes = {"words": 120, "plain": 160, "steps": 160, "steps_c": 60, "outside": 12, "steps_outside": 12,
             "channels": 80, "batch": 60, "offsets": 80, "offsets_beyond": 24, "swizzle": 100, "narrow": 80,
             "shifted": 40, "mixed": 160}  # fmt: skip
    for number, (how, count) in enumerate(sizes.items()):
        rng = np.random.default_rng(seed + number)
        cases: list[dict[str, object]] = []
        while len(cases) < max(4, int(count * scale)):
            case = im2col_case(rng, how)
            if case is not None:
                cases.append(case)
        groups[how] = cases
    return groups


# --- interleaved tiles --------------------------------------------------------------------------------------------


def interleaved(**edit: object) -> dict[str, object]:
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


def interleave_cases() -> list[dict[str, object]]:
    """Return loads that vary one parameter at a time."""
    cases = []
    for kind in (1, 2):
        unit = 8 * kind
        edits: list[dict[str, object]] = [{}]
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


def interleaved_im2col() -> list[dict[str, object]]:
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


def random_interleaved(rng: np.random.Generator, mode: str) -> dict[str, object] | None:
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


def interleaved_groups(scale: float) -> dict[str, list[dict[str, object]]]:
    """Return random interleaved loads of both modes."""
    groups = {}
    for seed, (mode, count) in enumerate((("tile", 400), ("im2col", 240))):
        rng = np.random.default_rng(9000 + seed)
        cases: list[dict[str, object]] = []
        while len(cases) < max(4, int(count * scale)):
            case = random_interleaved(rng, mode)
            if case is not None:
                cases.append(case)
        groups[mode] = cases
    return groups


# --- running ------------------------------------------------------------------------------------------------------


def run_cases(device: Cuda, cases: list[dict[str, object]], cubins: Path) -> list[dict[str, object]]:
    """Run loads of any mode and rank; return per case the driver's status, the map, the image and the notes."""
    encoder = Encoder(device.lib)
    buffer = device.upload(np.arange(BUFFER_WORDS, dtype=np.uint32) + np.uint32(0x40000000))
    answers: list[dict[str, object]] = [{} for _ in cases]
    for index, case in enumerate(cases):
        encode = encoder.im2col if case["mode"] == "im2col" else encoder.tiled
        status, raw = encode(case["params"], buffer + HOME + case["params"][2])
        answers[index] = {"status": status, "map": raw}
    for mode, rank in sorted({(str(c["mode"]), int(c["params"][1])) for c in cases}):
        chosen = [i for i, c in enumerate(cases)
                  if (c["mode"], c["params"][1]) == (mode, rank) and answers[i]["status"] == 0]  # fmt: skip
        if not chosen:
            continue
        maps = np.frombuffer(b"".join(answers[i]["map"] for i in chosen), dtype=np.uint8)
        heads = np.zeros((len(chosen), HEAD_INTS), dtype=np.int32)
        for row, i in enumerate(chosen):
            case = cases[i]
            heads[row, 0], heads[row, 1], heads[row, 2:7] = case["expect"], case["offset"], case["coords"]
            heads[row, 7 : 7 + len(case["offsets"])] = case["offsets"]
        images = np.zeros((len(chosen), IMAGE_BYTES), dtype=np.uint8)
        notes = np.zeros((len(chosen), NOTES), dtype=np.uint64)
        there = [device.upload(v) for v in (maps, heads, images)]
        noted = device.upload(notes)
        device.launch(kernel(mode, rank), cubins, len(chosen), ROOM_BYTES + 1024,
                      [*there, IMAGE_BYTES, ROOM_BYTES, noted])  # fmt: skip
        device.download(there[2], images)
        device.download(noted, notes)
        for row, i in enumerate(chosen):
            answers[i] |= {"image": images[row], "notes": notes[row]}
    return answers


def worker(arguments: argparse.Namespace) -> None:
    """Run one job file in this process."""
    cases = json.loads(Path(arguments.job).read_text())
    answers = run_cases(Cuda(), cases, Path(arguments.cubins))
    n = len(cases)
    np.savez(
        arguments.answer,
        status=np.array([a["status"] for a in answers], dtype=np.int32),
        maps=np.frombuffer(b"".join(a["map"] for a in answers), dtype=np.uint8).reshape(n, 128),
        images=np.stack([a.get("image", np.zeros(IMAGE_BYTES, np.uint8)) for a in answers]),
        notes=np.stack([a.get("notes", np.zeros(NOTES, np.uint64)) for a in answers]),
    )


class Campaign:
    """Runs batches in child processes, several at a time, and isolates the faulting cases."""

    def __init__(
        self, out: Path, cubins: Path, seconds: float, script: str = __file__, image_bytes: int = IMAGE_BYTES
    ) -> None:
        self.out, self.cubins, self.end = out, cubins, time.monotonic() + seconds
        self.script, self.image_bytes = script, image_bytes
        self.scratch = Path(tempfile.mkdtemp(prefix="modes-"))
        self.pool = ThreadPoolExecutor(12)

    def batch(self, cases: list[dict[str, object]]) -> list[dict[str, object]]:
        """Return one answer per case."""
        blank = {"status": -1, "map": bytes(128), "image": np.zeros(self.image_bytes, np.uint8),
                 "notes": np.zeros(NOTES, np.uint64)}  # fmt: skip
        if time.monotonic() > self.end:
            return [blank | {"fault": "not run: budget"} for _ in cases]
        stem = tempfile.mktemp(dir=self.scratch)
        Path(stem + ".json").write_text(json.dumps(cases))
        command = [sys.executable, self.script, "worker", "--cubins", str(self.cubins), "--job", stem + ".json",
                   "--answer", stem + ".npz"]  # fmt: skip
        try:
            process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            error = (process.stderr.strip().splitlines() or [f"exit {process.returncode}"])[-1][-80:]
            failed = process.returncode != 0
        except subprocess.TimeoutExpired:
            failed, error = True, "timeout"
        if not failed:
            with np.load(stem + ".npz") as stored:
                got = dict(stored)
            return [{"status": int(s), "map": m.tobytes(), "image": i, "notes": t, "fault": ""} for s, m, i, t in
                    zip(got["status"], got["maps"], got["images"], got["notes"], strict=True)]  # fmt: skip
        if len(cases) == 1:
            return [blank | {"fault": error}]
        half = len(cases) // 2
        return self.batch(cases[:half]) + self.batch(cases[half:])

    def section(self, name: str, groups: dict[str, list[dict[str, object]]], chunk: int) -> None:
        """Run groups and write one file."""
        jobs = [(group, cases[i : i + chunk]) for group, cases in groups.items() for i in range(0, len(cases), chunk)]
        answers = list(self.pool.map(lambda job: self.batch(job[1]), jobs))
        flat = [(group, case, answer) for (group, cases), got in zip(jobs, answers, strict=True)
                for case, answer in zip(cases, got, strict=True)]  # fmt: skip
        width = max(len(case["params"]) for _, case, _ in flat)
        pad = lambda row, n: [*row, *[-1] * (n - len(row))]  # noqa: E731
        np.savez_compressed(
            self.out / f"{name}.npz",
            group=np.array([g for g, _, _ in flat]), mode=np.array([c["mode"] for _, c, _ in flat]),
            params=np.array([pad(c["params"], width) for _, c, _ in flat], dtype=np.int64),
            coords=np.array([c["coords"] for _, c, _ in flat], dtype=np.int32),
            offsets=np.array([pad(c["offsets"], 3) for _, c, _ in flat], dtype=np.int32),
            expect=np.array([c["expect"] for _, c, _ in flat], dtype=np.int32),
            offset=np.array([c["offset"] for _, c, _ in flat], dtype=np.int32),
            status=np.array([a["status"] for _, _, a in flat], dtype=np.int32),
            fault=np.array([a["fault"] for _, _, a in flat]),
            maps=np.frombuffer(b"".join(a["map"] for _, _, a in flat), dtype=np.uint8).reshape(-1, 128),
            image=np.stack([a["image"] for _, _, a in flat]), notes=np.stack([a["notes"] for _, _, a in flat]),
        )  # fmt: skip
        for group in groups:
            rows = [a for g, _, a in flat if g == group]
            faults = sorted({str(a["fault"]) for a in rows} - {""})
            done = sum(int(a["notes"][4]) for a in rows)
            refused = sum(a["status"] > 0 for a in rows)
            print(f"{name}/{group}: {len(rows)} cases, {refused} refused, {done} completed, "
                  f"{sum(bool(a['fault']) for a in rows)} faults {faults[:3]}", flush=True)  # fmt: skip


def compile_kernels(cubins: Path) -> None:
    """Write a cubin per mode and rank."""
    from layoutalg.codegen.compile import to_cubin

    for mode in ("tile", "im2col"):
        for rank in (3, 4, 5):
            source = kernel(mode, rank)
            try:
                (cubins / f"{source.name}.cu").write_text(source.text)
                flags = ["-cubin", "-gencode=arch=compute_90a,code=sm_90a", "-o", str(cubins / f"{source.name}.cubin")]
                command = ["nvcc", *flags, str(cubins / f"{source.name}.cu")]
                subprocess.run(command, check=True, capture_output=True, text=True)
            except (FileNotFoundError, subprocess.CalledProcessError):
                (cubins / f"{source.name}.cubin").write_bytes(to_cubin(source))


def main() -> None:
    """Probe, or run one job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", default="all")
    parser.add_argument("--out", default="tma_modes")
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=4000)
    for name in ("cubins", "job", "answer"):
        parser.add_argument(f"--{name}")
    arguments = parser.parse_args()
    if arguments.what == "worker":
        worker(arguments)
        return
    out = Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    cubins = Path(tempfile.mkdtemp(prefix="cubins-"))
    began = time.monotonic()
    compile_kernels(cubins)
    print(f"compiled in {time.monotonic() - began:.0f} s", flush=True)
    if arguments.what == "compile":
        return
    ask_driver(Cuda(), out, arguments.count, arguments.seed)
    campaign = Campaign(out, cubins, arguments.seconds)
    campaign.section("interleave_random", interleaved_groups(arguments.scale), 40)
    campaign.section("interleave", {"one at a time": interleave_cases(), "im2col": interleaved_im2col()}, 24)
    campaign.section("im2col", im2col_groups(arguments.scale, arguments.seed), 80)
    facts = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True
    ).stdout.strip()
    (out / "facts.json").write_text(json.dumps({"device": facts, "date": time.strftime("%Y-%m-%d")}))
    print(facts, f"{time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()

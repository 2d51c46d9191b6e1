"""Ask a GPU what its copy engine and tensor cores do: probes, mass validation and matrix products.

Run on a machine with an H200 (or any sm_90 device), from the repository root:

    python3 benchmarks/device_campaign.py prepare --problems plans.json      (where the full library is installed)
    python3 benchmarks/device_campaign.py all --out RESULTS --problems plans.json [--seconds 420]

Sections: ``store`` and ``load`` (bulk tensor copies), ``wgmma`` (which element is read for operand B), ``problems``
(every plan of a JSON list), ``matmul``. Each section writes ``RESULTS/<section>*.npz`` as soon as it is known and
prints one table row per group. Every batch runs in a subprocess, because a fault ends a CUDA context; a failing batch
is halved until the faulting cases stand alone.

``--backend host`` runs the same kernels through the CPU models, to rehearse a campaign where there is no GPU.

Columns of ``params``: data type, rank, base (bytes from the case's memory), dim0..4, stride1..4 (bytes), box0..4,
element stride0..4, interleave, swizzle, L2 promotion, fill; numbers are the driver's, unused entries -1.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from layoutalg.codegen.kernel import KernelSource  # noqa: E402
from layoutalg.codegen.prelude import PRELUDE, wgmma_prelude  # noqa: E402
from layoutalg.codegen.runner import runner_kernel, runner_smem_bytes, runner_tables  # noqa: E402

ELEMENT_BYTES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)
FLOATS = (6, 7, 8, 9, 10, 11, 12)
SPAN = (0, 32, 64, 128)
IMAGE_BYTES = 32768  # shared image of one case
WINDOW_BYTES = 32768  # global window a store may touch
MARGIN = 8192  # bytes before the tensor inside that window
BUFFER_WORDS = 1 << 21  # global buffer of the loads
SPECIAL_WORDS = (  # zeros, denormals, largest numbers, infinities, NaNs, ties
    *(0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F7FE000, 0x7F7FF000),
    *(0x7F7FEFFF, 0x7F800000, 0xFF800000, 0x7F800001, 0xFF800001, 0x7FC00000, 0xFFC00000, 0x7FFFFFFF, 0xFFFFFFFF),
    *(0x7F801FFF, 0xFFBFF000, 0x3F801000, 0x3F803000, 0x3F800FFF, 0x3F801001, 0xBF801000, 0x00001000, 0x00003000),
    *(0x80001001, 0x40490FDB),
)
COPY_FIELDS = ("params", "coords", "offset", "pattern")


# --------------------------------------------------------------------------------------------------------- the driver


def struct(raw: bytes) -> object:
    """Return bytes as a struct passed by value."""
    return (ctypes.c_ubyte * len(raw)).from_buffer_copy(raw)


class Cuda:
    """A few driver calls through ctypes; every failure raises with the driver's number."""

    def __init__(self) -> None:
        self.lib = ctypes.CDLL("libcuda.so.1")
        device = ctypes.c_int()
        context = ctypes.c_void_p()
        self.check("cuInit", 0)
        self.check("cuDeviceGet", ctypes.byref(device), 0)
        self.check("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.check("cuCtxSetCurrent", context)
        self.modules: dict[str, ctypes.c_void_p] = {}

    def check(self, name: str, *args: object) -> None:
        code = getattr(self.lib, name)(*args)
        if code:
            raise RuntimeError(f"{name}={code}")

    def alloc(self, size: int) -> int:
        pointer = ctypes.c_uint64()
        self.check("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 16)))
        return pointer.value

    def upload(self, array: np.ndarray) -> int:
        array = np.ascontiguousarray(array)
        pointer = self.alloc(array.nbytes)
        self.write(pointer, array)
        return pointer

    def write(self, pointer: int, array: np.ndarray) -> None:
        self.check(
            "cuMemcpyHtoD_v2",
            ctypes.c_uint64(pointer),
            array.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_size_t(array.nbytes),
        )

    def download(self, pointer: int, array: np.ndarray) -> np.ndarray:
        self.check(
            "cuMemcpyDtoH_v2",
            array.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_uint64(pointer),
            ctypes.c_size_t(array.nbytes),
        )
        return array

    def free(self, pointer: int) -> None:
        self.check("cuMemFree_v2", ctypes.c_uint64(pointer))

    def filled(self, size: int, value: int) -> int:
        """Return memory that holds one byte value throughout."""
        pointer = self.alloc(size)
        self.check("cuMemsetD8_v2", ctypes.c_uint64(pointer), ctypes.c_ubyte(value), ctypes.c_size_t(size))
        return pointer

    def repeated(self, block: np.ndarray, size: int) -> int:
        """Return memory that repeats a block."""
        pointer = self.alloc(-(-size // block.size) * block.size)
        self.write(pointer, block)
        for at in range(block.size, size, block.size):
            self.check(
                "cuMemcpyDtoD_v2", ctypes.c_uint64(pointer + at), ctypes.c_uint64(pointer), ctypes.c_size_t(block.size)
            )
        return pointer

    def launch(self, kernel: KernelSource, cubins: Path, blocks: int, smem: int, args: list[object]) -> None:
        if kernel.name not in self.modules:
            module = ctypes.c_void_p()
            self.check("cuModuleLoadData", ctypes.byref(module), (cubins / f"{kernel.name}.cubin").read_bytes())
            self.modules[kernel.name] = module
        function = ctypes.c_void_p()
        self.check("cuModuleGetFunction", ctypes.byref(function), self.modules[kernel.name], kernel.name.encode())
        self.check("cuFuncSetAttribute", function, 8, smem)
        values = [struct(v) if isinstance(v, bytes) else ctypes.c_uint64(v) if "*" in t else ctypes.c_int(v)
                  for (t, _), v in zip(kernel.parameters, args, strict=True)]  # fmt: skip
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        self.check("cuLaunchKernel", function, blocks, 1, 1, kernel.threads, 1, 1, smem, None, pointers, None)
        self.check("cuCtxSynchronize")

    def encode(self, row: np.ndarray, address: int) -> tuple[int, bytes]:
        """Return the driver's verdict and the 128 bytes for one row of params, at an absolute address."""
        p = [int(v) for v in row]
        rank = p[1]
        raw = np.zeros(32, dtype=np.uint64)
        start = (-raw.ctypes.data % 128) // 8
        aligned = raw[start : start + 16]
        dims = (ctypes.c_uint64 * 5)(*[v & (2**64 - 1) for v in p[3:8]])
        strides = (ctypes.c_uint64 * 4)(*[v & (2**64 - 1) for v in p[8:12]])
        box = (ctypes.c_uint32 * 5)(*[v & 0xFFFFFFFF for v in p[12:17]])
        steps = (ctypes.c_uint32 * 5)(*[v & 0xFFFFFFFF for v in p[17:22]])
        code = self.lib.cuTensorMapEncodeTiled(
            ctypes.c_void_p(aligned.ctypes.data), p[0], ctypes.c_uint32(rank), ctypes.c_void_p(address), dims, strides,
            box, steps, *p[22:26]
        )  # fmt: skip
        return code, aligned.tobytes() if code == 0 else bytes(128)


class Host:
    """The same calls on the CPU models; a rehearsal, not evidence about hardware."""

    def __init__(self) -> None:
        self.buffers: dict[int, np.ndarray] = {}

    def alloc(self, size: int) -> int:
        buffer = np.zeros(size + 256, dtype=np.uint8)
        pointer = buffer.ctypes.data + (-buffer.ctypes.data % 256)
        self.buffers[pointer] = buffer
        return pointer

    def upload(self, array: np.ndarray) -> int:
        pointer = self.alloc(array.nbytes)
        self.write(pointer, np.ascontiguousarray(array))
        return pointer

    def write(self, pointer: int, array: np.ndarray) -> None:
        ctypes.memmove(pointer, array.ctypes.data, array.nbytes)

    def download(self, pointer: int, array: np.ndarray) -> np.ndarray:
        ctypes.memmove(array.ctypes.data, pointer, array.nbytes)
        return array

    def free(self, pointer: int) -> None:
        del self.buffers[pointer]

    def filled(self, size: int, value: int) -> int:
        """Return memory that holds one byte value throughout."""
        pointer = self.alloc(size)
        ctypes.memset(pointer, value, size)
        return pointer

    def repeated(self, block: np.ndarray, size: int) -> int:
        """Return memory that repeats a block."""
        return self.upload(np.resize(block, size))

    def launch(self, kernel: KernelSource, _: Path, blocks: int, smem: int, args: list[object]) -> None:
        from layoutalg.codegen.hostsim import run

        regions = [(pointer, buffer.size - 256) for pointer, buffer in self.buffers.items()]
        fault = run(kernel, args, blocks=blocks, dynamic_smem_bytes=smem, regions=regions)
        if fault:
            raise RuntimeError(f"host model fault={fault}")

    def encode(self, row: np.ndarray, address: int) -> tuple[int, bytes]:
        p = [int(v) for v in row]
        rank = p[1]
        formats = (0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 7, 8)
        w = [0] * 32
        w[0], w[1] = address & 0xFFFFFFFF, address >> 32 & 0xFFFFFFFF
        w[2] = (
            (rank - 1) << 4
            | formats[p[0]] << 7
            | p[22] << 11
            | p[23] << 13
            | p[25] << 15
            | (p[0] >= 11) << 16
            | p[24] << 17
        )
        for i in range(rank - 1):
            w[3 + i] = p[8 + i] >> 4 & 0xFFFFFFFF
            w[7] |= (p[8 + i] >> 36) << (4 * i)
        for i in range(rank):
            w[8 + i] = p[3 + i] - 1
            w[13] |= (p[17 + i] - 1) << (3 * i)
        w[13] |= (p[12] - 1) << 24
        w[14] = sum((p[12 + i] - 1) << (8 * (i - 1)) for i in range(1, rank))
        return 0, np.array(w, dtype=np.uint32).tobytes()


# --------------------------------------------------------------------------------------------------------- prediction


def counts(p: np.ndarray) -> list[int]:
    """Return the elements one copy moves per mode; mode 0 ignores its element stride."""
    return [int(p[12 + i]) if i == 0 else -(-int(p[12 + i]) // int(p[17 + i])) for i in range(int(p[1]))]


def walk(p: np.ndarray, coords: np.ndarray, offset: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return shared byte address, global byte offset and in-bounds flag of every element, mode 0 fastest."""
    size, span, rank = ELEMENT_BYTES[p[0]], SPAN[p[23]], int(p[1])
    n = counts(p)
    index = np.indices(n[::-1]).reshape(rank, -1)[::-1].astype(np.int64)
    row = np.zeros(index.shape[1], dtype=np.int64)
    pitch = 1
    for j in range(1, rank):
        row += index[j] * pitch
        pitch *= n[j]
    shared = offset + row * (span or n[0] * size) + index[0] * size
    if span:
        shared ^= (shared >> 7 & (span // 16 - 1)) << 4
    where = np.full(row.shape, int(p[2]), dtype=np.int64)
    inside = np.ones(row.shape, dtype=bool)
    for j in range(rank):
        x = int(coords[j]) + index[j] * (int(p[17 + j]) if j else 1)
        inside &= (x >= 0) & (x < int(p[3 + j]))
        where += x * (int(p[7 + j]) if j else size)
    return shared, where, inside


def footprint(p: np.ndarray) -> int:
    """Return the shared bytes one copy of this map spans."""
    n = counts(p)
    return (SPAN[p[23]] or n[0] * ELEMENT_BYTES[p[0]]) * int(np.prod(n[1:], dtype=np.int64))


def expect_bytes(p: np.ndarray) -> int:
    """Return the transaction bytes of one load."""
    return int(np.prod(counts(p), dtype=np.int64)) * ELEMENT_BYTES[p[0]]


def source_words(kind: int, words: int) -> np.ndarray:
    """Return the test pattern: distinct words, normal floats (0), denormals (1), random (2), special (3)."""
    if kind == 3:
        return np.resize(np.array(SPECIAL_WORDS, dtype=np.uint32), words).view(np.uint8)
    if kind == 2:
        return np.random.default_rng(words).integers(0, 2**32, words, dtype=np.uint32).view(np.uint8)
    return (np.arange(words, dtype=np.uint32) + np.uint32(0x40000000 if kind == 0 else 1)).view(np.uint8)


def predict(kind: str, p: np.ndarray, coords: np.ndarray, offset: int, pattern: int) -> np.ndarray:
    """Return the image a load leaves, or the window a store leaves, by the rules believed so far."""
    size = ELEMENT_BYTES[p[0]]
    if kind == "store":  # the inner extent is rounded up to whole 16-byte chunks
        p = p.copy()
        p[3] = -(-int(p[3]) * size // 16) * 16 // size
    shared, where, inside = walk(p, coords, offset)
    lanes = np.arange(size)
    if kind == "load":
        memory, image = source_words(pattern, BUFFER_WORDS), np.full(IMAGE_BYTES, 0xEE, dtype=np.uint8)
        data = np.zeros((shared.size, size), dtype=np.uint8)
        data[inside] = memory[where[inside][:, None] + lanes]
        if p[0] >= 11:
            bits = data.view(np.uint32)
            rounded = (bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000
            data = (
                np.where(bits & 0x7FFFFFFF > 0x7F800000, 0x7FFFE000, rounded)
                .astype(np.uint32)
                .view(np.uint8)
                .reshape(-1, 4)
            )
        fill = np.tile(np.array([0xF7, 0x7F], dtype=np.uint8), 4)[:size] if p[25] else np.zeros(size, dtype=np.uint8)
        data[~inside] = fill
        image[shared[:, None] + lanes] = data
        return image
    window = np.full(WINDOW_BYTES, 0xA5, dtype=np.uint8)
    image = source_words(pattern, IMAGE_BYTES // 4)
    window[where[inside][:, None] + lanes] = image[shared[inside][:, None] + lanes]
    return window


# --------------------------------------------------------------------------------------------------------- the probes


def random_map(rng: np.random.Generator, **fixed: object) -> np.ndarray | None:
    """Return one row of params the driver should accept, or None when the draw does not fit the memory."""
    p = np.full(26, -1, dtype=np.int64)
    dtype = int(fixed.get("dtype", rng.integers(0, 13)))
    rank = int(fixed.get("rank", rng.integers(1, 6)))
    swizzle = int(fixed.get("swizzle", rng.integers(0, 4)))
    size = ELEMENT_BYTES[dtype]
    most = SPAN[swizzle] or 256
    inner = 16 * int(rng.integers(1, most // 16 + 1))
    if rng.random() < 0.4:
        inner = most
    box = [min(inner // size, 256)] + [int(rng.choice((1, 2, 3, 4, 5, 8, 16))) for _ in range(rank - 1)]
    if box[0] * size % 16:
        return None
    steps = [1] * rank
    if fixed.get("steps"):
        steps = [int(rng.integers(1, 4)) for _ in range(rank)]
    unit = 16 // size if size < 16 else 1
    dims = [int(rng.integers(1, 2 * b + 2)) for b in box]
    if fixed.get("cut"):
        dims[0] = max(1, int(rng.integers(1, 2 * box[0])))
    else:
        dims[0] = max(unit, dims[0] // unit * unit)
    if fixed.get("box_le_dim"):
        dims = [max(d, b * s) for d, b, s in zip(dims, box, steps, strict=True)]
    if fixed.get("box_gt_dim"):
        dims = [max(1, b // 2) if rng.random() < 0.7 else d for d, b in zip(dims, box, strict=True)]
        dims[0] = max(unit, dims[0] // unit * unit)
    pitch = -(-dims[0] * size // 16) * 16
    strides = []
    for j in range(1, rank):
        strides.append(pitch + 16 * int(rng.integers(0, 3)))
        pitch = strides[-1] * dims[j]
    p[:3] = dtype, rank, MARGIN + 16 * int(rng.integers(0, 8))
    p[3 : 3 + rank], p[8 : 7 + rank], p[12 : 12 + rank], p[17 : 17 + rank] = dims, strides, box, steps
    p[22:26] = 0, swizzle, int(rng.integers(0, 4)), int(rng.integers(0, 2)) if dtype in FLOATS else 0
    if "fill" in fixed:
        p[25] = fixed["fill"]
    if footprint(p) > 16384 or pitch > WINDOW_BYTES - 2 * MARGIN:
        return None
    if int(np.prod([b // s for b, s in zip(box, steps, strict=True)])) * size > 200000:
        return None
    return p


def random_coords(rng: np.random.Generator, p: np.ndarray, how: str) -> np.ndarray:
    """Return start coordinates: ``in`` bounds, ``over`` the far edges, or ``neg`` in some mode."""
    coords = np.zeros(5, dtype=np.int32)
    unit = max(1, 16 // ELEMENT_BYTES[p[0]])
    for j in range(int(p[1])):
        reach, dim = (int(p[12 + j]) - 1) + 1, int(p[3 + j])
        if how == "in":
            value = int(rng.integers(0, max(dim - reach, 0) + 1))
        elif how == "over":
            value = int(rng.integers(0, dim + 2))
        else:
            value = int(rng.integers(-reach - 1, dim + 1))
        coords[j] = value // unit * unit if j == 0 else value
    if how == "neg":
        j = int(rng.integers(0, p[1]))
        coords[j] = -unit * int(rng.integers(1, 3)) if j == 0 else -int(rng.integers(1, 3))
    return coords


def copies(
    kind: str,
    group: str,
    number: int,
    seed: int,
    how: str = "over",
    offset: int = 0,
    pattern: int = 0,
    edit: object = None,
    **fixed: object,
) -> dict[str, object]:
    """Return one group of cases."""
    rng = np.random.default_rng(seed)
    rows, coords = [], []
    for _ in range(200 * number):
        if len(rows) == number:
            break
        p = random_map(rng, **fixed)
        if p is None:
            continue
        c = random_coords(rng, p, how)
        if callable(edit) and not edit(rng, p, c):
            continue
        rows.append(p)
        coords.append(c)
    n = len(rows)
    return {
        "kind": kind, "group": group, "params": np.array(rows), "coords": np.array(coords, dtype=np.int32),
        "offset": np.full(n, offset, dtype=np.int32), "pattern": np.full(n, pattern, dtype=np.int32),
    }  # fmt: skip


def edit_negative(mode: int) -> Callable[..., bool]:
    def edit(_: np.random.Generator, p: np.ndarray, c: np.ndarray) -> bool:
        if mode >= p[1]:
            return False
        c[:] = 0
        c[mode] = -max(1, 16 // ELEMENT_BYTES[p[0]]) if mode == 0 else -1
        return True

    return edit


def edit_misaligned(rng: np.random.Generator, p: np.ndarray, c: np.ndarray) -> bool:
    if ELEMENT_BYTES[p[0]] >= 16:
        return False
    c[0] = int(rng.integers(1, 16 // ELEMENT_BYTES[p[0]] + 1))
    return int(c[0]) * ELEMENT_BYTES[p[0]] % 16 != 0


def edit_stride_zero(rng: np.random.Generator, p: np.ndarray, _: np.ndarray) -> bool:
    if p[1] < 2:
        return False
    p[8 + int(rng.integers(0, p[1] - 1))] = 0
    return True


def edit_overlap(rng: np.random.Generator, p: np.ndarray, _: np.ndarray) -> bool:
    if p[1] < 2:
        return False
    for j in range(int(p[1]) - 1):
        p[8 + j] = 16 * int(rng.integers(0, 9))
    return True


def edit_large_dim(extents: tuple[int, ...]) -> Callable[..., bool]:
    """Return an edit: a long dimension with stride 0, or a long inner one whose base lies far below the buffer."""

    def edit(rng: np.random.Generator, p: np.ndarray, c: np.ndarray) -> bool:
        if p[1] < 2:
            return False
        if rng.random() < 0.7:
            j = int(rng.integers(1, p[1]))
            p[3 + j] = int(rng.choice(extents))
            p[7 + j] = 0
            c[j] = int(rng.choice((2**31 - 1, 2**31 - 2, 2**31 - 3, 7, -1, -2, -(2**31))))
        else:
            p[3] = int(rng.choice(extents))
            c[0] = 2**31 - 16
            p[2] = MARGIN - int(c[0]) * ELEMENT_BYTES[p[0]]
        return True

    return edit


def copy_groups(section: str, scale: float) -> list[dict[str, object]]:
    """Return the groups of one section."""
    n = lambda count: max(4, int(count * scale))  # noqa: E731
    groups = []
    if section == "store":
        for swizzle in range(4):
            groups.append(
                copies("store", f"in_sw{swizzle}", n(60), 100 + swizzle, "in", swizzle=swizzle, box_le_dim=True)
            )
            groups.append(copies("store", f"over_sw{swizzle}", n(60), 110 + swizzle, "over", swizzle=swizzle))
            groups.append(copies("store", f"cut_sw{swizzle}", n(50), 120 + swizzle, "over", swizzle=swizzle, cut=True))
        groups.append(copies("store", "element_strides", n(120), 130, "over", steps=True))
        groups.append(copies("store", "element_strides_cut", n(40), 131, "over", steps=True, cut=True))
        groups += [copies("store", f"negative_mode{j}", n(4), 140 + j, "over", edit=edit_negative(j)) for j in range(5)]
        groups.append(copies("store", "negative_any", n(8), 146, "neg"))
        groups.append(copies("store", "box_gt_dim", n(40), 150, "over", box_gt_dim=True))
        groups.append(copies("store", "denormal", n(60), 151, "in", pattern=1, box_le_dim=True))
        groups += [
            copies("store", f"f32_kinds_{d}", n(16), 160 + d, "in", dtype=d, box_le_dim=True) for d in (7, 10, 11, 12)
        ]
        groups.append(copies("store", "stride_zero", n(20), 170, "over", edit=edit_stride_zero))
        groups.append(copies("store", "overlap", n(20), 171, "over", edit=edit_overlap))
        groups.append(copies("store", "misaligned_inner", n(6), 172, "in", edit=edit_misaligned))
        for offset in (512, 256, 128, 64, 32, 16):
            groups += [
                copies(
                    "store",
                    f"source{offset}_sw{s}",
                    n(16 if offset >= 128 else 6),
                    180 + offset + s,
                    "in",
                    offset=offset,
                    swizzle=s,
                    box_le_dim=True,
                )
                for s in range(4)
            ]
    else:
        groups.append(copies("load", "over", n(60), 200, "neg"))
        groups.append(copies("load", "element_strides", n(60), 201, "neg", steps=True))
        groups.append(copies("load", "cut", n(60), 202, "over", cut=True))
        groups.append(copies("load", "box_gt_dim", n(60), 203, "over", box_gt_dim=True))
        groups.append(copies("load", "stride_zero", n(60), 204, "over", edit=edit_stride_zero))
        groups.append(copies("load", "overlap", n(60), 205, "over", edit=edit_overlap))
        groups.append(copies("load", "large_dim", n(60), 206, "over", edit=edit_large_dim((2**31 - 1, 2**31))))
        groups.append(
            copies("load", "larger_dim", n(8), 208, "over", edit=edit_large_dim((2**31 + 1, 2**32 - 1, 2**32)))
        )
        groups.append(copies("load", "denormal", n(60), 207, "over", pattern=1))
        groups += [
            copies("load", f"f32_kinds_{d}_{p}", n(20), 210 + 4 * d + p, "over", dtype=d, pattern=p)
            for d in (7, 10, 11, 12)
            for p in (0, 1, 2, 3)
        ]
        groups.append(copies("load", "misaligned_inner", n(6), 240, "in", edit=edit_misaligned))
        for offset in (512, 256, 128, 64, 32, 16):
            groups += [
                copies(
                    "load",
                    f"dest{offset}_sw{s}",
                    n(16 if offset >= 128 else 6),
                    250 + offset + s,
                    "over",
                    offset=offset,
                    swizzle=s,
                )
                for s in range(4)
            ]
    return [group for group in groups if len(group["params"])]


# ---------------------------------------------------------------------------------------------------- wgmma operand B

REGION_BYTES = 131072
WGMMA_N = (8, 64, 128, 256)

_PROBE_B = """
// Which element is read for B[k][n]: A selects row k of B, shared memory holds every element's own index, one byte
// of it per pass.
extern "C" __global__ void __launch_bounds__(128) la_probe_b_{n}({signature})
{{
    unsigned char* base = la_aligned_shared(1024);
    unsigned short* region = (unsigned short*)base;
    unsigned short* a = (unsigned short*)(base + {region});
    const la_u32 address = la_shared_address(base);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    // A, K-major without swizzle: (m, k) lies at (m % 8) * 16 + (m / 8) * 256 + (k / 8) * 128 + (k % 8) * 2 bytes.
    for (int i = threadIdx.x; i < 64 * 16; i += 128) {{
        const int m = i / 16, k = i % 16;
        a[(m % 8) * 8 + (m / 8) * 128 + (k / 8) * 64 + k % 8] = m == k ? 0x3C00 : 0;
    }}
    const la_u64 a_descriptor = (la_u64)(((address + {region}) & 0x3FFFF) >> 4) | (8ull << 16) | (16ull << 32);
    const la_u64 b_descriptor = descriptors[blockIdx.x] + ((address & 0x3FFFF) >> 4);

    int found[{registers}];
    for (int pass = 0; pass < 2; ++pass) {{
        for (int i = threadIdx.x; i < {elements}; i += 128) {{
            const int value = (i >> (8 * pass)) & 255;  // exact in half precision
            int exponent = 0;
            while (value >> (exponent + 1)) ++exponent;
            region[i] = value ? (unsigned short)((exponent + 15) << 10 | ((value << (10 - exponent)) & 1023)) : 0;
        }}
        la_fence_async();
        __syncthreads();
        float d[{registers}];
        for (int v = 0; v < {registers}; ++v) d[v] = 0.0f;
        la_wgmma_fence();
        if (transposed[blockIdx.x]) la_wgmma_m64n{n}k16_f16<0, 1>(d, a_descriptor, b_descriptor, 0);
        else la_wgmma_m64n{n}k16_f16<0, 0>(d, a_descriptor, b_descriptor, 0);
        la_wgmma_commit();
        la_wgmma_wait();
        for (int v = 0; v < {registers}; ++v) found[v] = pass ? found[v] | (int)d[v] << 8 : (int)d[v];
        __syncthreads();
    }}
    if (warp == 0) {{
        for (int v = 0; v < {registers}; ++v) {{
            const int k = lane / 4 + 8 * (v / 2 % 2), column = 2 * (lane % 4) + v % 2 + 8 * (v / 4);
            found_index[(la_u64)blockIdx.x * 16 * {n} + k * {n} + column] = (unsigned short)found[v];
        }}
    }}
}}
"""


def probe_b_kernel(n: int) -> KernelSource:
    """Return the probe for one N."""
    parameters = (("const la_u64*", "descriptors"), ("const int*", "transposed"), ("unsigned short*", "found_index"))
    body = _PROBE_B.format(
        n=n, registers=n // 2, region=REGION_BYTES, elements=REGION_BYTES // 2,
        signature=", ".join(f"{kind} {name}" for kind, name in parameters),
    )  # fmt: skip
    return KernelSource(
        f"la_probe_b_{n}",
        PRELUDE + wgmma_prelude("f16", n) + body,
        "sm_90a",
        128,
        REGION_BYTES + 2048 + 1024,
        parameters,
    )


def wgmma_fields(n: int, number: int, seed: int) -> np.ndarray:
    """Return random descriptors: start bytes, LBO and SBO in 16-byte units, base offset, swizzle code, transposed."""
    rng = np.random.default_rng(seed)
    steps = max(n // 8 - 1, 1)
    most = (REGION_BYTES - 12288) // 16 // (steps + 1)
    rows = []
    for i in range(number):
        trans, swizzle = i % 2, i // 2 % 4
        start = 16 * int(rng.integers(0, 256)) if rng.random() < 0.7 else 1024 * int(rng.integers(0, 4))
        lbo, sbo = int(rng.integers(1, most)), int(rng.integers(1, most))
        if rng.random() < 0.5:  # canonical distances: whole swizzle atoms
            atom = (8, 16, 32, 64)[(0, 3, 2, 1)[swizzle]]
            lbo, sbo = (max(1, v // atom) * atom for v in (lbo, sbo))
        rows.append(
            (
                start,
                min(lbo, 16383),
                min(sbo, 16383),
                int(rng.integers(0, 8)) if rng.random() < 0.5 else 0,
                swizzle,
                trans,
            )
        )
    return np.array(rows, dtype=np.int32)


def predict_b(field: np.ndarray, n: int) -> np.ndarray:
    """Return the element index read for (k, n) by the rule measured for operand A, with n in place of m."""
    start, lbo, sbo, base_offset, code, trans = (int(v) for v in field)
    w = (1, 8, 4, 2)[code]
    k, m = np.meshgrid(np.arange(16), np.arange(n), indexing="ij")
    lead, stride = 16 * lbo, 16 * sbo
    if not trans:
        offset = m % 8 * 16 * w + m // 8 * stride + (2 * k if code else k // 8 * lead + k % 8 * 2)
    elif code:
        offset = m % (8 * w) * 2 + m // (8 * w) * lead + k % 8 * 16 * w + k // 8 * stride
    else:
        offset = m % 8 * 2 + m // 8 * stride + k % 8 * 16 + k // 8 * lead
    address = start + offset
    address = address ^ (((address >> 7) - base_offset) % w) << 4
    return address // 2


# ------------------------------------------------------------------------------------------------------- one batch


def run_copies(device: Cuda | Host, job: dict[str, np.ndarray], cubins: Path) -> dict[str, np.ndarray]:
    """Run the cases of one group, one launch per rank."""
    kind = str(job["kind"])
    params, coords, offset, pattern = (job[name] for name in COPY_FIELDS)
    n = len(params)
    status, done = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
    answer = np.zeros((n, IMAGE_BYTES if kind == "load" else WINDOW_BYTES), dtype=np.uint8)
    maps = np.zeros((n, 128), dtype=np.uint8)
    buffers = (
        {int(k): device.upload(source_words(int(k), BUFFER_WORDS)) for k in np.unique(pattern)}
        if kind == "load"
        else {}
    )
    windows = device.upload(np.full(n * WINDOW_BYTES, 0xA5, dtype=np.uint8)) if kind == "store" else 0
    for i in range(n):
        home = buffers[int(pattern[i])] if kind == "load" else windows + i * WINDOW_BYTES
        status[i], raw = device.encode(params[i], (home + int(params[i, 2])) % 2**64)
        maps[i] = np.frombuffer(raw, dtype=np.uint8)
    for rank in range(1, 6):
        chosen = [i for i in range(n) if params[i, 1] == rank and status[i] == 0]
        if not chosen:
            continue
        tables = runner_tables(
            [
                (maps[i].tobytes(), [(0, coords[i, :rank].tolist())], expect_bytes(params[i]), int(offset[i]))
                for i in chosen
            ]
        )
        image = np.stack([source_words(int(pattern[i]), IMAGE_BYTES // 4) for i in chosen])
        images = device.upload(image)
        flags = device.upload(np.zeros(len(chosen), dtype=np.int32))
        args = [
            device.upload(tables.maps),
            device.upload(tables.heads),
            device.upload(tables.issues),
            images,
            IMAGE_BYTES,
            flags,
        ]
        device.launch(runner_kernel(rank, kind), cubins, len(chosen), runner_smem_bytes(IMAGE_BYTES), args)
        done[chosen] = device.download(flags, np.zeros(len(chosen), dtype=np.int32))
        if kind == "load":
            answer[chosen] = device.download(images, image)
    if kind == "store":
        answer = device.download(windows, answer)
    return {"status": status, "done": done, "answer": answer, "maps": maps}


def run_wgmma(device: Cuda | Host, job: dict[str, np.ndarray], cubins: Path) -> dict[str, np.ndarray]:
    """Run the descriptors of one N."""
    n, fields = int(job["n"]), job["fields"].astype(np.uint64)
    kernel = probe_b_kernel(n)
    descriptors = fields[:, 0] >> np.uint64(4) | fields[:, 1] << np.uint64(16) | fields[:, 2] << np.uint64(32)
    descriptors |= fields[:, 3] << np.uint64(49) | fields[:, 4] << np.uint64(62)
    index = np.zeros((len(fields), 16, n), dtype=np.uint16)
    out = device.upload(index)
    args = [device.upload(descriptors), device.upload(job["fields"][:, 5].astype(np.int32)), out]
    device.launch(kernel, cubins, len(fields), kernel.dynamic_smem_bytes, args)
    return {"done": np.ones(len(fields), dtype=np.int32), "index": device.download(out, index)}


def worker(arguments: argparse.Namespace) -> int:
    """Run one job file in this process."""
    with np.load(arguments.job, allow_pickle=False) as stored:
        job = dict(stored)
    device = Cuda() if arguments.backend == "cuda" else Host()
    kind = str(job["kind"])
    if kind in ("problems", "matmul"):
        import device_problems

        section = device_problems.run_problems if kind == "problems" else device_problems.run_products
        answer = section(device, job, Path(arguments.cubins))
    else:
        answer = (run_wgmma if kind == "wgmma" else run_copies)(device, job, Path(arguments.cubins))
    np.savez(arguments.answer, **answer)
    return 0


# ------------------------------------------------------------------------------------------------------- the campaign


class Campaign:
    """Runs batches in subprocesses and isolates the faulting cases."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.out = Path(arguments.out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.scratch = Path(tempfile.mkdtemp(prefix="campaign-"))
        self.end = time.monotonic() + arguments.seconds
        self.rows: list[tuple[str, ...]] = []
        self.serial = 0

    def compile(self, sections: list[str]) -> None:
        """Compile every kernel to a cubin: nvcc where it exists, else the library's run-time compiler."""
        kernels = [runner_kernel(r, d) for r in range(1, 6) for d in ("load", "store")]
        if "wgmma" in sections:
            kernels += [probe_b_kernel(n) for n in WGMMA_N]
        if "matmul" in sections:
            import device_problems

            entries = json.loads(Path(self.arguments.problems).read_text())["products"]
            kernels += [device_problems.product_kernel(entry) for entry in entries]

        def one(kernel: KernelSource) -> None:
            source, target = self.scratch / f"{kernel.name}.cu", self.scratch / f"{kernel.name}.cubin"
            source.write_text(kernel.text)
            try:
                flags = ["-cubin", "-gencode=arch=compute_90a,code=sm_90a", "-o", str(target), str(source)]
                subprocess.run(["nvcc", *flags], check=True, capture_output=True, text=True)
            except FileNotFoundError:
                from layoutalg.codegen.compile import to_cubin

                target.write_bytes(to_cubin(kernel))

        with ThreadPoolExecutor(self.arguments.jobs) as pool:
            list(pool.map(one, kernels))

    def batch(self, job: dict[str, object]) -> tuple[dict[str, np.ndarray] | None, str]:
        """Run one job in a subprocess; return its answer, or None and the error."""
        self.serial += 1
        stem = self.scratch / f"{job['kind']}_{job.get('group', job.get('n'))}_{self.serial}"
        np.savez(f"{stem}_job.npz", **job)
        command = [
            sys.executable,
            __file__,
            "worker",
            "--backend",
            self.arguments.backend,
            "--cubins",
            str(self.scratch),
        ]
        command += ["--job", f"{stem}_job.npz", "--answer", f"{stem}_answer.npz"]
        try:
            process = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
        except subprocess.TimeoutExpired:
            return None, "timeout"
        if process.returncode:
            lines = process.stderr.strip().splitlines() or [f"exit {process.returncode}"]
            return None, lines[-1][-120:]
        with np.load(f"{stem}_answer.npz") as stored:
            return dict(stored), ""

    def isolate(
        self,
        job: dict[str, object],
        cases: list[int],
        found: dict[int, dict[str, np.ndarray]],
        faults: dict[int, str],
        budget: list[int],
    ) -> None:
        """Run the cases together; on a fault, halve until the faulting case stands alone or the budget is spent."""
        if time.monotonic() > self.end or budget[0] <= 0:
            faults.update(dict.fromkeys(cases, "not run: budget"))
            return
        budget[0] -= 1
        part = {
            name: value[cases] if isinstance(value, np.ndarray) and value.ndim else value for name, value in job.items()
        }
        answer, error = self.batch(part)
        if answer is not None:
            for position, case in enumerate(cases):
                found[case] = {name: value[position] for name, value in answer.items()}
        elif len(cases) == 1:
            faults[cases[0]] = error
        else:
            middle = len(cases) // 2
            self.isolate(job, cases[:middle], found, faults, budget)
            self.isolate(job, cases[middle:], found, faults, budget)

    def group(self, section: str, job: dict[str, object], key: str) -> None:
        """Run one group, store what happened and add a table row."""
        began = time.monotonic()
        n = len(job[key])  # type: ignore[arg-type]
        found: dict[int, dict[str, np.ndarray]] = {}
        faults: dict[int, str] = {}
        self.isolate(job, list(range(n)), found, faults, [self.arguments.isolation])
        stored = {name: value for name, value in job.items() if isinstance(value, np.ndarray)}
        stored["fault"] = np.array([faults.get(i, "") for i in range(n)])
        template = next(iter(found.values()), {})
        for name, value in template.items():
            stored[name] = np.stack([found[i][name] if i in found else np.zeros_like(value) for i in range(n)])
        agree, first = self.compare(job, found)
        name = f"{section}_{job.get('group', job.get('n'))}"
        np.savez_compressed(self.scratch / f"result_{name}.npz", **stored)
        refused = sum(int(f.get("status", 0) != 0 or f["done"] == 3) for f in found.values())
        late = sum(int(f["done"] == 2) for f in found.values())
        kinds = ",".join(sorted(set(faults.values())))
        row = (
            name,
            str(n),
            str(len(found)),
            str(refused),
            str(late),
            str(len(faults)),
            f"{agree}/{len(found) - refused}",
            f"{time.monotonic() - began:.1f}",
            f"{kinds} {first}"[:150],
        )
        self.rows.append(row)
        print(" | ".join(row), flush=True)

    def compare(self, job: dict[str, object], found: dict[int, dict[str, np.ndarray]]) -> tuple[int, str]:
        """Return how many answers match the prediction, and the first that does not."""
        agree, first = 0, ""
        for i, answer in sorted(found.items()):
            if int(answer.get("status", 0)) or int(answer["done"]) == 3:
                continue
            if job["kind"] in ("load", "store"):
                p, c = job["params"][i], job["coords"][i]  # type: ignore[index]
                wanted = predict(str(job["kind"]), p, c, int(job["offset"][i]), int(job["pattern"][i]))  # type: ignore[index]
                same = np.array_equal(wanted, answer["answer"])
                if not same and not first:
                    at = int(np.flatnonzero(wanted != answer["answer"])[0])
                    first = f"case {i}: byte {at} is {answer['answer'][at]:#x}, predicted {wanted[at]:#x}"
            elif "agree" in answer:
                same = bool(answer["agree"])
                if not same and not first:
                    first = f"case {i}: {answer.get('note', answer.get('error'))}"
            else:
                wanted = predict_b(job["fields"][i], int(job["n"]))  # type: ignore[index,arg-type]
                same = np.array_equal(wanted, answer["index"])
                if not same and not first:
                    first = f"case {i}: fields {job['fields'][i].tolist()}"  # type: ignore[index]
            agree += same
        return agree, first

    def gather(self, section: str) -> None:
        """Put the groups of one section into one file, arrays padded to a common width."""
        files = sorted(self.scratch.glob(f"result_{section}_*.npz"))
        if not files:
            return
        parts = {file.stem.removeprefix(f"result_{section}_"): dict(np.load(file)) for file in files}
        flat = {f"{group}/{name}": value for group, part in parts.items() for name, value in part.items()}
        np.savez_compressed(self.out / f"{section}.npz", **flat)

    def probes(self, sections: list[str]) -> None:
        """Run the probe sections, groups in parallel."""
        for section in sections:
            jobs: list[tuple[str, dict[str, object], str]] = []
            if section == "wgmma":
                count = max(8, int(160 * self.arguments.scale))
                jobs += [
                    (section, {"kind": section, "n": n, "fields": wgmma_fields(n, count, n)}, "fields") for n in WGMMA_N
                ]
            elif section in ("problems", "matmul"):
                jobs += self.listed(section)
            else:
                jobs += [(section, group, "params") for group in copy_groups(section, self.arguments.scale)]
            with ThreadPoolExecutor(self.arguments.jobs) as pool:
                for future in [pool.submit(self.group, *job) for job in jobs]:
                    try:
                        future.result()
                    except Exception as error:
                        print(f"group failed: {error!r}", flush=True)
            self.gather(section)
            self.table(quiet=True)

    def listed(self, section: str) -> list[tuple[str, dict[str, object], str]]:
        """Return the jobs of a section that runs the entries of the JSON file."""
        path = Path(self.arguments.problems).resolve()
        number = len(json.loads(path.read_text())["plans" if section == "problems" else "products"])
        portion = self.arguments.portion
        common = {
            "kind": section,
            "path": str(path),
            "origins": self.arguments.origins,
            "max_bytes": self.arguments.max_bytes,
        }
        return [
            (
                section,
                {**common, "group": f"{first:05d}", "cases": np.arange(first, min(first + portion, number))},
                "cases",
            )
            for first in range(0, number, portion)
        ]

    def table(self, quiet: bool = False) -> None:
        """Store the table and print it."""
        head = ("group", "cases", "run", "refused or skipped", "late", "faults", "agree", "s", "notes")
        lines = [" | ".join(row) for row in [head, *sorted(self.rows)]]
        (self.out / "table.txt").write_text("\n".join(lines) + "\n")
        if not quiet:
            print("\n".join(lines), flush=True)


def device_text() -> str:
    """Return the device's name and driver as the system reports them."""
    try:
        command = ["nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "none"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "what", choices=("all", "probes", "store", "load", "wgmma", "problems", "matmul", "prepare", "worker")
    )
    parser.add_argument("--out", default="campaign")
    parser.add_argument("--backend", choices=("cuda", "host"), default="cuda")
    parser.add_argument("--seconds", type=float, default=420.0)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the number of cases")
    parser.add_argument("--jobs", type=int, default=min(12, os.cpu_count() or 1))
    parser.add_argument("--isolation", type=int, default=24, help="subprocesses one group may use to isolate faults")
    parser.add_argument("--problems", default="plans.json", help="plans and products, as written by 'prepare'")
    parser.add_argument("--tiles", default=str(ROOT / "tests/data/real_tiles.json"), help="problems 'prepare' reads")
    parser.add_argument("--origins", type=int, default=8, help="tile origins per plan")
    parser.add_argument("--portion", type=int, default=64, help="plans per subprocess")
    parser.add_argument("--max-bytes", type=int, default=2**34, help="skip tensors larger than this")
    parser.add_argument("--job")
    parser.add_argument("--answer")
    parser.add_argument("--cubins", default="")
    arguments = parser.parse_args()
    if arguments.what == "worker":
        return worker(arguments)
    if arguments.what == "prepare":
        import device_problems

        device_problems.prepare(arguments.tiles, arguments.problems)
        return 0
    campaign = Campaign(arguments)
    sections = {"all": ["wgmma", "store", "load", "problems", "matmul"], "probes": ["wgmma", "store", "load"]}.get(
        arguments.what, [arguments.what]
    )
    if arguments.backend == "cuda":
        campaign.compile(sections)
    campaign.probes(sections)
    campaign.table()
    (campaign.out / "about.json").write_text(
        json.dumps({"backend": arguments.backend, "sections": sections, "device": device_text()})
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What the driver says to im2col maps: its encoding calls, random parameters around the legal boundaries."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
from device_backends import Cuda

ELEMENT_BYTES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)
FLOATS = (6, 7, 8, 9, 10, 11, 12)
SPAN = (0, 32, 64, 128)
CORNERS = {3: (-32768, 32767), 4: (-128, 127), 5: (-16, 15)}


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

"""Random single bulk tensor copies, what they should leave behind, and running them.

Notation: columns of ``params`` are data type, rank, base (bytes from the case's memory), dim0..4, stride1..4 (bytes),
box0..4, element stride0..4, interleave, swizzle, L2 promotion, fill; numbers are the driver's, unused entries -1.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from device_backends import Cuda, Host
from instruments.runner import runner_kernel, runner_smem_bytes, runner_tables

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

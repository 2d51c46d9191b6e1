"""Tiled maps: the driver's verdicts, single copies, pitches of 0; what copies should leave behind.

Notation: columns of ``params`` are data type, rank, base (bytes from the case's memory), dim0..4, stride1..4 (bytes),
box0..4, element stride0..4, interleave, swizzle, L2 promotion, fill; numbers are the driver's, unused entries -1.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from device import Encoder, Fault, Run, cuda
from instruments.runner import runner_kernel, runner_smem_bytes, runner_tables
from judges import tma_engine

from layoutalg.targets.nvidia import tensormap

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


def expect_bytes(p: np.ndarray) -> int:
    """Return the transaction bytes of one load."""
    return tma_engine.map_of(p).bytes_moved


def source_words(kind: int, words: int) -> np.ndarray:
    """Return the test pattern: distinct words, normal floats (0), denormals (1), random (2), special (3)."""
    if kind == 3:
        return np.resize(np.array(SPECIAL_WORDS, dtype=np.uint32), words).view(np.uint8)
    if kind == 2:
        return np.random.default_rng(words).integers(0, 2**32, words, dtype=np.uint32).view(np.uint8)
    return (np.arange(words, dtype=np.uint32) + np.uint32(0x40000000 if kind == 0 else 1)).view(np.uint8)


def predict(kind: str, p: np.ndarray, coords: np.ndarray, offset: int, pattern: int) -> np.ndarray | None:
    """Return the image or window that a copy leaves, by the judge of the copy engine; None for a fault."""
    tm, image = tma_engine.map_of(p), source_words(pattern, IMAGE_BYTES // 4)
    window = np.full(WINDOW_BYTES, 0xEE if kind == "load" else 0xA5, dtype=np.uint8)
    try:
        if kind == "load":
            tma_engine.load(tm, coords[: tm.rank].tolist(), source_words(pattern, BUFFER_WORDS), window, offset)
        else:
            tma_engine.store(tm, coords[: tm.rank].tolist(), window, image, offset)
    except tma_engine.FaultError:
        return None
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
    if tma_engine.map_of(p).footprint > 16384 or pitch > WINDOW_BYTES - 2 * MARGIN:
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


Case = dict[str, Any]


def copies(kind: str, group: str, number: int, seed: int, how: str = "over", **fixed: Any) -> list[Case]:
    """Return one group of cases; of ``fixed``, offset and pattern are the case's, ``edit`` changes it or refuses it."""
    rng = np.random.default_rng(seed)
    offset, pattern, edit = (fixed.pop(name, 0) for name in ("offset", "pattern", "edit"))
    found: list[Case] = []
    for _ in range(200 * number):
        if len(found) == number:
            break
        p = random_map(rng, **fixed)
        if p is None:
            continue
        c = random_coords(rng, p, how)
        if not edit or edit(rng, p, c):
            found.append({"kind": kind, "group": group, "params": p, "coords": c, "offset": offset, "pattern": pattern})
    return found


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


def copy_cases(scale: float) -> list[Case]:
    """Return all groups of single copies."""
    inside: dict[str, Any] = {"how": "in", "box_le_dim": True}
    stores: list[tuple[str, int, int, dict[str, Any]]] = [
        *((f"in_sw{s}", 60, 100 + s, inside | {"swizzle": s}) for s in range(4)),
        *((f"over_sw{s}", 60, 110 + s, {"swizzle": s}) for s in range(4)),
        *((f"cut_sw{s}", 50, 120 + s, {"swizzle": s, "cut": True}) for s in range(4)),
        ("element_strides", 120, 130, {"steps": True}),
        ("element_strides_cut", 40, 131, {"steps": True, "cut": True}),
        *((f"negative_mode{j}", 4, 140 + j, {"edit": edit_negative(j)}) for j in range(5)),
        ("negative_any", 8, 146, {"how": "neg"}),
        ("box_gt_dim", 40, 150, {"box_gt_dim": True}),
        ("denormal", 60, 151, inside | {"pattern": 1}),
        *((f"f32_kinds_{d}", 16, 160 + d, inside | {"dtype": d}) for d in (7, 10, 11, 12)),
        ("stride_zero", 20, 170, {"edit": edit_stride_zero}),
        ("overlap", 20, 171, {"edit": edit_overlap}),
        ("misaligned_inner", 6, 172, {"how": "in", "edit": edit_misaligned}),
        *((f"source{at}_sw{s}", 16 if at >= 128 else 6, 180 + at + s, inside | {"offset": at, "swizzle": s})
          for at in (512, 256, 128, 64, 32, 16) for s in range(4)),
    ]  # fmt: skip
    loads: list[tuple[str, int, int, dict[str, Any]]] = [
        ("over", 60, 200, {"how": "neg"}),
        ("element_strides", 60, 201, {"how": "neg", "steps": True}),
        ("cut", 60, 202, {"cut": True}),
        ("box_gt_dim", 60, 203, {"box_gt_dim": True}),
        ("stride_zero", 60, 204, {"edit": edit_stride_zero}),
        ("overlap", 60, 205, {"edit": edit_overlap}),
        ("large_dim", 60, 206, {"edit": edit_large_dim((2**31 - 1, 2**31))}),
        ("larger_dim", 8, 208, {"edit": edit_large_dim((2**31 + 1, 2**32 - 1, 2**32))}),
        ("denormal", 60, 207, {"pattern": 1}),
        *((f"f32_kinds_{d}_{p}", 20, 210 + 4 * d + p, {"dtype": d, "pattern": p})
          for d in (7, 10, 11, 12) for p in range(4)),
        ("misaligned_inner", 6, 240, {"how": "in", "edit": edit_misaligned}),
        *((f"dest{at}_sw{s}", 16 if at >= 128 else 6, 250 + at + s, {"offset": at, "swizzle": s})
          for at in (512, 256, 128, 64, 32, 16) for s in range(4)),
    ]  # fmt: skip
    found = []
    for kind, groups in (("store", stores), ("load", loads)):
        for group, count, seed, fixed in groups:
            found += copies(kind, group, max(4, int(count * scale)), seed, **fixed)
    return found


@functools.cache
def buffer(pattern: int) -> int:
    """The global memory that loads of this child read."""
    return cuda().upload(source_words(pattern, BUFFER_WORDS))


def run_copy(case: Case) -> dict[str, Any]:
    """Run one copy; return the driver's status and map, whether it completed, and the image or window that it left."""
    device, kind, p = cuda(), case["kind"], case["params"]
    answer = np.full(WINDOW_BYTES, 0xA5, dtype=np.uint8)
    home = buffer(case["pattern"]) if kind == "load" else device.upload(answer)
    status, raw = Encoder(device.lib).tiled(p.tolist(), home + int(p[2]))
    found = {"status": status, "maps": np.frombuffer(raw, dtype=np.uint8), "done": 0, "answer": np.zeros_like(answer)}
    if status == 0:
        rank, flag = int(p[1]), np.zeros(1, dtype=np.int32)
        tables = runner_tables([(raw, [(0, case["coords"][:rank].tolist())], expect_bytes(p), case["offset"])])
        image = source_words(case["pattern"], IMAGE_BYTES // 4)
        there = [device.upload(each) for each in (tables.maps, tables.heads, tables.issues, image, flag)]
        args = [*there[:4], IMAGE_BYTES, there[4]]
        device.launch(runner_kernel(rank, kind), args, smem=runner_smem_bytes(IMAGE_BYTES))
        found["done"] = int(device.download(there[4], flag)[0])
        found["answer"] = device.download(there[3] if kind == "load" else home, answer)
        device.free(*there)
    if kind == "store":
        device.free(home)
    return found


def copies_of(run: Run, cases: list[Case]) -> list[dict[str, Any]]:
    """Run copies; each with its fault and whether the answer is the one predicted."""
    found = []
    for case, answer in zip(cases, run.each(run_copy, cases), strict=True):
        blank = {"status": 0, "done": 0, "maps": np.zeros(128, np.uint8), "answer": np.zeros(WINDOW_BYTES, np.uint8)}
        row = blank | {"fault": answer.text} if isinstance(answer, Fault) else answer | {"fault": ""}
        given = (case["params"], case["coords"], case["offset"], case["pattern"])
        wanted = predict(case["kind"], *given) if row["fault"] == "" and row["status"] == 0 else None
        found.append(row | {"agrees": wanted is not None and np.array_equal(wanted, row["answer"])})
    return found


RUNNERS = [(rank, direction) for rank in range(1, 6) for direction in ("load", "store")]


# ------------------------------------------------------------------------------------------------------------- the jobs


def copies_job(run: Run) -> None:
    """Write the groups of loads and of stores, and a table."""
    cases = copy_cases(run.options.scale)
    run.compile(runner_kernel(*each) for each in RUNNERS)
    rows = copies_of(run, cases)
    for kind, name in (("load", "tma_load_probe_dev"), ("store", "tma_store_dev")):
        groups: dict[str, list[int]] = {}
        for at, case in enumerate(cases):
            if case["kind"] == kind:
                groups.setdefault(case["group"], []).append(at)
        flat, told = {}, {}
        for group, chosen in groups.items():
            for field in ("params", "coords", "offset", "pattern"):
                flat[f"{group}/{field}"] = np.array([cases[at][field] for at in chosen])
            for field in ("status", "done", "maps", "answer", "fault"):
                flat[f"{group}/{field}"] = np.array([rows[at][field] for at in chosen])
            faults = sorted({rows[at]["fault"] for at in chosen} - {""})
            told[group] = {"cases": len(chosen), "agree": sum(rows[at]["agrees"] for at in chosen), "faults": faults}
        run.save(name, **flat)
        run.write(name, {"cases": sum(map(len, groups.values()))}, groups=told)


def random_parameters(count: int, seed: int) -> np.ndarray:
    """Return int64[count, 26] parameter rows around the legal boundaries (columns as in tests/data/measured)."""
    rng = np.random.default_rng(seed)
    rows = np.full((count, 26), -1, dtype=np.int64)
    rank = rng.choice([1, 2, 3, 4, 5], count, p=[0.1, 0.25, 0.25, 0.2, 0.2])
    dtype = rng.integers(0, 13, count)
    size = np.array(ELEMENT_BYTES)[dtype]
    rows[:, 0], rows[:, 1] = dtype, rank
    rows[:, 2] = rng.choice([0, 16, 32, 48, 4096, 8, 1 << 40], count, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.05])
    for mode in range(5):
        used = rank > mode
        dims = rng.choice(
            [1, 2, 7, 64, 512, 4096, 1 << 20, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, 0],
            count,
            p=[0.08, 0.08, 0.1, 0.2, 0.2, 0.2, 0.1, 0.01, 0.01, 0.01, 0.01],
        )
        box = rng.choice(
            [1, 2, 4, 8, 16, 32, 64, 128, 255, 256, 257, 0],
            count,
            p=[0.12, 0.12, 0.12, 0.15, 0.13, 0.12, 0.1, 0.06, 0.03, 0.03, 0.01, 0.01],
        )
        if mode == 0:
            span = rng.choice([16, 32, 64, 128, 256], count)
            box = np.where(rng.random(count) < 0.6, np.maximum(span // size, 1), box)
        steps = rng.choice([1, 1, 1, 1, 2, 3, 8, 9, 0], count, p=[0.3, 0.2, 0.2, 0.15, 0.05, 0.04, 0.04, 0.01, 0.01])
        rows[used, 3 + mode] = dims[used]
        rows[used, 12 + mode] = box[used]
        rows[used, 17 + mode] = steps[used]
        if mode:
            stride = 16 * rng.choice(
                [0, 1, 3, 64, 1000, 1 << 20, (1 << 36) - 1, 1 << 36],
                count,
                p=[0.03, 0.12, 0.15, 0.3, 0.2, 0.16, 0.02, 0.02],
            )
            stride = stride + np.where(rng.random(count) < 0.03, 8, 0)
            rows[used, 7 + mode] = stride[used]
    rows[:, 22] = rng.choice([0, 0, 0, 0, 0, 0, 0, 1, 2], count)
    rows[:, 23] = rng.integers(0, 4, count)
    rows[:, 24] = rng.integers(0, 4, count)
    rows[:, 25] = rng.choice([0, 0, 0, 1], count)
    return rows


def driver_job(run: Run) -> None:
    """Compare verdicts and bytes with the library's; time one encoding of both."""
    run.compile(())
    rows = random_parameters(run.options.count, run.options.seed)
    [found] = run.each(run_driver, [rows], seconds=300)
    run.write("driver", {"fault": found.text} if isinstance(found, Fault) else found)


def run_driver(rows: np.ndarray) -> dict[str, Any]:
    """Ask the driver about rows of parameters."""
    encoder = Encoder(cuda().lib)
    mine = tensormap.batch.verdicts(rows)
    bytes_of = iter(tensormap.batch.encode_many(rows[mine]))
    verdicts = differing = refused = 0
    first = None
    for row, accepted in zip(rows.tolist(), mine.tolist(), strict=True):
        status, raw = encoder.tiled(row, row[2])
        refused += status != 0
        encoded = next(bytes_of).tobytes() if accepted else None
        wrong = (status == 0) != accepted
        verdicts, differing = verdicts + wrong, differing + (not wrong and accepted and encoded != raw)
        if wrong or (accepted and encoded != raw):
            first = first or {"row": row, "status": status, "driver": raw.hex(), "library": accepted}
    good = next(row for row, accepted in zip(rows.tolist(), mine.tolist(), strict=True) if accepted and row[1] == 3)
    tm = tensormap.batch.from_row(good)
    times = {
        name: round(1e6 * sorted(seconds_of(call) for _ in range(25))[12], 3)
        for name, call in (("driver", lambda: encoder.tiled(good, good[2])), ("library", lambda: tensormap.encode(tm)))
    }
    return {
        "parameter_sets": len(rows), "refused_by_driver": refused, "verdicts_that_differ": verdicts,
        "encodings_that_differ": differing, "first": first, "microseconds_per_encoding": times,
    }  # fmt: skip


def seconds_of(call: Callable[[], object], count: int = 400) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - began) / count


def still_cases(rank: int, each: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return parameters, start coordinates and the set of dimensions whose stride is 0."""
    rng = np.random.default_rng(seed)
    rows, coords, sets = [], [], []
    for still in range(1, 1 << rank - 1):
        for swizzle in range(4):
            for interleave in (0, 0, 1, 2) if rank >= 3 else (0,):
                made = 0
                while made < each:
                    p = random_map(rng, rank=rank, swizzle=swizzle, steps=bool(rng.integers(0, 2)))
                    if p is None:
                        continue
                    for mode in range(rank - 1):
                        if still >> mode & 1:
                            p[8 + mode] = 0
                        elif interleave == 2:
                            p[8 + mode] = -(-int(p[8 + mode]) // 32) * 32
                    p[22] = interleave
                    p[2] = p[2] // 32 * 32
                    rows.append(p)
                    coords.append(random_coords(rng, p, ("in", "over", "neg")[int(rng.integers(0, 3))]))
                    sets.append(still)
                    made += 1
    return np.array(rows), np.array(coords, dtype=np.int32), np.array(sets, dtype=np.int32)


def verdicts_of(params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the driver's verdict on every map, and whether the library has the same verdict and bytes."""
    encoder, mine = Encoder(cuda().lib), tensormap.batch.verdicts(params)
    encoded = iter(tensormap.batch.encode_many(params[mine]))
    status, same = np.zeros(len(params), dtype=np.int32), np.zeros(len(params), dtype=bool)
    for place, (row, accepted) in enumerate(zip(params.tolist(), mine.tolist(), strict=True)):
        status[place], raw = encoder.tiled(row, row[2])
        same[place] = (status[place] == 0) == accepted
        if accepted:
            same[place] &= next(encoded).astype("<u8").tobytes() == raw
    return status, same


def pitch0_job(run: Run) -> None:
    """Every set of dimensions whose stride is 0, every swizzle and interleave; loads of maps without interleave."""
    run.compile(runner_kernel(rank, "load") for rank in range(2, 6))
    kept: dict[str, list[np.ndarray]] = {name: [] for name in ("params", "still", "status", "same", "ran", "agrees")}
    for rank in range(2, 6):
        params, coords, still = still_cases(rank, run.options.each, 500 + rank)
        [(status, same)] = run.each(verdicts_of, [params])
        some = np.flatnonzero((status == 0) & (params[:, 22] == 0)).tolist()
        common: Case = {"kind": "load", "group": "still", "offset": 0, "pattern": 0}
        rows = copies_of(run, [common | {"params": params[at], "coords": coords[at]} for at in some])
        ran, agrees = np.zeros(len(params), dtype=bool), np.zeros(len(params), dtype=bool)
        ran[some], agrees[some] = [row["done"] == 1 for row in rows], [row["agrees"] for row in rows]
        for name, value in zip(kept, (params, still, status, same, ran, agrees), strict=True):
            kept[name].append(value)
    found = {name: np.concatenate(value) for name, value in kept.items()}
    run.save("pitch0_dev", **found)
    counts = {name: int(found[name].sum()) for name in ("same", "ran", "agrees")}
    run.write("pitch0_dev", {"asked": len(found["params"]), "refused": int((found["status"] != 0).sum()), **counts})

"""Loads of interleaved maps, tiled and im2col: one parameter at a time, and random ones."""

from __future__ import annotations

import numpy as np
from device_tma_modes_driver import ELEMENT_BYTES, FLOATS
from device_tma_modes_runs import IMAGE_BYTES


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

"""Random loads of im2col maps, by what is out of the ordinary."""

from __future__ import annotations

import numpy as np
from device_tma_modes_driver import ELEMENT_BYTES, FLOATS, SPAN
from device_tma_modes_runs import IMAGE_BYTES

OFFSETS = {3: 65535, 4: 255, 5: 31}


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

"""Pairs of layouts of registers that are converted between on a device: those of kernels, dense ones, and drawn ones.

The set ``"kernels"`` is compared with Triton's; the sets ``"fitted"`` and ``"held-out"`` are drawn alike from other
seeds: the costs of the model were chosen with the one in view, and its ranking is judged by the other.
"""

from __future__ import annotations

import random
from typing import Any

import layoutalg as la
from layoutalg.f2 import LinearLayout, matrix

SETS = {"kernels": (), "fitted": range(0, 48), "held-out": range(1000, 1072)}
"""Names of sets, with the seeds of those that are drawn."""

DENSE = (1, 3, 4, 6, 9, 10, 12, 14, 15, 17, 18, 21, 22, 24, 30, 32, 33, 39, 42, 43, 47, 0, 2, 5)
"""Seeds of dense pairs; Triton 3.6 does not compile the last three."""


def blocked(each: tuple[int, int], lanes: tuple[int, int], warps: tuple[int, int], order: str) -> str:
    """The text of a blocked layout."""
    told = [f"[{a},{b}]" for a, b in (each, lanes, warps)]
    return f"#ttg.blocked<{{sizePerThread={told[0]},threadsPerWarp={told[1]},warpsPerCTA={told[2]},order=[{order}]}}>"


def named_pairs() -> list[tuple[str, int, tuple[int, int], str, str]]:
    """Pairs of layouts that kernels convert between: name, bits, tile, and the two layouts."""
    found = []
    for bits in (8, 16, 32):
        v = 128 // bits
        for shape in ((64, 64), (128, 64), (128, 128)):
            rows = blocked((1, v), (32 * v // 64 if v < 64 else 32, 64 // v), (4, 1), "1,0")
            columns = blocked((v, 1), (64 // v, 32 * v // 64), (1, 4), "0,1")
            found.append((f"transposed {shape[0]}x{shape[1]}", bits, shape, rows, columns))
        found.append(
            ("tiles", bits, (64, 64), blocked((4, 4), (4, 8), (4, 1), "1,0"), blocked((1, 4), (8, 4), (2, 2), "1,0"))
        )
        found.append(("lanes of a warp", bits, (64, 64), blocked((1, 4), (8, 4), (4, 1), "1,0"),
                      blocked((1, 4), (4, 8), (4, 1), "1,0")))  # fmt: skip
    mma = "#ttg.nvidia_mma<{versionMajor=2,versionMinor=0,warpsPerCTA=[2,2],instrShape=[16,8]}>"
    rows16, rows32 = blocked((1, 8), (4, 8), (4, 1), "1,0"), blocked((1, 4), (2, 16), (4, 1), "1,0")
    for shape in ((64, 64), (128, 64), (128, 128)):
        found.append((f"mma v2 {shape[0]}x{shape[1]}", 16, shape, rows16, mma))
        found.append((f"mma v2 {shape[0]}x{shape[1]}", 32, shape, rows32, mma))
    for n in (64, 128):
        wgmma = f"#ttg.nvidia_mma<{{versionMajor=3,versionMinor=0,warpsPerCTA=[4,1],instrShape=[16,{n},16]}}>"
        for shape in ((64, n), (128, n)):
            found.append((f"wgmma accumulator {shape[0]}x{n}", 16, shape, rows16, wgmma))
            found.append((f"wgmma accumulator {shape[0]}x{n}", 32, shape, rows32, wgmma))
        operand = f"#ttg.dot_op<{{opIdx=0,parent={wgmma},kWidth=4}}>"
        found.append((f"accumulator to operand {n}", 8, (64, n), wgmma, operand))
        found.append((f"mma v2 to wgmma {n}", 16, (64, n), mma, wgmma))
    for bits in (8, 16, 32):
        rows = blocked((1, 128 // bits), (256 // bits, bits // 8 * 2 if bits < 32 else 8), (4, 1), "1,0")
        rows = {8: blocked((1, 16), (8, 4), (4, 1), "1,0"), 16: rows16, 32: rows32}[bits]
        for index in (0, 1):
            operand = f"#ttg.dot_op<{{opIdx={index},parent={mma},kWidth={32 // bits}}}>"
            found.append((f"dot operand {index}", bits, (64, 64), rows, operand))
    return found


def packed(layout: LinearLayout) -> tuple[list[list[int]], int]:
    """The element of every register, lane and warp bit, the last axis fastest; and the number of elements."""
    shifts, low = [], 0
    for _, bits in reversed(layout.out_axes):
        shifts.append(low)
        low += bits
    shifts.reverse()
    columns, first = {}, 0
    for name, bits in layout.in_axes:
        columns[name] = [_place(layout, column, shifts) for column in layout.columns[first : first + bits]]
        first += bits
    return [columns[name] for name in ("register", "lane", "warp")], 1 << low


def _place(layout: LinearLayout, column: int, shifts: list[int]) -> int:
    found = 0
    for (_, bits), shift in zip(layout.out_axes, shifts, strict=True):
        found |= (column & (1 << bits) - 1) << shift
        column >>= bits
    return found


def cases(chosen: str = "kernels") -> list[dict[str, Any]]:
    """All pairs of a set as numbers."""
    found = [*_kernels(), *(_dense(number) for number in DENSE)] if chosen == "kernels" else []
    found += [_drawn(seed) for seed in SETS[chosen]]
    for number, case in enumerate(found):
        case["case"], case["warps"] = number, 1 << len(case["source"][2])
    return found


def _kernels() -> list[dict[str, Any]]:
    found = []
    for name, bits, shape, source, destination in named_pairs():
        (first, size), (second, _) = (packed(la.parse(text, shape=shape)) for text in (source, destination))
        found.append({"name": name, "bits": bits, "size": size, "source": first, "destination": second})
    return found


def _dense(number: int) -> dict[str, Any]:
    rng = random.Random(number)
    bits = (8, 16, 32)[number % 3]
    registers, warps = rng.randint(3, 5) + (bits == 8), rng.randint(1, 3)
    total = registers + 5 + warps
    return _between(f"dense {number}", bits, registers, _invertible(rng, total))


def _drawn(seed: int) -> dict[str, Any]:
    """Bits of registers and lanes in another order, a dense map inside warps, or matrices turned in several warps."""
    rng = random.Random(seed)
    bits, kind = rng.choice((8, 16, 32)), ("order", "dense", "few", "turned")[seed % 4]
    bits = 16 if kind == "turned" else bits
    registers, warps = rng.randint(2, 5) + (bits == 8), rng.randint(0, 3)
    inner = registers + 5
    columns = [1 << bit for bit in range(inner)]
    if kind == "order":
        rng.shuffle(columns)
    elif kind == "dense":
        columns = _invertible(rng, inner)
    elif kind == "few":
        for _ in range(rng.randint(1, 3)):
            one, other = rng.randrange(registers), rng.randrange(inner)
            columns[one], columns[other] = columns[other], columns[one]
    else:
        registers, warps = max(3, registers), max(1, warps)
        rows = [1 << registers + bit for bit in (2, 3, 4)]
        rest = [1 << bit for bit in range(registers + 5 + warps) if 1 << bit not in rows]
        rng.shuffle(rest)
        columns = [*rows, *rest]
    columns += [1 << bit for bit in range(len(columns), registers + 5 + warps)]
    return _between(f"{kind} {seed}", bits, registers, columns)


def _invertible(rng: random.Random, total: int) -> list[int]:
    while matrix.rank(columns := [rng.randrange(1, 1 << total) for _ in range(total)]) < total:
        pass
    return columns


def _between(name: str, bits: int, registers: int, columns: list[int]) -> dict[str, Any]:
    """From the layout of places to that of these columns."""
    total = len(columns)
    ends = [[each[:registers], each[registers : registers + 5], each[registers + 5 :]]
            for each in ([1 << bit for bit in range(total)], columns)]  # fmt: skip
    return {"name": name, "bits": bits, "size": 1 << total, "source": ends[0], "destination": ends[1]}


def linear(bases: list[list[int]], size: int) -> LinearLayout:
    """The layout of these columns."""
    axes = dict(
        zip(("register", "lane", "warp"), ([(column,) for column in columns] for columns in bases), strict=True)
    )
    return LinearLayout.from_bases(axes, {"element": size})

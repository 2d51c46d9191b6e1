"""Shared-memory layouts, padded ones, and layouts that instructions fix: judged by the formulas of their docstrings."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from judges import bank_words

import layoutalg as la
from layoutalg.targets import banks as target_banks
from layoutalg.targets.layouts.blocked import blocked
from layoutalg.targets.layouts.nvidia import ldmatrix_fragment, ldmatrix_rows, mma_accumulator, wgmma_accumulator
from layoutalg.targets.layouts.nvidia_instructions import MMA, mma_fragment
from layoutalg.targets.layouts.padding import PaddedShared, padded_shared
from layoutalg.targets.layouts.shared import nvmma_shared, swizzled_shared
from layoutalg.targets.nvidia import banks as nvidia_banks
from operations.linear import pack, points, read, unpack
from operations.record import answer, attempt, draws, expect, failed, operation, refusal


@dataclass(frozen=True)
class Tile:
    """A tile of shared memory."""

    shape: tuple[int, int]

    @property
    def layout(self) -> str:
        return f"a tile {self.shape}"


@draws("tile")
def draw(rng: random.Random) -> Tile:
    return Tile((1 << rng.randint(0, 4), 1 << rng.randint(0, 4)))


def coordinates(found: la.LinearLayout) -> list[tuple[int, ...]]:
    """The outputs at every flat input, as tuples."""
    _, outs, table = read(found)
    return [tuple(unpack(outs, value).values()) for value in table]


@operation("tile", weight=2)
def swizzled(one: Tile, rng: random.Random) -> None:
    rows, columns = one.shape
    vec, per, phases = 1 << rng.randrange(3), 1 << rng.randrange(3), 1 << rng.randrange(4)
    found = swizzled_shared(one.shape, vec, per, phases, (1, 0))
    want = [(y, x ^ (vec * ((y // per) % phases) % columns)) for y in range(rows) for x in range(columns)]
    expect(coordinates(found) == want, f"swizzled_shared({one.shape}, {vec}, {per}, {phases}) = {found}")


@operation("tile", weight=2)
def nvmma(one: Tile, rng: random.Random) -> None:
    """Rows of the swizzle's width: chunk x of row y holds chunk x xor (y mod 8) div (128 / s)."""
    swizzle, bits = rng.choice((32, 64, 128)), rng.choice((8, 16, 32))
    columns = swizzle * 8 // bits
    shape = (8 * rng.choice((1, 2, 4)), columns * rng.choice((1, 2)))
    found = answer(nvmma_shared, shape, swizzle, bits)
    want, chunk = [], 128 // bits
    for block in range(shape[1] // columns):
        for y in range(shape[0]):
            for x in range(columns):
                moved = (x // chunk ^ y % 8 // (128 // swizzle)) * chunk + x % chunk
                want.append((y, block * columns + moved))
    expect(coordinates(found) == want, f"nvmma_shared({shape}, {swizzle}, {bits}) = {found}")


@operation("tile", weight=3)
def padded(one: Tile, rng: random.Random) -> None:
    """address, addresses, cosize, weights, to_piecewise, to_linear."""
    pairs = [(1 << k, 1 << rng.randrange(4)) for k in rng.sample(range(6), rng.randint(0, 2))]
    found = padded_shared(one.shape, pairs, order=(1, 0))
    size = math.prod(one.shape)
    want = [o + sum(p * (o // i) for i, p in pairs) for o in range(size)]
    expect(found.addresses().tolist() == want, f"addresses of {found}")
    at = rng.randrange(size)
    expect(found.address(at) == want[at] and found.cosize == 1 + max(want), f"address of {found}")
    expect(list(found.weights) == [want[1 << k] for k in range(size.bit_length() - 1)], f"weights of {found}")
    grid = [(y, x) for y in range(one.shape[0]) for x in range(one.shape[1])]
    expect(coordinates(found.linear) == grid, f"the linear part of {found}")
    expect(PaddedShared(found.linear, found.pairs) == found, "PaddedShared")
    if size <= 64 and rng.random() < 0.2:
        expect(found.to_piecewise().table().tolist() == want, f"to_piecewise of {found}")
    affine = all(want[a ^ b] == want[a] ^ want[b] for a in range(size) for b in (1 << k for k in range(10)) if b < size)
    linear = answer(found.to_linear, exists=affine)
    expect(affine and [value[0] for value in coordinates(linear)] == want, f"to_linear of {found} gave {linear}")


@operation("tile", weight=2)
def fragments(one: Tile, rng: random.Random) -> None:
    """mma.sync: which element each lane and register holds, by the sentence of the PTX ISA."""
    name, operand = rng.choice(sorted(MMA)), rng.choice("ABCD")
    shape = MMA[name]
    bits = {"f64": 64, "tf32": 32, "f16": 16, "bf16": 16, "s4": 4, "u4": 4, "b1": 1}.get(shape.operand, 8)
    found = mma_fragment(name, operand)
    ins, outs, table = read(found)
    w = max(1, 32 // bits)
    for point in points(ins):
        lane, v = point["lane"], point["register"]
        q, g = lane % 4, lane // 4
        got = unpack(outs, table[pack(ins, point)])
        if operand == "A":
            high = 8 * (v // w % 2) if shape.m > 8 else 0
            step = v // (2 * w) if shape.m > 8 else v // w
            want = {"row": g + high, "k": v % w + w * q + 4 * w * step}
        elif operand == "B":
            want = {"k": v % w + w * q + 4 * w * (v // w), "col": g}
        else:
            want = {"row": g + 8 * (v // 2), "col": 2 * q + v % 2}
        expect(got == want, f"mma_fragment({name}, {operand}) at {point} is {got}, not {want}")


@operation("tile", weight=2)
def accumulators(one: Tile, rng: random.Random) -> None:
    """mma.sync accumulators over warps, and the one of wgmma."""
    warps = rng.choice(((1, 1), (1, 2), (2, 1), (2, 2)))
    shape = (16 * warps[0] * rng.choice((1, 2)), 8 * warps[1] * rng.choice((1, 2)))
    found = mma_accumulator(shape, warps)
    ins, outs, table = read(found)
    for point in points(ins):
        lane, v, warp = point["lane"], point["register"], point["warp"]
        row, column = lane // 4 + 8 * (v // 2 % 2), 2 * (lane % 4) + v % 2
        wide, tall = shape[1] // (8 * warps[1]), shape[0] // (16 * warps[0])
        across, down = v // 4 % wide, v // 4 // wide % tall
        row += 16 * (warp // warps[1] + warps[0] * down)
        column += 8 * (warp % warps[1] + warps[1] * across)
        got = tuple(unpack(outs, table[pack(ins, point)]).values())
        expect(got == (row, column), f"mma_accumulator({shape}, {warps}) at {point} is {got}, not {(row, column)}")
    n = rng.choice((8, 16, 32))
    found = wgmma_accumulator((64, n), (4, 1), n)
    ins, outs, table = read(found)
    for point in points(ins):
        lane, v, warp = point["lane"], point["register"], point["warp"]
        want = (16 * warp + lane // 4 + 8 * (v // 2 % 2), 8 * (v // 4) + 2 * (lane % 4) + v % 2)
        got = tuple(unpack(outs, table[pack(ins, point)]).values())
        expect(got == want, f"wgmma_accumulator(64, {n}) at {point} is {got}, not {want}")


@operation("tile")
def matrices(one: Tile, rng: random.Random) -> None:
    """ldmatrix: lane 4 g + q gets word q of row g, transposed element g of rows 2 q and 2 q + 1."""
    count, transposed = rng.choice((1, 2, 4)), rng.random() < 0.5
    found = ldmatrix_fragment(count, transposed)
    ins, outs, table = read(found)
    for point in points(ins):
        lane, v = point["lane"], point["register"]
        pair = (lane // 4, 2 * (lane % 4) + v % 2)
        want = (pair[1], pair[0]) if transposed else pair
        got = unpack(outs, table[pack(ins, point)])
        expect((got["row"], got["col"]) == want and got.get("matrix", 0) == v // 2, f"{found} at {point} is {got}")
    rows = read(ldmatrix_rows(count))
    expect(len(rows[2]) >= 8 * count, "ldmatrix_rows")


@operation("tile", weight=2)
def blocks(one: Tile, rng: random.Random) -> None:
    """A box per thread, per warp, per block; repeated to the shape, or wrapped into it."""
    each = [
        (1 << rng.randrange(2), 1 << rng.randrange(3)),
        rng.choice(((8, 4), (4, 8), (1, 32))),
        (1 << rng.randrange(2), 2),
    ]
    order = rng.choice(((1, 0), (0, 1)))
    shape = tuple(math.prod(box[d] for box in each) * rng.choice((1, 1, 2)) for d in range(2))
    found = blocked(*each, order, shape)
    ins, outs, table = read(found)

    def digits(index: int, box: tuple[int, ...]) -> tuple[list[int], int]:
        point = [0, 0]
        for d in order:
            index, point[d] = divmod(index, box[d])
        return point, index

    for point in points(ins):
        at, left = digits(point["register"], each[0])
        lanes, _ = digits(point["lane"], each[1])
        warps, _ = digits(point["warp"], each[2])
        whole = tuple(math.prod(box[d] for box in each) for d in range(2))
        more, _ = digits(left, tuple(s // w for s, w in zip(shape, whole, strict=True)))
        want = tuple(at[d] + each[0][d] * (lanes[d] + each[1][d] * (warps[d] + each[2][d] * more[d])) for d in range(2))
        got = tuple(unpack(outs, table[pack(ins, point)]).values())
        expect(got == want, f"blocked({each}, {order}, {shape}) at {point} is {got}, not {want}")


# -------------------------------------------------------------------------------------------------------------- banks


@operation("tile", weight=2)
def bank_turns(one: Tile, rng: random.Random) -> None:
    """One word a lane: the turns are the words of the fullest bank."""
    stride, base = rng.choice((0, 4, 8, 12, 16, 64, 128, 132, 256)), 4 * rng.randrange(8)
    lanes = [base + (stride * k if rng.random() < 0.9 else 4 * rng.randrange(256)) for k in range(32)]
    want, _ = bank_words.judged("sm_90a", "ld.shared.b32", lanes)
    expect(nvidia_banks.wavefronts(lanes, 32) == want, f"wavefronts({lanes}, 32)")
    found = target_banks.turns("sm_90a", "ld.shared.b32", lanes)
    expect(found == want, f"turns of ld.shared.b32 at {lanes} are {found}, not {want}")
    rows = [16 * rng.randrange(64) for _ in range(8)]
    found = target_banks.turns("sm_90a", "ldmatrix.x1", rows)
    expect(found == bank_words.judged("sm_90a", "ldmatrix.x1", rows)[0], f"turns of ldmatrix.x1 at {rows} are {found}")


@operation("tile", weight=2)
def la_banks(one: Tile, rng: random.Random) -> None:
    """banks of threads that hold one 32-bit element each: the turns of the addresses."""
    size = 256
    steps, weight = [], 1
    for _ in range(5):
        steps.append(weight * rng.choice((1, 1, 1, 2)))
        weight = steps[-1] * 2
    rng.shuffle(steps)
    offsets = [sum(d * (lane >> k & 1) for k, d in enumerate(steps)) for lane in range(32)]
    registers = la.LinearLayout.from_bases(
        {"register": [], "lane": [(d,) for d in steps]}, {"offset": max(size, 1 << max(offsets).bit_length())}
    )
    found = la.banks(registers, None, 32)
    want, _ = bank_words.judged("sm_90a", "ld.shared.b32", [4 * offset for offset in offsets])
    expect((found.turns, found.accesses) == (want, 1), f"banks({registers}) = {found}, not {want} turns")
    expect(found.ideal == 1 and found.conflicts == want - 1 and found.conflict_free == (want == 1), f"{found}")
    expect(list(found.worst.addresses_bytes) == [4 * offset for offset in offsets], f"addresses of {found}")
    expect(found.to_json()["turns"] == want == found.worst.to_json()["turns"], "to_json")


# ----------------------------------------------------------------------------------------------------------- notation


@operation("tile", weight=2)
def triton_text(one: Tile, rng: random.Random) -> None:
    """A layout in Triton's notation, read back: the same map."""
    form = rng.choice(("ttg", "ttg", "gluon"))
    kind = rng.random()
    if kind < 0.4:
        layout = blocked((1, 2), (8, 4), (2, 1), rng.choice(((1, 0), (0, 1))), (16 * rng.choice((1, 2)), 16))
    elif kind < 0.7:
        layout = mma_accumulator((32, 16), (2, 1))
    else:
        pairs = [(1 << k, 1 << rng.randrange(4)) for k in rng.sample(range(5), rng.randint(1, 2))]
        layout = padded_shared(one.shape, pairs, order=(1, 0))
    text = answer(la.to_text, layout, form, declined="LA711")
    found = attempt(la.parse, text)
    if failed(found):
        found = attempt(la.parse, text, shape=one.shape if kind >= 0.7 else tuple(layout.out_dims.values()))
    if failed(found):
        raise refusal(found, True, f"parse({text})")
    if kind < 0.7:
        got, want = read(found), read(layout)
        expect(got[2] == want[2] and [b for _, b in got[1]] == [b for _, b in want[1]], f"{text} is {found}")
    else:
        expect(found.addresses().tolist() == layout.addresses().tolist(), f"{text} is {found}")
        expect(coordinates(found.linear) == coordinates(layout.linear), f"{text} is {found}")

"""Random accesses of shared memory by ``layoutalg.banks`` and by the counting engines, judged by plain enumeration.

    python benchmarks/campaign_banks.py --cases 20000 --seed 1

The judge has its own table of which lanes are served together, as the sources print it, chooses the widest instruction
by trying addresses, and counts different words per bank with sets; it shares no code with the library. Kinds: ``dense``
(linear layouts with any columns), ``subword`` (elements of 8 and 16 bits that no wide instruction moves),
``broadcast`` (lanes that share addresses), ``wave64`` (AMD, waves of 64), ``padded`` (rows with padding, any extents),
``strided`` (one stride, any base), ``holes`` (addresses with inactive lanes), ``strides`` (several strides of lanes and
of values, elements of 4 to 128 bits, wide values split), ``named`` (instructions by name, registers in any order,
some off their alignment), ``matrices`` (``ldmatrix`` and ``stmatrix``, registers in any order).

Prints one JSON line: per kind the cases, those with conflicts, those by engine, the ``unknown`` ones (which the judge
confirms: its table has no instruction that moves them) and the ``wrong`` ones. The run fails where an answer is wrong.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from campaign import MEASURED, options_of, report
from judges.bank_words import SERVED, SIDES, VECTORS, crowded, instructions, judged, served

import layoutalg as la
from layoutalg.targets.bank_counting import arrays
from layoutalg.targets.banks import bank_model
from tests.judges.swizzle_spaces import spanned, table, turns_of

STORED = MEASURED / "banks_counted.json"
KINDS = ("dense", "subword", "broadcast", "wave64", "padded", "strided", "holes", "strides", "named", "matrices")
STRIDES = (0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 33, 48, 64, 65, 96, 128, 256)


# ---------------------------------------------------------------- the judge


def widths(target: str, direction: str) -> list[tuple[int, str]]:
    """Bits and names of the loads or stores of a target, widest first."""
    if not target.startswith("gfx"):
        head = "ld" if direction == "load" else "st"
        return [(8 * size, f"{head}.shared.{VECTORS[size]}") for size in (16, 8, 4, 2, 1)]
    head = "ds_read_b" if direction == "load" else "ds_write_b"
    return [(bits, f"{head}{bits}") for bits in (128, 96, 64, 32) if (target, f"{head}{bits}") in SERVED]


def both_sides(places: list[list[list[int]]], bits: int) -> list[int] | None:
    """Turns of loads of 32 bits by either source; None where those do not move the registers."""
    many = 32 // bits
    order = sorted(range(len(places[0][0])), key=lambda register: places[0][0][register])
    runs = [order[first : first + many] for first in range(0, len(order), many)]
    for lane in (lane for warp in places for lane in warp):
        for run in runs:
            if (
                len(run) < many
                or lane[run[0]] % 32
                or any(lane[run[k]] != lane[run[0]] + k * bits for k in range(many))
            ):
                return None
    return [
        sum(crowded(*side, False, [lane[run[0]] // 8 for lane in warp])[0] for run in runs for warp in places)
        for side in SIDES
    ]


def brute(target: str, direction: str, bits: int, places: list[list[list[int]]]) -> int | None:
    """Turns of all warps by the widest known instruction; None where none moves the registers.

    Args:
        target: The target.
        direction: Load or store.
        bits: Bits of an element.
        places: Bit address of [warp][lane][register], registers that are different.
    """
    count = len(places[0][0])
    for width, name in widths(target, direction):
        many = width // bits
        if width % bits or count % many:
            continue
        order = sorted(range(count), key=lambda register: places[0][0][register])
        runs = [order[first : first + many] for first in range(0, count, many)]
        grain = 32 if width == 96 else width
        if all(
            lane[run[0]] % grain == 0 and all(lane[run[k]] == lane[run[0]] + k * bits for k in range(many))
            for warp in places
            for lane in warp
            for run in runs
        ):
            return sum(judged(target, name, [lane[run[0]] // 8 for lane in warp])[0] for run in runs for warp in places)
    return None


# ---------------------------------------------------------------- the cases


@dataclass(frozen=True)
class Case:
    """A question for ``la.banks``: registers to offsets, with the offsets as plain numbers."""

    kind: str
    target: str
    direction: str
    bits: int
    registers: object
    shared: object
    places: list[list[list[int]]]


def _wave(target: str) -> int:
    return 64 if target.startswith("gfx9") else 32


def _direction(rng: random.Random, target: str) -> str:
    """Of AMD few stores: most of them are not published."""
    return "store" if rng.random() < (0.1 if target.startswith("gfx") else 0.4) else "load"


def _linear(rng: random.Random, kind: str) -> Case:
    """Registers and lanes as columns over F2."""
    targets = ("gfx942", "gfx950") if kind == "wave64" else ("sm_90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
    target = "sm_90a" if kind == "subword" else rng.choice(targets)
    bits = rng.choice((8, 16)) if kind == "subword" else rng.choice((8, 16, 32, 64))
    lane_bits = _wave(target).bit_length() - 1
    warp_bits = rng.choice((0, 0, 1))
    vector = 0 if kind == "subword" else rng.choice([k for k in range(5) if bits << k in (32, 64, 128)] or [0])
    free = list(range(vector, vector + 9))
    columns = [1 << k for k in range(vector)]
    extra = rng.choice((0, 0, 1))
    for _ in range(extra + lane_bits + warp_bits):
        column = 0
        if kind != "broadcast" or rng.random() < 0.6:
            column = sum(1 << k for k in free if rng.random() < 0.3) if rng.random() < 0.7 else 1 << rng.choice(free)
        columns.append(column)
    if extra and columns[vector] == 0:
        columns[vector] = 1 << free[0]
    names = {"register": vector + extra, "lane": lane_bits, "warp": warp_bits}
    bases, at = {}, 0
    for name, count in names.items():
        bases[name] = [(column,) for column in columns[at : at + count]]
        at += count
    layout = la.LinearLayout.from_bases(bases, {"offset": 1 << (vector + 9)})

    def place(register: int, lane: int, warp: int) -> int:
        index = register | lane << names["register"] | warp << names["register"] + lane_bits
        found = 0
        for k, column in enumerate(columns):
            if index >> k & 1:
                found ^= column
        return found * bits

    places = [
        [[place(r, lane, warp) for r in range(1 << names["register"])] for lane in range(1 << lane_bits)]
        for warp in range(1 << warp_bits)
    ]
    return Case(kind, target, _direction(rng, target), bits, layout, None, _different(places))


def _different(places: list[list[list[int]]]) -> list[list[list[int]]]:
    """Registers that hold the same everywhere are one."""
    seen: dict[tuple[int, ...], int] = {}
    for register in range(len(places[0][0])):
        seen.setdefault(tuple(lane[register] for warp in places for lane in warp), register)
    return [[[lane[register] for register in seen.values()] for lane in warp] for warp in places]


def _padded(rng: random.Random, kind: str) -> Case:
    """Rows with padding, of extents that are no powers of two: a thread-value layout over a tile."""
    target = rng.choice(("sm_90a", "gfx942", "gfx950", "gfx1100", "gfx1201"))
    wave, warps, values = _wave(target), rng.choice((1, 2, 3)), rng.choice((1, 2, 3, 4, 6, 8))
    threads, bits = wave * warps, rng.choice((16, 32, 64))
    total = threads * values
    rows = rng.choice([k for k in range(1, 49) if total % k == 0])
    columns = total // rows
    by_rows = rng.random() < 0.5
    registers = la.CuteLayout((threads, values), (values, 1) if by_rows else (1, threads))
    pitch = (rows if rng.random() < 0.3 else columns) + rng.choice((0, 1, 2, 3, 4, 8, 12))
    strides = (1, max(pitch, rows)) if pitch < columns else (pitch, 1)
    shared = la.CuteLayout((rows, columns), strides)

    def place(thread: int, value: int) -> int:
        flat = thread * values + value if by_rows else thread + threads * value
        return (flat % rows * strides[0] + flat // rows * strides[1]) * bits

    places = [
        [[place(warp * wave + lane, value) for value in range(values)] for lane in range(wave)] for warp in range(warps)
    ]
    return Case(kind, target, _direction(rng, target), bits, registers, shared, _different(places))


def _modes(rng: random.Random, total: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A shape of so many points and strides."""
    shape: list[int] = []
    left = total
    while left > 1:
        factors = [factor for factor in range(2, left + 1) if left % factor == 0]
        shape.append(factors[0] if rng.random() < 0.5 else rng.choice(factors))
        left //= shape[-1]
    strides = [rng.choice(STRIDES) if rng.random() < 0.9 else rng.randrange(300) for _ in shape]
    return tuple(shape) or (1,), tuple(strides) or (0,)


def _reached(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    found = [0]
    for extent, stride in zip(shape, strides, strict=True):
        found = [value + stride * digit for digit in range(extent) for value in found]
    return found


def _strides(rng: random.Random) -> Case:
    """Several strides: a thread-value layout whose values begin with a run, or none."""
    target = rng.choice(("sm_90a", "gfx942", "gfx950", "gfx1100", "gfx1201"))
    wave, warps, bits = _wave(target), rng.choice((1, 1, 2, 3)), rng.choice((4, 8, 16, 32, 64, 128))
    values = rng.choice((1, 2, 3, 4, 6, 8, 12, 16))
    threads = _modes(rng, wave * warps)
    run = rng.choice([each for each in range(1, values + 1) if values % each == 0])
    if rng.random() < 0.3:
        run = 1
    outer = _modes(rng, values // run)
    held = ((run, *outer[0]), (1, *(run * stride for stride in outer[1])))
    threads = (threads[0], tuple(stride * (run if rng.random() < 0.8 else 1) for stride in threads[1]))
    starts, steps = _reached(*threads), _reached(*held)
    places = [
        [[(starts[warp * wave + lane] + step) * bits for step in steps] for lane in range(wave)]
        for warp in range(warps)
    ]
    layout = la.CuteLayout((threads[0], held[0]), (threads[1], held[1]))
    return Case("strides", target, _direction(rng, target), bits, layout, None, _different(places))


def _named(rng: random.Random) -> list[str]:
    """An instruction by its name."""
    target, name = rng.choice([each for each in instructions() if "matrix" not in each[1]])
    size = served(target, name)[0]
    bits = rng.choice([bits for bits in (8, 16, 32, 64) if bits <= 8 * size and 8 * size % bits == 0])
    many, wave = 8 * size // bits, _wave(target)
    if size == 12:
        count, pitch = many * rng.choice((1, 2)), 0
        pitch = rng.choice((count, count + max(1, 32 // bits), 2 * count, 4 * count))
        layout: object = la.CuteLayout((wave, count), (pitch, 1))
        places = [[[(pitch * lane + value) * bits for value in range(count)] for lane in range(wave)]]
    else:
        vector = many.bit_length() - 1
        free = range(vector, vector + 8)
        columns = [sum(1 << k for k in free if rng.random() < 0.3) for _ in range(wave.bit_length() + 1)]
        lanes, registers = columns[: wave.bit_length() - 1], [1 << k for k in range(vector)]
        registers += columns[-1:] if rng.random() < 0.4 else []
        rng.shuffle(registers)
        if rng.random() < 0.1:
            lanes[rng.randrange(len(lanes))] ^= 1  # off its alignment, where it has one
        bases = {"register": [(column,) for column in registers], "lane": [(column,) for column in lanes]}
        layout = la.LinearLayout.from_bases(bases, {"offset": 1 << vector + 8})
        places = [
            [[(start ^ step) * bits for step in spanned(registers).tolist()] for start in spanned(lanes).tolist()]
        ]
    places = _different(places)
    order = sorted(range(len(places[0][0])), key=lambda register: places[0][0][register])
    runs = [order[first : first + many] for first in range(0, len(order), many)]
    grain, expected = 32 if size == 12 else 8 * size, None
    if all(
        len(run) == many
        and lane[run[0]] % grain == 0
        and all(lane[run[k]] == lane[run[0]] + k * bits for k in range(many))
        for lane in places[0]
        for run in runs
    ):
        expected = sum(judged(target, name, [lane[run[0]] // 8 for lane in places[0]])[0] for run in runs)
    spelled = name.replace("ds_read", "ds_load").replace("ds_write", "ds_store") if rng.random() < 0.3 else name
    return _judged_by_name(layout, bits, spelled, target, expected)


def _matrices(rng: random.Random) -> list[str]:
    """Fragments of ``ldmatrix`` and ``stmatrix``: rows anywhere, more matrices, registers in any order."""
    bits, kind = rng.choice((8, 16, 32)), rng.choice(("ldmatrix", "stmatrix"))
    word, row = (32 // bits).bit_length() - 1, (128 // bits).bit_length() - 1
    free = range(row, row + 7)
    rows = [sum(1 << k for k in free if rng.random() < 0.3) for _ in range(3 + rng.choice((0, 1, 2)))]
    inner = [1 << k for k in range(row)]
    registers, lanes = inner[:word] + rows[3:], inner[word:] + rows[:3]
    if rng.random() < 0.4:
        rng.shuffle(registers)
    if rng.random() < 0.1:
        rng.shuffle(lanes)
    bases = {"register": [(column,) for column in registers], "lane": [(column,) for column in lanes]}
    layout = la.LinearLayout.from_bases(bases, {"offset": 1 << row + 7})
    offsets = np.arange(1 << row + 7)[None]
    expected = int(turns_of(offsets, table(registers, lanes, ()), kind, bits, "sm_90a")[0])
    return _judged_by_name(layout, bits, kind, "sm_90a", None if expected < 0 else expected)


def _judged_by_name(layout: object, bits: int, name: str, target: str, expected: int | None) -> list[str]:
    try:
        report = la.banks(layout, None, bits, name, target=target)
    except la.MalformedError:
        return ["refused"] if expected is None else ["wrong"]
    return ["conflicts"] * (report.conflicts > 0) + ["wrong"] * (report.turns != expected)


def _addresses(rng: random.Random, kind: str) -> tuple[str, str, list[int | None]]:
    """One instruction: a stride from any base, or anything with holes."""
    target, name = rng.choice(instructions())
    size, _, groups, _ = served(target, name)
    count, grain = sum(map(len, groups)), 4 if size == 12 else size
    if kind == "strided":
        stride = grain * rng.choice((rng.randrange(-80, 81), rng.choice((0, 1, 2, 3, 4, 8, 16, 32, 64, 96, 160))))
        base = grain * rng.randrange(64) + max(0, -stride * (count - 1))
        return target, name, [base + stride * lane for lane in range(count)]
    reach = rng.choice((4, 16, 64, 1024))
    lanes: list[int | None] = [grain * rng.randrange(reach) for _ in range(count)]
    shape = rng.randrange(4)
    if shape == 1:
        lanes = [lanes[lane & ~1] for lane in range(count)]
    if shape == 2:
        lanes = [lanes[lane & ~2] for lane in range(count)]
    alive = rng.choice((0.2, 0.6, 0.95))
    return target, name, [lane if rng.random() < alive else None for lane in lanes]


def run(cases: int, seed: int) -> dict[str, Counter[str]]:
    """Ask and judge; return what was found per kind, with the texts of wrong ones under ``wrong``."""
    rng = random.Random(seed)
    found: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for kind, told in _told(rng, cases):
        found[kind]["cases"] += 1
        found[kind].update(told)
    return found


def _told(rng: random.Random, cases: int) -> Iterator[tuple[str, list[str]]]:
    for number in range(cases):
        kind = KINDS[number % len(KINDS)]
        if kind in ("strided", "holes"):
            target, name, lanes = _addresses(rng, kind)
            model, wanted = bank_model(target, name), judged(target, name, lanes)[0]
            turns = model.turns(lanes)
            many = [int(part.sum()) for part in model.group_turns(*arrays(lanes))]
            wrong = not turns == many[0] == wanted == la.targets.banks.turns(target, name, lanes)
            yield kind, [*(["conflicts"] * (turns > many[1])), *(["wrong"] * wrong)]
            continue
        if kind in ("named", "matrices"):
            yield kind, _named(rng) if kind == "named" else _matrices(rng)
            continue
        if kind == "strides":
            yield kind, _asked(_strides(rng))
            continue
        case = _padded(rng, kind) if kind == "padded" else _linear(rng, kind)
        yield kind, _asked(case)


def _asked(case: Case) -> list[str]:
    expected, sides = brute(case.target, case.direction, case.bits, case.places), None
    if expected is None and (case.target, case.direction) == ("gfx950", "load") and case.bits <= 32:
        sides = both_sides(case.places, case.bits)
        if sides is not None and sides[0] == sides[1]:
            expected = sides[0]
    try:
        report = la.banks(case.registers, case.shared, case.bits, case.direction, target=case.target)
    except (la.RepresentabilityError, la.MalformedError):  # the latter: no whole aligned bytes
        return ["unknown" if expected is None else "wrong"]
    said = ["disputed"] * (sides is not None)
    wrong = report.turns != expected or (report.evidence == "disputed") != (sides is not None)
    return [*said, *(["conflicts"] * (report.conflicts > 0)), *(["wrong"] * wrong)]


def main() -> int:
    """Run the campaign."""
    given = options_of(__doc__, cases=20_000, write=False)
    found = run(given.cases, given.seed)
    total = sum((each for each in found.values()), Counter())
    told = {**{kind: dict(each) for kind, each in found.items()}, "all": {**total, "wrong": total["wrong"]}}
    document = {"command": f"python benchmarks/campaign_banks.py --cases {given.cases} --seed {given.seed}", **told}
    report(document, STORED if given.write else None)
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""Random accesses of shared memory by ``layoutalg.banks`` and by the counting engines, judged by plain enumeration.

    python benchmarks/campaign_banks.py --cases 20000 --seed 1

The judge has its own table of which lanes are served together, as the sources print it, chooses the widest instruction
by trying addresses, and counts different words per bank with sets; it shares no code with the library. Kinds: ``dense``
(linear layouts with any columns), ``subword`` (elements of 8 and 16 bits that no wide instruction moves),
``broadcast`` (lanes that share addresses), ``wave64`` (AMD, waves of 64), ``padded`` (rows with padding, any extents),
``strided`` (one stride, any base), ``holes`` (addresses with inactive lanes).

Prints one JSON line: per kind the cases, those with conflicts, those by engine, the ``unknown`` ones (which the judge
confirms: its table has no instruction that moves them) and the ``wrong`` ones. The run fails where an answer is wrong.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from judges.bank_words import SERVED, SIDES, VECTORS, crowded, instructions, judged, served

import layoutalg as la
from layoutalg.targets.bank_counts import counted
from layoutalg.targets.bank_model import bank_model

STORED = Path(__file__).resolve().parents[1] / "tests/data/measured/banks_counted.json"
KINDS = ("dense", "subword", "broadcast", "wave64", "padded", "strided", "holes")


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
            got, wanted = counted(bank_model(target, name), lanes), judged(target, name, lanes)[0]
            also = la.targets.banks.turns(target, name, lanes)
            wrong = not got.turns == wanted == also
            yield kind, [got.engine, *(["conflicts"] * (got.turns > got.ideal)), *(["wrong"] * wrong)]
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
    except la.RepresentabilityError:
        return ["unknown" if expected is None else "wrong"]
    said = [name for name, _ in report.engines] + ["disputed"] * (sides is not None)
    wrong = report.turns != expected or (report.evidence == "disputed") != (sides is not None)
    return [*said, *(["conflicts"] * (report.conflicts > 0)), *(["wrong"] * wrong)]


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="store the counts among the tests' data")
    given = parser.parse_args()
    found = run(given.cases, given.seed)
    total = sum((each for each in found.values()), Counter())
    told = {**{kind: dict(each) for kind, each in found.items()}, "all": {**total, "wrong": total["wrong"]}}
    document = {"command": f"python benchmarks/campaign_banks.py --cases {given.cases} --seed {given.seed}", **told}
    print(json.dumps(document))
    if given.write:
        STORED.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())

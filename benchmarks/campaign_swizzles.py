"""Random accesses and their swizzles and paddings, against judges that count words: all members of small spaces.

    python benchmarks/campaign_swizzles.py --pairs 2000 --spaces 200 --write

``pairs``: two random dense accesses of a tile of 2^12 to 2^14 elements of 8 to 64 bits, ``la.swizzle`` without a form.
Every plan is counted again by the library from the addresses of its instructions, and by the judge
(``tests/judges/swizzle_spaces.py``) from its own; all its certificates go through the checker.

``spaces``: one to three accesses, loads and stores, dense, permuted, with repeated elements, and every member of the
space counted word by word, spaces of up to 2^16 members and some larger ones: ``any`` (all linear bijections of up to
4 bits; beyond that all ways to share words and banks, where a lane moves one element), ``xor``, ``cute``, ``tma`` of
``la.swizzle``, ``interval``, ``padded_shared``, ``reordered`` of ``la.padding``.

Prints one JSON line a part and fails where a plan is wrong, a bound is above the best member, or a member is better
(of ``any``: than a plan that is said to be least; others are ``missed``). ``loose``: the best, and not proved to be.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from campaign import ROOT, milliseconds, parser_of, report

import layoutalg as la
import tests.judges.bank_words as judge_words
import tests.judges.swizzle_spaces as judge
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.proofs import checker
from layoutalg.proofs.swizzling import SwizzlePlan, TileAccess
from layoutalg.synth.swizzles import swizzle

TARGET = "sm_90a"
STORED = ROOT / "tests/data/measured/swizzles.json"
FORMS = ("any", "any bank map", "xor", "cute", "tma", "interval", "padded_shared", "reordered")
Members = Iterator[np.ndarray[Any, np.dtype[np.int64]]]


def dense(rng: np.random.Generator, bits: int) -> tuple[int, ...]:
    """A random invertible map."""
    while True:
        columns = tuple(int(column) for column in rng.integers(0, 1 << bits, bits))
        if matrix.rank(columns) == bits:
            return columns


def timed(times: list[float], *arguments: Any, **options: Any) -> Any:
    """A plan, and its processor time."""
    start = time.process_time()
    plan = swizzle(*arguments, **options)
    times.append(time.process_time() - start)
    return plan


def pairs(rng: np.random.Generator, cases: int, certified: int) -> dict[str, Any]:
    """Two random dense accesses."""
    times: list[float] = []
    free = optimal = accepted = 0
    unproved: dict[int, int] = {}
    for case in range(cases):
        bits, element = int(rng.integers(12, 15)), (8, 16, 32, 64)[case % 4]
        accesses = []
        for _ in range(2):
            registers = int(rng.integers(2, 8))
            axes = (("register", registers), ("lane", 5), ("warp", bits - registers - 5))
            accesses.append(LinearLayout(axes, (("tile", bits),), dense(rng, bits)))
        plan = timed(times, accesses, TARGET, element).check()
        if judged(plan, [plan.smem.table().reshape(-1)[None]])[0] != plan.turns:
            raise SystemExit(f"the judge does not count {plan.turns} turns: {accesses}")
        free += plan.conflict_free
        optimal += plan.optimal
        if not plan.optimal:
            unproved[element] = unproved.get(element, 0) + 1
        if case < certified:
            accepted += all(checker.check(each.to_json())[0] == 0 for each in plan.certificates())
    return {
        "part": "pairs", "cases": cases, "free": free, "optimal": optimal, "unproved_by_bits": unproved,
        "certified": [accepted, min(certified, cases)], **milliseconds(times),
    }  # fmt: skip


def judged(plan: SwizzlePlan, members: Any) -> tuple[int, int, int]:
    """The turns of the best member, how many members have so many, and how many there are."""
    held = [
        (judge.table(each.registers, each.lanes, each.warps, each.layout.constant), each.kind) for each in plan.accesses
    ]
    found: Counter[int] = Counter()
    for part in members:
        total = np.zeros(len(part), dtype=np.int64)
        for elements, kind in held:
            turns = judge.turns_of(part, elements, kind, plan.element_bits, TARGET)
            total = np.where((turns < 0) | (total < 0), -1, total + turns)
        found.update(total.tolist())
    least = min((turns for turns in found if turns >= 0), default=-1)
    return least, found[least], found.total()


def accessed(rng: np.random.Generator, rows: int, columns: int, registers: int) -> TileAccess:
    """A random access: dense, of unit vectors, or with repeated elements; some with a constant."""
    bits, warps = rows + columns, max(0, rows + columns - 5 - registers)
    many = registers + 5 + warps
    shape = int(rng.integers(3))
    images = list(dense(rng, bits)) if shape == 0 else [1 << int(at) for at in rng.permutation(bits)]
    images = [*images, *[0] * many][:many]
    if shape == 2:
        images = [int(image) if rng.random() < 0.8 else 0 for image in rng.integers(0, 1 << bits, many)]
    constant = int(rng.integers(1 << bits)) if rng.random() < 0.2 else 0
    axes = (("register", registers), ("lane", 5), ("warp", warps))
    layout = LinearLayout(axes, (("row", rows), ("col", columns)), tuple(images), constant)
    return TileAccess(layout, "store" if rng.random() < 0.3 else "load")


def space_of(rng: np.random.Generator, form: str) -> tuple[list[TileAccess], int, dict[str, Any], Members]:
    """Accesses, bits of an element, options of ``swizzle``, and all members."""
    bits = int(rng.choice([8, 16, 32, 64, 128]))
    word, many, options = max(0, (32 // bits).bit_length() - 1), int(rng.integers(1, 4)), {"form": form}
    if form == "any":
        rows, columns, most = int(rng.integers(0, 3)), int(rng.integers(1, 3)), 3
        members = judge.bijections(rows + columns)
        most = min(most, rows + columns)
    elif form == "any bank map":
        banks = min(5, (1024 // bits).bit_length() - 1 - word)
        rows, columns, most = int(rng.integers(1, 4)), max(1, word + banks - 3) + int(rng.integers(2)), 0
        total = min(rows + columns, {5: 7, 4: 7, 3: 7}[banks] + (bits == 8))
        columns = total - rows
        options, members = {"form": "any"}, judge.bank_maps(rows + columns, word, banks)
    elif form == "xor":
        shapes = [(row, chunks) for row in range(1, 9) for chunks in range(1, 6) if row * chunks <= 16]
        rows, chunks = shapes[int(rng.integers(len(shapes)))]
        fits = [each for each in (4, 8, 16, 32, 64) if 8 * each >= bits]
        fits = [each for each in fits if each << rows * chunks + rows + chunks <= bits << 17] or fits[:1]
        chunk_bytes = int(rng.choice(fits))
        inner = (8 * chunk_bytes // bits).bit_length() - 1
        columns, most, options = inner + chunks, 5, {"form": form, "chunk_bytes": chunk_bytes}
        members = judge.xors(rows, columns, inner)
    else:
        rows, columns, most = int(rng.integers(1, 6)), int(rng.integers(1, 7)), 4
        members = judge.cutes(rows, columns) if form == "cute" else judge.hardware(rows, columns, bits)
    accesses = [accessed(rng, rows, columns, int(rng.integers(most + 1))) for _ in range(many)]
    return accesses, bits, options, members


def spaces(rng: np.random.Generator, cases: int, forms: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Every form in turn, against all its members."""
    for form in forms:
        times: list[float] = []
        told: Counter[str] = Counter()
        largest = 0
        for _ in range(cases):
            one = padded if form in FORMS[5:] else swizzled
            verdict, size = one(rng, form, times)
            told.update(["cases", *verdict])
            told["members"] += size
            largest = max(largest, size)
        yield {"part": "spaces", "form": form, **told, "largest": largest, **milliseconds(times)}


def swizzled(rng: np.random.Generator, form: str, times: list[float]) -> tuple[list[str], int]:
    """A swizzle and all members of its space."""
    accesses, bits, options, members = space_of(rng, form)
    try:
        plan = timed(times, accesses, TARGET, bits, **options, seconds=60).check()
    except la.RepresentabilityError as error:
        empty = SwizzlePlan(accesses[0].layout, bits, tuple(accesses), (), 0, "")
        least, _, size = judged(empty, members)
        if least >= 0:
            raise SystemExit(f"refused ({error}), a member has {least}: {bits}, {options}, {accesses}") from None
        return ["refused"], size
    least, _, size = judged(plan, members)
    if plan.turns < least or plan.bound > least or (plan.turns > least and options["form"] != "any"):
        raise SystemExit(f"{plan.turns} turns, bound {plan.bound}, all {size}: {least}; {bits}, {options}, {accesses}")
    if plan.turns > least:  # nothing is claimed of it: the bound is lower
        return ["missed"], size
    return ["free"] * plan.conflict_free + [("loose", "proved")[plan.optimal]], size


NAMES = ("rows", "columns", "rows:1", "columns:2", "store rows", "diagonals", "antidiagonals:2", "along 0", "rows:4")


def padded(rng: np.random.Generator, form: str, times: list[float]) -> tuple[list[str], int]:
    """A padding by intervals and all members of its space, amounts of two periods."""
    while True:
        bits = int(rng.choice([8, 16, 32, 64]))
        if form == "reordered":
            shape = (2 << int(rng.integers(5)), int(rng.integers(1, 5)) << int(rng.integers(4)))
        else:
            shape = (int(rng.integers(1, 24)), int(rng.integers(1, 9)) << int(rng.integers(3)))
        names = [str(name) for name in rng.choice(NAMES, int(rng.integers(1, 3)), replace=False)]
        start = time.process_time()
        try:
            plan = la.padding(shape, names, TARGET, bits, form=form, seconds=120).check()
        except la.InfeasibleError:
            return ["refused"], 0
        except la.MalformedError:  # vectors that do not divide a row
            continue
        times.append(time.process_time() - start)
        break
    best: tuple[int, int] | None = None
    size = 0
    for lost, offsets in judge.padded(shape, bits, form, 2 * 1024 // bits + 8):
        size += 1
        turns = turns_of_cells(plan, offsets)
        if turns is not None and (best is None or (turns, lost) < best):
            best = turns, lost
    lost = (
        plan.padding_bytes if not plan.order else plan.amount * ((shape[0] * shape[1] - 1) // plan.interval) * bits // 8
    )
    if best != (plan.turns, lost) or plan.bound > plan.turns:
        raise SystemExit(f"{plan.turns} turns, {lost} bytes, all {size}: {best}; {shape}, {names}, {bits}, {form}")
    return ["free"] * plan.conflict_free + [("loose", "proved")[plan.optimal]], size


def turns_of_cells(plan: Any, offsets: np.ndarray[Any, np.dtype[np.int64]]) -> int | None:
    """The turns where cells lie at these offsets, by the judge; None where a lane is misaligned."""
    total = 0
    for each in plan.served:
        access = plan.accesses[each.access]
        places = (offsets * plan.element_bits // 8).tolist()
        for lanes in access.cells:
            starts = [None if cell is None else places[cell] for cell in lanes]
            if any(start is not None and start % (access.bits // 8) for start in starts):
                return None
            total += judge_words.judged(each.target, each.instruction, starts)[0]
    return total


def main() -> None:
    """Run both parts."""
    parser = parser_of(__doc__, pairs=2000, certified=2000, spaces=200, write=False)
    parser.add_argument("--forms", nargs="*", default=FORMS, choices=FORMS)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    found = []
    pairs_of = [pairs(rng, given.pairs, given.certified)] if given.pairs else []
    for part in (pairs_of, spaces(rng, given.spaces, given.forms)):
        for line in part:
            report(line)
            found.append(line)
    if given.write:
        options = f"--pairs {given.pairs} --certified {given.certified} --spaces {given.spaces} --seed {given.seed}"
        document = {"command": f"python benchmarks/campaign_swizzles.py {options}", "parts": found}
        report(document, STORED)


if __name__ == "__main__":
    main()

"""Random layouts of every family, each asked of a consumer: every answer is judged, and none is left out.

    python benchmarks/campaign_admission.py --cases 10000 --seed 1 --consumer tma

A case is a layout of one of ``SOURCES`` (drawn as numbers, so its table is known without the library), an element type
and a consumer. A consumer's judge in ``JUDGES`` confirms or contradicts the answer; to add a consumer, add its judge.

Registers of matrix instructions are drawn as fragments, repeated and changed. Judges of other consumers than ``tma``
try every field and every assignment: see ``admission_judges``.

Judge of ``tma``: an admission's map and issues are walked, and must put every element where the drawn table says, and
the stand-alone checker must accept the certificate. A refusal is contradicted by any plan that the planner proves for
the tensors tried (every order of the dimensions, dense and apart), and by a layout that was made by running a map
forwards.

Prints one JSON line: per family the ``admitted``, ``refused``, ``unknown`` and ``wrong`` answers, how many refusals
have a certificate, how many of the first ``REPAIRED`` have repairs, and the processor time of an answer and of its
repairs, which are found when they are read. The run fails where an answer is wrong.
"""

from __future__ import annotations

import itertools
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import admission_judges as judges
import numpy as np
import numpy.typing as npt
from campaign import parser_of, part_of, report
from operations.record import WrongError

import layoutalg as la
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.tensormap import TensorMapProblem, meaning
from layoutalg.synth import InadmissibleError, synthesize_tensormap

IntArray = npt.NDArray[np.int64]
DTYPES = {"u8": 1, "e4m3": 1, "bf16": 2, "f16": 2, "f32": 4, "u64": 8}
REPAIRED = 20
"""Refusals whose repairs are read."""
MOST = 8192
"""Elements of a tile."""
FAR = 1 << 15


class Draw(random.Random):
    """Random numbers, with the extents that tiles are to have; none: any."""

    tiles: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Case:
    """A layout to ask for: as the library takes it, and its table, outermost dimension first."""

    family: str
    layout: Any
    table: IntArray
    dtype: str
    carried: bool = False


# ---------------------------------------------------------------- sources


def _extents(rng: random.Random, powers: bool = False) -> list[int]:
    given = [tile for tile in getattr(rng, "tiles", ()) if not powers or not any(size & size - 1 for size in tile)]
    if given:
        return list(rng.choice(given))
    while True:
        some = (1, 2, 4, 8, 16, 32, 64) if powers else (1, 2, 3, 4, 6, 8, 16, 24, 32, 64)
        found = [rng.choice(some) for _ in range(rng.randint(1, 3))]
        if 1 < math.prod(found) <= MOST:
            return found


def _strides(rng: random.Random, digits: list[tuple[int, int]], pad: float) -> dict[tuple[int, int], int]:
    """Strides of digits (dimension, place): dense in a random order, now and then with a gap."""
    order = list(range(len(digits)))
    if rng.random() < 0.6:
        rng.shuffle(order)
    else:
        order.reverse()
    reach, found = 1, {}
    for at in order:
        if rng.random() < pad:
            reach += rng.choice((1, 4, 8, reach))
        found[at] = reach
        reach *= digits[at][1]
    return {at: found[at] for at in range(len(digits))}  # type: ignore[misc]


def _strided(rng: random.Random, powers: bool = False, pad: float = 0.15) -> tuple[Any, Any, IntArray, list[int]]:
    """Nested CuTe shape and stride with the table of their sum."""
    extents = _extents(rng, powers)
    digits: list[tuple[int, int]] = []
    for dim, extent in enumerate(extents):
        parts = [part for part in (2, 4, 8) if extent % part == 0 and extent > part]
        if parts and rng.random() < 0.35:
            cut = rng.choice(parts)
            digits += [(dim, cut), (dim, extent // cut)]
        else:
            digits.append((dim, extent))
    strides = _strides(rng, digits, pad)
    shape, stride, table = [], [], np.zeros((), dtype=np.int64)
    for dim in range(len(extents)):
        mine = [at for at, (owner, _) in enumerate(digits) if owner == dim]
        axis = np.zeros(1, dtype=np.int64)
        for at in mine:
            axis = (axis + np.arange(digits[at][1])[:, None] * strides[at]).reshape(-1)  # type: ignore[index]
        table = table[..., None] + axis
        sizes, steps = [digits[at][1] for at in mine], [strides[at] for at in mine]  # type: ignore[index]
        shape.append(sizes[0] if len(mine) == 1 else tuple(sizes))
        stride.append(steps[0] if len(mine) == 1 else tuple(steps))
    return tuple(shape), tuple(stride), table, extents


def _swizzled(rng: random.Random, table: IntArray, size: int) -> tuple[la.Swizzle, IntArray]:
    """A swizzle of the hardware in elements, or one off it, with the table behind it."""
    bits, base, shift = rng.choice((1, 2, 3)), 4 - size.bit_length() + 1, 3
    if rng.random() < 0.15:
        base, shift = max(0, base + rng.choice((-1, 1))), rng.choice((3, 4))
    mask = (1 << bits) - 1
    return la.Swizzle(bits, base, shift), table ^ ((table >> (base + shift) & mask) << base)


def cute(rng: random.Random, dtype: str) -> Case:
    shape, stride, table, _ = _strided(rng)
    return Case("cute", la.CuteLayout(shape, stride), table, dtype)


def composed(rng: random.Random, dtype: str) -> Case:
    shape, stride, table, _ = _strided(rng, pad=0.05)
    swizzle, found = _swizzled(rng, table, DTYPES[dtype])
    return Case("composed", la.ComposedLayout(swizzle, 0, la.CuteLayout(shape, stride)), found, dtype)


def text(rng: random.Random, dtype: str) -> Case:
    case = composed(rng, dtype) if rng.random() < 0.5 else cute(rng, dtype)
    return Case("text", str(case.layout), case.table, dtype)


def table(rng: random.Random, dtype: str) -> Case:
    case = composed(rng, dtype) if rng.random() < 0.5 else cute(rng, dtype)
    found = case.table.copy()
    if rng.random() < 0.3:  # two elements exchanged
        flat = found.reshape(-1)
        one, two = rng.randrange(flat.size), rng.randrange(flat.size)
        flat[[one, two]] = flat[[two, one]]
    return Case("table", found, found, dtype)


def linear(rng: random.Random, dtype: str) -> Case:
    extents = _extents(rng, powers=True)
    bits = sum(extent.bit_length() - 1 for extent in extents)
    columns = [1 << bit for bit in range(bits)]
    if rng.random() < 0.5:
        low = max(0, 4 - DTYPES[dtype].bit_length() + 1)
        tail = columns[low:]
        rng.shuffle(tail)
        columns[low:] = tail
    for _ in range(rng.choice((0, 0, 1, 3))):
        one, two = rng.randrange(bits), rng.randrange(bits)
        if one != two:
            columns[one] ^= columns[two]
    bases, found, at = {}, np.zeros((), dtype=np.int64), bits
    for dim, extent in enumerate(extents):
        width = extent.bit_length() - 1
        at -= width
        mine = columns[at : at + width]
        axis = np.zeros(1, dtype=np.int64)
        for value in mine:
            axis = np.concatenate((axis, axis ^ value))
        found = found[..., None] ^ axis
        bases[f"dim{dim}"] = [(value,) for value in mine]
    return Case("linear", la.LinearLayout.from_bases(bases, {"offset": 1 << bits}), found, dtype)


def integer(rng: random.Random, dtype: str) -> Case:
    extents = _extents(rng)
    strides = _strides(rng, list(enumerate(extents)), 0.2)
    found = np.zeros((), dtype=np.int64)
    for dim, extent in enumerate(extents):
        found = found[..., None] + np.arange(extent) * strides[dim]  # type: ignore[index]
    layout = la.convert.to_integer(la.CuteLayout(tuple(extents), tuple(strides.values())))
    return Case("integer", layout, found, dtype)


def piecewise(rng: random.Random, dtype: str) -> Case:
    extents = _extents(rng)
    strides = _strides(rng, list(enumerate(extents)), 0.2)
    axes = [f"dim{dim}" for dim in range(len(extents))]
    sums = " + ".join(f"{strides[dim]}*{axis}" for dim, axis in enumerate(axes))  # type: ignore[index]
    found = np.zeros((), dtype=np.int64)
    for dim, extent in enumerate(extents):
        found = found[..., None] + np.arange(extent) * strides[dim]  # type: ignore[index]
    if rng.random() < 0.3 and extents[-1] % 2 == 0:
        sums += f" + floor({axes[-1]}/{extents[-1] // 2})*1024"
        found = found + np.arange(extents[-1]) // (extents[-1] // 2) * 1024
    guard = " and ".join(f"0 <= {axis} < {extent}" for axis, extent in zip(axes, extents, strict=True))
    return Case("piecewise", la.PiecewiseLayout(f"{{ [{', '.join(axes)}] -> [{sums}] : {guard} }}"), found, dtype)


def forwards(rng: random.Random, dtype: str) -> Case:
    """The table that a random map and its copies make, every digit of the box a dimension: some tensor has it."""
    size = DTYPES[dtype]
    per = 16 // size
    name, span, bits = rng.choice((("NONE", 8, 0), ("32B", 2, 1), ("64B", 4, 2), ("128B", 8, 3)))
    while True:
        row = rng.randint(1, 4 if name == "NONE" else span)
        pitch = row if name == "NONE" else span
        box = [rng.choice((2, 3, 4, 8, 16)) for _ in range(rng.randint(0, 2))]
        turns = [rng.choice((2, 3)) for _ in range(rng.randint(0, 1))]
        lines = math.prod(box) * pitch
        gap = -(-lines // 8) * 8 + rng.choice((0, 0, 8))
        if math.prod((row * per, *box, *turns)) <= MOST and gap * math.prod(turns) * 16 < 200_000:
            break
    counts, pitches, reach = [row * per, *box, *turns], [1], pitch * per
    for count in box:
        pitches.append(reach)
        reach *= count
    reach = gap * per
    for count in turns:
        pitches.append(reach)
        reach *= count
    order = list(range(len(counts)))
    rng.shuffle(order)
    found = np.zeros((), dtype=np.int64)
    for at in order:
        found = found[..., None] + np.arange(counts[at]) * pitches[at]
    byte = found * size
    found = (byte ^ ((byte >> 7 & (1 << bits) - 1) << 4)) // size
    return Case("map", found, found, dtype, carried=True)


def described(rng: random.Random, dtype: str) -> Case:
    """The table that random matrix descriptors read, the instructions' parts anywhere: digits, or any order."""
    size = judges.WGMMA_BITS[dtype] // 8
    rows = 64
    down, along = rng.choice((1, 1, 2)), rng.choice((1, 2, 2, 4))
    major = rng.choice(("K", "MN")) if size == 2 else "K"
    wide = rng.choice((1, 2, 4, 8))
    rest, leading, stride = judges.offsets(major, wide, rows, size)
    fields = [16 * rng.choice((1, 8, 8 * wide, 16 * wide, rng.randrange(1, 64))) for _ in range(2)]
    part = rest + leading * fields[0] + stride * fields[1]
    step = -(-(int(part.max()) + size) // 1024) * 1024
    order = list(range(down * along))
    if rng.random() < 0.3:
        rng.shuffle(order)
    blocks = [[part + step * order[row * along + k] for k in range(along)] for row in range(down)]
    byte = np.block(blocks)
    byte = byte ^ (byte >> 7) % wide << 4
    return Case("descriptors", byte // size, byte // size, dtype, carried=True)


def rows_of_memory(rng: random.Random, dtype: str) -> Case:
    """A tile whose 16-byte rows lie anywhere, now and then with one of them off its place."""
    size = DTYPES[dtype]
    run = 16 // size
    rows, across = 8 * rng.choice((1, 2, 4)), rng.choice((1, 2, 4))
    places = np.array(rng.sample(range(4 * rows * across), rows * across), dtype=np.int64) * run
    if rng.random() < 0.3:
        places[rng.randrange(len(places))] += rng.choice((1, run // 2, run))
    found = (places[:, None] + np.arange(run)).reshape(rows, -1)
    found = found.T.copy() if rng.random() < 0.3 else found
    return Case("rows", found, found, dtype)


def registers(rng: random.Random, consumer: str, dtype: str) -> Case:
    """A fragment, repeated over registers and warps, with bits exchanged or added now and then."""
    one, extents, word = judges.fragment(consumer)
    lanes, many = one.shape[:2]
    bases = {
        "register": [tuple(map(int, one[0, 1 << bit])) for bit in range(many.bit_length() - 1)],
        "lane": [tuple(map(int, one[1 << bit, 0])) for bit in range(lanes.bit_length() - 1)],
        "warp": [],
    }
    for _ in range(rng.randint(0, 2)):
        dim = rng.randrange(2)
        axis = rng.choice(("register", "warp"))
        reach = max((base[dim] for held in bases.values() for base in held), default=0).bit_length()
        step = 1 << max(reach, extents[dim].bit_length() - 1)
        bases[axis].insert(
            rng.randint(0, len(bases[axis])) if rng.random() < 0.4 else len(bases[axis]),
            (step, 0) if dim == 0 else (0, step),
        )
    if rng.random() < 0.35:
        low = word.bit_length() - 1
        tail = bases["register"][low:]
        rng.shuffle(tail)
        bases["register"][low:] = tail
    if rng.random() < 0.25:
        rng.shuffle(bases[rng.choice(("register", "lane"))])
    if rng.random() < 0.2:
        axis = rng.choice([axis for axis, held in bases.items() if held])
        at, dim = rng.randrange(len(bases[axis])), rng.randrange(2)
        changed = list(bases[axis][at])
        changed[dim] ^= 1 << rng.randrange(4)
        bases[axis][at] = tuple(changed)
    sizes = [
        1 << max((base[dim] for held in bases.values() for base in held), default=0).bit_length() for dim in (0, 1)
    ]
    names = {"dim0": max(sizes[0], extents[0]), "dim1": max(sizes[1], extents[1])}
    layout = la.LinearLayout.from_bases(bases, names)
    held = np.zeros((1, 1, 1, 2), dtype=np.int64)
    for axis, place in (("register", 2), ("lane", 1), ("warp", 0)):
        for base in bases[axis]:
            held = np.concatenate((held, held ^ np.array(base)), axis=place)
    return Case("registers", layout, held, dtype)


SOURCES: dict[str, Callable[[random.Random, str], Case]] = {
    "cute": cute, "composed": composed, "text": text, "table": table, "linear": linear, "integer": integer,
    "piecewise": piecewise, "map": forwards,
}  # fmt: skip


def drawn(rng: random.Random, families: Iterable[str] = tuple(SOURCES)) -> Case:
    """Return a random case of one of the families."""
    return SOURCES[rng.choice(list(families))](rng, rng.choice(list(DTYPES)))


# ---------------------------------------------------------------- judges


def judge_tma(case: Case, answer: Any, consumer: str) -> None:
    """Confirm an answer about a TensorMap.

    Raises: WrongError.
    """
    if isinstance(answer, la.Admitted):
        made = answer.descriptor
        found = meaning.table(made)
        if made.problem.tile == case.table.shape:
            same = np.array_equal(found, case.table)
        else:  # dimensions that fuse
            same = np.array_equal(np.sort(found, axis=None), np.sort(case.table, axis=None))
        if not same:
            raise WrongError(f"the plan of {case.layout} puts the tile elsewhere")
        if not answer.certificate.check():
            raise WrongError("the checker refuses the certificate")
        return
    if isinstance(answer, la.Refused):
        if case.carried:
            raise WrongError(f"a map makes this table, and it was refused: {answer.rules}")
        _contradict(case, "store" if consumer.endswith("store") else "load")


def _contradict(case: Case, direction: str) -> None:
    """Look for a plan for any of the tensors tried."""
    extents = case.table.shape
    dtype = {"e4m3": "u8"}.get(case.dtype, case.dtype)
    for order in itertools.permutations(range(len(extents))):
        dense, apart, reach = [0] * len(extents), [0] * len(extents), 1
        for place, dim in enumerate(order):
            dense[dim], reach = reach, reach * extents[dim]
            apart[dim] = FAR << 2 * place if place else 1
        for strides, shape in ((dense, extents), (apart, tuple(8 * extent for extent in extents))):
            tensor = la.Tensor(shape, tuple(strides), dtype)
            try:
                problem = TensorMapProblem.of(tensor, extents, case.layout, direction=direction)
                synthesize_tensormap(problem, repair=False)
            except (InadmissibleError, LayoutError):
                continue
            raise WrongError(f"refused, and a tensor {shape}:{tuple(strides)} has a plan: {case.layout}")


def _agree(case: Case, answer: Any, expected: bool) -> None:
    """Compare an answer with what trying everything found."""
    if isinstance(answer, la.Admitted) and not expected:
        raise WrongError(f"admitted, and no field or assignment does it: {case.layout}")
    if isinstance(answer, la.Refused) and expected:
        raise WrongError(f"refused ({answer.rules}), and there is one: {case.family} {case.layout}")
    if isinstance(answer, la.Admitted) and not answer.certificate.check():
        raise WrongError("the checker refuses the certificate")


def judge_wgmma(case: Case, answer: Any, consumer: str) -> None:
    """Try every descriptor on every instruction's part of the tile.

    Raises: WrongError.
    """
    if case.dtype not in judges.WGMMA_BITS:
        _agree(case, answer, False)
        return
    expected = case.table.ndim == 2 and judges.can_read(case.table, consumer, case.dtype)
    if case.carried and consumer == "wgmma.A" and not expected:
        raise WrongError("the judge does not find the descriptors that made the table")
    _agree(case, answer, expected)
    size = judges.WGMMA_BITS[case.dtype] // 8
    if isinstance(answer, la.Admitted) and not judges.walked(answer.descriptor, case.table, size):
        raise WrongError(f"the descriptors read something else: {case.layout}")


def judge_rows(case: Case, answer: Any, consumer: str) -> None:
    """Look at every row of a tile, and run what was admitted.

    Raises: WrongError.
    """
    size = DTYPES[case.dtype]
    _agree(case, answer, judges.moves_rows(consumer, case.table, size))
    if isinstance(answer, la.Admitted) and not judges.simulated(answer.descriptor, consumer, case.table, size):
        raise WrongError(f"the instructions move something else: {case.layout}")


def judge_registers(case: Case, answer: Any, consumer: str) -> None:
    """Try every choice of instructions for registers.

    Raises: WrongError.
    """
    _agree(case, answer, judges.tiles_fragment(case.table, consumer))
    if isinstance(answer, la.Admitted):
        one, _, _ = judges.fragment(consumer)
        tiling = answer.descriptor.tiling
        if sorted(at for held in tiling.registers for at in held) != list(range(case.table.shape[2])):
            raise WrongError("a register is in no instruction, or in two")
        for held, starts in zip(tiling.registers, tiling.starts, strict=True):
            said = one[None] + np.array(starts)[:, None, None, :2]
            if not np.array_equal(said, case.table[:, :, list(held)]):
                raise WrongError(f"an instruction holds something else: {case.layout}")


Judge = Callable[[Case, Any, str], None]
FRAGMENTS = {
    "mma.m16n8k16.f32.bf16.A": "bf16", "mma.m16n8k16.f32.bf16.B": "bf16", "mma.m16n8k16.f32.bf16.D": "f32",
    "mma.m16n8k8.f32.tf32.A": "f32", "mma.m16n8k32.f32.e4m3.A": "e4m3", "mma.m16n8k32.f32.e4m3.B": "e4m3",
    "mfma.v_mfma_f32_32x32x8_f16.A": "f16", "mfma.v_mfma_f32_32x32x8_f16.D": "f32",
    "mfma.v_mfma_f32_16x16x16_f16.B": "f16", "mfma.v_mfma_f32_16x16x16_f16.D": "f32",
}  # fmt: skip
"""Consumers of registers, with the element type that is asked."""
ACCESSES = ("ldmatrix.x1", "ldmatrix.x4", "ldmatrix.x4.trans", "stmatrix.x2", "stmatrix.x4.trans", "ld.shared.v4.b32",
            "st.shared.v2.b32", "ld.shared.b32")  # fmt: skip
JUDGES: dict[str, Judge] = {
    "tma": judge_tma, "tma.store": judge_tma, "wgmma.A": judge_wgmma, "wgmma.B": judge_wgmma,
    **dict.fromkeys(ACCESSES, judge_rows), **dict.fromkeys(FRAGMENTS, judge_registers),
}  # fmt: skip
TILES: dict[str, tuple[tuple[int, ...], ...]] = {
    "wgmma": ((64, 16), (64, 32), (64, 64), (128, 32), (8, 16), (16, 64), (24, 32), (32, 8), (192, 16), (128, 64)),
    "matrix": ((8, 8), (16, 16), (32, 32), (8, 64), (64, 16), (2, 16, 16), (24, 32), (8, 24), (128,), (64, 64)),
}


def asked(consumer: str, rng: Draw) -> Case:
    """Return a random case for a consumer."""
    if consumer in FRAGMENTS:
        return registers(rng, consumer, FRAGMENTS[consumer])
    plain = [name for name in SOURCES if name != "map"]
    if consumer.startswith("wgmma"):
        rng.tiles = TILES["wgmma"]
        if rng.random() < 0.35:
            return described(rng, rng.choice(("bf16", "f16", "f16", "e4m3", "f32")))
        return drawn(rng, plain)
    if consumer in ACCESSES:
        rng.tiles = TILES["matrix"]
        return rows_of_memory(rng, rng.choice(list(DTYPES))) if rng.random() < 0.2 else drawn(rng, plain)
    return drawn(rng)


def campaign(cases: int, seed: int, consumer: str = "tma") -> dict[str, Any]:
    """Ask and judge random cases; return the totals."""
    rng = Draw(seed)
    totals: Counter[str] = Counter()
    by_family: dict[str, Counter[str]] = {}
    target = "gfx942" if consumer.startswith("mfma") else "sm_90a"
    said: list[str] = []
    reasons: Counter[str] = Counter()
    times: list[float] = []
    helped: list[float] = []
    for _ in range(cases):
        case = asked(consumer, rng)
        tile = None if consumer in FRAGMENTS else case.table.shape
        began = time.process_time()
        answer = la.admissible(case.layout, consumer, target, case.dtype, tile=tile)
        times.append(time.process_time() - began)
        kind = type(answer).__name__.lower()
        by_family.setdefault(case.family, Counter())[kind] += 1
        totals[kind] += 1
        if isinstance(answer, la.Refused):
            totals["refused_certified"] += answer.certificate is not None
            if len(helped) < REPAIRED:
                began = time.process_time()
                totals["refused_repaired"] += bool(answer.repairs)
                helped.append(time.process_time() - began)
            reasons[answer.rules[0]] += 1
        elif isinstance(answer, la.Unknown):
            reasons[f"unknown: {answer.reason[:60]}"] += 1
        try:
            JUDGES[consumer](case, answer, consumer)
        except WrongError as error:
            totals["wrong"] += 1
            said.append(str(error)[:300])
    return {
        "consumer": consumer, "cases": cases, "seed": seed,
        **{name: totals[name] for name in ("admitted", "refused", "unknown", "wrong")},
        "refused_certified": totals["refused_certified"], "refused_repaired": totals["refused_repaired"],
        "reasons": dict(reasons.most_common()), "families": {name: dict(count) for name, count in by_family.items()},
        "p50_ms": round(1e3 * part_of(times, 0.5), 2), "p99_ms": round(1e3 * part_of(times, 0.99), 2),
        "repairs_read": len(helped), "repairs_p50_ms": round(1e3 * part_of(helped, 0.5), 1) if helped else None,
        "said": said[:8],
    }  # fmt: skip


def main() -> int:
    parser = parser_of(__doc__, cases=10_000)
    parser.add_argument("--consumer", default="tma", choices=(*JUDGES, "all"))
    given = parser.parse_args()
    wrong = 0
    for consumer in JUDGES if given.consumer == "all" else (given.consumer,):
        found = campaign(given.cases, given.seed, consumer)
        report(found)
        wrong += found["wrong"]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

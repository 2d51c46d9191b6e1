"""Random layouts of every family, each asked of a consumer: every answer is judged, and none is left out.

    python benchmarks/campaign_admission.py --cases 10000 --seed 1 --consumer tma

A case is a layout of one of ``SOURCES`` (drawn as numbers, so its table is known without the library), an element type
and a consumer. A consumer's judge in ``JUDGES`` confirms or contradicts the answer; to add a consumer, add its judge.

Judge of ``tma``: an admission's map and issues are walked, and must put every element where the drawn table says, and
the stand-alone checker must accept the certificate. A refusal is contradicted by any plan that the planner proves for
the tensors tried (every order of the dimensions, dense and apart), and by a layout that was made by running a map
forwards.

Prints one JSON line: per family the ``admitted``, ``refused``, ``unknown`` and ``wrong`` answers, how many refusals
have a certificate, and the answer times. The run fails where an answer is wrong.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import layoutalg as la
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.tensormap import TensorMapProblem, meaning
from layoutalg.synth import InadmissibleError, synthesize_tensormap

IntArray = npt.NDArray[np.int64]
DTYPES = {"u8": 1, "e4m3": 1, "bf16": 2, "f16": 2, "f32": 4, "u64": 8}
MOST = 8192
"""Elements of a tile."""
FAR = 1 << 15


class WrongError(Exception):
    """An answer that is not so."""


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


JUDGES: dict[str, Callable[[Case, Any, str], None]] = {"tma": judge_tma, "tma.store": judge_tma}


def campaign(cases: int, seed: int, consumer: str = "tma", families: Iterable[str] = tuple(SOURCES)) -> dict[str, Any]:
    """Ask and judge random cases; return the totals."""
    rng = random.Random(seed)
    totals: Counter[str] = Counter()
    by_family: dict[str, Counter[str]] = {name: Counter() for name in families}
    said: list[str] = []
    reasons: Counter[str] = Counter()
    times: list[float] = []
    for _ in range(cases):
        case = drawn(rng, families)
        began = time.perf_counter()
        answer = la.admissible(case.layout, consumer, dtype=case.dtype, tile=case.table.shape)
        times.append(time.perf_counter() - began)
        kind = type(answer).__name__.lower()
        by_family[case.family][kind] += 1
        totals[kind] += 1
        if isinstance(answer, la.Refused):
            totals["refused_certified"] += answer.certificate is not None
            totals["refused_repaired"] += bool(answer.repairs)
            reasons[answer.rules[0]] += 1
        elif isinstance(answer, la.Unknown):
            reasons[f"unknown: {answer.reason[:60]}"] += 1
        try:
            JUDGES[consumer](case, answer, consumer)
        except WrongError as error:
            totals["wrong"] += 1
            said.append(str(error)[:300])
    times.sort()
    return {
        "consumer": consumer, "cases": cases, "seed": seed,
        **{name: totals[name] for name in ("admitted", "refused", "unknown", "wrong")},
        "refused_certified": totals["refused_certified"], "refused_repaired": totals["refused_repaired"],
        "reasons": dict(reasons.most_common()), "families": {name: dict(count) for name, count in by_family.items()},
        "p50_ms": round(1e3 * times[len(times) // 2], 2), "p99_ms": round(1e3 * times[len(times) * 99 // 100], 2),
        "said": said[:8],
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--consumer", default="tma", choices=tuple(JUDGES))
    given = parser.parse_args()
    found = campaign(given.cases, given.seed, given.consumer)
    print(json.dumps(found))
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())

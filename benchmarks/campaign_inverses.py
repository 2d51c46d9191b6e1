"""Random inverses of integer, strided, piecewise and parametric layouts, judged by plain enumeration.

    python benchmarks/campaign_inverses.py --cases 20000 --seed 1

Every problem is drawn as a value (or text) for the library and as plain numbers for the judge, which lists all points
with itertools and shares no code with the library. Right inverses must return the wanted point of every value, image
inverses the least point of every value and nothing elsewhere, left inverses lead every value back.

Prints one JSON line: per kind the ``right`` answers, the ``refused`` ones that the judge confirms (there is no such
inverse), the ``needless`` ones by code (the judge finds the inverse, the library gave up on at most 512 points),
``wrong`` answers, and the slowest answer in seconds. The run fails where an answer is wrong.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import product
from math import prod
from typing import Any

import numpy as np
from campaign import judged, options_of, report
from operations.record import expect
from piecewise_sources import EXTENTS, SIZES, Partial, Point, Table, Total

import layoutalg as la
from layoutalg import integer
from layoutalg.cute import CuteLayout
from layoutalg.ground.errors import AdmissibilityError, BudgetError, RepresentabilityError
from layoutalg.integer import IntegerLayout
from layoutalg.piecewise import PiecewiseLayout

MOST = 150
"""Points of a layout that is drawn."""
LISTED = 512
"""Points of a text up to which giving up is needless."""
PLACES = 40_000
"""Most places of the box around the values at which a guarded inverse is asked; beyond, the neighbours of values."""


# ---------------------------------------------------------------- the judge


def least(table: Table) -> Table:
    """Each value with its least point, the first axis compared first."""
    answer: Table = {}
    for point, value in sorted(table.items()):
        answer.setdefault(value, point)
    return answer


def judge_guarded(found: PiecewiseLayout, wanted: Table, name: str) -> None:
    """Ask a guarded inverse at every value and around them; it must say ``wanted`` and nothing else."""
    values = list(wanted)
    width = len(values[0])
    box = [range(min(v[k] for v in values) - 1, max(v[k] for v in values) + 2) for k in range(width)]
    places: Iterable[Point]
    if prod(map(len, box)) <= PLACES:
        places = list(product(*box))
    else:
        steps = [tuple(int(k == place) * step for k in range(width)) for place in range(width) for step in (-1, 1)]
        near = {tuple(a + b for a, b in zip(v, step, strict=True)) for v in values for step in steps}
        places = [*values, *(near - wanted.keys())]
    coords: Any = {axis: np.array([p[k] for p in places], dtype=np.int64) for k, axis in enumerate(found.axes)}
    if not found.axes:
        expect(tuple(found().values()) == wanted[()], name)
        return
    inside = np.broadcast_to(found.contains(coords), (len(places),))
    here = {p for p, taken in zip(places, inside.tolist(), strict=True) if taken}
    expect(here == wanted.keys(), f"defined at {sorted(here ^ wanted.keys())[:2]} or not: {name}")
    answers = found.apply({axis: column[inside] for axis, column in coords.items()})
    rows = np.stack([np.broadcast_to(a, (len(here),)) for a in answers.values()], -1).tolist() if answers else []
    kept = [p for p, taken in zip(places, inside.tolist(), strict=True) if taken]
    for place, row in zip(kept, rows, strict=True):
        expect(tuple(row) == wanted[place], f"at {place} it is {tuple(row)}, not {wanted[place]}: {name}")


# ---------------------------------------------------------------- integer layouts


def integer_form(rng: random.Random) -> tuple[IntegerLayout, Table]:
    """A random integer layout of any kind, and its table."""
    while True:
        extents = [rng.choice((1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 12)) for _ in range(rng.choice((1, 2, 2, 3, 3, 4)))]
        if prod(extents) <= MOST:
            break
    width = rng.choice((1, 1, 2, 2, 3))
    moduli = [rng.choice((0, 0, rng.randint(1, 21), rng.choice((2, 4, 8, 16)))) for _ in range(width)]
    spread = rng.choice((1, 2, 4, 12, 40))
    match rng.choice(("any", "any", "chain", "turn")):
        case "chain":  # strides of a padded box, some backwards
            weights = [prod(e + rng.choice((0, 0, 1)) for e in extents[:k]) for k in range(len(extents))]
            rng.shuffle(weights)
            rows = [[0] * len(extents) for _ in range(width)]
            for k, weight in enumerate(weights):
                rows[rng.randrange(width)][k] = rng.choice((-1, 1, 1)) * weight
        case "turn":  # rotations: every axis moves its own output, and those before it
            width = len(extents)
            moduli = [rng.choice((e, e, 0)) for e in extents]
            rows = [[int(k == j) if k >= j else rng.randint(-3, 3) for k in range(width)] for j in range(width)]
        case _:
            rows = [[rng.randint(-spread, spread) for _ in extents] for _ in range(width)]
    offset = [rng.randint(-20, 20) for _ in range(width)]
    layout = IntegerLayout(
        tuple((f"i{k}", extent) for k, extent in enumerate(extents)),
        tuple((f"v{k}", modulus) for k, modulus in enumerate(moduli)),
        tuple(map(tuple, rows)),
        tuple(offset),
    )
    table: Table = {}
    for point in product(*map(range, extents)):
        sums = [b + sum(a * x for a, x in zip(row, point, strict=True)) for row, b in zip(rows, offset, strict=True)]
        table[point] = tuple(total % m if m else total for total, m in zip(sums, moduli, strict=True))
    return layout, table


def integer_right(rng: random.Random) -> str:
    layout, table = integer_form(rng)
    found = integer.right_inverse(layout)
    if isinstance(found, integer.ImageInverse):
        judge_guarded(found.layout, least(table), str(layout))
        return "right"
    seen = set()
    for digits in product(*map(range, found.layout.extents)):
        point, value = found.layout.value(digits), found.values.value(digits)
        expect(table.get(point) == value, f"digits {digits} of {layout}")
        seen.add(value)
    box = set(product(*(range(*side) for _, side in found.box)))
    expect(seen == box and len(seen) == found.layout.size, f"the box {found.box} of {layout}")
    return "right"


def integer_image(rng: random.Random) -> str:
    layout, table = integer_form(rng)
    judge_guarded(integer.image_inverse(layout).layout, least(table), str(layout))
    return "right"


def integer_left(rng: random.Random) -> str:
    """The inverse of an injective layout leads every value back; of another it is refused with a collision."""
    layout, table = integer_form(rng)
    injective = len(set(table.values())) == len(table)
    verdict = integer.injective(layout)
    expect(bool(verdict) == injective, f"injective({layout})")
    if not injective:
        witness: Any = verdict.witness  # type: ignore[union-attr]
        first, second = (tuple(witness[side].values()) for side in ("first", "second"))
        expect(first != second and table[first] == table[second], f"the collision {witness} of {layout}")
        return "refused"
    found = integer.image_inverse(layout).layout
    coords: Any = {axis: np.array([v[k] for v in table.values()]) for k, axis in enumerate(found.axes)}
    back = np.stack(list(found.apply(coords).values()), -1).tolist()
    expect([tuple(point) for point in back] == list(table), f"left inverse of {layout}")
    return "right"


# ---------------------------------------------------------------- strided layouts


def strided(rng: random.Random) -> tuple[CuteLayout, dict[int, int]]:
    while True:
        extents = [rng.choice((1, 2, 3, 4, 5, 6, 7, 8, 9, 12)) for _ in range(rng.choice((1, 2, 2, 3, 4)))]
        if prod(extents) <= MOST:
            break
    if rng.random() < 0.5:
        strides = [prod(e + rng.choice((0, 0, 1)) for e in extents[:k]) for k in range(len(extents))]
        pairs = list(zip(extents, strides, strict=True))
        rng.shuffle(pairs)
        extents, strides = [e for e, _ in pairs], [d for _, d in pairs]
    else:
        strides = [rng.choice((0, 1, 1, 2, 3, 4, 5, 7, 8, 12, 60)) for _ in extents]
    table = {}
    for flat, point in enumerate(product(*[range(e) for e in reversed(extents)])):
        table[flat] = sum(x * d for x, d in zip(reversed(point), strides, strict=True))
    return CuteLayout(tuple(extents), tuple(strides)), table


def values_of(found: Any, count: int) -> list[int]:
    """The first values of an answer of any family, in the order of the flat index."""
    return [int(v) for v in np.asarray(found.table()).reshape(-1)[:count].tolist()]


def strided_right(rng: random.Random) -> str:
    layout, table = strided(rng)
    found = la.right_inverse(layout, widen=True)
    for at, point in enumerate(values_of(found, 10**6)):
        expect(table.get(point) == at, f"right inverse of {layout} at {at}")
    return "right"


def strided_left(rng: random.Random) -> str:
    layout, table = strided(rng)
    injective = len(set(table.values())) == len(table)
    try:
        found = la.left_inverse(layout, widen=True)
    except (AdmissibilityError, RepresentabilityError):
        expect(not injective, f"no left inverse of {layout}, which is injective")
        return "refused"
    back = values_of(found, 10**6)
    for flat, value in table.items():
        expect(value < len(back), f"{layout}: {value} is outside the left inverse")
        if injective:
            expect(back[value] == flat, f"left inverse of {layout} at {value}")
        else:
            expect(table[back[value]] == value, f"left inverse of {layout} at {value}")
    return "right"


# ---------------------------------------------------------------- texts


def partial_form(rng: random.Random, width: int) -> tuple[PiecewiseLayout, Table, str]:
    """A text with guards, quotients and pieces at one value of its parameter."""
    one, n = Partial(rng, width), rng.choice(SIZES)
    return one.layout().subs(N=n), one.table(n), f"{one.text} at N={n}"


def digit_form(rng: random.Random) -> tuple[PiecewiseLayout, Table, str]:
    """Digits of a flat index in another order: what a flattened layout looks like."""
    sizes = [rng.choice(EXTENTS[:6]) for _ in range(rng.choice((2, 2, 3)))]
    while prod(sizes) > MOST:
        sizes.pop()
    order = rng.sample(range(len(sizes)), len(sizes))
    strides, weight = [0] * len(sizes), 1
    for k in order:
        strides[k], weight = weight, weight * sizes[k]
    parts, weight = [], 1
    for k, size in enumerate(sizes):
        quotient = f"floor(i/{weight})" if weight > 1 else "i"
        parts.append(f"{strides[k]}*({quotient} mod {size})" if k < len(sizes) - 1 else f"{strides[k]}*{quotient}")
        weight *= size
    text = f"{{ [i] -> [{' + '.join(parts)}] : 0 <= i < {weight} }}"
    table: Table = {}
    for i in range(weight):
        rest, total = i, 0
        for k, size in enumerate(sizes):
            rest, digit = divmod(rest, size)
            total += strides[k] * digit
        table[i,] = (total,)
    return PiecewiseLayout(text), table, text


def residue_form(rng: random.Random) -> tuple[PiecewiseLayout, Table, str]:
    """Two or three axes under small moduli, as people write banks."""
    extents = [rng.choice((2, 3, 4, 5, 6)) for _ in range(rng.choice((2, 2, 3)))]
    names = ["i", "j", "k"][: len(extents)]
    forms = []
    for _ in range(rng.choice((1, 2))):
        factors = [rng.randint(0, 9) for _ in names]
        forms.append((factors, rng.choice((0, 4, 5, 6, 8, 12))))
    texts = []
    for factors, m in forms:
        total = " + ".join(f"{a}*{n}" for a, n in zip(factors, names, strict=True))
        texts.append(f"({total}) mod {m}" if m else total)
    box = " and ".join(f"0 <= {n} < {e}" for n, e in zip(names, extents, strict=True))
    text = f"{{ [{', '.join(names)}] -> [{', '.join(texts)}] : {box} }}"
    table: Table = {}
    for point in product(*map(range, extents)):
        sums = [sum(a * x for a, x in zip(factors, point, strict=True)) for factors, _ in forms]
        table[point] = tuple(total % m if m else total for total, (_, m) in zip(sums, forms, strict=True))
    return PiecewiseLayout(text), table, text


def text_form(rng: random.Random) -> tuple[PiecewiseLayout, Table, str]:
    match rng.choice(("partial", "total", "digits", "residues")):
        case "partial":
            return partial_form(rng, rng.choice((1, 2)))
        case "total":
            one = Total(rng, rng.choice((1, 2)), most=MOST)
            return one.layout(), one.table, one.text
        case "digits":
            return digit_form(rng)
        case _:
            return residue_form(rng)


def asked(inverse: Callable[[], PiecewiseLayout], table: Table) -> PiecewiseLayout | None:
    """Return the inverse, None where the library gave up on more points than it lists."""
    try:
        return inverse()
    except BudgetError:
        if len(table) <= LISTED:
            raise
        return None


def text_right(rng: random.Random) -> str:
    layout, table, name = text_form(rng)
    found = asked(layout.right_inverse, table)
    if found is None:
        return "gave up on more points than are listed"
    if table:
        judge_guarded(found, least(table), name)
    return "right"


def text_inverse(rng: random.Random) -> str:
    layout, table, name = text_form(rng)
    injective = len(set(table.values())) == len(table)
    try:
        found = asked(layout.image_inverse, table)
    except AdmissibilityError as error:
        witness: Any = error.diagnostic.witness
        expect(not injective and error.diagnostic.code == "LA792", f"{error.diagnostic.code} of {name}")
        first, second = (tuple(point.values()) for point in witness["points"])
        expect(first != second and table[first] == table[second] == witness["value"], f"{witness} of {name}")
        return "refused"
    if found is None:
        return "gave up on more points than are listed"
    expect(injective, f"an inverse of {name}, which is not injective")
    if table:
        judge_guarded(found, least(table), name)
    return "right"


KINDS: dict[str, tuple[Callable[[random.Random], str], int]] = {
    function.__name__: (function, weight)
    for function, weight in (
        (integer_right, 6),
        (integer_image, 6),
        (integer_left, 3),
        (strided_right, 2),
        (strided_left, 2),
        (text_right, 4),
        (text_inverse, 3),
    )
}


def campaign(cases: int, seed: int, chosen: Iterable[str] = ()) -> dict[str, Any]:
    """Draw and judge; return the totals."""
    rng = random.Random(seed)
    drawn = list(chosen) or list(KINDS)
    kinds = rng.choices(drawn, [KINDS[kind][1] for kind in drawn], k=cases)
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    said: list[dict[str, str]] = []
    slowest = (0.0, "")
    judged(lambda: text_right(random.Random("warm")))  # starts the process that asks ISL
    for number, kind in enumerate(kinds):
        name = f"{seed}:{number}:{kind}"
        start = time.perf_counter()
        outcome, text = judged(lambda: KINDS[kind][0](random.Random(name)))  # noqa: B023
        slowest = max(slowest, (time.perf_counter() - start, name))
        counts[kind][outcome] += 1
        if text:
            said.append({"case": name, "outcome": outcome, "text": text})
    wrong = [entry for entry in said if entry["outcome"] == "wrong"]
    return {
        "cases": cases,
        "seed": seed,
        "wrong": len(wrong),
        "needless": sum(c for counter in counts.values() for key, c in counter.items() if key.startswith("needless")),
        "kinds": {kind: dict(counter) for kind, counter in counts.items() if counter},
        "slowest_seconds": round(slowest[0], 3),
        "slowest": slowest[1],
        "said": wrong[:20] + [entry for entry in said if entry["outcome"] != "wrong"][:20],
    }


def main() -> int:
    """Print one JSON line of totals."""
    options = options_of(__doc__, cases=1000, kinds=list(KINDS))
    totals = campaign(options.cases, options.seed, options.kinds)
    report(totals)
    return 1 if totals["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())

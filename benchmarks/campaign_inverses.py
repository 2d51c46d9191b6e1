"""Random inverses of integer, strided, piecewise and parametric layouts, judged by plain enumeration.

    python benchmarks/campaign_inverses.py --cases 20000 --seed 1

The judges are those of the campaign of operations; layouts are larger than there, of up to ``MOST`` points, with
extents and divisors that are no powers of two, rotations, reversed digits, banks, wedges and holes.

Prints one JSON line: per kind the ``right`` answers, the ``refused`` ones that the judge confirms (there is no such
inverse), the ``declined`` and ``needless`` ones by code, ``wrong`` answers, and the slowest answer in seconds. The run
fails where an answer is wrong.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterable
from math import prod
from typing import Any

from campaign import options_of, report
from operations import algebra, integers, pieces
from operations.integers import Affine
from operations.pieces import Condition, Form, Pieces
from operations.record import Judge, Operation, Row, judged
from operations.strided import Strided, strided

MOST = 150
EXTENTS = (3, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 17, 19, 21, 23)
SIZES = (0, 1, 2, 3, 5, 6, 7, 9, 11, 12, 13)
DIVISORS = (3, 5, 6, 7, 9, 10, 11, 12)


def draw_extents(rng: random.Random, choices: tuple[int, ...], most: int) -> list[int]:
    """Extents with at most ``MOST`` points."""
    while True:
        extents = [rng.choice(choices) for _ in range(rng.choice((1, 2, 2, 3, 3, most)))]
        if prod(extents) <= MOST:
            return extents


def affine(rng: random.Random) -> Affine:
    """Any matrix, the strides of a padded box with some backwards, or rotations: every axis moves its own output."""
    extents = draw_extents(rng, (1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 12), 4)
    width, spread = rng.choice((1, 1, 2, 2, 3)), rng.choice((1, 2, 4, 12, 40))
    moduli = [rng.choice((0, 0, rng.randint(1, 21), rng.choice((2, 4, 8, 16)))) for _ in range(width)]
    rows = [[rng.randint(-spread, spread) for _ in extents] for _ in range(width)]
    kind = rng.choice(("any", "any", "chain", "turn"))
    if kind == "chain":
        weights = [prod(e + rng.choice((0, 0, 1)) for e in extents[:k]) for k in range(len(extents))]
        rng.shuffle(weights)
        rows = [[0] * len(extents) for _ in range(width)]
        for k, weight in enumerate(weights):
            rows[rng.randrange(width)][k] = rng.choice((-1, 1, 1)) * weight
    elif kind == "turn":
        width = len(extents)
        moduli = [rng.choice((e, e, 0)) for e in extents]
        rows = [[int(k == j) if k >= j else rng.randint(-3, 3) for k in range(width)] for j in range(width)]
    return Affine(extents, rows, moduli, [rng.randint(-20, 20) for _ in rows])


def modes(rng: random.Random) -> Strided:
    """A strided layout."""
    return strided(rng, prod(draw_extents(rng, (1, 2, 3, 4, 5, 6, 7, 8, 9, 12), 4)))


def linear(rng: random.Random, names: list[str], spread: int) -> Form:
    """A random affine form."""
    factors = [rng.randint(-spread, spread) if rng.random() < 0.8 else 0 for _ in names]
    constant = rng.randint(-9, 9)
    text = " + ".join([*(f"{a}*{name}" for a, name in zip(factors, names, strict=True)), str(constant)])
    return text, lambda env: sum(a * env[name] for a, name in zip(factors, names, strict=True)) + constant


def quasi(rng: random.Random, names: list[str]) -> Form:
    """An affine form with quotients and remainders."""
    text, value = linear(rng, names, 6)
    for _ in range(rng.choice((0, 1, 1, 2))):
        inner_text, inner = linear(rng, names, 2)
        d, factor, floors = rng.choice(DIVISORS), rng.choice((-3, -1, 1, 2, 5)), rng.random() < 0.5
        text += f" + {factor}*floor(({inner_text})/{d})" if floors else f" + {factor}*(({inner_text}) mod {d})"

        def summed(env: pieces.Env, v: Any = value, g: Any = inner, by: Any = (d, factor, floors)) -> int:
            d, factor, floors = by
            return int(v(env) + factor * (g(env) // d if floors else g(env) % d))

        value = summed
    return text, value


def cut(rng: random.Random, names: list[str]) -> tuple[Condition, Condition]:
    """A condition and its negation."""
    if rng.random() < 0.75:
        text, value = linear(rng, names, 2)
        return (f"{text} >= 0", lambda env: value(env) >= 0), (f"{text} < 0", lambda env: value(env) < 0)
    name, d = rng.choice(names), rng.choice((3, 5, 7))
    r = rng.randrange(d)
    return (f"{name} mod {d} <= {r}", lambda env: env[name] % d <= r), (
        f"{name} mod {d} > {r}", lambda env: env[name] % d > r,
    )  # fmt: skip


GUARDS: tuple[list[Condition], ...] = (
    [],
    [("j <= i", lambda env: env["j"] <= env["i"])],
    [("(i + j) mod 3 != 1", lambda env: (env["i"] + env["j"]) % 3 != 1)],
    [("(i < 3 or i >= N)", lambda env: env["i"] < 3 or env["i"] >= env["N"])],
)
"""Boxes, wedges, residues and holes of parametric texts."""


def text(rng: random.Random, partial: bool = False) -> Pieces:
    """Pieces of quasi-affine forms; digits of a flat index in another order; axes under small moduli, as of banks."""
    kind = "pieces" if partial else rng.choice(("pieces", "digits", "residues"))
    if kind == "digits":
        sizes = [*draw_extents(rng, EXTENTS[:6], 3), 2]
        strides, weight = [0] * len(sizes), 1
        for k in rng.sample(range(len(sizes)), len(sizes)):
            strides[k], weight = weight, weight * sizes[k]
        weights = [prod(sizes[:k]) for k in range(len(sizes))]
        forms = [f"{d}*(floor(i/{w}) mod {n})" for d, w, n in zip(strides, weights, sizes, strict=True)]
        table = [sum(d * (i // w % n) for d, w, n in zip(strides, weights, sizes, strict=True)) for i in range(weight)]
        return Pieces(["i"], [weight], [], [(None, [(" + ".join(forms), lambda env: table[env["i"]])])], [])
    if kind == "residues":
        names = ["i", "j"][: rng.choice((1, 2, 2))]
        values = []
        for _ in range(rng.choice((1, 2))):
            (said, value), m = linear(rng, names, 9), rng.choice((0, 4, 5, 6, 8, 12))
            residue: Form = (f"({said}) mod {m}", lambda env, v=value, m=m: v(env) % m)  # type: ignore[misc]
            values.append(residue if m else (said, value))
        return Pieces(names, [rng.choice((2, 3, 4, 5, 6)) for _ in names], [], [(None, values)], [])
    width, axes = rng.choice((1, 2)), ["i", "j"]
    extents: list[int | str] = ["N", rng.choice(EXTENTS)] if partial else [rng.choice(EXTENTS[:8]) for _ in axes]
    names = [*axes, "N"] if partial else axes
    where: list[Condition | None] = list(cut(rng, names)) if rng.random() < 0.6 else [None]
    forms_of = [(each, [quasi(rng, names) for _ in range(width)]) for each in where]
    return Pieces(axes, extents, rng.choice(GUARDS) if partial else [], forms_of, ["N"] if partial else [])


def at_a_size(one: Pieces, rng: random.Random) -> None:
    """A parametric text at one value of its parameter."""
    n = rng.choice(SIZES)
    pieces.check_inverses(one.layout.subs(N=n), one.table(n))


KINDS: dict[str, tuple[Callable[[random.Random], Any], Judge, int]] = {
    "integer_right": (affine, integers.right_inverse, 6),
    "integer_image": (affine, integers.image_inverse, 6),
    "integer_injective": (affine, integers.questions, 3),
    "strided_right": (modes, algebra.right_inverse, 2),
    "strided_left": (modes, algebra.left_inverse, 2),
    "text": (text, pieces.inverses, 4),
    "parametric": (lambda rng: text(rng, True), at_a_size, 3),
}


def campaign(cases: int, seed: int, chosen: Iterable[str] = ()) -> dict[str, Any]:
    """Draw and judge; return the totals."""
    drawn = list(chosen) or list(KINDS)
    kinds = random.Random(seed).choices(drawn, [KINDS[kind][2] for kind in drawn], k=cases)
    rows: dict[tuple[str, str], Row] = {}
    said: list[str] = []
    slowest = (0.0, "")
    for number, kind in enumerate(kinds):
        name = f"{seed}:{number}:{kind}"
        draw, judge, _ = KINDS[kind]
        rng, begun = random.Random(name), time.perf_counter()
        told = judged(Operation(kind, "inverse", judge, 1), draw(rng), rng, rows)
        slowest = max(slowest, (time.perf_counter() - begun, name))
        said += [f"[{name}] {told}"] * bool(told)
    found = {kind: row.to_json() for (kind, _), row in rows.items()}
    totals = {
        "wrong": sum(row.wrong for row in rows.values()),
        "needless": sum(r.needless.total() for r in rows.values()),
    }
    told_of = {"slowest_seconds": round(slowest[0], 3), "slowest": slowest[1], "said": said[:40]}
    return {"cases": cases, "seed": seed, **totals, "kinds": found, **told_of}


def main() -> int:
    """Print one JSON line of totals."""
    options = options_of(__doc__, cases=1000, kinds=list(KINDS))
    totals = campaign(options.cases, options.seed, options.kinds)
    report(totals)
    return 1 if totals["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())

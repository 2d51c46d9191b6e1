"""Random piecewise and parametric functions without powers of two: ISL text for the library, Python for a judge."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from itertools import product

from layoutalg.piecewise import PiecewiseLayout

Point = tuple[int, ...]
Table = dict[Point, Point]
Env = dict[str, int]
Form = tuple[str, Callable[[Env], int]]
Condition = tuple[str, Callable[[Env], bool]]
EXTENTS = (3, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 17, 19, 21, 23)
DIVISORS = (3, 5, 6, 7, 9, 10, 11, 12)
SIZES = (0, 1, 2, 3, 5, 6, 7, 9, 11, 12, 13)


def affine(rng: random.Random, names: Iterable[str], spread: int = 6) -> Form:
    """A random affine form."""
    names = list(names)
    factors = [rng.randint(-spread, spread) if rng.random() < 0.8 else 0 for _ in names]
    constant = rng.randint(-9, 9)
    text = " + ".join([*(f"{a}*{name}" for a, name in zip(factors, names, strict=True) if a), str(constant)])
    return text, lambda env: sum(a * env[name] for a, name in zip(factors, names, strict=True)) + constant


def quasi(rng: random.Random, names: Iterable[str]) -> Form:
    """A random quasi-affine form: flips, slices, quotients and remainders."""
    names = list(names)
    text, value = affine(rng, names)
    for _ in range(rng.choice((0, 1, 1, 2))):
        inner_text, inner = affine(rng, names, 2)
        d, factor = rng.choice(DIVISORS), rng.choice((-3, -1, 1, 2, 5))
        if rng.random() < 0.5:
            text, value = (
                f"{text} + {factor}*floor(({inner_text})/{d})",
                lambda env, v=value, g=inner, d=d, k=factor: v(env) + k * (g(env) // d),  # type: ignore[misc]
            )
        else:
            text, value = (
                f"{text} + {factor}*(({inner_text}) mod {d})",
                lambda env, v=value, g=inner, d=d, k=factor: v(env) + k * (g(env) % d),  # type: ignore[misc]
            )
    return text, value


def cuts(rng: random.Random, names: Iterable[str], count: int) -> list[Condition]:
    """Conditions that hold at every point exactly once: a random chain of cuts."""
    names, answer = list(names), []
    before: list[Condition] = []
    for _ in range(count - 1):
        if rng.random() < 0.75:
            text, value = affine(rng, names, 2)
            here: Condition = f"{text} >= 0", lambda env, v=value: v(env) >= 0  # type: ignore[misc]
            not_here: Condition = f"{text} < 0", lambda env, v=value: v(env) < 0  # type: ignore[misc]
        else:
            name, d = rng.choice(names), rng.choice((3, 5, 7))
            r = rng.randrange(d)
            here = f"({name}) mod {d} <= {r}", lambda env, n=name, d=d, r=r: env[n] % d <= r  # type: ignore[misc]
            not_here = f"({name}) mod {d} > {r}", lambda env, n=name, d=d, r=r: env[n] % d > r  # type: ignore[misc]
        answer.append(both(*before, here))
        before.append(not_here)
    answer.append(both(*before))
    return answer


def both(*conditions: Condition) -> Condition:
    text = " and ".join(c[0] for c in conditions) or "0 = 0"
    return text, lambda env: all(c[1](env) for c in conditions)


class Total:
    """A total function on a box: text and table."""

    def __init__(self, rng: random.Random, width: int, most: int) -> None:
        self.extents = box(rng, most)
        self.names = [f"x{k}" for k in range(len(self.extents))]
        guards = cuts(rng, self.names, rng.choice((1, 1, 2, 3)))
        self.pieces = [(guard, [quasi(rng, self.names) for _ in range(width)]) for guard in guards]
        inside = " and ".join(f"0 <= {n} < {e}" for n, e in zip(self.names, self.extents, strict=True))
        parts = [
            f"[{', '.join(self.names)}] -> [{', '.join(form[0] for form in forms)}] : {inside} and {guard[0]}"
            for guard, forms in self.pieces
        ]
        self.text = f"{{ {'; '.join(parts)} }}"
        self.table: Table = {}
        for point in product(*(range(extent) for extent in self.extents)):
            env = dict(zip(self.names, point, strict=True))
            for guard, forms in self.pieces:
                if guard[1](env):
                    self.table[point] = tuple(form[1](env) for form in forms)

    def layout(self) -> PiecewiseLayout:
        return PiecewiseLayout(self.text)


def box(rng: random.Random, most: int) -> list[int]:
    """Random extents, none a power of two."""
    while True:
        extents = [rng.choice(EXTENTS) for _ in range(rng.choice((1, 2, 2, 3)))]
        size = 1
        for extent in extents:
            size *= extent
        if size <= most:
            return extents


class Partial:
    """A parametric partial function: text and a table per parameter value."""

    AXES = ("i", "j")

    def __init__(self, rng: random.Random, width: int) -> None:
        rows, columns = rng.choice((1, 1, 2, 3)), rng.choice(EXTENTS)
        low = rng.randint(-2, 3)
        extra: list[Condition] = []
        match rng.choice(("box", "box", "wedge", "stride", "hole")):
            case "wedge":
                extra = [("j <= i", lambda env: env["j"] <= env["i"])]
            case "stride":
                extra = [("(i + j) mod 3 != 1", lambda env: (env["i"] + env["j"]) % 3 != 1)]
            case "hole":
                extra = [("(i < 3 or i >= N)", lambda env: env["i"] < 3 or env["i"] >= env["N"])]
        self.guard = both(
            (
                f"{low} <= i < {rows}N + {low} and 0 <= j < {columns}",
                lambda env: low <= env["i"] < rows * env["N"] + low and 0 <= env["j"] < columns,
            ),
            *extra,
        )
        names = ("i", "j", "N")
        self.pieces = [
            (part, [quasi(rng, names) for _ in range(width)]) for part in cuts(rng, names, rng.choice((1, 1, 2)))
        ]
        self.span = range(-4, 3 * max(SIZES) + 8), range(columns)
        parts = [
            f"[i, j] -> [{', '.join(f[0] for f in forms)}] : {self.guard[0]} and {part[0]}"
            for part, forms in self.pieces
        ]
        self.text = f"[N] -> {{ {'; '.join(parts)} }}"

    def layout(self) -> PiecewiseLayout:
        return PiecewiseLayout(self.text)

    def table(self, n: int) -> Table:
        answer: Table = {}
        for i, j in product(*self.span):
            env = {"i": i, "j": j, "N": n}
            if self.guard[1](env):
                for part, forms in self.pieces:
                    if part[1](env):
                        answer[i, j] = tuple(form[1](env) for form in forms)
        return answer

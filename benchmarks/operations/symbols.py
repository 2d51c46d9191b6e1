"""Layouts with symbolic sizes: what holds for all sizes is judged at drawn ones, by tables."""

from __future__ import annotations

import math
import pickle
import random
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from layoutalg import integer
from layoutalg.cute import symbolic
from layoutalg.cute.symbolic import Assumptions, SymbolicLayout
from operations import tables
from operations.record import Refusal, answer, attempt, draws, expect, failed, operation, refusal
from operations.tables import values

Number = tuple[int, tuple[str, ...]]
"""A product of names times a factor."""


def text(number: Number) -> str:
    return "*".join([str(number[0]), *number[1]])


def at(number: Number, sizes: dict[str, int]) -> int:
    return number[0] * math.prod(sizes[name] for name in number[1])


@dataclass(frozen=True)
class Symbolic:
    """Extents and strides as products, with sizes to judge at."""

    extents: list[Number]
    strides: list[Number]
    sizes: dict[str, int]

    @cached_property
    def layout(self) -> SymbolicLayout:
        return SymbolicLayout(tuple(map(text, self.extents)), tuple(map(text, self.strides)))

    @property
    def table(self) -> list[int]:
        return values(tuple(at(n, self.sizes) for n in self.extents), tuple(at(d, self.sizes) for d in self.strides))


def drawn(rng: random.Random) -> Symbolic:
    names = ["M", "N", "K"][: rng.randint(1, 2)]
    sizes = {name: rng.randint(1, 4) for name in names}
    extents: list[Number] = [
        (rng.choice((1, 1, 2, 4)), (rng.choice(names),)) if rng.random() < 0.6 else (rng.randint(1, 4), ())
        for _ in range(rng.randint(1, 3))
    ]
    kind = rng.random()
    strides: list[Number] = [(0, ())] * len(extents)
    factor, held = 1, ()
    order = range(len(extents)) if kind < 0.5 else rng.sample(range(len(extents)), len(extents))
    for place in order:
        strides[place] = (factor, held)
        n, more = extents[place]
        factor, held = factor * n * (rng.choice((1, 1, 2)) if kind > 0.7 else 1), held + more
    if kind > 0.9:
        strides[rng.randrange(len(strides))] = (0, ())
    return Symbolic(extents, strides, sizes)


@draws("symbolic")
def draw(rng: random.Random) -> Symbolic:
    return drawn(rng)


ALL = {"M": 1, "N": 1, "K": 1}


def names_of(found: Any) -> frozenset[str]:
    """The names that an answer takes sizes for."""
    names = set(getattr(found, "symbols", ())) | set(found.assumptions.names)
    for side in found.conditions:
        names |= side.condition.names
    return frozenset(names | (set(found.value.names) if hasattr(found, "value") else set()))


def at_numbers(found: Any, sizes: dict[str, int], what: object = "") -> Any:
    """An answer at sizes; it is refused only where they break its side conditions."""
    at_sizes = attempt(found.subs, {name: {**ALL, **sizes}[name] for name in names_of(found)})
    if failed(at_sizes):
        expect(breaks(found, sizes), f"{what} at {sizes}: {at_sizes}")
        raise Refusal("declined LA625")
    return at_sizes


def breaks(found: Any, sizes: dict[str, int]) -> bool:
    """Whether a side condition fails at sizes, read from its polynomial."""
    known = {**ALL, **sizes}
    for side in found.conditions:
        value = Fraction(0)
        for monomial, coefficient in side.condition.value.monomials:
            value += coefficient * math.prod(Fraction(known[name]) ** power for name, power in monomial)
        kind = side.condition.kind
        holds = {
            "zero": value == 0,
            "nonzero": value != 0,
            "nonnegative": value >= 0,
            "integral": value.denominator == 1,
        }
        if not holds[kind]:
            return True
    return False


def judged(found: Any, want: list[int] | None, sizes: dict[str, int], what: object) -> None:
    """An answer at sizes has a table, or its conditions fail there."""
    at_sizes = at_numbers(found, sizes, what)
    expect(want is not None and tables.read(at_sizes) == want, f"{what} at {sizes} gave {at_sizes}, not {want}")


@operation("symbolic", weight=2)
def evaluate(one: Symbolic, rng: random.Random) -> None:
    """subs, size, the offset at a coordinate, and the expression of it."""
    layout, table = one.layout, one.table
    expect(tables.read(at_numbers(layout, one.sizes)) == table, f"{layout}.subs")
    expect(layout.size.value(one.sizes) == len(table), f"size of {layout}")
    expect(layout.rank == len(one.extents) == len(layout.flat), f"rank of {layout}")
    expect(not layout.open_conditions, f"{layout} has open conditions")
    place = rng.randrange(len(one.extents))
    mode = at_numbers(layout[place], one.sizes)
    want = values(at(one.extents[place], one.sizes), at(one.strides[place], one.sizes))
    expect(tables.read(mode) == want, f"{layout}[{place}]")
    used = {name for number in one.extents + one.strides for name in number[1]}
    expect(layout.symbols == used or not used, f"symbols of {layout}")
    index = rng.randrange(len(table))
    coord = list(tables.leaves(tables.unravel(index, tuple(at(n, one.sizes) for n in one.extents))))
    found = answer(layout, *coord, declined="LA629 LA626")
    at_sizes = at_numbers(found, one.sizes, f"{layout}({coord})")
    expect(at_sizes == table[index], f"{layout}({coord}) at {one.sizes} is {at_sizes}")
    if rng.random() < 0.1:
        names = [f"x{k}" for k in range(len(coord))]
        expression = layout.expression(*names)
        given = {**one.sizes, **dict(zip(names, coord, strict=True))}
        got = expression.subs({symbol: given[symbol.name] for symbol in expression.free_symbols})
        expect(int(got) == table[index], f"{layout}.expression: {expression} at {given} is {got}")


@operation("symbolic")
def copies(one: Symbolic, rng: random.Random) -> None:
    layout = one.layout
    expect(pickle.loads(pickle.dumps(layout)) == layout, f"pickle of {layout}")
    expect(symbolic.symbolic(layout) == layout, "symbolic of a symbolic layout")


@operation("symbolic", weight=2)
def coalesce(one: Symbolic, rng: random.Random) -> None:
    found = symbolic.coalesce(one.layout)
    expect(found.rank <= max(len(one.extents), 1), f"coalesce({one.layout}) = {found}")
    return judged(found, one.table, one.sizes, f"coalesce({one.layout})")


def tiler(one: Symbolic, rng: random.Random) -> tuple[Any, list[int]]:
    """An inner layout and its table."""
    kind = rng.random()
    if kind < 0.4:
        count: Any = rng.choice((1, 2, 4, "M", "N"))
        size = one.sizes.get(count, 1) if isinstance(count, str) else count
        return count, list(range(size))
    extent, step = rng.choice(((2, 1), (2, 2), (1, 3), (4, 1), (2, 4)))
    return SymbolicLayout(extent, step), values(extent, step)


@operation("symbolic", weight=2)
def composition(one: Symbolic, rng: random.Random) -> None:
    given, inner = tiler(one, rng)
    what = f"composition({one.layout}, {given})"
    found = attempt(symbolic.composition, one.layout, given)
    table = one.table
    if failed(found):
        exists = max(inner) < len(table) and tables.is_strided([table[i] for i in inner])
        raise refusal(found, exists, what, "LA626 LA627")
    want = [table[i] for i in inner] if max(inner) < len(table) else None
    outcome = judged(found, want, one.sizes, what)
    if isinstance(given, SymbolicLayout):
        expect(one.layout @ given == found == given.then(one.layout), "@ and then")
    return outcome


@operation("symbolic", weight=0.5)
def logical_divide(one: Symbolic, rng: random.Random) -> None:
    count: Any = rng.choice((1, 2, 4, "M", "N"))
    size = one.sizes.get(count, 1) if isinstance(count, str) else count
    what = f"logical_divide({one.layout}, {count})"
    found = attempt(symbolic.logical_divide, one.layout, count)
    if failed(found):
        whole = len(one.table) % size == 0
        exists = whole and tables.is_strided(one.table[:size]) and tables.is_strided(one.table[::size])
        raise refusal(found, exists, what, "LA626 LA627")
    return judged(found, one.table if len(one.table) % size == 0 else None, one.sizes, what)


@operation("symbolic", weight=2)
def complement(one: Symbolic, rng: random.Random) -> None:
    cosize: Any = rng.choice((None, None, text((rng.choice((1, 2, 8)), ("M", "N")))))
    what = f"complement({one.layout}, {cosize})"
    moving = [(at(n, one.sizes), at(d, one.sizes)) for n, d in zip(one.extents, one.strides, strict=True)]
    table = values(*zip(*[(n, d) for n, d in moving if d], strict=True)) if any(d for _, d in moving) else [0]
    known = {"M": 1, "N": 1, **one.sizes}
    bound = 1 + max(table) if cosize is None else int(cosize.split("*")[0]) * known["M"] * known["N"]
    want = tables.tiling(table, bound) if len(set(table)) == len(table) else None
    found = answer(symbolic.complement, one.layout, cosize, exists=want is not None, declined="LA626 LA627")
    at_sizes = at_numbers(found, one.sizes, what)
    starts = tables.read(at_sizes)
    both = sorted(a + b for a in table for b in starts)
    expect(both == list(range(len(both))) and len(both) >= bound, f"{what} at {one.sizes} gave {at_sizes}")


@operation("symbolic", weight=2)
def inverses(one: Symbolic, rng: random.Random) -> None:
    table = one.table
    if rng.random() < 0.5:
        found = symbolic.right_inverse(one.layout)
        at_sizes = at_numbers(found, one.sizes, f"right_inverse({one.layout})")
        for value, index in enumerate(tables.read(at_sizes)):
            fine = 0 <= index < len(table) and table[index] == value
            expect(fine, f"right_inverse({one.layout}) = {found}, at {one.sizes} {at_sizes}")
        return
    found = answer(
        symbolic.left_inverse, one.layout, exists=lambda: len(set(table)) == len(table), declined="LA626 LA627"
    )
    at_sizes = at_numbers(found, one.sizes, f"left_inverse({one.layout})")
    back = tables.read(at_sizes)
    extents = [at(n, one.sizes) for n in one.extents]
    for index, value in enumerate(table):
        digits = tables.leaves(tables.unravel(index, tuple(extents)))
        kept = tuple(0 if at(d, one.sizes) == 0 else x for x, d in zip(digits, one.strides, strict=True))
        want = tables.ravel(kept, tuple(extents))
        expect(value < len(back) and back[value] == want, f"left_inverse({one.layout}) at {one.sizes} = {at_sizes}")


@operation("symbolic")
def logical_product(one: Symbolic, rng: random.Random) -> None:
    count: Any = rng.choice((2, 3, "M"))
    size = one.sizes.get(count, 1) if isinstance(count, str) else count
    table = one.table
    what = f"logical_product({one.layout}, {count})"
    found = answer(
        symbolic.logical_product,
        one.layout,
        count,
        exists=lambda: len(set(table)) == len(table),
        declined="LA626 LA627",
    )
    at_sizes = at_numbers(found, one.sizes, what)
    got = tables.read(at_sizes)
    expect(len(got) == len(table) * size and got[: len(table)] == table, f"{what} at {one.sizes} gave {at_sizes}")
    starts = got[:: len(table)]
    expect(got == [a + b for b in starts for a in table], f"{what} at {one.sizes} gave {at_sizes}")
    if len(set(table)) == len(table):
        expect(len(set(got)) == len(got), f"{what} at {one.sizes} gave {at_sizes}, whose copies overlap")


@operation("symbolic")
def cosize(one: Symbolic, rng: random.Random) -> None:
    found = symbolic.cosize(one.layout)
    expect(at_numbers(found, one.sizes) == 1 + max(one.table), f"cosize({one.layout}) = {found}")


@operation("symbolic", weight=2)
def polynomials(one: Symbolic, rng: random.Random) -> None:
    """Polynomials and conditions at sizes."""
    a, b, c = rng.randint(-4, 4), rng.randint(1, 4), rng.randint(-6, 6)
    sizes = {"M": rng.randint(1, 9), "N": rng.randint(1, 9)}
    first = symbolic.polynomial(f"{a}*M*N + {c}")
    second = symbolic.polynomial(f"{b}*M")
    x, y = a * sizes["M"] * sizes["N"] + c, b * sizes["M"]
    for found, want in ((first + second, x + y), (first - second, x - y), (first * second, x * y)):
        expect(found.value(sizes) == want, f"{found} at {sizes} is not {want}")
        top, bottom = found.split()
        expect(top.value(sizes) == want * bottom.value(sizes) and top.whole, f"split of {found}")
    expect((first * second).quotient(second) == first, f"quotient of {first} * {second}")
    replaced = first.replace({"M": symbolic.polynomial("N + 1")})
    expect(replaced.value(sizes) == a * (sizes["N"] + 1) * sizes["N"] + c, f"replace in {first}")
    expect((first.as_int() is None) == (a != 0) == (first.constant is None), f"as_int of {first}")
    expect(first.content() == math.gcd(a, c) and first.names == ({"M", "N"} if a else set()), f"content of {first}")
    op, holds = rng.choice((("<=", x <= y), ("==", x == y), (">", x > y), ("!=", x != y)))
    claim = f"{a}*M*N + {c} {op} {b}*M"
    condition = symbolic.condition(claim)
    expect(condition.holds(sizes) == holds == condition.true_at(sizes), f"{claim} at {sizes}")
    k = rng.randint(2, 4)
    expect(symbolic.condition(f"M % {k} == 0").holds(sizes) == (sizes["M"] % k == 0), f"M % {k} at {sizes}")
    known = attempt(Assumptions, (claim, "N >= 2"))
    if failed(known):
        met = any(symbolic.condition(claim).holds({"M": m, "N": n}) for m in range(1, 9) for n in range(2, 9))
        raise refusal(known, met, f"Assumptions of {claim}")
    broken = not holds or sizes["N"] < 2
    expect((known.violated_by(sizes) is not None) == broken, f"{known} at {sizes}")
    expect((known.broken_at(sizes) is not None) == broken, f"{known} at {sizes}")
    expect(known.extended(("M >= 1",)).names >= known.names, "extended")


@operation("symbolic", weight=0.5)
def entailment(one: Symbolic, rng: random.Random) -> None:
    """A decision agrees with every assignment that is tried."""
    k, m = rng.randint(1, 6), rng.randint(1, 4)
    known = Assumptions((f"M % {k} == 0", f"M >= {m}"))
    claim = rng.choice((f"M % {rng.randint(1, 6)} == 0", f"M >= {rng.randint(1, 6)}", f"M < {rng.randint(1, 12)}"))
    decision = known.decide(claim)
    condition = symbolic.condition(claim)
    tried = [x for x in range(1, 60) if x % k == 0 and x >= m]
    seen = {condition.holds({"M": x}) for x in tried}
    expect(not (decision.status is True and False in seen), f"{known} entails {claim}: {decision}")
    expect(not (decision.status is False and True in seen), f"{known} refutes {claim}: {decision}")
    expect(not (len(seen) == 1 and decision.status is None and decision.fails_at and decision.holds_at), f"{decision}")
    expect(known.entails(claim) == decision.status, "entails")


@operation("symbolic", weight=0.5)
def symbolic_access(one: Symbolic, rng: random.Random) -> None:
    """What holds for every value of the symbols holds at drawn ones."""
    extent, pitch = rng.choice((4, 8, 16)), rng.choice(("ld", "8*ld", "4*ld"))
    step = rng.choice((2, 4, 8))
    found = integer.symbolic_access([extent, "H"], [1, pitch], 0, [f"ld % {step} == 0"])
    for k in (1, 2, 3):
        ld = step * k
        row = ld * {"ld": 1, "8*ld": 8, "4*ld": 4}[pitch]
        width = math.gcd(extent, row)
        expect(width % found.guaranteed == 0, f"symbolic_access: {found}, at ld={ld} the width is {width}")


@operation("symbolic", weight=0.05)
def to_sympy(one: Symbolic, rng: random.Random) -> None:
    """Polynomials, conditions, assumptions and values as sympy says them."""
    a, c, k = rng.randint(1, 4), rng.randint(-6, 6), rng.randint(2, 5)
    sizes = {"M": rng.randint(1, 9), "N": rng.randint(1, 9)}
    want = a * sizes["M"] * sizes["N"] + c

    def put(expression: Any) -> Any:
        return expression.subs({symbol: sizes[symbol.name] for symbol in expression.free_symbols})

    expect(int(put(symbolic.polynomial(f"{a}*M*N + {c}").to_sympy())) == want, "polynomial")
    claim = f"{a}*M*N + {c} >= {k}"
    expect(bool(put(symbolic.condition(claim).to_sympy())) == (want >= k), f"{claim} at {sizes}")
    known = Assumptions((f"M % {k} == 0", "N >= 2"))
    expect(bool(put(known.to_sympy())) == (sizes["M"] % k == 0 and sizes["N"] >= 2), f"{known} at {sizes}")
    reach = symbolic.cosize(SymbolicLayout(("M", "N"), (1, "M")))
    expect(int(put(reach.to_sympy())) == sizes["M"] * sizes["N"], f"{reach} at {sizes}")

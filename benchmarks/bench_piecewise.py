"""Piecewise layouts through ISL: equality, swizzles, inverses, counts, and where dense maps over F2 end.

    PYTHONPATH=. python benchmarks/bench_piecewise.py

Prints one JSON line per figure: the best of several rounds, in milliseconds of processor time per call. Every call asks
ISL afresh.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable

from layoutalg.bridges.equal import Budget, equivalent
from layoutalg.convert import to_linear, to_piecewise
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground.errors import BudgetError
from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.piecewise import PiecewiseLayout, PointSet

ROUNDS = 5
WIDE = Budget(isl_operations=500_000)


def report(what: str, call: Callable[[], object], **more: object) -> object:
    """Time a call and print one line; the budget may run out."""
    least, answer = float("inf"), None
    for _ in range(ROUNDS):
        start = time.process_time()
        try:
            answer = call()
        except BudgetError as error:
            more["budget"] = error.diagnostic.because
        least = min(least, time.process_time() - start)
        if least > 1:
            break
    print(json.dumps({"what": what, "ms": round(least * 1e3, 2), **more}), flush=True)
    return answer


def dense(bits: int, seed: int) -> LinearLayout:
    """A random invertible map over one axis."""
    rng = random.Random(seed)
    while True:
        columns = tuple(rng.randrange(1 << bits) for _ in range(bits))
        if matrix.rank(columns) == bits:
            return LinearLayout((("x", bits),), (("y", bits),), columns)


def equality() -> None:
    """Two layouts of four modes written differently, and a false variant."""
    left = CuteLayout((3, 8, 5, 7), (1, 3, 24, 120))
    right = CuteLayout((24, 35), (1, 24))
    wrong = CuteLayout((24, 5, 7), (1, 24, 121))
    found = report("4 modes written differently, ISL alone", lambda: equivalent(left, right, _engines=("isl",)))
    assert isinstance(found, Proved)
    found = report("4 modes, a false variant, ISL alone", lambda: equivalent(left, wrong, _engines=("isl",)))
    assert isinstance(found, Refuted)
    first = to_piecewise(left)
    second = PiecewiseLayout(
        "{ [a, b, c, d] -> [a + 3b + 24c + 120d + 11 - floor((4a + 33)/3) + a + floor(a/3)] : "
        "0 <= a < 3 and 0 <= b < 8 and 0 <= c < 5 and 0 <= d < 7 }"
    )
    assert report("4 modes, one with floors, is_equal", lambda: first.is_equal(second)) is True


def swizzles() -> None:
    """A 128-byte swizzle of 2^13 elements against its matrix over F2, by algebra and through ISL."""
    layout = ComposedLayout(Swizzle(3, 3, 3), 0, CuteLayout((64, 128), (1, 64)))
    linear = to_linear(layout)
    found = report("128-byte swizzle, 2^13 elements, = matrix, ladder", lambda: equivalent(layout, linear))
    assert isinstance(found, Proved)
    as_function = to_piecewise(layout)
    found = report(
        "128-byte swizzle, 2^13 elements, as function = matrix, ISL alone",
        lambda: equivalent(as_function, linear, _engines=("isl",)),
    )
    assert isinstance(found, Proved)
    report("128-byte swizzle, 2^13 elements, to_piecewise", lambda: to_piecewise(layout))


def parities() -> None:
    """Dense maps over F2 on their bits: where reading and comparing end."""
    for bits in (8, 13, 16, 20, 22, 24, 26, 28):
        layout = dense(bits, bits)
        other = LinearLayout(layout.in_axes, layout.out_axes, (*layout.columns[:-1], layout.columns[-1] ^ 4))
        found = report(f"dense F2, {bits} bits, to_piecewise", lambda layout=layout: to_piecewise(layout), bits=bits)
        if found is None:
            continue
        for name, right in (("equal", layout), ("not equal", other)):
            report(
                f"dense F2, {bits} bits, {name}, ISL alone",
                lambda layout=layout, right=right: equivalent(layout, right, WIDE, _engines=("isl",)),
                bits=bits,
                verdict=type(equivalent(layout, right, WIDE, _engines=("isl",))).__name__,
            )


def ragged() -> None:
    """Inverses and counts with a symbolic extent."""
    tiles = PiecewiseLayout("[N] -> { [i, j] -> [i div 12, i mod 12, j] : 0 <= i < N and 0 <= j < 37 }")
    report("inverse of a ragged tile", tiles.image_inverse)
    names = "abcdef"
    extents, weight, terms, box = (7, 3, 5, 11, 13, 17), 1, [], []
    for name, extent in zip(names, extents, strict=True):
        terms.append(f"{weight}{name}")
        box.append(f"0 <= {name} < {extent}")
        weight *= extent
    chain = PiecewiseLayout(f"{{ [{', '.join(names)}] -> [{' + '.join(terms)}] : {' and '.join(box)} }}")
    report("inverse of a chain of 6 modes", chain.image_inverse)
    wedge = PointSet("[N] -> { [i, j] : 0 <= j <= i < N }")
    report("count formula of a wedge", wedge.count_formula)
    assert wedge.count_formula()(N=10**9) == 10**9 * (10**9 + 1) // 2


if __name__ == "__main__":
    equality()
    swizzles()
    parities()
    ragged()

"""Wrong values for all functions and methods of the piecewise family are answered or refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from layoutalg import piecewise
from layoutalg.ground.errors import LayoutError
from layoutalg.piecewise import PiecewiseLayout, PointSet

P = PiecewiseLayout("{ [i, j] -> [10i + j] : 0 <= i < 4 and 0 <= j < 8 }")
L = PiecewiseLayout("[N] -> { [i, j] -> [i + 4j] : 0 <= i < 4 and 0 <= j < N }", given="N>0")
S = PointSet("[N] -> { [i, j] : 0 <= i < 4 and 0 <= j < N }")
COUNT = S.count_formula()


class Odd:
    """Something that no function knows."""


JUNK: list[Any] = [
    None, 5, -1, 1.5, True, "x", "", [], [1], (), (1, "a"), {}, {"i": 1}, {"i": "x", "j": 1}, {1: 2},
    {"i": None, "j": 1}, {"i": [1, 2], "j": [1, 2, 3]}, {"i": [[1], [2, 3]], "j": 1}, {"i": {1}, "j": 0},
    {"i": 2**70, "j": 1}, {"i": np.array(["a"]), "j": 1}, {"i": np.array([1.0]), "j": 1},
    {"i": np.arange(5), "j": np.arange(3)},
    {"i": Odd(), "j": Odd()}, {"i": 10**5000, "j": 0}, {"i": "9" * 5000, "j": 0}, b"x", Odd(), np.array([1, 2]),
    float("nan"), 10**5000, object, len, P, L, S, "{ [i, j] }", "{ [i] -> [i] }", "\ud800",
]  # fmt: skip
PIECES: list[Any] = [("i>0", "i")]
CALLS: dict[str, Callable[[Any], object]] = {
    "apply": P.apply,
    "at": P.at,
    "call": lambda x: P(i=x, j=0),
    "equal": P.is_equal,
    "then": P.then,
    "PiecewiseLayout": PiecewiseLayout,
    "PiecewiseLayout outputs": lambda x: PiecewiseLayout("{ [i] -> [i] : 0<=i<3 }", x),
    "PiecewiseLayout given": lambda x: PiecewiseLayout("{ [i] -> [i] }", (), x),
    "PiecewiseLayout unbounded outputs": lambda x: PiecewiseLayout("{ [i] -> [i] }", x),
    "parametric apply": lambda x: L.apply(x, N=3),
    "parametric apply N": lambda x: L.apply({"i": 0, "j": 0}, N=x),
    "parametric contains": lambda x: L.contains(x, N=3),
    "parametric at": lambda x: L(i=x, j=0, N=3),
    "parametric at N": lambda x: L(i=0, j=0, N=x),
    "subs": lambda x: L.subs(N=x),
    "graph": lambda x: L.graph(N=x),
    "table at": lambda x: L.subs(N=x).table(),
    "parametric then": L.then,
    "after": L.after,
    "restrict": L.restrict,
    "without": L.without,
    "union": L.union,
    "intersect": L.intersect,
    "holes": L.holes,
    "difference": L.difference,
    "parametric equal": L.is_equal,
    "parse": PiecewiseLayout.parse,
    "flat indices": lambda x: P.apply(np.array([x])),
    "PointSet": PointSet,
    "set subs": lambda x: S.subs(N=x),
    "set union": S.union,
    "set subtract": S.subtract,
    "set intersect": S.intersect,
    "set difference": S.difference,
    "set contains": lambda x: S.contains(x, N=3),
    "set points": lambda x: S.points(N=x),
    "set count": lambda x: S.count(N=x),
    "formula": lambda x: COUNT(N=x),
    "split": lambda x: piecewise.split(x, "i", 4),
    "split axis": lambda x: piecewise.split(L, x, 4),
    "split tile": lambda x: piecewise.split(L, "i", x),
    "full_and_partial_tiles": lambda x: piecewise.full_and_partial_tiles(x, "i", 4),
    "full_and_partial_tiles tile": lambda x: piecewise.full_and_partial_tiles(L, "i", x),
    "padded": lambda x: piecewise.padded(x, 1, 1),
    "padded number": lambda x: piecewise.padded(L, x, 1),
    "addresses": lambda x: piecewise.addresses(x, 1),
    "addresses number": lambda x: piecewise.addresses(L, x),
    "banks": piecewise.banks,
    "banks number": lambda x: piecewise.banks(L, x),
    "from_pieces": lambda x: piecewise.from_pieces(x, [("", "i")]),
    "from_pieces list": lambda x: piecewise.from_pieces(("i",), x),
    "from_pieces guard": lambda x: piecewise.from_pieces(("i",), [(x, "i")]),
    "from_pieces value": lambda x: piecewise.from_pieces(("i",), [("i>0", x)]),
    "from_pieces outputs": lambda x: piecewise.from_pieces(("i",), PIECES, x),
    "from_pieces context": lambda x: piecewise.from_pieces(("i",), PIECES, (), x),
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_values_are_answered_or_refused_by_name(name: str) -> None:
    refused = 0
    for value in JUNK:
        try:
            CALLS[name](value)
        except LayoutError as error:
            assert str(error)
            json.dumps(error.diagnostic.to_json())
            refused += 1
    assert refused > len(JUNK) // 4, "nearly everything was taken"


def test_moduli_beyond_64_bits_are_exact() -> None:
    wide = PiecewiseLayout(f"{{ [i] -> [i // 2, (3i) % {2**63}] : 0 <= i < {2**63} }}")
    assert [tuple(wide(i=i).values()) for i in (5, 2**62, 2**63 - 1)] == [
        (i // 2, 3 * i % 2**63) for i in (5, 2**62, 2**63 - 1)
    ]  # fmt: skip
    assert PointSet(f"{{ [x, y] : 0 <= x < 3 and 0 <= y < 3 and (3x + y) mod {10**30} = 0 }}").count() == 1


def test_more_axes_than_arrays_have() -> None:
    names = [f"x{k}" for k in range(80)]
    points = PointSet(f"{{ [{', '.join(names)}] : {' and '.join(f'{n} = 1' for n in names)} }}")
    assert points.sample() == dict.fromkeys(names, 1)
    assert PiecewiseLayout("{ [] -> " + "[3]" * 101 + " }").at(0) == (3,) * 101


@pytest.mark.parametrize(
    "text",
    [
        "{ [i] -> [13^99999999999999999999] }", "{ [i] -> [9^9^9^9] }", "{ [i] -> [(9^99)^99] : 0 <= i < 3 }",
        "{ [i, j] -> [13>" + "9" * 80 + "^" + "9" * 80 + "] }", "{ [i] : i < 2 ^ 100 }", "{ [i] : i < 2^i }",
    ],
)  # fmt: skip
def test_powers_are_bounded_before_they_are_computed(text: str) -> None:
    for reader in (PiecewiseLayout, PointSet):
        with pytest.raises(LayoutError):
            print(reader(text))


def test_a_small_power_is_a_number() -> None:
    assert PointSet("{ [i] : 0 <= i < 2^4 }").count() == 16


def test_a_value_that_is_not_an_integer_is_not_a_point() -> None:
    assert PointSet("{ [9223372036854775807 / 26] }").is_empty()
    assert PointSet("{ [] -> [9223372036854775807 / 26] }").is_empty()

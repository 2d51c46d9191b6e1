"""Guarded forms of integer layouts: the points of a box that are missed, against enumeration."""

from __future__ import annotations

import itertools
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.integer import IntegerLayout, covers
from layoutalg.integer.inverse import guarded
from layoutalg.integer.reach import first_missed


@settings(max_examples=60, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_missed_points_are_missed_and_none_is_overlooked(rng: random.Random) -> None:
    extents = [rng.randint(1, 5) for _ in range(rng.randint(1, 3))]
    outputs = tuple((f"o{k}", rng.choice([0, 0, 3, 4, 6])) for k in range(rng.randint(1, 2)))
    layout = IntegerLayout(
        tuple((f"i{k}", extent) for k, extent in enumerate(extents)),
        outputs,
        tuple(tuple(rng.randint(-4, 6) for _ in extents) for _ in outputs),
        tuple(rng.randint(-3, 3) for _ in outputs),
    )
    values = {layout.value(list(point)) for point in itertools.product(*map(range, extents))}
    sides = []
    for place, (_, modulus) in enumerate(outputs):
        low = rng.choice(sorted({value[place] for value in values}))
        high = min(low + rng.randint(1, 4), modulus or 10**6)
        sides.append((low, high))
    missed = set(itertools.product(*[range(low, high) for low, high in sides])) - values
    found = first_missed(layout, sides)
    assert (found is None) == (not missed)
    assert found is None or tuple(found) in missed
    assert {tuple(map(int, point)) for point in guarded(layout).image.points()} == values


def test_coupled_outputs_beyond_tables_are_decided() -> None:
    skew = IntegerLayout((("i", 3000), ("j", 3000)), (("x", 0), ("y", 0)), ((1, 1), (0, 1)), (0, 0))
    assert isinstance(covers(skew, {"x": (2999, 3000), "y": 3000}), Proved)
    answer = covers(skew, {"x": (0, 20), "y": (0, 5)})
    assert isinstance(answer, Refuted)
    point = answer.witness["missed"]
    assert point["x"] < point["y"]

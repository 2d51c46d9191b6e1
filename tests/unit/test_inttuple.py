"""Nested integer tuples: structure, coordinates and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from layoutalg.cute import inttuple
from layoutalg.ground.errors import AdmissibilityError, MalformedError


def test_numpy_integers_become_ints() -> None:
    value = inttuple.validate((np.int64(4), (np.uint8(2), 3)), "shape")
    assert value == (4, (2, 3))
    assert {type(leaf) for leaf in inttuple.flatten(value)} == {int}


@pytest.mark.parametrize(
    "bad", [True, 1.0, "4", None, [4, 8], (4, [8]), (4, True), (2, (3, 1.5)), np.float64(2), np.bool_(1)]
)
def test_only_integers_and_tuples_are_read(bad: object) -> None:
    with pytest.raises(MalformedError, match=r"LA100 shape is malformed\n  since  shape must be an integer or a tuple"):
        inttuple.validate(bad, "shape")


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, (1, 2**70)])
def test_integers_past_64_bits_are_refused(value: object) -> None:
    with pytest.raises(MalformedError, match="must fit a signed 64-bit integer"):
        inttuple.validate(value, "stride")


def test_depth_and_mode_count_are_bounded() -> None:
    value: object = 1
    for _ in range(64):
        value = (value,)
    assert inttuple.depth(inttuple.validate(value, "shape")) == 64
    with pytest.raises(MalformedError, match="must nest at most 64 deep"):
        inttuple.validate((value,), "shape")
    deep: object = 1
    for _ in range(100_000):
        deep = (deep,)
    with pytest.raises(MalformedError, match="must nest at most 64 deep"):
        inttuple.validate(deep, "shape")
    while isinstance(deep, tuple):  # unwind by hand: tuples this deep overflow the interpreter's own clean-up
        deep = deep[0]
    assert len(inttuple.flatten(inttuple.validate((1,) * 10_000, "shape"))) == 10_000
    with pytest.raises(MalformedError, match="more than 10000 modes"):
        inttuple.validate((1,) * 10_001, "shape")
    doubled: object = (1, 1)
    for _ in range(50):
        doubled = (doubled, doubled)
    with pytest.raises(MalformedError, match="more than 10000 modes"):
        inttuple.validate(doubled, "shape")
    with pytest.raises(MalformedError, match="more than 10000 modes"):
        inttuple.validate(((),) * 10_001, "shape")


def test_structure() -> None:
    value = ((2, 3), 4, ((5,),))
    assert inttuple.flatten(value) == (2, 3, 4, 5)
    assert inttuple.unflatten((9, 8, 7, 6), value) == ((9, 8), 7, ((6,),))
    assert (inttuple.product(value), inttuple.rank(value), inttuple.depth(value)) == (120, 3, 3)
    assert (inttuple.product(()), inttuple.rank(()), inttuple.depth(())) == (1, 0, 1)
    assert inttuple.compact_col_major(value) == ((1, 2), 6, ((24,),))
    assert inttuple.congruent(value, ((0, 0), 0, ((0,),)))
    assert not inttuple.congruent((2, 3), (2, (3,)))
    assert not inttuple.congruent(2, (2,))
    with pytest.raises(MalformedError, match="must have 4 entries"):
        inttuple.unflatten((1, 2), value)


def test_coordinates_invert_each_other() -> None:
    shape = (3, (2, 4), 5)
    stride = inttuple.compact_col_major(shape)
    for index in range(120):
        coordinate = inttuple.idx2crd(index, shape)
        assert inttuple.congruent(coordinate, shape)
        assert inttuple.crd2idx(coordinate, shape, stride) == index
        assert inttuple.crd2idx(index, shape, stride) == index


def test_coordinates_outside_are_refused() -> None:
    for index in (-1, 40):
        with pytest.raises(AdmissibilityError, match="LA105"):
            inttuple.idx2crd(index, (4, 10))
    with pytest.raises(AdmissibilityError, match=r"4 is not in \[0, 4\), the extent of 4"):
        inttuple.crd2idx((4, 0), (4, 8), (1, 4))
    with pytest.raises(AdmissibilityError, match="LA105"):
        inttuple.crd2idx(0, (4, 0), (1, 4))
    with pytest.raises(MalformedError, match="LA104"):
        inttuple.crd2idx((1, 2, 3), (4, 8), (1, 4))
    with pytest.raises(MalformedError, match="must be congruent to the shape"):
        inttuple.crd2idx(0, (4, 8), 1)
    assert inttuple.crd2idx((), (), ()) == inttuple.crd2idx(0, (), ()) == 0

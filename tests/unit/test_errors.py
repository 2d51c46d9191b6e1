"""Diagnostics show and carry any value: bounded text, and JSON that every reader takes."""

from __future__ import annotations

import json
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutalg.ground.errors import Diagnostic, Repair, plain, shown

deep: list = []
for _ in range(5_000):
    deep = [deep]
around: list = [1]
around += [around, around]


class Broken:
    def __repr__(self):
        raise RuntimeError


ODD = [
    1j, float("nan"), float("inf"), 10**5000, -(10**5000), deep, around, Broken(), np.arange(5), np.int64(3),
    np.bool_(1), np.float64(2.5), np.array([1j]), np.array(5), np.array([Broken()]), Fraction(10**5000, 3), "a\ud800",
    b"\xff", {1: 2}, {(1, 2): Broken()}, {1}, range(3), print, np.int64, np.ma.masked_array([1, 2], [0, 1]), [[1j]],
    "x" * 10**6,
]  # fmt: skip


@pytest.mark.parametrize("value", ODD, ids=lambda value: type(value).__name__)
def test_a_diagnostic_of_any_value_has_text_and_json(value):
    diagnostic = Diagnostic("LA000", "odd", witness={"value": value}, repairs=(Repair("do", "it", {"value": value}),))
    assert len(str(diagnostic)) < 1_200
    assert len(shown(value)) <= 120
    text = json.dumps(diagnostic.to_json(), allow_nan=False)
    assert json.loads(text)["code"] == "LA000"


def test_data_that_json_has_is_unchanged():
    document = {"a": [1, 2.5, None, True, "text", {"b": []}], "c": -(2**64)}
    assert Diagnostic("LA000", "", witness=document).to_json()["witness"] == document


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary()),
    lambda inner: st.one_of(
        st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(st.one_of(st.text(), st.integers()), inner)
    ),
    max_leaves=30,
)


@given(values, st.integers(10, 200))
def test_what_is_shown_is_the_beginning_of_the_representation(value, limit):
    whole = repr(value)
    expected = whole if len(whole) <= limit else whole[: limit - 3] + "..."
    if "'" in whole or '"' in whole:  # the quotes of a cut string depend on what was cut
        assert len(shown(value, limit)) <= limit
    else:
        assert shown(value, limit) == expected


@given(values)
def test_what_is_plain_survives_json(value):
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == plain(value)


def test_a_large_value_is_not_written_out():
    document = [[0] * 100 for _ in range(100_000)]
    start = time.process_time()
    for _ in range(100):
        shown(document)
    assert time.process_time() - start < 1

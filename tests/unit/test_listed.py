"""A layout given as its table: coordinates by name and flat, more than ten dimensions, what lies outside."""

from __future__ import annotations

import numpy as np
import pytest

from layoutalg.ground.errors import MalformedError
from layoutalg.ground.listed import listed


@pytest.mark.parametrize("extents", [(2, 3), (3, 1, 4), (2,) * 12])
def test_coordinates_by_name_are_those_of_the_array(extents):
    table = np.random.default_rng(3).permutation(int(np.prod(extents))).reshape(extents)
    layout = listed(table)
    points = np.argwhere(table >= 0)
    coords = {f"dim{place}": points[:, place] for place in reversed(range(len(extents)))}
    assert np.array_equal(layout.apply(coords)["offset"], table[tuple(points.T)])
    assert np.array_equal(layout.apply(np.arange(table.size)), table.reshape(-1, order="F"))


@pytest.mark.parametrize(
    "wrong", [{"dim0": 2, "dim1": 0}, {"dim0": -1, "dim1": 0}, {"dim0": 0}, {"dim0": 0.5, "dim1": 0}, [6]]
)
def test_what_lies_outside_is_refused(wrong):
    with pytest.raises(MalformedError):
        listed([[0, 1, 2], [3, 4, 5]]).apply(wrong)

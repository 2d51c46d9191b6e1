"""The census: its spaces are what they are said to be, its samples lie in them, its page shows what was counted."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import random
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import census

ROOT = Path(__file__).resolve().parents[2]


def rank(columns):
    basis = []
    for column in columns:
        for vector in basis:
            column = min(column, column ^ vector)
        if column:
            basis.append(column)
    return len(basis)


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
def test_trees_are_the_bijections_with_two_bits_a_column(bits):
    short = [value for value in range(1, 1 << bits) if value.bit_count() <= 2]
    wanted = {columns for columns in itertools.product(short, repeat=bits) if rank(columns) == bits}
    found = list(census.trees(bits, None))
    assert len(found) == len(set(found)) == len(wanted) == census.forests(bits)
    assert set(found) == wanted
    drawn = itertools.islice(census.trees(9, random.Random(bits)), 20)
    assert all(rank(columns) == 9 and all(column.bit_count() <= 2 for column in columns) for columns in drawn)


def test_dense_layouts_are_all_orders_of_all_factors_once():
    tile = (4, 8)
    tables = set()
    for rows, columns in itertools.product([(4,), (2, 2)], [(8,), (2, 4), (4, 2), (2, 2, 2)]):
        sizes = rows + columns
        for order in itertools.permutations(range(len(sizes))):
            strides = {at: math.prod(sizes[other] for other in order[:place]) for place, at in enumerate(order)}
            lines = []
            for digits in (range(len(rows)), range(len(rows), len(sizes))):
                line = [0]
                for at in digits:
                    line = [low + step * strides[at] for step in range(sizes[at]) for low in line]
                lines.append(line)
            tables.add(tuple(row + column for row in lines[0] for column in lines[1]))
    listed = census.dense(tile)
    made = {tuple(np.asarray(census.cute_of(modes).table()).reshape(tile, order="F").reshape(-1)) for modes in listed}
    assert len(listed) == len(made)
    assert made == tables


def test_wilson_intervals():
    low, high = census.wilson(50, 100)
    assert (round(low, 4), round(high, 4)) == (0.4038, 0.5962)
    assert census.wilson(0, 300)[0] == 0
    assert 0.012 < census.wilson(0, 300)[1] < 0.013


@pytest.mark.nightly(one_of=3)
@pytest.mark.parametrize("group", ["cute", "f2", "swizzled"])
def test_a_short_census(group):
    spaces = [space for space in census.spaces() if space.group == group and math.prod(space.tile) <= 512]
    for space in spaces[:2]:
        row = census.count(dataclasses.replace(space, sample=4), 7)
        assert row["failed"] == 0, row["errors"]
        assert row["asked"] == 4
        for name in census.COLUMNS:
            assert sum(row["columns"][name].values()) == 4
        carried = [row["columns"][name].get("yes", 0) for name in ("tma", "tma and wgmma", "factored")]
        assert carried[1] <= carried[0] <= carried[2] + row["columns"]["factored"].get("unknown", 0)


def test_the_page_and_the_picture_show_the_stored_counts():
    rows = json.loads((ROOT / "docs/_static/census.json").read_text())
    for row in rows:
        for name in census.COLUMNS:
            assert sum(row["columns"][name].values()) == row["asked"] - row["failed"]
        assert row["exact"] == (row["asked"] == row["layouts"])
    page = (ROOT / "docs/census.md").read_text()
    assert census.written(page, rows) == page
    picture = census.figure(rows)
    assert (ROOT / "docs/_static/census.svg").read_text() == picture
    ElementTree.fromstring(picture)

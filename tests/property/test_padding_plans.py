"""Padding is least: against enumerations that share nothing with the finder, of tiles of any extents."""

from __future__ import annotations

import dataclasses
import itertools
import random
from math import prod

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.ground.errors import LayoutError, MalformedError
from layoutalg.proofs.checker import check as checked
from layoutalg.proofs.padding import CellAccess
from layoutalg.synth.solving import AtLeast, Multiple, Spread, least_padding
from layoutalg.targets import banks

AMD = ("gfx942", "gfx950", "gfx1100", "gfx1201")
ELEMENT_ACCESSES = (
    "rows",
    "columns",
    "columns:2",
    "rows:1",
    "store columns",
    "diagonals",
    "antidiagonals:2",
    "along 0",
)


def counted(plan, place):
    """The turns of every access under a function from cells to bytes; None where one is misaligned."""
    total = 0
    for each in plan.served:
        access = plan.accesses[each.access]
        for lanes in access.cells:
            addresses = [None if cell is None else place(cell) for cell in lanes]
            if any(address is not None and address % (min(access.bits, 128) // 8) for address in addresses):
                return None
            total += banks.turns(each.target, each.instruction, addresses)
    return total


def pitched(plan, pitches):
    """Cells to bytes by pitches."""

    def place(cell):
        found, rest = 0, cell
        for extent, pitch in zip(plan.shape[::-1], pitches[::-1], strict=True):
            found, rest = found + rest % extent * pitch, rest // extent
        return found * plan.element_bits // 8

    return place


def asked(rng, dimensions):
    bits = rng.choice((8, 16, 32, 64))
    shape = tuple(rng.randint(1, (40, 12, 6)[dimensions - 2]) for _ in range(dimensions - 1))
    shape = (*shape, rng.randint(1, 6) * rng.choice((1, 2, 4, 8)))
    names = rng.sample(ELEMENT_ACCESSES, rng.randint(1, 2))
    return shape, names, bits


def test_one_pitch_is_the_least_of_two_periods():
    rng, done, improved = random.Random(20), 0, 0
    while done < 40:
        shape, names, bits = asked(rng, 2)
        targets = ["sm_90a"] if rng.random() < 0.6 else [rng.choice(AMD)]
        try:
            plan = la.padding(shape, names, targets, bits)
        except LayoutError:
            continue
        done += 1
        plan.check()
        assert plan.plain == counted(plan, pitched(plan, (shape[1], 1)))
        found = []
        for pitch in range(shape[1], shape[1] + (2 * 256 + 8) * 8 // bits if shape[0] > 1 else shape[1] + 1):
            turns = counted(plan, pitched(plan, (pitch, 1)))
            if turns is not None:
                found.append((turns, pitch))
                if turns == plan.ideal:
                    break
        assert (plan.turns, plan.pitches[0]) == min(found), (shape, names, bits, targets)
        improved += plan.plain is not None and plan.turns < plan.plain
    assert improved > 8


def test_two_pitches_are_the_least_of_a_wider_window():
    rng, done = random.Random(21), 0
    while done < 4:
        shape, names, bits = asked(rng, 3)
        if bits < 32 or min(shape) < 2:
            continue
        try:
            plan = la.padding(shape, names, element_bits=bits)
        except LayoutError:
            continue
        done += 1
        plan.check()
        many = (128 + 32) * 8 // bits
        found = (
            (turns, outer, inner)
            for inner in range(shape[2], shape[2] + many)
            for outer in range(inner * shape[1], inner * shape[1] + many)
            if (turns := counted(plan, pitched(plan, (outer, inner, 1)))) is not None
        )
        assert (plan.turns, *plan.pitches[:2]) == min(found), (shape, names, bits)


def test_isl_and_z3_agree_on_coupled_pitches():
    """Four rows by two planes of 16 bytes a lane: the same conditions for the solvers of pitches."""
    for shape in ((2, 4, 8), (4, 2, 24), (2, 4, 40)):
        cells = np.arange(prod(shape)).reshape(shape)[..., :8]
        lanes = np.resize(cells.reshape(-1, 8), (32, 8))  # eight rows in all, the lanes behind them repeat those
        plan = la.padding(shape, [lanes]).check()
        row, plane = (("row", 1),), (("plane", 1),)
        spread = Spread((("row", shape[1]), ("plane", shape[0])), 16)
        found = least_padding(
            ["plane", "row"],
            [Multiple(row, 16), Multiple(plane, 16), AtLeast(row, 2 * shape[2]), spread,
             AtLeast((("plane", 1), ("row", -shape[1])), 0)],
        )  # fmt: skip
        assert plan.conflict_free
        assert tuple(2 * pitch for pitch in plan.pitches[:2]) == (found["plane"], found["row"])


def test_intervals_are_the_least():
    rng, done = random.Random(22), 0
    while done < 10:
        shape, names, bits = asked(rng, 2)
        form = rng.choice(("interval", "padded_shared"))
        try:
            plan = la.padding(shape, names, element_bits=bits, form=form)
        except LayoutError:
            continue
        done += 1
        plan.check()
        size = prod(shape)
        unit = max(1, 32 // bits) if form == "interval" else 1
        amounts = range(unit, (128 + 8) * 8 // bits, unit)
        if form == "padded_shared":
            amounts = [amount for amount in amounts if amount & amount - 1 == 0]
        found = []
        for interval in (1 << bit for bit in range((size - 1).bit_length())):
            for amount in (0, *amounts):
                if interval % unit:
                    continue
                turns = counted(plan, lambda cell, i=interval, a=amount, b=bits: (cell + cell // i * a) * b // 8)
                if turns is not None:
                    found.append((turns, amount * ((size - 1) // interval)))
        if found:
            assert (plan.turns, plan.elements - size) == min(found), (shape, names, bits, form)


def test_rows_in_another_order():
    plan = la.padding((16, 32), ["rows:8", "columns:8"], ["sm_90a"], form="reordered").check()
    plain = la.padding((16, 32), ["rows:8", "columns:8"], ["sm_90a"], form="padded_shared").check()
    assert plan.turns <= plain.turns
    assert plan.optimal
    shared = plan.padded_shared()
    for row, column in itertools.product(range(16), range(32)):
        tensor = next(
            offset for offset in range(512) if shared.linear.apply({"offset": offset, "block": 0})
            == {"dim0": row, "dim1": column}
        ) if (row, column) in ((0, 0), (5, 3), (15, 31)) else None  # fmt: skip
        if tensor is not None:
            assert shared.address(tensor) == plan.offset(row, column)


def test_certificates_and_wrong_plans():
    plan = la.padding((24, 72), ["rows", "store columns", "ldmatrix"])
    made = plan.certificates()
    assert [certificate.kind for certificate in made] == ["bank-turns"] * 3
    assert all(checked(certificate.to_json())[0] == 0 for certificate in made)
    worse = la.padding((32, 32), ["rows:1", "columns"], element_bits=32)
    moved = dataclasses.replace(worse, pitches=(65, 1))
    with pytest.raises(MalformedError, match=r"(?s)LA921.*must be minimal"):
        moved.check()
    with pytest.raises(MalformedError, match=r"(?s)LA921.*must be '"):
        dataclasses.replace(worse, pitches=(32, 1)).check()
    with pytest.raises(MalformedError, match=r"(?s)LA921.*distinct offsets"):
        dataclasses.replace(worse, pitches=(31, 1)).check()


@pytest.mark.parametrize(
    ("shape", "accesses", "options"),
    [
        ((0, 4), "rows", {}), ((4, 4), "row", {}), ((4, 7), "rows:2", {}), ((4, 8), "ldmatrix", {}),
        ((8, 8), "along 2", {}), ((8, 8), [], {}),
        ((8, 8), "rows", {"form": "rows"}), ((8, 8), "rows", {"element_bits": 12}), ((8,), "diagonals", {}),
        ((8, 8), np.zeros((3, 4)), {}), ((8, 8), "store ldmatrix", {}), ((12, 8), "rows", {"form": "reordered"}),
    ],
)  # fmt: skip
def test_what_is_no_question(shape, accesses, options):
    with pytest.raises(MalformedError, match=r"LA9[29]0"):
        la.padding(shape, accesses, **options)


def test_accesses_come_as_a_list_a_tuple_or_one_pair() -> None:
    both = la.padding((64, 64), ["rows", "columns"])
    assert la.padding((64, 64), ("rows", "columns")) == both
    stored = la.padding((64, 64), ("((8,4),(2,8)):((64,2),(1,8))", "store"))
    assert [each.kind for each in stored.accesses] == ["store"]
    assert la.padding((64, 64), ["((8,4),(2,8)):((64,2),(1,8)):store"]) == stored


def test_accesses_and_names_that_no_plan_has_are_refused():
    plan = la.padding((32, 32), ["store rows:1", "columns:1"], element_bits=32)
    for cells in (((0, 1), (2,)), ((100_000,) * 32,)):
        with pytest.raises(MalformedError, match="cells"):
            dataclasses.replace(plan, accesses=(CellAccess("a", "load", 32, cells), *plan.accesses[1:]))
    with pytest.raises(MalformedError, match="identifiers"):
        least_padding(("mod",), [Multiple((("mod", 1),), 16)])


@given(st.permutations(range(64)), st.integers(0, 32))
def test_nested_lists_are_the_array_of_their_cells(cells, idle):
    """A table of cells [lane, register] is one access, alone or in a list; -1 is an inactive lane."""
    table = [[cell if lane >= idle else -1 for cell in cells[2 * lane : 2 * lane + 2]] for lane in range(32)]
    assume(idle < 32)
    plan = la.padding((8, 8), np.array(table), element_bits=32)
    for given_as in (table, [table], [[table]], ([np.array(table)])):
        assert la.padding((8, 8), given_as, element_bits=32) == plan
    places = [4 * (cell // 8 * plan.pitches_bytes[0] // 4 + cell % 8) for row in table for cell in row if cell >= 0]
    assert len(set(places)) == len(places)
    assert plan.turns == counted(plan, lambda cell: cell // 8 * plan.pitches_bytes[0] + cell % 8 * 4)


@pytest.mark.parametrize("table", [[[0, 1], [2]], [[0.5, 1.5]], [[0, 64]], [[]], [[0, -2]]])
def test_bad_tables_are_refused(table):
    with pytest.raises(MalformedError, match=r"LA920(?s:.*)\[lane, register\] in \[-1, 64\)"):
        la.padding((8, 8), [table])

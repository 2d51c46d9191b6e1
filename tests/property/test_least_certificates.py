"""Certificates that nothing takes fewer turns: complete lists, counts of a judge, and attacks that are refused."""

from __future__ import annotations

import copy
import random
import sys
from pathlib import Path

import numpy as np
import pytest
from judges.certificates import told

import layoutalg as la
from layoutalg.proofs.checker.base import column
from layoutalg.proofs.checker.operands import turns_of
from layoutalg.proofs.served import uncertified
from tests.judges import swizzle_spaces as judge
from tests.judges.bank_words import instructions, judged, served

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import campaign_swizzles as campaign

COLUMN = [32 * lane for lane in range(32)]


def bytes_of(layout, size):
    """The table of stages."""
    return tuple(int(value) for value in column(size, layout))


def listed(plan, form, chunk_bits):
    """All members by the judge, as bytes."""
    rows, columns = (bits for _, bits in plan.smem.in_axes)
    made = {
        "xor": lambda: judge.xors(rows, columns, chunk_bits),
        "cute": lambda: judge.cutes(rows, columns),
        "tma": lambda: judge.hardware(rows, columns, plan.element_bits),
    }[form]()
    members = np.unique(np.concatenate(list(made)), axis=0)
    total = np.zeros(len(members), dtype=np.int64)
    for access in plan.accesses:
        held = judge.table(access.registers, access.lanes, access.warps, access.layout.constant)
        turns = judge.turns_of(members, held, access.kind, plan.element_bits, "sm_90a")
        total = np.where((turns < 0) | (total < 0), -1, total + turns)
    size = plan.element_bits // 8
    return {tuple((size * row).tolist()): int(turns) for row, turns in zip(members, total, strict=True)}


@pytest.mark.parametrize("form", ["xor", "cute", "tma"])
def test_a_swizzle_lists_every_member_that_instructions_move(form, portion):
    rng, done = np.random.default_rng(11), 0
    while done < len(portion(range(6))):
        accesses, bits, options, _ = campaign.space_of(rng, form)
        if form == "xor":
            rows, columns = 2, 4
            options = {"form": "xor", "chunk_bytes": max(4, bits // 8)}
            accesses = [campaign.accessed(rng, rows, columns, int(rng.integers(4))) for _ in range(2)]
        try:
            plan = la.swizzle(accesses, "sm_90a", bits, seconds=20, **options)
        except la.RepresentabilityError:
            continue
        if plan.conflict_free or plan.uncertified:
            continue
        done += 1
        made = plan.least_certificates()
        assert all(each.check() for each in made)
        assert min(each.statement["turns"] for each in made) == plan.turns
        members = listed(plan, form, (8 * plan.chunk_bytes // bits).bit_length() - 1)
        found = {bytes_of(layout, plan.smem.size) for each in made for layout in each.statement["layouts"]}
        assert found == {member for member, turns in members.items() if turns >= 0}


def test_free_plans_show_that_no_places_do_better():
    rng = np.random.default_rng(12)
    for _ in range(12):
        accesses, bits, options, _ = campaign.space_of(rng, "any")
        plan = la.swizzle(accesses, "sm_90a", bits, **options)
        (made,) = plan.least_certificates()
        assert made.statement["turns"] == plan.turns == plan.ideal
        assert "layouts" not in made.statement
        assert made.check()


def test_a_padding_lists_every_lesser_one():
    rng, done = random.Random(13), 0
    while done < 12:
        shape = (rng.randint(2, 20), rng.randint(1, 6) * rng.choice((1, 2, 4)))
        bits, form = rng.choice((16, 32, 64)), rng.choice(("pitches", "pitches", "interval", "padded_shared"))
        names = rng.sample(["rows:1", "columns:1", "diagonals:1", "columns:2"], 2)
        try:
            plan = la.padding(shape, names, "sm_90a", bits, form=form)
        except la.MalformedError:
            continue
        done += 1
        (made,) = plan.least_certificates()
        assert made.check()
        layouts = [bytes_of(layout, shape[0] * shape[1]) for layout in made.statement["layouts"]]
        assert layouts[made.statement["first"]] == tuple((plan.offsets() * bits // 8).tolist())
        if form == "pitches":
            pitches = [layout[shape[1]] * 8 // bits for layout in layouts]
            assert pitches == list(range(shape[1], shape[1] + len(pitches)))
            assert pitches[-1] == plan.pitches[0] if plan.conflict_free else len(pitches) * bits >= 8 * 128
            continue
        period = -(-8 * (128 + 3) // bits)
        lesser = {
            tuple((offsets * bits // 8).tolist())
            for lost, offsets in judge.padded(shape, bits, form, period)
            if not plan.conflict_free or lost < plan.amount * ((shape[0] * shape[1] - 1) // plan.interval) * bits // 8
        }
        assert lesser <= set(layouts)


def test_rows_in_another_order_are_listed():
    plan = la.padding((8, 8), ["columns:1", "rows:4"], element_bits=32, form="reordered")
    (made,) = plan.least_certificates()
    assert made.check()
    assert bytes_of(made.statement["layouts"][made.statement["first"]], 64) == tuple((plan.offsets() * 4).tolist())


def test_the_checker_counts_as_the_judge_does():
    rng = random.Random(14)
    for target, name in instructions() * 6:
        access, lanes = la.proofs.certify.banks.measured_access(target, name)
        size = served(target, name)[0]
        size = 4 if size == 12 else size
        reach = rng.choice((4, 64, 400))
        starts = [rng.choice((-1, 0, 1, 1)) for _ in range(lanes)]
        starts = [start if start < 0 else size * rng.randrange(reach) for start in starts]
        if rng.random() < 0.4:
            starts = [starts[lane & ~rng.choice((1, 1, 2))] for lane in range(lanes)]
        expected = judged(target, name, [None if start < 0 else start for start in starts])
        turns = turns_of(access, np.array(starts)), turns_of(access, np.array(starts), spread=True)
        assert ([expected[0]], [expected[1]]) == turns, (target, name, starts)


def said(statement):
    """What the checker says of a document that was written by an attacker, with the right seal."""
    return told("least-turns", statement, {})


def pitched(*pitches):
    return [[["split", [32, 32]], ["affine", [[4, 4 * pitch]], [0]]] for pitch in pitches]


def right():
    """Pitches 32, 34 and 33 words of a column: 32, 2 and 1 turns."""
    cells = {"size": 32, "stages": [["affine", [[32]], [0]]]}
    return {"moved": [["sm_90a ld.shared.b32", cells]], "layouts": pitched(32, 34, 33), "turns": 1, "first": 2}


def test_what_is_right_is_accepted():
    assert said(right()) == (0, "none of 3 layouts takes fewer than 1 turns")
    without = {name: value for name, value in right().items() if name in ("moved", "turns")}
    assert said(without) == (0, "no places of cells take fewer than 1 turns")
    assert said(right() | {"layouts": pitched(32, 34), "turns": 2, "first": 1})[0] == 0


UNMEASURED = "the lane groups of this access were not measured"
OTHERS = "the fewest turns are others, got "
SHAPE = "these are no cells, or no first of layouts"
FAR = [["affine", [[4]], [2**32]]]


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"turns": 2}, OTHERS + "1"),
        ({"turns": 0}, OTHERS + "1"),
        ({"first": 1}, OTHERS + "1"),
        ({"first": 3}, OTHERS + "1"),
        ({"layouts": pitched(32, 34)}, OTHERS + "2"),  # the best one is not there
        ({"layouts": pitched(32, 33, 33)}, OTHERS + "1"),  # it is not the first
        ({"layouts": []}, SHAPE),
        ({"layouts": None}, "certificate.statement.layouts must be a list"),
        ({"layouts": [*pitched(32, 34), FAR]}, "a layout puts a cell outside of shared memory, layout 2"),
        ({"layouts": [*pitched(32, 34), [["affine", [[-4]], [0]]]]}, "a layout puts a cell outside of shared memory"),
        ({"layouts": [[["affine", [[1]], [1]]]], "first": 0}, OTHERS + "inf"),  # aligns nothing
        ({"moved": []}, SHAPE),
        ({"moved": [["sm_90a ld.shared.b32", {"size": 0, "stages": []}]]}, SHAPE),
        ({"moved": [["sm_90a ld.shared.b32", {"size": 32, "stages": [["affine", [[0]], [-1]]]}]]}, SHAPE),
        ({"moved": [["sm_90a ld.shared.b32", {"size": 32, "stages": [["affine", [[1]], [-2]]]}]]}, SHAPE),
        ({"moved": [["sm_90a ld.shared.b32", {"size": 31, "stages": []}]]}, OTHERS + "inf"),  # half an access
        ({"moved": [["gfx90a ds_read_b32", {"size": 64, "stages": []}]]}, UNMEASURED),
        ({"moved": [["gfx950 ds_read_b6", {"size": 64, "stages": []}]]}, UNMEASURED),
    ],
)
def test_what_is_wrong_is_refused(change, fact):
    code, told = said({**right(), **change})
    assert (code, told[: len(fact)]) == (1, fact)


def test_a_claim_about_all_places_names_no_first_and_is_exact():
    without = {name: value for name, value in right().items() if name in ("moved", "turns")}
    assert said({**without, "first": 0}) == (1, SHAPE)
    assert said({name: value for name, value in right().items() if name != "first"}) == (1, SHAPE)
    assert said({**without, "turns": 2}) == (1, OTHERS + "1")
    wave = [["gfx942 ds_read_b32", {"size": 64, "stages": [["split", [32, 2]], ["affine", [[1, 0]], [0]]]}]]
    assert said({"moved": wave, "turns": 2})[0] == 0
    assert said({"moved": wave, "turns": 1}) == (1, OTHERS + "2")


def test_too_many_layouts_are_not_decided():
    many = copy.deepcopy(right())
    many["moved"][0][1] = {"size": 2**17, "stages": [["mod", [1024]]]}
    many["layouts"] = pitched(*range(32, 72))
    assert said(many)[0] == 2


@pytest.mark.parametrize(
    ("plan", "because"),
    [
        (lambda: la.swizzle(["rows"], "sm_80", 32, tile=(32, 32)), "sm_80 was not measured"),
        (
            lambda: la.swizzle(["rows", "columns"], "sm_90a", 16, "xor", tile=(64, 64), chunk_bytes=32),
            "4096 layouts x 4608 lane addresses exceed a certificate's limit",
        ),
        (lambda: la.padding((5, 5, 4), ["along 0", "along 1:4", "rows:1"], element_bits=16), "several free dimensions"),
    ],
)
def test_an_answer_without_a_certificate_says_why(plan, because):
    plan = plan()
    assert because in plan.uncertified
    assert plan.uncertified == plan.to_json()["uncertified"]
    with pytest.raises(la.RepresentabilityError, match=r"LA436|LA906"):
        plan.least_certificates()


def test_the_error_names_the_reason():
    assert uncertified("many").diagnostic.code == "LA906"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (([("sm_90a", "ld.shared.b32", COLUMN)], 2, pitched(33), 0), "LA427"),
        (([("sm_90a", "ld.shared.b32", COLUMN[:5])], 1), "LA435"),
        (([("sm_90a", "ld.shared.b32", [-1] * 32)], 1), "LA435"),
        (([("sm_90a", "ld.shared.b32", [0.5] * 32)], 1), "LA435"),
        (([], 1), "LA435"),
        (([("sm_90a", "ld.shared.b32", COLUMN)], 1, [], 0), "LA435"),
        (([("sm_80", "ld.shared.b32", COLUMN)], 1), "LA436"),
    ],
)
def test_wrong_claims_are_not_certified(arguments, error):
    with pytest.raises(la.LayoutError, match=error):
        la.certify.least_turns(*arguments)

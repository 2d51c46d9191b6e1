"""Repairs: admitted when they are asked again, in the order of their costs, and none of their kind costs less."""

from __future__ import annotations

import json
import pickle
import random

import numpy as np
import pytest

import layoutalg as la
from layoutalg.ground.errors import Cost, LayoutError
from layoutalg.proofs.checker import check
from layoutalg.synth.admission import asked_again

ASKED = (
    ("tma", "sm_90a", ("bf16", "f32", "u8")),
    ("tma.store", "sm_90a", ("f16",)),
    ("bulk", "sm_90a", ("f16", "f32")),
    ("wgmma.A", "sm_90a", ("bf16", "e4m3")),
    ("wgmma.B", "sm_90a", ("f16", "tf32")),
    ("ldmatrix.x4", "sm_90a", ("f16",)),
    ("ldmatrix.x2.trans", "sm_90a", ("bf16",)),
    ("stmatrix.x2", "sm_90a", ("f16",)),
    ("ld.shared.v4.b32", "sm_80", ("f32", "f16")),
    ("cp.async.cg.16", "sm_80", ("f16",)),
    ("ds_read_b128", "gfx950", ("f16", "u8")),
    ("ds_write_b64", "gfx942", ("f32",)),
    ("buffer_load_dword_lds", "gfx942", ("f16",)),
    ("tcgen05.B", "sm_100a", ("bf16",)),
)


def drawn(rng):
    """A tile, its rows or columns padded, now and then behind a swizzle or from a base of its own."""
    rows, columns = rng.choice((8, 16, 64)), rng.choice((8, 16, 32, 64))
    pad = rng.choice((0, 0, 1, 4, 8))
    text = rng.choice((f"({rows},{columns}):({columns + pad},1)", f"({rows},{columns}):(1,{rows + pad})"))
    front = rng.choice(("", "", "Sw<3,3,3> o 0 o ", "Sw<3,2,3> o 0 o ", "Sw<2,3,3> o 4 o "))
    return front + text


@pytest.mark.nightly(one_of=4)
@pytest.mark.parametrize(("consumer", "target", "dtypes"), ASKED)
def test_repairs_are_admitted_again_and_ranked(consumer, target, dtypes):
    rng = random.Random(consumer)
    seen = 0
    for _ in range(4):
        align = rng.choice((1024, 1024, 8)) if "tcgen05" not in consumer else 1024
        layout, dtype = drawn(rng), rng.choice(dtypes)
        try:
            answer = la.admissible(layout, consumer, target, dtype, align_bytes=align)
        except LayoutError:
            continue
        if not isinstance(answer, la.Refused):
            continue
        costs = [repair.cost for repair in answer.repairs]
        assert costs == sorted(costs)
        assert len({repair.name for repair in answer.repairs}) == len(costs)
        for repair in answer.repairs:
            seen += 1
            again = asked_again(answer, repair)
            assert again, repair
            assert all(isinstance(part, la.Admitted) for part in again), (layout, repair)
            assert all(check(part.certificate.to_json())[0] == 0 for part in again)
            assert str(repair.cost) in str(repair)
            assert str(repair) in str(answer)
    assert seen


def admitted(layout, consumer, target, dtype):
    return isinstance(la.admissible(layout, consumer, target, dtype), la.Admitted)


@pytest.mark.parametrize(
    ("consumer", "target", "dtype"),
    [("ldmatrix.x1", "sm_90a", "f16"), ("ds_read_b64", "gfx942", "f16"), ("bulk", "sm_90a", "f16")],
)
@pytest.mark.parametrize("pitch", [17, 18, 20, 23])
def test_no_smaller_pitch_is_admitted(consumer, target, dtype, pitch):
    """Every pitch from the one given to the one proposed is asked."""
    answer = la.admissible(f"(8,16):({pitch},1)", consumer, target, dtype)
    found = {repair.name: repair for repair in answer.repairs} if not answer else {}
    fits = [wide for wide in range(pitch, pitch + 33) if admitted(f"(8,16):({wide},1)", consumer, target, dtype)]
    if answer:
        assert fits[0] == pitch
        return
    assert found["pad to whole rows"].detail == f"(8,16):({fits[0]},1)"
    assert found["pad to whole rows"].cost.added_bytes == 2 * 7 * (fits[0] - pitch)


def test_two_pitches_grow_as_little_as_can_be():
    rng = random.Random(4)
    for _ in range(4):
        inner = rng.randint(9, 15)
        outer = 4 * inner + rng.randint(0, 9)
        shape = "((4,2),8)"
        answer = la.admissible(f"{shape}:(({inner},{outer}),1)", "ldmatrix.x1", dtype="f16")
        assert isinstance(answer, la.Refused)
        repair = next(repair for repair in answer.repairs if repair.name == "pad to whole rows")
        fits = [
            (2 * (3 * (one - inner) + two - outer), one, two)
            for one in range(inner, 25)
            for two in range(outer, 4 * 25)
            if two > 3 * one + 7 and admitted(f"{shape}:(({one},{two}),1)", "ldmatrix.x1", "sm_90a", "f16")
        ]
        assert repair.cost.added_bytes == min(fits)[0], (repair, min(fits))


def test_a_cheaper_alignment_does_not_do():
    for layout, consumer, dtype in (
        ("(64,64):(64,1)", "ldmatrix.x4", "f16"),
        ("Sw<2,3,3> o 0 o (64,32):(32,1)", "tma", "f16"),
        ("(64,8):(8,1)", "bulk", "f32"),
    ):
        answer = la.admissible(layout, consumer, dtype=dtype, align_bytes=8)
        repair = next(repair for repair in answer.repairs if repair.name == "align the base")
        align = int(repair.detail.removeprefix("align_bytes="))
        assert repair.cost == Cost(0, repair.cost.instructions, 1)
        for lower in (16 << step for step in range(7)):
            if lower < align:
                assert not la.admissible(layout, consumer, dtype=dtype, align_bytes=lower)
        assert la.admissible(layout, consumer, dtype=dtype, align_bytes=align)


def test_every_kind_of_repair():
    def names(*question, **options):
        return {repair.name: repair for repair in la.admissible(*question, **options).repairs}

    rows = "(64,64):(1,64)"
    assert names(rows, "ldmatrix.x4", "sm_90a", "f16")["read it transposed"].detail == "ldmatrix.x4.trans"
    turned = names(rows, "ds_read_b64", "gfx950", "f16")["read it transposed"]
    assert turned.document["consumer"] == "ds_read_b64_tr_b16"
    assert "read it transposed" not in names(rows, "ds_read_b64", "gfx942", "f16")
    promoted = names(rows, "wgmma.A", "sm_90a", "e4m3")["promote the type"]
    assert promoted.document["dtype"] == "f16"
    assert promoted.cost.added_bytes == 64 * 64
    assert names("(64,64):(65,1)", "ldmatrix.x4", "sm_90a", "f16")["move vectors"].detail == "ld.shared.b16"
    assert names("(80,64):(64,1)", "wgmma.A")["grow the tile"].cost.added_bytes == 48 * 64 * 2
    assert names("Sw<3,3,3> o 4 o (64,64):(64,1)", "wgmma.A")["move the base"].detail.startswith("Sw<3,3,3> o 0 o")
    assert "change the swizzle" in names("(64,64):(64,1)", "wgmma.A")
    folded = names("Sw<1,3,3> o 0 o (2,64,16):(1024,16,1)", "tcgen05.A", "sm_100a")["fold"].document
    assert folded["tile"] == [128, 16]
    pitched = names("(64,64):(64,1)", "tma", tensor=la.Tensor((1024, 516)))["pad the pitch"]
    assert pitched.cost.added_bytes == 1023 * 8
    assert "allow more copies" in names("(8,64):(72,1)", "bulk", issues=4)
    assert names("(64,64):(64,1)", "cp.async.ca.4", dtype="f64")


def test_two_parts_have_a_descriptor_each():
    """A tile whose halves lie under two swizzles: no descriptor has both."""
    left = np.asarray(la.parse("Sw<3,3,3> o 0 o (64,64):(64,1)").table()).reshape((64, 64), order="F")
    right = np.asarray(la.parse("Sw<2,3,3> o 0 o (64,32):(32,1)").table()).reshape((64, 32), order="F") + 8192
    table = np.concatenate([left, right], axis=1)
    answer = la.admissible(table, "wgmma.A")
    assert isinstance(answer, la.Refused)
    repair = next(repair for repair in answer.repairs if repair.name == "split")
    assert repair.detail == "dimension 1 at 64, parts start at bytes 0, 16384"
    parts = asked_again(answer, repair)
    assert [part.descriptor.base.swizzle for part in parts] == ["128B", "64B"]


def test_what_is_found_later_is_a_value_like_any_other():
    answer = la.admissible("(64,64):(65,1)", "tma")
    other = pickle.loads(pickle.dumps(answer))
    assert other == answer
    assert json.loads(json.dumps(answer.to_json()))["repairs"][0]["cost"]["added_bytes"] == 0
    assert other.certificate.check()
    with pytest.raises(AttributeError, match="no colour"):
        _ = answer.colour

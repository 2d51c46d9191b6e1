"""The nearest legal tensor map against brute force over single fields, and minimal conflicts of rules."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from layoutalg.ground.errors import InfeasibleError, MalformedError
from layoutalg.synth.solving import map_conflicts, nearest_map
from layoutalg.synth.solving.legal import CHOICES, RULES, _fields, _rebuilt
from layoutalg.targets.nvidia.tensormap import TensorMap, violations

LEGAL = TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B")


def illegal(rng: random.Random) -> TensorMap:
    """A map with one to three fields off."""
    dtype = rng.choice(("u8", "bf16", "f32"))
    tm = TensorMap(dtype, (512, 1024, 4), (2048, 2**21), (16, 8, 2), swizzle=rng.choice(CHOICES["swizzle"][1:]))
    for _ in range(rng.randint(1, 3)):
        change = rng.choice(("pitch", "box", "inner", "base", "step", "fill", "dim", "interleave"))
        if change == "pitch":
            tm = replace(tm, strides_bytes=(2048 + rng.randrange(1, 40), tm.strides_bytes[1]))
        elif change == "box":
            tm = replace(tm, box=(tm.box[0], rng.choice((0, 257, 300)), 2))
        elif change == "inner":
            tm = replace(tm, box=(rng.randrange(1, 140), *tm.box[1:]))
        elif change == "base":
            tm = replace(tm, base_address=rng.randrange(1, 64))
        elif change == "step":
            tm = replace(tm, element_strides=(1, rng.choice((0, 9, 12)), 1))
        elif change == "fill":
            tm = replace(tm, oob_fill="NAN")
        elif change == "dim":
            tm = replace(tm, dims=(512, 0, 4))
        else:
            tm = replace(tm, interleave="32B")
    return tm


def single(tm: TensorMap, reach: int):
    """Legal maps that differ in one field by at most so much, as (distance, field)."""
    fields = _fields(tm)
    for name, value in fields.items():
        others = CHOICES[name] if name in CHOICES else range(max(0, value - reach), value + reach + 1)
        for other in others:
            if other != value and not violations(_rebuilt(tm, fields | {name: other})):
                yield (0 if name in CHOICES else abs(other - value)), name


def test_nothing_nearer_is_legal():
    rng = random.Random(4)
    counted = {1: 0, 2: 0}
    for _ in range(10):
        tm = illegal(rng)
        broken = {entry.rule for entry in violations(tm)}
        found = nearest_map(tm)
        assert not violations(found.tensor_map)
        assert bool(found.changes) == bool(broken)
        assert found.distance == sum(abs(b - a) for _, a, b in found.changes if isinstance(a, int))
        alone = list(single(tm, 64))
        if len(found.changes) == 1:
            assert min(distance for distance, _ in alone) == found.distance
        elif found.changes:
            assert not alone
        for name, before, _ in found.changes:  # no change is idle
            fields = _fields(found.tensor_map) | {name: before}
            assert violations(_rebuilt(tm, fields))
        counted[min(2, max(1, len(found.changes)))] += 1
        cores = map_conflicts(tm)
        assert {rule for core in cores for rule in core.rules} == broken & set(RULES)
    assert min(counted.values()) > 1


def test_maps_of_slices_are_aligned_to_the_slice():
    """What a map in slices of 32 bytes begins with, and its pitches, are multiples of 32; in slices of 16, of 16."""
    sliced = TensorMap("u8", (64, 64, 64, 8), (64, 8192, 2**18), (64, 4, 4, 1), interleave="32B")
    assert not violations(sliced)
    for name, value in (("base_address", 16), ("base_address", 48), ("strides_bytes", (80, 8192, 2**18)),
                        ("strides_bytes", (64, 8208, 2**18))):  # fmt: skip
        wrong = replace(sliced, **{name: value})
        assert violations(wrong)
        found = nearest_map(wrong, keep=("interleave",))
        assert not violations(found.tensor_map)
        assert found.tensor_map.interleave == "32B"
        ours, theirs = (np.ravel(getattr(tm, name)) for tm in (found.tensor_map, wrong))
        assert np.abs(ours - theirs).sum() == 16
        assert not violations(replace(wrong, interleave="16B"))


def test_fields_that_stay_are_kept_or_the_conflict_is_named():
    tm = replace(LEGAL, swizzle="32B")
    kept = nearest_map(tm, keep=["swizzle"])
    assert kept.changes == (("box[0]", 64, 16),)
    wide = nearest_map(tm, keep=["box[0]"])
    assert wide.tensor_map.box == (64, 64)
    assert wide.distance == 0
    with pytest.raises(InfeasibleError) as caught:
        nearest_map(tm, keep=["swizzle", "box[0]"])
    assert caught.value.diagnostic.code == "LA875"
    assert "SWIZZLE_INNER" in str(caught.value)


def test_rules_conflict_with_each_other_over_fields_that_stay():
    tm = replace(LEGAL, dtype="f64", swizzle="32B", box=(5, 64))
    cores = map_conflicts(tm, keep=["swizzle", "box[0]", "interleave"])
    assert {core.rules for core in cores} == {("BOX_INNER_16B",), ("SWIZZLE_INNER",)}
    assert all("box[0] = 5" in str(core) for core in cores)
    assert map_conflicts(LEGAL) == ()
    assert str(nearest_map(LEGAL)) == "the map is already legal"


@pytest.mark.parametrize(
    ("tm", "keep"),
    [("map", ()), (LEGAL, "swizzle"), (LEGAL, ["colour"]), (replace(LEGAL, strides_bytes=(-16,)), ())],
)
def test_malformed_questions_are_refused(tm, keep):
    with pytest.raises(MalformedError):
        nearest_map(tm, keep=keep)

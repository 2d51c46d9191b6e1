"""Which toolkit accepts a map: consistent with the rules of today, and changing only where texts changed."""

from __future__ import annotations

import itertools
import json
import random

import pytest

from layoutalg.ground.errors import MalformedError
from layoutalg.targets.model import Rule, version
from layoutalg.targets.nvidia import tensormap
from layoutalg.targets.nvidia.tensormap import RULES, TOOLKITS, TensorMap, accepted_since, violations
from layoutalg.targets.nvidia.tensormap.versions import FIRST, MEASURED, PTX
from layoutalg.targets.registry import TARGETS, lookup

CHANGES = {"12.1", "12.3", "12.8", "12.9", "13.5"}


def random_map(rng):
    rank = rng.randint(1, 5)
    dtype = rng.choice([*tensormap.DTYPES] + ["bf16", "f32"] * 6)
    bits = tensormap.DTYPES[dtype].bits
    dims = [rng.choice([64, 128, 256, 500, 4096]) for _ in range(rank)]
    strides, pitch = [], dims[0] * bits // 8
    for extent in dims[1:]:
        strides.append(pitch if rng.random() < 0.9 else rng.choice([0, 16, 24, 32, 1 << 40]))
        pitch *= extent
    box = [rng.choice([8, 16, 32, 64, 128]) if rng.random() < 0.95 else 300 for _ in range(rank)]
    if rng.random() < 0.15:
        dims[-1] = rng.choice([2**31, 2**31 + 1, 2**32, 2**32 + 1])
    steps = [1 if rng.random() < 0.95 else rng.choice([2, 9]) for _ in range(rank)]
    return TensorMap(
        dtype, tuple(dims), tuple(strides), tuple(box), tuple(steps),
        rng.choice(["NONE"] * 8 + ["16B", "32B"]), rng.choice([*tensormap.SWIZZLES, "NONE", "128B"]), "NONE",
        rng.choice(["ZERO"] * 5 + ["NAN"]), rng.choice([0, 16, 256, 8]) if rng.random() < 0.2 else 0,
    )  # fmt: skip


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_answers_agree_with_the_rules_of_today(target):
    rng = random.Random(target)
    seen = set()
    for _ in range(150):
        tm = random_map(rng)
        found = accepted_since(tm, target)
        assert tuple(one.toolkit for one in found) == TOOLKITS
        text = violations(tm, target, "documented")
        for one in found:
            assert one.answer == "accepted" or (one.rules and one.reason), str(one)
            seen.add(one.answer)
            if one.evidence == "measured":
                assert one.toolkit == MEASURED
                assert bool(one) == (violations(tm, target) == ())
            elif one.answer == "accepted":
                assert text == ()
            elif one.answer == "refused":
                assert text or one.rules[0] in ("TOOLKIT_ARCH", "TOOLKIT_ENUM", "DIM_EXECUTE")
                assert one.rules[0].startswith("TOOLKIT") or RULES[one.rules[0]].documented
            else:
                with pytest.raises(ValueError, match="unknown"):
                    bool(one)
        if target not in tensormap.ARCHITECTURES:
            assert {one.rules for one in found} == {("NO_TMA",)}
            continue
        assert any(one.evidence == "measured" for one in found) == bool(lookup(target).measured)
        read = [one for one in found if one.evidence == "documented"]
        for before, after in itertools.pairwise(read):
            if (before.answer, before.rules) != (after.answer, after.rules):
                assert after.toolkit in CHANGES, (str(before), str(after))
            if before.answer == "accepted" and after.answer != "accepted":
                assert after.rules == ("DIM_EXECUTE",)
    expected = {"refused"} if target not in tensormap.ARCHITECTURES else {"accepted", "refused", "unknown"}
    assert seen == expected


def first(tm, target):
    return next((one.toolkit for one in accepted_since(tm, target) if one.answer == "accepted"), None)


def test_known_dates():
    plain = TensorMap("bf16", (64, 64), (128,), (64, 64), swizzle="128B")
    assert {target: first(plain, target) for target in FIRST} == dict(FIRST)
    atom = TensorMap("bf16", (64, 64), (128,), (64, 64), swizzle="128B_ATOM_32B")
    assert (first(atom, "sm_90a"), first(atom, "sm_100a"), first(atom, "sm_103a")) == (None, "12.8", "12.9")
    packed = TensorMap("u4_align16", (128, 64), (64,), (128, 8), swizzle="128B")
    assert accepted_since(packed, "sm_90a")[5].rules == ("TOOLKIT_ENUM",)
    nest = TensorMap("bf16", (64, 64, 4), (128, 128), (64, 8, 1))
    by = {one.toolkit: one for one in accepted_since(nest, "sm_90a")}
    assert by["13.0"].answer == "accepted"
    assert by["12.8"].answer == "unknown"
    assert by["12.8"].rules == ("STRIDE_NEST",)
    assert json.loads(json.dumps(by["12.8"].to_json()))["schema"] == "layoutalg/acceptance/1"
    for wrong in ({"target": "sm_70"}, {"tm": "map"}):
        with pytest.raises(MalformedError):
            accepted_since(**({"tm": plain, "target": "sm_90a"} | wrong))


def test_spans_of_rules():
    for rule in RULES.values():
        assert (rule.since is not None) == rule.documented
        stated = [rule.stated_in(toolkit) for toolkit in TOOLKITS]
        changes = sum(a != b for a, b in itertools.pairwise(stated))
        assert changes <= 1 or (rule.until is not None and changes == 2)
        for bound in (rule.since, rule.until):
            assert bound is None or bound in TOOLKITS
    assert sorted(TOOLKITS, key=version) == list(TOOLKITS)
    assert set(PTX) <= set(TOOLKITS)
    assert not Rule("R", "A rule.", "", (), True, since="12.8", until="13.5").stated_in("13.5")

"""Turns by target and instruction: published counts of AMD, measured rules of NVIDIA, refusal elsewhere."""

from __future__ import annotations

import itertools
import random

import pytest

import layoutalg as la
from layoutalg.targets import banks
from layoutalg.targets.nvidia.accesses import access_form
from layoutalg.targets.nvidia.banks import wavefronts


@pytest.mark.parametrize(("target", "operation"), sorted(banks.AMD_RULES))
def test_phases_share_out_the_wave_and_turns_are_the_busiest_bank(target: str, operation: str) -> None:
    rule = banks.AMD_RULES[target, operation]
    assert sorted(lane for phase in rule.phases for lane in phase) == list(range(rule.lanes))
    assert all(len(phase) * rule.access_bytes <= 4 * rule.banks for phase in rule.phases)
    assert rule.access_bytes * 8 == int(operation.rpartition("b")[2])
    dense = [rule.access_bytes * lane for lane in range(rule.lanes)]
    assert banks.turns(target, operation, [0] * rule.lanes) == len(rule.phases) <= banks.turns(target, operation, dense)


def test_a_row_swizzle_is_free_on_one_chip_and_not_on_another() -> None:
    def rows(phase: int) -> list[int]:
        """32 rows of 128 bytes, lane // 32 the chunk: chunk xor a function of the row."""
        return [128 * (lane % 32) + 16 * ((lane // 32) ^ (lane % 32 >> phase & 7)) for lane in range(64)]

    turns = {(chip, phase): banks.turns(chip, "ds_read_b128", rows(phase)) for chip in ("gfx942", "gfx950")
             for phase in (0, 1)}  # fmt: skip
    assert turns == {("gfx942", 0): 8, ("gfx942", 1): 16, ("gfx950", 0): 8, ("gfx950", 1): 4}


@pytest.mark.parametrize(
    ("operation", "bits", "kind"),
    [
        ("ld.shared.b32", 32, "load"), ("ld.shared.v4.b32", 128, "load"), ("st.shared.v2.b32", 64, "store"),
        ("ld.shared.v2.f64", 128, "load"), ("ld.shared::cta.u8", 8, "load"), ("st.shared.v4.b16", 64, "store"),
        ("ldmatrix.x4", 128, "ldmatrix"), ("stmatrix.x1.trans", 128, "stmatrix"),
        ("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", 128, "ldmatrix"),
    ],
)  # fmt: skip
def test_names_of_instructions(operation: str, bits: int, kind: str) -> None:
    access = banks.nvidia_access(operation)
    assert (access.bits, access.kind) == (bits, kind)
    rng = random.Random(operation)
    for _ in range(20):
        addresses = [bits // 8 * rng.randrange(64) for _ in range(access.addresses)]
        assert banks.turns("sm_90a", operation, addresses) == wavefronts(addresses, bits, kind)


@pytest.mark.parametrize(
    ("target", "operation", "count", "error"),
    [
        ("gfx950", "ds_read_b32", 64, la.RepresentabilityError),
        ("gfx90a", "ds_read_b128", 64, la.RepresentabilityError),
        ("gfx942", "ds_read_b96", 64, la.RepresentabilityError),
        ("sm_90a", "ds_read_b32", 32, la.MalformedError),
        ("sm_90a", "ldmatrix.x4", 8, la.MalformedError), ("sm_90a", "ld.shared.v8.b32", 32, la.MalformedError),
        ("gfx942", "ds_read_b32", 32, la.MalformedError), ("cpu", "ds_read_b32", 64, la.MalformedError),
        ("sm_90a", None, 32, la.MalformedError), (3, "ld.shared.b32", 32, la.MalformedError),
    ],
)  # fmt: skip
def test_what_nobody_measured_is_refused(target: str, operation: str, count: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        banks.turns(target, operation, [0] * count)


def test_32_bits_are_documented_for_every_target() -> None:
    assert banks.turns("sm_100a", "ld.shared.b32", [128 * lane for lane in range(32)]) == 32


# What ptxas takes for sm_90a; asked of it in tests/compile/test_nvrtc.py.
SCALARS = [f"{letter}{bits}" for letter in "bus" for bits in (8, 16, 32, 64)] + ["f32", "f64", "b128"]


def test_loads_and_stores_are_those_of_ptx() -> None:
    taken = set()
    for kind, count, letter, bits in itertools.product(
        ("ld", "st"), ("", ".v1", ".v2", ".v3", ".v4", ".v8", ".v16", ".v02"), "busfe", (1, 4, 8, 16, 32, 64, 128, 256)
    ):
        name = f"{kind}.shared{count}.{letter}{bits}"
        wide = bits * int(count[2:] or 1)
        in_ptx = f"{letter}{bits}" in SCALARS and (count == "" or (count in (".v2", ".v4") and wide <= 128 > bits))
        if in_ptx:
            taken.add(name)
            assert banks.nvidia_access(name) == banks.Access("load" if kind == "ld" else "store", wide)
            assert access_form(name).row_bits == wide
            continue
        with pytest.raises(la.MalformedError, match=r"(?s)LA709.*at most 128 bits"):
            banks.turns("sm_90a", name, [0] * 32)
        with pytest.raises(la.MalformedError, match="LA820"):
            access_form(name)
    assert len(taken) == 2 * (15 + 14 + 10)
    with pytest.raises(la.MalformedError, match=r"(?s)LA709.*v8\.b16"):
        banks.turns("sm_90a", "ld.shared.v8.b16", [16 * lane for lane in range(32)])

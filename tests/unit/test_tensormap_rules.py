"""Which rules a map breaks, by documents and by the measured driver, and the words that say so."""

import pickle
from typing import Any

import pytest

from layoutalg.ground.errors import MalformedError, TargetRuleError
from layoutalg.targets.nvidia import tensormap
from layoutalg.targets.nvidia.tensormap import TensorMap, violations
from layoutalg.targets.registry import TARGETS, lookup


def make(**changes: Any) -> TensorMap:
    fields: dict[str, Any] = {
        "dtype": "bf16",
        "dims": (512, 1024, 4),
        "strides_bytes": (1024, 1 << 20),
        "box": (64, 64, 1),
        "swizzle": "128B",
    }
    return TensorMap(**{**fields, **changes})


def ids(tm: TensorMap, evidence: str = "enforced", target: str = "sm_90a") -> list[str]:
    return [entry.rule for entry in violations(tm, target=target, evidence=evidence)]


def test_a_plain_map_is_clean_everywhere() -> None:
    tm = make()
    assert violations(tm) == ()
    for target in tensormap.ARCHITECTURES:
        assert violations(tm, target=target, evidence="documented") == ()


@pytest.mark.parametrize("target", sorted(set(TARGETS) - set(tensormap.ARCHITECTURES)))
def test_no_map_is_for_a_target_without_tensor_maps(target: str) -> None:
    assert ids(make(), "documented", target) == ids(make(box=(7, 1, 1)), "enforced", target) == ["NO_TMA"]
    for call in (lambda: tensormap.encode(make(), target), lambda: tensormap.decode(bytes(128), target)):
        with pytest.raises(TargetRuleError, match="LA830") as caught:
            call()
        assert caught.value.rule == "NO_TMA"


@pytest.mark.parametrize(
    ("changes", "rule", "field", "position", "message"),
    [
        ({"base_address": 8}, "BASE_ALIGN", "base_address", None, "base_address = 8 is not a multiple of 16 bytes"),
        ({"base_address": -16}, "BASE_RANGE", "base_address", None, "base_address = -16 is outside 0..2^57-1"),
        ({"base_address": 1 << 57}, "BASE_RANGE", "base_address", None, f"base_address = {1 << 57} is outside"),
        ({"dims": (512, 0, 4)}, "DIM_RANGE", "dims", 1, "dims[1] = 0 is outside 1..2^32"),
        ({"dims": (512, 2**32 + 1, 4)}, "DIM_RANGE", "dims", 1, "dims[1] = 4294967297 is outside 1..2^32"),
        (
            {"strides_bytes": (1024, 1 << 40)},
            "STRIDE_RANGE",
            "strides_bytes",
            1,
            "strides_bytes[1] = 1099511627776 (mode 2) is outside 0..2^40-1",
        ),
        ({"strides_bytes": (-16, 16)}, "STRIDE_RANGE", "strides_bytes", 0, "strides_bytes[0] = -16"),
        (
            {"strides_bytes": (1000, 1 << 20)},
            "STRIDE_ALIGN",
            "strides_bytes",
            0,
            "strides_bytes[0] = 1000 (mode 1) is not a multiple of 16 bytes",
        ),
        ({"box": (64, 257, 1)}, "BOX_RANGE", "box", 1, "box[1] = 257 is outside 1..256"),
        (
            {"box": (63, 64, 1)},
            "BOX_INNER_16B",
            "box",
            0,
            "box[0] = 63 elements of 16 bits are not a multiple of 16 bytes",
        ),
        ({"element_strides": (1, 9, 1)}, "ELEM_STRIDE", "element_strides", 1, "element_strides[1] = 9 is outside 1..8"),
        (
            {"box": (128, 64, 1)},
            "SWIZZLE_INNER",
            "box",
            0,
            "box[0] = 128 elements of 16 bits take 256 bytes, more than the 128 bytes of swizzle 128B",
        ),
        (
            {"dtype": "u16", "oob_fill": "NAN"},
            "OOB_NAN",
            "oob_fill",
            None,
            "oob_fill NAN needs a floating-point type, not u16",
        ),
        (
            {"box": (64, 256, 8)},
            "BOX_SMEM",
            "box",
            None,
            "the whole box takes 262144 bytes (floors of box / element stride), more than 233472",
        ),
        (
            {"swizzle": "128B_ATOM_64B"},
            "ARCH_ATOM",
            "swizzle",
            None,
            "swizzle 128B_ATOM_64B needs compute capability 10.0 or later",
        ),
    ],
)
def test_one_broken_rule(changes: dict[str, Any], rule: str, field: str, position: int | None, message: str) -> None:
    found = violations(make(**changes))
    assert [entry.rule for entry in found] == [rule]
    assert (found[0].field, found[0].position) == (field, position)
    assert message in found[0].message
    assert str(found[0]).startswith(rule + ": ")


def test_rank() -> None:
    flat = TensorMap("u8", (64, 64), (64,), (16, 2), interleave="16B")
    assert str(violations(flat)[0]) == "RANK: dims has 2 entries, allowed 3..5 with interleave 16B"
    assert ids(TensorMap("u8", (), (), ())) == ["RANK"]
    assert ids(TensorMap("u8", (), (), ()), "documented") == ["RANK"]
    assert ids(TensorMap("u8", (16,) * 6, (16,) * 5, (16,) + (1,) * 5)) == ["RANK"]


def test_last_accepted_values_in_both_paths() -> None:
    full = TensorMap("u8", (256,) * 3, (256, 65536), (256, 57, 16))
    edges = [
        (full, True),
        (TensorMap("u8", (256,) * 3, (256, 65536), (256, 57, 16), base_address=(1 << 57) - 16), True),
        (TensorMap("u8", (256,) * 3, (256, 65536), (256, 57, 16), base_address=1 << 57), False),
        (TensorMap("u8", (256,) * 3, (256, 65536), (256, 61, 15)), False),
        (TensorMap("u8", (2**32,) * 3, (2**40 - 16, 0), (16, 256, 1), (8, 8, 8), l2_promotion="256B"), True),
    ]
    assert tensormap.box_bytes(full) == tensormap.MAX_BOX_BYTES
    assert tensormap.batch.verdicts([tensormap.batch.to_row(tm) for tm, _ in edges]).tolist() == [ok for _, ok in edges]
    assert [violations(tm) == () for tm, _ in edges] == [ok for _, ok in edges]


def test_packed_types_are_refused_on_cc_9() -> None:
    assert "ARCH_ATOM" in ids(make(dtype="u4_align16"))
    assert "ARCH_ATOM" in ids(make(dtype="u4_align16"), "documented")
    assert "ARCH_ATOM" not in ids(make(dtype="u4_align16"), "documented", "sm_100a")


@pytest.mark.parametrize(
    ("changes", "enforced", "documented"),
    [
        ({"strides_bytes": (0, 1 << 20)}, [], ["STRIDE_NEST", "STRIDE_NEST"]),
        ({"strides_bytes": (1 << 20, 1024)}, [], ["STRIDE_NEST"]),
        ({"strides_bytes": (512, 1 << 20)}, [], ["STRIDE_NEST"]),
        ({"strides_bytes": (1024, 1 << 19)}, [], ["STRIDE_NEST"]),
        ({"strides_bytes": (1040, 1040 * 1024 + 16)}, [], ["STRIDE_NEST"]),
        ({"strides_bytes": (1040, 1040 * 1030)}, [], []),
        ({"element_strides": (9, 1, 1)}, ["ELEM_STRIDE"], []),
        ({"element_strides": (0, 1, 1)}, ["ELEM_STRIDE"], []),
        ({"element_strides": (9, 1, 1), "interleave": "16B"}, ["ELEM_STRIDE"], ["ELEM_STRIDE"]),
        ({"interleave": "16B", "box": (63, 64, 1)}, ["BOX_INNER_16B"], []),
        ({"interleave": "32B"}, [], ["INTERLEAVE32"]),
        ({"interleave": "32B", "swizzle": "32B"}, [], []),
        ({"interleave": "32B", "swizzle": "32B", "base_address": 16}, ["BASE_ALIGN"], ["BASE_ALIGN"]),
        (
            {"interleave": "32B", "swizzle": "32B", "strides_bytes": (1040, 1040 * 1024)},
            ["STRIDE_ALIGN"],
            ["STRIDE_ALIGN"],
        ),
        ({"box": (64, 256, 8)}, ["BOX_SMEM"], []),
        ({"box": (64, 256, 8), "element_strides": (1, 2, 1)}, [], []),
        ({"box": (64, 64, 256)}, ["BOX_SMEM"], []),
        ({"dims": (512, 2**32, 4), "strides_bytes": (1024, 0)}, [], ["STRIDE_NEST"]),
    ],
)
def test_documented_and_enforced_differ(changes: dict[str, Any], enforced: list[str], documented: list[str]) -> None:
    assert ids(make(**changes)) == enforced
    assert ids(make(**changes), "documented") == documented


@pytest.mark.parametrize(
    ("changes", "documented"),
    [
        ({}, []),
        ({"dims": (64, 16)}, ["PACKED_DIM0"]),
        ({"box": (64, 4)}, ["PACKED_BOX0"]),
        ({"base_address": 16}, ["BASE_ALIGN"]),
        ({"strides_bytes": (80,)}, ["STRIDE_ALIGN"]),
        ({"swizzle": "64B"}, ["PACKED_SWIZZLE", "SWIZZLE_INNER"]),
        ({"swizzle": "128B_ATOM_32B_FLIP_8B"}, ["PACKED_SWIZZLE"]),
        ({"swizzle": "128B_ATOM_64B"}, ["PACKED_SWIZZLE"]),
        ({"dtype": "u6_align16", "strides_bytes": (96,), "swizzle": "128B_ATOM_64B"}, []),
        ({"dtype": "u6_align16"}, ["STRIDE_NEST"]),
        ({"dtype": "u4_align8", "dims": (63, 16)}, ["PACKED_DIM0"]),
        ({"dtype": "u4_align8", "dims": (126, 16), "box": (32, 4), "base_address": 16}, []),
        ({"oob_fill": "NAN"}, ["OOB_NAN"]),
    ],
)
def test_packed_types_as_documented(changes: dict[str, Any], documented: list[str]) -> None:
    fields: dict[str, Any] = {"dtype": "u4_align16", "dims": (128, 16), "strides_bytes": (64,), "box": (128, 4)}
    tm = TensorMap(**{**fields, **changes})
    assert ids(tm, "documented", "sm_100a") == documented


def test_no_evidence_is_said() -> None:
    for target in ("sm_100", "sm_100a", "sm_103a"):
        with pytest.raises(TargetRuleError, match="no measured evidence") as caught:
            violations(make(), target=target)
        assert caught.value.rule == "NO_EVIDENCE"
        for call in (lambda: tensormap.encode(make(), target), lambda: tensormap.decode(bytes(128), target)):  # noqa: B023
            with pytest.raises(TargetRuleError, match="LA306"):
                call()


def test_bad_arguments() -> None:
    with pytest.raises(MalformedError, match=r"LA340.*'sm_70'"):
        violations(make(), target="sm_70")
    with pytest.raises(MalformedError, match="LA305"):
        violations(make(), evidence="hearsay")
    with pytest.raises(MalformedError, match="LA300"):
        violations("map")  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="LA340"):
        lookup(["sm_90a"])  # type: ignore[arg-type]


def test_the_table() -> None:
    assert set(tensormap.RULE_IDS_ENFORCED) <= set(tensormap.RULES)
    for name, rule in tensormap.RULES.items():
        assert name == rule.id
        assert rule.statement.endswith(".")
        assert rule.documented == bool(rule.sources)
        assert [entry.driver for entry in rule.on("NVIDIA H200")] == ["580.159.04"]
    assert tensormap.RULES["STRIDE_NEST"].evidence[0].finding == "not enforced"
    assert not tensormap.RULES["BOX_SMEM"].documented
    for name in ("STRIDE_NEST", "INTERLEAVE32", "PACKED_DIM0", "PACKED_BOX0", "PACKED_SWIZZLE"):
        assert name not in tensormap.RULE_IDS_ENFORCED


def test_encode_reports_every_violation() -> None:
    tm = make(base_address=4, box=(64, 0, 300), strides_bytes=(8, 1 << 41))
    with pytest.raises(tensormap.RefusedMapError) as caught:
        tensormap.encode(tm)
    error = caught.value
    assert isinstance(error, TargetRuleError)
    assert [entry.rule for entry in error.violations] == [
        "BASE_ALIGN",
        "STRIDE_ALIGN",
        "STRIDE_RANGE",
        "BOX_RANGE",
        "BOX_RANGE",
    ]
    assert error.rule == "BASE_ALIGN"
    for entry in error.violations:
        assert entry.message in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (again.violations, again.rule, str(again)) == (error.violations, error.rule, str(error))

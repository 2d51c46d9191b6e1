"""Validation: right plans agree on every backend, every wrong plan is refuted with the first difference."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import layoutalg as la
from layoutalg.codegen import hostsim, store_memory
from layoutalg.codegen.launch import device
from layoutalg.codegen.validation import default_origins, validate
from layoutalg.ground.errors import BudgetError, MalformedError, MissingExtraError
from layoutalg.proofs.tensormap import Issue, TensorMapPlan
from layoutalg.synth.tensormap import synthesize_tensormap
from layoutalg.targets.nvidia import tensormap

TILES = json.loads((Path(__file__).parents[2] / "layoutalg/cli/data/real_tiles.json").read_text())["tiles"]
BACKENDS = [
    "simulator",
    pytest.param("host", marks=pytest.mark.skipif(not hostsim.compiler(), reason="no C++ compiler")),
]


def problem(direction: str = "load", dtype: str = "bf16") -> dict[str, object]:
    return {
        "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": direction,
        "global": {"shape": [200, 96], "stride": [96, 1], "dtype": dtype, "base_align_bytes": 256},
        "tile": [32, 32], "smem": {"modes": [[[32, 32]], [[32, 1]]], "swizzle": "64B"},
    }  # fmt: skip


def plan(direction: str = "load", dtype: str = "bf16") -> TensorMapPlan:
    return synthesize_tensormap(problem(direction, dtype))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("direction", ["load", "store"])
def test_a_right_plan_agrees(direction: str, backend: str) -> None:
    report = validate(plan(direction), device=backend)
    assert report, str(report)
    assert report.backend == backend
    assert report.difference is None
    assert len(report.origins) > 8
    assert report.compared_bytes >= 2048 * len(report.origins)
    assert str(report).startswith("agrees: ")
    assert json.loads(json.dumps(report.to_json()))["agrees"] is True


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["tf32", "f32_ftz", "u8", "f64"])
def test_types_whose_copies_may_change_values(dtype: str, backend: str) -> None:
    changed = problem("load", dtype)
    size = tensormap.element_bytes(dtype)
    changed["tile"] = [32, 64 // size]
    changed["smem"] = {"modes": [[[32, 64 // size]], [[64 // size, 1]]], "swizzle": "64B"}
    assert validate(synthesize_tensormap(changed), device=backend)


def remade(right: TensorMapPlan, **fields: object) -> TensorMapPlan:
    """The plan with a tensor map of other fields, and that map's own bytes."""
    kept = {name: getattr(right.tensor_map, name) for name in tensormap.TensorMap.__slots__}
    changed = tensormap.TensorMap(**{**kept, **fields})
    return right.with_changes(tensor_map=changed, raw=tensormap.encode(changed))


def moved(right: TensorMapPlan, by: int, offset: int) -> TensorMapPlan:
    row, column = right.issues[0].coords
    return right.with_changes(issues=(Issue((row, column + by), offset),))


def narrower(right: TensorMapPlan) -> TensorMapPlan:
    return remade(right, strides_bytes=(right.tensor_map.strides_bytes[0] - 16,))


WRONG: dict[str, Callable[[TensorMapPlan], TensorMapPlan]] = {
    "coordinate": lambda right: moved(right, 1, right.issues[0].smem_offset_bytes),
    "place": lambda right: moved(right, 0, 128),
    "origin": lambda right: right.with_changes(origin_map=(right.origin_map[0], ())),
    "swizzle": lambda right: remade(right, swizzle="NONE"),
    "stride": narrower,
    "bounds": lambda right: remade(right, dims=(right.tensor_map.dims[0], right.tensor_map.dims[1] - 1)),
    "bytes": lambda right: right.with_changes(raw=bytes(128)),
    "bytes of another map": lambda right: right.with_changes(raw=narrower(right).raw),
    "class": lambda right: right.with_changes(oob="weak" if right.oob == "exact" else "exact"),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("direction", ["load", "store"])
@pytest.mark.parametrize("claim", WRONG)
def test_a_wrong_plan_is_refuted(claim: str, direction: str, backend: str) -> None:
    report = validate(WRONG[claim](plan(direction)), device=backend)
    assert not report
    assert report.difference is not None
    assert report.difference.origin in report.origins
    assert str(report).startswith(f"refuted on {backend}: origin ")
    assert json.loads(json.dumps(report.to_json()))["difference"]["reason"]


def test_the_first_difference_is_named() -> None:
    report = validate(WRONG["coordinate"](plan()), [(0, 0)], device="simulator")
    assert report.difference is not None
    assert report.difference.coordinate == (0, 0)
    assert report.difference.address == 0
    assert report.difference.got != report.difference.expected


@pytest.mark.skipif(not hostsim.compiler(), reason="no C++ compiler")
@pytest.mark.parametrize("expected", [0, 16, 2032, 2064, 4096])
def test_a_wrong_byte_count_is_a_report_not_a_hang(expected: int) -> None:
    report = validate(plan().with_changes(expect_tx_bytes=expected), device="host")
    assert report.difference is not None
    assert report.difference.got is None
    assert "did not arrive" in report.difference.reason or "in flight" in report.difference.reason


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "changes",
    [
        {"expect_tx_bytes": -1}, {"expect_tx_bytes": 0}, {"expect_tx_bytes": 2**21}, {"expect_tx_bytes": 2**40},
        {"smem_align_bytes": -5}, {"smem_align_bytes": 0}, {"smem_align_bytes": 129}, {"smem_align_bytes": 64},
        {"smem_align_bytes": 2**20},
        {"smem_bytes": 0}, {"smem_bytes": -1}, {"smem_bytes": 128}, {"smem_bytes": 2**62},
        {"issues": (Issue((0, 0), 2**62),)}, {"issues": (Issue((0, 0), -128),)}, {"issues": (Issue((2**32, 0), 0),)},
        {"issues": ()},
    ],
    ids=str,
)  # fmt: skip
def test_nonsense_is_not_validated(changes: dict[str, object], backend: str) -> None:
    """No number is cut to 32 bits on its way into a kernel, or believed because nothing reads it."""
    try:
        wrong = plan().with_changes(**changes)
    except MalformedError:
        return  # refused before anything runs
    assert not validate(wrong, device=backend)


def test_an_alignment_below_the_swizzle_period_shows() -> None:
    """The tile base has the stated alignment and no more, so that a swizzle which needs more goes wrong."""
    wide = problem()
    wide["tile"], wide["smem"] = [32, 64], {"modes": [[[32, 64]], [[64, 1]]], "swizzle": "128B"}
    right = synthesize_tensormap(wide)
    assert right.smem_align_bytes == 1024
    report = validate(right.with_changes(smem_align_bytes=128), [(0, 0)], device="simulator")
    assert report.difference is not None
    assert report.difference.got is not None


def test_much_memory_is_refused_before_it_is_taken() -> None:
    with pytest.raises(BudgetError, match="LA002"):
        validate(plan().with_changes(smem_bytes=2**31 - 1), device="simulator")


def test_default_origins_follow_the_class() -> None:
    exact = plan()
    assert exact.oob == "exact"
    reach = {"below": False, "beyond": False}
    for row, _ in default_origins(exact):
        reach["below"] |= row < 0
        reach["beyond"] |= row >= 200
    assert all(reach.values())
    assert all(0 <= row < 200 and 0 <= column < 96 for row, column in default_origins(exact.with_changes(oob="weak")))
    assert all(0 <= row <= 168 and column <= 64 for row, column in default_origins(exact.with_changes(oob="lost")))
    assert all(min(origin) >= 0 for origin in default_origins(plan("store")))


@pytest.mark.skipif(device() is not None, reason="a GPU is present")
def test_without_a_gpu() -> None:
    report = validate(plan(), [(0, 0)])
    assert report.backend == "simulator"
    assert "no GPU is present" in report.note
    assert report.device is None
    with pytest.raises(MissingExtraError, match="LA532"):
        validate(plan(), device="cuda")


def test_bad_arguments() -> None:
    for seed in (-1, 1.5, "3", None, True):
        with pytest.raises(MalformedError, match="LA544"):
            validate(plan(), device="simulator", seed=seed)  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="LA540"):
        validate(plan(), device="gpu")
    with pytest.raises(MalformedError, match="LA535"):
        validate(plan(), [(0,)], device="simulator")
    with pytest.raises(MalformedError, match="LA535"):
        validate(plan(), [(2**31, 0)], device="simulator")


@pytest.mark.nightly(one_of=4)
@pytest.mark.parametrize(
    "tile", [tile for tile in TILES if tile["expect"] == "admissible"], ids=lambda tile: tile["name"]
)
def test_plans_of_real_tiles_agree_on_the_simulator(tile: dict[str, object]) -> None:
    found = synthesize_tensormap(tile["problem"])  # type: ignore[arg-type]
    report = validate(found, default_origins(found)[:6], device="simulator")
    assert report, str(report)


def test_origins_and_images_of_other_kinds_are_refused():
    plan = la.tensormap(((64, 64), None, "bf16"), (8, 64), direction="store")
    with pytest.raises(MalformedError, match="origins"):
        validate(plan, origins=5)
    with pytest.raises(MalformedError, match="image"):
        store_memory(plan, None, np.zeros(8192, np.uint8), (0, 0))

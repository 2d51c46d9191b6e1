"""Tensor maps of targets that no device represents: probes obey the documents, refusals hold by them alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.cli import main
from layoutalg.ground.errors import BudgetError
from layoutalg.ground.verdict import Proved
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProbe, check
from layoutalg.targets.nvidia.tensormap import TensorMap
from layoutalg.targets.registry import NVIDIA
from layoutalg.testing import assert_admissible

TARGETS = [name for name in NVIDIA if not name.startswith("sm_90")]
ROOM = {name: (99 if name.startswith("sm_12") else 227) * 1024 for name in TARGETS}
SIZES = {"u8": 1, "bf16": 2, "f32": 4, "f64": 8}
SPANS = {"NONE": 256 * 8, "32B": 32, "64B": 64, "128B": 128}


@st.composite
def questions(draw: st.DrawFn) -> dict[str, Any]:
    """Tiles of matrices whose pitch, base, width and place in shared memory may each break a documented rule."""
    dtype = draw(st.sampled_from(sorted(SIZES)))
    columns = draw(st.sampled_from((24, 60, 100, 128, 250, 256, 1000)))
    pitch = draw(st.sampled_from((0, columns, columns, columns + 1, columns + 8, columns + 64)))
    tile = draw(st.sampled_from((1, 8, 64, 300))), draw(st.sampled_from((4, 8, 16, 32, 64, 100)))
    tensor = la.Tensor(
        (draw(st.sampled_from((1, 40, 1000))), columns), (pitch, 1), dtype, draw(st.sampled_from((8, 16, 256)))
    )
    smem = draw(st.sampled_from((f"({tile[0]},{tile[1]}):({tile[1]},1)", f"({tile[0]},{tile[1]}):(1,{tile[0]})", None)))
    options = {} if smem is None else {"swizzle": draw(st.sampled_from(sorted(SPANS)))}
    return {
        "tensor": tensor, "tile": tile, "smem": smem, "direction": draw(st.sampled_from(("load", "store"))),
        "documented_only": draw(st.booleans()), **options,
    }  # fmt: skip


def asked(question: dict[str, Any], target: str) -> Any:
    """The plan or probe, the error that refuses, or None where it is undecided."""
    try:
        return la.tensormap(**question, target=target, repair=False)
    except la.InadmissibleError as error:
        return error
    except BudgetError as error:
        assert error.diagnostic.code in ("LA410", "LA411")
        return None


def obeys(tm: TensorMap) -> bool:
    """What the driver API and PTX state of tiled maps of plain types: numbers, alignments, span."""
    row = tm.box[0] * (SIZES | {"u16": 2, "u32": 4, "u64": 8})[tm.dtype]
    return (
        1 <= len(tm.dims) <= 5
        and all(1 <= extent <= 2**31 for extent in tm.dims)
        and all(0 <= pitch < 2**40 and pitch % 16 == 0 for pitch in tm.strides_bytes)
        and all(1 <= extent <= 256 for extent in tm.box)
        and row % 16 == 0 == tm.base_address % 16
        and row <= SPANS[tm.swizzle]
        and all(1 <= step <= 8 for step in tm.element_strides)
    )


@settings(max_examples=60, deadline=None)
@given(questions(), st.sampled_from(TARGETS))
def test_probes_obey_documents_and_refusals_need_nothing_else(question: dict[str, Any], target: str) -> None:
    found, measured = asked(question, target), asked(question, "sm_90a")
    if isinstance(found, TensorMapProbe):
        plan = found.plan
        assert obeys(plan.tensor_map)
        assert isinstance(check(plan), Proved)
        assert plan.smem_bytes <= ROOM[target]
        assert (found.problem.arch, found.problem.with_changes(arch="sm_90a")) == (target, plan.problem)
        assert isinstance(measured, TensorMapPlan)
        assert not plan.undocumented or ", ".join(plan.undocumented) in found.reason
        assert found.to_json()["verdict"] == found.verdict == "probe"
        with pytest.raises(ValueError, match="no truth value"):
            bool(found)
    elif found is not None:  # refused: sm_90a refuses as well, or has more shared memory
        rules = {entry.rule for entry in found.violations}
        assert rules <= {"SMEM_CAP"} or isinstance(measured, la.InadmissibleError)
        assert not rules & {"ARCH_UNMEASURED", "ARCH_ATOM", "STORE_CHUNK", "NO_BOX", "OOB_CLASS"}
        if "SMEM_CAP" in rules:
            rows, columns = question["tile"]
            assert rows * columns * SIZES[question["tensor"].dtype] > ROOM[target]


SWIZZLED = "Sw<3,3,3> o 0 o (64,64):(64,1)"
TENSOR = la.Tensor((1024, 512))


@pytest.mark.parametrize("target", TARGETS)
def test_what_documents_say_of_later_targets(target: str) -> None:
    probe = la.tensormap(TENSOR, (64, 64), SWIZZLED, target=target)
    assert probe.plan == la.tensormap(TENSOR, (64, 64), SWIZZLED)
    assert str(probe).split("\n")[:2] == [
        "probe         1 issue of box [64, 64] bf16, swizzle 128B",
        f"  reason      no {target} device was measured; documents allow the map",
    ]
    assert "bytes  " not in str(probe)  # those of sm_90a
    for tensor, rule in (
        (la.Tensor((1024, 500)), "STRIDE_ALIGN"),
        (la.Tensor((1024, 512), None, "bf16", 8), "BASE_ALIGN"),
    ):
        with pytest.raises(la.InadmissibleError, match=rule):
            la.tensormap(tensor, (64, 64), SWIZZLED, target=target)
    wide = la.Tensor((1024, 1024), dtype="f32"), (128, 256)  # 128 KiB
    if target.startswith("sm_12"):
        with pytest.raises(la.InadmissibleError, match="a block has 101376 bytes"):
            la.tensormap(*wide, target=target)
    else:
        assert la.tensormap(*wide, target=target).verdict == "probe"
    for options, rule in (
        ({"swizzle": "128B_ATOM_32B"}, "ARCH_ATOM"),
        ({"direction": "store", "bounds": (100, 500)}, "STORE_CHUNK"),
    ):
        with pytest.raises(BudgetError, match=f"LA411.*\n.*\n.*refuses the tile by {rule}, which need not hold there"):
            la.tensormap(TENSOR, (64, 64), target=target, **options)


def test_a_map_outside_the_documents_is_named() -> None:
    overlapping = {"tensor": la.Tensor((100, 64), (8, 1)), "tile": (64, 64), "smem": SWIZZLED, "oob_required": "exact"}
    probe = la.tensormap(**overlapping, target="sm_100a")
    assert probe.reason.endswith("sm_90a accepts the map, which breaks documented rules (STRIDE_NEST)")
    with pytest.raises(la.InadmissibleError, match="STRIDE_NEST"):
        la.tensormap(**overlapping, target="sm_100a", documented_only=True)


def test_a_probe_is_no_proof_for_commands_and_assertions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    probe = la.tensormap(TENSOR, (64, 64), SWIZZLED, target="sm_100a")
    asked = tmp_path / "problem.json"
    asked.write_text(json.dumps(probe.problem.to_json()))
    assert main(["synth", "tensormap", str(asked), "--json"]) == 2
    assert json.loads(capsys.readouterr().out) == probe.to_json()
    with pytest.raises(AssertionError, match="no sm_100a device was measured"):
        assert_admissible(TENSOR, (64, 64), SWIZZLED, target="sm_100a")
    with pytest.raises(la.MalformedError, match="must be of the same problem"):
        TensorMapProbe(probe.problem.with_changes(oob_required="exact"), probe.reason, probe.plan)


def test_a_probe_is_explained_as_one() -> None:
    probe = la.tensormap(((1024, 512), None, "bf16"), (64, 64), target="sm_100a")
    assert isinstance(probe, TensorMapProbe)
    for subject in (probe, probe.problem):
        told = la.explain(subject)
        assert told.facts[0] == ("probe", tuple(str(probe).split("\n")))
        assert told.facts[1][0] == "check on sm_90a"
        assert told.facts[1][1][0].startswith("proved")
    assert la.explain(la.Tensor((1024, 512)), target="sm_100a")["TMA"]["verdict"] == "probe"  # type: ignore[index]

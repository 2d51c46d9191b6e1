"""Every public dataclass of proofs and targets: whatever its constructor is given, a valid value or a LayoutError."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import json
import pickle
import pkgutil
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from layoutalg import proofs, synth, targets
from layoutalg.errors import LayoutError
from layoutalg.f2 import LinearLayout
from layoutalg.proofs import wgmma as wgmma_proofs
from layoutalg.proofs.handoff import OperandView, operand_view
from layoutalg.proofs.tensormap import Issue, TensorMapPlan, TensorMapProblem, check
from layoutalg.proofs.tensormap.bounds import Boxes, requested_boxes
from layoutalg.proofs.tensormap.walk import Walk, walk
from layoutalg.proofs.wgmma import InstructionTile, OperandPlan, OperandProblem
from layoutalg.proofs.wgmma.reading import Fields, fields_of
from layoutalg.synth import synthesize_tensormap
from layoutalg.synth.wgmma import canonical_operand, synthesize_wgmma
from layoutalg.targets.layouts.amd_instructions import MFMA, MatrixInstruction
from layoutalg.targets.layouts.nvidia_instructions import MMA, MmaInstruction
from layoutalg.targets.layouts.padding import PaddedShared, padded_shared
from layoutalg.targets.layouts.tile import Tile
from layoutalg.targets.model import Evidence, Rule, Source, Violation
from layoutalg.targets.nvidia import tensormap
from layoutalg.targets.nvidia import wgmma as wgmma_facts
from layoutalg.targets.registry import H200, Device, Target, lookup

EXAMPLE = json.loads((Path(__file__).parents[1] / "data" / "examples" / "problem.json").read_text(encoding="utf-8"))
PLAN = synthesize_tensormap(EXAMPLE)
OPERAND = synthesize_wgmma(canonical_operand("A", (64, 32)))
RULE = tensormap.RULES["BOX_RANGE"]
DESCRIPTOR = wgmma_facts.MatrixDescriptor(0, 16, 1024, 0, "128B")

VALUES: dict[type, object] = {
    TensorMapProblem: PLAN.problem,
    TensorMapPlan: PLAN,
    Issue: PLAN.issues[0],
    Walk: walk(PLAN),
    Boxes: requested_boxes(PLAN, walk(PLAN)),
    OperandProblem: OPERAND.problem,
    OperandPlan: OPERAND,
    InstructionTile: OPERAND.tiles[0],
    Fields: fields_of(OPERAND.tiles[0].encoded),
    OperandView: operand_view(PLAN.problem, "A", "K"),
    tensormap.TensorMap: PLAN.tensor_map,
    tensormap.DType: tensormap.DTYPES["bf16"],
    tensormap.Field: tensormap.FIELDS[2],
    wgmma_facts.MatrixDescriptor: DESCRIPTOR,
    wgmma_facts.ReadPattern: wgmma_facts.read_pattern("K", "128B"),
    Source: RULE.sources[0],
    Evidence: RULE.evidence[0],
    Rule: RULE,
    Violation: Violation("BOX_RANGE", "too long", "box", 1),
    Device: H200,
    Target: lookup("sm_90a"),
    MmaInstruction: next(iter(MMA.values())),
    MatrixInstruction: next(iter(MFMA["gfx942"].values())),
    PaddedShared: padded_shared((8,), [(2, 1), (4, 2)], order=(0,)),
    Tile: Tile.start((1, 0)).grow("register", 1, 2).grow("lane", 0, 4),
}
"""A valid value of every public dataclass."""


def public_dataclasses(package) -> Iterator[type]:
    """Dataclasses of a package whose names and modules are public."""
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if any(part.startswith("_") for part in found.name.split(".")):
            continue
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            own = isinstance(value, type) and value.__module__ == module.__name__ and not name.startswith("_")
            if own and dataclasses.is_dataclass(value):
                yield value


def test_every_public_dataclass_is_here():
    found = {cls for package in (proofs, targets) for cls in public_dataclasses(package)}
    assert found == set(VALUES)


def test_what_the_finder_hands_out_is_a_value_of_proofs():
    """The finder's own dataclasses are its working values: nothing that is exported takes or returns one."""
    exported = {getattr(module, name) for module in (synth, synth.tensormap) for name in module.__all__}
    assert not exported & set(public_dataclasses(synth))


class Odd:
    """A value of no kind, which cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("not shown")


LOOP: list[object] = []
LOOP.append(LOOP)

WRONG: tuple[object, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 255, 2**31, 2**40, 2**63, -(2**63) - 1, 2**64, 10**5000, -(10**5000),
    1.0, -0.5, float("nan"), float("inf"), 1j, "", "x", "NONE", "128B", "K", "\ud800", "a" * 10**5, b"", bytes(128),
    bytearray(128), (), [], {}, set(), (1,), (1, 2), [1, 2, 3], ((1, 2),), (((1, 2),), ((3, 4),)), [[[]]], [None],
    ("x", "y"), {"a": 1}, {1: 2}, range(3), LOOP, Odd(), object(), int, len, NotImplemented, Ellipsis,
    np.int64(3), np.int8(-3), np.uint64(2**64 - 1), np.float32(2.0), np.bool_(True), np.array(3), np.array([1, 2]),
    np.array([[1, 2], [3, 4]]), np.array([]), np.array(["a"]), np.array([1.5]), np.array([2**63], dtype=np.uint64),
    np.array([None, 1], dtype=object), np.zeros((2, 2, 2, 2), dtype=np.int8), np.str_("bf16"),
    PLAN, PLAN.problem, PLAN.tensor_map, PLAN.issues, PLAN.origin_map, OPERAND, OPERAND.tiles, DESCRIPTOR, H200,
    (H200,), (Odd(),), iter(()), (entry for entry in (1, 2)), LinearLayout.from_bases({"x": [(1,)]}, {"y": 2}),
)  # fmt: skip


def is_valid(value: object) -> None:
    """A value that came through is one: equal to itself rebuilt, copied and pickled, and its methods work."""
    parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    arrays = any(isinstance(part, (np.ndarray, dict)) or "ndarray" in str(part) for part in parts.values())
    if not arrays and "certificate" not in parts:
        hash(value)
    for twin in (type(value)(**parts), dataclasses.replace(value), copy.copy(value), copy.deepcopy(value)):
        assert isinstance(twin, type(value))
        assert arrays or twin == value
    assert arrays or pickle.loads(pickle.dumps(value)) == value
    if hasattr(value, "to_json"):
        written = json.loads(json.dumps(value.to_json()))
        if hasattr(value, "from_json"):
            assert type(value).from_json(written) == value
    if isinstance(value, TensorMapPlan):
        check(value)
    if isinstance(value, OperandPlan):
        wgmma_proofs.check(value)


@pytest.mark.parametrize("cls", VALUES, ids=lambda cls: cls.__name__)
def test_every_field_takes_its_kind_or_raises_a_layout_error(cls):
    valid = VALUES[cls]
    is_valid(valid)
    parts = {field.name: getattr(valid, field.name) for field in dataclasses.fields(valid)}
    refused = 0
    for name in parts:
        for wrong in WRONG:
            try:
                made = cls(**(parts | {name: wrong}))
            except LayoutError as error:
                refused += 1
                assert len(str(error)) < 2000
                json.dumps(error.diagnostic.to_json())
                continue
            if not isinstance(wrong, (dict, set)):
                is_valid(made)
    assert refused >= len(parts) * len(WRONG) // 3


@pytest.mark.parametrize("cls", VALUES, ids=lambda cls: cls.__name__)
def test_random_mixtures_of_values_raise_layout_errors_alone(cls):
    rng = random.Random(cls.__name__)
    valid = VALUES[cls]
    names = [field.name for field in dataclasses.fields(valid)]
    pool = [getattr(value, field.name) for value in VALUES.values() for field in dataclasses.fields(value)]
    for _ in range(300):
        changes = {
            name: rng.choice(pool if rng.random() < 0.7 else WRONG)
            for name in rng.sample(names, rng.randint(1, len(names)))
        }
        try:
            made = dataclasses.replace(valid, **changes)
        except LayoutError:
            continue
        copy.copy(made)


@pytest.mark.parametrize("cls", [cls for cls in VALUES if hasattr(cls, "with_changes")], ids=lambda cls: cls.__name__)
def test_changes_name_fields(cls):
    with pytest.raises(LayoutError, match="has the fields"):
        VALUES[cls].with_changes(colour="red")

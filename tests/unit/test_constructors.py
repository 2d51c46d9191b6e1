"""Every public dataclass of proofs and targets: whatever its constructor is given, a valid value or a LayoutError."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import importlib
import json
import pickle
import pkgutil
import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layoutalg import proofs, synth, targets
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import LayoutError
from layoutalg.pipeline import Barrier, Buffer, Op, Pipeline, Role, Transfer
from layoutalg.proofs import wgmma as wgmma_proofs
from layoutalg.proofs.bulk import BulkPlan
from layoutalg.proofs.certify import Certificate
from layoutalg.proofs.conversion import Alternative, ConversionCost, ConversionPlan, Held
from layoutalg.proofs.conversion_steps import Read, SharedAccess, Through
from layoutalg.proofs.dtypes import element_type
from layoutalg.proofs.exchange import Choose, Exchange, Move, Rename, Take
from layoutalg.proofs.handoff import operand_view
from layoutalg.proofs.im2col import ConvolutionProblem
from layoutalg.proofs.indirect import Candidate as Candidate_
from layoutalg.proofs.indirect import (
    Choice,
    Labels,
    Lifetimes,
    Paged,
    PagedBatch,
    PageTable,
    Permutation,
    Routing,
    Runs,
)
from layoutalg.proofs.listed_access import ListedAccess
from layoutalg.proofs.movement import term
from layoutalg.proofs.movement.chains import Step
from layoutalg.proofs.pipeline.ops import OPS
from layoutalg.proofs.ragged_clip import ClipPlan
from layoutalg.proofs.smem import shared_tile
from layoutalg.proofs.symbolic import SymbolicProblem
from layoutalg.proofs.symbolic.dispatch import Branch, Dispatch
from layoutalg.proofs.symbolic.guard import Guard
from layoutalg.proofs.symbolic.obligations import obligations
from layoutalg.proofs.symbolic.residues import Axis, Residues
from layoutalg.proofs.tcgen05 import Tcgen05Tile, TmemPlan
from layoutalg.proofs.tensor import Tensor
from layoutalg.proofs.tensormap import ListedProblem, TensorMapPlan, TensorMapProbe, check
from layoutalg.proofs.tensormap.bounds import requested_boxes
from layoutalg.proofs.tensormap.walk import walk
from layoutalg.proofs.wgmma import OperandPlan
from layoutalg.proofs.wgmma.reading import fields_of
from layoutalg.synth import (
    admissible,
    factorise,
    gather,
    joint,
    synthesize_ragged,
    synthesize_symbolic,
    synthesize_tensormap,
)
from layoutalg.synth.exchange import exchanges
from layoutalg.synth.im2col import synthesize_im2col
from layoutalg.synth.paddings import padding
from layoutalg.synth.schedule import Candidate, gemm_work
from layoutalg.synth.schedule import candidates as schedule_candidates
from layoutalg.synth.schedule import work as schedule_work
from layoutalg.synth.swizzles import swizzle
from layoutalg.synth.swizzles.classes import universal_swizzle
from layoutalg.synth.wgmma import canonical_operand, synthesize_wgmma
from layoutalg.targets import global_memory
from layoutalg.targets.banks import AMD_RULES, Access, bank_model
from layoutalg.targets.dumps import Reading
from layoutalg.targets.instruction_costs import instruction_costs
from layoutalg.targets.layouts.amd_instructions import MFMA
from layoutalg.targets.layouts.nvidia_instructions import MMA, MMA_SP
from layoutalg.targets.layouts.padding import padded_shared
from layoutalg.targets.layouts.tile import Tile
from layoutalg.targets.memory_costs import memory_costs
from layoutalg.targets.model import Violation
from layoutalg.targets.nvidia import im2col, tcgen05, tensormap
from layoutalg.targets.nvidia import wgmma as wgmma_facts
from layoutalg.targets.nvidia.accesses import access_form
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap.versions import accepted_since
from layoutalg.targets.pipeline_costs import pipeline_costs
from layoutalg.targets.probes import ClipProbe
from layoutalg.targets.registry import H200, lookup
from layoutalg.targets.roofs import roofs
from layoutalg.targets.target_model import CONSUMERS, LIMITS, model_of

PIPELINE = Pipeline(
    2,
    (("full", Barrier(1, 2)),),
    (("A", Buffer(2, 64)),),
    (Role("load", (), (Op("arrive", bar="full", n=1),), ()),),
)
MOVED = term("crop", term("input", name="A", shape=(4, 6), dtype="f32"), start=(0, 1), extents=(4, 4))
WORK = gemm_work(128, 128, 64)
EXAMPLE = json.loads((Path(__file__).parents[1] / "data" / "examples" / "problem.json").read_text(encoding="utf-8"))
PLAN = synthesize_tensormap(EXAMPLE)
_BASES = {"register": [(1,), (2,)], "lane": [(4 << bit,) for bit in range(5)]}
UNIVERSAL = universal_swizzle(8, 128, "columns")
PADDING = padding((32, 32), "columns", element_bits=32)
SWIZZLE = swizzle([LinearLayout.from_bases(_BASES, {"tile": 128})])
OPERAND = synthesize_wgmma(canonical_operand("A", (64, 32)))
RULE = tensormap.RULES["BOX_RANGE"]
NAMED = synthesize_symbolic(SymbolicProblem.of(Tensor(("M", "K"), assume=("K % 8 == 0",)), (64, 64)))
RAGGED = synthesize_ragged(Tensor((64, 64)), (16, 64), strategy="overfetch")
DESCRIPTOR = wgmma_facts.MatrixDescriptor(0, 16, 1024, 0, "128B")
FACTORED = factorise(LinearLayout.from_bases({"register": [(8,)], "lane": [(1,), (2,), (4,)]}, {"offset": 16}))

ACCESS = SharedAccess("ld.shared.b32", 1, (4, 8, 16, 32, 64), (0,), 0, 1)
HELD = Held(
    LinearLayout((("register", 0), ("lane", 5), ("warp", 0)), (("element", 5),), (1, 2, 4, 8, 16)), None, 1, 32, 1
)
FREE = ConversionCost(0, 0, 0, 0, 0, 0, 0.0)
GATHERED = gather("(32,2):(2,1)", "(32,2):(2,1)", 0, 32, shape=(64,), mechanism="shared")
EXCHANGED = exchanges(np.array([[[0, 2], [1, 3]]]))

CONVOLVED = synthesize_im2col(ConvolutionProblem(Tensor((2, 8, 8, 64)), (3, 3), 64, 64, padding=(1, 1)))

LIFETIMES = Lifetimes.of([("s", "allocate", "x"), ("s", "free", "x")])

VALUES: dict[type, Any] = {
    type(value): value
    for value in (
        CONVOLVED.problem,
        CONVOLVED,
        CONVOLVED.issues[0],
        CONVOLVED.tensor_map,
        im2col.Im2colWideMap("f16", (8, 4, 2), (16, 64), -1, 0, 8, 3),
        PLAN.problem,
        ListedProblem.listed(Tensor((2, 8), None, "u64"), (2, 8), [*range(8, 16), *range(8)]),
        PLAN,
        TensorMapProbe(PLAN.problem.with_changes(arch="sm_100a"), "no device", PLAN),
        PLAN.issues[0],
        walk(PLAN),
        requested_boxes(PLAN, walk(PLAN)),
        Tensor((64, 32), None, "f16"),
        NAMED.problem,
        RAGGED,
        RAGGED.rules[0],
        RAGGED.copies([20])[0],
        RAGGED.copies([20]),
        RAGGED.over_read,
        ClipPlan.of(PLAN, 0),
        ClipProbe("H200", "580", "2026-01-01", ("read_write load",), (1, 2)),
        NAMED,
        Branch((), NAMED),
        Dispatch(Guard(("K % 8 == 0",)), (Branch((), NAMED),)),
        NAMED.tensor_map,
        NAMED.patch[0],
        NAMED.guard,
        obligations(NAMED, NAMED.specialise(M=64, K=64)),
        Axis(64, Fraction(1), Fraction(0)),
        Residues(2, frozenset({0}), frozenset({0}), frozenset({0}), frozenset({0})),
        element_type("e4m3"),
        SWIZZLE.accesses[0],
        SWIZZLE.served[0],
        SWIZZLE,
        HELD,
        FREE,
        Alternative("nothing", "all is there", FREE),
        ConversionPlan(HELD, HELD, 32, "sm_90a", "nothing", (), FREE, "all is there", ()),
        Take((1, 0), 2, 2),
        Read((1, 2), (0, 1), (0, 1)),
        ACCESS,
        ListedAccess("ld.shared.b32", 1, (tuple(range(0, 128, 4)),), 1),
        Through(128, "warp", 1, ACCESS, ACCESS),
        GATHERED,
        GATHERED.stage,
        instruction_costs("sm_90a"),
        PADDING.accesses[0],
        PADDING,
        UNIVERSAL.members[0],
        UNIVERSAL,
        bank_model("gfx942", "ds_read_b128"),
        bank_model("sm_90a", "ld.shared.b32").phases(list(range(0, 128, 4)))[0],
        Access("load", 32),
        global_memory.instruction("ld.global.v4", "sm_90a"),
        next(iter(AMD_RULES.values())),
        shared_tile("Sw<3,3,3> o 0 o (8,64):(64,1)", None, 2),
        OPERAND.problem,
        OPERAND,
        OPERAND.tiles[0],
        fields_of(OPERAND.tiles[0].encoded),
        operand_view(PLAN.problem, "A", "K"),
        SWIZZLE_TABLE["128B"],
        PLAN.tensor_map,
        tensormap.DTYPES["bf16"],
        tensormap.FIELDS[2],
        tensormap.Trouble("RESERVED", "reserved", "bits", True, False),
        tensormap.Diagnosis((), ()),
        Reading(bytes(4), "digits"),
        DESCRIPTOR,
        tcgen05.MatrixDescriptor(0, 16, 1024, 0, "128B"),
        tcgen05.InstructionDescriptor("f16", 128, 256, "bf16", "bf16", "f32"),
        tcgen05.KINDS["mxf4"],
        tcgen05.read_pattern("K", "128B"),
        tcgen05.TmemAllocation(128),
        tcgen05.TmemUse().alloc(tcgen05.TmemAllocation(128), 0),
        tcgen05.TmemAccess("32x32b", 4, 1, 32),
        admissible("Sw<3,3,3> o 0 o (64,64):(64,1)", "tcgen05.A", "sm_100a").descriptor,
        Tcgen05Tile(0, 0, 1 << 46),
        admissible(tcgen05.scale_layout(128, 4), "tcgen05.scale", "sm_100a", "ue8m0").descriptor,
        TmemPlan("32x32b", ((0,),), (((0, 0),),), "D"),
        wgmma_facts.multiply("s8"),
        wgmma_facts.read_pattern("K", "128B"),
        RULE.sources[0],
        RULE.evidence[0],
        RULE,
        Violation("BOX_RANGE", "too long", "box", 1),
        H200,
        lookup("sm_90a"),
        LIMITS["sm_90a"]["lanes"],
        model_of("sm_80").consumer("tma"),
        CONSUMERS["tma"],
        model_of("gfx942"),
        accepted_since(tensormap.TensorMap("u8", (64,), (), (64,)))[0],
        next(iter(MMA.values())),
        next(iter(MMA_SP.values())),
        next(iter(MFMA["gfx942"].values())),
        Certificate("equality", {"f": "4:1", "g": "(2,2):(1,2)"}, {"by": "table"}),
        admissible("(64,32):(32,1)", "tma"),
        admissible("(64,32):(33,1)", "tma"),
        admissible("(64,32):(32,1)", "ldmatrix.x4").descriptor,
        access_form("ldmatrix.x4"),
        FACTORED,
        joint((64, 64), "bf16", ["wgmma.A"]),
        FACTORED.shuffles,
        EXCHANGED,
        Choose(1, 2),
        Exchange(1, 2, 1, 2),
        Move((1, 2), (2,), 1),
        Rename((2, 1), 1),
        EXCHANGED.before,
        EXCHANGED.cost,
        FACTORED.shuffles.rounds[0],
        padded_shared((8,), [(2, 1), (4, 2)], order=(0,)),
        BulkPlan("cp.async.bulk", 2, (2, 8), (64, 1), ((0, 0, 16), (128, 16, 16))),
        Tile.start((1, 0)).grow("register", 1, 2).grow("lane", 0, 4),
        PIPELINE,
        PIPELINE.barriers[0][1],
        PIPELINE.buffers[0][1],
        PIPELINE.roles[0],
        PIPELINE.roles[0].loop[0],
        pipeline_costs("sm_90a"),
        memory_costs("sm_90a"),
        Labels([0, 1, -1], 2),
        Permutation([1, 0], 2),
        Runs.of([3, 4, 9]),
        PageTable([1, 0], 2),
        Paged([1, 0], 16, 2, 64, 2),
        PagedBatch(Paged([1, 0], 16, 2, 64, 2), [0, 1, 2], [16, 3]),
        Routing([[0, 1]], 2, 4, (0, 1)),
        LIFETIMES,
        LIFETIMES.events[0],
        Candidate_("vector", 1.5, 64, 16, 1),
        Choice((Candidate_("vector", 1.5, 64, 16, 1),), "assumed"),
        roofs("sm_90a"),
        WORK,
        WORK.ops[1],
        WORK.dependences[0],
        WORK.rings[0],
        WORK.roles[0],
        Candidate("two copies", (("load", 2),)),
        OPS["mma"],
        Transfer(64, "tma_load", ctas=((0, 1),)),
        Transfer(64, "write").then(Transfer(64, "tma_store")),
        MOVED,
        MOVED.kind,
        MOVED.kind.layout,
        Step("view.nothing", (), True, MOVED),
    )
}
"""A valid value of every public dataclass."""


WRITTEN_HERE = (
    "layoutalg.proofs.laws",
    "layoutalg.proofs.certify.stages",
    "layoutalg.proofs.register_words",
    "layoutalg.targets.nvidia.tensormap.encoding",
    "layoutalg.proofs.pipeline",
)
"""Written by this library alone: laws, stages of certificates, mixed words, readings of maps, graphs of pipelines."""
GIVEN = tuple([f"layoutalg.proofs.pipeline.{name}" for name in ("document", "ops", "transfers")])
"""Of these, what callers write: documents of pipelines, their ops, and transfers."""


def public_dataclasses(package) -> Iterator[type]:
    """Dataclasses of a package whose names and modules are public."""
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if any(part.startswith("_") for part in found.name.split(".")) or (
            found.name.startswith(WRITTEN_HERE) and found.name not in GIVEN
        ):
            continue
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            own = isinstance(value, type) and value.__module__ == module.__name__ and not name.startswith("_")
            if own and dataclasses.is_dataclass(value):
                yield value


def test_every_public_dataclass_is_here():
    found = {cls for package in (proofs, targets) for cls in public_dataclasses(package)}
    for module in (schedule_work, schedule_candidates):
        found |= {cls for cls in vars(module).values() if getattr(cls, "__module__", "") == module.__name__
                  and dataclasses.is_dataclass(cls)}  # fmt: skip
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


MORE = (
    "A", "B", "MN", "sm_90a", "sm_100a", "bf16", "u8", "load", "store", "enforced", "documented", "ZERO", "NAN", (0, 0),
    (64, 64), 16, 32, 64, 128, [0] * 32, np.arange(32) * 4, np.zeros(2**14, np.uint8), np.arange(2**14, dtype=np.uint8),
    np.zeros(2**14), tensormap.batch.to_row(PLAN.tensor_map), [tensormap.batch.to_row(PLAN.tensor_map)], PLAN.raw,
    im2col.Im2colMap("f16", (8, 4, 2), (16, 64), (-1,), (0,), 8, 3),
    im2col.Im2colWideMap("f16", (8, 4, 2), (16, 64), -1, 0, 8, 3, swizzle="96B"),
    PLAN.tensor_map, tensormap.TensorMap("u8", (), (), ()), tensormap.TensorMap("tf32", (9, 9, 9), (5, 6), (3, 4, 5)),
    tensormap.TensorMap("u6_align16", (128,), (), (128,)), wgmma_facts.MatrixDescriptor(2**18 - 16, 0, 0, 7, "64B"),
)  # fmt: skip


@pytest.mark.parametrize("copy_tile", [tensormap.tile_load, tensormap.tile_store])
def test_the_model_of_the_copy_engine_takes_its_kinds_or_raises_a_layout_error(copy_tile):
    good = {
        "tm": tensormap.TensorMap("u8", (16, 4), (16,), (16, 2)),
        "coords": (0, 1),
        "memory": np.zeros(64, np.uint8),
        "image": np.zeros(256, np.uint8),
        "smem_offset_bytes": 128,
    }
    assert copy_tile(**good) == 32
    sizes = [np.zeros(n, np.uint8) for n in (0, 1, 31, 63)]
    kinds = [np.zeros(64, kind) for kind in (np.int8, np.uint16, np.float32, bool, object, "S1")]
    shapes = [np.zeros((8, 32), np.uint8), np.zeros(1024, np.uint8)[::2], np.broadcast_to(np.uint8(0), 256)]
    for name in good:
        for wrong in (*WRONG, *MORE, *sizes, *kinds, *shapes, (2**31, 0), (0, -(2**31) - 1), (8, 0), (0, 0, 0)):
            with contextlib.suppress(LayoutError):
                copy_tile(**(good | {name: wrong}))

"""``la.explain``: the same facts as text and as data, for values, texts, bytes and documents."""

from __future__ import annotations

import json
import pkgutil
import time
from dataclasses import replace

import numpy as np
import pytest

import layoutalg as la
from layoutalg.ask import explanation
from layoutalg.ask.tile_facts import ASKED
from layoutalg.codegen import transpose_kernel
from layoutalg.proofs.tensormap import TensorMapPlan, check
from layoutalg.proofs.wgmma import OperandPlan
from layoutalg.proofs.wgmma import check as check_operand
from layoutalg.targets.layouts.amd import mfma_accumulator
from layoutalg.targets.layouts.nvidia import mma_accumulator, mma_operand
from layoutalg.targets.nvidia.wgmma import register_layout
from layoutalg.targets.registry import TARGETS, lookup
from layoutalg.targets.target_model import Absent, model_of

TILE = "Sw<3,3,3> o 0 o (64,64):(64,1)"
SAME = [
    la.parse(TILE),
    la.convert.to_linear(la.parse(TILE)),
    la.convert.to_piecewise(la.parse(TILE)),
    "Sw<3,4,3> o smem_ptr[16b](unset) o (_64,_64):(_64,_1)",
    "Sw<3,4,3,byte> o 0 o (64,64):(64,1)",
]


def test_types_and_functions_found_by_name_are_there() -> None:
    kinds = {name: pkgutil.resolve_name(name) for name in explanation._EXPLAINED}
    assert [name for name, kind in kinds.items() if f"{kind.__module__}.{kind.__qualname__}" != name] == []
    functions = {function for _, function in explanation._EXPLAINED.values()}
    assert all(callable(explanation._found(name)) for name in functions | {*explanation._DOCUMENTS.values()})


@pytest.mark.parametrize("value", SAME[:4], ids=["cute", "f2", "isl", "printout"])
def test_every_family_gets_the_same_verdicts(value: object) -> None:
    told = la.explain(value, shape=(64, 64))
    assert told["image"] == {"distinct": 4096, "injective": True}
    assert told["size"]["elements"] == 4096
    assert told["as_a_tile"]["swizzle"] == "128B"
    assert check(TensorMapPlan.from_json(told["TMA"]["plan"]))
    assert check_operand(OperandPlan.from_json(told["wgmma_A"]["plan"]))
    assert told["wgmma_A"]["plan"]["tiles"][0]["encoded"] == "0x4000004000010000"
    assert told["ldmatrix"] == {"instruction": "ldmatrix.x1", "turns": 64, "ideal": 64}
    assert told["columns"]["turns"] == 512
    assert "assumed" in told.data


@pytest.mark.parametrize(
    "value",
    [
        TILE, "Sw<3,4,3>", "Z[i:4=(3) -> o]", "[N] -> { [i] -> [3i] : 0 <= i < N }", "x 4:1 -> x:4 | x<3",
        "(0,4):(1,1)",
        "#ttg.padded_shared<[32:+4] {order = [1, 0], shape = [16, 32]}>", mma_operand("A", (16, 16), (1, 1), 2),
        la.Tensor((512, 512)), la.Tensor((512, 500)), la.Morphism.from_layout(la.CuteLayout((4, 8))),
    ],
    ids=str,
)  # fmt: skip
def test_text_and_data_say_the_same_and_are_json(value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layoutalg.ground.picture.PROMPT_CHARACTERS", 10**6)  # long explanations are shortened
    told = la.explain(value)
    document = json.loads(json.dumps(told.to_json()))
    assert document["schema"] == "layoutalg/explanation/1"
    assert document["kind"] in ("layout", "tensor")
    for name, lines in told.facts:
        assert name.replace(" ", "_") in document
        assert all(line in str(told) for line in lines)
    assert eval(repr(told), {"Explanation": la.ask.Explanation, **vars(la)}) == told


def test_a_swizzle_of_bytes_before_elements_gets_a_hint() -> None:
    told = la.explain("Sw<3,4,3> o 0 o (64,64):(64,1)")
    assert "Sw<3,3,3>" in told["hint"]
    assert str(told["as_a_tile"]).startswith("no")
    assert "hint" not in la.explain(TILE).data
    assert "hint" not in la.explain("Sw<3,4,3> o 0 o (64,64):(64,1)", "u8").data
    assert "Sw<2,2,3>" in la.explain("Sw<2,4,3> o 0 o (64,32):(32,1)", np.float32)["hint"]


def test_the_type_of_a_printout_is_taken() -> None:
    told = la.explain("Sw<3,4,3> o smem_ptr[32b](unset) o (8,32):(32,1)")
    assert told["as_a_tile"]["dtype"] == "f32"
    assert la.explain("(64,64):(64,1)", "float8_e4m3fn")["as_a_tile"]["dtype"] == "u8"


def test_descriptors_plans_and_problems() -> None:
    plan = la.tensormap(la.Tensor((512, 512)), (64, 64), TILE)
    for value in (plan.hex, "0x" + plan.hex, plan.raw, plan.tensor_map):
        told = la.explain(value)
        assert (told.kind, told["dtype"], told["box"], told["barrier"]) == (
            "descriptor",
            "bf16",
            [64, 64],
            {"bytes": 8192},
        )
    for value in (plan, plan.to_json()):
        told = la.explain(value)
        assert (told.kind, told["check"], told.holds) == ("plan", "proved", True)
    assert la.explain(plan.problem)["plan"]["hex"] == plan.hex
    operand = la.wgmma("A", "bf16", (64, 64), TILE)
    for value in (operand, operand.to_json(), operand.problem.to_json()):
        assert "K-major" in str(la.explain(value)) or "0x4000004000010000" in str(la.explain(value))


def test_what_is_wrong_does_not_hold() -> None:
    document = la.tensormap(la.Tensor((512, 512)), (64, 64), TILE).to_json()
    document["issues"][0]["coords"] = [8, 0]
    told = la.explain(document)
    assert (told["check"], told.holds, "plan" in told.data) == ("refuted", False, False)
    problem = la.synth.TensorMapProblem.of(la.Tensor((512, 500)), (64, 64), TILE)
    told = la.explain(problem)
    assert not told.holds
    assert told["inadmissible"]["repairs"]
    told = la.explain(la.synth.OperandProblem.of("A", "bf16", "(64,64):(72,1)"))
    assert not told.holds
    assert "LA370" in str(told)


@pytest.mark.parametrize(
    "arguments",
    [
        (7,),
        ("4:1", None, "sm_90a", 4),
        ("hello",),
        (b"12",),
        ({"schema": "x"},),
        ("4:1", "fp99"),
        ("4:1", "bf16", "sm_1"),
        ("ab" * 60,),
        (None,),
    ],
)
def test_what_is_nothing_is_refused(arguments: tuple[object, ...]) -> None:
    with pytest.raises(la.MalformedError):
        la.explain(*arguments)


def test_notebooks_get_the_text() -> None:
    for value in (la.explain(TILE), la.suggest(la.Tensor((512, 512)), (64, 64)), la.banks("(32,4):(4,1)", None, 32)):
        assert value._repr_mimebundle_()["text/plain"] == str(value)


def test_every_layout_of_a_ttgir_text_is_listed():
    blocked = "#ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [8, 4], warpsPerCTA = [1, 1], order = [1, 0]}>"
    shared = "#ttg.swizzled_shared<{vec = 2, perPhase = 1, maxPhase = 4, order = [1, 0]}>"
    text = (
        f"#a = {blocked}\n#b = {shared}\nmodule {{\n"
        "  %0 = tt.load %p : tensor<8x8xf16, #a> %1 = x : !ttg.memdesc<8x8xf16, #b>\n}\n"
    )
    told = la.explain(text)
    listed = told.to_json()["layouts"]
    assert [(entry["kind"], entry["line"]) for entry in listed] == [("blocked", 4), ("swizzled_shared", 4)]
    assert [la.parse(entry["layout"]) for entry in listed] == [la.parse(blocked, (8, 8)), la.parse(shared, (8, 8))]
    assert str(told).count("line 4") == 2


@pytest.mark.parametrize("target", [*TARGETS])
@pytest.mark.parametrize("layout", [TILE, "(64,64):(72,1)", "(64,64):(65,1)", "(48,40):(40,1)"])
def test_what_carries_a_layout_is_what_admissible_says(layout: str, target: str) -> None:
    told = la.explain(layout, target=target)
    for name, consumer in [(name, each) for name, listed in ASKED[lookup(target).vendor].items() for each in listed]:
        if isinstance(absent := model_of(target).consumer(consumer), Absent):
            assert absent.rule in str(told["not_there"]) or name == "LDS fill"
            assert (name not in told.data) or name == "LDS fill"
            continue
        found = la.admissible(layout, consumer, target)
        entry = told[name.replace(" ", "_")]
        if isinstance(found, la.Admitted):
            assert entry.get("verdict", "admissible") == "admissible"
            assert "plan" in entry or entry["turns"] == found.descriptor.turns
        elif isinstance(found, la.Refused):
            assert entry["verdict"] == "inadmissible"
            assert entry["violations"][0]["message"] in str(told)
        else:
            assert entry["verdict"] == "unknown"
        if name == "LDS fill":
            break


def test_types_of_8_bits_are_asked_by_their_own_name() -> None:
    told = la.explain("(64,64):(1,64)", "e4m3")
    assert told["wgmma_A"]["violations"][0]["rule"] == "WGMMA_MAJOR"
    assert la.explain("Sw<2,4,3> o 0 o (64,64):(64,1)", "e4m3")["wgmma_A"]["plan"]["problem"]["dtype"] == "e4m3"


def test_an_explanation_of_a_tile_is_quick() -> None:
    for layout in (TILE, "(64,64):(72,1)"):
        la.explain(layout)
        taken = []
        for _ in range(5):
            began = time.process_time()
            la.explain(layout)
            taken.append(time.process_time() - began)
        assert min(taken) < 0.15  # 20 to 40 ms on a quiet core


@pytest.mark.parametrize(
    ("layout", "dtype", "target", "takes"),
    [
        (mma_operand("A", (32, 32), (2, 1), 2), "bf16", "sm_80", "mma.m16n8k16.f32.bf16.A"),
        (mma_accumulator((32, 32), (2, 1)), "f32", "sm_90a", "mma.m16n8k16.f32.bf16.D"),
        (register_layout("bf16"), "bf16", "sm_90a", "wgmma.A.registers"),
        (mfma_accumulator((64, 64), (32, 32), (2, 1)), "f32", "gfx942", "mfma.v_mfma_f32_32x32x8_f16.D"),
        (mma_accumulator((32, 32), (2, 1)), "f32", "gfx942", None),
    ],
)
def test_layouts_of_registers_are_asked_of_matrix_instructions(
    layout: object, dtype: str, target: str, takes: str | None
) -> None:
    told = la.explain(layout, dtype, target)["registers"]
    if takes is None:
        assert told["verdict"] == "inadmissible"
        return
    assert takes in told["consumers"]
    for consumer in told["consumers"]:
        assert isinstance(la.admissible(layout, consumer, target, dtype), la.Admitted), consumer


def answers() -> list[object]:
    """An answer of each kind, some with conflicts and some without."""
    return [
        la.banks("(32,8):(64,1)"), la.banks("(64,4):(4,1)", None, 32, target="gfx942"),
        la.swizzle(["rows", "columns"], tile=(64, 64), form="tma"), la.swizzle(["rows", "ldmatrix"], tile=(64, 64)),
        la.padding((33, 70), ["store antidiagonals", "columns"], element_bits=32),
        la.synth.universal_swizzle(8, 128, ("columns", "rows")),
        la.conversion("(32,4):(4,1)", "(32,4):(1,32)", 32), la.conversion("(32,4):(4,1)", "(32,4):(4,1)", 32),
        la.gather("(32,4):(4,1)", "(32,4):(4,1)", 0, 16, shape=(16, 8)),
        la.gather("(64,4):(4,1)", "(64,4):(4,1)", 0, 32, shape=(256,)),
        la.conversion("(96,5):(5,1)", "(96,5):(1,96)", 16), transpose_kernel((48, 40), "f16", "gfx942"),
    ]  # fmt: skip


@pytest.mark.parametrize("answer", answers(), ids=lambda answer: str(answer).splitlines()[0][:40])
def test_an_answer_is_explained_in_its_own_words_and_in_numbers(answer: object) -> None:
    told = la.explain(answer)
    document = json.loads(json.dumps(told.to_json()))
    assert (told.kind, told.holds, document["schema"]) == ("answer", True, "layoutalg/explanation/1")
    said = " ".join(str(told).split())
    for line in str(answer).splitlines()[:3]:  # what it says of itself, its alternatives aside
        name, _, words = line.strip().partition("  ")
        assert words.strip() in said, name
    if isinstance(answer, la.ask.BankReport):
        assert [document["banks"][name] for name in ("turns", "ideal")] == [answer.turns, answer.ideal]
    if isinstance(answer, la.proofs.gather.GatherPlan):
        assert document["gather"]["cost"]["cycles"] == answer.cost.cycles
        assert ("shared" in document) == (answer.stage is not None)
    elif hasattr(answer, "alternatives"):
        assert document["conversion"]["cost"]["cycles"] == answer.cost.cycles
        assert len(document["steps"]) == len(answer.steps)


def test_a_plan_that_does_not_hold_is_not_explained() -> None:
    swizzle = la.swizzle(["rows", "columns"], tile=(64, 64))
    moved = la.conversion("(32,4):(4,1)", "(32,4):(1,32)", 32, mechanism="shuffles")
    padded = la.padding((32, 32), ["columns"], element_bits=32)
    for wrong in (
        replace(swizzle, served=(replace(swizzle.served[0], turns=1), *swizzle.served[1:])),
        replace(moved, steps=moved.steps[1:]),
        replace(padded, pitches=(34, 1)),
    ):
        told = la.explain(wrong)
        assert (told.holds, [name for name, _ in told.facts]) == (False, ["check"])
        assert told["check"]["verdict"] == "refuted"


@pytest.mark.parametrize("swizzle", ["NONE", "32B", "64B", "128B"])
def test_a_plan_and_its_bytes_ask_for_the_same_alignment(swizzle: str) -> None:
    bits = {"NONE": 0, "32B": 1, "64B": 2, "128B": 3}[swizzle]
    smem = f"Sw<{bits},3,3> o 0 o (8,{8 << bits}):({8 << bits},1)" if bits else "(8,8):(8,1)"
    plan = la.tensormap(la.Tensor((4096, 4096)), (8, 8 << bits), smem)
    told = la.explain(plan.hex)["shared"]
    assert told["align_bytes"] == plan.smem_align_bytes == max(128, 128 << bits)

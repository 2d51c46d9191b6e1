"""Nothing is written of a plan that its checker refutes: every function that takes a plan, for plans of every kind.

A new function of ``codegen`` that takes a plan fails here until it is named: with the texts that must refuse, or with
what is only called behind one that refuses.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from instruments.operands import proved_operand

import layoutalg.codegen
from layoutalg import Tensor, admissible, synth
from layoutalg import tensormap as tensormap_of
from layoutalg.codegen import (
    EXPORT_FORMS,
    conversion,
    cuda,
    exports,
    factored,
    gather,
    host,
    kernels,
    launch,
    matmul,
    plans,
    product,
    validate,
)
from layoutalg.f2 import LinearLayout
from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, MalformedError
from layoutalg.ground.verdict import Refuted
from layoutalg.proofs import wgmma
from layoutalg.proofs.tensormap import Issue, TensorMapPlan, check
from layoutalg.synth import synthesize_tensormap
from layoutalg.targets.nvidia import tensormap


def tile(direction: str) -> TensorMapPlan:
    return synthesize_tensormap(
        {
            "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": direction,
            "global": {"shape": [256, 128], "stride": [128, 1], "dtype": "bf16", "base_align_bytes": 256},
            "tile": [64, 64], "smem": {"modes": [[[64, 64]], [[64, 1]]], "swizzle": "128B"},
        }
    )  # fmt: skip


def remapped(plan: TensorMapPlan, **fields: object) -> TensorMapPlan:
    """The plan with another map, whose bytes say the same."""
    changed = dataclasses.replace(plan.tensor_map, **fields)
    return plan.with_changes(tensor_map=changed, raw=tensormap.encode(changed))


TILE_CHANGES: dict[str, Callable[[TensorMapPlan], TensorMapPlan]] = {
    "box": lambda plan: remapped(plan, box=(plan.tensor_map.box[0], plan.tensor_map.box[1] // 2)),
    "swizzle": lambda plan: remapped(plan, swizzle="NONE"),
    "stride": lambda plan: remapped(plan, strides_bytes=(plan.tensor_map.strides_bytes[0] + 16,)),
    "extent": lambda plan: remapped(plan, dims=(plan.tensor_map.dims[0], plan.tensor_map.dims[1] - 1)),
    "bytes": lambda plan: plan.with_changes(raw=plan.raw[:8] + bytes(120)),
    "coordinate": lambda plan: plan.with_changes(issues=(Issue((0, 1), 0), *plan.issues[1:])),
    "place": lambda plan: plan.with_changes(issues=(Issue((0, 0), 128), *plan.issues[1:]), smem_bytes=8192),
    "origin": lambda plan: plan.with_changes(origin_map=(plan.origin_map[0], ())),
    "expected": lambda plan: plan.with_changes(expect_tx_bytes=plan.expect_tx_bytes - 16),
    "class": lambda plan: plan.with_changes(oob="lost"),
    "certificate": lambda plan: plan.with_changes(certificate={**(plan.certificate or {}), "elements": 1}),
}
LOAD, STORE = tile("load"), tile("store")
PRODUCT = proved_operand("A", 64, 32, "K", "64B"), proved_operand("B", 64, 32, "K", "64B")
BARE = LOAD.tensor_map
ADMITTED = admissible("Sw<3,3,3> o (64,64):(64,1)", "tma")


def multiplied(plan: TensorMapPlan) -> object:
    """A product whose first operand is copied by the plan."""
    a, b = PRODUCT
    return matmul.matmul_kernel(plan, b.copy, product.wgmma_tiles(a.consumer), product.wgmma_tiles(b.consumer))


TILE_TEXTS: dict[str, Callable[[TensorMapPlan], object]] = {
    "load_kernel": cuda.load_kernel,
    "store_kernel": cuda.store_kernel,
    "load_tile": lambda plan: launch.load_tile(plan, np.zeros(65536, np.uint8), (0, 0)),
    "store_tile": lambda plan: launch.store_tile(plan, np.zeros(4096, np.uint8), np.zeros(65536, np.uint8), (0, 0)),
    "matmul_kernel": multiplied,
    "product_kernel": lambda plan: product.product_kernel(dataclasses.replace(PRODUCT[0], copy=plan), PRODUCT[1]),
    "host_map": host.host_map,
    "map_bytes": host.map_bytes,
    "raw_map": host.raw_map,
    "export of a base": lambda plan: exports.export(BARE, "ptx", base=plan),
    "export of an admission": lambda plan: exports.export(dataclasses.replace(ADMITTED, descriptor=plan), "cpp"),
    **{f"export {form}": lambda plan, form=form: exports.export(plan, form) for form in EXPORT_FORMS},
}
ONE_WAY = {"store_kernel": STORE, "store_tile": STORE, "matmul_kernel": PRODUCT[0].copy,
           "product_kernel": PRODUCT[0].copy}  # fmt: skip


@pytest.mark.parametrize("text", TILE_TEXTS)
@pytest.mark.parametrize("change", TILE_CHANGES)
def test_no_text_of_a_refuted_tile_plan(change: str, text: str) -> None:
    right = ONE_WAY.get(text, LOAD)
    wrong = TILE_CHANGES[change](right)
    assert isinstance(check(wrong), Refuted)
    with pytest.raises(MalformedError, match="LA503 the checker refutes this plan") as error:
        TILE_TEXTS[text](wrong)
    assert error.value.diagnostic.witness or change == "class"
    assert error.value.diagnostic.because


@pytest.mark.parametrize("text", [text for text in TILE_TEXTS if text not in ("load_tile", "store_tile")])
def test_right_plans_are_written(text: str) -> None:
    assert TILE_TEXTS[text](ONE_WAY.get(text, LOAD)) is not None


OPERAND = PRODUCT[0].consumer


def changed_tile(**fields: object) -> wgmma.OperandPlan:
    return OPERAND.with_changes(tiles=(dataclasses.replace(OPERAND.tiles[0], **fields), *OPERAND.tiles[1:]))


OPERAND_CHANGES = {
    "word": lambda: changed_tile(encoded=OPERAND.tiles[0].encoded + 1),
    "descriptor": lambda: changed_tile(
        descriptor=(moved := dataclasses.replace(OPERAND.tiles[0].descriptor, stride_bytes=256)), encoded=moved.encode()
    ),
    "alignment": lambda: OPERAND.with_changes(align_bytes=OPERAND.align_bytes // 2),
    "transpose": lambda: OPERAND.with_changes(major="MN"),
    "order": lambda: OPERAND.with_changes(tiles=OPERAND.tiles[:-1]),
}
OPERAND_TEXTS: dict[str, Callable[[wgmma.OperandPlan], object]] = {
    "descriptor_table": host.descriptor_table,
    "wgmma_tiles": product.wgmma_tiles,
    "product_kernel": lambda plan: product.product_kernel(dataclasses.replace(PRODUCT[0], consumer=plan), PRODUCT[1]),
    **{f"export {form}": lambda plan, form=form: exports.export(plan, form) for form in ("cpp", "ptx", "mlir")},
}


@pytest.mark.parametrize("text", OPERAND_TEXTS)
@pytest.mark.parametrize("change", OPERAND_CHANGES)
def test_no_text_of_a_refuted_operand_plan(change: str, text: str) -> None:
    wrong = OPERAND_CHANGES[change]()
    assert isinstance(wgmma.check(wrong), Refuted)
    with pytest.raises(MalformedError, match="LA503 the checker refutes this plan"):
        OPERAND_TEXTS[text](wrong)
    assert OPERAND_TEXTS[text](OPERAND) is not None


BITS = [(1 << bit,) for bit in range(7)]
ROWS, COLUMNS = (
    LinearLayout.from_bases({"register": bits[:2], "lane": bits[2:]}, {"x": 128})
    for bits in (BITS, [*BITS[-2:], *BITS[:-2]])
)
CONVERSION = synth.conversion(ROWS, COLUMNS, 32)
GRID = LinearLayout.from_bases(
    {"register": [(0, 1), (0, 2)], "lane": [(0, 4), (0, 8), (1, 0), (2, 0), (4, 0)]}, {"row": 8, "col": 16}
)
GATHER = synth.gather(GRID, GRID, "col", 32)
FACTORED = synth.factorise(
    LinearLayout((("register", 3), ("lane", 5)), (("offset", 8),), (8, 2, 4, 1, 16, 32, 64, 128)), dtype="f32"
)
STAGED = kernels.transpose_kernel((64, 64), "f16", way="vectors").swizzle
SELF_CHECKED: dict[str, tuple[Callable[[Any], object], Any, Callable[[Any], Any]]] = {
    "conversion_kernel, a step left out": (
        conversion.conversion_kernel, CONVERSION, lambda plan: dataclasses.replace(plan, steps=plan.steps[:-1])),
    "conversion_kernel, another destination": (
        conversion.conversion_kernel, CONVERSION, lambda plan: dataclasses.replace(plan, destination=plan.source)),
    "conversion_kernel, another cost": (
        conversion.conversion_kernel, CONVERSION, lambda plan: dataclasses.replace(plan, cost=GATHER.cost)),
    "gather_registers_kernel, another place": (
        gather.gather_registers_kernel, GATHER, lambda plan: dataclasses.replace(plan, constant=plan.constant ^ 1)),
    "gather_registers_kernel, another column": (
        gather.gather_registers_kernel, GATHER,
        lambda plan: dataclasses.replace(plan, columns=plan.columns[::-1])),
    "factored_kernel, another place": (
        factored.factored_kernel, FACTORED,
        lambda plan: dataclasses.replace(plan, places=(plan.places[1], plan.places[0], *plan.places[2:]))),
    "factored_kernel, a round left out": (
        factored.factored_kernel, FACTORED, lambda plan: dataclasses.replace(
            plan, shuffles=dataclasses.replace(plan.shuffles, kept=tuple(
                tuple(tuple(range(8)) for _ in lanes) for lanes in plan.shuffles.kept), rounds=()))),
    "factored_kernel, another map": (
        factored.factored_kernel, FACTORED, lambda plan: dataclasses.replace(
            plan, plan=dataclasses.replace(plan.plan, descriptor=TILE_CHANGES["expected"](plan.plan.descriptor)))),
    "staging_kernel, other turns": (
        lambda plan: kernels.staging_kernel(plan, (64, 64)), STAGED, lambda plan: dataclasses.replace(
            plan, served=(dataclasses.replace(plan.served[0], turns=plan.served[0].turns + 1), *plan.served[1:]))),
}  # fmt: skip


@pytest.mark.parametrize("case", SELF_CHECKED)
def test_no_text_of_a_plan_that_does_not_hold(case: str) -> None:
    write, right, change = SELF_CHECKED[case]
    assert write(right) is not None
    with pytest.raises(MalformedError, match=r"LA503|LA931|LA936|LA882|LA911"):
        write(change(right))


def test_what_stands_for_several_plans_says_where_they_are() -> None:
    symbolic = tensormap_of(Tensor(("M", "K"), assume=("K % 8 == 0",)), (64, 64))
    family = synth.synthesize_ragged(Tensor((1024, 512)), (64, 64), strategy="exact_pool")
    for write in (host.host_map, cuda.load_kernel, lambda value: exports.export(value, "gluon")):
        with pytest.raises(MalformedError, match=r"use plan\.specialise\(\.\.\.\) for concrete sizes"):
            write(symbolic)
        with pytest.raises(MalformedError, match=r"use one of family\.plans"):
            write(family)
        assert write(symbolic.specialise(M=100, K=72))
        assert all(write(plan) for plan in family.plans)


BEHIND = {
    # parts of texts, written for a caller that has asked
    "converted", "prelude", "sizes", "smem_bytes", "fitting", "title", "origin_parameters", "refusal_text",
    "issue_text", "cpp_text", "cute_dsl_text", "gluon_text", "mlir_text", "ptx_text", "symbolic_cpp", "symbolic_ptx",
    "mover", "vectors",
    "run_tile", "tile_pipeline",
    # numbers of a launch
    "base_align", "image_bytes", "launchable", "origin_arguments",
    # what shows what a wrong plan does: models, and the report of a run
    "tile_kernel", "open_backend", "shared_image", "store_memory", "validate", "default_origins", "modelled_bytes",
    # writes its text by ``product_kernel``
    "validate_product",
}  # fmt: skip
PLANS = "TensorMapPlan|OperandPlan|SymbolicPlan|ConversionPlan|GatherPlan|SwizzlePlan|ShufflePlan|ExchangePlan|Operand"


def test_every_function_that_takes_a_plan_is_named() -> None:
    found = set()
    for info in pkgutil.walk_packages(layoutalg.codegen.__path__, "layoutalg.codegen."):
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if name.startswith("_") or not inspect.isfunction(value) or value.__module__ != info.name:
                continue
            notes = [str(note) for argument, note in value.__annotations__.items() if argument != "return"]
            if any(re.search(rf"\b({PLANS}|Factorisation|Admitted)\b", note) for note in notes):
                found.add(name)
    refusing = {re.split("[ ,]", text)[0] for text in (*TILE_TEXTS, *OPERAND_TEXTS, *SELF_CHECKED)}
    assert found == refusing | BEHIND


def test_a_plan_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(plan: TensorMapPlan) -> object:
        asked.append(plan)
        return check(plan)

    monkeypatch.setitem(plans.CHECKERS, TensorMapPlan, counted)
    again = tile("load").with_changes(certificate=None)
    for form in ("cpp", "ptx", "mlir", "gluon"):
        exports.export(again, form)
    cuda.load_kernel(again)
    host.host_map(again)
    assert len(asked) == 1
    wrong = TILE_CHANGES["box"](again)
    for _ in range(3):
        with pytest.raises(MalformedError, match="LA503"):
            cuda.load_kernel(wrong)
    assert len(asked) == 2


def test_a_plan_that_could_not_be_decided_is_not_written_and_is_asked_about_again() -> None:
    plan = tile("load").with_changes(certificate=None, smem_align_bytes=2048)
    with clock.within(0), pytest.raises(BudgetError, match="LA411"):
        exports.export(plan, "cpp")
    with pytest.raises(MalformedError, match="LA503"):
        exports.export(plan, "cpp")


def test_validation_runs_what_it_refutes_and_never_agrees() -> None:
    """The one thing that runs a wrong plan is the one that says which byte is wrong."""
    for change, wrong in TILE_CHANGES.items():
        report = validate(wrong(LOAD), device="simulator")
        assert not report, change

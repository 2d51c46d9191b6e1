"""Every public callable of the families and the front door is called by a judge of the campaign of operations.

That is measured: the judges run under a profiler, and a callable counts where a judge's own frame calls it (decorators
and caches between them aside). What no judge calls is listed with its reason.
"""

from __future__ import annotations

import importlib
import inspect
import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import campaign_operations as campaign  # noqa: E402
from operations.page import page  # noqa: E402
from operations.record import DRAWS, OPERATIONS, judged  # noqa: E402

FAMILIES = "cute cute.symbolic f2 integer piecewise hierarchy convert ask"
MODULES = ["layoutalg", *(f"layoutalg.{name}" for name in FAMILIES.split())]
OPERATORS = {"__call__", "__getitem__", "__matmul__", "__mul__", "__invert__", "__and__", "__add__", "__sub__"}
OPERATORS |= {"__contains__"}
REASONS = {
    "layoutalg.tensormap": "plans have a campaign of their own: benchmarks/campaign_planner.py",
    "layoutalg.conversion": "steps are run on labels in tests/property/test_conversions.py",
    "layoutalg.routing": "judged by enumeration in tests/property/test_indirect.py",
    "layoutalg.paged": "judged by enumeration in tests/property/test_indirect.py",
    "layoutalg.ragged": "judged by enumeration in tests/property/test_ragged.py and test_ragged_kernels.py",
    "layoutalg.same_movement": "judged by two executors in tests/property/test_movement.py",
    "layoutalg.tune": "judged by exhaustive measurement in tests/unit/test_search.py",
    "layoutalg.gather": "judged by numpy's gather of whole tensors in tests/property/test_gathers.py",
    "layoutalg.swizzle": "judged in tests/property/test_swizzle_plans.py and test_swizzle_forms.py",
    "layoutalg.admissible": "each consumer is judged in tests/property/test_admission_*.py",
    "Admitted.certified_later": "certificates made when they are read, tests/unit/test_admission.py",
    "Refused.by": "how refusals are made, tests/unit/test_admission.py",
    "Refused.certified": "how refusals are made, tests/unit/test_admission.py",
    "Refused.deferred": "fields that are found when they are read, tests/property/test_repairs.py",
    "Proved.to_json": "the verdict's document, tests/unit/test_answer_schemas.py",
    "Refuted.to_json": "the verdict's document, tests/unit/test_answer_schemas.py",
    "Unknown.to_json": "the verdict's document, tests/unit/test_answer_schemas.py",
    "layoutalg.padding": "judged by enumerations of pitches in tests/property/test_padding_plans.py",
    "layoutalg.wgmma": "operands are judged in tests/property/test_wgmma_synthesis.py",
    "layoutalg.layout": "every form equals the layout it was written from, tests/property/test_doors.py",
    "layoutalg.cute.symbolic.normal_form": "judged by enumeration in tests/property/test_symbolic_normal.py",
    "SymbolicForm.modes": "judged by enumeration in tests/property/test_symbolic_normal.py",
    "SymbolicForm.generators": "judged by enumeration in tests/property/test_symbolic_normal.py",
    "SymbolicForm.alignment": "judged by enumeration in tests/property/test_symbolic_normal.py",
    "SymbolicForm.vector_bits": "judged by enumeration in tests/property/test_symbolic_normal.py",
    "Tensor.strides": "the plain field or its default, tests/unit/test_synthesize_tensormap.py",
    "Tensor.names": "sizes with names, tests/unit/test_symbolic_plans.py",
    "Tensor.at": "sizes with names, tests/unit/test_symbolic_plans.py",
    "Tensor.assumptions": "sizes with names, tests/unit/test_symbolic_plans.py",
    "PiecewiseLayout.made_with": "what other operations are made of",
    "PiecewiseLayout.of": "what other operations are made of",
    "layoutalg.f2.is_distributed_layout": "by tables, tests/property/test_f2_operations.py",
    "layoutalg.f2.is_memory_layout": "by tables, tests/property/test_f2_operations.py",
    "TiledCopy.source": "what partition_S slices, tests/property/test_dumps.py",
    "TiledCopy.destination": "what partition_D slices, tests/property/test_dumps.py",
    "TiledMMA.operand": "judged by counting in tests/property/test_dumps.py",
    "TiledMMA.size": "judged by counting in tests/property/test_dumps.py",
    "TiledMMA.tile": "judged by counting in tests/property/test_dumps.py",
    "MmaAtom.threads": "judged by counting in tests/property/test_dumps.py",
    "BankReport.certificate": "what the checker accepts, tests/unit/test_bank_reports.py",
    "BankReport.certificates": "what the checker accepts, tests/unit/test_bank_reports.py",
    "BankReport.witness": "what the checker accepts, tests/unit/test_bank_reports.py",
    "BankReport.map_text": "the picture as text, tests/unit/test_bank_reports.py",
    "BankReport.why": "words, tests/unit/test_bank_reports.py",
    "BankReport.model": "the bank model, tests/property/test_bank_model.py",
    "BankReport.phases": "those of the bank model, tests/property/test_bank_model.py",
    "BankReport.step": "lanes that meet, tests/unit/test_bank_reports.py",
    "BankReport.assumed": "words, tests/unit/test_named_banks.py",
    "BankReport.cure": "the layout it names is counted again, tests/unit/test_named_banks.py",
    **dict.fromkeys(
        [
            "layoutalg.transactions",
            "layoutalg.ask.transactions",
            "WarpAccess.excess",
            *(
                f"TransactionReport.{name}"
                for name in (
                    "accesses",
                    "after",
                    "better",
                    "better_sectors",
                    "bytes",
                    "certificate",
                    "coalesced",
                    "counts",
                    "evidence",
                    "excess",
                    "ideal",
                    "lines",
                    "sectors",
                    "why",
                    "written",
                )
            ),
        ],
        "judged by sets of bytes in tests/property/test_transactions.py",
    ),
}


def callables() -> Iterator[tuple[str, CodeType]]:
    """Public functions, and methods and properties of public classes, by name."""
    for module in MODULES:
        door = importlib.import_module(module)
        for name in dir(door):
            value = getattr(door, name)
            if name.startswith("_") or not str(getattr(value, "__module__", "")).startswith("layoutalg"):
                continue
            if inspect.isclass(value) and not issubclass(value, BaseException):
                for attribute in dir(value):
                    code = code_of(inspect.getattr_static(value, attribute))
                    if code is not None and (attribute in OPERATORS or not attribute.startswith("_")):
                        yield f"{value.__name__}.{attribute}", code
            elif callable(value) and (code := code_of(value)) is not None:
                yield f"{module}.{name}", code


def code_of(value: Any) -> CodeType | None:
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, classmethod | staticmethod):
        value = value.__func__
    try:
        value = inspect.unwrap(value)
    except ValueError:
        return None
    return getattr(value, "__code__", None)


class Watch:
    """Notes which of the wanted callables the frames of judges call."""

    def __init__(self, wanted: set[CodeType]) -> None:
        self.called: set[CodeType] = set()
        self.wanted = {id(code) for code in wanted}  # code is compared by all that it holds
        self.judges = str(ROOT / "benchmarks")

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or id(frame.f_code) not in self.wanted:
            return
        back = frame.f_back
        while back is not None and (
            back.f_code.co_name in ("run", "wrapper") or "/layoutalg/ground/" in back.f_code.co_filename
        ):
            back = back.f_back
        if back is not None and back.f_code.co_filename.startswith(self.judges):
            self.called.add(frame.f_code)
            self.wanted.discard(id(frame.f_code))


SIGNS = {"__call__": "(", "__getitem__": "[", "__matmul__": "@", "__mul__": "*", "__invert__": "~", "__and__": "&"}
SIGNS |= {"__add__": "+", "__sub__": "-", "__contains__": " in "}


def may_call(text: str, name: str) -> bool:
    """Whether the text of a judge has a name, or the end of one that is put together."""
    if name in SIGNS:
        return SIGNS[name] in text
    return re.search(rf"\b{name}\b", text) is not None or "}_" + name.rsplit("_", 1)[-1] in text


def measured(wanted: dict[str, CodeType], rounds: int = 60) -> set[CodeType]:
    """What the judges call: first every operation once, then those that name what is still wanted."""
    watch = Watch({code for _, code in callables()})
    source = {one: inspect.getsource(one.judge) for known in OPERATIONS.values() for one in known}
    for number in range(rounds):
        left = {name.rsplit(".", 1)[1] for name, code in wanted.items() if code not in watch.called}
        if not left:
            break
        for family in campaign.SHARES:
            known = OPERATIONS[family]
            rng = random.Random(f"covered:{family}:{number}")
            chosen = [one for one in known if not number or any(may_call(source[one], name) for name in left)]
            subject = DRAWS[family](rng) if chosen else None
            for one in chosen:
                sys.setprofile(watch)
                try:
                    judged(one, subject, rng, {})
                finally:
                    sys.setprofile(None)
    return watch.called


def uncovered(called: set[CodeType]) -> set[str]:
    return {name for name, code in callables() if code not in called}


@pytest.fixture(scope="module")
def called() -> set[CodeType]:
    return measured({name: code for name, code in callables() if name not in REASONS})


def test_every_public_callable_is_judged_or_has_a_reason(called: set[CodeType]) -> None:
    missing = uncovered(called)
    assert not missing - REASONS.keys(), "no judge of benchmarks/operations calls these"


def test_reasons_are_about_what_is_not_judged(called: set[CodeType]) -> None:
    names = {name for name, _ in callables()}
    assert names >= REASONS.keys(), "a reason for a name that is not there"
    assert uncovered(called) >= REASONS.keys(), "a judge calls this: the reason is stale"


def test_a_callable_that_nobody_judges_is_missed(called: set[CodeType], monkeypatch: pytest.MonkeyPatch) -> None:
    def forgotten() -> None:
        """Public, and called by nobody."""

    forgotten.__module__ = "layoutalg.cute.invented"
    cute = importlib.import_module("layoutalg.cute")
    monkeypatch.setattr(cute, "forgotten", forgotten, raising=False)
    listing: Callable[[], list[str]] = lambda: ["forgotten", *cute.__all__]  # noqa: E731
    monkeypatch.setattr(cute, "__dir__", listing)
    assert "layoutalg.cute.forgotten" in uncovered(called)


def test_a_judge_that_goes_is_missed(called: set[CodeType]) -> None:
    code = dict(callables())["layoutalg.cute.complement"]
    assert "layoutalg.cute.complement" in uncovered(called - {code})


STORED = ROOT / "tests" / "data" / "measured" / "operations.json"


def test_the_stored_run_is_right_and_names_every_operation() -> None:
    found = json.loads(STORED.read_text(encoding="utf-8"))
    assert (found["wrong"], found["needless"]) == (0, 0)
    assert found["operations"] >= 1_000_000
    assert found["operations"] == sum(row["count"] for row in found["table"])
    names = {(one.family, one.name) for known in OPERATIONS.values() for one in known}
    assert {(row["family"], row["operation"]) for row in found["table"]} == names
    assert all(row["count"] for row in found["table"]), "an operation that was never drawn"


def test_the_page_shows_every_row_of_the_stored_run() -> None:
    found = json.loads(STORED.read_text(encoding="utf-8"))
    written = page(found, campaign.FAULTS)
    assert f"{found['operations']:,} operations" in written
    assert all(f"{row['count']:,}" in written and row["operation"] in written for row in found["table"])

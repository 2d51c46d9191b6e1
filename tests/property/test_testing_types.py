"""``st.from_type`` and annotations draw the library's values, and nobody who needs neither pays for the other."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.vendor.pretty import pretty

import layoutalg as la
from layoutalg import cute, hierarchy
from layoutalg.cute.symbolic import SymbolicLayout
from layoutalg.ground.layout import Layout
from layoutalg.proofs import OperandProblem
from layoutalg.proofs.smem import SharedTile
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.proofs.wgmma import OperandPlan
from layoutalg.targets.nvidia.tensormap import TensorMap
from layoutalg.targets.nvidia.wgmma import MatrixDescriptor
from layoutalg.testing.registration import DRAWN, register

ROOT = Path(__file__).parents[2]
QUICK = settings(database=None, derandomize=True, deadline=None, max_examples=100, phases=[Phase.generate])
TYPES = [
    la.CuteLayout, la.ComposedLayout, la.Swizzle, cute.CoordinateLayout, la.Morphism, SymbolicLayout, la.LinearLayout,
    la.IntegerLayout, la.PiecewiseLayout, la.HierarchicalLayout, hierarchy.DigitMap, hierarchy.TableMap, hierarchy.Box,
    hierarchy.Guard, la.Tensor, SharedTile, TensorMapProblem, TensorMapPlan, OperandProblem, OperandPlan, TensorMap,
    MatrixDescriptor, la.Proved, la.Refuted, la.Unknown, Layout,
]  # fmt: skip
register()


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_values_are_drawn_by_their_type(kind: type) -> None:
    assert isinstance(find(st.from_type(kind), lambda _: True, settings=QUICK), kind)


def test_every_registered_type_is_drawn_here() -> None:
    assert set(DRAWN) == set(TYPES)


@QUICK
@given(layout=..., other=..., verdict=..., maybe=...)
def test_annotations_say_what_is_drawn(
    layout: Layout, other: la.CuteLayout | la.LinearLayout, verdict: la.Verdict, maybe: la.Swizzle | None
) -> None:
    assert layout.size >= 1
    assert isinstance(other, la.CuteLayout | la.LinearLayout)
    assert isinstance(verdict, la.Proved | la.Refuted | la.Unknown)
    assert maybe is None or isinstance(maybe, la.Swizzle)


@pytest.mark.parametrize("kind", [la.CuteLayout, la.ComposedLayout, la.LinearLayout, la.PiecewiseLayout, la.Proved])
def test_hypothesis_prints_failing_examples_that_can_be_pasted(kind: type) -> None:
    value = find(st.from_type(kind), lambda _: True, settings=QUICK)
    assert eval(pretty(value), {name: getattr(la, name) for name in la.__all__}) == value


def test_a_union_and_the_protocol_draw_several_families() -> None:
    assert isinstance(find(st.from_type(Layout), lambda f: isinstance(f, la.PiecewiseLayout), settings=QUICK), Layout)


def after(*lines: str) -> dict[str, Any]:
    """What a fresh interpreter prints as JSON after these lines."""
    code = "\n".join(("import json, sys", *lines))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


LOADED = "print(json.dumps({name: name in sys.modules for name in ('numpy', 'hypothesis', 'layoutalg.cute.layout')}))"


def test_importing_the_package_never_imports_hypothesis() -> None:
    lines = ["import layoutalg as la, layoutalg.testing", "la.parse('(4,8):(1,4)')", LOADED]
    assert after(*lines) == {"numpy": True, "hypothesis": False, "layoutalg.cute.layout": True}


@pytest.mark.parametrize("first", ["hypothesis", "layoutalg.cute", "layoutalg.testing.strategies"])
def test_types_are_registered_in_whatever_order_modules_are_imported(first: str) -> None:
    found = after(
        f"import {first}",
        "from layoutalg.testing.registration import register",
        "before = list(sys.meta_path)",
        "register(); register()",
        "import layoutalg as la",
        "from hypothesis import find, strategies as st",
        "value = find(st.from_type(la.CuteLayout), lambda f: True)",
        "print(json.dumps({'value': str(value), 'finders': sys.meta_path == before}))",
    )
    assert found == {"value": "1:1", "finders": True}


def test_the_entry_points_are_these_functions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["hypothesis"] == {"layoutalg": f"{register.__module__}:register"}
    assert project["entry-points"]["pytest11"] == {"layoutalg": "layoutalg.testing.plugin"}

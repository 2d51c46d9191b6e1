"""Wrong arguments of every public callable: refused in words that say which, in time, and never by accident."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from instruments.misuse import Subject, admits, odd_values, right_calls, subjects

from layoutalg.ground.errors import LayoutError

PACKAGES = """
    cute cute.symbolic f2 integer piecewise hierarchy convert ask interop.triton synth targets
    targets.nvidia.tensormap targets.nvidia.im2col targets.nvidia.tcgen05 targets.nvidia.wgmma proofs codegen
"""
SAID_AS = {"arch": "target", "mode": "swizzle", "dtype": "operands", "values": "coordinates"}
"""Words that messages have for a parameter of another name."""
OPEN: dict[str, str] = {
    "made by other operations, not by hand": """
        integer.hnf(work) piecewise.PiecewiseLayout.of(value) piecewise.PiecewiseLayout.of(outputs)
        piecewise.PiecewiseLayout.made_with(value) piecewise.PiecewiseLayout.made_with(other)
        cute.symbolic.Condition.true_at(sizes) targets.nvidia.tensormap.Field.of(words)
        targets.nvidia.im2col.Im2colMap.spatial(values) targets.nvidia.im2col.require_accepted(call)
        targets.nvidia.wgmma.checked_major(where)
    """,
    "read only where it matters, which is not so in the examples": """
        f2.ensure_not_larger(register) interop.triton.to_attribute(alignment) targets.nvidia.tensormap.layout(coords)
        codegen.copy_kernel(tile)
        codegen.copy_kernel(swizzle) codegen.copy_kernel(threads) codegen.copy_kernel(per_thread)
        codegen.copy_kernel(stages) synth.synthesize_ragged(direction) synth.synthesize_ragged(target)
        synth.swizzle(tile)
    """,
    "a flag may be any truth value": """
        cute.CopyAtom.ldmatrix(transposed) cute.Morphism.from_layout(padded) cute.weak_composite(by_layout)
        targets.nvidia.im2col.require_use(store) targets.nvidia.tcgen05.m_values(sparse)
        targets.nvidia.tcgen05.n_values(sparse) codegen.transpose_ring_kernel(down) synth.conversion(exhaustive)
        synth.synthesize_tensormap(repair) synth.synthesize_tensormap(documented_only) synth.synthesize_wgmma(repair)
        synth.synthesize_symbolic(repair) synth.synthesize_symbolic(for_all)
    """,
    "holders of such values are taken as well": """
        f2.LinearLayout.__call__(coords) cute.symbolic.symbolic(assumptions)
    """,
    "a lookup that answers Absent": """
        targets.TargetModel.limit(name) targets.TargetModel.consumer(name) targets.TargetModel.shape(instruction)
        targets.TargetModel.fragment(instruction) targets.TargetModel.fragment(operand)
        targets.nvidia.wgmma.instruction_rows(dtype)
    """,
}
"""Parameters that are not checked, by the reason."""
UNCALLED = 152
"""Callables that no doctest calls, so that they are not tried: more than half are constructors of dataclasses."""
SKIPPED = {*" ".join(OPEN.values()).split()}


def fault(subject: Subject, name: str, annotation: object, value: object, arguments: dict[str, Any]) -> str:
    """Return what is wrong with the answer to a call with one odd value, or ""."""
    other_kind = not admits(annotation, value)
    try:
        subject.call(arguments)
    except LayoutError as error:
        told = str(error)
        json.dumps(error.diagnostic.to_json(), allow_nan=False)
        if len(told) > 4000 or not all(line.isprintable() for line in told.split("\n")):
            return "a message that cannot be shown"
        words = (name, SAID_AS.get(name, name), *re.findall(r"\w+", str(annotation)))
        named = error.diagnostic.where or any(word in told for word in words)
        return "" if named or not other_kind else "no word of which argument it was"
    except Exception as error:
        return type(error).__name__
    return "an answer" if other_kind else ""


def faults(package: str, values: Sequence[object]) -> Iterator[tuple[str, str]]:
    """Yield parameters that take odd values amiss: (callable(parameter), what is wrong)."""
    for subject in subjects(f"layoutalg.{package}"):
        for call in right_calls(subject):
            for parameter in subject.parameters:
                place = f"{subject.name}({parameter.name})".removeprefix("layoutalg.")
                if place in SKIPPED:
                    continue
                for value in values:
                    arguments = subject.with_argument(call, parameter, value)
                    found = fault(subject, parameter.name, parameter.annotation, value, arguments)
                    if found:
                        yield place, f"{found} for a {type(value).__name__}"


@pytest.mark.parametrize("package", PACKAGES.split())
def test_one_odd_argument_is_refused_in_words(package: str, portion: Callable[[Any], Any]) -> None:
    assert dict(faults(package, portion(odd_values()))) == {}


@pytest.mark.parametrize("package", PACKAGES.split())
@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_odd_arguments_together_are_refused_by_own_errors(package: str, data: st.DataObject) -> None:
    able = [subject for subject in subjects(f"layoutalg.{package}") if subject.parameters and right_calls(subject)]
    subject = data.draw(st.sampled_from(able))
    arguments = dict(data.draw(st.sampled_from(right_calls(subject))))
    for parameter in subject.parameters:
        if f"{subject.name}({parameter.name})".removeprefix("layoutalg.") not in SKIPPED and data.draw(st.booleans()):
            arguments = subject.with_argument(arguments, parameter, data.draw(st.sampled_from(odd_values())))
    assert fault(subject, "", "", None, arguments) == ""


def test_places_that_are_left_out_are_there() -> None:
    known = {
        f"{subject.name}({parameter.name})".removeprefix("layoutalg.")
        for package in PACKAGES.split()
        for subject in subjects(f"layoutalg.{package}")
        for parameter in subject.parameters
    }
    assert known >= SKIPPED
    every = [subject for package in PACKAGES.split() for subject in subjects(f"layoutalg.{package}")]
    uncalled = {subject.name for subject in every if subject.parameters and not right_calls(subject)}
    assert len(uncalled) <= UNCALLED, sorted(uncalled)

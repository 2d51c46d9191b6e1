"""Every public function: one name for budgets and for targets, and types that say something."""

from __future__ import annotations

import inspect
import re
from types import FunctionType

import layoutalg as la

PACKAGES = ("ask", "certify", "codegen", "convert", "cute", "draw", "f2", "hierarchy", "integer", "interop",
            "piecewise", "pipeline", "synth", "targets")  # fmt: skip
ANY = {
    "parse": "the text decides what it is",
    "layout": "the form decides the family",
    "ragged": "options go on to tensormap, which checks them by name",
    "suggest": "options go on to tensormap, which checks them by name",
    "tensormap": "options go on to a planner; symbolic sizes give a SymbolicPlan",
    "wgmma": "options go on to OperandProblem, which checks them by name",
    "joint": "options go on to tensormap, which checks them by name",
    "synthesize_ragged": "options go on to ragged, which checks them by name",
    "composition": "its overloads have the types",
    "attention_options": "values go on to attention_kernel by name",
}
"""Functions whose signature has Any, and why."""
OTHERS = {
    ("equivalent", "budget"): "it limits three engines apart",
    ("injective", "milliseconds"): "the time of z3 alone",
    ("to_cubin", "arch"): "an option of NVRTC",
    ("model_of", "arch"): "the only argument",
}
"""Arguments for time or target with other names, and why."""
OTHER = re.compile(r"seconds_|_seconds|budget|timeout|milliseconds|architecture|^arch$|^gpu$")


def functions() -> list[FunctionType]:
    """Every public function once."""
    homes = [la, *(getattr(la, name) for name in PACKAGES)]
    found = {getattr(home, name) for home in homes for name in home.__all__ if inspect.isfunction(getattr(home, name))}
    return sorted(found, key=lambda each: (each.__module__, each.__name__))


def test_a_signature_says_what_it_takes() -> None:
    vague, other = set(), set()
    for function in functions():
        signature = inspect.signature(function)
        types = [str(each.annotation) for each in signature.parameters.values()] + [str(signature.return_annotation)]
        vague |= {function.__name__ for each in types if re.search(r"\bAny\b", each)}
        other |= {(function.__name__, name) for name in signature.parameters if OTHER.search(name)}
    assert (vague, other) == (set(ANY), set(OTHERS))


def test_the_first_names_are_few() -> None:
    names = dir(la)
    assert 30 <= len(names) <= 48
    assert set(names) < set(la.__all__)
    assert {"layout", "equivalent", "banks", "swizzle", "suggest", "admissible", "InadmissibleError"} <= set(names)
    assert issubclass(la.InadmissibleError, la.LayoutError)

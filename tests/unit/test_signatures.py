"""Every public function: one name for budgets and for targets, and types that say something."""

from __future__ import annotations

import inspect
import re
from types import FunctionType

import pytest

import layoutalg as la

PACKAGES = ("ask", "certify", "codegen", "convert", "cute", "draw", "f2", "hierarchy", "integer", "interop",
            "piecewise", "pipeline", "synth", "targets")  # fmt: skip
ANY = {
    "parse": "the text decides what it is",
    "layout": "the form decides the family",
    "composition": "its overloads have the types",
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


TENSOR, TILE, SMEM = ((512, 512), None, "bf16"), (64, 64), "Sw<3,3,3> o 0 o (64,64):(64,1)"
CALLS = {
    "tensormap": lambda **options: la.tensormap(TENSOR, TILE, SMEM, **options),
    "suggest": lambda **options: la.suggest(TENSOR, TILE, **options),
    "admissible": lambda **options: la.admissible(SMEM, "tma", **options),
    "wgmma": lambda **options: la.wgmma("A", "bf16", TILE, SMEM, **options),
    "ragged": lambda **options: la.ragged(TENSOR, 2, TILE, SMEM, **options),
    "joint": lambda **options: la.synth.joint(TILE, **options),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_unknown_option_is_refused_with_near_names(name: str) -> None:
    for wrong, near in (("arch", "target="), ("gpu", "target="), ("targt", "target=")):
        with pytest.raises(la.MalformedError, match=rf"(?s)in     options.*not '{wrong}'.*near: {near}"):
            CALLS[name](**{wrong: "sm_90a"})
    with pytest.raises(la.MalformedError) as caught:
        CALLS[name](colour="red")
    assert "near" not in str(caught.value)

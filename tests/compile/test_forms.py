"""Which forms the assembler takes for which targets: sparse products with their selectors, narrow matrix moves."""

from __future__ import annotations

import pytest

from layoutalg.codegen.compile import CompileError, to_cubin
from layoutalg.ground.errors import MissingExtraError
from layoutalg.targets.layouts.nvidia_instructions import (
    ELEMENT_BITS,
    MMA_SP,
    VARIANTS,
    mma_sp_fragment,
    mma_sp_selectors,
    mma_sp_type,
)
from layoutalg.targets.nvidia.accesses import FORMS, available
from layoutalg.targets.target_model import model_of

pytestmark = pytest.mark.compile


def takes(text: str, arch: str) -> bool:
    head = 'extern "C" __global__ void k(unsigned* w, float* f, unsigned s) { '
    try:
        to_cubin(head + text + " }", arch)
    except CompileError:
        return False
    except MissingExtraError as error:
        pytest.skip(str(error))
    return True


def braced(first: int, count: int) -> str:
    return "{" + ", ".join(f"%{first + i}" for i in range(count)) + "}"


def sparse(name: str, variant: str, selector: int, result: str = "") -> str:
    """One sparse product; ``result`` in place of the instruction's own type of C and D."""
    made = MMA_SP[name]
    result = result or made.result
    counts = [
        mma_sp_fragment(name, operand).in_dims["register"] * ELEMENT_BITS[mma_sp_type(name, operand)] // 32
        for operand in "AB"
    ]
    sums = 2 if result == "f16" else 4
    kind, array = ("f", "f") if result == "f32" else ("r", "w")
    starts = [0, sums, sums + counts[0], sums + sum(counts)]
    groups = ", ".join(braced(at, many) for at, many in zip(starts, (sums, *counts, sums), strict=True))
    outputs = ", ".join(f'"={kind}"({array}[{i}])' for i in range(sums))
    inputs = ", ".join(['"r"(s)'] * sum(counts) + [f'"{kind}"({array}[{i}])' for i in range(sums)] + ['"r"(s)'])
    ptx = made.ptx(variant).replace(f".{made.result}", f".{result}")
    return f'asm volatile("{ptx} {groups}, %{starts[3] + sums}, {selector};" : {outputs} : {inputs});'


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_sparse_products_are_those_of_the_target(arch: str) -> None:
    known = [(name, variant) for name in MMA_SP for variant in VARIANTS
             if f"mma.{variant}.{name}" in model_of(arch).instructions]  # fmt: skip
    assert takes(" ".join(sparse(*form, mma_sp_selectors(form[0]) - 1) for form in known), arch)
    for name in MMA_SP:
        if (name, "sp") not in known:
            assert not takes(sparse(name, "sp", 0), arch), name
    assert len(known) == (48 if arch == "sm_80" else 56)


def test_a_selector_too_many_is_not_taken() -> None:
    for name in MMA_SP:
        if name != "m16n8k32.f32.f16":  # the assembler lets this one have 2 and 3, which documents do not
            assert not takes(sparse(name, "sp", mma_sp_selectors(name)), "sm_90a"), name


def test_sums_of_8_bit_floats_are_f32_alone() -> None:
    assert not takes(sparse("m16n8k64.f32.e4m3", "sp", 0, "f16"), "sm_90a")


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_narrow_matrix_moves_are_those_of_the_target(arch: str) -> None:
    asked = 0
    for name, form in FORMS.items():
        if not form.element_bits:
            continue
        head, shape, count, *kind = name.split(".")
        words = int(count[1]) * (2 if shape == "m16n16" else 1)
        tail = ".trans" if kind[0] == "trans" else ""
        opcode = f"{head}.sync.aligned.{shape}.{count}{tail}.shared.{'.'.join(kind[bool(tail) :])}"
        sides = ", ".join(f'"{"" if form.store else "="}r"(w[{i}])' for i in range(words))
        if form.store:
            text = f'asm volatile("{opcode} [%0], {braced(1, words)};" :: "r"(s), {sides} : "memory");'
        else:
            text = f'asm volatile("{opcode} {braced(0, words)}, [%{words}];" : {sides} : "r"(s) : "memory");'
        assert takes(text, arch) == available(form, arch), opcode
        asked += 1
    assert asked == 11

"""Attention as machine code: nothing in local memory, no multiply waits for another, waits and arrivals as proved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from instruments.elf import local_bytes

from layoutalg.codegen.compile import CompileError, to_cubin
from layoutalg.codegen.kernels import attention
from layoutalg.codegen.kernels.attention import AttentionKernel
from layoutalg.codegen.pipeline.reread import Launch, mismatch

pytest.importorskip("cuda.core", reason='no run-time compiler: pip install "layoutalg[cuda]"')
pytestmark = pytest.mark.compile
WAYS: list[dict[str, Any]] = [{"ahead": False}, {"ahead": True}, {"alternate": True}]


def attention_kernel(*given: Any, **options: Any) -> AttentionKernel:
    """A kernel with tiles of 128 x 128, unless others are asked for."""
    return attention.attention_kernel(*given, **{"tile": (128, 128), **options})


@pytest.mark.nightly(one_of=4)
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize(
    ("columns", "tile"), [(64, (128, 128)), (64, (192, 128)), (64, (128, 224)), (128, (128, 128)), (128, (128, 176))]
)
def test_registers_hold_everything(
    columns: int, tile: tuple[int, int], way: dict[str, Any], causal: bool, dtype: str
) -> None:
    made = attention_kernel(
        (8, 1000, 1000, columns), dtype, causal=causal, tile=tile, stages=1, consumers=tile[0] // 64, **way
    )
    code = to_cubin(made.kernel, strict=True)
    assert code[:4] == b"\x7fELF"
    assert local_bytes(code) == 0


def test_the_assembler_says_when_scores_are_used_too_early() -> None:
    kernel = attention_kernel((8, 1024, 1024, 128)).kernel
    changed = replace(kernel, text=kernel.text.replace("la_wgmma_wait<1>();", "la_wgmma_wait<2>();"))
    with pytest.raises(CompileError, match="LA981"):
        to_cubin(changed)


def falling(way: dict[str, Any]) -> AttentionKernel:
    """Causal attention in which block b takes 9 - b tiles of keys."""
    return attention_kernel((1, 1152, 1152, 64), causal=True, **way)


def launched(tiles: int) -> Launch:
    return Launch([None] * 5, 9 - tiles, 9)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_the_kernel_does_what_its_pipeline_says(way: dict[str, Any]) -> None:
    made = falling(way)
    assert mismatch(made.kernel, made.emitted.program.pipeline, launched) is None


WRONG = [
    ("la_wgmma_wait<1>();", "la_wgmma_wait<2>();", "math0.loop[12]"),
    ("which == 0 ? 16 : 8", "which == 0 ? 8 : 16", "math0.loop[11]"),
    ("la_arrive(barriers + 8);", "", "load.pre[0]"),
    ("la_fence_async();\n        la_role_barrier(1 + which, 128);", "la_fence_async();", "math0.post[9]"),
]


@pytest.mark.parametrize(("old", "new", "op"), WRONG)
def test_a_wrong_kernel_is_named_with_its_place(old: str, new: str, op: str) -> None:
    made = falling({"alternate": True})
    assert old in made.kernel.text
    wrong = replace(made.kernel, text=made.kernel.text.replace(old, new, 1))
    found = mismatch(wrong, made.emitted.program.pipeline, launched, trips=[2])
    assert found is not None
    assert found.witness["op"] == op, str(found)

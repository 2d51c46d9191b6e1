"""Attention becomes machine code in which nothing is in local memory and no multiply waits for another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from instruments.assembler import assembled
from instruments.elf import local_bytes

from layoutalg.codegen.kernels.attention import attention_kernel

pytest.importorskip("cuda.core", reason='no run-time compiler: pip install "layoutalg[cuda]"')
pytestmark = pytest.mark.compile


@pytest.mark.nightly(one_of=4)
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize(
    "options", [{}, {"causal": True}, {"ahead": False}, {"alternate": True, "causal": True}], ids=str
)
@pytest.mark.parametrize(
    ("columns", "tile"), [(64, (128, 128)), (64, (192, 128)), (128, (128, 128)), (128, (128, 176))]
)
def test_registers_hold_everything(columns: int, tile: tuple[int, int], options: dict[str, Any], dtype: str) -> None:
    made = attention_kernel((8, 1000, 1000, columns), dtype, tile=tile, consumers=tile[0] // 64, **options)
    code, log = assembled(made.kernel)
    assert code[:4] == b"\x7fELF"
    assert local_bytes(code) == 0
    assert log == ""


def test_the_assembler_says_when_scores_are_used_too_early() -> None:
    kernel = attention_kernel((8, 1024, 1024, 128)).kernel
    changed = replace(kernel, text=kernel.text.replace("la_wgmma_wait<1>();", "la_wgmma_wait<2>();"))
    assert changed != kernel
    assert "C7514" in assembled(changed)[1]

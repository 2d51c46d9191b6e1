"""Attention of drawn shapes, tiles, masks and schedules on the CPU against 64-bit floats."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from instruments.attention_runs import on_the_cpu
from judges.attention_judge import compared

from layoutalg.codegen import hostsim
from layoutalg.codegen.kernels import attention_kernel
from layoutalg.ground.errors import LayoutError

pytestmark = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
WAYS: list[dict[str, Any]] = [{"ahead": False}, {"ahead": True}, {"alternate": True}]


@settings(max_examples=24, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(
    st.integers(1, 260), st.integers(1, 300), st.sampled_from([64, 128]), st.sampled_from(["bf16", "f16"]),
    st.one_of(st.none(), st.integers(-300, 300)), st.integers(1, 3), st.integers(1, 8), st.integers(1, 3),
    st.sampled_from(WAYS), st.integers(0, 99),
)  # fmt: skip
def test_results_are_those_of_wide_floats(
    queries: int, keys: int, columns: int, dtype: str, shift: int | None, consumers: int, sixteens: int, stages: int,
    way: dict[str, Any], seed: int,
) -> None:  # fmt: skip
    masked = {} if shift is None else {"causal": True, "shift": shift}
    try:
        made = attention_kernel(
            (2, queries, keys, columns), dtype, tile=(64 * consumers, 16 * sixteens), stages=stages, **way, **masked
        )
    except LayoutError:
        assume(False)
    compared(on_the_cpu, made, dtype, seed=seed)

"""Kernels on routed and paged rows on the CPU: drawn data, empty groups, one token, duplicates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from judges.indirect_kernels import permuted, routed, unpermuted

from layoutalg.codegen import hostsim

pytestmark = pytest.mark.skipif(hostsim.compiler() is None, reason="needs a C++ compiler")
ARCHES = st.sampled_from(["sm_90a", "gfx942"])


def on_the_cpu(kernel: Any, arguments: list[Any], blocks: int) -> None:
    traced = hostsim.trace(kernel, arguments, blocks=blocks, races=True, capacity=2**22)
    assert traced.fault == 0, traced.why


@settings(max_examples=25, deadline=None)
@given(
    arch=ARCHES, experts=st.sampled_from([1, 3, 40]), block=st.sampled_from([1, 4, 16]), k=st.integers(1, 3),
    tokens=st.sampled_from([0, 1, 2, 31, 130, 341]), dtype=st.sampled_from(["s32", "s64"]), here=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
@example("sm_90a", 3, 4, 3, 500, "s32", True, 0)
@example("gfx942", 40, 16, 3, 900, "s64", False, 1)
def test_the_inspector_writes_the_lists_of_routing(arch, experts, block, k, tokens, dtype, here, seed):
    rng = np.random.default_rng(seed)
    crowded = rng.integers(0, experts, 2)  # most groups are empty
    ids = rng.choice(crowded, (tokens, k)) if seed % 2 else rng.integers(0, experts, (tokens, k))
    local = tuple(sorted(rng.integers(0, experts, 2).tolist())) if here else None
    routed(on_the_cpu, arch, ids, experts, block, local, dtype)


@settings(max_examples=25, deadline=None)
@given(
    arch=ARCHES, way=st.sampled_from(["push", "pull"]), tokens=st.integers(0, 40), k=st.integers(1, 9),
    row_bytes=st.sampled_from([16, 48, 192, 272, 1040, 14336, 65600]), seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_rows_go_to_their_places(arch, way, tokens, k, row_bytes, seed):
    permuted(on_the_cpu, arch, way, tokens if row_bytes < 10000 else tokens % 5, k, row_bytes, seed)


@settings(max_examples=20, deadline=None)
@given(
    arch=ARCHES, dtype=st.sampled_from(["bf16", "f16", "f32"]), tokens=st.integers(0, 20), k=st.integers(1, 9),
    columns=st.sampled_from([8, 24, 136, 7168]), seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_rows_are_added_with_weights(arch, dtype, tokens, k, columns, seed):
    unpermuted(on_the_cpu, arch, dtype, tokens if columns < 1000 else tokens % 4, k, columns, seed)

"""Kernels on routed and paged rows on the CPU: drawn data, empty groups, one token, duplicates."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from judges.indirect_kernels import paged, permuted, routed, unpermuted

from layoutalg.codegen import hostsim
from layoutalg.codegen.kernels.paged import paged_kernel
from layoutalg.ground.errors import AdmissibilityError, LayoutError
from layoutalg.proofs.indirect import Paged

pytestmark = pytest.mark.skipif(hostsim.compiler() is None, reason="needs a C++ compiler")
MANY = 99
"""Stands for so many tokens that threads move several vectors each."""
ARCHES = st.sampled_from(["sm_90a", "gfx942"])


def on_the_cpu(kernel: Any, arguments: list[Any], blocks: int, regions: Any = (), seed: int = 0) -> None:
    traced = hostsim.trace(kernel, arguments, blocks=blocks, races=True, capacity=2**22, regions=regions, seed=seed)
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
@example("sm_90a", "push", MANY, 1, 16, 0)
@example("sm_90a", "pull", MANY, 1, 16, 0)
def test_rows_go_to_their_places(arch, way, tokens, k, row_bytes, seed):
    if tokens == MANY:
        permuted(on_the_cpu, arch, way, 64, 1, 65600, seed)
        return
    permuted(on_the_cpu, arch, way, tokens if row_bytes < 10000 else tokens % 5, k, row_bytes, seed)


@settings(max_examples=20, deadline=None)
@given(
    arch=ARCHES, dtype=st.sampled_from(["bf16", "f16", "f32"]), tokens=st.integers(0, 20), k=st.integers(1, 9),
    columns=st.sampled_from([8, 24, 136, 7168]), seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
@example("sm_90a", "bf16", MANY, 1, 8, 0)
def test_rows_are_added_with_weights(arch, dtype, tokens, k, columns, seed):
    if tokens == MANY:
        unpermuted(on_the_cpu, arch, dtype, 300, 1, 7168, seed)
        return
    unpermuted(on_the_cpu, arch, dtype, tokens if columns < 1000 else tokens % 4, k, columns, seed)


@st.composite
def caches(draw, shared=True):
    """A paged sequence of rows of whole vectors; its pages in any order, or some of them twice."""
    size, heads = draw(st.sampled_from([1, 2, 3, 4, 16])), draw(st.sampled_from([1, 2, 3]))
    element = draw(st.sampled_from([1, 2, 4, 8]))
    dim = draw(st.sampled_from([16, 48, 256])) // element
    entries = draw(st.integers(1, 5))
    pages = draw(st.integers(entries, entries + 3))
    table = draw(st.lists(st.integers(0, pages - 1), min_size=entries, max_size=entries, unique=not shared))
    tokens = draw(st.integers((entries - 1) * size + 1, entries * size))
    stride = size * heads * dim * element + draw(st.sampled_from([0, 16, 272]))
    return Paged(table, size, heads, dim, element, draw(st.sampled_from(["NHD", "HND"])), tokens, pages, stride)


@settings(max_examples=40, deadline=None)
@given(arch=ARCHES, cache=caches(), more=st.integers(0, 40), seed=st.integers(0, 2**31))
def test_vectors_gather_pages_and_write_zeros_behind(arch, cache, more, seed):
    paged(on_the_cpu, arch, cache, "gather", "vector", seed, cache.tokens + more)


@settings(max_examples=40, deadline=None)
@given(arch=ARCHES, cache=caches(shared=False), seed=st.integers(0, 2**31))
def test_vectors_scatter_to_pages(arch, cache, seed):
    paged(on_the_cpu, arch, cache, "scatter", "vector", seed)


@settings(max_examples=25, deadline=None)
@given(
    cache=caches(shared=False), way=st.sampled_from(["bulk", "tma"]), direction=st.sampled_from(["gather", "scatter"]),
    seed=st.integers(0, 2**31),
)  # fmt: skip
@example(Paged([0], 3, 1, 16, 1, "NHD", 1, 1), "tma", "scatter", 0)  # the rest of the page must stay
@example(Paged([2, 0], 6, 2, 16, 1, "HND", 11, 3), "tma", "gather", 1)
def test_the_copy_engine_moves_pages(cache, way, direction, seed):
    try:
        paged_kernel(cache, direction, way=way)
    except LayoutError as refused:
        assert direction == "scatter", refused
        assert cache.tokens % cache.page_size
        return
    run = partial(on_the_cpu, seed=seed % 5)
    paged(run, "sm_90a", cache, direction, way, seed)


def test_no_store_through_a_page_twice():
    with pytest.raises(AdmissibilityError, match="LA939"):
        paged_kernel(Paged([1, 0, 1], 4, 1, 64, 2), "scatter")

"""Kernels on routed and paged rows on the CPU: drawn data, empty groups, one token, duplicates."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from judges.indirect_kernels import copied_runs, paged, permuted, routed, unpermuted

from layoutalg.codegen import hostsim
from layoutalg.codegen.kernels.paged import paged_kernel
from layoutalg.codegen.kernels.vectors import COPY_LOOP, CopyLoop
from layoutalg.ground.errors import AdmissibilityError, LayoutError
from layoutalg.proofs.indirect import Paged, PagedBatch

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


LOOPS = st.sampled_from([
    COPY_LOOP, CopyLoop(64, 1, 3, load=".nc", store=".cs"), CopyLoop(128, 2, 2, True, ".L2::evict_first"),
])  # fmt: skip


@st.composite
def batches(draw, shared=True):
    """Sequences of pages of one cache, some empty."""
    whole = draw(caches(shared))
    whole = replace(whole, seq_len=None)
    many = len(whole.page_table)
    indptr = [0, *sorted(draw(st.lists(st.integers(0, many), max_size=3))), many]
    last = [draw(st.integers(int(end > first), whole.page_size)) for first, end in itertools.pairwise(indptr)]
    return PagedBatch(whole, indptr, last)


@settings(max_examples=30, deadline=None)
@given(arch=ARCHES, cache=caches() | batches(), more=st.integers(0, 40), loop=LOOPS, seed=st.integers(0, 2**31))
@example("sm_90a", PagedBatch(Paged([], 4, 1, 64, 2, pages=2), [0, 0, 0], [0, 4]), 0, COPY_LOOP, 0)
def test_vectors_gather_pages_and_write_zeros_behind(arch, cache, more, loop, seed):
    tokens = cache.tokens if isinstance(cache, Paged) else int(cache.lengths.max())
    paged(on_the_cpu, arch, cache, "gather", "vector", seed, tokens + more, loop=loop)


@settings(max_examples=30, deadline=None)
@given(arch=ARCHES, cache=caches(shared=False) | batches(shared=False), loop=LOOPS, seed=st.integers(0, 2**31))
def test_vectors_scatter_to_pages(arch, cache, loop, seed):
    paged(on_the_cpu, arch, cache, "scatter", "vector", seed, loop=loop)


@settings(max_examples=25, deadline=None)
@given(
    arch=ARCHES, more=st.integers(0, 3), row_bytes=st.sampled_from([16, 48, 272, 1040]), seed=st.integers(0, 2**31),
    runs=st.lists(st.tuples(st.integers(0, 20), st.sampled_from([1, 1, 0, -1, 3]), st.integers(1, 5)), max_size=7),
)  # fmt: skip
@example("sm_90a", 0, 16, 0, [(2, 1, 3), (19, 1, 1), (0, 1, 5)])
def test_runs_of_rows_are_copied(arch, more, row_bytes, seed, runs):
    starts = [0, *itertools.accumulate(length for _, _, length in runs)]
    pieces = np.array([(at, *run) for at, run in zip(starts, runs, strict=False)], np.int64).reshape(-1, 4)
    copied_runs(on_the_cpu, arch, pieces, 16, more, row_bytes, seed)


def test_a_batch_with_a_shared_page_is_only_read():
    batch = PagedBatch(Paged([1, 2, 1], 4, 1, 64, 2), [0, 2, 3], [4, 4])
    assert paged_kernel(batch).what.startswith("gathers")
    with pytest.raises(AdmissibilityError, match=r"(?s)LA939.*page_table\[2\]"):
        paged_kernel(batch, "scatter")
    with pytest.raises(LayoutError, match="one sequence"):
        paged_kernel(batch, way="bulk")


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

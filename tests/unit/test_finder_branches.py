"""Branches of finders that random questions seldom need: each question here is answered wrongly without its branch."""

from __future__ import annotations

import pytest

import layoutalg as la
from layoutalg.f2 import LinearLayout
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.admission import Admitted
from layoutalg.synth import conversion, swizzle
from layoutalg.synth.swizzles.classes import universal_swizzle


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize(("text", "options"), [
    ("(2,12,64):(1536,128,1)", {}), ("((2,4),5,32):((320,2560),64,1)", {}),
    ("(8,(2,1),64):(128,(1024,2048),1)", {"interleave": "any"}),
])  # fmt: skip
def test_distinct_elements_are_distinct_in_global_memory(text, options, dtype):
    """The first pitches that are tried for these tiles are 0: boxes carry them, and all rows are one."""
    answer = la.admissible(text, "tma", dtype=dtype, distinct=True, **options)
    assert isinstance(answer, Admitted)
    problem = answer.descriptor.problem
    addresses = {0}
    for extent, stride in zip(problem.tile, problem.global_strides, strict=True):
        addresses = {address + step * stride for address in addresses for step in range(extent)}
    elements = 1
    for extent in problem.tile:
        elements *= extent
    assert len(addresses) == elements


def test_an_access_takes_narrower_instructions_where_its_lanes_cannot_all_start_at_wide_ones():
    columns = ((128, 8, 32, 256, 385, 205, 234, 16, 2), (32, 2, 128, 64, 256, 1, 16, 8, 4))
    axes = (("register", 4), ("lane", 5))
    plan = swizzle([LinearLayout(axes, (("x", 9),), each) for each in columns], element_bits=8).check()
    assert (plan.turns, plan.bound) == (20, 20)  # the next layings of the same width take 32


@pytest.mark.parametrize(("rows", "row_bytes"), [(1, 8), (1, 16), (2, 8)])
@pytest.mark.parametrize("classes", ["rows", "columns", ["rows", "columns"]])
def test_groups_of_wide_loads_that_share_their_cells_are_one(rows, row_bytes, classes):
    """A tile of one or two cells is loaded in one turn, and nothing takes fewer: the bound says so."""
    plan = universal_swizzle(rows, row_bytes, classes, "sm_90a", chunk_bytes=8).check().plan
    assert plan.turns == plan.bound == plan.ideal
    assert plan.optimal


def test_matrices_are_stored_by_whole_warps():
    """Lane bit 2 of the source holds copies, of which one is stored: its other lanes would not take part."""
    axes = (("register", 3), ("lane", 5), ("warp", 0))
    source = LinearLayout(axes, (("x", 7),), (4, 16, 8, 32, 1, 0, 2, 64))
    wanted = LinearLayout(axes, (("x", 7),), (32, 1, 16, 4, 64, 8, 2, 32))
    assert isinstance(conversion(source, wanted, 16, mechanism="matrices"), Unknown)

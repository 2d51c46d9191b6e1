"""Matrix products of drawn shapes, forms, types and orders on the CPU against exact integer products."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from judges.narrow_floats import MANTISSA, aligned, encoded

from layoutalg.codegen import hostsim
from layoutalg.codegen.kernels import Form, gemm_kernel
from layoutalg.ground.errors import LayoutError

pytestmark = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")


@st.composite
def forms(draw: st.DrawFn) -> Form:
    """Forms that need few registers and little shared memory."""
    consumers = draw(st.integers(1, 3))
    rows = 64 * consumers * draw(st.sampled_from([1, 1, 2]))
    columns = draw(st.sampled_from([32, 64, 128, 256]))
    leaving = draw(st.sampled_from([each for each in (32, 64, 128) if columns % each == 0]))
    cluster = draw(st.sampled_from([each for each in (1, 1, 2, 4) if columns % (16 * each) == 0]))
    stages, behind = draw(st.integers(2, 3)), draw(st.integers(0, 1))
    swizzle, depth = draw(st.sampled_from(["128B", "64B", "32B"])), draw(st.sampled_from([0, 0, 32, 64, 96, 192, 256]))
    return Form(rows, columns, consumers, leaving, cluster, behind, stages, draw(st.integers(1, 3)), depth, swizzle)


@st.composite
def splits(draw: st.DrawFn) -> Form:
    """Forms whose blocks share K."""
    consumers, split = draw(st.sampled_from([1, 1, 2, 3])), draw(st.sampled_from([2, 2, 4, 4, 8]))
    columns = draw(st.sampled_from([each for each in (32, 64, 96, 128, 256) if each % (16 * split) == 0]))
    leaving = draw(st.sampled_from([each for each in (16, 32, 48, 64, 128) if columns % (split * each) == 0]))
    stages, behind = draw(st.integers(2, 3)), draw(st.integers(0, 1))
    swizzle, depth = draw(st.sampled_from([("128B", 0), ("128B", 0), ("64B", 0), ("64B", 128), ("32B", 96)]))
    form = Form(64 * consumers, columns, consumers, leaving, 1, behind, stages, draw(st.integers(1, 3)), split=split)
    return replace(form, swizzle=swizzle, depth=depth)


@settings(max_examples=48, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(
    st.sampled_from(list(MANTISSA)), st.one_of(forms(), splits()),
    st.tuples(st.integers(1, 400), st.integers(1, 48), st.integers(1, 40)),
    st.tuples(st.booleans(), st.booleans()), st.sampled_from(["bf16", "f16"]), st.integers(0, 2**31),
)  # fmt: skip
def test_products_are_exact(
    kind: str, form: Form, size: tuple[int, int, int], turned: tuple[bool, bool], result: str, seed: int
) -> None:
    step = 128 // MANTISSA[kind][2]
    m, n, k = size[0], 8 * size[1], step * size[2]
    if turned[0]:
        m = 8 * (m // 8 + 1)
    majors: dict[str, Any] = {f"major_{side}": "MN" for side, turn in zip("ab", turned, strict=True) if turn}
    try:
        made = gemm_kernel((m, n, k), kind, form=form, result=result, **majors)
    except LayoutError:
        assume(False)
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-4, 5, (rows, k)) for rows in (m, n))
    left, right = (aligned(encoded(np.ascontiguousarray(each.T) if turn else each, kind))
                   for each, turn in zip((a, b), turned, strict=True))  # fmt: skip
    clusters = int(rng.integers(1, min(3, made.blocks // form.ctas) + 1))
    blocks = clusters * form.ctas
    d, status = aligned(np.full((m, n), 0x7E7E, dtype=np.uint16)), np.zeros(blocks, dtype=np.int32)
    regions = [(each.ctypes.data, each.nbytes) for each in (left, right, d)]
    fault = hostsim.run(
        made.kernel, made.arguments(left, right, d, blocks, status), blocks=blocks, cluster=form.ctas,
        regions=regions, seed=seed % 5,
    )  # fmt: skip
    assert hostsim.FAULTS[fault] == "none"
    assert [made.emitted.gave_up(int(word)) for word in status] == [""] * blocks
    assert np.array_equal(d, encoded(a @ b.T, result))

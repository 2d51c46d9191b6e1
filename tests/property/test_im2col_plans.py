"""Laws of im2col maps and plans on random ones; a plan is judged by the matrix of its convolution."""

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg.ground.errors import LayoutError, MalformedError
from layoutalg.proofs.im2col import ColumnIssue, ConvolutionPlan, ConvolutionProblem, check
from layoutalg.proofs.tensor import Tensor
from layoutalg.synth.im2col import InadmissibleConvolutionError, synthesize_im2col
from layoutalg.targets.nvidia import im2col, tensormap
from layoutalg.targets.nvidia.im2col import Im2colMap


@st.composite
def maps(draw: st.DrawFn, interleaved: bool = False) -> Im2colMap:
    """Maps that the driver accepts."""
    rank = draw(st.integers(3, 5))
    low, high = im2col.CORNER_RANGES[rank]
    dtype = draw(st.sampled_from(("u8", "f16", "f32", "tf32", "u64")))
    size = tensormap.element_bytes(dtype)
    interleave = draw(st.sampled_from(("16B", "32B"))) if interleaved else "NONE"
    swizzle = draw(st.sampled_from(("NONE", "32B", "64B", "128B")))
    most = 16 if swizzle == "NONE" else tensormap.swizzle_span_bytes(swizzle) // 16
    dims = draw(st.tuples(*[st.integers(1, 40)] * rank))
    spatial = dims[:-2] if interleaved else dims[1:-1]
    lower, upper = [], []
    for extent in spatial:
        corner = draw(st.integers(max(low, -9), min(high, 9)))
        least = max(low, corner - extent + 1)
        lower.append(corner)
        upper.append(draw(st.integers(least, max(least, min(high, 9)))))
    return Im2colMap(
        dtype, dims, draw(st.tuples(*[st.integers(0, 2**30).map(lambda n: 32 * n)] * (rank - 1))), tuple(lower),
        tuple(upper), 16 // size * draw(st.integers(1, min(most, 16 if size > 1 else 15))), draw(st.integers(1, 900)),
        draw(st.tuples(*[st.integers(1, 8)] * rank)), interleave, swizzle, draw(st.sampled_from(("NONE", "256B"))),
        draw(st.sampled_from(("ZERO", "NAN"))) if tensormap.DTYPES[dtype].is_float else "ZERO",
        32 * draw(st.integers(0, 2**50)),
    )  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(st.one_of(maps(), maps(interleaved=True)), st.integers(0, 1023))
def test_decode_is_the_inverse_of_encode(tm: Im2colMap, bit: int) -> None:
    assert im2col.violations(tm) == ()
    raw = im2col.encode(tm)
    assert im2col.decode(raw) == tm
    turned = (int.from_bytes(raw, "little") ^ 1 << bit).to_bytes(128, "little")
    try:
        other = im2col.decode(turned)
    except LayoutError:
        return
    assert other != tm
    assert im2col.encode(other) == turned


def matrix_element(problem: ConvolutionProblem, row: int, tap: tuple[int, ...], channel: int) -> tuple[int, ...] | None:
    """The input element of the convolution's matrix, by its definition; None is a zero."""
    if row >= problem.rows or channel >= problem.tensor.shape[-1]:
        return None
    image, *places = np.unravel_index(row, (problem.tensor.shape[0], *problem.outputs))
    spatial = [
        int(o) * s - p + k * d
        for o, s, p, k, d in zip(places, problem.stride, problem.padding, tap, problem.dilation, strict=True)
    ]
    if not all(0 <= x < extent for x, extent in zip(spatial, problem.tensor.shape[1:-1], strict=True)):
        return None
    return (int(image), *spatial, channel)


def random_problem(rng: random.Random) -> ConvolutionProblem:
    spatial = rng.randint(1, 3)
    dtype, size = rng.choice((("bf16", 2), ("f32", 4), ("u8", 1)))
    shape = (rng.randint(1, 3), *[rng.randint(1, 9) for _ in range(spatial)], 16 // size * rng.randint(1, 5))
    strides, reach = [1], shape[-1] + 16 // size * rng.randint(0, 1)
    for extent in reversed(shape[:-1]):
        strides.append(reach)
        reach *= extent
    return ConvolutionProblem(
        Tensor(shape, tuple(reversed(strides)), dtype), tuple(rng.randint(1, 3) for _ in range(spatial)),
        rng.choice((8, 16, 24, 32)), 16 // size * rng.choice((1, 2, 4, 8)),
        tuple(rng.randint(1, 3) for _ in range(spatial)), tuple(rng.randint(1, 2) for _ in range(spatial)),
        tuple(rng.randint(0, 2) for _ in range(spatial)), tuple(rng.randint(0, 2) for _ in range(spatial)),
    )  # fmt: skip


def judged(plan: ConvolutionPlan, rng: random.Random) -> int:
    """Load one tile of a random tap through the model and compare every element with the matrix."""
    problem = plan.problem
    size = tensormap.element_bytes(problem.tensor.dtype)
    spans = zip(problem.tensor.shape, problem.tensor.stride or (), strict=True)
    total = (1 + sum((extent - 1) * stride for extent, stride in spans)) * size
    memory = np.random.default_rng(total).integers(1, 256, total + 64, dtype=np.uint8)
    tap = tuple(rng.randrange(taps) for taps in problem.filter)
    row, channel = rng.randrange(problem.rows), problem.channels * rng.randint(0, 1)
    image = np.full(plan.smem_bytes + 1024, 0xEE, np.uint8)
    counted = 0
    for issue in plan.issues:
        start = plan.start(issue, row, channel)
        counted += im2col.im2col_load(plan.tensor_map, start, plan.offsets(tap), memory, image, issue.smem_offset_bytes)
    assert counted == plan.expect_tx_bytes
    tm, pitch = plan.tensor_map, im2col.row_pitch_bytes(plan.tensor_map)
    for issue, p, c in itertools.product(plan.issues, range(tm.pixels_per_column), range(tm.channels_per_pixel)):
        at = issue.smem_offset_bytes + p * pitch + c * size
        where = int(tensormap.apply_swizzle(tm.swizzle, at // 16 * 16)) + at % 16
        element = matrix_element(problem, row + issue.row + p, tap, channel + issue.channel + c)
        want = bytes(size)
        if element is not None:
            byte = sum(x * s for x, s in zip(element, problem.tensor.stride or (), strict=True)) * size
            want = memory[byte : byte + size].tobytes()
        assert image[where : where + size].tobytes() == want, (plan, row, tap, channel, p, c)
    return counted


def test_plans_load_the_matrix_of_the_convolution() -> None:
    rng = random.Random(5)
    planned = refused = 0
    for _ in range(60):
        try:
            problem = random_problem(rng)
        except MalformedError:
            continue  # the filter does not fit the padded input
        try:
            plan = synthesize_im2col(problem)
        except InadmissibleConvolutionError as error:
            refused += 1
            assert error.violations
            continue
        planned += 1
        assert check(plan)
        assert plan.to_json()["hex"] == plan.raw.hex()
        assert str(plan).startswith("im2col map")
        for _ in range(2):
            judged(plan, rng)
    assert planned > 30


BASE = ConvolutionProblem(Tensor((2, 9, 9, 64)), (3, 3), 32, 64, (2, 2), (1, 1), (1, 1))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"stride": (9, 1)}, "ELEM_STRIDE"),
        ({"filter": (1, 3), "dilation": (1, 300), "padding": (0, 600), "stride": (1, 8)}, "CORNER_RANGE"),
        ({"tensor": Tensor((2, 9, 9, 64), (5184 * 64, 9 * 64, 64, 2))}, "CHANNELS_CONTIGUOUS"),
        ({"tensor": Tensor((2, 9, 9, 60))}, "STRIDE_ALIGN"),
        ({"channels": 4}, "CHANNELS_16B"),
        ({"channels": 8, "swizzle": "NONE", "pixels": 1025}, "SMEM_ALIGN"),
    ],
)
def test_refusals_name_the_rule(change: dict[str, Any], rule: str) -> None:
    fields = {name: getattr(BASE, name) for name in ("tensor", "filter", "pixels", "channels", "stride", "dilation",
                                                     "padding")} | {"padding_after": ()} | change  # fmt: skip
    with pytest.raises(InadmissibleConvolutionError) as caught:
        synthesize_im2col(ConvolutionProblem(**fields))
    assert rule in [entry.rule for entry in caught.value.violations]


def test_the_checker_refutes_every_changed_plan() -> None:
    plan = synthesize_im2col(BASE)
    tm = plan.tensor_map
    fields = {name: getattr(tm, name) for name in tm.__slots__}
    for change in (
        {"lower_corner": (0, -1)}, {"upper_corner": (-3, -1)}, {"upper_corner": (1, -1)}, {"dims": (64, 9, 9, 3)},
        {"element_strides": (1, 2, 1, 1)}, {"element_strides": (1, 2, 2, 2)}, {"strides_bytes": (128, 1152, 10384)},
        {"oob_fill": "NAN"}, {"pixels_per_column": 31}, {"channels_per_pixel": 56},
    ):  # fmt: skip
        assert not check(ConvolutionPlan(BASE, Im2colMap(**fields | change), plan.issues)), change
    for issues in ((), plan.issues * 2, (ColumnIssue(1, 0, 0),), (ColumnIssue(0, 0, 64),)):
        assert not check(ConvolutionPlan(BASE, tm, issues))
    assert math.prod(BASE.outputs) * 2 == BASE.rows == 50

"""Products on a real GPU, results exact: tiles whose copies and descriptors the finders give, and whole kernels."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from instruments.operands import PRODUCTS, proved_operand

from layoutalg.codegen import launch
from layoutalg.codegen.kernels import Form, gemm_kernel, grouped_gemm_kernel
from layoutalg.codegen.product import Operand, validate_product

pytestmark = pytest.mark.device("sm_90a")


@pytest.mark.parametrize(("major_a", "swizzle_a", "major_b", "swizzle_b", "m", "n", "k"), PRODUCTS)
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_products_are_exact(major_a, swizzle_a, major_b, swizzle_b, m, n, k, dtype):
    a, b = proved_operand("A", m, k, major_a, swizzle_a, dtype), proved_operand("B", n, k, major_b, swizzle_b, dtype)
    inside = tuple(tuple(multiple for multiple in side.copy.problem.origin_multiple) for side in (a, b))
    for origins in (None, inside):
        report = validate_product(a, b, origins, device="cuda", seed=3)
        assert report, report
        assert report.backend == "cuda"


def test_wrong_descriptors_give_a_wrong_product():
    a, b = proved_operand("A", 64, 64, "K", "128B"), proved_operand("B", 64, 64, "K", "128B")
    other = proved_operand("B", 64, 64, "K", "64B")
    report = validate_product(a, Operand(b.copy, b.view, other.consumer), device="cuda")
    assert report.difference is not None


@pytest.mark.parametrize("majors", ["KK", "MN", "KN"])
@pytest.mark.parametrize(
    "form",
    [
        Form(128, 256, swizzle="64B"),
        Form(128, 128, swizzle="64B", depth=192),
        Form(128, 128, depth=256),
        Form(192, 192, 3, swizzle="32B", depth=96),
        Form(64, 128, 1, swizzle="64B", cluster=2, behind=1),
    ],
    ids=str,
)
def test_products_of_any_span_are_exact(form, majors):
    m, n, k = 520, 776, 360
    sides = {f"major_{side}": "K" if major == "K" else "MN" for side, major in zip("ab", majors, strict=True)}
    made = gemm_kernel((m, n, k), "f16", form=form, result="f16", **sides)
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-3, 4, (rows, k)).astype(np.float16) for rows in (m, n))
    d, status = np.full((m, n), np.nan, np.float16), np.zeros(made.blocks, np.int32)
    given = [each if major == "K" else np.ascontiguousarray(each.T) for each, major in zip((a, b), majors, strict=True)]
    arrays = [launch.upload(array) for array in (*given, d)]
    launch.run(made.kernel, made.arguments(*arrays, made.blocks, status), blocks=made.blocks)
    found = launch.download(arrays[2], 0, d.nbytes).view(np.float16).reshape(m, n)
    assert (status == 1).all()
    assert np.array_equal(found, (a.astype(np.float32) @ b.T.astype(np.float32)).astype(np.float16))


SPLITS = [
    Form(64, 64, 1, 32, behind=1, split=2), Form(64, 128, 1, 32, split=4), Form(64, 128, 1, 16, behind=1, split=8),
    Form(128, 128, 2, 16, split=8), Form(128, 192, 2, 48, split=2), Form(128, 256, 2, 64, split=2),
    Form(192, 128, 3, 16, split=4), Form(64, 256, 1, 16, behind=1, split=8),
]  # fmt: skip
"""Forms whose blocks share K: every split, one and several rounds, one to three consumers."""
OTHERS = [
    Form(128, 256, 2, 128), Form(128, 256, 2, 128, cluster=2, together=8), Form(192, 128, 3, 64, behind=1),
    Form(64, 256, 1, 128, cluster=4), Form(64, 32, 1, 32, behind=1),
]  # fmt: skip
SHAPES = [(16, 4096, 4096), (512, 512, 8192), (129, 520, 1032), (1, 8, 4104), (333, 1000, 2056), (1000, 264, 136)]
KINDS = {"bf16": "bfloat16", "f16": "float16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}


def multiplied(
    shape: tuple[int, int, int], dtype: str, form: Form | None, data: str, **options: Any
) -> tuple[Any, Any]:
    """The result of a kernel, which has to succeed in every block, and the product in double precision."""
    torch = pytest.importorskip("torch")
    m, n, k = shape
    result = "f16" if dtype == "f16" else "bf16"
    made = gemm_kernel(shape, dtype, form=form, result=result, **options)
    generator = torch.Generator(device="cuda").manual_seed(m + n + k)
    sides = []
    for rows, major in ((m, options.get("major_a", "K")), (n, options.get("major_b", "K"))):
        extents = (rows, k) if major == "K" else (k, rows)
        if data == "integers":
            drawn = torch.randint(-2, 3, extents, device="cuda", generator=generator).float()
        else:
            drawn = torch.randn(extents, device="cuda", generator=generator)
        sides.append(drawn.to(getattr(torch, KINDS[dtype])))
    a, b = (side if major == "K" else side.t() for side, major in zip(
        sides, (options.get("major_a", "K"), options.get("major_b", "K")), strict=True))  # fmt: skip
    d = torch.full((m, n), torch.nan, dtype=getattr(torch, KINDS[result]), device="cuda")
    blocks = min(made.blocks, 128 // made.form.ctas * made.form.ctas)
    status = np.zeros(blocks, dtype=np.int32)
    places = [side.data_ptr() for side in (*sides, d)]
    torch.cuda.synchronize()
    launch.run(made.kernel, made.arguments(*places, blocks, status), blocks=blocks)
    assert [made.emitted.gave_up(int(word)) for word in status] == [""] * blocks
    return d, a.double() @ b.double().t()


@pytest.mark.parametrize("form", SPLITS + OTHERS, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_products_of_integers_are_exact(shape: tuple[int, int, int], form: Form) -> None:
    """Every partial sum is an integer that a float holds: whatever the order, the result is the one rounded once."""
    found, wanted = multiplied(shape, "bf16", form, "integers")
    assert bool((found == wanted.to(found.dtype)).all())


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("form", [None, *SPLITS[:6]], ids=str)
@pytest.mark.parametrize("shape", [(512, 512, 8192), (77, 264, 1040)])
def test_products_of_every_type(shape: tuple[int, int, int], form: Form | None, dtype: str) -> None:
    found, wanted = multiplied(shape, dtype, form, "integers")
    assert bool((found == wanted.to(found.dtype)).all())
    found, wanted = multiplied(shape, dtype, form, "normal")
    error = float((found.double() - wanted).abs().max() / wanted.abs().max())
    # 8-bit operands are summed by the tensor cores with fewer bits than a float has
    assert error < (2e-3 if dtype == "f16" else 8e-3), error


@pytest.mark.parametrize("majors", ["KN", "MK", "MN"])
def test_split_products_of_every_order(majors: str) -> None:
    sides = {f"major_{side}": "K" if major == "K" else "MN" for side, major in zip("ab", majors, strict=True)}
    found, wanted = multiplied((264, 512, 2056), "bf16", Form(64, 128, 1, 32, split=4), "integers", **sides)
    assert bool((found == wanted.to(found.dtype)).all())


def test_a_split_product_has_the_same_bits_every_time() -> None:
    first, _ = multiplied((512, 512, 8192), "bf16", Form(128, 128, 2, 16, split=8), "normal")
    for _ in range(8):
        again, _ = multiplied((512, 512, 8192), "bf16", Form(128, 128, 2, 16, split=8), "normal")
        assert bool((first == again).all())


@pytest.mark.parametrize("major", ["K", "MN"])
@pytest.mark.parametrize(
    "form",
    [Form(64, 256, 1, 128, behind=1), Form(128, 256, 2, 128), Form(192, 192, 3, 64), Form(128, 64, 1, 64)],
    ids=str,
)
def test_products_of_groups_are_exact(form, major):
    rows, groups, n, k = 1200, 24, 520, 360
    made = grouped_gemm_kernel(rows, groups, n, k, "f16", form=form, result="f16", major_b=major, given="sizes")
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((rows, k), (groups, n, k)))
    right = launch.upload(b if major == "K" else np.ascontiguousarray(b.transpose(0, 2, 1)))
    left, schedule = launch.upload(a), launch.upload(np.zeros(made.schedule_words, np.int32))
    for seed in range(4):
        sizes = np.random.default_rng(seed).choice([0, 1, 3, 31, 63, 64, 65, 100, 127, 128, 129], groups)
        sizes[np.cumsum(sizes) > rows] = 0
        if seed == 3:
            sizes[:] = 0
            sizes[7] = rows
        listed, d = launch.upload(sizes.astype(np.int32)), launch.upload(np.full((rows, n), np.nan, np.float16))
        launch.run(made.scheduler, made.schedule_arguments(listed, schedule), blocks=made.schedule_blocks)
        blocks = min(made.blocks, 132)
        status = np.zeros(blocks, np.int32)
        launch.run(made.kernel, made.arguments(left, right, d, schedule, blocks, status), blocks=blocks)
        found = launch.download(d, 0, 2 * rows * n).view(np.float16).reshape(rows, n)
        ends = np.cumsum([0, *sizes])
        assert (status == 1).all()
        assert np.isnan(found[ends[-1] :]).all()
        for group, (first, last) in enumerate(pairwise(ends)):
            wanted = a[first:last].astype(np.float32) @ b[group].astype(np.float32).T
            assert np.array_equal(found[first:last], wanted.astype(np.float16))

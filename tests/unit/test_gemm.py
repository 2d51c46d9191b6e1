"""Matrix products from a proved pipeline: on the CPU against exact products, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from layoutalg.codegen import hostsim
from layoutalg.codegen.kernels.gemm import gemm_kernel, matmul_pipeline
from layoutalg.codegen.kernels.gemm_forms import TIMES, Form, forms, stages_of
from layoutalg.ground.errors import InfeasibleError, MalformedError
from layoutalg.proofs.pipeline.decision import Proved, verify

needs_compiler = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
Words = npt.NDArray[Any]


def rounded(values: npt.NDArray[np.float32]) -> Words:
    """The bits of bf16, to nearest even."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def e4m3(values: npt.NDArray[np.float32]) -> Words:
    """The bits of integers from -8 to 8 as e4m3: bias 7, three bits of mantissa."""
    size = np.abs(values).astype(np.int64)
    top = np.maximum(size, 1).astype(np.float64)
    exponent = np.floor(np.log2(top)).astype(np.int64)
    bits = (exponent + 7 << 3) | (size * 8 >> exponent) - 8
    return np.where(size == 0, 0, bits | np.where(values < 0, 0x80, 0)).astype(np.uint8)


def aligned(array: Words) -> Words:
    """A copy at a multiple of 256 bytes."""
    room = np.zeros(array.nbytes + 256, dtype=np.uint8)
    first = -room.ctypes.data % 256
    copy = room[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


BITS = {"bf16": rounded, "f16": lambda values: values.astype(np.float16).view(np.uint16), "e4m3": e4m3}
CASES: list[tuple[tuple[int, int, int], int, dict[str, Any]]] = [
    ((256, 512, 256), 2, {}),
    ((200, 328, 136), 3, {"form": Form(128, 256, leaving=128)}),
    ((16, 256, 128), 1, {"form": Form(128, 256, leaving=128)}),
    ((1, 8, 8), 1, {"form": Form(128, 32, leaving=32)}),
    ((256, 128, 128), 1, {"form": Form(256, 64), "dtype": "f16", "result": "f16"}),
    ((128, 64, 64), 1, {"form": Form(64, 64, 1)}),
    ((136, 200, 200), 2, {"form": Form(128, 32, leaving=32, stages=2, behind=1)}),
    ((200, 192, 72), 1, {"form": Form(192, 96, 3, leaving=32, together=1)}),
    ((256, 128, 128), 1, {"form": Form(128, 128), "major_b": "MN"}),
    ((192, 136, 72), 1, {"form": Form(128, 64), "major_a": "MN", "major_b": "MN"}),
    ((130, 136, 272), 2, {"form": Form(128, 64), "dtype": "e4m3"}),
    ((300, 264, 136), 2, {"form": Form(128, 256, leaving=128, cluster=2)}),
    ((300, 264, 200), 4, {"form": Form(128, 128, cluster=2, behind=1, stages=3)}),
    ((520, 256, 200), 4, {"form": Form(64, 256, 1, cluster=4), "major_b": "MN"}),
    ((70, 136, 520), 2, {"form": Form(64, 64, 1, 16, split=2)}),
    ((130, 136, 200), 4, {"form": Form(128, 128, 2, 32, split=4, behind=1), "dtype": "f16", "result": "f16"}),
    ((1, 264, 1040), 8, {"form": Form(64, 256, 1, 16, split=8), "dtype": "e4m3"}),
    ((200, 96, 72), 2, {"form": Form(192, 64, 3, 16, split=2), "major_a": "MN", "major_b": "MN"}),
    ((200, 136, 96), 2, {"form": Form(128, 64, swizzle="64B", depth=192, stages=3)}),
    ((200, 136, 160), 2, {"form": Form(128, 64, swizzle="64B", cluster=2)}),
    ((130, 72, 80), 1, {"form": Form(64, 32, 1, leaving=32, swizzle="32B", depth=96, behind=1)}),
    ((192, 136, 104), 1, {"form": Form(128, 64, swizzle="64B", depth=32), "major_a": "MN", "major_b": "MN"}),
    ((136, 136, 200), 1, {"form": Form(128, 64, depth=256), "major_b": "MN"}),
    ((130, 136, 272), 2, {"form": Form(128, 64, swizzle="64B", depth=128), "dtype": "e4m3"}),
]


@needs_compiler
@pytest.mark.parametrize(("shape", "blocks", "options"), CASES)
def test_products_are_exact(shape: tuple[int, int, int], blocks: int, options: dict[str, Any]) -> None:
    """Integers from -4 to 4: every sum is exact, and rounded once."""
    made = gemm_kernel(shape, **options)
    m, n, k = shape
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-4, 5, (rows, k)).astype(np.float32) for rows in (m, n))
    kind, result = options.get("dtype", "bf16"), options.get("result", "bf16")
    wanted = BITS[result](a @ b.T)
    left, right = (aligned(BITS[kind](np.ascontiguousarray(each.T) if options.get(f"major_{side}") == "MN" else each))
                   for side, each in (("a", a), ("b", b)))  # fmt: skip
    d, status = aligned(np.zeros((m, n), dtype=np.uint16)), np.zeros(blocks, dtype=np.int32)
    regions = [(each.ctypes.data, each.nbytes) for each in (left, right, d)]
    fault = hostsim.run(
        made.kernel,
        made.arguments(left, right, d, blocks, status),
        blocks=blocks,
        cluster=made.form.ctas,
        regions=regions,
    )
    assert hostsim.FAULTS[fault] == "none"
    assert [made.emitted.gave_up(int(word)) for word in status] == [""] * blocks
    assert np.array_equal(d, wanted)


MEET = "la_role_barrier(1 + which, 128);\n                if (issuer) la_arrive"
WRONG = [
    (f"la_fence_async();\n                {MEET}", MEET, "without la_fence_async"),
    ("la_wait_phase_cluster(barriers + 48, parity1c, 4, kc, gave_up);", "", "a load in flight writes was used"),
    ("la_wait_phase_cluster(barriers + 56, parity1c ^ 1, 3, kc, gave_up);", "", "in flight"),
    ("if (issuer) la_arrive_expect_tx(barriers + 48, 12288u);", "", "in flight"),
    ("if (leader) for (la_u32 to", "if (leader && t < 96) for (la_u32 to", "a load in flight"),
    ("+ at, 4096, (barriers", "+ at, 4080, (barriers", "barrier used"),
    ("+ far + 1) & 3;", "+ 1) & 3;", "wrong"),
    ("at = far * 4096, to", "at = (2 - far) * 4096, to", "wrong"),
]
"""Text of a kernel whose blocks share K, another text, and what the CPU says of it."""


@needs_compiler
@pytest.mark.parametrize(("old", "new", "told"), WRONG)
def test_wrong_exchanges_are_seen(old: str, new: str, told: str) -> None:
    """Two tiles for one cluster, in several orders of events."""
    made = gemm_kernel((128, 64, 512), form=Form(64, 64, 1, 16, split=4, stages=3))
    assert old in made.kernel.text
    kernel = replace(made.kernel, text=made.kernel.text.replace(old, new))
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-4, 5, (rows, 512)).astype(np.float32) for rows in (128, 64))
    left, right = aligned(rounded(a)), aligned(rounded(b))
    found = set()
    for seed in range(6):
        d, status = aligned(np.zeros((128, 64), dtype=np.uint16)), np.zeros(4, dtype=np.int32)
        regions = [(each.ctypes.data, each.nbytes) for each in (left, right, d)]
        fault = hostsim.run(
            kernel, made.arguments(left, right, d, 4, status), blocks=4, cluster=4, regions=regions, seed=seed
        )
        found.add(hostsim.FAULTS[fault])
        if not fault:
            found |= {"gave up"} if any(status != 1) else {"wrong"} if (d != rounded(a @ b.T)).any() else set()
    assert any(told in one for one in found), found


@pytest.mark.parametrize("stages", [1, 2, 4, 8])
@pytest.mark.parametrize("consumers", [1, 2, 3])
@pytest.mark.parametrize(("cluster", "behind"), [(1, 0), (1, 1), (2, 0), (2, 1), (4, 1)])
def test_the_pipeline_is_proved(stages: int, consumers: int, cluster: int, behind: int) -> None:
    """One slot cannot be handed back an iteration later."""
    found = verify(matmul_pipeline(stages, consumers, 1024, 2048, 1024, cluster, behind))
    assert isinstance(found, Proved) == (stages > behind)


@pytest.mark.parametrize("split", [2, 4, 8])
@pytest.mark.parametrize("consumers", [1, 3])
def test_the_pipeline_of_a_split_is_proved(consumers: int, split: int) -> None:
    found = verify(matmul_pipeline(3, consumers, 1024, 2048, 1024, 1, 1, split, 1024))
    assert isinstance(found, Proved)
    assert split > 4 or found.to_certificate().check()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shape": (64, 64)}, "3 extents"),
        ({"dtype": "f32"}, "dtype"),
        ({"result": "f32"}, "result"),
        ({"form": (128, 256)}, "form"),
        ({"form": Form(192, 256, 3, 128)}, "96 accumulators"),
        ({"form": Form(128, 128, cluster=4), "major_b": "MN"}, "64 columns"),
        ({"dtype": "e4m3", "major_b": "MN"}, "major_b"),
        ({"shape": (1024, 1024, 64), "form": Form(64, 64, 1, 32, split=2)}, "K of one step, 64"),
        ({"target": "sm_100a"}, "sm_90a"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(Exception, match=words) as told:
        gemm_kernel(**{"shape": (1024, 1024, 1024), **options})
    assert isinstance(told.value, (MalformedError, InfeasibleError, ValueError))


def test_more_stages_than_fit_are_refused() -> None:
    with pytest.raises(InfeasibleError, match="shared memory"):
        gemm_kernel((1024, 1024, 1024), form=Form(128, 256, stages=5))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rows": 96}, "multiple of 128"),
        ({"columns": 100}, "multiple of 16"),
        ({"leaving": 96}, "divide 256"),
        ({"stages": 1}, "2 to 8"),
        ({"consumers": 0}, "consumers"),
        ({"consumers": 4}, "consumers"),
        ({"cluster": 3}, "power of two"),
        ({"columns": 48, "leaving": 16, "cluster": 2}, "divides 3"),
        ({"behind": 2}, "behind"),
        ({"together": 0}, "together"),
        ({"split": 3}, "1, 2, 4 or 8"),
        ({"split": 16}, "split"),
        ({"split": 2, "cluster": 2}, "1 with a cluster"),
        ({"split": 8}, "leave 64 columns of 256"),
        ({"split": 2, "rows": 256}, "64 rows per consumer"),
        ({"depth": 48}, "multiple of 32 bytes"),
        ({"depth": 544}, "depth"),
        ({"swizzle": "NONE"}, "swizzle"),
        ({"swizzle": 64}, "swizzle"),
    ],
)
def test_a_form_that_cannot_be_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(MalformedError, match=words):
        Form(**{"rows": 128, "columns": 256, **options})


@pytest.mark.parametrize(
    ("form", "majors", "words"),
    [
        (Form(128, 256, depth=64), {}, "whole spans of 128 bytes, not 64"),
        (Form(128, 256, depth=96, swizzle="64B"), {"major_b": "MN"}, "whole spans of 64 bytes, not 96"),
        (Form(128, 256, cluster=2, depth=128, swizzle="64B"), {}, "one span, 64 bytes, in a cluster, not 128"),
        (Form(128, 256, cluster=8), {"major_b": "MN"}, "multiple of 64 columns of B per block"),
        (Form(128, 80, leaving=80 // 5, swizzle="64B"), {"major_b": "MN"}, "multiple of 32 columns of B per block"),
    ],
)
def test_tiles_are_whole_spans(form: Form, majors: dict[str, str], words: str) -> None:
    with pytest.raises(MalformedError, match=words):
        gemm_kernel((512, 512, 512), form=form, **majors)


def test_any_depth_goes_with_spans_along_m_and_n() -> None:
    made = gemm_kernel((512, 512, 288), form=Form(128, 256, depth=96), major_a="MN", major_b="MN")
    assert (made.form.step_bytes, made.form.stages) == (96, 5)


@pytest.mark.parametrize("form", TIMES, ids=str)
def test_every_form_of_the_table_has_a_kernel(form: Form) -> None:
    made = gemm_kernel((1000, 1000, 1000), form=form)
    assert 3 <= made.form.stages == min(8, stages_of(form))


def test_a_deep_product_is_split() -> None:
    """With few tiles, blocks share K; with many, an exchange would only cost."""
    assert forms((512, 512, 8192), 2, True)[0][1].split >= 4
    assert forms((16, 4096, 4096), 2, True)[0][1].split >= 2
    assert all(forms((size, size, size), 2, True)[0][1].split == 1 for size in (4096, 8192))


@pytest.mark.parametrize("shape", [(4096, 4096, 4096), (1, 8, 8), (129, 8192, 4096), (70000, 16, 16)])
def test_forms_are_in_order_of_their_times(shape: tuple[int, int, int]) -> None:
    ranked = forms(shape, 2, True)
    assert [form for _, form in ranked] == [form for _, form in sorted(ranked, key=lambda each: each[0])]
    steps = -(-shape[2] * 2 // 128)
    assert {form for _, form in ranked} == {form for form in TIMES if form.split <= steps}


def test_only_the_arrays_must_be_addressable() -> None:
    """M N K may be more than any array has elements."""
    assert gemm_kernel((65536, 65536, 32768)).shape == (65536, 65536, 32768)
    with pytest.raises(MalformedError, match="at most"):
        gemm_kernel((2**30, 2**30, 64))
    with pytest.raises(MalformedError, match="steps"):
        gemm_kernel((2**20, 2**20, 2**20))
    with pytest.raises(MalformedError, match="must have 3 extents"):
        gemm_kernel(range(2**70))


def test_a_launch_needs_the_arrays_of_the_kernel() -> None:
    made = gemm_kernel((256, 256, 128))
    a, b, d = (aligned(np.zeros(shape, dtype=np.uint16)) for shape in ((256, 128), (256, 128), (256, 256)))
    assert len(made.arguments(a, b, d, 1)) == len(made.kernel.parameters)
    with pytest.raises(MalformedError, match="LA947"):
        made.arguments(a, d, b, 1)
    with pytest.raises(MalformedError, match="blocks"):
        made.arguments(a, b, d, made.blocks + 1)

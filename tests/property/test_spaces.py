"""Spaces of products and attentions: legal choices are those that have a kernel, refused for the same reason."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import pickle
import statistics
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.codegen import hostsim, launch, measure
from layoutalg.codegen.kernels import Form, attention_kernel, gemm_kernel
from layoutalg.codegen.kernels.gemm import checked_form
from layoutalg.codegen.kernels.spaces import (
    FORMS,
    TOGETHER,
    attention_options,
    attention_space,
    form_of,
    form_work,
    gemm_space,
)
from layoutalg.ground.errors import DeviceMismatchError, InfeasibleError, LayoutError, MalformedError, MissingExtraError
from layoutalg.ground.refusal import Broken
from layoutalg.synth.search import Ranked, Space, cycles

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import device_products

PRODUCTS: dict[str, tuple[tuple[int, int, int], dict[str, Any]]] = {
    "square": ((4096, 4096, 4096), {}),
    "odd": ((304, 704, 504), {}),
    "one row": ((1, 8, 16), {"result": "f16"}),
    "flat": ((64, 4096, 4096), {"dtype": "f16"}),
    "short": ((8192, 8192, 32), {"dtype": "e4m3"}),
    "turned": ((520, 776, 360), {"major_a": "MN", "major_b": "MN"}),
    "B turned": ((136, 200, 200), {"major_b": "MN"}),
}
ATTENTIONS: dict[str, tuple[tuple[int, int, int, int], bool]] = {
    "square": ((32, 4096, 4096, 128), False), "narrow": ((3, 100, 1000, 64), True), "odd": ((1, 1, 3001, 128), True),
}  # fmt: skip
Asked = tuple[tuple[Ranked, ...], tuple[tuple[Any, Broken], ...]]


@cache
def product(name: str) -> Asked:
    shape, options = PRODUCTS[name]
    return gemm_space(shape, **options).ranked()


@cache
def attention(name: str) -> Asked:
    shape, causal = ATTENTIONS[name]
    return attention_space(shape, causal=causal).ranked()


def build_product(name: str, choice: Any) -> Any:
    shape, options = PRODUCTS[name]
    return gemm_kernel(shape, form=form_of(choice), **options)


def build_attention(name: str, choice: Any) -> Any:
    shape, causal = ATTENTIONS[name]
    return attention_kernel(shape, causal=causal, **attention_options(choice))


@pytest.mark.nightly(one_of=3)
@pytest.mark.parametrize(("asked", "build", "name"), [
    *[(product, build_product, name) for name in PRODUCTS], *[(attention, build_attention, name) for name in ATTENTIONS]
])  # fmt: skip
def test_the_builder_refuses_what_the_space_refuses(asked: Any, build: Any, name: str) -> None:
    for choice, broken in asked(name)[1]:
        with pytest.raises(LayoutError) as error:
            build(name, choice)
        found = error.value.diagnostic
        assert broken == Broken(found.code, found.because or found.what)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(list(PRODUCTS)), st.data())
def test_legal_products_have_kernels(name: str, data: Any) -> None:
    made = build_product(name, data.draw(st.sampled_from(product(name)[0])).choice)
    assert made.emitted.proof is not None


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(st.integers(1, 5000), st.integers(1, 600), st.integers(1, 1200)),
    st.sampled_from(["bf16", "f16", "e4m3"]),
    st.fixed_dictionaries({"major_a": st.sampled_from(["K", "MN"]), "major_b": st.sampled_from(["K", "MN"])}),
    st.fixed_dictionaries({name: st.sampled_from(values) for name, values in FORMS.items()}),
)  # fmt: skip
def test_any_choice_of_any_shape(units: tuple[int, int, int], dtype: str, majors: Any, choice: Any) -> None:
    """The space and the builder say the same of a choice."""
    shape = units[0] * (1 if majors["major_a"] == "K" else 8), units[1] * 8, units[2] * 8
    options = {"dtype": dtype} | ({} if dtype == "e4m3" else majors)
    if dtype == "e4m3":
        shape = units[0], units[1] * 8, units[2] * 16
    answers = []
    for ask in (
        lambda: gemm_space(shape, **options, choices={name: (value,) for name, value in choice.items()}).ranked(),
        lambda: gemm_kernel(shape, form=form_of(choice), **options),
    ):
        try:
            ask()
            answers.append("")
        except InfeasibleError as error:
            answers.append(error.diagnostic.because.split(": ", 1)[-1].removesuffix(" (1 of 1)"))
        except LayoutError as error:
            answers.append(error.diagnostic.because)
    assert answers[0] == answers[1]


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(list(ATTENTIONS)), st.data())
def test_legal_attentions_have_kernels(name: str, data: Any) -> None:
    made = build_attention(name, data.draw(st.sampled_from(attention(name)[0])).choice)
    assert made.emitted.proof is not None


@pytest.mark.nightly(one_of=70)
@pytest.mark.parametrize(("name", "part"), list(itertools.product(PRODUCTS, range(10))))
def test_every_legal_product_has_a_kernel(name: str, part: int) -> None:
    for ranked in product(name)[0][part::10]:
        build_product(name, ranked.choice)


@pytest.mark.nightly(one_of=3)
@pytest.mark.parametrize("name", ATTENTIONS)
def test_every_legal_attention_has_a_kernel(name: str, portion: Callable[[Any], Any]) -> None:
    for ranked in portion(attention(name)[0]):
        build_attention(name, ranked.choice)


def test_every_form_that_is_a_default_is_legal() -> None:
    legal = [form_of(each.choice) for each in product("square")[0]]
    for form in device_products.TIMES:
        checked_form(form, (4096, 4096, 4096), 2, "sm_90a")
        given = {name: getattr(form, name) for name in form.__slots__} | {"depth": 128}
        if all(given[name] in values for name, values in FORMS.items()):
            assert Form(**given | {"together": TOGETHER // form.cluster}) in legal


def test_rows_that_begin_anywhere_touch_more_lines() -> None:
    """As many steps, and rows of whole lines in the second product only."""
    form = Form(128, 128, behind=1)
    anywhere, whole = (cycles(form_work(form, (4096, 4096, k), "bf16", "sm_90a"))[0] for k in (4104, 4160))
    assert anywhere > whole


@cache
def _recorded(name: str) -> list[dict[str, Any]]:
    data = Path(__file__).parents[1] / "data" / "measured" / f"{name}.json.gz"
    rows: list[dict[str, Any]] = json.loads(gzip.decompress(data.read_bytes()))["rows"]
    return rows


def test_estimates_rank_what_was_timed() -> None:
    """Products on an H200: the first of each shape against the fastest near it; the order of whole spaces."""
    rows = [row for row in _recorded("products_dev") if row["which"] == "forms"]
    shapes = {tuple(row["shape"]) for row in rows}
    assert len(shapes) == 22
    lost, by_table = [], device_products.regret(rows)
    for shape in shapes:
        times, estimates = [], []
        for row in rows:
            if tuple(row["shape"]) == shape:
                form = checked_form(device_products.recorded(row["form"]), shape, 2, "sm_90a")
                estimates.append(cycles(form_work(form, shape, "bf16", "sm_90a"))[0])
                times.append(row["ms"])
        lost.append(math.log(times[int(np.argmin(estimates))] / min(times)))
    assert by_table <= 1.015 < math.exp(statistics.fmean(lost)) <= 1.05  # the reason why there is a table beside
    ranks = []
    for problem in dict.fromkeys(row["problem"] for row in _recorded("search_dev")):
        name, size, *dtype = problem.split()
        if name != "gemm":
            continue
        shape = tuple(map(int, size.split("x")))
        chosen = [row for row in _recorded("search_dev") if row["problem"] == problem and "choice" in row]
        forms = [checked_form(form_of(row["choice"]), shape, 1 + (dtype == ["bf16"]), "sm_90a") for row in chosen]
        estimates = [cycles(form_work(form, shape, *dtype, "sm_90a"))[0] for form in forms]
        order = [np.argsort(np.argsort(each)) for each in ([row["ms"] for row in chosen], estimates)]
        ranks.append(float(np.corrcoef(*order)[0, 1]))
    assert len(ranks) == 5
    assert statistics.fmean(ranks) >= 0.85


def test_wrong_choices_are_named() -> None:
    with pytest.raises(MalformedError, match="choices"):
        gemm_space((64, 64, 64), choices={"tile": (1, 2)})
    with pytest.raises(MalformedError, match="shape"):
        attention_space((1, 64, 64, 80))
    for shape, options in (((64, 64, 65), {}), ((64, 65, 64), {}), ((65, 64, 64), {"major_a": "MN"})):
        with pytest.raises(MalformedError, match="multiples of 16 bytes"):
            gemm_space(shape, **options)
        with pytest.raises(LayoutError):
            gemm_kernel(shape, **options)
    with pytest.raises(LayoutError, match="sm_80"):
        gemm_space((64, 64, 64), "bf16", "sm_80")


# ------------------------------------------------------------------------------------------------------------ measure


ALONE = {"cluster": (1,)}
MEASURED: dict[str, tuple[Space, Any]] = {
    "product": (gemm_space((130, 136, 200), choices=ALONE), measure.MeasureGemm((130, 136, 200))),
    "f16": (
        gemm_space((64, 40, 72), "f16", result="f16", major_a="MN", major_b="MN", choices=ALONE),
        measure.MeasureGemm((64, 40, 72), "f16", result="f16", major_a="MN", major_b="MN"),
    ),
    "e4m3": (gemm_space((64, 40, 80), "e4m3", choices=ALONE), measure.MeasureGemm((64, 40, 80), "e4m3")),
    "attention": (attention_space((2, 70, 100, 64)), measure.MeasureAttention((2, 70, 100, 64))),
    "causal": (
        attention_space((2, 70, 100, 64), causal=True), measure.MeasureAttention((2, 70, 100, 64), causal=True),
    ),
}  # fmt: skip


def host(monkeypatch: Any) -> None:
    """Let the CPU stand in for the GPU."""

    def upload(array: Any) -> Any:
        room = np.zeros(array.nbytes + 256, dtype=np.uint8)
        first = -room.ctypes.data % 256
        copy = room[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
        copy[...] = array
        regions.append((copy.ctypes.data, copy.nbytes))
        return copy

    def run(kernel: Any, arguments: Any, blocks: int) -> None:
        hostsim.run(kernel, arguments, blocks=blocks, regions=regions)

    regions: list[tuple[int, int]] = []

    measure._operands.cache_clear()
    monkeypatch.setattr(launch, "device", lambda: launch.DeviceInfo("a CPU", (9, 0), 13000))
    monkeypatch.setattr(launch, "upload", upload)
    monkeypatch.setattr(launch, "download", lambda array, first, last: array.reshape(-1).view(np.uint8)[first:last])
    monkeypatch.setattr(launch, "run", run)
    monkeypatch.setattr(launch, "milliseconds", lambda *_, **__: 1.5)


@pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
@pytest.mark.parametrize("name", MEASURED)
def test_what_is_right_is_timed(name: str, monkeypatch: Any) -> None:
    host(monkeypatch)
    space, timer = MEASURED[name]
    tuned = la.tune(space, pickle.loads(pickle.dumps(timer)), top=1)
    assert tuned.best.measured == 1.5


def test_without_a_gpu_nothing_is_measured_or_stored(tmp_path: Path, monkeypatch: Any) -> None:
    space, timer = MEASURED["product"]
    for found in (None, launch.DeviceInfo("NVIDIA L4", (8, 9), 13000)):
        monkeypatch.setattr(launch, "device", lambda found=found: found)
        with pytest.raises(MissingExtraError, match=r"LA532.*needs a GPU that runs sm_90a"):
            la.tune(space, timer, database=tmp_path / "results.db")
    assert not any(trial.stored for trial in la.tune(space, lambda _: 1.0, database=tmp_path / "results.db").trials)


@pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
def test_what_is_wrong_is_no_result(monkeypatch: Any) -> None:
    space, timer = MEASURED["product"]
    choice = space.ranked()[0][0].choice
    host(monkeypatch)
    download = launch.download
    for place, value, words in (
        (0, 0x4300, "wrong numbers"), (-1, measure.UNWRITTEN, "not written"), (10000, measure.UNWRITTEN, "not written")
    ):  # fmt: skip

        def spoiled(array: Any, first: int, last: int, place: int = place, value: int = value) -> Any:
            if array.dtype == np.uint16:
                array.reshape(-1)[place] = value
            return download(array, first, last)

        monkeypatch.setattr(launch, "download", spoiled)
        with pytest.raises(DeviceMismatchError, match=words):
            timer(choice)
    monkeypatch.setattr(launch, "run", lambda *_, **__: None)
    with pytest.raises(DeviceMismatchError, match="gave up"):
        timer(choice)

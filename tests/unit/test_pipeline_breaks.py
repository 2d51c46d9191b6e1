"""Every known way to break a pipeline is found: by the verifier in the document, by the CPU in the kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from judges.broken_kernels import (
    CASES,
    PIPELINES,
    Broken,
    broken_kernel,
    broken_texts,
    case,
    on_the_cpu,
    right,
    shown,
)  # fmt: skip
from judges.pipeline_breaks import breaks, compared, judged, only_named

from layoutalg.codegen import hostsim
from layoutalg.codegen.pipeline.emission import emit
from layoutalg.ground.errors import MalformedError

needs_compiler = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
Portion = Callable[[Sequence[Any]], Sequence[Any]]
AGREED = ("refuted", "safe", "open, safe")
SHORT = {"copy 2 stages": 2, "transpose 2 stages, 2 leaving": 3, "product 2 stages 1 consumer": 8,
         "product, behind 2 stages 1 consumer": 12, "product, cluster 1 stages 1 consumer": 6,
         "tile 1 products": 1}  # fmt: skip
"""Small pipelines of every family, and how many of their mistakes go to one that is tried."""


@pytest.mark.parametrize("name", SHORT)
def test_every_mistake_in_a_pipeline_is_refuted_for_the_right_reason(name: str, portion: Portion) -> None:
    """Or the judge, which tries every order of events, agrees that it does no harm."""
    found = portion(list(breaks(PIPELINES[name].to_json()))[:: SHORT[name]])
    assert len(found) >= 4
    for one in found:
        outcome, more = compared(one, 4_000)
        assert outcome.removesuffix(", not judged") in (*AGREED, "open"), f"{one.bug} {one.what}: {outcome} {more}"


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in PIPELINES if name not in SHORT][::3])
def test_mistakes_in_deeper_rings_and_with_more_consumers(name: str) -> None:
    for one in list(breaks(PIPELINES[name].to_json()))[::40]:
        outcome, more = compared(one, 1_000)
        assert outcome.removesuffix(", not judged") in (*AGREED, "open"), f"{one.bug} {one.what}: {outcome} {more}"


def test_every_class_has_mistakes() -> None:
    """B13 and B21 are mistakes of the text; B20 is one of documents with named barriers, and of the text."""
    found = {one.bug for name in SHORT for one in breaks(PIPELINES[name].to_json())}
    assert found == {f"B{number}" for number in range(1, 20)} - {"B13"}
    meeting = {"schema": "layoutalg/pipeline/1", "stages": 1, "roles": [
        {"name": name, "warps": 1, "loop": [{"op": "bar_sync", "id": 1}]} for name in ("one", "other")]}  # fmt: skip
    assert {one.bug for one in breaks(meeting) if "bar_" in one.what} == {"B20"}


def test_one_mistake_each() -> None:
    """No document is the right one, and none comes twice."""
    right_one = PIPELINES["transpose 2 stages, 2 leaving"].to_json()
    found = [one.document for one in breaks(right_one)]
    assert right_one not in found
    assert sum(one == other for one in found for other in found) <= len(found) + 12


def test_what_is_only_named_otherwise_is_told_apart() -> None:
    """A last slot that is handed back twice, or not: nobody waits for it any more."""
    mistakes = {one.what: one for one in breaks(PIPELINES["product, behind 2 stages 1 consumer"].to_json())}
    one = mistakes["math0.post[1] arrive empty: twice"]
    assert judged(one.document) is False
    assert only_named(one.document)
    assert not only_named(mistakes["math0.loop[6] arrive empty: missing"].document)


KERNELS = [
    ("copy", "store.loop[4] arrive empty: missing"), ("copy", "load.loop[1] arrive_tx full: half of the bytes"),
    ("copy", "store.loop[3] bulk_wait : leaves 1 more"), ("transpose", "turn.loop[6] proxy_fence : missing"),
    ("transpose", "load.loop[0] wait empty: missing"), ("product", "math0.loop[0] wait full: flipped"),
]  # fmt: skip


@needs_compiler
@pytest.mark.parametrize(("name", "what"), KERNELS)
def test_a_broken_kernel_shows_on_the_cpu(name: str, what: str) -> None:
    (one,) = [one for one in breaks(case(name).program.pipeline.to_json(), together=True) if one.what == what]
    made = broken_kernel(name, one)
    assert isinstance(made, Broken)
    assert made.emitted.proof is None
    assert shown(made)


@needs_compiler
@pytest.mark.nightly
@pytest.mark.parametrize("part", range(12))
@pytest.mark.parametrize("name", CASES)
def test_broken_kernels_show_on_the_cpu(name: str, part: int) -> None:
    """Except where the kernel's text is right, or what is wrong is a matter of time (``hidden``)."""
    drawn = list(breaks(case(name).program.pipeline.to_json(), together=True))[part::48]
    kernels = [made for one in drawn if isinstance(made := broken_kernel(name, one), Broken)]
    for made in [*kernels, *list(broken_texts(name))[part::12]]:
        found = shown(made)
        safe = made.emitted.proof is not None and not made.text
        harmless = found in ("", "numbers")  # other data
        assert not safe or harmless, f"{made.bug} {made.what}: {found}"
        assert safe or found or made.hidden, f"{made.bug} {made.what}"


@needs_compiler
@pytest.mark.parametrize("name", ["copy", "product, behind"])
def test_delays_change_nothing(name: str) -> None:
    assert "delayed at random, seed 3" in right(name, 3).kernel.text
    assert "la_delay" not in right(name).kernel.text
    for seed in (0, 1):
        assert on_the_cpu(case(name), right(name, 3), seed) == ""


def test_a_seed_of_delays_is_a_number() -> None:
    with pytest.raises(MalformedError, match="delays"):
        emit(case("copy").program, "copy", delays=-1)

"""Texts that Triton 3.9.0 wrote, read here: the layout of each is the one that its compiler computed."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

import pytest
from instruments.triton_peer import triton_python

import layoutalg as la
from layoutalg.interop import layouts_of
from layoutalg.targets.layouts.padding import PaddedShared

HERE = Path(__file__).parent
STORED = json.loads((HERE.parent / "data" / "triton_texts.json").read_text(encoding="utf-8"))
CASES = [case for case in STORED if case["family"] != "view"]


def bases_of(layout) -> dict[str, list[list[int]]]:
    linear = layout.linear if isinstance(layout, PaddedShared) else layout
    return {axis: [list(image) for image in images] for axis, images in linear.bases.items()}


def judged(case) -> None:
    """Both texts give Triton's bases; axes of size 1 may be absent there, as are blocks of tensor memory."""
    for text, shape in ((case["type"], None), (case["gluon"], case["shape"])):
        layout = la.parse(text, shape)
        found = bases_of(layout)
        if "row" in found:
            del found["block"]
        assert {axis: images for axis, images in found.items() if images} == {
            axis: images for axis, images in case["bases"].items() if images
        }, text
        sizes = layout.linear.out_dims if isinstance(layout, PaddedShared) else layout.out_dims
        assert list(sizes.values()) == case["shape"], text
        if case["pairs"]:
            assert sorted(map(list, layout.pairs)) == sorted(case["pairs"]), text


@pytest.mark.parametrize("family", sorted({case["family"] for case in CASES}))
def test_stored_texts_are_read(family):
    cases = [case for case in CASES if case["family"] == family]
    assert len(cases) >= 5
    for case in cases:
        judged(case)


def test_a_file_of_all_types_lists_each_with_its_shape():
    text = "\n".join(f"  %{index} = op : {case['type']}" for index, case in enumerate(CASES))
    listed = layouts_of(text)
    distinct = dict.fromkeys(case["type"] for case in CASES)
    assert [entry.text for entry in listed] == list(distinct)
    for entry in listed:
        assert entry.layout() == la.parse(entry.text)
        assert entry.line == 1 + next(index for index, case in enumerate(CASES) if case["type"] == entry.text)


def seen(case) -> None:
    """A picture shows the layout: on the axes that it has, copies included."""
    layout = la.parse(case["view"])
    shown = bases_of(layout)
    if case["kind"] == "format_hardware_view":
        expected = {axis: case["bases"].get(axis, []) for axis in ("register", "lane", "warp")}
    else:
        expected = {"register": case["bases"]["register"], "thread": case["bases"]["lane"] + case["bases"]["warp"]}
    assert shown == expected, case["view"]
    assert list(layout.out_dims.values()) == case["shape"]


def test_stored_pictures_are_read():
    views = [case for case in STORED if case["family"] == "view"]
    assert {case["kind"] for case in views} == {"format_tensor_view", "format_hardware_view"}
    for case in views:
        seen(case)
        with pytest.raises(la.MalformedError, match="LA710"):
            la.parse(case["view"][: len(case["view"]) - 4])


@pytest.mark.peer
def test_fresh_texts_are_read():
    python = triton_python(named=True)
    asked = [python, str(HERE / "triton_texts.py"), "7", "20"]
    cases = json.loads(subprocess.run(asked, capture_output=True, check=True, text=True).stdout)
    assert len(cases) > 200
    for case in cases:
        (seen if case["family"] == "view" else judged)(case)


def test_basis_vectors_fit_tensors_as_in_triton() -> None:
    """``#ttg.linear`` on larger and smaller tensors: registers repeat it, what passes the end is folded."""
    cases = json.loads(gzip.decompress((HERE.parent / "data" / "triton_linear.json.gz").read_bytes()))
    assert sum(case["tile"] != case["shape"] for case in cases) > 100
    for case in cases:
        parts = ", ".join(f"{axis} = {vectors}" for axis, vectors in case["bases"].items())
        found = la.parse(f"#ttg.linear<{{{parts}, block = []}}>", case["shape"])
        assert {axis: [list(vector) for vector in found.bases[axis]] for axis in case["found"]} == case["found"], case

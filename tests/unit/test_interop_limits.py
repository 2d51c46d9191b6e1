"""Readers of Triton's and Gluon's notations: linear time, bounded length, and no foreign exception for any text."""

from __future__ import annotations

import json
import time

import pytest

from layoutalg.f2 import LinearLayout
from layoutalg.ground import limits
from layoutalg.ground.errors import LayoutError, MalformedError, RepresentabilityError
from layoutalg.interop import triton

LONG = limits.ATTRIBUTE_CHARACTERS - 2_000
VALUES = [
    "+".join(["1"] * 900), "-" * 3_000 + "1", "[" * 900 + "]" * 900, "0x" + "f" * 5_000, "9" * 5_000, "[[1j]]",
    "[[0x" + "f" * 5_000 + "]]", "[[True]]", "[[1.5]]", "[[-1]]", "[[1e400]]", "f(x)", "'a'", "{}", "{1: 2}", "None",
    "b'\\x01'", "[1]", "[[1], 2]", "[[]]", "[" + "[1]," * 20_000 + "]", "...", "[[1]]*3", "\ud800", "[['\\ud800']]",
]  # fmt: skip
TEXTS = [
    "linear<{}" + " " * LONG, " " * LONG, "#a" + " " * LONG + "=#", "linear<{lane" + " " * LONG + "}>",
    "linear<{lane=[" + "] " * (LONG // 2) + "}>", "linear<{lane=[" + "]" * LONG + "}>", "#" * LONG, "<" * LONG,
    "linear<{lane=[" + "[" * 40_000 + "]" * 40_000 + "}>", "linear<{" + "lane=[]," * (LONG // 8) + "}>",
    "shared_linear<{offset=[[1]]} , alignment = " + " " * LONG + ">", "linear<{lane=[" + "[1,1]," * (LONG // 6) + "]}>",
    "linear<{" + "}" * LONG, "linear<{lane=[[1]]" + ", " * (LONG // 2) + "}>", "linear<{lane=[[01]]}>", "linear<{}>",
]  # fmt: skip


def refused_soon(read, text, seconds=5.0):
    start = time.process_time()
    with pytest.raises(LayoutError) as caught:
        read(text)
    assert time.process_time() - start < seconds
    assert len(str(caught.value)) < 3_000
    json.dumps(caught.value.diagnostic.to_json(), allow_nan=False)


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:24])
def test_an_attribute_is_read_or_refused_soon(text):
    refused_soon(triton.from_attribute, text)
    refused_soon(triton.from_gluon, text)


def test_reading_an_attribute_takes_linear_time():
    def took(count: int) -> float:
        start = time.process_time()
        for _ in range(5):
            refused_soon(triton.from_attribute, "linear<{}" + " " * count)
        return time.process_time() - start

    took(10)
    assert took(80_000) < 30 * took(10_000) + 0.05


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value[:24])
def test_a_gluon_argument_is_read_or_refused(value):
    refused_soon(triton.from_gluon, f"SharedLinearLayout(offset_bases={value}, block_bases=[], alignment=16)")
    fields = "reg_bases=[[1]], lane_bases=[], warp_bases=[], block_bases=[]"
    refused_soon(triton.from_gluon, f"gl.DistributedLinearLayout({fields}, shape={value})")
    refused_soon(triton.from_attribute, f"#ttg.linear<{{lane = {value}, warp = [x]}}>")


def test_text_has_a_limit():
    for read in (triton.from_attribute, triton.from_gluon):
        with pytest.raises(MalformedError, match="at most 100000 characters"):
            read("x" * 100_001)


def test_a_module_must_be_one_that_text_can_name():
    layout = LinearLayout.from_bases({"offset": [(1,)]}, {"dim0": 2})
    assert triton.to_gluon(layout, module="a.b").startswith("a.b.Shared")
    for module in ("for", "a..b", "a.if", "1", ".", None, 3):
        with pytest.raises(MalformedError, match="dotted name"):
            triton.to_gluon(layout, module=module)


def test_what_triton_cannot_hold_stays_refused():
    with pytest.raises(RepresentabilityError, match="LA711"):
        triton.to_attribute(LinearLayout.from_bases({"lane": [(1,)]}, {"dim0": 4}))

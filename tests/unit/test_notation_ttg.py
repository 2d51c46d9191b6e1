"""Triton's attributes through ``la.parse``: each kind is what its builder makes, and what cannot be read says why."""

from __future__ import annotations

import pytest

import layoutalg as la
from layoutalg.targets.layouts.blocked import blocked
from layoutalg.targets.layouts.padding import padded_shared
from layoutalg.targets.layouts.shared import nvmma_shared, swizzled_shared

CASES = [
    (
        "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>",
        (64, 64),
        swizzled_shared((64, 64), 8, 1, 8, (1, 0)),
    ),
    (
        "#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 2, maxPhase = 4, order = [0, 1]}>",
        (32, 64),
        swizzled_shared((32, 64), 4, 2, 4, (0, 1)),
    ),
    (
        "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>",
        (128, 128),
        nvmma_shared((128, 128), 128, 16),
    ),
    (
        "ttg.nvmma_shared<{swizzlingByteWidth=64, transposed=true, elementBitWidth=8, fp4Padded=false}>",
        (64, 64),
        nvmma_shared((64, 64), 64, 8, transposed=True),
    ),
    (
        "#ttg.nvmma_shared<{swizzlingByteWidth = 32, elementBitWidth = 16, CGALayout = [[1, 0]]}>",
        (32, 16),
        nvmma_shared((32, 16), 32, 16, cga=((1, 0),)),
    ),
    (
        "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0], "
        "CTAsPerCGA = [2, 1], CTASplitNum = [2, 1], CTAOrder = [0, 1]}>",
        (8, 8),
        swizzled_shared((8, 8), 1, 1, 1, (1, 0), ((1, 0),)),
    ),
    (
        "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>",
        (64, 64),
        blocked((1, 4), (8, 4), (4, 1), (1, 0), (64, 64)),
    ),
    (
        "#ttg.padded_shared<[32:+4, 64:+8] {order = [1, 0], shape = [16, 32]}>",
        None,
        padded_shared((16, 32), [(32, 4), (64, 8)], (1, 0)),
    ),
    (
        "#ttg.padded_shared<[4:+1] {offset = [[0, 1], [0, 2], [1, 0]], block = []}>",
        (2, 4),
        padded_shared((2, 4), [(4, 1)], offset_bases=[(0, 1), (0, 2), (1, 0)]),
    ),
    (
        "#ttg.shared_linear<{offset = [[0, 1], [1, 1]]}, alignment = 16>",
        None,
        la.LinearLayout.from_bases({"offset": [(0, 1), (1, 1)], "block": []}, {"dim0": 2, "dim1": 2}),
    ),
]


@pytest.mark.parametrize(("text", "shape", "value"), CASES, ids=[text[:30] for text, _, _ in CASES])
def test_an_attribute_is_what_its_builder_makes(text, shape, value):
    if text.startswith("#"):
        assert la.parse(text, shape=shape) == value
        assert la.parse(f" {text}\n", shape=shape and list(shape)) == value
        if "offset =" in text:
            assert la.parse(text) == value
    else:
        assert la.parse("#" + text, shape) == value


def test_a_padded_layout_is_written_as_it_is_read():
    for padded in (
        padded_shared((16, 32), [(32, 4), (64, 8)], (1, 0)),
        padded_shared((16, 32), [(8, 1)], (0, 1), cga=((1, 0),)),
        padded_shared((2, 4), [(4, 1)], offset_bases=[(0, 1), (1, 0), (0, 2)]),
        padded_shared((1, 4), [(4, 1)]),
    ):
        assert la.parse(str(padded)) == padded


@pytest.mark.parametrize(
    ("text", "shape", "words"),
    [
        ("#ttg.swizzled_shared<{vec = 8, perPhase = 1, order = [1, 0]}>", (8, 8), "needs maxPhase"),
        ("#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 1, order = [1, 0]}>", None, "pass shape="),
        ("#ttg.swizzled_shared<{vec = 8, x = 1, perPhase = 1, maxPhase = 1, order = [1]}>", (8,), "has no entry x"),
        ("#ttg.nvidia_mmas<{versionMajor = 3}>", (8, 8), "the kind must be one of linear, "),
        ("#ttg.nvidia_mma<{versionMajor = 3}>", (8, 8), "needs warpsPerCTA"),
        ("#ttg.swizzled_shared<{vec = 8, maxPhases = 1}>", (8, 8), "perhaps maxPhase"),
        ("#ttg.nvmma_shared<{swizzlingByteWidth = 128, elementBitWidth = 16}> x", (8, 8), "expected the end"),
        ("#ttg.nvmma_shared<{swizzlingByteWidth = 012, elementBitWidth = 16}>", (8, 8), "without leading zeros"),
        ("#ttg.nvmma_shared<{swizzlingByteWidth = [[[[1]]]]}>", (8, 8), "lists at most 3 deep"),
        ("#ttg.nvmma_shared<{swizzlingByteWidth = 0, swizzlingByteWidth = 0}>", (8, 8), "each name once"),
        ("#ttg.padded_shared<[4:1] {order = [1, 0]}>", (8, 8), "expected :\\+"),
        ("#ttg.padded_shared<[4:+1] {order = [0], shape = [8]}>", (16,), "must be the one in the text"),
        ("#ttg.linear<{lane = [[1]]}>", 4, "must be a sequence of sizes"),
        ("#", None, "a kind of layout"),
    ],
)
def test_a_refusal_says_why(text, shape, words):
    with pytest.raises(la.MalformedError, match=words) as caught:
        la.parse(text, shape)
    assert caught.value.diagnostic.code == "LA710"


def test_what_the_builder_refuses_stays_refused():
    text = "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>"
    with pytest.raises(la.AdmissibilityError, match="LA706"):
        la.parse(text, (4, 64))
    with pytest.raises(la.MalformedError, match="LA700"):
        la.parse(text, (3, 64))


def test_only_attributes_take_a_shape():
    with pytest.raises(la.MalformedError, match="only for Triton attributes"):
        la.parse("(4,8):(1,4)", shape=(4, 8))

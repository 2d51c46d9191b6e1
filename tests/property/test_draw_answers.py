"""Pictures of answers and plans say what the values say: what is shown is read back and compared."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.draw.answers import witness_of
from layoutalg.proofs.im2col import ConvolutionProblem
from layoutalg.synth import factorise, synthesize_ragged
from layoutalg.synth.im2col import synthesize_im2col
from layoutalg.targets.nvidia import tcgen05
from layoutalg.targets.nvidia.im2col import Im2colMap

SVG = "{http://www.w3.org/2000/svg}"
SWIZZLES = {"": 8, "Sw<1,3,3> o 0 o ": 16, "Sw<2,3,3> o 0 o ": 32, "Sw<3,3,3> o 0 o ": 64}


def titles(picture: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(picture).iter(f"{SVG}title")]


def found_in(picture: str, pattern: str) -> list[tuple[int, ...]]:
    return [tuple(map(int, match)) for title in titles(picture) for match in re.findall(pattern, title)]


def table(text: str) -> np.ndarray:
    layout = la.parse(text)
    return np.asarray(layout.table(), dtype=np.int64).reshape(layout.shape, order="F")


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("rows", [64, 128])
@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_an_operand_shows_what_each_instruction_reads(swizzle: str, rows: int, target: str) -> None:
    width = SWIZZLES[swizzle]
    text = f"{swizzle}({rows},({width},{64 // width})):({width},(1,{width * rows}))"
    consumer = "wgmma.A" if target == "sm_90a" else "tcgen05.A"
    found = la.admissible(text, consumer, target)
    assert isinstance(found, la.Admitted)
    layout = la.parse(text)
    offsets = np.asarray(layout.table(), dtype=np.int64).reshape(rows, 64, order="F")
    pattern = r"^bytes (\d+) to \d+: starts with element \((\d+), (\d+)\), read by instruction (\d+)$"
    shown = found_in(la.draw.svg(found), pattern)
    assert len(shown) == 8 * 32  # whole lines of 128 bytes, the first 32
    tiles = found.descriptor.tiles
    for byte, row, k, number in shown:
        assert 2 * offsets[row, k] == byte
        assert (tiles[number].mn, tiles[number].k) == (row // tiles_rows(found) * tiles_rows(found), k // 16 * 16)


def tiles_rows(found: la.Admitted) -> int:
    return int(found.descriptor.rows)


@pytest.mark.parametrize(
    ("text", "consumer", "target"),
    [
        ("Sw<3,3,3> o 0 o (64,64):(64,1)", "ldmatrix.x4", "sm_90a"),
        ("(64,64):(64,1)", "ldmatrix.x2", "sm_90a"),
        ("(64,64):(1,64)", "ldmatrix.x4.trans", "sm_80"),
        ("(64,64):(72,1)", "stmatrix.x1", "sm_90a"),
        ("(32,64):(64,1)", "ld.shared.v4.b32", "sm_90a"),
        ("(48,40):(40,1)", "ld.shared.b32", "sm_90a"),
        ("(64,64):(64,1)", "st.shared.b16", "sm_90a"),
        ("Sw<2,3,3> o 0 o (64,32):(32,1)", "cp.async.cg.16", "sm_80"),
    ],
)
def test_an_access_shows_whose_address_and_whose_register(text: str, consumer: str, target: str) -> None:
    found = la.admissible(text, consumer, target)
    assert isinstance(found, la.Admitted), found
    plan, offsets, picture = found.descriptor, table(text), la.draw.svg(found)
    lanes = 8 if consumer.split(".")[1] == "x1" else 16 if consumer.split(".")[1] == "x2" else 32
    addresses = np.asarray(plan.addresses.table(), dtype=np.int64)[:lanes].tolist()
    told = [
        (int(first), lane)
        for title in titles(picture)
        if (match := re.match(r"^bytes? (\d+)(?: to \d+)?: lanes? (.*?), bank", title))
        for first in [match[1]]
        for lane in numbers(match[2])
    ]
    assert {lane for _, lane in told} == set(range(lanes))
    unit = {"4": 4, "b32": 4, "b16": 4}.get(consumer.split(".")[-1], 16)
    assert {(address // unit * unit, lane) for lane, address in enumerate(addresses)} == set(told)
    requested = np.asarray(plan.requested.table(), dtype=np.int64)
    registers = requested.size // 32 // plan.count
    requested = requested.reshape(registers, 32, plan.count, order="F")
    held = found_in(picture, r"^dim0 (\d+), dim1 (\d+): lane (\d+) register (\d+)")
    flat = found_in(picture, r"^flat (\d+): lane (\d+) register (\d+)")
    held += [(*np.unravel_index(at, offsets.shape, order="F"), lane, register) for at, lane, register in flat]
    cut = re.search(r"the first (\d+) of \d+ rows and (\d+) of \d+ columns", picture)
    assert len(held) == (int(cut[1]) * int(cut[2]) if cut else registers * 32)
    for row, column, lane, register in held:
        assert 2 * offsets[row, column] == requested[register, lane, 0]


def numbers(text: str) -> list[int]:
    """The numbers of runs such as 0..3, 7."""
    found = [part.split("..") for part in text.split(", ")]
    return [number for ends in found for number in range(int(ends[0]), int(ends[-1]) + 1)]


def test_conflicts_are_marked_where_there_are_some() -> None:
    for text, marked in (("(64,64):(64,1)", 32), ("Sw<3,3,3> o 0 o (64,64):(64,1)", 0), ("(64,64):(72,1)", 0)):
        picture = la.draw.svg(la.admissible(text, "ldmatrix.x4"))
        warned = [node for node in ET.fromstring(picture).iter(f"{SVG}rect") if node.get("class") == "w"]
        assert len(warned) == marked


@settings(max_examples=12, deadline=None)
@given(st.permutations([1, 2, 4, 8, 16, 32, 64, 128]))
def test_shuffles_show_the_word_of_every_register(order: list[int]) -> None:
    registers, lanes = "".join(f"({bit})" for bit in order[:3]), "".join(f"({bit})" for bit in order[3:])
    found = factorise(f"F2[register={registers}, lane={lanes} -> offset:256]")
    if not found or not found.rounds:
        return
    picture = la.draw.svg(found)
    source = found.shuffles.source()[0]
    pattern = r"^lane (\d+), register (\d+): lane (\d+), register (\d+), (?:stays|in round)"
    shown = found_in(picture, pattern)
    assert len(shown) == source.size
    for lane, register, came, word in shown:
        assert source[lane, register] == came * source.shape[1] + word
    held = {(lane, register): (lane, register) for lane in range(32) for register in range(8)}
    before = dict(held)
    rounds = found_in(
        picture, r"^round (\d+), lane (\d+): offers register (\d+), reads lane (\d+), writes register (\d+)"
    )
    offers = {(number, lane): offered for number, lane, offered, _, _ in rounds}
    for number, lane, _, read, into in rounds:
        if (number, read) in offers:
            held[lane, into] = before[read, offers[number, read]]
    if len(found.shuffles.rounds) <= 10:
        moved = {key for key, value in held.items() if value != key}
        assert all(held[lane, r] == (came, word) for lane, r, came, word in shown if (lane, r) in moved)


@pytest.mark.parametrize("strategy", ["auto", "descriptors", "exact_pool", "overlap_pool", "shift_back", "overfetch"])
def test_a_ragged_family_shows_copies_that_cover_each_group(strategy: str) -> None:
    for multiple in (8, 96):
        assert "rows once" in la.draw.svg(
            la.ragged(la.Tensor((1024, 512)), 4, (64, 64), None, strategy, multiple=multiple)
        )
    family = synthesize_ragged(la.Tensor((1024, 512)), (64, 64), strategy=strategy)
    picture = la.draw.svg(family)
    sizes = [int(size) for size in re.findall(r">n = (\d+)<", picture)]
    assert len(set(sizes)) == len(sizes) >= 2
    copies = found_in(picture, r"^map (\d+): rows (\d+) to (\d+)$")
    expected = [(c.member, c.row, c.row + c.rows - 1) for size in sizes for c in family.copies([size])]
    assert copies == expected
    counted = [
        tuple(map(int, found)) for found in re.findall(r"(\d+) rows once(?:, (\d+) twice)?<", picture) if found[1]
    ]
    assert bool(counted) == (strategy in ("auto", "overlap_pool", "shift_back"))
    assert "never" not in picture


@pytest.mark.parametrize("assume", ["K % 8 == 0", "K % 64 == 0"])
def test_a_plan_for_all_sizes_shows_tails_and_the_words_that_change(assume: str) -> None:
    plan = la.tensormap(la.Tensor(("M", "K"), assume=(assume,)), (64, 64), "Sw<3,3,3> o 0 o (64,64):(64,1)")
    picture = la.draw.svg(plan)
    patched = {word for word, rest in re.findall(r"word (\d+): (\w+)\[", picture)}
    words = [np.frombuffer(plan.encode(M=m, K=k), dtype="<u4") for m, k in ((100, 128), (640, 64), (7, 1 << 20))]
    changed = {str(word) for word in range(32) for one in words if one[word] != words[0][word]}
    assert changed <= patched
    for word, value in re.findall(r"word (\d+): (0x\w+), constant", picture):
        assert all(one[int(word)] == int(value, 16) for one in words)
    hatched = picture.count(">out of bounds: filled<")
    tails = picture.count(">a tail<")
    assert hatched == 9
    assert tails == (5 if assume == "K % 8 == 0" else 3)  # the last row, and the last column where K has a tail


def test_tensor_memory_shows_allocations_and_accesses() -> None:
    first, second = tcgen05.TmemAllocation(256), tcgen05.TmemAllocation(64, 256)
    use = tcgen05.TmemUse().alloc(first, warp=0).alloc(second, warp=0)
    assert found_in(la.draw.svg(use), r"columns: allocation (\d+), columns (\d+) to (\d+)") == [
        (0, 0, 255),
        (1, 256, 319),
    ]
    assert "192 columns are free" in la.draw.svg(use)
    assert "256 columns are free" in la.draw.svg(first)
    access = tcgen05.TmemAccess("16x256b", 4, warp=1, lane=32, column=64)
    assert "lanes 32..47, columns 64..95" in la.draw.svg(access)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(3, 12), st.integers(2, 9), st.integers(-2, 0), st.integers(-3, 0), st.integers(1, 2), st.integers(4, 90)
)
def test_an_im2col_map_shows_its_pixels_in_order(
    wide: int, tall: int, low: int, high: int, step: int, pixels: int
) -> None:
    if wide - 1 + high < low or tall - 1 + high < low:
        return
    tm = Im2colMap(
        "f16", (64, wide, tall, 9), (128, 128 * wide, 128 * wide * tall), (low, low), (high, high), 8, pixels,
        element_strides=(1, step, step, 1),
    )  # fmt: skip
    expected = []
    for _ in range(9):
        for h in range(low, tall - 1 + high + 1, step):
            expected += [(w, h) for w in range(low, wide - 1 + high + 1, step)]
    shown = found_in(la.draw.svg(tm), r"^w (-?\d+), h (-?\d+): pixel (\d+)")
    assert {number: (w, h) for w, h, number in shown}.items() <= dict(enumerate(expected)).items()
    per_image = len(expected) // 9
    assert len(shown) == min(pixels, 3 * per_image)


def test_a_convolution_outlines_the_taps_of_its_first_pixel() -> None:
    plan = synthesize_im2col(ConvolutionProblem(la.Tensor((2, 8, 8, 64)), (3, 3), 64, 64, padding=(1, 1)))
    picture = la.draw.svg(plan)
    assert sum(node.get("class") == "w" for node in ET.fromstring(picture).iter(f"{SVG}rect")) == 9
    assert len(found_in(picture, r"pixel (\d+)")) == 64


@pytest.mark.parametrize(
    ("text", "consumer", "target"),
    [
        ("(64,64):(65,1)", "ldmatrix.x4", "sm_90a"),
        ("(64,64):(1,64)", "ldmatrix.x4", "sm_90a"),
        ("(64,64):(64,1)", "wgmma.A", "sm_90a"),
        ("(64,64):(72,1)", "tcgen05.A", "sm_100a"),
        ("(64,64):(65,1)", "tma", "sm_90a"),
        ("(64,64):(72,1)", "tma", "sm_90a"),
        ("(64,64):(64,1)", "tma", "sm_80"),
        ("(64,64):(65,1)", "ds_read_b128", "gfx942"),
        ("(60,64):(64,1)", "wgmma.A", "sm_90a"),
    ],
)
def test_a_refusal_shows_rule_witness_and_repairs(text: str, consumer: str, target: str) -> None:
    found = la.admissible(text, consumer, target)
    assert isinstance(found, la.Refused)
    offsets = table(text)
    for picture in (la.draw.svg(found), la.draw.admission(text, found)):
        words = " ".join(node.text or "" for node in ET.fromstring(picture).iter(f"{SVG}text"))
        assert all(rule in words for rule in found.rules)
        assert all(repair.name in words for repair in found.repairs[:4])
        seen = witness_of(found.witness)
        if seen is None:
            continue
        assert f"at {seen.at}" in words
        if seen.here:
            assert f"the layout: {seen.here}" in words
        if seen.needed:
            assert f"takes: {seen.needed}" in words
        if seen.point is not None and seen.here_byte is not None:
            assert 2 * offsets[seen.point] == seen.here_byte
    around = {(r, c): v for r, c, v in found_in(la.draw.admission(text, found), r"^\((\d+), (\d+)\) -> element (\d+)$")}
    seen = witness_of(found.witness)
    assert bool(around) == (seen is not None and seen.point is not None)
    assert all(offsets[point] == value for point, value in around.items())


@pytest.mark.parametrize(
    ("source", "destination", "target", "mechanism"),
    [
        ("(32,4):(4,1)", "(32,4):(1,32)", "sm_90a", "shuffles"),
        ("(64,8):(8,1)", "(64,8):(1,64)", "gfx942", "shared"),
        ("(128,4):(4,1)", "(128,4):(1,128)", "sm_90a", None),
        ("(32,3):(3,1)", "(32,3):(1,32)", "sm_90a", None),
        ("(96,5):(5,1)", "(96,5):(1,96)", "sm_90a", "shared"),
        ("(32,4):(4,1)", "(32,4):(4,1)", "gfx1201", None),
    ],
)
def test_a_conversion_shows_where_every_element_was(
    source: str, destination: str, target: str, mechanism: str | None
) -> None:
    plan = la.conversion(source, destination, 16, target, mechanism=mechanism)
    assert isinstance(plan, la.proofs.conversion.ConversionPlan)
    picture = la.draw.svg(plan)
    (have, want), lanes = (table(source), table(destination)), plan.lanes
    before = found_in(picture, r"^lane (\d+), register (\d+): element (\d+)$")
    after = found_in(
        picture, r"^lane (\d+), register (\d+): element (\d+), before in warp (\d+), lane (\d+), register (\d+)$"
    )
    assert len(before) == len(after) == lanes * have.shape[1]  # the first warp
    assert all(have[lane, register] == element for lane, register, element in before)
    for lane, register, element, warp, lane_before, register_before in after:
        assert want[lane, register] == element == have[warp * lanes + lane_before, register_before]
    for access in (access for step in plan.steps if hasattr(step, "store") for access in (step.store, step.load)):
        assert f"{access.count} {access.instruction} (" in picture
    assert all(other.because in picture or other.cost is not None for other in plan.alternatives)


@pytest.mark.parametrize("mechanism", [None, "shared"])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_gather_shows_where_every_index_leads(axis: int, mechanism: str | None) -> None:
    text, shape = "((8,4,2),4):((1,8,128),32)", (16, 16)
    plan = la.gather(text, text, axis, 16, shape=shape, mechanism=mechanism)
    held = np.asarray(la.parse(text).table()).reshape(64, 4, order="F")
    pattern = r"^lane (\d+), index (\d+): element (\d+), in warp (\d+), lane (\d+), register (\d+)$"
    shown = found_in(la.draw.svg(plan), pattern)
    assert len(shown) == 32 * 16
    for lane, index, element, warp, there, register in shown:
        at = [held[lane, 0] % 16, held[lane, 0] // 16]
        at[axis] = index
        assert at[0] + 16 * at[1] == element == held[32 * warp + there, register]


@given(
    shape=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    strides=st.lists(st.integers(0, 200), min_size=4, max_size=4),
    dtype=st.sampled_from(["u8", "bf16", "f32", "f64"]),
)
def test_a_tensor_shows_the_bytes_of_its_first_elements(shape: list[int], strides: list[int], dtype: str) -> None:
    stride = strides[: len(shape)]
    size = {"u8": 1, "bf16": 2, "f32": 4, "f64": 8}[dtype]
    shown = found_in(la.draw.svg(la.Tensor(shape, stride, dtype)), r"^\((\d+),(\d+)\) at byte (\d+)$")
    memory = np.arange(40 * 200 * 4 + 1) * size
    view = np.lib.stride_tricks.as_strided(memory, shape, [8 * step for step in stride])
    corner = view.reshape(-1, *((1, *shape)[-2:]))[0][:8, :8]
    assert shown == [(row, column, int(corner[row, column])) for row, column in np.ndindex(corner.shape)]


def test_every_drawn_value_shows_itself_in_notebooks() -> None:
    access = la.admissible("(64,64):(64,1)", "ldmatrix.x4")
    values = [
        access, access.descriptor, la.admissible("(64,64):(65,1)", "tma"), la.admissible("(64,64):(64,1)", "bulk"),
        la.admissible("Sw<3,3,3> o 0 o (64,64):(64,1)", "tcgen05.B", "sm_100a").descriptor,
        la.admissible("(64,64):(64,1)", "ds_read_b128", "gfx942").descriptor,
        tcgen05.TmemAllocation(64), Im2colMap("f16", (64, 9, 4), (128, 1152), (0,), (0,), 8, 64),
        synthesize_ragged(la.Tensor((1024, 512)), (64, 64)), factorise("(16,64):(64,1)"),
        la.Tensor((1024, 512)), la.Tensor(("M", 512)),
    ]  # fmt: skip
    for value in values:
        bundle = value._repr_mimebundle_()
        assert bundle["text/plain"] == str(value) == la.draw.text(value)
        assert ET.fromstring(bundle["image/svg+xml"]) is not None
        assert not re.search(r"\bon\w+=|href|<script", bundle["image/svg+xml"])
    with pytest.raises(la.MalformedError, match="LA560"):
        la.draw.admission("(4,8):(1,4)", 3)
    assert json.dumps(values[0].to_json())

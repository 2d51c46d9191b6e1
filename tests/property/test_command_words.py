"""What a newcomer types: types or widths, tiles or shapes, options anywhere, tiles of a block, documents as text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judges.commands import run

import layoutalg as la
from layoutalg.cli import PROVED, REFUTED, USAGE
from layoutalg.cli.commands import COMMANDS, KINDS, arguments_of
from layoutalg.ground.errors import MalformedError
from layoutalg.proofs.dtypes import element_type, stated_bits, stated_type

NAMES = {"f16": 16, "torch.bfloat16": 16, "float32": 32, "e4m3": 8, "fp8e5": 8, "fp64": 64, "half_t": 16, "fp4": 4}
COPY = """TiledCopy
  Tiler_MN:       (_32,_64)
  TiledLayout_TV: ((_8,_32),(_1,_8)):((_256,_1),(_0,_32))
Copy_Atom
  ThrID:        _1:_0
  ValLayoutSrc: (_1,_8):(_0,_1)
  ValLayoutDst: (_1,_8):(_0,_1)
  ValLayoutRef: (_1,_8):(_0,_1)
  ValueType:    16b"""
BY_TYPE = [
    ("banks", "columns:1", "(32,32):(33,1)"),
    ("padding", "32,32", "rows:1:store", "columns:1"),
    ("swizzle", "rows", "columns", "--tile", "64,64"),
    ("conversion", "(32,2):(2,1)", "(32,2):(1,32)"),
    ("gather", "(32,2):(1,32)", "--axis", "0", "--shape", "64"),
    ("gather", "--indices", "[[5, 1, 1, 900]]", "--length", "1024"),
    ("transactions", "(32,4):(1,32)", "(32,4):(1,64)"),
    ("transactions", "(32,4):(1,32)", "64,64", "--tile", "32,4"),
]


@pytest.mark.parametrize("words", BY_TYPE)
def test_a_type_and_its_width_are_one_question_under_either_name(words):
    code, first, _ = run(*words, "--bits", "32")
    assert code == PROVED
    for option, value in (("--dtype", "32"), ("--dtype", "f32"), ("--bits", "torch.float32")):
        assert run(*words, option, value)[:2] == (PROVED, first)
    assert run(*words, "--dtype", "float")[0] == USAGE
    assert "must name a single element type" in run(*words, "--dtype", "float")[2]
    assert run(*words, "--dtype", "12")[0] == USAGE


def test_every_command_has_both_names():
    for name, options in {**COMMANDS, **KINDS}.items():
        flags = [entry.flags for entry in arguments_of(options).values()]
        for one, other in (("--dtype", "--bits"), ("--tile", "--shape"), ("--access", "--instruction")):
            has = [each for each in flags if one in each or other in each]
            assert all(one in each and other in each for each in has) or name in ("emit", "tune"), (name, has)


@given(st.sampled_from(sorted(NAMES)), st.sampled_from([8, 16, 32]))
def test_a_name_is_the_bits_of_its_type(name, width):
    assert stated_bits(name) == NAMES[name] == element_type(name).bits
    assert stated_bits(str(width)) == width == stated_type(str(width)).bits
    text = f"smem_ptr[{width}b](unset) o (4,8):(8,1)"
    if NAMES[name] == width:
        assert stated_bits(name, text) == width
        return
    for call in (stated_bits, stated_type):
        with pytest.raises(MalformedError, match=f"must be of {width} bits"):
            call(name, text)
        with pytest.raises(MalformedError, match=f"must be of {width} bits"):
            call("64", text)


def test_a_width_agrees_with_any_type_of_it_that_a_text_names():
    memref = "memref<64x64xf16, strided<[72, 1]>>"
    assert stated_type("16", memref).name == "f16"
    assert run("admissible", "memref<64x64xf16>", "ldmatrix", "--bits", "16")[0] == PROVED
    code, out, _ = run("explain", "memref<64x64xf16>", "--bits", "16")
    assert (code, out) == run("explain", "memref<64x64xf16>")[:2]
    with pytest.raises(MalformedError, match="e4m3 or e5m2"):
        la.banks("ldmatrix", "(64,64):(64,1)", "fp8")
    assert la.banks("columns:1", "(32,32):(33,1)", "f32").turns == 32


POWERS = st.sampled_from([1, 2, 4])


SHAPES = st.tuples(st.integers(1, 200), st.integers(1, 200))


@settings(max_examples=30)
@given(st.tuples(POWERS, POWERS), st.sampled_from([(1, 32), (4, 8), (32, 1)]), st.tuples(POWERS, POWERS), SHAPES)
def test_a_blocked_layout_has_the_tile_of_one_block(sizes, lanes, warps, shape):
    text = (
        f"#ttg.blocked<{{sizePerThread = {list(sizes)}, threadsPerWarp = {list(lanes)}, warpsPerCTA = {list(warps)}, "
        "order = [1, 0]}>"
    )
    tile = tuple(a * b * c for a, b, c in zip(sizes, lanes, warps, strict=True))
    found = la.transactions(text, (shape, None, "f32"))
    assert found.bytes == 4 * min(tile[0], shape[0]) * min(tile[1], shape[1])
    stated = la.transactions(text, (shape, None, "f32"), tile=tile)
    assert (found.sectors, found.lines, found.each) == (stated.sectors, stated.lines, stated.each)
    along = la.transactions(f"#ttg.slice<{{dim = 0, parent = {text}}}>", (shape[1:], None, "f32"))
    assert along.bytes == 4 * min(tile[1], shape[1]) * warps[0]  # warps that hold copies request them too


def test_large_tensors_are_read_by_tiles_of_a_block():
    text = "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>"
    gluon = "gl.BlockedLayout(size_per_thread=[1, 8], threads_per_warp=[4, 8], warps_per_cta=[4, 1], order=[1, 0])"
    for words in (text, gluon, f"#blocked = {text}"):
        code, out, _ = run("transactions", words, "4096,4096", "--dtype", "f16")
        assert (code, out.splitlines()[0]) == (
            PROVED,
            "4 x ld.global.v4.b32: 64 sectors of 32 bytes in 16 lines, the fewest",
        )
    code, out, _ = run("transactions", text, "4096,4096", "--access", "store", "--tile", "32,64")
    assert (code, out.split(":")[0]) == (PROVED, "8 x st.global.v4.b32")
    code, _, err = run("transactions", text, "4096,4096", "store", "--access", "store")
    assert (code, "in     --access" in err) == (USAGE, True)


@pytest.mark.parametrize("wrong", ["sizePerThread = 3", "sizePerThread = [1]", "sizePerThread = [[1, 2], 1]"])
def test_a_malformed_attribute_is_refused_by_its_own_rule(wrong):
    text = f"#ttg.blocked<{{{wrong}, threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}}>"
    for each in (text, f"#ttg.slice<{{dim = 7, parent = {text}}}>"):
        with pytest.raises(MalformedError):
            la.transactions(each, ((64, 64), None, "f32"))


def test_numbers_of_a_whole_tensor_are_said_to_be():
    told = [la.transactions("(32,4):(1,32)", ((4096, 2048), None, "f32"), tile=tile) for tile in (None, (32, 4))]
    assert told[0].sectors == 4 * 32  # rows 0 to 127 of one column
    assert told[0].notes == ("no tile: registers number the elements of all 4096 x 2048, dimension 0 fastest",)
    assert (told[1].sectors, told[1].notes) == (32, ())


def test_options_may_stand_between_arguments():
    shared = "Sw<3,3,3> o 0 o (64,64):(64,1)"
    first = run("banks", "ldmatrix", shared, "--dtype", "f16")
    assert first[0] == PROVED
    assert (
        run("banks", "ldmatrix", "--dtype", "f16", shared)
        == run("banks", "--dtype", "f16", "ldmatrix", shared)
        == first
    )
    tile = ("transactions", "(32,4):(1,32)", "4096,2048")
    assert run(*tile, "--tile", "32,4", "ld.global.b16") == run(*tile, "ld.global.b16", "--shape", "32,4")
    code, _, err = run("banks", "ldmatrix", "--dtype", "f16", shared, "more")
    assert (code, "unrecognized arguments: more" in err) == (USAGE, True)


def test_a_copy_that_reads_and_writes_alike_is_one_layout():
    tiled = la.parse(COPY).layouts["tiled"]
    assert la.banks(COPY, "(32,64):(64,1)").turns == la.banks(tiled, "(32,64):(64,1)").turns == 32
    found = la.transactions(COPY, ((4096, 2048), None, "f16"))
    assert (found.sectors, found.lines) == (128, 32)
    other = COPY.replace("ValLayoutDst: (_1,_8):(_0,_1)", "ValLayoutDst: (_1,(_2,_4)):(_0,(_4,_1))")
    with pytest.raises(MalformedError, match="it has several"):
        la.banks(other, "(32,64):(64,1)")


def test_documents_may_be_the_argument():
    code, out, _ = run("synth", "tensormap", "(64,64):(64,1)", "--tensor", "512,512", "--json")
    assert (code, run("check", out)[0], run("validate", out, "--device", "simulator")[0]) == (PROVED, PROVED, PROVED)
    broken = json.loads(out)
    broken["tensormap"]["box"] = [8, 64]
    assert run("check", json.dumps([broken]))[0] == REFUTED
    code, _, err = run("verify", '{"stages": 3}')
    assert (code, "the key 'schema' is required" in err) == (USAGE, True)
    code, _, err = run("check", "nothing.json")
    assert (code, "cannot read the document" in err) == (USAGE, True)


def test_a_flat_list_of_indices_is_one_row():
    words = ("--length", "1024", "--dtype", "f16")
    assert run("gather", "--indices", "[5, 1, 900]", *words) == run("gather", "--indices", "[[5, 1, 900]]", *words)


def test_near_names_are_listed_once():
    _, _, err = run("banks", "ld_matrix", "(64,64):(64,1)")
    near = err.partition("near: ")[2].partition(". Names")[0].split(", ")
    assert len(near) == len(set(near)) == 4


def test_tilers_by_mode_and_sizes_of_attributes():
    code, out, _ = run("divide", "(128,64):(64,1)", "<32,(4,8):(1,4)>")
    assert (code, out.strip()) == (PROVED, "((32,4),((4,8),2)):((64,2048),((1,4),32))")
    whole = la.cute.logical_divide(la.CuteLayout((128, 64), (64, 1)), (32, la.CuteLayout((4, 8), (1, 4))))
    assert str(whole) == out.strip()
    assert run("divide", "(128,64):(64,1)", "<32,", "--widen")[0] == USAGE
    assert run("divide", "(128,64):(64,1)", "<32,32>", "--widen")[0] == USAGE
    text = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>"
    assert run("equivalent", text, text, "--shape", "64,64")[0] == PROVED

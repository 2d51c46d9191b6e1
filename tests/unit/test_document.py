"""Documents: every refusal points at the place."""

from __future__ import annotations

import copy
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg.ground import limits
from layoutalg.ground.document import DOCUMENT_DEPTH, DOCUMENT_VALUES, DOCUMENTS, Reader, load_json, split_json
from layoutalg.ground.errors import MalformedError
from layoutalg.proofs.tensormap import TensorMapProblem
from layoutalg.proofs.wgmma import OperandProblem

GOOD = {
    "schema": "layoutalg/tensormap-problem/1",
    "arch": "sm_90a",
    "direction": "load",
    "global": {"shape": [1024, 512], "stride": [512, 1], "dtype": "bf16", "base_align_bytes": 256},
    "tile": [64, 64],
    "smem": {"modes": [[[64, 64]], [[64, 1]]], "swizzle": "128B"},
}


@pytest.mark.parametrize(
    ("path", "value", "pointer", "rule"),
    [
        (("schema",), "layoutalg/other/9", "/schema", "must be 'layoutalg/tensormap-problem/1'"),
        (("arch",), "sm_42", "/arch", "must be one of sm_90"),
        (("direction",), "both", "/direction", "must be one of load, store"),
        (("global", "dtype"), "fp99", "/global/dtype", "must be one of u8"),
        (("global", "shape"), [1024, 0], "/global/shape/1", "must be at least 1"),
        (("global", "shape"), [1024, -5], "/global/shape/1", "must be at least 1"),
        (("global", "shape"), [1024, 5.0], "/global/shape/1", "must be an integer"),
        (("global", "shape"), [1024, True], "/global/shape/1", "must be an integer"),
        (("global", "shape"), [1024, 2**63], "/global/shape/1", "signed 64-bit"),
        (("global", "shape"), [], "/global/shape", "1 to 16 dimensions"),
        (("global", "stride"), [512], "/global/stride", "a list of 2 entries"),
        (("global", "stride"), "512", "/global/stride", "must be a list"),
        (("global", "base_align_bytes"), 24, "/global/base_align_bytes", "power of two"),
        (("global", "colour"), 1, "/global/colour", "keys must be among"),
        (("tile",), [64, 2**40], "/tile", "at most"),
        (("smem", "modes"), [[[64, 64]], [[32, 1]]], "/smem/modes/1", "multiply to the tile extent 64"),
        (("smem", "modes"), [[[64, 64]], [[64, -1]]], "/smem/modes/1/0", "at least 0"),
        (("smem", "modes"), [[[64, 64]], [[64]]], "/smem/modes/1/0", "a list of 2 entries"),
        (("smem", "swizzle"), "256B", "/smem/swizzle", "must be one of NONE"),
        (("bounds",), [1024, 600], "/bounds/1", "bounds must satisfy"),
        (("bounds",), [[8, 8], 512], "/bounds/0", "bounds must satisfy"),
        (("element_strides",), [0, 1], "/element_strides/0", "must be at least 1"),
        (("oob_fill",), "ONE", "/oob_fill", "must be one of ZERO, NAN"),
        (("base_elem_offset",), -1, "/base_elem_offset", "must be at least 0"),
        (("oob_required",), "perfect", "/oob_required", "must be one of exact"),
    ],
)
def test_malformed_problem_points_at_the_place(path, value, pointer, rule):
    document = copy.deepcopy(GOOD)
    node = document
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    with pytest.raises(MalformedError) as caught:
        TensorMapProblem.from_json(document)
    assert caught.value.diagnostic.where == (pointer,)
    assert rule in caught.value.diagnostic.because


@pytest.mark.parametrize("key", ["schema", "arch", "direction", "global", "tile", "smem"])
def test_a_missing_key_is_named(key):
    document = {name: value for name, value in GOOD.items() if name != key}
    with pytest.raises(MalformedError, match=f"the key '{key}' is required"):
        TensorMapProblem.from_json(document)


@pytest.mark.parametrize("document", [None, 3, [], "text", {"schema": 4}])
def test_other_json_values_are_refused(document):
    with pytest.raises(MalformedError):
        TensorMapProblem.from_json(document)


def test_problem_round_trips():
    problem = TensorMapProblem.from_json(GOOD)
    assert TensorMapProblem.from_json(json.loads(json.dumps(problem.to_json()))) == problem
    assert TensorMapProblem.from_json(json.loads(str(problem))) == problem


def test_a_tile_given_as_traversed_extents_counts_elements():
    document = copy.deepcopy(GOOD)
    document["tile"], document["element_strides"] = [128, 64], [2, 1]
    assert TensorMapProblem.from_json(document).tile == (64, 64)


@pytest.mark.parametrize(
    "text", ["", "{", '{"a": NaN}', '{"a": Infinity}', "[" * 100_000, '{"a": 1,}', "\x00", '{"a" 1}']
)
def test_text_that_is_not_json_is_refused(text):
    with pytest.raises(MalformedError) as caught:
        load_json(text, "problem.json")
    assert caught.value.diagnostic.code == "LA011"
    assert caught.value.diagnostic.where[0].startswith("problem.json")


def test_a_syntax_error_shows_a_caret():
    with pytest.raises(MalformedError) as caught:
        load_json('{"tile": [64, 64}', "p")
    line, caret = caught.value.diagnostic.where[1].split("\n")
    assert line[caret.index("^")] == "}"


def test_numpy_integers_count_as_integers():
    import numpy as np

    assert Reader([np.int32(4), np.uint8(7)]).integers() == (4, 7)


def many_digits(kind: str, count: int) -> tuple[type, dict]:
    digits = [[2**62, 0]] * count
    if kind == "tensormap":
        return TensorMapProblem, {**GOOD, "smem": {"modes": [digits, [[64, 1]]], "swizzle": "NONE"}}
    smem = {"modes": [digits, [[16, 1]]], "swizzle": "NONE"}
    return OperandProblem, {"schema": "layoutalg/wgmma-problem/1", "operand": "A", "shape": [64, 16], "smem": smem}


@pytest.mark.parametrize("kind", ["tensormap", "wgmma"])
@pytest.mark.parametrize("count", [limits.MODE_DIGITS + 1, 60_000, 100_000])
def test_the_digits_of_a_tile_dimension_are_counted_before_they_are_multiplied(kind, count):
    reader, document = many_digits(kind, count)
    began = time.process_time()
    with pytest.raises(MalformedError, match="at most"):
        reader.from_json(document)
    assert time.process_time() - began < 1


def test_as_many_digits_as_the_limit_says_are_read():
    document = copy.deepcopy(GOOD)
    document["smem"]["modes"][0] = [[64, 64], *[[1, 0]] * (limits.MODE_DIGITS - 1)]
    assert TensorMapProblem.from_json(document).tile == (64, 64)


TWICE = [
    ('{"a": 1, "a": 1}', "d, at the whole document", "'a'"),
    ('{"a": [0, {"b": {"c": 1, "d": 2, "c": 3}}]}', "d, at /a/1/b", "'c'"),
    ('{"x/y": {"m~n": {"k": 1, "k": 2}}}', "d, at /x~1y/m~0n", "'k'"),
    ('{"\\u001b[31m": {"\\ud800": 1, "\\ud800": 2}}', "d, at /\\x1b[31m", r"'\ud800'"),
    ('{"a": {"b": 1, "b": 2}, "a": 3}', "d, at the whole document", "'a'"),
    ('{"a": 1, "\\u0061": 2}', "d, at the whole document", "'a'"),
]


@pytest.mark.parametrize(("text", "where", "key"), TWICE)
def test_a_key_that_stands_twice_is_refused(text, where, key):
    with pytest.raises(MalformedError) as caught:
        load_json(text, "d")
    diagnostic = caught.value.diagnostic
    assert (diagnostic.code, diagnostic.where) == ("LA013", (where,))
    assert diagnostic.because == f"duplicate key {key} in this object"
    with pytest.raises(MalformedError, match="LA013"):
        split_json(f"[0, {text}]")
    with pytest.raises(MalformedError, match="LA013"):
        split_json(text)


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("NaN", "NaN is not JSON"), ("-Infinity", "-Infinity is not JSON"), ("1e400", "too large"),
        ("9" * 5000, "at most 1000 digits, not 5000"), ("0." + "9" * 5000, "at most 1000 digits"),
    ],
)  # fmt: skip
def test_numbers_that_are_not_json_are_refused_at_their_place(value, rule):
    with pytest.raises(MalformedError) as caught:
        load_json(f'{{"a": [1, {value}]}}', "d")
    assert caught.value.diagnostic.where == ("d, at /a/1",)
    assert rule in caught.value.diagnostic.because


@pytest.mark.parametrize("text", ["{\n", "\n", "[\n\n", '{"a":\n', '"\u2028', '["\u2028", ]', "\x0b", "\r\n{\r\n"])
def test_text_that_ends_early_or_holds_other_line_breaks_is_shown_with_a_caret(text):
    for read in (load_json, split_json):
        with pytest.raises(MalformedError) as caught:
            read(text, "d")
        diagnostic = caught.value.diagnostic
        assert diagnostic.code == "LA011"
        shown_line, caret = diagnostic.where[1].split("\n")
        assert set(caret) <= {" ", "^"}
        assert len(caret) <= len(shown_line) + 1
        assert shown_line.isprintable()


def test_the_line_of_a_syntax_error_counts_line_feeds_alone():
    with pytest.raises(MalformedError) as caught:
        load_json('{"a": "\u2028\u2029\x85",\n "b": }', "d")
    assert caught.value.diagnostic.where == ("d, line 2, column 7", ' "b": }\n      ^')


def test_depth_is_bounded():
    deep = "[" * (DOCUMENT_DEPTH + 1) + "]" * (DOCUMENT_DEPTH + 1)
    assert load_json(deep[1:-1]) is not None
    for text in (deep, '{"a":' * 200 + "0" + "}" * 200, "[" * 10**6):
        with pytest.raises(MalformedError, match=r"LA011.*\n.*\n.*nested too deeply"):
            load_json(text)


def test_the_number_of_values_is_bounded():
    with pytest.raises(MalformedError, match="LA014"):
        load_json("[" + "{}," * DOCUMENT_VALUES + "0]")


def test_the_number_of_documents_is_bounded():
    assert len(split_json("[" + "0," * (DOCUMENTS - 1) + "0]")) == DOCUMENTS
    with pytest.raises(MalformedError, match=r"LA014.*\n.*\n.*more than 100000 documents"):
        split_json("[" + "0," * DOCUMENTS + "0]")


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(documents, st.sampled_from([None, 1]), st.booleans())
def test_reading_agrees_with_the_standard_reader(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert load_json(text) == value
    if value == []:
        with pytest.raises(MalformedError, match="at least one document"):
            split_json(text)
        return
    found = split_json(f" {text}\n")
    assert found.is_list is isinstance(value, list)
    assert list(found) == (value if isinstance(value, list) else [value])
    assert len(found) == len(list(found))


@settings(max_examples=200, deadline=None)
@given(documents, st.data())
def test_broken_text_is_refused_by_both_readers(value, data):
    text = json.dumps(value)
    place = data.draw(st.integers(0, len(text)))
    broken = text[:place] + data.draw(st.sampled_from(["", ",", "]", "}", '"', "\n", "x", " "])) + text[place + 1 :]
    try:
        expected = json.loads(broken, parse_float=finite, object_pairs_hook=unique)
    except ValueError:
        for read in (load_json, split_json):
            with pytest.raises(MalformedError):
                read(broken)
    else:
        assert load_json(broken) == expected


def finite(text):
    if abs(float(text)) == float("inf"):
        raise ValueError("infinite")
    return float(text)


def unique(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError("twice")
    return dict(pairs)


def test_a_missing_key_is_said_without_a_value():
    with pytest.raises(MalformedError) as caught:
        Reader({}, "/a").get("smem")
    assert caught.value.diagnostic.where == ("/a/smem",)
    assert caught.value.diagnostic.because == "the key 'smem' is required"


def test_pointers_are_those_of_rfc_6901_and_printable():
    with pytest.raises(MalformedError) as caught:
        Reader({"a/b~c\x1b[2J\ud800": 1}).keys(())
    (pointer,) = caught.value.diagnostic.where
    assert pointer == r"/a~1b~0c\x1b[2J\ud800"
    with pytest.raises(MalformedError) as caught:
        Reader({"k" * 10**6: 1}).keys(())
    assert len(caught.value.diagnostic.where[0]) < 100
    assert len(str(caught.value)) < 500

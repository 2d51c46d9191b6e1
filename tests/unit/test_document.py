"""Documents: every refusal points at the place."""

from __future__ import annotations

import copy
import json

import pytest

from layoutalg.document import Reader, load_json
from layoutalg.errors import MalformedError
from layoutalg.proofs.tensormap import TensorMapProblem

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
        (("global", "colour"), 1, "/global/colour", "keys here are"),
        (("tile",), [64, 2**40], "/tile", "at most"),
        (("smem", "modes"), [[[64, 64]], [[32, 1]]], "/smem/modes/1", "multiply to the tile extent 64"),
        (("smem", "modes"), [[[64, 64]], [[64, -1]]], "/smem/modes/1/0", "at least 0"),
        (("smem", "modes"), [[[64, 64]], [[64]]], "/smem/modes/1/0", "a list of 2 entries"),
        (("smem", "swizzle"), "256B", "/smem/swizzle", "must be one of NONE"),
        (("bounds",), [1024, 600], "/bounds/1", "bounds lie within the extent"),
        (("bounds",), [[8, 8], 512], "/bounds/0", "bounds lie within the extent"),
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

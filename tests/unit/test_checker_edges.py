"""Certificates at the edges of the rules of the stand-alone checker: the last that hold, the first that do not."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from judges.certificates import told

import layoutalg as la
from layoutalg.proofs.checker import base
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.synth import synthesize_tensormap
from layoutalg.synth.wgmma import canonical_operand, synthesize_wgmma
from layoutalg.targets.nvidia import tensormap

TABLE, SOLVERS = {"by": "table"}, {"by": "solvers"}


def staged(size: int, *stages: list[Any]) -> dict[str, Any]:
    return {"size": size, "stages": list(stages)}


def line(size: int, step: int = 1, first: int = 0) -> dict[str, Any]:
    return staged(size, ["affine", [[step]], [first]])


def cut(size: int, end: int) -> dict[str, Any]:
    """i for i < end, and no value from there on."""
    return staged(size, ["pieces", [[[], [[[-1], end - 1, ">="]], [[[1], 0]]]]])


# --- functions ------------------------------------------------------------------------------------------------------


def carried(row: list[int], divisor: int) -> list[list[Any]]:
    """floor(row digits / divisor) of i with the digits 4, 2, 2, 2, 2."""
    return [
        ["split", [4, 2, 2, 2, 2]], ["affine", [row], [0]], ["split", [divisor, 64]], ["affine", [[0, 1]], [0]],
    ]  # fmt: skip


def test_digits_are_compared_on_every_set_that_a_number_depends_on():
    """One number of two digits differs where neither digit is 0; numbers of three other digits are equal."""
    same = [carried([0, 0, 1, 1, 1], 2), carried([0, 0, 2, 2, 2], 4)]
    near = [carried([1, 3, 0, 0, 0], 4), carried([1, 3, 0, 0, 0], 6)]
    f = staged(64, ["fork", *same, *near], ["affine", [[1, -1, 1, -1]], [0]])
    g = staged(64, ["affine", [[0]], [0]])
    by = {"by": "digits", "digits": [4, 2, 2, 2, 2]}
    assert told("equality", {"f": f, "g": g}, by)[1].startswith("f and g differ, at [5]")
    twice = staged(64, ["fork", *near, *near], ["affine", [[1, -1, 1, -1]], [0]])
    assert (
        "at [5]" in told("equality", {"f": twice, "g": staged(64, ["fork", *near], ["affine", [[1, -1]], [0]])}, by)[1]
    )
    equal = staged(64, ["fork", *same], ["affine", [[1, -1]], [0]])
    assert told("equality", {"f": equal, "g": g}, by)[0] == 0


@pytest.mark.parametrize(
    ("f", "g", "by", "fact"),
    [
        (line(4), staged(4, ["xor", [1, 2], 0], ["pieces", [[[], [[[-1], 2, ">="]], [[[1], 0]]]]]), SOLVERS, "at [3]"),
        (line(4), staged(4, ["pieces", [[[], [[[-1], 2, ">="]], [[[1], 0]]], [[], [], [[[0], 9]]]]]), SOLVERS,
         "at [3]"),
        (cut(4, 3), line(4), TABLE, "at [3], got None"),
        (line(4), cut(4, 3), TABLE, "at [3], got [3], expected None"),
        (line(4), staged(4, ["pieces", [[[], [[[1], -1, ">="]], [[[1], 0]]], [[], [], [[[1], 1]]]]]), TABLE, "at [0]"),
        (line(4), line(5), TABLE, "f and g have different domains, f 4, g 5"),
        (line(4), line(3), TABLE, "f and g have different domains, f 4, g 3"),
        (line(4), staged(4, ["split", [2, 2]], ["affine", [[1, 2], [0, 0]], [0, 0]]), TABLE, "numbers of values"),
        (staged(4, ["split", [2, 2]]), staged(4, ["split", [2, 2]], ["affine", [[1, 0], [0, 2]], [0, 0]]), TABLE,
         "at [2], got [0, 1], expected [0, 2]"),
        (line(4), staged(4, ["mod", [4, 4]]), TABLE, "a stage mod has a wrong number of moduli"),
        (line(4), staged(4, ["affine", [[1, 0]], [0]]), TABLE, "a row has a wrong length"),
        (line(4), staged(4, ["table", [0, 1, 2]]), TABLE, "a number has no place in the table, got [3], entries 3"),
        (line(4), staged(4, ["affine", [[1]], [-1]], ["table", [1, 2, 3, 0]]), TABLE, "got [-1], entries 4"),
        (line(8), line(8), {"by": "digits", "digits": [2, 2]}, "the product of the digits is not the size"),
        (line(8), line(8), {"by": "digits", "digits": [4, 4]}, "the product of the digits is not the size"),
    ],
)  # fmt: skip
def test_functions_that_differ_at_one_edge_are_refuted(f: Any, g: Any, by: Any, fact: str):
    code, said = told("equality", {"f": f, "g": g}, by)
    assert code == 1, said
    assert fact in said


def test_the_first_piece_that_holds_counts():
    pieces = [[[], [[[1], -2, ">="]], [[[0], 7]]], [[], [[[1], -1, ">="]], [[[0], 8]]], [[], [], [[[0], 9]]]]
    f, g = staged(4, ["pieces", pieces]), staged(4, ["table", [9, 8, 7, 7]])
    assert told("equality", {"f": f, "g": g}, TABLE)[0] == 0
    apart = [[[], [[[1], 0, "="]], [[[0], 9]]], [[], [[[1], -1, "="]], [[[0], 8]]], [[], [], [[[0], 7]]]]
    assert told("equality", {"f": f, "g": staged(4, ["pieces", apart])}, SOLVERS)[0] == 0


def test_no_more_points_are_evaluated_than_are_said():
    code, said = told("equality", {"f": line(base.POINTS + 1), "g": line(base.POINTS + 1)}, TABLE)
    assert (code, said.split()[0]) == (2, str(base.POINTS + 1))


def test_an_object_has_the_entries_of_its_form_and_no_others():
    statement = {"f": line(4), "g": line(4)}
    assert "certificate.evidence has an unknown entry" in told("equality", statement, TABLE | {"more": 1})[1]
    assert "certificate.statement lacks an entry" in told("equality", {"f": line(4)}, TABLE)[1]
    short = staged(4, ["pieces", [[[], []]]])
    assert "has a wrong length, got 2, expected 3" in told("equality", {"f": short, "g": line(4)}, TABLE)[1]


@pytest.mark.parametrize(
    ("kind", "statement", "evidence", "fact"),
    [
        ("inequality", {"f": line(4), "g": line(5)}, {"at": [4]}, None),
        ("inequality", {"f": line(5), "g": line(5, 2)}, {"at": [5]}, "f and g do not differ there"),
        ("composition", {"f": line(4), "g": line(4), "h": line(4)}, TABLE, None),
        ("composition", {"f": line(4), "g": line(3), "h": line(4)}, TABLE, "h has another size than g"),
        ("composition", {"f": line(4), "g": line(4), "h": line(3)}, TABLE, "h has another size than g"),
        ("composition", {"f": line(3), "g": line(4), "h": line(4)}, TABLE, "a value is not in the domain 0 to 2"),
        ("no-composition", {"f": line(4), "g": line(5)}, {"at": 4}, None),
        ("no-composition", {"f": line(4), "g": line(5)}, {"at": 3}, "g(i) is in the domain of f"),
        ("no-composition", {"f": line(4), "g": line(4, 1, 1)}, {"at": 4}, "evidence.at is not in the domain"),
        ("inverse", {"f": line(4, 2), "inverse": staged(8, ["split", [2, 4]], ["affine", [[0, 1]], [0]]),
                     "side": "left"}, TABLE, None),
        ("inverse", {"f": line(4, 2), "inverse": staged(8, ["split", [2, 4]], ["affine", [[0, 1]], [0]]),
                     "side": "right"}, TABLE, "this is not an inverse"),
        ("inverse", {"f": staged(8, ["split", [2, 4]], ["affine", [[0, 1]], [0]]), "inverse": line(4, 2),
                     "side": "right"}, TABLE, None),
        ("inverse", {"f": line(4, 2), "inverse": staged(8, ["split", [2, 4]], ["affine", [[0, 1]], [0]]),
                     "side": "both"}, TABLE, "the sizes differ, so no inverse is two-sided"),
        ("inverse", {"f": staged(8, ["split", [2, 4]], ["affine", [[0, 1]], [0]]), "inverse": line(4, 2),
                     "side": "both"}, TABLE, "the sizes differ, so no inverse is two-sided"),
        ("no-inverse", {"f": line(4, 2), "codomain": 8, "side": "right"},
         {"missed": 7, "invariant": [["mod", [2]]], "by": TABLE}, None),
        ("no-inverse", {"f": line(4, 2), "codomain": 7, "side": "right"},
         {"missed": 7, "invariant": [["mod", [2]]], "by": TABLE}, "the missed value is not in the codomain"),
        ("no-inverse", {"f": line(4, 2), "codomain": 8, "side": "left"},
         {"missed": 7, "invariant": [["mod", [2]]], "by": TABLE}, "two points exclude a left inverse"),
        ("no-inverse", {"f": line(4, 0), "codomain": 4, "side": "right"}, {"points": [0, 1]},
         "two points exclude a left inverse"),
        ("no-inverse", {"f": line(4, 0), "codomain": 4, "side": "left"}, {"points": [3, 3]}, "the points are not two"),
        ("no-inverse", {"f": line(4, 0), "codomain": 4, "side": "left"}, {"points": [3, 4]}, "the points are not two"),
        ("no-inverse", {"f": line(4, 0), "codomain": 4, "side": "both"}, {"points": [0, 3]}, None),
    ],
)  # fmt: skip
def test_compositions_and_inverses_end_where_their_domains_end(kind: str, statement: Any, evidence: Any, fact: Any):
    code, said = told(kind, statement, evidence)
    assert code == (0 if fact is None else 1), said
    assert fact is None or fact in said


def test_a_listed_sum_excludes_its_candidate():
    """x = 0 and x = 1 have no solution, and neither has 2 x = 1, modulo 2."""
    twice = {"size": 2, "at": [["affine", [[1]], [0]]], "unknowns": 1, "rows": [["affine", [[0, 0], [0, 1]], [1, 0]]]}
    f = line(2)
    assert told("none-of", {"f": f, "candidates": [twice]}, {"sums": [[0, [[1, 1, 0], [-1, 0, 0]]]]})[0] == 0
    even = twice | {"rows": [["affine", [[0, 0], [0, 1]], [2, 0]]]}
    assert told("none-of", {"f": f, "candidates": [even]}, {"sums": [[2, [[1, 1, 0]]]]})[0] == 0
    for candidates, sums, fact in (
        ([even], [[0, [[1, 1, 0]]]], "its rows do not exclude it"),
        ([twice], [[0, [[1, 0, 0]]]], "its rows do not exclude it"),
        ([twice], [[0, [[1, 1, 1]]]], "there is no such row"),
        ([twice, twice], [[0, [[1, 1, 0], [-1, 0, 0]]]], "there is not one sum for each candidate"),
        ([twice], [[0, [[1, 2, 0]]]], "f has no value there"),
    ):
        code, said = told("none-of", {"f": f, "candidates": candidates}, {"sums": sums})
        assert (code, fact in said) == (1, True), said
    two = {"size": 1, "at": [["affine", [[1]], [0]]], "unknowns": 2,
           "rows": [["affine", [[0, 0], [0, 0], [0, 0]], [0, 1, 1]]]}  # fmt: skip
    assert "do not exclude" in told("none-of", {"f": f, "candidates": [two]}, {"sums": [[0, [[1, 0, 0]]]]})[1]


# --- operands -------------------------------------------------------------------------------------------------------


def operand(**changes: Any) -> dict[str, Any]:
    plan = synthesize_wgmma(canonical_operand("A", (128, 64), major="K", swizzle="128B"))
    return dict(la.certify.operand(plan).statement) | changes


def test_a_warpgroup_reads_64_rows_of_a_and_no_fewer():
    words = operand()["words"]
    assert told("wgmma-operand", operand(), {})[0] == 0
    halves = [word + 256 * half for row in (words[:4], words[4:]) for half in (0, 1) for word in row]
    assert "the instructions do not cover the operand" in told("wgmma-operand", operand(rows=32, words=halves), {})[1]
    assert told("wgmma-operand", operand(operand="B", rows=32, words=halves), {})[0] == 0


@pytest.mark.parametrize(("rows", "covers"), [(24, True), (32, True), (40, False), (48, True), (8, True)])
def test_integers_are_read_in_the_rows_that_instructions_have(rows: int, covers: bool):
    layout = staged(rows * 32, ["split", [rows, 32]], ["affine", [[16, 1]], [0]])
    layout["stages"] = [["split", [8, rows // 8, 16, 2]], ["affine", [[16, 256, 1, 128]], [0]]]
    statement = {"operand": "B", "shape": [rows, 32], "layout": layout, "swizzle": 0, "align": 128, "dtype": "s8",
                 "major": "K", "rows": rows, "words": [8 << 16 | 16 << 32]}  # fmt: skip
    code, said = told("wgmma-operand", statement, {})
    assert (code == 0) == covers, said


@pytest.mark.parametrize("place", [14, 15, 30, 31, 46, 47, 48, *range(52, 62)])
def test_a_reserved_bit_is_refused(place: int):
    words = operand()["words"]
    code, said = told("wgmma-operand", operand(words=[word ^ 1 << place for word in words]), {})
    assert (code, "a reserved bit is set" in said) == (1, True), said


def test_nothing_is_read_beyond_18_bits():
    """For a base aligned to less than the period of the swizzle, the last base counts."""
    last = 2**18 - 128 * 128
    layout = lambda first: staged(8192, ["split", [128, 64]], ["affine", [[128, 2]], [first]])  # noqa: E731
    for first, align, code in ((last, 1024, 0), (last, 128, 1), (last - 1024, 128, 0)):
        words = [word + first // 16 for word in operand()["words"]]
        assert told("wgmma-operand", operand(layout=layout(first), words=words, align=align), {})[0] == code


def test_a_stride_of_zero_was_not_measured():
    """Sixteen bytes of K in one place: the far half of K is the near one."""
    layout = staged(1024, ["split", [8, 8, 8, 2]], ["affine", [[16, 128, 2, 0]], [0]])
    statement = {"operand": "A", "shape": [64, 16], "layout": layout, "swizzle": 0, "align": 128, "major": "K",
                 "rows": 64, "words": [8 << 32]}  # fmt: skip
    assert "wgmma reads another byte" in told("wgmma-operand", statement, {})[1]
    layout["stages"][1][1][0][3] = 1024
    assert told("wgmma-operand", statement | {"words": [64 << 16 | 8 << 32]}, {})[0] == 0


@pytest.mark.parametrize("offset", [1, 3, 7])
def test_a_base_offset_turns_the_phases_of_a_swizzle_back(offset: int):
    """Rows of 128 bytes whose chunks are where a descriptor with a base offset, and none without, finds them."""
    places = []
    for k in range(16):
        for m in range(64):
            line = 128 * m + 2 * k
            places.append(line ^ (m - offset) % 8 << 4)
    tile = {"operand": "A", "shape": [64, 16], "layout": staged(1024, ["table", places]), "swizzle": 0, "align": 1024}
    read = tile | {"major": "K", "rows": 64, "words": [1 << 16 | 64 << 32 | offset << 49 | 1 << 62]}
    assert told("wgmma-operand", read, {})[0] == 0
    for other in {0, 1, 3, 7} - {offset}:
        wrong = read | {"words": [1 << 16 | 64 << 32 | other << 49 | 1 << 62]}
        assert "wgmma reads another byte" in told("wgmma-operand", wrong, {})[1]
    assert "descriptors read this operand" in told("no-operand", tile, {})[1]


def test_b_is_twice_as_deep_where_a_is_sparse():
    layout = staged(256, ["split", [8, 8, 4]], ["affine", [[16, 2, 128]], [0]])
    statement = {"operand": "B", "shape": [8, 32], "layout": layout, "swizzle": 0, "align": 128, "major": "K",
                 "rows": 8, "words": [8 << 16 | 64 << 32]}  # fmt: skip
    assert told("wgmma-operand", statement | {"sparse": True}, {})[0] == 0
    assert "do not cover" in told("wgmma-operand", statement, {})[1]
    halves = [8 << 16 | 64 << 32, 16 + (8 << 16 | 64 << 32)]
    assert told("wgmma-operand", statement | {"words": halves}, {})[0] == 0
    wide = {
        "operand": "A",
        "shape": [64, 16],
        "layout": staged(1024, ["split", [8, 8, 8, 2]], ["affine", [[16, 256, 2, 128]], [0]]),
        "swizzle": 0,
        "align": 128,
        "major": "K",
        "rows": 64,
        "words": [8 << 16 | 16 << 32],
        "sparse": True,
    }
    assert told("wgmma-operand", wide, {})[0] == 0


# --- banks ----------------------------------------------------------------------------------------------------------


def test_the_fewest_turns_are_those_of_the_first_layout_that_has_them():
    cells = staged(32, ["affine", [[1]], [0]])
    four, eight, same = ([["affine", [[step]], [0]]] for step in (4, 8, 4))
    statement = {"moved": [["sm_90a ld.shared.b32", cells]], "layouts": [eight, four, same], "turns": 1, "first": 1}
    assert told("least-turns", statement, {})[0] == 0
    for wrong in ({"turns": 2}, {"turns": 2, "first": 0}, {"first": 0}, {"first": 2}):
        assert told("least-turns", statement | wrong, {})[0] == 1


# --- maps -----------------------------------------------------------------------------------------------------------


def problem(**changes: object) -> TensorMapProblem:
    document = {
        "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
        "global": {"shape": [1024, 512], "stride": [512, 1], "dtype": "bf16", "base_align_bytes": 256},
        "tile": [64, 16], "smem": {"modes": [[[64, 16]], [[16, 1]]], "swizzle": "32B"}, "origin_multiple": [64, 16],
    }  # fmt: skip
    return TensorMapProblem.from_json(document).with_changes(**changes)


def planned(**changes: object) -> TensorMapPlan:
    return synthesize_tensormap(problem(**changes))


def stated(plan: TensorMapPlan) -> tuple[Any, Any]:
    made = la.certify.plan(plan)
    return copy.deepcopy((dict(made.statement), dict(made.evidence)))


def encoded(fields: Any, dtype: str = "bf16") -> str:
    dims, strides, box, steps = (tuple(column) for column in zip(*fields["dims"], strict=True))
    tm = tensormap.TensorMap(
        dtype=dtype, dims=dims, strides_bytes=strides[1:], box=box, element_strides=steps, base_address=fields["base"],
        swizzle=("NONE", "32B", "64B", "128B")[fields["swizzle"]], oob_fill=("ZERO", "NAN")[fields["fill"]],
        l2_promotion=("NONE", "64B", "128B", "256B")[fields["promotion"]],
    )  # fmt: skip
    return tensormap.encode(tm, target="sm_90a").hex()


@pytest.mark.parametrize(("swizzle", "most"), [("32B", 16), ("64B", 32), ("128B", 64), ("NONE", 256)])
def test_a_row_of_a_box_is_no_longer_than_the_span(swizzle: str, most: int):
    fits = planned(tile=(64, most), smem_modes=(((64, most),), ((most, 1),)), swizzle=swizzle)
    statement, evidence = stated(fits)
    assert told("tensormap-plan", statement, evidence)[0] == 0
    assert evidence["map"]["dims"][0][2] == most
    if swizzle != "NONE":
        evidence["map"]["dims"][0][2] = most + 8
        assert "the driver refuses this map" in told("tensormap-plan", statement, evidence)[1]


def test_integers_have_no_other_fill():
    statement, evidence = stated(planned(dtype="u16"))
    assert told("tensormap-plan", statement, evidence)[0] == 0
    evidence["map"]["fill"] = 1
    assert "the driver refuses this map" in told("tensormap-plan", statement, evidence)[1]


def test_rows_narrower_than_a_span_lie_a_span_apart():
    plan = planned(tile=(64, 8), smem_modes=(((64, 16),), ((8, 1),)), origin_multiple=(64, 8))
    statement, evidence = stated(plan)
    assert told("tensormap-plan", statement, evidence)[0] == 0
    assert statement["smem_bytes"] == 64 * 32


@pytest.mark.parametrize("direction", ["load", "store"])
def test_rows_that_fall_in_memory_start_where_they_are_in_bounds(direction: str):
    changes = {"global_strides": (-512, 1), "base_elem_offset": 1023 * 512, "tile": (2, 16), "swizzle": "NONE",
               "smem_modes": (((2, 64),), ((16, 1),)), "origin_multiple": (2, 16), "direction": direction}  # fmt: skip
    statement, evidence = stated(planned(**changes))
    assert statement["moves"] == [[0, 16], [-2, 0]]
    assert told("tensormap-plan", statement, evidence)[0] == 0
    statement["problem"]["axes"][0][5] = 1023
    assert told("tensormap-plan", statement, evidence)[0] == 1
    lower = copy.deepcopy(statement)
    lower["problem"]["axes"][0][4:] = [1, 1024]
    assert told("tensormap-plan", lower, evidence)[0] == 1


def test_stores_start_at_0_and_above():
    """Of a tile of which only the second half is in bounds, a load may start before the map and a store may not."""
    for direction, code in (("load", 0), ("store", 1)):
        statement, evidence = stated(planned(direction=direction, bounds=((0, 1024), (0, 512))))
        assert told("tensormap-plan", statement, evidence)[0] == 0
        axis, fields = statement["problem"]["axes"][0], evidence["map"]
        axis[4], fields["base"] = 64, 64 * 1024
        fields["dims"][1][0] -= 64
        statement["issues"] = [[[c, r - 64], at] for (c, r), at in statement["issues"]]
        statement["bytes"] = encoded(fields)
        assert told("tensormap-plan", statement, evidence)[0] == 0
        axis[4] = 0  # now origin 0 is in bounds as well, and starts at -64
        assert told("tensormap-plan", statement, evidence)[0] == 1
        axis[:] = [axis[0], 1, 0, 512, 64, 1024]  # one origin for all, whose first row is the row -64 of the map
        statement["moves"][1] = [0, 0]
        said = told("tensormap-plan", statement, evidence)[1]
        assert ("a start is out of range" in said) == bool(code), said


def test_what_is_said_of_bytes_is_counted():
    statement, evidence = stated(planned())
    for name, changes in (
        ("expect_tx_bytes", (-2, 2, 2048)), ("smem_align_bytes", (-128, 128)), ("smem_bytes", (-32, 32))
    ):  # fmt: skip
        for change in changes:
            wrong = statement | {name: statement[name] + change}
            assert "wrong byte counts" in told("tensormap-plan", wrong, evidence)[1], (name, change)
    twice = copy.deepcopy(statement)
    twice["issues"].append(twice["issues"][0])
    assert "wrong byte counts" in told("tensormap-plan", twice, evidence)[1]
    assert told("tensormap-plan", twice | {"expect_tx_bytes": 2 * statement["expect_tx_bytes"]}, evidence)[0] == 0


def test_no_map_is_shown_by_a_whole_chunk_in_bounds():
    statement, evidence = {"problem": stated(planned())[0]["problem"]}, {"origin": [0, 0], "chunk": 0}
    assert "a box can write this chunk" in told("no-tensormap", statement, evidence)[1]
    for origin in ([1, 0], [0, 8], [1024, 0], [0]):
        assert "no origin in bounds" in told("no-tensormap", statement, evidence | {"origin": origin})[1]
    odd = copy.deepcopy(statement)
    odd["problem"]["base_elem_offset"] = 8
    assert "a box can write this chunk" in told("no-tensormap", odd, evidence)[1]
    odd["problem"]["base_elem_offset"] = 4
    assert told("no-tensormap", odd, evidence)[0] == 0


def test_half_a_chunk_is_written_by_no_box():
    stated = problem(tile=(64, 4), smem_modes=(((64, 8),), ((4, 1),)), swizzle="NONE", origin_multiple=(64, 4))
    made = la.certify.no_plan(stated)
    assert (made.evidence["chunk"], bool(made.check())) == (0, True)


def test_the_last_origin_in_bounds_starts_below_2_to_31():
    """Rows of one line of memory, as many as coordinates have numbers, in tiles of one and of two boxes."""
    for tile, code in ((1, 0), (2, 1)):
        axes = [[tile, 1, 1, 0, 0, 2**31], [8, 1, 0, 1, 0, 8]]
        shared = staged(8 * tile, ["split", [tile, 8]], ["affine", [[128, 2]], [0]])
        fields = {"base": 0, "swizzle": 0, "fill": 0, "promotion": 2, "dims": [[8, 0, 8, 1], [2**31, 0, 1, 1]]}
        statement = {
            "problem": {"axes": axes, "dtype": "bf16", "base_elem_offset": 0, "base_align_bytes": 256,
                        "oob_fill": "ZERO", "direction": "load", "shared": shared},
            "bytes": encoded(fields), "issues": [[[0, row], 128 * row] for row in range(tile)],
            "moves": [[0, 0], [1, 0]], "expect_tx_bytes": 16 * tile, "smem_align_bytes": 128,
            "smem_bytes": 128 * (tile - 1) + 16, "oob": "exact",
        }  # fmt: skip
        got, said = told("tensormap-plan", statement, {"map": fields})
        assert (got, "a start is out of range" in said) == (code, bool(code)), said

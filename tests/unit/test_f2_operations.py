"""The operations on linear layouts: values worked out by hand, and the refusals."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from layoutalg import f2
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import AdmissibilityError, LayoutError, MalformedError

MMA = LinearLayout.from_bases(
    {
        "register": [(0, 1), (8, 0), (0, 8), (0, 16), (0, 32), (0, 64), (16, 0)],
        "lane": [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)],
        "warp": [(32, 0), (64, 0)],
    },
    {"row": 128, "col": 128},
)
MMA_TILE = LinearLayout.from_bases(
    {
        "register": [(0, 1), (8, 0)],
        "lane": [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)],
        "warp": [(32, 0), (64, 0)],
    },
    {"row": 128, "col": 8},
)


def line(axis: str, images: list[int], size: int, out: str = "o") -> LinearLayout:
    return LinearLayout.from_bases({axis: [(image,) for image in images]}, {out: size})


def test_everything_exported_is_documented_by_an_example() -> None:
    for name in f2.__all__:
        doc = getattr(f2, name).__doc__
        assert "Example:" in doc or "See ``" in doc, name


def test_tile_with_a_gap_repeats_but_does_not_divide() -> None:
    with pytest.raises(AdmissibilityError, match="LA247"):
        f2.divide_left(MMA, MMA_TILE)
    rest = f2.repetitions(MMA, MMA_TILE)
    assert rest.bases["register"] == ((0, 0), (0, 0), (0, 8), (0, 16), (0, 32), (0, 64), (16, 0))
    assert not any(map(any, rest.bases["lane"] + rest.bases["warp"]))


def test_product_of_a_tile_and_its_repetition() -> None:
    tile = f2.identity_1d(4, "register", "col") * f2.identity_1d(8, "lane", "col") * f2.identity_1d(4, "lane", "row")
    assert str(tile) == "F2[register=(1,0)(2,0), lane=(4,0)(8,0)(16,0)(0,1)(0,2) -> col:32, row:4]"
    whole = tile * f2.identity_1d(2, "register", "row")
    assert f2.divide_left(whole, tile).bases == {"register": ((0, 1),), "lane": ()}
    assert f2.divide_right(whole, f2.identity_1d(2, "register", "row")).columns == tile.columns


def test_smallest_solution_picks_the_first_warp_and_local_stays() -> None:
    # lanes and warps hold copies; the destination wants the value of its own lane and warp
    source = LinearLayout.from_bases({"lane": [(1,), (2,)], "warp": [(2,)]}, {"o": 4})
    found = f2.solve(source, source)
    assert found.directions == ({"lane": 2, "warp": 1},)
    assert not f2.is_trivial_over(found.particular, "warp")
    assert f2.minimal_conversion(source, source) == f2.empty()
    assert found.freedom == 4


def test_lanes_first_may_cross_warps_and_local_does_not() -> None:
    # the copy can come from the other warp with the lane in place, or from the same warp through another lane
    source = LinearLayout.from_bases({"lane": [(1,)], "warp": [(1,)]}, {"o": 2})
    target = LinearLayout.from_bases({"lane": [(0,)], "warp": [(1,)]}, {"o": 2})
    found = f2.solve(source, target)
    assert found.choose("local").bases == {"lane": ((0, 0),), "warp": ((0, 1),)}
    assert found.choose(("lane",)).bases == {"lane": ((1, 1),), "warp": ((0, 1),)}
    assert found.choose(("warp", "lane")) == found.choose("local")


def test_piecewise_parts_are_carried() -> None:
    flipped = f2.flip_out(line("i", [1, 2], 4), "o")
    assert f2.right_inverse(flipped).offset == {"i": 3}
    assert (flipped * f2.flip_out(line("i", [1], 2), "o")).offset == {"o": 7}
    assert f2.solve(line("i", [1, 2], 4), flipped).particular.offset == {"i": 3}
    assert f2.num_consecutive(flipped) == 1
    assert f2.num_consecutive(f2.xor_out(line("i", [1, 2, 4], 8), {"o": 4})) == 4
    assert not f2.is_trivial_over(f2.xor_out(LinearLayout.identity({"a": 2}), {"a": 1}), "a")


def test_windows() -> None:
    axis = LinearLayout.identity({"row": 16})
    assert f2.slice_in(axis, "row", 3, 2).table().tolist() == [3, 4]
    assert f2.slice_in(axis, "row", 15, 1).table().tolist() == [15]
    assert f2.slice_in(axis, "row", 2, 4).table().tolist() == [2, 3, 4, 5]
    with pytest.raises(AdmissibilityError, match="LA254") as caught:
        f2.slice_in(axis, "row", 1, 4)
    witness = caught.value.diagnostic.witness
    assert (witness["x"], witness["coordinates"]) == ((0, 1, 2, 3), (1, 2, 3, 4))
    assert [value["row"] for value in witness["values"]] == [1, 2, 3, 4]
    # the lowest bit alone sees no carry; of bits 2 and 3, their sum sees none
    assert f2.slice_in(line("row", [1, 0, 0], 2), "row", 1, 4).table().tolist() == [1, 0, 1, 0]
    assert f2.slice_in(line("row", [0, 0, 1, 1], 2), "row", 5, 4).table().tolist() == [1, 1, 1, 1]


def test_only_registers_that_became_useless_are_dropped() -> None:
    whole = line("register", [1, 0, 4], 8)
    assert f2.ensure_not_larger(whole, {"o": 4}).bases["register"] == ((1,), (0,), (0,))
    assert f2.ensure_not_larger(whole, {"o": 4}, broadcast=False).bases["register"] == ((1,), (0,))


def test_wide_layouts() -> None:
    wide = f2.identity_1d(1 << 200, "i", "o")
    axis = (("i", 200),)
    turned = f2.flip_in(f2.map_in(wide, LinearLayout(axis, axis, tuple(1 << 199 - k for k in range(200)))), "i")
    assert f2.solve(turned, wide).particular == f2.rename_ins(turned.inverse(), {"o": "i"})
    assert f2.divide_left(wide * turned, wide) == turned
    assert f2.num_consecutive(wide) == 1 << 200


def test_solutions_are_values() -> None:
    found = f2.solve(line("i", [1, 1], 2), line("i", [1], 2))
    assert pickle.loads(pickle.dumps(found)) == copy.deepcopy(found) == found
    assert hash(found) == hash(copy.deepcopy(found))
    for kernel in ((3, 3), (1, 3), (2, 1), (0,), (4,), [3], (True,)):
        with pytest.raises(MalformedError, match="LA241"):
            f2.SolutionSet(found.particular, kernel)  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="smallest"):
        f2.SolutionSet(line("i", [3], 4), (2,))


A = line("i", [1, 2], 4)
TWO = LinearLayout.identity({"a": 2, "b": 4})
REFUSALS: list[tuple[str, Callable[[], object]]] = [
    ("LA200", lambda: f2.identity_1d(3, "i", "o")),
    ("LA200", lambda: f2.strided_1d(4, 0, "i", "o")),
    ("LA200", lambda: f2.zeros_1d(0, "i", "o")),
    ("LA200", lambda: f2.identity_1d(True, "i", "o")),
    ("LA245", lambda: f2.from_bases_minimal({"i": [(2,)]}, ("o",))),
    ("LA241", lambda: f2.direct_sum(A, 3)),  # type: ignore[arg-type]
    ("LA242", lambda: TWO * f2.transpose_outs(f2.transpose_ins(TWO, ("b", "a")), ("b", "a"))),
    ("LA243", lambda: f2.solve(A, line("i", [1], 8))),
    ("LA243", lambda: f2.solve(A, line("i", [1], 4, "p"))),
    ("LA244", lambda: f2.solve(line("i", [2], 4), A)),
    ("LA244", lambda: f2.solve(line("i", [2], 4), f2.xor_out(line("i", [2], 4), {"o": 1}))),
    ("LA244", lambda: f2.preimages(line("i", [2], 4), 1)),
    ("LA241", lambda: f2.preimages(TWO, {"a": 1})),
    ("LA245", lambda: f2.right_inverse(line("i", [2], 4))),
    ("LA246", lambda: f2.left_inverse(line("i", [2, 2], 4))),
    ("LA241", lambda: f2.solve(A, A).choose("cheapest")),
    ("LA247", lambda: f2.divide_left(A, line("i", [2], 4))),
    ("LA247", lambda: f2.divide_left(A, line("j", [1], 2))),
    ("LA247", lambda: f2.divide_left(TWO, f2.transpose_ins(TWO, ("b", "a")))),
    ("LA247", lambda: f2.divide_right(A, f2.xor_out(line("i", [1], 2), {"o": 1}))),
    ("LA248", lambda: f2.quotient(A, "i")),
    ("LA248", lambda: f2.quotient(f2.xor_out(TWO, {"a": 1}), "a")),
    ("LA241", lambda: f2.is_trivial_over(A, "nowhere")),
    ("LA249", lambda: f2.reshape_ins(A, {"i": 8})),
    ("LA250", lambda: f2.squeeze_ins(TWO, "a")),
    ("LA251", lambda: f2.concat_ins(A, A)),
    ("LA251", lambda: f2.concat_ins(A, line("j", [1], 2))),
    ("LA251", lambda: f2.concat_outs(A, TWO)),
    ("LA252", lambda: f2.resize_in(A, "i", 8)),
    ("LA253", lambda: f2.resize_out(A, "o", 2)),
    ("LA253", lambda: f2.resize_out(f2.xor_out(line("i", [1], 4), {"o": 2}), "o", 2)),
    ("LA254", lambda: f2.slice_in(LinearLayout.identity({"i": 8}), "i", 1, 4)),
    ("LA256", lambda: f2.permutation_for_divide(line("register", [2], 4), f2.identity_1d(2, "register", "o"))),
    ("LA257", lambda: f2.repetitions(line("i", [1, 3], 4), line("i", [1], 4))),
    ("LA257", lambda: f2.repetitions(A, line("j", [1], 4))),
    ("LA259", lambda: f2.combine_cta_cga(A, line("block", [1, 2, 4], 8), {"o": 4})),
    ("LA260", lambda: f2.Subspace.spanned((("x", 3),), [3]).coordinates(1)),
]


@pytest.mark.parametrize(("code", "call"), REFUSALS)
def test_refusals(code: str, call: Callable[[], object]) -> None:
    with pytest.raises(LayoutError) as caught:
        call()
    diagnostic = caught.value.diagnostic
    assert diagnostic.code == code
    assert diagnostic.because
    assert diagnostic.witness


def test_each_code_is_exercised() -> None:
    source = "".join(path.read_text() for path in Path(f2.__file__).parent.glob("*.py"))
    used = {f"LA{number}" for number in range(241, 280) if f'"LA{number}"' in source}
    assert used <= {code for code, _ in REFUSALS}


def test_a_basis_vector_that_is_not_contained_is_named() -> None:
    with pytest.raises(AdmissibilityError) as caught:
        f2.solve(line("i", [2], 4), line("lane", [2, 1], 4))
    assert "lane[1]" in caught.value.diagnostic.because
    assert caught.value.diagnostic.witness == {
        "input": {"lane": 2},
        "value": {"o": 1},
        "basis_vector": {"o": 1},
    }

"""Linear layouts: worked values, refusals and their messages."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from layoutalg import f2, hierarchy
from layoutalg.f2 import LinearLayout, matrix, parse_linear
from layoutalg.ground.errors import AdmissibilityError, BudgetError, MalformedError


def test_the_wgmma_accumulator_layout_reaches_every_element_once() -> None:
    layout = LinearLayout.from_bases(
        {
            "register": [(0, 1), (8, 0), (0, 8), (0, 16), (0, 32)],
            "lane": [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)],
            "warp": [(16, 0), (32, 0)],
        },
        {"row": 64, "col": 64},
    )
    assert layout.is_invertible
    assert layout(register=3, lane=5, warp=1) == {"row": 25, "col": 3}
    assert sorted(layout.table().tolist()) == list(range(4096))
    back = layout.inverse()
    assert back(row=25, col=3) == {"register": 3, "lane": 5, "warp": 1}


def test_bases_mimic_what_visualisers_expect() -> None:
    layout = LinearLayout.from_bases([("i", [[1, 0], [0, 1]])], [("row", 2), ("col", 2)], offset={"col": 1})
    assert layout.bases == {"i": ((1, 0), (0, 1))}
    assert layout.out_dims == {"row": 2, "col": 2}
    assert layout.offset == {"row": 0, "col": 1}
    assert str(layout) == "F2[i=(1,0)(0,1) -> row:2, col:2] ^ (0,1)"


@pytest.mark.parametrize(
    ("bases", "out_dims", "offset", "part"),
    [
        ({"i": [(1,)]}, {"o": 3}, None, "out_dims['o']\n  since  must be a power of two, not 3"),
        ({"i": [(1,)]}, {"o": True}, None, "must be an integer power of two, not True"),
        ({"i": [(2,)]}, {"o": 2}, None, "bases['i'][0]\n  since  component o must be in [0, 2), not 2"),
        ({"i": [(1, 1)]}, {"o": 2}, None, "must have 1 components, one per output axis, not (1, 1)"),
        ({"i": [(True,)]}, {"o": 2}, None, "must be an integer, not True"),
        ({"i": 3}, {"o": 2}, None, "must be a sequence of images, one per bit, not 3"),
        ({"no name": []}, {"o": 2}, None, "must be an identifier, not 'no name'"),
        ({"i": []}, {"o": 2}, {"p": 1}, "axes must be among ['o'], not 'p'"),
        (3, {"o": 2}, None, "must be a mapping or a sequence of (name, entry) pairs, not 3"),
    ],
)
def test_malformed_layouts_name_argument_rule_and_value(bases: Any, out_dims: Any, offset: Any, part: str) -> None:
    with pytest.raises(MalformedError) as caught:
        LinearLayout.from_bases(bases, out_dims, offset)
    assert caught.value.diagnostic.code == "LA200"
    assert part in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        ((("i", 1),), (("o", 1),), ()),
        ((("i", 1),), (("o", 1),), (2,)),
        ((("i", 1),), (("o", 1),), (1,), -1),
        ((("i", 1),), (("o", 1),), (True,)),
        ((("i", -1),), (("o", 1),), ()),
        ([("i", 1)], (("o", 1),), (1,)),
        ((("i", 1), ("i", 1)), (("o", 1),), (1, 1)),
        (("i",), (("o", 1),), (1,)),
    ],
)
def test_the_packed_form_is_checked_too(fields: Any) -> None:
    with pytest.raises(MalformedError):
        LinearLayout(*fields)


def test_numpy_integers_become_plain_ones() -> None:
    layout = LinearLayout.from_bases({"i": np.array([[1], [2]])}, {"o": np.int64(4)})
    assert layout == LinearLayout.from_bases({"i": [(1,), (2,)]}, {"o": 4})
    assert layout(i=np.uint8(3)) == {"o": 3}


@pytest.mark.parametrize(
    "bad", [4, -1, True, 1.0, "1", np.array([0.5]), np.array([4]), np.array([True]), None, np.array([]), "", [None]]
)
def test_coordinates_outside_the_domain_are_refused(bad: Any) -> None:
    layout = LinearLayout.from_bases({"i": [(1,), (2,)]}, {"o": 4})
    with pytest.raises(MalformedError) as caught:
        layout.apply({"i": bad})
    assert caught.value.diagnostic.code == "LA204"


def test_missing_and_unknown_axes_are_refused() -> None:
    layout = LinearLayout.identity({"i": 2, "j": 2})
    for coords in ({"i": 0}, {"i": 0, "j": 0, "k": 0}, {}):
        with pytest.raises(MalformedError, match=r"must name the axes \['i', 'j'\]"):
            layout.apply(coords)


def test_arrays_broadcast() -> None:
    layout = LinearLayout.identity({"i": 4, "j": 8})
    answer = layout.apply({"i": np.arange(4)[:, None], "j": np.arange(8)})
    assert np.shape(answer["i"]) == (4, 8)
    assert np.array_equal(answer["j"], np.broadcast_to(np.arange(8), (4, 8)))


@pytest.mark.parametrize("none", [[], (), [[]], np.array([], np.int8)])
def test_no_points_have_no_values(none: Any) -> None:
    answer = LinearLayout.identity({"i": 4, "j": 8}).apply({"i": none, "j": 3})
    assert [(np.shape(values), np.asarray(values).dtype) for values in answer.values()] == [
        (np.shape(none), np.int64)
    ] * 2


def test_axes_may_have_any_name() -> None:
    for name in ("self", "coords", "value", "cls"):
        assert LinearLayout.identity({name: 4})(**{name: 3}) == {name: 3}


def test_there_is_no_limit_of_64_bits() -> None:
    wide = LinearLayout.identity({"i": 1 << 100})
    assert wide(i=1 << 99) == {"i": 1 << 99}
    assert wide.apply({"i": np.array([1 << 99, 5], dtype=object)})["i"].tolist() == [1 << 99, 5]  # type: ignore[union-attr]
    assert (wide @ wide.inverse()).columns == wide.columns
    assert parse_linear(str(wide)) == wide
    with pytest.raises(BudgetError):
        wide.table()


def test_composition_refuses_what_does_not_fit() -> None:
    small, large = LinearLayout.identity({"a": 2}), LinearLayout.identity({"a": 4})
    assert (large @ small).out_dims == {"a": 4}
    with pytest.raises(AdmissibilityError) as caught:
        small @ large
    assert caught.value.diagnostic.code == "LA202"
    assert caught.value.diagnostic.witness == {"axis": "a", "given": 4, "taken": 2}
    with pytest.raises(AdmissibilityError):
        small @ LinearLayout.identity({"b": 2})
    with pytest.raises(TypeError):
        small @ 3  # type: ignore[operator]


def test_a_singular_layout_shows_two_inputs_with_one_output() -> None:
    layout = LinearLayout.from_bases({"r": [(1,)], "l": [(2,), (3,)]}, {"o": 8})
    with pytest.raises(AdmissibilityError) as caught:
        layout.inverse()
    assert str(caught.value) == (
        "LA203 the linear layout is not invertible\n"
        "  in     F2[r=(1), l=(2)(3) -> o:8]\n"
        "  since  rank 2 is less than the 3 input bits\n"
        "  at     kernel={'r': 1, 'l': 3}, value=0"
    )
    narrow = LinearLayout.from_bases({"i": [(2,)]}, {"o": 4}, (1,))
    with pytest.raises(AdmissibilityError) as caught:
        narrow.inverse()
    assert caught.value.diagnostic.witness == {"missed": {"o": 0}}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "at character 0 expected F2, found 'the end'"),
        ("G2[i=(1) -> o:2]", "at character 0 expected F2"),
        ("F2(i=(1) -> o:2)", "at character 2 expected [, found '(i=(1)"),
        ("F2[i=(1) o:2]", "at character 9 expected , or ->"),
        ("F2[i=(1) -> o:2", "at character 15 expected , or ], found 'the end'"),
        ("F2[i=(1) -> o:2] ^ 1", "at character 19 expected (, found '1'"),
        ("F2[i=(1) -> o:2] x", "at character 17 expected the end, found 'x'"),
        ("F2[i=(-1) -> o:2]", "at character 6 expected a name, a number or one of"),
        ("F2[i=(1) -> o:3]", "must be a power of two, not 3"),
        ("F2[i=(1), i=(1) -> o:2]", "must not repeat an earlier name, not 'i'"),
    ],
)
def test_text_is_refused_with_the_place(text: str, part: str) -> None:
    with pytest.raises(MalformedError) as caught:
        parse_linear(text)
    assert part in str(caught.value)


def test_blanks_are_free_and_axes_may_be_empty() -> None:
    layout = parse_linear(" F2 [ i = ( 1 , 0 )( 0,1 ),warp= ->row:2,col : 2 ]^( 1,1 ) ")
    assert layout.in_dims == {"i": 4, "warp": 1}
    assert layout.offset == {"row": 1, "col": 1}
    assert parse_linear("F2[ -> ]") == LinearLayout((), (), ())
    with pytest.raises(MalformedError):
        parse_linear(3)  # type: ignore[arg-type]


def test_a_24_bit_inverse_is_exact() -> None:
    columns = tuple((1 << bit) | (1 << (bit - 3) if bit >= 20 else 0) for bit in range(24))
    assert matrix.multiply(columns, matrix.inverse(columns)) == tuple(1 << bit for bit in range(24))


def test_matrices_that_are_not_square_are_refused() -> None:
    with pytest.raises(AdmissibilityError, match="not square"):
        matrix.inverse((1, 4))


def test_the_packages_show_their_public_names_and_nothing_else() -> None:
    for package in (f2, hierarchy):
        assert dir(package) == sorted(set(package.__all__))
        assert not any(inspect.ismodule(getattr(package, name)) for name in package.__all__)

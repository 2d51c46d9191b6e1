"""The algebra on known cases, its refusals with their texts, and domains far too large to enumerate."""

from __future__ import annotations

import time

import pytest

import layoutalg.cute as cute
from layoutalg.cute import (
    ComposedLayout,
    CoordinateLayout,
    CuteLayout,
    E,
    Swizzle,
    coalesce,
    complement,
    composition,
    left_inverse,
    make_layout,
    right_inverse,
)
from layoutalg.cute.notation import parse_cute
from layoutalg.ground.errors import AdmissibilityError, BudgetError, MalformedError, RepresentabilityError


def read(text: str) -> CuteLayout:
    value = parse_cute(text)
    assert isinstance(value, CuteLayout)
    return value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(2,(1,6)):(1,(6,2))", "12:1"),
        ("(1,1):(5,7)", "1:0"),
        ("():()", "1:0"),
        ("(4,1):(1,0)", "4:1"),
        ("(2,3):(0,0)", "6:0"),
        ("(2,3):(-1,-2)", "6:-1"),
        ("(2,2,2):(1,3,6)", "(2,4):(1,3)"),
        ("(4,0):(1,4)", "0:0"),
    ],
)
def test_coalesce(text: str, expected: str) -> None:
    assert str(coalesce(read(text))) == expected


def test_coalesce_by_profile() -> None:
    layout = read("(2,(1,6)):(1,(6,2))")
    assert str(coalesce(layout, (0, 0))) == str(coalesce(layout, (7, 9))) == "(2,6):(1,2)"
    assert str(coalesce(layout, (1, (1, 1)))) == "(2,(1,6)):(1,(0,2))"
    with pytest.raises(
        MalformedError,
        match=r"LA109 [^\n]*\n  in     coalesce\(\(2,\(1,6\)\):\(1,\(6,2\)\), \(1\)\)\n  since  the profile has 1",
    ):
        coalesce(layout, (1,))
    with pytest.raises(MalformedError, match="the profile has 2 modes, the layout has an int shape"):
        coalesce(layout, ((1, 1), 1))


def test_building_and_filtering() -> None:
    assert str(make_layout(read("4:2"), read("(2,2):(1,8)"))) == "(4,(2,2)):(2,(1,8))"
    assert str(make_layout((4, 8), (8, 1))) == "(4,8):(8,1)"
    assert str(make_layout()) == "():()"
    with pytest.raises(MalformedError, match="LA108"):
        make_layout(read("4:2"), 4)
    with pytest.raises(MalformedError, match="LA108"):
        make_layout(4, 1, 1)
    assert str(cute.filter_zeros(read("((2,3),4):((0,1),0)"))) == "((1,3),1):((0,1),0)"
    assert str(cute.filter(read("((2,3),4):((0,1),0)"))) == "3:1"
    assert str(cute.filter(read("(4,4):(0,0)"))) == "1:0"
    assert cute.filter_zeros(read("(0,4):(0,1)")).size == 0
    assert str(cute.flatten(read("((2,(3)),4):((0,(1)),5)"))) == "(2,3,4):(0,1,5)"
    assert (cute.size((4, (2, 3))), cute.rank(7), cute.depth(((2,),))) == (24, 1, 2)
    assert (cute.size(read("4:2")), cute.cosize(read("4:-1")), cute.rank(read("4:2")), cute.depth(read("4:2"))) == (
        4,
        4,
        1,
        0,
    )


def test_star_import_leaves_the_builtin_filter_alone() -> None:
    names: dict[str, object] = {}
    exec("from layoutalg.cute import *", names)
    assert "filter" not in names
    assert callable(cute.filter)


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        ("(6,8):(1,10)", "2:4", "2:4"),
        ("(2,3,2):(1,4,2)", "2:8", "2:6"),
        ("(4,1):(1,0)", "4:1", "4:1"),
        ("(4,8):(10,1)", "8:4", "8:1"),
        ("(2,8):(1,10)", "4:3", "(2,2):(11,30)"),
        ("(2,2,3):(1,5,7)", "(2,2):(3,1)", "(2,2):(6,1)"),  # two carries whose coefficients cancel
        ("(4,8):(1,4)", "((2,2),(1,4)):((16,2),(99,4))", "((2,2),(1,4)):((16,2),(99,4))"),
        ("20:2", "(5,4):(4,1)", "(5,4):(8,2)"),
        ("(10,2):(16,4)", "(5,4):(1,5)", "(5,(2,2)):(16,(80,4))"),
        ("(4,8):(8,1)", "(3,2):(0,5)", "(3,2):(0,9)"),
        ("(4,8):(8,1)", "():()", "():()"),
        ("(4,8):(8,1)", "(0,4):(1,100)", "(0,4):(0,0)"),
    ],
)
def test_composition(outer: str, inner: str, expected: str) -> None:
    assert str(composition(read(outer), read(inner))) == expected


def test_composition_by_mode() -> None:
    layout = read("(8,(4,2)):(1,(8,32))")
    assert str(composition(layout, (4, None))) == "(4,(4,2)):(1,(8,32))"
    assert str(composition(layout, (read("2:4"), (2, None)))) == "(2,(2,2)):(4,(8,32))"
    assert composition(layout, None) == layout
    assert str(composition(layout, 16)) == "16:1"
    with pytest.raises(MalformedError, match="LA141") as caught:
        composition(read("(8,4,2):(1,8,32)"), (4,))
    assert "a tuple needs one entry per mode of (8,4,2):(1,8,32), which has 3 modes; None keeps a mode" in str(
        caught.value
    )
    for bad in ("4", 4.0, True, (4, True), [4, 4]):
        with pytest.raises(MalformedError, match="LA141"):
            composition(read("(8,4):(1,8)"), bad)  # type: ignore[arg-type]


def test_composition_that_leaves_the_domain() -> None:
    with pytest.raises(AdmissibilityError) as caught:
        composition(read("(4,8):(10,1)"), read("8:-1"))
    assert str(caught.value) == (
        "LA120 the right operand leaves the domain of the left operand\n"
        "  in     composition((4,8):(10,1), 8:-1)\n"
        "  since  the right operand has the value -1 at coordinate 1, the left operand is defined on [0, 32)\n"
        "  at     coordinate=1, value=-1, size=32"
    )
    with pytest.raises(AdmissibilityError, match="at coordinate 4"):
        composition(read("(4,1):(1,0)"), read("8:1"))
    with pytest.raises(AdmissibilityError, match="at coordinate 0"):
        composition(read("(4,0):(1,0)"), read("8:1"))


def test_composition_of_a_mode_that_is_not_strided() -> None:
    with pytest.raises(RepresentabilityError) as caught:
        composition(read("(4,6,8):(2,3,5)"), read("6:3"))
    assert caught.value.diagnostic.witness == {"coordinate": 3, "composition": 8, "layout": 13}
    with pytest.raises(RepresentabilityError) as caught:
        composition(read("(6,2):(1,10)"), read("(1,4):(0,2)"))
    assert str(caught.value) == (
        "LA121 the composition is not a CuTe layout\n"
        "  in     composition((6,2):(1,10), (1,4):(0,2))\n"
        "  since  mode 1 of the right operand, 4:2, is not strided there: "
        "its steps of 2 end at index 3, which does not divide 4\n"
        "  at     coordinate=3, composition=10, layout=6\n"
        "  see    layoutalg.compose(outer, inner, widen=True), which gives it in a wider family"
    )


def test_composition_whose_modes_interact() -> None:
    with pytest.raises(RepresentabilityError) as caught:
        composition(read("(6,2):(1,7)"), read("(3,2):(2,3)"))
    assert str(caught.value) == (
        "LA122 the composition is not a CuTe layout\n"
        "  in     composition((6,2):(1,7), (3,2):(2,3))\n"
        "  since  the modes of the right operand carry into each other in (6,2):(1,7): "
        "mode by mode one would get (3,2):(2,3), a different function\n"
        "  at     coordinate=5, composition=8, layout=7\n"
        "  see    layoutalg.compose(outer, inner, widen=True), which gives it in a wider family"
    )


def test_composition_of_large_domains_takes_milliseconds() -> None:
    huge = CuteLayout((2**20, 2**10, 2**10), (2**10, 1, 2**30))
    start = time.process_time()
    assert str(composition(huge, CuteLayout((2**30, 2**10), (2**10, 1)))) == (
        "((1024,1024,1024),1024):((1048576,1,1073741824),1024)"
    )
    with pytest.raises(RepresentabilityError):
        composition(huge, CuteLayout(2**38, 3))
    with pytest.raises(RepresentabilityError):
        composition(huge, CuteLayout((2**20, 2**19 + 1), (1, 2**20 - 1)))
    with pytest.raises(RepresentabilityError):
        composition(CuteLayout((2**40 + 1, 2**20), (1, 3)), CuteLayout(2**40, 2**10))
    with pytest.raises(AdmissibilityError) as caught:
        composition(huge, CuteLayout(2**40, 2))
    assert caught.value.diagnostic.witness is not None
    assert caught.value.diagnostic.witness["coordinate"] == 2**39
    assert time.process_time() - start < 0.5


def test_cancelling_carries_in_a_long_run() -> None:
    # Two positions carry together for 10^7 steps, and their coefficients cancel: a straight line all that way.
    outer = CuteLayout((10**7, 4, 10**8), (3, 8, 3 * 10**7 + 24))
    step = 4 * 10**7 - 1
    slope = outer(step)
    assert composition(outer, CuteLayout(10**7, step)) == CuteLayout(10**7, slope)
    with pytest.raises(RepresentabilityError) as caught:
        composition(outer, CuteLayout(10**7 + 2, step))
    witness = caught.value.diagnostic.witness
    assert witness is not None
    index = witness["coordinate"]
    assert isinstance(index, int)
    assert index > 10**7
    assert (witness["composition"], witness["layout"]) == (outer(step * index), slope * index)


def test_composition_gives_up_rather_than_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    import layoutalg.cute.factor as factor

    monkeypatch.setattr(factor, "PREFIX", 2)
    with pytest.raises(BudgetError, match="LA125 whether the composition is a CuTe layout was not decided"):
        composition(read("(2,2,3):(10,50,70)"), read("(2,2):(3,1)"))


def test_composition_with_swizzles() -> None:
    swizzle = Swizzle(3, 3, 3)
    layout = ComposedLayout(swizzle, 8, read("(8,64):(64,1)"))
    tiled = composition(layout, (4, 32))
    assert str(tiled) == "Sw<3,3,3> o 8 o (4,32):(64,1)"
    assert composition(swizzle, read("4:1")) == ComposedLayout(swizzle, 0, read("4:1"))
    stack = composition(layout, ComposedLayout(Swizzle(1, 0, 1), 0, read("4:2")))
    assert str(stack) == "Sw<3,3,3> o 8 o (Sw<1,6,1> o 0 o 4:128)"
    assert stack.table().tolist() == [layout(Swizzle(1, 0, 1)(2 * i)) for i in range(4)]


def test_layout_after_a_swizzled_layout() -> None:
    swizzled = ComposedLayout(Swizzle(2, 0, 2), 3, read("(2,4):(4,1)"))
    result = composition(read("(4,8):(4,16)"), swizzled)
    assert result.table().tolist() == [4 * value for value in swizzled.table().tolist()]
    with pytest.raises(
        RepresentabilityError,
        match=r"LA124[\s\S]*\(4,8\):\(8,1\) in normal form, is not multiplication by a power of two on the values 0",
    ):
        composition(read("(4,8):(8,1)"), swizzled)
    with pytest.raises(AdmissibilityError, match="LA120"):
        composition(read("4:1"), swizzled)


@pytest.mark.parametrize(
    ("text", "bound", "expected"),
    [
        ("4:1", 24, "6:4"),
        ("6:4", 24, "4:1"),
        ("(4,6):(1,4)", 24, "1:0"),
        ("4:2", 24, "(2,3):(1,8)"),
        ("(2,4):(1,6)", 24, "3:2"),
        ("(2,2):(1,6)", 24, "(3,2):(2,12)"),
        ("(2,3):(0,0)", 7, "7:1"),
        ("4:1", 6, "2:4"),
        ("4:1", None, "1:0"),
        ("(2,2):(8,2)", None, "(2,2):(1,4)"),
    ],
)
def test_complement(text: str, bound: int | None, expected: str) -> None:
    assert str(complement(read(text), bound)) == expected


@pytest.mark.parametrize(
    ("text", "code", "detail"),
    [
        ("(4,0):(1,4)", "LA131", "the layout is empty"),
        ("2:-1", "LA132", "mode 2:-1 runs below 0"),
        ("(4,8,2,4):(32,1,16,8)", "LA133", "overlap"),
        ("(2,2):(1,1)", "LA133", "coordinate=1, other=2, offset=1"),
        ("(4,2):(1,2)", "LA133", "coordinate=2, other=4, offset=2"),
        ("(2,8):(1,3)", "LA134", "for the modes 2:1 and 8:3, 3 is not a multiple of 2 * 1 = 2"),
        ("(2,3):(3,2)", "LA134", "for the modes 3:2 and 2:3, 3 is not a multiple of 3 * 2 = 6"),
    ],
)
def test_complement_refuses(text: str, code: str, detail: str) -> None:
    with pytest.raises(AdmissibilityError) as caught:
        complement(read(text))
    assert caught.value.diagnostic.code == code
    assert detail in str(caught.value)


def test_complement_bound_is_a_positive_integer() -> None:
    for bound in (0, -4, (6, 0), (6, (-1,)), (6, 4.0), 4.0, True):
        with pytest.raises(MalformedError, match="LA130"):
            complement(read("4:1"), bound)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "bound", "expected"),
    [
        ("4:1", (6, 4), "8:4"),
        ("4:1", (8, 3), "6:4"),
        ("4:1", ((2, 2), 6), "6:4"),
        ("4:1", (), "1:0"),
        ("4:2", (8, 3), "(2,3):(1,8)"),
        ("4:2", 6, "2:1"),
        ("2:0", (6, 4), "24:1"),
    ],
)
def test_complement_of_a_shape_counts_steps_mode_by_mode(text: str, bound: tuple[int, ...], expected: str) -> None:
    assert str(complement(read(text), bound)) == expected


def test_complement_of_a_shape_that_its_step_does_not_divide() -> None:
    with pytest.raises(AdmissibilityError, match="LA148") as caught:
        complement(read("4:2"), (6, 4))
    assert "2 steps of 8, counted mode by mode, end before 24" in str(caught.value)


def test_inverses() -> None:
    assert str(right_inverse(read("(4,8):(8,1)"))) == "(8,4):(4,1)"
    assert str(right_inverse(read("(2,4):(0,1)"))) == "4:2"
    assert str(right_inverse(read("4:2"))) == str(right_inverse(read("4:-1"))) == "1:0"
    assert str(right_inverse(read("(3,4):(7,1)"))) == "4:3"
    assert str(left_inverse(read("(4,8):(8,1)"))) == "(8,4):(4,1)"
    assert str(left_inverse(read("4:2"))) == "(2,4):(0,1)"
    assert str(left_inverse(read("(2,4):(0,1)"))) == "4:2"
    assert str(left_inverse(read("(4,3,2):(2,10,1)"))) == "(2,5,3):(12,1,4)"
    assert str(left_inverse(read("((8,16),4):((1,12),204)"))) == "(12,17,4):(1,8,128)"
    with pytest.raises(AdmissibilityError, match=r"LA134[\s\S]*for the modes 16:12 and 4:200, 200 is not a mult"):
        left_inverse(read("((8,16),4):((1,12),200)"))
    with pytest.raises(AdmissibilityError, match=r"LA134[\s\S]*layoutalg.left_inverse\(layout, widen=True\)"):
        left_inverse(read("(2,16):(3,32)"))
    with pytest.raises(AdmissibilityError, match=r"LA133[\s\S]*coordinate=2, other=4, offset=2"):
        left_inverse(read("(4,2):(1,2)"))
    with pytest.raises(AdmissibilityError, match="LA131"):
        right_inverse(read("0:1"))
    with pytest.raises(AdmissibilityError, match="LA132"):
        left_inverse(read("4:-1"))


def test_a_layout_read_at_coordinates_without_a_number_is_constant() -> None:
    nowhere = CoordinateLayout((4, 8), (0, 0), ())
    assert str(CuteLayout(()) @ nowhere) == "(4,8):(0,0)"
    assert (CuteLayout(()) @ nowhere).table().tolist() == [0] * 32


def test_rearranging_coordinate_layouts_keeps_every_leaf() -> None:
    """A mode of extent 1 moves nothing, but its stride is a leaf like the others."""
    layout = CoordinateLayout((1, (8, 2)), (E(1, 1), (E(0) * 2, E(1, 0))), (0, (0, 0)))
    flat = cute.flatten(layout)
    assert flat == CoordinateLayout((1, 8, 2), (E(1, 1), E(0) * 2, E(1, 0)), (0, (0, 0)))
    assert cute.unflatten(flat, layout.shape) == layout
    assert cute.select(layout, 1, 0) == CoordinateLayout(((8, 2), 1), ((E(0) * 2, E(1, 0)), E(1, 1)), (0, (0, 0)))
    assert cute.take(layout, 0, 1) == CoordinateLayout((1,), (E(1, 1),), (0, (0, 0)))
    assert cute.group(layout, 0, 2)[0] == layout

"""The reader of the notation: what it accepts, and where its carets point."""

from __future__ import annotations

import sys
import types

import pytest

from layoutalg.cute import ComposedLayout, CoordinateLayout, CuteLayout, E, Swizzle, make_identity_layout, shift
from layoutalg.ground.errors import AdmissibilityError, MalformedError
from layoutalg.notation import parse, parse_tile


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(4,8):(1,4)", CuteLayout((4, 8), (1, 4))),
        ("((2,2),8):((1,16),2)", CuteLayout(((2, 2), 8), ((1, 16), 2))),
        ("4:1", CuteLayout(4, 1)),
        ("(4):(1)", CuteLayout((4,), (1,))),
        ("():()", CuteLayout(())),
        ("((),(3)):((),(-2))", CuteLayout(((), (3,)), ((), (-2,)))),
        ("4:-1", CuteLayout(4, -1)),
        ("(0,4):(7,0)", CuteLayout((0, 4), (7, 0))),
        (" ( 4 ,\n 8 ) : ( 1 , 4 ) ", CuteLayout((4, 8), (1, 4))),
        ("Sw<3,4,3>", Swizzle(3, 4, 3)),
        ("Sw<3,4,3,byte>", Swizzle(3, 4, 3, "byte")),
        ("Sw< 3, 4, -3, element >", Swizzle(3, 4, -3)),
        ("Sw<3,4,3> o 0 o (64,64):(64,1)", ComposedLayout(Swizzle(3, 4, 3), 0, CuteLayout((64, 64), (64, 1)))),
        ("Sw<3,4,3> o (64,64):(64,1)", ComposedLayout(Swizzle(3, 4, 3), 0, CuteLayout((64, 64), (64, 1)))),
        ("Sw<3,4,3> o 4:1", ComposedLayout(Swizzle(3, 4, 3), 0, CuteLayout(4))),
        ("16 + (4,8):(8,1)", shift(CuteLayout((4, 8), (8, 1)), 16)),
        ("5 o 6:-1", shift(CuteLayout(6, -1), 5)),
        ("-5+((6)):((2))", shift(CuteLayout(((6,),), ((2,),)), -5)),
        ("(((3 + 4:1)))", shift(CuteLayout(4), 3)),
        ("Sw<1,0,1> o 2 o (3 + 4:1)", ComposedLayout(Swizzle(1, 0, 1), 2, shift(CuteLayout(4), 3))),
        (
            "3 o Sw<1,0,1> o 4:1",
            ComposedLayout(Swizzle(0, 0, 0), 3, ComposedLayout(Swizzle(1, 0, 1), 0, CuteLayout(4))),
        ),
        ("(4,8):(E0,E1)", make_identity_layout((4, 8))),
        ("(4,(2,3)):(E0,(E(1,0),E(1,1)))", make_identity_layout((4, (2, 3)))),
        ("( 4 , 8 ) : ( - 2 E 0 + 3 E ( 1 , 0 ) , 0 )", CoordinateLayout((4, 8), (3 * E(1, 0) - 2 * E(0), 0))),
        ("4:E()", make_identity_layout(4)),
        ("4:E0 -> (_,(_,_))", CoordinateLayout(4, E(0), (0, (0, 0)))),
        ("(4,8):(0,0) -> ()", CoordinateLayout((4, 8), (0, 0))),
        ("4:0->_", CoordinateLayout(4, 0, 0)),
        ("Sw<3,4,3>o-8o4:1", ComposedLayout(Swizzle(3, 4, 3), -8, CuteLayout(4))),
        (
            "Sw<2,4,3> o 16 o (Sw<3,4,3> o 0 o (8,8):(8,1))",
            ComposedLayout(Swizzle(2, 4, 3), 16, ComposedLayout(Swizzle(3, 4, 3), 0, CuteLayout((8, 8), (8, 1)))),
        ),
        (
            "Sw<2,4,3> o 16 o Sw<3,4,3> o 0 o ((8,8)):((8,1))",
            ComposedLayout(Swizzle(2, 4, 3), 16, ComposedLayout(Swizzle(3, 4, 3), 0, CuteLayout(((8, 8),), ((8, 1),)))),
        ),
    ],
)
def test_reads(text: str, value: object) -> None:
    assert parse(text) == value
    assert parse(str(value)) == value


@pytest.mark.parametrize(
    ("text", "column", "because"),
    [
        ("", 0, "expected a shape, found the end of the text"),
        ("(4,8):(1,4", 10, "expected ')' or ',' in a stride, found the end of the text"),
        ("(4,8)(1,4)", 5, "expected ':' between shape and stride, found '('"),
        ("(4,8):(1,4))", 11, "expected the end of the text, found ')'"),
        ("(4,,8):(1,4)", 3, "expected a shape, found ','"),
        ("(4,8,):(1,4)", 5, "expected a shape, found ')'"),
        ("4.0:1", 1, "expected ':' between shape and stride, found '.'"),
        ("0x4:1", 1, "expected ':' between shape and stride, found 'x'"),
        ("__import__('os'):1", 0, "expected a shape, found '_'"),
        ("4:- 1", 2, "expected a stride, found '-'"),
        ("99999999999999999999:1", 0, "the integer does not fit 64 bits"),
        ("4:" + "9" * 5000, 2, "the integer does not fit 64 bits"),
        ("Sx<3,4,3>", 0, "expected 'Sw<bits,base,shift>'"),
        ("Sw<3,4>", 6, "expected ',' before shift, found '>'"),
        ("Sw<3,4,3,bit>", 9, "expected the unit 'element' or 'byte', found 'b'"),
        ("Sw<3,4,3> o 4", 13, "expected ':' between shape and stride, found the end of the text"),
        ("5 o", 3, "expected a shape, found the end of the text"),
        ("5 + (3 + 4:1", 12, "expected ')' to close the parenthesis, found the end of the text"),
        ("5 + 4:E0", 0, "a swizzle or an offset cannot be applied to a layout whose values are coordinates"),
        ("4:E", 3, "expected a path, found the end of the text"),
        ("4:E0+1", 5, "expected a basis element, found '1'"),
        ("4:E0 -> (_,)", 11, "expected '_' in the profile, found ')'"),
        ("Sw<3,4,3> 0 o 4:1", 10, "expected the end of the text, found '0'"),
        (
            "Sw<2,4,3> o 0 o (Sw<3,4,3> o 0 o 4:1",
            36,
            "expected ')' to close the parenthesis, found the end of the text",
        ),
    ],
)
def test_caret_points_at_the_place(text: str, column: int, because: str) -> None:
    with pytest.raises(MalformedError) as caught:
        parse(text)
    diagnostic = caught.value.diagnostic
    assert diagnostic.because == because
    assert diagnostic.code == "LA190"
    if len(text) <= 100:
        assert diagnostic.where == (f"{text}\n{' ' * column}^",)


def test_message_as_a_whole() -> None:
    with pytest.raises(MalformedError) as caught:
        parse("(4,8):(1;4)")
    assert str(caught.value) == (
        "LA190 the notation is malformed\n"
        "  in     (4,8):(1;4)\n"
        "                 ^\n"
        "  since  expected ')' or ',' in a stride, found ';'\n"
        "  see    read as CuTe's: (4,8):(8,1), (_4,_8):(_8,_1), Sw<3,3,3> o 0 o (8,64):(64,1), "
        "smem_ptr[16b](0x0) o 4:1; docs/notation.md lists every form"
    )


def test_long_texts_are_cut_around_the_caret() -> None:
    text = "(" + ",".join(["4"] * 300) + "):(1;"
    with pytest.raises(MalformedError) as caught:
        parse(text)
    line, caret = caught.value.diagnostic.where[0].split("\n")
    assert len(line) < 120
    assert line[caret.index("^")] == ";"


def test_rules_of_the_values_keep_their_code_and_get_a_caret() -> None:
    with pytest.raises(
        MalformedError, match=r"LA101 shape and stride nest differently\n  in     \(4,8\):1\n         \^"
    ):
        parse("(4,8):1")
    with pytest.raises(MalformedError, match="LA103") as caught:
        parse("Sw<1,0,1> o 0 o (4,-8):(1,4)")
    assert caught.value.diagnostic.where[0].split("\n")[1] == " " * 16 + "^"
    with pytest.raises(MalformedError, match="LA110"):
        parse("Sw<3,4,2>")
    with pytest.raises(AdmissibilityError, match="LA112"):
        parse("Sw<3,4,3,byte> o 0 o 4:1")


def test_limits() -> None:
    with pytest.raises(MalformedError, match="LA191"):
        parse(" " * 100_001)
    with pytest.raises(MalformedError, match="nests more than 64 deep"):
        parse("(" * 90_000)
    assert parse("(" * 64 + "4" + ")" * 64 + ":" + "(" * 64 + "1" + ")" * 64).depth == 64
    with pytest.raises(MalformedError, match="more than 10000 modes"):
        parse("(" + "4," * 20_001)
    with pytest.raises(MalformedError, match="must stack at most 64"):
        parse("Sw<1,0,1> o 0 o " * 65 + "4:1")
    with pytest.raises(MalformedError, match="stack nests more than 128 deep"):
        parse("Sw<1,0,1> o 0 o " * 5000 + "4:1")
    with pytest.raises(MalformedError, match="stack nests more than 128 deep"):
        parse("(" * 50_000 + "Sw<1,0,1> o 0 o 4:1")


@pytest.mark.parametrize("text", [None, 4, b"4:1", ["4:1"]])
def test_only_text_is_read(text: object) -> None:
    with pytest.raises(MalformedError, match="text must be a str"):
        parse(text)  # type: ignore[arg-type]


def test_linear_layouts_are_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    home = types.ModuleType("layoutalg.f2.layout")
    home.parse_linear = lambda text: ("linear", text)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "layoutalg.f2", types.ModuleType("layoutalg.f2"))
    monkeypatch.setitem(sys.modules, "layoutalg.f2.layout", home)
    assert parse("  F2{...}") == ("linear", "  F2{...}")


def test_integer_and_piecewise_layouts_are_read() -> None:
    assert str(parse(" Z[i:4=(6), j:3=(-1) -> offset%7] + (2)")) == "Z[i:4=(6), j:3=(6) -> offset%7] + (2)"
    assert parse("{ [i] -> [y = 2i] : 0 <= i < 4 }").table().tolist() == [0, 2, 4, 6]
    for text, code in (("Z[i:4", "LA725"), ("Z", "LA725"), ("{ [i] -> ", "LA780"), ("{ [i] -> [j] }", "LA783")):
        with pytest.raises(MalformedError) as caught:
            parse(text)
        assert caught.value.diagnostic.code == code


def test_parametric_text_is_read():
    from layoutalg import PiecewiseLayout, parse

    ragged = PiecewiseLayout("[N] -> { [i] -> [i mod 12, floor(i/12)] : 0 <= i < N }", given="[N] -> { : N >= 1 }")
    assert parse(str(ragged)) == ragged
    plain = PiecewiseLayout("[N] -> { [i] -> [N - 1 - i] : 0 <= i < N }")
    assert parse(str(plain)) == plain
    for points in (ragged.domain, plain.image, plain.subs(N=0).domain):
        assert parse(str(points)) == points


def test_a_type_of_a_tile_keeps_its_own_sizes() -> None:
    shared = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>"
    typed = f"!ttg.memdesc<64x64xbf16, {shared}, #smem>"
    assert parse_tile(typed, (4096,)) == parse_tile(shared, (64, 64)) == parse(typed)
    assert parse_tile(shared, None, (64, 64)) == parse(typed)
    assert parse_tile("(64,64):(64,1)", (8, 8)) == parse("(64,64):(64,1)")
    with pytest.raises(MalformedError, match="sizes"):
        parse_tile(shared)

"""Integer layouts: notation, refusals and their witnesses, the engines of the verdicts."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from layoutalg import integer
from layoutalg.convert import to_cute, to_integer
from layoutalg.cute.layout import CuteLayout
from layoutalg.ground.errors import AdmissibilityError, BudgetError, LayoutError, MalformedError, RepresentabilityError
from layoutalg.ground.verdict import Proved, Refuted, Unknown
from layoutalg.integer import IntegerLayout, parse_integer
from layoutalg.integer.expression import evaluate

L = IntegerLayout.from_strides


def refused(call, code):
    with pytest.raises(LayoutError) as error:
        call()
    assert error.value.diagnostic.code == code
    return error.value.diagnostic


@pytest.mark.parametrize(
    "text",
    [
        "Z[->]",
        "Z[i:3=() ->]",
        "Z[-> x%4, y] + (3,-2)",
        "Z[i:0=(1), j:5=(-7) -> x] + (2)",
        "Z[i:3=(5,1) -> offset, bank%4]",
    ],
)
def test_text_round_trip(text):
    layout = parse_integer(text)
    assert str(layout) == text
    assert parse_integer(text.replace(" ", "")) == layout
    assert eval(repr(layout)) == layout


@pytest.mark.parametrize(
    "text", ["", "Z", "Z[", "F2[->]", "Z[i=(1)->x]", "Z[i:3=(1)->x,y]", "Z[i:3=(1)->x] + (1) 2", "Z[i:3=(1.5)->x]", 7]
)
def test_other_text_is_refused(text):
    refused(lambda: parse_integer(text), "LA725")


@pytest.mark.parametrize(
    "arguments",
    [
        ((("i", -1),), (("x", 0),), ((1,),), (0,)),
        ((("i", 2), ("i", 3)), (("x", 0),), ((1, 1),), (0,)),
        ((("i j", 2),), (("x", 0),), ((1,),), (0,)),
        ((("i", 2),), (("x", -4),), ((1,),), (0,)),
        ((("i", 2),), (("x", 0),), (), (0,)),
        ((("i", True),), (("x", 0),), ((1,),), (0,)),
        ((("i", 2.0),), (("x", 0),), ((1,),), (0,)),
        (3, (("x", 0),), ((1,),), (0,)),
        ((("i", 2),), (("x", 0),), ((1,),), (0, 1)),
    ],
)
def test_malformed_layouts(arguments):
    refused(lambda: IntegerLayout(*arguments), "LA724")


def test_matrix_entries_are_integers():
    refused(lambda: L({"i": 2}, (1.5,)), "LA720")
    refused(lambda: L({"i": 2}, (1, 2)), "LA720")
    assert L({"i": np.int64(2)}, np.array([3])).matrix == ((3,),)


@pytest.mark.parametrize(
    "coords", [{"i": 3}, {"i": -1}, {"i": 1.0}, {"i": True}, {"j": 0}, {}, {"i": np.array([0, 3])}]
)
def test_coordinates_outside(coords):
    refused(lambda: L({"i": 3}, (2,)).apply(coords), "LA726")
    refused(lambda: L({"i": 3}, (2,)).at(3), "LA726")


def test_wide_values_are_exact():
    huge = L({"i": 3, "j": 2}, (2**70, -1), 2**80)
    assert huge.table().dtype == object
    assert huge.table().tolist()[2] == 2**80 + 2**71
    assert huge.apply({"i": np.arange(3), "j": 1})["offset"][2] == 2**80 + 2**71 - 1
    refused(lambda: L({"i": 2**30}, (1,)).table(), "LA727")
    assert L({"i": 3}, (1,)).table().dtype == np.int64


def test_tables_are_limited_by_entries():
    def many(outputs, extents, stride=1):
        rows = tuple((stride,) * len(extents) for _ in range(outputs))
        axes = tuple((f"i{k}", extent) for k, extent in enumerate(extents))
        return IntegerLayout(axes, tuple((f"o{k}", 0) for k in range(outputs)), rows, (0,) * outputs)

    found = refused(many(20, (2**27,)).table, "LA727")
    assert found.witness == {"points": 2**27, "outputs": 20, "limit": 2**24 // 20}
    refused(many(4, (2**22 + 1,)).table, "LA727")
    refused(many(0, (2**24 + 1,)).table, "LA727")
    refused(many(1, (2**21 + 1,), 2**62).table, "LA727")
    assert many(16, (2**20,)).table().shape == (2**20, 16)
    # an empty box lists nothing, whatever the other axes
    assert many(2, (0, 2**50)).table().shape == (0, 2)
    # verdicts that may use tables take another way, or say that they do not know
    wide = many(17, (2**10, 2**10))
    assert not isinstance(integer.covers(wide, dict.fromkeys(wide.out_dims, (0, 1))), Refuted)
    assert isinstance(integer.injective(wide), Refuted)


def test_composition_refusals_carry_the_first_coordinate():
    outer = L({"x": 8}, (3,))
    found = refused(lambda: outer @ L({"i": 3, "j": 4}, (1, 2), output="x"), "LA729")
    assert found.witness == {"coordinate": {"i": 2, "j": 3}, "axis": "x", "value": 8}
    assert refused(lambda: outer @ L({"i": 3}, (1,), output="y"), "LA728").witness == {"names": ["x", "y"]}
    # the modular identity of 12 read by an identity of 16: every value is exact, then a wrap is refused
    wrap = L({"i": 16}, (1,), output="x", modulus=12)
    found = refused(lambda: L({"x": 12}, (1,)) @ wrap, "LA730")
    assert found.witness == {"coordinate": {"i": 12}, "value": (0,), "affine": (12,)}
    assert str(L({"x": 12}, (1,), modulus=4) @ wrap) == "Z[i:16=(1) -> offset%4]"
    with pytest.raises(TypeError):
        outer @ 3


def test_composition_gives_up_by_budget():
    wrap = L({"i": 2**21}, (1,), output="x", modulus=5)
    with pytest.raises(BudgetError) as error:
        L({"x": 5}, (1,)) @ wrap
    assert error.value.diagnostic.code == "LA734"


def test_bits_into_residues_are_boxes_not_modules():
    """Two unit steps do not reach all residues modulo 6, although 1 generates them."""
    assert integer.covers(L({"i": 2, "j": 2}, (1, 1), modulus=6)).witness["missed"]["offset"] in (3, 4, 5)
    assert isinstance(integer.covers(L(dict.fromkeys("abc", 2), (1, 2, 4), modulus=12)), Refuted)
    both = IntegerLayout((("i", 3),), (("x", 3), ("y", 3)), ((1,), (1,)), (0, 0))
    assert isinstance(integer.covers(both), Refuted)
    assert isinstance(integer.injective(both), Proved)


def test_engines():
    assert integer.injective(L({"i": 1}, (0,))).engine == "size"
    assert integer.injective(L({"i": 9}, (2,))).engine == "lattice"
    assert integer.injective(L({"i": 3, "j": 5, "k": 4}, (1, 3, 15))).engine == "superincreasing"
    assert integer.injective(L({"i": 3, "j": 4, "k": 3}, (2, 3, 23))).engine == "table"
    wide = L({"i": 3, "j": 4, "k": 2**20}, (2, 3, 23))
    assert integer.injective(wide).engine == "bitset"
    # the same strides scaled beyond any bitset
    answer = integer.injective(L({"i": 3, "j": 4, "k": 2**20}, (2 * 10**9, 3 * 10**9, 23 * 10**9)), 20_000)
    assert answer.engine == "z3"
    assert integer.covers(L({"i": 3, "j": 2}, (1, 3)), {"offset": 6}).engine == "chain"
    assert integer.covers(L({"i": 3, "j": 2}, (2, 4)), {"offset": 3}).engine == "lattice"
    assert integer.covers(L({"i": 3, "j": 2}, (1, 3)), {"offset": 7}).engine == "range"
    assert integer.covers(IntegerLayout.identity({"i": 3, "j": 2**40}), {"i": 3, "j": 2**40}).engine == "each output"


def test_unknown_has_no_truth_value():
    mixed = IntegerLayout(
        (("i", 2**15), ("j", 2**15)), (("x", 0), ("y", 7)), ((2 * 10**9 + 1, 3 * 10**9 + 7), (3, 5)), (0, 0)
    )
    verdict = integer.covers(IntegerLayout(mixed.inputs, mixed.outputs, mixed.matrix, (0, 0)), {"x": 1, "y": 1})
    assert isinstance(verdict, (Unknown, Refuted, Proved))
    verdict = integer.covers(L({"i": 2**15, "j": 2**15}, (10**9 + 7, 10**9 + 9)), {"offset": (10**9 + 7, 10**9 + 10)})
    if isinstance(verdict, Unknown):
        with pytest.raises(ValueError):
            bool(verdict)


def test_collision_across_engines_is_real():
    layout = L({"i": 2**12, "j": 2**12, "k": 3}, (4095, 4096, 10**9))
    verdict = integer.injective(layout)
    assert isinstance(verdict, Proved)
    verdict = integer.injective(L({"i": 2**13, "j": 2**12, "k": 3}, (4095, 4096, 10**9)))
    assert isinstance(verdict, Refuted)
    assert verdict.witness["first"] != verdict.witness["second"]


def test_axis_operations_refuse_unknown_names():
    layout = L({"i": 3, "j": 4}, (1, 3))
    for call in (
        lambda: integer.flip(layout, "k"),
        lambda: integer.slice(layout, "i", 2, 2),
        lambda: integer.slice(layout, "i", 0, -1),
        lambda: integer.slice(layout, "i", 0.0, 1),
        lambda: integer.fix(layout, "i", 3),
        lambda: integer.permute(layout, ["i"]),
        lambda: integer.rename(layout, {"k": "x"}),
        lambda: integer.select_outputs(layout, ["nope"]),
        lambda: integer.shift(layout, [1, 2]),
        lambda: integer.split(layout, "j", {"a": 3, "b": 2}),
        lambda: integer.merge(layout, [], "x"),
        lambda: integer.reshape(layout, {"a": 5}),
        lambda: integer.covers(layout, {"x": 3}),
        lambda: integer.covers(layout, {"offset": (3, 1)}),
        lambda: integer.index_expression(layout, output="nope"),
        lambda: integer.index_expression(layout, flat="2"),
    ):
        refused(call, "LA731")


def test_reshape_refusals():
    found = refused(lambda: integer.reshape(L({"i": 4, "j": 3}, (1, 10)), {"a": 3, "b": 4}), "LA732")
    assert found.witness == {"flat": 4, "coordinate": {"a": 1, "b": 1}, "value": (10,), "affine": (4,)}
    found = refused(lambda: integer.merge(L({"i": 4, "j": 3}, (1, 10)), ["i", "j"], "k"), "LA733")
    assert found.witness == {"flat": 4, "coordinate": {"i": 0, "j": 1}, "value": (10,), "affine": (4,)}


@pytest.mark.parametrize(
    "text",
    [
        # ISL runs out of operations on both
        "Z[x0:3=(1,3,0), x1:8=(0,4,13), x2:5=(2,0,8), x3:1=(1,0,11) -> o0%6, o1, o2%16] + (0,-1,8)",
        "Z[x0:7=(0,4), x1:6=(4,15), x2:1=(1,0), x3:3=(3,0) -> o0%5, o1] + (1,0)",
    ],
)
def test_right_inverses_in_runs(text):
    layout = parse_integer(text)
    least = {}
    for index, value in enumerate(layout.table().tolist()):
        point = layout.coordinate(index)
        least[tuple(value)] = min(point, least.get(tuple(value), point))
    points, found = integer.right_inverse(layout).layout.graph()
    assert dict(zip(map(tuple, points.tolist()), map(tuple, found.tolist()), strict=True)) == least


def test_right_inverses_by_family():
    assert integer.right_inverse(L({"i": 5}, (2,), 3)).box == (("offset", (3, 4)),)
    assert refused(lambda: integer.right_inverse(L({"i": 0}, (1,))), "LA735").witness == {"size": 0}
    refused(lambda: integer.image_inverse(L({"i": 0}, (1,))), "LA735")
    # the diagonal of a square: defined on its three points and nowhere else
    both = integer.right_inverse(IntegerLayout((("i", 3),), (("x", 0), ("y", 0)), ((1,), (1,)), (0, 0)))
    assert isinstance(both, integer.ImageInverse)
    points, values = both.layout.graph()
    assert points.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert values.ravel().tolist() == [0, 1, 2]
    # a wrap that repeats: the least point of each value
    wrapped = integer.right_inverse(L({"i": 5}, (1,), modulus=4)).layout
    assert wrapped.graph()[1].ravel().tolist() == [0, 1, 2, 3]
    # names that ISL reserves
    named = IntegerLayout((("i", 3), ("j", 2)), (("and", 0), ("i", 0)), ((1, 1), (0, 1)), (0, 0))
    assert integer.right_inverse(named).layout.outputs == ("i", "j")
    # a rotation of rows is inverted by a rotation
    turn = IntegerLayout((("c", 8), ("r", 8)), (("c", 8), ("r", 0)), ((1, 3), (0, 1)), (5, 0))
    found = integer.right_inverse(turn)
    assert str(found.layout) == "Z[c0:8=(1,0), r0:8=(5,1) -> c%8, r%8] + (3,0)"


def test_values_beyond_words_on_short_axes():
    """Strides that no coordinate multiplies must not reach 64-bit arithmetic."""
    layout = IntegerLayout((("i", 1), ("j", 3)), (("x", 0), ("y", 2**70)), ((2**80, 1), (2**69, 1)), (0, 2**69))
    assert layout.table().tolist() == [[0, 2**69], [1, 2**69 + 1], [2, 2**69 + 2]]
    assert IntegerLayout((), (("y", 2**70),), ((),), (2**69,)).table().tolist() == [2**69]
    assert L({"i": 0, "j": 3}, (2**80, 2**80)).table().tolist() == []


def test_symbolic_polynomials():
    found = integer.symbolic_access(("K", 4, 2), (1, "ld", "ld * h + 4"), assume=("K % 16 == 0", "ld % 8 == 0"))
    assert (found.guaranteed, found.alignment, found.exact) == (4, 4, True)
    assert found.text == "gcd(K, ld, h*ld + 4)"
    assert found.assumptions == ("K % 16 == 0", "ld % 8 == 0")
    assert integer.symbolic_access((8, 4), (1, "n * (n + 1) * (n + 2) - 6")).guaranteed == 2
    # rows that follow each other are one run, whatever their length
    assert integer.symbolic_access(("K", "M"), (1, "K"), assume=("M % 4 == 0",)).guaranteed == 4
    many = " + ".join("abcdefg")
    wide = integer.symbolic_access((8, 2), (1, f"8*({many})*({many}) + 4*a*b*c*d*e*f*g*a*b*c*d*e*f*g*a*b*c*d*e*f*g"))
    assert (wide.guaranteed, wide.exact) == (4, False)
    for bad in ("ld / 2", "4 / ld", "ld / (2*ld*ld)"):
        refused(lambda bad=bad: integer.symbolic_access((4,), (bad,)), "LA736")
    for bad in ("ld ** n", "ld +", "f(x)", "1.5", "ld.x", True, 2.0, None):
        refused(lambda bad=bad: integer.symbolic_access((4,), (bad,)), "LA620")
    for bad in ("ld", "ld % 8", "ld % 0 == 0", "ld % 8 >= 0", 3):
        refused(lambda bad=bad: integer.symbolic_access((4,), (1,), assume=(bad,)), "LA620")
    refused(lambda: integer.symbolic_access((4, 2), (1, "a"), assume=("a % 4 == 0", "a % 6 == 1")), "LA621")


def test_symbolic_access_uses_all_that_is_assumed():
    access = integer.symbolic_access
    assert access((8, 2), (1, "ld ** 2"), assume=("2 * ld % 8 == 0",)).guaranteed == 8
    assert access((8, 2), (1, "M/4"), assume=("M % 16 == 0",)).guaranteed == 4
    assert access((8, 2), (1, "n*(n + 1)/2"), assume=("n % 4 == 3",)).guaranteed == 2
    equal = access(("K", "M"), (1, "N"), assume=("N == K", "M % 4 == 0", "K % 2 == 0"))
    assert (equal.guaranteed, equal.text, equal.exact) == (8, "gcd(K*M)", False)
    assert "M % 4 == 0" in equal.assumptions
    x = sympy.Symbol("ld")
    assert access((64, 8), (1, 2 * x), assume=("ld % 4 == 0",)) == access((64, 8), (1, "2*ld"), assume=("ld % 4 == 0",))


@pytest.mark.parametrize("bad", [True, 1.5, "2", None, np.float64(1), np.bool_(True), [], object()])
def test_wrong_types_name_the_argument(bad):
    layout = L({"i": 3, "j": 4}, (1, 3))
    for call in (
        lambda: layout.value(bad),
        lambda: integer.select_outputs(layout, [bad]),
        lambda: integer.merge(layout, ["i", bad], "k"),
        lambda: integer.injective(layout, bad),
        lambda: integer.right_inverse(bad),
        lambda: evaluate("i + 1", {"i": bad}),
        lambda: evaluate("i + 1", bad),
        lambda: integer.snf([[1, 2], [3, bad]]),
        lambda: integer.hnf([], bad) if bad is not None else integer.hnf(bad),
    ):
        with pytest.raises(MalformedError) as error:
            call()
        assert error.value.diagnostic.where


@pytest.mark.parametrize("bad", [True, 1.5, "2", None, CuteLayout(4, 1)])
def test_other_values_do_not_compose(bad):
    assert "cannot compose" in refused(lambda: L({"i": 3}, (1,)).then(bad), "LA192").because


def test_inverses_name_what_is_wrong():
    found = refused(L({"i": 2, "j": 3}, (2, 1)).inverse, "LA746")
    assert found.witness == {"first": {"i": 1, "j": 0}, "second": {"i": 0, "j": 2}, "value": 2}
    assert refused(L({"i": 2, "j": 2}, (1, 3)).inverse, "LA746").witness == {"missed": 2}
    assert refused(L({"i": 2}, (1,), 5).inverse, "LA746").witness == {"missed": 0}
    assert refused(L({"i": 2}, (1,), -5).inverse, "LA746").witness == {"value": -5}
    assert refused(L({"i": 6}, (3,), modulus=9).inverse, "LA746").witness == {
        "first": {"i": 0},
        "second": {"i": 3},
        "value": 0,
    }
    assert refused(L({"i": 3}, (3,), modulus=7).inverse, "LA746").witness == {"missed": 1}
    refused(IntegerLayout.identity({"i": 2, "j": 2}).inverse, "LA746")
    assert str(L({"i": 8}, (3,), 1, modulus=8).inverse()) == "Z[offset:8=(3) -> index%8] + (5)"
    assert str(L({"i": 2, "j": 4}, (3, 2), modulus=8).inverse()) == "Z[offset0:2=(7), offset1:4=(2) -> index%8]"
    refused(L({"i": 3, "j": 5}, (5, 3), modulus=15).inverse, "LA747")
    assert L({"i": 2**40, "j": 3}, (3, 1)).inverse().at(3 * 7 + 2) == 7 + 2 * 2**40
    assert L({"i": 0, "j": 3}, (3, 1)).inverse().size == 0


def test_access_and_expressions():
    assert integer.access(L({"c": 64, "r": 8}, (1, 72))).vector_bytes(2) == 16
    refused(lambda: integer.access(L({"i": 9}, (1,), modulus=4)), "LA736")
    refused(lambda: integer.symbolic_access((3,), (1, 2)), "LA736")
    refused(lambda: integer.symbolic_access((64, 8), (1, "2x")), "LA620")
    assert integer.symbolic_access((64, 8), (1, "ld")).text == "gcd(64, ld)"
    for text in ("__import__('os')", "i.real", "i +", "i ** 2", "-1 % 2", "j", "True + 1"):
        refused(lambda text=text: evaluate(text, {"i": 1}), "LA737")
    refused(lambda: integer.index_expression(L({"i": 0}, (1,)), flat="t"), "LA737")
    # no division where digits carry
    assert integer.index_expression(L({"i": 3, "j": 5, "k": 7}, (2, 6, 30)), flat="t").text == "2 * t"
    assert integer.index_expression(L({"i": 3, "j": 5}, (1, 4), modulus=6), flat="q").text == "(q + (q / 3)) % 6"
    assert integer.index_expression(L({"i": 3}, (0,))).text == "0"
    assert integer.index_expression(L({"i": 2**20, "j": 2**20}, (1, 2**21)), flat="t").bits == 42


def test_bridge():
    assert to_cute(L({"i": 5}, (7,))) == CuteLayout(5, 7)
    assert to_cute(
        L({"i": 3}, (1,), 2, modulus=8)
        .__matmul__(IntegerLayout((("a", 2),), (("i", 0),), ((1,),), (0,)))
        .then(L({"offset": 8}, (1,), -2))
    ) == CuteLayout(2, 1)
    for layout, code in (
        (IntegerLayout.identity({"i": 2, "j": 2}), "LA234"),
        (L({"i": 5}, (1,), modulus=4), "LA235"),
        (L({"i": 5}, (2**70,)), "LA660"),
    ):
        refused(lambda layout=layout: to_cute(layout), code)
    assert str(to_cute(L({"i": 5}, (1,), 3))) in ("Sw<0,0,0> o 3 o 5:1", "3 + 5:1")
    refused(lambda: to_integer(48), "LA234")
    assert to_integer(CuteLayout((), ())).size == 1
    assert to_cute(to_integer(CuteLayout((), ()))).table().tolist() == [0]
    assert to_integer(CuteLayout((0, 3))).table().tolist() == []


def test_errors_are_also_value_errors():
    for kind in (MalformedError, AdmissibilityError, RepresentabilityError):
        assert issubclass(kind, ValueError)


def test_names_and_index_values_of_other_types():
    layout = L({"i": 3}, (2,))
    refused(lambda: integer.slice(layout, np.array([[1, 2]]), 0, 1), "LA731")
    refused(lambda: integer.fix(layout, ["i"], 0), "LA731")
    expression = integer.index_expression(layout, flat="t")
    refused(lambda: expression.evaluate({"t": [[1, 2], [3]]}), "LA737")
    refused(lambda: expression.evaluate({"t": np.array([1.5])}), "LA737")
    refused(lambda: evaluate("i + j", {"i": np.arange(2), "j": np.arange(3)}), "LA737")
    refused(lambda: evaluate("i / j", {"i": 1, "j": 0}), "LA737")
    refused(lambda: evaluate("i % j", {"i": np.arange(2), "j": np.arange(2)}), "LA737")
    refused(lambda: evaluate("-" * 20000 + "i", {"i": 1}), "LA737")


def test_index_values_do_not_overflow():
    assert evaluate("i * i", {"i": np.array([2**40, 3])}).tolist() == [2**80, 9]
    assert evaluate("0 - i", {"i": np.array([1], dtype=np.uint64)}).tolist() == [-1]
    assert evaluate("i * 100", {"i": np.array([3], dtype=np.int8)}).dtype == np.int64


@pytest.mark.parametrize("word", ["for", "and", "int", "xor_eq", "é", "nullptr"])
def test_names_that_c_does_not_take(word):
    layout = L({word: 4, "j": 3}, (2, 9))
    found = refused(lambda: integer.index_expression(layout), "LA743")
    assert word in found.because
    # the repair is what it says
    renamed = eval(found.repairs[0].detail, {"integer": integer, "layout": layout})
    assert integer.index_expression(renamed).check()
    refused(lambda: integer.index_expression(layout, flat=word), "LA743")
    # the flat index has a name of its own
    assert integer.index_expression(layout, flat="t").check()
    assert layout(**{word: 3, "j": 1}) == {"offset": 15}


def test_an_axis_may_be_called_self():
    layout = L({"self": 4, "j": 3}, (2, 8))
    assert layout(self=3, j=1) == {"offset": 14}
    assert integer.index_expression(layout).evaluate({"self": 3, "j": 1}) == 14


@pytest.mark.parametrize("word", ["lambda", "None", "is", "in", "n0"])
def test_keywords_of_python_are_names_in_c(word):
    layout = L({word: 4, "n1": 3}, (2, 9))
    assert integer.index_expression(layout).check()
    assert integer.index_expression(layout, flat=word).check()

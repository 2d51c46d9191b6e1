"""Certificates of equality, composition and inverses: the verdict is that of enumeration, and so is a wrong claim's."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.ground.errors import AdmissibilityError, BudgetError, LayoutError, RepresentabilityError
from layoutalg.proofs import checker
from layoutalg.proofs.certify import Certificate
from layoutalg.proofs.certify.functions import function
from layoutalg.proofs.certify.stages import common_digits
from layoutalg.proofs.checker import base
from layoutalg.testing import strategies as draw

SMALL = 600


def usable(layout: object) -> bool:
    """One with few points, all numbers."""
    total = getattr(layout, "is_total", True)
    return bool(total) and layout.size <= SMALL  # type: ignore[attr-defined]


def families() -> st.SearchStrategy[object]:
    """Layouts of all families that have flat coordinates."""
    return st.one_of(
        draw.cute_layouts(),
        draw.composed_layouts(),
        draw.linear_layouts(),
        draw.integer_layouts(),
        draw.hierarchical_layouts(),
        draw.piecewise_layouts().filter(lambda layout: layout.is_total),
    ).filter(usable)


def values(layout: object) -> list[tuple[int, ...]]:
    """The values by the library's own evaluation, point by point."""
    found = [layout.at(index) for index in range(layout.size)]  # type: ignore[attr-defined]
    return [value if isinstance(value, tuple) else (int(value),) for value in found]


def plain(size: int, stride: int) -> dict[str, object]:
    """The function size:stride."""
    return {"size": size, "stages": [["affine", [[stride]], [0]]]}


def checked(document: dict[str, object]) -> tuple[int, str]:
    """What the checker says of the text of a document."""
    return checker.check(checker.parsed(json.dumps(document)))  # type: ignore[return-value]


@settings(deadline=None, max_examples=150)
@given(families())
def test_the_stages_are_the_layout(layout: object) -> None:
    found = function(layout)
    outputs, defined = base.values_at(found.stages, [np.arange(found.size)])
    assert defined.all()
    assert [tuple(map(int, row)) for row in zip(*outputs, strict=True)] == values(layout)
    read = base.read(json.loads(json.dumps(found.document())), base.SIZED, "f")
    again, _ = base.values_at(read.stages, [np.arange(found.size)])
    assert [part.tolist() for part in again] == [part.tolist() for part in outputs]


@settings(deadline=None, max_examples=100)
@given(families(), families(), st.booleans())
def test_equality_is_that_of_enumeration(f: object, g: object, same: bool) -> None:
    if same and len(values(f)[0] if f.size else ()) == 1:
        try:
            g = la.convert.to_piecewise(f)
        except LayoutError:
            assume(False)
    try:
        made = la.certify.equality(f, g)
    except BudgetError:
        assume(False)
    assert made.check()
    assert (made.kind == "equality") == (f.size == g.size and values(f) == values(g))


@settings(deadline=None, max_examples=100)
@given(families(), families())
def test_composition_is_that_of_enumeration(f: object, g: object) -> None:
    inner = values(g)
    assume(all(len(value) == 1 for value in inner[:1]) and g.size)
    inside = all(0 <= value[0] < f.size for value in inner)
    try:
        made = la.certify.composition(f, g)
    except (RepresentabilityError, BudgetError):
        assume(False)
    except AdmissibilityError as error:
        assert error.diagnostic.code != "LA427"
        return
    assert made.check()
    assert (made.kind == "composition") == inside


@settings(deadline=None, max_examples=150)
@given(families(), st.sampled_from(["left", "right", "both"]))
def test_inverses_are_those_of_enumeration(f: object, side: str) -> None:
    listed = values(f)
    assume(f.size and len(listed[0]) == 1)
    flat = [value[0] for value in listed]
    assume(min(flat) >= 0 and max(flat) < 5000)
    top = f.size if side == "both" else max(flat) + 1
    injective, onto = len(set(flat)) == len(flat), set(range(top)) <= set(flat)
    made = la.certify.inverse(f, side=side, codomain=top)
    assert made.check()
    exists = {"left": injective, "right": onto, "both": injective and onto}[side]
    assert (made.kind == "inverse") == exists
    stated = made.statement["inverse"]["size"] if exists else made.statement["codomain"]
    assert stated == top, "the inverse is asked for on these numbers"


def test_every_bijection_of_six_points_has_its_certificate() -> None:
    from itertools import permutations

    for order in list(permutations(range(6)))[::29]:
        layout = la.convert.to_piecewise(
            la.hierarchy.HierarchicalLayout(
                la.hierarchy.Box.of(i=6), la.hierarchy.Box.of(o=6), la.hierarchy.TableMap(order)
            )
        )
        assert la.certify.inverse(layout, side="both").kind == "inverse"


@pytest.mark.parametrize("bits", [40, 200])
def test_linear_layouts_of_many_bits_have_small_certificates(bits: int) -> None:
    columns = [1 << bit | (1 << bit) // 2 for bit in range(bits)]
    layout = la.LinearLayout((("i", bits),), (("o", bits),), tuple(columns), 5)
    made = la.certify.inverse(layout, side="both")
    assert made.kind == "inverse"
    assert made.evidence["by"] == "digits"
    singular = la.LinearLayout((("i", bits),), (("o", bits),), (*columns[:-1], columns[0] ^ columns[3]), 0)
    assert la.certify.inverse(singular, side="both").check()
    assert la.certify.inverse(singular, side="right").evidence["invariant"][0][0] == "xor"


def test_layouts_too_large_to_list_have_certificates() -> None:
    big = la.parse("(65536,65536,3):(1,65536,4294967296)")
    assert la.certify.equality(big, la.parse("12884901888:1")).evidence["by"] == "digits"
    assert la.certify.inverse(la.parse("(65536,65536):(65536,1)"), side="both").evidence["by"] == "digits"
    swapped = la.certify.composition(la.parse("(65536,65536):(65536,1)"), la.parse("(65536,65536):(65536,1)"))
    assert swapped.statement["h"]["stages"] == [["split", [65536, 65536]], ["affine", [[1, 65536]], [0]]]
    assert la.certify.inverse(la.parse("(65536,65536):(2,3)"), side="left").kind == "no-inverse"


def test_parameters_are_for_all_values() -> None:
    f = la.PiecewiseLayout("[N] -> { [i, j] -> [i + N*0 + 3j] : 0 <= i < 3 and 0 <= j < N }")
    g = la.PiecewiseLayout("[N] -> { [i, j] -> [3j + i] : 0 <= i <= 2 and 0 <= j and j + 1 <= N }")
    made = la.certify.equality(f, g)
    assert (made.kind, made.evidence) == ("equality", {"by": "solvers"})
    other = la.PiecewiseLayout("[N] -> { [i, j] -> [3j + i] : 0 <= i <= 2 and 0 <= j and j <= N }")
    assert la.certify.equality(f, other).kind == "inequality"


def test_common_digits_hold_all_cuts_that_divide() -> None:
    for one, two in product(([2, 6], [4, 3], [12], [3, 4], [2, 2, 3]), repeat=2):
        for bits in (False, True):
            digits = common_digits([one, two], 12, bits=bits)
            size = 1
            for digit in digits:
                size *= digit
            assert size == 12
            assert min(digits) > 1


def test_a_claim_that_does_not_hold_has_no_certificate() -> None:
    with pytest.raises(AdmissibilityError, match=r"LA427(.|\n)*h is not f o g, at \[1\], got \[2\], expected \[16\]"):
        la.certify.composition(la.parse("(4,8):(8,1)"), la.parse("8:2"), la.parse("8:2"))
    with pytest.raises(AdmissibilityError, match="LA427"):
        la.certify.inverse(la.parse("(4,8):(8,1)"), la.parse("(4,8):(8,1)"))
    document = Certificate("equality", {"f": plain(4, 1), "g": plain(4, 2)}, {"by": "table"}).to_json()
    assert checked(document) == (1, "f and g differ, at [1], got [1], expected [2]")

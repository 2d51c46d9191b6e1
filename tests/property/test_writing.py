"""``to_text``: what it writes is read back as the same function, for values of every family, judged by enumeration."""

from __future__ import annotations

import islpy
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judges.families import ANSWERS, FAMILIES

import layoutalg as la
from layoutalg.cute import CoordinateLayout
from layoutalg.notation.write import FORMS
from layoutalg.testing import strategies as ours

QUICK = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
ALWAYS = {
    "cute": {"cute_cpp", "cute_type", "cute_dsl", "isl"},
    "composed": {"cute_cpp", "cute_type", "cute_dsl"},
    "morphism": {"cute_cpp", "cute_type", "cute_dsl", "isl"},
    "piecewise": {"isl"},
    "integer": {"isl"},
    "coordinate": {"isl"},
    "linear": set(),
    "hierarchical": set(),
}
"""Forms that hold every value of the family."""


def table_of(layout) -> list:
    """One entry per flat coordinate; a value with one output stands for itself."""
    return np.asarray(layout.table()).reshape(layout.size, -1).tolist() if layout.size else []


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("family", sorted(FAMILIES))
@QUICK
@given(data=st.data())
def test_what_is_written_is_read_back(family, form, data):
    layout = data.draw(FAMILIES[family] | ANSWERS[family])
    if layout.size > 2**10:
        return
    try:
        text = layout.to_text(form)
    except la.BudgetError:
        return
    except la.LayoutError as error:
        assert form not in ALWAYS[family], error
        return
    back = la.parse(text)
    if isinstance(layout, CoordinateLayout) and form != "isl":
        assert back == layout
    assert back.size == layout.size
    if form == "isl" and isinstance(layout, la.LinearLayout | la.HierarchicalLayout):
        assert [[layout.at(index)] for index in range(layout.size)] == table_of(back)
    elif form in ("cute_cpp", "cute_type", "cute_dsl") and not isinstance(layout, CoordinateLayout):
        assert [layout.at(index) for index in range(layout.size)] == [back.at(index) for index in range(back.size)]
    else:
        assert table_of(back) == table_of(layout)


@QUICK
@given(layout=ours.cute_layouts() | ours.composed_layouts())
def test_isl_itself_reads_what_is_written_for_isl(layout):
    if not 0 < layout.size <= 64:
        return
    try:
        relation = islpy.Map(layout.to_text("isl"))
    except la.BudgetError:
        return
    images = set()
    relation.range().foreach_point(
        lambda point: images.add(point.get_coordinate_val(islpy.dim_type.set, 0).to_python())
    )
    assert images == set(layout.table().tolist())


@QUICK
@given(
    layout=ours.cute_layouts(),
    base=st.integers(0, 4),
    width=st.sampled_from([1, 4, 8, 16, 32, 64, 128]),
    form=st.sampled_from(["cute_cpp", "cute_type"]),
)
def test_a_swizzle_behind_a_pointer_acts_on_bytes(layout, base, width, form):
    swizzled = la.ComposedLayout(la.Swizzle(2, base, 3), 0, layout)
    try:
        text = swizzled.to_text(form, element_bits=width)
    except la.RepresentabilityError as error:
        assert error.diagnostic.code == "LA196"
        assert (1 << base) * width < 8
        return
    assert la.parse(text) == swizzled
    printed = la.interop.read_printout(text)
    assert (printed.element_bits, printed.space) == (width, "smem")
    for offset in layout.table().tolist()[:64]:
        if offset >= 0:
            address, bit = divmod(offset * width, 8)
            assert printed.swizzle(address) * 8 + bit == la.Swizzle(2, base, 3)(offset) * width


@pytest.mark.parametrize(
    ("text", "form", "words"),
    [
        ("(4,8):(1,4)", "ttg", "linear"),
        ("Sw<3,4,3,byte>", "cute_cpp", "no unit"),
        ("(M,N):(1,M)", "cute_dsl", "says more"),
        ("(M,4):(4,1)", "cute_cpp", "no names"),
        ("(4,8):(E0+E1,E1)", "cute_dsl", "sum of basis elements"),
        ("{ [i] : 0 <= i < 4 }", "gluon", "linear"),
        ("Sw<3,4,3> o 8 o (8,64):(64,1)", "cute_type", None),
    ],
)
def test_a_refusal_names_the_form_that_holds_the_value(text, form, words):
    value = la.parse(text)
    if words is None:
        assert la.parse(value.to_text(form)) == value
        with pytest.raises(la.RepresentabilityError, match="no offset"):
            value.to_text(form, element_bits=16)
        return
    with pytest.raises(la.RepresentabilityError, match=words) as caught:
        value.to_text(form)
    assert caught.value.diagnostic.because.endswith(" instead")


def test_unknown_forms_and_options_are_refused():
    value = la.parse("4:1")
    for ask in (
        lambda: value.to_text("c"),
        lambda: value.to_text(3),
        lambda: value.to_text("isl", element_bits=16),
        lambda: value.to_text("cute_cpp", element_bits=0),
    ):
        with pytest.raises(la.MalformedError, match="LA195"):
            ask()

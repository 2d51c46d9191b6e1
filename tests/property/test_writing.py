"""``to_text``: what it writes is read back as the same function, for values of every family, judged by enumeration."""

from __future__ import annotations

import re

import islpy
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from judges.affine_maps import evaluated
from judges.families import ANSWERS, FAMILIES

import layoutalg as la
from layoutalg.cute import CoordinateLayout
from layoutalg.cute.inttuple import product_each
from layoutalg.ground.layout import takes_offsets
from layoutalg.notation.write import FORMS
from layoutalg.notation.written import tile_extents
from layoutalg.testing import strategies as ours

QUICK = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
ALWAYS = {
    "cute": {"cute_cpp", "cute_type", "cute_dsl", "mlir", "isl"},
    "composed": {"cute_cpp", "cute_type", "cute_dsl"},
    "morphism": {"cute_cpp", "cute_type", "cute_dsl", "mlir", "isl"},
    "piecewise": {"isl"},
    "integer": {"mlir", "isl"},
    "coordinate": {"mlir", "isl"},
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
    if form in ("ttg", "gluon") and not isinstance(layout, la.LinearLayout):
        own = isinstance(layout, la.CuteLayout | la.ComposedLayout)
        shape = product_each((layout if own else la.convert.to_cute(layout)).shape)
        shape = shape if isinstance(shape, tuple) else (shape,)
        offsets = coordinates_to_offsets(la.parse(text, shape), shape)
        assert offsets.reshape(-1, order="F").tolist() == [row for (row,) in table_of(layout)]
        return
    back = la.parse(text, tile_extents(layout) if form == "mlir" else None)
    if isinstance(layout, CoordinateLayout) and form not in ("isl", "mlir"):
        assert back == layout
    assert back.size == layout.size
    if form in ("isl", "mlir") and isinstance(layout, la.LinearLayout | la.HierarchicalLayout):
        assert [[layout.at(index)] for index in range(layout.size)] == table_of(back)
    elif form in ("cute_cpp", "cute_type", "cute_dsl") and not isinstance(layout, CoordinateLayout):
        assert [layout.at(index) for index in range(layout.size)] == [back.at(index) for index in range(back.size)]
    else:
        assert table_of(back) == table_of(layout)


@pytest.mark.parametrize("family", sorted(FAMILIES))
@QUICK
@given(data=st.data())
def test_python_evaluates_what_is_written_for_mlir(family, data):
    layout = data.draw(FAMILIES[family] | ANSWERS[family])
    extents = tile_extents(layout)
    assume(0 < layout.size <= 2**8 and not takes_offsets(layout))
    try:
        text = layout.to_text("mlir")
    except la.LayoutError:
        return
    dimensions = [f"d{place}" for place in range(len(extents))]
    if text.startswith("strided"):
        strides, offset = re.fullmatch(r"strided<\[(.*)\](?:, offset: (.*))?>", text).groups()
        terms = [f"{name} * {step}" for name, step in zip(dimensions, filter(None, strides.split(", ")), strict=True)]
        results = [" + ".join([*terms, offset or "0"])]
    else:
        names, results = re.fullmatch(r"affine_map<\((.*)\) -> \((.*)\)>", text).groups()
        assert names == ", ".join(dimensions)
        results = results.split(", ")
    points = [dict(zip(dimensions, reversed(point), strict=True)) for point in np.ndindex(*reversed(extents))]
    found = [[evaluated(result, **point) for result in results] for point in points]
    if isinstance(layout, la.LinearLayout | la.HierarchicalLayout):
        assert found == [[layout.at(index)] for index in range(layout.size)]
    else:
        assert found == table_of(layout)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("8 + (64,32):(40,1)", "strided<[40, 1], offset: 8>"),
        ("((2,2),(1,4)):((1,2),(5,4))", "strided<[1, 4]>"),
        ("((2,4),8):((1,16),2)", "affine_map<(d0, d1) -> (d0 mod 2 + (d0 floordiv 2) * 16 + d1 * 2)>"),
        ("Z[i:4=(2), j:8=(-1) -> y%3] + (2)", "affine_map<(d0, d1) -> ((-d0 - d1 - 1) mod 3)>"),
        (
            "Sw<1,1,1> o 0 o (2,4):(4,1)",
            "affine_map<(d0, d1) -> (d0 * 4 + d1 mod 2 + ((d0 + d1 floordiv 2) mod 2) * 2)>",
        ),
        ("(4,8):(E0,E1)", "affine_map<(d0, d1) -> (d0, d1)>"),
    ],
)
def test_mlir_text_is_the_shortest_that_is_known(text, written):
    assert la.parse(text).to_text("mlir") == written


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
        ("(4,8):(1,8)", "ttg", "linear"),
        ("Sw<3,4,3,byte>", "cute_cpp", "no unit"),
        ("(M,N):(1,M)", "cute_dsl", "says more"),
        ("(M,4):(4,1)", "cute_cpp", "no names"),
        ("(4,8):(E0+E1,E1)", "cute_dsl", "sum of basis elements"),
        ("{ [i] : 0 <= i < 4 }", "gluon", "linear"),
        ("{ [i] : 0 <= i < 4 }", "mlir", "point set"),
        ("{ [i, j] -> [i] : 0 <= i < 4 and 0 <= j <= i }", "mlir", "whole box"),
        ("Sw<2,1,3> o 5 o (6,16):(16,1)", "mlir", "one expression"),
        ("Sw<3,4,3>", "mlir", "apply it to a layout"),
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
        lambda: value.to_text("mlir", element_bits=16),
        lambda: value.to_text("cute_cpp", element_bits=0),
    ):
        with pytest.raises(la.MalformedError, match="LA195"):
            ask()


@st.composite
def shared_attributes(draw):
    """Attributes of shared layouts with their tensor: all parameters, also larger than the tensor."""
    shape = tuple(draw(st.sampled_from((1, 8, 16, 64, 128))) for _ in range(draw(st.integers(1, 3))))
    powers = st.sampled_from((1, 2, 4, 8, 16))
    if draw(st.booleans()):
        order = list(draw(st.permutations(range(len(shape)))))
        text = f"vec = {draw(powers)}, perPhase = {draw(powers)}, maxPhase = {draw(powers)}, order = {order}"
        return f"#ttg.swizzled_shared<{{{text}}}>", shape
    turned = len(shape) == 2 and draw(st.booleans())
    text = f"swizzlingByteWidth = {draw(st.sampled_from((0, 32, 64, 128)))}, transposed = {str(turned).lower()}"
    text += f", elementBitWidth = {draw(st.sampled_from((8, 16, 32)))}, rank = {len(shape)}"
    return f"#ttg.nvmma_shared<{{{text}}}>", shape


def coordinates_to_offsets(layout, shape):
    """The offset of every coordinate, by looking up every offset; None if an offset has several coordinates."""
    table = np.full(shape, -1)
    for offset in range(layout.in_dims["offset"]):
        at = tuple(layout(offset=offset, block=0).values())
        if table[at] >= 0:
            return None
        table[at] = offset
    return None if (table < 0).any() else table


@given(shared_attributes(), st.sampled_from((None, 8, 16, 32)))
@settings(max_examples=40)
def test_a_shared_layout_is_written_as_the_attribute_that_it_is(case, element_bits):
    text, shape = case
    assume(np.prod(shape) <= 1 << 13)
    try:
        layout = la.parse(text, shape)
    except la.LayoutError:  # larger than the tensor
        assume(False)
    table = coordinates_to_offsets(layout, shape)
    assume(table is not None)
    written = la.layout(table).to_text("ttg", element_bits=element_bits)
    width = text.partition("elementBitWidth = ")[2].partition(",")[0]
    assert la.parse(written, shape) == layout
    if element_bits is None or width in ("", str(element_bits)):  # elements of another width may have no attribute
        assert written.startswith(("#ttg.swizzled_shared<", "#ttg.nvmma_shared<"))
    if width and int(width) == element_bits:
        assert written.startswith("#ttg.nvmma_shared<")


@given(st.permutations(range(8)), st.integers(1, 7))
def test_every_bijection_over_f2_is_written(order, step):
    """Bits of coordinates in any order, one of them added to another: some attribute is exactly this layout."""
    columns = [1 << bit for bit in order]
    columns[step] ^= columns[0]
    table = np.zeros(256, dtype=np.int64)
    for bit, column in enumerate(columns):
        table ^= np.where(np.arange(256) >> bit & 1, column, 0)
    table = table.reshape((16, 16), order="F")
    found = la.parse(la.layout(table).to_text("ttg"), (16, 16))
    assert np.array_equal(coordinates_to_offsets(found, (16, 16)), table)
    assert la.equivalent(found, la.layout(table))


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("(64,64):(72,1)", "linear over F2: .* xor"),
        ("(6,8):(8,1)", "2\\*\\*n points"),
        ("(8,8):(16,1)", "every offset once"),
        ("(8,8):(0,1)", "every offset once"),
        ("(M,4):(4,1)", "coordinates of a tensor"),
    ],
)
def test_what_triton_has_no_shared_layout_for_is_refused(text, because):
    with pytest.raises(la.LayoutError, match=because):
        la.layout(text).to_text("ttg")

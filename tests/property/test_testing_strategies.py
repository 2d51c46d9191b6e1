"""The public strategies: what each draws is right, comes back from its text, and shrinks to the least example."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument

import layoutalg as la
from layoutalg import cute, hierarchy, synth
from layoutalg.cute import symbolic
from layoutalg.ground import assumptions, conditions
from layoutalg.hierarchy import TableMap
from layoutalg.proofs.smem import SharedTile
from layoutalg.proofs.wgmma import OperandProblem
from layoutalg.synth import InadmissibleError
from layoutalg.targets.nvidia import tensormap, wgmma
from layoutalg.testing import strategies as ours

QUICK = settings(
    database=None, derandomize=True, deadline=None, max_examples=2000, phases=(Phase.generate, Phase.shrink)
)
FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def twice(layout: Any) -> bool:
    """Whether a value is taken twice."""
    return len({str(value) for value in layout.table().tolist()}) < layout.size


def moves(layout: Any) -> bool:
    """Whether a bijection is not the identity."""
    return layout.table().ravel().tolist() != list(range(layout.size))


def broken_chain(layout: Any) -> bool:
    """Whether some stride is no multiple of the reach of the next smaller one."""
    modes = sorted((stride, extent) for extent, stride in layout.flat if extent > 1)
    return any(after % (stride * extent) for (stride, extent), (after, _) in itertools.pairwise(modes))


SHRUNK: list[tuple[str, Any, Callable[[Any], Any], str]] = [
    ("nested tuple", ours.int_tuples(), lambda t: str(t).count("(") >= 3, "(((1,),), 1)"),
    ("tuple", ours.int_tuples(tuples_only=True), lambda _: True, "(1,)"),
    ("overlap", ours.cute_layouts(), twice, "2:0"),
    ("negative stride", ours.cute_layouts(), lambda f: any(d < 0 for _, d in f.flat), "1:-1"),
    ("gap", ours.cute_layouts(), lambda f: f.cosize > f.size > 1 and not twice(f), "2:2"),
    ("nested", ours.cute_layouts(), lambda f: f.depth >= 2, "((1),1):((1),1)"),
    ("not column-major", ours.cute_layouts(bijective=True), moves, "(2,2):(2,1)"),
    ("padded", ours.cute_layouts(injective=True), lambda f: f.cosize != f.size, "2:2"),
    ("full", ours.cute_layouts(power_of_two=True, max_size=16), lambda f: f.size == 16, "(4,4):(1,4)"),
    ("odd extent", ours.cute_layouts(), lambda f: f.size.bit_count() > 1, "3:1"),
    ("swizzle upwards", ours.swizzles(), lambda s: s.shift < 0, "Sw<0,0,-1>"),
    ("swizzle that moves", ours.swizzles(), lambda s: s(5) != 5, "Sw<1,0,2>"),
    ("offset", ours.composed_layouts(), lambda f: f.at(0) != 0, "1 + 1:1"),
    ("swizzled bijection", ours.composed_layouts(bijective=True), lambda f: moves(f) and not moves(f.base),
     "Sw<1,0,1> o 0 o 4:1"),
    ("coordinates twice", ours.coordinate_layouts(), twice, "(2,2):(E0,E0) -> (_,_)"),
    ("quarter", ours.symbolic_layouts(), lambda f: "4" in str(f.assumptions), "M/4:1"),
    ("symbolic negative", ours.symbolic_layouts(names=("K",)), lambda f: "-1" in str(f.stride), "K:-1"),
    ("morphism of four", ours.morphisms(bijective=True), lambda f: f.size >= 4, "(4) --(0)--> (4)"),
    ("broadcast", ours.morphisms(), twice, "(2) --(None)--> (1)"),
    ("kernel", ours.linear_layouts(), lambda f: len(f.in_dims) > 1 and twice(f), "F2[in0=, in1=(0) -> out0:1]"),
    ("shear", ours.linear_layouts(invertible=True), lambda f: any(c & (c - 1) for c in f.columns),
     "F2[in0=(1)(3) -> out0:4]"),
    ("named axes", ours.linear_layouts(inputs={"lane": 4}, outputs={"bank": 4}, affine=False), lambda f: f.rank == 2,
     "F2[lane=(1)(2) -> bank:4]"),
    ("residue", ours.integer_layouts(), lambda f: any(f.moduli), "Z[i0:1=(0) -> o0%2]"),
    ("backwards", ours.integer_layouts(bijective=True), moves, "Z[i0:2=(-1) -> offset] + (1)"),
    ("two pieces", ours.piecewise_layouts(), lambda f: ";" in f.text,
     "{ [i0] -> [(0)] : i0 = 0; [i0] -> [(1)] : i0 = 1 }"),
    ("partial pieces", ours.piecewise_layouts(partial=True), lambda f: not f.is_total, "{ [i0] -> [(0)] : i0 = 1 }"),
    ("reversed tile", ours.hierarchical_layouts(), moves, "s0 2:-1 -> t0:2"),
    ("tile by table", ours.hierarchical_layouts(), lambda f: isinstance(f.map, TableMap),
     "[s0:3] table 1,0,2 -> t0:3"),
    ("partial tile", ours.hierarchical_layouts(partial=True), lambda f: 0 < f.active() < f.size,
     "s0 2:1 -> t0:2 | g0<1 where 2:1 -> g0:2"),
    ("bijection", ours.bijections(), lambda m: m.size >= 5, "DigitMap(modes=((5, 1),))"),
    ("mixed bits", ours.digit_maps(4), lambda m: any(c & (c - 1) for c in m.columns or ()),
     "DigitMap(modes=((2, 1), (2, (1, 2))))"),
    ("box", ours.boxes(), lambda b: len(b.axes) == 2, "a0:2, a1:2"),
    ("guard", ours.guards(), lambda g: 0 < g.count < g.box.size,
     "Guard(map=DigitMap(modes=((2, 1),)), box=Box(axes=(('g0', 2),)), bounds=(1,))"),
    ("bijection of any family", ours.layouts(bijective=True), lambda f: moves(f) and not isinstance(f, la.CuteLayout),
     "Z[i0:2=(-1) -> offset] + (1)"),
    ("table", ours.tables(), lambda t: len(set(t.tolist())) < len(t), "[0 0]"),
    ("permutation", ours.tables(bijective=True), lambda t: t[0] != 0, "[1 0]"),
    ("text", ours.texts("cute_cpp"), lambda t: t.startswith("_2:"), "_2:_1"),
    ("equal", ours.equal_pairs("cute"), lambda p: type(p[0]) is type(p[1]) and p[0].size > 1, "2:1, (1,2):(1,1)"),
    ("near", ours.near_pairs("cute"), lambda p: p[2] == 1,
     "2:1, { [c0] -> [(0)] : c0 = 0; [c0] -> [(2)] : c0 = 1 } as offset, 1"),
    ("composable", ours.composable_pairs("linear"), lambda p: p[1].size > 1,
     "F2[out0= -> y:8], F2[in0=(0) -> out0:1]"),
    ("admissible", ours.admissible_pairs(), lambda p: p[1].size > 1 and p[1].at(1) > 1, "3:1, 2:2"),
    ("tensor", ours.tensors(), lambda t: len(t.shape) == 2 and t.strides[0] > t.shape[1], "u8 (1,1):(2,1)"),
    ("swizzled tile", ours.shared_tiles(), lambda t: t.swizzle != "NONE",
     "SharedTile(modes=((),), swizzle='32B', base=0)"),
    ("problem of rank 2", ours.tensormap_problems(direction="store"), lambda d: len(d["tile"]) == 2,
     "{'schema': 'layoutalg/tensormap-problem/1', 'arch': 'sm_90a', 'direction': 'store', 'global': {'shape': [1, 16], "
     "'stride': [16, 1], 'dtype': 'u8', 'base_align_bytes': 256}, 'tile': [1, 16], 'smem': {'modes': [[[1, 16]], "
     "[[16, 1]]], 'swizzle': 'NONE'}, 'element_strides': [1, 1], 'oob_fill': 'ZERO'}"),
    ("plan", ours.tensormap_plans().map(lambda plan: plan.tensor_map.box), bool, "(16,)"),
    ("operand plan", ours.operand_plans().map(lambda plan: plan.problem), lambda p: p.operand == "B",
     "B f16 NONE XOR o 0 o ((8),(8,2)):((8),(1,64))"),
    ("operand", ours.operand_problems(), lambda p: p.swizzle == "128B",
     "A f16 128B XOR o 0 o ((64),(16)):((16),(1))"),
    ("map", ours.tensor_maps(), lambda m: len(m.dims) == 2,
     "TensorMap(dtype='u8', dims=(1, 1), strides_bytes=(16,), box=(16, 1), element_strides=(1, 1), interleave='NONE', "
     "swizzle='NONE', l2_promotion='NONE', oob_fill='ZERO', base_address=0)"),
    ("descriptor", ours.matrix_descriptors(), lambda d: d.base_offset > 2,
     "MatrixDescriptor(start_address_bytes=0, leading_bytes=0, stride_bytes=0, base_offset=3, swizzle='NONE')"),
]  # fmt: skip


def told(value: Any) -> str:
    several = isinstance(value, tuple) and any(isinstance(part, la.CuteLayout | la.LinearLayout) for part in value)
    return ", ".join(map(str, value)) if several else str(value)


@pytest.mark.parametrize(("strategy", "wanted", "least"), [row[1:] for row in SHRUNK], ids=[row[0] for row in SHRUNK])
def test_a_failure_shrinks_to_the_least_example(strategy: Any, wanted: Callable[[Any], Any], least: str) -> None:
    assert told(find(strategy, wanted, settings=QUICK)) == least


def test_every_public_strategy_is_shrunk_here() -> None:
    public = {name for name in ours.__all__ if name.islower() and name != "values_and_texts"}
    source = Path(__file__).read_text(encoding="utf-8").partition("SHRUNK: ")[2].partition("\ndef told")[0]
    assert {name for name in public if f"ours.{name}(" not in source} - {"layouts"} == set()


CORNERS: list[tuple[str, Any, Callable[[Any], Any]]] = [
    ("size 1", ours.layouts(name), lambda f: f.size == 1) for name in ours.FAMILIES
]
CORNERS += [
    ("stride 0", ours.cute_layouts(), lambda f: any(e > 1 and d == 0 for e, d in f.flat)),
    ("extent 1 with a stride", ours.cute_layouts(), lambda f: any(e == 1 and d > 1 for e, d in f.flat)),
    (
        "negative and positive",
        ours.cute_layouts(),
        lambda f: len({d > 0 for e, d in f.flat if e > 1 and d}) == 2,
    ),
    ("no power of two", ours.cute_layouts(), lambda f: f.rank > 1 and f.size % 2 and f.size > 1),
    ("depth 3", ours.cute_layouts(), lambda f: f.depth >= 3),
    ("no divisible chain", ours.cute_layouts(injective=True), broken_chain),
    ("byte swizzle", ours.swizzles("byte", max_bits=5), lambda s: s.bits == 5),
    ("two swizzles", ours.composed_layouts(max_stages=2), lambda f: sum(s.bits > 0 for s, _ in f.stages) == 2),
    ("rank 5", ours.tensormap_problems(), lambda d: len(d["tile"]) == 5),
    ("no bits", ours.linear_layouts(), lambda f: f.in_bits == 0),
    ("no points left", ours.hierarchical_layouts(partial=True), lambda f: f.guards and f.active() == 0),
    ("triton", ours.texts(), lambda t: t.startswith("#ttg.linear")),
    ("gluon", ours.texts(), lambda t: t.startswith("gl.")),
    ("isl", ours.texts(), lambda t: t.startswith("{")),
]


@pytest.mark.parametrize(("strategy", "corner"), [row[1:] for row in CORNERS], ids=[row[0] for row in CORNERS])
def test_odd_corners_are_drawn(strategy: Any, corner: Callable[[Any], Any]) -> None:
    assert find(strategy, corner, settings=settings(QUICK, phases=[Phase.generate])) is not None


NAMES = {
    **{name: value for module in (la, cute, hierarchy, symbolic) for name, value in vars(module).items()},
    **{name: getattr(assumptions, name) for name in ("Assumptions", "SideCondition")},
    **{name: getattr(la, name) for name in la.__all__},
    "condition": conditions.condition,
    "SharedTile": SharedTile,
    "OperandProblem": OperandProblem,
    "TensorMap": tensormap.TensorMap,
    "MatrixDescriptor": wgmma.MatrixDescriptor,
    "Guard": hierarchy.Guard,
    "Box": hierarchy.Box,
}
VALUES = st.one_of(
    ours.layouts(), ours.swizzles("byte"), ours.symbolic_layouts(), ours.bijections(), ours.boxes(), ours.guards(),
    ours.tensors(), ours.shared_tiles(), ours.operand_problems(), ours.tensor_maps(), ours.matrix_descriptors(),
    ours.int_tuples(), ours.hierarchical_layouts(partial=True), ours.piecewise_layouts(partial=True),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_every_value_comes_back_from_its_own_text(value: Any) -> None:
    assert eval(repr(value), dict(NAMES)) == value
    assert pickle.loads(pickle.dumps(value)) == value
    hash(value)


@FEW
@given(ours.values_and_texts())
def test_every_text_is_read_as_the_layout_that_was_written(drawn: tuple[Any, str]) -> None:
    value, text = drawn
    found = la.parse(text)
    assert isinstance(la.equivalent(found, value), la.Proved)


@FEW
@given(ours.equal_pairs())
def test_equal_pairs_have_one_table_and_two_forms(pair: tuple[Any, Any]) -> None:
    one, other = pair
    assert (type(one), repr(one)) != (type(other), repr(other))
    tables = [np.asarray(layout.table()).reshape(one.size, -1) for layout in pair]
    if tables[0].shape == tables[1].shape:
        assert np.array_equal(*tables)
    assert isinstance(la.equivalent(one, other), la.Proved)


@FEW
@given(ours.near_pairs())
def test_near_pairs_differ_at_one_coordinate(pair: tuple[Any, Any, int]) -> None:
    one, other, at = pair
    same = [one.at(index) == other.at(index) for index in range(one.size)]
    if isinstance(one.at(0), int) == isinstance(other.at(0), int):
        assert [index for index, equal in enumerate(same) if not equal] == [at]
    assert la.equivalent(one, other).witness["coordinate"] == at


@FEW
@given(ours.layouts(bijective=True) | ours.layouts(("cute", "integer"), bijective=True, max_size=12))
def test_bijections_take_every_value_once(layout: Any) -> None:
    assert sorted(layout.table().ravel().tolist()) == list(range(layout.size))


@FEW
@given(ours.cute_layouts(injective=True, max_size=20, power_of_two=True))
def test_injective_layouts_keep_their_bounds(layout: la.CuteLayout) -> None:
    assert not twice(layout)
    assert layout.size <= 20
    assert all(extent.bit_count() == 1 for extent, _ in layout.flat)


@FEW
@given(ours.symbolic_layouts(names=("M", "N")), st.integers(1, 3), st.integers(1, 3))
def test_symbolic_layouts_hold_at_multiples_of_four(layout: Any, m: int, n: int) -> None:
    sizes = {name: size for name, size in (("M", 4 * m), ("N", 4 * n)) if name in repr(layout)}
    assert layout.subs(sizes).size >= 1


def test_about_half_of_the_problems_have_plans() -> None:
    verdicts = []

    @settings(max_examples=40, deadline=None, derandomize=True, database=None, phases=[Phase.generate])
    @given(ours.tensormap_problems())
    def plan(document: dict[str, object]) -> None:
        try:
            synth.synthesize_tensormap(document, repair=False)
            verdicts.append(True)
        except InadmissibleError:
            verdicts.append(False)

    plan()
    assert 0.2 < sum(verdicts) / len(verdicts) < 0.95


@pytest.mark.parametrize(
    ("call", "because"),
    [
        (lambda: ours.cute_layouts(max_leaves=0), "max_leaves=0 must be an integer at least 1"),
        (lambda: ours.cute_layouts(strides=3), "strides=3 must be a Hypothesis strategy"),  # type: ignore[arg-type]
        (lambda: ours.cute_layouts(strides=st.integers(), bijective=True), "strides cannot be combined"),
        (lambda: ours.cute_layouts(bijective=1), "bijective=1 must be True or False"),  # type: ignore[arg-type]
        (lambda: ours.swizzles("bit"), "unit='bit' must be one of 'element', 'byte'"),  # type: ignore[arg-type]
        (lambda: ours.linear_layouts(inputs={"x": 6}), "inputs['x']=6 must be a power of two"),
        (lambda: ours.linear_layouts(inputs={"x": 4}, outputs={"y": 8}, invertible=True), "must have equal sizes"),
        (lambda: ours.layouts(()), "families=() must be one or more of 'cute'"),
        (lambda: ours.layouts("f2"), "'f2' must be one of 'cute'"),
        (lambda: ours.layouts("piecewise", bijective=True), "must be one or more of 'cute', 'composed', 'morphism'"),
        (lambda: ours.symbolic_layouts(names=()), "names=() must be a list of identifiers"),
        (lambda: ours.bijections(0), "size=0 must be an integer at least 1"),
        (lambda: ours.tensormap_problems(max_rank=9), "max_rank=9 must be an integer in [1, 6]"),
        (lambda: ours.operand_problems(operand="D"), "operand='D' must be one of 'A', 'B'"),
        (lambda: ours.tables("4:1"), "of='4:1' must be a Hypothesis strategy"),  # type: ignore[arg-type]
    ],
)
def test_bad_arguments_are_refused_where_they_are_given(call: Callable[[], Any], because: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        call()
    assert isinstance(caught.value, la.MalformedError)
    assert caught.value.diagnostic.code == "LA455"
    assert because in str(caught.value)

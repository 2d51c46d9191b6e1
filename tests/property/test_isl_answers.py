"""Texts, functions out of relations, inverses and counts, against plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from random import Random

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from layoutalg.ground.errors import BudgetError, MalformedError
from layoutalg.piecewise import PiecewiseLayout, PointSet, lexmax, lexmin
from layoutalg.piecewise.runs import runs_text

SIDE = range(-4, 8)


def expression(source: Random, axes: list[str], depth: int = 0) -> str:
    kind = source.random()
    if depth > 2 or kind < 0.3:
        return source.choice([*axes, str(source.randint(0, 7))])
    inner = expression(source, axes, depth + 1)
    if kind < 0.5:
        return f"{inner} {source.choice('+-')} {expression(source, axes, depth + 1)}"
    if kind < 0.6:
        return f"{source.randint(2, 5)}*({inner})"
    if kind < 0.75:
        return f"({inner}) mod {source.randint(1, 6)}"
    if kind < 0.85:
        return f"ceil(({inner})/{source.randint(2, 5)})"
    if kind < 0.9:
        return f"{source.choice(['min', 'max'])}({inner}, {expression(source, axes, depth + 1)})"
    return f"floor(({inner})/{source.randint(2, 5)})"


def condition(source: Random, axes: list[str], depth: int = 0) -> str:
    kind = source.random()
    if depth > 2 or kind < 0.5:
        sign = source.choice(["<", "<=", ">", ">=", "=", "!="])
        return f"{expression(source, axes, 1)} {sign} {expression(source, axes, 1)}"
    if kind < 0.75:
        joined = f"{condition(source, axes, depth + 1)} {source.choice(['and', 'or'])} "
        return f"({joined}{condition(source, axes, depth + 1)})"
    if kind < 0.8:
        return f"not ({condition(source, axes, depth + 1)})"
    if kind < 0.9:
        bound = f"e <= {expression(source, axes, 2)}"
        return f"(exists e : {source.randint(2, 4)}e = {expression(source, axes, 2)} and {bound})"
    return f"(exists (e = floor(({expression(source, axes)})/3) : {condition(source, [*axes, 'e'], 2)}))"


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9))
@example(32620)
def test_sets_have_the_points_that_isl_lists(seed: int) -> None:
    import islpy

    source = Random(seed)
    axes = ["a", "b"][: source.randint(1, 2)]
    bounds = " and ".join(f"-3 <= {axis} < 6" for axis in axes)
    text = f"{{ [{', '.join(axes)}] : {bounds} and ({condition(source, axes)}) }}"
    grid = dict(zip(axes, [line.ravel() for line in np.meshgrid(*[np.array(SIDE)] * len(axes))], strict=True))
    context = islpy.Context()
    context.set_max_operations(50_000)
    try:
        points = islpy.Set.read_from_str(context, text)
        context.set_max_operations(0)
    except islpy.Error:
        return
    wanted: set[tuple[int, ...]] = set()
    kind = islpy.dim_type.set
    points.foreach_point(
        lambda point: wanted.add(tuple(int(point.get_coordinate_val(kind, k).to_python()) for k in range(len(axes))))
    )
    inside = PointSet(text).contains(grid)  # type: ignore[arg-type]
    assert set(zip(*(line[inside].tolist() for line in grid.values()), strict=True)) == wanted


Test = Callable[[int, int, int, int], bool]


@st.composite
def halves(draw: st.DrawFn) -> tuple[str, Test]:
    """A conjunction on (y, z, a, b), and the same in Python."""
    m, k, d = draw(st.integers(2, 6)), draw(st.integers(1, 3)), draw(st.integers(3, 4))
    low = draw(st.integers(1 - d, -1))
    text = f"z mod {m} = {k}b - {k}y + {2 * k}*floor(y/2) and {low} + y <= {d}a <= {low + d - 1} + y"
    return text, lambda y, z, a, b: z % m == k * (b - y % 2) and low + y <= d * a <= low + d - 1 + y


@settings(max_examples=60, deadline=None)
@given(halves(), halves(), st.integers(-2, 3), st.integers(-2, 3), st.booleans())
def test_functions_out_of_relations_keep_every_point(
    first: tuple[str, Test], second: tuple[str, Test], at: int, value: int, point: bool
) -> None:
    start = (f"y = {at} and a = {value} and b = 0", lambda y, _, a, b: y == at and a == value and b == 0)
    parts = [start if point else first, second]
    box = "-4 <= y, z < 8"
    text = f"{{ {'; '.join(f'[y, z] -> [a, b] : {box} and {condition}' for condition, _ in parts)} }}"
    table: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for y, z, a, b in product(SIDE, SIDE, range(-8, 12), range(-8, 12)):
        if any(holds(y, z, a, b) for _, holds in parts):
            table.setdefault((y, z), set()).add((a, b))
    try:
        layout = PiecewiseLayout(text)
    except BudgetError:
        return
    except MalformedError as error:
        assert error.diagnostic.code == "LA783"
        assert any(len(values) > 1 for values in table.values())
        return
    points, values = layout.graph()
    found = {tuple(p): {tuple(v)} for p, v in zip(points.tolist(), values.tolist(), strict=True)}
    assert found == table


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(*[st.integers(1, 4)] * 3),
    st.lists(st.tuples(*[st.integers(-9, 12)] * 3), min_size=1, max_size=2),
    st.sampled_from([0, 3, 4, 5, 8, 12]),
)
def test_right_inverses_take_the_least_point_of_every_value(
    extents: tuple[int, int, int], rows: list[tuple[int, int, int]], modulus: int
) -> None:
    names = "abc"
    sums = [" + ".join(f"{f}*{name}" for f, name in zip(row, names, strict=True)) for row in rows]
    if modulus:
        sums[-1] = f"({sums[-1]}) mod {modulus}"
    bounds = " and ".join(f"0 <= {name} < {extent}" for name, extent in zip(names, extents, strict=True))
    layout = PiecewiseLayout(f"{{ [a, b, c] -> [{', '.join(sums)}] : {bounds} }}")
    least: dict[tuple[int, ...], tuple[int, ...]] = {}
    for point in product(*map(range, extents)):
        value = [sum(f * x for f, x in zip(row, point, strict=True)) for row in rows]
        if modulus:
            value[-1] %= modulus
        least.setdefault(tuple(value), point)
    with suppress(BudgetError):
        points, values = layout.right_inverse().graph()
        assert {tuple(p): tuple(v) for p, v in zip(points.tolist(), values.tolist(), strict=True)} == least


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.tuples(st.integers(-5, 9), st.integers(0, 3)), st.integers(-9, 9), min_size=1, max_size=40))
def test_runs_are_the_function_they_list(table: dict[tuple[int, int], int]) -> None:
    points, values = PiecewiseLayout(runs_text({at: (value,) for at, value in table.items()}, ("x", "y"))).graph()
    assert dict(zip(map(tuple, points.tolist()), values.ravel().tolist(), strict=True)) == table


@settings(max_examples=40, deadline=None)
@given(source=st.randoms(use_true_random=False))
def test_counts_formulas_and_bounds_are_those_of_the_points(source: Random) -> None:
    side = source.randint(1, 9)
    text = f"{{ [a, b] : 0 <= a < {side} and -2 <= b < 6 and ({condition(source, ['a', 'b'], 1)}) }}"
    try:
        points = PointSet(text)
    except (BudgetError, MalformedError):
        return
    inside = [p for p in product(range(side), range(-2, 6)) if p in points]
    assert [tuple(p) for p in points.points().tolist()] == inside
    assert points.count() == points.count_formula()() == len(inside)
    assert points.is_empty() == (not inside)
    if inside:
        assert tuple(lexmin(points)().values()) == inside[0]
        assert tuple(lexmax(points)().values()) == inside[-1]


@settings(max_examples=24, deadline=None)
@given(source=st.randoms(use_true_random=False))
def test_piecewise_layouts_have_the_values_of_their_text(source: Random) -> None:
    text = expression(source, ["a", "b"])
    names = {"floor": math.floor, "ceil": math.ceil, "min": min, "max": max}
    with suppress(BudgetError):
        layout = PiecewiseLayout(f"{{ [a, b] -> [{text}] : 0 <= a < 7 and 0 <= b < 5 }}")
        python = text.replace(" mod ", " % ")
        assert layout.table().tolist() == [eval(python, names, {"a": k % 7, "b": k // 7}) for k in range(35)]

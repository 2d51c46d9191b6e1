"""Whatever an operation on CuTe layouts returns, all other operations, bridges, ``equivalent`` and ``parse`` take.

The judge is enumeration. A refusal must be one of the mathematics (not defined there, no such form, not decided), never
that the operand is of the wrong kind.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg import cute
from layoutalg.cute import ComposedLayout, CuteLayout
from layoutalg.ground.errors import AdmissibilityError, BudgetError, LayoutError, RepresentabilityError
from layoutalg.testing import strategies as ours

Maker = Callable[[Any], Any]
Judge = Callable[[Any, list[int]], None]


def _first(layout: Any) -> Any:
    return (0,) * layout.rank if isinstance(layout.shape, tuple) else 0


def _open(layout: Any) -> Any:
    """A coordinate that fixes the last mode."""
    return (*[None] * (layout.rank - 1), 0) if isinstance(layout.shape, tuple) and layout.rank else None


MAKERS: dict[str, Maker] = {
    "itself": lambda f: f,
    "shift": lambda f: cute.shift(f, 5),
    "swizzled": lambda f: cute.composition(cute.Swizzle(1, 0, 1), f),
    "twice swizzled": lambda f: ComposedLayout(cute.Swizzle(1, 1, 2), 3, cute.Swizzle(1, 0, 1) @ f),
    "offset over swizzle": lambda f: cute.shift(cute.Swizzle(2, 0, 2) @ f, 7),
    "coalesce": cute.coalesce,
    "flatten": cute.flatten,
    "filter": cute.filter,
    "half": lambda f: cute.composition(f, CuteLayout(f.size // 2, 2)),
    "after a tile": lambda f: cute.composition(f, cute.local_tile(CuteLayout(f.size), f.size // 2, 1)),
    "after a swizzle": lambda f: cute.composition(f, cute.Swizzle(1, 0, 1)),
    "local_tile": lambda f: cute.local_tile(f, 2, 1),
    "local_partition": lambda f: cute.local_partition(f, CuteLayout(2), 1),
    "thread_value_partition": lambda f: cute.thread_value_partition(f, CuteLayout((2, f.size // 2)), 1),
    "slice": lambda f: cute.slice(_open(f), f),
    "dice": lambda f: cute.dice(_open(f), f),
    "slice_and_offset": lambda f: cute.slice_and_offset(_open(f), f),
    "domain_offset": lambda f: cute.domain_offset(_first(f), f),
    "logical_divide": lambda f: cute.logical_divide(f, 2),
    "zipped_divide": lambda f: cute.zipped_divide(f, CuteLayout(2)),
    "logical_product": lambda f: cute.logical_product(f, 2),
    "raked_product": lambda f: cute.raked_product(f, CuteLayout(2)),
    "tile_to_shape": lambda f: cute.tile_to_shape(f, tuple(2 * e for e in cute.product_each(f.shape))),
    "complement": cute.complement,
    "right_inverse": cute.right_inverse,
    "left_inverse": cute.left_inverse,
    "inverse": lambda f: f.inverse(),
    "upcast": lambda f: cute.upcast(f, 2),
    "downcast": lambda f: cute.downcast(f, 2),
    "recast": lambda f: cute.recast(f, 8, 16),
    "mode": lambda f: f[0],
    "append": lambda f: cute.append(f, CuteLayout(2, 3)),
    "group": lambda f: cute.group(f, 0, 1),
    "select": lambda f: cute.select(f, 0),
    "identity": lambda f: f @ cute.make_identity_layout(f.shape),
}


def same(answer: Any, wanted: list[int]) -> None:
    assert answer.table().tolist() == wanted


def _after_wide(value: Any, table: list[int]) -> None:
    outer = CuteLayout((max(0, *table) + 1, 2), (2, 1))
    same(cute.composition(outer, value), [2 * entry for entry in table])


def _divided(value: Any, table: list[int]) -> None:
    assert Counter(cute.logical_divide(value, 2).table().tolist()) == Counter(table)


def _multiplied(value: Any, table: list[int]) -> None:
    assert cute.logical_product(value, CuteLayout(3)).table().tolist()[: len(table)] == table


def _complemented(value: Any, table: list[int]) -> None:
    rest = cute.complement(value, 40).table().tolist()
    offsets = {entry + other for entry in set(table) for other in rest}
    assert offsets == set(range(len(offsets)))
    assert len(offsets) == len(set(table)) * len(rest) >= 40


def _right(value: Any, table: list[int]) -> None:
    for offset, index in enumerate(cute.right_inverse(value).table().tolist()):
        assert table[index] == offset


def _left(value: Any, table: list[int]) -> None:
    back = cute.left_inverse(value)
    assert [table[back.at(entry)] for entry in table] == table


def _inverse(value: Any, table: list[int]) -> None:
    back = value.inverse().table().tolist()
    assert sorted(table) == list(range(len(table)))
    assert [back[entry] for entry in table] == list(range(len(table)))


def _wider(value: Any, table: list[int]) -> None:
    answer = cute.upcast(value, 2).table().tolist()
    assert Counter(table) == Counter([2 * entry + r for entry in answer for r in (0, 1)])


def _narrower(value: Any, table: list[int]) -> None:
    answer = cute.downcast(value, 2).table().tolist()
    assert Counter(answer) == Counter([2 * entry + r for entry in table for r in (0, 1)])


def _text(value: Any, table: list[int]) -> None:
    assert la.parse(str(value)) == value == eval(repr(value), vars(cute)) == pickle.loads(pickle.dumps(value))
    assert hash(la.parse(str(value))) == hash(value)
    same(value, [value.at(index) for index in range(value.size)])


def _aligned(value: Any, table: list[int]) -> None:
    count = cute.max_alignment(value)
    assert cute.upcast(value, count).size * count == len(table)


def _null(value: Any, table: list[int]) -> None:
    assert {table[index] for index in cute.nullspace(value).table().tolist()} == {table[0]}


def _common(value: Any, table: list[int]) -> None:
    count = cute.max_common_vector(value, CuteLayout(len(table)))
    assert table[:count] == list(range(count))


def _reach(value: Any, table: list[int]) -> None:
    assert cute.cosize(value) == 1 + max(table) - min(table)


def _proved(value: Any, table: list[int]) -> None:
    assert la.equivalent(value, value)
    assert la.equivalent(cute.coalesce(value), value)
    assert not la.equivalent(cute.shift(value, 1), value)


CONSUMERS: dict[str, Judge] = {
    "text": _text,
    "outer composition": _after_wide,
    "inner composition": lambda v, t: same(cute.composition(v, CuteLayout(len(t) // 2, 2)), t[: len(t) // 2 * 2 : 2]),
    "after a swizzle": lambda v, t: same(v @ cute.Swizzle(1, 0, 1), [t[i ^ (i >> 1 & 1)] for i in range(len(t))]),
    "under a swizzle": lambda v, t: same(cute.Swizzle(1, 0, 1) @ v, [e ^ (e >> 1 & 1) for e in t]),
    "coalesce": lambda v, t: same(cute.coalesce(v), t),
    "flatten": lambda v, t: same(cute.flatten(v), t),
    "logical_divide": _divided,
    "logical_product": _multiplied,
    "complement": _complemented,
    "right_inverse": _right,
    "left_inverse": _left,
    "inverse": _inverse,
    "upcast": _wider,
    "downcast": _narrower,
    "max_alignment": _aligned,
    "nullspace": _null,
    "max_common_vector": _common,
    "local_tile": lambda v, t: same(cute.local_tile(v, 2, 0), t[:2]),
    "slice": lambda v, t: same(cute.slice(None, v), t),
    "cosize": _reach,
    "as a tiler": lambda v, t: same(cute.composition(CuteLayout(max(0, *t) + 1), v), t),
    "to_linear": lambda v, t: same(la.convert.to_linear(v), t),
    "to_piecewise": lambda v, t: same(la.convert.to_piecewise(v), t),
    "to_integer": lambda v, t: same(la.convert.to_integer(v), t),
    "to_cute": lambda v, t: same(la.convert.to_cute(v), t),
    "equivalent": _proved,
}


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(base=ours.cute_layouts() | ours.composed_layouts(max_stages=2), inner=st.sampled_from(sorted(MAKERS)))
def test_what_an_operation_returns_every_other_takes(name: str, base: Any, inner: str) -> None:
    try:
        value = MAKERS[name](MAKERS[inner](base))
    except LayoutError:
        value = base
    if value.size == 0 or value.size > 4096:
        return
    table = value.table().tolist()
    for consumer, judge in CONSUMERS.items():
        try:
            judge(value, table)
        except (AdmissibilityError, RepresentabilityError, BudgetError) as error:
            assert "must be a" not in error.diagnostic.because, (consumer, str(value))
        except LayoutError as error:
            raise AssertionError((consumer, repr(value), str(error))) from error

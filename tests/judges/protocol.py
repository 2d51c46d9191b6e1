"""The laws that every layout obeys, whatever its family; each is a function that fails where a law is broken."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import layoutalg as la
from layoutalg import convert, cute, f2, hierarchy, integer, piecewise
from layoutalg.cute import CuteLayout
from layoutalg.ground.layout import Layout

from .families import called

Law = Callable[[Any], None]
NAMES: dict[str, Any] = {}
for module in (la, cute, f2, hierarchy, integer, piecewise):
    NAMES |= {name: getattr(module, name) for name in module.__all__}
BRIDGES = {
    "to_cute": convert.to_cute,
    "to_linear": convert.to_linear,
    "to_integer": convert.to_integer,
    "to_piecewise": convert.to_piecewise,
}


def packed(outputs: tuple[int, ...], out_dims: dict[str, int | None]) -> int:
    """The flat index of outputs in their codomain, first output fastest."""
    value, weight = 0, 1
    for output, extent in zip(outputs, out_dims.values(), strict=True):
        assert extent is not None
        assert 0 <= output < extent
        value, weight = value + output * weight, weight * extent
    return value


def values(layout: Any) -> list[Any]:
    """What ``at`` must return, by the call of the family."""
    out = [called(layout, index) for index in range(layout.size)]
    if len(layout.out_dims) == 1:
        return [value for (value,) in out]
    # moduli of an integer layout are no extents of a codomain that a user asked to be packed
    flat = all(extent for extent in layout.out_dims.values()) and not isinstance(layout, la.IntegerLayout)
    return [packed(outputs, layout.out_dims) for outputs in out] if flat else out


def listed(array: Any) -> list[Any]:
    """Values of an array: integers, or tuples along its last axis."""
    rows = np.asarray(array).tolist()
    return [tuple(row) if isinstance(row, list) else row for row in rows]


def box(layout: Any) -> None:
    """``in_dims`` multiply to ``size``; ``out_dims`` are extents, or None."""
    assert isinstance(layout, Layout)
    assert isinstance(layout.in_dims, dict)
    assert math.prod(layout.in_dims.values()) == layout.size
    assert all(isinstance(name, str) for name in (*layout.in_dims, *layout.out_dims))
    assert all(extent is None or extent >= 1 for extent in layout.out_dims.values())


def at(layout: Any) -> None:
    """``at`` is the call of the family at the point of a flat index."""
    found = [layout.at(index) for index in range(layout.size)]
    assert found == values(layout)
    assert all(type(part) is int for value in found for part in (value if isinstance(value, tuple) else (value,)))
    for outside in (-1, layout.size):
        with pytest.raises(la.LayoutError):
            layout.at(outside)


def table(layout: Any) -> None:
    """Row i of ``table()`` is ``at(i)``."""
    array = layout.table()
    assert isinstance(array, np.ndarray)
    assert array.shape[0] == layout.size
    assert listed(array) == values(layout)


def apply_array(layout: Any) -> None:
    """``apply`` of flat coordinates is the table at these, in their shape."""
    if not layout.size:
        return
    for coords in (np.arange(layout.size), np.arange(layout.size)[::-2], np.zeros((2, 3), dtype=np.int64)):
        assert np.array_equal(layout.apply(coords), layout.table()[coords])
    assert np.asarray(layout.apply(np.int64(0))).shape == layout.table()[0].shape


def apply_mapping(layout: Any) -> None:
    """``apply`` of a mapping axis -> coordinates is a mapping output -> values."""
    coords, rest = {}, np.arange(layout.size)
    for name, extent in layout.in_dims.items():
        coords[name], rest = rest % extent, rest // extent
    found = layout.apply(coords)
    assert list(found) == list(layout.out_dims)
    columns = [np.broadcast_to(column, (layout.size,)).tolist() for column in found.values()]
    assert [*zip(*columns, strict=True)] == [called(layout, index) for index in range(layout.size)] or not columns


def inverse(layout: Any) -> None:
    """``inverse`` undoes a layout whose values are 0, 1, ..., size - 1 on both sides, and refuses any other."""
    wanted = values(layout)
    extents = [extent for extent in layout.out_dims.values() if extent]
    if sorted(map(str, wanted)) == sorted(map(str, range(layout.size))) and math.prod(extents) in (1, layout.size):
        back = layout.inverse()
        found = [_flat(layout, back.at(index)) for index in range(layout.size)]
        assert [found[value] for value in wanted] == list(range(layout.size))
        assert [layout.at(index) for index in found] == list(range(layout.size))
    elif len(set(wanted)) < len(wanted):
        with pytest.raises(la.LayoutError):
            layout.inverse()


def _flat(layout: Any, point: int | tuple[int, ...]) -> int:
    """The flat index of a point that an inverse gives: itself, or coordinates where these have no extents there."""
    return packed(point, layout.in_dims) if isinstance(point, tuple) else point


def text(layout: Any) -> None:
    """``parse`` reads what ``str`` writes."""
    found = la.parse(str(layout))
    assert type(found) is type(layout)
    assert found == layout


def representation(layout: Any) -> None:
    """``eval`` of ``repr`` is the value."""
    assert eval(repr(layout), dict(NAMES)) == layout


def frozen(layout: Any) -> None:
    """A value cannot be changed; it is hashable and can be pickled and copied."""
    for other in (pickle.loads(pickle.dumps(layout)), copy.deepcopy(layout)):
        assert type(other) is type(layout)
        assert other == layout
        assert hash(other) == hash(layout)
    with pytest.raises((AttributeError, TypeError)):
        layout.size = 3
    assert layout != "a text"


def equivalent(layout: Any) -> None:
    """A layout is proved to be the same function as itself."""
    assert isinstance(la.equivalent(layout, layout), la.Proved)


def converted(layout: Any) -> None:
    """Every bridge gives the same function, or refuses for a reason that is not the type of the value."""
    for name, bridge in BRIDGES.items():
        try:
            found = bridge(layout)
        except la.LayoutError as error:
            several = len(layout.out_dims) > 1 and "must have one output" in (error.diagnostic.because or "")
            assert several or not isinstance(error, la.MalformedError), (name, error)
            continue
        assert listed(found.table()) == [_flattened(value) for value in values(layout)]
        assert isinstance(la.equivalent(layout, found), la.Proved)


def _flattened(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


def composed(layout: Any) -> None:
    """``@`` with another family names ``compose``, which gives the values one after the other with ``widen``."""
    if not layout.size:
        return
    other: Any = la.LinearLayout((("x", 1),), (("y", 1),), (1,))
    if isinstance(layout, la.LinearLayout):
        other = la.IntegerLayout.from_strides({"x": 2}, (1,))
    for call in (lambda: layout @ other, lambda: other.then(layout), lambda: la.compose(layout, other)):
        with pytest.raises(la.LayoutError, match=r"compose\(outer, inner, widen=True\)"):
            call()
    identity = CuteLayout(layout.size, 1)
    assert listed(la.compose(layout, identity, widen=True).table()) == values(layout)


def refuses_the_undefined(layout: Any) -> None:
    """Bridges to total families name a coordinate without a value; pieces stay pieces."""
    for name, bridge in BRIDGES.items():
        if isinstance(layout, la.PiecewiseLayout) and name == "to_piecewise":
            assert bridge(layout) == layout
            continue
        with pytest.raises(la.RepresentabilityError) as caught:
            bridge(layout)
        assert caught.value.diagnostic.code == "LA661"
        witness = caught.value.diagnostic.witness
        if isinstance(layout, la.HierarchicalLayout):
            assert witness is not None
            assert layout.table()[witness["coordinate"]] == -1


LAWS: dict[str, Law] = {
    "box": box,
    "at": at,
    "table": table,
    "apply array": apply_array,
    "apply mapping": apply_mapping,
    "inverse": inverse,
    "parse(str)": text,
    "eval(repr)": representation,
    "frozen": frozen,
    "equivalent": equivalent,
    "convert": converted,
    "compose": composed,
}
PARTIAL_LAWS: dict[str, Law] = {
    "parse(str)": text,
    "eval(repr)": representation,
    "frozen": frozen,
    "equivalent": equivalent,
    "convert": refuses_the_undefined,
}


def pair(operands: tuple[Any, Any]) -> None:
    """``(f @ g).at(i)`` is ``f.at(g.at(i))``, and ``then`` and ``compose`` are the same operation."""
    outer, inner = operands
    try:
        found = outer @ inner
    except (la.RepresentabilityError, la.BudgetError):
        found = None
    if found is not None:
        assert found == inner.then(outer)
        assert found == la.compose(outer, inner)
        assert found.size == inner.size
    wide = la.compose(outer, inner, widen=True)
    for value in [wide] if found is None else [found, wide]:
        for index in range(inner.size):
            middle = called(inner, index)
            wanted = outer.at(middle[0] if len(middle) == 1 else _meeting(outer, inner, middle))
            assert _flattened(value.at(index)) == wanted


def _meeting(outer: Any, inner: Any, outputs: tuple[int, ...]) -> int:
    """The flat coordinate of ``outer`` that outputs of ``inner`` are, by name where they have the same names."""
    by_name = dict(zip(inner.out_dims, outputs, strict=True))
    flat, weight = 0, 1
    for place, (name, extent) in enumerate(outer.in_dims.items()):
        flat, weight = flat + by_name.get(name, outputs[place]) * weight, weight * extent
    return flat

"""Sources of ``bridge_judges`` as values of the library, and the values of its answers read from their fields."""

from __future__ import annotations

import random
from typing import Any

import bridge_judges as judge
import numpy as np
from operations.record import WrongError
from operations.record import expect as require

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.f2 import LinearLayout
from layoutalg.hierarchy import Box, DigitMap, Guard, HierarchicalLayout, TableMap
from layoutalg.integer import IntegerLayout
from layoutalg.piecewise import PiecewiseLayout

SAMPLED = 6  # coordinates at which islpy itself reads a piecewise answer


def build(source: judge.Source) -> Any:
    """The library's value of a source."""
    family = source["family"]
    if family in ("cute", "composed", "stacked"):
        layout: Any = CuteLayout(source["shape"], source["stride"])
        for bits, base, shift, offset in reversed(source["stages"]):
            layout = ComposedLayout(Swizzle(bits, base, shift), offset, layout)
        return layout
    if family == "linear":
        axes = tuple((f"a{k}", bits) for k, bits in enumerate(source["axes"]))
        outs = tuple((f"o{k}", bits) for k, bits in enumerate(source["outs"]))
        return LinearLayout(axes, outs, tuple(source["columns"]), source["constant"])
    if family in ("integer", "outputs"):
        axes = tuple((f"k{k}", extent) for k, extent in enumerate(source["extents"]))
        outs = tuple((f"y{k}", modulus) for k, modulus in enumerate(source["moduli"]))
        return IntegerLayout(axes, outs, tuple(map(tuple, source["rows"])), tuple(source["offsets"]))
    if family in ("piecewise", "pieces"):
        return PiecewiseLayout(judge.piecewise_text(source), ("y",))
    guards = tuple(Guard(_map(guard), _box(box, "g"), tuple(bounds)) for guard, box, bounds in source.get("guards", ()))
    return HierarchicalLayout(_box(source["source"], "s"), _box(source["target"], "t"), _map(source), guards)


def _box(extents: list[int], name: str) -> Box:
    return Box(tuple((f"{name}{k}", extent) for k, extent in enumerate(extents)))


def _map(source: judge.Source) -> Any:
    if source["map"] == "bits":
        return DigitMap.from_bits(tuple(source["columns"]), source["constant"])
    if source["map"] == "table":
        return TableMap(tuple(source["entries"]))
    return DigitMap(tuple(map(tuple, source["modes"])), tuple(source.get("flips", ())))


def read(layout: Any) -> judge.Ints:
    """The values of a layout of the library, from its fields alone; a piecewise one is also read by islpy."""
    if isinstance(layout, PiecewiseLayout):
        return _read_piecewise(layout)
    source: judge.Source
    if isinstance(layout, CuteLayout | ComposedLayout):
        stages, base = [], layout
        while isinstance(base, ComposedLayout):
            stages.append((base.outer.bits, base.outer.base, base.outer.shift, base.offset))
            base = base.inner
        source = {"family": "cute", "shape": base.shape, "stride": base.stride, "stages": stages}
    elif isinstance(layout, LinearLayout):
        require(len(layout.columns) == sum(bits for _, bits in layout.in_axes), "columns and axes differ")
        width = sum(bits for _, bits in layout.out_axes)
        require(all(0 <= v < 1 << width for v in (*layout.columns, layout.constant)), "a column leaves the outputs")
        source = {"family": "linear", "columns": list(layout.columns), "constant": layout.constant}
    elif isinstance(layout, IntegerLayout):
        source = {
            "family": "outputs",
            "extents": [extent for _, extent in layout.inputs],
            "rows": [list(row) for row in layout.matrix],
            "moduli": [modulus for _, modulus in layout.outputs],
            "offsets": list(layout.offset),
        }
    else:
        raise WrongError(f"answer of an unknown kind {type(layout).__name__}")
    numbers = judge.values(source)
    require(np.array_equal(layout_table(layout), numbers), "table() differs")
    return numbers


def layout_table(layout: Any) -> judge.Ints:
    return np.asarray(layout.table(), dtype=np.int64)


def _read_piecewise(layout: PiecewiseLayout) -> judge.Ints:
    import islpy as isl

    numbers = layout_table(layout)
    function = isl.PwMultiAff.from_map(isl.Map(layout.text))
    rng = random.Random(len(numbers))
    for index in sorted({0, len(numbers) - 1, *(rng.randrange(len(numbers)) for _ in range(SAMPLED))}):
        point = isl.Point.zero(function.domain().get_space())
        rest = index
        for place, (_, extent) in enumerate(layout.inputs):
            rest, digit = divmod(rest, extent)
            point = point.set_coordinate_val(isl.dim_type.set, place, isl.Val(digit))
        got = [function.get_pw_aff(k).eval(point).to_python() for k in range(len(layout.out_dims))]
        require(got == numbers[index].reshape(-1).tolist(), f"islpy reads {got} at {index}")
    return numbers

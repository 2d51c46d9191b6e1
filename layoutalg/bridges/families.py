"""The table of families: one row per family, with its answers to what the bridges ask.

A new family is a row here: its name and what algebra knows of it. What a row leaves out is answered from the table of
values (``layoutalg.bridges.normal.Family``).
"""

from __future__ import annotations

from layoutalg import cute, f2, integer
from layoutalg.bridges.affine import form_of_pieces, form_of_residue, form_of_strided, strides_of
from layoutalg.bridges.normal import FAMILIES, Family, lower_digits, lower_integer, lower_piecewise
from layoutalg.bridges.piecewise import pieces_of_axes, pieces_of_bits, pieces_of_digits, pieces_of_strided
from layoutalg.bridges.tables import left_table, right_table
from layoutalg.cute import ComposedLayout, CoordinateLayout, CuteLayout, Morphism, Swizzle
from layoutalg.f2 import LinearLayout
from layoutalg.ground.listed import ListedLayout
from layoutalg.hierarchy import HierarchicalLayout
from layoutalg.integer import IntegerLayout
from layoutalg.piecewise import PiecewiseLayout


def _one_period(swizzle: Swizzle) -> ComposedLayout:
    """Return a swizzle on one period, beyond which it repeats; byte-address swizzles are rejected (LA112)."""
    return ComposedLayout(swizzle, 0, CuteLayout(swizzle.period, 1))


def _outputs_of_leaves(layout: CoordinateLayout) -> IntegerLayout:
    """Return an integer layout on the leaves of the shape with one output per leaf of the value."""
    inputs = tuple((f"c{place}", extent) for place, (extent, _) in enumerate(layout.flat))
    rows = tuple(tuple(stride for _, stride in part.flat) for _, part in layout.components)
    return IntegerLayout(inputs, tuple((name, 0) for name in layout.out_dims), rows, (0,) * len(rows))


def _digits_and_guards(layout: HierarchicalLayout) -> dict[str, object]:
    return {"map": layout.map, "guards": layout.guards} if layout.guards else {"map": layout.map}


CUTE = {"right_inverse": cute.right_inverse, "left_inverse": cute.left_inverse}
FAMILIES.update(
    {
        CuteLayout: Family(
            "cute",
            form=form_of_strided,
            strides=strides_of,
            pieces=pieces_of_strided,
            inverses=CUTE,
            algebra="cute",
            swizzled=True,
        ),
        ComposedLayout: Family(
            "composed",
            form=form_of_strided,
            strides=strides_of,
            pieces=pieces_of_strided,
            inverses=CUTE,
            by_points="the swizzles do not collapse by algebra",
            algebra="cute",
            swizzled=True,
        ),
        LinearLayout: Family(
            "linear",
            form=lambda layout: (layout.columns, layout.constant),
            pieces=pieces_of_bits,
            inverses={"right_inverse": f2.right_inverse, "left_inverse": f2.left_inverse},
            by_name=True,
        ),
        PiecewiseLayout: Family(
            "piecewise",
            lower=lower_piecewise,
            form=form_of_pieces,
            pieces=lambda layout: layout,
            inverses={"right_inverse": PiecewiseLayout.right_inverse},
            by_points="several pieces and floors are compared point by point",
            formless="piecewise layout",
            named_outputs=True,
        ),
        IntegerLayout: Family(
            "integer",
            lower=lower_integer,
            form=form_of_residue,
            strides=lambda layout: layout,
            pieces=pieces_of_axes,
            inverses={"right_inverse": integer.right_inverse},
            by_name=True,
            named_outputs=True,
        ),
        HierarchicalLayout: Family(
            "hierarchical",
            lower=lower_digits,
            pieces=pieces_of_digits,
            key=_digits_and_guards,
            by_points="digits with mixed bits are compared point by point",
            by_name=True,
        ),
        ListedLayout: Family(
            "table", inverses={"right_inverse": right_table, "left_inverse": left_table}, formless="table"
        ),
        Swizzle: Family("swizzle", _one_period, algebra="cute"),
        CoordinateLayout: Family("coordinate", _outputs_of_leaves),
        Morphism: Family("morphism", Morphism.to_layout),
    }
)

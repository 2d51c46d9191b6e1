"""What the conversions take, and the refusals they share.

Main definitions: ``AnyLayout``, ``AnyFamily``, ``Given``, ``LinearForm``, ``CONFIRM_POINTS``, ``OFFSET_BITS``,
``checked``, ``plain``, ``flat_index``, ``one_output``, ``malformed``, ``undecided``.
"""

from __future__ import annotations

from typing import TypeAlias

from layoutalg.cute import ComposedLayout, CoordinateLayout, CuteLayout, Morphism, Swizzle
from layoutalg.cute.inttuple import integer
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import BudgetError, Diagnostic, MalformedError, RepresentabilityError, shown
from layoutalg.hierarchy import HierarchicalLayout
from layoutalg.integer import IntegerLayout
from layoutalg.piecewise import PiecewiseLayout

AnyLayout: TypeAlias = "CuteLayout | ComposedLayout | LinearLayout | PiecewiseLayout"
AnyFamily: TypeAlias = "AnyLayout | IntegerLayout | HierarchicalLayout"
Given: TypeAlias = "AnyFamily | CoordinateLayout | Morphism | Swizzle"
LinearForm: TypeAlias = tuple[tuple[int, ...], int]

CONFIRM_POINTS = 2**20
OFFSET_BITS = 62


FAMILIES = (CuteLayout, ComposedLayout, LinearLayout, PiecewiseLayout, IntegerLayout, HierarchicalLayout)
ONE_OF = ", ".join(kind.__name__ for kind in FAMILIES[:-1]) + f" or {FAMILIES[-1].__name__}"


def plain(layout: object) -> object:
    """Return any other layout in the family that holds it: {source: normal form}; every other value as it is.

    A morphism is its CuTe layout. A layout of coordinates is an integer layout with one output per leaf of the value. A
    swizzle is read on one period, beyond which it repeats.

    Raises: AdmissibilityError: LA112. RepresentabilityError: LA237.

    Example:
        >>> print(plain(Swizzle(1, 0, 1)))
        Sw<1,0,1> o 0 o 4:1
    """
    match layout:
        case Morphism():
            return layout.to_layout()
        case CoordinateLayout():
            return _from_coordinates(layout)
        case Swizzle():
            return ComposedLayout(layout, 0, CuteLayout(layout.period, 1))
        case _ if type(layout).__name__ == "SymbolicLayout":
            raise RepresentabilityError(
                Diagnostic(
                    code="LA237",
                    what="the sizes of this layout are symbolic",
                    where=(str(layout),),
                    because="another family has numbers for them; .subs(sizes) gives these",
                )
            )
    return layout


def _from_coordinates(layout: CoordinateLayout) -> IntegerLayout:
    """Return one output per leaf of the value, on the leaves of the shape."""
    inputs = tuple((f"c{place}", extent) for place, (extent, _) in enumerate(layout.flat))
    parts = layout.components
    outputs = tuple(("E" + "_".join(map(str, path)), 0) for path, _ in parts)
    rows = tuple(tuple(stride for _, stride in part.flat) for _, part in parts)
    return IntegerLayout(inputs, outputs, rows, (0,) * len(parts))


def checked(layout: object, where: str) -> AnyFamily:
    """Return a value that is a layout, a tile behind an offset as a composed one, or refuse it (LA234)."""
    found = plain(layout)
    if not isinstance(found, FAMILIES):
        raise malformed(where[:80], f"must be a {ONE_OF}", layout)
    return found


def flat_index(index: object, size: int) -> int:
    """Return a flat coordinate, or refuse it (LA234)."""
    number = integer(index, "index", "LA234")
    if not 0 <= number < size:
        raise malformed("index", f"must be in [0, {size})", number)
    return number


def one_output(layout: AnyFamily, where: str) -> None:
    """Refuse a piecewise or integer layout with several outputs or none (LA234); the others have one, flat, output."""
    if isinstance(layout, PiecewiseLayout | IntegerLayout) and len(layout.out_dims) != 1:
        raise malformed(where[:80], "must have one output", list(layout.out_dims))


def malformed(argument: str, rule: str, actual: object) -> MalformedError:
    """Return the refusal of an argument (LA234)."""
    return MalformedError(
        Diagnostic(
            code="LA234",
            what="this cannot be converted",
            where=(argument,),
            because=f"{rule}, not {shown(actual)}",
        )
    )


def undecided(layout: AnyFamily, because: str) -> BudgetError:
    """Return the refusal of a question that was not decided (LA233)."""
    return BudgetError(
        Diagnostic(
            code="LA233",
            what="whether the layout has this form was not decided",
            where=(str(layout)[:200],),
            because=f"{because}; {layout.size} points, the limit is {CONFIRM_POINTS}",
            witness={"size": layout.size},
        )
    )

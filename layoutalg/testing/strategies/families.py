"""Strategies for layouts of any family, their tables and their texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import assume
from hypothesis import strategies as st

from layoutalg.ground.errors import LayoutError
from layoutalg.ground.layout import Layout
from layoutalg.hierarchy import TableMap
from layoutalg.notation.write import to_text
from layoutalg.testing.strategies.arguments import checked, several
from layoutalg.testing.strategies.hierarchy import hierarchical_layouts, swapped
from layoutalg.testing.strategies.maps import integer_layouts, linear_layouts, morphisms, piecewise_layouts
from layoutalg.testing.strategies.strided import composed_layouts, coordinate_layouts, cute_layouts

_ANY: dict[str, Callable[[], st.SearchStrategy[Any]]] = {
    "cute": cute_layouts,
    "composed": lambda: composed_layouts(max_stages=2),
    "coordinate": coordinate_layouts,
    "morphism": morphisms,
    "linear": linear_layouts,
    "integer": integer_layouts,
    "piecewise": piecewise_layouts,
    "hierarchical": hierarchical_layouts,
}
_BIJECTIVE: dict[str, Callable[[], st.SearchStrategy[Any]]] = {
    "cute": lambda: cute_layouts(bijective=True),
    "composed": lambda: composed_layouts(max_stages=2, bijective=True),
    "morphism": lambda: morphisms(bijective=True),
    "linear": lambda: linear_layouts(invertible=True),
    "integer": lambda: integer_layouts(bijective=True),
    "hierarchical": hierarchical_layouts,
}
FAMILIES = tuple(_ANY)
"""Names of the families, in shrinking order."""
NOTATIONS = ("own", "cute_cpp", "cute_type", "cute_dsl", "ttg", "gluon", "isl")
"""Names of the notations: the library's own, and those of ``to_text``."""
_THREADS = {"register": 4, "lane": 32, "warp": 2, "block": 1}


@checked()
def layouts(
    families: str | Iterable[str] = FAMILIES, *, bijective: bool = False, max_size: int | None = None
) -> st.SearchStrategy[Layout]:
    """Total layouts of any family.

    Args:
        families: Names of the families to draw from, or one name.
        bijective: Only layouts whose values are 0, 1, ..., size - 1, each once; not for ``"coordinate"`` and
            ``"piecewise"``, which are left out.
        max_size: Largest number of points; None for what each family draws.
    """
    known = _BIJECTIVE if bijective else _ANY
    chosen = several(families, "families", FAMILIES)
    kept = several([name for name in chosen if name in known], "families", tuple(known))
    drawn: st.SearchStrategy[Layout] = st.one_of([known[name]() for name in kept])
    if max_size is None:
        return drawn
    return drawn.filter(lambda layout: layout.size <= max_size)


@checked()
def tables(
    of: st.SearchStrategy[Layout] | None = None, *, max_size: int = 16, bijective: bool = False
) -> st.SearchStrategy[npt.NDArray[np.int64]]:
    """One-dimensional tables of values: those of drawn layouts, or arbitrary integers.

    Args:
        of: The layouts to tabulate; None for arbitrary integers from -8 to 64.
        max_size: Most entries of an arbitrary table.
        bijective: Only permutations of 0, 1, ..., size - 1; not together with ``of``.
    """
    if of is not None:
        return of.map(lambda layout: layout.table())
    found = _permutations(max_size) if bijective else st.lists(st.integers(-8, 64), min_size=1, max_size=max_size)
    return found.map(lambda values: np.array(values, dtype=np.int64))


@st.composite
def _permutations(draw: st.DrawFn, max_size: int) -> list[int]:
    return list(swapped(draw, draw(st.integers(1, max_size))))


def values_and_texts(notations: str | Iterable[str] = NOTATIONS) -> st.SearchStrategy[tuple[Any, str]]:
    """A layout and its text in one of the notations; ``layoutalg.parse`` reads the text as the same function.

    Args:
        notations: Names from ``NOTATIONS``, or one name.
    """
    return _values_and_texts(several(notations, "notations", NOTATIONS))


def texts(notations: str | Iterable[str] = NOTATIONS) -> st.SearchStrategy[str]:
    """Texts of layouts in any notation that ``layoutalg.parse`` reads; ``notations`` as for ``values_and_texts``."""
    return values_and_texts(notations).map(lambda drawn: drawn[1])


@st.composite
def _values_and_texts(draw: st.DrawFn, notations: tuple[str, ...]) -> tuple[Any, str]:
    form = draw(st.sampled_from(notations))
    value: Layout
    if form in ("ttg", "gluon"):
        value = draw(linear_layouts(inputs=_THREADS, outputs={"dim0": 16, "dim1": 16}, affine=False, invertible=True))
    elif form == "isl":
        value = draw(layouts(("cute", "composed", "linear", "integer", "piecewise")))
    elif form == "own":
        value = draw(layouts(max_size=64))
        assume(not isinstance(getattr(value, "map", None), TableMap))  # long tables are abbreviated in text
    else:
        value = draw(layouts(("cute", "composed", "coordinate")))
    try:
        return value, str(value) if form == "own" else to_text(value, form)
    except LayoutError:  # not expressible in this notation
        assume(False)
        raise

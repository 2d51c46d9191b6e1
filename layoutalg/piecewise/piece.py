"""The pieces of a function as plain numbers, read once through ISL and compared with the text.

Main definitions: ``pieces``, ``Piece``, ``Region``, ``Form``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from layoutalg.ground import limits
from layoutalg.ground.cache import kept
from layoutalg.piecewise import confirm
from layoutalg.piecewise.budget import solve
from layoutalg.piecewise.clouds import Cloud
from layoutalg.piecewise.confirm import judged

if TYPE_CHECKING:
    import islpy


@dataclass(frozen=True, slots=True)
class Form:
    """The number ``(sum of dims[i] x_i + sum of floors[j] q_j + constant) / denominator``."""

    dims: tuple[int, ...]
    floors: tuple[int, ...]
    constant: int
    denominator: int = 1


@dataclass(frozen=True, slots=True)
class Region:
    """A conjunction of constraints; ``floors[j]`` defines ``q_j`` as a rounded-down form over the dims and earlier q.

    Args:
        floors: Definitions of the floors.
        constraints: Pairs (form, is it an equality); a form is zero, or non-negative.
    """

    floors: tuple[Form, ...]
    constraints: tuple[tuple[Form, bool], ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of a function: where it applies (any of the regions) and, per output, its floors and its value."""

    regions: tuple[Region, ...]
    outputs: tuple[tuple[tuple[Form, ...], Form], ...]


@kept(limits.ISL_CACHE_BYTES)
def pieces(text: str) -> tuple[Piece, ...]:
    """Return the pieces of a canonical function text as plain numbers.

    Raises: BudgetError: LA222, LA793, LA794.

    Example:
        >>> floors, value = pieces("{ [x] -> [(floor((x)/2))] : 0 <= x <= 3 }")[0].outputs[0]
        >>> floors, value.floors
        ((Form(dims=(1,), floors=(), constant=0, denominator=2),), (1,))
    """
    from layoutalg.piecewise import evaluate

    found = solve(text, _pieces, None, text)

    def wanted(cloud: Cloud) -> confirm.Values:
        high = [int(np.abs(place).max()) + 1 if place.size else 1 for place in cloud.places]
        kind = object if evaluate.reach(found, high) >= evaluate.SAFE else np.int64
        shape = cloud.shape
        places = [place.astype(kind) for place in cloud.places]
        width = len(found[0].outputs) if found else 0
        return evaluate.evaluate(found, places, shape, width, kind)

    judged(text, lambda: confirm.function_like(text, wanted, []))
    return found


def _pieces(context: islpy.Context, text: str) -> tuple[Piece, ...]:
    import islpy

    function = islpy.PwMultiAff.read_from_str(context, text)
    found: list[tuple[Any, Any]] = []
    function.foreach_piece(lambda domain, value: found.append((domain, value)))
    return tuple(
        Piece(
            tuple(_region(part) for part in domain.compute_divs().get_basic_sets()),
            tuple(_output(value.get_at(i)) for i in range(value.dim(islpy.dim_type.out))),
        )
        for domain, value in found
    )


def _affine(aff: Any, floor_count: int) -> Form:
    """Return an ISL affine expression as numbers; it may mention the first ``floor_count`` floors."""
    import islpy

    kinds = islpy.dim_type
    denominator = int(aff.get_denominator_val().to_python())
    scale = islpy.Val.read_from_str(aff.get_ctx(), str(denominator))

    def number(value: Any) -> int:
        return int(value.mul(scale).to_python())

    return Form(
        tuple(number(aff.get_coefficient_val(kinds.in_, i)) for i in range(aff.dim(kinds.in_))),
        tuple(number(aff.get_coefficient_val(kinds.div, i)) for i in range(floor_count)),
        number(aff.get_constant_val()),
        denominator,
    )


def _output(aff: Any) -> tuple[tuple[Form, ...], Form]:
    import islpy

    count = aff.dim(islpy.dim_type.div)
    floors = tuple(_affine(aff.get_div(i), i) for i in range(count))
    return floors, _affine(aff, count)


def _region(part: Any) -> Region:
    import islpy

    kinds = islpy.dim_type
    count = part.dim(kinds.div)
    floors = tuple(_affine(part.get_div(i), i) for i in range(count))
    listed = part.get_constraint_list()
    constraints = []
    for index in range(listed.n_constraint()):
        constraint = listed.get_at(index)
        constraints.append((_affine(constraint.get_aff(), count), bool(constraint.is_equality())))
    return Region(floors, tuple(constraints))

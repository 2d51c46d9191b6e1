"""The pieces of a function as plain numbers, extracted once by ISL and checked; evaluated with numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from layoutalg.ground import limits
from layoutalg.ground.cache import kept
from layoutalg.ground.lazy import later
from layoutalg.piecewise import confirm
from layoutalg.piecewise.budget import solve
from layoutalg.piecewise.clouds import Cloud
from layoutalg.piecewise.confirm import judged

if TYPE_CHECKING:
    import islpy
else:
    islpy = later("islpy")

SAFE = 2**62


@dataclass(frozen=True, slots=True)
class Form:
    """The number ``(sum of dims[i] x_i + sum of floors[j] q_j + constant) / denominator``."""

    dims: tuple[int, ...]
    floors: tuple[int, ...]
    constant: int
    denominator: int = 1


@dataclass(frozen=True, slots=True)
class Region:
    """A conjunction of constraints.

    Args:
        floors: ``floors[j]`` defines ``q_j`` as a rounded-down form in the dims and earlier q.
        constraints: Pairs (form, is_equality): form = 0 or form >= 0.
    """

    floors: tuple[Form, ...]
    constraints: tuple[tuple[Form, bool], ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of a function: the regions where it applies and, per output, its floors and value."""

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
    found = solve(text, _pieces, None, text)

    def wanted(cloud: Cloud) -> confirm.Values:
        high = [int(np.abs(place).max()) + 1 if place.size else 1 for place in cloud.places]
        kind = object if reach(found, high) >= SAFE else np.int64
        shape = cloud.shape
        places = [place.astype(kind) for place in cloud.places]
        width = len(found[0].outputs) if found else 0
        return evaluate(found, places, shape, width, kind)

    judged(text, lambda: confirm.function_like(text, wanted, []))
    return found


def _pieces(context: islpy.Context, text: str) -> tuple[Piece, ...]:
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
    """Return an ISL affine expression as numbers; it may use the first ``floor_count`` floors."""
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
    count = aff.dim(islpy.dim_type.div)
    floors = tuple(_affine(aff.get_div(i), i) for i in range(count))
    return floors, _affine(aff, count)


def _region(part: Any) -> Region:
    kinds = islpy.dim_type
    count = part.dim(kinds.div)
    floors = tuple(_affine(part.get_div(i), i) for i in range(count))
    listed = part.get_constraint_list()
    constraints = []
    for index in range(listed.n_constraint()):
        constraint = listed.get_at(index)
        constraints.append((_affine(constraint.get_aff(), count), bool(constraint.is_equality())))
    return Region(floors, tuple(constraints))


def evaluate(
    pieces: Sequence[Piece],
    digits: Sequence[npt.NDArray[np.int64]],
    shape: tuple[int, ...],
    outputs: int,
    dtype: npt.DTypeLike,
    everywhere: bool = False,
) -> tuple[list[npt.NDArray[np.int64]], npt.NDArray[np.bool_]]:
    """Return the outputs (0 where no piece applies) and where some piece applies.

    Args:
        pieces: Disjoint pieces.
        digits: One array per input, all of ``shape`` and ``dtype``.
        shape: The common shape.
        outputs: Number of outputs.
        dtype: int64, or object if 64 bits would overflow.
        everywhere: Whether some piece is known to apply at every point; the guard of a single piece is then skipped.
    """
    if everywhere and len(pieces) == 1:
        values = [
            form_value(value, digits, floor_values(floors, digits, shape, dtype), shape, dtype)
            for floors, value in pieces[0].outputs
        ]
        return values, np.ones(shape, dtype=bool)
    answers = [np.zeros(shape, dtype=dtype) for _ in range(outputs)]
    covered = np.zeros(shape, dtype=bool)
    for piece in pieces:
        inside = np.zeros(shape, dtype=bool)
        for region in piece.regions:
            inside |= holds(region, digits, shape, dtype)
        covered |= inside
        for answer, (floors, value) in zip(answers, piece.outputs, strict=True):
            found = form_value(value, digits, floor_values(floors, digits, shape, dtype), shape, dtype)
            answer[...] = np.where(inside, found, answer)
    return answers, covered


def floor_values(
    floors: Sequence[Form], digits: Sequence[npt.NDArray[np.int64]], shape: tuple[int, ...], dtype: npt.DTypeLike
) -> list[npt.NDArray[np.int64]]:
    """Return the values of the floors, each of which may use earlier ones."""
    known: list[npt.NDArray[np.int64]] = []
    for form in floors:
        known.append(form_value(form, digits, known, shape, dtype))
    return known


def form_value(
    form: Form,
    digits: Sequence[npt.NDArray[np.int64]],
    floors: Sequence[npt.NDArray[np.int64]],
    shape: tuple[int, ...],
    dtype: npt.DTypeLike,
) -> npt.NDArray[np.int64]:
    """Return the rounded-down value of a form."""
    total = np.full(shape, form.constant, dtype=dtype)
    for coefficient, value in (*zip(form.dims, digits, strict=True), *zip(form.floors, floors, strict=False)):
        if coefficient:
            total = total + coefficient * value
    return total // form.denominator if form.denominator != 1 else total


def holds(
    region: Region, digits: Sequence[npt.NDArray[np.int64]], shape: tuple[int, ...], dtype: npt.DTypeLike
) -> npt.NDArray[np.bool_]:
    """Return where a conjunction is true."""
    floors = floor_values(region.floors, digits, shape, dtype)
    inside = np.ones(shape, dtype=bool)
    for form, is_equality in region.constraints:
        value = form_value(form, digits, floors, shape, dtype)
        inside &= np.asarray(value == 0 if is_equality else value >= 0, dtype=bool)
    return inside


def reach(pieces: Sequence[Piece], extents: Sequence[int]) -> int:
    """Return a bound on the magnitude of every intermediate number, to decide whether 64-bit arithmetic is safe.

    Args:
        pieces: The pieces.
        extents: Input k has a magnitude below ``extents[k]``.
    """
    worst = 0

    def bound(form: Form, floors: Sequence[int]) -> int:
        nonlocal worst
        parts = [abs(a) * max(n - 1, 0) for a, n in zip(form.dims, extents, strict=True)]
        parts += [abs(a) * q for a, q in zip(form.floors, floors, strict=False)]
        total = abs(form.constant) + sum(parts)
        worst = max(worst, total, *(abs(a) for a in (form.denominator, *form.dims, *form.floors)))
        return total // form.denominator + 1

    for piece in pieces:
        groups = [(region.floors, [form for form, _ in region.constraints]) for region in piece.regions]
        groups += [(floors, [value]) for floors, value in piece.outputs]
        for floors, forms in groups:
            known: list[int] = []
            for form in floors:
                known.append(bound(form, known))
            for form in forms:
                bound(form, known)
    return worst

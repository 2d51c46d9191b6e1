"""Linear layouts: composition, sums, quotients, inverses, equations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from layoutalg import f2
from layoutalg.f2 import LinearLayout
from layoutalg.f2.axes import AxisBits
from layoutalg.f2.layout import trusted
from layoutalg.ground.errors import AdmissibilityError
from layoutalg.proofs.laws.engines import bit_vectors, by, enumerated
from layoutalg.proofs.laws.f2_matrix import columns, matrices
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.solvers import BITWUZLA
from layoutalg.proofs.laws.term import every
from layoutalg.proofs.laws.trial import Trial

Maps = Callable[..., Any]
_XY: AxisBits = (("x", 1), ("y", 1))
_YX: AxisBits = (("y", 1), ("x", 1))


def any_layout(trial: Trial, inputs: AxisBits, outputs: AxisBits, name: str = "c") -> LinearLayout:
    """Return a layout with any columns and any constant."""
    bits, rows = sum(count for _, count in inputs), sum(count for _, count in outputs)
    *found, constant = columns(trial, bits + 1, rows, name)
    return trusted(inputs, outputs, tuple(found), constant)


def every_layout(inputs: AxisBits, outputs: AxisBits, affine: bool = True) -> Iterator[LinearLayout]:
    """Return all layouts between these axes, all constants or 0."""
    bits, rows = sum(count for _, count in inputs), sum(count for _, count in outputs)
    constants = range(1 << rows) if affine else (0,)
    for found, constant in product(matrices(bits, rows), constants):
        yield LinearLayout(inputs, outputs, found, constant)


def _after(outer: LinearLayout, inner: LinearLayout) -> Any:
    return outer @ inner


def _by_position(outer: LinearLayout, inner: LinearLayout) -> Any:
    """Match axes by their place instead of by their name."""
    return outer @ trusted(inner.in_axes, outer.in_axes, inner.columns, inner.constant)


def _composition(trial: Trial, after: Maps = _after) -> None:
    A = any_layout(trial, _XY, (("o", 16),))
    same = []
    for B in every_layout((("i", 2),), _YX):
        both = after(A, B)
        same += [both(i=i)["o"] == A.apply(B(i=i))["o"] for i in range(4)]
    trial.claim(every(*same), "(A @ B)(i) = A(B(i))")


def _associative(trial: Trial, wrong: bool = False) -> None:
    A = any_layout(trial, _XY, (("o", 16),))
    same = []
    for B, C in product(every_layout(_YX, _XY, False), every_layout((("i", 1),), _XY)):
        B = trusted(B.in_axes, B.out_axes, B.columns, 1)
        one, two = (A @ B) @ C, A @ (C @ B if wrong and C.in_axes == B.out_axes else B @ C)
        one = trusted(one.in_axes, one.out_axes, one.columns, A.constant) if wrong else one
        same += [one(i=i)["o"] == two(i=i)["o"] for i in range(2)]
    trial.claim(every(*same), "(A @ B) @ C = A @ (B @ C)")


def _direct_sum(trial: Trial, swapped: bool = False) -> None:
    A = any_layout(trial, (("i", 1),), (("o", 2),), "a")
    B = any_layout(trial, (("i", 1),), (("o", 2),), "b")
    both = B * A if swapped else A * B
    same = [both(i=x + 2 * y)["o"] == A(i=x)["o"] + 4 * B(i=y)["o"] for x in range(2) for y in range(2)]
    trial.claim(every(*same), "(A * B)(x + 2 y) = A(x) + 4 B(y)")


def _sum_of_three(trial: Trial, wrong: bool = False) -> None:
    A, B, C = (LinearLayout((("i", 1),), (("o", 2),), (k,), k ^ 3) for k in (1, 2, 3))
    D = any_layout(trial, (("i", 1),), (("o", 1),))
    one, two = (A * B) * (C * D), A * ((B * D) * C if wrong else B * (C * D))
    trial.claim(equal(one, two), "(A * B) * C = A * (B * C)")
    trial.claim(every(equal(D * f2.empty(), D), equal(f2.empty() * D, D)), "the empty layout is the unit")


def equal(one: LinearLayout, two: LinearLayout) -> Any:
    if (one.in_axes, one.out_axes) != (two.in_axes, two.out_axes):
        return False
    pairs = zip((*one.columns, one.constant), (*two.columns, two.constant), strict=True)
    return every(*[a == b for a, b in pairs])


def _divided(trial: Trial, divide: Maps = f2.divide_left) -> None:
    B = any_layout(trial, (("i", 1),), (("o", 1),), "b")
    C = any_layout(trial, (("i", 2),), (("o", 1),), "c")
    trial.claim(equal(divide(B * C, B), C), "divide_left(B * C, B) = C")
    trial.claim(equal(f2.divide_right(B * C, C), B), "divide_right(B * C, C) = B")


def _high_bits(layout: LinearLayout, tile: LinearLayout) -> LinearLayout:
    """Drop the bits of the tile from the top."""
    found = f2.divide_left(layout, tile)
    shifted = [column & (1 << found.out_bits) - 1 for column in layout.columns[: found.in_bits]]
    return trusted(found.in_axes, found.out_axes, tuple(shifted), found.constant)


def _quotients(layout: LinearLayout, divide: Maps = f2.divide_left) -> str | None:
    """Where a quotient exists it gives the layout back; where it is refused no layout does."""
    for tile in every_layout((("i", 1),), (("o", 1),)):
        wanted = [C for C in every_layout((("i", 1),), (("o", 1),)) if tile * C == layout]
        try:
            found = [divide(layout, tile)]
        except AdmissibilityError:
            found = []
        if found != wanted:
            return f"divided by {tile}"
    return None


def _columns_alone(layout: LinearLayout, tile: LinearLayout) -> LinearLayout:
    """Do not look at the affine part."""
    parts = [trusted(each.in_axes, each.out_axes, each.columns, 0) for each in (layout, tile)]
    return f2.divide_left(*parts)


_IN, _OUT = (("i", 2),), (("o", 3),)


def _one_sided(layout: LinearLayout, left: Maps = f2.left_inverse) -> str | None:
    values = layout.table().tolist()
    injective, surjective = len(set(values)) == len(values), len(set(values)) == 1 << layout.out_bits
    for exists, find, order in ((injective, left, 0), (surjective, f2.right_inverse, 1)):
        try:
            found = find(layout)
        except AdmissibilityError:
            if exists:
                return "a one-sided inverse is refused"
            continue
        both = (found @ layout, layout @ found)[order]
        if not exists or both.table().tolist() != list(range(both.size)):
            return "not a one-sided inverse"
    return None


def _without_constant(layout: LinearLayout) -> LinearLayout:
    """Invert the linear part and forget the affine one."""
    found = f2.left_inverse(layout)
    return trusted(found.in_axes, found.out_axes, found.columns, 0)


def _one_sided_cases() -> Iterator[LinearLayout]:
    yield from every_layout((("i", 2),), (("o", 3),))
    yield from every_layout((("i", 3),), (("o", 2),))


def _equation(pair: tuple[LinearLayout, LinearLayout], solve: Maps = f2.solve) -> str | None:
    """The solutions of A @ C = B are all layouts C for which it holds."""
    A, B = pair
    inputs, outputs = B.in_axes, A.in_axes
    wanted = {C for C in every_layout(inputs, outputs) if (A @ C).table().tolist() == B.table().tolist()}
    try:
        found = solve(A, B)
    except AdmissibilityError:
        return "solvable, and refused" if wanted else None
    claimed = {C for C in every_layout(inputs, outputs) if found.contains(C)}
    if claimed != wanted:
        return f"{len(claimed)} solutions are said to be {len(wanted)}"
    least = min(wanted, key=lambda C: (C.columns[::-1], C.constant))
    if found.choose() != least or 1 << found.freedom != len(wanted):
        return "the smallest"
    return None if f2.invert_and_compose(B, A) == least else "invert_and_compose"


def _unique(A: LinearLayout, B: LinearLayout) -> Any:
    """Return one solution as if it were the only one."""
    return f2.SolutionSet(f2.solve(A, B).particular, ())


def _equation_cases() -> Iterator[tuple[LinearLayout, LinearLayout]]:
    return product(every_layout((("x", 2),), (("o", 2),)), every_layout((("i", 1),), (("o", 2),)))


def _outer(pair: tuple[LinearLayout, LinearLayout], solve: Maps = f2.solve_outer) -> str | None:
    A, B = pair
    exists = any((X @ A).table().tolist() == B.table().tolist() for X in every_layout((("o", 2),), (("y", 1),)))
    try:
        X = solve(A, B)
    except AdmissibilityError:
        return "solvable, and refused" if exists else None
    return None if (X @ A) == B else "not a solution"


def _linear_outer(A: LinearLayout, B: LinearLayout) -> LinearLayout:
    """Solve for the linear parts and keep the constant of the target."""
    X = f2.solve_outer(A, B)
    return trusted(X.in_axes, X.out_axes, X.columns, B.constant)


def _outer_cases() -> Iterator[tuple[LinearLayout, LinearLayout]]:
    return product(every_layout((("i", 2),), (("o", 2),)), every_layout((("i", 2),), (("y", 1),)))


_F2 = "layoutalg.f2."
_LAYOUT = "layoutalg.f2.LinearLayout."

LAWS = (
    Law(
        "linear.composition",
        "(A @ B)(i) = A(B(i)), the axes between them matched by name.",
        (f"{_LAYOUT}__matmul__",),
        bit_vectors(
            _composition,
            partial(_composition, after=_by_position),
            "any affine A from two 1-bit axes to 16 bits, all affine B of 2 bits onto these axes in the other order",
        ),
    ),
    Law(
        "linear.associative",
        "(A @ B) @ C = A @ (B @ C), affine parts included.",
        (f"{_LAYOUT}__matmul__",),
        bit_vectors(
            _associative,
            partial(_associative, wrong=True),
            "any affine A from 2 bits to 16 bits, all matrices of B, all C of one bit",
        ),
    ),
    Law(
        "linear.direct_sum",
        "(A * B)(x + m y) = A(x) + n B(y) with m and n the sizes of A's axes.",
        (f"{_F2}direct_sum", f"{_LAYOUT}__mul__"),
        bit_vectors(_direct_sum, partial(_direct_sum, swapped=True), "any affine A and B of 1 bit to 2 bits"),
    ),
    Law(
        "linear.sum_associative",
        "The direct sum is associative with unit empty(); it does not commute.",
        (f"{_F2}direct_sum", f"{_F2}empty"),
        bit_vectors(_sum_of_three, partial(_sum_of_three, wrong=True), "any affine last factor of 1 bit"),
    ),
    Law(
        "linear.division",
        "divide_left(B * C, B) = C and divide_right(B * C, C) = B; a quotient is refused exactly where there is none.",
        (f"{_F2}divide_left", f"{_F2}divide_right"),
        (
            *by(BITWUZLA, _divided, partial(_divided, divide=_high_bits), "any affine B of 1 and C of 2 bits to 1 bit"),
            *enumerated(
                lambda: every_layout((("i", 2),), (("o", 2),)),
                _quotients,
                partial(_quotients, divide=_columns_alone),
                "all affine layouts of 2 bits by all tiles of 1 bit",
                64,
            ),
        ),
    ),
    Law(
        "linear.one_sided",
        "left_inverse(L) @ L = 1 and L @ right_inverse(L) = 1, refused exactly where L is not injective (surjective).",
        (f"{_F2}left_inverse", f"{_F2}right_inverse"),
        enumerated(
            _one_sided_cases,
            _one_sided,
            partial(_one_sided, left=_without_constant),
            "all affine layouts of 2 bits to 3 bits and back",
            768,
        ),
        why_bounded="They rest on the elimination of `f2.elimination`, whose symbols branch at every pivot.",
    ),
    Law(
        "linear.equation",
        "solve(A, B) is the set of all C with A @ C = B, and choose() and invert_and_compose(B, A) its smallest.",
        (f"{_F2}solve", f"{_F2}invert_and_compose", f"{_F2}SolutionSet.contains", f"{_F2}SolutionSet.choose"),
        enumerated(
            _equation_cases,
            _equation,
            partial(_equation, solve=_unique),
            "all affine A of 2 bits and B of 1 bit to 2 bits",
            1024,
        ),
        why_bounded="The sets of solutions are compared, all layouts C tried.",
    ),
    Law(
        "linear.outer_equation",
        "solve_outer(A, B) @ A = B, refused exactly where two points share a value of A and not of B.",
        (f"{_F2}solve_outer",),
        enumerated(
            _outer_cases, _outer, partial(_outer, solve=_linear_outer), "all affine A of 2 bits and B to 1 bit", 512
        ),
        why_bounded="That a refusal is right quantifies over X; all X are tried.",
    ),
)

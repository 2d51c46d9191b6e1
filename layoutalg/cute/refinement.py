"""When a layout comes from a morphism, and how morphisms with different middle tuples compose.

Main statements:
* Two nested tuples S and T have a mutual refinement if and only if the sorted prefix products of both form a
  divisibility chain. Cutting at all of them is the least refinement: every refinement of S (of T) keeps the prefix
  products of S (of T), so a common one has at least these cuts.
* If f : S -> T and g : U -> V, and T and U have a mutual refinement, then f pulled back and g pushed forward along it
  compose, and the layout of the composite is the function |g| after |f|.

References: J. Carlisle, J. Shah, R. Stern, P. VanKoughnett, Categorical Foundations for CuTe Layouts, arXiv:2601.05972.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import get_args

from layoutalg.cute.composition import composition
from layoutalg.cute.inttuple import IntTuple, flatten, graft, malformed, product, shape_text
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.morphism import Morphism, check_morphism, require_unpadded
from layoutalg.cute.morphism import composition as composition_of
from layoutalg.cute.pointed import SOURCE, Kind, check_extents, examine, prefix_products
from layoutalg.ground.digits import first_outside
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, LayoutError, Repair


@dataclass(frozen=True, slots=True)
class MutualRefinement:
    """Two refinements whose flattenings agree up to the end of the shorter one.

    Args:
        first: Refines the first nested tuple; leaves of extent 1 become ``()``.
        second: Refines the second nested tuple; leaves of extent 1 become ``()``.
    """

    first: IntTuple
    second: IntTuple

    def __post_init__(self) -> None:
        for name in ("first", "second"):
            object.__setattr__(self, name, check_extents(getattr(self, name), name))


def mutual_refinement(first: IntTuple, second: IntTuple) -> MutualRefinement:
    """Return the least refinements of two nested tuples with a common flattening.

    Mathematically: first' refines ``first``, second' refines ``second``, and the flattening of the one with fewer
    elements is a prefix of the other's (equal for equal sizes). No other pair has fewer leaves. Leaves of extent 1
    refine to the empty tuple.

    Args:
        first: Int or nested tuple of extents >= 1.
        second: Int or nested tuple of extents >= 1.

    Complexity: O(k log k) for k leaves.

    Example:
        >>> mutual_refinement((6, 6), (12, 3))
        MutualRefinement(first=(6, (2, 3)), second=((6, 2), 3))
        >>> mutual_refinement((4,), (2, 6))
        MutualRefinement(first=((2, 2),), second=(2, (2, 3)))
    """
    left = check_extents(first, "first")
    right = check_extents(second, "second")
    cuts = sorted({*prefix_products(flatten(left)), *prefix_products(flatten(right))})
    for low, high in pairwise(cuts):
        if high % low:
            because = f"modes end after {low} and after {high} elements, and {low} does not divide {high}"
            where = (f"mutual_refinement({shape_text(left)}, {shape_text(right)})",)
            what = "the nested tuples have no mutual refinement"
            raise AdmissibilityError(Diagnostic("LA600", what, where, because, {"cuts": (low, high)}, source=SOURCE))
    return MutualRefinement(_cut(left, cuts), _cut(right, cuts))


def _cut(shape: IntTuple, cuts: list[int]) -> IntTuple:
    """Refine ``shape`` at all cuts inside it; they must include its prefix products."""
    blocks: list[IntTuple] = []
    position = 0
    for extent in flatten(shape):
        end = cuts[position] * extent
        digits: list[int] = []
        while cuts[position] < end:
            digits.append(cuts[position + 1] // cuts[position])
            position += 1
        blocks.append(digits[0] if len(digits) == 1 else tuple(digits))
    return graft(iter(blocks), shape)


def weak_composite(inner: Morphism, outer: Morphism, *, by_layout: bool = False) -> Morphism:
    """Return ``outer`` after ``inner`` for different middle objects, by refining both.

    Mathematically: for f : S -> T and g : U -> V a morphism h : S' -> V' with S' a refinement of S and |h| the function
    |g| after |f|. First f is put in standard form and g is coalesced, which keeps the function and removes cuts. S'
    refines each leaf of S in place; leaves of extent 1 stay, with stride 0.

    Args:
        inner: f, with offsets below the size of the domain of ``outer``.
        outer: g; a padded morphism gives a padded composite.
        by_layout: A mutual refinement is sufficient, not necessary: ``(4,6):(6,1)`` after ``2:3`` is ``2:18`` without
            one. If there is none, True composes the layouts and returns the morphism in standard form if that is
            tractable (or padded, for a padded g); its codomain is then unrelated to V.

    Raises:
        AdmissibilityError: LA601, LA600, LA611. RepresentabilityError: with ``by_layout``, as ``composition`` and
        ``from_layout``. BudgetError: with ``by_layout``, as ``composition``. MalformedError: LA604.

    Example:
        >>> f = Morphism(12, (3, 12), (1,))
        >>> g = Morphism((6, 6), (6, 5, 6), (2, 0))
        >>> print(weak_composite(f, g))
        (2,6) --(3,0)--> (6,5,(3,2))

    Laws: its table is that of composition(|g|, |f|).
    """
    require_unpadded(check_morphism(inner, "weak_composite"), "nothing composes after a padded morphism")
    f, g = inner.standard_form(), check_morphism(outer, "weak_composite").coalesce()
    first = first_outside(f.to_layout().flat, product(g.domain))
    if first is not None:
        what = "the inner morphism leaves the domain of the outer one"
        because = f"the inner value at {first} is {f(first)}; the outer domain has {product(g.domain)} elements"
        where, witness = (f"weak_composite({inner}, {outer})",), {"coordinate": first, "value": f(first)}
        raise AdmissibilityError(Diagnostic("LA601", what, where, because, witness, source=SOURCE))
    try:
        common = mutual_refinement(f.codomain, g.domain)
    except AdmissibilityError as error:
        if not by_layout:
            raise _with_repair(error, inner, outer) from error
        return Morphism.from_layout(composition(outer.to_layout(), inner.to_layout()), padded=outer.pitch is not None)
    pulled = f.pullback(common.first)
    pushed = g.pushforward(common.second)
    into = flatten(common.second)  # the flattening of common.first is a prefix of it
    inside = composition_of(Morphism.reshape(into, pushed.domain), Morphism(pulled.domain, into, pulled.map))
    return composition_of(pushed, inside)


def _with_repair(error: AdmissibilityError, inner: Morphism, outer: Morphism) -> AdmissibilityError:
    """Return the error with the composition of the layouts as a repair, if that exists."""
    try:
        layout = composition(outer.to_layout(), inner.to_layout())
    except LayoutError:
        repairs: tuple[Repair, ...] = ()
    else:
        repairs = (Repair("compose the layouts", f"composition({outer.to_layout()}, {inner.to_layout()}) = {layout}"),)
    what, where = "the morphisms have no weak composite", (f"weak_composite({inner}, {outer})",)
    return AdmissibilityError(replace(error.diagnostic, what=what, where=where, repairs=repairs))


def find_isomorphism(first: IntTuple, second: IntTuple) -> Morphism | None:
    """Return an isomorphism between two nested tuples, or None.

    Mathematically: a bijection of leaves that keeps extents; it exists exactly if both have the same multiset of
    extents. Equal extents are matched from left to right.

    Example:
        >>> print(find_isomorphism((2, (3, 2)), (3, (2, 2))))
        (2,(3,2)) --(1,0,2)--> (3,(2,2))
    """
    left = check_extents(first, "first")
    right = check_extents(second, "second")
    places: dict[int, list[int]] = {}
    for place, extent in reversed(list(enumerate(flatten(right)))):
        places.setdefault(extent, []).append(place)
    images: list[int] = []
    for extent in flatten(left):
        free = places.get(extent)
        if not free:
            return None
        images.append(free.pop())
    if len(images) != len(flatten(right)):
        return None
    return Morphism(left, right, tuple(images))


@dataclass(frozen=True, slots=True)
class Tractability:
    """Whether a layout is tractable: yes with the morphism, or no with the modes that break it.

    Args:
        layout: The layout.
        kind: "tractable"; "padded", a morphism with a pitch has this layout; "interleaved", sorted by stride it is not
            increasing; "overlapping", in addition two modes reach the same offset; "negative", a stride is below 0;
            "empty", an extent is 0.
        morphism: The morphism in standard form if tractable, otherwise None.
        modes: The two modes that break it, as leaf positions, smaller stride first (the same position twice if one mode
            is enough); None if tractable.
        because: The broken condition with its numbers; empty if tractable.
    """

    layout: CuteLayout
    kind: Kind
    morphism: Morphism | None = None
    modes: tuple[int, int] | None = None
    because: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.layout, CuteLayout):
            raise malformed("layout", "must be a CuteLayout", self.layout, "LA604")
        if not isinstance(self.kind, str) or self.kind not in get_args(Kind):
            raise malformed("kind", f"must be one of {get_args(Kind)}", self.kind, "LA604")
        found = self.morphism
        fits = isinstance(found, Morphism) and found.domain == self.layout.shape
        if (not fits) if self.kind == "tractable" else (found is not None):
            raise malformed("morphism", f"must be that of {self.layout}, or None unless tractable", found, "LA604")

    def __bool__(self) -> bool:
        return self.kind == "tractable"


def is_tractable(layout: CuteLayout) -> Tractability:
    """Return whether a layout comes from a morphism without pitch, with the morphism or the reason.

    Mathematically: with modes of extent 1 and stride 0 dropped and the rest sorted by stride, s_k d_k divides d_{k+1}.

    Args:
        layout: Any layout. Elements.

    Complexity: O(k log k) for k modes.

    Example:
        >>> print(is_tractable(CuteLayout((4, 2), (6, 1))).morphism)
        (4,2) --(2,0)--> (2,3,4)
        >>> answer = is_tractable(CuteLayout((128, 64), (72, 1)))
        >>> answer.kind, answer.modes, answer.because
        ('padded', (1, 0), 'mode 0 (128:72) has a stride that is not a multiple of 64, the width of mode 1 (64:1)')
    """
    found = examine(layout)
    morphism = Morphism.from_layout(layout) if found.kind == "tractable" else None
    return Tractability(layout, found.kind, morphism, found.modes, found.because)

"""Morphisms into padded tuples: layouts with padded rows, which the categories Tuple and Nest leave out.

Main definitions: ``PaddedMorphism``.

Notation: a padded tuple T:w is a nested tuple T with a pitch w_j >= 1 per leaf such that every w_j with t_j > 1 is
greater than the reach of the leaves before it, the sum of (t_k - 1) w_k over k < j. Its offset map sends a coordinate y
to the sum of y_j w_j. A padded morphism p : S -> T:w is a pointed map from the leaves of a nested tuple S to the leaves
of T, injective away from the base point, that keeps extents. |p| has shape S and strides w_{a(i)}, 0 at the base point.

Main statements:
* The offset map of T:w is strictly increasing in the flat index, hence injective: raising the first digit that differs,
  read from the slowest, adds at least w_j, and the digits before it can take back at most their reach.
* A nested tuple is the padded tuple whose pitches are its prefix products; |p| is then a layout of a ``NestMorphism``.
* p = (offset map of T:w) after f for exactly one NestMorphism f : S -> T. So p @ g is defined for g : S' -> S in Nest,
  p @ (g @ h) = (p @ g) @ h, p @ identity = p, and |p @ g| = composition(|p|, |g|) follows from functoriality of Nest.
* Closed under: precomposition, selecting modes, concat, sort, squeeze, coalesce (leaves fuse only where the pitch is
  whole, which leaves the reach as it was), complement, factorize (leaving out leaves lowers the reach), divide
  (a precomposition), product, pullback and pushforward (a block under pitch w_j has the reach (t_j - 1) w_j).
* A layout is |p| for some p exactly if, with modes of extent 1 and stride 0 dropped and the rest sorted by stride, it
  is strictly increasing. Not covered: negative strides, overlapping modes, interleaved modes such as ``(3,2):(2,3)``.

Implementation notes: nothing composes after a padded morphism: its offsets are not the flat indices of T unless the
pitches are prefix products. Such a composition is refused; ``to_nest`` makes a NestMorphism where one exists.

References: the extension is this library's; the categories are those of arXiv:2601.05972.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NoReturn

from layoutalg.cute.inttuple import (
    INT_LIMIT,
    IntTuple,
    congruent,
    flatten,
    integer,
    malformed,
    shape_text,
    unflatten,
    validate,
)
from layoutalg.cute.layout import Coords, CuteLayout
from layoutalg.cute.nest_morphism import NestMorphism
from layoutalg.cute.pointed import (
    Map,
    blocks_of,
    check_extents,
    check_joint,
    check_kind,
    check_map,
    graft,
    map_text,
    prefix_products,
    transpose,
)
from layoutalg.cute.realize import is_tractable, moving_modes
from layoutalg.ground.digits import IntArray
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError, RepresentabilityError


@dataclass(frozen=True, slots=True)
class PaddedMorphism:
    """A morphism from a nested tuple into a padded tuple: a layout whose rows may be padded by any amount.

    Mathematically: p : S -> T:w, a pointed map between leaves that keeps extents, followed by the offset map of T:w.

    Args:
        domain: S, an int or nested tuple of extents >= 1.
        codomain: T, an int or nested tuple of extents >= 1.
        pitch: w, congruent to the codomain; each >= 1 and, where the extent is above 1, greater than the reach of the
            leaves before it. Elements.
        map: Per leaf of the domain a leaf of the codomain or None for the base point (stride 0).

    Raises: MalformedError: LA180 to LA183, LA610.

    Example:
        >>> p = PaddedMorphism((6, 2), (6, 2), (1, 10), (0, 1))
        >>> print(p, "|", p.to_layout())
        (6,2) --(0,1)--> (6,2):(1,10) | (6,2):(1,10)
        >>> p(7), p((1, 1)), p.preimage(11), p.preimage(7)
        (11, (1, 1), 7, None)
    """

    domain: IntTuple
    codomain: IntTuple
    pitch: IntTuple
    map: Map
    __array_ufunc__: ClassVar[None] = None  # numpy leaves operators with a morphism to the morphism

    def __post_init__(self) -> None:
        domain = check_extents(self.domain, "domain")
        codomain = check_extents(self.codomain, "codomain")
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "codomain", codomain)
        object.__setattr__(self, "pitch", _check_pitch(self.pitch, codomain))
        object.__setattr__(self, "map", check_map(self.map, flatten(domain), flatten(codomain)))

    @classmethod
    def from_nest(cls, morphism: NestMorphism) -> PaddedMorphism:
        """Return a morphism of Nest as the padded morphism whose pitches are prefix products; the layout stays.

        Example:
            >>> print(PaddedMorphism.from_nest(NestMorphism(2, (3, 2), (1,))))
            2 --(1)--> (3,2):(1,3)
        """
        check_kind(morphism, NestMorphism, "from_nest")
        weights = prefix_products(flatten(morphism.codomain))[:-1]
        return cls(morphism.domain, morphism.codomain, unflatten(weights, morphism.codomain), morphism.map)

    @classmethod
    def from_layout(cls, layout: CuteLayout) -> PaddedMorphism:
        """Return the padded morphism in standard form whose layout is ``layout``: the codomain is what is hit, sorted.

        Mathematically: from_layout(L).to_layout() is L with stride 0 at extents 1, and from_layout(|p|) =
        p.standard_form().

        Raises: RepresentabilityError: LA612.

        Example:
            >>> print(PaddedMorphism.from_layout(CuteLayout((128, 64), (72, 1))))
            (128,64) --(1,0)--> (64,128):(1,72)
        """
        answer = is_tractable(layout)
        if answer.kind not in ("tractable", "padded"):
            raise RepresentabilityError(
                Diagnostic(
                    code="LA612",
                    what=f"the layout is not even a padded morphism ({answer.kind})",
                    where=(str(layout),),
                    because=answer.because,
                    witness=None if answer.modes is None else {"modes": answer.modes},
                )
            )
        order = moving_modes(layout)
        images: list[int | None] = [None] * len(layout.flat)
        for place, position in enumerate(order):
            images[position] = place
        extents = tuple([layout.flat[position][0] for position in order])
        return cls(layout.shape, extents, tuple([layout.flat[position][1] for position in order]), tuple(images))

    @property
    def base(self) -> NestMorphism:
        """The morphism f of Nest with p = (offset map of the padded codomain) after f."""
        return NestMorphism(self.domain, self.codomain, self.map)

    def to_layout(self) -> CuteLayout:
        """Return |p|: shape S, the stride of a leaf is the pitch of its image, 0 at the base point."""
        weights = flatten(self.pitch)
        strides = tuple([0 if entry is None else weights[entry] for entry in self.map])
        return CuteLayout(self.domain, unflatten(strides, self.domain))

    def to_nest(self) -> NestMorphism:
        """Return the morphism of Nest with the same layout.

        Raises: RepresentabilityError: LA603.

        Example:
            >>> print(PaddedMorphism((6, 2), (6, 2), (1, 12), (0, 1)).to_nest())
            (6,2) --(0,2)--> (6,2,2)
        """
        return NestMorphism.from_layout(self.to_layout())

    def __call__(self, *at: IntTuple) -> IntTuple:
        """Return the offset of a flat index (an int), or the codomain coordinate of a coordinate (a tuple)."""
        point = validate(at[0] if len(at) == 1 else at, "coordinate")
        return self.to_layout()(point) if isinstance(point, int) else self.base(point)

    def apply(self, coords: Coords) -> IntArray:
        """Return the offsets of many flat indices, or tuples of digit arrays."""
        return self.to_layout().apply(coords)

    def table(self) -> IntArray:
        """Return the offsets of the flat indices 0, 1, ..., size - 1."""
        return self.to_layout().table()

    def preimage(self, offset: int) -> int | None:
        """Return the least flat index of the domain with this offset; None where there is none.

        Mathematically: the pitches exceed the reach before them, so digits are read off from the slowest leaf.
        """
        rest = integer(offset, "offset", "LA604")
        extents, weights = flatten(self.codomain), flatten(self.pitch)
        owner = transpose(self.map, len(extents))
        domain_weights = prefix_products(flatten(self.domain))
        index = 0
        for place in range(len(extents) - 1, -1, -1):
            digit = 0 if extents[place] == 1 else max(0, min(rest // weights[place], extents[place] - 1))
            position = owner[place]
            if digit and position is None:
                return None
            if position is not None:
                index += digit * domain_weights[position]
            rest -= digit * weights[place]
        return index if rest == 0 else None

    def __matmul__(self, inner: NestMorphism) -> PaddedMorphism:
        """Return ``self`` after a morphism of Nest; |p @ g| = composition(|p|, |g|).

        Raises: AdmissibilityError: LA184.

        Example:
            >>> p = PaddedMorphism((6, 2), (6, 2), (1, 10), (0, 1))
            >>> print((p @ NestMorphism(2, (6, 2), (1,))).to_layout())
            2:10
        """
        if isinstance(inner, PaddedMorphism):
            self._refuse_outer(inner)
        if not isinstance(inner, NestMorphism):
            return NotImplemented
        return self._over(self.base @ inner)

    def __rmatmul__(self, outer: object) -> NoReturn:
        self._refuse_outer(self)

    @staticmethod
    def _refuse_outer(inner: PaddedMorphism) -> NoReturn:
        nest = bool(is_tractable(inner.to_layout()))
        raise AdmissibilityError(
            Diagnostic(
                code="LA611",
                what="nothing composes after a padded morphism",
                where=(str(inner),),
                because="its offsets are not the flat indices of its codomain"
                + ("; this one has the layout of a morphism of Nest, use to_nest()" if nest else ""),
            )
        )

    def _over(self, base: NestMorphism) -> PaddedMorphism:
        return PaddedMorphism(base.domain, base.codomain, self.pitch, base.map)

    def concat(self, other: PaddedMorphism) -> PaddedMorphism:
        """Return (p, p') : (S, S') -> T:w for two morphisms into the same padded tuple with disjoint images.

        Raises: AdmissibilityError: LA188.
        """
        check_kind(other, PaddedMorphism, "concat")
        check_joint((self.codomain, self.pitch), self.map, (other.codomain, other.pitch), other.map)
        return self._over(self.base.concat(other.base))

    def __getitem__(self, mode: int) -> PaddedMorphism:
        """Return p on one top-level mode of the domain; |p[i]| = |p|[i]."""
        return self._over(self.base[mode])

    def restrict(self, modes: tuple[int, ...]) -> PaddedMorphism:
        """Return p on the top-level modes of the domain given, in that order."""
        return self._over(self.base.restrict(modes))

    def sort(self) -> PaddedMorphism:
        """Return p with a flat domain in the order of its images, base points first."""
        return self._over(self.base.sort())

    def _keep_leaves(self, leaves: tuple[int, ...]) -> PaddedMorphism:
        """Return p over a flat codomain with these leaves only; all hit leaves must be among them."""
        place = {leaf: index for index, leaf in enumerate(leaves)}
        extents, weights = flatten(self.codomain), flatten(self.pitch)
        return PaddedMorphism(
            self.domain,
            tuple([extents[leaf] for leaf in leaves]),
            tuple([weights[leaf] for leaf in leaves]),
            tuple([None if entry is None else place[entry] for entry in self.map]),
        )

    def standard_form(self) -> PaddedMorphism:
        """Return the morphism with the same function whose flat codomain is just what is hit with extent > 1.

        Mathematically: equal standard forms mean equal layouts up to strides of modes of extent 1.

        Example:
            >>> print(PaddedMorphism((2, 1), (3, 2, 1), (1, 5, 9), (1, 2)).standard_form())
            (2,1) --(0,None)--> (2):(5)
        """
        extents = flatten(self.codomain)
        mapping = tuple([None if entry is None or extents[entry] == 1 else entry for entry in self.map])
        moved = PaddedMorphism(self.domain, self.codomain, self.pitch, mapping)
        return moved._keep_leaves(tuple(sorted([entry for entry in mapping if entry is not None])))

    def squeeze(self) -> PaddedMorphism:
        """Return p without the extents 1, both sides flat; the function of the flat index stays."""
        extents = flatten(self.domain)
        kept = tuple([position for position, extent in enumerate(extents) if extent > 1])
        domain = tuple([extents[position] for position in kept])
        small = PaddedMorphism(domain, self.codomain, self.pitch, tuple([self.map[position] for position in kept]))
        return small._keep_leaves(tuple([leaf for leaf, extent in enumerate(flatten(self.codomain)) if extent > 1]))

    def coalesce(self) -> PaddedMorphism:
        """Return p in the fewest modes with the same function: |p.coalesce()| = coalesce(|p|).

        Mathematically: neighbours fuse with their images where the next pitch is extent times pitch; two padded leaves
        with such pitches have no leaf between them.

        Example:
            >>> print(PaddedMorphism((2, 3, 2), (2, 3, 2), (1, 2, 7), (0, 1, 2)).coalesce())
            (6,2) --(0,1)--> (6,2):(1,7)
        """
        small = self.squeeze()
        extents, weights = list(flatten(small.codomain)), flatten(small.pitch)
        domain: list[int] = []
        images: list[int | None] = []
        gone: set[int] = set()
        for extent, entry in zip(flatten(small.domain), small.map, strict=True):
            if domain and entry is None and images[-1] is None:
                domain[-1] *= extent
            elif (
                domain
                and entry is not None
                and (head := images[-1]) is not None
                and (weights[entry] == domain[-1] * weights[head])
            ):
                domain[-1] *= extent
                extents[head] = domain[-1]
                gone.add(entry)
            else:
                domain.append(extent)
                images.append(entry)
        kept = [leaf for leaf in range(len(extents)) if leaf not in gone]
        place = {leaf: index for index, leaf in enumerate(kept)}
        shape: IntTuple = domain[0] if len(domain) == 1 else tuple(domain)
        mapping: Map = tuple([None if entry is None else place[entry] for entry in images])
        if not domain:
            shape, mapping = 1, (None,)
        codomain = tuple([extents[leaf] for leaf in kept])
        return PaddedMorphism(shape, codomain, tuple([weights[leaf] for leaf in kept]), mapping)

    def complement(self) -> PaddedMorphism:
        """Return the inclusion of the codomain's leaves that p does not hit, with their pitches.

        Mathematically: with base points dropped, (p, p.complement()) is a bijection onto the offsets of T:w. Offsets in
        the padding belong to neither, so this is complement(|p|, n) only where the pitches are prefix products.
        """
        return self._over(self.base.complement())

    def logical_divide(self, tiler: NestMorphism) -> PaddedMorphism:
        """Return p after (g, g.complement()): modes (tile, rest).

        Mathematically: each mode is the same function as that mode of logical_divide(|p|, |g|).

        Raises: AdmissibilityError: LA602.

        Example:
            >>> p = PaddedMorphism((128, 64), (64, 128), (1, 72), (1, 0))
            >>> print(p.logical_divide(NestMorphism(64, (128, 64), (1,))).to_layout())
            (64,(128)):(1,(72))
        """
        return self._over(self.base.logical_divide(tiler))

    def logical_product(self, tiler: NestMorphism) -> PaddedMorphism:
        """Return (p, p.complement() after g) for g into the (flat) domain of the complement: modes (p, copies).

        Mathematically: copies of p at the offsets that the leaves not hit offer; ``extend`` adds such a leaf.

        Raises: AdmissibilityError: LA602.

        Example:
            >>> p = PaddedMorphism((6, 2), (6, 2), (1, 10), (0, 1)).extend(3, 25)
            >>> print(p.logical_product(NestMorphism(3, (3,), (0,))).to_layout())
            ((6,2),3):((1,10),25)
        """
        return self._over(self.base.logical_product(tiler))

    def extend(self, extent: int, pitch: int) -> PaddedMorphism:
        """Return p into the codomain (T, extent) with one more pitch; the layout stays.

        Raises: MalformedError: LA180, LA610.
        """
        return PaddedMorphism(self.domain, (self.codomain, extent), (self.pitch, pitch), self.map)

    def pullback(self, refinement: IntTuple) -> PaddedMorphism:
        """Return p over a refinement of its codomain; a block under pitch w_j is compact in units of w_j.

        Raises: AdmissibilityError: LA189.

        Example:
            >>> print(PaddedMorphism((6, 2), (6, 2), (1, 10), (0, 1)).pullback(((2, 3), 2)))
            ((2,3),2) --(0,1,2)--> ((2,3),2):((1,2),10)
        """
        return self._pitched(self.base.pullback(refinement), blocks_of(self.codomain, refinement))

    def pushforward(self, refinement: IntTuple) -> PaddedMorphism:
        """Return p over a refinement of its domain; hit leaves of the codomain refine with their pitches.

        Raises: AdmissibilityError: LA189.
        """
        blocks = blocks_of(self.domain, refinement)
        leaves = flatten(self.codomain)
        owner = transpose(self.map, len(leaves))
        targets = tuple([t if e is None else blocks[e] for t, e in zip(leaves, owner, strict=True)])
        return self._pitched(self.base.pushforward(refinement), targets)

    def _pitched(self, base: NestMorphism, blocks: tuple[IntTuple, ...]) -> PaddedMorphism:
        pitches: list[IntTuple] = []
        for block, weight in zip(blocks, flatten(self.pitch), strict=True):
            inside = prefix_products(flatten(block))[:-1]
            pitches.append(unflatten(tuple([weight * entry for entry in inside]), block))
        return PaddedMorphism(base.domain, base.codomain, graft(self.codomain, pitches), base.map)

    def __str__(self) -> str:
        arrow = f"{shape_text(self.domain)} --{map_text(self.map)}--> {shape_text(self.codomain)}"
        return f"{arrow}:{shape_text(self.pitch)}"


def _check_pitch(value: object, codomain: IntTuple) -> IntTuple:
    pitch = validate(value, "pitch")
    if not congruent(pitch, codomain):
        raise malformed("pitch", f"must be congruent to the codomain {shape_text(codomain)}", pitch, "LA610")
    reach = 0
    for leaf, (extent, weight) in enumerate(zip(flatten(codomain), flatten(pitch), strict=True)):
        if weight < 1:
            raise malformed("pitch", "must have entries >= 1", pitch, "LA610")
        if extent > 1 and weight <= reach:
            raise MalformedError(
                Diagnostic(
                    code="LA610",
                    what="the pitches do not increase",
                    where=(f"{shape_text(codomain)}:{shape_text(pitch)}",),
                    because=f"leaf {leaf} has pitch {weight}, the leaves before it reach {reach}",
                )
            )
        reach += (extent - 1) * weight
        if reach >= INT_LIMIT:
            raise malformed("pitch", "must keep all offsets below 2^63", pitch, "LA610")
    return pitch

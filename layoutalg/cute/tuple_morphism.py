"""The category of flat tuples: morphisms that are layouts with a domain, a codomain and a pointed map.

Main definitions: ``TupleMorphism``.

Notation: f : S -> T with S = (s_0, ..., s_{m-1}), T = (t_0, ..., t_{n-1}) and a pointed map a from positions of S to
positions of T or the base point (None), injective away from it, with s_i = t_{a(i)}. Positions are 0-based. |f| is the
layout with shape S and strides d_i = t_0 ... t_{a(i)-1}, 0 at the base point.

Main statements:
* f acts on coordinates: digit i of x becomes digit a(i) of f(x), digits not hit are 0. On flat (colexicographic)
  indices this action is the layout |f|. Hence |g @ f| = |g| after |f|, wherever g @ f is defined.
* Tuple is an inverse category: ``transpose`` is the unique g with f g f = f and g f g = g.
* |f.coalesce()| = coalesce(|f|) and |f.complement()|, coalesced, is complement(|f|, size of T).

Implementation notes: sizes of domain and codomain stay below 2^63, so that every stride is exact in 64 bits.

References: J. Carlisle, J. Shah, R. Stern, P. VanKoughnett, Categorical Foundations for CuTe Layouts, arXiv:2601.05972.
The definitions are theirs; evaluation, transposes and preimages are added here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from layoutalg.cute.inttuple import IntTuple, crd2idx, flatten, idx2crd, integer, malformed, shape_text, validate
from layoutalg.cute.layout import Coords, CuteLayout
from layoutalg.cute.morphism_inverse import TransposeInverses
from layoutalg.cute.pointed import (
    Map,
    blocks_of,
    check_extents,
    check_joint,
    check_kind,
    check_map,
    check_positions,
    compose,
    map_text,
    not_composable,
    operand_mismatch,
    prefix_products,
    reindex,
    transpose,
)
from layoutalg.ground.digits import IntArray
from layoutalg.ground.errors import AdmissibilityError, Diagnostic
from layoutalg.ground.operators import then

if TYPE_CHECKING:
    from layoutalg.cute.nest_morphism import NestMorphism


@dataclass(frozen=True, slots=True)
class TupleMorphism(TransposeInverses):
    """A morphism of flat tuples: a layout that knows where its offsets live.

    Mathematically: f : S -> T given by a pointed map a, injective away from the base point, with s_i = t_{a(i)}.

    Args:
        domain: S, a flat tuple of extents >= 1; may be empty.
        codomain: T, a flat tuple of extents >= 1.
        map: Per position of the domain a position of the codomain, or None for the base point (stride 0).

    Raises: MalformedError: LA180, LA181, LA182, LA183.

    Example:
        >>> f = TupleMorphism((4, 8), (8, 4), (1, 0))
        >>> print(f, "|", f.to_layout())
        (4,8) --(1,0)--> (8,4) | (4,8):(8,1)
        >>> f(5), f((1, 1))
        (9, (1, 1))
        >>> g = TupleMorphism((8, 4), (8, 2, 4), (0, 2))
        >>> print((g @ f).to_layout())
        (4,8):(16,1)

    Source: arXiv:2601.05972, the category Tuple.
    """

    domain: tuple[int, ...]
    codomain: tuple[int, ...]
    map: Map

    def __post_init__(self) -> None:
        domain = _flat(self.domain, "domain")
        codomain = _flat(self.codomain, "codomain")
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "codomain", codomain)
        object.__setattr__(self, "map", check_map(self.map, domain, codomain))

    @classmethod
    def identity(cls, extents: tuple[int, ...]) -> TupleMorphism:
        """Return the identity of a tuple; its layout is compact column-major.

        Example:
            >>> print(TupleMorphism.identity((4, 8)).to_layout())
            (4,8):(1,4)
        """
        checked = _flat(extents, "extents")
        return cls(checked, checked, tuple(range(len(checked))))

    @classmethod
    def inclusion(cls, extents: tuple[int, ...], positions: tuple[int, ...]) -> TupleMorphism:
        """Return the morphism that puts the extents at ``positions``, in that order, into ``extents``.

        Raises: MalformedError: LA185.

        Example:
            >>> print(TupleMorphism.inclusion((4, 8, 2), (2, 0)))
            (2,4) --(2,0)--> (4,8,2)
        """
        checked = _flat(extents, "extents")
        chosen = check_positions(positions, len(checked))
        return cls(tuple([checked[position] for position in chosen]), checked, chosen)

    @classmethod
    def from_layout(cls, layout: CuteLayout) -> TupleMorphism:
        """Return the morphism in standard form whose layout is ``layout``, nesting dropped.

        Mathematically: the inverse of ``to_layout`` between morphisms in standard form and tractable layouts whose
        modes of extent 1 have stride 0. A stride of a mode of extent 1 is forgotten: it moves nothing.

        Raises: RepresentabilityError: LA603.

        Example:
            >>> print(TupleMorphism.from_layout(CuteLayout((4, 2), (6, 1))))
            (4,2) --(2,0)--> (2,3,4)

        Source: arXiv:2601.05972, correspondence of tractable layouts and morphisms in standard form.
        """
        from layoutalg.cute.realize import encode

        return encode(layout).flatten()

    def to_layout(self) -> CuteLayout:
        """Return |f|: shape S, stride of mode i the product of the codomain's extents before a(i), 0 at the base point.

        Example:
            >>> print(TupleMorphism((4, 2), (2, 3, 4), (2, None)).to_layout())
            (4,2):(6,0)
        """
        return CuteLayout(self.domain, self.strides)

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides of the layout, one per position of the domain."""
        weights = prefix_products(self.codomain)
        return tuple([0 if entry is None else weights[entry] for entry in self.map])

    def __call__(self, *at: IntTuple) -> IntTuple:
        """Return the image of a flat index (an int) as a flat index, or of a coordinate (a tuple) as a coordinate.

        ``f(i, j)`` means ``f((i, j))``.

        Raises: MalformedError: LA104. AdmissibilityError: LA105.

        Example:
            >>> f = TupleMorphism((4, 8), (8, 3, 4), (2, 0))
            >>> f(5), f(1, 1), f((1, 1))
            (25, (1, 0, 1), (1, 0, 1))
        """
        point = validate(at[0] if len(at) == 1 else at, "coordinate")
        if isinstance(point, int):
            return self.to_layout()(point)
        digits = flatten(idx2crd(crd2idx(point, self.domain, prefix_products(self.domain)[:-1]), self.domain))
        return self.carry(digits)

    def carry(self, digits: tuple[int, ...]) -> tuple[int, ...]:
        """Return the digits of the image: digit i moves to position a(i), all others are 0.

        Raises: MalformedError: LA104.
        """
        if not isinstance(digits, tuple) or len(digits) != len(self.map):
            raise malformed("digits", f"must be a tuple of {len(self.map)} integers", digits, "LA104")
        digits = tuple([integer(digit, "digits", "LA104") for digit in digits])
        answer = [0] * len(self.codomain)
        for digit, entry in zip(digits, self.map, strict=True):
            if entry is not None:
                answer[entry] = digit
        return tuple(answer)

    def apply(self, coords: Coords) -> IntArray:
        """Return the images of many flat indices, or tuples of digit arrays, as flat indices of the codomain."""
        return self.to_layout().apply(coords)

    def table(self) -> IntArray:
        """Return the images of the flat indices 0, 1, ..., size - 1."""
        return self.to_layout().table()

    def preimage(self, index: int) -> int | None:
        """Return the least flat index of the domain with image ``index``; None where there is none.

        Mathematically: the transpose g of f picks it: f g f = f makes g(index) a preimage exactly if f(g(index)) =
        index. Base-point digits are free; the least preimage has them 0.

        Raises: AdmissibilityError: LA105.

        Example:
            >>> f = TupleMorphism((2, 4), (4, 3), (None, 0))
            >>> f.preimage(3), f.preimage(4)
            (6, None)
        """
        candidate = self.transpose().to_layout()(index)
        return candidate if self.to_layout()(candidate) == index else None

    def __matmul__(self, inner: TupleMorphism) -> TupleMorphism:
        """Return ``self`` after ``inner``.

        Raises: AdmissibilityError: LA184.

        Laws: associative; identities are neutral; |g @ f| = composition(|g|, |f|).
        Source: arXiv:2601.05972, functoriality of the realisation.
        """
        if not isinstance(inner, TupleMorphism):
            return NotImplemented
        if inner.codomain != self.domain:
            raise not_composable(self.domain, inner.codomain)
        return TupleMorphism(inner.domain, self.codomain, compose(self.map, inner.map))

    def then(self, outer: TupleMorphism) -> TupleMorphism:
        """Return ``outer`` after ``self``.

        Raises: MalformedError: LA192. AdmissibilityError: LA184.

        Example:
            >>> f = TupleMorphism((2,), (3, 2), (1,))
            >>> f.then(TupleMorphism.identity((3, 2))) == f
            True
        """
        return cast(TupleMorphism, then(self, outer))

    def sum(self, other: TupleMorphism) -> TupleMorphism:
        """Return the direct sum S S' -> T T': both side by side, domains and codomains joined.

        Example:
            >>> print(TupleMorphism((2,), (2,), (0,)).sum(TupleMorphism((3,), (5, 3), (1,))))
            (2,3) --(0,2)--> (2,5,3)
        """
        check_kind(other, TupleMorphism, "sum")
        shifted = [None if entry is None else entry + len(self.codomain) for entry in other.map]
        return TupleMorphism(self.domain + other.domain, self.codomain + other.codomain, (*self.map, *shifted))

    def concat(self, other: TupleMorphism) -> TupleMorphism:
        """Return (f, f') : S S' -> T for two morphisms into the same codomain with disjoint images.

        Raises: AdmissibilityError: LA188.

        Example:
            >>> print(TupleMorphism((2,), (2, 3), (0,)).concat(TupleMorphism((3,), (2, 3), (1,))))
            (2,3) --(0,1)--> (2,3)
        """
        check_kind(other, TupleMorphism, "concat")
        check_joint(self.codomain, self.map, other.codomain, other.map)
        return TupleMorphism(self.domain + other.domain, self.codomain, self.map + other.map)

    def restrict(self, positions: tuple[int, ...]) -> TupleMorphism:
        """Return f on the domain positions given, in that order.

        Mathematically: f after the inclusion of these positions.

        Raises: MalformedError: LA185.

        Example:
            >>> print(TupleMorphism((2, 3), (3, 2), (1, 0)).restrict((1,)))
            (3) --(0)--> (3,2)
        """
        return self @ TupleMorphism.inclusion(self.domain, positions)

    def factorize(self, positions: tuple[int, ...]) -> TupleMorphism:
        """Return the g with f = inclusion(T, positions) after g.

        Mathematically: f lands in the chosen positions of the codomain; g forgets the others.

        Raises: MalformedError: LA185. AdmissibilityError: LA186.

        Example:
            >>> print(TupleMorphism((2,), (3, 2, 5), (1,)).factorize((1, 2)))
            (2) --(0)--> (2,5)
        """
        chosen = check_positions(positions, len(self.codomain))
        place = {position: index for index, position in enumerate(chosen)}
        for position, entry in enumerate(self.map):
            if entry is not None and entry not in place:
                raise AdmissibilityError(
                    Diagnostic(
                        code="LA186",
                        what="the morphism does not factor through these positions",
                        where=(f"({self}).factorize({chosen})",),
                        because=f"position {position} of the domain goes to position {entry}, which is not among them",
                    )
                )
        return TupleMorphism(
            self.domain,
            tuple([self.codomain[position] for position in chosen]),
            tuple([None if entry is None else place[entry] for entry in self.map]),
        )

    def sorting(self) -> TupleMorphism:
        """Return the permutation s with ``f.sort() == f @ s``: base points first, by extent, then by image."""
        order = sorted(range(len(self.map)), key=self._sort_key)
        return TupleMorphism.inclusion(self.domain, tuple(order))

    def _sort_key(self, position: int) -> tuple[int, int]:
        entry = self.map[position]
        return (-1, self.domain[position]) if entry is None else (entry, 0)

    def sort(self) -> TupleMorphism:
        """Return f with its domain reordered so that the strides do not decrease.

        Example:
            >>> print(TupleMorphism((4, 8), (8, 4), (1, 0)).sort())
            (8,4) --(0,1)--> (8,4)
        """
        return self @ self.sorting()

    def squeeze(self) -> TupleMorphism:
        """Return f without the extents 1 of domain and codomain; the function of the flat index stays.

        Example:
            >>> print(TupleMorphism((1, 4), (4, 1, 1), (2, 0)).squeeze())
            (4) --(0)--> (4)
        """
        if 1 not in self.domain and 1 not in self.codomain:
            return self
        kept = tuple([position for position, extent in enumerate(self.domain) if extent > 1])
        hit = tuple([position for position, extent in enumerate(self.codomain) if extent > 1])
        return self.restrict(kept).factorize(hit)

    def coalesce(self) -> TupleMorphism:
        """Return f with neighbours fused that stay neighbours, after ``squeeze``.

        Mathematically: positions i, i+1 fuse where a(i+1) = a(i) + 1, with their images, or where both go to the base
        point. The layout is coalesce(|f|), because without extents 1 equal offsets of positions mean equal positions.

        Example:
            >>> print(TupleMorphism((2, 1, 3, 5), (7, 2, 3), (1, None, 2, None)).coalesce())
            (6,5) --(1,None)--> (7,6)

        Source: arXiv:2601.05972, coalesce of tuple morphisms.
        """
        small = self.squeeze()
        domain: list[int] = []
        images: list[int | None] = []
        last: int | None = None
        fused = set()
        for position, (extent, entry) in enumerate(zip(small.domain, small.map, strict=True)):
            if position and (entry is None) == (last is None) and (entry is None or last is None or entry == last + 1):
                domain[-1] *= extent
                if entry is not None:
                    fused.add(entry)
            else:
                domain.append(extent)
                images.append(entry)
            last = entry
        codomain: list[int] = []
        place: list[int] = []
        for position, extent in enumerate(small.codomain):
            if position in fused:
                codomain[-1] *= extent
            else:
                codomain.append(extent)
            place.append(len(codomain) - 1)
        mapping = tuple([None if entry is None else place[entry] for entry in images])
        return TupleMorphism(tuple(domain), tuple(codomain), mapping)

    def standard_form(self) -> TupleMorphism:
        """Return the morphism with the same function and the smallest codomain.

        Mathematically: positions of extent 1 go to the base point, runs of positions that are not hit become one gap of
        extent > 1, nothing follows the last hit position. Two morphisms have equal standard forms if and only if
        their layouts are equal up to strides of modes of extent 1.

        Example:
            >>> print(TupleMorphism((4, 1), (2, 3, 4, 1, 7), (2, 3)).standard_form())
            (4,1) --(1,None)--> (6,4)

        Source: arXiv:2601.05972, standard form.
        """
        owner = transpose(self.map, len(self.codomain))
        codomain: list[int] = []
        images: list[int | None] = [None] * len(self.map)
        gap = 1
        for extent, position in zip(self.codomain, owner, strict=True):
            if position is None or extent == 1:
                gap *= extent
                continue
            if gap > 1:
                codomain.append(gap)
                gap = 1
            images[position] = len(codomain)
            codomain.append(extent)
        return TupleMorphism(self.domain, tuple(codomain), tuple(images))

    def complement(self) -> TupleMorphism:
        """Return the inclusion of the codomain's positions that f does not hit, in order.

        Mathematically: with the base-point positions dropped, (f, f.complement()) is an isomorphism onto T. Its layout,
        coalesced, is complement(|f|, size of T).

        Example:
            >>> print(TupleMorphism((4,), (2, 4, 3), (1,)).complement())
            (2,3) --(0,2)--> (2,4,3)

        Source: arXiv:2601.05972, complements of tuple morphisms.
        """
        hit = set(self.map)
        return TupleMorphism.inclusion(
            self.codomain, tuple([position for position in range(len(self.codomain)) if position not in hit])
        )

    def flat_divide(self, tiler: TupleMorphism) -> TupleMorphism:
        """Return f after (g, g.complement()) for a tiler g into the domain of f: first the tile, then the rest.

        Mathematically: |f.flat_divide(g)| and logical_divide(|f|, |g|) are the same function of the flat index.

        Raises: AdmissibilityError: LA602.

        Example:
            >>> f = TupleMorphism.identity((4, 2, 3))
            >>> print(f.flat_divide(TupleMorphism((2,), (4, 2, 3), (1,))))
            (2,4,3) --(1,0,2)--> (4,2,3)

        Source: arXiv:2601.05972, logical division.
        """
        if check_kind(tiler, TupleMorphism, "flat_divide").codomain != self.domain:
            raise operand_mismatch("flat_divide", "codomain of the tiler", tiler.codomain, "domain", self.domain)
        return self @ tiler.concat(tiler.complement())

    def flat_product(self, tiler: TupleMorphism) -> TupleMorphism:
        """Return (f, f.complement() after g) for g into the domain of the complement of f.

        Mathematically: |f.flat_product(g)| and logical_product(|f|, |g|) are the same function of the flat index.

        Raises: AdmissibilityError: LA602.

        Example:
            >>> f = TupleMorphism((4,), (4, 3, 2), (0,))
            >>> print(f.flat_product(TupleMorphism((2,), (3, 2), (1,))))
            (4,2) --(0,2)--> (4,3,2)

        Source: arXiv:2601.05972, logical products.
        """
        rest = self.complement()
        if check_kind(tiler, TupleMorphism, "flat_product").codomain != rest.domain:
            raise operand_mismatch(
                "flat_product", "codomain of the tiler", tiler.codomain, "domain of the complement", rest.domain
            )
        return self.concat(rest @ tiler)

    def pullback(self, refinement: IntTuple) -> TupleMorphism:
        """Return f over a refinement of its codomain: each domain position refines like its image.

        Mathematically: both morphisms are the same function of the flat index.

        Args:
            refinement: One entry per position of the codomain, an int or nested tuple of equal size.

        Raises: AdmissibilityError: LA189.

        Example:
            >>> print(TupleMorphism((6, 5), (4, 6), (1, None)).pullback((4, (2, 3))))
            (2,3,5) --(1,2,None)--> (4,2,3)

        Source: arXiv:2601.05972, pullback along a refinement.
        """
        blocks = blocks_of(self.codomain, refinement)
        return self._refined(
            tuple([s if e is None else blocks[e] for s, e in zip(self.domain, self.map, strict=True)]), blocks
        )

    def pushforward(self, refinement: IntTuple) -> TupleMorphism:
        """Return f over a refinement of its domain: each hit codomain position refines like its source.

        Mathematically: both morphisms are the same function of the flat index.

        Args:
            refinement: One entry per position of the domain, an int or nested tuple of equal size.

        Raises: AdmissibilityError: LA189.

        Example:
            >>> print(TupleMorphism((6, 5), (4, 6), (1, None)).pushforward(((2, 3), 5)))
            (2,3,5) --(1,2,None)--> (4,2,3)

        Source: arXiv:2601.05972, pushforward along a refinement.
        """
        blocks = blocks_of(self.domain, refinement)
        owner = transpose(self.map, len(self.codomain))
        return self._refined(
            blocks, tuple([t if e is None else blocks[e] for t, e in zip(self.codomain, owner, strict=True)])
        )

    def _refined(self, domain: tuple[IntTuple, ...], codomain: tuple[IntTuple, ...]) -> TupleMorphism:
        return TupleMorphism(flatten(domain), flatten(codomain), reindex(self.map, domain, codomain))

    @property
    def is_isomorphism(self) -> bool:
        """Whether every position is mapped and every position is hit; then |f| is a bijection onto [0, size of T)."""
        return None not in self.map and len(self.map) == len(self.codomain)

    def transpose(self) -> TupleMorphism:
        """Return the generalised inverse g : T -> S: f g f = f and g f g = g.

        Example:
            >>> print(TupleMorphism((4, 2), (2, 3, 4), (2, None)).transpose())
            (2,3,4) --(None,None,0)--> (4,2)
        """
        return TupleMorphism(self.codomain, self.domain, transpose(self.map, len(self.codomain)))

    def nested(self) -> NestMorphism:
        """Return the same morphism between nested tuples of depth 1."""
        from layoutalg.cute.nest_morphism import NestMorphism

        return NestMorphism(self.domain, self.codomain, self.map)

    def __str__(self) -> str:
        return f"{shape_text(self.domain)} --{map_text(self.map)}--> {shape_text(self.codomain)}"


def _flat(value: object, argument: str) -> tuple[int, ...]:
    checked = check_extents(value, argument)
    if isinstance(checked, int):
        raise malformed(argument, "must be a flat tuple of extents", value, "LA180")
    leaves = flatten(checked)
    if leaves != checked:
        raise malformed(argument, "must be a flat tuple of extents; NestMorphism holds nested ones", value, "LA180")
    return leaves

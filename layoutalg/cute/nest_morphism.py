"""The category of nested tuples: morphisms whose layouts have nested shapes.

Main definitions: ``NestMorphism``.

Notation: f : S -> T with nested tuples S and T and a pointed map between their leaves, which is a morphism of the
flattened tuples (``layoutalg.cute.tuple_morphism``). |f| is the layout with shape S.

Main statements:
* Flattening forgets nesting only: it is an equivalence of categories, so every law of ``TupleMorphism`` holds here.
* ``pullback`` and ``pushforward`` along refinements keep the function of the flat index.
* |f.coalesce()| = coalesce(|f|); |f.logical_divide(g)| = logical_divide(|f|, |g|) as functions, mode by mode; the same
  for ``logical_product``.

References: J. Carlisle, J. Shah, R. Stern, P. VanKoughnett, Categorical Foundations for CuTe Layouts, arXiv:2601.05972.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, cast, overload

from layoutalg.cute.inttuple import (
    IntTuple,
    compact_col_major,
    crd2idx,
    flatten,
    idx2crd,
    integer,
    malformed,
    rank,
    shape_text,
    unflatten,
    validate,
)
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
    graft,
    map_text,
    not_composable,
    operand_mismatch,
    reindex,
    transpose,
)
from layoutalg.cute.tuple_morphism import TupleMorphism
from layoutalg.ground.digits import IntArray
from layoutalg.ground.operators import then

if TYPE_CHECKING:
    from layoutalg.cute.padded_morphism import PaddedMorphism


@dataclass(frozen=True, slots=True)
class NestMorphism(TransposeInverses):
    """A morphism of nested tuples: a nested layout that knows where its offsets live.

    Mathematically: f : S -> T given by a pointed map from the leaves of S to the leaves of T, injective away from the
    base point, that keeps extents.

    Args:
        domain: S, an int or nested tuple of extents >= 1.
        codomain: T, an int or nested tuple of extents >= 1.
        map: Per leaf of the domain, from left to right, a leaf of the codomain, or None for the base point (stride 0).

    Raises: MalformedError: LA180 to LA183, LA100.

    Example:
        >>> f = NestMorphism((4, (2, 3)), (3, (4, 2)), (1, 2, 0))
        >>> print(f, "|", f.to_layout())
        (4,(2,3)) --(1,2,0)--> (3,(4,2)) | (4,(2,3)):(3,(12,1))
        >>> f(5), f((1, (1, 0)))
        (15, (0, (1, 1)))

    Source: arXiv:2601.05972, the category Nest.
    """

    domain: IntTuple
    codomain: IntTuple
    map: Map

    def __post_init__(self) -> None:
        domain = check_extents(self.domain, "domain")
        codomain = check_extents(self.codomain, "codomain")
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "codomain", codomain)
        object.__setattr__(self, "map", check_map(self.map, flatten(domain), flatten(codomain)))

    @classmethod
    def identity(cls, shape: IntTuple) -> NestMorphism:
        """Return the identity of a nested tuple; its layout is compact column-major.

        Example:
            >>> print(NestMorphism.identity((4, (2, 2))).to_layout())
            (4,(2,2)):(1,(4,8))
        """
        checked = check_extents(shape, "shape")
        return cls(checked, checked, tuple(range(len(flatten(checked)))))

    @classmethod
    def reshape(cls, domain: IntTuple, codomain: IntTuple) -> NestMorphism:
        """Return the isomorphism between two nestings of the same leaves; its layout is compact column-major.

        Raises: MalformedError: LA181, LA183.

        Example:
            >>> print(NestMorphism.reshape((4, (2, 3)), ((4, 2), 3)))
            (4,(2,3)) --(0,1,2)--> ((4,2),3)
        """
        return cls(domain, codomain, tuple(range(len(flatten(check_extents(domain, "domain"))))))

    @classmethod
    def from_layout(cls, layout: CuteLayout) -> NestMorphism:
        """Return the morphism in standard form (flat codomain) whose layout is ``layout``.

        Raises: RepresentabilityError: LA603.

        Example:
            >>> print(NestMorphism.from_layout(CuteLayout((4, (2, 2)), (2, (16, 1)))))
            (4,(2,2)) --(1,3,0)--> (2,4,2,2)

        Laws: from_layout(L).to_layout() is L with stride 0 at extents 1; from_layout(|f|) = f.standard_form().
        Source: arXiv:2601.05972, correspondence of tractable layouts and morphisms in standard form.
        """
        from layoutalg.cute.realize import encode

        return encode(layout)

    def to_layout(self) -> CuteLayout:
        """Return |f|: shape S, stride of a leaf the product of the codomain's leaves before its image, 0 at None.

        Example:
            >>> print(NestMorphism((2, (3,)), (5, 3, 2), (2, None)).to_layout())
            (2,(3)):(15,(0))
        """
        return CuteLayout(self.domain, unflatten(self.flatten().strides, self.domain))

    def flatten(self) -> TupleMorphism:
        """Return the morphism of the flattened tuples."""
        return TupleMorphism(flatten(self.domain), flatten(self.codomain), self.map)

    def __call__(self, *at: IntTuple) -> IntTuple:
        """Return the image of a flat index (an int) as a flat index, or of a coordinate (a tuple) as a coordinate.

        A coordinate may have ints in place of nested modes, as in a layout; the image has the codomain's profile.
        ``f(i, j)`` means ``f((i, j))``.

        Raises: MalformedError: LA104. AdmissibilityError: LA105.
        """
        point = validate(at[0] if len(at) == 1 else at, "coordinate")
        if isinstance(point, int):
            return self.to_layout()(point)
        index = crd2idx(point, self.domain, compact_col_major(self.domain))
        return unflatten(self.flatten().carry(flatten(idx2crd(index, self.domain))), self.codomain)

    def apply(self, coords: Coords) -> IntArray:
        """Return the images of many flat indices, or tuples of digit arrays, as flat indices of the codomain."""
        return self.to_layout().apply(coords)

    def table(self) -> IntArray:
        """Return the images of the flat indices 0, 1, ..., size - 1."""
        return self.to_layout().table()

    def preimage(self, index: int) -> int | None:
        """Return the least flat index of the domain with image ``index``; None where there is none.

        Raises: AdmissibilityError: LA105.
        """
        return self.flatten().preimage(index)

    def __matmul__(self, inner: NestMorphism) -> NestMorphism:
        """Return ``self`` after ``inner``; the middle nested tuples must be equal, nesting included.

        Raises: AdmissibilityError: LA184.

        Laws: associative; identities are neutral; |g @ f| = composition(|g|, |f|).
        """
        if not isinstance(inner, NestMorphism):
            return NotImplemented
        if inner.codomain != self.domain:
            raise not_composable(self.domain, inner.codomain)
        return NestMorphism(inner.domain, self.codomain, compose(self.map, inner.map))

    @overload
    def then(self, outer: NestMorphism) -> NestMorphism: ...
    @overload
    def then(self, outer: PaddedMorphism) -> PaddedMorphism: ...
    def then(self, outer: NestMorphism | PaddedMorphism) -> NestMorphism | PaddedMorphism:
        """Return ``outer`` after ``self``.

        Raises: MalformedError: LA192. AdmissibilityError: LA184.
        """
        return cast("NestMorphism | PaddedMorphism", then(self, outer))

    def sum(self, other: NestMorphism) -> NestMorphism:
        """Return the direct sum (S, S') -> (T, T').

        Example:
            >>> print(NestMorphism(2, 2, (0,)).sum(NestMorphism((3,), (5, 3), (1,))))
            (2,(3)) --(0,2)--> (2,(5,3))
        """
        joined = self.flatten().sum(check_kind(other, NestMorphism, "sum").flatten())
        return NestMorphism((self.domain, other.domain), (self.codomain, other.codomain), joined.map)

    def concat(self, other: NestMorphism) -> NestMorphism:
        """Return (f, f') : (S, S') -> T for two morphisms into the same codomain with disjoint images.

        Mathematically: its layout is make_layout(|f|, |f'|).

        Raises: AdmissibilityError: LA188.
        """
        check_kind(other, NestMorphism, "concat")
        check_joint(self.codomain, self.map, other.codomain, other.map)
        return NestMorphism((self.domain, other.domain), self.codomain, self.map + other.map)

    @property
    def rank(self) -> int:
        """Number of top-level modes of the domain; 1 where it is an int."""
        return rank(self.domain)

    def __getitem__(self, mode: int) -> NestMorphism:
        """Return f on one top-level mode of the domain; |f[i]| = |f|[i].

        Raises: MalformedError: LA185.

        Example:
            >>> print(NestMorphism((4, (2, 3)), (3, (4, 2)), (1, 2, 0))[1])
            (2,3) --(2,0)--> (3,(4,2))
        """
        position = integer(mode, "mode", "LA185")
        if not 0 <= position < self.rank:
            raise malformed("mode", f"must be in [0, {self.rank}), the modes of the domain", position, "LA185")
        if isinstance(self.domain, int):
            return self
        starts = _modes(self.domain)[1]
        return NestMorphism(self.domain[position], self.codomain, self.map[starts[position] : starts[position + 1]])

    def restrict(self, modes: tuple[int, ...]) -> NestMorphism:
        """Return f on the top-level modes of the domain given, in that order.

        Raises: MalformedError: LA185.

        Example:
            >>> print(NestMorphism((4, (2, 3)), (3, (4, 2)), (1, 2, 0)).restrict((1,)))
            ((2,3)) --(2,0)--> (3,(4,2))
        """
        chosen = check_positions(modes, self.rank, "modes")
        entries, starts = _modes(self.domain)
        mapping: Map = tuple([entry for mode in chosen for entry in self.map[starts[mode] : starts[mode + 1]]])
        return NestMorphism(tuple([entries[mode] for mode in chosen]), self.codomain, mapping)

    def factorize(self, modes: tuple[int, ...]) -> NestMorphism:
        """Return the g with f = (inclusion of top-level modes of the codomain) after g.

        Raises: MalformedError: LA185. AdmissibilityError: LA186.

        Example:
            >>> print(NestMorphism(3, (5, (3, 2)), (1,)).factorize((1,)))
            3 --(0)--> ((3,2))
        """
        chosen = check_positions(modes, rank(self.codomain), "modes")
        entries, starts = _modes(self.codomain)
        leaves = [leaf for mode in chosen for leaf in range(starts[mode], starts[mode + 1])]
        flat = self.flatten().factorize(tuple(leaves))
        return NestMorphism(self.domain, tuple([entries[mode] for mode in chosen]), flat.map)

    def sort(self) -> NestMorphism:
        """Return f with a flat domain ordered by stride; the codomain stays.

        Example:
            >>> print(NestMorphism((4, (2, 3)), (3, (4, 2)), (1, 2, 0)).sort())
            (3,4,2) --(0,1,2)--> (3,(4,2))
        """
        flat = self.flatten().sort()
        return NestMorphism(flat.domain, self.codomain, flat.map)

    def squeeze(self) -> NestMorphism:
        """Return f without the extents 1, both sides flat; the function of the flat index stays."""
        return self.flatten().squeeze().nested()

    def coalesce(self) -> NestMorphism:
        """Return f in the fewest modes with the same function of the flat index.

        Mathematically: |f.coalesce()| = coalesce(|f|), the shape an int where one mode is left.

        Example:
            >>> print(NestMorphism((2, (1, 3)), (7, (2, 3)), (1, None, 2)).coalesce())
            6 --(1)--> (7,6)

        Source: arXiv:2601.05972, coalesce.
        """
        flat = self.flatten().coalesce()
        if not flat.domain:
            return NestMorphism(1, flat.codomain, (None,))
        return NestMorphism(flat.domain[0] if len(flat.domain) == 1 else flat.domain, flat.codomain, flat.map)

    def standard_form(self) -> NestMorphism:
        """Return the morphism with the same function and the smallest codomain, a flat one.

        Source: arXiv:2601.05972, standard form.
        """
        flat = self.flatten().standard_form()
        return NestMorphism(self.domain, flat.codomain, flat.map)

    def complement(self) -> NestMorphism:
        """Return the inclusion of the codomain's leaves that f does not hit, in order; its domain is flat.

        Mathematically: with base points dropped, (f, f.complement()) is an isomorphism onto T; the layout, coalesced,
        is complement(|f|, size of T).

        Example:
            >>> print(NestMorphism(4, (2, (4, 3)), (1,)).complement())
            (2,3) --(0,2)--> (2,(4,3))

        Source: arXiv:2601.05972, complements.
        """
        leaves, hit = flatten(self.codomain), set(self.map)
        free = tuple([leaf for leaf in range(len(leaves)) if leaf not in hit])
        return NestMorphism(tuple([leaves[leaf] for leaf in free]), self.codomain, free)

    def logical_divide(self, tiler: NestMorphism) -> NestMorphism:
        """Return f after (g, g.complement()) for a tiler g into the domain of f: modes (tile, rest).

        Mathematically: each mode is the same function as that mode of logical_divide(|f|, |g|).

        Raises: AdmissibilityError: LA602.

        Example:
            >>> f = NestMorphism.identity((4, (2, 3)))
            >>> print(f.logical_divide(NestMorphism(2, (4, (2, 3)), (1,))).to_layout())
            (2,(4,3)):(4,(1,8))

        Source: arXiv:2601.05972, logical division.
        """
        if check_kind(tiler, NestMorphism, "logical_divide").codomain != self.domain:
            raise operand_mismatch("logical_divide", "codomain of the tiler", tiler.codomain, "domain", self.domain)
        return self @ tiler.concat(tiler.complement())

    def logical_product(self, tiler: NestMorphism) -> NestMorphism:
        """Return (f, f.complement() after g) for g into the domain of the complement of f: modes (f, copies).

        Mathematically: each mode is the same function as that mode of logical_product(|f|, |g|).

        Raises: AdmissibilityError: LA602.

        Example:
            >>> f = NestMorphism(4, (4, (3, 2)), (0,))
            >>> print(f.logical_product(NestMorphism(2, (3, 2), (1,))).to_layout())
            (4,2):(1,12)

        Source: arXiv:2601.05972, logical products.
        """
        rest = self.complement()
        if check_kind(tiler, NestMorphism, "logical_product").codomain != rest.domain:
            raise operand_mismatch(
                "logical_product", "codomain of the tiler", tiler.codomain, "domain of the complement", rest.domain
            )
        return self.concat(rest @ tiler)

    def pullback(self, refinement: IntTuple) -> NestMorphism:
        """Return f over a refinement of its codomain: each domain leaf refines like its image.

        Mathematically: for T' refining T the square S' -> T', S -> T commutes with both refinements as functions of
        the flat index; base-point leaves are not refined.

        Raises: AdmissibilityError: LA189.

        Example:
            >>> print(NestMorphism((6, 5), (4, 6), (1, None)).pullback((4, (2, 3))))
            ((2,3),5) --(1,2,None)--> (4,(2,3))

        Source: arXiv:2601.05972, pullback along a refinement.
        """
        blocks = blocks_of(self.codomain, refinement)
        sources = tuple([s if e is None else blocks[e] for s, e in zip(flatten(self.domain), self.map, strict=True)])
        return self._refined(sources, blocks)

    def pushforward(self, refinement: IntTuple) -> NestMorphism:
        """Return f over a refinement of its domain: each hit codomain leaf refines like its source.

        Raises: AdmissibilityError: LA189.

        Example:
            >>> print(NestMorphism((6, 5), (4, 6), (1, None)).pushforward(((2, 3), (5, 1))))
            ((2,3),(5,1)) --(1,2,None,None)--> (4,(2,3))

        Source: arXiv:2601.05972, pushforward along a refinement.
        """
        blocks = blocks_of(self.domain, refinement)
        leaves = flatten(self.codomain)
        owner = transpose(self.map, len(leaves))
        targets = tuple([t if e is None else blocks[e] for t, e in zip(leaves, owner, strict=True)])
        return self._refined(blocks, targets)

    def _refined(self, sources: tuple[IntTuple, ...], targets: tuple[IntTuple, ...]) -> NestMorphism:
        return NestMorphism(
            graft(self.domain, sources), graft(self.codomain, targets), reindex(self.map, sources, targets)
        )

    @property
    def is_isomorphism(self) -> bool:
        """Whether every leaf is mapped and every leaf is hit; then |f| is a bijection onto [0, size of T)."""
        return self.flatten().is_isomorphism

    def transpose(self) -> NestMorphism:
        """Return the generalised inverse g : T -> S: f g f = f and g f g = g."""
        return NestMorphism(self.codomain, self.domain, transpose(self.map, len(flatten(self.codomain))))

    def __str__(self) -> str:
        return f"{shape_text(self.domain)} --{map_text(self.map)}--> {shape_text(self.codomain)}"


def _modes(shape: IntTuple) -> tuple[tuple[IntTuple, ...], tuple[int, ...]]:
    """Return the top-level modes and the position of the first leaf of each, with the number of leaves at the end."""
    entries = (shape,) if isinstance(shape, int) else shape
    return entries, tuple(accumulate([len(flatten(entry)) for entry in entries], initial=0))

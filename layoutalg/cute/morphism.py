"""Morphisms of nested tuples: layouts that know their codomain, with padded rows if a pitch is given.

Notation: f : S -> T with nested tuples S and T and a pointed map a from the leaves of S to the leaves of T or the base
point (None), injective away from it, with s_i = t_{a(i)}. |f| is the layout with shape S and strides w_{a(i)}, 0 at the
base point, where w_j = t_0 ... t_{j-1}. With a pitch, w is given: each w_j with t_j > 1 exceeds the reach of the
leaves before it, the sum of (t_k - 1) w_k over k < j. T:w is then a padded tuple, f a padded morphism.

Main statements:
* f carries digits: digit i of x becomes digit a(i) of f(x), digits not hit are 0. Without a pitch this is |f| on flat
  (colexicographic) indices. Hence |g @ f| = |g| after |f| wherever g @ f is defined.
* Nested tuples are an inverse category: ``transpose`` is the unique g with f g f = f and g f g = g. Flattening only
  drops the nesting and is an equivalence of categories.
* The offset map of T:w, the sum of y_j w_j, is strictly increasing in the flat index: raising the slowest
  differing digit adds at least w_j, and the faster digits take back at most their reach. A padded morphism is this map
  after exactly one morphism without pitch (``base``), so every operation on the domain is defined on it. Nothing
  composes after it: its offsets are not flat indices of T.

References: J. Carlisle, J. Shah, R. Stern, P. VanKoughnett, Categorical Foundations for CuTe Layouts, arXiv:2601.05972.
The definitions are theirs; evaluation, transposes, preimages and padded morphisms are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from layoutalg.cute.inttuple import (
    IntTuple,
    compact_col_major,
    crd2idx,
    flatten,
    graft,
    idx2crd,
    integer,
    malformed,
    product,
    rank,
    shape_text,
    unflatten,
    validate,
)
from layoutalg.cute.layout import CuteLayout, LeafAxes
from layoutalg.cute.pointed import (
    SOURCE,
    Flat,
    Map,
    blocks_of,
    check_extents,
    check_map,
    check_pitch,
    check_positions,
    examine,
    examine_modes,
    followed,
    map_text,
    modes_of,
    prefix_products,
    refused,
    reindex,
    strides_at,
    transpose,
)
from layoutalg.ground.digits import IntArray
from layoutalg.ground.errors import Diagnostic, MalformedError, RepresentabilityError, shown
from layoutalg.ground.layout import composes


@dataclass(frozen=True, slots=True)
class Morphism(LeafAxes):
    """A morphism of nested tuples, the codomain possibly padded: a layout that knows its codomain.

    Mathematically: f : S -> T given by a pointed map from the leaves of S to the leaves of T that keeps extents and is
    injective away from the base point; with a pitch, followed by the offset map of T:w.

    Args:
        domain: S, an int or nested tuple of extents >= 1.
        codomain: T, an int or nested tuple of extents >= 1.
        map: For each leaf of the domain, left to right, a leaf of the codomain, or None for the base point (stride 0).
        pitch: w, congruent to the codomain; each >= 1 and, for extents above 1, greater than the reach of the leaves
            before it. None means the products of the extents before. Elements.

    Example:
        >>> f = Morphism((4, (2, 3)), (3, (4, 2)), (1, 2, 0))
        >>> print(f, "|", f.to_layout())
        (4,(2,3)) --(1,2,0)--> (3,(4,2)) | (4,(2,3)):(3,(12,1))
        >>> f(5), f((1, (1, 0)))
        (15, (0, (1, 1)))
        >>> print((Morphism((8, 4), (8, 2, 4), (0, 2)) @ Morphism((4, 8), (8, 4), (1, 0))).to_layout())
        (4,8):(16,1)
        >>> p = Morphism((6, 2), (6, 2), (0, 1), pitch=(1, 10))
        >>> print(p, "|", p(7), p((1, 1)), p.preimage(11), p.preimage(7))
        (6,2) --(0,1)--> (6,2):(1,10) | 11 (1, 1) 7 None
    """

    domain: IntTuple
    codomain: IntTuple
    map: Map
    pitch: IntTuple | None = None
    title, hint = "tuple morphism", "its .to_layout() is a layout"
    __array_ufunc__: ClassVar[None] = None  # makes numpy defer to the morphism's operators

    def __post_init__(self) -> None:
        domain = check_extents(self.domain, "domain")
        codomain = check_extents(self.codomain, "codomain")
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "codomain", codomain)
        if self.pitch is not None:
            object.__setattr__(self, "pitch", check_pitch(self.pitch, codomain))
        object.__setattr__(self, "map", check_map(self.map, flatten(domain), flatten(codomain)))

    @property
    def weights(self) -> tuple[int, ...]:
        """The offset of one step of each leaf of the codomain."""
        return prefix_products(flatten(self.codomain))[:-1] if self.pitch is None else flatten(self.pitch)

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides of the layout, one per leaf of the domain."""
        return strides_at(self.map, self.weights)

    @property
    def shape(self) -> IntTuple:  # type: ignore[override]
        """The domain, whose leaves are the axes."""
        return self.domain

    @property
    def out_dims(self) -> dict[str, int | None]:
        """One output, ``offset``; without a pitch it is below the size of the codomain."""
        return {"offset": product(self.codomain) if self.pitch is None else None}

    @property
    def size(self) -> int:
        """Number of elements of the domain."""
        return product(self.domain)

    def to_layout(self) -> CuteLayout:
        """Return |f|: shape S; each stride is the weight of the leaf's image, 0 for the base point."""
        return CuteLayout(self.domain, unflatten(self.strides, self.domain))

    def __call__(self, *at: IntTuple) -> IntTuple:
        """Return the offset of a flat index (an int), or the codomain coordinate of a coordinate (a tuple).

        A coordinate may have ints in place of nested modes, as in a layout; ``f(i, j)`` means ``f((i, j))``. Without a
        pitch the offset is the flat index of the image in the codomain.
        """
        point = validate(at[0] if len(at) == 1 else at, "coordinate")
        if isinstance(point, int):
            return self.to_layout()(point)
        index = crd2idx(point, self.domain, compact_col_major(self.domain))
        return unflatten(self.carry(flatten(idx2crd(index, self.domain))), self.codomain)

    def carry(self, digits: tuple[int, ...]) -> tuple[int, ...]:
        """Return the digits of the image: digit i moves to leaf a(i), all others are 0."""
        if not isinstance(digits, tuple) or len(digits) != len(self.map):
            raise malformed("digits", f"must be a tuple of {len(self.map)} integers", digits, "LA104")
        answer = [0] * len(flatten(self.codomain))
        for digit, entry in zip([integer(digit, "digits", "LA104") for digit in digits], self.map, strict=True):
            if entry is not None:
                answer[entry] = digit
        return tuple(answer)

    def at(self, index: int) -> int:
        """Return the offset of a flat index."""
        return self.to_layout().at(index)

    def apply(self, coords: Any) -> Any:
        """Return the offsets of many flat indices, of tuples of digit arrays, or of a mapping from the axes."""
        return self.to_layout().apply(coords)

    def table(self) -> IntArray:
        """Return the offsets of the flat indices 0, 1, ..., size - 1."""
        return self.to_layout().table()

    def preimage(self, offset: int) -> int | None:
        """Return the least flat index of the domain with this offset, or None.

        Mathematically: each weight exceeds the reach of the faster ones, so digits are read off from the slowest leaf.
        Base-point digits are free and set to 0. Without a pitch, offsets are indices of the codomain.
        """
        rest = integer(offset, "offset", "LA604")
        if self.pitch is None:
            idx2crd(rest, self.codomain)
        extents, weights = flatten(self.codomain), self.weights
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

    def target(self) -> str:
        """Return the codomain in notation, with its pitch if any."""
        return shape_text(self.codomain) + ("" if self.pitch is None else f":{shape_text(self.pitch)}")

    def __str__(self) -> str:
        return f"{shape_text(self.domain)} --{map_text(self.map)}--> {self.target()}"

    @classmethod
    def identity(cls, shape: IntTuple) -> Morphism:
        """Return the identity of a nested tuple; its layout is compact column-major."""
        return cls.reshape(shape, shape)

    @classmethod
    def reshape(cls, domain: IntTuple, codomain: IntTuple) -> Morphism:
        """Return the isomorphism between two nestings of the same leaves; its layout is compact column-major.

        Example:
            >>> print(Morphism.reshape((4, (2, 3)), ((4, 2), 3)))
            (4,(2,3)) --(0,1,2)--> ((4,2),3)
        """
        return cls(domain, codomain, tuple(range(len(flatten(check_extents(domain, "domain"))))))

    @classmethod
    def inclusion(cls, shape: IntTuple, modes: tuple[int, ...]) -> Morphism:
        """Return the morphism that includes the given top-level modes, in that order, into ``shape``.

        Example:
            >>> print(Morphism.inclusion((4, (8, 2), 2), (2, 1)))
            (2,(8,2)) --(3,1,2)--> (4,(8,2),2)
        """
        return cls.identity(shape).restrict(modes)

    @classmethod
    def from_layout(cls, layout: CuteLayout, *, padded: bool = False) -> Morphism:
        """Return the morphism in standard form (flat codomain) whose layout is ``layout``.

        Mathematically: the inverse of ``to_layout`` between morphisms in standard form and tractable layouts whose
        modes of extent 1 have stride 0. The stride of an extent-1 mode is dropped.

        Args:
            layout: The layout. Elements.
            padded: True gives a padded morphism, whose codomain is the sorted modes with their strides as pitches.

        Example:
            >>> print(Morphism.from_layout(CuteLayout((4, (2, 2)), (2, (16, 1)))))
            (4,(2,2)) --(1,3,0)--> (2,4,2,2)
            >>> print(Morphism.from_layout(CuteLayout((128, 64), (72, 1)), padded=True))
            (128,64) --(1,0)--> (64,128):(1,72)

        Laws: from_layout(L).to_layout() is L with stride 0 at extent 1; from_layout(|f|) = f.standard_form().
        """
        found = examine(layout)
        if found.kind != "tractable" and not (padded and found.kind == "padded"):
            code, what = ("LA612", "neither tractable nor a padded morphism") if padded else ("LA603", "not tractable")
            hint = "; use Morphism.from_layout(layout, padded=True)" if found.kind == "padded" else ""
            witness = {"modes": found.modes}
            what = f"the layout is {what} ({found.kind})"
            raise RepresentabilityError(
                Diagnostic(code, what, (str(layout),), found.because + hint, witness=witness, source=SOURCE)
            )
        return cls._encoded(layout.shape, layout.flat, found.order, padded)

    @classmethod
    def _encoded(cls, shape: IntTuple, flat: Flat, order: tuple[int, ...], padded: bool) -> Morphism:
        """Return the morphism in standard form of a layout whose non-trivial modes, in this order, are a chain."""
        codomain: list[int] = []
        pitch: list[int] = []
        images: list[int | None] = [None] * len(flat)
        current = 1
        for position in order:
            extent, stride = flat[position]
            if not padded and stride != current:
                codomain.append(stride // current)
            images[position] = len(codomain)
            codomain.append(extent)
            pitch.append(stride)
            current = extent * stride
        return cls(shape, tuple(codomain), tuple(images), tuple(pitch) if padded else None)

    def padded(self) -> Morphism:
        """Return the same layout with an explicit pitch (by default the products of the extents before)."""
        return Morphism(self.domain, self.codomain, self.map, unflatten(self.weights, self.codomain))

    def unpadded(self) -> Morphism:
        """Return the morphism without pitch with the same layout; a padded one comes out in standard form.

        Example:
            >>> print(Morphism((6, 2), (6, 2), (0, 1), (1, 12)).unpadded())
            (6,2) --(0,2)--> (6,2,2)
        """
        return self if self.pitch is None else Morphism.from_layout(self.to_layout())

    @property
    def base(self) -> Morphism:
        """The morphism without pitch on the same tuples; a padded morphism is its codomain's offset map after this."""
        return Morphism(self.domain, self.codomain, self.map)

    @property
    def is_isomorphism(self) -> bool:
        """Whether every leaf is mapped and every leaf is hit; without a pitch |f| is then onto [0, size)."""
        return None not in self.map and len(self.map) == len(flatten(self.codomain))

    def transpose(self) -> Morphism:
        """Return the generalised inverse g : T -> S: f g f = f and g f g = g.

        Example:
            >>> print(Morphism((4, 2), (2, 3, 4), (2, None)).transpose())
            (2,3,4) --(None,None,0)--> (4,2)
        """
        require_unpadded(self, "a padded morphism has no transpose")
        return Morphism(self.codomain, self.domain, transpose(self.map, len(flatten(self.codomain))))

    def left_inverse(self) -> Morphism:
        """Return g with g @ f the identity of the domain."""
        self._require_total(self.map, "domain goes to the base point, which drops its digit")
        return self.transpose()

    def right_inverse(self) -> Morphism:
        """Return g with f @ g the identity of the codomain."""
        answer = self.transpose()
        self._require_total(answer.map, "codomain is not hit, so no digit reaches it")
        return answer

    def _require_total(self, mapping: Map, problem: str) -> None:
        if None in mapping:
            because = f"position {mapping.index(None)} of the {problem}"
            raise refused("LA187", "the inverse does not exist", because, str(self))

    def inverse(self) -> Morphism:
        """Return the inverse of a bijection onto [0, size) of the codomain; also ``~f``.

        Mathematically: leaves of extent 1 need not be mapped or hit; a padded morphism is first unpadded.

        Example:
            >>> print(~Morphism((4, (2, 3)), (3, (4, 2)), (1, 2, 0)))
            (3,(4,2)) --(2,0,1)--> (4,(2,3))
        """
        extents = flatten(self.domain)
        if self.pitch is not None:
            if examine(self.to_layout()).kind != "tractable":
                raise refused("LA187", "the inverse does not exist", "its offsets have padding between them", str(self))
            return self.unpadded().inverse()
        forgotten = [leaf for leaf, entry in enumerate(self.map) if entry is None and extents[leaf] > 1]
        if forgotten:
            because = f"position {forgotten[0]} of the domain goes to the base point, which drops its digit"
            raise refused("LA187", "the inverse does not exist", because, str(self))
        target = flatten(self.codomain)
        missed = [leaf for leaf, extent in enumerate(target) if extent > 1 and leaf not in self.map]
        if missed:
            because = f"position {missed[0]} of the codomain is not hit, so no digit reaches it"
            raise refused("LA187", "the inverse does not exist", because, str(self))
        return self.transpose()

    __invert__ = inverse

    def flatten(self) -> Morphism:
        """Return the morphism of the flattened tuples."""
        return self._over(flatten(self.domain), flatten(self.codomain), self.map)

    def _over(self, domain: IntTuple, codomain: IntTuple, mapping: Map) -> Morphism:
        """Return a morphism with these tuples; the codomain must have the leaves of this one and takes its pitches."""
        pitch = None if self.pitch is None else unflatten(self.weights, codomain)
        return Morphism(domain, codomain, mapping, pitch)

    def _on(self, leaves: tuple[int, ...]) -> Morphism:
        """Restrict f to these leaves, as a flat domain."""
        extents = flatten(self.domain)
        domain = tuple([extents[leaf] for leaf in leaves])
        return self._over(domain, self.codomain, tuple([self.map[leaf] for leaf in leaves]))

    def __getitem__(self, mode: int) -> Morphism:
        """Restrict f to one top-level mode of the domain; |f[i]| = |f|[i].

        Example:
            >>> print(Morphism((4, (2, 3)), (3, (4, 2)), (1, 2, 0))[1])
            (2,3) --(2,0)--> (3,(4,2))
        """
        position = integer(mode, "mode", "LA185")
        if not 0 <= position < self.rank:
            raise malformed("mode", f"must be in [0, {self.rank}), the modes of the domain", position, "LA185")
        entries, starts = modes_of(self.domain)
        return self._over(entries[position], self.codomain, self.map[starts[position] : starts[position + 1]])

    def restrict(self, modes: tuple[int, ...]) -> Morphism:
        """Restrict f to the given top-level modes of the domain, in that order.

        Example:
            >>> print(Morphism((4, (2, 3)), (3, (4, 2)), (1, 2, 0)).restrict((1,)))
            ((2,3)) --(2,0)--> (3,(4,2))
        """
        chosen = check_positions(modes, self.rank, "modes")
        entries, starts = modes_of(self.domain)
        mapping: Map = tuple([entry for mode in chosen for entry in self.map[starts[mode] : starts[mode + 1]]])
        return self._over(tuple([entries[mode] for mode in chosen]), self.codomain, mapping)

    def factorize(self, modes: tuple[int, ...]) -> Morphism:
        """Return the g with f = inclusion(T, modes) after g; f must map into these modes of the codomain.

        Example:
            >>> print(Morphism(3, (5, (3, 2)), (1,)).factorize((1,)))
            3 --(0)--> ((3,2))
        """
        require_unpadded(self, "a padded morphism does not factor through an inclusion")
        chosen = check_positions(modes, rank(self.codomain), "modes")
        entries, starts = modes_of(self.codomain)
        leaves = [leaf for mode in chosen for leaf in range(starts[mode], starts[mode + 1])]
        place = {leaf: index for index, leaf in enumerate(leaves)}
        for position, entry in enumerate(self.map):
            if entry is not None and entry not in place:
                because = f"position {position} of the domain goes to position {entry}, which is not one of them"
                what = "the morphism does not factor through these positions"
                raise refused("LA186", what, because, f"({self}).factorize({chosen})")
        mapping = tuple([None if entry is None else place[entry] for entry in self.map])
        return Morphism(self.domain, tuple([entries[mode] for mode in chosen]), mapping)

    def sum(self, other: Morphism) -> Morphism:
        """Return the direct sum (S, S') -> (T, T').

        Example:
            >>> print(Morphism(2, 2, (0,)).sum(Morphism((3,), (5, 3), (1,))))
            (2,(3)) --(0,2)--> (2,(5,3))
        """
        for operand in (self, check_morphism(other, "sum")):
            require_unpadded(operand, "a padded morphism has no direct sum")
        count = len(flatten(self.codomain))
        shifted = [None if entry is None else entry + count for entry in other.map]
        return Morphism((self.domain, other.domain), (self.codomain, other.codomain), (*self.map, *shifted))

    def concat(self, other: Morphism) -> Morphism:
        """Return (f, f') : (S, S') -> T for two morphisms into the same codomain with disjoint images.

        Mathematically: its layout is make_layout(|f|, |f'|).

        Example:
            >>> print(Morphism((2,), (2, 3), (0,)).concat(Morphism(3, (2, 3), (1,))))
            ((2),3) --(0,1)--> (2,3)
        """
        check_morphism(other, "concat")
        both = {entry for entry in self.map if entry is not None} & set(other.map)
        if (self.codomain, self.pitch) != (other.codomain, other.pitch):
            because = f"the codomains {self.target()} and {other.target()} differ"
        elif both:
            because = f"both hit position {min(both, key=lambda entry: entry or 0)} of the codomain"
        else:
            return self._over((self.domain, other.domain), self.codomain, self.map + other.map)
        raise refused("LA188", "the morphisms cannot be joined", because)

    def sorting(self) -> Morphism:
        """Return the s with ``f.sort() == f @ s``: base points first, by extent, then by image; its domain is flat."""
        extents = flatten(self.domain)
        keys = [(-1, extents[leaf]) if entry is None else (entry, 0) for leaf, entry in enumerate(self.map)]
        return Morphism.identity(self.domain)._on(tuple(sorted(range(len(keys)), key=lambda leaf: keys[leaf])))

    def sort(self) -> Morphism:
        """Return f with a flat domain ordered so that strides of extents above 1 do not decrease.

        Example:
            >>> print(Morphism((4, (2, 3)), (3, (4, 2)), (1, 2, 0)).sort())
            (3,4,2) --(0,1,2)--> (3,(4,2))
        """
        return composition(self, self.sorting())

    def squeeze(self) -> Morphism:
        """Return f without leaves of extent 1, both sides flat; the same function of the flat index.

        Example:
            >>> print(Morphism((1, 4), (4, 1, 1), (2, 0)).squeeze())
            (4) --(0)--> (4)
        """
        if 1 not in flatten(self.domain) and 1 not in flatten(self.codomain):
            return self.flatten()
        small = self._on(tuple([leaf for leaf, extent in enumerate(flatten(self.domain)) if extent > 1]))
        leaves = tuple([leaf for leaf, extent in enumerate(flatten(self.codomain)) if extent > 1])
        return small._into(leaves, small.domain, small.map, flatten(self.codomain))

    def _into(self, leaves: tuple[int, ...], domain: IntTuple, mapping: Map, extents: Sequence[int]) -> Morphism:
        """Return a morphism into a flat codomain of these leaves, with these extents and their current pitches."""
        place = {leaf: index for index, leaf in enumerate(leaves)}
        codomain = tuple([extents[leaf] for leaf in leaves])
        pitch = None if self.pitch is None else tuple([self.weights[leaf] for leaf in leaves])
        return Morphism(domain, codomain, tuple([None if entry is None else place[entry] for entry in mapping]), pitch)

    def coalesce(self) -> Morphism:
        """Return f in the fewest modes with the same function of the flat index, both sides flat.

        Mathematically: after dropping extents 1, neighbours fuse with their images if the weight of the second image is
        extent times weight of the first, or if both go to the base point. |f.coalesce()| = coalesce(|f|), with an int
        shape if one mode is left.

        Example:
            >>> print(Morphism((2, (1, 3)), (7, (2, 3)), (1, None, 2)).coalesce())
            6 --(1)--> (7,6)
            >>> print(Morphism((2, 3, 2), (2, 3, 2), (0, 1, 2), (1, 2, 7)).coalesce())
            (6,2) --(0,1)--> (6,2):(1,7)
        """
        small = self.squeeze()
        extents, weights = list(flatten(small.codomain)), small.weights
        domain: list[int] = []
        images: list[int | None] = []
        gone: set[int] = set()
        for extent, entry in zip(flatten(small.domain), small.map, strict=True):
            head = images[-1] if images else None
            if entry is not None and head is not None and weights[entry] == domain[-1] * weights[head]:
                domain[-1] *= extent
                extents[head] = domain[-1]
                gone.add(entry)
            elif images and entry is None and head is None:
                domain[-1] *= extent
            else:
                domain.append(extent)
                images.append(entry)
        whole = domain[0] if len(domain) == 1 else tuple(domain) or 1
        leaves = tuple([leaf for leaf in range(len(extents)) if leaf not in gone])
        return small._into(leaves, whole, tuple(images) or (None,), extents)

    def standard_form(self) -> Morphism:
        """Return the morphism with the same function and the smallest (flat) codomain.

        Mathematically: leaves of extent 1 go to the base point; each run of leaves not hit becomes one gap of extent
        > 1 (with a pitch, none); nothing follows the last leaf hit. Standard forms are equal if and only if the layouts
        are, up to strides of extent-1 modes.

        Example:
            >>> print(Morphism((4, 1), (2, 3, 4, 1, 7), (2, 3)).standard_form())
            (4,1) --(1,None)--> (6,4)
            >>> print(Morphism((2, 1), (3, 2, 1), (1, 2), (1, 5, 9)).standard_form())
            (2,1) --(0,None)--> (2):(5)
        """
        flat = tuple(zip(flatten(self.domain), self.strides, strict=True))
        return Morphism._encoded(self.domain, flat, examine_modes(flat).order, self.pitch is not None)

    def extend(self, extent: int, pitch: int) -> Morphism:
        """Return f into the padded codomain (T, extent) with one more pitch; same layout."""
        weights = unflatten(self.weights, self.codomain)
        return Morphism(self.domain, (self.codomain, integer(extent, "extent")), self.map, (weights, pitch))

    def complement(self) -> Morphism:
        """Return the inclusion of the codomain leaves that f does not hit, in order; its domain is flat.

        Mathematically: with base points dropped, (f, f.complement()) is a bijection onto the offsets of the codomain.
        Without a pitch the coalesced layout is complement(|f|, size of T). Offsets in padding are in neither.

        Example:
            >>> print(Morphism(4, (2, (4, 3)), (1,)).complement())
            (2,3) --(0,2)--> (2,(4,3))
        """
        leaves, hit = flatten(self.codomain), set(self.map)
        free = tuple([leaf for leaf in range(len(leaves)) if leaf not in hit])
        return self._over(tuple([leaves[leaf] for leaf in free]), self.codomain, free)

    def logical_divide(self, tiler: Morphism) -> Morphism:
        """Return f after (g, g.complement()) for a tiler g into the domain of f: modes (tile, rest).

        Mathematically: each mode is the same function as that mode of logical_divide(|f|, |g|).

        Example:
            >>> f = Morphism.identity((4, (2, 3)))
            >>> print(f.logical_divide(Morphism(2, (4, (2, 3)), (1,))).to_layout())
            (2,(4,3)):(4,(1,8))
        """
        _check_tiler(tiler, "logical_divide", self.domain, "domain")
        return composition(self, tiler.concat(tiler.complement()))

    def logical_product(self, tiler: Morphism) -> Morphism:
        """Return (f, f.complement() after g) for g into the domain of the complement of f: modes (f, copies).

        Mathematically: each mode is the same function as that mode of logical_product(|f|, |g|). With a pitch,
        copies use the leaves not hit; ``extend`` adds one.

        Example:
            >>> p = Morphism((6, 2), (6, 2), (0, 1), (1, 10)).extend(3, 25)
            >>> print(p.logical_product(Morphism(3, (3,), (0,))).to_layout())
            ((6,2),3):((1,10),25)
        """
        rest = self.complement()
        _check_tiler(tiler, "logical_product", rest.domain, "domain of the complement")
        return self.concat(composition(rest, tiler))

    def flat_divide(self, tiler: Morphism) -> Morphism:
        """``logical_divide`` with a flat domain; same errors."""
        answer = self.logical_divide(tiler)
        return self._over(flatten(answer.domain), self.codomain, answer.map)

    def flat_product(self, tiler: Morphism) -> Morphism:
        """``logical_product`` with a flat domain; same errors."""
        answer = self.logical_product(tiler)
        return self._over(flatten(answer.domain), self.codomain, answer.map)

    def pullback(self, refinement: IntTuple) -> Morphism:
        """Return f over a refinement of its codomain: each domain leaf is refined like its image.

        Mathematically: for T' refining T the square S' -> T', S -> T commutes with both refinements as functions of the
        flat index; base-point leaves are not refined. A block under pitch w_j is compact in units of w_j.

        Example:
            >>> print(Morphism((6, 5), (4, 6), (1, None)).pullback((4, (2, 3))))
            ((2,3),5) --(1,2,None)--> (4,(2,3))
        """
        blocks = blocks_of(self.codomain, refinement)
        sources = [s if e is None else blocks[e] for s, e in zip(flatten(self.domain), self.map, strict=True)]
        return self._refined(sources, blocks)

    def pushforward(self, refinement: IntTuple) -> Morphism:
        """Return f over a refinement of its domain: each codomain leaf that is hit is refined like its source.

        Example:
            >>> print(Morphism((6, 5), (4, 6), (1, None)).pushforward(((2, 3), (5, 1))))
            ((2,3),(5,1)) --(1,2,None,None)--> (4,(2,3))
        """
        blocks = blocks_of(self.domain, refinement)
        leaves = flatten(self.codomain)
        owner = transpose(self.map, len(leaves))
        return self._refined(blocks, [t if e is None else blocks[e] for t, e in zip(leaves, owner, strict=True)])

    def _refined(self, sources: Sequence[IntTuple], targets: Sequence[IntTuple]) -> Morphism:
        codomain = graft(iter(targets), self.codomain)
        pitch = None
        if self.pitch is not None:
            parts = zip(targets, self.weights, strict=True)
            inside = [weight * entry for part, weight in parts for entry in prefix_products(flatten(part))[:-1]]
            pitch = unflatten(tuple(inside), codomain)
        return Morphism(graft(iter(sources), self.domain), codomain, reindex(self.map, sources, targets), pitch)


@composes(Morphism, Morphism)
def composition(outer: Morphism, inner: Morphism) -> Morphism:
    """Return ``outer`` after ``inner``, also ``outer @ inner``; the middle tuples must be equal, nesting included.

    Example:
        >>> print((Morphism((6, 2), (6, 2), (0, 1), (1, 10)) @ Morphism(2, (6, 2), (1,))).to_layout())
        2:10

    Laws: associative; identities are neutral; |g @ f| = composition(|g|, |f|).
    """
    require_unpadded(inner, "nothing composes after a padded morphism")
    if inner.codomain != outer.domain:
        same = product(inner.codomain) == product(outer.domain)
        hint = "; their sizes are equal, so weak_composite may refine both" if same else ""
        ends = f"the inner codomain {shape_text(inner.codomain)} is not the outer domain {shape_text(outer.domain)}"
        raise refused("LA184", "the morphisms do not compose", f"{ends}{hint}")
    return Morphism(inner.domain, outer.codomain, followed(inner.map, outer.map), outer.pitch)


def check_morphism(value: object, operation: str) -> Morphism:
    """Return ``value`` if it is a morphism."""
    if isinstance(value, Morphism):
        return value
    hint = "; layoutalg.parse reads text" if isinstance(value, str) else ""
    because = f"the operand must be a Morphism, not {shown(value)}{hint}"
    raise MalformedError(Diagnostic("LA604", "the operands do not belong together", (operation,), because))


def require_unpadded(morphism: Morphism, what: str) -> None:
    """Raise for a padded morphism; ``what`` is the message."""
    if morphism.pitch is not None:
        whole = examine(morphism.to_layout()).kind == "tractable"
        hint = "; unpadded() gives the morphism without pitch with the same layout" if whole else ""
        raise refused("LA611", what, f"its offsets are not the flat indices of its codomain{hint}", str(morphism))


def _check_tiler(tiler: Morphism, call: str, wanted: IntTuple, name: str) -> None:
    if check_morphism(tiler, call).codomain != wanted:
        because = f"the codomain of the tiler, {shape_text(tiler.codomain)}, is not the {name}, {shape_text(wanted)}"
        raise refused("LA602", f"{call} is not defined on these morphisms", because)

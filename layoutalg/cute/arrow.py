"""Pointed maps between the leaves of nested tuples, as functions: layout, values and preimages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from layoutalg.cute.coords import crd2idx, idx2crd
from layoutalg.cute.inttuple import (
    IntTuple,
    compact_col_major,
    flatten,
    integer,
    malformed,
    product,
    shape_text,
    unflatten,
    validate,
)
from layoutalg.cute.layout import CuteLayout, LeafAxes
from layoutalg.cute.pointed import (
    Map,
    check_extents,
    check_map,
    check_pitch,
    map_text,
    prefix_products,
    strides_at,
    transpose,
)
from layoutalg.ground.digits import IntArray


@dataclass(frozen=True, slots=True)
class Arrow(LeafAxes):
    """A pointed map between the leaves of two nested tuples, with optional pitches for the offsets.

    Args:
        domain: An int or nested tuple of extents >= 1.
        codomain: An int or nested tuple of extents >= 1.
        map: For each leaf of the domain a leaf of the codomain, or None.
        pitch: Congruent to the codomain, or None.

    Raises: MalformedError: LA180 to LA183, LA610, LA100.

    Example:
        >>> print(Arrow((6, 2), (6, 2), (0, 1), (1, 10)))
        (6,2) --(0,1)--> (6,2):(1,10)
    """

    domain: IntTuple
    codomain: IntTuple
    map: Map
    pitch: IntTuple | None = None
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
        """Return |f|: shape S; each stride is the weight of the leaf's image, 0 for the base point.

        Example:
            >>> print(Arrow((2, (3,)), (5, 3, 2), (2, None)).to_layout())
            (2,(3)):(15,(0))
        """
        return CuteLayout(self.domain, unflatten(self.strides, self.domain))

    def __call__(self, *at: IntTuple) -> IntTuple:
        """Return the offset of a flat index (an int), or the codomain coordinate of a coordinate (a tuple).

        A coordinate may have ints in place of nested modes, as in a layout; ``f(i, j)`` means ``f((i, j))``. Without a
        pitch the offset is the flat index of the image in the codomain.

        Raises: MalformedError: LA104. AdmissibilityError: LA105.
        """
        point = validate(at[0] if len(at) == 1 else at, "coordinate")
        if isinstance(point, int):
            return self.to_layout()(point)
        index = crd2idx(point, self.domain, compact_col_major(self.domain))
        return unflatten(self.carry(flatten(idx2crd(index, self.domain))), self.codomain)

    def carry(self, digits: tuple[int, ...]) -> tuple[int, ...]:
        """Return the digits of the image: digit i moves to leaf a(i), all others are 0.

        Raises: MalformedError: LA104.
        """
        if not isinstance(digits, tuple) or len(digits) != len(self.map):
            raise malformed("digits", f"must be a tuple of {len(self.map)} integers", digits, "LA104")
        answer = [0] * len(flatten(self.codomain))
        for digit, entry in zip([integer(digit, "digits", "LA104") for digit in digits], self.map, strict=True):
            if entry is not None:
                answer[entry] = digit
        return tuple(answer)

    def at(self, index: int) -> int:
        """Return the offset of a flat index.

        Raises: MalformedError: LA100. AdmissibilityError: LA105.
        """
        return self.to_layout().at(index)

    def apply(self, coords: Any) -> Any:
        """Return the offsets of many flat indices, of tuples of digit arrays, or of a mapping from the axes.

        Raises: MalformedError: LA104. AdmissibilityError: LA105. BudgetError: LA002.
        """
        return self.to_layout().apply(coords)

    def table(self) -> IntArray:
        """Return the offsets of the flat indices 0, 1, ..., size - 1."""
        return self.to_layout().table()

    def preimage(self, offset: int) -> int | None:
        """Return the least flat index of the domain with this offset, or None.

        Mathematically: each weight exceeds the reach of the faster ones, so digits are read off from the slowest leaf.
        Base-point digits are free and set to 0. Without a pitch, offsets are indices of the codomain.

        Raises: MalformedError: LA604. AdmissibilityError: LA105.

        Example:
            >>> f = Arrow((2, 4), (4, 3), (None, 0))
            >>> f.preimage(3), f.preimage(4)
            (6, None)
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

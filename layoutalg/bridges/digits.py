"""Common digits of two layouts: mixed-radix digits in which the coordinates of both are sums.

If the mixed-radix weights of both sides form one divisibility chain, the digits of the merged chain express the digits
of either side as sums, and x <-> digits is a bijection. Otherwise (3 x 4 against 4 x 3) the digits of both sides are
kept, tied by the equation "same flat coordinate". So coordinates are digits, never a flat index with floor and modulo.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from layoutalg.cute import Swizzle


@dataclass(frozen=True, slots=True)
class Sum:
    """The integer ``sum of coefficient * variable``; ``terms`` are (variable, coefficient) pairs."""

    terms: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return " + ".join(f"{coefficient}*{name}" for name, coefficient in self.terms) or "0"


def swizzle_sources(swizzle: Swizzle) -> dict[int, int]:
    """Return a map from every bit that the swizzle changes to the bit that is xored into it.

    Example:
        >>> swizzle_sources(Swizzle(2, 0, 3))
        {0: 3, 1: 4}
    """
    source, target = swizzle.base + max(swizzle.shift, 0), swizzle.base + max(-swizzle.shift, 0)
    return {target + position: source + position for position in range(swizzle.bits)}


def stage_text(swizzle: Swizzle, offset: int) -> str:
    """Return ``v -> swizzle(offset + v)`` as ISL text, one floor per bit read or written.

    Example:
        >>> stage_text(Swizzle(1, 0, 2), 3)
        '{ [v] -> [v + 3 + 1*((floor((v + 3)/1) + floor((v + 3)/4)) mod 2) - 1*(floor((v + 3)/1) mod 2)] }'
    """
    value = f"v + {offset}"
    parts = [value]
    for target, source in swizzle_sources(swizzle).items():
        low, high = f"floor(({value})/{1 << target})", f"floor(({value})/{1 << source})"
        parts.append(f"{1 << target}*(({low} + {high}) mod 2) - {1 << target}*({low} mod 2)")
    return f"{{ [v] -> [{' + '.join(parts)}] }}"


@dataclass(frozen=True, slots=True)
class Joint:
    """Digits that express the coordinates of two sides."""

    digits: tuple[tuple[str, int], ...]  # the joint digits (name, extent)
    weights: tuple[int, ...]  # weight of each joint digit in the flat coordinate; 0 for redundant digits
    left: tuple[Sum, ...]  # each digit of the left side as a sum of joint digits
    right: tuple[Sum, ...]  # each digit of the right side, likewise
    equations: tuple[Sum, ...]  # sums that are zero on valid joint digits

    def coordinate(self, point: Mapping[str, int]) -> int:
        """Return the flat coordinate of joint digits."""
        return sum(weight * point[name] for (name, _), weight in zip(self.digits, self.weights, strict=True))

    def text(self, side: Sequence[Sum]) -> str:
        """Return the ISL map from joint digits to the digits of one side."""
        facts = [f"0 <= {name} < {extent}" for name, extent in self.digits]
        facts += [f"{equation} = 0" for equation in self.equations]
        guard = f" : {' and '.join(facts)}" if facts else ""
        return f"{{ [{', '.join(name for name, _ in self.digits)}] -> [{', '.join(map(str, side))}]{guard} }}"


def joint_digits(left: Sequence[int], right: Sequence[int]) -> Joint:
    """Return common digits for two boxes of equal size.

    Args:
        left: Extents of one side, fastest first, each at least 1.
        right: Extents of the other side, with the same product.

    Example:
        >>> joint = joint_digits((4, 6), (2, 12))
        >>> joint.digits, [str(part) for part in joint.left]
        ((('r0', 2), ('r1', 2), ('r2', 6)), ['1*r0 + 2*r1', '1*r2'])
        >>> [str(part) for part in joint_digits((3, 4), (4, 3)).equations]
        ['1*s0 + 3*s1 + -1*t0 + -4*t1']
    """
    merged = sorted({*_weights(left), *_weights(right)})
    if all(high % low == 0 for low, high in pairwise(merged)):
        digits = tuple((f"r{index}", high // low) for index, (low, high) in enumerate(pairwise(merged)))
        weights = tuple(merged[:-1])
        return Joint(digits, weights, _cut(left, digits, weights), _cut(right, digits, weights), ())
    names = [f"s{index}" for index in range(len(left))], [f"t{index}" for index in range(len(right))]
    digits = (*zip(names[0], left, strict=True), *zip(names[1], right, strict=True))
    own = _weights(left)[:-1]
    terms = [*zip(names[0], own, strict=True)]
    terms += [(name, -weight) for name, weight in zip(names[1], _weights(right)[:-1], strict=True)]
    return Joint(
        digits,
        (*own, *(0 for _ in right)),
        tuple(Sum(((name, 1),)) for name in names[0]),
        tuple(Sum(((name, 1),)) for name in names[1]),
        (Sum(tuple(terms)),),
    )


def _weights(extents: Sequence[int]) -> list[int]:
    """Return the weight of each digit in the flat coordinate, and the size."""
    weights = [1]
    for extent in extents:
        weights.append(weights[-1] * extent)
    return weights


def _cut(extents: Sequence[int], digits: Sequence[tuple[str, int]], weights: Sequence[int]) -> tuple[Sum, ...]:
    """Return each digit of a box as a sum of the joint digits that it consists of."""
    return tuple(
        Sum(
            tuple(
                (name, weight // low) for (name, _), weight in zip(digits, weights, strict=True) if low <= weight < high
            )
        )
        for low, high in pairwise(_weights(extents))
    )

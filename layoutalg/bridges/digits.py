"""Encode layout functions as integer constraints over mixed-radix digits, for ISL and SMT solvers.

If the mixed-radix weights of both sides form one divisibility chain, the digits of the merged chain express the digits
of either side as sums, and x <-> digits is a bijection. Otherwise (3 x 4 against 4 x 3) the digits of both sides are
kept, tied by the equation "same flat coordinate".

Implementation notes: coordinates are digits, never a flat index with floor and modulo. A swizzle acts on the bits of
the inner value; only the bits it reads or writes become 0/1 variables, the runs between them stay whole. An xor of bits
is ``sum of the bits - 2 q`` with the carry ``q`` as a variable, which has exactly one solution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground.digits import span


@dataclass(frozen=True, slots=True)
class Sum:
    """The integer ``constant + sum of coefficient * variable``; ``terms`` are (variable, coefficient) pairs."""

    terms: tuple[tuple[str, int], ...] = ()
    constant: int = 0

    def __add__(self, other: Sum) -> Sum:
        merged = dict(self.terms)
        for name, coefficient in other.terms:
            merged[name] = merged.get(name, 0) + coefficient
        terms = tuple((name, coefficient) for name, coefficient in merged.items() if coefficient)
        return Sum(terms, self.constant + other.constant)

    def scaled(self, factor: int) -> Sum:
        """Return ``factor`` times the sum."""
        if factor == 0:
            return Sum()
        return Sum(tuple((name, factor * coefficient) for name, coefficient in self.terms), factor * self.constant)

    def __str__(self) -> str:
        parts = [f"{coefficient}*{name}" for name, coefficient in self.terms]
        return " + ".join([*parts, str(self.constant)] if self.constant or not parts else parts)


@dataclass(frozen=True, slots=True)
class Variable:
    """An auxiliary integer with inclusive bounds."""

    name: str
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class DigitSystem:
    """A function on a box of digits, given by linear equations with exactly one solution per point.

    Args:
        inputs: The digits (name, extent), fastest first: digit k is in [0, extent).
        variables: Auxiliary integers.
        equations: Sums that are zero.
        value: The value of the function.
        function: ISL text of the same function without variables, if known; else empty.
    """

    inputs: tuple[tuple[str, int], ...]
    variables: tuple[Variable, ...]
    equations: tuple[Sum, ...]
    value: Sum
    function: str = ""

    @property
    def text(self) -> str:
        """The text of an ISL map from the digits to the value.

        Example:
            >>> digit_system(CuteLayout((4, 8), (1, 5))).text
            '{ [c0, c1] -> [1*c0 + 5*c1] : 0 <= c0 < 4 and 0 <= c1 < 8 }'
        """
        if self.function:
            return self.function
        names = ", ".join(name for name, _ in self.inputs)
        facts = [f"0 <= {name} < {extent}" for name, extent in self.inputs]
        if self.variables:
            inner = [f"{v.low} <= {v.name} <= {v.high}" for v in self.variables]
            inner += [f"{equation} = 0" for equation in self.equations]
            bound = ", ".join(v.name for v in self.variables)
            facts.append(f"exists ({bound}, value : value = {self.value} and {' and '.join(inner)} and out = value)")
            return f"{{ [{names}] -> [out] : {' and '.join(facts)} }}"
        guard = f" : {' and '.join(facts)}" if facts else ""
        return f"{{ [{names}] -> [{self.value}]{guard} }}"


@dataclass(slots=True)
class _Builder:
    prefix: str
    variables: list[Variable] = field(default_factory=list)
    equations: list[Sum] = field(default_factory=list)

    def variable(self, low: int, high: int) -> Sum:
        name = f"{self.prefix}v{len(self.variables)}"
        self.variables.append(Variable(name, low, high))
        return Sum(((name, 1),))

    def parity(self, bits: Sequence[Sum], constant: int) -> Sum:
        """Return a 0/1 sum equal to the xor of 0/1 sums and a constant bit."""
        if not bits:
            return Sum((), constant)
        if len(bits) == 1:
            return bits[0] if not constant else bits[0].scaled(-1) + Sum((), 1)
        total = Sum((), constant)
        for bit in bits:
            total += bit
        answer = self.variable(0, 1)
        carry = self.variable(0, (len(bits) + constant) // 2)
        self.equations.append(total + carry.scaled(-2) + answer.scaled(-1))
        return answer

    def bits_of(self, value: Sum, low: int, high: int, wanted: Sequence[int]) -> dict[int, Sum]:
        """Return the ``wanted`` bits of a sum with values in [low, high], as 0/1 sums."""
        answer: dict[int, Sum] = {}
        total = Sum()
        position = 0
        for bit in sorted(wanted):
            if bit > position:
                total += self.variable(0, (1 << (bit - position)) - 1).scaled(1 << position)
            answer[bit] = self.variable(0, 1)
            total += answer[bit].scaled(1 << bit)
            position = bit + 1
        total += self.variable(low >> position, high >> position).scaled(1 << position)
        self.equations.append(total + value.scaled(-1))
        return answer


def digit_system(layout: CuteLayout | ComposedLayout | LinearLayout, prefix: str = "") -> DigitSystem:
    """Return the function of a layout on its digits: modes of a CuTe layout, input bits of a linear layout.

    Args:
        layout: The layout; the value is its offset, for a linear layout the packed output.
        prefix: Prefix of every variable name, so that two systems can share a formula.

    Example:
        >>> system = digit_system(CuteLayout((4, 8), (1, 5)))
        >>> system.inputs, str(system.value)
        ((('c0', 4), ('c1', 8)), '1*c0 + 5*c1')
    """
    builder = _Builder(prefix)
    function = ""
    if isinstance(layout, LinearLayout):
        function = _parity_text(layout, prefix)
        digits = tuple((f"{prefix}b{index}", 2) for index in range(layout.in_bits))
        value = Sum()
        for row, inputs in enumerate(matrix.transpose(layout.columns, layout.out_bits)):
            bits = [Sum(((name, 1),)) for index, (name, _) in enumerate(digits) if inputs >> index & 1]
            value += builder.parity(bits, layout.constant >> row & 1).scaled(1 << row)
    else:
        modes = layout.base.flat
        digits = tuple((f"{prefix}c{index}", extent) for index, (extent, _) in enumerate(modes))
        value = Sum(tuple((f"{prefix}c{index}", stride) for index, (_, stride) in enumerate(modes) if stride))
        value = _swizzled(layout, value, builder)
    return DigitSystem(digits, tuple(builder.variables), tuple(builder.equations), value, function)


def _parity_text(layout: LinearLayout, prefix: str) -> str:
    """Return a linear layout as an ISL function of its input bits, each output bit a sum modulo 2.

    ISL handles these expressions up to 32 dense bits; with carries as variables it gives up at about 9.

    Example:
        >>> _parity_text(LinearLayout((("x", 2),), (("y", 2),), (1, 3), 2), "")
        '{ [b0, b1] -> [1*((b0 + b1) mod 2) + 2*(1 - b1)] : 0 <= b0 <= 1 and 0 <= b1 <= 1 }'
    """
    names = [f"{prefix}b{index}" for index in range(layout.in_bits)]
    parts = []
    for row, inputs in enumerate(matrix.transpose(layout.columns, layout.out_bits)):
        bits, flip = [name for index, name in enumerate(names) if inputs >> index & 1], layout.constant >> row & 1
        if len(bits) > 1:
            parts.append(f"{1 << row}*(({' + '.join(bits)}{' + 1' * flip}) mod 2)")
        elif bits:
            parts.append(f"{1 << row}*({f'1 - {bits[0]}' if flip else bits[0]})")
        elif flip:
            parts.append(str(1 << row))
    box = " and ".join(f"0 <= {name} <= 1" for name in names) or "0 = 0"
    return f"{{ [{', '.join(names)}] -> [{' + '.join(parts) or '0'}] : {box} }}"


def _swizzled(layout: CuteLayout | ComposedLayout, value: Sum, builder: _Builder) -> Sum:
    """Return the value after the whole stack of swizzles."""
    low, high = span(layout.base.flat)
    for swizzle, offset in reversed(layout.stages):
        value, low, high = value + Sum((), offset), low + offset, high + offset
        sources = swizzle_sources(swizzle)
        bits = builder.bits_of(value, low, high, sorted({*sources, *sources.values()})) if sources else {}
        for target, source in sources.items():
            flipped = builder.parity([bits[target], bits[source]], 0)
            value += (flipped + bits[target].scaled(-1)).scaled(1 << target)
        # a swizzle keeps a number inside its aligned block of one period
        low, high = low // swizzle.period * swizzle.period, (high // swizzle.period + 1) * swizzle.period - 1
    return value


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
    """Digits that express the coordinates of two sides.

    Args:
        digits: The joint digits (name, extent).
        weights: Weight of each joint digit in the flat coordinate; 0 for redundant digits.
        left: Each digit of the left side as a sum of joint digits.
        right: Each digit of the right side, likewise.
        equations: Sums that are zero on valid joint digits.
    """

    digits: tuple[tuple[str, int], ...]
    weights: tuple[int, ...]
    left: tuple[Sum, ...]
    right: tuple[Sum, ...]
    equations: tuple[Sum, ...]

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

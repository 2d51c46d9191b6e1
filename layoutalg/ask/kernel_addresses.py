"""Follow integers and pointers of a kernel in TTGIR: the address of every element, affine in its place in the tensor.

Mathematically: a tensor is followed as ``base + sum(stride[d] * coordinate[d])``, where base and strides are numbers,
or known modulo a number. What is not of this form is a reason in words, with the line where the form is lost. Pointers
count bytes. Integers are taken not to overflow, as Triton takes them for its own vectors.

References: Triton 3.9.0, ``AxisInfo``; ``tt.divisibility`` of a pointer is in bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import gcd
from typing import Final, TypeAlias

from layoutalg.ground import clock
from layoutalg.notation.mlir import Operation, Region, split
from layoutalg.notation.ttgir import Types
from layoutalg.proofs.pipeline.kernels.loops import FOR

ROUNDS: Final = 8
"""Passes over the body of a loop until what it carries is stable."""
NESTED: Final = 3
"""Loops inside each other whose carried values are solved."""
POINTER: Final = re.compile(r"!tt\.ptr<(?:tensor<[\dx]+)?[a-z]+(\d{1,4})(?!\d)")
_INTEGER: Final = re.compile(r"(?:i\d+|index)\b")
_SAME: Final = ("ttg.convert_layout", "arith.extsi", "arith.extui", "arith.index_cast", "arith.index_castui")


@dataclass(frozen=True, slots=True)
class Number:
    """An integer that is ``rest`` modulo ``divisor``, from the values ``names``; ``rest`` itself if that is 0."""

    rest: int = 0
    divisor: int = 1
    names: frozenset[str] = frozenset()

    @staticmethod
    def of(value: int) -> Number:
        return Number(value, 0)

    @staticmethod
    def modulo(rest: int, divisor: int, *parts: Number) -> Number:
        """Return what is computed from parts."""
        if not divisor:
            return Number.of(rest)
        return Number(rest % divisor, divisor, frozenset[str]().union(*[part.names for part in parts]))

    @property
    def value(self) -> int | None:
        """The integer, if it is known."""
        return None if self.divisor else self.rest

    @property
    def factor(self) -> int:
        """What divides the integer; 0 divides 0 only."""
        return gcd(self.rest, self.divisor)

    def __add__(self, other: Number) -> Number:
        return Number.modulo(self.rest + other.rest, gcd(self.divisor, other.divisor), self, other)

    def __mul__(self, other: Number) -> Number:
        mixed = gcd(self.rest * other.divisor, self.divisor * other.rest)
        return Number.modulo(self.rest * other.rest, gcd(self.divisor * other.divisor, mixed), self, other)

    def joined(self, other: Number) -> Number:
        """Return what is known of a number that is one of the two."""
        apart = gcd(self.divisor, other.divisor, self.rest - other.rest)
        return self if self == other else Number.modulo(self.rest, apart, self, other)


ZERO: Final = Number(0, 0)


@dataclass(frozen=True, slots=True)
class Affine:
    """Elements of a tensor, or a scalar: ``base + sum(strides[d] * coordinate[d])``, if what is assumed holds."""

    base: Number
    strides: tuple[Number, ...] = ()
    assumed: tuple[str, ...] = ()

    @property
    def uniform(self) -> bool:
        """Whether all elements are equal."""
        return all(stride == ZERO for stride in self.strides)

    def plus(self, other: Affine, scale: Number) -> Affine:
        """Return the sum with a multiple of another tensor of the same rank."""
        pairs = zip(self.strides, other.strides, strict=True)
        strides = tuple([one + two * scale for one, two in pairs])
        return Affine(self.base + other.base * scale, strides, _both(self, other))


Value: TypeAlias = "Affine | str"
"""A value, or why it is not followed."""


def _both(one: Affine, other: Affine) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.assumed + other.assumed))


class Addresses:
    """One pass over a function; ``operands`` then has the values of the operands of every operation."""

    def __init__(self, function: Operation, types: Types) -> None:
        self.types = types
        self.operands: dict[Operation, tuple[Value, ...]] = {}
        scope: dict[str, Value] = {}
        for name, kind in function.regions[0].arguments if function.regions else ():
            if _INTEGER.match(kind) or kind.startswith("!tt.ptr"):
                found = re.search(r"tt\.divisibility\s*=\s*(\d{1,9})", kind)
                elements = POINTER.match(kind)
                least = max(1, int(elements[1]) // 8) if elements else 1
                scope[name] = Affine(Number(0, max(int(found[1]) if found else 1, least), frozenset([name])))
        for region in function.regions:
            self.run(region, scope, 0)

    def run(self, region: Region, scope: dict[str, Value], depth: int) -> list[Value]:
        """Follow a region; return what it yields."""
        clock.check("an explanation")
        for one in region.operations:
            names = one.operands()
            values = tuple([scope.get(name, f"{name} is not followed") for name in names])
            self.operands[one] = values
            if one.name in ("scf.yield", "ttg.warp_yield"):
                return list(values)
            if one.name == "scf.for":
                ends = self.loop(one, scope, depth)
            elif one.regions and one.name not in ("tt.reduce", "tt.scan"):
                ends = self.branch(one, values, scope, depth)
            else:
                ends = [self.result(one, values)]
            for place, result in enumerate(one.results):
                scope[result] = ends[place] if place < len(ends) else f"line {one.line}: {one.name} is not followed"
        return []

    def branch(self, one: Operation, values: tuple[Value, ...], scope: dict[str, Value], depth: int) -> list[Value]:
        """Follow the regions of a branch, or of warps that are specialized: their arguments are the operands."""
        ends = []
        for region in one.regions:
            inner = dict(scope)
            known = values if one.name == "ttg.warp_specialize" else ()
            for place, (name, _) in enumerate(region.arguments):
                inner[name] = known[place] if place < len(known) else f"line {region.line}: {name} is not followed"
            ends.append(self.run(region, inner, depth))
        if one.name != "scf.if" or len(ends) != 2:
            return []
        return [_joined(first, second, one.line) for first, second in zip(*ends, strict=False)]

    def loop(self, one: Operation, scope: dict[str, Value], depth: int) -> list[Value]:
        """Follow a loop: what it carries is widened until a pass over the body changes nothing."""
        body = one.regions[0] if one.regions else Region("", one.line)
        found = FOR.search(body.header)
        if found is None:
            self.run(body, dict(scope), depth)
            return []
        pairs = [part.partition("=") for part in split(found[5])] if found[5] else []
        names = [name.strip() for name, _, _ in pairs]
        lost = f"line {one.line}: what the loop carries is not followed"
        carried: list[Value] = [scope.get(value.strip(), lost) if depth < NESTED else lost for _, _, value in pairs]
        first, step = (scope.get(found[place]) for place in (2, 4))
        known = isinstance(first, Affine) and isinstance(step, Affine) and not first.strides and not step.strides
        start = first.base.joined(first.base + step.base) if known else Number()  # type: ignore[union-attr]
        counter: Value = Affine(Number(start.rest, start.divisor, frozenset([found[1]])))
        for turn in range(ROUNDS + 1):
            ends = self.run(body, scope | {found[1]: counter} | dict(zip(names, carried, strict=True)), depth + 1)
            ends += [lost] * (len(carried) - len(ends))
            after = [_joined(start, end, one.line) for start, end in zip(carried, ends, strict=False)]
            if after == carried:
                break
            carried = after if turn < ROUNDS - 1 else [lost] * len(carried)
        return carried

    def result(self, one: Operation, values: tuple[Value, ...]) -> Value:
        """Return the result of an operation without regions."""
        types = self.types.of(one.types) if "<" in one.types else ()
        lost = next((value for value in values if isinstance(value, str)), None)
        known = [value for value in values if isinstance(value, Affine)]
        rank = len(types[-1].shape) if types else 0
        found: Value | None = None
        if one.name == "arith.constant":
            number = re.match(r"(?:dense<(-?\d{1,20})>|(-?\d{1,20})(?![\d.]))", one.head)
            if number and ("xi" in one.types or _INTEGER.match(one.types)):
                found = Affine(Number.of(int(number[1] or number[2])), (ZERO,) * rank)
        elif one.name == "tt.make_range" and (start := one.attribute("start")) is not None:
            found = Affine(Number.of(start), (Number.of(1),))
        elif lost is None and known:
            found = self._computed(one, known, types[0].shape if types else (), rank)
        if found is not None:
            return found
        scalar = "tensor" not in one.types and "memdesc" not in one.types
        if scalar and (_INTEGER.match(one.types.rpartition("to ")[2]) or one.name.startswith("tt.get_")):
            return Affine(Number(names=frozenset(one.results)))
        if lost is not None and one.name.startswith(("arith.", "tt.addptr")):
            return lost
        return f"line {one.line}: the result of {one.name} is not followed"

    def _computed(self, one: Operation, known: list[Affine], shape: tuple[int, ...], rank: int) -> Value | None:
        """Return the result of arithmetic, or of an operation that moves elements; None if it is not affine."""
        first, second = known[0], known[1] if len(known) > 1 else None
        if one.name in _SAME:
            return first
        if one.name == "tt.splat":
            return Affine(first.base, (ZERO,) * rank, first.assumed)
        if one.name == "tt.expand_dims" and (axis := one.attribute("axis")) is not None and axis >= 0:
            return Affine(first.base, (*first.strides[:axis], ZERO, *first.strides[axis:]), first.assumed)
        if one.name == "tt.broadcast":
            pairs = zip(first.strides, shape, strict=False)
            kept = tuple([ZERO if extent == 1 else stride for stride, extent in pairs])
            return Affine(first.base, kept, first.assumed)
        if one.name == "tt.make_tensor_ptr":
            return self._block(one, first)
        if second is None or len(first.strides) != len(second.strides) or len(known) > 2:
            return None
        if one.name == "tt.addptr":
            bits = POINTER.search(one.types)
            return first.plus(second, Number.of(int(bits[1]) // 8)) if bits and int(bits[1]) >= 8 else None
        if one.name in ("arith.addi", "arith.subi"):
            return first.plus(second, Number.of(1 if one.name == "arith.addi" else -1))
        if one.name == "arith.muli" and (first.uniform or second.uniform):
            many, factor = (second, first) if first.uniform else (first, second)
            strides = tuple([stride * factor.base for stride in many.strides])
            return Affine(many.base * factor.base, strides, _both(first, second))
        if one.name in ("arith.remsi", "arith.remui") and second.uniform and second.base != ZERO:
            apart = gcd(first.base.divisor, second.base.factor)
            rest = Number(first.base.rest % apart, apart, frozenset(one.results))
            fits = f"line {one.line}: the remainder does not wrap inside the tile"
            return Affine(rest, first.strides, (*_both(first, second), *([] if first.uniform else [fits])))
        if first.uniform and second.uniform and first.strides and one.name.startswith("arith."):
            return Affine(Number(names=frozenset(one.results)), first.strides, _both(first, second))
        return None

    def _block(self, one: Operation, base: Affine) -> Value | None:
        """Return the addresses of a block pointer: its second list are the strides, its third the offsets."""
        bits = re.search(r"<(?:\d+x)+[a-z]+(\d{1,4})(?!\d)", one.types)
        lists = [re.findall(r"%[\w$.-]+(?:#\d+)?", part) for part in re.findall(r"\[([^\]]*)\]", one.head)]
        values = dict(zip(one.operands(), self.operands[one], strict=True))
        numbers = [[value.base for name in part if isinstance(value := values[name], Affine)] for part in lists[:3]]
        if bits is None or len({*map(len, numbers), *map(len, lists[:3])}) != 1 or len(numbers) != 3:
            return None
        size, at = Number.of(int(bits[1]) // 8), base.base
        for stride, offset in zip(*numbers[1:], strict=True):
            at += stride * offset * size
        return Affine(at, tuple([stride * size for stride in numbers[1]]), base.assumed)


def _joined(one: Value, other: Value, line: int) -> Value:
    """Return what is known of a value that is one of the two."""
    if one == other or isinstance(one, str):
        return one
    if isinstance(other, str):
        return other
    if one.strides != other.strides:
        return f"line {line}: the distances of elements differ between the turns or branches"
    return Affine(one.base.joined(other.base), one.strides, _both(one, other))

"""Bits: swizzles, matrices and linear layouts over F2."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from itertools import combinations, pairwise, product
from typing import Any, TypeAlias

from layoutalg import f2
from layoutalg.cute import Swizzle
from layoutalg.cute.fit import swizzle_product
from layoutalg.cute.swizzle import IDENTITY, Stages, fused
from layoutalg.f2 import LinearLayout, carry, matrix
from layoutalg.f2.axes import AxisBits
from layoutalg.f2.carry import source_mask, sum_of_bits, swizzle_columns, swizzle_period, swizzled
from layoutalg.f2.layout import trusted
from layoutalg.f2.matrix import apply, inverse, multiply, transpose
from layoutalg.ground.errors import AdmissibilityError
from layoutalg.proofs.laws.law import BIT_VECTORS, Law, stated
from layoutalg.proofs.laws.solvers import BITWUZLA
from layoutalg.proofs.laws.term import every, some
from layoutalg.proofs.laws.trial import Trial
from layoutalg.proofs.tensormap.swizzle import XORS
from layoutalg.targets.nvidia.tensormap.facts import swizzle_xor, xored

LAWS: list[Law] = []
law = partial(stated, LAWS)

Fields: TypeAlias = tuple[Any, Any, Any]
"""bits, base, shift."""


_ANY = "all swizzles with bits, base < 8 and |shift| < 16, all 32-bit numbers"
_SMALL = "all swizzles with base + bits + |shift| <= 7"


def _fields(trial: Trial, *, apart: bool = True) -> Fields:
    """Return any swizzle; without ``apart`` source and target may overlap."""
    bits, base, shift = trial.bits("bits", 4), trial.bits("base", 4), trial.bits("shift", 5)
    trial.assume(bits >= 0, base >= 0)
    if apart:
        trial.assume(some(every(shift >= 0, bits <= shift), every(shift < 0, bits <= -shift)))
    return bits, base, shift


@law("swizzle.involution", BIT_VECTORS, _ANY)
def _involution(trial: Trial) -> None:
    """Sw(Sw(x)) = x where |shift| >= bits, so that what is read is not written."""
    fields = _fields(trial, apart=True)
    x = trial.bits("x", 32)
    trial.claim(swizzled(swizzled(x, *fields), *fields) == x, "twice is once")


@law("swizzle.linear", BIT_VECTORS, _ANY)
def _linear(trial: Trial) -> None:
    """Sw(x xor y) = Sw(x) xor Sw(y), negative numbers in two's complement."""
    fields = _fields(trial)
    x, y = trial.bits("x", 32), trial.bits("y", 32)
    trial.claim(swizzled(x ^ y, *fields) == swizzled(x, *fields) ^ swizzled(y, *fields), "xor is kept")


@law("swizzle.period", BIT_VECTORS, _ANY)
def _periodic(trial: Trial) -> None:
    """Sw(x + P) = Sw(x) + P for P = 2^(base + bits + |shift|), so one period describes it everywhere."""
    fields = _fields(trial)
    x = trial.bits("x", 32)
    step = swizzle_period(*fields)
    trial.claim(swizzled(x + step, *fields) == swizzled(x, *fields) + step, "a period more is a period more")


@law("swizzle.block", BIT_VECTORS, _ANY)
def _in_block(trial: Trial) -> None:
    """Sw changes only bits below its period: it permutes each aligned block of one period, so a bijection onto [0, N)
    stays one where the period divides N.
    """
    fields = _fields(trial)
    x = trial.bits("x", 32)
    change = swizzled(x, *fields) ^ x
    trial.claim(every(change >= 0, change < swizzle_period(*fields)), "only bits below the period change")


@law("swizzle.offset", BIT_VECTORS, _ANY)
def _commutes(trial: Trial) -> None:
    """Sw(o + x) = o + Sw(x) where o shares no bit with x and none with the bits that Sw reads or writes."""
    fields = _fields(trial)
    bits, base, shift = fields
    x, offset = trial.bits("x", 32), trial.bits("o", 32)
    touched = source_mask(*fields) | source_mask(bits, base, -shift)
    trial.assume(offset & touched == 0, offset & x == 0)
    trial.claim(swizzled(offset + x, *fields) == offset + swizzled(x, *fields), "the offset comes through")


@law("swizzle.columns", BIT_VECTORS, "all swizzles with bits, base < 8 and |shift| < 16, any three 24-bit columns")
def _columns(trial: Trial) -> None:
    """Sw after an F2 map M is the F2 map whose columns are the swizzled columns of M."""
    bits, base, shift = _fields(trial)
    columns = [trial.bits(f"c{k}", 24) for k in range(3)]
    moved = swizzle_columns(bits, base, shift, columns)
    same = [apply(moved, x) == swizzled(apply(columns, x), bits, base, shift) for x in range(8)]
    trial.claim(every(*same), "the columns of the swizzled map are the swizzled columns")


@cache
def _swizzles(reach: int = 7) -> tuple[Swizzle, ...]:
    found = [Swizzle(0, 0, 0)]
    for bits in range(1, reach + 1):
        for base in range(reach + 1 - bits):
            for size in range(bits, reach + 1 - bits - base):
                found += [Swizzle(bits, base, shift) for shift in (size, -size)]
    return tuple(found)


def _of(swizzle: Swizzle) -> tuple[int, int, int]:
    return swizzle.bits, swizzle.base, swizzle.shift


@law("swizzle.recast", BIT_VECTORS, f"{_SMALL}, w = 1, 2, 4, 8, 16, all 20-bit x")
def _recast(trial: Trial) -> None:
    """Sw of bytes at w x is w times Sw' of elements at x, Sw' = recast_elements(w); recast_bytes undoes it."""
    x = trial.bits("x", 20)
    same, back = [], []
    for log in range(5):
        for each in _swizzles():
            if each.bits and each.base < log:
                continue
            whole = Swizzle(each.bits, each.base, each.shift, "byte")
            part = Swizzle.recast_elements(whole, 1 << log)
            same.append(swizzled(x * (1 << log), *_of(whole)) == swizzled(x, *_of(part)) * (1 << log))
            back.append(part.recast_bytes(1 << log) == whole or not each.bits)
    trial.claim(every(*same), "swizzling bytes is swizzling elements")
    trial.claim(every(*back), "recast_bytes undoes recast_elements")


@law("swizzle.product", BIT_VECTORS, "all pairs of swizzles with base + bits + |shift| <= 5, all 12-bit numbers")
def _product(trial: Trial) -> None:
    """swizzle_product(A, B)(x) = A(B(x)), and it is refused exactly where A after B is no swizzle."""
    x = trial.bits("x", 12)
    same = []
    for outer in _swizzles(5):
        for inner in _swizzles(5):
            found = swizzle_product(outer, inner)
            if found is not None:
                same.append(swizzled(swizzled(x, *_of(inner)), *_of(outer)) == swizzled(x, *_of(found)))
    trial.claim(every(*same), "the product is the one after the other")


@law("swizzle.hardware", BIT_VECTORS, "all seven names, all 32-bit addresses")
def _hardware(trial: Trial) -> None:
    """Each named swizzle of the copy engine is its own inverse and what the checker has under that name: 32B, 64B,
    128B are Sw<1,4,3>, Sw<2,4,3>, Sw<3,4,3> of byte addresses, the ATOM ones Sw<2,5,2> and Sw<1,6,1>.
    """
    x = trial.bits("x", 32)
    same = []
    for mode, runs in XORS.items():
        image = x
        for fields in runs:
            image = image ^ (swizzled(x, *fields) ^ x)
        same.append(xored(swizzle_xor(mode), x) == image)
        same.append(xored(swizzle_xor(mode), xored(swizzle_xor(mode), x)) == x)
    trial.claim(every(*same), "the engine's xors are the swizzles")


_SWIZZLES = (Swizzle(1, 0, 1), Swizzle(2, 0, 2), Swizzle(1, 1, -2), Swizzle(2, 1, 3))


def _moved(stages: Stages, value: Any) -> Any:
    """Apply a stack by the definition: add, then xor the bits picked."""
    for swizzle, offset in reversed(stages):
        value = value + offset
        picked = value & swizzle.source_mask
        value = value ^ (picked >> swizzle.shift if swizzle.shift >= 0 else picked << -swizzle.shift)
    return value


@law(
    "composed.spelling",
    BIT_VECTORS,
    "all offsets and numbers of 12 bits in two's complement, stacks of Sw<2,1,3>, Sw<1,1,-2> and offsets",
)
def _one_spelling(trial: Trial) -> None:
    """A stack of swizzles and offsets in its one spelling has the same values: offsets that stand alone join the stage
    applied after them.
    """
    o, p, q, x = [trial.bits(name, 12) for name in "opqx"]
    outer, inner = _SWIZZLES[3], _SWIZZLES[2]
    for stages in (((outer, o), (IDENTITY, p), (inner, q)), ((IDENTITY, o), (outer, p), (IDENTITY, q))):
        found = fused(stages)
        trial.claim(_moved(found, x) == _moved(stages, x), "the stack keeps its values")
        trial.claim(all(swizzle.bits for swizzle, _ in found[1:]), "an offset alone only stands outermost")


Matrix: TypeAlias = tuple[int, ...]


def columns(trial: Trial, count: int, rows: int, name: str = "c") -> Matrix:
    """Return that many columns with any entries, named ``c0``, ``c1``, ..."""
    found = [trial.bits(f"{name}{k}", rows + 1) for k in range(count)]
    trial.assume(*[column >= 0 for column in found])
    return tuple(found)


def matrices(count: int, rows: int) -> Iterator[Matrix]:
    """Return all matrices of that many columns."""
    return product(range(1 << rows), repeat=count)


@law("f2.linear", BIT_VECTORS, "any 4 columns of 16 rows, all x and y")
def _linear_map(trial: Trial) -> None:
    """M (x xor y) = M x xor M y."""
    M = columns(trial, 4, 16)
    pairs = product(range(16), repeat=2)
    trial.claim(every(*[apply(M, x ^ y) == apply(M, x) ^ apply(M, y) for x, y in pairs]), "M (x + y) = M x + M y")


@law("f2.product", BIT_VECTORS, "any 16 by 3 matrix A, all 3 by 2 matrices B")
def _matrix_product(trial: Trial) -> None:
    """(A B) x = A (B x): the columns of the product are the images of the columns."""
    A = columns(trial, 3, 16)
    same = [apply(multiply(A, B), x) == apply(A, apply(B, x)) for B in matrices(2, 3) for x in range(4)]
    trial.claim(every(*same), "(A B) x = A (B x)")


@law("f2.associative", BIT_VECTORS, "any 16 by 3 matrix A, all 3 by 2 matrices B, all columns of C")
def _associative(trial: Trial) -> None:
    """(A B) C = A (B C)."""
    A = columns(trial, 3, 16)
    same = []
    C = range(4)
    for B in matrices(2, 3):
        left, right = multiply(multiply(A, B), C), multiply(A, multiply(B, C))
        same += [one == two for one, two in zip(left, right, strict=True)]
    trial.claim(every(*same), "(A B) C = A (B C), for all columns of C at once")


@law("f2.unit", BIT_VECTORS, "any A of 5 columns and 32 rows")
def _unit(trial: Trial) -> None:
    """A 1 = A and 1 x = x."""
    A = columns(trial, 5, 32)
    one = tuple([1 << bit for bit in range(5)])
    big = tuple([1 << bit for bit in range(32)])
    kept = multiply(A, one)
    trial.claim(every(*[a == b for a, b in zip(kept, A, strict=True)]), "A 1 = A")
    trial.claim(every(*[apply(big, 1 << k) == 1 << k for k in range(32)]), "1 x = x on unit vectors")


@law("f2.transpose", BIT_VECTORS, "any 4 columns of 6 rows")
def _twice(trial: Trial) -> None:
    """The transpose of the transpose is the matrix, and (A B)^T = B^T A^T."""
    A = columns(trial, 4, 6)
    back = transpose(transpose(A, 6), 4)
    trial.claim(every(*[a == b for a, b in zip(back, A, strict=True)]), "the transpose of the transpose")


@law("f2.elimination", BITWUZLA, "any 2 columns of 2 rows")
def _eliminated(trial: Trial) -> None:
    """eliminate(M) is the reduced echelon form: each pivot is the sum of its set of columns, tops ascend, no other
    pivot has a pivot's row, rank + nullity = columns, and reduce(v) is the least element of v + span.
    """
    M = columns(trial, 2, 2)
    found = matrix.eliminate_uncached(M)
    tops = [vector.bit_length() - 1 for vector, _ in found.pivots]
    trial.claim(found.rank + len(found.null) == 2, "rank and nullity")
    trial.claim(every(*[apply(M, used) == vector for vector, used in found.pivots]), "each pivot is the sum of its set")
    trial.claim(every(*[apply(M, used) == 0 for used in found.null]), "each null set sums to zero")
    trial.claim(all(below < above for below, above in pairwise(tops)), "ascending")
    others = [(top, vector) for k, top in enumerate(tops) for j, (vector, _) in enumerate(found.pivots) if k != j]
    trial.claim(every(*[vector >> top & 1 == 0 for top, vector in others]), "reduced")
    trial.claim(every(*[found.reduce(column)[0] == 0 for column in M]), "every column is in the span")


@law("f2.inverse", BITWUZLA, "any 2 by 2 matrix")
def _inverse(trial: Trial) -> None:
    """inverse(M) M = 1 = M inverse(M), and exactly the singular matrices are refused."""
    M = columns(trial, 2, 2)
    try:
        back = inverse(M)
    except AdmissibilityError:
        trial.claim(M[0] == 0 or M[1] == 0 or M[0] == M[1], "a refused matrix is singular")
        return
    for one in (multiply(back, M), multiply(M, back)):
        trial.claim(every(*[column == 1 << k for k, column in enumerate(one)]), "the product is the identity")


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


@law(
    "linear.composition",
    BIT_VECTORS,
    "any affine A from two 1-bit axes to 16 bits, all affine B of 2 bits onto these axes in the other order",
)
def _composition(trial: Trial) -> None:
    """(A @ B)(i) = A(B(i)), the axes between them matched by name."""
    A = any_layout(trial, _XY, (("o", 16),))
    same = []
    for B in every_layout((("i", 2),), _YX):
        both = A @ B
        same += [both(i=i)["o"] == A.apply(B(i=i))["o"] for i in range(4)]
    trial.claim(every(*same), "(A @ B)(i) = A(B(i))")


@law("linear.associative", BIT_VECTORS, "any affine A from 2 bits to 16 bits, all matrices of B, all C of one bit")
def _associative_layouts(trial: Trial) -> None:
    """(A @ B) @ C = A @ (B @ C), affine parts included."""
    A = any_layout(trial, _XY, (("o", 16),))
    same = []
    for B, C in product(every_layout(_YX, _XY, False), every_layout((("i", 1),), _XY)):
        B = trusted(B.in_axes, B.out_axes, B.columns, 1)
        one, two = (A @ B) @ C, A @ (B @ C)
        same += [one(i=i)["o"] == two(i=i)["o"] for i in range(2)]
    trial.claim(every(*same), "(A @ B) @ C = A @ (B @ C)")


@law("linear.direct_sum", BIT_VECTORS, "any affine A and B of 1 bit to 2 bits")
def _direct_sum(trial: Trial) -> None:
    """(A * B)(x + m y) = A(x) + n B(y) with m and n the sizes of A's axes."""
    A = any_layout(trial, (("i", 1),), (("o", 2),), "a")
    B = any_layout(trial, (("i", 1),), (("o", 2),), "b")
    both = B * A if False else A * B
    same = [both(i=x + 2 * y)["o"] == A(i=x)["o"] + 4 * B(i=y)["o"] for x in range(2) for y in range(2)]
    trial.claim(every(*same), "(A * B)(x + 2 y) = A(x) + 4 B(y)")


@law("linear.sum_associative", BIT_VECTORS, "any affine last factor of 1 bit")
def _sum_of_three(trial: Trial) -> None:
    """The direct sum is associative with unit empty(); it does not commute."""
    A, B, C = (LinearLayout((("i", 1),), (("o", 2),), (k,), k ^ 3) for k in (1, 2, 3))
    D = any_layout(trial, (("i", 1),), (("o", 1),))
    one, two = (A * B) * (C * D), A * (B * (C * D))
    trial.claim(equal(one, two), "(A * B) * C = A * (B * C)")
    trial.claim(every(equal(D * f2.empty(), D), equal(f2.empty() * D, D)), "the empty layout is the unit")


def equal(one: LinearLayout, two: LinearLayout) -> Any:
    if (one.in_axes, one.out_axes) != (two.in_axes, two.out_axes):
        return False
    pairs = zip((*one.columns, one.constant), (*two.columns, two.constant), strict=True)
    return every(*[a == b for a, b in pairs])


@law("linear.division", BITWUZLA, "any affine B of 1 and C of 2 bits to 1 bit")
def _divided(trial: Trial) -> None:
    """divide_left(B * C, B) = C and divide_right(B * C, C) = B; a quotient is refused exactly where there is none."""
    B = any_layout(trial, (("i", 1),), (("o", 1),), "b")
    C = any_layout(trial, (("i", 2),), (("o", 1),), "c")
    trial.claim(equal(f2.divide_left(B * C, B), C), "divide_left(B * C, B) = C")
    trial.claim(equal(f2.divide_right(B * C, C), B), "divide_right(B * C, C) = B")


@law("linear.axes", BIT_VECTORS, "any affine layout of two axes with 3 bits to 3 bits")
def _axes(trial: Trial) -> None:
    """Reshaping and flattening keep the flat map; transposing keeps the map by name."""
    L = any_layout(trial, (("a", 1), ("b", 2)), (("r", 2), ("s", 1)))
    flat = f2.reshape_outs(f2.reshape_ins(L, {"c": 4, "d": 2}), {"t": 2, "u": 4})
    trial.claim(every(*[flat.at(i) == L.at(i) for i in range(8)]), "reshaping keeps the flat map")
    joined = f2.flatten_outs(f2.flatten_ins(L, "k"), "v")
    trial.claim(every(*[joined.at(i) == L.at(i) for i in range(8)]), "flattening keeps the flat map")
    turned = f2.transpose_outs(f2.transpose_ins(L, ("b", "a")), ("s", "r"))
    points = list(product(range(2), range(4)))
    same = [turned(a=a, b=b)[name] == L(a=a, b=b)[name] for a, b in points for name in ("r", "s")]
    trial.claim(every(*same), "transposing keeps the map by name")


@law("linear.joins", BIT_VECTORS, "any affine A, B, C of one bit to 8 and 4 bits")
def _joins(trial: Trial) -> None:
    """concat_ins(A, B)(x, y) = A(x) xor B(y) and concat_outs(A, C)(x) = (A(x), C(x))."""
    A, B = (any_layout(trial, ((name, 1),), (("o", 8),), name) for name in ("x", "y"))
    C = any_layout(trial, (("x", 1),), (("p", 4),), "z")
    ins, outs = f2.concat_ins(A, B), f2.concat_outs(A, C)
    for x, y in product(range(2), repeat=2):
        one, two = A(x=x)["o"], B(y=y)["o"]
        trial.claim(ins(x=x, y=y)["o"] == one ^ two, "side by side is the xor")
    trial.claim(every(*[outs(x=x)["o"] == A(x=x)["o"] for x in range(2)]), "on top of each other: the first part")
    trial.claim(every(*[outs(x=x)["p"] == C(x=x)["p"] for x in range(2)]), "on top of each other: the second part")


@law("linear.sizes", BIT_VECTORS, "any affine layout of 3 bits to axes of 3 and 2 bits")
def _sizes(trial: Trial) -> None:
    """resize_in restricts, broadcast_in repeats, resize_out keeps every value, mask_out is modulo a size."""
    L = any_layout(trial, (("i", 3),), (("o", 3), ("p", 2)))
    less, more, wide = f2.resize_in(L, "i", 4), f2.broadcast_in(L, "i", 16), f2.resize_out(L, "o", 32)
    trial.claim(every(*[less.at(i) == L.at(i) for i in range(4)]), "resize_in restricts")
    trial.claim(every(*[more.at(i) == L.at(i % 8) for i in range(16)]), "broadcast_in repeats")
    narrow = f2.mask_out(L, "o", 4)
    for name in ("o", "p"):
        trial.claim(every(*[wide(i=i)[name] == L(i=i)[name] for i in range(8)]), "resize_out keeps every value")
    trial.claim(every(*[narrow(i=i)["o"] == L(i=i)["o"] & 3 for i in range(8)]), "mask_out is modulo the size")
    trial.claim(every(*[narrow(i=i)["p"] == L(i=i)["p"] for i in range(8)]), "mask_out leaves the other axes")


@law("linear.offsets", BITWUZLA, "any affine layout of 3 bits to 4 bits")
def _offsets(trial: Trial) -> None:
    """flip_in(L)(i) = L(n - 1 - i), flip_out(L)(i) = n - 1 - L(i), xor_in, xor_out and fix_in as they say."""
    L = any_layout(trial, (("i", 3),), (("o", 4),))
    back, mirrored = f2.flip_in(L, "i"), f2.flip_out(L, "o")
    trial.claim(every(*[back.at(i) == L.at(7 - i) for i in range(8)]), "flip_in runs backwards")
    trial.claim(every(*[mirrored.at(i) == 15 - L.at(i) for i in range(8)]), "flip_out mirrors")
    for k in range(8):
        inner, outer = f2.xor_in(L, {"i": k}), f2.xor_out(L, {"o": k})
        trial.claim(every(*[inner.at(i) == L.at(i ^ k) for i in range(8)]), "xor_in")
        trial.claim(every(*[outer.at(i) == L.at(i) ^ k for i in range(8)]), "xor_out")
        trial.claim(f2.fix_in(L, {"i": k}).at(0) == L.at(k), "fix_in")


@law("linear.windows", BITWUZLA, "any 4 columns of 6 rows, all windows of 2, 4 or 8 points from 0..8")
def _windows(trial: Trial) -> None:
    """x -> M (start + x) is affine, or carry_seen finds four points whose xor is 0 and whose values' xor is not."""
    M = columns(trial, 4, 6)
    for start, count in product(range(9), range(1, 4)):
        if start + (1 << count) > 16:
            continue
        values = [matrix.apply(M, start + x) for x in range(1 << count)]
        four = carry.carry_seen(M, start, count)
        if four is None:
            units = [values[0] ^ values[1 << bit] for bit in range(count)]
            same = [matrix.apply(units, x) ^ values[0] == value for x, value in enumerate(values)]
            trial.claim(every(*same), "the values at 0 and at the powers of two fix the others")
        else:
            a, b, c, d = four
            trial.claim(a ^ b ^ c ^ d == 0, "the four points")
            trial.claim(values[a] ^ values[b] ^ values[c] ^ values[d] != 0, "their values")


@law("linear.repetitions", BIT_VECTORS, "any affine tile and copies of 1 bit to 2 bits")
def _repeated(trial: Trial) -> None:
    """L(x) = R(x) + tile(x mod tile) for R = repetitions(L, tile)."""
    A = any_layout(trial, (("i", 1),), (("o", 2),), "a")
    B = any_layout(trial, (("i", 1),), (("o", 2),), "b")
    R = f2.repetitions(A * B, A)
    whole = A * B
    trial.claim(every(*[R.at(x) + A.at(x % 2) == whole.at(x) for x in range(4)]), "L(x) = R(x) + tile(x mod tile)")


@law("linear.actions", BIT_VECTORS, "any affine layout of 3 bits to 8 bits, four actions")
def _actions(trial: Trial) -> None:
    """Permuting and dropping bits of an axis is composition with a layout; its inverse undoes a permutation."""
    L = any_layout(trial, (("r", 3),), (("o", 8),))
    same = []
    for sources in ((1, 2, 0), (2, 0), (0, 2, 1), (1,)):
        action = LinearLayout((("r", len(sources)),), (("r", 3),), tuple([1 << source for source in sources]))
        same.append(equal(f2.map_in(L, action), L @ action))
        if action.is_invertible:
            same.append(equal(f2.map_in(f2.map_in(L, action), action.inverse()), L))
    trial.claim(every(*same), "an action is composition with its layout")


@law("convert.carry_free", BIT_VECTORS, "all offsets and three addends of 16 bits, negative too")
def _carry_free(trial: Trial) -> None:
    """o + sum a_j x_j is affine over F2 exactly where the (o + a_j) xor o share no bit; these are its columns."""
    offset = trial.bits("o", 16)
    addends = [trial.bits(f"a{k}", 16) for k in range(3)]
    found = sum_of_bits(offset, addends)

    def value(x: int) -> Any:
        return sum([addend for k, addend in enumerate(addends) if x >> k & 1], offset)

    if found is None:
        pairs = [(1 << j, 1 << k) for j, k in combinations(range(3), 2)]
        trial.claim(some(*[value(x | y) != value(x) ^ value(y) ^ offset for x, y in pairs]), "some pair carries")
    else:
        same = [value(x) == offset ^ apply(found, x) for x in range(8)]
        trial.claim(every(*same), "the sum is the xor of the columns")

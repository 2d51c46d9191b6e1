"""Linear layouts: axes, joins, sizes, offsets, windows, bits of registers, banks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from layoutalg import f2
from layoutalg.f2 import LinearLayout, carry, matrix
from layoutalg.f2.layout import trusted
from layoutalg.proofs.laws.engines import bit_vectors, by, enumerated
from layoutalg.proofs.laws.f2_layouts import any_layout, equal, every_layout
from layoutalg.proofs.laws.f2_matrix import Matrix, columns, matrices
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.solvers import BITWUZLA
from layoutalg.proofs.laws.term import every
from layoutalg.proofs.laws.trial import Trial

Maps = Callable[..., Any]


def _axes(trial: Trial, transpose: Maps = f2.transpose_ins) -> None:
    L = any_layout(trial, (("a", 1), ("b", 2)), (("r", 2), ("s", 1)))
    flat = f2.reshape_outs(f2.reshape_ins(L, {"c": 4, "d": 2}), {"t": 2, "u": 4})
    trial.claim(every(*[flat.at(i) == L.at(i) for i in range(8)]), "reshaping keeps the flat map")
    joined = f2.flatten_outs(f2.flatten_ins(L, "k"), "v")
    trial.claim(every(*[joined.at(i) == L.at(i) for i in range(8)]), "flattening keeps the flat map")
    turned = f2.transpose_outs(transpose(L, ("b", "a")), ("s", "r"))
    points = list(product(range(2), range(4)))
    same = [turned(a=a, b=b)[name] == L(a=a, b=b)[name] for a, b in points for name in ("r", "s")]
    trial.claim(every(*same), "transposing keeps the map by name")


def _renamed(layout: LinearLayout, names: tuple[str, ...]) -> LinearLayout:
    """Write the axes in the new order over the old bits."""
    return trusted(
        tuple([(name, dict(layout.in_axes)[name]) for name in names]), layout.out_axes, layout.columns, layout.constant
    )


def _joins(trial: Trial, disjoint: bool = False) -> None:
    A, B = (any_layout(trial, ((name, 1),), (("o", 8),), name) for name in ("x", "y"))
    C = any_layout(trial, (("x", 1),), (("p", 4),), "z")
    ins, outs = f2.concat_ins(A, B), f2.concat_outs(A, C)
    for x, y in product(range(2), repeat=2):
        one, two = A(x=x)["o"], B(y=y)["o"]
        trial.claim(ins(x=x, y=y)["o"] == (one | two if disjoint else one ^ two), "side by side is the xor")
    trial.claim(every(*[outs(x=x)["o"] == A(x=x)["o"] for x in range(2)]), "on top of each other: the first part")
    trial.claim(every(*[outs(x=x)["p"] == C(x=x)["p"] for x in range(2)]), "on top of each other: the second part")


def _sizes(trial: Trial, masked: Maps = f2.mask_out) -> None:
    L = any_layout(trial, (("i", 3),), (("o", 3), ("p", 2)))
    less, more, wide = f2.resize_in(L, "i", 4), f2.broadcast_in(L, "i", 16), f2.resize_out(L, "o", 32)
    trial.claim(every(*[less.at(i) == L.at(i) for i in range(4)]), "resize_in restricts")
    trial.claim(every(*[more.at(i) == L.at(i % 8) for i in range(16)]), "broadcast_in repeats")
    narrow = masked(L, "o", 4)
    for name in ("o", "p"):
        trial.claim(every(*[wide(i=i)[name] == L(i=i)[name] for i in range(8)]), "resize_out keeps every value")
    trial.claim(every(*[narrow(i=i)["o"] == L(i=i)["o"] & 3 for i in range(8)]), "mask_out is modulo the size")
    trial.claim(every(*[narrow(i=i)["p"] == L(i=i)["p"] for i in range(8)]), "mask_out leaves the other axes")


def _offsets(trial: Trial, flip: Maps = f2.flip_in) -> None:
    L = any_layout(trial, (("i", 3),), (("o", 4),))
    back, mirrored = flip(L, "i"), f2.flip_out(L, "o")
    trial.claim(every(*[back.at(i) == L.at(7 - i) for i in range(8)]), "flip_in runs backwards")
    trial.claim(every(*[mirrored.at(i) == 15 - L.at(i) for i in range(8)]), "flip_out mirrors")
    for k in range(8):
        inner, outer = f2.xor_in(L, {"i": k}), f2.xor_out(L, {"o": k})
        trial.claim(every(*[inner.at(i) == L.at(i ^ k) for i in range(8)]), "xor_in")
        trial.claim(every(*[outer.at(i) == L.at(i) ^ k for i in range(8)]), "xor_out")
        trial.claim(f2.fix_in(L, {"i": k}).at(0) == L.at(k), "fix_in")


def _columns_reversed(layout: LinearLayout, name: str) -> LinearLayout:  # noqa: ARG001
    """Reverse the order of the bits."""
    return trusted(layout.in_axes, layout.out_axes, layout.columns[::-1], layout.constant)


def _windows(trial: Trial, seen: Callable[..., Any] = carry.carry_seen) -> None:
    """A window is affine exactly where no carry is seen; the four points of a refusal show that it is not."""
    M = columns(trial, 4, 6)
    for start, count in product(range(9), range(1, 4)):
        if start + (1 << count) > 16:
            continue
        values = [matrix.apply(M, start + x) for x in range(1 << count)]
        four = seen(M, start, count)
        if four is None:
            units = [values[0] ^ values[1 << bit] for bit in range(count)]
            same = [matrix.apply(units, x) ^ values[0] == value for x, value in enumerate(values)]
            trial.claim(every(*same), "the values at 0 and at the powers of two fix the others")
        else:
            a, b, c, d = four
            trial.claim(a ^ b ^ c ^ d == 0, "the four points")
            trial.claim(values[a] ^ values[b] ^ values[c] ^ values[d] != 0, "their values")


def _aligned_alone(M: Matrix, start: int, count: int) -> tuple[int, int, int, int] | None:
    """See carries only inside the window."""
    four = carry.carry_seen(M, start, count)
    return four if four is not None and matrix.apply(M[:count], four[3] ^ four[0]) else None


def _bank_case(case: tuple[Matrix, int], degree: Maps = f2.conflict_degree) -> str | None:
    found, bits = case
    access = LinearLayout((("lane", 3),), (("offset", 4),), found)
    words = {value * bits // 32 + part for value in access.table().tolist() for part in range(max(1, bits // 32))}
    wanted = max(Counter(word % 4 for word in words).values())
    return None if degree(access, bits, banks=4) == wanted else f"{wanted} turns at {bits} bits"


def _by_element(access: LinearLayout, element_bits: int, banks: int) -> int:
    """Count elements of a bank above those of one word: broadcasts within a word are not seen."""
    shift = element_bits.bit_length() - 6
    if shift >= 0:
        return f2.conflict_degree(access, element_bits, banks=banks)
    numbers = [column & ((banks << -shift) - 1) for column in access.columns]
    return 1 << matrix.rank(access.columns) - matrix.rank(numbers)


def _bank_cases() -> Iterator[tuple[Matrix, int]]:
    return product(matrices(3, 4), (8, 16, 32, 64))


def _consecutive(layout: LinearLayout, run: Maps = f2.num_consecutive) -> str | None:
    table = layout.table().tolist()

    def fits(size: int) -> bool:
        return all(
            table[i] == table[i // size * size] + i % size and table[i // size * size] % size == 0 for i in range(8)
        )

    wanted = max(size for size in (1, 2, 4, 8) if fits(size))
    return None if run(layout) == wanted else f"{wanted} neighbours"


def _unaligned(layout: LinearLayout) -> int:
    """Count unit columns and forget the alignment of the others."""
    return 1 << next((k for k, column in enumerate(layout.columns) if column != 1 << k), 3)


def _repeated(trial: Trial, wrong: bool = False) -> None:
    A = any_layout(trial, (("i", 1),), (("o", 2),), "a")
    B = any_layout(trial, (("i", 1),), (("o", 2),), "b")
    R = f2.repetitions(A * B, A)
    whole = B * A if wrong else A * B
    trial.claim(every(*[R.at(x) + A.at(x % 2) == whole.at(x) for x in range(4)]), "L(x) = R(x) + tile(x mod tile)")


def _actions(trial: Trial, order: int = 1) -> None:
    L = any_layout(trial, (("r", 3),), (("o", 8),))
    same = []
    for sources in ((1, 2, 0), (2, 0), (0, 2, 1), (1,)):
        action, turned = (
            LinearLayout((("r", len(some)),), (("r", 3),), tuple(1 << source for source in some))
            for some in (sources, sources[::order])
        )
        same.append(equal(f2.map_in(L, turned), L @ action))
        if action.is_invertible:
            same.append(equal(f2.map_in(f2.map_in(L, action), action.inverse()), L))
    trial.claim(every(*same), "an action is composition with its layout")


_F2 = "layoutalg.f2."

LAWS = (
    Law(
        "linear.axes",
        "Reshaping and flattening keep the flat map; transposing keeps the map by name.",
        (f"{_F2}reshape_ins", f"{_F2}reshape_outs", f"{_F2}flatten_ins", f"{_F2}flatten_outs", f"{_F2}transpose_ins"),
        bit_vectors(_axes, partial(_axes, transpose=_renamed), "any affine layout of two axes with 3 bits to 3 bits"),
    ),
    Law(
        "linear.joins",
        "concat_ins(A, B)(x, y) = A(x) xor B(y) and concat_outs(A, C)(x) = (A(x), C(x)).",
        (f"{_F2}concat_ins", f"{_F2}concat_outs"),
        bit_vectors(_joins, partial(_joins, disjoint=True), "any affine A, B, C of one bit to 8 and 4 bits"),
    ),
    Law(
        "linear.sizes",
        "resize_in restricts, broadcast_in repeats, resize_out keeps every value, mask_out is modulo a size.",
        (f"{_F2}resize_in", f"{_F2}broadcast_in", f"{_F2}resize_out", f"{_F2}mask_out"),
        bit_vectors(_sizes, partial(_sizes, masked=f2.zero_out), "any affine layout of 3 bits to axes of 3 and 2 bits"),
    ),
    Law(
        "linear.offsets",
        "flip_in(L)(i) = L(n - 1 - i), flip_out(L)(i) = n - 1 - L(i), xor_in, xor_out and fix_in as they say.",
        (f"{_F2}flip_in", f"{_F2}flip_out", f"{_F2}xor_in", f"{_F2}xor_out", f"{_F2}fix_in"),
        by(BITWUZLA, _offsets, partial(_offsets, flip=_columns_reversed), "any affine layout of 3 bits to 4 bits"),
    ),
    Law(
        "linear.windows",
        "x -> M (start + x) is affine, or carry_seen finds four points whose xor is 0 and whose values' xor is not.",
        (f"{_F2}slice_in", f"{_F2}carry.carry_seen"),
        by(
            BITWUZLA,
            _windows,
            partial(_windows, seen=_aligned_alone),
            "any 4 columns of 6 rows, all windows of 2, 4 or 8 points from 0..8",
        ),
    ),
    Law(
        "linear.repetitions",
        "L(x) = R(x) + tile(x mod tile) for R = repetitions(L, tile).",
        (f"{_F2}repetitions",),
        bit_vectors(_repeated, partial(_repeated, wrong=True), "any affine tile and copies of 1 bit to 2 bits"),
    ),
    Law(
        "linear.actions",
        "Permuting and dropping bits of an axis is composition with a layout; inverse() undoes a permutation.",
        (f"{_F2}map_in",),
        bit_vectors(_actions, partial(_actions, order=-1), "any affine layout of 3 bits to 8 bits, four actions"),
    ),
    Law(
        "linear.banks",
        "conflict_degree is the most different words of one bank: 2^(rank W - rank K).",
        (f"{_F2}conflict_degree",),
        enumerated(
            _bank_cases,
            _bank_case,
            partial(_bank_case, degree=_by_element),
            "all linear accesses of 3 lane bits to 4 offset bits, 8, 16, 32 and 64 bit elements, 4 banks",
            16384,
        ),
        why_bounded="A count of words is compared, all points listed.",
    ),
    Law(
        "linear.consecutive",
        "num_consecutive(L) is the largest V for which aligned runs of V neighbours stay aligned runs.",
        (f"{_F2}num_consecutive",),
        enumerated(
            lambda: every_layout((("i", 3),), (("o", 3),)),
            _consecutive,
            partial(_consecutive, run=_unaligned),
            "all affine layouts of 3 bits to 3 bits",
            4096,
        ),
        why_bounded="That no larger run exists is seen on the table.",
    ),
)

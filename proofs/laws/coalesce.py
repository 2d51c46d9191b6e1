"""Coalescing: the function stays, and equal functions have equal forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise, product

from layoutalg.cute import CuteLayout, coalesce
from layoutalg.cute.layout import from_flat
from layoutalg.ground.digits import Flat, evaluate, merge
from layoutalg.proofs.laws.engines import enumerated, integers
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.places import modes
from layoutalg.proofs.laws.term import some
from layoutalg.proofs.laws.trial import Trial

_STEP = "all extents >= 1, all strides; two modes: base and step of the induction"
_BOX = "layouts of at most 2 modes with extents 1..4 and strides -2..5"


def _wrong_merge(flat: Flat) -> Flat:
    """Fuse neighbours of equal stride."""
    (s, d), (t, e) = flat
    return ((s * t, d),) if d == e else flat


def _wrong_coalesce(layout: CuteLayout) -> CuteLayout:
    return from_flat(_wrong_merge(layout.flat)) if len(layout.flat) == 2 else layout


def _keeps(trial: Trial, merge: Callable[[Flat], Flat] = merge) -> None:
    flat = modes(trial, 2)
    index = trial.digit("i", flat[0][0] * flat[1][0])
    trial.claim(evaluate(merge(flat), index) == evaluate(flat, index), "merge keeps the value at i")


def _idempotent(trial: Trial, least: int = 2) -> None:
    flat = modes(trial, 3)
    for (s, d), (_, e) in pairwise(flat):
        trial.assume(s >= least, s * d != e)
    trial.assume(flat[-1][0] >= least)
    again = merge(flat)
    trial.claim(len(again) == len(flat), "merge keeps every mode of a normal form")
    for kept, mode in zip(again, flat, strict=True):
        trial.claim(kept[0] == mode[0], "merge keeps its extents")
        trial.claim(kept[1] == mode[1], "merge keeps its strides")


def _complete(trial: Trial, normal: bool = True) -> None:
    one, two = modes(trial, 2), modes(trial, 2, "t", "e")
    for (s, d), (t, e) in (one, two):
        trial.assume(s >= 2, t >= 2)
        if normal:
            trial.assume(s * d != e)
    (s, _), (t, _) = one[0], two[0]
    trial.assume(some(s != t, one[0][1] != two[0][1]))
    if s > t:
        one, two, s, t = two, one, t, s
    trial.divides(1, s, 0, 1)
    trial.divides(1, t, 0, 1)
    if s < t:
        trial.divides(s, s, 1)
        trial.divides(s, t, 0, s)
    differ = [evaluate(one, point) != evaluate(two, point) for point in (1, s)]
    trial.claim(
        some(*differ), "normal forms whose first modes differ are unequal at 1 or at the end of the shorter mode"
    )


def _layouts() -> Iterator[CuteLayout]:
    for count in (1, 2):
        for shape, stride in product(product(range(1, 5), repeat=count), product(range(-2, 6), repeat=count)):
            yield CuteLayout(shape, stride)


def _same_table(layout: CuteLayout, coalesce: Callable[[CuteLayout], CuteLayout] = coalesce) -> str | None:
    form = coalesce(layout)
    if form.table().tolist() != layout.table().tolist():
        return "the function changed"
    return None if coalesce(form) == form else "coalescing again changes the form"


def _one_form(layouts: tuple[CuteLayout, ...], form: Callable[[CuteLayout], object] = coalesce) -> str | None:
    tables = {tuple(layout.table().tolist()) for layout in layouts}
    pairs = {(form(layout), tuple(layout.table().tolist())) for layout in layouts}
    one_each = len(pairs) == len(tables) == len({form for form, _ in pairs})
    return None if one_each else "equal forms of unequal functions, or unequal forms of equal functions"


def _all_layouts() -> Iterator[tuple[CuteLayout, ...]]:
    yield tuple(_layouts())


LAWS = (
    Law(
        "coalesce.function",
        "coalesce(L)(i) = L(i) for every 1-D coordinate i; by induction over the modes, as merge compares each mode "
        "with the last one kept alone.",
        ("layoutalg.cute.coalesce", "layoutalg.ground.digits.merge", "layoutalg.ground.digits.evaluate"),
        (
            *integers(_keeps, partial(_keeps, merge=_wrong_merge), _STEP),
            *enumerated(_layouts, _same_table, partial(_same_table, coalesce=_wrong_coalesce), f"all {_BOX}", 1056),
        ),
    ),
    Law(
        "coalesce.idempotent",
        "coalesce(coalesce(L)) = coalesce(L): a list without extents 1 whose neighbours do not continue each other "
        "stays as it is.",
        ("layoutalg.cute.coalesce", "layoutalg.ground.digits.merge"),
        integers(_idempotent, partial(_idempotent, least=1), "all extents, all strides; three modes"),
    ),
    Law(
        "coalesce.complete",
        "coalesce(A) = coalesce(B) exactly where A and B are the same function: normal forms whose first modes differ "
        "differ at 1 or at the end of the shorter mode, and those with the same first mode reduce to the rest.",
        ("layoutalg.cute.coalesce", "layoutalg.ground.digits.merge"),
        (
            *integers(_complete, partial(_complete, normal=False), _STEP),
            *enumerated(_all_layouts, _one_form, partial(_one_form, form=str), f"all pairs of the 1,056 {_BOX}", 1),
        ),
    ),
)

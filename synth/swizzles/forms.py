"""Restricted forms of swizzles: the hardware's, CuTe's, and one XOR of chunks with a linear map of the row.

``tma`` and ``cute`` have few layouts, and each is evaluated. ``xor`` has one layout per map from row bits to chunk
bits: the places inside a chunk and thus the instructions are fixed, and what the rows add to the bank number is found
by branch and bound (``search.least``). If a chunk is smaller than a lane's vector, the lowest bits of the map decide
which instructions are possible; these are enumerated.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.f2.axes import fields
from layoutalg.ground import clock
from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.proofs.swizzling import SwizzlePlan
from layoutalg.synth.swizzles.needs import Need
from layoutalg.synth.swizzles.needs import floor as floor_of
from layoutalg.synth.swizzles.needs import needs as needs_of
from layoutalg.synth.swizzles.reading import Question
from layoutalg.synth.swizzles.search import Found, Space, least
from layoutalg.synth.swizzles.solving import served_by, space_of
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap.facts import swizzle_supported

FORMS = ("any", "tma", "cute", "xor")
NODES = 4_000_000
MOST_BOX = 256
MOST_SPAN = 20
Xor = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Member:
    """A layout of a form."""

    name: str  # description for reports
    order: tuple[int, ...]  # tile bits from the lowest offset bit up
    xor: Xor = ()  # pairs of offset bits (target, source), applied simultaneously

    def columns(self) -> tuple[int, ...]:
        """Return the offset of every tile bit."""
        placed = {tile_bit: 1 << at for at, tile_bit in enumerate(self.order)}
        reads: dict[int, int] = {}
        for target, source in self.xor:
            reads[1 << source] = reads.get(1 << source, 0) ^ 1 << target
        return tuple(placed[bit] ^ reads.get(placed[bit], 0) for bit in range(len(self.order)))

    def layout(self, asked: Question) -> LinearLayout:
        """Return the layout over F2."""
        axes = asked.accesses[0].layout.out_axes
        return LinearLayout(axes, (("offset", asked.bits),), self.columns())

    def cute(self, asked: Question) -> str:
        """Return the layout in CuTe's notation, tile coordinates to element offsets."""
        places = {tile_bit: at for at, tile_bit in enumerate(self.order)}
        modes = []
        for _, first, bits in fields(asked.accesses[0].layout.out_axes):
            runs: list[list[int]] = []
            for bit in range(first, first + bits):
                if runs and places[bit] == runs[-1][1] + runs[-1][0].bit_length() - 1:
                    runs[-1][0] *= 2
                else:
                    runs.append([2, places[bit]])
            modes.append(tuple((size, 1 << place) for size, place in runs) or ((1, 0),))
        shape, stride = (
            tuple(m[0][at] if len(m) == 1 else tuple(run[at] for run in m) for m in modes) for at in (0, 1)
        )
        found: CuteLayout | ComposedLayout = CuteLayout(shape, stride)
        for swizzle in _swizzles(self.xor):
            found = ComposedLayout(swizzle, 0, found)
        return str(found)


def _swizzles(xor: Xor) -> list[Swizzle]:
    """Write an XOR as swizzles of runs of bits; no source is a target, so their order does not matter."""
    found = []
    left = sorted(xor, key=lambda pair: (pair[1] - pair[0], pair[0]))
    while left:
        target, source = left.pop(0)
        shift, bits = source - target, 1
        while (target + bits, source + bits) in left and bits < abs(shift):
            left.remove((target + bits, source + bits))
            bits += 1
        found.append(Swizzle(bits, min(target, source), shift))
    return found


def restricted(asked: Question, form: str, chunk_bytes: int) -> SwizzlePlan:
    """Return the best layout of a form, with a proof of what is known about its optimality.

    Raises: RepresentabilityError: LA913, if the form has no layout for the tile or no instruction moves an access.
    """
    if form == "xor":
        return _best_xor(asked, chunk_bytes)
    members = list(_hardware(asked) if form == "tma" else _cute(asked))
    best: tuple[tuple[int, int], SwizzlePlan] | None = None
    floor, counted = floor_of(asked), 0
    for member in members:
        if best is not None and (best[0][0] == floor or clock.left() <= 0):
            break
        counted += 1
        plan = _plan(asked, member, form)
        if plan is not None and (best is None or cost_of(plan) < best[0]):
            best = cost_of(plan), replace(plan, proof=member.name)
    if best is None:
        raise _no_layout(asked, form, f"no known instruction can use any of its {len(members)} layouts")
    plan = best[1]
    if plan.turns == floor:
        return replace(plan, bound=floor, proof=f"{plan.proof}; no layout of any form takes fewer turns")
    if counted < len(members):
        proof = f"{plan.proof}; {counted} of {len(members)} layouts of the form were tried in the time limit"
        return replace(plan, bound=floor, proof=proof)
    free = "" if plan.conflict_free else "; none is conflict-free"
    proof = f"{plan.proof}; all {counted} layouts of the form were tried{free}"
    return replace(plan, bound=plan.turns, proof=proof)


def cost_of(plan: SwizzlePlan) -> tuple[int, int]:
    """Return what is minimised: the turns, then the instructions."""
    return plan.turns, sum(each.count for each in plan.served)


def _plan(asked: Question, member: Member, form: str) -> SwizzlePlan | None:
    smem = member.layout(asked)
    served = served_by(asked, smem)
    if not served:
        return None
    return SwizzlePlan(smem, asked.element_bits, asked.accesses, served, 0, "", form, member.cute(asked))


def _no_layout(asked: Question, form: str, because: str) -> RepresentabilityError:
    where = tuple(f"{access.kind} {access.layout}" for access in asked.accesses)
    what = f"no swizzle of form {form} is known for {', '.join(asked.targets)}"
    return RepresentabilityError(Diagnostic("LA913", what, where, because))


def _orders(asked: Question) -> list[tuple[str, tuple[int, ...], int]]:
    """Return (axis, tile bits from the lowest offset bit up, its bits) with each axis innermost; last axis first."""
    placed = fields(asked.accesses[0].layout.out_axes)
    axes = [(name, range(first, first + bits)) for name, first, bits in placed]
    found = []
    for name, own in reversed(axes):
        rest = [bit for other, places in reversed(axes) if other != name for bit in places]
        found.append((name, (*own, *rest), len(own)))
    return found


def _hardware(asked: Question) -> Iterator[Member]:
    """Yield what the copy engine can write: rows of one swizzle span, column blocks one after the other."""
    for target in asked.targets:
        if not swizzle_supported("NONE", target):
            raise _no_layout(asked, "tma", f"{target} has no copy engine with tensor maps")
    size = asked.element_bits // 8
    scale = size.bit_length() - 1
    seen = set()
    for name, order, inner in _orders(asked):
        for mode, swizzle in SWIZZLE_TABLE.items():
            if not all(swizzle_supported(mode, target) for target in asked.targets):
                continue
            if any(to < scale for to, _ in swizzle.xor):  # the XOR would split elements
                continue
            spans = [swizzle.span_bytes] if swizzle.xor else [16 << at for at in range(MOST_SPAN)]
            for span in spans:
                if not size <= span <= min(size << inner, MOST_BOX * size):
                    continue
                box = (span // size).bit_length() - 1
                placed = (*order[:box], *order[inner:], *order[box:inner])
                xor = tuple((to - scale, of - scale) for to, of in swizzle.xor if of - scale < asked.bits)
                if (placed, xor) not in seen:
                    seen.add((placed, xor))
                    yield Member(f"swizzle {mode}, boxes of {span} bytes along {name}", placed, xor)


def _cute(asked: Question) -> Iterator[Member]:
    """Yield every ``Sw<B,M,S>`` of the row-major and the column-major tile."""
    axes = asked.accesses[0].layout.out_axes
    orders = [(axes[-1][0], _orders(asked)[0][1])]
    if len(axes) > 1:
        orders.append((axes[0][0], tuple(range(asked.bits))))
    for name, order in orders:
        yield Member(f"no swizzle, {name} contiguous", order)
        for bits, base, shift in itertools.product(range(1, asked.bits // 2 + 1), *[range(asked.bits)] * 2):
            if shift >= bits and base + bits + shift <= asked.bits:
                down = tuple((base + at, base + shift + at) for at in range(bits))
                yield Member(f"Sw<{bits},{base},{shift}>, {name} contiguous", order, down)
                up = tuple((source, target) for target, source in down)
                yield Member(f"Sw<{bits},{base},-{shift}>, {name} contiguous", order, up)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The form ``xor`` for one question: the offset bits it changes, and the row bits that may change them."""

    order: tuple[int, ...]
    targets: tuple[int, ...]
    sources: tuple[int, ...]


def _best_xor(asked: Question, chunk_bytes: int) -> SwizzlePlan:
    """Return the best map from row bits to chunk bits."""
    name, order, inner = _orders(asked)[0]
    chunk = (8 * chunk_bytes // asked.element_bits).bit_length() - 1
    rows = _Rows(order, tuple(range(min(chunk, inner), inner)), tuple(range(inner, asked.bits)))
    narrow = [at for at in rows.targets if at < asked.most]
    floor, bound = floor_of(asked), None
    best: tuple[tuple[int, int], Found, Xor] | None = None
    tried = 0
    for picked in itertools.product(range(1 << len(rows.sources)), repeat=len(narrow)):
        if best is not None and (best[0][0] == floor or clock.left() <= 0):
            bound = floor
            break
        low = tuple((to, of) for to, reads in zip(narrow, picked, strict=True)
                    for at, of in enumerate(rows.sources) if reads >> at & 1)  # fmt: skip
        found = _searched(asked, rows, low)
        if found is None:
            continue
        tried += found[1].nodes
        bound = found[1].bound if bound is None else min(bound, found[1].bound)
        cost = found[1].turns, found[0]
        if best is None or cost < best[0]:
            best = cost, found[1], found[2]
    if best is None or bound is None:
        raise _no_layout(asked, "xor", "no known instruction can use it, or no layout was found in the time limit")
    plan = _plan(asked, Member("", order, best[2]), "xor")
    if plan is None:
        raise _no_layout(asked, "xor", "no known instruction can use it")
    proof = f"chunks of {chunk_bytes} bytes along {name}; "
    proof += (
        best[1].proof
        if not narrow
        else f"one search for every map to bits inside a lane's vector ({tried} columns tried)"
    )
    return replace(plan, bound=bound, proof=proof, chunk_bytes=chunk_bytes)


def _spaces(asked: Question, rows: _Rows, low: Xor) -> list[Space] | None:
    """Return what each instruction touches, as offsets under the part of the map that decides the instructions."""
    needs = _needs(asked, Member("", rows.order, low))
    if needs is None:
        return None
    return [space_of(need, Member("", rows.order, low).columns(), asked.word) for need in needs]


def _needs(asked: Question, member: Member) -> list[Need] | None:
    smem = member.columns()
    return needs_of(asked, matrix.inverse(smem)[: asked.most], matrix.transpose(smem, asked.bits))


def _searched(asked: Question, rows: _Rows, low: Xor) -> tuple[int, Found, Xor] | None:
    """Return the instructions, the best bank bits of every row, and the whole map."""
    needs, spaces = _needs(asked, Member("", rows.order, low)), _spaces(asked, rows, low)
    if needs is None or not spaces:
        return None
    word = asked.word
    banks = max(space.mask.bit_length() for space in spaces)
    own = [1 << at - word if word <= at < word + banks else 0 for at in range(asked.bits)]
    seen = [at for at in rows.targets if asked.most <= at < word + banks]
    sums = [0]
    for at in seen:
        sums += [value | 1 << at - word for value in sums]
    inner = rows.sources[0] if rows.sources else asked.bits
    found = least(spaces, own[:inner], asked.bits, lambda at, _: [own[at] ^ value for value in sums], NODES)
    if found is None:
        return None
    high = tuple((to, of) for of in rows.sources for to in seen if (found.columns[of] ^ own[of]) >> to - word & 1)
    return sum(need.count for need in needs), found, (*low, *high)

"""Random certificates of every kind, from random layouts of every family, tiles, operands and accesses."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import bridge_judges
import certificate_plans
import numpy as np
from bridge_sources import build

import layoutalg as la
from layoutalg.ground import clock
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.certify import KINDS, Certificate
from layoutalg.proofs.wgmma import OperandProblem
from layoutalg.synth.wgmma import canonical_operand, synthesize_wgmma

FAMILIES = (
    "cute",
    "cute",
    "composed",
    "linear",
    "integer",
    "outputs",
    "piecewise",
    "pieces",
    "digits",
    "bits",
    "mixed",
)
SIZES = (1, 2, 4, 6, 8, 12, 16, 24, 32, 60, 64, 96, 128, 256)
SECONDS = 5.0
AMD = (("gfx942", "ds_read_b32"), ("gfx942", "ds_read_b64"), ("gfx942", "ds_read_b128"), ("gfx950", "ds_read_b128"))
NVIDIA = ("ld.shared.b32", "ld.shared.v2.b32", "ld.shared.v4.b32", "st.shared.b32", "st.shared.v4.b32", "ldmatrix.x4")


def sample(count: int, seed: int) -> Iterator[Certificate]:
    """Yield that many certificates of each kind in turn, as far as a writer finds them."""
    rng = random.Random(seed)
    kinds = [kind for kind in KINDS if kind in SOURCES]
    wanted = {kind: count // len(kinds) + (place < count % len(kinds)) for place, kind in enumerate(kinds)}
    seen: set[str] = set()
    tries = 0
    while any(wanted.values()) and tries < 60 * count:
        tries += 1
        kind = rng.choice([kind for kind, left in wanted.items() if left])
        with contextlib.suppress(LayoutError), clock.within(SECONDS):
            made = SOURCES[kind](rng)
            if made is not None and wanted[made.kind] and made.seal not in seen:
                wanted[made.kind] -= 1
                seen.add(made.seal)
                yield made
    if any(wanted.values()):
        raise RuntimeError(f"no certificates were found of {wanted}")


def layout(rng: random.Random, size: int | None = None) -> Any:
    """A layout of some family, of few points or, one time in eight, a strided one of very many."""
    if size is None and rng.random() < 0.125:
        return large(rng)
    return build(bridge_judges.random_source(rng.choice(FAMILIES), rng, size or rng.choice(SIZES)))


def large(rng: random.Random) -> Any:
    """A compact strided layout of very many points, its modes in some order."""
    extents = [rng.choice((2, 3, 8, 64, 1024)) for _ in range(rng.randint(3, 6))] + [4096]
    order = rng.sample(range(len(extents)), len(extents))
    strides, weight = [0] * len(extents), 1
    for place in order:
        strides[place], weight = weight, weight * extents[place]
    return la.CuteLayout(tuple(extents), tuple(strides))


def equality(rng: random.Random) -> Certificate | None:
    f = layout(rng)
    ways: list[Callable[[Any], Any]] = [
        la.convert.to_cute, la.convert.to_linear, la.convert.to_integer, la.convert.to_piecewise, la.cute.coalesce,
        lambda g: g,
    ]  # fmt: skip
    rng.shuffle(ways)
    for way in ways:
        with contextlib.suppress(LayoutError):
            return la.certify.equality(f, way(f))
    return None


def inequality(rng: random.Random) -> Certificate | None:
    f = layout(rng)
    if f.size > 256:
        return la.certify.equality(f, large(rng))
    return la.certify.equality(f, layout(rng, f.size if rng.random() < 0.9 else None))


def composition(rng: random.Random) -> Certificate | None:
    inner = layout(rng)
    if inner.size > 256:
        return la.certify.composition(la.CuteLayout((64, inner.size // 64), (inner.size // 64, 1)), inner)
    return la.certify.composition(layout(rng, rng.choice((64, 128, 256))), inner)


def no_composition(rng: random.Random) -> Certificate | None:
    return la.certify.composition(layout(rng, rng.choice((4, 8, 16))), layout(rng))


def inverse(rng: random.Random) -> Certificate | None:
    kind = rng.choice(("linear", "digits", "bits", "mixed", "table", "any", "any", "large"))
    f = large(rng) if kind == "large" else layout(rng, rng.choice(SIZES))
    if kind not in ("any", "large"):
        f = build(bridge_judges.random_source(kind, rng, rng.choice(SIZES)))
    return la.certify.inverse(f, side=rng.choice(("left", "right", "both")))


def no_inverse(rng: random.Random) -> Certificate | None:
    return la.certify.inverse(layout(rng), side=rng.choice(("left", "right", "both")))


def none_of(rng: random.Random) -> Certificate | None:
    """A refusal: of rows of a tile, of registers, or of chunks of any tensor."""
    consumer, dtype = rng.choice((("ldmatrix.x1.trans", "bf16"), ("ld.shared.v2.b32", "f16"), ("tma", "u64"),
                                  ("mma.m16n8k8.f32.tf32.A", "tf32"), ("cp.async.ca.8", "f32")))  # fmt: skip
    if consumer.startswith("mma"):
        ones = [(1, 0), (2, 0), (4, 0), (8, 0), (0, 1), (0, 2), (0, 4)]
        rng.shuffle(ones)
        given: Any = la.LinearLayout.from_bases({"register": ones[:2], "lane": ones[2:]}, {"row": 16, "k": 8})
    else:
        first, second = rng.choice((1, 2, 3, 8)), rng.choice((1, 2, 8, 9, 16))
        given = la.CuteLayout((8, rng.choice((4, 8, 12))), (first, second))
    return getattr(la.admissible(given, consumer, dtype=dtype), "certificate", None)


def operand(rng: random.Random) -> Certificate | None:
    name, rows = rng.choice((("A", 64), ("A", 128), *(("B", 8 * count) for count in range(1, 21))))
    major, swizzle = rng.choice(("K", "MN")), rng.choice(("NONE", "32B", "64B", "128B"))
    shape = (rows, rng.choice((16, 32, 48, 64)))
    return la.certify.operand(synthesize_wgmma(canonical_operand(name, shape, major=major, swizzle=swizzle)))


def no_operand(rng: random.Random) -> Certificate | None:
    name, rows = rng.choice((("A", 64), ("B", 8), ("B", 16)))
    columns = rng.choice((16, 32))
    first, second = rng.choice((1, 3, 8, columns, rng.randrange(99))), rng.choice((1, 2, rows, rng.randrange(99)))
    modes = (((rows, first),), ((columns, second),))
    return la.certify.no_operand(OperandProblem(name, (rows, columns), modes, rng.choice(("NONE", "32B", "128B"))))


def bank_turns(rng: random.Random) -> Certificate | None:
    target, name = rng.choice((*AMD, *(("sm_90a", name) for name in NVIDIA)))
    lanes, count = 64 if target == "gfx942" or target == "gfx950" else 32, rng.choice((1, 2, 4))
    unit = 16
    if rng.random() < 0.5:
        steps = (rng.choice((1, 1, 2, 5, 8)) * unit, rng.choice((0, 1, 8, 32)) * unit)
        return la.certify.bank_turns(target, name, la.CuteLayout((lanes, count), steps))
    return la.certify.bank_turns(target, name, [unit * rng.randrange(256) for _ in range(lanes * count)])


def least_turns(rng: random.Random) -> Certificate | None:
    """The best of some pitches for a column of a tile, the padding of one, or lanes wherever their cells lie."""
    target, name = rng.choice((("sm_90a", "ld.shared.b32"), ("gfx942", "ds_read_b32"), ("gfx1100", "ds_read_b32")))
    lanes = 64 if target == "gfx942" else 32
    way = rng.random()
    if way < 0.2:
        columns = ["columns:1", "rows:1"][: rng.choice((1, 2))]
        return la.padding((rng.choice((8, 16)), rng.choice((8, 16))), columns, target, 32).least_certificates()[0]
    if way < 0.5:
        cells = [rng.randrange(-1, rng.choice((4, 64))) for _ in range(lanes - 1)]
        return la.certify.least_turns([(target, name, [0, *cells])], 1 if lanes == 32 or max(cells[31:]) < 0 else 2)
    pitches = [rng.choice((4, 8, 12, 16, 20, 24, 32, 33, 64)) for _ in range(rng.choice((1, 1, 2)))]
    taken = [la.targets.banks.turns(target, name, [4 * pitch * lane for lane in range(lanes)]) for pitch in pitches]
    layouts = [[["affine", [[4 * pitch]], [0]]] for pitch in pitches]
    return la.certify.least_turns([(target, name, list(range(lanes)))], min(taken), layouts, taken.index(min(taken)))


def routing(rng: random.Random) -> Certificate:
    experts, k = rng.randint(1, 9), rng.randint(1, 4)
    ids = np.array([rng.randrange(experts) for _ in range(k * rng.randint(0, 12))], dtype=np.int64)
    ends = sorted((rng.randrange(experts), rng.randrange(experts)))
    local = None if rng.random() < 0.5 else (ends[0], ends[1])
    return la.routing(ids.reshape(-1, k), experts, rng.randint(1, 5), local).certificate


def paging(rng: random.Random) -> Certificate:
    size, heads, dim, element = rng.randint(1, 5), rng.randint(1, 3), rng.randint(1, 4), rng.choice((1, 2, 4, 8))
    pages = rng.randint(1, 8)
    table = [rng.randrange(pages) for _ in range(rng.randint(0, 6))]
    stride = size * heads * dim * element + element * rng.randint(0, 2)
    tokens = rng.randint(0, len(table) * size)
    return la.paged(table, size, heads, dim, element, rng.choice(("NHD", "HND")), tokens, pages, stride).certificate


SOURCES: dict[str, Callable[[random.Random], Certificate | None]] = {
    "equality": equality,
    "inequality": inequality,
    "composition": composition,
    "no-composition": no_composition,
    "inverse": inverse,
    "no-inverse": no_inverse,
    "none-of": none_of,
    "wgmma-operand": operand,
    "no-operand": no_operand,
    "bank-turns": bank_turns,
    "least-turns": least_turns,
    "tensormap-plan": certificate_plans.plan,
    "no-tensormap": certificate_plans.plan,
    "handoff": certificate_plans.handoff,
    "routing": routing,
    "paging": paging,
}

"""The front door: layouts of every family through conversions, equality, composition, inverses, notation, explanation.

Implementation notes: sources, their enumeration and the search for forms that exist at all are those of
``bridge_judges``; conversions, recognition and equality are judged by the functions of ``bridge_answers``.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import bridge_answers as bridges
import bridge_judges as judge
import bridge_sources
import numpy as np

import layoutalg as la
from layoutalg import convert
from layoutalg.cute import ComposedLayout, CuteLayout
from operations.record import Judge, answer, attempt, draws, expect, failed, operation, refusal

FAMILIES = ("cute", "cute", "composed", "stacked", "linear", "linear", "integer", "outputs", "piecewise", "digits")
FAMILIES += ("bits", "mixed", "table", "partial")


@dataclass(frozen=True)
class Source:
    """A source of plain numbers, its layout and its values."""

    source: dict[str, Any]

    @cached_property
    def layout(self) -> Any:
        return bridge_sources.build(self.source)

    @cached_property
    def values(self) -> judge.Ints:
        found = judge.values(self.source)
        return found.reshape(-1) if self.source["family"] == "outputs" and found.shape[1:] == (1,) else found

    @property
    def single(self) -> bool:
        return self.values.ndim == 1 and self.source["family"] != "partial"


@draws("door")
def draw(rng: random.Random) -> Source:
    size = rng.choice([n for n in judge.SIZES if n <= 36])
    return Source(judge.random_source(rng.choice(FAMILIES), rng, size))


def conversion(target: str) -> Judge:
    """The judge of a conversion."""

    def judged(one: Source, rng: random.Random) -> None:
        bridges.bridge(target, one.layout, one.values)

    judged.__name__ = f"to_{target}"
    return judged


for name in bridges.BRIDGES:
    operation("door", weight=0.4 if name == "piecewise" else 3)(conversion(name))


@operation("door", weight=2)
def recognize(one: Source, rng: random.Random) -> None:
    if one.single and len(one.values):
        bridges.recognized(one.values, rng)


@operation("door", weight=2)
def linear_form(one: Source, rng: random.Random) -> None:
    """Columns and a constant, or the first departure from every such form; value_at."""
    if one.single and len(one.values):
        index = rng.randrange(len(one.values))
        expect(convert.value_at(one.layout, index) == int(one.values[index]), f"value_at({one.layout}, {index})")
    size = len(one.values)
    found = answer(convert.linear_form, one.layout, exists=lambda: one.single and size.bit_count() == 1)
    expect(one.values.ndim == 1 and not (one.values == judge.HOLE).any(), f"linear_form of {one.layout}")
    table = [int(v) for v in one.values]
    affine = all(table[i] == table[i & (i - 1)] ^ table[i & -i] ^ table[0] for i in range(size) if i and i & (i - 1))
    if isinstance(found, tuple):
        columns, constant = found
        want = [constant ^ column for column in columns]
        expect(affine and constant == table[0], f"linear_form({one.layout}) = {found}")
        expect(want == [table[1 << k] for k in range(len(columns))], f"linear_form({one.layout}) = {found}")
    else:
        expect(not affine, f"linear_form({one.layout}) = {found}")


@operation("door", weight=3)
def equivalent(one: Source, rng: random.Random) -> None:
    """Against itself in another family, against one number changed, against another layout of the same size."""
    kind = rng.random()
    if kind < 0.4:
        other = attempt(rng.choice((convert.to_cute, convert.to_linear, convert.to_integer)), one.layout)
        if failed(other):
            other = one.layout
        return judged_equal(one.layout, other, one.values, one.values)
    if kind < 0.8:
        changed = bridges.altered(one.source, rng)
        if changed is not None:
            return judged_equal(one.layout, bridge_sources.build(changed), one.values, judge.values(changed))
    family = rng.choice(FAMILIES)
    source = judge.random_source(family, rng, max(len(one.values), 1))
    return judged_equal(one.layout, bridge_sources.build(source), one.values, judge.values(source))


def judged_equal(f: Any, g: Any, left: judge.Ints, right: judge.Ints) -> None:
    if right.ndim == 2 and right.shape[1:] == (1,):
        right = right.reshape(-1)
    bridges.compared(f, g, left, right)


@operation("door", weight=2)
def compose(one: Source, rng: random.Random) -> None:
    """A layout of any family after one of any other, in the narrowest family that holds it."""
    if not one.single or not len(one.values):
        return
    size = rng.choice([n for n in (1, 2, 3, 4, 6, 8) if n <= len(one.values)])
    inner = judge.random_source(rng.choice(("cute", "linear", "digits", "integer")), rng, size)
    values = judge.values(inner).reshape(-1)
    inside = values.size and values.min() >= 0 and values.max() < len(one.values)
    if not inside and rng.random() < 0.9:
        inner = {"family": "cute", "shape": size, "stride": rng.choice((0, 1)), "stages": []}
        values = judge.values(inner)
    layout = bridge_sources.build(inner)
    fits = not values.size or (values.min() >= 0 and values.max() < len(one.values))
    what = f"compose({one.layout}, {layout}, widen=True)"
    found = answer(la.compose, one.layout, layout, widen=True, exists=lambda: bool(fits) and values.size > 0)
    expect(fits, f"{what} gave {found}")
    got = bridge_sources.read(found).reshape(-1)
    expect(np.array_equal(got, one.values[values]), f"{what} gave {found}")


@operation("door", weight=2)
def inverses(one: Source, rng: random.Random) -> None:
    """left_inverse and right_inverse of CuTe and composed layouts in the narrowest family."""
    if one.source["family"] not in ("cute", "composed", "stacked") or not len(one.values):
        return
    table = [int(v) for v in one.values]
    if max(table, default=0) > 5000:
        return
    what = f"inverse of {one.layout}"
    widen = rng.random() < 0.7
    if rng.random() < 0.5:
        found = answer(la.right_inverse, one.layout, widen=widen, declined="LA643")
        for value, index in enumerate(bridge_sources.read(found).reshape(-1).tolist()):
            expect(0 <= index < len(table) and table[index] == value, f"right {what} gave {found} at {value}")
        return
    injective = len(set(table)) == len(table) and min(table) >= 0
    found = answer(
        la.left_inverse,
        one.layout,
        widen=widen,
        exists=injective,
        declined="" if widen else "LA131 LA132 LA133 LA134 LA643 LA649",
    )
    back = bridge_sources.read(found).reshape(-1).tolist()
    for index, value in enumerate(table):
        expect(0 <= value < len(back), f"left {what} gave {found}, too short")
        fine = back[value] == index if injective else 0 <= back[value] < len(table) and table[back[value]] == value
        expect(fine, f"left {what} gave {found} at {value}")


@operation("door")
def logical_divide(one: Source, rng: random.Random) -> None:
    if one.source["family"] not in ("cute", "composed", "stacked") or not len(one.values):
        return
    size = len(one.values)
    extent = rng.choice([n for n in range(1, size + 1) if size % n == 0])
    step = rng.choice([d for d in range(1, size // extent + 1) if size // extent % d == 0])
    tile = CuteLayout(extent, step)
    found = answer(la.logical_divide, one.layout, tile, widen=True)
    rest = [a + extent * step * b for b in range(size // (extent * step)) for a in range(step)]
    order = [step * t + r for r in rest for t in range(extent)]
    got = bridge_sources.read(found).reshape(-1)
    expect(np.array_equal(got, one.values[order]), f"logical_divide({one.layout}, {tile}, widen=True) gave {found}")


# ----------------------------------------------------------------------------------------------------------- notation


@operation("door", weight=2)
def parse(one: Source, rng: random.Random) -> None:
    """What str prints is read back as the same value."""
    text = str(one.layout)
    found = answer(la.parse, text)
    if one.source["family"] in ("piecewise", "pieces"):
        expect(found.is_equal(one.layout), f"parse({text}) = {found}")
    else:
        expect(found == one.layout, f"parse({text}) = {found!r}")


FORMS = ("cute_cpp", "cute_type", "cute_dsl", "cute_cpp", "cute_dsl", "isl")


@operation("door", weight=2)
def to_text(one: Source, rng: random.Random) -> None:
    """A notation of another system, read back: the same values."""
    form = rng.choice(FORMS)
    if not one.single:
        return
    text = attempt(la.to_text, one.layout, form)
    if failed(text):
        exists = form == "isl" or isinstance(attempt(convert.to_cute, one.layout), CuteLayout | ComposedLayout)
        raise refusal(text, exists, f"to_text({one.layout}, {form})", "LA196 LA711" if form != "isl" else "LA236")
    expect(one.layout.to_text(form) == text, "the method to_text")
    found = answer(la.parse, text)
    expect(np.array_equal(bridge_sources.read(found).reshape(-1), one.values), f"{form} of {one.layout}: {text}")


@operation("door", weight=0.02)
def explain(one: Source, rng: random.Random) -> None:
    """The facts that an explanation claims: size, image, whether it is injective."""
    if not one.single:
        return
    found = answer(la.explain, one.layout, exists=lambda: len(one.values) > 0)
    data = json.loads(json.dumps(found.to_json()["facts"] if "facts" in found.to_json() else dict(found.data)))
    size = data.get("size", {})
    if "elements" in size:
        expect(size["elements"] == len(one.values), f"explain({one.layout}): {size}")
    if size.get("cosize") is not None and one.source["family"] == "cute":
        span = 1 + int(one.values.max()) - int(one.values.min()) if len(one.values) else 0
        expect(size["cosize"] == span, f"explain({one.layout}): {size}")
    image = data.get("image", {})
    if "distinct" in image:
        distinct = len(set(one.values.tolist()))
        expect(image["distinct"] == distinct, f"explain({one.layout}): {image}, not {distinct}")
        expect(image["injective"] == (distinct == len(one.values)), f"explain({one.layout}): {image}")
    expect(found["size"] == found.data["size"], "[]")


@operation("door", weight=0.02)
def suggest(one: Source, rng: random.Random) -> None:
    """Every layout that is suggested holds each element of the tile once, inside the bytes that it claims."""
    rows, columns, consumer = rng.choice(((8, 64, "tma"), (16, 32, "tma"), (64, 32, "wgmma.A")))
    tensor = la.Tensor((rows * 4, columns * 4), dtype="bf16")
    found = la.suggest(tensor, (rows, columns), (consumer,))
    expect(len(found.choices) > 0 and found.best == found.choices[0] == found[0], "suggest")
    expect(found.best in found and found.index(found.best) == 0 and found.count(found.best) == 1, "a sequence")
    for choice in found.choices:
        values = bridge_sources.read(choice.smem)
        expect(len(values) == rows * columns == len(set(values.tolist())), f"{choice.smem} is no bijection")
        expect(int(values.max()) * 2 < choice.bytes, f"{choice.smem} leaves {choice.bytes} bytes")
    json.dumps(found.to_json())

"""Facts of texts with several layouts: the types of a TTGIR text, a tiled copy or matrix instruction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from layoutalg.ask.facts import Fact, said
from layoutalg.cute import CuteLayout
from layoutalg.ground.errors import LayoutError
from layoutalg.notation.tiled import PrintedTiling
from layoutalg.notation.ttgir import TensorType


def listing_facts(types: Sequence[TensorType]) -> tuple[list[Fact], dict[str, object]]:
    """List every layout of a TTGIR text by the line of its type's first occurrence, or why it cannot be built."""
    facts: list[Fact] = []
    listed: list[dict[str, object]] = []
    for entry in types:
        try:
            layout = str(entry.layout())
        except LayoutError as error:
            layout = f"not built: {error.diagnostic.because or error.diagnostic.what}"
        facts.append(said(f"line {entry.line}", [entry.text, layout]))
        listed.append({"type": entry.text, "line": entry.line, "kind": entry.attribute.kind, "layout": layout})
    return facts, {"layouts": listed}


def tiling_facts(found: PrintedTiling, _target: str) -> Iterator[Fact]:
    """Yield the tile of a tiled copy or matrix instruction, and the layouts of its threads and values."""
    yield said(found.kind, found.atom)
    if found.dtype is not None:
        yield said("dtype", found.dtype)
    if found.tile is not None:
        yield said("tile", " x ".join(map(str, found.tile)), list(found.tile))
    layouts: Mapping[str, CuteLayout] = {}
    missing = ""
    try:
        layouts = found.layouts
        _ = found.kind == "copy" and found.tile and found.value  # says why the copy has only one layout
    except LayoutError as error:
        missing = error.diagnostic.because or error.diagnostic.what
    for name, layout in layouts.items():
        text = f"{layout[0].size} threads x {layout[1].size} values, offsets below {layout.cosize}"
        yield Fact(f"layout {name}", (str(layout), text), str(layout))
    if missing:
        yield said("not known", f"the other layouts: {missing}")

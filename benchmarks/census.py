"""How many layouts can an instruction carry? Stated spaces of layouts, each layout asked of every consumer.

    nice python benchmarks/census.py --out docs/_static/census.json
    python benchmarks/census.py --from docs/_static/census.json --page docs/census.md --figure docs/_static/census.svg

A space is a set of functions from the coordinates of a tile to element offsets, each counted once. Small spaces are
enumerated; of large ones ``Space.sample`` functions are drawn uniformly (CuTe: without replacement from the listed
space; F2: by Pruefer codes), and shares have Wilson intervals of 95 %. Every answer is one of ``la.admissible`` or
``layoutalg.synth.factorise``; an unknown answer is counted as unknown and never as refused.

F2 bijections with at most two bits in a column: column i is an edge of a graph on the offset bits and one more vertex
(a single bit is an edge to that vertex), and the columns are independent exactly if the edges are a spanning tree. By
Cayley's formula there are (n + 1)^(n - 1) n! of them, and a random tree with its edges in random order is a random one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import layoutalg as la
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.factorisation import Factorisation
from layoutalg.synth import factorise

CONSUMERS = ("tma", "wgmma.A", "wgmma.B", "ldmatrix.x4", "ldmatrix.x4.trans", "ld.shared.v4.b32")
OPTIONS = {"tma": {"distinct": True}}
"""The tile's elements are all different: a tensor whose rows are one row is not what the census counts."""
BUDGET_SECONDS = 5.0
"""Wall time of one answer."""
WARPS = 4
"""Warps that a tile is dealt to where it is factored."""
COLUMNS = (
    "tma", "wgmma.A", "wgmma.B", "ldmatrix.x4", "ldmatrix.x4.trans", "ld.shared.v4.b32", "tma and wgmma",
    "tma and ldmatrix", "tma, or the least repair in the same bytes", "tma, or the least repair with padding",
    "wgmma, or the least repair in the same bytes", "wgmma, or the least repair with padding",
    "ldmatrix, or the least repair in the same bytes", "ldmatrix, or the least repair with padding", "factored",
)  # fmt: skip
BITS = {"f16": 16, "e4m3": 8, "u8": 8}


@dataclass(frozen=True)
class Space:
    """A set of layouts of one tile.

    Args:
        group: ``"cute"``, ``"f2"`` or ``"swizzled"``.
        name: What it is.
        tile: Extents.
        dtype: Element type.
        count: Layouts in it.
        sample: How many are drawn; 0: all of them.
    """

    group: str
    name: str
    tile: tuple[int, int]
    dtype: str
    count: int
    sample: int

    @property
    def exact(self) -> bool:
        """Whether every layout is asked."""
        return not self.sample or self.sample >= self.count


# ---------------------------------------------------------------- spaces


def factors(extent: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield the ordered factorisations of an extent into at most so many factors above 1."""
    if extent == 1:
        yield ()
        return
    for first in range(2, extent + 1):
        if extent % first == 0 and (extent == first or most > 1):
            for rest in factors(extent // first, most - 1):
                yield (first, *rest)


@cache
def dense(tile: tuple[int, int]) -> tuple[Any, ...]:
    """Return every dense CuTe layout of a tile with at most three modes a dimension, each function once."""
    found = set()
    for rows, columns in itertools.product(*(list(factors(extent, 3)) for extent in tile)):
        digits = [(0, size) for size in rows] + [(1, size) for size in columns]
        for order in itertools.permutations(range(len(digits))):
            steps, reach = [0] * len(digits), 1
            for at in order:
                steps[at], reach = reach, reach * digits[at][1]
            modes: list[list[tuple[int, int]]] = [[], []]
            for (dim, size), step in zip(digits, steps, strict=True):
                mine = modes[dim]
                if mine and mine[-1][0] * mine[-1][1] == step:
                    mine[-1] = (mine[-1][0] * size, mine[-1][1])
                else:
                    mine.append((size, step))
            found.add((tuple(modes[0]), tuple(modes[1])))
    return tuple(sorted(found))


def cute_of(modes: Any) -> la.CuteLayout:
    """Return the CuTe layout of digits."""
    shape = tuple(tuple(size for size, _ in mine) or 1 for mine in modes)
    stride = tuple(tuple(step for _, step in mine) or 0 for mine in modes)
    return la.CuteLayout(shape, stride)


def trees(bits: int, rng: random.Random | None) -> Iterator[tuple[int, ...]]:
    """Yield the columns of F2 bijections with at most two bits a column: all of them, or random ones without end."""
    orders = None if rng else list(itertools.permutations(range(bits)))
    codes: Any = itertools.product(range(bits + 1), repeat=max(0, bits - 1))
    while True:
        if rng:
            codes = [tuple(rng.randrange(bits + 1) for _ in range(bits - 1))]
        for code in codes:
            edges = [(1 << one | 1 << other) & ~1 for one, other in _tree(code, bits + 1)]
            for order in orders if orders else [rng.sample(range(bits), bits)]:  # type: ignore[union-attr]
                yield tuple(edges[at] >> 1 for at in order)
        if not rng:
            return


def _tree(code: tuple[int, ...], vertices: int) -> list[tuple[int, int]]:
    """Return the edges of the tree that a Pruefer code names."""
    degree = [1 + code.count(vertex) for vertex in range(vertices)]
    edges = []
    for vertex in code:
        leaf = degree.index(1)
        edges.append((leaf, vertex))
        degree[leaf] -= 1
        degree[vertex] -= 1
    edges.append(tuple(vertex for vertex in range(vertices) if degree[vertex] == 1))  # type: ignore[arg-type]
    return edges


def linear_of(columns: tuple[int, ...], tile: tuple[int, int]) -> la.LinearLayout:
    """Return the linear layout of a tile, the columns of the last dimension's bits first."""
    low = tile[1].bit_length() - 1
    bases = {"dim0": [(value,) for value in columns[low:]], "dim1": [(value,) for value in columns[:low]]}
    return la.LinearLayout.from_bases(bases, {"offset": 1 << len(columns)})


def swizzles(tile: tuple[int, int]) -> Iterator[tuple[int, int, int, bool]]:
    """Yield (bits, base, shift, column-major) of every swizzle that stays in the tile, the plain tile once."""
    width = (tile[0] * tile[1]).bit_length() - 1
    for turned in (False, True):
        yield 0, 0, 0, turned
        for bits, base in itertools.product((1, 2, 3), range(7)):
            for shift in range(bits, width - base - bits + 1):
                if shift <= 4:
                    yield bits, base, shift, turned


def swizzled_of(case: tuple[int, int, int, bool], tile: tuple[int, int]) -> Any:
    """Return the layout of one of ``swizzles``."""
    bits, base, shift, turned = case
    plain = la.CuteLayout(tile, (1, tile[0]) if turned else (tile[1], 1))
    return la.ComposedLayout(la.Swizzle(bits, base, shift), 0, plain) if bits else plain


def forests(bits: int) -> int:
    """Return how many F2 bijections have at most two bits a column."""
    return (bits + 1) ** (bits - 1) * math.factorial(bits)


def spaces(scale: float = 1.0) -> list[Space]:
    """Return the spaces of the census, with the sizes of their samples."""
    many = max(1, round(300 * scale))
    found = []
    for tile, dtype, sample in (
        ((8, 16), "f16", 0), ((8, 64), "f16", many), ((16, 32), "f16", many), ((64, 64), "f16", many),
        ((8, 64), "e4m3", many), ((64, 64), "e4m3", many),
    ):  # fmt: skip
        found.append(Space("cute", "dense, up to 3 modes a dimension", tile, dtype, len(dense(tile)), sample))
    for tile, kept, sample in (((2, 8), 0, 0), ((8, 64), 0, many), ((64, 64), 0, many),
                               ((8, 16), 3, 0), ((8, 64), 3, many), ((64, 64), 3, many)):  # fmt: skip
        bits = (tile[0] * tile[1]).bit_length() - 1 - kept
        name = "columns of at most two bits" + (", 16-byte chunks kept" if kept else "")
        found.append(Space("f2", name, tile, "f16", forests(bits), sample))
    for columns in (8, 16, 32, 64, 128):
        tile = (64, columns)
        name = f"Sw<B,M,S> over row- and column-major tiles, rows of {2 * columns} bytes"
        found.append(Space("swizzled", name, tile, "f16", len(list(swizzles(tile))), 0))
    return found


def drawn(space: Space, seed: int) -> Iterator[Any]:
    """Yield the layouts of a space that are asked."""
    rng = random.Random(f"{seed} {space.group} {space.name} {space.tile} {space.dtype}")
    if space.group == "cute":
        listed = dense(space.tile)
        chosen = listed if space.exact else rng.sample(listed, space.sample)
        yield from map(cute_of, chosen)
    elif space.group == "f2":
        kept = 3 if space.name.endswith("kept") else 0
        bits = (space.tile[0] * space.tile[1]).bit_length() - 1 - kept
        made = trees(bits, None if space.exact else rng)
        for columns in itertools.islice(made, space.count if space.exact else space.sample):
            low = tuple(1 << bit for bit in range(kept))
            yield linear_of((*low, *(value << kept for value in columns)), space.tile)
    else:
        cases = list(swizzles(space.tile))
        chosen = cases if space.exact else rng.sample(cases, space.sample)
        yield from (swizzled_of(case, space.tile) for case in chosen)


# ---------------------------------------------------------------- answers


def asked(layout: Any, tile: tuple[int, int], dtype: str) -> dict[str, str]:
    """Return the verdict of every column: ``yes``, ``no`` or ``unknown``."""
    answers = {
        name: la.admissible(layout, name, "sm_90a", dtype, tile=tile, seconds=BUDGET_SECONDS, **OPTIONS.get(name, {}))
        for name in CONSUMERS
    }
    said = {name: _said(answer) for name, answer in answers.items()}
    wgmma = _either(said["wgmma.A"], said["wgmma.B"])
    matrices = _either(said["ldmatrix.x4"], said["ldmatrix.x4.trans"])
    said["tma and wgmma"], said["tma and ldmatrix"] = _both(said["tma"], wgmma), _both(said["tma"], matrices)
    held = tile[0] * tile[1] * BITS[dtype] // 8
    for name, given, whole in (
        ("tma", [answers["tma"]], said["tma"]),
        ("wgmma", [answers["wgmma.A"], answers["wgmma.B"]], wgmma),
        ("ldmatrix", [answers["ldmatrix.x4"], answers["ldmatrix.x4.trans"]], matrices),
    ):
        reach = min((size for answer in given for size in repaired(answer, tile)), default=None)
        least = "unknown" if whole == "unknown" else "no"
        said[f"{name}, or the least repair in the same bytes"] = (
            "yes" if whole == "yes" or (reach is not None and reach <= held) else least
        )
        said[f"{name}, or the least repair with padding"] = "yes" if whole == "yes" or reach is not None else least
    factored = factorise(layout, "tma", "sm_90a", dtype, warps=WARPS, seconds=BUDGET_SECONDS)
    said["factored"] = (
        "yes" if isinstance(factored, Factorisation) else "no" if isinstance(factored, la.Refused) else "unknown"
    )
    return said


def repaired(answer: Any, tile: tuple[int, int]) -> Iterator[int]:
    """Yield how many bytes each repair of the same tile reaches over."""
    for repair in getattr(answer, "repairs", ()):
        document = repair.document
        if not isinstance(document, Mapping) or document.get("consumer", answer.consumer) != answer.consumer:
            continue
        if tuple(document.get("tile", document.get("shape", ()))) != tile:
            continue
        if "layout" in document:
            elements = int(la.parse(document["layout"]).table().max()) + 1
        else:
            modes: Any = document["smem"]["modes"]
            elements = 1 + sum((size - 1) * step for mine in modes for size, step in mine)
        yield elements * BITS[answer.dtype] // 8


def _said(answer: Any) -> str:
    return "yes" if isinstance(answer, la.Admitted) else "no" if isinstance(answer, la.Refused) else "unknown"


def _either(one: str, other: str) -> str:
    return "yes" if "yes" in (one, other) else "unknown" if "unknown" in (one, other) else "no"


def _both(one: str, other: str) -> str:
    return "no" if "no" in (one, other) else "unknown" if "unknown" in (one, other) else "yes"


def wilson(yes: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a share."""
    if not total:
        return 0.0, 1.0
    z = 1.959963984540054
    share, spread = yes / total, z * z / total
    middle = share + spread / 2
    width = z * math.sqrt(share * (1 - share) / total + spread / (4 * total))
    return max(0.0, (middle - width) / (1 + spread)), min(1.0, (middle + width) / (1 + spread))


def _one(given: tuple[Any, tuple[int, int], str]) -> dict[str, str]:
    try:
        return asked(*given)
    except LayoutError as error:  # counted in no column: an answer that is none
        return {"error": str(error)[:200]}


def count(space: Space, seed: int, mapped: Callable[..., Any] = map) -> dict[str, Any]:
    """Ask every layout of a space and return the counts."""
    began = time.perf_counter()
    verdicts: dict[str, Counter[str]] = {name: Counter() for name in COLUMNS}
    errors: list[str] = []
    asked_of = 0
    for said in mapped(_one, ((layout, space.tile, space.dtype) for layout in drawn(space, seed))):
        asked_of += 1
        if "error" in said:
            errors.append(said["error"])
            continue
        for name in COLUMNS:
            verdicts[name][said[name]] += 1
    return {
        "group": space.group, "name": space.name, "tile": list(space.tile), "dtype": space.dtype,
        "layouts": space.count, "asked": asked_of, "exact": space.exact, "seed": seed,
        "columns": {name: dict(found) for name, found in verdicts.items()}, "errors": errors[:5],
        "failed": len(errors), "seconds": round(time.perf_counter() - began, 1),
    }  # fmt: skip


# ---------------------------------------------------------------- what is shown


def shown(row: Mapping[str, Any], name: str) -> str:
    """Return a share as text: a percentage of an enumerated space, an interval of a sampled one, unknowns behind it."""
    found = row["columns"][name]
    yes, unknown, total = found.get("yes", 0), found.get("unknown", 0), row["asked"]
    if row["exact"]:
        text = f"{yes}"
    else:
        low, high = wilson(yes, total)
        text = f"{100 * low:.1f}-{100 * high:.1f} %"
    return text + (f" ({unknown} unknown)" if unknown else "")


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return the table: a row for each column of the census, one table a space group."""
    lines = []
    for group in dict.fromkeys(row["group"] for row in rows):
        mine = [row for row in rows if row["group"] == group]
        heads = []
        for row in mine:
            kept = ", chunks kept" if row["name"].endswith("kept") else ""
            how = "all" if row["exact"] else f"{row['asked']} of"
            heads.append(f"{row['tile'][0]}x{row['tile'][1]} {row['dtype']}{kept}: {how} {short(row['layouts'])}")
        lines += ["| " + " | ".join(["carried by", *heads]) + " |", "|---" * (len(heads) + 1) + "|"]
        lines += ["| " + " | ".join([name, *(shown(row, name) for row in mine)]) + " |" for name in COLUMNS]
        lines.append("")
    return "\n".join(lines)


BEGIN, END = "<!-- tables -->", "<!-- end of tables -->"


def written(page: str, rows: list[dict[str, Any]]) -> str:
    """Return the page with the tables of these counts."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{markdown(rows)}\n{END}{rest.split(END)[1]}"


def short(value: int) -> str:
    """Return a count, a large one by its power of ten."""
    return str(value) if value < 10**7 else f"{value:.1e}"


BARS = (
    ("tma", "TMA"), ("wgmma.B", "wgmma B"), ("ldmatrix.x4", "ldmatrix"), ("tma and wgmma", "TMA, wgmma"),
    ("tma and ldmatrix", "TMA, ldmatrix"), ("factored", "factored"),
)  # fmt: skip


def figure(rows: list[dict[str, Any]]) -> str:
    """Return an SVG of the shares: one panel a group, one line of bars a space, whiskers where it was sampled."""
    left, bar, gap, top = 250, 92, 12, 46
    width = left + len(BARS) * (bar + gap) + 10
    body, y = [], top
    for at, (_, label) in enumerate(BARS):
        x = left + at * (bar + gap)
        body.append(f'<text x="{x}" y="{top - 12}" font-weight="bold">{label}</text>')
    titles = {"cute": "dense CuTe layouts", "f2": "F2 bijections, two bits a column", "swizzled": "swizzled tiles"}
    group = ""
    for row in rows:
        if row["group"] != group:
            group = row["group"]
            body.append(f'<text x="8" y="{y + 12}" font-weight="bold">{titles[group]}</text>')
            y += 20
        kept = ", chunks kept" if row["name"].endswith("kept") else ""
        body.append(f'<text x="18" y="{y + 11}">{row["tile"][0]}x{row["tile"][1]} {row["dtype"]}{kept}</text>')
        for at, (name, _) in enumerate(BARS):
            x, total = left + at * (bar + gap), max(1, row["asked"])
            found = row["columns"][name]
            yes, unknown = found.get("yes", 0) / total, found.get("unknown", 0) / total
            body.append(f'<rect x="{x}" y="{y + 2}" width="{bar}" height="11" fill="#e8e8e8"/>')
            body.append(f'<rect x="{x}" y="{y + 2}" width="{bar * yes:.1f}" height="11" fill="#2f6db5"/>')
            if unknown:
                start = x + bar * yes
                body.append(
                    f'<rect x="{start:.1f}" y="{y + 2}" width="{bar * unknown:.1f}" height="11" fill="#d9b44a"/>'
                )
            if not row["exact"]:
                low, high = wilson(found.get("yes", 0), total)
                body.append(
                    f'<path d="M{x + bar * low:.1f} {y + 7.5}H{x + bar * high:.1f}" stroke="#111" stroke-width="1.5"/>'
                )
        y += 17
    y += 8
    legend = [("#2f6db5", "carried"), ("#e8e8e8", "refused"), ("#d9b44a", "unknown")]
    for at, (colour, label) in enumerate(legend):
        x = left + at * 90
        body.append(f'<rect x="{x}" y="{y}" width="11" height="11" fill="{colour}"/>')
        body.append(f'<text x="{x + 16}" y="{y + 10}">{label}</text>')
    body.append(f'<text x="{left + 270}" y="{y + 10}">line: 95 % interval of a sample</text>')
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y + 22}" viewBox="0 0 {width} {y + 22}" '
        'font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="#fff"/>', *body, "</svg>", ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="sizes of the samples, 1 for 300")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="groups, joined by commas")
    parser.add_argument("--from", dest="stored", type=Path, help="show stored counts, and ask nothing")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--page", type=Path, help="a page whose tables are written anew")
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args()
    if given.stored:
        rows = json.loads(given.stored.read_text())
    else:
        rows = []
        with multiprocessing.Pool(given.processes, os.nice, (5,)) as pool:
            for space in spaces(given.scale):
                if given.only and space.group not in given.only.split(","):
                    continue
                rows.append(count(space, given.seed, lambda one, cases: pool.imap_unordered(one, cases, 8)))
                print(json.dumps(rows[-1]), flush=True)
                if given.out:
                    given.out.write_text(json.dumps(rows, indent=1) + "\n")
    if given.page:
        given.page.write_text(written(given.page.read_text(), rows))
    if given.figure:
        given.figure.write_text(figure(rows))
    return 1 if any(row["failed"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())

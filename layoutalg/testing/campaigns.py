"""Bodies of campaigns: one random case of a seed, judged by enumeration entry by entry.

``layoutalg campaign NAME`` runs them; each returns what is wrong, empty if nothing.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np

from layoutalg.proofs.indirect import Paged, Routing
from layoutalg.proofs.ragged import RaggedFamily
from layoutalg.proofs.tensor import Tensor
from layoutalg.synth.ragged import synthesize_ragged

STRATEGIES = ("auto", "exact_pool", "overlap_pool", "shift_back", "descriptors", "overfetch")
ROWS, COLUMNS, GROUPS = 256, 128, 6
TILES = ((16, 1), (32, 1), (32, 8), (24, 1), (64, 4))
"""(rows, what divides every size) of tiles of ragged tensors."""


# --------------------------------------------------------------------------------------------------------------- ragged


def ragged(seed: int) -> str:
    """The copies of drawn groups under a drawn strategy, counted row by row."""
    source = random.Random(seed)
    strategy, (tile, multiple) = source.choice(STRATEGIES), source.choice(TILES)
    family = family_of(strategy, tile, multiple)
    sizes = sizes_of(source, family)
    wrong = wrong_copies(family, sizes)
    return wrong and f"{strategy}, tile {tile}, multiple {multiple}, sizes {sizes}: {wrong}"


@cache
def family_of(strategy: str, tile: int, multiple: int) -> RaggedFamily:
    """The family of a tensor of ``ROWS`` rows."""
    tensor = Tensor((ROWS, COLUMNS), dtype="u16")
    return synthesize_ragged(tensor, (tile, 64), f"({tile},64):(64,1)", strategy=strategy, multiple=multiple)


def sizes_of(source: random.Random, family: RaggedFamily) -> list[int]:
    """Drawn sizes of ``GROUPS`` groups that fit the rows."""
    found: list[int] = []
    for _ in range(GROUPS):
        size = source.choice((0, source.randrange(8), source.randrange(80), source.randrange(ROWS)))
        size = min(size, ROWS - sum(found)) // family.multiple * family.multiple
        found.append(size if size >= family.least_rows else 0)
    return found


def wrong_copies(family: RaggedFamily, sizes: list[int]) -> str:
    """What the copies of groups get wrong, counted row by row; empty if nothing."""
    ends = np.cumsum([0, *sizes])
    count = np.zeros(ROWS + family.tile_rows, dtype=int)
    for copy in family.copies(sizes):
        first = copy.row + (int(ends[copy.group]) if family.strategy == "descriptors" else 0)
        if not ends[copy.group] <= first <= first + copy.rows <= ends[copy.group + 1]:
            return f"{copy} leaves its group"
        count[first : first + copy.rows] += 1
    once = count[: ends[-1]] == 1 if not family.stated or family.strategy == "overfetch" else count[: ends[-1]] >= 1
    return "" if once.all() and not count[ends[-1] :].any() else "rows are missed or repeated"


# ------------------------------------------------------------------------------------------------------------- indirect


def indirect(seed: int) -> str:
    """A drawn routing or paged sequence, every list, address and run; its certificate goes through the checker."""
    source = random.Random(seed)
    return _routed(source) if source.random() < 0.5 else _paged(source)


def _routed(source: random.Random) -> str:
    experts, k, tokens = source.choice((1, 2, 7, 60)), source.randint(1, 4), source.choice((0, 1, 5, 40))
    crowd = [source.randrange(experts) for _ in range(source.choice((1, 3, 100)))]
    ids = np.array([[source.choice(crowd) for _ in range(k)] for _ in range(tokens)], dtype=np.int64)
    ends = sorted((source.randrange(experts), source.randrange(experts)))
    local = None if source.random() < 0.5 else (ends[0], ends[1])
    case = ids.reshape(tokens, k), experts, source.choice((1, 2, 16, 64)), local
    found = Routing(*case)
    wrong = [name for name, value in routing_lists(*case).items() if list_of(getattr(found, name)) != value]
    wrong += ["tile_bound"] * (len(found.tiles) > found.tile_bound)
    wrong += ["certificate"] * (not found.certificate.check())
    return f"routing({', '.join(map(str, (ids.tolist(), *case[1:])))}): {', '.join(wrong)}" if wrong else ""


def list_of(value: Any) -> Any:
    """An array as a list; anything else as it is."""
    return value.tolist() if isinstance(value, np.ndarray) else value


def cached(source: random.Random, rows: int = 1) -> tuple[Any, ...]:
    """The arguments of a drawn paged sequence whose rows are multiples of ``rows`` bytes."""
    size, heads, element = source.choice((1, 2, 3, 16)), source.randint(1, 4), source.choice((1, 2, 4, 8))
    dim, pages = max(1, rows // element) * source.randint(1, 3), source.randint(1, 9)
    table = [source.randrange(pages) for _ in range(source.randint(0, 6))]
    page = size * heads * dim * element
    stride = page + source.choice((0, max(rows, element), 3 * max(rows, element)))
    layout, tokens = source.choice(("NHD", "HND")), source.randint(0, len(table) * size)
    return table, size, heads, dim, element, layout, tokens, pages, stride


def _paged(source: random.Random) -> str:
    case = cached(source)
    sequence, places = Paged(*case), addresses(*case)
    head, wrong = source.randrange(case[2]), []
    if places.size and not (sequence.address(*np.indices(places.shape)) == places).all():
        wrong.append("address")
    if sequence.runs() != runs(in_page_order(places, case[1], case[5]), case[4]):
        wrong.append("runs")
    if sequence.runs(head) != runs(places[:, head].reshape(-1), case[4]):
        wrong.append(f"runs({head})")
    wrong += ["certificate"] * (not sequence.certificate.check())
    return f"paged{case}: {', '.join(wrong)}" if wrong else ""


def routing_lists(ids: Any, experts: int, block: int, local: Any) -> dict[str, Any]:
    """The lists of a routing."""
    flat, k = ids.reshape(-1).tolist(), ids.shape[1]
    first, last = local or (0, experts - 1)
    found: dict[str, Any] = {
        "order": [], "offsets": [0], "counts": [], "padded_offsets": [0], "padded_order": [], "block_experts": [],
        "tiles": [], "source_runs": [],
    }  # fmt: skip
    for expert in range(experts):
        rows = [place for place, each in enumerate(flat) if each == expert and first <= expert <= last]
        for start in range(0, len(rows), block):
            found["tiles"].append((expert, len(found["order"]) + start, len(rows[start : start + block])))
            found["block_experts"].append(expert)
        found["order"] += rows
        found["counts"].append(len(rows))
        found["padded_order"] += rows + [len(flat)] * (-len(rows) % block)
        found["offsets"].append(len(found["order"]))
        found["padded_offsets"].append(len(found["padded_order"]))
        run: list[int] = []
        for token in [place // k for place in rows] + [-9]:
            if run and token != run[-1] + 1:
                found["source_runs"].append((run[0], len(run), expert))
                run = []
            run.append(token)
    found["inverse"] = [found["order"].index(place) if place in found["order"] else -1 for place in range(len(flat))]
    return found


def addresses(
    table: list[int], size: int, heads: int, dim: int, element: int, layout: str, tokens: int, _pages: int, stride: int
) -> Any:
    """The byte of every (token, head, d)."""
    found = np.zeros((tokens, heads, dim), dtype=np.int64)
    for token, head, d in np.ndindex(found.shape):
        row = token % size
        place = (row * heads + head) * dim + d if layout == "NHD" else (head * size + row) * dim + d
        found[token, head, d] = table[token // size] * stride + place * element
    return found


def in_page_order(places: Any, size: int, layout: str) -> list[int]:
    """The bytes page by page, each in its own order."""
    found: list[int] = []
    for start in range(0, len(places), size):
        page = places[start : start + size]
        found += (page if layout == "NHD" else page.transpose(1, 0, 2)).reshape(-1).tolist()
    return found


def runs(places: Any, element: int) -> list[tuple[int, int]]:
    """Bytes that follow each other, joined."""
    found: list[list[int]] = []
    for byte in map(int, places):
        if found and sum(found[-1]) == byte:
            found[-1][1] += element
        else:
            found.append([byte, element])
    return [(start, length) for start, length in found]

"""Routed and paged data: bandwidth by granule, permutations, weighted sums, copies of pages and of runs, choices.

Every kernel is first compared with PyTorch on the same random data. Times are medians of graphs of launches, kernel and
peer in turns in one process. ``fitted`` turns the rows into an entry of ``targets/memory_costs.json``; ``regrets`` says
for any costs by how much the choices among ways of gathering are slower than the best single way.
"""

from __future__ import annotations

import datetime
import functools
import math
import statistics
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from device import Fault, Run
from device_products import graphed, launcher, milliseconds, torch

from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.kernels.copy import copy_kernel
from layoutalg.codegen.kernels.gather import gather_kernel
from layoutalg.codegen.kernels.inspector import routing_kernels
from layoutalg.codegen.kernels.paged import paged_kernel
from layoutalg.codegen.kernels.routed import permute_kernel, runs_kernel, unpermute_kernel
from layoutalg.codegen.kernels.vectors import COPY_LOOP, LOADS, STORES, CopyLoop
from layoutalg.proofs.indirect import Paged, PagedBatch, Routing, Runs
from layoutalg.synth.indirect import gather_choice, warp_sectors
from layoutalg.targets.memory_costs import MemoryCosts

GRANULES = tuple(16 << step for step in range(13))
TOKENS = (32, 128, 512, 4096)
K, EXPERTS, COLUMNS = 8, 128, 7168
PAGES = tuple(4096 << step for step in range(7))
LOOPS = tuple(CopyLoop(threads, each, turns, False, COPY_LOOP.load, COPY_LOOP.store)
              for threads in (64, 128, 256, 512, 1024) for each in (1, 2, 4, 8)
              for turns in (1, 2) if 128 <= threads * each <= 4096)  # fmt: skip
"""Loops by threads and vectors; the operators of caches are compared for the best of them."""
LENGTHS = (1, 4, 16, 64)
"""Rows of the runs that are copied."""
WAYS = {"vector": "vector", "bulk": "bulk", "tma": "box"}
TOTAL = 1 << 28
"""Bytes of one side of a copy: several times what L2 keeps."""
SHAPES = (
    ("in-warp", 1 << 19, 64), ("in-warp", 1 << 18, 128), ("in-warp", 1 << 17, 256), ("in-warp", 1 << 20, 32),
    ("cross-warp", 1 << 15, 1024), ("cross-warp", 1 << 13, 4096), ("cross-warp", 1 << 12, 8192),
    ("large", 32, 1 << 20), ("large", 1, 1 << 25), ("large", 1024, 1 << 15),
)  # fmt: skip
SPREADS = ("random", "clustered", "neighbours")
Act = Callable[[], None]


@functools.cache
def cubin(kernel: Any) -> bytes:
    """The machine code of a kernel."""
    return to_cubin(kernel)


def act_of(made: Any, blocks: int | None = None, status: Any = None, **places: Any) -> Act:
    """What launches a kernel on tensors."""
    where = {name: place.data_ptr() for name, place in places.items()}
    if made.persistent and status is None:
        status = torch().zeros(blocks or made.blocks, dtype=torch().int32, device="cuda")
    numbers = made.arguments(blocks, None if status is None else status.data_ptr(), **where)
    act = launcher(made.kernel, cubin(made.kernel), numbers, made.blocks if blocks is None else blocks)[0]
    return lambda _keep=(status, places): act()  # the tensors live as long as what uses their addresses


def in_turns(acts: dict[str, Act], many: int = 20) -> dict[str, float]:
    """Microseconds of each, graphs of so many launches in turns."""
    graphs = [graphed(act, many) for act in acts.values()]
    return {name: 1e3 * each for name, each in zip(acts, milliseconds(graphs, many), strict=True)}


def to_device(values: Any, dtype: Any = None) -> Any:
    """A copy on the device; indices as 32 bits."""
    return torch().tensor(np.asarray(values), dtype=dtype or torch().int32, device="cuda")


def paged_acts(cache: Paged, pool: Any, flat: Any, ways: Any = WAYS) -> dict[str, Act]:
    """The copies of a cache to a contiguous tensor by every way."""
    table = to_device(cache.page_table)
    units = torch().cuda.get_device_properties(0).multi_processor_count
    found = {}
    for way in ways:
        made = paged_kernel(cache, way=way, name=f"pages_{way}")
        resident = max(1, min(16, 220_000 // max(1, made.kernel.dynamic_smem_bytes)))
        blocks = min(made.blocks, resident * units) if made.persistent else None
        status = torch().zeros(blocks or 1, dtype=torch().int32, device="cuda")
        found[way] = act_of(made, blocks, status if made.persistent else None, pool=pool, table=table, contiguous=flat)
    return found


def cache_of(granule: int, rows: int, order: Any) -> Paged:
    """Pages of so many contiguous bytes, at most 2 KiB a token, so that one box has a token."""
    token = min(granule, 2048)
    return Paged(order, granule // token, 1, token // 8, 8, "NHD", rows * (granule // token), rows)


def granules() -> list[dict[str, Any]]:
    """Copies of pages in random order by every way, for each page size."""
    rng, rows = np.random.default_rng(1), []
    pool = torch().empty(TOTAL, dtype=torch().uint8, device="cuda").random_(0, 256)
    flat = torch().empty_like(pool)
    for granule in GRANULES:
        count = TOTAL // granule
        order = rng.permutation(count)
        cache = cache_of(granule, count, order)
        wanted = pool.view(count, granule)[to_device(order, torch().int64)].view(-1)
        acts, right = paged_acts(cache, pool, flat), {}
        for way, act in acts.items():
            flat.zero_()
            act()
            torch().cuda.synchronize()
            right[way] = bool((flat == wanted).all())
        times = in_turns(acts | {"copy": lambda: flat.copy_(pool)}, 1 if granule < 128 else 4)
        for way in acts:
            gbps = (2 * TOTAL + 4 * count) / times[way] / 1e3
            rows.append({"part": "granules", "granule": granule, "way": way, "right": right[way], "us": times[way],
                         "gbps": gbps, "of_copy": times["copy"] / times[way]})  # fmt: skip
    return rows


def cached(size: int, layout: str, rng: Any) -> Paged:
    """Pages of so many bytes, of 8 heads of 128 x 2 bytes, in random order."""
    count = TOTAL // size
    return Paged(rng.permutation(count), size // 2048, 8, 128, 2, layout, count * size // 2048, count)


def gathered(cache: Paged, pool: Any) -> Any:
    """The bytes of a cache in the order of a contiguous tensor."""
    found = pool.view(len(cache.page_table), -1)[torch().tensor(cache.page_table, device=pool.device)]
    if cache.kv_layout == "HND":
        found = found.view(len(found), cache.kv_heads, -1).transpose(0, 1).contiguous()
    return found.view(-1)


def is_right(act: Act, flat: Any, wanted: Any) -> bool:
    """Whether a kernel writes these bytes."""
    flat.zero_()
    act()
    torch().cuda.synchronize()
    return bool(torch().equal(flat, wanted))


def peers(pool: Any, flat: Any) -> dict[str, Act]:
    """Copies of contiguous memory: PyTorch's, the driver's, and this library's, by vectors and by the copy engine."""
    from cuda.bindings import driver

    def memcpy() -> None:
        stream = torch().cuda.current_stream().cuda_stream
        (code,) = driver.cuMemcpyDtoDAsync(flat.data_ptr(), pool.data_ptr(), TOTAL, stream)
        if int(code):
            raise RuntimeError(f"driver: {code!s}")

    found: dict[str, Act] = {"contiguous": lambda: flat.copy_(pool), "memcpy": memcpy}
    units = torch().cuda.get_device_properties(0).multi_processor_count
    for way in ("vector", "tma"):
        made = copy_kernel((TOTAL // 4096, 4096), "u8", way=way, name=f"dense_{way}")
        blocks = min(made.blocks, 3 * units) if made.persistent else made.blocks
        status = torch().zeros(blocks, dtype=torch().int32, device="cuda")
        numbers = made.arguments(pool.data_ptr(), flat.data_ptr(), blocks, status.data_ptr())
        act = launcher(made.kernel, cubin(made.kernel), numbers, blocks)[0]
        found[f"dense {way}"] = lambda act=act, _keep=status: act()
    return found


def pages() -> list[dict[str, Any]]:
    """Copies of pages of 4 to 256 KiB, gathered, scattered, and of a batch, beside contiguous copies."""
    rng, rows = np.random.default_rng(2), []
    pool = torch().empty(TOTAL, dtype=torch().uint8, device="cuda").random_(0, 256)
    flat = torch().empty_like(pool)
    for size in PAGES:
        for layout in ("NHD", "HND"):
            cache = cached(size, layout, rng)
            wanted, count = gathered(cache, pool), len(cache.page_table)
            acts = peers(pool, flat) | paged_acts(cache, pool, flat)
            right = {way: is_right(acts[way], flat, wanted) for way in WAYS}
            made = paged_kernel(cache, "scatter", name="pages_scatter")
            acts["scatter"] = act_of(made, pool=pool, table=to_device(cache.page_table), contiguous=flat)
            batch = PagedBatch(replace(cache, seq_len=None), range(0, count + 1, count // 64), [cache.page_size] * 64)
            lists = {name: to_device(getattr(batch, name)) for name in ("indptr", "last_page_len")}
            table = to_device(cache.page_table)
            made = paged_kernel(batch, name="pages_batch")
            acts["batch"] = act_of(made, pool=pool, table=table, contiguous=flat, **lists)
            several = wanted
            if layout == "HND":
                several = wanted.view(8, 64, -1).transpose(0, 1).contiguous().view(-1)
            right["batch"] = is_right(acts["batch"], flat, several)
            times = in_turns(acts, 4)
            shares = {way: times["contiguous"] / each for way, each in times.items()}
            rows.append({"part": "pages", "page": size, "layout": layout, "right": right, "us": times,
                         "of_contiguous": shares})  # fmt: skip
    return rows


def looped(cache: Paged, loops: Any, pool: Any, flat: Any, stage: str) -> list[dict[str, Any]]:
    """Copies of a cache by loops, beside a contiguous copy."""
    wanted, table, rows = gathered(cache, pool), to_device(cache.page_table), []
    for first in range(0, len(loops), 12):
        acts: dict[str, Act] = {"contiguous": lambda: flat.copy_(pool)}
        some = dict(enumerate(loops[first : first + 12]))
        for number, loop in some.items():
            made = paged_kernel(cache, loop=loop, name="pages_loop")
            acts[str(number)] = act_of(made, pool=pool, table=table, contiguous=flat)
        right = {number: is_right(acts[str(number)], flat, wanted) for number in some}
        times = in_turns(acts, 4)
        rows += [{"part": "loops", "stage": stage, "page": cache.page_bytes, "layout": cache.kv_layout,
                  "loop": asdict(loop), "right": right[number], "us": times[str(number)],
                  "of_contiguous": times["contiguous"] / times[str(number)]}
                 for number, loop in some.items()]  # fmt: skip
    return rows


def leading(rows: list[dict[str, Any]], many: int) -> list[tuple[float, CopyLoop]]:
    """The loops with the best geometric mean of shares, of those that were right everywhere."""
    found: dict[CopyLoop, list[float]] = {}
    for row in rows:
        found.setdefault(CopyLoop(**row["loop"]), []).append(row["of_contiguous"] if row["right"] else 1e-9)
    means = [(statistics.geometric_mean(shares), loop) for loop, shares in found.items()]
    return sorted(means, key=lambda each: -each[0])[:many]


def loops() -> list[dict[str, Any]]:
    """Loops of copies of pages: first their shapes, then the operators of the best, then the best for all pages."""
    rng, rows = np.random.default_rng(4), []
    pool = torch().empty(TOTAL, dtype=torch().uint8, device="cuda").random_(0, 256)
    flat = torch().empty_like(pool)
    usual = [cached(32768, layout, rng) for layout in ("NHD", "HND")]
    shapes = [row for cache in usual for row in looped(cache, LOOPS, pool, flat, "shapes")]
    some = [replace(loop, load=load, store=store) for _, loop in leading(shapes, 2) for load in LOADS
            for store in STORES if load or store]  # fmt: skip
    operators = [row for cache in usual for row in looped(cache, some, pool, flat, "operators")]
    best = [loop for _, loop in leading(shapes + operators, 5)]
    best += [COPY_LOOP] * (COPY_LOOP not in best)
    for size in PAGES:
        for layout in ("NHD", "HND"):
            rows += looped(cached(size, layout, rng), best, pool, flat, "pages")
    return shapes + operators + rows


def runs() -> list[dict[str, Any]]:
    """Copies of runs of rows, beside ``index_select``."""
    rng, rows, size = np.random.default_rng(5), [], 2 * COLUMNS
    count = TOTAL // size // max(LENGTHS) * max(LENGTHS)
    source = torch().empty((count, size), dtype=torch().uint8, device="cuda").random_(0, 256)
    result = torch().empty_like(source)
    for length in LENGTHS:
        index = (rng.permutation(count // length)[:, None] * length + np.arange(length)).reshape(-1)
        pieces = Runs.of(index, step=1).pieces
        made = runs_kernel(count, count, len(pieces), size)
        act = act_of(made, source=source, runs=to_device(pieces), destination=result)
        names = to_device(index, torch().int64)
        wanted = source.index_select(0, names)
        right = is_right(act, result, wanted)
        pull = act_of(permute_kernel(count, 1, count, size, way="pull"), source=source, index=to_device(index),
                      destination=result)  # fmt: skip
        ends = source.view(torch().int64), 0, names
        select = functools.partial(torch().index_select, *ends, out=result.view(torch().int64))
        acts: dict[str, Act] = {"runs": act, "pull": pull, "contiguous": lambda: result.copy_(source)}
        times = in_turns(acts | {"index_select": select}, 4)
        rows.append({"part": "runs", "length": length, "runs": len(pieces), "right": right, "us": times,
                     "of_contiguous": times["contiguous"] / times["runs"]})  # fmt: skip
    return rows


def permutations() -> list[dict[str, Any]]:
    """The inspector, permutations and weighted sums, beside PyTorch."""
    return [permuted(tokens) for tokens in TOKENS]


def permuted(tokens: int) -> dict[str, Any]:
    """Those of one number of tokens."""
    generator = torch().Generator(device="cuda").manual_seed(tokens)
    scores = torch().rand(tokens, EXPERTS, device="cuda", generator=generator)
    ids = scores.topk(K, dim=1).indices.int().contiguous()
    wanted = Routing(ids.cpu().numpy(), EXPERTS, 64)
    count = tokens * K
    kernels = routing_kernels(count, EXPERTS, 64)
    names = {each.name: each for kernel in kernels for each in kernel.arrays}
    lists = {name: torch().empty(max(1, math.prod(each.shape)), dtype=torch().int32, device="cuda")
             for name, each in names.items()} | {"topk_ids": ids}  # fmt: skip
    sorts = [act_of(kernel, **{each.name: lists[each.name] for each in kernel.arrays}) for kernel in kernels]

    def inspect(sorts: list[Act] = sorts) -> None:
        for act in sorts:
            act()

    inspect()
    torch().cuda.synchronize()
    right = {"inspector": all(
        lists[name][: len(getattr(wanted, name))].tolist() == getattr(wanted, name).tolist()
        for name in ("counts", "offsets", "order", "inverse", "padded_offsets", "padded_order", "block_experts")
    )}  # fmt: skip
    x = torch().randn(tokens, COLUMNS, device="cuda", generator=generator).bfloat16()
    y = torch().empty(count, COLUMNS, device="cuda", dtype=torch().bfloat16)
    result, weights = torch().empty_like(x), torch().rand(tokens, K, device="cuda", generator=generator)
    by = {"source": x, "destination": y}
    push = act_of(permute_kernel(tokens, K, count, 2 * COLUMNS), index=lists["inverse"], **by)
    pull = act_of(permute_kernel(tokens, K, count, 2 * COLUMNS, way="pull"), index=lists["order"], **by)
    add = act_of(
        unpermute_kernel(tokens, K, count, COLUMNS), source=y, index=lists["inverse"], weights=weights,
        destination=result,
    )  # fmt: skip
    source = (lists["order"][:count] // K).long()
    back = lists["inverse"][:count].long()
    expected = x.index_select(0, source)
    for name, act in (("push", push), ("pull", pull)):
        y.zero_()
        act()
        torch().cuda.synchronize()
        right[name] = bool((y == expected).all())
    add()
    torch().cuda.synchronize()
    exact = (expected[back].view(tokens, K, COLUMNS).double() * weights[:, :, None].double()).sum(1)
    error = float(((result.double() - exact).abs() / (exact.abs() + 1e-2)).max())
    right["unpermute"] = error < 2.0**-7
    flat_ids = ids.view(-1)

    def moved() -> None:
        inspect()
        push()

    times = in_turns({
        "inspector": inspect, "torch_sort": lambda: torch().sort(flat_ids, stable=True), "push": push,
        "pull": pull, "both": moved, "index_select": lambda: torch().index_select(x, 0, source, out=y),
        "unpermute": add,
        "torch_unpermute": lambda: torch().bmm(
            weights[:, None].bfloat16(), y.index_select(0, back).view(tokens, K, COLUMNS)
        ),
    }, 4 if tokens > 1000 else 20)  # fmt: skip
    unique = (tokens + count) * COLUMNS * 2
    return {"part": "permutations", "tokens": tokens, "right": right, "error": error, "us": times,
                 "push_gbps": unique / times["push"] / 1e3, "unpermute_gbps": unique / times["unpermute"] / 1e3,
                 "to_index_select": times["push"] / times["index_select"],
                 "inspector_to_sort": times["inspector"] / times["torch_sort"]}  # fmt: skip


def drawn(spread: str, rows: int, length: int) -> Any:
    """Indices of every row: anywhere, near each other, or the neighbour."""
    rng = np.random.default_rng(length)
    sample = min(rows, max(1, (1 << 22) // length))
    own = np.arange(length)[None]
    if spread == "random":
        found = rng.integers(0, length, (sample, length))
    elif spread == "clustered":
        found = (
            rng.integers(0, length, (sample, -(-length // 32)))[:, own[0] // 32] + rng.integers(0, 16, own.shape)
        ) % length
    else:
        found = np.broadcast_to((own + 1) % length, (sample, length))
    return np.tile(found, (-(-rows // sample), 1))[:rows].astype(np.int32)


def choices() -> list[dict[str, Any]]:
    """Gathers of 4-byte elements by every way that a shape allows, for 30 distributions."""
    rows = []
    for where, many, length in SHAPES:
        for spread in SPREADS:
            index = drawn(spread, many, length)
            table = to_device(index)
            source = torch().empty((many, length), dtype=torch().int32, device="cuda").random_()
            result = torch().empty_like(source)
            wanted, acts, right = torch().gather(source, 1, table.long()), {}, {}
            for way in ("warp", "shared", "direct"):
                if (way == "warp" and length > 256) or (way == "shared" and length > 8192):
                    continue
                made = gather_kernel((many, length), 1, length, "f32", way=way, name=f"gather_{way}")
                given = made.arguments(source.data_ptr(), result.data_ptr(), index=table.data_ptr())
                acts[way] = launcher(made.kernel, cubin(made.kernel), given, made.blocks)[0]
                acts[way]()
                torch().cuda.synchronize()
                right[way] = bool((result == wanted).all())
            few = index[: max(1, (1 << 16) // length)].astype(np.int64)
            sectors = warp_sectors((few + length * np.arange(len(few))[:, None]).reshape(-1)[: 1 << 16], 4)
            rows.append({"part": "choices", "where": where, "rows": many, "length": length, "spread": spread,
                         "sectors": sectors, "right": right, "us": in_turns(acts, 6)})  # fmt: skip
    return rows


def launches() -> list[dict[str, Any]]:
    """The time between kernels that do nothing, and rows gathered out of L2."""
    made = permute_kernel(1, 1, 0, 16, name="nothing")
    x = torch().zeros(4, dtype=torch().int32, device="cuda")
    empty = in_turns({"launch": act_of(made, source=x, index=x, destination=x)})["launch"]
    rng, row, count = np.random.default_rng(3), 14336, 1 << 13
    small = torch().empty(512, row, dtype=torch().uint8, device="cuda").random_(0, 256)
    out = torch().empty(count, row, dtype=torch().uint8, device="cuda")
    index = to_device(rng.integers(0, 512, count))
    pull = permute_kernel(512, 1, count, row, way="pull", name="from_cache")
    time = in_turns({"cached": act_of(pull, source=small, index=index, destination=out)}, 6)["cached"]
    cached = 2 * count * row / time / 1e3
    return [{"part": "launches", "launch_us": empty, "cached_gbps": cached,
             "cache_bytes": torch().cuda.get_device_properties(0).L2_cache_size}]  # fmt: skip


PARTS = {"launches": launches, "granules": granules, "permutations": permutations, "pages": pages, "choices": choices,
         "runs": runs, "loops": loops}  # fmt: skip


def run_part(name: str) -> list[dict[str, Any]]:
    """Run one part in a child."""
    found = PARTS[name]()
    torch().cuda.empty_cache()
    return found


def fitted(rows: list[dict[str, Any]], chip: str = "NVIDIA H200") -> dict[str, Any]:
    """Return the entry of ``targets/memory_costs.json`` that the rows measured; rates are the best that were seen."""
    of = {name: [row for row in rows if row["part"] == name] for name in PARTS}
    table = {(row["granule"], row["way"]): row["gbps"] for row in of["granules"]}
    rates: dict[str, list[float]] = {"warp": [], "direct": [], "gathers": []}
    blocks = []
    for row in of["choices"]:
        warps, words, us = row["rows"] * row["length"] / 32, -(-row["length"] // 32), row["us"]
        rates["direct"].append(warps * row["sectors"] / us["direct"])
        rates["gathers"].append(warps / us["direct"])
        rates["warp"] += [warps * words / us["warp"]] if "warp" in us else []
        blocks += [(row["rows"], us["shared"])] if "shared" in us else []
    per_block, _ = np.polyfit(*zip(*blocks, strict=True), 1)
    (alone,) = of["launches"]
    return {
        "chip": chip, "date": datetime.date.today().isoformat(), "evidence": "measured",
        "method": "benchmarks/device.py indirect; rates are the best that were seen",
        "launch_us": round(alone["launch_us"], 2), "granules": list(GRANULES),
        **{name: [round(table[granule, way], 1) for granule in GRANULES] for way, name in WAYS.items()},
        "shuffles_per_us": round(max(rates["warp"]), 1), "blocks_per_us": round(float(1 / per_block), 1),
        "gathers_per_us": round(max(rates["gathers"]), 1),
        "sectors_per_us": round(max(rates["direct"]), 1), "cached_gbps": round(alone["cached_gbps"], 1),
        "cache_bytes": int(alone["cache_bytes"]),
    }  # fmt: skip


def regrets(rows: list[dict[str, Any]], costs: dict[str, Any]) -> list[tuple[float, str]]:
    """By how much each choice is slower than the best single way, worst first, under these costs."""
    found, table = [], MemoryCosts(**costs)
    for row in rows:
        if row["part"] == "choices":
            chosen = gather_choice(row["rows"], row["length"], row["length"], 4, row["sectors"], table).way
            name = f"{row['where']} {row['rows']}x{row['length']} {row['spread']}: {chosen}"
            found.append((row["us"][chosen] / min(row["us"].values()), name))
    return sorted(found, reverse=True)


def rehearsed() -> list[Any]:
    """The kernels of all parts."""
    kernels = [each.kernel for each in routing_kernels(TOKENS[-1] * K, EXPERTS, 64)]
    kernels += [routing_kernels(256, EXPERTS, 64, name="la_route_one")[0].kernel]
    for way in ("push", "pull"):
        kernels.append(permute_kernel(4096, K, 4096 * K, 2 * COLUMNS, way=way).kernel)
    kernels.append(unpermute_kernel(4096, K, 4096 * K, COLUMNS).kernel)
    for granule in GRANULES:
        for way in WAYS:
            kernels.append(paged_kernel(cache_of(granule, 4, [3, 1, 2, 0]), way=way, name=f"{way}_{granule}").kernel)
    cache = Paged([3, 1], 16, 8, 128, 2)
    wide = [replace(COPY_LOOP, load=load, store=store) for load in LOADS for store in STORES if not load or not store]
    for number, loop in enumerate([*LOOPS, *wide]):
        kernels.append(paged_kernel(cache, loop=loop, name=f"loop_{number}").kernel)
    kernels.append(paged_kernel(PagedBatch(cache, [0, 1, 2], [16, 3])).kernel)
    kernels.append(runs_kernel(8, 8, 2, 2 * COLUMNS).kernel)
    return kernels


def indirect_job(run: Run) -> None:
    """Run the parts one after the other in one child."""
    if run.options.rehearse:
        run.compile(rehearsed())
    names = [name for name in PARTS if name in (run.options.only or PARTS)]
    answers = run.each(run_part, names, group=len(names), seconds=run.options.seconds, workers=1)
    rows, faults = [], []
    for name, answer in zip(names, answers, strict=True):
        if isinstance(answer, Fault):
            faults.append(f"{name}: {answer.text}")
        else:
            rows += answer
    summary: dict[str, Any] = {"faults": faults}
    for row in rows:
        if row["part"] == "permutations":
            summary[f"permute {row['tokens']}"] = {key: row[key] for key in ("right", "us", "to_index_select")}
        if row["part"] == "pages":
            shown = {way: round(each, 3) for way, each in row["of_contiguous"].items()}
            summary[f"pages {row['page']} {row['layout']}"] = shown
        if row["part"] == "granules":
            summary.setdefault("gbps", {})[f"{row['way']} {row['granule']}"] = round(row["gbps"])
        if row["part"] == "runs":
            shown = {way: round(each, 1) for way, each in row["us"].items()}
            summary[f"runs of {row['length']}"] = {"right": row["right"], "us": shown}
    looping = [row for row in rows if row["part"] == "loops"]
    if looping:
        wrong = [row["loop"] for row in looping if not row["right"]]
        last = [row for row in looping if row["stage"] == "pages"]
        best = [(round(share, 4), str(loop)) for share, loop in leading(last, len(last))]
        each = {f"{row['page']} {row['layout']} {CopyLoop(**row['loop'])}": round(row["of_contiguous"], 3)
                for row in last if CopyLoop(**row["loop"]) in (COPY_LOOP, leading(last, 1)[0][1])}  # fmt: skip
        summary["loops"] = {"wrong": wrong, "best": best, "of_contiguous": each}
    if {row["part"] for row in rows} >= {*PARTS} - {"loops", "runs"}:
        import torch

        costs = fitted(rows, torch.cuda.get_device_name(0))
        found = regrets(rows, costs)
        mean = math.exp(statistics.fmean([math.log(ratio) for ratio, _ in found]))
        summary |= {"memory_costs": costs, "regret": {"mean": mean, "worst": found[:5]}}
    run.write("indirect_dev", summary, rows=rows)

"""Routed and paged data against enumeration; certificates, lifetimes, choices; bad input named by its first entry."""

from __future__ import annotations

import gzip
import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from judges import indirect as judge

import layoutalg as la
from layoutalg.codegen.kernels import gather_kernel
from layoutalg.ground.errors import AdmissibilityError, LayoutError, MalformedError
from layoutalg.ground.verdict import Refuted
from layoutalg.proofs.certify import Certificate
from layoutalg.proofs.indirect import Labels, Lifetimes, Paged, PagedBatch, PageTable, Permutation, Routing, Runs
from layoutalg.proofs.indirect.pages import fragmentation
from layoutalg.synth.indirect import (
    gather_choice,
    page_choice,
    paged_choice,
    routed_choice,
    row_choice,
    row_ways,
    warp_sectors,
)
from layoutalg.targets.memory_costs import memory_costs
from layoutalg.targets.roofs import roofs


@st.composite
def routings(draw):
    experts, k, tokens = draw(st.integers(1, 7)), draw(st.integers(1, 3)), draw(st.integers(0, 7))
    ids = draw(
        st.lists(st.lists(st.integers(0, experts - 1), min_size=k, max_size=k), min_size=tokens, max_size=tokens)
    )
    ends = sorted(draw(st.tuples(st.integers(0, experts - 1), st.integers(0, experts - 1))))
    local = draw(st.sampled_from([None, tuple(ends)]))
    return np.array(ids, dtype=np.int64).reshape(tokens, k), experts, draw(st.integers(1, 5)), local


@st.composite
def caches(draw):
    size, heads, dim = draw(st.sampled_from([1, 2, 3, 16])), draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 4]))
    element, pages = draw(st.sampled_from([1, 2, 4, 8])), draw(st.integers(1, 6))
    table = draw(st.lists(st.integers(0, pages - 1), max_size=5))
    tokens = draw(st.integers(0, len(table) * size))
    stride = size * heads * dim * element + element * draw(st.sampled_from([0, 0, 1, 5]))
    return table, size, heads, dim, element, draw(st.sampled_from(["NHD", "HND"])), tokens, pages, stride


@given(routings())
def test_a_routing_is_what_enumeration_says(case):
    found, wanted = la.routing(*case), judge.routing(*case)
    for name, value in wanted.items():
        given_ = getattr(found, name)
        assert (given_.tolist() if isinstance(given_, np.ndarray) else given_) == value, name
    assert len(found.tiles) <= found.tile_bound
    assert found == la.routing(*case)
    assert found.certificate.check()
    assert "rows" in str(found)


@given(caches(), st.data())
def test_a_paged_sequence_is_what_enumeration_says(case, data):
    cache, places = la.paged(*case), judge.addresses(*case)
    for (token, head, d), byte in np.ndenumerate(places):
        assert cache.address(token, head, d) == byte
    if places.size:
        token, head, d = np.indices(places.shape)
        assert (cache.address(token, head, d) == places).all()
        page = cache.page_layout(*(int(data.draw(st.integers(0, each - 1))) for each in (case[1], case[2], case[3])))
        assert page < cache.page_bytes
    for head in range(case[2]):
        assert cache.runs(head) == judge.runs(places[:, head].reshape(-1), case[4])
    assert cache.runs() == judge.runs(judge.in_page_order(places, case[1], case[5]), case[4])
    used = cache.page_table.tolist()
    assert [page + step for page, many in cache.page_runs for step in range(many)] == used
    assert all(one[0] + one[1] != two[0] for one, two in itertools.pairwise(cache.page_runs))
    assert cache.table.sharing == max(map(used.count, used), default=0)
    assert cache.certificate.check()
    if len(set(used)) == len(used):
        assert cache.table.written() == cache.table
    else:
        second = next(place for place, page in enumerate(used) if page in used[:place])
        with pytest.raises(AdmissibilityError, match=rf"page_table\[{second}\]"):
            cache.kernel("scatter")


@st.composite
def csr(draw):
    """A table of several sequences, some without a page, entries behind the last that are not looked at."""
    table, *geometry, _, pages, stride = draw(caches())
    indptr = [0, *sorted(draw(st.lists(st.integers(0, len(table)), max_size=4)))]
    last = [draw(st.integers(int(end > first), geometry[0])) for first, end in itertools.pairwise(indptr)]
    return (table, *geometry), {"pages": pages, "page_stride": stride, "indptr": indptr, "last_page_len": last}


@given(csr())
def test_a_batch_is_its_sequences(case):
    (table, size, heads, dim, element, layout), given_ = case
    batch, starts, last = la.paged(table, size, heads, dim, element, layout, **given_), *list(given_.values())[2:]
    every, runs = set(), []
    for number, (first, end) in enumerate(itertools.pairwise(starts)):
        tokens = (end - first - 1) * size + last[number] if end > first else 0
        places = judge.addresses(
            table[first:end], size, heads, dim, element, layout, tokens, given_["pages"], given_["page_stride"]
        )
        assert batch.lengths[number] == tokens == batch.sequence(number).tokens
        if tokens:
            token, head, d = np.indices(places.shape)
            assert (batch.address(number, token, head, d) == places).all()
            assert batch.sequence(number).address(tokens - 1) == batch.address(number, tokens - 1) == places[-1, 0, 0]
        with pytest.raises(MalformedError, match="token"):
            batch.address(number, tokens)
        every |= set(places.reshape(-1).tolist())
        runs += [(number, page, many) for page, many in batch.sequence(number).page_runs]
    assert batch.page_runs == runs
    proof = batch.certificate.check()
    assert f"{batch.lengths.sum()} tokens of {len(last)} sequences" in proof.certificate["claim"]
    used = table[: starts[-1]]
    assert (batch.table.sharing < 2) == (len(set(used)) == len(used))
    if batch.table.sharing < 2:
        assert len(every) == batch.lengths.sum() * heads * dim
    elif size * heads * dim * element % 16 == 0 and dim * element % 16 == 0:
        with pytest.raises(AdmissibilityError, match="LA939"):
            batch.kernel("scatter")
    assert f"{len(last)} sequences" in str(batch)


@given(st.integers(1, 600), st.integers(1, 600))
def test_a_box_divides_a_page_and_a_block(size, rows):
    found = Paged([0], size, 1, 1, 1).box_rows(rows)
    assert found == max(each for each in range(1, 257) if size % each == 0 and rows % each == 0)


def test_boxes_past_the_end_name_a_page_that_is_not_there():
    cache = Paged([5, 1], 16, 1, 64, 2, "NHD", 20, 8)
    assert cache.boxes(8, 40) == [(0, 5), (8, 5), (0, 1), (8, 8), (0, 8)]


@given(st.lists(st.integers(-4, 4), max_size=9), st.sampled_from([None, 1, 2, 0]))
def test_runs_are_the_fewest(values, step):
    found = Runs.of(values, step)
    assert found.values().tolist() == values
    assert len(found.pieces) == judge.fewest_pieces(values, step)


@given(st.permutations(range(6)), st.integers(0, 3), st.integers(0, 6))
def test_scattering_undoes_gathering(order, more, kept):
    pi = Permutation(order[:kept], 6 + more)
    x = np.arange(10, 16 + more)
    back = pi.scatter(pi.gather(x))
    assert all(back[place] == (x[place] if place in order[:kept] else 0) for place in range(6 + more))
    assert all(pi.inverse[source] == place for place, source in enumerate(pi.sources))
    assert pi.runs.values().tolist() == order[:kept]


@given(st.lists(st.integers(0, 300), max_size=8), st.integers(1, 64))
def test_fragmentation_is_below_a_page_for_each_sequence(lengths, size):
    empty, share = fragmentation(lengths, size)
    pages = sum(-(-length // size) for length in lengths)
    assert empty == pages * size - sum(lengths) <= len(lengths) * (size - 1)
    assert share == (empty / (pages * size) if pages else 0)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: la.routing([[0, 1], [-1, 0]], 4), r"topk_ids\[1, 0\]"),
        (lambda: la.routing([[0, 4]], 4), r"topk_ids\[0, 1\]"),
        (lambda: la.routing([[0, True]], 4), r"topk_ids\[0, 1\]"),
        (lambda: la.routing([[0.0]], 4), "topk_ids"),
        (lambda: la.routing([[0], [0, 1]], 4), "topk_ids"),
        (lambda: la.routing(np.zeros((2, 2, 2), int), 4), "1 dimension or 2 dimensions"),
        (lambda: la.routing([0], 4, local=(1, 4)), "local"),
        (lambda: la.routing([0], 4, local=(2, 1)), "local"),
        (lambda: la.routing([0], 1 << 20), "experts"),
        (lambda: la.routing([0], 4, block=0), "block"),
        (lambda: la.routing([0], 1 << 16, 1 << 16), "block"),
        (lambda: la.paged([0, 9], 16, 1, 64, 2, pages=8), r"page_table\[1\]"),
        (lambda: la.paged([0, -1], 16, 1, 64, 2), r"page_table\[1\]"),
        (lambda: la.paged([0], 16, 1, 64, 3), "element_bytes"),
        (lambda: la.paged([0], 16, 1, 64, 2, seq_len=17), "seq_len"),
        (lambda: la.paged([0], 16, 1, 64, 2, "NDH"), "kv_layout"),
        (lambda: la.paged([0], 16, 1, 64, 2, page_stride=2046), "page_stride"),
        (lambda: la.paged([0], 16, 1, 64, 2, page_stride=2049), "page_stride"),
        (lambda: la.paged([0], 16, 1, 64, 2).address(16), "token"),
        (lambda: la.paged([1 << 45], 16, 1, 64, 2), "pages"),
        (lambda: la.paged([0], 4, 1, 4, 2).kernel(), "head_dim"),
        (lambda: la.paged([0, 1], 4, 1, 4, 2, indptr=[0, 1]), "indptr"),
        (lambda: la.paged([0, 1], 4, 1, 4, 2, seq_len=4, indptr=[0, 1], last_page_len=[4]), "seq_len"),
        (lambda: la.paged([0, 1], 4, 1, 4, 2, indptr=[0, 3], last_page_len=[4]), r"indptr\[1\]"),
        (lambda: la.paged([0, 1], 4, 1, 4, 2, indptr=[0, 2, 1], last_page_len=[4, 4]), r"indptr\[2\]"),
        (lambda: la.paged([0, 1], 4, 1, 4, 2, indptr=[1, 2], last_page_len=[4]), r"indptr\[0\]"),
        (lambda: la.paged([0, 1], 4, 1, 4, 2, indptr=[], last_page_len=[]), "indptr"),
        (lambda: la.paged([0, 1], 4, 1, 4, 2, indptr=[0, 1, 2], last_page_len=[4, 0]), r"last_page_len\[1\]"),
        (lambda: la.paged([0, 1], 4, 1, 4, 2, indptr=[0, 1, 2], last_page_len=[4, 5]), r"last_page_len\[1\]"),
        (lambda: la.paged([0, 1], 4, 1, 4, 2, indptr=[0, 1, 2], last_page_len=[4]), "last_page_len"),
        (lambda: PagedBatch(Paged([0], 4, 1, 4, 2, seq_len=3), [0, 1], [3]), "whole"),
        (lambda: la.paged([0], 4, 1, 8, 2, indptr=[0, 1], last_page_len=[4]).sequence(1), "number"),
        (lambda: la.paged([0], 4, 1, 8, 2, indptr=[0, 1], last_page_len=[2]).kernel(capacity=1), "capacity"),
        (lambda: gather_choice(4, 64, 64, 4, plan=tile_plan("gfx942")), "plan"),
        (lambda: gather_choice(4, 32, 64, 4, plan=tile_plan()), "plan"),
        (lambda: la.paged([0], 4, 1, 64, 2, seq_len=3).kernel("scatter", "bulk"), "way"),
        (lambda: la.paged([0], 4, 1, 64, 2).kernel(way="bulk", capacity=8), "capacity"),
        (lambda: la.paged([0], 4, 1, 64, 2).kernel(way="tma", target="gfx942"), "way"),
        (lambda: la.routing([0], 4).kernels(7), "row_bytes"),
        (lambda: la.routing([0], 2000).kernels(), "experts"),
        (lambda: Permutation([0, 2, 0], 3), r"sources\[2\]"),
        (lambda: Permutation([0, 3], 3), r"sources\[1\]"),
        (lambda: Labels([0, 3], 3), r"ids\[1\]"),
        (lambda: Runs([[0, 1, 1, 2], [3, 0, 1, 1]]), "pieces"),
        (lambda: gather_choice(1, 0, 1, 4), "length"),
        (lambda: page_choice([10], 64, []), "sizes"),
    ],
)
def test_bad_input_is_named(call, says):
    with pytest.raises(MalformedError, match=says):
        call()


def test_a_launch_with_another_grid_or_table_is_refused():
    kernel = la.routing(np.zeros((4, 2), int), 4).kernels(64)["permute"]
    right = {"source": np.zeros(512, np.uint8), "index": np.zeros(8, np.int32), "destination": np.zeros(1024, np.uint8)}
    with pytest.raises(LayoutError, match="index must have shape"):
        kernel.arguments(**(right | {"index": np.zeros(7, np.int32)}))
    with pytest.raises(LayoutError, match="blocks"):
        kernel.arguments(kernel.blocks + 1, **right)
    with pytest.raises(LayoutError, match="arrays"):
        kernel.arguments(source=right["source"])


KINDS = ("allocate", "use", "write", "free", "record", "wait")
HANDED_ON = [
    ("a", "allocate", "x"), ("a", "write", "x"), ("a", "record", "full"), ("b", "wait", "full"), ("b", "use", "x"),
    ("b", "record", "done"), ("a", "wait", "done"), ("a", "write", "x"), ("a", "free", "x"), ("a", "allocate", "x"),
]  # fmt: skip


@st.composite
def uses(draw):
    """Memory handed on between streams, some events left out, some exchanged, some others put in."""
    kept = [event for event in HANDED_ON if draw(st.integers(0, 5))]
    for _ in range(draw(st.integers(0, 2))):
        drawn = st.sampled_from(["a", "b", "c"]), st.sampled_from(KINDS), st.sampled_from(["x", "y", "full", "done"])
        kept.insert(draw(st.integers(0, len(kept))), draw(st.tuples(*drawn)))
    return kept


@settings(max_examples=400)
@given(uses())
def test_lifetimes_are_decided_by_the_closure(events):
    try:
        found = Lifetimes.of(events).check()
    except MalformedError:
        assert judge.waits_early(events)
        return
    wrong = judge.first_misuse(events)
    assert bool(found) == (wrong is None)
    if wrong is not None:
        assert isinstance(found, Refuted)
        assert found.witness["event"] == wrong
        with pytest.raises(AdmissibilityError, match="LA944"):
            Lifetimes.of(events).require()


@given(st.data(), routings())
def test_a_changed_certificate_is_refuted(data, case):
    made = la.routing(*case).certificate
    statement = dict(made.statement)
    name = data.draw(st.sampled_from(["order", "offsets", "padded_offsets", "padded_order", "block_experts"]))
    if not statement[name]:
        return
    place = data.draw(st.integers(0, len(statement[name]) - 1))
    changed = list(statement[name])
    changed[place] += data.draw(st.sampled_from([1, 2, 7]))
    assert isinstance(Certificate("routing", statement | {name: changed}).check(), Refuted)


def test_a_wrong_claim_about_pages_is_refuted():
    one = la.paged([3, 1, 3], 16, 2, 64, 2)
    several = la.paged([3, 1, 3], 16, 2, 64, 2, indptr=[0, 1, 1, 3], last_page_len=[16, 0, 16])
    alike = [{"sharing": 1}, {"stride": 4094}, {"pages": 3}, {"table": [3, 1]}, {"tokens": 49}]
    lists = [
        {"indptr": [0, 2, 1, 3]}, {"indptr": [0, 1, 3]}, {"indptr": [0, 1, 1, 2]}, {"indptr": [1, 1, 1, 3]},
        {"last_page_len": [16, 0, 17], "tokens": 49}, {"last_page_len": [16, 0, 0], "tokens": 32},
        {"last_page_len": [15, 0, 16]},
    ]  # fmt: skip
    for cache, changes in ((one, [*alike, {"indptr": [0, 3]}]), (several, alike + lists)):
        for change in changes:
            statement = dict(cache.certificate.statement) | change
            assert isinstance(Certificate("paging", statement).check(), Refuted), change


def tile_plan(target="sm_90a"):
    """A gather of register tiles of 4 rows of 64 elements of 4 bytes, a row a warp."""
    lanes = 32 if target == "sm_90a" else 64
    bits = [(0, lanes >> bit) for bit in range(lanes.bit_length())]
    tile = la.LinearLayout.from_bases(
        {"register": [(0, 32)] * (lanes == 32), "lane": [(0, 1 << bit) for bit in range(len(bits) - 1)],
         "warp": [(1, 0), (2, 0)]}, {"row": 4, "col": 64},
    )  # fmt: skip
    return la.gather(tile, tile, "col", 32, target)


def test_a_plan_of_tiles_is_one_of_the_ways():
    plan, costs = tile_plan(), memory_costs("sm_90a")
    ranked = {each.way: each for each in gather_choice(1 << 19, 64, 64, 4, plan=plan).ranked}
    assert plan.mechanism == "shuffles"
    assert ranked["tile shuffles"].bytes == ranked["warp"].bytes
    moved = ranked["warp"].bytes / costs.bandwidth("vector", 512) / 1e3 + costs.launch_us
    assert ranked["tile shuffles"].microseconds == pytest.approx(moved)  # loads and stores hide the exchanges
    quick = replace(costs, vector=[1e8] * len(costs.granules))
    found = {each.way: each for each in gather_choice(1 << 19, 64, 64, 4, target=quick, plan=plan).ranked}
    chip, tiles = roofs("sm_90a"), 1 << 17
    cycles = tiles * plan.cost.cycles / (chip.units * chip.clock_mhz) + costs.launch_us
    assert found["tile shuffles"].microseconds == pytest.approx(cycles)


@given(st.integers(1, 1 << 17), st.sampled_from([1, 2, 4, 8]), st.sampled_from(["sm_90a", "gfx942"]))
@example(1024, 1, "sm_90a")
@example(512, 2, "gfx942")
def test_kernels_take_the_ways_that_choices_rank(length, size, target):
    kind = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}[size]
    ways = row_ways(length, size, 32 if target == "sm_90a" else 64)
    for way, allowed in ways.items():
        try:
            text = gather_kernel((4, length), 1, 8, kind, target, way=way).kernel.text
        except LayoutError:
            assert not allowed, way
        else:
            assert text.count("const la_u32 held") + 2 * text.count("const la_u64 held") <= 8
            # more shared memory than is preferred may be asked for by name
            assert allowed or way == "shared", way
    if target == "sm_90a":
        ranked = {each.way for each in gather_choice(4, length, 8, size).ranked}
        assert ranked == {way for way, allowed in ways.items() if allowed}


def test_the_choice_of_pages_is_near_the_fastest_that_was_measured():
    stored = Path(__file__).parents[1] / "data/measured/indirect_dev.json.gz"
    rows = [row for row in json.loads(gzip.decompress(stored.read_bytes()))["rows"] if row["part"] == "pages"]
    assert len(rows) > 10
    for row in rows:
        cache = Paged(range(1 << 10), row["page"] // 2048, 8, 128, 2, row["layout"])
        times = {way: row["us"][way] for way in ("vector", "bulk", "tma")}
        assert times[paged_choice(cache).way] <= 1.03 * min(times.values()), row


def test_choices_rank_by_their_formula():
    rng = np.random.default_rng(0)
    many = la.routing(rng.integers(0, 64, (4096, 8)), 64, 64)
    for found in (
        gather_choice(1 << 14, 64, 64, 4), row_choice(rng.permutation(99), 256), row_choice(range(99), 256),
        paged_choice(Paged(rng.permutation(32), 16, 8, 128, 2)), routed_choice(many, 14336, 16),
    ):  # fmt: skip
        times = [each.microseconds for each in found.ranked]
        assert times == sorted(times)
        assert found.way == found.ranked[0].way
        assert found.evidence in str(found)
    assert "runs" in [each.way for each in row_choice(range(99), 256).ranked]
    best, table = page_choice([1000] * 50 + [17] * 200, 256)
    assert best in [row[0] for row in table]


def test_values_are_equal_by_their_data():
    assert Routing([0, 1], 2, 4) == Routing(np.array([0, 1]), 2, 4) != Routing([1, 0], 2, 4)
    assert len({PageTable([1], 2), PageTable([1], 2), PageTable([0], 2)}) == 2


@given(st.lists(st.integers(0, 300), min_size=1, max_size=80), st.sampled_from([1, 2, 4, 8, 16, 32]))
def test_sectors_of_warps_are_those_of_their_bytes(index, size):
    warps = [index[first : first + 32] for first in range(0, len(index), 32)]
    named = [{(entry * size + byte) // 32 for entry in warp for byte in range(size)} for warp in warps]
    assert warp_sectors(index, size) == pytest.approx(sum(map(len, named)) / len(warps))


@pytest.mark.parametrize("size", [0, 3, 12, 64, "4"])
def test_elements_in_two_sectors_are_refused(size):
    with pytest.raises(MalformedError, match="element_bytes"):
        warp_sectors([1, 2], size)

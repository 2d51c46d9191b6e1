"""The judge of pipelines on programs that are small enough to think through; a row fails where its rule is missing."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest
from judges import pipeline_judge
from judges.pipeline_judge import explore, lower_bound, safe
from judges.pipeline_programs import FAMILIES, LABELLED, arrive, document, op, plain, possible, program, role, wait

COPY = op("tma_load", buf="A", bar="b")
COPIED = op("arrive_tx", bar="b", bytes=64)
FENCE = op("proxy_fence")
WRITE, READ, MMA = op("write", buf="A"), op("read", buf="A"), op("mma", buf="A")
NEXT = op("write", buf="A", idx_abs=1)
GROUP = [WRITE, FENCE, MMA, op("mma_commit")]
STORED = [WRITE, FENCE, op("tma_store", buf="A")]


def at(bar, index, name="arrive", **more):
    return op(name, bar=bar, idx_abs=index, **more)


def block(*roles, count=1, slots=1):
    """A document of roles without loops, one barrier b and one buffer A."""
    made = [role(f"role{number}", [], pre=ops) for number, ops in enumerate(roles)]
    return document(slots, {"b": count}, {"A": 64}, made)


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ([[at("b", -1, "wait")]], ""),
        ([[at("b", 0, "wait")]], "deadlock"),
        ([[at("b", 0, "wait", flip=True)]], ""),
        ([[at("b", 0), at("b", 0, "wait", flip=True)]], "deadlock"),
        ([[at("b", 1, "wait")]], "soft_ub"),
        ([[at("b", -2, "wait")]], "soft_ub deadlock"),
        # the other role may find phase 1 completed, whose parity blocks it
        ([[at("b", 0), at("b", 1)], [at("b", 0, "wait")]], "soft_ub deadlock"),
        ([[at("b", 0), at("b", 1), at("b", 2)], [at("b", 0, "wait")]], "soft_ub"),
        ([[at("b", 0), at("b", 1)], [at("b", 0, "wait"), at("b", 1, "wait")]], "soft_ub deadlock"),
        ([[at("b", 1)]], "soft_ub"),
        ([[at("b", 0, n=2)]], "ub"),
        ([[at("b", 0), at("b", 0)]], "soft_ub"),
    ],
)
def test_phases(roles, expected):
    assert explore(block(*roles), 0) == set(expected.split())


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ([[COPIED, COPY, wait("b"), READ]], ""),
        ([[COPIED, COPY, READ, wait("b")]], "race"),
        ([[COPIED, COPY]], "ub"),
        # the copy may be done before its bytes are expected, while the arrival is pending
        ([[COPY, COPIED, wait("b")]], ""),
        ([[COPY, op("expect", bar="b", bytes=64), arrive("b"), wait("b")]], ""),
        # the arrival completes the phase, and the bytes meet the next one or come when all is over
        ([[arrive("b"), COPY, wait("b")]], "tx_mismatch soft_ub ub"),
        ([[op("arrive_tx", bar="b", bytes=80), COPY, wait("b")]], "tx_mismatch deadlock"),
        ([[op("arrive_tx", bar="b", bytes=80), COPY]], "ub"),
        ([[op("arrive_tx", bar="b", bytes=80), at("b", 0, "wait", flip=True)]], ""),
        ([[op("arrive_tx", bar="b", bytes=80), at("b", 1, "wait", flip=True)]], "tx_mismatch deadlock"),
        ([[op("expect", bar="b", bytes=2**20 - 1)]], ""),
        ([[op("expect", bar="b", bytes=2**20)]], "ub"),
        # two copies of an index fill the slot together; of two indices only one may run
        ([[op("arrive_tx", bar="b", bytes=128), COPY, COPY, wait("b"), READ]], ""),
        ([[COPIED, {**COPY, "bytes": 32}, {**COPY, "bytes": 32}, wait("b"), READ]], ""),
        ([[COPIED, COPY, wait("b"), READ, WRITE]], "race"),
        ([[COPIED, COPY, NEXT, wait("b")]], "race"),
        ([[COPIED, COPY, wait("b"), NEXT, READ]], "race"),
    ],
)
def test_copies(roles, expected):
    assert explore(block(*roles), 0) == set(expected.split())


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ([*GROUP, op("mma_wait", n=0), NEXT], ""),
        ([*GROUP, op("mma_wait", n=1), NEXT], "race"),
        ([*GROUP, op("mma_commit"), op("mma_wait", n=1), NEXT], ""),
        ([*GROUP, NEXT], "race"),
        ([*GROUP[:3], op("mma_wait", n=0), NEXT], "race"),
        (GROUP, ""),
        ([*STORED, op("bulk_commit"), op("bulk_wait", n=0), NEXT], ""),
        ([*STORED, op("bulk_commit"), op("bulk_wait", n=1), NEXT], "race ub"),
        ([*STORED, op("bulk_commit"), op("mma_wait", n=0)], "ub"),
        ([*STORED, op("bulk_wait", n=0)], "ub"),
        ([READ, WRITE], "race"),
        ([WRITE, READ], ""),
        ([WRITE, NEXT, READ], "race"),
        ([WRITE, MMA], "race"),
        ([WRITE, FENCE, READ, MMA], ""),
        ([WRITE, FENCE, READ, COPIED, COPY, wait("b")], "race"),
        ([NEXT, COPIED, COPY, wait("b")], "race"),
        ([NEXT, FENCE, COPIED, COPY, wait("b")], ""),
    ],
)
def test_groups_and_proxies(ops, expected):
    assert explore(block(ops), 0) == set(expected.split())


CP = op("cp_async", buf="A")
COMMIT = [op("cp_async_commit"), op("cp_async_wait", n=0)]
MMA_DONE, CP_DONE = op("mma_arrive", bar="b"), op("cp_async_arrive", bar="b")


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ([[WRITE, FENCE, MMA, MMA_DONE, wait("b"), NEXT]], ""),
        ([[WRITE, FENCE, MMA, MMA_DONE, NEXT]], "race"),
        ([[WRITE, FENCE, MMA_DONE, MMA, wait("b"), NEXT]], "race"),
        # the arrival is only on its way when the role waits for its group
        ([[*GROUP, MMA_DONE, op("mma_wait", n=0), NEXT]], ""),
        ([[*GROUP, MMA_DONE, op("mma_wait", n=0), at("b", 0)]], "soft_ub"),
        ([[MMA_DONE, at("b", 0, "wait")]], ""),
        ([[{**MMA_DONE, "idx_abs": 1}]], "soft_ub"),
        ([[MMA_DONE, MMA_DONE]], "soft_ub"),
        ([[op("expect", bar="b", bytes=16), MMA_DONE, MMA_DONE]], "ub"),
        # a wait for stores or cp_asyncs covers no mma
        ([[WRITE, FENCE, MMA, CP_DONE, wait("b"), NEXT]], "race"),
        ([[CP, READ]], "race"),
        ([[CP, *COMMIT, READ]], ""),
        ([[CP, COMMIT[1], READ]], "race"),
        ([[CP, CP_DONE, wait("b"), READ]], ""),
        ([[CP_DONE, CP, wait("b"), READ]], "race"),
        ([[CP, CP_DONE], [wait("b"), READ]], ""),
        ([[CP, arrive("b")], [wait("b"), READ]], "race"),
        ([[CP, {**CP, "idx_abs": 1}, *COMMIT]], "race"),
        ([[CP, CP, *COMMIT, READ]], ""),
        ([[CP]], ""),
        # it writes generically until it is waited for
        ([[CP, *COMMIT, MMA]], "race"),
        ([[CP, *COMMIT, FENCE, MMA]], ""),
        ([[CP, FENCE, *COMMIT, MMA]], "race"),
        ([[CP, FENCE, CP_DONE, wait("b"), MMA]], "race"),
        ([[CP, CP_DONE, wait("b"), FENCE, *COMMIT, MMA]], ""),
        ([[NEXT, FENCE, MMA | {"idx_abs": 1}, CP, *COMMIT]], "race"),
    ],
)
def test_arrivals_behind_accesses_and_copies_of_threads(roles, expected):
    assert explore(block(*roles), 0) == set(expected.split())


ADD, MORE = op("mma_write", buf="T"), op("mma_write", buf="T", idx_abs=1)
SUM, ZERO, OPERAND = op("read", buf="T"), op("write", buf="T"), op("mma", buf="T")
ENDED = [op("mma_commit"), op("mma_wait", n=0)]


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ([[ADD, *ENDED, SUM]], ""),
        ([[ADD, SUM]], "race"),
        ([[ADD, op("mma_commit"), op("mma_wait", n=1), SUM]], "race"),
        ([[ADD, op("mma_commit"), op("mma_commit"), op("mma_wait", n=1), SUM]], ""),
        ([[ADD, MMA_DONE, wait("b"), SUM]], ""),
        ([[MMA_DONE, ADD, wait("b"), SUM]], "race"),
        ([[ADD, MMA_DONE], [wait("b"), SUM]], ""),
        ([[ADD, arrive("b")], [wait("b"), SUM]], "race"),
        ([[ADD, *ENDED], [SUM]], "race"),
        ([[SUM, ADD]], "race"),
        # those of one role are carried out in order, also into another index of the slot; of two roles they are not
        ([[ADD, ADD, *ENDED, SUM]], ""),
        ([[ADD, ADD, *ENDED[:1], ADD, ENDED[1], SUM]], "race"),
        ([[ADD, MORE, *ENDED, SUM | {"idx_abs": 1}]], ""),
        ([[ADD, MORE, *ENDED, SUM]], "race"),
        ([[ADD], [ADD]], "race"),
        ([[ADD, MMA_DONE], [wait("b"), ADD]], ""),
        # a store of the same index comes before or behind, and discards no part of it
        ([[ZERO, ADD, *ENDED, SUM]], ""),
        ([[ADD, ZERO, *ENDED]], "race"),
        ([[ADD, *ENDED, ZERO, SUM]], ""),
        ([[ZERO], [ADD]], "race"),
        ([[ADD, *ENDED, MORE, *ENDED, ADD, *ENDED, SUM]], "race"),  # the first one was discarded
        # operands
        ([[ZERO, OPERAND, *ENDED, MORE]], ""),
        ([[ZERO, OPERAND, MORE]], "race"),
        ([[ZERO, OPERAND, ZERO]], "race"),
        ([[ADD, OPERAND]], "race"),
        ([[ADD, *ENDED, OPERAND]], ""),
        # proxies play no part, and nothing has to be finished when the block ends
        ([[ZERO, SUM, OPERAND, *ENDED, MORE, *ENDED]], ""),
        ([[ADD]], ""),
    ],
)
def test_tensor_memory(roles, expected):
    made = block(*roles)
    made["buffers"]["T"] = {"space": "tensor", "slots": 1}
    assert explore(made, 0) == set(expected.split())


def test_every_phase_has_the_same_count():
    twice = [at("b", 0, n=2), at("b", 1, n=2)]
    assert explore(block(twice, count=2), 0) == frozenset()
    assert explore(block([*twice, at("b", 1, "wait")], count=2), 0) == frozenset()
    assert explore(block([at("b", 0, n=2), at("b", 1), at("b", 1, "wait")], count=2), 0) == {"deadlock"}


def test_policies():
    first = {**WRITE, "idx_abs": 1}
    again = block([first, FENCE, {**READ, "idx_abs": 1}, COPIED, COPY, wait("b")])
    assert explore(again, 0) == {"race"}
    assert explore(again, 0, "practice") == frozenset()
    left = block([*STORED, op("bulk_commit")])
    assert explore(left, 0) == {"ub"}
    assert explore(left, 0, "practice") == frozenset()


def test_reads_of_what_nobody_writes():
    assert explore(block([READ]), 0) == frozenset()
    assert explore(block([{**READ, "idx_abs": 5}, WRITE]), 0) == {"race"}
    assert explore(block([READ, {**WRITE, "off": -1}]), 0) == frozenset()  # a write that is left out
    made = document(1, {}, {"A": 64}, [role("all", [WRITE], pre=[READ])])
    assert explore(made, 0) == {"race"}  # other N have a write


def test_a_fence_of_another_role_counts_where_it_comes_between():
    ordered = block([WRITE, arrive("b")], [wait("b"), FENCE, MMA])
    beside = block([WRITE, arrive("b")], [wait("b"), MMA], [FENCE])
    assert explore(ordered, 0) == frozenset()
    assert explore(beside, 0) == {"race"}


def test_a_read_needs_the_writes_of_every_role():
    halves = [[WRITE, arrive("b")], [WRITE, arrive("b")], [wait("b"), READ]]
    assert explore(block(*halves, count=2), 0) == frozenset()
    halves[1].reverse()
    assert explore(block(*halves, count=2), 0) == {"race"}


def counted(loop, trip="N", n=3, **more):
    """The kinds of a loop that arrives at three slots, with a role that waits for the last of them."""
    roles = [role("loop", loop, trip=trip), role("last", [], pre=[at("b", 2, "wait")])]
    return explore(document(3, {"b": 1}, {}, roles) | more, n)


def test_trips_guards_and_indices():
    assert counted([arrive("b")]) == frozenset()
    assert counted([arrive("b")], n=2) == {"deadlock"}
    assert counted([arrive("b")], "N-1") == {"deadlock"}
    assert counted([arrive("b")], "N-5") == {"deadlock"}
    assert counted([arrive("b")], "N+2", n=1) == frozenset()
    assert counted([arrive("b", off=1)], "N-1") == frozenset()
    assert counted([arrive("b", off=-1)], n=4) == frozenset()  # the first one is left out
    assert counted([arrive("b", off=-1)]) == {"deadlock"}
    assert counted([arrive("b", guard={"until": 1})]) == {"deadlock"}
    assert counted([arrive("b", guard={"from": 2})]) == frozenset()
    assert counted([arrive("b", off=3, ph=-1)]) == frozenset()
    assert counted([arrive("b", off=3)]) == {"soft_ub"}


@pytest.mark.parametrize(("trip", "expected"), [("N", ""), ("N-1", "deadlock"), ("N+1", "soft_ub deadlock")])
def test_behind_the_loop_k_is_the_trip(trip, expected):
    roles = [role("last", [], post=[arrive("b"), at("b", 2, "wait")], trip=trip)]
    assert explore(document(3, {"b": 1}, {}, roles), 2) == set(expected.split())
    early = document(3, {"b": 1}, {}, [role("first", [], post=[arrive("b"), at("b", 0, "wait")], trip="N-5")])
    assert explore(early, 2) == frozenset()


def test_counters_that_start_again():
    assert counted([arrive("b")], phase_reset_every=3) == frozenset()
    assert counted([arrive("b")], n=4, phase_reset_every=3) == {"soft_ub"}  # slot 0 again, in phase 1 and not 0
    assert counted([arrive("b")], n=4, phase_reset_every=6) == frozenset()
    assert counted([arrive("b")], phase_reset_every=2) == {"soft_ub", "deadlock"}  # k is 0, 1, 0
    assert counted([arrive("b", off=2, guard={"from": 2})], phase_reset_every=2) == frozenset()  # guards count on
    assert safe(plain(2) | {"phase_reset_every": 2}) == (False, 3)
    assert safe(plain(2) | {"phase_reset_every": 3}) == (False, 5)  # slot 1 is in phase 1
    assert safe(plain(2) | {"phase_reset_every": 4})[0]


def test_indices_and_left_out_ops_when_counters_start_again():
    written = {"phase_reset_every": 2} | document(2, {}, {"A": 64}, [role("all", [WRITE, READ])])
    assert safe(written)[0]  # two indices of one slot, written in turn
    written["roles"][0]["loop"] = [READ, WRITE]
    assert explore(written, 1) == {"race"}
    late = plain(2, consume=[wait("full"), *GROUP[2:], op("mma_wait", n=0), arrive("empty", off=-1)])
    assert explore(late | {"phase_reset_every": 4}, 5) == frozenset()
    assert explore(late, 7) == frozenset()
    assert explore(late | {"phase_reset_every": 4}, 7) == {"deadlock"}  # the fifth trip releases no slot


def test_the_search_ends_and_says_how_far_it_came():
    assert explore(plain(), 1, states=9) == frozenset()  # three steps, a copy that is done, four steps
    assert explore(plain(), 1, states=8) is None
    assert safe(plain(), states=9) == (None, 2)
    assert safe(plain()) == (True, 9)
    assert safe(plain(), most_trips=3) == (True, 3)
    assert safe(plain(consume=[wait("full")])) == (False, 3)
    assert safe(plain(trips="N >= 2") | {"stages": 0}) == (False, 2)
    assert lower_bound({"trips": "N >= 5"}) == 5
    assert explore(plain(full=0), 1) == explore(plain(full=2**20), 1) == {"infeasible"}


@pytest.mark.parametrize("known", LABELLED, ids=lambda known: known["name"])
def test_known_bugs(known):
    verdict, n = safe(known["document"], known["policy"])
    assert verdict is (known["expected"] == "safe")
    if not verdict:
        kinds = [possible(known["document"], trips, known["policy"]) for trips in range(n, n + 6)]
        assert all(any(kind in found for found in kinds) for kind in known["expected"])


@pytest.mark.parametrize("family", dict.fromkeys(FAMILIES), ids=lambda family: family.__name__)
def test_families_are_safe(family, portion):
    for seed in portion(range(16)):
        assert safe(family(random.Random(seed)))[0], seed


def test_programs_are_repeatable_and_of_both_kinds():
    made = [program(random.Random(seed)) for seed in range(60)]
    assert made == [program(random.Random(seed)) for seed in range(60)]
    assert 15 < sum(safe(each, most_trips=4)[0] is False for each in made) < 50


def test_the_judge_shares_nothing_with_the_library():
    tree = ast.parse(Path(pipeline_judge.__file__).read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert not any(module.startswith(("layoutalg", "judges")) for module in modules)

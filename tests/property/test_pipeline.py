"""The verifier of pipelines against every order of events at small trip counts, on drawn and on known documents."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judges import pipeline_judge
from judges.pipeline_programs import LABELLED, POLICIES, SUMS, answer, document, judged, op, possible, program, role

from layoutalg.ground.verdict import Proved, Refuted, Unknown
from layoutalg.proofs.pipeline import verify

SEEDS = st.integers(0, 2**32 - 1)
STATES = 20_000


@settings(max_examples=300)
@given(seed=SEEDS, policy=st.sampled_from(POLICIES))
def test_verdicts_are_those_of_every_order_of_events(seed, policy):
    made = program(random.Random(seed))
    said, kind, trips = answer(made, policy)
    truth, n = judged(made, policy, STATES)
    assert {said, truth} != {"safe", "unsafe"}, (n, made)
    if said == "unsafe":
        kinds = possible(made, trips, policy, STATES)
        assert kinds is None or kind in kinds, made


ADDS = [op("mma_write", buf="T", idx_abs=0), op("mma_commit")]
LEADS = st.lists(st.sampled_from([*ADDS, op("mma_wait", n=1), op("mma_wait", n=0)]), max_size=3)
STORES = [op("mma_wait", n=0), op("mma_wait", n=1), op("read", buf="T", idx_abs=0), op("bulk_wait", n=0),
          op("bulk_wait", n=1), op("write", buf="C"), op("proxy_fence"), op("tma_store", buf="C"),
          op("bulk_commit")]  # fmt: skip
STORE = [STORES[place] for place in (0, 2, 3, 5, 6, 7, 8)]


@settings(max_examples=200)
@given(
    lead=LEADS,
    more=st.lists(st.tuples(st.integers(0, 7), st.sampled_from(STORES)), max_size=2),
    without=st.sets(st.integers(0, 8), max_size=2),
    waits=st.booleans(),
)
def test_roles_on_the_threads_of_another(lead, more, without, waits):
    """Threads run some iterations of one role, then some of the other, and so on: turns written out, one by one."""
    store = list(STORE)
    for place, extra in more:
        store.insert(place, extra)
    store = [each for place, each in enumerate(store) if place not in without]
    first = role("math", [*ADDS, *lead], post=[op("mma_wait", n=0)] if waits else None)
    second = role("store", store, post=[op("bulk_wait", n=0)], threads_of="math")
    buffers = {"T": SUMS, "C": {"bytes": 64, "slots": 2}}
    found = verify(document(1, {}, buffers, [first, second], "N >= 1"))
    wrong = []
    for turns, steps, parts in itertools.product((1, 2), (1, 2, 3), (1, 2, 3)):
        ops = [
            {**each, **({"idx_abs": at} if each.get("buf") == "T" else {"idx_abs": k} if "buf" in each else {})}
            for at in range(turns)
            for loop, many in ((first["loop"], steps), (store, parts))
            for k in range(at * many, at * many + many)
            for each in loop
        ]
        block = document(1, {}, buffers, [role("all", [], pre=[*ops, *first.get("post", []), *second["post"]])])
        wrong.append(pipeline_judge.explore(block, 0))
    assert isinstance(found, Proved | Refuted)
    assert isinstance(found, Proved) == (not any(wrong)), (first, second, wrong)


def test_unknown_is_rare(portion):
    seeds = portion(range(600))
    answers = [answer(program(random.Random(seed)))[0] for seed in seeds]
    assert answers.count("unknown") <= 0.03 * len(seeds)
    assert min(answers.count("safe"), answers.count("unsafe")) >= 0.25 * len(seeds)


@pytest.mark.parametrize("known", LABELLED, ids=lambda known: known["name"])
def test_known_bugs(known):
    found = verify(known["document"], policy=known["policy"])
    if known["expected"] == "safe":
        assert isinstance(found, Proved)
        return
    assert not isinstance(found, Proved | Unknown)
    assert found.kind in known["expected"]
    # roles may hang before anything has happened
    assert found.interleaving or found.kind in ("infeasible", "deadlock")

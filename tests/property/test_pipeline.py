"""The verifier of pipelines against every order of events at small trip counts, on drawn and on known documents."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judges.pipeline_programs import LABELLED, POLICIES, answer, judged, possible, program

from layoutalg.ground.verdict import Proved, Unknown
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

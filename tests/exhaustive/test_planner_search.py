"""The planner on small random problems: every plan run on the tests' own copy engine, every refusal searched.

Implementation notes: ``benchmarks/campaign_planner.py`` does the same for any number of problems. The second half
judges the judges: they notice planted faults, and the search finds every plan that the planner finds.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from judges import map_search, planner_cases, tma_engine
from judges.map_candidates import Candidate, element_strides
from judges.map_geometry import Geometry, geometries_of
from judges.map_search import search_maps
from judges.map_trial import View
from judges.planner_cases import examine, judge_plan, run_plan
from judges.planner_judge import CLASSES, Statement, contradiction
from judges.planner_problems import random_problem

from layoutalg.ground.errors import Diagnostic
from layoutalg.proofs.tensormap import Issue, TensorMapPlan, TensorMapProblem
from layoutalg.synth import InadmissibleError, synthesize_tensormap

PROBLEMS = 300
KEPT: Mapping[str, str] = {
    "dead elements": "elements that no origin brings in bounds could have any address; plans take the stated one",
    "two coordinates": "an origin step spread over two walked coordinates, right only by how the extents happen to end",
    "permuted copies": "a swizzle that only exchanges copies of one broadcast element: a map without it does, too",
}
"""Causes of needless refusals that stay, each with its reason; a refusal with a plain cause never does."""


def problem(number: int) -> dict[str, Any]:
    return random_problem(random.Random(number))


@pytest.mark.nightly(one_of=4)
@pytest.mark.parametrize("first", range(0, PROBLEMS, 50))
def test_every_answer_is_right_and_every_refusal_is_needed(first: int):
    for number in range(first, first + 50):
        case = examine(problem(number))
        shown = (number, case.kind, case.label, case.detail)
        assert case.kind in ("right", "understated", "bettered", "refused", "needless"), shown
        assert case.kind != "needless" or case.detail["cause"] in KEPT, shown


def plans(count: int) -> list[tuple[dict[str, Any], TensorMapPlan]]:
    found = []
    number = 0
    while len(found) < count:
        document = problem(number)
        number += 1
        case = examine(document, search=False)
        if case.kind == "right":
            found.append((document, synthesize_tensormap(TensorMapProblem.from_json(document))))
    return found


def test_the_search_finds_every_plan_that_the_planner_finds():
    behind = []
    for document, plan in plans(20):
        found = search_maps(Statement.read(document)).answer()
        assert found is not None, document
        if CLASSES.index(found.verdict) > CLASSES.index(plan.oob):
            behind.append((document, found.to_json()))
    assert len(behind) <= 2, behind  # the planner goes through maps that the search leaves out


def test_a_planted_refusal_is_needless(monkeypatch: pytest.MonkeyPatch):
    def refuse(_: TensorMapProblem) -> TensorMapPlan:
        raise InadmissibleError(Diagnostic("LA400", "planted"), (), ())

    documents = [document for document, plan in plans(12) if plan.oob != "exact" or plan.direction == "load"]
    documents = [document for document in documents if not search_maps(Statement.read(document)).best.vacuous]
    assert len(documents) >= 6
    monkeypatch.setattr(planner_cases, "synthesize_tensormap", refuse)
    for document in documents:
        case = examine(document)
        assert (case.kind, case.label) == ("needless", "NO_RULE")
        assert case.detail["class"] in CLASSES[:3]


def test_a_planted_exception_leaks(monkeypatch: pytest.MonkeyPatch):
    def fail(_: TensorMapProblem) -> TensorMapPlan:
        raise IndexError("planted")

    monkeypatch.setattr(planner_cases, "synthesize_tensormap", fail)
    assert examine(problem(0)).kind == "leaked"


def reread(plan: TensorMapPlan, **changes: Any) -> TensorMapPlan:
    """The plan with other fields in its bytes."""
    return plan.with_changes(raw=tma_engine.write_map(replace(tma_engine.read_map(plan.raw), **changes)))


def mutants(plan: TensorMapPlan) -> dict[str, TensorMapPlan]:
    """Plans that are wrong in one thing that moves data, each judged by its bytes and coordinates alone."""
    tm = tma_engine.read_map(plan.raw)
    first, *rest = plan.issues
    answer = {
        "base": reread(plan, base=tm.base + 16),
        "dtype": reread(plan, dtype="u32" if tm.size != 4 else "u16", size=4 if tm.size != 4 else 2),
        "inner extent": reread(plan, dims=(tm.dims[0] + 1, *tm.dims[1:])),
        "inner extent less": reread(plan, dims=(max(1, tm.dims[0] - 1), *tm.dims[1:])),
        "offset": plan.with_changes(
            issues=(Issue(first.coords, first.smem_offset_bytes + 128), *rest),
        ),
        "start": plan.with_changes(
            issues=(Issue((first.coords[0] + 16, *first.coords[1:]), first.smem_offset_bytes), *rest),
        ),
        "still": plan.with_changes(origin_map=tuple(() for _ in plan.origin_map)),
        "bytes expected": plan.with_changes(expect_tx_bytes=plan.expect_tx_bytes + 16),
        "footprint": plan.with_changes(smem_bytes=plan.smem_bytes - 1),
        "alignment": plan.with_changes(smem_align_bytes=64),
        "upper half": plan.with_changes(raw=plan.raw[:100] + b"\1" + plan.raw[101:]),
    }
    if rest:
        answer["an issue less"] = plan.with_changes(issues=tuple(rest))
    outer = [k for k in range(1, tm.rank) if tm.box[k] > 1 and tm.dims[k] > 1]
    if outer:
        k = outer[0]
        answer["stride"] = reread(plan, strides=(*tm.strides[:k], tm.strides[k] + 16, *tm.strides[k + 1 :]))
        answer["extent less"] = reread(plan, dims=(*tm.dims[:k], tm.dims[k] - 1, *tm.dims[k + 1 :]))
    if len(outer) > 1 and tm.strides[outer[0]] != tm.strides[outer[1]]:
        a, b = outer[:2]
        strides = list(tm.strides)
        strides[a], strides[b] = strides[b], strides[a]
        answer["strides swapped"] = reread(plan, strides=tuple(strides))
    if tm.counts[-1] > 1 or tm.rank > 1:
        answer["swizzle"] = reread(plan, swizzle="NONE" if tm.swizzle != "NONE" else "128B")
    return answer


@pytest.mark.nightly
def test_planted_faults_are_noticed():
    """Each kind of fault is noticed in nearly every plan; in a small one, a few happen to move the same data."""
    noticed: dict[str, list[bool]] = {}
    for document, plan in plans(20):
        statement = Statement.read(document)
        for name, mutant in mutants(plan).items():
            if mutant == plan:
                continue
            outcome, faults = run_plan(statement, mutant)
            seen = bool(faults) or not outcome.at_least(plan.oob)
            noticed.setdefault(name, []).append(seen)
            assert judge_plan(document, mutant).kind == "wrong", (name, document)
    always = {"offset", "bytes expected", "footprint", "alignment", "upper half", "an issue less"}
    assert np.mean(noticed["base"]) > 0.9  # a tile that is never in bounds has no base to get wrong
    for name, flags in noticed.items():
        assert np.mean(flags) >= (1 if name in always else 0.6), (name, np.mean(flags), len(flags))
    assert set(noticed) >= {"strides swapped", "stride", "extent less", "swizzle", "an issue less"}


def test_a_flipped_byte_is_noticed():
    document = {
        "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
        "global": {"shape": [5, 6, 24], "stride": [192, 32, 1], "dtype": "f16", "base_align_bytes": 256},
        "tile": [2, 2, 8], "smem": {"modes": [[[2, 16]], [[2, 8]], [[8, 1]]], "swizzle": "NONE"},
        "origin_multiple": [1, 1, 8],
    }  # fmt: skip
    plan = synthesize_tensormap(TensorMapProblem.from_json(document))
    assert judge_plan(document, plan).label == "exact"
    statement = Statement.read(document)
    unseen = []
    for position in range(128):
        for bit in (0, 1, 7):
            raw = bytearray(plan.raw)
            raw[position] ^= 1 << bit
            mutant = plan.with_changes(raw=bytes(raw))
            outcome, faults = run_plan(statement, mutant)
            if not faults and outcome.verdict == "exact":
                unseen.append((position, bit))
    # the promotion to the second level cache, and the element stride of dimension 0, which the engine ignores
    assert set(unseen) <= {(10, 1), (52, 0), (52, 1)}, unseen


def test_a_class_that_is_stated_too_good_is_noticed():
    document = {
        "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
        "global": {"shape": [8, 64], "stride": [64, 1], "dtype": "f16", "base_align_bytes": 256},
        "tile": [8, 16], "smem": {"modes": [[[8, 16]], [[16, 1]]], "swizzle": "NONE"}, "bounds": [8, [4, 64]],
    }  # fmt: skip
    found = search_maps(Statement.read(document)).answer()
    assert found is not None
    assert found.verdict == "weak"


def best_by_enumeration(statement: Statement) -> str | None:
    """The best class over every stride of up to two dimensions more and every move of starts; None: not small enough.

    For problems of one issue and one moving dimension the start itself is free, so that nothing else is left to choose.
    """
    window = statement.window()
    moving = [dim for dim, multiple in enumerate(statement.multiples) if multiple]
    low, high = statement.memory
    if statement.base_align % 16 or contradiction(statement, window) or len(moving) != 1 or low < 0 or high > 112:
        return None
    live, lives = map_search.live_elements(statement, window)
    geometries = list(geometries_of(statement, live))
    if not live.any() or len(lives[moving[0]]) < 2 or any(len(geometry.offsets) > 1 for geometry in geometries):
        return None
    best = "wrong"
    for geometry in geometries:
        views = [View(statement, geometry, origins) for origins in (statement.window(8), window)]
        for candidate in every_move(statement, geometry, moving[0], high):
            if all(view.verdict(candidate) < CLASSES.index(best) for view in views):
                found = views[-1].found(candidate)
                best = min(best, found.verdict if found else best, key=CLASSES.index)
    return best


def every_move(statement: Statement, geometry: Geometry, dim: int, memory_bytes: int) -> Iterator[Candidate]:
    step = statement.multiples[dim] * statement.strides[dim] * statement.size
    choices = [element_strides(s, n) for s, n in zip(geometry.walked, geometry.counts[1:], strict=True)]
    for steps in itertools.product(*choices):
        fixed = (statement.size, *(s // e for s, e in zip(geometry.walked, steps, strict=True)))
        for more in range(max(0, 4 - len(fixed))):
            for new in itertools.combinations_with_replacement(range(0, memory_bytes + 16, 16), more):
                strides = fixed + new
                reach = [memory_bytes // s + 2 if s else 2 for s in strides[1:]]
                for outer in itertools.product(*(range(-r, r + 1) for r in reach)):
                    rest = step - sum(a * s for a, s in zip(outer, strides[1:], strict=True))
                    if rest % 16 or abs(rest) > memory_bytes + 32:
                        continue
                    moves = [(0,) * len(strides)] * statement.rank
                    moves[dim] = (rest // statement.size, *outer)
                    yield Candidate(strides, (1, *steps, *(1,) * more), ((0,) * len(strides),), tuple(moves), ())


def test_the_search_against_every_stride_and_move():
    judged = []
    for number in itertools.count(20_000):
        document = random_problem(random.Random(number), 1 + number % 2)
        statement = Statement.read(document)
        best = best_by_enumeration(statement)
        if best is None:
            continue
        found = search_maps(statement).best
        assert best == (found.verdict if found else "wrong"), (document, found)
        judged.append(best)
        if len(judged) == 20:
            break
    assert len(set(judged)) >= 3

"""Random problems: every plan is run on real bytes, every refusal is explained, every mutation is refuted."""

from __future__ import annotations

import copy
import dataclasses
import json
import random
from collections import Counter
from pathlib import Path

import pytest
from instruments.simulation import first_difference, random_origins

from layoutalg.ground.errors import LayoutError
from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.proofs.tensormap import TensorMapProblem, check
from layoutalg.proofs.tensormap.presburger import classify_by_isl
from layoutalg.proofs.tensormap.walk import coefficients, walk
from layoutalg.synth import InadmissibleError, TensorMapPlan, synthesize_tensormap
from layoutalg.testing.problems import random_problem

MAX_TENSOR_BYTES = 1 << 26


def random_plans(seed: int, count: int) -> list[TensorMapPlan]:
    rng = random.Random(seed)
    plans: list[TensorMapPlan] = []
    while len(plans) < count:
        try:
            plans.append(synthesize_tensormap(random_problem(rng), repair=False))
        except InadmissibleError as error:
            assert error.violations
            assert all(violation.message for violation in error.violations)
    return plans


@pytest.mark.parametrize("seed", range(5))
def test_every_plan_moves_the_right_bytes(seed):
    rng = random.Random(seed)
    classes = set()
    for plan in random_plans(seed, 60):
        classes.add((plan.direction, plan.oob))
        if plan.problem.byte_span()[1] > MAX_TENSOR_BYTES:
            continue
        for origin in random_origins(plan, rng, 3):
            assert first_difference(plan, origin, seed) is None, (plan.problem.to_json(), origin)
    assert {("load", "exact"), ("store", "exact")} <= classes


@pytest.mark.parametrize("seed", range(2))
def test_every_repair_is_admissible(seed):
    rng = random.Random(100 + seed)
    shown = 0
    for _ in range(80):
        try:
            synthesize_tensormap(random_problem(rng))
        except InadmissibleError as error:
            for repair in error.repairs:
                shown += 1
                assert isinstance(synthesize_tensormap(json.loads(json.dumps(repair.document))), TensorMapPlan)
    assert shown > 10


def test_isl_gives_the_same_class():
    tiles = json.loads((Path(__file__).parents[2] / "layoutalg/cli/data/real_tiles.json").read_text(encoding="utf-8"))[
        "tiles"
    ]
    plans = [synthesize_tensormap(tile["problem"]) for tile in tiles if tile["expect"] == "admissible"]
    classes = set()
    for plan in (*plans, *random_plans(21, 120)):
        walked = walk(plan)
        found = classify_by_isl(plan, walked, coefficients(plan))
        assert found == plan.oob
        classes.add(found)
    assert {"exact", "weak"} <= classes


def leaves(node, path=()):
    """Every scalar of a document with its path."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from leaves(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from leaves(value, (*path, index))
    else:
        yield path, node


NAMES = {
    "swizzle": ("NONE", "32B", "64B", "128B"),
    "oob": ("exact", "weak", "lost"),
    "oob_required": ("exact", "weak", "lost"),
    "dtype": ("u16", "f16", "bf16", "f32", "u8", "u64"),
    "oob_fill": ("ZERO", "NAN"),
    "direction": ("load", "store"),
    "verdict": ("admissible", "probe"),
    "l2_promotion": ("NONE", "64B", "256B"),
    "interleave": ("16B", "32B"),
    "arch": ("sm_90", "sm_100a"),
}


def mutate(document: dict, rng: random.Random) -> dict | None:
    """Return a copy with one byte or one field changed, None where the change came out equal."""
    mutant = copy.deepcopy(document)
    if rng.random() < 0.4:
        raw = bytearray.fromhex(mutant["hex"])
        raw[rng.randrange(128)] ^= 1 << rng.randrange(8)
        mutant["hex"] = raw.hex()
        return mutant
    path, value = rng.choice([leaf for leaf in leaves(mutant) if leaf[0] != ("hex",) and leaf[1] is not None])
    if isinstance(value, int):
        near = (value + 1, value - 1, 2 * value, 0, value + 16, value + rng.randrange(1, 1000))
        new = rng.choice((*near, value + 2**32, -value, 2**47, 2**62, -(2**62)))
    else:
        new = rng.choice(NAMES.get(path[-1], (value + "x",)))
    if new == value:
        return None
    node = mutant
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = new
    return mutant


@pytest.mark.parametrize("seed", range(4))
def test_every_mutated_plan_is_refuted(seed):
    rng = random.Random(seed)
    plans = random_plans(50 + seed, 30)
    documents = [plan.to_json() for plan in plans]
    tried = refuted = 0
    while tried < 400:
        mutant = mutate(json.loads(json.dumps(rng.choice(documents))), rng)
        if mutant is None:
            continue
        tried += 1
        try:
            plan = TensorMapPlan.from_json(mutant)
        except LayoutError:
            continue
        verdict = check(plan)
        assert isinstance(verdict, Refuted), mutant
        assert verdict.witness["what"]
        refuted += 1
    assert refuted > 300


def test_mutations_that_move_data_name_the_first_wrong_element():
    rng = random.Random(3)
    plan = next(p for p in random_plans(9, 20) if p.oob == "exact" and p.direction == "load" and len(p.issues) == 1)
    assert isinstance(check(plan), Proved)
    for _ in range(20):
        step = rng.choice((8, 16, 64))
        coords = list(plan.issues[0].coords)
        coords[0] += step
        moved = plan.with_changes(issues=(type(plan.issues[0])(tuple(coords), 0),))
        verdict = check(moved)
        assert isinstance(verdict, Refuted)
        assert verdict.witness["what"] == "wrong global element"
        assert verdict.witness["tile"] == [0] * plan.problem.rank
        difference = verdict.witness["got_byte"] - verdict.witness["expected_byte"]
        assert difference == step * plan.problem.element_bytes


def test_claims_are_tight_on_every_class():
    """A class that the simulator contradicts must not be claimed: exact plans filled everywhere, weak ones in range."""
    rng = random.Random(11)
    seen = set()
    for plan in random_plans(12, 150):
        seen.add(plan.oob)
        for better in ("exact", "weak"):
            if better == plan.oob:
                break
            assert isinstance(check(plan.with_changes(oob=better, certificate=None)), Refuted)
        if plan.oob == "weak" and plan.problem.byte_span()[1] <= MAX_TENSOR_BYTES:
            for origin in random_origins(plan, rng, 4):
                assert first_difference(plan, origin) is None
    assert {"exact", "weak"} <= seen


def changes_of(problem: TensorMapProblem, rng: random.Random) -> dict[str, object]:
    """One field of a problem changed, in the ways that a mistaken caller might."""
    name = rng.choice([field.name for field in dataclasses.fields(problem)])
    value = getattr(problem, name)
    if isinstance(value, str):
        return {name: rng.choice(NAMES.get(name, (value + "r", "64B", "NONE")))}
    if isinstance(value, int):
        return {name: rng.choice((value + 1, 2 * value, 0, value + 16, -1))}
    entries = list(value)
    at = rng.randrange(len(entries))
    if name == "bounds":
        low, high = entries[at]
        entries[at] = rng.choice(((low + 1, high), (low, high - 1), (low, high + 1), (0, 1)))
    elif name == "smem_modes":
        modes = [list(mode) for mode in entries[at]]
        modes[rng.randrange(len(modes))][rng.randrange(2)] *= rng.choice((2, 3))
        entries[at] = modes
    else:
        entries[at] = rng.choice((entries[at] + 1, 2 * entries[at], entries[at] // 2, -entries[at], 0))
    return {name: rng.choice((tuple(entries), tuple(entries), entries[:-1]))}


@pytest.mark.parametrize("seed", range(2))
def test_every_changed_problem_is_refused_or_refuted_or_right_on_real_bytes(seed):
    rng = random.Random(seed)
    plans = random_plans(70 + seed, 25)
    outcomes = Counter()
    while outcomes.total() < 250:
        plan = rng.choice(plans)
        changes = changes_of(plan.problem, rng)
        try:
            problem = plan.problem.with_changes(**changes)
        except LayoutError:
            outcomes["refused"] += 1
            continue
        if problem == plan.problem:
            continue
        assert isinstance(check(plan.with_changes(problem=problem)), Refuted)  # the certificate is of another plan
        claimed = plan.with_changes(problem=problem, certificate=None)
        verdict = check(claimed)
        outcomes[type(verdict).__name__] += 1
        if isinstance(verdict, Proved) and claimed.problem.byte_span()[1] <= MAX_TENSOR_BYTES:
            for origin in random_origins(claimed, rng, 3):
                assert first_difference(claimed, origin) is None, (changes, claimed.to_json(), origin)
    assert min(outcomes["refused"], outcomes["Refuted"], outcomes["Proved"]) > 20, outcomes

"""Certificates of plans against the tests' own copy engine, and of their absence against the search of all maps."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import numpy as np
from judges import planner_judge as judges
from judges import tma_engine as engine
from judges.map_search import search_maps
from judges.planner_problems import random_problem

from layoutalg.ground.errors import BudgetError, LayoutError
from layoutalg.proofs import checker
from layoutalg.proofs.certify import Certificate, no_plan, plan
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.synth import InadmissibleError, synthesize_tensormap
from layoutalg.testing.problems import random_problem as large_problem

Document = dict[str, Any]


def planned(document: Document) -> TensorMapPlan | None:
    try:
        return synthesize_tensormap(TensorMapProblem.from_json(document), repair=False)
    except InadmissibleError:
        return None


def engine_map(statement: Document, fields: Document) -> engine.Map:
    """The map of a certificate as the tests' own engine has it."""
    dtype = statement["problem"]["dtype"]
    dims, strides, box, steps = map(tuple, zip(*fields["dims"], strict=True))
    size = engine.SIZES[dtype]
    return engine.Map(dtype, size, fields["base"], dims, (size, *strides[1:]), box, steps,
                      engine.SWIZZLES[fields["swizzle"]], bool(fields["fill"]), 0, fields["promotion"])  # fmt: skip


def changed(rng: random.Random, statement: Document, fields: Document) -> None:
    """Change one thing that moves data, in place."""
    dims, issue = fields["dims"], rng.choice(statement["issues"])
    j = rng.randrange(len(dims))
    kind = rng.randrange(11)
    if kind == 0:
        issue[0][j] += rng.choice((-16, -1, 1, 2, 4, 8))
    elif kind == 1:
        issue[1] = max(0, issue[1] + rng.choice((-128, 128)))
    elif kind == 2:
        dims[j][0] = max(1, dims[j][0] + rng.choice((-2, -1, 1, 4)))
    elif kind == 3 and j:
        dims[j][1] = max(0, dims[j][1] + rng.choice((-16, 16)))
    elif kind == 4:
        dims[j][2] = min(256, max(1, dims[j][2] + rng.choice((-1, 1, 4))))
    elif kind == 5:
        dims[j][3] = rng.randint(1, 3)
    elif kind == 6:
        fields["swizzle"] = rng.randrange(4)
    elif kind == 7:
        fields["base"] = max(0, fields["base"] + rng.choice((-16, 16)))
    elif kind == 8:
        row = rng.choice(statement["moves"])
        row[rng.randrange(len(row))] += rng.choice((-1, 1, 4))
    elif kind == 9:
        statement["issues"].append([list(issue[0]), issue[1]])
    else:
        statement["oob"] = "exact"


def judged(document: Document, statement: Document, fields: Document) -> str | None:
    """What the engine does with the boxes, over many origins; None where it is what the certificate says."""
    wanted, tm = judges.Statement.read(document), engine_map(statement, fields)
    origins = wanted.window()
    if statement["oob"] == "weak":
        origins = origins[wanted.in_bounds(origins)]
        if not len(origins):
            return None
    u = [origins[:, i] // m if m else 0 * origins[:, i] for i, m in enumerate(wanted.multiples)]
    shift = np.stack([sum(c * part for c, part in zip(row, u, strict=True)) for row in statement["moves"]], axis=1)
    starts = [np.array(coords) + shift for coords, _ in statement["issues"]]
    outcome = judges.judge(wanted, tm, starts, [offset for _, offset in statement["issues"]], origins)
    return None if outcome.at_least(statement["oob"]) else str(outcome.why.get(statement["oob"]))


def test_what_is_proved_is_what_the_engine_does():
    rng, seen = random.Random(5), Counter[str]()
    for number in range(260):
        document = random_problem(random.Random(f"certified {number}"))
        found = planned(document)
        if found is None:
            continue
        try:
            made = plan(found)
        except BudgetError:
            seen["budget"] += 1
            continue
        for _ in range(4):
            statement = json.loads(json.dumps(made.statement))
            fields = json.loads(json.dumps(made.evidence))["map"]
            for _ in range(rng.choice((0, 1, 1, 1, 2))):
                changed(rng, statement, fields)
            tm = engine_map(statement, fields)
            statement["bytes"] = engine.write_map(tm).hex()
            statement["expect_tx_bytes"] = len(statement["issues"]) * tm.bytes_moved
            statement["smem_bytes"] = max(offset for _, offset in statement["issues"]) + tm.footprint
            statement["smem_align_bytes"] = 1024
            code, said = checker.check(Certificate(made.kind, statement, {"map": fields}).to_json())
            wrong = judged(document, statement, fields)
            assert code != 0 or wrong is None, (document, statement, fields, wrong)
            seen["proved" if code == 0 else "refuted" if code == 1 else "open"] += 1
            seen["strict"] += code != 0 and wrong is None
            seen[said.partition(",")[0] if code else ""] += 1
    assert seen["proved"] > 120, seen
    assert seen["refuted"] > 120, seen
    assert seen["strict"] < seen["refuted"] / 5, seen
    assert len(seen) > 12, seen
    assert seen["budget"] < 20, seen


def test_no_map_carries_what_a_certificate_excludes():
    excluded = refused = 0
    for number in range(260):
        document = random_problem(random.Random(f"excluded {number}"))
        problem = TensorMapProblem.from_json(document)
        try:
            no_plan(problem)
        except BudgetError as error:
            assert error.diagnostic.code == "LA432"
            refused += planned(document) is None
            continue
        excluded += 1
        assert search_maps(judges.Statement.read(document)).answer() is None, document
    assert excluded > 4 * refused > 0, (excluded, refused)


def test_no_chunk_is_evidence_where_a_map_carries_the_tile():
    rng, seen = random.Random(11), 0
    for number in range(150):
        document = random_problem(random.Random(f"carried {number}"))
        found = planned(document)
        if found is None:
            continue
        statement = judges.Statement.read(document)
        origins = statement.window()
        problem = plan(found).statement["problem"] if found.oob != "lost" and len(found.tensor_map.dims) < 5 else None
        for _ in range(6 if problem else 0):
            origin = rng.choice(origins[statement.in_bounds(origins)].tolist() or [[0] * statement.rank])
            evidence = {"origin": origin, "chunk": int(rng.choice(statement.shared)) // 16}
            code, said = checker.check(Certificate("no-tensormap", {"problem": problem}, evidence).to_json())
            assert code == 1, (document, evidence, said)
            seen += "a box can write this chunk" in said
    assert seen > 150, seen


def test_plans_of_large_tiles_have_certificates_and_refusals_mostly():
    seen = Counter[str]()
    for number in range(60):
        document = large_problem(random.Random(number))
        found, problem = planned(document), TensorMapProblem.from_json(document)
        made: Certificate | None = None
        try:
            made = no_plan(problem) if found is None else plan(found)
            assert found is None or len(made.to_text()) < 9000
        except LayoutError as error:
            seen[error.diagnostic.code] += 1
        if found is not None:  # what has a plan is not excluded
            try:
                no_plan(problem)
            except BudgetError:
                seen["has a plan"] += 1
        if made is not None:
            seen[made.kind] += 1
    assert seen["tensormap-plan"] > 35, seen
    assert seen["no-tensormap"] > 4, seen
    assert seen["has a plan"] == seen["tensormap-plan"] + seen["LA431"], seen
    assert set(seen) <= {"tensormap-plan", "no-tensormap", "has a plan", "LA431", "LA432"}, seen

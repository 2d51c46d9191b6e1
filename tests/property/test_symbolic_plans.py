"""Plans with names: the guard holds at sizes exactly where the map is accepted and proved there, over random sizes."""

from __future__ import annotations

import random
from typing import Any

import pytest
from judges.symbolic_plans import accepted

import layoutalg as la
from layoutalg.ground.errors import AdmissibilityError
from layoutalg.ground.verdict import Proved
from layoutalg.proofs.symbolic import Guard, SymbolicPlan, prove
from layoutalg.proofs.tensormap import check
from layoutalg.targets.nvidia import tensormap as hardware

SW = "Sw<3,3,3> o 0 o "
CASES: dict[str, tuple[la.Tensor, tuple[int, ...], str | None, dict[str, Any]]] = {
    "matrix": (la.Tensor(("M", "K")), (64, 64), SW + "(64,64):(64,1)", {}),
    "blocks": (la.Tensor(("M", "K")), (64, 128), SW + "(64,(64,2)):(64,(1,4096))", {}),
    "pitch": (la.Tensor(("M", "K"), ("ld", 1)), (32, 64), SW + "(32,64):(64,1)", {}),
    "batch": (la.Tensor(("B", "M", "K")), (1, 32, 64), SW + "(1,32,64):(0,64,1)", {}),
    "store": (la.Tensor(("M", "K")), (32, 64), SW + "(32,64):(64,1)", {"direction": "store"}),
    "store with a pitch": (la.Tensor(("M", "K"), ("ld", 1)), (32, 64), SW + "(32,64):(64,1)", {"direction": "store"}),
    "pixels": (la.Tensor(("H", "W", 4), dtype="u8"), (8, 16, 4), None, {}),
    "steps": (la.Tensor(("H", "W", "C")), (4, 8, 64), None, {"element_strides": (1, 2, 1)}),
    "bounds": (la.Tensor(("M", 512)), (16, 64), None, {"bounds": ("V", (0, 512))}),
    "sum": (la.Tensor(("M + 3", "2*K"), ("2*K + 8", 1)), (16, 64), None, {}),
}


def plan_of(name: str) -> SymbolicPlan:
    tensor, tile, smem, options = CASES[name]
    return la.tensormap(tensor, tile, smem, **options)


def draw(names: tuple[str, ...], source: random.Random) -> dict[str, int]:
    """Sizes near what matters: small ones, multiples of powers of two, and the limits of the hardware."""
    sizes = {}
    for name in names:
        kind = source.random()
        if kind < 0.4:
            sizes[name] = source.choice((1, 2, 4, 8, 16, 32, 64)) * source.randrange(1, 40)
        elif kind < 0.7:
            sizes[name] = source.randrange(1, 300)
        elif kind < 0.9:
            sizes[name] = 8 * source.randrange(1, 2 ** source.randrange(2, 36))
        else:
            sizes[name] = 2 ** source.choice((30, 31, 32, 36, 39, 48)) + source.choice((-8, -1, 0, 1, 8))
    return sizes


@pytest.mark.nightly(one_of=4)
@pytest.mark.parametrize("name", CASES)
def test_the_guard_is_true_exactly_where_the_map_does(name: str) -> None:
    plan = plan_of(name)
    source = random.Random(name)
    seen = {True: 0, False: 0}
    for _ in range(150):
        sizes = draw(plan.names, source)
        for case in plan.cases[-1:]:
            expected = accepted(case, sizes)
            seen[expected] += 1
            assert case.guard.holds(sizes) == expected, (name, sizes, str(case.guard))
    assert min(seen.values()) > 5, seen


@pytest.mark.nightly(one_of=4)
@pytest.mark.parametrize("name", CASES)
def test_better_cases_and_bytes(name: str) -> None:
    plan = plan_of(name)
    source = random.Random(name)
    taken = 0
    for _ in range(60):
        sizes = draw(plan.names, source)
        if not plan.guard.holds(sizes):
            with pytest.raises(AdmissibilityError, match="LA861"):
                plan.specialise(sizes)
            continue
        found = plan.specialise(sizes)
        assert isinstance(check(found), Proved)
        assert found.raw == plan.encode(sizes) == hardware.encode(found.tensor_map)
        assert len(found.issues) <= len(plan.issues)
        taken += 1
    assert taken


@pytest.mark.nightly(one_of=4)
@pytest.mark.parametrize("name", CASES)
def test_no_clause_can_be_left_out(name: str) -> None:
    guard = plan_of(name).guard
    source = random.Random(name)
    needed = set()
    for _ in range(20_000):
        sizes = draw(guard.names, source)
        broken = [clause for clause in guard.clauses if not any(entry.true_at(sizes) for entry in clause)]
        needed |= set(broken) if len(broken) == 1 else set()
    assert needed == set(guard.clauses), [str(Guard((clause,))) for clause in set(guard.clauses) - needed]


@pytest.mark.parametrize("name", CASES)
def test_a_wider_guard_is_refuted(name: str) -> None:
    plan = plan_of(name)
    for clause in plan.guard.clauses:
        rest = tuple(entry for entry in plan.guard.clauses if entry is not clause)
        wider = plan.with_changes(guard=Guard(rest, plan.names), better=(), certificate=None)
        assert not isinstance(prove(wider), Proved), str(Guard((clause,)))

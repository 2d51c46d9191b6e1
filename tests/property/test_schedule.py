"""Schedules against enumeration, on drawn works; the pipelines of all of them are proved."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from judges.schedule_judge import best

from layoutalg.ground.errors import InfeasibleError
from layoutalg.pipeline import Dependence, Proved, Work, WorkOp, WorkRing, WorkRole, schedule, verify

MOST_II = 7


@st.composite
def works(draw, fewest, most, cycles):
    """Works of a few cycles: loads, products and ordinary ops, rings from some of them, recurrences."""
    count = draw(st.integers(fewest, most))
    roles = draw(st.integers(1, 3 if count < 4 else 2))
    values = draw(st.integers(0, 2 if count < 4 else 1))
    ops, edges, rings = [], [], []
    for number in range(count):
        unit = draw(st.sampled_from(["tensor", "cuda", "sfu", *["tma"] * (roles > 1)]))
        occupancy = draw(st.integers(0, min(2, cycles)))
        result = draw(st.sampled_from([0, 60, 100])) if values and unit != "tma" else 0
        values -= bool(result)
        latency = draw(st.integers(max(1, occupancy), cycles))
        held = draw(st.sampled_from([0, 0, 40])) if unit != "tma" else 0
        ops.append(WorkOp(f"op{number}", unit, occupancy, latency, 1, held, result, unit == "tma"))
    for one, other in draw(
        st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=2 * count)
    ):
        first, second = ops[one], ops[other]
        distance = draw(st.integers(0 if one < other else 1, 2))
        ring = f"ring{one}" if first.variable != second.variable or draw(st.booleans()) else ""
        fills = {edge.producer for edge in edges if edge.ring}
        reads = {edge.consumer for edge in edges if edge.ring}
        both = (first.variable and first.name in reads) or (second.variable and second.name in fills)
        if ring and (first.unit == "tensor" or one == other or both):
            continue
        if ring and ring not in [one.name for one in rings]:
            if len(rings) == 2:
                continue
            rings.append(WorkRing(ring, draw(st.sampled_from([64, 40000, 90000, *[0] * (not first.variable)]))))
        edge = Dependence(first.name, second.name, distance, ring)
        edges += [edge] * (edge not in edges)
    named = tuple([WorkRole(f"role{number}") for number in range(roles)])
    return Work("drawn", tuple(ops), tuple(edges), tuple(rings), named, draw(st.integers(0, 1)))


def same_as_enumerated(work):
    try:
        found = schedule(work)
    except InfeasibleError:
        assert best(work, 3) is None
        return
    assume(found.ii <= MOST_II)
    assert (found.ii, found.stages, found.bytes) == best(work, MOST_II)
    assert found.bound <= found.ii
    assert isinstance(verify(found.pipeline), Proved)


@settings(max_examples=320)
@given(works(1, 4, 3))
def test_schedules_are_the_least_of_all(work):
    same_as_enumerated(work)


@settings(max_examples=24)
@given(works(5, 8, 1))
def test_schedules_of_up_to_eight_ops_are_the_least(work):
    same_as_enumerated(work)

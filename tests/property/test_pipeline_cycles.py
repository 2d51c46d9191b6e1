"""The cycle that bounds a pipeline: against all cycles of its graph one by one, and against running it."""

from __future__ import annotations

import random
from fractions import Fraction

import networkx as nx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from judges import pipeline_clock
from judges.cluster_programs import gemm, handed
from judges.pipeline_programs import FAMILIES, plain

from layoutalg.ground.errors import MalformedError, RepresentabilityError
from layoutalg.ground.verdict import Proved
from layoutalg.pipeline import Builder, Pipeline, event_graph, throughput, verify

OPS = ("wait", "arrive", "arrive_tx", "tma_load", "read", "write", "mma", "mma_wait", "tma_store", "proxy_fence")
TIMES = st.one_of(
    st.integers(0, 40), st.fractions(0, 8, max_denominator=6), st.tuples(st.integers(0, 40), st.integers(0, 9))
)


@st.composite
def questions(draw):
    """A proved pipeline and some latencies."""
    family = draw(st.sampled_from(FAMILIES))
    made = family(random.Random(draw(st.integers(0, 2**32 - 1))))
    assume(isinstance(verify(made), Proved))
    return made, draw(st.dictionaries(st.sampled_from(OPS), TIMES, min_size=1, max_size=5))


def test_a_pair_states_when_the_role_goes_on():
    assert throughput(plain(1), {"arrive": (9, 1)}).period == 9
    assert throughput(plain(9), {"arrive": (9, 1)}).period == 1
    assert throughput(plain(3), {"mma": (9, 1), "tma_load": (30, 1)}).period == 13


@pytest.mark.parametrize(("load", "stages"), [(100, 1), (600, 3), (1001, 3), (2000, 2)])
def test_so_many_slots_are_enough_and_needed(load, stages):
    times = {"tma_load": (load, 7), "mma": 90, "wait": 20, "arrive": 11, "arrive_tx": 5}

    def deep(slots):
        block = Builder(slots)
        tiles = block.ring("tiles", A=64)
        loader, use = block.role("load"), block.role("use")
        tiles.acquire(loader).load().commit()
        tiles.wait(use).mma().release()
        return throughput(block.pipeline(), times)

    found = deep(stages)
    assert set(found.depth) == {"tiles.full", "tiles.empty"}
    (enough,) = set(found.depth.values())
    assert deep(enough).period == found.deeper == deep(enough + 5).period
    assert enough == 1 or deep(enough - 1).period > found.deeper


@settings(max_examples=100)
@given(asked=questions())
def test_no_cycle_takes_longer(asked):
    made, times = asked
    found, graph = throughput(made, times), event_graph(made, times)
    ratios = [Fraction(0)]
    for cycle in nx.simple_cycles(nx.DiGraph(graph)):
        pairs = list(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
        # parallel edges differ in distance alone, and the shortest one binds most
        edges = [min(graph[one][other].values(), key=lambda edge: edge["distance"]) for one, other in pairs]
        ratios.append(sum(edge["latency"] for edge in edges) / sum(edge["distance"] for edge in edges))
    assert found.period == max(ratios)
    assert found.latency == found.period * max(1, found.distance)


@settings(max_examples=60)
@given(asked=questions())
def test_a_run_takes_as_long(asked):
    """From some iteration on the same times come again, as many iterations later as the critical cycle spans."""
    made, times = asked
    rate = (pipeline_clock.finished(made, times, 680) - pipeline_clock.finished(made, times, 260)) / 420
    assert rate == throughput(made, times).period


def test_clusters_and_named_barriers():
    times = {"tma_load": 800, "mma": 100, "wait": 10}
    found = throughput(gemm(2, 2), times)
    assert found.period == Fraction(920, 2)
    assert any(event.startswith("load@") for event in found.cycle)
    assert throughput(handed(), {"write": 5, "read": 7, "wait": 1}).period == 14


def test_what_is_asked():
    ring = plain(2)
    with pytest.raises(MalformedError, match="must be of ops"):
        throughput(ring, {"load": 1})
    for wrong in (-1, True, "1", (1, 2, 3), (), float("nan")):
        with pytest.raises(MalformedError, match="latency of mma"):
            throughput(ring, {"mma": wrong})
    with pytest.raises(RepresentabilityError, match="not proved"):
        throughput(plain(2, consume=[]), {})
    assert throughput(ring, {}).period == 0
    assert throughput(ring, {"consumer.loop[1]": 7, "mma": 1}).period == 7
    assert throughput(Pipeline.from_json(ring), {"mma": 0.5}).period == Fraction(1, 2)


def test_the_graph_names_its_events():
    graph = event_graph(plain(3), {"tma_load": 9})
    labels = {graph.nodes[node]["label"] for node in graph}
    assert {"full completes", "producer.loop[2] tma_load A is done", "consumer.loop[0] wait full"} <= labels
    assert any(edge == {"distance": 0, "latency": 9} for *_, edge in graph.edges(data=True))

"""The e-graph of movement terms against egglog: the same rules give the same classes and the same least cost.

egglog is no requirement of the tests (its wheel has 48 MB): ``pip install egglog==13.2.0`` adds it.
"""

from __future__ import annotations

from itertools import combinations

import pytest

pytest.importorskip("egglog", reason="egglog is not installed: pip install egglog==13.2.0")

from judges.egglog_oracle import Egglog
from judges.movement_programs import PROGRAMS

from layoutalg.proofs.movement.rules import RULES, Node
from layoutalg.proofs.movement.term import Kind
from layoutalg.synth.rewrite import Search, costs_of
from layoutalg.synth.rewrite.extraction import Extraction


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_classes_and_the_same_least_cost(name: str) -> None:
    """Without the ways to load that planners propose, and with shared values counted as often as they are used."""
    whole = PROGRAMS[name]()
    costs = costs_of(whole, "sm_90a")
    search = Search(costs)
    ours, start = search.graph, search.graph.sure(whole)
    assert ours.saturate(list(RULES), 3000, 40)[1]

    def cost(node: Node, kinds: tuple[Kind, ...], kind: Kind) -> float | None:
        found = costs.of(node, kinds, kind)
        return None if found is None else found.cycles

    theirs = Egglog(lambda node, kinds: costs.illegal(node, kinds) is None, cost)
    asked = theirs.add(whole)
    assert asked is not None
    assert theirs.saturate()
    assert (ours.count(), len(ours.members)) == (sum(map(len, theirs.rows.values())), len(theirs.rows))
    pairs = [(ours.find(node), theirs.add(ours.term_of(node))) for node in range(len(ours.nodes))]
    assert None not in [node for _, node in pairs]
    assert theirs.saturate()
    named = [(root, theirs.classes[node]) for root, node in pairs if node is not None]
    assert all((a == c) == (b == d) for (a, b), (c, d) in combinations(named, 2))
    trees = Extraction(ours, search.weight).trees
    assert theirs.least(asked) == pytest.approx(trees[ours.find(start)], abs=0.01)

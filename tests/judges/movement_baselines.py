"""What rewriting is compared with: the best local rewrite until none helps, and a dynamic program over layouts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from layoutalg.ground.errors import MalformedError
from layoutalg.proofs.movement import Term
from layoutalg.proofs.movement.rules import RULES, rewritten, termed
from layoutalg.synth.rewrite import MOST_ITERATIONS, MOST_NODES, Costs, MovementCost, Search
from layoutalg.synth.rewrite.extraction import Extraction

LAYOUTS = ("move.move", "convert.same", "function.inside", "function.outside", "reduce.convert", "convert.broadcast")
"""Rules that choose layouts and ways of moving; views stay where they are."""


def greedy(whole: Term, costs: Costs) -> tuple[Term, float]:
    """Apply the rewrite that saves most, anywhere, until none saves anything."""
    now, least = whole, _cycles(whole, costs)
    while True:
        best = None
        for path, each in list(paths(now)):
            for after in _rewritten(each, costs):
                other = now.put(path, after)
                cycles = _cycles(other, costs)
                if cycles < least - 1e-9:
                    best, least = other, cycles
        if best is None:
            return now, least
        now = best


def paths(whole: Term) -> Iterator[tuple[tuple[int, ...], Term]]:
    """Every place of a term with the term there."""
    yield (), whole
    for place, operand in enumerate(whole.of):
        for path, each in paths(operand):
            yield (place, *path), each


def _rewritten(each: Term, costs: Costs) -> list[Term]:
    search = Search(costs)
    graph = search.graph
    node = graph.sure(each)
    further = [
        graph.term_of(made) for candidate in search.candidates(node) if (made := graph.add(candidate)) is not None
    ]
    found = [after for rule in RULES if each.op in rule.ops for _, after in rewritten(rule, each)]
    for after in found:
        with suppress(MalformedError):
            further.append(termed(after))
    return further


def _cycles(whole: Term, costs: Costs) -> float:
    found = costs.total(whole)
    return found.cycles if isinstance(found, MovementCost) else float("inf")


def dynamic(whole: Term, costs: Costs) -> tuple[Term, float]:
    """The cheapest layouts for each value, as if nothing were shared; counted with sharing."""
    search = Search(costs)
    graph = search.graph
    root = graph.sure(whole)
    rules = [rule for rule in RULES if rule.name in LAYOUTS]
    graph.saturate(rules, MOST_NODES, MOST_ITERATIONS, search.candidates)
    taken = Extraction(graph, search.weight)
    found = graph.term_of(graph.chosen({each: nodes[0] for each, nodes in taken.options.items()}, graph.find(root)))
    return found, _cycles(found, costs)

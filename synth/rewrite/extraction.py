"""The cheapest term of a class: each node costs once, however often it is used.

Implementation notes: branch and bound over the node of each class that is needed, first those that are cheapest if
nothing is shared; the sum of the cheapest nodes of the classes still open is the bound. If its steps suffice, the
answer is the optimum; otherwise it is the best found, at least the cheapest tree counted with sharing.
"""

from __future__ import annotations

from collections.abc import Callable

from layoutalg.synth.rewrite.egraph import EGraph

MOST_CHOICES = 20_000
Weight = tuple[float, int]
"""Cycles, and bytes of shared memory."""
Choice = dict[int, int]
"""The node of each class."""


class Extraction:
    """The nodes of an e-graph with their weights, those first that are the cheapest trees.

    Args:
        graph: The e-graph.
        weigh: The weight of a node; None if no code is known for it.
    """

    def __init__(self, graph: EGraph, weigh: Callable[[int], Weight | None]) -> None:
        self.graph = graph
        self.weights = {node: found for root in graph.members for node in graph.distinct(root)
                        if (found := weigh(node)) is not None}  # fmt: skip
        self.operands = {node: frozenset(map(graph.find, graph.nodes[node].of)) for node in self.weights}
        self.trees: dict[int, float] = {}
        changed = True
        while changed:
            changed = False
            for node in self.weights:
                root, total = graph.find(node), self.tree(node)
                if total < self.trees.get(root, float("inf")) - 1e-9:
                    self.trees[root], changed = total, True
        self.options: dict[int, list[int]] = {}
        for node in sorted(self.weights, key=lambda node: (self.tree(node), node)):
            if self.tree(node) < float("inf"):
                self.options.setdefault(graph.find(node), []).append(node)
        self.least = {root: min(self.weights[node][0] for node in found) for root, found in self.options.items()}

    def tree(self, node: int) -> float:
        """Return the cycles of a node with the cheapest operands, as if nothing were shared."""
        operands = map(self.graph.find, self.graph.nodes[node].of)
        return self.weights[node][0] + sum(self.trees.get(each, float("inf")) for each in operands)

    def best(self, root: int, most_bytes: int) -> tuple[Choice | None, bool]:
        """Return the cheapest choice that fits shared memory, and whether it is proved the optimum."""
        least, found, tried = float("inf"), None, 0
        waiting: list[tuple[Choice, frozenset[int], float, int]] = [({}, frozenset([root]), 0.0, 0)]
        while waiting:
            chosen, needed, cycles, held = waiting.pop()
            if held > most_bytes or cycles + sum(self.least.get(each, least) for each in needed) >= least - 1e-9:
                continue
            if not needed:
                least, found = cycles, chosen
                continue
            tried += 1
            if tried > MOST_CHOICES:
                return found, False
            now = min(needed, key=lambda each: (len(self.options.get(each, ())), each))
            for node in reversed(self.options.get(now, ())):
                further = {**chosen, now: node}
                if not self._needs_itself(further, now):
                    weight, more = self.weights[node], self.operands[node] - further.keys()
                    waiting.append((further, needed - {now} | more, cycles + weight[0], held + weight[1]))
        return found, True

    def _needs_itself(self, chosen: Choice, root: int) -> bool:
        waiting, seen = set(self.operands[chosen[root]]), {root}
        while waiting:
            each = waiting.pop()
            if each == root:
                return True
            if each in chosen and each not in seen:
                seen.add(each)
                waiting |= self.operands[chosen[each]]
        return False

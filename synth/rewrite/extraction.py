"""The cheapest term of a class: each node costs once, however often it is used.

Implementation notes: a greedy choice first, in which a class knows all nodes below it and their sum, so that shared
ones count once. Then branch and bound over the choice in each class that is needed, with the sum of the cheapest nodes of
the classes still open as bound. If its steps suffice the answer is the optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from layoutalg.synth.rewrite.egraph import EGraph

MOST_CHOICES = 20_000
Weight = tuple[float, int]
"""Cycles, and bytes of shared memory."""
Choice = dict[int, int]
"""The node of each class."""


@dataclass(slots=True)
class Extraction:
    """What is extracted from.

    Args:
        graph: The e-graph.
        weigh: The weight of a node; None if no code is known for it.
        most_bytes: Shared memory that all nodes together may use.
    """

    graph: EGraph
    weigh: Callable[[int], Weight | None]
    most_bytes: int
    options: dict[int, list[tuple[float, int, int]]] = field(default_factory=dict)
    tried: int = 0

    def __post_init__(self) -> None:
        for root in self.graph.members:
            found = []
            for node in self.graph.distinct(root):
                weight = self.weigh(node)
                if weight is not None:
                    found.append((*weight, node))
            self.options[root] = sorted(found)

    def operands(self, node: int) -> set[int]:
        """Return the classes of a node's operands."""
        return {self.graph.find(operand) for operand in self.graph.nodes[node].of}

    def greedy(self) -> dict[int, tuple[float, Choice]]:
        """Return a cheap choice for each class, with its cycles."""
        best: dict[int, tuple[float, Choice]] = {}
        cycles = {node: cost for found in self.options.values() for cost, _, node in found}
        changed = True
        while changed:
            changed = False
            for root, found in self.options.items():
                for _, _, node in found:
                    operands = self.operands(node)
                    if not all(each in best for each in operands):
                        continue
                    chosen: Choice = {root: node}
                    for each in operands:
                        chosen = {**best[each][1], **chosen}
                    if any(root in best[each][1] for each in operands) or self._circular(chosen, root):
                        continue
                    total = sum(cycles[each] for each in chosen.values())
                    if root not in best or total < best[root][0] - 1e-9:
                        best[root] = total, chosen
                        changed = True
        return best

    def best(self, root: int) -> tuple[Choice | None, bool]:
        """Return the cheapest choice that fits shared memory, and whether it is proved the optimum."""
        greedy = self.greedy().get(root)
        least, found = float("inf"), None
        if greedy is not None:
            chosen = self._reachable(greedy[1], root)
            if self._bytes(chosen) <= self.most_bytes:
                least, found = self.total(chosen), chosen
        self.tried = 0
        stack: list[tuple[Choice, frozenset[int], float, int]] = [({}, frozenset([root]), 0.0, 0)]
        while stack:
            chosen, open_, cost, held = stack.pop()
            if cost + sum(self.options[each][0][0] for each in open_ if self.options[each]) >= least - 1e-9:
                continue
            if not open_:
                least, found = cost, chosen
                continue
            self.tried += 1
            if self.tried > MOST_CHOICES:
                return found, False
            now = min(open_, key=lambda each: (len(self.options[each]), each))
            for more, bytes_, node in reversed(self.options[now]):
                further = {**chosen, now: node}
                if held + bytes_ > self.most_bytes or self._circular(further, now):
                    continue
                wanted = (open_ | self.operands(node)) - further.keys()
                stack.append((further, frozenset(wanted), cost + more, held + bytes_))
        return found, True

    def total(self, chosen: Choice) -> float:
        """Return the cycles of a choice, each node once."""
        return sum(cost for root, node in chosen.items() for cost, _, other in self.options[root] if other == node)

    def _bytes(self, chosen: Choice) -> int:
        return sum(held for root, node in chosen.items() for _, held, other in self.options[root] if other == node)

    def _reachable(self, chosen: Choice, root: int) -> Choice:
        found: Choice = {}
        waiting = [root]
        while waiting:
            each = waiting.pop()
            if each not in found:
                found[each] = chosen[each]
                waiting += self.operands(chosen[each])
        return found

    def _circular(self, chosen: Choice, start: int) -> bool:
        """Whether a class needs itself."""
        waiting, seen = list(self.operands(chosen[start])), set()
        while waiting:
            each = waiting.pop()
            if each == start:
                return True
            if each in chosen and each not in seen:
                seen.add(each)
                waiting += self.operands(chosen[each])
        return False

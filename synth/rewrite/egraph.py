"""E-graphs: classes of equal terms, with the reason for each equality.

Notation: a node is a term whose operands are node numbers, as it was added. Nodes with equal operations and operands of
equal classes are congruent and in one class. ``reasons`` is a forest: an edge joins two nodes whose classes were joined
because a rule rewrites one to the other, or because they are congruent; a path in it is a proof. An edge of congruent
nodes is younger than those that made their operands equal, so that explanations end.

References: Willsey et al., egg: Fast and Extensible Equality Saturation, POPL 2021; Nieuwenhuis and Oliveras,
Proof-Producing Congruence Closure, RTA 2005.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from layoutalg.ground import clock
from layoutalg.ground.errors import MalformedError
from layoutalg.proofs.movement.chains import MOST_STEPS, Step
from layoutalg.proofs.movement.rules import Handle, Node, Rule
from layoutalg.proofs.movement.term import Kind, Term, derived

CONGRUENT = ""
Signature = tuple[str, tuple[Any, ...], tuple[int, ...]]


class Edge(NamedTuple):
    """A reason: the node at the other end, the rule, and whether it rewrites this end to the other."""

    other: int
    rule: str
    forward: bool


@dataclass(slots=True)
class EGraph:
    """Classes of equal terms."""

    # says whether a target can execute an operation on operands of these kinds; nothing else is added
    legal: Callable[[Node, tuple[Kind, ...]], bool]
    nodes: list[Node] = field(default_factory=list)
    kinds: list[Kind] = field(default_factory=list)
    reasons: list[list[Edge]] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    members: dict[int, list[int]] = field(default_factory=dict)
    users: dict[int, list[int]] = field(default_factory=dict)
    known: dict[Node, int] = field(default_factory=dict)
    congruent: dict[Signature, int] = field(default_factory=dict)
    pending: list[int] = field(default_factory=list)
    few: dict[int, list[int]] = field(default_factory=dict)

    def find(self, node: int) -> int:
        """Return the number of a node's class."""
        root = node
        while self.parent[root] != root:
            root = self.parent[root]
        while self.parent[node] != root:
            self.parent[node], node = root, self.parent[node]
        return root

    def signature(self, node: int) -> Signature:
        """Return operation, arguments and classes of operands: congruent nodes have the same."""
        each = self.nodes[node]
        return each.op, each.args, tuple([self.find(operand) for operand in each.of])

    def add(self, asked: Handle) -> int | None:
        """Return the node of a term, whose operands are terms or nodes; None if it is not defined or not legal."""
        if isinstance(asked, int):
            return asked
        operands = []
        for operand in asked.of:
            node = self.add(operand)
            if node is None:
                return None
            operands.append(node)
        flat = Node(asked.op, asked.args, tuple(operands))
        if flat in self.known:
            return self.known[flat]
        kinds = tuple([self.kinds[operand] for operand in operands])
        try:
            kind = derived(flat.op, flat.args, kinds)
        except MalformedError:
            return None
        if not self.legal(flat, kinds):
            return None
        return self._new(flat, kind)

    def sure(self, asked: Handle) -> int:
        """Return the node of a term that is known to be legal."""
        node = self.add(asked)
        if node is None:
            raise AssertionError(f"{asked} is not legal")
        return node

    def _new(self, flat: Node, kind: Kind) -> int:
        node = len(self.nodes)
        self.known[flat] = node
        self.nodes.append(flat)
        self.kinds.append(kind)
        self.reasons.append([])
        self.parent.append(node)
        self.members[node], self.users[node] = [node], []
        for root in {self.find(operand) for operand in flat.of}:
            self.users[root].append(node)
        twin = self.congruent.setdefault(self.signature(node), node)
        if twin != node:
            self.join(twin, node, CONGRUENT)
        return node

    def join(self, one: int, other: int, rule: str) -> bool:
        """Make the classes of two nodes one class, because a rule rewrites the first to the second.

        Returns:
            Whether they were two.
        """
        first, second = self.find(one), self.find(other)
        if first == second:
            return False
        if self.kinds[one] != self.kinds[other]:
            raise AssertionError(f"{rule} joins {self.kinds[one]} with {self.kinds[other]}")
        self.reasons[one].append(Edge(other, rule, True))
        self.reasons[other].append(Edge(one, rule, False))
        if len(self.members[first]) < len(self.members[second]):
            first, second = second, first
        self.parent[second] = first
        self.members[first] += self.members.pop(second)
        moved = self.users.pop(second)
        self.users[first] += moved
        self.pending += moved
        return True

    def rebuild(self) -> None:
        """Join congruent nodes until no two classes have any."""
        self.few.clear()
        while self.pending:
            node = self.pending.pop()
            twin = self.congruent.setdefault(self.signature(node), node)
            if twin != node:
                self.join(twin, node, CONGRUENT)

    def terms(self, operand: Handle) -> Iterator[Node]:
        """Yield the nodes of an operand's class, one of each congruent few."""
        for node in self.distinct(self.find(operand)):
            yield self.nodes[node]

    def distinct(self, root: int) -> list[int]:
        """Return the nodes of a class, one of each congruent few."""
        if root not in self.few:
            self.few[root] = list({self.signature(node): node for node in sorted(self.members[root])[::-1]}.values())
        return self.few[root]

    def kind(self, operand: Handle) -> Kind:
        """Return the kind of an operand."""
        return self.kinds[operand]

    def key(self, operand: Handle) -> int:
        """Return an operand's class."""
        return self.find(operand)

    def count(self) -> int:
        """Return the number of nodes, congruent ones once."""
        return sum(len(self.distinct(root)) for root in self.members)

    def saturate(
        self,
        rules: list[Rule],
        most_nodes: int,
        most_iterations: int,
        candidates: Callable[[int], Iterator[Node]] = lambda _: iter(()),
    ) -> tuple[int, bool, set[str]]:
        """Apply rules until nothing is new or a budget is used up.

        Args:
            rules: The rules.
            most_nodes: Most nodes, congruent ones included.
            most_iterations: Most times that all rules are applied.
            candidates: Further terms for a node, which rules may then find equal to others.

        Returns:
            Iterations, whether nothing is new, and the rules that joined two classes.
        """
        by_op: dict[str, list[Rule]] = {}
        for rule in rules:
            for op in rule.ops:
                by_op.setdefault(op, []).append(rule)
        fired: set[str] = set()
        asked = 0
        for iteration in range(most_iterations):
            clock.check("a saturation")
            nodes, changed = len(self.nodes), False
            for node in range(asked, nodes):
                for candidate in candidates(node):
                    self.add(candidate)
            asked = nodes
            self.few.clear()
            matches = [
                (rule.name, before, after)
                for root in list(self.members)
                for node in self.distinct(root)
                for rule in by_op.get(self.nodes[node].op, ())
                for before, after in rule.match(self.nodes[node], self)
            ]
            for name, before, after in matches:
                new, old = self.add(after), self.add(before)
                if new is not None and old is not None and self.join(old, new, name):
                    changed = True
                    fired.add(name)
                if len(self.nodes) > most_nodes:
                    self.rebuild()
                    return iteration + 1, False, fired
            self.rebuild()
            if not changed and len(self.nodes) == nodes:
                return iteration + 1, True, fired
        return most_iterations, False, fired

    def term_of(self, node: int) -> Term:
        """Return the term of a node, as it was added."""
        each = self.nodes[node]
        return Term(each.op, each.args, tuple([self.term_of(operand) for operand in each.of]))

    def chosen(self, choice: Mapping[int, int], root: int) -> int:
        """Return the node of the term that the choice of a node for each class makes."""
        each = self.nodes[choice[root]]
        return self.sure(each._replace(of=tuple([self.chosen(choice, self.find(operand)) for operand in each.of])))

    def below(self, node: int) -> set[int]:
        """Return the nodes of a node's term."""
        found: set[int] = set()
        waiting = [node]
        while waiting:
            each = waiting.pop()
            if each not in found:
                found.add(each)
                waiting += self.nodes[each].of
        return found

    def explain(self, one: int, other: int) -> list[Step] | None:
        """Return the rewrites between the terms of two nodes of one class; None if they are too many for a checker."""
        steps: list[Step] = []
        self._explain(one, other, (), steps)
        return steps if len(steps) <= MOST_STEPS else None

    def _explain(self, one: int, other: int, path: tuple[int, ...], steps: list[Step]) -> None:
        now = one
        for edge in self._reasons_between(one, other):
            if len(steps) > MOST_STEPS:
                return
            if edge.rule == CONGRUENT:
                pairs = zip(self.nodes[now].of, self.nodes[edge.other].of, strict=True)
                for place, (left, right) in enumerate(pairs):
                    self._explain(left, right, (*path, place), steps)
            else:
                steps.append(Step(edge.rule, path, edge.forward, self.term_of(edge.other)))
            now = edge.other

    def _reasons_between(self, one: int, other: int) -> list[Edge]:
        """Return the path of reasons between two nodes of one class."""
        came: dict[int, tuple[int, Edge] | None] = {one: None}
        waiting = [one]
        while other not in came:
            now = waiting.pop()
            for edge in self.reasons[now]:
                if edge.other not in came:
                    came[edge.other] = now, edge
                    waiting.append(edge.other)
        found = []
        at = came[other]
        while at is not None:
            found.append(at[1])
            at = came[at[0]]
        return found[::-1]

"""Saturation by egglog: its classes, congruence and extraction, under the rules that the library's e-graph applies.

A rule is a function that sees operands through ``rules.Graph``; here an operand is a class of egglog, read from its
tables after each round. Every operation on operands of given kinds is a constructor of its own, whose cost is that of
``Costs`` in thousandths of a cycle; a node is named by a constructor without arguments that is never extracted.

egglog 13.2.0 can lose what follows a union of terms that are equal already: a function of x may then be said to be x.
So nothing is united before egglog was asked whether it is equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from egglog import bindings

from layoutalg.ground.errors import MalformedError
from layoutalg.proofs.movement.rules import RULES, Handle, Node
from layoutalg.proofs.movement.term import Kind, derived

THOUSANDTHS = 1000
Legal = Callable[[Node, tuple[Kind, ...]], bool]
Cost = Callable[[Node, tuple[Kind, ...], Kind], float | None]


class Egglog:
    """An e-graph of movement terms in egglog."""

    def __init__(self, legal: Legal, cost: Cost) -> None:
        self.legal, self.cost = legal, cost
        self.engine = bindings.EGraph()
        self.run("(sort T)")
        self.constructors: dict[tuple[Any, ...], str] = {}
        self.operations: dict[str, tuple[str, tuple[Any, ...]]] = {}
        self.named: dict[tuple[str, tuple[int, ...]], int] = {}
        self.kinds: list[Kind] = []
        self.classes: dict[int, int] = {}
        self.rows: dict[int, list[Node]] = {}
        self.pending: list[str] = []

    def run(self, text: str) -> list[Any]:
        """Run commands."""
        return list(self.engine.run_program(*self.engine.parse_program(text)))

    def add(self, asked: Handle) -> int | None:
        """Return the number of a term's node; operands are terms or numbers of nodes. None: undefined or not legal."""
        if isinstance(asked, int):
            return asked
        operands = [self.add(each) for each in asked.of]
        if None in operands:
            return None
        flat = Node(asked.op, asked.args, tuple(operands))
        kinds = tuple([self.kinds[each] for each in flat.of])
        try:
            kind = derived(flat.op, flat.args, kinds)
        except MalformedError:
            return None
        if not self.legal(flat, kinds):
            return None
        name = self._constructor(flat, kinds, kind)
        if (name, flat.of) not in self.named:
            node = self.named[name, flat.of] = len(self.kinds)
            self.kinds.append(kind)
            self.pending.append(f"(constructor n{node} () T :unextractable)")
            self.pending.append(f"(union (n{node}) ({name} {' '.join(f'(n{each})' for each in flat.of)}))")
        return self.named[name, flat.of]

    def _constructor(self, flat: Node, kinds: tuple[Kind, ...], kind: Kind) -> str:
        key = flat.op, flat.args, kinds
        if key not in self.constructors:
            name, cost = f"f{len(self.constructors)}", self.cost(flat, kinds, kind)
            weight = ":unextractable" if cost is None else f":cost {round(cost * THOUSANDTHS)}"
            self.constructors[key], self.operations[name] = name, (flat.op, flat.args)
            self.pending.append(f"(constructor {name} ({' '.join('T' for _ in kinds)}) T {weight})")
        return self.constructors[key]

    def saturate(self, most_rounds: int = 40) -> bool:
        """Apply the rules until nothing is new; return whether that was so within the rounds."""
        for _ in range(most_rounds):
            before = self._read()
            matches = [
                (one, other) for nodes in self.rows.values() for node in nodes for rule in RULES if node.op in rule.ops
                for one, other in rule.match(node, self)
            ]  # fmt: skip
            for pair in matches:
                new, old = self.add(pair[1]), self.add(pair[0])
                if new is not None and old is not None:
                    self.pending.append(f"(union (n{old}) (n{new}))")
            if self._read() == before:
                return True
        return False

    def _holds(self, equation: str) -> bool:
        try:
            self.run(f"(check {equation})")
        except bindings.EggSmolError:
            return False
        return True

    def _read(self) -> tuple[int, int]:
        """Run what is pending and read classes and nodes; return how many there are."""
        for command in dict.fromkeys(self.pending):
            if not command.startswith("(union") or not self._holds(command.replace("union", "=", 1)):
                self.run(command)
        self.pending.clear()
        tables = self.engine.freeze().functions
        first: dict[str, int] = {}
        for node in range(len(self.kinds)):
            (row,) = tables[f"n{node}"].rows
            self.classes[node] = first.setdefault(str(row.output), node)
        self.rows = {}
        for name, (op, args) in self.operations.items():
            for row in tables[name].rows:
                node = Node(op, args, tuple([first[str(each)] for each in row.inputs]))
                self.rows.setdefault(first[str(row.output)], []).append(node)
        return len(self.rows), sum(map(len, self.rows.values()))

    def terms(self, operand: Handle) -> Iterator[Node]:
        """As ``rules.Graph``."""
        yield from self.rows[self.classes[operand]]

    def kind(self, operand: Handle) -> Kind:
        """As ``rules.Graph``."""
        return self.kinds[operand]

    def key(self, operand: Handle) -> int:
        """As ``rules.Graph``."""
        return self.classes.get(operand, operand)

    def least(self, node: int) -> float:
        """Return the cycles of the cheapest term of a node's class, nothing shared."""
        found = self.run(f"(extract (n{node}))")
        return float(found[-1].cost) / THOUSANDTHS

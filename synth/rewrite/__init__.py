"""Rewrite movement terms: the cheapest program that equality saturation finds, and the rewrites that prove it.

Implementation notes: rules (``proofs.movement.rules``) decide the structure, in an e-graph that only contains what the
target can execute; the planners for conversions, TensorMaps and banks decide fields and give costs. The budget is in
nodes and iterations, and the answer says whether it was enough.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, InfeasibleError
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Record
from layoutalg.ground.verdict import Proved, Verdict
from layoutalg.proofs.movement.chains import Step, replayed
from layoutalg.proofs.movement.layouts import Table, row_major, strided
from layoutalg.proofs.movement.rules import RULES, Node, Rule
from layoutalg.proofs.movement.running import Labels, compared
from layoutalg.proofs.movement.term import Kind, Term
from layoutalg.synth.conversions.reading import shared_bytes
from layoutalg.synth.rewrite.costs import Costs, MovementCost
from layoutalg.synth.rewrite.egraph import EGraph
from layoutalg.synth.rewrite.extraction import Extraction
from layoutalg.targets.pipeline_costs import pipeline_costs

__all__ = ["Rewriting", "rewrite", "same_movement"]

CHECK = Checker("LA996", "invalid rewriting")
MOST_NODES, MOST_ITERATIONS = 3000, 12
MOST_BYTES = 1 << 28
"""Bytes of layouts in an e-graph."""


@dataclass(frozen=True, slots=True)
class Rewriting(
    Record,
    Shown,
    code="LA996",
    schema="layoutalg/rewriting/1",
    json="target before after cost_before cost steps nodes iterations saturated optimal engine_ms planner_ms",
):
    """A term, a cheaper one that is the same movement, and the rewrites between them.

    Args:
        before: The term that was given.
        after: The cheapest term found.
        cost_before: The cost of the first.
        cost: The cost of the second.
        steps: Rewrites that lead from one to the other.
        target: The target.
        nodes: Nodes of the e-graph.
        iterations: Times that all rules were applied.
        saturated: Whether no rule had anything to add; otherwise a budget was used up.
        optimal: Whether ``after`` is the cheapest term in the e-graph, not only the cheapest that was found.
        fired: Rules that made terms equal.
        engine_ms: Milliseconds for saturation and extraction.
        planner_ms: Milliseconds for legality, conversion plans and costs.
    """

    before: Term
    after: Term
    cost_before: MovementCost
    cost: MovementCost
    steps: tuple[Step, ...] = field(repr=False)
    target: str
    nodes: int
    iterations: int
    saturated: bool
    optimal: bool
    fired: tuple[str, ...] = ()
    engine_ms: float = field(default=0.0, compare=False)
    planner_ms: float = field(default=0.0, compare=False)

    def check(self) -> Rewriting:
        """Return the rewriting after replaying its steps, running both terms on labels and recounting both costs.

        Raises: MalformedError: LA996.
        """
        for verdict in (replayed(self.before, self.steps, self.after), compared(self.before, self.after)):
            if not isinstance(verdict, Proved):
                raise CHECK.malformed("steps", "must lead from the first term to an equal one", str(verdict))
        for name, each, said in (("cost_before", self.before, self.cost_before), ("cost", self.after, self.cost)):
            if (again := costs_of(each, self.target).total(each)) != said:
                raise CHECK.malformed(name, f"must be {again}", str(said))
        return self

    def __str__(self) -> str:
        ended = "saturated" if self.saturated else "budget used up"
        lines = [
            f"rewriting     {self.cost.cycles:g} cycles instead of {self.cost_before.cycles:g}",
            f"  before      {self.before}",
            f"  cost        {self.cost_before}",
            f"  after       {self.after}",
            f"  cost        {self.cost}{', the least in the e-graph' if self.optimal else ''}",
            f"  searched    {self.nodes} nodes in {self.iterations} iterations, {ended}",
        ]
        return "\n".join([*lines, *[f"  by          {step}" for step in self.steps]])


def rewrite(
    movement: Term | object,
    target: str = "sm_90a",
    *,
    most_nodes: int = MOST_NODES,
    most_iterations: int = MOST_ITERATIONS,
    rules: tuple[Rule, ...] | None = None,
) -> Rewriting:
    """Return the cheapest term that rules find for a movement, with the rewrites that prove it.

    Args:
        movement: A term, or its document.
        target: The target, for legality and costs.
        most_nodes: Most nodes of the e-graph, congruent ones included; fewer if their layouts are large.
        most_iterations: Most times that all rules are applied.
        rules: Rules to use; all by default.

    Raises: MalformedError: LA995, LA996. InfeasibleError: LA997: no code is known for the term, or no equal term fits
        shared memory.

    Example:
        >>> from layoutalg.proofs.movement import term
        >>> a = term("input", name="A", shape=(32, 32), dtype="f32")
        >>> x = term("load", a, layout="(32,32):(32,1)")
        >>> y = term("store", term("convert", x, layout="(32,32):(1,32)"))
        >>> found = rewrite(y).check()
        >>> found.after.of[0].op, found.cost.launches, found.saturated
        ('load', 1, True)
    """
    before = read(movement)
    CHECK.integer(most_nodes, "most_nodes", 1)
    CHECK.integer(most_iterations, "most_iterations", 1)
    search = Search(costs_of(before, target))
    begun = time.perf_counter()
    with search.planning() as costs:
        cost_before = costs.total(before)
    if isinstance(cost_before, str):
        raise _infeasible(before, cost_before)
    graph = search.graph
    start = graph.sure(before)
    every = list(RULES if rules is None else rules)
    iterations, saturated, fired = graph.saturate(every, _nodes(before, most_nodes), most_iterations, search.candidates)
    limit = shared_bytes(target)
    choice, optimal = Extraction(graph, search.weight).best(graph.find(start), limit)
    if choice is None:
        raise _infeasible(before, f"no equal term fits {limit} bytes of shared memory")
    last = graph.chosen(choice, graph.find(start))
    after = graph.term_of(last)
    cost = sum([search.cost(node) or MovementCost() for node in graph.below(last)], MovementCost())
    steps = None if cost.cycles >= cost_before.cycles else graph.explain(start, last)
    if steps is None:
        after, cost, steps, optimal = before, cost_before, [], optimal and cost.cycles >= cost_before.cycles
    spent = 1000 * (time.perf_counter() - begun)
    return Rewriting(
        before, after, cost_before, cost, tuple(steps), target, graph.count(), iterations, saturated,
        optimal and saturated, tuple(sorted(fired)), spent - search.planner_ms, search.planner_ms,
    )  # fmt: skip


def same_movement(a: Term | object, b: Term | object, *, most_nodes: int = MOST_NODES) -> Verdict:
    """Return whether two terms are the same movement: equal shape, type, tier, layout, and equal elements everywhere.

    Running both on labels decides it for these shapes, for every content of the arrays and every meaning of the
    functions. If rules connect the terms, the certificate has the chain of rewrites, which
    ``proofs.movement.chains.replayed`` checks.

    Args:
        a: A term, or its document.
        b: Another one.
        most_nodes: Most nodes of the e-graph in which a chain is sought.

    Raises: MalformedError: LA995.

    Example:
        >>> from layoutalg.proofs.movement import term
        >>> x = term("input", name="A", shape=(4, 6), dtype="f32")
        >>> padded = term("pad", x, low=(1, 0), high=(0, 0))
        >>> same_movement(term("crop", padded, start=(1, 0), extents=(4, 6)), x).engine
        'rules'
        >>> print(same_movement(term("gather", x, axis=0, indices=(0, 1)), term("gather", x, axis=0, indices=(0, 2))))
        refuted       another element
          at          at=(1, 0), left=A[1, 0], right=A[2, 0]
    """
    first, second = read(a, "a"), read(b, "b")
    verdict = compared(first, second)
    if not isinstance(verdict, Proved):
        return verdict
    graph = EGraph(lambda *_: True)
    one, other = graph.sure(first), graph.sure(second)
    graph.saturate(RULES, _nodes(first, most_nodes), MOST_ITERATIONS)
    if graph.find(one) == graph.find(other):
        chain = graph.explain(one, other)
        if chain is not None and isinstance(replayed(first, chain, second), Proved):
            return Proved("rules", {**verdict.certificate, "chain": [step.to_json() for step in chain]})
    return verdict


def _nodes(whole: Term, most: int) -> int:
    """Return the most nodes for a term: each may have a layout as large as the term's largest."""
    return min(most, MOST_BYTES // max(len(each.kind.layout.data) for each in whole.terms()))


def read(movement: Term | object, argument: str = "movement") -> Term:
    """Return a term, or that of a document."""
    if not isinstance(movement, Term):
        if not isinstance(movement, dict):
            raise CHECK.malformed(argument, "must be a term or its document", movement)
        movement = Term.from_json(movement)
    Labels().declare(movement)
    return movement


def costs_of(whole: Term, target: str) -> Costs:
    """Return the costs of a program's operations on a target.

    Raises: RepresentabilityError: LA979: the target's costs are not known.
    """
    pipeline_costs(CHECK.kind(target, str, "target"))
    kinds = [each.kind for each in whole.terms()]
    return Costs(target, max([kind.layout.shape[0] for kind in kinds if kind.tier == "registers"], default=4))


def _infeasible(movement: Term, because: str) -> InfeasibleError:
    return InfeasibleError(Diagnostic("LA997", "no code is known for this movement", (str(movement)[:200],), because))


class Search:
    """Legality, costs and candidates of one search, with the time they take."""

    def __init__(self, costs: Costs) -> None:
        self.costs, self.planner_ms = costs, 0.0
        self.graph = EGraph(self.legal)

    @contextmanager
    def planning(self) -> Iterator[Costs]:
        """Give the costs; what is asked of them counts as time of the planners."""
        begun = time.perf_counter()
        yield self.costs
        self.planner_ms += 1000 * (time.perf_counter() - begun)

    def legal(self, each: Node, kinds: tuple[Kind, ...]) -> bool:
        """Return whether the target can execute an operation."""
        with self.planning() as costs:
            return costs.illegal(each, kinds) is None

    def cost(self, node: int) -> MovementCost | None:
        """Return the cost of a node alone."""
        graph = self.graph
        with self.planning() as costs:
            kinds = tuple([graph.kinds[operand] for operand in graph.nodes[node].of])
            return costs.of(graph.nodes[node], kinds, graph.kinds[node])

    def weight(self, node: int) -> tuple[float, int] | None:
        """Return cycles and bytes of a node."""
        found = self.cost(node)
        return None if found is None else (found.cycles, found.smem_bytes)

    def candidates(self, node: int) -> Iterator[Node]:
        """Yield other ways to load an array, if its loads are narrow or waste sectors."""
        each = self.graph.nodes[node]
        if each.op != "load":
            return
        x, (warps, lanes, count) = self.graph.kinds[each.of[0]], each.args[0].shape
        cost = self.cost(node)
        if x.tier != "global" or cost is None:
            return
        if cost.accesses <= max(1, count * x.bits // 128) and cost.sectors <= x.size * x.bits // 256:
            return
        for registers in coalesced(x, warps, lanes):
            yield Node("convert", each.args, (Node("load", (registers,), each.of),))
        for layout in staged_layouts(x):
            for carrier in ("tma", "cp.async"):
                yield Node("load", each.args, (Node("stage", (layout, carrier), each.of),))


def coalesced(x: Kind, warps: int, lanes: int) -> list[Table]:
    """Return the layout of registers in which lanes load vectors of 16 bytes along the axis that is dense."""
    vector = 128 // x.bits
    if x.size % (vector * lanes * warps):
        return []
    offsets = x.layout.array()
    dense = max(range(offsets.ndim), key=lambda axis: int((np.diff(offsets, axis=axis) == 1).sum()))
    order = np.moveaxis(np.arange(x.size).reshape(x.shape), dense, -1)
    return [Table.of(order.reshape(-1, warps, lanes, vector).transpose(1, 2, 0, 3).reshape(warps, lanes, -1))]


def staged_layouts(x: Kind) -> list[Table]:
    """Return layouts in shared memory to try for a value: row-major, each swizzle of its rows, and rows with a gap."""
    bytes_, row = x.bits // 8, x.shape[-1]
    dense = strided(x.shape, row_major(x.shape))
    found = [dense]
    for bits in (1, 2, 3):
        if row * bytes_ == 16 << bits:
            address = dense * bytes_
            found.append((address ^ (address >> 3 & ((1 << bits) - 1) << 4)) // bytes_)
    if x.size > row and row * bytes_ % 16 == 0:
        found.append(dense + dense // row * (16 // bytes_))
    return [Table.of(np.ascontiguousarray(each)) for each in found]

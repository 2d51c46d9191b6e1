"""Movement terms that are drawn: their meaning, their rewrites, and the e-graph, against judges that share nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from judges.movement_instances import _arguments, register_layouts
from judges.movement_judge import executed, specified

from layoutalg import same_movement
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.verdict import Proved
from layoutalg.proofs.movement import OPERATIONS, Labels, Term, compared, term
from layoutalg.proofs.movement.chains import replayed
from layoutalg.proofs.movement.layouts import FILL, row_major, strided
from layoutalg.proofs.movement.rules import RULES
from layoutalg.synth.rewrite.costs import width_of
from layoutalg.synth.rewrite.egraph import EGraph
from layoutalg.synth.rewrite.extraction import Extraction
from layoutalg.targets.global_memory import SECTOR_BYTES, touched

SHAPES = st.sampled_from([(2,), (3,), (2, 2), (2, 3), (4, 2), (1, 2), (2, 1, 2)])
GROWING = {"scatter": 24, "pad": 24, "broadcast": 24}


@st.composite
def terms(draw: st.DrawFn, depth: int = 5, loaded: bool = False) -> Term:
    """A term of a few operations over one or two arrays, in registers from the start if they are loaded."""
    shape = draw(SHAPES)
    xs = [term("input", name=name, shape=shape, dtype="f32") for name in ("A", "B")]
    if loaded:
        layout = draw(st.sampled_from(list(register_layouts(shape))))
        xs = [term("load", x, layout=layout) for x in xs]
    for _ in range(draw(st.integers(0, depth))):
        xs = draw(grown(xs))
    return xs[0]


@st.composite
def grown(draw: st.DrawFn, xs: list[Term]) -> list[Term]:
    kind = xs[0].kind
    able = [op for op, each in OPERATIONS.items() if each.arity and kind.tier in each.tiers
            and kind.size <= GROWING.get(op, 48)]  # fmt: skip
    if max(kind.shape) > 4:
        able = [op for op in able if op != "scatter"]  # all its permutations are listed
    if not able:
        return xs
    op = draw(st.sampled_from(able))
    choices = list(_arguments(op, kind))
    if not choices:
        return xs
    args, both = draw(st.sampled_from(choices))
    if both:
        return [term(op, *xs, **args), term(op, *reversed(xs), **args)]
    return [term(op, x, **args) for x in xs]


def padded(name: str, low: int) -> Term:
    one = term("input", name=name, shape=(1,), dtype="f32")
    return term("load", term("pad", one, low=(low,), high=(2 - low,)), layout=[[[0, 1, 2]]])


WIDE = term("load", term("input", name="A", shape=(2, 3), dtype="f32"), layout=[[list(range(6))]])


@given(terms() | terms(loaded=True))
@example(term("elementwise", padded("A", 0), padded("B", 1), function="add"))  # zero only where both are
@example(term("transpose", WIDE, order=(1, 0)))  # not its own inverse
def test_a_term_leaves_the_elements_that_it_specifies(drawn: Term) -> None:
    said = specified(drawn)
    assert executed(drawn) == said
    labels = Labels()
    found = labels.run(drawn)
    assert found.shape == drawn.kind.shape
    assert len(said) == found.size
    pairs = {(int(found[at]), value) for at, value in said.items()}
    assert len(pairs) == len({label for label, _ in pairs}) == len({value for _, value in pairs})


@given(terms())
@settings(deadline=None)
def test_a_document_gives_its_term_again(drawn: Term) -> None:
    assert Term.from_json(drawn.to_json()) == drawn


@given(terms(), st.data())
@settings(deadline=None, max_examples=60)
def test_all_terms_of_a_class_are_the_same_movement_with_a_chain(drawn: Term, data: st.DataObject) -> None:
    graph = EGraph(lambda *_: True)
    root = graph.add(drawn)
    graph.saturate(RULES, 300, 4)
    nodes = [node for node in range(len(graph.nodes)) if graph.find(node) == graph.find(root)]
    for node in data.draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=4)):
        other = graph.term_of(node)
        assert other.kind == drawn.kind
        assert executed(other) == executed(drawn)
        assert isinstance(replayed(drawn, graph.explain(root, node), other), Proved)


@given(terms(), terms())
@settings(deadline=None)
def test_two_movements_are_the_same_exactly_if_their_elements_and_kinds_are(one: Term, other: Term) -> None:
    arrays = {each for whole in (one, other) for each in whole.terms() if each.op == "input"}
    if len(arrays) > len({each.args[0] for each in arrays}):
        with pytest.raises(MalformedError, match="must be the same array everywhere"):
            compared(one, other)
        return
    verdict = compared(one, other)
    assert bool(verdict) == (one.kind == other.kind and executed(one) == executed(other))


@given(terms(depth=4), st.data())
@settings(deadline=None, max_examples=60)
def test_a_changed_argument_is_refuted_if_it_changes_an_element(drawn: Term, data: st.DataObject) -> None:
    places = [each for each in drawn.terms() if each.of]
    if not places:
        return
    each = data.draw(st.sampled_from(places))
    args, both = data.draw(st.sampled_from(list(_arguments(each.op, each.of[0].kind)) or [({}, True)]))
    if both or not args:
        return
    changed = term(each.op, *each.of, **args)
    if changed.kind != each.kind:
        return
    other = _replaced(drawn, each, changed)
    verdict = same_movement(drawn, other, most_nodes=200)
    assert bool(verdict) == (executed(drawn) == executed(other))
    if not verdict:
        at = verdict.witness["at"]
        assert specified(drawn)[at] != specified(other)[at]


def _replaced(whole: Term, old: Term, new: Term) -> Term:
    if whole == old:
        return new
    return Term(whole.op, whole.args, tuple(_replaced(each, old, new) for each in whole.of))


LEAVES = [term("load", term("input", name=name, shape=(2,), dtype="f32"), layout=[[[0, 1]]]) for name in "ABCD"]


@st.composite
def ground_terms(draw: st.DrawFn, depth: int = 3) -> Term:
    if not depth or draw(st.booleans()):
        return draw(st.sampled_from(LEAVES))
    count = draw(st.sampled_from((1, 1, 2)))
    of = [draw(ground_terms(depth=depth - 1)) for _ in range(count)]
    return term("elementwise", *of, function=draw(st.sampled_from(("f", "g"))))


@given(st.lists(ground_terms(), min_size=2, max_size=8), st.data())
@settings(deadline=None)
def test_classes_are_those_of_congruence_closure(drawn: list[Term], data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(st.sampled_from(drawn), st.sampled_from(drawn)), max_size=5))
    graph = EGraph(lambda *_: True)
    node = {each: graph.add(each) for each in drawn}
    for one, other in pairs:
        graph.join(node[one], node[other], "given")
        if data.draw(st.booleans()):
            graph.rebuild()
    graph.rebuild()
    every = {each for whole in drawn for each in whole.terms()}
    same = closure(every, pairs)
    for one in every:
        for other in every:
            equal = graph.find(graph.add(one)) == graph.find(graph.add(other))
            assert equal == (same[one] is same[other])
            if equal:
                now = one
                for step in graph.explain(graph.add(one), graph.add(other)):
                    old = now.at(step.path)
                    assert ((old, step.after) if step.forward else (step.after, old)) in pairs
                    now = now.put(step.path, step.after)
                assert now == other
    for root in graph.members:
        signatures = [graph.signature(each) for each in graph.distinct(root)]
        assert len(signatures) == len(set(signatures))


def closure(every: set[Term], pairs: list[tuple[Term, Term]]) -> dict[Term, set[Term]]:
    """Congruence closure: unite what is given and what is congruent until nothing changes."""
    same = {each: {each} for each in every}

    def unite(one: Term, other: Term) -> bool:
        if same[one] is same[other]:
            return False
        merged = same[one] | same[other]
        for each in merged:
            same[each] = merged
        return True

    for pair in pairs:
        unite(*pair)
    changed = True
    while changed:
        changed = False
        for one in every:
            for other in every:
                alike = (one.op, one.args, len(one.of)) == (other.op, other.args, len(other.of))
                if alike and one.of and all(same[a] is same[b] for a, b in zip(one.of, other.of, strict=True)):
                    changed |= unite(one, other)
    return same


@given(st.lists(ground_terms(), min_size=2, max_size=6), st.data())
@settings(deadline=None)
def test_the_choice_is_the_cheapest_of_all(drawn: list[Term], data: st.DataObject) -> None:
    graph = EGraph(lambda *_: True)
    nodes = [graph.sure(each) for each in drawn]
    inside = [node for node in range(len(graph.nodes)) if graph.nodes[node].op != "input"]
    places = st.sampled_from(inside)  # operands too: then a class may need itself
    for one, other in data.draw(st.lists(st.tuples(places, places), max_size=4)):
        graph.join(one, other, "given")
    graph.rebuild()
    weight = st.tuples(st.integers(-1, 9), st.integers(0, 2)).map(lambda found: None if found[0] < 0 else found)
    weights = {node: data.draw(weight) for root in graph.members for node in graph.distinct(root)}
    root, limit = graph.find(nodes[0]), data.draw(st.integers(0, 8))
    chosen, optimal = Extraction(graph, weights.get).best(root, limit)
    assert optimal
    least = min(possible(graph, weights, {}, [root], limit), default=None)
    if chosen is None:
        assert least is None
        return
    assert sum(weights[node][0] for node in chosen.values()) == least
    assert sum(weights[node][1] for node in chosen.values()) <= limit
    assert graph.find(graph.chosen(chosen, root)) == root


def test_what_is_shared_counts_once() -> None:
    """f(f(A), g(A)) costs A once, and so less than B, which as a tree is cheaper."""
    of = [term("elementwise", LEAVES[0], function=function) for function in ("f", "g")]
    graph = EGraph(lambda *_: True)
    shared, other = graph.sure(term("elementwise", *of, function="f")), graph.sure(LEAVES[1])
    graph.join(shared, other, "given")
    graph.rebuild()
    cycles = {graph.sure(LEAVES[0]): 5, other: 7}
    chosen, optimal = Extraction(graph, lambda node: (cycles.get(node, 0), 0)).best(graph.find(shared), 0)
    assert optimal
    assert chosen is not None
    assert chosen[graph.find(shared)] == shared


def possible(graph: EGraph, weights: dict[int, Any], chosen: dict[int, int], needed: list[int], limit: int) -> Any:
    """The cost of every choice without circles that fits."""
    needed = [each for each in needed if each not in chosen]
    if not needed:
        if not circular(graph, chosen) and sum(weights[node][1] for node in chosen.values()) <= limit:
            yield sum(weights[node][0] for node in chosen.values())
        return
    for node in graph.distinct(needed[0]):
        if weights[node] is not None:
            more = [graph.find(operand) for operand in graph.nodes[node].of]
            yield from possible(graph, weights, {**chosen, needed[0]: node}, needed[1:] + more, limit)


def circular(graph: EGraph, chosen: dict[int, int]) -> bool:
    """Whether classes can not be ordered with operands first."""
    left, made = dict(chosen), set()
    while left:
        ready = [each for each, node in left.items() if all(graph.find(x) in made for x in graph.nodes[node].of)]
        if not ready:
            return True
        made.update(ready)
        for each in ready:
            del left[each]
    return False


@given(SHAPES, st.integers(0, 3), st.sampled_from((1, 2, 4)), st.sampled_from((1, 2, 16)))
def test_widths_and_sectors_are_those_of_each_access(
    shape: tuple[int, ...], start: int, bytes_: int, align: int
) -> None:
    in_order = np.arange(math.prod(shape)).reshape(1, 1, -1)  # in one thread: the only one with runs
    for layout in (*register_layouts(shape), in_order):
        for memory in (strided(shape, row_major(shape)) + start, np.full(shape, FILL)):
            judge_access(memory.reshape(-1)[layout], bytes_, align)


def judge_access(offsets: np.ndarray[Any, Any], bytes_: int, align: int) -> None:
    width = width_of(offsets, bytes_, align)
    assert offsets.shape[2] % width == 0
    assert width * bytes_ <= 16
    for row in offsets.reshape(-1, width):
        fits = [first + k for k, first in enumerate([row[0]] * width)]
        aligned = width == 1 or (align % (width * bytes_) == 0 and row[0] * bytes_ % (width * bytes_) == 0)
        assert (row == FILL).all() or (row.tolist() == fits and aligned)
    addresses = np.where(offsets[..., 0] < 0, -1, offsets[..., 0] * bytes_)
    wanted = [len({at // 32 for at in row if at >= 0}) for row in addresses.tolist()]
    assert touched(addresses, 1, SECTOR_BYTES).tolist() == wanted

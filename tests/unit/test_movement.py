"""Rules of movement and wrong ones, chains that were changed, terms that are none, and thirty programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from judges.movement_baselines import dynamic, greedy
from judges.movement_instances import certify
from judges.movement_programs import KINDS, PROGRAMS, rows

import layoutalg as la
from layoutalg.ground.errors import InfeasibleError, LayoutError, MalformedError
from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.proofs.laws import law
from layoutalg.proofs.laws.bits import _fields
from layoutalg.proofs.laws.solvers import Z3
from layoutalg.proofs.laws.term import every
from layoutalg.proofs.laws.trial import Trial, explored
from layoutalg.proofs.movement import Term, term
from layoutalg.proofs.movement.chains import Step, replayed, rule_named
from layoutalg.proofs.movement.rules import RULES, Graph, Handle, Node, Rule, cropped_padding
from layoutalg.synth.rewrite import costs_of, rewrite

A = term("input", name="A", shape=(4, 6), dtype="f32")


@pytest.mark.nightly(one_of=3)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_has_a_certificate(rule: Rule) -> None:
    assert rule.says
    assert rule.patterns
    verdict = certify(rule)
    assert isinstance(verdict, Proved), str(verdict)
    assert verdict.certificate["instances"] >= 30
    for name in rule.laws:
        assert any(isinstance(each.prove(), Proved) for each in law(name).obligations), name


def inner(outer: Node, graph: Graph, op: str) -> Iterator[Node]:
    return (each for each in graph.terms(outer.of[0]) if each.op == op)


def over(outer: Node, each: Node) -> Node:
    return Node(outer.op, outer.args, (each,))


Pairs = Iterator[tuple[Node, Handle]]


def pad_of_crop(outer: Node, graph: Graph) -> Pairs:
    for each in inner(outer, graph, "crop"):
        if graph.kind(each.of[0]).shape == tuple(map(sum, zip(each.args[1], *outer.args, strict=True))):
            yield over(outer, each), each.of[0]


def gathers_the_wrong_way_round(outer: Node, graph: Graph) -> Pairs:
    for each in inner(outer, graph, "gather"):
        if each.args[0] == outer.args[0] and max(each.args[1]) < len(outer.args[1]):
            indices = tuple([outer.args[1][index] for index in each.args[1]])
            yield over(outer, each), Node("gather", (outer.args[0], indices), each.of)


def transposes_the_wrong_way_round(outer: Node, graph: Graph) -> Pairs:
    for each in inner(outer, graph, "transpose"):
        order = tuple([outer.args[0][axis] for axis in each.args[0]])
        yield over(outer, each), Node("transpose", (order,), each.of)


def swap_past_split_without_a_shift(outer: Node, graph: Graph) -> Pairs:
    for each in inner(outer, graph, "reshape"):
        before, after = graph.kind(each.of[0]).shape, each.args[0]
        if len(after) == len(before) + 1 and after[len(before) - 1 :] != before[-1:]:
            order = outer.args[0][: len(before)]
            if sorted(order) == list(range(len(before))):
                turned = tuple([after[axis] for axis in outer.args[0]])
                yield over(outer, each), Node("reshape", (turned,), (Node("transpose", (order,), each.of),))


def functions_of_padding(outer: Node, graph: Graph) -> Pairs:
    for view in inner(outer, graph, "pad"):
        for store in graph.terms(view.of[0]):
            for each in graph.terms(store.of[0]) if store.op == "store" else ():
                if each.op == "elementwise":
                    moved = [Node(view.op, view.args, (Node("store", store.args, (x,)),)) for x in each.of]
                    loads = tuple([Node("load", outer.args, (x,)) for x in moved])
                    yield outer, Node("elementwise", each.args, loads)


def gather_undoes_scatter_always(outer: Node, graph: Graph) -> Pairs:
    for each in inner(outer, graph, "scatter"):
        if len(outer.args[1]) == len(each.args[1]):
            yield over(outer, each), each.of[0]


def scatter_is_a_gather_of_its_indices(outer: Node, graph: Graph) -> Pairs:
    axis, indices, extent = outer.args
    if len(indices) == extent:
        yield outer, Node("gather", (axis, indices), outer.of)


def crop_starts_are_not_added(outer: Node, graph: Graph) -> Pairs:
    for each in inner(outer, graph, "crop"):
        yield over(outer, each), over(outer, each.of[0])


def a_layout_is_forgotten(outer: Node, graph: Graph) -> Pairs:
    yield outer, outer.of[0]


def crops_that_keep_padding_only(outer: Node, graph: Graph) -> Pairs:
    for each in inner(outer, graph, "pad"):
        shape = graph.kind(each.of[0]).shape
        found = [cropped_padding(*axis) for axis in zip(*outer.args, each.args[0], shape, strict=True)]
        low, high, start, count = zip(*found, strict=True)
        yield over(outer, each), Node("pad", (low, high), (Node("crop", (start, count), each.of),))


WRONG: dict[str, tuple[str, str, Callable[[Node, Graph], Pairs]]] = {
    "another element": ("pad", "pad crop", pad_of_crop),
    "wrong order of gathers": ("gather", "gather gather", gathers_the_wrong_way_round),
    "wrong order of transposes": ("transpose", "transpose transpose", transposes_the_wrong_way_round),
    "swap past split": ("transpose", "transpose reshape", swap_past_split_without_a_shift),
    "f(0) is not 0": ("load", "load pad store elementwise load", functions_of_padding),
    "gather of scatter": ("gather", "gather scatter", gather_undoes_scatter_always),
    "scatter by its indices": ("scatter", "scatter", scatter_is_a_gather_of_its_indices),
    "crop of crop": ("crop", "crop crop", crop_starts_are_not_added),
    "conversion": ("convert", "convert load", a_layout_is_forgotten),
    "not defined": ("crop", "crop pad", crops_that_keep_padding_only),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_refuted(name: str) -> None:
    op, pattern, match = WRONG[name]
    verdict = certify(Rule(name, (op,), name, (pattern,), (), match))
    assert isinstance(verdict, Refuted), str(verdict)
    assert str(verdict.witness["before"]).startswith(op)
    assert ("not defined" in verdict.witness["what"]) == (name == "not defined")


def test_swizzles_whose_bits_overlap_and_unguarded_paddings_are_refuted() -> None:
    def twice(trial: Trial) -> None:
        x, fields = trial.bits("x", 16), _fields(trial, apart=False)
        from layoutalg.f2.carry import swizzled

        trial.assume(fields[2] > 0, fields[0] > fields[2])
        trial.claim(swizzled(swizzled(x, *fields), *fields) == x, "twice is once")

    def cropped(trial: Trial) -> None:
        extent, low, start, kept = (trial.extent(name) for name in ("n", "l", "s", "k"))
        trial.assume(start + kept <= low + extent)
        trial.claim(every(start - low >= 0, start - low + kept <= extent), "the crop is inside")

    for claim in (twice, cropped):
        assert isinstance(explored(claim, Z3), Refuted)


def chain() -> tuple[Term, tuple[Step, ...], Term]:
    x = term("pad", term("pad", A, low=(1, 0), high=(0, 1)), low=(0, 2), high=(1, 0))
    y = term("crop", x, start=(1, 2), extents=(4, 6))
    once = term("pad", A, low=(1, 2), high=(1, 1))
    first = Step("view.view", (0,), True, once)
    cropped = term("pad", term("crop", A, start=(0, 0), extents=(4, 6)), low=(0, 0), high=(0, 0))
    steps = (
        first, Step("crop.pad", (), True, cropped), Step("view.nothing", (), True, cropped.of[0]),
        Step("view.nothing", (), True, A),
    )  # fmt: skip
    return y, steps, A


def test_a_chain_is_replayed_and_a_changed_one_is_not() -> None:
    before, steps, after = chain()
    assert isinstance(replayed(before, steps, after), Proved)
    wrong = term("pad", A, low=(1, 2), high=(1, 2))
    for changed in (
        steps[1:],
        (replace(steps[0], path=(0, 0)), *steps[1:]),
        (replace(steps[0], path=(3,)), *steps[1:]),
        (replace(steps[0], rule="crop.pad"), *steps[1:]),
        (replace(steps[0], forward=False), *steps[1:]),
        (replace(steps[0], after=wrong), *steps[1:]),
        steps[:-1],
    ):
        assert isinstance(replayed(before, changed, after), Refuted), changed
    with pytest.raises(MalformedError, match="rule"):
        rule_named("crop.anything")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_never_dearer_than_after_local_rewrites_or_a_dynamic_program(name: str) -> None:
    whole = PROGRAMS[name]()
    found = rewrite(whole).check()
    assert found.saturated
    assert found.optimal
    assert bool(found.steps) == (found.after != whole) == (found.cost.cycles < found.cost_before.cycles)
    costs = costs_of(whole, "sm_90a")
    for other, cycles in (greedy(whole, costs), dynamic(whole, costs)):
        assert la.same_movement(other, whole, most_nodes=1)
        assert found.cost.cycles <= cycles + 1e-6


def test_there_are_five_programs_of_each_kind() -> None:
    kinds = [each.partition("_")[0] for each in PROGRAMS]
    assert {kind: kinds.count(kind) for kind in kinds} == dict.fromkeys(KINDS, 5)


def test_a_budget_is_said_and_never_hides_a_term() -> None:
    whole = PROGRAMS["paging_transposed"]()
    for limits in ({"most_iterations": 1}, {"most_nodes": 10}):
        found = rewrite(whole, **limits).check()
        assert not found.saturated
        assert not found.optimal
        assert found.cost.cycles <= found.cost_before.cycles
        assert "budget used up" in str(found)


def test_a_rewriting_with_another_cost_or_chain_is_refused() -> None:
    found = rewrite(PROGRAMS["moe_permuted_copy"]()).check()
    for changed in (
        replace(found, cost=found.cost_before),
        replace(found, steps=()),
        replace(found, after=found.before),
        replace(found, cost_before=found.cost),
    ):
        with pytest.raises(MalformedError, match="LA996"):
            changed.check()


def test_an_illegal_term_is_never_in_the_graph() -> None:
    narrow = term("input", name="N", shape=(64, 60), dtype="bf16", strides=(60, 1))
    tile = term("crop", narrow, start=(0, 0), extents=(64, 32))
    with pytest.raises(InfeasibleError, match=r"stage of .*") as raised:
        rewrite(term("load", term("stage", tile, carrier="tma"), layout=rows((64, 32))))
    assert "LA997" in str(raised.value)
    assert la.admissible("(64,32):(32,1)", "tma", tensor=la.Tensor((64, 32), (60, 1), "bf16")).rules
    wide = term("input", name="W", shape=(256, 512), dtype="f32")
    layout = np.arange(256 * 512).reshape(-1, 4, 32, 4).transpose(1, 2, 0, 3).reshape(4, 32, -1)
    with pytest.raises(InfeasibleError, match="no code for it is known"):
        rewrite(term("store", term("load", wide, layout=layout)))  # 1024 registers
    staged = term("stage", wide, carrier="cp.async")
    small = term("load", term("crop", staged, start=(0, 0), extents=(64, 64)), layout=rows((64, 64), 4))
    with pytest.raises(InfeasibleError, match="bytes of shared memory"):
        rewrite(term("store", small))
    with pytest.raises(InfeasibleError, match="32 lanes"):
        rewrite(term("load", A, layout=np.arange(24).reshape(1, 24, 1)))
    with pytest.raises(LayoutError, match="LA979"):
        rewrite(A, "gfx942")


def test_what_is_equal_and_what_is_not() -> None:
    turned = term("transpose", A, order=(1, 0))
    proved = la.same_movement(term("transpose", turned, order=(1, 0)), A.to_json())
    assert proved.engine == "rules"
    assert [step["rule"] for step in proved.certificate["chain"]] == ["view.view", "view.nothing"]
    same = term("gather", turned, axis=1, indices=(3, 2, 1, 0))
    assert la.same_movement(same, term("transpose", term("gather", A, axis=0, indices=(3, 2, 1, 0)), order=(1, 0)))
    flat = term("reshape", A, shape=(24,))
    every_other = term("gather", flat, axis=0, indices=tuple(range(0, 24, 2)))
    pairs = term("crop", term("reshape", A, shape=(12, 2)), start=(0, 0), extents=(12, 1))
    found = la.same_movement(term("reshape", pairs, shape=(12,)), every_other)
    assert found.engine == "labels"
    for other, what in (
        (turned, "another shape"),
        (term("input", name="U", shape=(4, 6), dtype="u32"), "another dtype"),
        (term("stage", A, carrier="tma"), "another tier"),
        (term("input", name="B", shape=(4, 6), dtype="f32"), "another element"),
    ):
        refuted = la.same_movement(A, other)
        assert isinstance(refuted, Refuted)
        assert refuted.witness["what"] == what
    loaded = [term("load", A, layout=np.arange(24)[::step].reshape(1, 24, 1)) for step in (1, -1)]
    assert la.same_movement(*loaded).witness["what"] == "another layout"


def test_two_arrays_of_one_name_are_refused() -> None:
    other = term("input", name="A", shape=(4, 6), dtype="f32", strides=(8, 1))
    with pytest.raises(MalformedError, match=r"input A(?s:.*)must be the same array everywhere"):
        la.same_movement(A, other)
    places = np.arange(24).reshape(1, 24, 1)
    loads = [term("load", each, layout=places) for each in (A, other)]
    with pytest.raises(MalformedError, match="must be the same array everywhere"):
        rewrite(term("elementwise", *loads, function="add"))


@pytest.mark.parametrize(
    ("make", "where", "rule"),
    [
        (lambda: term("flip", A), "op", "must be one of"),
        (lambda: term("load", A, lay=3), "an argument of load", "must be one of layout"),
        (lambda: term("load", layout=3), "load.of", "must have 1 operands"),
        (lambda: term("load", A, layout="(32,4):(1,32)"), "load.layout", "must have coordinates in [0, 24)"),
        (lambda: term("load", A, layout=[[[0, 1, 2]]]), "load.layout", "must hold every element, element 3 too"),
        (lambda: term("load", A, layout=[[[24]]]), "load.layout", "must have element numbers in [0, 24)"),
        (lambda: term("convert", A, layout=[[[0]]]), "convert.of[0]", "must be in registers, not 'global'"),
        (lambda: term("gather", A, axis=2, indices=(0,)), "gather.axis", "must be in [0, 2)"),
        (lambda: term("gather", A, axis=0, indices=(0, 4)), "gather.indices[1]", "must be in [0, 4)"),
        (lambda: term("scatter", A, axis=0, indices=(0, 1, 2, 1), extent=4), "scatter.indices[3]", "not repeat"),
        (lambda: term("pad", A, low=(0, -1), high=(0, 0)), "pad.low[1]", "must be at least 0"),
        (lambda: term("pad", A, low=(1 << 60, 0), high=(0, 0)), "pad.high", "at most 1048576 elements"),
        (lambda: term("crop", A, start=(0, 3), extents=(4, 4)), "crop.extents[1]", "must be in [1, 4)"),
        (lambda: term("transpose", A, order=(0, 0)), "transpose.order", "must be a permutation of 0 to 1"),
        (lambda: term("reshape", A, shape=(5, 5)), "reshape.shape", "must have 24 elements"),
        (lambda: term("stage", A, carrier="threads"), "stage.carrier", "exactly if the operand is in registers"),
        (lambda: term("stage", A, carrier="tma", layout=np.zeros((4, 6), int)), "stage.layout", "its own offset"),
        (lambda: term("input", name="A", shape=(1 << 30,), dtype="f32"), "input.shape", "at most 1048576 elements"),
        (lambda: term("input", name="a b", shape=(4,), dtype="f32"), "input.name", "must be an identifier"),
        (lambda: term("input", name="A", shape=(), dtype="f32"), "input.shape", "must have 1 to"),
        (lambda: term("broadcast", A, axis=0, extent=3), "broadcast.axis", "must be an axis of extent 1"),
        (lambda: Term("crop", ((0, 0), (4, 9)), (A,)), "crop.extents[1]", "must be in [1, 7)"),
        (lambda: Term("load", (A,), (A,)), "load.layout", "must be a layout of registers"),
        (lambda: Term("crop", ((0, 0),), (A,)), "crop.args", "must be start, extents"),
        (lambda: Term("transpose", ((1, 0),), (3,)), "transpose.of[0]", "must be a Term"),
    ],
)  # fmt: skip
def test_what_is_no_term_is_refused_with_place_and_rule(make: Callable[[], Any], where: str, rule: str) -> None:
    with pytest.raises(MalformedError) as raised:
        make()
    said = raised.value.diagnostic
    assert said.where[0].startswith(where), str(raised.value)
    assert rule in said.because


def test_documents_are_read_strictly() -> None:
    document = term("crop", A, start=(0, 0), extents=(4, 5)).to_json()
    assert Term.from_json(document).kind.shape == (4, 5)
    terms: Any = document["terms"]
    for changed, pointer in (
        ([{**terms[0], "more": 1}], "/terms/0/more"),
        ([terms[1]], "/terms/0/of"),
        ([terms[0], {**terms[1], "of": [1]}], "/terms/1/of"),
        ([terms[0], {**terms[1], "op": "flip"}], "/terms/1/op"),
        ([terms[0], {**terms[1], "extents": [4, 9]}], "/terms/1/crop.extents"),
        ([terms[0], {**terms[1], "extents": "all"}], "/terms/1/crop.extents"),
        ([], "/terms"),
    ):
        with pytest.raises(MalformedError) as raised:
            Term.from_json({**document, "terms": changed})
        assert raised.value.diagnostic.where[0].startswith(pointer), str(raised.value)
    deep = wide = term("load", A, layout=np.arange(24).reshape(1, 24, 1))
    for _ in range(198):
        deep = term("elementwise", deep, function="f")
    for _ in range(11):
        wide = term("elementwise", wide, wide, function="f")
    for whole in (deep, wide):
        assert len(str(whole)) < 10**6
        assert la.same_movement(whole, Term.from_json(whole.to_json()), most_nodes=500)
        with pytest.raises(MalformedError, match="at most 200 operations deep and 10000 in all"):
            term("elementwise", *[whole] * 4, function="g")

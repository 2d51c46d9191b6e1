"""Variants: drawn builders and tensors, judged by running the builder on numbers and by enumerating the sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.ground.conditions import condition, conditions
from layoutalg.ground.errors import LayoutError
from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.proofs.symbolic import Guard
from layoutalg.proofs.symbolic.dispatch import Branch, Dispatch, prove_dispatch
from layoutalg.synth.symbolic.explore import explore

END = 400
DOMAIN = Guard((f"n <= {END}",), ("n",))
QUESTIONS = [f"n <= {k}" for k in (1, 16, 64, 100, 128)] + [f"n % {k} == 0" for k in (2, 3, 8, 16, 128)]
QUESTIONS += ["n == 64", "n != 7", "n >= 65", "16 <= n <= 64"]
trees = st.recursive(st.integers(0, 9), lambda inner: st.tuples(st.sampled_from(QUESTIONS), inner, inner), max_leaves=9)


def walk(tree: Any, holds: Any, asked: list[str]) -> list[tuple[str, bool]]:
    """What a builder that follows a drawn tree learns, in order; ``asked`` collects the questions."""
    learnt = []
    while isinstance(tree, tuple):
        asked.append(tree[0])
        learnt.append((tree[0], holds(tree[0])))
        tree = tree[1] if learnt[-1][1] else tree[2]
    return [*learnt, ("end", tree)]


def at_number(n: int) -> Any:
    """Answers about one number."""
    return lambda text: all(entry.true_at({"n": n}) for entry in conditions(text))


@settings(max_examples=60)
@given(trees)
def test_a_variant_is_what_the_builder_makes_of_each_number(tree: Any) -> None:
    dispatch, built = explore(lambda sizes: walk(tree, sizes.holds, []), DOMAIN, most=256)
    for n in range(1, END + 1):
        place = dispatch.choose({"n": n})
        assert place is not None
        assert built[place] == walk(tree, at_number(n), [])
    assert dispatch.choose({"n": END + 1}) is None
    assert dispatch.choose({"n": 0}) is None


@settings(max_examples=60)
@given(trees, st.integers(1, 6))
def test_the_most_specific_variant_is_chosen_and_there_are_few(tree: Any, most: int) -> None:
    dispatch, built = explore(lambda sizes: walk(tree, sizes.holds, []), DOMAIN, most=most)
    assert len(dispatch.branches) <= most
    where = [{n for n in range(1, END + 1) if branch.guard.admits({"n": n})} for branch in dispatch.branches]
    chosen = [dispatch.choose({"n": n}) for n in range(1, END + 1)]
    for n, place in enumerate(chosen, 1):
        assert n in where[place]
        assert not any(n in other and other < where[place] for other in where)
        for text, answer in built[place][:-1]:
            assert not answer or at_number(n)(text), "a variant relies on what does not hold"
    assert isinstance(prove_dispatch(dispatch), Proved)


@settings(max_examples=40)
@given(trees, st.data())
def test_a_dispatch_that_lost_a_branch_is_refuted_with_a_size(tree: Any, data: st.DataObject) -> None:
    dispatch, _ = explore(lambda sizes: walk(tree, sizes.holds, []), DOMAIN, most=256)
    if len(dispatch.branches) < 2:
        return
    lost = data.draw(st.integers(0, len(dispatch.branches) - 1))
    kept = tuple(branch for place, branch in enumerate(dispatch.branches) if place != lost)
    verdict = prove_dispatch(Dispatch(DOMAIN, kept))
    missing = [n for n in range(1, END + 1) if dispatch.choose({"n": n}) == lost]
    assert isinstance(verdict, Refuted if missing else Proved)
    if missing:
        assert verdict.witness["at"]["n"] in missing


@pytest.mark.parametrize(
    ("first", "second"), [("n >= 32", "n >= 64"), ("n <= 64", "n <= 8"), ("n % 2 == 0", "n % 4 == 0")]
)
def test_a_more_specific_variant_that_is_never_chosen_is_refuted(first: str, second: str) -> None:
    one, two = (condition(first),), (condition(second),)
    hidden = Branch(((one, True),)), Branch(((one, False), (two, True))), Branch(((one, False), (two, False)))
    verdict = prove_dispatch(Dispatch(DOMAIN, hidden))
    assert isinstance(verdict, Refuted)
    assert two[0].true_at(verdict.witness["at"])
    right = Branch(((two, True),)), Branch(((two, False), (one, True))), Branch(((two, False), (one, False)))
    assert isinstance(prove_dispatch(Dispatch(DOMAIN, right)), Proved)


tensors = st.builds(
    lambda ahead, assume: la.Tensor(("M", "K"), (f"K + {ahead}", 1) if ahead else None, "bf16", 256, assume),
    st.sampled_from((0, 0, 4, 8)),
    st.sampled_from(((), ("K % 4 == 0",), ("K % 8 == 0",), ("M % 2 == 0",))),
)


def planned(tensor: la.Tensor, rows: int) -> Any:
    """The plan of a tile, or the refusal."""
    try:
        return la.tensormap(tensor, (rows, 64), f"Sw<3,3,3> o 0 o ({rows},64):(64,1)", repair=False)
    except LayoutError as refusal:
        return refusal


@settings(max_examples=12)
@given(tensors, st.sampled_from((16, 64)), st.data())
def test_the_plan_of_a_variant_is_what_planning_at_the_sizes_proves(
    tensor: la.Tensor, tall: int, data: st.DataObject
) -> None:
    def build(sizes: Any) -> Any:
        rows = tall if sizes.holds(f"M <= {tall}") else 2 * tall
        plan = planned(replace(tensor, assume=sizes.assume), rows)
        return plan if isinstance(plan, LayoutError) else sizes.case(plan)

    domain = Guard((*map(condition, tensor.assume), "M <= 8192", "K <= 8192"), ("M", "K"))
    dispatch, built = explore(build, domain)
    assert isinstance(prove_dispatch(dispatch), Proved)
    plain = {rows: planned(tensor, rows) for rows in (tall, 2 * tall)}
    for _ in range(12):
        sizes = {"M": data.draw(st.integers(1, 300)), "K": data.draw(st.sampled_from((1, 4, 8, 60, 64, 100, 8192)))}
        place = dispatch.choose(sizes)
        if place is None:
            assert not domain.admits(sizes)
            continue
        direct = plain[tall if sizes["M"] <= tall else 2 * tall]
        if built[place] is None or isinstance(built[place], LayoutError):
            assert isinstance(direct, LayoutError) or direct.guard.broken_at(sizes) is not None
            continue
        assert built[place].guard.admits(sizes)
        assert built[place].encode(sizes) == built[place].specialise(sizes).raw == direct.encode(sizes)


@settings(max_examples=100)
@given(st.lists(st.sampled_from(QUESTIONS), max_size=4), st.integers(-2, END))
def test_a_compiled_guard_is_the_guard(texts: list[str], n: int) -> None:
    guard = Guard(tuple((part,) for text in texts for part in conditions(text)), ("n",))
    assert guard.admits({"n": n}) == (guard.broken_at({"n": n}) is None)


@pytest.mark.parametrize("where", ["branch", "general"])
def test_a_plan_that_needs_more_than_its_guard_is_refuted(where: str) -> None:
    plan = la.tensormap(la.Tensor(("M", "K")), (64, 64))
    domain = Guard(("M <= 512", "K <= 512"))
    given = {"general": plan} if where == "general" else {}
    verdict = prove_dispatch(Dispatch(domain, (Branch((), None if given else plan),), **given))
    assert isinstance(verdict, Refuted)
    assert verdict.witness["at"]["K"] % 8
    whole = Guard(("M <= 512", "K <= 512", "K % 8 == 0"))
    assert isinstance(prove_dispatch(Dispatch(whole, (Branch((), plan),), plan)), Proved)

"""Placements: the lattice by its definition, least fixed points and shortest moves against enumeration."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutalg.ground.errors import InfeasibleError, MalformedError
from layoutalg.proofs.pipeline.placement import MOVES, OPS, PLACEMENTS, Step, available, below, join, path, placed

READERS = {
    "register": {"thread"}, "tensor": {"thread", "tensor core"}, "shared::cta": {"thread", "block"},
    "shared::cluster": {"thread", "tensor core", "block", "cluster"},
    "global": {"thread", "tensor core", "block", "cluster", "grid"},
}  # fmt: skip


def test_the_order_is_that_of_readers() -> None:
    for one, other in itertools.product(PLACEMENTS, repeat=2):
        assert below(one, other) == (READERS[one] <= READERS[other])


def test_joins_are_least_upper_bounds() -> None:
    for one, other in itertools.product(PLACEMENTS, repeat=2):
        found = join(one, other)
        bounds = [each for each in PLACEMENTS if below(one, each) and below(other, each)]
        assert found in bounds
        assert all(below(found, each) for each in bounds)
        assert join(other, one) == found
        for third in PLACEMENTS:
            assert join(found, third) == join(one, join(other, third))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_paths_are_shortest(target: str) -> None:
    known = available(target)
    for one, other in itertools.product(PLACEMENTS, repeat=2):
        ways = [
            (one, *middle, other)
            for many in range(4)
            for middle in itertools.product(known, repeat=many)
            if one != other and all(pair in MOVES for pair in itertools.pairwise((one, *middle, other)))
        ]
        inside = one in known and other in known
        found = path(one, other, target)
        if one == other:
            assert found == ((one,) if one in known else None)
        elif not inside or not ways:
            assert found is None
        else:
            assert found is not None
            assert len(found) == min(map(len, ways))
            assert found in ways


@st.composite
def flows(draw: st.DrawFn) -> list[Step]:
    """Values of every op; merges may use later ones."""
    count = draw(st.integers(2, 7))
    steps = [Step("v0", draw(st.sampled_from(["argument", "constant"])))]
    for number in range(1, count):
        op = draw(st.sampled_from([*OPS, "merge", "view"]))
        many = count if op == "merge" else number
        names = [f"v{draw(st.integers(0, many - 1))}" for _ in OPS[op][0]]
        steps.append(Step(f"v{number}", op, tuple(names)))
    return steps


@given(flows())
def test_placements_are_the_least_that_agree(steps: list[Step]) -> None:
    """Against all assignments of the values that ops leave open."""
    where, moves = placed(steps, "sm_100a")
    free = [step for step in steps if OPS[step.op][1] is None]

    def agrees(found: dict[str, str]) -> bool:
        return all(below(found[operand], found[step.name]) for step in free for operand in step.operands)

    fixed = {step.name: kind for step in steps if (kind := OPS[step.op][1]) is not None}
    every = [
        fixed | dict(zip([step.name for step in free], chosen, strict=True))
        for chosen in itertools.product(PLACEMENTS, repeat=min(len(free), 4))
        if len(free) <= 4
    ]
    if every:
        right = [found for found in every if agrees(found)]
        assert where in right
        assert all(below(where[name], found[name]) for found in right for name in where)
    needed = {
        (operand, step.name)
        for step in steps
        for operand, wanted in zip(step.operands, OPS[step.op][0], strict=False)
        if where[operand] not in ((where[step.name],) if step.op == "merge" else wanted)
    }
    assert {(move.value, move.user) for move in moves} == needed
    for move in moves:
        assert move.path[0] == where[move.value]
        assert all(pair in MOVES for pair in itertools.pairwise(move.path))
        assert len(move.instructions) == len(move.path) - 1


def test_merges_see_what_comes_later() -> None:
    """Around two loops: a merge of a view of a merge of an argument."""
    where, moves = placed([
        Step("x", "constant"), Step("outer", "merge", ("x", "seen")), Step("inner", "merge", ("x", "a")),
        Step("seen", "view", ("inner",)), Step("a", "argument"),
    ])  # fmt: skip
    assert [where[name] for name in ("outer", "inner", "seen")] == ["global"] * 3
    assert [str(move) for move in moves] == [
        f"x for {name}: register -> global by st.global" for name in ("outer", "inner")
    ]


def test_what_has_no_place_is_refused() -> None:
    product = [
        Step("x", "argument"), Step("a", "tma_load", ("x",)), Step("zero", "constant"),
        Step("d", "tcgen05.mma", ("a", "a", "zero")),
    ]  # fmt: skip
    where, moves = placed(product, "sm_100a")
    assert where["d"] == "tensor"
    assert [str(move) for move in moves] == ["zero for d: register -> tensor by tcgen05.st"]
    with pytest.raises(InfeasibleError, match="LA988") as told:
        placed(product, "sm_90a")
    assert "tensor" in str(told.value)


@pytest.mark.parametrize(
    ("flow", "words"),
    [
        ([("x", "argument", ()), ("x", "constant", ())], "used twice"),
        ([("y", "view", ("x",)), ("x", "constant", ())], "earlier values"),
        ([("y", "merge", ("x", "z")), ("x", "constant", ())], "earlier values"),
        ([("x", "wgmma", ())], "must be 3"),
        ([("x", "fold", ())], "op"),
    ],
)
def test_flows_are_checked(flow: list[tuple[str, str, tuple[str, ...]]], words: str) -> None:
    with pytest.raises(MalformedError, match=words):
        placed([Step(*each) for each in flow])

"""Clusters, named barriers and resources of pipelines: documents, verdicts, repairs, and what PTX forbids."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from judges import cluster_judge
from judges.cluster_programs import exchange, gemm, grid, handed, led, meeting
from judges.pipeline_programs import arrive, op

import layoutalg as la
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.pipeline import Buffer, Op, Pipeline, Role, verify
from layoutalg.proofs.pipeline.expansion import expanded

SAFE = {
    "two CTAs": gemm(),
    "a CTA alone": gemm(2, 1),
    "two consumers": gemm(3, consumers=2),
    "arrivals of mmas": gemm(2, signal=True),
    "four CTAs": gemm(2, 4),
    "eight CTAs": gemm(2, 8),
    "a grid": grid(),
    "parts exchanged by two CTAs": exchange(2),
    "parts exchanged by eight CTAs": exchange(1, 8, ahead=False),
    "one CTA loads for all": led(2, 3),
    "a named barrier": meeting(2),
    "a named barrier twice in each iteration": meeting(3, around=True),
    "named barriers in a cluster": meeting(2, around=True, cluster=2),
    "arrivals without a wait": handed(),
}


def changed(made: Any, *path: Any, **change: Any) -> Any:
    """The document with other entries at a place; None removes one."""
    made = json.loads(json.dumps(made))
    inner = made
    for key in path:
        inner = inner[key]
    inner |= change
    for key in [key for key in change if change[key] is None]:
        del inner[key]
    return made


def math(place: int, **change: Any) -> Any:
    return changed(gemm(2), "roles", 1, "loop", place, **change)


@pytest.mark.parametrize("name", SAFE)
def test_they_are_proved_for_every_n(name: str) -> None:
    made = SAFE[name]
    found = verify(made)
    assert isinstance(found, Proved)
    assert found.to_certificate().check()
    value = Pipeline.from_json(made)
    assert Pipeline.from_json(json.dumps(value.to_json())) == value
    assert "cluster" not in found.to_certificate().to_json()["statement"]["pipeline"]
    assert la.explain(value).holds
    assert la.draw.svg(value).startswith("<svg")


def test_the_smallest_of_them_are_safe_in_every_order_of_events() -> None:
    for made in (
        gemm(1),
        exchange(1),
        exchange(2, ahead=False),
        exchange(1, 3),
        led(1),
        led(2),
        meeting(),
        meeting(2, around=True, cluster=2),
        handed(),
    ):
        assert cluster_judge.safe(made, 3, 200_000)


WRONG = {
    "expects the bytes of its own half": (
        changed(gemm(2), "roles", 0, "loop", 1, bytes=96), "tx_mismatch", "96 bytes expected, 128 delivered",
        "expect 128 bytes: load.loop[1]",
    ),
    "releases its own slot alone": (
        math(5, to=None), "deadlock", "load@0 waits for empty@0[0]", "arrive in all CTAs: math0.loop[5]"
    ),
    "counts no remote arrivals": (
        changed(gemm(2), "barriers", "empty", count=1), "race", "still writes", "count 2 arrivals: empty"
    ),
    "releases and counts its own slot alone": (
        changed(math(5, to=None), "barriers", "empty", count=1), "race", "still writes index", ""
    ),
    "the phase of the remote barrier": (
        math(5, ph=1), "ub", "meets phase 0, not 1", "use phase 0: math0.loop[5]"
    ),
    "a multicast to all of a larger cluster": (
        changed(grid(), "roles", 0, "loop", 2, multicast="all"), "tx_mismatch", "bytes expected", ""
    ),
    "a release before the mma is done": (math(4, n=1), "race", "still reads", "wait for all groups"),
    "a part that is copied without a fence": (
        changed(exchange(), "roles", 0, "loop", 2, op="wait", bar="sent", ph=-1), "race", "no proxy fence in between",
        "fence the proxies",
    ),
    "a part that is written while it is copied": (
        changed(exchange(), "roles", 0, "loop", 0, bar="got"), "race", "dsmem_copy still reads", ""
    ),
    "a part that all CTAs send to one": (
        changed(exchange(), "roles", 0, "loop", 4, to=0), "tx_mismatch", "64 bytes expected, 128 delivered", ""
    ),
    "a CTA that does not load": (
        changed(gemm(2), "roles", 0, ctas=[0]), "tx_mismatch", "128 bytes expected, 96 delivered", ""
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_clusters_are_refuted_with_the_cta(name: str) -> None:
    made, kind, what, repair = WRONG[name]
    found = verify(made)
    assert isinstance(found, Refuted)
    assert found.kind == kind
    assert what in found.witness["what"]
    assert "@" in found.role
    assert "@" in found.barrier + found.buffer
    assert any(repair in str(one) for one in found.repairs) or not repair
    assert all(isinstance(verify(one.document), Proved) for one in found.repairs)
    assert la.draw.svg(found).startswith("<svg")


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (changed(gemm(), "roles", 0, "loop", 3, multicast=[0, 2]), "load.loop[3].multicast\n  since  must be CTAs"),
        (changed(gemm(), "roles", 0, "loop", 3, multicast=[]), "must be distinct CTAs, at least one"),
        (math(5, to=[1, 1]), "must be distinct CTAs"),
        (math(5, to=[[0, 1]] * 3), "a list of CTAs for each of the 2"),
        (math(5, to=2), "must be CTAs of the cluster, 0 to 1, not 2"),
        (math(5, to=-1), "must be in [0, 16)"),
        (math(5, to=1.5), "must be an integer"),
        (math(0, to=1), "/roles/1/loop/0/to\n  since  is not for a wait: a barrier is waited for in its own CTA alone"),
        (math(5, op="cp_async_arrive"), "arrives in its own CTA alone"),
        (math(1, to=1), "keys must be among op, buf"),
        (changed(gemm(), cluster=0), "/cluster"),
        (changed(gemm(), cluster=17), "must be at most 16"),
        (changed(gemm(), "roles", 0, ctas=[2]), "ctas of load\n  since  must be in [0, 2), not 2"),
        (changed(gemm(), "roles", 0, ctas=[]), "/roles/0/ctas\n  since  must be at least one CTA"),
        (changed(meeting(), "roles", 0, warps=None), "must be given for write.loop[1], bar_sync"),
        (changed(meeting(), phase_reset_every=4), "not for counters that start again"),
        (changed(meeting(), "roles", 0, "loop", 1, guard={"from": 1}), "whose uses are counted"),
    ],
)  # fmt: skip
def test_what_ptx_forbids_and_what_names_nothing(made: Any, told: str) -> None:
    with pytest.raises(MalformedError) as caught:
        Pipeline.from_json(made)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (changed(meeting(), "roles", 0, "loop", 1, threads=96), "must state the same threads in all its ops"),
        (changed(handed(), "roles", 0, "loop", 0, threads=100), "a multiple of 32"),
        (changed(meeting(2), "roles", 0, loop=meeting()["roles"][0]["loop"]), "must be met equally often"),
        (changed(meeting(2), "roles", 0, "loop", 1, op="bar_arrive"), "use a number for each meeting"),
    ],
)
def test_meetings_that_cannot_be_numbered(made: Any, told: str) -> None:
    with pytest.raises(MalformedError, match="named barrier 1") as caught:
        verify(made)
    assert told in str(caught.value)


def threads(made: Any, count: int) -> Any:
    for role in made["roles"]:
        for each in [each for part in ("pre", "loop", "post") for each in role.get(part, []) if "id" in each]:
            each["threads"] = count
    return made


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (threads(meeting(), 192), "deadlock"),
        (threads(meeting(), 128), "ub"),
        (changed(meeting(), "roles", 0, loop=[op("write", buf="C")]), "race"),
        (changed(meeting(), "roles", 1, post=[op("bar_sync", id=1)]), "deadlock"),
        (changed(handed(), "roles", 1, pre=[]), "deadlock"),
        (changed(handed(), "roles", 1, "loop", 0, op="bar_arrive"), "race"),
    ],
)
def test_wrong_named_barriers(made: Any, kind: str) -> None:
    assert verify(made).kind == kind


def test_an_op_says_which_ctas_it_reaches() -> None:
    release = arrive("empty", to=[[1], [0]])
    value = Pipeline.from_json(changed(gemm(), "roles", 1, loop=[release, op("bar_sync", id=3, threads=64)], warps=2))
    assert list(map(str, value.roles[1].loop)) == ["arrive empty[k], CTA 1 | 0", "bar_sync 3, 64 threads"]
    assert str(value.roles[0].loop[3]) == "tma_load B[k], full[k], 32 bytes, CTA 0,1"
    assert "N >= 0, 2 CTAs" in str(value)
    assert "(2 warps)" in str(value)
    assert Op("arrive", bar="empty", n=1, to=((1,), (0,))) == value.roles[1].loop[0]


def test_ops_have_only_what_is_for_them() -> None:
    for wrong in ({"to": ((0,),)}, {"multicast": ((0,),)}, {"id": 1}, {"threads": 32}):
        with pytest.raises(MalformedError, match="is not for an op read"):
            Op("read", buf="A", **wrong)
    with pytest.raises(MalformedError, match="must be distinct CTAs"):
        Op("arrive", bar="full", n=1, to=((0, 0),))


def test_meetings_of_each_cta_are_its_own() -> None:
    one = expanded(Pipeline.from_json(meeting(2, cluster=2)))
    assert [(name, barrier.count) for name, barrier in one.barriers] == [
        ("bar 1.0@0", 160), ("bar 1.1@0", 160), ("bar 1.0@1", 160), ("bar 1.1@1", 160),
    ]  # fmt: skip
    assert expanded(one) is one


def sized(*roles: tuple[int, int], **more: Any) -> Pipeline:
    """A pipeline of roles with warps and registers that do nothing."""
    names = [Role(f"role{place}", warps=warps, registers=count) for place, (warps, count) in enumerate(roles)]
    return Pipeline(1, (), (), tuple(names), **more)


@pytest.mark.parametrize(
    ("made", "target", "told"),
    [
        (sized((4, 24), (8, 240)), "sm_90a", ""),
        (sized((4, 24), (4, 240), (4, 240)), "sm_90a", ""),
        (sized((1, 24), (3, 24), (8, 240)), "sm_90a", ""),
        (sized((4, 0), (8, 168)), "sm_90a", ""),
        (sized((4, 32), (8, 240)), "sm_90a", "65536 registers after setmaxnreg; 384 threads start with 168 each"),
        (sized((4, 0), (8, 240)), "sm_90a", "82944 registers after setmaxnreg"),
        (sized((4, 256)), "sm_90a", ""),
        (sized((16, 128), (16, 128)), "sm_90a", "131072 registers after setmaxnreg; 1024 threads start with 64 each"),
        (sized((16, 0), (17, 0)), "sm_90a", "1056 threads; a block of sm_90a has 1024"),
        (sized((4, 20)), "sm_90a", "20 registers of role0; setmaxnreg takes 24 to 256 in steps of 8"),
        (sized((4, 257)), "sm_90a", "257 registers of role0"),
        (sized((4, 28)), "sm_90a", "28 registers of role0"),
        (sized((1, 24), (8, 240)), "sm_90a", "warps 0 to 3 are no warpgroup that sets one number together"),
        (sized((4, 0), (2, 240)), "sm_90a", "warps 4 to 7 are no warpgroup"),
        (sized((4, 24), (0, 0)), "sm_90a", "role1 states no warps"),
        (sized((4, 24)), "sm_90", "sm_90 has no setmaxnreg"),
        (sized((4, 24)), "gfx942", "gfx942 has no setmaxnreg"),
        (sized(cluster=16), "sm_90a", "16 CTAs in a cluster; sm_90a has 8, portably"),
        (sized(cluster=2), "sm_80", "2 CTAs in a cluster; sm_80 has 1, portably"),
    ],
)  # fmt: skip
def test_resources(made: Pipeline, target: str, told: str) -> None:
    found = verify(made, target)
    if not told:
        assert isinstance(found, Proved)
        return
    assert found.kind == "infeasible"
    assert told in found.witness["what"]


def test_an_instruction_names_a_register_less_than_a_thread_may_own() -> None:
    def held(words: int) -> Pipeline:
        roles = (Role("math", pre=(Op("write", buf="R", idx_abs=0),), warps=4, registers=256),)
        return Pipeline(1, (), (("R", Buffer(1, words * 4 * 128, "register")),), roles)

    assert isinstance(verify(held(255)), Proved)
    assert verify(held(256)).witness["what"] == "256 registers of each thread of math for its buffers; it has 255"


def test_tensor_memory() -> None:
    held = Pipeline(2, (), (("acc", Buffer(2, 1 << 17, "tensor")),), (Role("math"),))
    assert isinstance(verify(held, "sm_100a"), Proved)
    more = verify(replace(held, buffers=(("acc", Buffer(2, (1 << 17) + 1, "tensor")),)), "sm_100a")
    assert more.witness["what"] == "262146 bytes of tensor memory; an SM of sm_100a has 262144"


def test_shared_memory_and_threads_are_those_of_one_cta() -> None:
    assert isinstance(verify(gemm(3, 2, tile=32768)), Proved)
    assert verify(gemm(4, 2, tile=32768)).witness["what"].startswith("262208 bytes of shared memory")
    halves = [Role("a", warps=20, ctas=(0,)), Role("b", warps=20, ctas=(1,))]
    assert isinstance(verify(Pipeline(1, (), (), tuple(halves), cluster=2)), Proved)
    assert Pipeline(1, (), (), tuple(halves), cluster=2).threads == 640
    assert verify(changed(handed(), "roles", 1, "pre", 0, id=16)).witness["what"].startswith("named barrier 16;")

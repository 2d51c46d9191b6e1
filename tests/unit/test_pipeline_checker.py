"""Certificates of pipelines: those of proved ones are confirmed, changes of document or evidence are refused."""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judges.certificates import sealed, told

from layoutalg.cli import main
from layoutalg.ground.errors import MalformedError, RepresentabilityError
from layoutalg.proofs import checker
from layoutalg.proofs.checker import base, pipelines
from layoutalg.proofs.pipeline import Pipeline, verify
from layoutalg.proofs.pipeline.certificate import certificate as certificate_of
from layoutalg.proofs.pipeline.decision import Proof, Proved, prove
from layoutalg.proofs.pipeline.machine import Machine
from layoutalg.proofs.pipeline.ops import GROUPED, GROUPS

Document = dict[str, Any]


def op(kind: str, **entries: object) -> Document:
    return {"op": kind, **entries}


def wait(bar: str, **entries: object) -> Document:
    return op("wait", bar=bar, **entries)


def copied(**entries: object) -> list[Document]:
    """A copy that fills a slot of A."""
    return [op("arrive_tx", bar="full", bytes=64, **entries), op("tma_load", buf="A", bar="full", **entries)]


def multiplied(**entries: object) -> list[Document]:
    """An asynchronous read of a slot of A, finished."""
    return [op("mma", buf="A", **entries), op("mma_commit"), op("mma_wait", n=0)]


FENCED_READ = [op("read", buf="A"), op("proxy_fence")]
LOAD = {"name": "load", "loop": [wait("empty", ph=-1), *copied()]}


def ring(stages: int, *roles: Document, **more: Any) -> Document:
    """Roles around a buffer A with a full and an empty barrier."""
    barriers = {"full": {"count": 1}, "empty": {"count": more.pop("consumers", 1)}, **more.pop("barriers", {})}
    buffers = {"A": {"bytes": 64}, **more.pop("buffers", {})}
    head = {"schema": "layoutalg/pipeline/1", "stages": stages, "barriers": barriers, "buffers": buffers}
    return {**head, "roles": list(roles), **more}


def consumer(*reads: Document, name: str = "use", **entries: object) -> Document:
    return {"name": name, "loop": [wait("full"), *reads, op("arrive", bar="empty", **entries)]}


def consumers(stages: int, count: int) -> Document:
    return ring(stages, LOAD, *(consumer(*multiplied(), name=f"use{i}") for i in range(count)), consumers=count)


WHOLE = {**LOAD, "pre": [op("arrive_tx", bar="q", bytes=8), op("tma_load", buf="Q", bar="q", bytes=8)]}
STORE = [op("write", buf="C"), op("proxy_fence"), op("tma_store", buf="C"), op("bulk_commit")]
GUARD = {"guard": {"until": 2}}
TENSOR = {"slots": 1, "space": "tensor"}
REGISTERS = {"slots": 1, "space": "register"}
DOCUMENTS = {
    **{f"{count} consumers, {stages} stages": consumers(stages, count) for stages, count in
       ((1, 1), (2, 1), (3, 2), (4, 3), (8, 3))},
    "release of the slot before": ring(
        4, LOAD,
        {"name": "use",
         "loop": [wait("full"), op("mma", buf="A"), op("mma_commit"), op("mma_wait", n=1),
                  op("arrive", bar="empty", off=-1)],
         "post": [op("mma_wait", n=0), op("arrive", bar="empty", off=-1)]},
    ),
    "first copies before the loop": ring(
        3,
        {"name": "both", "pre": [*copied(idx_abs=0), *copied(idx_abs=1)],
         "loop": [wait("full"), *multiplied(), *copied(off=2, **GUARD)]},
        trips="N >= 2",
    ),
    "generic writes": ring(
        2, {"name": "load", "loop": [wait("empty", ph=-1), op("write", buf="A"), op("proxy_fence"),
                                     op("arrive", bar="full")]},
        consumer(*multiplied()),
    ),
    "generic reads": ring(2, LOAD, consumer(*FENCED_READ)),
    "generic reads in practice": ring(2, LOAD, consumer(op("read", buf="A"))),
    "stores": ring(
        2, LOAD,
        {"name": "use", "loop": [wait("full"), *FENCED_READ, op("arrive", bar="empty"), op("bulk_wait", n=1), *STORE],
         "post": [op("bulk_wait", n=0)]},
        buffers={"C": {}},
    ),
    "arrivals before the loop": ring(
        2, {"name": "load", "loop": [wait("empty"), *copied()]},
        {**consumer(*FENCED_READ, off=2), "pre": [op("arrive", bar="empty", idx_abs=i) for i in (0, 1)]},
    ),
    "a copy for all iterations": ring(
        2,
        WHOLE,
        {**consumer(*multiplied()), "pre": [wait("q"), op("read", buf="Q")]},
        barriers={"q": {"count": 1, "slots": 1}}, buffers={"Q": {"slots": 1}},
    ),
    "flipped waits, counters that start again": ring(
        2, {"name": "load", "loop": [wait("empty", flip=True), *copied()]}, consumer(*FENCED_READ),
        phase_reset_every=8,
    ),
    "expected bytes": ring(
        2, {"name": "load", "loop": [wait("empty", ph=-1), op("expect", bar="full", bytes=96), *copied()[1:],
                                     op("tma_load", buf="A", bar="full", bytes=32), op("arrive", bar="full", n=2)]},
        consumer(*multiplied()), barriers={"full": {"count": 2}},
    ),
    "arrivals after asynchronous reads": ring(
        3, LOAD, {"name": "use", "loop": [wait("full"), op("mma", buf="A"), op("mma_arrive", bar="empty")]},
    ),
    "copies by threads, which arrive": ring(
        2, {"name": "load", "loop": [wait("empty", ph=-1), op("cp_async", buf="A"), op("cp_async_arrive", bar="full")]},
        consumer(op("read", buf="A")),
    ),
    "copies by threads, which wait": ring(
        3,
        {"name": "load",
         "loop": [wait("empty", ph=-1), op("cp_async", buf="A"), op("cp_async_commit"), op("cp_async_wait", n=1),
                  op("proxy_fence"), op("arrive", bar="full", off=-1)],
         "post": [op("cp_async_wait", n=0), op("proxy_fence"), op("arrive", bar="full", off=-1)]},
        consumer(*multiplied()),
    ),
    "a copy that all iterations read": ring(
        2, WHOLE,
        {"name": "use", "pre": [wait("q")],
         "loop": [wait("full"), op("mma", buf="Q", idx_abs=0), *multiplied(), op("arrive", bar="empty")],
         "post": [op("read", buf="Q", idx_abs=0)]},
        barriers={"q": {"count": 1, "slots": 1}}, buffers={"Q": {"slots": 1}},
    ),
    "a buffer that is filled again after the loop": ring(
        2, WHOLE,
        {"name": "use", "pre": [wait("q")],
         "loop": [wait("full"), op("mma", buf="Q", idx_abs=0), *multiplied(), op("arrive", bar="empty")],
         "post": [op("write", buf="Q", idx_abs=1), op("read", buf="Q", idx_abs=1)]},
        barriers={"q": {"count": 1, "slots": 1}}, buffers={"Q": {"slots": 1}},
    ),
    "a result after the loop": ring(
        2, LOAD,
        {**consumer(*multiplied()), "post": [op("write", buf="C", idx_abs=0), op("arrive", bar="c", idx_abs=0)]},
        {"name": "end",
         "post": [wait("c", idx_abs=0), op("read", buf="C", idx_abs=0), op("arrive", bar="d", idx_abs=0)]},
        {"name": "last", "post": [wait("d", idx_abs=0)]},
        barriers={"c": {"count": 1, "slots": 1}, "d": {"count": 1}}, buffers={"C": {"slots": 1}},
    ),
    "fewer trips": ring(
        2, LOAD,
        {**consumer(*multiplied()), "trip": "N-1", "post": consumer(*multiplied())["loop"]},
        trips="N >= 1",
    ),
    "groups that end late": ring(
        4, LOAD,
        {"name": "use",
         "pre": [op("mma", buf="B"), op("mma_commit"), op("mma", buf="B"), op("mma_commit")],
         "loop": [wait("full"), op("mma", buf="A"), op("mma_commit"), op("mma_wait", n=2), op("mma", buf="B"),
                  op("mma_commit"), op("arrive", bar="empty", off=-1)],
         "post": [op("mma_wait", n=3), op("mma_commit"), op("mma_wait", n=1), op("arrive", bar="empty", off=-1)]},
        buffers={"B": {}},
    ),
    "an accumulator of all iterations": ring(
        3, LOAD,
        {"name": "use", "pre": [op("write", buf="T", idx_abs=0)],
         "loop": [wait("full"), op("mma", buf="A"), op("mma_write", buf="T", idx_abs=0), op("mma_arrive", bar="empty")],
         "post": [op("mma_arrive", bar="done", idx_abs=0)]},
        {"name": "end", "pre": [wait("done", idx_abs=0), op("read", buf="T", idx_abs=0)]},
        barriers={"done": {"count": 1, "slots": 1}}, buffers={"T": TENSOR},
    ),
    "an accumulator that its own role reads": ring(
        2, LOAD,
        {"name": "use", "pre": [op("write", buf="T", idx_abs=0)],
         "loop": [wait("full"), op("mma", buf="A"), op("mma_write", buf="T", idx_abs=0, guard={"until": 1}),
                  op("mma_arrive", bar="empty")],
         "post": [wait("empty", off=-1), op("read", buf="T", idx_abs=0)]},
        buffers={"T": TENSOR}, trips="N >= 1",
    ),
    "an accumulator that ends in groups": ring(
        2, LOAD,
        {"name": "use",
         "loop": [wait("full"), op("mma", buf="A"), op("mma_commit"), op("mma_wait", n=0), op("arrive", bar="empty"),
                  op("mma_write", buf="T", idx_abs=0), op("mma_commit")],
         "post": [op("mma_commit"), op("mma_wait", n=1), op("read", buf="T", idx_abs=0)]},
        buffers={"T": TENSOR}, trips="N >= 1",
    ),
    "an accumulator that the next iteration covers": ring(
        2, LOAD,
        {"name": "use",
         "loop": [wait("full"), op("mma_arrive", bar="empty", off=-1), op("mma_write", buf="T", idx_abs=0),
                  op("mma", buf="A")],
         "post": [op("mma_arrive", bar="empty", off=-1), wait("empty", off=-1), op("read", buf="T", idx_abs=0)]},
        buffers={"T": TENSOR}, trips="N >= 1",
    ),
    "an accumulator of the first iterations": ring(
        2, LOAD,
        {"name": "use",
         "loop": [wait("full"), op("mma_arrive", bar="empty"), op("mma_write", buf="T", idx_abs=0,
                                                                  guard={"until": 1})],
         "post": [wait("empty", off=-1), op("read", buf="T", idx_abs=0)]},
        buffers={"T": TENSOR}, trips="N >= 2",
    ),
    "accumulators of two roles": ring(
        2,
        {"name": "mma", "loop": [wait("empty", ph=-1), op("mma_write", buf="T"), op("mma_arrive", bar="half")]},
        {"name": "more", "loop": [wait("half"), op("mma_write", buf="T"), op("mma_arrive", bar="full")]},
        consumer(op("read", buf="T")), barriers={"half": {"count": 1}}, buffers={"T": {"space": "tensor"}},
    ),
    "accumulators in a ring": ring(
        2,
        {"name": "mma",
         "loop": [wait("empty", ph=-1), op("write", buf="T"), op("mma_write", buf="T"), op("mma_write", buf="T"),
                  op("mma_arrive", bar="full")]},
        consumer(op("read", buf="T")), buffers={"T": {"space": "tensor"}},
    ),
    "sums and weights in registers": ring(
        2, LOAD,
        {"name": "use", "pre": [op("write", buf="S", idx_abs=0)],
         "loop": [wait("full"), op("write", buf="P"), op("mma", buf="P"), op("mma", buf="A"),
                  op("mma_write", buf="S", idx_abs=0), op("mma_commit"), op("mma_wait", n=1),
                  op("arrive", bar="empty", off=-1)],
         "post": [op("mma_wait"), op("arrive", bar="empty", off=-1), op("read", buf="S", idx_abs=0)]},
        buffers={"S": REGISTERS, "P": REGISTERS | {"slots": 2}},
    ),
    "arrivals of two roles that nobody waits for": ring(
        1, {"name": "one", "loop": [op("arrive", bar="a"), op("arrive", bar="b"), wait("c")]},
        {"name": "two", "loop": [wait("b"), op("arrive", bar="a"), op("arrive", bar="c")]},
        barriers={"a": {"count": 2}, "b": {"count": 1}, "c": {"count": 1}},
    ),
    "a fence in the loop between what is before and behind it": ring(
        1, {"name": "all", "pre": [op("write", buf="C", idx_abs=0)], "loop": [op("proxy_fence")],
            "post": [op("tma_store", buf="C", idx_abs=0), op("bulk_commit"), op("bulk_wait", n=0)]},
        buffers={"C": {"bytes": 64}}, trips="N >= 1",
    ),
    "rounds of counters that start again": ring(
        2, LOAD, consumer(*multiplied(), op("read", buf="C", idx_abs=0)), buffers={"C": {"slots": 3}},
        phase_reset_every=4,
    ),
    "other trips": ring(
        2, {"name": "load", "loop": [wait("empty", ph=-1), *copied()], "trip": "N+1"},
        {**consumer(*multiplied()), "post": [wait("full"), *multiplied()]},
    ),
}  # fmt: skip
POLICIES = {"generic reads in practice": "practice"}
NAMES = list(DOCUMENTS)


def certificate(name: str) -> Document:
    policy = POLICIES.get(name, "strict")
    verdict = verify(DOCUMENTS[name], policy=policy)
    assert isinstance(verdict, Proved), verdict
    return verdict.to_certificate().to_json()


CERTIFICATES: dict[str, Document] = {}


def stored(name: str) -> tuple[Document, Document]:
    """The statement and the evidence of a certificate, to be changed."""
    if name not in CERTIFICATES:
        CERTIFICATES[name] = certificate(name)
    made = copy.deepcopy(CERTIFICATES[name])
    return made["statement"], made["evidence"]


@pytest.mark.parametrize("name", NAMES)
def test_a_proved_pipeline_is_confirmed(name: str) -> None:
    statement, evidence = stored(name)
    code, sentence = told("pipeline", statement, evidence)
    trips = statement["pipeline"]["trips"]
    assert (code, sentence) == (0, f"safe for every {trips}, by {len(evidence['facts'])} facts")


def test_the_command_line_confirms_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pipeline.json"
    path.write_text(json.dumps(certificate(NAMES[0])), encoding="utf-8")
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out.endswith("pipeline.json: safe for every N >= 0, by 10 facts\n")


def test_a_verdict_that_nobody_proved_has_no_certificate() -> None:
    verdict = verify(DOCUMENTS[NAMES[0]])
    assert verdict == Proved(verdict.engine, verdict.certificate)
    with pytest.raises(MalformedError, match="LA970"):
        Proved(verdict.engine, verdict.certificate).to_certificate()


# --- changes of the evidence ------------------------------------------------------------------------------------------
def moves(event: list[Any]) -> bool:
    """Whether an event happens in each iteration."""
    return bool(event[1] == "loop" and event[3] != "last")


@pytest.mark.parametrize("name", NAMES)
def test_no_fact_can_be_left_out_or_weakened(name: str) -> None:
    statement, evidence = stored(name)
    for place, fact in enumerate(evidence["facts"]):
        weaker = [None, fact | {"least": fact["least"] + 1}, fact | {"most": fact["least"] + 5}]
        weaker += [fact | {"low": fact["low"] + 1}, fact | {"high": fact["high"] - 1}, fact | {"path": []}]
        (first, begin), *_, (last_event, end) = fact["path"]
        if moves(evidence["events"][last_event]):
            weaker.append(fact | {"path": [*fact["path"][:-1], [last_event, end + 1]]})
        if moves(evidence["events"][first]):
            weaker.append(fact | {"path": [[first, begin - 1], *fact["path"][1:]]})
        if fact.get("most") == fact["least"]:
            weaker[2] = None
        for other in weaker:
            facts = [*evidence["facts"][:place], *([other] if other else []), *evidence["facts"][place + 1 :]]
            assert told("pipeline", statement, evidence | {"facts": facts})[0] == 1, (place, other)


@pytest.mark.parametrize("name", NAMES)
def test_facts_about_other_distances_do_not_help_between_right_ones(name: str) -> None:
    """An event is shown to come one iteration too late, or to follow one that is too early, in all but the ends."""
    statement, evidence = stored(name)
    for place, fact in enumerate(evidence["facts"]):
        rest = [*evidence["facts"][:place], *evidence["facts"][place + 1 :]]
        path = fact["path"]
        shifted = [[*path[:-1], [path[-1][0], path[-1][1] + 1]], [[path[0][0], path[0][1] - 1], *path[1:]]]
        last = fact["high"]
        if fact["moves"] == 1:
            ends = [fact | {"high": fact["low"], "moves": 0}, fact | {"low": last, "moves": 2}]
            more = {"low": fact["low"] + 1, "high": last - 1, "least": fact["least"] + 2}
        else:
            ends, more = [fact | {"most": fact["least"]}], {"least": fact["least"] + 1}
        for step, other in zip((-1, 0), shifted, strict=True):
            if moves(evidence["events"][path[step][0]]) and "most" not in fact:
                facts = [*rest, *ends, fact | more | {"path": other}]
                assert told("pipeline", statement, evidence | {"facts": facts})[0] == 1, (fact, other)


@pytest.mark.parametrize("name", NAMES)
def test_times_grow(name: str) -> None:
    """Events of loops have links on both sides; nothing waits for the end of an asynchronous read."""
    statement, evidence = stored(name)
    roles = {role["name"]: role for role in statement["pipeline"]["roles"]}
    for place, (owner, part, number, what, time, late) in enumerate(evidence["events"]):
        kind = roles[owner][part][number]["op"] if part != "phase" else part
        if part == "loop" and not (what in ("done", "last") and kind in GROUPED):
            for wrong in ([time - 10**6, late], [time + 10**6, late], [time, late + 1]):
                events = copy.deepcopy(evidence["events"])
                events[place][4:] = wrong
                code, sentence = told("pipeline", statement, evidence | {"events": events})
                assert (code, sentence.partition(",")[0]) == (1, "times do not grow"), (owner, part, number, what)
    events = [[*event[:5], 0] for event in evidence["events"]]
    if events != evidence["events"]:  # at least those after loops are late
        assert told("pipeline", statement, evidence | {"events": events})[1].startswith("times do not grow")
    for changed in ({"pace": 0}, {"events": evidence["events"][1:]}, {"completed": []}, {"turns": [1, 1, 1]}):
        assert told("pipeline", statement, evidence | changed)[0] == 1


@pytest.mark.parametrize("name", NAMES)
def test_other_phases_do_not_complete(name: str) -> None:
    statement, evidence = stored(name)
    for place, (bar, end, moves) in enumerate(evidence["completed"]):
        for wrong in ([bar, end + 1, moves], [bar, end - (end > 0 or moves), 1 - moves], ["other", end, moves]):
            completed = [*evidence["completed"][:place], wrong, *evidence["completed"][place + 1 :]]
            assert told("pipeline", statement, evidence | {"completed": completed})[0] == 1


class Runs:
    """When the events of a pipeline happen in some random runs for one N."""

    def __init__(self, pipeline: Pipeline, trips: int, count: int = 3) -> None:
        self.machine = Machine(pipeline, trips, "practice")
        self.of = {id(op): (role.name, part, place) for role in pipeline.roles for part, place, op in role.ops()}
        self.untimed = {self.of[id(op)] for role in pipeline.roles for *_, op in role.ops() if "commit" in op.op}
        self.rng = random.Random(trips)
        self.times = [self.run() for _ in range(count)]

    def run(self) -> dict[tuple[object, ...], tuple[float, float]]:
        """Return the events with their coordinate: from when to when they may have happened."""
        machine, state, times = self.machine, self.machine.start(), {}
        ready = dict.fromkeys(range(len(machine.tasks)), 0.0)
        step = 0.0
        while events := list(machine.events(state)):
            step += 1
            actor, task = self.rng.choice(events)
            name, k = self.of[id(task.op)], task.k
            k = k if name[1] == "loop" else 0
            before = state[1]
            following, _ = machine.after(state, (actor, task))
            assert following is not None
            state = following
            if actor < 0:
                times[*name, "done", k] = (step, step)
            else:
                begun = ready[actor] if task.op.op == "wait" else step
                times[*name, "start", k] = (begun, begun)
                times.setdefault((*name, "done", k), (step, step if task.op.op == "wait" else 10.0**9))
                ready[actor] = step + 0.5
            for role, kinds in enumerate(machine.running):
                for kind, ended in zip(GROUPS, state[3][role], strict=True):
                    for access in kinds[kind][:ended]:
                        name, k = self.of[id(access.op)], access.k * (self.of[id(access.op)][1] == "loop")
                        if times[*name, "done", k][1] == 10.0**9:
                            times[*name, "done", k] = (step - 0.25, step - 0.25)
            for place, (old, new) in enumerate(zip(before, state[1], strict=True)):
                if old[0] != new[0]:
                    bar, slot = machine.barriers[place]
                    slots = sum(other == bar for other, _ in machine.barriers)
                    times[bar, "phase", 0, "done", slot + slots * old[0]] = (step + 0.25, step + 0.25)
        for name in self.of.values():  # what never runs is done before all else
            ends = [end for (*event, what, _), end in times.items() if (tuple(event), what) == (name, "done")]
            times[*name, "last", 0] = max(ends, default=(-1.0, -1.0))
        return times


def instances(fact: Document, trips: int) -> Iterator[int]:
    if fact["least"] <= trips <= fact.get("most", trips):
        low = fact["low"] + trips * (fact["moves"] == 2)
        yield from range(low, fact["high"] + trips * (fact["moves"] > 0) + 1)


def is_true(fact: Document, events: list[list[Any]], runs: dict[int, Runs]) -> bool:
    """Whether the events of a fact happen in this order in all runs."""
    for trips, some in runs.items():
        for k in instances(fact, trips):
            for times in some.times:
                path = []
                for number, far in fact["path"]:
                    owner, part, place, what = events[number][:4]
                    if (owner, part, place) not in some.untimed:
                        once = part in ("pre", "post") or what == "last"
                        path.append(times.get((owner, part, place, what, 0 if once else k + far)))
                if None in path or any(one[1] >= other[0] for one, other in itertools.pairwise(path)):  # type: ignore[index]
                    return False
    return True


def altered(fact: Document, events: int) -> Iterator[Document]:
    """A fact with one change."""
    for entry, most in (("least", 99), ("low", 99), ("high", 99), ("moves", 2)):
        yield from [
            fact | {entry: to} for to in (fact[entry] - 1, fact[entry] + 1) if entry != "moves" or 0 <= to <= most
        ]
    yield from [fact | {"most": fact["least"] + more} for more in range(3)]
    for step, (event, far) in enumerate(fact["path"]):
        before, after = fact["path"][:step], fact["path"][step + 1 :]
        yield fact | {"path": before + after}
        others = [(other, far) for other in range(events)] + [(event, far + more) for more in (-2, -1, 1, 2)]
        yield from [fact | {"path": [*before, [*other], *after]} for other in others]


@pytest.mark.parametrize("name", NAMES)
def test_other_facts_are_accepted_only_if_they_are_true(name: str) -> None:
    """Each fact of the evidence, with one thing changed: what is still accepted holds in runs."""
    statement, evidence = stored(name)
    pipeline = Pipeline.from_json(statement["pipeline"])
    runs = {trips: Runs(pipeline, trips) for trips in range(pipeline.least, pipeline.least + 6)}
    document = base.read(statement["pipeline"], pipelines.PIPELINE, "it")
    made = pipelines.Pipeline(document, evidence["turns"], evidence["completed"])
    events = [tuple(event[:4]) for event in evidence["events"]]
    tried = accepted = 0
    for fact in evidence["facts"]:
        assert is_true(fact, evidence["events"], runs)
        entries = base.read(fact, pipelines.EVIDENCE["facts"][0], "fact")
        for other in altered(fact, len(events)):
            tried += 1
            try:
                if other["path"] is fact["path"]:
                    made.learn(base.read(other, pipelines.EVIDENCE["facts"][0], "fact"), events)
                else:  # only its path was changed, to one of the right form
                    entries.path = other["path"]
                    made.learn(entries, events)
            except base.Stop as stop:
                assert stop.args[0] == 1
            else:
                accepted += 1
                assert is_true(other, evidence["events"], runs), other
    # around a loop, more of the changed facts are true as well
    assert accepted < tried / (2 if name.startswith("a fence in the loop") else 4)


@given(
    st.tuples(*[st.integers(0, 4)] * 2, *[st.integers(-3, 4)] * 2, *[st.integers(0, 2)] * 1, st.booleans()),
    st.tuples(st.integers(0, 3), *[st.tuples(st.integers(-4, 6), st.integers(0, 1))] * 2),
    st.integers(-3, 3),
)
def test_a_fact_lies_in_a_span_if_all_its_members_do(drawn: tuple[Any, ...], span: tuple[Any, ...], far: int) -> None:
    least, more, low, high, moves, ends = drawn
    form = {"least": least, "low": low, "high": high, "moves": moves, "path": []}
    entries = base.read(form | ({"most": least + more} if ends else {}), pipelines.EVIDENCE["facts"][0], "fact")
    fact = pipelines.Fact(entries, [(None, None, 0)])
    sizes = range(least, least + more + 1 if ends else 40)
    members = [(size, k) for size in sizes for k in instances(form, size)]
    if fact.lies(span, far):
        assert all(pipelines.inside(span, size, k + far) for size, k in members)
    elif all(size in [size for size, _ in members] for size in sizes):
        assert least < span[0] or not all(pipelines.inside(span, size, k + far) for size, k in members)


@pytest.mark.parametrize("name", NAMES)
def test_two_events_follow_each_other_only_if_they_do_in_runs(name: str) -> None:
    statement, evidence = stored(name)
    pipeline = Pipeline.from_json(statement["pipeline"])
    least = pipeline.least + 5
    runs = {trips: Runs(pipeline, trips) for trips in (pipeline.least, least, least + 2)}
    document = base.read(statement["pipeline"], pipelines.PIPELINE, "it")
    made = pipelines.Pipeline(document, evidence["turns"], evidence["completed"])
    events = [tuple(event[:4]) for event in evidence["events"]]
    frames = [{"least": least, "low": k, "high": k, "moves": moves} for k, moves in ((0, 0), (1, 0), (0, 2), (-2, 2))]
    frames.append({"least": least, "low": 2, "high": -3, "moves": 1})
    frames.append({"least": pipeline.least, "most": pipeline.least, "low": 0, "high": 0, "moves": 0})
    read = [base.read(frame | {"path": []}, pipelines.EVIDENCE["facts"][0], "fact") for frame in frames]
    accepted = 0
    for one, other in itertools.product(range(len(events)), repeat=2):
        for far, (frame, entries) in itertools.product(range(-2, 4), zip(frames, read, strict=True)):
            entries.path = [[one, 0], [other, far]]
            with contextlib.suppress(base.Stop):
                made.learn(entries, events)
                accepted += 1
                fact = frame | {"path": entries.path}
                assert is_true(fact, evidence["events"], runs), (events[one], events[other], fact)
    assert accepted > 50


SPAN = st.tuples(st.integers(0, 3), *[st.tuples(st.integers(-3, 5), st.integers(0, 1))] * 2)


@given(st.lists(SPAN, min_size=1, max_size=4), st.integers(0, 3))
def test_the_cases_that_are_looked_at_are_all(spans: list[Any], least: int) -> None:
    """Every N with every number is in the same spans as some of those."""

    def pattern(size: int, x: int) -> tuple[bool, ...]:
        return tuple(pipelines.inside(span, size, x) for span in spans)

    seen = {pattern(size, x) for size, numbers in pipelines.cases(least, spans) for x in numbers}
    every = {pattern(size, x) for size in range(least, 20) for x in range(-5, 26)}
    assert every - {(False,) * len(spans)} <= seen


def test_an_op_after_the_loop_may_be_left_out() -> None:
    statement, _ = stored("release of the slot before")
    made = placed(statement["pipeline"])
    events = [("use", "post", place, "start") for place in (0, 1)]
    for least, said in ((0, 1), (1, 0)):
        given_fact = {"least": least, "low": 0, "high": 0, "moves": 0, "path": [[0, 0], [1, 0]]}
        entries = base.read(given_fact, pipelines.EVIDENCE["facts"][0], "fact")
        if said:
            with pytest.raises(base.Stop, match="an event of a path is not always there"):
                made.learn(entries, events)
        else:
            made.learn(entries, events)


@pytest.mark.parametrize(
    ("entries", "barrier", "fact"),
    [
        (op("arrive", bar="last"), {"count": 2}, "the phase before never completes"),
        (op("arrive", bar="last"), {"count": 1}, "the phases that complete are others"),
        (wait("last", ph=-1), {"count": 1}, "a wait is for a phase that never completes"),
        (wait("last", off=-3), {"count": 1}, "a wait is for a phase that never completes"),
        (op("arrive", bar="last", guard={"from": 2}), {"count": 2}, "the phase before never completes"),
    ],
)
def test_what_iterations_add_to_a_phase_that_never_completes(entries: Document, barrier: Any, fact: str) -> None:
    document = ring(2, {"name": "one", "loop": [entries]}, barriers={"last": barrier})
    with pytest.raises(base.Stop, match=fact):
        placed(document).counted("last")


# --- changes of the document ------------------------------------------------------------------------------------------
def changes(document: Document) -> Iterator[tuple[str, Document]]:
    """The document with one change."""

    def changed(where: str, *path: Any, to: object) -> tuple[str, Document]:
        other = copy.deepcopy(document)
        inner = other
        for name in path[:-1]:
            inner = inner[name]
        if to is None:
            del inner[path[-1]]
        else:
            inner[path[-1]] = to
        return f"{where} {path} to {to}", other

    for name, barrier in document["barriers"].items():
        yield changed("count", "barriers", name, "count", to=barrier["count"] + 1)
    for ring_of in ("barriers", "buffers"):
        for name in document[ring_of]:
            for slots in (1, 2, 5):
                yield changed("slots", ring_of, name, "slots", to=slots)
    yield changed("trips", "trips", to="N >= 0")
    yield changed("again", "phase_reset_every", to=6)
    for number, role in enumerate(document["roles"]):
        for trip in ("N-1", "N", "N+1"):
            yield changed("trip", "roles", number, "trip", to=trip)
        for part in ("pre", "loop", "post"):
            for place, entries in enumerate(role.get(part, ())):
                at = ("roles", number, part, place)
                yield changed("left out", *at, to=None)
                yield changed("moved", *at[:-1], to=[*role[part][:place], *role[part][place + 1 :], entries])
                for entry in ("off", "ph", "n", "bytes", "idx_abs"):
                    known = {"bar", "off", "ph", "idx_abs"} if "bar" in entries else {"off"} if "buf" in entries else ()
                    if entry in entries or (entry in known and entry != "idx_abs"):
                        for far in (-1, 1):
                            yield changed(entry, *at, entry, to=entries.get(entry, 0) + far)
                if entries["op"] == "wait":
                    yield changed("flip", *at, "flip", to=not entries.get("flip", False))
                if part == "loop":
                    for guard in ({"from": 1}, {"until": 1}):
                        yield changed("guard", *at, "guard", to=guard)
                for kind in ("read", "mma", "write", "tma_store"):
                    if entries["op"] in ("read", "mma", "write", "tma_store") and entries["op"] != kind:
                        yield changed("kind", *at, "op", to=kind)


def placed(document: Document) -> Any:
    """A document as the checker places it, or ``Stop``."""
    flips = [
        entries.get("flip") for role in document["roles"] for part in pipelines.PARTS for entries in role.get(part, ())
    ]
    completed = [[bar, 0, 0] for bar in document["barriers"]]
    return pipelines.Pipeline(base.read(document, pipelines.PIPELINE, "it"), [1] * flips.count(True), completed)


def named_by_the_machine(pipeline: Pipeline, trips: int) -> set[tuple[object, ...]]:
    """The numbers that each op names for one N."""
    machine, found = Machine(pipeline, trips, "strict"), set()
    for role, tasks in zip(pipeline.roles, machine.tasks, strict=True):
        places = {id(entries): (role.name, part, place) for part, place, entries in role.ops()}
        for task in tasks:
            if task.bar >= 0:
                bar, slot = machine.barriers[task.bar]
                found.add((*places[id(task.op)], bar, slot + pipeline.rings[bar] * (task.phase + task.op.flip)))
            if task.buf >= 0:
                found.add((*places[id(task.op)], task.op.buf, task.index))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_ops_name_the_slots_that_they_name_in_the_machine(name: str) -> None:
    document = Pipeline.from_json(DOCUMENTS[name] | {"trips": "N >= 2"}).to_json()
    document.pop("phase_reset_every", None)
    placing = ("off", "ph ", "trip ", "guard", "idx_abs", "slots", "flip")
    for other in [document, *(other for what, other in changes(document) if what.startswith(placing))]:
        try:
            made = placed(other)
        except base.Stop as stop:
            assert stop.args[0] == 2, stop
            continue
        for trips in range(made.least, made.least + 4):
            mine = set()
            for name_of_ring, uses in made.uses.items():
                for node in uses:
                    numbers = range(*pipelines.within([node.numbers[name_of_ring][1]], trips))
                    mine |= {(node.owner, node.part, node.place, name_of_ring, number) for number in numbers}
            assert mine == named_by_the_machine(Pipeline.from_json(other), trips), (other, trips)


@pytest.mark.parametrize("name", NAMES)
def test_another_document_is_accepted_only_if_it_is_proved_too(name: str) -> None:
    statement, evidence = stored(name)
    policy, tried, same = statement["policy"], 0, statement["pipeline"]
    for what, document in changes(same):
        code, _ = told("pipeline", {"pipeline": document, "policy": policy}, evidence)
        tried += 1
        if code == 0 and document != same:
            assert isinstance(prove(Pipeline.from_json(document), policy), Proof), what
    assert tried > 40


def test_generic_reads_need_a_fence_when_the_policy_is_strict() -> None:
    statement, evidence = stored("generic reads in practice")
    code, sentence = told("pipeline", statement | {"policy": "strict"}, evidence)
    assert (code, sentence.partition(":")[0]) == (1, "a write may come before a read ends")


@settings(max_examples=200)
@given(st.data())
def test_broken_certificates_end_with_a_verdict(data: st.DataObject) -> None:
    """Any value in any place: a sentence, and no proof of another statement."""
    statement, evidence = stored(data.draw(st.sampled_from(NAMES)))
    whole: Any = {"statement": statement, "evidence": evidence}
    inner: Any = whole
    while True:
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        key = data.draw(st.sampled_from(keys))
        if not (isinstance(inner[key], (dict, list)) and inner[key] and data.draw(st.integers(0, 5))):
            break
        inner = inner[key]
    values = st.sampled_from([None, True, -1, 0, 1, 2**70, -(2**70), "", "x", "full", [], {}, [[0, 0]]])
    inner[key] = data.draw(values)
    code, sentence = told("pipeline", whole["statement"], whole["evidence"])
    assert code in (1, 2) or (
        code == 0 and isinstance(prove(Pipeline.from_json(whole["statement"]["pipeline"]), "practice"), Proof)
    )
    assert sentence


def test_roles_that_wait_for_the_end_of_each_other() -> None:
    """Whatever their times, if one goes on after the loop of the other, which goes on after the first."""
    document = ring(
        1,
        {
            "name": "first",
            "loop": [wait("full"), op("arrive", bar="empty")],
            "post": [op("arrive", bar="c", idx_abs=0)],
        },
        {"name": "other", "pre": [wait("c")], "loop": [op("arrive", bar="full"), wait("full"), wait("empty")]},
        barriers={"c": {"count": 1}},
    )
    found = prove(Pipeline.from_json(document), "strict")
    if isinstance(found, Proof):
        with pytest.raises(RepresentabilityError, match="LA971"):
            certificate_of(Pipeline.from_json(document), "strict", found)


# --- what the evidence cannot help ------------------------------------------------------------------------------------
def refusal(document: Document, evidence: Document) -> tuple[int, str]:
    code, sentence = told("pipeline", {"pipeline": document, "policy": "strict"}, evidence)
    return code, sentence.partition(",")[0]


@pytest.mark.parametrize(
    ("size", "code", "fact"),
    [
        (0, 2, "load.loop[2] copies 0 bytes"),
        (2**20 - 1, 0, "safe for every N >= 0"),
        (2**20, 1, "too many bytes are outstanding"),
    ],
)
def test_bytes_that_barriers_do_not_count(size: int, code: int, fact: str) -> None:
    statement, evidence = stored(NAMES[1])
    document = statement["pipeline"]
    document["buffers"]["A"]["bytes"] = document["roles"][0]["loop"][1]["bytes"] = size
    assert refusal(document, evidence) == (code, fact)


def last(*ops: Document, end: int = 0, part: str = "pre", late: int = 0, **barrier: int) -> tuple[int, str]:
    """What is said of one more barrier, which only ops at the start or the end of the first role use."""
    statement, evidence = stored(NAMES[1])
    document = statement["pipeline"]
    document["barriers"]["last"] = {"count": 1, "slots": 1, **barrier}
    document["buffers"]["L"] = {"bytes": 64, "slots": 4}
    document["roles"][0][part] = list(ops)
    before = -(10**9) if part == "pre" else 10**6
    for place, entries in enumerate(ops):
        evidence["events"].append(["load", part, place, "start", before + 2 * place, int(part == "post")])
        if entries["op"] in ("wait", "tma_load"):
            evidence["events"].append(["load", part, place, "done", before + 2 * place + 1, int(part == "post")])
    time = -(10**10) if ops and ops[0]["op"] == "wait" else 10**10
    evidence["events"].append(["last", "phase", 0, "done", time, late])
    evidence["completed"].append(["last", end, 0])
    return refusal(document, evidence)


LAST: dict[str, Any] = {"bar": "last"}
COPY = op("tma_load", buf="L", **LAST)
SAFE = (0, "safe for every N >= 0")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (last(), SAFE),
        (last(count=0), (1, "certificate.statement.pipeline.barriers.last.count is not of range(1")),
        (last(count=2**20 - 1), SAFE),
        (last(count=2**20), (1, "certificate.statement.pipeline.barriers.last.count is not of range(1")),
        (last(op("arrive", **LAST), end=1), SAFE),
        (last(op("arrive", **LAST)), (1, "the phases that complete are others")),
        (last(end=1), (1, "the phases that complete are others")),
        (last(op("arrive", **LAST), count=2), SAFE),
        (last(op("arrive", n=2, **LAST)), (1, "there are more arrivals than the barrier counts")),
        (last(op("arrive", ph=-1, **LAST)), (1, "a phase before the first is named")),
        (last(op("arrive", idx_abs=-1, **LAST)), SAFE),
        (last(op("arrive", ph=-1, **LAST), slots=2), (1, "a phase before the first is named")),
        (last(op("arrive", idx_abs=1, **LAST), count=2), (1, "the phase before never completes")),
        (last(op("arrive", idx_abs=1, **LAST), count=2, slots=2), SAFE),
        (last(op("arrive_tx", bytes=64, **LAST)), SAFE),
        (last(op("arrive_tx", bytes=0, **LAST)), (1, "the phases that complete are others")),
        (last(op("arrive_tx", **LAST)), (2, "load.pre[0] expects no number of bytes")),
        (last(op("arrive_tx", bytes=64, **LAST), COPY), (1, "the phases that complete are others")),
        (last(op("arrive_tx", bytes=64, **LAST), COPY, end=1), (1, "nothing waits for a copy")),
        (last(op("arrive_tx", bytes=63, **LAST), COPY, end=1), (1, "more bytes are delivered than expected")),
        (last(op("arrive_tx", bytes=65, **LAST), COPY), (1, "nothing waits for a copy")),
        (last(op("expect", bytes=2**20 - 1, **LAST)), (1, "bytes may be expected too late: no fact excludes it")),
        (last(op("arrive_tx", bytes=2**20 - 1, **LAST)), SAFE),
        (last(op("arrive_tx", bytes=2**20, **LAST)), (1, "too many bytes are outstanding")),
        (last(op("arrive", **LAST), COPY), (1, "more bytes are delivered than expected")),
        (last(op("tma_store", buf="L", idx_abs=-1)), SAFE),
        (last(op("tma_store", buf="L")), (1, "a store may run at the end")),
        (last(wait("last"), end=0), (1, "a wait is for a phase that never completes")),
        (last(wait("last", ph=-1)), SAFE),
        (last(wait("last", ph=-2)), (1, "a wait is for a phase that never completes")),
        (last(wait("last", flip=True)), (1, "load.pre[0] is flipped and not read")),
        (last(op("arrive", guard={"from": 1}, **LAST)), (1, "load.pre[0] has a guard outside of the loop")),
        (last(op("arrive", bar="A")), (1, "load.pre[0] names no such barrier or buffer")),
        (last(op("read", buf="last")), (1, "load.pre[0] names no such barrier or buffer")),
        (last(op("read", buf="L")), SAFE),
        (last(op("read", buf="A")), (1, "an index is read and not written")),
        (last(op("read", buf="A", idx_abs=-1)), SAFE),
        (last(op("read", buf="A"), part="post"), (1, "an index is read and not written")),
        (last(op("read", buf="A", off=-1), part="post"), (1, "a read may come before its write: no fact excludes it")),
        (last(op("arrive", idx_abs=0, **LAST), part="post", end=1, late=1), SAFE),
        (last(op("arrive", idx_abs=0, **LAST), part="post", end=1), (1, "times do not grow")),
        (last(op("arrive", idx_abs=1, **LAST), part="post", end=1, late=1), (1, "the phases that complete are others")),
    ],
)  # fmt: skip
def test_what_counts_alone_decide(found: tuple[int, str], expected: tuple[int, str]) -> None:
    assert found == expected


def test_an_index_that_nobody_writes_hides_the_next_one() -> None:
    """Facts are about neighbours: with writes of 0 and 2 in one slot nothing orders the copy of 2 after a read of 0."""
    pre = [entry for i in (0, 2) for entry in copied(idx_abs=i)]
    pre += [op("arrive", bar="full", idx_abs=1), wait("full", idx_abs=0), op("read", buf="A", idx_abs=0)]
    document = ring(4, {"name": "one", "pre": pre}, buffers={"A": {"bytes": 64, "slots": 1}})
    made = pipelines.Pipeline(base.read(document, pipelines.PIPELINE, "it"), [], [["full", 3, 0], ["empty", 0, 0]])
    with pytest.raises(base.Stop) as stop:
        made.filled("A")
    assert stop.value.args == (2, "some index of A is left out between written ones")


def test_registers_are_of_one_role() -> None:
    statement, evidence = stored("accumulators in a ring")
    statement["pipeline"]["buffers"]["T"]["space"] = "register"
    assert refusal(statement["pipeline"], evidence) == (1, "use.loop[1] is for registers of another role")


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        (op("read", buf="T"), 1),  # and nobody writes that index
        (op("tma_store", buf="T"), 1),
        (op("cp_async", buf="T"), 1),
        (op("mma_write", buf="A"), 1),
        (op("mma_write", buf="T", idx_abs=-1), 0),
    ],
)
def test_the_space_of_a_buffer_says_what_may_use_it(entries: Document, code: int) -> None:
    statement, evidence = stored("accumulators in a ring")
    statement["pipeline"]["roles"][1]["pre"] = [entries]
    evidence["events"] += [["use", "pre", 0, what, -(10**9) + at, 0] for at, what in enumerate(("start", "done"))]
    found = refusal(statement["pipeline"], evidence)
    wrong = "an index is read and not written" if entries["op"] == "read" else "use.pre[0] is not for memory"
    assert found[0] == code
    assert code == 0 or wrong in found[1] or entries["op"] == "read"
    statement["pipeline"]["buffers"]["T"]["space"] = "registers"
    assert refusal(statement["pipeline"], evidence)[0] == 1


WRITE = op("write", buf="A")
EXPECT = op("expect", bar="full", bytes=64)
BOTH = {
    "the write first": ([WRITE, op("proxy_fence"), *copied()], [1, 2, 4]),
    "the copy first": ([EXPECT, copied()[1], WRITE, op("proxy_fence"), op("arrive", bar="full")], [2, 3]),
}


@pytest.mark.parametrize("name", BOTH)
def test_a_copy_and_a_write_of_one_index_need_an_order_and_a_fence(name: str) -> None:
    """The order in which the ops start is given here, so that it matters whether the fence is on the way."""
    ops, order = BOTH[name]
    document = ring(2, {"name": "load", "loop": [wait("empty", ph=-1), *ops]}, consumer(*FENCED_READ))
    verdict = verify(document)
    assert isinstance(verdict, Proved)
    evidence = verdict.to_certificate().to_json()["evidence"]
    events = [[event[:4] for event in evidence["events"]].index(["load", "loop", place, "start"]) for place in order]
    ends = [[events[0], 0], [events[-1], 0]]
    evidence["facts"] = [fact for fact in evidence["facts"] if fact["path"][:: len(fact["path"]) - 1] != ends]
    known = {"least": 1, "low": 0, "high": -1, "moves": 1}
    assert refusal(document, evidence) == (1, "a copy may follow a write: no fact excludes it")
    evidence["facts"].append({**known, "path": [[event, 0] for event in events]})
    assert refusal(document, evidence) == (0, "safe for every N >= 0")
    evidence["facts"][-1]["path"] = ends
    assert refusal(document, evidence)[0] == (1 if name == "the write first" else 0)


@pytest.mark.parametrize(
    ("name", "number", "n", "left"),
    [("stores", 1, 0, False), ("stores", 1, 1, True), ("stores", 1, 2**20, True)],
)
def test_stores_end(name: str, number: int, n: int, left: bool) -> None:
    statement, evidence = stored(name)
    statement["pipeline"]["roles"][number]["post"][0]["n"] = n
    found = refusal(statement["pipeline"], evidence)
    assert found == ((1, "a store may run at the end") if left else (0, "safe for every N >= 0"))
    code, _ = told("pipeline", statement | {"policy": "practice"}, evidence)
    assert code == 0


@pytest.mark.parametrize("trip", ["N5", "N+", "N - x", "M", "N-1.0", "2N", "N+0000001"])
def test_trips_are_n_and_a_constant(trip: str) -> None:
    statement, evidence = stored(NAMES[0])
    statement["pipeline"]["roles"][0]["trip"] = trip
    assert refusal(statement["pipeline"], evidence) == (
        1,
        "certificate.statement.pipeline.roles[0].trip is not N with a constant",
    )


@pytest.mark.parametrize(
    "entries",
    [op("arrive", bar="full", idx_abs=0), op("write", buf="A", idx_abs=0), op("mma_arrive", bar="full", idx_abs=0)],
)
def test_what_all_iterations_add_to_one_index_is_not_decided(entries: Document) -> None:
    statement, evidence = stored(NAMES[0])
    statement["pipeline"]["roles"][0]["loop"].append(entries)
    assert refusal(statement["pipeline"], evidence) == (2, "load.loop[3] adds to one index in all iterations")


def test_a_seal_of_another_document_is_refused_last() -> None:
    statement, evidence = stored(NAMES[0])
    document = sealed("pipeline", statement, evidence) | {"seal": "0" * 64}
    code, sentence = checker.check(document)
    assert (code, sentence.partition(",")[0]) == (1, "the seal is of another certificate")

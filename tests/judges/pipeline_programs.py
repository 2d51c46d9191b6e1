"""Small pipeline documents: families that are safe, mutations of them, and known bugs with what is wrong.

As a script it compares the verifier with the judge: ``python tests/judges/pipeline_programs.py --count 3000 --seed 0``.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

Document = dict[str, Any]
Op = dict[str, Any]

BYTES = 1024
ARRIVALS = ("arrive", "arrive_tx", "mma_arrive", "cp_async_arrive")
POLICIES = ("strict", "practice")


def op(name: str, **entries: Any) -> Op:
    """An op without the entries that are 0 by default."""
    return {"op": name} | {key: value for key, value in entries.items() if value or key in ("n", "idx_abs")}


def wait(bar: str, off: int = 0, ph: int = 0, **more: Any) -> Op:
    return op("wait", bar=bar, off=off, ph=ph, **more)


def arrive(bar: str, off: int = 0, ph: int = 0, **more: Any) -> Op:
    return op("arrive", bar=bar, off=off, ph=ph, **more)


def loads(bar: str, buffers: dict[str, int], off: int = 0, apart: bool = False, guard: Any = None) -> list[Op]:
    """Expect the bytes of all buffers, or of each before its copy, and start the copies."""
    total = sum(buffers.values())
    copies = [op("tma_load", buf=name, bar=bar, off=off, guard=guard) for name in buffers]
    if not apart:
        return [op("arrive_tx", bar=bar, bytes=total, off=off, guard=guard), *copies]
    expects = [op("expect", bar=bar, bytes=size, off=off, guard=guard) for size in buffers.values()]
    pairs = [each for pair in zip(expects, copies, strict=True) for each in pair]
    return [*pairs, op("arrive", bar=bar, off=off, guard=guard)]


def use(rng: random.Random, buffers: list[str], refilled_by_copy: bool = True) -> list[Op]:
    """Read slots with mmas and wait for them, or generically; a copy may only refill behind a fence."""
    if rng.random() < 0.6:
        return [*(op("mma", buf=name) for name in buffers), op("mma_commit"), op("mma_wait", n=0)]
    fence = [op("proxy_fence")] if refilled_by_copy else []
    return [*(op("read", buf=name) for name in buffers), *fence]


def document(
    stages: int, barriers: dict[str, Any], buffers: dict[str, Any], roles: list[dict[str, Any]], trips: str = "N >= 0"
) -> Document:
    """A document; a number in place of a barrier or a buffer is its count or its bytes."""
    return {
        "schema": "layoutalg/pipeline/1",
        "stages": stages,
        "trips": trips,
        "barriers": {name: {"count": given} if isinstance(given, int) else given for name, given in barriers.items()},
        "buffers": {name: {"bytes": given} if isinstance(given, int) else given for name, given in buffers.items()},
        "roles": roles,
    }


def role(name: str, loop: list[Op], pre: list[Op] | None = None, post: list[Op] | None = None, **more: Any) -> Any:
    return {"name": name} | ({"pre": pre} if pre else {}) | {"loop": loop} | ({"post": post} if post else {}) | more


def depth(rng: random.Random, consumers: int = 1) -> int:
    """Many consumers of a deep ring have too many states."""
    return rng.randint(1, 4 if consumers == 1 else 3)


def ring(rng: random.Random) -> Document:
    """A producer of one or two buffers, and consumers with one empty barrier or one each."""
    consumers = rng.choice((1, 1, 2, 2, 3))
    stages = depth(rng, consumers)
    buffers = {"A": BYTES} | ({"B": 2 * BYTES} if rng.random() < 0.4 else {})
    names = [f"consumer{number}" for number in range(consumers)]
    shared = rng.random() < 0.6
    empties = {"empty": consumers} if shared else {f"empty{number}": 1 for number in range(consumers)}
    waits = [wait(name, ph=-1) for name in empties]
    roles = [role("producer", [*waits, *loads("full", buffers, apart=rng.random() < 0.3)])]
    for number, name in enumerate(names):
        empty = "empty" if shared else f"empty{number}"
        roles.append(role(name, [wait("full"), *use(rng, list(buffers)), arrive(empty)]))
    return document(stages, {"full": 1} | empties, buffers, roles)


def prefetch(rng: random.Random) -> Document:
    """Loads run D - 1 ahead, the first ones before the loop."""
    stages = rng.randint(1, 3)
    ahead = stages - 1
    buffers = {"A": BYTES}
    pre = [each for number in range(ahead) for each in loads("full", buffers, off=number)]
    guard = {"until": ahead} if ahead else None
    load = loads("full", buffers, off=ahead, guard=guard)
    body = [wait("full"), *use(rng, ["A"])]
    trips = f"N >= {ahead}"
    if rng.random() < 0.5:
        return document(stages, {"full": 1}, buffers, [role("all", [*load, *body], pre=pre)], trips)
    acquire = op("wait", bar="empty", off=ahead, ph=-1, guard=guard)
    roles = [role("producer", [acquire, *load], pre=pre), role("consumer", [*body, arrive("empty")])]
    return document(stages, {"full": 1, "empty": 1}, buffers, roles, trips)


def release_previous(rng: random.Random) -> Document:
    """A slot is given back when the next mma is under way."""
    consumers = rng.choice((1, 1, 2))
    stages = rng.randint(2, 3 if consumers == 1 else 2)
    roles = [role("producer", [wait("empty", ph=-1), *loads("full", {"A": BYTES})])]
    guard = {"from": 1} if rng.random() < 0.5 else None
    for number in range(consumers):
        mma = [wait("full"), op("mma", buf="A"), op("mma_commit"), op("mma_wait", n=1)]
        post = [op("mma_wait", n=0), arrive("empty", off=-1)]
        roles.append(role(f"consumer{number}", [*mma, arrive("empty", off=-1, guard=guard)], post=post))
    return document(stages, {"full": 1, "empty": consumers}, {"A": BYTES}, roles)


def free_at_first(rng: random.Random) -> Document:
    """The consumers release every slot before the loop; the producer waits for the phase itself."""
    consumers = rng.choice((1, 1, 2))
    stages = depth(rng, consumers)
    roles = [role("producer", [wait("empty"), *loads("full", {"A": BYTES})])]
    for number in range(consumers):
        key = rng.choice(("idx_abs", "off"))
        pre = [op("arrive", bar="empty", **{key: slot}) for slot in range(stages)]
        roles.append(role(f"consumer{number}", [wait("full"), *use(rng, ["A"]), arrive("empty", ph=1)], pre=pre))
    return document(stages, {"full": 1, "empty": consumers}, {"A": BYTES}, roles)


def generic_producer(rng: random.Random) -> Document:
    """The producer computes what it writes."""
    consumers = rng.choice((1, 1, 2))
    stages = depth(rng, consumers)
    roles = [role("producer", [wait("empty", ph=-1), op("write", buf="A"), op("proxy_fence"), arrive("full")])]
    for number in range(consumers):
        roles.append(role(f"consumer{number}", [wait("full"), *use(rng, ["A"], rng.random() < 0.2), arrive("empty")]))
    return document(stages, {"full": 1, "empty": consumers}, {"A": BYTES}, roles)


def epilogue(rng: random.Random) -> Document:
    """Results are written to a ring of slots and stored from there, by the same role or by another."""
    stages = rng.randint(1, 3)
    write = [op("write", buf="C"), op("proxy_fence")]
    store = [op("tma_store", buf="C"), op("bulk_commit")]
    if rng.random() < 0.4:
        loop = [op("bulk_wait", n=stages - 1), *write, *store]
        return document(stages, {}, {"C": BYTES}, [role("all", loop, post=[op("bulk_wait", n=0)])])
    math = role("math", [wait("empty", ph=-1), *write, arrive("full")])
    if stages == 1 or rng.random() < 0.5:
        stored = role("store", [wait("full"), *store, op("bulk_wait", n=0), arrive("empty")])
    else:
        late = [op("bulk_wait", n=1), arrive("empty", off=-1)]
        stored = role("store", [wait("full"), *store, *late], post=[op("bulk_wait", n=0), arrive("empty", off=-1)])
    return document(stages, {"full": 1, "empty": 1}, {"C": BYTES}, [math, stored])


def relayed(rng: random.Random) -> Document:
    """A slot is filled by a thread or a copy, copied on to another slot by the same role or another, and read."""
    stages = rng.randint(1, 2)
    on = [op("arrive_tx", bar="full", bytes=BYTES), op("dsmem_copy", src="P", buf="R", bar="full")]
    if rng.random() < 0.3:
        on.reverse()
    take = [wait("full"), *use(rng, ["R"], rng.random() < 0.7), arrive("empty")]
    barriers: dict[str, Any] = {"full": 1, "empty": 1}
    if rng.random() < 0.5:
        roles = [role("send", [wait("empty", ph=-1), op("write", buf="P"), op("proxy_fence"), *on])]
    else:
        barriers["loaded"] = 1
        first = [wait("empty", ph=-1), *loads("loaded", {"P": BYTES})]
        roles = [role("load", first), role("send", [wait("loaded"), *on])]
    return document(stages, barriers, {"P": BYTES, "R": BYTES}, [*roles, role("take", take)])


def chained(rng: random.Random) -> Document:
    """A role turns loaded slots into slots of another ring, whose depth may differ."""
    stages = rng.randint(1, 2)
    second = rng.choice((stages, stages, 1, 2))
    loader = role("loader", [wait("empty_a", ph=-1), *loads("full_a", {"A": BYTES})])
    release = arrive("empty_a")
    turn = [wait("full_a"), op("read", buf="A"), wait("empty_b", ph=-1), op("write", buf="B"), op("proxy_fence")]
    transformer = role("transformer", [*turn, *rng.sample([release, arrive("full_b")], 2)])
    last = role("mma", [wait("full_b"), *use(rng, ["B"], False), arrive("empty_b")])
    ring_b = {"slots": second} if second != stages else {}
    barriers = {"full_a": 1, "empty_a": 1, "full_b": {"count": 1, **ring_b}, "empty_b": {"count": 1, **ring_b}}
    return document(stages, barriers, {"A": BYTES, "B": {"bytes": BYTES, **ring_b}}, [loader, transformer, last])


def two_producers(rng: random.Random) -> Document:
    """Two roles fill one barrier: two buffers, or the halves of one."""
    stages = rng.randint(1, 2)
    halves = rng.random() < 0.4
    buffers = {"A": BYTES} if halves else {"A": BYTES, "B": 2 * BYTES}
    roles = []
    for name in "AB":
        buf = "A" if halves else name
        size = BYTES // 2 if halves else buffers[name]
        expect = op("arrive_tx", bar="full", bytes=size)
        load = op("tma_load", buf=buf, bar="full", bytes=size if halves or rng.random() < 0.2 else 0)
        roles.append(role(f"load_{name}", [wait("empty", ph=-1), expect, load]))
    roles.append(role("consumer", [wait("full"), *use(rng, list(buffers)), arrive("empty")]))
    return document(stages, {"full": 2, "empty": 1}, buffers, roles)


def expected_elsewhere(rng: random.Random) -> Document:
    """One role says what arrives, another starts the copies; they may be done first."""
    stages = rng.randint(1, 2)
    acquire = wait("empty", ph=-1)
    roles = [
        role("announcer", [acquire, op("arrive_tx", bar="full", bytes=BYTES)]),
        role("loader", [acquire, op("tma_load", buf="A", bar="full")]),
        role("consumer", [wait("full"), *use(rng, ["A"]), arrive("empty")]),
    ]
    return document(stages, {"full": 1, "empty": 1}, {"A": BYTES}, roles)


def first_before_loop(rng: random.Random) -> Document:
    """The first index is loaded before a loop of N - 1 trips."""
    stages = rng.randint(1, 3)
    buffers = {"A": BYTES}
    producer = role(
        "producer",
        [wait("empty", off=1, ph=-1), *loads("full", buffers, off=1)],
        pre=loads("full", buffers),
        trip="N-1",
    )
    consumer = role("consumer", [wait("full"), *use(rng, ["A"]), arrive("empty")])
    return document(stages, {"full": 1, "empty": 1}, buffers, [producer, consumer], "N >= 1")


def last_behind_loop(rng: random.Random) -> Document:
    """The consumer peels its last trip off, or everybody runs one trip more."""
    stages = rng.randint(1, 3)
    body = [wait("full"), *use(rng, ["A"]), arrive("empty")]
    produce = [wait("empty", ph=-1), *loads("full", {"A": BYTES})]
    if rng.random() < 0.5:
        roles = [role("producer", produce, trip="N+1"), role("consumer", body, trip="N+1")]
        return document(stages, {"full": 1, "empty": 1}, {"A": BYTES}, roles)
    roles = [role("producer", produce), role("consumer", body, post=body, trip="N-1")]
    return document(stages, {"full": 1, "empty": 1}, {"A": BYTES}, roles, "N >= 1")


def warps(rng: random.Random) -> Document:
    """Every warp of a consumer arrives: several arrivals at once, for both barriers."""
    stages = rng.randint(1, 3)
    many, fill = rng.randint(2, 4), rng.randint(1, 2)
    lead = [arrive("full", n=fill)] if fill > 1 else []
    roles = [
        role("producer", [wait("empty", ph=-1), *loads("full", {"A": BYTES}), *lead]),
        role("consumer", [wait("full"), *use(rng, ["A"]), arrive("empty", n=many)]),
    ]
    return document(stages, {"full": 1 + (fill if lead else 0), "empty": many}, {"A": BYTES}, roles)


def fused(rng: random.Random) -> Document:
    """A consumer of two rings that computes and stores: loads, mma and an epilogue slot."""
    stages = rng.randint(1, 2)
    produce = role("producer", [wait("empty", ph=-1), *loads("full", {"A": BYTES})])
    work = [wait("full"), *use(rng, ["A"]), arrive("empty")]
    results = [op("bulk_wait", n=0), op("write", buf="C"), op("proxy_fence"), op("tma_store", buf="C")]
    consume = role("consumer", [*work, *results, op("bulk_commit")], post=[op("bulk_wait", n=0)])
    buffers = {"A": BYTES, "C": {"bytes": BYTES, "slots": rng.randint(1, 2)}}
    return document(stages, {"full": 1, "empty": 1}, buffers, [produce, consume])


def stored(rng: random.Random) -> Document:
    """A role writes results and another stores them; the writer, the reader or both fence the proxies."""
    writer, reader = rng.choice(((1, 0), (0, 1), (1, 1)))
    write = [wait("empty", ph=-1), op("write", buf="A"), *[FENCE] * writer, arrive("full")]
    store = [wait("full"), *[FENCE] * reader, *STORE, op("bulk_wait", n=0), arrive("empty")]
    return plain(rng.randint(1, 3), write, store)


def around(rng: random.Random) -> Document:
    """A slot is written before a loop and stored behind it, by one role or two; a fence is before, in or behind it."""
    place = rng.choice(("pre", "loop", "loop", "post", "store"))
    fences = {name: [FENCE] * (name == place or rng.random() < 0.2) for name in ("pre", "loop", "post", "store")}
    pre = [op("write", buf="C", idx_abs=0), *fences["pre"]]
    loop = [*fences["loop"], *rng.choice(([], [op("read", buf="C", idx_abs=0)]))]
    store = [*fences["store"], op("tma_store", buf="C", idx_abs=0), op("bulk_commit"), op("bulk_wait", n=0)]
    if rng.random() < 0.5:
        roles = [role("all", loop, pre=pre, post=[*fences["post"], *store])]
    else:
        roles = [role("write", loop, pre=pre, post=[*fences["post"], op("arrive", bar="done", idx_abs=0)])]
        roles.append(role("store", [], post=[op("wait", bar="done", idx_abs=0), *store]))
    least, slots = rng.randint(place == "loop", 2), rng.randint(1, 2)
    return document(slots, {"done": {"count": 1, "slots": 1}}, {"C": BYTES}, roles, f"N >= {least}")


def led(rng: random.Random) -> Document:
    """Consumers meet at a barrier of their own before the first of them releases the slot for all."""
    consumers = rng.choice((2, 2, 3))
    stages = rng.randint(1, 2)
    roles = [role("producer", [wait("empty", ph=-1), *loads("full", {"A": BYTES})])]
    for number in range(consumers):
        release = [arrive("empty")] if number == 0 else []
        meet = [arrive("meet"), wait("meet")]
        roles.append(role(f"consumer{number}", [wait("full"), *use(rng, ["A"]), *meet, *release]))
    meeting = {"count": consumers, "slots": rng.choice((1, stages))}
    return document(stages, {"full": 1, "empty": 1, "meet": meeting}, {"A": BYTES}, roles)


def in_turn(rng: random.Random) -> Document:
    """Two consumers, each of which lets the other one go first in turn."""
    stages = rng.randint(1, 2)
    roles = [role("producer", [wait("empty", ph=-1), *loads("full", {"A": BYTES})])]
    for mine, other, ph in (("turn0", "turn1", -1), ("turn1", "turn0", 0)):
        body = [wait("full"), wait(mine, ph=ph), *use(rng, ["A"])]
        roles.append(role(mine, [*body, *rng.sample([arrive(other), arrive("empty")], 2)]))
    turns = {name: {"count": 1, "slots": 1} for name in ("turn0", "turn1")}
    return document(stages, {"full": 1, "empty": 2, **turns}, {"A": BYTES}, roles)


def straight(rng: random.Random) -> Document:
    """No loop, or one beside it: what a kernel does once, before or behind its loop."""
    stages = rng.randint(1, 2)
    part = rng.choice(("pre", "post"))
    produce = loads("once", {"W": BYTES})
    consume = [wait("once"), *(each | {"buf": "W"} if "buf" in each else each for each in use(rng, ["A"]))]
    if part == "post":
        for each in produce + consume[:1] + [each for each in consume if "buf" in each]:
            each["idx_abs"] = 0
    if rng.random() < 0.4:
        roles = [role("producer", [], **{part: produce}), role("consumer", [], **{part: consume})]
        return document(1, {"once": 1}, {"W": BYTES}, roles)
    loop = [wait("empty", ph=-1), *loads("full", {"A": BYTES})]
    work = [wait("full"), *use(rng, ["A"]), arrive("empty")]
    roles = [role("producer", loop, **{part: produce}), role("consumer", work, **{part: consume})]
    once = {"count": 1, "slots": 1}
    buffers = {"A": BYTES, "W": {"bytes": BYTES, "slots": 1}}
    return document(stages, {"full": 1, "empty": 1, "once": once}, buffers, roles)


def committed(rng: random.Random) -> Document:
    """Slots are released, and results handed over, by arrivals that come when the mmas before them have finished."""
    consumers = rng.choice((1, 1, 2))
    stages = rng.randint(1, 3)
    buffers = {"A": BYTES} | ({"B": 2 * BYTES} if rng.random() < 0.3 else {})
    roles = [role("producer", [wait("empty", ph=-1), *loads("full", buffers)])]
    mmas = [op("mma", buf=name) for name in buffers]
    done = rng.random() < 0.5
    for number in range(consumers):
        post = [op("mma_arrive", bar="done", idx_abs=0)] if done else None
        roles.append(role(f"consumer{number}", [wait("full"), *mmas, op("mma_arrive", bar="empty")], post=post))
    barriers: dict[str, Any] = {"full": 1, "empty": consumers}
    if done:
        barriers["done"] = {"count": consumers, "slots": 1}
        roles.append(role("epilogue", [], pre=[op("wait", bar="done", idx_abs=0)]))
    return document(stages, barriers, buffers, roles)


def copied(rng: random.Random) -> Document:
    """Threads copy with cp.async, and an arrival or a wait for their groups tells that a slot is filled."""
    behind = rng.choice((0, 0, 1))
    stages = rng.randint(1 + behind, 3)
    start = [wait("empty", ph=-1), op("cp_async", buf="A")]
    many = 1
    fence = rng.random() < 0.5
    fenced = [op("proxy_fence")] if fence else []
    post = None
    if rng.random() < 0.4:
        many = rng.choice((1, 1, 2, 3))
        produce = [*start, op("cp_async_arrive", bar="full", **({"n": many} if many > 1 else {}))]
        fence = False
    else:
        told = [*fenced, arrive("full", off=-behind)]
        produce = [*start, op("cp_async_commit"), op("cp_async_wait", n=behind), *told]
        post = [op("cp_async_wait", n=0), *told] if behind else None
    mma = [*([] if fence else [op("proxy_fence")]), *MMA]
    work = rng.choice(([op("read", buf="A")], mma))
    roles = [role("producer", produce, post=post), role("consumer", [wait("full"), *work, arrive("empty")])]
    return document(stages, {"full": many, "empty": 1}, {"A": BYTES}, roles)


TENSOR = {"bytes": BYTES, "slots": 1, "space": "tensor"}
ADD = op("mma_write", buf="T", idx_abs=0)
SUM = op("read", buf="T", idx_abs=0)


def accumulated(rng: random.Random) -> Document:
    """All iterations add to one accumulator, which is read behind the loop, by the same role or another one."""
    stages = rng.randint(1, 3)
    once = {"count": 1, "slots": 1}
    barriers: dict[str, Any] = {"full": 1, "empty": 1}
    zero = [op("write", buf="T", idx_abs=0)] if rng.random() < 0.6 else []
    loop = [wait("full"), *rng.sample([op("mma", buf="A"), ADD], 2), op("mma_arrive", bar="empty")]
    roles = [role("producer", [wait("empty", ph=-1), *loads("full", {"A": BYTES})])]
    how = rng.choice(("groups", "last release", "barrier", "other role", "other loop"))
    post = [op("mma_arrive", bar="done", idx_abs=0)]
    if how == "groups":
        post = [op("mma_commit"), op("mma_wait", n=0), SUM]
        loop += [op("mma_commit")] if rng.random() < 0.5 else []
    elif how == "last release":
        post = [wait("empty", off=-1), SUM]
    elif how == "barrier":
        post += [op("wait", bar="done", idx_abs=0), SUM]
    else:
        summed = [op("wait", bar="done", idx_abs=0), SUM]
        roles.append(
            role("epilogue", summed if how == "other loop" else [], pre=None if how == "other loop" else summed)
        )
    if how not in ("groups", "last release"):
        barriers["done"] = once
    roles.append(role("mma", loop, pre=zero, post=post))
    return document(stages, barriers, {"A": BYTES, "T": TENSOR}, roles, "N >= 0" if zero else "N >= 1")


def tiles(rng: random.Random) -> Document:
    """Accumulators of tiles in a ring: one role fills them, another reads them."""
    stages = rng.randint(1, 3)
    consumers = rng.choice((1, 1, 2))
    adds = [op("mma_write", buf="T")] * rng.randint(1, 2)
    zero = [op("write", buf="T")] if rng.random() < 0.3 else []
    if rng.random() < 0.6:
        fill = [wait("free", ph=-1), *zero, *adds, op("mma_arrive", bar="ready")]
    else:
        fill = [wait("free", ph=-1), *zero, *adds, op("mma_commit"), op("mma_wait", n=0), arrive("ready")]
    roles = [role("mma", fill)]
    for number in range(consumers):
        work = [wait("ready"), op("read", buf="T"), arrive("free")]
        roles.append(role(f"epilogue{number}", work))
    return document(stages, {"ready": 1, "free": consumers}, {"T": TENSOR | {"slots": stages}}, roles)


def rescaled(rng: random.Random) -> Document:
    """An accumulator is read, rescaled and added to in every iteration, by one role or by two."""
    turn = [op("read", buf="T", off=-1, guard=rng.choice((None, {"from": 1}))), op("write", buf="T")]
    post = [op("read", buf="T", off=-1)]
    slots = rng.randint(1, 2)
    buffers = {"T": TENSOR | {"slots": slots}}
    if rng.random() < 0.5:
        done = op("mma_arrive", bar="done")
        late = rng.random() < 0.5
        loop = [*([wait("done", off=-1)] if late else []), *turn, op("mma_write", buf="T"), done]
        loop += [] if late else [wait("done")]
        waited = [wait("done", off=-1)] if late else []
        return document(1, {"done": 1}, buffers, [role("all", loop, post=[*waited, *post])], "N >= 1")
    loop = [wait("done", off=-1), *turn, arrive("scaled")]
    math = role("math", loop, post=[wait("done", off=-1), *post])
    mma = role("mma", [wait("scaled"), op("mma_write", buf="T"), op("mma_arrive", bar="done")])
    return document(1, {"done": 1, "scaled": 1}, buffers, [math, mma], "N >= 1")


def two_products(rng: random.Random) -> Document:
    """One product is read and written back as the operand of a second one, as in attention."""
    stages = rng.randint(1, 2)
    ring = TENSOR | {"slots": stages}
    barriers = {"scores": 1, "used": 1, "weights": 1, "done": {"count": 1, "slots": 1}}
    first = [wait("used", ph=-1), op("mma_write", buf="S"), op("mma_arrive", bar="scores")]
    second = [wait("weights"), op("mma", buf="P"), ADD, op("mma_arrive", bar="used")]
    math = [wait("scores"), op("read", buf="S"), op("write", buf="P"), arrive("weights")]
    roles = [
        role("mma", [*first, *second], post=[op("mma_arrive", bar="done", idx_abs=0)]),
        role("math", math, post=[op("wait", bar="done", idx_abs=0), SUM]),
    ]
    return document(stages, barriers, {"S": ring, "P": ring, "T": TENSOR}, roles, "N >= 1")


def weighted(rng: random.Random) -> Document:
    """Attention with scores, weights and sums in the registers of the role that multiplies; scores may be ahead."""
    ahead = int(rng.random() < 0.5)
    stages = rng.randint(1, 2)
    sums = {"bytes": BYTES, "slots": rng.choice((1, 1, 2)), "space": "register"}
    barriers = dict.fromkeys(("full_k", "empty_k", "full_v", "empty_v"), 1)
    load = [each for name in "kv" for each in (
        wait(f"empty_{name}", ph=-1), *loads(f"full_{name}", {name.upper(): BYTES}))]  # fmt: skip
    done, free_v = op("mma_wait", n=0), arrive("empty_v")

    def scores(off: int) -> list[Op]:
        return [wait("full_k", off=off), op("mma", buf="K", off=off), op("mma_write", buf="S", off=off),
                op("mma_commit")]  # fmt: skip

    values = [wait("full_v"), op("mma", buf="P"), op("mma", buf="V"), op("mma_write", buf="O"), op("mma_commit")]
    scaled = [op("read", buf="O", off=ahead - 1), op("write", buf="O", off=ahead), op("write", buf="P", off=ahead)]
    read, free_k = op("read", buf="S", off=ahead), arrive("empty_k", off=ahead)
    if ahead:
        first = [*scores(0), done, op("read", buf="S"), op("write", buf="O"), op("write", buf="P"), arrive("empty_k")]
        loop = [*scores(1), *values, op("mma_wait", n=1), read, free_k, done, *scaled, free_v]
        math = role("math", loop, pre=first, post=[*values, done, op("read", buf="O")], trip="N-1")
    else:
        loop = [*scores(0), done, read, free_k, *scaled, *values, done, free_v]
        math = role("math", loop, post=[op("read", buf="O", off=-1)])
    buffers: dict[str, Any] = {"K": BYTES, "V": BYTES} | dict.fromkeys("SPO", sums)
    return document(stages, barriers, buffers, [role("load", load), math], "N >= 1")


def soup(rng: random.Random) -> Document:
    """A few ops at random; now and then nothing goes wrong."""
    roles = []
    for number in range(rng.randint(1, 3)):
        parts: dict[str, list[Op]] = {"loop": []}
        for _ in range(rng.randint(1, 4)):
            parts.setdefault(rng.choice(("loop", "loop", "loop", "pre", "post")), []).append(_any_op(rng))
        roles.append(role(f"role{number}", **parts, trip=rng.choice(("N", "N", "N", "N+1", "N-1"))))
    buffers = {
        "A": BYTES,
        "C": {"bytes": BYTES, "slots": rng.randint(1, 2)},
        "T": TENSOR | {"slots": rng.randint(1, 2)},
    }
    barriers = {"b": rng.randint(1, 2), "c": {"count": 1, "slots": rng.randint(1, 2)}}
    return document(rng.randint(1, 2), barriers, buffers, roles, rng.choice(("N >= 0", "N >= 1")))


def pieces(rng: random.Random) -> Document:
    """Two roles that use one buffer before, in and behind their loops, with what each access needs to be complete."""
    roles = []
    for number in range(2):
        parts: dict[str, list[Op]] = {"loop": []}
        for _ in range(rng.randint(1, 3)):
            parts.setdefault(rng.choice(("loop", "pre", "post")), []).extend(_any_piece(rng))
        roles.append(role(f"role{number}", **parts, trip=rng.choice(("N", "N", "N-1"))))
    buffers = {"A": BYTES, "C": BYTES, "T": TENSOR | {"slots": rng.randint(1, 2)}}
    return document(rng.randint(1, 2), {"b": rng.randint(1, 2), "c": 1}, buffers, roles)


def _any_piece(rng: random.Random) -> list[Op]:
    off = rng.choice((0, 0, 1, 2, -1))
    mma = op("mma", buf=rng.choice("AAC"), off=off)
    thread_copy = op("cp_async", buf="A", off=off)
    place = {"off": off} if rng.random() < 0.6 else {"idx_abs": rng.randint(0, 1)}
    add = op("mma_write", buf="T", **place)
    if rng.random() < 0.4:
        return rng.choice(
            (
                [add],
                [add, op("mma_commit"), op("mma_wait", n=rng.randint(0, 1))],
                [add, op("mma_arrive", bar="b", off=off)],
                [op("read", buf="T", **place)],
                [op("mma", buf="T", **place), op("mma_commit"), op("mma_wait", n=0)],
                [op("write", buf="T", off=off)],
                [op("mma_commit"), op("mma_wait", n=0)],
                [op("mma_arrive", bar="c", off=off), wait("c", off=off)],
            )
        )
    return rng.choice(
        (
            [op("write", buf="A", off=off)],
            [thread_copy],
            [thread_copy, op("cp_async_commit"), op("cp_async_wait", n=0)],
            [thread_copy, op("cp_async_arrive", bar="b", off=off)],
            [op("read", buf="A", off=off)],
            [mma, op("mma_commit"), op("mma_wait", n=0)],
            [mma, op("mma_arrive", bar="b", off=off)],
            [*loads("c", {"A": BYTES}, off=off), wait("c", off=off)],
            [arrive("b", off=off)],
            [wait("b", off=off)],
            [op("proxy_fence")],
        )
    )


def _any_op(rng: random.Random) -> Op:
    place = {"off": rng.choice((0, 0, 0, 1, -1))} if rng.random() < 0.9 else {"idx_abs": rng.randint(0, 2)}
    bar, buf, ph = rng.choice("bc"), rng.choice("AC"), rng.choice((0, 0, 0, -1, 1))
    return rng.choice(
        (
            *3 * [wait(bar, ph=rng.choice((0, 0, -1, -1, 1)), **place)],
            *3 * [op("arrive", bar=bar, ph=ph, **place)],
            op("arrive_tx", bar=bar, ph=ph, bytes=BYTES, **place),
            op("tma_load", buf=buf, bar=bar, ph=ph, **place),
            op("dsmem_copy", src="AC"[buf == "A"], buf=buf, bar=bar, ph=ph, **place),
            op("cp_async", buf=buf, **place),
            op(rng.choice(("mma_arrive", "cp_async_arrive")), bar=bar, ph=ph, **place),
            op("write", buf=buf, **place),
            op("read", buf=buf, **place),
            op(rng.choice(("mma", "tma_store")), buf=buf, **place),
            op("mma_write", buf="T", **place),
            op(rng.choice(("read", "read", "mma", "write", "mma_write")), buf="T", **place),
            op(rng.choice(("mma_commit", "bulk_commit", "cp_async_commit"))),
            op(rng.choice(("mma_wait", "bulk_wait", "cp_async_wait")), n=rng.randint(0, 1)),
            op("proxy_fence"),
        )
    )


FAMILIES: tuple[Callable[[random.Random], Document], ...] = (
    ring, ring, prefetch, release_previous, free_at_first, generic_producer, epilogue, chained, two_producers,
    expected_elsewhere, first_before_loop, last_behind_loop, warps, fused, led, relayed, relayed,
    in_turn, stored, around, straight, committed, copied, accumulated, accumulated, tiles, rescaled, two_products,
    weighted, weighted,
)  # fmt: skip


def program(rng: random.Random) -> Document:
    """A document of one of the families with no, one or two mutations, or any few ops."""
    if rng.random() < 0.12:
        return registered(rng, rng.choice((soup, pieces))(rng))
    made = rng.choice(FAMILIES)(rng)
    for _ in range(rng.choice((0, 1, 1, 2))):
        mutate(rng, made)
    return registered(rng, made)


def registered(rng: random.Random, made: Document) -> Document:
    """Tensor memory that one role uses may be its registers as well."""
    for name, buffer in made["buffers"].items():
        users = [each["name"] for each in made["roles"] if any(op.get("buf") == name for op in ops_of(each))]
        if buffer.get("space") == "tensor" and len(users) < 2 and rng.random() < 0.6:
            made["buffers"][name] = buffer | {"space": "register"}
    return made


def ops_of(each: dict[str, Any]) -> list[Op]:
    """All ops of a role."""
    return [op for part in ("pre", "loop", "post") for op in each.get(part, [])]


def unshared(roles: list[dict[str, Any]]) -> Any:
    """A copy in which no two roles share an op, as deepcopy would keep it."""
    return json.loads(json.dumps(roles))


def mutate(rng: random.Random, made: Document) -> None:
    """Change one thing where that is possible, in place."""
    made["roles"] = unshared(made["roles"])
    for _ in range(20):
        if rng.choice(MUTATIONS)(rng, made):
            return


def _lists(made: Document) -> list[list[Op]]:
    return [each[part] for each in made["roles"] for part in ("pre", "loop", "post") if each.get(part)]


def _some(rng: random.Random, made: Document, *names: str) -> Op | None:
    found = [each for ops in _lists(made) for each in ops if not names or each["op"] in names]
    return rng.choice(found) if found else None


def delete(rng: random.Random, made: Document) -> bool:
    ops = rng.choice(_lists(made))
    del ops[rng.randrange(len(ops))]
    return True


def swap(rng: random.Random, made: Document) -> bool:
    ops = rng.choice(_lists(made))
    if len(ops) < 2:
        return False
    place = rng.randrange(len(ops) - 1)
    ops[place], ops[place + 1] = ops[place + 1], ops[place]
    return True


def duplicate(rng: random.Random, made: Document) -> bool:
    ops = rng.choice(_lists(made))
    place = rng.randrange(len(ops))
    ops.insert(place, copy.deepcopy(ops[place]))
    return True


def move_arrival(rng: random.Random, made: Document) -> bool:
    ops = rng.choice(_lists(made))
    places = [place for place, each in enumerate(ops) if each["op"] in ARRIVALS]
    if not places:
        return False
    moved = ops.pop(rng.choice(places))
    ops.insert(rng.randint(0, len(ops)), moved)
    return True


def drop_fence(rng: random.Random, made: Document) -> bool:
    for ops in _lists(made):
        fences = [place for place, each in enumerate(ops) if each["op"] == "proxy_fence"]
        if fences:
            del ops[fences[0]]
            return True
    return False


def change_count(rng: random.Random, made: Document) -> bool:
    if not made["barriers"]:
        return False
    barrier = made["barriers"][rng.choice(sorted(made["barriers"]))]
    less = barrier["count"] > 1 or (barrier["count"] == 1 and rng.random() < 0.1)
    barrier["count"] += rng.choice((-1, 1)) if less else 1
    return True


def change_bytes(rng: random.Random, made: Document) -> bool:
    found = _some(rng, made, "expect", "arrive_tx", "tma_load", "dsmem_copy")
    if found is None:
        return False
    found["bytes"] = max(16, found.get("bytes", BYTES) + rng.choice((-16, 16, -BYTES, BYTES)))
    return True


def flip(rng: random.Random, made: Document) -> bool:
    found = _some(rng, made, "wait")
    if found is None:
        return False
    found["flip"] = not found.get("flip", False)
    return True


def change_n(rng: random.Random, made: Document) -> bool:
    found = _some(rng, made, "arrive", "cp_async_arrive", "mma_wait", "bulk_wait", "cp_async_wait")
    if found is None:
        return False
    least = 1 if found["op"] in ("arrive", "cp_async_arrive") else 0
    found["n"] = max(least, found.get("n", least) + rng.choice((-1, 1)))
    return True


def change_off(rng: random.Random, made: Document) -> bool:
    found = _some(rng, made)
    if found is None or not ("bar" in found or "buf" in found):
        return False
    key = "idx_abs" if "idx_abs" in found else "off"
    found[key] = found.get(key, 0) + rng.choice((-1, 1))
    return True


def change_phase(rng: random.Random, made: Document) -> bool:
    found = _some(rng, made, "wait", "expect", "tma_load", "dsmem_copy", *ARRIVALS)
    if found is None:
        return False
    found["ph"] = found.get("ph", 0) + rng.choice((-1, 1))
    return True


def change_trip(rng: random.Random, made: Document) -> bool:
    rng.choice(made["roles"])["trip"] = rng.choice(("N", "N-1", "N+1"))
    return True


def change_stages(rng: random.Random, made: Document) -> bool:
    things = [*made["barriers"].values(), *made["buffers"].values()]
    thing = rng.choice(things)
    slots = thing.get("slots", made["stages"])
    thing["slots"] = max(1, slots + rng.choice((-1, 1)))
    return slots != thing["slots"]


def change_guard(rng: random.Random, made: Document) -> bool:
    loops = [each for found in made["roles"] for each in found["loop"]]
    if not loops:
        return False
    found = rng.choice(loops)
    end = rng.choice(("from", "until"))
    guard = dict(found.get("guard", {}))
    guard[end] = max(0, guard.get(end, 0) + rng.choice((-1, 1)))
    found["guard"] = guard
    return True


def reset_counters(rng: random.Random, made: Document) -> bool:
    if rng.random() < 0.7:
        return False
    made["phase_reset_every"] = rng.randint(1, 2 * made["stages"])
    return True


MUTATIONS: tuple[Callable[[random.Random, Document], bool], ...] = (
    delete, delete, swap, swap, duplicate, move_arrival, drop_fence, change_count, change_bytes, flip, change_n,
    change_n, change_off, change_off, change_phase, change_trip, change_stages, change_guard,
    reset_counters,
)  # fmt: skip


MMA = [op("mma", buf="A"), op("mma_commit"), op("mma_wait", n=0)]
READ = [op("read", buf="A"), op("proxy_fence")]
LOAD = loads("full", {"A": BYTES})


def plain(
    stages: int = 2,
    produce: list[Op] | None = None,
    consume: list[Op] | None = None,
    consumers: int = 1,
    full: Any = 1,
    empty: Any = None,
    buffers: dict[str, Any] | None = None,
    trips: str = "N >= 0",
    producer: dict[str, Any] | None = None,
    consumer: dict[str, Any] | None = None,
) -> Document:
    """The ring of the page with parts of it replaced."""
    produce = [wait("empty", ph=-1), *LOAD] if produce is None else produce
    consume = [wait("full"), *MMA, arrive("empty")] if consume is None else consume
    names = ["consumer"] if consumers == 1 else [f"consumer{number}" for number in range(consumers)]
    roles = [
        role("producer", produce, **(producer or {})),
        *(role(name, consume, **(consumer or {})) for name in names),
    ]
    barriers = {"full": full, "empty": consumers if empty is None else empty}
    return document(stages, barriers, buffers or {"A": BYTES}, unshared(roles), trips)


def case(
    name: str, bug: str, made: Document, expected: str, source: str = "", policy: str = "strict"
) -> dict[str, Any]:
    """`expected` is "safe", or the kinds that an answer may name."""
    kinds: Any = "safe" if expected == "safe" else set(expected.split())
    return {"name": name, "bug": bug, "document": made, "expected": kinds, "source": source, "policy": policy}


def _leader(arrives_for_both: bool) -> Document:
    """Two warps wait for each slot; the leader's arrival releases it alone, or each warp arrives."""
    made = plain(1, consume=[wait("full"), *READ, arrive("empty")], consumers=2)
    if arrives_for_both:
        made["barriers"]["empty"]["count"] = 1
        made["roles"][2]["loop"].pop()
    return made


def _store_forward(stages: int, left: int) -> Document:
    """A copy through shared memory: slots are loaded, stored and loaded again by one role."""
    pre = [each for number in range(stages) for each in loads("full", {"A": BYTES}, off=number)]
    refill = loads("full", {"A": BYTES}, off=stages, guard={"until": stages})
    waited = op("bulk_wait", n=left, guard={"until": stages})
    body = [wait("full"), op("tma_store", buf="A"), op("bulk_commit"), waited, *refill]
    roles = [role("all", body, pre=pre, post=[op("bulk_wait", n=0)])]
    return document(stages, {"full": 1}, {"A": BYTES}, roles, f"N >= {stages}")


def _one_trip(arrives: bool) -> Document:
    """The loop of a single trip is unrolled; its copy expects bytes and may forget to arrive."""
    copied = [op("expect", bar="full", bytes=BYTES), op("tma_load", buf="A", bar="full")]
    pre = [wait("empty", ph=-1), *copied, *([arrive("full")] if arrives else [])]
    roles = [role("producer", [], pre=pre), role("consumer", [], pre=[wait("full"), *MMA])]
    return document(1, {"full": 1, "empty": 1}, {"A": BYTES}, roles)


def _release_previous(stages: int) -> Document:
    late = [wait("full"), MMA[0], MMA[1], op("mma_wait", n=1), arrive("empty", off=-1)]
    return plain(stages, consume=late, consumer={"post": [op("mma_wait", n=0), arrive("empty", off=-1)]})


def _block_barrier(roles: int) -> Document:
    """Two of three roles meet at a barrier of the whole block in every trip."""
    made = [role(f"role{number}", [arrive("block"), wait("block")]) for number in range(2)]
    return document(1, {"block": roles}, {}, [*made, role("other", [])])


def _empty_work(waits: bool) -> Document:
    """A role that has nothing to do arrives at a named barrier; the other side may not wait for it."""
    sides = [arrive("named"), *([wait("named")] if waits else [])]
    return document(1, {"named": 2}, {}, [role("idle", sides), role("busy", [arrive("named"), wait("named")])])


def _persistent(k_tiles: int | None) -> Document:
    """A producer whose counters start again with every tile, or never."""
    made = plain(2)
    if k_tiles:
        made["phase_reset_every"] = k_tiles
    return made


def _two_loads(expected_bytes: int) -> Document:
    both = [op("arrive_tx", bar="full", bytes=expected_bytes), LOAD[1], op("tma_load", buf="B", bar="full")]
    uses = [MMA[0], op("mma", buf="B"), *MMA[1:]]
    return plain(
        produce=[wait("empty", ph=-1), *both],
        consume=[wait("full"), *uses, arrive("empty")],
        buffers={"A": BYTES, "B": 2 * BYTES},
    )


WRITE = [wait("empty", ph=-1), op("write", buf="A"), op("proxy_fence"), arrive("full")]
EXPECT = op("expect", bar="full", bytes=BYTES)
FENCE = op("proxy_fence")
STORE = [op("tma_store", buf="A"), op("bulk_commit")]
FREE = [arrive("empty", off=slot) for slot in range(2)]


def _staged(waited: int | None, at_end: bool = True, fence: bool = True, stages: int = 2) -> Document:
    """Results go through a ring of slots and are stored from there."""
    before = [] if waited is None else [op("bulk_wait", n=waited)]
    fenced = [op("proxy_fence")] if fence else []
    loop = [*before, op("write", buf="C"), *fenced, op("tma_store", buf="C"), op("bulk_commit")]
    post = [op("bulk_wait", n=0)] if at_end else None
    return document(stages, {}, {"C": BYTES}, [role("all", loop, post=post)])


def _around(trips: str, guard: dict[str, int] | None = None) -> Document:
    """A slot is written before a loop and stored behind it, with a fence in the loop."""
    store = [op("tma_store", buf="C", idx_abs=0), op("bulk_commit"), op("bulk_wait", n=0)]
    all_ = role("all", [op("proxy_fence", guard=guard)], pre=[op("write", buf="C", idx_abs=0)], post=store)
    return document(1, {}, {"C": BYTES}, [all_], trips)


def _around_phases(trips: str) -> Document:
    """The same, stored by another role, to which only the last phase of a barrier says that it may."""
    made = _around(trips)
    write, store = made["roles"][0], role("store", [wait("done"), arrive("seen")])
    store["post"], write["post"] = [wait("done"), *write["post"]], [wait("seen", off=-1), arrive("done")]
    write["loop"] += [wait("done"), arrive("seen")]
    lead = role("lead", [arrive("done"), wait("seen")])
    return document(1, {"done": 1, "seen": 2}, made["buffers"], [write, store, lead], trips)


COMMITTED = [wait("full"), MMA[0], op("mma_arrive", bar="empty")]
SUMS = {"slots": 1, "space": "register"}


def _summed(kept: int, behind: int, post: int | None = 0) -> Document:
    """A product whose sums are in registers; slots are released an iteration late, or at once."""
    body = [wait("full"), MMA[0], ADD, MMA[1], op("mma_wait", n=kept), arrive("empty", off=-behind)]
    end = ([] if post is None else [op("mma_wait", n=post)]) + [arrive("empty", off=-1)] * behind + [SUM]
    consumer = {"pre": [op("write", buf="T", idx_abs=0)], "post": end}
    return plain(consume=body, consumer=consumer, buffers={"A": BYTES, "T": SUMS})


CP_ASYNC = [wait("empty", ph=-1), op("cp_async", buf="A"), op("cp_async_arrive", bar="full")]
BEHIND_A_FENCE = [wait("full"), op("proxy_fence"), *MMA, arrive("empty")]
GAP = [op("write", buf="A", off=2)]
FREED_FIRST = {"consumer": {"pre": FREE}, "consume": [wait("full"), *MMA, arrive("empty", ph=1)]}
HALF = {"count": 1, "slots": 2}
MORE = {"count": 1, "slots": 3}

LABELLED: list[dict[str, Any]] = [
    case("the ring of the page", "", plain(4), "safe"),
    case("plain arrival before a copy", "B1",
         plain(produce=[wait("empty", ph=-1), arrive("full"), LOAD[1]]), "tx_mismatch"),
    case("two copies, bytes of both", "", _two_loads(3 * BYTES), "safe"),
    case("two copies, bytes of one expected", "B2", _two_loads(BYTES), "tx_mismatch"),
    case("the box delivers less than is expected", "B2",
         plain(produce=[wait("empty", ph=-1), LOAD[0], {**LOAD[1], "bytes": BYTES - 256}]), "tx_mismatch",
         "mirage-project/mirage#699"),
    case("expect, copy, arrive", "", plain(produce=[wait("empty", ph=-1), EXPECT, LOAD[1], arrive("full")]), "safe"),
    case("expect without an arrival", "B3", plain(produce=[wait("empty", ph=-1), EXPECT, LOAD[1]]), "deadlock"),
    case("arrival before expect", "B3",
         plain(produce=[wait("empty", ph=-1), arrive("full"), EXPECT, LOAD[1]]), "race ub"),
    case("a single trip that arrives", "", _one_trip(True), "safe"),
    case("a single trip that only expects", "B3", _one_trip(False), "deadlock", "tile-ai/tilelang#2566"),
    case("the producer waits for phase 0 of a free slot", "B4", plain(produce=[wait("empty"), *LOAD]), "deadlock"),
    case("slots released before the loop", "", plain(produce=[wait("empty"), *LOAD], **FREED_FIRST), "safe"),
    case("inverted parity and slots released before the loop", "B4", plain(**FREED_FIRST), "ub race deadlock"),
    case("wrong parity of the consumer", "B4",
         plain(consume=[wait("full", flip=True), *MMA, arrive("empty")]), "race ub deadlock"),
    case("a count of threads where one of them arrives", "B5", plain(empty=128), "deadlock", "NVIDIA/cutlass#2404"),
    case("a count of one where two consumers arrive", "B5", plain(consumers=2, empty=1), "race ub deadlock"),
    case("a count of a warp where one thread arrives", "B5", plain(full=32), "deadlock", "NVIDIA/cutlass#2404"),
    case("a barrier of count 0", "B5", plain(full=0), "infeasible"),
    case("128 arrivals at once", "", plain(consume=[wait("full"), *MMA, arrive("empty", n=128)], empty=128), "safe"),
    case("no release", "B6", plain(consume=[wait("full"), *MMA]), "deadlock"),
    case("no acquire by the producer", "B6", plain(produce=LOAD), "race ub"),
    case("no wait by the consumer", "B6", plain(consume=[*MMA, arrive("empty")]), "race ub"),
    case("release of the previous slot", "", _release_previous(2), "safe"),
    case("release while the last mma runs", "B7",
         plain(consume=[wait("full"), MMA[0], MMA[1], op("mma_wait", n=1), arrive("empty")]), "race",
         "facebookexperimental/triton#273"),
    case("release before the wait for the mma", "B7",
         plain(consume=[wait("full"), *MMA[:2], arrive("empty"), MMA[2]]), "race"),
    case("an operand in one slot while the other has two", "B7",
         {**_two_loads(3 * BYTES), "buffers": {"A": {"bytes": BYTES}, "B": {"bytes": 2 * BYTES, "slots": 1}}}, "race",
         "triton-lang/triton#3106"),
    case("release of the previous slot with one stage", "B8",
         _release_previous(1), "deadlock", "triton-lang/triton#2868"),
    case("every warp arrives", "", _leader(False), "safe"),
    case("a leader arrives before its sibling has seen the phase", "B9",
         _leader(True), "race ub deadlock", "triton-lang/triton#10035"),
    case("counters that go on", "", _persistent(None), "safe"),
    case("counters that start again after three trips of two slots", "B10",
         _persistent(3), "race ub deadlock", "tile-ai/tilelang#2674"),
    case("a wait for one phase in every trip", "B10",
         plain(consume=[op("wait", bar="full", idx_abs=0), *MMA, arrive("empty")]), "race ub"),
    case("slot reuse waits for a fixed trip", "B10",
         plain(produce=[op("wait", bar="empty", idx_abs=0, guard={"from": 2}), *LOAD]), "race ub",
         "uccl-project/mKernel#18"),
    case("one consumer trip more", "B11", plain(consumer={"trip": "N+1"}), "deadlock"),
    case("one producer trip more", "B11", plain(producer={"trip": "N+1"}), "ub"),
    case("an epilogue waits for a tile that nobody loads", "B11",
         plain(consumer={"post": [wait("full"), *MMA]}), "deadlock", "Dao-AILab/flash-attention#2258"),
    case("values of the producer, fenced", "", plain(produce=WRITE), "safe"),
    case("a generic write under an mma", "B12", plain(produce=[*WRITE[:2], WRITE[3]]), "race"),
    case("a fence of the reader", "",
         plain(produce=[*WRITE[:2], WRITE[3]],
               consume=[wait("full"), op("proxy_fence"), *MMA, arrive("empty")]), "safe"),
    case("a generic write under a store", "B12", _staged(1, fence=False), "race"),
    case("a fence in every iteration of at least one", "", _around("N >= 1"), "safe"),
    case("a fence in every iteration of a loop that may not run", "B12", _around("N >= 0"), "race"),
    case("a fence in every iteration but the first", "", _around("N >= 2", {"from": 1}), "safe"),
    case("a fence in every iteration but the last", "", _around("N >= 2", {"until": 1}), "safe"),
    case("a fence in every iteration of at least one, behind phases that go on", "", _around_phases("N >= 1"), "safe"),
    case("a fence in every iteration of maybe none, behind phases that go on", "B12",
         _around_phases("N >= 0"), "race"),
    case("a refill behind generic reads and a fence", "",
         plain(consume=[wait("full"), *READ, arrive("empty")]), "safe"),
    case("a refill behind generic reads", "B12",
         plain(consume=[wait("full"), READ[0], arrive("empty")]), "race", "deepseek-ai/DeepEP#621"),
    case("a refill behind generic reads, in practice", "",
         plain(consume=[wait("full"), READ[0], arrive("empty")]), "safe", policy="practice"),
    case("store and load again, waits for all", "", _store_forward(2, 0), "safe"),
    case("store and load again, one group too many left", "B14",
         _store_forward(2, 1), "race", "deepseek-ai/DeepEP#657"),
    case("a staging ring", "", _staged(1), "safe"),
    case("a staging ring, one group too many left", "B14", _staged(2), "race"),
    case("a staging ring without waits", "B14", _staged(None), "race"),
    case("stores that nobody waits for at the end", "B14", _staged(1, at_end=False), "ub"),
    case("stores that nobody waits for at the end, in practice", "",
         _staged(1, at_end=False), "safe", policy="practice"),
    case("a slot that is stored from, drained before its release", "",
         plain(consume=[wait("full"), *STORE, op("bulk_wait", n=0), arrive("empty")]), "safe"),
    case("a slot that is stored from, released before it is drained", "B18",
         plain(consume=[wait("full"), *STORE, arrive("empty"), op("bulk_wait", n=0)]), "race"),
    case("fewer barriers than slots", "", plain(4, full=HALF, empty=HALF), "safe"),
    case("more barriers than slots", "B18", plain(2, full=MORE, empty=MORE), "race", "NVIDIA/Fuser#5862"),
    case("slots released when their mmas have finished", "", plain(consume=COMMITTED), "safe"),
    case("the release commits before the mma", "B7", plain(consume=[COMMITTED[0], *COMMITTED[:0:-1]]), "race"),
    case("a release beside a commit", "B5", plain(consume=[*COMMITTED, arrive("empty")]), "race ub deadlock"),
    case("sums in registers", "", _summed(0, 0, None), "safe"),
    case("sums in registers, slots released late", "", _summed(1, 1), "safe"),
    case("sums are read while the last multiply runs", "B15", _summed(1, 1, 1), "race"),
    case("sums are read and nothing waits for the last multiply", "B15", _summed(1, 1, None), "race"),
    case("copies of threads that arrive when they are done", "",
         plain(produce=CP_ASYNC, consume=BEHIND_A_FENCE), "safe"),
    case("copies of threads that arrive at once", "B6",
         plain(produce=[*CP_ASYNC[:2], arrive("full")], consume=BEHIND_A_FENCE), "race"),
    case("copies of threads under an mma without a fence", "B12", plain(produce=CP_ASYNC), "race"),
    case("a slot filled before the loop, and only two rounds later again", "B6",
         document(1, {}, {"A": BYTES}, [role("first", [], pre=CP_ASYNC[1:2]), role("later", GAP)]), "race"),
    case("a read before the loop of a slot that is filled again two rounds later", "B6",
         document(1, {}, {"A": BYTES}, [role("first", [], pre=[WRITE[1], READ[0]]), role("later", GAP)]), "race"),
    case("halves of a slot by a thread and by a copy, without a fence", "B12",
         document(1, {"full": 1}, {"A": BYTES}, [role("all", [], pre=[WRITE[1], *LOAD, wait("full")])]), "race"),
    case("a block barrier that two of three roles reach", "B20",
         _block_barrier(3), "deadlock", "flashinfer-ai/flashinfer#2996"),
    case("a barrier of the two roles that meet", "", _block_barrier(2), "safe"),
    case("a named barrier both sides wait for", "", _empty_work(True), "safe"),
    case("a release behind the loop that nobody waits for", "", plain(consumer={"post": [arrive("empty")]}), "safe"),
    case("an arrival behind the loop at a slot whose first phase nobody completes", "",
         document(4, {"a": 2}, {}, [role("one", [], post=[arrive("a")])]), "ub"),
    case("arrivals that nobody waits for", "", document(2, {"a": 1}, {}, [role("one", [arrive("a")])]), "safe"),
    case("arrivals of two roles in step that nobody waits for", "",
         document(1, {"a": 2, "b": 1, "c": 1}, {}, [role("one", [arrive("a"), arrive("b"), wait("c")]),
                                                    role("two", [wait("b"), arrive("a"), arrive("c")])]), "safe"),
    case("arrivals of two roles that nobody waits for, one of them early", "",
         document(1, {"a": 2, "b": 1, "c": 1}, {}, [role("one", [arrive("a"), arrive("b"), wait("c")]),
                                                    role("two", [wait("b"), arrive("c"), arrive("a")])]), "ub"),
    case("an arrival without a wait on an empty path", "B20", _empty_work(False), "ub deadlock",
         "vllm-project/vllm#26026"),
]  # fmt: skip


def answer(made: Document, policy: str = "strict") -> tuple[str, str, int]:
    """What the verifier says: "safe", "unknown" or "unsafe", then with the kind and the trip count of its run."""
    from layoutalg.ground.verdict import Proved, Unknown
    from layoutalg.proofs.pipeline import verify

    found = verify(made, policy=policy)
    if isinstance(found, Proved | Unknown):
        return ("safe" if isinstance(found, Proved) else "unknown"), "", 0
    return "unsafe", found.kind, found.trips


def judged(made: Document, policy: str = "strict", states: int = 200_000) -> tuple[str, int]:
    """What the judge says, and the last trip count that it looked at."""
    from judges import pipeline_judge

    verdict, n = pipeline_judge.safe(made, policy, states=states)
    return {True: "safe", False: "unsafe", None: "unknown"}[verdict], n


def possible(made: Document, n: int, policy: str = "strict", states: int = 200_000) -> set[str] | None:
    """Every kind that the judge finds for N = n, as the verifier names them; None where that takes too many states."""
    from judges import pipeline_judge

    found = pipeline_judge.explore(made, n, policy, states)
    return None if found is None else {kind.removeprefix("soft_") for kind in found}


def compared(seed: int, states: int = 60_000, kinds: bool = True) -> tuple[str, str, list[float]]:
    """The verdicts of judge and verifier on a drawn document, how they differ, and the seconds of both."""
    made = program(random.Random(seed))
    policy = "strict" if seed % 4 else "practice"
    start = time.perf_counter()
    said, kind, trips = answer(made, policy)
    middle = time.perf_counter()
    truth, n = judged(made, policy, states)
    spent = [middle - start, time.perf_counter() - middle]
    verdict, more = f"judge {truth}, verifier {said}", ""
    differs = {said, truth} == {"safe", "unsafe"}
    if kinds and said == truth == "unsafe":
        every = possible(made, trips, policy, states)
        if every is not None and kind not in every:
            differs, more = True, f", {sorted(every)}"
    where = f"{policy}, n = {n}: {verdict}{more} {kind} at {trips}\n  {json.dumps(made)}"
    return verdict, where if differs else "", spent


def differs(seed: int) -> str:
    """A campaign: drawn documents on which the verifier and the judge differ, or a kind that is not possible."""
    return compared(seed)[1]


def main() -> int:
    """Compare the verifier with the judge on many drawn documents, and print where they differ."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--states", type=int, default=60_000)
    parser.add_argument("--kinds", action="store_true", help="also whether the kind is possible")
    parser.add_argument("--unknown", action="store_true", help="also print what the verifier leaves open")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    spent = [0.0, 0.0]
    for seed in range(options.seed, options.seed + options.count):
        verdict, where, more = compared(seed, options.states, options.kinds)
        spent = [sum(both) for both in zip(spent, more, strict=True)]
        counts[verdict] += 1
        counts["disagreements"] += bool(where)
        if where or (options.unknown and verdict.endswith("unknown")):
            print(f"seed {seed}, {where or verdict}", flush=True)
    print(json.dumps(dict(counts.most_common()), indent=1))
    print(f"verifier {spent[0]:.1f} s, judge {spent[1]:.1f} s")
    return int(counts["disagreements"] > 0)


if __name__ == "__main__":
    tests = Path(__file__).resolve().parents[1]
    sys.path[:0] = [str(tests), str(tests.parent)]
    sys.exit(main())

"""Transfers and routes: what they derive, and the pipelines that a builder makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from judges.cluster_programs import exchange, gemm, grid

import layoutalg as la
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.verdict import Proved
from layoutalg.pipeline import Builder, Pipeline, Route, Transfer, verify
from layoutalg.proofs.bulk import BulkPlan
from layoutalg.proofs.pipeline.transfers import DRAINS, FILLS, PRIMITIVES, protocols

PLAN = la.tensormap(la.Tensor((1024, 1024), None, "bf16"), (64, 64), "Sw<3,3,3> o 0 o (64,64):(64,1)")


def by_transfers(stages: int, *roles: str, **buffers: Any) -> Pipeline:
    """A ring that one role fills and others drain, as its transfers say."""
    block = Builder(stages)
    tiles = block.ring("tiles", **buffers)
    tiles.acquire(block.role("load")).fill().commit()
    for name in roles or ("math",):
        tiles.wait(block.role(name)).drain().release()
    return block.pipeline()


def renamed(made: Any) -> Pipeline:
    """The document of a ring by hand, with the builder's names."""
    text = str(made)
    for short in ("full", "empty", "A", "B"):
        text = text.replace(f"'{short}'", f"'tiles.{short}'")
    return Pipeline.from_json(eval(text.replace("'math0'", "'math'")))


def loads(size: int, *ctas: tuple[int, ...], drain: str = "mma") -> Route:
    return Transfer(size, "tma_load", ctas=ctas).then(Transfer(size, drain))


def test_a_builder_derives_what_a_cluster_needs() -> None:
    made = by_transfers(4, A=loads(64), B=loads(64, (0, 1)))
    assert made == renamed(gemm(4, 2))
    assert isinstance(verify(made), Proved)
    both = by_transfers(2, A=loads(64, (0, 1), (2, 3)), B=loads(64, (0, 2), (1, 3)))
    assert both == renamed(grid(2))
    assert isinstance(verify(both), Proved)
    two = by_transfers(3, "first", "second", A=loads(64), B=loads(64, (0, 1, 2, 3)))
    assert dict(two.barriers)["tiles.empty"].count == 8
    assert isinstance(verify(two), Proved)


def test_slots_of_a_cluster_may_be_released_late() -> None:
    block = Builder(stages=3)
    tiles = block.ring("tiles", B=Transfer.of(PLAN, "tma_load", ctas=((0, 1),)))
    tiles.acquire(block.role("load")).load().commit()
    tiles.wait(block.role("math")).mma().release(behind=1)
    found = verify(block.pipeline())
    assert isinstance(found, Proved)
    assert found.to_certificate().check()


WAYS = [(name, protocol) for name in PRIMITIVES for protocol in protocols(name)]
PAIRS = [(one, other) for one in WAYS for other in WAYS if one[0] in FILLS and other[0] in DRAINS]


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize(("fill", "drain"), PAIRS)
def test_every_pair_of_ways_is_proved(stages: int, fill: tuple[str, str], drain: tuple[str, str]) -> None:
    route = Transfer(128, *fill).then(Transfer(128, *drain))
    made = by_transfers(stages, "one", "two", A=route)
    assert isinstance(verify(made), Proved)
    fences = [op.op for role in made.roles for op in role.loop].count("proxy_fence")
    assert bool(fences) >= bool(route.fences)
    assert route.source == PRIMITIVES[fill[0]][0]
    assert route.target == PRIMITIVES[drain[0]][1]


def test_parts_that_ctas_exchange() -> None:
    """The document of an exchange, and conversions of registers across a cluster, are routes."""
    copy = Transfer(192, "dsmem_copy", ctas=((0, 1, 2, 3),))
    assert copy.reaches == ((1, 2, 3), (2, 3, 0), (3, 0, 1), (0, 1, 2))
    assert (copy.share, copy.scope, copy.source, copy.target) == (64, "cluster", "shared", "shared")
    route = Transfer(192, "write").then(copy).then(Transfer(192, "read"))
    assert route.fences == ("before dsmem_copy", "before the next dsmem_copy")
    stated = exchange(1, 4)["roles"][0]["loop"][4]
    assert (stated["to"], stated["bytes"]) == ([list(each) for each in copy.reaches], copy.share)
    registers = Transfer(4096, "write").then(Transfer(4096, "read", ctas=((0, 1),)))
    assert (registers.scope, registers.fences, registers.source, registers.target) == (
        "cluster", (), "registers", "registers",
    )  # fmt: skip


def test_tiles_filled_in_two_ways() -> None:
    threads = Transfer(64, "cp_async").then(Transfer(64, "mma", "mbarrier"))
    signals = Transfer(64, "cp_async", "mbarrier").then(Transfer(64, "mma"))
    mixed = by_transfers(2, A=Transfer(64, "tma_load").then(Transfer(64, "mma", "mbarrier")), B=threads)
    assert [op.op for op in mixed.roles[0].loop[1:]] == [
        "expect", "tma_load", "cp_async", "cp_async_commit", "cp_async_wait", "proxy_fence", "arrive",
    ]  # fmt: skip
    assert [op.op for op in mixed.roles[1].loop] == ["wait", "mma", "mma", "mma_arrive"]
    assert isinstance(verify(mixed), Proved)
    assert isinstance(verify(by_transfers(2, A=loads(64), B=signals)), Proved)
    with pytest.raises(MalformedError, match="cp_async of one protocol"):
        by_transfers(2, A=threads, B=signals)
    with pytest.raises(MalformedError, match="must follow only reads that signal"):
        by_transfers(2, A=loads(64), B=threads)


def test_what_a_transfer_derives() -> None:
    load = Transfer.of(PLAN, "tma_load", ctas=[[0, 1], [2, 3]])
    assert (load.bytes, load.shape, load.share, load.scope) == (8192, (64, 64), 4096, "cluster")
    assert load.reaches == ((0, 1), (0, 1), (2, 3), (2, 3))
    assert Transfer.of(PLAN, "tma_load", ctas=[[0, 1]]).reaches == ((0, 1),)
    read = Transfer.of("(64,64):(64,1)", "read", dtype="bf16")
    assert (read.bytes, read.shape, read.scope, read.proxy, read.protocol) == (
        8192,
        (64, 64),
        "cta",
        "generic",
        "program",
    )
    assert Transfer.of("(64,64):(64,1)", "mma", dtype="e2m1").bytes == 2048
    route = load.then(read).then(Transfer(8192, "write")).then(Transfer(8192, "tma_store"))
    assert (route.shape, route.bytes, route.scope) == ((64, 64), 8192, "cluster")
    assert route.proxies == ("async", "generic", "generic", "async")
    assert route.fences == ("before tma_store", "before the next tma_load")
    assert (route.source, route.target) == ("global", "global")
    bulk = BulkPlan("cp.async.bulk", 2, (2, 8), (64, 1), ((0, 0, 16), (128, 16, 16)))
    assert Transfer.of(bulk, "tma_load").shape == (2, 8)
    assert Transfer.of(bulk, "tma_load").bytes == 32
    assert Transfer.of(np.int64(16), "read").bytes == 16
    store = la.tensormap(la.Tensor((1024, 1024), None, "bf16"), (64, 64), direction="store")
    assert Transfer.of(store, "tma_store").target == "global"


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Transfer(64, "ldmatrix"), "primitive"),
        (lambda: Transfer(64, "tma_load", "group"), "protocol of tma_load\n  since  must be one of mbarrier"),
        (lambda: Transfer(0, "read"), "must be at least 1"),
        (lambda: Transfer(64, "mma", ctas=((0, 1),)), "are for tma_load, dsmem_copy, read"),
        (lambda: Transfer(64, "dsmem_copy", ctas=((0,),)), "groups of at least two CTAs"),
        (lambda: Transfer(64, "dsmem_copy", ctas=((0, 1, 2, 3),)), "multiple of 16 bytes for 3 CTAs"),
        (lambda: by_transfers(2, A=Transfer(64, "dsmem_copy").then(Transfer(64, "read"))), "fills a slot"),
        (lambda: by_transfers(2, A=Transfer(64, "read", ctas=((0, 1),))), "CTA that has it"),
        (lambda: Transfer(64, "tma_load", ctas=((0, 2),)), "groups of one size of all CTAs"),
        (lambda: Transfer(96, "tma_load", ctas=((0, 1), (2,))), "groups of one size"),
        (lambda: Transfer(80, "tma_load", ctas=((0, 1),)), "a multiple of 16 bytes for 2 CTAs"),
        (lambda: Transfer.of(PLAN, "tma_store"), "must fit a plan that loads"),
        (lambda: Transfer.of("(64,64):(64,1)", "mma"), "a layout with dtype"),
        (lambda: Transfer(64, "tma_load").then(Transfer(64, "write")), "must begin with the space shared"),
        (lambda: Transfer(64, "tma_load").then(Transfer(32, "mma")), "must begin with the bytes 64"),
        (lambda: Transfer(64, "write", "", (8, 8)).then(Transfer(64, "mma", "", (4, 16))), "the shape (8, 8)"),
        (lambda: Route(()), "must be at least one"),
        (lambda: by_transfers(2, A=64), "must have a transfer by tma_load or cp_async or write"),
        (lambda: by_transfers(2, A=Transfer(64, "tma_load")), "must have a transfer by read or mma"),
        (lambda: by_transfers(2, A=Transfer(64, "read").then(Transfer(64, "write"))), "a transfer that fills"),
        (lambda: by_transfers(2, A=loads(64, (0, 1)), B=loads(64, (0, 1, 2, 3))), "must be those of one cluster"),
        (lambda: Builder(2).ring("t", A=loads(64)).acquire(Builder(2).role("a")).write(), "must be filled as"),
        (lambda: Builder(2).ring("t", A=loads(64)).wait(Builder(2).role("a")).read(), "must be read as"),
    ],
)  # fmt: skip
def test_what_does_not_fit(make: Any, told: str) -> None:
    with pytest.raises(MalformedError) as caught:
        make()
    assert told in str(caught.value)

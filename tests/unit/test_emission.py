"""Text from pipelines: what a program may be, and what its kernel does on the CPU."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from layoutalg.codegen import hostsim
from layoutalg.codegen.cuda import MAP_TYPE
from layoutalg.codegen.kernels.copy import copy_pipeline
from layoutalg.codegen.kernels.gemm import gemm_kernel
from layoutalg.codegen.kernels.gemm_forms import Form
from layoutalg.codegen.kernels.ring import mover, tile_plan
from layoutalg.codegen.launch import place_map
from layoutalg.codegen.pipeline.emission import Emitted, emit
from layoutalg.codegen.pipeline.program import Loop, Program, Worker
from layoutalg.ground.errors import AdmissibilityError, InfeasibleError, MalformedError
from layoutalg.proofs.pipeline import Barrier, Buffer, Op, Pipeline, Role
from layoutalg.proofs.pipeline.building import Builder
from layoutalg.proofs.pipeline.decision import verify
from layoutalg.targets.nvidia.registers import launch_registers

needs_compiler = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
ROWS, COLUMNS = 8, 64
BYTES = ROWS * COLUMNS * 4
Bodies = tuple[tuple[str, str], ...]


def load_plan(tiles: int) -> Any:
    return tile_plan((ROWS * tiles, COLUMNS), "u32", (ROWS, COLUMNS), "NONE", "sm_90a", "load")


def ring(stages: int, warps: int, arrive: int, *, behind: int = 0) -> Pipeline:
    """A role loads tiles; another reads them and hands slots back ``behind`` iterations later."""
    load = (
        Op("wait", bar="empty", ph=-1), Op("arrive_tx", bar="full", bytes=BYTES),
        Op("tma_load", buf="T", bar="full", bytes=BYTES),
    )  # fmt: skip
    use = (
        Op("wait", bar="full"), Op("read", buf="T"), Op("proxy_fence"),
        Op("arrive", bar="empty", n=arrive, off=-behind),
    )  # fmt: skip
    post = tuple([Op("arrive", bar="empty", n=arrive, off=-back) for back in range(behind, 0, -1)])
    return Pipeline(
        stages, (("full", Barrier(1, stages)), ("empty", Barrier(arrive, stages))), (("T", Buffer(stages, BYTES)),),
        (Role("load", loop=load), Role("use", loop=use, post=post)),
    )  # fmt: skip


def summing(pipeline: Pipeline, warps: int, tiles: int) -> Program:
    """Threads add up the words of all tiles at their own places."""
    plan = load_plan(tiles)
    words = BYTES // 4 // (32 * warps)
    word = f"la_shared_load_b32($T_byte + 4 * (t + i * {32 * warps}))"
    read = f"for (la_u32 i = 0; i < {words}; ++i) sum += (k + 1) * {word};"
    workers = (
        Worker((Loop("load", (("loop[2]", f"step_load(&from, $T, $bar, k * {ROWS}, 0);"),)),), elected=True),
        Worker((Loop("use", (("loop[1]", read),)),), warps, start="la_u32 sum = 0;"),
    )
    ended = dataclasses.replace(pipeline.roles[1], post=(*pipeline.roles[1].post, Op("read", buf="Out", idx_abs=0)))
    made = dataclasses.replace(
        pipeline, roles=(pipeline.roles[0], ended), buffers=(*pipeline.buffers, ("Out", Buffer(1, 16)))
    )
    out = f"post[{len(ended.post) - 1}]"
    bodies = (*workers[1].loops[0].bodies, (out, "sums[t] = sum;"))
    workers = (workers[0], dataclasses.replace(workers[1], loops=(Loop("use", bodies),)))
    parameters = ((MAP_TYPE, "from"), ("la_u32*", "sums"), ("int", "n"))
    return Program(
        made, workers, parameters, "n", plans=(("T", plan),), before=mover(plan, "step_load", "Loads a tile.")
    )


def run(made: Emitted, tiles: int, n: int, warps: int, seed: int) -> tuple[int, list[int], np.ndarray, np.ndarray]:
    room = np.zeros(BYTES * tiles // 4 + 64, dtype=np.uint32)
    first = -room.ctypes.data % 256 // 4
    source = room[first : first + BYTES * tiles // 4]
    source[:] = np.random.default_rng(5).integers(0, 1 << 16, source.size)
    sums, status = np.zeros(32 * warps, dtype=np.uint32), np.zeros(1, dtype=np.int32)
    raw = place_map(load_plan(tiles).raw, source.ctypes.data)
    fault = hostsim.run(
        made.kernel, [raw, sums, n, status], regions=[(source.ctypes.data, source.nbytes)], seed=seed
    )  # fmt: skip
    weights = np.arange(1, n + 1, dtype=np.uint32).repeat(BYTES // 4)
    wanted = (source[: n * BYTES // 4] * weights).reshape(-1, 32 * warps).sum(axis=0, dtype=np.uint32)
    return fault, [int(word) for word in status], sums, wanted


@needs_compiler
@pytest.mark.parametrize(
    ("stages", "warps", "arrive", "behind"),
    [(1, 1, 1, 0), (2, 2, 2, 0), (3, 2, 64, 0), (4, 4, 1, 0), (3, 1, 1, 1), (4, 2, 2, 2), (5, 2, 1, 3)],
)
def test_a_ring_hands_every_tile_over_once(stages: int, warps: int, arrive: int, behind: int) -> None:
    """For every N up to two turns of the ring and more, in several orders of threads."""
    tiles = 2 * stages + 3
    made = emit(summing(ring(stages, warps, arrive, behind=behind), warps, tiles), "ring")
    assert made.proof is not None
    for n in range(tiles + 1):
        fault, status, sums, wanted = run(made, tiles, n, warps, seed=n)
        assert hostsim.FAULTS[fault] == "none", n
        assert [made.gave_up(word) for word in status] == [""]
        assert np.array_equal(sums, wanted), n


@needs_compiler
@pytest.mark.parametrize(("stages", "late"), [(2, 1), (3, 2), (2, 3), (1, 2)])
def test_a_reader_may_be_iterations_late(stages: int, late: int) -> None:
    """Waits, reads and arrivals are of earlier indices, of other turns of the ring as well."""
    pipeline = ring(stages, 1, 1)
    load, use = pipeline.roles
    ops = tuple([dataclasses.replace(op, off=-late, first=late) if op.bar or op.buf else op for op in use.loop])
    behind = dataclasses.replace(pipeline, roles=(load, dataclasses.replace(use, loop=ops, trip=late)))
    program = summing(behind, 1, 2 * stages + 3)
    loop = program.workers[1].loops[0]
    bodies = tuple([(place, text.replace("(k + 1)", f"(k + 1 - {late})")) for place, text in loop.bodies])
    made = emit(changed(program, workers=workers(program, 1, loops=(Loop("use", bodies),))), "late")
    for n in range(2 * stages + 4):
        fault, status, sums, wanted = run(made, 2 * stages + 3, n, 1, seed=n)
        assert hostsim.FAULTS[fault] == "none", n
        assert [made.gave_up(word) for word in status] == [""]
        assert np.array_equal(sums, wanted), n


@needs_compiler
def test_one_thread_may_arrive_many_times() -> None:
    """The loader hands a slot over with its copy's arrival and two more."""
    pipeline = ring(2, 1, 1)
    load, use = pipeline.roles
    more = dataclasses.replace(load, loop=(*load.loop, Op("arrive", bar="full", n=2)))
    barriers = (("full", Barrier(3, 2)), pipeline.barriers[1])
    made = emit(summing(dataclasses.replace(pipeline, barriers=barriers, roles=(more, use)), 1, 5), "many")
    assert "la_arrive_many(" in made.kernel.text[made.kernel.text.rindex("extern") :]
    fault, status, sums, wanted = run(made, 5, 5, 1, seed=2)
    assert hostsim.FAULTS[fault] == "none"
    assert [made.gave_up(word) for word in status] == [""]
    assert np.array_equal(sums, wanted)


def test_readers_release_to_the_cluster() -> None:
    """Roles that only multiply have nothing to release."""
    pipeline = ring(2, 1, 1)
    load, use = pipeline.roles
    ops = (*use.loop[:3], dataclasses.replace(use.loop[3], to=((0, 1),)))
    barriers = (pipeline.barriers[0], ("empty", Barrier(2, 2)))
    both = dataclasses.replace(pipeline, cluster=2, barriers=barriers, roles=(load, dataclasses.replace(use, loop=ops)))
    text = emit(summing(both, 1, 3), "both", unproved=True).kernel.text
    body = text[text.rindex("extern") :]
    assert "la_arrive_remote(" in body
    assert "la_arrive_remote_relaxed(" not in body
    text = gemm_kernel((256, 256, 128), form=Form(64, 128, 1, cluster=2)).kernel.text
    body = text[text.rindex("extern") :]
    assert "la_arrive_remote(" not in body
    assert "la_arrive_remote_relaxed(" in body


@needs_compiler
def test_a_pipeline_of_the_builder_is_emitted() -> None:
    """Its names have dots."""
    block = Builder(stages=3)
    tiles = block.ring("tiles", T=BYTES)
    tiles.acquire(block.role("load")).load().commit()
    tiles.wait(block.role("use")).read().release()
    plan = load_plan(5)
    read = "for (la_u32 i = 0; i < 16; ++i) sums[t] += (k + 1) * la_shared_load_b32($tiles_T_byte + 4 * (t + i * 32));"
    workers = (
        Worker((Loop("load", (("loop[2]", f"step_load(&from, $tiles_T, $bar, k * {ROWS}, 0);"),)),), elected=True),
        Worker((Loop("use", (("loop[1]", read),)),)),
    )
    parameters = ((MAP_TYPE, "from"), ("la_u32*", "sums"), ("int", "n"))
    before = mover(plan, "step_load", "Loads a tile.")
    program = Program(block.pipeline(), workers, parameters, "n", plans=(("tiles.T", plan),), before=before)
    made = emit(program, "ring")
    assert [name for name, _, _ in made.kernel.barriers] == ["tiles.full", "tiles.empty"]
    fault, status, sums, wanted = run(made, 5, 5, 1, seed=3)
    assert hostsim.FAULTS[fault] == "none"
    assert [made.gave_up(word) for word in status] == [""]
    assert np.array_equal(sums, wanted)


@needs_compiler
def test_a_wait_that_gives_up_is_named() -> None:
    """The consumer hands back nothing: after as many tiles as slots the loader waits in vain."""
    pipeline = ring(2, 1, 1)
    use = dataclasses.replace(pipeline.roles[1], loop=pipeline.roles[1].loop[:3])
    wrong = dataclasses.replace(pipeline, roles=(pipeline.roles[0], use))
    program = summing(wrong, 1, 5)
    with pytest.raises(AdmissibilityError, match="LA986") as told:
        emit(program, "ring")
    assert "deadlock" in str(told.value)
    made = emit(program, "ring", unproved=True)
    assert "NOT PROVED" in made.kernel.text
    fault, status, _, _ = run(made, 5, 5, 1, seed=0)
    assert hostsim.FAULTS[fault] != "none" or made.gave_up(status[0]).startswith(
        "load gave up in iteration 2: wait empty"
    )


@pytest.mark.parametrize(
    ("status", "words"),
    [(1, ""), (0, "did not finish: status 0"), (2 | 9 << 8, "did not finish"), (3, "did not finish"),
     (2 | 1 << 8 | 7 << 16, "load gave up in iteration 7: wait empty[k], phase -1")],
)  # fmt: skip
def test_a_status_says_which_wait_gave_up(status: int, words: str) -> None:
    made = emit(summing(ring(2, 1, 1), 1, 3), "ring")
    assert words in made.gave_up(status)
    assert bool(made.gave_up(status)) == (status != 1)


def changed(program: Program, **fields: Any) -> Program:
    return dataclasses.replace(program, **fields)


def workers(program: Program, place: int, **fields: Any) -> tuple[Worker, ...]:
    found = list(program.workers)
    found[place] = dataclasses.replace(found[place], **fields)
    return tuple(found)


def rings(program: Program, count: int, slots: int) -> Any:
    return (("full", Barrier(count, slots)), *program.pipeline.barriers[1:])


REFUSED = [
    (lambda p: changed(p, workers=p.workers[:1]), "each role once"),
    (lambda p: changed(p, workers=(*p.workers, p.workers[1])), "each role once"),
    (lambda p: changed(p, workers=workers(p, 0, loops=(Loop("load", ()),))), r"must have loop\[2\]"),
    (
        lambda p: changed(p, workers=workers(p, 0, loops=(Loop("load", (("loop[0]", ";"),)),))),
        "must be one of tma_load",
    ),
    (lambda p: changed(p, workers=workers(p, 0, loops=(Loop("load", (("loop[9]", ";"),)),))), "bodies of load"),
    (lambda p: changed(p, workers=workers(p, 1, warps=0)), "warps"),
    (lambda p: changed(p, workers=workers(p, 1, warps=40)), "warps"),
    (lambda p: changed(p, workers=workers(p, 1, warps=3)), "one thread, each warp, or every thread"),
    (lambda p: changed(p, workers=workers(p, 1, registers=100)), "multiple of 8"),
    (lambda p: changed(p, workers=workers(p, 0, equal=2)), "one thread runs everything"),
    (lambda p: changed(p, pipeline=dataclasses.replace(p.pipeline, barriers=rings(p, 0, 2))), "count of full"),
    (lambda p: changed(p, pipeline=dataclasses.replace(p.pipeline, barriers=rings(p, 1, 0))), "slots of full"),
    (lambda p: changed(p, plans=(("X", p.plans[0][1]),)), "plans"),
    (lambda p: changed(p, plans=(("Out", p.plans[0][1]),)), "at least the plan's"),
]


@pytest.mark.parametrize(("change", "words"), REFUSED)
def test_what_no_kernel_can_be_is_refused(change: Any, words: str) -> None:
    with pytest.raises(MalformedError, match=words):
        change(summing(ring(2, 2, 2), 2, 3))


def in_turn(wait: Op, arrive: Op, steps: str = "2", alone: bool = False) -> Program:
    """Two workers multiply and then signal each other: the second role of the one waits for that of the other."""
    first = Role("a", loop=(Op("proxy_fence"),))
    roles = (first, Role("b", loop=(wait,)), dataclasses.replace(first, name="c"), Role("d", loop=(arrive,)))
    signals = (Loop("d", (), steps),) if alone else (Loop("c", (), "5"), Loop("d", (), steps))
    kept = [role for role in roles if not (alone and role.name == "c")]
    pipeline = Pipeline(2, (("s", Barrier(1, 2)),), (), tuple(kept))
    return Program(
        pipeline, (Worker((Loop("a", (), "5"), Loop("b", (), "2"))), Worker(signals)), (("int", "n"),), turns="n"
    )


def test_roles_that_follow_others_may_wait_for_their_like() -> None:
    """Only roles at one place of their turns, as often, and for nothing that is done later."""
    assert in_turn(Op("wait", bar="s"), Op("arrive", bar="s", n=1))
    assert in_turn(Op("wait", bar="s", off=-1), Op("arrive", bar="s", n=1))
    for program, told in (
        (
            lambda: in_turn(Op("wait", bar="s"), Op("arrive", bar="s", n=1, off=-1)),
            "d.loop.0. does in a later iteration",
        ),
        (lambda: in_turn(Op("wait", bar="s"), Op("arrive", bar="s", n=1), steps="3"), "must run as"),
        (lambda: in_turn(Op("wait", bar="s"), Op("arrive", bar="s", n=1), alone=True), "must run as"),
        (lambda: in_turn(Op("wait", bar="s", idx_abs=0), Op("arrive", bar="s", n=1)), "must run as"),
    ):
        with pytest.raises(MalformedError, match=told):
            program()


def test_accumulators_are_used_behind_a_wait() -> None:
    """The pipeline states them: a wait that is missing or too weak is refuted."""
    program = gemm_kernel((64, 64, 192), form=Form(64, 64, 1, stages=3, behind=1)).emitted.program
    load, math, store = program.pipeline.roles
    for loop in (store.loop[1:], (dataclasses.replace(store.loop[0], n=1), *store.loop[1:])):
        roles = (load, math, dataclasses.replace(store, loop=loop))
        found = verify(dataclasses.replace(program.pipeline, roles=roles))
        assert (found.kind, found.role, found.buffer) == ("race", "math0", "acc0")
    with pytest.raises(AdmissibilityError, match="LA986"):
        emit(changed(program, pipeline=dataclasses.replace(program.pipeline, roles=roles)), "wrong")


def test_accumulators_are_stated_and_read() -> None:
    program = gemm_kernel((64, 64, 192), form=Form(64, 64, 1, stages=2)).emitted.program
    load, math, store = program.pipeline.roles
    bodies = tuple((f"loop[{int(place[5]) - 1}]", text) for place, text in program.workers[1].loops[1].bodies[1:])
    loops = (program.workers[1].loops[0], dataclasses.replace(program.workers[1].loops[1], bodies=bodies))
    unread = dataclasses.replace(store, loop=(store.loop[0], *store.loop[2:]))
    unstated = dataclasses.replace(math, pre=(), loop=(*math.loop[:3], *math.loop[4:]))
    ended = dataclasses.replace(math, post=(Op("mma_wait"), Op("read", buf="acc0", idx_abs=0)))
    for roles, told in (
        ((load, math, unread), "must read its accumulators, or a role on its threads, not .'acc0'."),
        ((load, unstated, unread), "must state its accumulators"),
        ((load, ended, dataclasses.replace(unread, threads_of="load")), "threads_of of store0"),
    ):
        pipeline = dataclasses.replace(program.pipeline, roles=roles)
        with pytest.raises(MalformedError, match=told):
            changed(program, pipeline=pipeline, workers=workers(program, 1, loops=loops))
    own = [dataclasses.replace(program.workers[1], loops=(loop,)) for loop in program.workers[1].loops]
    with pytest.raises(MalformedError, match="must be the first role of its worker, behind which it runs, not 'math0'"):
        changed(program, workers=(program.workers[0], *own))


def test_buffers_of_equal_roles_are_equal_and_follow_each_other() -> None:
    """Their text has one number of slots, and one distance from role to role."""
    program = gemm_kernel((128, 64, 64), form=Form(128, 64, 2, stages=2)).emitted.program
    a, b, first, second, *sums = program.pipeline.buffers
    deep = (second[0], dataclasses.replace(second[1], slots=2))
    for buffers in ((a, b, first, deep, *sums), (first, a, b, second, *sums), (a, b, second, first, *sums)):
        with pytest.raises(MalformedError, match="must have the ops of"):
            changed(program, pipeline=dataclasses.replace(program.pipeline, buffers=buffers))


def test_bytes_that_are_not_the_plans_are_refused() -> None:
    program = summing(ring(2, 1, 1), 1, 3)
    load = program.pipeline.roles[0]
    half = dataclasses.replace(load, loop=(*load.loop[:2], dataclasses.replace(load.loop[2], bytes=BYTES // 2)))
    with pytest.raises(MalformedError, match="must be the plan's"):
        changed(program, pipeline=dataclasses.replace(program.pipeline, roles=(half, program.pipeline.roles[1])))


def test_a_body_with_an_unknown_name_is_refused() -> None:
    program = summing(ring(2, 1, 1), 1, 3)
    odd = workers(program, 0, loops=(Loop("load", (("loop[2]", "step_load(&from, $S, $bar);"),)),))
    with pytest.raises(MalformedError, match="must use only \\$T"):
        emit(changed(program, workers=odd), "ring")


def test_more_shared_memory_than_a_block_has_is_refused() -> None:
    pipeline = copy_pipeline(4, 2, 65536, 65536)
    loops = (Loop("load", (("loop[2]", ";"),)),), (Loop("store", (("loop[1]", ";"),)),)
    program = Program(pipeline, tuple([Worker(each, elected=True) for each in loops]), ())
    with pytest.raises(InfeasibleError, match="LA946"):
        emit(program, "copy")


def test_registers_at_launch() -> None:
    assert [launch_registers(threads) for threads in (128, 256, 384, 512, 1024)] == [256, 256, 168, 128, 64]


def test_registers_that_the_block_does_not_have_are_refused() -> None:
    """The last ``setmaxnreg.inc`` would wait for ever."""
    program = summing(ring(2, 8, 8), 8, 3)
    with pytest.raises(MalformedError, match="launched with"):
        emit(changed(program, workers=workers(program, 1, registers=240)), "ring")


def test_more_roles_than_named_barriers_are_refused() -> None:
    names = [f"r{number}" for number in range(16)]

    def ops(name: str) -> tuple[Op, ...]:
        done = Op("arrive", bar=f"done{name}", n=1, idx_abs=0)
        return Op("write", buf=f"T{name}", idx_abs=0), Op("proxy_fence"), done

    barriers = tuple([(f"done{name}", Barrier(1, 1)) for name in names])
    buffers = tuple([(f"T{name}", Buffer(1, 16)) for name in names])
    pipeline = Pipeline(1, barriers, buffers, tuple([Role(name, pre=ops(name)) for name in names]))
    many = tuple([Worker((Loop(name, (("pre[0]", ";"),)),), 2) for name in names])
    with pytest.raises(MalformedError, match="15 roles of several warps"):
        emit(Program(pipeline, many, ()), "many")

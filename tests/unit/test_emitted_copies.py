"""Copies by threads and named barriers on the CPU: right kernels in many orders, wrong ones found."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from instruments.drawn_programs import Drawn
from instruments.handmade import gather, gather_case, run_gather

from layoutalg.codegen import hostsim
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.launch import place_map
from layoutalg.codegen.pipeline import Loop, Program, Worker, emit
from layoutalg.codegen.portable import TENSOR_PRELUDE
from layoutalg.codegen.prelude import CP_ASYNC_PRELUDE, NAMED_PRELUDE, PIPELINE_PRELUDE
from layoutalg.ground.errors import AdmissibilityError, MalformedError
from layoutalg.proofs.pipeline.document import Pipeline
from layoutalg.synth.tensormap import synthesize_tensormap

needs_compiler = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
FORMS: list[dict[str, Any]] = [
    {}, {"stages": 1, "width": 4}, {"stages": 2, "warps": (1, 3), "width": 8}, {"stages": 4, "warps": (4, 1)},
    {"groups": True}, {"groups": True, "stages": 2, "warps": (3, 2), "width": 4},
]  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_rows_are_gathered_bit_by_bit(form: dict[str, Any]) -> None:
    made = emit(gather(**form), "bags")
    assert made.proof is not None
    for many in (0, 1, 16, 17, 150):
        for seed in range(7):
            report, gave_up, right = run_gather(made, many, seed)
            assert (report.fault, report.why, gave_up, right) == (0, "", "", True), (many, seed)


@needs_compiler
@pytest.mark.parametrize(
    ("form", "old", "new", "words"),
    [
        ({}, r"la_wait_phase\(barriers \+ 0[^;]*;", "", "shared memory that a load in flight writes was used"),
        ({}, r"la_wait_phase\(barriers \+ 24[^;]*;", "", "a load in flight writes"),
        ({}, r"la_cp_async_arrive\([^;]*;", "", r"add waits for full\[0\], phase 0: 64 of 64"),
        ({}, r"la_cp_async_arrive\(", "if (t != 5) la_cp_async_arrive(", r"full\[0\], phase 0: 1 of 64"),
        ({}, r"la_cp_async_arrive\(", "la_arrive(", "shared memory that a load in flight writes was used"),
        ({}, r"la_cp_async_arrive\(([^;]*);", r"la_cp_async_arrive(\1, la_cp_async_arrive(\1;", "missed its phase"),
        ({}, r"each < many \? 16 : 0\)", "16)", "wrong"),
        ({}, r"\* \(each < many \? index\[each\] : 0\)", "* 41", "global address"),
        ({}, r"16 \* part, from", "16 * part, from + 1", "multiple of the access size"),
        ({}, r"\+ 16 \* part, from", "+ 24 * part, from", "multiple of the access size"),
        ({}, r"la_sync_warp\(\);\s*if \(leader\)", "if (leader)", "shared memory|wrong"),
        ({"groups": True}, r"la_cp_async_wait<1>", "la_cp_async_wait<2>", "a load in flight writes"),
        ({"groups": True}, r"la_cp_async_wait<0>\(\);", "", "a load in flight writes"),
        ({"groups": True}, r"la_cp_async_commit\(\);", "", "a load in flight writes"),
    ],
)
def test_a_wrong_gather_is_found(form: dict[str, Any], old: str, new: str, words: str) -> None:
    """With at least one of the first seeds."""
    made = emit(gather(**form), "bags")
    start = made.kernel.text.rindex('extern "C"')
    body, many = re.subn(old, new, made.kernel.text[start:], count=1)
    assert many == 1, made.kernel.text[start:]
    wrong = replace(made, kernel=replace(made.kernel, text=made.kernel.text[:start] + body))
    found = []
    for seed in range(5):
        report, gave_up, right = run_gather(wrong, 100, seed)
        told = [hostsim.FAULTS[report.fault], report.why, *map(str, report.waits), gave_up, "" if right else "wrong"]
        found.append(" ".join(told))
    assert re.search(words, "\n".join(found)), found


def turns() -> dict[str, Any]:
    """Two readers that take turns, the second one with the first one's value."""
    return dict(Drawn(2, "write", 1, 4, 0, 1, (2, 2), 0, (9, 4), 0, 0).document.to_json())


def drop(document: dict[str, Any], role: int, part: str, place: int) -> None:
    del document["roles"][role][part][place]


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "no arrival of the first": lambda d: d["roles"][1]["loop"].pop(),
    "no arrival of the second": lambda d: d["roles"][2]["loop"].pop(),
    "nobody begins": lambda d: d["roles"][2].pop("pre"),
    "both begin": lambda d: d["roles"][1].update(pre=[{"op": "bar_arrive", "id": 4}]),
    "another number": lambda d: d["roles"][1]["loop"][-1].update(id=5),
    "its own number": lambda d: d["roles"][1]["loop"][-1].update(id=9),
    "other threads": lambda d: d["roles"][1]["loop"][-1].update(threads=64),
    "more threads everywhere": lambda d: [
        op.update(threads=160) for role in d["roles"] for part in ("pre", "loop", "post") for op in role.get(part, ())
        if "id" in op
    ],
    "no wait": lambda d: drop(d, 2, "loop", 3),
}  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("name", CHANGES)
def test_turns_that_go_wrong_are_refused_and_found(name: str) -> None:
    right = Drawn(2, "write", 1, 4, 0, 1, (2, 2), 0, (9, 4), 0, 0)
    document = copy.deepcopy(turns())
    CHANGES[name](document)
    if name == "no wait":  # places of the texts move
        with pytest.raises(AdmissibilityError, match="LA986"):
            emit(_changed(right, document, {4: 3, 5: 4}), "turns")
        return
    program = _changed(right, document, {})
    with pytest.raises((AdmissibilityError, MalformedError), match=r"LA986|LA970"):
        emit(program, "turns")
    try:
        wrong = emit(program, "turns", unproved=True)
    except MalformedError as refused:
        assert "LA970" in str(refused)  # no number of threads could meet
        return
    ends = [right.run(wrong, 4, seed) for seed in range(5)]
    assert any(report.fault or gave_up or not same for report, gave_up, same in ends)


def _changed(right: Drawn, document: dict[str, Any], moved: dict[int, int]) -> Program:
    program = right.program
    workers = list(program.workers)
    if moved:
        bodies = tuple(
            [
                (f"loop[{moved.get(int(place[5:-1]), int(place[5:-1]))}]", text)
                for place, text in workers[2].loops[0].bodies
            ]
        )
        workers[2] = replace(workers[2], loops=(Loop("read1", bodies),))
    return replace(program, pipeline=Pipeline.from_json(document), workers=tuple(workers))


def test_numbers_of_role_barriers_are_those_that_the_document_leaves() -> None:
    """Roles of two warps meet at 1, 2, ...; a document that names these gets others."""

    def numbers(turns: tuple[int, int]) -> set[int]:
        drawn = Drawn(1, "write", 2, 4, 0, 1, (1, 1), 0, turns, 0, 0)
        text = emit(drawn.program, "turns").kernel.text
        found = re.findall(r"la_role_barrier\((\d+), (\d+)\)", text[text.rindex('extern "C"') :])
        return {int(number) for number, threads in found if threads == "64"}

    assert numbers((9, 4)) == {1, 2, 3}
    assert numbers((1, 3)) == {2, 4, 5}
    assert numbers((2, 1)) == {3, 4, 5}


def _ring(**changes: Any) -> dict[str, Any]:
    """A gather's document with other entries of its ops."""
    document = copy.deepcopy(gather().pipeline.to_json())
    for place, entries in changes.items():
        role, part, index = place.split("_")
        document["roles"][int(role[1:])][part][int(index)] |= entries
    return document


def test_what_threads_cannot_copy_is_refused() -> None:
    program = gather()
    with pytest.raises(MalformedError, match=r"must have loop\[1\]"):
        replace(program, workers=(Worker((Loop("gather", ()),), 2), program.workers[1]))
    with pytest.raises(MalformedError, match="must have the n 64: each thread arrives for its own copies"):
        replace(program, pipeline=Pipeline.from_json(_ring(r0_loop_2={"n": 2})))
    document = _ring()
    document["buffers"]["X"] = {"bytes": 64}
    document["roles"][0]["loop"].insert(2, {"op": "write", "buf": "X"})
    document["roles"][1]["loop"].insert(1, {"op": "read", "buf": "X"})
    with pytest.raises(MalformedError, match="must be cp_async_wait and arrive where X is handed over too"):
        replace(program, pipeline=Pipeline.from_json(document))
    document = _ring()
    document["roles"][1]["loop"].insert(0, {"op": "cp_async_commit"})
    workers = (Worker((program.workers[0].loops[0], Loop("add", (("loop[2]", ";"),), steps="1")), 2),)
    with pytest.raises(MalformedError, match=r"must not (wait for barriers|copy by the threads of gather)"):
        replace(program, pipeline=Pipeline.from_json(document), workers=workers, turns="1")


@pytest.mark.parametrize(("number", "words"), [(0, "from 1 to 15"), (16, "from 1 to 15")])
def test_named_barriers_that_a_block_does_not_have_are_refused(number: int, words: str) -> None:
    with pytest.raises(MalformedError, match=words):
        _ = Drawn(1, "write", 2, 4, 0, 1, (1, 1), 0, (number, 3), 0, 0).program


@needs_compiler
def test_each_block_of_a_cluster_meets_alone() -> None:
    """All blocks compute the same, each with its own slots and named barriers."""
    drawn = Drawn(2, "arrive", 1, 16, 0, 1, (1, 2), 0, (9, 4), 3, 0)
    made = emit(replace(drawn.program, pipeline=replace(drawn.document, cluster=2)), "pair")
    source = np.arange(7 * 128, dtype=np.uint32)
    wanted = drawn.results(source, 7)
    for seed in range(4):
        into, status = np.zeros_like(wanted), np.zeros(2, dtype=np.int32)
        report = hostsim.examine(made.kernel, [source, into, 7, status], seed=seed, cluster=2, blocks=2)
        assert (report.fault, report.why, status.tolist()) == (0, "", [1, 1])
        assert (into == wanted).all()


@needs_compiler
def test_one_thread_arrives_once_all_have_waited_for_their_copies() -> None:
    drawn = Drawn(2, "groups", 2, 8, 0, 1, (1,), 0, None, 0, 0)
    made = emit(drawn.program, "groups")
    for seed in range(4):
        report, gave_up, right = drawn.run(made, 5, seed)
        assert (report.fault, report.why, gave_up, right) == (0, "", "", True)


def test_one_thread_meets_nobody() -> None:
    drawn = Drawn(1, "write", 1, 4, 0, 1, (1,), 0, None, 3, 0)
    program = drawn.program
    with pytest.raises(MalformedError, match="one thread cannot meet others"):
        replace(program, workers=(replace(program.workers[0], elected=True), program.workers[1]))


def test_what_is_of_tcgen05_is_refused() -> None:
    program = gather()
    document = _ring()
    document["roles"][1]["loop"][2] = {"op": "mma_arrive", "bar": "empty"}
    with pytest.raises(MalformedError, match="tcgen05 is not emitted"):
        replace(program, pipeline=Pipeline.from_json(document))
    document = _ring()
    document["buffers"]["D"] = {"space": "tensor", "bytes": 64}
    with pytest.raises(MalformedError, match="tcgen05 and tensor memory are not"):
        replace(program, pipeline=Pipeline.from_json(document))


def test_more_roles_and_named_barriers_than_a_block_has_are_refused() -> None:
    drawn = Drawn(1, "write", 2, 4, 0, 1, (1, 1), 0, (1, 2), 0, 0)
    document = drawn.document.to_json()
    for number in range(3, 15):
        document["roles"][1]["pre"] = [*document["roles"][1].get("pre", []), {"op": "bar_sync", "id": number}]
    pipeline = Pipeline.from_json(document)
    with pytest.raises(MalformedError, match="15 roles of several warps, less one for each barrier it names"):
        emit(replace(drawn.program, pipeline=pipeline), "turns")


# One text, one case per number, of 64 threads; `into` gets what is read, `map` stores 16 bytes.
COPY, DONE = "la_cp_async_4(at + 4 * t, from + t); ", "la_cp_async_commit(); la_cp_async_wait<0>(); "
STORE = "la_tma_store_1d(&map, at, 0); la_store_commit(); la_store_wait(); "
CASES = {
    "waited for": COPY + DONE,
    "words of one granule": f"la_cp_async_4(at + 4 * (t ^ 1), from + t); {DONE}",
    "no wait": COPY + "la_cp_async_commit();",
    "no commit": COPY + "la_cp_async_wait<0>();",
    "an older group": f"la_cp_async_commit(); {COPY} la_cp_async_commit(); la_cp_async_wait<1>();",
    "two copies at once": COPY + COPY + DONE,
    "zeros": f"la_cp_async_fill_4(at + 4 * t, from + 999999, 0); {DONE}",
    "too many bytes": f"la_cp_async_fill_4(at + 4 * t, from + t, 5); {DONE}",
    "stored unfenced": f"if (t == 0) {{ la_cp_async_16(at, from); {DONE} {STORE} }}",
    "stored": f"if (t == 0) {{ la_cp_async_16(at, from); {DONE} la_fence_async(); {STORE} }}",
    "fenced by another": f"if (t < 4) {COPY} {DONE} __syncthreads(); if (t == 63) {{ la_fence_async(); {STORE} }}",
    "fenced too early": f"if (t == 0) {{ la_cp_async_16(at, from); la_fence_async(); {DONE} {STORE} }}",
    "arrives twice": "if (t < 32) { la_role_arrive(5, 64); la_role_arrive(5, 64); }",
    "arrives and waits": "if (t < 32) la_role_arrive(5, 64); else la_role_barrier(5, 64);",
    "waits alone": "if (t < 32) la_role_barrier(5, 64);",
    "other threads": "if (t < 32) la_role_arrive(5, 64); else la_role_barrier(5, 32);",
}
ENDS = {
    "no wait": "load in flight", "no commit": "load in flight", "an older group": "load in flight",
    "two copies at once": "load in flight", "too many bytes": "global address", "stored unfenced": "la_fence_async",
    "fenced too early": "la_fence_async", "arrives twice": "role barrier", "waits alone": "deadlock",
    "other threads": "role barrier",
}  # fmt: skip
FILL_KERNEL = """
extern "C" __global__ void __launch_bounds__(64) cases(
    const __grid_constant__ la_tensor_map map, const la_u32* from, la_u32* into, int which)
{
    const la_u32 at = la_shared_address(la_shared()), t = threadIdx.x;
    switch (which) {
CASES
    }
    __syncthreads();
    into[t] = la_shared_load_b32(4 * t);
}
"""


@needs_compiler
@pytest.mark.parametrize("name", CASES)
def test_copies_and_meetings_of_the_models(name: str) -> None:
    branches = "\n".join(f"    case {number}: {{ {text} break; }}" for number, text in enumerate(CASES.values()))
    text = TENSOR_PRELUDE + PIPELINE_PRELUDE + NAMED_PRELUDE + CP_ASYNC_PRELUDE + FILL_KERNEL.replace("CASES", branches)
    parameters = (("const __grid_constant__ la_tensor_map", "map"), ("const la_u32*", "from"), ("la_u32*", "into"))
    kernel = KernelSource("cases", text, "sm_90a", 64, 1024, (*parameters, ("int", "which")))
    table, _ = gather_case(0)
    source, into = table.reshape(-1), np.zeros(64, dtype=np.uint32)
    room = np.zeros(64, dtype=np.uint32)
    out = room[-room.ctypes.data % 128 // 4 :][:4]
    plan = synthesize_tensormap(
        {
            "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "store",
            "global": {"shape": [4], "stride": [1], "dtype": "u32", "base_align_bytes": 128}, "tile": [4],
            "smem": {"modes": [[[4, 1]]], "swizzle": "NONE"},
        }
    )  # fmt: skip
    raw = place_map(plan.raw, out.ctypes.data)
    for seed in range(4) if name not in ENDS else (0,):
        report = hostsim.examine(kernel, [raw, source, into, list(CASES).index(name)], seed=seed, regions=[
            (source.ctypes.data, source.nbytes), (out.ctypes.data, out.nbytes)])  # fmt: skip
        assert ENDS.get(name, "none") in hostsim.FAULTS[report.fault], report
        if name in ("waited for", "zeros"):
            assert (into == (source[:64] if name == "waited for" else 0)).all()
        if name.startswith(("stored", "fenced by")) and name not in ENDS:
            assert (out == source[:4]).all()

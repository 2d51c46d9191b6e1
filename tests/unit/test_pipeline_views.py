"""Pictures of proofs and runs of pipelines, and the ledger, judged by the machine of docs/pipelines.md."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

import layoutalg as la
from layoutalg.cli import main
from layoutalg.draw.timeline import Timeline, in_turn, of_proof, of_run
from layoutalg.ground.verdict import Unknown
from layoutalg.pipeline import Builder, Pipeline, Refuted, verify
from layoutalg.proofs.pipeline.decision import Proved
from layoutalg.proofs.pipeline.machine import Machine, Task


def gemm(stages: int = 4, behind: int = 0) -> Pipeline:
    """A ring of two operands that one role fills and another multiplies."""
    block = Builder(stages)
    tiles = block.ring("tiles", A=16384, B=32768)
    load, math = block.role("load"), block.role("math")
    tiles.acquire(load).load().commit()
    tiles.wait(math).mma().release(behind=behind)
    return block.pipeline()


def staged() -> Pipeline:
    """Three roles: loads, arithmetic by ordinary accesses, stores."""
    block = Builder(stages=3, least=1)
    tiles, result = block.ring("tiles", A=1024), block.ring("result", stages=2, C=512)
    load, work, store = block.role("load"), block.role("work"), block.role("store")
    tiles.acquire(load).load().commit()
    full = tiles.wait(work).read()
    made = result.acquire(work).write()
    full.release()
    made.commit()
    result.wait(store).store().release(behind=1)
    return block.pipeline()


def broken(made: Pipeline, role: int, place: int, **change: Any) -> Refuted:
    document: Any = made.to_json()
    document["roles"][role]["loop"][place] |= change
    found = verify(document)
    assert isinstance(found, Refuted)
    return found


def uneven() -> Pipeline:
    """Two operands in rings of different depth, and a barrier named as a role."""
    text = json.dumps(gemm(2).to_json()).replace("tiles.empty", "math")
    document: Any = json.loads(text)
    document["buffers"]["tiles.A"]["slots"] = 3
    return Pipeline.from_json(document)


def counted() -> Pipeline:
    """The ring with all threads of a warpgroup arriving."""
    document: Any = gemm().to_json()
    document["barriers"]["tiles.empty"]["count"] = document["roles"][1]["loop"][5]["n"] = 128
    return Pipeline.from_json(document)


SAFE = {
    "one stage": gemm(1), "ring": gemm(), "lag": gemm(4, behind=1), "lag 2": gemm(4, behind=2), "staged": staged(),
    "uneven": uneven(), "counted": counted(),
}  # fmt: skip
WRONG = {
    "race": broken(gemm(), 1, 4, n=1), "deadlock": broken(gemm(), 0, 0, ph=0), "bytes": broken(gemm(), 0, 1, bytes=64),
    "early": broken(gemm(4, behind=1), 1, 5, off=0), "fence": broken(staged(), 1, 4, op="mma_commit"),
    "phase": broken(staged(), 1, 0, ph=-1),
}  # fmt: skip


def proved(made: Pipeline) -> Timeline:
    found = verify(made)
    assert isinstance(found, Proved)
    assert found.subject is not None
    return of_proof(found.subject[2])


def where(machine: Machine, task: Task) -> tuple[int | None, int | None]:
    """The slot and the phase of a task."""
    if task.bar < 0:
        return (machine.slots[task.buf][1] if task.buf >= 0 else None), None
    return (machine.slots[task.buf] if task.buf >= 0 else machine.barriers[task.bar])[1], task.phase


class TestTimelines:
    @pytest.mark.parametrize("made", SAFE.values(), ids=SAFE)
    def test_ops_of_a_role_follow_each_other(self, made: Pipeline) -> None:
        timeline = proved(made)
        for number, role in enumerate(made.roles):
            marks = [mark for mark in timeline.marks if mark.role == number]
            assert all(one.start < one.end <= other.start for one, other in itertools.pairwise(marks))
            machine = Machine(made, timeline.trips, "strict")
            shown = [(op, mark.k, mark.slot, mark.phase) for mark in marks for op in mark.ops]
            assert shown == [(task.op, task.k, *where(machine, task)) for task in machine.tasks[number]], role.name

    @pytest.mark.parametrize("made", SAFE.values(), ids=SAFE)
    def test_a_slot_is_filled_after_all_have_read_it(self, made: Pipeline) -> None:
        timeline = proved(made)
        for (_, slots), mine in itertools.groupby(
            sorted(timeline.fills, key=lambda fill: (fill.buffer, fill.slot, fill.index)),
            lambda fill: (fill.buffer, fill.slot),
        ):
            fills = list(mine)
            assert all(fill.start < fill.full < fill.empty for fill in fills)
            assert all(one.empty <= other.start for one, other in itertools.pairwise(fills)), slots
        wraps = {fill.index for fill in timeline.fills if fill.index >= made.stages}
        assert wraps, "the picture ends before a slot is used again"

    @pytest.mark.parametrize("made", SAFE.values(), ids=SAFE)
    def test_a_wait_passes_when_its_phase_has_completed(self, made: Pipeline) -> None:
        timeline = proved(made)
        waits = {(mark.role, mark.end - 1) for mark in timeline.marks if mark.ops[0].op == "wait"}
        assert {(one.role, one.end) for one in timeline.passings} <= waits
        assert all(one.start <= one.end for one in timeline.passings)
        first = sum(mark.ops[0].op == "wait" and (mark.phase or 0) < 0 for mark in timeline.marks)
        assert len(timeline.passings) == len(waits) - first

    def test_the_loads_run_ahead_until_the_ring_is_full(self) -> None:
        timeline = proved(gemm(4))
        loads = [mark.start for mark in timeline.marks if mark.ops[0].op == "tma_load"]
        reads = [mark.end for mark in timeline.marks if mark.ops[0].op == "arrive"]
        assert sum(start < reads[0] for start in loads) == 4

    @pytest.mark.parametrize("found", WRONG.values(), ids=WRONG)
    def test_a_run_is_shown_event_by_event(self, found: Refuted) -> None:
        assert found.run is not None
        timeline = of_run(found.run)
        names = [role.name for role in timeline.pipeline.roles]
        own = [event for event in found.interleaving if not re.search("the copy is done|arrives$", event[1])]
        stuck = {"deadlock", "tx_mismatch"} & {found.kind}
        marks = [mark for mark in timeline.marks if not (stuck and mark in timeline.wrong)]
        assert [(names[mark.role], str(mark.ops[0]), mark.k) for mark in marks] == own
        assert timeline.wrong
        passed = [mark for mark in marks if mark.ops[0].op == "wait" and (mark.phase or 0) >= 0]
        assert [(one.role, one.end) for one in timeline.passings] == [(mark.role, mark.start) for mark in passed]
        assert all(one.start <= one.end for one in timeline.passings)
        if found.kind == "deadlock":
            assert {mark.ops[0].op for mark in timeline.wrong} == {"wait"}
        elif found.kind == "race":
            assert timeline.wrong == timeline.marks[-1:]
            assert timeline.spot is not None
            assert timeline.spot[:2] == (found.buffer, found.slot)

    def test_what_is_still_read_keeps_its_slot(self) -> None:
        assert WRONG["race"].run is not None
        timeline = of_run(WRONG["race"].run)
        wrong = timeline.marks[-1]
        kept = [fill for fill in timeline.fills if fill.buffer == wrong.ops[0].buf and fill.slot == wrong.slot]
        assert kept[-1].empty == timeline.end

    def test_a_pipeline_that_is_not_decided_shows_a_run_in_turn(self) -> None:
        document: Any = gemm().to_json()
        document["roles"][1]["loop"].insert(3, {"op": "mma_commit", "guard": {"from": 1}})
        value = Pipeline.from_json(document)
        assert isinstance(verify(value), Unknown)
        assert in_turn(value, "strict").marks
        assert "it proves nothing" in la.draw.svg(value)


class TestPictures:
    @pytest.mark.parametrize("made", SAFE.values(), ids=SAFE)
    def test_a_pipeline_and_its_proof_have_the_same_picture(self, made: Pipeline) -> None:
        picture = la.draw.svg(made)
        body = picture.partition(">")[2]
        assert body == la.draw.svg(verify(made)).partition(">")[2]
        assert f"safe for every N &gt;= {made.least}" in picture
        assert 'class="w"' not in picture
        assert all(f">{role.name}</text>" in picture for role in made.roles)
        assert made._repr_mimebundle_()["image/svg+xml"] == picture
        assert la.draw.text(made) == str(made)

    @pytest.mark.parametrize("found", WRONG.values(), ids=WRONG)
    def test_a_refutation_names_slot_and_phase_and_has_the_wrong_event_in_red(self, found: Refuted) -> None:
        picture = la.draw.svg(found)
        assert f">{found.kind}: " in picture
        assert f"slot {found.slot}" in picture
        assert found.phase is None or f"phase {found.phase}, N {found.trips}" in picture
        assert picture.count('class="w"') >= 2
        assert all(repair.name in picture for repair in found.repairs)

    def test_operands_of_one_copy_share_their_rows(self) -> None:
        assert ">tiles.A, tiles.B</text>" in la.draw.svg(gemm())
        assert ">tiles.A, tiles.B</text>" not in la.draw.svg(uneven())

    def test_without_a_run_there_is_still_the_reason(self) -> None:
        document: Any = gemm().to_json()
        document["barriers"]["tiles.full"]["count"] = 0
        assert "0 arrivals per phase" in la.draw.svg(verify(document))
        document = gemm(stages=900).to_json()
        assert "bytes of shared memory" in la.draw.svg(Pipeline.from_json(document))

    def test_a_deep_ring_and_a_long_run_stay_within_bounds(self) -> None:
        block = Builder(stages=64)
        tiles = block.ring("tiles", A=256)
        load, math = block.role("load"), block.role("math")
        tiles.acquire(load).load().commit()
        tiles.wait(math).mma().release()
        made = block.pipeline()
        assert "56 more slots" in la.draw.svg(made)
        wrong: Any = made.to_json()
        wrong["roles"][1]["loop"].pop()
        picture = la.draw.svg(verify(wrong))
        assert re.search(r"after \d+ earlier events", picture)
        assert len(picture) < 80_000


class TestCommands:
    def test_documents_are_drawn_and_explained(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        document, picture = tmp_path / "pipeline.json", tmp_path / "pipeline.svg"
        document.write_text(json.dumps(gemm().to_json()), encoding="utf-8")
        assert main(["draw", str(document), "-o", str(picture)]) == 0
        assert picture.read_text(encoding="utf-8") == la.draw.svg(verify(gemm())) + "\n"
        assert main(["explain", str(document)]) == 0
        assert capsys.readouterr().out == f"{la.explain(gemm())}\n"
        assert main(["draw", str(document)]) == 0
        assert capsys.readouterr().out.startswith("proved")


class TestLedgers:
    @pytest.mark.parametrize("made", [*SAFE.values(), *(found.subject[0] for found in WRONG.values() if found.subject)])
    def test_its_phases_are_those_of_the_machine(self, made: Pipeline) -> None:
        told = la.explain(made).to_json()
        barriers: Any = told["barriers"]
        for trips in (12, 17):
            owed: dict[tuple[str, int], list[int]] = {}
            for task in [task for tasks in Machine(made, trips, "strict").tasks for task in tasks]:
                op = task.op
                if op.on_barrier:
                    name = op.bar
                    slot = Machine(made, trips, "strict").barriers[task.bar][1]
                    entry = owed.setdefault((name, task.phase * made.rings[name] + slot), [0, 0, 0])
                    entry[0] += op.n if op.op == "arrive" else int(op.op == "arrive_tx")
                    entry[1] += task.bytes if op.op in ("expect", "arrive_tx") else 0
                    entry[2] += task.bytes if op.op == "tma_load" else 0
            told_of: dict[tuple[str, int], list[int]] = {}
            for name, barrier in barriers.items():
                for phase in barrier["phases"]:
                    numbers = range(eval(phase["from"], {"N": trips}), eval(phase["until"], {"N": trips}))
                    entry = [phase[key] for key in ("arrivals", "expected_bytes", "delivered_bytes")]
                    told_of |= {(name, number): entry for number in numbers}
            assert told_of == owed

    def test_a_path_orders_every_read_and_every_next_write(self) -> None:
        buffers: Any = la.explain(gemm())["buffers"]
        for name in ("tiles.A", "tiles.B"):
            read, write = buffers[name]["orders"]
            assert read["path"][1:3] == ["tiles.full completes", "math.loop[0] wait passes"]
            assert write["path"][-3:-1] == ["tiles.empty completes", "load.loop[0] wait passes (k+4)"]
        fenced: Any = la.explain(staged())["buffers"]
        assert [order["fence"] for order in fenced["tiles.A"]["orders"]] == [False, True]
        assert any("proxy_fence" in step for step in fenced["tiles.A"]["orders"][1]["path"])

    def test_prompt_text_and_data_say_the_same(self) -> None:
        for made in (gemm(), gemm(4, behind=1), staged()):
            told = la.explain(made)
            assert (told.kind, told.holds) == ("pipeline", True)
            assert repr(told).count("\n") <= 20
            assert str(told).startswith(f"verdict         safe for every N >= {made.least}")
            document = json.loads(json.dumps(told.to_json()))
            assert document == la.explain(made.to_json()).to_json()
            for barrier in document["barriers"].values():
                for phase in barrier["phases"]:
                    assert all(by["op"] in str(told) for by in phase["by"])

    def test_what_is_not_proved_does_not_hold(self) -> None:
        told = la.explain(WRONG["race"].subject[0] if WRONG["race"].subject else None)
        assert not told.holds
        assert "race: load's tma_load of index 4 starts in tiles.A[0] while math's mma still reads index 0" in str(told)
        document = gemm().to_json() | {"phase_reset_every": 6}
        told = la.explain(document)
        assert "counters start again every 6 iterations" in str(told)
        assert "barriers" not in told.data

"""Pipelines: documents and their errors, verdicts with their runs and repairs, rings written as code, the command."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

import layoutalg as la
from layoutalg.cli import main
from layoutalg.codegen.pipeline.program import Loop, Program, Worker
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.verdict import Proved, Refuted, Unknown
from layoutalg.pipeline import Builder, Op, Pipeline, verify
from layoutalg.proofs.pipeline.explore import delayed
from layoutalg.proofs.pipeline.machine import Machine

LOAD = [
    {"op": "wait", "bar": "empty", "ph": -1},
    {"op": "arrive_tx", "bar": "full", "bytes": 1024},
    {"op": "tma_load", "buf": "A", "bar": "full"},
]
USE = [
    {"op": "wait", "bar": "full"},
    {"op": "mma", "buf": "A"},
    {"op": "mma_commit"},
    {"op": "mma_wait", "n": 0},
    {"op": "arrive", "bar": "empty"},
]


def ring(*roles: dict[str, Any], stages: int = 3, **more: Any) -> dict[str, Any]:
    """A ring with one buffer; by default one producer and one consumer."""
    made = {
        "schema": "layoutalg/pipeline/1",
        "stages": stages,
        "barriers": {"full": {"count": 1}, "empty": {"count": 1}},
        "buffers": {"A": {"bytes": 1024}},
        "roles": list(roles) or [{"name": "load", "loop": LOAD}, {"name": "use", "loop": USE}],
        **more,
    }
    return copy.deepcopy(made)


class TestDocuments:
    def test_a_document_is_read_and_written(self) -> None:
        made = ring(trips="N >= 2", phase_reset_every=12)
        made["roles"][0]["loop"][0]["guard"] = {"from": 1, "until": 2}
        made["roles"][1]["trip"] = "N - 1"
        made["buffers"]["B"] = {"slots": 1, "space": "tensor"}
        value = Pipeline.from_json(made)
        assert value.least == 2
        assert value.reset == 12
        assert value.roles[1].trip == -1
        assert value.rings == {"full": 3, "empty": 3, "A": 3, "B": 1}
        assert Pipeline.from_json(json.dumps(value.to_json())) == value

    @pytest.mark.parametrize(
        ("place", "entry", "told"),
        [
            (("roles", 0, "loop", 0, "op"), "await", "/roles/0/loop/0/op"),
            (("roles", 0, "loop", 0, "bar"), "emty", "load.loop[0].bar\n  since  must be one of full, empty"),
            (("roles", 0, "loop", 2, "buf"), "B", "load.loop[2].buf\n  since  must be one of A"),
            (("roles", 0, "loop", 0, "n"), 1, "/roles/0/loop/0/n"),
            (("roles", 1, "loop", 4, "n"), 0, "/roles/1/loop/4, n\n  since  must be in [1, 1048576)"),
            (("roles", 1, "trip"), "2N", "/roles/1/trip"),
            (("trips",), "N > 0", "/trips"),
            (("roles", 1, "name"), "load", "must not be used twice"),
            (("barriers", "full", "count"), "1", "/barriers/full/count"),
            (("stages",), 1 << 20, "stages"),
            (("roles", 0, "loop", 0, "off"), 1 << 40, "/roles/0/loop/0, off\n  since  must be within"),
            (("extra",), 1, "/extra"),
        ],
    )
    def test_errors_name_the_place(self, place: tuple[Any, ...], entry: object, told: str) -> None:
        made: Any = ring()
        inner = made
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = entry
        with pytest.raises(MalformedError) as caught:
            Pipeline.from_json(made)
        assert told in str(caught.value)

    def test_ops_have_only_their_entries(self) -> None:
        with pytest.raises(MalformedError, match="must name a barrier"):
            Op("arrive", n=1)
        with pytest.raises(MalformedError, match="is not for an op read"):
            Op("read", buf="A", bar="full")

    @pytest.mark.parametrize(
        ("kind", "space", "told"),
        [
            ("mma_write", "shared", "must be a buffer in tensor memory or registers for an op mma_write"),
            ("tma_store", "tensor", "must be a buffer in shared memory for an op tma_store"),
            ("cp_async", "register", "must be a buffer in shared memory for an op cp_async"),
            ("mma", "local", "/buffers/A/space"),
        ],
    )
    def test_ops_are_for_memory_of_one_space(self, kind: str, space: str, told: str) -> None:
        made = ring(buffers={"A": {"space": space}})
        made["roles"] = [{"name": "one", "loop": [{"op": kind, "buf": "A"}]}]
        with pytest.raises(MalformedError, match=told):
            Pipeline.from_json(made)


ADD = {"op": "mma_write", "buf": "T", "idx_abs": 0}
SUM = {"op": "read", "buf": "T", "idx_abs": 0}


class TestTensorMemory:
    """A product whose iterations add to one accumulator; another role reads it when the last has finished."""

    def product(self, epilogue: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        made = ring(**{"trips": "N >= 1"} | more)
        made["barriers"] |= {"done": {"count": 1, "slots": 1}}
        made["buffers"]["T"] = {"slots": 1, "space": "tensor", "bytes": 1 << 20}
        use = [*USE[:2], ADD, {"op": "mma_arrive", "bar": "empty"}]
        post = [{"op": "mma_arrive", "bar": "done", "idx_abs": 0}]
        made["roles"][1] = {"name": "use", "loop": use, "post": post}
        made["roles"].append({"name": "epilogue", "pre": epilogue})
        return made

    def test_an_accumulator_of_all_iterations_is_proved(self) -> None:
        found = verify(self.product([{"op": "wait", "bar": "done", "idx_abs": 0}, SUM]))  # its bytes are not shared
        assert isinstance(found, Proved)
        assert found.to_certificate().check()
        assert la.draw.svg(found)
        assert "before the read: use.loop[2] mma_write done, use.post[0] mma_arrive done, done completes" in str(
            la.explain(self.product([{"op": "wait", "bar": "done", "idx_abs": 0}, SUM]))
        )

    def test_it_is_not_read_before(self) -> None:
        found = verify(self.product([SUM, {"op": "wait", "bar": "done", "idx_abs": 0}]))
        assert isinstance(found, Refuted)
        assert (found.kind, found.role, found.buffer, found.trips) == ("race", "epilogue", "T", 1)

    def test_no_kernel_is_emitted_that_would_keep_it_in_shared_memory(self) -> None:
        pipeline = Pipeline.from_json(self.product([]))
        workers = tuple([Worker((Loop(role.name, ()),)) for role in pipeline.roles])
        with pytest.raises(MalformedError, match="must have its buffers in shared memory or registers: tcgen05"):
            Program(pipeline, workers, ())

    def test_without_iterations_nobody_has_written_it(self) -> None:
        found = verify(self.product([{"op": "wait", "bar": "done", "idx_abs": 0}, SUM], trips="N >= 0"))
        assert isinstance(found, Refuted)
        assert found.trips == 0


class TestRegisters:
    """The accumulators of a product whose results another role, on the same threads, writes out."""

    def product(self, *store: dict[str, Any], behind: int = 1, **more: Any) -> dict[str, Any]:
        made = ring(**more)
        made["buffers"]["T"] = {"slots": 1, "space": "register", "bytes": 1 << 20}
        release = {"op": "arrive", "bar": "empty", "off": -behind}
        loop = [*USE[:2], ADD, USE[2], {"op": "mma_wait", "n": behind}, release]
        post = [{"op": "mma_wait"}, {"op": "arrive", "bar": "empty", "off": -1}] if behind else []
        zero = [{"op": "write", "buf": "T", "idx_abs": 0}]
        made["roles"][1] = {"name": "use", "pre": zero, "loop": loop, "post": post}
        made["roles"].append({"name": "store", "threads_of": "use", "loop": list(store)})
        return made

    @pytest.mark.parametrize("behind", [0, 1])
    def test_results_are_read_behind_a_wait(self, behind: int) -> None:
        made = self.product({"op": "mma_wait"}, SUM, behind=behind)
        found = verify(made)
        assert isinstance(found, Proved)
        assert found.to_certificate().check()
        assert Pipeline.from_json(Pipeline.from_json(made).to_json()) == Pipeline.from_json(made)
        assert "on the threads of use" in str(Pipeline.from_json(made))
        assert "use.post[1] read" in str(la.explain(made))

    @pytest.mark.parametrize(
        "store", [[SUM], [{"op": "mma_wait", "n": 1}, SUM], [SUM, {"op": "mma_wait"}],
                  [{"op": "mma_wait", "guard": {"from": 1}}, SUM]],
    )  # fmt: skip
    def test_a_missing_or_weak_wait_is_refuted(self, store: list[dict[str, Any]]) -> None:
        found = verify(self.product(*store))
        assert isinstance(found, Refuted)
        assert (found.kind, found.role, found.buffer, found.trips) == ("race", "use", "T", 1)
        assert any(str(repair).startswith("wait for all groups: store.loop") for repair in found.repairs)
        assert isinstance(verify(self.product(*store, behind=0)), Proved)  # there the loop waits itself

    def test_without_zeros_some_iteration_must_have_written_it(self) -> None:
        made = self.product({"op": "mma_wait"}, SUM)
        del made["roles"][1]["pre"]
        assert verify(made).kind == "race"
        assert isinstance(verify({**made, "trips": "N >= 1"}), Proved)

    def test_its_bytes_are_those_of_threads(self) -> None:
        made = self.product({"op": "mma_wait"}, SUM, stages=2)
        assert isinstance(verify(made), Proved)  # 1 MiB is no shared memory
        made["roles"][1]["warps"], made["roles"][0]["warps"] = 4, 4
        assert verify(made).witness["what"] == "2048 registers of each thread of use for its buffers; it has 255"
        made["buffers"]["T"]["bytes"] = 4 * 128 * 200
        assert isinstance(verify(made), Proved)
        made["roles"][1]["registers"], made["roles"][0]["registers"] = 192, 24
        assert verify(made).witness["what"].startswith("200 registers of each thread of use")

    @pytest.mark.parametrize(
        ("role", "told"),
        [
            ({"name": "other", "loop": [SUM]}, "must not be T, registers of the threads of use, not 'other'"),
            ({"name": "other", "threads_of": "use", "loop": []}, "must not be those of a third role, not 'other'"),
            ({"name": "other", "threads_of": "store", "loop": []}, "threads_of of other"),
            ({"name": "other", "threads_of": "load", "loop": [LOAD[0]]}, "must be an op of load"),
            ({"name": "other", "threads_of": "load", "loop": [USE[1]]}, "must be an op of load"),
            ({"name": "other", "threads_of": "load", "loop": [USE[2]]}, "must be an op of load"),
            ({"name": "other", "threads_of": "load", "warps": 1}, "must state no warps"),
        ],
    )
    def test_registers_are_of_one_role(self, role: dict[str, Any], told: str) -> None:
        made = self.product({"op": "mma_wait"}, SUM)
        made["roles"].append(role)
        with pytest.raises(MalformedError) as caught:
            Pipeline.from_json(made)
        assert told in str(caught.value)

    @pytest.mark.parametrize("op", [{"op": "write", "buf": "T", "idx_abs": 0}, {"op": "read", "buf": "T"}])
    def test_a_role_on_other_threads_only_reads_them(self, op: dict[str, Any]) -> None:
        with pytest.raises(MalformedError, match="must read registers of use in its loop, by idx_abs"):
            Pipeline.from_json(self.product(op))


class TestVerdicts:
    def test_a_ring_is_proved_for_every_n(self) -> None:
        for stages in (1, 2, 8):
            found = verify(ring(stages=stages))
            assert isinstance(found, Proved)
            assert found

    @pytest.mark.parametrize(("stages", "behind"), [(2, 1), (3, 2), (4, 2), (4, 3), (6, 5)])
    def test_slots_may_be_released_late_whatever_n_is(self, stages: int, behind: int) -> None:
        block = Builder(stages)
        tiles = block.ring("tiles", A=64)
        load, use = block.role("load"), block.role("use")
        tiles.acquire(load).load().commit()
        tiles.wait(use).mma().release(behind=behind)
        found = verify(block.pipeline())
        assert isinstance(found, Proved)
        assert found.to_certificate().check()

    def test_a_refutation_names_place_and_run(self) -> None:
        made = ring()
        made["roles"][1]["loop"][3]["n"] = 1
        found = verify(made)
        assert isinstance(found, Refuted)
        assert not found
        assert (found.kind, found.role, found.buffer, found.slot, found.trips) == ("race", "load", "A", 0, 4)
        assert found.interleaving[-1] == ("load", "tma_load A[k], full[k]", 3)
        assert ("use", "arrive empty[k]", 0) in found.interleaving
        assert "mma_wait 1" in str(found)
        assert found.to_json()["witness"]["interleaving"][0] == ["load", "wait empty[k], phase -1", 0]

    def test_repairs_are_proved(self) -> None:
        made = ring()
        made["roles"][1]["loop"][3]["n"] = 1
        repairs = verify(made).repairs
        assert repairs[0].name == "wait for all groups"
        assert all(isinstance(verify(repair.document), Proved) for repair in repairs)

    def test_an_arrival_for_a_slot_that_is_still_read_is_moved_to_the_one_before(self) -> None:
        block = Builder(stages=4)
        tiles = block.ring("tiles", A=64)
        load, use = block.role("load"), block.role("use")
        tiles.acquire(load).load().commit()
        tiles.wait(use).mma().release(behind=1)
        made: Any = block.pipeline().to_json()
        del made["roles"][1]["loop"][4]["off"]
        repair = verify(made).repairs[0]
        assert str(repair) == "arrive for tiles.empty[k-1]: use.loop[4], arrive tiles.empty[k]"
        assert Pipeline.from_json(repair.document) == block.pipeline()

    def test_a_deadlock_tells_who_waits_for_what(self) -> None:
        made = ring()
        del made["roles"][1]["loop"][4]
        found = verify(made)
        assert found.kind == "deadlock"
        assert found.witness["what"] == (
            "load waits for empty[0] phase 0: 0 of 1 arrival, nobody arrives; "
            "use waits for full[0] phase 1: 0 of 1 arrival, load never arrives"
        )

    @pytest.mark.parametrize(
        ("loop", "told"),
        [
            ([{"op": "arrive", "bar": "full"}], "use waits for full[0] phase 0: 1 of 3 arrivals, nobody else arrives"),
            (
                [{"op": "arrive_tx", "bar": "full", "bytes": 2048}, {"op": "arrive", "bar": "full", "n": 2}, LOAD[2]],
                "use waits for full[0] phase 0: 3 of 3 arrivals, 1024 bytes outstanding, nobody copies",
            ),
            (
                [{"op": "arrive", "bar": "full", "n": 2}, {"op": "wait", "bar": "empty"}, *LOAD[1:]],
                "load waits for empty[0] phase 0: 0 of 1 arrival, use never arrives; "
                "use waits for full[0] phase 0: 2 of 3 arrivals, load never arrives",
            ),
            (
                [{"op": "arrive_tx", "bar": "full", "bytes": 1024}, {"op": "arrive", "bar": "full", "n": 2},
                 {"op": "wait", "bar": "empty"}, LOAD[2]],
                "use waits for full[0] phase 0: 3 of 3 arrivals, 1024 bytes outstanding, load never copies",
            ),
        ],
    )  # fmt: skip
    def test_a_hang_says_what_is_missing(self, loop: list[dict[str, Any]], told: str) -> None:
        made = ring({"name": "load", "loop": loop}, {"name": "use", "loop": USE})
        made["barriers"]["full"]["count"] = 3
        machine = Machine(Pipeline.from_json(made), 1, "strict")
        run = delayed(machine)
        assert run is not None
        assert told in run.violation.what

    def test_a_hang_names_who_would_copy_from_another_block(self) -> None:
        loop = [{"op": "arrive_tx", "bar": "got", "bytes": 64}, {"op": "wait", "bar": "got"},
                {"op": "dsmem_copy", "src": "S", "buf": "R", "bar": "got", "bytes": 64, "to": [[1], [0]]}]  # fmt: skip
        made = {"schema": "layoutalg/pipeline/1", "stages": 2, "cluster": 2, "barriers": {"got": {"count": 1}},
                "buffers": {"S": {"bytes": 64}, "R": {"bytes": 64}},
                "roles": [{"name": "all", "loop": loop}]}  # fmt: skip
        assert "64 bytes outstanding, all@1 never copies" in str(verify(made).witness["what"])

    def test_an_arrival_that_states_no_bytes_expects_none(self) -> None:
        load = [{"op": "wait", "bar": "empty", "ph": -1}, {"op": "write", "buf": "A"},
                {"op": "arrive_tx", "bar": "full"}]  # fmt: skip
        use = [{"op": "wait", "bar": "full"}, {"op": "read", "buf": "A"}, {"op": "read", "buf": "C", "idx_abs": 0},
               {"op": "arrive", "bar": "empty"}]  # fmt: skip
        made = {"schema": "layoutalg/pipeline/1", "stages": 1, "phase_reset_every": 2, "buffers": {"A": {}, "C": {}},
                "barriers": {"full": {"count": 1}, "empty": {"count": 1}},
                "roles": [{"name": "load", "loop": load}, {"name": "use", "loop": use}]}  # fmt: skip
        assert isinstance(verify(made), Proved)
        assert delayed(Machine(Pipeline.from_json(made), 3, "strict")) is None

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            ({"stages": 0}, "no slots"),
            ({"barriers": {"full": {"count": 0}, "empty": {"count": 1}}}, "0 arrivals"),
            ({"barriers": {"full": {"count": 1 << 20}, "empty": {"count": 1}}}, "1048576 arrivals"),
            ({"buffers": {"A": {"bytes": 1 << 17}}}, "bytes of shared memory"),
        ],
    )
    def test_what_no_block_has_room_for(self, change: dict[str, Any], told: str) -> None:
        found = verify({**ring(), **change})
        assert found.kind == "infeasible"
        assert told in found.witness["what"]

    def test_policies(self) -> None:
        made = ring()
        made["roles"][1]["loop"][1:4] = [{"op": "read", "buf": "A"}]
        assert verify(made).kind == "race"
        assert isinstance(verify(made, policy="practice"), Proved)
        with pytest.raises(MalformedError, match="policy"):
            verify(made, policy="lax")
        with pytest.raises(MalformedError):
            verify(made, target="sm_1")

    def test_unknown_is_neither(self) -> None:
        made = ring()
        made["roles"][1]["loop"][2]["guard"] = {"until": 0, "from": 0}
        made["roles"][1]["loop"].insert(3, {"op": "mma_commit", "guard": {"from": 1}})
        found = verify(made)
        assert isinstance(found, Unknown)
        with pytest.raises(ValueError, match="guarded mma_commit"):
            bool(found)

    def test_a_tile_loaded_once_and_an_accumulator(self) -> None:
        made = ring()
        made["barriers"] |= {"q": {"count": 1, "slots": 1}, "acc": {"count": 1, "slots": 1}}
        made["buffers"] |= {"Q": {"bytes": 512, "slots": 1}}
        once = {"bar": "q", "idx_abs": 0}
        made["roles"][0]["pre"] = [{"op": "arrive_tx", "bytes": 512, **once}, {"op": "tma_load", "buf": "Q", **once}]
        made["roles"][1]["pre"] = [{"op": "wait", **once}]
        made["roles"][1]["loop"] = [
            {"op": "wait", "bar": "full"},
            {"op": "mma", "buf": "A"},
            {"op": "mma", "buf": "Q", "idx_abs": 0},
            {"op": "mma_arrive", "bar": "empty"},
        ]
        made["roles"][1]["post"] = [{"op": "mma_arrive", "bar": "acc", "idx_abs": 0}]
        made["roles"].append({"name": "store", "post": [{"op": "wait", "bar": "acc", "idx_abs": 0}]})
        assert isinstance(verify(made), Proved)
        made["roles"][1]["pre"] = []
        assert verify(made).kind == "race"

    def test_copies_of_threads(self) -> None:
        made = ring()
        made["roles"][0]["loop"] = [LOAD[0], {"op": "cp_async", "buf": "A"}, {"op": "cp_async_arrive", "bar": "full"}]
        assert verify(made).repairs[0].name == "fence the proxies"
        made["roles"][1]["loop"][1:4] = [{"op": "read", "buf": "A"}]
        assert isinstance(verify(made), Proved)


class TestBuilder:
    def test_a_gemm(self) -> None:
        block = Builder(stages=4)
        tiles = block.ring(
            "tiles", A=16384, B=la.tensormap(la.Tensor((1024, 1024)), (64, 64), "Sw<3,3,3> o 0 o (64,64):(64,1)")
        )
        staging = block.ring("staging", stages=2, C=32768)
        load, first, second, store = (block.role(name) for name in ("load", "first", "second", "store"))
        tiles.acquire(load).load("A").load("B").commit()
        for math in (first, second):
            tiles.wait(math).mma().release(behind=1)
        staging.acquire(second).write().commit()
        staging.wait(store).store().release()
        made = block.pipeline()
        assert dict(made.barriers)["tiles.empty"].count == 2
        assert [op.bytes for op in made.roles[0].loop if op.op == "arrive_tx"] == [16384 + 8192]
        assert isinstance(verify(made), Proved)

    def test_copies_and_stores_of_one_slot(self) -> None:
        block = Builder(stages=2)
        mixed = block.ring("mixed", A=128, S=64)
        load, use = block.role("load"), block.role("use")
        mixed.acquire(load).load("A").write("S").commit()
        mixed.wait(use).read().release()
        assert isinstance(verify(block.pipeline()), Proved)

    def test_slots_are_handed_on_once(self) -> None:
        block = Builder(stages=2)
        tiles = block.ring("tiles", A=128)
        load, use = block.role("load"), block.role("use")
        slot = tiles.acquire(load)
        filled = slot.load()
        with pytest.raises(MalformedError, match="must be used once"):
            slot.load()
        with pytest.raises(MalformedError, match="handed on in the same iteration"):
            block.pipeline()
        filled.commit()
        with pytest.raises(MalformedError, match="releases its slots"):
            block.pipeline()
        full = tiles.wait(use)
        with pytest.raises(MalformedError, match="must be one of A"):
            full.read("B")


class TestCommand:
    def test_verify(self, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
        file = tmp_path / "ring.json"
        file.write_text(json.dumps(ring()))
        assert main(["verify", str(file)]) == 0
        assert capsys.readouterr().out.startswith("proved        safe for every N >= 0")
        wrong = ring()
        wrong["roles"][1]["loop"][3]["n"] = 1
        file.write_text(json.dumps([ring(), wrong]))
        assert main(["verify", str(file), "--json"]) == 1
        answers = json.loads(capsys.readouterr().out)
        assert [answer["verdict"] for answer in answers] == ["proved", "refuted"]
        assert answers[1]["witness"]["kind"] == "race"
        file.write_text(json.dumps({**ring(), "stages": "4"}))
        assert main(["verify", str(file)]) == 64

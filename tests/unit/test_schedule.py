"""``la.pipeline.schedule``: kernels, bounds, refusals, layouts to choose from."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import pytest

from layoutalg.ground.errors import BudgetError, InfeasibleError, MalformedError, RepresentabilityError
from layoutalg.pipeline import (
    Candidate,
    Dependence,
    Proved,
    Work,
    WorkOp,
    WorkRing,
    WorkRole,
    attention_work,
    gemm_work,
    schedule,
    verify,
)
from layoutalg.synth import joint
from layoutalg.synth.schedule.bounds import bounds

ROLES = WorkRole("load"), WorkRole("math")


def chain(*ops, edges, rings=(), roles=ROLES, crossing=0):
    return Work("chain", ops, edges, rings, roles, crossing)


def ring(load=(10, 100), use=(20, 40), size=4096, distance=0, **more):
    """A load into a ring that one op reads, also some iterations later if there is a distance."""
    ops = WorkOp("load", "tma", *load, variable=True), WorkOp("use", "tensor", *use, **more)
    edges = [Dependence("load", "use", far, "tile") for far in {0, distance}]
    return chain(*ops, edges=edges, rings=(WorkRing("tile", size),), crossing=5)


@pytest.mark.parametrize("consumers", [1, 2, 3])
def test_gemm(consumers):
    found = schedule(gemm_work(64 * consumers, 192, 64, consumers=consumers))
    assert (found.gap, found.proof) == (1, "bound")
    assert found.why.startswith("the tensor cores")
    assert isinstance(verify(found.pipeline), Proved)
    assert len({found.roles[f"mma{number}"] for number in range(consumers)} | {found.roles["load"]}) == consumers + 1
    ready = found.starts["load"] + found.work.by_name["load"].latency + found.work.crossing
    assert min(found.starts[f"mma{number}"] for number in range(consumers)) >= ready
    # D II >= R, with the arrival that frees the slot
    ends = max(found.starts[f"mma{number}"] for number in range(consumers)) + found.work.by_name["mma0"].latency
    assert found.depths["tile"] == -(-(ends + found.work.crossing - found.starts["load"]) // found.ii)


def test_gemm_registers_are_those_of_two_consumers_and_a_producer():
    found = schedule(gemm_work(128, 256, 64))
    assert sorted(found.registers.values()) == [24, 240, 240]
    assert found.registers[found.roles["load"]] == 24
    five = schedule(gemm_work(256, 64, 64, consumers=4))
    assert sum(five.registers.values()) == 5 * 96  # at launch each of 640 threads has 65536 / 640, a multiple of 8


def test_attention_overlaps_softmax_and_products():
    found = schedule(attention_work())
    assert (found.ii, found.gap) == (2048, 1)
    assert found.roles["qk0"] == found.roles["pv0"] != found.roles["qk1"] == found.roles["pv1"]
    held = [(found.starts[name] % found.ii, name) for name in ("qk0", "pv0", "qk1", "pv1")]
    held.sort()
    gaps = [(held[(place + 1) % 4][0] - start) % found.ii for place, (start, _) in enumerate(held)]
    assert gaps == [512] * 4  # the tensor cores never rest
    assert found.depths["turn0"] == found.depths["turn1"] == 1
    assert schedule(attention_work(pingpong=False)).ii == 2048
    assert isinstance(verify(found.pipeline), Proved)


@pytest.mark.parametrize("there", [0, 1])
def test_recurrence_binds_with_its_exact_ratio(there):
    ops = WorkOp("a", "cuda", 1, 4), WorkOp("b", "sfu", 1, 3)
    work = chain(*ops, edges=(Dependence("a", "b", there), Dependence("b", "a", 2 - there)))
    assert bounds(work, "sm_90a")[0].cycles == Fraction(7, 2)
    found = schedule(work)
    assert (found.ii, found.bound, found.proof) == (4, 4, "bound")
    assert found.why == "recurrence a -> b -> a: 7 cycles in 2 iterations"


def test_memory_caps_the_interval():
    work = ring(load=(10, 1000), use=(20, 40), size=100_000)
    found = schedule(work)
    # two slots fit: 2 II >= 1000 + 5 + 40 + 5
    assert (found.ii, found.depths, found.proof) == (525, {"tile": 2}, "bound")
    assert found.why.startswith("shared memory: at 525 cycles the rings need 200032 of 232448 bytes")


def test_readers_that_take_turns_hold_a_slot_longer_than_a_bound_knows():
    ops = [WorkOp("load", "tma", 10, 1000, variable=True)]
    ops += [WorkOp(name, "tensor", 500, 500) for name in ("one", "other")]
    edges = [Dependence("load", name, ring="tile") for name in ("one", "other")]
    found = schedule(chain(*ops, edges=edges, rings=(WorkRing("tile", 100_000),), crossing=5))
    assert (found.ii, found.bound, found.proof, found.depths) == (1005, 1000, "z3", {"tile": 2})


def test_a_gap_is_proved():
    """Two results of 100 registers fit a thread beside 24, three do not; no bound counts that."""
    held = WorkOp("held", "tensor", 1, 4, result=100)
    found = schedule(chain(held, WorkOp("use", "cuda", 1, 2), edges=(Dependence("held", "use"),)))
    assert (found.ii, found.bound, found.proof, found.gap) == (3, 1, "z3", 3)
    assert "z3 excludes every II below 3" in found.why


def test_units_round_up_and_say_so():
    found = schedule(ring(use=(21, 40)), unit=16)
    assert (found.ii, found.bound, found.unit, found.gap) == (32, 21, 16, Fraction(32, 21))
    assert found.why.endswith("rounded up to units of 16 cycles")
    assert schedule(ring(use=(21, 40))).ii == 21


def test_deepen_fills_shared_memory():
    found = schedule(gemm_work(128, 256, 64), deepen=True)
    assert found.depths == {"tile": 4}
    assert found.bytes <= 232448 < found.bytes + 49152


def test_roles_are_found_where_they_are_not_stated():
    work = attention_work()
    ops = tuple([dataclasses.replace(op, role="") for op in work.ops])
    found = schedule(dataclasses.replace(work, ops=ops))
    assert (found.ii, found.gap) == (2048, 1)
    assert found.roles["qk0"] == found.roles["pv0"] != found.roles["qk1"] == found.roles["pv1"]
    assert found.roles["load_keys"] not in (found.roles["qk0"], found.roles["qk1"])


def test_iterations_without_ops_do_not_hide_the_order_of_a_role():
    """Signals of one role to itself over two iterations: of two iterations the third runs nothing but the fence."""
    ops = WorkOp("a", "cuda", 0, 2), WorkOp("b", "sfu", 0, 1), WorkOp("c", "cuda", 0, 1)
    edges = [Dependence("c", "b", 1, "one"), Dependence("b", "a", 1, "two"), Dependence("c", "c", 1)]
    edges += [Dependence("c", "a", 2, "one"), Dependence("c", "b", 2)]
    work = chain(*ops, edges=edges, rings=(WorkRing("one", 0), WorkRing("two", 0)), roles=ROLES[:1])
    found = schedule(work)
    assert found.pipeline.roles[0].loop[-1].op == "proxy_fence"


# ------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: WorkOp("a", "cuda", 1, -3), r"latency of a\n +since +must be in \[1, \d+\), not -3"),
        (lambda: WorkOp("a", "cuda", 9, 3), "latency of a"),
        (lambda: WorkOp("a", "gpu", 1, 3), "unit of a"),
        (lambda: WorkRole("none", 0), "warps of none"),
        (lambda: WorkRole("half", 2), "must be whole warpgroups of 4, not 2"),
        (lambda: WorkRing("tile", -1), "bytes of tile"),
        (lambda: Dependence("a", "b", -1), "distance from a to b"),
        (lambda: chain(WorkOp("a", "cuda", 1, 1), edges=(), roles=()), "roles"),
        (lambda: chain(WorkOp("a", "cuda", 1, 1), edges=(Dependence("a", "a"),)), "not 'a -> a'"),
        (
            lambda: chain(
                *[WorkOp(name, "cuda", 1, 1) for name in "abc"],
                edges=(Dependence("a", "b"), Dependence("b", "c"), Dependence("c", "a")),
            ),
            "not 'c -> a -> b -> c'",
        ),
        (lambda: chain(WorkOp("a", "cuda", 1, 1), edges=(Dependence("a", "b"),)), "consumer of a -> b"),
        (lambda: chain(WorkOp("a", "cuda", 1, 1), edges=(), rings=(WorkRing("tile", 8),)), "must be filled by one op"),
        (lambda: chain(WorkOp("a", "cuda", 1, 1), WorkOp("a", "cuda", 1, 1), edges=()), "must have distinct names"),
        (
            lambda: chain(
                WorkOp("a", "tma", 1, 1, variable=True), WorkOp("b", "cuda", 1, 1), edges=(Dependence("a", "b"),)
            ),
            "variable latency",
        ),
        (
            lambda: chain(
                WorkOp("a", "tensor", 1, 1),
                WorkOp("b", "cuda", 1, 1),
                edges=(Dependence("a", "b", ring="tile"),),
                rings=(WorkRing("tile", 8),),
            ),
            "results go to registers",
        ),
        (lambda: ring(size=0), "bytes of tile"),
        (lambda: gemm_work(96, 256, 64), "multiple of 64 for each of 2 consumers"),
        (lambda: schedule("gemm"), "must be a Work"),
        (lambda: Candidate("x", issues=(("none", 1),)).changed(ring(), "sm_90a"), "op of x"),
        (lambda: Candidate("x", issues=(("use", 1),)).changed(ring(), "sm_90a"), "unit of use"),
    ],
)  # fmt: skip
def test_malformed(make, said):
    with pytest.raises(MalformedError, match=f"LA974(.|\n)*({said})"):
        make()


@pytest.mark.parametrize(
    ("work", "where", "said"),
    [
        (lambda: ring(size=250_000), "ring tile", "a block of sm_90a has 232448"),
        (lambda: ring(size=120_000, distance=1), "ring tile", "2 slots of 120000 bytes at the least"),
        (lambda: ring(warps=8), "use", "8 warps; its roles have at most 4"),
        (lambda: ring(registers=300), "use", "300 registers of each thread"),
        (lambda: gemm_work(128, 256, 64, consumers=1), "mma0", "256 registers of each thread"),
        (lambda: dataclasses.replace(ring(), roles=(WorkRole("all"),)), "roles", r"no choice of 1 roles .*\(load\)"),
        (lambda: dataclasses.replace(ring(), roles=tuple(map(WorkRole, "abcdefghi"))), "roles", "1152 threads"),
    ],
)  # fmt: skip
def test_infeasible(work, where, said):
    with pytest.raises(InfeasibleError, match=f"LA975(.|\n)*in +{where}(.|\n)*{said}"):
        schedule(work())


def test_copies_and_products_need_two_roles():
    with pytest.raises(InfeasibleError, match="LA975"):
        schedule(dataclasses.replace(ring(), roles=(WorkRole("all"),)))


def test_giving_up_is_no_claim():
    with pytest.raises(BudgetError, match=r"LA976(.|\n)*in 100 of its own steps"):
        schedule(attention_work(), steps=100)


def test_steps_make_the_answer_the_same():
    assert schedule(attention_work(), unit=64).to_json() == schedule(attention_work(), unit=64).to_json()


def test_targets_without_barriers_for_copies():
    with pytest.raises(RepresentabilityError, match="LA977"):
        schedule(ring(), "sm_86")


def test_a_pipeline_that_is_not_proved_is_not_returned(monkeypatch):
    from layoutalg.synth.schedule import call

    real = call.pipeline_of

    def shallow(work, found, anchored=False):
        document = real(work, found, anchored).to_json()
        document["roles"][-1]["loop"] = [op for op in document["roles"][-1]["loop"] if op["op"] != "arrive"]
        return call.Pipeline.from_json(document)

    monkeypatch.setattr(call, "pipeline_of", shallow)
    with pytest.raises(RepresentabilityError, match=r"LA977(.|\n)*refuted +deadlock"):
        schedule(ring())


# ---------------------------------------------------------------------------------------------------------- layouts


def staged(turns):
    """A GEMM of short K steps whose consumers turn B by ordinary accesses before they multiply."""
    ops = [WorkOp("load", "tma", 100, 700, variable=True), WorkOp("turn", "shared", 400, 450, 4)]
    ops.append(WorkOp("mma", "tensor", 512, 544, 4, registers=128))
    edges = Dependence("load", "turn", ring="tile"), Dependence("turn", "mma")
    return Work("staged", tuple(ops), edges, (WorkRing("tile", 32768),), (WorkRole("load"), WorkRole("math")), 50)


def test_layouts_and_schedules_together_beat_one_after_the_other():
    """Fewest copies first costs turns, the nominal schedule first costs copies; together neither is paid."""
    work = staged(0)
    layouts = [
        Candidate("one copy, conflicts", issues=(("load", 1),), turns=(("turn", 512),)),
        Candidate("two copies", issues=(("load", 2),), turns=(("turn", 64),)),
        Candidate("padded rows", issues=(("load", 1000),), turns=(("turn", 0),)),
    ]
    each = {layout.name: schedule(layout.changed(work, "sm_90a")).ii for layout in layouts}
    layout_first = min(layouts, key=lambda layout: (layout.issues[0][1], layout.turns[0][1]))
    schedule_first = min(layouts, key=lambda layout: layout.turns[0][1])  # what keeps the times that were assumed
    together = schedule(work, candidates=layouts)
    assert together.candidate == "two copies"
    assert together.ii == min(each.values()) == 512
    assert each[layout_first.name] == 912
    assert each[schedule_first.name] > 512
    assert "; layouts: one copy, conflicts 912 cycles, two copies 512 cycles, padded rows" in together.why
    huge = Candidate("huge", bytes=(("tile", 300_000),))
    assert schedule(work, candidates=[huge, layouts[1]]).why.endswith("layouts: huge none, two copies 512 cycles")
    with pytest.raises(InfeasibleError):
        schedule(work, candidates=[huge])


def test_candidates_come_from_joint():
    plan = joint((128, 64), "bf16", ["wgmma.A", "ld.shared.v4.b32"])
    made = Candidate.of("128B", plan, "tile", "load", "turn")
    changed = made.changed(staged(0), "sm_90a")
    assert changed.sizes["tile"] == plan.bytes
    assert changed.by_name["turn"].occupancy == 400 + plan.turns

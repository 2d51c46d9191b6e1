"""What kernels really do, read from their PTX, is what their pipelines say; wrong kernels are named with the place."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from instruments import rings

from layoutalg.codegen.compile import CompileError, to_cubin, to_ptx
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.kernels.copy import copy_kernel, copy_pipeline
from layoutalg.codegen.kernels.gemm import gemm_kernel
from layoutalg.codegen.kernels.gemm_forms import Form
from layoutalg.codegen.kernels.grouped import grouped_gemm_kernel
from layoutalg.codegen.kernels.transpose_ring import transpose_ring_kernel, turn_pipeline
from layoutalg.codegen.pipeline.memory import placed
from layoutalg.codegen.pipeline.reread import Launch, events, mismatch
from layoutalg.codegen.prelude import PRELUDE, wgmma_prelude
from layoutalg.ground.errors import MalformedError, MissingExtraError, RepresentabilityError
from layoutalg.proofs.pipeline import Pipeline, verify

pytestmark = pytest.mark.compile
Made = Callable[[], tuple[KernelSource, Pipeline]]


def launch(kernel: KernelSource) -> Callable[[int], Launch]:
    return lambda n: Launch([n if kind == "int" else None for kind, _ in kernel.parameters])


@pytest.mark.parametrize("made", [rings.product, rings.copies, rings.turn, rings.pair])
def test_kernels_do_what_their_proved_pipelines_say(made: Made) -> None:
    kernel, pipeline = made()
    assert type(verify(pipeline)).__name__ == "Proved"
    assert to_cubin(kernel)
    assert mismatch(kernel, pipeline, launch(kernel)) is None
    assert mismatch(kernel, pipeline, launch(kernel), trips=[5], lanes=range(32)) is None
    began = time.perf_counter()
    mismatch(kernel, pipeline, launch(kernel), trips=[11])
    assert time.perf_counter() - began < 1.0  # 0.05 s on an idle core


WAIT_FULL = "la_wait_parity(full + 8 * slot, parity);"
LOAD_SLOT, STORE_SLOT = "if (++slot == 3) slot = 0, parity ^= 1;\n            }", "stored<1>();\n        meet(1, 64);"
RELEASE = "if (k > 0 && elected()) arrive(empty + 8 * last);"
FENCED = "        la_fence_async();\n        arrive(empty + 8 * slot);\n"
STORED = "la_tma_store_1d(&into, ring + k % 4 * 1024, 256 * k);\n        la_store_commit();\n        stored<2>();"
COMMIT_LATE = "la_tma_store_1d(&into, ring + k % 4 * 1024, 256 * k);\n        stored<2>();\n        la_store_commit();"
WRONG = [
    # kernel, text, another text, rule, op, k, N
    (rings.product, "(empty + 8 * slot, parity ^ 1)", "(empty + 8 * slot, parity)", "EMIT_ORDER", "load.loop[0]", 0, 1),
    (rings.product, WAIT_FULL, WAIT_FULL.replace("parity)", "!parity)"), "EMIT_ORDER", "math.loop[0]", 0, 1),
    (rings.product, "full + 8 * slot, 16384", "full + 8 * slot, 8192", "EMIT_ORDER", "load.loop[1]", 0, 1),
    (rings.product, "full + 8 * slot, 16384", "full + 8 * !slot, 16384", "EMIT_ORDER", "load.loop[1]", 0, 1),
    (rings.copies, "left = 4 * 1024", "left = 3 * 1024", "EMIT_ORDER", "load.loop[2]", 3, 4),
    (rings.product, "&b, full + 8 * slot", "&b, empty + 8 * slot", "EMIT_ORDER", "load.loop[2]", 0, 1),
    (rings.product, "la_tma_load_2d(b_ring +", "la_tma_load_2d(a_ring +", "EMIT_ORDER", "load.loop[2]", 0, 1),
    (rings.product, "y = ((b_ring + 8192 * slot)", "y = ((b_ring + 8192 * last)", "EMIT_ORDER", "math.loop[1]", 1, 2),
    (rings.product, "y = ((b_ring + 8192 * slot)", "y = ((a_ring + 8192 * slot)", "EMIT_ORDER", "math.loop[2]", 0, 1),
    (rings.product, "        la_wgmma_fence();\n", "", "EMIT_FENCE", "math.loop[1]", 0, 1),
    (rings.product, "        la_wgmma_commit();\n", "", "EMIT_ORDER", "math.loop[3]", 0, 1),
    (rings.product, "multiplied<1>()", "multiplied<2>()", "EMIT_ORDER", "math.loop[4]", 0, 1),
    (rings.product, "    multiplied<0>()", "    multiplied<1>()", "EMIT_ORDER", "math.post[0]", 0, 0),
    (rings.product, RELEASE, RELEASE.replace("k > 0 && ", ""), "EMIT_ORDER", "math.post[0]", 1, 1),
    (rings.product, RELEASE, RELEASE.replace("k > 0", "k > 1"), "EMIT_ORDER", "math.loop[5]", 1, 2),
    (rings.product, RELEASE, RELEASE.replace("elected()", "threadIdx.x == 0"), "EMIT_ORDER", "math.loop[5]", 1, 2),
    (rings.product, RELEASE, RELEASE.replace(" && elected()", ""), "EMIT_ORDER", "math.post[1]", 2, 2),
    (rings.product, "init(empty + 8 * i, 4)", "init(empty + 8 * i, 1)", "EMIT_INIT", None, None, 0),
    (rings.product, "    __syncthreads();\n    int slot", "    int slot", "EMIT_INIT", None, None, 0),
    (rings.product, "s < 4; ++s", "s < 3 + (slot > 0); ++s", "EMIT_SLOT", "math.loop[1]", 1, 2),
    (rings.product, "if (elected()) {\n            for", "{\n            for", "EMIT_COUNT", "load.loop[1]", 0, 1),
    (rings.product, LOAD_SLOT, LOAD_SLOT.replace(", parity ^= 1", ""), "EMIT_ORDER", "load.loop[0]", 3, 4),
    (rings.copies, "if (t == 0) stored<1>();", "if (t == 0) stored<0>();", "EMIT_ORDER", "store.loop[1]", 0, 1),
    (rings.copies, "if (t == 0) stored<1>();", "", "EMIT_ACCESS", "store.loop[1]", 0, 1),
    (rings.copies, STORE_SLOT, "stored<1>();", "EMIT_HANDOVER", "store.loop[3]", 0, 1),
    (rings.copies, "meet(1, 64);\n        if", "if", "EMIT_HANDOVER", "store.loop[6]", 0, 1),
    (rings.copies, STORE_SLOT, STORE_SLOT.replace("meet", "if (t < 32) meet"), "EMIT_BAR", None, None, 1),
    (rings.copies, STORE_SLOT, STORE_SLOT.replace("64", "32"), "EMIT_BAR", None, None, 1),
    (rings.copies, "        la_fence_async();\n", "", "EMIT_ORDER", "store.loop[4]", 0, 1),
    (rings.copies, FENCED, "\n".join(FENCED.splitlines()[::-1]), "EMIT_ORDER", "store.loop[4]", 0, 1),
    (rings.copies, "            la_store_commit();\n", "", "EMIT_ORDER", "store.loop[7]", 0, 1),
    (rings.copies, "    if (t == 0) la_store_wait();\n", "", "EMIT_COUNT", "store.post[0]", 0, 0),
    (rings.copies, "        arrive(empty + 8 * slot);\n", "", "EMIT_COUNT", "store.loop[5]", 0, 1),
    (rings.copies, "   arrive(empty +", "if (t) arrive(empty +", "EMIT_COUNT", "store.loop[5]", 0, 1),
    (rings.copies, "[256 * slot + i] + 1", "[256 * (slot ^ 1) + i] + 1", "EMIT_ACCESS", "store.loop[4]", 0, 2),
    (rings.copies, "[256 * out + i] =", "[256 * (out ^ 1) + i] =", "EMIT_ACCESS", "store.loop[4]", 1, 2),
    (rings.copies, "base + 1024 * slot, &from", "base + 512 * slot, &from", "EMIT_ORDER", "load.loop[2]", 1, 2),
    (rings.copies, "base + left + 1024 * out, 128", "base + left, 128", "EMIT_ORDER", "store.loop[6]", 1, 2),
    (rings.copies, "la_tma_load_1d(base +", "la_tma_load_1d(base + 4096 +", "EMIT_ACCESS", "store.loop[4]", 0, 1),
    (rings.turn, "if (k < n - 2)", "if (k < n - 1)", "EMIT_ORDER", "all.loop[0]", 1, 2),
    (rings.turn, "if (k < n - 2)", "if (k < n - 3)", "EMIT_ORDER", "all.loop[4]", 0, 3),
    (rings.turn, "k / 4 & 1", "k / 2 & 1", "EMIT_ORDER", "all.loop[0]", 2, 3),
    (rings.turn, STORED, COMMIT_LATE, "EMIT_ORDER", "all.loop[2]", 0, 2),
    (rings.turn, "i < 2; ++i", "i < 3; ++i", "EMIT_ORDER", "all.loop[0]", 0, 2),
    (rings.turn, "i < 4; ++i", "i < 3; ++i", "EMIT_INIT", None, None, 2),
    (rings.pair, "arrive_at(empty + 8 * slot, 1)", "arrive(empty + 8 * slot)", "EMIT_ORDER", "use@0.loop[4]", 0, 1),
    (rings.pair, "(unsigned short)3", "(unsigned short)1", "EMIT_ORDER", "load@0.loop[3]", 0, 1),
    (rings.pair, "    meet_cluster();\n    int slot", "    __syncthreads();\n    int slot", "EMIT_INIT", None, None, 1),
]  # fmt: skip


@pytest.mark.parametrize(("made", "old", "new", "rule", "op", "k", "n"), WRONG)
def test_a_wrong_kernel_is_named_with_its_place(
    made: Made, old: str, new: str, rule: str, op: str | None, k: int | None, n: int
) -> None:
    kernel, pipeline = made()
    assert kernel.text.count(old) == 1
    wrong = replace(kernel, text=kernel.text.replace(old, new))
    found = mismatch(wrong, pipeline, launch(kernel))
    assert found is not None
    told = (found.rule, found.witness.get("op"), found.witness.get("k"), found.witness["N"])
    assert told == (rule, op, k, n), str(found)


EXCHANGE = """
extern "C" __global__ void __launch_bounds__(64) exchange(int n, int* d)
{
    int* const memory = (int*)la_aligned_shared(128);
    for (int k = 0; k < n; ++k) {
        memory[threadIdx.x] = k;
        __syncthreads();
        d[threadIdx.x] += memory[threadIdx.x ^ 32];
        __syncthreads();
    }
}
"""


def test_threads_meet_between_what_they_write_and_what_others_read() -> None:
    ops = [{"op": "write", "buf": "X"}, {"op": "read", "buf": "X"}]
    document = {"schema": "layoutalg/pipeline/1", "stages": 1, "buffers": {"X": {}}}
    pipeline = Pipeline.from_json(document | {"roles": [{"name": "all", "loop": ops}]})
    parameters, places = (("int", "n"), ("int*", "d")), [("X", 0, 256)]
    kernel = KernelSource("exchange", PRELUDE + EXCHANGE, "sm_90a", 64, 384, parameters, roles=(("all", 0, 2),))
    assert mismatch(kernel, pipeline, launch(kernel), buffers=places) is None
    for later, op, k, n in ((False, "all.loop[1]", 0, 1), (True, "all.loop[1]", 0, 2)):
        before, _, after = kernel.text.rpartition("        __syncthreads();\n")
        text = before + after if later else kernel.text.replace("        __syncthreads();\n", "", 1)
        found = mismatch(replace(kernel, text=text), pipeline, launch(kernel), buffers=places)
        assert found is not None
        told = (found.rule, found.witness["op"], found.witness["k"], found.witness["N"])
        assert told == ("EMIT_HANDOVER", op, k, n)


def test_names_of_rings_and_roles_must_be_those_of_the_document() -> None:
    kernel, pipeline = rings.product()
    for other in (
        replace(kernel, barriers=kernel.barriers[:1]),
        replace(kernel, barriers=(("full", 0, 3), ("empty", 24, 2))),
        replace(kernel, roles=(("maths", 0, 4), ("load", 4, 1))),
    ):
        found = mismatch(other, pipeline, launch(kernel), trips=[0])
        assert found is not None
        assert found.rule == "EMIT_NAMES"
    document = pipeline.to_json()
    document["roles"][0]["warps"] = 2
    found = mismatch(kernel, Pipeline.from_json(document), launch(kernel), trips=[0])
    assert found is not None
    assert found.rule == "EMIT_NAMES"
    moved = replace(kernel, barriers=(("full", 0, 3), ("empty", 24, 3)))
    found = mismatch(moved, pipeline, launch(kernel), trips=[0])
    assert found is not None
    assert found.rule == "EMIT_INIT"


def test_places_of_buffers_may_be_given() -> None:
    kernel, pipeline = rings.product()
    right, wrong = [("A", 0, 8192), ("B", 3 * 8192, 8192)], [("A", 8192, 8192)]
    found = mismatch(kernel, pipeline, launch(kernel), trips=[4], buffers=[("A", 0, 8192), ("B", 8192, 8192)])
    assert found is not None
    assert found.rule == "EMIT_SLOT"
    assert mismatch(kernel, pipeline, launch(kernel), trips=[4], buffers=right) is None
    found = mismatch(kernel, pipeline, launch(kernel), trips=[4], buffers=wrong)
    assert found is not None


def persistent(
    tiles: int, places: list[int | None], turns: dict[str, int] | None = None, cluster: int = 1
) -> Callable[[int], Launch]:
    """Launches with which a block takes N tiles; ``turns``: iterations of each role for one of them."""
    of_all = tiles // cluster

    def launched(n: int) -> Launch:
        blocks, block = (-(-of_all // n) * cluster, 0) if n else (tiles + 2 * cluster, tiles + cluster)
        given = [blocks if place == 0 else None for place in places]
        trips = tuple([(role, n * many) for role, many in (turns or {}).items()])
        return Launch(given, block, blocks, trips, n if turns else 1)

    return launched


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_the_copy_kernel_does_what_its_pipeline_says(arch: str) -> None:
    kernel = replace(copy_kernel((300, 4096), "bf16").kernel, arch=arch)
    pipeline = copy_pipeline(4, 2, 16384, 16384)
    assert mismatch(kernel, pipeline, persistent(160, [None, None, 0, None])) is None
    assert mismatch(kernel, copy_pipeline(4, 1, 16384, 16384), persistent(160, [None, None, 0, None])) is not None


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_the_transposing_kernel_does_what_its_pipeline_says(arch: str) -> None:
    kernel = replace(transpose_ring_kernel((8192, 8192), "f32").kernel, arch=arch)
    warps = {name: many for name, _, many in kernel.roles}["turn"]
    launched = persistent(65536, [None, None, 0, None])
    assert mismatch(kernel, turn_pipeline(2, 2, warps, 4096), launched) is None
    wrong = replace(kernel, text=kernel.text.replace("la_fence_async();\n            la_role", "la_role", 1))
    assert wrong.text != kernel.text
    assert mismatch(wrong, turn_pipeline(2, 2, warps, 4096), launched) is not None


PRODUCTS = [
    ("parity4 ^ 1, 1, k", "parity4, 1, k", "load@0.loop[0]"),
    ("if (issuer) la_store_wait_read<0>();\n                la_role", "la_role", "store0@0.loop[2]"),
    ("la_role_barrier(1 + which, 128);\n                la_stmatrix", "la_stmatrix", "store0@0.loop[3]"),
    ("la_fence_async();\n                la_role_barrier(1 + which, 128);", "la_fence_async();", "store0@0.loop[5]"),
    ("b + 0x4000004000010006ull", "b + 0x4000004000011000ull", "math0@0.loop[1]"),
    (", 0x3u, ", ", 0x1u, ", "load@0.loop[4]"),
    ("_relaxed(barriers + 32 + 8 * slot4, 1)", "_relaxed(barriers + 32 + 8 * slot4, 0)", "math0@0.loop[7]"),
]


@pytest.mark.parametrize("cluster", [1, 2])
@pytest.mark.parametrize("behind", [0, 1])
def test_products_do_what_their_pipelines_say(cluster: int, behind: int) -> None:
    made = gemm_kernel((1024, 1024, 192), "bf16", form=Form(128, 256, 2, 128, cluster, behind))
    turns = {"load": 3, "math0": 3, "math1": 3, "store0": 2, "store1": 2}
    kernel, pipeline = made.kernel, made.emitted.program.pipeline
    launched = persistent(made.blocks, [None, None, None, 0, None], turns, cluster)
    assert mismatch(kernel, pipeline, launched, trips=range(3)) is None
    found = [each for each in PRODUCTS if each[0] in kernel.text]
    assert behind or len(found) >= 4
    for old, new, op in found if not behind else []:
        wrong = mismatch(replace(kernel, text=kernel.text.replace(old, new)), pipeline, launched, trips=[1])
        assert wrong is not None
        assert wrong.witness.get("op") == (op if cluster > 1 else op.replace("@0", "")), str(wrong)


def with_schedule(text: str, tiles: int, height: int, rows: int) -> str:
    """The text of a kernel of groups with numbers for the words of its schedule: every tile has so many rows."""
    header = "const la_words4 header = *(const la_words4*)schedule;"
    assert header in text
    text = text.replace(header, f"const la_words4 header = {{{{{tiles}u, {height}u, 0u, 1u}}}};")
    return re.sub(r"next = entries\[.*\];", f"next = la_words4{{{{300u, {rows}u, 2u, 300u}}}};", text)


@pytest.mark.parametrize("rows", [128, 70])
def test_products_of_groups_do_what_their_pipelines_say(rows: int) -> None:
    """A warpgroup without rows of the group stores nothing, where the document has a store."""
    made = grouped_gemm_kernel(4096, 8, 256, 192, form=Form(128, 256, 2, 128))
    assert all(to_cubin(kernel) for kernel in (made.kernel, made.scheduler))
    turns = {"load": 3, "math0": 3, "math1": 3, "store0": 2, "store1": 2}
    kernel = replace(made.kernel, text=with_schedule(made.kernel.text, 1000, 128, rows))
    pipeline = made.emitted.program.pipeline
    launched = persistent(1000, [*[None] * 10, 0, None], turns)
    assert mismatch(kernel, pipeline, launched, trips=range(3)) is None
    found = [each for each in PRODUCTS if each[0] in kernel.text]
    assert len(found) >= 4
    for old, new, op in found:
        wrong = mismatch(replace(kernel, text=kernel.text.replace(old, new)), pipeline, launched, trips=[1])
        assert wrong is not None
        assert wrong.witness.get("op") == op.replace("@0", ""), str(wrong)
    few = replace(made.kernel, text=with_schedule(made.kernel.text, 1000, 128, 64))
    missing = mismatch(few, pipeline, launched, trips=[1])
    assert missing is not None
    assert missing.witness.get("op") == "store1.loop[5]"


PARTS, MEET = "(shared + 135168 + 12288 * which) + at", "la_role_barrier(1 + which, 128);"
FENCED_SUMS = f"la_fence_async();\n                {MEET}\n                if (issuer) la_arrive"
WAIT_SENT = "la_wait_phase_cluster(barriers + (which == 0 ? 80 : 88)"
SPLIT = [
    (PARTS, f"{PARTS} + 4096", "beyond the document's slots", "store0@0.loop[6]"),
    ("+ at, 4096, (barriers", "+ at, 2048, (barriers", "other than the document's bytes", "store0@0.loop[4]"),
    ("+ far + 1) & 3;", "+ far) & 3;", "another slot or barrier than the document's", "store0@0.loop[4]"),
    (FENCED_SUMS, FENCED_SUMS.partition("\n")[2], "another op", "store0@0.loop[2]"),
    (FENCED_SUMS, "la_fence_async();\n                if (issuer) la_arrive", "no barrier of threads",
     "store0@0.loop[3]"),
    ("if (kc < tripsc - 1) {", "if (kc < tripsc) {", "another op", "store0@0.post[0]"),
    ("(0xfu ^ 1u << la_cluster_rank()) >> to & 1", "to", "another op", "store0@1.loop[14]"),
    (WAIT_SENT, "la_wait_phase_cluster(barriers + (which == 0 ? 64 : 72)", "another op", "store0@0.loop[0]"),
]  # fmt: skip
"""Text of a kernel whose blocks share the K of a tile, another text, and what is found."""


def test_split_products_do_what_their_pipelines_say() -> None:
    made = gemm_kernel((512, 256, 512), "bf16", form=Form(128, 128, 2, 16, split=4, stages=4))
    turns = {"load": 2, "math0": 2, "math1": 2, "store0": 2, "store1": 2}
    kernel, program = made.kernel, made.emitted.program
    launched = persistent(made.blocks, [None, None, None, 0, None], turns, 4)
    rings = [(name, *place) for name, place in placed(program.pipeline, "sm_90a").buffers.items() if name[0] in "PR"]
    assert mismatch(kernel, program.pipeline, launched, trips=range(3), buffers=rings) is None
    for old, new, because, op in SPLIT:
        assert old in kernel.text, old
        wrong = replace(kernel, text=kernel.text.replace(old, new))
        found = mismatch(wrong, program.pipeline, launched, trips=[2], buffers=rings)
        assert found is not None, old
        assert because in str(found), str(found)
        assert found.witness.get("op") == op, str(found)


def test_a_wait_that_looks_once_is_none() -> None:
    """The first look of every wait is too early."""
    kernel, pipeline = copy_kernel((300, 4096), "bf16").kernel, copy_pipeline(4, 2, 16384, 16384)
    once = replace(kernel, text=kernel.text.replace("LA_SPIN_LIMIT (1 << 18)", "LA_SPIN_LIMIT 1"))
    found = mismatch(once, pipeline, persistent(160, [None, None, 0, None]))
    assert found is not None
    assert (found.rule, found.witness["op"]) == ("EMIT_ORDER", "load.loop[0]")


def _asm(text: str) -> str:
    return f'    la_u32 x = at;\n    asm volatile("{text}" : "+r"(x) :: "memory");'


REFUSED = [
    ("int* d", "    la_arrive_expect_tx(at, d[3]);", "ld.global"),
    ("int* d", "    if (d[3] > 0) la_arrive_expect_tx(at, 16);", "ld.global"),
    ("int* d", "    for (int i = 0; i < *d; ++i) la_store_commit();", "ld.global"),
    ("int* d", "    la_arrive_expect_tx(at + 8 * __shfl_sync(~0u, threadIdx.x, 5), 16);", "shfl.sync"),
    ("float x", "    if (x > 0.5f) la_store_commit();", "setp.leu.f32"),
    ("int* d", "    la_arrive_expect_tx(at, atomicAdd(d, 1));", "atom"),
    ("int n", "    while (n != 0) n += 2, la_store_commit();", "instructions"),
    ("int n", _asm("mbarrier.complete_tx.shared::cta.b64 [%0], 16;"), "complete_tx"),
    ("int n", _asm("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32"
                   " [%0], [%0], 16, [%0];"), "cp.reduce.async.bulk"),
    ("int n", _asm("barrier.cta.red.popc.u32 %0, 0, 1;"), "barrier.cta.red"),
]  # fmt: skip


@pytest.mark.parametrize(("parameter", "body", "named"), REFUSED)
def test_what_depends_on_data_is_refused(
    parameter: str, body: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("layoutalg.ground.limits.PTX_STEPS", 100_000)
    begin = f'extern "C" __global__ void k({parameter})\n{{\n    const la_u32 at = la_shared_address(la_shared());\n'
    kernel = KernelSource("k", f"{PRELUDE}{begin}{body}\n}}\n", "sm_90a", 32, 64, (tuple(parameter.rsplit(" ", 1)),))
    with pytest.raises(RepresentabilityError, match="LA980") as caught:
        events(kernel, [1 if parameter == "int n" else None], 0)
    assert named in str(caught.value)
    assert caught.value.diagnostic.where[0].startswith("line ")


def test_a_role_that_uses_tensor_memory_is_refused() -> None:
    kernel, pipeline = rings.product()
    document = pipeline.to_json()
    document["roles"][1]["loop"][5] = {"op": "mma_arrive", "bar": "empty"}
    with pytest.raises(RepresentabilityError, match=r"LA980.*\n.*math.loop\[5\]"):
        mismatch(kernel, Pipeline.from_json(document), launch(kernel))


TOUCHED = """
extern "C" __global__ void __launch_bounds__(128) touched(float* d, la_u64 a, la_u64 b, int n)
{
    float sum[32];
    for (int v = 0; v < 32; ++v) sum[v] = 0.0f;
    la_wgmma_fence();
    for (int i = 0; i < n; ++i) {
        la_wgmma_m64n64k16_bf16<0, 0>(sum, a + i, b + i, 1);
        la_wgmma_commit();
        TOUCH
    }
    la_wgmma_wait();
    for (int v = 0; v < 32; ++v) d[128 * v + threadIdx.x] = sum[v];
}
"""


def test_a_strict_build_refuses_multiplies_that_the_assembler_serialises() -> None:
    right = PRELUDE + wgmma_prelude("bf16", 64) + TOUCHED.replace("TOUCH", "")
    wrong = PRELUDE + wgmma_prelude("bf16", 64) + TOUCHED.replace("TOUCH", "sum[3] += 1.0f;")
    assert to_cubin(right, strict=True)
    assert to_cubin(wrong)
    with pytest.raises(CompileError, match=r"(?s)LA981.*C7517") as caught:
        to_cubin(wrong, strict=True)
    assert wrong.splitlines()[caught.value.lines[0] - 1].strip() == "sum[3] += 1.0f;"
    parameters = (("float*", "d"), ("la_u64", "a"), ("la_u64", "b"), ("int", "n"))
    with pytest.raises(CompileError, match="LA981"):
        to_cubin(KernelSource("touched", wrong, "sm_90a", 128, 0, parameters, roles=(("math", 0, 4),)))


def test_ptx_needs_the_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(MissingExtraError, match=r'pip install "layoutalg\[cuda\]"'):
        to_ptx("// never compiled")


def test_ptx_is_that_of_the_kernel() -> None:
    kernel, _ = rings.turn()
    assert f".entry {kernel.name}(" in to_ptx(kernel)
    assert to_ptx(kernel).startswith("//")
    with pytest.raises(CompileError, match="LA511"):
        to_ptx("nonsense")
    with pytest.raises(MalformedError, match="LA506"):
        to_ptx(3)  # type: ignore[arg-type]

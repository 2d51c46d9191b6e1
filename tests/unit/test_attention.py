"""Attention: its pipeline and what is wrong with changed ones, results on the CPU, packed scores, refusals."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from instruments.attention_runs import on_the_cpu, placed
from judges.attention_judge import compared

from layoutalg.codegen import hostsim
from layoutalg.codegen.kernels import attention
from layoutalg.codegen.kernels.attention import AttentionKernel, attention_pipeline, packed_scores
from layoutalg.ground.errors import InfeasibleError, LayoutError, MalformedError
from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.proofs.pipeline import verify
from layoutalg.proofs.pipeline.document import Pipeline

needs_compiler = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")


def attention_kernel(*given: Any, **options: Any) -> AttentionKernel:
    """A kernel with tiles of 128 x 128, unless others are asked for."""
    return attention.attention_kernel(*given, **{"tile": (128, 128), **options})


CASES: dict[str, tuple[tuple[int, int, int, int], dict[str, Any]]] = {
    "one tile": ((1, 128, 128, 64), {}),
    "one tile of wide rows": ((1, 128, 128, 128), {"dtype": "f16"}),
    "a ring goes round": ((1, 128, 640, 64), {"tile": (128, 64)}),
    "rests of queries and keys": ((2, 150, 203, 64), {}),
    "rests of wide rows": ((2, 65, 99, 128), {"dtype": "f16", "stages": 1}),
    "one query, one key": ((3, 1, 1, 64), {}),
    "causal": ((1, 300, 300, 64), {"causal": True}),
    "causal, wide rows": ((1, 256, 256, 128), {"causal": True, "dtype": "f16", "tile": (128, 64), "stages": 3}),
    "causal, aligned at the end": ((1, 130, 290, 64), {"causal": True, "shift": 160, "tile": (128, 80)}),
    "causal, queries that see nothing": ((1, 200, 90, 64), {"causal": True, "shift": -140, "dtype": "f16"}),
    "causal, all keys seen": ((1, 70, 90, 64), {"causal": True, "shift": 1 << 33}),
    "causal, more queries than keys": ((1, 270, 70, 64), {"causal": True}),
    "one consumer": ((1, 100, 260, 64), {"tile": (64, 128), "consumers": 1, "stages": 3}),
    "three consumers": ((1, 200, 100, 64), {"tile": (192, 96), "consumers": 3, "stages": 1, "causal": True}),
    "another scale": ((1, 64, 176, 128), {"tile": (64, 176), "consumers": 1, "scale": 0.5}),
}


WAYS: dict[str, dict[str, bool]] = {
    "behind": {"ahead": False}, "ahead": {"ahead": True}, "alternate": {"ahead": True, "alternate": True},
}  # fmt: skip


class TestResults:
    @needs_compiler
    @pytest.mark.nightly(one_of=4)
    @pytest.mark.parametrize("case", CASES)
    @pytest.mark.parametrize("way", ["behind", "ahead", "alternate"])
    def test_they_are_those_of_wide_floats(self, case: str, way: str) -> None:
        shape, options = CASES[case]
        if options.get("consumers", 2) == 1:
            way = "ahead" if way == "alternate" else way
        made = attention_kernel(shape, **{"dtype": "bf16", **options, **WAYS[way]})
        compared(on_the_cpu, made, options.get("dtype", "bf16"), seed=len(case))

    @needs_compiler
    @pytest.mark.parametrize("way", WAYS)
    def test_they_are_the_same_in_any_order_of_warps_and_copies(self, way: str) -> None:
        made = attention_kernel((1, 130, 200, 64), tile=(128, 64), causal=True, shift=70, **WAYS[way])
        for seed in range(1, 5):
            compared(partial(on_the_cpu, seed=seed), made, "bf16")

    @needs_compiler
    def test_packed_scores_must_stay_until_values_are_added(self) -> None:
        made = attention_kernel((1, 128, 256, 64))
        text = made.kernel.text.replace("la_wgmma_wait<1>();", "p[0][0] ^= 1u; la_wgmma_wait<1>();")
        wrong = replace(made, emitted=replace(made.emitted, kernel=replace(made.kernel, text=text)))
        given = [placed((1, rows, 64)) for rows in (128, 256, 256)]
        on_the_cpu(wrong, given, fault="accumulator of a multiply in flight was written, or its operand")

    @needs_compiler
    @pytest.mark.parametrize("dtype", ["bf16", "f16"])
    def test_large_scores_do_not_overflow(self, dtype: str) -> None:
        compared(on_the_cpu, attention_kernel((1, 64, 200, 64), dtype), dtype, spread=100.0)

    @needs_compiler
    def test_queries_that_see_nothing_give_zero(self) -> None:
        made = attention_kernel((1, 130, 64, 64), causal=True, shift=-128)
        ones = [np.full(shape, 0x3F80, np.uint16) for shape in ((1, 130, 64), (1, 64, 64), (1, 64, 64))]
        found, status = on_the_cpu(made, ones)
        assert (status == 1).all()
        assert (found[:, :128] == 0).all()
        assert (found[:, 128:] == 0x3F80).all()

    def test_scores_are_packed_in_their_order(self) -> None:
        """Word i of step j has columns 16 j + 8 (i div 2), ... of row 8 (i mod 2): accumulators 8 j + 2 i, + 1."""
        for keys in (16, 80, 176, 256):
            wanted = [[(8 * j + 2 * i, 8 * j + 2 * i + 1) for i in range(4)] for j in range(keys // 16)]
            assert packed_scores(keys) == wanted

    def test_a_shift_beyond_all_keys_or_queries_is_one_to_their_ends(self) -> None:
        for shift, end in ((1 << 40, 90), (-(1 << 40), -70)):
            made = attention_kernel((1, 70, 90, 64), causal=True, shift=shift, name="same")
            assert made == attention_kernel((1, 70, 90, 64), causal=True, shift=end, name="same")

    def test_work_counts_what_is_seen(self) -> None:
        for shape, shift in (((2, 100, 60, 64), 0), ((1, 70, 90, 64), 20), ((1, 70, 20, 64), -30)):
            batches, queries, keys, columns = shape
            seen = sum(j <= i + shift for i in range(queries) for j in range(keys))
            assert attention_kernel(shape, causal=True, shift=shift).flops == 4 * batches * columns * seen
            assert attention_kernel(shape).flops == 4 * batches * columns * queries * keys

    def test_causal_blocks_take_only_keys_that_are_seen(self) -> None:
        text = attention_kernel((1, 512, 512, 64), causal=True).kernel.text
        assert "const int row = (3 - (int)blockIdx.x % 4) * 128;" in text
        assert "const int seen = (row + 128) < 1 ? 1 : (row + 128) < 512 ? (row + 128) : 512;" in text
        assert text.count("const int trips = (seen + 127) / 128") == 2


Change = Callable[[dict[str, Any]], None]


def role(name: str, part: str, place: int, **entries: object) -> Change:
    """Change entries of an op."""

    def change(document: dict[str, Any]) -> None:
        next(role for role in document["roles"] if role["name"] == name)[part][place].update(entries)

    return change


def without(name: str, part: str, place: int) -> Change:
    """Leave an op out."""

    def change(document: dict[str, Any]) -> None:
        del next(role for role in document["roles"] if role["name"] == name)[part][place]

    return change


def swapped(name: str, part: str, place: int) -> Change:
    """Exchange an op and the next."""

    def change(document: dict[str, Any]) -> None:
        ops = next(role for role in document["roles"] if role["name"] == name)[part]
        ops[place], ops[place + 1] = ops[place + 1], ops[place]

    return change


def moved(name: str, part: str, place: int, to: int) -> Change:
    """Put an op before an earlier one."""

    def change(document: dict[str, Any]) -> None:
        ops = next(role for role in document["roles"] if role["name"] == name)[part]
        ops.insert(to, ops.pop(place))

    return change


def entry(kind: str, name: str, **entries: object) -> Change:
    """Change a barrier or a buffer."""
    return lambda document: document[kind][name].update(entries)


MUTANTS: dict[str, tuple[str, Change, str]] = {
    "K is loaded without a wait": ("behind", without("load", "loop", 0), "ub"),
    "V is loaded without a wait": ("ahead", without("load", "loop", 3), "ub"),
    "the loader waits for a round too much": ("ahead", role("load", "loop", 0, ph=0), "deadlock"),
    "half of K is expected": ("ahead", role("load", "loop", 1, bytes=8192), "tx_mismatch"),
    "one Q of two is expected": ("behind", role("load", "pre", 0, bytes=8192), "tx_mismatch"),
    "one Q is not loaded": ("ahead", without("load", "pre", 2), "tx_mismatch"),
    "V arrives for K": ("ahead", role("load", "loop", 5, bar="full_k"), "tx_mismatch"),
    "K is read without a wait": ("behind", without("math0", "loop", 0), "race"),
    "the next K is read without a wait": ("ahead", without("math1", "loop", 0), "race"),
    "V is read without a wait": ("ahead", without("math0", "loop", 5), "race"),
    "Q is read without a wait": ("ahead", without("math0", "pre", 0), "race"),
    "the last V is read without a wait": ("ahead", without("math1", "post", 0), "race"),
    "K is free before it is read": ("behind", swapped("math0", "loop", 5), "race"),
    "K is free with multiplies open": ("behind", role("math0", "loop", 5, n=1), "race"),
    "V is free before it is read": ("ahead", moved("math1", "loop", 17, 13), "race"),
    "V is free with multiplies open": ("behind", role("math1", "loop", 16, n=1), "race"),
    "the first scores are read while they are multiplied": ("ahead", without("math0", "pre", 6), "race"),
    "scores are read while they are multiplied": ("ahead", role("math1", "loop", 10, n=2), "race"),
    "weights are packed into an operand in use": ("ahead", moved("math0", "loop", 16, 13), "race"),
    "sums are scaled while values are added": ("ahead", moved("math0", "loop", 15, 13), "race"),
    "the result is read while values are added": ("ahead", without("math1", "post", 5), "race"),
    "one consumer frees K": ("ahead", entry("barriers", "empty_k", count=4), "race"),
    "three consumers free V": ("behind", entry("barriers", "empty_v", count=12), "deadlock"),
    "a warp does not free K": ("ahead", role("math1", "loop", 12, n=3), "deadlock"),
    "the first K is not freed": ("ahead", without("math0", "pre", 10), "deadlock"),
    "a slot of V too few": ("ahead", entry("buffers", "V", slots=1), "race"),
    "the result is written as if it were Q": ("behind", role("math0", "post", 1, idx_abs=0), "race"),
    "the result is stored without a fence": ("ahead", without("math0", "post", 8), "race"),
    "the kernel ends with a store under way": ("ahead", without("math1", "post", 11), "ub"),
    "the loader gives no turn": ("alternate", without("load", "pre", 0), "deadlock"),
    "the loader gives both turns": ("alternate", role("load", "pre", 0, n=2), "ub"),
    "a turn is kept": ("alternate", role("math1", "loop", 11, bar="turn1"), "deadlock"),
    "a turn is not waited for": ("alternate", without("math0", "loop", 2), "deadlock"),
}


class TestPipelines:
    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("stages", [1, 2, 3, 8])
    def test_they_are_proved(self, stages: int, way: str) -> None:
        for consumers in (1, 2, 3):
            found = verify(attention_pipeline(stages, consumers, 8192, 8192, 8192, **WAYS[way]))
            assert isinstance(found, Proved)
            assert found.to_certificate().check()

    @pytest.mark.parametrize("name", MUTANTS)
    def test_changed_ones_are_refuted(self, name: str) -> None:
        way, change, kind = MUTANTS[name]
        document = copy.deepcopy(attention_pipeline(2, 2, 8192, 16384, 16384, **WAYS[way]).to_json())
        change(document)
        found = verify(Pipeline.from_json(document))
        assert isinstance(found, Refuted)
        assert found.kind == kind

    @needs_compiler
    def test_a_kernel_without_a_turn_says_who_waits(self) -> None:
        """The pipeline that hangs, emitted all the same: consumers give up at their turn."""
        made = attention_kernel((1, 128, 256, 64), alternate=True)
        text = made.kernel.text.replace("            la_arrive(barriers + 8);\n", "", 1)
        assert text != made.kernel.text
        kernel = replace(made.kernel, text=text)
        arrays = [placed((1, rows, 64)) for rows in (128, 256, 256, 128)]
        status = np.zeros(1, np.int32)
        regions = [(array.ctypes.data, array.nbytes) for array in (*arrays, status)]
        hostsim.run(kernel, made.arguments(*arrays, status), regions=regions)
        assert made.emitted.gave_up(int(status[0])) == "math0, math1 gave up in iteration 0: wait turn0[k]"

    def test_a_kernel_has_a_proof(self) -> None:
        made = attention_kernel((2, 256, 256, 64))
        assert made.emitted.proof is not None
        assert "Pipeline: safe for every N >= 1." in made.kernel.text
        assert [name for name, _, _ in made.kernel.roles] == ["load", "math0", "math1"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("shape", "options", "told"),
        [
            ((1, 128, 128), {}, "must have 4 extents"),
            ((1, 128, 128, 96), {}, "must have 64 or 128 columns"),
            ((1, 128, 128, 64), {"dtype": "f32"}, "dtype"),
            ((1, 128, 128, 64), {"tile": (64, 128), "consumers": 2}, "must have 128 queries"),
            ((1, 128, 128, 64), {"tile": (128, 120)}, "a multiple of 16 keys up to 256"),
            ((1, 128, 128, 64), {"tile": (128, 272)}, "a multiple of 16 keys up to 256"),
            ((1, 128, 128, 128), {"tile": (128, 208)}, "must need at most 200 registers with 2 consumers"),
            ((1, 128, 128, 64), {"tile": (192, 144), "consumers": 3}, "must need at most 133 registers"),
            ((1, 128, 128, 64), {"stages": 0}, "stages"),
            ((1, 128, 128, 64), {"consumers": 4}, "consumers"),
            ((1, 128, 128, 64), {"scale": 0.0}, "must be a number from"),
            ((1, 128, 128, 64), {"scale": True}, "must be a number from"),
            ((1, 128, 128, 64), {"alternate": True, "ahead": False}, "must be left out without ahead"),
            ((1, 128, 128, 64), {"alternate": True, "consumers": 1, "tile": (64, 64)}, "with one consumer"),
            ((1, 128, 128, 64), {"causal": True, "shift": 0.5}, "shift"),
            ((1, 1 << 30, 1 << 30, 64), {}, "queries and keys"),
        ],
    )
    def test_arguments(self, shape: tuple[int, ...], options: dict[str, Any], told: str) -> None:
        with pytest.raises(MalformedError) as caught:
            attention_kernel(shape, **options)
        assert told in str(caught.value)

    def test_a_target_without_multiplies_of_warpgroups(self) -> None:
        with pytest.raises(LayoutError):
            attention_kernel((1, 128, 128, 64), target="sm_100a")

    def test_too_much_shared_memory(self) -> None:
        with pytest.raises(InfeasibleError, match="LA946"):
            attention_kernel((1, 128, 128, 128), stages=4)

    def test_arrays_of_other_extents(self) -> None:
        made = attention_kernel((1, 64, 32, 64))
        q, k = placed((1, 64, 64)), placed((1, 32, 64))
        with pytest.raises(MalformedError, match="v must have shape"):
            made.arguments(q, k, placed((1, 64, 64)), placed((1, 64, 64)))
        with pytest.raises(MalformedError, match="must not overlap q"):
            made.arguments(q, k, placed((1, 32, 64)), q)


@pytest.mark.parametrize(("columns", "warpgroups"), [(64, 3), (128, 2)])
def test_a_tile_is_chosen_by_columns(columns: int, warpgroups: int) -> None:
    made = attention.attention_kernel((2, 1000, 1000, columns))
    assert made.tile == (64 * warpgroups, 128)
    assert made.kernel.threads == 128 * (1 + warpgroups)

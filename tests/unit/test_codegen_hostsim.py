"""The CPU runner catches what hardware would punish, and compiles without warnings it can act on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from instruments.runner import runner_kernel, runner_tables

from layoutalg.codegen import hostsim
from layoutalg.codegen.cuda import load_kernel, store_kernel, tile_kernel
from layoutalg.codegen.kernel import STATUS_ORIGIN, KernelSource, checked_name
from layoutalg.codegen.launch import place_map
from layoutalg.codegen.matmul import WgmmaTiles, matmul_kernel
from layoutalg.codegen.prelude import PRELUDE
from layoutalg.ground import clock
from layoutalg.ground.errors import LayoutError, MalformedError, MissingExtraError, TargetRuleError
from layoutalg.proofs.tensormap import Issue, TensorMapPlan
from layoutalg.synth.tensormap import synthesize_tensormap

needs_compiler = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")


def plan(direction: str = "load") -> TensorMapPlan:
    return synthesize_tensormap(
        {
            "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": direction,
            "global": {"shape": [64, 64], "stride": [64, 1], "dtype": "u8", "base_align_bytes": 256},
            "tile": [16, 32], "smem": {"modes": [[[16, 32]], [[32, 1]]], "swizzle": "32B"},
        }
    )  # fmt: skip


def run(kernel: KernelSource, made: TensorMapPlan, origin: tuple[int, int] = (0, 0), **options: int) -> tuple[int, int]:
    memory = np.zeros(64 * 64 + 256, dtype=np.uint8)
    address = memory.ctypes.data + (-memory.ctypes.data) % 256
    image, status = np.zeros(kernel.image_bytes, dtype=np.uint8), np.zeros(1, dtype=np.int32)
    fault = hostsim.run(
        kernel, [place_map(made.raw, address), *origin, image, status], regions=[(address, 4096)], **options
    )
    return fault, int(status[0])


def edited(kernel: KernelSource, before: str, after: str) -> KernelSource:
    assert before in kernel.text
    return replace(kernel, text=kernel.text.replace(before, after))


def reason(kernel: KernelSource, made: TensorMapPlan, **options: int) -> str:
    return hostsim.FAULTS[run(kernel, made, **options)[0]]


@needs_compiler
def test_a_right_kernel_runs() -> None:
    assert run(load_kernel(plan()), plan()) == (0, 1)
    assert run(store_kernel(plan("store")), plan("store")) == (0, 1)


def cut_plan(direction: str, rows: int) -> TensorMapPlan:
    """A tile whose columns lie in two shared panels, so that only some column origins have start coordinates."""
    return synthesize_tensormap(
        {
            "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": direction,
            "global": {"shape": [rows, 128], "stride": [128, 1], "dtype": "u8", "base_align_bytes": 256},
            "tile": [16, 64], "smem": {"modes": [[[16, 32]], [[32, 1], [2, 512]]], "swizzle": "32B"},
        }
    )  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("direction", ["load", "store"])
@pytest.mark.parametrize("rows", [16, 32])
def test_the_kernel_refuses_the_origins_that_the_plan_refuses(direction: str, rows: int) -> None:
    made = cut_plan(direction, rows)
    kernel = (load_kernel if direction == "load" else store_kernel)(made)
    refused = 0
    for origin in [(0, 0), (0, 64), (16, 0), (1, 0), (0, 1), (0, 31), (0, 33), (0, 96), (16, 65)]:
        memory = np.full(4096 + 256, 7, dtype=np.uint8)
        address = memory.ctypes.data + (-memory.ctypes.data) % 256
        image, status = np.full(kernel.image_bytes, 9, dtype=np.uint8), np.zeros(1, dtype=np.int32)
        arguments = [place_map(made.raw, address), *origin, image, status]
        assert hostsim.run(kernel, arguments, regions=[(address, 128 * rows)]) == 0
        try:
            made.coordinates(origin)
        except MalformedError:
            refused += 1
            assert status[0] == 3
            assert set(memory.tolist()) == {7}
            assert set(image.tolist()) == {9}
        else:
            assert status[0] == 1
            assert 7 in image if direction == "load" else 9 in memory
    assert 0 < refused < 9


@needs_compiler
def test_a_store_that_is_right_in_bounds_alone_refuses_origins_out_of_bounds() -> None:
    """Elements 6 to 39 belong to the problem: tiles that begin there are stored, those at 0 and from 40 on are not."""
    made = synthesize_tensormap(
        {
            "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "store",
            "global": {"shape": [64], "stride": [1], "dtype": "f32", "base_align_bytes": 256},
            "tile": [8], "smem": {"modes": [[[8, 1]]], "swizzle": "NONE"}, "bounds": [[6, 40]],
        }
    )  # fmt: skip
    assert made.oob == "weak"
    kernel, stored = store_kernel(made), []
    for origin in range(0, 64, 4):
        memory = np.zeros(64 + 64, dtype=np.uint32)
        address = memory.ctypes.data + (-memory.ctypes.data) % 256
        image, status = np.full(kernel.image_bytes, 9, dtype=np.uint8), np.zeros(1, dtype=np.int32)
        arguments = [place_map(made.raw, address), origin, image, status]
        assert hostsim.run(kernel, arguments, regions=[(address, 256)]) == 0
        assert (status[0] == STATUS_ORIGIN) == (not memory.any()) == (not made.expresses((origin,)))
        stored += [origin] if memory.any() else []
    assert stored == [8, 16, 24, 32]


@needs_compiler
@pytest.mark.parametrize("skew", [16, 128, 240])
def test_the_kernel_aligns_its_tile_itself(skew: int) -> None:
    assert run(load_kernel(plan()), plan(), skew_bytes=skew) == (0, 1)


@needs_compiler
def test_wrong_byte_count_times_out() -> None:
    kernel = load_kernel(plan())
    assert run(edited(kernel, "expect_tx(barrier, 512)", "expect_tx(barrier, 528)"), plan()) == (0, 2)


@needs_compiler
def test_reading_before_the_wait_gives_poison() -> None:
    kernel = load_kernel(plan())
    text = kernel.text.replace("    bool done = la_wait_parity(barrier, 0);\n", "")
    text = text.replace(
        "    if (threadIdx.x == 0) *status = done",
        "    bool done = la_wait_parity(barrier, 0);\n    if (threadIdx.x == 0) *status = done",
    )
    early = edited(kernel, kernel.text, text)
    image, status = np.zeros(kernel.image_bytes, dtype=np.uint8), np.zeros(1, dtype=np.int32)
    memory = np.zeros(4096 + 256, dtype=np.uint8)
    address = memory.ctypes.data + (-memory.ctypes.data) % 256
    arguments = [place_map(plan().raw, address), 0, 0, image, status]
    assert hostsim.run(early, arguments, regions=[(address, 4096)]) == 0
    assert (image[:512] == 0xEE).any()


@needs_compiler
def test_threads_run_kernels_at_one_time() -> None:
    made = plan()
    kernel = load_kernel(made)
    alone = run(kernel, made)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: [run(kernel, made) for _ in range(6)], range(16)))
    assert alone == (0, 1)
    assert answers == [[alone] * 6] * 16


@needs_compiler
@pytest.mark.parametrize(
    "options",
    [{"blocks": 2**32}, {"blocks": -1}, {"skew_bytes": 2**32}, {"dynamic_smem_bytes": 2**32 + 64}, {"blocks": True}],
)
def test_launch_numbers_are_not_cut_off(options: dict[str, int]) -> None:
    with pytest.raises(MalformedError, match="LA522"):
        run(load_kernel(plan()), plan(), **options)


@needs_compiler
def test_compilers_that_do_not_end_or_speak_in_any_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = {"LA001": b"exec sleep 60\n", "LA521": b"printf 'fehler: \\377\\376' >&2\nexit 1\n"}
    for number, (code, script) in enumerate(scripts.items()):
        odd = tmp_path / f"g++{number}"
        odd.write_bytes(b"#!/bin/sh\n" + script)
        odd.chmod(0o755)
        monkeypatch.setattr(hostsim, "compiler", lambda odd=odd: str(odd))
        kernel = KernelSource("nothing", f'extern "C" __global__ void nothing() {{}}  // {odd}', "sm_90a", 32, 0, ())
        with pytest.raises(LayoutError, match=code), clock.within(0.2):
            hostsim.run(kernel, [])


@pytest.mark.parametrize("name", ["a b", "", "1st", "x;y", "while", "evil(){}//", "x" * 256, "\u00e4", None, 3, "main"])
def test_a_kernel_name_is_an_identifier(name: str) -> None:
    for make in (
        lambda: KernelSource(name, "", "sm_90a", 32, 0, ()),
        lambda: load_kernel(plan(), name=name) if name is not None else checked_name(name),
        lambda: store_kernel(plan("store"), name=name) if name is not None else checked_name(name),
    ):
        with pytest.raises(MalformedError, match="LA506"):
            make()


@pytest.mark.parametrize(
    ("field", "value"),
    [("threads", 0), ("threads", 1025), ("threads", "32"), ("dynamic_smem_bytes", -1), ("dynamic_smem_bytes", 2**20)],
)
def test_a_kernel_validates_itself(field: str, value: object) -> None:
    with pytest.raises(MalformedError, match=f"LA506[\\s\\S]*{field}"):
        replace(KernelSource("nothing", "", "sm_90a", 32, 0, ()), **{field: value})


WAIT, ARRIVE = "bool done = la_wait_parity(barrier, 0);", "la_arrive_expect_tx(barrier, 512);"


@needs_compiler
@pytest.mark.parametrize(
    ("direction", "before", "after", "says"),
    [
        ("load", WAIT, "bool done = true;", "kernel ended with a load in flight"),
        ("load", "if (threadIdx.x == 0) la_mbarrier_init(barrier, 1);", "", "before its initialisation"),
        ("load", ARRIVE, f"{ARRIVE} {ARRIVE}", "more often than its count"),
        ("load", "barrier = tile_address +", "barrier = tile_address + 256; //", "over a live barrier"),
        ("load", "2d(tile_address,", "2d(tile_address + 4096,", "outside the block's allocation"),
        ("load", "2d(tile_address,", "2d(tile_address + 64,", "not a multiple of 128"),
        ("store", "        la_store_wait();\n", "", "kernel ended with a store not waited for"),
        ("store", "        la_store_commit();\n", "", "kernel ended with a store not waited for"),
    ],
)
def test_a_planted_fault_is_seen(direction: str, before: str, after: str, says: str) -> None:
    made = plan(direction)
    kernel = (load_kernel if direction == "load" else store_kernel)(made)
    assert says in reason(edited(kernel, before, after), made)


@needs_compiler
def test_an_inner_coordinate_off_16_bytes() -> None:
    assert run(load_kernel(plan()), plan(), (0, 8)) == (0, STATUS_ORIGIN)
    shifted = plan().with_changes(issues=(Issue((8, 0), 0),))
    assert hostsim.FAULTS[run(tile_kernel(shifted), shifted)[0]] == "inner start coordinate not a multiple of 16 bytes"


@needs_compiler
def test_memory_outside_the_tensor() -> None:
    memory = np.zeros(512, dtype=np.uint8)
    kernel = load_kernel(plan())
    image, status = np.zeros(kernel.image_bytes, dtype=np.uint8), np.zeros(1, dtype=np.int32)
    raw = place_map(plan().raw, memory.ctypes.data)
    fault = hostsim.run(kernel, [raw, 0, 0, image, status], regions=[(memory.ctypes.data, 512)])
    assert hostsim.FAULTS[fault] == "global address outside every known region"


@needs_compiler
def test_a_negative_store() -> None:
    assert run(store_kernel(plan("store")), plan("store"), (-16, 0)) == (0, STATUS_ORIGIN)
    careless = edited(store_kernel(plan("store")), " || origin0 < 0", "")
    fault, _ = run(careless, plan("store"), (-16, 0))
    assert hostsim.FAULTS[fault] == "store with a negative start coordinate"


@needs_compiler
def test_a_barrier_not_all_threads_reach() -> None:
    text = (
        'extern "C" __global__ void stuck(int* out) {'
        " if (threadIdx.x) __syncthreads(); else while (!*(volatile int*)out) la_host::yield(); }"
    )
    kernel = KernelSource("stuck", PRELUDE + text, "sm_90a", 4, 0, (("int*", "out"),))
    assert hostsim.FAULTS[hostsim.run(kernel, [np.zeros(1, dtype=np.int32)])] == "deadlock"


@needs_compiler
def test_a_runner_of_another_rank() -> None:
    maps = np.zeros(192, dtype=np.uint8)
    aligned = maps[-maps.ctypes.data % 64 :][:128]
    aligned[:] = np.frombuffer(plan().raw, dtype=np.uint8)
    table = runner_tables([(plan().raw, [(0, (0, 0, 0))], 512, 0)])
    images, status = np.zeros(1024, dtype=np.uint8), np.zeros(1, dtype=np.int32)
    fault = hostsim.run(runner_kernel(3, "load"), [aligned, table.heads, table.issues, images, 1024, status])
    assert hostsim.FAULTS[fault] == "descriptor of the wrong rank or an unsupported kind"


def test_operands_that_do_not_fit() -> None:
    tiles = WgmmaTiles(((0, 0),), 0, 64)
    with pytest.raises(MalformedError, match="different numbers of K steps"):
        matmul_kernel(plan(), plan(), tiles, WgmmaTiles(((0,),), 0, 64))
    with pytest.raises(MalformedError, match="covers 64 rows"):
        matmul_kernel(plan(), plan(), WgmmaTiles(((0, 0),), 0, 32), tiles)
    with pytest.raises(MalformedError, match="LA500"):
        matmul_kernel(plan(), plan(), tiles, tiles)  # u8 tiles
    with pytest.raises(MalformedError, match="LA503"):
        matmul_kernel(plan("store"), plan(), tiles, tiles)


def test_a_product_needs_an_architecture_with_wgmma() -> None:
    tiles = WgmmaTiles(((0, 0),), 0, 64)
    other = synthesize_tensormap(plan().problem.with_changes(arch="sm_90", dtype="bf16").to_json())
    with pytest.raises(TargetRuleError, match="sm_90 has no wgmma"):
        matmul_kernel(other, other, tiles, tiles)


def test_arguments_are_checked() -> None:
    kernel = KernelSource(
        "f", 'extern "C" __global__ void f(int x, int* y) {}', "sm_90a", 1, 0, (("int", "x"), ("int*", "y"))
    )
    for arguments in ([1], [1, "y"], [1, np.zeros((4, 4), dtype=np.int32)[:, 0]]):
        with pytest.raises(MalformedError, match="LA522"):
            hostsim.run(kernel, arguments)
    for number in (2**31, True, 1.0):
        with pytest.raises(MalformedError, match="LA522"):
            hostsim.run(kernel, [number, 0])


@needs_compiler
def test_text_that_is_not_cpp() -> None:
    kernel = KernelSource("f", "this is no kernel", "sm_90a", 1, 0, ())
    with pytest.raises(LayoutError, match="LA521"):
        hostsim.run(kernel, [])


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    kernel = KernelSource("never", "// compiled nowhere", "sm_90a", 1, 0, ())
    with pytest.raises(MissingExtraError, match="LA520"):
        hostsim.run(kernel, [])

"""Plans and tile products on a device: every byte is compared with the problem's own statement.

Implementation notes: loads read a buffer that repeats a block of random bytes with an odd period, so that a wrong
address shows; a store has an arena of its own. Plans whose numbers do not fit are reported as skipped, never as
agreeing."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from device import ROOT, Fault, Run, cuda
from device_copies import RUNNERS
from instruments.operands import PRODUCTS, proved_operand
from instruments.runner import runner_kernel, runner_smem_bytes, runner_tables
from judges.planner_problems import random_problem

from layoutalg.codegen.launch import place_map
from layoutalg.codegen.plans import image_bytes
from layoutalg.codegen.product import validate_product
from layoutalg.codegen.validation import default_origins
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.synth.tensormap import synthesize_tensormap
from layoutalg.targets.nvidia.tensormap import element_bytes

PERIOD = 4 * 4194301  # bytes; not a multiple of any power of two above 4
MAX_STORE_BYTES = 2**33
MAX_RUNNER_IMAGE_BYTES = 231408
CHANGING = ("f32_ftz", "tf32", "tf32_ftz")


def plans(count: int, seed: int) -> Iterator[TensorMapPlan]:
    """Yield the plans of the real tiles, loads and stores, and of small random problems of all kinds."""
    tiles = json.loads((ROOT / "layoutalg/cli/data/real_tiles.json").read_text(encoding="utf-8"))["tiles"]
    for problem in (tile["problem"] for tile in tiles):
        stored = {name: value for name, value in problem.items() if name != "oob_fill"} | {"direction": "store"}
        for each in (problem, stored) if problem["direction"] == "load" else (stored,):
            with contextlib.suppress(LayoutError):
                yield synthesize_tensormap(each)
    made = 0
    while made < count:
        seed += 1
        with contextlib.suppress(LayoutError):
            yield synthesize_tensormap(random_problem(random.Random(seed)))
            made += 1


def pattern(kind: str) -> np.ndarray:
    """Return one period of the load buffer: random bytes, or normal floats for the types whose copies change values."""
    rng = np.random.default_rng(7)
    if kind == "bytes":
        return rng.integers(0, 256, PERIOD, dtype=np.uint8)
    words = rng.integers(0, 2**32, PERIOD // 4, dtype=np.uint32) & np.uint32(0x807FE000)
    return (words | rng.integers(64, 192, PERIOD // 4, dtype=np.uint32) << np.uint32(23)).view(np.uint8)


def spread(plan: TensorMapPlan, number: int) -> list[tuple[int, ...]]:
    """Return up to ``number`` of the plan's default origins, spread over the list."""
    origins = default_origins(plan)
    count = min(number, len(origins))
    return [origins[round(i * (len(origins) - 1) / max(count - 1, 1))] for i in range(count)]


def tensor_bytes(plan: TensorMapPlan) -> int:
    """Return the bytes from the base address to the tensor's end, rounded up to 16."""
    return -(-plan.problem.byte_span()[1] // 16) * 16


def run_plan(document: dict[str, Any], origins: int, max_bytes: int) -> dict[str, Any]:
    """Run a plan at several tile origins; return whether it agrees, the compared bytes, and the first difference."""
    plan = TensorMapPlan.from_json(document)
    storing, chosen = plan.direction == "store", spread(plan, origins)
    limit = min(max_bytes, MAX_STORE_BYTES) if storing else max_bytes
    if tensor_bytes(plan) > limit or image_bytes(plan) > MAX_RUNNER_IMAGE_BYTES or not chosen:
        return {"agrees": None, "compared_bytes": 0, "note": "skipped: too large, or no origin"}
    compared, note = 0, ""
    for origin in chosen:
        status, got, wanted = (run_store if storing else run_load)(plan, origin)
        compared += got.size
        if status != 1:
            note = note or f"status {status} at origin {origin}"
        elif not np.array_equal(got, wanted):
            at = int(np.flatnonzero(wanted != got)[0])
            note = note or f"origin {origin}: byte {at} is {got[at]:#x}, expected {wanted[at]:#x}"
    return {"agrees": not note, "compared_bytes": compared, "note": note}


def launch(plan: TensorMapPlan, origin: tuple[int, ...], address: int, image: np.ndarray) -> tuple[int, np.ndarray]:
    """Launch the runner of a plan; return its status and the image."""
    device, flag = cuda(), np.zeros(1, dtype=np.int32)
    issues = [(issue.smem_offset_bytes, c) for issue, c in zip(plan.issues, plan.coordinates(origin), strict=True)]
    tables = runner_tables([(place_map(plan.raw, address), issues, plan.expect_tx_bytes, 0)])
    there = [device.upload(each) for each in (tables.maps, tables.heads, tables.issues, image, flag)]
    kernel = runner_kernel(len(plan.tensor_map.dims), plan.direction)
    device.launch(kernel, [*there[:4], image.size, there[4]], smem=runner_smem_bytes(image.size))
    found = device.download(there[3], image), int(device.download(there[4], flag)[0])
    device.free(*there)
    return found[1], found[0]


def width(plan: TensorMapPlan) -> int:
    """Bytes of a plan's shared memory, rounded up to 16."""
    return -(-image_bytes(plan) // 16) * 16


def run_load(plan: TensorMapPlan, origin: tuple[int, ...]) -> tuple[int, np.ndarray, np.ndarray]:
    """Run a load; return the status, the image, and what it must be."""
    period = pattern("floats" if plan.problem.dtype in CHANGING else "bytes")
    address = cuda().repeated(period, tensor_bytes(plan))
    status, image = launch(plan, origin, address, np.zeros(width(plan), dtype=np.uint8))
    cuda().free(address)
    place, inside = plan.problem.elements(origin)
    size = element_bytes(plan.problem.dtype)
    memory = np.zeros(tensor_bytes(plan), dtype=np.uint8)  # pages are touched only where the tile lies
    touched = (place[inside] * size)[:, None] + np.arange(size)
    memory[touched] = period[touched % PERIOD]
    values, _ = plan.problem.expected(memory, origin)
    wanted = np.full(image.size, 0xEE, dtype=np.uint8)
    bytes_of = plan.requested_addresses()[..., None] + np.arange(size)
    wanted[bytes_of] = values
    if plan.oob == "lost":  # such a plan says that it does not fill
        wanted[bytes_of[~inside]] = image[bytes_of[~inside]]
    return status, image, wanted


def run_store(plan: TensorMapPlan, origin: tuple[int, ...]) -> tuple[int, np.ndarray, np.ndarray]:
    """Run a store in an arena of its own; return the status, the memory around the tile, and what it must be."""
    image = np.random.default_rng(9).integers(0, 256, width(plan), dtype=np.uint8)
    if plan.problem.dtype in CHANGING:
        image = np.resize(pattern("floats")[: image.size + 4], image.size)
    arena = cuda().filled(tensor_bytes(plan), 0xA5)
    status, image = launch(plan, origin, arena, image)
    place, inside = plan.problem.elements(origin)
    lanes = np.arange(element_bytes(plan.problem.dtype))
    touched = (place[inside] * lanes.size)[:, None] + lanes
    first, last = 0, tensor_bytes(plan)
    if last > 2**22:
        low, high = (int(touched.min()), int(touched.max()) + 1) if touched.size else (0, 0)
        first, last = max(low - 4096, 0), min(high + 4096, last)
    got = cuda().download(arena + first, np.zeros(last - first, dtype=np.uint8))
    cuda().free(arena)
    wanted = np.full(last - first, 0xA5, dtype=np.uint8)
    wanted[touched - first] = image[plan.requested_addresses()[inside][:, None] + lanes]
    return status, got, wanted


def run_product(case: tuple[Any, ...]) -> dict[str, Any]:
    """Run a tile product through proved descriptors, at the first origin and inside."""
    (major_a, swizzle_a, major_b, swizzle_b, m, n, k), dtype = case
    a, b = proved_operand("A", m, k, major_a, swizzle_a, dtype), proved_operand("B", n, k, major_b, swizzle_b, dtype)
    inside = tuple(tuple(multiple for multiple in side.copy.problem.origin_multiple) for side in (a, b))
    reports = [validate_product(a, b, origins, device="cuda", seed=3) for origins in (None, inside)]
    return {"product": case, "agrees": all(map(bool, reports)), "note": "; ".join(str(r) for r in reports if not r)}


def plans_job(run: Run) -> None:
    """Run all plans at up to ``--origins`` tile origins each, and the products."""
    run.compile(runner_kernel(*each) for each in RUNNERS)
    documents = [plan.to_json() for plan in plans(run.options.random, run.options.seed - 1)]
    answers = run.each(run_plan, documents, run.options.origins, run.options.max_bytes, seconds=120)
    rows = [{"plan": document, **verdict(answer)} for document, answer in zip(documents, answers, strict=True)]
    cases = [(case, dtype) for case in PRODUCTS for dtype in ("bf16", "f16")]
    products = [verdict(answer) for answer in run.each(run_product, cases, group=4, seconds=240)]
    summary = {"agree": sum(row["agrees"] is True for row in rows), "bytes": sum(row["compared_bytes"] for row in rows)}
    summary |= {"plans": len(rows), "skipped": sum(row["agrees"] is None for row in rows), "products": len(products)}
    wrong = [row["note"] for row in (*rows, *products) if row["agrees"] is False]
    run.write("plans_dev", summary | {"wrong": wrong[:12]}, rows=rows, products=products)


def verdict(answer: Any) -> dict[str, Any]:
    """An answer, or the fault in its place."""
    fault = {"agrees": False, "compared_bytes": 0}
    return fault | {"note": answer.text} if isinstance(answer, Fault) else dict(answer)

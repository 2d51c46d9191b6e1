"""A tile product end to end: two proved copies, the descriptors that read them, one kernel, one exact comparison.

With small integers as values every partial sum is exact in float, so the kernel's result must equal the integer product
of the tiles described by the problems, including out-of-bounds zeros.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layoutalg.codegen import hostsim, launch
from layoutalg.codegen.backends import chosen_backend, run_on
from layoutalg.codegen.kernel import KernelSource, checked_int, status_text
from layoutalg.codegen.matmul import WgmmaTiles, matmul_kernel
from layoutalg.codegen.plans import checked_plan, origin_arguments, upheld
from layoutalg.codegen.validation import modelled_bytes
from layoutalg.ground import limits
from layoutalg.ground.check import Checker
from layoutalg.ground.record import Checked, Record
from layoutalg.proofs.handoff import OperandView
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.proofs.wgmma import OperandPlan

CHECK = Checker("LA505", "invalid product argument")
LARGEST = 8
"""Values are integers in [-8, 8]: sums of up to 2^17 products stay exact in float."""


@dataclass(frozen=True, slots=True)
class Operand(Checked, code="LA505"):
    """A copy into shared memory, its tile's view as a matrix, and the descriptors that read it.

    Args:
        copy: Load plan of the tile.
        view: Which tile dimensions are MN and K.
        consumer: Descriptors for the same tile base.
    """

    copy: TensorMapPlan
    view: OperandView
    consumer: OperandPlan

    def _validate(self) -> None:
        checked_plan(self.copy, "load")


@dataclass(frozen=True, slots=True)
class ProductReport(
    Record, schema="layoutalg/product-validation/1", json="agrees backend device shape difference note seconds"
):
    """The result of a product validation; true iff every element is right.

    Args:
        backend: ``"cuda"`` or ``"host"`` (the same kernel text on the CPU with C++ models).
        device: Name of the GPU, or None.
        shape: (M, N, K).
        difference: First wrong element ``(row, column, expected, got)``, or None.
        note: Why the kernel ended early, or empty.
        seconds: Wall-clock time.
    """

    backend: str
    device: str | None
    shape: tuple[int, int, int]
    difference: tuple[int, int, float, float] | None
    note: str
    seconds: float

    @property
    def agrees(self) -> bool:
        """Whether every element is right."""
        return self.difference is None and not self.note

    def __bool__(self) -> bool:
        return self.agrees


def wgmma_tiles(consumer: OperandPlan) -> WgmmaTiles:
    """Return an operand plan's descriptors as the table for ``matmul_kernel``."""
    upheld(CHECK.kind(consumer, OperandPlan, "consumer"))
    rows: dict[int, dict[int, int]] = {}
    for tile in consumer.tiles:
        rows.setdefault(tile.mn, {})[tile.k] = tile.encoded
    table = tuple(tuple(line[k] for k in sorted(line)) for _, line in sorted(rows.items()))
    return WgmmaTiles(table, consumer.transpose, consumer.rows)


def product_kernel(a: Operand, b: Operand, name: str = "la_product") -> KernelSource:
    """Return the kernel that loads both tiles and writes D = A B^T in float."""
    for argument, operand in (("a", a), ("b", b)):
        CHECK.kind(operand, Operand, argument)
    return matmul_kernel(a.copy, b.copy, wgmma_tiles(a.consumer), wgmma_tiles(b.consumer), name)


def validate_product(
    a: Operand,
    b: Operand,
    origins: tuple[Sequence[int], Sequence[int]] | None = None,
    *,
    device: str = "auto",
    seed: int = 0,
) -> ProductReport:
    """Run the product of two tiles on random integers and compare every element with the exact result.

    Args:
        a: Operand A, tile [M, K].
        b: Operand B, tile [N, K].
        origins: Tile origins of A and B; default 0.
        device: ``"cuda"``, ``"host"``, or ``"auto"``: the GPU if there is one, otherwise the CPU models.
        seed: Seed of the values.
    """
    for argument, operand in (("a", a), ("b", b)):
        CHECK.kind(operand, Operand, argument)
    checked_int(seed, "seed", 0, 2**64, "validate_product", "LA544")
    backend, _, name = chosen_backend(device, a.copy.problem.arch, ("cuda", "host"), "validate_product")
    began = time.perf_counter()
    rng = np.random.default_rng(seed)
    starts = origins or ((0,) * a.copy.problem.rank, (0,) * b.copy.problem.rank)
    memories = [_memory(operand.copy, rng) for operand in (a, b)]
    tiles = [_matrix(operand, memory, start) for operand, memory, start in zip((a, b), memories, starts, strict=True)]
    wanted = tiles[0] @ tiles[1].T
    got, note = _run(product_kernel(a, b), (a, b), memories, starts, wanted.shape, backend)
    wrong = np.argwhere(got != wanted)
    difference = None
    if wrong.size and not note:
        row, column = (int(v) for v in wrong[0])
        difference = (row, column, float(wanted[row, column]), float(got[row, column]))
    shape = (wanted.shape[0], wanted.shape[1], tiles[0].shape[1])
    return ProductReport(backend, name, shape, difference, note, round(time.perf_counter() - began, 4))


def _memory(plan: TensorMapPlan, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Random small integers in the plan's element type, over the whole tensor."""
    problem = plan.problem
    count = modelled_bytes(plan, limits.PRODUCT_BYTES, "validate_product") // 2
    values = rng.integers(-LARGEST, LARGEST + 1, count)
    if problem.dtype == "f16":
        bits = values.astype("<f2").view("<u2")
    else:
        bits = (values.astype("<f4").view("<u4") >> 16).astype("<u2")
    store = np.zeros(2 * count + 512, dtype=np.uint8)
    aligned = store[-store.ctypes.data % 256 :][: 2 * count]
    aligned[:] = bits.view(np.uint8)
    return aligned


def _matrix(operand: Operand, memory: npt.NDArray[np.uint8], origin: Sequence[int]) -> npt.NDArray[np.float64]:
    """The operand's matrix [MN, K] as described by its problem."""
    problem = operand.copy.problem
    raw, _ = problem.expected(memory, origin)
    words = np.ascontiguousarray(raw).view("<u2").reshape(problem.tile)
    if problem.dtype == "f16":
        values = words.view("<f2").astype(np.float64)
    else:
        values = (words.astype("<u4") << 16).view("<f4").astype(np.float64)
    matrix = np.moveaxis(values, (operand.view.mn_dim, operand.view.k_dim), (-2, -1))
    return matrix.reshape(operand.view.problem.shape)


def _run(
    kernel: KernelSource,
    operands: tuple[Operand, Operand],
    memories: list[npt.NDArray[np.uint8]],
    starts: tuple[Sequence[int], Sequence[int]],
    shape: tuple[int, ...],
    backend: str,
) -> tuple[npt.NDArray[np.float64], str]:
    """Return the result, and why the kernel ended early."""
    result, status = np.full(shape, np.nan, dtype=np.float32), np.zeros(1, dtype=np.int32)

    def arguments(addresses: Sequence[int]) -> list[hostsim.Argument]:
        words: list[hostsim.Argument] = []
        for operand, address, start in zip(operands, addresses, starts, strict=True):
            words += [launch.place_map(operand.copy.raw, address), *origin_arguments(operand.copy, start)]
        return [*words, result, status]

    note = run_on(backend, kernel, memories, arguments) or status_text(int(status[0]))
    return result.astype(np.float64), note

"""Compare what a plan does with what its problem states, byte by byte, on a GPU or a model of one.

Implementation notes: the prediction comes only from the problem (which element belongs at which shared byte), never
from the plan's descriptor. The bytes come from the chosen backend: ``cuda`` launches the plan's kernel, ``host`` runs
the same text on the CPU with C++ models, ``simulator`` calls the Python model of the copy engine. If every byte agrees,
the checker decides: it also verifies claims that no run shows, such as the stated class of fill.
"""

from __future__ import annotations

import math
import mmap
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layoutalg.codegen.backends import Backend, Spans, chosen_backend, open_backend
from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.cuda import tile_kernel
from layoutalg.codegen.kernel import checked_int
from layoutalg.codegen.plans import checked_plan, image_bytes, launchable, origin_arguments, refutation
from layoutalg.codegen.simulate import POISON
from layoutalg.ground import clock, limits
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, MalformedError, MissingExtraError
from layoutalg.ground.memory import reserve
from layoutalg.ground.record import Record
from layoutalg.ground.verdict import Refuted, Unknown
from layoutalg.proofs.tensormap import TensorMapPlan, check
from layoutalg.targets.nvidia.tensormap import element_bytes
from layoutalg.targets.nvidia.tensormap.limits import MAX_PHASE_BYTES, MAX_SMEM_BYTES

MAX_FILLED_BYTES = 2**26
"""Memory up to this size is random throughout; larger memory only at a tile's elements."""
MAX_ALIGN_BYTES = 2**16
"""Memory is aligned like the tensor's base up to this; no copy depends on more."""
STORE_MARGIN_BYTES = 4096
BACKENDS = ("cuda", "host", "simulator")
CHECK = Checker("LA544", "invalid argument to validate()")
MOST_ORIGINS = 2**16


@dataclass(frozen=True, slots=True)
class Difference(Record):
    """The first byte that contradicts the prediction.

    Args:
        origin: Tile origin in elements, outermost first.
        address: Byte address: in shared memory relative to the tile base for a load, in global memory for a store.
        coordinate: Tile coordinate of the byte's element, outermost first; None if it belongs to none.
        expected: Predicted byte.
        got: Byte found; None if the kernel did not finish.
        reason: What happened, in words.
    """

    origin: tuple[int, ...]
    address: int
    coordinate: tuple[int, ...] | None
    expected: int
    got: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class ValidationReport(
    Record,
    schema="layoutalg/validation/1",
    json="agrees backend note device origins compared_bytes difference cubin_bytes seconds",
):
    """The result of a validation; true iff every byte agrees.

    Args:
        backend: ``"cuda"``, ``"host"`` or ``"simulator"``: what produced the bytes.
        note: Why this backend was used, or empty.
        device: Name of the GPU, or None.
        origins: Tile origins compared, in order.
        compared_bytes: Bytes compared until the end or the first difference.
        difference: The first difference, or None.
        cubin_bytes: Size of the kernel's machine code; None if it was not compiled.
        seconds: Wall-clock time.
    """

    backend: str
    note: str
    device: str | None
    origins: tuple[tuple[int, ...], ...]
    compared_bytes: int
    difference: Difference | None
    cubin_bytes: int | None
    seconds: float

    @property
    def agrees(self) -> bool:
        """Whether every byte agrees."""
        return self.difference is None

    def __bool__(self) -> bool:
        return self.agrees

    def __str__(self) -> str:
        where = self.device or self.backend
        if self.difference is None:
            return f"agrees: {self.compared_bytes} bytes at {len(self.origins)} origins on {where}"
        found = self.difference
        got = "nothing" if found.got is None else f"{found.got:#04x}"
        return (
            f"refuted on {where}: origin {list(found.origin)}, tile coordinate "
            f"{None if found.coordinate is None else list(found.coordinate)}, byte {found.address}: expected "
            f"{found.expected:#04x}, got {got} ({found.reason})"
        )


def validate(
    plan: TensorMapPlan, origins: Sequence[Sequence[int]] | None = None, *, device: str = "auto", seed: int = 0
) -> ValidationReport:
    """Run a plan on random memory and compare every byte with the prediction.

    Args:
        plan: A load or store plan.
        origins: Tile origins in elements, outermost first; by default ``default_origins(plan)``.
        device: ``"cuda"``, ``"host"``, ``"simulator"``, or ``"auto"``: a GPU of the plan's architecture if present,
            otherwise the simulator; the report says which.
        seed: Seed of the random memory.

    Returns:
        The report; a mismatch, a time-out or a refusal by the model is a difference, not an exception.
    """
    checked_plan(plan)
    checked_int(seed, "seed", 0, 2**64, "validate", "LA544")
    began = time.perf_counter()
    backend, note, name = chosen_backend(device, plan.problem.arch, BACKENDS, "validate")
    unfit = _unfit(plan)
    if unfit is not None:
        return ValidationReport(backend, note, name, (), 0, unfit, None, 0.0)
    given = default_origins(plan) if origins is None else CHECK.entries(origins, "origins", MOST_ORIGINS)
    chosen = tuple(tuple(origin_arguments(plan, origin)) for origin in given)
    cubin = None if backend == "simulator" else _cubin_bytes(plan)
    reserve(
        "a validation", image_bytes(plan) + 24 * math.prod(plan.problem.tile) * element_bytes(plan.problem.dtype), 3
    )
    rng = np.random.default_rng(seed)
    memory = _memory(plan, chosen, rng)
    opened = open_backend(backend, plan, memory, _spans(plan, memory, chosen))
    compared = 0
    difference: Difference | None = None
    for origin in chosen:
        clock.check("a validation")
        if plan.direction == "load":
            size, difference = _load(plan, memory, origin, opened)
        else:
            image = _random(plan.problem.dtype, image_bytes(plan), rng)
            size, difference = _store(plan, memory, origin, opened, image)
        compared += size
        if difference is not None:
            break
    else:
        difference, unproved = _disproved(plan)
        note = "; ".join(filter(None, (note, unproved)))
    return ValidationReport(
        backend, note, name, chosen, compared, difference, cubin, round(time.perf_counter() - began, 4)
    )


def default_origins(plan: TensorMapPlan) -> tuple[tuple[int, ...], ...]:
    """Return tile origins that exercise a plan within the promise of its out-of-bounds class.

    Inside; at each far edge; fully outside; before the first element (only loads of class ``"exact"``). Class
    ``"weak"`` is tested only at origins in bounds, class ``"lost"`` only with tiles fully inside.

    Returns:
        Distinct origins in elements, outermost first.
    """
    problem = checked_plan(plan).problem
    per_dim: list[list[int]] = []
    for extent, step, multiple, (low, high) in zip(
        problem.tile, problem.element_strides, problem.origin_multiple, problem.bounds, strict=True
    ):
        if multiple == 0:
            per_dim.append([0])
            continue
        reach = (extent - 1) * step + 1
        wanted = [low, (high - reach) // 2, high - reach, high - 1, high, high + reach, low - 1, low - reach]
        values = [value // multiple * multiple for value in wanted]
        per_dim.append(list(dict.fromkeys(v for v in values if _allowed(plan, v, reach, low, high))))
    if not all(per_dim):
        return ()
    base = tuple(values[0] for values in per_dim)
    found = [base]
    for dim, values in enumerate(per_dim):
        found += [(*base[:dim], value, *base[dim + 1 :]) for value in values]
    rng = np.random.default_rng(0)
    found += [tuple(int(values[rng.integers(len(values))]) for values in per_dim) for _ in range(8)]
    return tuple(origin for origin in dict.fromkeys(found) if plan.direction == "load" or plan.expresses(origin))


def _unfit(plan: TensorMapPlan) -> Difference | None:
    """Return a number of the plan that no launch can express, or a footprint that is too small, as a difference."""
    try:
        launchable(plan)
    except MalformedError as error:
        return _claim(plan, error.diagnostic.because)
    if plan.direction == "load" and plan.smem_bytes <= MAX_SMEM_BYTES and plan.expect_tx_bytes > MAX_PHASE_BYTES:
        return _claim(plan, f"a barrier counts at most {MAX_PHASE_BYTES} bytes, not {plan.expect_tx_bytes}")
    end = int(plan.requested_addresses().max()) + element_bytes(plan.problem.dtype)
    if end > plan.smem_bytes:
        return _claim(plan, f"elements end at shared byte {end}, beyond the plan's smem_bytes {plan.smem_bytes}")
    return None


def _disproved(plan: TensorMapPlan) -> tuple[Difference | None, str]:
    """Return the claim that the checker refutes although the bytes agree, and a note if it is undecided."""
    verdict = check(plan)
    if isinstance(verdict, Refuted):
        what, facts = refutation(verdict)
        told = ", ".join(f"{key}={value}" for key, value in facts.items())
        return _claim(plan, f"the checker refutes a claim: {what} ({told})"), ""
    return None, f"not proved: {verdict.reason}" if isinstance(verdict, Unknown) else ""


def _claim(plan: TensorMapPlan, reason: str) -> Difference:
    """Return a difference for a wrong claim of the plan; it has no byte."""
    return Difference((0,) * plan.problem.rank, 0, None, 0, None, reason)


def _allowed(plan: TensorMapPlan, value: int, reach: int, low: int, high: int) -> bool:
    if not -(2**31) <= value < 2**31 - 2 * reach:
        return False
    if plan.oob == "lost":
        return low <= value and value + reach <= high
    if plan.oob == "weak":
        return low <= value < high
    return plan.direction == "load" or value >= 0


def _cubin_bytes(plan: TensorMapPlan) -> int | None:
    try:
        return len(to_cubin(tile_kernel(plan)))
    except MissingExtraError:
        return None


def modelled_bytes(plan: TensorMapPlan, limit: int, call: str) -> int:
    """Return the bytes from a tensor's base to its end, refused if a model has no memory for it."""
    first, end = plan.problem.byte_span()
    if end > limit:
        raise MalformedError(Diagnostic("LA541", "the tensor is too large to model", (call,), f"{end} bytes > {limit}"))
    if first < 0:
        because = f"its first element is {-first} bytes before the base address, where the model has no memory"
        raise MalformedError(Diagnostic("LA541", "the tensor begins before its base", (call,), because))
    return end


def _memory(plan: TensorMapPlan, origins: Sequence[tuple[int, ...]], rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Return the tensor's memory, aligned like its base, random at least at the tiles' elements."""
    problem = plan.problem
    size = element_bytes(problem.dtype)
    total = modelled_bytes(plan, limits.VALIDATED_BYTES, "validate")
    memory = _reserved(-(-total // 16) * 16, min(max(problem.base_align_bytes, 16), MAX_ALIGN_BYTES))
    if memory.size <= MAX_FILLED_BYTES:
        memory[:] = _random(problem.dtype, memory.size, rng)
        return memory
    for origin in origins:
        element, inside = problem.elements(origin)
        positions = element[inside][:, None] * size + np.arange(size)
        memory[positions] = _random(problem.dtype, positions.size, rng).reshape(positions.shape)
    return memory


def _reserved(size: int, align: int) -> npt.NDArray[np.uint8]:
    """Return zeroed, aligned memory; untouched pages cost nothing, so it may exceed the machine's memory."""
    if size <= MAX_FILLED_BYTES or not sys.platform.startswith("linux"):
        store = np.zeros(size + align, dtype=np.uint8)
    else:
        no_reserve = 0x4000  # MAP_NORESERVE, missing from older mmap modules
        pages = mmap.mmap(-1, size + align, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve)
        store = np.frombuffer(pages, dtype=np.uint8)
    first = -store.ctypes.data % align
    return store[first : first + size]


def _spans(plan: TensorMapPlan, memory: npt.NDArray[np.uint8], origins: Sequence[tuple[int, ...]]) -> Spans | None:
    """Return the byte ranges of a large memory that contain the tiles' elements; None (everything) if it is small."""
    if memory.size <= MAX_FILLED_BYTES:
        return None
    size = element_bytes(plan.problem.dtype)
    found = []
    for origin in origins:
        element, inside = plan.problem.elements(origin)
        touched = element[inside]
        if touched.size:
            found.append((int(touched.min()) * size, (int(touched.max()) + 1) * size))
    return tuple(found)


def _random(dtype: str, size: int, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Return random bytes; normal floats for types whose copies may change values."""
    if dtype not in ("f32_ftz", "tf32", "tf32_ftz"):
        return rng.integers(0, 256, size, dtype=np.uint8)
    words = rng.integers(0, 2**32, -(-size // 4), dtype=np.uint32)
    exponent = rng.integers(64, 192, words.size, dtype=np.uint32) << np.uint32(23)
    return ((words & np.uint32(0x807FFFFF)) | exponent).view(np.uint8)[:size]


def _load(
    plan: TensorMapPlan, memory: npt.NDArray[np.uint8], origin: tuple[int, ...], backend: Backend
) -> tuple[int, Difference | None]:
    """Compare one tile load; return the bytes compared and the first difference."""
    values, _ = plan.problem.expected(memory, origin)
    addresses = plan.requested_addresses()
    wanted = np.full(image_bytes(plan), POISON, dtype=np.uint8)
    wanted[addresses[..., None] + np.arange(values.shape[-1])] = values
    image, reason = backend.load(origin)
    if reason:
        return 0, Difference(origin, 0, None, int(wanted[0]), None, reason)
    return wanted.size, _difference(plan, origin, wanted, image, addresses, 0)


def _store(
    plan: TensorMapPlan,
    memory: npt.NDArray[np.uint8],
    origin: tuple[int, ...],
    backend: Backend,
    image: npt.NDArray[np.uint8],
) -> tuple[int, Difference | None]:
    """Compare one tile store; return the bytes compared and the first difference.

    The comparison covers the span of the tile's elements plus a margin, or all of a small memory.
    """
    size = element_bytes(plan.problem.dtype)
    element, inside = plan.problem.elements(origin)
    addresses = plan.requested_addresses()
    lanes = np.arange(size)
    positions = element[inside][:, None] * size + lanes
    first, last = 0, memory.size
    if memory.size > MAX_FILLED_BYTES:
        low, high = (int(positions.min()), int(positions.max()) + 1) if positions.size else (0, 0)
        first, last = max(low - STORE_MARGIN_BYTES, 0), min(high + STORE_MARGIN_BYTES, memory.size)
    wanted = backend.read(first, last).copy()
    wanted[positions - first] = image[addresses[inside][:, None] + lanes]
    reason = backend.store(image, origin)
    if reason:
        return 0, Difference(origin, 0, None, int(wanted[0]), None, reason)
    owners = np.where(inside, element * size, -size)
    return wanted.size, _difference(plan, origin, wanted, backend.read(first, last), owners, first)


def _difference(
    plan: TensorMapPlan,
    origin: tuple[int, ...],
    wanted: npt.NDArray[np.uint8],
    got: npt.NDArray[np.uint8],
    owners: npt.NDArray[np.int64],
    first: int,
) -> Difference | None:
    """Return the first differing byte and the tile element that contains it (by ``owners``).

    ``wanted`` and ``got`` start at byte ``first``; ``owners`` counts from byte 0.
    """
    if np.array_equal(wanted, got):
        return None
    index = int(np.flatnonzero(wanted != got)[0])
    at = first + index
    inside = (owners <= at) & (at < owners + element_bytes(plan.problem.dtype))
    coordinate = tuple(int(i) for i in np.argwhere(inside)[0]) if inside.any() else None
    reason = "wrong value" if coordinate is not None else "a byte outside the tile was written"
    return Difference(origin, at, coordinate, int(wanted[index]), int(got[index]), reason)

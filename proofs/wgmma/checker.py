"""Checker of operand plans: proves that ``wgmma`` reads the requested bytes, and that a copy wrote them there.

It checks, each with the first counterexample:
  1. the instruction tiles have a legal shape and cover the operand, each element once;
  2. every 64-bit word decodes to its descriptor's fields and the fields encode to the word;
  3. for every element of every instruction and every phase of the tile base possible under the stated alignment, the
     byte read is the byte requested;
  4. the plan's numbers (steps, alignment, end, unread fields, evidence) equal the ones recomputed here.

It shares no algorithm with the finder. Requested addresses are walked from the problem's digits; read addresses and
word fields come from ``reading``, an independent transcription of the measured table. The XOR depends only on address
bits 4..9, so bases that agree modulo 1024 behave the same, which makes 3 a proof for every base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, Diagnostic, MalformedError
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
from layoutalg.proofs.fields import wrong_certificate
from layoutalg.proofs.tensormap.swizzle import PHASES
from layoutalg.proofs.wgmma import reading
from layoutalg.proofs.wgmma.operand import InstructionTile, OperandPlan, OperandProblem
from layoutalg.targets.nvidia import wgmma as hardware

ENGINE = "table"
CERTIFICATE_SCHEMA = "layoutalg/certificate/1"
CLAIM = "requested shared-memory address = address wgmma reads, for every element and every tile base of the alignment"
HANDOFF_CLAIM = "every element wgmma reads at (mn, k) is the element (mn, k) that the copy wrote there"
PHASE_PERIOD_BYTES = 1024
"""No swizzle reads address bits above 9."""


class _MismatchError(Exception):
    """Refutes the plan with a witness."""

    def __init__(self, claim: str, **witness: object) -> None:
        super().__init__(claim)
        self.witness: dict[str, object] = {"claim": claim, **witness}


def check(plan: OperandPlan | Mapping[str, object]) -> Verdict:
    """Decide whether a plan's descriptors read what its problem requests.

    Args:
        plan: A plan or its JSON document.

    Returns:
        ``Proved`` with the certificate, ``Refuted`` with the first counterexample (for addresses: the tile coordinate
        ``mn``, ``k`` and the requested and read byte address), or ``Unknown`` on exceeding the time limit.

    Example:
        >>> d = hardware.MatrixDescriptor(0, 16, 512, 0, "128B")
        >>> problem = OperandProblem("A", (64, 16), (((64, 64),), ((16, 1),)), "128B")
        >>> tiles = (InstructionTile(0, 0, d, d.encode()),)
        >>> plan = OperandPlan(problem, "K", 64, tiles, 1024, 8192, (), (), ("leading_bytes",), "measured")
        >>> witness = check(plan).witness
        >>> witness["mn"], witness["k"], witness["requested_byte"], witness["read_byte"]
        (8, 0, 1024, 576)
    """
    value = _plan(plan)
    try:
        certificate = _certify(value)
        differs = wrong_certificate(value.certificate, certificate)
        if differs is not None:
            raise _MismatchError("wrong certificate", **differs)
    except _MismatchError as mismatch:
        return Refuted(ENGINE, mismatch.witness)
    except BudgetError as spent:
        return Unknown(spent.diagnostic.because, (ENGINE,))
    return Proved(ENGINE, certificate)


def handoff(image: npt.NDArray[np.integer], plan: OperandPlan | Mapping[str, object]) -> Verdict:
    """Decide whether ``wgmma`` reads at every (mn, k) the element (mn, k) that a copy wrote.

    Args:
        image: One-dimensional integer array: ``image[byte_address / element bytes]`` is the flat tile element ``mn * K
            + k`` written there, or -1; addresses are relative to the tile base.
        plan: A plan or its JSON document.

    Returns:
        ``Proved`` with a certificate whose ``align_bytes`` the tile base must meet (in addition to the copy's own
        alignment), or ``Refuted`` with the first wrong (mn, k), the byte address read and the element there.

    Example:
        >>> d = hardware.MatrixDescriptor(0, 128, 256)
        >>> problem = OperandProblem("A", (64, 16), (((8, 8), (8, 128)), ((8, 1), (2, 64))))
        >>> tiles = (InstructionTile(0, 0, d, d.encode()),)
        >>> plan = OperandPlan(problem, "K", 64, tiles, 16, 2048, (), (), (), "measured")
        >>> image = np.full(1024, -1)
        >>> image[requested_addresses(problem).reshape(-1) // 2] = np.arange(1024)
        >>> bool(handoff(image, plan))
        True
    """
    value = _plan(plan)
    try:
        written = np.asarray(image)
    except (ValueError, TypeError, OverflowError):
        raise _malformed("image must be a one-dimensional integer array", type(image).__name__) from None
    if written.ndim != 1 or written.dtype.kind not in "iu":
        raise _malformed("image must be a one-dimensional integer array", f"{written.dtype}{list(written.shape)}")
    try:
        read = _check_handoff(written.astype(np.int64), value)
    except _MismatchError as mismatch:
        return Refuted(ENGINE, mismatch.witness)
    except BudgetError as spent:
        return Unknown(spent.diagnostic.because, (ENGINE,))
    period = max(reading.period_bytes(tile.descriptor.swizzle) for tile in value.tiles)
    return Proved(
        ENGINE,
        {
            "schema": CERTIFICATE_SCHEMA,
            "claim": HANDOFF_CLAIM,
            "engine": ENGINE,
            "elements": read,
            "instructions": len(value.tiles),
            "align_bytes": max(period, value.align_bytes),
            "evidence": hardware.operand_evidence(value.problem.operand),
            "digest": value.digest(),
        },
    )


def requested_addresses(problem: OperandProblem, tile_base_bytes: int = 0) -> npt.NDArray[np.int64]:
    """Return the requested absolute shared byte address of every tile element.

    Args:
        problem: The problem.
        tile_base_bytes: Absolute address of the tile base, at least 0.

    Returns:
        int64[mn, k]; for one-bit elements, the containing byte.

    Example:
        >>> requested_addresses(OperandProblem("B", (8, 16), (((8, 64),), ((16, 1),)), "128B"))[1, [0, 8]].tolist()
        [144, 128]
    """
    mn, k = np.indices(problem.shape, dtype=np.int64)
    elements = np.zeros(problem.shape, dtype=np.int64)
    for coordinate, modes in zip((mn, k), problem.smem_modes, strict=True):
        weight = 1
        for extent, stride in modes:
            elements += coordinate // weight % extent * stride
            weight *= extent
    address = tile_base_bytes + problem.smem_base_bytes + elements * problem.element_bits // 8
    for bit in range(PHASES[problem.swizzle].bit_length() - 1):
        # deliberately bit by bit, as documented for TensorMaps: ``targets`` uses arithmetic
        address ^= (address >> (7 + bit) & 1) << (4 + bit)
    return address


def _check_bits(problem: OperandProblem) -> None:
    """Check that one-bit element k is bit k mod 8 of its byte."""
    if problem.element_bits > 1:
        return
    for axis, modes in enumerate(problem.smem_modes):
        index = np.arange(problem.shape[axis], dtype=np.int64)
        wanted = index % 8 if axis else 0 * index
        total = 0 * index
        for extent, stride in modes:
            total += index % extent * stride
            index //= extent
        wrong = np.flatnonzero(total % 8 != wanted)
        if wrong.size:
            place = int(wrong[0])
            coordinate = {"mn": 0, "k": place} if axis else {"mn": place, "k": 0}
            raise _MismatchError("wgmma reads another bit", **coordinate, expected=place % 8 if axis else 0,
                                 got=int(total[place]) % 8)  # fmt: skip


def _malformed(rule: str, actual: object) -> MalformedError:
    return MalformedError(
        Diagnostic("LA362", "malformed argument of the wgmma checker", because=f"{rule}, not {actual}")
    )


def _plan(plan: object) -> OperandPlan:
    if isinstance(plan, OperandPlan):
        return plan
    if isinstance(plan, Mapping):
        return OperandPlan.from_json(dict(plan))
    raise _malformed("plan must be an OperandPlan or its JSON document", type(plan).__name__)


def _certify(plan: OperandPlan) -> dict[str, object]:
    _check_cover(plan)
    _check_bits(plan.problem)
    for tile in plan.tiles:
        _check_word(tile)
    end = _check_addresses(plan)
    _check_steps(plan)
    _check_claims(plan, end)
    return {
        "schema": CERTIFICATE_SCHEMA,
        "claim": CLAIM,
        "engine": ENGINE,
        "elements": plan.problem.shape[0] * plan.problem.shape[1],
        "instructions": len(plan.tiles),
        "base_phases": len(_phases(plan)),
        "align_bytes": plan.align_bytes,
        "evidence": plan.evidence,
        "digest": plan.digest(),
    }


def _grid(plan: OperandPlan) -> Iterator[tuple[int, int]]:
    mn, k = plan.problem.shape
    return ((row, column) for row in range(0, mn, plan.rows) for column in range(0, k, plan.problem.instruction_k))


def _check_cover(plan: OperandPlan) -> None:
    problem = plan.problem
    legal = hardware.instruction_rows(problem.operand, problem.dtype)
    if plan.rows not in legal:
        raise _MismatchError("no instruction reads this many rows", rows=plan.rows, expected=list(legal))
    for axis, extent, part in (("mn", problem.shape[0], plan.rows), ("k", problem.shape[1], problem.instruction_k)):
        if extent % part:
            raise _MismatchError("instructions do not cover the tile", axis=axis, extent=extent, instruction=part)
    expected = list(_grid(plan))
    for index, (wanted, tile) in enumerate(zip(expected, plan.tiles, strict=False)):
        if wanted != (tile.mn, tile.k):
            raise _MismatchError("wrong instruction tile", index=index, expected=list(wanted), got=[tile.mn, tile.k])
    if len(expected) != len(plan.tiles):
        raise _MismatchError("wrong number of instruction tiles", expected=len(expected), got=len(plan.tiles))


def _check_word(tile: InstructionTile) -> None:
    place = {"mn": tile.mn, "k": tile.k}
    decoded = reading.fields_of(tile.encoded)
    if decoded is None:
        reason = f"{tile.encoded:#018x} has reserved bits"
        raise _MismatchError("the 64 bits are not a descriptor", **place, reason=reason)
    for name in ("start_address_bytes", "leading_bytes", "stride_bytes", "base_offset", "swizzle"):
        stated, held = getattr(tile.descriptor, name), getattr(decoded, name)
        if stated != held:
            raise _MismatchError("bits and fields differ", **place, field=name, expected=stated, got=held)


def _phases(plan: OperandPlan) -> range:
    """Return the tile bases, modulo the longest period, that the plan's alignment allows."""
    swizzles = {plan.problem.swizzle, *(tile.descriptor.swizzle for tile in plan.tiles)}
    period = max(reading.period_bytes(swizzle) for swizzle in swizzles)
    return range(0, max(period, 1), min(plan.align_bytes, period))


def _check_addresses(plan: OperandPlan) -> int:
    """Compare reads with requests; return one past the last byte read, relative to the base."""
    align = plan.align_bytes
    if align < hardware.UNIT_BYTES or align & (align - 1) or align > PHASE_PERIOD_BYTES:
        raise _MismatchError("the alignment is not a power of two in 16..1024", got=align)
    if align > plan.problem.align_bytes:
        raise _MismatchError(
            "the plan needs more alignment than the problem guarantees", expected=plan.problem.align_bytes, got=align
        )
    end = 0
    for phase in _phases(plan):
        clock.check("the proof of a wgmma operand")
        requested = requested_addresses(plan.problem, phase)
        for tile in plan.tiles:
            read = _read(plan, tile, phase)
            wanted = requested[tile.mn : tile.mn + plan.rows, tile.k : tile.k + plan.problem.instruction_k]
            different = np.argwhere(read != wanted)
            if different.size:
                row, column = (int(x) for x in different[0])
                raise _MismatchError(
                    "wgmma reads another byte",
                    mn=tile.mn + row,
                    k=tile.k + column,
                    requested_byte=int(wanted[row, column]) - phase,
                    read_byte=int(read[row, column]) - phase,
                    tile_base_bytes=phase,
                )
            end = max(end, int(read.max()) + max(plan.problem.element_bits // 8, 1) - phase)
    return end


def _read(plan: OperandPlan, tile: InstructionTile, phase: int) -> npt.NDArray[np.int64]:
    """Return what the 64 bits read; they were already checked against the fields."""
    fields = reading.fields_of(tile.encoded)
    read = "reserved bits" if fields is None else _known(plan, fields, phase)
    if isinstance(read, str):
        raise _MismatchError(
            "the reads of this descriptor are not known", mn=tile.mn, k=tile.k, tile_base_bytes=phase, reason=read
        )
    return read


def _known(plan: OperandPlan, fields: reading.Fields, phase: int) -> npt.NDArray[np.int64] | str:
    problem = plan.problem
    return reading.read_addresses(fields, plan.rows, plan.major, phase, problem.element_bits, problem.instruction_k)


def _check_steps(plan: OperandPlan) -> None:
    """Check the compact form: base word plus the digits of both indices times their increments."""
    if plan.mn_steps is None or plan.k_steps is None:
        if plan.mn_steps is not plan.k_steps:
            raise _MismatchError("only one axis has steps", mn=plan.mn_steps, k=plan.k_steps)
        return
    counts = (plan.problem.shape[0] // plan.rows, plan.problem.shape[1] // plan.problem.instruction_k)
    for axis, steps, count in (("mn", plan.mn_steps, counts[0]), ("k", plan.k_steps, counts[1])):
        size = 1
        for extent, _ in steps:
            size *= extent
        if size != count:
            raise _MismatchError("the steps do not count the instructions", axis=axis, expected=count, got=size)
    for tile in plan.tiles:
        word = plan.tiles[0].encoded
        for steps, index in (
            (plan.mn_steps, tile.mn // plan.rows),
            (plan.k_steps, tile.k // plan.problem.instruction_k),
        ):
            for extent, increment in steps:
                word += index % extent * increment
                index //= extent
        if word != tile.encoded:
            raise _MismatchError(
                "the base plus the steps gives another descriptor",
                mn=tile.mn,
                k=tile.k,
                expected=f"{tile.encoded:#018x}",
                got=f"{word:#018x}",
            )


def _check_claims(plan: OperandPlan, end: int) -> None:
    problem = plan.problem
    unread: set[str] = {"leading_bytes", "stride_bytes"}
    for tile in plan.tiles:
        mode = tile.descriptor.swizzle
        unread &= set(reading.unread(plan.rows, plan.major, mode, problem.element_bits, problem.instruction_k))
    claims: tuple[tuple[str, object, object], ...] = (
        ("end_bytes", end, plan.end_bytes),
        ("unread", tuple(sorted(unread)), tuple(plan.unread)),
        ("evidence", hardware.operand_evidence(problem.operand), plan.evidence),
    )
    for name, expected, got in claims:
        if expected != got:
            raise _MismatchError(f"wrong {name}", expected=expected, got=got)


def _check_handoff(written: npt.NDArray[np.int64], plan: OperandPlan) -> int:
    _check_cover(plan)
    if plan.problem.element_bits < 8:
        raise _malformed("plan must have elements of whole bytes", plan.problem.dtype)
    columns = plan.problem.shape[1]
    total = 0
    for tile in plan.tiles:
        clock.check("the proof of a handoff")
        _check_word(tile)
        read = _read(plan, tile, 0)
        rows = np.arange(tile.mn, tile.mn + plan.rows, dtype=np.int64)[:, None]
        wanted = rows * columns + np.arange(tile.k, tile.k + plan.problem.instruction_k, dtype=np.int64)[None, :]
        index = read * 8 // plan.problem.element_bits
        inside = index < written.size
        found = np.where(inside, written[np.minimum(index, written.size - 1)] if written.size else -1, -1)
        different = np.argwhere(found != wanted)
        if different.size:
            row, column = (int(x) for x in different[0])
            element = int(found[row, column])
            raise _MismatchError(
                "wgmma reads another element" if element >= 0 else "wgmma reads an address that nothing wrote",
                mn=tile.mn + row,
                k=tile.k + column,
                read_byte=int(read[row, column]),
                expected_element=int(wanted[row, column]),
                got_element=element,
            )
        total += wanted.size
    return total

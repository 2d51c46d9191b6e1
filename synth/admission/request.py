"""The request made of a consumer: a tile layout, an element type and a target, parsed from the arguments.

Notation: the layout maps tile coordinates, outermost dimension first, to element offsets in shared memory. For
consumers of register layouts it maps (register, lane, warp) to tile coordinates.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.check import Checker
from layoutalg.ground.document import load_json
from layoutalg.ground.errors import BudgetError, LayoutError, MalformedError, Repair
from layoutalg.ground.listed import listed
from layoutalg.ground.refusal import Broken
from layoutalg.ground.verdict import Unknown
from layoutalg.notation.written import Written
from layoutalg.proofs import certify
from layoutalg.proofs.admission import Admission, Admitted, Grade, Refused
from layoutalg.proofs.certify import conditions
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.dtypes import ElementType, element_type, stated_type
from layoutalg.proofs.tensor import tensor_of
from layoutalg.proofs.tensormap.listed_problem import problem_from
from layoutalg.proofs.tensormap.problem import SCHEMA, TensorMapProblem
from layoutalg.proofs.tile_map import check_tile, extents_of, layout_of, offsets
from layoutalg.synth.fragments import coordinates
from layoutalg.targets.nvidia.swizzles import CHUNK_BYTES
from layoutalg.targets.registry import lookup

IntArray: TypeAlias = npt.NDArray[np.int64]
CHECK = Checker("LA801", "invalid argument to admissible()")
TARGET, ALIGN_BYTES = "sm_90a", 1024
"""Defaults."""


@dataclass(frozen=True)
class Request:
    """A layout that a consumer is to carry."""

    layout: Any = field(hash=False)  # a layout of any family, as parsed
    consumer: str  # name of the instruction
    target: str  # architecture
    dtype: ElementType  # element type, with its own name (``e4m3``, not the bytes it travels as)
    extents: tuple[int, ...]  # tile extents, outermost first; empty for a layout of registers
    align_bytes: int  # alignment of the tile's base in shared memory
    # further options: ``registers``, ``tensor``, ``major``, ...
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    problem: Any = field(default=None, hash=False)  # the problem statement, if one was given instead of a layout

    @property
    def element_bytes(self) -> int:
        """Bytes per element; 0 if several share a byte."""
        return self.dtype.bits // 8

    @cached_property
    def offsets(self) -> IntArray:
        """The element offset of every tile element, indexed outermost dimension first."""
        found = offsets(self.layout, self.extents)
        if int(found.min()) < 0:
            at = tuple(int(part) for part in np.unravel_index(int(found.argmin()), found.shape))
            rule = f"must have an offset >= 0 from the tile's base at {at}"
            raise CHECK.malformed("layout", rule, int(found.min()))
        return found

    def only(self, *known: str) -> None:
        """Raise MalformedError for options that the consumer does not accept."""
        CHECK.options(self.options, known, request_of, f" for {self.consumer}")
        for name in ("lanes", "warps"):
            if self.options.get(name) is not None and self.options.get("registers") is None:
                raise CHECK.malformed(name, "must be given together with registers", self.options[name])

    def without_problem(self, instead: str) -> None:
        """Raise MalformedError for a TensorMap problem, of which the consumer would use only the shared layout."""
        if self.problem is not None:
            rule = f"must be a layout: {self.consumer} does not use a tiled tensor map; {instead}"
            raise CHECK.malformed("layout", rule, "a TensorMap problem")

    @property
    def table(self) -> IntArray:
        """The layout as certificates take it: offsets, dimension 0 fastest; of registers, their coordinates."""
        if self.extents:
            return np.ascontiguousarray(self.offsets.reshape(-1, order="F"))
        found = coordinates(self.layout)[0]
        return found.reshape(-1, found.shape[-1])

    def admitted(self, plan: object, certificate: Certificate, evidence: Grade) -> Admitted:
        """Return the answer with the plan that carries the layout."""
        return Admitted(self.consumer, self.target, self.dtype.name, plan, certificate, evidence)

    def refused(self, *broken: Broken, repairs: Callable[[], tuple[Repair, ...]] | None = None) -> Refused:
        """Return the refusal by broken rules; its repairs and the first certificate found are made when they are read.

        Example:
            >>> asked = request_of("(64,64):(72,1)", "bulk", TARGET, "bf16", None, ALIGN_BYTES, {})
            >>> asked.refused(Broken("BULK_COPIES", "64 runs are contiguous")).rules
            ('BULK_COPIES',)
        """

        later: dict[str, Callable[[], Any]] = {"certificate": lambda: self._certificate(broken)}
        if repairs is not None:
            later["repairs"] = repairs
        return Refused.by(broken, self.consumer, self.target, self.dtype.name).deferred(**later)

    def _certificate(self, broken: tuple[Broken, ...]) -> Certificate | None:
        """Return the first certificate that the rules' evidence makes of the table."""
        for write in (each.evidence for each in broken if each.evidence is not None):
            with contextlib.suppress(LayoutError):  # out of time, or the evidence cannot be stated
                found: Certificate | None = write(self.table)
                if found is not None:
                    return found
        return None

    def other_metadata(self, read: IntArray, of: str, rule: str) -> Broken | None:
        """Return where the metadata, if given, are not those that the instruction reads.

        Args:
            read: int64[lane or thread, nibble, 2]: the row and group of each nibble; -1 if it is not read.
            of: What has the nibbles, ``"lane"`` or ``"thread"``.
            rule: The rule that other metadata break.
        """
        if "metadata" not in self.options:
            return None
        try:
            given = np.asarray(self.options["metadata"])
        except ValueError:  # lists of different lengths
            given = np.asarray(None)
        if given.shape != read.shape or given.dtype.kind not in "iu":
            known = f"must be integers [{of}, nibble, 2]: the row and group that each nibble describes"
            raise CHECK.malformed("metadata", known, given.shape)
        wrong = np.argwhere((read[..., 0] >= 0) & (given != read).any(axis=-1))
        if not len(wrong):
            return None
        owner, nibble = (int(part) for part in wrong[0])
        holds, needs = (tuple(int(part) for part in table[owner, nibble]) for table in (given, read))
        described = "no row" if holds[0] < 0 else f"row {holds[0]}, group {holds[1]}"
        because = f"nibble {nibble} of {of} {owner} describes {described}; expected row {needs[0]}, group {needs[1]}"
        return Broken(rule, because, {of: owner, "nibble": nibble, "holds": holds, "needs": needs})

    def flag(self, name: str) -> bool:
        """Return a boolean option; False by default."""
        return CHECK.kind(self.options.get(name, False), bool, name)


Finder: TypeAlias = Callable[[Request], Admission]
"""Type of every consumer's ``find``: an exact answer, or ``Unknown`` with what is missing."""


def request_of(
    layout: object,
    consumer: str,
    target: str,
    dtype: object,
    tile: Sequence[int] | None,
    align_bytes: int,
    options: Mapping[str, Any],
    *,
    of_registers: bool = False,
) -> Request:
    """Return the request; arguments as for ``admissible``."""
    problem = _problem(layout)
    if problem is not None:
        _agreed(problem, target, dtype, tile, of_registers)
        layout = listed(problem.addresses() // problem.element_bytes)
        dtype, tile, target = problem.dtype, None, problem.arch
    options = dict(options)
    if options.get("tensor") is not None and problem is None:
        options["tensor"] = _typed(options["tensor"], dtype, layout)
    kind = _element(dtype, options if problem is None else {}, layout)
    lookup(target)
    align = CHECK.integer(align_bytes, "align_bytes", 1, 1 << 18)
    if align & (align - 1):
        raise CHECK.malformed("align_bytes", "must be a power of two", align)
    extents = None if tile is None else CHECK.vector(tile, "tile")
    size = max(1, kind.bits // 8)
    found = layout_of(layout, extents, size)
    if of_registers:
        return Request(found, consumer, target, kind, (), align, options)
    extents = extents_of(found) if extents is None else extents
    if not extents or math.prod(extents) < 1:
        raise CHECK.malformed("tile", "must have at least one dimension, each of at least 1", extents)
    check_tile(found, extents)
    return Request(found, consumer, target, kind, extents, align, options, problem)


def _typed(tensor: object, dtype: object, layout: object) -> object:
    """Return the tensor; ``(shape, stride, None)`` gets the request's element type."""
    left_open = isinstance(tensor, tuple | list) and len(tensor) == 3 and tensor[2] is None
    return tensor_of(tensor, layout, dtype=dtype) if left_open else tensor


def _element(dtype: object, options: Mapping[str, Any], layout: object) -> ElementType:
    """Return the element type: given, or stated by the layout's text, a register layout's text or the tensor."""
    said = [layout, options.get("registers"), options.get("global")]
    if options.get("tensor") is not None and (dtype is None or element_type(dtype).tensormap is not None):
        said.append(Written(dtype=tensor_of(options["tensor"]).element, text="the tensor"))
    return stated_type(dtype, *said, check=CHECK)


def _agreed(
    problem: TensorMapProblem, target: object, dtype: object, tile: Sequence[int] | None, of_registers: bool
) -> None:
    """Raise MalformedError for arguments that contradict a problem, and for consumers of registers."""
    if of_registers:
        rule = "must be a layout of registers: a TensorMap problem states a tile in shared memory"
        raise CHECK.malformed("layout", rule, "a TensorMap problem")
    if target not in (TARGET, problem.arch):
        raise CHECK.malformed("target", f"must be {problem.arch}, as in the problem", target)
    if dtype is not None and element_type(dtype).tensormap != problem.dtype:
        raise CHECK.malformed("dtype", f"must be {problem.dtype}, as in the problem", dtype)
    if tile is not None and CHECK.vector(tile, "tile") != problem.tile:
        raise CHECK.malformed("tile", f"must be {problem.tile}, as in the problem", tile)


def of_layout(error: MalformedError) -> MalformedError:
    """Rename a finder's error about the layout so that it names the argument ``layout``."""
    said = error.diagnostic
    first = said.where[0] if said.where else ""
    if first not in ("smem", "table", "values") and not first.startswith(("OperandProblem.s", "TensorMapProblem.s")):
        return error
    return type(error)(replace(said, where=("layout",)))


def _problem(layout: object) -> TensorMapProblem | None:
    """Return the TensorMap problem given instead of a layout, as an object, document or JSON text."""
    if isinstance(layout, str) and layout.lstrip().startswith("{") and f'"{SCHEMA}"' in layout:
        layout = load_json(layout)
    if isinstance(layout, TensorMapProblem) or (isinstance(layout, Mapping) and layout.get("schema") == SCHEMA):
        return problem_from(layout)
    return None


def no_engine(request: Request) -> Admission | None:
    """Return the answer for a target without a copy engine, or whose copy engine was not measured; None for others."""
    found = lookup(request.target)
    if not found.has_tensor_maps:
        return request.refused(Broken("NO_TMA", f"{request.target} has no tensor maps"))
    if request.dtype.tensormap is None:
        return Unknown(f"rule ARCH_ATOM: {request.dtype.note}", ("dtype",))
    because = f"no {request.target} device was measured; the behaviour of its copy engine is unknown"
    return None if found.measured else Unknown(because, ("target",))


def certified(request: Request, plan: object, writer: Callable[[], Certificate]) -> Admission:
    """Admit by a measured plan if its certificate can be written."""
    try:
        return request.admitted(plan, writer(), "measured")
    except BudgetError as error:
        return Unknown(f"a plan was proved, but {error.diagnostic.because}", ("planner", "certificate"))


def no_chunks(request: Request) -> Certificate | None:
    """Return a certificate that no copies of whole chunks of 16 bytes fill the tile, whatever the tensor."""
    if "tensor" in request.options or request.problem is not None or not request.element_bytes:
        return None
    try:
        return certify.forced.no_chunks(request.offsets, CHUNK_BYTES // request.element_bytes)
    except LayoutError:  # out of time, or the evidence cannot be stated
        return None


def misaligned(rule: str, because: str, align_bytes: int, grain: int) -> Broken:
    """Return the rule that a tile's base is aligned to too few bytes."""
    return Broken(rule, because, {"align_bytes": align_bytes}, conditions.multiple(align_bytes, grain))

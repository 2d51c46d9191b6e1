"""What is asked of a consumer: a layout of a tile, an element type and a target, read from whatever was given.

Notation: the layout takes tile coordinates, outermost dimension first, to element offsets in shared memory, except for
consumers that hold a tile in registers, whose layout takes (register, lane, warp) to tile coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.check import Checker
from layoutalg.ground.document import load_json
from layoutalg.ground.errors import MalformedError
from layoutalg.notation.written import Written
from layoutalg.proofs.admission import Admission
from layoutalg.proofs.dtypes import ElementType, element_type, stated_type
from layoutalg.proofs.listed import listed
from layoutalg.proofs.tensor import tensor_of
from layoutalg.proofs.tensormap.listed_problem import problem_from
from layoutalg.proofs.tensormap.problem import SCHEMA, TensorMapProblem
from layoutalg.proofs.tile_map import check_tile, extents_of, layout_of, offsets
from layoutalg.targets.registry import lookup

IntArray: TypeAlias = npt.NDArray[np.int64]
CHECK = Checker("LA801", "this cannot be asked of an instruction")
TARGET, ALIGN_BYTES = "sm_90a", 1024
"""What is asked of where nothing is said."""


@dataclass(frozen=True)
class Request:
    """A layout that a consumer is to carry.

    Args:
        layout: A layout of any family, as it was read.
        consumer: Name of the instruction.
        target: Architecture.
        dtype: Element type, with its own name (``e4m3``, not the bytes it travels as).
        extents: Tile extents, outermost first; empty for a layout of registers.
        align_bytes: The tile's base in shared memory is a multiple of this.
        options: What else the consumer takes: ``registers``, ``tensor``, ``major``, ...
        problem: The statement, where one was given in place of a layout.
    """

    layout: Any = field(hash=False)
    consumer: str
    target: str
    dtype: ElementType
    extents: tuple[int, ...]
    align_bytes: int
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    problem: Any = field(default=None, hash=False)

    @property
    def element_bytes(self) -> int:
        """Bytes of an element; 0 where several share a byte."""
        return self.dtype.bits // 8

    @cached_property
    def offsets(self) -> IntArray:
        """The element offset of every tile element, indexed outermost dimension first.

        Raises: MalformedError: LA376, LA801. BudgetError: those of the layout's table.
        """
        found = offsets(self.layout, self.extents)
        if int(found.min()) < 0:
            at = tuple(int(part) for part in np.unravel_index(int(found.argmin()), found.shape))
            rule = f"must have offsets of at least 0, from the tile's base; that of {at} is"
            raise CHECK.malformed("layout", rule, int(found.min()))
        return found

    def only(self, *known: str) -> None:
        """Refuse options that the consumer does not take.

        Raises: MalformedError: LA801.
        """
        for name in self.options:
            if name not in known:
                rule = f"must be among {', '.join(known)}" if known else "must be empty"
                raise CHECK.malformed("options", f"{rule} for {self.consumer}", name)
        for name in ("lanes", "warps"):
            if self.options.get(name) is not None and self.options.get("registers") is None:
                raise CHECK.malformed(name, "must come with registers, whose axes it names", self.options[name])

    def without_problem(self, instead: str) -> None:
        """Refuse a TensorMap problem, of which the consumer would ask the shared layout only.

        Raises: MalformedError: LA801.
        """
        if self.problem is not None:
            rule = f"must be a layout: {self.consumer} also reads global memory, not by a tensor map; {instead}"
            raise CHECK.malformed("layout", rule, "a TensorMap problem")

    def flag(self, name: str) -> bool:
        """Return an option that is True or False; False where it is not given.

        Raises: MalformedError: LA801.
        """
        return CHECK.kind(self.options.get(name, False), bool, name)


Finder: TypeAlias = Callable[[Request], Admission]
"""What every consumer's file defines as ``find``: an exact answer, or ``Unknown`` with what is missing."""


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
    """Return the request; arguments as for ``admissible``.

    Raises: MalformedError: LA340, LA375, LA376, LA801.
    """
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
    """Return the tensor, or ``(shape, stride, None)`` with the type that is asked about."""
    left_open = isinstance(tensor, tuple | list) and len(tensor) == 3 and tensor[2] is None
    return tensor_of(tensor, layout, dtype=dtype) if left_open else tensor


def _element(dtype: object, options: Mapping[str, Any], layout: object) -> ElementType:
    """Return the element type that is given or written, in the layout's text, a register layout's or the tensor.

    Raises: MalformedError: LA375, LA801.
    """
    said = [layout, options.get("registers"), options.get("global")]
    if options.get("tensor") is not None and (dtype is None or element_type(dtype).tensormap is not None):
        said.append(Written(dtype=tensor_of(options["tensor"]).dtype, text="the tensor"))
    return stated_type(dtype, *said, check=CHECK)


def _agreed(
    problem: TensorMapProblem, target: object, dtype: object, tile: Sequence[int] | None, of_registers: bool
) -> None:
    """Refuse what is said beside a problem and differs from it, and consumers of which it says nothing.

    Raises: MalformedError: LA375, LA801.
    """
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
    """Return an error about a layout, by whatever name a finder knows it, as one about the argument ``layout``."""
    said = error.diagnostic
    first = said.where[0] if said.where else ""
    if first not in ("smem", "table", "values") and not first.startswith(("OperandProblem.s", "TensorMapProblem.s")):
        return error
    return type(error)(replace(said, where=("layout",)))


def _problem(layout: object) -> TensorMapProblem | None:
    """Return the TensorMap problem that was given in place of a layout, as itself, as its document or as JSON text.

    Raises: MalformedError: LA010, LA011.
    """
    if isinstance(layout, str) and layout.lstrip().startswith("{") and f'"{SCHEMA}"' in layout:
        layout = load_json(layout)
    if isinstance(layout, TensorMapProblem) or (isinstance(layout, Mapping) and layout.get("schema") == SCHEMA):
        return problem_from(layout)
    return None

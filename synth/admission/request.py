"""What is asked of a consumer: a layout of a tile, an element type and a target, read from whatever was given.

Main definitions: ``Request``, ``request_of``, ``Finder``.

Notation: the layout takes tile coordinates, outermost dimension first, to element offsets in shared memory, except for
consumers that hold a tile in registers, whose layout takes (register, lane, warp) to tile coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.check import Checker
from layoutalg.ground.document import load_json
from layoutalg.proofs.admission import Admission
from layoutalg.proofs.dtypes import ElementType, element_type
from layoutalg.proofs.listed import listed
from layoutalg.proofs.tensormap.listed_problem import problem_from
from layoutalg.proofs.tensormap.problem import SCHEMA, TensorMapProblem
from layoutalg.proofs.tile_map import extents_of, layout_of, offsets
from layoutalg.targets.registry import lookup

IntArray: TypeAlias = npt.NDArray[np.int64]
CHECK = Checker("LA801", "this cannot be asked of an instruction")


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

        Raises: MalformedError: LA376. BudgetError: those of the layout's table.
        """
        return offsets(self.layout, self.extents)

    def only(self, *known: str) -> None:
        """Refuse options that the consumer does not take.

        Raises: MalformedError: LA801.
        """
        for name in self.options:
            if name not in known:
                rule = f"must be among {', '.join(known)}" if known else "must be empty"
                raise CHECK.malformed("options", f"{rule} for {self.consumer}", name)


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
        layout, dtype, tile, target = (
            listed(problem.addresses() // problem.element_bytes),
            problem.dtype,
            None,
            problem.arch,
        )
    kind = element_type(dtype)
    if not kind.bits:
        raise CHECK.malformed("dtype", f"must be one element type: {kind.note}", dtype)
    lookup(target)
    align = CHECK.integer(align_bytes, "align_bytes", 1, 1 << 18)
    if align & (align - 1):
        raise CHECK.malformed("align_bytes", "must be a power of two", align)
    extents = None if tile is None else CHECK.vector(tile, "tile")
    size = max(1, kind.bits // 8)
    found = layout_of(layout, extents, size)
    if of_registers:
        return Request(found, consumer, target, kind, (), align, dict(options))
    extents = extents_of(found) if extents is None else extents
    if not extents or math.prod(extents) < 1:
        raise CHECK.malformed("tile", "must have at least one dimension, each of at least 1", extents)
    return Request(found, consumer, target, kind, extents, align, dict(options), problem)


def _problem(layout: object) -> TensorMapProblem | None:
    """Return the TensorMap problem that was given in place of a layout, as itself, as its document or as JSON text.

    Raises: MalformedError: LA010, LA011.
    """
    if isinstance(layout, str) and layout.lstrip().startswith("{") and f'"{SCHEMA}"' in layout:
        layout = load_json(layout)
    if isinstance(layout, TensorMapProblem) or (isinstance(layout, Mapping) and layout.get("schema") == SCHEMA):
        return problem_from(layout)
    return None

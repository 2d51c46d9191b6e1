"""TensorMap problems: which global element belongs at which shared byte, for every tile origin.

For a tile origin o (per dimension a multiple of ``origin_multiple``) and a tile coordinate t, let x_i = o_i +
element_strides_i * t_i. A load must put at shared byte ``address(t)`` the element at ``base_elem_offset + sum_i
strides_i * x_i`` if bounds_lo_i <= x_i < bounds_hi_i for all i, otherwise the fill. A store must write that element,
and nothing out of bounds.

``address(t)`` = swizzle(element_bytes * sum over the digits of t of digit * stride), relative to a tile base aligned to
the swizzle's period; digits of t_i are mixed-radix, fastest first, with the extents of ``smem_modes[i]``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from layoutalg.ground.check import Checker
from layoutalg.ground.digits import table
from layoutalg.ground.document import Reader
from layoutalg.ground.limits import PROBLEM_EXTENT, PROBLEM_RANK, PROBLEM_STEP, SMEM_REACH, TILE_ELEMENTS
from layoutalg.ground.memory import reserve
from layoutalg.proofs.dtypes import read_choice, read_dtype
from layoutalg.proofs.fields import Statement, integers, malformed, plain, put_fields, read_digits, set_fields
from layoutalg.proofs.tensormap.swizzle import period_bytes, swizzled
from layoutalg.targets.nvidia import tensormap as hardware

if TYPE_CHECKING:
    from layoutalg.proofs.tensor import Tensor

SCHEMA = "layoutalg/tensormap-problem/1"
CHECK = Checker("LA372", "invalid call")
_ADDRESS_ARRAYS = 3
"""Tile-sized arrays alive while addresses are computed."""


class Reading(TypedDict, total=False):
    """Options of a call that takes a shared layout: how it is read."""

    swizzle: object
    axes: Sequence[str] | None


class Filling(TypedDict, total=False):
    """Fields of a problem that may be left out: where the tensor begins, and what is read out of bounds."""

    base_elem_offset: int | None
    oob_fill: str | None
    oob_required: str | None


class OptionalFields(Filling, total=False):
    """All fields of a problem that may be left out."""

    bounds: Sequence[object] | None
    element_strides: Sequence[int] | None
    origin_multiple: Sequence[int] | None


class MapOptions(OptionalFields, Reading, total=False):
    """Options of a call that plans a copy."""


_OPTIONAL = tuple(OptionalFields.__annotations__)


@dataclass(frozen=True, slots=True)
class TensorMapProblem(Statement):
    """A global tensor, a tile and its shared-memory layout.

    Args:
        global_shape: Extents in elements, outermost dimension first.
        global_strides: Element strides, same order.
        dtype: TensorMap type name, for example ``"bf16"``.
        tile: Tile extents, elements in shared memory, same order.
        smem_modes: Per tile dimension ``(extent, element stride)`` digits, fastest first.
        swizzle: TensorMap swizzle name; acts on absolute shared byte address bits.
        arch: Target, for example ``"sm_90a"``.
        direction: ``"load"`` (global to shared) or ``"store"``.
        base_align_bytes: Known alignment of the tensor's base address.
        base_elem_offset: Elements from that base to the tensor's first element.
        bounds: Per dimension ``(low, high)``; coordinates outside are out of bounds.
        element_strides: Per dimension, global steps between neighbouring tile elements.
        oob_fill: ``"ZERO"`` or ``"NAN"``; loads only.
        origin_multiple: Per dimension, tile origins are multiples of this; 0 means only the origin 0. Default: the
            tile's extent (tiles on a grid), or 0 if one tile covers the whole dimension.
        oob_required: The weakest out-of-bounds class accepted: ``"exact"``, ``"weak"`` or ``"lost"``.

    Example:
        >>> problem = TensorMapProblem.from_json({
        ...     "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
        ...     "global": {"shape": [1024, 512], "stride": [512, 1], "dtype": "bf16", "base_align_bytes": 256},
        ...     "tile": [64, 64], "smem": {"modes": [[[64, 64]], [[64, 1]]], "swizzle": "128B"}})
        >>> problem.addresses()[1, :9].tolist()
        [144, 146, 148, 150, 152, 154, 156, 158, 128]
    """

    global_shape: tuple[int, ...]
    global_strides: tuple[int, ...]
    dtype: str
    tile: tuple[int, ...]
    smem_modes: tuple[tuple[tuple[int, int], ...], ...]
    swizzle: str
    arch: str
    direction: str
    base_align_bytes: int
    base_elem_offset: int
    bounds: tuple[tuple[int, int], ...]
    element_strides: tuple[int, ...]
    oob_fill: str
    origin_multiple: tuple[int, ...]
    oob_required: str

    def __post_init__(self) -> None:
        _set(self, self.to_json())

    @classmethod
    def of(
        cls,
        tensor: object,
        tile: Sequence[int],
        smem: object = None,
        *,
        swizzle: object = None,
        axes: Sequence[str] | None = None,
        arch: str = "sm_90a",
        direction: str = "load",
        **options: Unpack[OptionalFields],
    ) -> TensorMapProblem:
        """Return the problem of copying tiles of a tensor to or from a shared-memory layout.

        Its ``addresses()`` are ``element_bytes`` times the layout at every tile coordinate.

        Args:
            tensor: A ``layoutalg.Tensor``, ``(shape, stride, dtype)`` or an array of another library.
            tile: Tile extents, elements in shared memory, outermost dimension first.
            smem: A layout of any family or its text: tile coordinates, outermost first, to element offsets (axes as in
                ``proofs.tile_map``). None for the row-major tile.
            swizzle: The swizzle after ``smem``, by name or as a ``Swizzle``; None if ``smem`` includes it.
            axes: Names of the axes of ``smem``, outermost dimension first.
            arch: Target.
            direction: ``"load"`` or ``"store"``.
            options: The optional fields, from ``base_elem_offset`` on.

        Example:
            >>> tensor = ((1024, 512), None, "bf16")
            >>> problem = TensorMapProblem.of(tensor, (64, 64), "Sw<3,3,3> o 0 o (64,64):(64,1)")
            >>> problem.smem_modes, problem.swizzle
            ((((64, 64),), ((64, 1),)), '128B')
        """
        from layoutalg.proofs.smem import shared_tile  # loads every family; documents need none
        from layoutalg.proofs.tensor import tensor_of

        source = tensor_of(tensor, smem)
        extents = integers("tile", tile, len(source.shape), 1)
        shared = shared_tile(smem, extents, hardware.element_bytes(source.dtype), swizzle, axes=axes)
        if shared.base:
            start, period = shared.base * hardware.element_bytes(source.dtype), period_bytes(shared.swizzle)
            rule = f"must place its first element at the tile base: add the {start} bytes to the base instead"
            if start % period:
                rule = f"must place its first element at a multiple of {period} bytes, the period of {shared.swizzle}"
            raise malformed("smem", rule, smem)
        CHECK.options(options, _OPTIONAL, cls.of)
        given = {name: value for name, value in options.items() if value is not None}
        smem_entry = {"modes": shared.modes, "swizzle": shared.swizzle}
        problem = object.__new__(cls)
        _set(problem, document_of(source, extents, smem_entry, arch=arch, direction=direction, **given))
        return problem

    @classmethod
    def from_json(cls, document: object) -> TensorMapProblem:
        """Read a problem document, schema ``layoutalg/tensormap-problem/1``.

        Required: ``arch``, ``direction``, ``global`` (``shape``, ``stride``, ``dtype`` and, if known,
        ``base_align_bytes``), ``tile``, ``smem`` (``modes``, ``swizzle``). The fields after ``base_align_bytes`` are
        optional, under the same names. A bound is a pair ``[low, high]`` or the valid extent. Like a TMA box, a tile
        may also be given by the extent it traverses, ``element_strides`` times its elements.
        """
        fields_read = read_fields(document if isinstance(document, Reader) else Reader(document))
        return put_fields(object.__new__(cls), fields_read)  # the constructor would read them again

    def to_json(self) -> dict[str, object]:
        """Return the document from which ``from_json`` rebuilds an equal value."""
        given = {field.name: plain(getattr(self, field.name)) for field in fields(self)}
        tensor = {"shape": given.pop("global_shape"), "stride": given.pop("global_strides")}
        tensor |= {key: given.pop(key) for key in ("dtype", "base_align_bytes")}
        smem = {"modes": given.pop("smem_modes"), "swizzle": given.pop("swizzle")}
        head = {key: given.pop(key) for key in ("arch", "direction")}
        return {"schema": SCHEMA, **head, "global": tensor, "tile": given.pop("tile"), "smem": smem, **given}

    def __str__(self) -> str:
        return json.dumps(self.to_json())

    @property
    def element_bytes(self) -> int:
        """Bytes of one element."""
        return hardware.DTYPES[self.dtype].bits // 8

    @property
    def rank(self) -> int:
        """Number of tile dimensions."""
        return len(self.tile)

    def linear_offsets(self) -> npt.NDArray[np.int64]:
        """Return the shared element offset of every tile element before the swizzle; shape ``tile``."""
        reserve("the shared addresses of a tile", math.prod(self.tile), 8 * _ADDRESS_ARRAYS)
        total = np.zeros((), dtype=np.int64)
        for modes in self.smem_modes:
            total = total[..., None] + table(modes)
        return total

    def addresses(self) -> npt.NDArray[np.int64]:
        """Return the requested shared byte address of every tile element, relative to the aligned tile base."""
        return swizzled(self.swizzle, self.linear_offsets() * self.element_bytes)

    def byte_span(self) -> tuple[int, int]:
        """Return the byte range [first, end) of the tensor's elements, relative to the base address.

        ``first`` is negative if strides reach below the base.

        Example:
            >>> tensor = ((4, 64), (-64, 1), "bf16")
            >>> problem = TensorMapProblem.of(tensor, (1, 64), base_elem_offset=128)
            >>> problem.byte_span()
            (-128, 384)
        """
        spans = [(n - 1) * stride for n, stride in zip(self.global_shape, self.global_strides, strict=True)]
        first = self.base_elem_offset + sum(span for span in spans if span < 0)
        end = self.base_elem_offset + sum(span for span in spans if span > 0) + 1
        return first * self.element_bytes, end * self.element_bytes

    def elements(self, origin: Sequence[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Return the global element offset of every tile element from the base address, and whether it is in bounds.

        Out-of-bounds coordinates are clamped, so that no offset leaves the tensor.

        Returns:
            int64[tile...] and bool[tile...], read-only.
        """
        place = integers("origin", origin, self.rank, -PROBLEM_EXTENT, PROBLEM_EXTENT)
        element = np.full((1,) * self.rank, self.base_elem_offset, dtype=np.int64)
        inside = np.ones((1,) * self.rank, dtype=np.bool_)
        for dim, extent in enumerate(self.tile):
            shape = [1] * self.rank
            shape[dim] = extent
            x = (place[dim] + self.element_strides[dim] * np.arange(extent, dtype=np.int64)).reshape(shape)
            low, high = self.bounds[dim]
            here = (x >= low) & (x < high)
            inside = inside & here
            element = element + _products(np.where(here, x, low), self.global_strides[dim], self.rank)
        return np.broadcast_to(element, self.tile), np.broadcast_to(inside, self.tile)

    def expected(
        self, memory: npt.NDArray[np.uint8], origin: Sequence[int]
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
        """Return the expected bytes of every tile element, and whether it is in bounds.

        Args:
            memory: Byte array; the tensor's base address is its byte 0.
            origin: Tile origin in elements, outermost first.

        Returns:
            uint8[tile..., element_bytes] with the fill out of bounds, and bool[tile...].
        """
        if not isinstance(memory, np.ndarray) or memory.dtype != np.uint8 or memory.ndim != 1:
            raise malformed("memory", "must be a one-dimensional uint8 array", type(memory).__name__)
        size = self.element_bytes
        element, inside = self.elements(origin)
        fill = self.oob_fill if self.direction == "load" else "ZERO"
        values = np.empty((*self.tile, size), dtype=np.uint8)
        values[...] = np.frombuffer(hardware.fill_bytes(self.dtype, fill), dtype=np.uint8)
        wanted = element[inside]
        if wanted.size and (int(wanted.min()) < 0 or int(wanted.max()) >= memory.size // size):
            rule = f"must contain the elements {wanted.min()}..{wanted.max()} of {size} bytes"
            raise malformed("memory", rule, f"{memory.size} bytes")
        positions = wanted[:, None] * size + np.arange(size)
        values[inside] = (
            hardware.load_convert(self.dtype, memory[positions]) if self.direction == "load" else memory[positions]
        )
        return values, inside


PLACES = {
    "/global/shape": "global_shape",
    "/global/stride": "global_strides",
    "/global/": "",
    "/smem/modes": "smem_modes",
    "/smem/": "",
    "/": "",
}
"""Document pointer prefixes and the field-name prefixes they stand for."""


def document_of(tensor: Tensor, tile: Sequence[int], smem: object, **more: object) -> dict[str, object]:
    """Return the document of a problem; ``smem`` is its entry for the shared layout."""
    names = {"shape": "shape", "stride": "strides", "dtype": "dtype", "base_align_bytes": "base_align_bytes"}
    stated = {key: getattr(tensor, name) for key, name in names.items()}
    return {
        "schema": SCHEMA,
        "global": stated,
        "tile": tuple(tile),
        "smem": smem,
        **{k: plain(v) for k, v in more.items()},
    }


def _set(problem: TensorMapProblem, document: dict[str, object]) -> None:
    """Set the fields of a problem under construction from a document whose tile counts elements."""
    what = "invalid TensorMap problem"
    set_fields(problem, document, lambda reader: read_fields(reader, counted=True), what, PLACES)


def _products(x: npt.NDArray[np.int64], stride: int, rank: int) -> npt.NDArray[np.int64]:
    """Return ``x * stride``; refuse if a sum of ``rank`` such products could overflow."""
    if x.size and max(abs(int(x.min())), abs(int(x.max()))) * abs(stride) >= 2**62 // rank:
        raise malformed("origin", "must give element offsets within 62 bits", f"stride {stride}")
    return x * stride


def read_fields(reader: Reader, counted: bool = False, listed: bool = False) -> tuple[Any, ...]:
    """Read the fields of a problem in order, without those of shared memory if it is ``listed``.

    ``counted``: the tile's extents count elements, not traversed extents.
    """
    reader.keys(("schema", "arch", "direction", "global", "tile", "smem"), _OPTIONAL)
    reader.schema(SCHEMA)
    arch = reader.get("arch").text(hardware.ARCHITECTURES)
    direction = reader.get("direction").text(("load", "store"))
    tensor = reader.get("global")
    tensor.keys(("shape", "stride", "dtype"), ("base_align_bytes",))
    shape = tensor.get("shape").integers(minimum=1, maximum=PROBLEM_EXTENT, at_most=PROBLEM_RANK)
    rank = len(shape)
    if not 1 <= rank <= PROBLEM_RANK:
        tensor.get("shape").fail(f"a tensor has 1 to {PROBLEM_RANK} dimensions")
    strides = tensor.get("stride").integers(rank, minimum=-PROBLEM_EXTENT, maximum=PROBLEM_EXTENT)
    dtype = read_dtype(tensor.get("dtype"), hardware.PLAIN_DTYPES)
    align = tensor.get("base_align_bytes").integer(1, PROBLEM_EXTENT) if tensor.has("base_align_bytes") else 16
    if align & (align - 1):
        tensor.get("base_align_bytes").fail("must be a power of two")
    tile = reader.get("tile").integers(rank, minimum=1)
    if math.prod(tile) > TILE_ELEMENTS:
        reader.get("tile").fail(f"a tile has at most {TILE_ELEMENTS} elements")
    steps = (
        reader.get("element_strides").integers(rank, 1, PROBLEM_STEP) if reader.has("element_strides") else (1,) * rank
    )
    modes: tuple[Any, ...] = ()
    swizzle = "NONE"
    if not listed:
        smem = reader.get("smem")
        smem.keys(("modes", "swizzle"))
        swizzle = read_choice(smem.get("swizzle"), "swizzle", hardware.SWIZZLES)
        modes, tile = _read_modes(smem.get("modes"), tile, (1,) * rank if counted else steps)
    offset = reader.get("base_elem_offset").integer(0, PROBLEM_EXTENT) if reader.has("base_elem_offset") else 0
    bounds = _read_bounds(reader.get("bounds"), shape) if reader.has("bounds") else tuple((0, n) for n in shape)
    multiple = (
        reader.get("origin_multiple").integers(rank, 0, PROBLEM_EXTENT)
        if reader.has("origin_multiple")
        else tuple(0 if t * e >= b[1] else t * e for t, e, b in zip(tile, steps, bounds, strict=True))
    )
    fill = read_choice(reader.get("oob_fill"), "oob_fill", hardware.OOB_FILLS) if reader.has("oob_fill") else "ZERO"
    required = reader.get("oob_required").text(("exact", "weak", "lost")) if reader.has("oob_required") else "lost"
    return (
        shape, strides, dtype, tile, modes, swizzle, arch, direction, align, offset, bounds, steps, fill, multiple,
        required,
    )  # fmt: skip


def _read_modes(
    node: Reader, tile: tuple[int, ...], steps: tuple[int, ...]
) -> tuple[tuple[tuple[tuple[int, int], ...], ...], tuple[int, ...]]:
    """Read the digits; traversed tile extents, as of a TMA box, become element counts."""
    modes: list[tuple[tuple[int, int], ...]] = []
    counts: list[int] = []
    reach = 0
    for dim, entry in enumerate(node.items(len(tile))):
        digits = read_digits(entry)
        reach += sum((extent - 1) * stride for extent, stride in digits)
        if reach >= SMEM_REACH:
            entry.fail(f"shared-memory offsets must be below {SMEM_REACH} elements")
        size = math.prod(extent for extent, _ in digits)
        if size not in (tile[dim], -(-tile[dim] // steps[dim])):
            entry.fail(f"the extents must multiply to the tile extent {tile[dim]}")
        modes.append(digits)
        counts.append(size)
    return tuple(modes), tuple(counts)


def _read_bounds(node: Reader, shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Read bounds: one valid extent, or a pair [low, high], per dimension."""
    bounds: list[tuple[int, int]] = []
    for extent, entry in zip(shape, node.items(len(shape)), strict=True):
        low, high = entry.integers(2) if isinstance(entry.value, (list, tuple)) else (0, entry.integer())
        if not 0 <= low < high <= extent:
            entry.fail(f"bounds must satisfy 0 <= low < high <= {extent}")
        bounds.append((low, high))
    return tuple(bounds)

"""Rows behind a group made out of bounds: one map of higher rank serves all groups of all sizes.

The copy engine compares every coordinate with its extent, so the ragged dimension, declared 2^30 rows tall, is entered
at 2^30 - size + row: rows from ``size`` on are out of bounds, filled or not written. Further dimensions bring the
address back: it differs from the plain one by 0 or 2^64 (law ``ragged.clip``). That address arithmetic wraps is
documented nowhere; ``targets.probes`` says where it was seen.

``read_write`` adds two dimensions and keeps the base; ``write_only`` adds one and moves the base 2^30 rows down, to
memory that may not be mapped. A row above the group is in bounds, so it would be moved like any other: it is refused.

Source: Triton's ragged descriptors (triton_kernels, ragged_tma).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from layoutalg.ground.check import Checker
from layoutalg.ground.record import Record
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.probes import clip_probe

CHECK = Checker("LA890", "invalid clipped map")
FORMS = ("read_write", "write_only")
TALL = 1 << 30
"""Rows declared for the ragged dimension; sizes may be as large."""
WIDE = 0x7FFF0000
"""Extent of the further dimensions: more than any coordinate that is used."""
WRAP = 1 << 34
"""TALL * WRAP is 2^64: pitches that add up to it cancel."""


def further_pitches(form: str, pitch: Any) -> tuple[Any, ...]:
    """Return the pitches of the further dimensions in bytes."""
    return (pitch, WRAP - pitch) if form == "read_write" else (pitch,)


def clipped_coordinates(form: str, offset: Any, size: Any, row: Any) -> tuple[Any, ...]:
    """Return the coordinates of a group's row: in the ragged dimension, then in the further ones.

    Example:
        >>> clipped_coordinates("read_write", 300, 70, 64) == (2**30 - 6, 370, 2**30)
        True
    """
    return (TALL - size + row, offset + size, TALL)[: 3 if form == "read_write" else 2]


def moved_base(form: str, pitch: Any) -> Any:
    """Return by how many bytes the base address moves."""
    return 0 if form == "read_write" else -TALL * pitch


@dataclass(frozen=True, slots=True)
class ClipPlan(
    Record,
    code="LA890",
    schema="layoutalg/clip-plan/1",
    json="form axis ragged_dim plan=dense tensormap=fields hex=raw",
):
    """A plan whose ragged dimension ends with the group of each copy.

    Args:
        dense: The plan of the whole tensor, whose shared memory and other dimensions it keeps.
        form: ``"read_write"`` or ``"write_only"``.
        axis: The ragged dimension of the tensor.
        ragged_dim: The dimension of the map that it moves.
    """

    dense: TensorMapPlan
    form: str
    axis: int
    ragged_dim: int

    def _validate(self) -> None:
        CHECK.choice(self.form, "form", FORMS)
        if self.form == "write_only" and self.direction == "load":
            raise CHECK.malformed("form", "must be read_write for loads: the other base may not be mapped", self.form)
        place = CHECK.integer(self.ragged_dim, "ragged_dim", 1, len(self.dense.origin_map))
        if self.dense.origin_map[place] != ((self.axis, 1, 1),):
            raise CHECK.malformed("axis", f"must move coordinate {place} of the map, alone", self.axis)
        self.raw  # noqa: B018 - refuses a map of too many dimensions, or whose pitch has no counterpart

    @classmethod
    def of(cls, dense: TensorMapPlan, axis: int, form: str = "read_write") -> ClipPlan:
        """Return the clipped plan of a dense one, whose row moves one coordinate of the map."""
        moved = [(dim, terms) for dim, terms in enumerate(dense.origin_map) if any(term[0] == axis for term in terms)]
        if len(moved) != 1 or moved[0][1] != ((axis, 1, 1),) or moved[0][0] == 0:
            raise CHECK.malformed("dense", "must move one outer coordinate of its map by the row", str(moved))
        return cls(dense, form, axis, moved[0][0])

    @property
    def problem(self) -> TensorMapProblem:
        """The problem of the whole tensor."""
        return self.dense.problem

    @property
    def direction(self) -> str:
        """``"load"`` or ``"store"``."""
        return self.dense.direction

    @property
    def oob(self) -> str:
        """The out-of-bounds class of the other dimensions; rows behind the group are exact."""
        return self.dense.oob

    @property
    def pitch(self) -> int:
        """Bytes from row to row."""
        return self.dense.tensor_map.strides_bytes[self.ragged_dim - 1]

    @property
    def tensor_map(self) -> hardware.TensorMap:
        """The map; its base is that of the tensor, which ``raw`` moves."""
        tm, more = self.dense.tensor_map, further_pitches(self.form, self.pitch)
        dims = [TALL if dim == self.ragged_dim else extent for dim, extent in enumerate(tm.dims)]
        ones = (1,) * len(more)
        return replace(
            tm, dims=(*dims, *[WIDE] * len(more)), strides_bytes=(*tm.strides_bytes, *more), box=(*tm.box, *ones),
            element_strides=(*tm.element_strides, *ones),
        )  # fmt: skip

    @property
    def fields(self) -> dict[str, object]:
        """The map's fields, innermost first."""
        tm = self.tensor_map
        return {"dtype": tm.dtype, "dims": tm.dims, "strides_bytes": tm.strides_bytes, "box": tm.box,
                "swizzle": tm.swizzle}  # fmt: skip

    @property
    def raw(self) -> bytes:
        """The 128 bytes, relative to the tensor's address."""
        raw = hardware.encode(self.tensor_map, target=self.problem.arch)
        base: int = (int.from_bytes(raw[:8], "little") + moved_base(self.form, self.pitch)) % 2**64
        return base.to_bytes(8, "little") + raw[8:]

    def coordinates(self, origin: Sequence[int], offset: int, size: int) -> tuple[tuple[int, ...], ...]:
        """Return the start coordinates of each copy of a tile of a group.

        Args:
            origin: The tile's origin, its row counted from the group's first.
            offset: The group's first row.
            size: Its rows.
        """
        if CHECK.integer(row := origin[self.axis], f"origin[{self.axis}]") < 0:
            probe = clip_probe(self.problem.arch)
            seen = "a device has moved them" if probe and probe.above else "not tried on a device"
            rule = f"must be at least 0: rows above the group are in bounds and would be moved ({seen})"
            raise CHECK.malformed(f"origin[{self.axis}]", rule, row)
        CHECK.integer(size, "size", 0, TALL + 1)
        CHECK.integer(offset, "offset", 0, WIDE - size)
        found = []
        for coords in self.dense.coordinates(origin):
            ragged, *more = clipped_coordinates(self.form, offset, size, coords[self.ragged_dim])
            found.append((*[ragged if dim == self.ragged_dim else c for dim, c in enumerate(coords)], *more))
        return tuple(found)

"""Bank turns of the instructions that move a whole tile of shared memory, with the default lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from layoutalg.ground.refusal import Broken
from layoutalg.proofs.tile_map import IntArray
from layoutalg.synth import accesses
from layoutalg.synth.lds import WIDTHS, read_or_write
from layoutalg.targets.banks import AMD_RULES, Access, bank_model, nvidia_access
from layoutalg.targets.nvidia.accesses import AccessForm, access_form
from layoutalg.targets.registry import lookup


@dataclass(frozen=True, slots=True)
class Served:
    """A consumer's answer about a layout.

    Args:
        turns: Bank turns; 0 for engines without a count (TMA, wgmma).
        ideal: Turns of the same accesses without conflicts.
        text: How the consumer reads the layout, or why it cannot.
        holds: Whether the layout serves the consumer.
        plan: The descriptors of ``wgmma``, which the checker has not seen, or of ``tcgen05``; otherwise None.
        because: In place of ``text``, a function that finds out why the consumer cannot read the layout.
    """

    turns: int
    ideal: int
    text: str
    holds: bool = True
    plan: Any = None
    because: Callable[[], str] | None = None


def along(name: str, target: str, places: IntArray, size: int, dimension: int) -> Served:
    """Answer for vector loads or stores whose lanes run along dimension 0 or 1 of a tile."""
    turned = places if dimension else places.T
    if name in WIDTHS:
        return by_lds(name, target, turned, size, dimension)
    return whole_tile(access_form(name), nvidia_access(name), turned, size, target, dimension)


def by_lds(name: str, target: str, places: IntArray, size: int, dimension: int | None = None) -> Served:
    """Answer for a tile in LDS with the default lanes; fails if the phases of the instruction are not known."""
    found = read_or_write(target, name, places, None, size, lookup(target).lanes)
    if not isinstance(found, tuple):
        return Served(0, 0, found.reason, holds=False)
    plan, many = found[0], len(found[0].addresses)
    lanes = plan.lanes if dimension is None else f"along dimension {dimension}"
    if plan.turns is None:
        return Served(0, 0, f"{many} accesses, lanes {lanes}; their turns on {target} are not known", holds=False)
    return counted(many, plan.turns, many * len(AMD_RULES[target, name].phases), f"lanes {lanes}")


def whole_tile(
    form: AccessForm, access: Access, places: IntArray, size: int, target: str, dimension: int | None = None
) -> Served:
    """Answer for the instructions that move the whole tile."""
    found = accesses.whole_tile(form, 8 * places, 8 * size)
    if isinstance(found, Broken):
        return Served(0, 0, found.reason, holds=False)
    model = bank_model(target, form.name)
    issued = found.addresses.reshape(-1, form.addresses)
    turns, _ = model.totals(issued)
    who = "rows" if access.matrices else "lanes"
    ideal = len(issued) * (access.matrices or max(1, access.bits // 32))
    served = counted(
        len(issued), turns, ideal, f"{who} along dimension {found.along if dimension is None else dimension}"
    )
    return served if model.evidence == "measured" else replace(served, text=f"{served.text} ({model.basis})")


def counted(accesses: int, turns: int, ideal: int, lanes: str) -> Served:
    """Answer with the turns of a number of accesses."""
    than = "free of conflicts" if turns == ideal else f"{ideal} without conflicts"
    many, taken = "" if accesses == 1 else "es", "" if turns == 1 else "s"
    return Served(turns, ideal, f"{accesses} access{many}, {lanes}, {turns} turn{taken}, {than}")

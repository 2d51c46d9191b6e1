"""The nearest legal tensor map, and minimal conflicts between rules and fixed fields, by z3.

Fields are bit-vectors (addresses, extents, strides) and choices (swizzle, interleave, fill); the rules enforced by the
measured driver are constraints on them. A map is nearer if fewer fields change, then if the sum of the numeric changes
is smaller. A conflict is minimal: dropping any one rule or field makes the rest satisfiable.

Implementation notes: the constraints are the predicates of ``tensormap.limits`` on bit-vectors; choices are the
driver's numbers. The products of BOX_SMEM are not encoded. Every returned map is checked by all rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from layoutalg.ground import clock, solver
from layoutalg.ground.errors import BudgetError, Diagnostic, InfeasibleError
from layoutalg.ground.limits import PLAN_SECONDS
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Record
from layoutalg.proofs.tensormap.plan import tensor_map_to_json
from layoutalg.synth.solving.accesses import CHECK
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import TensorMap, limits

BITS = 64
CHOICES = {
    "swizzle": hardware.SWIZZLES[: limits.FIRST_ATOM],
    "interleave": hardware.INTERLEAVES,
    "oob_fill": hardware.OOB_FILLS,
}
NUMBERS = ("base_address", "dims", "strides_bytes", "box", "element_strides")
RULES = tuple(rule for rule in limits.ENFORCED if rule not in ("ARCH_ATOM", "BOX_SMEM"))
"""The enforced rules encoded as constraints."""


@dataclass(frozen=True, slots=True)
class Conflict(Record, code="LA870", schema="layoutalg/map-conflict/1", json="rules fields=listed"):
    """A minimal set of rules and field values that cannot hold together.

    Args:
        rules: Rule ids.
        fields: Fields and the values they would keep.
    """

    rules: tuple[str, ...]
    fields: tuple[tuple[str, object], ...]

    @property
    def listed(self) -> tuple[dict[str, object], ...]:
        """The fields as the document lists them."""
        return tuple({"field": name, "value": value} for name, value in self.fields)

    def __str__(self) -> str:
        kept = ", ".join(f"{name} = {value}" for name, value in self.fields)
        many = "cannot hold" if len(self.rules) == 1 else "cannot all hold"
        return f"{' and '.join(self.rules)} {many} while {kept}" if kept else f"{' and '.join(self.rules)} {many}"


@dataclass(frozen=True, slots=True)
class NearestMap(
    Record, Shown, code="LA870", schema="layoutalg/nearest-map/1", json="tensormap=map_fields changes=listed distance"
):
    """The legal map with the least change.

    Args:
        tensor_map: The map.
        changes: (field, before, after).
        distance: Sum of the numeric changes.
    """

    tensor_map: TensorMap
    changes: tuple[tuple[str, object, object], ...]
    distance: int

    def __str__(self) -> str:
        told = "; ".join(f"{name}: {before} -> {after}" for name, before, after in self.changes)
        return told or "the map is already legal"

    @property
    def map_fields(self) -> dict[str, object]:
        """The map as in documents."""
        return tensor_map_to_json(self.tensor_map)

    @property
    def listed(self) -> tuple[dict[str, object], ...]:
        """The changes as the document lists them."""
        return tuple({"field": name, "before": before, "after": after} for name, before, after in self.changes)


def nearest_map(
    tm: TensorMap, target: str = "sm_90a", keep: Sequence[str] = (), *, seconds: float = PLAN_SECONDS
) -> NearestMap:
    """Return the legal tensor map that changes the fewest fields, then by the least amount.

    Args:
        tm: A map, legal or not, of an element type that the target supports.
        target: Architecture; its rules are those enforced by a measured driver.
        keep: Fields that must not change: ``"swizzle"``, ``"box[0]"``, ``"strides_bytes[0]"``, ...
        seconds: Wall-clock time limit.

    Raises: MalformedError: LA870. InfeasibleError: LA875, with a minimal conflict. BudgetError: LA001, LA876.

    Example:
        >>> illegal = TensorMap("bf16", (512, 1024), (1026,), (64, 64), swizzle="64B")
        >>> print(nearest_map(illegal))
        strides_bytes[0]: 1026 -> 1024; swizzle: 64B -> NONE
        >>> print(nearest_map(illegal, keep=["swizzle"]))
        strides_bytes[0]: 1026 -> 1024; box[0]: 64 -> 32

    Source: rules of ``targets.nvidia.tensormap``, measured on an H200.
    """
    fields = _fields(tm)
    kept = _kept(keep, fields)
    hardware.violations(tm, target=target)  # raises for targets that were not measured
    with clock.within(clock.checked_seconds(seconds, "seconds")):
        if _model(tm, RULES, kept, None, None) is None:
            raise _impossible(_core(tm, RULES, kept))
        many = 0
        while (found := _model(tm, RULES, kept, many, None)) is None:
            many += 1
        low, high = 0, _distance(fields, found)
        while low < high:
            middle = (low + high) // 2
            nearer = _model(tm, RULES, kept, many, middle)
            if nearer is None:
                low = middle + 1
            else:
                found, high = nearer, _distance(fields, nearer)
    answer = _rebuilt(tm, found)
    broken = hardware.violations(answer, target=target)
    if broken:
        because = f"the nearest map by the constraints still breaks {broken[0]}"
        raise BudgetError(Diagnostic("LA876", "no nearest legal map was found", (repr(tm)[:200],), because))
    changes = tuple((name, before, found[name]) for name, before in fields.items() if found[name] != before)
    return NearestMap(answer, changes, high)


def map_conflicts(tm: TensorMap, keep: Sequence[str] | None = None) -> tuple[Conflict, ...]:
    """Return minimal conflicts, disjoint in their rules, between the rules and the fields to keep.

    Args:
        tm: A map.
        keep: Fields that must not change; None keeps all, so that each broken rule is a conflict of its own.

    Example:
        >>> wide = TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="32B")
        >>> print(*map_conflicts(wide), sep="\\n")
        SWIZZLE_INNER cannot hold while box[0] = 64, swizzle = 32B, interleave = NONE
        >>> map_conflicts(wide, keep=["swizzle"])
        ()
    """
    fields = _fields(tm)
    kept = _kept(tuple(fields) if keep is None else keep, fields)
    rules = list(RULES)
    found = []
    while _model(tm, rules, kept, None, None) is None:
        core = _core(tm, rules, kept)
        found.append(core)
        rules = [rule for rule in rules if rule not in core.rules]
    return tuple(found)


def _fields(tm: TensorMap) -> dict[str, Any]:
    """The fields of a map by name."""
    if not isinstance(tm, TensorMap):
        raise CHECK.malformed("tm", "must be a TensorMap", tm)
    if hardware.DTYPES[tm.dtype].slot_bytes is not None or tm.swizzle not in CHOICES["swizzle"]:
        raise CHECK.malformed("tm", "must have a plain element type and swizzle", (tm.dtype, tm.swizzle))
    found: dict[str, Any] = {"base_address": tm.base_address}
    for name in NUMBERS[1:]:
        found |= {f"{name}[{place}]": value for place, value in enumerate(getattr(tm, name))}
    for name, value in found.items():
        if not 0 <= value < 1 << BITS - 2:
            raise CHECK.malformed("tm", f"must have {name} in [0, 2^{BITS - 2})", value)
    return found | {name: getattr(tm, name) for name in CHOICES}


def _kept(keep: Sequence[str], fields: dict[str, Any]) -> tuple[str, ...]:
    if isinstance(keep, str) or any(name not in fields for name in keep):
        raise CHECK.malformed("keep", f"must name fields among {', '.join(fields)}", keep)
    return tuple(dict.fromkeys(keep))


def _core(tm: TensorMap, rules: Sequence[str], kept: Sequence[str]) -> Conflict:
    """Drop every rule and field that the conflict does not need."""
    held, names = list(rules), list(kept)
    for rule in reversed(tuple(held)):
        fewer = [each for each in held if each != rule]
        if _model(tm, fewer, names, None, None) is None:
            held = fewer
    for name in tuple(names):
        fewer = [each for each in names if each != name]
        if _model(tm, held, fewer, None, None) is None:
            names = fewer
    fields = _fields(tm)
    return Conflict(tuple(held), tuple((name, fields[name]) for name in names))


def _impossible(core: Conflict) -> InfeasibleError:
    return InfeasibleError(Diagnostic("LA875", "no legal tensor map keeps these fields", core.rules, str(core)))


def _rebuilt(tm: TensorMap, found: dict[str, Any]) -> TensorMap:
    values: dict[str, Any] = {name: found[name] for name in ("base_address", *CHOICES)}
    for name in NUMBERS[1:]:
        values[name] = tuple(found[f"{name}[{place}]"] for place in range(len(getattr(tm, name))))
    return replace(tm, **values)


def _distance(fields: dict[str, Any], found: dict[str, Any]) -> int:
    return sum(abs(found[name] - value) for name, value in fields.items() if isinstance(value, int))


@solver.whole
def _model(
    tm: TensorMap, rules: Sequence[str], kept: Sequence[str], changed: int | None, distance: int | None
) -> dict[str, Any] | None:
    """Return fields that satisfy the rules, keep ``kept`` and change little enough; None if z3 proves none exist."""
    clock.check("a question on the fields of a tensor map")
    session = solver.session("QF_BV")
    z3, context, add = session.z3, session.context, session.solver.add
    fields = _fields(tm)

    def number(value: int) -> Any:
        return z3.BitVecVal(value, BITS, context)

    held = {name: z3.BitVec(name, BITS, context) for name in fields}
    before = {name: number(CHOICES[name].index(value) if name in CHOICES else value) for name, value in fields.items()}
    for name, each in held.items():
        add(z3.ULT(each, number(len(CHOICES[name]) if name in CHOICES else 1 << BITS - 2)))
    for term in _constraints(tm, held, rules, number):
        add(term)
    add(*(held[name] == before[name] for name in kept))
    moved = [held[name] != before[name] for name in fields]
    if changed is not None:
        add(z3.PbLe([(term, 1) for term in moved], changed))
    if distance is not None:
        parts = [
            z3.If(z3.ULE(held[name], before[name]), before[name] - held[name], held[name] - before[name])
            for name in fields
            if name not in CHOICES
        ]
        for part in parts:
            add(z3.ULE(part, number(distance)))
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        add(z3.ULE(total, number(distance)))
    values = solver.solve(session, "the fields of a tensor map", list(held.values()))
    if values is None:
        return None
    pairs = zip(held, values, strict=True)
    return {name: CHOICES[name][value] if name in CHOICES else value for name, value in pairs}


def _constraints(
    tm: TensorMap, held: dict[str, Any], rules: Sequence[str], number: Callable[[int], Any]
) -> Iterator[Any]:
    """Yield the constraints of rules on the fields."""
    given = limits.Numbers.of(tm)
    modes = {name: [held[f"{name}[{at}]"] for at in range(len(getattr(tm, name)))] for name in NUMBERS[1:]}
    single = {name: held[name] for name in ("base_address", *CHOICES)}
    numbers = given._replace(dtype=number(given.dtype), rank=number(given.rank), **single, **modes)
    for rule in rules:
        yield from (holds for _, _, holds in limits.conditions(rule, numbers))

"""What the rules for lines of a kernel share: what is said of a line, its cost, and the function around it.

Costs are cycles of a multiprocessor for one execution by a block. Bank turns, shuffles and waits for barriers and
dependent shuffles cost what ``targets.instruction_costs`` says, bytes of global memory what the L2 cache gives one of
``units`` multiprocessors (``targets.roofs``), copies by tensor maps at least the time of the copy engine, products that
of the tensor cores (``targets.pipeline_costs``). Latencies of memory overlap and are left out. What ``targets`` has no
rate for has no cost.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from layoutalg.ask.global_moves import CHECK, REACH
from layoutalg.ask.kernel_addresses import POINTER, ZERO, Addresses, Affine, Mask, Number, Value
from layoutalg.f2 import LinearLayout
from layoutalg.f2.layout import linear
from layoutalg.ground.errors import LayoutError, RepresentabilityError
from layoutalg.ground.limits import POINTS
from layoutalg.notation.mlir import Operation, Region
from layoutalg.notation.triton import to_attribute
from layoutalg.notation.ttgir import TensorType, Types
from layoutalg.notation.written import stated
from layoutalg.targets.instruction_costs import instruction_costs
from layoutalg.targets.pipeline_costs import pipeline_costs
from layoutalg.targets.registry import grade_in_words, lookup
from layoutalg.targets.roofs import roofs

CHAIN: Final = 16
"""Elementwise operations between a conversion and the load or store that might do without it."""
MEASURED: Final = "sm_90a"
"""The target whose rates are assumed for others of the vendor."""
POINTED: Final = ("tt.load", "tt.store", "ttg.async_copy_global_to_local", "amdg.buffer_load", "amdg.buffer_store")
ATOMICS: Final = ("tt.atomic_rmw", "tt.atomic_cas", "amdg.buffer_atomic_rmw", "amdg.buffer_atomic_cas")
SHARED: Final = ("ttg.local_load", "ttg.local_store", "ttg.local_alloc")
FIXED: Final = ("tt.dot", "ttng.warp_group_dot", "ttng.warp_group_dot_wait", "ttng.tmem_load")
"""Operations whose result is where the instruction leaves it."""
_MASKS: Final = {"tt.load": 1, "tt.store": 2, "tt.atomic_rmw": 2, "amdg.buffer_load": 2} | dict.fromkeys(
    ("amdg.buffer_store", "amdg.buffer_atomic_rmw"), 3
)
"""The operand that is the mask; that of an asynchronous copy is behind the word."""
_ELEMENTWISE = re.compile(r"(?:arith|math)\.(?!constant)|tt\.(?:fp_to_fp|bitcast)$")
_VALUE = r"(%[\w$.-]+(?:#\d+)?)"
TensorTypes: TypeAlias = tuple[TensorType, ...]


class Told(NamedTuple):
    """What is said of an operation: lines, cycles (None without a rate), those above the least, what is better."""

    lines: tuple[str, ...]
    cost: float | None = 0.0
    excess: float = 0.0
    better: str = ""
    assumed: tuple[str, ...] = ()
    answers: tuple[object, ...] = ()


class Rates:
    """What a multiprocessor of a target does in a cycle.

    Example:
        >>> rates = Rates("sm_90a")
        >>> rates.turns(64, 4), round(rates.moved(32), 3), rates.product(64, 256, 64, "bf16"), Rates("gfx942").moved(32)
        (64.0, 0.543, 512.0, None)
    """

    def __init__(self, target: str) -> None:
        self.target, self.instructions = target, instruction_costs(target)
        like = MEASURED if lookup(target).vendor == "nvidia" else target
        self.roofs, self.copies = (_known(find, target) or _known(find, like) for find in (roofs, pipeline_costs))
        self.products = _known(pipeline_costs, target)

    def turns(self, turns: float, warps: int) -> float:
        """Return the cycles of bank turns of all warps."""
        return self.instructions.taken(0, 0, 0, turns, warps)

    def moved(self, size: float) -> Any:
        """Return the cycles of bytes from or to global memory, if the L2 cache has them; None without a rate."""
        return None if self.roofs is None or size >= REACH else size * self.roofs.units / self.roofs.l2_bytes

    def copied(self, size: float, issues: int) -> Any:
        """Return the cycles of copies by a tensor map; None without a rate."""
        moved = self.moved(size)
        return moved and self.copies and max(moved, self.copies.load(size / 1024, issues)[0])

    def product(self, m: int, n: int, k: int, dtype: str) -> Any:
        """Return the cycles of ``wgmma``; None without a rate."""
        return float(self.products.mma(m, n, k, dtype)[0]) if self.products and dtype in self.products.macs else None

    def stated(self) -> list[str]:
        """Return the unit and the evidence for every rate, in words."""
        costs, l2 = self.instructions, self.roofs
        lines = [
            "cycles of a multiprocessor for one execution by a block, latencies of memory apart",
            f"bank turns {costs.turn:g}, shuffles {costs.shuffle:g}, each at least {costs.issue:g} in a warp; waits of "
            f"barriers and dependent shuffles ({costs.evidence})",
        ]
        if l2 is not None:
            grade = l2.evidence if self.target == MEASURED else grade_in_words("assumed", self.target)
            each = f"{l2.l2_bytes / l2.units:.3g} bytes of global memory a cycle, from L2 ({grade})"
            lines.append(f"{each}; from HBM {l2.l2_bytes / l2.hbm_bytes:.2g} times the cycles")
        if self.products is not None:
            lines.append(f"wgmma: {self.products.macs['f16']} products of f16 a cycle ({self.products.evidence})")
        lacking = ["global memory"] * (l2 is None) + ["other matrix instructions", "tensor memory", "redux.sync"]
        return [*lines, f"no rate is known, so not ranked: {', '.join(lacking)}"]


def _known(find: Callable[[str], Any], target: str) -> Any:
    """Return what is known of a target, or None."""
    try:
        return find(target)
    except RepresentabilityError:
        return None


class Scope:
    """A function of a kernel: who makes and uses its values, and what is known of their numbers."""

    def __init__(self, function: Operation, types: Types, target: str, rates: Rates) -> None:
        self.types, self.target, self.rates = types, target, rates
        self.addresses = Addresses(function, types)
        self.makers: dict[Operation, dict[str, Operation | None]] = {}
        self.users: dict[tuple[Operation | None, str], list[Operation]] = {}
        for region in function.regions:
            self._follow(region, {})

    def _follow(self, region: Region, outside: dict[str, Operation | None]) -> None:
        """Note the makers and users of values; sibling regions may use a name again."""
        inside = outside | dict.fromkeys([name for name, _ in region.arguments])
        inside |= dict.fromkeys(re.findall(r"(%[\w$.-]+) =", region.header))
        for one in region.operations:
            self.makers[one] = {name: inside.get(name) for name in one.operands()}
            for name, maker in self.makers[one].items():
                self.users.setdefault((maker, name), []).append(one)
            for inner in one.regions:
                self._follow(inner, inside)
            for name in one.results:
                inside[name] = None if name in inside else one

    def value(self, one: Operation, name: str) -> Value:
        """Return what is known of an operand."""
        values = dict(zip(one.operands(), self.addresses.operands.get(one, ()), strict=False))
        return values.get(name, f"{name or 'an operand'} is not followed")

    def address(self, one: Operation) -> Value:
        """Return the addresses that an operation accesses; "" if it does not access any through pointers."""
        if one.name not in POINTED + ATOMICS:
            return ""
        found, bits = re.search(rf"{_VALUE}\[{_VALUE}\]", one.head), POINTER.search(one.types)
        if not one.name.startswith("amdg.") or found is None or bits is None:
            return self.value(one, next(iter(one.operands()), ""))
        base, offset = (self.value(one, name) for name in found.groups())
        if isinstance(base, str) or isinstance(offset, str):
            return base if isinstance(base, str) else offset
        return Affine(base.base, (ZERO,) * len(offset.strides)).plus(offset, Number.of(int(bits[1]) // 8))

    def mask(self, one: Operation) -> tuple[str, tuple[Number, ...] | None]:
        """Return the name of the mask of an access, "" if every element is accessed, and the runs that are known."""
        behind = re.search(rf"\bmask {_VALUE}", one.head)
        name = behind[1] if behind else (one.operands()[_MASKS.get(one.name, 99) :] or [""])[0]
        maker = self.makers.get(one, {}).get(name)
        if not name or (maker is not None and maker.name == "arith.constant" and "true" in maker.head):
            return "", None
        value = self.value(one, name)
        if isinstance(value, str) or not (value.uniform or isinstance(value, Mask)):
            return name, None
        return name, value.strides

    def begins(self, one: Operation) -> tuple[int, ...] | None:
        """Return where the part of a buffer that an operation accesses begins; None if that is not a constant."""
        makers = self.makers.get(one, {}).values() if one.name in SHARED else ()
        heads = [maker.head.partition(" : ")[0] for maker in makers if maker and maker.name == "ttg.memdesc_subslice"]
        found = re.search(r"\[([\d,\s]+)\]", heads[0]) if heads else None
        return tuple(map(int, found[1].split(","))) if found else None

    def producer(self, one: Operation) -> Operation | None:
        """Return the operation that makes the operand for it alone, behind elementwise ones of it and constants."""
        for _ in range(CHAIN):
            made = self.makers[one]
            names = [n for n, by in made.items() if by is None or by.name not in ("arith.constant", "tt.splat")]
            maker = made[names[0]] if len(names) == 1 else None
            if maker is None or (maker.name not in FIXED and len(self.users[maker, names[0]]) > 1):
                return None
            if not _ELEMENTWISE.match(maker.name):
                return maker
            one = maker
        return None

    def consumer(self, one: Operation) -> Operation | None:
        """Return the only operation that uses the result, behind elementwise ones with no other operand."""
        for _ in range(CHAIN):
            users = self.users.get((one, one.results[0]), []) if len(one.results) == 1 else []
            if len(users) != 1 or not _ELEMENTWISE.match(users[0].name) or len(users[0].operands()) != 1:
                return users[0] if len(users) == 1 else None
            one = users[0]
        return None


Rule: TypeAlias = Callable[[Scope, Operation, TensorTypes], "Told | None"]
"""Returns None for an operation that it passes over."""


def bits_of(entry: TensorType) -> int:
    """Return the bits of an element, as registers and memory hold it."""
    return stated(entry).bits or 16


def registers_of(entry: TensorType) -> LinearLayout:
    """Return the layout of a tensor in registers."""
    layout = linear(entry.layout(), "types")
    if not {"register", "lane", "warp"} <= set(layout.in_dims):
        raise CHECK.malformed("types", "must be those of registers", entry.text)
    if layout.size > POINTS:
        raise CHECK.malformed("types", f"must have at most {POINTS} registers over all threads", layout.size)
    return layout


def attribute_text(layout: Any) -> str:
    """Return a layout as Triton writes it, if it has a name for it."""
    if isinstance(layout, LinearLayout) and "register" in layout.in_dims and "block" not in layout.in_dims:
        layout = LinearLayout((*layout.in_axes, ("block", 0)), layout.out_axes, layout.columns, layout.constant)
    try:
        return to_attribute(layout) if isinstance(layout, LinearLayout) else str(layout)
    except LayoutError:
        return str(layout)

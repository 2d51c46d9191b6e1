"""Explain a kernel in TTGIR by its lines: what loads, stores, conversions and products cost, and what is better.

Every number is the answer of the function that gives it for single layouts: ``transactions``, ``banks``,
``conversion``, ``gather``, ``admissible``. Lines are ranked by cycles of a multiprocessor (``ask.kernel_scope``) times
the trips of the loops around them, the innermost of the loops whose trips are not known first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import Final, NamedTuple

from layoutalg.ask.explanation.texts import listing_facts
from layoutalg.ask.facts import Fact, said
from layoutalg.ask.global_moves import CHECK
from layoutalg.ask.kernel_memory import atomics, pointers, shared
from layoutalg.ask.kernel_registers import across, convert, gather, histogram
from layoutalg.ask.kernel_scope import ATOMICS, POINTED, SHARED, Rates, Rule, Scope, Told
from layoutalg.ask.kernel_tensors import TMA, product, tensor_memory, tma
from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, LayoutError
from layoutalg.notation.mlir import Operation, fail, read_mlir
from layoutalg.notation.ttgir import Types, layouts_of
from layoutalg.targets.registry import TARGETS

MOST_ELEMENTS: Final = 2**20
"""Elements of a tensor that Triton accepts (3.9.0, ``TRITON_MAX_TENSOR_NUMEL``)."""
RANKED: Final = 5
"""Lines that a ranking shows."""
_PASSED = re.compile(
    r"(?:arith|math|scf|cf|ub|gpu|rocdl)\.|tt\.(?:func|return|splat|make_range|expand_dims|broadcast|addptr|get_\w+|advance|"
    r"make_tensor_\w+|assert|print|int_to_ptr|ptr_to_int|bitcast|fp_to_fp|reduce\.return|scan\.return)$|"
    r"ttg\.(?:memdesc_\w+|local_dealloc|async_commit_group|async_wait|warp_\w+|barrier|mask\w*|global_scratch_alloc)$|"
    r"ttng\.(?:\w*barrier|\w*barrier_expect|fence\w*|\w+_wait|tc_gen5_commit|tensormap_\w+|cluster_\w+|tmem_subslice|"
    r"reinterpret_tensor_descriptor)$"
)
"""Operations without a cost that depends on a layout: arithmetic, control, views, barriers."""
_LESS = re.compile(r", (?:#smem|mutable|#ttng\.tensor_memory)\b")
_RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(POINTED, pointers),
    **dict.fromkeys(ATOMICS, atomics),
    **dict.fromkeys(SHARED, shared),
    **dict.fromkeys(TMA, tma),
    **dict.fromkeys(("tt.dot", "ttng.warp_group_dot", "ttng.tc_gen5_mma"), product),
    **dict.fromkeys(("ttng.tmem_load", "ttng.tmem_store", "ttng.tmem_copy", "ttng.tmem_alloc"), tensor_memory),
    **dict.fromkeys(("tt.trans", "tt.reshape", "ttg.convert_layout", "amdg.in_thread_transpose"), convert),
    "tt.gather": gather,
    **dict.fromkeys(("tt.reduce", "tt.scan"), across),
    "tt.histogram": histogram,
}
"""What explains an operation."""


class Loop(NamedTuple):
    """A loop around a line, with its trips if its bounds are constants."""

    line: int
    trips: int | None


class Line(NamedTuple):
    """An operation in a kernel, the loops around it, what is said of it, and an earlier line that is like it."""

    one: Operation
    types: str
    loops: tuple[Loop, ...]
    told: Told
    same: int | None

    def __str__(self) -> str:
        value = (*self.one.results, *self.one.operands(), "")[0]
        around = f" in {len(self.loops)} loop{'s' * (len(self.loops) > 1)}" if self.loops else ""
        return f"{self.one.name} {value}{around}"

    @property
    def unknown(self) -> list[Loop]:
        """The loops whose trips are not known."""
        return [loop for loop in self.loops if loop.trips is None]

    @property
    def trips(self) -> int:
        """How often the loops inside the innermost of these repeat the line."""
        inside = self.loops[self.loops.index(self.unknown[-1]) + 1 :] if self.unknown else self.loops
        return prod(loop.trips or 0 for loop in inside)

    def ranked(self, cost: float) -> str:
        """Return the line as in a ranking by a cost of one execution."""
        times = f"{self.trips} x {_number(cost)} = " if self.trips != 1 else ""
        each = f" per iteration of the loop of line {self.unknown[-1].line}" if self.unknown else ""
        better = f"; {self.told.better}" if self.told.better else ""
        return f"line {self.one.line}: {times}{_number(self.trips * cost)} cycles{each}, {self}{better}"

    def fact(self) -> Fact:
        """Return the line as a fact."""
        told = self.told
        lines = [*told.lines, *(f"assumed: {each}" for each in told.assumed)]
        lines += [f"better: {told.better}"] if told.better else []
        lines = lines if self.same is None else [f"as line {self.same}"]
        names = {"results": list(self.one.results), "operands": self.one.operands()}
        found = {"told": list(told.lines), "cost_cycles": told.cost, "excess_cycles": told.excess}
        around = [{"line": loop.line, "trips": loop.trips} for loop in self.loops]
        entry = {"line": self.one.line, "op": self.one.name, "types": self.types, "loops": len(self.loops)}
        entry |= {"around": around, **names, **found, "better": told.better or None}
        entry |= {"assumed": list(told.assumed), "answers": list(told.answers)}
        return Fact(f"line {self.one.line}", (f"{self}: {self.types}", *(f"  {line}" for line in lines)), entry)


def _number(cycles: float) -> str:
    return f"{cycles:,.0f}" if cycles >= 100 else f"{cycles:.3g}"


def target_named(backend: object, arch: object) -> str | None:
    """Return the target that Triton calls ("cuda", 90) or ("hip", "gfx942"), if it is known here.

    Example:
        >>> target_named("cuda", 90), target_named("hip", "gfx942"), target_named("cuda", 75)
        ('sm_90a', 'gfx942', None)
    """
    names = [f"sm_{arch}a", f"sm_{arch}"] if backend == "cuda" else [str(arch).partition(":")[0]]
    return next((name for name in names if name in TARGETS), None)


def kernel_facts(text: str, target: str) -> tuple[list[Fact], dict[str, object]]:
    """Return what is known of every line of a module, as facts and as JSON-ready data.

    Args:
        text: The module.
        target: The target if the module does not name one that is known.

    Raises: MalformedError: LA710, LA972. BudgetError: LA001.
    """
    operations = [one for first in read_mlir(text).operations for one in first.walk()]
    functions = [one for one in operations if one.name == "tt.func"]
    if not functions:
        fail(1, "must have a tt.func", "none")
    named, stands = _target(next((one.head for one in operations if one.name == "module"), ""), target)
    reader = _Reader(Types(text), named)
    for function in functions:
        reader.read(function)
    names = [found[1] for one in functions if (found := re.search(r"@([\w$.-]+)", one.head))]
    told = [line.fact() for line in reader.lines]
    costly, gains = (_ranked(reader.lines, name) for name in ("cost", "excess"))
    ranked = [line.ranked(line.told.cost or 0) for line in costly[:RANKED]]
    gained = [line.ranked(line.told.excess) for line in gains[:RANKED]]
    without = [str(line.one.line) for line in reader.lines if line.told.cost is None]
    unknown = [f"line {one.line}: {one.name}" for one in reader.unknown]
    facts = [
        said("kernel", f"{', '.join(names)} on {named} ({stands})"),
        *told,
        said("unit", unit := reader.rates.stated()),
        said("most costly", ranked or "no line has a cost"),
        *[said("not ranked", f"line{'s' * (len(without) > 1)} {', '.join(without)}: no rate")] * bool(without),
        said("most to gain", gained or "no line above its least cost"),
        said("not explained", [f"{len(unknown)} operations", *unknown] if unknown else "no operation"),
        said("passed over", f"{reader.passed} operations whose cost does not depend on a layout"),
    ]
    data = {"names": names, "target": named, "lines": [fact.value for fact in told], "passed": reader.passed}
    data |= {"ranking": [line.one.line for line in costly], "gains": [line.one.line for line in gains], "unit": unit}
    data |= {"unknown": [{"line": one.line, "op": one.name} for one in reader.unknown]}
    return facts, data | listing_facts(layouts_of(text))[1]


def _ranked(lines: list[Line], name: str) -> list[Line]:
    """Return the lines that have a cost, by that of all executions, those in more loops of unknown trips first."""
    found = [(-len(line.unknown), -line.trips * cost, line) for line in lines if (cost := getattr(line.told, name))]
    return [line for _, _, line in sorted(found, key=lambda row: (*row[:2], row[2].one.line))]


def _target(head: str, otherwise: str) -> tuple[str, str]:
    """Return the target that a module names, and how it says so."""
    found = re.search(r'"?ttg\.target"?\s*=\s*"(cuda|hip):([\w-]+)', head)
    counts = [re.search(rf'"?ttg\.{name}"?\s*=\s*(\d+)', head) for name in ("num-warps", "threads-per-warp")]
    threads = f", {counts[0][1]} warps of {counts[1][1]}" if counts[0] and counts[1] else ""
    known = target_named(found[1], found[2]) if found else None
    stands = f"{found[1]}:{found[2]}{threads}" if found else f"the module names no target{threads}"
    return known or otherwise, stands if known or not found else f"{stands}, which is not known: taken for {otherwise}"


class _Reader:
    """One pass over the functions of a module."""

    def __init__(self, types: Types, target: str) -> None:
        self.types, self.target, self.rates = types, target, Rates(target)
        self.lines: list[Line] = []
        self.unknown: list[Operation] = []
        self.passed = 0
        self.met: dict[object, tuple[int, Told]] = {}

    def read(self, function: Operation) -> None:
        """Explain the operations of a function."""
        scope = Scope(function, self.types, self.target, self.rates)
        for one, loops in _with_loops(function, (), scope.addresses.trips):
            clock.check("an explanation")
            rule = _RULES.get(one.name)
            told = (None, None) if rule is None else self.told(scope, rule, one)
            if told[1] is not None:
                tiles = [entry for entry in self.types.of(one.types) if one.name not in TMA or entry.dtype != "i64"]
                shown = ", ".join([_LESS.sub("", entry.text) for entry in tiles]) or one.types
                self.lines.append(Line(one, shown, loops, told[1], told[0]))
            elif rule is not None or _PASSED.match(one.name):
                self.passed += 1
            else:
                self.unknown.append(one)

    def told(self, scope: Scope, rule: Rule, one: Operation) -> tuple[int | None, Told | None]:
        """Explain one operation, or find the line that it is like; what no function answers is said with its reason."""
        bare = re.sub(r"%[\w$.-]+(?:#\d+)?", "%", one.head)
        inner = tuple([part.name for region in one.regions for part in region.operations])
        mask, runs = scope.mask(one)
        key = (one.name, one.types, bare, inner, scope.address(one), scope.begins(one), bool(mask), runs)
        if key in self.met and one.name != "ttg.convert_layout":  # its neighbours count
            return self.met[key]
        types = self.types.of(one.types)
        try:
            if (size := max((prod(entry.shape) for entry in types), default=0)) > MOST_ELEMENTS:
                raise CHECK.malformed("types", f"must have at most {MOST_ELEMENTS} elements, Triton's limit", size)
            told = rule(scope, one, types)
        except BudgetError:
            raise
        except LayoutError as error:
            reason = error.diagnostic.because or error.diagnostic.what
            told = Told((f"not counted: {reason.partition(chr(10))[0]}",), None)
        if told is not None:
            self.met[key] = (one.line, told)
        return None, told


def _with_loops(
    one: Operation, loops: tuple[Loop, ...], trips: dict[Operation, int | None]
) -> Iterator[tuple[Operation, tuple[Loop, ...]]]:
    """Yield all operations inside one, with the loops around each."""
    for region in one.regions:
        for inner in region.operations:
            yield inner, loops
            if inner.name not in ("tt.reduce", "tt.scan"):
                own = (Loop(inner.line, trips.get(inner)),) if inner.name in ("scf.for", "scf.while") else ()
                yield from _with_loops(inner, loops + own, trips)

"""Explain a kernel in TTGIR by its lines: what loads, stores, conversions and products cost, and what is better.

Every number is the answer of the function that gives it for single layouts: ``transactions``, ``banks``,
``conversion``, ``gather``, ``admissible``. Costs are bank turns of a block above the ideal, one cycle each; a
conversion has the cycles of its plan, and sectors above the fewest count as turns of as many bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from math import gcd, lcm, prod
from typing import Any, Final, NamedTuple, TypeAlias

from layoutalg.ask.bank_turns import BankReport, banks
from layoutalg.ask.explanation.texts import listing_facts
from layoutalg.ask.facts import Fact, said
from layoutalg.ask.global_moves import CHECK, Asked, global_moves, placed
from layoutalg.ask.global_sectors import TransactionReport, report_of
from layoutalg.ask.kernel_addresses import POINTER, Addresses, Number, Value
from layoutalg.ask.tile_facts import fragments
from layoutalg.f2 import LinearLayout, flatten_outs, rename_outs, transpose_outs
from layoutalg.f2.layout import linear
from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, LayoutError
from layoutalg.ground.verdict import Unknown
from layoutalg.notation.mlir import Operation, fail, read_mlir
from layoutalg.notation.triton import to_attribute
from layoutalg.notation.ttgir import TensorType, Types, layouts_of
from layoutalg.notation.written import stated
from layoutalg.proofs.admission import Admitted
from layoutalg.proofs.conversion import LINE_BYTES, ConversionPlan
from layoutalg.proofs.tensor import BASE_ALIGN_BYTES, Tensor
from layoutalg.proofs.tile_map import layout_of, offsets
from layoutalg.synth.admission import admissible
from layoutalg.synth.conversions import conversion
from layoutalg.synth.conversions.gathers import gather
from layoutalg.targets.registry import TARGETS, lookup

RANKED: Final = 5
"""Lines that the ranking shows."""
CHAIN: Final = 16
"""Elementwise operations between a conversion and the load or store that might do without it."""
PLAIN: Final = {8: "u8", 16: "u16", 32: "u32", 64: "u64"}
_PASSED = re.compile(
    r"(?:arith|math|scf|cf|ub|gpu)\.|tt\.(?:func|return|splat|make_range|expand_dims|broadcast|addptr|get_\w+|advance|"
    r"make_tensor_\w+|assert|print|int_to_ptr|ptr_to_int|bitcast|fp_to_fp|reduce\.return|scan\.return)$|"
    r"ttg\.(?:memdesc_\w+|local_dealloc|async_commit_group|async_wait|warp_\w+|barrier|mask\w*)$|"
    r"ttng\.(?:\w*barrier|\w*barrier_expect|fence\w*|\w+_wait|tc_gen5_commit|tmem_alloc|tensormap_\w+|cluster_\w+)$"
)
"""Operations without a cost that depends on a layout: arithmetic, control, views, barriers."""
_ELEMENTWISE = re.compile(r"(?:arith|math)\.(?!constant)|tt\.(?:fp_to_fp|bitcast)$")
_LESS = re.compile(r", (?:#smem|mutable|#ttng\.tensor_memory)\b")
_POINTED = ("tt.load", "tt.store", "ttg.async_copy_global_to_local")
_SHARED = ("ttg.local_load", "ttg.local_store", "ttg.local_alloc")
_TMA = ("ttng.async_tma_copy_global_to_local", "ttng.async_tma_copy_local_to_global")
_FIXED = ("tt.dot", "ttng.warp_group_dot", "ttng.warp_group_dot_wait", "ttng.tmem_load")
"""Operations whose result is where the instruction leaves it."""
TensorTypes: TypeAlias = tuple[TensorType, ...]


class Told(NamedTuple):
    """What is said of an operation: lines, cost in cycles, what would be better, what was assumed, answers as JSON."""

    lines: tuple[str, ...]
    cost: float = 0.0
    better: str = ""
    assumed: tuple[str, ...] = ()
    answers: tuple[object, ...] = ()


class Line(NamedTuple):
    """An operation in a kernel, the loops around it, what is said of it, and an earlier line that is like it."""

    one: Operation
    types: str
    loops: int
    told: Told
    same: int | None

    def __str__(self) -> str:
        value = (*self.one.results, *self.one.operands(), "")[0]
        return f"{self.one.name} {value}" + (f" in {self.loops} loop{'s' * (self.loops > 1)}" if self.loops else "")

    def fact(self) -> Fact:
        """Return the line as a fact."""
        told = self.told
        lines = [*told.lines, *(f"assumed: {each}" for each in told.assumed)]
        lines += [f"better: {told.better}"] if told.better else []
        lines = lines if self.same is None else [f"as line {self.same}"]
        names = {"results": list(self.one.results), "operands": self.one.operands()}
        found = {"told": list(told.lines), "cost_cycles": told.cost, "better": told.better or None}
        entry = {"line": self.one.line, "op": self.one.name, "types": self.types, "loops": self.loops, **names, **found}
        entry |= {"assumed": list(told.assumed), "answers": list(told.answers)}
        return Fact(f"line {self.one.line}", (f"{self}: {self.types}", *(f"  {line}" for line in lines)), entry)


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
    costly = sorted(
        (line for line in reader.lines if line.told.cost),
        key=lambda line: (-line.loops, -line.told.cost, line.one.line),
    )
    ranked = [
        f"line {line.one.line}: {line.told.cost:g} cycles, {line}"
        + (f"; {line.told.better}" if line.told.better else "")
        for line in costly[:RANKED]
    ]
    unknown = [f"line {one.line}: {one.name}" for one in reader.unknown]
    facts = [
        said("kernel", f"{', '.join(names)} on {named} ({stands})"),
        *told,
        said("most costly", ranked or "no line above its least cost"),
        said("not explained", [f"{len(unknown)} operations", *unknown] if unknown else "no operation"),
        said("passed over", f"{reader.passed} operations whose cost does not depend on a layout"),
    ]
    data = {"names": names, "target": named, "lines": [fact.value for fact in told], "passed": reader.passed}
    ranking = {"ranking": [line.one.line for line in costly]}
    passed = {"unknown": [{"line": one.line, "op": one.name} for one in reader.unknown]}
    return facts, data | ranking | passed | listing_facts(layouts_of(text))[1]


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
        self.types, self.target = types, target
        self.lines: list[Line] = []
        self.unknown: list[Operation] = []
        self.passed = 0
        self.met: dict[object, tuple[int, Told]] = {}
        self.plans: dict[object, ConversionPlan | Unknown] = {}
        self.rules: dict[str, Callable[[Operation, TensorTypes], Told | None]] = {
            **dict.fromkeys(_POINTED, self.pointers),
            **dict.fromkeys(_SHARED, self.shared),
            **dict.fromkeys(_TMA, self.tma),
            **dict.fromkeys(("tt.dot", "ttng.warp_group_dot", "ttng.tc_gen5_mma"), self.product),
            **dict.fromkeys(("tt.trans", "tt.reshape", "ttg.convert_layout"), self.convert),
            "tt.gather": self.gather,
            "tt.reduce": self.reduce,
        }

    def read(self, function: Operation) -> None:
        """Explain the operations of a function."""
        self.addresses = Addresses(function, self.types)
        defined = Counter(name for one in function.walk() for name in _defined(one))
        made = [(name, one) for one in function.walk() for name in one.results]
        self.made = {name: one for name, one in made if defined[name] == 1}  # siblings may use a name again
        self.users: dict[str, list[Operation]] = {}
        for one in function.walk():
            for name in dict.fromkeys(one.operands()):
                self.users.setdefault(name, []).append(one)
        for one, loops in _with_loops(function, 0):
            clock.check("an explanation")
            rule = self.rules.get(one.name)
            told = (None, None) if rule is None else self.told(rule, one)
            if told[1] is not None:
                tiles = [entry for entry in self.types.of(one.types) if one.name not in _TMA or entry.dtype != "i64"]
                shown = ", ".join([_LESS.sub("", entry.text) for entry in tiles]) or one.types
                self.lines.append(Line(one, shown, loops, told[1], told[0]))
            elif rule is not None or _PASSED.match(one.name):
                self.passed += 1
            else:
                self.unknown.append(one)

    def told(self, rule: Callable[..., Told | None], one: Operation) -> tuple[int | None, Told | None]:
        """Explain one operation, or find the line that it is like; what no function answers is said with its reason."""
        bare = re.sub(r"%[\w$.-]+(?:#\d+)?", "%", one.head)
        key = (one.name, one.types, bare, self.address(one), self.begins(one))
        if key in self.met and one.name != "ttg.convert_layout":  # its neighbours count
            return self.met[key]
        try:
            told = rule(one, self.types.of(one.types))
        except BudgetError:
            raise
        except LayoutError as error:
            reason = error.diagnostic.because or error.diagnostic.what
            told = Told((f"not counted: {reason.partition(chr(10))[0]}",))
        if told is not None:
            self.met[key] = (one.line, told)
        return None, told

    def address(self, one: Operation) -> Value:
        """Return the addresses that an operation accesses, if its first operand are pointers."""
        return (*self.addresses.operands.get(one, ()), "it has no operand")[0] if one.name in _POINTED else ""

    def begins(self, one: Operation) -> tuple[int, ...] | None:
        """Return where the part of a buffer that an operation accesses begins; None if that is not a constant."""
        origin = next((self.made.get(name) for name in one.operands()[:1]), None) if one.name in _SHARED else None
        if origin is None or origin.name != "ttg.memdesc_subslice":
            return None
        found = re.search(r"\[([\d,\s]+)\]", origin.head.partition(" : ")[0])
        return tuple(map(int, found[1].split(","))) if found else None

    # memory

    def pointers(self, one: Operation, types: TensorTypes) -> Told | None:
        """Loads, stores and asynchronous copies through pointers."""
        if not types or "memdesc" in types[0].text:
            return None
        found, assumed, lost = self.sectors(one, types[0].layout())
        notes = [f"the addresses depend on data or arguments: {lost}"] if lost else []
        if len(one.operands()) > {"tt.load": 1, "tt.store": 2}.get(one.name, len(one.operands())):
            notes.append("masked: counted as if every lane were active")
        told, better = [*notes, *str(found).split("\n")[:2]], ""
        if found.excess and isinstance(registers := found.better, LinearLayout):
            better = f"{_attribute(registers)}: {found.better_sectors} sectors in place of {found.sectors}"
        cost, answers = found.excess * found.sector_bytes / LINE_BYTES, [found.to_json()]
        if one.name == _POINTED[2] and len(types) > 1:
            written = banks(types[0].layout(), types[1], _bits(types[1]), "store", target=self.target)
            told.append(f"into shared memory, by the same lanes: {str(written).partition(chr(10))[0]}")
            cost, answers = cost + written.conflicts, [*answers, written.to_json()]
        return Told(tuple(told), cost, better, tuple(assumed), tuple(answers))

    def sectors(self, one: Operation, registers: Any) -> tuple[TransactionReport, list[str], str]:
        """Count the sectors of an access; return also what was assumed, and why addresses are not known."""
        value, pointers = self.address(one), self.types.of(one.types)[0]
        bits = POINTER.search(one.types)
        size, shape, lost = max(8, int(bits[1]) if bits else _bits(pointers)) // 8, pointers.shape, ""
        if 8 * size not in PLAIN:
            raise CHECK.malformed("tensor", "must have elements of 8, 16, 32 or 64 bits", pointers.dtype)
        if isinstance(value, str) or len(value.strides) != len(shape):
            lost = value if isinstance(value, str) else "the pointers have another rank"
            fast: Any = pointers.attribute.entries.get("order") or [*range(len(shape))][::-1]
            exact = loose = [prod(shape[other] for other in fast[: fast.index(dim)]) for dim in range(len(shape))]
            align, grain, first = BASE_ALIGN_BYTES, BASE_ALIGN_BYTES, 0
            assumed = [f"dimension {fast[0]} is contiguous, rows lie densely, the first element is aligned"]
        else:
            exact, loose, assumed = _strides(value.strides, shape, size)
            assumed, align = [*value.assumed, *assumed], gcd(value.base.factor, BASE_ALIGN_BYTES)
            grain = gcd(value.base.divisor, BASE_ALIGN_BYTES)
            first = value.base.rest % grain
            if first % size:
                raise CHECK.malformed("tensor", f"must begin at a multiple of its elements' {size} bytes", first)
        known, kind = Tensor(shape, tuple(exact), PLAIN[8 * size], align), one.name.removeprefix("tt.")
        kind = kind if kind == "store" else "load"
        access, _ = global_moves(placed(asked := Asked(registers, known, kind, self.target)), asked)
        name = access.name
        if one.name == _POINTED[2] and lookup(self.target).vendor == "nvidia" and access.bytes in (4, 8, 16):
            name = f"cp.async.{access.bytes}"
        if grain % access.line_bytes:
            place = f"{first} bytes behind a multiple" if first else "at a multiple"
            stated_as = f"{first} modulo {grain}" if first else f"a multiple of {grain}"
            assumed.append(f"the first element is {place} of {access.line_bytes} bytes; known: {stated_as}")
        there = Tensor(shape, tuple(loose), PLAIN[8 * size])
        return report_of(Asked(registers, there, name, self.target, first=first // size)), assumed, lost

    def shared(self, one: Operation, types: TensorTypes) -> Told | None:
        """Loads and stores of registers, and allocations with their bytes."""
        memory = next((entry for entry in types if "memdesc" in entry.text), None)
        if memory is None:
            return None
        bytes_ = prod(memory.shape) * _bits(memory) // 8
        told = [f"{bytes_} bytes of shared memory"] if one.name == "ttg.local_alloc" else []
        registers = next((entry for entry in types if "memdesc" not in entry.text), None)
        if registers is None:
            return Told(tuple(told))
        found, better = self.turns(one, registers.layout()), ""
        told.append(str(found).partition("\n")[0])
        if not found.conflict_free:
            told += found.why.split("\n")[2:3]
            better = f"shared layout {_attribute(found.cure)}, if its other users take it" if found.cure else ""
        return Told(tuple(told), float(found.conflicts), better, (), (found.to_json(),))

    def turns(self, one: Operation, registers: Any) -> BankReport:
        """Count the turns by ordinary instructions, or by matrices of 16-bit elements where those take fewer."""
        memory = next(entry for entry in self.types.of(one.types) if "memdesc" in entry.text)
        tile: Any = memory
        begins = self.begins(one)
        if begins is not None and len(begins) == len(memory.shape) == len(memory.layout_shape):
            whole = offsets(layout_of(memory.layout(), memory.layout_shape, _bits(memory) // 8), memory.layout_shape)
            tile = whole[tuple(slice(at, at + size) for at, size in zip(begins, memory.shape, strict=True))]
        target, verb = lookup(self.target), "load" if one.name == "ttg.local_load" else "store"
        found = banks(registers, tile, _bits(memory), verb, target=self.target)
        matrix = {"load": "ldmatrix", "store": "stmatrix"}[verb]
        capable = target.compute_capability is not None and (verb == "load" or target.compute_capability >= (9, 0))
        for kind in (matrix, f"{matrix}.trans") if capable and _bits(memory) == 16 else ():
            try:
                other = banks(registers, tile, 16, kind, target=self.target)
            except BudgetError:
                raise
            except LayoutError:  # the registers are not its fragments
                continue
            found = min(found, other, key=lambda report: (report.turns, report.accesses))
        return found

    def tma(self, one: Operation, types: TensorTypes) -> Told | None:
        """Copies by a tensor map: box and swizzle, or why none carries the tile."""
        memory = next((entry for entry in reversed(types) if "memdesc" in entry.text), None)
        consumer = "tma.store" if one.name == _TMA[1] else "tma"
        return None if memory is None else self.carried(memory, consumer, memory)

    def carried(self, layout: Any, consumer: str, entry: TensorType) -> Told:
        """Return whether an instruction carries a tile."""
        found = admissible(layout, consumer, self.target, stated(entry).dtype)
        answer = {"consumer": consumer, "admitted": None if isinstance(found, Unknown) else bool(found)}
        if isinstance(found, Admitted):
            lines = [*str(found).split("\n")[1:], ""]
            return Told((f"{consumer} carries it: {lines[0].replace('admissible', '').strip()}",), answers=(answer,))
        if isinstance(found, Unknown):
            return Told((f"{consumer} is not decided: {found.reason}",), answers=(answer,))
        repair = next((str(each) for each in found.repairs[:1]), "")
        told = f"{consumer} does not carry it: {found.reasons[0]}"
        return Told((told,), better=repair, answers=(answer | {"rules": list(found.rules)},))

    # matrix instructions and registers

    def product(self, one: Operation, types: TensorTypes) -> Told | None:
        """The operands of matrix instructions."""
        told = []
        for side, entry in zip("AB", types, strict=False):
            if "tensor_memory" in entry.attribute.kind:
                told.append(Told((f"{side} is in tensor memory",)))
            elif "memdesc" in entry.text:
                layout = linear(entry.layout(), "types")
                layout = _turned(layout, (1, 0)) if side == "B" else layout  # Triton writes K x N
                told.append(self.carried(layout, f"{'tcgen05' if 'gen5' in one.name else 'wgmma'}.{side}", entry))
            elif one.name == "ttng.warp_group_dot":
                told.append(self.carried(entry, f"wgmma.{side}.registers", entry))
            else:
                facts = list(fragments(entry.layout(), stated(entry).dtype or "f16", self.target))
                said_of = facts[0].lines[0] if facts else f"not decided for {self.target}"
                told.append(Told((f"{side}: {said_of}",), answers=tuple([fact.value for fact in facts])))
        better = "; ".join([each.better for each in told if each.better])
        lines = tuple([line for each in told for line in each.lines])
        answers = tuple([answer for each in told for answer in each.answers])
        return Told(lines, 0.0, better, (), answers) if told else None

    def convert(self, one: Operation, types: TensorTypes) -> Told | None:
        """Conversions; a transposition or reshape is one if the elements do not lie where its result wants them."""
        if len(types) != 2:
            return None
        source, destination = (linear(entry.layout(), "types") for entry in types)
        if one.name == "tt.trans":
            order = re.search(r"order\s*=\s*array<i32:([\d, ]{1,99})>", one.head)
            axes = tuple([int(part) for part in re.findall(r"\d+", order[1])]) if order else (1, 0)
            source = _turned(source, axes)
        elif one.name == "tt.reshape":
            source, destination = (_row_major(layout) for layout in (source, destination))
        key = (source, destination, _bits(types[0]))
        plan = self.plans[key] = self.plans.get(key) or conversion(*key, self.target)
        if isinstance(plan, Unknown):
            return Told((f"not decided: {plan.reason}",))
        told = f"{plan.mechanism}: {plan.cost}"
        if plan.mechanism == "shared":
            told += f", {plan.smem_bytes} bytes of shared memory in {plan.rounds} pass{'es' * (plan.rounds != 1)}"
        moves = one.name == "ttg.convert_layout" and plan.cost.cycles
        notes, better = self.elsewhere(one, types) if moves else ([], "")
        notes += [plan.excess] if plan.excess else []
        return Told((told, *notes), float(plan.cost.cycles), better, (), (plan.to_json(),))

    def elsewhere(self, one: Operation, types: TensorTypes) -> tuple[list[str], str]:
        """Return what fixes the operand's layout, and what loads or stores without the conversion would cost."""
        notes, found = list[str](), list[str]()
        maker, taker = self.producer(one), self.consumer(one)
        if maker is not None and maker.name in _FIXED:
            notes.append(f"line {maker.line} ({maker.name}) leaves the operand where its instruction does")
        loads, stores = ("tt.load", "ttg.local_load"), ("tt.store", "ttg.local_store", "ttg.local_alloc")
        for other, names, wanted in ((maker, loads, types[1]), (taker, stores, types[0])):
            if other is None or other.name not in names:
                continue
            try:
                before, after = (self.counted(other, wanted if turn else None) for turn in (0, 1))
            except BudgetError:
                raise
            except LayoutError:  # it cannot move this layout
                continue
            verb = "loads into" if names is loads else "stores from"
            layout = wanted.text.partition(", ")[2].removesuffix(">")
            found.append(f"free if line {other.line} ({other.name}) {verb} {layout}: {after} in place of {before}")
        return notes, "; ".join(found)

    def counted(self, one: Operation, wanted: TensorType | None) -> str:
        """Return what a load or store costs with other registers, or with its own."""
        types = self.types.of(one.types)
        own = wanted or next((entry for entry in types if "memdesc" not in entry.text), None)
        if own is None or len(types) < 1 + (one.name in _SHARED):
            raise CHECK.malformed("types", "must be those of registers", one.types)
        if one.name in _SHARED:
            return f"{self.turns(one, own.layout()).turns} bank turns"
        found, assumed, _ = self.sectors(one, own.layout())
        return f"{found.sectors} sectors{' (assumed there)' if assumed and wanted else ''}"

    def producer(self, one: Operation) -> Operation | None:
        """Return the operation that makes the operand for it alone, behind elementwise ones of it and constants."""
        for _ in range(CHAIN):
            made = {name: self.made.get(name) for name in one.operands()}
            names = [n for n, by in made.items() if by is None or by.name not in ("arith.constant", "tt.splat")]
            maker = made[names[0]] if len(names) == 1 else None
            if maker is None or (maker.name not in _FIXED and len(self.users[names[0]]) > 1):
                return None
            if not _ELEMENTWISE.match(maker.name):
                return maker
            one = maker
        return None

    def consumer(self, one: Operation) -> Operation | None:
        """Return the only operation that uses the result, behind elementwise ones with no other operand."""
        for _ in range(CHAIN):
            known = len(one.results) == 1 and one.results[0] in self.made
            users = self.users.get(one.results[0], []) if known else []
            if len(users) != 1 or not _ELEMENTWISE.match(users[0].name) or len(users[0].operands()) != 1:
                return users[0] if len(users) == 1 else None
            one = users[0]
        return None

    def gather(self, one: Operation, types: TensorTypes) -> Told | None:
        """Gathers along an axis."""
        axis = one.attribute("axis")
        if len(types) < 2 or axis is None:
            return None
        plan = gather(types[0].layout(), types[1].layout(), axis, _bits(types[0]), self.target)
        if isinstance(plan, Unknown):
            return Told((f"not decided: {plan.reason}",))
        return Told((f"{plan.mechanism}: {plan.cost}",), float(plan.cost.cycles), "", (), (plan.to_json(),))

    def reduce(self, one: Operation, types: TensorTypes) -> Told | None:
        """Reductions along an axis: the values that one thread, other lanes and other warps have."""
        axis = one.attribute("axis")
        if axis is None or not types or not 0 <= axis < len(types[0].shape):
            return None
        layout, counts = linear(types[0].layout(), "types"), dict[str, int]()
        place = list(layout.out_dims).index(f"dim{axis}")
        for part, vectors in layout.bases.items():
            along = [vector for vector in vectors if vector[place]]
            if any(sum(map(bool, vector)) > 1 for vector in along):
                return Told((f"places along dimension {axis} also move along others: not counted",))
            counts[part] = 1 << len(along)
        lanes, warps = counts.get("lane", 1), counts.get("warp", 1)
        told = f"along dimension {axis}: {counts.get('register', 1)} values in a thread"
        told += f", then {lanes.bit_length() - 1} shuffles over {lanes} lanes" if lanes > 1 else ", no shuffle"
        return Told((told + (f", then {warps} warps through shared memory" if warps > 1 else ""),))


def _with_loops(one: Operation, loops: int) -> Iterator[tuple[Operation, int]]:
    """Yield all operations inside one, with the number of loops around each."""
    for region in one.regions:
        for inner in region.operations:
            yield inner, loops
            if inner.name not in ("tt.reduce", "tt.scan"):
                yield from _with_loops(inner, loops + (inner.name in ("scf.for", "scf.while")))


def _defined(one: Operation) -> Iterator[str]:
    """Yield the names that an operation and the blocks of its regions define."""
    yield from one.results
    for region in one.regions:
        yield from {name for name, _ in region.arguments} | set(re.findall(r"(%[\w$.-]+) =", region.header))


def _strides(strides: tuple[Number, ...], shape: tuple[int, ...], size: int) -> tuple[list[int], list[int], list[str]]:
    """Return element strides as multiples of what is known, others of whole lines, and what is assumed."""
    exact, loose, assumed = list[int](), list[int](), list[str]()
    known = [(stride.value, extent) for stride, extent in zip(strides, shape, strict=True) if stride.value is not None]
    span = sum(abs(value) * (extent - 1) for value, extent in known) + size
    for stride, extent in zip(strides, shape, strict=True):
        if stride.value is not None:
            if stride.value < 0 or stride.value % size:
                rule = f"must be multiples of the element's {size} bytes, and not negative"
                raise CHECK.malformed("strides", rule, stride.value)
            exact.append(stride.value // size)
            loose.append(stride.value // size)
            if not stride.value and extent > 1 and (once := "registers with one address load once") not in assumed:
                assumed.append(once)
            continue
        least, whole = stride.factor, lcm(stride.factor, LINE_BYTES)
        rows = -(-span // least)
        exact.append(least * (rows + 1 - rows % 2) // size)
        loose.append(whole * -(-span // whole) // size)
        apart = f"rows do not overlap and lie a multiple of {LINE_BYTES} bytes apart"
        assumed.append(f"{' * '.join(sorted(stride.names)) or 'a stride'}: {apart}; known: {least} bytes")
        span += max(exact[-1], loose[-1]) * size * (extent - 1)
    return exact, loose, assumed


def _bits(entry: TensorType) -> int:
    return stated(entry).bits or 16


def _turned(layout: LinearLayout, axes: tuple[int, ...]) -> LinearLayout:
    """Return the layout of the transposed tensor, whose dimension d is dimension axes[d] of the given one."""
    names = [f"dim{axis}" for axis in axes]
    return rename_outs(transpose_outs(layout, names), {name: f"dim{place}" for place, name in enumerate(names)})


def _row_major(layout: LinearLayout) -> LinearLayout:
    """Return a register layout on the elements in row-major order."""
    return flatten_outs(transpose_outs(layout, sorted(layout.out_dims, key=lambda name: -int(name[3:]))), "dim0")


def _attribute(layout: Any) -> str:
    """Return a layout as Triton writes it, if it has a name for it."""
    if isinstance(layout, LinearLayout) and "register" in layout.in_dims and "block" not in layout.in_dims:
        layout = LinearLayout((*layout.in_axes, ("block", 0)), layout.out_axes, layout.columns, layout.constant)
    try:
        return to_attribute(layout) if isinstance(layout, LinearLayout) else str(layout)
    except LayoutError:
        return str(layout)

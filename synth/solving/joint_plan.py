"""One shared-memory layout for a copy by TMA, the instructions that read it and the banks, with what bounds it.

Main definitions: ``joint``, ``JointPlan``.

Main statements: layouts are compared by TMA issues, then turns of the banks. ``optimal`` says that no layout of the
space is better, with ``proof`` naming why: ``"bound"``, no layout at all is (each copy in one issue, each access in as
many turns as its words need); ``"search and z3"``, both engines have refused every cheaper order of the space. The
space: orders of the tile's digits with chunks of 16 bytes behind a swizzle of the target (``space``), with threads as
the writers also XORs of other widths and rows apart by a padding of up to 128 bytes; maps and issues are those of the
planner's class. What is handed out has been planned and counted as a whole, never by the model alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from layoutalg.cute import ComposedLayout, CuteLayout
from layoutalg.f2 import LinearLayout
from layoutalg.ground import clock
from layoutalg.ground.errors import (
    BudgetError,
    Diagnostic,
    InfeasibleError,
    LayoutError,
    MalformedError,
    RepresentabilityError,
)
from layoutalg.ground.limits import PLAN_SECONDS
from layoutalg.ground.picture import Shown
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.admission import Admitted
from layoutalg.proofs.certify.banks import bank_turns
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.plans import plan as certified_plan
from layoutalg.proofs.dtypes import ElementType, element_type
from layoutalg.proofs.tensor import Tensor, tensor_of
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.synth.admission import wgmma
from layoutalg.synth.admission.request import request_of
from layoutalg.synth.solving.accesses import CHECK, Access, accesses
from layoutalg.synth.solving.conditions import Case, Cost, Question, operand_rules
from layoutalg.synth.solving.engines import Found, agreed
from layoutalg.synth.solving.space import SWIZZLES, Box, IntArray, Xor, padded
from layoutalg.synth.tensormap import InadmissibleError, synthesize_tensormap
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import limits

SCHEMA = "layoutalg/joint/1"
COPIES = ("tma", "tma.store")
PITCH = 1 << 14
"""Elements between neighbours along the dimension of a tile that is not contiguous, where no tensor is given."""
TRIES = 12
"""Orders of the engines that are planned before the search is given up."""
_LINE_BITS = 7


@dataclass(frozen=True, slots=True)
class JointPlan(Shown):
    """A layout that serves every consumer, and how far from the best it can be.

    Args:
        smem: The layout: tile coordinates, outermost first, to element offsets.
        consumers: The consumers' names.
        plans: Per consumer what carries or counts it: a TensorMap plan, ``wgmma`` descriptors, the turns of an access.
        issues: TMA issues of all copies.
        turns: Turns of the banks of all accesses, for the whole tile.
        bytes: Bytes of shared memory.
        lower_bound: (issues, turns) that no layout of the space goes below.
        proof: ``"bound"``, ``"search and z3"``, ``"enumeration"``, or why the lower bound is not met.
        space: The space, in words.
        engine: What found the layout: ``"algebra"``, ``"search"``, ``"z3"``, ``"padding"``.
        target: Architecture.
        tables: Byte address of each lane of each access, by consumer.
    """

    smem: CuteLayout | ComposedLayout
    consumers: tuple[str, ...]
    plans: tuple[Any, ...] = field(hash=False)
    issues: int
    turns: int
    bytes: int
    lower_bound: tuple[int, int]
    proof: str
    space: str
    engine: str
    target: str
    tables: Mapping[str, IntArray] = field(default_factory=dict, repr=False, compare=False)

    @property
    def optimal(self) -> bool:
        """Whether no layout of the space has fewer issues, or as many and fewer turns."""
        return (self.issues, self.turns) == self.lower_bound

    @property
    def gap(self) -> tuple[int, int]:
        """Issues and turns above the lower bound."""
        return self.issues - self.lower_bound[0], self.turns - self.lower_bound[1]

    @property
    def why(self) -> str:
        """What the layout costs and why nothing better is known, in words."""
        costs = f"{self.issues} TMA issues, {self.turns} turns, {self.bytes} bytes"
        if not self.optimal:
            issues, turns = self.lower_bound
            return f"{costs}; at least {issues} issues and {turns} turns are needed, {self.proof}"
        reason = "no layout needs less" if self.proof == "bound" else f"none of {self.space} needs less ({self.proof})"
        return f"{costs}; {reason}"

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """What the stand-alone checker proves: each map, each operand, the turns of each access where it counts them.

        Raises: AdmissibilityError: LA430. BudgetError: LA431.
        """
        found = []
        for name, plan in zip(self.consumers, self.plans, strict=True):
            if isinstance(plan, TensorMapPlan):
                found.append(certified_plan(plan))
            elif isinstance(plan, Admitted):
                found.append(plan.certificate)
            elif name in self.tables:
                try:
                    found.append(bank_turns(self.target, name, self.tables[name]))
                except (RepresentabilityError, MalformedError):
                    continue  # an instruction that the checker has no measured rule for
        return tuple(found)

    def __str__(self) -> str:
        lines = [f"{self.smem}", f"  {self.why}"]
        for name, plan in zip(self.consumers, self.plans, strict=True):
            if isinstance(plan, TensorMapPlan):
                told = f"{len(plan.issues)} issues of box {list(plan.tensor_map.box)}, {plan.tensor_map.swizzle}"
            elif isinstance(plan, Admitted):
                told = str(plan.descriptor).splitlines()[0]
            else:
                told = str(plan)
            lines.append(f"  {name:<12} {told}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """Return the plan as JSON-ready data."""
        plans = {name: plan.to_json() for name, plan in zip(self.consumers, self.plans, strict=True)}
        return {
            "schema": SCHEMA, "smem": str(self.smem), "target": self.target, "plans": plans, "issues": self.issues,
            "turns": self.turns, "bytes": self.bytes, "lower_bound": list(self.lower_bound), "optimal": self.optimal,
            "proof": self.proof, "space": self.space, "engine": self.engine,
        }  # fmt: skip


@dataclass(frozen=True)
class _Asked:
    """What is asked, read."""

    tensor: Tensor
    tile: tuple[int, ...]
    places: tuple[int, int]
    box: Box
    dtype: ElementType
    target: str
    copies: tuple[str, ...]
    operands: tuple[str, ...]
    moves: tuple[tuple[str, dict[int, Access | str]], ...]
    names: tuple[str, ...]
    options: dict[str, Any]


@dataclass
class _Best:
    """The best layout so far, and what was said of the others."""

    plan: JointPlan | None = None
    reasons: dict[str, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)

    @property
    def cost(self) -> Cost | None:
        return None if self.plan is None else (self.plan.issues, self.plan.turns)


def joint(
    tile: Sequence[int],
    dtype: object = "bf16",
    consumers: Sequence[object] = ("wgmma.A",),
    target: str = "sm_90a",
    *,
    tensor: object = None,
    fill: str = "tma",
    budget_seconds: float = PLAN_SECONDS,
    **options: Any,
) -> JointPlan:
    """Return one shared layout of a tile that serves a copy and all its readers, with a proof that none is better.

    Mathematically: minimise (issues, turns) in lexicographic order over the layouts that the TMA tile reaches and every
    consumer accepts.

    Args:
        tile: Tile extents in elements, outermost dimension first; at most two of them above 1.
        dtype: Element type.
        consumers: ``"wgmma.A"``, ``"wgmma.B"``, ``"ldmatrix.x4.trans"``, ``"stmatrix.x4"``, ``"ld.shared.v4.b32"``,
            ``"st.shared.b32"``, ``"tma.store"``; or a pair of an instruction and the linear layout of the registers
            that it moves: (register, lane, warp) to the two tile coordinates.
        target: Architecture.
        tensor: The tensor; None for a large row-major one.
        fill: ``"tma"``: a TensorMap fills the tile; ``"threads"``: stores of threads, so any XOR and padding will do.
        budget_seconds: Seconds of wall time for everything.
        options: Those of ``TensorMapProblem.of``.

    Raises: MalformedError: LA870, LA375, LA372. InfeasibleError: LA871. BudgetError: LA001, LA872.

    Example:
        >>> plan = joint((128, 64), "bf16", ["wgmma.A", "ld.shared.v4.b32"])
        >>> print(plan.smem, plan.optimal, plan.proof)
        Sw<3,3,3> o 0 o (128,64):(64,1) True bound
        >>> plan = joint((64, 64), "f32", ["ld.shared.b32", "ldmatrix.x4"])
        >>> plan.issues, plan.turns, plan.optimal
        (1, 256, True)

    Source: f2 conflict ranks (arXiv 2505.23819, section 5.4); PTX ISA, matrix descriptors and tensor maps.
    """
    asked = _read(tile, dtype, consumers, target, tensor, fill, options)
    given = clock.checked_seconds(budget_seconds, "budget_seconds")
    best = _Best()
    with clock.within(given):
        questions = list(_questions(asked, best))
        bound = _bound(asked)
        for question, found in _canonical(questions):
            _tried(asked, question, found, "algebra", best)
            cost = best.cost
            if cost is not None and (cost == bound or cost <= (question.cost(found.digits, found.case) or bound)):
                break
        if best.plan is not None and best.cost == bound:
            return _told(best.plan, bound, "bound")
        lower, proof = _improved(asked, questions, best, bound)
        if not asked.copies or best.plan is None:
            _padded(asked, best)
    if best.plan is None:
        raise _none(asked, best, proof)
    reached = best.plan.issues, best.plan.turns
    if reached == bound:
        return _told(best.plan, bound, "bound")
    if lower is None or reached < lower:  # a padding is below what the orders reach, and all paddings were counted
        lower = reached if proof == "search and z3" else bound
    return _told(best.plan, lower, proof)


def _told(plan: JointPlan, lower: Cost, proof: str) -> JointPlan:
    return replace(plan, lower_bound=lower, proof=proof)


def _read(
    tile: Sequence[int], dtype: object, consumers: Sequence[object], target: str, tensor: object, fill: str,
    options: dict[str, Any],
) -> _Asked:  # fmt: skip
    kind = element_type(dtype)
    extents = CHECK.vector(tile, "tile")
    wide = [place for place, extent in enumerate(extents) if extent > 1]
    if len(extents) < 2 or len(wide) > 2 or min(extents) < 1:
        raise CHECK.malformed("tile", "must be a matrix: two dimensions, or others of extent 1", extents)
    spare = [place for place in range(len(extents) - 1, -1, -1) if place not in wide]
    first, second = sorted((*wide, *spare[: 2 - len(wide)]))
    size = kind.bits // 8
    if kind.bits % 8 or size & (size - 1) or not 1 <= size <= 16:
        raise CHECK.malformed("dtype", "must have 1, 2, 4, 8 or 16 bytes", dtype)
    box = Box((extents[first], extents[second]), size)
    if box.bytes > limits.MAX_SMEM_BYTES:
        rule = f"must fit the {limits.MAX_SMEM_BYTES} bytes of shared memory of a block"
        raise CHECK.malformed("tile", rule, f"{box.bytes} bytes")
    if fill not in ("tma", "threads"):
        raise CHECK.malformed("fill", "must be tma or threads", fill)
    if isinstance(consumers, str) or not isinstance(consumers, Sequence) or not consumers:
        raise CHECK.malformed("consumers", "must be a list of at least one consumer", consumers)
    if target not in hardware.ARCHITECTURES:
        raise CHECK.malformed("target", f"must be one of {', '.join(hardware.ARCHITECTURES)}", target)
    copies = ["tma"] if fill == "tma" or "tma" in consumers else []
    operands, moves = [], []
    for each in consumers:
        name, registers = (each[0], each[1]) if isinstance(each, tuple | list) and len(each) == 2 else (each, None)
        if not isinstance(name, str) or (registers is not None and not isinstance(registers, LinearLayout)):
            rule = "must be names of instructions, or (name, linear layout of registers)"
            raise CHECK.malformed("consumers", rule, each)
        if name in COPIES:
            copies += [name] if name not in copies else []
        elif name in ("wgmma.A", "wgmma.B"):
            operands.append(name)
        else:
            moves.append((name, accesses(name, box, registers)))
    if tensor is None:
        strides = tuple(1 if place == second else PITCH << 2 * place for place in range(len(extents)))
        source = (
            Tensor(tuple(8 * extent for extent in extents), strides, kind.tensormap or kind.name)
            if copies
            else (Tensor(extents, None, "u8"))
        )
    else:
        source = tensor_of(tensor)
        if len(source.shape) != len(extents):
            raise CHECK.malformed("tensor", f"must have the {len(extents)} dimensions of the tile", len(source.shape))
    names = (*copies, *operands, *(name for name, _ in moves))
    return _Asked(
        source,
        extents,
        (first, second),
        box,
        kind,
        target,
        tuple(copies),
        tuple(operands),
        tuple(moves),
        names,
        options,
    )


def _swizzles(asked: _Asked) -> Iterator[tuple[str, Xor]]:
    """Yield the swizzles of the space, the widest first."""
    for name in reversed(tuple(SWIZZLES)):
        bits, base, shift = SWIZZLES[name]
        exists = sum(asked.box.bits) + asked.box.low > base + shift
        if hardware.swizzle_supported(name, asked.target) and (exists or not bits):
            yield name, SWIZZLES[name]
    if not asked.copies and not asked.operands:
        for inner in (0, 1):
            row = asked.box.extents[inner] * asked.box.element_bytes
            if not row & row - 1:
                for base in (4, 3, 2):
                    bits = min(_LINE_BITS, row.bit_length() - 1) - base
                    if bits > 0 and 1 << base >= asked.box.element_bytes:
                        xor = bits, base, max(row.bit_length() - 1, _LINE_BITS) - base
                        if xor not in SWIZZLES.values() and xor[2] >= bits:
                            yield f"Sw<{','.join(map(str, xor))},byte>", xor


def _questions(asked: _Asked, best: _Best) -> Iterator[Question]:
    """Yield what is left of the space, by the dimension that chunks lie along."""
    for inner in (1, 0):
        side = ("columns", "rows")[inner]
        if not asked.box.has(inner):
            best.reasons[f"chunks along {side}"] = (
                f"{asked.box.extents[inner]} elements are no whole chunks of 16 bytes"
            )
            continue
        held = [(name, by[inner]) for name, by in asked.moves]
        wrong = next(((name, found) for name, found in held if isinstance(found, str)), None)
        if asked.copies and asked.tensor.strides[asked.places[inner]] != 1:
            wrong = asked.copies[0], "the inner dimension of a map has stride 1, and this one has not"
        if wrong is not None:
            best.reasons[f"{wrong[0]}, chunks along {side}"] = wrong[1]
            continue
        found = [access for _, access in held if isinstance(access, Access)]
        cases = []
        for name, xor in _swizzles(asked):
            case = _case(asked, inner, name, xor, found)
            if isinstance(case, Case):
                cases.append(case)
            else:
                best.reasons.setdefault(case[0], f"{case[1]} ({name})")
        counted = tuple(access for access in found if access.terms is not None)
        fixed = sum(access.least for access in found if access.terms is None)
        strides = asked.tensor.strides[asked.places[0]], asked.tensor.strides[asked.places[1]]
        yield Question(asked.box, inner, tuple(cases), counted, fixed, len(asked.copies), strides)


def _case(asked: _Asked, inner: int, name: str, xor: Xor, found: list[Access]) -> Case | tuple[str, str]:
    """Return the conditions of all consumers behind one swizzle, or the consumer that has none and why."""
    bits, base, _ = xor
    for access in found:
        if bits and access.vector > 1 and access.bits // 8 > 1 << base:
            return access.name, f"the swizzle parts its {access.bits // 8} bytes"
    span = bits + base if bits else 0
    at: dict[Any, int] = {}
    after: list[Any] = []
    for operand in asked.operands:
        if name not in ("NONE", "32B", "64B", "128B"):
            return operand, "wgmma knows no such swizzle"
        rules = operand_rules(operand[-1], asked.box, inner, span)
        if isinstance(rules, str):
            return operand, rules
        clash = next((digit for digit, place in rules[0].items() if at.get(digit, place) != place), None)
        at |= rules[0]
        if clash is not None or len(set(at.values())) < len(at):
            return operand, "another operand needs the same digits elsewhere"
        after += [pair for pair in rules[1] if pair not in after]
    top = sum(asked.box.bits) + asked.box.low
    if any(place >= top for place in at.values()):
        return asked.operands[0], "the tile is smaller than the span of the swizzle by 8 rows"
    return Case(name, xor, at, tuple(after))


def _bound(asked: _Asked) -> Cost:
    """Return (issues, turns) that no layout goes below."""
    least = 0
    for _, by in asked.moves:
        least += min((access.least for access in by.values() if isinstance(access, Access)), default=0)
    return len(asked.copies), least


def _canonical(questions: list[Question]) -> list[tuple[Question, Found]]:
    """Return the plain orders, the cheapest by the model first: whole rows, rows of one span, rows of one chunk."""
    found: list[tuple[Any, Question, Found]] = []
    for question in questions:
        inner = [digit for digit in question.free if digit[0] == question.inner]
        across = [digit for digit in question.free if digit[0] != question.inner]
        for case in question.cases:
            cuts = {len(inner), 0, min(len(inner), max(0, case.span - 4))}
            for cut in sorted(cuts, reverse=True):
                digits = (*inner[:cut], *across, *inner[cut:])
                cost = question.cost(digits, case)
                if cost is not None:
                    found.append(
                        ((cost, -case.span if question.copies else case.span, -cut), question, Found(digits, case))
                    )
    found.sort(key=lambda entry: entry[0])
    return [(question, order) for _, question, order in found]


def _tried(asked: _Asked, question: Question, found: Found, engine: str, best: _Best) -> Cost | None:
    """Plan and count an order as a whole; keep it where it is the best. Return what it costs, None where refused."""
    order = question.order(found.digits, found.case)
    return _kept(asked, order.layout(asked.places, len(asked.tile)), order.table, question.inner, engine, best)


def _kept(
    asked: _Asked, smem: CuteLayout | ComposedLayout, table: IntArray, inner: int, engine: str, best: _Best
) -> Cost | None:
    clock.check("the search for a joint layout")
    plans: list[Any] = []
    tables: dict[str, IntArray] = {}
    turns = 0
    for name, by in asked.moves:
        access = by[inner]
        found = access if isinstance(access, str) else access.moved(table)
        if isinstance(found, str) or isinstance(access, str):
            best.reasons.setdefault(name, str(found))
            return None
        plans.append(found)
        tables[name] = np.ascontiguousarray(table[access.rows, access.columns]).reshape(-1)
        turns += found.turns
    if best.cost is not None and (len(asked.copies), turns) >= best.cost:
        return len(asked.copies), turns
    operands: list[Any] = []
    matrix = smem if len(asked.tile) == 2 else None
    for name in asked.operands:
        held = matrix if matrix is not None else table // asked.box.element_bytes
        request = request_of(held, name, asked.target, asked.dtype.name, asked.box.extents, 1024, {})
        admitted = wgmma.find(request, repair=False)
        if not isinstance(admitted, Admitted):
            if isinstance(admitted, Unknown):
                best.unknown.append(f"{name}: {admitted.reason}")
            else:
                best.reasons.setdefault(name, admitted.reasons[0])
            return None
        operands.append(admitted)
    maps: list[Any] = []
    for name in asked.copies:
        plan = _copied(asked, smem, name)
        if isinstance(plan, str):
            best.reasons.setdefault(name, plan)
            return None
        maps.append(plan)
    cost = sum(len(plan.issues) for plan in maps), turns
    size = max([int(table.max()) + asked.box.element_bytes, *(plan.smem_bytes for plan in maps)])
    if best.plan is None or (*cost, size) < (best.plan.issues, best.plan.turns, best.plan.bytes):
        best.plan = JointPlan(
            smem, asked.names, (*maps, *operands, *plans), *cost, size, (0, 0), "", _space(asked), engine, asked.target,
            tables,
        )  # fmt: skip
    return cost


def _copied(asked: _Asked, smem: object, name: str) -> TensorMapPlan | str:
    try:
        problem = TensorMapProblem.of(
            asked.tensor, asked.tile, smem, arch=asked.target, direction="store" if name.endswith("store") else "load",
            **asked.options,
        )  # fmt: skip
        return synthesize_tensormap(problem, repair=False, budget_seconds=clock.left(PLAN_SECONDS))
    except InadmissibleError as error:
        return str(error.violations[0]) if error.violations else error.diagnostic.what
    except RepresentabilityError as error:
        return error.diagnostic.because or error.diagnostic.what


def _improved(asked: _Asked, questions: list[Question], best: _Best, bound: Cost) -> tuple[Cost | None, str]:
    """Ask the engines for anything cheaper; return the cost that no order of the space goes below, and who says so."""
    lower: Cost | None = None
    proofs: list[str] = []
    for question in questions:
        passed: tuple[Found, ...] = ()
        while True:
            try:
                found, said = agreed(question, best.cost, passed)
            except BudgetError as error:
                proofs.append(f"not decided: {error.diagnostic.because}")
                lower = bound
                break
            if found is None:
                proofs.append("search and z3" if len(said) == 2 else f"only {said[0]} was finished")
                lower = lower if len(said) == 2 else bound
                break
            seen = question.cost(found.digits, found.case)
            cost = _tried(asked, question, found, "solver", best)
            if cost is None or cost != seen:
                passed = (*passed, found)
                if len(passed) > TRIES:
                    proofs.append(f"{TRIES} orders of the model's cost {seen} were refused")
                    lower = min(lower or bound, bound)
                    break
            if best.cost == bound:
                return bound, "bound"
    proof = next((each for each in proofs if each != "search and z3"), "search and z3")
    if lower is None:
        lower = best.cost
    return lower, proof


def _padded(asked: _Asked, best: _Best) -> None:
    """Count every padding of the rows, and of the columns, up to 128 bytes; the banks repeat there."""
    size = asked.box.element_bytes
    step = max(size, max((access.bits // 8 for _, by in asked.moves for access in by.values()
                          if isinstance(access, Access)), default=size)) if not asked.copies else 16  # fmt: skip
    for inner in (1, 0):
        if any(isinstance(by[inner], str) for _, by in asked.moves):
            continue
        for pad in range(step, 129, step):
            layout = padded(asked.box, inner, pad)
            table = np.asarray(layout.table(), dtype=np.int64).reshape(asked.box.extents, order="F") * size
            if int(table.max()) + size <= limits.MAX_SMEM_BYTES:
                smem = layout
                if len(asked.tile) > 2:
                    stride = [0] * len(asked.tile)
                    stride[asked.places[inner]] = 1
                    stride[asked.places[1 - inner]] = asked.box.extents[inner] + pad // size
                    smem = CuteLayout(asked.tile, tuple(stride))
                _kept(asked, smem, table, inner, "padding", best)


def _space(asked: _Asked) -> str:
    free = sum(asked.box.bits) - asked.box.chunk
    many = sum(math.factorial(free) for inner in (0, 1) if asked.box.has(inner)) * len(list(_swizzles(asked)))
    return f"{many} orders of {free} digits and swizzles"


def _none(asked: _Asked, best: _Best, proof: str) -> LayoutError:
    what = "no shared-memory layout serves every consumer"
    where = (f"tile {list(asked.tile)} of {asked.dtype.name} for {', '.join(asked.names)} on {asked.target}",)
    reasons = "\n         ".join(f"{name}: {reason}" for name, reason in best.reasons.items())
    if best.unknown or proof != "search and z3":
        because = "; ".join(dict.fromkeys(best.unknown)) or proof
        return BudgetError(Diagnostic("LA872", "no joint layout was found, and none excluded", where, because))
    return InfeasibleError(Diagnostic("LA871", f"{what}, among {_space(asked)}", where, reasons))

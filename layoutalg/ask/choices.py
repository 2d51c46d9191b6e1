"""Choose a shared-memory layout: plan, prove and rank every candidate, and say why the others lose.

Main statements: the ranking compares, in order, out-of-bounds fill, TMA issues, bank turns, bytes of shared memory,
undocumented rules relied on, and map dimensions; ties go to the wider swizzle and the larger block. It is
deterministic. If threads fill the tile and no consumer writes it, the turns of the filling stores count: neighbouring
lanes store neighbouring vectors along the tensor's contiguous dimension, in the order they load them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Unpack

import numpy as np

from layoutalg.ask.candidates import Candidate, candidates, reach_bytes
from layoutalg.ask.consumers import CHECK, OPERANDS, STORES, Consumer, Tile, consumer_of, filled
from layoutalg.ask.global_sectors import dealt, transactions
from layoutalg.ask.whole_tiles import Served
from layoutalg.cute import ComposedLayout, CuteLayout
from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, Diagnostic, InfeasibleError, LayoutError, MalformedError
from layoutalg.ground.limits import PLAN_SECONDS
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Record
from layoutalg.notation.written import read_written
from layoutalg.proofs.tensor import Tensor, tensor_of
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.proofs.tensormap.problem import MapOptions
from layoutalg.synth.solving import joint
from layoutalg.synth.solving.joint_plan import copied
from layoutalg.synth.solving.space import matrix_of
from layoutalg.synth.wgmma import OperandPlan
from layoutalg.synth.wgmma.plan import certified
from layoutalg.targets.banks import nvidia_access
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia import wgmma
from layoutalg.targets.nvidia.swizzles import CHUNK_BYTES
from layoutalg.targets.nvidia.tensormap.checks import no_tensor_maps
from layoutalg.targets.registry import lookup
from layoutalg.targets.target_model import model_of

OPERAND_DTYPES = tuple(name for name, bits in wgmma.OPERAND_BITS.items() if bits >= 8)
"""Tensor element types that ``wgmma`` and ``tcgen05`` multiply."""
FILLS = ("tma", "threads")
JOINT_SECONDS = 2.0
"""Time limit for proving that nothing beats the first choice."""
_BEST = "no layout beats the first: none has fewer issues, or equally many and fewer turns of these accesses"
_ELSEWHERE = "layoutalg.swizzle also searches stacked XORs and all layouts linear over F2"
_WRITES = ("st.", "stmatrix", "ds_write", "store ")
"""Name prefixes of consumers that write the tile."""
_RANKED = (
    "plan(s) without out-of-bounds fill", "issue(s)", "turn(s)", "byte(s)", "documented rule(s) broken",
    "map dimension(s)",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Choice(Record, Shown, code="LA374", json="smem turns bytes why behind plan operands"):
    """A layout that serves every consumer.

    Args:
        smem: The layout: tile coordinates, outermost first, to element offsets.
        plan: The proved TensorMap plan that fills it (or stores it, if only ``tma.store`` is asked); None if threads
            fill it.
        turns: Bank turns of all consumers, and of filling by threads, for the whole tile; wgmma and TMA count none.
        bytes: Bytes of shared memory.
        why: Its merits, in words.
        behind: What the first choice does better; empty for the first.
        operands: The proved descriptors of ``wgmma`` and ``tcgen05`` consumers.
        ideal: Lower bound on the turns of these accesses under any layout.
    """

    smem: CuteLayout | ComposedLayout
    plan: TensorMapPlan | None
    turns: int
    bytes: int
    why: str
    behind: str = ""
    operands: tuple[Any, ...] = ()
    ideal: int = 0

    def __str__(self) -> str:
        return f"{self.smem}\n    {self.why}" + (f"\n    ranked lower than 1: {self.behind}" if self.behind else "")


@dataclass(frozen=True, slots=True)
class Loser(Record, Shown, code="LA374", json="smem what consumer reason"):
    """A layout that fails a consumer.

    Args:
        smem: The layout.
        what: The layout in words.
        consumer: The consumer that cannot use it.
        told: Why, or the function that finds out.
    """

    smem: CuteLayout | ComposedLayout
    what: str
    consumer: str
    told: str | Callable[[], object] = field(repr=False, compare=False)

    @property
    def reason(self) -> str:
        """Why the consumer cannot use the layout."""
        return self.told if isinstance(self.told, str) else str(self.told())

    def __str__(self) -> str:
        return f"{self.smem}\n    {self.consumer}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Suggestion(
    Record,
    Shown,
    Sequence[Choice],
    code="LA374",
    schema="layoutalg/suggestion/1",
    json="question proof choices losers",
):
    """Ranked choices, best first; a sequence of ``Choice``.

    Args:
        question: What was asked, in words.
        choices: Layouts that serve every consumer.
        losers: Layouts that do not, with the first reason.
        proof: Why no layout beats the first in issues, then turns; or how far that is open.
    """

    question: str
    choices: tuple[Choice, ...]
    losers: tuple[Loser, ...]
    proof: str = ""

    def __getitem__(self, index: Any) -> Any:
        return self.choices[index]

    def __len__(self) -> int:
        return len(self.choices)

    @property
    def best(self) -> Choice:
        """The first choice."""
        if self.choices:
            return self.choices[0]
        reasons = list(dict.fromkeys(f"{loser.consumer}: {loser.reason}" for loser in self.losers))
        because = "\n         ".join(reasons[:4])
        raise InfeasibleError(Diagnostic("LA413", "no candidate serves every consumer", (self.question,), because))

    def __str__(self) -> str:
        lines = [self.question]
        for place, choice in enumerate(self.choices[:5], 1):
            lines.append(f"{place:>2}. {choice}")
        if len(self.choices) > 5:
            lines.append(f"    {len(self.choices) - 5} more choices")
        if self.proof:
            lines.append(self.proof)
        by_reason: dict[str, list[Loser]] = {}
        for loser in self.losers:
            by_reason.setdefault(loser.consumer, []).append(loser)
        for consumer, lost in by_reason.items():
            lines.append(f"not {consumer}: {len(lost)} layouts, such as {lost[0].smem}\n    {lost[0].reason}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Question:
    tensor: Tensor
    tile: tuple[int, ...]
    target: str
    places: tuple[int, int]
    directions: tuple[str, ...]
    consumers: tuple[Consumer, ...]
    fill: int | None
    """The dimension along which threads fill the matrix; None if a copy or a consumer fills it."""
    loads: str
    """How one warp or wave loads the tile to fill it, in words; empty if it is not filled so."""
    options: MapOptions

    @property
    def size(self) -> int:
        return hardware.element_bytes(self.tensor.dtype)


def suggest(
    tensor: object,
    tile: Sequence[int],
    consumers: Sequence[object] = ("wgmma.A",),
    target: str = "sm_90a",
    *,
    fill: str = "tma",
    seconds: float = PLAN_SECONDS,
    **options: Unpack[MapOptions],
) -> Suggestion:
    """Return the shared-memory layouts that serve every consumer of a tile, proved and ranked.

    Args:
        tensor: A ``layoutalg.Tensor``, ``(shape, stride, dtype)`` or an array of another library.
        tile: Tile extents in elements, outermost dimension first; at most two of them above 1.
        consumers: ``"wgmma.A"``, ``"wgmma.B"``, ``"tcgen05.A"``, ``"ldmatrix.x4"``, ``"ldmatrix.x4.trans"``,
            ``"stmatrix.x4"``, ``"ld.shared.v4.b32"``, ``"st.shared.b32"``, ``"tma.store"``, ...; or a pair of an
            instruction and the registers it moves, as for ``layoutalg.banks``. ``ask.consumers`` says how each reads.
        target: Architecture.
        fill: ``"tma"``: a TensorMap fills the tile, and each choice carries its plan; ``"threads"``: a consumer stores
            it, or else threads do, by the widest stores along the tensor's contiguous dimension; their turns count.
        seconds: Wall time for the whole search.
        options: Those of a TensorMap problem: ``bounds``, ``oob_required``, ...

    Example:
        >>> found = suggest(((4096, 4096), None, "bf16"), (128, 64), ["wgmma.A"])
        >>> print(found.best.smem, len(found.best.plan.issues), found.best.turns)
        Sw<3,3,3> o 0 o (128,64):(64,1) 1 0
        >>> print(suggest(((512, 512), None, "f32"), (32, 32), ["ld.shared.b32"], fill="threads").best.smem)
        (32,32):(32,1)
    """
    question = _question(tensor, tile, consumers, target, fill, options)
    ranked: list[tuple[tuple[Any, ...], Choice]] = []
    losers: list[Loser] = []
    with clock.within(clock.checked_seconds(seconds, "seconds")):
        matrix = (question.tile[question.places[0]], question.tile[question.places[1]])
        for place, candidate in enumerate(candidates(matrix, question.size, target, bool(question.directions))):
            clock.check("the search for a shared layout")
            found = _judged(question, candidate)
            if isinstance(found, Loser):
                losers.append(found)
            else:
                key, choice = found
                ranked.append(((*key, place), choice))
        ranked.sort(key=lambda entry: entry[0])
        proof = _proved(question, consumers, fill, ranked)
    ranked.sort(key=lambda entry: entry[0])
    choices = [
        choice if not place else _behind(choice, ranked[0][0], key) for place, (key, choice) in enumerate(ranked)
    ]
    names = ", ".join(consumer.name for consumer in question.consumers)
    copies = [("load by TMA" if name == "load" else "store by TMA") for name in question.directions]
    copies += [] if question.fill is None else [f"filled by threads along dimension {question.fill}"]
    text = f"tile {list(question.tile)} of {question.tensor} on {target} for {names or 'nobody'}"
    return Suggestion(", ".join([text, *filter(None, [" and ".join(copies)])]), tuple(choices), tuple(losers), proof)


def _proved(
    question: _Question, consumers: Sequence[object], fill: str, ranked: list[tuple[tuple[Any, ...], Choice]]
) -> str:
    """Return why nothing beats the first choice, after adding a better one if the joint finder has one."""
    if ranked and ranked[0][0][1:3] == (len(question.directions), ranked[0][1].ideal):
        once = "one issue per copy and " if question.directions else ""
        return f"{_BEST}; it has {once}no bank conflicts"
    given, store = [_linear(each) for each in consumers], _store(question)
    if question.fill is not None and not store:
        return f"at least {ranked[0][1].ideal} turns are needed; {_ELSEWHERE}" if ranked else ""
    given += [store] if store else []
    try:
        plan = joint(
            question.tile, question.tensor.element, given, question.target, tensor=question.tensor, fill=fill,
            seconds=clock.left(JOINT_SECONDS), **question.options,
        )  # fmt: skip
    except (BudgetError, InfeasibleError, MalformedError):
        return ""
    if not ranked or (plan.issues, plan.turns) < ranked[0][0][1:3]:
        found = _weighed(question, plan.smem, "a custom digit order", 0)
        if isinstance(found, Loser):
            return ""
        ranked.append(((*found[0], len(ranked)), found[1]))
        ranked.sort(key=lambda entry: entry[0])
    first = ranked[0][0][1:3]
    if store and plan.proof != "bound":  # narrower stores may do with fewer turns
        told = f"; if filled by {store}, none of {plan.space} takes fewer than {plan.turns} ({plan.proof})"
        return f"at least {ranked[0][1].ideal} turns are needed{told if plan.optimal else ''}; {_ELSEWHERE}"
    if plan.optimal and first == plan.lower_bound:
        return f"{_BEST} among {plan.space} ({plan.proof})" if plan.proof != "bound" else _BEST
    issues, turns = plan.lower_bound
    return f"at least {issues} issues and {turns} turns are needed; {plan.proof}"


def _store(question: _Question) -> str:
    """Return the widest store with which the joint finder can fill the tile, or an empty text."""
    extent = _extents(question)[1] * question.size
    names = STORES["nvidia"] if question.fill == 1 else ()
    return next((name for name in names if extent * 8 % nvidia_access(name).bits == 0), "")


def _linear(consumer: object) -> object:
    """Return a consumer with the layout of its registers in place of their text."""
    if not isinstance(consumer, tuple | list) or len(consumer) != 2:
        return consumer
    name, registers = consumer
    return name, read_written(registers).layout


def _question(
    tensor: object, tile: Sequence[int], consumers: Sequence[object], target: str, fill: str, options: MapOptions
) -> _Question:
    if not isinstance(consumers, tuple | list) or not consumers:
        raise CHECK.malformed("consumers", "must be a list of at least one consumer", consumers)
    source = tensor_of(tensor, *(each[1] for each in consumers if isinstance(each, tuple | list) and len(each) == 2))
    extents = CHECK.vector(tile, "tile", len(source.shape), 1)
    first, second = matrix_of(CHECK, extents)
    lookup(CHECK.kind(target, str, "target"))
    CHECK.choice(fill, "fill", FILLS)
    size = hardware.element_bytes(source.dtype)
    total = int(np.prod([int(extent) for extent in extents], dtype=object)) * size
    if total > _room(target):
        rule = f"must fit the {_room(target)} bytes of shared memory of a block"
        raise CHECK.malformed("tile", rule, f"{total} bytes")
    CHECK.options(options, MapOptions.__annotations__, suggest)
    directions = ["load"] if fill == "tma" or "tma" in consumers else []
    directions += ["store"] if "tma.store" in consumers else []
    named = tuple(consumer_of(each, target) for each in consumers if each not in ("tma", "tma.store"))
    for consumer in named:
        if consumer.name in OPERANDS and source.element not in OPERAND_DTYPES:
            rule = f"must be {', '.join(OPERAND_DTYPES)} for {consumer.name}"
            raise CHECK.malformed("tensor", rule, source.element)
    stored = fill == "tma" or any(consumer.name.startswith(_WRITES) for consumer in named)
    along = 0 if source.strides[second] != 1 == source.strides[first] else 1
    filled_along = None if stored else along
    loads = "" if filled_along is None else _loads(source, extents, (first, second)[filled_along], target)
    return _Question(source, extents, target, (first, second), tuple(directions), named, filled_along, loads, options)


def _loads(tensor: Tensor, tile: tuple[int, ...], along: int, target: str) -> str:
    """Return the widest loads of the first tile with lanes along a dimension, in words; empty if there are none."""
    lanes, size = lookup(target).lanes, hardware.element_bytes(tensor.dtype)
    order = (along, *(dim for dim in range(len(tile))[::-1] if dim != along))
    registers, rest = divmod(math.prod(tile), lanes)
    for vector in [] if rest else [count for count in (16, 8, 4, 2, 1) if count * size <= 16 and not registers % count]:
        layout = dealt(tile, order, vector, lanes, 1, registers)
        try:
            found = None if layout is None else transactions(layout, tensor, target=target, tile=tile)
        except LayoutError:  # the tile exceeds the tensor inside a vector, or no document states this target's sectors
            found = None
        if found is not None:
            few = "the fewest" if found.coalesced else f"{found.ideal} would hold the bytes"
            return f"loaded by {found.accesses} {found.instruction}, {found.sectors} sectors, {few}"
    return ""


def _room(target: str) -> int:
    """Shared memory of a block in bytes."""
    limits = model_of(target).limits
    found = limits.get("shared_bytes_per_block_optin") or limits["lds_bytes_per_block"]
    return int(found.value) if isinstance(found.value, int) else 0


def _judged(question: _Question, candidate: Candidate) -> tuple[tuple[Any, ...], Choice] | Loser:
    """Return the rank and the choice, or the first consumer that cannot use the layout."""
    smem = candidate.layout(question.size, question.places, len(question.tile))
    if reach_bytes(candidate, question.size) > (room := _room(question.target)):
        return Loser(smem, str(candidate), "shared memory", f"more than {room} bytes")
    matrix = smem if len(question.tile) == 2 else candidate.layout(question.size, (0, 1), 2)
    return _weighed(question, smem, str(candidate), -_span(candidate, bool(question.directions)), matrix, candidate)


def _weighed(
    question: _Question,
    smem: CuteLayout | ComposedLayout,
    words: str,
    last: int,
    matrix: Any = None,
    candidate: Candidate | None = None,
) -> tuple[tuple[Any, ...], Choice] | Loser:
    """Ask every consumer about a layout; ``matrix`` is the same layout on the two-dimensional matrix."""
    table = np.asarray(smem.table(), dtype=np.int64).reshape(_extents(question), order="F") * question.size
    if matrix is None:
        matrix = smem if len(question.tile) == 2 else table // question.size
    digits = None if candidate is None else ((candidate.modes[0], candidate.modes[1]), candidate.swizzle)
    tile = Tile(matrix, table, question.tensor.element, digits)
    served: list[tuple[Consumer, Served]] = []
    for consumer in question.consumers:
        answer = consumer.ask(tile)
        if not answer.holds:
            return Loser(smem, words, consumer.name, answer.because or answer.text)
        served.append((consumer, answer))
    plans: list[TensorMapPlan] = []
    for direction in question.directions:
        ask = partial(_planned, question.tensor, question.tile, smem, question.target, direction, **question.options)
        plan = ask if candidate is not None and _never_copied(question, candidate) else ask()
        if not isinstance(plan, TensorMapPlan):
            return Loser(smem, words, "tma" if direction == "load" else "tma.store", plan)
        plans.append(plan)
    turns = sum(answer.turns for _, answer in served)
    ideal = sum(answer.ideal for _, answer in served)
    size = max([int(table.max()) + question.size, *(plan.smem_bytes for plan in plans)])
    told = [words, *(_of_plan(plan, question.tensor) for plan in plans)]
    told += [f"{consumer.name}: {answer.text}" for consumer, answer in served]
    if question.fill is not None:
        stores = filled(question.target, table, question.size, question.fill)
        turns, ideal = turns + stores.turns, ideal + stores.ideal
        told += [stores.text, *filter(None, [question.loads])]
    found = [answer.plan for _, answer in served if answer.plan is not None]
    operands = tuple(certified(plan) if isinstance(plan, OperandPlan) else plan for plan in found)
    choice = Choice(
        smem, plans[0] if plans else None, turns, size, "; ".join([*told, f"{size} bytes"]), "", operands, ideal
    )
    return (
        sum(plan.oob == "lost" for plan in plans),
        sum(len(plan.issues) for plan in plans),
        turns,
        size,
        sum(len(plan.undocumented) for plan in plans),
        sum(len(plan.tensor_map.dims) for plan in plans),
        last,
    ), choice


def _extents(question: _Question) -> tuple[int, int]:
    return question.tile[question.places[0]], question.tile[question.places[1]]


def _span(candidate: Candidate, copied: bool) -> int:
    """The last key of the ranking: with TMA the widest swizzle first, with threads alone the narrowest."""
    bits, base, _ = candidate.xor or (0, 0, 0)
    return 1 << bits + base if copied else -(1 << bits + base)


def _of_plan(plan: TensorMapPlan, tensor: Tensor) -> str:
    many = f"{len(plan.issues)} TMA issue{'s' if len(plan.issues) > 1 else ''}"
    carried = "" if tensor.element == tensor.dtype else f" of {tensor.dtype}"
    stored = " to store" if plan.problem.direction == "store" else ""
    return f"{many} of box {list(plan.tensor_map.box)}{carried}{stored}"


def _planned(
    tensor: Tensor, tile: tuple[int, ...], smem: object, target: str, direction: str, **options: Unpack[MapOptions]
) -> TensorMapPlan | str:
    """Return the proved plan, or the reason why there is none."""
    for missing in no_tensor_maps(target):
        return str(missing)
    try:
        return copied(tensor, tile, smem, target, direction, **options)
    except BudgetError as error:
        if error.diagnostic.code != "LA411":
            raise
        return f"not decided: {error.diagnostic.because}"


def _never_copied(question: _Question, candidate: Candidate) -> bool:
    """Whether neighbours in a chunk of 16 bytes, which TMA moves as a whole, are no neighbours in the tensor."""
    inner = candidate.modes[candidate.inner]
    together = inner and inner[0][1] == 1 and inner[0][0] * question.size % CHUNK_BYTES == 0
    place, tensor = question.places[candidate.inner], question.tensor
    apart = tensor.strides[place] != 1 and tensor.shape[place] != 1  # neighbours of an extent of 1 are out of bounds
    return bool(together) and question.size <= 4 and apart


def _behind(choice: Choice, first: tuple[Any, ...], key: tuple[Any, ...]) -> Choice:
    """Return the choice with what the first one does better."""
    worse = [
        f"{key[place]} {name.replace('(s)', '' if key[place] == 1 else 's')} (first: {first[place] or 'none'})"
        for place, name in enumerate(_RANKED)
        if key[place] > first[place]
    ]
    text = ", ".join(worse) or "tied, but a narrower swizzle or a smaller block"
    return replace(choice, behind=text)

"""What a Triton kernel does, as values: memory and its slots, events, the tracks that they are on.

Slots, parities and conditions are functions of the iteration k (``waves``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, NoReturn, TypeAlias, TypeVar, cast

from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.proofs.pipeline.kernels.waves import Conditions, Linear, Wave, fitted
from layoutalg.proofs.pipeline.ops import Part


@dataclass(eq=False, slots=True)
class Memory:
    """Memory of one ``ttg.local_alloc`` or ``ttng.tmem_alloc``."""

    name: str  # name of its value
    line: int  # its line
    shape: tuple[int, ...]  # sizes, outermost first
    bits: int  # bits of an element
    track: Track  # the track that allocates it
    counts: dict[int, int] = field(default_factory=dict)  # arrivals per phase of each slot that is a barrier
    sliced: bool = False  # whether slots are taken from it
    tensor: bool = False  # whether it is tensor memory

    @property
    def slots(self) -> int:
        """The number of slots."""
        return self.shape[0] if self.sliced else 1

    @property
    def slot_bytes(self) -> int:
        """Bytes of a slot."""
        return prod(self.shape[1:] if self.sliced else self.shape) * self.bits // 8


@dataclass(frozen=True, slots=True)
class Slot:
    """A descriptor of memory: a slot, or all of it."""

    memory: Memory
    index: Linear | None = None

    @property
    def place(self) -> Wave | None:
        """The slot as a function of k; None if it is not known."""
        if self.index is None:
            return Wave((0,))
        return None if self.index.symbols or self.index.wave.growth else self.index.wave


Value: TypeAlias = "Linear | Conditions | Slot"


@dataclass(frozen=True, slots=True)
class Event:
    """An op of a pipeline before its indices are known."""

    op: str  # a name in ``ops.OPS``, or ``start`` and ``end`` of partitions
    part: Part  # where the track runs it
    line: int  # line of the operation
    bar: Slot | None = None  # slot of a barrier
    buf: Slot | None = None  # slot of a buffer
    parity: Wave | None = None  # parity operand of a wait
    n: int = 0  # arrivals, or groups left open
    bytes: int | None = None  # bytes expected or delivered
    when: tuple[Linear, ...] = ()  # what must be positive for it to run
    adds: bool = field(default=False, compare=False)  # whether it adds to what its slot holds


@dataclass(eq=False, slots=True)
class Track:
    """What one group of warps does in order."""

    name: str  # name of the role
    line: int  # where it begins
    events: list[Event] = field(default_factory=list)  # its events
    bounds: tuple[int, Linear, int] | None = None  # first value, end and step of the counter of its loop
    inside: Track | None = None  # the track of which this is a part that is repeated or chosen, or None
    loose: bool = False  # whether that part shares memory with other roles, so that its order with the rest is left out
    late: bool = False  # whether that part comes after the loop
    assumed: list[Linear] = field(default_factory=list)  # what must be positive for all of this to hold

    @property
    def owner(self) -> Track:
        """The track of the role."""
        return self if self.inside is None else self.inside.owner


@dataclass(frozen=True, slots=True)
class Kernel:
    """The tracks of a kernel and its memory."""

    name: str
    tracks: tuple[Track, ...]
    memory: tuple[Memory, ...]


Scope: TypeAlias = "dict[str, Value | None]"


def refuse(line: int, because: str) -> NoReturn:
    """Raise the error of a kernel that is no pipeline."""
    raise RepresentabilityError(Diagnostic("LA973", "this kernel has no pipeline document", (f"line {line}",), because))


def through(values: list[Value | None], period: int) -> Value | None:
    """Return the value as a function of k through those of the first iterations."""
    first = values[0]
    if all(same(first, value) for value in values):
        return first
    linear = [value.index if isinstance(value, Slot) else value for value in values]
    memory = {value.memory if isinstance(value, Slot) else None for value in values}
    if len(memory) > 1 or not all(isinstance(value, Linear) for value in linear):
        return None
    if len({value.symbols for value in linear if isinstance(value, Linear)}) > 1:
        return None
    numbers = [value.constant_part for value in linear if isinstance(value, Linear)]
    wave = None if None in numbers else fitted([number for number in numbers if number is not None], period)
    if wave is None:
        return None
    found = Linear(wave, linear[0].symbols if isinstance(linear[0], Linear) else ())
    return Slot(first.memory, found) if isinstance(first, Slot) else found


Known = TypeVar("Known", bound="Value | None")


def mapped(value: Known, change: Callable[[Wave], Wave]) -> Known:
    """Return a value, or a slot, whose wave is changed; what no wave gives stays as it is."""
    found: Any = value
    if isinstance(value, Slot) and value.index is not None:
        found = Slot(value.memory, replace(value.index, wave=change(value.index.wave)))
    elif isinstance(value, Linear):
        found = replace(value, wave=change(value.wave))
    return cast("Known", found)


def at_turn(value: Known, k: int) -> Known:
    """Return what a value is in iteration k."""
    return mapped(value, lambda wave: Wave((wave.at(k),)))


def of_first(event: Event) -> Event | None:
    """Return what an event is in iteration 0; None if it does not run."""
    when = [Linear(Wave((entry.wave.at(0),)), entry.symbols) for entry in event.when]
    if any(entry.constant is not None and entry.constant <= 0 for entry in when):
        return None
    bar, buf = (at_turn(slot, 0) for slot in (event.bar, event.buf))
    parity = None if event.parity is None else Wave((event.parity.at(0),))
    return replace(event, bar=bar, buf=buf, parity=parity, when=tuple([entry for entry in when if entry.symbols]))


def firsts(events: list[Event]) -> list[Event]:
    return [found for event in events for found in (of_first(event),) if found is not None]


def still(value: Value | None) -> Value | None:
    """Return a value that is the same in all iterations, or None."""
    parts = [value.index] if isinstance(value, Slot) else value.positive if isinstance(value, Conditions) else [value]
    moving = any(part is not None and (part.wave.constant is None or part.under) for part in parts)
    return None if moving else value


def same(one: Value | None, two: Value | None) -> bool:
    """Whether two values are known to be equal for every k."""
    if isinstance(one, Linear) and isinstance(two, Linear):
        apart = one.plus(two, -1)
        return apart.constant == 0
    if isinstance(one, Slot) and isinstance(two, Slot):
        return one.memory is two.memory and (one.index is two.index or same(one.index, two.index))
    return one is not None and one == two

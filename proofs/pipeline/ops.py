"""The ops of a pipeline: one table says what each kind of op is, ``Op`` is one of them with its numbers.

What ops mean is stated in docs/pipelines.md. Who asks what an op does asks the table, or a name derived from it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from layoutalg.ground.check import Checker
from layoutalg.ground.document import Reader
from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.ground.record import Checked

CHECK = Checker("LA970", "invalid pipeline")

Part: TypeAlias = Literal["pre", "loop", "post"]
PARTS: tuple[Part, ...] = ("pre", "loop", "post")

MOST_BYTES: Final = (1 << 20) - 1
"""bytes: outstanding in one phase of a barrier; also its most arrivals (PTX ISA 9.1, 9.7.13.15.1)"""
MOST_CTAS: Final = 16
"""blocks: of a cluster; bits of the mask of a multicast copy (PTX ISA 9.1, cp.async.bulk.tensor)"""
FARTHEST: Final = 1 << 20
"""iterations: the largest distance of an index from k"""

_ON_BARRIER = ("bar", "off", "idx_abs", "ph")
_ON_BUFFER = ("buf", "off", "idx_abs")
_NAMED = ("id", "threads")


@dataclass(frozen=True, slots=True)
class Kind(Checked, code="LA970"):
    """What all ops of one name have in common."""

    entries: tuple[str, ...] = ()  # the entries that they may have in a document
    # what they do to the slot of ``buf``; a ``dsmem_copy`` also reads that of ``src``
    access: Literal["", "read", "write"] = ""
    generic: bool = False  # whether that is an access by the generic proxy
    anywhere: bool = False  # whether ``buf`` may be in tensor memory or registers
    # the kind of asynchronous accesses, waited for in groups, that they are about: the op that starts them
    group: str = ""
    # what they do about these; to signal is to arrive when all before it have finished
    does: Literal["", "start", "commit", "wait", "signal"] = ""
    arrives: bool = False  # whether they arrive at a barrier


OPS: Final[Mapping[str, Kind]] = {
    "wait": Kind((*_ON_BARRIER, "flip")),
    "arrive": Kind((*_ON_BARRIER, "n", "to"), arrives=True),
    "expect": Kind((*_ON_BARRIER, "bytes", "to")),
    "arrive_tx": Kind((*_ON_BARRIER, "bytes", "to"), arrives=True),
    "tma_load": Kind(("buf", *_ON_BARRIER, "bytes", "multicast"), "write"),
    "dsmem_copy": Kind(("src", "buf", *_ON_BARRIER, "bytes", "to"), "write"),
    "read": Kind(_ON_BUFFER, "read", generic=True, anywhere=True),
    "write": Kind(_ON_BUFFER, "write", generic=True, anywhere=True),
    "mma": Kind(_ON_BUFFER, "read", anywhere=True, group="mma", does="start"),
    "mma_write": Kind(_ON_BUFFER, "write", anywhere=True, group="mma", does="start"),
    "mma_commit": Kind(group="mma", does="commit"),
    "mma_wait": Kind(("n",), group="mma", does="wait"),
    "mma_arrive": Kind((*_ON_BARRIER, "to"), group="mma", does="signal", arrives=True),
    "tma_store": Kind(_ON_BUFFER, "read", group="tma_store", does="start"),
    "bulk_commit": Kind(group="tma_store", does="commit"),
    "bulk_wait": Kind(("n",), group="tma_store", does="wait"),
    "cp_async": Kind(_ON_BUFFER, "write", generic=True, group="cp_async", does="start"),
    "cp_async_commit": Kind(group="cp_async", does="commit"),
    "cp_async_wait": Kind(("n",), group="cp_async", does="wait"),
    "cp_async_arrive": Kind((*_ON_BARRIER, "n"), group="cp_async", does="signal", arrives=True),
    "proxy_fence": Kind(),
    "bar_sync": Kind(_NAMED),
    "bar_arrive": Kind(_NAMED),
}


def _named(which: Callable[[Kind], object]) -> tuple[str, ...]:
    return tuple([name for name, kind in OPS.items() if which(kind)])


READS: Final = _named(lambda kind: kind.access == "read")
WRITES: Final = _named(lambda kind: kind.access == "write")
GENERIC: Final = _named(lambda kind: kind.generic)
"""Accesses by the generic proxy."""
COPIES: Final = _named(lambda kind: kind.access and "bar" in kind.entries)
"""Asynchronous copies whose end a barrier knows by their bytes."""
ARRIVES: Final = _named(lambda kind: kind.arrives)
COUNTED: Final = _named(lambda kind: kind.arrives and "n" in kind.entries)
"""Ops that arrive ``n`` times, by default once."""
GROUPED: Final = {name: OPS[name].group for name in _named(lambda kind: kind.does == "start")}
"""The ops that start accesses that are waited for in groups, with their kind."""
SIGNALS: Final = {name: OPS[name].group for name in _named(lambda kind: kind.does == "signal")}
"""Ops that arrive when all such accesses of the role before them have finished."""
COMMITS: Final = {name: OPS[name].group for name in _named(lambda kind: kind.does == "commit")}
GROUP_WAITS: Final = {name: OPS[name].group for name in _named(lambda kind: kind.does == "wait")}
GROUPS: Final = {kind: (commit, wait) for (commit, kind), wait in zip(COMMITS.items(), GROUP_WAITS, strict=True)}
"""The kinds of accesses that are waited for in groups, with the ops that close a group and that wait."""
LATER: Final = (*COPIES, *GROUPED, *SIGNALS)
"""Ops that go on behind the role that starts them."""


@dataclass(frozen=True, slots=True)
class Op(Checked, code="LA970"):
    """One op of a role; see docs/pipelines.md for each ``op``.

    Args:
        op: A name in ``OPS``.
        bar: Barrier.
        buf: Buffer.
        src: Buffer that a ``dsmem_copy`` reads, at the same index.
        off: The index is k + off.
        idx_abs: The index itself, instead.
        ph: Added to the phase index.
        flip: Whether a wait inverts its parity operand.
        n: Arrivals of an ``arrive`` or a ``cp_async_arrive``; the newest groups that a wait for groups leaves open.
        bytes: Bytes expected or delivered; None for a copy that fills its buffer.
        first: In a loop: the first k that runs it.
        last: In a loop: how many of the last iterations do not run it.
        to: Ranks of the CTAs whose barrier is meant, by the rank of the CTA that runs it, or one entry for all; none:
            its own.
        multicast: The same for a copy: the CTAs whose slot it writes and whose barrier it signals.
        id: Number of a named barrier.
        threads: Threads that meet at the named barrier; 0 for all of the roles that name it.
    """

    op: str
    bar: str = ""
    buf: str = ""
    off: int = 0
    idx_abs: int | None = None
    ph: int = 0
    flip: bool = False
    n: int = 0
    bytes: int | None = None
    first: int = 0
    last: int = 0
    to: tuple[tuple[int, ...], ...] = ()
    multicast: tuple[tuple[int, ...], ...] = ()
    id: int = 0
    threads: int = 0
    src: str = ""

    def _validate(self) -> None:
        CHECK.choice(self.op, "op", OPS)
        entries = OPS[self.op].entries
        if self.reaches:
            self._check_reach()
        if self.id or self.threads or self.is_named:
            self._check_meeting()
        for name in _RINGS:
            if bool(getattr(self, name)) != (name in entries):
                what = "barrier" if name == "bar" else "buffer"
                rule = f"must name a {what} an op" if name in entries else "is not for an op"
                raise CHECK.malformed(name, f"{rule} {self.op}", getattr(self, name))
        if self.src and self.src == self.buf:
            raise CHECK.malformed("src", "must be another buffer than buf", self.src)
        for name in ("off", "idx_abs", "ph"):
            if abs(getattr(self, name) or 0) > FARTHEST:
                raise CHECK.malformed(name, f"must be within {FARTHEST} of 0", getattr(self, name))
        CHECK.integer(self.first, "guard.from", 0, FARTHEST)
        CHECK.integer(self.last, "guard.until", 0, FARTHEST)
        CHECK.integer(self.n, "n", int(self.op in COUNTED), FARTHEST)
        if self.bytes is not None:
            CHECK.integer(self.bytes, "bytes", 0, 1 << 40)

    def _check_reach(self) -> None:
        for name in _REACHES:
            if getattr(self, name) and name not in OPS[self.op].entries:
                raise CHECK.malformed(name, _OWN.get(self.op, f"is not for an op {self.op}"), getattr(self, name))
        for ranks in self.reaches:
            for rank in ranks:
                CHECK.integer(rank, self.reach, 0, MOST_CTAS)
            if not ranks or len(set(ranks)) != len(ranks):
                raise CHECK.malformed(self.reach, "must be distinct CTAs, at least one", ranks)

    def _check_meeting(self) -> None:
        if not self.is_named:
            raise CHECK.malformed("id", f"is not for an op {self.op}", self.id or self.threads)
        CHECK.integer(self.id, "id", 0, FARTHEST)
        CHECK.integer(self.threads, "threads", 0, FARTHEST)
        if self.first or self.last:
            rule = f"is not for an op {self.op}, whose uses are counted"
            raise CHECK.malformed("guard", rule, (self.first, self.last))

    @property
    def reach(self) -> str:
        """The entry that says which CTAs it acts on."""
        return "to" if self.to else "multicast"

    @property
    def reaches(self) -> tuple[tuple[int, ...], ...]:
        """The CTAs whose barrier (and slot) it acts on, one entry for all CTAs or one each; empty: its own."""
        return self.to or self.multicast

    @property
    def is_named(self) -> bool:
        """Whether it acts on a named barrier."""
        return self.op in ("bar_sync", "bar_arrive")

    @property
    def on_barrier(self) -> bool:
        """Whether it adds to a phase: arrivals, expected bytes or delivered bytes."""
        return bool(self.bar) and self.op != "wait"

    @property
    def arrivals(self) -> int:
        """How often it arrives."""
        return self.n if self.op in COUNTED else int(self.op in ARRIVES)

    @property
    def needs_index(self) -> bool:
        """Whether it is left out where its index is negative."""
        return bool(self.bar or self.buf) and self.op != "wait"

    def index(self, k: int) -> int:
        """Return its index in iteration k."""
        return k + self.off if self.idx_abs is None else self.idx_abs

    def is_fixed(self, part: Part) -> bool:
        """Whether its index is the same for every k and N."""
        return part == "pre" or self.idx_abs is not None

    def is_left_out(self, part: Part) -> bool:
        """Whether it is left out for every N: its index is negative and does not move."""
        return self.is_fixed(part) and self.needs_index and self.index(0) < 0

    @property
    def at(self) -> str:
        """Its index in brackets."""
        return f"[{self.idx_abs if self.idx_abs is not None else f'k{self.off:+d}' if self.off else 'k'}]"

    def __str__(self) -> str:
        told = [f"{name}{self.at}" for name in (self.src, self.buf, self.bar) if name]
        told += [f"phase {self.ph:+d}"] * bool(self.ph) + ["flipped"] * self.flip
        told += [str(self.n)] * ("n" in OPS[self.op].entries and (self.op not in COUNTED or self.n != 1))
        told += [f"{self.bytes} bytes"] * (self.bytes is not None)
        told += [f"CTA {' | '.join(','.join(map(str, ranks)) for ranks in self.reaches)}"] * bool(self.reaches)
        told += [str(self.id), *[f"{self.threads} threads"] * bool(self.threads)] * self.is_named
        told += [f"k >= {self.first}"] * bool(self.first) + [f"k < trip - {self.last}"] * bool(self.last)
        return f"{self.op} {', '.join(told)}".strip()

    def to_json(self) -> dict[str, object]:
        """Return the op as an entry of a document."""
        usual = {**_USUAL, "n": 1} if self.op in COUNTED else _USUAL
        given = {name: getattr(self, name) for name in OPS[self.op].entries}
        found: dict[str, object] = {"op": self.op}
        for name, value in given.items():
            if name not in usual or value != usual[name]:
                found[name] = _listed(value) if name in _REACHES else value
        return found | ({"guard": {"from": self.first, "until": self.last}} if self.first or self.last else {})


_RINGS: Final = ("bar", "buf", "src")
_REACHES: Final = ("to", "multicast")
_USUAL: Final = {
    field.name: field.default for field in dataclasses.fields(Op) if field.name not in (*_RINGS, "op", "id", "n")
}
"""What an entry of a document means that is not there."""
_OWN: Final = {
    "wait": "is not for a wait: a barrier is waited for in its own CTA alone (PTX ISA 9.1, 9.7.13.15)",
    "cp_async_arrive": "is not for cp_async_arrive, which arrives in its own CTA alone (PTX ISA 9.1, 9.7.13.15)",
}
"""Why an op reaches no other CTA."""


def _listed(reaches: tuple[tuple[int, ...], ...]) -> list[object]:
    return [list(ranks) for ranks in reaches] if len(reaches) > 1 else list(reaches[0])


def read_op(node: Reader, cluster: int) -> Op:
    """Return the op of an entry of a document."""
    name = node.get("op").text(tuple(OPS))
    for entry in _REACHES:
        if node.has(entry) and entry not in OPS[name].entries and name in _OWN:
            node.get(entry).fail(_OWN[name])
    node.keys(("op",), (*OPS[name].entries, "guard"))
    given: dict[str, Any] = {"n": 1} if name in COUNTED else {}
    for entry in OPS[name].entries:
        if node.has(entry) and (value := _read(node.get(entry), entry, cluster)) is not None:
            given[entry] = value
    if node.has("guard"):
        guard = node.get("guard")
        guard.keys((), ("from", "until"))
        ends = {"first": "from", "last": "until"}
        given |= {end: guard.get(entry).integer() for end, entry in ends.items() if guard.has(entry)}
    try:
        return Op(name, **given)
    except MalformedError as error:
        told = error.diagnostic
        where = ", ".join((node.pointer, *told.where))
        raise MalformedError(Diagnostic(told.code, told.what, (where,), told.because, told.witness)) from None


def _read(node: Reader, entry: str, cluster: int) -> Any:
    if entry in _RINGS:
        return node.text()
    if entry in _REACHES:
        return _ranks(node, cluster)
    if entry == "flip":
        return node.value if isinstance(node.value, bool) else node.fail("must be true or false")
    return None if node.value is None else node.integer()


def _ranks(node: Reader, cluster: int) -> tuple[tuple[int, ...], ...]:
    """Return CTAs: ``"all"``, a rank, ranks, or a list of ranks for each CTA that runs the op."""
    if node.value == "all":
        return (tuple(range(cluster)),)
    if not isinstance(node.value, list | tuple):
        return ((node.integer(),),)
    if any(isinstance(entry, list | tuple) for entry in node.value):
        return tuple([entry.integers() for entry in node.items(at_most=MOST_CTAS)])
    return (node.integers(),)

"""Movement terms: programs that bring elements from arrays to registers, shared memory and arrays.

Notation: ``op(args, x, ...)``; there is no composition. A term has a kind: shape, element type, tier and layout of its
value. It denotes an element at each coordinate (``proofs.movement.running``). Operations on memory are views: they
change addresses and move nothing. ``load``, ``stage``, ``convert`` and ``store`` move, and change no element.

    input(name, shape, dtype, strides, align_bytes)     an array in global memory
    load(layout, x)                 from memory to registers
    convert(layout, x)              registers to other registers
    stage(layout, carrier, x)       to shared memory: "tma" or "cp.async" from an array, "threads" from registers
    store(strides, x)               registers to a new array; a kernel ends
    transpose(order, x)  reshape(shape, x)              memory or registers
    gather(axis, indices, x)        y[.., k, ..] = x[.., indices[k], ..]; memory
    scatter(axis, indices, extent, x)                   y[.., indices[k], ..] = x[.., k, ..], 0 elsewhere; memory
    pad(low, high, x)  crop(start, extents, x)          memory; pads with 0
    broadcast(axis, extent, layout, x)                  repeats an axis of extent 1; memory, or registers with a layout
    elementwise(function, dtype, x, ...)                registers of one layout; a function is nothing but its name
    reduce(function, axis, x)       registers; elements in their order, so that sums of floats stay equal
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from layoutalg.ground.document import Reader
from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.ground.limits import ARRAY_RANK
from layoutalg.ground.record import Checked, json_of
from layoutalg.proofs.dtypes import element_type
from layoutalg.proofs.movement.layouts import (
    CHECK,
    FILL,
    MOST_ELEMENTS,
    MOST_OFFSET,
    IntArray,
    Table,
    memory_layout,
    register_layout,
    row_major,
    strided,
)

SCHEMA = "layoutalg/movement/1"
MOST_TERMS, MOST_DEPTH = 10_000, 200
"""Operations of a term, shared ones as often as they are used, and operations above each other."""
REGISTERS, SHARED, GLOBAL = TIERS = ("registers", "shared", "global")
CARRIERS = ("tma", "cp.async", "threads")
KEEPS_ZERO = frozenset({"abs", "add", "cast", "max", "min", "mul", "relu", "sub"})
"""Functions that are 0 if all arguments are 0, not only -0."""
BASE_ALIGN_BYTES = 256


@dataclass(frozen=True, slots=True)
class Kind(Checked, code="LA995"):
    """What a value is."""

    shape: tuple[int, ...]  # its extents, outermost first
    dtype: str  # its element type
    tier: str  # ``"registers"``, ``"shared"`` or ``"global"``
    layout: Table  # where its elements are: ``proofs.movement.layouts``
    align_bytes: int = 1  # alignment of the base address of memory

    def _validate(self) -> None:
        CHECK.choice(self.tier, "tier", TIERS)
        _shape(self.shape, "shape")
        _dtype(self.dtype, "dtype")
        if len(self.layout.shape) != 3 if self.tier == REGISTERS else self.layout.shape != self.shape:
            raise CHECK.malformed(
                "layout", "must be indexed like the value, or by warp, lane, register", self.layout.shape
            )

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def bits(self) -> int:
        """Bits of an element."""
        return element_type(self.dtype).bits

    def __str__(self) -> str:
        return f"{self.tier} {self.dtype}{list(self.shape)}"


@dataclass(frozen=True)
class Term:
    """An operation on terms, checked.

    Args:
        op: Its name.
        args: Its arguments, in the order of ``OPERATIONS``.
        of: The terms it is applied to.

    Raises: MalformedError: LA995: the message names operation, argument and rule.
    """

    op: str
    args: tuple[Any, ...]
    of: tuple[Term, ...] = ()

    def __post_init__(self) -> None:
        known = OPERATIONS[CHECK.choice(self.op, "op", tuple(OPERATIONS))]
        of = CHECK.entries(self.of, f"{self.op}.of", MOST_TERMS)
        kinds = tuple([CHECK.kind(x, Term, f"{self.op}.of[{place}]").kind for place, x in enumerate(of)])
        args = CHECK.entries(self.args, f"{self.op}.args", len(known.names))
        if len(args) < len(known.names):
            raise CHECK.malformed(f"{self.op}.args", f"must be {', '.join(known.names)}", args)
        _require_operands(self.op, kinds)
        args = known.read(self.op, kinds, args)
        depth, size = 1 + max([each.sizes[0] for each in of], default=0), 1 + sum(each.sizes[1] for each in of)
        if depth > MOST_DEPTH or size > MOST_TERMS:
            rule = f"must be at most {MOST_DEPTH} operations deep and {MOST_TERMS} in all"
            raise CHECK.malformed(f"{self.op}.of", rule, f"{depth} and {size}")
        found = {"of": of, "args": args, "_sizes": (depth, size), "_kind": _kind(self.op, args, kinds)}
        for name, value in {**found, "_hash": hash((self.op, args, of))}.items():
            object.__setattr__(self, name, value)

    def __hash__(self) -> int:
        return self.__dict__["_hash"]  # type: ignore[no-any-return]

    @property
    def kind(self) -> Kind:
        """What its value is."""
        return self.__dict__["_kind"]  # type: ignore[no-any-return]

    @property
    def sizes(self) -> tuple[int, int]:
        """Operations on the longest way to an array, and in all, shared ones as often as they are used."""
        return self.__dict__["_sizes"]  # type: ignore[no-any-return]

    def at(self, path: tuple[int, ...]) -> Term:
        """Return the term at a path of operand numbers."""
        found = self
        for place in path:
            found = found.of[place]
        return found

    def put(self, path: tuple[int, ...], other: Term) -> Term:
        """Return this term with another one at a path."""
        if not path:
            return other
        inner = self.at(path[:1]).put(path[1:], other)
        return Term(self.op, self.args, (*self.of[: path[0]], inner, *self.of[path[0] + 1 :]))

    def terms(self) -> list[Term]:
        """Return all terms of this one, operands before their users, each once."""
        seen: dict[Term, None] = {}
        waiting: list[tuple[Term, bool]] = [(self, False)]
        while waiting:
            each, done = waiting.pop()
            if done:
                seen.setdefault(each)
            elif each not in seen:
                waiting.append((each, True))
                waiting += [(operand, False) for operand in reversed(each.of)]
        return list(seen)

    def __str__(self) -> str:
        said = [_brief(arg) for arg in self.args if arg is not None]
        return f"{self.op}({', '.join([*said, *map(str, self.of)])})"

    def to_json(self) -> dict[str, object]:
        """Return the document: all terms, operands by their number, and the last is the result."""
        terms = self.terms()
        number = {each: place for place, each in enumerate(terms)}
        nodes = []
        for each in terms:
            args = zip(OPERATIONS[each.op].names, each.args, strict=True)
            said = {name: json_of(arg) for name, arg in args if arg is not None}
            nodes.append({"op": each.op, **said, "of": [number[operand] for operand in each.of]})
        return {"schema": SCHEMA, "terms": nodes}

    @classmethod
    def from_json(cls, document: object) -> Term:
        """Return the term of a document.

        Raises: MalformedError: LA010, LA995.

        Example:
            >>> x = term("input", name="A", shape=(4, 8), dtype="f32")
            >>> Term.from_json(x.to_json()) == x
            True
        """
        reader = Reader(document)
        reader.keys(("schema", "terms"))
        reader.schema(SCHEMA)
        made: list[Term] = []
        for node in reader.get("terms").items(at_most=MOST_TERMS):
            op = node.get("op").text(tuple(OPERATIONS))
            node.keys(("op", "of"), OPERATIONS[op].names)
            of = node.get("of").integers(maximum=len(made) - 1, minimum=0) if node.get("of").value else ()
            held: Any = node.value
            try:
                args = tuple([held.get(name) for name in OPERATIONS[op].names])
                made.append(Term(op, args, tuple([made[place] for place in of])))
            except MalformedError as error:
                said = error.diagnostic
                where = (f"{node.pointer}/{said.where[0]}",)
                raise MalformedError(Diagnostic(said.code, said.what, where, said.because, said.witness)) from None
        if not made:
            reader.get("terms").fail("must have at least one term")
        return made[-1]


def _brief(arg: object) -> str:
    if isinstance(arg, Table):
        return f"<{'x'.join(map(str, arg.shape))} layout>"
    if isinstance(arg, tuple) and len(arg) > 8:
        return f"({', '.join(map(str, arg[:6]))}, ... {len(arg)})"
    return str(arg)


def term(op: str, *of: Term, **args: object) -> Term:
    """Return a term, after checking it.

    Args:
        op: The operation: a name of ``OPERATIONS``.
        of: The terms it is applied to.
        args: Its arguments by name; layouts of any form that ``register_layout`` and ``memory_layout`` read.

    Raises: MalformedError: LA995: the message names operation, argument and rule.

    Example:
        >>> a = term("input", name="A", shape=(4, 8), dtype="f32")
        >>> print(term("crop", a, start=(0, 4), extents=(4, 4)).kind)
        global f32[4, 4]
        >>> term("crop", a, start=(0, 6), extents=(4, 4))
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA995 invalid movement term
          in     crop.extents[1]
          since  must be in [1, 3), not 4
    """
    known = OPERATIONS[CHECK.choice(op, "op", tuple(OPERATIONS))].names
    for name in args:
        CHECK.choice(name, f"an argument of {op}", known)
    return Term(op, tuple([args.get(name) for name in known]), of)


def _require_operands(op: str, kinds: tuple[Kind, ...]) -> None:
    known = OPERATIONS[op]
    if len(kinds) != known.arity and not (known.arity < 0 and kinds):
        rule = f"must have {known.arity if known.arity >= 0 else 'one or more'} operands"
        raise CHECK.malformed(f"{op}.of", rule, len(kinds))
    for place, kind in enumerate(kinds):
        if kind.tier not in known.tiers:
            raise CHECK.malformed(f"{op}.of[{place}]", f"must be in {' or '.join(known.tiers)}", kind.tier)


def derived(op: str, args: tuple[Any, ...], kinds: tuple[Kind, ...]) -> Kind:
    """Return the kind of an operation on values of these kinds.

    Raises: MalformedError: LA995: this operation is not defined on them.
    """
    _require_operands(op, kinds)
    if OPERATIONS[op].read(op, kinds, args) != args:
        raise CHECK.malformed(f"{op}.args", "must be in canonical form", args)
    return _kind(op, args, kinds)


@lru_cache(maxsize=1 << 16)
def _kind(op: str, args: tuple[Any, ...], kinds: tuple[Kind, ...]) -> Kind:
    """The kind, once operands and arguments have been read."""
    if op == "input":
        _, shape, dtype, strides, align = args
        return Kind(shape, dtype, GLOBAL, Table.of(strided(shape, strides)), align)
    first = kinds[0]
    if op in ("load", "convert"):
        return Kind(first.shape, first.dtype, REGISTERS, args[0])
    if op == "stage":
        return Kind(first.shape, first.dtype, SHARED, args[0], 1024)
    if op == "store":
        return Kind(first.shape, first.dtype, GLOBAL, Table.of(strided(first.shape, args[0])), BASE_ALIGN_BYTES)
    if op == "elementwise":
        return Kind(first.shape, args[1], REGISTERS, first.layout)
    if first.tier != REGISTERS:
        offsets = viewed(op, args, first.layout.array(), FILL)
        return Kind(offsets.shape, first.dtype, first.tier, Table.of(offsets), first.align_bytes)
    shape, layout = _registers(op, args, first)
    return Kind(shape, first.dtype, REGISTERS, layout)


def _registers(op: str, args: tuple[Any, ...], x: Kind) -> tuple[tuple[int, ...], Table]:
    """Shape and layout of a view or a reduction of registers, which moves nothing between threads."""
    if op == "broadcast":
        axis, extent, layout = args
        return (*x.shape[:axis], extent, *x.shape[axis + 1 :]), layout
    if op == "reduce":
        return (*x.shape[: args[1]], 1, *x.shape[args[1] + 1 :]), along(x.layout, x.shape, args[1])
    return renumbered(op, args, x.shape, x.layout)


def renumbered(
    op: str, args: tuple[Any, ...], shape: tuple[int, ...], layout: Table
) -> tuple[tuple[int, ...], Table]:  # fmt: skip
    """Return shape and register layout after a transpose or a reshape."""
    numbers = viewed(op, args, np.arange(math.prod(shape), dtype=np.int64).reshape(shape), FILL)
    place = np.empty(numbers.size, dtype=np.int64)
    place[numbers.reshape(-1)] = np.arange(numbers.size)
    return numbers.shape, Table.of(place[layout.array()])


def along(layout: Table, shape: tuple[int, ...], axis: int) -> Table:
    """Return a register layout with coordinate 0 for every coordinate of an axis, which then has extent 1."""
    points = list(np.unravel_index(layout.array(), shape))
    points[axis] = np.zeros_like(points[axis])
    return Table.of(np.ravel_multi_index(points, (*shape[:axis], 1, *shape[axis + 1 :])))


def viewed(op: str, args: tuple[Any, ...], array: IntArray, fill: int) -> IntArray:
    """Return an array after a view."""
    if op == "transpose":
        return array.transpose(args[0])
    if op == "reshape":
        return array.reshape(args[0])
    if op == "gather":
        return np.asarray(np.take(array, args[1], axis=args[0]), dtype=np.int64)
    if op == "scatter":
        axis, indices, extent = args
        found = np.full((*array.shape[:axis], extent, *array.shape[axis + 1 :]), fill, dtype=np.int64)
        found[(slice(None),) * axis + (list(indices),)] = array
        return found
    if op == "pad":
        return np.asarray(np.pad(array, list(zip(*args, strict=True)), constant_values=fill), dtype=np.int64)
    if op == "broadcast":
        return np.repeat(array, args[1], axis=args[0])
    start, extents = args
    return array[tuple([slice(low, low + count) for low, count in zip(start, extents, strict=True)])]


class Operation(NamedTuple):
    """What an operation takes."""

    names: tuple[str, ...]  # names of its arguments
    arity: int  # number of operands; -1 for one or more
    tiers: tuple[str, ...]  # where operands may be
    # checks the arguments and returns them in canonical form
    read: Callable[[str, tuple[Kind, ...], tuple[Any, ...]], tuple[Any, ...]]


def _shape(value: object, where: str) -> tuple[int, ...]:
    shape = CHECK.vector(value, where, low=1)
    if not 1 <= len(shape) <= ARRAY_RANK or math.prod(shape) > MOST_ELEMENTS:
        raise CHECK.malformed(where, f"must have 1 to {ARRAY_RANK} extents and at most {MOST_ELEMENTS} elements", shape)
    return shape


def _read_input(where: str, _: tuple[Kind, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    name, shape, dtype, strides, align = args
    shape = _shape(shape, f"{where}.shape")
    align = BASE_ALIGN_BYTES if align is None else CHECK.integer(align, f"{where}.align_bytes", 1, 1 << 20)
    if align & (align - 1):
        raise CHECK.malformed(f"{where}.align_bytes", "must be a power of two", align)
    if strides is None:
        strides = row_major(shape)
    strides = CHECK.vector(strides, f"{where}.strides", len(shape), low=0)
    if max(strides) > MOST_OFFSET // MOST_ELEMENTS:
        raise CHECK.malformed(f"{where}.strides", f"must be at most {MOST_OFFSET // MOST_ELEMENTS}", max(strides))
    return CHECK.name(name, f"{where}.name"), shape, _dtype(dtype, f"{where}.dtype"), strides, align


def _dtype(value: object, where: str) -> str:
    found = element_type(CHECK.kind(value, str, where))
    if found.bits not in (8, 16, 32, 64):
        raise CHECK.malformed(where, "must be a type of 8, 16, 32 or 64 bits", value)
    return found.name


def _read_layout(where: str, kinds: tuple[Kind, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    return (register_layout(args[0], kinds[0].shape, f"{where}.layout"),)


def _read_stage(where: str, kinds: tuple[Kind, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    x = kinds[0]
    carrier = CHECK.choice(args[1], f"{where}.carrier", CARRIERS)
    if (carrier == "threads") != (x.tier == REGISTERS):
        raise CHECK.malformed(f"{where}.carrier", 'must be "threads" exactly if the operand is in registers', carrier)
    return memory_layout(args[0], x.shape, max(1, x.bits // 8), f"{where}.layout"), carrier


def _read_store(where: str, kinds: tuple[Kind, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    shape = kinds[0].shape
    strides = row_major(shape) if args[0] is None else CHECK.vector(args[0], f"{where}.strides", len(shape), low=0)
    if max(strides) > MOST_OFFSET // MOST_ELEMENTS:
        raise CHECK.malformed(f"{where}.strides", f"must be at most {MOST_OFFSET // MOST_ELEMENTS}", max(strides))
    memory_layout(strided(shape, strides), shape, 1, f"{where}.strides")
    return (strides,)


def _axis(value: object, x: Kind, where: str) -> int:
    return CHECK.integer(value, f"{where}.axis", 0, len(x.shape))


def _read_gather(where: str, kinds: tuple[Kind, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    x = kinds[0]
    axis = _axis(args[0], x, where)
    indices = CHECK.vector(args[1], f"{where}.indices")
    for place, index in enumerate(indices):
        CHECK.integer(index, f"{where}.indices[{place}]", 0, x.shape[axis])
    _shape((*x.shape[:axis], len(indices), *x.shape[axis + 1 :]), f"{where}.indices")
    return axis, indices


def _read_scatter(where: str, kinds: tuple[Kind, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    x = kinds[0]
    axis = _axis(args[0], x, where)
    extent = CHECK.integer(args[2], f"{where}.extent", 1, MOST_ELEMENTS + 1)
    indices = CHECK.vector(args[1], f"{where}.indices", x.shape[axis])
    seen: set[int] = set()
    for place, index in enumerate(indices):
        if CHECK.integer(index, f"{where}.indices[{place}]", 0, extent) in seen:
            raise CHECK.malformed(f"{where}.indices[{place}]", "must not repeat an earlier index", index)
        seen.add(index)
    _shape((*x.shape[:axis], extent, *x.shape[axis + 1 :]), f"{where}.extent")
    return axis, indices, extent


def _read_pad(where: str, kinds: tuple[Kind, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    shape = kinds[0].shape
    low, high = [
        CHECK.vector(arg, f"{where}.{name}", len(shape), low=0) for name, arg in zip(("low", "high"), args, strict=True)
    ]
    _shape([sum(each) for each in zip(low, shape, high, strict=True)], f"{where}.high")
    return low, high


def _read_crop(where: str, kinds: tuple[Kind, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    shape = kinds[0].shape
    start, extents = [CHECK.vector(arg, f"{where}.{name}", len(shape))
                      for name, arg in zip(("start", "extents"), args, strict=True)]  # fmt: skip
    for axis, whole in enumerate(shape):
        CHECK.integer(start[axis], f"{where}.start[{axis}]", 0, whole)
        CHECK.integer(extents[axis], f"{where}.extents[{axis}]", 1, whole - start[axis] + 1)
    return start, extents


def _read_transpose(where: str, kinds: tuple[Kind, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    order = CHECK.vector(args[0], f"{where}.order", len(kinds[0].shape))
    if sorted(order) != list(range(len(order))):
        raise CHECK.malformed(f"{where}.order", f"must be a permutation of 0 to {len(order) - 1}", order)
    return (order,)


def _read_reshape(where: str, kinds: tuple[Kind, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    shape = _shape(args[0], f"{where}.shape")
    if math.prod(shape) != kinds[0].size:
        raise CHECK.malformed(f"{where}.shape", f"must have {kinds[0].size} elements like the operand", shape)
    return (shape,)


def _read_broadcast(where: str, kinds: tuple[Kind, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    x = kinds[0]
    axis = _axis(args[0], x, where)
    if x.shape[axis] != 1:
        raise CHECK.malformed(f"{where}.axis", "must be an axis of extent 1", f"{axis} of {x.shape}")
    shape = (*x.shape[:axis], CHECK.integer(args[1], f"{where}.extent", 1, MOST_ELEMENTS + 1), *x.shape[axis + 1 :])
    _shape(shape, f"{where}.extent")
    if x.tier != REGISTERS:
        if args[2] is not None:
            raise CHECK.malformed(f"{where}.layout", "must be None for memory", args[2])
        return axis, shape[axis], None
    layout = register_layout(args[2], shape, f"{where}.layout")
    if along(layout, shape, axis) != x.layout:
        rule = "must have every element in the places where the operand has it"
        raise CHECK.malformed(f"{where}.layout", rule, _brief(layout))
    return axis, shape[axis], layout


def _read_elementwise(where: str, kinds: tuple[Kind, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    for place, kind in enumerate(kinds):
        if (kind.shape, kind.layout) != (kinds[0].shape, kinds[0].layout):
            same = kind.shape == kinds[0].shape
            rule = f"must have the {'layout' if same else f'shape {kinds[0].shape}'} of the first operand"
            raise CHECK.malformed(f"{where}.of[{place}]", rule, "another" if same else kind.shape)
    dtype = kinds[0].dtype if args[1] is None else _dtype(args[1], f"{where}.dtype")
    return CHECK.name(args[0], f"{where}.function"), dtype


def _read_reduce(where: str, kinds: tuple[Kind, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    return CHECK.name(args[0], f"{where}.function"), _axis(args[1], kinds[0], where)


MEMORY = (SHARED, GLOBAL)
OPERATIONS: Mapping[str, Operation] = {
    "input": Operation(("name", "shape", "dtype", "strides", "align_bytes"), 0, (), _read_input),
    "load": Operation(("layout",), 1, MEMORY, _read_layout),
    "convert": Operation(("layout",), 1, (REGISTERS,), _read_layout),
    "stage": Operation(("layout", "carrier"), 1, (REGISTERS, GLOBAL), _read_stage),
    "store": Operation(("strides",), 1, (REGISTERS,), _read_store),
    "gather": Operation(("axis", "indices"), 1, MEMORY, _read_gather),
    "scatter": Operation(("axis", "indices", "extent"), 1, MEMORY, _read_scatter),
    "pad": Operation(("low", "high"), 1, MEMORY, _read_pad),
    "crop": Operation(("start", "extents"), 1, MEMORY, _read_crop),
    "transpose": Operation(("order",), 1, TIERS, _read_transpose),
    "reshape": Operation(("shape",), 1, TIERS, _read_reshape),
    "broadcast": Operation(("axis", "extent", "layout"), 1, TIERS, _read_broadcast),
    "elementwise": Operation(("function", "dtype"), -1, (REGISTERS,), _read_elementwise),
    "reduce": Operation(("function", "axis"), 1, (REGISTERS,), _read_reduce),
}
VIEWS = ("gather", "scatter", "pad", "crop", "transpose", "reshape", "broadcast")
MOVES = ("load", "convert", "stage", "store")

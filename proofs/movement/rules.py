"""Rules of movement terms: what may replace what, each with a certificate.

Notation: a rule matches an operation and yields pairs (before, after) that denote the same. It sees operands through
``Graph``, which is a term or an e-graph; there an operand is a class of equal terms, and a rule matches any of them.
Certificates: the tests run each rule on all small instances of its patterns; ``laws`` names the laws that solvers
prove for all sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import add
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from layoutalg.proofs.movement.layouts import CHECK, FILL, Table, affine, row_major, strided
from layoutalg.proofs.movement.term import KEEPS_ZERO, MOVES, VIEWS, Kind, Term, along, renumbered, viewed

DEEPEST_VIEWS = 4
"""Views between a copy and its use that the rules look through."""


class Node(NamedTuple):
    """An operation on operands that a rule does not look into: terms, nodes, or classes of an e-graph."""

    op: str  # its name
    args: tuple[Any, ...]  # its arguments
    of: tuple[Handle, ...]  # its operands


Handle: TypeAlias = Any
"""An operand: a term, a node, or the number of a class."""
Pair: TypeAlias = tuple[Node, Handle]


class Graph(Protocol):
    """What a rule sees of operands."""

    def terms(self, operand: Handle) -> Iterator[Node]:
        """Yield what an operand may be."""

    def kind(self, operand: Handle) -> Kind:
        """Return what an operand is."""

    def key(self, operand: Handle) -> object:
        """Return the same for operands that are known to be equal."""


class OneTerm:
    """A term, as rules see it: every operand is one term."""

    def terms(self, operand: Handle) -> Iterator[Node]:
        """Yield the operand."""
        yield Node(operand.op, operand.args, operand.of)

    def kind(self, operand: Handle) -> Kind:
        """Return the operand's kind."""
        found: Kind = operand.kind
        return found

    def key(self, operand: Handle) -> Handle:
        """Return the operand."""
        return operand


def termed(handle: Handle) -> Term:
    """Return the term of a node.

    Raises: MalformedError: LA995: it is none.
    """
    if isinstance(handle, Node):
        return Term(handle.op, handle.args, tuple([termed(each) for each in handle.of]))
    return CHECK.kind(handle, Term, "operand")


def rewritten(rule: Rule, whole: Term) -> Iterator[tuple[Term, Handle]]:
    """Yield what a rule says about a term: the term itself, and a node of what may replace it.

    Example:
        >>> x = Term("transpose", ((0, 1),), (Term("input", ("A", (2, 3), "f32", None, None)),))
        >>> nothing = next(rule for rule in RULES if rule.name == "view.nothing")
        >>> [str(termed(after)) for _, after in rewritten(nothing, x)]
        ['input(A, (2, 3), f32, (3, 1), 256)']
    """
    graph = OneTerm()
    for before, after in rule.match(next(graph.terms(whole)), graph):
        yield termed(before), after


Match: TypeAlias = Callable[[Node, Graph], Iterator[Pair]]


class Rule(NamedTuple):
    """A rewrite."""

    name: str  # its name
    ops: tuple[str, ...]  # operations it matches
    says: str  # what it states
    patterns: tuple[str, ...]  # chains of operations, outermost first, whose small instances are all tried
    laws: tuple[str, ...]  # laws of ``layoutalg.proofs.laws`` that prove its arithmetic for all sizes
    match: Match  # yields what it rewrites


RULES: list[Rule] = []


def rule(name: str, ops: str, *patterns: str, laws: str = "") -> Callable[[Match], Match]:
    """Return a decorator that makes a rule of a matcher; its docstring is the statement."""

    def add(match: Match) -> Match:
        says = " ".join((match.__doc__ or "").split())
        RULES.append(Rule(name, tuple(ops.split()), says, patterns, tuple(laws.split()), match))
        return match

    return add


def _of(operand: Handle, graph: Graph, *ops: str) -> Iterator[Node]:
    """Yield the terms of an operand with one of these operations."""
    for each in graph.terms(operand):
        if each.op in ops:
            yield each


def _over(outer: Node, inner: Handle) -> Node:
    """Return the outer term, on this one of its operand's terms."""
    return Node(outer.op, outer.args, (inner,))


def _crop(start: Iterable[int], extents: Iterable[int], x: Handle) -> Node:
    return Node("crop", (tuple(start), tuple(extents)), (x,))


def _pad(low: Iterable[int], high: Iterable[int], x: Handle) -> Node:
    return Node("pad", (tuple(low), tuple(high)), (x,))


# Movements


@rule(
    "move.move", "load convert stage store",
    "load stage", "load stage load", "load store load", "convert load", "convert load stage", "convert convert load",
    "stage load", "stage convert load", "stage store load", "store convert load",
)  # fmt: skip
def _move_move(outer: Node, graph: Graph) -> Iterator[Pair]:
    """A movement of a movement of x is one of x: load, convert, stage and store change no element. From registers, load
    becomes convert, and stage is by threads; from an array, convert becomes load, and stage is by tma or cp.async
    """
    for inner in _of(outer.of[0], graph, *MOVES):
        for after in _moved(outer, inner.of[0], graph.kind(inner.of[0]).tier):
            yield _over(outer, inner), after


def _moved(outer: Node, x: Handle, tier: str) -> Iterator[Node]:
    """Yield the movements of x that bring it where another one brings its operand."""
    if outer.op in ("load", "convert"):
        yield Node("convert" if tier == "registers" else "load", outer.args, (x,))
    elif outer.op == "store" and tier == "registers":
        yield Node("store", outer.args, (x,))
    elif outer.op == "stage" and tier != "shared":
        for carrier in ("threads",) if tier == "registers" else ("tma", "cp.async"):
            yield Node("stage", (outer.args[0], carrier), (x,))


@rule("convert.same", "convert", "convert load", "convert transpose load")
def _convert_same(outer: Node, graph: Graph) -> Iterator[Pair]:
    """convert(L, x) = x where x already has the layout L"""
    if graph.kind(outer.of[0]).layout == outer.args[0]:
        yield outer, outer.of[0]


@rule(
    "function.inside", "convert transpose reshape broadcast",
    "convert elementwise load", "transpose elementwise load", "reshape elementwise load",
    "broadcast elementwise reduce load",
)  # fmt: skip
def _function_inside(outer: Node, graph: Graph) -> Iterator[Pair]:
    """m(f(x, ...)) = f(m(x), ...) where m converts, transposes, reshapes or broadcasts"""
    for inner in _of(outer.of[0], graph, "elementwise"):
        moved = tuple([Node(outer.op, outer.args, (x,)) for x in inner.of])
        yield _over(outer, inner), Node("elementwise", inner.args, moved)


@rule(
    "function.outside", "elementwise",
    "elementwise convert load", "elementwise transpose load", "elementwise reshape load",
    "elementwise broadcast reduce load",
)  # fmt: skip
def _function_outside(outer: Node, graph: Graph) -> Iterator[Pair]:
    """f(m(x), ...) = m(f(x, ...)) where m converts, transposes, reshapes or broadcasts, and all x have one layout"""
    for first in _of(outer.of[0], graph, "convert", "transpose", "reshape", "broadcast"):
        kind = graph.kind(first.of[0])
        same = [first]
        for operand in outer.of[1:]:
            alike = (x for x in _of(operand, graph, first.op) if x.args == first.args)
            same += [x for x in alike if _place(graph.kind(x.of[0])) == _place(kind)][:1]
        if len(same) == len(outer.of):
            inner = Node("elementwise", outer.args, tuple([x.of[0] for x in same]))
            yield Node(outer.op, outer.args, tuple(same)), Node(first.op, first.args, (inner,))


def _place(kind: Kind) -> tuple[object, ...]:
    return kind.shape, kind.layout


@rule("reduce.convert", "reduce", "reduce convert load")
def _reduce_convert(outer: Node, graph: Graph) -> Iterator[Pair]:
    """reduce(f, a, convert(L, x)) = convert(L without a, reduce(f, a, x))"""
    for inner in _of(outer.of[0], graph, "convert"):
        shape = graph.kind(inner.of[0]).shape
        layout = along(inner.args[0], shape, outer.args[1])
        yield _over(outer, inner), Node("convert", (layout,), (Node("reduce", outer.args, inner.of),))


@rule("convert.broadcast", "convert", "convert broadcast reduce load")
def _convert_broadcast(outer: Node, graph: Graph) -> Iterator[Pair]:
    """convert(L, broadcast(a, n, M, x)) = broadcast(a, n, L, convert(L without a, x))"""
    for inner in _of(outer.of[0], graph, "broadcast"):
        axis, extent, _ = inner.args
        layout = along(outer.args[0], graph.kind(outer.of[0]).shape, axis)
        moved = Node("convert", (layout,), inner.of)
        yield _over(outer, inner), Node("broadcast", (axis, extent, outer.args[0]), (moved,))


@rule(
    "view.outside", "load convert", "load transpose", "load reshape", "convert transpose load", "convert reshape load"
)  # fmt: skip
def _view_outside(outer: Node, graph: Graph) -> Iterator[Pair]:
    """load(L, view(x)) = view(load(view^-1 L, x)) for transpose and reshape; convert likewise"""
    for inner in _of(outer.of[0], graph, "transpose", "reshape"):
        shape = graph.kind(inner.of[0]).shape
        back = (tuple(np.argsort(inner.args[0]).tolist()),) if inner.op == "transpose" else (shape,)
        layout = renumbered(inner.op, back, graph.kind(outer.of[0]).shape, outer.args[0])[1]
        yield _over(outer, inner), _over(inner, Node(outer.op, (layout,), inner.of))


@rule(
    "view.inside", "transpose reshape",
    "transpose load", "reshape load", "transpose convert load", "reshape convert load", "transpose load stage",
    "transpose stage", "reshape stage", "transpose stage load", "transpose store load", "reshape store load",
    laws="digits.carries",
)  # fmt: skip
def _view_inside(outer: Node, graph: Graph) -> Iterator[Pair]:
    """view(m(L, x)) = m(view L, view(x)) for transpose and reshape, where m loads, converts, stages or stores; strides
    of a store must stay strides
    """
    for inner in _of(outer.of[0], graph, *MOVES):
        shape, layout = graph.kind(inner.of[0]).shape, inner.args[0]
        if inner.op in ("load", "convert"):
            layout = renumbered(outer.op, outer.args, shape, layout)[1]
        elif inner.op == "stage":
            layout = Table.of(viewed(outer.op, outer.args, layout.array(), FILL))
        else:
            found = affine(viewed(outer.op, outer.args, strided(shape, layout), FILL))
            if found is None:
                continue
            layout = found[1]
        yield _over(outer, inner), Node(inner.op, (layout, *inner.args[1:]), (_over(outer, inner.of[0]),))


# Copies


def _behind(operand: Handle, graph: Graph, above: tuple[object, ...] = ()) -> Iterator[tuple[tuple[Node, ...], Node]]:
    """Yield stores with the views, outermost first, through which an operand sees them; no view of itself."""
    for each in _of(operand, graph, "store"):
        yield (), each
    passed = (*above, graph.key(operand))
    if len(above) < DEEPEST_VIEWS:
        for view in _of(operand, graph, *VIEWS):
            if graph.key(view.of[0]) not in passed:
                for views, store in _behind(view.of[0], graph, passed):
                    yield (view, *views), store


def _through(views: tuple[Node, ...], x: Handle) -> Handle:
    """Return the views applied to something."""
    for view in reversed(views):
        x = Node(view.op, view.args, (x,))
    return x


_THROUGH = tuple([f"load {view} store load" for view in VIEWS if view != "broadcast"])


@rule("copy.forwarded", "load stage", *_THROUGH, "load gather crop store load", "stage transpose store load")
def _copy_forwarded(outer: Node, graph: Graph) -> Iterator[Pair]:
    """load(L, views(store(S, load(M, x)))) = load(L, views(x)), and stage likewise: a copy need not be made"""
    if outer.op == "stage" and outer.args[1] == "threads":
        return
    for views, store in _behind(outer.of[0], graph):
        for inner in _of(store.of[0], graph, "load"):
            if graph.kind(inner.of[0]).tier == "global":
                before = _through(views, Node(store.op, store.args, (inner,)))
                yield Node(outer.op, outer.args, (before,)), Node(outer.op, outer.args, (_through(views, inner.of[0]),))


@rule("function.forwarded", "load", *[
    f"load {view} store elementwise load" for view in VIEWS if view != "broadcast"
])  # fmt: skip
def _function_forwarded(outer: Node, graph: Graph) -> Iterator[Pair]:
    """load(L, views(store(S, f(x, ...)))) = f(load(L, views(store(S, x))), ...); padding needs f(0, ...) = 0"""
    for views, store in _behind(outer.of[0], graph):
        for inner in _of(store.of[0], graph, "elementwise"):
            fills = any(view.op in ("pad", "scatter") for view in views)
            if not views or (fills and inner.args[0] not in KEEPS_ZERO):
                continue
            before = _through(views, Node(store.op, store.args, (inner,)))
            each = [Node("load", outer.args, (_through(views, Node("store", store.args, (x,))),)) for x in inner.of]
            yield Node("load", outer.args, (before,)), Node("elementwise", inner.args, tuple(each))


# Views


@rule(
    "view.view", "transpose reshape gather crop pad",
    "transpose transpose", "reshape reshape", "gather gather", "crop crop", "pad pad",
    laws="digits.carries movement.crop_sum movement.pad_sum",
)  # fmt: skip
def _view_view(outer: Node, graph: Graph) -> Iterator[Pair]:
    """Two views of a kind are one: orders and indices compose, the last shape stays, starts and paddings are added"""
    for inner in _of(outer.of[0], graph, outer.op):
        args = _composed(outer.op, outer.args, inner.args)
        if args is not None:
            yield _over(outer, inner), Node(outer.op, args, inner.of)


def _composed(op: str, outer: tuple[Any, ...], inner: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the arguments of a view after another of its kind; None if they are not one."""
    if op == "reshape":
        return outer
    if op == "transpose":
        return (tuple([inner[0][axis] for axis in outer[0]]),)
    if op == "gather":
        return (outer[0], tuple([inner[1][index] for index in outer[1]])) if inner[0] == outer[0] else None
    first, second = [tuple(map(add, *each)) for each in zip(outer, inner, strict=True)]
    return (first, outer[1]) if op == "crop" else (first, second)


@rule("view.nothing", " ".join(VIEWS), *VIEWS[:-1], "broadcast crop")
def _view_nothing(outer: Node, graph: Graph) -> Iterator[Pair]:
    """A view that moves nothing is its operand: the identity as order or indices, its shape, no padding, all kept"""
    shape, args = graph.kind(outer.of[0]).shape, outer.args
    identity: dict[str, Callable[[], bool]] = {
        "transpose": lambda: args[0] == tuple(range(len(shape))),
        "reshape": lambda: args[0] == shape,
        "gather": lambda: args[1] == tuple(range(shape[args[0]])),
        "scatter": lambda: args[1:] == (tuple(range(shape[args[0]])), shape[args[0]]),
        "pad": lambda: not any((*args[0], *args[1])),
        "crop": lambda: args[1] == shape,
        "broadcast": lambda: args[1] == 1 and args[2] in (None, graph.kind(outer.of[0]).layout),
    }
    if identity[outer.op]():
        yield outer, outer.of[0]


@rule("gather.scatter", "gather", "gather scatter")
def _gather_scatter(outer: Node, graph: Graph) -> Iterator[Pair]:
    """gather(a, i, scatter(a, j, n, x)) = gather(a, j^-1 o i, x) where every index of i is one of j"""
    for inner in _of(outer.of[0], graph, "scatter"):
        if inner.args[0] == outer.args[0]:
            place = {index: at for at, index in enumerate(inner.args[1])}
            if all(index in place for index in outer.args[1]):
                indices = tuple([place[index] for index in outer.args[1]])
                yield _over(outer, inner), Node("gather", (outer.args[0], indices), inner.of)


@rule("scatter.permutation", "scatter", "scatter")
def _scatter_permutation(outer: Node, _: Graph) -> Iterator[Pair]:
    """scatter(a, i, n, x) = gather(a, i^-1, x) where i is a permutation of all n indices"""
    axis, indices, extent = outer.args
    if len(indices) == extent:
        yield outer, Node("gather", (axis, tuple(np.argsort(indices).tolist())), outer.of)


@rule("gather.run", "gather", "gather")
def _gather_run(outer: Node, graph: Graph) -> Iterator[Pair]:
    """gather(a, (s, s + 1, ...), x) = crop(s, n, x)"""
    axis, indices = outer.args
    if indices == tuple(range(indices[0], indices[0] + len(indices))):
        shape = list(graph.kind(outer.of[0]).shape)
        shape[axis] = len(indices)
        yield outer, _crop([indices[0] if place == axis else 0 for place in range(len(shape))], shape, outer.of[0])


@rule("crop.pad", "crop", "crop pad", laws="movement.crop_pad")
def _crop_pad(outer: Node, graph: Graph) -> Iterator[Pair]:
    """crop(s, n, pad(l, h, x)) = pad(l', h', crop(s', n', x)): what is cropped of the padding need not be padded"""
    for inner in _of(outer.of[0], graph, "pad"):
        shape = graph.kind(inner.of[0]).shape
        found = [cropped_padding(*each) for each in zip(*outer.args, inner.args[0], shape, strict=True)]
        if all(count > 0 for _, _, _, count in found):
            low, high, start, count = zip(*found, strict=True)
            yield _over(outer, inner), _pad(low, high, _crop(start, count, inner.of[0]))


def cropped_padding(start: Any, kept: Any, low: Any, extent: Any) -> tuple[Any, Any, Any, Any]:
    """Return padding before and after, first element and count of the elements that a crop of a padded axis keeps."""
    first = start - low if start > low else 0 * start
    before = low - start if low > start else 0 * start
    end = start + kept - low
    if end > extent:
        end = extent
    return before, start + kept - low - end, first, end - first


@rule("view.apart", "gather crop pad", *[
    f"{outer} {inner}" for outer in ("gather", "crop", "pad") for inner in ("gather", "transpose", "scatter")
])  # fmt: skip
def _views_apart(outer: Node, graph: Graph) -> Iterator[Pair]:
    """Views of different axes change places; and a gather, crop or pad passes a transpose, on the axis it had before"""
    for inner in _of(outer.of[0], graph, "transpose", "gather", "scatter"):
        before = graph.kind(inner.of[0]).shape
        if inner.op == "transpose":
            order = inner.args[0]
            back = np.argsort(order).tolist()
            if outer.op == "gather":
                moved = Node("gather", (order[outer.args[0]], outer.args[1]), inner.of)
            else:
                one, two = outer.args
                args = (tuple([one[axis] for axis in back]), tuple([two[axis] for axis in back]))
                moved = Node(outer.op, args, inner.of)
            yield _over(outer, inner), _over(inner, moved)
            continue
        axis = inner.args[0]
        if outer.op == "gather" and outer.args[0] != axis:
            yield _over(outer, inner), _over(inner, Node("gather", outer.args, inner.of))
        elif outer.op == "pad" and not outer.args[0][axis] + outer.args[1][axis]:
            yield _over(outer, inner), _over(inner, Node("pad", outer.args, inner.of))
        elif outer.op == "crop":
            kept = [(start, count) if place != axis else (0, before[axis])
                    for place, (start, count) in enumerate(zip(*outer.args, strict=True))]  # fmt: skip
            first, count = outer.args[0][axis], outer.args[1][axis]
            starts, counts = zip(*kept, strict=True)
            cropped = _crop(starts, counts, inner.of[0])
            if inner.op == "gather":
                args = (axis, inner.args[1][first : first + count])
                yield _over(outer, inner), Node("gather", args, (cropped,))
            elif count == inner.args[2]:
                yield _over(outer, inner), Node("scatter", inner.args, (cropped,))


@rule("reshape.pad", "reshape", "reshape pad", laws="movement.pad_rows")
def _reshape_pad(outer: Node, graph: Graph) -> Iterator[Pair]:
    """reshape(s, pad(l, h, x)) = pad(l f, h f, reshape(s', x)): padding of the outermost axis, in rows of f of the
    elements that the outermost axis of s counts
    """
    for inner in _of(outer.of[0], graph, "pad"):
        low, high = inner.args
        shape, into = graph.kind(inner.of[0]).shape, outer.args[0]
        row, part = row_major(shape)[0], row_major(into)[0]
        if not any((*low[1:], *high[1:])) and row * low[0] % part == 0 == row * high[0] % part == row * shape[0] % part:
            factor = [row * count // part for count in (low[0], high[0], shape[0])]
            inside = Node("reshape", ((factor[2], *into[1:]),), inner.of)
            none = (0,) * (len(into) - 1)
            yield _over(outer, inner), _pad((factor[0], *none), (factor[1], *none), inside)

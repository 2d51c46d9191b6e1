"""Functions and sets as questions to ISL, whose canonical texts and pieces are made when somebody asks for them.

Implementation notes: a value remembers the question that it answers, so another thread, or a worker process, can ask
again. ISL's object stays in its thread (``budget``). An answer is judged before anything is read from it. A canonical
text is a fixed point of reading and printing.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from layoutalg.ground import worker
from layoutalg.ground.lazy import later
from layoutalg.piecewise.budget import kept, renew, size_of, solve, written
from layoutalg.piecewise.notation import malformed
from layoutalg.piecewise.pieces import Form, Piece, Region, reach

if TYPE_CHECKING:
    import islpy
else:
    islpy = later("islpy")

Names = tuple[str, ...]
SETTLING_ROUNDS = 8
DEPTH = 8
"""Questions on answers to questions, before a text is made."""
EMPTY = ": false }"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_keys = itertools.count()


class TextOfValue:
    """Base of layouts and sets, whose field ``text`` is that of their value, made when somebody asks for it."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> str:
            if name != "text":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return self.value.text


@dataclass(slots=True, eq=False, repr=False)
class Value:
    """A function or a set of ISL: the answer to a question about other values.

    Attributes:
        text: The canonical text. Equal texts are equal functions.
        pieces: The pieces as plain numbers; a set is a function without outputs.
        box: The extents of the domain once they are known; ``spans`` its bounds without parameters.
    """

    ask: Callable[..., Any]  # the question, a module-level function
    operands: tuple[Any, ...]  # its operands: values, texts and plain data
    params: Names  # names of the parameters
    axes: Names  # names of the inputs of the function, or of the axes of the set
    outputs: Names  # names of the outputs
    is_set: bool  # whether it is a set
    text: str = field(init=False)
    pieces: tuple[Piece, ...] = field(init=False)
    key: int = field(init=False, default_factory=lambda: next(_keys))
    box: Any = field(init=False, default=None)
    spans: Any = field(init=False, default=None)
    depth: int = field(init=False)
    _size: tuple[int, int, int] | None = field(init=False, default=None)
    _judge: Callable[[Value], None] | None = field(init=False, default=None)
    _slope: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.depth = 1 + max((operand.depth for operand in self.operands if isinstance(operand, Value)), default=-1)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name not in ("text", "pieces"):
                raise AttributeError(name)
            self.settle()
            return getattr(self, name)

    def settle(self) -> None:
        """Make the text and the pieces, and judge the answer by them."""
        judge = self._judge  # before the question: another thread that settles the value clears it
        text, pieces = solve(self.told, _read, None, self)
        if judge is not None:
            judge(_settled(text, pieces, self.params, self.axes, self.outputs, self.is_set))
        self.pieces, self.text = pieces, text  # only now, for other threads read what is there
        self._judge = None

    def settled(self) -> Value:
        """Return this value, with its text."""
        if not self.is_settled:
            self.settle()
        return self

    def judged_by(self, judge: Callable[[Value], None]) -> Value:
        """Return this value, to be judged before anything is read from it; the judge raises if it is wrong."""
        if self.is_settled:
            judge(self)
        else:
            self._judge = judge
        return self

    @property
    def is_settled(self) -> bool:
        """Whether the text is known."""
        try:
            object.__getattribute__(self, "text")
        except AttributeError:
            return False
        return True

    @property
    def size(self) -> tuple[int, int, int]:
        """About the characters, quotients and most digits of a number of the text; see ``budget.size_of``."""
        if self._size is None:
            self._size = size_of(self.text if self.is_settled else self.operands)
        return self._size

    @property
    def slope(self) -> int:
        """A bound on all numbers in the evaluation at parameters and axes of magnitude m >= 1, divided by m.

        For ``floor(m x) + 1 <= m (floor(x) + 1)``, the bounds of all forms grow at most as m does.
        """
        if not self._slope:
            self._slope = max(1, reach(self.pieces, [2] * (len(self.params) + len(self.axes))))
        return self._slope

    @property
    def weight(self) -> int:
        """Number of terms to evaluate per point."""
        regions = [region for piece in self.pieces for region in piece.regions]
        forms = sum(len(region.floors) + len(region.constraints) for region in regions)
        return (forms + len(self.pieces) * len(self.outputs) + 1) * (len(self.params) + len(self.axes) + 1)

    def told(self) -> str:
        """Return the text if it is known, else the question."""
        return self.text if self.is_settled else told_question(self.ask, self.operands)

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Value) and self.text == other.text)

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the question without its judge: a worker answers, and the sender judges."""
        names = (self.params, self.axes, self.outputs, self.is_set)
        if self.is_settled:
            return _settled, (self.text, self.pieces, *names)
        return Value, (self.ask, self.operands, *names)


def _settled(text: str, pieces: tuple[Piece, ...], *names: Any) -> Value:
    """Return the value of a canonical text."""
    answer = Value(_again, (text, names[-1]), *names)
    answer.text, answer.pieces = text, pieces
    return answer


def told_question(ask: Callable[..., Any], operands: Sequence[Any]) -> str:
    """Return a question in words, for messages; what a user's text means is told as the text."""
    if all(isinstance(operand, str) for operand in operands):
        return " given ".join(filter(None, operands))
    told = [operand.told() if isinstance(operand, Value) else str(operand) for operand in operands]
    return f"{ask.__name__} of {' and '.join(told)}"


def answer(ask: Callable[..., Any], *operands: Any, operations: int | None = None) -> Any:
    """Return the answer to a question, a value where ISL answers with a function or a set.

    Args:
        ask: The question: a module-level function of the context and the operands.
        operands: Values, texts and plain data.
        operations: ISL operation quota; None for the time limit only.
    """
    found = solve(lambda: told_question(ask, operands), answered, operations, ask, operands)
    if isinstance(found, Value) and found.depth > DEPTH:
        found.settle()
        found = _settled(found.text, found.pieces, found.params, found.axes, found.outputs, found.is_set)
    return found


def answered(context: islpy.Context, ask: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """Ask, and return an ISL object as a value."""
    found = ask(context, *operands)
    return value_of(found, ask, operands) if isinstance(found, (islpy.PwMultiAff, islpy.Map, islpy.Set)) else found


def value_of(found: Any, ask: Callable[..., Any], operands: tuple[Any, ...], text: str = "") -> Value:
    """Return an ISL object as the value that answers a question; axes without names get some.

    Args:
        found: A function, an empty relation or a set.
        ask: The question.
        operands: Its operands.
        text: What a message quotes.
    """
    kinds, is_set = islpy.dim_type, isinstance(found, islpy.Set)
    kind = kinds.set if is_set else kinds.in_
    params = _names(found, kinds.param, "p", (), text)
    axes = _names(found, kind, "c", params, text)
    result = Value(ask, operands, params, axes, () if is_set else _output_names(found), is_set)
    kept(result.key, lambda: _with_names(found, kind, axes))
    if worker.inside():
        result.text, result.pieces = _read(found.get_ctx(), result)
    return result


def held(context: islpy.Context, value: Value) -> Any:
    """Return ISL's object of a value in this thread."""

    def again() -> Any:
        kind = islpy.dim_type.set if value.is_set else islpy.dim_type.in_
        return _with_names(value.ask(context, *value.operands), kind, value.axes)

    return kept(value.key, again)


def _with_names(found: Any, kind: Any, axes: Names) -> Any:
    """Return an object with names for its axes, an empty relation as a function."""
    if isinstance(found, islpy.Map):
        found = islpy.PwMultiAff.from_map(found)
    space = found.get_space()
    for position, name in enumerate(axes):
        if not space.has_dim_name(kind, position):
            found = found.set_dim_id(kind, position, islpy.Id.read_from_str(found.get_ctx(), name))
    return found.coalesce()


def _output_names(function: Any) -> Names:
    try:
        return _names(function, islpy.dim_type.out, "y", (), "")
    except ValueError:
        return tuple(f"y{position}" for position in range(function.dim(islpy.dim_type.out)))


def _names(value: Any, kind: Any, fallback: str, taken: Sequence[str], text: str) -> Names:
    """Return the names of dims; raise on names that could not be printed and parsed again."""
    space = value.get_space()
    names = []
    for position in range(value.dim(kind)):
        name = space.get_dim_name(kind, position) if space.has_dim_name(kind, position) else None
        names.append(name or f"{fallback}{position}")
    bad = [name for name in names if not _NAME.match(name)]
    if bad or len({*names, *taken}) < len(names) + len(taken):
        because = f"names must be distinct identifiers, not {[*taken, *names]}"
        raise malformed("LA780", "the axes of this ISL text have no usable names", text, because)
    return tuple(names)


def _again(context: islpy.Context, text: str, is_set: bool = False) -> Any:
    """Return the function or set of a canonical text."""
    if is_set:
        return islpy.Set.read_from_str(context, text)
    if text.endswith(EMPTY):
        return islpy.PwMultiAff.from_map(islpy.Map.read_from_str(context, text))
    return islpy.PwMultiAff.read_from_str(context, text)


# from ISL's objects to texts and plain numbers


def _read(context: islpy.Context, value: Value) -> tuple[str, tuple[Piece, ...]]:
    """Return the canonical text of a value, and its pieces."""
    found = held(context, value)
    text, found = settled_set(found) if value.is_set else _settled_function(found)
    if value.is_set:
        return text, (Piece(_regions(found), ()),)
    width = len(value.outputs)
    pieces = tuple(
        Piece(_regions(domain), tuple(output_form(part.get_at(i)) for i in range(width)))
        for domain, part in listed_pieces(found)
    )
    return text, pieces


def _settled_function(function: Any) -> tuple[str, Any]:
    context, text = function.get_ctx(), _function_text(function)
    for _ in range(SETTLING_ROUNDS):
        if function.domain().is_empty():
            function = _again(context, written(islpy.Map.empty(function.get_space())))
            return _function_text(function), function
        renew(context)
        function = islpy.PwMultiAff.read_from_str(context, text).coalesce()
        before, text = text, _function_text(function)
        if text == before:
            break
    return text, function


def _function_text(function: Any) -> str:
    """Return the text of a coalesced function; an empty one is written as a map, which keeps its axes."""
    return written(function if function.n_piece() else islpy.Map.empty(function.get_space()))


def settled_set(points: Any) -> tuple[str, Any]:
    """Return the canonical text of a coalesced set, and the set that ISL reads from it."""
    text = written(points)
    for _ in range(SETTLING_ROUNDS):
        renew(points.get_ctx())
        points = islpy.Set.read_from_str(points.get_ctx(), text).coalesce()
        before, text = text, written(points)
        if text == before:
            break
    return text, points


def listed_pieces(function: Any) -> list[tuple[Any, Any]]:
    """Return the pieces of an ISL function: pairs (domain, value)."""
    found: list[tuple[Any, Any]] = []
    function.foreach_piece(lambda domain, value: found.append((domain, value)))
    return found


def _regions(points: Any) -> tuple[Region, ...]:
    """Return the conjunctions of a set, all quantified integers defined as floors."""
    return tuple(_region(part) for part in points.compute_divs().get_basic_sets())


def _region(part: Any) -> Region:
    kinds = islpy.dim_type
    count = part.dim(kinds.div)
    lines = part.dim(kinds.param) + part.dim(kinds.set)
    constraints: list[tuple[Form, bool]] = []
    order = (kinds.param, kinds.set, kinds.div, kinds.cst)
    for matrix, is_equality in ((part.equalities_matrix(*order), True), (part.inequalities_matrix(*order), False)):
        for row in range(matrix.rows()):
            entries = [matrix.get_element_val(row, column).to_python() for column in range(matrix.cols())]
            form = Form(tuple(entries[:lines]), tuple(entries[lines:-1]), entries[-1])
            constraints.append((form, is_equality))
    return Region(tuple(_affine(part.get_div(i), i) for i in range(count)), tuple(constraints))


def output_form(aff: Any) -> tuple[tuple[Form, ...], Form]:
    """Return an ISL affine expression as its floors and a form of these."""
    count = aff.dim(islpy.dim_type.div)
    return tuple(_affine(aff.get_div(i), i) for i in range(count)), _affine(aff, count)


def _affine(aff: Any, floors: int) -> Form:
    """Return an ISL affine expression as numbers; it may use the first ``floors`` floors."""
    kinds = islpy.dim_type
    scale = aff.get_denominator_val()
    aff = aff.scale_val(scale) if not scale.is_one() else aff

    def numbers(kind: Any, count: int) -> list[int]:
        return [aff.get_coefficient_val(kind, i).to_python() for i in range(count)]

    dims = (*numbers(kinds.param, aff.dim(kinds.param)), *numbers(kinds.in_, aff.dim(kinds.in_)))
    constant = aff.get_constant_val().to_python()
    return Form(dims, tuple(numbers(kinds.div, floors)), constant, scale.to_python())

"""C index expressions for one output of an integer layout, with as few divisions as possible.

With the coalesced modes (s_k, d_k), k = 0, 1, ..., and P_k = s_0 ... s_{k-1}, the value at the flat index t is
``b + d_0 t + sum_{k >= 1} (d_k - s_{k-1} d_{k-1}) floor(t / P_k)``: one division per boundary whose stride is not the
carry of the mode below, and no remainder.

Notation: C, with non-negative operands of every ``/``, ``%``, ``>>`` and ``&``; powers of two become shifts and masks.
"""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock
from layoutalg.ground.check import Checker, integers
from layoutalg.ground.digits import checked_axes
from layoutalg.ground.errors import Diagnostic, MalformedError, Repair, RepresentabilityError, shown
from layoutalg.ground.text import expression_tree, is_cpp_name
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
from layoutalg.integer.axes import coalesced, select_outputs
from layoutalg.integer.forms import residue_form
from layoutalg.integer.layout import IntegerLayout, check_argument, layout_or_refuse
from layoutalg.integer.matrix import Vector

Number: TypeAlias = "int | npt.NDArray[Any]"
CHECK_POINTS = 2**20
CHUNK = 2**14
check = Checker("LA737", "this is not an index expression")
_SIGNED: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
_OPERATIONS = _SIGNED | {
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
}
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class IndexExpression:
    """C expression for one output of a layout.

    Args:
        text: The expression.
        variables: Variables (name, extent), each in [0, extent): the axes, or one flat index.
        bits: Width of a signed integer type that is enough for every intermediate value.
        layout: The layout it computes, with one output.
    """

    text: str
    variables: tuple[tuple[str, int], ...]
    bits: int
    layout: IntegerLayout

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise check.malformed("text", "must be a str", self.text)
        layout = layout_or_refuse(self.layout)
        names = checked_axes(self.variables, "variables", check)
        if len(layout.outputs) != 1:
            raise check.malformed("layout", "must have one output", layout)
        if names != layout.inputs and [extent for _, extent in names] != [layout.size]:
            raise check.malformed("variables", "must be the axes of the layout, or its flat index", names)
        object.__setattr__(self, "variables", names)
        object.__setattr__(self, "bits", check.integer(self.bits, "bits"))

    def __str__(self) -> str:
        return self.text

    def evaluate(self, values: Mapping[str, Number]) -> Number:
        """Evaluate the expression at integers or arrays of integers.

        Example:
            >>> index_expression(IntegerLayout.from_strides({"i": 4, "j": 3}, (2, 8), 1)).evaluate({"i": 3, "j": 2})
            23
        """
        return evaluate(self.text, values)

    def check(self) -> Verdict:
        """Evaluate the expression at every point and compare with the layout.

        Returns:
            Proved; Refuted with the first flat index that differs; Unknown above 2^20 points.

        Example:
            >>> index_expression(IntegerLayout.from_strides({"i": 4, "j": 3}, (1, 8)), flat="t").check()
            Proved(engine='table', certificate={'points': 12})
        """
        if self.layout.size > CHECK_POINTS:
            return Unknown(f"{self.layout.size} points, the limit is {CHECK_POINTS}", ("table",))
        for start in range(0, self.layout.size, CHUNK):
            clock.check("evaluating an index expression")
            index = np.arange(start, min(self.layout.size, start + CHUNK))
            points: dict[str, Any] = {}
            rest = index
            for name, extent in self.layout.inputs:
                points[name], rest = rest % extent, rest // extent
            values = points if self.variables == self.layout.inputs else {self.variables[0][0]: index}
            found = np.broadcast_to(np.asarray(self.evaluate(values), dtype=object), index.shape)
            (wanted,) = self.layout.apply(points).values()
            wrong = np.flatnonzero(found != wanted)
            if wrong.size:
                at = int(wrong[0])
                witness = {"flat": start + at, "value": self.layout.at(start + at), "text": int(found[at])}
                return Refuted("table", witness)
        return Proved("table", {"points": self.layout.size})


def index_expression(layout: IntegerLayout, flat: str | None = None, output: str | None = None) -> IndexExpression:
    """Return the C expression of one output, in the axes or in the flat index.

    In the axes there is no division, and a remainder only if a modulus wraps. In the flat index there is one division
    per coalesced mode boundary.

    Args:
        layout: The layout.
        flat: Name of the flat index; None to use the axes as variables.
        output: Name of the output; needed if there are several.

    Example:
        >>> print(index_expression(IntegerLayout.from_strides({"row": 8, "col": 4}, (-64, 1), 448)))
        col - 64 * row + 448
        >>> print(index_expression(IntegerLayout.from_strides({"row": 8, "col": 4}, (5, 1), modulus=32)))
        (5 * row + col) & 31
        >>> print(index_expression(IntegerLayout.from_strides({"i": 3, "j": 4, "k": 5}, (1, 3, 16)), flat="t"))
        t + 4 * (t / 12)
        >>> print(index_expression(IntegerLayout.from_strides({"i": 8, "j": 4}, (4, 1)), flat="t"))
        4 * t - 31 * (t >> 3)
    """
    if flat is not None and (not isinstance(flat, str) or not flat.isidentifier()):
        raise check_argument.malformed("flat", "must be an identifier", flat)
    one = _one(layout, output)
    return _of_axes(one) if flat is None else _of_flat(one, flat)


def _one(layout: IntegerLayout, output: str | None) -> IntegerLayout:
    if output is not None:
        return select_outputs(layout, [output])
    if len(layout_or_refuse(layout).outputs) != 1:
        raise check_argument.malformed("output", f"must name one of {list(layout.out_dims)}", output)
    return layout


def _of_axes(one: IntegerLayout) -> IndexExpression:
    _c_names(one.in_dims, one)
    m = one.moduli[0]
    form = residue_form(one.matrix[0], one.offset[0], m, one.extents)
    row, constant = form if form is not None else (one.matrix[0], one.offset[0])
    live = [a if extent > 1 else 0 for a, extent in zip(row, one.extents, strict=True)]
    text = _sum(list(zip(live, one.in_dims, strict=True)), constant)
    bound = abs(constant) + sum(abs(a) * max(extent - 1, 0) for a, extent in zip(live, one.extents, strict=True))
    if form is None:
        text = _wrapped(text, m)
    return IndexExpression(text, one.inputs, _bits(bound, m, *live, *one.extents), one)


def _of_flat(one: IntegerLayout, variable: str) -> IndexExpression:
    _c_names({variable: one.size})
    if not one.size:
        raise RepresentabilityError(
            Diagnostic("LA737", "there is no index expression", (str(one),), "the layout has no points")
        )
    m = one.moduli[0]
    form = residue_form(one.matrix[0], one.offset[0], m, one.extents)
    plans = [] if form is None else [(_steps(one, form[0], 0), form[1], 0)]
    if m:
        plans.append((_steps(one, one.matrix[0], m), one.offset[0], m))
    # one remainder at the end is cheaper than another division
    steps, constant, modulus = min(plans, key=lambda plan: (sum(1 for _, c in plan[0][1:] if c), plan[2] > 0))
    bound = abs(constant) + sum(abs(c) * ((one.size - 1) // period) for period, c in steps)
    text = _sum([(c, _divided(variable, period)) for period, c in steps], constant)
    if modulus:
        text = _wrapped(text, modulus)
    bits = _bits(bound, modulus, one.size, *[c for _, c in steps])
    return IndexExpression(text, ((variable, one.size),), bits, one)


def _steps(layout: IntegerLayout, row: Vector, modulus: int) -> tuple[tuple[int, int], ...]:
    """Return (period, step) per coalesced mode of one row; steps are reduced so that a dividend stays non-negative."""
    modes = coalesced(IntegerLayout(layout.inputs, (("value", modulus),), (row,), (0,)))
    steps, period, carried = [], 1, 0
    for extent, (stride,) in modes:
        steps.append((period, (stride - carried) % modulus if modulus else stride - carried))
        period, carried = period * extent, stride * extent
    return tuple(steps)


def _c_names(names: Mapping[str, int], layout: IntegerLayout | None = None) -> None:
    """Raise on a name that is not a C identifier, offering to rename an axis of ``layout``."""
    wrong = next((name for name in names if not is_cpp_name(name)), None)
    if wrong is None:
        return
    repairs: tuple[Repair, ...] = ()
    if layout is not None:
        fresh = next(name for k in itertools.count() if (name := f"axis{k}") not in {*layout.in_dims, *layout.out_dims})
        repairs = (Repair("rename the axis", f"integer.rename(layout, {{{wrong!r}: {fresh!r}}})"),)
    because = f"{shown(wrong)} is a keyword of C or C++, or not an ASCII identifier of at most 255 characters"
    raise MalformedError(Diagnostic("LA743", "this is not a valid C name", (shown(wrong),), because, None, repairs))


def _sum(terms: list[tuple[int, str]], constant: int) -> str:
    """Return the text of a sum, positive terms first so that it rarely starts with a minus sign."""
    text = ""
    for c, operand in sorted([term for term in terms if term[0]], key=lambda term: term[0] < 0):
        sign = (" - " if c < 0 else " + ") if text else ("-" if c == -1 else "")
        size = abs(c) if text else c
        text += sign + (operand if abs(c) == 1 else f"{size} * {operand}")
    if not text:
        return str(constant)
    return f"{text} {'-' if constant < 0 else '+'} {abs(constant)}" if constant else text


def _divided(name: str, divisor: int) -> str:
    if divisor == 1:
        return name
    return f"({name} / {divisor})" if divisor & (divisor - 1) else f"({name} >> {divisor.bit_length() - 1})"


def _wrapped(text: str, modulus: int) -> str:
    return f"({text}) % {modulus}" if modulus & (modulus - 1) else f"({text}) & {modulus - 1}"


def _bits(*numbers: int) -> int:
    return max(max(map(abs, numbers)).bit_length() + 1, 2)


def evaluate(text: str, values: Mapping[str, Number]) -> Number:
    """Evaluate an expression with C semantics on unbounded integers.

    Args:
        text: Sums, products, ``/``, ``%``, ``>>``, ``&``, parentheses, integers and names.
        values: Integers or arrays, by name.

    Example:
        >>> evaluate("(3 * i + 7) % 4", {"i": 2})
        1
    """
    if not isinstance(values, Mapping):
        raise check.malformed("values", "must be a mapping of names to integers", values)
    numbers = {name: _number(name, value) for name, value in values.items()}
    try:
        np.broadcast_shapes(*map(np.shape, numbers.values()))
    except ValueError as error:
        shapes = {name: np.shape(value) for name, value in numbers.items()}
        raise check.malformed("values", "must be arrays that broadcast together", shapes) from error
    if not isinstance(text, str):
        raise check.malformed("text", "must be an index expression", text)
    # a C name may be a keyword of Python, whose parser is used
    words = {word: f"n{k}" for k, word in enumerate(dict.fromkeys(_WORD.findall(text)))}
    aliases = {words[name]: value for name, value in numbers.items() if name in words}
    tree = expression_tree(_WORD.sub(lambda found: words[found[0]], text))
    try:
        found = None if tree is None else _walk(tree, aliases, text)
    except (ValueError, TypeError, RecursionError, MemoryError) as error:
        if isinstance(error, MalformedError):
            raise
        raise check.malformed("text", "must be an index expression", text) from error
    if found is None:
        raise check.malformed("text", "must be an index expression", text)
    if isinstance(found, int):
        return found
    array = np.asarray(found, dtype=object)
    fits = not array.size or (array.min() >= -(2**63) and array.max() < 2**63)
    return array.astype(np.int64) if fits else array


def _number(name: object, value: object) -> Number:
    """Return a value as a Python integer or an array of them, so that nothing overflows; raise on other values."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
        return int(value)
    array = integers(value, f"values[{name!r}]") if isinstance(value, np.ndarray) else None
    if array is None:
        raise check.malformed(f"values[{name!r}]", "must be an integer or an array of integers", value)
    return array.astype(object)


def _walk(node: ast.expr, values: Mapping[str, Number], text: str) -> Number:
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.Name(id=name) if name in values:
            return values[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_walk(operand, values, text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            a, b = _walk(left, values, text), _walk(right, values, text)
            if type(op) not in _SIGNED and any(np.any(np.asarray(side, dtype=object) < 0) for side in (a, b)):
                raise check.malformed("text", f"operands of {type(op).__name__} must not be negative", text)
            if type(op) in (ast.Div, ast.Mod) and np.any(np.asarray(b, dtype=object) == 0):
                raise check.malformed("text", f"the right operand of {type(op).__name__} must not be 0", text)
            found: Number = _OPERATIONS[type(op)](a, b)
            return found
    raise check.malformed("text", "must be an index expression in the given names", text)

"""What movement terms denote: the element at each coordinate, found by running on labels.

Mathematically: [[term]] maps a coordinate to an element of an input, 0, or f(elements) for a function f that is not
interpreted. Equal labels mean equal values for every content of the inputs and every meaning of the functions with
f(0, ...) = 0 for those of ``KEEPS_ZERO``: running decides equality of terms of given shapes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from layoutalg.ground.verdict import Proved, Refuted, Verdict
from layoutalg.proofs.movement.layouts import CHECK, IntArray
from layoutalg.proofs.movement.term import KEEPS_ZERO, MOVES, Term, viewed

ENGINE = "labels"
ZERO = 0


class Labels:
    """Numbers for elements; terms that are compared share them.

    ``inputs`` has the first label and the term of each array, ``values`` the label of each function value, ``meanings``
    the other way round.
    """

    def __init__(self) -> None:
        self.inputs: dict[str, tuple[int, Term]] = {}
        self.values: dict[tuple[Any, ...], int] = {}
        self.meanings: dict[int, tuple[str, tuple[int, ...]]] = {}
        self.next = ZERO + 1

    def declare(self, whole: Term) -> None:
        """Give labels to the elements of a term's arrays.

        Raises: MalformedError: LA995: two arrays have one name.
        """
        for each in whole.terms():
            if each.op == "input":
                first, known = self.inputs.setdefault(each.args[0], (self.next, each))
                if known != each:
                    rule = f"must be the same array everywhere: {known.kind}, strides {known.args[3]}"
                    raise CHECK.malformed(f"input {each.args[0]}", rule, f"{each.kind}, strides {each.args[3]}")
                self.next = max(self.next, first + each.kind.size)

    def run(self, whole: Term) -> IntArray:
        """Return the label at each coordinate of a term's value."""
        self.declare(whole)
        found: dict[Term, IntArray] = {}
        for each in whole.terms():
            found[each] = self._step(each, [found[operand] for operand in each.of])
        return found[whole]

    def _step(self, asked: Term, of: list[IntArray]) -> IntArray:
        op, args = asked.op, asked.args
        if op == "input":
            first, size = self.inputs[args[0]][0], asked.kind.size
            return np.arange(first, first + size, dtype=np.int64).reshape(asked.kind.shape)
        if op in MOVES:
            return of[0]
        if op == "elementwise":
            types = tuple([operand.kind.dtype for operand in asked.of])
            return self._applied((args[0], args[1], *types), np.stack(of, axis=-1))
        if op == "reduce":
            function = ("reduce", args[0], asked.kind.dtype)
            return np.expand_dims(self._applied(function, np.moveaxis(of[0], args[1], -1)), args[1])
        return viewed(op, args, of[0], ZERO)

    def _applied(self, function: tuple[str, ...], rows: IntArray) -> IntArray:
        """Labels of a function of the last axis."""
        flat = rows.reshape(-1, rows.shape[-1])
        each, back = np.unique(flat, axis=0, return_inverse=True)
        return np.array([self._value(function, row) for row in map(tuple, each.tolist())])[back.reshape(-1)].reshape(
            rows.shape[:-1]
        )

    def _value(self, function: tuple[str, ...], row: tuple[int, ...]) -> int:
        if function[0] in KEEPS_ZERO and not any(row):
            return ZERO
        label = self.values.setdefault((*function, row), self.next)
        if label == self.next:
            self.meanings[label] = " ".join(function[: 1 + (function[0] == "reduce")]), row
            self.next += 1
        return label

    def text(self, label: int, width: int = 3) -> str:
        """Return what a label is, in words."""
        if label not in self.meanings:
            for name, (first, array) in self.inputs.items():
                if 0 <= label - first < array.kind.size:
                    return f"{name}{[int(digit) for digit in np.unravel_index(label - first, array.kind.shape)]}"
            return "0"
        name, row = self.meanings[label]
        said = [self.text(each, width - 1) for each in row[:4]] if width else ["..."]
        return f"{name}({', '.join(said)}{', ...' * (len(row) > 4 and width > 0)})"


def compared(one: Term, other: Term) -> Verdict:
    """Return whether two terms are the same movement: equal kinds, and equal elements at each coordinate.

    Raises: MalformedError: LA995: two arrays have one name.

    Example:
        >>> from layoutalg.proofs.movement.term import term
        >>> x = term("input", name="A", shape=(2, 3), dtype="f32")
        >>> turned = term("transpose", x, order=(1, 0))
        >>> bool(compared(term("transpose", turned, order=(1, 0)), x))
        True
        >>> print(compared(term("reshape", turned, shape=(2, 3)), term("reshape", x, shape=(2, 3))))
        refuted       another element
          at          at=(0, 1), left=A[1, 0], right=A[0, 1]
    """
    labels = Labels()
    ones, others = labels.run(one), labels.run(other)
    first, second = one.kind, other.kind
    for name in ("tier", "shape", "dtype", "align_bytes"):
        left, right = getattr(first, name), getattr(second, name)
        if left != right:
            return Refuted("kinds", {"what": f"another {name}", "left": left, "right": right})
    if (ones != others).any():
        at = tuple(np.argwhere(ones != others)[0].tolist())
        sides = {"left": labels.text(int(ones[at])), "right": labels.text(int(others[at]))}
        return Refuted(ENGINE, {"what": "another element", "at": at, **sides})
    if first.layout != second.layout:
        left, right = first.layout.array(), second.layout.array()
        if left.shape != right.shape:
            return Refuted("kinds", {"what": "another layout", "left": left.shape, "right": right.shape})
        at = tuple(np.argwhere(left != right)[0].tolist())
        return Refuted("kinds", {"what": "another layout", "at": at, "left": int(left[at]), "right": int(right[at])})
    return Proved(ENGINE, {"claim": "both terms are the same movement", "elements": first.size})

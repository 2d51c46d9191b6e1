"""Read polynomials from integers, text (Python expression syntax) and sympy expressions.

Text is never evaluated, and the work is bounded. sympy is not imported: expressions are recognised by their attributes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from layoutalg.ground.clock import WorkDoneError, metered
from layoutalg.ground.errors import MalformedError, shown
from layoutalg.ground.polynomial import (
    ONE,
    TERM_BITS,
    TERM_CHARACTERS,
    TERM_DEPTH,
    TERM_EXPONENT,
    TERM_STEPS,
    Polynomial,
    malformed,
    name_of,
    named,
    number,
    power_of,
    total,
)
from layoutalg.ground.text import expression_tree

PolynomialLike: TypeAlias = Any
"""What ``polynomial`` accepts: a ``Polynomial``, an integer, text such as ``"M/64"`` or a sympy expression."""


def polynomial(value: PolynomialLike) -> Polynomial:
    """Return ``value`` as a polynomial.

    Args:
        value: A polynomial, an integer, text of names with ``+ - * / **``, or a sympy expression of these operations.

    Example:
        >>> print(polynomial("2*M/64 + 1"), polynomial(7), polynomial("(M + 1)*(M - 1)"))
        M/32 + 1 7 M**2 - 1
    """
    if isinstance(value, Polynomial):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return number(int(value))
    if isinstance(value, str):
        return _read(value)
    if hasattr(value, "free_symbols") and hasattr(value, "as_base_exp"):
        return _from_sympy(value)
    raise malformed("polynomial", "must be an integer, a name, text such as 'M/64' or a sympy expression", value)


@lru_cache(maxsize=256)
def _read(text: str) -> Polynomial:
    answer = Reader(text, "polynomial").read(parsed(text, "polynomial", "an arithmetic expression"))
    if len(str(answer)) > TERM_CHARACTERS:
        rule = f"must have at most {TERM_CHARACTERS} characters once multiplied out"
        raise malformed("polynomial", rule, f"{len(str(answer))} characters")
    return answer


def parsed(text: str, argument: str, kind: str) -> ast.expr:
    """Return the syntax tree of one expression."""
    if len(text) > TERM_CHARACTERS:
        rule = f"must have at most {TERM_CHARACTERS} characters"
        raise malformed(argument, rule, f"{len(text)} characters")
    tree = expression_tree(text)
    if tree is None:
        raise malformed(argument, f"must be {kind}", text)
    return tree


class Reader:
    """Converts syntax trees to polynomials with bounded work.

    Args:
        text: The text, for messages.
        argument: Its name, for messages.
    """

    def __init__(self, text: str, argument: str) -> None:
        self.text, self.argument, self.depth = text, argument, 0

    def refusal(self, rule: str) -> MalformedError:
        """Return the error that names the rule and the text."""
        return malformed(self.argument, rule, self.text)

    def read(self, tree: ast.expr) -> Polynomial:
        """Return the polynomial of a tree."""
        with self.bounded():
            return self._deeper(tree)

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """Run a block that builds a polynomial, with bounded work."""
        try:
            with metered(TERM_STEPS):
                yield
        except WorkDoneError:
            raise self.refusal("must be cheaper to multiply out") from None

    def _deeper(self, tree: ast.expr) -> Polynomial:
        """Return the polynomial of a subtree, checking the depth."""
        self.depth += 1
        if self.depth > TERM_DEPTH:
            raise self.refusal(f"must nest at most {TERM_DEPTH} deep")
        try:
            return self._term(tree)
        finally:
            self.depth -= 1

    def _term(self, tree: ast.expr) -> Polynomial:
        match tree:
            case ast.Constant(value=value) if type(value) is int:
                return number(value)
            case ast.Name(id=name):
                return named(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._deeper(operand)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self._deeper(operand)
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                return self._sum(tree)
            case ast.BinOp(op=ast.Mult() | ast.Div()):
                return self._product(tree)
            case ast.BinOp(left=ast.Constant(value=2), op=ast.Pow(), right=ast.Constant(value=power)) if (
                type(power) is int and 0 <= power <= TERM_BITS
            ):
                return number(2**power)  # hardware limits are written as 2**n
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=power)) if type(power) is int:
                if not 0 <= power <= TERM_EXPONENT:
                    raise self.refusal(f"must have exponents from 0 to {TERM_EXPONENT}")
                return power_of(self._deeper(left), power)
        raise self.refusal("may use integers, names, + - * / and ** only")

    def _sum(self, tree: ast.expr) -> Polynomial:
        """Return a left-leaning chain of sums and differences without recursing once per term."""
        parts: list[Polynomial] = []
        while isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Add, ast.Sub)):
            part = self._deeper(tree.right)
            parts.append(part if isinstance(tree.op, ast.Add) else -part)
            tree = tree.left
        return total([self._deeper(tree), *parts])

    def _product(self, tree: ast.expr) -> Polynomial:
        factors: list[tuple[bool, ast.expr]] = []
        while isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Mult, ast.Div)):
            factors.append((isinstance(tree.op, ast.Div), tree.right))
            tree = tree.left
        answer = self._deeper(tree)
        for divides, right in reversed(factors):
            factor = self._deeper(right)
            answer = answer / factor if divides else answer * factor
        return answer


def _from_sympy(value: Any) -> Polynomial:
    reader = Reader(shown(value), "polynomial")

    def walk(part: Any, depth: int) -> Polynomial:
        if depth > TERM_DEPTH:
            raise reader.refusal(f"must nest at most {TERM_DEPTH} deep")
        if part.is_Rational:
            return number(Fraction(int(part.p), int(part.q)))
        if part.is_Symbol:
            return named(name_of(part))
        if part.is_Add:
            return total([walk(entry, depth + 1) for entry in part.args])
        if part.is_Mul:
            answer = ONE
            for entry in part.args:
                factor = walk(entry, depth + 1)
                answer = answer * factor
            return answer
        if part.is_Pow and part.exp.is_Integer:
            exponent = int(part.exp)
            if abs(exponent) > TERM_EXPONENT:
                raise reader.refusal(f"must have exponents up to {TERM_EXPONENT}")
            power = power_of(walk(part.base, depth + 1), abs(exponent))
            return power if exponent > 0 else ONE / power
        raise reader.refusal("may be a sum of products of integers and symbols only")

    with reader.bounded():
        return walk(value, 0)

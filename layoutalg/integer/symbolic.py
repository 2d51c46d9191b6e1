"""Vector width and alignment where extents, strides and the offset are polynomials in symbols.

Main definitions: ``symbolic_access``, ``SymbolicAccess``, ``SymbolicStride``.

Main statements: a number divides all values of an integer polynomial exactly when it divides its values on the grid of
0, ..., degree in each variable, because the other values are integer combinations of those (finite differences). With
``name = r + d n`` for each known residue, the greatest common divisor on that grid is the exact guarantee.

References: G. Polya, Ueber ganzwertige Polynome in algebraischen Zahlkoerpern, 1919 (fixed divisors).
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layoutalg.ground import clock
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.limits import INTEGER_BITS
from layoutalg.integer.matrix import integer, malformed

# a product of names, in order, with repetition -> its coefficient
Polynomial = dict[tuple[str, ...], int]
TERMS = 500
GRID_POINTS = 4096
GRID_WORK = 10**9
"""Bits that the values on the grid may take on the way; beyond, the guarantee is a sufficient bound."""


@dataclass(frozen=True, slots=True)
class SymbolicStride:
    """The stride ``factor * name`` where ``name`` is a positive integer, a multiple of ``divisor``.

    Example:
        >>> str(SymbolicStride("ld", 2, divisor=8))
        '2*ld'
    """

    name: str
    factor: int = 1
    divisor: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise malformed("name", "must be an identifier", self.name, "LA736")
        object.__setattr__(self, "factor", _number(self.factor, "factor"))
        object.__setattr__(self, "divisor", _number(self.divisor, "divisor"))
        if self.divisor < 1:
            raise malformed("divisor", "must be at least 1", self.divisor, "LA736")

    def __str__(self) -> str:
        return self.name if self.factor == 1 else f"{self.factor}*{self.name}"


@dataclass(frozen=True, slots=True)
class SymbolicAccess:
    """What holds for every allowed value of the symbols.

    Args:
        guaranteed: A width that is right for every allowed value, and the largest such number where ``exact``.
        text: The width as a function of the symbols: right for each value, and the largest unless a value makes a run
            of consecutive elements longer (a stride that equals 1 first, or the run length after it; an extent 1).
        assumptions: What was assumed.
        alignment: Every run starts at a multiple of this, the largest such number where ``exact``; 0 where the only
            run starts at 0.
        exact: The guarantees are the largest; else they are sufficient bounds.
    """

    guaranteed: int
    text: str
    assumptions: tuple[str, ...]
    alignment: int = 0
    exact: bool = True


Entry = int | str | SymbolicStride


def symbolic_access(
    extents: Sequence[int | str], strides: Sequence[Entry], offset: int | str = 0, assume: Sequence[str] = ()
) -> SymbolicAccess:
    """Return the vector width of a layout whose extents, strides and offset may be polynomials in symbols.

    Mathematically: symbols are positive integers; a polynomial is text of sums and products. With known residues
    ``name = r + d n`` the guarantee is the greatest common divisor of the width over all allowed values.

    Args:
        extents: Extents, fastest first, each at least 1; numbers or text such as ``"K"``.
        strides: Strides in elements; numbers, text such as ``"ld * h + 8"``, or ``SymbolicStride``. The vectors run
            along the first axis of extent above 1.
        offset: Value at the origin. Elements.
        assume: Congruences of single names, ``"ld % 8 == 0"``.

    Raises: MalformedError: LA736.

    Example:
        >>> symbolic_access((64, 128), (1, SymbolicStride("ld", divisor=8)))
        SymbolicAccess(guaranteed=8, text='gcd(64, ld)', assumptions=('ld % 8 == 0',), alignment=8, exact=True)
        >>> found = symbolic_access((64, 16, 4), (1, "ld", "ld * h + 32"), assume=("ld % 4 == 0", "h % 2 == 0"))
        >>> found.guaranteed, found.text, found.alignment
        (4, 'gcd(64, ld, h*ld + 32)', 4)
        >>> symbolic_access((8, 2), (1, "n * n + n")).guaranteed
        2

    Source: own.
    """
    for argument, value in (("extents", extents), ("strides", strides), ("assume", assume)):
        if not isinstance(value, (tuple, list)):
            raise malformed(argument, "must be a sequence", value, "LA736")
    if len(extents) != len(strides):
        raise malformed("strides", f"must have {len(extents)} entries", strides, "LA736")
    sizes = [_polynomial(extent, f"extents[{place}]") for place, extent in enumerate(extents)]
    for place, size in enumerate(sizes):
        if not size or (set(size) == {()} and size[()] < 1):
            raise malformed(f"extents[{place}]", "must be at least 1", extents[place], "LA736")
    steps = [_polynomial(stride, f"strides[{place}]") for place, stride in enumerate(strides)]
    start = _polynomial(offset, "offset")
    known = _residues(strides, assume)
    modes: list[tuple[Polynomial, Polynomial]] = []
    for size, step in zip(sizes, steps, strict=True):
        if size == {(): 1}:
            continue
        if modes and _product(*modes[-1]) == step:
            modes[-1] = (_product(modes[-1][0], size), modes[-1][1])
        else:
            modes.append((size, step))
    contiguous = bool(modes) and modes[0][1] == {(): 1}
    run: Polynomial = modes[0][0] if contiguous else {(): 1}
    starts = [start, *[step for _, step in (modes[1:] if contiguous else modes)]]
    divisors = [_divisor(polynomial, known) for polynomial in (run, *starts)]
    alignment = math.gcd(*[divisor for divisor, _ in divisors[1:]])
    guaranteed = math.gcd(alignment, divisors[0][0])
    numbers = [p.get((), 0) for p in (run, *starts) if set(p) <= {()}]
    fixed = math.gcd(*numbers)
    if fixed == guaranteed:
        text = str(guaranteed)
    else:
        symbolic = dict.fromkeys(_text(p) for p in (run, *starts) if set(p) - {()})
        text = "gcd(" + ", ".join([*([str(fixed)] if fixed else []), *symbolic]) + ")"
    used = {name for p in (run, *starts) for term in p for name in term}
    assumptions = tuple(f"{name} % {d} == {r}" for name, (r, d) in known.items() if d > 1 and name in used)
    return SymbolicAccess(guaranteed, text, assumptions, alignment, all(exact for _, exact in divisors))


def _polynomial(value: object, argument: str) -> Polynomial:
    """Return a number, a text or a symbolic stride as a polynomial without zero terms."""
    if isinstance(value, SymbolicStride):
        return {(value.name,): value.factor} if value.factor else {}
    if not isinstance(value, str):
        number = _number(value, argument)
        return {(): number} if number else {}
    try:
        found = _walk(ast.parse(value.strip(), mode="eval").body, value, argument)
    except MalformedError:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _no_polynomial(argument, value) from error
    return found


def _number(value: object, argument: str) -> int:
    """Return an integer of at most ``INTEGER_BITS`` bits, or refuse it."""
    number = integer(value, argument, "LA736")
    if number.bit_length() > INTEGER_BITS:
        raise malformed(argument, f"numbers have at most {INTEGER_BITS} bits", number.bit_length(), "LA736")
    return number


def _no_polynomial(argument: str, value: object) -> Exception:
    rule = f"must be a sum of products of names and integers, of at most {TERMS} terms"
    return malformed(argument, rule, value, "LA736")


def _walk(node: ast.expr, text: str, argument: str) -> Polynomial:
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return {(): number} if number else {}
        case ast.Name(id=name):
            return {(name,): 1}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _product({(): -1}, _walk(operand, text, argument))
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op, right=right):
            a, b = _walk(left, text, argument), _walk(right, text, argument)
            if isinstance(op, ast.Mult):
                if len(a) * len(b) > TERMS:
                    raise _no_polynomial(argument, text)
                found = _product(a, b)
                for coefficient in found.values():
                    _number(coefficient, argument)
                return found
            return _sum(a, _product({(): -1}, b) if isinstance(op, ast.Sub) else b)
    raise _no_polynomial(argument, text)


def _sum(a: Polynomial, b: Polynomial) -> Polynomial:
    total = dict(a)
    for term, coefficient in b.items():
        total[term] = total.get(term, 0) + coefficient
    return {term: coefficient for term, coefficient in total.items() if coefficient}


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    total: Polynomial = {}
    for (s, p), (t, q) in itertools.product(a.items(), b.items()):
        term = tuple(sorted(s + t))
        total[term] = total.get(term, 0) + p * q
    return {term: coefficient for term, coefficient in total.items() if coefficient}


def _text(polynomial: Polynomial) -> str:
    """Return a polynomial as text, terms of high degree first."""
    parts: list[str] = []
    for term, coefficient in sorted(polynomial.items(), key=lambda entry: (-len(entry[0]), entry[0])):
        size = abs(coefficient)
        body = "*".join([*([str(size)] if size != 1 or not term else []), *term])
        sign = "-" if coefficient < 0 else "+"
        parts.append(f" {sign} {body}" if parts else ("-" if coefficient < 0 else "") + body)
    return "".join(parts)


def _residues(strides: Sequence[Entry], assume: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return name -> (r, d) with name = r (mod d), from all that is known."""
    facts = [(s.name, 0, s.divisor, "strides") for s in strides if isinstance(s, SymbolicStride)]
    facts += [(*_congruence(text, f"assume[{place}]"), f"assume[{place}]") for place, text in enumerate(assume)]
    known: dict[str, tuple[int, int]] = {}
    for name, residue, modulus, argument in facts:
        r, d = known.get(name, (0, 1))
        g = math.gcd(d, modulus)
        if (residue - r) % g:
            raise malformed(
                argument, f"must agree with {name} % {d} == {r}", f"{name} % {modulus} == {residue}", "LA736"
            )
        turns = (residue - r) // g * pow(d // g, -1, modulus // g) % (modulus // g)
        whole = _number(d // g * modulus, argument)
        known[name] = ((r + d * turns) % whole, whole)
    return known


def _congruence(text: object, argument: str) -> tuple[str, int, int]:
    """Read ``name % d == r``."""
    try:
        tree = ast.parse(text.strip() if isinstance(text, str) else "", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = ast.Constant(None)
    match tree:
        case ast.Compare(
            left=ast.BinOp(left=ast.Name(id=name), op=ast.Mod(), right=ast.Constant(value=int(modulus))),
            ops=[ast.Eq()],
            comparators=[ast.Constant(value=int(residue))],
        ) if modulus > 0 and not isinstance(modulus, bool) and not isinstance(residue, bool):
            return name, residue % modulus, modulus
    raise malformed(argument, "must be a congruence such as 'ld % 8 == 0'", text, "LA736")


def _divisor(polynomial: Polynomial, known: Mapping[str, tuple[int, int]]) -> tuple[int, bool]:
    """Return a divisor of all values, and whether it is the greatest."""
    names = sorted({name for term in polynomial for name in term})
    degrees = [max(term.count(name) for term in polynomial) for name in names]
    points = math.prod(degree + 1 for degree in degrees)
    # a value has about this many bits, and takes a product of as many factors as its degree
    bits = sum(degrees) * max([16, *[sum(known.get(name, (0, 1))).bit_length() for name in names]])
    if points > GRID_POINTS or points * sum(degrees) * len(polynomial) * bits > GRID_WORK:
        # each name is a multiple of gcd(r, d), so each term is of a product of those
        parts = {name: math.gcd(*known.get(name, (0, 1))) for name in names}
        terms = [c * math.prod(parts[name] for name in term) for term, c in polynomial.items()]
        return math.gcd(*terms), False
    found = 0
    for turn in itertools.product(*[range(degree + 1) for degree in degrees]):
        clock.check("the greatest common divisor of a polynomial")
        at = {name: r + d * n for name, n in zip(names, turn, strict=True) for r, d in [known.get(name, (0, 1))]}
        found = math.gcd(found, sum(c * math.prod(at[name] for name in term) for term, c in polynomial.items()))
    return found, True

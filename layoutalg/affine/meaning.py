"""What an ISL text says, read without ISL: the second opinion on everything that ISL computes.

Main definitions: ``read`` (the meaning of a text), ``Meaning``, ``Clause``, ``UnreadError``.

Main statements: an expression is a linear sum over atoms (variables, floors, remainders, least and greatest values)
divided by a positive number; a condition is a tree of comparisons of such sums with zero. Both are evaluated on arrays
of points, with Python integers where 64 bits might not do.

Implementation notes: the grammar is what ISL prints and what people write for layouts. Lexicographic comparisons
and conditional values are not read; callers then do without this opinion.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock, limits
from layoutalg.ground.cache import kept

Array: TypeAlias = "npt.NDArray[Any]"
Condition: TypeAlias = "tuple[Any, ...]"
SAFE = 2**61
TRIES = 2**16
_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_][A-Za-z0-9_']*)|(->|<=|>=|!=|&&|\|\||[-+*/%<>=!:;,(){}\[\]]))")
_COMPARED = {"<", "<=", ">", ">=", "=", "!="}
_LOGIC = {*_COMPARED, "and", "or", "not", "!", "&&", "||", "exists", "true", "false", "implies"}
_WORDS = {"mod", "floor", "ceil", "floord", "ceild", "min", "max", "and", "or", "not", "exists", "implies"}
_WORDS |= {"true", "false"}


class UnreadError(Exception):
    """The text is outside the grammar of this reader."""


@dataclass(frozen=True, slots=True)
class Linear:
    """The number ``(constant + sum of coefficient * atom) / denominator``; terms hold (atom, coefficient)."""

    terms: tuple[tuple[int, int], ...]
    constant: int
    denominator: int = 1

    def scaled(self, factor: int) -> Linear:
        """Return ``factor`` times the number."""
        if not factor:
            return Linear((), 0)
        return Linear(tuple((k, factor * a) for k, a in self.terms), factor * self.constant, self.denominator)

    def plus(self, other: Linear) -> Linear:
        """Return the sum."""
        mine, theirs = other.denominator, self.denominator
        if mine == theirs:
            mine = theirs = 1
        total = {k: mine * a for k, a in self.terms}
        for k, a in other.terms:
            total[k] = total.get(k, 0) + theirs * a
        constant = mine * self.constant + theirs * other.constant
        terms = tuple((k, a) for k, a in total.items() if a)
        return Linear(terms, constant, self.denominator * mine)


@dataclass(frozen=True, slots=True)
class Atom:
    """A variable (its name), or the floor, remainder, least or greatest of linear sums over earlier atoms."""

    kind: str
    name: str = ""
    sums: tuple[Linear, ...] = ()
    modulus: int = 0


@dataclass(slots=True)
class Clause:
    """One piece of a text: atoms, what every place of the tuples holds, and the condition.

    Args:
        atoms: The atoms, each over earlier ones.
        places: The sum at every place of the input tuple, then of the output tuple (for a set of its only tuple).
        inputs: Number of places before the arrow; 0 for a set.
        bound: Names that quantifiers introduce without a definition.
        condition: ``("all", parts)``, ``("any", parts)``, ``("not", part)``, ``("zero", sum)``, ``("least", sum)`` for
            a sum that is not negative, or ``("some", names, part)``.
    """

    atoms: list[Atom] = field(default_factory=list)
    places: list[Linear] = field(default_factory=list)
    inputs: int = 0
    bound: set[str] = field(default_factory=set)
    condition: Condition = ("all", ())
    known: dict[Atom, int] = field(default_factory=dict)
    names: dict[str, Linear] = field(default_factory=dict)

    def by_values(self, inputs: int) -> bool:
        """Return whether every place after the inputs is an expression of these and of the parameters."""
        free = {Atom("variable", f"#{place}") for place in range(inputs, len(self.places))}
        return not any(self.atoms[atom] in free for place in self.places[inputs:] for atom, _ in place.terms)

    def atom(self, atom: Atom) -> Linear:
        """Return an atom as a sum; equal atoms are one."""
        if atom not in self.known:
            self.known[atom] = len(self.atoms)
            self.atoms.append(atom)
        return Linear(((self.known[atom], 1),), 0)


@dataclass(frozen=True, slots=True)
class Meaning:
    """A set or map: its parameters, whether it is a map, the numbers of places, and its clauses (any may hold)."""

    params: tuple[str, ...]
    is_map: bool
    inputs: int
    outputs: int
    clauses: tuple[Clause, ...]
    weight: int

    def holds(self, params: Mapping[str, Array], places: Sequence[Array]) -> Array:
        """Return where points (of a map: pairs of points) belong.

        Raises:
            UnreadError: a quantifier that cannot be decided point by point.
        """
        answer = np.zeros(_shape(params, places), dtype=bool)
        for clause in self.clauses:
            answer |= _holds(clause, params, places)
        return answer

    def values(self, params: Mapping[str, Array], inputs: Sequence[Array]) -> tuple[list[Array], Array, Array]:
        """Return the outputs of a map whose clauses give them as expressions, where it is defined, and where clauses
        that hold together disagree.

        Raises:
            UnreadError: an output that is given by a condition only.
        """
        shape = _shape(params, inputs)
        covered, torn = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        answers: list[Array] = [np.zeros(shape, dtype=object) for _ in range(self.outputs)]
        for clause in self.clauses:
            known = _atoms(clause, params, inputs, self.inputs)
            inside = _holds(clause, params, inputs, known)
            if not inside.any():
                continue
            if any(_unknown(place, known) for place in clause.places):
                raise UnreadError("an output is not an expression of the inputs")
            for answer, place in zip(answers, clause.places[self.inputs :], strict=True):
                total, whole = _exact(place, known, shape)
                inside = inside & whole
                torn |= inside & covered & (answer != total)
                answer[inside] = np.asarray(total, dtype=object)[inside]
            covered |= inside
        return answers, covered, torn


@kept(limits.ISL_CACHE_BYTES)
def read(text: str) -> Meaning:
    """Return the meaning of a text.

    Raises:
        UnreadError: a text outside the grammar.

    Example:
        >>> meaning = read("[N] -> { [i] -> [floor(i/2) mod 3] : 0 <= i < N }")
        >>> values, covered, _ = meaning.values({"N": np.array(9)}, [np.array([0, 7, 9])])
        >>> values[0].tolist(), covered.tolist()
        ([0, 0, 0], [True, True, False])
    """
    try:
        return _Reader(text).meaning()
    except RecursionError:
        raise UnreadError("it nests too deeply") from None


class _Reader:
    """A recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        place, end = 0, len(text.rstrip())
        while place < end:
            found = _TOKEN.match(text, place)
            if found is None:
                raise UnreadError(f"column {place}")
            self.tokens.append(found[0].strip())
            place = found.end()
        self.place = 0
        self.clause = Clause()
        self.logical = self._logical()

    def _logical(self) -> dict[int, bool]:
        """Return, per opening parenthesis, whether it encloses a condition."""
        answer: dict[int, bool] = {}
        opened: list[int] = []
        for place, token in enumerate(self.tokens):
            if token == "(":
                opened.append(place)
                answer[place] = False
            elif token == ")" and opened:
                closed = opened.pop()
                if opened and answer[closed]:
                    answer[opened[-1]] = True
            elif token in _LOGIC and opened:
                answer[opened[-1]] = True
        return answer

    def peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        token = self.peek()
        if wanted and token not in wanted:
            self.fail()
        self.place += 1
        return token

    def taken(self, *wanted: str) -> bool:
        if self.peek() in wanted:
            self.place += 1
            return True
        return False

    def fail(self) -> NoReturn:
        raise UnreadError(f"{self.peek()!r} at token {self.place}")

    def meaning(self) -> Meaning:
        params: tuple[str, ...] = ()
        if self.peek() == "[":
            self.take()
            names = []
            while not self.taken("]"):
                names.append(self.name())
                if self.peek() != "]":
                    self.take(",")
            params = tuple(names)
            self.take("->")
        self.take("{")
        clauses: list[Clause] = []
        shapes = set()
        while self.peek() != "}":
            clock.check("reading a text")
            shapes.add(self.piece(params))
            clauses.append(self.clause)
            if self.peek() != "}":
                self.take(";")
        self.take("}")
        if self.place != len(self.tokens) or len(shapes) > 1:
            self.fail()
        is_map, inputs, outputs = shapes.pop() if shapes else (False, 0, 0)
        return Meaning(params, is_map, inputs, outputs, tuple(clauses), len(self.tokens))

    def name(self) -> str:
        token = self.take()
        if not (token[:1].isalpha() or token[:1] == "_") or token in _WORDS:
            self.fail()
        return token

    def piece(self, params: tuple[str, ...]) -> tuple[bool, int, int]:
        clause = self.clause = Clause()
        for name in params:
            clause.names[name] = clause.atom(Atom("variable", name))
        is_map = False
        if self.peek() not in {":", "}", ";"}:
            self.tuple()
            if self.taken("->"):
                is_map, clause.inputs = True, len(clause.places)
                self.tuple()
        if self.taken(":") and self.peek() not in {"}", ";"}:
            clause.condition = self.any()
        return is_map, clause.inputs, len(clause.places) - clause.inputs

    def tuple(self) -> None:
        clause = self.clause
        if self.peek() != "[":
            self.name()  # the name of the tuple
        self.take("[")
        while not self.taken("]"):
            token, following = self.peek(), self.tokens[self.place + 1 : self.place + 2]
            fresh = (token[:1].isalpha() or token[:1] == "_") and token not in clause.names and token not in _WORDS
            if fresh and following == ["="]:
                self.take(), self.take()
                clause.names[token] = self.sum()
                clause.places.append(clause.names[token])
            elif fresh and following and following[0] in {",", "]"}:
                self.take()
                variable = clause.atom(Atom("variable", f"#{len(clause.places)}"))
                clause.names[token] = variable
                clause.places.append(variable)
            else:
                if following == ["="]:
                    self.fail()
                clause.places.append(self.sum())
            if self.peek() != "]":
                self.take(",")

    def any(self) -> Condition:
        parts = [self.all()]
        while self.taken("or", "||"):
            parts.append(self.all())
        found: Condition = ("any", tuple(parts)) if len(parts) > 1 else parts[0]
        if self.taken("implies"):
            return ("any", (("not", found), self.any()))
        return found

    def all(self) -> Condition:
        parts = [self.one()]
        while self.taken("and", "&&"):
            parts.append(self.one())
        return ("all", tuple(parts)) if len(parts) > 1 else parts[0]

    def one(self) -> Condition:
        if self.taken("not", "!"):
            return ("not", self.one())
        if self.taken("true"):
            return ("all", ())
        if self.taken("false"):
            return ("any", ())
        if self.taken("exists"):
            return self.some()
        if self.peek() == "(" and self.logical.get(self.place):
            self.take()
            inner = self.any()
            self.take(")")
            return inner
        return self.chain()

    def some(self) -> Condition:
        clause = self.clause
        bracket = self.taken("(")
        shadowed = dict(clause.names)
        free: list[str] = []
        while True:
            name = self.name()
            if self.taken("="):
                clause.names[name] = self.sum()
                if clause.names[name].denominator != 1:
                    self.fail()
            else:
                own = f"{name}@{len(clause.bound)}"
                clause.bound.add(own)
                clause.names[name] = clause.atom(Atom("variable", own))
                free.append(own)
            if not self.taken(","):
                break
        self.take(":")
        inner = self.any()
        if bracket:
            self.take(")")
        clause.names = shadowed
        return ("some", tuple(free), inner) if free else inner

    def chain(self) -> Condition:
        left = self.listed()
        parts: list[Condition] = []
        while self.peek() in _COMPARED:
            sign = self.take()
            right = self.listed()
            parts += [self.compared(a, sign, b) for a in left for b in right]
            left = right
        if not parts:
            self.fail()
        return ("all", tuple(parts)) if len(parts) > 1 else parts[0]

    def listed(self) -> list[Linear]:
        found = [self.sum()]
        while self.taken(","):
            found.append(self.sum())
        return found

    def compared(self, left: Linear, sign: str, right: Linear) -> Condition:
        if sign in {"<", "<="}:
            left, right = right, left
        apart = left.plus(right.scaled(-1))
        apart = Linear(apart.terms, apart.constant)  # the denominator is positive, so the sign stays
        if sign in {"=", "!="}:
            return ("zero", apart) if sign == "=" else ("not", ("zero", apart))
        return ("least", Linear(apart.terms, apart.constant - (sign in {"<", ">"})))

    def sum(self) -> Linear:
        total = self.factor()
        while self.peek() in {"+", "-"}:
            negative = self.take() == "-"
            part = self.factor()
            total = total.plus(part.scaled(-1) if negative else part)
        return total

    def factor(self) -> Linear:
        """Return one term; a remainder binds closer than the coefficient before it."""
        token = self.peek()
        if self.taken("-"):
            return self.factor().scaled(-1)
        if token.isdigit():
            self.take()
            if self.taken("*") or (self.peek()[:1].isalpha() or self.peek()[:1] == "_"):
                if self.tokens[self.place - 1] == "*" or self.peek() not in _WORDS:
                    return self.factor().scaled(int(token))
                if self.peek() in {"floor", "ceil", "floord", "ceild", "min", "max"}:
                    self.fail()
            base = Linear((), int(token))
        elif self.taken("("):
            base = self.sum()
            self.take(")")
        elif token in {"floor", "ceil"}:
            self.take(), self.take("(")
            base = self.rounded(self.sum(), token == "ceil")
            self.take(")")
        elif token in {"floord", "ceild"}:
            self.take(), self.take("(")
            inner = self.sum()
            self.take(",")
            base = self.rounded(self.divided(inner), token == "ceild")
            self.take(")")
        elif token in {"min", "max"}:
            self.take(), self.take("(")
            sums = self.listed()
            self.take(")")
            if any(part.denominator != 1 for part in sums):
                self.fail()
            base = self.clause.atom(Atom(token, sums=tuple(sums)))
        else:
            name = self.name()
            if name not in self.clause.names:
                self.fail()
            base = self.clause.names[name]
        return self.after(base)

    def after(self, base: Linear) -> Linear:
        """Return a base with what follows it: a remainder, a quotient, a factor."""
        while self.peek() in {"mod", "%", "/", "*"}:
            sign = self.take()
            if sign == "/":
                base = self.divided(base)
            elif sign == "*":
                other = self.factor()
                if other.terms and base.terms:
                    self.fail()
                base, other = (base, other) if other.terms == () else (other, base)
                if other.denominator != 1:
                    self.fail()
                base = base.scaled(other.constant)
            else:
                if not self.peek().isdigit() or not int(self.peek()) or base.denominator != 1:
                    self.fail()
                base = self.clause.atom(Atom("mod", sums=(base,), modulus=int(self.take())))
        return base

    def divided(self, base: Linear) -> Linear:
        if not self.peek().isdigit() or not int(self.peek()):
            self.fail()
        return Linear(base.terms, base.constant, base.denominator * int(self.take()))

    def rounded(self, inner: Linear, up: bool) -> Linear:
        if inner.denominator == 1:
            return inner
        if up:
            return self.clause.atom(Atom("floor", sums=(inner.scaled(-1),))).scaled(-1)
        return self.clause.atom(Atom("floor", sums=(inner,)))


def _shape(params: Mapping[str, Array], places: Sequence[Array]) -> tuple[int, ...]:
    return np.broadcast_shapes(*(np.shape(array) for array in (*params.values(), *places)))


def _atoms(
    clause: Clause, params: Mapping[str, Array], places: Sequence[Array], given: int | None = None
) -> list[Array | None]:
    """Return the values of the atoms; None for those that depend on what a quantifier introduces or is not given.

    Args:
        clause: The clause.
        params: Values of the parameters.
        places: Values of the first places.
        given: How many places are given; all where it is None.
    """
    known: list[Array | None] = []
    for atom in clause.atoms:
        if atom.kind != "variable":
            known.append(_rounded(atom, known))
        elif atom.name.startswith("#"):
            place = int(atom.name[1:])
            known.append(places[place] if place < (len(places) if given is None else given) else None)
        else:
            known.append(params.get(atom.name))
    return known


def _reach(value: Array) -> int:
    """Return the greatest magnitude in an array, at least 1."""
    return max(abs(int(value.min())), abs(int(value.max())), 1) if value.size else 1


def _total(linear: Linear, known: Sequence[Array | None]) -> tuple[Any, int]:
    """Return the numerator of a sum and a bound on its magnitude; None where an atom is not known."""
    reach = max(abs(linear.constant), linear.denominator)
    values = []
    for atom, a in linear.terms:
        value = known[atom]
        if value is None:
            return None, 0
        values.append((a, value))
        reach += abs(a) * _reach(value)
    kind: Any = object if reach >= SAFE else np.int64
    total: Any = np.asarray(linear.constant, dtype=kind)
    for a, value in values:
        total = total + a * value.astype(kind)
    return np.asarray(total), reach


def _exact(linear: Linear, known: Sequence[Array | None], shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the value of a sum and where it is an integer."""
    total, _ = _total(linear, known)
    total = np.broadcast_to(total, shape)
    if linear.denominator == 1:
        return total, np.ones(shape, dtype=bool)
    return total // linear.denominator, np.asarray(total % linear.denominator == 0, dtype=bool)


def _unknown(linear: Linear, known: Sequence[Array | None]) -> bool:
    return any(known[atom] is None for atom, _ in linear.terms)


def _holds(
    clause: Clause, params: Mapping[str, Array], places: Sequence[Array], known: list[Array | None] | None = None
) -> Array:
    """Return where the condition of a clause holds, the places equal to what the tuples say."""
    known = _atoms(clause, params, places) if known is None else known
    shape = _shape(params, places)
    inside = np.asarray(_decided(clause, clause.condition, known, shape), dtype=bool)
    inside = np.broadcast_to(inside, shape).copy()
    for value, place in zip(places, clause.places, strict=False):
        if len(place.terms) == 1 and clause.atoms[place.terms[0][0]].name.startswith("#") and not place.constant:
            atom, factor = place.terms[0]
            if factor == 1 and place.denominator == 1 and known[atom] is value:
                continue
        if _unknown(place, known):
            raise UnreadError("a place is not known")
        total, whole = _exact(place, known, shape)
        inside &= whole & np.asarray(total == value, dtype=bool)
    return inside


def _decided(clause: Clause, condition: Condition, known: list[Array | None], shape: tuple[int, ...]) -> Array:
    kind = condition[0]
    if kind in {"all", "any"}:
        answer = np.full(shape, kind == "all")
        for part in condition[1]:
            found = _decided(clause, part, known, shape)
            answer = answer & found if kind == "all" else answer | found
        return answer
    if kind == "not":
        return ~_decided(clause, condition[1], known, shape)
    if kind == "some":
        return _some(clause, condition, known, shape)
    total, _ = _total(condition[1], known)
    if total is None:
        raise UnreadError("a quantifier reaches outside its condition")
    return np.broadcast_to(np.asarray(total == 0 if kind == "zero" else total >= 0, dtype=bool), shape)


def _some(clause: Clause, condition: Condition, known: list[Array | None], shape: tuple[int, ...]) -> Array:
    """Decide quantified integers: one that occurs linearly by its bounds, others by trying all values they can have."""
    _, names, inner = condition
    if 0 in shape:
        return np.zeros(shape, dtype=bool)
    if inner[0] == "any":
        answer = np.zeros(shape, dtype=bool)
        for part in inner[1]:
            answer = answer | _some(clause, ("some", names, part), known, shape)
        return answer
    answer = np.ones(shape, dtype=bool)
    for own, parts in _grouped(clause, names, inner):
        group: Condition = ("all", tuple(parts))
        if not own:
            answer = answer & _decided(clause, group, known, shape)
            continue
        found = _linear_some(clause, own[0], group, known, shape) if len(own) == 1 else None
        answer = answer & (_tried_some(clause, own, group, known, shape) if found is None else found)
    return answer


def _grouped(clause: Clause, names: Sequence[str], inner: Condition) -> list[tuple[list[str], list[Condition]]]:
    """Return the parts of a conjunction in groups that share no quantified integer, each with its integers."""
    own = {clause.known[Atom("variable", name)]: name for name in names}
    below: list[set[int]] = []
    for place, atom in enumerate(clause.atoms):
        within = {place} if place in own else set()
        below.append(within.union(*(below[k] for part in atom.sums for k, _ in part.terms)))
    flat: list[Condition] = []
    waiting = [inner]
    while waiting:
        part = waiting.pop()
        if part[0] == "all":
            waiting += part[1]
        else:
            flat.append(part)
    groups: list[tuple[set[int], list[Condition]]] = []
    for part in flat:
        used, mine = _used(part, below), [part]
        apart = []
        for others, listed in groups:
            if used & others:
                used, mine = used | others, mine + listed
            else:
                apart.append((others, listed))
        groups = [*apart, (used, mine)]
    return [([own[place] for place in sorted(used)], parts) for used, parts in groups]


def _used(condition: Condition, below: Sequence[set[int]]) -> set[int]:
    """Return the quantified integers that a condition depends on."""
    if condition[0] in {"all", "any"}:
        return set().union(*(_used(part, below) for part in condition[1]))
    if condition[0] == "not":
        return _used(condition[1], below)
    if condition[0] == "some":
        return _used(condition[2], below)
    return set().union(*(below[k] for k, _ in condition[1].terms))


def _linear_some(
    clause: Clause, name: str, inner: Condition, known: list[Array | None], shape: tuple[int, ...]
) -> Array | None:
    """Decide one quantified integer in a conjunction of sums, no floor over it; None where it is otherwise."""
    own = clause.known[Atom("variable", name)]
    if any(_depends(clause, place, own) for place in range(own + 1, len(clause.atoms))):
        return None
    flat: list[Condition] = []
    waiting = [inner]
    while waiting:
        part = waiting.pop()
        if part[0] == "all":
            waiting += part[1]
        elif part[0] in {"zero", "least"}:
            flat.append(part)
        else:
            return None
    holds = np.ones(shape, dtype=bool)
    low: Any = None
    high: Any = None
    fixed: list[tuple[int, Array]] = []
    for part in flat:
        factor = dict(part[1].terms).get(own, 0)
        rest = Linear(tuple((k, a) for k, a in part[1].terms if k != own), part[1].constant)
        found, _ = _total(rest, known)
        if found is None:
            return None
        total = np.broadcast_to(found.astype(object), shape)
        if not factor:
            holds = holds & np.asarray(total == 0 if part[0] == "zero" else total >= 0, dtype=bool)
        elif part[0] == "zero":
            fixed.append((factor, total))
        elif factor > 0:  # x >= -total / factor, rounded up
            bound = -(total // factor)
            low = bound if low is None else np.maximum(low, bound)
        else:
            bound = total // -factor
            high = bound if high is None else np.minimum(high, bound)
    if fixed:
        factor, total = fixed[0]
        holds = holds & np.asarray(total % factor == 0, dtype=bool)
        value = -total // factor
        low = value if low is None else np.maximum(low, value)
        high = value if high is None else np.minimum(high, value)
        for factor, total in fixed[1:]:
            holds = holds & np.asarray(factor * value + total == 0, dtype=bool)
    if low is not None and high is not None:
        holds = holds & np.asarray(low <= high, dtype=bool)
    return holds


def _depends(clause: Clause, place: int, own: int) -> bool:
    """Return whether an atom is made over a variable, directly."""
    return any(atom == own for part in clause.atoms[place].sums for atom, _ in part.terms)


def _tried_some(
    clause: Clause, names: Sequence[str], inner: Condition, known: list[Array | None], shape: tuple[int, ...]
) -> Array:
    """Decide quantified integers by trying: all values that interval arithmetic leaves for these points."""
    from layoutalg.affine.spans import narrowed

    own = [clause.known[Atom("variable", name)] for name in names]
    spans: list[tuple[int | None, int | None]] = [(None, None)] * len(clause.atoms)
    for place, value in enumerate(known):
        if value is not None and value.size:
            spans[place] = (int(value.min()), int(value.max()))
    found = narrowed(clause, inner, spans)
    if found is None:
        return np.zeros(shape, dtype=bool)
    lines, count = [], 1
    for place in own:
        low, high = found[place]
        if low is None or high is None:
            raise UnreadError("a quantified integer without bounds")
        lines.append((low, high))
        count *= high - low + 1
    size = int(np.prod(shape, dtype=np.int64))
    if count * size > TRIES:
        if size <= 1 or count > TRIES:
            raise UnreadError("too many values of quantified integers")
        return _halved(clause, names, inner, known, shape, size)
    grid = np.indices([high - low + 1 for low, high in lines]).reshape(len(lines), -1)
    longer = (*shape, 1)
    fuller: list[Array | None] = []
    for place, value in enumerate(known):
        if place in own:
            at = own.index(place)
            line = grid[at].astype(object if max(map(abs, lines[at])) >= SAFE else np.int64) + lines[at][0]
            fuller.append(line.reshape((1,) * len(shape) + (-1,)))
        elif value is None:
            fuller.append(None)
        else:
            fuller.append(np.broadcast_to(value, shape).reshape(longer) if np.ndim(value) else value)
    for place, atom in enumerate(clause.atoms):
        if fuller[place] is None and atom.sums:
            fuller[place] = _rounded(atom, fuller)
    return np.asarray(_decided(clause, inner, fuller, (*shape, grid.shape[1])).any(axis=-1), dtype=bool)


def _halved(
    clause: Clause, names: Sequence[str], inner: Condition, known: list[Array | None], shape: tuple[int, ...], size: int
) -> Array:
    """Decide the points in two halves: fewer points leave fewer values to try."""
    flat = [None if value is None else np.broadcast_to(value, shape).reshape(-1) for value in known]
    clock.check("quantified integers")
    parts = []
    for half in (slice(0, size // 2), slice(size // 2, size)):
        mine = [None if value is None else value[half] for value in flat]
        parts.append(_tried_some(clause, names, inner, mine, (len(range(size)[half]),)))
    return np.concatenate(parts).reshape(shape)


def _rounded(atom: Atom, known: Sequence[Array | None]) -> Array | None:
    """Return the value of an atom, None where one of its sums is not known."""
    parts = [_total(part, known)[0] for part in atom.sums]
    if any(part is None for part in parts):
        return None
    if atom.kind == "floor":
        return np.asarray(parts[0] // atom.sums[0].denominator)
    if atom.kind == "mod":
        return np.asarray(parts[0] % atom.modulus)
    answer = parts[0]
    for other in parts[1:]:
        answer = np.minimum(answer, other) if atom.kind == "min" else np.maximum(answer, other)
    return np.asarray(answer)

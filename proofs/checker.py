"""Stand-alone checker of layoutalg certificates: ``python checker.py [--seconds S] FILE|FOLDER ...``.

Exit code: 0 proved, 1 refuted (with the first wrong fact), 2 unknown (a solver is missing, or a limit was reached), 64
unreadable. It needs Python 3.11 and numpy and imports nothing of layoutalg: copy it, read it, run it. A certificate is
JSON, {"schema": SCHEMA, "kind": ..., "statement": ..., "evidence": ..., "seal": ...}: the statement is the whole claim,
the evidence makes it quick to check, the seal is the SHA-256 of the rest. Every fact is recomputed from the statement.
The seal is compared last, but before anything slow.

Certificates are untrusted, so a check is bounded: in time (S seconds per certificate, default 60), in the points at
which functions are evaluated, in the steps that their stages take there, estimated in advance, and in the numbers in
memory at a time.
"""

import contextlib
import contextvars
import functools
import hashlib
import importlib
import itertools
import json
import math
import pathlib
import re
import sys
import threading
import time

import numpy as np

SCHEMA, VERDICTS = "layoutalg/certificate/2", {0: "proved", 1: "refuted", 2: "unknown", 64: "unreadable"}
POINTS, SECONDS = 2**22, 20  # most points evaluated for one fact; solver time limit
TIME = 60  # default seconds for one certificate
STEPS = 2**32  # most steps on 64-bit words for one fact: points times steps per point
LONG = 2**24  # steps beyond which the seal is compared first
CELLS = 2**24  # most numbers in memory at a time
BLOCK = 2**14  # points evaluated together
NATURAL, POSITIVE = range(2**4096), range(1, 2**4096)


class Stop(Exception):
    """Ends a check that does not prove its certificate, with the verdict's code and the reason."""


def need(condition, fact, code=1, **numbers):
    """Continue if the condition holds; otherwise refute (code 2: leave unknown) with this fact and its numbers."""
    if not condition:
        raise Stop(code, ", ".join([fact, *(f"{name} {short(value)}" for name, value in numbers.items())]))


def can(condition, why):
    need(condition, why, 2)


class Task:
    """One check: its deadline, and the document whose seal is still to be compared."""

    def __init__(self, seconds=math.inf, document=None):
        self.end, self.document = time.monotonic() + seconds, document


FOREVER = Task()
TASK = contextvars.ContextVar("task", default=FOREVER)


def tick():
    """Stop at the deadline; called once per step in every loop that a certificate controls."""
    can(time.monotonic() <= TASK.get().end, "the time for this check is over")


@contextlib.contextmanager
def timed(seconds, document=None):
    """Run a block as one check with a time limit."""
    token = TASK.set(Task(seconds, document))
    try:
        yield
    finally:
        TASK.reset(token)


def sealed():
    """Refute if the seal does not match."""
    task = TASK.get()
    if task.document is not None:
        given, expected = task.document["seal"], seal(task.document)
        need(given == expected, "the seal is of another certificate", got=given, expected=expected)
        task.document = None


def short(value):
    return text if len(text := ascii(value)) <= 120 else f"{text[:100]}... ({len(text)} characters)"


def read(value, form, where):
    """Return a value of a form, or refute. Forms: int, str or a range; a set of texts; [form] for a list of any length;
    (form, form) for a list of this length; {"name": form, "name?": form} for an object with exactly these entries,
    returned as a list (None for a missing optional one); a function of (value, where)."""
    if isinstance(form, dict):
        need(isinstance(value, dict), f"{where} must be an object", got=value)
        forms = {name.rstrip("?"): kind for name, kind in form.items()}
        for name in sorted({*forms, *value}):
            need(name in forms, f"{where} has an unknown entry", name=name)
            need(name in value or f"{name}?" in form, f"{where} lacks an entry", name=name)
        return [read(value[name], kind, f"{where}.{name}") if name in value else None for name, kind in forms.items()]
    if isinstance(form, (list, tuple)):
        need(isinstance(value, list), f"{where} must be a list", got=value)
        forms = form * len(value) if isinstance(form, list) else form
        need(len(value) == len(forms), f"{where} has a wrong length", got=len(value), expected=len(forms))
        found = []
        for place, (entry, kind) in enumerate(zip(value, forms)):
            if place % 256 == 0:
                tick()
            found.append(read(entry, kind, f"{where}[{place}]"))
        return found
    if not isinstance(form, (set, range, type)):
        return form(value, where)
    kind = form if isinstance(form, type) else int if isinstance(form, range) else str
    if type(value) is not kind or (kind is not form and value not in form):
        need(False, f"{where} is not of {short(sorted(form) if isinstance(form, set) else form)}", got=value)
    return value


# --- functions -------------------------------------------------------------------------------------------------------
# A function maps i = 0 .. size - 1 through its stages, each from a list of integers to a list of integers:
#   ["split", [e0, e1, ...]]     one number to its digits, fastest first; the last digit is the remaining quotient
#   ["affine", rows, offsets]    a matrix over Z and a vector
#   ["mod", [m0, m1, ...]]       least non-negative residues; modulus 0: unchanged
#   ["xor", columns, constant]   the low len(columns) bits of one number to constant xor the columns of the set bits;
#                                the rest of the number is added (swizzles and matrices over F2 are such stages)
#   ["table", values]            one number to the value at that index
#   ["pieces", [piece, ...]]     the first piece whose constraints hold; undefined if none does. A piece is
#       [floors, constraints, values]: floor [coefficients, constant, divisor] over the inputs and earlier floors,
#       constraint [coefficients, constant, "=" or ">="], value [coefficients, constant], both over inputs and floors
#   ["fork", stages, stages, ...]    the values of each list of stages side by side
# A function with "inputs": n instead of "size" is defined on all of Z^n (parameters, then coordinates).
PIECE = ([([int], int, POSITIVE)], [([int], int, {"=", ">="})], [([int], int)])
STAGES = {
    "split": ([POSITIVE],),
    "affine": ([[int]], [int]),
    "mod": ([NATURAL],),
    "pieces": ([PIECE],),
    "table": ([int],),
    "xor": ([NATURAL], NATURAL),
}


def stages(value, where):
    for place, stage in enumerate(read(value, [lambda stage, _: stage], where)):
        at, named = f"{where}[{place}]", isinstance(stage, list) and stage and isinstance(stage[0], str)
        need(named and stage[0] in {*STAGES, "fork"}, f"{at} is not a stage", got=stage)
        read(stage[1:], STAGES.get(stage[0]) or (stages,) * (len(stage) - 1), at)
        need(stage[0] in ("mod", "fork", "xor") or stage[1], f"{at} is empty", got=stage)
    return value


SIZED, ANY = {"size": NATURAL, "stages": stages}, {"size?": NATURAL, "inputs?": range(1, 65), "stages": stages}


def follow(path, values, way):
    """Map values through stages in one way of computing: numbers, sums of local terms, solver terms."""
    for name, *given in path:
        tick()
        need(name in ("affine", "mod", "pieces", "fork") or len(values) == 1, f"a stage {name} takes one number")
        if name == "split":
            for extent in given[0][:-1]:
                values = [*values[:-1], way.rest(values[-1], extent), way.floor(values[-1], extent)]
        elif name == "affine":
            need(len(given[0]) == len(given[1]), "a stage affine has a wrong number of offsets")
            values = [way.row(row, constant, values) for row, constant in zip(*given)]
        elif name == "mod":
            need(len(given[0]) == len(values), "a stage mod has a wrong number of moduli")
            values = [way.rest(value, m) if m else value for value, m in zip(values, given[0])]
        elif name == "fork":
            values = [value for part in given for value in follow(part, values, way)]
            need(len(values) <= 1024, "a fork has more than 1024 values")
        else:
            values = way.pieces(values, *given) if name == "pieces" else [getattr(way, name)(values[0], *given)]
    return values


class Way:
    """Base of all ways of computing, built on ``row``, ``floor``, ``flipped`` (the xor of bits), and for pieces
    ``both`` and ``either`` of some facts, and ``pick`` (one number where a fact holds, otherwise the other)."""

    def rest(self, value, divisor):
        return self.row((1, -divisor), 0, (value, self.floor(value, divisor)))

    def xor(self, value, columns, constant):
        bits = [self.rest(self.floor(value, 1 << place), 2) for place in range(len(columns))]
        answer = self.row([1] + [-1 << place for place in range(len(bits))], 0, [value, *bits])
        for place in range(max([*columns, constant]).bit_length()):
            odd = [self.row((), constant >> place & 1, ()), *(b for b, c in zip(bits, columns) if c >> place & 1)]
            answer = self.row((1, 1 << place), 0, (answer, self.flipped(*odd)))
        return answer

    def table(self, *_):
        can(False, "this rule does not support tables and pieces")

    def pieces(self, values, pieces):
        answer, some = [self.row((), 0, ())] * len(pieces[0][2]), []
        for floors, constraints, forms in reversed(pieces):
            need(len(forms) == len(answer), "pieces have different numbers of values", got=len(forms))
            known = list(values)
            for row, constant, divisor in floors:
                known.append(self.floor(self.row(row, constant, known), divisor))
            sides = [(self.row(row, constant, known), relation) for row, constant, relation in constraints]
            some.append(self.both([side == 0 if relation == "=" else side >= 0 for side, relation in sides]))
            answer = [self.pick(some[-1], self.row(*form, known), old) for form, old in zip(forms, answer)]
        self.ok = self.both([self.ok, self.either(some)])
        return answer

    def terms(self, row, values):
        tick()
        need(len(row) == len(values), "a row has a wrong length", got=len(row), expected=len(values))
        return [(factor, value) for factor, value in zip(row, values) if factor]


class Numbers(Way):
    """Arrays of integers, Python's where 64 bits could overflow; ``ok`` says where a value is defined."""

    def __init__(self, points, tables=None):
        self.ok, self.tables = np.ones(points, dtype=bool), {} if tables is None else tables

    def both(self, facts):
        return np.all([self.ok | True, *facts], axis=0)

    def either(self, facts):
        return np.any(facts, axis=0)

    def pick(self, fact, one, other):
        return np.where(fact, one, other)

    def row(self, row, constant, values):
        given = self.terms(row, values)
        tops = [max(abs(int(value.max(initial=0))), abs(int(value.min(initial=0)))) for _, value in given]
        wide = abs(constant) + sum(abs(factor) * (top or 1) for (factor, _), top in zip(given, tops)) >= 2**62
        start = np.full(self.ok.shape, constant, dtype=object if wide else np.int64)
        return sum((factor * (value.astype(object) if wide else value) for factor, value in given), start)

    def floor(self, value, divisor):
        return (value if divisor < 2**62 else value.astype(object)) // divisor

    def flipped(self, one, *others):
        for other in others:
            tick()
            one = one ^ other
        return one

    def table(self, value, values):
        value = np.where(self.ok, value, 0)
        out = np.asarray((value < 0) | (value >= len(values)), dtype=bool)
        need(not out.any(), "a number has no place in the table", got=value[out][:1].tolist(), entries=len(values))
        if id(values) not in self.tables:  # the same list for all blocks
            self.tables[id(values)] = np.array(values, dtype=object if max(map(abs, values)) >= 2**62 else np.int64)
        return self.tables[id(values)][value.astype(np.int64)]


class Sums(Way):
    """Sums ``constant + sum of coefficient * atom``: an atom is a digit or a number that depends on a few digits, its
    support. The difference of two such sums is one too, and is 0 everywhere if, for each support, it is 0 wherever all
    digits outside that support are 0: by inclusion and exclusion, the part that depends on exactly the digits of a set
    is an alternating sum of values at points whose other digits are 0."""

    def pieces(self, *_):
        self.table()

    def __init__(self, digits):
        self.atoms, self.keys, self.parities = [(0, n - 1, frozenset([i])) for i, n in enumerate(digits)], {}, {}
        self.held = 0

    def atom(self, key, value, low, high):
        """Return a number within [low, high] that depends on the digits of a value, the same for the same key."""
        if low == high:
            return low, {}
        if key not in self.keys:
            support = set()
            for atom in value[1]:
                tick()
                support |= self.atoms[atom][2]
            self.held += len(value[1]) + len(support)
            can(self.held <= CELLS >> 3, "these sums have too many terms; another rule has to decide")
            self.keys[key] = len(self.atoms)
            self.atoms.append((low, high, frozenset(support)))
        return 0, {self.keys[key]: 1}

    def row(self, row, constant, values):
        total = {}
        for factor, (own, parts) in self.terms(row, values):
            tick()
            constant += factor * own
            for atom, c in parts.items():
                total[atom] = total.get(atom, 0) + factor * c
        return constant, {atom: c for atom, c in total.items() if c}

    def floor(self, value, divisor):
        """Factor out the multiples of the divisor; the remainder is an atom, or constant if it cannot carry."""
        whole = {atom: abs(c) // divisor * (1 if c > 0 else -1) for atom, c in value[1].items()}
        left = value[0] % divisor, {atom: c - whole[atom] * divisor for atom, c in value[1].items() if c % divisor}
        ends = [sorted(c * end for end in self.atoms[atom][:2]) for atom, c in left[1].items()]
        low, high = (left[0] + sum(end[side] for end in ends) for side in (0, 1))
        carry = self.atom(("floor", divisor, frozen(left)), left, low // divisor, high // divisor)
        return self.row((1, 1), value[0] // divisor, ((0, whole), carry))

    def flipped(self, *values):
        """Return the xor of numbers in {0, 1}, as the parity of a set of atoms."""
        flip, odd = 0, frozenset()
        for value in values:
            tick()
            if value[1] and (value[0], *value[1].values()) not in ((0, 1), (1, -1)):
                value = self.atom(("bit", frozen(value)), value, 0, 1)
            flip ^= value[0]
            for atom in value[1]:
                odd ^= self.parities.get(atom, frozenset([atom]))
        value = 0, dict.fromkeys(odd, 1)
        if len(odd) > 1:
            value = self.atom(("parity", odd), value, 0, 1)
            self.parities[next(iter(value[1]))] = odd
        return self.row((1 - 2 * flip,), flip, (value,))


def frozen(value):
    return value[0], frozenset(value[1].items())


class Terms(Way):
    """Solver terms; ``ok`` says where a value is defined."""

    def __init__(self, smt, context):
        self.smt, self.zero = smt, smt.IntVal(0, context)
        self.ok = self.yes = smt.BoolVal(True, context)

    def row(self, row, constant, values):
        return sum((f * v for f, v in self.terms(row, values)), self.zero + constant)

    def floor(self, value, divisor):
        return value / divisor  # of integers: rounded down

    def flipped(self, *values):
        return functools.reduce(lambda one, two: self.smt.If(one == two, self.zero, self.zero + 1), values)

    def both(self, facts):
        return self.smt.And([self.yes, self.yes, *facts])

    def either(self, facts):
        return self.smt.Or(facts + facts)

    def pick(self, fact, one, other):
        return self.smt.If(fact, one, other)


def values_at(path, columns, tables=None) -> tuple:
    """Evaluate stages at points; return the outputs, one array each, and where they are defined."""
    return follow(path, columns, way := Numbers(len(columns[0]), tables)), way.ok


def value(path, *numbers):
    """Return the values of a function at one point, None if undefined."""
    values, (ok,) = values_at(path, [np.array([number], dtype=object) for number in numbers])
    return [int(value[0]) for value in values] if ok else None


# --- cost of an evaluation --------------------------------------------------------------------------------------------
def weight(bits):
    """Return the cost of a step on numbers of this many bits, in steps on 64-bit words; roughly as measured."""
    return 1 if bits < 62 else 16 + bits // 64


def tallest(numbers):
    return max(map(abs, numbers), default=0).bit_length()


def effort(path, bits):
    """Return the steps of stages at a point of this many bits, their peak count of numbers, and the bits after."""
    steps, widest = 1, 1
    for name, *given in path:
        tick()
        here, held = 0, 1
        if name == "fork":
            parts = [effort(part, bits) for part in given]
            here, held, bits = (
                sum(part[0] for part in parts),
                sum(part[1] for part in parts),
                max([bits, *(part[2] for part in parts)]),
            )
        elif name == "pieces":
            for floors, constraints, forms in given[0]:
                rows = [form[0] for form in (*floors, *constraints, *forms)]
                here += 2 * len(rows) + sum(map(len, rows))
                held = max(held, len(floors) + len(constraints) + 2 * len(forms))
                bits = max([bits, *(bits + tallest([*form[0], form[1]]) for form in (*floors, *constraints, *forms))])
            held += len(given[0])
            here *= weight(bits)
        elif name == "xor":
            columns, tall = given[0], tallest([*given[0], given[1]])
            here = 4 * len(columns) + 2 * tall + sum(column.bit_count() for column in columns)
            held, bits = len(columns), max(bits, tall, len(columns)) + 1
            here *= weight(bits)
        elif name == "affine":
            bits += max((tallest([*row, len(row)]) for row in given[0]), default=0) + tallest(given[1])
            here, held = weight(bits) * sum(1 + len(row) - row.count(0) for row in given[0]), len(given[0])
        else:
            bits = max(bits, tallest(given[0]))
            here, held = (
                weight(bits) * (1 if name == "table" else 3 * len(given[0])),
                len(given[0]) if name != "table" else 1,
            )
        steps, widest = steps + here, max(widest, held)
    return steps, widest, bits


def afford(count, bits, *paths):
    """Leave unknown what takes too many steps; otherwise return how many points to evaluate together."""
    can(count <= POINTS, f"{count} points are too many; another rule has to decide")
    efforts = [effort(path, bits) for path in paths]
    steps = max(count, 256) * sum(part[0] for part in efforts)  # a step on few numbers costs no less
    can(steps <= STEPS, f"{steps} steps at {count} points are too many; another rule has to decide")
    if steps > LONG:
        sealed()
    return max(16, min(BLOCK, CELLS // 16 // max(part[1] * weight(part[2]) for part in efforts)))


def sweep(count, bits, start, *paths):
    """Yield, per block of points, start(their numbers) and the results of each list of stages there."""
    size, tables = afford(count, bits, *paths), {}
    for first in range(0, max(count, 1), size):
        columns = start(np.arange(first, min(first + size, count), dtype=np.int64))
        yield columns, [values_at(path, columns, tables) for path in paths]


def hold(cells):
    """Leave unknown what needs too much memory."""
    can(cells <= CELLS, f"{cells} numbers in memory are too many")
    if cells > LONG >> 4:
        sealed()


# --- equality and what reduces to it ---------------------------------------------------------------------------------
BY = {"by": {"table", "digits", "solvers"}, "digits?": [range(2, 2**4096)]}


def same(one, two, by, size, inputs=None, what="the functions differ"):
    """Refute unless two lists of stages have the same values everywhere. By table: at every point; by digits, whose
    product is the size: as ``Sums``, up to a final ``mod`` common to both; by solvers: z3 and cvc5."""
    rule, digits = by
    need((rule == "digits") == (digits is not None), "digits are for the rule digits", by=rule, got=digits)
    if rule == "solvers":
        return solved(one, two, size, inputs, what)
    need(size is not None, "a function of all points is for solvers", by=rule)
    if rule == "table":
        return f"at {compare(one, two, size, what)} points"
    few = len(digits) < max(1, size.bit_length())  # each is at least 2; a product of very many is slow
    need(few and math.prod(digits) == size, "the product of the digits is not the size", got=digits)
    way, weights = Sums(digits), list(itertools.accumulate(digits, lambda a, b: a * b, initial=1))[:-1]
    start = [(0, dict(enumerate(weights)))]
    few = [digit * weight for extent, weight in zip(digits, weights) for digit in range(min(extent, 64))]
    few = np.array([*few, size - 1], dtype=object)
    wide = size.bit_length()
    compare(one, two, len(few), what, lambda at: [few[at]], wide)  # refutes early what would need large boxes
    modular = one and two and one[-1] == two[-1] and one[-1][0] == "mod"
    left, right = (follow(path[:-1] if modular else path, start, way) for path in (one, two))
    atoms = {atom for pair in zip(left, right) for atom in way.row((1, -1), 0, pair)[1]}
    supports = {way.atoms[atom][2] for atom in atoms} | {frozenset()}
    boxes = []
    for box in supports:
        tick()
        if not any(box < other for other in supports):
            boxes.append(sorted(box))
    counts = [math.prod(digits[place] for place in box) for box in boxes]
    afford(sum(counts), wide, one, two)
    for box, count in zip(boxes, counts):
        extents, strides = [digits[place] for place in box], [weights[place] for place in box]

        def corner(at, extents=extents, strides=strides):
            way = Numbers(len(at))
            return follow(
                [["split", extents], ["affine", [strides], [0]]] if extents else [["affine", [[0]], [0]]], [at], way
            )

        compare(one, two, count, what, corner, wide)
    return f"on {len(boxes)} boxes of {len(digits)} digits"


def points(count):
    can(count <= POINTS, f"{count} points are too many; another rule has to decide")
    return np.arange(count, dtype=np.int64)


def compare(one, two, count, what, start=lambda at: [at], bits=32):
    """Refute if two lists of stages differ at one of ``count`` points; return the count."""
    for columns, ((left, left_ok), (right, right_ok)) in sweep(count, bits, start, one, two):
        need(len(left) == len(right), "the functions have different numbers of values")
        differ = [np.asarray(left_ok & (mine != other), dtype=bool) for mine, other in zip(left, right)]
        wrong = (left_ok != right_ok) | np.any(differ, axis=0)
        if wrong.any():
            at = [int(column[np.argmax(wrong)]) for column in columns]
            need(False, what, at=at, got=value(one, *at), expected=value(two, *at))
    return count


def solved(one, two, size, inputs, what):
    """Ask z3 and cvc5, if installed, for a point where two functions differ."""
    answers = {}
    for name, module, limit in (("z3", "z3", "timeout"), ("cvc5", "cvc5.pythonic", "tlimit-per")):
        try:
            smt = importlib.import_module(module)
        except ImportError:
            continue
        context = smt.Context()
        start, solver = [smt.Int(f"x{place}", context) for place in range(inputs or 1)], smt.Solver(ctx=context)
        way, other = Terms(smt, context), Terms(smt, context)
        left, right = follow(one, start, way), follow(two, start, other)
        need(len(left) == len(right), "the functions have different numbers of values")
        solver.add(smt.Or([way.ok != other.ok] * 2 + [smt.And([way.ok, a != b]) for a, b in zip(left, right)]))
        solver.add([start[0] >= 0, start[0] < size] if inputs is None else [])
        left_s = min(SECONDS, TASK.get().end - time.monotonic())
        if left_s <= 0:
            break
        solver.set(limit, max(1, int(left_s * 1000)))
        overrun = threading.Timer(left_s + 0.05, getattr(context, "interrupt", int))  # z3 may ignore its limit
        overrun.daemon = True
        overrun.start()
        try:
            answers[name] = str(solver.check())
        except Exception as error:  # an interrupt may end a call with an error
            answers[name] = f"unknown ({error})"
        finally:
            overrun.cancel()
        if answers[name] == "sat":
            at = [solver.model().eval(point, True).as_long() for point in start]
    can(answers, "this rule asks solvers, and none is installed: z3-solver, cvc5")
    need(not {"sat", "unsat"} <= set(answers.values()), "the solvers disagree", **answers)
    if "sat" in answers.values():
        compare(one, two, 1, what, lambda _: [np.array([number], dtype=object) for number in at], max(64, tallest(at)))
    sure = [name for name, answer in answers.items() if answer == "unsat"]
    can(sure, f"no solver decided within {SECONDS} seconds (z3 and cvc5 are asked): {answers}")
    return f"by {' and '.join(sure)}"


def within(path, by, size, domain):
    need(domain or not size, "the domain is empty", size=size)
    same(path, [*path, ["mod", [domain]]], by, size, what=f"a value is not in the domain 0 to {domain - 1}")


def equality(statement, by):
    """f(i) = g(i) for all i."""
    (size, inputs, f), (other, others, g) = statement
    need((size is None) != (inputs is None), "a function has either a size or inputs", size=size, inputs=inputs)
    need((size, inputs) == (other, others), "f and g have different domains", f=size or inputs, g=other or others)
    return f"f = g {same(f, g, by, size, inputs, 'f and g differ')}"


def inequality(statement, evidence):
    """The values at a point differ; outside its domain a function has none."""
    (at,), got = evidence, []
    for size, inputs, path in statement:
        need((size is None) != (inputs is None), "a function has either a size or inputs", size=size, inputs=inputs)
        values_at(path, [np.zeros(int(size != 0), dtype=np.int64)] * (inputs or 1))  # or it is no function
        got.append(value(path, *at) if len(at) == (inputs or 1) and (inputs or 0 <= at[0] < size) else None)
    need(got[0] != got[1], "f and g do not differ there", at=at, value=got[0])
    return f"f is {got[0]} and g is {got[1]} at {at}"


def composition(statement, by):
    """h(i) = f(g(i)) for all i, every g(i) in the domain of f."""
    (outer, f), (size, g), (result, h) = statement
    need(size == result, "h has another size than g", got=result, expected=size)
    within(g, by, size, outer)
    return f"h = f o g {same(h, g + f, by, size, what='h is not f o g')}"


def no_composition(statement, evidence):
    """Some g(i) is not in the domain of f."""
    ((outer, f), (size, g)), (at,) = statement, evidence
    values_at(f, [np.zeros(min(outer, 1), dtype=np.int64)])  # or it is no function
    need(at < size, "evidence.at is not in the domain", got=at, size=size)
    got = value(g, at)
    need(got and len(got) == 1 and not 0 <= got[0] < outer, "g(i) is in the domain of f", i=at, got=got, size=outer)
    return f"g({at}) = {got} is not in 0 to {outer - 1}"


def inverse(statement, by):
    """left: g o f = 1; right: f o g = 1; both: left, between sets of one size."""
    *both, side = statement
    (size, f), (other, g) = both[::-1] if side == "right" else both
    need(side != "both" or size == other, "the sizes differ, so no inverse is two-sided", f=size, g=other)
    within(f, by, size, other)
    return f"{side} inverse {same(f + g, [], by, size, what='this is not an inverse')}"


def no_inverse(statement, evidence):
    """Two points of one value exclude a left inverse. A value that is not taken excludes a right inverse: some stages
    take all values of f to one number, and that value to another."""
    ((size, f), codomain, side), (points, missed, invariant, by) = statement, evidence
    given = [part is not None for part in evidence]
    need(given in ([1, 0, 0, 0], [0, 1, 1, 1]), "evidence is two points, or a missed value with an invariant and by")
    need(side != ("right" if given[0] else "left"), "two points exclude a left inverse, a missed value a right one")
    if given[0]:
        need(points[0] != points[1] and max(points) < size, "the points are not two of the domain", points=points)
        got = [value(f, point) for point in points]
        need(got[0] is not None and got[0] == got[1], "the values differ", points=points, values=got)
        return f"f({points[0]}) = f({points[1]})"
    need(missed < codomain, "the missed value is not in the codomain", got=missed, codomain=codomain)
    kept = value(f + invariant, 0)
    need(kept is not None and value(invariant, missed) != kept, "the stages do not tell the missed value", value=missed)
    constant = [["affine", [[0]] * len(kept), kept]]
    return f"{missed} is not taken: {kept} {same(f + invariant, constant, by, size, what='the stages vary')}"


SYSTEM = {"size": POSITIVE, "at": stages, "unknowns": range(65), "rows": stages}


def none_of(statement, evidence):
    """Candidates are systems of linear equations in unknown integers: for every i below its size, "rows" of i and of f
    at the points "at"(i) are equations, one after the other, each the factors of the unknowns and then the value. None
    has a solution: a listed sum of its rows [factor, i, row], modulo m unless that is 0, is 0 = not 0."""
    ((size, f), candidates), (sums,) = statement, evidence
    need(0 < len(candidates) == len(sums), "there is not one sum for each candidate", got=len(sums))
    for number, ((count, at, unknowns, rows), (modulus, terms)) in enumerate(zip(candidates, sums)):
        total = np.zeros(unknowns + 1, dtype=object)
        for factor, i, row in terms:
            got = [value(f, x) if 0 <= x < size else None for x in (i < count and value(at, i)) or [-1]]
            need(None not in got, "f has no value there", candidate=number, i=i)
            given = np.array(value(rows, i, *itertools.chain(*got)) or (), dtype=object)
            need(row * len(total) < len(given) and len(given) % len(total) == 0, "there is no such row", i=i, row=row)
            total = total + factor * given.reshape(-1, len(total))[row]
        total = total % modulus if modulus else total
        need(total[-1] and not total[:-1].any(), "its rows do not exclude it", candidate=number, sum=total.tolist())
    return f"f is none of {len(candidates)} candidates"


# --- operands and banks ----------------------------------------------------------------------------------------------
# Element (m, k) of a wgmma operand is requested at byte xored(base + layout(m + M k), swizzle) for every base that is a
# multiple of "align", addresses below 2**18. Swizzles: none, 32B, 64B, 128B. No "dtype": 16 bits; b1 counts bits.
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "b1": 1}
OPERAND = {
    "operand": {"A", "B"},
    "shape": (POSITIVE, POSITIVE),
    "layout": SIZED,
    "swizzle": range(4),
    "align": range(16, 2**18 + 1, 16),
    "dtype?": {*BITS},
    "sparse?": bool,
}  # sparse A: see depth
READ = {**OPERAND, "major": {"K", "MN"}, "rows": range(8, 257, 8), "words": [range(2**64)]}


def xored(byte, swizzle, offset=0):
    return byte ^ ((byte >> 7) - offset) % (1 << swizzle) << 4


def column(size, path):
    blocks = []
    for _, ((values, ok),) in sweep(size, 32, lambda at: [at], path):
        need(len(values) == 1 and ok.all(), "a function has not one value everywhere")
        blocks.append(values[0])
    return np.concatenate(blocks)


def depth(operand, dtype, sparse):
    return (512 if sparse and operand == "B" else 256) // BITS[dtype or "f16"]  # of k


def misread(operand, shape, layout, swizzle, align, dtype, sparse, rows, major, mode, offset, corners=None):
    """Return where [i, j, m, k] descriptors, for rows x depth elements each, read wrong bytes, as measured on a device.
    Corners are their unxored bytes at the start and a stride away along m and k; default: the only candidates."""
    need(layout[0] == math.prod(shape) <= 2**17, "the layout has another size than the operand", got=layout[0])
    deep, bits, size = depth(operand, dtype, sparse), BITS[dtype or "f16"], max(BITS[dtype or "f16"] // 8, 1)
    need((bits == 16 or major == "K") and (dtype != "b1" or not sparse), "no instruction reads this", dtype=dtype)
    parts = column(*layout).reshape(shape[1] // deep, deep, -1, rows).transpose(2, 0, 3, 1)
    (m, k), span, period = np.indices((rows, deep)), 16 << mode, (16, 256, 512, 1024)[max(mode, swizzle)]
    other, (parts, k) = (parts % 8 != k % 8) & (bits == 1), (parts // 8, k // 8) if bits == 1 else (parts, k)
    near_m, edge, near_k, turn = (span, 8, size, span // size) if major == "K" else (2, span // 2, span, 8)
    bases = range(0, period, math.gcd(align, period))
    start, far_m, far_k = corners or [
        xored(xored(parts, swizzle), mode, offset)[..., i, j, None, None]
        for i, j in ((0, 0), (edge % rows, 0), (0, turn * max(8 // bits, 1) % deep))
    ]
    far_m, far_k = far_m - start if edge < rows else 16, far_k - start if k.max() >= turn else 16  # 16: not read
    linear = start + near_m * (m % edge) + far_m * (m // edge) + near_k * (k % turn) + far_k * (k // turn)
    measured = ((start | far_m | far_k) & ~0x3FFF0 == 0) & (far_m * far_k != 0) & (linear + bases[-1] < 2**18)
    wrong = ~measured.astype(bool) | other
    for base in bases:
        tick()
        wrong = wrong | (xored(xored(parts + base, swizzle), mode, offset) - base != linear)
    return wrong


def wgmma_operand(statement, _):
    """The descriptors (for base 0; others add base / 16), next along k, read all elements."""
    operand, shape, *rest, major, rows, words = statement
    deep, few = depth(operand, *rest[-2:]), rest[-2] in ("s8", "u8", "b1") and rows > 24 and rows % 16
    whole = shape[0] % rows == shape[1] % deep == 0 and len(words) * rows * deep == math.prod(shape)
    whole &= rows == 64 if operand == "A" else not few
    need(whole, "the instructions do not cover the operand", rows=rows, shape=shape)
    words, mode = np.array(words, dtype=object).reshape(-1, shape[1] // deep, 1, 1), -(words[0] >> 62) % 4
    need(not ((words ^ (-mode % 4 << 62)) & 0xFFF1C000C000C000).any(), "a reserved bit is set, or swizzles differ")
    start, leading, stride, offset = ((words >> place & 0x3FFF).astype(np.int64) * 16 for place in (0, 16, 32, 49))
    corners = [start + far for far in (0, *((leading, stride) if major == "MN" and mode else (stride, leading)))]
    at = np.argwhere(misread(operand, shape, *rest, rows, major, mode, offset // 16 % 8, corners))
    need(not len(at), "wgmma reads another byte", m_k=[[rows * i + m, deep * j + k] for i, j, m, k in at[:1].tolist()])
    return f"{words.size} descriptors read {shape[0]} x {shape[1]} elements"


def no_operand(statement, _):
    """Under each major and swizzle some part of 64 rows of A or 8 of B is read by no descriptor, as far as measured."""
    (operand, shape, *rest), rows = statement, 64 if statement[0] == "A" else 8
    majors = ("K", "MN") if BITS[rest[-2] or "f16"] == 16 else ("K",)
    fits = shape[0] % rows == shape[1] % depth(operand, *rest[-2:]) == 0
    for major, mode in itertools.product(majors, range(4 * fits)):
        wrong = [misread(operand, shape, *rest, rows, major, mode, at).any(axis=(2, 3)) for at in range(1 << mode)]
        need(np.all(wrong, axis=0).any(), "descriptors read this operand", major=major, swizzle=mode)
    return f"no descriptors read these {shape[0]} x {shape[1]} elements"


# Banks of 4 bytes serve groups of lanes (listed for each four of 32) in sequence, each group in as many turns as its
# busiest bank has distinct words. Measured on H200 and H100; AMD by nod-ai, HipKittens, composable kernel and Triton.
GROUPS = {
    r"sm_90a? (ld|st)\.shared\.b(8|16|32)|gfx(942|1100|1201) ds_read_b32|gfx950 ds_read_b64": "00000000",
    r"sm_90a? (ld|st)\.shared\.b64|gfx(1100|1201|942) ds_read_b64|gfx(942 ds_read2|950 ds_write)_b64": "00001111",
    r"sm_90a? (ld|st)(\.shared\.b128|matrix\.x[124])|gfx942 ds_write_b128|gfx1201 ds_read_b128": "00112233",
    r"gfx(942|1100) ds_read_b128|gfx950 ds_read_b96": "01231032",
    "gfx950 ds_read_b128": "01101001",
}


def taken(access, starts, even=False):
    """Return the turns of accesses with lanes at these bytes (-1: inactive); even: with words spread evenly."""
    groups, found = "".join(digits for pattern, digits in GROUPS.items() if re.fullmatch(pattern, access)), []
    need(groups, "the lane groups of this access were not measured", access=access)
    lanes = 8 * int(access[-1]) if "matrix" in access else 128 if "d2_" in access else 64 if "gfx9" in access else 32
    width, banks = int(re.findall(r"\d+", access)[-1]) // 8 or 16, 32 << bool(re.search("50 ds_read_b(64|128)", access))
    if len(starts) % lanes or (starts * (starts > 0) % (width & -width)).any():
        return None
    if len(starts) >= 2**16:
        sealed()
    for access_starts in starts.reshape(-1, lanes):
        tick()
        lane = access_starts.tolist()
        paired = (
            width > 4
            and "ld." in access
            and any(
                all(lane[i ^ step] == lane[i] or -1 in (lane[i], lane[i ^ step]) for i in range(32)) for step in (1, 2)
            )
        )
        words = {
            (i // 32 * 4 + (int(groups[i // 4 % 8]) >> paired), word)  # neighbouring groups merge, as measured
            for i, start in enumerate(lane)
            if start >= 0
            for word in range(start // 4, (start + width + 3) // 4)
        }
        crowd = np.bincount([g * banks + word % banks for g, word in words], minlength=16 * banks).reshape(16, -1)
        found.append(int((-(-crowd.sum(axis=1) // banks) if even else crowd.max(axis=1)).sum()))
    return found


def bank_turns(statement, _):
    """Lane l of access a starts at byte address(l + lanes a); all accesses take "turns", the worst takes "most"."""
    access, (size, path), *claimed = statement
    starts = column(size, path)
    turns = taken(access, starts if ((starts >= 0) & (starts < 2**32)).all() else np.ones(1))
    need(turns, "these are no aligned addresses of whole accesses", size=size)
    need(claimed == [sum(turns), max(turns)], "the turns are wrong", got=claimed, expected=[sum(turns), max(turns)])
    return f"{len(turns)} accesses take {claimed[0]} turns, at most {claimed[1]} each"


def least(statement, _):
    """Lane l of access a starts at byte layout(cell(l + lanes a)), unless that cell is -1: inactive. Of layouts that
    align all, "first" is the first with the fewest turns; without them no separate places of the cells do better."""
    (accesses, layouts, turns, first), found = statement, []
    points(sum(size for _, (size, _) in accesses) * len(layouts or [0]))
    held = [(access, column(*cells).astype(np.int64)) for access, cells in accesses]
    fair = held and all(len(cells) and cells.min() >= -1 and 0 <= cells.max() < POINTS for _, cells in held)
    need(fair and layouts != [] and (layouts is None) == (first is None), "these are no cells, or no first of layouts")
    for path in layouts or [[["affine", [[48]], [0]]]]:
        place = column(1 + max(int(cells.max()) for _, cells in held), path)
        need(
            place.min() >= 0 and place.max() < 2**32, "a layout puts a cell outside of shared memory", layout=len(found)
        )
        parts = [taken(access, np.where(cells < 0, -1, place[cells]), layouts is None) for access, cells in held]
        found.append(math.inf if None in parts else sum(map(sum, parts)))
    need([min(found), found.index(min(found))] == [turns, first or 0], "the fewest turns are others", got=min(found))
    return f"{f'none of {len(found)} layouts takes' if layouts else 'no places of cells take'} fewer than {turns} turns"


# --- TensorMap plans -------------------------------------------------------------------------------------------------
# Axes: [tile, step, multiple, stride, low, high]. Element i, with digits t over the axes, belongs at byte shared(i) of
# the tile; at the origin multiple u, u in Z^n, it is element offset + sum of stride x, x = multiple u + step t, if all
# low <= x < high. Dimensions of a map: [extent, stride in bytes (first 0), box, step]. Issue [c, s]: a box from
# coordinates c + moves u to shared byte s. Behaviour of maps and boxes: measured on sm_90 (docs/checkers.md).
TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32_ftz", "f64", "bf16", "tf32", "tf32_ftz")
WIDE, COUNT, FAR = range(-(2**48), 2**48), range(1, 2**31 + 1), 2**62
PROBLEM = {
    "axes": [(COUNT, COUNT, range(2**48), WIDE, WIDE, WIDE)],
    "dtype": {*TYPES},
    "base_elem_offset": WIDE,
    "base_align_bytes": COUNT,
    "oob_fill": {"ZERO", "NAN"},
    "direction": {"load", "store"},
    "shared": SIZED,
}
PLAN = {
    "problem": PROBLEM,
    "bytes": str,
    "issues": [([range(-(2**31), 2**31)], range(0, 2**18, 128))],
    "moves": [[WIDE]],
    "expect_tx_bytes": int,
    "smem_align_bytes": int,
    "smem_bytes": int,
    "oob": {"exact", "weak"},
}
MAP = {
    "base": range(0, 2**57, 16),
    "swizzle": range(4),
    "fill": range(2),
    "promotion": range(4),
    "dims": [(COUNT, range(0, 2**40, 16), range(1, 257), range(1, 9))],
}


def requested(axes, dtype, offset, _align, _fill, _direction, shared):
    """Return the element size and, for all tile elements, x and the global byte at origin 0, and the shared byte."""
    hold(len(axes) * shared[0])
    (tile, steps, _, strides, _, _), at, size = zip(*axes), column(*shared), int(re.sub(r"\D", "", dtype)) // 8
    need(shared[0] == math.prod(tile) and at.min() >= 0 and not (at % size).any(), "shared is not where elements lie")
    x = [step * t for step, t in zip(steps, values_at([["split", [*tile]]], [points(len(at))])[0])]
    tick()
    return size, x, Numbers(len(at)).row([size * s for s in strides], size * offset, x), at.astype(np.int64)


def encoded(size, dtype, base, swizzle, fill, promotion, dims):
    """Return the 128 bytes that the sm_90 driver writes for a map that it accepts."""
    (_, first, inner, _), *more = dims[:6]  # a product over many dimensions is slow
    row, whole = (size * n for n in (inner, math.prod(box // step for _, _, box, step in dims[:6])))
    fair = len(more) < 5 and first == row % 16 == 0 and row <= (2048, 32, 64, 128)[swizzle] and whole <= 233472
    need(fair and fill <= ("f" in dtype), "the driver refuses this map", dims=dims, swizzle=swizzle, fill=fill)
    bits = base | len(more) << 68 | swizzle << 77 | fill << 79 | (dtype[0] == "t") << 80 | promotion << 81
    bits |= whole << 512 | TYPES.index(dtype.replace("tf", "f")) << 71 | (16, 256, 512, 1024)[swizzle] << 576
    for k, (extent, stride, box, step) in enumerate(dims):
        bits |= stride % 2**36 >> 4 << 64 + 32 * k | stride >> 36 << 220 + 4 * k
        bits |= extent - 1 << 256 + 32 * k | step - 1 << 416 + 3 * k | box - 1 << 440 + 8 * k
    return bits.to_bytes(128, "little").hex()


def intervals(forms, ends, like):
    """Return the intervals of u, one per axis, in which all forms, value + row u, are within their ends."""
    low, high = (np.repeat(np.array(part)[:, None], len(like), axis=1) for part in zip(*ends))
    for value, row, least, end in forms:
        tick()
        can(sum(map(bool, row)) < 2, "a coordinate moved by several axes is not decided here")
        i = max(range(len(row)), key=lambda i: abs(row[i]))
        room = [value - least, end - 1 - value][:: -1 if row[i] < 0 else 1]
        down, up = (part // abs(row[i]) if row[i] else np.where(part < 0, -FAR - 1, FAR) for part in room)
        low[i], high[i] = np.maximum(low[i], -down), np.minimum(high[i], up)
    return low, high, (low <= high).all(axis=0)


def tensormap_plan(statement, evidence):
    """Each element of each box stands at a tile element's shared byte, has its global address where that is in bounds
    and is out of bounds for the engine where it is so for the problem; all elements are met. So from every origin
    (exact) or from those in bounds (weak); these start within 32 bits, those of a store not below 0."""
    (problem, text, issues, moves, expect, align, extent, oob), (given,) = statement, evidence
    (axes, dtype, _, known, fill, *_), (base, swizzle, filled, _, dims), store = problem, given, problem[5] == "store"
    (size, xs, source, at), table = requested(*problem), np.array([[*c, s] for c, s in issues])
    need(text == encoded(size, dtype, *given), "these are not the bytes of the map", got=text)
    need(table.shape[1:] == (len(dims) + 1,) and np.shape(moves) == (len(dims), len(axes)), "the ranks differ")
    odd = [int(c) for c in (*table[:, 0], *moves[0], store * dims[0][0]) if c * size % 16 or known % 16]
    need(not odd and (store or filled == (fill == "NAN")), "the base, an inner start or the fill is wrong", got=odd)
    extents, strides, box, steps = map(list, zip(*dims))
    strides[0], steps[0], row = size, 1, max(box[0] * size, (0, 32, 64, 128)[swizzle])
    counts = [*(-(-b // step) for b, step in zip(box, steps)), len(table)]
    pitches = [1, size, *(row * math.prod(counts[1:k]) for k in range(1, len(counts)))]
    hold((len(axes) + 2 * len(counts)) * math.prod(counts))
    *index, turn = values_at([["split", counts]], [points(math.prod(counts))])[0]
    (*starts, offsets), way = table.T[:, turn], Numbers(len(turn))
    coords = [start + step * place for start, step, place in zip(starts, steps, index)]
    landed, order = xored(way.row(pitches[:-1], 0, (offsets, *index)), swizzle), np.argsort(at)
    owner = order[np.searchsorted(at, landed, sorter=order).clip(max=len(at) - 1)]
    inside = [(-(-a[4] // a[2]), (a[5] - 1) // a[2]) if a[2] else (0, 0) for a in axes]
    ends = inside if oob == "weak" else [(-FAR, FAR)] * len(axes)
    forms = [(x[owner], [a[2] * (a is b) for b in axes], *a[4:]) for x, a in zip(xs, axes)]
    low, high, live = intervals(forms, ends, owner)
    least, most, moved = intervals(zip(coords, moves, [0] * 5, extents), ends, owner)
    slopes = [sum(row[i] * s for row, s in zip(moves, strides)) - a[2] * a[3] * size for i, a in enumerate(axes)]
    error = way.row([*strides, -1, *slopes], base, [*coords, source[owner], *low]) != 0
    error |= ((low < high) & np.array(slopes, dtype=bool)[:, None]).any(axis=0)
    for wrong, fact in (
        (at[owner] != landed, "a box touches shared memory outside the tile"),
        (live & error, "a box moves another global element"),
        ((live | moved) & ((low != least) | (high != most)).any(axis=0), f"the class is not {oob}"),
    ):
        need(not wrong.any(), fact, element=owner[wrong][:1].tolist())
    for k, row in enumerate(moves if all(a <= b for a, b in inside) else ()):
        far = [int(f(table[:, k])) + sum(f(c * u for u in pair) for c, pair in zip(row, inside)) for f in (min, max)]
        need(
            (0 if store else -(2**31)) <= far[0] and far[1] < 2**31, "a start is out of range", dimension=k, starts=far
        )
    met, close = np.bincount(owner, minlength=len(at)), np.all([x < a[5] - a[4] for x, a in zip(xs, axes)], axis=0)
    need(met.all(), "no box reaches a tile element", element=int(np.argmin(met)))
    need(not store or len(np.unique(source[close])) == close.sum(), "two elements are stored to one global address")
    right = [size * len(owner), max(align & -align, 128 << swizzle), int(max(table[:, -1])) + pitches[-1]]
    need([expect, align, extent] == right and expect < 2**20 and extent < 232449, "wrong byte counts", expected=right)
    return f"{oob}: {len(issues)} boxes of {math.prod(counts[:-1])} elements"


def no_tensormap(statement, evidence):
    """No map has boxes, started anywhere for each origin, whose elements all stand at tile elements' shared bytes and
    move these where they are in bounds, meeting all: boxes move whole chunks of 16 bytes, aligned on both sides."""
    ((problem,), (origin, chunk)), store = (statement, evidence), statement[0][5] == "store"
    (axes, dtype, _, known, fill, *_), (size, xs, source, at) = problem, requested(*problem)
    fair = [a[4] <= o < a[5] and o % a[2] == 0 if a[2] else o == 0 for o, a in zip(origin, axes)]
    need(len(origin) == len(axes) and all(fair), "this is no origin in bounds", got=origin)
    held = np.all([(x >= a[4] - o) & (x < a[5] - o) for x, o, a in zip(xs, origin, axes)], axis=0)
    byte = Numbers(len(at)).row((1, -1), size * sum(o * a[3] for o, a in zip(origin, axes)), (source, at % 16))
    begins = np.unique(byte[(here := at // 16 == chunk) & held])
    need(len(begins), "no element of this chunk is in bounds", got=chunk)
    fair = chunk < 14528 and len(np.unique(at[here])) * size == 16 and not (store and not held[here].all())
    fair &= len(begins) == 1 and begins[0] % 16 == known % 16 == 0 <= begins[0]
    need(not fair or (not store and fill == "NAN" and "f" not in dtype), "a box can write this chunk", got=chunk)
    return f"no box writes the chunk {chunk}"


def handoff(statement, evidence):
    """The descriptors read element (m, k) where the copy puts the tile's element m of one axis and k of another."""
    (plan, operand, (mn, k)), (axes, dtype, *_, direction, shared) = statement, statement[0][0]
    told = f"{tensormap_plan(plan, evidence)}; {wgmma_operand(operand, ())}"
    (_, shape, layout, swizzle, align, kind, *_), tile = operand, dict(enumerate(axis[0] for axis in axes))
    fair = mn != k and [tile.get(mn), tile.get(k)] == shape and math.prod(tile.values()) == math.prod(shape)
    fair &= dtype in (kind, "u8" if BITS[kind] == 8 else "") if kind else "f16" in dtype
    fair &= direction == "load" and plan[5] % align == plan[5] % (128 << swizzle) == 0
    need(fair, "the tile is not this operand, or has other bases", tile=list(tile.values()), align=plan[5])
    landed = column(*shared).reshape(shape[::-1] if mn < k else shape)
    differ = (landed if mn < k else landed.T) != xored(column(*layout), swizzle).reshape(shape[::-1])
    need(not differ.any(), "the copy puts another element there", k_m=np.argwhere(differ)[:1].tolist())
    return told


# --- certificates ----------------------------------------------------------------------------------------------------
KINDS = {
    "equality": (equality, {"f": ANY, "g": ANY}, BY),
    "inequality": (inequality, {"f": ANY, "g": ANY}, {"at": [int]}),
    "composition": (composition, {"f": SIZED, "g": SIZED, "h": SIZED}, BY),
    "no-composition": (no_composition, {"f": SIZED, "g": SIZED}, {"at": NATURAL}),
    "inverse": (inverse, {"f": SIZED, "inverse": SIZED, "side": {"left", "right", "both"}}, BY),
    "no-inverse": (
        no_inverse,
        {"f": SIZED, "codomain": NATURAL, "side": {"left", "right", "both"}},
        {"points?": (NATURAL, NATURAL), "missed?": NATURAL, "invariant?": stages, "by?": BY},
    ),
    "none-of": (none_of, {"f": SIZED, "candidates": [SYSTEM]}, {"sums": [(NATURAL, [(int, NATURAL, NATURAL)])]}),
    "wgmma-operand": (wgmma_operand, READ, {}),
    "no-operand": (no_operand, OPERAND, {}),
    "tensormap-plan": (tensormap_plan, PLAN, {"map": MAP}),
    "no-tensormap": (no_tensormap, {"problem": PROBLEM}, {"origin": [int], "chunk": NATURAL}),
    "handoff": (handoff, {"plan": PLAN, "operand": READ, "axes": (range(64), range(64))}, {"map": MAP}),
    "bank-turns": (bank_turns, {"access": str, "address": SIZED, "turns": NATURAL, "most": NATURAL}, {}),
    "least-turns": (least, {"moved": [(str, SIZED)], "layouts?": [stages], "turns": NATURAL, "first?": NATURAL}, {}),
}


def seal(document) -> str:
    """Return the SHA-256 of a certificate without its seal, as compact JSON with sorted names."""
    rest = {name: entry for name, entry in document.items() if name != "seal"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def check(document, seconds=TIME) -> tuple:
    """Check a certificate for at most ``seconds``; return the verdict's code and a sentence."""
    try:
        if not isinstance(document, dict) or document.get("schema") != SCHEMA or str(document.get("kind")) not in KINDS:
            raise Stop(64, f"this is not a {SCHEMA} of a known kind")
        decide, *forms = KINDS[str(document["kind"])]
        form = {"schema": str, "kind": str, "statement": forms[0], "evidence": forms[1], "seal": str}
        with timed(seconds, document):
            _, _, statement, evidence, _ = read(document, form, "certificate")
            told = decide(statement, evidence)
            sealed()
    except Stop as stop:
        return stop.args
    except (RecursionError, MemoryError, OverflowError, ValueError) as error:
        return 2, f"this certificate is too large to check here ({type(error).__name__})"
    return 0, told


def parsed(text: str):
    """Read JSON strictly: integers only, no duplicate names."""

    def refuse(what):
        raise Stop(64, f"this is not a certificate: {str(what)[:200]}")

    def once(pairs):
        return dict(pairs) if len(dict(pairs)) == len(pairs) else refuse("duplicate name")

    try:
        return json.loads(text, parse_float=refuse, parse_constant=refuse, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        return refuse(error)


def files(name: str) -> list:
    return sorted(str(p) for p in pathlib.Path(name).rglob("*.json") if p.is_file()) or [name]


def line(path: str, code: int, told: str) -> str:
    return f"{VERDICTS[code]:<10} {ascii(path)[1:-1]}: {told}"


def asked(arguments):
    """Return the names and seconds from the command line, or raise ValueError."""
    names, seconds, given = [], TIME, iter(arguments)
    for each in given:
        if each.partition("=")[0] == "--seconds":
            seconds = float(each.partition("=")[2] or next(given, "nan"))
            if not seconds >= 0:
                raise ValueError("--seconds must be a number >= 0")
        else:
            names.append(each)
    if not names:
        raise ValueError(f"usage: python checker.py [--seconds S] FILE|FOLDER ... (S: per certificate, default {TIME})")
    return names, seconds


def main(arguments):
    """Check files and folders; print a line per file and return the worst code."""
    try:
        names, seconds = asked(arguments)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 64
    worst = 0
    for path in [path for name in names for path in files(name)]:
        try:
            code, told = check(parsed(pathlib.Path(path).read_text(encoding="utf-8-sig")), seconds)
        except (Stop, OSError, UnicodeError) as error:
            code, told = error.args if isinstance(error, Stop) else (64, str(error))
        worst = max(worst, code)
        print(line(path, code, told))
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

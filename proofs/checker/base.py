"""What every check uses: refutation, limits, forms of JSON, and functions with their evaluation.

A function maps i = 0 .. size - 1 through its stages, each from a list of integers to a list of integers:

    ["split", [e0, e1, ...]]     one number to its digits, fastest first; the last digit is the remaining quotient
    ["affine", rows, offsets]    a matrix over Z and a vector
    ["mod", [m0, m1, ...]]       least non-negative residues; modulus 0: unchanged
    ["xor", columns, constant]   the low len(columns) bits of one number to constant xor the columns of the set bits;
                                 the rest of the number is added (swizzles and matrices over F2 are such stages)
    ["table", values]            one number to the value at that index
    ["pieces", [piece, ...]]     the first piece whose constraints hold; undefined if none does. A piece is
        [floors, constraints, values]: floor [coefficients, constant, divisor] over the inputs and earlier floors,
        constraint [coefficients, constant, "=" or ">="], value [coefficients, constant], both over inputs and floors
    ["fork", stages, stages, ...]    the values of each list of stages side by side

A function with "inputs": n instead of "size" is defined on all of Z^n (parameters, then coordinates).
"""

import contextlib
import contextvars
import hashlib
import json
import math
import time
import types

import numpy as np

PROVED, REFUTED, UNKNOWN, UNREADABLE = 0, 1, 2, 64  # verdicts, which are also exit codes

POINTS = 2**22  # most points at which functions are evaluated for one fact
STEPS = 2**32  # most steps on 64-bit words for one fact: points times steps per point
CELLS = 2**24  # most numbers in memory at a time
BLOCK = 2**14  # most points evaluated together
SECONDS = 60  # default time for one certificate
SOLVER_SECONDS = 20
SEAL_STEPS, SEAL_CELLS = 2**24, 2**20  # beyond these the seal is compared first

NATURAL, POSITIVE = range(2**4096), range(1, 2**4096)


# --- refutation and limits -------------------------------------------------------------------------------------------
class Stop(Exception):
    """Ends a check that does not prove its certificate, with the verdict's code and the reason."""


def require(condition, fact, **numbers):
    """Continue if the condition holds; otherwise refute with this fact and its numbers."""
    if not condition:
        raise Stop(REFUTED, ", ".join([fact, *(f"{name} {short(value)}" for name, value in numbers.items())]))


def limit(condition, why):
    """Continue if the condition holds; otherwise leave the certificate unknown."""
    if not condition:
        raise Stop(UNKNOWN, why)


def short(value):
    text = ascii(value)
    return text if len(text) <= 120 else f"{text[:100]}... ({len(text)} characters)"


class Task:
    """One check: its deadline, and the document whose seal is still to be compared."""

    def __init__(self, seconds=math.inf, document=None):
        self.end = time.monotonic() + seconds
        self.document = document


FOREVER = Task()
TASK = contextvars.ContextVar("task", default=FOREVER)


def tick():
    """Stop at the deadline; called once per step in every loop that a certificate controls."""
    limit(time.monotonic() <= TASK.get().end, "the time for this check is over")


@contextlib.contextmanager
def timed(seconds, document=None):
    """Run a block as one check with a time limit."""
    token = TASK.set(Task(seconds, document))
    try:
        yield
    finally:
        TASK.reset(token)


def seal(document) -> str:
    """Return the SHA-256 of a certificate without its seal, as compact JSON with sorted names."""
    rest = {name: entry for name, entry in document.items() if name != "seal"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def compare_seal():
    """Refute if the seal does not match. Before long work, and at the end of each check; computed once."""
    task = TASK.get()
    if task.document is not None:
        given, expected = task.document["seal"], seal(task.document)
        require(given == expected, "the seal is of another certificate", got=given, expected=expected)
        task.document = None


def limit_cells(cells):
    """Leave unknown what needs too much memory."""
    limit(cells <= CELLS, f"{cells} numbers in memory are too many")
    if cells > SEAL_CELLS:
        compare_seal()


def limit_points(count):
    limit(count <= POINTS, f"{count} points are too many; another rule has to decide")


# --- forms of JSON ---------------------------------------------------------------------------------------------------
def read(value, form, where):
    """Return a value of a form, or refute. Forms: int, str or a range; a set of texts; [form] for a list of any length;
    (form, form) for a list of this length; {"name": form, "name?": form} for an object with exactly these entries,
    returned with them as attributes (None for a missing optional one); a function of (value, where)."""
    if isinstance(form, dict):
        return read_object(value, form, where)
    if isinstance(form, (list, tuple)):
        return read_list(value, form, where)
    if not isinstance(form, (set, range, type)):
        return form(value, where)
    if not fits(value, form):
        expected = sorted(form) if isinstance(form, set) else form
        require(False, f"{where} is not of {short(expected)}", got=value)
    return value


def fits(value, form):
    """Return whether a form has no parts and a value is of it; without its place, which only a refutation needs."""
    kind = KINDS_OF.get(type(form))
    return type(value) is (kind or form) and (kind is None or value in form)  # a bool is no int


KINDS_OF = {range: int, set: str}


def read_object(value, form, where):
    if not isinstance(value, dict):
        require(False, f"{where} must be an object", got=value)
    forms = {name.rstrip("?"): kind for name, kind in form.items()}
    for name in sorted(forms.keys() ^ value.keys()):
        require(name in forms, f"{where} has an unknown entry", name=name)
        require(f"{name}?" in form, f"{where} lacks an entry", name=name)
    entries = dict.fromkeys(forms)
    for name, kind in forms.items():
        if name in value:
            entry = value[name]
            entries[name] = entry if fits(entry, kind) else read(entry, kind, f"{where}.{name}")
    return types.SimpleNamespace(**entries)


def read_list(value, form, where):
    if not isinstance(value, list):
        require(False, f"{where} must be a list", got=value)
    forms = form * len(value) if isinstance(form, list) else form
    if len(value) != len(forms):
        require(False, f"{where} has a wrong length", got=len(value), expected=len(forms))
    entries = []
    for place, (entry, kind) in enumerate(zip(value, forms)):
        if place % 256 == 0:
            tick()
        entries.append(entry if fits(entry, kind) else read(entry, kind, f"{where}[{place}]"))
    return entries


PIECE = ([([int], int, POSITIVE)], [([int], int, {"=", ">="})], [([int], int)])
STAGES = {
    "split": ([POSITIVE],),
    "affine": ([[int]], [int]),
    "mod": ([NATURAL],),
    "pieces": ([PIECE],),
    "table": ([int],),
    "xor": ([NATURAL], NATURAL),
}
MAY_BE_EMPTY = ("mod", "fork", "xor")
TAKE_MANY = ("affine", "mod", "pieces", "fork")  # the other stages take one number


def stages(value, where):
    for place, stage in enumerate(read(value, [lambda stage, _: stage], where)):
        at = f"{where}[{place}]"
        has_name = isinstance(stage, list) and stage and isinstance(stage[0], str)
        require(has_name and stage[0] in {*STAGES, "fork"}, f"{at} is not a stage", got=stage)
        name, *arguments = stage
        forms = (stages,) * len(arguments) if name == "fork" else STAGES[name]
        read(arguments, forms, at)
        require(name in MAY_BE_EMPTY or arguments[0], f"{at} is empty", got=stage)
    return value


SIZED = {"size": NATURAL, "stages": stages}
ANY = {"size?": NATURAL, "inputs?": range(1, 65), "stages": stages}


# --- evaluation of functions -----------------------------------------------------------------------------------------
def follow(path, values, way):
    """Map values through stages in one way of computing: ``Numbers``, or in equality.py sums or solver terms."""
    for name, *arguments in path:
        tick()
        require(name in TAKE_MANY or len(values) == 1, f"a stage {name} takes one number")
        if name == "split":
            (extents,) = arguments
            for extent in extents[:-1]:
                *digits, quotient = values
                values = [*digits, way.remainder(quotient, extent), way.floor(quotient, extent)]
        elif name == "affine":
            rows, offsets = arguments
            require(len(rows) == len(offsets), "a stage affine has a wrong number of offsets")
            values = [way.row(row, offset, values) for row, offset in zip(rows, offsets)]
        elif name == "mod":
            (moduli,) = arguments
            require(len(moduli) == len(values), "a stage mod has a wrong number of moduli")
            values = [way.remainder(value, modulus) if modulus else value for value, modulus in zip(values, moduli)]
        elif name == "fork":
            values = [value for part in arguments for value in follow(part, values, way)]
            require(len(values) <= 1024, "a fork has more than 1024 values")
        elif name == "pieces":
            values = way.pieces(values, *arguments)
        elif name == "table":
            values = [way.table(values[0], *arguments)]
        else:
            values = [way.xor(values[0], *arguments)]
    return values


class Way:
    """Base of all ways of computing, built on ``row``, ``floor``, ``flipped`` (the xor of bits, for ``xor``), and for
    pieces ``both`` and ``either`` of some facts, and ``pick`` (one number where a fact holds, otherwise the other)."""

    def remainder(self, value, divisor):
        return self.row((1, -divisor), 0, (value, self.floor(value, divisor)))

    def xor(self, value, columns, constant):
        bits = [self.remainder(self.floor(value, 1 << place), 2) for place in range(len(columns))]
        weights = [-1 << place for place in range(len(bits))]
        answer = self.row([1, *weights], 0, [value, *bits])  # the number without its low bits
        for place in range(max([*columns, constant]).bit_length()):
            constant_bit = self.row((), constant >> place & 1, ())
            column_bits = [bit for bit, column in zip(bits, columns) if column >> place & 1]
            answer = self.row((1, 1 << place), 0, (answer, self.flipped(constant_bit, *column_bits)))
        return answer

    def table(self, *_):
        limit(False, "this rule does not support tables and pieces")

    def pieces(self, values, pieces):
        """From the last piece to the first, so that the first one that holds is picked."""
        answer = [self.row((), 0, ())] * len(pieces[0][2])
        holding = []
        for floors, constraints, forms in reversed(pieces):
            require(len(forms) == len(answer), "pieces have different numbers of values", got=len(forms))
            known = list(values)
            for row, constant, divisor in floors:
                known.append(self.floor(self.row(row, constant, known), divisor))
            sides = [(self.row(row, constant, known), relation) for row, constant, relation in constraints]
            holds = self.both([side == 0 if relation == "=" else side >= 0 for side, relation in sides])
            holding.append(holds)
            answer = [self.pick(holds, self.row(*form, known), old) for form, old in zip(forms, answer)]
        self.ok = self.both([self.ok, self.either(holding)])
        return answer

    def terms(self, row, values):
        tick()
        require(len(row) == len(values), "a row has a wrong length", got=len(row), expected=len(values))
        return [(factor, value) for factor, value in zip(row, values) if factor]


def magnitude(array):
    return max(abs(int(array.max(initial=0))), abs(int(array.min(initial=0))))


class Numbers(Way):
    """Arrays of integers, Python's where 64 bits could overflow; ``ok`` says where a value is defined."""

    def __init__(self, points, tables=None):
        self.ok = np.ones(points, dtype=bool)
        self.tables = {} if tables is None else tables

    def both(self, facts):
        return np.all([self.ok | True, *facts], axis=0)

    def either(self, facts):
        return np.any(facts, axis=0)

    def pick(self, fact, one, other):
        return np.where(fact, one, other)

    def row(self, row, constant, values):
        terms = self.terms(row, values)
        bound = abs(constant) + sum(abs(factor) * (magnitude(value) or 1) for factor, value in terms)
        kind = object if bound >= 2**62 else np.int64
        total = np.full(self.ok.shape, constant, dtype=kind)
        for factor, value in terms:
            total = total + factor * (value.astype(object) if kind is object else value)
        return total

    def floor(self, value, divisor):
        return (value if divisor < 2**62 else value.astype(object)) // divisor

    def remainder(self, value, divisor):
        return (value if divisor < 2**62 else value.astype(object)) % divisor

    def xor(self, value, columns, constant):
        wide = len(columns) > 60 or max(magnitude(value), constant, *columns) >= 2**61
        value = value.astype(object if wide else np.int64)
        low = constant
        for place, column in enumerate(columns):
            tick()
            low = low ^ (value >> place & 1) * column
        return (value >> len(columns) << len(columns)) + low

    def table(self, value, values):
        index = np.where(self.ok, value, 0)
        outside = np.asarray((index < 0) | (index >= len(values)), dtype=bool)
        require(
            not outside.any(),
            "a number has no place in the table",
            got=index[outside][:1].tolist(),
            entries=len(values),
        )
        if id(values) not in self.tables:  # the same list for all blocks
            kind = object if max(map(abs, values)) >= 2**62 else np.int64
            self.tables[id(values)] = np.array(values, dtype=kind)
        return self.tables[id(values)][index.astype(np.int64)]


def values_at(path, columns, tables=None) -> tuple:
    """Evaluate stages at points; return the outputs, one array each, and where they are defined."""
    way = Numbers(len(columns[0]), tables)
    return follow(path, columns, way), way.ok


def value_at(path, *numbers):
    """Return the values of a function at one point, None if undefined."""
    outputs, (defined,) = values_at(path, [np.array([number], dtype=object) for number in numbers])
    return [int(output[0]) for output in outputs] if defined else None


def digits_of(count, extents):
    """Return the digits of 0 .. count - 1, fastest first, one array for each extent."""
    limit_points(count)
    return values_at([["split", extents]], [np.arange(count, dtype=np.int64)])[0]


# --- cost of an evaluation -------------------------------------------------------------------------------------------
def weight(bits):
    """Return the cost of a step on numbers of this many bits, in steps on 64-bit words; roughly as measured."""
    return 1 if bits < 62 else 16 + bits // 64


def bits_in(numbers):
    return max(map(abs, numbers), default=0).bit_length()


def effort(path, bits):
    """Return the steps of stages at a point of this many bits, their peak count of numbers, and the bits after."""
    steps, peak = 1, 1
    for name, *arguments in path:
        tick()
        here, held, bits = stage_effort(name, arguments, bits)
        steps, peak = steps + here, max(peak, held)
    return steps, peak, bits


def stage_effort(name, arguments, bits):
    if name == "fork":
        parts = [effort(part, bits) for part in arguments]
        steps, peaks, ends = zip(*parts) if parts else ((), (), ())
        return sum(steps), sum(peaks), max([bits, *ends])
    first = arguments[0]
    if name == "pieces":
        return pieces_effort(first, bits)
    if name == "xor":
        height = bits_in([*first, arguments[1]])
        steps = 4 * len(first) + 2 * height + sum(column.bit_count() for column in first)
        bits = max(bits, height, len(first)) + 1
        return steps * weight(bits), len(first), bits
    if name == "affine":
        bits += max((bits_in([*row, len(row)]) for row in first), default=0) + bits_in(arguments[1])
        return weight(bits) * sum(1 + len(row) - row.count(0) for row in first), len(first), bits
    bits = max(bits, bits_in(first))
    if name == "table":
        return weight(bits), 1, bits
    return weight(bits) * 3 * len(first), len(first), bits  # split and mod: a floor and a row for each digit


def pieces_effort(pieces, bits):
    steps, held = 0, 0
    for floors, constraints, forms in pieces:
        all_forms = (*floors, *constraints, *forms)
        steps += 2 * len(all_forms) + sum(len(form[0]) for form in all_forms)
        held = max(held, len(floors) + len(constraints) + 2 * len(forms))
        bits = max([bits, *(bits + bits_in([*form[0], form[1]]) for form in all_forms)])
    return steps * weight(bits), held + len(pieces), bits


def afford(count, bits, *paths):
    """Leave unknown what takes too many steps; otherwise return how many points to evaluate together."""
    limit_points(count)
    efforts = [effort(path, bits) for path in paths]
    steps = max(count, 256) * sum(steps for steps, _, _ in efforts)  # a step on few numbers costs no less
    limit(steps <= STEPS, f"{steps} steps at {count} points are too many; another rule has to decide")
    if steps > SEAL_STEPS:
        compare_seal()
    words = max(peak * weight(end) for _, peak, end in efforts)
    return max(16, min(BLOCK, CELLS // 16 // words))


def sweep(count, bits, start, *paths):
    """Yield, per block of points, start(their numbers) and the results of each list of stages there."""
    size, tables = afford(count, bits, *paths), {}
    for first in range(0, max(count, 1), size):
        columns = start(np.arange(first, min(first + size, count), dtype=np.int64))
        yield columns, [values_at(path, columns, tables) for path in paths]


def column(size, path):
    """Return the values of a function of one output at 0 .. size - 1."""
    blocks = []
    for _, ((values, defined),) in sweep(size, 32, lambda at: [at], path):
        require(len(values) == 1 and defined.all(), "a function has not one value everywhere")
        blocks.append(values[0])
    return np.concatenate(blocks)

"""Claims about functions, all reduced to one question: do two lists of stages have the same values everywhere?

Three rules answer it: a table of all points, sums of terms that depend on few digits, and solvers.
"""

import functools
import importlib
import itertools
import math
import threading
import time

import numpy as np

from .base import (
    ANY,
    CELLS,
    NATURAL,
    POSITIVE,
    SIZED,
    SOLVER_SECONDS,
    TASK,
    Numbers,
    Way,
    afford,
    bits_in,
    follow,
    limit,
    require,
    stages,
    sweep,
    tick,
    value_at,
    values_at,
)

RULE = {"by": {"table", "digits", "solvers"}, "digits?": [range(2, 2**4096)]}


def same(one, two, rule, size, inputs=None, what="the functions differ"):
    """Refute unless two lists of stages have the same values everywhere; return how that was decided."""
    by, digits = rule.by, rule.digits
    require((by == "digits") == (digits is not None), "digits are for the rule digits", by=by, got=digits)
    if by == "solvers":
        return same_by_solvers(one, two, size, inputs, what)
    require(size is not None, "a function of all points is for solvers", by=by)
    if by == "table":
        return f"at {compare(one, two, size, what)} points"
    return same_by_digits(one, two, size, digits, what)


def within(path, rule, size, domain):
    """Refute unless all values of a function are in 0 .. domain - 1."""
    require(domain or not size, "the domain is empty", size=size)
    same(path, [*path, ["mod", [domain]]], rule, size, what=f"a value is not in the domain 0 to {domain - 1}")


# --- by table --------------------------------------------------------------------------------------------------------
def compare(one, two, count, what, start=lambda at: [at], bits=32):
    """Refute if two lists of stages differ at one of ``count`` points; return the count."""
    for columns, ((left, left_ok), (right, right_ok)) in sweep(count, bits, start, one, two):
        require(len(left) == len(right), "the functions have different numbers of values")
        differ = [np.asarray(left_ok & (mine != other), dtype=bool) for mine, other in zip(left, right)]
        wrong = (left_ok != right_ok) | np.any(differ, axis=0)
        if wrong.any():
            at = [int(column[np.argmax(wrong)]) for column in columns]
            require(False, what, at=at, got=value_at(one, *at), expected=value_at(two, *at))
    return count


# --- by digits -------------------------------------------------------------------------------------------------------
class Sums(Way):
    """Sums ``constant + sum of coefficient * atom``: an atom is a digit or a number that depends on a few digits, its
    support. The difference of two such sums is one too, and is 0 everywhere if, for each support, it is 0 wherever all
    digits outside that support are 0: by inclusion and exclusion, the part that depends on exactly the digits of a set
    is an alternating sum of values at points whose other digits are 0.

    A value is a pair (constant, {atom: coefficient}), an atom an index into ``atoms``: its low, high and support."""

    def __init__(self, digits):
        self.atoms = [(0, extent - 1, frozenset([place])) for place, extent in enumerate(digits)]
        self.known = {}  # atoms by how they were computed, so that equal numbers are one atom
        self.parities = {}  # atoms that are the parity of others
        self.held = 0

    def pieces(self, *_):
        self.table()  # refused too

    def atom(self, key, value, low, high):
        """Return a number within [low, high] that depends on the digits of a value, the same for the same key."""
        if low == high:
            return low, {}
        if key not in self.known:
            support = set()
            for atom in value[1]:
                tick()
                support |= self.atoms[atom][2]
            self.held += len(value[1]) + len(support)
            limit(self.held <= CELLS >> 3, "these sums have too many terms; another rule has to decide")
            self.known[key] = len(self.atoms)
            self.atoms.append((low, high, frozenset(support)))
        return 0, {self.known[key]: 1}

    def row(self, row, constant, values):
        total = {}
        for factor, (own, parts) in self.terms(row, values):
            tick()
            constant += factor * own
            for atom, coefficient in parts.items():
                total[atom] = total.get(atom, 0) + factor * coefficient
        return constant, {atom: coefficient for atom, coefficient in total.items() if coefficient}

    def floor(self, value, divisor):
        """Factor out the multiples of the divisor; the remainder is an atom, or constant if it cannot carry."""
        constant, parts = value
        whole = {atom: abs(c) // divisor * (1 if c > 0 else -1) for atom, c in parts.items()}
        rest = {atom: c - whole[atom] * divisor for atom, c in parts.items() if c % divisor}
        remainder = constant % divisor, rest
        low = high = constant % divisor
        for atom, c in rest.items():
            ends = [c * end for end in self.atoms[atom][:2]]
            low, high = low + min(ends), high + max(ends)
        carry = self.atom(("floor", divisor, frozen(remainder)), remainder, low // divisor, high // divisor)
        return self.row((1, 1), constant // divisor, ((0, whole), carry))

    def flipped(self, *values):
        """Return the xor of numbers in {0, 1}, as the parity of a set of atoms."""
        flip, odd = 0, frozenset()
        for value in values:
            tick()
            coefficients = [value[0], *value[1].values()]
            if value[1] and coefficients not in ([0, 1], [1, -1]):  # neither an atom nor 1 minus an atom
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


def same_by_digits(one, two, size, digits, what):
    """Compare as ``Sums`` over digits whose product is the size, up to a final ``mod`` common to both."""
    few = len(digits) < max(1, size.bit_length())  # each is at least 2; a product of very many is slow
    require(few and math.prod(digits) == size, "the product of the digits is not the size", got=digits)
    weights = list(itertools.accumulate(digits, lambda a, b: a * b, initial=1))[:-1]
    bits = size.bit_length()
    refute_on_axes(one, two, size, digits, weights, what)
    boxes = boxes_to_compare(one, two, digits, weights)
    counts = [math.prod(digits[place] for place in box) for box in boxes]
    afford(sum(counts), bits, one, two)
    for box, count in zip(boxes, counts):
        compare(one, two, count, what, corner([digits[p] for p in box], [weights[p] for p in box]), bits)
    return f"on {len(boxes)} boxes of {len(digits)} digits"


def refute_on_axes(one, two, size, digits, weights, what):
    """Compare where one digit is not 0, and at the end: refutes early what would need large boxes."""
    on_axes = [digit * weight for extent, weight in zip(digits, weights) for digit in range(min(extent, 64))]
    on_axes = np.array([*on_axes, size - 1], dtype=object)
    compare(one, two, len(on_axes), what, lambda at: [on_axes[at]], size.bit_length())


def boxes_to_compare(one, two, digits, weights):
    """Return sets of digits: the functions are equal if they are so where all digits outside one of them are 0."""
    way, start = Sums(digits), [(0, dict(enumerate(weights)))]
    if one and two and one[-1] == two[-1] and one[-1][0] == "mod":
        one, two = one[:-1], two[:-1]
    left, right = follow(one, start, way), follow(two, start, way)
    differing = {atom for pair in zip(left, right) for atom in way.row((1, -1), 0, pair)[1]}
    supports = {way.atoms[atom][2] for atom in differing} | {frozenset()}
    boxes = []
    for box in supports:
        tick()
        if not any(box < other for other in supports):  # a larger box includes it
            boxes.append(sorted(box))
    return boxes


def corner(extents, weights):
    """Return a start for ``compare``: numbers to the points whose digits outside a box are 0."""
    path = [["split", extents], ["affine", [weights], [0]]] if extents else [["affine", [[0]], [0]]]
    return lambda at: follow(path, [at], Numbers(len(at)))


# --- by solvers ------------------------------------------------------------------------------------------------------
class Terms(Way):
    """Solver terms; ``ok`` says where a value is defined."""

    def __init__(self, smt, context):
        self.smt = smt
        self.zero = smt.IntVal(0, context)
        self.ok = self.yes = smt.BoolVal(True, context)

    def row(self, row, constant, values):
        return sum((factor * value for factor, value in self.terms(row, values)), self.zero + constant)

    def floor(self, value, divisor):
        return value / divisor  # of integers: rounded down

    def flipped(self, *values):
        return functools.reduce(lambda one, two: self.smt.If(one == two, self.zero, self.zero + 1), values)

    def both(self, facts):
        return self.smt.And([self.yes, self.yes, *facts])  # solvers want two facts or more

    def either(self, facts):
        return self.smt.Or(facts + facts)

    def pick(self, fact, one, other):
        return self.smt.If(fact, one, other)


def same_by_solvers(one, two, size, inputs, what):
    """Ask z3 and cvc5, if installed, for a point where two functions differ."""
    answers, at = {}, None
    for name, module, time_limit in (("z3", "z3", "timeout"), ("cvc5", "cvc5.pythonic", "tlimit-per")):
        try:
            smt = importlib.import_module(module)
        except ImportError:
            continue
        solver, point, context = difference(smt, one, two, size, inputs)
        seconds = min(SOLVER_SECONDS, TASK.get().end - time.monotonic())
        if seconds <= 0:
            break
        solver.set(time_limit, max(1, int(seconds * 1000)))
        answers[name] = ask(solver, context, seconds)
        if answers[name] == "sat":
            at = [solver.model().eval(coordinate, True).as_long() for coordinate in point]
    limit(answers, "this rule asks solvers, and none is installed: z3-solver, cvc5")
    require(not {"sat", "unsat"} <= set(answers.values()), "the solvers disagree", **answers)
    if at is not None:  # believed only if the values do differ there
        start = [np.array([number], dtype=object) for number in at]
        compare(one, two, 1, what, lambda _: start, max(64, bits_in(at)))
    sure = [name for name, answer in answers.items() if answer == "unsat"]
    limit(sure, f"no solver decided within {SOLVER_SECONDS} seconds (z3 and cvc5 are asked): {answers}")
    return f"by {' and '.join(sure)}"


def difference(smt, one, two, size, inputs):
    """Return a solver that looks for a point where two functions differ, the point, and the context of both."""
    context = smt.Context()
    point = [smt.Int(f"x{place}", context) for place in range(inputs or 1)]
    left_way, right_way = Terms(smt, context), Terms(smt, context)
    left, right = follow(one, point, left_way), follow(two, point, right_way)
    require(len(left) == len(right), "the functions have different numbers of values")
    defined_apart = left_way.ok != right_way.ok
    values_apart = [smt.And([left_way.ok, mine != other]) for mine, other in zip(left, right)]
    solver = smt.Solver(ctx=context)
    solver.add(smt.Or([defined_apart, defined_apart, *values_apart]))
    if inputs is None:
        solver.add([point[0] >= 0, point[0] < size])
    return solver, point, context


def ask(solver, context, seconds):
    """Return what a solver says, interrupted if it ignores its limit, as z3 may."""
    interrupt = threading.Timer(seconds + 0.05, getattr(context, "interrupt", int))
    interrupt.daemon = True
    interrupt.start()
    try:
        return str(solver.check())
    except Exception as error:  # an interrupt may end a call with an error
        return f"unknown ({error})"
    finally:
        interrupt.cancel()


# --- the kinds -------------------------------------------------------------------------------------------------------
def require_domain(function):
    one_of_both = (function.size is None) != (function.inputs is None)
    require(one_of_both, "a function has either a size or inputs", size=function.size, inputs=function.inputs)


def equality(statement, rule):
    """f(i) = g(i) for all i."""
    f, g = statement.f, statement.g
    require_domain(f)
    same_domain = (f.size, f.inputs) == (g.size, g.inputs)
    require(same_domain, "f and g have different domains", f=f.size or f.inputs, g=g.size or g.inputs)
    return f"f = g {same(f.stages, g.stages, rule, f.size, f.inputs, 'f and g differ')}"


def inequality(statement, evidence):
    """The values at a point differ; outside its domain a function has none."""
    at, values = evidence.at, []
    for function in (statement.f, statement.g):
        require_domain(function)
        require_function(function.stages, function.size != 0, function.inputs or 1)
        values.append(value_at(function.stages, *at) if in_domain(function, at) else None)
    require(values[0] != values[1], "f and g do not differ there", at=at, value=values[0])
    return f"f is {values[0]} and g is {values[1]} at {at}"


def in_domain(function, at):
    if function.inputs is not None:
        return len(at) == function.inputs
    return len(at) == 1 and 0 <= at[0] < function.size


def require_function(path, some, inputs=1):
    """Refute stages that do not fit together, even if no value of them is asked: they make no function."""
    values_at(path, [np.zeros(int(some), dtype=np.int64)] * inputs)


def composition(statement, rule):
    """h(i) = f(g(i)) for all i, every g(i) in the domain of f."""
    f, g, h = statement.f, statement.g, statement.h
    require(g.size == h.size, "h has another size than g", got=h.size, expected=g.size)
    within(g.stages, rule, g.size, f.size)
    return f"h = f o g {same(h.stages, g.stages + f.stages, rule, g.size, what='h is not f o g')}"


def no_composition(statement, evidence):
    """Some g(i) is not in the domain of f."""
    f, g, at = statement.f, statement.g, evidence.at
    require_function(f.stages, f.size > 0)
    require(at < g.size, "evidence.at is not in the domain", got=at, size=g.size)
    value = value_at(g.stages, at)
    outside = value and len(value) == 1 and not 0 <= value[0] < f.size
    require(outside, "g(i) is in the domain of f", i=at, got=value, size=f.size)
    return f"g({at}) = {value} is not in 0 to {f.size - 1}"


def inverse(statement, rule):
    """left: g o f = 1; right: f o g = 1; both: left, between sets of one size."""
    f, g, side = statement.f, statement.inverse, statement.side
    first, second = (g, f) if side == "right" else (f, g)
    sizes_fit = side != "both" or first.size == second.size
    require(sizes_fit, "the sizes differ, so no inverse is two-sided", f=first.size, g=second.size)
    within(first.stages, rule, first.size, second.size)
    decided = same(first.stages + second.stages, [], rule, first.size, what="this is not an inverse")
    return f"{side} inverse {decided}"


def no_inverse(statement, evidence):
    """Two points of one value exclude a left inverse. A value that is not taken excludes a right inverse: some stages
    take all values of f to one number, and that value to another."""
    by_points = evidence.points is not None
    by_value = [part is not None for part in (evidence.missed, evidence.invariant, evidence.by)]
    fits = by_value == [not by_points] * 3
    require(fits, "evidence is two points, or a missed value with an invariant and by")
    other_side = "right" if by_points else "left"
    require(statement.side != other_side, "two points exclude a left inverse, a missed value a right one")
    if by_points:
        return not_injective(statement.f, evidence.points)
    return not_surjective(statement.f, statement.codomain, evidence)


def not_injective(f, points):
    two = points[0] != points[1] and max(points) < f.size
    require(two, "the points are not two of the domain", points=points)
    values = [value_at(f.stages, point) for point in points]
    equal = values[0] is not None and values[0] == values[1]
    require(equal, "the values differ", points=points, values=values)
    return f"f({points[0]}) = f({points[1]})"


def not_surjective(f, codomain, evidence):
    missed, invariant = evidence.missed, evidence.invariant
    require(missed < codomain, "the missed value is not in the codomain", got=missed, codomain=codomain)
    kept = value_at(f.stages + invariant, 0)
    tells = kept is not None and value_at(invariant, missed) != kept
    require(tells, "the stages do not tell the missed value", value=missed)
    constant = [["affine", [[0]] * len(kept), kept]]
    decided = same(f.stages + invariant, constant, evidence.by, f.size, what="the stages vary")
    return f"{missed} is not taken: {kept} {decided}"


SYSTEM = {"size": POSITIVE, "at": stages, "unknowns": range(65), "rows": stages}


def none_of(statement, evidence):
    """Candidates are systems of linear equations in unknown integers: for every i below its size, "rows" of i and of f
    at the points "at"(i) are equations, one after the other, each the factors of the unknowns and then the value. None
    has a solution: a listed sum of its rows [factor, i, row], modulo m unless that is 0, is 0 = not 0."""
    candidates, sums = statement.candidates, evidence.sums
    require(0 < len(candidates) == len(sums), "there is not one sum for each candidate", got=len(sums))
    for number, (system, (modulus, terms)) in enumerate(zip(candidates, sums)):
        total = np.zeros(system.unknowns + 1, dtype=object)
        for factor, i, row in terms:
            equations = equations_at(system, statement.f, i, number)
            whole_rows = len(equations) % len(total) == 0
            exists = row * len(total) < len(equations) and whole_rows
            require(exists, "there is no such row", i=i, row=row)
            total = total + factor * equations.reshape(-1, len(total))[row]
        if modulus:
            total = total % modulus
        contradiction = total[-1] and not total[:-1].any()
        require(contradiction, "its rows do not exclude it", candidate=number, sum=total.tolist())
    return f"f is none of {len(candidates)} candidates"


def equations_at(system, f, i, number):
    """Return the equations of a system at i, one after the other."""
    places = value_at(system.at, i) if i < system.size else None
    values = [value_at(f.stages, x) if 0 <= x < f.size else None for x in places or [-1]]
    require(None not in values, "f has no value there", candidate=number, i=i)
    return np.array(value_at(system.rows, i, *itertools.chain(*values)) or (), dtype=object)


SIDE = {"left", "right", "both"}
KINDS = {
    "equality": (equality, {"f": ANY, "g": ANY}, RULE),
    "inequality": (inequality, {"f": ANY, "g": ANY}, {"at": [int]}),
    "composition": (composition, {"f": SIZED, "g": SIZED, "h": SIZED}, RULE),
    "no-composition": (no_composition, {"f": SIZED, "g": SIZED}, {"at": NATURAL}),
    "inverse": (inverse, {"f": SIZED, "inverse": SIZED, "side": SIDE}, RULE),
    "no-inverse": (
        no_inverse,
        {"f": SIZED, "codomain": NATURAL, "side": SIDE},
        {"points?": (NATURAL, NATURAL), "missed?": NATURAL, "invariant?": stages, "by?": RULE},
    ),
    "none-of": (none_of, {"f": SIZED, "candidates": [SYSTEM]}, {"sums": [(NATURAL, [(int, NATURAL, NATURAL)])]}),
}

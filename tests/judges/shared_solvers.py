"""What z3 says to the questions of the finders of shared-memory layouts: orders of digits, pitches."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from layoutalg.ground import solver
from layoutalg.synth.solving.accesses import BANK_BITS
from layoutalg.synth.solving.orders import MAX_RUNS, START_BITS, Cost, Found, Question
from layoutalg.synth.solving.padding import AtLeast, Condition, Form, Multiple
from layoutalg.synth.solving.space import CHUNK_BITS, Digit, xors
from layoutalg.targets.bank_counting import TURN_BYTES


@solver.whole
def by_solver(asked: Question, bound: Cost | None, passed: tuple[Found, ...] = ()) -> Found | None:
    """Return an order cheaper than a bound and not in ``passed``, or None if z3 proves that there is none."""
    if not asked.cases:
        return None
    session = solver.session("QF_BV")
    z3, context, add = session.z3, session.context, session.solver.add
    bits = max(asked.top.bit_length(), 4)

    def number(value: int, width: int = bits) -> Any:
        return z3.BitVecVal(value, width, context)

    def anyone(terms: list[Any]) -> Any:
        return z3.Or(*terms) if terms else z3.BoolVal(False, context)

    place = {digit: z3.BitVec(f"place {digit[0]} {digit[1]}", bits, context) for digit in asked.free}
    choice = z3.BitVec("swizzle", bits, context)
    add(z3.ULT(choice, number(len(asked.cases))))
    for value in place.values():
        add(z3.UGE(value, number(CHUNK_BITS)), z3.ULT(value, number(asked.top)))
    if len(place) > 1:
        add(z3.Distinct(*place.values()))
    known = {digit: index + asked.box.low for index, digit in enumerate(asked.chunk)}

    def stands(digit: Digit, at: int) -> Any:
        return z3.BoolVal(known[digit] == at, context) if digit in known else place[digit] == number(at)

    last = asked.chunk[-1:]
    joined = {
        above: anyone(
            [
                z3.And(stands(one, above - 1), stands(two, above))
                for one in (*last, *asked.free)
                for two in asked.free
                if asked.continues(one, two)
            ]
        )
        for above in range(CHUNK_BITS, asked.top)
    }
    for index, case in enumerate(asked.cases):
        terms = [stands(digit, at) for digit, at in case.at.items()]
        terms += [place[two] == (place[one] if one in place else number(known[one])) + 1 for one, two in case.after]
        if asked.copies:
            terms += [joined[above] for above in range(CHUNK_BITS, min(case.span, asked.top))]
        add(z3.Implies(choice == number(index), z3.And(*terms) if terms else z3.BoolVal(True, context)))
    wide = 32
    total = number(asked.fixed, wide)
    for access in asked.accesses:
        held = access.terms or ()
        lost = number(sum(known.get(digit, 2) >= 2 for digit in held), wide)
        for bit in BANK_BITS:
            ways = [stands(digit, bit) for digit in held]
            for index, case in enumerate(asked.cases):
                source = xors(case.xor).get(bit)
                if source is not None:
                    ways.append(z3.And(choice == number(index), anyone([stands(digit, source) for digit in held])))
            lost = lost - z3.If(anyone(ways), number(1, wide), number(0, wide))
        total = total + (number(len(access.rows), wide) << lost)
    few = {}
    for spare in range(len(asked.free) + 1):
        above = asked.top - spare
        if asked.copies and (spare == 0 or above >= START_BITS):
            breaks = number(0, wide)
            for at in range(CHUNK_BITS, above):
                spans = [choice == number(i) for i, case in enumerate(asked.cases) if case.span == at]
                breaks = breaks + z3.If(z3.And(joined[at], z3.Not(anyone(spans))), number(0, wide), number(1, wide))
            few[asked.copies << spare] = z3.ULE(breaks, number(MAX_RUNS - 1, wide))
    if asked.copies:
        add(anyone(list(few.values())))
    if bound is not None:
        issues, turns = bound
        less = z3.ULT(total, number(turns, wide))
        ways = [held for many, held in few.items() if many < issues]
        ways += [z3.And(held, less) for many, held in few.items() if many == issues]
        add(anyone(ways) if asked.copies else less)
    for found in passed:
        same = [place[digit] == number(CHUNK_BITS + index) for index, digit in enumerate(found.digits)]
        if found.case in asked.cases and set(found.digits) == set(asked.free):
            add(z3.Not(z3.And(choice == number(asked.cases.index(found.case)), *same)))
    values = solver.solve(session, "an order of digits", [choice, *place.values()])
    if values is None:
        return None
    digits = sorted(asked.free, key=dict(zip(asked.free, values[1:], strict=True)).__getitem__)
    return Found(tuple(digits), asked.cases[values[0]])


@solver.whole
def point_below(
    names: Sequence[str], conditions: Sequence[Condition], bounds: Sequence[tuple[Form, str, int]]
) -> dict[str, int] | None:
    """Pitches that satisfy the conditions and the bounds (form, "=" or "<=", number); None where there are none."""
    session = solver.session()
    z3, context, add = session.z3, session.context, session.solver.add
    held = {name: z3.Int(name, context) for name in names}

    def value(form: Form) -> Any:
        return z3.Sum([z3.IntVal(0, context), *(held[name] * factor for name, factor in form)])

    add(*(each >= 0 for each in held.values()))
    for condition in conditions:
        if isinstance(condition, AtLeast):
            add(value(condition.form) >= condition.low)
        elif isinstance(condition, Multiple):
            add((value(condition.form) - condition.rest) % condition.of == 0)
        else:
            lanes = list(itertools.product(*(range(count) for _, count in condition.steps)))
            starts = [sum(i * held[name] for i, (name, _) in zip(lane, condition.steps, strict=True)) for lane in lanes]
            add(*(start % condition.access_bytes == 0 for start in starts[1:]))
            add(*((one - two) % TURN_BYTES != 0 for one, two in itertools.combinations(starts, 2)))
    for form, relation, bound in bounds:
        add(value(form) == bound if relation == "=" else value(form) <= bound)
    values = solver.solve(session, "pitches", list(held.values()))
    return None if values is None else dict(zip(names, values, strict=True))


def lesser(
    names: Sequence[str], conditions: Sequence[Condition], objective: Sequence[Form], found: dict[str, int]
) -> Any:
    """A point that is lexicographically smaller in the objective and the pitches; None where z3 shows none."""
    fixed: tuple[tuple[Form, str, int], ...] = ()
    for form in (*objective, *(((name, 1),) for name in names)):
        value = sum(factor * found[name] for name, factor in form)
        less = point_below(names, conditions, (*fixed, (form, "<=", value - 1)))
        if less is not None:
            return less
        fixed = (*fixed, (form, "=", value))
    return None

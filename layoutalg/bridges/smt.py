"""Equality of two functions on digits, decided by z3.

Implementation notes: every variable is a bounded integer and every constraint is linear (a floor is a variable with two
inequalities). ``ground.solver`` enforces the time limit and checks models; the caller must confirm an "equal" answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from layoutalg.bridges.digits import DigitSystem, Joint, Sum
from layoutalg.ground import clock, solver
from layoutalg.ground.errors import BudgetError, Diagnostic
from layoutalg.piecewise.layout import PiecewiseLayout
from layoutalg.piecewise.pieces import Form, Piece

Side: TypeAlias = DigitSystem | PiecewiseLayout


@solver.whole
def first_difference(joint: Joint, left: Side, right: Side, milliseconds: int) -> dict[str, int] | None:
    """Return joint digits where two functions differ, or None if they agree everywhere.

    Args:
        joint: The joint digits.
        left: A function on its own digits; its variables must not clash with those of ``right``.
        right: The other function.
        milliseconds: The time limit.

    Example:
        >>> from layoutalg.bridges.digits import digit_system
        >>> from layoutalg.bridges.digits import joint_digits
        >>> from layoutalg.cute import CuteLayout
        >>> left, right = digit_system(CuteLayout((2, 2), (1, 2)), "f"), digit_system(CuteLayout(4, 1), "g")
        >>> first_difference(joint_digits((2, 2), (4,)), left, right, 1000) is None
        True
    """
    session = solver.session("QF_LIA")
    writer = _Writer(session.z3, session.context, session.solver)
    for name, extent in joint.digits:
        writer.declare(name, 0, extent - 1)
    for equation in joint.equations:
        session.solver.add(writer.sum(equation) == 0)
    pairs = zip(writer.function(left, joint.left), writer.function(right, joint.right), strict=True)
    session.solver.add(session.z3.Or([a != b for a, b in pairs]))
    names = [name for name, _ in joint.digits]
    given = clock.left(milliseconds / 1000)
    try:
        found = solver.solve(session, "equality on digits", [writer.names[name] for name in names], given)
    except BudgetError as error:
        if error.diagnostic.code != "LA001":
            raise
        because = f"no answer within {given * 1000:.0f} ms"
        diagnostic = Diagnostic("LA225", "z3 gave up", ("equality on digits",), because, {"milliseconds": milliseconds})
        raise BudgetError(diagnostic) from None
    return None if found is None else dict(zip(names, found, strict=True))


class _Writer:
    """Translates sums, systems and pieces to z3 terms."""

    def __init__(self, z3: Any, context: Any, solver: Any) -> None:
        self.z3, self.context, self.solver = z3, context, solver
        self.names: dict[str, Any] = {}

    def declare(self, name: str, low: int, high: int) -> None:
        self.names[name] = self.z3.Int(name, self.context)
        self.solver.add(self.names[name] >= low, self.names[name] <= high)

    def number(self, value: int) -> Any:
        return self.z3.IntVal(value, self.context)

    def sum(self, value: Sum, own: Mapping[str, Any] | None = None) -> Any:
        """Return a sum as a term; ``own`` are the digits of one side."""
        scope = self.names if own is None else {**self.names, **own}
        return self.z3.Sum([self.number(value.constant), *(scope[name] * a for name, a in value.terms)])

    def function(self, function: Side, digits: Sequence[Sum]) -> list[Any]:
        """Return the outputs of a function whose digits are the given sums of joint digits."""
        terms = [self.sum(digit) for digit in digits]
        if isinstance(function, DigitSystem):
            own = {name: term for (name, _), term in zip(function.inputs, terms, strict=True)}
            for variable in function.variables:
                self.declare(variable.name, variable.low, variable.high)
            for equation in function.equations:
                self.solver.add(self.sum(equation, own) == 0)
            return [self.sum(function.value, own)]
        return self.either(function.value.pieces, terms)

    def either(self, choices: Sequence[Piece], digits: Sequence[Any]) -> list[Any]:
        count = len(choices[0].outputs)
        outputs = [self.number(0) for _ in range(count)]
        for piece in choices:
            clock.check("writing a question for z3")
            inside = self.z3.Or(
                [
                    self.z3.And(
                        [
                            (self.value(form, digits, floors) == 0)
                            if equal
                            else (self.value(form, digits, floors) >= 0)
                            for form, equal in region.constraints
                        ]
                        or [self.z3.BoolVal(True, self.context)]
                    )
                    for region in piece.regions
                    for floors in [self.floors(region.floors, digits)]
                ]
            )
            for position, (definitions, form) in enumerate(piece.outputs):
                value = self.value(form, digits, self.floors(definitions, digits))
                outputs[position] = self.z3.If(inside, value, outputs[position])
        return outputs

    def floors(self, definitions: Sequence[Form], digits: Sequence[Any]) -> list[Any]:
        known: list[Any] = []
        for form in definitions:
            known.append(self.value(form, digits, known))
        return known

    def value(self, form: Form, digits: Sequence[Any], floors: Sequence[Any]) -> Any:
        """Return the rounded-down value of a form; a new variable if it needs rounding."""
        terms = [
            term * a for a, term in (*zip(form.dims, digits, strict=True), *zip(form.floors, floors, strict=False))
        ]
        total = self.z3.Sum([self.number(form.constant), *terms])
        if form.denominator == 1:
            return total
        name = f"floor{len(self.names)}"
        self.names[name] = floor = self.z3.Int(name, self.context)
        self.solver.add(floor * form.denominator <= total, total < (floor + 1) * form.denominator)
        return floor

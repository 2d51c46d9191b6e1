"""Equality of two functions on digits, decided by z3.

Implementation notes: every variable is a bounded integer and every constraint is linear (a floor is a variable with two
inequalities). ``ground.solver`` enforces the time limit and checks models; the caller must confirm an "equal" answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layoutalg.bridges.digits import Joint, Sum
from layoutalg.ground import clock, solver
from layoutalg.ground.errors import BudgetError, Diagnostic
from layoutalg.piecewise.layout import PiecewiseLayout
from layoutalg.piecewise.pieces import Form, Piece


@solver.whole
def first_difference(
    joint: Joint, left: PiecewiseLayout, right: PiecewiseLayout, milliseconds: int
) -> dict[str, int] | None:
    """Return joint digits where two functions differ, or None if they agree everywhere.

    Args:
        joint: The joint digits.
        left: A total layout whose axes are the digits of the left side.
        right: The other one.
        milliseconds: The time limit.

    Example:
        >>> from layoutalg.bridges.digits import joint_digits
        >>> left = PiecewiseLayout("{ [a, b] -> [a + 2b] : 0 <= a, b < 2 }")
        >>> right = PiecewiseLayout("{ [i] -> [i] : 0 <= i < 4 }")
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
    """Translates sums and pieces to z3 terms."""

    def __init__(self, z3: Any, context: Any, solver: Any) -> None:
        self.z3, self.context, self.solver = z3, context, solver
        self.names: dict[str, Any] = {}

    def declare(self, name: str, low: int, high: int) -> None:
        self.names[name] = self.z3.Int(name, self.context)
        self.solver.add(self.names[name] >= low, self.names[name] <= high)

    def number(self, value: int) -> Any:
        return self.z3.IntVal(value, self.context)

    def sum(self, value: Sum) -> Any:
        """Return a sum of joint digits as a term."""
        return self.z3.Sum([self.number(0), *(self.names[name] * a for name, a in value.terms)])

    def function(self, layout: PiecewiseLayout, digits: Sequence[Sum]) -> list[Any]:
        """Return the outputs of a layout whose axes are the given sums of joint digits."""
        return self.either(layout.value.pieces, [self.sum(digit) for digit in digits])

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

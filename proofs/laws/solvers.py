"""Solvers that answer SMT-LIB 2 text: z3, and cvc5 and bitwuzla where they are installed.

Implementation notes: the text declares and asserts; the solvers add the question. cvc5 and bitwuzla are imported on use
and nowhere else. An answer that is not there in time is a ``BudgetError``.

References: SMT-LIB 2.6.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from layoutalg.ground import clock
from layoutalg.ground.solver import session, solve, whole

Sorts = Mapping[str, int]
"""Names asked for, each with its width in bits; 0 for an integer."""
Model = dict[str, int]
_PAIR = re.compile(r"\(([^\s()]+) (#b[01]+|#x[0-9a-f]+|-?\d+|\(- \d+\))\)")


@dataclass(frozen=True, slots=True)
class Answerer:
    """A solver."""

    name: str  # its name, which is that of its module unless it is z3
    # from text, the names wanted and seconds to their values, or None where nothing satisfies the text
    ask: Callable[[str, Sorts, float], Model | None]


def installed(answerer: Answerer) -> bool:
    """Return whether a solver can be asked here; z3 always can."""
    return answerer is Z3 or find_spec(answerer.name) is not None


@whole
def _ask_z3(text: str, names: Sorts, seconds: float) -> Model | None:
    asked = session()
    z3 = asked.z3
    asked.solver.from_string(text)
    wanted = [
        z3.BitVec(name, width, asked.context) if width else z3.Int(name, asked.context) for name, width in names.items()
    ]
    values = solve(asked, "a law", wanted, seconds)
    return None if values is None else _model(names, values)


def _ask_cvc5(text: str, names: Sorts, seconds: float) -> Model | None:
    import cvc5

    given = _given(seconds)
    solver = cvc5.Solver()
    solver.setOption("produce-models", "true")
    solver.setOption("tlimit-per", str(int(given * 1000) + 1))
    parser = cvc5.InputParser(solver)
    asked = f"(set-logic ALL)\n{text}\n(check-sat)"
    answer = _run(cvc5, solver, parser, asked)
    if answer == "unsat":
        return None
    if answer != "sat":
        clock.out_of_time("a law", given)
    told = _run(cvc5, solver, parser, f"(get-value ({' '.join(names)}))") if names else ""
    read = {name: _number(value) for name, value in _PAIR.findall(told)}
    return _model(names, [read[name] for name in names])


def _run(cvc5: Any, solver: Any, parser: Any, text: str) -> str:
    """Run commands and return the last thing said."""
    parser.setIncrementalStringInput(cvc5.InputLanguage.SMT_LIB_2_6, "law")
    parser.appendIncrementalStringInput(text)
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said = command.invoke(solver, parser.getSymbolManager()).strip() or said
    return str(said)


def _ask_bitwuzla(text: str, names: Sorts, seconds: float) -> Model | None:
    import bitwuzla

    given = _given(seconds)
    options = bitwuzla.Options()
    options.set(bitwuzla.Option.PRODUCE_MODELS, True)
    options.set(bitwuzla.Option.TIME_LIMIT_PER, int(given * 1000) + 1)
    parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
    parser.parse(f"(set-logic QF_BV)\n{text}\n", True, False)
    solver = parser.bitwuzla()
    answer = solver.check_sat()
    if answer == bitwuzla.Result.UNSAT:
        return None
    if answer != bitwuzla.Result.SAT:
        clock.out_of_time("a law", given)
    terms = {term.symbol(): term for term in parser.get_declared_funs()}
    return _model(names, [int(solver.get_value(terms[name]).value(10)) for name in names])


def _given(seconds: float) -> float:
    given = clock.left(seconds)
    if given <= 0:
        clock.out_of_time("a law")
    return given


def _number(text: str) -> int:
    if text.startswith("#"):
        return int(text[2:], 2 if text[1] == "b" else 16)
    return int(text.replace("(", "").replace(")", "").replace(" ", ""))


def _model(names: Sorts, values: list[int]) -> Model:
    """Bit-vectors are read as two's complement."""
    return {
        name: value - (value >> width - 1 << width) if width else value
        for (name, width), value in zip(names.items(), values, strict=True)
    }


Z3 = Answerer("z3", _ask_z3)
CVC5 = Answerer("cvc5", _ask_cvc5)
BITWUZLA = Answerer("bitwuzla", _ask_bitwuzla)

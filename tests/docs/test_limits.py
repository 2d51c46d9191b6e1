"""The table of limits in docs/reliability.md is the one that the code uses; ``--update-golden`` writes it again."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- limits: begin -->\n", "<!-- limits: end -->\n"
FOLDERS = ("layoutalg", "synth", "proofs", "targets", "codegen")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
SHARED = ROOT / "layoutalg" / "ground" / "limits.py"


@cache
def rows() -> list[tuple[str, object, str, str]]:
    """(name, value, unit, meaning) of every ``NAME: Final`` followed by ``unit: meaning``, shared ones first."""
    found = []
    for path in sorted(FILES, key=lambda path: (path != SHARED, path)):
        text = path.read_text(encoding="utf-8")
        if "Final" not in text:
            continue
        body = ast.parse(text).body
        for statement, below in zip(body, [*body[1:], None], strict=True):
            match statement, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="Final"), value=ast.expr() as value),
                    ast.Expr(value=ast.Constant(value=str() as text)),
                ) if re.match(r"[a-z ]+: ", text):
                    unit, _, meaning = text.partition(": ")
                    number = eval(compile(ast.Expression(value), str(path), "eval"), {"__builtins__": {}})
                    found.append((name, number, unit, " ".join(meaning.split())))
                case _ if path == SHARED and isinstance(statement, ast.AnnAssign):
                    raise AssertionError(f"line {statement.lineno} of limits.py has no docstring 'unit: meaning'")
    return found


def shown(value: object) -> str:
    """A number as a reader takes it in."""
    if isinstance(value, int) and value >= 2**10 and value & (value - 1) == 0:
        return f"2^{value.bit_length() - 1}"
    if isinstance(value, int) and value % 2**20 == 0:
        return f"{value // 2**20} x 2^20"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def table() -> str:
    lines = [f"| `{name}` | {shown(value)} | {unit} | {meaning} |" for name, value, unit, meaning in rows()]
    return "\n".join(["| limit | value | unit | what it bounds |", "| --- | --- | --- | --- |", *lines, ""])


def test_the_table_is_the_one_in_the_code(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    found, tail = rest.split(END)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(head + BEGIN + table() + END + tail, encoding="utf-8")
        return
    assert found == table(), "docs/reliability.md differs from the code; after review, --update-golden"


def test_every_limit_is_used() -> None:
    used = Counter(
        name for path in FILES for name in re.findall(r"\b[A-Z][A-Z_0-9]+\b", path.read_text(encoding="utf-8"))
    )
    assert [name for name, *_ in rows() if used[name] < 2] == []

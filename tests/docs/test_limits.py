"""The table of limits in docs/reliability.md is the one that the code uses; ``--update-golden`` writes it again."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from layoutalg.ground import limits

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- limits: begin -->\n", "<!-- limits: end -->\n"


def rows() -> list[tuple[str, object, str, str]]:
    """(name, value, unit, meaning) of every constant, which is followed by ``unit: meaning``."""
    body = ast.parse(Path(limits.__file__).read_text(encoding="utf-8")).body
    found = []
    for statement, below in zip(body, [*body[1:], None], strict=True):
        if not isinstance(statement, ast.AnnAssign):
            continue
        assert isinstance(statement.target, ast.Name)
        assert isinstance(below, ast.Expr), f"{statement.target.id} has no docstring"
        assert isinstance(below.value, ast.Constant)
        unit, colon, meaning = str(below.value.value).partition(": ")
        assert colon, f"the docstring of {statement.target.id} must read 'unit: meaning'"
        found.append((statement.target.id, getattr(limits, statement.target.id), unit, " ".join(meaning.split())))
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
    assert found == table(), "docs/reliability.md differs from ground/limits.py; after review, --update-golden"


def test_every_limit_is_used() -> None:
    root = Path(limits.__file__).parents[2]
    files = [
        path
        for folder in ("layoutalg", "synth", "proofs", "targets", "codegen")
        for path in (root / folder).rglob("*.py")
    ]
    used: set[str] = set()
    for path in files:
        if path != Path(limits.__file__):
            used.update(re.findall(r"\b[A-Z][A-Z_0-9]+\b", path.read_text(encoding="utf-8")))
    assert {name for name, *_ in rows()} - used == set()

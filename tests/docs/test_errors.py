"""docs/errors.md holds every error code of the sources once, in order, with the exceptions that carry it."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
ROWS = [line.strip("|").split("|") for line in PAGE.splitlines() if re.match(r"\| LA\d{3} ", line)]
CODES = [row[0].strip() for row in ROWS]


def trees() -> Iterator[ast.Module]:
    for folder in ("layoutalg", "targets", "synth", "codegen", "proofs"):
        for path in (ROOT / folder).rglob("*.py"):
            yield ast.parse(path.read_text(encoding="utf-8"))


def code_of(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and re.fullmatch(r"LA\d{3}", str(node.value)) else None


def raised() -> dict[str, set[str]]:
    """The exceptions that are constructed with a diagnostic of a literal code."""
    found = defaultdict(set)
    for tree in trees():
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args):
            inner = call.args[0]
            if isinstance(call.func, ast.Name) and call.func.id.endswith("Error") and isinstance(inner, ast.Call):
                for value in (*inner.args[:1], *(word.value for word in inner.keywords if word.arg == "code")):
                    if (code := code_of(value)) is not None:
                        found[code].add(call.func.id)
    return found


def test_every_code_has_one_row_in_order() -> None:
    used = {code for tree in trees() for node in ast.walk(tree) if (code := code_of(node)) is not None}
    assert sorted(used) == CODES


def test_every_row_is_one_sentence_in_three_cells() -> None:
    for row in ROWS:
        assert len(row) == 3, row
        assert all(cell.strip() for cell in row), row
        means = row[2].strip()
        assert means[0].isupper() or means.startswith("`"), row
        assert means.endswith("."), row


def test_the_exceptions_are_those_of_the_sources() -> None:
    listed = {row[0].strip(): {name.strip() for name in row[1].split(",")} for row in ROWS}
    for code, names in raised().items():
        assert names <= listed[code], code

"""docs/errors.md holds every error code of the sources once, in order, with the exceptions that carry it."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
ROWS = [line.strip("|").split("|") for line in PAGE.splitlines() if re.match(r"\| LA\d{3} ", line)]
CODES = [row[0].strip() for row in ROWS]


def trees() -> Iterator[ast.Module]:
    for folder in ("layoutalg", "targets", "synth", "codegen", "proofs"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if re.search(r"LA\d{3}", text):
                yield ast.parse(text)


def code_of(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and re.fullmatch(r"LA\d{3}", str(node.value)) else None


@cache
def sources() -> tuple[set[str], dict[str, set[str]]]:
    """The codes of the sources, and for each the exceptions that are constructed with a diagnostic of it."""
    used, raised = set(), defaultdict(set)
    for node in (node for tree in trees() for node in ast.walk(tree)):
        if isinstance(node, ast.expr) and (code := code_of(node)) is not None:
            used.add(code)
        if not (isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Name)):
            continue
        inner = node.args[0]
        if node.func.id.endswith("Error") and isinstance(inner, ast.Call):
            for value in (*inner.args[:1], *(word.value for word in inner.keywords if word.arg == "code")):
                if (code := code_of(value)) is not None:
                    raised[code].add(node.func.id)
    return used, raised


def test_every_code_has_one_row_in_order() -> None:
    assert sorted(sources()[0]) == CODES


def test_every_row_is_one_sentence_in_three_cells() -> None:
    for row in ROWS:
        assert len(row) == 3, row
        assert all(cell.strip() for cell in row), row
        means = row[2].strip()
        assert means[0].isupper() or means.startswith("`"), row
        assert means.endswith("."), row


def test_the_exceptions_are_those_of_the_sources() -> None:
    listed = {row[0].strip(): {name.strip() for name in row[1].split(",")} for row in ROWS}
    for code, names in sources()[1].items():
        assert names <= listed[code], code

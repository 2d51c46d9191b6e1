"""The stored mutants: small wrong changes to the library that its own related tests must notice.

A TOML file of this folder lists source files, each with the tests related to it and its mutants. ``old`` stands exactly
once in the file, or in the function or class that ``within`` names, so edits elsewhere in the file change nothing.
"""

from __future__ import annotations

import ast
import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KILLERS = HERE / "killers.json"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One wrong change, and the tests that must notice it.

    Attributes:
        name: Unique. path: The file, from the root. within: A function or class of the file, "" for all of it.
        old, new: The text that is replaced, and by what. tests: Files, the quickest first. checker: Whether the file
            decides what is proved. killer: The one test that the last full run saw fail, "" before that. waits: The
            reason why no test kills it yet, "" for all others.
    """

    name: str
    path: str
    within: str
    old: str
    new: str
    tests: tuple[str, ...]
    checker: bool
    killer: str
    waits: str


def load() -> list[Mutant]:
    """Return all stored mutants, in order of their names."""
    killers: dict[str, str] = json.loads(KILLERS.read_text()) if KILLERS.exists() else {}
    found = []
    for listing in sorted(HERE.glob("*.toml")):
        for entry in tomllib.loads(listing.read_text())["file"]:
            for mutant in entry["mutant"]:
                name = mutant["name"]
                found.append(
                    Mutant(
                        name,
                        entry["path"],
                        mutant.get("within", ""),
                        mutant["old"],
                        mutant["new"],
                        tuple(mutant.get("tests", entry["tests"])),
                        entry.get("checker", False),
                        killers.get(name, ""),
                        mutant.get("waits", ""),
                    )
                )
    return sorted(found, key=lambda mutant: mutant.name)


def mutated(mutant: Mutant, text: str) -> str:
    """Return the text of the mutant's file with the change made.

    Raises: ValueError: its place is not there exactly once, or the change is none.
    """
    python = mutant.path.endswith(".py")  # other files have no `within`
    tree = _tree(text) if python else None
    lines = text.splitlines(keepends=True)
    first, last = 0, len(lines)
    for name in mutant.within.split(".") if mutant.within else ():
        node = _member(tree, name)
        if node is None:
            raise ValueError(f"{mutant.path} has no {mutant.within}")
        tree, first, last = node, node.lineno - 1, node.end_lineno
    part = "".join(lines[first:last])
    count = part.count(mutant.old)
    if count != 1:
        raise ValueError(f"{mutant.old!r} stands {count} times in {mutant.within or mutant.path}, not once")
    changed = part.replace(mutant.old, mutant.new)
    if python and _meaning(changed) == _meaning(part):
        raise ValueError(f"{mutant.new!r} means what {mutant.old!r} means")
    return "".join([*lines[:first], changed, *lines[last:]])


@cache
def _tree(text: str) -> Any:
    return ast.parse(text)


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a tree and the statements in it: no expression, nine nodes of ten, holds one."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]


def _member(tree: Any, name: str) -> Any:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = [node for node in _statements(tree) if isinstance(node, kinds) and node.name == name and node is not tree]
    return found[0] if len(found) == 1 else None


def _meaning(text: str) -> str:
    """Return the syntax tree without docstrings and positions; the text may be an indented part of a file."""
    tree = ast.parse(f"if True:\n{text}" if text[:1].isspace() else text)
    for node in _statements(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)


def faults(mutants: list[Mutant], root: Path = ROOT) -> list[str]:
    """Return what is wrong with the stored mutants, one line each: places that moved, tests that are gone."""
    answer = []
    names = [mutant.name for mutant in mutants]
    answer += [f"{name}: stored twice" for name in sorted({name for name in names if names.count(name) > 1})]
    texts: dict[str, str] = {}
    for mutant in mutants:
        try:
            text = texts.setdefault(mutant.path, (root / mutant.path).read_text(encoding="utf-8"))
            mutated(mutant, text)
        except (OSError, ValueError, SyntaxError) as error:
            answer.append(f"{mutant.name}: {error}")
        gone = [test for test in mutant.tests if not (root / test).is_file()]
        if gone or not mutant.tests:
            answer.append(f"{mutant.name}: no tests {gone}")
        file, _, function = mutant.killer.partition("::")
        if file and file not in mutant.tests:
            answer.append(f"{mutant.name}: its killer {mutant.killer} is not of its tests")
        elif function and (root / file).is_file():
            text = texts.setdefault(file, (root / file).read_text(encoding="utf-8"))
            if f"def {function.partition('[')[0].split('::')[-1]}(" not in text:
                answer.append(f"{mutant.name}: its killer {mutant.killer} is gone")
    return answer

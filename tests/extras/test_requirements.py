"""What the parts behind each extra import is in the list of that extra, read from the source, without installing."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HOMES = {"synth": "synth", "targets": "targets", "proofs": "proofs", "codegen": "codegen"}
BRINGS = packages_distributions()
SERVES = {
    "docs": ["docs/conf.py", "docs/generate.py"],
    "test": ["layoutalg/testing"],
    "cuda": ["codegen/compile.py", "codegen/launch.py"],
    "dev": ["tests"],
}
"""What each extra is for; ``hip`` imports nothing: it starts a compiler; executors of ``distributed`` are given."""
OTHERS = {"cutlass", "distributed", "egglog", "jaxlib", "triton", "torch"}
"""Peers that tests start in environments of their own, or skip without."""


def required(extra: str | None) -> set[str]:
    """Names of the distributions that an extra brings, those of other extras in it, and of the library itself."""
    listed = PROJECT["dependencies"] if extra is None else PROJECT["optional-dependencies"][extra]
    found = set() if extra is None else required(None)
    for entry in listed:
        nested = re.fullmatch(r"layoutalg\[(\w+)\]", entry)
        found |= required(nested[1]) if nested else {re.split(r"[<>=]", entry)[0].lower()}
    return found


def statements(tree: ast.AST, *, inside: bool) -> Iterator[ast.AST]:
    """Statements that run when a module is imported, with ``inside`` also those of its functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):  # no statement stands in an expression
            continue
        typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        if not typing and (inside or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)):
            yield node
            yield from statements(node, inside=inside)


@functools.cache
def imported(path: Path, *, inside: bool) -> set[str]:
    """Full names of the modules that a file imports; of Sphinx's settings also extensions and theme."""
    found = set()
    for node in statements(ast.parse(path.read_text(encoding="utf-8")), inside=inside):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or node.level):
            near = ("layoutalg", *path.parent.relative_to(ROOT).parts) if node.level == 1 else ()  # the checker's files
            module = ".".join((*near, *([node.module] if node.module else [])))
            found |= {module} | {f"{module}.{name.name}" for name in node.names}
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("extensions", "html_theme"):
            found |= {each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant)}
    return found


def file_of(module: str) -> Path | None:
    """The file of a module of the library; None for others, and for names inside modules."""
    words = module.split(".")
    if words[0] != "layoutalg":
        return None
    folder = ROOT.joinpath(*(words[1:] if len(words) > 1 and words[1] in HOMES else words))
    return next((path for path in (folder / "__init__.py", folder.with_suffix(".py")) if path.is_file()), None)


def folders(path: Path) -> tuple[Path, ...]:
    """Folders that scripts and tests import from by bare names."""
    return path.parent, ROOT / "tests", ROOT / "benchmarks"


def foreign(starts: list[Path], *, inside: bool) -> dict[str, Path]:
    """Foreign top-level modules that files and what they import of the library need, with one file that does."""
    waiting, seen, found = [(path, inside) for path in starts], set(starts), {}
    while waiting:
        path, whole = waiting.pop()
        for name in imported(path, inside=whole):
            head, near = name.partition(".")[0], file_of(name)
            local = path.is_relative_to(ROOT / "docs") or path.is_relative_to(ROOT / "tests")
            local = local and any(
                folder.joinpath(head + end).exists() for folder in folders(path) for end in ("", ".py")
            )
            if near is not None and near not in seen:
                seen.add(near)
                waiting.append((near, False))
            if head not in (*sys.stdlib_module_names, "layoutalg", "tests", "") and not local:
                found.setdefault(head, path)
    return found


def sources(extra: str) -> list[Path]:
    """Files that an extra is for; ``docs`` documents every module of the pages of its reference too."""
    found = [
        path
        for each in SERVES[extra]
        for path in ([ROOT / each] if each[-3:] == ".py" else (ROOT / each).rglob("*.py"))
    ]
    if extra == "docs":
        spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        doors = [file_of(name) for name in module.DOORS]
        assert None not in doors
        for door in doors:
            assert door is not None
            found += (
                [door] if door.name != "__init__.py" or door.parent.name == "layoutalg" else door.parent.rglob("*.py")
            )
    return found


def lacking(extra: str) -> dict[str, Path]:
    """Foreign modules that nothing in the list of an extra brings."""
    brings, listed = BRINGS, required(extra)
    needed = foreign(sources(extra), inside=extra in ("test", "cuda"))
    return {
        name: path.relative_to(ROOT)
        for name, path in needed.items()
        if name not in OTHERS and not {each.lower() for each in brings.get(name, [name])} & listed
    }


@pytest.mark.parametrize("extra", SERVES)
def test_what_is_imported_is_listed(extra: str) -> None:
    assert lacking(extra) == {}


def test_every_extra_is_tried() -> None:
    assert set(SERVES) | {"hip", "distributed"} == set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize(
    ("extra", "lost", "module"),
    [("docs", "layoutalg[test]", "pytest"), ("docs", "furo>=2025.7", "furo"), ("cuda", "cuda-core>=1.2", "cuda")],
)
def test_a_line_that_is_lost_is_found(extra: str, lost: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [each for each in PROJECT["optional-dependencies"][extra] if each != lost and "cuda" not in each]
    monkeypatch.setitem(PROJECT["optional-dependencies"], extra, kept)
    assert module in lacking(extra)

"""The structure of the package, read from its source: who imports whom, where, and what that looks like.

``python tests/docs/house.py`` prints the packages with their lines, the imports inside functions and the circles.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).parents[2]
FOLDERS = {name: f"layoutalg.{name}" for name in ("synth", "targets", "proofs", "codegen")} | {"layoutalg": "layoutalg"}


@dataclass(frozen=True)
class Import:
    """``source`` imports ``target``; ``function`` is empty at module level."""

    source: str
    target: str
    function: str
    line: int
    only_types: bool


@cache
def modules() -> dict[str, Path]:
    """Module name -> file; the four linked folders count once."""
    found = {}
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            if folder == "layoutalg" and parts[0] in FOLDERS:  # the link
                continue
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            found[".".join((package, *parts))] = path
    return found


def _module_of(name: str) -> str:
    """The module that holds a dotted name, itself included; empty outside the package."""
    while name and name not in modules():
        name = name.rpartition(".")[0]
    return name


def _found(node: ast.AST, source: str, function: str, types: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):  # nine nodes of ten, and no statement stands in one
            continue
        inside = function
        if not function and isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = child.name
        names: list[str] = []
        if isinstance(child, ast.Import):
            names = [alias.name for alias in child.names]
        elif isinstance(child, ast.ImportFrom):
            names = [f"{child.module}.{alias.name}" for alias in child.names]
        for name in names:
            target = _module_of(name) if name.startswith("layoutalg") else name.partition(".")[0]
            if target != source:
                yield Import(source, target, function, child.lineno, types)
        guarded = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        yield from _found(child, source, inside, types or guarded)


@cache
def imports() -> tuple[Import, ...]:
    """Every import statement of the package; targets outside it by their top-level name."""
    return tuple(
        found
        for source, path in modules().items()
        for found in _found(ast.parse(path.read_text(encoding="utf-8")), source, "", types=False)
    )


def inside() -> tuple[Import, ...]:
    """The imports of the package's own modules."""
    return tuple(found for found in imports() if found.target in modules())


def circles(found: Iterable[Import] | None = None) -> list[list[str]]:
    """Modules that import one another at run time, wherever the import stands."""
    found = inside() if found is None else found
    graph = nx.DiGraph((each.source, each.target) for each in found if not each.only_types)
    return sorted(sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 1)


def package(module: str) -> str:
    """The room a module belongs to: the second part of its name, ``layoutalg`` for the front door."""
    return module.split(".")[1] if "." in module else module


def floors() -> list[list[str]]:
    """The floors as the linter holds them, top to bottom; rooms of one floor do not know each other."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[room.strip() for room in layer.split("|")] for layer in layers if not layer.startswith("_")]


def lines() -> Counter[str]:
    """Lines of source per room."""
    count: Counter[str] = Counter()
    for module, path in modules().items():
        count[package(module)] += path.read_text(encoding="utf-8").count("\n")
    return count


def arrows() -> Counter[tuple[str, str]]:
    """(room, room) -> how many modules of the first import from the second; the front door is left out."""
    pairs = {(found.source, package(found.target)) for found in inside()}
    return Counter(
        (package(source), target)
        for source, target in pairs
        if package(source) != target and "layoutalg" not in (package(source), target)
    )


def subject(room: str) -> str:
    """What a room holds, as its docstring begins."""
    text = ast.get_docstring(ast.parse(modules()[f"layoutalg.{room}"].read_text(encoding="utf-8"))) or ""
    return text.split("\n")[0].rstrip(".").split(". ")[0].split(";")[0].replace("``", "").replace("&", "&amp;")


ROW, LEFT, BOX, CELL, TOP = 34, 140, 600, 30, 110
INK, PALE, LINE = "#1f2933", "#eef2f6", "#7b8794"


def picture() -> str:
    """The house as SVG: rooms by floor, the arrows that do not follow from others, and a table of all arrows."""
    rooms = [room for floor in floors() for room in floor if not room.startswith("_")]
    found = arrows()
    graph = nx.DiGraph(edge for edge in found if edge[0] in rooms and edge[1] in rooms)
    short = sorted(nx.transitive_reduction(graph).edges, key=lambda edge: [rooms.index(room) for room in edge])
    middle = {room: TOP + ROW * place for place, room in enumerate(rooms)}
    column = {room: LEFT + BOX + 30 + CELL * place for place, room in enumerate(rooms)}
    width, height = LEFT + BOX + 60 + CELL * (len(rooms) + 1), TOP + ROW * len(rooms)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<defs><marker id="tip" markerWidth="7" markerHeight="7" refX="6" refY="3" orient="auto">'
        f'<path d="M0,0 L6,3 L0,6 z" fill="{LINE}"/></marker></defs>',
        f'<g fill="{INK}" font-weight="bold"><text x="{LEFT}" y="24">The rooms of layoutalg, top floor first</text>'
        f'<text x="{LEFT + BOX + 18}" y="24">The row imports the column</text></g>',
        f'<text x="{LEFT}" y="44" fill="{LINE}">An arrow that follows from others is left out on the left; '
        f"the table holds all of them.</text>",
    ]
    for place, floor in enumerate(floors()):
        if place % 2 and floor[0] in middle:
            top, tall = middle[floor[0]] - ROW // 2, ROW * len(floor)
            parts.append(f'<rect x="{LEFT - 6}" y="{top}" width="{width - LEFT}" height="{tall}" fill="{PALE}"/>')
    for place, (upper, lower) in enumerate(short):
        start, stop = middle[upper] + 6, middle[lower] - 6
        reach = LEFT - 12 - min(112, 12 + 6 * (rooms.index(lower) - rooms.index(upper)) + 3 * (place % 5))
        parts.append(
            f'<path d="M{LEFT},{start} C{reach},{start} {reach},{stop} {LEFT - 2},{stop}" fill="none" '
            f'stroke="{LINE}" marker-end="url(#tip)"/>'
        )
    for room in rooms:
        x, y = column[room], middle[room]
        parts.append(
            f'<rect x="{LEFT}" y="{y - 13}" width="{BOX}" height="26" rx="4" fill="white" stroke="{INK}"/>'
            f'<text x="{LEFT + 10}" y="{y + 4}" fill="{INK}" font-weight="bold">{room}</text>'
            f'<text x="{LEFT + 84}" y="{y + 4}" fill="{INK}" font-size="11">{subject(room)}</text>'
            f'<text transform="translate({x + 4},{TOP - 22}) rotate(-50)" fill="{INK}" font-size="11">{room}</text>'
            f'<rect x="{x - 4}" y="{y - 4}" width="8" height="8" fill="{PALE}" stroke="{LINE}"/>'
        )
        parts += [
            f'<circle cx="{column[other]}" cy="{y}" r="5" fill="{INK}"/>' for other in rooms if found[room, other]
        ]
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Print what the tests compare."""
    for room, count in sorted(lines().items()):
        print(f"{count:7,}  {room}")
    print(f"{sum(lines().values()):7,}  in all")
    for circle in circles():
        print("circle:", ", ".join(circle))
    for found in inside():
        if found.function:
            print(f"in a function: {found.source}.{found.function} -> {found.target}")


if __name__ == "__main__":
    main()

"""Finds the functions that reason with abstractions or rewrite values, and which laws are about them.

Notation: three nets look for such functions, each by itself: *rooms*, modules whose first line speaks of abstractions
or normal forms; *words*, functions whose first line does; *types*, functions from a family of layouts to itself, from
facts to an answer, or to an interval.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from layoutalg.proofs.laws import Law

ROOT = Path(__file__).resolve().parents[1]
LISTED = Path(__file__).with_name("law_inventory.toml")
FOLDERS = ("layoutalg", "proofs", "synth", "targets", "codegen")
_ROOM = re.compile(
    r"\b(intervals?|congruences?|bounds|normal forms?|carr(y|ies)|lattices?|coalesc\w+|ranges?|residues?|"
    r"simplif\w+|polynomials?|monomials|conditions)\b",
    re.IGNORECASE,
)
_WORDS = re.compile(
    r"\b(normal form|canonical|coalesc\w*|simplif\w*|lowest terms|fewest|fused?|merged?|equivalent|same function|"
    r"rewrit\w*|reduced?|intervals?|bounds?|range|spans?|superset|residues?|congruen\w*|modulo|divisor|divides|"
    r"divisible|alignment|aligned|multiple of|parity|carry|carries|known bits?|sign|monoton\w*|non-?negative|"
    r"least and the greatest|Hermite|Smith|unimodular|was shown)\b",
    re.IGNORECASE,
)
_FAMILIES = {
    *("CuteLayout", "ComposedLayout", "Swizzle", "SymbolicLayout", "LinearLayout", "IntegerLayout", "PiecewiseLayout"),
    *("HierarchicalLayout", "DigitMap", "Polynomial", "Condition", "Lattice", "Matrix", "Linear", "Clause"),
    *("Flat", "Digits", "Modes"),
}
_WRITES = {
    "to_sympy",
    "__str__",
    "__repr__",
    "__init__",
    "__post_init__",
    "__iter__",
    "__dir__",
    "__reduce__",
    "_repr_latex_",
}
_INTERVAL = re.compile(r"Span|tuple\[int, int\]( \| None)?")


@dataclass(frozen=True, slots=True)
class Found:
    """A function that a net caught."""

    name: str
    nets: tuple[str, ...]
    private: bool


def _text(node: ast.expr | None) -> str:
    return ast.unparse(node).strip("'\"") if node else ""


def _first_line(node: ast.Module | ast.FunctionDef) -> str:
    return (ast.get_docstring(node) or "").partition("\n")[0]


def _functions(body: Iterable[ast.stmt], owner: str = "") -> Iterator[tuple[str, str, ast.FunctionDef]]:
    """Yield (name, class, function) of the functions of a module and of its classes."""
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield f"{owner}.{node.name}".lstrip("."), owner, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, node.name)


def _nets(owner: str, node: ast.FunctionDef, room: bool) -> Iterator[str]:
    result = _text(node.returns)
    arguments = [*node.args.posonlyargs, *node.args.args]
    taken = {_text(argument.annotation) for argument in arguments} | ({owner} if owner else set())
    given = (owner if result == "Self" else result).removesuffix(" | None")
    if room:
        yield "rooms"
    if _WORDS.search(_first_line(node)):
        yield "words"
    if (
        (given in _FAMILIES and given in taken)
        or ("Facts" in taken and result == "bool")
        or _INTERVAL.fullmatch(result)
    ):
        yield "types"


def found_in(source: str, module: str) -> list[Found]:
    """Return what the nets catch in the text of a module."""
    tree = ast.parse(source)
    room = bool(_ROOM.search(_first_line(tree)))
    answer = []
    for name, owner, node in _functions(tree.body):
        nets = tuple(_nets(owner, node, room))
        if nets and not _plain(node):
            answer.append(Found(f"{module}.{name}", nets, node.name.startswith("_") and not node.name.endswith("__")))
    return answer


def _plain(node: ast.FunctionDef) -> bool:
    """Whether a function only writes text, checks its argument or names an error."""
    if node.name in {
        "__str__",
        "__repr__",
        "__init__",
        "__post_init__",
        "_repr_latex_",
        "to_sympy",
        "__iter__",
        "__dir__",
        "__reduce__",
    }:
        return True
    refuses = _text(node.returns) == "None" and node.name.lstrip("_").startswith(("check", "require", "refuse"))
    return refuses or _text(node.returns) in {"str", "NoReturn", "MalformedError"}


def package() -> dict[str, str]:
    """Return the text of every module by its dotted name, the laws themselves aside."""
    texts = {}
    for folder in FOLDERS:
        top = ROOT / folder
        for path in sorted(top.rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if "laws" in parts or (folder == "layoutalg" and parts[1] in FOLDERS):
                continue
            dotted = ".".join(parts if folder == "layoutalg" else ("layoutalg", *parts)).removesuffix(".__init__")
            texts[dotted] = path.read_text(encoding="utf-8")
    return texts


def _home(dotted: str) -> str:
    """Return the name of a function where it is defined."""
    module, rest = dotted, list[str]()
    while True:
        try:
            value: object = importlib.import_module(module)
            break
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            rest.insert(0, last)
    for part in rest:
        value = getattr(value, part)
    value = inspect.unwrap(value)  # type: ignore[arg-type]
    value = getattr(value, "__func__", value)
    return f"{value.__module__}.{value.__qualname__}"  # type: ignore[attr-defined]


def covered(laws: Iterable[Law], uses: dict[str, set[str]]) -> set[str]:
    """Return the functions that laws are about, with the private ones that these use in their own module."""
    answer = {_home(dotted) for law in laws for dotted in law.about}
    waiting = list(answer)
    while waiting:
        for other in uses.get(waiting.pop(), set()) - answer:
            answer.add(other)
            waiting.append(other)
    return answer


def uses(module: str, text: str) -> dict[str, set[str]]:
    """Return which private functions and which tables of a module each of its functions and tables names."""
    tree = ast.parse(text)
    nodes: dict[str, ast.AST] = {name: node for name, _, node in _functions(tree.body)}
    inner = {name: name.rpartition(".")[2] for name in nodes if any(part.startswith("_") for part in name.split("."))}
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, (ast.Dict, ast.Tuple)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                inner[ast.unparse(target)] = ast.unparse(target)
                nodes[ast.unparse(target)] = node.value
    answer = {}
    for name, node in nodes.items():
        named = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        named |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
        answer[f"{module}.{name}"] = {f"{module}.{other}" for other, last in inner.items() if last in named}
    return answer


def excused() -> tuple[dict[str, str], dict[str, str]]:
    """Return the reasons why packages, and single functions, have no law."""
    read = tomllib.loads(LISTED.read_text(encoding="utf-8"))
    functions = {name: entry["reason"] for entry in read["functions"] for name in entry["names"]}
    return {entry["name"]: entry["reason"] for entry in read["packages"]}, functions

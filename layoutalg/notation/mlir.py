"""Read MLIR text: operations with their results, operands, types, attributes and regions.

Notation: the custom assembly of dialects is not known here. An operation is ``[results =] name rest`` on one line; a
brace at the end of the line opens a region, and what follows the closing brace belongs to the operation. ``rest`` stays
text: ``head`` up to the types, ``types`` behind the last colon outside of brackets. Values are names: ``%x`` for an
operation with one result, ``%x#1`` for one of several.

References: the MLIR language reference (operations, regions, blocks).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NoReturn

from layoutalg.ground.errors import Diagnostic, MalformedError, shown
from layoutalg.ground.limits import NOTATION_CHARACTERS

FILE_CHARACTERS: Final = max(20_000_000, NOTATION_CHARACTERS)
DEEPEST: Final = 64
"""regions inside each other"""
JOINED: Final = 200
"""lines of one operation with open brackets"""

_VALUE = r"%[\w$.-]+"
_RESULTS = re.compile(rf"\s*({_VALUE}(?::\d+)?(?:\s*,\s*{_VALUE}(?::\d+)?)*)\s*=\s*")
_NAME = re.compile(r'\s*(?:"([\w$.]+)"|([A-Za-z_][\w$]*(?:\.[\w$]+)+|module|return))')
_LOCATION = re.compile(r'loc\((?:[^()"]|"[^"]*"|\([^()]*\))*\)')
_ARGUMENT = re.compile(rf"({_VALUE})\s*:\s*")
_ALIAS = re.compile(r"\s*[#!][\w$.]+\s*=")
_OPEN, _CLOSE = "([{<", ")]}>"


@dataclass(eq=False, slots=True)
class Region:
    """A region: the text before its brace, the arguments of its first block, its operations."""

    header: str
    line: int
    arguments: list[tuple[str, str]] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Operation:
    """An operation as written."""

    name: str  # its name with the dialect
    results: tuple[str, ...]  # the names of its results
    head: str  # the text behind the name, up to the types and without the regions
    types: str  # the text of the types
    line: int  # its first line, counted from 1
    regions: list[Region] = field(default_factory=list)  # its regions in order

    def operands(self) -> list[str]:
        """Return all values in the head, in order."""
        return re.findall(rf"{_VALUE}(?:#\d+)?", self.head)

    def attribute(self, name: str) -> int | None:
        """Return an integer attribute of the head, or None."""
        found = re.search(rf"\b{re.escape(name)}\s*=\s*(-?\d{{1,9}})\b", self.head)
        return int(found[1]) if found else None

    def walk(self) -> Iterator[Operation]:
        """Yield this operation and all inside it."""
        yield self
        for region in self.regions:
            for inner in region.operations:
                yield from inner.walk()


def read_mlir(text: object) -> Region:
    """Return the operations of a text, as a region without header.

    Raises: MalformedError: LA972, with the line.

    Example:
        >>> text = "func.func @f(%n: i32) {" + chr(10) + "  %x:2 = a.b %n {size = 3 : i32} : i32" + chr(10) + "}"
        >>> function = read_mlir(text).operations[0]
        >>> function.name, function.regions[0].arguments, function.regions[0].operations[0].results
        ('func.func', [('%n', 'i32')], ('%x#0', '%x#1'))
    """
    if not isinstance(text, str) or len(text) > FILE_CHARACTERS:
        fail(0, f"must be text of at most {FILE_CHARACTERS} characters", text)
    top = Region("", 1)
    regions, owners = [top], list[Operation]()
    for line, words in _joined(text):
        here = regions[-1]
        if _ALIAS.match(words) or words.startswith("{-#"):
            continue
        if words.startswith("^"):
            here.arguments += _arguments(words)
            continue
        if words.startswith("}"):
            if not owners:
                fail(line, "a region must be open where a brace closes", words)
            regions.pop()
            owner = owners.pop()
            words = words[1:].strip().lstrip(")")
        elif _NAME.match(words) or _RESULTS.match(words):
            owner, words = _operation(line, words)
            here.operations.append(owner)
        elif here.operations and (here.operations[-1].regions or words.endswith("{")):
            owner = here.operations[-1]
        else:
            fail(line, "must start an operation", words)
        if words.endswith("{"):
            if len(regions) > DEEPEST:
                fail(line, f"regions may be {DEEPEST} deep", words)
            header = words[:-1].strip()
            owner.regions.append(Region(header, line, _arguments(header)))
            owners.append(owner)
            regions.append(owner.regions[-1])
            words = "" if len(owner.regions) > 1 else header.rstrip("(")
        head, types = _parts(words)
        owner.head = f"{owner.head} {head}".strip()
        owner.types = types or owner.types
    if owners:
        fail(owners[-1].line, "its region must be closed", owners[-1].name)
    return top


def fail(line: int, rule: str, actual: object) -> NoReturn:
    """Raise the error of a text that is not MLIR."""
    where = (f"line {line}",) if line else ()
    raise MalformedError(Diagnostic("LA972", "invalid MLIR", where, f"{rule}, not {shown(actual)}"))


def _operation(line: int, words: str) -> tuple[Operation, str]:
    """Return an operation without its rest, and the rest."""
    found = _RESULTS.match(words)
    results: list[str] = []
    for entry in found[1].split(",") if found else ():
        name, _, count = entry.strip().partition(":")
        results += [f"{name}#{place}" for place in range(min(int(count), 1 << 10))] if count else [name]
    name = _NAME.match(words, found.end() if found else 0)
    if name is None:
        fail(line, "must have the name of an operation behind its results", words)
    return Operation(name[1] or name[2], tuple(results), "", "", line), words[name.end() :].strip()


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines without comments and locations; lines of one operation with open brackets are joined."""
    held, first, count = "", 0, 0
    for number, raw in enumerate(text.splitlines(), 1):
        words = _LOCATION.sub("", _without_comment(raw)).strip()
        if not words:
            continue
        first, held, count = (first, f"{held} {words}", count + 1) if held else (number, words, 1)
        if _depth(held) > 0 and not held.endswith("{"):
            if count > JOINED:
                fail(first, f"brackets must close within {JOINED} lines", held)
            continue
        yield first, held
        held = ""
    if held:
        fail(first, "brackets must close", held)


def _without_comment(line: str) -> str:
    place = line.find("//")
    while place >= 0 and line.count('"', 0, place) % 2:
        place = line.find("//", place + 2)
    return line if place < 0 else line[:place]


def _depth(words: str) -> int:
    """Return how many brackets are open at the end, braces of regions apart."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", words).replace("->", "")
    return sum([(bare.count(one) - bare.count(other)) for one, other in (("(", ")"), ("[", "]"))])


def split(text: str, mark: str = ",") -> list[str]:
    """Return the parts of a text between marks that are outside of brackets and strings.

    Example:
        >>> split("tensor<2xf16, #a>, i32")
        ['tensor<2xf16, #a>', 'i32']
    """
    parts, depth, start, quoted = list[str](), 0, 0, False
    for found in re.finditer(rf'->|["<>()\[\]{{}}]|{re.escape(mark)}', text):
        char = found[0]
        if char == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
        elif char == mark and depth == 0:
            parts.append(text[start : found.start()].strip())
            start = found.end()
    return [*parts, text[start:].strip()]


def _parts(words: str) -> tuple[str, str]:
    """Return the text up to the types, and the types."""
    parts = split(words, ":")
    return (words, "") if len(parts) == 1 else (" : ".join(parts[:-1]), parts[-1])


def _arguments(header: str) -> list[tuple[str, str]]:
    """Return the ``%name: type`` pairs of the first parentheses."""
    start = header.find("(")
    if start < 0:
        return []
    depth = 0
    for place in range(start, len(header)):
        depth += (header[place] == "(") - (header[place] == ")")
        if depth == 0:
            inner = header[start + 1 : place]
            found = [(_ARGUMENT.match(part), part) for part in split(inner)]
            return [(match[1], part[match.end() :]) for match, part in found if match]
    return []

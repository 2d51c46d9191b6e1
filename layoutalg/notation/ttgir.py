"""Read TTGIR: attribute definitions, types that use them, whole files.

Notation: ``#name = #ttg.KIND<...>`` defines a name for the lines below; ``tensor<128x64xf16, #name>`` and
``!ttg.memdesc<128x64xf16, #name, #smem, mutable, 4x128x64>`` are types. The last entry of a memory descriptor is the
buffer that it is part of, if any; the layout is that of the buffer, and leading dimensions beyond the attribute's rank
count buffers. Units: elements.

References: Triton 3.9.0 (``MemDescType``, ``toLinearLayout`` of a memory descriptor).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from layoutalg.ground.errors import shown
from layoutalg.ground.text import Tokens
from layoutalg.notation.gluon import GLUON_AHEAD, gluon_attribute
from layoutalg.notation.triton import sizes_of
from layoutalg.notation.ttg import CLUSTER, GRAMMAR, KINDS, Attribute, attribute, build, rank_of

DEFINITION = r"^[ \t]*#([A-Za-z_]\w*)[ \t]*=[ \t]*(?=#\w)"
TYPE = r"(?:!(?:ttg|tt|triton_gpu)\.memdesc|(?<![\w.!])tensor)<(\d{1,10}(?:x\d{1,10})*)x(?=[^\d\s])"
THING = re.compile(f"{DEFINITION}|{TYPE}", re.MULTILINE)
BUFFER = re.compile(r"\s*\d{1,10}(?:x\d{1,10})*\s*")
KIND = re.compile(r"#\w+\.(\w+)\s*(<?)")
SHORT = re.compile(r"(?<![^\s,])<(?=\d)")
TYPE_CHARACTERS = 20_000
FILE_CHARACTERS = 20_000_000


@dataclass(frozen=True, slots=True)
class TensorType:
    """A type with a layout, as found in a text."""

    text: str  # the type
    shape: tuple[int, ...]  # its sizes, outermost dimension first
    dtype: str  # its element type, as written
    attribute: Attribute  # the layout's attribute
    buffer: tuple[int, ...] | None = None  # sizes of the buffer that it is part of, or None
    line: int = 1  # line of its first occurrence, counted from 1

    @property
    def layout_shape(self) -> tuple[int, ...]:
        """The sizes on which the layout is defined."""
        whole = self.shape if self.buffer is None else self.buffer[len(self.buffer) - len(self.shape) :]
        rank = rank_of(self.attribute)
        return whole if rank is None or rank >= len(whole) or "memdesc" not in self.text else whole[len(whole) - rank :]

    def layout(self) -> Any:
        """Return the layout."""
        return build(self.attribute, self.layout_shape, self.text)


ATTRIBUTE_AHEAD = re.compile(r"\s*#\w+\s*[.=]")


def parse_ttgir(text: str, shape: Any = None) -> Any:
    """Return the layout of an attribute, or of a type with its definitions.

    Args:
        text: One attribute; definitions and a type that uses them; or definitions, of which the last counts.
        shape: Sizes for an attribute without a type.

    Example:
        >>> definition = "#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 2, order = [1, 0]}>"
        >>> str(parse_ttgir(definition + chr(10) + "!ttg.memdesc<2x2xf16, #shared, #smem>"))
        'F2[offset=(0,1)(1,1), block= -> dim0:2, dim1:2]'
    """
    types, one = found_in(text)
    if one is not None:
        return build(one, shape, text)
    if len({(repr(entry.attribute), entry.layout_shape) for entry in types}) > 1:
        because = "it has types with different layouts, but parse reads one: use layoutalg.interop.layouts_of"
        raise GRAMMAR.error(text, because)
    entry = types[0]
    if shape is not None and tuple(sizes_of(shape)) not in (entry.shape, entry.layout_shape):
        raise GRAMMAR.error(text, f"its type has the shape {list(entry.shape)}, not {shown(shape)}")
    return entry.layout()


def found_in(text: str) -> tuple[tuple[TensorType, ...], Attribute | None]:
    """Return the types with a layout in a text or, if there are none, its only or last-defined attribute."""
    if not isinstance(text, str) or len(text) > FILE_CHARACTERS:
        raise GRAMMAR.error(text, f"must be text of at most {FILE_CHARACTERS} characters")
    scan = _Scan(text)
    types = tuple(scan.types())
    if types:
        return types, None
    if scan.last is not None and not text[scan.at :].strip():
        return (), scan.last
    bare = THING.search(text, scan.at)
    if bare is not None and bare[2] is not None:
        raise GRAMMAR.error(text, "the type has no layout, as in tensor<64x64xf16, #layout>", bare.start())
    tokens = Tokens(text, GRAMMAR, scan.at)
    one = attribute(tokens, scan.names)
    if tokens.next < len(tokens.items):
        tokens.fail("the end", tokens.position())
    return (), one


def block_tile(text: str) -> tuple[int, ...] | None:
    """Return the tile that one block covers before registers repeat; None unless the text is a blocked attribute.

    Example:
        >>> sizes = "sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]"
        >>> block_tile(f"#ttg.blocked<{{{sizes}}}>"), block_tile("(4,8):(8,1)")
        ((16, 64), None)
    """
    found: Attribute | None = None
    dropped: list[Any] = []
    if GLUON_AHEAD.match(text):
        found = gluon_attribute(text)
    elif ATTRIBUTE_AHEAD.match(text):
        found = found_in(text)[1]
    while found is not None and found.kind == "slice":
        dropped.append(found.entries.get("dim"))
        found = parent if isinstance(parent := found.entries.get("parent"), Attribute) else None
    if found is None or found.kind != "blocked" or any(key in found.entries for key in CLUSTER):
        return None
    parts: list[Any] = [found.entries.get(key) for key in ("sizePerThread", "threadsPerWarp", "warpsPerCTA")]
    try:
        tile: list[Any] = [math.prod(sizes) for sizes in zip(*parts, strict=True)]
        for dim in reversed(dropped):
            del tile[dim]
    except (IndexError, TypeError, ValueError):  # ``build`` says what is wrong
        return None
    return tuple(tile)


def layouts_of(text: str) -> tuple[TensorType, ...]:
    """Return the types with a layout in a text, each once, by first occurrence.

    Types whose attribute is not a layout, such as Gluon's ``auto_encoding``, are skipped.

    Example:
        >>> definition = "#b = #ttg.linear<{register = [[1]], lane = [], warp = [], block = []}>"
        >>> text = definition + chr(10) + "tensor<2xf16, #b>"
        >>> [(entry.shape, entry.dtype, entry.attribute.kind, entry.line) for entry in layouts_of(text)]
        [((2,), 'f16', 'linear', 2)]
    """
    if not isinstance(text, str) or len(text) > FILE_CHARACTERS:
        raise GRAMMAR.error(text, f"must be text of at most {FILE_CHARACTERS} characters")
    found: dict[tuple[object, ...], TensorType] = {}
    for entry in _Scan(text).types():
        found.setdefault((entry.text, repr(entry.attribute)), entry)
    return tuple(found.values())


class Types:
    """The types with a layout in single lines of a text whose definitions were read once.

    Example:
        >>> types = Types("#b = #ttg.linear<{register = [[1]], lane = [], warp = [], block = []}>")
        >>> [(entry.shape, entry.dtype) for entry in types.of("tensor<2xf16, #b> -> tensor<2xf32, #b>")]
        [((2,), 'f16'), ((2,), 'f32')]
    """

    def __init__(self, text: str) -> None:
        self._scan = _Scan(text)
        for found in re.finditer(DEFINITION, text, re.MULTILINE):
            self._scan.define(found[1], found.end())
        self._known: dict[str, tuple[TensorType, ...]] = {}

    def of(self, words: str) -> tuple[TensorType, ...]:
        """Return the types in their order; ``-> <64x64xf16, ...>`` is short for a memory descriptor."""
        if words not in self._known:
            self._scan.text = SHORT.sub("!ttg.memdesc<", words)
            self._known[words] = tuple(self._scan.types())
        return self._known[words]


class _Scan:
    """One pass over a text: definitions, and the types that use them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: dict[str, Attribute] = {}
        self.opaque: set[str] = set()
        self.last: Attribute | None = None
        self.at = 0
        """Position after the last definition."""

    def types(self) -> Iterator[TensorType]:
        """Yield the types, each resolved with the definitions before it; redefinitions replace earlier ones."""
        line, counted = 1, 0
        for found in THING.finditer(self.text):
            if found[1] is not None:
                self.define(found[1], found.end())
                continue
            entry = self.type(found)
            if entry is not None:
                line, counted = line + self.text.count("\n", counted, found.start()), found.start()
                yield replace(entry, line=line)

    def define(self, name: str, start: int) -> None:
        """Read the definition of a name; names of non-layouts are kept as opaque."""
        stop = self.text.find("\n", start)
        stop = len(self.text) if stop < 0 else stop
        comment = self.text.find("//", start, stop)
        stop = stop if comment < 0 else comment
        kind = KIND.match(self.text, start)
        self.at = stop
        self.names.pop(name, None)
        if kind is None or not kind[2]:
            self.opaque.add(name)
            return
        if kind[1] not in KINDS:
            self.names[name] = Attribute(kind[1], (), {})
            return
        tokens = Tokens(self.text, GRAMMAR, start, stop)
        self.last = self.names[name] = attribute(tokens, self.names)
        if tokens.next < len(tokens.items):
            tokens.fail("the end of the definition", tokens.position())

    def type(self, found: re.Match[str]) -> TensorType | None:
        """Read the type after its sizes; None if it has no layout."""
        bounds = self.parts(found.end())
        if len(bounds) < 2:
            return None
        start, stop = bounds[1]
        written = self.text[start:stop].strip()
        if not written.startswith("#"):
            return None
        kind = KIND.match(written)
        if written[1:] in self.opaque or (kind is not None and kind[1] not in KINDS and "ttg" not in written[:5]):
            return None
        if kind is not None and kind[1] not in KINDS:
            read = Attribute(kind[1], (), {})
        else:
            tokens = Tokens(self.text, GRAMMAR, start, stop)
            read = attribute(tokens, self.names)
            if tokens.next < len(tokens.items):
                tokens.fail("the end of the layout", tokens.position())
        buffer = [self.text[a:b] for a, b in bounds[2:] if BUFFER.fullmatch(self.text[a:b])]
        whole = _sizes(buffer[-1]) if buffer else None
        element = self.text[found.end() : bounds[0][1]].strip()
        return TensorType(self.text[found.start() : bounds[-1][1] + 1], _sizes(found[2]), element, read, whole)

    def parts(self, start: int) -> list[tuple[int, int]]:
        """Return the bounds of a type's comma-separated parts, respecting nested brackets."""
        depth, at, bounds = 0, start, list[tuple[int, int]]()
        for place in range(start, min(len(self.text), start + TYPE_CHARACTERS)):
            char = self.text[place]
            if char in "<[{(":
                depth += 1
            elif char in "]})" or (char == ">" and self.text[place - 1] != "-"):
                depth -= 1
                if depth < 0:
                    return [*bounds, (at, place)]
            elif char == "," and depth == 0:
                bounds.append((at, place))
                at = place + 1
        raise GRAMMAR.error(self.text, "the type is not closed: a > is missing", start)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple([int(part) for part in text.split("x")])

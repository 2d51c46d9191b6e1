"""Detect CuTe texts with names or unknown numbers."""

from __future__ import annotations

import re

NAME = re.compile(r"(?<![\w@.])[A-Za-z_]\w*")
CHARACTERS = re.compile(r"[\w\s()*/+\-,:?{}=%<>!]*")
TYPES = {
    "Sw",
    "S",
    "Swizzle",
    "Int",
    "C",
    "Layout",
    "ComposedLayout",
    "Shape",
    "Stride",
    "Coord",
    "Step",
    "tuple",
    "cute",
}
"""CuTe's own words before ``<`` or ``::``; elsewhere they are names of sizes."""
MARKS = {"o", "byte", "element"}
"""CuTe's own words that are never names of sizes."""


def is_symbolic(text: str, at: int = 0, stop: int | None = None) -> bool:
    """Whether a CuTe text contains unknown numbers or names of sizes.

    Example:
        >>> is_symbolic("(M,64):(64,1)"), is_symbolic("(128,?):(1,128)"), is_symbolic("(4,8):(E0,E1)")
        (True, True, False)
    """
    part = text[at:stop]
    if "?" in part:
        return True
    if not CHARACTERS.fullmatch(part) or not re.match(r"\s*[(A-Za-z]", part):
        return False
    shape = part.partition("where")[0]
    if ":" not in shape and not shape.lstrip().startswith("("):
        return False
    return any(_is_size(found[0], shape[found.end() :]) for found in NAME.finditer(shape))


def _is_size(word: str, following: str) -> bool:
    """Whether a word names a size, rather than being part of the notation or a basis element."""
    if word in MARKS or re.fullmatch(r"E\d*|_\w*|smem_ptr\w*", word):
        return False
    return word not in TYPES or not re.match(r"\s*(?:<|::)", following)

"""Untrusted text: escape and truncate it for terminals; parse it as an expression with warnings off."""

from __future__ import annotations

import ast
import re

from layoutalg.ground.errors import printable

_NUMBER = r"0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9][0-9_]*"
_FRACTION = r"[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*"
_LOUD = re.compile(rf"\\|(?<![\w.])(?!(?:{_NUMBER})(?!\w))[0-9]|(?<!\w)(?:{_FRACTION})[^\W0-9_]")
"""What makes Python's parser warn: a backslash, or a number that runs into a name."""


def expression_tree(text: str) -> ast.expr | None:
    """Return the syntax tree of a Python expression, or None if the text is not one. Nothing is evaluated.

    Args:
        text: Any text; the caller bounds its length.

    Example:
        >>> type(expression_tree(" M*(N + 1) ")).__name__, expression_tree("M*"), expression_tree("1if")
        ('BinOp', None, None)
    """
    if _LOUD.search(text):
        return None
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        return None


def escaped(text: str, width: int | None = None) -> str:
    r"""Return the text with control characters, line breaks and lone surrogates as Python escapes.

    Args:
        text: Any text.
        width: Maximum characters of the result; None for no limit.

    Example:
        >>> print(escaped("a\x1b[31mb\ud800"), escaped("a" * 100, 8))
        a\x1b[31mb\ud800 aaaaa...
    """
    cut = text if width is None else text[: width + 1]
    cut = printable(cut)
    return cut if width is None or len(cut) <= width else cut[: max(0, width - 3)] + "..."


def caret(text: str, at: int, width: int = 100) -> str:
    """Return the text around a position with a caret under it.

    Args:
        text: Any text.
        at: A position in it, or its end.
        width: Characters of the text to show.

    Example:
        >>> print(caret("(4,8:(1,4)", 4))
        (4,8:(1,4)
            ^
    """
    start = max(0, at - width // 2)
    stop = min(len(text), start + width)
    lead, trail = ("..." if start else ""), ("..." if stop < len(text) else "")
    line = "".join([char if char.isprintable() else " " for char in text[start:stop]])
    return f"{lead}{line}{trail}\n{' ' * (len(lead) + at - start)}^"

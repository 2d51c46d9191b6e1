"""Foreign text in messages and on terminals: printable, and no longer than asked.

Main definitions: ``escaped``. Values of any kind are shown by ``layoutalg.errors.shown``.
"""

from __future__ import annotations


def escaped(text: str, width: int | None = None) -> str:
    r"""Return a text without control characters, line breaks and lone surrogates: each as its Python escape.

    Args:
        text: Any text.
        width: Characters of the result, at most; None for all of them.

    Example:
        >>> print(escaped("a\x1b[31mb\ud800"), escaped("a" * 100, 8))
        a\x1b[31mb\ud800 aaaaa...
    """
    cut = text if width is None else text[: width + 1]
    if not cut.isprintable():
        cut = "".join(char if char.isprintable() else repr(char)[1:-1] for char in cut)
    return cut if width is None or len(cut) <= width else cut[: max(0, width - 3)] + "..."

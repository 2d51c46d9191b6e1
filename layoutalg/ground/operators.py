"""The method ``then`` of every family: the operator ``@`` read from left to right.

Main definitions: ``then``.
"""

from __future__ import annotations

from typing import Any

from layoutalg.ground.errors import Diagnostic, MalformedError, shown


def then(inner: object, outer: object) -> Any:
    """Return ``outer @ inner``, or refuse an ``outer`` that does not compose with it.

    Args:
        inner: The value whose method this is, applied first.
        outer: Applied last.

    Raises: MalformedError: LA192.

    Example:
        >>> from layoutalg.cute import CuteLayout
        >>> then(CuteLayout(4), "4:1")
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA192 these values do not compose
          in     then
          since  nothing composes a CuteLayout with '4:1'; layoutalg.parse reads text
    """
    if any(base.__module__.partition(".")[0] == "layoutalg" for base in type(outer).__mro__):
        for first, name, second in ((outer, "__matmul__", inner), (inner, "__rmatmul__", outer)):
            method = getattr(type(first), name, None)
            answer = NotImplemented if method is None else method(first, second)
            if answer is not NotImplemented:
                return answer
    hint = "; layoutalg.parse reads text" if isinstance(outer, str) else ""
    because = f"nothing composes a {type(inner).__name__} with {shown(outer)}{hint}"
    raise MalformedError(Diagnostic("LA192", "these values do not compose", ("then",), because))

"""Names of symbolic sizes and their integer values."""

from __future__ import annotations

import keyword
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from layoutalg.ground import limits
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, MalformedError


def name_of(value: object) -> str:
    """Return the name of a symbol given as text or as a sympy symbol."""
    text = value if isinstance(value, str) else getattr(value, "name", None)
    if not is_name(text):
        raise Checker("LA620").malformed("symbol", "must be a name", value)
    return text  # type: ignore[return-value]


def is_name(value: object) -> bool:
    """Return whether this is a valid name: an identifier, not a Python keyword."""
    return (
        isinstance(value, str)
        and len(value) <= limits.TERM_CHARACTERS
        and value.isidentifier()
        and not keyword.iskeyword(value)
        and unicodedata.normalize("NFKC", value) == value
    )


def sizes_of(values: Mapping[Any, int], code: str = "LA623") -> dict[str, int]:
    """Return a checked map from names to integers; keys may be sympy symbols.

    Raises: MalformedError: ``code``: a key is not a name, or a value is not an integer or too large.

    Example:
        >>> sizes_of({"M": np.int64(4)})
        {'M': 4}
    """
    check = Checker(code)
    if not isinstance(values, Mapping):
        raise check.malformed("sizes", "must map names to integers", values)
    answer: dict[str, int] = {}
    for key, value in values.items():
        name = key if isinstance(key, str) else getattr(key, "name", None)
        if not is_name(name):
            raise check.malformed("sizes", "must map names to integers", key)
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise check.malformed(f"sizes[{name!r}]", "must be an integer", value)
        if int(value).bit_length() > limits.TERM_BITS:
            raise check.malformed(f"sizes[{name!r}]", f"must have at most {limits.TERM_BITS} bits", value)
        answer[name] = int(value)  # type: ignore[index]
    return answer


def require_names(names: Iterable[str], sizes: Mapping[str, int], where: str) -> None:
    """Raise if a name has no size."""
    if missing := sorted(set(names) - sizes.keys()):
        raise sizes_do_not_fit(where, f"missing sizes: {', '.join(missing)}")


def sizes_do_not_fit(where: str, because: str) -> MalformedError:
    """Return the error for missing or unknown names in sizes."""
    return MalformedError(Diagnostic("LA623", "the sizes do not fit the layout", (where,), because))

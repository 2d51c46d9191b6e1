"""Reading JSON documents: every refusal names the place by JSON pointer.

Main definitions: ``Reader`` (one node of a document and where it stands), ``load_json``.

Implementation notes: documents are read as JSON only. Booleans are not integers here, and an integer outside the signed
64-bit range is refused at the place where it stands.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

from layoutalg.errors import Diagnostic, MalformedError, shown

INT_LIMIT = 2**63


def malformed(pointer: str, rule: str, actual: object, code: str = "LA010") -> MalformedError:
    """Return the error for a document node: where it stands, the rule and the actual value."""
    return MalformedError(
        Diagnostic(
            code=code, what="malformed document", where=(pointer or "/",), because=f"{rule}, not {shown(actual)}"
        )
    )


@dataclass(frozen=True, slots=True)
class Reader:
    """One node of a JSON document.

    Args:
        value: The node.
        pointer: Its JSON pointer (RFC 6901), for messages.

    Example:
        >>> Reader({"tile": [64, 64]}).get("tile").integers()
        (64, 64)
    """

    value: object
    pointer: str = ""

    def fail(self, rule: str) -> NoReturn:
        """Raise the error of this node."""
        raise malformed(self.pointer, rule, self.value)

    def keys(self, required: Sequence[str], optional: Sequence[str] = ()) -> None:
        """Refuse anything but an object with all ``required`` and no keys beyond ``optional``."""
        if not isinstance(self.value, dict):
            self.fail("must be an object")
        for key in required:
            if key not in self.value:
                raise malformed(f"{self.pointer}/{key}", f"the key {key!r} is required", "nothing")
        known = (*required, *optional)
        for key in self.value:
            if key not in known:
                raise malformed(f"{self.pointer}/{key}", f"keys here are {', '.join(known)}", key)

    def has(self, key: str) -> bool:
        """Whether this object holds ``key``."""
        return isinstance(self.value, dict) and key in self.value

    def get(self, key: str) -> Reader:
        """Return the node under ``key``."""
        if not isinstance(self.value, dict):
            self.fail("must be an object")
        if key not in self.value:
            raise malformed(f"{self.pointer}/{key}", f"the key {key!r} is required", "nothing")
        return Reader(self.value[key], f"{self.pointer}/{key}")

    def items(self, length: int | None = None) -> Iterator[Reader]:
        """Iterate over a list, of ``length`` entries where given."""
        if not isinstance(self.value, (list, tuple)):
            self.fail("must be a list")
        if length is not None and len(self.value) != length:
            self.fail(f"must be a list of {length} entries")
        return iter([Reader(entry, f"{self.pointer}/{index}") for index, entry in enumerate(self.value)])

    def integer(self, minimum: int = -INT_LIMIT, maximum: int = INT_LIMIT - 1) -> int:
        """Return an integer of [minimum, maximum]; numpy integers count, booleans and floats do not."""
        if isinstance(self.value, bool) or not hasattr(type(self.value), "__index__"):
            self.fail("must be an integer")
        value = int(self.value)  # type: ignore[call-overload]
        if not -INT_LIMIT <= value < INT_LIMIT:
            self.fail("must fit in a signed 64-bit integer")
        if value < minimum:
            self.fail(f"must be at least {minimum}")
        if value > maximum:
            self.fail(f"must be at most {maximum}")
        return int(value)

    def integers(
        self, length: int | None = None, minimum: int = -INT_LIMIT, maximum: int = INT_LIMIT - 1
    ) -> tuple[int, ...]:
        """Return a list of integers of [minimum, maximum] as a tuple."""
        return tuple(entry.integer(minimum, maximum) for entry in self.items(length))

    def text(self, choices: Sequence[str] | None = None) -> str:
        """Return a string, one of ``choices`` where given."""
        if not isinstance(self.value, str):
            self.fail("must be a string")
        if choices is not None and self.value not in choices:
            self.fail(f"must be one of {', '.join(choices)}")
        return self.value

    def schema(self, expected: str) -> None:
        """Refuse a document that does not say it follows ``expected``."""
        node = self.get("schema")
        if node.value != expected:
            node.fail(f"the schema must be {expected!r}")


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def load_json(text: str, name: str = "document") -> object:
    """Parse JSON text; a syntax error names the line and column.

    Args:
        text: The document.
        name: What to call it in messages (a file name).

    Raises:
        MalformedError: LA011, not JSON, with line and column; NaN and Infinity are not JSON.

    Example:
        >>> load_json('{"a": 1}')
        {'a': 1}
    """
    try:
        return json.loads(text, parse_constant=_reject_constant)
    except json.JSONDecodeError as error:
        line = text.splitlines()[error.lineno - 1] if text.splitlines() else ""
        start = max(0, error.colno - 60)
        caret = " " * (error.colno - 1 - start) + "^"
        where = (f"{name}, line {error.lineno}, column {error.colno}", f"{line[start : start + 100]}\n{caret}")
        raise MalformedError(Diagnostic("LA011", "not a JSON document", where, error.msg)) from None
    except (ValueError, RecursionError) as error:
        because = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise MalformedError(Diagnostic("LA011", "not a JSON document", (name,), because)) from None

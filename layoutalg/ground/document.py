"""Strict JSON reading; every error gives the JSON pointer of the offending node.

Booleans are not integers, and integers must fit in 64 bits (signed). Duplicate keys are refused, since two readers may
see different values. Pointers follow RFC 6901, with control characters escaped.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NoReturn

from layoutalg.ground.errors import Diagnostic, MalformedError, shown
from layoutalg.ground.text import escaped

DOCUMENT_VALUES: Final = 2**22
"""values: numbers, texts, lists and objects in one JSON file"""

DOCUMENT_DEPTH: Final = 100
"""levels: nested lists and objects in a JSON document"""

DOCUMENT_DIGITS: Final = 1_000
"""digits: one number in a JSON document"""

DOCUMENT_ENTRIES: Final = 2**16
"""entries: one list inside a document (copies, tiles, digits)"""

DOCUMENTS: Final = 100_000
"""documents: one list of problems or plans on the command line"""

INT_LIMIT = 2**63
WHOLE = "the whole document"
"""The empty pointer in messages."""
_KEY_WIDTH = 80
_ABSENT: Final = object()


def malformed(pointer: str, rule: str, actual: object = _ABSENT, code: str = "LA010") -> MalformedError:
    """Return the error for a document node: its pointer, the rule and the actual value if there is one."""
    because = rule if actual is _ABSENT else f"{rule}, not {shown(actual)}"
    return MalformedError(Diagnostic(code, "malformed document", (pointer or WHOLE,), because))


@lru_cache(maxsize=256, typed=True)
def _token(key: object) -> str:
    """Return a key as a JSON pointer token."""
    text = key.replace("~", "~0").replace("/", "~1") if isinstance(key, str) else str(key)
    return "/" + escaped(text, _KEY_WIDTH)


@dataclass(frozen=True, slots=True)
class Reader:
    """One node of a JSON document.

    Example:
        >>> Reader({"tile": [64, 64]}).get("tile").integers()
        (64, 64)
    """

    value: object  # the node
    pointer: str = ""  # its JSON pointer (RFC 6901), for messages; control characters are escaped, long keys cut

    def fail(self, rule: str) -> NoReturn:
        """Raise the error of this node."""
        raise malformed(self.pointer, rule, self.value)

    def keys(self, required: Sequence[str], optional: Sequence[str] = ()) -> None:
        """Require an object with all ``required`` keys and none besides these and ``optional``."""
        if not isinstance(self.value, dict):
            self.fail("must be an object")
        for key in required:
            if key not in self.value:
                raise malformed(self.pointer + _token(key), f"the key {key!r} is required")
        known = (*required, *optional)
        for key in self.value:
            if key not in known:
                raise malformed(self.pointer + _token(key), f"keys must be among {', '.join(known)}", key)

    def has(self, key: str) -> bool:
        """Whether this object has ``key``."""
        return isinstance(self.value, dict) and key in self.value

    def get(self, key: str) -> Reader:
        """Return the node under ``key``."""
        if not isinstance(self.value, dict):
            self.fail("must be an object")
        if key not in self.value:
            raise malformed(self.pointer + _token(key), f"the key {key!r} is required")
        return Reader(self.value[key], self.pointer + _token(key))

    def items(self, length: int | None = None, at_most: int = DOCUMENT_ENTRIES) -> Iterator[Reader]:
        """Iterate over a list of ``length`` entries (if given) and at most ``at_most``."""
        if not isinstance(self.value, (list, tuple)):
            self.fail("must be a list")
        if length is not None and len(self.value) != length:
            self.fail(f"must be a list of {length} entries")
        if len(self.value) > at_most:
            raise malformed(self.pointer, f"must be a list of at most {at_most} entries, not {len(self.value)}")
        return (Reader(entry, f"{self.pointer}/{index}") for index, entry in enumerate(self.value))

    def integer(self, minimum: int = -INT_LIMIT, maximum: int = INT_LIMIT - 1) -> int:
        """Return an integer in [minimum, maximum]; numpy integers are accepted, booleans and floats are not."""
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
        self,
        length: int | None = None,
        minimum: int = -INT_LIMIT,
        maximum: int = INT_LIMIT - 1,
        at_most: int = DOCUMENT_ENTRIES,
    ) -> tuple[int, ...]:
        """Return a list of integers in [minimum, maximum] as a tuple; its length is limited as in ``items``."""
        found = self.items(length, at_most)
        value: Any = self.value
        if set(map(type, value)) == {int} and max(minimum, -INT_LIMIT) <= min(value) <= max(value) <= maximum:
            return tuple(value)  # no step for each entry
        return tuple(entry.integer(minimum, maximum) for entry in found)

    def text(self, choices: Sequence[str] | None = None) -> str:
        """Return a string, one of ``choices`` if given."""
        if not isinstance(self.value, str):
            self.fail("must be a string")
        if choices is not None and self.value not in choices:
            self.fail(f"must be one of {', '.join(choices)}")
        return self.value

    def schema(self, expected: str) -> None:
        """Require the ``schema`` entry to be ``expected``."""
        node = self.get("schema")
        if node.value != expected:
            node.fail(f"the schema must be {expected!r}")


@dataclass(frozen=True, slots=True)
class _Refused:
    """Placeholder for a refused value in a document."""

    because: str
    code: str = "LA011"


def _object(pairs: list[tuple[str, object]]) -> object:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return _Refused(f"duplicate key {shown(key, _KEY_WIDTH)} in this object", "LA013")
        seen.add(key)
    raise AssertionError("a dictionary lost a key")


def _integer(text: str) -> object:
    if len(text) > DOCUMENT_DIGITS:
        return _Refused(f"numbers must have at most {DOCUMENT_DIGITS} digits, not {len(text)}")
    return int(text)


def _float(text: str) -> object:
    if len(text) > DOCUMENT_DIGITS:
        return _Refused(f"numbers must have at most {DOCUMENT_DIGITS} digits, not {len(text)}")
    value = float(text)
    return value if math.isfinite(value) else _Refused(f"{text} is too large for a floating-point number")


def _decoder(parse_int: Callable[[str], object] | None) -> json.JSONDecoder:
    def constant(name: str) -> object:
        return _Refused(f"{name} is not JSON")

    return json.JSONDecoder(object_pairs_hook=_object, parse_int=parse_int, parse_float=_float, parse_constant=constant)


_SHORT_NUMBERS = _decoder(None)
_ANY_NUMBERS = _decoder(_integer)
_LONG_NUMBER = re.compile(rf"[0-9]{{{DOCUMENT_DIGITS + 1}}}")
_SPACE = re.compile(r"[ \t\n\r]*")


def _skip(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return position if found is None else found.end()


def _read(decoder: json.JSONDecoder, text: str, start: int, name: str, prefix: str = "") -> tuple[object, int]:
    """Read the value at ``start`` and return it with the position after it."""
    try:
        value, end = decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise _syntax(text, error.pos, error.msg, name) from None
    except RecursionError:
        raise _too_deep(name) from None
    _require_accepted(value, name, prefix)
    return value, end


def _require_accepted(value: object, name: str, prefix: str) -> None:
    """Raise at the first refused value, or if the nesting is too deep."""
    path: list[object] = []
    waiting: list[Iterator[tuple[object, object]]] = [iter([("", value)])]  # the rest of each enclosing object
    while waiting:
        for key, node in waiting[-1]:
            if isinstance(node, _Refused):
                pointer = prefix + "".join(_token(step) for step in [*path, key][1:])
                what = "ambiguous JSON document" if node.code == "LA013" else "not a JSON document"
                raise MalformedError(Diagnostic(node.code, what, (f"{name}, at {pointer or WHOLE}",), node.because))
            if isinstance(node, (dict, list)):
                if len(path) == DOCUMENT_DEPTH:
                    raise _too_deep(name)
                path.append(key)
                waiting.append(iter(node.items() if isinstance(node, dict) else enumerate(node)))
                break
        else:
            waiting.pop()
            if path:
                path.pop()


def _too_deep(name: str) -> MalformedError:
    because = f"nested too deeply: more than {DOCUMENT_DEPTH} levels of lists and objects"
    return MalformedError(Diagnostic("LA011", "not a JSON document", (name,), because))


def _syntax(text: str, position: int, because: str, name: str) -> MalformedError:
    """Return the error at a position of the text, showing its line with a caret."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    number, column = text.count("\n", 0, position) + 1, position - start + 1
    before = escaped(text[max(start, position - 60) : position])
    after = escaped(text[position : min(position + 40, len(text) if end < 0 else end)])
    where = (f"{name}, line {number}, column {column}", f"{before}{after}\n{' ' * len(before)}^")
    return MalformedError(Diagnostic("LA011", "not a JSON document", where, because))


def _decoder_for(text: str, name: str) -> json.JSONDecoder:
    """Return the decoder for a text; refuse texts that need far more memory once decoded."""
    count = 1 + text.count(",") + text.count("[") + text.count("{")
    if count > DOCUMENT_VALUES:
        because = f"{count} values, the limit is {DOCUMENT_VALUES}"
        raise MalformedError(Diagnostic("LA014", "document too large", (name,), because))
    return _ANY_NUMBERS if _LONG_NUMBER.search(text) else _SHORT_NUMBERS


def load_json(text: str, name: str = "document") -> object:
    """Parse JSON text; errors give line and column, or the JSON pointer of a refused value.

    Args:
        text: The document.
        name: Its name in messages (a file name).
    """
    name = escaped(name)
    value, end = _read(_decoder_for(text, name), text, _skip(text, 0), name)
    _require_end(text, end, name)
    return value


def _require_end(text: str, position: int, name: str) -> None:
    position = _skip(text, position)
    if position < len(text):
        raise _syntax(text, position, "Extra data", name)


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a JSON text, decoded one at a time; the text is already known to be valid."""

    text: str
    name: str  # its name in messages
    starts: tuple[int, ...]  # start of each document
    is_list: bool  # whether the text is a list of documents
    decoder: json.JSONDecoder  # their decoder

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[object]:
        for start in self.starts:
            yield self.decoder.raw_decode(self.text, start)[0]


def split_json(text: str, name: str = "document") -> Documents:
    """Return the entries of a JSON list, or the single document if it is not a list; each is decoded on demand.

    Args:
        text: The documents.
        name: Their name in messages (a file name).
    """
    name = escaped(name)
    decoder = _decoder_for(text, name)
    start = _skip(text, 0)
    if not text.startswith("[", start):
        _require_end(text, _read(decoder, text, start, name)[1], name)
        return Documents(text, name, (start,), False, decoder)
    starts: list[int] = []
    start = _skip(text, start + 1)
    if text.startswith("]", start):
        raise malformed("", "must have at least one document", [])
    while True:
        if len(starts) == DOCUMENTS:
            because = f"more than {DOCUMENTS} documents"
            raise MalformedError(Diagnostic("LA014", "document too large", (name,), because))
        end = _skip(text, _read(decoder, text, start, name, f"/{len(starts)}")[1])
        starts.append(start)
        if text.startswith("]", end):
            _require_end(text, end + 1, name)
            return Documents(text, name, tuple(starts), True, decoder)
        if not text.startswith(",", end):
            raise _syntax(text, end, "Expecting ',' delimiter", name)
        start = _skip(text, end + 1)

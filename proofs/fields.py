"""Field checks: the constructors of ``proofs`` yield a valid value or raise."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from layoutalg.ground.document import Reader
from layoutalg.ground.errors import Diagnostic, MalformedError, shown
from layoutalg.ground.limits import MODE_DIGITS
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Checked

T = TypeVar("T")
Digits = tuple[tuple[int, int], ...]
INT_LIMIT = 2**63
MAX_DEPTH = 16
"""Maximum nesting of a certificate."""


def malformed(field: str, rule: str, actual: object) -> MalformedError:
    """Return the error for a field: its name, the rule and the value."""
    return MalformedError(Diagnostic("LA372", "a field is malformed", (field,), f"{field} {rule}, not {shown(actual)}"))


def integer(field: str, value: object, minimum: int = -INT_LIMIT, maximum: int = INT_LIMIT - 1) -> int:
    """Return an integer in [minimum, maximum]; numpy integers are accepted, booleans and floats are not.

    Example:
        >>> integer("rows", np.int32(8))
        8
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise malformed(field, "must be an integer", value)
    number = operator.index(value)
    if not minimum <= number <= maximum:
        raise malformed(field, f"must be in {minimum}..{maximum}", number)
    return number


def items(field: str, value: object, length: int | None = None) -> Sequence[Any]:
    """Return a list, tuple or array as a sequence, with ``length`` entries if given."""
    if isinstance(value, np.ndarray) and value.ndim:
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        raise malformed(field, "must be a sequence", value)
    if length is not None and len(value) != length:
        raise malformed(field, f"must have {length} entries", value)
    return value


def integers(
    field: str, value: object, length: int | None = None, minimum: int = -INT_LIMIT, maximum: int = INT_LIMIT - 1
) -> tuple[int, ...]:
    """Return a sequence of integers as a tuple.

    Example:
        >>> integers("coords", [0, np.int64(64)], 2)
        (0, 64)
    """
    entries = enumerate(items(field, value, length))
    return tuple([integer(f"{field}[{index}]", entry, minimum, maximum) for index, entry in entries])


def text(field: str, value: object, choices: Sequence[str] | None = None) -> str:
    """Return a string, one of ``choices`` if given."""
    if not isinstance(value, str):
        raise malformed(field, "must be a string", value)
    if choices is not None and value not in choices:
        raise malformed(field, f"must be one of {', '.join(choices)}", value)
    return str(value)


def instance(field: str, value: object, kind: type[T]) -> T:
    """Return ``value`` if it is an instance of ``kind``."""
    if not isinstance(value, kind):
        raise malformed(field, f"must be a {kind.__name__}", value)
    return value


def certificate(field: str, value: object) -> dict[str, object] | None:
    """Return a certificate copied to plain JSON data, or None."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise malformed(field, "must be an object or None", value)
    return _json_object(field, value, MAX_DEPTH)


def same_json(one: object, two: object) -> bool:
    """Return whether two JSON values are equal, types included: 1, 1.0 and True differ.

    Example:
        >>> same_json({"elements": 1}, {"elements": 1}), same_json(1, True)
        (True, False)
    """
    return json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)


def plain(value: object, depth: int = 5) -> object:
    """Turn tuples and arrays into lists and numpy integers into ints, ``depth`` levels deep."""
    if type(value) is int or type(value) is str:
        return value
    if isinstance(value, (list, tuple)) and depth:
        return [entry if type(entry) is int else plain(entry, depth - 1) for entry in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, (np.integer, np.bool_)) else value


class Statement(Checked, Shown, code="LA372"):
    """Base of statements and claims, which are frozen dataclasses."""

    __slots__ = ()

    def with_changes(self: T, **changes: object) -> T:
        """Return a copy with some fields replaced and checked; defaults are not derived again."""
        known = [field.name for field in dataclasses.fields(self)]  # type: ignore[arg-type]
        for name in changes:
            if name not in known:
                raise malformed(type(self).__name__, f"has the fields {', '.join(known)}", name)
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    @abstractmethod
    def to_json(self) -> dict[str, object]:
        """Return the document from which ``from_json`` rebuilds an equal value."""


class Claim(Statement):
    """A statement with a certificate; ``with_changes`` does not prove it again."""

    __slots__ = ()
    certificate: Mapping[str, object] | None

    def _validate(self) -> None:
        object.__setattr__(self, "certificate", certificate("certificate", self.certificate))

    def digest(self) -> str:
        """Return the SHA-256 of everything but the certificate, in canonical JSON."""
        document = self.to_json()
        document.pop("certificate")
        return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def wrong_certificate(held: Mapping[str, object] | None, proved: Mapping[str, object]) -> dict[str, object] | None:
    """Return where the certificate attached to a plan differs from the proof, or None."""
    if held is None:
        return None
    for key in (*proved, *held):
        if key not in held or key not in proved:
            return {"field": key, "only_in": "certificate" if key in held else "proof", "got": held.get(key)}
        if not same_json(held[key], proved[key]):
            return {"field": key, "expected": proved[key], "got": held[key]}
    return None


def set_fields(
    value: object, document: object, read: Callable[[Reader], tuple[Any, ...]], what: str, places: Mapping[str, str]
) -> None:
    """Set the fields of a value under construction by reading its document, so that both apply the same checks.

    Args:
        value: A frozen dataclass.
        document: Its fields as an unchecked document.
        read: Returns the fields in order.
        what: The error's sentence.
        places: Prefixes of document pointers and the field-name prefixes to report instead.
    """
    try:
        checked = read(Reader(document))
    except MalformedError as error:
        pointer, because = error.diagnostic.where[0], error.diagnostic.because
        field = next((f"{name}{pointer[len(at) :]}" for at, name in places.items() if pointer.startswith(at)), pointer)
        raise MalformedError(Diagnostic("LA372", what, (f"{type(value).__name__}.{field}",), because)) from None
    put_fields(value, checked)


def put_fields(value: T, checked: tuple[Any, ...]) -> T:
    """Set the fields, already checked and in order, of a value under construction."""
    for entry, found in zip(dataclasses.fields(value), checked, strict=True):  # type: ignore[arg-type]
        object.__setattr__(value, entry.name, found)
    return value


def read_digits(node: Reader) -> Digits:
    """Read the ``(extent, element stride)`` digits of one tile dimension, fastest first."""
    pairs: list[tuple[int, int]] = []
    for pair in node.items(at_most=MODE_DIGITS):  # bounds the product
        extent, stride = pair.integers(2)
        if extent < 1:
            pair.fail("an extent must be at least 1")
        if stride < 0:
            pair.fail("a shared-memory stride must be at least 0")
        pairs.append((extent, stride))
    return tuple(pairs)


def _json(field: str, value: object, depth: int) -> object:
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, (int, np.integer)):
        return integer(field, value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if not depth:
        raise malformed(field, f"must not be nested more than {MAX_DEPTH} deep", value)
    if isinstance(value, Mapping):
        return _json_object(field, value, depth)
    if isinstance(value, (list, tuple)):
        return [_json(f"{field}[{index}]", entry, depth - 1) for index, entry in enumerate(value)]
    raise malformed(field, "must be JSON data", value)


def _json_object(field: str, value: Mapping[object, object], depth: int) -> dict[str, object]:
    answer: dict[str, object] = {}
    for key, entry in value.items():
        if not isinstance(key, str):
            raise malformed(field, "must have strings as keys", key)
        answer[key] = _json(f"{field}[{key[:40]!r}]", entry, depth - 1)
    return answer

"""Certificates of functoriality: JSON that shows, by arithmetic, that a layout is the composition of two others.

Main definitions: ``certify_functoriality``, ``check_functoriality``, ``SCHEMA``.

Main statements: let A = U:e and B = S:d be layouts and C = S:c. Suppose each leaf i of S with extent > 1 either has
d_i = c_i = 0, or a place j_i in U, no place twice, with s_i = u_{j_i}, d_i = u_0 ... u_{j_i - 1}, c_i = e_{j_i}. Then
B(x) is the sum of x_i d_i, which is a number written in the mixed radix U whose digit j_i is x_i and whose other digits
are 0; so A(B(x)) is the sum of x_i e_{j_i}, that is C(x). The places are what the certificate adds; checking needs
products and comparisons only.

Implementation notes: the checker reads JSON-ready data and shares no code with the morphisms. It checks the claim
twice, through the maps and strides and through the digits of the layouts alone; on small domains it evaluates all three
layouts besides.

References: arXiv:2601.05972, functoriality of the realisation; the certificate is this library's.
"""

from __future__ import annotations

import hashlib
import json
from itertools import accumulate
from math import prod
from operator import mul
from typing import NamedTuple

from layoutalg.cute.inttuple import flatten
from layoutalg.cute.morphism import Morphism
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError
from layoutalg.ground.verdict import Proved, Refuted

SCHEMA = "layoutalg/functoriality-certificate/1"
CLAIM = "layout(composite) = composition(layout(outer), layout(inner))"
ENUMERATED = 4096

_NAMES = ("inner", "outer", "composite")
_LIMIT = 2**63
_DEPTH = 64
_LEAVES = 10_000


def certify_functoriality(inner: Morphism, outer: Morphism) -> dict[str, object]:
    """Return a JSON-ready certificate that |outer @ inner| is composition(|outer|, |inner|).

    Args:
        inner: f : S -> T.
        outer: g : T -> V, padded or not.

    Returns:
        Schema, claim, the three morphisms, their layouts, the place of each leaf's digit, and a SHA-256 digest of the
        rest in canonical JSON.

    Raises: AdmissibilityError: LA184, LA605, LA611.

    Example:
        >>> f = Morphism(4, (3, 4), (1,))
        >>> certificate = certify_functoriality(f, Morphism((3, 4), (4, 3), (1, 0)))
        >>> certificate["layouts"]["composite"], certificate["places"]
        ({'shape': 4, 'stride': 1}, [1])
        >>> bool(check_functoriality(certificate))
        True

    Source: arXiv:2601.05972, functoriality.
    """
    if not (isinstance(inner, Morphism) and isinstance(outer, Morphism)):
        kinds = f"a {type(inner).__name__} followed by a {type(outer).__name__} is not defined"
        raise AdmissibilityError(Diagnostic("LA605", "there is no composite to certify", because=kinds))
    composite = outer @ inner
    arrows = dict(zip(_NAMES, (inner, outer, composite), strict=True))
    layouts = {name: arrow.to_layout() for name, arrow in arrows.items()}
    extents = flatten(inner.domain)
    document: dict[str, object] = {
        "schema": SCHEMA,
        "claim": CLAIM,
        **{name: _morphism(arrow) for name, arrow in arrows.items()},
        "layouts": {name: {"shape": _plain(f.shape), "stride": _plain(f.stride)} for name, f in layouts.items()},
        "places": [entry if extent > 1 else None for extent, entry in zip(extents, inner.map, strict=True)],
    }
    document["digest"] = _digest(document)
    return document


def _plain(value: object) -> object:
    return [_plain(entry) for entry in value] if isinstance(value, tuple) else value


def _morphism(morphism: Morphism) -> dict[str, object]:
    pitch = {} if morphism.pitch is None else {"pitch": _plain(morphism.pitch)}
    domain, codomain = _plain(morphism.domain), _plain(morphism.codomain)
    return {"domain": domain, "codomain": codomain, "map": list(morphism.map), **pitch}


def _digest(document: dict[str, object]) -> str:
    rest = {key: value for key, value in document.items() if key != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class _Broken(Exception):  # noqa: N818 - control flow inside the checker, never leaves it
    """The rule that a certificate breaks, where, and why."""

    def __init__(self, rule: str, at: str, because: str) -> None:
        super().__init__(because)
        self.witness = {"rule": rule, "at": at, "because": because}


def _hold(true: bool, rule: str, at: str, because: str) -> None:
    if not true:
        raise _Broken(rule, at, because)


def check_functoriality(certificate: object) -> Proved | Refuted:
    """Return whether a certificate of functoriality holds.

    Mathematically: checks the pointed maps, that the composite's map is the composite of the maps, that every stride is
    the product (or pitch) its map says, and the mixed-radix argument of the module; up to 4096 elements all three
    layouts are evaluated besides.

    Args:
        certificate: What ``certify_functoriality`` returned, possibly read back from JSON.

    Returns:
        Proved, or Refuted with the broken rule, the place in the certificate and the numbers.

    Raises: MalformedError: LA606.

    Complexity: linear in the number of leaves.
    """
    if not isinstance(certificate, dict):
        because = f"a certificate is a JSON object, not {type(certificate).__name__}"
        raise MalformedError(Diagnostic("LA606", "the certificate is malformed", because=because))
    try:
        leaves, enumerated = _check(certificate)
    except _Broken as broken:
        return Refuted("mixed-radix arithmetic", broken.witness)
    return Proved("mixed-radix arithmetic", {"leaves": leaves, "enumerated": enumerated})


class _Arrow(NamedTuple):
    """A morphism that was read: its tuples as they are written, its map, its pitches and its leaves."""

    domain: object
    codomain: object
    map: list[int | None]
    pitch: object
    sources: list[int]
    targets: list[int]


class _Layout(NamedTuple):
    """A layout that was read: the shape as it is written, and its leaves."""

    shape: object
    extents: list[int]
    strides: list[int]


def _check(document: dict[object, object]) -> tuple[int, bool]:
    keys = {"schema", "claim", *_NAMES, "layouts", "places", "digest"}
    _hold(set(document) == keys, "schema", "/", f"the keys must be {', '.join(sorted(keys))}")
    for key, text in (("schema", SCHEMA), ("claim", CLAIM)):
        found = document[key]
        _hold(isinstance(found, str) and found == text, "schema", f"/{key}", f"must be {text!r}")
    inner, outer, composite = [_read_arrow(document[name], f"/{name}", name != "inner") for name in _NAMES]
    layouts = document["layouts"]
    if not isinstance(layouts, dict) or set(layouts) != set(_NAMES):
        raise _Broken("schema", "/layouts", f"must hold {', '.join(_NAMES)}")
    read = [_read_layout(layouts[name], f"/layouts/{name}") for name in _NAMES]
    places = document["places"]
    if not isinstance(places, list) or len(places) != len(inner.map):
        raise _Broken("schema", "/places", f"must be a list of {len(inner.map)} entries")
    fits = all(place is None or (type(place) is int and 0 <= place < _LEAVES) for place in places)
    _hold(fits, "schema", "/places", f"must hold places in [0, {_LEAVES}) or nulls")
    digest = document["digest"]
    same = isinstance(digest, str) and digest == _digest({str(key): value for key, value in document.items()})
    _hold(same, "digest", "/digest", "is not the SHA-256 of the rest")
    _hold(inner.codomain == outer.domain, "middle", "/inner/codomain", "the inner codomain is not the outer domain")
    ends = (inner.domain, outer.codomain, outer.pitch) == (composite.domain, composite.codomain, composite.pitch)
    _hold(ends, "ends", "/composite", "domain, codomain or pitch are not those of the operands")
    for place, entry in enumerate(inner.map):
        wanted, stated = None if entry is None else outer.map[entry], composite.map[place]
        _hold(stated == wanted, "map", f"/composite/map/{place}", f"is {stated}, not {wanted}")
    for name, arrow, layout in zip(_NAMES, (inner, outer, composite), read, strict=True):
        _check_strides(layout, arrow, f"/layouts/{name}")
    _check_places(places, *read)
    return len(inner.map), _enumerate(*read)


def _walk(value: object, at: str, least: int, level: int, found: list[int]) -> list[int]:
    """Return the leaves of nested lists of integers, collected in ``found``."""
    if isinstance(value, list) and level < _DEPTH:
        for entry in value:
            _walk(entry, at, least, level + 1, found)
        return found
    if type(value) is not int or not least <= value < _LIMIT or len(found) >= _LEAVES:
        raise _Broken("schema", at, f"must be nested lists of at most {_LEAVES} integers from {least} to 2^63 - 1")
    found.append(value)
    return found


def _leaves(value: object) -> list[int]:
    return _walk(value, "/", 0, 0, [])


def _alike(a: object, b: object) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_alike(x, y) for x, y in zip(a, b, strict=True))
    return isinstance(a, list) == isinstance(b, list)


def _read_arrow(value: object, at: str, may_be_padded: bool) -> _Arrow:
    if not isinstance(value, dict) or set(value) - {"pitch"} != {"domain", "codomain", "map"}:
        raise _Broken("schema", at, "must hold domain, codomain and map")
    padded = "pitch" in value
    _hold(may_be_padded or not padded, "schema", at, "only the outer morphism and the composite may be padded")
    sources, targets = [_walk(value[name], f"{at}/{name}", 1, 0, []) for name in ("domain", "codomain")]
    if padded:
        _walk(value["pitch"], f"{at}/pitch", 1, 0, [])
        _hold(_alike(value["pitch"], value["codomain"]), "schema", f"{at}/pitch", "must nest like the codomain")
    for name, extents in (("domain", sources), ("codomain", targets)):
        small = all(size < _LIMIT for size in accumulate(extents, lambda a, b: min(a * b, _LIMIT)))
        _hold(small, "schema", f"{at}/{name}", "must have fewer than 2^63 elements")
    mapping = value["map"]
    if not isinstance(mapping, list) or len(mapping) != len(sources):
        raise _Broken("schema", f"{at}/map", f"must be a list of {len(sources)} entries")
    hit: set[int] = set()
    for position, entry in enumerate(mapping):
        if entry is None:
            continue
        where = f"{at}/map/{position}"
        if type(entry) is not int or not 0 <= entry < len(targets):
            raise _Broken("pointed map", where, f"must be null or in [0, {len(targets)})")
        _hold(entry not in hit, "pointed map", where, f"position {entry} is hit twice")
        source, target = sources[position], targets[entry]
        _hold(source == target, "pointed map", where, f"takes extent {source} to {target}")
        hit.add(entry)
    return _Arrow(value["domain"], value["codomain"], mapping, value.get("pitch"), sources, targets)


def _read_layout(value: object, at: str) -> _Layout:
    if not isinstance(value, dict) or set(value) != {"shape", "stride"}:
        raise _Broken("schema", at, "must hold shape and stride")
    extents = _walk(value["shape"], f"{at}/shape", 1, 0, [])
    strides = _walk(value["stride"], f"{at}/stride", 0, 0, [])
    _hold(_alike(value["shape"], value["stride"]), "schema", f"{at}/stride", "must nest like the shape")
    return _Layout(value["shape"], extents, strides)


def _check_strides(layout: _Layout, arrow: _Arrow, at: str) -> None:
    _hold(layout.shape == arrow.domain, "shape", f"{at}/shape", "is not the domain of the morphism")
    weights = [*accumulate(arrow.targets, mul, initial=1)] if arrow.pitch is None else _leaves(arrow.pitch)
    for leaf, (stride, entry) in enumerate(zip(layout.strides, arrow.map, strict=True)):
        wanted = 0 if entry is None else weights[entry]
        _hold(stride == wanted, "stride", f"{at}/stride", f"leaf {leaf} has stride {stride}, its map says {wanted}")


def _check_places(places: list[int | None], inner: _Layout, outer: _Layout, composite: _Layout) -> None:
    same = composite.shape == inner.shape
    _hold(same, "shape", "/layouts/composite/shape", "is not the shape of the inner layout")
    radix = [*accumulate(outer.extents, mul, initial=1)]
    used: set[int] = set()
    for leaf, (extent, stride, place) in enumerate(zip(inner.extents, inner.strides, places, strict=True)):
        at, result = f"/places/{leaf}", composite.strides[leaf]
        if place is None:
            still = extent == 1 or not (stride or result)
            _hold(still, "digit", at, f"leaf {leaf} moves by {stride} and {result} but has no digit")
            continue
        fits = place < len(outer.extents) and place not in used and extent != 1
        _hold(fits, "digit", at, f"must be a place in [0, {len(outer.extents)}) used once, null at extent 1")
        used.add(place)
        digit, moved = (outer.extents[place], radix[place]), outer.strides[place]
        told = f"digit {place} is {digit[0]}:{digit[1]}, the leaf is {extent}:{stride}"
        _hold(digit == (extent, stride), "digit", at, told)
        _hold(moved == result, "digit", at, f"the composite moves by {result}, the digit by {moved}")


def _enumerate(inner: _Layout, outer: _Layout, composite: _Layout) -> bool:
    size = prod(inner.extents)
    for index in range(size if size <= ENUMERATED else 0):
        found, wanted = _value(composite, index), _value(outer, _value(inner, index))
        told = f"at {index} the layouts give {wanted} and {found}"
        _hold(found == wanted, "value", "/layouts/composite", told)
    return size <= ENUMERATED


def _value(layout: _Layout, index: int) -> int:
    total = 0
    for extent, stride in zip(layout.extents, layout.strides, strict=True):
        index, digit = divmod(index, extent)
        total += digit * stride
    return total

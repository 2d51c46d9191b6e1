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

from layoutalg.cute.morphism import Morphism
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError
from layoutalg.ground.verdict import Proved, Refuted

SCHEMA = "layoutalg/functoriality-certificate/1"
CLAIM = "layout(composite) = composition(layout(outer), layout(inner))"
ENUMERATED = 4096

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
    extents = _leaves(_plain(inner.domain))
    document: dict[str, object] = {
        "schema": SCHEMA,
        "claim": CLAIM,
        "inner": _morphism(inner),
        "outer": _morphism(outer),
        "composite": _morphism(composite),
        "layouts": {
            name: {"shape": _plain(layout.shape), "stride": _plain(layout.stride)}
            for name, layout in (
                ("inner", inner.to_layout()),
                ("outer", outer.to_layout()),
                ("composite", composite.to_layout()),
            )
        },
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


def _is(value: object, text: str) -> bool:
    return isinstance(value, str) and value == text


def _check(document: dict[object, object]) -> tuple[int, bool]:
    keys = {"schema", "claim", "inner", "outer", "composite", "layouts", "places", "digest"}
    if set(document) != keys:
        raise _Broken("schema", "/", f"the keys must be {', '.join(sorted(keys))}")
    if not _is(document["schema"], SCHEMA) or not _is(document["claim"], CLAIM):
        raise _Broken("schema", "/schema", f"must be {SCHEMA!r} with the claim {CLAIM!r}")
    inner = _read_morphism(document["inner"], "/inner", False)
    outer = _read_morphism(document["outer"], "/outer", True)
    composite = _read_morphism(document["composite"], "/composite", True)
    layouts = document["layouts"]
    if not isinstance(layouts, dict) or set(layouts) != {"inner", "outer", "composite"}:
        raise _Broken("schema", "/layouts", "must hold inner, outer and composite")
    read = {name: _read_layout(layouts[name], f"/layouts/{name}") for name in ("inner", "outer", "composite")}
    places = document["places"]
    if (
        not isinstance(places, list)
        or len(places) != len(inner[2])
        or not all(place is None or (type(place) is int and 0 <= place < _LEAVES) for place in places)
    ):
        raise _Broken("schema", "/places", f"must be a list of {len(inner[2])} places in [0, {_LEAVES}) or nulls")
    _check_digest(document)
    if inner[1] != outer[0]:
        raise _Broken("middle", "/inner/codomain", "the inner codomain is not the outer domain")
    if composite[0] != inner[0] or composite[1] != outer[1] or composite[3] != outer[3]:
        raise _Broken("ends", "/composite", "domain, codomain or pitch are not those of the operands")
    for position, entry in enumerate(inner[2]):
        expected = None if entry is None else outer[2][entry]
        if composite[2][position] != expected:
            raise _Broken("map", f"/composite/map/{position}", f"is {composite[2][position]}, not {expected}")
    for name, morphism in (("inner", inner), ("outer", outer), ("composite", composite)):
        _check_strides(read[name], morphism, f"/layouts/{name}")
    _check_places(places, read["inner"], read["outer"], read["composite"])
    return len(inner[2]), _enumerate(read["inner"], read["outer"], read["composite"])


_Morphism = tuple[object, object, "list[int | None]", object]
_Layout = tuple[object, "list[int]", "list[int]"]


def _check_digest(document: dict[object, object]) -> None:
    rest = {str(key): value for key, value in document.items()}
    if not _is(document["digest"], _digest(rest)):
        raise _Broken("digest", "/digest", "is not the SHA-256 of the rest")


def _read_tuple(value: object, at: str, least: int) -> object:
    _walk(value, at, least, 0, [0])
    return value


def _walk(value: object, at: str, least: int, level: int, seen: list[int]) -> None:
    if isinstance(value, list) and level < _DEPTH:
        for entry in value:
            _walk(entry, at, least, level + 1, seen)
        return
    seen[0] += 1
    if type(value) is not int or not least <= value < _LIMIT or seen[0] > _LEAVES:
        raise _Broken("schema", at, f"must be nested lists of at most {_LEAVES} integers from {least} to 2^63 - 1")


def _leaves(value: object) -> list[int]:
    if isinstance(value, int):
        return [value]
    return [leaf for entry in value for leaf in _leaves(entry)] if isinstance(value, list) else []


def _alike(a: object, b: object) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_alike(x, y) for x, y in zip(a, b, strict=True))
    return isinstance(a, list) == isinstance(b, list)


def _read_morphism(value: object, at: str, may_be_padded: bool) -> _Morphism:
    if not isinstance(value, dict) or set(value) - {"pitch"} != {"domain", "codomain", "map"}:
        raise _Broken("schema", at, "must hold domain, codomain and map")
    if "pitch" in value and not may_be_padded:
        raise _Broken("schema", at, "only the outer morphism and the composite may be padded")
    domain = _read_tuple(value["domain"], f"{at}/domain", 1)
    codomain = _read_tuple(value["codomain"], f"{at}/codomain", 1)
    pitch = _read_tuple(value["pitch"], f"{at}/pitch", 1) if "pitch" in value else None
    if pitch is not None and not _alike(pitch, codomain):
        raise _Broken("schema", f"{at}/pitch", "must nest like the codomain")
    sources, targets, mapping = _leaves(domain), _leaves(codomain), value["map"]
    for name, extents in (("domain", sources), ("codomain", targets)):
        size = 1
        for extent in extents:
            size *= extent
            if size >= _LIMIT:
                raise _Broken("schema", f"{at}/{name}", "must have fewer than 2^63 elements")
    if not isinstance(mapping, list) or len(mapping) != len(sources):
        raise _Broken("schema", f"{at}/map", f"must be a list of {len(sources)} entries")
    hit: set[int] = set()
    for position, entry in enumerate(mapping):
        if entry is None:
            continue
        if type(entry) is not int or not 0 <= entry < len(targets):
            raise _Broken("pointed map", f"{at}/map/{position}", f"must be null or in [0, {len(targets)})")
        if entry in hit:
            raise _Broken("pointed map", f"{at}/map/{position}", f"position {entry} is hit twice")
        if sources[position] != targets[entry]:
            raise _Broken(
                "pointed map", f"{at}/map/{position}", f"takes extent {sources[position]} to {targets[entry]}"
            )
        hit.add(entry)
    return domain, codomain, mapping, pitch


def _read_layout(value: object, at: str) -> _Layout:
    if not isinstance(value, dict) or set(value) != {"shape", "stride"}:
        raise _Broken("schema", at, "must hold shape and stride")
    shape = _read_tuple(value["shape"], f"{at}/shape", 1)
    stride = _read_tuple(value["stride"], f"{at}/stride", 0)
    if not _alike(shape, stride):
        raise _Broken("schema", f"{at}/stride", "must nest like the shape")
    return shape, _leaves(shape), _leaves(stride)


def _products(extents: list[int]) -> list[int]:
    answer = [1]
    for extent in extents:
        answer.append(answer[-1] * extent)
    return answer


def _check_strides(layout: _Layout, morphism: _Morphism, at: str) -> None:
    if layout[0] != morphism[0]:
        raise _Broken("shape", f"{at}/shape", "is not the domain of the morphism")
    weights = _products(_leaves(morphism[1])) if morphism[3] is None else _leaves(morphism[3])
    for position, (stride, entry) in enumerate(zip(layout[2], morphism[2], strict=True)):
        expected = 0 if entry is None else weights[entry]
        if stride != expected:
            raise _Broken("stride", f"{at}/stride", f"leaf {position} has stride {stride}, its map says {expected}")


def _check_places(places: list[int | None], inner: _Layout, outer: _Layout, composite: _Layout) -> None:
    if composite[0] != inner[0]:
        raise _Broken("shape", "/layouts/composite/shape", "is not the shape of the inner layout")
    radix = _products(outer[1])
    used: set[int] = set()
    for leaf, (extent, stride, place) in enumerate(zip(inner[1], inner[2], places, strict=True)):
        at = f"/places/{leaf}"
        result = composite[2][leaf]
        if place is None:
            if extent > 1 and (stride or result):
                raise _Broken("digit", at, f"leaf {leaf} moves by {stride} and {result} but has no digit")
            continue
        if not 0 <= place < len(outer[1]) or place in used or extent == 1:
            raise _Broken("digit", at, f"must be a place in [0, {len(outer[1])}) used once, null at extent 1")
        used.add(place)
        if outer[1][place] != extent or radix[place] != stride:
            raise _Broken(
                "digit", at, f"digit {place} is {outer[1][place]}:{radix[place]}, the leaf is {extent}:{stride}"
            )
        if outer[2][place] != result:
            raise _Broken("digit", at, f"the composite moves by {result}, the digit by {outer[2][place]}")


def _enumerate(inner: _Layout, outer: _Layout, composite: _Layout) -> bool:
    size = _products(inner[1])[-1]
    if size > ENUMERATED:
        return False
    for index in range(size):
        middle, value = _value(inner, index), _value(composite, index)
        if _value(outer, middle) != value:
            raise _Broken(
                "value", "/layouts/composite", f"at {index} the layouts give {_value(outer, middle)} and {value}"
            )
    return True


def _value(layout: _Layout, index: int) -> int:
    total = 0
    for extent, stride in zip(layout[1], layout[2], strict=True):
        index, digit = divmod(index, extent)
        total += digit * stride
    return total

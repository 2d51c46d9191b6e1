"""Reading Triton's layout attributes.

Main definitions: ``parse_attribute``, ``read_attribute``, ``tensor_layout``.

Notation: ``#ttg.KIND<{key = value, ...}>``, also as the line ``#name = #ttg.KIND<...>`` that defines it. Values are
integers, ``true``, ``false`` and nested lists of integers. ``padded_shared<[interval:+padding, ...] {...}>`` has pairs
before the braces, ``shared_linear<{...}, alignment = 16>`` an alignment behind them, which is read past.

References: Triton 3.9.0 (``TritonGPUAttrDefs``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import Diagnostic, MalformedError, shown
from layoutalg.ground.tokens import Grammar, Tokens
from layoutalg.targets.layouts.blocked import blocked
from layoutalg.targets.layouts.cga import cluster_bases
from layoutalg.targets.layouts.padding import PaddedShared, padded_shared
from layoutalg.targets.layouts.shared import nvmma_shared, swizzled_shared

Value: TypeAlias = bool | int | list[Any]
_MARKS = ("#", ".", "<", ">", "{", "}", "[", "]", ",", "=", ":", "+")
GRAMMAR = Grammar(_MARKS, False, "LA710", "this is not a layout in Triton's terms")
THREAD_AXES: tuple[str, ...] = ("register", "lane", "warp", "block")
SHARED_AXES: tuple[str, ...] = ("offset", "block")
LIST_DEPTH = 3
CLUSTER = ("CGALayout", "CTAsPerCGA", "CTASplitNum", "CTAOrder")


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute as it is written: its kind, the pairs of a padding, the entries between the braces."""

    kind: str
    pairs: tuple[tuple[int, int], ...]
    entries: Mapping[str, Value]


def parse_attribute(text: str, shape: Sequence[int] | None = None) -> LinearLayout | PaddedShared:
    """Return the layout of an attribute: (register, lane, warp, block) or (offset, block) to dim0, dim1, ...

    Args:
        text: ``linear``, ``generic_linear``, ``blocked``, ``shared_linear``, ``swizzled_shared``, ``nvmma_shared`` or
            ``padded_shared``.
        shape: Sizes of the tensor, outermost dimension first. Where there is none, a text of bases takes the smallest
            that hold them; ``padded_shared`` may hold sizes.

    Raises: MalformedError: LA710, LA700, LA701, LA200. AdmissibilityError: LA703, LA706.

    Example:
        >>> text = "#ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16}>"
        >>> str(parse_attribute(text, (8, 16)))
        'F2[offset=(0,1)(0,2)(0,4)(0,8)(1,0)(2,0)(4,8), block= -> dim0:8, dim1:16]'

    Source: Triton 3.9.0, the assembly formats of ``TritonGPUAttrDefs``.
    """
    found = read_attribute(text)
    if found.kind not in _BUILDERS:
        raise GRAMMAR.error(text, f"the kinds read here are {', '.join(_BUILDERS)}, not {found.kind}")
    needed, known, build = _BUILDERS[found.kind]
    missing = [key for key in needed if key not in found.entries]
    unknown = [key for key in found.entries if key not in known and key not in needed]
    if missing or unknown:
        rule = f"needs {missing[0]}" if missing else f"has no entry {unknown[0]}"
        raise GRAMMAR.error(text, f"{found.kind} {rule}; its entries are {', '.join((*needed, *known))}")
    stated = found.entries.get("shape")
    if shape is not None and stated is not None and list(_sizes(shape)) != stated:
        _fail("shape", f"must be the one that the text holds, {stated}", shape)
    size = stated if shape is None else shape
    if size is None and "linear" not in found.kind and "offset" not in found.entries:
        raise GRAMMAR.error(text, f"{found.kind} holds no sizes: give shape=, outermost dimension first")
    return build(found, size)


def read_attribute(text: str) -> Attribute:
    """Return an attribute as it is written; its meaning is not judged.

    Raises: MalformedError: LA710.

    Example:
        >>> read_attribute("#s = #ttg.padded_shared<[4:+1] {order = [0], shape = [8]}>")
        Attribute(kind='padded_shared', pairs=((4, 1),), entries={'order': [0], 'shape': [8]})
    """
    tokens = Tokens(text, GRAMMAR)
    if tokens.peek("#") and tokens.peek("=", 2):
        tokens.next = 3
    tokens.accept("#")
    kind = tokens.take("name", "a kind of layout")
    if kind == "ttg" and tokens.accept("."):
        kind = tokens.take("name", "a kind of layout")
    tokens.take("<", "<")
    pairs = _pairs(tokens) if tokens.peek("[") else ()
    tokens.take("{", "{")
    entries = _entries(tokens)
    if kind == "shared_linear" and tokens.accept(","):
        tokens.take("alignment", "alignment")
        tokens.take("=", "=")
        tokens.take("number", "a number")
    tokens.take(">", ">")
    if tokens.next < len(tokens.items):
        tokens.fail("the end", tokens.position())
    return Attribute(kind, pairs, entries)


def _pairs(tokens: Tokens) -> tuple[tuple[int, int], ...]:
    """Read ``[interval:+padding, ...]``."""
    tokens.take("[", "[")
    pairs: list[tuple[int, int]] = []
    while not tokens.accept("]"):
        if pairs:
            tokens.take(",", ", or ]")
        interval = _number(tokens)
        tokens.take(":", ":+")
        tokens.take("+", ":+")
        pairs.append((interval, _number(tokens)))
    return tuple(pairs)


def _entries(tokens: Tokens) -> dict[str, Value]:
    """Read ``key = value, ...}``."""
    entries: dict[str, Value] = {}
    while not tokens.accept("}"):
        if entries:
            tokens.take(",", ", or }")
        place = tokens.position()
        key = tokens.take("name", "the name of an entry or }")
        if key in entries:
            tokens.fail("each name once", place)
        tokens.take("=", "=")
        entries[key] = _value(tokens, 0)
    return entries


def _value(tokens: Tokens, depth: int) -> Value:
    if tokens.peek("true") or tokens.peek("false"):
        return tokens.take("name", "a value") == "true"
    place = tokens.position()
    if not tokens.accept("["):
        return _number(tokens)
    if depth >= LIST_DEPTH:
        tokens.fail(f"lists at most {LIST_DEPTH} deep", place)
    values: list[Value] = []
    while not tokens.accept("]"):
        if values:
            tokens.take(",", ", or ]")
        values.append(_value(tokens, depth + 1))
    return values


def _number(tokens: Tokens) -> int:
    place = tokens.position()
    digits = tokens.take("number", "an integer, true, false or a list")
    if digits != "0" and digits.startswith("0"):
        tokens.fail("a number without leading zeros", place)
    return int(digits)


def tensor_layout(bases: Mapping[str, Any], axes: tuple[str, ...], shape: Sequence[int] | None) -> LinearLayout:
    """Return the layout of axes among ``axes`` onto dim0, dim1, ...; absent axes have size 1.

    Args:
        bases: Axis name -> its images.
        axes: The axes, in the order of the layout.
        shape: Sizes of the outputs; None for the smallest powers of two above the components.

    Raises: MalformedError: LA710, LA200.

    Example:
        >>> str(tensor_layout({"offset": [[0, 1], [1, 1]]}, SHARED_AXES, None))
        'F2[offset=(0,1)(1,1), block= -> dim0:2, dim1:2]'
    """
    if not set(bases) <= set(axes):
        _fail("text", f"must name axes among {axes}", list(bases))
    ordered = [(axis, bases.get(axis, [])) for axis in axes]
    for axis, images in ordered:
        if not isinstance(images, (tuple, list)) or any(not isinstance(image, (tuple, list)) for image in images):
            _fail(axis, "must be a list of basis vectors", images)
    lengths = [len(image) for _, images in ordered for image in images]
    rank = max(lengths, default=0) if shape is None else len(_sizes(shape))
    if rank == 0:
        _fail("text", "must have a basis vector, or come with a shape, to tell the number of dimensions", shape)
    sizes = smallest(ordered, rank) if shape is None else tuple(shape)
    return LinearLayout.from_bases(ordered, [(f"dim{index}", size) for index, size in enumerate(sizes)])


def smallest(entries: Sequence[tuple[str, Any]], rank: int) -> tuple[int, ...]:
    """Return per output the smallest power of two above every component; others than integers are refused later."""
    sizes = [1] * rank
    for _, images in entries:
        for image in images if isinstance(images, (tuple, list)) else ():
            for index, part in enumerate(image[:rank] if isinstance(image, (tuple, list)) else ()):
                if type(part) is int and part > 0:
                    sizes[index] = max(sizes[index], 1 << part.bit_length())
    return tuple(sizes)


def _sizes(shape: object) -> Sequence[int]:
    if not isinstance(shape, (tuple, list)):
        _fail("shape", "must be a sequence of sizes", shape)
    return shape


def _fail(argument: str, rule: str, actual: object) -> NoReturn:
    because = f"{argument} {rule}, not {shown(actual)}"
    raise MalformedError(Diagnostic(GRAMMAR.code, GRAMMAR.what, (argument,), because))


def _cluster(entries: Mapping[str, Any]) -> Any:
    """Return the bases of the blocks of a cluster, however they are written."""
    if "CTAsPerCGA" in entries:
        return cluster_bases(entries["CTAsPerCGA"], entries.get("CTASplitNum"), entries.get("CTAOrder"))
    return entries.get("CGALayout", ())


def _linear(found: Attribute, shape: Any) -> LinearLayout:
    return tensor_layout(found.entries, THREAD_AXES, shape)


def _shared_linear(found: Attribute, shape: Any) -> LinearLayout:
    return tensor_layout(found.entries, SHARED_AXES, shape)


def _blocked(found: Attribute, shape: Any) -> LinearLayout:
    e: Mapping[str, Any] = found.entries
    return blocked(e["sizePerThread"], e["threadsPerWarp"], e["warpsPerCTA"], e["order"], shape, _cluster(e))


def _swizzled(found: Attribute, shape: Any) -> LinearLayout:
    e: Mapping[str, Any] = found.entries
    return swizzled_shared(shape, e["vec"], e["perPhase"], e["maxPhase"], e["order"], _cluster(e))


def _nvmma(found: Attribute, shape: Any) -> LinearLayout:
    e: Mapping[str, Any] = found.entries
    turned, padded = e.get("transposed", False), e.get("fp4Padded", False)
    return nvmma_shared(shape, e["swizzlingByteWidth"], e["elementBitWidth"], turned, padded, _cluster(e))


def _padded(found: Attribute, shape: Any) -> PaddedShared:
    e: Mapping[str, Any] = found.entries
    if "offset" in e:
        bases = {axis: e[axis] for axis in SHARED_AXES if axis in e}
        return PaddedShared(tensor_layout(bases, SHARED_AXES, shape), found.pairs)
    return padded_shared(shape, found.pairs, e.get("order"), None, _cluster(e))


_BUILDERS: Mapping[
    str, tuple[tuple[str, ...], tuple[str, ...], Callable[[Attribute, Any], LinearLayout | PaddedShared]]
] = {
    "linear": ((), THREAD_AXES, _linear),
    "generic_linear": ((), THREAD_AXES, _linear),
    "blocked": (("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order"), CLUSTER, _blocked),
    "shared_linear": ((), SHARED_AXES, _shared_linear),
    "swizzled_shared": (("vec", "perPhase", "maxPhase", "order"), CLUSTER, _swizzled),
    "nvmma_shared": (("swizzlingByteWidth", "elementBitWidth"), ("transposed", "fp4Padded", *CLUSTER), _nvmma),
    "padded_shared": ((), ("order", "offset", "block", "shape", *CLUSTER), _padded),
}
"""Kind -> (entries it needs, entries it may have, what builds it)."""

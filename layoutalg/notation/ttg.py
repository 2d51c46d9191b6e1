"""Read Triton's layout attributes and build their layouts.

Notation: ``#ttg.KIND<{key = value, ...}>``, optionally as a definition ``#name = #ttg.KIND<...>``. Values are integers,
``true``, ``false``, nested lists of integers, ``{key = value, ...}``, attributes and names of attributes defined
earlier. ``padded_shared<[interval:+padding, ...] {...}>`` has pairs before the braces,
``shared_linear<{...}, alignment = 16>`` an alignment after them, which is ignored;
``#ttng.tensor_memory_encoding<blockM = 128, ...>`` has no braces.

References: Triton 3.9.0 (``TritonGPUAttrDefs``).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any, TypeAlias

from layoutalg.f2 import LinearLayout, ensure_not_larger, ensure_not_smaller, transpose_outs
from layoutalg.ground.errors import LayoutError
from layoutalg.ground.text import Grammar, Tokens
from layoutalg.notation.triton import CODE, SHARED_AXES, THREAD_AXES, WHAT, fail, sizes_of, smallest, tensor_layout
from layoutalg.targets.layouts import amd, nvidia
from layoutalg.targets.layouts.blocked import blocked, blocked_operand, cluster_bases, slice_of
from layoutalg.targets.layouts.padding import PaddedShared, padded_shared
from layoutalg.targets.layouts.scales import tensor_memory_scales
from layoutalg.targets.layouts.shared import nvmma_shared, partitioned_shared, rotating_shared, swizzled_shared
from layoutalg.targets.layouts.tmem import tensor_memory

Value: TypeAlias = "bool | int | list[Any] | Attribute | dict[str, Any]"
MARKS = ("#", ".", "<", ">", "{", "}", "[", "]", "(", ")", ",", "=", ":", "+")
GRAMMAR = Grammar(MARKS, False, CODE, WHAT)
LIST_DEPTH = 3
PARENTS = 16
BARE = ("tensor_memory_encoding", "tensor_memory_scales_encoding")
"""Kinds whose entries have no braces."""
Built: TypeAlias = LinearLayout | PaddedShared
CLUSTER = ("CGALayout", "CTAsPerCGA", "CTASplitNum", "CTAOrder")
ORDERED = ("order", "warpsPerCTA", "tilesPerWarp")
NO_WMMA_WARPS = "amd_wmma with warpsPerCTA is an old form; Triton 3.9.0 writes ctaLayout = {warp = [...]}"


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute as written: its kind, its padding pairs, and the entries in its braces."""

    kind: str
    pairs: tuple[tuple[int, int], ...]
    entries: Mapping[str, Value]


def read_attribute(text: str) -> Attribute:
    """Parse an attribute, without checking its entries."""
    tokens = Tokens(text, GRAMMAR)
    if tokens.peek("#") and tokens.peek("=", 2):
        tokens.next = 3
    found = attribute(tokens, {})
    if tokens.next < len(tokens.items):
        tokens.fail("the end", tokens.position())
    return found


def attribute(tokens: Tokens, names: Mapping[str, Attribute], level: int = 0) -> Attribute:
    """Read one attribute, or the name of one defined earlier."""
    place = tokens.position()
    if level > PARENTS:
        tokens.fail(f"attributes at most {PARENTS} deep", place)
    marked = tokens.accept("#")
    kind = tokens.take("name", "a kind of layout")
    if kind in ("ttg", "ttng", "triton_gpu", "triton_nvidia_gpu") and tokens.accept("."):
        kind = tokens.take("name", "a kind of layout")
    elif marked and not tokens.peek("<"):
        if kind not in names:
            known = f", one of {', '.join('#' + name for name in names)}," if names else ""
            tokens.fail(f"an attribute, or the name of one{known} that the text defines earlier", place)
        return names[kind]
    tokens.take("<", "<")
    pairs = _pairs(tokens) if tokens.peek("[") else ()
    if kind in BARE and not tokens.peek("{"):
        return Attribute(kind, pairs, _entries(tokens, names, level, ">"))
    tokens.take("{", "{")
    entries = _entries(tokens, names, level, "}")
    if kind == "shared_linear" and tokens.accept(","):
        tokens.take("alignment", "alignment")
        tokens.take("=", "=")
        tokens.take("number", "a number")
    tokens.take(">", ">")
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


def _entries(tokens: Tokens, names: Mapping[str, Attribute], level: int, closing: str) -> dict[str, Value]:
    """Read ``key = value, ...`` and the closing mark."""
    entries: dict[str, Value] = {}
    while not tokens.accept(closing):
        if entries:
            tokens.take(",", f", or {closing}")
        place = tokens.position()
        key = tokens.take("name", f"the name of an entry or {closing}")
        if key in entries:
            tokens.fail("each name once", place)
        tokens.take("=", "=")
        entries[key] = _value(tokens, names, 0, level)
    return entries


def _value(tokens: Tokens, names: Mapping[str, Attribute], depth: int, level: int) -> Value:
    if tokens.peek("true") or tokens.peek("false"):
        return tokens.take("name", "a value") == "true"
    place = tokens.position()
    if tokens.peek("#"):
        return attribute(tokens, names, level + 1)
    if depth == 0 and tokens.accept("{"):
        return _entries(tokens, names, level + 1, "}") if level < PARENTS else tokens.fail("less nesting", place)
    if not tokens.accept("["):
        return _number(tokens)
    if depth >= LIST_DEPTH:
        tokens.fail(f"lists at most {LIST_DEPTH} deep", place)
    values: list[Value] = []
    while not tokens.accept("]"):
        if values:
            tokens.take(",", ", or ]")
        values.append(_value(tokens, names, depth + 1, level))
    return values


def _number(tokens: Tokens) -> int:
    place = tokens.position()
    digits = tokens.take("number", "an integer, true, false or a list")
    if digits != "0" and digits.startswith("0"):
        tokens.fail("a number without leading zeros", place)
    return int(digits)


def parse_attribute(text: str, shape: Sequence[int] | None = None) -> Any:
    """Return the layout of an attribute: (register, lane, warp, block) or (offset, block) to dim0, dim1, ...

    Args:
        text: ``linear``, ``generic_linear``, ``blocked``, ``slice``, ``nvidia_mma``, ``amd_mfma``, ``amd_wmma``,
            ``dot_op``, ``shared_linear``, ``swizzled_shared``, ``nvmma_shared``, ``padded_shared``,
            ``partitioned_shared``, ``amd_rotating_shared`` or ``tensor_memory_encoding``.
        shape: Tensor sizes, outermost dimension first; None for those in the text (``padded_shared`` may have them) or,
            for basis vectors, the smallest that fit.

    Example:
        >>> text = "#ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16}>"
        >>> str(parse_attribute(text, (8, 16)))
        'F2[offset=(0,1)(0,2)(0,4)(0,8)(1,0)(2,0)(4,8), block= -> dim0:8, dim1:16]'

    Source: Triton 3.9.0, the assembly formats of ``TritonGPUAttrDefs``.
    """
    return build(read_attribute(text), shape, text)


def build(found: Attribute, shape: Sequence[int] | None, text: object = "") -> Built:
    """Return the layout of an attribute on a tensor."""
    check(found, text)
    stated = found.entries.get("shape")
    if shape is not None and stated is not None and list(sizes_of(shape)) != stated:
        fail("shape", f"must be the one in the text, {stated}", shape)
    size: Any = stated if shape is None else shape
    if size is None and "linear" not in found.kind and "offset" not in found.entries:
        raise GRAMMAR.error(text, f"{found.kind} has no sizes: pass shape=, outermost dimension first")
    rank = rank_of(found)
    if size is not None and rank is not None and len(sizes_of(size)) != rank:
        fail("shape", f"must have {rank} dimensions, like this {found.kind}", size)
    return KINDS[found.kind][2](found, size)


def check(found: Attribute, text: object = "") -> None:
    """Refuse unknown kinds and missing or unknown entries."""
    if found.kind not in KINDS:
        raise GRAMMAR.error(text, f"the kind must be one of {', '.join(KINDS)}, not {found.kind}")
    needed, known, _ = KINDS[found.kind]
    missing = [key for key in needed if key not in found.entries]
    unknown = [key for key in found.entries if key not in known and key not in needed]
    if missing or unknown:
        rule = f"needs {missing[0]}" if missing else ""
        place: int | None = None
        if unknown:
            close = get_close_matches(unknown[0], (*needed, *known), 1)
            rule = f"has no entry {unknown[0]}" + (f", perhaps {close[0]}" if close else "")
            written = re.search(rf"\b{re.escape(unknown[0])}\s*=", text if isinstance(text, str) else "")
            place = None if written is None else written.start()
        raise GRAMMAR.error(text, f"{found.kind} {rule}; its entries are {', '.join((*needed, *known))}", place)


def rank_of(found: Attribute) -> int | None:
    """Return the number of tensor dimensions of an attribute, or None if it does not determine it."""
    entries: Mapping[str, Any] = found.entries
    parent = entries.get("parent", entries.get("partitionLayout"))
    if isinstance(parent, Attribute):
        inner = rank_of(parent)
        return None if inner is None else inner - (found.kind == "slice")
    lists = [entries[key] for key in ORDERED if key in entries]
    if found.kind == "amd_wmma":
        lists = [vector for bases in _cta_layout(found).values() if isinstance(bases, list) for vector in bases]
    if found.kind in ("nvmma_shared", "amd_wmma"):
        lists += entries.get("CGALayout") or []
        if isinstance(entries.get("rank"), int):
            return int(entries["rank"])
        least = 2 if found.kind == "nvmma_shared" else None
        return next((len(entry) for entry in lists if isinstance(entry, list)), least)
    if "tensor_memory" in found.kind:
        return 2
    return next((len(entry) for entry in lists if isinstance(entry, list)), None)


def _cluster(entries: Mapping[str, Any]) -> Any:
    """Return the bases of the blocks of a cluster, in either notation."""
    if "CTAsPerCGA" in entries:
        return cluster_bases(entries["CTAsPerCGA"], entries.get("CTASplitNum"), entries.get("CTAOrder"))
    return entries.get("CGALayout", ())


def _phased(layout: Callable[..., LinearLayout], found: Attribute, shape: Any) -> LinearLayout:
    return layout(shape, *(found.entries[name] for name in PHASED), _cluster(found.entries))


def _blocked(layout: Callable[..., LinearLayout], found: Attribute, shape: Any) -> LinearLayout:
    return layout(*(found.entries[name] for name in BLOCKED), shape, _cluster(found.entries))


def _nvmma(found: Attribute, shape: Any) -> LinearLayout:
    e: Mapping[str, Any] = found.entries
    turned, padded = e.get("transposed", False), e.get("fp4Padded", False)
    return nvmma_shared(shape, e["swizzlingByteWidth"], e["elementBitWidth"], turned, padded, _cluster(e))


def shared_attribute(layout: LinearLayout, element_bits: int | None = None) -> str | None:
    """Return the ``swizzled_shared`` or ``nvmma_shared`` attribute that is exactly this layout; None if there is none.

    All parameters are tried: larger vectors and more phases than the tensor has columns and rows are the same function.

    Args:
        layout: (offset, block) -> (dim0, dim1, ...).
        element_bits: Element width, for which ``nvmma_shared`` is tried first; None: last, of any width.

    Example:
        >>> shared_attribute(swizzled_shared((16, 64), 8, 1, 8, (1, 0)))
        '#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>'
        >>> shared_attribute(nvmma_shared((16, 64), 128, 16), 16)
        '#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>'
    """
    shape = tuple(layout.out_dims.values())
    kinds = [_phases_of, _engines_of] if element_bits is None else [_engines_of, _phases_of]
    for text, build in (found for kind in kinds for found in kind(layout, shape, element_bits)):
        with suppress(LayoutError):  # larger than the tensor
            if build() == layout:
                return text
    return None


Candidates: TypeAlias = Iterator[tuple[str, Callable[[], LinearLayout]]]
"""Attributes, and what builds their layouts."""


def _phases_of(layout: LinearLayout, shape: tuple[int, ...], _: int | None) -> Candidates:
    moved = [dim for image in layout.bases["offset"] for dim, step in enumerate(image) if step]
    # the dimensions in the order in which they appear; a row may move columns, which come first
    order = list(dict.fromkeys([*moved, *range(len(shape))]))
    columns, rows = (_powers(shape[dim]) for dim in (*order, *order)[:2])
    for vec, per_phase, max_phase in itertools.product(columns, rows, rows):
        numbers = ", ".join(
            f"{name} = {value}" for name, value in zip(PHASED, (vec, per_phase, max_phase, order), strict=True)
        )
        build = partial(swizzled_shared, shape, vec, per_phase, max_phase, order)
        yield f"#ttg.swizzled_shared<{{{numbers}}}>", build


def _engines_of(_: LinearLayout, shape: tuple[int, ...], element_bits: int | None) -> Candidates:
    widths = (16, 8, 32, 64) if element_bits is None else (element_bits,)
    for bits, swizzle, turned in itertools.product(widths, (128, 64, 32, 0), (False, True)):
        entries = f"swizzlingByteWidth = {swizzle}, transposed = {str(turned).lower()}, elementBitWidth = {bits}"
        entries += f", rank = {len(shape)}" if len(shape) != 2 else ""
        yield f"#ttg.nvmma_shared<{{{entries}}}>", partial(nvmma_shared, shape, swizzle, bits, turned)


def _powers(extent: int) -> list[int]:
    return [1 << bit for bit in range(extent.bit_length())]


def _tensor_memory(found: Attribute, shape: Any) -> LinearLayout:
    e: Mapping[str, Any] = found.entries
    pair, padded = e.get("twoCTAs", False), e.get("fp4Padded", False)
    return tensor_memory(shape, (e["blockM"], e["blockN"]), e["colStride"], pair, _cluster(e), padded)


def _padded(found: Attribute, shape: Any) -> PaddedShared:
    e: Mapping[str, Any] = found.entries
    if "offset" in e and shape is not None and _cluster(e):
        return padded_shared(shape, found.pairs, None, e["offset"], _cluster(e))
    if "offset" in e:
        bases = {axis: e[axis] for axis in SHARED_AXES if axis in e}
        return PaddedShared(tensor_layout(bases, SHARED_AXES, shape), found.pairs)
    return padded_shared(shape, found.pairs, e.get("order"), None, _cluster(e))


def _partitioned(found: Attribute, shape: Any) -> LinearLayout:
    e: Mapping[str, Any] = found.entries
    piece, dim, count, runs = _attribute(e, "partitionLayout"), e["partitionDim"], e["numPartitions"], e["numGroups"]
    extents = list(sizes_of(shape))
    if type(dim) is not int or not 0 <= dim < len(extents) or type(count) is not int or type(runs) is not int:
        fail("partitionDim", "must be a dimension of the tensor; numPartitions and numGroups must be integers", dim)
    if count * runs < 1 or type(extents[dim]) is not int or extents[dim] % (count * runs):
        fail("shape", f"must divide along dimension {dim} into {count * runs} pieces", shape)
    extents[dim] //= count * runs
    layout = build(piece, extents)
    if not isinstance(layout, LinearLayout):
        fail("partitionLayout", "must be a linear layout", piece.kind)
    return partitioned_shared(layout, count, runs, dim)


def _linear(found: Attribute, shape: Any) -> LinearLayout:
    """Return basis vectors on a tensor: registers repeat them if it is larger, and what passes its end is folded."""
    if shape is None:
        return tensor_layout(found.entries, THREAD_AXES, None)
    sizes = sizes_of(shape)
    own = tensor_layout(found.entries, THREAD_AXES, None if any(found.entries.values()) else (1,) * len(sizes))
    names = list(own.out_dims)
    if len(names) != len(sizes):
        fail("shape", f"must have {len(names)} dimensions, like the basis vectors", shape)
    if not own.is_surjective:  # Triton has none of these: read as they are, inside the tensor
        return tensor_layout(found.entries, THREAD_AXES, shape)
    moved = [place for vector in own.bases["register"] for place, part in enumerate(vector) if part]
    order = [names[place] for place in dict.fromkeys([*moved, *range(len(names))[::-1]])]
    wanted = dict(zip(names, sizes, strict=True))
    fitted = ensure_not_smaller(transpose_outs(own, order), wanted, "register")
    return transpose_outs(ensure_not_larger(fitted, wanted, broadcast=False), names)


def _slice(found: Attribute, shape: Any) -> LinearLayout:
    parent, dim = _attribute(found.entries, "parent"), found.entries["dim"]
    extents = list(sizes_of(shape))
    if type(dim) is not int or not 0 <= dim <= len(extents):
        fail("dim", f"must be in 0..{len(extents)} for a tensor of {len(extents)} dimensions", dim)
    own = "linear" in parent.kind  # basis vectors have sizes of their own, other kinds fit any
    removed = smallest(list(parent.entries.items()), len(extents) + 1)[dim] if own else 1
    whole = build(parent, [*extents[:dim], removed, *extents[dim:]])
    if not isinstance(whole, LinearLayout):
        fail("parent", "must be a distributed layout", parent.kind)
    return slice_of(whole, dim)


def _nvidia(found: Attribute, shape: Any) -> LinearLayout:
    e: Mapping[str, Any] = found.entries
    if e["versionMajor"] == 2:
        return nvidia.mma_accumulator(shape, e["warpsPerCTA"], e["instrShape"], _cluster(e))
    if e["versionMajor"] == 3:
        return nvidia.wgmma_accumulator(shape, e["warpsPerCTA"], _wgmma_n(e["instrShape"]), _cluster(e))
    return fail("versionMajor", "must be 2 (mma.sync) or 3 (wgmma)", e["versionMajor"])


def _wgmma_n(instruction: object) -> int:
    """Return the columns of a wgmma instruction written as [16, n, k]."""
    if not isinstance(instruction, list) or len(instruction) not in (2, 3) or type(instruction[1]) is not int:
        fail("instrShape", "must be [16, n, k] for versionMajor = 3", instruction)
    return int(instruction[1])


def _mfma(found: Attribute, shape: Any) -> LinearLayout:
    e: Mapping[str, Any] = found.entries
    tile, warps, bits = _tile(e["instrShape"]), e["warpsPerCTA"], e.get("elementBitWidth", 32)
    return amd.mfma_accumulator(shape, tile, warps, e["isTransposed"], bits, e.get("tilesPerWarp"), _cluster(e))


def _tile(instruction: object) -> list[int]:
    if not isinstance(instruction, list) or len(instruction) not in (2, 3):
        fail("instrShape", "must be [m, n] or [m, n, k]", instruction)
    return instruction[:2]


def _cta_layout(found: Attribute) -> dict[str, Any]:
    inside = found.entries.get("ctaLayout", {})
    if not isinstance(inside, dict) or not set(inside) <= {"register", "warp"}:
        fail("ctaLayout", "must be {register = [...], warp = [...]}", inside)
    return inside


def _wmma_parts(found: Attribute) -> tuple[Any, Any, list[int], bool, Any]:
    """Return the entries common to WMMA results and operands: warps, registers, instruction, transposition, cluster."""
    e: Mapping[str, Any] = found.entries
    if "warpsPerCTA" in e:
        fail("warpsPerCTA", f"cannot be read: {NO_WMMA_WARPS}", e["warpsPerCTA"])
    inside = _cta_layout(found)
    instruction = e.get("instrShape", [16, 16, 16])
    _tile(instruction)
    turned = e.get("isTranspose", e.get("isTransposed", False))
    return inside.get("warp", []), inside.get("register", []), instruction, turned, _cluster(e)


def _wmma(found: Attribute, shape: Any) -> LinearLayout:
    warps, registers, instruction, turned, cluster = _wmma_parts(found)
    version: Any = found.entries["version"]
    return amd.wmma_accumulator(shape, version, warps, registers, turned, instruction[:2], cluster)


def _operand(found: Attribute, shape: Any) -> LinearLayout:
    entries: Mapping[str, Any] = found.entries
    if entries["opIdx"] not in (0, 1):
        fail("opIdx", "must be 0 (A) or 1 (B)", entries["opIdx"])
    operand, parent = "AB"[entries["opIdx"]], _attribute(entries, "parent")
    check(parent)
    e: Mapping[str, Any] = parent.entries
    if parent.kind == "blocked":
        return _blocked(partial(blocked_operand, operand), parent, shape)
    if parent.kind not in ("nvidia_mma", "amd_mfma", "amd_wmma"):
        fail("parent", "must be blocked, nvidia_mma, amd_mfma or amd_wmma", parent.kind)
    if "kWidth" not in entries:
        fail("kWidth", f"must be given, because the parent is {parent.kind}", None)
    width: Any = entries["kWidth"]
    if parent.kind == "amd_wmma":
        warps, registers, instruction, turned, cluster = _wmma_parts(parent)
        whole = [*instruction, 16][:3]
        return amd.wmma_operand(operand, shape, e["version"], warps, width, registers, whole, cluster, turned)
    if parent.kind == "amd_mfma":
        tile, tiles = _tile(e["instrShape"]), e.get("tilesPerWarp")
        return amd.mfma_operand(operand, shape, tile, e["warpsPerCTA"], width, tiles, _cluster(e))
    if e["versionMajor"] == 2:
        return nvidia.mma_operand(operand, shape, e["warpsPerCTA"], width, e["instrShape"], _cluster(e))
    if e["versionMajor"] == 3:
        return nvidia.wgmma_operand(operand, shape, e["warpsPerCTA"], width, _cluster(e))
    return fail("versionMajor", "must be 2 (mma.sync) or 3 (wgmma)", e["versionMajor"])


def _scales(found: Attribute, shape: Any) -> LinearLayout:
    return tensor_memory_scales(shape, _cluster(found.entries))


def _attribute(entries: Mapping[str, Any], key: str) -> Attribute:
    found = entries[key]
    if not isinstance(found, Attribute):
        fail(key, "must be an attribute", found)
    return found


MMA = ("versionMajor", "warpsPerCTA", "instrShape")
BLOCKED = ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")
PHASED = ("vec", "perPhase", "maxPhase", "order")
KINDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], Callable[[Attribute, Any], Built]]] = {
    "linear": ((), THREAD_AXES, lambda found, shape: _linear(found, shape)),
    "generic_linear": ((), THREAD_AXES, lambda found, shape: tensor_layout(found.entries, THREAD_AXES, shape)),
    "blocked": (BLOCKED, CLUSTER, partial(_blocked, blocked)),
    "slice": (("dim", "parent"), (), _slice),
    "nvidia_mma": (MMA, ("versionMinor", *CLUSTER), _nvidia),
    "amd_mfma": (
        ("warpsPerCTA", "instrShape", "isTransposed"),
        ("version", "versionMajor", "versionMinor", "tilesPerWarp", "elementBitWidth", *CLUSTER),
        _mfma,
    ),
    "amd_wmma": (
        ("version",),
        ("ctaLayout", "isTranspose", "isTransposed", "instrShape", "warpsPerCTA", *CLUSTER),
        _wmma,
    ),
    "dot_op": (("opIdx", "parent"), ("kWidth",), _operand),
    "shared_linear": ((), SHARED_AXES, lambda found, shape: tensor_layout(found.entries, SHARED_AXES, shape)),
    "swizzled_shared": (PHASED, CLUSTER, partial(_phased, swizzled_shared)),
    "amd_rotating_shared": (PHASED, CLUSTER, partial(_phased, rotating_shared)),
    "nvmma_shared": (("swizzlingByteWidth", "elementBitWidth"), ("transposed", "fp4Padded", "rank", *CLUSTER), _nvmma),
    "padded_shared": ((), ("order", "offset", "block", "shape", *CLUSTER), _padded),
    "partitioned_shared": (("numPartitions", "numGroups", "partitionDim", "partitionLayout"), (), _partitioned),
    "tensor_memory_scales_encoding": ((), CLUSTER, _scales),
    "tensor_memory_encoding": (("blockM", "blockN", "colStride"), ("twoCTAs", "fp4Padded", *CLUSTER), _tensor_memory),
}
"""Kind -> (required entries, optional entries, builder)."""

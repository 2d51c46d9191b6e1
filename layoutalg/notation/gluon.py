"""Read Gluon constructor calls, which Gluon layouts print as.

Notation: ``gl.BlockedLayout(size_per_thread=[1, 4], threads_per_warp=[8, 4], ...)``, with keyword or positional
arguments in Gluon's order, with or without a module. A call means the attribute that it lowers to, whose layout
``layoutalg.notation.ttg`` builds. Units: elements.

References: Triton 3.9.0 (``triton.experimental.gluon.language``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from layoutalg.ground import limits
from layoutalg.ground.text import expression_tree
from layoutalg.notation.triton import GLUON_FIELDS, fail, tensor_layout
from layoutalg.notation.ttg import PARENTS, Attribute, build

NO_LITERAL = (SyntaxError, ValueError, TypeError, MemoryError, RecursionError)
_PHASES = "vec:vec per_phase:perPhase max_phase:maxPhase order:order cga_layout:CGALayout"
_KINDS: Mapping[str, tuple[str, str]] = {
    "BlockedLayout": (
        "blocked",
        "size_per_thread:sizePerThread threads_per_warp:threadsPerWarp warps_per_cta:warpsPerCTA order:order "
        "cga_layout:CGALayout ctas_per_cga:CTAsPerCGA cta_split_num:CTASplitNum cta_order:CTAOrder",
    ),
    "SliceLayout": ("slice", "dim:dim parent:parent"),
    "DotOperandLayout": ("dot_op", "operand_index:opIdx parent:parent k_width:kWidth"),
    "NVMMADistributedLayout": (
        "nvidia_mma",
        "version:version warps_per_cta:warpsPerCTA instr_shape:instrShape cga_layout:CGALayout",
    ),
    "AMDMFMALayout": (
        "amd_mfma",
        "version:version instr_shape:instrShape transposed:isTransposed warps_per_cta:warpsPerCTA "
        "element_bitwidth:elementBitWidth tiles_per_warp:tilesPerWarp cga_layout:CGALayout",
    ),
    "AMDWMMALayout": (
        "amd_wmma",
        "version:version transposed:isTranspose warp_bases:warp reg_bases:register instr_shape:instrShape "
        "cga_layout:CGALayout rank:rank",
    ),
    "SwizzledSharedLayout": ("swizzled_shared", _PHASES),
    "PaddedSharedLayout": (
        "padded_shared",
        "interval_padding_pairs:pairs offset_bases:offset cga_layout:CGALayout shape:shape",
    ),
    "NVMMASharedLayout": (
        "nvmma_shared",
        "swizzle_byte_width:swizzlingByteWidth element_bitwidth:elementBitWidth rank:rank transposed:transposed "
        "fp4_padded:fp4Padded cga_layout:CGALayout",
    ),
    "PartitionedSharedLayout": (
        "partitioned_shared",
        "num_partitions:numPartitions num_groups:numGroups partition_dim:partitionDim partition_layout:partitionLayout",
    ),
    "TensorMemoryLayout": (
        "tensor_memory_encoding",
        "block:block col_stride:colStride cga_layout:CGALayout two_ctas:twoCTAs fp4_padded:fp4Padded",
    ),
    "TensorMemoryScalesLayout": ("tensor_memory_scales_encoding", "cga_layout:CGALayout"),
}
"""Constructor -> (kind of the attribute, argument:entry in argument order)."""
NAMES = (*GLUON_FIELDS, *_KINDS)
GLUON_AHEAD = re.compile(rf"\s*(?:[A-Za-z_]\w*\s*\.\s*){{0,8}}(?:{'|'.join(NAMES)})\s*\(")


def parse_gluon(text: str, shape: Sequence[int] | None = None) -> Any:
    """Return the layout of a constructor call.

    Args:
        text: A call of a Gluon layout class.
        shape: Tensor sizes; None for those in the text, or the smallest that fit its bases.

    Example:
        >>> str(parse_gluon("gl.SwizzledSharedLayout(vec=1, per_phase=1, max_phase=2, order=[1, 0])", (2, 2)))
        'F2[offset=(0,1)(1,1), block= -> dim0:2, dim1:2]'
        >>> str(parse_gluon("SharedLinearLayout(offset_bases=[[0, 1], [1, 1]], block_bases=[], alignment=16)"))
        'F2[offset=(0,1)(1,1), block= -> dim0:2, dim1:2]'
    """
    node = _tree(text)
    name = _name(node)
    if not isinstance(node, ast.Call) or name not in NAMES:
        fail("text", f"must be a call of one of {NAMES}", text)
    if name in GLUON_FIELDS:
        return _of_bases(name, node, text, shape)
    return build(read_gluon(node, text, 0), shape, text)


def gluon_attribute(text: str) -> Attribute | None:
    """Return the attribute of a constructor call; None for constructors with basis vectors."""
    node = _tree(text)
    return None if _name(node) in GLUON_FIELDS else read_gluon(node, text, 0)


def _tree(text: str) -> ast.expr | None:
    if len(text) > limits.ATTRIBUTE_CHARACTERS:
        fail("text", f"must have at most {limits.ATTRIBUTE_CHARACTERS} characters", f"{len(text)} characters")
    return expression_tree(text)


def _name(node: ast.expr | None) -> str:
    """Return the last part of the called name; empty if the node is not a call."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def read_gluon(node: ast.expr | None, text: str, level: int) -> Attribute:
    """Return the attribute of a constructor call, without checking its entries."""
    name = _name(node)
    if not isinstance(node, ast.Call) or name not in _KINDS or level > PARENTS:
        fail("text", f"must call one of {tuple(_KINDS)} here", ast.unparse(node) if node and level <= PARENTS else text)
    kind, spelt = _KINDS[name]
    fields = dict(entry.split(":") for entry in spelt.split())
    values: dict[str, Any] = {}
    if len(node.args) > len(fields):
        fail("text", f"must have at most {len(fields)} positional arguments: {tuple(fields)}", text)
    given = [*zip(fields, node.args, strict=False), *[(entry.arg, entry.value) for entry in node.keywords]]
    for argument, value in given:
        if argument not in fields or fields[argument] in values:
            fail("text", f"must have arguments among {tuple(fields)}, each at most once", argument)
        values[fields[argument]] = _value(value, argument, text, level)
    entries = {key: value for key, value in values.items() if value is not None}
    return _shaped(kind, entries)


def _value(node: ast.expr, argument: str, text: str, level: int) -> Any:
    """Return a literal, its tuples as lists, or the attribute of a call."""
    if isinstance(node, ast.Call):
        return read_gluon(node, text, level + 1)
    try:
        return _listed(ast.literal_eval(node))
    except NO_LITERAL:
        fail("text", f"must give {argument} as a literal", text)


def _listed(value: Any) -> Any:
    return [_listed(entry) for entry in value] if isinstance(value, (tuple, list)) else value


def _of_bases(name: str, node: ast.Call, text: str, shape: Any) -> Any:
    """Return the layout of a constructor with basis vectors."""
    if node.args:
        fail("text", f"must call one of {tuple(GLUON_FIELDS)} with keyword arguments", text)
    values: dict[str, Any] = {}
    for entry in node.keywords:
        if entry.arg is None or entry.arg in values:
            fail("text", "must have each argument once, by name", entry.arg)
        try:
            values[entry.arg] = ast.literal_eval(entry.value)
        except NO_LITERAL:
            fail("text", f"must give {entry.arg} as a literal", text)
    fields = GLUON_FIELDS[name]
    extra = {"alignment"} if name == "SharedLinearLayout" else {"shape"}
    unknown = set(values) - set(fields) - extra
    if unknown or (name != "SharedLinearLayout" and set(values) != set(fields) | extra):
        fail("text", f"must have the arguments {(*fields, *extra)}", sorted(values))
    if "shape" in values:
        named = values["shape"]
        if not isinstance(named, (tuple, list)):
            fail("shape", "must be a sequence of sizes", named)
        if isinstance(shape, (tuple, list)) and tuple(shape) != tuple(named):
            fail("shape", f"must be the shape in the text, {named}", shape)
        shape = named if shape is None else shape
    entries = [(axis, values.get(field, [])) for field, axis in fields.items()]
    return tensor_layout(dict(entries), tuple(fields.values()), shape)


def _shaped(kind: str, entries: dict[str, Any]) -> Attribute:
    """The attribute of a call whose arguments differ in form from the entries."""
    pairs: list[Any] = []
    if kind == "nvidia_mma":  # the version is a pair
        version = entries.pop("version", None)
        if not isinstance(version, list) or not version:
            fail("version", "must be [major, minor]", version)
        entries = {"versionMajor": version[0], **entries}
    elif kind == "amd_wmma":  # warp and register bases are two arguments
        inside: dict[str, Any] = {key: entries.pop(key) for key in ["register", "warp"] if key in entries}
        rank = entries.pop("rank", 2)
        vectors = [vector for bases in inside.values() if isinstance(bases, list) for vector in bases]
        if vectors and isinstance(vectors[0], list) and len(vectors[0]) != rank:
            fail("rank", f"must be {len(vectors[0])}, the length of a basis vector", rank)
        entries = {**entries, "ctaLayout": inside}
    elif kind == "padded_shared":  # the padding pairs are an argument
        pairs = entries.pop("pairs", [])
        if not isinstance(pairs, list) or any(not isinstance(pair, list) or len(pair) != 2 for pair in pairs):
            fail("interval_padding_pairs", "must be a list of pairs", pairs)
    elif kind == "tensor_memory_encoding":  # rows and columns of a block are a pair
        block = entries.pop("block", None)
        if not isinstance(block, list) or len(block) != 2:
            fail("block", "must be (rows, columns)", block)
        entries = {"blockM": block[0], "blockN": block[1], **entries}
    return Attribute(kind, tuple([(pair[0], pair[1]) for pair in pairs]), entries)

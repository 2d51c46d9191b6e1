"""C++ text for the host: a function that builds a map, the bytes of maps and descriptors as arrays, a header of both.

Implementation notes: every number in a text is a field of the value; the texts use the driver's enumerators, so they
are readable and compile against any ``cuda.h`` that has them (C++17, CUDA 12.0 to 13). Nothing is compiled or run
here. A header's array is aligned to 128 bytes like the driver's type since CUDA 13.0 (64 before).

References: CUDA driver API, ``cuTensorMapEncodeTiled``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from layoutalg.codegen.cuda import title
from layoutalg.codegen.kernel import checked_name
from layoutalg.codegen.plans import CHECK, instead, upheld
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.proofs.wgmma import OperandPlan
from layoutalg.targets.nvidia.tensormap import ENUMERATORS, TensorMap, encode

_HOST = """\
#include <cuda.h>

#include <cstdint>

{notes}
// `base` is the first byte of the tensor's allocation. Returns what the driver returns.
inline CUresult {name}(CUtensorMap* map, void* base) {{
    const cuuint64_t dims[{rank}] = {{{dims}}};  // elements, innermost first
    const cuuint64_t strides[{strided}] = {{{strides}}};  // bytes, {which}
    const cuuint32_t box[{rank}] = {{{box}}};
    const cuuint32_t element_strides[{rank}] = {{{steps}}};
    void* const address = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(base) + {address}ull);
    return cuTensorMapEncodeTiled(
        map, {dtype}, {rank}, address, dims, strides, box, element_strides,
        {interleave}, {swizzle},
        {l2_promotion}, {oob_fill});
}}
"""

_HEADER = """\
#pragma once

// For CUDA 12.0 and later, {target}; the bytes are those that the driver of CUDA 13.0 writes there.
{call}
struct alignas(128) {name}_bytes_t {{
    unsigned char bytes[128];
}};

// The map with the address {address}: add where the tensor's allocation lies to the first 8 bytes, lowest byte first.
inline constexpr {name}_bytes_t {name}_bytes = {{{{
{rows}
}}}};
static_assert(sizeof({name}_bytes) == 128 && alignof({name}_bytes_t) % 64 == 0, "a tensor map");
static_assert(sizeof(CUtensorMap) == 128, "the driver's type");
static_assert(({name}_bytes.bytes[8] >> 4 & 7) + 1 == {rank}, "the rank");
"""

_OPERAND = """\
#pragma once

// For sm_90a (PTX ISA 8.0 and later). wgmma operand {operand}, {dtype}, {major}-major, {rows} x {depth} an instruction.
// A tile at shared byte b, a multiple of {align}: add b / 16 to a descriptor.
namespace {name} {{
inline constexpr unsigned long long descriptor = {base:#018x}ull;  // row 0, K 0
inline constexpr int transpose = {transpose};  // the instruction's immediate
inline constexpr unsigned long long align_bytes = {align};
inline constexpr int row_tiles = {row_tiles}, k_tiles = {k_tiles};
inline constexpr unsigned long long table[row_tiles * k_tiles] = {{
{table}
}};
{steps}static_assert(table[0] == descriptor, "the first instruction");
}}  // namespace {name}
"""


def host_map(value: TensorMapPlan | TensorMap, name: str = "make_tensor_map") -> str:
    """Return a C++ function ``CUresult NAME(CUtensorMap* map, void* base)`` that builds the map with the driver.

    Args:
        value: A plan, whose map is relative to its tensor's allocation, or a map, whose address is added to ``base``.
        name: The function's name.

    Example:
        >>> from layoutalg.targets.nvidia.tensormap import TensorMap
        >>> print(host_map(TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B")).split("{")[1].strip())
        const cuuint64_t dims[2] =
    """
    tm = _map(value)
    rank = len(tm.dims)
    return _HOST.format(
        name=checked_name(name),
        notes="\n".join(_notes(value)),
        rank=rank,
        dims=_list(tm.dims),
        strided=max(rank - 1, 1),
        strides=_list(tm.strides_bytes or (0,)),
        which="from dimension 1 on" if rank > 1 else "not read: the map has one dimension",
        box=_list(tm.box),
        steps=_list(tm.element_strides),
        address=tm.base_address,
        **{field: names[getattr(tm, field)] for field, names in ENUMERATORS.items()},
    )


def raw_map(value: TensorMapPlan | TensorMap, target: str = "sm_90a", base_address: int | None = None) -> bytes:
    """Return the 128 bytes of a map.

    Args:
        value: A plan, or a map to encode for ``target``.
        target: Architecture of a map; a plan has its own.
        base_address: Byte address of a plan's allocation, or of the map in place of its own; None for the value's.

    Raises: MalformedError: LA503. As ``TensorMapPlan.encode`` and ``targets.nvidia.tensormap.encode``.

    Example:
        >>> from layoutalg.targets.nvidia.tensormap import TensorMap
        >>> raw_map(TensorMap("bf16", (512, 1024), (1024,), (64, 64)), base_address=0x7f00)[:8].hex()
        '007f000000000000'
    """
    _map(value)
    if isinstance(value, TensorMapPlan):
        return value.raw if base_address is None else value.encode(base_address)
    return encode(value if base_address is None else replace(value, base_address=base_address), target=target)


def map_bytes(
    value: TensorMapPlan | TensorMap,
    name: str = "tensor_map",
    target: str = "sm_90a",
    base_address: int | None = None,
) -> str:
    """Return the 128 bytes of a map as a C array.

    Args:
        value: A plan, or a map to encode for ``target``.
        name: The array's name.
        target: Architecture of a map; a plan has its own.
        base_address: As for ``raw_map``.

    Raises: MalformedError: LA503, LA506, and as ``raw_map``.

    Example:
        >>> from layoutalg.targets.nvidia.tensormap import TensorMap
        >>> print(map_bytes(TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B")).split("\\n")[1])
        alignas(64) static const unsigned char tensor_map[128] = {
    """
    where = "// Bytes 0 to 7 hold the address, lowest byte first"
    where += (
        ": add where the tensor lies before the map is used." if base_address is None else f"; for {base_address:#x}."
    )
    lines = [
        *_notes(value),
        where,
        f"alignas(64) static const unsigned char {checked_name(name)}[128] = {{",
        *_rows(raw_map(value, target, base_address)),
        "};",
    ]
    return "\n".join(lines) + "\n"


def descriptor_table(plan: OperandPlan, name: str = "descriptors") -> str:
    """Return the descriptors of an operand as a C array, one entry per instruction.

    Args:
        plan: A plan of ``synthesize_wgmma``.
        name: The array's name.

    Example:
        >>> from layoutalg.synth.wgmma import canonical_operand, synthesize_wgmma
        >>> print(descriptor_table(synthesize_wgmma(canonical_operand("B", (64, 32)))).split("\\n")[3])
            0x8000002000010000ull,  // row 0, K 0
    """
    upheld(CHECK.kind(plan, OperandPlan, "plan"))
    lines = [
        f"// wgmma operand {plan.problem.operand}, {plan.problem.dtype}, {plan.major}-major: "
        f"transpose immediate {plan.transpose}, {plan.rows} x 16 elements an instruction.",
        f"// For a tile at shared byte 0; for a tile at byte b, a multiple of {plan.align_bytes}, add b / 16.",
        f"static constexpr unsigned long long {checked_name(name)}[{len(plan.tiles)}] = {{",
        *_descriptors(plan),
        "};",
    ]
    return "\n".join(lines) + "\n"


def cpp_text(value: TensorMapPlan | TensorMap | OperandPlan, name: str, target: str) -> str:
    """Return a C++ header for a map or an operand.

    Raises: MalformedError: LA506, and as ``targets.nvidia.tensormap.encode``.
    """
    checked_name(name)
    if isinstance(value, OperandPlan):
        return _operand(value, name)
    tm, call = _map(value), host_map(value, f"make_{name}")
    target = value.problem.arch if isinstance(value, TensorMapPlan) else target
    rows = "\n".join(_rows(raw_map(value, target)))
    return _HEADER.format(target=target, call=call, name=name, address=tm.base_address, rows=rows, rank=tm.rank)


def _operand(plan: OperandPlan, name: str) -> str:
    k_tiles = sum(tile.mn == plan.tiles[0].mn for tile in plan.tiles)
    depth = plan.tiles[1].k - plan.tiles[0].k if k_tiles > 1 else plan.problem.shape[1]
    return _OPERAND.format(
        operand=plan.problem.operand, dtype=plan.problem.dtype, major=plan.major, rows=plan.rows, depth=depth,
        name=name, base=plan.tiles[0].encoded, transpose=plan.transpose, align=plan.align_bytes,
        row_tiles=len(plan.tiles) // k_tiles, k_tiles=k_tiles, table="\n".join(_descriptors(plan)), steps=_steps(plan),
    )  # fmt: skip


def _steps(plan: OperandPlan) -> str:
    """Return functions for the steps along K and rows, if digits describe them, and an assertion against the table."""
    if plan.mn_steps is None or plan.k_steps is None:
        return "// No digits describe the steps: the table alone does.\n"
    functions = ""
    for function, digits in (("row_step", plan.mn_steps), ("k_step", plan.k_steps)):
        terms, span = [], 1
        for count, step in digits:
            terms.append(f"index / {span} % {count} * {step}ll")
            span *= count
        functions += (
            f"// What instruction `index` adds to the descriptor, in units of 16 bytes.\n"
            f"constexpr long long {function}([[maybe_unused]] int index) {{ return {' + '.join(terms) or '0'}; }}\n"
        )
    return functions + (
        "constexpr bool agrees() {\n"
        "    for (int row = 0; row < row_tiles; ++row)\n"
        "        for (int k = 0; k < k_tiles; ++k)\n"
        "            if (table[row * k_tiles + k] != descriptor + (unsigned long long)(row_step(row) + k_step(k)))\n"
        "                return false;\n"
        "    return true;\n"
        "}\n"
        'static_assert(agrees(), "the steps lead to the table");\n'
    )


def _map(value: object) -> TensorMap:
    if isinstance(value, TensorMapPlan):
        return upheld(value).tensor_map
    if not isinstance(value, TensorMap):
        raise CHECK.malformed("value", "must be a TensorMapPlan or a TensorMap", value, instead(value))
    return value


def _rows(raw: bytes) -> list[str]:
    """The bytes of a map, 16 a line."""
    rows = (raw[first : first + 16] for first in range(0, len(raw), 16))
    return ["    " + ", ".join(f"0x{byte:02x}" for byte in row) + "," for row in rows]


def _descriptors(plan: OperandPlan) -> list[str]:
    """The descriptors of an operand, one a line."""
    return [f"    {tile.encoded:#018x}ull,  // row {tile.mn}, K {tile.k}" for tile in plan.tiles]


def _notes(value: object) -> Iterable[str]:
    """Comments that a reader of the text needs."""
    if not isinstance(value, TensorMapPlan):
        return
    yield f"// {title(value)}."
    load = f"The barrier expects {value.expect_tx_bytes} bytes. " if value.direction == "load" else ""
    yield f"// {load}The tile base in shared memory is aligned to {value.smem_align_bytes} bytes."
    if value.undocumented:
        yield f"// Measured, not documented: {', '.join(value.undocumented)}."


def _list(values: Iterable[int]) -> str:
    return ", ".join(map(str, values))

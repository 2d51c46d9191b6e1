"""A map or an operand as a C++ header: the driver call, and the bytes or descriptors as constants.

Implementation notes: C++17, CUDA 12.0 to 13; the map's array is aligned to 128 bytes like the driver's type since CUDA
13.0 (64 before).
"""

from __future__ import annotations

from layoutalg.codegen.host import host_map
from layoutalg.codegen.kernel import checked_name
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.proofs.wgmma import OperandPlan
from layoutalg.targets.nvidia.tensormap import TensorMap, encode

_MAP = """\
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


def cpp_text(value: TensorMapPlan | TensorMap | OperandPlan, name: str, target: str) -> str:
    """Return a C++ header for a map or an operand.

    Raises: MalformedError: LA506, and as ``targets.nvidia.tensormap.encode``.
    """
    checked_name(name)
    if isinstance(value, OperandPlan):
        return _operand(value, name)
    plan = value if isinstance(value, TensorMapPlan) else None
    tm = value.tensor_map if isinstance(value, TensorMapPlan) else value
    raw = plan.raw if plan is not None else encode(tm, target=target)
    rows = [", ".join(f"0x{byte:02x}" for byte in raw[first : first + 16]) + "," for first in range(0, 128, 16)]
    return _MAP.format(
        target=target if plan is None else plan.problem.arch,
        call=host_map(value, f"make_{name}"),
        name=name,
        address=tm.base_address,
        rows="\n".join(f"    {row}" for row in rows),
        rank=tm.rank,
    )


def _operand(plan: OperandPlan, name: str) -> str:
    k_tiles = sum(tile.mn == plan.tiles[0].mn for tile in plan.tiles)
    table = [f"    {tile.encoded:#018x}ull,  // row {tile.mn}, K {tile.k}" for tile in plan.tiles]
    depth = plan.tiles[1].k - plan.tiles[0].k if k_tiles > 1 else plan.problem.shape[1]
    return _OPERAND.format(
        operand=plan.problem.operand,
        dtype=plan.problem.dtype,
        major=plan.major,
        rows=plan.rows,
        depth=depth,
        name=name,
        base=plan.tiles[0].encoded,
        transpose=plan.transpose,
        align=plan.align_bytes,
        row_tiles=len(plan.tiles) // k_tiles,
        k_tiles=k_tiles,
        table="\n".join(table),
        steps=_steps(plan),
    )


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

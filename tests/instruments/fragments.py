"""Kernels that run one matrix instruction on registers given from outside, and what its fragments make of them.

Notation: ``words[lane]`` are a lane's 32-bit registers of one operand, as the instruction lists them.

Implementation notes: the kernels know nothing of layouts. A fragment is right when operands packed by it and results
unpacked by it satisfy the instruction's equation for random integers that every type involved holds exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.prelude import PRELUDE
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.targets.layouts.nvidia_instructions import ELEMENT_BITS, MMA, mma_fragment

Words = npt.NDArray[np.uint32]
Raw = npt.NDArray[np.uint64]
WARP = 32
ARCH = "sm_90a"
LARGEST = 8
"""Operands are integers of at most this size, exact in every element type and, summed over any k here, in f16."""

_WORD = ("la_u32", "r", "0u")
_REGISTERS = {"f64": ("double", "d", "0.0"), "f32": ("float", "f", "0.0f")}
"""C type, constraint letter and zero of a register that is not a plain word."""

_MMA = """
// One {ptx} of the registers of each lane; C is zero.
extern "C" __global__ void __launch_bounds__(32) {name}(const {operand}* a, const {operand}* b, {result}* d)
{{
    const int lane = threadIdx.x;
    {result} w[{count}];
    asm volatile("{ptx} "
                 "{slots};"
                 : {outputs}
                 : {inputs});
    for (int v = 0; v < {count}; ++v) d[lane * {count} + v] = w[v];
}}
"""

_LDMATRIX = """
// Every lane reads rows of 16 bytes of the image at the offsets that the lanes give.
extern "C" __global__ void __launch_bounds__(32) {name}(const unsigned char* image, const int* offsets, la_u32* words)
{{
    const la_u32 base = la_shared_address(la_shared());
    for (int i = threadIdx.x; i < {bytes}; i += 32) la_shared()[i] = image[i];
    __syncwarp();
    la_u32 w[{matrices}];
    asm volatile("ldmatrix.sync.aligned.m8n8.x{matrices}{trans}.shared.b16 {{{slots}}}, [%{matrices}];"
                 : {operands} : "r"(base + offsets[threadIdx.x]) : "memory");
    for (int v = 0; v < {matrices}; ++v) words[threadIdx.x * {matrices} + v] = w[v];
}}
"""

_STMATRIX = """
// Every lane's words go to rows of 16 bytes of the image at the offsets that the lanes give; 0xEE elsewhere.
extern "C" __global__ void __launch_bounds__(32) {name}(const la_u32* words, const int* offsets, unsigned char* image)
{{
    const la_u32 base = la_shared_address(la_shared());
    for (int i = threadIdx.x; i < {bytes}; i += 32) la_shared()[i] = 0xEE;
    __syncwarp();
    la_u32 w[{matrices}];
    for (int v = 0; v < {matrices}; ++v) w[v] = words[threadIdx.x * {matrices} + v];
    asm volatile("stmatrix.sync.aligned.m8n8.x{matrices}{trans}.shared.b16 [%0], {{{slots}}};"
                 :: "r"(base + offsets[threadIdx.x]), {operands} : "memory");
    __syncwarp();
    for (int i = threadIdx.x; i < {bytes}; i += 32) image[i] = la_shared()[i];
}}
"""

_MOVES: Mapping[str, tuple[str, str, int, tuple[tuple[str, str], ...]]] = {
    "ldmatrix": (
        _LDMATRIX, "=", 0, (("const unsigned char*", "image"), ("const int*", "offsets"), ("la_u32*", "words")),
    ),
    "stmatrix": (
        _STMATRIX, "", 1, (("const la_u32*", "words"), ("const int*", "offsets"), ("unsigned char*", "image")),
    ),
}  # fmt: skip
"""Template, constraint sign, number of the first register operand, and parameters of each move."""

_WGMMA = """
// d = A * B with A in registers and B in shared memory through a descriptor relative to the image's base.
extern "C" __global__ void __launch_bounds__(128) {name}(const la_u32* a, const unsigned char* image, float* d)
{{
    unsigned char* tile = la_aligned_shared(1024);
    for (int i = threadIdx.x; i < {bytes}; i += 128) tile[i] = image[i];
    la_fence_async();
    __syncthreads();
    const la_u64 b = {descriptor:#018x}ull + ((la_shared_address(tile) & 0x3FFFF) >> 4);
    const la_u32* mine = a + 4 * threadIdx.x;
    const la_u32 a0 = mine[0], a1 = mine[1], a2 = mine[2], a3 = mine[3];
    float acc[{registers}];
    for (int v = 0; v < {registers}; ++v) acc[v] = 0.0f;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{dtype}.{dtype} "
                 "{{{slots}}}, "
                 "{{%{r0}, %{r1}, %{r2}, %{r3}}}, %{r4}, 1, 1, 1, 0;"
                 : {outputs}
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int v = 0; v < {registers}; ++v) d[threadIdx.x * {registers} + v] = acc[v];
}}
"""


def mma_kernel(name: str) -> KernelSource:
    """Return the kernel ``(a, b, d)`` that runs one ``mma.sync`` on ``words[lane]`` of A and B; D likewise.

    Args:
        name: Instruction, as in ``MMA``.

    Raises: MalformedError: LA701.

    Example:
        >>> [name for _, name in mma_kernel("m16n8k8.f32.tf32").parameters]
        ['a', 'b', 'd']
    """
    fragments = {operand: mma_fragment(name, operand) for operand in "ABD"}
    shape = MMA[name]
    operand_type, operand_kind, _ = _REGISTERS.get(shape.operand, _WORD)
    result_type, result_kind, zero = _REGISTERS.get(shape.result, _WORD)
    per_register = 2 if shape.operand == "f64" else 1
    counts = {operand: word_count(fragments[operand], element_bits(name, operand)) // per_register for operand in "ABD"}
    inputs = [
        f'"{operand_kind}"({x}[lane * {counts[x.upper()]} + {i}])' for x in "ab" for i in range(counts[x.upper()])
    ]
    inputs += [f'"{result_kind}"({zero})'] * counts["D"]
    groups, number = [], 0
    for operand in "DABD":
        groups.append("{" + ", ".join(f"%{number + i}" for i in range(counts[operand])) + "}")
        number += counts[operand]
    results = range(counts["D"])
    symbol = "la_" + shape.ptx.split("aligned.")[1].replace(".row.col.", "_").replace(".", "_")
    text = _MMA.format(
        ptx=shape.ptx, name=symbol, operand=operand_type, result=result_type, count=counts["D"],
        slots=", ".join(groups), inputs=", ".join(inputs),
        outputs=", ".join(f'"={result_kind}"(w[{i}])' for i in results),
    )  # fmt: skip
    parameters = ((f"const {operand_type}*", "a"), (f"const {operand_type}*", "b"), (f"{result_type}*", "d"))
    return KernelSource(symbol, PRELUDE + text, ARCH, WARP, 0, parameters)


def matrix_move_kernel(kind: str, matrices: int, transposed: bool = False) -> KernelSource:
    """Return the kernel that runs one ``ldmatrix`` or ``stmatrix`` on an image of ``128 * matrices`` bytes.

    Args:
        kind: ``"ldmatrix"``, a kernel ``(image, offsets, words)``, or ``"stmatrix"``, ``(words, offsets, image)``.
        matrices: 1, 2 or 4.
        transposed: The ``.trans`` form.

    Raises: MalformedError: LA500.
    """
    if kind not in _MOVES or type(matrices) is not int or matrices not in (1, 2, 4):
        because = f"kind must be one of {tuple(_MOVES)} and matrices 1, 2 or 4, not {kind!r} and {matrices!r}"
        raise MalformedError(Diagnostic("LA500", "no such matrix load or store", because=because))
    template, sign, first, parameters = _MOVES[kind]
    name = f"la_{kind}_x{matrices}" + ("_trans" if transposed else "")
    text = template.format(
        name=name, matrices=matrices, bytes=128 * matrices, trans=".trans" if transposed else "",
        slots=", ".join(f"%{first + i}" for i in range(matrices)),
        operands=", ".join(f'"{sign}r"(w[{i}])' for i in range(matrices)),
    )  # fmt: skip
    return KernelSource(name, PRELUDE + text, ARCH, WARP, 128 * matrices, parameters)


def wgmma_register_kernel(dtype: str, n: int, descriptor: int, image_bytes: int) -> KernelSource:
    """Return the kernel ``(a, image, d)`` of one ``wgmma`` with A in registers and B, K-major, in a shared image.

    Args:
        dtype: ``"f16"`` or ``"bf16"``.
        n: Columns, a multiple of 8 from 8 to 256.
        descriptor: Matrix descriptor of B whose start address is relative to the image.
        image_bytes: Bytes of the image.

    Raises: MalformedError: LA500.
    """
    if dtype not in ("f16", "bf16") or type(n) is not int or n % 8 or not 8 <= n <= 256:
        because = f"dtype must be 'f16' or 'bf16' and n a multiple of 8 in 8..256, not {dtype!r} and {n!r}"
        raise MalformedError(Diagnostic("LA500", "no such warpgroup multiply", because=because))
    registers = n // 2
    name = f"la_wgmma_m64n{n}k16_{dtype}_registers"
    text = _WGMMA.format(
        name=name, n=n, dtype=dtype, registers=registers, bytes=image_bytes, descriptor=descriptor,
        slots=", ".join(f"%{i}" for i in range(registers)),
        outputs=", ".join(f'"+f"(acc[{i}])' for i in range(registers)),
        **{f"r{i}": registers + i for i in range(5)},
    )  # fmt: skip
    parameters = (("const la_u32*", "a"), ("const unsigned char*", "image"), ("float*", "d"))
    return KernelSource(name, PRELUDE + text, ARCH, 128, image_bytes + 1024, parameters)


def word_count(fragment: LinearLayout, element_bits: int) -> int:
    """Return the 32-bit registers per lane that a fragment's elements fill.

    Example:
        >>> word_count(mma_fragment("m16n8k16.f32.bf16", "A"), 16)
        4
    """
    return fragment.in_dims["register"] * element_bits // 32


def pack(fragment: LinearLayout, matrix: Raw, element_bits: int) -> Words:
    """Return the registers that hold a matrix: element v of lane l is the entry that the fragment names.

    Args:
        fragment: (register, lane, ...) -> two axes; further input axes count as more lanes.
        matrix: Raw bits of every entry, indexed by the two output axes.
        element_bits: 1, 4, 8, 16, 32 or 64.

    Returns:
        uint32[lanes, words].

    Example:
        >>> raw = np.arange(128, dtype=np.uint64).reshape(16, 8)
        >>> pack(mma_fragment("m16n8k8.f32.tf32", "A"), raw, 32)[5].tolist()
        [9, 73, 13, 77]
    """
    registers = fragment.in_dims["register"]
    rows, columns = _entries(fragment)
    if element_bits < 8:
        given = matrix[rows, columns].astype(np.uint8).reshape(-1, registers, 1)
        parts = np.unpackbits(given, axis=2, bitorder="little")[..., :element_bits].reshape(len(given), -1)
        return np.packbits(parts, axis=1, bitorder="little").view("<u4")
    elements = matrix[rows, columns].astype(f"<u{element_bits // 8}").reshape(-1, registers)
    return np.ascontiguousarray(elements).view("<u4")


def unpack(fragment: LinearLayout, words: Words, element_bits: int) -> Raw:
    """Return the matrix that registers hold; the inverse of ``pack`` where no entry has two copies."""
    if element_bits < 8:
        parts = np.unpackbits(np.ascontiguousarray(words).view(np.uint8).reshape(-1), bitorder="little")
        elements = parts.reshape(-1, element_bits) @ (1 << np.arange(element_bits))
    else:
        elements = np.ascontiguousarray(words).view(f"<u{element_bits // 8}").reshape(-1)
    matrix = np.zeros(tuple(fragment.out_dims.values()), dtype=np.uint64)
    matrix[_entries(fragment)] = elements
    return matrix


def _entries(fragment: LinearLayout) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Row and column of every element, register fastest, then the other input axes in order."""
    flat = fragment.table()
    rows = next(iter(fragment.out_dims.values()))
    return flat % rows, flat // rows


def encode(values: npt.NDArray[np.int64], dtype: str) -> Raw:
    """Return the raw bits of small integers in an element type; exact or refused.

    Args:
        values: Integers.
        dtype: As in ``ELEMENT_BITS``.

    Raises: MalformedError: LA500.

    Example:
        >>> [hex(int(x)) for x in encode(np.array([1, -8]), "e4m3")]
        ['0x38', '0xd0']
    """
    table: dict[str, Any] = {
        "f64": "<f8",
        "f32": "<f4",
        "tf32": "<f4",
        "f16": "<f2",
        "s32": "<i4",
        "s8": "i1",
        "u8": "u1",
    }
    if dtype in ("s4", "u4", "b1"):
        raw = (values & (1 << ELEMENT_BITS[dtype]) - 1).astype(np.uint64)
    elif dtype in table:
        raw = values.astype(table[dtype]).view(f"<u{ELEMENT_BITS[dtype] // 8}").astype(np.uint64)
    elif dtype == "bf16":
        raw = (values.astype("<f4").view("<u4") >> 16).astype(np.uint64)
    else:
        codes = decode(np.arange(256, dtype=np.uint64), dtype)
        raw = (values[..., None] == codes).argmax(-1).astype(np.uint64)
    if not np.array_equal(decode(raw, dtype), values):
        raise MalformedError(Diagnostic("LA500", "an integer does not fit the element type", (dtype,)))
    return raw


def decode(raw: Raw, dtype: str) -> npt.NDArray[np.float64]:
    """Return the values of raw bits of an element type, as float64."""
    if dtype == "e4m3":
        exponent, mantissa = (raw >> 3 & 15).astype(np.int64), (raw & 7).astype(np.float64)
        size = np.where(exponent == 0, np.ldexp(mantissa, -9), np.ldexp(8 + mantissa, exponent - 10))
        size[(raw & 127) == 127] = np.nan
        return np.where(raw >> 7 & 1, -size, size)
    if dtype == "e5m2":
        return (raw << 8).astype("<u2").view("<f2").astype(np.float64)
    if dtype == "bf16":
        return (raw << 16).astype("<u4").view("<f4").astype(np.float64)
    if dtype in ("s4", "u4", "b1"):
        return np.where((dtype == "s4") & (raw > 7), raw.astype(np.float64) - 16, raw.astype(np.float64))
    kind = {"s8": "i1", "u8": "u1", "s32": "<i4"}.get(dtype, f"<f{ELEMENT_BITS[dtype] // 8}")
    return raw.astype(f"<u{ELEMENT_BITS[dtype] // 8}").view(kind).astype(np.float64)


def element_bits(name: str, operand: str) -> int:
    """Return the bits of one element of an operand of a ``mma.sync``."""
    return ELEMENT_BITS[type_of(name, operand)]


def type_of(name: str, operand: str) -> str:
    """Return the element type of an operand of a ``mma.sync``."""
    shape = MMA[name]
    return {"A": shape.operand, "B": shape.operand_b or shape.operand}.get(operand, shape.result)

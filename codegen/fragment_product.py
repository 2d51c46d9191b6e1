"""The kernel of one matrix instruction: load fragments, multiply once, store the result.

Notation: one warp or wave; A is m x k with k fastest, B is n x k with k fastest, C and D are m x n with n fastest;
independent products follow one another. The target's fragment says which element each lane holds: its address is a sum
over the bits of the lane plus a constant per register, and a run of registers is one vector access.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutalg.codegen.kernel import KernelSource, checked_name, signature
from layoutalg.codegen.matrix_calls import TYPE_BITS, WORD_BITS, MatrixCall, matrix_call
from layoutalg.codegen.portable import ELEMENT_TYPES, VECTOR_TYPES, portable_prelude
from layoutalg.targets.registry import lookup

VECTOR_BITS = 128


def fragment_kernel(arch: str, instruction: str, name: str | None = None) -> KernelSource:
    """Return the kernel that computes D = A B + C with one matrix instruction.

    Parameters: ``(a, b, c, d)``, pointers to elements; C and D may be the same array. Launch with one block.

    Args:
        arch: The target.
        instruction: As in ``model_of(arch).instructions``.
        name: Kernel symbol; by default derived from the instruction.

    Example:
        >>> kernel = fragment_kernel("gfx942", "mfma.v_mfma_f32_32x32x8_f16")
        >>> kernel.threads, kernel.parameters[0]
        (64, ('const unsigned short*', 'a'))
        >>> "const la_u32 a_first = (t & 31) * 8 + (t >> 5 & 1) * 4;" in kernel.text
        True
    """
    call = matrix_call(arch, instruction)
    symbol = checked_name(name or f"la_product_{call.name.removeprefix('la_')}")
    text = portable_prelude(arch) + call.text + fragment_text(call, symbol)
    return KernelSource(symbol, text, arch, lookup(arch).lanes, 0, parameters(call))


def parameters(call: MatrixCall) -> tuple[tuple[str, str], ...]:
    """Return the kernel's parameters."""
    a, b, d = (ELEMENT_TYPES[TYPE_BITS[kind] // 8] for kind in call.types)
    return ((f"const {a}*", "a"), (f"const {b}*", "b"), (f"const {d}*", "c"), (f"{d}*", "d"))


def fragment_text(call: MatrixCall, name: str) -> str:
    """Return the kernel's own text, without the prelude."""
    m, n, k, _ = call.shape
    weights = ({"row": k, "k": 1, "matrix": m * k}, {"col": k, "k": 1, "matrix": n * k})
    lines = ["const la_u32 t = threadIdx.x;"]
    for side, operand, kind, many in zip("ab", "AB", call.types, call.words, strict=False):
        lanes, registers = _offsets(call, operand, weights["AB".index(operand)])
        lines.append(f"const la_u32 {side}_first = {_lane_text(lanes)};")
        lines += _loaded(side, registers, TYPE_BITS[kind], many)
    lanes, registers = _offsets(call, "D", {"row": n, "col": 1, "matrix": m * n})
    slots = _slots(call, len(registers))
    bits, many = TYPE_BITS[call.types[2]], call.words[2]
    lines += [f"const la_u32 d_first = {_lane_text(lanes)};", f"la_u32 sum[{many}];"]
    for word in range(many):
        held = [(offset, half) for offset, (at, half) in zip(registers, slots, strict=True) if at == word]
        parts = [f"c[d_first + {offset}]" + f" << {16 * half}" * bool(half) for offset, half in held]
        if bits < WORD_BITS:
            parts = [f"(la_u32){part}" for part in parts]
        lines.append(f"sum[{word}] = {' | '.join(parts)};")
    lines.append(f"{call.name}(sum, words_a, words_b, sum);")
    for offset, (word, half) in zip(registers, slots, strict=True):
        value = f"sum[{word}]" + f" >> {16 * half}" * bool(half)
        lines.append(f"d[d_first + {offset}] = {value if bits == WORD_BITS else f'(unsigned short)({value})'};")
    listed = "".join(f"    {line}\n" for line in lines)
    lanes_of = lookup(call.arch).lanes
    return (
        f'extern "C" __global__ void __launch_bounds__({lanes_of}) {name}(\n    {signature(parameters(call))})\n'
        f"{{\n{listed}}}\n"
    )


def _offsets(call: MatrixCall, operand: str, weights: dict[str, int]) -> tuple[list[int], list[int]]:
    """Return the element offset that each lane bit adds, and each register's."""
    fragment = call.fragment(operand)
    names = list(fragment.out_dims)

    def offset(**at: int) -> int:
        image = fragment.apply({"register": 0, "lane": 0} | at)
        return sum(weights[name] * int(image[name]) for name in names)

    many = {axis: fragment.in_dims[axis] for axis in ("register", "lane")}
    lanes = [offset(lane=1 << bit) for bit in range(many["lane"].bit_length() - 1)]
    return lanes, [offset(register=register) for register in range(many["register"])]


def _lane_text(lanes: Sequence[int]) -> str:
    """Return the sum over lane bits; adjacent bits with doubling offsets form one term."""
    terms, bit = [], 0
    while bit < len(lanes):
        run = 1
        while lanes[bit] and bit + run < len(lanes) and lanes[bit + run] == lanes[bit] << run:
            run += 1
        if lanes[bit]:
            part = f"t >> {bit} & {(1 << run) - 1}" if bit else f"t & {(1 << run) - 1}"
            terms.append(f"({part})" + f" * {lanes[bit]}" * (lanes[bit] > 1))
        bit += run
    return " + ".join(terms) or "0"


def _loaded(side: str, registers: Sequence[int], bits: int, many: int) -> list[str]:
    """Return the statements that load an operand's words, as many at a time as are contiguous."""
    run = 1
    while run < len(registers) and registers[: 2 * run] == list(range(registers[0], registers[0] + 2 * run)):
        run *= 2
    wide = max(1, min(run * bits, VECTOR_BITS) // WORD_BITS)
    per = WORD_BITS // bits
    lines = [f"la_u32 words_{side}[{many}];"]
    for word in range(0, many, wide):
        at = f"*(const {VECTOR_TYPES[4 * wide]}*)({side} + {side}_first + {registers[word * per]})"
        if wide == 1:
            lines.append(f"words_{side}[{word}] = {at};")
            continue
        lines.append(f"const {VECTOR_TYPES[4 * wide]} {side}{word} = {at};")
        lines += [f"words_{side}[{word + i}] = {side}{word}.word[{i}];" for i in range(wide)]
    return lines


def _slots(call: MatrixCall, registers: int) -> list[tuple[int, int]]:
    """Return the word and half of each element of the result."""
    if TYPE_BITS[call.types[2]] == WORD_BITS or call.words[2] == registers:
        return [(register, 0) for register in range(registers)]
    return [divmod(register, 2) for register in range(registers)]

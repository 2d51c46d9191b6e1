"""CUDA text of one ``wgmma`` instruction of any type, and a kernel that runs a chain of them on given bits.

Registers of D are 32-bit words in the instruction's order; two f16 values share one.

References: PTX ISA 9.1 sections 9.7.15.5.2 and 9.7.15.6.2 (syntax of wgmma.mma_async and wgmma.mma_async.sp).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.prelude import PRELUDE
from layoutalg.targets.nvidia.wgmma import ARCH, instruction_k, multiply

THREADS = 128
A_WORDS = 4
"""32-bit registers of operand A per thread."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One instruction without its immediates.

    Args:
        a: Element type of A.
        b: Element type of B.
        accumulator: Element type of D.
        n: Columns.
        registers: Whether A is in registers.
        sparse: Whether A is sparse.
    """

    a: str
    b: str
    accumulator: str
    n: int
    registers: bool = False
    sparse: bool = False

    def __post_init__(self) -> None:
        kind = multiply(self.a, self.b)
        rules = (
            (self.accumulator in kind.accumulators, f"the accumulator must be one of {', '.join(kind.accumulators)}"),
            (self.n in kind.n, f"N must be one of {', '.join(map(str, kind.n))}"),
            (kind.sparse or not self.sparse, f"A of type {self.a} cannot be sparse"),
        )
        for holds, rule in rules:
            if not holds:
                raise ValueError(f"no such wgmma instruction: {self}: {rule}")

    @property
    def k(self) -> int:
        """Elements along K."""
        return instruction_k(multiply(self.a, self.b).bits, self.sparse)

    @property
    def words(self) -> int:
        """32-bit registers of D per thread."""
        return self.n // (4 if self.accumulator == "f16" else 2)

    @property
    def name(self) -> str:
        """Its C identifier."""
        how = ("_sp" if self.sparse else "") + ("_ra" if self.registers else "")
        return f"m64n{self.n}k{self.k}_{self.accumulator}_{self.a}_{self.b}{how}"

    @property
    def ptx(self) -> str:
        """The instruction's name in PTX."""
        sp, op = (".sp" if self.sparse else ""), (".and.popc" if self.a == "b1" else "")
        return f"wgmma.mma_async{sp}.sync.aligned.m64n{self.n}k{self.k}.{self.accumulator}.{self.a}.{self.b}{op}"


def instruction_text(shape: Shape) -> str:
    """Return the device function ``la_wgmma_NAME<immediates...>(d, a, b[, metadata], accumulate)``.

    The immediates are ``negate_a, negate_b`` and ``transpose_a`` (A in shared memory), ``transpose_b`` for types that
    have them, and ``selector`` for sparse A. ``a`` is a descriptor or four words.

    Example:
        >>> print(instruction_text(Shape("s8", "u8", "s32", 8)).splitlines()[0])
        __device__ __forceinline__ void la_wgmma_m64n8k32_s32_s8_u8(la_u32 (&d)[4], la_u64 a, la_u64 b, int accumulate)
    """
    kind = multiply(shape.a, shape.b)
    count, letter = shape.words, "f" if shape.accumulator == "f32" else "r"
    templates = ["int negate_a", "int negate_b"] if kind.negatable else []
    templates += (["int transpose_a"] if not shape.registers else []) + ["int transpose_b"] if kind.transposable else []
    templates += ["int selector"] if shape.sparse else []
    head = f"template <{', '.join(templates)}>\n" if templates else ""
    a_type = f"const la_u32 (&a)[{A_WORDS}]" if shape.registers else "la_u64 a"
    metadata = ", la_u32 metadata" if shape.sparse else ""
    number = count
    if shape.registers:
        a_slots, inputs = "{" + ", ".join(f"%{number + i}" for i in range(A_WORDS)) + "}", ""
        inputs = ", ".join(f'"r"(a[{i}])' for i in range(A_WORDS))
        number += A_WORDS
    else:
        a_slots, inputs = f"%{number}", '"l"(a)'
        number += 1
    slots, inputs = [a_slots, f"%{number}"], f'{inputs}, "l"(b)'
    number += 1
    if shape.sparse:
        slots += [f"%{number}", f"%{number + 1}"]
        inputs += ', "r"(metadata), "n"(selector)'
        number += 2
    slots.append("p")
    inputs += ', "r"(accumulate)'
    flag = number
    number += 1
    for entry in templates:
        name = entry.split()[1]
        if name == "selector":
            continue
        inputs += f', "n"({f"{name} ? -1 : 1" if name.startswith("negate") else name})'
        slots.append(f"%{number}")
        number += 1
    rows = [", ".join(f"%{i}" for i in range(j, min(j + 16, count))) for j in range(0, count, 16)]
    listed = ',"\n        " '.join(rows)
    outputs = ", ".join(f'"+{letter}"(d[{i}])' for i in range(count))
    register = "float" if letter == "f" else "la_u32"
    return f"""{head}__device__ __forceinline__ void la_wgmma_{shape.name}({register} (&d)[{count}], {a_type}, la_u64 b\
{metadata}, int accumulate)
{{
    asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{flag}, 0;\\n{shape.ptx} "
        "{{{listed}}}, {", ".join(slots)};\\n}}\\n"
        : {outputs}
        : {inputs});
}}
"""


_CHAIN = """
// Block c: shared memory becomes image c, then {name} runs once per step on the given descriptors, registers, metadata.
extern "C" __global__ void __launch_bounds__(128) la_chain_{name}({signature})
{{
    unsigned char* tile = la_aligned_shared(1024);
    const la_u64 base = (la_shared_address(tile) & 0x3FFFF) >> 4;
    const la_u64 c = blockIdx.x;
    const uint4_* from = (const uint4_*)(image + c * image_stride);
    for (int i = threadIdx.x; i < image_bytes / 16; i += 128) ((uint4_*)tile)[i] = from[i];
    la_fence_async();
    __syncthreads();
    {register} d[{count}];
    for (int v = 0; v < {count}; ++v) d[v] = 0;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int s = 0; s < steps; ++s) {{
        const la_u64 at = c * steps + s;
        const la_u64 a_bits = base + a_words[at], b_bits = base + b_words[at];
        la_u32 held[4];
        for (int i = 0; i < 4; ++i) held[i] = a_registers[(at * 128 + threadIdx.x) * 4 + i];
        const la_u32 word = metadata[at * 128 + threadIdx.x];
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        switch (variant[c]) {{
{calls}        }}
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    }}
#pragma unroll
    for (int v = 0; v < {count}; ++v) ((la_u32*)out)[(c * 128 + threadIdx.x) * {count} + v] = *(la_u32*)&d[v];
}}
"""
CHAIN_PRELUDE = PRELUDE + "struct alignas(16) uint4_ { la_u32 word[4]; };\n"
PARAMETERS = (
    ("const unsigned char*", "image"), ("int", "image_bytes"), ("int", "image_stride"), ("int", "steps"),
    ("const la_u64*", "a_words"), ("const la_u64*", "b_words"), ("const la_u32*", "a_registers"),
    ("const la_u32*", "metadata"), ("const int*", "variant"), ("la_u32*", "out"),
)  # fmt: skip


def variants(shape: Shape) -> tuple[tuple[int, ...], ...]:
    """Return the immediates that a chain kernel supports, in the order of its cases.

    Each is (negate_a, negate_b, transpose_a, transpose_b, selector), 0 where the instruction has no such immediate.

    Example:
        >>> len(variants(Shape("f16", "f16", "f32", 8))), variants(Shape("b1", "b1", "s32", 8))
        (5, ((0, 0, 0, 0, 0),))
    """
    kind = multiply(shape.a, shape.b)
    majors = [(0, 0)]
    if kind.transposable:
        majors = [(0, 0), (0, 1)] if shape.registers else [(0, 0), (0, 1), (1, 0), (1, 1)]
    # for f16, bf16 and tf32 either half of each quad holds the metadata; 8-bit types use all lanes
    selectors = (0, 1) if shape.sparse and kind.bits > 8 else (0,)
    found = [(0, 0, *major, selector) for major in majors for selector in selectors]
    return (*found, (1, 0, 0, 0, 0)) if kind.negatable else tuple(found)


def chain_text(shape: Shape) -> str:
    """Return the text of the instruction and its chain kernel, without the prelude."""
    kind = multiply(shape.a, shape.b)
    calls = ""
    for number, (negate_a, negate_b, a, b, selector) in enumerate(variants(shape)):
        given = [negate_a, negate_b] if kind.negatable else []
        given += ([] if shape.registers else [a]) + [b] if kind.transposable else []
        given += [selector] if shape.sparse else []
        immediates = f"<{', '.join(map(str, given))}>" if given else ""
        arguments = f"d, {'held' if shape.registers else 'a_bits'}, b_bits{', word' if shape.sparse else ''}, 1"
        calls += f"        case {number}: la_wgmma_{shape.name}{immediates}({arguments}); break;\n"
    register = "float" if shape.accumulator == "f32" else "la_u32"
    body = _CHAIN.format(
        name=shape.name, signature=", ".join(f"{kind} {name}" for kind, name in PARAMETERS), register=register,
        count=shape.words, calls=calls,
    )  # fmt: skip
    return instruction_text(shape) + body


def chain_kernel(shape: Shape, others: Sequence[Shape] = (), smem_bytes: int = 0) -> KernelSource:
    """Return the kernel that runs a chain of one instruction; the text may include the kernels of other shapes.

    Parameters: ``(image, image_bytes, image_stride, steps, a_words, b_words, a_registers, metadata, variant, out)``.
    Images are ``image_stride`` bytes apart; 0 gives every block the same one.

    Args:
        shape: The instruction.
        others: Further instructions to compile together with it.
        smem_bytes: Dynamic shared memory: the image plus 1024 bytes for alignment.
    """
    shapes = list(dict.fromkeys((shape, *others)))
    text = CHAIN_PRELUDE + "".join(chain_text(entry) for entry in shapes)
    return KernelSource(f"la_chain_{shape.name}", text, ARCH, THREADS, smem_bytes, PARAMETERS)

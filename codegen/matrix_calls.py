"""One matrix instruction as a function of 32-bit words, with the same name and words for CUDA, HIP and the CPU.

``la_NAME(d, a, b, c)`` computes D = A B + C; an operand is the array of 32-bit registers that a lane holds of it, low
elements in low bits. NAME is the instruction's own name with underscores. All lanes of the warp or wave must call it.
On the CPU the functions are models from the manuals' closed forms (``host_matrices.h``), independent of the fragments
of ``layoutalg.targets``, so that each checks the other.

References: PTX ISA 9.1 section 9.7.14.5; LLVM ``BuiltinsAMDGPU``; AMD matrix instruction calculator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from layoutalg.f2 import LinearLayout
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.ground.record import Checked
from layoutalg.ground.verdict import Unknown
from layoutalg.targets.layouts.nvidia_instructions import MMA
from layoutalg.targets.model import type_bits
from layoutalg.targets.registry import lookup
from layoutalg.targets.target_model import model_of

CHECK = Checker("LA965", "not a supported matrix instruction")
TYPE_BITS = type_bits("f16 bf16 s8 u8 f32 s32")
_AMD = re.compile(r"v_(mfma|wmma)_(f32|i32|f16|bf16)_\d+x\d+x\d+(?:_\d+b)?_?(bf16|f16|iu8|i8)(?:_1k)?")
_SIGNED = {"i8": "s8", "iu8": "s8", "i32": "s32"}
WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class MatrixCall(Checked):
    """A matrix instruction as called by kernels.

    Example:
        >>> call = matrix_call("gfx942", "mfma.v_mfma_f32_16x16x16_f16")
        >>> call.name, call.shape, call.types, call.words
        ('la_mfma_f32_16x16x16_f16', (16, 16, 16, 1), ('f16', 'f16', 'f32'), (2, 2, 4))
    """

    arch: str  # the target
    instruction: str  # as in ``model_of(arch).instructions``
    shape: tuple[int, int, int, int]  # (m, n, k, independent products)
    # element types of A, B and D: ``"f16"``, ``"bf16"``, ``"s8"``, ``"u8"``; for D also ``"f32"``, ``"s32"``
    types: tuple[str, str, str]
    words: tuple[int, int, int]  # 32-bit registers that a lane holds of A, B and D

    @property
    def name(self) -> str:
        """The function's name."""
        family, _, name = self.instruction.partition(".")
        return f"la_{name[2:]}" if name.startswith("v_") else f"la_{family}_{name.replace('.', '_')}"

    @property
    def text(self) -> str:
        """The function as CUDA or HIP text; compiles to nothing with ``LA_HOST``."""
        a, b, d = self.words
        operands = f"const la_u32 (&a)[{a}], const la_u32 (&b)[{b}], const la_u32 (&c)[{d}]"
        body = self._cuda() if lookup(self.arch).vendor == "nvidia" else self._hip()
        return (
            f"// D = A B + C: {self.instruction.partition('.')[2]}.\n#ifndef LA_HOST\n"
            f"__device__ __forceinline__ void {self.name}(la_u32 (&d)[{d}], {operands})\n{{\n{body}}}\n#endif\n\n"
        )

    def fragment(self, operand: str) -> LinearLayout:
        """Return the element of each register and lane, like ``TargetModel.fragment``."""
        found = model_of(self.arch).fragment(self.instruction, operand)
        if isinstance(found, Unknown):
            raise CHECK.malformed("operand", "must be 'A', 'B', 'C' or 'D'", operand)
        return found

    def _cuda(self) -> str:
        lists, at = [], 0
        for many in (self.words[2], *self.words):
            lists.append("{" + ", ".join(f"%{number}" for number in range(at, at + many)) + "}")
            at += many
        out = ", ".join(f'"=r"(d[{i}])' for i in range(self.words[2]))
        given = (("a", self.words[0]), ("b", self.words[1]), ("c", self.words[2]))
        inputs = ", ".join(f'"r"({name}[{i}])' for name, many in given for i in range(many))
        ptx = MMA[self.instruction.partition(".")[2]].ptx
        indent = " " * 17
        return f'    asm volatile("{ptx} "\n{indent}"{", ".join(lists)};"\n{indent}: {out} : {inputs});\n'

    def _hip(self) -> str:
        builtin, before, between, after = self._builtin()
        a, d = self.words[0], self.words[2]
        bfloat = "__bf16" if self.instruction.startswith("mfma") and a == 4 else "short"
        kind = {"f16": "_Float16", "bf16": bfloat, "f32": "float"}.get(self.types[0], "int")
        result = {"f32": "float", "s32": "int", "f16": "_Float16", "bf16": "short"}[self.types[2]]
        many = WORD_BITS // TYPE_BITS[self.types[0]] * a if self.types[0] in ("f16", "bf16") else a
        results = d * (WORD_BITS // TYPE_BITS[self.types[2]])
        operand = f"{kind} operand __attribute__((ext_vector_type({many})))"
        if kind == "int" and (a == 1 or (a == 2 and self.instruction.startswith("mfma"))):
            operand = "int operand" if a == 1 else "long operand"
        copies = ("&left, &a, sizeof left", "&right, &b, sizeof right", "&sum, &c, sizeof sum")
        return (
            f"    typedef {operand};\n    typedef {result} result __attribute__((ext_vector_type({results})));\n"
            "    operand left, right;\n    result sum;\n"
            + "".join(f"    __builtin_memcpy({copy});\n" for copy in copies)
            + f"    sum = {builtin}({before}left, {between}right, sum{after});\n"
            "    __builtin_memcpy(&d, &sum, sizeof sum);\n"
        )

    def _builtin(self) -> tuple[str, str, str, str]:
        """The compiler builtin, and its arguments before A, before B and after C."""
        family, _, name = self.instruction.partition(".")
        m, n, k, _ = self.shape
        if family == "mfma":
            result = "i32" if self.types[2] == "s32" else "f32"
            late = self.words[0] > (1 if self.types[0] == "s8" else 2)
            kind = "i8" if self.types[0] == "s8" else self.types[0]
            tail = f"_{kind}" if late else kind
            if kind == "bf16" and not late and self.words[0] == 2:
                tail += "_1k"
            return f"__builtin_amdgcn_mfma_{result}_{m}x{n}x{k}{tail}", "", "", ", 0, 0, 0"
        later = lookup(self.arch).isa != "RDNA3"
        builtin = f"__builtin_amdgcn_{name[2:]}_w32{'_gfx12' if later else ''}"
        if self.types[0] == "s8":
            return builtin, "true, ", "true, ", ", false"
        return builtin, "", "", "" if later or self.types[2] == "f32" else ", false"


def matrix_call(arch: str, instruction: str) -> MatrixCall:
    """Return how kernels call a matrix instruction.

    Supports dense instructions of f16, bf16 and 8-bit integers; ``iu8`` ones treat both operands as signed.

    Args:
        arch: The target.
        instruction: As in ``model_of(arch).instructions``.

    Raises: MalformedError: LA340, LA965. RepresentabilityError: LA966, for elements of other types.

    Example:
        >>> matrix_call("sm_90a", "mma.m16n8k32.s32.s8.u8").types
        ('s8', 'u8', 's32')
    """
    model = model_of(arch)
    if not isinstance(instruction, str) or instruction not in model.instructions:
        raise CHECK.malformed("instruction", f"must be one of model_of({arch!r}).instructions", instruction)
    family, _, name = instruction.partition(".")
    types: tuple[str, str, str] | None = None
    if family == "mma" and name in MMA:
        made = MMA[name]
        types = (made.operand, made.operand_b or made.operand, made.result)
    elif match := _AMD.fullmatch(name):
        kind, result = (_SIGNED.get(word, word) for word in (match[3], match[2]))
        types = (kind, kind, result)
    if types is None or any(kind not in TYPE_BITS for kind in types):
        because = "only dense instructions of f16, bf16 and 8-bit integers are supported"
        raise RepresentabilityError(Diagnostic("LA966", "this instruction is not supported", (instruction,), because))
    fragments = [model.fragment(instruction, operand) for operand in "ABD"]
    words, extents = [], {"matrix": 1}
    for kind, fragment in zip(types, fragments, strict=True):
        if isinstance(fragment, Unknown):
            raise CHECK.malformed("instruction", "must have known fragments", instruction)
        extents |= fragment.out_dims
        words.append(max(1, fragment.in_dims["register"] * TYPE_BITS[kind] // WORD_BITS))
    if lookup(arch).isa == "RDNA3":  # a 16-bit result occupies one half of each register
        words[2] = 8
    shape = (extents["row"], extents["col"], extents["k"], extents["matrix"])
    return MatrixCall(arch, instruction, shape, types, (words[0], words[1], words[2]))


def callable_instructions(arch: str) -> tuple[str, ...]:
    """Return the matrix instructions of a target that kernels can call.

    Example:
        >>> callable_instructions("gfx1201")[0]
        'wmma.v_wmma_f32_16x16x16_f16'
    """
    found = []
    for instruction in model_of(arch).instructions:
        try:
            matrix_call(arch, instruction)
        except RepresentabilityError:
            continue
        found.append(instruction)
    return tuple(found)

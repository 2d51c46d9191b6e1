"""Device functions with the same names for CUDA, HIP and the CPU: one kernel text serves every target.

A kernel text uses ``threadIdx.x``, ``blockIdx.x``, ``__syncthreads()`` and these names:

- ``LA_LANES``: lanes of a warp or wave. ``la_words2``, ``la_words4``: aligned groups of 32-bit ``.word[i]``.
- ``la_shared_load_b8|b16|b32|b64|b128(byte)``, ``la_shared_store_b...(byte, value)``: shared memory by byte offset from
  ``la_shared()``. On the CPU every call is logged, so that bank turns can be counted from the executed text.
- ``la_shuffle(word, lane)``: the word of another lane of the warp; all lanes must call it.
- ``la_permute(low, high, selector)``: four of the eight bytes; byte i is selected by bits 4 i to 4 i + 2.
- ``la_sync_warp()``: warp or wave barrier; shared-memory writes before it are visible to all lanes after it.
- ``la_elect()``: true on one thread per warp; all lanes must call it.
- ``la_cycles()``: a cycle counter; 0 on the CPU.
- Only NVIDIA and the CPU: ``la_ldmatrix_x1|x2|x4[_trans](byte)``, ``la_stmatrix_x1|x2|x4[_trans](byte, words)``, with
  the byte offset of the lane's row.

References: CUDA C++ programming guide (warp shuffle, byte permutation); LLVM AMDGPU usage (builtins, memory model);
PTX ISA 9.1, ldmatrix and stmatrix.
"""

from __future__ import annotations

from layoutalg.codegen.prelude import PRELUDE
from layoutalg.ground.check import Checker
from layoutalg.targets.registry import lookup

ELEMENT_TYPES = {1: "unsigned char", 2: "unsigned short", 4: "la_u32", 8: "la_u64"}
"""The type of an element, by its bytes."""
VECTOR_TYPES = {4: "la_u32", 8: "la_words2", 16: "la_words4"}
"""The type of words that move together, by their bytes."""

_TYPES = r"""
struct __align__(8) la_words2 { la_u32 word[2]; };
struct __align__(16) la_words4 { la_u32 word[4]; };
"""

_CORE = r"""// Hardware operations by name. With LA_HOST defined, a host header supplies the same names as C++ models.
#ifndef LA_HOST
typedef unsigned int la_u32;
typedef unsigned long long la_u64;
"""

_DYNAMIC = r"""
extern __shared__ __align__(1024) unsigned char la_dynamic_shared[];

__device__ __forceinline__ unsigned char* la_shared() { return la_dynamic_shared; }
"""


def _shared() -> str:
    parts = []
    for bits, kind in ((8, "unsigned char"), (16, "unsigned short"), (32, "la_u32"), (64, "la_words2"),
                       (128, "la_words4")):  # fmt: skip
        value = "la_u32" if bits <= 32 else kind
        parts.append(
            f"__device__ __forceinline__ {value} la_shared_load_b{bits}(la_u32 byte)\n"
            f"{{\n    return *(const {kind}*)(la_shared() + byte);\n}}\n"
            f"__device__ __forceinline__ void la_shared_store_b{bits}(la_u32 byte, {value} value)\n"
            f"{{\n    *({kind}*)(la_shared() + byte) = ({kind})value;\n}}\n"
        )
    return "".join(parts)


def _matrices() -> str:
    parts = []
    for many, kind in ((1, "la_u32"), (2, "la_words2"), (4, "la_words4")):
        for suffix, trans in (("", ""), ("_trans", ".trans")):
            registers = ", ".join(f"%{i}" for i in range(many))
            words = ["words" if many == 1 else f"words.word[{i}]" for i in range(many)]
            outputs = ", ".join(f'"=r"({word})' for word in words)
            inputs = ", ".join(f'"r"({word})' for word in words)
            stored = ", ".join(f"%{i + 1}" for i in range(many))
            row = '"r"((la_u32)__cvta_generic_to_shared(la_shared() + byte))'
            parts.append(
                f"__device__ __forceinline__ {kind} la_ldmatrix_x{many}{suffix}(la_u32 byte)\n{{\n    {kind} words;\n"
                f'    asm volatile("ldmatrix.sync.aligned.m8n8.x{many}{trans}.shared.b16 {{{registers}}}, [%{many}];"\n'
                f'                 : {outputs} : {row} : "memory");\n'
                "    return words;\n}\n"
                "#if __CUDA_ARCH__ >= 900\n"
                f"__device__ __forceinline__ void la_stmatrix_x{many}{suffix}(la_u32 byte, {kind} words)\n{{\n"
                f'    asm volatile("stmatrix.sync.aligned.m8n8.x{many}{trans}.shared.b16 [%0], {{{stored}}};"\n'
                f'                 :: {row}, {inputs} : "memory");\n'
                "}\n#endif\n"
            )
    return "".join(parts)


_CUDA = (
    "#define LA_LANES 32\n"
    + _TYPES
    + _shared()
    + r"""
__device__ __forceinline__ la_u32 la_shuffle(la_u32 word, la_u32 lane)
{
    return __shfl_sync(0xFFFFFFFFu, word, (int)lane);
}

__device__ __forceinline__ la_u32 la_permute(la_u32 low, la_u32 high, la_u32 selector)
{
    return __byte_perm(low, high, selector);
}

__device__ __forceinline__ bool la_elect()
{
#if __CUDA_ARCH__ >= 900
    la_u32 chosen;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xFFFFFFFF;\nselp.u32 %0, 1, 0, p;\n}\n" : "=r"(chosen));
    return chosen;
#else
    return threadIdx.x % 32 == 0;
#endif
}

__device__ __forceinline__ void la_sync_warp() { __syncwarp(); }

__device__ __forceinline__ la_u64 la_cycles() { return (la_u64)clock64(); }

"""
    + _matrices()
)

_HIP_NAMES = r"""
#ifndef __HIPCC_RTC__  // hipRTC knows the names of the language; a bare clang does not
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads, ...) __attribute__((amdgpu_flat_work_group_size(threads, threads)))
struct la_index { la_u32 x, y, z; };
#define threadIdx (la_index{__builtin_amdgcn_workitem_id_x(), 0, 0})
#define blockIdx (la_index{__builtin_amdgcn_workgroup_id_x(), 0, 0})
#endif
#undef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))
#ifndef __align__
#define __align__(bytes) __attribute__((aligned(bytes)))
#endif
#define __syncthreads() la_block_barrier()
"""

_HIP = r"""
__device__ __forceinline__ void la_block_barrier()
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

__device__ __forceinline__ la_u32 la_shuffle(la_u32 word, la_u32 lane)
{
    return (la_u32)__builtin_amdgcn_ds_bpermute((int)(4 * lane), (int)word);
}

// v_perm_b32 numbers the bytes of its second operand first and takes a byte per selector.
__device__ __forceinline__ la_u32 la_permute(la_u32 low, la_u32 high, la_u32 selector)
{
    const la_u32 pairs = (selector & 0x77u) | (selector & 0x7700u) << 8;
    return __builtin_amdgcn_perm(high, low, (pairs & 0x70007u) | (pairs & 0x700070u) << 4);
}

__device__ __forceinline__ bool la_elect() { return threadIdx.x % LA_LANES == 0; }

__device__ __forceinline__ void la_sync_warp()
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

__device__ __forceinline__ la_u64 la_cycles() { return __builtin_readcyclecounter(); }
"""

TENSOR_PRELUDE = PRELUDE + "#ifndef LA_HOST\n" + _CUDA + "#endif\n"
"""The prelude of kernels that use the copy engine in addition to the portable functions."""


def portable_prelude(arch: str) -> str:
    """Return the prelude of portable kernels for a target.

    Args:
        arch: ``"sm_90a"``, ``"gfx942"``, ...

    Example:
        >>> "__byte_perm" in portable_prelude("sm_90a"), "ds_bpermute" in portable_prelude("gfx942")
        (True, True)
    """
    target = lookup(Checker("LA900", "there is no prelude for this target").kind(arch, str, "arch"))
    if target.vendor == "nvidia":
        return f"{_CORE}{_DYNAMIC}{_CUDA}#endif\n\n"
    lanes = f"#define LA_LANES {target.lanes}\n"
    return f"{_CORE}{_HIP_NAMES}{lanes}{_TYPES}{_DYNAMIC}{_shared()}{_HIP}#endif\n\n"

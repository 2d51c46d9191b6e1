"""The integers of a kernel, read from its PTX, against the same C text compiled for the CPU."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from layoutalg.codegen import hostsim
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.pipeline.reread import events
from layoutalg.codegen.prelude import PRELUDE

pytestmark = [
    pytest.mark.compile,
    pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler"),
]

_DEVICE = """
#define POPC __popc
#define CLZ __clz
#define BREV __brev
#define HIGH __umulhi
#define PERM __byte_perm
#define FUNNEL_L __funnelshift_l
#define FUNNEL_R __funnelshift_rc
#define TABLE static __device__ const
"""
_HOST = """
typedef unsigned int la_u32;
typedef unsigned long long la_u64;
static int POPC(la_u32 x) { return __builtin_popcount(x); }
static int CLZ(la_u32 x) { return x ? __builtin_clz(x) : 32; }
static la_u32 BREV(la_u32 x) { la_u32 y = 0; for (int i = 0; i < 32; ++i) y |= (x >> i & 1) << (31 - i); return y; }
static la_u32 HIGH(la_u32 x, la_u32 y) { return (la_u32)((la_u64)x * y >> 32); }
static la_u32 PERM(la_u32 x, la_u32 y, la_u32 s)
{
    la_u32 z = 0;
    const la_u64 both = (la_u64)y << 32 | x;
    for (int i = 0; i < 4; ++i) z |= (la_u32)(both >> 8 * (s >> 4 * i & 7) & 255) << 8 * i;
    return z;
}
static la_u32 FUNNEL_L(la_u32 x, la_u32 y, la_u32 s) { return (la_u32)((((la_u64)y << 32 | x) << (s & 31)) >> 32); }
static la_u32 FUNNEL_R(la_u32 x, la_u32 y, la_u32 s) { return (la_u32)(((la_u64)y << 32 | x) >> (s < 32 ? s : 32)); }
#define TABLE static const
"""
_TABLE = "TABLE short table[8] = {1, -2, 3, 400, -500, 6, 70, -8};\n"

WORDS = st.one_of(
    st.sampled_from(["a", "b", "t", "(la_u32)n", "(la_u32)q", "(la_u32)(q >> 32)"]),
    st.integers(0, 2**32 - 1).map(lambda value: f"{value}u"),
    st.integers(0, 9).map(lambda value: f"{value}u"),
)


def _longer(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two, three = st.tuples(inner, inner), st.tuples(inner, inner, inner)
    forms = [
        "({0} {op} {1})", "(la_u32)((int){0} / (int)(({1} & 255) | 1))", "({0} % ({1} | 1))", "({0} / ({1} | 1))",
        "(la_u32)((int){0} % (int)(({1} & 1023) | 1))", "({0} << ({1} & 31))", "({0} >> ({1} & 31))",
        "(la_u32)((int){0} >> ({1} & 31))", "(la_u32)((int){0} < (int){1})", "({0} <= {1} ? {0} : {1})",
        "HIGH({0}, {1})", "(la_u32)((la_u64){0} * {1} >> 13)", "(la_u32)(((long long)(int){0} * (int){1}) >> 7)",
        "(la_u32)POPC({0})", "(la_u32)CLZ({0})", "BREV({0})", "(la_u32)(signed char){0}", "(la_u32)(short){0}",
        "(la_u32)(unsigned char){0}", "(unsigned short)({0} * {1})", "(la_u32)((q + {0}) / ({1} | 1))",
        "(la_u32)((q * {0}) >> ({1} & 63))", "(la_u32)((long long)(q ^ {0}) >> ({1} & 63))", "~{0}", "(0u - {0})",
        "(la_u32)table[{0} & 7]", "({0} / {odd}u)", "({0} % {odd}u)", "(la_u32)((int){0} / {odd})",
        "(la_u32)((int){0} % {odd})", "(la_u32)((int){0} > (int){1} ? (int){0} : (int){1})",
    ]  # fmt: skip
    longer = [
        "({0} < {1} ? {2} : {0})", "((int){0} >= (int){1} && {2} > 5u ? {1} : {2})", "(({0} & {1}) | (~{0} & {2}))",
        "FUNNEL_L({0}, {1}, {2})", "FUNNEL_R({0}, {1}, {2} & 63)", "PERM({0}, {1}, {2} & 0x7777u)",
        "({0} == {1} || (int){2} < 0 ? {0} : {2})",
    ]  # fmt: skip
    return st.one_of(
        st.builds(
            lambda form, values, op, odd: form.format(*values, op=op, odd=odd),
            st.sampled_from(forms), two, st.sampled_from("+-*&|^"), st.sampled_from([3, 5, 6, 7, 10, 24, 1000, 65537]),
        ),
        st.builds(lambda form, values: form.format(*values), st.sampled_from(longer), three),
    )  # fmt: skip


EXPRESSIONS = st.recursive(WORDS, _longer, max_leaves=6)
STATEMENTS = st.one_of(
    EXPRESSIONS.map(lambda text: f"    s = {text};\n"),
    st.tuples(EXPRESSIONS, EXPRESSIONS).map(
        lambda two: f"    for (la_u32 i = 0; i < ({two[0]}) % 9u; ++i) s = s * 5u + (i ^ {two[1]});\n"
    ),
    st.tuples(EXPRESSIONS, EXPRESSIONS, EXPRESSIONS).map(
        lambda three: (
            f"    switch (({three[0]}) % 6u) {{ case 0: s += {three[1]}; break; case 1: s ^= 77u;\n"
            f"    case 2: s *= {three[2]}; break; case 4: s = s / 3u; break; case 5: s -= {three[1]}; }}\n"
        )
    ),
    st.tuples(EXPRESSIONS, EXPRESSIONS).map(
        lambda two: (
            f"    {{ la_u32 local[6]; for (int i = 0; i < 6; ++i) local[i] = s + i * ({two[0]});\n"
            f"    s = local[({two[1]}) % 6u]; }}\n"
        )
    ),
)
U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
ARGUMENTS = st.tuples(U32, U32, st.integers(-9, 9), U64, st.integers(0, 63))


def host_values(body: str, count: int, arguments: list[tuple[int, ...]]) -> list[list[int]]:
    """The values of the text compiled by the C++ compiler."""
    text = f'{_HOST}{_TABLE}extern "C" void k(la_u32 a, la_u32 b, int n, la_u64 q, la_u32 t, la_u32* out)\n'
    body = body.replace("NOTE", "*out++ = ")
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "k.cpp", Path(folder) / "k.so"
        source.write_text(f"{text}{{\n    la_u32 s = 0;\n{body}}}\n")
        command = [hostsim.compiler() or "", "-O1", "-fwrapv", "-w", "-shared", "-fPIC", source, "-o", library]
        subprocess.run(command, check=True, capture_output=True)
        call, found = ctypes.CDLL(str(library)).k, []
        call.argtypes = [ctypes.c_uint32, ctypes.c_uint32, ctypes.c_int32, ctypes.c_uint64, ctypes.c_uint32]
        call.argtypes = [*call.argtypes, ctypes.POINTER(ctypes.c_uint32)]
        for given_ in arguments:
            out = (ctypes.c_uint32 * count)()
            call(*given_, out)
            found.append(list(out))
    return found


@given(st.lists(STATEMENTS, min_size=6, max_size=16), st.lists(ARGUMENTS, min_size=4, max_size=8))
@example(["    s = (la_u32)(q >> 32);\n", "    s = (la_u32)(signed char)a;\n"], [(200, 0, 0, 5 << 32 | 7, 0)])
@example(
    [
        "    s = (la_u32)((int)a < (int)(a + a));\n",
        "    { la_u32 local[6]; for (int i = 0; i < 6; ++i) local[i] = s + i * a;\n    s = local[2]; }\n",
    ],
    [(7, 1, 2, 3, 4), (2**31, 1, 2, 3, 4)],
)
@settings(max_examples=40)
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_integers_are_those_of_the_same_c_text(arch, statements, arguments):
    body = "".join(f"{each}    NOTE(s);\n" for each in statements)
    parameters = (("la_u32", "a"), ("la_u32", "b"), ("int", "n"), ("la_u64", "q"))
    text = (
        f'{PRELUDE}{_DEVICE}{_TABLE}extern "C" __global__ void k(la_u32 a, la_u32 b, int n, la_u64 q)\n'
        "{\n    const la_u32 t = threadIdx.x, at = la_shared_address(la_shared());\n    la_u32 s = 0;\n"
        + body.replace("NOTE(s)", "la_arrive_expect_tx(at, s)")
        + "}\n"
    )
    kernel = KernelSource("k", text, arch, 64, 0, parameters)
    wanted = host_values(body, len(statements), arguments)
    for (*values, thread), each in zip(arguments, wanted, strict=True):
        assert [event.value for event in events(kernel, values, thread)] == each

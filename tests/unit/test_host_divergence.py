"""Lanes and threads that part ways before they meet: wrong texts and mutants of emitted ones are faults on the CPU."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from layoutalg.codegen import hostsim
from layoutalg.codegen.conversion import conversion_kernel
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.kernels import gather_kernel, staging_kernel, transpose_kernel, transpose_windows_kernel
from layoutalg.codegen.matrix_calls import matrix_call
from layoutalg.codegen.portable import portable_prelude
from layoutalg.codegen.prelude import PRELUDE, wgmma_prelude
from layoutalg.f2 import LinearLayout
from layoutalg.synth import conversion

pytestmark = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
APART = "lanes of a warp wait at different warp-synchronous calls"
ENDED = "a full-warp instruction misses a lane: it has exited or does not exist"
IDLE = "shuffle reads an inactive lane"
BARRIERS = "threads of a block wait at different barriers"
HEAD = 'extern "C" __global__ void __launch_bounds__(128) it(int which, la_u32* into)\n{\n'
HEAD += "    const la_u32 t = threadIdx.x, half = t % LA_LANES < LA_LANES / 2;\n"
PARAMETERS = (("int", "which"), ("la_u32*", "into"))
CASES = {
    "one shuffle": ("into[t] = la_shuffle(half ? t : t + 1, t ^ 1);", "none"),
    "two shuffles": ("if (half) into[t] = la_shuffle(t, t ^ 1);\n        else into[t] = la_shuffle(t, t ^ 1);", APART),
    "two shuffles, one line": ("into[t] = half ? la_shuffle(t, t ^ 1) : la_shuffle(t, t ^ 2);", APART),
    "two masks": ("if (half) into[t] = la_shuffle_xor(t, 1);\n        else into[t] = la_shuffle_xor(t, 2);", APART),
    "two barriers": ("if (half) la_sync_warp();\n        else la_sync_warp();", APART),
    "a barrier and a shuffle": ("if (half) la_sync_warp();\n        else into[t] = la_shuffle(t, t ^ 1);", APART),
    "an election": ("if (half) into[t] = la_elect();\n        else la_sync_warp();", APART),
    "one round less": ("for (la_u32 i = 0; i < 2 + half; ++i) into[t] = la_shuffle(t, t ^ i);", ENDED),
    "one round less, then a barrier": (
        "for (la_u32 i = 0; i < 2 + half; ++i) into[t] = la_shuffle(t, t ^ i);\n        la_sync_warp();", APART,
    ),
    "half a warp": ("if (half) return;\n        into[t] = la_shuffle(t, t ^ 1);", ENDED),
    "half a warp waits": ("if (half) return;\n        la_sync_warp();\n        into[t] = la_elect();", "none"),
    "warps apart": ("if (t < LA_LANES) into[t] = la_shuffle(t, 1);\n        else into[t] = la_shuffle(t, 2);", "none"),
    "block barriers": ("if (t < 64) __syncthreads();\n        else __syncthreads();", BARRIERS),
}  # fmt: skip
BODY = "".join(
    f"    if (which == {number}) {{\n        {text}\n    }}\n" for number, (text, _) in enumerate(CASES.values())
)


def traced(prelude: str, arch: str, body: str, which: int = 0, threads: int = 128) -> hostsim.Trace:
    kernel = KernelSource("it", f"{prelude}{HEAD}{body}}}\n", arch, threads, 4096, PARAMETERS)
    return hostsim.trace(kernel, [which, np.zeros(128, np.uint32)])


@pytest.mark.parametrize("arch", ["sm_90a", "gfx942"])
def test_places_where_lanes_meet(arch):
    for which, (name, (text, fault)) in enumerate(CASES.items()):
        found = traced(portable_prelude(arch), arch, BODY, which)
        assert hostsim.FAULTS[found.fault] == fault, name
        lines = [line.strip() for line in text.split("\n")]
        told = re.findall(r"; (?:at|others wait at) line \d+: (.*?)(?=; (?:at|others)|$)", found.why)
        assert all(line in lines for line in told), (name, found.why)
        assert len(told) == {"none": 0, ENDED: 1}.get(fault, 2), (name, found.why)
        if fault in (APART, BARRIERS):  # both places are named
            assert set(told) == set(lines[-2:]), name


def test_the_line_of_a_fault_is_a_line_of_the_text():
    found = traced(portable_prelude("gfx942"), "gfx942", BODY, list(CASES).index("two masks"))
    number = int(re.search(r"; at line (\d+)", found.why)[1])
    whole = f"{portable_prelude('gfx942')}{HEAD}{BODY}"
    assert "la_shuffle_xor" in whole.splitlines()[number - 1]
    far = traced(portable_prelude("gfx942"), "gfx942", "    into[t] = la_shared_load_b32(4 * t + 3840);\n")
    assert far.why.endswith(": into[t] = la_shared_load_b32(4 * t + 3840);")


def test_a_deadlock_names_the_lines_at_which_threads_wait():
    found = traced(portable_prelude("sm_90a"), "sm_90a", "    if (t % 32) la_sync_warp();\n    else __syncthreads();\n")
    assert hostsim.FAULTS[found.fault] == "deadlock"
    assert "else __syncthreads();" in found.why
    assert "if (t % 32) la_sync_warp();" in found.why


CALL = matrix_call("sm_90a", "mma.m16n8k16.f32.f16")
MATRICES = {
    "else la_sync_warp();": APART, f"else {CALL.name}(d, a, b, d);": APART, "else return;": ENDED,
    "else into[t] = la_ldmatrix_x1(0);": APART, "else {}": ENDED,
}  # fmt: skip


@pytest.mark.parametrize("other", MATRICES)
@pytest.mark.parametrize("first", [f"{CALL.name}(d, a, b, d);", "into[t] = la_ldmatrix_x1(16 * (t % 8));"])
def test_matrix_instructions_are_met_by_all_lanes(first, other):
    declared = "    la_u32 d[4] = {}, a[4] = {}, b[2] = {};\n"
    body = f"{declared}    if (half) {first}\n    {other}\n"
    found = traced(portable_prelude("sm_90a") + CALL.text, "sm_90a", body)
    assert hostsim.FAULTS[found.fault] == MATRICES[other]
    whole = f"{declared}    {first}\n    into[t] = d[0];\n"
    assert traced(portable_prelude("sm_90a") + CALL.text, "sm_90a", whole).fault == 0


@pytest.mark.parametrize(("body", "fault"), [
    ("la_wgmma_fence();\n    la_wgmma_commit();\n    la_wgmma_wait();", "none"),
    ("if (t % 2) la_wgmma_fence();\n    else la_wgmma_wait();", APART), ("if (t % 2) la_wgmma_commit();", ENDED),
])  # fmt: skip
def test_warpgroups(body, fault):
    head = HEAD.replace(", half = t % LA_LANES < LA_LANES / 2", "")
    text = f"{PRELUDE}{wgmma_prelude('f16', 8)}{head}    {body}\n}}\n"
    kernel = KernelSource("it", text, "sm_90a", 128, 4096, PARAMETERS)
    assert hostsim.FAULTS[hostsim.run(kernel, [0, np.zeros(128, np.uint32)])] == fault


def mutants(kernel: KernelSource, pattern: str, put: str) -> list[KernelSource]:
    """The kernel with one match replaced, for every match behind its first line."""
    begin = kernel.text.index('extern "C" __global__')
    found = list(re.finditer(pattern, kernel.text[begin:]))
    assert found
    head, body = kernel.text[:begin], kernel.text[begin:]
    return [replace(kernel, text=head + body[: m.start()] + m.expand(put) + body[m.end() :]) for m in found]


@pytest.mark.parametrize("arch", ["sm_90a", "gfx942"])
def test_a_shuffle_of_a_conversion_that_some_lanes_leave_out(arch):
    lanes = 6 if arch == "gfx942" else 5
    bits = [(1 << bit,) for bit in range(lanes + 2)]
    source, destination = (
        LinearLayout.from_bases({"register": cut[0], "lane": cut[1], "warp": []}, {"x": 1 << lanes + 2})
        for cut in ((bits[:2], bits[2:]), (bits[1:3], [*bits[:1], *bits[3:]]))
    )
    kernel = conversion_kernel(conversion(source, destination, 32, arch, mechanism="shuffles"))
    words = [np.arange(4 << lanes, dtype=np.uint32).reshape(4, -1), np.zeros((4, 1 << lanes), np.uint32)]
    assert hostsim.run(kernel, words) == 0
    pattern = r"const la_u32 (\w+) = (la_shuffle\w*\([^;]*);"
    made = mutants(kernel, pattern, r"la_u32 \1 = 0;\n    if (t % 4) \1 = \2;")
    for wrong in made[:3]:
        assert hostsim.FAULTS[hostsim.run(wrong, words)] in (APART, ENDED, IDLE)


def test_lanes_of_a_gather_that_leave_early():
    made = gather_kernel((5, 100), 1, 70, "f32", threads=64)
    source, index = np.zeros((5, 100), np.float32), np.zeros((5, 70), np.int32)
    arguments = made.arguments(source, np.zeros((5, 70), np.float32), index=index)
    assert hostsim.run(made.kernel, arguments, blocks=made.blocks) == 0
    for pattern, put in ((r"if \(number >= 5ull\) return;", "if (number >= 5ull || t % 32 == 31) return;"),
                         (r"i - lane < 70u", "i < 70u")):  # fmt: skip
        (wrong,) = mutants(made.kernel, pattern, put)
        assert hostsim.FAULTS[hostsim.run(wrong, arguments, blocks=made.blocks)] in (ENDED, APART)


def staged():
    plan = transpose_kernel((64, 64), "f16").swizzle
    made = staging_kernel(plan, (64, 64))
    return made, (64, 64), made.arrays[1].shape, np.uint16


@pytest.mark.parametrize("make", [
    lambda: (transpose_kernel((64, 68), "f32"), (64, 68), (68, 64), np.float32),
    lambda: (transpose_windows_kernel((65, 67), "f16", threads=128, rows=128), (65, 67), (67, 65), np.uint16),
    lambda: (transpose_kernel((64, 64), "u8", "gfx942"), (64, 64), (64, 64), np.uint8),
    staged,
])  # fmt: skip
def test_a_barrier_left_out_is_a_race(make):
    made, shape, result, dtype = make()
    arguments = made.arguments(np.ones(shape, dtype), np.zeros(result, dtype))
    found = hostsim.trace(made.kernel, arguments, blocks=made.blocks, races=True)
    assert found.fault == 0, found.why
    wrong = mutants(made.kernel, r"__syncthreads\(\);", "")
    assert wrong
    for each in wrong:
        found = hostsim.trace(each, arguments, blocks=made.blocks, races=True)
        assert hostsim.FAULTS[found.fault].startswith("race")


def test_a_barrier_of_a_transpose_in_two_branches():
    made = transpose_kernel((64, 64), "f32")
    (wrong,) = mutants(made.kernel, r"__syncthreads\(\);", "if (t % 2) __syncthreads();\n    else __syncthreads();")
    arguments = made.arguments(np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32))
    assert hostsim.run(made.kernel, arguments, blocks=made.blocks) == 0
    assert hostsim.FAULTS[hostsim.run(wrong, arguments, blocks=made.blocks)] == BARRIERS

"""Limits of AMD's targets are those that LLVM's assembler and compiler enforce."""

import importlib.util
import re
import subprocess
import sys

import pytest

from layoutalg.targets import model_of

pytestmark = [
    pytest.mark.compile,
    pytest.mark.skipif(
        not importlib.util.find_spec("ziglang"), reason='no clang for AMD: pip install "layoutalg[hip]"'
    ),
]
KERNEL = """__attribute__((global, amdgpu_flat_work_group_size(1, 1025))) void touch(volatile int* at)
{ static __attribute__((shared)) volatile int words[WORDS]; words[at[2]] = at[1]; *at = words[at[3]]; }"""
OFFLOAD = ["-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-O1", "-S", "-", "-o", "-"]
ASSEMBLE = ["-target", "amdgcn-amd-amdhsa", "-x", "assembler", "-c", "-", "-o", "/dev/null"]


def built(text: str, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ziglang", "clang", *flags]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_registers_shared_memory_and_lanes_end_where_the_compiler_ends_them(target: str) -> None:
    limit = model_of(target).limit
    lines = [f"v_mov_b32 v{last}, v0" for last in (255, 256)]
    lines += [f"v_accvgpr_read_b32 v0, a{last}" for last in (255, 256)]
    said = built("\n".join(lines), *ASSEMBLE, f"-mcpu={target}").stderr
    accepted = 4 - len(re.findall(r"^<stdin>:\d+:\d+: error", said, re.MULTILINE))
    assert limit("registers_per_thread").value == 256 * accepted
    words = limit("lds_bytes_per_block").value // 4
    fits, passes = (
        built(KERNEL.replace("WORDS", str(size)), *OFFLOAD, f"--offload-arch={target}") for size in (words, words + 1)
    )
    assert f"exceeds limit ({4 * words})" in passes.stderr
    assert f".group_segment_fixed_size: {4 * words}" in fits.stdout
    assert f".max_flat_workgroup_size: {limit('threads_per_block').value}" in fits.stdout
    assert {limit(name).grade for name in ("registers_per_thread", "lds_bytes_per_block")} == {"assembled"}

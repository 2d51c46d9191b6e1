"""What a compiler refuses is shown with the lines of the kernel's own text: NVRTC, clang, the CPU's compiler."""

import numpy as np
import pytest

from layoutalg.codegen import hip, hostsim
from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.complaints import CompileError, line_before, lines_of, refused
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.portable import portable_prelude

HEAD = 'extern "C" __global__ void __launch_bounds__(32) it(la_u32* into)\n{\n'


def compiled(arch: str, where: str, lines: list[str]) -> tuple[CompileError, int]:
    """The error for a kernel with these lines, and the number of the first of them in its text."""
    text = portable_prelude(arch) + HEAD
    first = text.count("\n") + 1
    made = KernelSource(
        "it", text + "".join(f"    {line}\n" for line in lines) + "}\n", arch, 32, 0, (("la_u32*", "into"),)
    )
    compiler = hip.to_code_object if arch.startswith("gfx") else to_cubin
    if where == "CPU":
        compiler = lambda kernel: hostsim.run(kernel, [np.zeros(32, np.uint32)])  # noqa: E731
    with pytest.raises(CompileError) as caught:
        compiler(made)
    return caught.value, first


def skipped(arch: str, where: str) -> None:
    if where == "CPU" and hostsim.compiler() is None:
        pytest.skip("no C++ compiler")
    if where == "device" and arch.startswith("sm"):
        pytest.importorskip("cuda.core", reason='no run-time compiler: pip install "layoutalg[cuda]"')
    if where == "device" and arch.startswith("gfx") and not hip.available():
        pytest.skip('no clang for AMD: pip install "layoutalg[hip]"')


@pytest.mark.parametrize(("arch", "where"), [("sm_90a", "device"), ("gfx942", "device"), ("gfx1100", "CPU")])
def test_every_line_that_is_meant_is_quoted(arch, where):
    skipped(arch, where)
    lines = ["into[0] = 1;", "into[1] = no_such_name;", "into[2] = 2;", "into[3] = 3 +;"]
    error, first = compiled(arch, where, lines)
    assert error.lines == (first + 1, first + 3)
    assert f"line {first + 1} of the text: into[1] = no_such_name;" in error.diagnostic.where
    assert "no_such_name" in error.diagnostic.because
    assert "/tmp" not in str(error)
    assert "\0" not in str(error)


@pytest.mark.parametrize("arch", ["sm_90a", "gfx942"])
def test_the_line_of_inline_assembly_that_the_assembler_refuses(arch):
    skipped(arch, "device")
    wrong = 'asm volatile("mov.u99 %0, 7;" : "=r"(into[1]));' if arch == "sm_90a" else 'asm volatile("v_nothing %0");'
    error, first = compiled(arch, "device", ["into[0] = 1;", "into[threadIdx.x] = 5;", wrong, "into[2] = 2;"])
    assert error.lines == (first + 2,)


def test_logs_that_name_no_line_of_the_text():
    assert lines_of("error: nothing of the kind\nother.h(3): error: x\ndefault_program(4): warning: y") == ()
    assert refused("LA903", "refused", "arch gfx942", "error: at large", "one line").lines == ()
    assert refused("LA903", "refused", "arch gfx942", "kernel.hip:9:1: error: beyond", "one line").lines == ()
    assert line_before("ret;", 1) is None

"""hipRTC through a child process: a library made for the test, and the system's own where there is one."""

import shutil
import subprocess
from pathlib import Path

import pytest

from layoutalg.codegen import hiprtc
from layoutalg.codegen.complaints import CompileError
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.portable import portable_prelude
from layoutalg.ground.errors import MalformedError, MissingExtraError, RepresentabilityError

BODY = """extern "C" __global__ void __launch_bounds__(64) it(la_u32* into)
{
    la_shared_store_b32(4 * threadIdx.x, threadIdx.x);
    __syncthreads();
    into[threadIdx.x] = la_shuffle(la_shared_load_b32(4 * (threadIdx.x ^ 9)), threadIdx.x ^ 5);
}
"""
# Compiles gfx90a, refuses gfx908 by a code, aborts at every other target; "wrong" in a text is an error in line 2.
FAKE = r"""
#include <cstdlib>
#include <cstring>
#include <string>
struct Program { std::string text, log, code; };
extern "C" {
int hiprtcCreateProgram(Program** made, const char* text, const char*, int, const char**, const char**)
{
    *made = new Program{text, "", ""};
    return 0;
}
int hiprtcCompileProgram(Program* program, int count, const char** options)
{
    std::string arch;
    for (int i = 0; i < count; ++i)
        if (!std::strncmp(options[i], "--offload-arch=", 15)) arch = options[i] + 15;
    if (arch == "gfx908") { program->log = "no such target"; return 6; }
    if (arch != "gfx90a") std::abort();
    if (program->text.find("wrong") != std::string::npos) {
        program->log = "/tmp/comgr-1/input/CompileSource:2:5: error: use of undeclared identifier 'wrong'\n";
        return 6;
    }
    program->code = "\177ELF" + arch;
    return 0;
}
int hiprtcGetProgramLogSize(Program* program, size_t* size) { *size = program->log.size() + 1; return 0; }
int hiprtcGetProgramLog(Program* program, char* log) { std::strcpy(log, program->log.c_str()); return 0; }
int hiprtcGetCodeSize(Program* program, size_t* size) { *size = program->code.size(); return 0; }
int hiprtcGetCode(Program* program, char* code) { program->code.copy(code, program->code.size()); return 0; }
const char* hiprtcGetErrorString(int) { return "error"; }
}
"""


def kernel(arch: str, text: str) -> KernelSource:
    return KernelSource("it", text, arch, 64, 256, (("la_u32*", "into"),))


@pytest.fixture(scope="module")
def fake(tmp_path_factory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("rocm") / "lib"
    folder.mkdir()
    (folder / "fake.cpp").write_text(FAKE, encoding="utf-8")
    made = folder / "libhiprtc.so.6"
    subprocess.run(["g++", "-shared", "-fPIC", "-o", str(made), str(folder / "fake.cpp")], check=True)
    return made


def test_the_library_compiles_and_its_errors_are_lines_of_the_kernel(fake):
    assert hiprtc.to_code_object(kernel("gfx90a", "int x;\n"), fake) == b"\x7fELFgfx90a"
    with pytest.raises(CompileError, match="LA963") as caught:
        hiprtc.to_code_object(kernel("gfx90a", "int x;\n    int wrong;\n"), fake)
    assert caught.value.lines == (2,)
    assert "line 2 of the text: int wrong;" in caught.value.diagnostic.where


def test_targets_are_tried_where_an_abort_does_no_harm(fake):
    assert [hiprtc.supports(arch, fake) for arch in ("gfx90a", "gfx908", "gfx942")] == [True, False, False]
    with pytest.raises(RepresentabilityError, match=r"LA962(.|\n)*killed by signal 6"):
        hiprtc.to_code_object(kernel("gfx942", "int x;\n"), fake)
    with pytest.raises(RepresentabilityError, match=r"LA962(.|\n)*no such target"):
        hiprtc.to_code_object(kernel("gfx908", "int x;\n"), fake)


def test_where_the_library_is_looked_for(fake, monkeypatch, tmp_path):
    monkeypatch.setattr(hiprtc, "FOLDERS", (str(tmp_path),))
    monkeypatch.setenv("LD_LIBRARY_PATH", "")
    monkeypatch.delenv("ROCM_PATH", raising=False)
    assert hiprtc.found() is None
    with pytest.raises(MissingExtraError, match=r"LA961(.|\n)*libamdhip64-5 libhiprtc-builtins5 libamd-comgr2"):
        hiprtc.to_code_object(kernel("gfx90a", "int x;\n"))
    (tmp_path / "libamdhip64.so.5").write_bytes(b"")
    assert hiprtc.found() == tmp_path / "libamdhip64.so.5"
    assert not hiprtc.supports("gfx90a")  # a file that is no library
    folder = fake.parent
    monkeypatch.setenv("ROCM_PATH", str(folder.parent))
    assert hiprtc.found() == fake
    monkeypatch.delenv("ROCM_PATH")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere:{folder}")
    assert hiprtc.found() == fake


def test_what_is_no_kernel_of_amd_is_refused(fake):
    for wrong in (lambda: hiprtc.to_code_object("text", fake), lambda: hiprtc.supports("sm_90a", fake),
                  lambda: hiprtc.supports("gfx90a -x", fake), lambda: hiprtc.supports("gfx90a", "libhiprtc.so"),
                  lambda: hiprtc.to_code_object(kernel("sm_90a", "int x;"), fake)):  # fmt: skip
        with pytest.raises(MalformedError, match="LA960"):
            wrong()
    with pytest.raises(MissingExtraError, match="there is no file"):
        hiprtc.supports("gfx90a", Path("/nowhere/libhiprtc.so"))


@pytest.mark.skipif(hiprtc.found() is None, reason="no hipRTC: libamdhip64-5 libhiprtc-builtins5 libamd-comgr2")
def test_the_systems_own_library():
    arch = next((arch for arch in ("gfx90a", "gfx942", "gfx1100") if hiprtc.supports(arch)), None)
    assert arch is not None
    assert hiprtc.to_code_object(kernel(arch, portable_prelude(arch) + BODY))[:4] == b"\x7fELF"
    with pytest.raises(CompileError) as caught:
        hiprtc.to_code_object(kernel(arch, portable_prelude(arch) + "int x = y;\n"))
    assert caught.value.lines == (portable_prelude(arch).count("\n") + 1,)

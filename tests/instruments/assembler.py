"""What the assembler says while it compiles a kernel."""

from __future__ import annotations

from layoutalg.codegen.kernel import KernelSource


def assembled(kernel: KernelSource) -> tuple[bytes, str]:
    """Return a kernel's machine code and the log: advice (``C7510`` to ``C7519``: multiplies that wait) is no error."""
    from cuda.bindings import nvrtc

    _, program = nvrtc.nvrtcCreateProgram(kernel.text.encode(), b"kernel", 0, [], [])
    options = [f"--gpu-architecture={kernel.arch}".encode(), b"--std=c++17"]
    (failed,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    log = b" " * nvrtc.nvrtcGetProgramLogSize(program)[1]
    nvrtc.nvrtcGetProgramLog(program, log)
    assert not failed, log.decode("utf-8", "replace")
    code = b" " * nvrtc.nvrtcGetCUBINSize(program)[1]
    nvrtc.nvrtcGetCUBIN(program, code)
    nvrtc.nvrtcDestroyProgram(program)
    return code, log.decode("utf-8", "replace").strip(" \n\0")

"""Compile kernel text to a cubin with the run-time compiler; needs no GPU and no driver.

Implementation notes: the output is always a cubin, because asking for PTX makes the toolchain look for the driver.
Recent cubins are cached by text and architecture.
"""

from __future__ import annotations

import functools
import re

from layoutalg.codegen.complaints import CompileError, lines_before, lines_of, refused
from layoutalg.codegen.kernel import KernelSource
from layoutalg.ground import limits
from layoutalg.ground.errors import Diagnostic, MalformedError, MissingExtraError

__all__ = ["CompileError", "to_cubin"]
_ASSEMBLER_LINE = re.compile(r"ptx input, line (\d+)")


def to_cubin(source: KernelSource | str, arch: str | None = None) -> bytes:
    """Compile a kernel text for one architecture.

    Args:
        source: A kernel, or complete CUDA text.
        arch: Real architecture such as ``"sm_90a"``; by default the kernel's own, or ``"sm_90a"`` for plain text.

    Returns:
        The cubin, an ELF file.
    """
    text = source.text if isinstance(source, KernelSource) else source
    if not isinstance(text, str):
        because = f"source must be a KernelSource or text, not a {type(text).__name__}"
        raise MalformedError(Diagnostic("LA506", "this is not a kernel", ("to_cubin",), because))
    if arch is None:
        arch = source.arch if isinstance(source, KernelSource) else "sm_90a"
    if not isinstance(arch, str) or not re.fullmatch(r"sm_\d{2,3}[af]?", arch):
        raise MalformedError(
            Diagnostic("LA512", "not an architecture name", because=f"arch must look like 'sm_90a', not {arch!r}")
        )
    return _compiled(text, arch)


@functools.lru_cache(maxsize=limits.KERNELS)
def _compiled(text: str, arch: str) -> bytes:
    try:
        from cuda.core import Program, ProgramOptions
    except ImportError as error:
        raise missing_cuda("compiling", str(error)) from None
    program = None
    try:
        program = Program(text, "c++", ProgramOptions(arch=arch, std="c++17"))
        code = bytes(program.compile("cubin").code)
    except (ImportError, OSError) as error:  # bindings without the compiler library
        raise missing_cuda("compiling", str(error)) from None
    except Exception as error:  # cuda.core's own error types differ between its versions
        program = None  # a stored exception would keep it alive, and its destructor complains at collection
        if type(error).__name__ in ("DynamicLibNotFoundError", "FunctionNotFoundError"):
            raise missing_cuda("compiling", str(error)) from None
        log = str(error)
        numbers = lines_of(log) or _assembled(text, arch)
        what = "NVRTC cannot compile the kernel"
        raise refused("LA511", what, f"arch {arch}", log, text, numbers) from None
    return code


def _assembled(text: str, arch: str) -> tuple[int, ...]:
    """Return the lines of the text whose inline assembly the assembler rejects; empty if unknown."""
    try:
        from cuda.bindings import nvrtc
    except ImportError:
        return ()

    def compiled(real: str) -> tuple[str, bytes]:
        _, program = nvrtc.nvrtcCreateProgram(text.encode(), b"default_program", 0, [], [])
        options = [f"--gpu-architecture={real}_{arch[3:]}".encode(), b"--std=c++17", b"--generate-line-info"]
        nvrtc.nvrtcCompileProgram(program, len(options), options)
        log = b" " * nvrtc.nvrtcGetProgramLogSize(program)[1]
        nvrtc.nvrtcGetProgramLog(program, log)
        made = b" " * nvrtc.nvrtcGetPTXSize(program)[1] if real == "compute" else b""
        if made:
            nvrtc.nvrtcGetPTX(program, made)
        nvrtc.nvrtcDestroyProgram(program)
        return log.decode("utf-8", "replace"), made

    log, assembly = compiled("sm")[0], compiled("compute")[1].decode("utf-8", "replace")
    return lines_before(assembly, _ASSEMBLER_LINE.finditer(log))


def missing_cuda(doing: str, reason: str) -> MissingExtraError:
    """Return the error for CUDA bindings that are not installed."""
    what = f'{doing} kernels needs the extra: pip install "layoutalg[cuda]"'
    because = reason.strip().splitlines()[0] if reason.strip() else "cuda.core cannot be imported"
    return MissingExtraError(Diagnostic("LA510", what, because=because))

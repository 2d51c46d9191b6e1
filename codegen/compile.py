"""Compile kernel text to a cubin or to PTX with the run-time compiler; needs no GPU and no driver.

Implementation notes: PTX comes from the bindings of the compiler itself, because ``cuda.core`` looks for the driver
when it is asked for PTX. What was compiled last is cached by text and architecture.
"""

from __future__ import annotations

import functools
import io
import re

from layoutalg.codegen.complaints import CompileError, lines_before, lines_of, refused
from layoutalg.codegen.kernel import KernelSource
from layoutalg.ground import limits
from layoutalg.ground.errors import Diagnostic, MalformedError, MissingExtraError

__all__ = ["CompileError", "to_cubin", "to_ptx"]
_ASSEMBLER_LINE = re.compile(r"ptx input, line (\d+)")
_CHANGED = re.compile(r"\(C751\d\)[^\n]*?\bline (\d+)|\(C751\d\)")
"""The assembler serialises warpgroup multiplies, or adds waits or fences that the text lacks."""


def to_cubin(source: KernelSource | str, arch: str | None = None, strict: bool | None = None) -> bytes:
    """Compile a kernel text for one architecture.

    Args:
        source: A kernel, or complete CUDA text.
        arch: Real architecture such as ``"sm_90a"``; by default the kernel's own, or ``"sm_90a"`` for plain text.
        strict: Whether to refuse a kernel whose warpgroup multiplies the assembler serialises or makes wait (its
            messages C7510 to C7519); by default if the kernel names its roles.

    Returns:
        The cubin, an ELF file.

    Raises: CompileError: LA511 with the compiler's log; LA981: what a strict build does not allow.
    """
    text, arch = _checked(source, arch, "to_cubin")
    code, log = _compiled(text, arch)
    if strict is None:
        strict = isinstance(source, KernelSource) and bool(source.roles)
    if strict and _CHANGED.search(log):
        said = "\n".join([line for line in log.splitlines() if _CHANGED.search(line)])
        what = "the assembler changes how warpgroup multiplies wait"
        raise refused("LA981", what, f"arch {arch}", said, text, _assembled(text, arch, _CHANGED))
    return code


def to_ptx(source: KernelSource | str, arch: str | None = None) -> str:
    """Return the PTX that the compiler makes of a kernel text; what it hands to the assembler for a cubin.

    Args:
        source: A kernel, or complete CUDA text.
        arch: Real architecture; by default as for ``to_cubin``.

    Raises: CompileError: LA511.
    """
    return _translated(*_checked(source, arch, "to_ptx"))


def nvrtc_version() -> str:
    """Return the name and version of the run-time compiler, such as ``"NVRTC 13.0"``."""
    try:
        from cuda.bindings import nvrtc

        _, major, minor = nvrtc.nvrtcVersion()
    except (ImportError, OSError, RuntimeError) as error:
        raise missing_cuda("compiling", str(error)) from None
    return f"NVRTC {major}.{minor}"


def _checked(source: object, arch: object, call: str) -> tuple[str, str]:
    """Return the text and the architecture."""
    text = source.text if isinstance(source, KernelSource) else source
    if not isinstance(text, str):
        because = f"source must be a KernelSource or text, not a {type(text).__name__}"
        raise MalformedError(Diagnostic("LA506", "this is not a kernel", (call,), because))
    if arch is None:
        arch = source.arch if isinstance(source, KernelSource) else "sm_90a"
    if not isinstance(arch, str) or not re.fullmatch(r"sm_\d{2,3}[af]?", arch):
        raise MalformedError(
            Diagnostic("LA512", "not an architecture name", because=f"arch must look like 'sm_90a', not {arch!r}")
        )
    return text, arch


@functools.lru_cache(maxsize=limits.KERNELS)
def _compiled(text: str, arch: str) -> tuple[bytes, str]:
    """Return the cubin and the compiler's log."""
    try:
        from cuda.core import Program, ProgramOptions
    except ImportError as error:
        raise missing_cuda("compiling", str(error)) from None
    program, written = None, io.StringIO()
    try:
        program = Program(text, "c++", ProgramOptions(arch=arch, std="c++17"))
        code = bytes(program.compile("cubin", logs=written).code)
    except (ImportError, OSError) as error:  # bindings without the compiler library
        raise missing_cuda("compiling", str(error)) from None
    except Exception as error:  # cuda.core's own error types differ between its versions
        program = None  # a stored exception would keep it alive, and its destructor complains at collection
        if type(error).__name__ in ("DynamicLibNotFoundError", "FunctionNotFoundError"):
            raise missing_cuda("compiling", str(error)) from None
        log = str(error)
        numbers = lines_of(log) or _assembled(text, arch, _ASSEMBLER_LINE)
        what = "NVRTC cannot compile the kernel"
        raise refused("LA511", what, f"arch {arch}", log, text, numbers) from None
    return code, written.getvalue()


@functools.lru_cache(maxsize=limits.KERNELS)
def _translated(text: str, arch: str) -> str:
    try:
        log, assembly = _run(text, f"compute_{arch[3:]}")
    except (ImportError, OSError, RuntimeError) as error:  # bindings without the compiler library
        raise missing_cuda("compiling", str(error)) from None
    if not assembly:
        raise refused("LA511", "NVRTC cannot compile the kernel", f"arch {arch}", log, text)
    return assembly


def _assembled(text: str, arch: str, message: re.Pattern[str]) -> tuple[int, ...]:
    """Return the lines of the text that the assembler's messages name; empty if unknown."""
    try:
        log, assembly = (_run(text, f"{kind}_{arch[3:]}", "--generate-line-info") for kind in ("sm", "compute"))
    except ImportError:
        return ()
    return lines_before(assembly[1], [found for found in message.finditer(log[0]) if found[1]])


def _run(text: str, arch: str, *options: str) -> tuple[str, str]:
    """Return the compiler's log and, for a virtual architecture, the PTX; empty if the text does not compile."""
    from cuda.bindings import nvrtc

    _, program = nvrtc.nvrtcCreateProgram(text.encode(), b"default_program", 0, [], [])
    given = [option.encode() for option in (f"--gpu-architecture={arch}", "--std=c++17", *options)]
    compiled = int(nvrtc.nvrtcCompileProgram(program, len(given), given)[0]) == 0
    # NVRTC writes in place: a bytes object of one byte would be the interpreter's own for that value
    log = bytearray(nvrtc.nvrtcGetProgramLogSize(program)[1])
    nvrtc.nvrtcGetProgramLog(program, log)
    made = bytearray(nvrtc.nvrtcGetPTXSize(program)[1] if compiled and arch.startswith("compute") else 0)
    if made:
        nvrtc.nvrtcGetPTX(program, made)
    nvrtc.nvrtcDestroyProgram(program)
    return log.decode("utf-8", "replace"), made.decode("utf-8", "replace").rstrip("\0 ")


def missing_cuda(doing: str, reason: str) -> MissingExtraError:
    """Return the error for CUDA bindings that are not installed."""
    what = f'{doing} kernels needs the extra: pip install "layoutalg[cuda]"'
    because = reason.strip().splitlines()[0] if reason.strip() else "cuda.core cannot be imported"
    return MissingExtraError(Diagnostic("LA510", what, because=because))

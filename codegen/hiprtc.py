"""Compile for AMD targets with hipRTC, if the system has it.

Implementation notes: the library is only loaded in a child process, because it aborts its process when asked for a
target that it does not know. Supported targets are therefore found by compiling a small kernel, and cached. Before ROCm
5.3 or so the compiler is part of the runtime library, so both names are tried.

References: HIP documentation, hipRTC programming guide.
"""

from __future__ import annotations

import functools
import glob
import os
import sys
import tempfile
from pathlib import Path

from layoutalg.codegen.complaints import ran, refused
from layoutalg.codegen.kernel import KernelSource
from layoutalg.ground import limits
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, MissingExtraError, RepresentabilityError
from layoutalg.targets.registry import vendor_of

CHECK = Checker("LA960", "hipRTC does not compile this")
NAMES = ("libhiprtc.so*", "libamdhip64.so*")
"""File names of the library; the first one found is used."""
PACKAGES = (
    "Debian and Ubuntu: apt-get install --no-install-recommends libamdhip64-5 libhiprtc-builtins5 libamd-comgr2; "
    'ROCm\'s own packages: hip-runtime-amd; or compile by clang: pip install "layoutalg[hip]"'
)
FOLDERS = ("/opt/rocm/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/lib", "/usr/lib")
_PROBE = 'extern "C" __global__ void probe(int* into) { into[0] = 1; }\n'
_CHILD = """
import ctypes, sys
path, arch, source, target = sys.argv[1:5]
library = ctypes.CDLL(path)
program, size = ctypes.c_void_p(), ctypes.c_size_t()
def call(name, *arguments):
    code = getattr(library, name)(*arguments)
    if code:
        words = library.hiprtcGetErrorString
        words.restype = ctypes.c_char_p
        sys.stderr.write(name + ": " + (words(code) or b"").decode("utf-8", "replace") + "\\n")
    return code
text = open(source, "rb").read()
if call("hiprtcCreateProgram", ctypes.byref(program), text, b"kernel.hip", 0, None, None):
    sys.exit(3)
options = [b"--offload-arch=" + arch.encode(), b"-std=c++17", b"-O3"]
code = library.hiprtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
if code:
    library.hiprtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    library.hiprtcGetProgramLog(program, log)
    sys.stderr.write(log.value.decode("utf-8", "replace"))
    sys.exit(2)
if call("hiprtcGetCodeSize", program, ctypes.byref(size)):
    sys.exit(3)
made = ctypes.create_string_buffer(size.value)
if call("hiprtcGetCode", program, made):
    sys.exit(3)
open(target, "wb").write(made.raw)
sys.stdout.flush()
import os
os._exit(0)  # the library's destructors may abort
"""


def found() -> Path | None:
    """Return the library's file on this system, or None. ``ROCM_PATH`` and ``LD_LIBRARY_PATH`` are searched first."""
    rocm = os.environ.get("ROCM_PATH")
    given = [f"{rocm}/lib"] * bool(rocm) + [part for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    for name in NAMES:
        for folder in (*given, *FOLDERS):
            files = sorted(glob.glob(f"{glob.escape(folder)}/{name}"), key=lambda file: (len(file), file))
            if files:
                return Path(files[0])
    return None


def supports(arch: str, library: Path | None = None) -> bool:
    """Return whether the library compiles for a target, by compiling a small kernel in a child process.

    Args:
        arch: An AMD target.
        library: The library's file; by default the system's own.
    """
    return _supports(_chosen(library), _checked_arch(arch))


def to_code_object(source: KernelSource, library: Path | None = None) -> bytes:
    """Return the code object of a HIP kernel, an ELF file that the HIP runtime loads.

    Args:
        source: A kernel whose ``arch`` is an AMD target.
        library: The library's file; by default the system's own.

    Raises: MissingExtraError: LA961. RepresentabilityError: LA962, for a target that the library does not know.
        CompileError: LA963, with the compiler's log and the lines it names. MalformedError: LA960.
    """
    kernel = CHECK.kind(source, KernelSource, "source")
    arch = _checked_arch(kernel.arch)
    chosen = _chosen(library)
    code, words = _compiled(chosen, arch, kernel.text)
    if code:
        return code
    if not _supports(chosen, arch):
        because = f"{chosen} fails on the smallest kernel: {words[-limits.COMPILER_WORDS :]}"
        raise RepresentabilityError(
            Diagnostic("LA962", f"this hipRTC does not support {arch}", (f"arch {arch}",), because)
        )
    raise refused("LA963", "hipRTC cannot compile the kernel", f"arch {arch}", words, kernel.text)


def _checked_arch(arch: object) -> str:
    if not isinstance(arch, str) or vendor_of(arch) != "amd" or not arch.isalnum():
        raise CHECK.malformed("arch", "must be an AMD target: gfx90a, gfx942, ...", arch)
    return arch


def _chosen(library: object) -> Path:
    chosen = CHECK.kind(library, Path, "library") if library is not None else found()
    if chosen is None or not chosen.is_file():
        because = f"no file {' or '.join(NAMES)}" if chosen is None else f"there is no file {chosen}"
        raise MissingExtraError(
            Diagnostic("LA961", f"hipRTC is not installed. {PACKAGES}", ("found",), because, source="hipRTC guide")
        )
    return chosen


@functools.lru_cache(maxsize=limits.KERNELS)
def _supports(path: Path, arch: str) -> bool:
    return bool(_compiled(path, arch, _PROBE)[0])


@functools.lru_cache(maxsize=limits.KERNELS)
def _compiled(path: Path, arch: str, text: str) -> tuple[bytes, str]:
    """Return the code object, or b"" and what the library printed before it failed or aborted."""
    with tempfile.TemporaryDirectory(prefix="layoutalg-") as folder:
        source, target = Path(folder, "kernel.hip"), Path(folder, "kernel.co")
        source.write_text(text, encoding="utf-8")
        beside = [str(path.resolve().parent), os.environ.get("LD_LIBRARY_PATH", "")]
        around = os.environ | {"LD_LIBRARY_PATH": ":".join(part for part in beside if part)}
        command = [sys.executable, "-c", _CHILD, str(path), arch, str(source), str(target)]
        code, words = ran(command, f"compiling for {arch}", around)
        if code == 0 and target.is_file():
            return target.read_bytes(), ""
    ended = f"the library's process was killed by signal {-code}" if code < 0 else ""
    return b"", "\n".join(part for part in (words.strip(), ended) if part) or f"exit status {code}"

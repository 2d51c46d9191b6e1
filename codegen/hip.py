"""Compile HIP text for AMD targets with the clang of the ``ziglang`` package; needs no ROCm.

Implementation notes: the compiler runs in three steps (assembly, object, code object), because the driver's own link
step looks for a linker under a name that the package does not provide.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from layoutalg.codegen.complaints import lines_before, lines_of, ran, refused
from layoutalg.codegen.kernel import KernelSource
from layoutalg.ground import limits
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, MissingExtraError
from layoutalg.targets.registry import vendor_of

CHECK = Checker("LA901", "this is not a kernel of an AMD target")
EXTRA = 'pip install "layoutalg[hip]"'
_ASSEMBLER_LINE = re.compile(r"kernel\.s:(\d+):\d+: error")


def to_code_object(source: KernelSource) -> bytes:
    """Return the code object of a HIP kernel, an ELF file that the HIP runtime loads.

    Args:
        source: A kernel whose ``arch`` is an AMD target.

    Raises: MissingExtraError: LA902. CompileError: LA903, with the compiler's log and the lines it names.
        MalformedError: LA901.
    """
    kernel = _checked(source)
    return _compiled(kernel.text, kernel.arch)[1]


def to_assembly(source: KernelSource) -> str:
    """Return the assembly of a HIP kernel.

    Args:
        source: A kernel whose ``arch`` is an AMD target.
    """
    kernel = _checked(source)
    return _compiled(kernel.text, kernel.arch)[0]


def available() -> bool:
    """Return whether the compiler is installed."""
    return importlib.util.find_spec("ziglang") is not None


def _checked(source: object) -> KernelSource:
    kernel = CHECK.kind(source, KernelSource, "source")
    if vendor_of(kernel.arch) != "amd":
        rule = "must be a kernel for gfx90a, gfx942, ...; for NVIDIA use codegen.to_cubin"
        raise CHECK.malformed("source", rule, kernel.arch)
    return kernel


@functools.lru_cache(maxsize=limits.KERNELS)
def _compiled(text: str, arch: str) -> tuple[str, bytes]:
    if not available():
        because = "the package ziglang, which provides clang for AMD targets, is not installed"
        raise MissingExtraError(Diagnostic("LA902", f"compiling for AMD needs the extra: {EXTRA}", because=because))
    with tempfile.TemporaryDirectory(prefix="layoutalg-") as folder:
        names = {end: str(Path(folder, f"kernel.{end}")) for end in ("hip", "s", "o", "co")}
        Path(names["hip"]).write_text(text, encoding="utf-8")
        offload = [f"--offload-arch={arch}", "--cuda-device-only", "-nogpuinc", "-nogpulib"]
        listing = ["clang", "-x", "hip", *offload, "-O3", "-std=c++17", "-w", "-S", names["hip"], "-o", names["s"]]
        whole = ["clang", "-target", "amdgcn-amd-amdhsa", f"-mcpu={arch}", "-x", "assembler", "-c"]
        whole += [names["s"], "-o", names["o"]]
        linking = ["ld.lld", "-shared", names["o"], "-o", names["co"]]
        log = _zig(listing, arch) or _zig(whole, arch) or _zig(linking, arch)
        if log:
            numbers = lines_of(log)
            # the assembler names lines of assembly
            if not numbers and not _zig([*listing, "-gline-tables-only"], arch):
                assembly = Path(names["s"]).read_text(encoding="utf-8")
                numbers = lines_before(assembly, _ASSEMBLER_LINE.finditer(_zig(whole, arch)))
            raise refused("LA903", "clang cannot compile the kernel", f"arch {arch}", log, text, numbers)
        return Path(names["s"]).read_text(encoding="utf-8"), Path(names["co"]).read_bytes()


def _zig(arguments: Sequence[str], arch: str) -> str:
    """Run the compiler; return its log if it fails, otherwise an empty text."""
    code, log = ran([sys.executable, "-m", "ziglang", *arguments], f"compiling for {arch}")
    return log or "no output" if code else ""

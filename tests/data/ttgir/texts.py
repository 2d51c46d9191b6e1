"""Compile the kernels beside this file to TTGIR, without a GPU: ``python texts.py [NAME ...]`` writes NAME.ttgir.

Needs Triton 3.9.0. Locations are left out, so that texts do not depend on where the sources are.
"""

# mypy: ignore-errors

import os
import pathlib
import re
import sys

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"

import gluon_kernels
import triton_kernels
from explained import kernels
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend
from triton.experimental.gluon._runtime import GluonASTSource

HERE = pathlib.Path(__file__).parent
BLOCK = {"BM": 128, "BN": 128, "BK": 64}


def _tile(rows, columns):
    return f"tensordesc<fp16[{rows},{columns}]>"


def _gluon(rows, columns):
    return f"tensordesc<fp16[{rows},{columns}],{gluon_kernels.layout(rows, columns)!r}>"


POINTERS = {"a": "*fp16", "b": "*fp16", "c": "*fp16", "M": "i32", "N": "i32", "K": "i32"}
TILES = {"a": _tile(128, 64), "b": _tile(64, 128), "c": _tile(128, 128), "K": "i32"}
PERSISTENT = {"a": _tile(128, 64), "b": _tile(64, 128), "c": _tile(128, 128), "M": "i32", "N": "i32", "K": "i32"}
ATTENTION = {"q": _tile(128, 64), "k": _tile(64, 64), "v": _tile(64, 64), "o": _tile(128, 64)}
ATTENTION |= {"length": "i32", "scale": "fp32"}

TEXTS = {}
"""Name of a text: kernel, types of the arguments, constants, architecture, options."""


def _add(name, kernel, signature, constants, architectures=(90, 100), **options):
    for arch in architectures:
        TEXTS[f"{name}_sm{arch}"] = (kernel, signature, constants, arch, options)


# Triton 3.9.0 ends with an error in its own pass where it specializes warps of these kernels for sm_90
for _stages in (2, 3, 4):
    _plain = {**BLOCK, "SPECIAL": False}
    _add(f"gemm_tma_{_stages}", triton_kernels.gemm_descriptors, TILES, _plain, num_stages=_stages)
for _stages in (3, 4):
    _constants = {**BLOCK, "stride": 4096}
    _add(f"gemm_cp_async_{_stages}", triton_kernels.gemm_pointers, POINTERS, _constants, num_stages=_stages)
_add("gemm_specialized", triton_kernels.gemm_descriptors, TILES, {**BLOCK, "SPECIAL": True}, (100,), num_stages=3)
for _suffix, _flat, _special in (("", False, False), ("_flat", True, False), ("_specialized", False, True)):
    _constants = {**BLOCK, "FLAT": _flat, "SPECIAL": _special}
    _targets = (100,) if _special else (90, 100)
    _add(f"gemm_persistent{_suffix}", triton_kernels.gemm_persistent, PERSISTENT, _constants, _targets, num_stages=3)
for _suffix, _special in (("", False), ("_specialized", True)):
    _constants = {"BM": 128, "BN": 64, "D": 64, "SPECIAL": _special}
    _targets = (100,) if _special else (90, 100)
    _add(f"attention{_suffix}", triton_kernels.attention, ATTENTION, _constants, _targets, num_stages=3)
_add("copy_tma", triton_kernels.copy, {"a": _tile(128, 64), "c": _tile(128, 64), "rows": "i32"}, {"BM": 128, "BN": 64})
gluon_kernels.register(TEXTS, _gluon)
_FLOATS = {"x": "*fp32", "y": "*fp32"}
for _name, _kernel, _signature, _constants, _target in (
    ("normalized", kernels.normalized, {**_FLOATS, "w": "*fp32", "stride": "i32", "n": "i32"}, {"R": 4, "B": 512}, 90),
    ("updated", kernels.updated, {"x": "*fp16", "y": "*fp16", "v": "*i32", "n": "i32"}, {"B": 1024}, 90),
    ("summed", kernels.summed, _FLOATS, {"R": 16, "B": 128}, 90),
    ("rows", kernels.rows, {"x": "*fp16", "i": "*i32", "y": "*fp16", "M": "i32"}, {"B": 32, "D": 64}, 100),
    ("added", kernels.added, {**_FLOATS, "M": "i32", "N": "i32"}, {"B": 64, "D": 32}, 90),
    ("softmax", kernels.softmax, {**_FLOATS, "h": "*fp16", "stride": "i32", "n": "i32"}, {"B": 2048}, "gfx942"),
):
    TEXTS[f"explained/{_name}"] = (_kernel, _signature, _constants, _target, {"divisible": ("n", "stride")})


def compiled(name):
    """Return the TTGIR of a text."""
    kernel, signature, constants, arch, options = TEXTS[name]
    source_of = GluonASTSource if name.startswith("gluon") else ASTSource
    signature = signature | dict.fromkeys(constants, "constexpr")
    options = dict(options)
    divisible = options.pop("divisible", ())
    attributes = {
        (place,): [["tt.divisibility", 16]]
        for place, (argument, kind) in enumerate(signature.items())
        if kind[0] == "*" or argument in divisible
    }
    source = source_of(kernel, signature, constants, attributes)
    target = GPUTarget("hip", arch, 64) if isinstance(arch, str) else GPUTarget("cuda", arch, 32)
    backend = make_backend(target)
    options = backend.parse_options({**options, **source.parse_options()})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = source.make_ir(
        target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    stages, metadata = {}, {"target": target, **options.__dict__}
    backend.add_stages(stages, options, source.language)
    for stage, run in stages.items():
        module = run(module, metadata)
        if stage == "ttgir":
            break
    text = re.sub(r' ?loc\((?:#loc\d*|unknown|"[^"]*")\)', "", str(module))
    return "\n".join([line.rstrip() for line in text.splitlines() if not line.startswith("#loc")]) + "\n"


if __name__ == "__main__":
    for _name in sys.argv[1:] or TEXTS:
        (HERE / f"{_name}.ttgir").write_text(compiled(_name))

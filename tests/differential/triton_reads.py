"""Where Triton's compiled kernels point the lanes of AMD's transposing LDS reads; run as ``python triton_reads.py``.

Prints one JSON list of ``{"arch", "bits", "rows", "columns", "lanes"}``: a kernel loads a rows x columns matrix operand
whose rows are contiguous in LDS and stores it with contiguous columns. ``lanes[lane]`` lists per read the number of the
element that it addresses in LDS and, for each element that it returns, where that is stored, in elements. The kernel is
not run: its LLVM text is evaluated per lane, which takes integer arithmetic only.
"""

from __future__ import annotations

import json
import re

import triton
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.amd import AMDMFMALayout, AMDWMMALayout, cdna4, cdna5

MFMA = AMDMFMALayout(4, [32, 32, 16], True, [1, 1])
MFMA4 = AMDMFMALayout(4, [32, 32, 64], True, [1, 1])
WMMA = AMDWMMALayout(3, True, [], [], [16, 16, 32], [], 2)
WMMA8 = AMDWMMALayout(3, True, [], [], [16, 16, 64], [], 2)
CASES = (
    ("gfx950", 64, 16, 32, 16, MFMA, 8),
    ("gfx950", 64, 8, 32, 32, MFMA, 16),
    ("gfx950", 64, 4, 32, 64, MFMA4, 16),
    ("gfx1250", 32, 16, 32, 32, WMMA, 8),
    ("gfx1250", 32, 8, 32, 64, WMMA8, 16),
    ("gfx1250", 32, 4, 32, 128, WMMA8, 16),
)
"""(architecture, lanes of a wave, element bits, rows, columns, result layout, k width)."""


@gluon.jit
def kernel(
    target, rows: gl.constexpr, columns: gl.constexpr, memory: gl.constexpr, held: gl.constexpr, kind: gl.constexpr
):
    buffer = gl.allocate_shared_memory(kind, [rows, columns], memory)
    value = buffer.load(held)
    row = gl.arange(0, rows, gl.SliceLayout(1, held))
    column = gl.arange(0, columns, gl.SliceLayout(0, held))
    gl.store(target + row[:, None] * columns + column[None, :], value)


@gluon.jit
def kernel4(
    target, rows: gl.constexpr, columns: gl.constexpr, memory: gl.constexpr, held: gl.constexpr, old: gl.constexpr
):
    buffer = gl.allocate_shared_memory(gl.uint8, [rows // 2, columns], memory)
    value = cdna4.load_shared_fp4_repacked(buffer, held) if old else cdna5.load_shared_fp4_repacked(buffer, held)
    row = gl.arange(0, rows, gl.SliceLayout(1, held))
    column = gl.arange(0, columns // 2, gl.SliceLayout(0, held))
    gl.store(target + row[:, None] * (columns // 2) + column[None, :], value)


def integer(text: str, values: dict) -> int:
    return values[text] if text.startswith("%") else int(text) if text.lstrip("-").isdigit() else 0


def evaluate(text: str, lane: int) -> list:
    """Return ``[address, [offset per element]]`` per read, in program order."""
    values: dict = {f"%{argument}": 0 for argument in range(4)}
    reads: list = []
    binary = {
        "shl": lambda a, b: a << b,
        "lshr": lambda a, b: a >> b,
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
    }
    for line in text.splitlines():
        line = line.split(", !dbg")[0].strip()
        name, _, rest = line.partition(" = ")
        if "workitem.id.x()" in line and name.startswith("%"):
            values[name] = lane
        elif read := re.search(r"call <(\d+) x (\w+)> @llvm.amdgcn.ds.(?:read|load).tr\w*\.\w+.*\((.*) (\S+)\)", line):
            width = int(read[1]) * {"i32": 4, "half": 2}[read[2]]
            reads.append([integer(read[4], values), {}])
            values[name] = [(len(reads) - 1, byte) for byte in range(width)]
        elif shuffle := re.search(r"shufflevector <\d+ x (\w+)> (\S+), .*, <(\d+) x i32> (.*)$", rest):
            size = {"half": 2, "i8": 1}[shuffle[1]]
            picks = re.findall(r"i32 (\d+)", shuffle[4]) or ["0"] * int(shuffle[3])
            source = values[shuffle[2]]
            values[name] = [source[int(pick) * size + byte] for pick in picks for byte in range(size)]
        elif cast := re.match(r"(?:bitcast|zext|addrspacecast|freeze)\b.* (%\d+)(?: to .*)?$", rest):
            values[name] = values[cast[1]]
        elif step := re.match(r"getelementptr .*?(?:\[(\d+) x i8\]|i8), ptr addrspace\(\d\) (\S+), i\d+ (\S+)$", rest):
            values[name] = integer(step[2], values) + int(step[1] or 1) * integer(step[3], values)
        elif (sum_ := re.match(r"(\w+) .*?i\d+ (\S+), (\S+)$", rest)) and sum_[1] in binary:
            values[name] = binary[sum_[1]](integer(sum_[2], values), integer(sum_[3], values))
        elif store := re.match(r"store <\d+ x \w+> (\S+), ptr addrspace\(1\) (\S+),", line):
            for byte, (number, place) in enumerate(values[store[1]]):
                reads[number][1][place] = integer(store[2], values) + byte
        elif rest or line.startswith("store"):
            raise ValueError(line)
    return [[address, [offsets[byte] for byte in sorted(offsets)]] for address, offsets in reads]


def elements(offsets: list, bits: int) -> list:
    """Return element numbers from byte offsets: every second byte of 16-bit elements, two per byte of 4-bit ones."""
    return [8 * offset // bits + half for offset in offsets[:: max(1, bits // 8)] for half in range(max(1, 8 // bits))]


def main() -> None:
    found = []
    for arch, lanes, bits, rows, columns, result, width in CASES:
        kind, name = {16: (gl.float16, "*fp16"), 8: (gl.float8e5, "*fp8e5"), 4: (arch == "gfx950", "*u8")}[bits]
        constants = {
            "rows": rows,
            "columns": columns,
            "memory": gl.SwizzledSharedLayout(1, 1, 1, [0, 1]),
            "held": gl.DotOperandLayout(0, result, width),
            "old" if bits == 4 else "kind": kind,
        }
        source = GluonASTSource(kernel4 if bits == 4 else kernel, {"target": name}, constants)
        compiled = triton.compile(source, target=GPUTarget("hip", arch, lanes), options={"num_warps": 1})
        text = re.search(r"define amdgpu_kernel.*?\{\n(.*?)\n\}", compiled.asm["llir"], re.S)[1]
        answers = []
        for lane in range(lanes):
            reads = evaluate(text, lane)
            answers.append([[8 * address // bits, elements(offsets, bits)] for address, offsets in reads])
        found.append({"arch": arch, "bits": bits, "rows": rows, "columns": columns, "lanes": answers})
    print(json.dumps(found))


if __name__ == "__main__":
    main()

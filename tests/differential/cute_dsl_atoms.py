"""Run CuTe DSL texts: a JSON list of [dtype, text] on standard input; the shared layouts that result, or the error.

Run with an interpreter that has nvidia-cutlass-dsl (4.8.1 was used); no device is needed.
"""

from __future__ import annotations

import json
import sys

import cutlass
from cutlass import cute
from cutlass.cute.nvgpu import cpasync

TEXTS = json.load(sys.stdin)
FOUND = []


def run():
    for dtype, text in TEXTS:
        scope = {"cute": cute, "cpasync": cpasync}
        lines = text.splitlines()
        exec("\n".join(lines[:3]), scope)
        pointer = cute.make_ptr(getattr(cutlass, dtype), 4096, cute.AddressSpace.gmem, assumed_align=256)
        scope["gmem"] = cute.make_tensor(pointer, scope["gmem_layout"])
        try:
            exec(lines[3], scope)
            FOUND.append(str(scope["smem_layout"]))
        except Exception as error:
            FOUND.append(repr(error))


@cute.jit
def main():
    run()


main()
print(json.dumps(FOUND))

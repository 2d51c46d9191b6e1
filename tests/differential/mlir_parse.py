"""Parse and verify MLIR: a JSON list of texts on standard input, one of "" or of errors on standard output.

Run with an interpreter that has jaxlib (0.10.2 was used), whose MLIR knows the dialects nvgpu and nvvm.
"""

from __future__ import annotations

import json
import sys

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import nvgpu, nvvm  # noqa: F401  registers them

registry = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(registry)
found = []
for text in json.load(sys.stdin):
    with ir.Context() as context:
        context.append_dialect_registry(registry)
        context.load_all_available_dialects()
        try:
            module = ir.Module.parse(text)
            found.append("" if module.operation.verify() else "does not verify")
        except Exception as error:
            found.append(str(error))
print(json.dumps(found))

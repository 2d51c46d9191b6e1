"""Kernel text, compilation, launch and validation on a device or on the simulator."""

from __future__ import annotations

if __name__ != "layoutalg.codegen":
    raise ImportError("import layoutalg.codegen, not codegen: this folder is only its source location")

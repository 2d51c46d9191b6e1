"""Hardware facts: data and predicates with their evidence, no search."""

from __future__ import annotations

from typing import TYPE_CHECKING

if __name__ != "layoutalg.targets":
    raise ImportError("import layoutalg.targets, not targets: this folder is only its source location")

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.targets import banks, global_memory, layouts, model, nvidia, pipeline_costs, registry, target_model
    from layoutalg.targets.target_model import TargetModel, model_of

__all__ = [
    "TargetModel",
    "banks",
    "global_memory",
    "layouts",
    "model",
    "model_of",
    "nvidia",
    "pipeline_costs",
    "registry",
    "target_model",
]

_MODULES = ("banks", "global_memory", "layouts", "model", "nvidia", "pipeline_costs", "registry")
__getattr__, __dir__ = door(
    __name__,
    {f"{__name__}.{name}": name for name in _MODULES}
    | {f"{__name__}.target_model": "TargetModel model_of target_model"},
)

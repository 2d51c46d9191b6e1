"""Hardware facts: data and predicates with their evidence, no search."""

from __future__ import annotations

from typing import TYPE_CHECKING

if __name__ != "layoutalg.targets":
    raise ImportError("import layoutalg.targets, not targets: this folder is only its source location")

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.targets import banks as banks
    from layoutalg.targets import global_memory as global_memory
    from layoutalg.targets import layouts as layouts
    from layoutalg.targets import model as model
    from layoutalg.targets import nvidia as nvidia
    from layoutalg.targets import pipeline_costs as pipeline_costs
    from layoutalg.targets import registry as registry
    from layoutalg.targets import target_model as target_model
    from layoutalg.targets.target_model import TargetModel as TargetModel
    from layoutalg.targets.target_model import model_of as model_of


_MODULES = ("banks", "global_memory", "layouts", "model", "nvidia", "pipeline_costs", "registry")
__getattr__, __dir__ = door(
    __name__,
    {f"{__name__}.{name}": name for name in _MODULES}
    | {f"{__name__}.target_model": "TargetModel model_of target_model"},
)

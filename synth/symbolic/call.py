"""``layoutalg.tensormap``, for tensors of concrete and symbolic sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from layoutalg.proofs.symbolic.plan import SymbolicPlan
from layoutalg.proofs.symbolic.problem import SymbolicProblem, has_names
from layoutalg.proofs.tensor import Tensor
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProbe, TensorMapProblem
from layoutalg.proofs.tensormap.problem import CHECK, MapOptions
from layoutalg.synth.symbolic.planner import synthesize_symbolic
from layoutalg.synth.tensormap.probe import plan_or_probe

_SEARCH = ("seconds", "repair")
_OF_NUMBERS, _OF_NAMES = ("documented_only", "interleave"), ("for_all",)


class CallOptions(MapOptions, total=False):
    """Options of ``tensormap``: those of its problem, and of the search."""

    seconds: float
    repair: bool
    documented_only: bool
    interleave: str
    for_all: bool


def tensormap(
    tensor: object,
    tile: Sequence[int],
    smem: object = None,
    target: str = "sm_90a",
    direction: str = "load",
    **options: Unpack[CallOptions],
) -> TensorMapPlan | TensorMapProbe | SymbolicPlan:
    """Return a proved plan that copies tiles of a tensor to or from a shared-memory layout.

    Args:
        tensor: A ``layoutalg.Tensor``, ``(shape, stride, dtype)`` or an array of another library. If it has symbolic
            sizes, the answer is a ``SymbolicPlan``: one plan for all sizes that meet its ``guard``.
        tile: Tile extents in elements, outermost dimension first.
        smem: A layout of any family or its text: tile coordinates, outermost first, to element offsets. Defaults to
            row-major.
        target: Architecture. If no device of it was measured, the answer is a ``TensorMapProbe``: a plan that documents
            allow there and that is proved for sm_90a, with the reason why it is no proof.
        direction: ``"load"`` (global to shared) or ``"store"``.
        options: As for ``TensorMapProblem.of`` (``swizzle``, ``axes``, ``bounds``, ``element_strides``, ...) and
            ``synthesize_tensormap`` (``seconds``, ``repair``, ``documented_only``). Symbolic sizes: also
            ``for_all``, but not ``documented_only``.

    Raises: As ``TensorMapProblem.of`` and ``synthesize_tensormap``; BudgetError: no symbolic plan found or excluded.

    Example:
        >>> plan = tensormap(((4096, 8192), None, "bf16"), (128, 64), "Sw<3,3,3> o 0 o (128,64):(64,1)")
        >>> plan.tensor_map.box, plan.tensor_map.swizzle, plan.expect_tx_bytes
        ((64, 128), '128B', 16384)
        >>> plan = tensormap(Tensor(("M", "K"), assume=("K % 64 == 0",)), (128, 64), "Sw<3,3,3> o 0 o (128,64):(64,1)")
        >>> print(plan.guard)
        K % 8 == 0, 1 <= K <= 2**31, 1 <= M <= 2**31
    """
    CHECK.options(options, CallOptions.__annotations__, tensormap)
    symbolic = _has_names(tensor, options.get("bounds"))
    own = (*_SEARCH, *(_OF_NAMES if symbolic else _OF_NUMBERS))
    search: Any = {name: value for name, value in options.items() if name in own}
    stated: Any = {"arch": target, "direction": direction} | {
        name: value for name, value in options.items() if name not in own
    }
    if symbolic:
        return synthesize_symbolic(SymbolicProblem.of(tensor, tile, smem, **stated), **search)
    return plan_or_probe(TensorMapProblem.of(tensor, tile, smem, **stated), **search)


def _has_names(tensor: object, bounds: object) -> bool:
    if isinstance(tensor, Tensor):
        tensor = tensor.shape, tensor.strides, None
    return has_names([*(tensor[:-1] if isinstance(tensor, (tuple, list)) else ()), bounds])

"""Export plans and descriptors to other systems: C++, PTX, MLIR, Gluon, CuTe DSL.

An export expresses the plan exactly, or is refused with the rule of the other system that prevents it.
"""

from __future__ import annotations

from typing import Any

from layoutalg.codegen.exports.mlir import mlir_text
from layoutalg.codegen.exports.ptx import Patch, patches, ptx_text
from layoutalg.codegen.exports.python import cute_dsl_text, gluon_text
from layoutalg.codegen.exports.refusal import RULES as EXPORT_RULES
from layoutalg.codegen.exports.refusal import refuse
from layoutalg.codegen.exports.symbolic import family_text, symbolic_cpp, symbolic_ptx
from layoutalg.codegen.host import cpp_text
from layoutalg.codegen.kernel import checked_name
from layoutalg.codegen.plans import instead, upheld
from layoutalg.ground.check import Checker
from layoutalg.proofs.admission import Admitted
from layoutalg.proofs.ragged import RaggedFamily
from layoutalg.proofs.symbolic.plan import SymbolicPlan
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.proofs.wgmma import OperandPlan
from layoutalg.targets.nvidia.tensormap import TensorMap

EXPORT_FORMS = ("cpp", "ptx", "mlir", "gluon", "cute_dsl")
CHECK = Checker("LA893", "invalid argument to export()")


def export(
    plan: TensorMapPlan | TensorMap | OperandPlan | SymbolicPlan | RaggedFamily | Admitted,
    form: str,
    name: str | None = None,
    target: str = "sm_90a",
    base: TensorMapPlan | TensorMap | None = None,
) -> str:
    """Return a plan or a map as source text for another system; the text states the version it is for.

    Args:
        plan: A plan of ``synthesize_tensormap`` or ``synthesize_wgmma``, a bare map, or an answer of
            ``admissible`` that contains one of these. For ``"cpp"`` and ``"ptx"`` also a plan for all sizes, whose
            text tests the guard and patches the sizes in, and a ragged family.
        form: One of ``EXPORT_FORMS``.
        name: Name in the text; default ``tensor_map`` or ``operand``.
        target: Architecture of a bare map; a plan has its own.
        base: For ``"ptx"``: the map to patch into this one.

    Example:
        >>> tm = TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B")
        >>> export(tm, "cpp").splitlines()[2]
        '// For CUDA 12.0 and later, sm_90a; the bytes are those that the driver of CUDA 13.0 writes there.'
    """
    CHECK.choice(form, "form", EXPORT_FORMS)
    value: Any = plan.descriptor if isinstance(plan, Admitted) else plan
    if form in ("cpp", "ptx") and base is None and isinstance(value, (SymbolicPlan, RaggedFamily)):
        name = checked_name("tensor_map" if name is None else name)
        if isinstance(value, RaggedFamily):
            return family_text(value, form, name)
        return symbolic_cpp(value, name) if form == "cpp" else symbolic_ptx(value, name)
    if not isinstance(value, (TensorMapPlan, TensorMap, OperandPlan)):
        rule = "must be a plan of a tensor map or of a wgmma operand, or a tensor map"
        raise CHECK.malformed("plan", rule, value, instead(value))
    if base is not None:
        if form != "ptx" or isinstance(value, OperandPlan):
            raise CHECK.malformed("base", "must be left out, except to export a map as ptx", base)
        if not isinstance(base, (TensorMapPlan, TensorMap)):
            raise CHECK.malformed("base", "must be a plan of a tensor map, or a tensor map", base)
    for each in (value, base):
        if isinstance(each, (TensorMapPlan, OperandPlan)):
            upheld(each)
    plain = "operand" if isinstance(value, OperandPlan) else "tensor_map"
    name = checked_name(plain if name is None else name)
    if isinstance(value, TensorMapPlan):
        target = value.problem.arch
    if form == "cpp":
        return cpp_text(value, name, target)
    if form == "ptx":
        return ptx_text(value, name, target, base)
    if form == "mlir":
        return mlir_text(value, name)
    if isinstance(value, OperandPlan):
        refuse(form, "GLUON_KIND" if form == "gluon" else "CUTE_KIND", "this is an operand")
    if isinstance(value, TensorMap):
        raise CHECK.malformed("plan", f"must be a plan for {form}: a bare map has no shared layout", value)
    return gluon_text(value) if form == "gluon" else cute_dsl_text(value)


__all__ = ["EXPORT_FORMS", "EXPORT_RULES", "Patch", "export", "patches"]

"""Certificates of ``wgmma`` operands: descriptors read a shared-memory tile, or none do.

In a statement element (m, k) has the number m + M k, which the layout maps to its byte offset from the tile base
(one-bit elements: bit offset) before the swizzle, which acts on absolute addresses; swizzles are 0 to 3 for NONE, 32B,
64B and 128B.
"""

from __future__ import annotations

from itertools import zip_longest

from layoutalg.ground.check import Checker
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.evidence import false, proved
from layoutalg.proofs.certify.stages import Function
from layoutalg.proofs.tensormap.swizzle import PHASES
from layoutalg.proofs.wgmma import OperandPlan, OperandProblem

check = Checker("LA435", "invalid claim about an operand or banks")
SWIZZLES = tuple(PHASES)


def operand(plan: OperandPlan) -> Certificate:
    """Return a certificate that a plan's descriptors read what its problem requests.

    Kind ``wgmma-operand``: for every tile base that is a multiple of the plan's alignment and keeps addresses below
    2^18, each tile element is read once, from its requested byte.

    Raises: MalformedError: LA435. AdmissibilityError: LA427: a descriptor reads another byte. BudgetError: LA428.

    Example:
        >>> from layoutalg.synth.wgmma import canonical_operand, synthesize_wgmma
        >>> made = operand(synthesize_wgmma(canonical_operand("A", (64, 32))))
        >>> print(made.check().certificate["claim"])
        2 descriptors read 64 x 32 elements
        >>> made.statement["swizzle"], [hex(word) for word in made.statement["words"]]
        (2, ['0x8000002000010000', '0x8000002000010002'])
    """
    check.kind(plan, OperandPlan, "plan")
    return proved("wgmma-operand", operand_statement(plan), [{}], f"operand({plan.problem})")


def no_operand(problem: OperandProblem) -> Certificate:
    """Return a certificate that no descriptors read a shared-memory tile, under any single major and swizzle.

    Kind ``no-operand``: with a swizzle undone, three addresses fix the start and both strides, so each part of 64 rows
    of A or 8 rows of B has one candidate (larger B instructions read such parts too). For every base offset, some
    part's candidate has no descriptor, one whose reads were not measured (a stride of 0, addresses beyond 18 bits), or
    one that reads a wrong byte.

    Args:
        problem: A problem, usually one that ``layoutalg.synth.synthesize_wgmma`` refused.

    Raises: MalformedError: LA435. AdmissibilityError: LA427: descriptors do read it. BudgetError: LA428.

    Example:
        >>> made = no_operand(OperandProblem("B", (8, 16), (((8, 1),), ((16, 24),))))
        >>> print(made.check().certificate["claim"])
        no descriptors read these 8 x 16 elements
    """
    check.kind(problem, OperandProblem, "problem")
    statement = problem_statement(problem, problem.align_bytes)
    return proved("no-operand", statement, [{}], f"no_operand({problem})")


def operand_statement(plan: OperandPlan) -> dict[str, object]:
    """Return a plan's claims in the checker's form.

    Raises: AdmissibilityError: LA427: its instructions do not cover the tile in order, rows slowest.
    """
    rows, columns = plan.problem.shape
    grid = [(mn, k) for mn in range(0, rows, plan.rows) for k in range(0, columns, plan.problem.instruction_k)]
    found = [(tile.mn, tile.k) for tile in plan.tiles]
    if found != grid:
        wrong = next(f"{got} for {expected}" for got, expected in zip_longest(found, grid) if got != expected)
        raise false(f"operand({plan.problem})", f"the instructions do not cover the tile in order: {wrong}")
    claimed = {"major": plan.major, "rows": plan.rows, "words": [tile.encoded for tile in plan.tiles]}
    return problem_statement(plan.problem, plan.align_bytes) | claimed


def problem_statement(problem: OperandProblem, align_bytes: int) -> dict[str, object]:
    """Return a problem's requests for tile bases of an alignment, in the checker's form.

    Example:
        >>> made = problem_statement(OperandProblem("B", (8, 16), (((8, 16),), ((16, 1),)), "32B"), 256)
        >>> made["shape"], made["layout"]["stages"], made["swizzle"]
        ([8, 16], [['split', [8, 16]], ['affine', [[32, 2]], [0]]], 1)
    """
    digits = [digit for modes in problem.smem_modes for digit in modes]
    extents = [extent for extent, _ in digits]
    # the layout counts bits for one-bit elements, otherwise bytes
    unit, scale = (1, 8) if problem.element_bits < 8 else (problem.element_bits // 8, 1)
    strides = [unit * stride for _, stride in digits]
    stages = [["split", extents], ["affine", [strides], [scale * problem.smem_base_bytes]]]
    layout = Function(stages, problem.shape[0] * problem.shape[1]).document()
    kind: dict[str, object] = {} if problem.element_bits == 16 else {"dtype": problem.dtype}
    kind |= {"sparse": True} if problem.sparse else {}
    return kind | {
        "operand": problem.operand,
        "shape": list(problem.shape),
        "layout": layout,
        "swizzle": SWIZZLES.index(problem.swizzle),
        "align": align_bytes,
    }

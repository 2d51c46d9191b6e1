"""Tensors with names, their plans, documents and refusals."""

from __future__ import annotations

import json
import pickle
from fractions import Fraction

import numpy as np
import pytest

import layoutalg as la
from layoutalg.ground.errors import AdmissibilityError, BudgetError, MalformedError
from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.proofs.symbolic import Guard, SymbolicPlan, SymbolicProblem, prove
from layoutalg.proofs.symbolic.residues import Axis, residues
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.synth import InadmissibleError, synthesize_symbolic

SMEM = "Sw<3,3,3> o 0 o (64,64):(64,1)"
TENSOR = la.Tensor(("M", "K"), dtype="bf16", assume=("K % 8 == 0",))


def test_a_tensor_with_names() -> None:
    assert TENSOR.stride == ("K", 1)
    assert TENSOR.names == ("K", "M")
    assert eval(repr(TENSOR), {"Tensor": la.Tensor}) == TENSOR
    assert pickle.loads(pickle.dumps(TENSOR)) == TENSOR
    assert hash(TENSOR) == hash(la.Tensor(("M", "K"), ("K", 1), assume="K % 8 == 0"))
    assert la.Tensor(("B", 4, "2*K")).stride == ("8*K", "2*K", 1)
    assert TENSOR.at({"M": 3, "K": 16}) == la.Tensor((3, 16))
    assert repr(la.Tensor((8, 8))) == "Tensor(shape=(8, 8), stride=(8, 1), dtype='bf16', base_align_bytes=256)"
    import sympy

    assert la.Tensor((sympy.Symbol("M"), 2 * sympy.Symbol("K"))) == la.Tensor(("M", "2*K"))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [((("M", "K"), ("K",)), "LA375"), ((("M +", 8),), "LA620"), ((("M", 8.0),), "LA375"), ((("M", 0),), "LA375")],
)
def test_malformed_tensors(arguments: tuple[object, ...], code: str) -> None:
    with pytest.raises(MalformedError, match=code):
        la.Tensor(*arguments)


def test_names_where_numbers_are_needed() -> None:
    with pytest.raises(MalformedError, match="LA860"):
        la.suggest(TENSOR, (64, 64))
    with pytest.raises(MalformedError, match="LA860"):
        TensorMapProblem.of(TENSOR, (64, 64))
    with pytest.raises(MalformedError, match="LA621"):
        la.Tensor(("M", "K"), assume=("K % 8 == 0", "K % 8 == 4"))
    with pytest.raises(MalformedError, match="LA623"):
        TENSOR.at({"M": 3})


def test_a_plan_and_its_document() -> None:
    plan = la.tensormap(TENSOR, (64, 64), SMEM)
    assert isinstance(plan, SymbolicPlan)
    assert str(plan.guard) == "K % 8 == 0, 1 <= K <= 2**31, 1 <= M <= 2**31"
    assert plan.tensor_map.dims == ("K", "M")
    assert plan.tensor_map.strides_bytes == ("2*K",)
    assert plan.oob == "exact"
    again = SymbolicPlan.from_json(json.loads(json.dumps(plan.to_json())))
    assert again == plan
    assert again.certificate == plan.certificate
    assert isinstance(prove(again), Proved)
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert str(plan.patch[0]).startswith("dims[0] = K: word 8 bits 31:0 = K - 1")
    concrete = plan.specialise(M=100, K=72)
    assert isinstance(concrete, TensorMapPlan)
    assert concrete == la.tensormap(la.Tensor((100, 72)), (64, 64), SMEM)
    assert plan.encode({"M": 100, "K": 72}) == concrete.raw
    assert plan.key(M=100, K=72) == plan.key(M=7, K=8) == (0, str(plan.guard))


def test_concrete_tensors_plan_as_before() -> None:
    assert isinstance(la.tensormap(np.zeros((128, 128), np.float16), (64, 64)), TensorMapPlan)
    assert isinstance(la.tensormap(((128, 128), None, "f16"), (64, 64)), TensorMapPlan)
    assert isinstance(la.tensormap((("M", 128), None, "f16"), (64, 64)), SymbolicPlan)


def test_the_guard_in_other_languages() -> None:
    guard = la.tensormap(la.Tensor(("B", "M", "K")), (1, 64, 64), "Sw<3,3,3> o 0 o (1,64,64):(0,64,1)").guard
    formula = guard.to_sympy()
    expression = guard.to_c().replace("&&", "and").replace("(__int128)", "").replace("LL", "")
    for sizes in ({"B": 2, "M": 7, "K": 64}, {"B": 2, "M": 7, "K": 12}, {"B": 1, "M": 2**30, "K": 1024}):
        expected = guard.holds(sizes)
        assert bool(formula.subs({symbol: sizes[symbol.name] for symbol in formula.free_symbols})) == expected
        assert bool(eval(expression, {}, dict(sizes))) == expected


def test_cases_and_keys() -> None:
    plan = la.tensormap(la.Tensor(("M", "K")), (64, 128), "Sw<3,3,3> o 0 o (64,(64,2)):(64,(1,4096))")
    assert [len(case.issues) for case in plan.cases] == [1, 2]
    assert plan.key(M=5, K=128)[0] == 0
    assert plan.key(M=5, K=72)[0] == 1
    assert len(plan.specialise(M=5, K=128).issues) == 1
    smem = "Sw<3,3,3> o 0 o (64,(64,2)):(64,(1,4096))"
    assumed = la.tensormap(la.Tensor(("M", "K"), assume=("K % 64 == 0",)), (64, 128), smem)
    assert [len(case.issues) for case in assumed.cases] == [1]


def test_refusals_and_repairs() -> None:
    with pytest.raises(InadmissibleError, match="STRIDE_ALIGN") as refused:
        la.tensormap(la.Tensor(("M", "K"), assume=("K % 8 == 4",)), (64, 64), SMEM)
    names = [(repair.name, repair.detail) for repair in refused.value.repairs]
    assert names == [("assume", "K % 8 == 0"), ("pad", "pad K to a multiple of 8")]
    repaired = SymbolicProblem.from_json(refused.value.repairs[0].document)
    assert isinstance(synthesize_symbolic(repaired), SymbolicPlan)
    with pytest.raises(InadmissibleError, match="K % 8 == 0"):
        la.tensormap(la.Tensor(("M", "K")), (64, 64), SMEM, for_all=True)
    assert la.tensormap(TENSOR, (64, 64), SMEM, for_all=True).guard.holds(M=1, K=8)
    with pytest.raises(InadmissibleError, match="INNER_CONTIGUOUS"):
        la.tensormap(la.Tensor(("N", "K"), (1, "N")), (64, 64), SMEM)


def test_nothing_is_said_where_nothing_was_proved() -> None:
    with pytest.raises(BudgetError, match="LA410"):
        la.tensormap(TENSOR, (64, 64), SMEM, seconds=0)
    six = la.Tensor(("A", "B", "C", "D", "E", "F"))
    with pytest.raises((BudgetError, InadmissibleError)):
        la.tensormap(six, (1, 1, 1, 1, 4, 64))


def test_sums_whose_names_are_no_multiples() -> None:
    plan = la.tensormap(la.Tensor(("M", "K + 4"), assume=("X >= 100",)), (64, 64), SMEM)
    assert plan.guard.holds(M=3, K=12)
    assert not plan.guard.holds(M=3, K=16)
    assert plan.names == ("K", "M")


def test_a_false_claim_is_refuted() -> None:
    plan = la.tensormap(TENSOR, (64, 64), SMEM).with_changes(certificate=None)
    tm = plan.tensor_map
    for wrong in (
        {"dims": ("K", "M + 1")},
        {"dims": ("K - 8", "M")},
        {"strides_bytes": ("2*K + 16",)},
        {"base_address": 16},
        {"box": (64, 32)},
        {"swizzle": "64B"},
    ):
        fields = {name: getattr(tm, name) for name in tm.__dataclass_fields__} | wrong
        assert not isinstance(prove(plan.with_changes(tensor_map=type(tm)(**fields))), Proved), wrong
    free = plan.with_changes(guard=Guard((), plan.names))
    verdict = prove(free)
    assert isinstance(verdict, Refuted), verdict
    assert isinstance(prove(plan.with_changes(origin_map=plan.origin_map[::-1])), Refuted)
    with pytest.raises(AdmissibilityError, match="LA861"):
        plan.specialise(M=1, K=9)


def test_one_period_is_a_proof() -> None:
    """Against the definition, over many bounds and origins."""
    for multiple, cut, shift in ((64, 64, 0), (8, 2, 0), (6, 3, 1), (4, 1, 0), (4, 1, 1), (6, 2, -1)):
        t = np.arange(multiple)
        axis = Axis(multiple // cut, Fraction(1, cut), Fraction(shift, cut))
        found = residues(t, [t // cut], [axis], multiple, 0)
        for bound in range(1, 4 * multiple):
            extent = axis.alpha * bound + axis.beta
            if extent.denominator != 1:
                assert bound % found.period not in found.whole
                continue
            u = np.arange(-2, bound // multiple + 3)
            x = u[:, None] * multiple + t
            wanted = (x >= 0) & (x < bound)
            coordinate = u[:, None] * axis.step + t // cut
            moved = (coordinate >= 0) & (coordinate < extent)
            assert (bound % found.period in found.covered) <= bool((moved | ~wanted).all())
            if bound >= multiple:  # below, some elements are never in bounds
                assert (bound % found.period in found.exact) == bool((moved == wanted).all())


def test_tiles_of_whole_rows_take_one_copy_for_every_number_of_rows():
    plan = la.tensormap(la.Tensor(("M", 64)), (64, 64), "(64,64):(64,1)")
    assert len(plan.issues) == 1
    assert str(plan.guard) == "1 <= M <= 2**31"


def test_rows_of_eight_bytes_need_no_count_divisible_by_four():
    """Even counts are stored in one copy; any are loaded in two, multiples of 32 rows in one."""
    store = la.tensormap(la.Tensor(("M", 8), dtype="u8"), (64, 8), direction="store")
    assert store.guard.broken_at({"M": 6}) is None
    assert len(store.issues) == 1
    load = la.tensormap(la.Tensor(("M", 8), dtype="u8"), (64, 8))
    assert load.guard.broken_at({"M": 7}) is None
    assert len(load.issues) == 2
    assert [len(plan.issues) for plan in load.better] == [1]


def test_lists_that_hold_themselves_have_no_names():
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(MalformedError):
        la.tensormap((endless, None, "bf16"), (8, 64))

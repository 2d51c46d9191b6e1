"""The one question of every consumer: what it takes, what it answers, what it refuses to be asked."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import layoutalg as la
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.refusal import Broken
from layoutalg.proofs.admission import SCHEMA
from layoutalg.proofs.certify import conditions
from layoutalg.proofs.checker import check
from layoutalg.proofs.tensormap import TensorMapProblem
from layoutalg.synth.admission.request import request_of

SWIZZLED = "Sw<3,3,3> o 0 o (64,64):(64,1)"
FRAGMENT = "F2[register=(0,1)(8,0)(0,8), lane=(0,2)(0,4)(1,0)(2,0)(4,0) -> dim0:16, dim1:16]"


@pytest.mark.parametrize("consumer", ["tma", "wgmma.A"])
def test_a_layout_its_text_and_its_table_have_one_answer(consumer):
    layout = la.parse(SWIZZLED)
    table = np.asarray(layout.table()).reshape((64, 64), order="F")
    answers = [
        la.admissible(given, consumer, tile=(64, 64))
        for given in (SWIZZLED, layout, la.convert.to_linear(layout), table)
    ]
    assert all(isinstance(answer, la.Admitted) for answer in answers)
    assert {answer.certificate.seal for answer in answers} == {answers[0].certificate.seal}
    assert all(bool(answer.certificate.check()) for answer in answers)


def test_a_refusal_names_rules_and_repairs_and_is_false():
    answer = la.admissible("(64,64):(65,1)", "tma")
    assert not answer
    assert answer.rules == ("SMEM_DENSE",)
    assert answer.repairs
    assert answer.certificate.check()
    assert "SMEM_DENSE" in str(answer)


def test_a_table_of_no_form_is_refused_with_a_coordinate():
    table = np.random.default_rng(0).permutation(4096).reshape(64, 64)
    answer = la.admissible(table, "wgmma.B")
    assert isinstance(answer, la.Refused)
    assert answer.witness["coordinate"] == (3, 0)


@pytest.mark.parametrize("consumer", ["tma", "wgmma.A"])
@pytest.mark.parametrize("text", [SWIZZLED, "(64,64):(65,1)"])
def test_answers_are_json(consumer, text):
    found = json.loads(json.dumps(la.admissible(text, consumer).to_json()))
    assert found["schema"] == SCHEMA
    assert found["verdict"] in ("admitted", "refused")


@pytest.mark.parametrize(
    "wrong",
    [
        {"consumer": "wgma.A"},
        {"consumer": 3},
        {"consumer": "wgmma.C"},
        {"target": "sm_70"},
        {"dtype": "float"},
        {"align_bytes": 48},
        {"layout": np.zeros((2, 2))},
        {"layout": 3},
        {"colour": "red"},
        {"tile": (3, 3)},
    ],
)
def test_what_cannot_be_asked_names_the_argument(wrong):
    with pytest.raises(MalformedError):
        la.admissible(**({"layout": SWIZZLED, "consumer": "wgmma.A"} | wrong))


def test_a_certificate_made_later_is_made_once_and_the_answers_are_equal():
    asked = []

    def certificate():
        asked.append(1)
        return made.certificate

    made = la.admissible(SWIZZLED, "wgmma.A")
    fields = {name: getattr(made, name) for name in ("consumer", "target", "dtype", "descriptor", "evidence")}
    later = la.Admitted.certified_later(certificate, **fields)
    assert (bool(later), str(later), asked) == (True, str(made), [])
    assert later.certificate is later.certificate is made.certificate
    assert later == made
    assert later.to_json() == made.to_json()
    assert asked == [1]
    assert not hasattr(later, "nonsense")


def test_a_refusal_by_several_rules_has_the_first_certificate_and_says_nothing_twice():
    refused = la.Refused.by(
        [Broken("A", "one", {"at": 1}), Broken("B", "two"), Broken("A", "one")], "tma", "sm_90a", "f16"
    )
    assert (refused.rules, refused.reasons, refused.witness) == (("A", "B"), ("one", "two"), {"at": 1})
    assert refused.certified(lambda: None).certificate is None
    request = request_of(SWIZZLED, "tma", "sm_90a", "bf16", None, 1024, {})
    nothing, named = Broken("A", "one", {}, lambda _: None), Broken("B", "two", {}, conditions.named("a", "b"))
    assert bool(request.refused(nothing, named).certificate.check())


def test_a_layout_without_outputs_has_no_offsets() -> None:
    with pytest.raises(la.MalformedError, match="LA376"):
        la.admissible("F2[ -> ]", "tma", tile=(1,))


OFFERED = (
    "tma", "tma.store", "tma.reduce.add", "tma.multicast", "bulk", "wgmma.A", "wgmma.B.sparse", "ldmatrix.x4",
    "stmatrix.x2.trans", "ld.shared.v4.b32", "st.shared.b32", "cp.async", "cp.async.cg.16",
)  # fmt: skip
AMD = (("ds_read_b128", "gfx942"), ("ds_write_b64", "gfx950"), ("buffer_load_dwordx4_lds", "gfx950"))
EVERYWHERE = [(name, "sm_90a") for name in OFFERED] + [("tcgen05.A", "sm_100a"), *AMD]
REGISTERS = (
    ("mma.m16n8k16.f32.bf16.A", "sm_90a"), ("wgmma.D", "sm_90a"), ("wgmma.A.registers", "sm_90a"),
    ("tcgen05.D", "sm_100a"), ("mfma.v_mfma_f32_32x32x8_f16.A", "gfx942"),
)  # fmt: skip


WRONG: tuple[tuple[str, object], ...] = (
    ("layout", None), ("layout", True), ("layout", 1.5), ("layout", {}), ("layout", object()), ("layout", ()),
    ("layout", [[0, 1], [2]]), ("layout", [[True, False]]), ("layout", np.zeros((0, 4), int)),
    ("layout", np.zeros((2, 2))), ("layout", [[0, 2**70]]), ("layout", [[0, -1]]),
    ("layout", np.ma.masked_array([[0, 1]], [[0, 1]])), ("layout", "(64,64):(-64,1)"),
    ("layout", "(64,64):(64,-1)"),
    ("layout", la.CuteLayout((64, 64), (-64, 1))), ("layout", la.convert.to_integer(la.parse("(64,64):(64,-1)"))),
    ("tile", ()), ("tile", (0, 4)), ("tile", (-1, 4096)), ("tile", 64), ("tile", "64"), ("tile[0]", (64.0, 64)),
    ("tile[0]", (True, 64)), ("tile[0]", ((8, 8), 64)), ("tile[0]", (None, 64)), ("tile", {64: 1}),
    ("dtype", "f17"), ("dtype", True), ("dtype", "half2"), ("dtype", b"bf16"), ("dtype", 17),
    ("target", None), ("target", "sm_999"), ("target", ["sm_90a"]), ("target", True), ("target", "SM_90A"),
    ("align_bytes", 0), ("align_bytes", -16), ("align_bytes", 48), ("align_bytes", True), ("align_bytes", 16.0),
    ("align_bytes", 2**70), ("seconds", "1"), ("seconds", -1), ("seconds", float("nan")),
    ("options", {"colour": "red"}),
)  # fmt: skip


@pytest.mark.parametrize(("consumer", "target"), EVERYWHERE)
def test_bad_input_is_refused_by_the_name_of_the_argument(consumer, target):
    for argument, wrong in WRONG:
        name = argument.partition("[")[0]
        given = {"layout": SWIZZLED, "target": target} | (wrong if name == "options" else {name: wrong})
        with pytest.raises(MalformedError) as caught:
            la.admissible(consumer=consumer, **given)
        said = caught.value.diagnostic
        text = str(caught.value)
        assert argument in (*said.where, "target") if name != "target" else "target" in text, (argument, wrong)
        assert len(text) < 1000, (argument, wrong)
        assert not isinstance(wrong, str) or name == "layout" or wrong[:20] in text, (argument, wrong)


@pytest.mark.parametrize(("consumer", "target"), EVERYWHERE)
def test_integers_of_numpy_lists_and_equal_tiles_change_nothing(consumer, target):
    wanted = la.admissible(SWIZZLED, consumer, target)
    for more in (
        {"tile": (64, 64)}, {"tile": [64, 64]}, {"tile": np.array([64, 64])}, {"tile": (np.int64(64), np.uint8(64))},
        {"align_bytes": np.int32(1024)}, {"dtype": "torch.bfloat16"},
    ):  # fmt: skip
        assert la.admissible(SWIZZLED, consumer, target, **more) == wanted


@pytest.mark.parametrize(("consumer", "target"), EVERYWHERE)
@pytest.mark.parametrize("tile", [(64,), (64, 63), (4096,), (64, 64, 1), (2**40, 1), (2**70,), (1, 64, 64)])
def test_a_tile_that_the_layout_is_not_of_is_refused(consumer, target, tile):
    with pytest.raises(MalformedError, match="LA376"):
        la.admissible(SWIZZLED, consumer, target, tile=tile)


@pytest.mark.parametrize(("consumer", "target"), EVERYWHERE)
@pytest.mark.parametrize(
    "huge", ["(64,64):(1099511627776,1)", "(1099511627776,2):(1,1099511627776)", "(1099511627776,64):(0,1)"]
)
def test_huge_layouts_are_refused_or_unknown_at_once(consumer, target, huge):
    try:
        found = la.admissible(huge, consumer, target)
    except MalformedError as error:
        assert {"layout", "tile"} & set(error.diagnostic.where)
    else:
        assert isinstance(found, la.Refused | la.Unknown)


@pytest.mark.parametrize("name", ["lanes", "warps"])
@pytest.mark.parametrize(("consumer", "target"), [("ldmatrix.x4", "sm_90a"), ("ds_read_b128", "gfx942")])
def test_axes_of_registers_come_with_registers(consumer, target, name):
    with pytest.raises(MalformedError, match="must be given together with registers"):
        la.admissible(SWIZZLED, consumer, target, **{name: ["lane"]})


@pytest.mark.parametrize("wrong", [{"sparse": 1}, {"sparse": "x"}, {"ws": None}, {"ws": 0}])
def test_flags_are_true_or_false(wrong):
    with pytest.raises(MalformedError) as caught:
        la.admissible("Sw<3,3,3> o 0 o (128,64):(64,1)", "tcgen05.A", "sm_100a", **wrong)
    assert caught.value.diagnostic.where == tuple(wrong)


def test_out_of_bounds_classes_belong_to_tensors():
    for wrong in ({"oob": "x"}, {"oob": 3}, {"oob": "exact"}, {"oob": []}):
        with pytest.raises(MalformedError) as caught:
            la.admissible(SWIZZLED, "tma", **wrong)
        assert caught.value.diagnostic.where == ("oob",)
    assert la.admissible(SWIZZLED, "tma", tensor=la.Tensor((512, 512)), oob="exact")


@pytest.mark.parametrize("consumer", ["tma", "tma.store", "bulk"])
def test_the_type_of_a_tensor_is_asked_for_once(consumer):
    tensor = la.Tensor((512, 512), dtype="f32")
    text = "(64,64):(64,1)"
    found = la.admissible(text, consumer, tensor=tensor)
    assert found == la.admissible(text, consumer, dtype="f32", tensor=tensor)
    assert found.dtype == "f32"
    with pytest.raises(MalformedError, match=r"(?s)in     dtype.*must be f32, as in the tensor"):
        la.admissible(text, consumer, dtype="f16", tensor=tensor)
    assert la.admissible(text, "tma", dtype="e4m3", tensor=la.Tensor((512, 512), dtype="u8")).dtype == "e4m3"


def test_what_is_said_beside_a_problem_agrees_with_it():
    problem = TensorMapProblem.of(((512, 512), None, "f16"), (64, 64), SWIZZLED)
    wanted = la.admissible(problem, "tma")
    assert wanted.dtype == "f16"
    assert la.admissible(problem, "tma", "sm_90a", "torch.float16", tile=(64, 64)) == wanted
    for wrong in (
        {"target": "sm_90"}, {"dtype": "f32"}, {"tile": (32, 64)}, {"tensor": la.Tensor((512, 512))}, {"oob": "weak"},
    ):  # fmt: skip
        with pytest.raises(MalformedError) as caught:
            la.admissible(problem, "tma", **wrong)
        assert caught.value.diagnostic.where == tuple(wrong)


@pytest.mark.parametrize(("consumer", "target"), EVERYWHERE + list(REGISTERS))
def test_a_problem_is_asked_whole_of_its_shared_side_or_refused(consumer, target):
    """What touches only the tile in shared memory answers as for the layout; nothing else takes a part of a problem."""
    tensor, direction = ((512, 512), None, "bf16"), "store" if consumer.startswith(("tma.store", "tma.r")) else "load"
    problem = TensorMapProblem.of(tensor, (64, 64), SWIZZLED, direction=direction)
    if target != "sm_90a":
        problem = dataclasses.replace(problem, arch=target) if target == "sm_100a" else None
    if problem is None:
        return
    whole = consumer.startswith(("tma", "bulk"))
    if (consumer, target) in REGISTERS or consumer.startswith("cp.async"):
        with pytest.raises(MalformedError, match="a TensorMap problem") as caught:
            la.admissible(problem, consumer, target)
        assert caught.value.diagnostic.where == ("layout",)
        return
    found = la.admissible(problem, consumer, target)
    alone = la.admissible(SWIZZLED, consumer, target, **({"tensor": tensor} if whole else {}))
    assert type(found) is type(alone)
    assert found if consumer != "wgmma.B.sparse" else True
    assert getattr(found, "rules", ()) == getattr(alone, "rules", ())
    if found and not whole:
        assert found.certificate.seal == alone.certificate.seal


@pytest.mark.parametrize(
    ("layout", "consumer", "target", "dtype", "rule"),
    [
        (SWIZZLED, "ldmatrix.m16n16.x1.trans.b8", "sm_90a", "e4m3", "ACCESS_ARCH"),
        (FRAGMENT, "mma.m16n8k16.f32.e4m3.A", "sm_80", "e4m3", "MMA_ARCH"),
        (FRAGMENT, "mma.sp.m16n8k64.f32.e4m3.A", "sm_80", "e4m3", "MMA_ARCH"),
        (SWIZZLED, "stmatrix.x4", "sm_80", None, "NO_STMATRIX"),
    ],
)
def test_what_a_target_lacks_is_refused_with_a_certificate(layout, consumer, target, dtype, rule):
    found = la.admissible(layout, consumer, target, dtype)
    assert found.rules == (rule,)
    assert check(found.certificate.to_json())[0] == 0


def test_rows_of_different_lengths_are_refused_in_words():
    with pytest.raises(MalformedError, match="metadata"):
        la.admissible("(64,32):(32,1)", "wgmma.A.sparse", dtype="f16", metadata=[[1], [2, 3]])
    request = {"schema": "layoutalg/admission-request/1", "layout": [[1], [2, 3]], "consumer": "wgmma.A"}
    request |= {"target": "sm_90a", "dtype": "f16", "tile": [2, 2], "align_bytes": 16}
    with pytest.raises(MalformedError, match="rows of one length"):
        la.admissible(request, "wgmma.A")

"""Seven inputs for which a peer writes a wrong map without a word: refused with a repair that validates, or carried."""

from __future__ import annotations

import pytest

from layoutalg.ground.verdict import Proved
from layoutalg.proofs.tensormap import TensorMapProblem, check
from layoutalg.synth import InadmissibleError, synthesize_tensormap

ROWS = "(64,64):(64,1)"
REFUSED = {
    "row pitch of 1026 bytes": ((((1024, 512), (513, 1), "bf16"), (64, 64), ROWS), {}, "STRIDE_ALIGN"),
    "column-major tensor, K-major tile": ((((1024, 512), (1, 1024), "bf16"), (64, 64), ROWS), {}, "INNER_CONTIGUOUS"),
    "inner box of 8 bytes": ((((1024, 512), None, "bf16"), (64, 4), "(64,4):(4,1)"), {}, "BOX_INNER_16B"),
    "stride of -128 bytes": ((((64, 64), (-64, 1), "bf16"), (64, 64), ROWS), {}, "STRIDE_RANGE"),
    "base 8 bytes on": ((((1024, 512), None, "bf16"), (64, 64), ROWS), {"base_elem_offset": 4}, "BASE_ALIGN"),
}
CARRIED = {
    "pitch of 2^40 bytes": (((4, 512), (2**39, 1), "bf16"), (2, 64), "(2,64):(64,1)"),
    "2^33 rows": (((2**33, 64), None, "bf16"), (64, 64), ROWS),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_repair_that_validates(name):
    given, options, rule = REFUSED[name]
    with pytest.raises(InadmissibleError) as caught:
        synthesize_tensormap(TensorMapProblem.of(*given, **options))
    assert caught.value.violations[0].rule == rule
    assert caught.value.repairs
    for repair in caught.value.repairs:
        plan = synthesize_tensormap(TensorMapProblem.from_json(repair.document))
        assert isinstance(check(plan), Proved)


@pytest.mark.parametrize("name", CARRIED)
def test_carried_by_a_map_that_is_right(name):
    plan = synthesize_tensormap(TensorMapProblem.of(*CARRIED[name]))
    assert isinstance(check(plan), Proved)
    assert max(plan.tensor_map.dims) <= 2**31
    assert all(stride < 2**40 for stride in plan.tensor_map.strides_bytes)

"""Construction of tensor maps: what is representable, what is refused, and that values behave as values."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from layoutalg.ground.errors import MalformedError
from layoutalg.targets.nvidia import tensormap
from layoutalg.targets.nvidia.tensormap import TensorMap


def make(**changes: Any) -> TensorMap:
    fields: dict[str, Any] = {
        "dtype": "bf16",
        "dims": (512, 1024),
        "strides_bytes": (1024,),
        "box": (64, 64),
        "swizzle": "128B",
        "l2_promotion": "128B",
    }
    return TensorMap(**{**fields, **changes})


def test_defaults() -> None:
    tm = TensorMap("u8", (64, 4), (64,), (16, 2))
    assert (tm.element_strides, tm.interleave, tm.swizzle) == ((1, 1), "NONE", "NONE")
    assert (tm.l2_promotion, tm.oob_fill, tm.base_address, tm.rank) == ("NONE", "ZERO", 0, 2)


def test_is_a_value() -> None:
    tm = make(element_strides=[1, 2], dims=np.array([512, 1024]), base_address=np.int64(4096))
    assert eval(repr(tm)) == tm
    assert pickle.loads(pickle.dumps(tm)) == tm == copy.deepcopy(tm)
    assert hash(tm) == hash(eval(repr(tm)))
    assert all(type(value) is int for value in (*tm.dims, tm.base_address))


@pytest.mark.parametrize("rank", range(9))
def test_any_rank_is_representable(rank: int) -> None:
    tm = TensorMap("u8", (64,) * rank, (64,) * max(rank - 1, 0), (16,) + (1,) * (rank - 1) if rank else ())
    assert tm.rank == rank
    assert (tensormap.violations(tm) == ()) == (1 <= rank <= 5)


def test_values_that_hardware_refuses_are_representable() -> None:
    assert tensormap.violations(make(dims=(0, -1), strides_bytes=(-(2**63),), box=(2**63 - 1, 0), base_address=-1))


@pytest.mark.parametrize(
    ("changes", "code", "part"),
    [
        ({"dtype": "fp16"}, "LA301", "dtype 'fp16' is not known"),
        ({"dtype": None}, "LA301", "dtype None is not known"),
        ({"dtype": ["bf16"]}, "LA301", "is not known"),
        ({"swizzle": "96B"}, "LA301", "swizzle '96B' is not known"),
        ({"interleave": 0}, "LA301", "interleave 0 is not known"),
        ({"l2_promotion": "512B"}, "LA301", "l2_promotion"),
        ({"oob_fill": "nan"}, "LA301", "oob_fill"),
        ({"dims": (512.0, 1024)}, "LA300", "dims[0] = 512.0 is a float"),
        ({"dims": (True, 1024)}, "LA300", "dims[0] = True is a bool"),
        ({"dims": "512"}, "LA300", "not a sequence of integers"),
        ({"dims": 512}, "LA300", "not a sequence of integers"),
        ({"dims": np.ones((2, 2), np.int64)}, "LA300", "not one-dimensional"),
        ({"dims": np.array([1.0, 2.0])}, "LA300", "not an integer"),
        ({"dims": (2**63, 1)}, "LA300", "does not fit a signed 64-bit integer"),
        ({"base_address": -(2**63) - 1}, "LA300", "does not fit a signed 64-bit integer"),
        ({"base_address": "0"}, "LA300", "base_address is not an integer"),
        ({"strides_bytes": ()}, "LA300", "strides_bytes needs 1, not 0"),
        ({"strides_bytes": (1024, 1024)}, "LA300", "strides_bytes needs 1, not 2"),
        ({"box": (64,)}, "LA300", "box needs 2, not 1"),
        ({"element_strides": (1, 1, 1)}, "LA300", "element_strides needs 2, not 3"),
    ],
)
def test_malformed_fields_are_refused(changes: dict[str, Any], code: str, part: str) -> None:
    with pytest.raises(MalformedError) as caught:
        make(**changes)
    assert caught.value.diagnostic.code == code
    assert part in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_enumerations_follow_the_driver() -> None:
    codes = [entry.code for entry in tensormap.DTYPES.values()]
    assert codes == list(range(16))
    assert tensormap.SWIZZLES[:4] == ("NONE", "32B", "64B", "128B")
    assert tensormap.element_bytes("f64") == 8
    for packed in ("u4_align8", "u4_align16", "u6_align16"):
        assert tensormap.DTYPES[packed].packed
        with pytest.raises(MalformedError, match="LA302"):
            tensormap.element_bytes(packed)
    assert set(tensormap.PLAIN_DTYPES) - set(tensormap.BIT_PRESERVING_DTYPES) == {"f32_ftz", "tf32", "tf32_ftz"}


def test_counts() -> None:
    tm = make(dtype="f32", box=(8, 5), element_strides=(2, 2), swizzle="128B")
    assert tensormap.loaded_counts(tm) == (8, 3)
    assert tensormap.transaction_bytes(tm) == 8 * 3 * 4
    assert tensormap.row_pitch_bytes(tm) == 128
    assert tensormap.footprint_bytes(tm) == 3 * 128
    assert tensormap.box_bytes(tm) == 4 * 2 * 4
    plain = make(swizzle="NONE")
    assert tensormap.footprint_bytes(plain) == tensormap.transaction_bytes(plain) == 8192


@pytest.mark.parametrize("changes", [{"box": (0, 1)}, {"element_strides": (1, 0)}, {"element_strides": (1, -3)}])
def test_counts_of_no_box_are_refused(changes: dict[str, Any]) -> None:
    for count in (tensormap.transaction_bytes, tensormap.footprint_bytes, tensormap.box_bytes):
        with pytest.raises(MalformedError, match="LA302"):
            count(make(**changes))


def test_swizzle_facts() -> None:
    for mode in tensormap.SWIZZLES:
        period = tensormap.swizzle_period_bytes(mode)
        addresses = np.arange(4 * period)
        image = tensormap.apply_swizzle(mode, addresses)
        assert np.array_equal(tensormap.apply_swizzle(mode, image), addresses)
        assert np.array_equal(np.sort(image), addresses)
        assert np.array_equal(image[period : 2 * period], image[:period] + period)
        if mode != "NONE":
            half = period // 2
            assert not np.array_equal(image[half:period], image[:half] + half)
            span = tensormap.swizzle_span_bytes(mode)
            assert np.array_equal(image // span, addresses // span)
    assert [tensormap.swizzle_period_bytes(mode) for mode in ("NONE", "32B", "64B", "128B")] == [16, 256, 512, 1024]
    assert tensormap.apply_swizzle("128B", np.zeros((0, 3), np.int64)).shape == (0, 3)
    with pytest.raises(MalformedError, match="LA303"):
        tensormap.apply_swizzle("128B", [-1])
    with pytest.raises(MalformedError, match="LA303"):
        tensormap.apply_swizzle("128B", [1.5])
    with pytest.raises(MalformedError, match="LA301"):
        tensormap.swizzle_xor("96B")

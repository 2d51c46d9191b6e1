"""The arrays of a launch: what fits is passed on, what does not is refused by the name of the argument."""

from __future__ import annotations

import numpy as np
import pytest

from layoutalg.codegen import copy_kernel, gather_kernel, hostsim, launch, staging_kernel, transpose_kernel
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.kernels import transpose_ring_kernel
from layoutalg.codegen.launch import DeviceTensor
from layoutalg.ground.errors import MalformedError

GATHER = gather_kernel((4, 100), 1, 8, "f32")
TRANSPOSE = transpose_kernel((8, 12), "f32")
SOURCE, INDEX, RESULT = np.zeros((4, 100), np.float32), np.zeros((4, 8), np.int32), np.zeros((4, 8), np.float32)
WIDE = np.arange(400, dtype=np.float32).reshape(4, 100)


class Foreign:
    """A tensor of another library."""

    def __init__(self, array):
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


def frozen(array):
    array = array.copy()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(("places", "words"), [
    ({"source": SOURCE[:, :99]}, "source must have shape"),
    ({"source": SOURCE.T}, "source must have shape"),
    ({"source": np.zeros((100, 4), np.float32).T}, "np.ascontiguousarray"),
    ({"source": SOURCE.astype(np.float64)}, "source must have elements of 4 bytes, not float64"),
    ({"source": SOURCE.astype(object)}, "not object"),
    ({"source": 0}, "source must be an array or a nonzero 64-bit address"),
    ({"source": True}, "source must be an array or a nonzero 64-bit address"),
    ({"source": 1 << 64}, "source must be an array or a nonzero 64-bit address"),
    ({"source": 4098}, "source must be 4-byte aligned, but is off by 2 bytes"),
    ({"source": Foreign(SOURCE)}, r"source = launch.from_dlpack\(source\)"),
    ({"source": [1.0]}, "source must be an array or a nonzero 64-bit address"),
    ({"index": INDEX.astype(np.int64)}, r"index must have elements of 4 bytes, not int64[\s\S]*keeps every value"),
    ({"index": INDEX.astype(np.int64)}, 'index_dtype="s64"'),
    ({"index": INDEX.astype(np.float32)}, "index must have 32-bit integers"),
    ({"index": INDEX.astype(">i4")}, "native byte order"),
    ({"index": INDEX[:3]}, "index must have shape"),
    ({"index": None}, "must be given for a gather"),
    ({"destination": np.zeros((8, 4), np.float32)}, r"destination = np.empty\(\(4, 8\), np.float32\)"),
    ({"destination": np.zeros((4, 8), np.int32)}, "of the source's type, float32, not int32"),
    ({"destination": frozen(RESULT)}, "destination must be writeable"),
    ({"destination": SOURCE.reshape(-1)[:32]}, "destination must not overlap source"),
    ({"destination": DeviceTensor(4096, (4, 8), (1, 4), 4, None)}, "destination must be row-major"),
    ({"destination": DeviceTensor(4096, (4, 8), (8, 1), 2, None)}, "elements of 4 bytes, not 2"),
    ({"source": 1 << 20, "destination": (1 << 20) + 1596}, "destination must not overlap source"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(places, words):
    given = {"source": SOURCE, "destination": RESULT, "index": INDEX} | places
    with pytest.raises(MalformedError, match=words) as refused:
        GATHER.arguments(**given)
    assert refused.value.diagnostic.code == ("LA945" if given["index"] is None else "LA947")
    assert refused.value.diagnostic.where[0] in places


def test_what_fits_is_passed_on_in_the_order_of_the_parameters():
    for index in (INDEX, INDEX.reshape(-1), INDEX.astype(np.uint32)):
        assert GATHER.arguments(SOURCE, RESULT, index=index)[1] is index
    tensor = DeviceTensor(4096, (4, 100), (100, 1), 4, None)
    assert GATHER.arguments(tensor, 1 << 20, index=1 << 30) == [tensor, 1 << 30, 1 << 20]
    assert GATHER.arguments(1 << 20, (1 << 20) + 1600, index=1 << 30)[2] == (1 << 20) + 1600
    turned = np.zeros((12, 8), np.int32)
    assert TRANSPOSE.arguments(np.zeros((8, 12), np.int32), turned, blocks=TRANSPOSE.blocks)[1] is turned


def test_numbers_of_blocks_status_and_indices_belong_to_their_kernels():
    places = np.zeros((8, 12), np.float32), np.zeros((12, 8), np.float32)
    with pytest.raises(MalformedError, match="only a gather"):
        TRANSPOSE.arguments(*places, index=INDEX)
    with pytest.raises(MalformedError, match="must be 4 or left out: the kernel is not persistent"):
        transpose_kernel((128, 128), "f32").arguments(4096, 1 << 20, 2)
    with pytest.raises(MalformedError, match="destination must have shape"):
        TRANSPOSE.arguments(places[0], places[0].copy())
    ring = transpose_ring_kernel((64, 64), "f32")
    with pytest.raises(MalformedError, match="status must have"):
        ring.arguments(4096, 1 << 20, 4, np.zeros(3, np.int32))
    assert ring.arguments(4096, 1 << 20, 4, np.zeros(4, np.int32))[2] == 4
    with pytest.raises(MalformedError, match="source must be 128-byte aligned, but is off by 16 bytes"):
        ring.arguments(4112, 1 << 20)


@pytest.mark.parametrize(("make", "bytes_each"), [
    (lambda: copy_kernel((9, 5), "u8", way="vector"), 16), (lambda: copy_kernel((64, 64), "f32"), 128),
    (lambda: transpose_kernel((7, 5), "f16"), 16), (lambda: transpose_kernel((8, 6), "f16"), 16),
])  # fmt: skip
def test_addresses_are_aligned_as_vectors_are(make, bytes_each):
    made = make()
    assert all(each.align_bytes <= bytes_each for each in made.arrays)
    assert max(each.align_bytes for each in made.arrays) == bytes_each
    with pytest.raises(MalformedError, match=f"destination must be {bytes_each}-byte aligned, but is off by 2 bytes"):
        made.arguments(1 << 20, (1 << 24) + 2)


@pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
def test_indices_of_numpy_gather_what_numpy_takes():
    """An index array as numpy makes it, of 64 bits; read as words of 32 it gave every other index as 0."""
    index = np.argsort(-WIDE, axis=1)[:, :8].copy()
    made = gather_kernel((4, 100), 1, 8, "f32", index_dtype=index.dtype)
    result = np.empty((4, 8), np.float32)
    assert hostsim.run(made.kernel, made.arguments(WIDE, result, index=index), blocks=made.blocks) == 0
    assert np.array_equal(result, np.take_along_axis(WIDE, index, 1))
    with pytest.raises(MalformedError, match="index_dtype"):
        gather_kernel((4, 100), 1, 8, "f32", index_dtype="u32")


def test_the_results_of_a_staging_are_described():
    plan = TRANSPOSE.swizzle
    made = staging_kernel(plan, (100, 70))
    assert made.arrays[1].shape[0] == made.blocks
    with pytest.raises(MalformedError, match="destination must have shape"):
        made.arguments(np.zeros((100, 70), np.float32), np.zeros((100, 70), np.float32))


RING, COPY = transpose_ring_kernel((128, 160), "f32"), copy_kernel((64, 256), "f32", tile=(8, 32))
VECTORS = copy_kernel((64, 256), "f32", way="vector", threads=32, per_thread=1)


@pytest.mark.parametrize("made", [RING, COPY], ids=["ring", "copy"])
@pytest.mark.parametrize(("said", "grid"), [(3, 2), (3, 4), (1, 2), (20, 1)])
def test_a_grid_that_is_not_the_one_of_the_arguments_is_refused_with_both_numbers(made, said, grid):
    """Blocks step over as many tiles as there are blocks: with fewer of them, tiles would be missing and no fault."""
    arguments = made.arguments(1 << 20, 2 << 20, said)
    for code, run in (("LA522", hostsim.run), ("LA522", hostsim.trace), ("LA533", launch.run)):
        with pytest.raises(MalformedError, match=f"argument blocks is {said}, but the grid has {grid}: ") as refused:
            run(made.kernel, arguments, blocks=grid)
        assert refused.value.diagnostic.code == code


@pytest.mark.parametrize("made", [GATHER, TRANSPOSE, VECTORS], ids=["gather", "transpose", "copy"])
def test_a_grid_of_another_size_than_the_array_needs_is_refused(made):
    places = {each.name: np.zeros(each.shape, np.int32) for each in made.arrays}
    arguments = made.arguments(**places)
    for run in (hostsim.run, hostsim.trace, launch.run):
        for grid in (made.blocks - 1, made.blocks + 1):
            with pytest.raises(MalformedError, match=f"needs {made.blocks} blocks, but the grid has {grid}: "):
                run(made.kernel, arguments, blocks=grid)


def test_every_kernel_of_an_array_says_its_grid():
    for made in (RING, COPY):
        assert made.kernel.grid == "blocks"
        assert ("int", "blocks") in made.kernel.parameters
    for made in (GATHER, TRANSPOSE, VECTORS):
        assert made.kernel.grid == made.blocks
    for grid in ("block", 0, -1, 1.5, True, 2**31):
        with pytest.raises(MalformedError, match="LA506"):
            KernelSource("nothing", "", "sm_90a", 32, 0, (("int", "blocks"),), grid=grid)

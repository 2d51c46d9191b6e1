"""Launching: what can be decided without a GPU, and a device-free rehearsal of the driver calls."""

from __future__ import annotations

import ctypes
import sys
import types

import numpy as np
import pytest

from layoutalg.codegen import launch
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.launch import DeviceInfo, device, from_dlpack, place_map, run, upload
from layoutalg.codegen.plans import origin_arguments
from layoutalg.ground.errors import DeviceMismatchError, MalformedError, MissingExtraError
from layoutalg.synth.tensormap import synthesize_tensormap

KERNEL = KernelSource(
    "f", 'extern "C" __global__ void f(la_tensor_map m, int x, const int* in, int* out) {}', "sm_90a", 32, 64,
    (("const __grid_constant__ la_tensor_map", "m"), ("int", "x"), ("const int*", "in"), ("int*", "out")),
)  # fmt: skip


class FakeDriver:
    """Host memory in place of device memory; a launch adds its int argument to every input."""

    class _Enum:
        def __getattr__(self, name: str) -> str:
            return name

    CUdevice_attribute = _Enum()
    CUfunction_attribute = _Enum()

    def __init__(self, status: int = 0) -> None:
        self.status = status
        self.buffers: dict[int, object] = {}
        self.freed: list[int] = []
        self.map = b""
        self.smem: tuple[int, int] = (0, 0)

    def cuInit(self, _: int) -> tuple[int]:  # noqa: N802
        return (0,)

    def cuMemAlloc(self, size: int) -> tuple[int, int]:  # noqa: N802
        store = (ctypes.c_ubyte * size)()
        self.buffers[ctypes.addressof(store)] = store
        return 0, ctypes.addressof(store)

    def cuMemFree(self, pointer: int) -> tuple[int]:  # noqa: N802
        self.freed.append(int(pointer))
        return (0,)

    def cuMemcpyHtoD(self, to: int, source: int, size: int) -> tuple[int]:  # noqa: N802
        ctypes.memmove(to, source, size)
        return (0,)

    def cuMemcpyDtoH(self, to: int, source: int, size: int) -> tuple[int]:  # noqa: N802
        ctypes.memmove(to, source, size)
        return (0,)

    def cuFuncSetAttribute(self, _function: object, name: str, value: int) -> tuple[int]:  # noqa: N802
        assert name == "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"
        self.smem = (value, 0)
        return (0,)

    def cuLaunchKernel(self, function: str, *rest: int) -> tuple[int]:  # noqa: N802
        assert function == "function f"
        *shape, smem, stream, arguments, extra = rest
        assert shape == [1, 1, 1, 32, 1, 1]
        assert (stream, extra) == (0, 0)
        self.smem = (self.smem[0], smem)
        pointers = (ctypes.c_void_p * 4).from_address(arguments)
        self.map = ctypes.string_at(pointers[0], 128)
        x = ctypes.c_int.from_address(pointers[1]).value
        source, target = (ctypes.c_uint64.from_address(pointers[i]).value for i in (2, 3))
        values = (ctypes.c_int * 4).from_address(source)
        (ctypes.c_int * 4).from_address(target)[:] = [value + x for value in values]
        values[0] = -1
        return (0,)

    def cuCtxSynchronize(self) -> tuple[int]:  # noqa: N802
        return (self.status,)

    def __getattr__(self, name: str) -> object:
        answers = {"cuDeviceGet": 0, "cuDevicePrimaryCtxRetain": 1, "cuModuleLoadData": "module"}
        if name == "cuModuleGetFunction":
            return lambda _, symbol: (0, f"function {symbol.decode()}")
        return lambda *_: (0, answers.get(name))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    driver = FakeDriver()
    monkeypatch.setattr(launch, "_driver", lambda: driver)
    monkeypatch.setattr(launch, "to_cubin", lambda _: b"cubin")
    return driver


def test_a_launch_copies_there_and_back(fake: FakeDriver) -> None:
    raw = bytes(range(128))
    source, target = np.arange(4, dtype=np.int32), np.zeros(4, dtype=np.int32)
    run(KERNEL, [raw, 7, source, target])
    assert target.tolist() == [7, 8, 9, 10]
    assert source.tolist() == [0, 1, 2, 3]  # const pointers are not copied back
    assert fake.map == raw
    assert fake.smem == (64, 64)
    assert sorted(fake.freed) == sorted(fake.buffers)


def test_device_memory_lives_as_long_as_its_tensor(fake: FakeDriver) -> None:
    tensor = upload(np.arange(8, dtype=np.int16))
    assert (tensor.shape, tensor.strides, tensor.itemsize) == ((8,), (1,), 2)
    assert launch.download(tensor, 2, 6).tolist() == [1, 0, 2, 0]
    assert not fake.freed
    del tensor
    assert len(fake.freed) == 1


def test_parts_of_an_array(fake: FakeDriver) -> None:
    tensor = upload(np.full(16, 5, dtype=np.uint8), [(2, 4), (8, 9)])
    assert launch.download(tensor, 0, 16).tolist() == [0, 0, 5, 5, 0, 0, 0, 0, 5, *[0] * 7]
    assert fake.buffers


def test_a_fault_is_an_error_with_the_kernels_name(fake: FakeDriver) -> None:
    fake.status = 715
    with pytest.raises(DeviceMismatchError, match="kernel f"):
        run(KERNEL, [bytes(128), 0, np.zeros(4, dtype=np.int32), np.zeros(4, dtype=np.int32)])
    assert sorted(fake.freed) == sorted(fake.buffers)


def test_arguments_are_checked(fake: FakeDriver) -> None:
    good = np.zeros(4, dtype=np.int32)
    for arguments in (
        [1],
        [bytes(128), 2**31, good, good],
        [bytes(128), True, good, good],
        [bytes(128), 0, good[::2], good],
    ):
        with pytest.raises(MalformedError, match="LA533"):
            run(KERNEL, arguments)
    assert sorted(fake.freed) == sorted(fake.buffers)


@pytest.mark.skipif(device() is not None, reason="a GPU is present")
def test_no_gpu_is_none_for_the_question_and_an_error_for_a_launch() -> None:
    assert device() is None
    with pytest.raises(MissingExtraError, match="LA532"):
        upload(np.zeros(4, dtype=np.uint8))


def test_no_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    assert device() is None
    with pytest.raises(MissingExtraError, match=r'pip install "layoutalg\[cuda\]"'):
        upload(np.zeros(4, dtype=np.uint8))


def test_which_code_runs_where() -> None:
    hopper = DeviceInfo("NVIDIA H200", (9, 0), 13000)
    assert hopper.runs("sm_90a")
    assert hopper.runs("sm_90")
    assert not hopper.runs("sm_100a")
    assert DeviceInfo("B200", (10, 0), 13000).runs("sm_100f")


def test_place_map_moves_only_the_address() -> None:
    raw = (0x1230).to_bytes(8, "little") + bytes(range(120))
    assert place_map(raw, 0x7F0000000000) == (0x7F0000001230).to_bytes(8, "little") + bytes(range(120))
    assert place_map(raw, -0x1240)[:8] == (2**64 - 0x10).to_bytes(8, "little")
    with pytest.raises(MalformedError, match="LA530"):
        place_map(b"short", 0)


def test_tensors_of_other_libraries() -> None:
    array = np.arange(4)
    assert from_dlpack(array) is array

    class Cpu:
        def __dlpack__(self, **options: object) -> object:
            return array.__dlpack__(**options)  # type: ignore[arg-type]

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    view = from_dlpack(Cpu())
    assert isinstance(view, np.ndarray)
    assert np.shares_memory(view, array)
    with pytest.raises(MalformedError, match="LA531"):
        from_dlpack([1, 2])


def test_a_less_aligned_tensor_is_refused() -> None:
    plan = synthesize_tensormap(
        {
            "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
            "global": {"shape": [64, 64], "stride": [64, 1], "dtype": "u8", "base_align_bytes": 256},
            "tile": [16, 32], "smem": {"modes": [[[16, 32]], [[32, 1]]], "swizzle": "32B"},
        }
    )  # fmt: skip
    with pytest.raises(MalformedError, match="LA536"):
        launch._base(plan, launch.DeviceTensor(0x1010, (64, 64), (64, 1), 1, types.SimpleNamespace()))
    assert origin_arguments(plan, np.array([16, 32])) == [16, 32]  # type: ignore[arg-type]

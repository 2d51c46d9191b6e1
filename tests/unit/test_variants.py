"""Variants of a kernel: picks never wait, one compilation each; a cache that is damaged, foreign or full is named."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import layoutalg as la
from layoutalg.cli.schemas import schema_text
from layoutalg.codegen.compile import nvrtc_version
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.variants import Cache, Key, Variants, cache
from layoutalg.ground.errors import LayoutError, MalformedError
from layoutalg.ground.verdict import Proved

TEXT = 'extern "C" __global__ void twice(float* data, int n) {{ /* {width} of {threads} */ }}'
KEY = Key("n % 8 == 0", "sm_90a", "f32", "NVRTC 13.0", "0.1.0", "a" * 64)


def build(sizes: Any) -> KernelSource:
    threads = next((each for each in (64, 128) if sizes.holds(f"n <= {each}")), 256)
    width = next((each for each in (128, 8) if sizes.holds(f"n % {each} == 0")), 1)
    text = TEXT.format(width=width, threads=threads)
    return KernelSource("twice", text, "sm_90a", threads, 0, (("float*", "data"), ("int", "n")))


def machine_code(kernel: KernelSource) -> bytes:
    return kernel.text.encode()


def variants(**options: Any) -> Variants:
    given: dict[str, Any] = {"domain": "n <= 8192", "compile": machine_code, "toolkit": "none 1"}
    return Variants(build, "n", **(given | options))


def test_at_most_ten_variants_serve_all_sizes() -> None:
    with variants() as some:
        for n in range(1, 8193):
            some.pick(n=n)
        some.finish()
        found = [some.pick(n=n) for n in range(1, 8193)]
        assert all(picked.exact for picked in found)
        assert len({picked.cubin for picked in found}) == len(some.dispatch.branches) == 8
        assert isinstance(some.prove(), Proved)
        assert some.pick({"n": 72}).kernel.text == TEXT.format(width=8, threads=128)
        assert "hit rate" in str(some.report())
        json.dumps(some.report().to_json())


def test_a_miss_does_not_wait() -> None:
    gate = threading.Event()

    def slow(kernel: KernelSource) -> bytes:
        if threading.current_thread().name.startswith("variants"):
            gate.wait(30)
        return machine_code(kernel)

    with variants(compile=slow) as some:
        assert some.dispatch is not None
        began = time.perf_counter()
        first = some.pick(n=256)
        assert time.perf_counter() - began < 0.5
        assert (first.exact, str(first.guard)) == (False, "1 <= n <= 8192")
        gate.set()
        assert some.finish().pick(n=256).exact
        some.pick(n=8)
        report = some.report()
    assert (report.picks, report.misses) == (3, 2)


def test_while_a_variant_compiles_the_most_specific_ready_one_runs() -> None:
    gate, seen = threading.Event(), []

    def slow(kernel: KernelSource) -> bytes:
        seen.append(kernel.text)
        if "/* 128 of 256" in kernel.text:
            gate.wait(30)
        return machine_code(kernel)

    with variants(compile=slow) as some:
        some.pick(n=264)
        some.finish()
        assert str(some.pick(n=256).guard) == "n % 8 == 0"
        gate.set()
        assert str(some.finish().pick(n=256).guard) == "n % 128 == 0"


def test_many_threads_compile_each_variant_once() -> None:
    counts: dict[str, int] = {}
    lock = threading.Lock()

    def counted(kernel: KernelSource) -> bytes:
        with lock:
            counts[kernel.text] = counts.get(kernel.text, 0) + 1
        time.sleep(0.002)
        return machine_code(kernel)

    with ThreadPoolExecutor(4) as workers, ThreadPoolExecutor(8) as users:
        some = variants(compile=counted, executor=workers)
        picked = list(users.map(lambda n: some.pick(n=n % 8192 + 1), range(4000)))
        some.finish()
    assert len(picked) == some.report().picks == 4000
    assert sum(row.hits for row in some.report().rows) == 4000
    assert set(counts.values()) == {1}


def test_a_variant_that_fails_is_named_and_never_used() -> None:
    def failing(kernel: KernelSource) -> bytes:
        if "/* 8 of" in kernel.text:
            raise RuntimeError("no such instruction")
        return machine_code(kernel)

    with variants(compile=failing) as some:
        for _ in range(3):
            picked = some.pick(n=264)
            some.finish()
        assert (picked.exact, str(picked.guard)) == (False, "1 <= n <= 8192")
        failed = [row for row in some.report().rows if row.state == "failed"]
    assert [row.note for row in failed] == ["no such instruction"]


def test_a_builder_may_refuse_a_variant_but_not_the_general_kernel() -> None:
    def refusing(sizes: Any) -> KernelSource:
        if sizes.holds("n % 8 == 0"):
            raise LayoutError(la.Diagnostic("LA506", "no vectors"))
        return build(sizes)

    with Variants(refusing, "n", domain="n <= 8192", compile=machine_code) as some:
        some.finish()
        assert not some.pick(n=8).exact
        assert "no vectors" in str(some.report())
    with pytest.raises(LayoutError, match="nothing"):
        Variants(lambda _: (_ for _ in ()).throw(LayoutError(la.Diagnostic("LA506", "nothing"))), "n")
    with pytest.raises(MalformedError, match="LA508"):
        Variants(lambda _: 7, "n")


def test_a_builder_that_fails_later_leaves_the_general_kernel() -> None:
    def odd(sizes: Any) -> KernelSource:
        if sizes.holds("n % 8 == 0"):
            raise ValueError("a mistake")
        return build(sizes)

    with Variants(odd, "n", domain="n <= 8192", compile=machine_code) as some:
        some.finish()
        assert some.pick(n=8).kernel is not None
        assert "no variants: a mistake" in str(some.report())


def test_a_builder_must_ask_the_same_in_every_run() -> None:
    texts = iter(f"n % {k} == 0" for k in range(2, 100))
    with Variants(lambda sizes: (sizes.holds(next(texts)), build(sizes))[1], "n", compile=machine_code) as some:
        some.finish()
        assert "must ask the same questions" in str(some.report())


def test_plans_without_kernels_and_a_general_kernel_of_ones_own() -> None:
    def planned(sizes: Any) -> Any:
        plan = la.tensormap(la.Tensor(("M", "K"), assume=sizes.assume), (64, 64))
        return sizes.case(plan)

    general = KernelSource("copy", TEXT.format(width=0, threads=0), "sm_90a", 32, 0, ())
    with Variants(planned, ("M", "K"), domain=("M <= 512", "K <= 512"), general=general, compile=machine_code) as some:
        some.pick(M=64, K=64)
        some.finish()
        assert some.pick(M=64, K=64).plan.encode(M=64, K=64) == some.pick(M=64, K=64).plan.specialise(M=64, K=64).raw
        assert some.pick(M=64, K=63).kernel is general
        assert isinstance(some.prove(), Proved)
    with pytest.raises(MalformedError, match="must return a kernel"):
        Variants(planned, ("M", "K"))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"n": 0}, "n >= 1 fails"), ({"n": 8193}, "n <= 8192 fails"), ({}, "missing sizes: n"),
    ({"n": 1, "m": 2}, "unknown names: m"), ({"m": 2}, "missing sizes: n"), ({"n": 1.0}, "must be an integer"),
    ({"n": True}, "must be an integer"), ({"n": "1"}, "must be an integer"),
]  # fmt: skip


@pytest.fixture(scope="module")
def unpicked() -> Iterator[Variants]:
    """Variants that are never picked: wrong sizes change nothing."""
    with variants() as some:
        yield some


@pytest.mark.parametrize(("sizes", "because"), WRONG)
def test_wrong_sizes_are_named(unpicked: Variants, sizes: dict[str, Any], because: str) -> None:
    for _ in range(2):
        with pytest.raises(MalformedError, match=because):
            unpicked.pick(sizes)
        unpicked.finish()
    assert unpicked.report().picks == 0


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    for options, word in (
        ({"domain": "m <= 4"}, "domain"), ({"most": 0}, "most"), ({"compile": None}, "compile"),
        ({"dtype": 3}, "dtype"),
        ({"toolkit": None, "cache": Cache(tmp_path)}, "toolkit"), ({"executor": 3}, "executor"),
        ({"domain": 3}, "domain"),
    ):  # fmt: skip
        with pytest.raises(MalformedError, match=word):
            variants(**options)
    for names in (3, "no name", ["n", "n n"]):
        with pytest.raises(MalformedError):
            Variants(build, names)
    with pytest.raises(MalformedError, match="build"):
        Variants(None, "n")
    with pytest.raises(MalformedError, match="question"):
        Variants(lambda sizes: sizes.holds("k <= 3"), "n")
    with pytest.raises(MalformedError, match="must return bytes"):
        variants(compile=lambda kernel: kernel.text)
    with pytest.raises(MalformedError, match="folder"):
        Cache(3)
    with pytest.raises(MalformedError, match="limit_bytes"):
        Cache(tmp_path, -1)


def test_picks_go_on_after_the_end() -> None:
    some = variants()
    some.pick(n=8)
    some.finish().close()
    assert some.pick(n=8).exact
    assert not some.pick(n=200).exact
    assert "shutdown" in str(some.report())


def test_a_second_process_finds_what_the_first_compiled(tmp_path: Path) -> None:
    for source in ("compiled", "cache"):
        with variants(cache=Cache(tmp_path)) as some:
            for n in (64, 65, 256):
                some.pick(n=n)
            some.finish()
            assert {row.source for row in some.report().rows if row.state == "ready"} == {source}
    for file in tmp_path.glob("*.json"):
        jsonschema.validate(json.loads(file.read_text()), json.loads(schema_text("variant")))
    written = b"".join(file.read_bytes() for file in tmp_path.glob("*.json"))
    assert str(tmp_path).encode() not in written
    assert str(Path.cwd()).encode() not in written
    assert not list(tmp_path.glob("*.part"))


def damaged(folder: Path, change: str) -> None:
    document, code = folder / f"{KEY.digest}.json", folder / f"{KEY.digest}.cubin"
    entry = json.loads(document.read_text())
    if change == "truncated document":
        document.write_bytes(document.read_bytes()[:-20])
    elif change == "empty document":
        document.write_bytes(b"")
    elif change == "no text":
        document.write_bytes(b"\xff\xfe")
    elif change == "a list":
        document.write_text("[]")
    elif change == "long document":
        document.write_bytes(b" " * 2**17)
    elif change == "truncated cubin":
        code.write_bytes(code.read_bytes()[:-1])
    elif change == "longer cubin":
        code.write_bytes(code.read_bytes() + b"x")
    elif change == "changed cubin":
        code.write_bytes(b"X" + code.read_bytes()[1:])
    elif change == "no cubin":
        code.unlink()
    elif change == "a folder":
        code.unlink()
        code.mkdir()
    elif change == "schema":
        document.write_text(json.dumps(entry | {"schema": "layoutalg/variant/2"}))
    elif change == "more":
        document.write_text(json.dumps(entry | {"more": 1}))
    else:
        entry["key"][change] = "other"
        document.write_text(json.dumps(entry))


REASONS = {
    "truncated document": "Expecting|delimiter|Unterminated", "empty document": "Expecting value", "no text": "UTF-8",
    "a list": "must be an object", "long document": "Expecting value", "truncated cubin": "has 15 bytes",
    "longer cubin": "has 17 bytes", "changed cubin": "differs from the digest", "no cubin": "No such file",
    "a folder": "directory|denied", "schema": "schema must be", "more": "keys must be",
    "guard": "foreign", "arch": "foreign",
    "dtype": "foreign", "toolkit": "foreign", "package": "foreign", "text": "foreign",
}  # fmt: skip


@pytest.mark.parametrize("change", REASONS)
def test_a_damaged_or_foreign_entry_is_refused_with_a_reason_and_written_again(tmp_path: Path, change: str) -> None:
    store = Cache(tmp_path)
    assert store.store(KEY, b"0123456789abcdef") == ""
    damaged(tmp_path, change)
    code, reason = store.load(KEY)
    assert code is None
    assert re.search(REASONS[change], reason), reason
    assert str(tmp_path) not in reason
    if change != "a folder":
        assert store.store(KEY, b"0123456789abcdef") == ""
        assert store.load(KEY) == (b"0123456789abcdef", "")


def test_a_key_of_other_facts_is_another_entry(tmp_path: Path) -> None:
    store = Cache(tmp_path)
    store.store(KEY, b"code")
    for name in KEY.to_json():
        assert store.load(Key(**(KEY.to_json() | {name: "other"}))) == (None, "")


@pytest.mark.parametrize("place", ["write", "fsync", "replace", "document", "mkdir"])
def test_a_full_disk_leaves_nothing_and_the_kernel_runs(tmp_path: Path, monkeypatch: Any, place: str) -> None:
    def full(*_: object, **__: object) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    real, calls = os.replace, []

    def second(source: str, target: Path) -> None:
        calls.append(target)
        if target.suffix == ".json":
            full()
        real(source, target)

    if place == "write":

        class Full:
            def __init__(self, handle: int, _: str) -> None:
                os.close(handle)

            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None:
                pass

            write = full

        monkeypatch.setattr(cache.os, "fdopen", Full)
    elif place == "mkdir":
        monkeypatch.setattr(Path, "mkdir", full)
    else:
        monkeypatch.setattr(
            cache.os, place if place != "document" else "replace", second if place == "document" else full
        )
    with variants(cache=Cache(tmp_path / "folder")) as some:
        some.pick(n=64)
        some.finish()
        assert some.pick(n=64).exact
        assert "not stored: No space left on device" in str(some.report())
    monkeypatch.undo()
    assert not (tmp_path / "folder").exists() or not list((tmp_path / "folder").iterdir())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_the_system_reports_a_full_disk(tmp_path: Path, monkeypatch: Any) -> None:
    def to_full(suffix: str, prefix: str, folder: Path) -> tuple[int, str]:
        return os.open("/dev/full", os.O_WRONLY), str(folder / f"x{suffix}")

    monkeypatch.setattr(cache.tempfile, "mkstemp", to_full)
    assert Cache(tmp_path).store(KEY, b"code") == "not stored: No space left on device"
    assert not list(tmp_path.iterdir())


def test_the_entries_not_used_for_longest_go_first(tmp_path: Path) -> None:
    keys = [Key(f"n % {k} == 0", "sm_90a", "", "NVRTC 13.0", "0.1.0", "b" * 64) for k in range(2, 8)]
    store = Cache(tmp_path, 8_000)
    for age, key in enumerate(keys[:4]):
        assert store.store(key, bytes(1_000)) == ""
        os.utime(tmp_path / f"{key.digest}.json", (age, age))
        os.utime(tmp_path / f"{key.digest}.cubin", (age, age))
    assert store.load(keys[0])[0] is not None  # used now
    stale = tmp_path / "killed.part"
    stale.write_bytes(b"x")
    os.utime(stale, (0, 0))
    for key in keys[4:]:
        assert store.store(key, bytes(2_000)) == ""
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 8_000
    assert not stale.exists()
    kept = [store.load(key)[0] is not None for key in keys]
    assert kept[0]
    assert kept[5]
    assert not kept[1]
    assert "exceeds the limit" in store.store(keys[0], bytes(9_000))


def _work(folder: str, start: Any) -> None:
    start.wait()
    store = Cache(folder, 20_000)
    for turn in range(24):
        key = Key(f"n % {turn % 12 + 2} == 0", "sm_90a", "", "NVRTC 13.0", "0.1.0", "c" * 64)
        code, reason = store.load(key)
        assert code in (None, bytes(2_000)), "a wrong entry was used"
        assert not reason or "cannot be read" in reason, reason
        assert store.store(key, bytes(2_000)) == ""


def test_processes_share_a_folder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    start = context.Event()
    workers = [context.Process(target=_work, args=(str(tmp_path), start)) for _ in range(2)]
    for worker in workers:
        worker.start()
    start.set()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.compile
def test_variants_compile_with_nvrtc(tmp_path: Path) -> None:
    for source in ("compiled", "cache"):
        with Variants(build, "n", domain="n <= 8192", cache=Cache(tmp_path), dtype="f32") as some:
            some.pick(n=64)
            picked = some.finish().pick(n=64)
            assert picked.exact
            assert picked.cubin[:4] == b"\x7fELF"
            assert {row.source for row in some.report().rows if row.state == "ready"} == {source}
    assert nvrtc_version().startswith("NVRTC ")

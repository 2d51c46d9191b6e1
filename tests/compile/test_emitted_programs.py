"""PTX of kernels with cp.async, named barriers and restarting counters against their documents; mistakes are seen."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from instruments.drawn_programs import Drawn, drawn_programs
from instruments.handmade import ROWS, gather

from layoutalg.codegen.compile import to_cubin, to_ptx
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.pipeline import Emitted, Launch, Loop, Program, Worker, emit, mismatch
from layoutalg.ground.errors import RepresentabilityError
from layoutalg.ground.refusal import Broken
from layoutalg.proofs.pipeline import Pipeline, verify

pytestmark = pytest.mark.compile


def launch(made: Emitted) -> Callable[[int], Launch]:
    size = ROWS if "many" in [name for _, name in made.kernel.parameters] else 1
    return lambda n: Launch([size * n if kind == "int" else None for kind, _ in made.kernel.parameters])


def difference(made: Emitted, kernel: KernelSource | None = None, trips: range | None = None) -> Broken | None:
    return mismatch(kernel or made.kernel, made.program.pipeline, launch(made), buffers=made.slots, trips=trips)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(drawn_programs())
def test_drawn_kernels_do_what_their_documents_say(drawn: Drawn) -> None:
    if type(verify(drawn.document)).__name__ == "Proved":
        made = emit(drawn.program, "drawn")
        assert difference(made, trips=range(2 * drawn.stages + drawn.reset + 2)) is None


FILLS = {
    "arrive": Drawn(2, "arrive", 2, 16, 0, 1, (1, 2), 0, None, 0, 0),
    "groups": Drawn(3, "groups", 2, 8, 1, 2, (3,), 1, None, 0, 0),
    "alone": Drawn(2, "groups", 0, 4, 1, 1, (2,), 0, None, 0, 0),
    "turns": Drawn(2, "write", 2, 4, 0, 1, (1, 3), 0, (9, 4), 0, 0),
    "met": Drawn(1, "arrive", 1, 16, 0, 1, (2, 2), 0, (1, 2), 3, 0),
    "again": Drawn(2, "arrive", 1, 16, 0, 1, (2,), 0, None, 0, 4),
}
LINES = r"la_(wait_phase|arrive|sync_warp|role_\w+|cp_async_\w+)|\+\+(slot|since)|parity1 \^= 1"
"""Lines of the text without which the kernel is another one."""
NEEDLESS = {"groups": "la_role_barrier(1, 64);", "again": "if (++since"}
"""Lines without which a kernel is right: the readers' barrier orders the copies of threads as well; whole rounds of
counters go on as they start again."""


def without(text: str) -> list[tuple[str, str]]:
    """The kernel without each of these lines."""
    start = text.rindex('extern "C"')
    lines = text[start:].splitlines(keepends=True)
    return [
        (line, text[:start] + "".join(lines[:place] + lines[place + 1 :]))
        for place, line in enumerate(lines)
        if re.search(LINES, line) and "static" not in line
    ]


@pytest.mark.nightly(one_of=3)
@pytest.mark.parametrize("name", FILLS)
def test_a_line_that_is_left_out_is_seen(name: str) -> None:
    """In the text, the compiled PTX of which is compared."""
    made = emit(FILLS[name].program, "drawn")
    assert to_cubin(made.kernel)
    assert difference(made) is None
    for line, text in without(made.kernel.text):
        needed = name not in NEEDLESS or NEEDLESS[name] not in line
        assert (difference(made, replace(made.kernel, text=text)) is not None) == needed, line


CHANGED = [
    ("arrive", r"(la_cp_async_arrive\(barriers \+ )0", r"\g<1>16", "EMIT_ORDER"),
    ("arrive", r"la_cp_async_arrive\(", "if (t < 32) la_cp_async_arrive(", "EMIT_COUNT"),
    ("arrive", r"la_cp_async_arrive\(", "if (leader) la_arrive(", "EMIT_ORDER"),
    ("arrive", r"(la_wait_phase\(barriers \+ 16[^;]*), parity2 \^ 1,", r"\1, parity2,", "EMIT_ORDER"),
    ("arrive", r"\$T|la_cp_async_16\(\(shared", "la_cp_async_16((1024 + shared", "EMIT_ACCESS"),
    ("groups", r"la_cp_async_wait<1>", "la_cp_async_wait<2>", "EMIT_ORDER"),
    ("groups", r"(la_cp_async_commit\(\);)(\s+)(la_cp_async_wait<1>\(\);)", r"\3\2\1", "EMIT_ORDER"),
    ("groups", r"la_cp_async_commit\(\);", "if (t < 32) la_cp_async_commit();", "EMIT_ORDER"),
    ("turns", r"la_role_arrive\(4, 128\)", "la_role_arrive(5, 128)", "EMIT_BAR"),
    ("turns", r"la_role_arrive\(4, 128\)", "la_role_arrive(9, 128)", "EMIT_ORDER"),
    ("turns", r"la_role_arrive\(4, 128\)", "la_role_arrive(4, 64)", "EMIT_BAR"),
    ("turns", r"la_role_arrive\(4, 128\)", "la_role_arrive(4, 160)", "EMIT_BAR"),
    ("turns", r"la_role_barrier\(4, 128\)", "la_role_arrive(4, 128)", "EMIT_ACCESS"),
    ("turns", r"la_role_arrive\(4, 128\)", "la_role_barrier(4, 128)", "EMIT_ORDER"),
    ("turns", r"la_role_barrier\(9, 128\)", "if (t < 32) la_role_barrier(9, 128)", "EMIT_ACCESS"),
    ("turns", r"la_role_barrier\(1, 64\)", "la_role_barrier(2, 64)", "EMIT_BAR"),
    ("met", r"la_role_barrier\(3, 160\)", "la_role_barrier(3, 128)", "EMIT_BAR"),
    ("again", r"\+\+since == 4", "++since == 3", "EMIT_ORDER"),
    ("again", r"since = 0, slot2 = 0, parity2 = 0;", "since = 0, slot2 = 1, parity2 = 0;", "EMIT_ORDER"),
]


@pytest.mark.parametrize(("name", "old", "new", "rule"), CHANGED)
def test_a_change_is_named_by_its_rule(name: str, old: str, new: str, rule: str) -> None:
    made = emit(FILLS[name].program, "drawn")
    start = made.kernel.text.rindex('extern "C"')
    body, many = re.subn(old, new, made.kernel.text[start:], count=1)
    assert many == 1, made.kernel.text[start:]
    found = difference(made, replace(made.kernel, text=made.kernel.text[:start] + body))
    assert found is not None
    assert found.rule == rule, found


def test_every_thread_that_copies_waits() -> None:
    made = emit(FILLS["groups"].program, "drawn")
    start = made.kernel.text.rindex('extern "C"')
    body = re.sub(r"la_cp_async_(commit|wait<\d>)", r"if (t < 32) la_cp_async_\1", made.kernel.text[start:])
    found = difference(made, replace(made.kernel, text=made.kernel.text[:start] + body))
    assert found is not None
    assert (found.rule, found.witness["thread"]) == ("EMIT_ORDER", 32), found


SYNCHRONISES = r"^\s*(mbarrier\.arrive|cp\.async\.(commit|wait|mbarrier)|bar\.)"
"""Waits are unrolled, and only two looks of each are run."""


@pytest.mark.parametrize("name", FILLS)
def test_an_instruction_that_is_left_out_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the PTX, one at a time: also of one copy of an unrolled loop."""
    made = emit(FILLS[name].program, "drawn")
    lines = to_ptx(made.kernel).splitlines()
    places = [place for place, line in enumerate(lines) if re.match(SYNCHRONISES, line)]
    ids = {place: line for place, line in enumerate(lines) if re.match(r"\s*bar\.sync\s+0;", line)}
    assert len(ids) == 2  # the second one is for the status
    for place in sorted({*places} - {max(ids)}):
        wrong = "\n".join(lines[:place] + lines[place + 1 :])
        monkeypatch.setattr("layoutalg.codegen.pipeline.reread.to_ptx", lambda _, text=wrong: text)
        needed = name != "groups" or "bar.sync" not in lines[place] or place in ids
        assert (difference(made) is not None) == needed, lines[place]


def test_the_gather_kernel_does_what_its_document_says() -> None:
    for made in (emit(gather(), "bags"), emit(gather(2, (1, 3), 8, groups=True), "bags")):
        assert to_cubin(made.kernel)
        assert difference(made) is None
        whole = mismatch(
            made.kernel, made.program.pipeline, launch(made), buffers=made.slots, lanes=range(32), trips=[4]
        )
        assert whole is None


def test_each_block_of_a_cluster_is_compared() -> None:
    """Named barriers are those of a block."""
    drawn = FILLS["met"]
    made = emit(replace(drawn.program, pipeline=replace(drawn.document, cluster=2)), "pair")

    def launched(n: int) -> Launch:
        return replace(launch(made)(n), blocks=2)

    assert mismatch(made.kernel, made.program.pipeline, launched, buffers=made.slots) is None
    wrong = replace(made.kernel, text=made.kernel.text.replace("la_role_arrive(2, 128);", "la_role_arrive(1, 128);"))
    found = mismatch(wrong, made.program.pipeline, launched, buffers=made.slots)
    assert found is not None
    assert (found.rule, found.witness["op"]) == ("EMIT_ORDER", "read0@0.loop[7]"), found  # of the longer document


@pytest.mark.parametrize(("stages", "reset", "behind"), [(2, 6, 0), (2, 5, 1), (3, 12, 2), (1, 3, 0), (3, 4, 1)])
def test_counters_start_again_as_the_document_says(stages: int, reset: int, behind: int) -> None:
    """Also without a proof: slots, parities and what is left out are those of k mod K, behind the loop those of k."""
    drawn = Drawn(stages, "write", 1, 4, 0, 3, (2,), behind, None, 0, reset)
    made = emit(drawn.program, "again", unproved=True)
    assert difference(made, trips=range(3 * reset)) is None
    longer = replace(drawn, reset=reset + 1)
    found = mismatch(made.kernel, longer.document, launch(made), buffers=made.slots, trips=range(3 * reset))
    assert found is not None


def test_threads_that_meet_in_some_iterations_meet_again() -> None:
    """The first iteration hands nothing back, but writes what other threads read."""
    wait = {"op": "wait", "bar": "seen", "off": -1, "ph": -1, "guard": {"from": 1}}
    ops = [
        {"op": "read", "buf": "X"},
        {"op": "arrive", "bar": "done", "off": -1},
        {"op": "write", "buf": "X", "off": 1},
    ]
    pre = [{"op": "write", "buf": "X"}]
    see = [{"op": "wait", "bar": "done"}, {"op": "arrive", "bar": "seen"}]
    document = {
        "schema": "layoutalg/pipeline/1", "stages": 1, "barriers": {"done": {"count": 1}, "seen": {"count": 1}},
        "buffers": {"X": {"bytes": 256}},
        "roles": [{"name": "all", "pre": pre, "loop": [wait, *ops]}, {"name": "see", "loop": see, "trip": "N-1"}],
    }  # fmt: skip
    bodies = (
        ("pre[0]", "la_shared_store_b32($X_byte + 4 * t, t);"),
        ("loop[1]", "into[t] += la_shared_load_b32($X_byte + 4 * (63 - t));"),
        ("loop[3]", "la_shared_store_b32($X_byte + 4 * t, k);"),
    )
    workers = Worker((Loop("all", bodies),), 2), Worker((Loop("see", ()),), elected=True)
    made = emit(Program(Pipeline.from_json(document), workers, (("la_u32*", "into"), ("int", "n")), "n"), "meet")
    assert difference(made) is None


def test_a_thread_that_waits_for_stores_and_arrives_hands_over() -> None:
    """The phase is over only with its own arrival; the others need not meet it before theirs."""
    ops = [
        {"op": "wait", "bar": "seen", "ph": -1}, {"op": "write", "buf": "X"}, {"op": "proxy_fence"},
        {"op": "tma_store", "buf": "X"}, {"op": "bulk_commit"}, {"op": "bulk_wait", "n": 0},
        {"op": "arrive", "bar": "done", "n": 64},
    ]  # fmt: skip
    see = [{"op": "wait", "bar": "done"}, {"op": "arrive", "bar": "seen"}]
    document = {
        "schema": "layoutalg/pipeline/1", "stages": 1, "barriers": {"done": {"count": 64}, "seen": {"count": 1}},
        "buffers": {"X": {"bytes": 256}}, "roles": [{"name": "all", "loop": ops}, {"name": "see", "loop": see}],
    }  # fmt: skip
    store = "la_tma_store_1d(&to, $X, 64 * k);"
    bodies = (("loop[1]", "la_shared_store_b32($X_byte + 4 * t, k);"), ("loop[3]", store))
    workers = Worker((Loop("all", bodies),), 2), Worker((Loop("see", ()),), elected=True)
    parameters = (("const __grid_constant__ la_tensor_map", "to"), ("int", "n"))
    made = emit(Program(Pipeline.from_json(document), workers, parameters, "n"), "store")
    assert difference(made) is None
    alone = replace(
        made.kernel, text=made.kernel.text.replace("if (issuer) la_store_wait", "if (t == 1) la_store_wait")
    )
    assert difference(made, alone) is not None


def test_copies_of_threads_need_the_place_of_their_buffer() -> None:
    made = emit(gather(), "bags")
    with pytest.raises(RepresentabilityError, match=r"LA980.*\n.*buffer R"):
        mismatch(made.kernel, made.program.pipeline, launch(made))

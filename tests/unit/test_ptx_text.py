"""PTX written by hand: values of instructions that the compiler rarely writes, scopes, tables, addresses."""

from __future__ import annotations

import pytest

from layoutalg.codegen.pipeline.ptx import program
from layoutalg.codegen.pipeline.thread import Event, Thread
from layoutalg.ground.errors import RepresentabilityError

HEAD = """
.version 9.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 la_dynamic_shared[];
.const .align 4 .b8 table[16] = {1, 0, 0, 0, 254, 255, 255, 255, 7};
.const .align 4 .u32 words[2] = {5, 4294967295};
.visible .entry k(
    .param .align 8 .b8 k_param_0[8],
    .param .u32 k_param_1
)
{
    .reg .pred %p<9>;
    .reg .b16 %rs<9>;
    .reg .b32 %r<99>;
    .reg .b64 %rd<99>;
    .shared .align 4 .b8 kept[8];
    .local .align 8 .b8 __local_depot0[8];
"""


def run(body: str, arguments: tuple[object, ...] = (bytes(range(250, 256)), 7), thread: int = 0) -> tuple[Event, ...]:
    return Thread(program(f"{HEAD}{body}\n    ret;\n}}\n", "k"), arguments, thread, 64, 3, 5).run()


def expecting(body: str, register: str = "%r1") -> str:
    return f"{body}\n mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [la_dynamic_shared+8], {register};"


VALUES = [
    ("cvt.s8.s32 %r1, 200;", -56),
    ("cvt.u8.s32 %r1, -1;", 255),
    ("mov.b32 %r2, 300; cvt.u16.u32 %rs1, %r2; cvt.u32.u16 %r1, %rs1;", 300),
    ("div.s32 %r1, -7, 2;", -3),
    ("div.s32 %r1, 7, -2;", -3),
    ("div.s32 %r1, -7, -2;", 3),
    ("rem.s32 %r1, -7, 2;", -1),
    ("rem.s32 %r1, 7, -2;", 1),
    ("div.u32 %r1, -7, 2;", 2147483644),
    ("shr.s32 %r1, -8, 40;", -1),
    ("shr.u32 %r1, -8, 1;", 2147483644),
    ("shf.r.wrap.b32 %r1, 4, 3, 33;", 2 - (1 << 31)),
    ("shf.l.clamp.b32 %r1, 5, 6, 40;", 5),
    ("prmt.b32 %r1, 0x80, 0, 0x8888;", -1),
    ("prmt.b32 %r1, 0x44332211, 0x88776655, 0x7041;", 0x88115522),
    ("mad.wide.s32 %rd1, -2, 3, 1; cvt.u32.u64 %r1, %rd1;", -5),
    ("mul.hi.s32 %r1, -1, 5;", -1),
    ("mul.hi.u32 %r1, -1, 5;", 4),
    ("mul.wide.u16 %r1, 65535, 65535;", 65535 * 65535),
    ("bfi.b32 %r1, 5, 0xFFFF0000, 4, 8;", 0xFFFF0050 - 2**32),
    ("bfi.b32 %r1, -1, 0, 30, 9;", -(1 << 30)),
    ("bfe.u32 %r1, 0xABCD, 4, 8;", 0xBC),
    ("bfe.s32 %r1, 0xABCD, 4, 8;", 0xBC - 256),
    ("bfe.s32 %r1, 0x80000000, 28, 9;", -8),
    ("bfe.u32 %r1, 0x80000000, 28, 9;", 8),
    ("clz.b32 %r1, 1;", 31),
    ("brev.b32 %r1, 1;", -(1 << 31)),
    ("setp.lo.u32 %p1, 1, -1; selp.b32 %r1, 3, 4, %p1;", 3),
    ("setp.lt.s32 %p1, 1, -1; selp.b32 %r1, 3, 4, %p1;", 4),
    ("setp.hs.u32 %p1, 1, 1; selp.b32 %r1, 3, 4, %p1;", 3),
    ("mov.u32 %r1, 3; setp.eq.s32 %p1, 0, 0; @!%p1 mov.u32 %r1, 4; @%p1 add.s32 %r1, %r1, 5;", 8),
    ("mov.b64 %rd1, {1, 2}; mov.b64 {%r2, %r1}, %rd1;", 2),
    ("mov.b64 %rd1, {1, 2}; mov.b64 {%r1, %r2}, %rd1;", 1),
    ("mov.u32 %r1, 9; { .reg .b32 %r1; mov.u32 %r1, 4; }", 9),
    ("{ .reg .pred p; setp.ne.b32 p, 1, 0; { .reg .pred p; setp.ne.b32 p, 0, 0; } selp.u32 %r1, 1, 0, p; }", 1),
    ("ld.const.s32 %r1, [table+4];", -2),
    ("mov.u64 %rd1, table; ld.const.u8 %r1, [%rd1+8];", 7),
    ("ld.const.u32 %r1, [table+12];", 0),
    ("ld.const.u32 %r1, [words+4];", -1),
    ("ld.param.s8 %r1, [k_param_0+5];", -1),
    ("ld.param.u16 %r1, [k_param_0];", 250 + 256 * 251),
    ("ld.param.u32 %r1, [k_param_1];", 7),
    ("mov.u64 %rd1, __local_depot0; st.local.v2.u32 [%rd1], {5, 6}; ld.local.v2.u32 {%r2, %r1}, [%rd1];", 6),
    ("mov.u64 %rd1, __local_depot0; cvta.local.u64 %rd2, %rd1; st.u32 [%rd2], 5; ld.local.u32 %r1, [%rd1];", 5),
    ("mov.u32 %r2, 1; brx.idx %r2, $T;\n$T: .branchtargets $A, $B;\n$A: mov.u32 %r1, 1;\n$B: mov.u32 %r1, 2;", 2),
    ("mov.u32 %r1, %ctaid.x; mad.lo.s32 %r1, %r1, 10, %nctaid.x;", 35),
    ("elect.sync %r1|%p1, 0xFFFFFFF0;", 4),
    ("shfl.sync.idx.b32 %r1|%p1, 6, 0, 31, -1;", 6),
]


@pytest.mark.parametrize(("body", "value"), VALUES)
def test_values(body: str, value: int) -> None:
    (event,) = run(expecting(body))
    assert (event.kind, event.address, event.value) == ("expect", 2048 + 8, value % 2**32)


UNKNOWN = [
    "mov.u32 %r1, %clock;", "add.sat.s32 %r1, 1, 2;", "lop3.b32 %r1, 5, 0, 1, 0x80;", "div.s32 %r1, 1, 0;",
    "shfl.sync.down.b32 %r1|%p1, 6, 0, 31, -1;", "ld.global.u32 %r1, [%rd5];", "ld.shared.u32 %r1, [kept];",
    "mov.u32 %r2, %clock; setp.eq.s32 %p1, %r2, 0; @%p1 mov.u32 %r1, 4;", "ld.param.u32 %r1, [k_param_0+4];",
]  # fmt: skip


@pytest.mark.parametrize("body", UNKNOWN)
def test_what_is_not_known_must_not_be_used(body: str) -> None:
    assert all(event.kind == "read" for event in run(body))
    with pytest.raises(RepresentabilityError, match=r"LA980(.|\n)*line \d+: "):
        run(expecting(body))


REFUSED = [
    "cp.async.foo [kept], 4;", "st.async.b32 [kept], 4, [kept];", "tcgen05.wait::ld.sync.aligned;", "trap;",
    "mov.u32 %r1, %clock; st.shared.u32 [%r1], 4;", "call.uni f, (%r1);", "foo.b32 %r1, [kept];",
    "cp.async.mbarrier.arrive.b64 [kept];", "mbarrier.arrive.noComplete.b64 %rd1, [kept], 1;", "L: bra L;",
    "setp.eq.s32 %p1, %r9, 0; @%p1 bar.sync 0;",
]  # fmt: skip


@pytest.mark.parametrize("body", REFUSED)
def test_what_may_synchronise_is_refused(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layoutalg.ground.limits.PTX_STEPS", 1000)
    with pytest.raises(RepresentabilityError, match="LA980"):
        run(body)


def test_shared_addresses_of_all_kinds() -> None:
    found = run(
        "cvta.shared.u64 %rd1, kept; st.u32 [%rd1+4], 1; cvta.to.shared.u64 %rd2, %rd1; st.shared.u8 [%rd2], 1;\n"
        "mapa.shared::cluster.u32 %r1, 1056, 3; st.shared::cluster.u32 [%r1], 1; red.shared.add.u32 [kept], 1;"
    )
    told = [(event.kind, event.address, event.value) for event in found]
    assert told == [
        ("write", 1028, 4), ("write", 1024, 1), ("write", 1056 + (4 << 24), 4), ("read", 1024, 4), ("write", 1024, 4),
    ]  # fmt: skip


def test_what_is_no_ptx_is_refused() -> None:
    with pytest.raises(RepresentabilityError, match="no such entry"):
        program("", "k")
    with pytest.raises(RepresentabilityError, match="not understood"):
        program(f"{HEAD} add.s32 %r1", "k")

"""Laws of verdicts, encodings and decodings, on maps drawn around the legal boundaries and on arbitrary bytes."""

import struct
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg.ground.errors import Diagnostic, LayoutError, TargetRuleError
from layoutalg.targets.nvidia import tensormap
from layoutalg.targets.nvidia.tensormap import TensorMap, batch, decode, encode, violations


def near(*edges: int) -> st.SearchStrategy[int]:
    return st.sampled_from(sorted({edge + delta for edge in edges for delta in (-16, -1, 0, 1, 16)}))


def legal_leaning(rank: int) -> dict[str, st.SearchStrategy[Any]]:
    dim = st.one_of(st.integers(1, 2**32), st.integers(1, 300))
    return {
        "dims": st.tuples(*[dim] * rank),
        "strides_bytes": st.tuples(*[st.integers(0, 2**35 - 1).map(lambda n: 32 * n)] * max(rank - 1, 0)),
        "box": st.tuples(*[st.sampled_from((16, 32, 8, 4, 64, 2))][:rank], *[st.integers(1, 12)] * (rank - 1)),
        "element_strides": st.tuples(*[st.integers(1, 8)] * rank),
        "base_address": st.integers(0, 2**52).map(lambda n: 32 * n),
    }


def wild(rank: int) -> dict[str, st.SearchStrategy[Any]]:
    return {
        "dims": st.tuples(*[near(0, 1, 2**32, -5)] * rank),
        "strides_bytes": st.tuples(*[near(0, 32, 2**40, -(2**40))] * max(rank - 1, 0)),
        "box": st.tuples(*[near(0, 1, 16, 256)] * rank),
        "element_strides": st.tuples(*[near(0, 1, 8)] * rank),
        "base_address": near(0, 32, 2**57, 2**63 - 17),
    }


@st.composite
def maps(draw: st.DrawFn, least: int = 0) -> TensorMap:
    """Maps whose fields are each legal, or at a boundary, independently."""
    rank = draw(st.integers(least, 5))
    good, bad = legal_leaning(rank), wild(rank)
    fields = {name: draw(bad[name] if draw(st.integers(0, 9)) == 0 else good[name]) for name in good}
    return TensorMap(
        dtype=draw(st.sampled_from(tuple(tensormap.DTYPES))),
        interleave=draw(st.sampled_from(("NONE", "NONE", "NONE", "16B", "32B"))),
        swizzle=draw(st.sampled_from(("NONE", "128B", *tensormap.SWIZZLES))),
        l2_promotion=draw(st.sampled_from(tensormap.L2_PROMOTIONS)),
        oob_fill=draw(st.sampled_from(("ZERO", *tensormap.OOB_FILLS))),
        **fields,
    )


def accepted_maps() -> st.SearchStrategy[TensorMap]:
    def repaired(tm: TensorMap) -> TensorMap:
        legal = tm.dtype if not tensormap.DTYPES[tm.dtype].packed else "u64"
        return TensorMap(
            legal,
            tuple(min(max(n, 1), 2**32) for n in tm.dims),
            tuple(n % 2**40 // 32 * 32 for n in tm.strides_bytes),
            (16 // tensormap.element_bytes(legal), *(min(max(n, 1), 8) for n in tm.box[1:])),
            tuple(min(max(n, 1), 8) for n in tm.element_strides),
            tm.interleave if tm.rank >= 3 else "NONE",
            tm.swizzle if tm.swizzle in ("NONE", "32B", "64B", "128B") else "128B",
            tm.l2_promotion,
            tm.oob_fill if tensormap.DTYPES[legal].is_float else "ZERO",
            tm.base_address % 2**57 // 32 * 32,
        )

    return maps(1).map(repaired)


@settings(max_examples=150, deadline=None)
@given(st.lists(maps(), min_size=1, max_size=6))
def test_scalar_and_vectorised_agree(many: list[TensorMap]) -> None:
    rows = [batch.to_row(tm) for tm in many]
    verdicts, words = batch.verdicts(rows), batch.encode_many(rows)
    for tm, verdict, encoded in zip(many, verdicts, words, strict=True):
        found = violations(tm)
        assert (found == ()) == verdict
        assert batch.from_row(batch.to_row(tm)) == tm
        if verdict:
            assert encode(tm) == encoded.astype("<u8").tobytes()
            assert encoded.any()
        else:
            assert not encoded.any()
            try:
                encode(tm)
            except TargetRuleError as error:
                message = str(error)
            else:
                raise AssertionError("a refused map was encoded")
            assert all(entry.message in message for entry in found)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=26, max_size=26), min_size=1, max_size=4))
def test_rows_of_any_integers_get_a_verdict(rows: list[list[int]]) -> None:
    for row, verdict in zip(rows, batch.verdicts(rows), strict=True):
        try:
            tm = batch.from_row(row)
        except LayoutError:
            assert not verdict
        else:
            assert verdict == (violations(tm) == ())


@settings(max_examples=200, deadline=None)
@given(maps())
def test_violations_name_known_rules_and_fields(tm: TensorMap) -> None:
    for target, evidence in (("sm_90a", "enforced"), ("sm_90", "documented"), ("sm_100a", "documented")):
        for entry in violations(tm, target=target, evidence=evidence):
            assert entry.rule in tensormap.RULES
            value = getattr(tm, entry.field)
            if entry.position is not None:
                assert str(value[entry.position]) in entry.message
            if evidence == "enforced":
                assert entry.rule in tensormap.RULE_IDS_ENFORCED
            else:
                assert tensormap.RULES[entry.rule].documented or entry.rule == "BASE_RANGE"


@settings(max_examples=300, deadline=None)
@given(accepted_maps())
def test_decode_inverts_encode(tm: TensorMap) -> None:
    raw = encode(tm)
    assert len(raw) == 128
    assert decode(raw) == tm
    assert encode(decode(raw)) == raw


def decoded(raw: bytes) -> TensorMap | Diagnostic:
    try:
        return decode(raw)
    except LayoutError as error:
        return error.diagnostic


def decodes_or_refuses(raw: bytes) -> TensorMap | None:
    answer = decoded(raw)
    if isinstance(answer, TensorMap):
        assert encode(answer) == raw
        return answer
    assert answer.code in ("LA309", "LA310")
    assert "bits" in answer.because
    return None


@settings(max_examples=300, deadline=None)
@given(st.binary(min_size=128, max_size=128))
def test_arbitrary_bytes_are_refused_by_name(raw: bytes) -> None:
    decodes_or_refuses(raw)


@settings(max_examples=300, deadline=None)
@given(accepted_maps(), st.lists(st.tuples(st.integers(0, 31), st.integers(0, 2**32 - 1)), max_size=3))
def test_overwritten_words_decode_or_are_refused(tm: TensorMap, writes: list[tuple[int, int]]) -> None:
    words = list(struct.unpack("<32I", encode(tm)))
    for word, value in writes:
        words[word] = value
    decodes_or_refuses(struct.pack("<32I", *words))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300).filter(lambda raw: len(raw) != 128))
def test_other_lengths_are_refused(raw: bytes) -> None:
    answer = decoded(raw)
    assert isinstance(answer, Diagnostic)
    assert answer.code == "LA308"


@settings(max_examples=15, deadline=None)
@given(accepted_maps())
def test_every_single_bit_matters(tm: TensorMap) -> None:
    raw = encode(tm)
    for bit in range(1024):
        flipped = bytearray(raw)
        flipped[bit // 8] ^= 1 << bit % 8
        other = decodes_or_refuses(bytes(flipped))
        assert other != tm


@settings(max_examples=200, deadline=None)
@given(maps(1))
def test_byte_counts_against_plain_enumeration(tm: TensorMap) -> None:
    try:
        counts = tensormap.loaded_counts(tm)
        total = tensormap.transaction_bytes(tm)
    except LayoutError:
        return
    plain = tm.interleave == "NONE"
    walked = [len(range(0, n, 1 if plain and not mode else tm.element_strides[mode])) for mode, n in enumerate(tm.box)]
    if not plain:
        walked[-2] = 1
    assert list(counts) == walked
    unit = tensormap.element_bytes(tm.dtype) if plain else int(tm.interleave[:2])
    assert total == int(np.prod([unit, *walked], dtype=object))

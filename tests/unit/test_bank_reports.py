"""Reports of ``la.banks`` on targets of AMD: what they say, draw and certify, and what they refuse."""

from __future__ import annotations

import json
import pickle
import re

import pytest

import layoutalg as la
from layoutalg.cli import main
from layoutalg.proofs import checker
from layoutalg.targets.banks import bank_model

ROWS = "(64,8):(64,1)"


def test_one_question_for_every_target() -> None:
    for target, lanes, turns in (("gfx942", 64, 64), ("gfx950", 64, 32), ("gfx1100", 32, 32), ("sm_90a", 32, 32)):
        report = la.banks(f"({lanes},8):(64,1)", None, 16, target=target)
        assert (report.turns, report.target, report.accesses) == (turns, target, 1), target
        assert sum(phase.turns for phase in report.phases) == turns
    fragment = la.LinearLayout.from_bases(
        {"register": [(1,), (2,)], "lane": [(16,), (32,), (64,), (128,), (4,), (8,)]}, {"offset": 256}
    )
    report = la.banks(fragment, None, 16, target="gfx942")
    assert report.instruction == "ds_read_b64"
    assert report.turns == bank_model("gfx942", "ds_read_b64").turns(report.worst.addresses_bytes)


def test_why_names_lanes_phase_bank_and_words() -> None:
    report = la.banks(ROWS, None, 16, target="gfx942")
    assert "phase 1 serves lanes 4-7 16-19 in 8 turns instead of 1; bank 0 has (lane:word) 4:128, 5:160" in report.why
    assert report.step in range(1, 64)
    first = report.phases[0]
    for lane in first.lanes:
        other = lane ^ report.step
        assert other in first.lanes
        words = [report.worst.addresses_bytes[each] // 4 for each in (lane, other)]
        assert words[0] != words[1]
        assert words[0] % 32 == words[1] % 32
    free = la.banks("(64,8):(8,1)", None, 16, target="gfx942")
    assert free.conflict_free
    assert free.step is None
    assert "phases has a conflict" in free.why
    assert free.witness is None


@pytest.mark.parametrize("target", ["gfx942", "gfx950", "gfx1100", "gfx1201", "sm_90a"])
@pytest.mark.parametrize("pitch", [8, 16, 64, 72])
def test_certificates_of_conflicts_and_of_none(target: str, pitch: int) -> None:
    lanes = 64 if target in ("gfx942", "gfx950") else 32
    report = la.banks(f"({lanes},16):({pitch + 8},1)", None, 16, target=target)
    made = report.certificate
    assert made.statement["turns"] == report.turns
    assert checker.check(made.to_json())[0] == 0
    assert (report.witness is None) == (report.worst.turns == report.worst.ideal)
    if report.witness is not None:
        assert report.witness.statement["most"] == report.worst.turns
        assert checker.check(report.witness.to_json())[0] == 0
    assert pickle.loads(pickle.dumps(report)) == report


def test_pairs_of_addresses() -> None:
    report = la.banks("(64,(4,2)):(8,(1,512))", None, 16, "ds_read2_b64", target="gfx942")
    assert report.accesses == 1
    assert len(report.worst.addresses_bytes) == 128
    assert report.turns == 2 * la.banks("(64,4):(8,1)", None, 16, "ds_read_b64", target="gfx942").turns
    assert checker.check(report.certificate.to_json())[0] == 0
    with pytest.raises(la.MalformedError, match="below 2048"):
        la.banks("(64,(4,2)):(8,(1,4096))", None, 16, "ds_read2_b64", target="gfx942")


def test_words_of_96_bits() -> None:
    report = la.banks("(64,3):(3,1)", None, 32, target="gfx950")
    assert (report.instruction, report.accesses) == ("ds_read_b96", 1)
    assert report.turns == bank_model("gfx950", "ds_read_b96").turns([12 * lane for lane in range(64)])
    assert la.banks("(64,6):(6,1)", None, 32, "ds_read_b96", target="gfx950").accesses == 2


def test_sources_that_disagree_are_both_told() -> None:
    agreed = la.banks("(64,1):(64,1)", None, 32, target="gfx950")
    assert (agreed.turns, agreed.evidence) == (64, "disputed")
    assert "64 banks" in agreed.why
    assert "32 banks" in agreed.why
    with pytest.raises(la.RepresentabilityError, match=r"LA436"):
        _ = agreed.certificate
    with pytest.raises(la.RepresentabilityError, match=r"(?s)LA712.*1 turns.*2 turns"):
        la.banks("(64,1):(1,1)", None, 32, target="gfx950")
    with pytest.raises(la.RepresentabilityError, match=r"(?s)LA712.*64 banks.*: 1 turns; 32 banks.*: 2 turns"):
        la.targets.banks.turns("gfx950", "ds_read_b32", [4 * lane for lane in range(64)])


@pytest.mark.parametrize(
    ("target", "lanes", "kind", "says"),
    [
        ("gfx90a", 64, "load", "assumed, not measured"), ("gfx1250", 32, "load", "320 KB"),
        ("gfx950", 64, "ds_read_b64_tr_b16", "transposing reads are not published"),
        ("gfx950", 64, "ds_write_b128", "rocRoller"), ("gfx942", 64, "ds_write_b64", "not published"),
        ("gfx942", 64, "ds_read2st64_b64", "offset unit"), ("gfx942", 64, "ds_read_b96", "not published"),
    ],
)  # fmt: skip
def test_what_nobody_published_is_unknown(target: str, lanes: int, kind: str, says: str) -> None:
    with pytest.raises(la.RepresentabilityError, match=f"(?s)LA712.*{says}"):
        la.banks(f"({lanes},4):(4,1)", None, 32, kind, target=target)


def test_a_narrower_instruction_is_taken_and_said() -> None:
    report = la.banks("(64,4):(4,1)", None, 32, "store", target="gfx950")
    assert (report.instruction, report.accesses) == ("ds_write_b64", 2)
    assert report.notes == ("ds_write_b128 would be wider, but its lane groups are not known",)
    report = la.banks("(32,4):(4,1)", None, 32, target="sm_100a")
    assert (report.instruction, report.evidence, report.notes) == ("ld.shared.v4.b32", "assumed", ())


@pytest.mark.parametrize(
    ("arguments", "target", "says"),
    [
        (("(64,4):(6,1)", None, 32, "ds_read_b128"), "gfx942", r"multiples of 16 bytes.*try    use ds_read_b64"),
        (("(64,4):(4,1)", None, 32, "ds_read_b256"), "gfx942", r"kind.*LDS instruction.*not 'ds_read_b256'"),
        (("(32,4):(4,1)", None, 32), "gfx942", r"multiple of 64 threads"),
        (("(48,4):(4,1)", None, 32), "gfx1100", r"multiple of 32 threads"),
        (("(64,4):(4,1)", None, 32, "ldmatrix"), "gfx942", r"kind.*LDS instruction"),
        (("(64,4):(4,1)", None, 32, "ds_read_b128"), "gfx9999", r"LA340"),
        (("(32,4):(4,1)", None, 32, "ds_read_b128"), "sm_90a", r"kind must be one of|must be one of load"),
        (("(64,4):(4,1)", None, 3), "gfx942", r"power of two"),
    ],
)  # fmt: skip
def test_bad_input_is_named_with_the_rule(arguments: tuple[object, ...], target: str, says: str) -> None:
    with pytest.raises(la.MalformedError, match=f"(?s){says}"):
        la.banks(*arguments, target=target)


def test_misaligned_addresses_have_a_repair_that_holds() -> None:
    lanes = [8 * lane for lane in range(64)]
    with pytest.raises(la.MalformedError) as caught:
        la.targets.banks.turns("gfx942", "ds_read_b128", lanes)
    assert "ds_read_b128 needs multiples of 16 bytes, ds_read2_b64 of 8" in str(caught.value)
    names = [repair.name.removeprefix("use ") for repair in caught.value.diagnostic.repairs]
    assert names == ["ds_read2_b64", "ds_read_b64"]
    assert la.targets.banks.turns("gfx942", names[1], lanes) == 4
    with pytest.raises(la.MalformedError, match="64 integers, one per lane"):
        la.targets.banks.turns("gfx942", "ds_read_b128", [0] * 65)
    with pytest.raises(la.MalformedError, match=r"operation must be an LDS instruction"):
        la.targets.banks.turns("gfx942", "ds_reed_b128", [0] * 64)
    with pytest.raises(la.MalformedError, match=r"use ld\.shared\.v2\.b32"):
        la.targets.banks.turns("sm_90a", "ld.shared.v4.b32", [8 * lane for lane in range(32)])
    with pytest.raises(la.MalformedError) as caught:
        bank_model("gfx942", "ds_read_b128").turns([2 * lane for lane in range(64)])
    assert caught.value.diagnostic.repairs == ()


def test_newer_names_are_the_same_instructions() -> None:
    assert bank_model("gfx1201", "ds_load_b128") == bank_model("gfx1201", "ds_read_b128")
    report = la.banks("(32,4):(4,1)", None, 32, "ds_load_b128", target="gfx1100")
    assert report.instruction == "ds_read_b128"


def test_pictures_show_phases_of_64_banks_and_the_lanes_that_meet() -> None:
    report = la.banks("(64,4):(64,1)", None, 32, target="gfx950")
    picture = la.draw.svg(report)
    titles = re.findall(r"<title>([^<]*)</title>", picture)
    assert sum(title.startswith("bank 63:") for title in titles) == 4
    assert sum(title.startswith("lane ") for title in titles) == 64
    assert "lane 20: phase 0, touches word 1280 of bank 0" in titles
    assert "64 turns" in picture
    assert "image/svg+xml" in report._repr_mimebundle_()
    assert report.map_text.splitlines()[1].startswith("++++......")
    alone = la.draw.banks([256 * lane for lane in range(64)], target="gfx950", instruction="ds_read_b64")
    assert "64 banks" in alone
    holes = la.draw.banks(
        [4 * lane if lane % 2 else None for lane in range(64)], target="gfx942", instruction="ds_read_b32"
    )
    assert "lane 0 is inactive" in holes


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path) -> None:
    words = ["banks", ROWS, "--target", "gfx942", "--instruction", "ds_read_b128"]
    report = la.banks(ROWS, None, 16, "ds_read_b128", target="gfx942")
    assert main(words) == 0
    assert capsys.readouterr().out == f"{report}\n"
    assert main([*words, "--why"]) == 0
    assert capsys.readouterr().out == f"{report}\n{report.why}\n{report.map_text}\n"
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["step"] == report.step
    assert told["phases"][0]["lanes"] == [0, 1, 2, 3, 20, 21, 22, 23]
    file = tmp_path / "banks.svg"
    assert main([*words, "-o", str(file)]) == 0
    assert file.read_text(encoding="utf-8") == la.draw.svg(report) + "\n"
    assert main(["banks", ROWS, "--target", "gfx90a"]) != 0

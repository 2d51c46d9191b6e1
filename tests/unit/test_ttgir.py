"""Kernels of others: stored TTGIR of Triton 3.9.0, the pipelines in it, and what is proved of them."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from instruments.triton_peer import triton_python
from judges.kernel_hazards import hazards
from judges.kernel_run import Run, compared

from layoutalg.cli import main
from layoutalg.ground.errors import LayoutError, MalformedError, RepresentabilityError
from layoutalg.ground.verdict import Proved, Refuted, Unknown
from layoutalg.notation.mlir import read_mlir
from layoutalg.pipeline import Pipeline, verify

FOLDER = Path(__file__).parents[1] / "data" / "ttgir"
GOLDEN = FOLDER / "pipelines.json"
VERDICTS = {
    "attention_sm90": "proved",
    "attention_sm100": "proved",
    "attention_specialized_sm100": "proved",
    "copy_tma_sm90": "proved",
    "copy_tma_sm100": "proved",
    "gemm_cp_async_3_sm90": "proved",
    "gemm_cp_async_3_sm100": "proved",
    "gemm_cp_async_4_sm90": "proved",
    "gemm_cp_async_4_sm100": "proved",
    "gemm_persistent_sm90": "proved",
    "gemm_persistent_sm100": "proved",
    "gemm_persistent_flat_sm90": "proved",
    "gemm_persistent_flat_sm100": "unknown line 157",
    "gemm_persistent_specialized_sm100": "proved",
    "gemm_specialized_sm100": "proved",
    "gemm_tma_2_sm90": "proved",
    "gemm_tma_2_sm100": "proved",
    "gemm_tma_3_sm90": "proved",
    "gemm_tma_3_sm100": "proved",
    "gemm_tma_4_sm90": "proved",
    "gemm_tma_4_sm100": "proved",
    "gluon_copy_ring_sm90": "proved",
    "gluon_copy_ring_sm100": "proved",
    "gluon_copy_ring_early_release_sm90": "refuted race",
    "gluon_copy_ring_early_release_sm100": "refuted race",
    "gluon_copy_ring_wrong_bytes_sm90": "refuted tx_mismatch",
    "gluon_copy_ring_wrong_bytes_sm100": "refuted tx_mismatch",
    "gluon_ring_sm90": "proved",
    "gluon_ring_behind_sm90": "proved",
    "gluon_ring_early_release_sm90": "refuted race",
    "gluon_ring_no_arrive_sm90": "refuted deadlock",
    "gluon_ring_wrong_bytes_sm90": "refuted tx_mismatch",
    "gluon_ring_wrong_count_sm90": "refuted deadlock",
    "gluon_ring_wrong_phase_sm90": "refuted deadlock",
    "gluon_read_ring_sm90": "proved",
    "gluon_read_ring_sm100": "proved",
    "gluon_read_ring_no_fence_sm90": "refuted race",
    "gluon_read_ring_no_fence_sm100": "refuted race",
    "gluon_scale_sm90": "proved",
    "gluon_scale_sm100": "proved",
    "gluon_scale_no_fence_sm90": "proved",
    "gluon_scale_no_fence_sm100": "proved",
    "gluon_tcgen05_sm100": "proved",
    "gluon_tcgen05_wrong_bytes_sm100": "refuted tx_mismatch",
    "gluon_tcgen05_wrong_phase_sm100": "refuted deadlock",
    "gluon_two_consumers_sm90": "proved",
    "gluon_two_consumers_wrong_count_sm90": "refuted race",
}
RECOVERED = [name for name, told in VERDICTS.items() if not told.startswith("unknown")]


ORDERS = re.compile(r"ttng\.(?:wait_barrier|arrive_barrier|tc_gen5|tmem_load|tmem_store)")


def text_of(name: str) -> str:
    return (FOLDER / f"{name}.ttgir").read_text()


def told(verdict: Proved | Refuted | Unknown) -> str:
    """A verdict in the words of the table."""
    if isinstance(verdict, Unknown):
        return f"unknown {verdict.reason.split(':')[0]}"
    return f"refuted {getattr(verdict, 'kind', '')}" if isinstance(verdict, Refuted) else "proved"


class TestStoredKernels:
    def test_every_text_is_in_the_table(self) -> None:
        assert {path.stem for path in FOLDER.glob("*.ttgir")} == set(VERDICTS)

    def test_the_page_shows_the_table(self) -> None:
        page = (FOLDER.parents[2] / "docs" / "pipelines.md").read_text()
        rows = re.findall(r"^\| `(\w+)`: [^|]* \| ([^|]*) \| ([^|]*) \|$", page, re.MULTILINE)
        shown = {f"{row[0]}_sm{arch}": row[place] for row in rows for place, arch in ((1, 90), (2, 100)) if row[place]}
        assert {name: told.strip() for name, told in shown.items()} == VERDICTS

    @pytest.mark.parametrize("name", VERDICTS)
    def test_the_verdict(self, name: str) -> None:
        assert told(verify(text_of(name))) == VERDICTS[name]

    def test_the_pipelines(self, request: pytest.FixtureRequest) -> None:
        found = {name: Pipeline.of(text_of(name)).to_json() for name in RECOVERED}
        if request.config.getoption("--update-golden"):
            lines = [f'"{name}": {json.dumps(entry)}' for name, entry in found.items()]
            GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        assert found == json.loads(GOLDEN.read_text())

    @pytest.mark.parametrize("tiles", [1, 2, 5])
    @pytest.mark.parametrize(
        ("name", "inner"),
        [
            ("gemm_persistent_flat_sm90", ("default, line 43",)),
            ("gemm_persistent_specialized_sm100", ("partition0, line 103", "partition1, line 146")),
        ],
    )
    def test_parts_of_loops_do_what_the_document_says(self, name: str, inner: tuple[str, ...], tiles: int) -> None:
        """N is the number of all turns for inner loops, of tiles for the rest; dropped waits are not compared.

        What the turns of an inner loop add to one accumulator is one op of the outer loop.
        """
        text = text_of(name)
        document: dict[str, Any] = Pipeline.of(text).to_json()
        for turns in range(1, 8):
            run = Run(text, {"K": 64 * turns, "M": 128 * tiles, "N": 128})
            for role in document["roles"]:
                if role["name"] in ("default, line 29", "default, line 31"):
                    continue  # what runs where there is nothing to multiply, or where K is 0
                kernel, stated = compared(run, document, role["name"], tiles * (turns if role["name"] in inner else 1))
                if "flat" in name:
                    kernel, stated = ([event for event in one if len(event) > 2] for one in (kernel, stated))
                once = [event for place, event in enumerate(kernel) if kernel[place - 1 : place] != [event]]
                assert (once if "mma_write" in {event[0] for event in kernel} else kernel) == stated, role["name"]

    @pytest.mark.parametrize("name", [name for name in RECOVERED if not re.search("flat|persistent_spec", name)])
    def test_a_run_with_numbers_does_what_the_document_says(self, name: str) -> None:
        text = text_of(name)
        document: dict[str, Any] = Pipeline.of(text).to_json()
        least = int(str(document["trips"])[5:])
        for trips in range(least, least + 3 * document["stages"] + 6):
            numbers = {"K": 64 * trips - trips % 2 * 13, "length": 64 * trips - trips % 3 * 7, "N": trips}
            numbers |= {"rows": 128 * trips - trips % 2 * 5}
            numbers |= {"M": 128, "N": 128} if "persistent" in name else {}
            run = Run(text, numbers)
            for role in document["roles"]:
                tiles = "M" in numbers and "," not in role["name"]
                kernel, stated = compared(run, document, role["name"], 1 if tiles else trips)
                assert kernel == stated, (trips, role["name"])

    @pytest.mark.parametrize("name", ["gluon_ring_sm90", "gemm_tma_3_sm100", "attention_sm90"])
    def test_a_proof_is_confirmed_by_the_checker(self, name: str) -> None:
        verdict = verify(text_of(name))
        assert verdict.to_certificate().check()  # type: ignore[union-attr]

    def test_the_command_reads_kernels(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["verify", str(FOLDER / "gluon_ring_sm90.ttgir")]) == 0
        assert capsys.readouterr().out.startswith("proved        safe for every N >= 0")
        assert main(["verify", str(FOLDER / "gluon_ring_no_arrive_sm90.ttgir")]) == 1
        strange = tmp_path / "strange.ttgir"
        strange.write_text(text_of("gluon_ring_sm90").replace("ttng.arrive_barrier %20", "ttng.surprise %20"))
        assert main(["verify", str(strange)]) == 2
        assert "line 44: ttng.surprise is not known" in capsys.readouterr().out


class TestWrongTexts:
    @pytest.mark.parametrize(
        ("name", "old", "new", "verdict"),
        [
            ("gluon_ring_sm90", "ttng.arrive_barrier %20, 1, %true", "ttng.arrive_barrier %20, 2, %true", "refuted ub"),
            ("gluon_ring_sm90", "ttng.wait_barrier %15, %phase_0", "ttng.wait_barrier %15, %c1_i32", "unknown line 38"),
            ("gluon_ring_sm90", "pendings = 0 : i32} : tensor", "pendings = 1 : i32} : tensor", "refuted race"),
            ("gluon_ring_sm90", "ttng.arrive_barrier %20", "ttng.surprise %20", "unknown line 44"),
            ("gluon_ring_sm90", "ttng.arrive_barrier %20", "llvm.inline_asm %20", "unknown line 44"),
            ("gemm_tma_3_sm90", "arith.constant 3 : i32", "arith.constant 2 : i32", "unknown line 52"),
            ("gemm_tma_3_sm90", "{pendings = 1 : i32}", "{pendings = 2 : i32}", "refuted race"),
            ("gemm_tma_3_sm90", "%acc_23, 32768, %acc_12", "%acc_23, 16384, %acc_12", "refuted tx_mismatch"),
            (
                "gemm_tma_3_sm100",
                "ttng.wait_barrier %acc_16, %acc_17",
                "ttng.wait_barrier %acc_25, %acc_24",
                "refuted race",
            ),
            ("gemm_tma_3_sm90", "%acc_0, 32768, %acc_3", "%acc_0, 16384, %acc_3", "refuted tx_mismatch"),
            ("gemm_tma_3_sm100", "%acc_16 = %acc_0", "%acc_16 = %acc_1", "unknown line 61"),
            (
                "gemm_persistent_specialized_sm100",
                "scf.yield %acc#0, %acc#1",
                "scf.yield %c2_i32_7, %c0_i32_5",
                "unknown line 153",
            ),
            ("gluon_scale_sm90", "%25 = arith.remsi %23", "%25 = arith.remsi %22", "unknown line 59"),
            (
                "gemm_tma_3_sm90",
                "ttg.memdesc_index %acc[%c1_i32]",
                "ttg.memdesc_index %acc[%c3_i32]",
                "unknown line 38",
            ),
            ("gluon_scale_sm90", "scf.for %i = %c0_i32 to %N", "scf.for %i = %c0_i32 to %11", "unknown line 41"),
            ("attention_specialized_sm100", "%100, %99, %acc_29", "%100, %99", "unknown line 226"),
            ("gemm_cp_async_3_sm90", "{num = 2 : i32}", "{num = 3 : i32}", "refuted race"),
            ("gemm_cp_async_3_sm90", "      ttng.fence_async_shared {bCluster = false}\n", "", "refuted race"),
            ("gluon_copy_ring_sm90", "%c1_i32_0 = arith.constant 1", "%c1_i32_0 = arith.constant 2", "unknown line 51"),
            ("gemm_persistent_specialized_sm100", "%arg38, %true_2,", "%arg38, %false,", "unknown line 115"),
            ("gemm_persistent_sm100", "ttng.tmem_load %result", "ttng.tmem_load %9", "unknown line 116"),
            ("gemm_tma_3_sm100", "%17, %16, %result, %true", "%17, %16, %6, %true", "unknown line 74"),
            (
                "gemm_tma_3_sm100",
                "ttng.tmem_store %cst, %result, %true",
                "ttng.tmem_copy %6, %result",
                "unknown line 25",
            ),
            (
                "gemm_tma_3_sm100",
                "%16 = ttg.memdesc_index %7[%acc_22]",
                "%16 = ttng.tmem_subslice %result",
                "unknown line 71",
            ),
        ],
    )
    def test_one_change(self, name: str, old: str, new: str, verdict: str) -> None:
        text = text_of(name)
        assert old in text
        assert told(verify(text.replace(old, new))) == verdict

    @pytest.mark.parametrize(
        ("name", "start", "buffer"),
        [
            ("gluon_tcgen05", "ttng.wait_barrier %12,", "%result"),  # the epilogue
            ("gemm_tma_3", "ttng.wait_barrier %acc_10#5", "%result"),  # the last turn
            ("gemm_cp_async_4", "ttng.wait_barrier %acc_20#12", "%result"),
            ("gemm_persistent", "ttng.wait_barrier %acc_10#5", "%result"),
            ("gemm_specialized", "ttng.wait_barrier %9,", "%result"),
            ("attention", "ttng.wait_barrier %acc_2,", "%result_18"),  # the first scores
            ("attention", "ttng.wait_barrier %acc_31,", "%result_18"),  # the scores of a turn
            ("attention", "ttng.wait_barrier %acc_32,", "%result"),  # the sum
            ("attention", "ttng.wait_barrier %acc_24#14", "%result"),  # the sum behind the loop
            ("attention_specialized", "ttng.wait_barrier %56, %55", "%result_6"),  # the scores
            ("attention_specialized", "ttng.wait_barrier %79,", "%result_7"),  # the weights, an operand
            ("attention_specialized", "ttng.wait_barrier %77,", "%result"),  # the rescaled sum
            ("attention_specialized", "ttng.wait_barrier %61,", "%result"),  # the sum that is rescaled next
        ],
    )
    def test_tensor_memory_without_a_wait(self, name: str, start: str, buffer: str) -> None:
        lines = text_of(f"{name}_sm100").splitlines()
        (at,) = [at for at, line in enumerate(lines) if line.strip().startswith(start)]
        found = verify("\n".join([*lines[:at], *lines[at + 1 :]]))
        assert isinstance(found, Refuted)
        assert (found.kind, found.buffer) == ("race", buffer)

    @pytest.mark.parametrize(
        ("name", "line", "to", "verdict"),
        [
            ("gemm_tma_3", 106, 94, "refuted race"),  # the sum is read before the wait for the last turn
            ("gemm_tma_3", 25, 94, "refuted race"),  # it is set to 0 while the last turn runs
            ("gluon_tcgen05", 39, 38, "refuted race"),  # before the wait
            ("gluon_tcgen05", 89, 76, "refuted race"),  # the commit for the epilogue comes before the loop
            ("attention", 132, 131, "refuted race"),  # the scores are read one turn too early
            ("attention", 148, 131, "refuted race"),  # the weights are written while the product before reads them
            ("attention", 148, 147, "proved"),  # what is awaited in line 131 ends after that product
            ("attention", 226, 195, "refuted race"),
            ("attention_specialized", 115, 119, "refuted race"),
            ("attention_specialized", 119, 118, "proved"),  # released before it is read, but the weights come later
            ("attention_specialized", 189, 192, "refuted race"),  # rescaled after the product may begin
            ("attention_specialized", 147, 149, "refuted race"),
            ("gemm_persistent_specialized", 74, 73, "unknown inner loops are taken apart, and alone default's read"),
        ],
    )
    def test_tensor_memory_too_early(self, name: str, line: int, to: int, verdict: str) -> None:
        """A line is moved before another one."""
        lines = text_of(f"{name}_sm100").splitlines()
        moved = [*lines[: to - 1], lines[line - 1], *lines[to - 1 :]]
        del moved[line - (to > line)]
        assert told(verify("\n".join(moved))).startswith(verdict)

    @pytest.mark.parametrize("seed", range(40))
    def test_what_is_proved_touches_tensor_memory_at_the_right_time(self, seed: int) -> None:
        """Texts with a line of theirs elsewhere or missing: runs with numbers, in which no index is guessed."""
        chance = random.Random(seed)
        name = chance.choice([name for name in RECOVERED if "tmem" in text_of(name)])
        lines = text_of(name).splitlines()
        places = [at for at, line in enumerate(lines) if ORDERS.search(line)]
        line = lines.pop(chance.choice(places))
        if chance.random() < 0.7:
            lines.insert(chance.choice(places), line)
        text = "\n".join(lines)
        try:
            proved = isinstance(verify(text), Proved)
        except MalformedError:
            return
        for trips in (2, 3, 6) if proved else ():
            tiles = {"M": 384, "N": 128} if "persistent" in name else {"N": trips}
            assert not hazards(text, {"K": 64 * trips, "length": 64 * trips, "rows": 128 * trips} | tiles, 20, seed)

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("module {", 1),
            ("module {\n}\n}", 3),
            ("module {\n  %0 = \n}", 2),
            ("module {\n  tt.func @f(%a: i32 {\n}", 1),
            ("nonsense", 1),
            ("module {\n}", 1),
        ],
    )
    def test_what_is_no_module_is_refused_with_its_line(self, text: str, line: int) -> None:
        with pytest.raises(MalformedError) as caught:
            Pipeline.of(text)
        assert caught.value.diagnostic.code == "LA972"
        assert caught.value.diagnostic.where == (f"line {line}",)

    def test_a_kernel_is_named_where_there_are_many(self) -> None:
        one = text_of("gluon_copy_ring_sm90")
        lines = one.splitlines()
        start = next(place for place, line in enumerate(lines) if "tt.func" in line)
        other = [line.replace("@gluon_copy_ring", "@other") for line in lines[start:-1]]
        text = "\n".join([*lines[:-1], *other, "}"])
        with pytest.raises(MalformedError, match="kernel must name one"):
            Pipeline.of(text)
        assert Pipeline.of(text, kernel="other") == Pipeline.of(one)
        with pytest.raises(MalformedError, match=r"tt\.func named none"):
            Pipeline.of(text, kernel="none")

    def test_clusters_are_refused(self) -> None:
        text = text_of("gluon_ring_sm90").replace('"ttg.num-ctas" = 1', '"ttg.num-ctas" = 2')
        with pytest.raises(RepresentabilityError, match="clusters of 2 blocks"):
            Pipeline.of(text)

    @pytest.mark.parametrize("seed", range(200))
    def test_texts_with_lines_missing_are_refused_or_decided(self, seed: int) -> None:
        """A text that lost lines is no kernel any more; it must never end in another error than the library's."""
        chance = random.Random(seed)
        lines = text_of(chance.choice(sorted(VERDICTS))).splitlines()
        for _ in range(chance.choice((1, 1, 2, 5))):
            del lines[chance.randrange(len(lines))]
        if chance.random() < 0.3:
            place = chance.randrange(len(lines))
            words = lines[place].split(" ")
            del words[chance.randrange(len(words))]
            lines[place] = " ".join(words)
        try:
            Pipeline.of("\n".join(lines))
        except LayoutError as error:
            assert error.diagnostic.code in ("LA970", "LA972", "LA973")
            assert re.fullmatch(r"line \d+", error.diagnostic.where[0]) or error.diagnostic.code == "LA970"


NUMBERS = re.compile(
    r"arith\.(?:constant -?\d+ : i32|addi|subi|cmpi|select|xori|remsi|divsi|andi)|scf\.(?:for|yield)|_index|wait_b"
)
VALUE = r"%[\w$.-]+(?:#\d+)?"


def changed(text: str, chance: random.Random) -> str:
    """A text with another number, comparison or value in its arithmetic."""
    lines = text.splitlines()
    places = [at for at, line in enumerate(lines) if NUMBERS.search(line) and "tensor<" not in line.split(" : ")[-1]]
    at = chance.choice(places)
    head = lines[at].split(" : ")[0]
    number = re.search(r"(?<=constant )-?\d+", head)
    near = re.findall(VALUE, " ".join([line.split(" : ")[0] for line in lines[max(0, at - 12) : at]]))
    used = list(re.finditer(VALUE, head))["=" in head.split("(")[0] :]
    if number:
        lines[at] = lines[at].replace(number[0], str(int(number[0]) + chance.choice((-1, 1, 2))), 1)
    elif "cmpi" in head and chance.random() < 0.6:
        lines[at] = re.sub(r"cmpi \w+", f"cmpi {chance.choice(('eq', 'ne', 'slt', 'sle', 'sgt', 'sge'))}", lines[at])
    elif used and near:
        word = chance.choice(used)
        lines[at] = lines[at][: word.start()] + chance.choice(near) + lines[at][word.end() :]
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(150))
def test_other_arithmetic_is_refused_or_followed(seed: int) -> None:
    """Whatever a text computes: if a document comes out, runs with numbers do what it says for some N."""
    chance = random.Random(seed)
    plain = [name for name in RECOVERED if not re.search("persistent|copy_tma|attention", name)]
    text = changed(text_of(chance.choice(plain)), chance)
    try:
        document: dict[str, Any] = Pipeline.of(text).to_json()
    except LayoutError:
        return
    least = int(document["trips"][5:])
    for trips in range(least + 4, least + 9):
        try:
            run = Run(text, {"K": 64 * trips, "N": trips})
        except (AssertionError, ZeroDivisionError, TypeError, KeyError, IndexError):
            return  # what is changed is no kernel: a value of the wrong type, a division by 0
        likely = [*range(trips, least - 1, -1), *range(trips, trips + 9)]
        likely += [many * trips + more for many in (64, 32, 21, 22) for more in range(-3, 70)]
        fits = (
            all(one == two for one, two in (compared(run, document, role["name"], n) for role in document["roles"]))
            for n in likely
        )
        assert any(fits), trips


def test_mlir_is_read_with_strings_comments_and_locations() -> None:
    text = """
    #map = affine_map<(d0) -> (d0)> // an alias
    module @m attributes {a = "} {"} { loc("f.py":1:2)
      func.func @f(%x: i32 loc("x")) -> (i32, i32) {
        %0:2 = "d.op"(%x) <{n = 3 : i32}> ({
        ^bb0(%y: f32, %z: tensor<2xf32>):
          d.end %y : f32 // {
        }, {
          d.end
        }) : (i32) -> (i32, i32) loc(#loc3)
        return %0#0, %0#1 : i32, i32
      }
    }
    """
    function = read_mlir(text).operations[0].regions[0].operations[0]
    inner = function.regions[0].operations[0]
    assert inner.results == ("%0#0", "%0#1")
    assert inner.line == 5
    assert inner.types == "(i32) -> (i32, i32)"
    assert inner.attribute("n") == 3
    assert [len(region.operations) for region in inner.regions] == [1, 1]
    assert inner.regions[0].arguments == [("%y", "f32"), ("%z", "tensor<2xf32>")]
    assert function.regions[0].operations[1].operands() == ["%0#0", "%0#1"]


def test_triton_still_writes_these_texts() -> None:
    """Compiles all kernels again; without a GPU."""
    python = triton_python(named=True)
    code = "import texts, json; print(json.dumps({name: texts.compiled(name) for name in texts.TEXTS}))"
    path = os.pathsep.join([str(FOLDER), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True, env=environment, timeout=600
    )
    found = json.loads(done.stdout)
    assert set(found) == set(VERDICTS)
    for name, text in found.items():
        assert text == text_of(name), name

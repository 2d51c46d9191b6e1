"""Exit codes and files: 0 is never said of what was not decided and written, 1 only by a verdict; no half file."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import pytest

from layoutalg.cli import answers, main
from layoutalg.cli.answers import EXIT_CODES, INTERNAL, INTERRUPTED, OUTPUT, PROVED, REFUTED, TERMINATED, UNKNOWN, USAGE
from layoutalg.ground.errors import (
    BudgetError,
    Diagnostic,
    InfeasibleError,
    LayoutError,
    MalformedError,
    MissingExtraError,
)
from layoutalg.proofs.certify import Certificate
from layoutalg.proofs.wgmma import OperandProblem
from layoutalg.synth import synthesize_tensormap
from layoutalg.synth.wgmma import synthesize_wgmma

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "tests" / "data" / "examples" / "problem.json"
PROBLEM = json.loads(EXAMPLE.read_text(encoding="utf-8"))
PLAN = synthesize_tensormap(PROBLEM).to_json()
WRONG = json.loads(json.dumps(PLAN))
WRONG["issues"][0]["coords"] = [8, 0]
FULL = Path("/dev/full")


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "layoutalg", *words]


def run(*words, stdin=b"", **settings):
    """Run a fresh command line; returns (exit code, standard output, standard error)."""
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | settings
    done = subprocess.run(command(*words), input=stdin, cwd=ROOT, check=False, timeout=120, **settings)
    error = (done.stderr or b"").decode()
    assert "Traceback" not in error
    return done.returncode, (done.stdout or b"").decode(), error


@pytest.fixture
def plan_file(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(PLAN), encoding="utf-8")
    return path


def test_the_page_of_the_command_line_shows_the_exit_codes():
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", (ROOT / "docs/command-line.md").read_text(encoding="utf-8"), re.M)
    assert {int(code): says for code, says in rows} == EXIT_CODES
    named = {value for name, value in vars(answers).items() if name.isupper() and isinstance(value, int)}
    assert named == set(EXIT_CODES)


def test_only_verdicts_and_proofs_of_impossibility_refute():
    diagnostic = Diagnostic("LA999", "a test")
    codes = {
        MalformedError(diagnostic): USAGE, BudgetError(diagnostic): UNKNOWN, MissingExtraError(diagnostic): UNKNOWN,
        LayoutError(diagnostic): UNKNOWN, InfeasibleError(diagnostic): REFUTED, IndexError(): INTERNAL,
        MemoryError(): INTERNAL, RecursionError(): INTERNAL, OSError(): INTERNAL, ValueError(): INTERNAL,
        KeyboardInterrupt(): INTERRUPTED,
    }  # fmt: skip
    assert {error: answers.exit_code(error) for error in codes} == codes


# a closed pipe, a full disk, closed streams


def test_a_reader_that_leaves_is_never_told_that_all_is_proved(tmp_path):
    path = tmp_path / "list.json"
    path.write_text(json.dumps([PLAN] * 300 + [WRONG]), encoding="utf-8")
    for words in (("check", str(path)), ("check", str(path), "--json")):
        with subprocess.Popen(command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
            process.stdout.read(3)
            process.stdout.close()
            error = process.stderr.read().decode()
        assert process.returncode == OUTPUT
        assert error.startswith("layoutalg: LA016 the answer could not be written")
        assert "Traceback" not in error
        assert "Exception ignored" not in error


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [("check", "PLAN"), ("check", "PLAN", "--json"), ("--help",), ("explain", "4:1")])
def test_a_full_disk_under_standard_output_is_74(words, plan_file):
    with FULL.open("wb") as full:
        code, _, error = run(*[str(plan_file) if word == "PLAN" else word for word in words], stdout=full)
    assert code == OUTPUT
    assert "No space left" in error


@pytest.mark.parametrize(
    ("closed", "words", "code"),
    [
        ("<&-", "check -", USAGE),
        (">&-", "check PLAN", OUTPUT),
        ("2>&-", "check PLAN", PROVED),
        ("2>&-", "check /nonexistent", USAGE),
        (">&- 2>&-", "check PLAN", OUTPUT),
        (">&-", "check /nonexistent", USAGE),
    ],
)
def test_closed_streams(closed, words, code, plan_file):
    line = f'"$@" {words.replace("PLAN", str(plan_file))} {closed}'
    done = subprocess.run(["sh", "-c", line, "sh", *command()], capture_output=True, cwd=ROOT, check=False)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    assert b"nonexistent" not in done.stdout  # diagnostics do not move to standard output


def test_output_in_a_small_encoding(tmp_path):
    problem = tmp_path / "größe.json"
    problem.write_text('{"ключ": 1}', encoding="utf-8")
    env = os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    code, out, _ = run("check", str(problem), "--json", env=env)
    assert code == USAGE
    assert json.loads(out)["verdict"] == "error"
    code, out, _ = run("check", "-", env=env, stdin='[{"schema": "\\ud800ключ"}]'.encode())
    assert code == USAGE
    assert "ud800" in out


# what ends a command


@pytest.mark.parametrize("error", [IndexError("a\nb\x1b[31m"), MemoryError(), RecursionError("deep"), OSError(5, "io")])
@pytest.mark.parametrize("words", [("check",), ("check", "--json"), ("synth", "tensormap"), ("explain",)])
def test_an_unexpected_error_is_one_line_and_70(error, words, plan_file, monkeypatch, capsys):
    def broken(*args, **kwargs):
        raise error

    monkeypatch.delenv("LAYOUTALG_TRACEBACK", raising=False)
    for name in ("cli.plans.check", "ask.explanation.plans.plan_or_probe", "cli.plans.plan_or_probe"):
        monkeypatch.setattr(f"layoutalg.{name}", broken)
    file = plan_file if words[0] == "check" else EXAMPLE
    assert main([*words, str(file)]) == INTERNAL
    out, err = capsys.readouterr()
    assert err.count("\n") == 1
    assert err[:-1].isprintable()
    assert err.startswith("layoutalg: out of memory" if isinstance(error, MemoryError) else "layoutalg: internal error")
    assert "--json" not in words or json.loads(out)["verdict"] == "error"
    if not isinstance(error, MemoryError):
        assert "LAYOUTALG_TRACEBACK=1" in err
    monkeypatch.setenv("LAYOUTALG_TRACEBACK", "1")
    assert main([*words, str(file)]) == INTERNAL
    assert "Traceback" in capsys.readouterr().err


def test_an_unexpected_error_in_a_list_leaves_the_others_answered(tmp_path, monkeypatch, capsys):
    from layoutalg.cli import plans

    real, calls = plans.check, []

    def sometimes(plan):
        calls.append(plan)
        if len(calls) == 2:
            raise MemoryError
        return real(plan)

    monkeypatch.setattr(plans, "check", sometimes)
    path = tmp_path / "list.json"
    path.write_text(json.dumps([PLAN, PLAN, PLAN]), encoding="utf-8")
    assert main(["check", str(path), "--json"]) == INTERNAL
    assert [entry["verdict"] for entry in json.loads(capsys.readouterr().out)] == ["proved", "error", "proved"]


def test_an_error_of_the_checker_is_no_refutation(plan_file, monkeypatch, capsys):
    def broken(plan):
        raise LayoutError(Diagnostic("LA999", "a test"))

    monkeypatch.setattr("layoutalg.cli.plans.check", broken)
    assert main(["check", str(plan_file)]) == UNKNOWN


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)])
def test_signals_leave_one_line_and_no_file(number, code, tmp_path):
    words = ("synth", "tensormap", "-", "-o", str(tmp_path / "answer.json"))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(command(*words), cwd=ROOT, **pipes) as process:
        for _ in range(600):
            if list(tmp_path.iterdir()):  # it has come as far as reading
                break
            time.sleep(0.05)
        assert [path.suffix for path in tmp_path.iterdir()] == [".part"]
        process.send_signal(number)
        error = process.stderr.read().decode()
    assert process.returncode == code
    assert error in ("layoutalg: interrupted\n", "layoutalg: terminated\n")
    assert not list(tmp_path.iterdir())


# lists


@pytest.mark.parametrize("words", [("check",), ("validate",), ("synth", "tensormap"), ("check", "--json")])
def test_an_empty_list_proves_nothing(words, tmp_path, capsys):
    path = tmp_path / "list.json"
    path.write_text(" [ ]\n", encoding="utf-8")
    assert main([*words, str(path)]) == USAGE
    assert "at least one document" in capsys.readouterr().err


def test_a_demo_without_tiles_is_bad_usage(tmp_path, capsys):
    path = tmp_path / "tiles.json"
    path.write_text('{"schema": "layoutalg/real-tiles/1", "tiles": []}', encoding="utf-8")
    assert main(["demo", str(path)]) == USAGE
    assert "/tiles" in capsys.readouterr().err
    path.write_text(
        json.dumps({"schema": "layoutalg/real-tiles/1", "tiles": [{
            "name": "x", "source": "y", "expect": "admissible", "problem": PROBLEM | {"tile": [0, 64]}}]}),
        encoding="utf-8",
    )  # fmt: skip
    assert main(["demo", str(path), "--device", "simulator"]) == USAGE
    assert "/tiles/0/problem/tile/0" in capsys.readouterr().err


def test_plans_of_every_kind_are_checked_in_one_list(tmp_path, capsys):
    operand = synthesize_wgmma(OperandProblem("A", (64, 16), (((64, 64),), ((16, 1),)), "128B")).to_json()
    forged = json.loads(json.dumps(operand))
    forged["end_bytes"] += 16
    path = tmp_path / "list.json"
    certificate = Certificate("equality", {"f": "4:1", "g": "(2,2):(1,2)"}, {"by": "table"}).to_json()
    documents = [PLAN, operand, WRONG, forged, certificate, {"schema": "x"}, 5]
    path.write_text(json.dumps(documents), encoding="utf-8")
    assert main(["check", str(path), "--json"]) == USAGE
    answers = json.loads(capsys.readouterr().out)
    assert [answer["verdict"] for answer in answers] == ["proved"] * 2 + ["refuted"] * 2 + ["error"] * 3
    assert main(["check", str(path)]) == USAGE
    out = capsys.readouterr().out
    assert out.count("\nproved") == out.count("\nrefuted") == 2
    path.write_text(json.dumps(documents[:2]), encoding="utf-8")
    assert main(["check", str(path)]) == PROVED
    path.write_text(json.dumps(documents[:3]), encoding="utf-8")
    assert main(["check", str(path)]) == REFUTED


def test_lists_take_the_memory_of_one_document(tmp_path):
    """Documents of a list are read, answered and forgotten one at a time."""
    peaks = []
    for count in (5, 500, 5_000):  # the first loads what the command needs
        path = tmp_path / "list.json"
        path.write_text("[" + "0," * (count - 1) + "0]", encoding="utf-8")
        with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
            tracemalloc.start()
            assert main(["check", str(path), "--json"]) == USAGE
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[2] - peaks[1] < 500_000  # 9 bytes of place and 2 of text for each; an answer takes a thousand


def test_nothing_is_answered_from_a_list_that_is_not_json(tmp_path, capsys):
    path = tmp_path / "list.json"
    path.write_text(json.dumps([PLAN])[:-1] + ", {]", encoding="utf-8")
    assert main(["check", str(path)]) == USAGE
    assert capsys.readouterr().out == ""


# files for the answers


def synth(output, *words):
    return main(["synth", "tensormap", str(EXAMPLE), "-o", str(output), *words])


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_list_is_written_as_json_writes_it(tmp_path, capsys):
    source = tmp_path / "problems.json"
    source.write_text(json.dumps([PROBLEM, PROBLEM | {"tile": [1]}]), encoding="utf-8")
    assert main(["synth", "tensormap", str(source), "-o", str(tmp_path / "out.json"), "--json"]) == USAGE
    written = (tmp_path / "out.json").read_text(encoding="utf-8")
    assert written == json.dumps(json.loads(capsys.readouterr().out), indent=1) + "\n"
    assert synth(tmp_path / "out.json") == PROVED
    assert (tmp_path / "out.json").read_text(encoding="utf-8") == json.dumps(PLAN, indent=1) + "\n"


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_permissions_are_those_of_the_umask_or_of_the_file(umask, tmp_path):
    before = os.umask(umask)
    try:
        assert synth(tmp_path / "new.json") == PROVED
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new.json").stat().st_mode) == 0o666 & ~umask
    for mode in (0o640, 0o604, 0o755):
        (tmp_path / "new.json").chmod(mode)
        assert synth(tmp_path / "new.json") == PROVED
        assert stat.S_IMODE((tmp_path / "new.json").stat().st_mode) == mode
    assert files(tmp_path) == ["new.json"]


def test_links_stay_and_their_targets_are_replaced(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "plan.json").write_text("old", encoding="utf-8")
    (tmp_path / "second").symlink_to("deep/plan.json")
    (tmp_path / "first").symlink_to("second")
    (tmp_path / "dangling").symlink_to("deep/other.json")
    assert synth(tmp_path / "first") == PROVED
    assert synth(tmp_path / "dangling") == PROVED
    assert all((tmp_path / name).is_symlink() for name in ("first", "second", "dangling"))
    assert files(tmp_path / "deep") == ["other.json", "plan.json"]
    for name in ("plan.json", "other.json"):
        assert json.loads((tmp_path / "deep" / name).read_text(encoding="utf-8")) == PLAN


def test_devices_and_fifos_are_written_to(tmp_path):
    assert synth("/dev/null") == PROVED
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    received = []
    reader = threading.Thread(target=lambda: received.append(fifo.read_text(encoding="utf-8")))
    reader.start()
    assert synth(fifo) == PROVED
    reader.join(60)
    assert json.loads(received[0]) == PLAN
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    assert files(tmp_path) == ["fifo"]


def test_standard_output_by_name(tmp_path):
    out = tmp_path / "out"
    with out.open("wb") as file:
        code, _, _ = run("synth", "tensormap", str(EXAMPLE), "-o", "/dev/stdout", stdout=file)
    assert code == PROVED
    text = out.read_text(encoding="utf-8")
    assert text.startswith("admissible")
    assert '"verdict": "admissible"' in text
    assert files(tmp_path) == ["out"]


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_a_full_device_is_74():
    assert synth(FULL) == OUTPUT
    assert stat.S_ISCHR(FULL.stat().st_mode)


@pytest.mark.parametrize("number", ["EFBIG", "ENOSPC"])
def test_a_full_disk_leaves_the_file_as_it_was(number, tmp_path, monkeypatch, capsys):
    kept = tmp_path / "plan.json"
    kept.write_text("precious", encoding="utf-8")
    if number == "EFBIG":
        # a limit on the size of files is what a full disk is to the writer

        def tiny():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

        code, _, _ = run("synth", "tensormap", str(EXAMPLE), "-o", str(kept), preexec_fn=tiny)
    else:

        def full(handle):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        code = synth(kept)
    assert code == OUTPUT
    assert kept.read_text(encoding="utf-8") == "precious"
    assert files(tmp_path) == ["plan.json"]


@pytest.mark.parametrize("name", ["", ".", "new/", "missing/plan.json", "plan.json/x", "loop", "a" * 300, "a\0b"])
def test_names_that_no_answer_can_have_are_refused_before_the_work(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.json").write_text("precious", encoding="utf-8")
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.setattr("layoutalg.cli.plans.plan_or_probe", None)
    assert synth(name) == USAGE
    assert "cannot write the answer" in capsys.readouterr().err
    assert files(tmp_path) == ["loop", "plan.json"]
    assert (tmp_path / "plan.json").read_text(encoding="utf-8") == "precious"


def test_a_failed_run_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    kept = tmp_path / "plan.json"
    kept.write_text("precious", encoding="utf-8")

    def broken(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("layoutalg.cli.plans.plan_or_probe", broken)
    assert synth(kept) == INTERRUPTED
    assert kept.read_text(encoding="utf-8") == "precious"
    assert files(tmp_path) == ["plan.json"]


def test_a_write_protected_file_stays(tmp_path, monkeypatch, capsys):
    kept = tmp_path / "plan.json"
    kept.write_text("precious", encoding="utf-8")
    kept.chmod(0o444)
    if os.geteuid() == 0:  # nothing is write-protected for root
        monkeypatch.setattr(os, "supports_effective_ids", set())
        monkeypatch.setattr(os, "access", lambda _, mode, **__: mode != os.W_OK)
    assert synth(kept) == USAGE
    assert "write-protected" in capsys.readouterr().err
    assert kept.read_text(encoding="utf-8") == "precious"

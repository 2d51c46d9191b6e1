"""Hundreds of wrong inputs for every command: each is refused in words, none leaks a traceback or passes for right.

The judge is the kind of damage: what is no document, or has a value of another JSON type, is bad usage (64); a plan in
which a number or a text was changed may be refuted (1) or unreadable (64), and is never proved (0).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from judges.commands import run

from layoutalg.cli import PROVED, REFUTED, UNKNOWN, USAGE
from layoutalg.cute import Morphism
from layoutalg.proofs.certify import functoriality
from layoutalg.proofs.wgmma import OperandProblem
from layoutalg.synth import synthesize_tensormap
from layoutalg.synth.wgmma import synthesize_wgmma

EXAMPLE = Path(__file__).parents[1] / "data" / "examples" / "problem.json"
SOLVED = synthesize_tensormap(json.loads(EXAMPLE.read_text(encoding="utf-8")))
PROBLEM = SOLVED.problem.to_json()
PLAN = SOLVED.to_json()
OPERAND = synthesize_wgmma(OperandProblem("A", (64, 16), (((64, 64),), ((16, 1),)), "128B")).to_json()
CERTIFICATE = functoriality(Morphism((2,) * 14, (2,) * 14, tuple(range(14))), Morphism.identity((2,) * 14)).to_json()
CONSUMER = {"instruction": "wgmma", "operand": "A", "major": "K"}
TILE = {"name": "n", "source": "s", "expect": "admissible", "problem": PROBLEM, "consumer": CONSUMER}
TILES = {"schema": "layoutalg/real-tiles/1", "tiles": [TILE]}

SIMULATOR = ("--device", "simulator")
COMMANDS = {
    "explain problem": (("explain", "-"), PROBLEM),
    "synth": (("synth", "tensormap", "-"), PROBLEM),
    "check": (("check", "-"), PLAN),
    "check operand": (("check", "-"), OPERAND),
    "check certificate": (("check", "-"), CERTIFICATE),
    "explain plan": (("explain", "-"), PLAN),
    "validate plan": (("validate", "-", *SIMULATOR), PLAN),
    "validate problem": (("validate", "-", *SIMULATOR), PROBLEM),
    "demo": (("demo", "-", *SIMULATOR), TILES),
    "synth operand": (("synth", "wgmma", "-"), OPERAND["problem"]),
    "emit plan": (("emit", "host", "-"), PLAN),
    "emit operand": (("emit", "bytes", "-"), OPERAND),
    "draw problem": (("draw", "-"), PROBLEM),
}
EVERY = pytest.mark.parametrize("command", COMMANDS)
OF_A_PLAN = pytest.mark.parametrize(
    "command", ["check", "check operand", "explain plan", "validate plan", "emit plan", "emit operand"]
)

Place = tuple[str | int, ...]


def answer(words, raw: bytes, json_too: bool = False) -> tuple[int, str]:
    """Run a command on standard input; returns (exit code, all it wrote). Nothing leaks, whatever comes in."""
    code, out, err = run(*words, *(["--json"] if json_too else []), stdin=raw)
    told = out + err
    assert "inside layoutalg" not in told
    assert all(line.isprintable() for line in told.split("\n"))
    assert code in (PROVED, REFUTED, UNKNOWN, USAGE)
    assert told
    if json_too:
        json.loads(out)
    return code, told


def places(node: object, at: Place = ()) -> Iterator[tuple[Place, object]]:
    """Yield every place of a document below its top, and what stands there."""
    if at:
        yield at, node
    for key, entry in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from places(entry, (*at, key))


def changed(document: dict, at: Place, value: object) -> bytes:
    """The document with another value at a place."""
    answer = node = copy.deepcopy(document)
    for key in at[:-1]:
        node = node[key]
    node[at[-1]] = value
    return json.dumps(answer).encode()


def kind(value: object) -> type:
    return type(value) if type(value) is not tuple else list


OF_EACH_TYPE = [None, True, "x", "\ud800\x1b[31m", 0.5, 3, [], {}, {"\x1b[2J": 1}, [None]]


def taken(values: list, index: int) -> list:
    """Three of the values, others at every place."""
    return [values[(3 * index + step) % len(values)] for step in range(min(3, len(values)))]


def also_allowed(at: Place, value: object) -> bool:
    """Where another type is right as well: no certificate, a number for a bound, the name of a size."""
    if at[-1] == "certificate":
        return value is None or isinstance(value, dict)
    if "certificate" in at[:-1]:
        return True  # compared with what the checker finds: refuted
    if at[0] == "steps_16_bytes" and value is None:
        return True  # a table alone: refuted where the other axis has steps
    if value == "x" and (at[0] == "bounds" or at[:2] in (("global", "shape"), ("global", "stride"))):
        return True  # a size that is not known yet: the plan then holds for all of them
    return len(at) > 1 and at[-2] == "bounds" and value == 3


@EVERY
def test_the_right_document_passes(command):
    words, document = COMMANDS[command]
    code, told = answer(words, json.dumps(document).encode())
    assert code == PROVED, told
    assert answer(words, b"\xef\xbb\xbf" + json.dumps(document, indent=3).encode(), json_too=True)[0] == PROVED


@EVERY
def test_a_value_of_another_type_is_bad_usage(command, portion):
    words, document = COMMANDS[command]
    tried = 0
    for index, (at, value) in portion(list(enumerate(places(document)))):
        for other in taken(OF_EACH_TYPE, index):
            if kind(other) is kind(value) or also_allowed(at, other):
                continue
            code, told = answer(words, changed(document, at, other), json_too=tried % 7 == 0)
            unread = at in (("schema",), ("kind",)) or isinstance(other, float)
            assert code == (REFUTED if command == "check certificate" and not unread else USAGE), (at, other, told)
            tried += 1
    assert tried >= len(portion(range(30)))


@EVERY
def test_a_missing_or_an_unknown_key_is_bad_usage(command):
    words, document = COMMANDS[command]
    objects = [((), document)] + [(at, node) for at, node in places(document) if isinstance(node, dict)]
    wanted = REFUTED if command == "check certificate" else USAGE
    for at, node in objects:
        if "certificate" in at:
            continue
        for extra in ("\x1b[31m", "a/b~c", "\ud800", "k" * 10_000):
            more = node | {extra: 1}
            code, told = answer(words, changed({"": document}, ("", *at), more)[5:-1])
            assert code == wanted, told
            assert len(told) < 2000
        twice = json.dumps(node)[:-1] + f', "{next(iter(node))}": 0}}'
        code, told = answer(words, json.dumps(document).replace(json.dumps(node), twice, 1).encode())
        assert code == USAGE
        assert "LA013" in told
    fields = ("schema", "arch", "direction", "global", "tile", "smem", "hex", "issues", "problem", "tiles", "major")
    for field in fields:
        if field in document and (command, field) != ("synth operand", "arch"):  # which is optional
            code, told = answer(words, json.dumps({k: v for k, v in document.items() if k != field}).encode())
            assert code == (wanted if field != "schema" else USAGE)
            assert field in told


@OF_A_PLAN
def test_a_plan_with_another_number_or_text_is_never_right(command, portion):
    words, document = COMMANDS[command]
    tried = 0
    for index, (at, value) in portion(list(enumerate(places(document)))):
        if isinstance(value, bool):
            continue
        if isinstance(value, int):
            others: list[object] = [value + 1, value - 1, 2 * value + 16, -1 - value, 2**31, 2**62, 2**63, 10**900]
        elif isinstance(value, str):
            flipped = [value[:i] + ("1" if value[i] == "0" else "0") + value[i + 1 :] for i in range(0, len(value), 7)]
            others = ["", value + "0", value.upper() + "x", "\x1b[31m", *flipped]
        else:
            continue
        for other in taken(others, index):
            code, told = answer(words, changed(document, at, other))
            assert code in (REFUTED, USAGE), (at, other, told)
            tried += 1
    assert tried >= len(portion(range(40)))


@EVERY
def test_what_is_no_document_is_bad_usage(command, portion):
    words, document = COMMANDS[command]
    text = json.dumps(document)
    whole = [
        b"",
        b" ",
        b"\n",
        b"\0",
        b"\xff\xfe",
        b"\x80abc",
        bytes(range(256)),
        "é".encode("utf-16"),
        b"null",
        b"0",
        b"1e400",
        b'"text"',
        b"true",
        b"NaN",
        b"[NaN]",
        b"-Infinity",
        b"{}",
        b"[]",
        b"[[]]",
        b"[" * 100_000,
        b'{"a":' * 5000,
        b"9" * 5000,
        b'{"schema": ' + b"9" * 5000 + b"}",
        b'{"schema": 1e999}',
        b"{'schema': 1}",
        b"{\n",
        b'{"a": 1,}',
        b'"\\ud800"',
        '"\u2028'.encode(),
        b"//",
        b"\x1b[31m{",
        b"\xef\xbb\xbf",
        b'{"schema": "layoutalg/tensormap-plan/2"}',
        b'{"schema": "layoutalg/tensormap-problem/2"}',
        b'{"schema": "layoutalg/tensormap-problem/1"}',
        b'{"schema": ["layoutalg/tensormap-problem/1"]}',
        b'{"schema": {}}',
        text.encode("utf-16"),
        text.encode() + b"x",
        text.encode() * 2,
        text.encode("utf-8") + b"\0",
        text.replace('"', "'").encode(),
        b'{"schema": null}',
    ]
    cut = [text[:length].encode() for length in range(1, len(text), max(1, len(text) // 40))]
    for raw in portion([*whole, *cut]):
        code, told = answer(words, raw)
        assert code == USAGE, (raw[:80], told)


@pytest.mark.parametrize("command", ["check", "check operand", "synth", "validate problem"])
def test_a_list_takes_the_worst_code(command):
    words, document = COMMANDS[command]
    for raw, wanted in (([document, document], PROVED), ([document, None], USAGE), ([0, document], USAGE)):
        assert answer(words, json.dumps(raw).encode(), json_too=True)[0] == wanted
    answers = [document, None, [document], {"schema": []}, "\x1b[31m", document]
    code, told = answer(words, json.dumps(answers).encode())
    assert code == USAGE
    assert [f"[{index}]" in told.split("\n") for index in range(6)] == [True] * 6


@pytest.mark.parametrize(
    "command", ["explain", "synth tensormap", "check", "validate", "demo", "draw", "emit raw", "banks"]
)
@pytest.mark.parametrize("name", [".", "/nonexistent", "/", "a" * 5000, "/dev/null", "a\0b", "\udcff"])
def test_names_that_hold_no_document_are_bad_usage(command, name, tmp_path):
    name = str(tmp_path) if command == "check" and name in (".", "/") else name  # which checks what is in a folder
    code, told = answer((*command.split(), name), b"")
    assert code == USAGE
    assert len(told) < 1000


@pytest.mark.parametrize(
    "words",
    [
        ("synth", "tensormap", "-", "--budget", "nan"),
        ("check", "-", "--budget", "-1"),
        ("check", "-", "--budget", "x"),
        ("explain", "4:1", "--budget", "-inf"),
        ("demo", "-", "--budget", "nan"),
        ("validate", "-", "--budget", "nan"),
        ("validate", "-", "--seed", "-1"),
        ("validate", "-", "--seed", "1.5"),
        ("validate", "-", "--seed", str(2**64)),
        ("validate", "-", "--seed", "9" * 5000),
        ("validate", "-", "--device", "\x1b[31m"),
        ("check", "-", "\x1b[31m"),
        ("explain", "4:1", "--target", "sm_1"),
        ("explain", "4:1", "--dtype", "\x1b[31m"),
        ("explain", ""),
        ("synth", "\x1b[31m"),
        ("\ud800",),
        ("check",),
        (),
        ("check", "-", "-o", "x"),
        ("synth", "tensormap", "-", "-o"),
        ("explain", "{}"),
        ("explain", "4:\x1b[31m1"),
        ("explain", "\ud800"),
        ("explain", "(4,8):(1,4"),
        ("explain", "F2["),
    ],
    ids=range(26),
)
def test_wrong_arguments_are_bad_usage(words):
    code, told = answer(words, json.dumps(PLAN).encode())
    assert code == USAGE, told


@EVERY
def test_no_time_is_unknown(command):
    words, document = COMMANDS[command]
    code, told = answer((*words, "--budget", "0"), json.dumps(document).encode())
    assert code == UNKNOWN, told


BIG = "9" * 3999


@pytest.mark.parametrize(
    "text",
    [
        "(0,4):(1,1)",
        "0:1",
        "(4,0):(1,1)",
        "(0,0):(0,0)",
        "1:0",
        "(1,1):(0,0)",
        f"Z[i:{BIG}=({BIG}), j:{BIG}=({BIG}) -> y]",
        f"{BIG}:1",
        f"({BIG},{BIG}):(1,{BIG})",
        "(100000,100000):(1,1)",
        "(8,8):(4611686018427387904,1)",
        "Sw<3,4,3> o 7 o (64,64):(64,1)",
        "Sw<1,0,3> o 0 o (64,64):(64,1)",
        "(4,4):(-1,4)",
        "(2,3,4):(1,2,6)",
        "Sw<3,4,3>",
        "((4,2),8):((1,32),4)",
        "F2[ -> ]",
        "(64,64):(0,0)",
        "(3,5):(1,3)",
    ],
    ids=range(20),
)
@pytest.mark.parametrize("options", [(), ("--dtype", "u8"), ("--target", "sm_100a"), ("--dtype", "f64", "--json")])
def test_unusual_layouts_are_explained(text, options):
    code, told = answer(("explain", text, *options), b"")
    assert code in (PROVED, USAGE)
    assert code == PROVED or "layoutalg: LA" in told


def test_wgmma_is_spoken_of_where_it_exists():
    text = "Sw<3,3,3> o 0 o (64,64):(64,1)"
    assert "first descriptor" in answer(("explain", text), b"")[1]
    assert "first descriptor" in answer(("explain", text, "--target", "sm_90a"), b"")[1]
    for target in ("sm_90", "sm_100a", "sm_100", "sm_120a"):
        code, told = answer(("explain", text, "--target", target), b"")
        assert "descriptor 0x" not in told
        if code == PROVED:
            assert f"{target} has no wgmma" in told


def test_a_forged_plan_is_not_described_as_proved():
    forged = copy.deepcopy(PLAN)
    forged["issues"][0]["coords"] = [8, 0]
    code, told = answer(("explain", "-"), json.dumps(forged).encode())
    assert code == REFUTED
    assert "refuted" in told
    assert "  proof " not in told


def test_tensors_that_the_model_of_memory_cannot_hold_are_refused():
    for place, value, code in (
        (("problem", "global", "stride", 0), -512, USAGE),  # elements before the base address
        (("problem", "global", "stride", 0), 2**40, USAGE),
        (("problem", "global", "base_align_bytes"), 2**40, REFUTED),  # the certificate says 256
    ):
        assert answer(("validate", "-", *SIMULATOR), changed(PLAN, place, value))[0] == code
    aligned = PROBLEM | {"global": PROBLEM["global"] | {"base_align_bytes": 2**40}}
    assert answer(("validate", "-", *SIMULATOR), json.dumps(aligned).encode())[0] == PROVED

"""Commands about hardware: shared layouts, bank turns, paddings, swizzles, admissibility, diagnosis."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from layoutalg import draw
from layoutalg.ask import banks, suggest
from layoutalg.cli.exits import PROVED, REFUTED, UNKNOWN
from layoutalg.cli.files import read_text
from layoutalg.cli.output import Told, answer_file, put_into, say, say_json
from layoutalg.cli.subjects import read_subject, said_as, texts_of, written_in
from layoutalg.ground.document import load_json, malformed
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.admission import Admitted, Refused
from layoutalg.proofs.factorisation import Factorisation
from layoutalg.proofs.padding import PaddingPlan
from layoutalg.proofs.swizzling import SwizzlePlan
from layoutalg.synth.admission import admissible
from layoutalg.synth.factor import factorise
from layoutalg.synth.paddings import padding
from layoutalg.synth.swizzles import swizzle
from layoutalg.targets.nvidia.tensormap.diagnose import diagnose


def suggest_layouts(
    tensor: tuple[int, ...],
    stride: tuple[int, ...] | None,
    dtype: str | None,
    tile: tuple[int, ...],
    consumers: Sequence[str],
    target: str,
    fill: str,
    budget_seconds: float,
    as_json: bool,
) -> int:
    """Print the layouts that serve every consumer, ranked and proved; return the exit code."""
    found = suggest((tensor, stride, dtype), tile, list(consumers), target, fill=fill, budget_seconds=budget_seconds)
    if as_json:
        say_json(found.to_json())
    else:
        say(str(found))
    return PROVED if len(found) else REFUTED


def bank_turns(
    registers: str,
    shared: str | None,
    element_bits: int | None,
    kind: str | None,
    tile: tuple[int, ...] | None,
    target: str,
    why: bool,
    told: Told,
) -> int:
    """Print the bank turns of an access; return the exit code."""
    with answer_file(told.picture) as file:
        given = [registers] if shared is None else [registers, shared]
        texts = texts_of(given, ["registers", "shared"][: len(given)])
        with said_as(OPTIONS):
            where = texts[1] if len(texts) > 1 else None
            report = banks(texts[0], where, element_bits, kind, target=target, tile=tile)
        if file is not None:
            put_into(file, draw.svg(report) + "\n")
        if told.as_json:
            say_json(report.to_json())
        else:
            say("\n".join([str(report), report.why, report.map_text]) if why else str(report))
    return PROVED


def pad_tile(
    shape: tuple[int, ...],
    accesses: Sequence[str],
    targets: Sequence[str],
    element_bits: int | None,
    form: str,
    told: Told,
) -> int:
    """Print the least padding of a form; the exit code is unknown unless it is proved least."""
    with answer_file(told.picture) as file:
        texts = texts_of(accesses, ["accesses"] * len(accesses))
        with said_as(OPTIONS | {"shape": "shape"}):
            plan = padding(
                shape, list(texts), list(targets), element_bits, form=form, budget_seconds=told.budget_seconds
            )
        return _optimum(plan, file, str(plan), told.as_json)


def find_swizzle(
    accesses: Sequence[str],
    targets: Sequence[str],
    element_bits: int | None,
    form: str,
    tile: tuple[int, ...] | None,
    chunk_bytes: int,
    engine: str,
    told: Told,
) -> int:
    """Print the layout of a form with the fewest turns; the exit code is unknown unless that is proved."""
    with answer_file(told.picture) as file:
        texts = texts_of(accesses, ["accesses"] * len(accesses))
        with said_as(OPTIONS):
            found = swizzle(
                texts, list(targets), element_bits, form, tile=tile, chunk_bytes=chunk_bytes, engine=engine,
                budget_seconds=told.budget_seconds,
            )  # fmt: skip
        return _optimum(found, file, f"{found}\n{found.why}", told.as_json)


def _optimum(plan: SwizzlePlan | PaddingPlan, file: TextIO | None, words: str, as_json: bool) -> int:
    """Print a plan and draw it; return its exit code."""
    if file is not None:
        put_into(file, draw.svg(plan) + "\n")
    if as_json:
        say_json(plan.to_json())
    else:
        say(words)
    return PROVED if plan.optimal else UNKNOWN


OPTIONS = {
    "element_bits": "--bits", "kind": "--access", "tile": "--tile", "chunk_bytes": "--chunk", "target": "--target",
    "form": "--form", "engine": "--engine", "shape": "--tile",
}  # fmt: skip
"""Arguments of the library -> options of these commands."""


def admit(
    layout: str,
    consumer: str,
    target: str,
    dtype: str | None,
    tile: tuple[int, ...] | None,
    align_bytes: int,
    options: Sequence[tuple[str, str]],
    budget_seconds: float,
    as_json: bool,
) -> int:
    """Print whether an instruction can carry a layout, with the bits or the reason; return the exit code."""
    given = _given(layout, tile, dtype)
    read = {name: option_value(name, text) for name, text in options}
    for name in TAKEN & read.keys():
        raise malformed(f"--option {name}", f"must be given as --{TAKEN_AS.get(name, name)}, not as an option")
    if isinstance(sizes := read.get("tensor"), list) and all(isinstance(extent, int) for extent in sizes):
        read["tensor"] = (tuple(sizes), None, dtype)
    found = admissible(
        given, consumer, target, dtype, tile=tile, align_bytes=align_bytes, budget_seconds=budget_seconds, **read
    )
    return _told(found, as_json)


TAKEN_AS = {"align_bytes": "align", "budget_seconds": "budget"}
TAKEN = {"layout", "consumer", "target", "dtype", "tile", *TAKEN_AS}
"""Arguments of ``admissible`` that the command has under its own options."""
_WORDS = {"true": True, "false": False, "null": None}


def option_value(name: str, text: str) -> object:
    """Return the value of a consumer option: JSON, the JSON of a file, sizes, or the text itself.

    Raises: MalformedError: LA011, LA012, LA013.

    Example:
        >>> option_value("issues", "2"), option_value("sparse", "true"), option_value("global", "(64,64):(512,1)")
        (2, True, '(64,64):(512,1)')
        >>> option_value("bounds", "60,64")
        [60, 64]
        >>> option_value("tensor", '[[64, 512], null, "bf16"]')
        [[64, 512], None, 'bf16']
    """
    if text.startswith("@"):
        return load_json(read_text(text[1:]), f"--option {name}")
    if text in _WORDS:
        return _WORDS[text]
    if re.fullmatch(r"-?[0-9]{1,18}", text):
        return int(text)
    if re.fullmatch(r"[0-9]{1,18}(,[0-9]{1,18})+", text):
        return [int(part) for part in text.split(",")]
    if re.match(r'\s*(\[[^>]*\]|\{\s*"|")', text) and "->" not in text:
        return load_json(text, f"--option {name}")
    return text


def factor(
    layout: str, consumer: str, target: str, dtype: str | None, warps: int, budget_seconds: float, as_json: bool
) -> int:
    """Print the part of a layout that a descriptor carries and the shuffles for the rest; return the exit code."""
    found = factorise(_given(layout, None, dtype), consumer, target, dtype, warps=warps, budget_seconds=budget_seconds)
    return _told(found, as_json)


def diagnose_map(argument: str, target: str, as_json: bool) -> int:
    """Print the fields and broken rules of 128 bytes or a driver call's arguments; return the exit code."""
    source = _map_of(argument) or read_subject(argument).value
    found = diagnose(source, target)
    if as_json:
        say_json(found.to_json())
    else:
        say(str(found))
    return PROVED if found.accepted else REFUTED


MAP_SIZES = (64, 128)
"""Sizes in bytes of a binary map file: the whole map, or only the half with fields."""


def _map_of(argument: str) -> bytes | None:
    """Return the contents of a binary map file; None for anything else, such as a file of digits."""
    try:
        path = Path(argument)
        raw = path.read_bytes() if path.is_file() and path.stat().st_size in MAP_SIZES else b""
    except (OSError, ValueError):  # a null character, or unreadable: read_subject reports it
        return None
    return None if not raw or raw.strip().isalnum() else raw


def _told(found: Admitted | Refused | Factorisation | Unknown, as_json: bool) -> int:
    """Print an answer; return its exit code."""
    if not as_json:
        say(str(found))
    else:
        say_json(found.to_json())
    return UNKNOWN if isinstance(found, Unknown) else PROVED if found else REFUTED


def _given(argument: str, tile: tuple[int, ...] | None, dtype: str | None) -> object:
    """Return a layout in notation, a table of offsets or a problem."""
    subject = read_subject(argument)
    if subject.kind == "hex":
        raise malformed("a layout", "must be layout notation, a table or a problem", subject.value)
    return written_in(str(subject.value), tile, dtype) if subject.kind == "text" else subject.value

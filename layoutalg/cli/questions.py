"""Commands that ask: explanations, shared layouts, bank turns, paddings, swizzles, conversions, admissibility."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from layoutalg import ask, codegen, draw, synth
from layoutalg.cli import commands
from layoutalg.cli.answers import PROVED, REFUTED, UNKNOWN
from layoutalg.cli.files import read_text
from layoutalg.cli.inputs import as_options, read_subject, texts_of, written_in
from layoutalg.cli.output import answer_file, put_into, say, say_answer, say_json
from layoutalg.ground import clock
from layoutalg.ground.document import Reader, load_json, malformed
from layoutalg.ground.errors import MalformedError, TargetRuleError
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.dtypes import dtype_name, element_type, read_dtype, stated_type
from layoutalg.proofs.smem import shared_tile
from layoutalg.proofs.tensor import BASE_ALIGN_BYTES, Tensor, tensor_of
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.registry import TARGETS

ILLEGAL = ("LA309", "LA310", "LA356", "LA840", "LA841")
"""Codes of ``decode`` for 128 bytes that no driver writes, and for illegal matrix descriptors."""
ARGUMENTS = {
    "element_bits": "--dtype", "kind": "--access", "tile": "--tile", "chunk_bytes": "--chunk", "target": "--target",
    "dtype": "--dtype", "form": "--form", "mechanism": "--mechanism", "smem_bytes": "--smem", "shape": "--shape",
    "operand": "--operand",
}  # fmt: skip
"""Arguments of the library -> options of these commands."""
TAKEN_AS = {"align_bytes": "align", "seconds": "budget"}
TAKEN = {"layout", "consumer", "target", "dtype", "tile", *TAKEN_AS}
"""Arguments of ``admissible`` that the command has under its own options."""
SIZES = re.compile(r"[0-9]{1,18}(,[0-9]{1,18})*")
"""Extents of a tensor, in place of a layout."""
_WORDS: Mapping[str, object] = {"true": True, "false": False, "null": None}
COPIES = 24
"""Copies that are shown as text."""


def run_explain(given: commands.Explain) -> int:
    """Explain a layout in notation, a descriptor in hexadecimal, or a document."""
    with clock.within(given.budget):
        if given.target not in TARGETS:
            raise malformed("--target", f"must be one of {', '.join(TARGETS)}", given.target)
        element = None
        if given.dtype is not None:
            read_dtype(Reader(given.dtype, "--dtype"), hardware.PLAIN_DTYPES)
            element = given.dtype if given.dtype.isdecimal() else element_type(given.dtype).name
        subject = read_subject(given.subject)
        try:
            found = ask.explain(subject.value, element, given.target, given.shape, given.at)
        except (MalformedError, TargetRuleError) as error:
            if subject.kind == "json" or error.diagnostic.code not in ILLEGAL:
                raise
            lines = (error.diagnostic.what, error.diagnostic.because)
            found = ask.Explanation("descriptor", (("illegal", lines),), {"illegal": list(lines)}, holds=False)
        say_answer(found, given.json)
    return PROVED if found.holds else REFUTED


def run_suggest(given: commands.Suggest) -> int:
    """Print the layouts that serve every consumer, ranked and proved."""
    with clock.within(given.budget):
        clock.check("a question")
        tensor = (given.tensor, given.stride, given.dtype)
        found = ask.suggest(tensor, given.tile, given.consumers, given.target, fill=given.fill, seconds=given.budget)
        say_answer(found, given.json)
    return PROVED if len(found) else REFUTED


def _accesses(words: Sequence[str]) -> list[str]:
    return list(texts_of(words, ["accesses"] * len(words)))


def _draw_and_say(found: Any, file: Any, as_json: bool, words: str | None = None) -> None:
    if file is not None:
        put_into(file, draw.svg(found) + "\n")
    say_answer(found, as_json, words)


def run_banks(given: commands.Banks) -> int:
    """Print the bank turns of an access."""
    with clock.within(given.budget), answer_file(given.picture) as file:
        clock.check("a question")
        words = [given.registers] if given.shared is None else [given.registers, given.shared]
        access, *shared = texts_of(words, ["registers", "shared"][: len(words)])
        with as_options(ARGUMENTS | {"shape": "--tile"}):
            found = ask.banks(
                access, shared[0] if shared else None, given.dtype, given.access, target=given.target, tile=given.tile,
                operand=given.operand,
            )  # fmt: skip
        _draw_and_say(
            found, file, given.json, "\n".join([str(found), found.why, found.map_text]) if given.why else None
        )
    return PROVED


def run_transactions(given: commands.Transactions) -> int:
    """Print the sectors and lines of an access to global memory."""
    with clock.within(given.budget), answer_file(given.picture) as file:
        clock.check("a question")
        registers, text = texts_of([given.registers, given.tensor], ["registers", "tensor"])
        if given.instruction is not None and given.access is not None:
            raise malformed("--access", "must be given once: after the tensor, or as an option", given.access)
        tensor: Any = text
        if SIZES.fullmatch(text.strip()):
            dtype = dtype_name(stated_type(given.dtype, registers).name)
            tensor = Tensor(tuple(map(int, text.split(","))), given.stride, dtype, given.align or BASE_ALIGN_BYTES)
        elif (wrong := given.stride or given.align) is not None:
            raise malformed("tensor", "must be extents for --stride and --align", wrong)
        with as_options(ARGUMENTS | {"origin": "--origin"}):
            found = ask.transactions(
                registers, tensor, given.instruction or given.access, given.target,
                None if isinstance(tensor, Tensor) else given.dtype, origin=given.origin, tile=given.tile,
            )  # fmt: skip
        _draw_and_say(found, file, given.json)
    return PROVED


def run_padding(given: commands.Padding) -> int:
    """Print the least padding of a form; the exit code is unknown unless it is proved least."""
    with clock.within(given.budget), answer_file(given.picture) as file:
        clock.check("a question")
        accesses = _accesses(given.accesses)
        with as_options(ARGUMENTS | {"shape": "shape"}):
            found = synth.padding(
                given.shape, accesses, given.targets or ["sm_90a"], given.dtype, form=given.form,
                seconds=given.budget,
            )  # fmt: skip
        _draw_and_say(found, file, given.json)
    return PROVED if found.optimal else UNKNOWN


def run_swizzle(given: commands.Swizzle) -> int:
    """Print the layout of a form with the fewest turns; the exit code is unknown unless that is proved."""
    with clock.within(given.budget), answer_file(given.picture) as file:
        clock.check("a question")
        accesses = _accesses(given.accesses)
        with as_options(ARGUMENTS | {"shape": "--tile"}):
            found = synth.swizzle(
                accesses, given.targets or ["sm_90a"], given.dtype, given.form, tile=given.tile,
                chunk_bytes=given.chunk, seconds=given.budget,
            )  # fmt: skip
        _draw_and_say(found, file, given.json, f"{found}\n{found.why}")
    return PROVED if found.optimal else UNKNOWN


def run_conversion(given: commands.Conversion) -> int:
    """Print the plan of a conversion between register layouts; write its kernel and picture if files are named."""
    with answer_file(given.kernel) as source, answer_file(given.picture) as file:
        first, second = texts_of([given.source, given.destination], ["source", "destination"])
        with clock.within(given.budget), as_options(ARGUMENTS):
            clock.check("a conversion")
            plan = synth.conversion(
                first, second, given.dtype, given.target, mechanism=given.mechanism, smem_bytes=given.smem,
                shape=given.shape,
            )  # fmt: skip
        if source is not None and not isinstance(plan, Unknown):
            put_into(source, codegen.conversion_kernel(plan).text)
        _draw_and_say(plan, file, given.json)
    return UNKNOWN if isinstance(plan, Unknown) else PROVED


def run_admissible(given: commands.Admissible) -> int:
    """Print whether an instruction can carry a layout, with the bits or the reason."""
    with clock.within(given.budget):
        clock.check("a question")
        layout = _layout_in(given.layout, given.tile, given.dtype)
        read = {name: option_value(name, text) for name, text in given.options or ()}
        for name in TAKEN & read.keys():
            raise malformed(f"--option {name}", f"must be given as --{TAKEN_AS.get(name, name)}, not as an option")
        if isinstance(sizes := read.get("tensor"), list) and all(isinstance(extent, int) for extent in sizes):
            read["tensor"] = (tuple(sizes), None, given.dtype)
        found = synth.admissible(
            layout, given.consumer, given.target, given.dtype, tile=given.tile, align_bytes=given.align,
            seconds=given.budget, **read,
        )  # fmt: skip
        return _answered(found, given.json)


def option_value(name: str, text: str) -> Any:
    """Return the value of a consumer option: JSON, the JSON of a file, sizes, or the text itself.

    Example:
        >>> option_value("issues", "2"), option_value("sparse", "true"), option_value("global", "(64,64):(512,1)")
        (2, True, '(64,64):(512,1)')
        >>> option_value("bounds", "60,64"), option_value("tensor", '[[64, 512], null, "bf16"]')
        ([60, 64], [[64, 512], None, 'bf16'])
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


def run_factorise(given: commands.Factorise) -> int:
    """Print the part of a layout that a descriptor carries and the shuffles for the rest."""
    with clock.within(given.budget):
        clock.check("a question")
        layout = _layout_in(given.layout, None, given.dtype)
        found = synth.factorise(
            layout, given.consumer, given.target, given.dtype, warps=given.warps, seconds=given.budget
        )
        return _answered(found, given.json)


def _layout_in(argument: str, tile: tuple[int, ...] | None, dtype: str | None) -> object:
    """Return a layout in notation, a table of offsets or a problem."""
    subject = read_subject(argument)
    if subject.kind == "dump":
        raise malformed("a layout", "must be layout notation, a table or a problem", subject.value)
    return written_in(str(subject.value), tile, dtype) if subject.kind == "text" else subject.value


def _answered(found: Any, as_json: bool) -> int:
    say_answer(found, as_json)
    return UNKNOWN if isinstance(found, Unknown) else PROVED if found else REFUTED


def run_diagnose(given: commands.Diagnose) -> int:
    """Print the fields and broken rules of 128 bytes or a driver call's arguments."""
    with clock.within(given.budget):
        clock.check("a question")
        found = hardware.diagnose(read_subject(given.map).value, given.target)
        say_answer(found, given.json)
    return PROVED if found.accepted else REFUTED


def run_ragged(given: commands.Ragged) -> int:
    """Print the maps of a ragged tensor, and the copies of the groups that are given."""
    with clock.within(given.budget), answer_file(given.picture) as file, answer_file(given.kernel) as source:
        clock.check("a question")
        smem = written_in(read_subject(given.shared).text("shared", "must be layout notation"), None, given.dtype)
        with as_options(ARGUMENTS | {"sizes": "--sizes", "groups": "--sizes", "multiple": "--multiple"}):
            tensor = tensor_of((given.tensor, given.stride, given.dtype), smem)
            tile = given.tile or shared_tile(smem, None, hardware.element_bytes(tensor.dtype)).tile
            try:
                found = synth.ragged.ragged(
                    tensor, given.sizes, tile, smem, given.strategy, axis=given.axis, target=given.target,
                    direction="store" if given.store else "load", multiple=given.multiple,
                )  # fmt: skip
            except synth.InadmissibleError as error:
                _say(error.to_json(), f"inadmissible  {error}", given.json)
                return REFUTED
        if source is not None:
            made = found.kernel()
            put_into(source, made.text)
        if file is not None:
            put_into(file, draw.svg(found) + "\n")
        _say(_with_copies(found), "\n".join([str(found), *_copied(found)]), given.json)
    return PROVED


def _say(document: Any, words: str, as_json: bool) -> None:
    if as_json:
        say_json(document)
    else:
        say(words)


def _with_copies(found: synth.RaggedFamily) -> dict[str, object]:
    """The family's document, with its copies if the sizes are known."""
    document = found.to_json()
    return document | {"copies": found.copies().table.tolist()} if found.sizes else document


def _copied(found: synth.RaggedFamily) -> list[str]:
    """The first copies as lines."""
    copies = found.copies() if found.sizes else ()
    lines = [
        f"  group {copy.group:<6} map {copy.member}: {copy.rows} rows from {copy.row}, tile row {copy.shared_row}"
        for copy in copies[:COPIES]
    ]
    return lines + [f"  ... {len(copies) - COPIES} more copies"] * (len(copies) > COPIES)

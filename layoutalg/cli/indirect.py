"""Commands on runtime indices: tokens routed to experts, paged sequences, gathers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from layoutalg.cli import commands
from layoutalg.cli.answers import PROVED, UNKNOWN
from layoutalg.cli.files import read_document, refused
from layoutalg.cli.inputs import as_options, texts_of
from layoutalg.cli.output import answer_file, put_into, say_answer
from layoutalg.codegen.gather import gather_registers_kernel
from layoutalg.codegen.indirect import paged, routing
from layoutalg.ground import clock, limits
from layoutalg.ground.document import load_json, malformed
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.dtypes import stated_bits
from layoutalg.proofs.gather import GatherPlan
from layoutalg.proofs.indirect.values import index_array
from layoutalg.synth.conversions.gathers import gather
from layoutalg.synth.indirect import gather_choice, warp_sectors
from layoutalg.synth.indirect.choice import CHECK

GATHERED = {
    "element_bits": "--dtype", "dtype": "--dtype", "mechanism": "--mechanism", "shape": "--shape", "axis": "--axis",
    "target": "--target",    "index_shape": "--index-shape", "length": "--length", "element_bytes": "--dtype",
}  # fmt: skip
"""Arguments of the library -> options of ``gather``."""


def _indices(name: str) -> object:
    """The numbers of a list in JSON, of a JSON file, of a .npy file, or of standard input."""
    if name.lstrip().startswith("["):
        return load_json(name, "the list")
    if not name.endswith(".npy"):
        return read_document(name)
    try:
        if Path(name).stat().st_size > limits.DOCUMENT_BYTES:
            raise refused("document too large", name, f"the limit is {limits.DOCUMENT_BYTES} bytes")
        with open(name, "rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise refused("cannot read the array", name, str(error)) from None


def run_routing(given: commands.Routing) -> int:
    """Print where the rows of tokens go, after checking their certificate."""
    with clock.within(given.budget):
        local = None if given.local is None else (given.local[0], given.local[-1])
        found = routing(_indices(given.ids), given.experts, given.block, local)
        found.certificate  # noqa: B018 - raises if the lists are not what they claim
        say_answer(found, given.json)
    return PROVED


def run_paged(given: commands.Paged) -> int:
    """Print where the bytes of a paged sequence are, after checking their certificate."""
    with clock.within(given.budget):
        size, heads, dim, element = given.page
        found = paged(
            _indices(given.table), size, heads, dim, element, given.layout, given.seq_len, given.pages, given.stride
        )
        found.certificate  # noqa: B018 - raises if the bytes are not what they claim
        say_answer(found, given.json)
    return PROVED


def run_gather(given: commands.Gather) -> int:
    """Print the plan of a gather of registers, or the ranking of the ways for given indices, the plan's among them."""
    if given.source is None and (given.indices is None or given.kernel is not None):
        raise malformed("source", "must be given, except for --indices without --emit", None)
    if given.source is not None and given.axis is None:
        raise malformed("--axis", "must be given: the axis along which indices select", None)
    with clock.within(given.budget), answer_file(given.kernel) as file, as_options(GATHERED):
        plan = None if given.source is None else _planned(given)
        if isinstance(plan, Unknown):
            say_answer(plan, given.json)
            return UNKNOWN
        if file is not None and plan is not None:
            put_into(file, gather_registers_kernel(plan).text)
        if given.indices is None:
            say_answer(plan, given.json)
            return PROVED
        length = given.length or (1 if plan is None else plan.extent)
        index = np.atleast_2d(index_array(_indices(given.indices), "--indices", 0, length, CHECK, (1, 2)))
        rows, count = index.shape
        size = (stated_bits(given.dtype) if plan is None else plan.element_bits) // 8
        sectors = warp_sectors((index + length * np.arange(rows)[:, None]).reshape(-1), size)
        found = gather_choice(rows, length, count, size, sectors, given.target, plan)
        say_answer(found, given.json, f"{plan}\n{found}" if plan is not None else None)
    return PROVED


def _planned(given: commands.Gather) -> GatherPlan | Unknown:
    """The plan of a gather of registers."""
    words = [each for each in (given.source, given.index) if each is not None]
    first, *rest = texts_of(words, ["source", "index"][: len(words)])
    axis = given.axis or ""
    return gather(
        first, rest[0] if rest else first, int(axis) if axis.lstrip("-").isdecimal() else axis, given.dtype,
        given.target, shape=given.shape, index_shape=given.index_shape, mechanism=given.mechanism,
    )  # fmt: skip

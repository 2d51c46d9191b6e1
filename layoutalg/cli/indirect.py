"""Commands on runtime indices: tokens routed to experts, paged sequences."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from layoutalg.cli import commands
from layoutalg.cli.answers import PROVED
from layoutalg.cli.files import read_document, refused
from layoutalg.cli.output import say_answer
from layoutalg.codegen.indirect import paged, routing
from layoutalg.ground import clock, limits
from layoutalg.ground.document import load_json


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

"""Questions that are stated by a document: a request, such as repairs have, or an operand problem of ``wgmma``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from layoutalg.ground.document import Reader, load_json
from layoutalg.ground.listed import listed
from layoutalg.proofs.wgmma import OperandProblem, requested_addresses
from layoutalg.proofs.wgmma.operand import PROBLEM_SCHEMA, operand_dtype
from layoutalg.synth.admission.repairs import SCHEMA
from layoutalg.synth.admission.request import ALIGN_BYTES, CHECK


def request_document(layout: object) -> Mapping[str, Any] | None:
    """Return the request document, if one was given instead of a layout."""
    if isinstance(layout, str) and layout.lstrip().startswith("{") and f'"{SCHEMA}"' in layout:
        layout = load_json(layout)
    return layout if isinstance(layout, Mapping) and layout.get("schema") == SCHEMA else None


def of_document(
    document: Mapping[str, Any], consumer: str
) -> tuple[object, object, str, Sequence[int], int, dict[str, object]]:
    """Return the arguments that a request document states."""
    reader = Reader(dict(document))
    reader.keys(("schema", "layout", "consumer", "target", "dtype", "tile", "align_bytes"), ("options",))
    if reader.get("consumer").text() != consumer:
        raise CHECK.malformed("consumer", f"must be {document['consumer']}, as in the document", consumer)
    options = document.get("options", {})
    if not isinstance(options, Mapping):
        reader.get("options").fail("must be an object")
    tile = [part.integer(1) for part in reader.get("tile").items()]
    layout = document["layout"]
    if isinstance(layout, list):
        try:
            layout = np.asarray(layout)
        except ValueError:  # lists of different lengths
            reader.get("layout").fail("must have rows of one length")
    else:
        layout = reader.get("layout").text()
    return (
        layout,
        reader.get("dtype").text(),
        reader.get("target").text(),
        tile,
        reader.get("align_bytes").integer(1),
        dict(options),
    )


def is_operand_problem(layout: object) -> bool:
    """Return whether the layout is an operand problem, its document or its JSON text.

    Example:
        >>> is_operand_problem("(64,64):(64,1)")
        False
    """
    if isinstance(layout, str):
        return layout.lstrip().startswith("{") and f'"{PROBLEM_SCHEMA}"' in layout
    return isinstance(layout, OperandProblem) or (
        isinstance(layout, Mapping) and layout.get("schema") == PROBLEM_SCHEMA
    )


def of_operand_problem(
    layout: object,
    consumer: str,
    options: Mapping[str, object],
    dtype: object = None,
    tile: Sequence[int] | None = None,
    align_bytes: object = ALIGN_BYTES,
) -> tuple[object, str, None, int, dict[str, object]]:
    """Return an operand problem as the arguments of a request: layout, type, tile, alignment, options."""
    given = load_json(layout) if isinstance(layout, str) else layout
    problem = given if isinstance(given, OperandProblem) else OperandProblem.from_json(given)
    named = f"wgmma.{problem.operand}" + (".sparse" if problem.sparse else "")
    if consumer.startswith("wgmma.") and consumer != named:
        raise CHECK.malformed("consumer", f"must be {named}, as in the problem", consumer)
    if dtype is not None and operand_dtype(dtype) != problem.dtype:
        raise CHECK.malformed("dtype", f"must be {problem.dtype}, as in the problem", dtype)
    if tile is not None and CHECK.vector(tile, "tile") != problem.shape:
        raise CHECK.malformed("tile", f"must be {problem.shape}, as in the problem", tile)
    if align_bytes not in (ALIGN_BYTES, problem.align_bytes):
        raise CHECK.malformed("align_bytes", f"must be {problem.align_bytes}, as in the problem", align_bytes)
    places = requested_addresses(problem) * 8 // problem.element_bits
    if problem.element_bits < 8:
        places = places + np.arange(problem.shape[1]) % 8
    return listed(places), problem.dtype, None, problem.align_bytes, dict(options)

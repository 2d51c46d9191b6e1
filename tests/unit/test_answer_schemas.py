"""Answers about instructions follow the JSON Schemas that they name, and a changed answer does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import numpy as np
import pytest

import layoutalg as la
from layoutalg.cli.schemas import schema_names, schema_text
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import plain
from layoutalg.proofs.im2col import ConvolutionProblem
from layoutalg.proofs.tensor import Tensor
from layoutalg.synth import factorise, joint
from layoutalg.synth.im2col import synthesize_im2col

SCHEMAS = {name: json.loads(schema_text(name)) for name in schema_names()}
CONVOLUTION = ConvolutionProblem(Tensor((2, 8, 8, 64)), filter=(3, 3), pixels=32, channels=64, padding=(1, 1))
REGISTERS = LinearLayout.from_bases({"register": [(8,), (16,)], "lane": [(2,), (1,), (4,)]}, {"offset": 32})


def answers() -> Iterator[Any]:
    """Answers of every kind that has a schema here."""
    for text in ("Sw<3,3,3> o 0 o (64,64):(64,1)", "(64,64):(65,1)", "(64,64):(1,64)"):
        for consumer in ("tma", "tma.store", "wgmma.A", "wgmma.B", "ldmatrix.x4", "stmatrix.x2", "cp.async"):
            for dtype in ("bf16", "f32"):
                yield la.admissible(text, consumer, dtype=dtype)
    yield la.admissible(np.arange(1024).reshape(8, 128)[[3, 1, 0, 2, 4, 5, 6, 7]], "tma", dtype="u8")
    yield factorise(REGISTERS)
    yield joint((64, 64), "bf16", ["wgmma.A", "ldmatrix.x4.trans"])
    yield synthesize_im2col(CONVOLUTION)


def parts(document: object) -> Iterator[dict[str, Any]]:
    """A document and those inside it that name a schema which is shipped; certificates have tests of their own."""
    if isinstance(document, dict):
        name = str(document.get("schema")).removeprefix("layoutalg/").rpartition("/")[0]
        if name in SCHEMAS and name != "certificate":
            yield document
        for value in document.values():
            yield from parts(value)
    elif isinstance(document, list):
        for value in document:
            yield from parts(value)


def validate(document: dict[str, Any]) -> str:
    name = str(document["schema"]).split("/")[1]
    jsonschema.validate(document, SCHEMAS[name], jsonschema.Draft202012Validator)
    return name


def test_answers_follow_their_schemas():
    told: dict[str, dict[str, Any]] = {}
    for answer in answers():
        document = json.loads(json.dumps(plain(answer.to_json())))
        assert str(document["schema"]).split("/")[1] in SCHEMAS
        for part in parts(document):
            told[validate(part)] = part
    assert set(told) >= {"admission", "access-plan", "factorisation", "shuffles", "joint", "im2col-plan", "wgmma-plan"}
    for part in told.values():  # a name too many, a name too few
        with pytest.raises(jsonschema.ValidationError):
            validate({**part, "surplus": 0})
        for name in part.keys() - {"schema"}:
            if name in SCHEMAS[part["schema"].split("/")[1]]["required"]:
                with pytest.raises(jsonschema.ValidationError):
                    validate({key: value for key, value in part.items() if key != name})


def test_an_answer_cannot_be_of_two_minds():
    refused = json.loads(json.dumps(plain(la.admissible("(64,64):(65,1)", "tma").to_json())))
    admitted = json.loads(json.dumps(plain(la.admissible("Sw<3,3,3> o 0 o (64,64):(64,1)", "tma").to_json())))
    assert (refused["verdict"], admitted["verdict"]) == ("refused", "admitted")
    for one, other in ((refused, admitted), (admitted, refused)):
        with pytest.raises(jsonschema.ValidationError):
            validate({**one, "verdict": other["verdict"]})
    with pytest.raises(jsonschema.ValidationError):
        validate({**admitted, "rules": ["X"]})

"""JSON documents."""

from __future__ import annotations

import json
from functools import partial

from fuzz.drive import contract, refused, text_of

from layoutalg.ground.document import load_json, split_json
from layoutalg.ground.errors import LayoutError

SEEDS = [
    b'{"schema": "layoutalg/tensormap-problem/1", "tile": [64, 64], "global": {"dtype": "bf16"}}',
    b'[{"a": 1}, [1, 2, {"b": null}], "text", true, -7]', b'{"a": 1, "a": 2}', b'"\\ud800"', b"[1, 2.5, 1e3]", b"{\n",
    b'{"a~b/c": {"": [0]}}', b"9223372036854775807", b"[[[[[[[[]]]]]]]]", b'{"\xe2\x80\xa8": 1}\n', b"NaN",
]  # fmt: skip
WORDS = ['{"', '": ', "[", "]", "null", "true", "1e400", "-", "\\u0000", "\\ud83d", "NaN", "Infinity", "\n", '"a": 1, ']


def target(data: bytes) -> None:
    text = text_of(data)
    contract(load_json, partial(json.dumps, ensure_ascii=False), text)  # escapes would join lone surrogates
    try:
        for entry in split_json(text):
            json.dumps(entry)
    except LayoutError as error:
        refused(error)

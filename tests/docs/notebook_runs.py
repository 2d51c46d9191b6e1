"""Notebooks run in a fresh kernel, and what of their outputs is compared."""

from __future__ import annotations

import json
import warnings
from copy import deepcopy
from pathlib import Path
from typing import Any

SECONDS = 120
PICTURE = "image/svg+xml"


def run(notebook: Any, folder: Path) -> Any:
    """A copy of a notebook with the outputs of a fresh kernel that stands in ``folder``; a cell that fails raises."""
    from nbclient import NotebookClient

    fresh = deepcopy(notebook)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Jupyter's own
        client = NotebookClient(
            fresh,
            timeout=SECONDS,
            record_timing=False,
            coalesce_streams=True,
            extra_arguments=["--HistoryManager.enabled=False", "--IPKernelApp.log_level=40"],
            resources={"metadata": {"path": str(folder)}},
        )
        client.execute()
    fresh.metadata["language_info"] = {"name": "python"}
    return fresh


def seen(notebook: Any) -> list[list[tuple[str, str]]]:
    """What each code cell shows: its text word for word, its pictures by their presence."""
    shown = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        texts = []
        for output in cell["outputs"]:
            if output["output_type"] == "stream":
                texts.append((output["name"], _joined(output["text"])))
            else:
                texts.extend((kind, _kept(kind, value)) for kind, value in sorted(output["data"].items()))
        shown.append(texts)
    return shown


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def _kept(kind: str, value: str | list[str]) -> str:
    text = _joined(value)
    if kind == PICTURE:
        assert text.lstrip().startswith("<svg"), "a picture is no SVG document"
        return "a picture"
    return "" if " object>" in text else text  # IPython.display.SVG prints an address


def sources(path: Path) -> list[tuple[str, str]]:
    """(kind, text) of every cell, read without Jupyter."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return [(cell["cell_type"], _joined(cell["source"])) for cell in document["cells"]]

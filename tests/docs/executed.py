"""Pages of the documentation whose Python blocks run, and print the text block that follows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ANSWERED = re.compile(r"(^```python\n(?P<code>.*?)^```\n)(?:\n```text\n(?P<shown>.*?)^```\n)?", re.S | re.M)


def blocks(text: str) -> list[tuple[str, str]]:
    """Return the kind and the body of every fenced block."""
    return re.findall(r"^```(\w+)\n(.*?)^```", text, re.S | re.M)


def run(page: str, update: bool = False) -> int:
    """Run the Python blocks of a page in order, in one namespace, and return how many outputs were compared.

    A block that prints nothing has no text block. ``update`` writes the outputs into the page.
    """
    path = ROOT / page
    names: dict[str, object] = {}
    compared = 0

    def answered(block: re.Match[str]) -> str:
        nonlocal compared
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(block["code"], page, "exec"), names)
        printed = output.getvalue()
        if not update:
            assert (block["shown"] or "") == printed, f"{page} shows another output than that of\n{block['code']}"
        compared += bool(printed)
        return block[1] + (f"\n```text\n{printed}```\n" if printed else "")

    renewed = ANSWERED.sub(answered, path.read_text(encoding="utf-8"))
    if update:
        path.write_text(renewed, encoding="utf-8")
    return compared

"""The page of consumers: it names every consumer, and the pages it points to exist."""

from __future__ import annotations

import re
from pathlib import Path

from layoutalg.synth.admission import CONSUMERS

PAGE = Path(__file__).parents[2] / "docs" / "admission.md"


def test_every_consumer_has_a_row_and_every_link_a_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    listed = [name.rstrip(".") for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert [head for head in CONSUMERS if not any(head.startswith(n) or n.startswith(f"{head}.") for n in listed)] == []
    for link in re.findall(r"\]\(([a-z0-9_-]+\.md)\)", text):
        assert (PAGE.parent / link).is_file(), link

"""A slice of the campaign of mutated certificates, and what was measured by the whole one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from layoutalg.proofs import checker

ROOT = Path(__file__).parents[2]
STORED = ROOT / "tests" / "data" / "measured" / "certificates.json"
SLICE = """
import json, sys
sys.path.insert(0, "benchmarks")
from campaign_certificates import PAGE, STORED, campaign, written
found = campaign(44, 7, 8)
page = PAGE.read_text(encoding="utf-8")
found["page"] = written(page, json.loads(STORED.read_text(encoding="utf-8"))) == page
print(json.dumps(found))
"""


@pytest.mark.nightly
def test_mutated_certificates_are_rejected_unless_they_hold() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SLICE], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert not done.returncode, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert found["page"], "the table of docs/certificates.md is not that of the measured file"
    rows = found["kinds"]
    assert set(rows) == set(checker.KINDS)
    assert sum(row["certificates"] for row in rows.values()) == 44
    assert all(row["content"] > row["mutations"] / 3 for row in rows.values())


def test_what_was_measured() -> None:
    found = json.loads(STORED.read_text(encoding="utf-8"))
    rows = found["kinds"]
    assert found["count"] == sum(row["certificates"] for row in rows.values()) >= 180
    assert found["wrong"] == []
    assert set(rows) <= set(checker.KINDS)
    for row in rows.values():
        assert row["wrong"] == 0
        assert row["mutations"] == row["content"] + row["undecided"] + row["seal"]
        assert row["seal"] == row["true"]

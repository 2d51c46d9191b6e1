"""A copy of the checkout in which one file at a time is wrong."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from mutants.stored import ROOT, Mutant, mutated

LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".hypothesis", "*_cache", "_build", "generated", "*.egg-info", "*.pyc.*"
)  # the last: while another process writes it
PYTEST = ("-m", "pytest", "--full", "-q", "-x", "-p", "no:cacheprovider", "--tb=no", "--no-header")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What tests said: "killed", "survived", "timeout" or "broken" (they could not be asked), and by which test."""

    status: str
    seconds: float
    killer: str
    said: str


class Sandbox:
    """A copy of the checkout; a file is changed for one run of tests and then put back.

    Compiled files are copied too, so that imports stay fast: a changed file gets a time of its own, because Python
    takes a compiled file for current that has the size of the source and its time in whole seconds.
    """

    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        self.root = folder / "checkout"
        self._changes = 0
        shutil.copytree(root, self.root, symlinks=True, ignore=LEFT_OUT)

    def python(self, *arguments: str, seconds: float = 600) -> subprocess.CompletedProcess[str]:
        """Run Python in the copy, as CI does."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("PYTEST_", "LAYOUTALG_"))}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env={**kept, "PYTHONPATH": str(self.root), "CI": "true"},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def tests(self, *tests: str, seconds: float = 600) -> Outcome:
        """Run tests until one fails."""
        start = time.perf_counter()
        try:
            done = self.python(*PYTEST, *tests, seconds=seconds)
        except subprocess.TimeoutExpired:
            return Outcome("timeout", time.perf_counter() - start, "", "")
        spent = time.perf_counter() - start
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+?::\w+(?:::\w+)*)", done.stdout, re.MULTILINE)
        said = (done.stdout + done.stderr)[-2000:]
        if done.returncode == 1 and failed:
            return Outcome("killed", spent, failed[0], said)
        return Outcome("survived" if done.returncode == 0 else "broken", spent, "", said)

    def mutant(self, mutant: Mutant, *tests: str, seconds: float = 600) -> Outcome:
        """Run tests with one mutant in place."""
        path = self.root / mutant.path
        before, times = path.read_bytes(), path.stat()
        self._changes += 1
        path.write_text(mutated(mutant, before.decode()), encoding="utf-8")
        os.utime(path, (times.st_atime, times.st_mtime + 100 + self._changes))
        try:
            return self.tests(*tests, seconds=seconds)
        finally:
            path.write_bytes(before)
            os.utime(path, (times.st_atime, times.st_mtime))

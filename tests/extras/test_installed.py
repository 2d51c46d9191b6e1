"""Each extra alone, installed from the package index into an empty environment, does what it is there for.

Runs with ``--extras`` only (``make extras``): it downloads packages and takes minutes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.extras
ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]

KERNEL = """
import layoutalg as la
import layoutalg.codegen.hip
from layoutalg.codegen.conversion import conversion_kernel
kernel = conversion_kernel(la.conversion("(32,2):(2,1)", "(32,2):(1,32)", 32, target={target!r}))
print(len(la.codegen.{call}(kernel)))
"""
GRAPH = """
from layoutalg.pipeline import Builder, event_graph
block = Builder(stages=2)
tiles, load, use = block.ring("tiles", A=64), block.role("load"), block.role("use")
tiles.acquire(load).load().commit()
tiles.wait(use).mma().release()
print(event_graph(block.pipeline()).number_of_nodes())
"""
TESTING = """
import pathlib, subprocess, sys
import layoutalg.testing.plugin
from layoutalg import testing
assert all(getattr(testing, name) for name in testing.__all__)
pathlib.Path("test_one.py").write_text('''
from hypothesis import given, settings
from layoutalg import testing
@settings(deadline=None)
@given(testing.strategies.cute_layouts())
def test_one(layout):
    testing.assert_equivalent(layout, layout)
''')
sys.exit(subprocess.run([sys.executable, "-m", "pytest", "-q", "test_one.py"]).returncode)
"""
SHOWS = {
    "cuda": KERNEL.format(target="sm_90a", call="to_cubin"),
    "hip": KERNEL.format(target="gfx1100", call="hip.to_code_object"),
    "graph": GRAPH,
    "test": TESTING,
    "distributed": """
from distributed import Client
import layoutalg as la
from layoutalg.codegen import gemm_space
with Client(processes=False, n_workers=2, dashboard_address=None) as client:
    print(la.tune(gemm_space((4096, 4096, 4096)), lambda choice: choice["rows"], client.get_executor()))
""",
    "docs": """
import subprocess, sys
command = ["-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", CLONE + "/docs", "html"]
sys.exit(subprocess.run([sys.executable, *command]).returncode)
""",
    "dev": """
import subprocess, sys
import bitwuzla, cvc5, distributed, ipykernel, jsonschema, nbclient, nbformat, networkx, tensor_layouts, xdist
for command in (["ruff", "--version"], ["mypy", "--version"], ["pytest", "--collect-only", "-q"]):
    subprocess.run([sys.executable, "-m", *command], cwd=CLONE, check=True, stdout=subprocess.DEVNULL)
""",
}


def test_every_extra_is_tried() -> None:
    assert set(SHOWS) == set(EXTRAS)


@pytest.mark.parametrize("extra", SHOWS)
def test_an_extra_alone(extra: str, tmp_path: Path) -> None:
    left = shutil.ignore_patterns(
        ".git", ".venv", "build", "_build", "generated", "*.egg-info", "__pycache__", ".*_cache"
    )
    clone = shutil.copytree(ROOT, tmp_path / "clone", symlinks=True, ignore=left)
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", str(bare)], check=True)
    python = str(bare / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", f"{clone}[{extra}]"], check=True)
    (tmp_path / "empty").mkdir()
    clean = {"PATH": f"{bare / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [python, "-c", f"CLONE = {str(clone)!r}\n{SHOWS[extra]}"],
        cwd=tmp_path / "empty",
        env=clean,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

"""Importing the package is cheap: numpy on use and nothing heavier; and this test can fail."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {"islpy", "z3", "sympy", "networkx", "cuda", "matplotlib", "hypothesis", "torch", "triton"}


def loaded_after(statement: str) -> set[str]:
    """Top-level modules in a fresh interpreter after a statement."""
    code = (
        f"import sys, json\n{statement}\nprint(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    "statement",
    [
        "import layoutalg",
        "import layoutalg.cli",
        "import layoutalg as la; la.parse('(4,8):(1,4)')",
        "import layoutalg as la; la.convert.to_integer(la.parse('Z[i:4=(1) -> offset]'))",
        "import layoutalg as la; la.IntegerLayout, la.HierarchicalLayout, la.PiecewiseLayout, la.equivalent",
        "import layoutalg.synth, layoutalg.proofs, layoutalg.targets.nvidia.tensormap, layoutalg.codegen",
    ],
)
def test_imports_stay_light(statement):
    assert not loaded_after(statement) & HEAVY


def test_importing_the_package_brings_numpy_only_on_use():
    loaded = loaded_after("import layoutalg")
    assert not loaded & {"argparse", "numpy"}
    assert "numpy" in loaded_after("import layoutalg as la; la.CuteLayout")


def modules_after(statement: str) -> list[str]:
    """The modules of the library in a fresh interpreter after a statement, without ``layoutalg.``."""
    code = (
        f"import sys, json, io, contextlib, layoutalg as la\nwith contextlib.redirect_stdout(io.StringIO()):\n"
        f"    {statement}\n"
        "print(json.dumps([name[10:] for name in sys.modules if name.startswith('layoutalg.')]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return json.loads(done.stdout)


def shell(*words: str) -> str:
    """The statement that runs a command as the shell does."""
    return f"from layoutalg.cli import main; assert main({list(words)}) in (0, 1)"


ELSEWHERE = ("codegen.", "draw.pictures", "draw.pipelines", "draw.ragged", "interop", "proofs.pipeline", "testing")
"""What no question about one layout needs."""
FINDERS = ("synth.conversions", "synth.factor", "synth.ragged", "synth.search", "synth.schedule", "synth.solving")
TILE = "Sw<3,3,3> o 0 o (64,64):(64,1)"
NEEDS = {
    "the options of every command": (shell("explain", "--help"), 25, ("proofs", "notation", "synth", "targets")),
    "a numeric question": (
        f"assert la.admissible({TILE!r}, 'wgmma.A')", 150,
        ("piecewise", "hierarchy", "bridges", "synth.tensormap", "synth.tcgen05", "synth.admission.registers"),
    ),
    "an explanation": (
        shell("explain", "Sw<3,4,3> o 0 o (64,64):(64,1)"), 280,
        ("ask.kernel_lines", "ask.bank_turns", "ask.explanation.plans", "synth.paddings", "synth.swizzles"),
    ),
    "a dump": (shell("explain", "0x4000004000010000"), 230, ("synth.tensormap", "ask.kernel_lines", "ask.bank_turns")),
    "bank turns and sectors": (
        f"{shell('banks', 'ldmatrix', TILE)}; {shell('transactions', '(32,4):(4,1)', '4096,4096')}", 225,
        ("ask.tile_facts", "synth.tensormap", "synth.wgmma"),
    ),
    "equality and conversion": (
        f"{shell('equal', '(4,8):(1,4)', '32:1')}; {shell('convert', '(4,8):(1,4)', 'linear')}", 170,
        ("ask", "draw", "synth"),
    ),
}  # fmt: skip
"""By question: a statement that asks it, the most modules that it loads, and packages that it does not."""


@pytest.mark.parametrize("question", NEEDS)
def test_a_question_loads_what_it_needs(question):
    statement, most, other = NEEDS[question]
    loaded = modules_after(statement)
    assert [name for name in loaded if name.startswith((*ELSEWHERE, *FINDERS, *other))] == []
    assert len(loaded) <= most


def test_this_test_can_fail():
    assert "islpy" in loaded_after("import layoutalg, islpy")
    heavy = loaded_after("import layoutalg as la; la.convert.to_piecewise(la.parse('(4,8):(1,4)'))")
    assert "islpy" in heavy
    drawn = modules_after("la.draw.svg(la.parse('(4,8):(1,4)')); la.codegen.attention_kernel")
    assert {"codegen.kernels.attention", "draw.pictures", "draw.pipelines", "proofs.pipeline"} <= {*drawn}


@pytest.mark.parametrize(
    "module", ["proofs.smem", "proofs.tensormap.swizzle", "proofs.certify.systems", "codegen.pipeline.emission"]
)
def test_a_module_can_be_imported_first(module):
    """A cycle of imports shows only where a process enters it at the wrong module."""
    assert "numpy" in loaded_after(f"import layoutalg.{module}")


def test_every_package_is_listed_for_the_build():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    found = set()
    for folder in ("layoutalg", "synth", "targets", "proofs", "codegen"):
        for init in (ROOT / folder).rglob("__init__.py"):
            if any(parent.is_symlink() for parent in init.parents):
                continue
            relative = init.parent.relative_to(ROOT)
            name = ".".join(relative.parts)
            found.add(name if folder == "layoutalg" else f"layoutalg.{name}")
    assert found == set(settings["packages"])


@pytest.mark.parametrize("name", ["synth", "targets", "proofs", "codegen"])
def test_the_folders_are_no_packages_of_their_own(name):
    done = subprocess.run(
        [sys.executable, "-c", f"import {name}"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode != 0
    assert f"import layoutalg.{name}, not {name}" in done.stderr


def test_public_names_resolve():
    import layoutalg as la

    for name in la.__all__:
        assert getattr(la, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        la.nonsense  # noqa: B018


PACKAGES = [
    "", "ask", "codegen", "codegen.kernels", "codegen.pipeline", "draw", "interop", "pipeline", "proofs", "synth",
    "targets", "targets.layouts", "targets.nvidia", "testing",
]  # fmt: skip
SHOWN = f"""
import layoutalg as la
from operator import attrgetter
doors = {{name: attrgetter(name)(la) if name else la for name in {PACKAGES}}}
first = {{name: dir(door) for name, door in doors.items()}}
for name, door in doors.items():
    assert first[name] == sorted(door.__all__) or (door is la and set(first[name]) < set(door.__all__)), name
    assert len(set(door.__all__)) == len(door.__all__) and all(getattr(door, each) is not None for each in first[name])
    assert not hasattr(door, "nonsense")
assert {{name: dir(door) for name, door in doors.items()}} == first, "using a name must not add one"
"""


def test_packages_show_their_public_names_and_nothing_else():
    subprocess.run([sys.executable, "-c", SHOWN], check=True, cwd=ROOT)


def test_a_checkout_without_links_says_how_to_restore_them(tmp_path):
    (tmp_path / "layoutalg").mkdir()
    for part in ("__init__.py", "ground"):
        (tmp_path / "layoutalg" / part).symlink_to(ROOT / "layoutalg" / part)
    (tmp_path / "layoutalg" / "synth").write_text("../synth")  # what git writes where links are switched off
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import layoutalg"
    done = subprocess.run([sys.executable, "-P", "-S", "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert "ImportError: this checkout lost its symbolic links" in done.stderr
    assert "git config core.symlinks true" in done.stderr

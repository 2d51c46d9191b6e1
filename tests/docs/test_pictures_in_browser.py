"""Pictures as a browser shows them: nothing leaves the frame, labels fit their cells, dark pages keep text readable."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import layoutalg as la
from layoutalg.proofs.im2col import ConvolutionProblem
from layoutalg.synth import factorise, synthesize_ragged
from layoutalg.synth.im2col import synthesize_im2col
from layoutalg.targets.layouts import nvidia
from layoutalg.targets.nvidia import tcgen05
from layoutalg.targets.nvidia.im2col import Im2colMap

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs a Chromium (Debian package chromium)")

MEASURE = """
const pictures = [...document.querySelectorAll("svg")].map((svg) => {
  const frame = svg.getBoundingClientRect();
  const outside = [...svg.querySelectorAll("text, rect, path")].filter((part) => {
    if (part.closest("defs")) return false;
    const box = part.getBoundingClientRect();
    const across = box.left < frame.left - 1 || box.right > frame.right + 1;
    return across || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
  }).map((part) => part.textContent.slice(0, 60));
  const cells = [...svg.querySelectorAll("path")].filter((part) => !part.closest("defs"));
  const labels = [...svg.querySelectorAll("text.m")];
  const rooms = cells.map((cell) => cell.getBoundingClientRect());
  const wide = labels.filter((text) => {
    const box = text.getBoundingClientRect();
    return rooms.some((room) => {
      const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
      return x > room.left && x < room.right && y > room.top && y < room.bottom && box.width > room.width + 1;
    });
  }).map((text) => text.textContent);
  const head = svg.querySelector(".h");
  return {outside, wide, cells: cells.length, head: head ? getComputedStyle(head).fill : ""};
});
document.body.replaceChildren(JSON.stringify(pictures));
"""


@cache
def pictures() -> dict[str, str]:
    """One of each kind."""
    swizzled = la.parse("Sw<3,3,3> o 0 o (8,64):(64,1)")
    verdict = la.equivalent(la.CuteLayout((4, 8), (8, 1)), la.CuteLayout((4, 8), (1, 4)))
    plan = la.tensormap(la.Tensor((300, 520)), (64, 64), "Sw<3,3,3> o 0 o (64,64):(64,1)")
    return {
        "grid": la.draw.svg(swizzled),
        "both": la.draw.svg(la.parse("(4,8):(8,1)"), show="both"),
        "negative": la.draw.svg(la.parse("(40):(-1000)")),
        "large": la.draw.svg(la.CuteLayout((128, 128), (128, 1))),
        "owners": la.draw.svg(nvidia.mma_accumulator((16, 8), (1, 1))),
        "matrix": la.draw.svg(la.convert.to_linear(swizzled), "matrix"),
        "swizzle": la.draw.svg(la.Swizzle(3, 4, 3)),
        "banks": la.draw.banks([128 * (lane % 8) + 16 * (lane // 8) for lane in range(32)], 128),
        "plan": la.draw.svg(plan),
        "difference": la.draw.difference(la.CuteLayout((4, 8), (8, 1)), la.CuteLayout((4, 8), (1, 4))),
        "families": la.draw.families(la.CuteLayout((4, 6), (6, 1))),
        "verdict": verdict._repr_mimebundle_()["image/svg+xml"],
        **answers(),
    }


def answers() -> dict[str, str]:
    """One of each kind of answer and plan, at the sizes that people have."""
    tile, tall = "Sw<3,3,3> o 0 o (64,64):(64,1)", "Sw<3,3,3> o 0 o (128,64):(64,1)"
    lanes, warps = [(1 << bit, 0) for bit in range(5)], [(32, 0), (64, 0)]
    held = la.LinearLayout.from_bases(
        {"register": [(0, 1 << bit) for bit in range(6)], "lane": lanes, "warp": warps}, {"row": 128, "col": 64}
    )
    convolution = ConvolutionProblem(la.Tensor((2, 32, 32, 64)), (3, 3), 128, 64, padding=(1, 1))
    use = tcgen05.TmemUse().alloc(tcgen05.TmemAllocation(256), warp=0).alloc(tcgen05.TmemAllocation(32, 256), warp=0)
    ragged = la.Tensor((1024, 512))
    asked = {
        "admitted-tma": (tile, "tma"), "admitted-wgmma": (tall, "wgmma.A"), "admitted-bulk": (tile, "bulk"),
        "admitted-wgmma-mn": ("Sw<3,3,3> o 0 o (64,128):(1,64)", "wgmma.B"), "ldmatrix": (tall, "ldmatrix.x4"),
        "conflicts": ("(128,64):(64,1)", "ldmatrix.x4.trans"), "vectors": ("(128,64):(64,1)", "ld.shared.v4.b32"),
        "bits16": (tile, "st.shared.b16"), "copies": (tile, "cp.async"),
        "tcgen05": (tall, "tcgen05.A", "sm_100a"), "lds": ("(128,64):(72,1)", "ds_read_b128", "gfx942"),
        "accumulator": (held, "tcgen05.D", "sm_100a", "f32"), "no-shape": (held, "tcgen05.ld.16x64b", "sm_100a", "f32"),
        "refused": ("(64,64):(64,1)", "wgmma.A"), "refused-near": ("(128,64):(65,1)", "ldmatrix.x4"),
        "refused-tma": ("(64,64):(72,1)", "tma"), "refused-arch": (tile, "wgmma.A", "gfx942"),
    }  # fmt: skip
    return {
        **{
            name: la.draw.admission(words[0], la.admissible(*words)) if isinstance(words[0], str)
            else la.draw.svg(la.admissible(*words))
            for name, words in asked.items()
        },
        "factors": la.draw.svg(factorise("F2[register=(1)(2)(8), lane=(4)(16)(32)(64)(128) -> offset:256]")),
        "no-shuffles": la.draw.svg(factorise("(64,64):(64,1)")),
        **{
            f"ragged-{name}": la.draw.svg(synthesize_ragged(ragged, (64, 64), strategy=name))
            for name in ("descriptors", "boxes", "back", "overfetch")
        },
        "symbolic": la.draw.svg(la.tensormap(la.Tensor(("B", "M", "K"), assume=("K % 8 == 0",)), (1, 128, 64))),
        "tmem": la.draw.svg(use),
        "tmem-access": la.draw.svg(tcgen05.TmemAccess("16x256b", 4, warp=1, lane=32, column=64)),
        "im2col": la.draw.svg(Im2colMap("f16", (64, 300, 9), (128, 38400), (-1,), (-1,), 8, 1024)),
        "convolution": la.draw.svg(synthesize_im2col(convolution)),
    }  # fmt: skip


def shown(tmp_path: Path, dark: bool) -> dict[str, dict[str, Any]]:
    """What the browser says of each picture."""
    page = tmp_path / "page.html"
    body = "".join(f"<div>{picture}</div>" for picture in pictures().values())
    page.write_text(
        f"<!doctype html><meta charset=utf-8><body>{body}<script>{MEASURE}</script></body>", encoding="utf-8"
    )
    assert BROWSER is not None
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=3000,24000", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", f"--blink-settings=preferredColorScheme={0 if dark else 1}"]
    done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r"<body>(.*)</body>", done.stdout, re.DOTALL)
    assert found is not None, done.stdout[-500:]
    return dict(zip(pictures(), json.loads(html.unescape(found[1])), strict=True))


def brightness(colour: str) -> float:
    """Of ``rgb(r, g, b)``, from 0 to 255."""
    red, green, blue = (int(number) for number in re.findall(r"\d+", colour)[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pictures_in_a_browser(tmp_path: Path, dark: bool) -> None:
    found = shown(tmp_path, dark)
    assert {name: entry["outside"] for name, entry in found.items() if entry["outside"]} == {}
    assert {name: entry["wide"] for name, entry in found.items() if entry["wide"]} == {}
    assert found["large"]["cells"] == 128 * 128
    heads = {name: brightness(entry["head"]) for name, entry in found.items() if entry["head"]}
    assert {name for name, bright in heads.items() if (bright > 128) != dark} == set()

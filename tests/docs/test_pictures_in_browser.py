"""Pictures as a browser shows them: nothing leaves the frame, labels fit their cells, dark pages keep text readable."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from docs.drawn import pictures

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
  const tiles = [...svg.querySelectorAll("rect.c3")].map((part) => part.getBoundingClientRect());
  const tile = Math.max(0, ...tiles.map((box) => Math.min(box.width, box.height)));
  return {tile, outside, wide, cells: cells.length, head: head ? getComputedStyle(head).fill : ""};
});
document.body.replaceChildren(JSON.stringify(pictures));
"""


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
    assert found["plan"]["tile"] >= 24
    assert found["plan-dots"]["tile"] >= 70
    heads = {name: brightness(entry["head"]) for name, entry in found.items() if entry["head"]}
    assert {name for name, bright in heads.items() if (bright > 128) != dark} == set()

"""Slow modules load on first use, one at a time."""

from __future__ import annotations

import sys
import threading

from layoutalg.ground.lazy import later

BODY = """
import time, builtins
builtins.la_loading = getattr(builtins, "la_loading", 0) + 1
time.sleep(0.1)
alone = builtins.la_loading == 1
builtins.la_loading -= 1
"""


def test_two_threads_load_slow_modules_one_after_the_other(tmp_path, monkeypatch):
    names = [f"la_slow_{place}" for place in range(3)]
    for name in names:
        (tmp_path / f"{name}.py").write_text(BODY, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = {}
    threads = [threading.Thread(target=lambda name=name: seen.update({name: later(name).alone})) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == dict.fromkeys(names, True)
    for name in names:
        del sys.modules[name]

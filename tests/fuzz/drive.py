"""One driver for all fuzz targets.

A target is a module in this folder with ``SEEDS`` (valid inputs), optionally ``WORDS`` (pieces that its grammar knows)
and ``LIMIT`` (more seconds, where several questions go to ISL), and ``target(data: bytes) -> None``. Its contract:
``data`` is read to a value whose text or JSON reads back to an equal value, or it is refused with a ``LayoutError``;
both within 2 seconds and 200 MB. Anything else is a finding: another exception, an unequal value, a crash, more time or
memory.

Long runs (each finding is written as a file; a crash or a hang ends one process, and the run goes on behind it)::

    python tests/fuzz/drive.py symbolic --seconds 600 --out /tmp/found
    python tests/fuzz/drive.py all --count 20000 --seed 7
    python tests/fuzz/drive.py parse --replay /tmp/found/parse-1234abcd
    python tests/fuzz/drive.py parse --engine atheris --seconds 600        # where atheris is installed

Runs are deterministic: input number i of seed s is the same bytes everywhere, so CI runs a short one
(``test_short.py``) that says how to repeat what it found.

Implementation notes: inputs are made by mutation from the seeds: bytes flipped, pieces cut, repeated and spliced,
numbers replaced by odd ones, words of the grammar put in, JSON nodes replaced. Time is wall time, measured again before
it counts; memory is the growth of the greatest resident size after all seeds have run.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import hashlib
import importlib
import json
import multiprocessing
import random
import re
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # in place of this folder, whose names are those of other modules
    sys.path[:1] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from layoutalg.ground.errors import LayoutError

TARGETS = (
    "parse",
    "hierarchy",
    "isl",
    "symbolic",
    "triton",
    "kernels",
    "document",
    "dumps",
    "problem_of",
    "tensormap_problem",
    "tensormap_plan",
    "tensormap_bits",
    "wgmma_problem",
    "wgmma_plan",
    "wgmma_bits",
)
SECONDS = 2.0
BYTES = 200 * 2**20
HANG = 20
"""Seconds after which one input counts as a hang."""
NUMBERS = [
    "0", "1", "-1", "2", "3", "7", "8", "64", "255", "65536", "2147483648", "4294967296", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "18446744073709551616", "1" + "0" * 30, "9" * 400, "9" * 5_000,
    "007", "1.5", "1e400", "-0", "0x10", "NaN",
]  # fmt: skip
ODD_VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 63, 2**31, 2**62, 2**63, -(2**63), 10**30, 1.5, -0.0, "", "NONE", "128B", "bf16",
    "x", "00" * 128, "\ud800", [], [[]], {}, {"x": 1}, [0] * 40, [[1, 1]] * 40, [1, 2, 3, 4, 5, 6],
]  # fmt: skip
MARKS = [b"(", b")", b"[", b"]", b"{", b"}", b",", b":", b"<", b">", b"^", b"|", b"->", b" ", b"\n", b"\0", b"\xff",
         b"\xe2\x80\xa8", b"\xef\xac\x81", b"_", b"-", b"+", b"*", b"/", b"%", b"=", b'"', b"\\", b"#"]  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """What went wrong with one input."""

    target: str
    data: bytes
    what: str

    def __str__(self) -> str:
        return f"{self.target}: {self.what}\n  input ({len(self.data)} bytes): {self.data[:300]!r}"


def contract(read: Callable[[Any], Any], write: Callable[[Any], Any], given: Any) -> Any:
    """Read, write and read again; return the value, or None where it was refused."""
    try:
        value = read(given)
    except LayoutError as error:
        refused(error)
        return None
    again = read(write(value))
    assert again == value, f"reads back unequal: {str(write(value))[:200]}"
    return value


def refused(error: LayoutError) -> None:
    """Check that a refusal can be shown and sent."""
    assert str(error)
    json.dumps(error.diagnostic.to_json(), allow_nan=False)


def text_of(data: bytes) -> str:
    """Return bytes as text; what is not UTF-8 becomes lone surrogates, which readers must refuse or take as text."""
    return data.decode("utf-8", "surrogateescape")


def json_of(data: bytes) -> Any:
    """Return the JSON of bytes; None where they are none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def module_of(name: str) -> Any:
    return importlib.import_module(f"fuzz.{name}")


def made(name: str, seed: int, number: int) -> bytes:
    """Return input ``number`` of a run; the first ones are the seeds themselves."""
    module = module_of(name)
    if number < len(module.SEEDS):
        return bytes(module.SEEDS[number])
    source = random.Random(f"{name}:{seed}:{number}")
    data = bytes(source.choice(module.SEEDS))
    if getattr(module, "JSON", False) and source.random() < 0.7:
        with contextlib.suppress(ValueError):
            return json.dumps(mutated_json(json.loads(data), source)).encode("utf-8", "surrogatepass")
    if getattr(module, "BINARY", False) and source.random() < 0.7:
        return flipped(data, source)
    for _ in range(source.choice((1, 1, 2, 3, 6))):
        data = mutated(data, module, source)
    return data[: 2**20]


def flipped(data: bytes, source: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(source.choice((1, 1, 2, 4, 8))):
        place = source.randrange(max(len(changed), 1))
        if place < len(changed):
            changed[place] ^= 1 << source.randrange(8) if source.random() < 0.8 else source.randrange(256)
    return bytes(changed)


def mutated(data: bytes, module: Any, source: random.Random) -> bytes:
    """Return data with one change."""
    start = source.randrange(len(data) + 1)
    stop = min(len(data), start + source.choice((1, 1, 2, 3, 5, 8, 20, 200)))
    words = [word.encode() for word in getattr(module, "WORDS", ())]
    numbers = list(re.finditer(rb"-?\d+", data))
    match source.randrange(10):
        case 0:
            return data[:start] + data[stop:]
        case 1:
            return data[:stop] + data[start:]
        case 2:
            return data[:start] + source.choice(MARKS) + data[start:]
        case 3:
            return data[:start] + data[start:stop] * source.choice((2, 3, 10, 100, 1_000)) + data[stop:]
        case 4:
            other = bytes(source.choice(module.SEEDS))
            return data[:start] + other[source.randrange(len(other) + 1) :]
        case 5 if words:
            return data[:start] + source.choice(words) + data[source.choice((start, stop)) :]
        case 6:
            return flipped(data, source)
        case 7:
            mark, close = source.choice(((b"(", b")"), (b"[", b"]"), (b"{", b"}"), (b"-", b""), (b" ", b" ")))
            depth = source.choice((1, 2, 30, 70, 500))
            return data[:start] + mark * depth + data[start:stop] + close * depth + data[stop:]
        case _ if numbers:
            found = source.choice(numbers)
            new = source.choice(NUMBERS) if source.random() < 0.5 else str(source.randrange(40))
            return data[: found.start()] + new.encode() + data[found.end() :]
    return data + source.choice(MARKS)


def mutated_json(value: Any, source: random.Random) -> Any:
    """Return a document with a few nodes replaced, removed, doubled or moved."""
    for _ in range(source.choice((1, 1, 1, 2, 3))):
        nodes = list(_nodes(value))
        if not nodes:
            return copy.deepcopy(source.choice(ODD_VALUES))
        holder, key = source.choice(nodes)
        old = holder[key]
        match source.randrange(7):
            case 0 | 1:
                holder[key] = copy.deepcopy(source.choice(ODD_VALUES))
            case 2 if isinstance(old, int) and not isinstance(old, bool):
                holder[key] = old + source.choice((-1, 1, 2, -old, old, 8, -2 * old, 2**40))
            case 3 if isinstance(holder, dict):
                del holder[key]
            case 3:
                holder.insert(source.randrange(len(holder) + 1), copy.deepcopy(old))
            case 4 if isinstance(old, str) and old:
                place = source.randrange(len(old))
                holder[key] = old[:place] + source.choice(("0", "f", "", "Z", " ", "\u2028")) + old[place + 1 :]
            case 5 if isinstance(holder, dict):
                holder[source.choice([*holder, "extra", ""])] = copy.deepcopy(old)
            case _:
                other_holder, other_key = source.choice(nodes)
                if not _inside(other_holder[other_key], holder):
                    holder[key] = copy.deepcopy(other_holder[other_key])
    return value


def _nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        for key, entry in value.items():
            yield value, key
            yield from _nodes(entry)
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield value, index
            yield from _nodes(entry)


def _inside(value: Any, holder: Any) -> bool:
    return value is holder or any(entry[key] is holder for entry, key in _nodes(value))


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _hang(*_: object) -> None:
    raise TimeoutError(f"more than {HANG} s")


def judged(name: str, data: bytes, limit: float = SECONDS) -> str | None:
    """Run one input; return what is wrong, or None. Time is measured up to three times, and the least counts."""
    target = module_of(name).target
    limit = max(limit, getattr(module_of(name), "LIMIT", 0.0))
    took = []
    for _ in range(3):
        before, start = peak(), time.monotonic()
        signal.signal(signal.SIGALRM, _hang)
        signal.alarm(HANG)
        try:
            target(data)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return "".join(traceback.format_exception(error)[-4:])[-1_500:]
        finally:
            signal.alarm(0)
        took.append(time.monotonic() - start)
        if peak() - before > BYTES:
            return f"{(peak() - before) >> 20} MB"
        if took[-1] <= limit:
            return None
    return f"{min(took):.1f} s"


def run(name: str, seed: int, numbers: range, seconds: float = 1e9, limit: float = SECONDS) -> Iterator[Finding | int]:
    """Run inputs in this process; yield the number before each one, and findings."""
    for data in module_of(name).SEEDS:  # what is loaded once is not the memory of one input
        judged(name, bytes(data), limit)
    start = time.monotonic()
    for number in numbers:
        yield number
        data = made(name, seed, number)
        what = judged(name, data, limit)
        if what is not None:
            yield Finding(name, data, what)
        if time.monotonic() - start > seconds:
            return


def _child(pipe: Any, name: str, seed: int, numbers: range, seconds: float, limit: float) -> None:
    for event in run(name, seed, numbers, seconds, limit):
        pipe.send(event)
    pipe.send(None)


def supervised(name: str, seed: int, count: int, seconds: float = 1e9, limit: float = SECONDS) -> Iterator[Finding]:
    """Run inputs in a process of their own; a crash or a hang of it is a finding, and the next process goes on."""
    context = multiprocessing.get_context("spawn")
    first, start = 0, time.monotonic()
    while first < count and time.monotonic() - start < seconds:
        mine, theirs = context.Pipe()
        left = seconds - (time.monotonic() - start)
        process = context.Process(target=_child, args=(theirs, name, seed, range(first, count), left, limit))
        process.start()
        theirs.close()
        current = None
        try:
            while mine.poll(6 * HANG):
                event = mine.recv()
                if event is None:
                    return
                if isinstance(event, Finding):
                    yield event
                else:
                    current = event
            how = f"no answer in {6 * HANG} s"
        except EOFError:
            process.join()
            how = f"the process ended with status {process.exitcode}"
        finally:
            process.kill()
            process.join()
        if current is None:
            yield Finding(name, b"", f"before the first input: {how}")
            return
        yield Finding(name, made(name, seed, current), how)
        first = current + 1


def _atheris(name: str, seconds: float) -> None:
    import atheris

    with atheris.instrument_imports(include=["layoutalg"]):
        module = module_of(name)
    folder = Path(f"/tmp/fuzz-{name}")
    folder.mkdir(exist_ok=True)
    for data in module.SEEDS:
        (folder / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    arguments = [sys.argv[0], str(folder), f"-max_total_time={int(seconds)}", "-timeout=20", "-rss_limit_mb=4096"]
    atheris.Setup(arguments, lambda data: module.target(bytes(data)))
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=[*TARGETS, "all"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--limit", type=float, default=SECONDS, help="seconds that one input may take")
    parser.add_argument("--out", type=Path, help="folder for the inputs of findings")
    parser.add_argument("--replay", type=Path, help="run one file instead")
    parser.add_argument("--engine", choices=("mutate", "atheris"), default="mutate")
    options = parser.parse_args()
    if options.replay:
        what = judged(options.target, options.replay.read_bytes(), options.limit)
        print(what or "as the contract says")
        return int(what is not None)
    if options.engine == "atheris":
        _atheris(options.target, options.seconds)
        return 0
    kinds: set[str] = set()
    for name in TARGETS if options.target == "all" else (options.target,):
        for finding in supervised(name, options.seed, options.count, options.seconds, options.limit):
            kind = f"{name}: {finding.what.strip().splitlines()[-1][:90]}"
            if kind not in kinds:
                kinds.add(kind)
                print(finding, flush=True)
            if options.out:
                options.out.mkdir(parents=True, exist_ok=True)
                path = options.out / f"{name}-{hashlib.sha256(finding.data).hexdigest()[:8]}"
                path.write_bytes(finding.data)
        print(f"{name}: done", flush=True)
    return int(bool(kinds))


if __name__ == "__main__":
    sys.exit(main())

"""A folder of compiled kernels: per entry a JSON document and a cubin, written whole and checked when read.

An entry is two files named by the digest of its key. The cubin is written first, the document, which states its size
and digest, last; each goes to a temporary file of the folder, is flushed to the disk and renamed. Processes may share
a folder: a reader sees a whole entry, none, or one that the digest refuses. Digests detect damage, not intent: use a
folder that only trusted users write. Entries have no paths.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from layoutalg.ground.check import Checker
from layoutalg.ground.document import Reader, load_json
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.record import Record

CHECK: Final = Checker("LA507", "invalid variants of a kernel")
SCHEMA: Final = "layoutalg/variant/1"
FOLDER_BYTES: Final = 2**28
"""bytes: a folder of compiled kernels, by default; the entries that were not used for longest go first"""
ENTRY_BYTES: Final = 2**16
"""bytes: the JSON document of a compiled kernel"""
_STALE_SECONDS: Final = 3600
"""Age at which a temporary file belongs to a process that was killed."""


@dataclass(frozen=True, slots=True)
class Key(Record, code="LA507"):
    """What a compiled kernel depends on.

    Example:
        >>> Key("n % 8 == 0", "sm_90a", "bf16", "NVRTC 13.0", "0.1.0", "0" * 64).digest[:12]
        'd96b726fb00e'
    """

    guard: str  # the sizes for which it is right
    arch: str  # architecture
    dtype: str  # element type; empty if there is no single one
    toolkit: str  # name and version of the compiler
    package: str  # version of this library
    text: str  # digest of the kernel's text, so that an entry never outlives a change of the builder

    @property
    def digest(self) -> str:
        """The name of the entry's files."""
        return hashlib.sha256(json.dumps([SCHEMA, self.to_json()], sort_keys=True).encode()).hexdigest()


class Cache:
    """Compiled kernels in a folder, which is made when the first entry is stored.

    Args:
        folder: The folder.
        limit_bytes: Size of all entries.

    Example:
        >>> import tempfile
        >>> key = Key("n % 8 == 0", "sm_90a", "bf16", "NVRTC 13.0", "0.1.0", "0" * 64)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     cache = Cache(folder)
        ...     cache.load(key), cache.store(key, b"cubin"), cache.load(key)
        ((None, ''), '', (b'cubin', ''))
    """

    def __init__(self, folder: str | os.PathLike[str], limit_bytes: int = FOLDER_BYTES) -> None:
        if not isinstance(folder, (str, os.PathLike)):
            raise CHECK.malformed("folder", "must be a path", folder)
        self.folder = Path(folder)
        self.limit_bytes = CHECK.integer(limit_bytes, "limit_bytes", 0)

    def load(self, key: Key) -> tuple[bytes | None, str]:
        """Return the cubin of an entry, or None and the reason; the reason is empty if there is no such entry."""
        document, cubin = self._files(key)
        try:
            text = _read(document, ENTRY_BYTES).decode()
        except FileNotFoundError:
            return None, ""
        except (OSError, UnicodeDecodeError) as error:
            return None, f"the document cannot be read: {_told(error)}"
        try:
            size, digest = _stated(load_json(text, "variant"), key)
            code = _read(cubin, size)
        except MalformedError as error:
            return None, f"the document is refused: {error.diagnostic.because} ({', '.join(error.diagnostic.where)})"
        except OSError as error:
            return None, f"the cubin cannot be read: {_told(error)}"
        if len(code) != size:
            return None, f"the cubin has {len(code)} bytes, its document states {size}"
        if hashlib.sha256(code).hexdigest() != digest:
            return None, "the cubin differs from the digest in its document"
        with suppress(OSError):
            os.utime(document)  # used now: evicted last
        return code, ""

    def store(self, key: Key, cubin: bytes) -> str:
        """Write an entry whole, or leave nothing; return why it was not written, empty on success."""
        entry: dict[str, object] = {"schema": SCHEMA, "key": key.to_json()}
        entry["cubin"] = {"bytes": len(cubin), "sha256": hashlib.sha256(cubin).hexdigest()}
        document, code = self._files(key)
        text = json.dumps(entry, indent=1, sort_keys=True).encode()
        if len(text) + len(cubin) > self.limit_bytes or len(text) > ENTRY_BYTES:
            return f"an entry of {len(text) + len(cubin)} bytes exceeds the limit of {self.limit_bytes}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._evict(len(text) + len(cubin), key.digest)
            _write(code, cubin)
            try:
                _write(document, text)
            except OSError:
                if not document.exists():
                    code.unlink(missing_ok=True)
                raise
        except OSError as error:
            return f"not stored: {_told(error)}"
        return ""

    def _files(self, key: Key) -> tuple[Path, Path]:
        return self.folder / f"{key.digest}.json", self.folder / f"{key.digest}.cubin"

    def _evict(self, more: int, kept: str) -> None:
        """Remove the entries that were not used for longest until ``more`` bytes fit, and what killed writers left."""
        entries: dict[str, list[os.stat_result]] = {}
        for file in self.folder.iterdir():
            with suppress(FileNotFoundError):  # another process evicts too
                stat = file.stat()
                if file.suffix == ".part" and time.time() - stat.st_mtime > _STALE_SECONDS:
                    file.unlink()
                elif file.suffix in (".json", ".cubin"):
                    entries.setdefault(file.stem, []).append(stat)
        total = more + sum(each.st_size for found in entries.values() for each in found)
        for name, found in sorted(entries.items(), key=lambda entry: max(each.st_mtime for each in entry[1])):
            if total <= self.limit_bytes:
                return
            if name != kept:
                for suffix in (".json", ".cubin"):
                    (self.folder / f"{name}{suffix}").unlink(missing_ok=True)
                total -= sum(each.st_size for each in found)


def _stated(document: object, key: Key) -> tuple[int, str]:
    """Return the size and digest of the cubin that an entry states, which must be the key's."""
    reader = Reader(document)
    reader.keys(("schema", "key", "cubin"))
    reader.schema(SCHEMA)
    wanted = key.to_json()
    reader.get("key").keys(tuple(wanted))
    for name, value in wanted.items():
        if reader.get("key").get(name).value != value:
            reader.get("key").get(name).fail(f"must be {value}: the entry is foreign")
    cubin = reader.get("cubin")
    cubin.keys(("bytes", "sha256"))
    return cubin.get("bytes").integer(0, FOLDER_BYTES), cubin.get("sha256").text()


def _read(file: Path, most: int) -> bytes:
    """Return the bytes of a file, at most one more than ``most``."""
    with file.open("rb") as opened:
        return opened.read(most + 1)


def _write(file: Path, content: bytes) -> None:
    """Replace a file by one with this content, or leave it as it was."""
    handle, name = tempfile.mkstemp(".part", "", file.parent)
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(name, file)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    if hasattr(os, "O_DIRECTORY"):  # the rename itself reaches the disk too
        folder = os.open(file.parent, os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _told(error: Exception) -> str:
    """Return an error without the path."""
    if isinstance(error, OSError):
        return error.strerror or errno.errorcode.get(error.errno or 0, type(error).__name__)
    return "it is not UTF-8 text"

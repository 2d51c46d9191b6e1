"""Write answers to standard output, standard error and files, escaped; failed writes are never silent.

Implementation notes: control characters in text are escaped line by line, because much of it comes from documents. JSON
is ASCII. A failed write to standard output or a file is an ``OutputError``; one to standard error is ignored.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from layoutalg.ground.errors import Diagnostic, LayoutError, MalformedError, plain
from layoutalg.ground.text import escaped

Result = dict[str, object]


class OutputError(LayoutError):
    """An answer could not be written."""


def _failure(where: str, error: Exception | str) -> OutputError:
    reason = error if isinstance(error, str) else getattr(error, "strerror", None) or str(error)
    return OutputError(Diagnostic("LA016", "the answer could not be written", (escaped(where, 300),), reason))


def _lines(text: str, stream: TextIO) -> str:
    """Text for a terminal: printable, and encodable in the stream's encoding."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return (
        "".join(f"{escaped(line)}\n" for line in text.split("\n")).encode(encoding, "backslashreplace").decode(encoding)
    )


def _put(text: str) -> None:
    if sys.stdout is None:
        raise _failure("standard output", "it is closed")
    try:
        sys.stdout.write(text)
    except (OSError, ValueError) as error:  # ValueError: closed
        raise _failure("standard output", error) from None


def say(text: str) -> None:
    """Write lines to standard output."""
    _put(_lines(text, sys.stdout))


def say_json(document: object) -> None:
    """Write one JSON document to standard output."""
    _put(json.dumps(plain(document)) + "\n")


def say_answer(found: Any, as_json: bool, words: str | None = None) -> None:
    """Write an answer as text (``words``, or its ``str``) or as its JSON document."""
    if as_json:
        say_json(found.to_json())
    else:
        say(str(found) if words is None else words)


def put_bytes(raw: bytes) -> None:
    """Write raw bytes to standard output."""
    _put("")
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(raw)
    except (OSError, ValueError) as error:
        raise _failure("standard output", error) from None


def put_into(file: TextIO, content: str | bytes) -> None:
    """Write text or bytes to a file opened by ``answer_file``."""
    try:
        if isinstance(content, str):
            file.write(content)
        else:
            file.flush()
            file.buffer.write(content)
    except OSError as error:
        raise _failure("the file for the answer", error) from None


def flush() -> None:
    """Flush standard output, so that write errors are noticed."""
    if sys.stdout is None:
        return  # nothing was written, or ``say`` has raised
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        raise _failure("standard output", error) from None


def silence() -> None:
    """Redirect standard output to the null device after an error, so that its buffer does not raise at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, sys.stdout.fileno())
        os.close(sink)


def tell(text: str) -> None:
    """Write lines to standard error, if it is open."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(_lines(text, sys.stderr))
        sys.stderr.flush()


def progress(done: int, total: int, what: str) -> None:
    """Show progress of long work on standard error if it is a terminal."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if total > 1 and sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{done}/{total} {escaped(what, 60)}" + ("\n" if done == total else ""))
            sys.stderr.flush()


class Steps:
    """Progress of long work: one updated line on a terminal, otherwise a line every few seconds."""

    SECONDS = 5.0

    def __init__(self, total: int) -> None:
        self.total, self.told = total, time.monotonic()

    def done(self, count: int, what: str) -> None:
        """Say that ``count`` steps are done, the last of them called ``what``."""
        progress(count, self.total, what)
        with contextlib.suppress(OSError, ValueError, AttributeError):
            if not sys.stderr.isatty() and time.monotonic() - self.told >= self.SECONDS:
                self.told = time.monotonic()
                tell(f"{count} of {self.total} done, now after {escaped(what, 60)}")


@contextlib.contextmanager
def answer_file(name: str | None) -> Iterator[TextIO | None]:
    """Open a file for the answers; in the end it is either complete or unchanged.

    A regular file is written to a temporary file in the same folder, then renamed; it keeps its permissions, a new one
    gets those of the umask. A link stays and its target is replaced. Devices, FIFOs and files under ``/dev/fd`` or
    ``/proc`` are written directly.

    Args:
        name: The file, or None.
    """
    if name is None:
        yield None
        return
    if not name:
        raise _no_place(name, "the name of the file for the answer is empty")
    try:
        direct, status = _kind(name)
        target = name if direct else os.path.realpath(name)
        handle, part = _opened(target, direct, status)
    except (OSError, ValueError) as error:
        raise _no_place(name, getattr(error, "strerror", None) or str(error)) from None
    file = open(handle, "w", encoding="utf-8")  # noqa: SIM115
    try:
        yield file
        try:
            file.flush()
            if part is not None:
                os.fsync(handle)
            file.close()
            if part is not None:
                os.replace(part, target)
        except OSError as error:
            raise _failure(name, error) from None
    finally:
        with contextlib.suppress(OSError):  # after an error, flushing the rest may fail again
            file.close()
        if part is not None:
            with contextlib.suppress(OSError):  # already renamed on success
                os.unlink(part)


def put_folder(name: str, texts: Mapping[str, str]) -> None:
    """Write files to a new or empty folder, all or none.

    Raises: MalformedError: LA012. OutputError: LA016.
    """
    target = os.path.realpath(name)
    try:
        if not name or (os.path.lexists(target) and (not os.path.isdir(target) or os.listdir(target))):
            raise _no_place(name, "it must be the name of a new or empty folder")
        part = tempfile.mkdtemp(prefix=".layoutalg-", suffix=".part", dir=os.path.dirname(target))
    except (OSError, ValueError) as error:
        raise _no_place(name, getattr(error, "strerror", None) or str(error)) from None
    try:
        for file, text in texts.items():
            with open(os.path.join(part, file), "w", encoding="utf-8") as out:
                out.write(text)
        os.chmod(part, 0o755)
        os.rename(part, target)
    except OSError as error:
        raise _failure(name, error) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)  # already renamed on success


def _no_place(name: str, reason: str) -> MalformedError:
    return MalformedError(Diagnostic("LA012", "cannot write the answer", (escaped(name, 300) or "''",), reason))


def _kind(name: str) -> tuple[bool, os.stat_result | None]:
    """Return whether to write directly, and the status of the existing file, or None."""
    try:
        status = os.stat(name)
    except FileNotFoundError:
        if name.endswith("/"):
            raise IsADirectoryError(0, "it is a directory") from None
        return False, None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(0, "it is a directory")
    special = os.path.abspath(name).startswith(("/dev/fd/", "/dev/std", "/proc/"))
    return special or not stat.S_ISREG(status.st_mode), status


def _opened(target: str, direct: bool, status: os.stat_result | None) -> tuple[int, str | None]:
    """Open a target, or a temporary file next to it; return the handle and the name of the latter."""
    if direct:
        return os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC), None
    effective = os.access in os.supports_effective_ids
    if status is not None and not os.access(target, os.W_OK, effective_ids=effective):
        raise PermissionError(0, "it is write-protected")
    part = os.path.join(os.path.dirname(target), f".layoutalg-{secrets.token_hex(8)}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    if status is not None:
        with contextlib.suppress(OSError):  # changing the owner may not be permitted
            os.fchown(handle, status.st_uid, status.st_gid)
        with contextlib.suppress(OSError):
            os.fchmod(handle, stat.S_IMODE(status.st_mode))
    return handle, part


class Answers:
    """Writes answers one at a time, without keeping them."""

    def __init__(self, is_list: bool, as_json: bool, file: TextIO | None) -> None:
        self.is_list, self.as_json, self.file = is_list, as_json, file
        self.count = 0

    def put(self, result: Result, lines: Sequence[str]) -> None:
        """Write one answer."""
        before = ("[" if self.count == 0 else ", ") if self.is_list else ""
        if self.as_json:
            _put(before + json.dumps(plain(result)))
        else:
            say("\n".join([f"[{self.count}]", *lines] if self.is_list else lines))
        flush()
        if self.file is not None:
            text = json.dumps(plain(result), indent=1)
            indented = text.replace("\n", "\n ") if self.is_list else text  # JSON strings have no raw line breaks
            self._write(before.strip() + ("\n " if self.is_list else "") + indented)
        self.count += 1

    def end(self) -> None:
        """Close the documents."""
        if self.as_json:
            _put("]\n" if self.is_list else "\n")
        flush()
        self._write("\n]\n" if self.is_list else "\n")

    def _write(self, text: str) -> None:
        if self.file is not None:
            put_into(self.file, text)

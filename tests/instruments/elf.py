"""What machine code says of itself."""

from __future__ import annotations

import struct


def local_bytes(code: bytes) -> int:
    """Bytes of local memory of a thread: the largest frame that the ``.nv.info`` section of machine code states."""
    (table,), (entry, count, names_at) = struct.unpack_from("<Q", code, 40), struct.unpack_from("<HHH", code, 58)
    heads = [struct.unpack_from("<IIQQQQ", code, table + entry * place) for place in range(count)]
    names = heads[names_at][4]
    frames = [0]
    for name, _, _, _, first, size in heads:
        if code[names + name :].split(b"\0", 1)[0] != b".nv.info":
            continue
        at = first
        while at < first + size:
            form, attribute, length = struct.unpack_from("<BBH", code, at)
            if form == 4 and attribute == 0x11:  # frame size of a function
                frames.append(struct.unpack_from("<I", code, at + 8)[0])
            at += 4 + (length if form == 4 else 0)
    return max(frames)

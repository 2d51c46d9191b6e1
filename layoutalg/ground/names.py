"""Names allowed in generated C++ text."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_WORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default
    delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile
    wchar_t while xor xor_eq
"""
_CPP_WORDS = frozenset(_WORDS.split())


def is_cpp_name(name: object) -> bool:
    """Return whether this is a valid name in C and C++: ASCII, at most 255 characters, no keyword.

    Example:
        >>> is_cpp_name("row_2"), is_cpp_name("for"), is_cpp_name("and"), is_cpp_name("2nd"), is_cpp_name("é")
        (True, False, False, False, False)
    """
    return isinstance(name, str) and _NAME.fullmatch(name) is not None and name not in _CPP_WORDS

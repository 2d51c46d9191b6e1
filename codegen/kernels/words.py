"""Words of memory around elements of 1 and 2 bytes that begin anywhere: text for kernels.

Main definitions: ``words_text``.
"""

from __future__ import annotations

_WORDS = r"""
// The word of memory around byte `at` of an array of `bytes` bytes; nothing behind its end is read.
__device__ __forceinline__ la_u32 la_word_around(const unsigned char* from, la_u64 at, la_u64 bytes)
{
    at &= ~3ull;
    if (at + 4 <= bytes) return *(const la_u32*)(from + at);
    la_u32 word = 0;
    for (la_u32 i = 0; at + i < bytes && i < 4; ++i) word |= (la_u32)from[at + i] << 8 * i;
    return word;
}

// Four bytes from byte `at` on, of the two words around them.
__device__ __forceinline__ la_u32 la_word_of(la_u32 low, la_u32 high, la_u64 at)
{
    return la_permute(low, high, 0x3210u + 0x1111u * ((la_u32)at & 3u));
}

// Writes bytes [first, end) of a word that begins at byte `at`.
__device__ __forceinline__ void la_part_to(unsigned char* into, la_u64 at, la_u32 word, la_u32 first, la_u32 end)
{
    for (la_u32 i = first; i < end; i += LA_ELEMENT)
        *(LA_ELEMENT_TYPE*)(into + at + i) = (LA_ELEMENT_TYPE)(word >> 8 * i);
}

// Writes the words of neighbouring lanes, `run` of them in a row, that begin at byte `at` of any alignment.
__device__ __forceinline__ void la_run_to(
    unsigned char* into, la_u64 at, la_u32 word, la_u32 run, bool whole, la_u32 end)
{
    const la_u32 shift = (la_u32)at & 3u, lane = threadIdx.x % LA_LANES;
    const la_u32 before = la_shuffle(word, (lane - 1u) & (LA_LANES - 1u));
    if (!whole) {
        la_part_to(into, at, word, 0, end);
    } else if (shift == 0) {
        *(la_u32*)(into + at) = word;
    } else {
        if (lane % run) *(la_u32*)(into + (at - shift)) = la_permute(before, word, 0x3210u + 0x1111u * (4u - shift));
        else la_part_to(into, at, word, 0, 4u - shift);
        if (lane % run == run - 1u) la_part_to(into, at, word, 4u - shift, 4);
    }
}
"""


def words_text(element_bytes: int) -> str:
    """Return the device functions for elements of so many bytes; ``LA_ELEMENT_TYPE`` is their type.

    Example:
        >>> words_text(2).splitlines()[:3]
        ['', '#undef LA_ELEMENT', '#undef LA_ELEMENT_TYPE']
    """
    kind = {1: "unsigned char", 2: "unsigned short", 4: "la_u32"}[element_bytes]
    again = "\n#undef LA_ELEMENT\n#undef LA_ELEMENT_TYPE\n"
    return f"{again}#define LA_ELEMENT {element_bytes}u\n#define LA_ELEMENT_TYPE {kind}\n{_WORDS}"

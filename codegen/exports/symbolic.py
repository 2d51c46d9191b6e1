"""Plans for all sizes and families of maps as text: a C++ header with the guard, PTX that patches the sizes in.

Notation: the header's functions take the names of the sizes in alphabetical order. In PTX the registers ``base``,
``dim1``, ``stride0``, ... hold the values that a comment beside each instruction states.
"""

from __future__ import annotations

from layoutalg.codegen.exports.ptx import ptx_text
from layoutalg.codegen.host import cpp_text
from layoutalg.codegen.plans import upheld
from layoutalg.ground.polynomial_text import polynomial
from layoutalg.proofs.ragged import Plan, RaggedFamily
from layoutalg.proofs.ragged_clip import ClipPlan, moved_base
from layoutalg.proofs.symbolic.guard import c_polynomial
from layoutalg.proofs.symbolic.plan import SymbolicPlan

_HEADER = """\
#pragma once

#include <cstring>

// {what}
// Holds where {guard}.
namespace {name} {{
inline constexpr int cases = {cases};  // the best first

// The first case that holds at these sizes, -1 if none does.
inline int choose({sizes}) {{
{choices}    return -1;
}}

// Writes the 128 bytes at these sizes, for an allocation at `base`; returns the case, -1 if none holds.
inline int encode(unsigned (&words)[32], unsigned long long base, {sizes}) {{
    static constexpr unsigned templates[cases][32] = {{
{templates}
    }};
    const int which = choose({names});
    if (which < 0) return which;
    std::memcpy(words, templates[which], sizeof words);
    base += (unsigned long long)words[1] << 32 | words[0];
    words[0] = (unsigned)base;
    words[1] = (unsigned)(base >> 32);
{patches}    return which;
}}
}}  // namespace {name}
"""


def symbolic_cpp(plan: SymbolicPlan, name: str) -> str:
    """Return the header that tests the guard and writes the map's bytes."""
    upheld(plan)
    sizes = ", ".join([f"long long {each}" for each in plan.names])
    choices, templates, patches = [], [], []
    for number, case in enumerate(plan.cases):
        raw = case.template
        words = [f"{int.from_bytes(raw[at : at + 4], 'little'):#x}" for at in range(0, 128, 4)]
        templates.append(f"        {{{', '.join(words)}}},")
        choices.append(f"    if ({case.guard.to_c()}) return {number};\n")
        for patch in case.patch:
            above, below = polynomial(patch.encoded).split()
            value = f"({c_polynomial(above)}) / ({c_polynomial(below)})"
            patches.append(f"    if (which == {number}) {{  // {patch.field}[{patch.index}] = {patch.value}")
            patches.append(f"        const unsigned long long value = (unsigned long long)({value});")
            shift = 0
            for word, low, width in patch.words:
                part = f"(unsigned)(value >> {shift}) & {(1 << width) - 1:#x}u"
                patches.append(f"        words[{word}] |= ({part}) << {low};")
                shift += width
            patches.append("    }")
    return _HEADER.format(
        what=f"{plan.problem.tensor}: tiles {list(plan.problem.pattern.tile)}", guard=plan.guard, name=name,
        cases=len(plan.cases), sizes=sizes, choices="".join(choices), templates="\n".join(templates),
        names=", ".join(plan.names), patches="".join([f"{line}\n" for line in patches]),
    )  # fmt: skip


def symbolic_ptx(plan: SymbolicPlan, name: str) -> str:
    """Return the template's bytes and the instructions that patch it, case by case."""
    upheld(plan)
    texts = []
    for number, case in enumerate(plan.cases):
        own = f"{name}_{number}" if len(plan.cases) > 1 else name
        fields = {"dims": ("dim", "global_dim", 32), "strides_bytes": ("stride", "global_stride", 64)}
        lines = ["tensormap.replace.tile.global_address.global.b1024.b64 [map], base;  // the allocation's address"]
        if case.tensor_map.base_address:
            lines[0] += f" + {case.tensor_map.base_address}"
        for patch in case.patch:
            register, field, width = fields[patch.field]
            call = f"tensormap.replace.tile.{field}.global.b1024.b{width} [map], {patch.index}"
            lines.append(f"{call}, {register}{patch.index};  // {patch.value}")
        texts += [
            f"// Holds where {case.guard}. PTX ISA 8.5 and later, for sm_90a: a copy of the template at `map`, one",
            "// thread patches it. Before a copy reads it: fence.proxy.tensormap::generic.release.gpu here,",
            "// ...acquire.gpu [map], 128 in the thread that copies.",
            f".visible .const .align 128 .b8 {own}[128] = {{{', '.join(map(str, case.template))}}};", *lines, "",
        ]  # fmt: skip
    return "\n".join(texts)


def family_text(family: RaggedFamily, form: str, name: str) -> str:
    """Return the maps of a family, NAME_0 with the tallest box first, and when each is used."""
    lines = [f"// {line}".rstrip() for line in str(upheld(family)).splitlines()]
    heights = ", ".join(map(str, family.heights))
    if form == "cpp":
        lines += [f"inline constexpr int {name}_rows[{len(family.heights)}] = {{{heights}}};  // of each map's box", ""]
    texts = [_member(plan, form, f"{name}_{number}") for number, plan in enumerate(family.plans)]
    once = [text.replace("#pragma once\n\n", "") for text in texts]
    return "\n".join((["#pragma once", ""] if form == "cpp" else []) + lines + once)


def _member(plan: Plan, form: str, name: str) -> str:
    if isinstance(plan, SymbolicPlan):
        return symbolic_cpp(plan, name) if form == "cpp" else symbolic_ptx(plan, name)
    write, arch = cpp_text if form == "cpp" else ptx_text, plan.problem.arch
    if not isinstance(plan, ClipPlan):
        return write(upheld(plan), name, arch)
    upheld(plan.dense)
    moved = f"{-moved_base(plan.form, plan.pitch)} bytes, modulo 2^64"
    note = f"// The map's address is that of the tensor, less {moved}.\n" * (plan.form == "write_only")
    return note + write(plan.tensor_map, name, arch)

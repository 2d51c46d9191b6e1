"""Options of the commands that make, check, run and write plans, pipelines and certificates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from layoutalg.cli import arguments as arg
from layoutalg.cli.arguments import Options, Sizes, argument, option
from layoutalg.ground import limits

Device: TypeAlias = Literal["auto", "cuda", "host", "simulator"]
PROBLEMS = "problem JSON, a list of problems, - for standard input, or layout notation"
TYPE = "with layout notation: element type (default: that of the text, or bf16)"


@dataclass(frozen=True)
class SynthTensormap(Options):
    """A TMA plan, from a problem document or from a shared-memory layout and a tensor.

    layoutalg synth tensormap problem.json -o plan.json
    layoutalg synth tensormap - --json < problems.json
    layoutalg synth tensormap "Sw<3,3,3> o 0 o (64,64):(64,1)" --tensor 4096,8192 --dtype bf16
    layoutalg synth tensormap "Sw<3,3,3> o 0 o (64,64):(64,1)" --tensor 4096,8192 --documented-only
    """

    file: str = argument(PROBLEMS)
    tensor: Sizes | None = option("--tensor", "with layout notation: extents of the tensor, outermost first")
    stride: Sizes | None = arg.stride()
    tile: Sizes | None = option("--tile --shape", "extents of the tile (default: those of the layout)")
    dtype: str | None = arg.dtype(TYPE)
    target: str = arg.target("with layout notation: architecture")
    store: bool = option("--store", "with layout notation: shared to global memory", False)
    documented_only: bool = arg.documented()
    output: str | None = arg.file("-o --output", "write the JSON answer")


@dataclass(frozen=True)
class SynthWgmma(Options):
    """The descriptors with which wgmma reads a tile, from a problem document or a layout.

    layoutalg synth wgmma "Sw<3,3,3> o 0 o (64,64):(64,1)" --operand A
    layoutalg synth wgmma operand.json -o operand-plan.json
    """

    file: str = argument(PROBLEMS)
    operand: Literal["A", "B"] | None = option("--operand", "with layout notation: (M,K) of A or (N,K) of B")
    dtype: str | None = arg.dtype(TYPE)
    output: str | None = arg.file("-o --output", "write the JSON answer")


@dataclass(frozen=True)
class Synth:
    """Find descriptors and prove them.

    layoutalg synth tensormap problem.json -o plan.json
    layoutalg synth tensormap "Sw<3,3,3> o 0 o (64,64):(64,1)" --tensor 4096,8192
    layoutalg synth wgmma "Sw<3,3,3> o 0 o (64,64):(64,1)" --operand A
    """


@dataclass(frozen=True)
class Check(Options):
    """Check certificates with the stand-alone checker, and replay the proofs of plans.

    layoutalg check certificate.json
    layoutalg check certificates/
    layoutalg synth tensormap problem.json --json | layoutalg check -
    layoutalg check plans.json --documented-only --json
    """

    file: str = argument(
        "a certificate, a plan (TensorMap or wgmma) or a list of plans as JSON; a folder for all .json files "
        "below it; or - for standard input"
    )
    documented_only: bool = arg.documented()


@dataclass(frozen=True)
class Verify(Options):
    """Decide for every trip count whether a pipeline can hang, race or lose bytes; show a run that goes wrong.

    layoutalg verify pipeline.json
    layoutalg verify pipeline.json --policy practice --json
    layoutalg verify kernel.ttgir
    """

    file: str = argument(
        "pipelines as JSON (schema layoutalg/pipeline/1), a Triton kernel (TTGIR), or - for standard input"
    )
    target: str = arg.target()
    policy: Literal["strict", "practice"] = option(
        "--policy",
        "practice: a copy may overwrite a slot after generic reads with no proxy fence, and stores may run when the "
        "block ends",
        "strict",
    )


@dataclass(frozen=True)
class Certify(Options):
    """Write a claim or its negation as a certificate for the stand-alone checker.

    layoutalg certify equality "(4,8):(8,1)" "((2,2),8):((8,16),1)" -o equality.json
    layoutalg certify composition "(4,8):(8,1)" "8:2" | layoutalg check -
    layoutalg certify inverse "(4,8):(8,1)" --side both
    layoutalg certify plan plan.json
    layoutalg certify banks sm_90a ld.shared.v4.b32 "(32,4):(144,16)"
    layoutalg certify pipeline pipeline.json
    """

    claim: Literal["equality", "composition", "inverse", "plan", "operand", "handoff", "banks", "pipeline"] = argument(
        "equality: two layouts; composition: outer, inner and optionally the result; inverse: a layout and "
        "optionally its inverse; plan, operand: a TensorMap or wgmma plan or problem; handoff: a TensorMap plan and "
        "the wgmma plan that reads its tile; banks: a target, an instruction and a layout of byte addresses; "
        "pipeline: a pipeline"
    )
    of: list[str] = argument("layouts as in explain; JSON; a target and an instruction")
    side: Literal["left", "right", "both"] = option("--side", "side of the inverse", "left")
    codomain: int | None = option("--codomain", "size of the domain of the inverse")
    output: str | None = arg.file("-o --output", "write the certificate")


@dataclass(frozen=True)
class Checker:
    """The path of the stand-alone certificate checker, one folder that needs only numpy.

    layoutalg checker
    layoutalg checker -o checker && python checker certificate.json
    """

    output: str | None = option("-o --output", "copy it to this new or empty folder, completely or not at all")
    json: bool = option("--json", "print its files in a JSON document that names its schema", False)


@dataclass(frozen=True)
class Validate(Options):
    """Run a plan and compare every byte.

    layoutalg validate plan.json
    layoutalg validate problem.json --device simulator --seed 7
    """

    file: str = argument("plan or problem JSON, a list of them, or - for standard input")
    device: Device = option("--device", None, "auto")
    seed: int = option("--seed", "seed of the random memory contents", 0, type=arg.seed)
    budget: float = arg.budget(limits.RUN_SECONDS)


@dataclass(frozen=True)
class Emit(Options, about="a document"):
    """Source text of a proved plan, or of a matrix product whose pipeline is proved.

    layoutalg emit host plan.json -o make_map.h
    layoutalg emit bytes problem.json --name weights_map
    layoutalg emit bytes plan.json --base-address 0x7f0000001000
    layoutalg emit raw plan.json -o map.bin
    layoutalg emit kernel plan.json --documented-only
    layoutalg emit gemm 4096 4096 4096 -o gemm.cu
    layoutalg emit gemm 8192 8192 8192 --dtype e4m3 --form rows=128,columns=256,leaving=128,cluster=2
    """

    what: Literal["host", "bytes", "raw", "kernel", "gemm", "cpp", "ptx", "mlir", "gluon", "cute_dsl"] = argument(
        "host: a C++ function that calls cuTensorMapEncodeTiled; bytes: a C array of the map, or of the wgmma "
        "descriptors; raw: the bytes themselves; kernel: CUDA that copies a tile; gemm: CUDA of D = A B^T; the others: "
        "the plan as source text for that system"
    )
    subject: list[str] = argument("plan or problem JSON, a dump of a map, a file with either, or -; for gemm: M N K")
    name: str | None = option("--name", "name of the function, array or kernel")
    target: str = arg.target("architecture, for dumps and gemm")
    output: str | None = arg.file("-o --output", "write")
    documented_only: bool = arg.documented()
    base_address: int | None = option(
        "--base-address",
        "bytes, raw: address of the tensor's allocation, decimal or 0x... (default 0)",
        type=arg.address,
        metavar="ADDRESS",
    )
    dtype: str | None = arg.dtype("gemm: type of A and B: bf16 (the default), f16, e4m3, e5m2")
    result: str | None = option("--result", "gemm: type of D: bf16 (the default), f16")
    form: tuple[tuple[str, int], ...] | None = option(
        "--form",
        "gemm: rows=128,columns=256 and any of consumers, leaving, cluster, behind, stages, together (default: the "
        "form that should be fastest)",
        type=arg.form,
    )
    major_a: Literal["K", "MN"] | None = option("--major-a", "gemm: MN if A is K x M row-major")
    major_b: Literal["K", "MN"] | None = option("--major-b", "gemm: MN if B is K x N row-major")


@dataclass(frozen=True)
class Schema(Options):
    """The JSON Schema of a document that layoutalg reads or writes.

    layoutalg schema
    layoutalg schema tensormap-problem
    layoutalg schema layoutalg/tensormap-plan/1
    """

    name: str | None = argument("name of the schema; without it, all names are listed")


@dataclass(frozen=True)
class Demo(Options):
    """Plan, prove, compile and validate a collection of tiles.

    layoutalg demo
    layoutalg demo --device simulator --json > rows.json
    layoutalg demo my-tiles.json
    """

    file: str | None = argument("tiles JSON (schema layoutalg/real-tiles/1); default: 113 tiles of well-known kernels")
    device: Device = option("--device", None, "auto")
    budget: float = arg.budget(limits.RUN_SECONDS)

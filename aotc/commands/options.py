"""The options that determine the result of a build, and their conversion to a request."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from aotc.cache.opening import CacheChoice
from aotc.chips import GPUS
from aotc.commands.option import option
from aotc.request import DEFAULT_CHIPS, DEFAULT_PTX, BuildRequest, MemoryMode, PrintIr
from aotc.request_words import make_request
from aotc.toolchain.tools import DECIDING_TOOLS

# Options of the command that are passed to `make_request` unchanged.
_SAME_NAME = (
    *("ptx", "target", "cpu", "optimization", "debug", "lineinfo", "pipeline", "memory"),
    *("block", "prefix", "runtime", "tuned", "save_temps", "warnings", "frontend"),
    *("frontend_options", "verify", "allow_tf32", "allow_3xtf32", "untested_kernels"),
    "allow_file_directives",
)


class Commas(click.ParamType[list[str]]):
    """A comma-separated list; the option may also be repeated. Shells complete `known` words."""

    name = "LIST"

    def __init__(self, known: Sequence[str] = ()) -> None:
        self._known = known

    def convert(self, value: Any, param: Any, ctx: Any) -> list[str]:
        words = value if isinstance(value, list) else value.split(",")
        if "" in words:
            self.fail(f"'{value}' has an empty name in it.", param, ctx)
        return words

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The completions of the last word, each preceded by the words before it."""
        before, comma, begun = incomplete.rpartition(",")
        return [
            CompletionItem(f"{before}{comma}{word}")
            for word in self._known
            if word.startswith(begun)
        ]


def flat(lists: Sequence[list[str]]) -> list[str]:
    return [word for words in lists for word in words]


def cache_options() -> list[Any]:
    """The options that select the cache of a build."""
    return [
        option("--no-cache", is_flag=True, help="Neither read nor write the cache."),
        option(
            "--cache",
            metavar="DIR",
            type=click.Path(path_type=Path),
            help="Directory of the build cache (also AOTC_CACHE, which may be 'off'). Default: "
            "~/.cache/aotc.",
        ),
        option(
            "--remote-cache",
            metavar="URL",
            help="Share cached results through this server, by the HTTP protocol of Bazel's remote "
            "caches (also AOTC_REMOTE_CACHE).",
        ),
    ]


def cache_choice(options: dict[str, Any]) -> CacheChoice:
    return CacheChoice(
        is_on=not options["no_cache"],
        folder=options["cache"],
        remote=options["remote_cache"],
        environment=os.environ,
    )


def build_options(command: Any) -> Any:
    """The options of `build` and `run`."""
    options = [
        *_deciding_options(),
        *_showing_options(),
        _warning_option(),
        *cache_options(),
        *_reporting_options(),
        _quiet_option(),
        *_tool_options(),
    ]
    for add in reversed(options):
        command = add(command)
    return command


def explore_options(command: Any) -> Any:
    """The options that determine what is built, without those that print it in other forms."""
    options = [*_deciding_options(), _warning_option(), _quiet_option(), *_tool_options()]
    for add in reversed(options):
        command = add(command)
    return command


def _deciding_options() -> list[Any]:
    """The options that determine the result of a build."""
    return [
        option(
            "--chip",
            "chips",
            multiple=True,
            type=Commas((*(f"sm_{capability}" for capability in GPUS), "native")),
            help="GPU architectures to compile for, such as sm_80,sm_90a. 'native' is this "
            f"machine's GPU. Default: {','.join(DEFAULT_CHIPS)}, and {DEFAULT_PTX} PTX for later "
            "GPUs.",
        ),
        option(
            "--ptx",
            help="Virtual architecture of the PTX to embed for GPUs without a cubin, such as "
            f"compute_80; or none. Default: {DEFAULT_PTX} with the default chips, none with "
            "--chip.",
        ),
        option(
            "--target",
            help="Target triple of the host, with the oldest glibc: x86_64-linux-gnu.2.28, "
            "aarch64-linux-gnu.2.28, ... Default: this machine's, glibc 2.28.",
        ),
        option(
            "--cpu",
            metavar="NAME",
            help="Oldest CPU to support, by LLVM's name: x86-64-v3, skylake-avx512, neoverse-n1, "
            "... Host code may use all its instructions. Default: the architecture's baseline.",
        ),
        option(
            "-O",
            "optimization",
            type=click.IntRange(0, 3),
            default=3,
            show_default=True,
            help="Optimization level of host and device code. -O1 builds quickly: for one chip "
            "(this machine's GPU), with one kernel per matmul.",
        ),
        option("-g", "debug", is_flag=True, help="Emit line information for host and device code."),
        option(
            "--lineinfo",
            is_flag=True,
            help="Emit line information of kernels for profilers. The code does not change.",
        ),
        option(
            "--entry",
            "entries",
            multiple=True,
            type=Commas(),
            help="Export these functions instead of those that have llvm.emit_c_interface.",
        ),
        option(
            "--frontend",
            metavar="NAME",
            help="Front end that reads the input, or mlir. Default: by the file extension. "
            "--version lists the front ends.",
        ),
        option(
            "--frontend-option",
            "frontend_options",
            multiple=True,
            metavar="NAME=VALUE",
            help="Pass an option to the front end.",
        ),
        option(
            "--pipeline",
            metavar="PASSES",
            help="Lower by this pass pipeline, 'builtin.module(...)' or @FILE, instead of aotc's. "
            "--explain prints aotc's.",
        ),
        option(
            "--memory",
            type=click.Choice([mode.value for mode in MemoryMode]),
            default=MemoryMode.AUTO.value,
            show_default=True,
            help="Placement of the buffers that kernels use: chosen by their uses on the host "
            "(auto), as in the input (explicit), or managed memory.",
        ),
        option(
            "--block",
            metavar="XxYxZ",
            help="Threads per block for parallel loops: 256, 32x8. Default: chosen by each loop's "
            "shape.",
        ),
        option(
            "--no-cpu-kernels",
            is_flag=True,
            help="Do not compile kernels for the CPU device. The artifact is smaller, is built "
            "faster, and runs on GPUs only.",
        ),
        option(
            "--verify",
            is_flag=True,
            help="Check operations at run time, on the host and in kernels. An index that is out "
            "of bounds, sizes that do not match and wrong casts make the call fail.",
        ),
        option(
            "--allow-tf32",
            is_flag=True,
            help="Allow matmuls of f32 to round their operands to tf32 (10 fraction bits), for "
            "tensor cores. The relative error is 3e-4 instead of 1e-7.",
        ),
        option(
            "--allow-3xtf32",
            "allow_3xtf32",
            is_flag=True,
            help="Allow matmuls of f32 to compute three products of tf32, which is faster than f32 "
            "and nearly as exact.",
        ),
        option(
            "--untested-kernels",
            is_flag=True,
            help="Use kernels that were never run on a GPU: matmuls by tcgen05 on sm_100.",
        ),
        option(
            "--allow-file-directives",
            is_flag=True,
            help="Allow the module's host code to name files that the assembler (.incbin, "
            ".include) and the linker (llvm.dependent_libraries) read.",
        ),
        option(
            "--prefix",
            default="",
            help="Prefix every exported symbol, and the library's name, with TEXT: one_ gives "
            "one_matmul, one_last_error, libone_matmul.so.",
        ),
        option(
            "--runtime",
            type=click.Choice(["static", "shared"]),
            default="static",
            show_default=True,
            help="Link the runtime into a library (static), or put libmlir_cuda_runtime.so beside "
            "it (shared).",
        ),
        option(
            "--tuned",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Use the matmul kernels that 'aotc tune' measured as fastest, from FILE. Default: "
            "the fastest ones by a cost model of the chip.",
        ),
    ]


def _showing_options() -> list[Any]:
    """The options that print the module or the decisions during the build."""
    return [
        option(
            "--save-temps",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Write the artifacts of every stage into DIR, numbered.",
        ),
        option(
            "--print-ir-before",
            multiple=True,
            type=Commas(),
            metavar="PASS",
            help="Print the module to standard error before each run of PASS, as mlir-opt does: "
            "canonicalize, aotc-place-memory, all.",
        ),
        option(
            "--print-ir-after",
            multiple=True,
            type=Commas(),
            metavar="PASS",
            help="Print the module to standard error after each run of PASS.",
        ),
        option(
            "--print-ir-dir",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Write the modules of --print-ir-* into numbered files in DIR instead.",
        ),
        option(
            "--explain",
            is_flag=True,
            help="Print aotc's decisions and their reasons: the level of the input, the pipeline "
            "(as --pipeline takes it), the mapping of loops, the placement of memory.",
        ),
    ]


def _warning_option() -> Any:
    return option(
        "-W",
        "warnings",
        multiple=True,
        metavar="NAME",
        help="Control warnings, as in a C compiler: -Wno-NAME, -Werror=NAME, -Werror. "
        "docs/warnings.md lists them.",
    )


def _reporting_options() -> list[Any]:
    """The options that report on the build."""
    return [
        option(
            "--explain-cache",
            is_flag=True,
            help="Print which results the cache had, and why it did not have the others.",
        ),
        option("--time-report", is_flag=True, help="Print the time of each stage."),
        option(
            "--trace",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Write a trace of stages and tools for chrome://tracing or ui.perfetto.dev.",
        ),
        option("-v", "--verbose", is_flag=True, help="Print each command before it runs."),
    ]


def _quiet_option() -> Any:
    return option("-q", "--quiet", is_flag=True, help="Print only errors.")


def _tool_options() -> list[Any]:
    return [
        option(
            f"--{name}",
            f"tool_{name.replace('-', '_')}",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help=f"Use this {name} (also AOTC_{name.upper().replace('-', '_')}).",
        )
        for name in DECIDING_TOOLS
    ]


def many_options(command: Any) -> Any:
    """The options of `build` for several inputs and for build systems."""
    options = [
        option(
            "-j",
            "--jobs",
            type=click.IntRange(min=1),
            metavar="N",
            help="Number of inputs to build at once. Default: the number of cores.",
        ),
        option(
            "--fail-fast",
            is_flag=True,
            help="Stop at the first input that fails, instead of building the others.",
        ),
        option(
            "-MD",
            "make_depfile",
            is_flag=True,
            help="Write a depfile for Make and Ninja beside the output: NAME.d.",
        ),
        option(
            "-MF",
            "depfile",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="With -MD: the path of the depfile.",
        ),
        option(
            "-MT",
            "depfile_targets",
            multiple=True,
            metavar="TARGET",
            help="The target in the depfile, instead of the outputs. -MQ quotes it for Make.",
        ),
        option("-MQ", "depfile_quoted_targets", multiple=True, hidden=True),
    ]
    for add in reversed(options):
        command = add(command)
    return command


def given_options(context: click.Context) -> frozenset[str]:
    """The options that the command line contains, by their parameters' names."""
    source = click.core.ParameterSource.COMMANDLINE
    return frozenset(
        name for name in context.params if context.get_parameter_source(name) is source
    )


def named_tools(options: Mapping[str, Any]) -> dict[str, Path]:
    """The tools that options name, to use instead of the packages'."""
    return {
        name: path
        for name in DECIDING_TOOLS
        if (path := options[f"tool_{name.replace('-', '_')}"]) is not None
    }


def request_words(options: Mapping[str, Any]) -> dict[str, Any]:
    """The command's options as keyword arguments of `make_request`."""
    return {
        "emit": flat(options.get("emit", ())),
        "out": options.get("out"),
        "weights": options.get("weights"),
        "add_weights": options.get("add_weights", False),
        "replaceable": options.get("replaceable", ()),
        "chips": flat(options["chips"]),
        "entries": flat(options["entries"]),
        "cpu_kernels": not options["no_cpu_kernels"],
        "print_ir": PrintIr(
            tuple(flat(options.get("print_ir_before", ()))),
            tuple(flat(options.get("print_ir_after", ()))),
            options.get("print_ir_dir"),
        ),
        **{name: options[name] for name in _SAME_NAME if name in options},
    }


def request_of(source: Path, options: Mapping[str, Any]) -> BuildRequest:
    return make_request(source, **request_words(options))

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
        option("--no-cache", is_flag=True, help="Build all of it, and keep nothing."),
        option(
            "--cache",
            metavar="DIR",
            type=click.Path(path_type=Path),
            help="Keep what is built there (also AOTC_CACHE, which may be 'off'). Default: "
            "~/.cache/aotc.",
        ),
        option(
            "--remote-cache",
            metavar="URL",
            help="Share what is built through this server, which speaks the HTTP protocol of "
            "Bazel's remote caches (also AOTC_REMOTE_CACHE).",
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
            help="GPUs to compile for, as sm_80,sm_90a; 'native' asks the driver. "
            f"Default: {','.join(DEFAULT_CHIPS)}, and PTX {DEFAULT_PTX} for later ones.",
        ),
        option(
            "--ptx",
            help=f"PTX to embed for GPUs without a cubin: compute_80, or none. Default: "
            f"{DEFAULT_PTX} with the default chips, none with --chip.",
        ),
        option(
            "--target",
            help="Host to compile for: x86_64-linux-gnu.2.28, aarch64-linux-gnu.2.28, ... "
            "Default: this machine, glibc 2.28.",
        ),
        option(
            "--cpu",
            metavar="NAME",
            help="Oldest processor to run on, by LLVM's name: x86-64-v3, skylake-avx512, "
            "neoverse-n1, ... Host code may use what it has. Default: the oldest of the "
            "architecture.",
        ),
        option(
            "-O",
            "optimization",
            type=click.IntRange(0, 3),
            default=3,
            show_default=True,
            help="Optimization of host and device code. -O1 is a quick build: for one chip (this "
            "machine's GPU), and with one kernel for each matmul.",
        ),
        option("-g", "debug", is_flag=True, help="Keep line information, host and device."),
        option(
            "--lineinfo",
            is_flag=True,
            help="Keep line information of kernels for profilers; the code is the same.",
        ),
        option(
            "--entry",
            "entries",
            multiple=True,
            type=Commas(),
            help="Export these functions, rather than those that carry llvm.emit_c_interface.",
        ),
        option(
            "--frontend",
            metavar="NAME",
            help="Read the input by this front end, or as mlir. Default: by the file's ending; "
            "--version lists them.",
        ),
        option(
            "--frontend-option",
            "frontend_options",
            multiple=True,
            metavar="NAME=VALUE",
            help="An option of the front end.",
        ),
        option(
            "--pipeline",
            metavar="PASSES",
            help="Your own lowering, 'builtin.module(...)' or @FILE that has it, in place of "
            "aotc's: --explain prints aotc's to start from.",
        ),
        option(
            "--memory",
            type=click.Choice([mode.value for mode in MemoryMode]),
            default=MemoryMode.AUTO.value,
            show_default=True,
            help="Where buffers that kernels use are: placed by what the host does with them, left "
            "where the input has them (explicit), or in managed memory.",
        ),
        option(
            "--block",
            metavar="XxYxZ",
            help="Threads of the blocks that parallel loops are mapped to: 256, 32x8. Default: "
            "chosen by each loop's shape.",
        ),
        option(
            "--no-cpu-kernels",
            is_flag=True,
            help="Leave out the kernels' CPU forms: smaller and built faster, for GPUs alone.",
        ),
        option(
            "--verify",
            is_flag=True,
            help="Verify operations at run time, on the host and in kernels: an index out of "
            "bounds, sizes that do not fit and wrong casts are errors of the call.",
        ),
        option(
            "--allow-tf32",
            is_flag=True,
            help="Matmuls of f32 may round what they multiply to tf32 (10 bits of fraction), for "
            "tensor cores: errors of 3e-4 in place of 1e-7.",
        ),
        option(
            "--allow-3xtf32",
            "allow_3xtf32",
            is_flag=True,
            help="Matmuls of f32 may be made of three products of tf32: nearly as exact as f32, "
            "and faster.",
        ),
        option(
            "--untested-kernels",
            is_flag=True,
            help="Take kernels that no GPU has run yet, where there are some: matmuls by tcgen05 "
            "on sm_100.",
        ),
        option(
            "--allow-file-directives",
            is_flag=True,
            help="The module's host code may have files of this machine read when it is assembled "
            "(.incbin, .include) and linked (llvm.dependent_libraries).",
        ),
        option(
            "--prefix",
            default="",
            help="Put this in front of all that a library exports, and of its name: one_ makes "
            "one_matmul, one_last_error, libone_matmul.so.",
        ),
        option(
            "--runtime",
            type=click.Choice(["static", "shared"]),
            default="static",
            show_default=True,
            help="A library's runtime: a part of it, or libmlir_cuda_runtime.so beside it.",
        ),
        option(
            "--tuned",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Take the kernels for matmuls that 'aotc tune' found fastest and "
            "noted there. Default: those that a model of the chip expects to be.",
        ),
    ]


def _showing_options() -> list[Any]:
    """The options that print the module or the decisions during the build."""
    return [
        option(
            "--save-temps",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Write every stage's artifacts into DIR, numbered.",
        ),
        option(
            "--print-ir-before",
            multiple=True,
            type=Commas(),
            metavar="PASS",
            help="Print the module to standard error before each run of this pass, as mlir-opt "
            "does: canonicalize, aotc-place-memory, all.",
        ),
        option(
            "--print-ir-after",
            multiple=True,
            type=Commas(),
            metavar="PASS",
            help="Print the module after each run of this pass.",
        ),
        option(
            "--print-ir-dir",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Write what these print into files in DIR, numbered.",
        ),
        option(
            "--explain",
            is_flag=True,
            help="Print what aotc decided, and why: the level of the input, the pipeline (as "
            "--pipeline takes it), how loops are mapped and memory is placed.",
        ),
    ]


def _warning_option() -> Any:
    return option(
        "-W",
        "warnings",
        multiple=True,
        metavar="NAME",
        help="Warnings by name, as a C compiler has them: -Wno-NAME, -Werror=NAME, -Werror; "
        "docs/warnings.md lists them.",
    )


def _reporting_options() -> list[Any]:
    """The options that report on the build."""
    return [
        option(
            "--explain-cache",
            is_flag=True,
            help="Print what was found in the cache, and why the rest was not.",
        ),
        option("--time-report", is_flag=True, help="Print how long each stage took."),
        option(
            "--trace",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Write when each stage and tool ran, for chrome://tracing or ui.perfetto.dev.",
        ),
        option("-v", "--verbose", is_flag=True, help="Print each command as it runs."),
    ]


def _quiet_option() -> Any:
    return option("-q", "--quiet", is_flag=True, help="Print errors alone.")


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
            help="Build so many inputs at a time. Default: as many as there are cores.",
        ),
        option(
            "--fail-fast",
            is_flag=True,
            help="Stop at the first input that fails. Default: build the others.",
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
            help="The depfile's place, with -MD.",
        ),
        option(
            "-MT",
            "depfile_targets",
            multiple=True,
            metavar="TARGET",
            help="The depfile's target, in place of the outputs; -MQ quotes it for Make.",
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

"""The protocol of a pass and its state: `Pass`, `Upstream`, `OwnPass`, `Lowering`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, ClassVar, Protocol, Self

from msgspec import Struct
from msgspec.structs import fields

from aotc.analysis.gpu_modules import gpu_modules
from aotc.errors import AotcError, InputError, InternalError
from aotc.input.source import Source
from aotc.lower.outlining.library import reattach_kernels
from aotc.ops import symbol_of
from aotc.remarks import Remarks
from aotc.request import BuildRequest
from aotc.rewrites.run import UNWATCHED, PassWatch, run_passes

# Option name → the function that parses the option's text in a pipeline. It raises InputError.
Parsers = Mapping[str, Callable[[str], Any]]


class Lowering(Struct):
    """The state of one lowering: the source, whose module the passes change, and the passes'
    findings.

    `by_hand`: names of the gpu.modules of the input. `managed_globals`: globals that are kernel
    arguments. `library`: a module with the kernels of the library while they are not in the module;
    otherwise None. `doing`, `blame`: as in `run_passes`.
    """

    source: Source
    request: BuildRequest
    remarks: Remarks
    watch: PassWatch = UNWATCHED
    by_hand: frozenset[str] = frozenset()
    managed_globals: frozenset[str] = frozenset()
    library: Any = None
    doing: str = ""
    blame: type[AotcError] = InternalError

    def __post_init__(self) -> None:
        self.by_hand = frozenset(symbol_of(op) for op in gpu_modules(self.module))

    @property
    def module(self) -> Any:
        return self.source.module

    def run(
        self,
        passes: Iterable[Pass],
        *,
        doing: str = "lowering the module",
        blame: type[AotcError] = InternalError,
    ) -> None:
        """Runs the passes in order."""
        self.doing, self.blame = doing, blame
        for is_own, group in itertools.groupby(passes, key=lambda one: one.is_own):
            if is_own:
                for one in group:
                    self.watch.before(one.name, self.module.operation)
                    one.run(self)
                    self.watch.after(one.name, self.module.operation)
            else:
                # Consecutive upstream passes share one pass manager.
                self.run_upstream(*(one.text for one in group))
        self.restore_library_kernels()

    def restore_library_kernels(self) -> None:
        """Moves the kernels of the library back into the module, in place of their declarations."""
        if self.library is not None:
            reattach_kernels(self.module, self.library)
            self.library = None

    def run_upstream(self, *texts: str) -> None:
        """Runs upstream passes in one pass manager."""
        run_passes(
            self.module,
            texts,
            name=self.source.name,
            lines=self.source.lines,
            blame=self.blame,
            doing=self.doing,
            watch=self.watch,
        )


class Pass(Protocol):
    """A pass of a plan: an upstream one (`Upstream`) or one of aotc (`OwnPass`)."""

    @property
    def name(self) -> str:
        """The name as mlir-opt has it, or `aotc-...`. For a nested pipeline, its whole text."""

    @property
    def text(self) -> str:
        """The pass in the textual pipeline syntax, with its options."""

    @property
    def reason(self) -> str:
        """Why the plan has the pass, for `--explain`. Empty if the reason of the previous pass
        covers it."""

    @property
    def is_own(self) -> bool:
        """Whether the pass is an `OwnPass`."""

    def run(self, lowering: Lowering) -> None:
        """Changes the module in place. Raises InputError if the input is not supported."""


class Upstream(Struct, frozen=True):
    """An upstream pass, or a nested pipeline: `func.func(lower-affine,canonicalize)`."""

    text: str
    reason: str = ""
    is_own: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return self.text.partition("{")[0]

    def run(self, lowering: Lowering) -> None:
        lowering.run_upstream(self.text)


class OwnPass(Struct, frozen=True):
    """A pass of aotc. Each subclass has its own module, and its place in a plan
    (`aotc.lower.plan.pipeline`).

    The fields of a subclass are its options. Each has a default, and a parser in `parsers`. `needs`
    names passes whose result this pass uses; a plan that has them runs them before it.
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    parsers: ClassVar[Parsers] = {}
    is_own: ClassVar[bool] = True

    reason: str = ""

    def run(self, lowering: Lowering) -> None:
        raise NotImplementedError

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """The pass with these options. Raises InputError for an unknown option."""
        for option in options:
            if option not in cls.parsers:
                known = ", ".join(cls.parsers) or "none"
                raise InputError(f"Unknown option '{option}' of {cls.name}. Known: {known}.")
        return cls(**{option: cls.parsers[option](word) for option, word in options.items()})

    @property
    def text(self) -> str:
        words = [
            f"{field.name}={_option_text(getattr(self, field.name))}"
            for field in fields(self)
            if field.name in self.parsers and getattr(self, field.name) != field.default
        ]
        return f"{self.name}{{{' '.join(words)}}}" if words else self.name


def _option_text(value: Any) -> str:
    """The text of an option's value, in the form that `parsers` accept."""
    if isinstance(value, Enum):
        return str(value.value)
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)

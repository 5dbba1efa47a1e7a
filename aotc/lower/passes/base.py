"""What a pass is, and what it works on: `Pass`, `Upstream`, `OwnPass`, `Lowering`."""

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
from aotc.lower.outlining.library import put_back
from aotc.ops import symbol_of
from aotc.remarks import Remarks
from aotc.request import BuildRequest
from aotc.rewrites.run import UNWATCHED, PassWatch, run_passes

# Of a pass's options, by name: what reads the word that a pipeline has. Raises InputError.
Parsers = Mapping[str, Callable[[str], Any]]


class Lowering(Struct):
    """One lowering on its way: the source whose module changes, and what its passes have found.

    `by_hand` are the gpu.modules of the input; `managed_globals` the globals that kernels are
    given. `library` has the kernels of the library while they are not in the module. `doing` and
    `blame` are as in `run_passes`.
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
                # One pass manager for what is MLIR's in a row.
                self.run_upstream(*(one.text for one in group))
        self.put_library_back()

    def put_library_back(self) -> None:
        """Ends the time in which the module has signatures in place of the library's kernels."""
        if self.library is not None:
            put_back(self.module, self.library)
            self.library = None

    def run_upstream(self, *texts: str) -> None:
        """Runs passes of MLIR in one pass manager."""
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
    """A pass of a plan: MLIR's (`Upstream`) or aotc's own (`OwnPass`)."""

    @property
    def name(self) -> str:
        """The name that mlir-opt has for it, or `aotc-...`; the whole text of a nest."""

    @property
    def text(self) -> str:
        """The pass as a pipeline spells it, with its options."""

    @property
    def reason(self) -> str:
        """Why the plan has it, for `--explain`; empty if the pass before it says so."""

    @property
    def is_own(self) -> bool:
        """Whether it is an `OwnPass`."""

    def run(self, lowering: Lowering) -> None:
        """Changes the module in place. Raises InputError for what it refuses in the input."""


class Upstream(Struct, frozen=True):
    """A pass of MLIR, or a nest of passes: `func.func(lower-affine,canonicalize)`."""

    text: str
    reason: str = ""
    is_own: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return self.text.partition("{")[0]

    def run(self, lowering: Lowering) -> None:
        lowering.run_upstream(self.text)


class OwnPass(Struct, frozen=True):
    """A pass of aotc: a subclass each, in a module of its own, with a place in a plan
    (`aotc.lower.plan.pipeline`).

    The fields of a subclass are its options; each has a default, and a parser in `parsers`.
    `needs` names the passes whose result it uses: where a plan has them, they come first.
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
        """The pass with these options. Raises InputError for one that it does not take."""
        for option in options:
            if option not in cls.parsers:
                known = ", ".join(cls.parsers) or "none"
                raise InputError(f"Unknown option '{option}' of {cls.name}. Known: {known}.")
        return cls(**{option: cls.parsers[option](word) for option, word in options.items()})

    @property
    def text(self) -> str:
        words = [
            f"{field.name}={_spelled(getattr(self, field.name))}"
            for field in fields(self)
            if field.name in self.parsers and getattr(self, field.name) != field.default
        ]
        return f"{self.name}{{{' '.join(words)}}}" if words else self.name


def _spelled(value: Any) -> str:
    """An option's value as `parsers` read it."""
    if isinstance(value, Enum):
        return str(value.value)
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)

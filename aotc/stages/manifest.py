"""The stage that describes what the module offers, and which tools made it."""

from __future__ import annotations

from collections import ChainMap

from aotc import mlir
from aotc.artifacts import MANIFEST
from aotc.building.build import Build
from aotc.building.results import Described, KernelCode, Outlined, TakenWeights, functions_of
from aotc.emit.names import own_functions
from aotc.input.state import describe_state
from aotc.manifest import Kernel, Manifest
from aotc.version import __version__


def describe(
    build: Build,
    outlined: Outlined,
    weights: TakenWeights | None,
    code: tuple[KernelCode, ...],
) -> Described:
    r = build.request
    built_for = ChainMap(*(dict(one.built_for) for one in code))
    resources = ChainMap(*(dict(one.resources) for one in code))
    manifest = Manifest(
        name=r.name,
        library=r.library,
        functions=own_functions(
            r.name,
            r.prefix,
            has_state=bool(outlined.state),
            weights=None if weights is None else weights.file.description,
        ),
        aotc=__version__,
        target=r.target.triple,
        entries=outlined.entries,
        kernels=tuple(
            Kernel(
                kernel.module,
                kernel.kernel,
                built_for.get(kernel.module, ()),
                kernel.why_not,
                resources.get((kernel.module, kernel.kernel), ()),
            )
            for kernel in functions_of(code).kernels
        ),
        optimization=r.optimization,
        tools=_tools_used(build, code),
        weights=None if weights is None else weights.file.description,
        state=describe_state(outlined.state, outlined.entries),
    )
    text = manifest.to_json()
    return Described(manifest, text, files=build.texts(MANIFEST, text))


def _tools_used(build: Build, code: tuple[KernelCode, ...]) -> dict[str, str]:
    """The tools that made the artifacts, with their versions, but without paths."""
    t = build.toolchain
    bindings = mlir.bindings()
    of_targets = [t.tool(name) for one in code for name in one.tools]
    return {
        "mlir": f"{bindings.package} {bindings.version} (LLVM {bindings.llvm_version})",
        **{tool.name: str(tool.version) for tool in (t.clang, t.zig, *of_targets)},
    }

"""The stage that says what the module offers, and what made it."""

from __future__ import annotations

from aotc import __version__, mlir
from aotc.artifacts import MANIFEST, ArtifactFile
from aotc.emit.names import own_functions
from aotc.manifest import Kernel, Manifest
from aotc.stages.build import Build
from aotc.toolchain.tools import Tool


def describe(build: Build) -> list[ArtifactFile]:
    r = build.request
    assert build.cpu is not None
    build.manifest = Manifest(
        name=r.name,
        library=r.library,
        functions=own_functions(r.name, r.prefix),
        aotc=__version__,
        target=r.target.triple,
        entries=build.entries,
        kernels=tuple(
            Kernel(
                kernel.module,
                kernel.kernel,
                build.built_for(kernel.module),
                kernel.why_not,
                tuple(build.resources.get((kernel.module, kernel.kernel), ())),
            )
            for kernel in build.cpu.kernels
        ),
        optimization=r.optimization,
        tools=_tools_used(build),
        weights=build.weights.description if build.weights is not None else None,
    )
    return build.texts(MANIFEST, build.manifest.to_json())


def _tools_used(build: Build) -> dict[str, str]:
    """What made the artifacts, by name and version; no paths."""
    t = build.toolchain
    bindings = mlir.bindings()
    device_tools: tuple[Tool, ...] = ()
    if build.device_modules:
        device_tools = (t.ptxas, t.fatbinary, t.libdevice)
    elif any(len(binary.images) > 1 for binary in build.given):
        device_tools = (t.fatbinary,)
    return {
        "mlir": f"{bindings.package} {bindings.version} (LLVM {bindings.llvm_version})",
        **{tool.name: str(tool.version) for tool in (t.clang, t.zig, *device_tools)},
    }

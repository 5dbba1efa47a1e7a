"""The stage that says what the module offers, and what made it."""

from __future__ import annotations

from aotc import __version__, mlir
from aotc.artifacts import MANIFEST
from aotc.emit.names import own_functions
from aotc.manifest import Kernel, Manifest
from aotc.stages.build import Build
from aotc.stages.results import CpuCode, Cubins, Described, DeviceModules, Outlined, TakenWeights
from aotc.toolchain.tools import Tool


def describe(
    build: Build,
    outlined: Outlined,
    device: DeviceModules,
    cubins: Cubins,
    cpu: CpuCode,
    weights: TakenWeights | None,
) -> Described:
    r = build.request
    manifest = Manifest(
        name=r.name,
        library=r.library,
        functions=own_functions(r.name, r.prefix),
        aotc=__version__,
        target=r.target.triple,
        entries=outlined.entries,
        kernels=tuple(
            Kernel(
                kernel.module,
                kernel.kernel,
                cubins.built_for.get(kernel.module, ()),
                kernel.why_not,
                cubins.resources.get((kernel.module, kernel.kernel), ()),
            )
            for kernel in cpu.kernels.kernels
        ),
        optimization=r.optimization,
        tools=_tools_used(build, outlined, device),
        weights=None if weights is None else weights.file.description,
    )
    text = manifest.to_json()
    return Described(manifest, text, files=build.texts(MANIFEST, text))


def _tools_used(build: Build, outlined: Outlined, device: DeviceModules) -> dict[str, str]:
    """What made the artifacts, by name and version; no paths."""
    t = build.toolchain
    bindings = mlir.bindings()
    device_tools: tuple[Tool, ...] = ()
    if device.modules:
        device_tools = (t.ptxas, t.fatbinary, t.libdevice)
    elif any(len(binary.images) > 1 for binary in outlined.given):
        device_tools = (t.fatbinary,)
    return {
        "mlir": f"{bindings.package} {bindings.version} (LLVM {bindings.llvm_version})",
        **{tool.name: str(tool.version) for tool in (t.clang, t.zig, *device_tools)},
    }

"""Checks everything that a build needs, and tries a build."""

from __future__ import annotations

import functools
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping

from aotc.cache_folder import cache_root
from aotc.doctor.abilities import check_libc, find_abilities
from aotc.errors import AotcError, ToolError
from aotc.health import ABILITIES, Check, Report, Status
from aotc.processes.record import temporary_folder
from aotc.target import TARGETS
from aotc.toolchain import Toolchain
from aotc.toolchain.tools import OPTIONAL_TOOLS, TOOL_NAMES, package_of, purpose_of
from aotc.version import __version__

# A kernel that writes, and a host function that launches it.
_TRIAL = """
func.func @trial(%x: memref<64xf32>) attributes {llvm.emit_c_interface} {
  affine.parallel (%i) = (0) to (64) {
    %c = arith.constant 1.0 : f32
    affine.store %c, %x[%i] : memref<64xf32>
  }
  return
}
"""


def examine(environment: Mapping[str, str]) -> Report:
    """Runs all checks. They run tools, and write only to the cache and to temporary folders."""
    tools = (_attempt("mlir", _check_bindings), *_check_tools(environment))
    cache = _attempt("cache", lambda: _check_cache(environment))
    sections = {
        "tools": tools,
        "cache": (cache,),
        "front ends": _check_frontends(),
        "host": (_attempt("libc", check_libc),),
        "devices": tuple(check for target in TARGETS for check in target.check_devices()),
    }
    if not Report("", sections).failures:
        sections["trial"] = (_attempt("build", lambda: _check_build(environment)),)
    sections[ABILITIES] = find_abilities(sections)
    where = f"{platform.system()} {platform.machine()}"
    title = f"aotc {__version__}, Python {platform.python_version()} ({sys.executable}), {where}"
    return Report(title, sections)


def _attempt(name: str, check: Callable[[], Check], about: str = "") -> Check:
    """The check, or its failure: an exception must not prevent the other checks."""
    try:
        return check()
    except AotcError as error:
        said = error.stderr.strip() if isinstance(error, ToolError) else ""
        found = f"{error.message} {said}".strip()
        return Check(name, Status.FAILED, found, about=about, mend=error.hint or "")
    except Exception as error:
        return Check(name, Status.FAILED, f"{type(error).__name__}: {error}", about=about)


def _check_bindings() -> Check:
    from aotc import mlir

    bindings = mlir.bindings()
    found = f"{bindings.package} {bindings.version}, LLVM {bindings.llvm_version}"
    return Check("mlir", Status.OK, found, bindings.path, "package", "reads and lowers modules")


def _check_tools(environment: Mapping[str, str]) -> tuple[Check, ...]:
    toolchain = Toolchain(environment, asks=True)
    # Optional tools come last.
    names = sorted(TOOL_NAMES, key=lambda name: name in OPTIONAL_TOOLS)
    return tuple(
        _attempt(name, functools.partial(_check_tool, toolchain, name), purpose_of(name))
        for name in names
    )


def _check_tool(toolchain: Toolchain, name: str) -> Check:
    tool, about = toolchain.look_for(name), purpose_of(name)
    if tool is None:
        mend = f"pip install {package_of(name)}"
        return Check(name, Status.ABSENT, "not installed", about=about, mend=mend)
    return Check(name, Status.OK, str(tool.version), str(tool.path), tool.source, about)


def _check_cache(environment: Mapping[str, str]) -> Check:
    about = "keeps the runtime for each host"
    return Check("cache", Status.OK, "can be written", str(cache_root(environment)), about=about)


def _check_frontends() -> tuple[Check, ...]:
    try:
        from aotc.frontends import frontends
    except AotcError:
        return ()  # the bindings are missing, which was reported
    checks = []
    for one in frontends():
        if one.frontend is None:
            checks.append(
                Check(one.name, Status.ABSENT, one.failure or "", source=one.distribution)
            )
            continue
        endings, missing = " ".join(one.frontend.endings), one.frontend.missing()
        status = Status.ABSENT if missing else Status.OK
        checks.append(
            Check(
                one.name, status, endings, "", one.distribution, one.frontend.about, missing or ""
            )
        )
    return tuple(checks)


def _check_build(environment: Mapping[str, str]) -> Check:
    """Builds a program of one kernel, for all chips of the default set, and runs it on the CPU."""
    from aotc.api import build

    with temporary_folder() as folder:
        made = build(_TRIAL, name="trial", out=folder / "trial", cache=False)
        done = subprocess.run(
            [made.path, "--x", "0", "--print", "x", "--device", "cpu"],
            env=dict(environment),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    if done.returncode != 0 or "x = [1 1 " not in done.stdout:
        said = (done.stderr or done.stdout).strip()
        return Check("build", Status.FAILED, f"the program ended with {done.returncode}: {said}")
    seconds = sum(made.times.values())
    return Check("build", Status.OK, f"a program of one kernel, in {seconds:.1f} s; it runs")

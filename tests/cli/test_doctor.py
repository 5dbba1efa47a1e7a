"""`aotc doctor`: everything is listed, and the exit code says whether a build works."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.command import Outcome

from aotc import mlir
from aotc.frontends import frontends
from aotc.health import Check, Status
from aotc.request import HostTarget
from aotc.toolchain.tools import OPTIONAL_TOOLS, TOOL_NAMES

Aotc = Callable[..., Outcome]

SECTIONS = ["tools", "cache", "front ends", "host", "devices", "trial", "what works"]


def _sections(done: Outcome) -> dict[str, dict[str, dict[str, str]]]:
    """The checks by section and name."""
    found = json.loads(done.stdout)
    assert found["works"] == (done.code == 0)
    return {
        section: {check["name"]: check for check in checks}
        for section, checks in found["sections"].items()
    }


def test_what_is_here(aotc: Aotc) -> None:
    """Each tool with its version and place, each front end or what brings it, and a real build."""
    sections = _sections(aotc("doctor", "--json").succeeded())
    assert list(sections) == SECTIONS
    tools = sections["tools"]
    assert set(tools) == {"mlir", *TOOL_NAMES}
    assert mlir.bindings().llvm_version in tools["mlir"]["found"]
    for name in set(TOOL_NAMES) - set(OPTIONAL_TOOLS):
        assert (tools[name]["status"], tools[name]["source"]) == ("ok", "package")
        assert Path(tools[name]["path"]).exists()
    for one in frontends():
        assert one.frontend is not None
        check, missing = sections["front ends"][one.name], one.frontend.missing()
        assert check["status"] == ("absent" if missing else "ok")
        assert check["mend"] == (missing or "")
    assert sections["devices"]["cpu"]["status"] == "ok"
    assert sections["trial"]["build"]["status"] == "ok"
    assert sections["what works"]["build"]["status"] == "ok"
    for one in frontends():
        ability = sections["what works"][f"input: {one.name}"]
        assert ability["mend"] == sections["front ends"][one.name]["mend"]


def test_text(aotc: Aotc) -> None:
    lines = aotc("doctor").succeeded().stdout.splitlines()
    assert [line for line in lines if line and line[0] != " "][1:-1] == [*SECTIONS]
    assert lines[-1] == "Builds work here."
    for one in frontends():
        if one.frontend is not None and (missing := one.frontend.missing()):
            assert any(line.strip() == missing for line in lines)


def test_a_tool_that_is_not_there(aotc: Aotc, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named; the others are looked at all the same, and no build is tried."""
    monkeypatch.setenv("AOTC_PTXAS", "/nowhere/ptxas")
    done = aotc("doctor")
    assert done.code == 3
    assert "failed  ptxas " in done.stdout
    assert "AOTC_PTXAS names '/nowhere/ptxas' as ptxas, which does not exist." in done.stdout
    assert done.stdout.endswith("Builds do not work here: ptxas.\n")
    sections = _sections(aotc("doctor", "--json"))
    assert sections["tools"]["fatbinary"]["status"] == "ok"
    assert "trial" not in sections
    build = sections["what works"]["build"]
    assert (build["status"], build["found"]) == ("failed", "no: ptxas")


def test_a_package_that_is_not_installed(aotc: Aotc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aotc.toolchain.tools._package_file", lambda spec: None)
    sections = _sections(aotc("doctor", "--json"))
    for name, package in (("zig", "ziglang"), ("ptxas", "nvidia-cuda-nvcc")):
        assert sections["tools"][name]["status"] == "failed"
        assert sections["tools"][name]["mend"].startswith(f"pip install {package}, or ")
    assert sections["tools"]["nvdisasm"]["status"] == "absent"


def test_a_tool_that_fails(aotc: Aotc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says its version, and no more: only a build tells."""
    script = tmp_path / "ptxas"
    script.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "release 13.5, V13.5.37" && exit 0\n'
        "echo out of order >&2\nexit 7\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("AOTC_PTXAS", str(script))
    done = aotc("doctor", "--json")
    assert done.code == 3
    sections = _sections(done)
    ptxas = sections["tools"]["ptxas"]
    assert (ptxas["status"], ptxas["source"]) == ("ok", "AOTC_PTXAS")
    found = sections["trial"]["build"]["found"]
    assert re.match(r"ptxas could not make the cubin for sm_\d+: exit code 7", found)
    assert found.endswith("out of order")


def _driver(**other: Any) -> SimpleNamespace:
    """As cuda.bindings.driver, with one GPU."""
    functions = {
        "CUresult": SimpleNamespace(CUDA_SUCCESS=SimpleNamespace(name="CUDA_SUCCESS")),
        "cuDriverGetVersion": lambda: (0, 13000),
        "cuDeviceGetCount": lambda: (0, 1),
        "cuDeviceGetName": lambda length, device: (0, b"NVIDIA H200\0\0"),
        "cuDeviceTotalMem": lambda device: (0, 150_000 * 2**20),
        "CUdevice_attribute": SimpleNamespace(
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=9,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=0,
        ),
        "cuDeviceGetAttribute": lambda attribute, device: (0, attribute),
    }
    made = SimpleNamespace(**functions)
    made.cuInit = lambda flags: (made.CUresult.CUDA_SUCCESS,)
    vars(made).update(other)
    return made


def _no_driver(flags: int) -> Any:
    raise RuntimeError("Failed to dlopen libcuda.so.1")


NO_DEVICE = SimpleNamespace(name="CUDA_ERROR_NO_DEVICE")


@pytest.mark.parametrize(
    ("driver", "found"),
    [
        (_driver(), {"driver": "CUDA 13.0", "cuda:0": "NVIDIA H200, sm_90, 150000 MiB"}),
        (_driver(cuInit=_no_driver), {"driver": "not installed, or too old"}),
        (
            _driver(cuInit=lambda flags: (NO_DEVICE,)),
            {"driver": "cuInit says CUDA_ERROR_NO_DEVICE"},
        ),
        (
            _driver(cuDeviceGetAttribute=lambda attribute, device: (0, {9: 7, 0: 5}[attribute])),
            {
                "driver": "CUDA 13.0",
                "cuda:0": "NVIDIA H200, sm_75, 150000 MiB: older than the default chips",
            },
        ),
    ],
)
def test_devices(driver: Any, found: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    from aotc.target import TARGETS

    bindings = SimpleNamespace(driver=driver)
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver)
    checks = {check.name: check.found for target in TARGETS for check in target.check_devices()}
    assert checks.pop("cpu").split()[1] in ("core", "cores")
    assert checks == found


@pytest.mark.parametrize(
    ("libc", "status", "mend"),
    [
        ("glibc 2.36", "ok", ""),
        ("glibc 2.28", "ok", ""),
        ("glibc 2.17", "absent", "--target {machine}-linux-gnu.2.17"),
        (None, "absent", "--target {machine}-linux-musl"),
    ],
)
def test_the_c_library(
    libc: str | None, status: str, mend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether what is built by default runs here, and the target of what does."""
    from aotc.doctor.abilities import check_libc

    monkeypatch.setattr("os.confstr", lambda name: libc)
    check = check_libc()
    machine = HostTarget.native().architecture
    assert (check.status.value, check.mend) == (status, mend.format(machine=machine))


@pytest.mark.parametrize(
    ("devices", "ability"),
    [
        ((Check("driver", Status.ABSENT, "too old", mend="get one"),), ("absent", "get one")),
        ((Check("driver", Status.OK, "CUDA 13.0"),), ("absent", "")),
        ((Check("driver", Status.OK, "CUDA 13.0"), Check("cuda:0", Status.OK, "H200")), ("ok", "")),
    ],
)
def test_whether_kernels_run_on_a_gpu(devices: tuple[Check, ...], ability: tuple[str, str]) -> None:
    from aotc.doctor.abilities import find_abilities

    sections = {"host": (Check("libc", Status.OK, "glibc 2.36"),), "devices": devices}
    found = [check for check in find_abilities(sections) if check.name.startswith("run: cuda")]
    assert [(check.status.value, check.mend) for check in found] == [ability]

"""The manifest: what it says of a build, and what ptxas says of kernels."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.command import REPOSITORY, SAMPLES, Outcome
from jsonschema import Draft202012Validator

from aotc import __version__
from aotc.manifest import SCHEMA_VERSION, Resources
from aotc.targets.cuda.compile import parse_resources

SCHEMA = Draft202012Validator(
    json.loads((REPOSITORY / "docs" / "manifest.schema.json").read_text())
)

PTXAS_SAYS = """\
ptxas info    : 11 bytes gmem, 8 bytes cmem[4]
ptxas info    : Compiling entry function 'spills' for 'sm_80'
ptxas info    : Function properties for spills
    1024 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 4224 bytes smem, 408 bytes cmem[0]
ptxas info    : Compile time = 5.123 ms
ptxas info    : Compiling entry function 'plain' for 'sm_80'
ptxas info    : Function properties for plain
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers, 352 bytes cmem[0]
"""


def test_what_ptxas_says() -> None:
    assert parse_resources(PTXAS_SAYS, "sm_80") == [
        ("spills", Resources("sm_80", 255, 4224, 1024, 12, 16, 1)),
        ("plain", Resources("sm_80", 8, 0, 0, 0, 0, 0)),
    ]
    assert parse_resources("", "sm_80") == []


@pytest.fixture
def manifest(aotc: Callable[..., Outcome]) -> Callable[..., dict[str, Any]]:
    def build(source: Path, *options: str) -> dict[str, Any]:
        done = aotc("build", source, "--emit", "manifest", *options, "-o", "-").succeeded()
        content: dict[str, Any] = json.loads(done.stdout)
        SCHEMA.validate(content)
        return content

    return build


def test_a_whole_manifest(manifest: Callable[..., dict[str, Any]]) -> None:
    made = manifest(SAMPLES / "stencil.mlir", "--chip", "sm_80,sm_90", "--ptx", "compute_80", "-O2")
    assert made["manifest_version"] == SCHEMA_VERSION
    assert (made["name"], made["aotc"], made["optimization"]) == ("stencil", __version__, 2)
    (entry,) = made["entries"]
    assert entry["name"] == "heat"
    assert [a["name"] for a in entry["arguments"]] == ["old", "new", "rate"]
    assert [(a["is_read"], a["is_written"]) for a in entry["arguments"]] == [
        (True, False),
        (False, True),
        (True, False),
    ]
    assert [a["shape"] for a in entry["arguments"]] == [[500, 730], [500, 730], None]
    *kernels, of_cpu = made["kernels"]
    assert [kernel["name"] for kernel in kernels] == ["heat_kernel", "heat_kernel_0"]
    # The CPU device has another kernel for the second loop.
    assert (of_cpu["module"], of_cpu["built_for"]) == ("stencil_kernels_cpu", [])
    for kernel in kernels:
        assert kernel["module"] == "stencil_kernels"
        assert kernel["built_for"] == ["sm_80", "sm_90", "compute_80"]
        assert [r["chip"] for r in kernel["resources"]] == ["sm_80", "sm_90"]
        assert all(8 <= r["registers"] <= 255 for r in kernel["resources"])
    assert set(made["tools"]) == {"mlir", "clang", "zig", "ptxas", "fatbinary", "libdevice"}
    assert all("/" not in version for version in made["tools"].values())


def test_what_a_library_is_called(manifest: Callable[..., dict[str, Any]]) -> None:
    made = manifest(SAMPLES / "normalize.mlir", "--chip", "sm_80", "--prefix", "one_")
    assert (made["name"], made["library"]) == ("normalize", "one_normalize")
    assert made["functions"]["last_error"] == "one_last_error"
    (entry,) = made["entries"]
    assert entry["functions"] == {
        "call": "one_normalize",
        "async": "one_normalize_async",
        "memref": "one_normalize_memref",
        "c_interface": "_mlir_ciface_one_normalize",
    }
    assert entry["why_not_async"] is None


def test_an_entry_that_must_wait_has_no_asynchronous_form(
    manifest: Callable[..., dict[str, Any]],
) -> None:
    (entry,) = manifest(SAMPLES / "dot.mlir", "--chip", "sm_80")["entries"]
    assert "async" not in entry["functions"]
    assert entry["why_not_async"].startswith("its host code reads or writes memory")


def test_the_schema_refuses_what_it_does_not_know(
    manifest: Callable[..., dict[str, Any]],
) -> None:
    made = manifest(SAMPLES / "dot.mlir", "--chip", "sm_80")
    made["entries"][0]["arguments"][0]["colour"] = "red"
    assert not SCHEMA.is_valid(made)


def test_shared_memory_and_barriers(manifest: Callable[..., dict[str, Any]]) -> None:
    """256 floats in workgroup memory, and a barrier."""
    (kernel,) = manifest(SAMPLES / "block_sums.mlir", "--chip", "sm_80")["kernels"]
    (resources,) = kernel["resources"]
    assert resources["shared_bytes"] == 1024
    assert resources["barriers"] == 1


def test_a_stack_frame(
    manifest: Callable[..., dict[str, Any]], mlir_file: Callable[..., Path]
) -> None:
    path = mlir_file(
        """
func.func @f(%a: memref<64xf32>, %n: index) attributes {llvm.emit_c_interface} {
  affine.parallel (%i) = (0) to (64) {
    %t = memref.alloca() : memref<100xf32>
    %v = affine.load %a[%i] : memref<64xf32>
    memref.store %v, %t[%i] : memref<100xf32>
    %w = memref.load %t[%n] : memref<100xf32>
    affine.store %w, %a[%i] : memref<64xf32>
  }
  return
}
"""
    )
    (kernel,) = manifest(path, "--chip", "sm_80")["kernels"]
    assert kernel["resources"][0]["stack_bytes"] >= 400


def test_an_entry_without_kernels(
    manifest: Callable[..., dict[str, Any]], mlir_file: Callable[..., Path]
) -> None:
    """Nothing of the device's tools was used."""
    path = mlir_file("func.func @f() attributes {llvm.emit_c_interface} { return }")
    made = manifest(path)
    assert made["kernels"] == []
    assert set(made["tools"]) == {"mlir", "clang", "zig"}


def test_modules_are_built_for_what_each_can_do(
    manifest: Callable[..., dict[str, Any]], mlir_file: Callable[..., Path]
) -> None:
    """One that only sm_90a has code for says so; another is there for all."""
    path = mlir_file(
        """
module attributes {gpu.container_module} {
  gpu.module @special {
    gpu.func @fence() kernel { nvvm.wgmma.fence.aligned
      gpu.return }
  }
  gpu.module @plain {
    gpu.func @nothing() kernel { gpu.return }
  }
  func.func @f() attributes {llvm.emit_c_interface} { return }
}
"""
    )
    built_for = {k["module"]: k["built_for"] for k in manifest(path, "-q")["kernels"]}
    assert built_for["special"] == ["sm_90a"]
    assert built_for["plain"] == ["sm_80", "sm_90", "sm_100", "sm_120", "compute_80"]

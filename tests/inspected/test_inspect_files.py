"""`aotc inspect` of what aotc builds, each field beside another witness of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.command import REPOSITORY, Outcome
from helpers.elf import Elf, archive_members
from helpers.zig import ZIG_CACHE
from inspected.support import KERNEL, Built
from jsonschema import Draft202012Validator

from aotc.emit.header import generate_header
from aotc.manifest import read_manifest
from aotc.request import HostTarget
from aotc.toolchain import Runner, Toolchain, tools

SCHEMA = Draft202012Validator(json.loads((REPOSITORY / "docs" / "inspect.schema.json").read_text()))
HOSTS = ("executable", "shared", "static", "object")
C_FUNCTIONS = {"call", "async", "memref", "c_interface"}


@pytest.fixture
def inspected(aotc: Callable[..., Outcome]) -> Callable[[Path], dict[str, Any]]:
    """The JSON of `aotc inspect FILE`, which must be as its schema says."""

    def call(file: Path) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(aotc("inspect", file, "--json").succeeded().stdout)
        SCHEMA.validate(report)
        return report

    return call


@pytest.mark.parametrize("host", HOSTS)
def test_module_is_the_manifests(
    inspected: Callable[[Path], dict[str, Any]], built: Built, host: str
) -> None:
    """Whatever the build made has its manifest inside."""
    manifest = json.loads(built.manifest.read_text())
    (module,) = inspected(getattr(built, host))["modules"]
    for key in ("name", "aotc", "target", "optimization", "tools"):
        assert module[key] == manifest[key]
    assert [entry["name"] for entry in module["entries"]] == ["scale"]
    (kernel,) = module["kernels"]
    assert kernel == {
        "module": "small_kernels",
        "name": KERNEL,
        "built_for": ["sm_80", "sm_90", "compute_80"],
        "has_cpu_form": True,
        "why_no_cpu_form": None,
    }


@pytest.mark.parametrize(
    ("host", "exported"),
    [
        ("executable", set()),
        ("shared", C_FUNCTIONS),
        ("static", C_FUNCTIONS),
        ("object", {"c_interface"}),
    ],
)
def test_functions_are_those_that_the_file_has(
    inspected: Callable[[Path], dict[str, Any]], built: Built, host: str, exported: set[str]
) -> None:
    (module,) = inspected(getattr(built, host))["modules"]
    (entry,) = module["entries"]
    assert entry["signature"] == "scale(x: memref<64xf32>, a: f32)"
    found = {function["does"] for function in entry["functions"] if function["is_exported"]}
    assert found == exported
    _, header = generate_header(read_manifest(built.manifest))
    prototypes = [f["prototype"] for f in entry["functions"] if f["prototype"] is not None]
    assert prototypes[0] == "int32_t scale(float *x_, float a_);"
    assert all(f"\n{prototype}\n" in header for prototype in prototypes)


@pytest.mark.parametrize("host", ["executable", "shared"])
def test_host_is_what_another_reader_finds(
    inspected: Callable[[Path], dict[str, Any]], built: Built, host: str
) -> None:
    file = getattr(built, host)
    found = inspected(file)["host"]
    elf = Elf(file)
    assert found["architecture"] == elf.machine
    assert found["needed"] == elf.needed
    assert found["soname"] == elf.soname
    versions = {
        tuple(map(int, version.removeprefix("GLIBC_").split(".")))
        for names in elf.versions_needed.values()
        for version in names
    }
    assert tuple(map(int, found["glibc"].split("."))) == max(versions)
    note = elf.section(".note.gnu.build-id")
    assert note is not None
    assert found["build_id"] == note[-20:].hex()


def test_archive_has_its_members(inspected: Callable[[Path], dict[str, Any]], built: Built) -> None:
    report = inspected(built.static)
    assert report["format"] == "static library"
    assert report["host"]["members"] == list(archive_members(built.static.read_bytes()))


@pytest.mark.parametrize("host", [*HOSTS, "fatbin"])
def test_images_are_those_of_the_build(
    inspected: Callable[[Path], dict[str, Any]], built: Built, host: str
) -> None:
    images = inspected(getattr(built, host))["images"]
    assert [(image["kind"], image["chip"]) for image in images] == [
        ("cubin", "sm_80"),
        ("cubin", "sm_90"),
        ("ptx", "compute_80"),
    ]
    manifest = json.loads(built.manifest.read_text())
    for image, told in zip(images[:2], manifest["kernels"][0]["resources"], strict=True):
        (kernel,) = image["kernels"]
        assert kernel["name"] == KERNEL
        for field in ("registers", "shared_bytes", "stack_bytes", "barriers"):
            assert kernel[field] == told[field], field
        # Cubins do not say what was spilled: it is the manifest that does.
        has_manifest = host != "fatbin"
        assert kernel["spill_stores"] == (told["spill_stores"] if has_manifest else None)
        version = re.search(r"[\d.]+", manifest["tools"]["ptxas"])
        assert version is not None
        assert image["made_by"] == f"ptxas {version[0]}"
    text = built.ptx.read_text()
    assert images[2]["bytes"] == pytest.approx(len(text), rel=0.3)  # fatbinary drops comments
    assert images[2]["ptx_version"] == re.findall(r"\.version (\S+)", text)[0]


def test_executable_says_the_same_of_itself(
    inspected: Callable[[Path], dict[str, Any]], built: Built
) -> None:
    said = subprocess.run(
        [built.executable, "--describe", "--json"], check=True, capture_output=True
    ).stdout
    own = json.loads(said)
    (module,) = inspected(built.executable)["modules"]
    assert module["name"] == own["program"]
    assert module["aotc"] == own["aotc_version"]
    assert [e["name"] for e in module["entries"]] == [e["name"] for e in own["entries"]]
    assert [(k["name"], k["has_cpu_form"]) for k in module["kernels"]] == [
        (k["name"], k["has_cpu_form"]) for k in own["kernels"]
    ]


def test_two_libraries_in_one_program(
    aotc: Callable[..., Outcome],
    inspected: Callable[[Path], dict[str, Any]],
    built: Built,
    tmp_path: Path,
) -> None:
    """The linker puts the notes one behind the other, and --gc-sections and -s leave them."""
    source = built.folder.parent / "small.mlir"
    options = (
        "--emit",
        "static",
        "--prefix",
        "two_",
        "--chip",
        "sm_80",
        "-q",
        "-o",
        f"{tmp_path}/",
    )
    aotc("build", source, *options).succeeded()
    main = tmp_path / "main.c"
    main.write_text(
        "int scale(float *, float);\nint two_scale(float *, float);\n"
        "int main(void) { float x[64] = {0}; return scale(x, 1) + two_scale(x, 2); }\n"
    )
    toolchain = Toolchain(os.environ)
    Runner(os.environ).run(
        [
            *toolchain.zig_cc.command,
            *("-target", HostTarget.native().triple, "-s", "-Wl,--gc-sections"),
            *map(str, (main, built.static, tmp_path / "lib" / "libtwo_small.a")),
            *("-lm", "-lpthread", "-ldl", "-o", str(tmp_path / "both")),
        ],
        making="a program of two libraries",
        env=ZIG_CACHE,
    )
    report = inspected(tmp_path / "both")
    functions = [module["entries"][0]["functions"][0]["symbol"] for module in report["modules"]]
    assert sorted(functions) == ["scale", "two_scale"]
    assert [image["chip"] for image in report["images"]].count("sm_80") == 2


def test_note_names_no_folder(built: Built) -> None:
    """Promise 8: no path gets into an artifact."""
    note = Elf(built.executable).section(".note.aotc")
    assert note is not None
    assert str(built.folder).encode() not in note
    assert b"/" not in note


def test_text(aotc: Callable[..., Outcome], built: Built) -> None:
    lines = aotc("inspect", built.shared).succeeded().stdout.splitlines()
    assert lines[0].startswith(f"libsmall.so: shared library for {Elf(built.shared).machine}, ")
    text = "\n".join(lines)
    for wanted in (
        "entry scale(x: memref<64xf32>, a: f32)",
        "    int32_t scale_async(float *x_, float a_, void *aotc_stream);",
        "kernel scale_kernel for sm_80, sm_90, PTX compute_80, and the CPU",
        "3 images of device code, made by ptxas ",
    ):
        assert wanted in text
    rows = [line for line in lines if KERNEL in line and "entry" not in line][1:]
    assert len(rows) == 3
    assert re.search(r"sm_80 cubin, \d+ bytes +scale_kernel +\d+ +0 +0 +0 +64 +\d+$", rows[0])


def test_kernels_without_a_cpu_form_say_why(
    aotc: Callable[..., Outcome], built: Built, tmp_path: Path
) -> None:
    source = built.folder.parent / "small.mlir"
    place = tmp_path / "small.o"
    options = ("--emit", "obj", "--no-cpu-kernels", "--chip", "sm_80", "-q", "-o", place)
    aotc("build", source, *options).succeeded()
    said = aotc("inspect", place).succeeded().stdout
    assert f"kernel {KERNEL} for sm_80, not the CPU: " in said


def test_ptx(aotc: Callable[..., Outcome], built: Built) -> None:
    said = aotc("inspect", built.executable, "--ptx").succeeded().stdout
    assert said.startswith("// small: PTX ")
    # fatbinary leaves comments and blanks out.
    comments_and_blanks = re.compile(r"//.*\n|\s+")
    made = comments_and_blanks.sub("", built.ptx.read_text())
    assert comments_and_blanks.sub("", said) == made
    assert aotc("inspect", built.executable, "--ptx", KERNEL).stdout == said
    assert aotc("inspect", built.executable, "--ptx", "compute_80").stdout == said
    failed = aotc("inspect", built.executable, "--ptx", "gone")
    assert failed.code == 2
    assert failed.stderr == (
        "aotc: error: No PTX in small is for a chip or has a kernel 'gone'. There is: "
        "PTX compute_80; scale_kernel.\n"
    )
    failed = aotc("inspect", built.cubin(), "--ptx")
    assert (failed.code, failed.stderr) == (
        2,
        "aotc: error: There is no PTX in small_kernels.sm_80.cubin.\n",
    )


def test_sass(aotc: Callable[..., Outcome], built: Built, tmp_path: Path) -> None:
    """nvdisasm is given each cubin as it was built, and its words are printed."""
    nvdisasm = tmp_path / "nvdisasm"
    nvdisasm.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = --version ]; then echo "release 13.5, V13.5.37"; exit; fi\n'
        f'for last; do :; done; cp "$last" {tmp_path}/given; echo "its code"\n'
    )
    nvdisasm.chmod(0o755)
    said = aotc("inspect", built.shared, "--sass", "sm_90", "--nvdisasm", nvdisasm).succeeded()
    assert said.stdout == "// libsmall.so: sm_90\nits code\n\n"
    # A fat binary fills its images up to 8 bytes.
    given = (tmp_path / "given").read_bytes()
    assert given.startswith(built.cubin("sm_90").read_bytes())
    both = aotc("inspect", built.fatbin, "--sass", "--nvdisasm", nvdisasm).stdout
    assert both.count("its code") == 2


def test_sass_without_nvdisasm(
    aotc: Callable[..., Outcome], built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "_package_file", lambda spec: None)
    failed = aotc("inspect", built.executable, "--sass")
    assert failed.code == 3
    assert "hint: pip install nvidia-cuda-nvdisasm, or name another with" in failed.stderr


def test_occupancy(aotc: Callable[..., Outcome], built: Built) -> None:
    said = aotc("inspect", built.executable, "--occupancy", "sm_86").succeeded().stdout
    # 64 threads are 2 warps: 16 blocks of the 48 that it could hold, and no more blocks there are.
    assert said.splitlines()[2].split() == (["sm_80", KERNEL, "64", "16", "32/48", "67%", "blocks"])
    answer = aotc("inspect", built.executable, "--occupancy", "sm_90", "--block", "1024", "--json")
    found = json.loads(answer.succeeded().stdout)
    assert found["chip"] == "sm_90"
    assert found["kernels"][0]["image"] == "sm_90"
    assert found["kernels"][0]["warps"] == 64
    failed = aotc("inspect", built.executable, "--occupancy", "sm_120")
    assert failed.code == 2
    assert failed.stderr == (
        "aotc: error: No cubin in small runs on sm_120: occupancy is counted from a cubin's "
        "registers. There is: sm_80, sm_90, PTX compute_80.\n"
    )


@pytest.mark.parametrize(
    "options",
    [("--ptx", "--sass"), ("--block", "32"), ("--ptx", "--json"), ("--occupancy", "sm_9")],
)
def test_options_that_cannot_be(
    aotc: Callable[..., Outcome], built: Built, options: tuple[str, ...]
) -> None:
    assert aotc("inspect", built.fatbin, *options).code == 2

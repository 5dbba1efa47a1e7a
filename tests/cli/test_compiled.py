"""gpu.binary and the LLVM dialect in the input: what aotc takes as it is, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome
from helpers.elf import Elf

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

PTX = r".version 8.0\0A.target sm_80\0A.visible .entry k() { ret; }"
FATBIN = r"P\EDU\BA"
ELF, AMD_ELF = (
    r"\7FELF\02\01\01" + 9 * r"\00" + r"\02\00" + machine + r"\00k" for machine in (r"\BE", r"\E0")
)
MODULE = """module attributes {{gpu.container_module}} {{
  gpu.binary @device{handler} [{objects}]
  func.func @f() attributes {{llvm.emit_c_interface}} {{
    %c1 = arith.constant 1 : index
    gpu.launch_func @device::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }}
}}
"""


def binary(*objects: str, handler: str = "") -> str:
    target = '#nvvm.target<chip = "sm_80">'
    texts = [f"#gpu.object<{target}, {text}>" for text in objects]
    return MODULE.format(objects=", ".join(texts), handler=f" <{handler}>" if handler else "")


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (
            binary(r'offload = "BC\C0\DE"'),
            "2:3",
            "gpu.binary @device holds LLVM bitcode: aotc takes cubins, fat binaries and PTX there. "
            "(Give the gpu.module instead, and aotc compiles it.)",
        ),
        (
            binary('bin = "hello"'),
            "2:3",
            "gpu.binary @device holds what is no image: aotc takes cubins, fat binaries and PTX "
            "there. (Give the gpu.module instead, and aotc compiles it.)",
        ),
        (
            binary(f'bin = "{AMD_ELF}"'),
            "2:3",
            "gpu.binary @device holds what is no image: aotc takes cubins, fat binaries and PTX "
            "there. (Give the gpu.module instead, and aotc compiles it.)",
        ),
        (
            binary(f'assembly = "{PTX.replace(" k()", " other()")}"'),
            "5:5",
            "gpu.launch_func: no kernel 'k' in the image of gpu.binary @device.",
        ),
        (
            binary(f'bin = "{ELF}"', f'fatbin = "{FATBIN}"'),
            "2:3",
            "gpu.binary @device: 2 objects to take, some of them fat binaries: aotc puts cubins "
            "and PTX together, or takes one object. (#gpu.select_object<N : i64> chooses one.)",
        ),
        (
            binary(f'bin = "{ELF}"', handler="#gpu.select_object<1 : i64>"),
            "2:3",
            "gpu.binary @device: #gpu.select_object chooses object 1, and there is 1, from 0 on.",
        ),
    ],
    ids=[
        "bitcode",
        "no-image",
        "another-gpus-image",
        "no-kernel",
        "fatbin-among-others",
        "no-such-object",
    ],
)
def test_a_binary_that_is_refused(
    text: str, place: str, message: str, aotc: Aotc, mlir_file: MlirFile, tmp_path: Path
) -> None:
    path = mlir_file(text)
    done = aotc("build", path, "-o", tmp_path / "program")
    assert done == Outcome(2, "", f"{path}:{place}: error: {message}\n")
    assert not (tmp_path / "program").exists()


@pytest.mark.parametrize(
    ("objects", "handler", "built_for"),
    [
        ([f'bin = "{ELF}"'], "", "sm_80"),
        ([f'assembly = "{PTX}"'], "", "PTX compute_80"),
        ([f'fatbin = "{FATBIN}"'], "", "sm_80"),
        (
            [f'bin = "{ELF}"', f'assembly = "{PTX}"'],
            "#gpu.select_object<1 : i64>",
            "PTX compute_80",
        ),
    ],
    ids=["cubin", "ptx", "fatbin", "chosen"],
)
def test_an_image_travels_as_it_is(
    objects: list[str], handler: str, built_for: str, aotc: Aotc, mlir_file: MlirFile
) -> None:
    """Its bytes are in the host's IR; the kernel is listed, for what the image is, without a form
    for the CPU."""
    path = mlir_file(binary(*objects, handler=handler))
    text = aotc("build", path, "--emit", "host-ll", "-o", "-").succeeded().stdout
    image = next(line for line in text.splitlines() if line.startswith("@aotc_image_device"))
    chosen = objects[-1].split('"')[1]
    assert f'c"{chosen}"' in image
    assert f'c"{built_for}\\00"' in text
    assert "its module is a gpu.binary: it was compiled before aotc saw it" in text


LOWERED = """module attributes {gpu.container_module} {
  gpu.module @device {
    llvm.func @k(%x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} { llvm.return }
  }
  llvm.func @f(%x: !llvm.ptr, %n: i64) attributes {llvm.emit_c_interface} {
    %one = llvm.mlir.constant(1 : i64) : i64
    gpu.launch_func @device::@k blocks in (%one, %one, %one) threads in (%one, %one, %one) : i64
        args(%x : !llvm.ptr)
    llvm.call @inside() : () -> ()
    llvm.return
  }
  llvm.func @_mlir_ciface_f(%x: !llvm.ptr) attributes {llvm.emit_c_interface} {
    %n = llvm.mlir.constant(3 : i64) : i64
    llvm.call @f(%x, %n) : (!llvm.ptr, i64) -> ()
    llvm.return
  }
  llvm.func @inside() attributes {no_inline} { llvm.return }
}
"""


def test_lowered_entries_are_exported_as_they_are(
    aotc: Aotc, mlir_file: MlirFile, tmp_path: Path
) -> None:
    """An object has both functions that upstream makes of an entry, and no other one."""
    path = mlir_file(LOWERED)
    out = tmp_path / "f.o"
    aotc("build", path, "--chip", "sm_80", "--emit", "obj", "-o", out).succeeded()
    exported = {symbol.name for symbol in Elf(out).symbols if symbol.is_global}
    assert exported == {"f", "_mlir_ciface_f"}


@pytest.mark.parametrize("kind", ["exe", "shared", "static", "header", "manifest", "package"])
def test_what_tells_the_types_of_lowered_entries(
    kind: str, aotc: Aotc, mlir_file: MlirFile, tmp_path: Path
) -> None:
    path = mlir_file(LOWERED)
    assert aotc("build", path, "--emit", kind, "-o", f"{tmp_path}/out/") == Outcome(
        2,
        "",
        f"{path}:5:3: error: Entry 'f' is an llvm.func: its argument types are already lowered, "
        f"and --emit {kind} tells them. Give aotc the module before convert-func-to-llvm; or take "
        "it as it is with --emit obj.\n",
    )


@pytest.mark.parametrize("kind", ["ptx", "cubin", "fatbin", "device-ll", "device-mlir", "mlir"])
def test_kernels_alone_need_no_entry(
    kind: str, aotc: Aotc, mlir_file: MlirFile, tmp_path: Path
) -> None:
    path = mlir_file("gpu.module @m {\n  gpu.func @k() kernel {\n    gpu.return\n  }\n}\n")
    options = ("--chip", "sm_80", "--emit", kind)
    aotc("build", path, *options, "-o", f"{tmp_path}/out/").succeeded()
    assert len(list((tmp_path / "out").iterdir())) == 1
    assert aotc("build", path, "--emit", "obj", "-o", f"{tmp_path}/o/") == Outcome(
        2, "", f"aotc: error: Nothing to export: {path} has no function.\n"
    )

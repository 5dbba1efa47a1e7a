"""What the cache finds of a build, and what it does not; the files are always the same."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from build_cache.support import Cached, found, in_its_own, missed, module
from helpers.command import SAMPLES, aotc_command, process_environment

import aotc
from aotc.artifacts import named_kinds
from aotc.cache import actions, builds
from aotc.cache.identity import Identities
from aotc.cache.results import Made


def device_of(steps: dict[str, str]) -> set[str]:
    return {step for step in steps if step.endswith((".device.ll", ".ptx", ".cubin", ".fatbin"))}


def test_a_second_build_is_found(cached: Cached) -> None:
    first = cached.build(module())
    assert missed(first) == set(first)
    assert set(first) >= {"build", "module", "input.cpu0.o", "input.host.o", "input.exe"}
    assert len(device_of(first)) == 8
    assert all(why == "missed (never built)" for why in first.values())
    made = cached.out.read_bytes()
    cached.out.unlink()
    assert cached.build() == {"build": "found"}
    assert cached.out.read_bytes() == made
    assert os.access(cached.out, os.X_OK)


def test_a_comment_and_a_name_make_no_difference(cached: Cached) -> None:
    """The module says the same: nothing is lowered, and the next build is found at once."""
    cached.build(module())
    made = cached.out.read_bytes()
    other = "// More.\n\n" + module().replace("%v", "%loaded  ")
    assert cached.build(other) == {"build": "missed (input changed)", "module": "found"}
    assert cached.out.read_bytes() == made
    assert cached.build() == {"build": "found"}


def test_a_host_change_leaves_device_code(cached: Cached) -> None:
    cached.build(module(threads=32))
    done = cached.build(module(threads=64))
    assert found(done) >= device_of(done)
    assert len(device_of(done)) == 8
    assert done["build"] == "missed (input changed)"
    assert done["module"] == "missed (module changed)"
    assert done["input.host.o"] == "missed (*.ll changed)"
    assert done["input.cpu0.o"] == "found"


def test_a_kernel_change_leaves_the_other_kernels(cached: Cached) -> None:
    cached.build(module(second="2.0"))
    done = cached.build(module(second="3.0"))
    changed = device_of(done) & missed(done)
    assert len(changed) == 4
    assert all("second" in name for name in changed)
    assert all("first" in name for name in device_of(done) & found(done))
    cubin = next(name for name in changed if name.endswith(".cubin"))
    assert done[cubin] == "missed (*.ptx changed)"


def test_one_gpu_module_of_fifty(cached: Cached) -> None:
    def text(addends: list[float]) -> str:
        one = (
            module()
            .split("  gpu.module @second")[0]
            .removeprefix("module attributes {gpu.container_module} {\n")
        )
        modules = [
            one.replace("@first", f"@k{i}").replace("1.0", f"{addends[i]}") for i in range(50)
        ]
        host = module().partition("  func.func")[2].replace("@first", "@k0")
        return (
            "module attributes {gpu.container_module} {\n"
            + "".join(modules)
            + "  func.func"
            + host.replace("@second", "@k1")
        )

    addends = [i + 0.5 for i in range(50)]
    cached.out.mkdir()
    first = cached.build(text(addends), emit="cubin")
    assert len(missed(first)) == 152
    addends[17] = 99.5
    done = cached.build(text(addends), emit="cubin")
    assert len(found(done)) == 147
    assert {step.split(".")[0] for step in missed(done)} == {"build", "module", "input"}
    assert all("k17" in step for step in device_of(done) & missed(done))


def test_one_kernel_of_many_for_the_cpu(cached: Cached) -> None:
    """Objects of a few kernels each: one of them is made again, and the host's is not."""

    def text(factor: float) -> str:
        kernels = "".join(
            f"""
  func.func @f{i}(%x: memref<?xf32>) attributes {{llvm.emit_c_interface}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
      %v = memref.load %x[%i] : memref<?xf32>
      %k = arith.constant {factor if i == 5 else i + 0.5} : f32
      %p = arith.mulf %v, %k : f32
      memref.store %p, %x[%i] : memref<?xf32>
    }}
    return
  }}"""
            for i in range(12)
        )
        return f"module {{{kernels}\n}}"

    first = cached.build(text(2.0))
    objects = {step for step in first if ".cpu" in step}
    assert objects == {f"input.cpu{i}.o" for i in range(3)}
    done = cached.build(text(3.0))
    assert missed(done) & objects == {"input.cpu1.o"}
    assert done["input.cpu1.o"] == "missed (*.ll changed)"


@pytest.mark.parametrize(
    ("option", "why"),
    [
        (("-O", "1"), "optimization: 3 → 1"),
        (("--no-cpu-kernels",), "cpu kernels: True → False"),
        (("--allow-tf32",), "tf32: False → True"),
        (("--allow-3xtf32",), "3xtf32: False → True"),
        (("--ptx", "compute_80"), "ptx: none → compute_80"),
        (("--target", "x86_64-linux-gnu.2.30"), "→ x86_64-linux-gnu.2.30"),
        (("--memory", "managed"), "memory: auto → managed"),
        (("--block", "64"), "block: none → 64"),
        (("--entry", "f"), "entries: none → f"),
        (("-Wno-out-of-bounds",), "warnings: "),
        (("--chip", "sm_80"), "chips: sm_90 → sm_90,sm_80"),
        (("-g",), "debug: False → True"),
        (("--lineinfo",), "lineinfo: False → True"),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, tuple) else "",
)
def test_an_option_that_changed_is_named(cached: Cached, option: list[str], why: str) -> None:
    cached.out.mkdir()
    cached.build(module(), emit="mlir")
    done = cached.build(None, *option, emit="mlir")
    assert done["build"].startswith("missed")
    assert why in done["build"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", [kind.name for kind in named_kinds()])
def test_files_are_the_same_without_a_cache(cached: Cached, kind: str, tmp_path: Path) -> None:
    """Without a cache, built with one, and found in it; by the build, and by the module."""

    def built(*options: str | Path) -> dict[str, bytes]:
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        (tmp_path / "out").mkdir()
        cached.build(None, *options, emit=kind)
        return {
            str(file.relative_to(tmp_path / "out")): file.read_bytes()
            for file in (tmp_path / "out").rglob("*")
            if file.is_file()
        }

    cached.source.write_text(module())
    without = built("--no-cache")
    assert without
    assert built() == without
    assert built() == without
    assert "build: found" in cached.outcome.stderr
    cached.source.write_text("// More.\n" + module())
    assert built() == without
    assert "module: found" in cached.outcome.stderr
    # Of what each tool makes.
    cached.build(None, "--save-temps", tmp_path / "temps", emit=kind)
    assert built("--save-temps", tmp_path / "temps") == without
    assert "build: passed by" in cached.outcome.stderr


def test_warnings_are_shown_again(cached: Cached) -> None:
    text = (
        "func.func @g(%a: memref<4xf32>) attributes {llvm.emit_c_interface} {\n"
        "  %x = arith.constant 1.0 : f32\n"
        "  %c9 = arith.constant 9 : index\n"
        "  memref.store %x, %a[%c9] : memref<4xf32>\n"
        "  return\n}\n"
    )
    cached.build(text, emit="host-mlir")
    said = cached.outcome.stderr.partition("aotc: cache")[0]
    assert "[-Wout-of-bounds]" in said
    assert cached.build(None, emit="host-mlir") == {"build": "found"}
    assert cached.outcome.stderr.partition("aotc: cache")[0] == said
    assert cached.build(None, "-q", emit="host-mlir") == {"build": "found"}
    assert "-Wout-of-bounds" not in cached.outcome.stderr
    # Its place is another one there: the module's result is not to be shared.
    moved = cached.build("\n\n" + text, emit="host-mlir")
    assert moved["module"].startswith("missed")
    assert f"{cached.source}:6:3: warning" in cached.outcome.stderr
    # An error is one, whatever was found before.
    cached.build(None, "-Werror", emit="host-mlir", code=2)


CONSTANT = """func.func @f(%x: memref<4xf32>) attributes {llvm.emit_c_interface} {
  %c = arith.constant dense_resource<values> : tensor<4xf32>
  bufferization.materialize_in_destination %c in writable %x : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}
{-#
  dialect_resources: {builtin: {values: "0x040000000000803F000000400000404000008040"}}
#-}
"""


def test_a_constants_numbers_make_a_difference(cached: Cached) -> None:
    """Also those that MLIR prints apart from what uses them."""
    cached.build(CONSTANT)
    made = cached.out.read_bytes()
    assert cached.build("// More.\n" + CONSTANT)["module"] == "found"
    other = CONSTANT.replace("00404000008040", "00404000009040")
    assert cached.build(other)["module"] == "missed (module changed)"
    assert cached.out.read_bytes() != made


ASSERTING = """func.func @g(%n: index) attributes {llvm.emit_c_interface} {
  %c9 = arith.constant 9 : index
  %is = arith.cmpi slt, %n, %c9 : index
  cf.assert %is, "n is small"
  return
}
"""


def test_a_place_in_an_artifact_is_the_inputs_own(cached: Cached) -> None:
    cached.build(ASSERTING)
    assert b"input.mlir:4:3" in cached.out.read_bytes()
    assert cached.build("\n" + ASSERTING)["module"].startswith("missed")
    assert b"input.mlir:5:3" in cached.out.read_bytes()


TRAPPING = module().replace(
    "      gpu.return",
    '      %is = arith.cmpf olt, %v, %s : f32\n      cf.assert %is, "too large"\n      gpu.return',
    1,
)


def test_a_place_in_device_code_is_the_inputs_own(cached: Cached) -> None:
    def places(text: str) -> tuple[dict[str, str], list[bytes]]:
        done = cached.build(text, emit="exe")
        return done, re.findall(rb"input\.mlir:\d+:\d+", cached.out.read_bytes())

    _, before = places(TRAPPING)
    done, after = places("\n" + TRAPPING)
    assert before
    assert before != after
    assert done["module"].startswith("missed")
    assert places("\n" + TRAPPING)[1] == after


def test_device_code_of_another_chip(cached: Cached) -> None:
    """What is lowered is the same for each; and a kernel's body is all that counts."""
    cached.build(module(), emit="exe")
    done = cached.build(None, "--chip", "sm_80")
    assert {step for step in done if step.endswith("device.ll")} <= found(done)
    assert {step for step in done if step.endswith(".sm_80.cubin")} <= missed(done)


def test_lowered_device_code_is_made_where_it_is_asked_for(cached: Cached) -> None:
    cached.build(module())
    cached.out.unlink()
    cached.out.mkdir()
    done = cached.build(emit="device-mlir")
    assert "input.first.device.ll" not in done
    assert len(list(cached.out.iterdir())) == 2


@pytest.mark.exhaustive
def test_lines_of_debug_information_are_the_inputs_own(cached: Cached) -> None:
    cached.build(module(), "-g")
    before = cached.out.read_bytes()
    done = cached.build("\n" + module(), "-g")
    assert "module" not in done
    assert cached.out.read_bytes() != before
    assert cached.build(None, "-g") == {"build": "found"}


def test_explanations_are_found_too(cached: Cached) -> None:
    cached.build(module(), "--explain")
    words = cached.outcome.stdout
    assert words.startswith(f"// {cached.source} has")
    assert cached.build(None, "--explain") == {"build": "found"}
    assert cached.outcome.stdout == words
    # By another input's module, its lines would be the other's.
    cached.build("\n" + module())
    done = cached.build(None, "--explain")
    assert "passed by" in done["build"]
    assert cached.outcome.stdout.startswith(f"// {cached.source} has")


def test_intermediates_are_saved_all(cached: Cached, tmp_path: Path) -> None:
    cached.build(module())
    done = cached.build(None, "--save-temps", tmp_path / "temps")
    assert done["build"] == "passed by (--save-temps wants every stage)"
    assert found(done) >= device_of(done)
    saved = sorted(path.name for path in (tmp_path / "temps").iterdir())
    cached.build(None, "--save-temps", tmp_path / "again", "--no-cache")
    assert saved == sorted(path.name for path in (tmp_path / "again").iterdir())
    for name in saved:
        same = (tmp_path / "temps" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
        assert same, name


def test_verbose_and_times_tell_of_the_cache(cached: Cached) -> None:
    cached.build(module(), "-v")
    assert "ptxas" in cached.outcome.stderr
    cached.build(None, "-v", "--time-report")
    assert "# from the cache: all of it\n" in cached.outcome.stderr
    assert "ptxas" not in cached.outcome.stderr
    assert cached.outcome.stderr.count(" ms ") == 2
    cached.build(module(threads=64), "-v")
    assert "# from the cache: the cubin for sm_90\n" in cached.outcome.stderr
    assert "ptxas -arch" not in cached.outcome.stderr


def test_the_input_may_be_what_is_read(cached: Cached, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["build", "-", *map(str, cached.command()[2:])]
    for expected in ("aotc: cache: build: missed (never built)\n", "aotc: cache: build: found\n"):
        stdin = io.TextIOWrapper(io.BytesIO(module().encode()))
        monkeypatch.setattr(sys, "stdin", stdin)
        outcome = cached._aotc(*command)
        assert outcome.code == 0, outcome.stderr
        assert expected in outcome.stderr


def test_no_cache(cached: Cached, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cached.build(module(), "--no-cache") == {}
    assert "aotc: cache: off\n" in cached.outcome.stderr
    assert not cached.cache.exists()
    monkeypatch.setenv("AOTC_CACHE", "off")
    assert cached._aotc("build", cached.source, "--emit", "mlir", "-o", cached.out).code == 0
    monkeypatch.setenv("AOTC_CACHE", str(cached.cache))
    assert cached._aotc("build", cached.source, "--emit", "mlir", "-o", cached.out).code == 0
    assert cached.files("ac")


def test_an_artifact_that_is_changed_does_not_change_the_cache(cached: Cached) -> None:
    cached.build(module())
    made = cached.out.read_bytes()
    for _ in range(2):
        with cached.out.open("r+b") as file:
            file.write(b"something else")
        assert cached.build() == {"build": "found"}
        assert cached.out.read_bytes() == made


def test_what_fails_is_not_kept(cached: Cached) -> None:
    text = (
        module()
        .replace("func.func @f", "func.func private @nobody()\n  func.func @f")
        .replace("    return", "    call @nobody() : () -> ()\n    return")
    )
    for _ in range(2):
        done = cached.build(text, code=2)
        assert "the module calls nobody" in cached.outcome.stderr
        assert done["build"].startswith("missed")
    # What was made before it failed is.
    assert device_of(done) <= found(done)


def test_another_tool_makes_it_again(cached: Cached, tmp_path: Path) -> None:
    from aotc.toolchain import Toolchain

    cached.build(module())
    script = tmp_path / "my-ptxas"
    script.write_text(f'#!/bin/sh\nexec {Toolchain({}).tool("ptxas").path} "$@"\n')
    script.chmod(0o755)
    done = cached.build(None, "--ptxas", script)
    assert done["build"] == "missed (ptxas changed)"
    cubins = [step for step in done if step.endswith(".cubin")]
    assert all(done[step] == "missed (tool changed)" for step in cubins)
    assert {step for step in done if step.endswith(".ptx")} <= found(done)
    # The same place, another content.
    script.write_text(script.read_text() + "# More.\n")
    assert cached.build(None, "--ptxas", script)["build"] == "missed (ptxas changed)"
    assert cached.build(None, "--ptxas", script) == {"build": "found"}


def test_another_aotc_lowers_it_again(cached: Cached, monkeypatch: pytest.MonkeyPatch) -> None:
    cached.build(module())
    monkeypatch.setattr(Identities, "aotc", "9.9.9 #0")
    done = cached.build()
    assert done["build"].startswith("missed (aotc: 0.1.0 #")
    assert done["build"].endswith("→ 9.9.9 #0)")
    # What tools made of the same files is the same.
    lowered = {step for step in done if step.endswith(".device.ll")}
    assert missed(done) == {"build", "module"} | lowered


def test_what_is_large_is_not_kept(cached: Cached, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builds, "LARGEST", 4000)
    done = cached.build(module())
    assert "that are kept" in done["build"]
    assert cached.build()["module"].startswith("missed")
    monkeypatch.setattr(actions, "LARGEST", 4000)
    done = cached.build()
    assert done["input.exe"] == "passed by (it reads too much to be kept)"
    monkeypatch.setattr(builds, "LARGEST", 100)
    assert cached.build()["build"].startswith("passed by (the input has ")
    done = aotc.build(module(), emit="mlir", out=cached.out, cache=cached.cache)
    assert "mlir" in done.times


def test_what_may_read_files_is_passed_by(cached: Cached) -> None:
    pipeline = "builtin.module(transform-preload-library{transform-library-paths=nowhere.mlir})"
    done = cached.build(module(), "--pipeline", pipeline, emit="mlir", code=2)
    assert done["build"] == "passed by (the pipeline may read files)"


def test_an_input_that_is_not_there(cached: Cached) -> None:
    cached.build(code=2)
    assert f"Cannot read '{cached.source}': No such file or directory." in cached.outcome.stderr


@pytest.mark.parametrize(
    "change",
    [
        {"file_name": "../../out"},
        {"file_name": "/etc/out"},
        {"folder": "../.."},
        {"folder": "/etc"},
        {"kind": "exe"},
        {"kind": "nothing"},
        {"file_name": None},
    ],
    ids=str,
)
def test_a_result_of_somebody_else_writes_nowhere_else(
    cached: Cached, change: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a server that was tampered with: it is not taken."""
    cached.build(module(), emit="mlir")
    made = cached.out.read_bytes()
    results = builds.Results

    def find(self: object, step: str, *rest: object) -> Made | None:
        found = original(self, step, *rest)  # type: ignore[arg-type]
        if found is None or step != "build":
            return found
        document = json.loads(found.stdout)
        document["files"][0].update(change)
        name = document["files"][0]["file_name"]
        files = {f"0/{name}": next(iter(found.files.values()))}
        return Made(files, stdout=json.dumps(document).encode())

    original = results.find
    monkeypatch.setattr(results, "find", find)
    cached.out.unlink()
    done = cached.build(emit="mlir")
    assert "module" in done
    assert cached.out.read_bytes() == made


def test_a_library_by_its_name(cached: Cached, tmp_path: Path) -> None:
    """The file's name is in a shared library: another one is another build."""
    cached.build(module(), "--emit", "shared", emit="shared")
    cached.out = tmp_path / "libother.so"
    done = cached.build(None, emit="shared")
    assert "soname: out → libother.so" in done["build"]
    assert b"libother.so\0" in cached.out.read_bytes()


def test_a_program_is_run_from_the_cache(cached: Cached) -> None:
    cached.source.write_text((SAMPLES / "vector_add.mlir").read_text())
    command = ["run", cached.source, "--chip", "sm_90", "--cache", cached.cache, "--explain-cache"]
    command += ["--", "--device", "cpu", *("--x", "1", "--y", "2", "--z", "0", "--print", "z")]
    command += [word for name in "xyz" for word in ("--dim", f"{name}=4")]
    first, second = in_its_own(command), in_its_own(command)
    assert first.code == second.code == 0, second.stderr
    assert second.stderr.startswith("aotc: cache: build: found\n")
    assert first.stdout == second.stdout
    assert "z = [3 3 3 3]" in second.stdout


def test_python(cached: Cached, tmp_path: Path) -> None:
    options = {"emit": "exe", "out": tmp_path / "out", "chips": "sm_90", "cache": cached.cache}
    first = aotc.build(module(), **options)  # type: ignore[arg-type]
    made = first.path.read_bytes()
    second = aotc.build(module(), **options)  # type: ignore[arg-type]
    assert set(second.times) == {"cache"}
    by_module = aotc.build("// More.\n" + module(), **options)  # type: ignore[arg-type]
    assert set(by_module.times) == {"load", "cache"}
    for again in (second, by_module):
        assert again.path.read_bytes() == made
        assert again.manifest == first.manifest
        assert again.warnings == first.warnings
    assert set(aotc.build(module(), **{**options, "cache": False}).times) > {"mlir"}  # type: ignore[arg-type]


def test_what_is_found_loads_no_bindings(cached: Cached) -> None:
    """Nor what else takes long: as whole processes, it is a tenth of a second at most."""
    cached.build(module())
    said = subprocess.run(
        [sys.executable, "-X", "importtime", *aotc_command(*cached.command())[1:]],
        env=process_environment(),
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    assert "aotc: cache: build: found" in said
    loaded = {line.rpartition("|")[2].strip() for line in said.splitlines() if "|" in line}
    slow = {"torch_mlir", "mlir", "numpy", "importlib.metadata", "subprocess", "http", "rich"}
    assert not loaded & slow
    assert len([name for name in loaded if name.startswith("aotc")]) <= 56


def test_another_module_with_the_same_matmul(cached: Cached) -> None:
    """Its kernels are found, whatever the names of the input, the entry and the rest of it are."""

    def text(entry: str, value: float) -> str:
        types = "memref<?x?xf32>"
        return f"""
func.func @{entry}(%a: {types}, %b: {types}, %c: {types}, %d: {types})
    attributes {{llvm.emit_c_interface}} {{
  %value = arith.constant {value} : f32
  linalg.fill ins(%value : f32) outs(%d : {types})
  linalg.matmul ins(%a, %b : {types}, {types}) outs(%c : {types})
  return
}}"""

    cached.build(text("one", 1.0))
    cached.source = cached.folder / "other.mlir"
    done = cached.build(text("another", 2.0))
    matmul = {step for step in done if "matmul_f32" in step}
    assert {Path(step).suffix for step in matmul} == {".ll", ".ptx", ".cubin", ".fatbin"}
    assert matmul <= found(done)
    # The matmul's object for the CPU; the other one has the fill.
    objects = [step for step in sorted(done) if ".cpu" in step]
    assert [done[step] for step in objects] == ["missed (never built)", "found"]

"""`aotc.build`: sources, options, what it gives, errors, threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from helpers.command import REPOSITORY

import aotc
from aotc.artifacts import EXE
from aotc.errors import InputError
from aotc.input import bytecode
from aotc.mlir import ir
from aotc.processes.fork_server import Limits, TaskError
from aotc.request import BuildRequest

TEXT = """\
func.func @exps(%x: memref<?xf32>, %y: memref<?xf32>) attributes {llvm.emit_c_interface} {
  linalg.exp ins(%x : memref<?xf32>) outs(%y : memref<?xf32>)
  return
}
"""
CHIP = "sm_90"


def _bytecode(text: str) -> bytes:
    import io

    with ir.Context():
        buffer = io.BytesIO()
        ir.Module.parse(text).operation.write_bytecode(buffer)
    return buffer.getvalue()


def test_sources_are_one_module(tmp_path: Path) -> None:
    """A path, text, bytes, bytecode and a module give the same PTX; names are the files'."""
    file = tmp_path / "named.mlir"
    file.write_text(TEXT)
    with ir.Context() as context, ir.Location.unknown():
        module = ir.Module.parse(TEXT)
        module.operation.attributes["sym_name"] = ir.StringAttr.get("named")
        made = [
            aotc.build(source, emit="ptx", chips=CHIP, out=f"{tmp_path / str(number)}/", name=name)
            for number, (source, name) in enumerate(
                [
                    (file, None),
                    (str(file), None),
                    (TEXT, "named"),
                    (TEXT.encode(), "named"),
                    (_bytecode(TEXT), "named"),
                    (module, None),
                    (module.operation, None),
                ]
            )
        ]
        assert ir.Context.current == context
        assert "linalg.exp" in str(module)
    assert {artifact.path.name for artifact in made} == {f"named_kernels.{CHIP}.ptx"}
    assert len({artifact.path.read_text() for artifact in made}) == 1


def test_a_module_is_not_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytecode is read by another process first, which takes several times its size; what these
    bindings have just written is not."""
    read: list[bytes] = []
    check = "aotc.stages.module.check_bytecode"
    monkeypatch.setattr(check, lambda _, content: read.append(content))
    with ir.Context():
        module = ir.Module.parse(TEXT)
    written = _bytecode(TEXT)
    for number, source in enumerate((module, module.operation, written)):
        aotc.build(source, emit="mlir", out=tmp_path / f"{number}.mlir", cache=False)
    assert read == [written]


def test_a_module_is_verified() -> None:
    """MLIR crashes where it writes an operation without what this needs."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(TEXT)
        ir.Operation.create("memref.global", ip=ir.InsertionPoint.at_block_begin(module.body))
    with pytest.raises(InputError) as refusal:
        aotc.build(module, emit="mlir", name="mine")
    expected = "error: 'memref.global' op requires attribute 'sym_name'"
    assert refusal.value.message == f"MLIR refuses the module 'mine':\n{expected}"


def test_too_little_memory_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that may take less than it might need for the file, and takes all of that."""

    def call(_: str, content: bytes, *, limits: Limits) -> bytes:
        raise TaskError(f"more than {limits.memory / 2**30:.1f} GiB of memory", "", "")

    monkeypatch.setattr(bytecode.FORK_SERVER, "call", call)
    monkeypatch.setattr(bytecode, "available_memory", lambda: 1 << 29)
    with pytest.raises(InputError) as refusal:
        bytecode.check_bytecode("large.mlirbc", _bytecode(TEXT))
    assert refusal.value.message == (
        "Cannot read large.mlirbc: MLIR's reader takes more than 0.5 GiB of memory, and no more is "
        "available."
    )
    monkeypatch.setattr(bytecode, "available_memory", lambda: 1 << 40)
    with pytest.raises(InputError, match="is damaged bytecode"):
        bytecode.check_bytecode("large.mlirbc", _bytecode(TEXT))


def test_an_artifact_says_what_was_made(tmp_path: Path) -> None:
    made = aotc.build(TEXT, emit=["shared", "cubin"], chips="sm_80,sm_90", out=f"{tmp_path}/")
    assert made.path == made.paths["shared"] == tmp_path / "lib" / "libmodule.so"
    assert [path.name for path in made.files["cubin"]] == [
        "module_kernels.sm_80.cubin",
        "module_kernels.sm_90.cubin",
    ]
    assert {"header", "manifest", "package"} <= set(made.paths)
    assert all(path.exists() for paths in made.files.values() for path in paths)
    assert made.manifest is not None
    assert [entry.name for entry in made.manifest.entries] == ["exps"]
    assert set(made.times) >= {"load", "mlir", "ptx", "cubin", "shared"}
    assert all(seconds >= 0 for seconds in made.times.values())


def test_options_are_the_commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each option of the command that decides what is built is one of the function, and means the
    same."""
    seen: list[BuildRequest] = []

    class SeenError(Exception):
        pass

    def run_build(build: object, observers: object) -> None:
        seen.append(build.request)  # type: ignore[attr-defined]
        raise SeenError

    monkeypatch.setattr("aotc.pipeline.run_build", run_build)
    source = REPOSITORY / "samples" / "vector_add.mlir"
    out = tmp_path / "x"
    with pytest.raises(SeenError):
        aotc.build(
            source,
            emit="exe",
            out=out,
            chips=["sm_80"],
            ptx="compute_80",
            target="aarch64-linux-musl",
            cpu="neoverse-n1",
            optimization=1,
            debug=True,
            lineinfo=True,
            entries="vector_add",
            pipeline="builtin.module(cse)",
            memory="managed",
            block="32x8",
            cpu_kernels=False,
            verify=True,
            allow_tf32=True,
            allow_3xtf32=True,
            untested_kernels=True,
            allow_file_directives=True,
            prefix="p_",
            runtime="shared",
            save_temps=tmp_path / "temps",
            warnings=["no-out-of-bounds", "error"],
        )
    from aotc.cli import run

    words = f"""build {source} --emit exe -o {out} --chip sm_80 --ptx compute_80
        --target aarch64-linux-musl --cpu neoverse-n1 -O1 -g --lineinfo --entry vector_add
        --pipeline builtin.module(cse)
        --memory managed --block 32x8 --no-cpu-kernels --prefix p_ --runtime shared
        --verify --allow-tf32 --allow-3xtf32 --untested-kernels
        --allow-file-directives --save-temps {tmp_path / "temps"}
        -Wno-out-of-bounds -Werror"""
    run(words.split())
    assert len(seen) == 2
    assert seen[0] == seen[1]
    assert seen[0].emit == (EXE,)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (TEXT.replace("linalg.exp", "linalg.ex"), {}, "module:2:3: error: custom op 'linalg.ex'"),
        (TEXT, {"emit": "exes"}, "Unknown --emit 'exes'. Did you mean exe"),
        (TEXT, {"memory": "there"}, "--memory there: expected auto or explicit or managed."),
        (TEXT, {"runtime": "none"}, "--runtime none: expected static or shared."),
        (TEXT, {"optimization": 4}, "There is no -O4: 0 to 3."),
        (TEXT, {"out": "-"}, "out='-' is the command line's"),
        (TEXT, {"emit": "ptx,cubin", "out": __file__}, "is a file, and --emit ptx, cubin makes"),
        ("no/such.mlir", {}, "Cannot read 'no/such.mlir'"),
        ("no/such.mlir", {"name": "x"}, "A file has its own name"),
        (7, {}, "Cannot build int: expected a path"),
        (b"", {}, "module is empty."),
    ],
)
def test_wrong_input(source: object, options: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(aotc.InputError) as raised:
        aotc.build(source, **{"out": tmp_path / "x", "chips": CHIP, **options})  # type: ignore[arg-type]
    assert message in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_several_kinds_go_into_a_new_directory(tmp_path: Path) -> None:
    aotc.build(TEXT, emit="mlir,manifest", out=tmp_path / "lib", chips=CHIP)
    assert len(list((tmp_path / "lib").iterdir())) == 2


def test_warnings_are_told_and_can_be_errors(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing is printed."""
    text = TEXT.replace("  return", "  %c = arith.constant 9 : index\n  return")
    late = text.replace(
        "  return",
        "  %t = memref.alloca() : memref<4xf32>\n"
        "  %v = memref.load %t[%c] : memref<4xf32>\n"
        "  memref.store %v, %t[%c] : memref<4xf32>\n  return",
    )
    made = aotc.build(late, emit="mlir", out=tmp_path / "x")
    assert {warning.name for warning in made.warnings} == {"out-of-bounds"}
    (place, *_) = [warning.place for warning in made.warnings]
    assert place is not None
    assert (place.file, place.line) == ("module", 5)
    hidden = aotc.build(late, emit="mlir", out=tmp_path / "y", warnings=["no-out-of-bounds"])
    assert hidden.warnings == ()
    with pytest.raises(aotc.InputError, match="Werror=out-of-bounds"):
        aotc.build(late, emit="mlir", out=tmp_path / "z", warnings="error=out-of-bounds")
    assert capfd.readouterr() == ("", "")


def test_several_threads_at_once(tmp_path: Path) -> None:
    """Each thread keeps the context that is current there."""
    barrier = threading.Barrier(4)

    def build(number: int) -> str:
        with ir.Context() as context:
            barrier.wait()
            text = TEXT.replace("@exps", f"@exps{number}")
            made = aotc.build(text, emit="manifest", chips=CHIP, out=tmp_path / f"{number}.json")
            assert ir.Context.current == context
        assert made.manifest is not None
        return made.manifest.entries[0].name

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(build, range(4))) == [f"exps{number}" for number in range(4)]


def test_importing_aotc_loads_no_bindings(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys, aotc; assert 'build' in dir(aotc); aotc.load; aotc.LibraryError; "
        "print([name for name in sys.modules if 'mlir' in name or name == 'numpy'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    assert done.stdout == "[]\n"
    with pytest.raises(AttributeError, match="module 'aotc' has no attribute 'nothing'"):
        _ = aotc.nothing  # type: ignore[attr-defined]

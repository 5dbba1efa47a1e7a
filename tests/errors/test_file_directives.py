"""Host code that has files read when it is built: refused, unless that is allowed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

from aotc.toolchain import Toolchain

Aotc = Callable[..., Outcome]
Write = Callable[..., Path]

_MODULE = """module {attributes} {{
  {globals}
  func.func @f(%x: memref<?xf32>) attributes {{llvm.emit_c_interface}} {{
    {body}
    return
  }}
}}
"""
_INLINE = 'llvm.inline_asm has_side_effects "{text}", "{constraints}" {operands} : ({types}) -> ()'


def module(*, assembly: str | None = None, symbol: str | None = None, attributes: str = "") -> str:
    """An entry with assembly in it, whose operand is the address of a function `symbol`."""
    body, functions = "", ""
    if assembly is not None:
        text = _INLINE.format(
            text=assembly.replace("\\", "\\5C").replace('"', "\\22").replace("\n", "\\0A"),
            constraints="" if symbol is None else "i",
            operands="" if symbol is None else "%a",
            types="" if symbol is None else "!llvm.ptr",
        )
        body = (
            text if symbol is None else f'%a = llvm.mlir.addressof @"{symbol}" : !llvm.ptr\n{text}'
        )
    if symbol is not None:
        functions = f'llvm.func internal @"{symbol}"() {{ llvm.return }}'
    return _MODULE.format(
        attributes=f"attributes {{{attributes}}}" if attributes else "",
        globals=functions,
        body=body,
    )


def build(aotc: Aotc, file: Path, out: Path, *options: str) -> Outcome:
    return aotc("build", file, "--chip", "sm_90", "-o", out, *options)


READS = "host assembly with '{}' reads a file when it is built"
MAKES = "host assembly with '{}' makes text, which may read files"


@pytest.mark.parametrize(
    ("assembly", "message"),
    [
        ('.incbin "FILE"', READS.format(".incbin")),
        ('nop; .INCBIN "FILE"', READS.format(".incbin")),
        ('nop\nlabel: .include "FILE"', READS.format(".include")),
        ('".incbin" "FILE"', READS.format(".incbin")),
        ("rep .incbin", READS.format(".incbin")),
        ('.inc$(bin$|lude$) "FILE"', READS.format(".incbin")),
        ('.$(x$|include$) "FILE"', READS.format(".include")),
        ('.macro m a\n.\\a "FILE"\n.endm\nm incbin', MAKES.format(".macro")),
        ('.irp x,incbin\n.\\x "FILE"\n.endr', MAKES.format(".irp")),
        ('.irpc x,n\n.i\\xcbin "FILE"\n.endr', MAKES.format(".irp")),
        (".altmacro", MAKES.format(".altmacro")),
    ],
)
def test_directives(
    aotc: Aotc, mlir_file: Write, tmp_path: Path, assembly: str, message: str
) -> None:
    """Whatever the spelling; with the operation's place."""
    file = mlir_file(module(assembly=assembly))
    outcome = build(aotc, file, tmp_path / "out", "--emit", "host-ll")
    assert outcome.code == 2
    assert f"{file}:4:5: error: {message}" in outcome.stderr
    assert "hint: --allow-file-directives is for a module that you trust" in outcome.stderr


@pytest.mark.parametrize(
    ("assembly", "symbol", "message"),
    [
        ('.in${0:P} "FILE"', "cbin", "host assembly has an operand in a directive: '.in${'"),
        ('.$0 "FILE"', "incbin", "host assembly has an operand in a directive: '.$0'"),
        ('${0:P} "FILE"', ".incbin", "a symbol is called '.incbin'"),
        ('${0:P}bin "FILE"', ".INC", "a symbol is called '.INC'"),
    ],
)
def test_operands(
    aotc: Aotc, mlir_file: Write, tmp_path: Path, assembly: str, symbol: str, message: str
) -> None:
    """The compiler writes an operand's name into the text: no name makes a directive of it."""
    file = mlir_file(module(assembly=assembly, symbol=symbol))
    outcome = build(aotc, file, tmp_path / "out", "--emit", "host-ll")
    assert outcome.code == 2
    assert message in outcome.stderr


def test_a_modules_own_assembly(aotc: Aotc, mlir_file: Write, tmp_path: Path) -> None:
    file = mlir_file(module(attributes='llvm.module_asm = ["nop", ".incbin \\22FILE\\22"]'))
    outcome = build(aotc, file, tmp_path / "out", "--emit", "host-ll")
    assert outcome.code == 2
    assert f"{file}:1:1: error: {READS.format('.incbin')}" in outcome.stderr


def test_other_assembly_is_built(aotc: Aotc, mlir_file: Write, tmp_path: Path) -> None:
    """Labels, sections, data and operands are no files."""
    data = '.pushsection .rodata\n.Lhere${:uid}: .asciz "x"\n.popsection\n'
    code = ".rept 2\nnop\n.endr\nlea ${0:P}(%rip), %rax"
    file = mlir_file(module(assembly=data + code, symbol="g"))
    options = ("--emit", "obj", "--target", "x86_64-linux-gnu.2.28")
    outcome = build(aotc, file, tmp_path / "out", *options)
    assert outcome.code == 0, outcome.stderr


def test_files_that_are_allowed(aotc: Aotc, mlir_file: Write, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("what the file says")
    text = f'.pushsection .rodata\n.incbin "{tmp_path / "data"}"\n.popsection'
    file, out = mlir_file(module(assembly=text)), tmp_path / "out.o"
    options = ("--emit", "obj", "--target", "x86_64-linux-gnu.2.28")
    assert build(aotc, file, out, *options).code == 2
    assert not out.exists()
    assert build(aotc, file, out, *options, "--allow-file-directives").code == 0
    assert b"what the file says" in out.read_bytes()


@pytest.mark.parametrize(
    "attributes",
    [
        'llvm.dependent_libraries = ["{}"]',
        'llvm.module_asm = [".section .x,\\22MS\\22,@0x6fff4c04,1", ".asciz \\22{}\\22", ".text"]',
    ],
)
def test_libraries_that_the_module_names(
    aotc: Aotc, mlir_file: Write, tmp_path: Path, attributes: str
) -> None:
    """LLVM's linker would take any object of this machine."""
    file = mlir_file(module(attributes=attributes.format("/some/object.o")))
    outcome = build(aotc, file, tmp_path / "out", "--target", "x86_64-linux-gnu.2.28")
    assert outcome.code == 2
    assert "names libraries to be linked with it" in outcome.stderr
    assert "/some/object.o" in outcome.stderr
    assert not (tmp_path / "out").exists()


def test_assembly_that_is_wrong(aotc: Aotc, mlir_file: Write, tmp_path: Path) -> None:
    """It is the module's fault, not the tool's."""
    file = mlir_file(module(assembly="no_such_instruction"))
    outcome = build(aotc, file, tmp_path / "out", "--emit", "obj")
    assert outcome.code == 2
    assert "The module's assembly is refused for " in outcome.stderr
    assert "no_such_instruction" in outcome.stderr


def test_device_assembly_cannot_read(aotc: Aotc, mlir_file: Write, tmp_path: Path) -> None:
    """ptxas has no directive for it; if it opened the file (a pipe), it would never end."""
    os.mkfifo(tmp_path / "pipe")
    ptx = tmp_path / "kernel.ptx"
    ptx.write_text(
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        f'.file 1 "{tmp_path / "pipe"}"\n.visible .entry k()\n{{\n.loc 1 3 0\nret;\n}}\n'
    )
    ptxas = str(Toolchain(os.environ).tool("ptxas").path)
    command: list[str | Path] = [ptxas, "-arch=sm_80", "-lineinfo", ptx]
    command += ["-o", tmp_path / "kernel.cubin"]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0
    for directive in (".incbin", ".include"):
        ptx.write_text(f'.version 8.0\n.target sm_80\n{directive} "{tmp_path / "kernel.cubin"}"\n')
        done = subprocess.run(command, timeout=60, check=False, capture_output=True, text=True)
        assert done.returncode != 0
        assert f"Parsing error near '{directive}'" in done.stderr + done.stdout

"""CPU kernels in modules of their own: which are together, and what each holds."""

from __future__ import annotations

from aotc.host.kernels import CpuKernel, CpuKernels
from aotc.mlir import ir, make_context
from aotc.symbols import has_body, symbols_of
from aotc.targets.cpu.units import split_kernels

# Kernels 1 and 6 count in one variable; 2 and 3 read one constant by a helper; `@rounds` is called
# by the back end alone.
MODULE = """
llvm.mlir.global internal @count(0 : i32) : i32
llvm.mlir.global internal constant @table(7 : i32) : i32
llvm.func @expf(f32) -> f32
llvm.func weak_odr hidden @rounds(%x: f32) -> f32 { llvm.return %x : f32 }
llvm.func internal @helper() -> i32 {
  %p = llvm.mlir.addressof @table : !llvm.ptr
  %v = llvm.load %p : !llvm.ptr -> i32
  llvm.return %v : i32
}
""" + "".join(
    f"llvm.func internal @k{i}(%a: !llvm.ptr, %b: !llvm.ptr) {{\n"
    + (
        "  %p = llvm.mlir.addressof @count : !llvm.ptr\n  %v = llvm.load %p : !llvm.ptr -> i32\n"
        if i in (1, 6)
        else ""
    )
    + ("  %v = llvm.call @helper() : () -> i32\n" if i in (2, 3) else "")
    + "  llvm.return\n}\n"
    for i in range(9)
)


def test_what_is_together() -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(MODULE)
        before = str(module)
        kernels = [CpuKernel("m", f"k{i}", f"k{i}", None) for i in range(9)]
        kernels.insert(4, CpuKernel("m", "none", None, "why not"))
        parts = split_kernels(CpuKernels(module, tuple(kernels)))
        for part in parts:
            assert part.operation.verify()
        symbols = [symbols_of(part.operation) for part in parts]
        shown = [str(part) for part in parts]
        assert str(module) == before
    roots = [{name for name in names if name.startswith("k")} for names in symbols]
    # Of four each, in order, but for the one that shares a variable with another.
    assert roots == [{"k0", "k1", "k2", "k3", "k6"}, {"k4", "k5", "k7", "k8"}]
    assert ["count" in names for names in symbols] == [True, False]
    assert ["helper" in names and "table" in names for names in symbols] == [True, False]
    assert all("rounds" in names and "expf" not in names for names in symbols)
    assert all(has_body(names[name]) for names in symbols for name in names if name[0] == "k")
    assert all("llvm.func hidden @k" in text for text in shown)
    assert all("llvm.func internal @k" not in text for text in shown)


def test_none() -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse("llvm.func @expf(f32) -> f32")
        assert split_kernels(CpuKernels(module, ())) == []

"""Each text of a page says from which lines its lines come."""

from __future__ import annotations

from aotc.explore.text import located_llvm, located_mlir, located_ptx, located_sass

FILES = {"a.mlir": 0, "a.gpu.mlir": 3}


def test_mlir_loses_its_locations_and_keeps_what_they_say() -> None:
    """The location of an operation with regions, which is behind its end, holds for all its own
    lines; of several texts, the latest counts."""
    lines = located_mlir(
        """\
#loc1 = loc("a.mlir":1:12)
module {
  func.func @f(%arg0: index loc("a.mlir":1:12)) attributes {a = "loc(x"} {
    scf.if %c {
      "t.a"() : () -> () loc(#loc2)
    } else {
      "t.b"() : () -> () loc(#loc3)
    } loc(#loc4)
    return loc(unknown)
  } loc(#loc5)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("a.mlir":3:4)
#loc3 = loc(fused[#loc2, "a.gpu.mlir":17:0])
#loc4 = loc("named"(callsite(#loc2 at "a.mlir":9:1)))
#loc5 = loc("a.mlir":1:1 to 4:3)
""",
        FILES,
    )
    assert [(line.text, line.origins) for line in lines] == [
        ("module {", ()),
        ('  func.func @f(%arg0: index) attributes {a = "loc(x"} {', ((0, 1),)),
        ("    scf.if %c {", ((0, 3), (0, 9))),
        ('      "t.a"() : () -> ()', ((0, 3),)),
        ("    } else {", ((0, 3), (0, 9))),
        ('      "t.b"() : () -> ()', ((3, 17),)),
        ("    }", ((0, 3), (0, 9))),
        ("    return", ()),
        ("  }", ((0, 1),)),
        ("}", ()),
    ]


def test_llvm_ir_names_lines_by_its_debug_information() -> None:
    lines = located_llvm(
        """\
define void @f() !dbg !3 {
  ret void, !dbg !5
}
!1 = !DIFile(filename: "a.gpu.mlir", directory: "")
!2 = distinct !DICompileUnit(language: DW_LANG_C, file: !1)
!3 = distinct !DISubprogram(name: "f", scope: !1, file: !1, line: 7, unit: !2)
!4 = !DILexicalBlock(scope: !3, line: 8)
!5 = !DILocation(line: 9, column: 3, scope: !4)
""",
        FILES,
    )
    assert [line.origins for line in lines[:3]] == [((3, 7),), ((3, 9),), ()]


def test_ptx_and_machine_code_follow_their_marks_of_lines() -> None:
    ptx = located_ptx(
        ".visible .entry k()\n{\n\t.reg .b32 %r<2>;\n\t.loc\t1 5 0\n\tadd.s32 %r1, %r1, 1;\n"
        '\t.loc\t2 6 0\n\tret;\n}\n\t.file\t1 "/tmp/a.gpu.mlir"\n\t.file\t2 "other"\n',
        FILES,
    )
    assert [line.origins for line in ptx[:8]] == [
        *((), (), ()),
        *(((3, 5),), ((3, 5),)),
        *((), (), ()),
    ]
    sass = located_sass(
        '.text.k:\n\t//## File "/x/a.gpu.mlir", line 5\n        /*00a0*/\t         RET R1 ;\n',
        FILES,
    )
    assert [(line.text, line.origins) for line in sass] == [
        (".text.k:", ()),
        ("  /*00a0*/  RET R1 ;", ((3, 5),)),
    ]

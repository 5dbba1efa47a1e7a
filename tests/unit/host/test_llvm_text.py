"""The rewriting of LLVM IR text, on text alone; test_llvm_text_exact.py has the real printer."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest

from aotc.errors import InternalError
from aotc.toolchain.llvm_text import downlevel, explain_refusal, unknown_intrinsics
from aotc.toolchain.version import Version

NEW = Version(24)
OLD = Version(22, 1, 8)


def old(text: str) -> str:
    return downlevel(text, writer=NEW, reader=OLD)


@pytest.mark.parametrize("reader", [NEW, Version(24, 1), Version(25)])
def test_nothing_changes_for_a_reader_as_new_as_the_writer(reader: Version) -> None:
    text = "  %1 = fadd float %0, 1.000000e-01\n"
    assert downlevel(text, writer=NEW, reader=reader) == text


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("float 1.000000e+00", "float 0x3FF0000000000000"),
        ("float 1.000000e-01", "float 0x3FB99999A0000000"),
        ("float f0x322BCC77", "float 0x3E45798EE0000000"),
        ("float 1.401300e-45", "float 0x36A0000000000000"),
        ("float -0.000000e+00", "float 0x8000000000000000"),
        ("float +inf", "float 0x7FF0000000000000"),
        ("float -inf", "float 0xFFF0000000000000"),
        ("float +qnan", "float 0x7FF8000000000000"),
        ("float -qnan", "float 0xFFF8000000000000"),
        ("float +nan(0x1)", "float 0x7FF8000020000000"),
        ("float -snan(0x1)", "float 0xFFF0000020000000"),
        ("double 1.000000e-01", "double 0x3FB999999999999A"),
        ("double f0x3FB999999999999A", "double 0x3FB999999999999A"),
        ("double +snan(0x1)", "double 0x7FF0000000000001"),
        ("half 9.997550e-02", "half 0xH2E66"),
        ("half -qnan", "half 0xHFE00"),
        ("half 5.960460e-08", "half 0xH0001"),
        ("bfloat 1.000980e-01", "bfloat 0xR3DCD"),
        ("bfloat +inf", "bfloat 0xR7F80"),
        ("x86_fp80 1.000000e+00", "x86_fp80 0xK3FFF8000000000000000"),
        ("x86_fp80 f0x3FFBCCCCCCCCCCCCD000", "x86_fp80 0xK3FFBCCCCCCCCCCCCD000"),
        ("x86_fp80 -inf", "x86_fp80 0xKFFFF8000000000000000"),
        ("x86_fp80 +qnan", "x86_fp80 0xK7FFFC000000000000000"),
        # The old form of fp128 has the low half first.
        ("fp128 1.000000e+00", "fp128 0xL00000000000000003FFF000000000000"),
        (
            "fp128 f0x3FFB999999999999A000000000000000",
            "fp128 0xLA0000000000000003FFB999999999999",
        ),
    ],
)
def test_a_literal_becomes_the_exact_hexadecimal_form(literal: str, expected: str) -> None:
    assert old(f"@x = global {literal}, align 4") == f"@x = global {expected}, align 4"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  %3 = fadd float %0, 5.000000e-01", "  %3 = fadd float %0, 0x3FE0000000000000"),
        ("  %4 = fcmp olt half %3, +snan(0x1)", "  %4 = fcmp olt half %3, 0xH7C01"),
        ("  ret bfloat 1.000000e+00", "  ret bfloat 0xR3F80"),
        ("  %6 = fneg double -1.500000e+00", "  %6 = fneg double 0xBFF8000000000000"),
        (
            "  %8 = phi half [ %14, %13 ], [ 1.000000e+00, %2 ], [ -inf, %3 ]",
            "  %8 = phi half [ %14, %13 ], [ 0xH3C00, %2 ], [ 0xHFC00, %3 ]",
        ),
        (
            "  %5 = select i1 %1, half 1.000000e+00, bfloat 1.000000e+00",
            "  %5 = select i1 %1, half 0xH3C00, bfloat 0xR3F80",
        ),
        (
            "  %6 = call half @llvm.fma.f16(half 1.000000e+00, half %0, half f0x3C01)",
            "  %6 = call half @llvm.fma.f16(half 0xH3C00, half %0, half 0xH3C01)",
        ),
        (
            "  %2 = fmul <4 x half> %0, splat (half 1.000000e+00)",
            "  %2 = fmul <4 x half> %0, splat (half 0xH3C00)",
        ),
        (
            "  store { half, i32 } { half 1.000000e+00, i32 3 }, ptr %0, align 4",
            "  store { half, i32 } { half 0xH3C00, i32 3 }, ptr %0, align 4",
        ),
        (
            "  %2 = insertelement <2 x half> <half 1.000000e+00, half poison>, half %0, i64 1",
            "  %2 = insertelement <2 x half> <half 0xH3C00, half poison>, half %0, i64 1",
        ),
        ("!0 = !{half 1.000000e+00, i32 3}", "!0 = !{half 0xH3C00, i32 3}"),
        (
            "    #dbg_value(half 1.000000e+00, !3, !DIExpression(), !4)",
            "    #dbg_value(half 0xH3C00, !3, !DIExpression(), !4)",
        ),
        (
            '  %1 = call half @"float 2.5"(half 1.000000e+00)',
            '  %1 = call half @"float 2.5"(half 0xH3C00)',
        ),
        # Names that hold a type's name are no types.
        ("  %2 = fadd half %my.float, 1.000000e+00", "  %2 = fadd half %my.float, 0xH3C00"),
        ("  %2 = fadd half %float, 1.000000e+00", "  %2 = fadd half %float, 0xH3C00"),
        (
            "  %2 = call half @double(half 1.000000e+00)",
            "  %2 = call half @double(half 0xH3C00)",
        ),
    ],
)
def test_a_literal_has_the_nearest_type_to_its_left(line: str, expected: str) -> None:
    assert old(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        '@s = constant [18 x i8] c"float 1.0e-1 -qnan"',
        r'@s = constant [20 x i8] c"\22 float 1.0e-1; +inf"',
        '!0 = !{!"float 1.000000e-01"}',
        'source_filename = "float 1.000000e-01"',
        '  %1 = call i32 asm "mov.f32 $0, 1.500000e-01;", "=r"()',
        "; float 1.000000e-01",
        '7:                                   ; preds = %"float 1.0", %1.5',
        'attributes #0 = { "x"="float 1.5e-1" }',
        '%"struct.float 1.5" = type { float }',
        "  br label %1.5",
        "  %4 = getelementptr inbounds float, ptr %3, i64 10",
        # Written by hand, in the old form: it is exact already.
        "  store float 0x3FB99999A0000000, ptr %0",
        "  store half 0xH3C00, ptr %0",
    ],
)
def test_quotes_comments_names_and_old_literals_are_left_alone(line: str) -> None:
    assert old(line) == line


def test_a_literal_behind_a_quoted_name_and_before_a_comment_is_rewritten() -> None:
    line = 'store half 1.000000e+00, ptr @"half 1.5", align 2 ; half 1.5'
    assert old(line) == 'store half 0xH3C00, ptr @"half 1.5", align 2 ; half 1.5'


def test_a_literal_whose_type_has_no_old_form_is_our_failure_with_the_line() -> None:
    with pytest.raises(InternalError) as caught:
        old("  store ppc_fp128 1.000000e+00, ptr %0")
    assert str(caught.value) == (
        "A floating-point literal of type ppc_fp128 cannot be written for the older LLVM:\n"
        "    store ppc_fp128 1.000000e+00, ptr %0"
    )


def test_a_decimal_is_rounded_once() -> None:
    """These lie so near the middle of two floats that double has only the middle itself."""
    middle = Fraction(2**24 + 1, 2**24)  # between 1.0 and the next float
    above = _decimal(middle + Fraction(1, 2**80))
    below = _decimal(middle - Fraction(1, 2**80))
    assert old(f"store float {above}, ptr %0") == "store float 0x3FF0000020000000, ptr %0"
    assert old(f"store float {below}, ptr %0") == "store float 0x3FF0000000000000, ptr %0"
    # The quick way for long arrays sees the middle, too.
    many = ", ".join(["float 2.500000e-01"] * 40 + [f"float {above}", f"float {below}"])
    assert old(f"@a = global [42 x float] [{many}]").endswith(
        "float 0x3FF0000020000000, float 0x3FF0000000000000]"
    )


def _decimal(value: Fraction) -> str:
    """All digits of a value whose denominator is a power of two."""
    digits = value.denominator.bit_length() - 1
    scaled = value.numerator * 5**digits
    text = f"{scaled:0{digits + 1}d}"
    return f"{text[:-digits]}.{text[-digits:]}"


@pytest.mark.parametrize(
    ("literal", "bits"),
    [
        ("0.000000e+00", "0x0000000000000000"),
        ("1.401300e-45", "0x36A0000000000000"),
        ("1.175490e-38", "0x380FFFF840000000"),  # below the least normal float: a subnormal
        ("3.402820e+38", "0x47EFFFFDC0000000"),
        ("+inf", "0x7FF0000000000000"),
        ("-snan(0x1)", "0xFFF0000020000000"),
        ("f0x00000001", "0x36A0000000000000"),
        ("f0x7FA00000", "0x7FF4000000000000"),  # a signaling NaN's bits
        ("f0x80000000", "0x8000000000000000"),
    ],
)
def test_long_arrays_hold_what_short_ones_hold(literal: str, bits: str) -> None:
    for around in ("float 1.500000e+00", "float f0x3FC00000"):
        elements = [around] * 30 + [f"float {literal}"] + [around] * 30
        expected = ["float 0x3FF8000000000000"] * 30
        expected = [*expected, f"float {bits}", *expected]
        text = f"@a = global [61 x float] [{', '.join(elements)}]"
        assert old(text) == f"@a = global [61 x float] [{', '.join(expected)}]"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("attributes #0 = { flatten noipa nooutline }", 'attributes #0 = { "downleveled" }'),
        ("attributes #1 = { noipa nounwind }", "attributes #1 = { nounwind }"),
        (
            'attributes #0 = { nounwind "noipa"=" noipa " }',
            'attributes #0 = { nounwind "noipa"=" noipa " }',
        ),
        ("define void @f() prefalign(64) {", "define void @f() {"),
        ("define void @f() #0 prefalign(64) {", "define void @f() #0 {"),
        ("  call void @noipa()", "  call void @noipa()"),
        ("define void @f(ptr dead_on_return(16) %0) {", "define void @f(ptr %0) {"),
        (
            "define void @f(ptr noalias dead_on_return(0) %0) {",
            "define void @f(ptr noalias %0) {",
        ),
        (
            "attributes #0 = { memory(read, argmem: none, target_mem1: none) }",
            "attributes #0 = { memory(read, argmem: none) }",
        ),
        ("attributes #0 = { memory(target_mem: read) }", 'attributes #0 = { "downleveled" }'),
        (
            "attributes #0 = { nounwind memory(argmem: read, target_mem0: readwrite) }",
            "attributes #0 = { nounwind  }",
        ),
        (
            "attributes #0 = { denormal_fpenv(preservesign) }",
            'attributes #0 = { "denormal-fp-math"="preserve-sign,preserve-sign" }',
        ),
        (
            "attributes #0 = { denormal_fpenv(float: preservesign|positivezero) nounwind }",
            'attributes #0 = { "denormal-fp-math-f32"="preserve-sign,positive-zero" nounwind }',
        ),
        (
            "attributes #0 = { denormal_fpenv(dynamic|ieee, float: ieee) }",
            'attributes #0 = { "denormal-fp-math"="dynamic,ieee" '
            '"denormal-fp-math-f32"="ieee,ieee" }',
        ),
        (
            "  call void @llvm.nvvm.cp.async.bulk.tensor.reduce.tile.1d(ptr addrspace(3) %1, "
            "ptr %3, i32 %4, i64 0, /* red_op=min */ i32 1, i1 false), !dbg !3",
            "  call void @llvm.nvvm.cp.async.bulk.tensor.reduce.min.tile.1d("
            "ptr addrspace(3) %1, ptr %3, i32 %4, i64 0, i1 false), !dbg !3",
        ),
        (
            "  %17 = call i32 @llvm.nvvm.movmatrix.sync.aligned.m8n8.trans.b16(i32 %4)",
            '  %17 = call i32 asm sideeffect "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", '
            '"=r,r"(i32 %4) convergent',
        ),
        ("declare i32 @llvm.nvvm.movmatrix.sync.aligned.m8n8.trans.b16(i32) #0", ""),
    ],
)
def test_what_the_older_llvm_lacks_is_spelled_in_its_words(line: str, expected: str) -> None:
    assert old(line) == expected


def test_lines_of_assembly_are_told_one_by_one() -> None:
    new = 'a\n\nmodule asm\n    ".globl x"\n    ".set x, \\22;\\22"\n\ndefine void @f() {\n'
    old = 'a\n\nmodule asm ".globl x"\nmodule asm ".set x, \\22;\\22"\n\ndefine void @f() {\n'
    assert downlevel(new, writer=Version(24), reader=Version(22)) == old
    assert downlevel(old, writer=Version(24), reader=Version(22)) == old


def test_an_embedded_image_costs_about_nothing() -> None:
    """16 MB of image take less than the printing of a few thousand lines would."""
    image = '@image = internal constant [8000000 x i8] c"' + r"\7F 1.5" * 2_000_000 + '"'
    text = f"{image}\n@x = global half 1.000000e+00\n"
    start = time.perf_counter()
    rewritten = old(text)
    elapsed = time.perf_counter() - start
    assert rewritten == f"{image}\n@x = global half 0xH3C00\n"
    assert elapsed < 2


def test_a_refusal_names_the_line_and_points_at_the_place() -> None:
    text = "define void @f() {\n  %1 = frobnicate i32 3\n  ret void\n}\n"
    stderr = "x.ll:2:8: error: expected instruction opcode\n    2 |   %1 = frobnicate\n"
    assert explain_refusal(stderr, text) == (
        "line 2: expected instruction opcode\n    %1 = frobnicate i32 3\n         ^"
    )


def test_a_refusal_shows_a_window_of_a_line_of_megabytes() -> None:
    line = "@x = global [3 x i8] " + "a" * 1_000_000 + " HERE " + "b" * 1_000_000
    column = line.index("HERE") + 1
    explained = explain_refusal(f"<stdin>:1:{column}: error: bad", line)
    assert explained is not None
    head, shown, mark = explained.split("\n")
    assert head == "line 1: bad"
    assert len(shown) < 130
    assert shown[mark.index("^")] == "H"


@pytest.mark.parametrize(
    "stderr",
    [
        "error: invalid LLVM IR input: Attribute 'range(i32 0, 2)' applied to "
        "incompatible type!\nptr @g\n",
        "fatal error: error in backend: Cannot select: intrinsic %g\n",
    ],
)
def test_a_refusal_without_a_place_finds_the_name(stderr: str) -> None:
    text = "define void @f() {\n  ret void\n}\ndeclare void @g(ptr)\n"
    stderr = stderr.replace("%g", "%llvm.g")
    text = text.replace("@g", "@llvm.g") if "llvm.g" in stderr else text
    explained = explain_refusal(stderr, text)
    assert explained is not None
    assert explained.startswith("line 4, which has @")
    assert explained.endswith("(ptr)")


@pytest.mark.parametrize(
    "stderr",
    [
        "",
        "clang: error: no such file",
        "<inline asm>:2:11: error: unexpected token\n",
        "x.ll:99:1: error: expected top-level entity",
    ],
)
def test_a_refusal_about_no_line_of_ours_is_not_explained(stderr: str) -> None:
    assert explain_refusal(stderr, "define void @f() {\n}\n") is None


def test_unknown_intrinsics_are_found_in_ptx() -> None:
    ptx = (
        b".extern .func  (.param .b32 func_retval0) llvm.nvvm.new.b32\n(\n"
        b"\t.param .b32 llvm.nvvm.new.b32_param_0\n)\n;\n"
        b".extern .func  (.param .b32 func_retval0) vprintf\n(\n)\n;\n"
        b".visible .entry llvm.mine(\n)\n{\n}\n"
    )
    assert unknown_intrinsics(ptx) == ["llvm.nvvm.new.b32"]
    assert unknown_intrinsics(b".visible .entry f()\n{\n}\n") == []

"""Pass pipelines as text in mlir-opt's syntax: `builtin.module(a,func.func(b,c){option=1})`."""

from __future__ import annotations

from collections.abc import Sequence


def pipeline_text(passes: Sequence[str]) -> str:
    """`builtin.module(a,b)` of `["a", "b"]`."""
    return f"builtin.module({','.join(passes)})"


def split_list(text: str) -> list[str]:
    """Splits a list at the commas that are not inside brackets."""
    parts, depth, start = [], 0, 0
    for place, sign in enumerate(text):
        if sign in "({[<":
            depth += 1
        elif sign in ")}]>":
            depth -= 1
        elif sign == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()]


def single_passes(pipeline: str) -> list[str]:
    """`["a", "func.func(b)", "func.func(c)"]` of `builtin.module(a,func.func(b,c))`."""
    _, _, inside = pipeline.rstrip().removesuffix(")").partition("(")
    found = []
    for part in split_list(inside):
        anchor, is_nest, _ = part.partition("(")
        if is_nest and "{" not in anchor:
            found += [f"{anchor}({one})" for one in single_passes(part)]
        else:
            found.append(part)
    return found


def short_name(one: str) -> str:
    """The name of a single pass, without its nesting and options."""
    return one.partition("{")[0].rpartition("(")[2].rstrip(")")

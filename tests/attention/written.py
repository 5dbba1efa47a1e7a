"""Attention as linalg on tensors has it, written by hand: each part can be another."""

from __future__ import annotations

SCALED = """
    %scaled = arith.mulf %score, %scale : f32"""
CAUSAL = """
    %query = linalg.index 1 : index
    %key = linalg.index 2 : index
    %is_seen = arith.cmpi ule, %key, %query : index
    %seen = arith.select %is_seen, %scaled, %least : f32"""
ALL_SEEN = """
    %seen = arith.addf %scaled, %minus_zero : f32"""


def attention(
    batch: int | None = 2,
    queries: int | None = 70,
    keys: int | None = 131,
    head_dim: int = 64,
    *,
    element: str = "f16",
    scale: float = 0.125,
    mask: str | None = None,
    softmax_along: int = 2,
    scores: str = "%weights",
) -> str:
    """An entry `attention` of Q, K and V. `mask` makes `%seen` of `%scaled`, a score; `scores`:
    what is multiplied by V."""

    def tensor(*sizes: int | None, of: str = element) -> str:
        return f"tensor<{'x'.join(['?' if n is None else str(n) for n in sizes] + [of])}>"

    q, k = tensor(batch, queries, head_dim), tensor(batch, keys, head_dim)
    turned, wide = tensor(batch, head_dim, keys), tensor(batch, queries, keys, of="f32")
    narrow, sums = tensor(batch, queries, keys), tensor(batch, queries, head_dim, of="f32")
    sizes = {"b": batch, "i": queries, "j": keys}

    def given(names: str) -> str:
        return ", ".join(f"%{name}" for name in names if sizes[name] is None)

    def elementwise(
        source: str, from_: str, to: str, body: str, inner: tuple[str, str], out: str
    ) -> str:
        return f"""linalg.generic {{
      indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins({source} : {from_}) outs({out} : {to}) {{
  ^bb0(%score: {inner[0]}, %out: {inner[1]}):{body}
  }} -> {to}"""

    mask_body = f"{SCALED}{mask}\n    linalg.yield %seen : f32" if mask else (
        f"{SCALED}\n    linalg.yield %scaled : f32"
    )  # fmt: skip
    narrowed = (
        "\n    linalg.yield %score : f32"
        if element == "f32"
        else f"\n    %n = arith.truncf %score : f32 to {element}\n    linalg.yield %n : {element}"
    )
    return f"""
func.func @attention(%q: {q}, %k: {k}, %v: {k}) -> {q} attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  %minus_zero = arith.constant -0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %scale = arith.constant {scale!r} : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %q, %c0 : {q}
  %i = tensor.dim %q, %c1 : {q}
  %j = tensor.dim %k, %c1 : {k}
  %empty_turned = tensor.empty({given("bj")}) : {turned}
  %turned = linalg.transpose ins(%k : {k}) outs(%empty_turned : {turned}) permutation = [0, 2, 1]
  %empty = tensor.empty({given("bij")}) : {wide}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {wide}) -> {wide}
  %scores = linalg.batch_matmul ins(%q, %turned : {q}, {turned}) outs(%zeros : {wide}) -> {wide}
  %masked = {elementwise("%scores", wide, wide, mask_body, ("f32", "f32"), "%empty")}
  %weights = linalg.softmax dimension({softmax_along}) ins(%masked : {wide}) outs(%empty : {wide})
      -> {wide}
  %empty_narrow = tensor.empty({given("bij")}) : {narrow}
  %narrow = {elementwise(scores, wide, narrow, narrowed, ("f32", element), "%empty_narrow")}
  %empty_sums = tensor.empty({given("bi")}) : {sums}
  %no_sums = linalg.fill ins(%zero : f32) outs(%empty_sums : {sums}) -> {sums}
  %sums = linalg.batch_matmul ins(%narrow, %v : {narrow}, {k}) outs(%no_sums : {sums}) -> {sums}
  %empty_result = tensor.empty({given("bi")}) : {q}
  %result = {elementwise("%sums", sums, q, narrowed, ("f32", element), "%empty_result")}
  return %result : {q}
}}
"""


def multiplied(*, factor: str = "b", element: str = "f16") -> str:
    """Attention whose scores are multiplied by a tensor, which one of `b`, `i` and `j` indexes, or
    nothing. The factor is twice an argument, and is made behind the scores."""
    size = {"b": "2x", "i": "70x", "j": "131x", "": ""}[factor]
    wide, given = "tensor<2x70x131xf32>", f"tensor<{size}f32>"
    inner = f"affine_map<({factor}) -> ({factor})>"
    loops = '["parallel"]' if factor else "[]"
    return (
        attention(element=element)
        .replace("(%q:", f"(%given: {given}, %q:", 1)
        .replace("ins(%masked :", "ins(%moved :")
        .replace(
            "  %weights =",
            f"""  %empty_factor = tensor.empty() : {given}
  %factor = linalg.generic {{indexing_maps = [{inner}, {inner}], iterator_types = {loops}}}
      ins(%given : {given}) outs(%empty_factor : {given}) {{
  ^bb0(%one: f32, %out: f32):
    %two = arith.addf %one, %one : f32
    linalg.yield %two : f32
  }} -> {given}
  %moved = linalg.generic {{
      indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> ({factor})>,
        affine_map<(b, i, j) -> (b, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%masked, %factor : {wide}, {given}) outs(%empty : {wide}) {{
  ^bb0(%score: f32, %one: f32, %out: f32):
    %product = arith.mulf %one, %score : f32
    linalg.yield %product : f32
  }} -> {wide}
  %weights =""",
        )
    )

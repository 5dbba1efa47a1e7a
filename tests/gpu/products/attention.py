"""Attention that is held against f64: of any columns, masks, and sizes that are known or not."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tests.gpu.products.program import Program

# Where a mask has a dimension of its own: along batch, queries, keys.
_PLACES = {"rows": "ij", "all": "bij", "padding": "bj", "keys": "j"}


class Attention(Struct, frozen=True):
    """softmax(Q · Kᵀ · depth^-0.5 + mask) · V, of sizes that are 0 where they are not known.

    `mask`: none, causal, or one of _PLACES, of elements `mask_element`, which are added; i8: 0
    hides a key.
    """

    element: str
    depth: int
    mask: str = "none"
    mask_element: str = ""
    batch: int = 0
    queries: int = 0
    keys: int = 0
    chip: str = "sm_90a"
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        words = ["attention", self.element, str(self.depth), self.mask, self.mask_element]
        if self.batch or self.queries or self.keys:
            words.append(f"{self.batch}x{self.queries}x{self.keys}")
        return "_".join(word for word in [*words, self.chip, *self.options] if word)

    @property
    def program(self) -> Program:
        about = {
            "kind": "attention",
            "element": self.element,
            "depth": self.depth,
            "batch": self.batch,
            "queries": self.queries,
            "keys": self.keys,
            "scale": self.depth**-0.5,
            "mask": self.mask,
            "mask_element": self.mask_element,
            "mask_places": _PLACES.get(self.mask, ""),
            "strided": False,
        }
        return Program(self.name, self._text(), about, self.chip, self.options)

    def _type(self, places: str, element: str) -> str:
        sizes = {"b": self.batch, "i": self.queries, "j": self.keys, "d": self.depth}
        words = [str(sizes[place] or "?") for place in places]
        return f"tensor<{'x'.join([*words, element])}>"

    def _given(self, places: str) -> str:
        sizes = {"b": self.batch, "i": self.queries, "j": self.keys}
        return ", ".join(f"%{place}" for place in places if place != "d" and not sizes[place])

    def _text(self) -> str:
        element = self.element
        q, k = self._type("bid", element), self._type("bjd", element)
        turned, scores = self._type("bdj", element), self._type("bij", "f32")
        names = [("q", q), ("k", k), ("v", k)]
        if places := _PLACES.get(self.mask):
            names.append(("m", self._type(places, self.mask_element)))
        arguments = ", ".join(
            f"%{name}_: {type_.replace('tensor', 'memref')}" for name, type_ in [*names, ("o", q)]
        )
        tensors = "\n".join(
            f"  %{name} = bufferization.to_tensor %{name}_ restrict "
            f": {type_.replace('tensor', 'memref')} to {type_}"
            for name, type_ in names
        )
        sums = self._type("bid", "f32")
        narrow = self._type("bij", element)
        weights, result = "%weights", "%sums"
        rounded = ends = ""
        if element != "f32":
            weights, result = "%narrow", "%result"
            rounded = self._narrowed("%weights", "%narrow", "bij")
            ends = self._narrowed("%sums", "%result", "bid")
        return f"""
func.func @{self.name}({arguments}) attributes {{llvm.emit_c_interface}} {{
{tensors}
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %scale = arith.constant {self.depth**-0.5!r} : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %q, %c0 : {q}
  %i = tensor.dim %q, %c1 : {q}
  %j = tensor.dim %k, %c1 : {k}
  %empty_turned = tensor.empty({self._given("bj")}) : {turned}
  %turned = linalg.transpose ins(%k : {k}) outs(%empty_turned : {turned}) permutation = [0, 2, 1]
  %empty = tensor.empty({self._given("bij")}) : {scores}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {scores}) -> {scores}
  %scores = linalg.batch_matmul ins(%q, %turned : {q}, {turned}) outs(%zeros : {scores})
      -> {scores}
{self._masked(scores)}
  %weights = linalg.softmax dimension(2) ins(%masked : {scores}) outs(%empty : {scores})
      -> {scores}
{rounded}
  %empty_sums = tensor.empty({self._given("bi")}) : {sums}
  %no_sums = linalg.fill ins(%zero : f32) outs(%empty_sums : {sums}) -> {sums}
  %sums = linalg.batch_matmul ins({weights}, %v : {narrow}, {k}) outs(%no_sums : {sums}) -> {sums}
{ends}
  bufferization.materialize_in_destination {result} in restrict writable %o_
      : ({q}, {q.replace("tensor", "memref")}) -> ()
  return
}}
"""

    def _narrowed(self, source: str, made: str, places: str) -> str:
        wide, narrow = self._type(places, "f32"), self._type(places, self.element)
        same = "affine_map<(b, i, j) -> (b, i, j)>"
        return f"""\
  {made}_empty = tensor.empty({self._given(places)}) : {narrow}
  {made} = linalg.generic {{indexing_maps = [{same}, {same}],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins({source} : {wide}) outs({made}_empty : {narrow}) {{
  ^bb0(%x: f32, %out: {self.element}):
    %n = arith.truncf %x : f32 to {self.element}
    linalg.yield %n : {self.element}
  }} -> {narrow}"""

    def _masked(self, scores: str) -> str:
        same = "affine_map<(b, i, j) -> (b, i, j)>"
        places = _PLACES.get(self.mask)
        made, maps, inputs, types, arguments = "", [same], "%scores", scores, "%score: f32"
        body = "    %scaled = arith.mulf %score, %scale : f32\n"
        last = "%scaled"
        if self.mask == "causal":
            body += _CAUSAL
            last = "%seen"
        elif places:
            mask, element = "%m", self.mask_element
            if element == "i8":
                made, mask, element = self._where(places), "%added", "f32"
            maps.append(f"affine_map<(b, i, j) -> ({', '.join(places)})>")
            inputs += f", {mask}"
            types += f", {self._type(places, element)}"
            arguments += f", %more: {element}"
            wide = "%more"
            if element != "f32":
                body += f"    %wide = arith.extf %more : {element} to f32\n"
                wide = "%wide"
            body += f"    %seen = arith.addf %scaled, {wide} : f32\n"
            last = "%seen"
        return f"""{made}\
  %masked = linalg.generic {{indexing_maps = [{", ".join([*maps, same])}],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins({inputs} : {types}) outs(%empty : {scores}) {{
  ^bb0({arguments}, %out: f32):
{body}    linalg.yield {last} : f32
  }} -> {scores}"""

    def _where(self, places: str) -> str:
        """What is added, of what says which keys are seen: as PyTorch has masks of bool."""
        given, made = self._type(places, "i8"), self._type(places, "f32")
        loops = ", ".join(places)
        same = f"affine_map<({loops}) -> ({loops})>"
        kinds = ", ".join(['"parallel"'] * len(places))
        return f"""\
  %none = arith.constant 0 : i8
  %empty_added = tensor.empty({self._given(places)}) : {made}
  %added = linalg.generic {{indexing_maps = [{same}, {same}], iterator_types = [{kinds}]}}
      ins(%m : {given}) outs(%empty_added : {made}) {{
  ^bb0(%x: i8, %out: f32):
    %is_seen = arith.cmpi ne, %x, %none : i8
    %y = arith.select %is_seen, %zero, %least : f32
    linalg.yield %y : f32
  }} -> {made}
"""


_CAUSAL = """\
    %query = linalg.index 1 : index
    %key = linalg.index 2 : index
    %is_seen = arith.cmpi ule, %key, %query : index
    %seen = arith.select %is_seen, %scaled, %least : f32
"""
# What kernels of other families have: elements, columns, masks.
_OF_MMA_SYNC: tuple[tuple[Any, ...], ...] = (
    ("f16", 16, "causal"),
    ("bf16", 32),
    ("f16", 48, "padding", "i8"),
    ("f16", 64),
    ("bf16", 64, "causal"),
    ("f16", 64, "rows", "i8"),
    ("f16", 80, "keys", "f16"),
    ("bf16", 96),
    ("f16", 128, "causal"),
    ("bf16", 128, "all", "f32"),
    ("f16", 160),
    ("bf16", 192, "causal"),
    ("f16", 256, "padding", "f16"),
    ("f16", 64, "causal", "", 2, 197, 197),
)
_OF_F32: tuple[tuple[Any, ...], ...] = (
    (8,),
    (40, "causal"),
    (64,),
    (64, "causal"),
    (64, "rows", "i8"),
    (72, "padding", "f32"),
    (96, "keys", "f32"),
    (128,),
    (128, "causal"),
    (136, "all", "f32"),
    (256, "causal"),
    (64, "none", "", 2, 197, 131),
)


def cases() -> list[Attention]:
    found = [
        Attention("f16" if depth % 32 else "bf16", depth, "causal" if depth % 48 else "none")
        for depth in range(8, 257, 8)
    ]
    found += [
        Attention(element, depth, mask)
        for element in ("f16", "bf16")
        for depth in (64, 128)
        for mask in ("none", "causal")
    ]
    found += [
        Attention("f16", 64, "rows", "f16"),
        Attention("bf16", 128, "all", "f32"),
        Attention("f16", 48, "padding", "i8"),
        Attention("f16", 64, "rows", "i8"),
        Attention("bf16", 64, "padding", "f32"),
        Attention("f16", 80, "keys", "f16"),
        Attention("f16", 64, "none", "", 3, 131, 257),
        Attention("f16", 40, "rows", "i8"),
        Attention("f16", 40, "none", "", 6, 300, 77),
        Attention("bf16", 72, "all", "f32", 2, 99, 197),
        Attention("f16", 128, "causal", "", 2, 197, 197),
        Attention("bf16", 96, "rows", "i8", 4, 77, 77),
        Attention("f16", 256, "padding", "f16", 2, 65, 130),
    ]
    found += [replace(Attention(*one), chip="sm_80") for one in _OF_MMA_SYNC]
    found += [
        replace(Attention("f32", *one), chip="sm_80" if number % 2 else "sm_90a")
        for number, one in enumerate(_OF_F32)
    ]
    return list(dict.fromkeys(found))

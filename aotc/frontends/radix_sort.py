"""Generates the MLIR text that sorts rows by the digits of their keys (`RadixSort`).

It is for the CPU device. One thread sorts a row: words of 64 bits, whose upper half is a key and
whose lower half the number of its element, are distributed by each digit of the key, the last one
first. This is stable, and takes the same time for any order. Digits that all keys share are passed
over, in pairs. Keys of 64 bits are sorted by their lower half first.

If only the first elements are wanted, those whose upper digits come after them are left out before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aotc.frontends.row_order import RowOrder

# Bits of a digit, and of the digit by which elements are left out.
_DIGIT, _UPPER_DIGIT = 8, 11
_RADIX, _DIGITS = 1 << _DIGIT, 32 // _DIGIT
# Rows of fewer elements are sorted sooner by merges, as the counts of digits take longer.
_SHORTEST = 24
# Rows of at least so many elements are rid of those that are not wanted.
_LEAST_OF_SELECTION = 512
# Rows of at most so many elements have words in memory of the thread, which stays in its caches.
_LONGEST_OF_THREAD = 4096
# Elements have numbers of 32 bits.
_MOST_ELEMENTS = 1 << 32


@dataclass(frozen=True)
class SortKey:
    """The order of a sort: that of numbers of type `element`, integers or floats, of which NaN is
    the greatest. An element's number is that of `operand`, or what a call of `@key` returns for the
    elements of all operands."""

    element: str
    is_ascending: bool
    is_signed: bool
    operand: int | None


class RadixSort(RowOrder):
    """The rows' elements in the order of `key`."""

    def __init__(
        self,
        types: Sequence[Any],
        results: Sequence[str],
        dimension: int,
        key: SortKey,
        count: int | None,
        numbers: int | None,
    ) -> None:
        super().__init__(types, results, dimension, count, numbers)
        self._key = key
        self._element = key.element
        self._is_float = not self._element.startswith("i")
        self._width = 64 if self._element in ("f64", "i64") else 32
        self._is_private = self._length is not None and self._length <= _LONGEST_OF_THREAD
        self._words = f"tensor<{self._length if self._is_private else '?'}xi64>"
        self._counts = f"tensor<{_DIGITS * _RADIX}xi32>"
        self._is_selection = count is not None and (
            self._length is None or self._length >= max(_LEAST_OF_SELECTION, 2 * count)
        )

    @staticmethod
    def takes(types: Sequence[Any], dimension: int, key: SortKey) -> bool:
        """Whether rows of these types are sorted sooner by digits than by merges."""
        known = ("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")
        is_dynamic = types[0].is_dynamic_dim(dimension)
        length = _SHORTEST if is_dynamic else types[0].shape[dimension]
        return key.element in known and _SHORTEST <= length < _MOST_ELEMENTS

    def _shared(self) -> list[tuple[str, str, str]]:
        if self._is_private:
            return []
        sizes = [self._size(i) for i in range(self._rank) if i != self._dimension] or ["1"]
        type_ = f"tensor<{'x'.join(sizes)}x?xi64>"
        return [(name, f"every_{name}", type_) for name in ("words", "spare")]

    def _size(self, dimension: int) -> str:
        type_ = self._types[0]
        return "?" if type_.is_dynamic_dim(dimension) else str(type_.shape[dimension])

    def lines(self, made: str, target: str) -> str:
        others = [i for i in range(self._rank) if i != self._dimension]
        given = [f"%size{i}" for i in others if self._size(i) == "?"]
        allocated = "\n".join(
            f"%{tensor} = bufferization.alloc_tensor({', '.join([*given, '%n'])}) : {type_}"
            for _, tensor, type_ in self._shared()
        )
        check = ""
        if self._length is None:
            check = f"""
    %most = arith.constant {_MOST_ELEMENTS} : index
    %is_indexed = arith.cmpi ult, %n, %most : index
    cf.assert %is_indexed, "more than 4294967295 elements to sort on the CPU device\""""
        width = self._width
        sign = -(1 << (width - 1)) if self._key.is_signed else 0
        constants: dict[str, dict[str, object]] = {
            "index": {
                "radix": _RADIX,
                "counts_size": _RADIX * _DIGITS,
                "upper_size": 1 << _UPPER_DIGIT,
                "digit_bits": _DIGIT,
                "half_index": 32,
            },
            "i64": {
                "no_bits": 0,
                "number_mask": 0xFFFFFFFF,
                "digit_mask": _RADIX - 1,
                "half": 32,
                "upper_place": 64 - _UPPER_DIGIT,
                # A pair of digits has 1 << 4 bits.
                "pair_digits": (2 * _DIGIT).bit_length() - 1,
                "all_pairs": 64 // (2 * _DIGIT),
            },
            "i32": {"zero_count": 0, "one_count": 1},
        }
        of_keys = {
            "sign": sign,
            "sign_place": width - 1,
            "ones": -1,
            "reversal": 0 if self._key.is_ascending else -1,
        }
        constants[f"i{width}"] = {**constants[f"i{width}"], **of_keys}
        constants[f"f{width}"] = {"zero": "0.0"}
        defined = "\n".join(
            f"%{name} = arith.constant {value} : {type_}"
            for type_, values in constants.items()
            for name, value in values.items()
        )
        return "\n".join([check, defined, allocated, super().lines(made, target)])

    def _number(self, name: str, place: str) -> str:
        return f"""
        %{name}_place = arith.minui %{place}, %last : index
        %{name}_word = tensor.extract %ordered[%{name}_place] : {self._words}
        {self._number_of(f"{name}_any", f"{name}_word")}
        %{name} = arith.minui %{name}_any, %last : index"""

    def _number_of(self, name: str, word: str) -> str:
        return f"""
        %{name}_bits = arith.andi %{word}, %number_mask : i64
        %{name} = arith.index_cast %{name}_bits : i64 to index"""

    def _key_of(self, name: str, index: str) -> str:
        """Lines that define the integer %NAME of 32 or 64 bits for the element number %INDEX. The
        order of these integers, without a sign, is that of the sort."""
        e, w = self._element, f"i{self._width}"
        f = f"f{self._width}"
        wide, lines = f"{name}_from{self._key.operand}", [self._read_at(f"{name}_from", index)]
        if self._key.operand is None:
            wide, types = f"{name}_read", ", ".join(str(one.element_type) for one in self._types)
            elements = ", ".join(f"%{name}_from{i}" for i in range(len(self._types)))
            lines.append(f"%{wide} = func.call @key({elements}) : ({types}) -> {e}")
        if e not in (w, f):
            kind = "f" if self._is_float else "si" if self._key.is_signed else "ui"
            to = f if self._is_float else w
            lines.append(f"%{name}_wide = arith.ext{kind} %{wide} : {e} to {to}")
            wide = f"{name}_wide"
        if not self._is_float:
            lines.append(f"%{name}_up = arith.xori %{wide}, %sign : {w}")
        else:
            # -0.0 becomes 0.0. Of negative numbers, all bits are inverted, of others the sign.
            lines.append(f"""
        %{name}_sum = arith.addf %{wide}, %zero : {f}
        %{name}_bits = arith.bitcast %{name}_sum : {f} to {w}
        %{name}_negative = arith.shrsi %{name}_bits, %sign_place : {w}
        %{name}_mask = arith.ori %{name}_negative, %sign : {w}
        %{name}_number = arith.xori %{name}_bits, %{name}_mask : {w}
        %{name}_is_nan = arith.cmpf uno, %{wide}, %{wide} : {f}
        %{name}_up = arith.select %{name}_is_nan, %ones, %{name}_number : {w}""")
        return "\n".join([*lines, f"%{name} = arith.xori %{name}_up, %reversal : {w}"])

    def _find(self) -> str:
        lines = [f"%counts = bufferization.alloc_tensor() : {self._counts}"]
        if self._is_private:
            lines += [
                f"%{name} = bufferization.alloc_tensor() : {self._words}"
                for name in ("words", "spare")
            ]
        halves = self._width // 32
        words, length, has_numbers = "words", "n", False
        if self._is_selection:
            lines += [self._fill("uppers", words, length, halves - 1), self._select("uppers#0")]
            words, length, has_numbers = "selected#0", "selected#1", True
        state = (words, "spare", "counts")
        for half in range(halves):
            filled = "uppers"
            if halves > 1 or not self._is_selection:
                filled = f"filled{half}"
                lines.append(self._fill(filled, state[0], length, half, has_numbers))
                state = (f"{filled}#0", *state[1:])
            lines.append(self._sort_half(f"half{half}", state, length, filled))
            state, has_numbers = (f"half{half}#0", f"half{half}#1", f"half{half}#2"), True
        cast = f"%ordered = tensor.cast %{state[0]} : {self._words} to {self._words}"
        return "\n".join([*lines, cast])

    def _fill(
        self, made: str, words: str, length: str, half: int, has_numbers: bool = False
    ) -> str:
        """Lines that define %MADE: the words with a half of their elements' keys, and the bits that
        any key has, and that all have. The words have numbers already, or each gets its own."""
        b, width = self._words, f"i{self._width}"
        number = "%own = arith.addi %j, %c0 : index"
        if has_numbers:
            number = f"""
        %old_word = tensor.extract %b[%j] : {b}
        {self._number_of("own", "old_word")}"""
        part = f"%part = arith.extui %key : {width} to i64"
        if width == "i64":
            part = (
                f"%part = arith.{'shrui %key, %half' if half else 'andi %key, %number_mask'} : i64"
            )
        return f"""
      %{made}:3 = scf.for %j = %c0 to %{length} step %c1
          iter_args(%b = %{words}, %any = %no_bits, %all = %number_mask) -> ({b}, i64, i64) {{
        {number}
        {self._key_of("key", "own")}
        {part}
        %high = arith.shli %part, %half : i64
        %low = arith.index_cast %own : index to i64
        %word = arith.ori %high, %low : i64
        %put = tensor.insert %word into %b[%j] : {b}
        %new_any = arith.ori %any, %part : i64
        %new_all = arith.andi %all, %part : i64
        scf.yield %put, %new_any, %new_all : {b}, i64, i64
      }}"""

    def _select(self, words: str) -> str:
        """Lines that define %selected: the words whose upper digits are not above that of the last
        one wanted, and how many these are."""
        b, upper = self._words, f"tensor<{1 << _UPPER_DIGIT}xi32>"
        return f"""
      %upper = bufferization.alloc_tensor() : {upper}
      {self._clear("upper_zero", "upper", "upper_size", upper)}
      %upper_counts = scf.for %j = %c0 to %n step %c1 iter_args(%c = %upper_zero) -> ({upper}) {{
        %word = tensor.extract %{words}[%j] : {b}
        %upper_bits = arith.shrui %word, %upper_place : i64
        %digit = arith.index_cast %upper_bits : i64 to index
        {self._increment("more", "c", "digit", upper)}
        scf.yield %more : {upper}
      }}
      %bound:2 = scf.for %k = %c0 to %upper_size step %c1
          iter_args(%before = %c0, %last_upper = %c0) -> (index, index) {{
        %are_few = arith.cmpi ult, %before, %first : index
        %new_last = arith.select %are_few, %k, %last_upper : index
        %count = tensor.extract %upper_counts[%k] : {upper}
        %many = arith.index_castui %count : i32 to index
        %after = arith.addi %before, %many : index
        scf.yield %after, %new_last : index, index
      }}
      %bound_bits = arith.index_cast %bound#1 : index to i64
      %selected:2 = scf.for %j = %c0 to %n step %c1
          iter_args(%b = %{words}, %at = %c0) -> ({b}, index) {{
        %word = tensor.extract %b[%j] : {b}
        %upper_bits = arith.shrui %word, %upper_place : i64
        %put = tensor.insert %word into %b[%at] : {b}
        %is_wanted = arith.cmpi ule, %upper_bits, %bound_bits : i64
        %one_more = arith.addi %at, %c1 : index
        %next = arith.select %is_wanted, %one_more, %at : index
        scf.yield %put, %next : {b}, index
      }}"""

    def _clear(self, made: str, counts: str, size: str, type_: str) -> str:
        return f"""
      %{made} = scf.for %i = %c0 to %{size} step %c1 iter_args(%k = %{counts}) -> ({type_}) {{
        %put = tensor.insert %zero_count into %k[%i] : {type_}
        scf.yield %put : {type_}
      }}"""

    def _increment(self, made: str, counts: str, place: str, type_: str) -> str:
        return f"""
        %{made}_was = tensor.extract %{counts}[%{place}] : {type_}
        %{made}_now = arith.addi %{made}_was, %one_count : i32
        %{made} = tensor.insert %{made}_now into %{counts}[%{place}] : {type_}"""

    def _sort_half(self, made: str, state: tuple[str, str, str], length: str, filled: str) -> str:
        """Lines that define %MADE: the words, the spare words and the counts, after the words were
        sorted by their upper halves. `state` has the same before, and `filled` is from `_fill`."""
        words, spare, counts = state
        m, b, c = made, self._words, self._counts
        places, last = [], "k"
        for digit in range(_DIGITS):
            places.append(f"""
        %shift{digit} = arith.constant {32 + _DIGIT * digit} : i64
        %shifted{digit} = arith.shrui %word, %shift{digit} : i64
        %digit{digit} = arith.andi %shifted{digit}, %digit_mask : i64
        %base{digit} = arith.constant {_RADIX * digit} : i64
        %at{digit} = arith.ori %digit{digit}, %base{digit} : i64
        %place{digit} = arith.index_cast %at{digit} : i64 to index
        {self._increment(f"more{digit}", last, f"place{digit}", c)}""")
            last = f"more{digit}"
        return f"""
      {self._clear(f"{m}_zero", counts, "counts_size", c)}
      %{m}_counts = scf.for %j = %c0 to %{length} step %c1 iter_args(%k = %{m}_zero) -> ({c}) {{
        %word = tensor.extract %{words}[%j] : {b}
        {"".join(places)}
        scf.yield %{last} : {c}
      }}
      // The bits that differ, and the pairs of digits that have them.
      %{m}_differ = arith.xori %{filled}#1, %{filled}#2 : i64
      %{m}_below = math.cttz %{m}_differ : i64
      %{m}_least = arith.shrui %{m}_below, %pair_digits : i64
      %{m}_above = math.ctlz %{m}_differ : i64
      %{m}_no_pairs = arith.shrui %{m}_above, %pair_digits : i64
      %{m}_most = arith.subi %all_pairs, %{m}_no_pairs : i64
      %{m}_least_pair = arith.index_cast %{m}_least : i64 to index
      %{m}_most_pair = arith.index_cast %{m}_most : i64 to index
      %{m}:3 = scf.for %pair = %{m}_least_pair to %{m}_most_pair step %c1
          iter_args(%b = %{words}, %s = %{spare}, %k = %{m}_counts) -> ({b}, {b}, {c}) {{
        %lower = arith.addi %pair, %pair : index
        %upper_digit = arith.addi %lower, %c1 : index
        {self._distribute("there", "b", "s", "k", "lower", length)}
        {self._distribute("back", "there#0", "b", "there#1", "upper_digit", length)}
        scf.yield %back#0, %there#0, %back#1 : {b}, {b}, {c}
      }}"""

    def _distribute(
        self, made: str, source: str, target: str, counts: str, digit: str, length: str
    ) -> str:
        """Lines that define %MADE: the words of %SOURCE in %TARGET in the order of a digit, and the
        counts."""
        m, b, c = made, self._words, self._counts
        return f"""
        %{m}_base = arith.muli %{digit}, %radix : index
        %{m}_starts:2 = scf.for %d = %c0 to %radix step %c1
            iter_args(%p = %{counts}, %sum = %zero_count) -> ({c}, i32) {{
          %at = arith.addi %{m}_base, %d : index
          %count = tensor.extract %p[%at] : {c}
          %put = tensor.insert %sum into %p[%at] : {c}
          %next = arith.addi %sum, %count : i32
          scf.yield %put, %next : {c}, i32
        }}
        %{m}_bits = arith.muli %{digit}, %digit_bits : index
        %{m}_shift_index = arith.addi %{m}_bits, %half_index : index
        %{m}_shift = arith.index_cast %{m}_shift_index : index to i64
        %{m}:2 = scf.for %j = %c0 to %{length} step %c1
            iter_args(%to = %{target}, %p = %{m}_starts#0) -> ({b}, {c}) {{
          %word = tensor.extract %{source}[%j] : {b}
          %shifted = arith.shrui %word, %{m}_shift : i64
          %digit = arith.andi %shifted, %digit_mask : i64
          %digit_index = arith.index_cast %digit : i64 to index
          %at = arith.addi %{m}_base, %digit_index : index
          %start = tensor.extract %p[%at] : {c}
          %place = arith.index_castui %start : i32 to index
          %put = tensor.insert %word into %to[%place] : {b}
          %more = arith.addi %start, %one_count : i32
          %put_more = tensor.insert %more into %p[%at] : {c}
          scf.yield %put, %put_more : {b}, {c}
        }}"""

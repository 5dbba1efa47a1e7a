"""The attention that a kernel computes."""

from __future__ import annotations

from msgspec import Struct

from aotc.kernels.attention.pages import Pages
from aotc.kernels.matmul.problem import Matrix


class Mask(Struct, frozen=True):
    """The mask that is added to scores. `type`: the type of its buffer. `element`: its element
    type.

    `places`: the index along each of its dimensions, in terms of the score's batch `b`, query `i`
    and key `j`: `b`, a quotient or remainder of it (`b/12`, `b%12`, `b/3%64`), `i`, `j` or `0`. The
    last one is `j`. `alignment`: the alignment of all rows, in bytes. `replaces`: elements other
    than 0 replace scores, instead of being added to them.
    """

    type: str
    element: str
    places: tuple[str, ...]
    alignment: int = 1
    replaces: bool = False


class Attention(Struct, frozen=True):
    """O = softmax(scale · Q · Kᵀ + mask) · V: Q and O are queries x head_dim, K and V keys x
    head_dim.

    All of them have a leading batch dimension, which includes the heads. `scale` is above 0.
    `batch` is None if unknown.

    `heads`: for each of Q, K, V and O, 0 if its matrices are consecutive in memory; otherwise the
    number of heads whose rows are adjacent, and together form one row of a matrix. `group`: 0, or
    (for decode, in which Q has one row in each matrix) the number of consecutive matrices of Q that
    share K and V (grouped-query attention); the batch of K and V is smaller by this factor.
    `pages`: K and V are caches, whose matrices are pages. The page tables of K and of V are the
    last arguments. `causal`: query i attends only to the keys 0 to i. `masked_rows_are_zero`: rows
    whose scores are all -infinity are 0; otherwise they are NaN.
    """

    q: Matrix
    k: Matrix
    v: Matrix
    o: Matrix
    scale: float
    batch: int | None = None
    causal: bool = False
    masked_rows_are_zero: bool = False
    mask: Mask | None = None
    heads: tuple[int, int, int, int] = (0, 0, 0, 0)
    group: int = 0
    pages: Pages | None = None

    def is_of_16_bits(self, *, head_dims: range) -> bool:
        """Whether Q, K and V are row-major matrices of f16 or of bf16, O is of that type or of f32,
        and `head_dims` contains the columns of Q."""
        element, matrices = self.q.element, (self.q, self.k, self.v)
        return (
            self.head_dim in head_dims
            and element in ("f16", "bf16")
            and all(one.element == element and not one.transposed for one in matrices)
            and self.o.element in (element, "f32")
        )

    @property
    def keys(self) -> int | None:
        """The number of keys, None if unknown."""
        return self.k.sizes[0] if self.pages is None else self.pages.keys

    @property
    def arguments(self) -> dict[str, str]:
        """The types of a kernel's arguments, by their names."""
        matrices = {"q": self.q, "k": self.k, "v": self.v, "o": self.o}
        types = {name: matrix.type for name, matrix in matrices.items()}
        if self.mask is not None:
            types["mask"] = self.mask.type
        if self.pages is not None:
            types |= dict.fromkeys(("k_pages", "v_pages"), self.pages.table)
        return types

    @property
    def head_dim(self) -> int | None:
        """The columns of a head, the same in every matrix; None if unknown."""
        columns, heads = self.q.sizes[1], self.heads[0]
        return columns if columns is None or not heads else columns // heads

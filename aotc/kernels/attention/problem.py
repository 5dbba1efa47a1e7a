"""What a kernel for attention is to compute."""

from __future__ import annotations

from msgspec import Struct

from aotc.kernels.attention.pages import Pages
from aotc.kernels.matmul.problem import Matrix


class Mask(Struct, frozen=True):
    """What is added to scores: the type of its buffer, its elements' type, and what each of its
    dimensions is: a score's batch `b`, that by or modulo numbers (`b/12`, `b%12`, `b/3%64`), its
    query `i`, its key `j`, the last one; or 0. `alignment`: of all rows, in bytes. `replaces`:
    elements other than 0 replace scores, rather than being added to them."""

    type: str
    element: str
    places: tuple[str, ...]
    alignment: int = 1
    replaces: bool = False


class Attention(Struct, frozen=True):
    """O = softmax(scale · Q · Kᵀ + mask) · V: Q and O are queries x head_dim, K and V keys x
    head_dim.

    All have one dimension for a batch in front, which counts heads, too. `scale` is above 0,
    `batch` None if it is not known.
    `heads`, of Q, K, V and O: with 0, one matrix lies behind the other; else the rows of so many
    are beside each other, and make one row of a matrix.
    `group`: 0, or Q has one row in each matrix (decode), and so many matrices of Q that follow each
    other have the same K and V (grouped queries); those have a batch of that fraction.
    `pages`: K and V are caches, whose matrices are pages; tables of K's and of V's pages are
    arguments behind the others.
    `causal`: query i sees the keys 0 to i alone. `masked_rows_are_zero`: of rows whose scores are
    all -infinity, which else are NaN.
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

    @property
    def keys(self) -> int | None:
        """How many keys a query has."""
        return self.k.sizes[0] if self.pages is None else self.pages.keys

    @property
    def arguments(self) -> dict[str, str]:
        """The types of the buffers that a kernel takes."""
        matrices = {"q": self.q, "k": self.k, "v": self.v, "o": self.o}
        types = {name: matrix.type for name, matrix in matrices.items()}
        if self.mask is not None:
            types["mask"] = self.mask.type
        if self.pages is not None:
            types |= dict.fromkeys(("k_pages", "v_pages"), self.pages.table)
        return types

    @property
    def head_dim(self) -> int | None:
        """Columns of every matrix."""
        columns, heads = self.q.sizes[1], self.heads[0]
        return columns if columns is None or not heads else columns // heads

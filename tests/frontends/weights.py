"""Libraries without their weights, for the way to another machine, and with them again.

There the weights are made again from their seed (models.py), which is less to carry. What is put
together is, byte for byte, what aotc built: its digest is checked.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

# Constants begin at multiples of this, in bytes.
ALIGNMENT = 64
# Smaller tensors stay where they are.
LEAST_BYTES = 4096
ENDING = ".cut"


def cut(library: Path, module: Any) -> dict[str, Any]:
    """Replaces the library's file by NAME.cut, without the module's weights: as they are, or with
    their dimensions in another order; also where the rows of several are one. Gives what `put_back`
    needs."""
    content = library.read_bytes()
    weights = module.state_dict()
    # Orders of one tensor may begin alike.
    starts: dict[bytes, list[tuple[str, tuple[int, ...]]]] = {}
    for name, tensor in weights.items():
        # Zeros may be anyone's, and a cache of them is no constant of a library.
        if tensor.nbytes >= LEAST_BYTES and bool(tensor.any()):
            for order, head in _heads(tensor):
                starts.setdefault(head, []).append((name, order))
    cuts: list[tuple[int, list[str], tuple[int, ...]]] = []
    kept, place, end = [], 0, 0
    while place < len(content):
        found = _found(content, place, starts, weights)
        if found is not None:
            names, order, size = found
            cuts.append((place, names, order))
            kept.append(content[end:place])
            end = place + size
        place = max(place + ALIGNMENT, end + -end % ALIGNMENT)
    library.with_name(library.name + ENDING).write_bytes(b"".join([*kept, content[end:]]))
    library.unlink()
    return {"cuts": cuts, "digest": hashlib.sha256(content).hexdigest()}


def put_back(library: Path, cuts: dict[str, Any], module: Any) -> None:
    """Undoes `cut`, unless that has been done. Raises ValueError where another file comes out."""
    if library.exists():
        return
    rest = memoryview(library.with_name(library.name + ENDING).read_bytes())
    weights = module.state_dict()
    parts: list[Any] = []
    end = 0
    for place, names, order in cuts["cuts"]:
        taken = _joined([weights[name] for name in names], order)
        parts += [rest[: place - end], taken]
        rest = rest[place - end :]
        end = place + len(taken)
    content = b"".join([*parts, rest])
    if hashlib.sha256(content).hexdigest() != cuts["digest"]:
        raise ValueError(f"{library.name} with the weights made here is not what was built")
    library.write_bytes(content)


def _found(
    content: bytes,
    place: int,
    starts: dict[bytes, list[tuple[str, tuple[int, ...]]]],
    weights: dict[str, Any],
) -> tuple[list[str], tuple[int, ...], int] | None:
    """The weights at a place, the order of their dimensions, and their bytes: one, or several of
    which each row follows that of the one before."""
    for first, order in starts.get(content[place : place + ALIGNMENT], ()):
        names, end = [first], place
        while True:
            taken = _joined([weights[name] for name in names], order)
            if content.startswith(taken, place):
                return names, order, len(taken)
            last = weights[names[-1]]
            end += last.shape[order[-1]] * last.element_size()
            following = starts.get(content[end : end + ALIGNMENT], ())
            fitting = (
                name
                for name, own in following
                if own == order and name not in names and _fits(weights[name], last, order)
            )
            if (name := next(fitting, None)) is None:
                break
            names.append(name)
    return None


def _fits(one: Any, other: Any, order: tuple[int, ...]) -> bool:
    """Whether both have the same number of rows."""
    shapes = [[tensor.shape[i] for i in order[:-1]] for tensor in (one, other)]
    return one.dtype == other.dtype and shapes[0] == shapes[1]


def _joined(tensors: Sequence[Any], order: Sequence[int]) -> bytes:
    """The bytes of tensors with their dimensions in another order, of which the rows are one."""
    import torch

    turned = [tensor.detach().permute(*order) for tensor in tensors]
    return _bytes(turned[0] if len(turned) == 1 else torch.cat(turned, -1))


def _heads(tensor: Any) -> Iterator[tuple[tuple[int, ...], bytes]]:
    """For each order of the dimensions: the first bytes."""
    count = ALIGNMENT // tensor.element_size()
    for order in itertools.permutations(range(tensor.dim())):
        part = tensor.permute(order)
        while part.dim() > 1 and part[0].numel() >= count:
            part = part[0]
        yield order, _bytes(part.reshape(-1)[:count])


def _bytes(tensor: Any) -> bytes:
    """Row by row."""
    import torch

    flat = tensor.detach().cpu().contiguous().reshape(-1)
    content: bytes = flat.view(torch.uint8).numpy().tobytes()
    return content

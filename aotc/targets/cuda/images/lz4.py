"""LZ4 blocks → their decompressed bytes.

Source: "LZ4 Block Format Description" (https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md).
nvcc compressed PTX with it up to CUDA 12, and still does with `--compress-mode=speed`.
"""

from __future__ import annotations

from aotc.images.view import damaged

_SHORTEST_MATCH = 4
_MORE = 15
_CHUNK = 1 << 20


def decompress(block: bytes, size: int, name: str) -> bytes:
    """Decompresses `block` to exactly `size` bytes. Raises InputError, which calls it `name`."""
    out = bytearray()
    at, end = 0, len(block)
    try:
        while at < end:
            token = block[at]
            at += 1
            literals, at = _length(block, at, token >> 4)
            if at + literals > end or len(out) + literals > size:
                raise damaged(name, "its LZ4 literals run over")
            out += block[at : at + literals]
            at += literals
            if at == end:
                break  # a block ends with literals
            distance = block[at] | block[at + 1] << 8
            length, at = _length(block, at + 2, token & 0xF)
            length += _SHORTEST_MATCH
            start = len(out) - distance
            if distance == 0 or start < 0 or len(out) + length > size:
                raise damaged(name, "its LZ4 match is not in what came before")
            # A match may overlap its own output: then it repeats.
            while length > 0:
                piece = out[start : start + min(length, _CHUNK)]
                out += piece
                length -= len(piece)
    except IndexError:
        raise damaged(name, "its LZ4 block ends too early") from None
    if len(out) != size:
        raise damaged(name, f"it has {len(out)} bytes without compression, not {size}")
    return bytes(out)


def _length(block: bytes, at: int, length: int) -> tuple[int, int]:
    """The length whose first 4 bits are `length`, and the offset of the byte after it."""
    if length == _MORE:
        while True:
            more = block[at]
            at += 1
            length += more
            if more != 255:
                break
    return length, at

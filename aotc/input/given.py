"""`GivenBinary`: a `gpu.binary` of the input, whose images somebody compiled before."""

from __future__ import annotations

from msgspec import Struct


class GivenImage(Struct, frozen=True):
    """One object of a gpu.binary. `kind` is what `fatbinary` calls it: elf, ptx, or fatbin;
    `number` the chip's, as 90a, by its target or its text."""

    kind: str
    number: str
    data: bytes

    @property
    def built_for(self) -> str:
        return f"{'compute' if self.kind == 'ptx' else 'sm'}_{self.number}"


class GivenBinary(Struct, frozen=True):
    """A gpu.binary of the input: its images, and the kernels that the input launches from it."""

    name: str
    images: tuple[GivenImage, ...]
    kernels: tuple[str, ...]

    @property
    def built_for(self) -> tuple[str, ...]:
        """What is inside, as far as the input says it."""
        return tuple(image.built_for for image in self.images)

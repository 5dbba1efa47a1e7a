"""`GivenBinary`: a `gpu.binary` of the input, whose images were compiled before."""

from __future__ import annotations

from msgspec import Struct


class GivenImage(Struct, frozen=True):
    """One object of a gpu.binary. `kind` is fatbinary's word for it: elf, ptx or fatbin. `number`
    is the chip's number, such as 90a, from the object's target or from its text."""

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
        """The chips of the images, as far as the input has them."""
        return tuple(image.built_for for image in self.images)

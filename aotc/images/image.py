"""`Image`: device code in a file, and its kernels."""

from __future__ import annotations

from msgspec import Struct

from aotc.images.view import View


class DeviceKernel(Struct, frozen=True):
    """A kernel in an image. Sizes are in bytes, None if neither the file nor its manifest has them.

    `stack_bytes` (including spills) and the spills are per thread. `shared_bytes` is per block,
    without dynamic shared memory.
    """

    name: str
    registers: int | None = None
    shared_bytes: int | None = None
    stack_bytes: int | None = None
    spill_stores: int | None = None
    spill_loads: int | None = None
    barriers: int | None = None
    parameter_bytes: int | None = None
    code_bytes: int | None = None
    max_threads: int | None = None
    required_block: tuple[int, int, int] | None = None


class Image(Struct, frozen=True):
    """Device code: `kind` is cubin or ptx, or another kind in a fat binary.

    `chip` is sm_90a, or compute_80 for PTX of version `ptx_version`. `offset` is the position of
    the image (or its fat binary) in the file, `stored_bytes` its size there; `bytes` is its size
    without `compression`. `problem` describes damage, if there is any.
    """

    kind: str
    chip: str
    bytes: int
    stored_bytes: int
    offset: int
    compression: str | None = None
    in_fatbin: bool = False
    ptx_version: str | None = None
    made_by: str | None = None
    kernels: tuple[DeviceKernel, ...] = ()
    problem: str | None = None


class Found(Struct, frozen=True):
    """An image, and its content while the file is open; None if the image is damaged."""

    image: Image
    content: View | None

"""`Image`: device code in a file, and its kernels."""

from __future__ import annotations

from msgspec import Struct

from aotc.images.view import View


class DeviceKernel(Struct, frozen=True):
    """A kernel in an image; sizes in bytes, None where neither the file nor its manifest says.

    `stack_bytes` (with what is spilled) and the spills are a thread's, `shared_bytes` a block's
    without what a launch adds.
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
    """Device code: `kind` is cubin or ptx, or another that a fat binary has.

    `chip` is sm_90a, or compute_80 for PTX of version `ptx_version`. `offset` is where it (or its
    fat binary) begins in the file, `stored_bytes` what it takes there; `bytes` is its size without
    the `compression`. `problem` says what is damaged, where something is.
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
    """An image, and its content while it is looked at; None where it is damaged."""

    image: Image
    content: View | None

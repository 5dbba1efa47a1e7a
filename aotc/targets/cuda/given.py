"""`gpu.binary` in the input: images that were compiled before.

An image is what `mgpuModuleLoad` takes: a cubin, a fatbin or PTX text. Its kind is recognized by
the magic numbers of ELF and of NVIDIA's fat binaries.
"""

from __future__ import annotations

import re
from typing import Any

from aotc import ops
from aotc.analysis.gpu_modules import launched_kernel
from aotc.errors import InputError
from aotc.input.given import GivenBinary, GivenImage
from aotc.input.source import Source
from aotc.mlir import gpu, ir
from aotc.ops import symbol_of
from aotc.targets.cuda.images.cubin import EM_CUDA

_ELF = b"\x7fELF"
_MACHINE = slice(18, 20)  # e_machine
_FATBIN = b"\x50\xed\x55\xba"
_BITCODE = b"BC\xc0\xde"
# gpu.object's format for LLVM bitcode (upstream's CompilationTarget::Offload).
_OFFLOAD = 1


def given_binaries(source: Source) -> tuple[GivenBinary, ...]:
    """The gpu.binary operations of the module. Raises InputError for an object that is not an
    image, and for a launch of a kernel that no image has."""
    found = []
    with source.module.context:
        launches = ops.find(source.module.operation, "gpu.launch_func")
        for operation in ops.body_of_module(source.module).operations:
            binary = operation.operation
            if binary.name != "gpu.binary":
                continue
            images = _read_images(source, binary)
            own = [op for op in launches if launched_kernel(op)[0] == symbol_of(binary)]
            for launch in own:
                _check_kernel(source, launch, images)
            kernels = dict.fromkeys(launched_kernel(launch)[1] for launch in own)
            found.append(GivenBinary(symbol_of(binary), images, tuple(kernels)))
    return tuple(found)


def _read_images(source: Source, binary: Any) -> tuple[GivenImage, ...]:
    objects = list(ir.ArrayAttr(binary.attributes["objects"]))
    handler = str(binary.attributes["offloadingHandler"])
    chosen = re.fullmatch(r"#gpu\.select_object<(\d+)\b.*>", handler)
    if chosen is not None:
        index = int(chosen[1])
        if index >= len(objects):
            raise InputError(
                f"{_where(source, binary)}gpu.binary @{symbol_of(binary)}: #gpu.select_object "
                f"chooses object {index}, and there is {len(objects)}, from 0 on."
            )
        objects = [objects[index]]
    images = tuple(_read_image(source, binary, gpu.ObjectAttr(o)) for o in objects)
    if len(images) > 1 and any(image.kind == "fatbin" for image in images):
        raise InputError(
            f"{_where(source, binary)}gpu.binary @{symbol_of(binary)}: {len(images)} objects to "
            "take, some of them fat binaries: aotc puts cubins and PTX together, or takes one "
            "object. (#gpu.select_object<N : i64> chooses one.)"
        )
    return images


def _read_image(source: Source, binary: Any, attribute: Any) -> GivenImage:
    data, target = bytes(attribute.object), str(attribute.target)
    chip = re.search(r'chip = "sm_(\w+)"', target)
    number = chip[1] if chip is not None else "75"  # the default of #nvvm.target
    if data.startswith(_ELF) and data[_MACHINE] == EM_CUDA.to_bytes(2, "little"):
        return GivenImage("elf", number, data)
    if data.startswith(_FATBIN):
        return GivenImage("fatbin", number, data)
    text = re.search(rb"^\s*\.target\s+sm_(\w+)", data, re.MULTILINE)
    if text is not None:
        return GivenImage("ptx", text[1].decode(), data.rstrip(b"\0"))
    is_code = attribute.format == _OFFLOAD or data.startswith(_BITCODE)
    raise InputError(
        f"{_where(source, binary)}gpu.binary @{symbol_of(binary)} holds "
        + ("LLVM bitcode: " if is_code else "what is no image: ")
        + "aotc takes cubins, fat binaries and PTX there. "
        "(Give the gpu.module instead, and aotc compiles it.)"
    )


def _check_kernel(source: Source, launch: Any, images: tuple[GivenImage, ...]) -> None:
    """Checks that cubins and PTX contain the kernel's name; fat binaries may be compressed."""
    module, kernel = launched_kernel(launch)
    if any(image.kind != "fatbin" and kernel.encode() not in image.data for image in images):
        raise InputError(
            f"{_where(source, launch)}gpu.launch_func: no kernel '{kernel}' in the image of "
            f"gpu.binary @{module}."
        )


def _where(source: Source, operation: Any) -> str:
    place = source.place(operation.location)
    return f"{place}: error: " if place else ""

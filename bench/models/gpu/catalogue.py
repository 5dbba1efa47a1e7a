"""The models that are measured on a GPU: also there where aotc cannot build.

Those of bench.models.models have the same sizes as on the CPU device, and the others their
published ones: T5-base's and Whisper-base's encoders, two layers of Llama 3 8B (a step of decoding
after 4,096 tokens, and a prompt of 2,048), a UNet of Stable Diffusion's shape with half its depth.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.models import models, others

_DTYPES = {"f16": "float16", "f32": "float32"}
# Buffers that the results depend on, beside those that a module makes of its sizes.
_FILLED = ("running_mean", "running_var")
_CACHES = ("keys", "values")


def _t5() -> Any:
    sizes = {"d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
    return models.transformers_case("T5EncoderModel", "T5Config", 128, **sizes, vocab_size=1000)


def _llama_decode(batch: int) -> Any:
    import torch

    from bench.models.gpu import llama

    return models.Case(
        llama.Llama(batch),
        lambda batch, _: {
            "tokens": models.words(llama.VOCABULARY, batch, 1),
            "at": torch.tensor([llama.CACHED - 1]),
        },
    )


def _llama_prefill() -> Any:
    from bench.models.gpu import llama

    def inputs(batch: int, _: int) -> dict[str, Any]:
        return {"tokens": models.words(llama.VOCABULARY, batch, llama.PROMPT)}

    return models.Case(llama.Llama(), inputs)


def _unet() -> Any:
    from bench.models.gpu import unet

    def inputs(batch: int, _: int) -> dict[str, Any]:
        return {
            "image": models.normal(batch, 4, unet.SIDE, unet.SIDE),
            "time": models.normal(batch, unet.WIDTHS[0]),
            "text": models.normal(batch, unet.WORDS, unet.TEXT),
        }

    return models.Case(unet.UNet(), inputs)


def _of_the_cpu(name: str) -> Callable[[int], Any]:
    return lambda _: models.MODELS[name]()


_SHARED = (
    *("resnet18", "resnet50", "mobilenet_v3", "efficientnet"),
    *("vit", "swin", "bert", "lstm", "dlrm"),
)
# The modules may depend on the batch.
MODELS: dict[str, Callable[[int], Any]] = {
    **{name: _of_the_cpu(name) for name in _SHARED},
    "t5": lambda _: _t5(),
    "whisper": lambda _: models.whisper_encoder(512, 6, 8),
    "unet": lambda _: _unet(),
    "llama_decode": _llama_decode,
    "llama_prefill": lambda _: _llama_prefill(),
}


def find(name: str) -> Callable[[int], Any] | None:
    """What makes the model of this name for a batch; None if there is none."""
    other = others.find(name)
    return MODELS.get(name) if other is None else lambda _: other()


def made(
    name: str, batch: int, dtype: str, device: str, *, fills_caches: bool = True
) -> tuple[Any, dict[str, Any]]:
    """The module on a device, and its inputs, which are the same on every machine. Caches that are
    not filled have zeros: a library's state begins with them, and has no constant for them."""
    import torch

    maker = find(name)
    assert maker is not None, name
    with torch.device(device):
        case = maker(batch)
    module = case.module.eval()
    _fill(module, fills_caches=fills_caches)
    with torch.device("cpu"):
        inputs = case.inputs(batch, 0)
    wanted = getattr(torch, _DTYPES[dtype])
    return module.to(device, wanted), {
        key: (x.to(wanted) if x.is_floating_point() else x).to(device) for key, x in inputs.items()
    }


def _fill(module: Any, *, fills_caches: bool) -> None:
    """Random weights by their names and shapes, whatever PyTorch's own are."""
    import torch

    buffers = {name for name, _ in module.named_buffers()}
    with torch.no_grad():
        for name, tensor in module.state_dict(keep_vars=True).items():
            is_cache = name.endswith(_CACHES)
            if is_cache and not fills_caches:
                # Memory that is zero before it is touched.
                tensor.set_(torch.from_numpy(np.zeros(tensor.shape, np.float32)).to(tensor.device))
                continue
            if name in buffers and not is_cache and not name.endswith(_FILLED):
                continue
            shape = (-1, tensor.shape[-1]) if is_cache else tuple(tensor.shape)
            generator = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
            values = generator.random(tensor.numel(), dtype=np.float32).reshape(shape)
            tensor.copy_(torch.from_numpy(_scaled(name, values)).view(tensor.shape))


def _scaled(name: str, values: Any) -> Any:
    """Numbers in 0 to 1 → weights that leave the size of activations about as it is."""
    if name.endswith("running_var"):
        return 1 + values / 2
    values = np.float32(2) * values - np.float32(1)
    if values.ndim > 1:
        return values * np.float32(math.sqrt(3 * values.shape[0] / values.size))
    if name.endswith(("bias", "running_mean")):
        return values * np.float32(0.1)
    return 1 + values * np.float32(0.1)

"""The models that are measured: functions that make each module, and its inputs for a batch.

Images have 224 by 224 pixels. ResNets, MobileNetV3, EfficientNet, Swin-T, ViT-B, BERT-base and
Whisper's encoder have their published sizes; the other transformers have 4 layers of width 256.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# As pytest has it.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from frontends.zoo.catalogue import (  # type: ignore[import-not-found, unused-ignore]
    Case,
    images,
    normal,
    tokens,
    words,
)
from frontends.zoo.stubs import (  # type: ignore[import-not-found, unused-ignore]
    import_torchvision,
)

__all__ = [
    "MODELS",
    "Case",
    "images",
    "import_torchvision",
    "normal",
    "transformers_case",
    "whisper_encoder",
    "words",
]

_SIDE, _VOCABULARY = 224, 1000
_DECODER = {
    "vocab_size": _VOCABULARY,
    "hidden_size": 256,
    "intermediate_size": 688,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "use_cache": False,
    "pad_token_id": 0,
}


def _torchvision(name: str) -> Any:
    return Case(getattr(import_torchvision().models, name)(weights=None), images(_SIDE))


def _import_transformers() -> Any:
    if find_spec("torchvision"):
        import_torchvision()  # transformers imports it, too
    import transformers  # type: ignore[import-not-found, unused-ignore]

    return transformers


def transformers_case(kind: str, config: str, length: int, **options: Any) -> Any:
    transformers = _import_transformers()
    module = getattr(transformers, kind)(getattr(transformers, config)(**options))
    inputs = tokens(_VOCABULARY, ["input_ids"])
    return Case(_returning_tuples(module), lambda batch, _: inputs(batch, length))


def _returning_tuples(module: Any) -> Any:
    """So that a process that runs the model needs no class of transformers. Some models fail where
    their configuration says it."""
    module.forward = partial(module.forward, return_dict=False)
    return module


def _t5_encoder() -> Any:
    options = {"d_model": 256, "d_kv": 64, "d_ff": 1024, "num_layers": 4, "num_heads": 4}
    return transformers_case("T5EncoderModel", "T5Config", 64, vocab_size=_VOCABULARY, **options)


def _gpt2() -> Any:
    options = {"vocab_size": _VOCABULARY, "n_embd": 256, "n_layer": 4, "n_head": 4}
    return transformers_case("GPT2LMHeadModel", "GPT2Config", 64, **options, use_cache=False)


def _mamba() -> Any:
    options = {"vocab_size": _VOCABULARY, "hidden_size": 256, "num_hidden_layers": 2}
    return transformers_case("MambaForCausalLM", "MambaConfig", 16, **options, use_cache=False)


def whisper_encoder(width: int, layers: int, heads: int) -> Any:
    """For 30 seconds of sound."""
    transformers = _import_transformers()
    options = {"d_model": width, "encoder_layers": layers, "encoder_attention_heads": heads}
    options |= {"decoder_attention_heads": heads}
    config = transformers.WhisperConfig(**options, encoder_ffn_dim=4 * width, decoder_layers=1)
    encoder = _returning_tuples(transformers.WhisperModel(config).encoder)
    return Case(encoder, lambda batch, _: {"input_features": normal(batch, 80, 3000)})


def _recurrent(kind: str) -> Any:
    import torch

    layers = getattr(torch.nn, kind)(256, 256, num_layers=2, batch_first=True)
    return Case(layers, lambda batch, _: {"input": normal(batch, 32, 256)})


def _dcgan() -> Any:
    """The generator of Radford et al. (2016), for images of 64 by 64 pixels."""
    from torch import nn

    widths = (512, 256, 128, 64)
    layers: list[Any] = [nn.ConvTranspose2d(100, widths[0], 4, bias=False)]
    for narrow, width in zip(widths, (*widths[1:], 3), strict=True):
        up = nn.ConvTranspose2d(narrow, width, 4, 2, 1, bias=False)
        layers += [nn.BatchNorm2d(narrow), nn.ReLU(), up]
    module = nn.Sequential(*layers, nn.Tanh())
    return Case(module, lambda batch, _: {"input": normal(batch, 100, 1, 1)})


def _dlrm() -> Any:
    from frontends.zoo.others import Dlrm  # type: ignore[import-not-found, unused-ignore]

    def inputs(batch: int, _: int) -> dict[str, Any]:
        return {"dense": normal(batch, 13), "sparse": words(_VOCABULARY, batch, 26, 4)}

    return Case(Dlrm((_VOCABULARY,) * 26, 64), inputs)


def _unet() -> Any:
    from frontends.zoo.others import UNet

    return Case(UNet((32, 64, 128, 256)), images(_SIDE))


MODELS: dict[str, Callable[[], Any]] = {
    "resnet18": lambda: _torchvision("resnet18"),
    "resnet50": lambda: _torchvision("resnet50"),
    "mobilenet_v3": lambda: _torchvision("mobilenet_v3_small"),
    "efficientnet": lambda: _torchvision("efficientnet_b0"),
    "unet": _unet,
    "dcgan": _dcgan,
    "swin": lambda: _torchvision("swin_t"),
    "vit": lambda: _torchvision("vit_b_16"),
    "whisper_encoder": lambda: whisper_encoder(384, 4, 6),
    "bert": lambda: transformers_case("BertModel", "BertConfig", 128),
    "t5_encoder": _t5_encoder,
    "gpt2": _gpt2,
    "llama": lambda: transformers_case("LlamaForCausalLM", "LlamaConfig", 64, **_DECODER),
    "mamba": _mamba,
    "lstm": lambda: _recurrent("LSTM"),
    "gru": lambda: _recurrent("GRU"),
    "dlrm": _dlrm,
}

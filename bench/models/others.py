"""Models that no kernel was made for: those of timm and torchvision by their names there
(`timm.davit_tiny`, `torchvision.densenet121`), those of `MODELS`, and single operations
(`op.softmax_vocab`).

Images have 224 by 224 pixels, or what a model of timm has by default. Transformers have published
widths and a part of their layers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bench.models import models, operations

_WORDS = 1000
_DECODER = {
    "vocab_size": 32000,
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "use_cache": False,
    "pad_token_id": 0,
}
_ENCODER = {"vocab_size": _WORDS, "num_hidden_layers": 4}
_CLIP = {"vocab_size": _WORDS, "num_hidden_layers": 4, "hidden_size": 512, "eos_token_id": 2}


def _recurrent(kind: str, **options: Any) -> Any:
    import torch

    layers = getattr(torch.nn, kind)(256, 256, num_layers=2, batch_first=True, **options)
    return models.Case(layers, lambda batch, _: {"input": models.normal(batch, 64, 256)})


def _wav2vec2() -> Any:
    """A second of sound."""
    sizes = {"num_hidden_layers": 4, "vocab_size": 32}
    case = models.transformers_case("Wav2Vec2Model", "Wav2Vec2Config", 1, **sizes)
    return models.Case(case.module, lambda batch, _: {"input_values": models.normal(batch, 16000)})


def _segformer() -> Any:
    case = models.transformers_case("SegformerModel", "SegformerConfig", 1)
    return models.Case(
        case.module, lambda batch, _: {"pixel_values": models.normal(batch, 3, 224, 224)}
    )


def _of(kind: str, length: int, **options: Any) -> Callable[[], Any]:
    """`kind`: the words of the names of a model and its configuration, apart."""
    model, config = kind.split()
    return partial(models.transformers_case, model, config, length, **options)


MODELS: dict[str, Callable[[], Any]] = {
    "albert": _of(
        "AlbertModel AlbertConfig",
        128,
        **_ENCODER,
        embedding_size=128,
        hidden_size=768,
        num_attention_heads=12,
        intermediate_size=3072,
    ),
    "bart_encoder": _of(
        "BartModel BartConfig",
        128,
        vocab_size=_WORDS,
        encoder_layers=3,
        decoder_layers=3,
        use_cache=False,
    ),
    "bilstm": lambda: _recurrent("LSTM", bidirectional=True),
    "clip_text": _of("CLIPTextModel CLIPTextConfig", 77, **_CLIP),
    "convbert": _of("ConvBertModel ConvBertConfig", 128, **_ENCODER),
    "deberta": _of(
        "DebertaV2Model DebertaV2Config",
        128,
        **_ENCODER,
        hidden_size=768,
        num_attention_heads=12,
        intermediate_size=3072,
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        position_buckets=256,
    ),
    "gemma": _of("GemmaForCausalLM GemmaConfig", 512, **_DECODER, head_dim=128),
    "gpt2_base": _of(
        "GPT2LMHeadModel GPT2Config", 256, vocab_size=_WORDS, n_layer=12, use_cache=False
    ),
    "gpt_neox": _of(
        "GPTNeoXForCausalLM GPTNeoXConfig",
        256,
        vocab_size=_WORDS,
        hidden_size=1024,
        intermediate_size=4096,
        num_attention_heads=16,
        num_hidden_layers=4,
        use_cache=False,
    ),
    "bigru": lambda: _recurrent("GRU", bidirectional=True),
    "mobilebert": _of("MobileBertModel MobileBertConfig", 128, **_ENCODER),
    "opt": _of(
        "OPTForCausalLM OPTConfig", 256, vocab_size=_WORDS, num_hidden_layers=4, use_cache=False
    ),
    "phi3": _of("Phi3ForCausalLM Phi3Config", 512, **_DECODER),
    "qwen3": _of("Qwen3ForCausalLM Qwen3Config", 512, **_DECODER, head_dim=128),
    "segformer": _segformer,
    "squeezebert": _of("SqueezeBertModel SqueezeBertConfig", 128, **_ENCODER),
    "wav2vec2": _wav2vec2,
    "xlnet": _of("XLNetModel XLNetConfig", 128, vocab_size=_WORDS, n_layer=4),
}


def find(name: str) -> Callable[[], Any] | None:
    """What makes the model of this name; None if there is none."""
    package, _, of_it = name.partition(".")
    if package == "op":
        return partial(operations.case, of_it) if of_it in operations.OPERATIONS else None
    maker = {"timm": _timm, "torchvision": _torchvision}.get(package)
    return partial(maker, of_it) if maker is not None and of_it else MODELS.get(name)


def _timm(name: str) -> Any:
    models.import_torchvision()
    import timm  # type: ignore[import-not-found, unused-ignore]

    module = timm.create_model(name)
    return models.Case(module, models.images(module.default_cfg["input_size"][-1]))


def _torchvision(name: str) -> Any:
    module = getattr(models.import_torchvision().models, name)(weights=None)
    return models.Case(module, models.images(224))

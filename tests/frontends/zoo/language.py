"""Text, and text beside images: transformers' models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from frontends.zoo.catalogue import Case, images, mask, model, normal, tokens, words

_WORDS = 99
# As most configurations call them.
_SMALL = {
    "vocab_size": _WORDS,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
_DECODER = {**_SMALL, "max_position_embeddings": 128, "use_cache": False, "pad_token_id": 0}


def _case(kind: str, config: str, inputs: Any = None, **options: Any) -> Case:
    import transformers

    chosen = getattr(transformers, config)(**options)
    return Case(getattr(transformers, kind)(chosen), inputs or tokens(_WORDS))


# --- Encoders -------------------------------------------------------------------------------------


@model("transformers")
def bert() -> Case:
    return _case("BertModel", "BertConfig", **_SMALL)


@model("transformers")
def bert_without_mask() -> Case:
    return _case("BertModel", "BertConfig", tokens(_WORDS, ["input_ids"]), **_SMALL)


@model("transformers")
def bert_for_classification() -> Case:
    return _case("BertForSequenceClassification", "BertConfig", **_SMALL)


@model("transformers")
def distilbert() -> Case:
    options = {"vocab_size": _WORDS, "dim": 64, "hidden_dim": 128, "n_layers": 2, "n_heads": 4}
    return _case("DistilBertForMaskedLM", "DistilBertConfig", **options)


@model("transformers")
def roberta() -> Case:
    return _case("RobertaForTokenClassification", "RobertaConfig", **_SMALL)


@model("transformers")
def electra() -> Case:
    return _case("ElectraModel", "ElectraConfig", **_SMALL, embedding_size=32)


@model("transformers")
def albert() -> Case:
    return _case("AlbertModel", "AlbertConfig", **_SMALL, embedding_size=32)


@model("transformers")
def deberta() -> Case:
    relative = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
    return _case("DebertaModel", "DebertaConfig", **_SMALL, **relative)


@model("transformers")
def deberta_v2() -> Case:
    relative = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8}
    return _case("DebertaV2Model", "DebertaV2Config", **_SMALL, **relative)


@model("transformers")
def modernbert() -> Case:
    return _case("ModernBertModel", "ModernBertConfig", **_SMALL, pad_token_id=0)


# --- Decoders: the whole prompt, without a cache --------------------------------------------------


def _gpt2(inputs: Any = None) -> Case:
    options = {"vocab_size": _WORDS, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128}
    return _case("GPT2LMHeadModel", "GPT2Config", inputs, **options, use_cache=False)


@model("transformers")
def gpt2() -> Case:
    return _gpt2()


@model("transformers")
def gpt2_without_mask() -> Case:
    return _gpt2(tokens(_WORDS, ["input_ids"]))


@model("transformers")
def opt() -> Case:
    options = {**_DECODER, "ffn_dim": 128, "word_embed_proj_dim": 64}
    return _case("OPTForCausalLM", "OPTConfig", **options)


@model("transformers")
def gpt_neox() -> Case:
    return _case("GPTNeoXForCausalLM", "GPTNeoXConfig", **_DECODER)


@model("transformers")
def bloom() -> Case:
    options = {"vocab_size": _WORDS, "hidden_size": 64, "n_layer": 2, "n_head": 4}
    return _case("BloomForCausalLM", "BloomConfig", **options, use_cache=False)


@model("transformers")
def llama() -> Case:
    return _case("LlamaForCausalLM", "LlamaConfig", **_DECODER, num_key_value_heads=2)


@model("transformers")
def llama_without_mask() -> Case:
    inputs = tokens(_WORDS, ["input_ids"])
    return _case("LlamaForCausalLM", "LlamaConfig", inputs, **_DECODER, num_key_value_heads=2)


@model("transformers")
def mistral() -> Case:
    options = {**_DECODER, "num_key_value_heads": 2, "sliding_window": 8}
    return _case("MistralForCausalLM", "MistralConfig", **options)


@model("transformers")
def qwen2() -> Case:
    return _case("Qwen2ForCausalLM", "Qwen2Config", **_DECODER, num_key_value_heads=2)


@model("transformers")
def qwen3() -> Case:
    options = {**_DECODER, "num_key_value_heads": 2, "head_dim": 16}
    return _case("Qwen3ForCausalLM", "Qwen3Config", **options)


@model("transformers")
def gemma() -> Case:
    options = {**_DECODER, "num_key_value_heads": 1, "head_dim": 16}
    return _case("GemmaForCausalLM", "GemmaConfig", **options)


@model("transformers")
def gemma2() -> Case:
    options = {**_DECODER, "num_key_value_heads": 2, "head_dim": 16, "sliding_window": 8}
    return _case("Gemma2ForCausalLM", "Gemma2Config", **options)


@model("transformers")
def gemma3() -> Case:
    options = {**_DECODER, "num_key_value_heads": 2, "head_dim": 16, "sliding_window": 8}
    return _case("Gemma3ForCausalLM", "Gemma3TextConfig", **options)


@model("transformers")
def phi() -> Case:
    return _case("PhiForCausalLM", "PhiConfig", **_DECODER)


@model("transformers")
def phi3() -> Case:
    return _case("Phi3ForCausalLM", "Phi3Config", **_DECODER, num_key_value_heads=2)


def _experts(case: Case) -> Case:
    """PyTorch's product of groups has no f64."""

    def widen(module: Any) -> None:
        module.config._experts_implementation = "batched_mm"

    return replace(case, widen=widen)


@model("transformers")
def mixtral() -> Case:
    options = {**_DECODER, "num_key_value_heads": 2, "num_local_experts": 4}
    return _experts(_case("MixtralForCausalLM", "MixtralConfig", **options))


@model("transformers")
def qwen2_moe() -> Case:
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    options = {**_DECODER, "num_key_value_heads": 2, "shared_expert_intermediate_size": 64}
    return _experts(_case("Qwen2MoeForCausalLM", "Qwen2MoeConfig", **options, **experts))


@model("transformers")
def mamba() -> Case:
    options = {"vocab_size": _WORDS, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8}
    inputs = tokens(_WORDS, ["input_ids"])
    return _case("MambaForCausalLM", "MambaConfig", inputs, **options, use_cache=False)


# --- Encoders and decoders ------------------------------------------------------------------------


def _pairs(batch: int, length: int) -> dict[str, Any]:
    return {
        "input_ids": words(_WORDS, batch, length),
        "attention_mask": mask(batch, length),
        "decoder_input_ids": words(_WORDS - 1, batch, length - 4),
    }


_T5 = {"vocab_size": _WORDS, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2}


@model("transformers")
def t5_encoder() -> Case:
    return _case("T5EncoderModel", "T5Config", **_T5, num_heads=4)


@model("transformers")
def t5() -> Case:
    options = {**_T5, "num_heads": 4, "use_cache": False, "decoder_start_token_id": 0}
    return _case("T5ForConditionalGeneration", "T5Config", _pairs, **options)


def _layers(width: int = 64) -> dict[str, Any]:
    both = ("encoder", "decoder")
    return {
        "d_model": width,
        **{f"{one}_layers": 2 for one in both},
        **{f"{one}_attention_heads": 4 for one in both},
        **{f"{one}_ffn_dim": 2 * width for one in both},
    }


@model("transformers")
def bart() -> Case:
    options = {"vocab_size": _WORDS, "max_position_embeddings": 128, "use_cache": False}
    return _case("BartForConditionalGeneration", "BartConfig", _pairs, **_layers(), **options)


# --- Images ---------------------------------------------------------------------------------------

_VISION = {key: value for key, value in _SMALL.items() if key != "vocab_size"}
_PATCHES = {**_VISION, "image_size": 32, "patch_size": 8}


def _text_and_images(names: tuple[str, ...]) -> Any:
    def inputs(batch: int, length: int) -> dict[str, Any]:
        return {**tokens(_WORDS, names)(batch, length), "pixel_values": normal(batch, 3, 32, 32)}

    return inputs


@model("transformers")
def clip() -> Case:
    text = {**_SMALL, "max_position_embeddings": 32, "eos_token_id": 98, "bos_token_id": 97}
    options = {"text_config": text, "vision_config": _PATCHES, "projection_dim": 32}
    inputs = _text_and_images(("input_ids", "attention_mask"))
    return _case("CLIPModel", "CLIPConfig", inputs, **options)


@model("transformers")
def siglip() -> Case:
    text = {**_SMALL, "max_position_embeddings": 32, "projection_size": 64}
    inputs = _text_and_images(("input_ids",))
    return _case("SiglipModel", "SiglipConfig", inputs, text_config=text, vision_config=_PATCHES)


@model("transformers")
def transformers_vit() -> Case:
    inputs = images(32, "pixel_values")
    return _case("ViTForImageClassification", "ViTConfig", inputs, **_PATCHES)


@model("transformers")
def dinov2() -> Case:
    inputs = images(32, "pixel_values")
    return _case("Dinov2Model", "Dinov2Config", inputs, **_PATCHES)


@model("transformers", "timm")
def detr() -> Case:
    import transformers
    from frontends.zoo.stubs import import_torchvision

    import_torchvision()
    backbone = transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], out_features=["stage2"]
    )
    options = {"use_timm_backbone": False, "backbone": None, "use_pretrained_backbone": False}
    config = transformers.DetrConfig(
        backbone_config=backbone, num_queries=8, num_labels=5, **_layers(), **options
    )
    module = transformers.DetrForObjectDetection(config)
    return Case(module, images(64, "pixel_values"))


@model("transformers")
def segformer() -> Case:
    options = {
        "num_encoder_blocks": 2,
        "depths": [1, 1],
        "sr_ratios": [4, 2],
        "hidden_sizes": [16, 32],
        "patch_sizes": [7, 3],
        "strides": [4, 2],
        "num_attention_heads": [1, 2],
        "mlp_ratios": [2, 2],
        "decoder_hidden_size": 32,
    }
    inputs = images(64, "pixel_values")
    return _case("SegformerForSemanticSegmentation", "SegformerConfig", inputs, **options)


@model("transformers")
def sam_encoder() -> Case:
    options = {**_VISION, "image_size": 64, "patch_size": 8, "output_channels": 32}
    options = {**options, "mlp_dim": 128, "window_size": 3, "global_attn_indexes": [1]}
    inputs = images(64, "pixel_values")
    return _case("SamVisionModel", "SamVisionConfig", inputs, **options)

"""Speech: transformers' models of sounds."""

from __future__ import annotations

from typing import Any

from frontends.zoo.catalogue import Case, model, normal, words
from frontends.zoo.language import _layers


@model("transformers")
def whisper() -> Case:
    import transformers

    config = transformers.WhisperConfig(
        vocab_size=99,
        num_mel_bins=16,
        max_source_positions=32,
        max_target_positions=32,
        use_cache=False,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        suppress_tokens=None,
        begin_suppress_tokens=None,
        **_layers(),
    )

    def inputs(batch: int, length: int) -> dict[str, Any]:
        return {
            "input_features": normal(batch, 16, 64),
            "decoder_input_ids": words(99, batch, length),
        }

    return Case(transformers.WhisperForConditionalGeneration(config), inputs)


def _wav2vec2(**options: Any) -> Any:
    import transformers

    return transformers.Wav2Vec2Config(
        vocab_size=30,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        conv_dim=(32, 32, 32),
        conv_stride=(5, 2, 2),
        conv_kernel=(10, 3, 2),
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
        **options,
    )


def _samples(batch: int, length: int) -> dict[str, Any]:
    return {"input_values": normal(batch, 100 * length)}


@model("transformers")
def wav2vec2() -> Case:
    import transformers

    return Case(transformers.Wav2Vec2ForCTC(_wav2vec2()), _samples)


@model("transformers")
def wav2vec2_with_norms() -> Case:
    """As the large ones are: norms of layers first."""
    import transformers

    config = _wav2vec2(feat_extract_norm="layer", do_stable_layer_norm=True, conv_bias=True)
    return Case(transformers.Wav2Vec2Model(config), _samples)

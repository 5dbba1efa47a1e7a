"""Diffusion: diffusers' models."""

from __future__ import annotations

from typing import Any

from frontends.zoo.catalogue import Case, images, model, normal, words


@model("diffusers")
def diffusers_unet() -> Case:
    import diffusers

    module = diffusers.UNet2DConditionModel(
        sample_size=16,
        block_out_channels=(32, 64),
        layers_per_block=1,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=32,
        attention_head_dim=8,
    )

    def inputs(batch: int, length: int) -> dict[str, Any]:
        return {
            "sample": normal(batch, 4, 16, 16),
            "timestep": words(1000, batch),
            "encoder_hidden_states": normal(batch, length, 32),
        }

    return Case(module, inputs)


@model("diffusers")
def unconditional_unet() -> Case:
    import diffusers

    module = diffusers.UNet2DModel(
        sample_size=16,
        block_out_channels=(32, 64),
        layers_per_block=1,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )

    def inputs(batch: int, _: int) -> dict[str, Any]:
        return {"sample": normal(batch, 3, 16, 16), "timestep": words(1000, batch)}

    return Case(module, inputs)


def _vae() -> Any:
    import diffusers

    return diffusers.AutoencoderKL(
        block_out_channels=(32, 64),
        layers_per_block=1,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        norm_num_groups=8,
        sample_size=32,
    )


@model("diffusers")
def vae() -> Case:
    """Encoder and decoder, by way of the mean."""
    return Case(_vae(), images(32, "sample"))


@model("diffusers")
def dit() -> Case:
    import diffusers

    module = diffusers.DiTTransformer2DModel(
        sample_size=8,
        num_attention_heads=2,
        attention_head_dim=16,
        num_layers=2,
        num_embeds_ada_norm=10,
        norm_num_groups=8,
    )

    def inputs(batch: int, _: int) -> dict[str, Any]:
        return {
            "hidden_states": normal(batch, 4, 8, 8),
            "timestep": words(1000, batch),
            "class_labels": words(10, batch),
        }

    return Case(module, inputs)


@model("diffusers")
def flux() -> Case:
    """A transformer of texts and images with rotary embeddings."""
    import diffusers
    import torch

    module = diffusers.FluxTransformer2DModel(
        patch_size=1,
        in_channels=16,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=32,
        pooled_projection_dim=32,
        axes_dims_rope=(4, 4, 8),
    )

    def inputs(batch: int, length: int) -> dict[str, Any]:
        return {
            "hidden_states": normal(batch, 16, 16),
            "encoder_hidden_states": normal(batch, length, 32),
            "pooled_projections": normal(batch, 32),
            "timestep": normal(batch).abs(),
            "img_ids": torch.arange(48).reshape(16, 3).float(),
            "txt_ids": torch.zeros(length, 3),
        }

    return Case(module, inputs)

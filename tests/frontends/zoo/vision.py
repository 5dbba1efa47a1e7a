"""Images: torchvision's and timm's models."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from frontends.zoo.catalogue import Case, images, model
from frontends.zoo.stubs import import_torchvision


def _torchvision(name: str, side: int = 64, **options: Any) -> Case:
    models = import_torchvision().models
    return Case(getattr(models, name)(weights=None, num_classes=10, **options), images(side))


def _timm(name: str, side: int = 64, **options: Any) -> Case:
    import_torchvision()
    import timm

    return Case(timm.create_model(name, num_classes=10, **options), images(side))


@model("torchvision")
def resnet18() -> Case:
    return _torchvision("resnet18")


@model("torchvision")
def resnet50() -> Case:
    return _torchvision("resnet50")


@model("torchvision")
def regnet() -> Case:
    return _torchvision("regnet_y_400mf")


@model("torchvision")
def mobilenet_v2() -> Case:
    return _torchvision("mobilenet_v2")


@model("torchvision")
def mobilenet_v3() -> Case:
    return _torchvision("mobilenet_v3_small")


@model("torchvision")
def mnasnet() -> Case:
    return _torchvision("mnasnet0_5")


@model("torchvision")
def squeezenet() -> Case:
    return _torchvision("squeezenet1_1")


@model("torchvision")
def efficientnet() -> Case:
    return _torchvision("efficientnet_b0")


@model("torchvision")
def shufflenet() -> Case:
    return _torchvision("shufflenet_v2_x0_5")


@model("torchvision")
def googlenet() -> Case:
    return _torchvision("googlenet", init_weights=False, aux_logits=False)


@model("torchvision")
def inception() -> Case:
    return _torchvision("inception_v3", 96, init_weights=False, aux_logits=False)


@model("torchvision")
def densenet() -> Case:
    models = import_torchvision().models
    module = models.DenseNet(8, (2, 3, 2), 16, num_classes=10)
    return Case(module, images(64))


@model("torchvision")
def convnext() -> Case:
    convnext = import_torchvision().models.convnext
    blocks = [convnext.CNBlockConfig(24, 48, 1), convnext.CNBlockConfig(48, None, 2)]
    return Case(convnext.ConvNeXt(blocks, num_classes=10), images(64))


@model("torchvision")
def vit() -> Case:
    models = import_torchvision().models
    return Case(models.VisionTransformer(32, 8, 2, 4, 64, 128, num_classes=10), images(32))


@model("torchvision")
def swin() -> Case:
    module = import_torchvision().models.SwinTransformer(
        [4, 4], 24, [2, 2], [2, 4], [4, 4], num_classes=10
    )
    return Case(module, images(64))


@model("torchvision")
def swin_v2() -> Case:
    swin = import_torchvision().models.swin_transformer
    module = swin.SwinTransformer(
        *([4, 4], 24, [2, 2], [2, 4], [4, 4]),
        num_classes=10,
        block=swin.SwinTransformerBlockV2,
        downsample_layer=swin.PatchMergingV2,
    )
    return Case(module, images(64))


@model("torchvision")
def maxvit() -> Case:
    module = import_torchvision().models.MaxVit(
        (64, 64), 16, 4, [16, 32], [1, 1], 8, 0.0, num_classes=10
    )
    return Case(module, images(64))


@model("timm")
def timm_resnet() -> Case:
    return _timm("resnet10t")


@model("timm")
def timm_regnet() -> Case:
    return _timm("regnetx_002")


@model("timm")
def timm_mobilenet_v4() -> Case:
    return _timm("mobilenetv4_conv_small_050")


@model("timm")
def timm_efficientnet() -> Case:
    return _timm("efficientnet_lite0")


@model("timm")
def timm_convnext() -> Case:
    return _timm("convnext_atto", depths=(1, 1, 2, 1))


@model("timm")
def timm_densenet() -> Case:
    return _timm("densenet121", growth_rate=8, block_config=(2, 3, 2))


@model("timm")
def deit() -> Case:
    return _timm("deit_tiny_distilled_patch16_224", img_size=64, depth=2)


@model("timm")
def timm_vit() -> Case:
    return _timm("vit_tiny_patch16_224", img_size=64, depth=2)


@model("timm")
def timm_swin() -> Case:
    options = {"img_size": 64, "window_size": 4, "embed_dim": 24, "depths": (2, 2)}
    return _timm("swin_tiny_patch4_window7_224", num_heads=(2, 4), **options)


@model("timm")
def timm_maxvit() -> Case:
    return _timm("maxvit_rmlp_pico_rw_256", img_size=64)


@model("timm")
def timm_inception() -> Case:
    return _timm("inception_v3", 96)


@model("timm")
def beit() -> Case:
    options = {"img_size": 64, "depth": 2, "embed_dim": 64, "num_heads": 4}
    return _timm("beit_base_patch16_224", **options)


@model("timm")
def mixer() -> Case:
    import_torchvision()
    import timm

    module = timm.models.mlp_mixer.MlpMixer(10, 32, 3, 8, num_blocks=2, embed_dim=64)
    return Case(module, images(32))


@model("timm")
def mobilevit() -> Case:
    return _timm("mobilevit_xxs")


@model("timm")
def eva() -> Case:
    """With rotary embeddings and SwiGLU."""
    return _timm("eva02_tiny_patch14_224", 56, img_size=56, depth=2)


# --- Segmentation ---------------------------------------------------------------------------------


def _segmentation(name: str, **options: Any) -> Case:
    make = getattr(import_torchvision().models.segmentation, name)
    return Case(make(weights=None, weights_backbone=None, num_classes=5, **options), images(64))


@model("torchvision")
def deeplab() -> Case:
    return _segmentation("deeplabv3_mobilenet_v3_large")


@model("torchvision")
def fcn() -> Case:
    return _segmentation("fcn_resnet50")


@model("torchvision")
def lraspp() -> Case:
    return Case(_segmentation("lraspp_mobilenet_v3_large").module, images(64, "input"))


# --- Optical flow ---------------------------------------------------------------------------------


_TWICE = {"num_flow_updates": 2}


@model("torchvision")
def raft() -> Case:
    module = import_torchvision().models.optical_flow.raft_small(weights=None)

    def inputs(batch: int, _: int) -> dict[str, Any]:
        frames = images(128)(2 * batch, 0)["x"].clamp(-1, 1)
        return {"image1": frames[:batch], "image2": frames[batch:].clone(), **_TWICE}

    def widen(wide: Any) -> None:
        """Its coordinates are f32 whatever its weights are."""
        raft = import_torchvision().models.optical_flow.raft
        make, forward = raft.make_coords_grid, wide.forward

        def forward_in_f64(*images: Any, **options: Any) -> Any:
            with patch.object(raft, "make_coords_grid", lambda *sizes: make(*sizes).double()):
                return forward(*images, **options)

        wide.forward = forward_in_f64

    return Case(module, inputs, (1, 1), widen)

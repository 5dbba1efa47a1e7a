"""Boxes in images: the detectors of torchvision, whole, with their decoding and suppression."""

from __future__ import annotations

from typing import Any

from frontends.zoo.catalogue import Case, model, uniform
from frontends.zoo.stubs import import_torchvision


def _images(side: int) -> Any:
    return lambda batch, _: {"images": list(uniform(batch, 3, side, side).unbind())}


@model("torchvision")
def ssdlite() -> Case:
    detection = import_torchvision().models.detection
    module = detection.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=4, detections_per_img=10
    )
    return Case(module, _images(96), (1, 1))


@model("torchvision")
def retinanet() -> Case:
    torchvision = import_torchvision()
    backbone = torchvision.models.detection.backbone_utils.resnet_fpn_backbone(
        backbone_name="resnet18",
        weights=None,
        returned_layers=[2, 3, 4],
        extra_blocks=torchvision.ops.feature_pyramid_network.LastLevelP6P7(256, 256),
    )
    options = {"num_classes": 4, "min_size": 64, "max_size": 96, "detections_per_img": 10}
    module = torchvision.models.detection.RetinaNet(backbone, **options)
    return Case(module, _images(64), (1, 1))


@model("torchvision")
def retinanet_heads() -> Case:
    """Without decoding: scores and offsets of all anchors."""
    whole = retinanet().module

    import torch

    class Heads(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.backbone, self.head = whole.backbone, whole.head

        def forward(self, x: Any) -> Any:
            return self.head(list(self.backbone(x).values()))

    return Case(Heads(), lambda batch, _: {"x": uniform(batch, 3, 64, 64)})

"""Classifiers and segmenters of torchvision."""

import numpy
import torch
from torchvision import models

from devkit.zoo_models import Case


def images(size, classes=10, batch=4):
    g = numpy.random.default_rng(0)
    return {"x": g.standard_normal((batch, 3, size, size)).astype("f4"), "labels": g.integers(0, classes, batch)}


def pixels(size, classes, batch=4):
    g = numpy.random.default_rng(0)
    return {"x": g.standard_normal((batch, 3, size, size)).astype("f4"), "labels": g.integers(0, classes, (batch, size, size))}


def logits(module, x):
    found = module(x)
    if isinstance(found, torch.Tensor):
        return found
    if isinstance(found, dict):
        return found["out"]
    return getattr(found, "logits", None) if hasattr(found, "logits") else found[0]


def classifier(name, family, size=64, make=None, **options):
    make = make or getattr(models, name)
    return Case("torchvision/" + name, family, lambda: make(weights=None, num_classes=10, **options), lambda: images(size), logits)


def regnet(se):
    from torchvision.models.regnet import BlockParams, RegNet

    widths = BlockParams.from_init_params(depth=6, w_0=16, w_a=8.0, w_m=2.2, group_width=8, se_ratio=0.25 if se else None)
    return lambda weights, num_classes: RegNet(widths, num_classes=num_classes)


def convnext(weights, num_classes):
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    return ConvNeXt([CNBlockConfig(16, 32, 2), CNBlockConfig(32, None, 2)], num_classes=num_classes, stochastic_depth_prob=0.0)


def swin(version):
    from torchvision.models import swin_transformer as s

    block, merging = (s.SwinTransformerBlockV2, s.PatchMergingV2) if version == 2 else (s.SwinTransformerBlock, s.PatchMerging)
    return lambda weights, num_classes: s.SwinTransformer(
        patch_size=[4, 4], embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=[4, 4], stochastic_depth_prob=0.0, num_classes=num_classes, block=block, downsample_layer=merging
    )


def vit(weights, num_classes):
    return models.VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=32, mlp_dim=64, num_classes=num_classes)


def maxvit(weights, num_classes):
    from torchvision.models.maxvit import MaxVit

    return MaxVit((32, 32), stem_channels=8, partition_size=4, block_channels=[8, 16], block_layers=[1, 1], head_dim=8, stochastic_depth_prob=0.0, num_classes=num_classes)


def resnet(block, layers, **options):
    from torchvision.models import resnet as r

    return lambda weights, num_classes: r.ResNet(getattr(r, block), layers, num_classes=num_classes, **options)


def vgg(batch_norm):
    from torchvision.models.vgg import make_layers

    def make(weights, num_classes):
        body = models.VGG(make_layers([16, "M", 24, 24, "M", 32, "M"], batch_norm), num_classes=num_classes)
        body.avgpool, body.classifier[0], body.classifier[3] = torch.nn.AdaptiveAvgPool2d(2), torch.nn.Linear(128, 32), torch.nn.Linear(32, 32)
        body.classifier[6] = torch.nn.Linear(32, num_classes)
        return body

    return make


def densenet(weights, num_classes):
    return models.DenseNet(growth_rate=8, block_config=(2, 2), num_init_features=16, num_classes=num_classes)


def video(name):
    def feeds():
        g = numpy.random.default_rng(0)
        return {"x": g.standard_normal((2, 3, 4, 32, 32)).astype("f4"), "labels": g.integers(0, 10, 2)}

    return Case("torchvision/" + name, "video", lambda: getattr(models.video, name)(weights=None, num_classes=10), feeds, logits)


def segmenter(name, **options):
    make = getattr(models.segmentation, name)
    return Case("torchvision/" + name, "segmentation", lambda: make(weights=None, weights_backbone=None, num_classes=5, **options), lambda: pixels(64, 5), logits)


CASES = [
    classifier("vgg", "vgg", 32, make=vgg(False)),
    classifier("vgg_bn", "vgg", 32, make=vgg(True)),
    classifier("resnet-basic", "resnet", make=resnet("BasicBlock", [1, 1, 1, 1])),
    classifier("resnet-bottleneck", "resnet", make=resnet("Bottleneck", [1, 1, 1, 1], width_per_group=16)),
    classifier("resnext-bottleneck", "resnet", make=resnet("Bottleneck", [1, 1, 1, 1], groups=4, width_per_group=8)),
    classifier("resnet-zero-init", "resnet", make=resnet("Bottleneck", [1, 1, 1, 1], width_per_group=16, zero_init_residual=True)),
    classifier("densenet", "densenet", make=densenet),
    classifier("mobilenet_v2", "mobilenet", width_mult=0.25),
    classifier("mobilenet_v3_small", "mobilenet", width_mult=0.5),
    classifier("mobilenet_v3_large", "mobilenet", width_mult=0.25),
    classifier("efficientnet_b0", "efficientnet", stochastic_depth_prob=0.0),
    classifier("shufflenet_v2_x0_5", "shufflenet"),
    classifier("squeezenet1_0", "squeezenet", 64),
    classifier("squeezenet1_1", "squeezenet", 64),
    classifier("googlenet", "inception", 64, init_weights=False, aux_logits=False),
    classifier("inception_v3", "inception", 128, init_weights=False, aux_logits=False),
    classifier("mnasnet0_5", "mnasnet"),
    classifier("regnet_x", "regnet", make=regnet(False)),
    classifier("regnet_y", "regnet", make=regnet(True)),
    classifier("convnext", "convnext", make=convnext),
    classifier("swin", "swin", make=swin(1)),
    classifier("swin_v2", "swin", make=swin(2)),
    classifier("vit", "vit", 32, make=vit),
    classifier("maxvit", "maxvit", 32, make=maxvit),
    segmenter("fcn_resnet50"),
    segmenter("deeplabv3_mobilenet_v3_large"),
    segmenter("lraspp_mobilenet_v3_large"),
    video("r3d_18"),
]

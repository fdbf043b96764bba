"""Further models of pictures and videos of transformers."""

import functools

import numpy

from devkit.zoo_models import Case
from devkit.zoo_models.transformers_makers import CLASSES, VISION, case, logits_of_pictures, make, pictures, vision

# Pyramids of four stages.
STAGES = dict(hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 2, 2])
DETR = dict(d_model=32, encoder_layers=1, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, num_queries=6, num_labels=CLASSES, use_timm_backbone=False, use_pretrained_backbone=False, encoder_layerdrop=0.0, decoder_layerdrop=0.0)
RESNET = dict(model_type="resnet", embedding_size=16, hidden_sizes=[16, 24, 32, 32], depths=[1, 1, 1, 1], layer_type="basic", out_features=["stage4"])
SMALL = dict(hidden_size=32, num_hidden_layers=4, num_attention_heads=4, intermediate_size=48, image_size=32, patch_size=8)


def boxes_of(queries, size=32):
    return functools.partial(pictures, size, shape=(4, queries))


def logits_of_queries(module, pixel_values):
    return module(pixel_values=pixel_values).logits[..., :CLASSES]


def distances(size=32, shape=None):
    made, g = pictures(size), numpy.random.default_rng(1)
    return {"pixel_values": made["pixel_values"], "depth": g.random(shape or (4, size, size)).astype("f4")}


def mean_distance(module, pixel_values, depth):
    return (module(pixel_values=pixel_values).predicted_depth - depth).abs().mean()


def depth_case(name, kind, config, options, size=32, shape=None):
    return Case("transformers/" + name, "vision", functools.partial(make, kind, config, **options), functools.partial(distances, size, shape), mean_distance, ends_in_loss=True)


def segmenter(name, kind, config, options, shape, size=32):
    return Case("transformers/" + name, "vision", functools.partial(make, kind, config, **options, num_labels=CLASSES), functools.partial(pictures, size, shape=(4, *shape)), logits_of_pictures)


def videos(frames=4, size=16):
    g = numpy.random.default_rng(0)
    return {"pixel_values": g.standard_normal((2, frames, 3, size, size)).astype("f4"), "labels": g.integers(0, CLASSES, 2)}


def video(name, prefix, frames=4, **options):
    sizes = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=16, patch_size=8, num_frames=frames, num_labels=CLASSES)
    return case(name, "video", prefix + "ForVideoClassification", prefix + "Config", sizes | options, functools.partial(videos, frames), logits_of_pictures)


def noisy():
    """Pictures, and the order in which patches are hidden."""
    made, g = pictures(), numpy.random.default_rng(1)
    return {"pixel_values": made["pixel_values"], "noise": g.random((4, 16)).astype("f4")}


def picture_features(name, kind, config, options, size=32, channels=3):
    """A model without a head: the mean of the squares of what it gives."""
    return Case("transformers/" + name, "vision", functools.partial(make, kind, config, **options), lambda: {"pixel_values": pictures(size, channels)["pixel_values"]}, lambda m, p: m(pixel_values=p).last_hidden_state.square().mean(), ends_in_loss=True)


CASES = [
    vision("clip-classes", "CLIP", vision_config=VISION, text_config=dict(hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=48, vocab_size=16)),
    vision("siglip-classes", "Siglip", vision_config=VISION, text_config=dict(hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=48, vocab_size=16)),
    vision("cvt", "Cvt", embed_dim=[16, 24, 32], num_heads=[1, 2, 2], depth=[1, 2, 3], drop_path_rate=[0.0, 0.0, 0.0], drop_rate=[0.0, 0.0, 0.0]),
    vision("donut-swin", "DonutSwin", image_size=32, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4, drop_path_rate=0.0),
    vision("hiera", "Hiera", image_size=[32, 32], patch_kernel=[7, 7], patch_stride=[4, 4], patch_padding=[3, 3], embed_dim=16, depths=[1, 1, 1], num_heads=[1, 2, 4], embed_dim_multiplier=2.0, num_query_pool=1, query_stride=[2, 2], masked_unit_size=[4, 4], masked_unit_attention=[True, False, False], drop_path_rate=0.0),
    vision("mobilenet-v2-wide", "MobileNetV2", size=64, image_size=64, depth_multiplier=0.35, finegrained_output=False),
    vision("perceiver-pixels", "Perceiver", kind="ForImageClassificationConvProcessing", d_latents=32, num_latents=4, num_blocks=1, num_self_attends_per_block=1, num_self_attention_heads=4, num_cross_attention_heads=1, image_size=56),
    Case("transformers/pp-lcnet", "vision", functools.partial(make, "PPLCNetForImageClassification", "PPLCNetConfig", scale=0.25, divisor=4, class_expand=64, num_labels=CLASSES), functools.partial(pictures, 64), lambda m, p: m(pixel_values=p).last_hidden_state),
    vision("textnet", "TextNet", stem_out_channels=8, image_size=[32, 32], hidden_sizes=[8, 16, 16, 32, 32], conv_layer_kernel_sizes=[[[3, 3]], [[3, 3], [1, 3]], [[3, 3]], [[3, 3], [3, 1]]], conv_layer_strides=[[2], [2, 1], [2], [2, 1]]),
    vision("beit-absolute", "Beit", **VISION, use_absolute_position_embeddings=True, use_mask_token=False, layer_scale_init_value=0.1, use_mean_pooling=False, drop_path_rate=0.0),
    Case("transformers/vit-mae", "vision", functools.partial(make, "ViTMAEForPreTraining", "ViTMAEConfig", **dict(VISION, decoder_hidden_size=32, decoder_num_hidden_layers=1, decoder_num_attention_heads=4, decoder_intermediate_size=48)), noisy, lambda m, p, noise: m(pixel_values=p, noise=noise).loss, ends_in_loss=True),
    picture_features("vitdet", "VitDetModel", "VitDetConfig", dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, mlp_ratio=2, image_size=32, pretrain_image_size=32, patch_size=8, window_block_indices=[0], window_size=2, residual_block_indices=[1], use_relative_position_embeddings=True)),
    picture_features("aimv2", "Aimv2VisionModel", "Aimv2VisionConfig", VISION),
    picture_features("mlcd", "MLCDVisionModel", "MLCDVisionConfig", VISION),
    picture_features("dinov3", "DINOv3ViTModel", "DINOv3ViTConfig", dict(VISION, num_register_tokens=2, layerscale_value=0.1)),
    picture_features("dinov3-convnext", "DINOv3ConvNextModel", "DINOv3ConvNextConfig", dict(hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 1, 1], image_size=32)),
    picture_features("clip-vision", "CLIPVisionModel", "CLIPVisionConfig", VISION),
    picture_features("blip2-vision", "Blip2VisionModel", "Blip2VisionConfig", VISION),
    picture_features("sam-vision", "SamVisionModel", "SamVisionConfig", dict(VISION, output_channels=16, window_size=2, global_attn_indexes=[1], use_rel_pos=True, use_abs_pos=True, mlp_dim=48)),
    picture_features("swin2sr-body", "Swin2SRModel", "Swin2SRConfig", dict(image_size=16, patch_size=1, num_channels=3, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4, drop_path_rate=0.0, upscale=2), size=16),
    picture_features("convnext-body", "ConvNextModel", "ConvNextConfig", dict(hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 1, 1])),
    # Detectors: the classes of their queries.
    Case("transformers/detr", "vision", functools.partial(make, "DetrForObjectDetection", "DetrConfig", **DETR, backbone_config=RESNET), boxes_of(6, 64), logits_of_queries),
    Case("transformers/conditional-detr", "vision", functools.partial(make, "ConditionalDetrForObjectDetection", "ConditionalDetrConfig", **DETR, backbone_config=RESNET), boxes_of(6, 64), logits_of_queries),
    Case("transformers/dab-detr", "vision", functools.partial(make, "DabDetrForObjectDetection", "DabDetrConfig", **dict(DETR, hidden_size=32), backbone_config=RESNET), boxes_of(6, 64), logits_of_queries),
    Case("transformers/deformable-detr", "vision", functools.partial(make, "DeformableDetrForObjectDetection", "DeformableDetrConfig", **DETR, backbone_config=dict(RESNET, out_features=["stage2", "stage3", "stage4"]), num_feature_levels=3), boxes_of(6, 64), logits_of_queries),
    Case("transformers/table-transformer", "vision", functools.partial(make, "TableTransformerForObjectDetection", "TableTransformerConfig", **DETR, backbone_config=RESNET), boxes_of(6, 64), logits_of_queries),
    Case("transformers/rt-detr", "vision", functools.partial(make, "RTDetrForObjectDetection", "RTDetrConfig", d_model=32, encoder_hidden_dim=32, encoder_in_channels=[24, 32, 32], feat_strides=[8, 16, 32], encoder_layers=1, encoder_ffn_dim=48, encoder_attention_heads=4, num_queries=6, decoder_in_channels=[32, 32, 32], decoder_ffn_dim=48, decoder_layers=2, decoder_attention_heads=4, num_denoising=0, num_labels=CLASSES, backbone_config=dict(RESNET, model_type="rt_detr_resnet", out_features=["stage2", "stage3", "stage4"])), boxes_of(6, 64), logits_of_queries),
    Case("transformers/yolos", "vision", functools.partial(make, "YolosForObjectDetection", "YolosConfig", **dict(VISION, image_size=[32, 32]), num_detection_tokens=6, num_labels=CLASSES), boxes_of(6), logits_of_queries),
    # Segmenters, and what makes pictures larger.
    segmenter("beit-segments", "BeitForSemanticSegmentation", "BeitConfig", dict(VISION, num_hidden_layers=4, use_relative_position_bias=True, drop_path_rate=0.0, out_indices=[1, 2, 3, 4], use_auxiliary_head=False, image_size=64, patch_size=16, pool_scales=[1, 2]), (16, 16), 64),
    segmenter("mobilenet-v2-segments", "MobileNetV2ForSemanticSegmentation", "MobileNetV2Config", dict(image_size=64, depth_multiplier=0.25, output_stride=32), (2, 2), 64),
    segmenter("upernet-convnext", "UperNetForSemanticSegmentation", "UperNetConfig", dict(backbone_config=dict(model_type="convnext", hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 1, 1], out_features=["stage1", "stage2", "stage3", "stage4"]), hidden_size=16, pool_scales=[1, 2], use_auxiliary_head=False), (64, 64), 64),
    segmenter("data2vec-vision-segments", "Data2VecVisionForSemanticSegmentation", "Data2VecVisionConfig", dict(VISION, num_hidden_layers=4, use_relative_position_bias=True, drop_path_rate=0.0, out_indices=[1, 2, 3, 4], use_auxiliary_head=False, image_size=64, patch_size=16, pool_scales=[1, 2]), (16, 16), 64),
    Case("transformers/maskformer", "vision", functools.partial(make, "MaskFormerModel", "MaskFormerConfig", fpn_feature_size=32, mask_feature_size=32, backbone_config=dict(model_type="swin", image_size=32, patch_size=2, embed_dim=16, depths=[1, 1, 1, 1], num_heads=[2, 2, 4, 4], window_size=4, drop_path_rate=0.0, out_features=["stage1", "stage2", "stage3", "stage4"]), decoder_config=dict(DETR, model_type="detr", backbone_config=RESNET)), lambda: {"pixel_values": pictures(32)["pixel_values"]}, lambda m, p: m(pixel_values=p).transformer_decoder_last_hidden_state.square().mean(), ends_in_loss=True),
    Case("transformers/mask2former", "vision", functools.partial(make, "Mask2FormerModel", "Mask2FormerConfig", feature_size=32, mask_feature_size=32, hidden_dim=32, encoder_feedforward_dim=48, encoder_layers=1, decoder_layers=2, num_attention_heads=4, dim_feedforward=48, num_queries=6, backbone_config=dict(model_type="swin", image_size=64, patch_size=4, embed_dim=16, depths=[1, 1, 1, 1], num_heads=[2, 2, 4, 4], window_size=4, drop_path_rate=0.0, out_features=["stage1", "stage2", "stage3", "stage4"])), lambda: {"pixel_values": pictures(64)["pixel_values"]}, lambda m, p: m(pixel_values=p).transformer_decoder_last_hidden_state.square().mean(), ends_in_loss=True),
    Case("transformers/swin2sr", "vision", functools.partial(make, "Swin2SRForImageSuperResolution", "Swin2SRConfig", image_size=16, patch_size=1, num_channels=3, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4, drop_path_rate=0.0, upscale=2), lambda: {"pixel_values": pictures(16)["pixel_values"], "target": pictures(32)["pixel_values"]}, lambda m, p, target: (m(pixel_values=p).reconstruction - target).abs().mean(), ends_in_loss=True),
    # Depth.
    depth_case("glpn", "GLPNForDepthEstimation", "GLPNConfig", dict(STAGES, decoder_hidden_size=16, drop_path_rate=0.0)),
    depth_case("dpt-depth", "DPTForDepthEstimation", "DPTConfig", dict(VISION, num_hidden_layers=4, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[8, 8, 16, 16], fusion_hidden_size=16, reassemble_factors=[4, 2, 1, 0.5]), shape=(4, 64, 64)),
    depth_case("depth-anything", "DepthAnythingForDepthEstimation", "DepthAnythingConfig", dict(backbone_config=dict(SMALL, model_type="dinov2", out_features=["stage1", "stage2", "stage3", "stage4"], apply_layernorm=True, reshape_hidden_states=False), patch_size=8, reassemble_hidden_size=32, neck_hidden_sizes=[8, 8, 16, 16], fusion_hidden_size=16, head_hidden_size=8)),
    depth_case("zoedepth", "ZoeDepthForDepthEstimation", "ZoeDepthConfig", dict(backbone_config=dict(SMALL, model_type="beit", out_features=["stage1", "stage2", "stage3", "stage4"], reshape_hidden_states=False, use_relative_position_bias=True, drop_path_rate=0.0), neck_hidden_sizes=[8, 8, 16, 16], fusion_hidden_size=16, bottleneck_features=16, num_relative_features=8, bin_embedding_dim=8, num_attractors=[4, 2, 2, 1], bin_configurations=[dict(n_bins=8, min_depth=0.001, max_depth=10.0, name="nyu")]), shape=(4, 64, 64)),
    # Videos.
    video("timesformer", "Timesformer"),
    video("timesformer-joint", "Timesformer", attention_type="joint_space_time"),
    video("videomae", "VideoMAE", tubelet_size=2, use_mean_pooling=True),
    video("vivit", "Vivit", tubelet_size=[2, 8, 8]),
    case("vjepa2", "video", "VJEPA2ForVideoClassification", "VJEPA2Config", dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, mlp_ratio=2, crop_size=16, patch_size=8, frames_per_clip=4, tubelet_size=2, num_labels=CLASSES, num_pooler_layers=1, pred_hidden_size=32, pred_num_attention_heads=4, pred_num_hidden_layers=1, drop_path_rate=0.0), videos, lambda m, p: m(pixel_values_videos=p).logits),
]

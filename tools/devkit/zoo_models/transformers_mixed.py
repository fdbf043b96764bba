"""Further models of transformers that read pictures or sound next to text."""

import functools

import numpy

from devkit.zoo_models import Case
from devkit.zoo_models.transformers_makers import CLASSES, DECODER, GPT, LENGTH, TEXT, VISION, VOCABULARY, case, clip_logits, clip_loss_inputs, clip_parts, make, tokens

TOWER = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
WORDS = dict(TOWER, vocab_size=VOCABULARY, max_position_embeddings=32, pad_token_id=0, bos_token_id=1, eos_token_id=2)
EYES = dict(TOWER, image_size=32, patch_size=8)
# Its weights would begin at 1e-10.
BLIP_EYES = dict(EYES, initializer_range=0.02)
CLIP_EYES, SIGLIP_EYES = dict(EYES, model_type="clip_vision_model"), dict(EYES, model_type="siglip_vision_model")
LLAMA, QWEN2, GEMMA = dict(DECODER, model_type="llama"), dict(DECODER, model_type="qwen2"), dict(DECODER, model_type="gemma", head_dim=8)
PICTURE_TOKEN = 63


def pair(name, kind, config, **options):
    """Two towers, and a product of what they give."""
    return Case("transformers/" + name, "pairs", functools.partial(make, kind, config, **options), clip_loss_inputs, clip_logits)


def asked(labels=CLASSES):
    made = clip_loss_inputs()
    return {"input_ids": made["input_ids"], "pixel_values": made["pixel_values"], "labels": numpy.array([1, labels - 1])}


def logits_of_asked(module, input_ids, pixel_values):
    return module(input_ids=input_ids, pixel_values=pixel_values).logits


def captions(places=16):
    """Pictures and words, of which `places` stand for parts of the picture."""
    made, g = tokens(length=places + LENGTH), numpy.random.default_rng(1)
    words = numpy.minimum(made["input_ids"], PICTURE_TOKEN - 1)
    words[:, 1 : 1 + places] = PICTURE_TOKEN
    return {"input_ids": words, "pixel_values": g.standard_normal((2, 3, 32, 32)).astype("f4"), "labels": numpy.minimum(made["labels"], VOCABULARY - 1)}


def logits_of_captions(module, input_ids, pixel_values):
    return module(input_ids=input_ids, pixel_values=pixel_values, use_cache=False).logits


def speaker(name, kind, config, places=16, **options):
    """A language model that reads a picture as some of its words."""
    return Case("transformers/" + name, "mixed", functools.partial(make, kind, config, **options), functools.partial(captions, places), logits_of_captions)


def described():
    g = numpy.random.default_rng(0)
    return {"pixel_values": g.standard_normal((2, 3, 32, 32)).astype("f4"), "decoder_input_ids": g.integers(3, VOCABULARY, (2, 6)), "labels": g.integers(3, VOCABULARY, (2, 6))}


def logits_of_described(module, pixel_values, decoder_input_ids):
    return module(pixel_values=pixel_values, decoder_input_ids=decoder_input_ids, use_cache=False).logits


def regions():
    """Words, and features of a picture's regions with their boxes."""
    made, g = tokens(), numpy.random.default_rng(1)
    return {"input_ids": made["input_ids"], "visual_feats": g.standard_normal((2, 4, 12)).astype("f4"), "visual_pos": g.random((2, 4, 4)).astype("f4"), "labels": numpy.array([1, 3])}


def visual_words():
    made, g = tokens(), numpy.random.default_rng(1)
    return {"input_ids": made["input_ids"], "visual_embeds": g.standard_normal((2, 4, 12)).astype("f4"), "attention_mask": numpy.ones((2, LENGTH), numpy.int64), "labels": numpy.array([1, 3])}


def sounds():
    g = numpy.random.default_rng(0)
    return {"input_ids": g.integers(3, VOCABULARY, (2, LENGTH)), "input_features": g.standard_normal((2, 1, 32, 16)).astype("f4"), "labels": numpy.arange(2)}


def films():
    g = numpy.random.default_rng(0)
    return {"input_ids": g.integers(3, VOCABULARY, (2, LENGTH)), "pixel_values": g.standard_normal((2, 4, 3, 32, 32)).astype("f4"), "labels": numpy.arange(2)}


def wanted():
    """Two pictures, and two words to look for in each."""
    g = numpy.random.default_rng(0)
    return {"input_ids": g.integers(3, VOCABULARY, (4, LENGTH)), "pixel_values": g.standard_normal((2, 3, 32, 32)).astype("f4"), "labels": g.integers(0, 2, (2, 16))}


def outlined():
    made, g = clip_loss_inputs(), numpy.random.default_rng(1)
    return {"input_ids": made["input_ids"], "pixel_values": made["pixel_values"], "labels": g.random((2, 32, 32)).astype("f4")}


def loss_of_outlines(module, input_ids, pixel_values, labels):
    import torch

    return torch.nn.functional.binary_cross_entropy_with_logits(module(input_ids=input_ids, pixel_values=pixel_values).logits.reshape(labels.shape), labels)


CASES = [
    pair("align", "AlignModel", "AlignConfig", text_config=WORDS, vision_config=dict(image_size=32, width_coefficient=0.25, depth_coefficient=0.5, hidden_dim=320, drop_connect_rate=0.0), projection_dim=80),
    pair("altclip", "AltCLIPModel", "AltCLIPConfig", text_config=dict(WORDS, project_dim=16, pad_token_id=1), vision_config=EYES, projection_dim=16),
    pair("chinese-clip", "ChineseCLIPModel", "ChineseCLIPConfig", text_config=WORDS, vision_config=EYES, projection_dim=16),
    pair("blip-pairs", "BlipModel", "BlipConfig", text_config=dict(WORDS, encoder_hidden_size=32, projection_dim=16), vision_config=BLIP_EYES, projection_dim=16),
    pair("groupvit", "GroupViTModel", "GroupViTConfig", text_config=WORDS, vision_config=dict(EYES, depths=[1, 1], num_group_tokens=[4, 0], num_output_groups=[4, 0]), projection_dim=16, projection_intermediate_dim=32),
    pair("metaclip-2", "MetaClip2Model", "MetaClip2Config", **clip_parts()),
    pair("aimv2-pairs", "Aimv2Model", "Aimv2Config", **clip_parts()),
    pair("vision-text-dual-encoder", "VisionTextDualEncoderModel", "VisionTextDualEncoderConfig", vision_config=dict(EYES, model_type="vit"), text_config=dict(TEXT, model_type="bert"), projection_dim=16),
    Case("transformers/clap", "pairs", functools.partial(make, "ClapModel", "ClapConfig", text_config=dict(WORDS, pad_token_id=1, max_position_embeddings=40, projection_dim=16), audio_config=dict(window_size=2, num_mel_bins=16, spec_size=32, patch_size=4, patch_stride=[4, 4], hidden_size=32, depths=[1, 1], num_attention_heads=[2, 2], patch_embeds_hidden_size=16, enable_fusion=False, drop_path_rate=0.0, projection_dim=16), projection_dim=16), sounds, lambda m, i, f: m(input_ids=i, input_features=f).logits_per_text),
    Case("transformers/x-clip", "pairs", functools.partial(make, "XCLIPModel", "XCLIPConfig", text_config=WORDS, vision_config=dict(EYES, num_frames=4, mit_hidden_size=32, mit_intermediate_size=48, mit_num_hidden_layers=1, mit_num_attention_heads=4, drop_path_rate=0.0), projection_dim=32, prompt_layers=1, prompt_num_attention_heads=4), films, lambda m, i, p: m(input_ids=i, pixel_values=p).logits_per_video),
    Case("transformers/clipseg", "mixed", functools.partial(make, "CLIPSegForImageSegmentation", "CLIPSegConfig", text_config=WORDS, vision_config=EYES, projection_dim=16, reduce_dim=16, extract_layers=[0, 1], decoder_num_attention_heads=4, decoder_intermediate_size=32), outlined, loss_of_outlines, ends_in_loss=True),
    Case("transformers/owlvit", "mixed", functools.partial(make, "OwlViTForObjectDetection", "OwlViTConfig", text_config=WORDS, vision_config=EYES, projection_dim=32), wanted, lambda m, i, p: m(input_ids=i, pixel_values=p).logits),
    Case("transformers/owlv2", "mixed", functools.partial(make, "Owlv2ForObjectDetection", "Owlv2Config", text_config=WORDS, vision_config=EYES, projection_dim=32), wanted, lambda m, i, p: m(input_ids=i, pixel_values=p).logits),
    # Questions about pictures.
    case("vilt", "mixed", "ViltForQuestionAnswering", "ViltConfig", dict(TEXT, image_size=32, patch_size=8, num_labels=CLASSES, max_image_length=-1), asked, logits_of_asked),
    case("flava-text", "mixed", "FlavaTextModel", "FlavaTextConfig", dict(TEXT), lambda: tokens(labels=32), lambda m, i: m(input_ids=i).last_hidden_state[:, 0]),
    case("bridgetower", "mixed", "BridgeTowerForImageAndTextRetrieval", "BridgeTowerConfig", dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, share_link_tower_layers=False, text_config=dict(WORDS, hidden_size=64, pad_token_id=1, max_position_embeddings=40), vision_config=dict(hidden_size=64, num_hidden_layers=2, patch_size=8, image_size=32)), lambda: asked(2), logits_of_asked),
    case("blip-matching", "mixed", "BlipForImageTextRetrieval", "BlipConfig", dict(text_config=dict(WORDS, encoder_hidden_size=32, is_decoder=True), vision_config=BLIP_EYES, image_text_hidden_size=16), lambda: asked(2), lambda m, i, p: m(input_ids=i, pixel_values=p).itm_score),
    case("blip-captions", "mixed", "BlipForConditionalGeneration", "BlipConfig", dict(text_config=dict(WORDS, encoder_hidden_size=32, sep_token_id=2), vision_config=BLIP_EYES), lambda: asked() | {"labels": tokens()["labels"]}, logits_of_asked),
    case("lxmert", "mixed", "LxmertForQuestionAnswering", "LxmertConfig", dict(TEXT, l_layers=1, x_layers=1, r_layers=1, visual_feat_dim=12, num_qa_labels=CLASSES), regions, lambda m, i, f, p: m(input_ids=i, visual_feats=f, visual_pos=p).question_answering_score),
    case("visual-bert", "mixed", "VisualBertForQuestionAnswering", "VisualBertConfig", dict(TEXT, visual_embedding_dim=12, num_labels=CLASSES), visual_words, lambda m, i, v, a: m(input_ids=i, attention_mask=a, visual_embeds=v).logits),
    case("git", "mixed", "GitForCausalLM", "GitConfig", dict(TEXT, vision_config=EYES), lambda: asked() | {"labels": tokens()["labels"]}, lambda m, i, p: m(input_ids=i, pixel_values=p, use_cache=False).logits[:, -LENGTH:]),
    case("blip2-qformer", "mixed", "Blip2QFormerModel", "Blip2QFormerConfig", dict(TEXT, encoder_hidden_size=12, cross_attention_frequency=1), lambda: {"query_embeds": numpy.random.default_rng(0).standard_normal((2, 4, 32)).astype("f4"), "encoder_hidden_states": numpy.random.default_rng(1).standard_normal((2, 6, 12)).astype("f4"), "labels": numpy.array([1, 3])}, lambda m, q, h: m(query_embeds=q, encoder_hidden_states=h).last_hidden_state[:, 0]),
    # Language models that read pictures.
    speaker("llava", "LlavaForConditionalGeneration", "LlavaConfig", vision_config=CLIP_EYES, text_config=LLAMA, image_token_index=PICTURE_TOKEN, vision_feature_layer=-1, vision_feature_select_strategy="default"),
    speaker("llava-siglip", "LlavaForConditionalGeneration", "LlavaConfig", vision_config=dict(SIGLIP_EYES, vision_use_head=False), text_config=QWEN2, image_token_index=PICTURE_TOKEN, vision_feature_layer=-1, vision_feature_select_strategy="full"),
    speaker("vipllava", "VipLlavaForConditionalGeneration", "VipLlavaConfig", vision_config=CLIP_EYES, text_config=LLAMA, image_token_index=PICTURE_TOKEN, vision_feature_layers=[-1, -2]),
    speaker("aya-vision", "AyaVisionForConditionalGeneration", "AyaVisionConfig", places=4, vision_config=dict(SIGLIP_EYES, vision_use_head=False), text_config=dict(DECODER, model_type="cohere2", head_dim=8, sliding_window=4), image_token_index=PICTURE_TOKEN, vision_feature_layer=-1, vision_feature_select_strategy="full", adapter_layer_norm_eps=1e-6, alignment_intermediate_size=64),
    speaker("paligemma", "PaliGemmaForConditionalGeneration", "PaliGemmaConfig", vision_config=dict(SIGLIP_EYES, vision_use_head=False, projection_dim=32), text_config=GEMMA, image_token_index=PICTURE_TOKEN, projection_dim=32, hidden_size=32),
    speaker("gemma3-pictures", "Gemma3ForConditionalGeneration", "Gemma3Config", places=4, vision_config=dict(SIGLIP_EYES, vision_use_head=False), text_config=dict(DECODER, head_dim=8, sliding_window=4), image_token_index=PICTURE_TOKEN, mm_tokens_per_image=4),
    speaker("internvl", "InternVLForConditionalGeneration", "InternVLConfig", places=4, vision_config=dict(EYES, image_size=[32, 32], patch_size=[8, 8], norm_type="layer_norm", use_mean_pooling=True), text_config=QWEN2, image_token_id=PICTURE_TOKEN, downsample_ratio=0.5),
    Case("transformers/vision-encoder-decoder", "mixed", functools.partial(make, "VisionEncoderDecoderModel", "VisionEncoderDecoderConfig", encoder=dict(EYES, model_type="vit"), decoder=dict(GPT, model_type="gpt2", add_cross_attention=True)), described, logits_of_described),
    Case("transformers/vision-encoder-decoder-trocr", "mixed", functools.partial(make, "VisionEncoderDecoderModel", "VisionEncoderDecoderConfig", encoder=dict(VISION, model_type="deit"), decoder=dict(model_type="trocr", vocab_size=VOCABULARY, d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=48, max_position_embeddings=32, decoder_layerdrop=0.0, cross_attention_hidden_size=32, is_decoder=True, add_cross_attention=True)), described, logits_of_described),
]

"""Language, vision and audio models of transformers, from configurations with a few narrow layers."""

import functools

import numpy
import transformers as t

from devkit.zoo_models import Case

VOCABULARY, LENGTH, CLASSES = 64, 8, 5
# What most configurations call their sizes.
TEXT = dict(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=32)
DECODER = dict(TEXT, num_key_value_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=2)
VISION = dict(image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
QUIET = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def tokens(rows=2, length=LENGTH, labels=None):
    g = numpy.random.default_rng(0)
    shape = (rows, length) if labels is None else (rows,)
    return {"input_ids": g.integers(3, VOCABULARY, (rows, length)), "labels": g.integers(3, labels or VOCABULARY, shape) if labels is None else g.integers(0, labels, shape)}


def masked(length=LENGTH, labels=None):
    made = tokens(length=length, labels=labels)
    mask = numpy.ones((2, length), numpy.int64)
    mask[1, length - 3 :] = 0
    return {"input_ids": made["input_ids"], "attention_mask": mask, "labels": made["labels"]}


def pairs():
    made = tokens()
    return {"input_ids": made["input_ids"], "decoder_input_ids": made["labels"][:, ::-1].copy(), "labels": made["labels"]}


def pictures(size=32, channels=3, labels=CLASSES, shape=(4,)):
    g = numpy.random.default_rng(0)
    return {"pixel_values": g.standard_normal((4, channels, size, size)).astype("f4"), "labels": g.integers(0, labels, shape)}


def waves(length=400):
    g = numpy.random.default_rng(0)
    return {"input_values": g.standard_normal((2, length)).astype("f4"), "labels": g.integers(0, CLASSES, 2)}


def logits_of_tokens(module, input_ids, attention_mask=None):
    more = {} if attention_mask is None else {"attention_mask": attention_mask}
    return module(input_ids=input_ids, **more).logits


def logits_of_decoder(module, input_ids, attention_mask=None):
    more = {} if attention_mask is None else {"attention_mask": attention_mask}
    return module(input_ids=input_ids, use_cache=False, **more).logits


def logits_of_pairs(module, input_ids, decoder_input_ids):
    return module(input_ids=input_ids, decoder_input_ids=decoder_input_ids, use_cache=False).logits


def logits_of_pictures(module, pixel_values):
    return module(pixel_values=pixel_values).logits


def logits_of_waves(module, input_values):
    return module(input_values=input_values).logits


def make(kind, config, **options):
    """A model in the plain forms of its attention and experts, which all exporters can write, and PyTorch can run in f64."""
    return getattr(t, kind)(getattr(t, config)(**options, attn_implementation=options.get("attn_implementation", "eager"), experts_implementation="batched_mm"))


def case(name, family, kind, config, options, feeds, call):
    return Case("transformers/" + name, family, functools.partial(make, kind, config, **options), feeds, call)


def encoder(name, prefix, kind="ForMaskedLM", feeds=masked, call=logits_of_tokens, config=None, **options):
    return case(name, "encoder", prefix + kind, config or prefix + "Config", dict(TEXT) | options, feeds, call)


def decoder(name, prefix, kind="ForCausalLM", feeds=masked, **options):
    return case(name, "decoder", prefix + kind, prefix + "Config", dict(DECODER) | options, feeds, logits_of_decoder)


def seq2seq(name, prefix, **options):
    return case(name, "seq2seq", prefix + "ForConditionalGeneration", prefix + "Config", options, pairs, logits_of_pairs)


def vision(name, prefix, size=32, kind="ForImageClassification", **options):
    return case(name, "vision", prefix + kind, prefix + "Config", dict(num_labels=CLASSES) | options, functools.partial(pictures, size), logits_of_pictures)


def audio(name, prefix, **options):
    narrow = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, conv_dim=(16, 16), conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2, classifier_proj_size=16, num_labels=CLASSES, mask_time_prob=0.0, apply_spec_augment=False, layerdrop=0.0)
    return case(name, "audio", prefix + "ForSequenceClassification", prefix + "Config", narrow | options, waves, logits_of_waves)


BART = dict(vocab_size=VOCABULARY, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=32, encoder_layerdrop=0.0, decoder_layerdrop=0.0, pad_token_id=1)
T5 = dict(vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, pad_token_id=0, decoder_start_token_id=0)
GPT = dict(vocab_size=VOCABULARY, n_positions=32, n_embd=32, n_layer=2, n_head=4)
classes = functools.partial(masked, labels=CLASSES)


def clip_loss_inputs():
    g = numpy.random.default_rng(0)
    return {"input_ids": g.integers(3, VOCABULARY, (2, LENGTH)), "pixel_values": g.standard_normal((2, 3, 32, 32)).astype("f4"), "labels": numpy.arange(2)}


def clip_logits(module, input_ids, pixel_values):
    return module(input_ids=input_ids, pixel_values=pixel_values).logits_per_text


def clip_parts():
    tower = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
    text = dict(tower, vocab_size=VOCABULARY, max_position_embeddings=16, eos_token_id=2, bos_token_id=1, pad_token_id=0)
    return dict(text_config=text, vision_config=dict(tower, image_size=32, patch_size=8), projection_dim=16)


def whisper_inputs():
    g = numpy.random.default_rng(0)
    return {"input_features": g.standard_normal((2, 8, 16)).astype("f4"), "decoder_input_ids": g.integers(3, VOCABULARY, (2, 6)), "labels": g.integers(3, VOCABULARY, (2, 6))}


def whisper_logits(module, input_features, decoder_input_ids):
    return module(input_features=input_features, decoder_input_ids=decoder_input_ids, use_cache=False).logits


def spectrogram():
    g = numpy.random.default_rng(0)
    return {"input_values": g.standard_normal((2, 32, 16)).astype("f4"), "labels": g.integers(0, CLASSES, 2)}


CASES = [
    encoder("bert", "Bert"),
    encoder("bert-classes", "Bert", "ForSequenceClassification", classes, logits_of_tokens, num_labels=CLASSES),
    encoder("roberta", "Roberta", pad_token_id=1, max_position_embeddings=40),
    encoder("xlm-roberta", "XLMRoberta", pad_token_id=1, max_position_embeddings=40),
    encoder("camembert", "Camembert", pad_token_id=1, max_position_embeddings=40),
    case("distilbert", "encoder", "DistilBertForMaskedLM", "DistilBertConfig", dict(vocab_size=VOCABULARY, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=32), masked, logits_of_tokens),
    encoder("albert", "Albert", embedding_size=16),
    encoder("electra", "Electra", embedding_size=16),
    encoder("mpnet", "MPNet", max_position_embeddings=40),
    encoder("deberta", "Deberta", relative_attention=True, pos_att_type=["c2p", "p2c"], max_relative_positions=16),
    encoder("deberta-v2", "DebertaV2", relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=8),
    encoder("megatron-bert", "MegatronBert"),
    encoder("mobilebert", "MobileBert", embedding_size=16, true_hidden_size=16, intra_bottleneck_size=16),
    encoder("squeezebert", "SqueezeBert", embedding_size=32),
    encoder("convbert", "ConvBert", embedding_size=16),
    encoder("roformer", "RoFormer", embedding_size=32),
    encoder("modernbert", "ModernBert", global_attn_every_n_layers=2, local_attention=4, pad_token_id=0, cls_token_id=1, sep_token_id=2, bos_token_id=1, eos_token_id=2),
    encoder("fnet", "FNet", feeds=tokens),
    encoder("nystromformer", "Nystromformer", num_landmarks=8, segment_means_seq_len=8),
    encoder("layoutlm", "LayoutLM"),
    encoder("ernie", "Ernie"),
    encoder("rembert", "RemBert", input_embedding_size=16, output_embedding_size=16),
    encoder("ibert", "IBert", quant_mode=False, max_position_embeddings=40),
    encoder("splinter", "Splinter", "ForQuestionAnswering", classes, lambda m, i, a: m(input_ids=i, attention_mask=a).start_logits),
    encoder("esm", "Esm", pad_token_id=1, mask_token_id=4, position_embedding_type="rotary", token_dropout=False),
    case("funnel", "encoder", "FunnelForMaskedLM", "FunnelConfig", dict(vocab_size=VOCABULARY, block_sizes=[1, 1], d_model=32, n_head=4, d_head=8, d_inner=48), masked, logits_of_tokens),
    case("xlnet", "encoder", "XLNetLMHeadModel", "XLNetConfig", dict(vocab_size=VOCABULARY, d_model=32, n_layer=2, n_head=4, d_inner=48), tokens, logits_of_tokens),
    case("xlm", "encoder", "XLMWithLMHeadModel", "XLMConfig", dict(vocab_size=VOCABULARY, emb_dim=32, n_layers=2, n_heads=4, max_position_embeddings=32), tokens, logits_of_tokens),
    case("flaubert", "encoder", "FlaubertWithLMHeadModel", "FlaubertConfig", dict(vocab_size=VOCABULARY, emb_dim=32, n_layers=2, n_heads=4, max_position_embeddings=32), tokens, logits_of_tokens),
    case("gpt2", "decoder", "GPT2LMHeadModel", "GPT2Config", GPT, masked, logits_of_decoder),
    case("gpt2-classes", "decoder", "GPT2ForSequenceClassification", "GPT2Config", dict(GPT, num_labels=CLASSES, pad_token_id=0), functools.partial(tokens, labels=CLASSES), logits_of_tokens),
    case("openai-gpt", "decoder", "OpenAIGPTLMHeadModel", "OpenAIGPTConfig", GPT, tokens, logits_of_tokens),
    case("gpt-neo", "decoder", "GPTNeoForCausalLM", "GPTNeoConfig", dict(vocab_size=VOCABULARY, hidden_size=32, num_layers=2, num_heads=4, intermediate_size=48, max_position_embeddings=32, attention_types=[[["global", "local"], 1]], window_size=4), masked, logits_of_decoder),
    case("gptj", "decoder", "GPTJForCausalLM", "GPTJConfig", dict(GPT, rotary_dim=4), masked, logits_of_decoder),
    case("codegen", "decoder", "CodeGenForCausalLM", "CodeGenConfig", dict(GPT, rotary_dim=4), masked, logits_of_decoder),
    case("gpt-bigcode", "decoder", "GPTBigCodeForCausalLM", "GPTBigCodeConfig", GPT, masked, logits_of_decoder),
    case("bloom", "decoder", "BloomForCausalLM", "BloomConfig", dict(vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4), masked, logits_of_decoder),
    case("ctrl", "decoder", "CTRLLMHeadModel", "CTRLConfig", dict(vocab_size=VOCABULARY, n_positions=32, n_embd=32, n_layer=2, n_head=4, dff=48), masked, logits_of_decoder),
    case("mpt", "decoder", "MptForCausalLM", "MptConfig", dict(vocab_size=VOCABULARY, d_model=32, n_layers=2, n_heads=4, max_seq_len=32), masked, logits_of_decoder),
    case("biogpt", "decoder", "BioGptForCausalLM", "BioGptConfig", dict(TEXT, layerdrop=0.0), masked, logits_of_decoder),
    case("opt", "decoder", "OPTForCausalLM", "OPTConfig", dict(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48, max_position_embeddings=32, word_embed_proj_dim=32, layerdrop=0.0), masked, logits_of_decoder),
    case("xglm", "decoder", "XGLMForCausalLM", "XGLMConfig", dict(vocab_size=VOCABULARY, d_model=32, num_layers=2, attention_heads=4, ffn_dim=48, max_position_embeddings=32, layerdrop=0.0), masked, logits_of_decoder),
    decoder("gpt-neox", "GPTNeoX", rotary_pct=0.5),
    decoder("llama", "Llama"),
    decoder("llama-masked", "Llama", feeds=masked),
    decoder("llama-tied", "Llama", tie_word_embeddings=True, attention_bias=True),
    decoder("mistral", "Mistral", sliding_window=4),
    decoder("qwen2", "Qwen2"),
    decoder("qwen3", "Qwen3", head_dim=8),
    decoder("gemma", "Gemma", head_dim=8),
    decoder("gemma2", "Gemma2", head_dim=8, sliding_window=4),
    case("gemma3", "decoder", "Gemma3ForCausalLM", "Gemma3TextConfig", dict(DECODER, head_dim=8, sliding_window=4), masked, logits_of_decoder),
    decoder("phi", "Phi"),
    decoder("phi3", "Phi3"),
    decoder("stablelm", "StableLm"),
    decoder("starcoder2", "Starcoder2"),
    decoder("olmo", "Olmo"),
    decoder("olmo2", "Olmo2"),
    decoder("cohere", "Cohere"),
    decoder("granite", "Granite"),
    decoder("nemotron", "Nemotron"),
    decoder("glm", "Glm", head_dim=8),
    decoder("smollm3", "SmolLM3"),
    decoder("helium", "Helium", head_dim=8),
    decoder("persimmon", "Persimmon"),
    decoder("falcon", "Falcon", alibi=False, num_kv_heads=2, new_decoder_architecture=True),
    decoder("falcon-alibi", "Falcon", alibi=True, new_decoder_architecture=False, multi_query=False),
    decoder("mixtral", "Mixtral", num_local_experts=4, num_experts_per_tok=2),
    decoder("qwen2-moe", "Qwen2Moe", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=16),
    decoder("mamba", "Mamba", state_size=4, num_hidden_layers=1, conv_kernel=4),
    decoder("rwkv", "Rwkv", attention_hidden_size=32, context_length=16),
    seq2seq("t5", "T5", **T5),
    case("mt5", "seq2seq", "MT5ForConditionalGeneration", "MT5Config", T5, pairs, logits_of_pairs),
    seq2seq("umt5", "UMT5", **T5),
    seq2seq("longt5", "LongT5", **dict(T5, local_radius=4, encoder_attention_type="local")),
    seq2seq("switch-transformers", "SwitchTransformers", **dict(T5, num_sparse_encoder_layers=1, num_sparse_decoder_layers=1, num_experts=2, router_jitter_noise=0.0)),
    seq2seq("bart", "Bart", **BART),
    seq2seq("mbart", "MBart", **BART),
    seq2seq("pegasus", "Pegasus", **BART),
    seq2seq("blenderbot", "Blenderbot", **BART),
    case("marian", "seq2seq", "MarianMTModel", "MarianConfig", dict(BART, decoder_start_token_id=1), pairs, logits_of_pairs),
    seq2seq("m2m-100", "M2M100", **BART),
    case("prophetnet", "seq2seq", "ProphetNetForConditionalGeneration", "ProphetNetConfig", dict(vocab_size=VOCABULARY, hidden_size=32, num_encoder_layers=1, num_decoder_layers=1, num_encoder_attention_heads=4, num_decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=32), pairs, logits_of_pairs),
    Case("transformers/whisper", "audio", functools.partial(make, "WhisperForConditionalGeneration", "WhisperConfig", **dict(BART, num_mel_bins=8, max_source_positions=8, max_target_positions=16, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)), whisper_inputs, whisper_logits),
    audio("wav2vec2", "Wav2Vec2"),
    audio("wav2vec2-layer", "Wav2Vec2", feat_extract_norm="layer", do_stable_layer_norm=True, conv_bias=True),
    audio("hubert", "Hubert"),
    audio("wavlm", "WavLM"),
    audio("unispeech-sat", "UniSpeechSat"),
    audio("sew", "SEW", squeeze_factor=2),
    case("ast", "audio", "ASTForAudioClassification", "ASTConfig", dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, patch_size=8, frequency_stride=8, time_stride=8, max_length=32, num_mel_bins=16, num_labels=CLASSES), spectrogram, logits_of_waves),
    vision("vit", "ViT", **VISION),
    vision("deit", "DeiT", **VISION),
    vision("beit", "Beit", **VISION, use_relative_position_bias=True, drop_path_rate=0.0),
    vision("data2vec-vision", "Data2VecVision", **VISION, use_shared_relative_position_bias=True, drop_path_rate=0.0),
    vision("dinov2", "Dinov2", **VISION),
    vision("dinov2-registers", "Dinov2WithRegisters", **VISION),
    vision("vit-msn", "ViTMSN", **VISION),
    vision("ijepa", "IJepa", **VISION),
    vision("pvt", "Pvt", image_size=32, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 2, 2], mlp_ratios=[2, 2, 2, 2]),
    vision("pvt-v2", "PvtV2", drop_path_rate=0.0, image_size=32, hidden_sizes=[16, 32, 32, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 2]),
    vision("swin", "Swin", image_size=32, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4, drop_path_rate=0.0),
    vision("swinv2", "Swinv2", image_size=32, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4, drop_path_rate=0.0),
    vision("convnext", "ConvNext", hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 1, 1]),
    vision("convnext-v2", "ConvNextV2", hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 1, 1]),
    vision("resnet", "ResNet", embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1]),
    vision("regnet", "RegNet", embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], groups_width=8),
    vision("bit", "Bit", embedding_size=16, hidden_sizes=[32, 64], depths=[1, 1], num_groups=4),
    vision("mobilenet-v1", "MobileNetV1", size=64, image_size=64, depth_multiplier=0.25),
    vision("mobilenet-v2", "MobileNetV2", size=64, image_size=64, depth_multiplier=0.25),
    vision("mobilevit", "MobileViT", size=64, image_size=64, hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 8, 16, 16, 24, 32, 32]),
    vision("mobilevit-v2", "MobileViTV2", size=64, image_size=64, width_multiplier=0.25),
    vision("efficientnet", "EfficientNet", size=64, image_size=64, width_coefficient=0.25, depth_coefficient=0.5, hidden_dim=320, drop_connect_rate=0.0),
    vision("focalnet", "FocalNet", image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], focal_levels=[2, 2], focal_windows=[3, 3], drop_path_rate=0.0),
    vision("poolformer", "PoolFormer", hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 1, 1]),
    vision("levit", "Levit", size=64, image_size=64, hidden_sizes=[32, 48, 64], num_attention_heads=[2, 2, 2], depths=[1, 1, 1], key_dim=[8, 8, 8]),
    vision("swiftformer", "SwiftFormer", size=64, embed_dims=[16, 24, 32, 48], depths=[1, 1, 1, 1], drop_path_rate=0.0),
    vision("hgnet-v2", "HGNetV2", embedding_size=16, hidden_sizes=[16, 32, 32, 64], depths=[1, 1, 1, 1], stem_channels=[3, 8, 16], stage_in_channels=[16, 16, 32, 32], stage_mid_channels=[8, 8, 8, 8], stage_out_channels=[16, 32, 32, 64], stage_num_blocks=[1, 1, 1, 1], stage_numb_of_layers=[2, 2, 2, 2]),
    Case("transformers/segformer", "vision", functools.partial(make, "SegformerForSemanticSegmentation", "SegformerConfig", num_labels=CLASSES, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 2, 2], decoder_hidden_size=16, drop_path_rate=0.0), functools.partial(pictures, 32, shape=(4, 8, 8)), logits_of_pictures),
    Case("transformers/upernet", "vision", functools.partial(make, "MobileViTForSemanticSegmentation", "MobileViTConfig", image_size=64, hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 8, 16, 16, 24, 32, 32], num_labels=CLASSES, aspp_out_channels=16), functools.partial(pictures, 64, shape=(4, 2, 2)), logits_of_pictures),
    Case("transformers/dpt", "vision", functools.partial(make, "DPTForSemanticSegmentation", "DPTConfig", **dict(VISION, num_hidden_layers=4), num_labels=CLASSES, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[8, 8, 16, 16], fusion_hidden_size=16, reassemble_factors=[4, 2, 1, 0.5], use_auxiliary_head=False), functools.partial(pictures, 32, shape=(4, 64, 64)), logits_of_pictures),
    Case("transformers/clip", "pairs", lambda: make("CLIPModel", "CLIPConfig", **clip_parts()), clip_loss_inputs, clip_logits),
    Case("transformers/siglip", "pairs", lambda: make("SiglipModel", "SiglipConfig", **{k: v for k, v in clip_parts().items() if k != "projection_dim"}), clip_loss_inputs, clip_logits),
]

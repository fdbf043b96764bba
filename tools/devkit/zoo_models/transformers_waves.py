"""Further models of sound and of series of numbers of transformers, and of decisions."""

import functools

import numpy

from devkit.zoo_models import Case
from devkit.zoo_models.transformers_makers import BART, CLASSES, VOCABULARY, audio, case, logits_of_transcribed, logits_of_waves, make, transcribed, waves

CONFORMER = dict(position_embeddings_type="relative", conv_depthwise_kernel_size=3, conformer_conv_dropout=0.0, num_adapter_layers=1)
MOMENTS = dict(distribution_output="normal", prediction_length=4, context_length=8, input_size=1, lags_sequence=[1, 2], num_time_features=1, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, encoder_layerdrop=0.0, decoder_layerdrop=0.0)
PATCHES = dict(num_input_channels=2, context_length=16, patch_length=4, patch_stride=4, d_model=16, num_attention_heads=2, ffn_dim=24)


def spectra(bins=16, length=16, name="input_features"):
    g = numpy.random.default_rng(0)
    return {name: g.standard_normal((2, length, bins)).astype("f4"), "labels": g.integers(0, CLASSES, 2)}


def logits_of_spectra(module, input_features):
    return module(input_features=input_features).logits


def frames():
    """Frames of sound, and a class for each of the places that are left."""
    made = waves()
    return made | {"labels": numpy.random.default_rng(1).integers(0, CLASSES, (2, 39))}


def spoken():
    g = numpy.random.default_rng(0)
    return {"input_values": g.standard_normal((2, 400)).astype("f4"), "decoder_input_ids": g.integers(3, VOCABULARY, (2, 6)), "labels": g.integers(3, VOCABULARY, (2, 6))}


def logits_of_spoken(module, input_values, decoder_input_ids):
    return module(input_values=input_values, decoder_input_ids=decoder_input_ids, use_cache=False).logits


def wave_to_wave(name, kind, config, options, length=64):
    """A codec: the distance of what it gives back."""

    def feeds():
        return {"input_values": numpy.random.default_rng(0).standard_normal((2, 1, length)).astype("f4")}

    return Case("transformers/" + name, "audio", functools.partial(make, kind, config, **options), feeds, lambda m, x: (m(input_values=x).audio_values - x).square().mean(), ends_in_loss=True)


def series(length=16):
    g = numpy.random.default_rng(0)
    return {"past_values": g.standard_normal((2, length, 2)).astype("f4"), "future_values": g.standard_normal((2, 4, 2)).astype("f4")}


def loss_of_series(module, past_values, future_values):
    return module(past_values=past_values, future_values=future_values).loss


def series_classes():
    g = numpy.random.default_rng(0)
    return {"past_values": g.standard_normal((2, 16, 2)).astype("f4"), "labels": g.integers(0, CLASSES, 2)}


def moments():
    """Past and future values with features of time."""
    g = numpy.random.default_rng(0)
    past = 10
    return {
        "past_values": g.standard_normal((2, past)).astype("f4"),
        "past_time_features": g.standard_normal((2, past, 1)).astype("f4"),
        "future_values": g.standard_normal((2, 4)).astype("f4"),
        "future_time_features": g.standard_normal((2, 4, 1)).astype("f4"),
    }


def loss_of_moments(module, past_values, past_time_features, future_values, future_time_features):
    import torch

    seen = torch.ones_like(past_values)
    return module(past_values=past_values, past_time_features=past_time_features, past_observed_mask=seen, future_values=future_values, future_time_features=future_time_features).loss


def forecaster(name, kind, config, options, feeds, loss):
    return Case("transformers/" + name, "series", functools.partial(make, kind, config, **options), feeds, loss, ends_in_loss=True)


def episodes():
    g = numpy.random.default_rng(0)
    return {
        "states": g.standard_normal((2, 4, 5)).astype("f4"),
        "actions": g.standard_normal((2, 4, 3)).astype("f4"),
        "returns_to_go": g.standard_normal((2, 4, 1)).astype("f4"),
        "timesteps": numpy.tile(numpy.arange(4), (2, 1)),
    }


def loss_of_episodes(module, states, actions, returns_to_go, timesteps):
    return (module(states=states, actions=actions, rewards=None, returns_to_go=returns_to_go, timesteps=timesteps).action_preds - actions).square().mean()


CASES = [
    audio("data2vec-audio", "Data2VecAudio", num_conv_pos_embeddings=2, conv_pos_kernel_size=3),
    audio("unispeech", "UniSpeech"),
    audio("sew-d", "SEWD", squeeze_factor=2, pos_att_type=["c2p", "p2c"], position_buckets=8, max_position_embeddings=32),
    audio("wav2vec2-conformer", "Wav2Vec2Conformer", **CONFORMER),
    audio("wav2vec2-conformer-rotary", "Wav2Vec2Conformer", **dict(CONFORMER, position_embeddings_type="rotary")),
    audio("wav2vec2-weighted", "Wav2Vec2", use_weighted_layer_sum=True, feat_extract_norm="layer"),
    audio("hubert-layer", "Hubert", feat_extract_norm="layer", do_stable_layer_norm=True, conv_bias=True),
    case("wav2vec2-frames", "audio", "Wav2Vec2ForAudioFrameClassification", "Wav2Vec2Config", dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, conv_dim=(16, 16), conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2, num_labels=CLASSES, mask_time_prob=0.0, apply_spec_augment=False, layerdrop=0.0), frames, logits_of_waves),
    case("wav2vec2-bert", "audio", "Wav2Vec2BertForSequenceClassification", "Wav2Vec2BertConfig", dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, feature_projection_input_dim=16, conv_depthwise_kernel_size=3, left_max_position_embeddings=8, right_max_position_embeddings=4, classifier_proj_size=16, num_labels=CLASSES, apply_spec_augment=False, layerdrop=0.0, conformer_conv_dropout=0.0), spectra, logits_of_spectra),
    case("whisper-classes", "audio", "WhisperForAudioClassification", "WhisperConfig", dict(BART, num_mel_bins=8, max_source_positions=8, max_target_positions=16, classifier_proj_size=16, num_labels=CLASSES, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1), lambda: spectra(16, 8), logits_of_spectra),
    case("speech-to-text", "audio", "Speech2TextForConditionalGeneration", "Speech2TextConfig", dict(BART, input_feat_per_channel=8, max_source_positions=32, max_target_positions=16, conv_channels=16, num_conv_layers=2, eos_token_id=2, decoder_start_token_id=2), functools.partial(transcribed, 16, 8), logits_of_transcribed),
    case("moonshine", "audio", "MoonshineForConditionalGeneration", "MoonshineConfig", dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, encoder_num_hidden_layers=1, decoder_num_hidden_layers=1, encoder_num_attention_heads=4, decoder_num_attention_heads=4, pad_token_id=0), lambda: spoken() | {"input_values": numpy.random.default_rng(0).standard_normal((2, 1600)).astype("f4")}, logits_of_spoken),
    case("speecht5-text", "audio", "SpeechT5ForSpeechToText", "SpeechT5Config", dict(vocab_size=VOCABULARY, hidden_size=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, conv_dim=(16, 16), conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2, mask_time_prob=0.0, apply_spec_augment=False, encoder_layerdrop=0.0, decoder_layerdrop=0.0, encoder_max_relative_position=8, max_speech_positions=64, max_text_positions=32, positional_dropout=0.0), spoken, logits_of_spoken),
    case("seamless-m4t-text", "audio", "SeamlessM4TForTextToText", "SeamlessM4TConfig", dict(vocab_size=VOCABULARY, hidden_size=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, encoder_layerdrop=0.0, decoder_layerdrop=0.0, speech_encoder_layers=1, speech_encoder_attention_heads=4, speech_encoder_intermediate_size=48, max_position_embeddings=32, t2u_vocab_size=16, t2u_encoder_layers=1, t2u_decoder_layers=1, t2u_encoder_ffn_dim=48, t2u_decoder_ffn_dim=48, unit_hifi_gan_vocab_size=16, unit_embed_dim=16, lang_embed_dim=8, spkr_embed_dim=8, upsample_initial_channel=16, t2u_encoder_attention_heads=4, t2u_decoder_attention_heads=4), lambda: {"input_ids": spoken()["decoder_input_ids"]} | {k: v for k, v in spoken().items() if k != "input_values"}, lambda m, i, d: m(input_ids=i, decoder_input_ids=d, use_cache=False).logits),
    case("clap-audio", "audio", "ClapAudioModelWithProjection", "ClapAudioConfig", dict(window_size=2, num_mel_bins=16, spec_size=32, patch_size=4, patch_stride=[4, 4], num_classes=CLASSES, hidden_size=32, projection_dim=CLASSES, depths=[1, 1], num_attention_heads=[2, 2], patch_embeds_hidden_size=16, enable_fusion=False, drop_path_rate=0.0), lambda: {"input_features": numpy.random.default_rng(0).standard_normal((2, 1, 32, 16)).astype("f4"), "labels": numpy.array([1, 3])}, lambda m, f: m(input_features=f).audio_embeds),
    wave_to_wave("dac", "DacModel", "DacConfig", dict(encoder_hidden_size=8, downsampling_ratios=[2, 2], decoder_hidden_size=16, upsampling_ratios=[2, 2], n_codebooks=2, codebook_size=8, codebook_dim=4)),
    wave_to_wave("encodec", "EncodecModel", "EncodecConfig", dict(num_filters=4, hidden_size=16, upsampling_ratios=[2, 2], codebook_size=8, codebook_dim=16, num_lstm_layers=1, audio_channels=1)),
    wave_to_wave("mimi", "MimiModel", "MimiConfig", dict(num_filters=4, hidden_size=16, upsampling_ratios=[2, 2], codebook_size=8, codebook_dim=8, vector_quantization_hidden_dimension=8, num_quantizers=2, num_semantic_quantizers=1, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, head_dim=8, intermediate_size=24, frame_rate=3000, upsample_groups=16, sliding_window=8)),
    # Series of numbers.
    forecaster("patchtst", "PatchTSTForPrediction", "PatchTSTConfig", dict(PATCHES, num_hidden_layers=1, prediction_length=4, loss="mse", scaling=None), series, loss_of_series),
    forecaster("patchtst-scaled", "PatchTSTForPrediction", "PatchTSTConfig", dict(PATCHES, num_hidden_layers=1, prediction_length=4, loss="nll", distribution_output="normal", scaling="std", norm_type="layernorm", pre_norm=False, use_cls_token=True), series, loss_of_series),
    case("patchtst-classes", "series", "PatchTSTForClassification", "PatchTSTConfig", dict(PATCHES, num_hidden_layers=1, num_targets=CLASSES, use_cls_token=True), series_classes, lambda m, p: m(past_values=p).prediction_logits),
    forecaster("patchtsmixer", "PatchTSMixerForPrediction", "PatchTSMixerConfig", dict(PATCHES, num_layers=1, prediction_length=4, expansion_factor=2, mode="mix_channel", gated_attn=True, loss="mse"), series, loss_of_series),
    forecaster("patchtsmixer-batch", "PatchTSMixerForPrediction", "PatchTSMixerConfig", dict(PATCHES, num_layers=1, prediction_length=4, norm_mlp="BatchNorm", self_attn=True, self_attn_heads=2, loss="nll", distribution_output="normal"), series, loss_of_series),
    forecaster("time-series-transformer", "TimeSeriesTransformerForPrediction", "TimeSeriesTransformerConfig", MOMENTS, moments, loss_of_moments),
    forecaster("informer", "InformerForPrediction", "InformerConfig", dict(MOMENTS, encoder_layers=2, attention_type="full", distil=True), moments, loss_of_moments),
    forecaster("autoformer", "AutoformerForPrediction", "AutoformerConfig", dict(MOMENTS, label_length=4, moving_average=3, autocorrelation_factor=1), moments, loss_of_moments),
    forecaster("decision-transformer", "DecisionTransformerModel", "DecisionTransformerConfig", dict(state_dim=5, act_dim=3, hidden_size=32, max_ep_len=16, n_layer=2, n_head=4, n_positions=32, action_tanh=True), episodes, loss_of_episodes),
]

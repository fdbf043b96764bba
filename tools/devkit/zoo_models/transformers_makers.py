"""What cases of transformers are made of: narrow configurations, what models read, and what of their results is the logits."""

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


def transcribed(bands=8, frames=16):
    """A spectrogram for an encoder, and tokens for its decoder."""
    g = numpy.random.default_rng(0)
    return {"input_features": g.standard_normal((2, bands, frames)).astype("f4"), "decoder_input_ids": g.integers(3, VOCABULARY, (2, 6)), "labels": g.integers(3, VOCABULARY, (2, 6))}


def logits_of_transcribed(module, input_features, decoder_input_ids):
    return module(input_features=input_features, decoder_input_ids=decoder_input_ids, use_cache=False).logits


def spectrogram():
    g = numpy.random.default_rng(0)
    return {"input_values": g.standard_normal((2, 32, 16)).astype("f4"), "labels": g.integers(0, CLASSES, 2)}

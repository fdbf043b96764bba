"""Further encoders of text and of documents, and models from text to text, of transformers."""

import numpy

from devkit.zoo_models.transformers_makers import (
    BART,
    CLASSES,
    LENGTH,
    T5,
    TEXT,
    VOCABULARY,
    case,
    classes,
    encoder,
    logits_of_pairs,
    logits_of_tokens,
    masked,
    pairs,
    seq2seq,
    tokens,
)

ROBERTA = dict(pad_token_id=1, max_position_embeddings=40)


def boxes(labels=None):
    """Tokens, and where they are on a page."""
    made, g = tokens(labels=labels), numpy.random.default_rng(1)
    corners = numpy.sort(g.integers(0, 30, (2, LENGTH, 2, 2)), axis=2).reshape(2, LENGTH, 4)
    return {"input_ids": made["input_ids"], "bbox": corners, "labels": g.integers(0, CLASSES, (2, LENGTH))}


def logits_of_boxes(module, input_ids, bbox):
    return module(input_ids=input_ids, bbox=bbox).logits


def fractions():
    """Boxes of four corners in fractions of the page."""
    made, g = boxes(), numpy.random.default_rng(2)
    return made | {"bbox": g.random((2, LENGTH, 8)).astype("f4")}


def pages():
    made, g = boxes(), numpy.random.default_rng(1)
    return {"input_ids": made["input_ids"], "bbox": made["bbox"], "pixel_values": g.standard_normal((2, 3, 32, 32)).astype("f4"), "labels": made["labels"]}


def logits_of_pages(module, input_ids, bbox, pixel_values):
    return module(input_ids=input_ids, bbox=bbox, pixel_values=pixel_values).logits


def paths():
    """Tokens of a page of HTML, and the path of tags to each."""
    made, g = tokens(), numpy.random.default_rng(1)
    return {"input_ids": made["input_ids"], "xpath_tags_seq": g.integers(0, 8, (2, LENGTH, 4)), "xpath_subs_seq": g.integers(0, 8, (2, LENGTH, 4)), "labels": g.integers(0, CLASSES, (2, LENGTH))}


def logits_of_paths(module, input_ids, xpath_tags_seq, xpath_subs_seq):
    return module(input_ids=input_ids, xpath_tags_seq=xpath_tags_seq, xpath_subs_seq=xpath_subs_seq).logits


def table_cells():
    made, g = tokens(), numpy.random.default_rng(1)
    kinds = g.integers(0, 2, (2, LENGTH, 7))
    kinds[..., 1:3] = g.integers(0, 3, (2, LENGTH, 2))
    return {"input_ids": made["input_ids"], "token_type_ids": kinds, "labels": made["labels"]}


def logits_of_cells(module, input_ids, token_type_ids):
    return module(input_ids=input_ids, token_type_ids=token_type_ids).logits


def mentions():
    """Tokens, and entities with the places at which they are mentioned."""
    made, g = tokens(), numpy.random.default_rng(1)
    places = numpy.full((2, 2, 4), -1)
    places[:, :, :2] = g.integers(0, LENGTH, (2, 2, 2))
    return {"input_ids": made["input_ids"], "entity_ids": g.integers(1, 16, (2, 2)), "entity_position_ids": places, "labels": g.integers(0, CLASSES, 2)}


def logits_of_mentions(module, input_ids, entity_ids, entity_position_ids):
    return module(input_ids=input_ids, entity_ids=entity_ids, entity_position_ids=entity_position_ids).logits


def sounded():
    """Signs, with what they look and sound like."""
    made, g = tokens(), numpy.random.default_rng(1)
    return {"input_ids": made["input_ids"], "input_shape_ids": g.integers(1, 16, (2, LENGTH)), "input_pronunciation_ids": g.integers(1, 16, (2, LENGTH)), "labels": made["labels"]}


def logits_of_sounded(module, input_ids, input_shape_ids, input_pronunciation_ids):
    return module(input_ids=input_ids, input_shape_ids=input_shape_ids, input_pronunciation_ids=input_pronunciation_ids).logits


def questions():
    made = tokens(labels=LENGTH)
    return {"input_ids": made["input_ids"], "labels": made["labels"]}


def starts(module, input_ids):
    return module(input_ids=input_ids).start_logits


def choices():
    """Three answers to each of two questions."""
    g = numpy.random.default_rng(0)
    return {"input_ids": g.integers(3, VOCABULARY, (2, 3, LENGTH)), "labels": g.integers(0, 3, 2)}


def token_classes():
    made, g = masked(), numpy.random.default_rng(1)
    return made | {"labels": g.integers(0, CLASSES, (2, LENGTH))}


CASES = [
    # Heads of the families people train most.
    encoder("bert-tokens", "Bert", "ForTokenClassification", token_classes, num_labels=CLASSES),
    encoder("bert-question", "Bert", "ForQuestionAnswering", questions, starts),
    encoder("bert-choice", "Bert", "ForMultipleChoice", choices),
    encoder("bert-next", "Bert", "ForNextSentencePrediction", lambda: classes(labels=2)),
    encoder("roberta-classes", "Roberta", "ForSequenceClassification", classes, num_labels=CLASSES, **ROBERTA),
    encoder("deberta-v2-classes", "DebertaV2", "ForSequenceClassification", classes, num_labels=CLASSES, relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=8, share_att_key=True, norm_rel_ebd="layer_norm", conv_kernel_size=3),
    encoder("electra-classes", "Electra", "ForSequenceClassification", classes, num_labels=CLASSES, embedding_size=16),
    encoder("modernbert-classes", "ModernBert", "ForSequenceClassification", classes, num_labels=CLASSES, global_attn_every_n_layers=2, local_attention=4, pad_token_id=0, cls_token_id=1, sep_token_id=2, bos_token_id=1, eos_token_id=2),
    encoder("llama-classes", "Llama", "ForSequenceClassification", classes, num_labels=CLASSES, num_key_value_heads=2, pad_token_id=0),
    encoder("llama-tokens", "Llama", "ForTokenClassification", token_classes, num_labels=CLASSES, num_key_value_heads=2, pad_token_id=0),
    encoder("qwen3-classes", "Qwen3", "ForSequenceClassification", classes, num_labels=CLASSES, num_key_value_heads=2, pad_token_id=0, head_dim=8),
    # Other encoders.
    encoder("big-bird", "BigBird", attention_type="original_full"),
    encoder("big-bird-sparse", "BigBird", feeds=lambda: tokens(length=32), attention_type="block_sparse", block_size=2, num_random_blocks=1),
    case("canine", "encoder", "CanineForSequenceClassification", "CanineConfig", dict(TEXT, num_hash_buckets=32, num_hash_functions=4, downsampling_rate=2, local_transformer_stride=4, upsampling_kernel_size=2, num_labels=CLASSES), lambda: classes(length=16), logits_of_tokens),
    encoder("data2vec-text", "Data2VecText", **ROBERTA),
    encoder("esm-learned", "Esm", pad_token_id=1, mask_token_id=4, position_embedding_type="absolute", token_dropout=True, max_position_embeddings=40),
    encoder("eurobert", "EuroBert", num_key_value_heads=2, pad_token_id=0, mask_token_id=4, bos_token_id=1, eos_token_id=2),
    encoder("gte", "Gte"),
    encoder("nomic-bert", "NomicBert"),
    encoder("longformer", "Longformer", attention_window=4, **ROBERTA),
    encoder("reformer", "Reformer", feeds=lambda: tokens(length=16), config="ReformerConfig", attn_layers=["local", "local"], local_attn_chunk_length=4, axial_pos_shape=[4, 4], axial_pos_embds_dim=[16, 16], attention_head_size=8, feed_forward_size=48, is_decoder=False, num_attention_heads=4),
    encoder("roberta-prelayernorm", "RobertaPreLayerNorm", **ROBERTA),
    encoder("roc-bert", "RoCBert", feeds=sounded, call=logits_of_sounded, pronunciation_vocab_size=16, shape_vocab_size=16, pronunciation_embed_dim=8, shape_embed_dim=8),
    encoder("xlm-roberta-xl", "XLMRobertaXL", **ROBERTA),
    encoder("xmod", "Xmod", **ROBERTA, languages=["en_XX", "de_DE"], default_language="en_XX"),
    encoder("yoso", "Yoso", use_expectation=True, max_position_embeddings=40),
    encoder("luke", "Luke", "ForEntityClassification", mentions, logits_of_mentions, **ROBERTA, entity_vocab_size=16, entity_emb_size=16, num_labels=CLASSES),
    encoder("tapas", "Tapas", feeds=table_cells, call=logits_of_cells, type_vocab_sizes=[3, 16, 16, 2, 2, 16, 16]),
    case("perceiver-text", "encoder", "PerceiverForMaskedLM", "PerceiverConfig", dict(vocab_size=VOCABULARY, d_model=32, d_latents=32, num_latents=4, num_blocks=1, num_self_attends_per_block=2, num_self_attention_heads=4, num_cross_attention_heads=4, qk_channels=32, v_channels=32, max_position_embeddings=LENGTH), tokens, lambda m, i: m(inputs=i).logits),
    # Documents.
    encoder("layoutlm-tokens", "LayoutLM", "ForTokenClassification", boxes, logits_of_boxes, num_labels=CLASSES, max_2d_position_embeddings=32),
    encoder("bros", "Bros", "ForTokenClassification", fractions, logits_of_boxes, num_labels=CLASSES, hidden_size=64),
    encoder("lilt", "Lilt", "ForTokenClassification", boxes, logits_of_boxes, hidden_size=48, num_labels=CLASSES, max_2d_position_embeddings=32, channel_shrink_ratio=2, **ROBERTA),
    encoder("layoutlmv3", "LayoutLMv3", "ForTokenClassification", pages, logits_of_pages, num_labels=CLASSES, **ROBERTA, max_2d_position_embeddings=32, coordinate_size=4, shape_size=8, input_size=32, patch_size=8),
    encoder("markuplm", "MarkupLM", "ForTokenClassification", paths, logits_of_paths, num_labels=CLASSES, **ROBERTA, max_depth=4, xpath_unit_hidden_size=8, max_xpath_tag_unit_embeddings=16, max_xpath_subs_unit_embeddings=16, tag_pad_id=10, subs_pad_id=10),
    # From text to text.
    seq2seq("bart-forced", "Bart", **dict(BART, scale_embedding=True)),
    case("bart-classes", "seq2seq", "BartForSequenceClassification", "BartConfig", dict(BART, num_labels=CLASSES, eos_token_id=2), lambda: {"input_ids": numpy.concatenate([tokens(length=LENGTH - 1)["input_ids"], numpy.full((2, 1), 2)], 1), "labels": numpy.array([1, 3])}, logits_of_tokens),
    seq2seq("bigbird-pegasus", "BigBirdPegasus", **dict(BART, attention_type="original_full")),
    seq2seq("blenderbot-small", "BlenderbotSmall", **BART),
    case("fsmt", "seq2seq", "FSMTForConditionalGeneration", "FSMTConfig", dict(BART, langs=["en", "de"], src_vocab_size=VOCABULARY, tgt_vocab_size=VOCABULARY), pairs, logits_of_pairs),
    seq2seq("led", "LED", **dict(BART, attention_window=4, max_encoder_position_embeddings=32, max_decoder_position_embeddings=32)),
    seq2seq("mvp", "Mvp", **BART),
    seq2seq("nllb-moe", "NllbMoe", **dict(BART, num_experts=2, encoder_sparse_step=2, decoder_sparse_step=2, moe_eval_capacity_token_fraction=-1.0, second_expert_policy="all")),
    seq2seq("pegasus-x", "PegasusX", **dict(BART, num_global_tokens=4, block_size=4)),
    seq2seq("plbart", "PLBart", **BART),
    seq2seq("t5-gated", "T5", **dict(T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False)),
    case("t5-classes", "seq2seq", "T5ForTokenClassification", "T5Config", dict(T5, num_labels=CLASSES), token_classes, logits_of_tokens),
    seq2seq("longt5-global", "LongT5", **dict(T5, local_radius=4, global_block_size=4, encoder_attention_type="transient-global")),
    case("t5gemma", "seq2seq", "T5GemmaForConditionalGeneration", "T5GemmaConfig", dict(encoder=dict(TEXT, num_key_value_heads=2, head_dim=8, sliding_window=4), decoder=dict(TEXT, num_key_value_heads=2, head_dim=8, sliding_window=4, cross_attention_hidden_size=32), vocab_size=VOCABULARY), pairs, logits_of_pairs),
    case("encoder-decoder", "seq2seq", "EncoderDecoderModel", "EncoderDecoderConfig", dict(encoder=dict(TEXT, model_type="bert"), decoder=dict(TEXT, model_type="bert", is_decoder=True, add_cross_attention=True)), pairs, logits_of_pairs),
]

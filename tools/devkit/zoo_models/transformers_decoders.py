"""Further language models of transformers that predict the next token."""

from devkit.zoo_models.transformers_makers import DECODER, GPT, TEXT, VOCABULARY, case, decoder, logits_of_decoder, logits_of_tokens, masked, tokens

EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16)
# Of routers in groups, a shared expert, and dense first layers, as DeepSeek's models have them.
ROUTED = dict(n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, n_group=1, topk_group=1, n_shared_experts=1, first_k_dense_replace=1)
# Attention of which keys and values are made of a narrow vector.
LATENT = dict(num_key_value_heads=4, kv_lora_rank=16, q_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8)
# The recurrence that is written in chunks.
CHUNKS = dict(mamba_d_state=4, mamba_d_conv=4, mamba_n_heads=4, mamba_d_head=16, mamba_expand=2, mamba_n_groups=1, mamba_chunk_size=4)


def text(name, kind, config, **options):
    """A decoder whose configuration does not go by the model's name."""
    return case(name, "decoder", kind, config, dict(DECODER) | options, masked, logits_of_decoder)


CASES = [
    decoder("apertus", "Apertus"),
    decoder("arcee", "Arcee"),
    decoder("bitnet", "BitNet"),
    decoder("cohere2", "Cohere2", head_dim=8, sliding_window=4),
    decoder("cwm", "Cwm", head_dim=8, sliding_window=4),
    decoder("diffllama", "DiffLlama"),
    decoder("doge", "Doge"),
    text("emu3", "Emu3ForCausalLM", "Emu3TextConfig"),
    decoder("ernie4_5", "Ernie4_5", head_dim=8),
    decoder("exaone4", "Exaone4", sliding_window=4),
    decoder("glm4", "Glm4", head_dim=8),
    decoder("gpt-neox-japanese", "GPTNeoXJapanese", intermediate_multiple_size=2),
    decoder("hunyuan-dense", "HunYuanDenseV1", head_dim=8),
    decoder("hyperclovax", "HyperCLOVAX", head_dim=8),
    decoder("jais2", "Jais2", head_dim=8),
    decoder("ministral", "Ministral", head_dim=8, sliding_window=4),
    decoder("ministral3", "Ministral3", head_dim=8),
    text("mllama-text", "MllamaForCausalLM", "MllamaTextConfig", cross_attention_layers=[]),
    decoder("modernbert-decoder", "ModernBertDecoder", local_attention=4, global_attn_every_n_layers=2, cls_token_id=1, sep_token_id=2),
    decoder("nanochat", "NanoChat"),
    decoder("olmo3", "Olmo3", sliding_window=4),
    decoder("seed-oss", "SeedOss", head_dim=8),
    decoder("vaultgemma", "VaultGemma", head_dim=8, sliding_window=4),
    decoder("granite-swa", "GraniteSWA", sliding_window=4),
    decoder("hrm-text", "HrmText", head_dim=8),
    decoder("lfm3", "Lfm3"),
    case("bert-decoder", "decoder", "BertLMHeadModel", "BertConfig", dict(TEXT, is_decoder=True), masked, logits_of_decoder),
    case("bert-generation", "decoder", "BertGenerationDecoder", "BertGenerationConfig", dict(TEXT, is_decoder=True), masked, logits_of_decoder),
    case("trocr", "decoder", "TrOCRForCausalLM", "TrOCRConfig", dict(vocab_size=VOCABULARY, d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=48, max_position_embeddings=32, decoder_layerdrop=0.0), masked, logits_of_decoder),
    case("imagegpt", "decoder", "ImageGPTForCausalImageModeling", "ImageGPTConfig", GPT, masked, logits_of_decoder),
    # Attention through a narrow vector.
    decoder("minicpm3", "MiniCPM3", **LATENT),
    decoder("youtu", "Youtu", **LATENT),
    # Mixtures of experts.
    decoder("afmoe", "Afmoe", **EXPERTS, head_dim=8, sliding_window=4, num_dense_layers=1, num_shared_experts=1),
    text("aria-text", "AriaTextForCausalLM", "AriaTextConfig", moe_num_experts=4, moe_topk=2, moe_num_shared_experts=1),
    decoder("cohere2-moe", "Cohere2Moe", **EXPERTS, head_dim=8, sliding_window=4),
    decoder("dots1", "Dots1", **ROUTED, head_dim=8),
    decoder("deepseek-v2", "DeepseekV2", **LATENT, **ROUTED),
    decoder("deepseek-v3", "DeepseekV3", **LATENT, **ROUTED),
    decoder("ernie4_5-moe", "Ernie4_5_Moe", head_dim=8, moe_num_experts=4, moe_k=2, moe_intermediate_size=16, moe_layer_start_index=1, moe_num_shared_experts=1),
    decoder("exaone-moe", "ExaoneMoe", **EXPERTS, head_dim=8, sliding_window=4, n_group=1, topk_group=1, first_k_dense_replace=1),
    decoder("flex-olmo", "FlexOlmo", **EXPERTS),
    decoder("glm4-moe", "Glm4Moe", **ROUTED, head_dim=8),
    decoder("glm4-moe-lite", "Glm4MoeLite", **LATENT, **ROUTED),
    decoder("gpt-oss", "GptOss", num_local_experts=4, num_experts_per_tok=2, head_dim=8, sliding_window=4),
    decoder("granitemoe", "GraniteMoe", num_local_experts=4, num_experts_per_tok=2),
    decoder("granitemoe-shared", "GraniteMoeShared", num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=16),
    decoder("hunyuan-moe", "HunYuanMoEV1", num_experts=4, moe_topk=2, head_dim=8),
    decoder("jetmoe", "JetMoe", num_local_experts=4, num_experts_per_tok=2, kv_channels=8),
    text("llama4-text", "Llama4ForCausalLM", "Llama4TextConfig", num_local_experts=4, num_experts_per_tok=1, intermediate_size_mlp=48, head_dim=8, attention_chunk_size=4),
    decoder("longcat-flash", "LongcatFlash", head_dim=8, num_layers=1, kv_lora_rank=16, q_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8, num_key_value_heads=4, n_routed_experts=4, zero_expert_num=2, moe_topk=2, ffn_hidden_size=48, expert_ffn_hidden_size=16),
    decoder("mellum", "Mellum", **EXPERTS, head_dim=8, sliding_window=4),
    decoder("mimo-v2-flash", "MiMoV2Flash", **ROUTED, head_dim=8, v_head_dim=8, sliding_window=4),
    decoder("minimax", "MiniMax", num_local_experts=4, num_experts_per_tok=2, head_dim=8, block_size=4),
    decoder("minimax-m2", "MiniMaxM2", num_local_experts=4, num_experts_per_tok=2, head_dim=8),
    decoder("olmoe", "Olmoe", num_experts=4, num_experts_per_tok=2),
    decoder("phimoe", "Phimoe", num_local_experts=4, num_experts_per_tok=2),
    decoder("qwen3-moe", "Qwen3Moe", **EXPERTS, head_dim=8),
    decoder("solar-open", "SolarOpen", **ROUTED, head_dim=8),
    # Recurrences, and layers of several kinds.
    decoder("bamba", "Bamba", **CHUNKS, attn_layer_indices=[1]),
    decoder("falcon-h1", "FalconH1", mamba_d_ssm=32, mamba_d_state=4, mamba_n_heads=4, mamba_d_head=8, mamba_n_groups=1, mamba_chunk_size=4),
    decoder("falcon-mamba", "FalconMamba", state_size=4, conv_kernel=4, num_hidden_layers=1),
    decoder("granitemoe-hybrid", "GraniteMoeHybrid", **CHUNKS, num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=16, layer_types=["mamba", "attention"]),
    decoder("jamba", "Jamba", num_experts=4, num_experts_per_tok=2, attn_layer_period=2, attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1, mamba_d_state=4, mamba_d_conv=4, mamba_dt_rank=4, use_mamba_kernels=False),
    decoder("lfm2", "Lfm2", block_dim=32, block_ff_dim=48, layer_types=["conv", "full_attention"]),
    decoder("lfm2-moe", "Lfm2Moe", **EXPERTS, num_dense_layers=1, layer_types=["conv", "full_attention"]),
    decoder("mamba2", "Mamba2", state_size=4, num_heads=8, head_dim=8, n_groups=1, chunk_size=4, num_hidden_layers=1),
    decoder("nemotron-h", "NemotronH", mamba_num_heads=4, mamba_head_dim=8, ssm_state_size=4, n_groups=1, chunk_size=4, head_dim=8, hybrid_override_pattern="M*-", num_hidden_layers=3),
    decoder("olmo-hybrid", "OlmoHybrid", layer_types=["linear_attention", "full_attention"]),
    text("qwen3_5-text", "Qwen3_5ForCausalLM", "Qwen3_5TextConfig", head_dim=8, linear_key_head_dim=8, linear_value_head_dim=8, linear_num_key_heads=2, linear_num_value_heads=4, layer_types=["linear_attention", "full_attention"]),
    decoder("qwen3-next", "Qwen3Next", **EXPERTS, head_dim=8, shared_expert_intermediate_size=16, linear_key_head_dim=8, linear_value_head_dim=8, linear_num_key_heads=2, linear_num_value_heads=4, layer_types=["linear_attention", "full_attention"]),
    decoder("recurrent-gemma", "RecurrentGemma", lru_width=32, attention_window_size=4, block_types=["recurrent", "attention"], conv1d_width=4),
    case("xlstm", "decoder", "xLSTMForCausalLM", "xLSTMConfig", dict(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=1, num_heads=4, chunk_size=4), tokens, logits_of_decoder),
    decoder("zamba2", "Zamba2", mamba_d_state=4, n_mamba_heads=4, mamba_headdim=16, mamba_ngroups=1, chunk_size=4, num_mem_blocks=1, adapter_rank=4, layers_block_type=["mamba", "hybrid"], use_mem_rope=True),
    decoder("zaya", "Zaya", num_experts=4, num_experts_per_tok=1, head_dim=8, moe_intermediate_size=16, router_hidden_size=16),
    text("gemma3n-text", "Gemma3nForCausalLM", "Gemma3nTextConfig", head_dim=8, sliding_window=4, hidden_size_per_layer_input=8, vocab_size_per_layer_input=VOCABULARY, num_kv_shared_layers=0, altup_num_inputs=2, laurel_rank=4, layer_types=["sliding_attention", "full_attention"], activation_sparsity_pattern=[0.0, 0.0]),
    text("gemma4-text", "Gemma4ForCausalLM", "Gemma4TextConfig", head_dim=8, global_head_dim=8, sliding_window=4, hidden_size_per_layer_input=8, vocab_size_per_layer_input=VOCABULARY, num_kv_shared_layers=0, layer_types=["sliding_attention", "full_attention"]),
]

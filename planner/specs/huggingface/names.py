"""The field table: what a key of a `config.json` means, and which keys mean nothing here.

Families name the same thing differently. `MEANINGS` lists the names of each thing, the
usual one first. Keys that no family asks for are one of three: known not to matter
(`is_irrelevant`), able to change the shape of a model (`is_shapely`), or neither.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MEANINGS: Mapping[str, tuple[str, ...]] = {
    "n_layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "d_model": ("hidden_size", "n_embd", "d_model", "block_dim", "conv_dim", "conv_dim_out",
                "ffn_config.hidden_size"),
    "vocab_size": ("vocab_size", "padded_vocab_size", "embedding_size"),
    "is_tied": ("tie_word_embeddings", "tie_embeddings", "tie_embedding", "weight_tying"),
    "n_context_tokens": ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length",
                         "max_sequence_length"),
    "n_most_context_tokens": ("model_max_length",),
    "rope_scaling": ("rope_scaling",),
    "rope_parameters": ("rope_parameters",),
    "has_alibi": ("alibi", "attn_config.alibi"),
    "dtype": ("dtype", "torch_dtype"),
    # attention
    "n_heads": ("num_attention_heads", "n_head", "n_heads"),
    "n_kv_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads",
                   "attn_config.kv_n_heads"),
    "d_head": ("head_dim", "attention_head_dim"),
    "has_attention_bias": ("attention_bias",),
    "has_output_bias": ("attention_out_bias",),
    "has_qkv_bias": ("use_qkv_bias",),
    "has_qk_norm": ("use_qk_norm", "qk_norm", "qk_layernorm", "attn_config.qk_ln"),
    "attention_type": ("attn_config.attn_type",),
    "qk_norm_type": ("qk_norm_type",),
    "is_gated": ("attn_output_gate",),
    "is_multi_query": ("multi_query",),
    # what a layer attends to
    "layer_types": ("layer_types",),
    "n_window_tokens": ("sliding_window", "sliding_window_size"),
    "has_window": ("use_sliding_window",),
    "window_from_layer": ("max_window_layers",),
    "full_every": ("sliding_window_pattern", "_sliding_window_pattern", "layer_switch"),
    "n_chunk_tokens": ("attention_chunk_size",),
    "no_rope_layers": ("no_rope_layers",),
    "no_rope_interval": ("no_rope_layer_interval",),
    "attention_every": ("full_attention_interval",),
    "attention_period": ("attn_layer_period",),
    "attention_offset": ("attn_layer_offset",),
    "mixer_codes": ("attn_type_list",),
    "attention_layers": ("attn_layer_indices", "full_attn_idxs",
                         "linear_attn_config.full_attn_layers", "hybrid_layer_ids"),
    "linear_layers": ("linear_attn_config.kda_layers",),
    "layer_pattern": ("hybrid_override_pattern",),
    "block_types": ("layers_block_type",),
    "has_shared_cache": ("use_cla",),
    "n_sharing_layers": ("cla_share_factor",),
    "n_late_sharing_layers": ("num_kv_shared_layers",),
    # latent attention
    "d_kv_latent": ("kv_lora_rank",),
    "d_q_latent": ("q_lora_rank",),
    "d_rope": ("qk_rope_head_dim",),
    "d_nope": ("qk_nope_head_dim",),
    "d_value_head": ("v_head_dim",),
    "d_query_head": ("qk_head_dim",),
    "n_index_heads": ("index_n_heads",),
    "d_index_head": ("index_head_dim",),
    "n_index_tokens": ("index_topk",),
    "indexer_types": ("indexer_types",),
    # FFN and experts
    "d_ff": ("intermediate_size", "ffn_hidden_size", "n_inner", "block_ff_dim", "mlp_hidden_size",
             "ffn_config.ffn_hidden_size"),
    "ffn_type": ("mlp_type",),
    "ffn_ratio": ("expansion_ratio",),
    "ffn_multiplier": ("block_ffn_dim_multiplier",),
    "ffn_multiple_of": ("block_multiple_of",),
    "adjusts_ffn": ("block_auto_adjust_ff_dim",),
    "d_ff_dense": ("intermediate_size_mlp",),
    "has_ffn_bias": ("mlp_bias",),
    "n_experts": ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts",
                  "ffn_config.moe_num_experts"),
    "n_active": ("num_experts_per_tok", "num_experts_per_token", "experts_per_token",
                 "top_k_experts", "moe_topk", "moe_k", "ffn_config.moe_top_k"),
    "d_expert": ("moe_intermediate_size", "expert_intermediate_size"),
    "n_shared_experts": ("n_shared_experts", "num_shared_expert", "num_shared_experts",
                         "moe_num_shared_experts"),
    "d_shared": ("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
                 "shared_intermediate_size"),
    "d_expert_latent": ("moe_latent_size",),
    "has_routing_bias": ("use_routing_bias",),
    "routing": ("topk_method",),
    "n_expert_groups": ("n_group", "num_expert_group"),
    "n_active_groups": ("topk_group",),
    "first_dense": ("first_k_dense_replace", "moe_layer_start_index"),
    "last_sparse": ("moe_layer_end_index",),
    "expert_interval": ("moe_layer_interval",),
    "sparse_every": ("moe_layer_freq", "decoder_sparse_step", "interleave_moe_layer_step"),
    "dense_layers": ("mlp_only_layers",),
    "sparse_layers": ("moe_layers",),
    "ffn_types": ("mlp_layer_types",),
    "expert_period": ("expert_layer_period",),
    "expert_offset": ("expert_layer_offset",),
    "has_experts_beside": ("enable_moe_block",),
    "has_mixed_experts": ("use_mixed_mlp_moe",),
    # recurrences
    "n_conv_taps": ("linear_conv_kernel_dim", "mamba_d_conv", "conv_kernel", "conv_L_cache",
                    "linear_attn_config.short_conv_kernel_size"),
    "n_key_heads": ("linear_num_key_heads",),
    "n_value_heads": ("linear_num_value_heads",),
    "d_linear_key": ("linear_key_head_dim",),
    "d_linear_value": ("linear_value_head_dim",),
    "n_linear_heads": ("linear_num_heads", "linear_attn_config.num_heads"),
    "d_linear_head": ("linear_head_dim", "linear_attn_config.head_dim", "head_size"),
    "d_linear": ("attention_hidden_size",),
    "n_state_rows": ("mamba_d_state", "ssm_state_size", "state_size"),
    "n_state_heads": ("mamba_n_heads", "mamba_num_heads", "num_heads", "n_mamba_heads"),
    "d_state_head": ("mamba_d_head", "mamba_head_dim", "mamba_headdim"),
    "d_state_inner": ("mamba_d_ssm",),
    "norms_state": ("mamba_rms_norm",),
    "n_state_groups": ("mamba_n_groups", "n_groups", "mamba_ngroups"),
    "expansion": ("mamba_expand", "expand"),
    "n_time_rank": ("mamba_dt_rank", "time_step_rank"),
    "has_conv_bias": ("mamba_conv_bias", "use_conv_bias", "conv_bias"),
    "has_projection_bias": ("mamba_proj_bias", "use_bias", "projectors_bias", "add_bias_linear",
                            "include_bias"),
    "state_dtype": ("mamba_ssm_dtype", "mamba_ssm_cache_dtype"),
    # predictors of further tokens
    "n_predictors": ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"),
    "n_predictor_layers": ("mtp_transformer_layers",),
    "has_predictors": ("use_mtp",),
    "predictor_pattern": ("mtp_hybrid_override_pattern",),
    "predictor_types": ("mtp_layers_block_type",),
    # the block
    "is_parallel": ("parallel_attn", "use_parallel_residual"),
    "has_head_bias": ("lm_head_bias",),
    "is_unbiased": ("no_bias",),
    "kv_channels": ("kv_channels",),
    "n_query_groups": ("num_query_groups",),
    "adapts_ffn": ("use_shared_mlp_adapter",),
    "n_shared_blocks": ("num_mem_blocks",),
    "adapter_rank": ("adapter_rank",),
    "adapts_attention": ("use_shared_attention_adapter",),
    "has_bias": ("bias",),
    "has_new_block": ("new_decoder_architecture",),
    "n_block_norms": ("num_ln_in_parallel_attn",),
    "blocks": ("block_configs",),
    "d_head_global": ("global_head_dim",),
    "n_kv_heads_global": ("num_global_key_value_heads",),
    "values_are_keys": ("attention_k_eq_v",),
    "d_layer_input": ("hidden_size_per_layer_input",),
    "is_double_wide": ("use_double_wide_mlp",),
}  # fmt: skip
"""Names of one thing in all families, by what this package calls it."""

_WORDS = """
_name_or_path architectures auto_map model_type transformers_version quantization_config
compression_config is_encoder_decoder is_decoder
use_cache cache_implementation attn_implementation _attn_implementation output_attentions
output_hidden_states output_router_logits return_dict pretraining_tp torchscript problem_type
hidden_act hidden_activation activation_function mlp_hidden_act mamba_hidden_act swiglu_limit
alibi apply_residual_connection_post_layernorm
partial_rotary_factor rotary_dim rotary_pct rotary_emb_base position_embedding_type
original_max_position_embeddings initial_context_length indexer_rope_interleave
attention_multiplier embedding_multiplier logits_scaling residual_multiplier attn_scale
attn_temperature_tuning floor_scale query_pre_attn_scalar attn_logit_softcapping
final_logit_softcapping residual_in_fp32 rescale_prenorm_residual normalization_function
norm_topk_prob routed_scaling_factor scoring_func seq_aux ep_size aux_loss_alpha
router_jitter_noise input_jitter_noise router_sigmoid_scaling moe_router_dtype
moe_router_topk_scaling_factor router_aux_loss moe_shared_expert_overlap
index_share_for_mtp_iteration index_skip_topk_offset index_topk_freq index_topk_pattern
chunk_size mamba_chunk_size block_size time_step_limit time_step_max time_step_min
time_step_floor time_step_scale time_step_init_scheme use_mamba_kernels mamba_dt_max
mamba_dt_min mamba_norm_before_gate mixer_rms_eps use_mambapy use_associative_scan
use_falcon_mambapy use_triton_kernels rms_norm norm_before_gate hidden_act_moe
num_logits_to_keep postnorm shared_moe_mode moe_random_routing_dropped_token
moe_drop_tokens capacity_factor norm_type pool_type class_num add_classification_head
use_rotary_pos_emb use_bidirectional_attention vocab_size_per_layer_input
org_vocab_size mtp_use_dedicated_embeddings for_llm_compressor bias_dropout_fusion
embd_layer classifier_bias unk_token summary_type finetuning_task task_specific_params
id2label label2id num_labels chunk_size_feed_forward pruned_heads sep_token mm_tokens
decoder_start_token_id prefix suffix do_sample temperature top_k top_p typical_p
repetition_penalty length_penalty no_repeat_ngram_size early_stopping num_beams
num_beam_groups num_return_sequences max_length min_length diversity_penalty
tf_legacy_loss use_bfloat16 remove_invalid_values exponential_decay_length_penalty
begin_suppress_tokens suppress_tokens forced_bos_token_id bad_words_ids
output_gate_type dense_list keys_to_ignore_at_inference _commit_hash
clip_qkv attn_type attn_impl attn_uses_sequence_id prefix_lm softmax_scale alibi_bias_max
init_device init_config init_fn init_cutoff_factor embedding_fraction learned_pos_emb logit_scale
use_embedding_sharing moe_normalize_expert_weights ffn_act_fn ffn_act_type
mla_use_nope moe_renormalize moe_router_activation_func use_grouped_topk moe_use_aux_free_bias
mamba_use_mlp block_group_size attention_layer_norm_with_affine use_mem_eff_path use_mem_rope
use_long_context
attention_in_multiplier attention_out_multiplier key_multiplier lm_head_multiplier
mlp_multipliers ssm_in_multiplier ssm_multipliers ssm_out_multiplier
moe_norm_min moe_capacity moe_gate moe_use_hard_gate head_size_divisor rescale_every
group_limited_greedy use_cache_quantization vit_type vit_path
activation_type block_type flash_attention layer_norm_type layer_norm_with_affine
precision rope scale_logits attn_rotary_emb mlp_ratio mlp_expansion_factor rotary_scaling_factor
moe_use_aux_free order_of_interleaved_layers use_gated_activation use_parallel_block
use_parallel_embedding block_mlp_init_scale block_out_init_scale block_use_swiglu
block_use_xavier_init conv_use_xavier_init use_pos_enc
"""
_IRRELEVANT = frozenset(_WORDS.split())
_IRRELEVANT_ENDS = re.compile(
    r"(_token_id|_token_ids|_token_index|_tokens_id|_eps|_epsilon|_dropout|_coef|_pdrop|_range"
    r"|_softcapping|_alpha|_beta|_std|_loss_weight)$"
)
_IRRELEVANT_STARTS = re.compile(r"^(rope_|mrope_|mup_|initializer_|layernorm_|im_|vision_|audio_)")
_IRRELEVANT_STARTS_EXCEPT = re.compile(r"_(layers?|types?|heads?|pattern|interval)$")

_SHAPELY = re.compile(
    r"(^|_)(n|num|d|dim|dims|size|sizes|rank|ranks|layer|layers|head|heads|type|types|pattern"
    r"|patterns|list|period|offset|interval|freq|step|stride|ratio|ratios|expert|experts|mult"
    r"|width|wide|depth|block|blocks|window|windows|chunk|chunks|shared|share|expand|kernel"
    r"|groups?|bias|norm|gate|gated|rows|columns|conv|state|lora|latent|mtp|nextn|predict"
    r"|attn|attention|mlp|ffn|moe|mamba|ssm|linear|recurrent|sparse|dense|cla|kv|index|indexer"
    r"|compress|hash|topk|factor)($|_|\d)"
)
_SWITCH = re.compile(r"^(use|enable|has|with|add|is)_")


def is_irrelevant(key: str) -> bool:
    """Whether a key is known to change neither weights nor caches."""
    key = key.rpartition(".")[2]
    if key in _IRRELEVANT or _IRRELEVANT_ENDS.search(key):
        return True
    return bool(_IRRELEVANT_STARTS.match(key) and not _IRRELEVANT_STARTS_EXCEPT.search(key))


def is_shapely(key: str, value: object) -> bool:
    """Whether a key that nothing is known about could change the shape of the model.

    What is absent or off, `null`, `false`, `0` or empty, changes nothing.
    """
    if not value:
        return False
    if value is True and _SWITCH.match(key):
        return True
    return bool(_SHAPELY.search(key))

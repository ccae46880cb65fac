"""Tiny random models of every Hugging Face family, saved as their own program saves them.

Built from transformers' own config classes; every parameter is moved away from where it starts, so
that a gain taken for one or a bias for zero shows. Fewer kv heads than heads where a family can.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

D_VOCAB, N_CTX = 60, 64
TOKENS = (0, 5, 9, 11, 4, 20, 9, 11, 30, 7, 8)

_SIZES = {
    "vocab_size": D_VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": N_CTX,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": None,
}
_GROUPED = {**_SIZES, "num_key_value_heads": 2}
_HEAD = {**_GROUPED, "head_dim": 8}
_GPT2 = {
    "vocab_size": D_VOCAB,
    "n_embd": 32,
    "n_layer": 3,
    "n_head": 4,
    "n_positions": N_CTX,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
_NEO = {
    "vocab_size": D_VOCAB,
    "hidden_size": 32,
    "num_layers": 4,
    "num_heads": 4,
    "max_position_embeddings": N_CTX,
    "attention_types": [[["global", "local"], 2]],
    "window_size": 4,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
_OPT = {
    "vocab_size": D_VOCAB,
    "hidden_size": 32,
    "ffn_dim": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": N_CTX,
    "word_embed_proj_dim": 32,
    "pad_token_id": 1,
    "bos_token_id": 2,
    "eos_token_id": 2,
}
_FALCON = {
    "vocab_size": D_VOCAB,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
# Its config.json has n_layers and d_model, as transformer_lens' own has.
_MPT = {
    "vocab_size": D_VOCAB,
    "d_model": 32,
    "n_layers": 3,
    "n_heads": 4,
    "max_seq_len": N_CTX,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
_GRANITE = {
    "residual_multiplier": 0.5,
    "embedding_multiplier": 3.0,
    "logits_scaling": 2.0,
    "attention_multiplier": 0.3,
}
_GEMMA = {"sliding_window": 4, "query_pre_attn_scalar": 8}
# Caps so low that they bend every logit and score.
_CAPS = {"final_logit_softcapping": 2.0, "attn_logit_softcapping": 1.0}

# name: class stem of model and config, and the config's fields.
FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", _GPT2),
    "gpt-neo": ("GPTNeoForCausalLM", "GPTNeoConfig", _NEO),
    "gpt-j": ("GPTJForCausalLM", "GPTJConfig", {**_GPT2, "rotary_dim": 4}),
    "gpt-neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", _SIZES),
    "gpt-neox-sequential": (
        "GPTNeoXForCausalLM",
        "GPTNeoXConfig",
        {**_SIZES, "use_parallel_residual": False},
    ),
    "opt": ("OPTForCausalLM", "OPTConfig", _OPT),
    "llama": ("LlamaForCausalLM", "LlamaConfig", _GROUPED),
    "mistral": ("MistralForCausalLM", "MistralConfig", {**_GROUPED, "sliding_window": 4}),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", _GROUPED),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", _HEAD),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", _HEAD),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", {**_HEAD, **_GEMMA, **_CAPS}),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", {**_HEAD, **_GEMMA}),
    "phi": ("PhiForCausalLM", "PhiConfig", {**_SIZES, "num_key_value_heads": 4}),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", {**_GROUPED, "pad_token_id": 0}),
    "granite": ("GraniteForCausalLM", "GraniteConfig", {**_GROUPED, **_GRANITE}),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Config", _GROUPED),
    "stablelm": ("StableLmForCausalLM", "StableLmConfig", _GROUPED),
    "falcon": ("FalconForCausalLM", "FalconConfig", _FALCON),
    "cohere": ("CohereForCausalLM", "CohereConfig", _GROUPED),
    "smollm3": ("SmolLM3ForCausalLM", "SmolLM3Config", _GROUPED),
    "mpt": ("MptForCausalLM", "MptConfig", _MPT),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", {**_GROUPED, "num_local_experts": 4}),
}
PARALLEL = {"gpt-j", "gpt-neox", "phi", "falcon", "cohere"}
N_KV_HEADS = dict.fromkeys(FAMILIES, 2) | {
    "falcon": 1,
    **dict.fromkeys(["gpt2", "gpt-neo", "gpt-j", "gpt-neox", "gpt-neox-sequential"], 4),
    **dict.fromkeys(["opt", "phi", "mpt"], 4),
}
# Experts are chosen by what they read, and MPT's MLP adds to the stream itself: only sources.
SOURCES_ONLY = {"mixtral", "mpt"}
POSITIONS = {"gpt2", "gpt-neo", "opt"}

# What is refused, and the words that say why.
REFUSED: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "mamba": (
        "MambaForCausalLM",
        "MambaConfig",
        {"vocab_size": D_VOCAB, "hidden_size": 32, "num_hidden_layers": 2},
        "recurrent layers",
    ),
    "bloom": (
        "BloomForCausalLM",
        "BloomConfig",
        {"vocab_size": D_VOCAB, "hidden_size": 32, "n_layer": 2, "n_head": 4},
        "a norm behind its embedding",
    ),
    "deepseek-v3": (
        "DeepseekV3ForCausalLM",
        "DeepseekV3Config",
        {
            **_SIZES,
            "num_key_value_heads": 4,
            "q_lora_rank": 8,
            "kv_lora_rank": 8,
            "qk_rope_head_dim": 4,
            "qk_nope_head_dim": 4,
            "v_head_dim": 8,
            "n_routed_experts": 4,
            "n_group": 1,
            "topk_group": 1,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 16,
        },
        "latent attention",
    ),
    "gpt-oss": (
        "GptOssForCausalLM",
        "GptOssConfig",
        {**_HEAD, "num_local_experts": 2, "pad_token_id": 0},
        "attention sinks",
    ),
    "opt-post-norm": (
        "OPTForCausalLM",
        "OPTConfig",
        {**_OPT, "do_layer_norm_before": False},
        "norms on the stream itself",
    ),
    "t5": (
        "T5ForConditionalGeneration",
        "T5Config",
        {"vocab_size": D_VOCAB, "d_model": 16, "d_kv": 4, "num_layers": 1, "num_heads": 4},
        "an encoder",
    ),
    "bert": (
        "BertForMaskedLM",
        "BertConfig",
        {**_SIZES, "pad_token_id": 0},
        "does not predict the next token",
    ),
    "qwen3-next": (
        "Qwen3NextForCausalLM",
        "Qwen3NextConfig",
        {
            **_HEAD,
            "num_experts": 2,
            "num_experts_per_tok": 1,
            "moe_intermediate_size": 16,
            "shared_expert_intermediate_size": 16,
            "linear_num_value_heads": 4,
            "linear_num_key_heads": 2,
        },
        "linear attention",
    ),
}


def build_model(architecture: str, config: str, fields: dict[str, Any], seed: int = 1) -> Any:
    """A random model in memory."""
    import transformers

    torch.manual_seed(seed)
    model = getattr(transformers, architecture)(getattr(transformers, config)(**fields))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            spread = 0.2 if parameter.ndim == 1 else 0.1
            parameter.add_(torch.randn(parameter.shape, generator=generator) * spread)
    return model.eval()


def save_family(family: str, folder: Path, **save: Any) -> Path:
    """A random model of `family` in `folder`, with its tokenizer."""
    architecture, config, fields = FAMILIES[family]
    build_model(architecture, config, fields).save_pretrained(folder, **save)
    save_tokenizer(folder)
    return folder


def save_tokenizer(folder: Path, adds_bos: bool = False, **settings: Any) -> None:
    """A byte-level tokenizer of 60 tokens: BOS, EOS, letters with and without a space."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["<s>", "</s>", "<pad>", *("Ġ" + letter for letter in letters), *letters, *"Ġ.,!?"]
    vocab = {word: place for place, word in enumerate(words[:D_VOCAB])}
    merges = [("Ġ", letter) for letter in letters if "Ġ" in vocab]
    inner = Tokenizer(models.BPE(vocab, merges))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens(["<s>", "</s>", "<pad>"])
    if adds_bos:
        inner.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", 0)]
        )
    inner.save(str(folder / "tokenizer.json"))
    settings = {"bos_token": "<s>", "eos_token": "</s>", **settings}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def edit_json(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """The JSON object in a file, changed in place."""
    fields = json.loads(path.read_text())
    change(fields)
    path.write_text(json.dumps(fields))

"""A small GGUF file with random weights."""

import numpy as np
import pytest


def save_gguf(path):
    """A random Llama of 2 layers with a SentencePiece vocabulary: "a" is token 3, "▁a" 29."""
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_block_count(2)
    writer.add_feed_forward_length(48)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(60)
    letters = [chr(97 + place) for place in range(26)]
    words = ["<s>", "</s>", "<unk>", *letters, *("▁" + letter for letter in letters), *"▁.,!?"]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(words)
    writer.add_token_scores([-float(place) for place in range(60)])
    writer.add_token_types([3, 3, 2] + [1] * 57)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(2)
    shapes = {"token_embd": (60, 32), "output_norm": (32,), "output": (60, 32)}
    block = {"attn_q": (32, 32), "attn_k": (16, 32), "attn_v": (16, 32), "attn_output": (32, 32)}
    block |= {"ffn_gate": (48, 32), "ffn_up": (48, 32), "ffn_down": (32, 48)}
    block |= {"attn_norm": (32,), "ffn_norm": (32,)}
    for layer in range(2):
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in block.items()}
    random = np.random.default_rng(0)
    for name, shape in shapes.items():
        array = (0.3 * random.standard_normal(shape)).astype(np.float32)
        writer.add_tensor(f"{name}.weight", array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path

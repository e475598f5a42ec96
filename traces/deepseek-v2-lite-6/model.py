"""Six layers of DeepSeek-V2-Lite (arXiv 2405.04434): latent attention with keys of 192 and values of 128, one dense layer, five of
64 experts, 6 of them and two shared ones for each token.
"""

import torch
from torch import Tensor, nn
from transformers import DeepseekV2Config, DeepseekV2ForCausalLM

BATCH, SEQUENCE = 2, 2048


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = DeepseekV2Config(
            vocab_size=102_400,
            hidden_size=2048,
            intermediate_size=10_944,
            moe_intermediate_size=1408,
            num_hidden_layers=6,
            num_attention_heads=16,
            num_key_value_heads=16,
            q_lora_rank=None,
            kv_lora_rank=512,
            n_routed_experts=64,
            n_shared_experts=2,
            num_experts_per_tok=6,
            first_k_dense_replace=1,
            max_position_embeddings=4096,
            use_cache=False,
        )
        self.model = DeepseekV2ForCausalLM._from_config(config, attn_implementation="sdpa", experts_implementation="grouped_mm")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}

"""A language model written by hand, as users bring them: no library's building blocks, an architecture of its own.

Attention and MLP of a block run side by side on one normalised input (as in GPT-J), fewer key than query heads, ALiBi-free
learned positions, squared ReLU, LayerNorm without bias, heads that are not tied to the embedding.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH, SEQUENCE, VOCABULARY = 4, 1536, 50_048
WIDTH, BLOCKS, HEADS, KEY_HEADS, HIDDEN = 1792, 20, 14, 2, 7168


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = WIDTH // HEADS
        self.norm = nn.LayerNorm(WIDTH, bias=False)
        self.qkv = nn.Linear(WIDTH, (HEADS + 2 * KEY_HEADS) * self.head, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def attention(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        qkv = self.qkv(x).view(batch, length, HEADS + 2 * KEY_HEADS, self.head).transpose(1, 2)
        q, k, v = qkv.split([HEADS, KEY_HEADS, KEY_HEADS], dim=1)
        k = k.repeat_interleave(HEADS // KEY_HEADS, dim=1)
        v = v.repeat_interleave(HEADS // KEY_HEADS, dim=1)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        return x + self.attention(y) + self.down(F.relu(self.up(y)).square())


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(SEQUENCE, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm = nn.LayerNorm(WIDTH, bias=False)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def build() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    shape = (BATCH, SEQUENCE)
    return Model(), (torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long))

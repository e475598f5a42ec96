"""DiT-L/2 (arXiv 2212.09748), a diffusion transformer written by hand: 16 x 16 patches of a latent image, 24 blocks whose
norms and residuals are scaled and shifted by what a small network makes of time and class.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH, CHANNELS, SIZE, PATCH, CLASSES = 48, 4, 32, 2, 1000
WIDTH, BLOCKS, HEADS, FREQUENCIES = 1024, 24, 16, 256


def modulate(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)
        self.modulation = nn.Linear(WIDTH, 6 * WIDTH)

    def attention(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        shift, scale, gate, shift_mlp, scale_mlp, gate_mlp = self.modulation(F.silu(condition)).chunk(6, dim=1)
        x = x + gate.unsqueeze(1) * self.attention(modulate(F.layer_norm(x, (WIDTH,)), shift, scale))
        hidden = F.gelu(self.up(modulate(F.layer_norm(x, (WIDTH,)), shift_mlp, scale_mlp)), approximate="tanh")
        return x + gate_mlp.unsqueeze(1) * self.down(hidden)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(CHANNELS, WIDTH, PATCH, PATCH)
        self.positions = nn.Parameter(torch.zeros(1, (SIZE // PATCH) ** 2, WIDTH))
        self.time = nn.Sequential(nn.Linear(FREQUENCIES, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))
        self.classes = nn.Embedding(CLASSES + 1, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.modulation = nn.Linear(WIDTH, 2 * WIDTH)
        self.last = nn.Linear(WIDTH, PATCH * PATCH * CHANNELS)

    def forward(self, latents: Tensor, times: Tensor, classes: Tensor, noise: Tensor) -> Tensor:
        x = self.patches(latents).flatten(2).transpose(1, 2) + self.positions
        condition = self.time(times) + self.classes(classes)
        for block in self.blocks:
            x = block(x, condition)
        shift, scale = self.modulation(F.silu(condition)).chunk(2, dim=1)
        predicted = self.last(modulate(F.layer_norm(x, (WIDTH,)), shift, scale))
        side = SIZE // PATCH
        images = predicted.view(-1, side, side, PATCH, PATCH, CHANNELS).permute(0, 5, 1, 3, 2, 4)
        return F.mse_loss(images.reshape_as(noise).float(), noise.float())


def build() -> tuple[nn.Module, tuple[Tensor, Tensor, Tensor, Tensor]]:
    image = (BATCH, CHANNELS, SIZE, SIZE)
    return Model(), (torch.zeros(image), torch.zeros(BATCH, FREQUENCIES), torch.zeros(BATCH, dtype=torch.long), torch.zeros(image))

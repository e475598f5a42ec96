"""A diffusion model on latent images of 64 x 64: convolutions of 3 x 3 with group norms, attention at 32 x 32 and below."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

BATCH = 16
WIDTHS = (320, 640, 1280, 1280)
HEAD = 64


class Residual(nn.Module):
    """Two convolutions, with what the time of the noise says between them."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.norm_in, self.norm_out = nn.GroupNorm(32, before), nn.GroupNorm(32, after)
        self.conv_in, self.conv_out = nn.Conv2d(before, after, 3, padding=1), nn.Conv2d(after, after, 3, padding=1)
        self.time = nn.Linear(4 * WIDTHS[0], after)
        self.skip = nn.Identity() if before == after else nn.Conv2d(before, after, 1)

    def forward(self, image: Tensor, time: Tensor) -> Tensor:
        hidden = self.conv_in(functional.silu(self.norm_in(image))) + self.time(functional.silu(time))[:, :, None, None]
        return self.skip(image) + self.conv_out(functional.silu(self.norm_out(hidden)))


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.project, self.out = nn.GroupNorm(32, width), nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, image: Tensor, _time: Tensor) -> Tensor:
        batch, width, *_ = image.shape
        pixels = self.norm(image).flatten(2).transpose(1, 2)
        query, key, value = self.project(pixels).view(batch, -1, 3, width // HEAD, HEAD).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(batch, -1, width)
        return image + self.out(seen).transpose(1, 2).reshape(image.shape)


class Down(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, stride=2, padding=1)

    def forward(self, image: Tensor, _time: Tensor) -> Tensor:
        return self.conv(image)


class Up(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, image: Tensor, _time: Tensor) -> Tensor:
        return self.conv(functional.interpolate(image, scale_factor=2.0, mode="nearest"))


class Denoiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(4, WIDTHS[0], 3, padding=1), nn.Conv2d(WIDTHS[0], 4, 3, padding=1)
        self.time = nn.Linear(WIDTHS[0], 4 * WIDTHS[0])
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        widths = [WIDTHS[0]]
        for level, width in enumerate(WIDTHS):
            for _ in range(2):
                self.down.append(nn.ModuleList([Residual(widths[-1], width), *([Attention(width)] if level else [])]))
                widths.append(width)
            if level < len(WIDTHS) - 1:
                self.down.append(nn.ModuleList([Down(width)]))
                widths.append(width)
        self.middle = nn.ModuleList([Residual(widths[-1], widths[-1]), Attention(widths[-1])])
        now = widths[-1]
        for level, width in reversed(list(enumerate(WIDTHS))):
            for block in range(3):
                layers = [Residual(now + widths.pop(), width), *([Attention(width)] if level else [])]
                self.up.append(nn.ModuleList([*layers, *([Up(width)] if level and block == 2 else [])]))
                now = width

    def forward(self, noisy: Tensor, times: Tensor, noise: Tensor) -> Tensor:
        time = self.time(times)
        hidden = [self.first(noisy)]
        for layers in self.down:
            hidden.append(self._run(layers, hidden[-1], time))
        image = self._run(self.middle, hidden[-1], time)
        for layers in self.up:
            image = self._run(layers, torch.cat([image, hidden.pop()], dim=1), time)
        return functional.mse_loss(self.last(functional.silu(image)).float(), noise.float())

    @staticmethod
    def _run(layers: nn.ModuleList, image: Tensor, time: Tensor) -> Tensor:
        for layer in layers:
            image = layer(image, time)
        return image


def build(batch: int = BATCH) -> tuple[nn.Module, dict[str, Tensor]]:
    images = torch.zeros(batch, 4, 64, 64)
    return Denoiser().train(), {"noisy": images, "times": torch.zeros(batch, WIDTHS[0]), "noise": images.clone()}

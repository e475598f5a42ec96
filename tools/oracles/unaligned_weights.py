"""Times of ops whose weight (or bias) begins some bytes behind a multiple of 16, as parameters do that ZeRO-1 and 2 keep
side by side in one tensor. Needs a GPU; prints one JSON object a line.

  python3 tools/oracles/unaligned_weights.py > configs/measured/h200-unaligned-weights.jsonl
"""

import json
import math

import torch
from torch.nn import functional

OFFSETS = (0, 16, 8, 4, 2)  # bytes
FLAT = torch.randn(65 * 1024 * 1024, device="cuda", dtype=torch.bfloat16) * 0.01


def microseconds(run, repeats=30):
    for _ in range(5):
        run()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(repeats):
        run()
    end.record()
    torch.cuda.synchronize()
    return round(begin.elapsed_time(end) / repeats * 1e3, 1)


def weight(shape, offset):
    return FLAT[offset // 2 : offset // 2 + math.prod(shape)].view(shape)


def convolution(images, shape, padding):
    groups = images[1] // shape[1]
    image = torch.randn(images, device="cuda", dtype=torch.bfloat16)
    gradient = torch.randn_like(functional.conv2d(image, weight(shape, 0), padding=padding, groups=groups))
    for offset in OFFSETS:
        filters = weight(shape, offset)
        layout = [[1, 1], [padding, padding], [1, 1], False, [0, 0], groups]

        def backward(filters=filters, layout=layout):
            torch.ops.aten.convolution_backward(gradient, image, filters, None, *layout, [True, True, False])

        forward_us = microseconds(lambda: functional.conv2d(image, filters, padding=padding, groups=groups))
        print_times("convolution", images, shape, offset, forward_us, microseconds(backward))


def product(rows, depth, columns):
    left = torch.randn(rows, depth, device="cuda", dtype=torch.bfloat16)
    gradient = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
    for offset in OFFSETS:
        right = weight((columns, depth), offset)
        forward_us = microseconds(lambda: functional.linear(left, right))
        backward_us = microseconds(lambda: torch.mm(gradient, right))
        print_times("linear", (rows, depth), (columns, depth), offset, forward_us, backward_us)


def layer_norm(rows, width):
    x = torch.randn(rows, width, device="cuda", dtype=torch.bfloat16)
    for offset in OFFSETS:
        gamma, beta = weight((width,), offset), weight((width,), offset)
        _, mean, deviation = torch.native_layer_norm(x, (width,), gamma, beta, 1e-5)

        def backward(gamma=gamma, beta=beta, mean=mean, deviation=deviation):
            torch.ops.aten.native_layer_norm_backward(x, x, (width,), mean, deviation, gamma, beta, [True, True, True])

        forward_us = microseconds(lambda: torch.native_layer_norm(x, (width,), gamma, beta, 1e-5))
        print_times("layer_norm", (rows, width), (width,), offset, forward_us, microseconds(backward))


def group_norm(images, groups):
    x = torch.randn(images, device="cuda", dtype=torch.bfloat16)
    samples, channels, pixels = images[0], images[1], images[2] * images[3]
    for offset in OFFSETS:
        gamma = weight((channels,), offset)
        _, mean, deviation = torch.native_group_norm(x, gamma, gamma, samples, channels, pixels, groups, 1e-5)

        def backward(gamma=gamma, mean=mean, deviation=deviation):
            sizes = [samples, channels, pixels, groups]
            torch.ops.aten.native_group_norm_backward(x, x, mean, deviation, gamma, *sizes, [True, True, True])

        forward_us = microseconds(
            lambda: torch.native_group_norm(x, gamma, gamma, samples, channels, pixels, groups, 1e-5)
        )
        print_times("group_norm", images, (channels,), offset, forward_us, microseconds(backward))


def elementwise(rows, width):
    """A scale of each column, as RMS norms have it: forward with one broadcast operand, in the backward two whole ones."""
    x = torch.randn(rows, width, device="cuda", dtype=torch.bfloat16)
    for offset in OFFSETS:
        scale = weight((width,), offset)
        forward_us = microseconds(lambda: x * scale)
        print_times("mul", (rows, width), (width,), offset, forward_us, microseconds(lambda: x + scale))


def embedding(indices, rows, width):
    index = torch.randint(rows, (indices,), device="cuda")
    for offset in OFFSETS:
        table = weight((rows, width), offset)
        print_times("embedding", (indices,), (rows, width), offset, microseconds(lambda: table[index]), 0)


def bias(rows, depth, columns):
    left = torch.randn(rows, depth, device="cuda", dtype=torch.bfloat16)
    right = weight((columns, depth), 0)
    for offset in OFFSETS:
        added = weight((columns,), offset)
        print_times("bias", (rows, depth), (columns,), offset, microseconds(lambda: functional.linear(left, right, added)), 0)


def print_times(name, read, shape, offset, forward_us, backward_us):
    line = {"op": name, "input": read, "weight": shape, "offset_bytes": offset}
    print(json.dumps({**line, "forward_us": forward_us, "backward_us": backward_us}), flush=True)


if __name__ == "__main__":
    version = {"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "gpu": torch.cuda.get_device_name()}
    print(json.dumps(version))
    convolution((16, 2560, 16, 16), (1280, 2560, 1, 1), 0)
    convolution((16, 960, 64, 64), (320, 960, 1, 1), 0)
    convolution((16, 1280, 16, 16), (1280, 1280, 3, 3), 1)
    convolution((16, 320, 64, 64), (320, 320, 3, 3), 1)
    convolution((128, 1232, 14, 14), (1232, 1232, 1, 1), 0)
    convolution((256, 256, 14, 14), (1024, 256, 1, 1), 0)
    convolution((256, 512, 28, 28), (128, 512, 1, 1), 0)
    convolution((64, 160, 23, 23), (960, 160, 1, 1), 0)
    convolution((64, 960, 23, 23), (160, 960, 1, 1), 0)
    convolution((64, 1632, 11, 11), (272, 1632, 1, 1), 0)
    convolution((64, 192, 95, 95), (32, 192, 1, 1), 0)
    convolution((256, 2048, 7, 7), (512, 2048, 1, 1), 0)
    convolution((128, 1232, 1, 1), (308, 1232, 1, 1), 0)
    convolution((64, 68, 1, 1), (1632, 68, 1, 1), 0)
    convolution((128, 1232, 14, 14), (1232, 112, 3, 3), 1)
    convolution((128, 448, 28, 28), (448, 112, 3, 3), 1)
    convolution((64, 192, 95, 95), (192, 1, 3, 3), 1)
    convolution((64, 1632, 11, 11), (1632, 1, 5, 5), 2)
    convolution((256, 512, 7, 7), (512, 512, 3, 3), 1)
    product(4096, 4096, 4096)
    product(4096, 1024, 4096)
    product(16384, 1024, 1024)
    product(4096, 4096, 12288)
    layer_norm(100352, 192)
    layer_norm(16384, 1024)
    layer_norm(4096, 4096)
    group_norm((16, 320, 64, 64), 32)
    elementwise(8192, 4096)
    embedding(8192, 32768, 2048)
    bias(16384, 1024, 1024)
    bias(4096, 4096, 4096)

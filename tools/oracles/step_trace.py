"""A step of training as PyTorch's profiler sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist


def trace_step(step: Callable[[], Any], path: str) -> None:
    """Writes a trace (.json or .json.gz) of the second of two steps: the profiler's first one is slow."""
    from torch.profiler import ProfilerActivity, profile, schedule

    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        schedule=schedule(wait=0, warmup=1, active=1),
        on_trace_ready=lambda done: done.export_chrome_trace(path),
    ) as profiler:
        for _ in range(2):
            torch.cuda.synchronize()
            dist.barrier()
            step()
            torch.cuda.synchronize()
            profiler.step()

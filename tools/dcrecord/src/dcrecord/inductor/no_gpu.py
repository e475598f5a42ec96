"""Stand-ins for what Inductor and Triton ask of a GPU, for machines without one. Nothing is launched."""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch

CAPABILITY = (9, 0)
ARCHITECTURE = "sm_90"
# What a kernel's shape depends on, as an H200 (and an H100 SXM) tells of itself.
PROPERTIES = {
    "name": "NVIDIA H200",
    "major": 9,
    "minor": 0,
    "total_memory": 150_110_011_392,
    "multi_processor_count": 132,
    "L2_cache_size": 62_914_560,
    "regs_per_multiprocessor": 65_536,
    "max_threads_per_multi_processor": 2_048,
    "max_threads_per_block": 1_024,
    "warp_size": 32,
    "shared_memory_per_block": 49_152,
    "shared_memory_per_block_optin": 232_448,
    "shared_memory_per_multiprocessor": 233_472,
    "is_integrated": 0,
    "is_multi_gpu_board": 0,
    "gcnArchName": "",
    "uuid": "none",
    "clock_rate": 1_980_000,
    "memory_clock_rate": 3_201_000,
    "memory_bus_width": 6_144,
}


@contextmanager
def gpu_to_compile_for() -> Iterator[None]:
    """Inside, PyTorch, Inductor and Triton find one GPU of the table above, which runs nothing."""
    with ExitStack() as stack:
        properties = types.SimpleNamespace(**PROPERTIES)
        _replace_torch(stack, properties)
        _replace_device_interface(stack, properties)
        _replace_triton(stack)
        _replace_pattern_examples(stack)
        _forget_answers()
        try:
            yield
        finally:
            _forget_answers()


def _replace(stack: ExitStack, owner: Any, **replacements: Any) -> None:
    for name, replacement in replacements.items():
        stack.enter_context(mock.patch.object(owner, name, replacement))


def _replace_torch(stack: ExitStack, properties: Any) -> None:
    from torch._subclasses import fake_tensor

    _replace(
        stack,
        torch.cuda,
        is_available=lambda: True,
        device_count=lambda: 1,
        current_device=lambda: 0,
        get_device_properties=lambda device=None: properties,
        get_device_capability=lambda device=None: CAPABILITY,
        get_device_name=lambda device=None: properties.name,
        is_bf16_supported=lambda including_emulation=True: True,
        is_tf32_supported=lambda: True,
        is_initialized=lambda: False,
        synchronize=lambda device=None: None,
        get_rng_state=lambda device="cuda": torch.zeros(16, dtype=torch.uint8),
        set_rng_state=lambda state, device="cuda": None,
        _lazy_init=lambda: None,
        _exchange_device=lambda index: 0,
        _maybe_exchange_device=lambda index: 0,
    )
    # Dynamo asks an accelerator for its current stream; a fake tensor makes a real one where there is a GPU.
    _replace(stack, torch.accelerator, is_available=lambda: False)
    _replace(stack, fake_tensor, init_gpu_context=lambda device: None)
    # The method sets CUDA's device, which the operator does not; Inductor looks with it whether scattered shapes fit.
    copy = torch.ops.aten.copy_.default
    stack.enter_context(mock.patch.object(fake_tensor.FakeTensor, "copy_", lambda self, *given: copy(self, *given)))


def _replace_device_interface(stack: ExitStack, properties: Any) -> None:
    """Dynamo copied these functions when it was imported."""
    from torch._dynamo.device_interface import CudaInterface

    _replace(
        stack,
        CudaInterface,
        current_device=staticmethod(lambda: 0),
        device_count=staticmethod(lambda: 1),
        synchronize=staticmethod(lambda device=None: None),
        get_device_properties=staticmethod(lambda device=None: properties),
        is_bf16_supported=staticmethod(lambda including_emulation=True: True),
        exchange_device=staticmethod(lambda index: 0),
        maybe_exchange_device=staticmethod(lambda index: 0),
        get_raw_stream=staticmethod(lambda device: 0),
        get_compute_capability=staticmethod(lambda device=None: 10 * CAPABILITY[0] + CAPABILITY[1]),
    )
    _replace(
        stack,
        CudaInterface.Worker,
        get_device_properties=staticmethod(lambda device=None: properties),
        current_device=staticmethod(lambda: 0),
    )


def _replace_triton(stack: ExitStack) -> None:
    """A driver that knows its target and has no library behind it."""
    from triton.backends import backends
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.driver import CudaDriver
    from triton.runtime import driver

    class NoGpuDriver(CudaDriver):
        def __init__(self) -> None:  # CudaDriver's opens libcuda
            self.utils = types.SimpleNamespace(get_device_properties=lambda _: {"max_shared_mem": 232_448})
            self.get_device_capability = lambda device=0: CAPABILITY
            self.get_current_stream = lambda device=0: 0
            self.get_current_device = lambda: 0
            self.set_current_device = lambda device: None

        @staticmethod
        def is_active() -> bool:
            return True

        def get_current_target(self) -> GPUTarget:
            return GPUTarget("cuda", 10 * CAPABILITY[0] + CAPABILITY[1], 32)

    nvidia = backends["nvidia"]
    before = nvidia.driver
    object.__setattr__(nvidia, "driver", NoGpuDriver)  # the entry is frozen
    stack.callback(object.__setattr__, nvidia, "driver", before)
    for name, backend in backends.items():
        if name != "nvidia":
            _replace(stack, backend.driver, is_active=staticmethod(lambda: False))
    driver.set_active(NoGpuDriver())
    stack.callback(driver.reset_active)


def _replace_pattern_examples(stack: ExitStack) -> None:
    """Examples of patterns need gradients, and autograd asks CUDA tensors for their stream; folding runs real operators."""
    from torch._inductor.fx_passes import joint_graph, post_grad

    for module in (joint_graph, post_grad):
        first = module.lazy_init
        _replace(stack, module, lazy_init=lambda device=None, first=first: first(torch.device("cpu")))
    deduce = joint_graph.UniformValueConstantFolder._deduce_value

    def deduce_on_cpu(self: Any, node: Any) -> Any:
        before = node.kwargs
        if getattr(before.get("device"), "type", None) == "cuda":
            node.kwargs = {**before, "device": torch.device("cpu")}
        try:
            return deduce(self, node)
        finally:
            node.kwargs = before

    _replace(stack, joint_graph.UniformValueConstantFolder, _deduce_value=deduce_on_cpu)


def _forget_answers() -> None:
    """What was asked of the machine and remembered."""
    from torch._inductor import codecache, utils
    from torch._inductor.runtime import hints
    from torch.utils import _triton

    for module in (_triton, utils):
        for function in vars(module).values():
            if hasattr(function, "cache_clear"):
                function.cache_clear()
    hints.DeviceProperties.create.cache_clear()
    codecache.CacheBase.get_system.cache_clear()

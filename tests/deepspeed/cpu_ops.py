"""DeepCompile on CPU ranks: stand-ins in Python for DeepSpeed's `dc` operators (csrc/compile), over gloo.

install() is called behind `import deepspeed` and before anything of it is used. All else is DeepSpeed's own: Dynamo's
capture, the partitioner, passes, Inductor's lowerings of the operators, hooks of the engine, ZeRO-3's optimizer.

A parameter that is released is filled with NaN, so whatever reads it too late shows in the loss. LOG is what ran.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import operator
import time
import types
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch._dispatch.python import no_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily

# ("gather" | "launch" | "wait" | "release" | "reduce" | "end", DeepSpeed's ids), in the order in which they ran.
LOG: list[tuple[str, list[int]]] = []

_SCHEMAS = (  # csrc/compile/init.cpp: TORCH_LIBRARY(dc, m)
    "allgather_param(Tensor a, int graph_id, int id, ScalarType? dtype = None) -> Tensor",
    "prefetch_params_fused(int graph_id, Tensor[] params, int[] ids, ScalarType[]? dtypes = None) -> ()",
    "wait_allgather(Tensor(a) a, int graph_id, int id) -> Tensor(a)",
    "release_param(Tensor(a) a, int graph_id, int id, int n_users) -> Tensor(a)",
    "reduce_grad(Tensor a, int graph_id, int id) -> Tensor",
    "free_tensors(Tensor[] a) -> ()",
    "offload_tensor(Tensor a, int id, int id) -> Tensor",
    "reload_tensor(Tensor a, int id, int id) -> Tensor",
    "wait_offload(Tensor a, int id, int id) -> Tensor",
    "wait_reload(Tensor a, int id, int id) -> Tensor",
    "offload_parameter(Tensor a, int id, int id) -> ()",
    "reload_parameter(Tensor a, int id, int id) -> ()",
    "end_backward(Any deps, int graph_id, bool release_reduce_buckets) -> ()",
    "test_call(Tensor a) -> Tensor",
)
# Elements of a ScalarType[] reach Python as numbers.
_DTYPES = {5: torch.float16, 6: torch.float32, 7: torch.float64, 15: torch.bfloat16}


@dataclass
class _Parameter:
    shape: tuple[int, ...]
    shard: torch.Tensor
    gradient: torch.Tensor
    persistent: bool
    whole: torch.Tensor | None = None  # flat, padded to equal shards
    valid: bool = False
    accumulates: bool = False
    part_from: int | None = None  # ZeRO-1: where in the parameter `gradient` begins
    held: torch.Tensor | None = None  # ZeRO-1: the sum of gradients since the last update

    def elements(self) -> int:
        return torch.Size(self.shape).numel()

    def view(self, dtype: torch.dtype | None) -> torch.Tensor:
        assert self.whole is not None
        whole = self.whole if dtype is None else self.whole.to(dtype)
        return whole[: self.elements()].view(self.shape)


class Handle:
    """The module that pybind makes of csrc/compile."""

    def __init__(self) -> None:
        self.group: Any = None
        self.parameters: dict[int, _Parameter] = {}
        self.graphs: dict[int, list[int]] = {}
        self.users_left: dict[tuple[int, int], int] = {}
        self.settings: dict[str, Any] = {}
        self.profiling = False
        self.updates = True

    def init(self, group: Any, config: Any, bucket: int) -> None:
        self.group = group
        self.settings = {"reduce_bucket_size": bucket, "double_buffer": config.double_buffer}

    def cleanup(self) -> None:
        self.graphs.clear()
        self.parameters.clear()

    def reset(self) -> None:
        self.graphs.clear()
        self.users_left.clear()

    def enable_profiling(self, on: bool) -> None:
        self.profiling = on

    def is_profiling(self) -> bool:
        return self.profiling

    def register_z3_param(
        self, ds_id: int, shape: Any, shard: torch.Tensor, gradient: torch.Tensor, persistent: bool, _dtype: Any = None
    ) -> None:
        if gradient.numel():
            gradient.zero_()
        self.parameters[ds_id] = _Parameter(tuple(shape), shard, gradient, persistent)

    def register_param(self, ds_id: int, shape: Any, whole: torch.Tensor, gradient: torch.Tensor, offset: int) -> None:
        """ZeRO-1's: parameters are whole, gradients are all-reduced, and each rank keeps its part of them."""
        self.parameters[ds_id] = _Parameter(tuple(shape), whole, gradient, persistent=True, part_from=offset)

    def update_param_grad_buffer(self, ds_id: int, gradient: torch.Tensor, offset: int) -> None:
        self.parameters[ds_id].gradient, self.parameters[ds_id].part_from = gradient, offset

    def register_graph_z1(self, graph_id: int, ds_ids: list[int]) -> None:
        self.graphs[graph_id] = list(ds_ids)

    def register_graph_z3(self, graph_id: int, ds_ids: list[int]) -> None:
        self.graphs[graph_id] = list(ds_ids)

    def start_forward(self) -> None:
        pass

    def end_forward(self) -> None:
        pass

    def start_backward(self, updates: bool) -> None:
        self.updates = updates

    def set_persistent(self, ds_id: int) -> None:
        self.parameters[ds_id].persistent = True
        if not self.parameters[ds_id].valid:
            self.gather(ds_id, None)

    def invalidate_gathered_param(self, ds_id: int) -> None:
        if not self.parameters[ds_id].persistent:
            self.parameters[ds_id].valid = False
            self.parameters[ds_id].whole = None

    def clear_all_gathered_params(self) -> None:
        for ds_id in self.parameters:
            self.invalidate_gathered_param(ds_id)

    def gather(self, ds_id: int, dtype: torch.dtype | int | None) -> torch.Tensor:
        parameter = self.parameters[ds_id]
        shard = parameter.shard.detach().reshape(-1)
        elements = dist.get_world_size(self.group) * shard.numel()
        kept = parameter.whole if parameter.whole is not None and parameter.whole.numel() == elements else None
        dtype = _DTYPES[dtype] if isinstance(dtype, int) else dtype
        wanted = kept.dtype if kept is not None else dtype or shard.dtype  # z3.cpp: a buffer keeps its dtype
        whole = torch.empty(elements, dtype=wanted) if kept is None else kept
        with no_python_dispatcher():  # see _of_real_tensors: gathers are profiled while PyTorch compiles
            dist.all_gather_into_tensor(whole, shard.to(wanted).contiguous(), group=self.group)
        parameter.whole, parameter.valid = whole, True
        return parameter.view(None)


HANDLE = Handle()
_LIBRARY = torch.library.Library("dc", "DEF")
for _schema in _SCHEMAS:
    _LIBRARY.define(_schema)


def _log(kind: str, ds_ids: list[int]) -> None:
    if not HANDLE.profiling:
        LOG.append((kind, ds_ids))


def _allgather_param(_shard: torch.Tensor, _graph: int, ds_id: int, dtype: Any = None) -> torch.Tensor:
    if HANDLE.parameters[ds_id].valid:
        return HANDLE.parameters[ds_id].view(dtype)
    _log("gather", [ds_id])
    return HANDLE.gather(ds_id, dtype)


def _prefetch(_graph: int, _shards: list[torch.Tensor], ids: list[int], dtypes: list[int] | None = None) -> None:
    missing = [index for index, ds_id in enumerate(ids) if not HANDLE.parameters[ds_id].valid]
    _log("launch", [ids[index] for index in missing])
    for index in missing:
        HANDLE.gather(ids[index], dtypes[index] if dtypes else None)


def _wait(gathered: torch.Tensor, _graph: int, ds_id: int) -> torch.Tensor:
    _log("wait", [ds_id])
    return gathered


def _release(tensor: torch.Tensor, graph_id: int, ds_id: int, users: int) -> torch.Tensor:
    left = HANDLE.users_left.get((graph_id, ds_id), 0) or users
    HANDLE.users_left[(graph_id, ds_id)] = left - 1
    parameter = HANDLE.parameters[ds_id]
    if left == 1 and not parameter.persistent:
        _log("release", [ds_id])
        if parameter.whole is not None and not HANDLE.profiling:
            parameter.whole.fill_(float("nan"))
        parameter.valid, parameter.whole = False, None
    return tensor


def _reduce(gradient: torch.Tensor, _graph: int, ds_id: int) -> torch.Tensor:
    _log("reduce", [ds_id])
    parameter = HANDLE.parameters[ds_id]
    if parameter.part_from is not None:
        _all_reduce(parameter, gradient)
    elif not HANDLE.profiling:
        ranks, length = dist.get_world_size(HANDLE.group), parameter.shard.numel()
        flat = torch.zeros(ranks * length, dtype=torch.float32)
        flat[: gradient.numel()] = gradient.reshape(-1).float() / ranks
        dist.all_reduce(flat, group=HANDLE.group)
        own = flat[dist.get_rank(HANDLE.group) * length :][: parameter.gradient.numel()].to(parameter.gradient.dtype)
        if parameter.accumulates:
            parameter.gradient.add_(own)
        else:
            parameter.gradient.copy_(own)
        parameter.accumulates = True
    return torch.empty(0, dtype=gradient.dtype)


def _all_reduce(parameter: _Parameter, gradient: torch.Tensor) -> None:
    parameter.held = gradient if parameter.held is None else parameter.held + gradient
    if not HANDLE.updates:
        return
    flat = parameter.held.reshape(-1) / dist.get_world_size(HANDLE.group)
    dist.all_reduce(flat, group=HANDLE.group)
    own = flat[parameter.part_from or 0 :][: parameter.gradient.numel()]
    parameter.gradient.view(-1).copy_(own)
    parameter.held = None


def _end_backward(_gradients: Any, graph_id: int, _release_buckets: bool) -> None:
    _log("end", [])
    if HANDLE.updates and not HANDLE.profiling:
        for ds_id in HANDLE.graphs[graph_id]:
            HANDLE.parameters[ds_id].accumulates = False
            HANDLE.parameters[ds_id].valid = False


def _same(tensor: torch.Tensor, *_: Any) -> torch.Tensor:
    return tensor


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _gather_on_meta(_shard: torch.Tensor, _graph: int, ds_id: int, dtype: Any = None) -> torch.Tensor:
    parameter = HANDLE.parameters[ds_id]
    return torch.empty(parameter.shape, dtype=dtype or parameter.shard.dtype, device="meta")


def _reduce_on_meta(gradient: torch.Tensor, *_: Any) -> torch.Tensor:
    return torch.empty(0, dtype=gradient.dtype, device="meta")


_ON_CPU = {
    "allgather_param": _allgather_param,
    "prefetch_params_fused": _prefetch,
    "wait_allgather": _wait,
    "release_param": _release,
    "reduce_grad": _reduce,
    **dict.fromkeys(("offload_tensor", "reload_tensor", "wait_offload", "wait_reload", "test_call"), _same),
    **dict.fromkeys(("free_tensors", "offload_parameter", "reload_parameter"), _nothing),
}
_ON_META = {
    "allgather_param": _gather_on_meta,
    "reduce_grad": _reduce_on_meta,
    **dict.fromkeys(("wait_allgather", "release_param"), _same),
    **dict.fromkeys(("prefetch_params_fused", "free_tensors", "offload_parameter", "reload_parameter"), _nothing),
}
for _name, _function in _ON_CPU.items():
    _LIBRARY.impl(_name, _function, "CPU")
for _name, _function in _ON_META.items():
    _LIBRARY.impl(_name, _function, "Meta")
_LIBRARY.impl("end_backward", _end_backward, "CompositeExplicitAutograd")


class _Event:
    """A CUDA event's interface over the host's clock."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.seconds = 0.0

    def record(self, *_: Any) -> None:
        self.seconds = time.perf_counter()

    def elapsed_time(self, later: _Event) -> float:
        return (later.seconds - self.seconds) * 1e3

    def synchronize(self) -> None:
        pass


def _of_real_tensors(collective: Any) -> Any:
    """DeepSpeed's passes reduce tensors while PyTorch compiles. There a call goes through dispatchers in Python, and holds
    the interpreter's lock while it waits for gloo's queue; a thread of gloo that holds the queue may wait for that lock:
    ranks hang. Here the call goes around them, and a fake tensor stands for its number."""

    @functools.wraps(collective)
    def call(backend: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        with unset_fake_temporarily(), no_python_dispatcher():
            return collective(backend, tensor.constant if isinstance(tensor, FakeTensor) else tensor, *args, **kwargs)

    return call


def install() -> Handle:
    """Puts the stand-ins where DeepSpeed looks for its extension, and lends the CPU what DeepCompile asks a GPU for."""
    import deepspeed.compile.profilers.graph_profile as graph_profile
    import deepspeed.compile.util as util
    import deepspeed.runtime.engine as engine
    from deepspeed.accelerator import get_accelerator

    communication = importlib.import_module("deepspeed.comm.torch")  # as an attribute of its package it is torch itself
    communication.build_shm_op = lambda: None  # else it compiles one; gloo does without
    communication.TorchBackend.all_reduce = _of_real_tensors(communication.TorchBackend.all_reduce)
    util.dc_handle = HANDLE
    util.is_deepcompile_supported = engine.is_deepcompile_supported = lambda: True
    comparisons = {operator.ge, operator.le, operator.eq, operator.ne, operator.gt, operator.lt, operator.getitem}
    util.sym_size_ops = comparisons | {torch.ops.aten.sym_size.int}
    accelerator = type(get_accelerator())
    accelerator.Event = _Event
    generators = {name: getattr(torch.random, name) for name in ("manual_seed", "get_rng_state", "set_rng_state")}
    random = types.SimpleNamespace(fork_rng=lambda devices=None: contextlib.nullcontext(), **generators)
    accelerator.random = lambda self: random
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
        setattr(accelerator, name, lambda self, *_: 0)
    for name in ("total_memory", "available_memory"):
        setattr(accelerator, name, lambda self, *_: 80 * 10**9)
    accelerator.current_device = lambda self: "cpu"
    accelerator.reset_peak_memory_stats = lambda self, *_: None

    # Node by node over gloo a profile takes minutes; passes then see one that is incomplete, as after running out of
    # memory, and do without.
    def skip(interpreter: Any, *_: Any) -> None:
        graph_profile._backfill_missing_profile_metadata(interpreter.graph, profile_complete=False)

    graph_profile.ProfilingInterpreter.run = skip
    return HANDLE

"""DeepSpeed's own reading of a configuration, without GPUs; see record_deepspeed_config.py."""

import contextlib
import copy
import json
import logging
import pathlib
import warnings
from types import SimpleNamespace
from unittest import mock

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)

import deepspeed  # noqa: E402
import hjson  # noqa: E402
import deepspeed.ops.adam  # noqa: E402
import deepspeed.ops.lion  # noqa: E402
import torch  # noqa: E402
from deepspeed.comm.config import CommsLoggerConfig  # noqa: E402
from deepspeed.inference.config import WeightQuantConfig  # noqa: E402
from deepspeed.runtime.base_optimizer import ZeROOptimizer  # noqa: E402
from deepspeed.runtime.config import DeepSpeedConfig  # noqa: E402
from deepspeed.runtime.config_utils import DeepSpeedConfigModel  # noqa: E402
from deepspeed.runtime.engine import DeepSpeedEngine  # noqa: E402
from transformers.integrations.deepspeed import HfTrainerDeepSpeedConfig  # noqa: E402

HIDDEN_SIZE = 64
RANKS = 4
ROWS = 2

def set_in(config, path, value):
    *sections, name = path.split(".")
    for section in sections:
        config = config.setdefault(section, {})
    config[name] = copy.deepcopy(value)


class TrainerConfig(HfTrainerDeepSpeedConfig):
    """The Trainer's own replacement of "auto"; looking up is accelerate's HfDeepSpeedConfig."""

    def __init__(self, config):
        self.config = config
        self._dtype = None
        self.mismatches = []

    def find_config_node(self, path):
        *sections, name = path.split(".")
        node = self.config
        for section in sections:
            node = node.get(section)
            if node is None:
                return None, name
        return node, name

    def get_value(self, path, default=None):
        node, name = self.find_config_node(path)
        return default if node is None else node.get(name, default)

    def is_true(self, path):
        return bool(self.get_value(path, False))

    def is_zero3(self):
        return self.get_value("zero_optimization.stage", -1) == 3

    def fill_match(self, path, value, name=None, must_match=True):
        """The caller's arguments are those that go with the file."""
        super().fill_match(path, value, name, must_match=False)


def fill_auto(config):
    """For a bfloat16 recording of ROWS rows, with the Trainer's default arguments."""
    steps = config.get("gradient_accumulation_steps")
    rows = config.get("train_micro_batch_size_per_gpu")
    arguments = SimpleNamespace(
        world_size=RANKS, save_on_each_node=False,
        gradient_accumulation_steps=steps if isinstance(steps, int) else 1,
        per_device_train_batch_size=rows if isinstance(rows, int) else ROWS,
        max_grad_norm=1.0, learning_rate=5e-5, adam_beta1=0.9, adam_beta2=0.999, adam_epsilon=1e-8,
        weight_decay=0.0, bf16=True, bf16_full_eval=False, fp16=False, fp16_full_eval=False,
        get_warmup_steps=lambda steps: 0)
    model = SimpleNamespace(config=SimpleNamespace(hidden_size=HIDDEN_SIZE))
    trainer = TrainerConfig(config)
    trainer.trainer_config_process(arguments)
    trainer.trainer_config_finalize(arguments, model, 100)


def engine_of(config):
    """An engine that was not started: its checks look at the configuration alone."""
    engine = DeepSpeedEngine.__new__(DeepSpeedEngine)
    torch.nn.Module.__init__(engine)
    engine.__dict__.update(_config=config, client_optimizer=None, client_lr_scheduler=None,
                           pipeline_parallelism=False, has_moe_layers=False, global_rank=0)
    return engine


def check_engine(config):
    """The checks of DeepSpeedEngine.__init__ that look at dtypes, the optimizer and the stage."""
    engine = engine_of(config)
    engine._do_sanity_check()
    dtype = engine.get_data_types()[0]
    parameters = [torch.nn.Parameter(torch.zeros(4, dtype=dtype))]
    optimizer = None
    if engine.optimizer_name() is not None:
        optimizer = engine._configure_basic_optimizer(parameters)
        engine._do_optimizer_sanity_check(optimizer)
    engine._mixed_precision_dtypes()
    engine.gradient_clipping() > 0  # noqa: B015, each step compares them
    if engine.zero_legacy_stage1():
        raise ValueError("legacy_stage1")
    zero = config.zero_config
    # The constructors of the two ZeRO optimizers need a GPU; what they check of the file:
    scatters = zero.reduce_scatter and zero.stage >= 2
    if scatters and (engine.gradient_predivide_factor() != 1.0 or not engine.postscale_gradients()):
        raise ValueError("gradient_predivide_factor and prescale_gradients with reduce_scatter")
    if zero.stage <= 2 and zero.allgather_bucket_size % 2:
        raise ValueError("allgather_bucket_size must be a multiple of 2")
    if not zero.compute_grad_norm and engine.gradient_clipping() > 0:
        raise ValueError("compute_grad_norm=false requires gradient_clipping=0")
    masters = SimpleNamespace(optimizer=optimizer)

    def offload():
        raise ValueError("master weights need offloading")

    ZeROOptimizer._configure_master_weights(
        masters, engine.fp16_master_weights_and_gradients(),
        engine.bf16_master_weights_and_gradients(), engine.bf16_optimizer_states(),
        offload_enabled=False, fp16_offload_validator=offload, bf16_offload_validator=offload)
    return engine, optimizer


def read(text, folder):
    """DeepSpeed's values, or why it refuses the file."""
    path = pathlib.Path(folder) / "ds.json"
    path.write_text(text)
    source = str(path)
    try:
        if '"auto"' in text:
            source = json.loads(hjson.dumpsJSON(hjson.loads(text)))
            fill_auto(source)
        engine, optimizer = check_engine(DeepSpeedConfig(source))
        config = engine._config
    except Exception as error:  # noqa: BLE001, whatever it is: the job does not start
        return {"refused": f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"
                if str(error) else type(error).__name__}
    zero, compiled = config.zero_config, config.compile_config
    values = {
        "micro": config.train_micro_batch_size_per_gpu,
        "steps": config.gradient_accumulation_steps,
        "clipping": config.gradient_clipping,
        "dtype": str(engine.get_data_types()[0]).removeprefix("torch."),
        "stage": int(zero.stage),
        "reduce_bucket": zero.reduce_bucket_size,
        "contiguous_gradients": zero.contiguous_gradients,
        "overlap_comm": zero.overlap_comm,
        "prefetch_bucket": zero.prefetch_bucket_size,
        "persistence_threshold": zero.param_persistence_threshold,
        "max_live": zero.max_live_parameters,
        "max_reuse_distance": zero.max_reuse_distance,
        "deepcompile": compiled.deepcompile,
        "double_buffer": compiled.double_buffer,
        "offload_activation": compiled.offload_activation,
        "offload_parameters": compiled.offload_parameters,
        "sync_before_reduce": compiled.sync_before_reduce,
        "sync_after_reduce": compiled.sync_after_reduce,
        "sync_before_allgather": compiled.sync_before_allgather,
        "sync_after_allgather": compiled.sync_after_allgather,
        "compute_grad_norm": zero.compute_grad_norm,
        "parameter_alignment": zero.parameter_alignment,
    }
    if config.torch_autocast_enabled and config.torch_autocast_dtype is not None:
        values["autocast"] = str(config.torch_autocast_dtype).removeprefix("torch.")
    if optimizer is not None:
        values["optimizer"] = type(optimizer).__name__
    return {"values": {name: int(value) if name in ("micro", "steps", "clipping")
                       and isinstance(value, bool) else value for name, value in values.items()}}


class Watched(dict):
    """A section that says which keys are looked for in it."""

    def __init__(self, config, section, seen):
        super().__init__({name: Watched(value, f"{section}{name}.", seen)
                          if isinstance(value, dict) else value for name, value in config.items()})
        self.section = section
        self.seen = seen

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def see(self, name):
        if isinstance(name, str):
            self.seen.add(self.section + name)

    def keys(self):
        return self

    def __contains__(self, name):
        self.see(name)
        return super().__contains__(name)

    def __getitem__(self, name):
        self.see(name)
        return super().__getitem__(name)

    def get(self, name, default=None):
        self.see(name)
        return super().get(name, default)


SECTIONS = ("optimizer", "optimizer.params", "scheduler", "data_types", "torch_autocast", "fp16",
            "activation_checkpointing", "checkpoint", "checkpoint.parallel_write",
            "checkpoint.writer", "aio", "flops_profiler", "autotuning", "expert_parallel",
            "timers.throughput", "data_efficiency", "data_efficiency.data_sampling",
            "data_efficiency.data_routing")


def keys_of(model, section):
    """Of a pydantic class and those of its sections; and what takes any keys."""
    for name, field in model.model_fields.items():
        yield section + name
        if field.alias:
            yield section + field.alias
        for inner in [field.annotation, *getattr(field.annotation, "__args__", ())]:
            if isinstance(inner, type) and issubclass(inner, DeepSpeedConfigModel):
                yield from keys_of(inner, section + name + ".")


def keys_looked_for(config):
    config = copy.deepcopy(config)
    for section in SECTIONS:
        set_in(config, section, {"enabled": False} if section == "autotuning" else
               {"type": "AdamW"} if section == "optimizer" else {})
    seen = set()
    read = DeepSpeedConfig(Watched(config, "", seen))
    for section, part in (("zero_optimization.", read.zero_config),
                          ("compile.", read.compile_config), ("bf16.", read.bfloat16_config),
                          ("fp16.", read.float16_config), ("", read.monitor_config),
                          ("tensor_parallel.", read.tensor_parallel_config),
                          ("hybrid_engine.", read.hybrid_engine),
                          ("comms_logger.", CommsLoggerConfig()),
                          ("timers.throughput.", read.timers_config),
                          ("weight_quantization.", WeightQuantConfig())):
        seen.update(keys_of(type(part), section))
    return sorted(seen)


@contextlib.contextmanager
def ranks_without_gpus():
    """RANKS ranks of which this process is the first, and kernels that are not built."""
    backend = mock.MagicMock()
    backend.get_rank.return_value = 0
    backend.get_world_size.return_value = RANKS
    kernels = "deepspeed.ops.op_builder"
    with (
        mock.patch("deepspeed.comm.comm.cdb", backend),
        mock.patch(f"{kernels}.builder.OpBuilder.load", mock.MagicMock()),
        mock.patch(f"{kernels}.cpu.no_impl.NotImplementedBuilder.load", mock.MagicMock()),
    ):
        yield

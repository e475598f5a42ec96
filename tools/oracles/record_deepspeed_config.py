"""Records how DeepSpeed 0.19.8 reads configurations, as the oracle of tools/common/deepspeed_config.

    PYTHONPATH=FOLDER DS_ACCELERATOR=cpu python3 tools/oracles/record_deepspeed_config.py \
        --out tests/data/deepspeed_config/oracle.json.gz

FOLDER holds an installed DeepSpeed 0.19.8 with its requirements (tools/setup/deepspeed.sh); needs
torch and transformers, no GPU. Each configuration is read by DeepSpeed's own DeepSpeedConfig, for a
number of ranks, and then checked by the engine's functions that look at dtypes and make the
optimizer. They are:
- the files of tests/data/deepspeed_config and the golden tests;
- each key of docs/reference/deepspeed_keys.md set to each of one list of values, in a file of its
  policy and stage;
- several such keys at once, drawn with a seed.
"auto" is replaced first, by the functions of Hugging Face's Trainer.

Also recorded: every key that DeepSpeed looks for while it reads.

With --check, records again and compares with what is written there; with --sample N, only N cases.
"""

import argparse
import contextlib
import copy
import gzip
import json
import logging
import pathlib
import random
import re
import sys
import tempfile
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

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HIDDEN_SIZE = 64
RANKS = 4
ROWS = 2

# Each key takes some of these and refuses others.
VALUES = [
    None, True, False, 0, 1, 2, -2, 6, 0.5, 7.5, 1e12, 1e300, "", "auto", "true", "OFF", "maybe",
    "8", "12.0", "1_0", "5e8", "0.25", "fp32", "bf16", "float16", "int8", "int7", "none", "cpu",
    "sum", "Mean", "warn", "torch", "x.y", [], [1], ["z3"], ["autosp"], ["x"], {},
    [0.9, 0.95], {"no_such_key": 1}, {"enabled": True},
]  # fmt: skip
COMBINED = 2000

# Parameters of optimizers that the table does not list: the optimizer's class takes them or not.
PARAMETERS = ("amsgrad", "set_grad_none", "dampening", "nesterov", "maximize", "capturable",
              "differentiable", "fused", "no_such_key")


def zero(stage, **sections):
    return {"train_micro_batch_size_per_gpu": ROWS, "bf16": {"enabled": True},
            "zero_optimization": {"stage": stage}, **sections}


COMPILED = {"compile": {"deepcompile": True}}
BASES = {
    "zero-1": zero(1),
    "zero-2": zero(2),
    "zero-3": zero(3),
    "deepcompile zero-1": zero(1, **COMPILED),
    "deepcompile zero-3": zero(3, **COMPILED),
    "steps": zero(2, gradient_accumulation_steps=3, train_batch_size=3 * ROWS * RANKS),
    "fp16": zero(2, bf16={"enabled": False}, fp16={"enabled": True}),
    "autocast": zero(2, bf16={}, torch_autocast={"enabled": True, "dtype": "bf16"}, **COMPILED),
    "float32": {"train_micro_batch_size_per_gpu": ROWS, "zero_optimization": {"stage": 2}},
    "adamw": zero(2, optimizer={"type": "AdamW"}),
    "torch-adam": zero(2, optimizer={"type": "Adam", "params": {"torch_adam": True}}),
    "lion": zero(2, optimizer={"type": "Lion"}),
    "sgd": zero(2, optimizer={"type": "SGD"}, zero_allow_untested_optimizer=True),
}


def bases_of(path):
    """The files in which a key is varied: those of the policies and stages that look at it."""
    section = path.partition(".")[0]
    if section in ("zero_optimization", "compile"):
        return ["zero-1", "zero-3", "deepcompile zero-3"]
    if path.startswith("optimizer.params"):
        return ["adamw", "torch-adam", "lion", "sgd"]
    return {
        "bf16": ["zero-2", "float32"],
        "bfloat16": ["zero-2", "float32"],
        "fp16": ["zero-2", "fp16"],
        "torch_autocast": ["zero-2", "autocast"],
        "train_batch_size": ["zero-2", "steps"],
        "gradient_accumulation_steps": ["zero-2", "steps"],
    }.get(section, ["zero-2"])


def set_in(config, path, value):
    *sections, name = path.split(".")
    for section in sections:
        config = config.setdefault(section, {})
    config[name] = copy.deepcopy(value)


def table():
    """(path, other names, meaning) of each key that DeepSpeed has not removed."""
    page = (ROOT / "docs/reference/deepspeed_keys.md").read_text().split("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)`(?:, `([^`]+)`)? \| [^|]+ \| [^|]* \| ([^|]+) \|", page, re.M)
    for path, alias, meaning in rows:
        section = path.rpartition(".")[0]
        names = [f"{section}.{alias}" if section else alias] if alias else []
        if not meaning.startswith("removed"):
            yield path, names, meaning
    for name in PARAMETERS:
        yield f"optimizer.params.{name}", [], "read"


def single():
    """(base, {key: value}), one key each."""
    for path, names, _ in table():
        for name in [path, *names]:
            for base in bases_of(path):
                for value in VALUES:
                    yield base, {name: value}


def combined(accepted):
    """Several keys at once, of those that are accepted alone; most that dc-sim reads."""
    draw = random.Random(0)
    meanings = {name: meaning for path, names, meaning in table() for name in [path, *names]}
    read = [case for case in accepted if meanings[next(iter(case[1]))].startswith("read")]
    for _ in range(COMBINED):
        base, keys = draw.choice(read)
        whole = dict(keys)
        for _ in range(draw.randrange(1, 5)):
            whole.update(draw.choice(read if draw.random() < 0.7 else accepted)[1])
        no_sections = tuple(f"{path}." for path, value in whole.items()
                            if not isinstance(value, dict))
        if not any(path.startswith(no_sections) for path in whole):
            yield draw.choice([base, *list(BASES)[:5]]), whole


def files():
    folders = [ROOT / "tests/data/deepspeed_config", ROOT / "tests/golden"]
    for folder in folders:
        for path in sorted(folder.rglob("*.json")):
            text = path.read_text()
            if re.search(r"zero_optimization|train_micro_batch", text):
                if '"dc-' not in text:
                    yield str(path.relative_to(ROOT)), text


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


def keys_looked_for():
    config = {**BASES["adamw"], "steps_per_print": 1}
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


def record(sample=None):
    """The answers; those of a base say what the key changes."""
    draw = random.Random(sample or 0)

    def drawn(cases):
        cases = list(cases)
        return cases if sample is None else draw.sample(cases, min(sample, len(cases)))

    with tempfile.TemporaryDirectory() as folder:
        bases = {name: read(json.dumps(config), folder)["values"] for name, config in BASES.items()}

        def answer(base, keys):
            config = copy.deepcopy(BASES[base])
            for path, value in keys.items():
                set_in(config, path, value)
            answer = read(json.dumps(config), folder)
            if "values" not in answer:
                return answer
            values = answer["values"]
            gone = {name: None for name in bases[base] if name not in values}
            return {"changes": gone | {name: value for name, value in values.items()
                                       if name not in bases[base] or bases[base][name] != value}}

        cases = [{"file": name, **read(text, folder)} for name, text in drawn(files())]
        alone = [(base, keys, answer(base, keys)) for base, keys in drawn(single())]
        together = [] if sample else [
            (base, keys, answer(base, keys))
            for base, keys in combined([each[:2] for each in alone if "changes" in each[2]])]
        cases += [{"base": base, "set": keys, **said} for base, keys, said in alone + together]
    return {"deepspeed": deepspeed.__version__, "ranks": RANKS, "hidden_size": HIDDEN_SIZE,
            "looked_for": keys_looked_for(),
            "bases": {name: {"config": BASES[name], "values": bases[name]} for name in BASES},
            "cases": cases}


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


def lines_of(recorded):
    cases = recorded.pop("cases")
    return [json.dumps(recorded)] + [json.dumps(case) for case in cases]


def text_of(recorded):
    head, *cases = lines_of(recorded)
    return head[:-1] + ', "cases": [\n' + ",\n".join(cases) + "\n]}\n"


def check(written, recorded):
    """What is recorded but not written."""
    known = set(lines_of(json.loads(written)))
    return [line for line in lines_of(recorded) if line not in known]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--sample", type=int, help="with --check: cases of each kind, drawn")
    options = parser.parse_args()
    with ranks_without_gpus():
        recorded = record(options.sample)
    if not options.check:
        options.out.write_bytes(gzip.compress(text_of(recorded).encode(), 9, mtime=0))
        return 0
    differing = check(gzip.decompress(options.out.read_bytes()).decode(), recorded)
    for line in differing:
        print(f"{options.out}: DeepSpeed {deepspeed.__version__} answers differently: {line}",
              file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())

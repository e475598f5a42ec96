#!/usr/bin/env python3
"""Checks DeepSpeed configurations with DeepSpeed's own classes, and dc-sim's list of keys with them.

    DS_ACCELERATOR=cpu python tools/oracles/check_deepspeed_config.py CONFIG...

Needs deepspeed 0.19.8 (DS_BUILD_OPS=0 pip install deepspeed==0.19.8) and torch; no GPU. For each
CONFIG (what dc-sim search --save-deepspeed wrote) it builds a DeepSpeedConfig for as many ranks as
the batch sizes say, which throws where DeepSpeed would refuse the file, and compares the values
that DeepSpeed reads with those in the file. Then it compares the keys of zero_optimization and
compile in tools/common/deepspeed_keys.h with the fields and aliases of DeepSpeed's classes.
Exit 1 when something differs.
"""
import json
import pathlib
import re
import sys

import deepspeed
from deepspeed.compile.config import CompileConfig
from deepspeed.runtime.config import DeepSpeedConfig
from deepspeed.runtime.zero.config import DeepSpeedZeroConfig

KEYS = pathlib.Path(__file__).resolve().parent.parent / "common" / "deepspeed_keys.h"


def known_keys(table: str) -> set[str]:
    body = re.search(table + r" = \{\{(.*?)\}\};", KEYS.read_text(), re.S).group(1)
    return set(re.findall(r'\{"([a-z0-9_]+)"', body))


def class_keys(config_class: type) -> set[str]:
    keys = set()
    for name, field in config_class.model_fields.items():
        keys.add(name)
        if field.alias:
            keys.add(field.alias)
    return keys


def differences(config: dict) -> list[str]:
    ranks = config["train_batch_size"] // (
        config["train_micro_batch_size_per_gpu"] * config["gradient_accumulation_steps"])
    read = DeepSpeedConfig({key: value for key, value in config.items() if key != "train_batch_size"})
    pairs = [
        ("micro batch", read.train_micro_batch_size_per_gpu, config["train_micro_batch_size_per_gpu"]),
        ("accumulation", read.gradient_accumulation_steps, config["gradient_accumulation_steps"]),
        ("clipping", read.gradient_clipping, config["gradient_clipping"]),
        ("stage", int(read.zero_config.stage), config["zero_optimization"]["stage"]),
        ("bucket", read.zero_config.reduce_bucket_size, config["zero_optimization"]["reduce_bucket_size"]),
        ("deepcompile", read.compile_config.deepcompile, config["compile"]["deepcompile"]),
        ("double_buffer", read.compile_config.double_buffer, config["compile"]["double_buffer"]),
        ("bf16", read.bfloat16_config.enabled, config.get("bf16", {}).get("enabled", False)),
        ("batch", read.train_micro_batch_size_per_gpu * read.gradient_accumulation_steps * ranks,
         config["train_batch_size"]),
    ]
    return [f"{name}: DeepSpeed reads {found}, the file says {said}"
            for name, found, said in pairs if found != said]


def main() -> int:
    faults = []
    for path in sys.argv[1:]:
        found = differences(json.loads(pathlib.Path(path).read_text()))
        faults += [f"{path}: {each}" for each in found]
        print(f"{path}: {'differs' if found else 'accepted'} by DeepSpeed {deepspeed.__version__}")
    for table, config_class in (("kZeroKeys", DeepSpeedZeroConfig), ("kCompileKeys", CompileConfig)):
        ours, theirs = known_keys(table), class_keys(config_class)
        faults += [f"{table}: no key of DeepSpeed's: {key}" for key in sorted(ours - theirs)]
        faults += [f"{table}: lacks {key}" for key in sorted(theirs - ours)]
        print(f"{table}: {len(ours)} keys, DeepSpeed has {len(theirs)}")
    print("\n".join(faults), file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

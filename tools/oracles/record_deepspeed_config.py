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

With --check, records again and compares with what is written there; with --sample N, N of each kind.
"""

import argparse
import copy
import gzip
import json
import pathlib
import random
import re
import sys
import tempfile

from deepspeed_reading import (
    HIDDEN_SIZE,
    RANKS,
    ROWS,
    deepspeed,
    keys_looked_for,
    ranks_without_gpus,
    read,
    set_in,
)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
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
            "looked_for": keys_looked_for(BASES["adamw"]),
            "bases": {name: {"config": BASES[name], "values": bases[name]} for name in BASES},
            "cases": cases}


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

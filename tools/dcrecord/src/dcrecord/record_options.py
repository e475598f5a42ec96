"""The command line of a recording: reading it, its defaults, and saying it again."""

from __future__ import annotations

import argparse
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from dcrecord.architectures import Architecture, LinearStack, find_architecture
from dcrecord.errors import RecorderError
from dcrecord.option_parser import OptionParser, one_of, whole_number
from dcrecord.options import ATTENTION_KERNELS, BACKENDS, DTYPES, HALF_PRECISION, PARTITIONERS, Options

_DESCRIPTION = """\
Records the training graph of a torch model, with no GPU, no weights and no download.

  python -m dcrecord MODEL [options] -o DIR     writes DIR/graph.json.xz and, where there is none, DIR/README.md;
                                                with --backend inductor DIR/graph-inductor-*.json.xz, too
  python -m dcrecord hf CONFIG [options] -o DIR the same of a model of transformers, by its config.json
  python -m dcrecord list                       the named models and their defaults
  python -m dcrecord reference WORKLOAD         losses and gradients of a reference training (has its own --help)
  python -m dcrecord kernels WORKLOAD           its compiled forms' kernels, for dc-run on a GPU (has its own --help)
"""

_EXAMPLES = """\
examples:
  python -m dcrecord llama-3-8b --batch 1 --seq 512 -o traces/llama-3-8b
  python -m dcrecord qwen3-8b --activation-checkpointing --partitioner default -o qwen3-8b-checkpointed
  python -m dcrecord mlp-8x4096 --batch 2048 -o mlp
  python -m dcrecord llama-3.2-1b --autocast bfloat16 --freeze 'model.embed_tokens.*' --hold none -o frozen
  python -m dcrecord llama-3.2-1b --backend inductor -o traces/llama-3.2-1b
  python -m dcrecord hf config.json --seq 1024 --no-dropout -o my-model
  python -m dcrecord net.py:build --batch 8 --checkpoint 'encoder.layers.*' -o net

net.py holds for example
  def build(batch=8):
      return MyModule(), torch.randn(batch, 512)
The inputs are a tensor, a tuple of tensors or a dict of tensors by name. The module returns its loss, or
(loss, others...), or a mapping with "loss"; a tensor that is no scalar gets its mean as loss.

exit codes: 0 done; 2 bad input, or a model that cannot be recorded; 3 a file cannot be read or written
"""

# Option, what its value is called, and its help; a default in parentheses.
_TEXTS = (
    ("--batch", "N", "sequences or rows; a function's `batch` (the model's)"),
    ("--seq", "N", "tokens of a sequence; a function's `sequence` (the model's)"),
    ("--dtype", "D", "of the parameters: float32, bfloat16, float16 (the model's, or bfloat16; float32 with --autocast)"),
    ("--attention", "K", "kernel: auto, auto-without-cudnn, flash, efficient, cudnn, math (the model's, or auto)"),
    ("--partitioner", "P", "mincut: DeepCompile's; default: saves what eager PyTorch saves (mincut)"),
    ("--backend", "B", "inductor: compiled graphs beside the one of ATen operators; inductor-layers: one whose layers are compiled apart (aten)"),
    ("--checkpoint", "PATTERN", "the same for modules by path, such as 'encoder.layers.*'; repeatable"),
    ("--autocast", "D", "runs the forward under torch.autocast to bfloat16 or float16 (no autocast)"),
    ("--freeze", "PATTERN", "parameters not to train, by name, such as 'model.embed_tokens.*'; repeatable"),
    ("--hold", "NAME", "output that the caller keeps until the next step, or `none`; repeatable (all beside the loss)"),
    ("--vocabulary", "[INPUT=]N", "integers of a function's inputs are below N (largest of the example + 1)"),
    ("--name", "NAME", "name of the workload (the model's)"),
)


@dataclass(frozen=True)
class Request:
    """A recording that was asked for.

    model          the word that names the model
    architecture   what it names, None for file.py:function
    notes          what was chosen for a config.json
    vocabularies   numbers of different integers by input of a function; None stands for all inputs
    command        the command line that makes the same bytes again
    """

    model: str
    name: str
    folder: Path
    architecture: Architecture | LinearStack | None
    options: Options
    vocabularies: dict[str | None, int]
    command: str
    notes: tuple[str, ...] = ()

    @property
    def compiling_command(self) -> str:
        """The command line that makes the compiled forms again; without --backend it makes the ATen graph alone."""
        before, _, folder = self.command.rpartition(" -o ")
        return f"{before} --backend {self.options.backend}{' --stand-ins' if self.options.stand_ins else ''} -o {folder}"


def record_parser(of_file: bool = False) -> OptionParser:
    """The options of a recording; a default that depends on the model is None here."""
    program = f"python -m dcrecord{' hf' if of_file else ''}"
    parser = OptionParser(prog=program, description=_DESCRIPTION, epilog=_EXAMPLES)
    settings = {
        "--batch": {"type": whole_number(1)},
        "--seq": {"type": whole_number(1)},
        "--dtype": {"type": one_of(DTYPES)},
        "--attention": {"type": one_of(ATTENTION_KERNELS)},
        "--partitioner": {"type": one_of(PARTITIONERS), "default": "mincut"},
        "--backend": {"type": one_of(BACKENDS), "default": "aten"},
        "--checkpoint": {"action": "append", "default": []},
        "--autocast": {"type": one_of(HALF_PRECISION)},
        "--freeze": {"action": "append", "default": []},
        "--hold": {"action": "append"},
        "--vocabulary": {"action": "append", "default": [], "type": _vocabulary},
        "--name": {"type": _workload_name},
    }
    model = ("MODEL", "a named model (see `list`), or file.py:function")
    model = ("CONFIG", "config.json of a model of transformers, or its folder") if of_file else model
    parser.add_argument("model", metavar=model[0], help=model[1])
    parser.add_argument("-o", "--out", metavar="DIR", required=True, help="folder of the workload")
    text = "runs the forward of each block again in the backward"
    parser.add_argument("--activation-checkpointing", action="store_true", help=text)
    parser.add_argument("--no-dropout", action="store_true", help="sets every dropout of the model to 0")
    text = "transformers builds masks that hide nothing, as where torch.compile traces it"
    parser.add_argument("--build-masks", action="store_true", help=text)
    text = "with --backend inductor: writes what each kernel computes, so that dc-run can run it on a CPU"
    parser.add_argument("--stand-ins", action="store_true", help=text)
    for option, metavar, text in _TEXTS:
        parser.add_argument(option, metavar=metavar, help=text, **settings[option])
    return parser


def _vocabulary(text: str) -> tuple[str | None, int]:
    match = re.fullmatch(r"(?:(\w+)=)?([1-9]\d*)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"'{text}' given, expected N or INPUT=N with N at least 1")
    return match[1], int(match[2])


def _workload_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]+", text):
        raise argparse.ArgumentTypeError(f"'{text}' given, expected letters, digits, '.', '-' and '_'")
    return text


def read_request(arguments: list[str], of_file: bool = False) -> Request:
    """What the command line asks for, with the defaults that depend on the model and on each other.

    of_file   the model is a config.json
    """
    asked = record_parser(of_file).read(arguments)
    architecture, notes = _find(asked.model, of_file)
    if architecture and asked.vocabulary:
        raise RecorderError(f"--vocabulary: {architecture.name} has its own; expected it with file.py:function only")
    options = _options(asked, architecture)
    options.check()
    name = asked.name or (architecture.name if architecture else _name_of_function(asked.model))
    start = "python -m dcrecord hf" if of_file else "python -m dcrecord"
    tells_sequence = not isinstance(architecture, LinearStack) or bool(asked.seq)
    command = f"{start} {_words(asked, options, name, tells_sequence)}"
    return Request(asked.model, name, Path(asked.out), architecture, options, dict(asked.vocabulary), command, tuple(notes))


def _find(model: str, of_file: bool) -> tuple[Architecture | LinearStack | None, list[str]]:
    """What the word for the model names, nothing for a function's file; and notes on it."""
    if of_file:
        from dcrecord.config_file import read_architecture

        return read_architecture(model)
    return (None if _names_file(model) else find_architecture(model)), []


def _names_file(model: str) -> bool:
    return ".py" in model or ":" in model


def _name_of_function(model: str) -> str:
    """`models/net.py:build` -> `net-build`."""
    path, _, function = model.rpartition(":")
    return re.sub(r"[^A-Za-z0-9._-]", "-", f"{Path(path).stem}-{function}")


def _options(asked: argparse.Namespace, architecture: Architecture | LinearStack | None) -> Options:
    own_dtype = architecture.dtype if architecture else "bfloat16"
    dtype = asked.dtype or ("float32" if asked.autocast else own_dtype)
    attention = asked.attention or (architecture.attention if architecture else "auto")
    return Options(
        batch=asked.batch or (architecture.batch if architecture else None),
        sequence=asked.seq or (architecture.sequence if architecture else None),
        dtype=dtype,
        attention=attention,
        partitioner=asked.partitioner,
        activation_checkpointing=asked.activation_checkpointing,
        autocast=asked.autocast,
        frozen=tuple(asked.freeze),
        hold=_held(asked.hold),
        checkpoint=tuple(asked.checkpoint),
        no_dropout=asked.no_dropout,
        build_masks=asked.build_masks,
        backend=asked.backend,
        stand_ins=asked.stand_ins,
    )


def _held(asked: list[str] | None) -> tuple[str, ...] | None:
    if asked is None:
        return None
    if "none" in asked and len(asked) > 1:
        raise RecorderError("--hold none with --hold NAME: expected one of the two")
    return () if asked == ["none"] else tuple(asked)


def _words(asked: argparse.Namespace, options: Options, name: str, tells_sequence: bool) -> str:
    """The model and options that make the same bytes again: they say nothing of where this recording was written to."""
    model = Path(asked.model).name if Path(asked.model).is_absolute() else asked.model
    given = {
        "--batch": [options.batch],
        "--seq": [options.sequence if tells_sequence else None],
        "--dtype": [asked.dtype],
        "--attention": [asked.attention],
        "--partitioner": [asked.partitioner if asked.partitioner != "mincut" else None],
        "--checkpoint": asked.checkpoint,
        "--autocast": [asked.autocast],
        "--freeze": asked.freeze,
        "--hold": asked.hold or [],
        "--vocabulary": [f"{count}" if input is None else f"{input}={count}" for input, count in asked.vocabulary],
        "--name": [asked.name],
    }
    words = [model]
    for option, values in given.items():
        words += [word for value in values if value is not None for word in (option, str(value))]
    words += ["--activation-checkpointing"] if options.activation_checkpointing else []
    words += ["--no-dropout"] if options.no_dropout else []
    words += ["--build-masks"] if options.build_masks else []
    return shlex.join([*words, "-o", f"traces/{name}"])

"""Attention of transformers' models as a plain training step on a GPU has it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import nn

_Builder = Callable[..., Any]


@contextmanager
def plain_attention(body: nn.Module, attention: str, build_masks: bool = False) -> Iterator[list[str]]:
    """Inside, transformers builds no mask that hides nothing for models in `body`, and repeats key heads where the kernel
    needs it: of the kernels, `efficient` takes no grouped key heads; for it transformers' own repetition is switched on, for
    the others the kernel gets `enable_gqa` as usual. Gives the names of the builders that were asked in vain so far.

    build_masks   transformers builds its masks
    """
    left_out: list[str] = []
    with ExitStack() if build_masks else leave_out_masks(body, left_out) as changes:
        if attention == "efficient" and _homes(body):
            from transformers.integrations import sdpa_attention

            _replace(sdpa_attention, "use_gqa_in_sdpa", _no_grouped_kernel, changes)
        yield left_out


def leave_out_masks(body: nn.Module, left_out: list[str] | None = None) -> ExitStack:
    """From now on, until the stack is closed, transformers builds no mask that hides nothing for models in `body`.

    Causality is implied by `is_causal`, and a mask that hides nothing by none; transformers knows that, and yet builds the
    masks when torch.compile traces it. No flash kernel takes them. A batch with an `attention_mask` keeps its masks.

    left_out   gets the name of a builder each time that it is asked in vain
    """
    changes = ExitStack()
    for home in _homes(body):
        for name, hides_nothing in _BUILDERS.items():
            if hasattr(home, name):
                _replace(home, name, _unless(hides_nothing, getattr(home, name), left_out), changes)
    return changes


def _homes(body: nn.Module) -> list[Any]:
    """The files of transformers that the modules come from."""
    names = sorted({type(module).__module__ for module in body.modules()})
    return [sys.modules[name] for name in names if name.startswith("transformers.")]


def _replace(owner: Any, name: str, replacement: Any, changes: ExitStack) -> None:
    changes.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, replacement)


def _unless(hides_nothing: Callable[..., bool], builder: _Builder, left_out: list[str] | None) -> _Builder:
    """`builder`, but for the masks that hide nothing. Without a list it changes nothing, for which torch.compile would look at
    each call."""

    def build(config: Any, inputs_embeds: Any, attention_mask: Any = None, **more: Any) -> Any:
        if attention_mask is None and hides_nothing(config, inputs_embeds, more):
            if left_out is not None:
                left_out.append(builder.__name__)
            return None
        return builder(config=config, inputs_embeds=inputs_embeds, attention_mask=attention_mask, **more)

    return build


def _is_causal(config: Any, _: Any, more: dict[str, Any]) -> bool:
    """No other mask on top of the causal one, which attention written out in the model needs, too."""
    if getattr(config, "_attn_implementation", None) == "eager":
        return False
    others = [value for name, value in more.items() if name not in ("past_key_values", "position_ids")]
    return getattr(config, "is_causal", True) and not others


def _is_causal_and_short(config: Any, inputs_embeds: Any, more: dict[str, Any]) -> bool:
    """A window hides nothing while the sequence is not longer."""
    return _is_causal(config, inputs_embeds, more) and inputs_embeds.shape[1] <= config.sliding_window


def _is_whole(_config: Any, _inputs_embeds: Any, more: dict[str, Any]) -> bool:
    """An encoder's mask without padding, wherever the queries come from."""
    return not [name for name in more if name not in ("past_key_values", "encoder_hidden_states")]


# By name of a builder of masks: whether its mask would hide nothing.
_BUILDERS = {
    "create_causal_mask": _is_causal,
    "create_sliding_window_causal_mask": _is_causal_and_short,
    "create_bidirectional_mask": _is_whole,
}


def _no_grouped_kernel(*_: Any, **__: Any) -> bool:
    return False


def install_capturing_hooks(body: nn.Module) -> None:
    """transformers installs the hooks that collect hidden states at a model's first call, under a lock, which cannot be
    traced."""
    models = [module for module in body.modules() if type(module).__module__.startswith("transformers.")]
    if not models:
        return
    from transformers import PreTrainedModel
    from transformers.utils.output_capturing import maybe_install_capturing_hooks

    for model in models:
        if isinstance(model, PreTrainedModel):
            maybe_install_capturing_hooks(model)


def remember_text_configurations(body: nn.Module) -> None:
    """Caches of encoder-decoders ask for a copy of the configuration at each call, and copies cannot be traced."""
    found = {id(each): each for module in body.modules() if (each := getattr(module, "config", None)) is not None}
    for configuration in found.values():
        if getattr(configuration, "is_encoder_decoder", False) and hasattr(configuration, "get_text_config"):
            object.__setattr__(configuration, "get_text_config", _remembered(configuration))


def _remembered(configuration: Any) -> Callable[..., Any]:
    whole = configuration.get_text_config()
    of_decoder, of_encoder = configuration.get_text_config(decoder=True), configuration.get_text_config(encoder=True)

    def get_text_config(decoder: bool | None = None, encoder: bool | None = None) -> Any:
        return of_decoder if decoder else of_encoder if encoder else whole

    return get_text_config

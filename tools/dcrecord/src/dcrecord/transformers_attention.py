"""Attention of transformers' models as a plain training step on a GPU has it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

_Builder = Callable[..., Any]


@contextmanager
def plain_attention(body: nn.Module, attention: str) -> Iterator[None]:
    """Inside, transformers builds no plain mask for models in `body`, and repeats key heads where the kernel needs it.

    Causality is implied by `is_causal`, and a mask that hides nothing by none; transformers knows that, and yet builds the
    masks when it is traced, which the flash kernel would not take. Of the kernels, `efficient` takes no grouped key heads; for it transformers' own
    repetition is switched on, for the others the kernel gets `enable_gqa` as usual.
    """
    homes = sorted({type(module).__module__ for module in body.modules()})
    homes = [home for home in homes if home.startswith("transformers.")]
    replaced: list[tuple[Any, str, Any]] = []

    def replace(owner: Any, name: str, replacement: Callable[[_Builder], _Builder]) -> None:
        if hasattr(owner, name):
            replaced.append((owner, name, getattr(owner, name)))
            setattr(owner, name, replacement(getattr(owner, name)))

    for home in homes:
        replace(sys.modules[home], "create_causal_mask", _unless_plain)
        replace(sys.modules[home], "create_sliding_window_causal_mask", _unless_plain_and_short)
        replace(sys.modules[home], "create_bidirectional_mask", _unless_it_hides_nothing)
    if homes and attention == "efficient":
        from transformers.integrations import sdpa_attention

        replace(sdpa_attention, "use_gqa_in_sdpa", lambda _: _no_grouped_kernel)
    try:
        yield
    finally:
        for owner, name, function in reversed(replaced):
            setattr(owner, name, function)


def _unless_plain(builder: _Builder) -> _Builder:
    def build(config: Any, inputs_embeds: Any, attention_mask: Any = None, **more: Any) -> Any:
        if _is_plain(config, attention_mask, more):
            return None
        return builder(config=config, inputs_embeds=inputs_embeds, attention_mask=attention_mask, **more)

    return build


def _unless_plain_and_short(builder: _Builder) -> _Builder:
    """A window hides nothing while the sequence is not longer."""

    def build(config: Any, inputs_embeds: Any, attention_mask: Any = None, **more: Any) -> Any:
        if _is_plain(config, attention_mask, more) and inputs_embeds.shape[1] <= config.sliding_window:
            return None
        return builder(config=config, inputs_embeds=inputs_embeds, attention_mask=attention_mask, **more)

    return build


def _unless_it_hides_nothing(builder: _Builder) -> _Builder:
    """An encoder's mask without padding, wherever the queries come from."""

    def build(
        config: Any, inputs_embeds: Any, attention_mask: Any = None, encoder_hidden_states: Any = None, **more: Any
    ) -> Any:
        if attention_mask is None and not [name for name in more if name != "past_key_values"]:
            return None
        return builder(
            config=config,
            inputs_embeds=inputs_embeds,
            attention_mask=attention_mask,
            encoder_hidden_states=encoder_hidden_states,
            **more,
        )

    return build


def _is_plain(config: Any, attention_mask: Any, more: dict[str, Any]) -> bool:
    """No padding, no other mask on top of the causal one, which attention written out in the model needs, too."""
    if getattr(config, "_attn_implementation", None) == "eager":
        return False
    others = [value for name, value in more.items() if name not in ("past_key_values", "position_ids")]
    return getattr(config, "is_causal", True) and attention_mask is None and not others


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

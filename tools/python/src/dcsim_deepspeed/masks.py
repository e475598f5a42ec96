"""Masks of transformers' models that hide nothing."""

from torch import nn


def leave_out_masks(model: nn.Module) -> None:
    """From now on transformers builds no attention mask for the models in `model` where it would hide nothing.

    Call it before the job is compiled. transformers leaves such masks out itself, but not while torch.compile traces it: then
    no flash kernel takes the attention, and steps take 25 to 40 % longer. Losses stay the same up to the kernel's rounding. A
    batch with an `attention_mask` keeps its masks, so leave that out of batches without padding. Models of other libraries
    are left alone.
    """
    from dcrecord import transformers_attention

    transformers_attention.leave_out_masks(model)

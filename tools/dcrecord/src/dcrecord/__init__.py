"""Records the training graph of a torch model, with no GPU and no weights (docs/reference/recorder.md)."""

from dcrecord.version import VERSION as __version__

__all__ = ["__version__"]

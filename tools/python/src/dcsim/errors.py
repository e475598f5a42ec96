"""What can go wrong, in the words of the program dc-sim."""

from dcsim._native import InputError, SystemFailure

__all__ = ["InputError", "InputNote", "SystemFailure"]


class InputNote(UserWarning):
    """What dc-sim says of an input that it takes: what of it is not used, or bounds the answer."""

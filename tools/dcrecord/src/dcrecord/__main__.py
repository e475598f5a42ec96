"""`python -m dcrecord`."""

from dcrecord.command_line import run

run()

"""`python -m dcrecord`."""

import sys

from dcrecord.command_line import main

sys.exit(main())

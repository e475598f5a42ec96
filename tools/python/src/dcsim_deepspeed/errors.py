"""What can be wrong with a plan."""


class PlanError(ValueError):
    """A file that is no dc-launches/1 document; the message names the file, the field and what was expected."""


class PlanMismatch(RuntimeError):
    """A plan that is not for this job; the message says what differs and what to do. Raised with strict=True only."""

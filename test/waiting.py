"""What tests in Python wait by."""
import os
import time


class InVain(AssertionError):
    """A wait that ended after `patience` seconds; says for what, and what was last seen."""


def eventually(what, condition, patience=None):
    """Returns the first true value of `condition`, called again and again, ever more seldom. Gives up after five minutes
    (RDMAQUOTA_PATIENCE, seconds), which no machine is too slow for, and says `what` was waited for and the last value seen."""
    last = time.monotonic() + (patience or float(os.environ.get("RDMAQUOTA_PATIENCE", 300)))
    interval = 0.02
    while not (seen := condition()):
        if time.monotonic() >= last:
            raise InVain(f"waiting: {what}; last seen: {seen!r}")
        time.sleep(interval)
        interval = min(interval * 1.5, 0.5)
    return seen

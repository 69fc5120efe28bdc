"""What tests in Python wait by."""
import os
import time

PATIENCE = float(os.environ.get("RDMAQUOTA_PATIENCE", 300))  # seconds, which no machine is too slow for


def eventually(condition, patience=PATIENCE):
    """The first true value of `condition`, which is called again and again, ever more seldom; after `patience` its last value, so
    that the check that asks for it fails by its name."""
    last, interval = time.monotonic() + patience, 0.02
    while not (value := condition()) and time.monotonic() < last:
        time.sleep(interval)
        interval = min(interval * 1.5, 0.5)
    return value

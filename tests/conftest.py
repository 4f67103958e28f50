"""Settings of the suite: one thread for its small matrix products, hypothesis without deadlines, the same examples."""

import os

# Before any library is loaded; threads that wait for each other take longer than the products of tests.
for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

from hypothesis import HealthCheck, settings  # noqa: E402

settings.register_profile(
    "suite", deadline=None, derandomize=True, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

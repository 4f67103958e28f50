"""Settings of the suite: hypothesis without deadlines (kernels compile on first use), the same examples each time."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite", deadline=None, derandomize=True, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

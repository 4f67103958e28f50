"""The depths of the dataset, and those of the report's tables."""

from meanfield.verification import COMMON_SWEEP

SHOWN = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000)

# Depths at which a rate is tuned, and factors by which depth then grows; the deepest net of the run ends each row.
STARTS = (3, 6, 12, 25)
FACTORS = (2, 4, 8)

# All depths up to here, which trained nets were swept over; above, these of every decade: theory is smooth there.
DENSE = max(COMMON_SWEEP)
PER_DECADE = (1, 2, 3, 5, 7)


def depth_grid(deepest: int) -> list[int]:
    """The depths of the dataset: all small ones, those that the report prints, and steps of a factor 2 at most."""
    steps = {round(step * 10**power) for power in range(1, len(str(deepest))) for step in PER_DECADE}
    ends = {start * factor for start in STARTS for factor in FACTORS}
    return sorted(depth for depth in {*range(1, DENSE + 1), *SHOWN, *steps, *ends, deepest} if depth <= deepest)

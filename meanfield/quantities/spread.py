"""The registry's entries on single draws: what the net at hand does, where the mean over nets is made by a few."""

from __future__ import annotations

from meanfield.quantities.quantity import Quantity

# Shares p of the drawn nets that stay below a dataset's quantiles: the middle net is typical, four in five lie between
# the outer two.
SHARES = (0.1, 0.5, 0.9)

_UNPREDICTED = "of single draws; the exact level has their second moment, `predict(..., spread=True)`"

SPREAD_QUANTITIES = (
    Quantity(
        name="update_energy_quantile",
        symbol="Q_p(S_l)",
        dims=("quantile", "layer"),
        definition="update energy that a share p of all drawn nets stays below; p = 0.5 is the typical net",
        scaling="as the update energy for l much below n; beyond, far below it",
        source="P0 eq. 8, for one draw",
        unpredicted=_UNPREDICTED,
    ),
    Quantity(
        name="learning_rate_scale_quantile",
        symbol="Q_p(eta*)",
        dims=("quantile",),
        definition="quantile over nets of the learning rate at which the mean update energy of one net is 1",
        scaling="as the learning rate scale for L much below n; beyond, far above it",
        source="P0 eq. 9, for one draw",
        unpredicted=_UNPREDICTED,
    ),
    Quantity(
        name="update_energy_log_spread",
        symbol="sd(ln S_l)",
        dims=("layer",),
        definition="standard deviation over draws of the logarithm of one draw's update energy",
        scaling="(l / n)^(1/2) and what the labels add",
        source="P0 eq. 8, for one draw",
        unpredicted=_UNPREDICTED,
    ),
    Quantity(
        name="update_energy_log_skewness",
        symbol="E(ln S_l - m)^3 / sd^3",
        dims=("layer",),
        definition="skewness over draws of the logarithm of one draw's update energy: 0 if it is log-normal",
        scaling="O(1)",
        source="P0 eq. 8, for one draw",
        unpredicted=_UNPREDICTED,
    ),
)

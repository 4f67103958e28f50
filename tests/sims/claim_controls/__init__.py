"""Negative controls of claims: worlds in which the verdict must be another one.

Each takes the datasets of a run, by simulation, and gives them as they would be if the paper were right where it is
wrong, or wrong where it is right. ``CONTROLS`` maps the claim's id to the control.
"""

from tests.sims.claim_controls import optimizers, training, wang_2026, zhang_2026, zheng_2026

CONTROLS = zhang_2026.CONTROLS | wang_2026.CONTROLS | zheng_2026.CONTROLS | training.CONTROLS | optimizers.CONTROLS

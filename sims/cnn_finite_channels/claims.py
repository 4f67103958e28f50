"""What a layer of a convolutional net does to overlaps of parameter directions."""

from meanfield.verification import Judges
from sims.common.pairs import added_variance_judge, conditional_mean_judge, effective_overlap_draws

# Of a run, over which the false-alarm budget is split.
FINDINGS = 8

OF_OVERLAPS = Judges("Zhang et al. 2026", findings=FINDINGS, effective=effective_overlap_draws)
judge_conditional_mean, judge_added_variance = conditional_mean_judge(OF_OVERLAPS), added_variance_judge(OF_OVERLAPS)

"""Verdicts: measured beside predicted, what each paper claims, and what decides it."""

# How measured numbers are weighed.
from .comparison import score as score, rounding_of as rounding_of
from .zhang_2026.plain_nets.finite_width import finite_width_allowance as finite_width_allowance
from .verdicts import Verdict as Verdict, Deviation as Deviation, Bands as Bands, judge as judge, Finding as Finding
from .verdicts import Power as Power, Shares as Shares, power_in_words as power_in_words
from .verdicts import CONVERGED_SHARE as CONVERGED_SHARE, WIDEST_BAND as WIDEST_BAND
from .series import LadderRow as LadderRow, LadderSlope as LadderSlope, Series as Series
from .series import against_conditions as against_conditions, effective_draws as effective_draws
from .series import exponents_of as exponents_of, labelled as labelled, ladder_slope as ladder_slope
from .series import ladder_values as ladder_values, largest_share as largest_share, limit_law as limit_law
from .series import mean_over_draws as mean_over_draws, scale_law as scale_law, shown_laws as shown_laws, span as span
from .power import announced as announced, needing as needing
from .judges import Judge as Judge, Judges as Judges, Contest as Contest, Ruling as Ruling, contest as contest
from .judges import between as between, computed as computed, identity as identity, joined as joined, lower as lower
from .judges import only_above as only_above, slope_contest as slope_contest
from .verdicts import judge_computed as judge_computed, judge_identity as judge_identity
from .claims import Check as Check, JudgeOfRun as JudgeOfRun, checks as checks, of_all as of_all

# What the papers print and claim.
from .published import PAPERS as PAPERS, PAPERS_EXPONENT as PAPERS_EXPONENT, COMMON_SWEEP as COMMON_SWEEP
from .published import RESNET_BATCH_NORM_SLOPE as RESNET_BATCH_NORM_SLOPE, RESNET_DROPOUT_SLOPE as RESNET_DROPOUT_SLOPE
from .published import TABLE_1 as TABLE_1, MeasuredSlope as MeasuredSlope, measured_slopes as measured_slopes
from .published import judged_slopes as judged_slopes, printed_exponents as printed_exponents
from .published import printed_residual_exponents as printed_residual_exponents
from .catalogue import CLAIMS as CLAIMS
from .claims import Claim as Claim, Kind as Kind, combined as combined, of_rival as of_rival

# The judges, a module for each subject, and what reports and figures take from them.
from .zhang_2026.plain_nets import overlap_conservation as overlap_conservation, depth_growth as depth_growth
from .zhang_2026.plain_nets.overlap_conservation import deviation as deviation
from .zhang_2026.plain_nets.overlap_conservation import effective_overlap_draws as effective_overlap_draws
from .zhang_2026.plain_nets.growth import exponents as exponents, printed_laws as printed_laws
from .zhang_2026.plain_nets import channel_corrections as channel_corrections, stencil_slopes as stencil_slopes
from .zhang_2026.plain_nets.stencil_slopes import drawn_slope as drawn_slope, mean_field_slope as mean_field_slope
from .zhang_2026.plain_nets import depth_laws as depth_laws
from .zhang_2026.plain_nets.depth_laws import judge_negligible_output_term as judge_negligible_output_term
from .zhang_2026.plain_nets.depth_laws import judge_output_term_growth as judge_output_term_growth
from .zhang_2026.plain_nets.depth_laws import judge_uniform_correction as judge_uniform_correction
from .zhang_2026.plain_nets.depth_laws import fitted_law as fitted_law, local_slopes as local_slopes
from .zhang_2026.plain_nets.depth_laws import plain_families as plain_families, scale_of as scale_of
from .zhang_2026.plain_nets.exactness import LABEL_SPREAD as LABEL_SPREAD, OVERLAP_SPREAD as OVERLAP_SPREAD
from .zhang_2026.plain_nets.exactness import PRECISION as PRECISION, draws_needed as draws_needed
from .zhang_2026.plain_nets.exactness import is_converged as is_converged, is_planned as is_planned
from .zhang_2026.plain_nets.exactness import layer_ranges as layer_ranges, share_row as share_row
from .zhang_2026.plain_nets.exactness import judge_exact as judge_exact, judge_drawn_share as judge_drawn_share
from .zhang_2026.plain_nets import activation_drift as activation_drift, padding as padding
from .zhang_2026.plain_nets.activation_drift import LABEL_SCALE as LABEL_SCALE
from .zhang_2026.plain_nets.many_channels import extrapolated as extrapolated
from .zhang_2026.plain_nets.many_channels import at_finite_channels as at_finite_channels, Rung as Rung
from .zhang_2026.plain_nets.many_channels import has_channel_factor as has_channel_factor
from .zhang_2026.plain_nets.many_channels import at_infinite_channels as at_infinite_channels, best as best
from .zhang_2026.plain_nets.many_channels import one_site_ratios as one_site_ratios
from .zhang_2026.identities import aggregators as aggregators, layer_norm as layer_norm
from .zhang_2026.identities.label_average import label_average as label_average
from .zhang_2026.identities.label_average import judge_split as judge_split, judge_prefactor as judge_prefactor
from .zhang_2026.batches import batch_sizes as batch_sizes, cross_entropies as cross_entropies
from .zhang_2026.residual_nets import family_laws as family_laws
from .zhang_2026.training import carried_rates as carried_rates, tuned_rates as tuned_rates
from .zhang_2026.transformers import depth_exponents as depth_exponents, tangent_propagation as tangent_propagation
from .zheng_2026 import coordinate_checks as coordinate_checks, spectral_products as spectral_products
from .zheng_2026 import table_cells as table_cells, training_assumptions as training_assumptions
from .zheng_2026 import hyperparameter_tables as hyperparameter_tables
from .zheng_2026 import transformer_checks as transformer_checks
from .zheng_2026.printed_losses import (
    carried_losses as carried_losses,
    reported_losses as reported_losses,
    single_optimizers as single_optimizers,
)
from .zheng_2026.printed_losses.loss_tables import loss_tables as loss_tables
from .zheng_2026.hyperparameter_tables import compare_table as compare_table
from .zheng_2026.norm_products import products_of as products_of, scales_of as scales_of
from .zheng_2026.training_assumptions import places_of as places_of
from .wang_2026 import loop_growth as loop_growth, loop_updates as loop_updates
from .wang_2026 import loop_rates as loop_rates
from .wang_2026 import looped_transformers as looped_transformers

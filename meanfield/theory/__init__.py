"""What is predicted, at finite width or at leading order in 1/width, by roads that draw nothing."""

from meanfield.theory.exact import energies_by_depth, finite_width_excess, label_spread, output_share, relative_spread
from meanfield.theory.finite_channels import finite_channel_factor, finite_channel_refusal
from meanfield.theory.finite_width import finite_width_allowance
from meanfield.theory.laws import (
    branch_products,
    derive_scaling,
    log_path_sum_scale,
    residual_exponent,
    single_site_overlap,
)
from meanfield.theory.learning_rate import learning_rate_exponent, scales_at, scales_by_depth
from meanfield.theory.loops import has_closed_energy, log_increment_gain, log_own_energies, log_update_energies
from meanfield.theory.mean_field.edge_loss import EdgeLoss, edge_loss, transport_eigenvalue
from meanfield.theory.mean_field.label_term import correlated_term
from meanfield.theory.mean_field.layers import mean_field_profiles
from meanfield.theory.mean_field.output_term import label_covariance, output_profiles, output_term, output_term_refusal
from meanfield.theory.mean_field.stream_overlaps import FOLLOWED, growth_bound, growth_since_birth, mean_overlap
from meanfield.theory.mean_field.whole_update import (
    chain_corrections,
    mean_field_chain,
    pooled_excess,
    thin_input_warning,
)
from meanfield.theory.prediction import predict
from meanfield.theory.recursions import GATES
from meanfield.theory.tangent_kernels import value_kernels
from meanfield.theory.transformers.tied import growth_constant

__all__ = [
    "FOLLOWED",
    "GATES",
    "EdgeLoss",
    "branch_products",
    "chain_corrections",
    "correlated_term",
    "derive_scaling",
    "edge_loss",
    "energies_by_depth",
    "finite_channel_factor",
    "finite_channel_refusal",
    "finite_width_allowance",
    "finite_width_excess",
    "growth_bound",
    "growth_constant",
    "growth_since_birth",
    "has_closed_energy",
    "label_covariance",
    "label_spread",
    "learning_rate_exponent",
    "log_increment_gain",
    "log_own_energies",
    "log_path_sum_scale",
    "log_update_energies",
    "mean_field_chain",
    "mean_field_profiles",
    "mean_overlap",
    "output_profiles",
    "output_share",
    "output_term",
    "output_term_refusal",
    "pooled_excess",
    "predict",
    "relative_spread",
    "residual_exponent",
    "scales_at",
    "scales_by_depth",
    "single_site_overlap",
    "thin_input_warning",
    "transport_eigenvalue",
    "value_kernels",
]

"""Quantities of nets of blocks: norms of features, weights and updates, as P1 takes them, at given learning rates."""

from __future__ import annotations

from meanfield.quantity import Quantity

UNPREDICTED = "P1 gives exponents alone, which `theory.update_norms` derives and the simulations measure"

BLOCK_QUANTITIES = (
    Quantity(
        name="feature_norm",
        symbol="|h_l|_R",
        dims=("draw", "step", "block"),
        definition="root mean square over units and samples of the stream of a net of blocks",
        scaling="O(1) in width and depth under P1's conditions",
        source="P1 eq. P1",
        unpredicted=UNPREDICTED,
    ),
    Quantity(
        name="feature_update_norm",
        symbol="|Delta h_l|_R",
        dims=("draw", "step", "block"),
        definition="root mean square of the stream's change since before the first step, exact, not to first order",
        scaling="O(1) in width and depth under P1's conditions",
        source="P1 eq. P1",
        unpredicted=UNPREDICTED,
    ),
    Quantity(
        name="order_norm",
        symbol="|epsilon_j(L)|_R",
        dims=("draw", "optimizer", "order"),
        definition="root mean square of the part of Delta h_L with j factors Delta W in the block that it comes from",
        scaling="O(1), says P1; for j = 2 at the first step (n L)^(-1/2) is measured",
        source="P1 eq. 5, appendix B.2.4",
        unpredicted=UNPREDICTED,
    ),
    Quantity(
        name="weight_norm",
        symbol="|W|_R",
        dims=("draw", "matrix"),
        definition="sqrt(n_in / n_out) times the spectral norm of a matrix",
        scaling="sqrt(n_in / n_out) sigma (sqrt(n_in) + sqrt(n_out)) for Gaussian elements",
        source="P1 section 2.1, eq. 6",
        unpredicted=UNPREDICTED,
    ),
    Quantity(
        name="update_norm",
        symbol="|Delta W|_R",
        dims=("draw", "optimizer", "matrix"),
        definition="sqrt(n_in / n_out) times the spectral norm of one update of a matrix",
        scaling="learning rate times that of the optimizer's direction",
        source="P1 eq. 9, 17, 18, 21, 24",
        unpredicted=UNPREDICTED,
    ),
    Quantity(
        name="bias_norm",
        symbol="|b|_R",
        dims=("draw", "bias"),
        definition="root mean square of a bias",
        scaling="O(1)",
        source="P1 eq. 13",
        unpredicted=UNPREDICTED,
    ),
    Quantity(
        name="bias_update_norm",
        symbol="|Delta b|_R",
        dims=("draw", "optimizer", "bias"),
        definition="root mean square of one update of a bias",
        scaling="O(1)",
        source="P1 eq. 13",
        unpredicted=UNPREDICTED,
    ),
    Quantity(
        name="weight_alignment",
        symbol="|W z|_R / (|W|_R |z|_R)",
        dims=("draw", "matrix"),
        definition="how much of its RMS operator norm a matrix reaches on what it reads",
        scaling="1/2 for a square Gaussian matrix",
        source="P1 claim F.1",
        unpredicted=UNPREDICTED,
    ),
    Quantity(
        name="update_alignment",
        symbol="|Delta W z|_R / (|Delta W|_R |z|_R)",
        dims=("draw", "optimizer", "matrix"),
        definition="how much of its RMS operator norm an update reaches on what its matrix read before it",
        scaling="1 for one sample and SGD",
        source="P1 claim F.2",
        unpredicted=UNPREDICTED,
    ),
)

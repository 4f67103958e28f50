"""The glossary of quantities of nets of blocks: norms of features, weights and updates at given learning rates."""

BLOCKS = """
feature_norm = |h_l|_R [draw step block]
    root mean square over units and samples of the stream of a net of blocks
    scaling: O(1) in width and depth under the spectral conditions
    source: Zheng et al. 2026, eq. P1
feature_update_norm = |Delta h_l|_R [draw step block]
    root mean square of the stream's change since before the first step, exact, not to first order
    scaling: O(1) in width and depth under the spectral conditions
    source: Zheng et al. 2026, eq. P1
output_update_norm = |Delta f|_R [draw step]
    root mean square over outputs and samples of the outputs' change since before the first step
    scaling: O(1) in width and depth under the spectral conditions
    source: Zheng et al. 2026, condition C2.1
own_change = |Delta_r|_R [draw step role]
    root mean square of what the weights of one role change alone, the outputs by output weights, h_L by the others;
    after the first and the last step, nan elsewhere
    scaling: O(1) in width and depth under the spectral conditions
    source: Zheng et al. 2026, eq. P2
stable_rank = |A|_F^2 / |A|_2^2 [draw step role]
    stable rank of the optimizer's direction A for the middle weight of a role, of the first and the last step; nan
    elsewhere
    scaling: O(1) in width and depth, by assumption
    source: Zheng et al. 2026, assumption C.1, eq. 15
role_weight_norm = |W|_R [draw role]
    norm of the middle weight of a role: RMS operator norm, of biases root mean square
    scaling: O(1) of input and hidden weights, n of output weights, under the rule for the variances
    source: Zheng et al. 2026, eq. 6
role_direction_norm = |A|_R [draw role]
    the same of the direction of its first step, without momentum and epsilon, before learning rate and decay
    scaling: by optimizer and role
    source: Zheng et al. 2026, appendix C.1
role_gradient_norm = |G|_2 [draw role]
    largest singular value of the gradient of the loss in the middle weight of a role
    scaling: n^(-1/2) of input and output weights, 1/L of hidden ones (L^(-1/2) at k = 1)
    source: Zheng et al. 2026, eq. 18, appendix C.9
role_gradient_element = |Vec G|_R [draw role]
    root mean square of the elements of that gradient
    scaling: 1/n, of hidden weights 1/(n L) ((n L^(1/2))^(-1) at k = 1)
    source: Zheng et al. 2026, appendix C.6
order_norm = |epsilon_j(L)|_R [draw optimizer order]
    root mean square of the part of Delta h_L that has j factors Delta W in the block where it arises
    scaling: O(1) according to the paper; for j = 2 at the first step (n L)^(-1/2) is measured
    source: Zheng et al. 2026, eq. 5, appendix B.2.4
weight_norm = |W|_R [draw matrix]
    sqrt(n_in / n_out) times the spectral norm of a matrix
    scaling: sqrt(n_in / n_out) sigma (sqrt(n_in) + sqrt(n_out)) for Gaussian elements
    source: Zheng et al. 2026, section 2.1, eq. 6
update_norm = |Delta W|_R [draw optimizer matrix]
    sqrt(n_in / n_out) times the spectral norm of one update of a matrix
    scaling: learning rate times that of the optimizer's direction
    source: Zheng et al. 2026, eqs. 9, 17, 18, 21, 24
bias_norm = |b|_R [draw bias]
    root mean square of a bias
    scaling: O(1)
    source: Zheng et al. 2026, eq. 13
bias_update_norm = |Delta b|_R [draw optimizer bias]
    root mean square of one update of a bias
    scaling: O(1)
    source: Zheng et al. 2026, eq. 13
weight_alignment = |W z|_R / (|W|_R |z|_R) [draw matrix]
    share of its RMS operator norm that a matrix reaches on its own input
    scaling: 1/2 for a square Gaussian matrix
    source: Zheng et al. 2026, claim F.1
update_alignment = |Delta W z|_R / (|Delta W|_R |z|_R) [draw optimizer matrix]
    share of its RMS operator norm that an update reaches on the input that its matrix had before it
    scaling: 1 for one sample and SGD
    source: Zheng et al. 2026, claim F.2
training_loss = C [draw step]
    mean over the samples of log(1 + exp(-y f)), binary cross-entropy, before a step
    scaling: O(1)
    source: Zheng et al. 2026, appendix G.2
weight_step_ratio = |W + Delta W|_R / (|W|_R + |Delta W|_R) [draw step matrix]
    RMS operator norm of a matrix after one step over the most that the step allows
    scaling: O(1), at most 1, and near 1 for any small step
    source: Zheng et al. 2026, assumption G.1, figure 10
weight_travel_ratio = |W_t|_R / (|W_0|_R + |W_t - W_0|_R) [draw step matrix]
    RMS operator norm of a matrix in training over the most that its change since the start allows
    scaling: O(1), at most 1
    source: Zheng et al. 2026, assumption G.1
feature_step_ratio = |h + Delta h|_R / (|h|_R + |Delta h|_R) [draw step block]
    size of the stream after one step over the most that the step allows, mean over samples
    scaling: O(1), at most 1, and near 1 for any small step
    source: Zheng et al. 2026, assumption G.1, figure 11
feature_travel_ratio = |h_t|_R / (|h_0|_R + |h_t - h_0|_R) [draw step block]
    size of the stream in training over the most that its change so far allows, mean over samples
    scaling: O(1), at most 1
    source: Zheng et al. 2026, assumption G.1
activation_ratio = |phi(W z)|_R / |W z|_R [draw step activation]
    share of the size of its input that an activation keeps, mean over samples
    scaling: 1/sqrt(2) for ReLU of inputs that are symmetric about zero
    source: Zheng et al. 2026, assumption G.2, figure 12
sample_update_ratio = |Delta W^(i) z^(i)|_R / (B |Delta W z^(i)|_R) [draw step matrix]
    effect of a sample's part of an update on that sample, over the effect of the whole update; mean over samples
    scaling: O(1) for batches of O(1)
    source: Zheng et al. 2026, assumption G.3, figure 13
"""

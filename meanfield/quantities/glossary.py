"""The glossary of quantities, as text: what a dataset may hold of one gradient step, of overlaps and of loops.

An entry is ``name = symbol [dims]`` and, indented, its definition, scaling and source; an entry that
`meanfield.predict` gives at no level also says why (``unpredicted``). `meanfield.quantities.registry` reads them.
"""

NETS = """
update_energy = S_l [layer]
    mean square over channels and sites of the one-step change of z^(l), averaged over labels
    scaling: label term plus output term
    source: Zhang et al. 2026, eqs. 8, 18
label_term = B_l [layer]
    part of the update energy that the labels drive: the change under the error column y; under another optimizer than
    gradient descent the update energy of a step on the labels' error alone, which is no part of a sum
    scaling: n l^3 for one site; sigma_y^2 gamma F_l / M under a convolutional readout
    source: Zhang et al. 2026, eq. 19 (with its missing factor 1/M); docs/theory.md section 24
output_term = A_l [layer]
    part of the update energy that the outputs drive: the change under the error column z_out; under another optimizer
    than gradient descent the update energy of a step on the outputs' error alone, which is no part of a sum
    scaling: as the label term, times 1 + O(M L / n); l^4 / 4 where outputs M are as many as channels n
    source: Zhang et al. 2026, eq. 20; docs/theory.md sections 4, 18, 24
overlap_energy = F_l [layer]
    |Theta^(l)|_F^2 / n_l^2, the sum over pairs of parameters of their squared overlaps
    scaling: n l (2 l^2 + 1) / 12 for one site and ReLU
    source: Zhang et al. 2026, eq. 13; docs/theory.md section 2
update_energy_by_site = S_l(p) [layer site]
    update energy at each site of the grid, sites row by row; its mean over sites is the update energy
    scaling: as the update energy; smaller within l^(1/2) sites of an edge under zero padding
    source: Zhang et al. 2026, eq. 8, before its average over sites; docs/theory.md sections 6, 18
label_term_by_site = B_l(p) [layer site]
    label term at each site of the grid, sites row by row; its mean over sites is the label term
    scaling: as the label term; smaller within l^(1/2) sites of an edge under zero padding
    source: Zhang et al. 2026, eq. 19, before its average over sites; docs/theory.md section 6
output_term_by_site = A_l(p) [layer site]
    output term at each site of the grid, sites row by row; its mean over sites is the output term
    scaling: as the output term; smaller within l^(1/2) sites of an edge under zero padding
    source: Zhang et al. 2026, eq. 20, before its average over sites; docs/theory.md section 18
overlap_energy_relative_spread = sd(F_l) / E F_l [layer]
    standard deviation of one draw of the overlap energy over its mean; a relative error e takes (spread / e)^2 draws
    scaling: (l / n)^(1/2) for l much below n; far above 1 where rare draws make the mean
    source: docs/theory.md section 3
label_term_relative_spread = sd(B_l) / E B_l [layer]
    standard deviation of one draw of the label term over its mean, where every draw has labels of its own
    scaling: at least (2 / M)^(1/2), and more in deep nets, at every layer
    source: docs/theory.md sections 3, 4
finite_width_allowance = exp(3 l / n + Var log B) - 1 [layer]
    relative deviation from the mean field that verdicts grant to a net of finite width
    scaling: 3 l / n for ReLU and l much below n
    source: docs/theory.md section 3
    unpredicted: is itself computed, for verdicts alone
finite_channel_correction = B_L / B_L(mean field) - 1 [channels depth_over_channels]
    label term of the last layer over its leading order in 1/channels, less 1
    scaling: 3 L / C for L much below C: a function of L / C
    source: Zhang et al. 2026, section 3.3; Zhang et al. 2025, Theorem 2
    unpredicted: belongs to a sweep; for one site `meanfield.theory.exact` has it exactly
mean_update_energy = Sbar
    average of the update energy over the layers
    scaling: n L^3 when the label term dominates
    source: Zhang et al. 2026, eq. 9
learning_rate_scale = eta*
    learning rate at which the mean update energy is 1: Sbar^(-1/2)
    scaling: n^(-1/2) L^(-3/2) when the label term dominates
    source: Zhang et al. 2026, eq. 9
label_learning_rate_scale = eta*_B
    learning rate at which the layers' mean label term is 1: (mean_l B_l)^(-1/2)
    scaling: n^(-1/2) L^(-3/2) asymptotically
    source: Zhang et al. 2026, appendix B.3
relative_learning_rate_scale = eta*_rel
    learning rate at which the layers' mean relative update energy is 1: (mean_l S_l / c_l)^(-1/2)
    scaling: as the learning rate scale where values have variance 1
    source: Zhang et al. 2026, eq. 9, for S_l / c_l in place of S_l
last_learning_rate_scale = eta*_last
    learning rate at which the relative update energy of the last layer is 1: (S_L / c_L)^(-1/2)
    scaling: as the relative learning rate scale, up to a factor that does not depend on the depth
    source: Zhang et al. 2026, eq. 9, for the last layer's S_L / c_L in place of the mean of S_l
output_update_energy = S_out
    mean square over channels, samples and sites of the one-step change of the outputs, averaged over labels; the
    readout's own weights move, too
    scaling: as the update energy of the last layer, times the readout's variance and width
    source: Zhang et al. 2026, eq. 8, at the outputs
output_learning_rate_scale = eta*_out
    learning rate at which the mean square change of the outputs is 1: S_out^(-1/2)
    scaling: as the output update energy to the power -1/2
    source: Zhang et al. 2026, eq. 9, for the outputs in place of the layers
pre_activation_energy = c_l [layer]
    mean square over channels and sites of z^(l) itself
    scaling: 1 at every layer for homogeneous activations under the fan-in rule; otherwise it drifts exponentially
        towards a fixed point or away from it
    source: Zhang et al. 2026, appendix F; docs/theory.md section 6
    unpredicted: predicted with its correction of order 1/width, by `meanfield.theory.mean_field`
gate_energy = q_l [layer]
    mean square over channels and sites of sigma'(z^(l)); times sigma_W^2 it is the share of the energy of tangents and
    errors that a layer keeps
    scaling: q where pre-activations have variance 1, and at any variance for homogeneous activations
    source: Zhang et al. 2026, eq. 1, appendix F
    unpredicted: predicted with its correction of order 1/width, by `meanfield.theory.mean_field`
stream_variance = c_l [layer]
    mean square over channels, samples and tokens of the stream z^(l) behind unit l
    scaling: grows by a^2 with every branch of variance 1 in pre-norm Transformers; 1 in post-norm ones
    source: Zhang et al. 2026, section 3.5; docs/theory.md section 19
token_correlation = E cos(z_t, z_t') [layer]
    mean over pairs of tokens of a sample of the cosine of the angle between their vectors; at 1 all tokens are alike
    scaling: 0 for white tokens; grows with depth, as attention averages over tokens
    source: docs/theory.md section 19
relative_update_energy = S_l / c_l [layer]
    update energy over the mean square of the layer's value, of the same draw
    scaling: as the update energy where values have variance 1
    source: Zhang et al. 2026, eq. 8, section 3.5
update_energy_of_group = S_l^(g) [group layer]
    mean square of the one-step change of z^(l) by one group of parameters alone, while all others stay
    scaling: as the update energy for a group of the parameters that move a layer most; 0 below all of its parameters
    source: Zhang et al. 2026, eq. 8, for some of the parameters
    unpredicted: groups are of a user's own model; `meanfield.torch.step_scales` measures it
tangent_propagation = rho_{l:h} [direction start layer]
    mean square of a tangent at layer l over that at layer h, its start, with no weight moved between them
    scaling: bounded in depth according to the paper, and the same for all directions; shared directions grow over those
        that sum to zero over tokens, which attention does not carry
    source: Zhang et al. 2026, eq. 42
    unpredicted: measured to test an assumption; for tangents of the weights it is part of the tangent kernel
tangent_propagation_spread = sd(rho_{l:h}) [direction start layer]
    standard deviation over draws of the mean square of a tangent at layer l over that at layer h
    scaling: n^(-1/2) at given depth; grows with l - h
    source: Zhang et al. 2026, eq. 44 for v_1 = v_2
    unpredicted: of single draws, of order n^(-1/2), beyond mean field
tangent_propagation_remainder = (rho_shared - rho_difference) / 2 [start layer]
    half the difference of the propagation of tangents that all tokens share and of those that sum to zero over tokens:
    for any single rho the remainder of eq. 43 is at least so large for one of them
    scaling: falls with the width according to the paper
    source: Zhang et al. 2026, eq. 43
    unpredicted: measured to test an assumption
output_error = |dL/dz_out|^2
    squared error at the outputs, z_out - y or softmax(z_out) - y, summed over channels, averaged over samples, sites
    and labels
    scaling: M (1 + z^2) under squared loss; 1 - 1/C under cross-entropy where the softmax over C is uniform
    source: Zhang et al. 2026, section G
overlap = T_l(mu1, mu2) [pair layer]
    mean over units of the product of two tangents of z^(l), along two parameter directions
    scaling: mean q for a direction with itself, 0 for two of one layer, 1 / (2 pi q n) for two of different layers; in
        residual nets also for two of one unit that of a direction with itself, growing as (1 + c q / K)^l
    source: Zhang et al. 2026, eq. 13
squared_overlap = T_l(mu1, mu2)^2 [pair layer]
    square of the overlap of two parameter directions, whose sum over all pairs is the overlap energy
    scaling: q^2 for a direction with itself; for two of different units (l - l_mu) / n at leading order in l / n
    source: Zhang et al. 2026, eq. 13; docs/theory.md section 5
gated_overlap = E[T_{l+1} | layers up to l] [pair layer]
    overlap of the gated tangents over the gain: the mean of the next layer's overlap, given this one
    scaling: as the overlap
    source: Zhang et al. 2026, eq. 15
    unpredicted: its mean is that of the next layer's overlap
overlap_innovation = T_l - E[T_l | layers below l] [pair layer]
    difference between an overlap and its mean given the layers below
    scaling: mean 0; n^(-1/2) in a draw
    source: Zhang et al. 2026, Lemmas 1, 6
    unpredicted: its mean is 0
gate_deviation = T~_l - q T_l [pair layer]
    overlap of the gated tangents, less that of the tangents times the gain
    scaling: mean 1 / n, 0 in linear nets; n^(-1/2) in a draw, 1 for a direction with itself
    source: Zhang et al. 2026, section C.1, epsilon
    unpredicted: its law in residual streams is in `meanfield.theory.mean_field`
overlap_excess = T_l - r T_l0 [pair layer]
    overlap, less its first value times the growth r that it would have if gates averaged to the gain
    scaling: mean 1 / n, 0 in linear nets and in plain nets for directions of one layer
    source: Zhang et al. 2026, eqs. 14, 35
    unpredicted: its mean is at most of order 1/n, which no recursion here resolves
overlap_variance = Var(T_l | layers below l) [pair layer]
    mean of the squared difference between an overlap and its mean given the layers below
    scaling: 1 / n
    source: Zhang et al. 2026, Lemma 5, eq. 27
"""

LOOPS = """
residual_energy = H_l [step]
    |h_l|^2 / N of the stream after l steps: initial energy plus cross term plus correlation term
    scaling: O(1) for alpha >= 1 in tied loops and alpha >= 1/2 in independent stacks
    source: Wang et al. 2026, section 2, eq. 2
initial_energy = H_0
    |h_0|^2 / N of the stream before the first step
    scaling: 1
    source: Wang et al. 2026, eq. 2
cross_term = B_l [step]
    (2 eps / N) sum_{s<l} <h_0, r_s>, r_s = W phi(h_s): the overlap of the start with the increments
    scaling: N^(-1/2), of mean 0 at infinite width
    source: Wang et al. 2026, eq. 2
correlation_term = C_l [step]
    (eps^2 / N) sum_{s,t<l} <r_s, r_t>: squared length of the sum of the increments
    scaling: eps^2 l^2 in tied loops and eps^2 l in independent stacks while H is O(1)
    source: Wang et al. 2026, eq. 2
increment_correlation = <r_s, r_t> / N [step step_other]
    overlap of the increments of two steps; step s is the increment that turns h_{s-1} into h_s
    scaling: O(1) at all distances in tied loops, on the diagonal alone in independent stacks
    source: Wang et al. 2026, figure 2, appendix C.1
feature_overlap = C_{s,t} [step step_other]
    <phi(h_{s-1}), phi(h_{t-1})> / N, the overlap of the features that the increments are made of
    scaling: O(1)
    source: Wang et al. 2026, appendix C.1
stream_update_energy = |dh_l|^2 / N [step]
    mean square over units of the first-order change of the stream under one update of the weights
    scaling: (eta eps L)^2 for isotropic updates of a tied loop while H is O(1)
    source: Wang et al. 2026, Theorem 2, appendix D
    unpredicted: depends on the update as well as on the loop; `meanfield.theory.loops` has isotropic updates
stream_learning_rate_scale = (|dh_L|^2 / N)^(-1/2)
    learning rate at which one update of a loop's weights moves the stream's last step by 1
    scaling: L^(alpha - 1) for isotropic updates of tied loops of alpha >= 1
    source: Wang et al. 2026, eq. 4
    unpredicted: depends on the update, too; `meanfield.theory.learning_rate` has it for isotropic ones
"""

SINGLE_DRAWS = """
update_energy_quantile = Q_p(S_l) [quantile layer]
    update energy that a share p of all drawn nets stays below; p = 0.5 is the typical net
    scaling: as the update energy for l much below n; far below it at larger l
    source: Zhang et al. 2026, eq. 8, for one draw
learning_rate_scale_quantile = Q_p(eta*) [quantile]
    quantile over nets of the learning rate at which the mean update energy of one net is 1
    scaling: as the learning rate scale for L much below n; far above it at larger L
    source: Zhang et al. 2026, eq. 9, for one draw
relative_update_energy_quantile = Q_p(S_l / c_l) [quantile layer]
    relative update energy that a share p of all drawn nets stays below
    scaling: as the relative update energy for l much below n; far below it at larger l
    source: Zhang et al. 2026, eq. 8, for one draw
relative_learning_rate_scale_quantile = Q_p(eta*_rel) [quantile]
    quantile over nets of the learning rate at which the mean relative update energy of one net is 1
    scaling: as the relative learning rate scale for L much below n; far above it at larger L
    source: Zhang et al. 2026, eq. 9, for one draw
last_learning_rate_scale_quantile = Q_p(eta*_last) [quantile]
    quantile over nets of the learning rate at which the relative update energy of the last layer of one net is 1
    scaling: as the last learning rate scale for L much below n; far above it at larger L
    source: Zhang et al. 2026, eq. 9, for one draw
output_update_energy_quantile = Q_p(S_out) [quantile]
    output update energy that a share p of all drawn nets stays below
    scaling: as the output update energy for L much below n; far below it at larger L
    source: Zhang et al. 2026, eq. 8, for one draw
output_learning_rate_scale_quantile = Q_p(eta*_out) [quantile]
    quantile over nets of the learning rate at which the outputs of one net move by 1
    scaling: as the output learning rate scale for L much below n; far above it at larger L
    source: Zhang et al. 2026, eq. 9, for one draw
update_energy_log_spread = sd(ln S_l) [layer]
    standard deviation over draws of the logarithm of one draw's update energy
    scaling: (l / n)^(1/2) and what the labels add
    source: Zhang et al. 2026, eq. 8, for one draw
update_energy_log_skewness = E(ln S_l - m)^3 / sd^3 [layer]
    skewness over draws of the logarithm of one draw's update energy: 0 if it is log-normal
    scaling: O(1)
    source: Zhang et al. 2026, eq. 8, for one draw
"""

TRAINING = """
loss = C [rate seed step]
    loss of a net in training on the mini-batch of a step, before the step; infinite once training has diverged
    scaling: O(1) in width and depth at the first step under the heads "he" and "fan_in"
    source: Zhang et al. 2026, section 4
final_loss = C_T [rate seed]
    loss on all samples of the data after the last step; infinite where training has diverged
    scaling: the learning rate that makes it smallest is compared with the learning-rate scale
    source: Zhang et al. 2026, section 4
seed_tuned_rate_log10 = log10 eta_T [seed]
    log10 of the learning rate that minimises the final loss from one seed, by a parabola through the losses near it;
    NaN where no minimum was met; its error is that of the rates that were tried, 0 of a vertex of the parabola
    scaling: compared with the learning-rate scale and with the stable rate
    source: Zhang et al. 2026, section 4.1
tuned_rate_log10 = E log10 eta_T
    mean over seeds of log10 of the learning rate that minimises the final loss
    scaling: compared with the learning-rate scale and with the stable rate
    source: Zhang et al. 2026, section 4.1
tuned_rate = eta_T
    geometric mean over seeds of the learning rate that minimises the final loss
    scaling: compared with the learning-rate scale and with the stable rate
    source: Zhang et al. 2026, section 4.1
trained_residual_energy = H_l [update step]
    |h_l|^2 / N of the stream after l units, once so many updates have been made
    scaling: before training as the residual energy; an update changes it by O(eta eps L) while H is O(1)
    source: Wang et al. 2026, section 3.1, eq. 2
trained_initial_energy = H_0 [update]
    |h_0|^2 / N of the stream before its first unit; an embedding below the stream trains, too
    scaling: 1
    source: Wang et al. 2026, eq. 2
trained_cross_term = B_l [update step]
    (2 / N) <h_0, h_l - h_0> of a net in training
    scaling: before training as the cross term
    source: Wang et al. 2026, eq. 2
trained_correlation_term = C_l [update step]
    |h_l - h_0|^2 / N of a net in training: squared length of the sum of the increments
    scaling: before training as the correlation term
    source: Wang et al. 2026, eq. 2
trained_stream_change = |h_l - h_l(0)|^2 / N [update step]
    squared change of the stream since training began, on the inputs of that training
    scaling: (eta eps L)^2 while H is O(1)
    source: Wang et al. 2026, Theorem 2
trained_increment_correlation = <r_s, r_t> / N [update step step_other]
    overlap of the increments of two units of a net in training, without their multipliers
    scaling: before training as the increment correlation
    source: Wang et al. 2026, figure 2
trained_loss = C [update]
    loss of a net in training on its one batch, once so many updates have been made
    scaling: O(1) in width and depth at the first step under the heads "he" and "fan_in"
    source: Wang et al. 2026, section 3.1
"""

CURVATURE = """
sharpness = lambda_max
    largest eigenvalue of J^T H J on a batch at initialisation, J the derivative of the outputs with respect to the
    weights and H the loss's second derivative with respect to the outputs (the Gauss-Newton matrix); under AdamW in
    units of the roots of its second moments
    scaling: n L under a "he" or "fan_in" head in plain nets
    source: docs/theory.md section 21
stable_rate = 2 / lambda_max
    largest learning rate at which steps on the full batch are stable in the loss's quadratic model; with momentum beta
    2 (1 + beta) / lambda_max, under AdamW 2 (1 + beta_1) / (1 - beta_1) / lambda_max
    scaling: 1 / (n L) under a "he" or "fan_in" head in plain nets
    source: docs/theory.md section 21
stable_rate_quantile = Q_p(2 / lambda_max) [quantile]
    stable learning rate that a share p of all drawn nets stays below; p = 0.5 is the typical net
    scaling: as the stable rate
    source: docs/theory.md section 21
"""


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

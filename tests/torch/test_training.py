"""The same nets trained by PyTorch, from the same weights on the same mini-batches: equal losses, one tuned rate."""

import numpy as np
import pytest

import meanfield as mf

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")

from meanfield.common.seeds import stream  # noqa: E402
from meanfield.simulation.training.data import drawn_weights  # noqa: E402
from tests.torch import twins  # noqa: E402
from tests.torch.test_twins import FAMILIES, spec_of  # noqa: E402

NORMALISED, VISION = "residual conv, batch norm", "post-norm"
# The optimizers as PyTorch has them, AdamW with the second beta of ours, and rates around the best.
OPTIMIZERS = {
    "sgd": lambda parameters, rate: torch.optim.SGD(parameters, lr=rate),
    "adamw": lambda parameters, rate: torch.optim.AdamW(parameters, lr=rate, betas=(0.9, 0.95), weight_decay=0.0),
}
RATES = {"sgd": 10.0 ** np.arange(-1.5, 1.1, 0.5), "adamw": 10.0 ** np.arange(-3.0, 0.1, 0.5)}
SAMPLES, BATCH, EPOCHS, SEEDS = 48, 16, 4, 2


def data_of(net):
    """Three classes that a net can tell apart."""
    rng = np.random.default_rng(5)
    labels = rng.integers(0, net.outputs, SAMPLES)
    centres = rng.normal(size=(net.outputs, *net.input_shape[1:]))
    return centres[labels] + rng.normal(size=(SAMPLES, *net.input_shape[1:])), labels


def trained_by_torch(family, name, rate, seed):
    """Losses before every step, and on all samples after the last one, batch by batch of one more epoch."""
    net, make = FAMILIES[family]
    model = make(net).double()
    twins.loaded(model, [each[0] for each in drawn_weights(net, seed, range(1)).values()])
    optimizer = OPTIMIZERS[name](model.parameters(), rate)
    inputs, labels = map(torch.as_tensor, data_of(net))
    losses = []
    for epoch in range(EPOCHS + 1):
        for batch in stream(seed, "batches", epoch).permutation(SAMPLES).reshape(-1, BATCH):
            loss = torch.nn.functional.cross_entropy(model(inputs[batch]), labels[batch])
            losses.append(loss.item())
            if epoch < EPOCHS:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    steps = EPOCHS * SAMPLES // BATCH
    return losses[:steps], float(np.mean(losses[steps:]))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("family", [NORMALISED, VISION])
def test_a_net_trained_by_torch_has_the_same_losses_and_the_same_tuned_rate(family, optimizer):
    data, rates = data_of(FAMILIES[family][0]), RATES[optimizer]
    how = {"epochs": EPOCHS, "batch_size": BATCH, "optimizer": optimizer, "precision": "float64"}
    ours = mf.train(spec_of(family), data, rates=rates, seeds=SEEDS, **how)
    theirs = [[trained_by_torch(family, optimizer, rate, seed) for seed in range(SEEDS)] for rate in rates]
    for rate, of_rate in enumerate(theirs):
        for seed, (losses, final) in enumerate(of_rate):
            at = ours.isel(rate=rate, seed=seed)
            np.testing.assert_allclose(at["loss"], losses, rtol=1e-7)
            np.testing.assert_allclose(at["final_loss"], final, rtol=1e-7)
    final = np.array([[loss for _, loss in of_rate] for of_rate in theirs])
    best = final.argmin(axis=0)
    assert ((best > 0) & (best < len(rates) - 1)).all(), "the best rate lies inside of the rates, and can be found"
    tuned = mf.tuned_rate(spec_of(family), data, grid=rates, seeds=SEEDS, **how)["seed_tuned_rate_log10"].values
    np.testing.assert_allclose(tuned, np.log10(rates[best]), atol=0.3)

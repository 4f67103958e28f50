"""The learning-rate finder is that of torch-lr-finder: the same net, from the same weights, on the same batches."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.simulation.training.data import Batches, drawn_weights
from tests.transfer.test_range_test import DATA, NET, SEED, TESTED

torch = pytest.importorskip("torch")
torch_lr_finder = pytest.importorskip("torch_lr_finder")
plt = pytest.importorskip("matplotlib.pyplot")


def twin():
    """`NET` as a model of PyTorch, with the weights that our seed draws."""
    start = drawn_weights(NET, SEED, range(1))
    weights = [torch.tensor(start[name][0]) for name in NET.weights]
    layers = [torch.nn.Linear(*weight.T.shape, bias=False, dtype=weight.dtype) for weight in weights]
    for layer, weight in zip(layers, weights, strict=True):
        layer.weight = torch.nn.Parameter(weight)
    return torch.nn.Sequential(*(part for layer in layers for part in (torch.nn.ReLU(), layer)))


def found_by_torch_lr_finder(make_optimizer, high, order=SEED):
    """Rates, smoothed losses and the suggestion of the plot; ``order``: the seed of the batches."""
    batches = Batches(len(DATA[0]), TESTED["batch_size"], [order])
    chosen = [batches.at(step)[0].tolist() for step in range(TESTED["steps"])]
    samples = torch.utils.data.TensorDataset(*map(torch.tensor, DATA))
    model = twin()
    finder = torch_lr_finder.LRFinder(model, make_optimizer(model.parameters()), torch.nn.CrossEntropyLoss())
    loader = torch.utils.data.DataLoader(samples, batch_sampler=chosen)
    finder.range_test(loader, start_lr=TESTED["low"], end_lr=high, num_iter=TESTED["steps"])
    figure, axes = plt.subplots()
    _, suggested = finder.plot(ax=axes, suggest_lr=True)
    plt.close(figure)
    return np.array(finder.history["lr"]), np.array(finder.history["loss"]), suggested


TWINS = {
    "sgd": lambda weights: torch.optim.SGD(weights, lr=TESTED["low"]),
    "sgd_momentum": lambda weights: torch.optim.SGD(weights, lr=TESTED["low"], momentum=0.9),
    "adamw": lambda weights: torch.optim.Adam(weights, lr=TESTED["low"], betas=(0.9, 0.95)),
}


@pytest.mark.filterwarnings("ignore:under AdamW rates of a range test")
@pytest.mark.parametrize(
    ("optimizer", "high"), [("sgd", 1.0), ("sgd_momentum", 1.0), ("sgd_momentum", 1e3), ("adamw", 1.0), ("adamw", 1e3)]
)
def test_a_range_test_is_that_of_torch_lr_finder(optimizer, high):
    """Rates, smoothed losses, the step where it ends, and the suggestion; up to 1, and until it diverges."""
    rates, losses, steepest = found_by_torch_lr_finder(TWINS[optimizer], high)
    found, taken = mf.range_test(NET, DATA, optimizer=optimizer, high=high, seeds=[SEED], **TESTED), len(losses)
    own = found["smoothed_loss"].sel(seed=SEED).values
    np.testing.assert_allclose(found["tested_rate"][:taken], rates, rtol=1e-12)
    np.testing.assert_allclose(own[:taken], losses, rtol=1e-10)
    assert np.isnan(own[taken:]).all()
    assert (found.attrs["diverged"], taken < TESTED["steps"]) == ((1, True) if high > 1 else (0, False))
    assert float(found["steepest_rate"]) == pytest.approx(steepest, rel=1e-12)
    assert float(found["tenth_rate"]) == pytest.approx(rates[losses.argmin()] / 10, rel=1e-12)


def test_a_range_test_on_other_batches_is_another():
    """The control: our losses are not those of torch-lr-finder on other batches."""
    _, others, _ = found_by_torch_lr_finder(TWINS["sgd"], 1.0, SEED + 1)
    own = mf.range_test(NET, DATA, high=1.0, seeds=[SEED], **TESTED)["smoothed_loss"].sel(seed=SEED).values
    assert np.abs(own[: len(others)] / others - 1).max() > 1e-3

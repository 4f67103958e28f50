"""Rates named for a PyTorch model against training it: a ResNet with batch normalisation, which no trial has trained.

Each depth is trained on the digits by steps of its own optimizer, under the rate that is named and under others. Of
nets that learn, a loss of a third of chance, what is named must cost less than 0.1 nats above the best of them.
"""

from functools import lru_cache, partial

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")
datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed: the extra data")

import meanfield.torch as mft  # noqa: E402
from tests.torch import models  # noqa: E402

OPTIMIZERS = {"sgd": torch.optim.SGD, "adamw": partial(torch.optim.AdamW, weight_decay=0.0)}
DEPTHS = 1, 4  # blocks of each of the two stages
BATCH, STEPS, SEEDS, LAST = 32, 112, 2, 30
FACTORS = 0.1, 10**-0.5, 1.0, 10**0.5, 10.0
COSTS = 0.1
LEARNED = np.log(10) / 3
cross_entropy = torch.nn.functional.cross_entropy


@lru_cache
def batches(seed):
    """Batches of normalised digits in an order of their own."""
    digits = datasets.load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None]
    images, labels = (images - images.mean()) / images.std(), torch.tensor(digits.target)
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.cat([torch.randperm(len(images), generator=generator) for _ in range(2)])
    return [(images[which], labels[which]) for which in drawn[: STEPS * BATCH].view(STEPS, BATCH)]


def resnet(depth):
    return partial(models.ResNet, depth=depth, channels=8, classes=10)


@lru_cache
def loss_at(name, depth, rate):
    """The mean loss of the last steps, over seeds, in torch's own precision."""
    return float(np.mean([trained_loss(name, depth, rate, seed) for seed in range(SEEDS)]))


def trained_loss(name, depth, rate, seed):
    torch.manual_seed(seed)
    model, losses = resnet(depth)(), []
    optimizer = OPTIMIZERS[name](model.parameters(), lr=rate)
    for inputs, targets in batches(seed):
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.mean(losses[-LAST:])


@lru_cache
def started(name, depth):
    """The rate that is named with nothing tuned, from other batches than those of training."""
    how = {"optimizer": OPTIMIZERS[name], "precision": "float32"}
    return mft.starting_rate(resnet(depth), cross_entropy, batches(99)[:16], **how)


@lru_cache
def best_rate(name, depth):
    named = float(started(name, depth).rate)
    return min((factor * named for factor in FACTORS), key=partial(loss_at, name, depth))


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_named_rate_trains_nearly_as_well_as_the_best(name, depth):
    rate = float(started(name, depth).rate)
    best = loss_at(name, depth, best_rate(name, depth))
    assert best < LEARNED
    assert loss_at(name, depth, rate) < best + COSTS
    # Rates ten times away are told from it, so that the line above could fail.
    assert max(loss_at(name, depth, factor * rate) for factor in (FACTORS[0], FACTORS[-1])) > best + COSTS


@pytest.mark.filterwarnings("ignore:whether one step says how rates of nets with batch normalisation")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_carried_rate_trains_nearly_as_well_as_the_best(name):
    tuned = best_rate(name, DEPTHS[0])
    models_of = resnet(DEPTHS[0]), resnet(DEPTHS[1])
    how = {"optimizer": OPTIMIZERS[name], "precision": "float32"}
    carried = float(mft.carry(tuned, *models_of, cross_entropy, batches(99)[:16], **how).rate)
    best = loss_at(name, DEPTHS[1], best_rate(name, DEPTHS[1]))
    assert loss_at(name, DEPTHS[1], carried) < best + COSTS
    # The same factor the other way is told from it.
    assert loss_at(name, DEPTHS[1], tuned**2 / carried) > best + COSTS

"""The cross-entropy of a single output is 0 whatever a net does: every function that takes a loss refuses it."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.execution import Run, training_run
from meanfield.simulation import Sharpness
from meanfield.transfer import StableRate, Tuning

NET, LOOP = mf.MLP(depth=2, width=3, outputs=1, activation="tanh"), mf.TiedLoop(depth=2, width=1)
GRID = mf.ConvNet(depth=2, channels=3, grid=(3,), outputs=1)
INPUTS, LABELS = np.arange(12.0).reshape(4, 3), np.zeros(4, int)
DATA, TRAINED = (INPUTS, LABELS), {"steps": 1, "seeds": 2}
ENTROPY = {"loss": "cross_entropy"}
TAKERS = {
    "simulate": lambda how: mf.simulate(NET, draws=2, seed=0, **how),
    "simulate a grid": lambda how: mf.simulate(GRID, draws=2, seed=0, **how),
    "simulate a chain": lambda how: mf.simulate(mf.with_dropout(NET, 0.1), draws=2, seed=0, **how),
    "memory": lambda how: mf.memory(NET, **how),
    "run": lambda how: Run(NET, mf.Energies(**how), 2, 0),
    "predict": lambda how: mf.predict(NET, level="mean_field", **how),
    "train": lambda how: mf.train(NET, _data(how), rates=0.1, **TRAINED, **how),
    "training run": lambda how: training_run(NET, _data(how), rates=0.1, **TRAINED, **how),
    "tuned rate": lambda how: mf.tuned_rate(NET, _data(how), grid=3, **TRAINED, **how),
    "tuning": lambda how: Tuning(net=NET, data=_data(how), training={"steps": 1} | how),
    "stable rate": lambda how: mf.stable_rate(NET, _data(how), draws=2, **how),
    "stable rate in theory": lambda how: mf.stable_rate(NET, _data(how), level="mean_field", **how),
    "sharpness": lambda how: Run(NET, Sharpness(inputs=INPUTS, **how), 2, 0),
    "transfer": lambda how: mf.explain_transfer(0.1, NET, NET, rule=StableRate(_data(how), draws=2, **how)),
}


def _data(how):
    return DATA if how == ENTROPY else (INPUTS, np.ones((4, 1)))


@pytest.mark.parametrize("call", TAKERS.values(), ids=TAKERS)
def test_the_cross_entropy_of_one_output_is_refused(call):
    with pytest.raises(
        ValueError, match=r"one output, whose cross-entropy is 0 .*; give it outputs=2 or more, .* 'squared'"
    ):
        call(ENTROPY)
    call({"loss": "squared"})


def test_streams_that_train_under_it_need_two_channels():
    with pytest.raises(ValueError, match="one output, whose cross-entropy is 0"):
        mf.simulate(LOOP, draws=2, seed=0, measure=mf.TrainedResidualEnergies(steps=1))
    mf.simulate(LOOP.replace(width=2), draws=2, seed=0, measure=mf.TrainedResidualEnergies(steps=1))

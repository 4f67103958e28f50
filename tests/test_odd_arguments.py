"""Each argument of each function of the library, replaced by odd values: served, or refused in words of the library."""

import dataclasses
import re

import numpy as np
import pytest

import meanfield as mf
from tests.test_wrong_types import refused

NET, LOOP = mf.MLP(depth=2, width=3, outputs=2, activation="tanh"), mf.TiedLoop(depth=2, width=3)
GRID = mf.ConvNet(depth=1, channels=3, grid=(3,), outputs=2, activation="tanh")
WEIGHTS = [np.ones(shape) for shape in NET.weight_shapes]
DATA = (np.arange(12.0).reshape(4, 3), np.array([0, 1, 0, 1]))
DRAWN = {"draws": 2, "seed": 0}
PAIRS = [((1, 1), (1, 1))]
KEPT = {"workers": 1, "resume_in": None}
TRAINED = {
    "steps": 1,
    "epochs": None,
    "batch_size": 2,
    "optimizer": "sgd",
    "loss": "cross_entropy",
    "precision": "float64",
    "backend": "numpy",
}
TRAINED |= {"weight_decay": 0.0, "epsilon": 1e-8, "schedule": "constant", "role_factors": None, **KEPT}
SCALES = {"loss": "cross_entropy", "optimizer": "adamw", "epsilon": 0.0, "batch_size": None, **DRAWN}
STEP = {"of": "last", "data": DATA}
# Arguments that each function takes.
SERVED = {
    "MLP": {
        "depth": 2,
        "width": 3,
        "activation": "relu",
        "outputs": 2,
        "head": "he",
        "inputs": 1,
        "input_width": 3,
        "weight_variance": 2.0,
    },
    "ConvNet": {
        "depth": 2,
        "channels": 3,
        "grid": (4,),
        "kernel": (3,),
        "padding": "circular",
        "readout": "pooled",
        "input_channels": 3,
    },
    "ResidualMLP": {
        "depth": 2,
        "width": 3,
        "block_depth": 1,
        "scaling": "init",
        "stem": 1,
        "tail": 1,
        "weight_variance": None,
    },
    "ResidualConvNet": {
        "depth": 2,
        "channels": 3,
        "block_depth": 1,
        "scaling": "init",
        "stem": 1,
        "tail": 1,
        "grid": (4,),
    },
    "DenseNet": {
        "depth": 2,
        "growth": 3,
        "width": 4,
        "stem": 1,
        "activation": "relu",
        "grid": (4,),
        "kernel": (3,),
        "padding": "circular",
        "outputs": 2,
        "head": "he",
        "readout": "flatten",
        "inputs": 1,
        "input_width": 3,
    },
    "StagedConvNet": {
        "depth": 2,
        "channels": 3,
        "stages": 2,
        "grid": (6,),
        "kernel": (3,),
        "stride": 2,
        "downsampling": "stride",
        "padding": "zero",
    },
    "StagedResidualConvNet": {
        "depth": 2,
        "channels": 3,
        "stages": 2,
        "block_depth": 1,
        "scaling": "init",
        "stem": 1,
        "downsampling": "pooling",
        "grid": (6,),
        "kernel": (3,),
    },
    "TiedLoop": {"depth": 2, "width": 3, "alpha": 1.0, "weight_variance": 2.0, "activation": "relu", "tied": True},
    "Transformer": {
        "depth": 1,
        "width": 4,
        "heads": 1,
        "tokens": 2,
        "ffn": 4,
        "norm": "pre",
        "normalisation": "layer",
        "attention_scale": "inverse",
        "causal": False,
        "activation": "relu",
        "rotary": False,
        "scaling": "none",
        "tied": False,
        "vocabulary": None,
        "readout": "pooled",
    },
    "BlockNet": {
        "width": 3,
        "depth": 2,
        "block_depth": 2,
        "block_width": None,
        "samples": 2,
        "outputs": 2,
        "activation": "linear",
        "biases": False,
        "multipliers": (1.0, 1.0, 1.0),
        "variances": (1.0, 1.0, 1.0),
        "bias_variance": 0.0,
    },
    "Chain": {
        "units": NET.units,
        "readout_unit": NET.readout_unit,
        "input_channels": 3,
        "grid": (),
        "inputs": 1,
        "input_law": "normalised",
        "input_energy": 0.3,
    },
    "with_batch_normalisation": {"net": NET, "epsilon": 1e-5},
    "with_dropout": {"net": NET, "rate": 0.1},
    "Batch": {"input_correlation": 0.0, "labels": "independent", "label_mean": 0.0},
    "patch_tokens": {"images": np.arange(16.0).reshape(1, 1, 4, 4), "patch": 2, "width": 3, "seed": 0},
    "boundary_fraction": {"grid": (4,), "kernel": (3,)},
    "pre_activations": {
        "net": NET,
        "weights": WEIGHTS,
        "inputs": np.ones((1, 3)),
        "backend": "numpy",
        "precision": "float64",
    },
    "one_step": {
        "net": NET,
        "weights": WEIGHTS,
        "inputs": np.ones((1, 3)),
        "output_error": np.ones((1, 2)),
        "backend": "numpy",
        "precision": "float64",
    },
    "simulate": {
        "net": NET,
        "measure": None,
        "weights": "dense",
        "inputs": None,
        "backend": "numpy",
        "precision": "float64",
        "batch": mf.Batch(),
        "loss": "squared",
        "by_site": False,
        "controls": False,
        **DRAWN,
        **KEPT,
    },
    "memory": {"net": NET, "draws": 1, "measure": None, "weights": "dense"},
    "Run": {"net": NET, "measure": mf.Energies(), **DRAWN},
    "simulate_all": {"runs": [mf.Run(NET, mf.Energies(), 2, 0)], "workers": 1, "store": None},
    "Workers": {"processes": 1, "scheduler": None},
    "train": {"net": NET, "data": DATA, "rates": [0.1], "seeds": 1, "weights": None, **TRAINED},
    "predict": {
        "net": NET,
        "level": "mean_field",
        "inputs": None,
        "batch": None,
        "loss": "squared",
        "pairs": None,
        "spread": False,
        "correlations": False,
        "by_site": False,
        "optimizer": "sgd",
    },
    "compare": {"measured": mf.simulate(NET, **DRAWN), "predicted": mf.predict(NET, level="mean_field")},
    "fit_power_law": {"x": [1, 2, 3.0], "y": [1, 2, 3.0], "stderr": [1, 1, 1.0]},
    "local_slopes": {"x": [1, 2, 3.0], "y": [1, 2, 3.0], "stderr": [1, 1, 1.0]},
    "depth_law": {
        "make": lambda depth: NET.replace(depth=depth),
        "sizes": [1, 2, 3],
        "quantity": "label_learning_rate_scale",
        "claim": -1.0,
        "rival": lambda depth: 1.0 + depth,
        "optimizer": "sgd",
        "epsilon": 0.0,
        "inputs": None,
        "data": None,
        "batch_size": None,
        "loss": "squared",
        "theory": True,
        **DRAWN,
        **KEPT,
    },
    "transfer_learning_rate": {
        "rate": 0.1,
        "architecture_from": NET,
        "architecture_to": NET,
        "rule": "auto",
        **STEP,
        **SCALES,
    },
    "explain_transfer": {
        "rate": 0.1,
        "architecture_from": NET,
        "architecture_to": NET,
        "rule": "auto",
        **STEP,
        **SCALES,
    },
    "step_scales": {"net": NET, "data": DATA, "precision": "float64", "backend": "numpy", **SCALES, **KEPT},
    "starting_rate": {"net": NET, "data": DATA, **SCALES, **KEPT},
    "stable_rate": {
        "net": NET,
        "data": DATA,
        "loss": "cross_entropy",
        "optimizer": "adamw",
        "batch_size": 2,
        "epsilon": 1e-8,
        "level": None,
        "weights": None,
        "backend": "numpy",
        **DRAWN,
        **KEPT,
    },
    "tuned_rate": {
        "net": NET,
        "data": DATA,
        "seeds": 2,
        "guess": None,
        "spacing": 0.5,
        "grid": [0.01, 0.1, 1.0],
        "most_rates": 8,
        **TRAINED,
    },
    "range_test": {
        "net": NET,
        "data": DATA,
        "low": 1e-3,
        "high": 10.0,
        **{name: value for name, value in TRAINED.items() if name not in ("epochs", "schedule", "role_factors")},
        "seeds": 2,
        "steps": 17,
    },
    "WarmupCosine": {"warmup": 0.1, "final": 0.0},
    "transfer_hyperparameters": {
        "optimizer": "muon",
        "width": 4,
        "depth": 2,
        "base_width": 2,
        "base_depth": 2,
        "base_values": {"learning_rate": 0.1},
        "block_depth": 2,
        "parameterization": "spectral",
        "roles": None,
        "input_dimension": None,
    },
    "hyperparameter_table": {"optimizer": "muon", "block_depth": 2},
}
# Measures, with a net that they serve and what they need.
MEASURES = {
    "Energies": (NET, {}),
    "PairOverlaps": (NET, {"pairs": PAIRS}),
    "ActivationStatistics": (NET, {}),
    "TangentPropagation": (GRID.replace(depth=2), {}),
    "TokenStatistics": (GRID, {}),
    "ResidualEnergies": (LOOP, {}),
    "StreamUpdates": (LOOP, {}),
    "TrainedResidualEnergies": (LOOP, {"steps": 1}),
}
ODD = (None, "word", -1, 1.5, float("nan"), {"a": 1}, [1], [], ["a"], object(), np.zeros(3), b"x", mf.MLP)
# Words of Python and NumPy on what they cannot do; a refusal says what was given and what is allowed.
OF_PYTHON = re.compile(
    "object is not|unsupported operand|must be real number|argument of type|not supported between|cannot unpack"
    "|object of type|expected str|could not convert|unhashable|indices must|ufunc|not iterable|truth value"
    "|subscriptable"
)


def _measured(name, **options):
    net, needed = MEASURES[name]
    return mf.simulate(net, measure=getattr(mf, name)(**needed | options), **DRAWN)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*SERVED, *MEASURES])
def test_each_argument_that_is_odd_is_refused_in_words(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a path may be odd, too
    if name in MEASURES:
        served = {each.name: each.default for each in dataclasses.fields(getattr(mf, name))} | MEASURES[name][1]
        _measured(name)
    else:
        served = SERVED[name]
        getattr(mf, name)(**served)
    for argument in served:
        for odd in ODD:
            if name in MEASURES:
                refusal = refused(_measured, name, **{argument: odd})
            else:
                refusal = refused(getattr(mf, name), **served | {argument: odd})
            assert refusal is None or not OF_PYTHON.search(str(refusal)), (argument, odd, refusal)


def test_every_function_of_the_library_is_swept():
    """But for those that take words alone; what takes no net or numbers has tests of its own."""
    left = {"derive", "QUANTITIES", "Transfer", "PremiseWarning", "judge", "Deviation", "Bands"}
    assert set(mf.__all__) - left - {"__version__"} == {*SERVED, *MEASURES}


@pytest.mark.parametrize("odd", [None, 5, {"a": 1}, [1], np.zeros(3)])
def test_moments_are_words(odd):
    with pytest.raises(TypeError, match="a moment is words"):
        mf.derive(odd)

"""Every default of a public name, in a table: a default that changes without a word changes what users compute."""

import inspect

import pytest

import meanfield as mf
from meanfield import optimizers

# As the contracts of the library have them: names, and the defaults of their parameters in order.
TABLE = """
ActivationStatistics: weights='auto'
Bands: freedom=inf
Batch: input_correlation=0.0; labels='independent'; label_mean=0.0
BlockNet: block_depth=2; block_width=None; input_width=16; samples=2; outputs=1; activation='linear'; biases=False;
    multipliers=(1.0, 1.0, 1.0); variances=(1.0, 1.0, 1.0); bias_variance=0.0
Chain: readout_unit=None; input_channels=1; grid=(); inputs=1; input_law='white'; input_energy=None
ConvNet: grid=(32,); kernel=(3,); padding='circular'; activation='relu'; outputs=10; head='he'; readout='pooled';
    input_channels=None; inputs=1; weight_variance=None
DenseNet: stem=0; activation='relu'; grid=(); kernel=(3,); padding='circular'; outputs=10; head='he';
    readout='pooled'; inputs=1; input_width=None
Deviation: allowance=0.0
Energies: inputs=None; weights='auto'; batch=Batch(input_correlation=0.0, labels='independent', label_mean=0.0);
    loss='squared'; by_site=False; controls=False; backend='numpy'; precision='float64';
    optimizer='sgd'; epsilon=0.0; scales=False
MLP: activation='relu'; outputs=10; head='he'; inputs=1; input_width=None; weight_variance=None
PairOverlaps: weights='auto'; fixed_layers=0
ResidualConvNet: grid=(32,); kernel=(3,); padding='circular'; activation='relu'; outputs=10; head='he';
    readout='pooled'; input_channels=None; inputs=1; weight_variance=None; block_depth=1; scaling='init'; stem=0;
    tail=0
ResidualEnergies: inputs=None; weights='auto'; correlations=False
ResidualMLP: activation='relu'; outputs=10; head='he'; inputs=1; input_width=None; weight_variance=None;
    block_depth=1; scaling='init'; stem=0; tail=0
StagedConvNet: stages=3; grid=(32,); kernel=(3,); stride=2; downsampling='stride'; padding='circular';
    activation='relu'; outputs=10; head='he'; readout='pooled'; input_channels=None; inputs=1
StagedResidualConvNet: stages=3; grid=(32,); kernel=(3,); stride=2; downsampling='stride'; padding='circular';
    activation='relu'; outputs=10; head='he'; readout='pooled'; input_channels=None; inputs=1; block_depth=1;
    scaling='init'; stem=0
StreamUpdates: update='isotropic'; inputs=None; weights='auto'
TangentPropagation: starts=(0,); inputs=None; weights='auto'
TiedLoop: alpha=1.0; weight_variance=2.0; activation='relu'; tied=True
TokenStatistics: inputs=None; weights='auto'
TrainedResidualEnergies: optimizer=AdamW(beta1=0.9, beta2=0.95); rate=0.001; epsilon=1e-08; steps=10;
    correlations=False; precision='float64'
Transformer: heads=1; ffn=4; norm='pre'; normalisation='layer'; attention_scale='inverse_sqrt'; causal=False;
    activation='relu'; rotary=False; scaling='none'; tied=False; vocabulary=None; outputs=10; head='he';
    readout='pooled'; inputs=1
WarmupCosine: warmup=0.1; final=0.0
Workers: processes=None; scheduler=None
depth_law: quantity='learning_rate_scale'; claim=None; rival=None; optimizer='sgd'; epsilon=0.0; inputs=None;
    data=None; batch_size=None; loss=None; theory=None; workers=1; resume_in=None
derive: activation='relu'; direction='up'; block_depth=0
explain_transfer: rule='auto'; optimizer='sgd'; of=None; data=None
fit_power_law: stderr=None
judge: largest_share=0.0; of_rival=None
local_slopes: stderr=None
memory: draws=1; measure=None
one_step: output_error=None; targets=None; loss='squared'; optimizer='sgd'; epsilon=0.0; weight_decay=0.0;
    outputs=False; backend='numpy'; precision='float64'
patch_tokens: seed=0
pre_activations: backend='numpy'; precision='float64'
predict: inputs=None; batch=None; loss='squared'; pairs=None; spread=False; correlations=False; by_site=False;
    accuracy=None; optimizer='sgd'; scales=False
simulate: measure=None; workers=1; resume_in=None
simulate_all: workers=1; store=None
starting_rate: loss='cross_entropy'; optimizer='sgd'; epsilon=0.0; batch_size=None; draws=32; seed=0; workers=1;
    resume_in=None
step_scales: loss='cross_entropy'; optimizer='sgd'; epsilon=0.0; batch_size=None; draws=32; seed=0;
    precision='float64'; backend='numpy'; workers=1; resume_in=None
range_test: seeds=4; steps=100; low=1e-07; high=10.0; batch_size=None; optimizer='sgd'; loss='cross_entropy';
    weight_decay=0.0; epsilon=1e-08; precision='float64'; backend='numpy'; workers=1; resume_in=None
stable_rate: loss='cross_entropy'; optimizer='sgd'; batch_size=None; epsilon=0.0; draws=16; seed=0; level=None;
    weights=None; backend='numpy'; workers=1; resume_in=None
train: seeds=1; weights=None; workers=1; resume_in=None; steps=None; epochs=None; batch_size=None; optimizer='sgd';
    loss='cross_entropy'; weight_decay=0.0; epsilon=1e-08; schedule='constant'; precision='float64'; backend='numpy';
    role_factors=None
transfer_hyperparameters: parameterization='spectral'; roles=None; input_dimension=None; output_dimension=None;
    muon_variant='plain'
transfer_learning_rate: rule='auto'; optimizer='sgd'; of=None; data=None
tuned_rate: seeds=4; guess=None; spacing=0.125; grid=None; most_rates=64; workers=1; resume_in=None; steps=None;
    epochs=None; batch_size=None; optimizer='sgd'; loss='cross_entropy'; weight_decay=0.0; epsilon=1e-08;
    schedule='constant'; precision='float64'; backend='numpy'; role_factors=None
with_batch_normalisation: epsilon=1e-05
AdamW: beta1=0.9; beta2=0.95
AdamWInNoise: beta1=0.9
Gradient: curvature=None
Lion: beta1=0.9; beta2=0.99
Muon: momentum=0.95; newton_schulz_steps=5; shape_factor=False
MuonKimi: momentum=0.95; newton_schulz_steps=5; shape_factor=False
Place: learning_rate=1.0; epsilon=0.0
SGD: momentum=0.9
SOAP: beta1=0.95; beta2=0.95; beta3=0.95
SSO: momentum=0.9; tolerance=1e-09
Shampoo: beta1=0.95; beta2=0.95
Sophia: beta1=0.965; beta2=0.99; rho=0.05; sampled=False
"""


def _stated():
    """Name -> its defaults, "parameter=value" each."""
    joined = TABLE.strip().replace("\n    ", " ").splitlines()
    return {name: defaults.split("; ") for name, defaults in (line.split(": ", 1) for line in joined)}


def _found(module):
    for name in (name for name in dir(module) if not name.startswith("_")):
        try:
            parameters = inspect.signature(getattr(module, name)).parameters
        except (TypeError, ValueError):  # tables, and what takes nothing
            continue
        defaults = [f"{key}={given.default!r}" for key, given in parameters.items() if given.default is not given.empty]
        if defaults:
            yield name, defaults


STATED, FOUND = _stated(), dict(_found(mf)) | dict(_found(optimizers))


def test_every_default_is_named():
    """Whoever adds one writes it down, and whoever takes one away strikes it out."""
    assert set(STATED) == set(FOUND)


@pytest.mark.parametrize("name", STATED)
def test_defaults_are_as_stated(name):
    assert FOUND[name] == STATED[name]

"""Random streams have the keys that they should, and every key counts: one that is moved changes what is drawn by it.

Streams begin as NumPy's `SeedSequence` of a seed, a purpose and a draw, a step or an epoch. Its calls are listed here,
purpose by purpose, for everything that draws, and one of them after the other is given another seed.
"""

import ast
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest

import meanfield as mf
from meanfield.common import seeds
from meanfield.common.seeds import derived_seed, stream, stream_key, streams_of_draws
from meanfield.nets.block_net import BlockNet
from meanfield.nets.inputs import Batch
from meanfield.optimizers import OPTIMIZERS, AdamW, Sophia
from meanfield.simulation.arrays import GroupNormals
from meanfield.simulation.measures.blocks import TrainedFeatures
from meanfield.simulation.measures.energies import Energies
from meanfield.simulation.measures.overlap_energy import PROBE, overlap_method
from meanfield.simulation.measures.pair_overlaps import PairOverlaps
from meanfield.simulation.measures.propagation import TangentPropagation
from meanfield.simulation.measures.step_scales import StepScales
from meanfield.simulation.measures.streams import ResidualEnergies, StreamUpdates
from meanfield.simulation.one_step import drawn_population, random_batches
from meanfield.simulation.training.sharpness import Sharpness
from meanfield.simulation.training.trained import TrainedResidualEnergies
from meanfield.theory.mean_field.plain_steps import DRAWS as ERROR_DRAWS
from meanfield.theory.tangent_kernels import OUTPUT_DRAWS, mean_field_curvatures
from sims.common.images import photo_crops, two_classes
from sims.common.training_data import training_data
from sims.identities.label_average import label_average
from sims.reported_losses.__main__ import loss_tables

SEED, DRAWS = 3, range(5, 7)
MLP = mf.MLP(depth=2, width=4, inputs=2, outputs=2)
WIDE = mf.MLP(depth=1, width=64, inputs=2, outputs=2)
POOLED = mf.ConvNet(depth=1, channels=9, grid=(16,), kernel=(1,), outputs=2, readout="pooled")
CONV = mf.ConvNet(depth=2, channels=3, grid=(2,), kernel=(1,), outputs=2)
LOOP = mf.TiedLoop(depth=2, width=4)
TOKENS = mf.Transformer(depth=1, width=4, heads=1, tokens=2, ffn=1, inputs=3, outputs=9, head="fan_in")
BLOCKS = BlockNet(width=4, depth=1, samples=6, outputs=9, biases=True, variances=(0.3, 0.2, 0.001))
RNG = np.random.default_rng(0)
DATA = RNG.normal(size=(6, 4)), RNG.integers(0, 2, 6)
OF_BLOCKS = RNG.normal(size=(6, BLOCKS.first_channels)), RNG.integers(0, 9, 6)
RATES = {role: {"learning_rate": 0.1} for role in ("input", "hidden", "output", "input_bias", "hidden_bias")}


def drawn(net, measure, seed=SEED):
    return lambda: measure.draw(net, seed, DRAWS)


def trained(net, **how):
    """Two epochs of two steps, from two seeds."""
    given = {"rates": [0.1], "epochs": 2, "batch_size": 3, "seeds": [SEED, 8]}
    return lambda: dict(mf.train(net, DATA, **given | how).data_vars)


def blocks(**how):
    """Two steps of a Sophia none of whose steps is cut to its sign, so that all curvatures tell."""
    steps = {"optimizer": "sophia", "hyperparameters": RATES, "momentum": True, "steps": 2, "sampled_curvature": True}

    def draw():
        with patch.dict(OPTIMIZERS, {"sophia": Sophia(rho=1e4)}):
            return drawn(BLOCKS, TrainedFeatures(**steps | how))()

    return draw


def keys(*purposes, numbers=DRAWS, seed=SEED):
    """(seed, purpose, number) of these."""
    return {(seed, purpose, number) for purpose in purposes for number in numbers}


def of_seeds(*purposes, numbers):
    return keys(*purposes, numbers=numbers) | keys(*purposes, numbers=numbers, seed=8)


LABEL_SEEDS = [(SEED, f"labels of draw {draw}") for draw in DRAWS]
OF_DRAWN_LABELS = {*LABEL_SEEDS} | {(derived_seed(*made), "labels", step) for made in LABEL_SEEDS for step in range(2)}
START = keys("weights", numbers=[0]) | keys("weights", numbers=[0], seed=8)

# What is drawn -> how, and all keys that it is drawn by.
DRAWN = {
    "energies": (drawn(MLP, Energies(weights="dense")), keys("inputs", "weights", "labels")),
    "energies of lazy weights": (drawn(MLP, Energies(weights="lazy")), keys("inputs", "weights", "labels")),
    "cross-entropy": (
        drawn(mf.MLP(depth=2, width=4, inputs=9, outputs=5), Energies(weights="dense", loss="cross_entropy")),
        keys("inputs", "weights", "labels"),
    ),
    "a batch whose samples depend on each other": (
        drawn(MLP, Energies(weights="dense", batch=Batch(input_correlation=0.5, labels="teacher", label_mean=1.0))),
        keys("inputs", "shared input", "weights", "teacher", "label means"),
    ),
    "overlap energies by a probe": (
        drawn(POOLED, Energies(weights="dense")),
        keys("inputs", "weights", "labels", "probe"),
    ),
    "the Gram process": (drawn(mf.MLP(depth=2, width=4), Energies(weights="gram")), keys("Gram process")),
    "residual energies": (drawn(LOOP, ResidualEnergies(weights="dense")), keys("inputs", "weights")),
    "updates of random signs": (drawn(LOOP, StreamUpdates(weights="dense")), keys("inputs", "weights", "update signs")),
    "updates of the gradient": (
        drawn(LOOP, StreamUpdates(weights="dense", update="gradient")),
        keys("inputs", "weights", "labels", "update signs"),
    ),
    "overlaps above fixed layers": (
        drawn(MLP, PairOverlaps(pairs=(((1, 1), (1, 2)),), weights="dense", fixed_layers=1)),
        keys("weights") | keys("inputs", "weights below", numbers=[0]),
    ),
    "propagation of tangents": (
        drawn(CONV, TangentPropagation(starts=(1,), weights="dense")),
        keys("inputs", "weights", "labels", "directions at 1"),
    ),
    "energies in training": (
        drawn(TOKENS, TrainedResidualEnergies(optimizer=AdamW(), rate=0.1, steps=1)),
        keys("inputs", "weights", "biases", "labels"),
    ),
    "curvatures": (
        drawn(MLP, Sharpness(inputs=DATA[0], loss="squared")),
        keys("weights", "biases", "curvature"),
    ),
    "first steps on data": (
        drawn(MLP, StepScales(inputs=DATA[0], targets=DATA[1], optimizer="adamw", batch_size=4)),
        keys("weights", "biases", "batches"),
    ),
    "first steps of several samples in theory": (
        lambda: dict(mf.predict(WIDE, level="mean_field", optimizer="adamw").data_vars),
        keys("errors at the outputs", numbers=range(ERROR_DRAWS), seed=0),
    ),
    "training": (trained(MLP), START | of_seeds("biases", numbers=[0]) | of_seeds("batches", numbers=range(2))),
    "training with dropout": (
        trained(mf.with_dropout(mf.MLP(depth=2, width=4, outputs=2), 0.5), epochs=1),
        START
        | of_seeds("biases", numbers=[0])
        | of_seeds("batches", numbers=[0])
        | of_seeds("dropout", numbers=range(2)),
    ),
    "training at drawn labels": (
        trained(
            mf.MLP(depth=2, width=4, outputs=9, activation="linear"), optimizer=Sophia(rho=1e4, sampled=True)
        ),  # no step of which is cut to its sign
        START
        | of_seeds("biases", numbers=[0])
        | of_seeds("batches", numbers=range(2))
        | of_seeds("labels", numbers=range(4)),
    ),
    "nets of blocks at drawn labels": (blocks(), keys("weights", "biases", "batch") | OF_DRAWN_LABELS),
    "nets of blocks on given data": (
        blocks(inputs=OF_BLOCKS[0], targets=OF_BLOCKS[1]),
        keys("weights", "biases", "batch") | OF_DRAWN_LABELS,
    ),
    "a population": (
        lambda: drawn_population(mf.MLP(depth=1, width=3), 4, SEED).errors,
        keys("population", numbers=[4]),
    ),
    "batches of a population": (lambda: random_batches(9, 4, 20, SEED), keys("batches", numbers=[4])),
    "patches": (
        lambda: mf.patch_tokens(RNG_IMAGES, patch=2, width=3, seed=SEED),
        keys("patch embedding", numbers=[0]),
    ),
    "curvature of given weights": (
        lambda: dict(mf.stable_rate(MLP, DATA, loss="cross_entropy", weights=GIVEN, seed=SEED).data_vars),
        keys("curvature", numbers=[0]),
    ),
    "outputs of the mean field": (
        lambda: mean_field_curvatures(MLP, DATA[0], "cross_entropy"),
        keys("mean-field outputs", numbers=range(OUTPUT_DRAWS), seed=0),
    ),
    "labels by enumeration": (
        lambda: label_average(mf.MLP(depth=1, width=12, outputs=2), SEED)["split"].values,
        keys("label average", numbers=[0]),
    ),
    "crops of a photograph": (lambda: photo_crops((4, 4), 1, 2, SEED), keys("photo crops", numbers=[0])),
    "samples of digits": (
        lambda: training_data("digits", mf.MLP(depth=1, width=64, outputs=10), samples=5, seed=SEED)[0],
        keys("training samples", numbers=[0]),
    ),
    "text": (
        lambda: training_data("text", mf.Transformer(depth=1, width=4, tokens=3, outputs=96), samples=5, seed=SEED)[0],
        keys("text windows", "character embedding", numbers=[0]),
    ),
    "images of two classes": (
        lambda: two_classes("digits", None, None, (3, 8), 4, SEED)[0],
        keys("labelled images", numbers=(3, 8)),
    ),
}
RNG_IMAGES, GIVEN = RNG.normal(size=(2, 1, 4, 4)), [RNG.normal(size=shape) for shape in MLP.weight_shapes]
# What is asked for before it is known whether it is needed: biases of nets without them, or that start at 0, labels of
# a pass whose errors are not read, signs of updates that have none.
UNUSED = {
    "energies in training": {"biases"},
    "curvatures": {"biases"},
    "first steps on data": {"biases"},
    "training": {"biases"},
    "training with dropout": {"biases"},
    "training at drawn labels": {"biases"},
    "nets of blocks at drawn labels": {"biases"},
    "nets of blocks on given data": {"biases"},
    "updates of the gradient": {"update signs"},
    "propagation of tangents": {"labels"},
}
# Of many alike, so many are moved.
MOST_MOVED = 6


@pytest.fixture
def sequences(monkeypatch):
    """The keys of all streams that begin, and the one, if any, that is given another seed."""
    known, seen = {}, SimpleNamespace(keys=[], moved=None)
    crc32, sequence = seeds.crc32, seeds.SeedSequence

    def numbered(words):
        known[crc32(words)] = words.decode()
        return crc32(words)

    def begun(seed, spawn_key):
        key = (seed, known[spawn_key[0]], *map(int, spawn_key[1:]))
        seen.keys.append(key)
        return sequence(seed + 100 * (key == seen.moved), spawn_key=spawn_key)

    monkeypatch.setattr(seeds, "crc32", numbered)
    monkeypatch.setattr(seeds, "SeedSequence", begun)
    return seen


def numbers_of(result):
    """All numbers of a result, by name and row."""
    arrays = result if isinstance(result, dict) else {"": result}
    return {name: np.asarray(values) for name, values in arrays.items()}


@pytest.mark.parametrize("name", DRAWN)
def test_every_key_is_as_listed_and_changes_numbers(name, sequences):
    draw, expected = DRAWN[name]
    first = numbers_of(draw())
    assert set(sequences.keys) == expected
    used = sorted(key for key in expected if key[1] not in UNUSED.get(name, ()))
    for key in used[:: max(1, len(used) // MOST_MOVED)] if len(used) > 4 * MOST_MOVED else used:
        sequences.moved = key
        moved = numbers_of(draw())
        changed = {of for of, values in first.items() if not np.array_equal(values, moved[of], equal_nan=True)}
        assert changed, key
        if key[-1] in DRAWS and len(key) == 3:  # a stream of one draw is none of another's
            other = 1 - DRAWS.index(key[-1])
            assert all(np.array_equal(values[other], moved[of][other], equal_nan=True) for of, values in first.items())


def test_a_probe_is_drawn():
    assert overlap_method(POOLED) is PROBE


def test_scatter_of_printed_losses_differs_from_table_to_table(sequences):
    loss_tables.__wrapped__() if hasattr(loss_tables, "__wrapped__") else loss_tables()
    numbers = [number for seed, purpose, number in sequences.keys if (seed, purpose) == (0, SCATTER)]
    assert len(set(numbers)) == len(numbers) > 1


SCATTER = "scatter of printed losses"
DEVICE = "of draws on a device"


@pytest.mark.parametrize("place", range(3), ids=["seed", "purpose", "number"])
def test_every_part_of_a_key_counts(place):
    """For each of the four ways to make numbers of a key; many draws at once take another way than few."""
    keys = [(1, "weights", 2), (1, "weights", 2)]
    keys[1] = (*keys[1][:place], (7, "labels", 9)[place], *keys[1][place + 1 :])
    ways = (
        lambda seed, purpose, number: stream(seed, purpose, number).random(),
        lambda seed, purpose, number: streams_of_draws(seed, purpose, [number]).words.tolist(),
        lambda seed, purpose, number: streams_of_draws(seed, purpose, range(number, number + 4)).words[0].tolist(),
        stream_key,
        lambda seed, purpose, number: derived_seed(seed, f"{purpose} {number}"),
    )
    for way in ways:
        assert way(*keys[0]) == way(1, "weights", 2) != way(*keys[1])


def test_groups_on_a_device_have_keys_of_their_own(monkeypatch):
    """Of the seed, the purpose, the first draw and how many there are; by what CuPy would be given."""
    random = SimpleNamespace(RandomState=lambda key, method: made.append(key))
    curand = SimpleNamespace(CURAND_RNG_PSEUDO_PHILOX4_32_10=0)
    made, xp = [], SimpleNamespace(random=random, cuda=SimpleNamespace(curand=curand))
    given = [(1, "weights", range(4)), (2, "weights", range(4)), (1, "other", range(4)), (1, "weights", range(4, 8))]
    for seed, purpose, draws in [*given, (1, "weights", range(3))]:
        GroupNormals(xp, seed, purpose, draws, "float32")
    assert len(set(made)) == 5


ROOT = Path(__file__).parents[2]
# Names by which streams are asked for.
ASKED = {"stream", "streams_of_draws", "streams_for", "streams", "stream_key", "derived_seed"}
# Seeds of single runs, nets and points, of which every label makes another: tests of the simulations have them.
LABELLED = {"", "looped rates "}


def test_every_purpose_is_listed():
    """A stream that is asked for anywhere stands in a list above, so that its keys are tested."""
    listed = {key[1] for _, expected in DRAWN.values() for key in expected} | {SCATTER, DEVICE}
    asked = set()
    for path in [*(ROOT / "meanfield").rglob("*.py"), *(ROOT / "sims").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ASKED:
                asked |= {
                    _words(argument) for argument in node.args if isinstance(argument, ast.Constant | ast.JoinedStr)
                }
    asked -= LABELLED | {0}
    assert {words for words in asked if not any(_begins(words, purpose) for purpose in listed)} == set()
    assert len(asked) > 15


def _words(argument):
    """A purpose as it stands, or its beginning up to what it has in braces; "" where it begins with them."""
    if isinstance(argument, ast.Constant):
        return argument.value
    first = argument.values[0]
    return first.value if isinstance(first, ast.Constant) else ""


def _begins(words, purpose):
    return purpose == words or (words.endswith(" ") and purpose.startswith(words))

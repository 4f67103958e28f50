"""What the key of a piece holds: whatever its numbers depend on, and nothing else."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import meanfield as mf
import sims
from meanfield.common import identity
from meanfield.execution import chunks, digests
from meanfield.execution.chunks import Chunk
from meanfield.execution.digests import code_digest, digest, sources_digest
from meanfield.execution.run import Run
from meanfield.nets.block_net import BlockNet
from meanfield.simulation.measures.energies import Energies
from meanfield.simulation.measures.propagation import ActivationStatistics

CHUNK = Chunk(mf.MLP(depth=2, width=4), Energies(inputs=np.ones((1, 4)), weights="dense"), 0, 0, 8)
OTHERS = {
    "net": mf.MLP(depth=2, width=5),
    "measure": ActivationStatistics(),
    "seed": 1,
    "start": 4,
    "stop": 7,
}
OTHER_OPTIONS = {
    "inputs": 2 * np.ones((1, 4)),
    "weights": "lazy",
    "batch": mf.Batch(label_mean=1),
    "loss": "cross_entropy",
    "by_site": True,
    "controls": True,
    "backend": "cupy",
    "precision": "float32",
    "optimizer": "adamw",
    "epsilon": 1e-8,
    "scales": True,
}


@pytest.fixture(autouse=True)
def digests_made_anew():
    """Digests are kept for a process's life; here code changes under them."""
    yield
    code_digest.cache_clear()
    sources_digest.cache_clear()


class _Made:
    """A spec whose description holds an array that is made for it, and gone with it."""

    def __init__(self, value):
        self.value = value

    def describe(self):
        return {"value": np.array([self.value])}


def test_arrays_are_told_apart_by_what_they_hold_and_hashed_once(monkeypatch):
    alike, other = ([_Made(1.0), _Made(second)] for second in (1.0, 2.0))
    assert digest(specs=alike) != digest(specs=other)
    seen, real, shared = [], identity.fingerprint, np.ones(3)
    monkeypatch.setattr(identity, "fingerprint", lambda array: seen.append(array) or real(array))
    assert digest(first=shared, second=shared) == digest(first=shared, second=shared.copy())
    assert len(seen) == 3


@pytest.mark.parametrize("name", [field.name for field in fields(Chunk)])
def test_every_part_of_a_piece_is_in_its_key(name):
    assert replace(CHUNK, **{name: OTHERS[name]}).key != CHUNK.key


@pytest.mark.parametrize("name", [field.name for field in fields(Energies)])
def test_every_option_of_a_piece_is_in_its_key(name):
    assert replace(CHUNK, measure=replace(CHUNK.measure, **{name: OTHER_OPTIONS[name]})).key != CHUNK.key


def test_the_weights_that_auto_chooses_have_the_key_of_those_that_are_asked_for():
    net = mf.MLP(depth=2, width=4)
    chosen, asked = (Run(net, Energies(weights=kind), 8, 0).chunks() for kind in ("auto", "dense"))
    assert [chunk.key for chunk in chosen] == [chunk.key for chunk in asked]


SPECS = [
    (mf.MLP(depth=2, width=4), {"depth": 3, "width": 5, "activation": "linear", "outputs": 1, "head": "mup"}),
    (mf.MLP(depth=2, width=4), {"inputs": 2, "input_width": 3, "weight_variance": 1.0}),
    (mf.ConvNet(depth=2, channels=4), {"depth": 3, "channels": 5, "grid": (8,), "kernel": (1,), "padding": "zero"}),
    (mf.ConvNet(depth=2, channels=4), {"activation": "tanh", "outputs": 1, "head": "mup", "readout": "convolution"}),
    (mf.ConvNet(depth=2, channels=4), {"input_channels": 3, "inputs": 2, "weight_variance": 1.0}),
    (mf.ResidualMLP(depth=2, width=4), {"block_depth": 2, "scaling": "none", "stem": 1, "tail": 1}),
    (mf.TiedLoop(depth=2, width=4), {"depth": 3, "width": 5, "alpha": 0.5, "weight_variance": 1, "tied": False}),
    (mf.TiedLoop(depth=2, width=4), {"activation": "linear"}),
    (mf.Batch(), {"input_correlation": 0.5, "labels": "teacher", "label_mean": 1}),
    (BlockNet(width=4, depth=2), {"width": 5, "depth": 3, "block_depth": 1, "block_width": 3, "input_width": 3}),
    (BlockNet(width=4, depth=2), {"samples": 3, "activation": "relu", "biases": True, "bias_variance": 1.0}),
    (BlockNet(width=4, depth=2), {"multipliers": (1, 2, 1), "variances": (1, 2, 1), "outputs": 3}),
]
CHANGES = [(spec, name, value) for spec, changes in SPECS for name, value in changes.items()]


@pytest.mark.parametrize(("spec", "name", "value"), CHANGES)
def test_every_field_of_a_spec_is_in_its_digest(spec, name, value):
    assert digest(spec=replace(spec, **{name: value})) != digest(spec=spec)


def test_no_field_of_a_spec_is_left_out_above():
    changed = {(type(spec), name) for spec, name, _ in CHANGES}
    for family in {type(spec) for spec, _ in SPECS} - {mf.ResidualMLP}:
        assert {name for kind, name in changed if kind is family} == {field.name for field in fields(family)}


def test_families_differ_even_where_their_fields_do_not():
    assert digest(spec=mf.ResidualMLP(depth=2, width=4)) != digest(spec=mf.MLP(depth=2, width=4))


def test_arrays_differ_by_values_layout_and_type():
    array = np.arange(6.0).reshape(2, 3)
    assert digest(array=array) == digest(array=array.copy(order="F"))
    for other in (array + 1, array.reshape(3, 2), array.view(np.int64)):
        assert digest(array=other) != digest(array=array)


@pytest.mark.parametrize("package", ["numpy", "scipy", "numba"])
def test_the_key_holds_the_version_of_what_numbers_are_made_with(package, monkeypatch):
    before, known = CHUNK.key, digests.installed_version
    monkeypatch.setattr(digests, "installed_version", lambda name: "0.0" if name == package else known(name))
    code_digest.cache_clear()
    assert CHUNK.key != before


def test_the_key_holds_the_library_and_no_simulation(monkeypatch):
    """Of the sources of meanfield/: `sources_digest` is asked for that folder alone."""
    before, asked = CHUNK.key, []
    monkeypatch.setattr(digests, "sources_digest", lambda root: asked.append(root.name) or "edited")
    code_digest.cache_clear()
    assert CHUNK.key != before
    assert asked == ["meanfield"]


def test_every_source_counts_wherever_it_lies(tmp_path):
    def digested():
        sources_digest.cache_clear()
        return sources_digest(tmp_path)

    (tmp_path / "inner").mkdir()
    (tmp_path / "one.py").write_text("x = 1")
    (tmp_path / "inner" / "two.py").write_text("x = 2")
    digests = [digested()]
    (tmp_path / "inner" / "two.py").write_text("x = 3")
    digests.append(digested())
    (tmp_path / "inner" / "two.py").rename(tmp_path / "inner" / "three.py")
    digests.append(digested())
    (tmp_path / "inner" / "printed.json").write_text("[1.0]")
    digests.append(digested())
    (tmp_path / "inner" / "printed.json").write_text("[1.1]")
    digests.append(digested())
    assert len(set(digests)) == 5
    (tmp_path / "notes.txt").write_text("x = 1")
    (tmp_path / "recorded_verdicts").mkdir()
    (tmp_path / "recorded_verdicts" / "smoke.json").write_text("{}")
    assert digested() == digests[-1]


def test_digests_hold_every_file_that_numbers_are_read_from(monkeypatch):
    """The losses that a paper prints: another number in them is another digest. Else there are the looks of pages."""
    root = Path(sims.__file__).parent
    for folder, kinds in ((Path(mf.__file__).parent, {".py", ".pyi"}), (root, {".py", ".json", ".css", ".js"})):
        files = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        assert {path.suffix for path in files} == kinds
    real, before = Path.read_bytes, sources_digest.__wrapped__(root)
    edited = {"loss_tables.json": lambda text: text.replace(b"3", b"4", 1)}
    monkeypatch.setattr(Path, "read_bytes", lambda path: edited.get(path.name, bytes)(real(path)))
    assert sources_digest.__wrapped__(root) != before


def test_a_piece_of_other_code_is_computed_again(monkeypatch, tmp_path):
    net, computed, real = mf.MLP(depth=2, width=4), [], chunks.compute_chunk
    monkeypatch.setattr(chunks, "compute_chunk", lambda chunk: computed.append(chunk) or real(chunk))

    def computations():
        computed.clear()
        mf.simulate(net, draws=4, seed=0, resume_in=tmp_path)
        return len(computed)

    assert (computations(), computations()) == (1, 0)
    monkeypatch.setattr(chunks, "code_digest", lambda: "edited")
    assert computations() == 1

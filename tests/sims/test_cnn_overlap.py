"""The command as a user meets it: help, a smoke run on noise, photograph and files, reruns, and every refusal."""

import json
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from sims.cnn_overlap.__main__ import STUDY as cnn_overlap
from sims.cnn_overlap.__main__ import depth_ladder
from sims.cnn_overlap.claims import P0_HEAD
from tests.sims.claim_controls import SCALE, put
from tests.sims.commands import without_figure

SMALL = ["--depth", "1", "--channels", "8", "--grid", "6", "--kernel", "3", "--draws", "16", "--workers", "1"]
DEEP = ["--depth", "4"]


@pytest.fixture
def run(tmp_path, capsys):
    """Run the command with small sizes, its figure being left out; returns (exit status, stdout, stderr)."""

    def call(*arguments, out="run.nc"):
        status = without_figure(cnn_overlap, [*SMALL, *arguments], tmp_path / out)
        return (status, *capsys.readouterr())

    return call


def test_help_loads_nothing_that_draws_figures():
    code = (
        "import sys; from sims import simulation\n"
        "try: simulation('cnn_overlap').main(['--help'])\n"
        "except SystemExit: print({'matplotlib'} & set(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[-1] == "set()"
    for option in ("--depth", "--padding", "--input", "--preset", "--draws", "--seed", "--workers", "--out", "--force"):
        assert option in shown


def test_a_run_prints_tables_and_verdicts_and_writes_three_files(tmp_path, capsys):
    assert cnn_overlap.main([*SMALL, *DEEP, "--full", "--out", str(tmp_path / "run.nc")]) == 0
    printed = capsys.readouterr().out
    tables = ("label term B", "output term A", "update energy S", "overlap F", "slope")
    for words in (*tables, "What to run next", "Verdicts", "run.nc", "run.png"):
        assert words in printed
    with xr.open_dataset(tmp_path / "run.nc", engine="netcdf4") as dataset:
        assert list(dataset.depth.values) == [2, 4]
        assert dataset.label_term.dims == ("depth", "layer")
        assert np.isnan(dataset.label_term.sel(depth=2, layer=3))
        assert json.loads(dataset.attrs["architecture"])["depth"] == 4
        # Another library reads the same in the file, as it is NetCDF-4 and no dialect.
        with xr.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as read_otherwise:
            assert read_otherwise.identical(dataset)
        assert {"label_term_mean_field", "label_term_law", "label_term_limit"} <= set(dataset.data_vars)
        assert dataset.attrs["command"].startswith("python -m sims.cnn_overlap --")
        assert "--out" not in dataset.attrs["command"]
    assert (tmp_path / "run.png").read_bytes()[:4] == b"\x89PNG"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.html", "run.nc", "run.png"]


def test_a_rerun_reads_what_is_there(run, tmp_path):
    _, first, _ = run(*DEEP)
    stamp = (tmp_path / "run.nc").stat().st_mtime_ns
    status, second, _ = run(*DEEP)
    assert status == 0
    assert first in second
    assert "reading the finished run" in second
    assert (tmp_path / "run.nc").stat().st_mtime_ns == stamp


def test_nothing_is_overwritten_without_force(run, tmp_path):
    run()
    kept = (tmp_path / "run.nc").read_bytes()
    status, _, complaint = run("--seed", "1")
    assert status == 2
    assert "was not written by this run" in complaint
    assert (tmp_path / "run.nc").read_bytes() == kept
    assert run("--seed", "1", "--force")[0] == 0
    assert (tmp_path / "run.nc").read_bytes() != kept


def test_a_foreign_figure_is_not_overwritten(run, tmp_path):
    (tmp_path / "run.png").write_bytes(b"mine")
    status, _, complaint = run()
    assert status == 2
    assert "run.png" in complaint
    assert (tmp_path / "run.png").read_bytes() == b"mine"


@pytest.mark.parametrize("channels", ["1", "3"])
@pytest.mark.parametrize("grid", [["12"], ["6", "5"]])
def test_photograph(run, grid, channels):
    status, printed, _ = run("--input", "photo", "--grid", *grid, "--input-channels", channels, "--samples", "2")
    assert status == 0
    assert "input photo" in printed


@pytest.mark.parametrize(
    "shape", [(6, 5), (3, 6, 5), (2, 3, 6, 5), (6, 5, 3), (2, 6, 5, 3)], ids=lambda s: "x".join(map(str, s))
)
def test_layouts_of_files(run, tmp_path, shape):
    np.save(tmp_path / "images.npy", np.random.default_rng(0).normal(size=shape))
    status, *_ = run("--grid", "6", "5", "--input", str(tmp_path / "images.npy"))
    assert status == 0


def test_a_stack_of_grey_images_is_read_as_samples_when_told_so(run, tmp_path):
    np.save(tmp_path / "stack.npy", np.random.default_rng(0).normal(size=(4, 6, 5)))
    arguments = ["--grid", "6", "5", "--input", str(tmp_path / "stack.npy")]
    for reading in ("--samples 4", "--input-channels 1", "--samples 4 --input-channels 1"):
        _, printed, _ = run(*arguments, *reading.split(), out=f"{reading}.nc")
        assert "input_channels 1, inputs 4" in printed
    _, printed, _ = run(*arguments, out="channels.nc")
    assert "input_channels 4, inputs 1" in printed
    status, _, complaint = run(*arguments, "--samples", "3", out="no.nc")
    assert status == 2
    assert "--samples is 3, but" in complaint


def test_named_arrays_of_archives_and_datasets(run, tmp_path):
    values = np.random.default_rng(0).normal(size=(2, 3, 6))
    np.savez(tmp_path / "images.npz", train=values, labels=np.arange(2))
    xr.Dataset({"train": (("n", "c", "x"), values)}).to_netcdf(tmp_path / "images.nc", engine="netcdf4")
    assert run("--input", f"{tmp_path}/images.npz::train", out="a.nc")[0] == 0
    assert run("--input", f"{tmp_path}/images.nc", out="b.nc")[0] == 0
    status, _, complaint = run("--input", f"{tmp_path}/images.npz", out="c.nc")
    assert status == 2
    assert "holds the arrays train, labels; name one" in complaint


def test_pooled_readout_has_the_label_term_and_the_overlap_energy(run):
    status, printed, _ = run(*DEEP, "--readout", "pooled", "--full")
    assert status == 0
    for words in ("label term B, by layer", "overlap F, by layer", "extrapolated in 1/C"):
        assert words in printed


@pytest.mark.parametrize(
    "arguments", [["--depth", "2"], [*DEEP, "--padding", "zero", "--kernel", "2"], [*DEEP, "--activation", "gelu"]]
)
def test_shallow_and_padded_nets(run, arguments):
    """A single layer is what images are read for above."""
    assert run(*arguments)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--depth", "0"], "depth is 0"),
        (["--samples", "0"], "--samples is 0"),
        (["--input", "photo", "--input-channels", "0"], "--input-channels is 0"),
        (["--input", "photo", "--samples", "-1"], "--samples is -1"),
        (["--input", "photo", "--grid", "0"], "--grid is 0"),
        (["--input", "photo", "--grid", "4", "4", "4"], "give 1 or 2"),
        (["--channels", "0"], "channels is 0"),
        (["--kernel", "7"], "larger than the circular grid"),
        (["--padding", "mirror"], "choose one of 'circular', 'zero'"),
        (["--head", "lecun"], "choose one of 'he', 'fan_in', 'mup'"),
        (["--activation", "swish"], "choose one of 'relu', 'linear', 'gelu', 'tanh', 'silu'"),
        (["--draws", "1"], "one draw has no standard error"),
        (["--seed", "-3"], "--seed is -3"),
        (["--workers", "0"], "workers is 0"),
        (["--channels", "200000000"], "GiB"),
        (["--input", "nowhere.npy"], "'nowhere.npy' is neither a source of inputs that --help names nor a file"),
        (["--input", "photo", "--input-channels", "2"], "1 (grey) or 3 (RGB)"),
        (["--input", "photo", "--grid", "9999"], "does not fit"),
    ],
)
def test_bad_input_gets_one_line_before_any_work(run, tmp_path, arguments, message):
    status, printed, complaint = run(*arguments)
    assert status == 2
    assert complaint.startswith("error: ")
    assert message in complaint
    assert complaint.count("\n") == 1
    assert printed == ""
    assert not (tmp_path / "run.nc").exists()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.full((1, 6), np.nan), "NaN or infinite"),
        (np.ones((2, 1, 6)), "channel 0 of sample 0"),
        (np.zeros((4, 4)), "does not match the grid"),
        (np.zeros((0, 1, 6)), "holds 0 values"),
        (0.1 + 1e-16 * np.arange(6.0), "is constant"),
        (1e-200 * np.arange(6.0), "is constant"),
        (np.array(["a"] * 6), "images are real numbers"),
    ],
)
def test_unusable_images(run, tmp_path, values, message):
    np.save(tmp_path / "images.npy", values)
    status, _, complaint = run("--input", str(tmp_path / "images.npy"))
    assert status == 2
    assert message in complaint


@pytest.mark.parametrize(("suffix", "writer"), [(".npy", "numpy.save"), (".npz", "numpy.savez")])
def test_a_text_with_the_name_of_an_array_is_called_one(run, tmp_path, suffix, writer):
    path = tmp_path / f"images{suffix}"
    path.write_text("0.1 0.2 0.3\n")
    status, _, complaint = run("--input", str(path))
    assert status == 2
    assert f"images{suffix} is no {suffix} file, whatever its name says" in complaint
    assert complaint.endswith(f"write it with {writer}\n")
    assert "pickle" not in complaint


def test_a_file_that_breaks_off_is_not_readable(run, tmp_path):
    for suffix, write in ((".npy", np.save), (".npz", np.savez)):
        path = tmp_path / f"images{suffix}"
        write(path, np.arange(600.0))
        path.write_bytes(path.read_bytes()[:200])
        status, _, complaint = run("--input", str(path))
        assert status == 2
        assert f"is not a readable {suffix} file" in complaint


@pytest.mark.parametrize("damage", [RuntimeError("NetCDF: HDF error"), AttributeError("NetCDF: Can't open attribute")])
def test_a_dataset_damaged_in_its_middle_is_not_readable(run, tmp_path, monkeypatch, damage):
    """As one byte in a hundred makes it."""

    def read(*_, **__):
        raise damage

    for name in ("open_dataset", "load_dataset"):
        monkeypatch.setattr(xr, name, read)
    (tmp_path / "images.nc").write_bytes(b"")
    status, _, complaint = run("--input", f"{tmp_path}/images.nc", out="new.nc")
    assert (status, complaint.count("\n")) == (2, 1)
    assert f"images.nc is not a readable NetCDF-4 file: {damage}" in complaint
    status, _, complaint = run(out="images.nc")
    assert (status, complaint.count("\n")) == (2, 1)
    assert "images.nc was not written by this run" in complaint


def test_unreadable_files(run, tmp_path):
    for suffix in (".npy", ".npz", ".nc", ".jpg"):
        path = tmp_path / f"broken{suffix}"
        path.write_bytes(b"not what it says")
        status, _, complaint = run("--input", str(path))
        assert status == 2
        assert complaint.startswith("error: ")


def test_an_unwritable_folder_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    status = cnn_overlap.main([*SMALL, "--out", str(tmp_path / "file" / "run.nc")])
    assert status == 2
    assert "cannot write to the folder" in capsys.readouterr().err


def test_depth_ladder():
    assert depth_ladder(12) == [3, 6, 12]
    assert depth_ladder(64) == [8, 16, 32, 64]
    assert depth_ladder(4) == [2, 4]
    assert depth_ladder(1) == [1]


# Worlds in which claims of this study get another verdict: their negative controls.


def no_minima(runs):
    dataset = runs["cnn_overlap"]
    deepest = dataset.isel(depth=-1)
    return {"cnn_overlap": put(dataset, "label_term_limit", deepest["label_term_law"], depth=deepest["depth"].item())}


CNN_RUNS = ("cnn_overlap", f"cnn_overlap-{'-'.join(word.lstrip('-') for word in P0_HEAD)}")


def _in_both_readouts(runs, change):
    return {run: change(runs[run]) for run in CNN_RUNS}


def _by_depth_of_the_deepest(dataset, name, power):
    """A term of the deepest net that grows as this power of the layer."""
    deepest = dataset.isel(depth=-1)
    return put(dataset, name, deepest["layer"].astype(float) ** power, depth=deepest["depth"].item())


def cubes(runs):
    """Label terms that grow as l^3 under both readouts, the mean field's with them."""

    def change(dataset):
        made = _by_depth_of_the_deepest(dataset, "label_term_limit", 3.0)
        return _by_depth_of_the_deepest(made, "label_term_mean_field", 3.0)

    return _in_both_readouts(runs, change)


def _limits(runs, name, values):
    return _in_both_readouts(runs, lambda dataset: dataset.assign({f"{name}_deep": ("deep_depth", values)}))


def cubes_in_the_limit(runs):
    return _limits(runs, "label_term", [2.9, 2.95])


def minus_three_halves_in_the_limit(runs):
    return _limits(runs, SCALE.removeprefix("label_"), [-1.45, -1.47])


def theory_of_another_power(runs):
    """Mean fields half a power off in the layer."""

    def change(dataset):
        grown = dataset["label_term_mean_field"] * dataset["layer"].astype(float) ** 2
        made = _by_depth_of_the_deepest(dataset, "label_term_limit", 3.0)
        return made.assign(label_term_mean_field=grown.transpose(*dataset["label_term_mean_field"].dims))

    return _in_both_readouts(runs, change)


def output_terms_at_most_square(runs):
    """Output terms that grow as l^2 and label terms that grow as l^3, in draws and in the limit."""

    def change(dataset):
        for name in ("output_term", "adjusted_output_term"):
            if name in dataset:
                dataset = _by_depth_of_the_deepest(dataset, name, 2.0)
        for name in ("label_term", "adjusted_label_term"):
            if name in dataset:
                dataset = _by_depth_of_the_deepest(dataset, name, 3.0)
        return dataset.drop_vars(["output_term_finite_channels", "label_term_finite_channels"], errors="ignore")

    return _limits(_in_both_readouts(runs, change), "output_term", [2.0, 2.0])


def three_halves_at_all_depths(runs):
    """Scales, and their mean field, that fall as L^(-3/2), finite channels adding nothing."""
    name = SCALE.removeprefix("label_")

    def change(dataset):
        law = dataset["depth"].astype(float) ** -1.5
        for drawn in (name, f"adjusted_{name}"):
            if drawn in dataset:
                dataset = put(dataset, drawn, law)
        levels = {f"{name}_{level}": 0 * dataset[name] + law for level in ("mean_field", "finite_channels")}
        return dataset.assign(levels)

    return _in_both_readouts(runs, change)


CONTROLS = {
    "A3": no_minima,
    "A3a": cubes,
    "A3b": cubes_in_the_limit,
    "A3c": theory_of_another_power,
    "A4a": output_terms_at_most_square,
    "A5c": three_halves_at_all_depths,
    "A5d": minus_three_halves_in_the_limit,
}

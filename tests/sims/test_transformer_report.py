"""The report on Transformers: numbers where the proof breaks, theory that is missing, images of another size."""

import numpy as np
import pytest
import xarray as xr

from sims.transformer_depth.__main__ import SLOPE_TABLE, _breaks
from sims.transformer_depth.__main__ import STUDY as simulation
from sims.transformer_depth.claims import RHO
from tests.sims.commands import assert_refused

SIZES = {
    "norm": ["post", "pre"],
    "scaling": ["none", "multiplier_sqrt"],
    "attention_scale": ["inverse", "inverse_sqrt"],
    "direction": ["shared", "difference"],
    "depth": [4, 8, 16],
    "start": [0, 8],
    "layer": range(1, 17),
    "width": [16, 32, 64],
    "wide_layer": range(1, 9),
}
NETS, TOKENS = ("norm", "attention_scale"), ("norm", "scaling", "attention_scale", "layer")
PROPAGATED = (*NETS, "direction", "start", "layer")
DIMS = {
    RHO: PROPAGATED,
    f"{RHO}_spread": PROPAGATED,
    f"{RHO}_remainder_by_width": (*NETS, "width", "wide_layer"),
    "token_correlation": TOKENS,
    "stream_variance": TOKENS,
}
POST, PRE = ({"norm": norm, "attention_scale": "inverse_sqrt"} for norm in SIZES["norm"])
SHARED, LOST = {"direction": "shared", "start": 0}, {"direction": "difference", "start": 8, "layer": 16}
# What each entry is set to, and the words that name it; all other entries are 1.
ENTRIES = [
    (RHO, PRE | SHARED | {"layer": 16}, 28.3, "pre-norm nets: of shared tangents it is 28.3 at l = 16,"),
    ("stream_variance", PRE | {"scaling": "none", "layer": 16}, 11.5, "the variance of the stream is 11.5."),
    (RHO, POST | LOST, 0.041, "post-norm nets that of differences is 0.041 from h = 8 to l = 16."),
    (f"{RHO}_remainder_by_width", POST | {"width": 16, "wide_layer": 8}, 0.979, "is 0.979 at width 16 and 1.000"),
    (f"{RHO}_remainder_by_width", POST | {"width": 64, "wide_layer": 8}, 1.017, "at width 16 and 1.017 at width 64"),
    (f"{RHO}_spread", POST | SHARED | {"layer": 8}, 0.22, "they are 0.22 of rho at l = 8 and 1 at l = 16"),
    (f"{RHO}_spread", POST | SHARED | {"layer": 16}, 1.6, "at l = 8 and 1.6 at l = 16 (post-norm, width 64)"),
    (RHO, POST | SHARED | {"layer": 8}, 0.25, "they are 4 of rho at l = 8 and 1 at l = 16"),
    ("token_correlation", POST | {"scaling": "none", "layer": 8}, 0.83, "correlation of 0.83 at l = 8 (post-norm)"),
]


def _ones():
    values = {name: (dims, np.ones([len(SIZES[dim]) for dim in dims])) for name, dims in DIMS.items()}
    return xr.Dataset(values, {dim: list(sizes) for dim, sizes in SIZES.items()})


@pytest.mark.parametrize(("name", "place", "value", "words"), ENTRIES)
def test_numbers_where_the_proof_breaks_are_those_of_the_run(name, place, value, words):
    dataset = _ones()
    assert words not in " ".join(_breaks(dataset).split())
    dataset[name].loc[place] = value
    assert words in " ".join(_breaks(dataset).split())


def test_slopes_without_theory_are_marked_as_missing():
    dims = ("norm", "scaling", "attention_scale", "depth")
    scale = _ones()["depth"] ** -1.5 * xr.ones_like(_ones()["token_correlation"].isel(layer=0, drop=True))
    scale = scale.transpose(*dims)
    names = ("learning_rate_scale", "label_learning_rate_scale")
    dataset = xr.Dataset(dict.fromkeys(names, scale) | {f"{name}_stderr": 0.01 * scale for name in names})
    rows = SLOPE_TABLE(dataset.assign(log_label_learning_rate_scale_mean_field=np.nan * scale)).text().splitlines()[3:]
    assert len(rows) == 8
    assert all(row.split()[-1] == "-" and "-1.500" in row for row in rows)


def test_images_of_another_size_are_refused_by_the_options_of_the_command(tmp_path, capsys):
    path = tmp_path / "small.npy"
    np.save(path, np.random.default_rng(0).standard_normal((3, 8, 9)))
    shared = ["--preset", "smoke", "--patch"]
    words = "--tokens 4 and --patch {} need images of {} pixels, but {}; change these options"
    photo = words.format(1000, "2000 x 2000", "the photograph has 600 x 512 pixels")
    assert_refused(simulation, [*shared, "1000", "--input", "photo"], photo, tmp_path, capsys)
    file = words.format(4, "8 x 8", f"{path} has shape (3, 8, 9)")
    assert_refused(simulation, [*shared, "4", "--input", str(path)], file, tmp_path, capsys)

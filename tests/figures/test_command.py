"""Figures from the command line: every format whole and equal each time, styles, captions, refusals."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import xarray as xr

from figures import figure_names
from figures import looped_update as figure
from figures._command import draw_all, draw_one
from figures.render import caption, rendered
from sims.looped_update import STUDY as simulation
from tests.sims.commands import unread

NAME = "looped_update"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("figures")
    arguments = ["--loops", "2", "4", "--width", "16", "--draws", "4", "--workers", "1"]
    assert simulation.main([*arguments, "--out", str(made / f"{NAME}.nc")]) == 0
    return made


def test_every_format_is_the_same_each_time(folder):
    arguments = [str(folder / f"{NAME}.nc"), "--format", "png", "svg", "pdf"]
    files = [folder / f"{NAME}.{kind}" for kind in ("png", "svg", "pdf")]
    contents = []
    for _ in range(2):
        assert draw_one(NAME, figure.draw, arguments) == 0
        contents.append([file.read_bytes() for file in files])
    assert contents[0] == contents[1]
    assert [content[:4] for content in contents[0]] == [b"\x89PNG", b"<?xm", b"%PDF"]


def test_pictures_of_a_page_name_their_parts_apart(folder):
    """Every name is used as it is given, and no two pictures share one; words are outlines, on a white ground."""
    with xr.open_dataset(folder / f"{NAME}.nc", engine="netcdf4") as stored:
        dataset = stored.load()
    pictures = [rendered(figure.draw, dataset, "svg", style).decode() for style in ("light", "print")]
    names = [re.findall(r'\bid="([^"]+)"', picture) for picture in pictures]
    for picture, own in zip(pictures, names, strict=True):
        assert len(own) == len(set(own)) > 100
        assert set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', picture))
        assert {first or second for first, second in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', picture)} <= set(
            own
        )
        assert "<text" not in picture
        assert re.search(r'id="m\w+-patch_1">\s*<path d="[^"]+" style="fill: #ffffff', picture)
        ElementTree.fromstring(picture)
    assert not set(names[0]) & set(names[1])


def test_the_caption_makes_the_numbers_again(folder, tmp_path):
    with xr.open_dataset(folder / f"{NAME}.nc", engine="netcdf4") as stored:
        first = stored.load()
    words = caption(first)
    command, draws, seed, version = words.split("; ")
    assert (draws, seed) == ("draws 4", "seed 0")
    assert version.startswith("meanfield ")
    given = command.removeprefix(f"python -m sims.{NAME} ").split()
    assert simulation.main([*given, "--out", str(tmp_path / "again.nc")]) == 0
    with xr.open_dataset(tmp_path / "again.nc", engine="netcdf4") as stored:
        np.testing.assert_array_equal(stored["update_energy"], first["update_energy"])


def test_styles_differ(folder):
    pictures = []
    for style in ("light", "print"):
        assert draw_all([NAME, "--folder", str(folder), "--style", style]) == 0
        pictures.append((folder / f"{NAME}.png").read_bytes())
    assert pictures[0] != pictures[1]


def test_every_figure_has_its_simulation_and_command():
    for name in figure_names():
        with pytest.raises(SystemExit) as ended:
            draw_one(name, figure.draw, ["--help"])
        assert ended.value.code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([NAME, "--folder", "nowhere"], "no dataset nowhere/looped_update.nc"),
        (["nonsense"], "NAME is 'nonsense'; choose one of"),
    ],
)
def test_bad_input_gets_one_line(arguments, message, capsys):
    assert draw_all(arguments) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.write_text("no dataset\n")])
def test_what_is_no_dataset_is_named_in_one_line(make, tmp_path, capsys):
    path = tmp_path / f"{NAME}.nc"
    make(path)
    assert draw_all([NAME, "--folder", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"error: {path} holds no readable dataset; give the one that sims.{NAME} has written\n"
    )


@pytest.mark.parametrize("arguments", [["--style", "dark"], ["--make", "--preset", "huge"], ["--format"]])
def test_bad_options_get_one_line(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        draw_all([NAME, *arguments])
    assert ended.value.code == 2
    complaint = capsys.readouterr().err
    assert complaint.startswith(f"error: argument {arguments[-2] if len(arguments) > 1 else '--format'}: ")
    assert complaint.count("\n") == 1


def test_a_dataset_of_another_simulation_is_refused(folder, capsys):
    assert draw_one("looped_energy", figure.draw, [str(folder / f"{NAME}.nc")]) == 2
    assert "is no dataset of sims.looped_energy, but of python -m sims.looped_update" in capsys.readouterr().err


def test_a_reader_that_has_left_ends_the_command_without_a_word(folder):
    assert unread("figures", NAME, "--folder", folder) == (141, "")


def test_a_refused_simulation_is_the_only_one_to_complain(tmp_path, capfd):
    (tmp_path / f"{NAME}.png").write_text("of another run")
    assert draw_all([NAME, "--make", "--preset", "smoke", "--folder", str(tmp_path)]) == 2
    complaint = capfd.readouterr().err
    assert complaint.startswith(f"error: {tmp_path / NAME}.png was not written by this run")
    assert complaint.count("\n") == 1

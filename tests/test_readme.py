"""The README keeps its promises: its example runs, and its two commands set themselves up."""

import re
from pathlib import Path

import meanfield as mf
from tests.draws import given_draw

README = (Path(mf.__file__).parent.parent / "README.md").read_text()


def test_the_example_runs(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    net = mf.ConvNet(depth=8, channels=64, grid=(16,), kernel=(3,), readout="convolution")
    weights, inputs, error = given_draw(net, 0)
    names = {"weights": weights, "inputs": inputs, "outputs": error, "targets": 0.0}
    exec(example, names)
    assert len(names["change"]) == 8
    assert names["net"] == net
    assert "[" in capsys.readouterr().out


def test_the_commands_set_themselves_up():
    setup = 'python3 -m venv .venv && .venv/bin/python -m pip install -e ".[test]" && .venv/bin/python -m '
    assert re.findall(rf"^    {re.escape(setup)}(\S+)$", README, re.MULTILINE) == ["sims.cnn_overlap", "pytest"]

"""What one step does to a model of a user's at every size, by `meanfield.torch`. It takes the extra torch."""

from __future__ import annotations

import argparse
import json
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import nn
from torch.nn import functional

import meanfield
import meanfield.torch as mft
from meanfield.common import PremiseWarning, derived_seed
from meanfield.execution import PieceStore, code_digest, digest
from sims.common.results import run_key
from sims.measure_model.asked import (
    BatchList,
    ModelSize,
    batches_of,
    groups_of,
    imported,
    imported_factory,
    imported_optimizer,
    label_of,
    sizes_of,
    tuned_at,
)
from sims.measure_model.dataset import OTHERS, MeasuredSize, collected, most_moved

# What is shown of a model where nobody chooses: its blocks and what stands outside, and kinds of parameters.

# Kinds of parameters, as a report calls them.
EMBEDDINGS, ATTENTION, WEIGHTS, HEAD = "embeddings", "attention", "weights", "head"
GAINS, BIASES = "norm gains", "biases"
KINDS = (EMBEDDINGS, ATTENTION, WEIGHTS, HEAD, GAINS, BIASES)


def places_of(model: nn.Module, blocks: Sequence[str], called: Sequence[str]) -> list[str]:
    """Names of the blocks, and of called leaves with parameters that stand in none; of the leaves alone without blocks.

    Args:
        model: whose modules these are.
        blocks: names of its blocks.
        called: names of its leaves, in the order of their calls.
    """
    outside = [name for name in called if not any(name.startswith(f"{block}.") for block in blocks)]
    return [*blocks, *(name for name in outside if any(True for _ in model.get_submodule(name).parameters()))]


def kinds_of(model: nn.Module, head: str) -> dict[str, list[str]]:
    """Names of all parameters that train, by kind; kinds without any are left out.

    Args:
        model: whose parameters these are.
        head: the leaf that makes the outputs.
    """
    attention = tuple(f"{name}." for name, module in model.named_modules() if "attention" in _class(module))
    kinds: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            owner = name.rpartition(".")[0]
            kinds[_kind(name, parameter, model.get_submodule(owner), attention, owner == head)].append(name)
    return {kind: names for kind, names in kinds.items() if names}


def _kind(name: str, parameter: nn.Parameter, owner: nn.Module, attention: tuple[str, ...], is_head: bool) -> str:
    if "norm" in _class(owner) and name.endswith("weight"):
        return GAINS
    if parameter.dim() < 2:
        return BIASES
    is_beside = any(True for _ in owner.children())  # positions stand beside modules
    if isinstance(owner, nn.Embedding) or (is_beside and "attention" not in _class(owner)):
        return EMBEDDINGS
    return ATTENTION if name.startswith(attention) else HEAD if is_head else WEIGHTS


def _class(module: nn.Module) -> str:
    return type(module).__name__.lower()


# Parameters of the strongest group are moved one by one where there are no more.
MOST_ALONE = 40
# Names of the model that an error names.
MOST_NAMED = 6
# Frames of a traceback that are not the user's.
OURS = tuple(
    str(Path(file or "").parent) for file in (torch.__file__, mft.__file__, meanfield.__file__, Path(__file__).parent)
)


# What is asked for.


def cross_entropy(outputs: Any, targets: Any) -> torch.Tensor:
    """That of PyTorch; of outputs that have a target at every place, as logits of tokens, over the last axis."""
    outputs = _one_tensor("cross_entropy", outputs)
    last, second = (shape == targets.shape for shape in (outputs.shape[:-1], (*outputs.shape[:1], *outputs.shape[2:])))
    if last and second and outputs.dim() > 2:
        raise ValueError(
            f"outputs of shape {tuple(outputs.shape)} may have their classes on the second axis or the last: give "
            "--loss package.module:function"
        )
    if targets.is_floating_point() and targets.shape != outputs.shape:
        raise ValueError(
            "targets are no whole numbers, and cross_entropy takes the numbers of classes: give labels of an integer "
            "type, or --loss mse"
        )
    if last and targets.dim() > 1:
        return functional.cross_entropy(outputs.flatten(0, -2), targets.flatten())
    return functional.cross_entropy(outputs, targets)


def mse_loss(outputs: Any, targets: Any) -> torch.Tensor:
    """That of PyTorch, for targets of the shape of the outputs."""
    outputs = _one_tensor("mse", outputs)
    if outputs.shape != targets.shape:
        raise ValueError(
            f"outputs have shape {tuple(outputs.shape)} and targets {tuple(targets.shape)}, and mse takes equal ones: "
            "change the targets, or give --loss package.module:function"
        )
    return functional.mse_loss(outputs, targets.to(outputs.dtype))


def _one_tensor(loss: str, outputs: Any) -> torch.Tensor:
    if not isinstance(outputs, torch.Tensor):
        raise TypeError(
            f"the model gives a {type(outputs).__name__}, and {loss} takes one tensor: give --loss "
            "package.module:function, which takes what the model gives and the targets"
        )
    return outputs


LOSSES: Mapping[str, Any] = {"cross_entropy": cross_entropy, "mse": mse_loss}


@dataclass(frozen=True, kw_only=True)
class MeasuredModel:
    """A user's model and how one step of it is measured.

    Attributes:
        name: of the factory, as it was given.
        factory: what makes the model of a size.
        loss, batches, how: as `meanfield.torch.step_scales` takes them; ``how`` has all its options but modules.
        sizes: all that are measured.
        modules, groups: which modules and groups of parameters are shown at the largest size; by kind where empty.
        rates: options of `meanfield.torch.starting_rate` and `carry` alone.
        tuned: a tuned rate and the label of its size.
        weights: a digest of the first model's at every size, by its label.
    """

    name: str
    factory: Callable[..., Any]
    loss: Any
    batches: BatchList
    how: Mapping[str, Any]
    sizes: Sequence[ModelSize]
    modules: Sequence[str]
    groups: Mapping[str, Sequence[str]]
    kind: str | None
    of: str | None
    tuned: tuple[float, str] | None
    weights: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def by(cls, options: argparse.Namespace) -> MeasuredModel:
        """What the options ask for; all that can be refused before a step is made is refused here."""
        sizes = sizes_of(options.sizes)
        tuned = tuned_at(options.carry, sizes)
        groups = groups_of(options.groups)
        factory = imported_factory(options.factory, sizes[0])
        optimizer = imported_optimizer(options.optimizer)
        loss = LOSSES.get(options.loss) or _imported_loss(options.loss)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derived_seed(options.seed, "batches"))
            batches = batches_of(options.data, options.batch_size, options.length, options.draws, options.seed)
        how = {"optimizer": optimizer, "draws": options.draws, "seed": options.seed, "precision": options.precision}
        asked = cls(
            name=options.factory,
            factory=factory,
            loss=loss,
            batches=batches,
            how=how,
            sizes=sizes,
            modules=options.modules,
            groups=groups,
            kind=options.kind,
            of=options.of,
            tuned=tuned,
        )
        models = {label_of(size): asked.made(size) for size in sizes}
        for label, model in models.items():
            _require_fitting("--modules", options.modules, [name for name, _ in model.named_modules()], label)
            patterns = [pattern for listed in groups.values() for pattern in listed]
            _require_fitting("--groups", patterns, [name for name, _ in model.named_parameters()], label)
        return replace(asked, weights={label: _fingerprint(model) for label, model in models.items()})

    @property
    def data(self) -> tuple[Any, BatchList]:
        """Loss and batches, as `meanfield.torch` takes them in a row."""
        return self.loss, self.batches

    @property
    def key_of_steps(self) -> str:
        """A digest of all that a step at any size depends on but the weights."""
        batches = [_plain(batch) for batch in self.batches]
        return digest(
            factory=self.factory,
            loss=self.loss,
            batches=batches,
            **self.how,
            torch=torch.__version__,
            code=code_digest(),
        )

    @property
    def key(self) -> str:
        """A digest of all that the dataset depends on."""
        named = ("weights", "modules", "groups", "kind", "of", "tuned", "name")
        return run_key(steps=self.key_of_steps, **{name: getattr(self, name) for name in named})

    def made(self, size: ModelSize) -> nn.Module:
        """The model of a size, with the same weights every time."""
        with failing_at(size), torch.random.fork_rng(devices=[]):
            torch.manual_seed(derived_seed(self.how["seed"], "weights"))
            model = self.factory(**size)
        if not isinstance(model, nn.Module):
            raise ValueError(
                f"{self.name} makes {type(model).__name__} at {label_of(size)}; give a function that makes a "
                "torch.nn.Module"
            )
        with failing_at(size):
            mft.require_measurable(model)
        return model


def _imported_loss(text: str) -> Any:
    if ":" not in text:
        raise ValueError(
            f"--loss is {text!r}; choose one of {', '.join(map(repr, LOSSES))}, or package.module:function"
        )
    loss = imported("--loss", text)
    made = loss() if isinstance(loss, type) and issubclass(loss, nn.Module) else loss
    if not callable(made):
        raise ValueError(f"--loss {text} is {made!r}; give a function (outputs, targets) -> number")
    return made


def _require_fitting(option: str, patterns: Sequence[str], names: Sequence[str], label: str) -> None:
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            shown = ", ".join(filter(None, names[:MOST_NAMED]))
            raise ValueError(f"{option} has {pattern}, which fits nothing at {label}; the model has {shown}, ..")


def _fingerprint(model: nn.Module) -> str:
    return digest(**{name: _plain(value) for name, value in model.state_dict().items()})


def _plain(value: Any) -> Any:
    """Tensors as arrays, in nested tuples, lists and mappings."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().to(torch.float64 if value.is_floating_point() else value.dtype).numpy()
    return value


@contextmanager
def failing_at(size: ModelSize, batches: BatchList | None = None) -> Iterator[None]:
    """Errors, of the user's model too, in one line that says at which size they were raised, where, and given what."""
    try:
        yield
    except Exception as error:  # whatever a user's model raises
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if not frame.filename.startswith(OURS)]
        words = str(error).partition("\n")[0]
        if frames[-1].filename.startswith(OURS[0]) or not frames[-1].filename.startswith(OURS):
            words = f"{type(error).__name__}: {words}"
        place = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
        given = f"; it was given {_batch_words(batches)}{_numbers_words(batches)}" if own and batches else ""
        raise ValueError(f"at {label_of(size)}: {words}{place}{given}") from error


# What is measured.


def measure(asked: MeasuredModel, pieces: PieceStore) -> xr.Dataset:
    """The dataset of `sims.measure_model`: every size, and the modules of the largest.

    What is measured of a size is kept in ``pieces`` until all is there.
    """
    sizes: list[MeasuredSize] = []
    for number, size in enumerate(asked.sizes, start=1):
        print(f"[{number}/{len(asked.sizes)}] one step at {label_of(size)}", file=sys.stderr)
        sizes.append(_started(asked, size, _step(asked, size, pieces)))
    tuned = None
    if asked.tuned is not None:
        tuned = next(each for each in sizes if each.label == asked.tuned[1])
        sizes = [_carried(asked, asked.tuned[0], tuned, each, sizes) for each in sizes]
    largest = max(sizes, key=lambda each: each.parameters)
    print(f"modules and groups of parameters at {largest.label}", file=sys.stderr)
    shown, alone = _by_module(asked, largest, pieces)
    return collected(sizes, largest, shown, alone, tuned).assign_attrs(
        factory=asked.name,
        tuned="" if asked.tuned is None else f"{asked.tuned[0]:g} at {asked.tuned[1]}",
        batch=_batch_words(asked.batches),
        torch=torch.__version__,
    )


def _step(asked: MeasuredModel, size: ModelSize, pieces: PieceStore, **options: Any) -> xr.Dataset:
    """`meanfield.torch.step_scales` at a size, as it is or as it was kept."""
    key = digest(weights=asked.weights[label_of(size)], size=dict(size), **options)
    if (kept := pieces.load(key, 1)) is not None:
        return xr.Dataset.from_dict(json.loads(kept["dataset"].tobytes()))
    with failing_at(size, asked.batches):
        scales = mft.step_scales(partial(asked.factory, **size), *asked.data, **dict(asked.how) | options)
    scales = scales.drop_dims("layer_other")
    written: Any = np.frombuffer(json.dumps(scales.to_dict()).encode(), np.uint8)[None]
    pieces.save(key, {"dataset": written})
    return scales


def _started(asked: MeasuredModel, size: ModelSize, scales: xr.Dataset) -> MeasuredSize:
    """With the rate to start from, or the reason why there is none."""
    how = dict(asked.how) | {"kind": asked.kind, "measured": scales}
    started, sentences, missing = _said(mft.starting_rate, partial(asked.factory, **size), *asked.data, **how)
    return MeasuredSize(
        size=size, label=label_of(size), scales=scales, started=started, warnings=sentences, no_rate=missing
    )


def _carried(
    asked: MeasuredModel, rate: float, tuned: MeasuredSize, to: MeasuredSize, sizes: Sequence[MeasuredSize]
) -> MeasuredSize:
    """With the rate that is carried from the tuned size.

    Where no scale carries it over width and depth at once, it is that of the size of the tuned width and this depth, if
    that is among ``sizes``: the rate stays over the width.
    """

    def carried_from(start: MeasuredSize, end: MeasuredSize) -> tuple[xr.Dataset | None, tuple[str, ...], str]:
        how = dict(asked.how) | {"kind": asked.kind, "of": asked.of, "measured": (start.scales, end.scales)}
        models = (partial(asked.factory, **each.size) for each in (start, end))
        return _said(mft.carry, rate, *models, *asked.data, **how)

    carried, sentences, missing = carried_from(tuned, to)
    as_deep = _of_tuned_width(tuned, to, sizes)
    if carried is None and as_deep is not None:
        (deeper, first, _), (wider, second, _) = carried_from(tuned, as_deep), carried_from(as_deep, to)
        if deeper is not None and wider is not None and wider.attrs["stays"]:
            of = f"{deeper.attrs['of']}, over depth alone"
            carried, missing = deeper.assign_attrs(of=of, premises=wider.attrs["premises"]), ""
            sentences = tuple(dict.fromkeys((*first, *second)))
    return replace(to, carried=carried, warnings=(*to.warnings, *sentences), not_carried=missing)


def _of_tuned_width(tuned: MeasuredSize, to: MeasuredSize, sizes: Sequence[MeasuredSize]) -> MeasuredSize | None:
    """The size that is as deep as one and as wide as the tuned one, if it is measured."""

    def depth(size: MeasuredSize) -> tuple[Any, int]:
        return size.scales.attrs.get("blocks"), size.scales.sizes["layer"]

    width = tuned.scales.attrs.get("width")
    return next((each for each in sizes if (depth(each), each.scales.attrs.get("width")) == (depth(to), width)), None)


def _said(read: Callable[..., xr.Dataset], *given: Any, **how: Any) -> tuple[xr.Dataset | None, tuple[str, ...], str]:
    """A rate that is read off measured scales, the sentences that it is warned with, and why there is none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PremiseWarning)
        try:
            made, missing = read(*given, **how), ""
        except ValueError as error:  # no trial of this optimizer, or a last layer that starts at 0
            made, missing = None, str(error)
    return made, tuple(str(each.message) for each in caught if issubclass(each.category, PremiseWarning)), missing


def _by_module(asked: MeasuredModel, largest: MeasuredSize, pieces: PieceStore) -> tuple[xr.Dataset, xr.Dataset | None]:
    """What moves the modules of the largest size: kinds of parameters each; and parameters, the one that moves most."""
    model, called = asked.made(largest.size), largest.called
    weighted = [name for name in called if any(True for _ in model.get_submodule(name).parameters())]
    modules = list(asked.modules) or places_of(model, largest.scales.attrs["block_names"].split(), called)
    groups = dict(asked.groups) or kinds_of(model, weighted[-1])
    shown = _step(asked, largest.size, pieces, modules=modules, groups=groups)
    top = most_moved(shown)
    strongest = str(shown["update_energy_of_group"].isel(layer=top).idxmax("group").values)
    names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    own = [name for name in names if any(fnmatchcase(name, pattern) for pattern in groups[strongest])]
    if not 1 < len(own) <= MOST_ALONE:
        return shown, None
    others = [name for name in names if name not in own]
    alone = {name: [name] for name in own} | ({OTHERS: others} if others else {})
    module = str(shown["module"].values[top]).partition("#")[0]
    return shown, _step(asked, largest.size, pieces, modules=[module], groups=alone)


def _batch_words(batches: BatchList) -> str:
    """How many batches there are, and the shape of their inputs."""
    shapes = [tuple(tensor.shape) for tensor in _tensors(batches[0][0])]
    return f"{len(batches)} batch{'es' * (len(batches) > 1)} of inputs {', '.join(map(str, shapes)) or 'of no tensor'}"


def _numbers_words(batches: BatchList) -> str:
    """The largest of inputs that are whole numbers, of which an embedding must have more rows; else nothing."""
    arrays = [np.asarray(_plain(tensor)) for inputs, _ in batches for tensor in _tensors(inputs)]
    whole = [int(array.max()) for array in arrays if array.size and array.dtype.kind in "iu"]
    return f", whole numbers up to {max(whole)}" if whole else ""


def _tensors(value: Any) -> list[Any]:
    """All arrays in nested tuples, lists and mappings."""
    if isinstance(value, Mapping | tuple | list):
        parts = value.values() if isinstance(value, Mapping) else value
        return [tensor for part in parts for tensor in _tensors(part)]
    return [value] if isinstance(value, torch.Tensor | np.ndarray) else []

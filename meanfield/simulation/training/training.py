"""Training of several nets side by side, by one optimizer or by one for every role of a net's weights."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from meanfield.common.array_libraries import on_host
from meanfield.common.seeds import stream
from meanfield.common.validation import Array
from meanfield.nets.net import Net
from meanfield.optimizers.base import Gradient, NoStep, Optimizer, Place, move
from meanfield.optimizers.by_name import Hybrid, method_of_role
from meanfield.optimizers.linear_algebra import Direction, Factored, brought, dense, of_net
from meanfield.simulation.arrays import NUMPY, Arrays
from meanfield.simulation.maps.weightless import Masks
from meanfield.simulation.passes import Forward, forward
from meanfield.simulation.training.data import Batches, Data
from meanfield.simulation.training.gradients import Piecewise, loss_gradients
from meanfield.simulation.training.losses import Loss
from meanfield.simulation.weights import given_weights

# Name of a weight -> "learning_rate", one number or an array of one for every net, and optionally the numbers
# "weight_decay" and "epsilon".
StepSettings = Callable[[str], Mapping[str, Any]]

# The default epsilon, far below any gradient.
TINY = 1e-16

# Optimizers take squares of gradients; squares beyond this come near the end of the floats.
LARGEST_SQUARE = {"float64": 1e300, "float32": 1e36}


@dataclass
class Training:
    """D nets of one spec in training, side by side, with their data and their optimizer.

    Attributes:
        weights: by name, (D, out, in taps), biases (D, out, 1); steps are made in place.
        data: all samples.
        optimizer: of all weights, or a hybrid, where one of matrices leaves biases and gains to AdamW; or by role, as
            `Net.role_of` names the roles: {"input": AdamW(), "hidden": Muon(), "output": AdamW()}.
        batches: the samples that a step takes; all of them if left out.
        shares: of the learning rates, one for every step to come; every step takes the whole rates if left out.
        seeds: one for every net, of the masks of dropout and of labels that an optimizer draws; if left out, nothing is
            dropped.
        gone: which nets have left the range of floats, or had no step to make, (D,), where the weights lie; these are
            nan from the next step on.

    Raises:
        ValueError: a role of the net without an optimizer, or with one of matrices for its biases or gains; no seeds
            for an optimizer that draws labels.
    """

    net: Net
    weights: dict[str, Any]
    data: Data
    loss: Loss
    optimizer: Optimizer | Hybrid | Mapping[str, Optimizer]
    hyperparameters: StepSettings
    batches: Batches | None = None
    shares: Array | None = None
    seeds: Sequence[int] | None = None
    arrays: Arrays = NUMPY
    taken: int = 0
    states: dict[str, Any] = field(default_factory=dict)
    _seen: Forward | None = None
    _batch: Data | None = None
    _swept: tuple[Any, dict[str, Gradient]] | None = None
    _rates: dict[bytes, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.nets = len(next(iter(self.weights.values())))
        self.gone = self.arrays.xp.zeros(self.nets, dtype=bool)
        self._matrices = given_weights(self.net, self.weights, self.arrays)
        self._pieces = Piecewise(self.net, self.nets, self.arrays) if Piecewise.serve(self.net, self.arrays) else None
        self._methods = {name: self._method_of(name) for name in self.weights}
        self._sampled = [name for name, method in self._methods.items() if method.draws_labels]
        self._curved = any(method.curved and not method.draws_labels for method in self._methods.values())
        if self._sampled and self.seeds is None:
            raise ValueError(f"{self._methods[self._sampled[0]]!r} draws labels; give seeds, one for every net")
        defaults = {"weight_decay": 0.0, "epsilon": TINY}
        self._settings = {name: defaults | dict(self.hyperparameters(name)) for name in self.weights}

    def _method_of(self, name: str) -> Optimizer:
        """The optimizer of one weight."""
        role = self.net.role_of(name)
        if isinstance(self.optimizer, Optimizer | Hybrid):
            return method_of_role(self.optimizer, role)
        if role not in self.optimizer:
            known = ", ".join(map(repr, self.optimizer))
            raise ValueError(f"optimizer has none for {role!r}, the role of {name}; it has {known}: add this role")
        method = self.optimizer[role]
        if role.endswith("_bias") and not method.elementwise:
            raise ValueError(f"optimizer of {role!r} is {method!r}, which steps matrices alone; take AdamW() or SGD()")
        return method

    def look(self) -> Forward:
        """The forward pass of the nets as they are on the samples of the next step, made once."""
        if self._seen is None:
            self._seen = forward(self.net, self._matrices, self.batch.inputs, self.arrays, self._masks())
        return self._seen

    @property
    def batch(self) -> Data:
        """The samples of the next step."""
        if self._batch is None:
            batches = self.batches
            self._batch = self.data if batches is None else self.data.taken(batches.at(self.taken), self.arrays)
        return self._batch

    def losses(self) -> Any:
        """The loss of every net on the samples of the next step, (D,), before it; infinite for nets that are gone.

        They stay where the weights lie, as whoever fetches them waits for a device.
        """
        xp, losses = self.arrays.xp, self.loss.value(self._output(), self.batch.targets, self.arrays)
        return xp.where(xp.isfinite(losses) & ~self.gone, losses, np.inf)

    def losses_on_all(self, most: int) -> Any:
        """The loss of every net on all samples of the data, (D,), taken at most so many at a time; as `losses`.

        Nothing is dropped. Nets that couple samples take the mini-batches of one more epoch.
        """
        total, seen = np.zeros(self.nets), 0
        for part in self._parts(most):
            output = forward(self.net, self._matrices, part.inputs, self.arrays).output
            total += part.samples * self.arrays.fetched(self.loss.value(output, part.targets, self.arrays))
            seen += part.samples
        return np.where(np.isfinite(total) & ~on_host(self.gone), total / seen, np.inf)

    def _parts(self, most: int) -> Iterator[Data]:
        if self.net.couples_samples and self.batches is not None:
            yield from (self.data.taken(numbers, self.arrays) for numbers in self.batches.next_epoch(self.taken))
        else:
            step = self.data.samples if self.net.couples_samples else most
            yield from (self.data.part(slice(first, first + step)) for first in range(0, self.data.samples, step))

    def slope(self) -> Any:
        """dL/dout of the samples of the next step, (D, M, B, T)."""
        return self.loss.slope(self.look().output, self.batch.targets, self.arrays)

    def rate(self, name: str) -> Any:
        """The learning rate of a weight, of which a step takes its share."""
        return self._settings[name]["learning_rate"]

    def step(self) -> dict[str, Sequence[Direction]]:
        """Delta W = -eta (A + lambda W) in every weight; returns the A by name, net by net."""
        gradients = self._gradients()
        self._leave_out(gradients)
        share = 1.0 if self.shares is None else float(self.shares[self.taken])
        self._seen, self._batch, self._swept, self.taken = None, None, None, self.taken + 1
        return {name: self._stepped(name, gradient, share) for name, gradient in gradients.items()}

    def require_floats(self) -> None:
        """Raise OverflowError if a net has left the range of floats or had no step to make."""
        if self.gone.any():
            raise OverflowError(
                "gradients leave the range of floats, or no step of this size keeps to the optimizer's condition; take "
                "a smaller learning rate, width or depth"
            )

    def _output(self) -> Any:
        """The output of the nets as they are on the samples of the next step, (D, M, B, T)."""
        return self.look().output if self._pieces is None else self._sweep(self._pieces)[0]

    def _gradients(self) -> dict[str, Gradient]:
        """The gradients on the samples of the next step."""
        if self._pieces is None:
            gradients = loss_gradients(self.look(), self.loss, self.batch.targets, self._curved)
        else:
            gradients = self._sweep(self._pieces)[1]
        for name, curvature in self._sampled_curvatures().items() if self._sampled else ():
            gradients[name] = replace(gradients[name], curvature=curvature)
        return gradients

    def _sampled_curvatures(self) -> dict[str, Any]:
        """The squared gradient at drawn labels, times the terms of the loss, of weights whose optimizer draws them.

        Its mean is the diagonal of the Gauss-Newton matrix (Liu et al. 2024).
        """
        assert self.seeds is not None
        output, sources = self._output(), [stream(seed, "labels", self.taken) for seed in self.seeds]
        targets = self.loss.drawn_targets(output, sources, self.arrays)
        if self._pieces is None:
            gradients = loss_gradients(self.look(), self.loss, targets)
        else:
            drawn = replace(self.batch, targets=targets)
            gradients = self._pieces.sweep(self.weights, drawn, self.loss, False, self._masks())[1]
        return {name: self.loss.terms(output) * dense(gradients[name].slope) ** 2 for name in self._sampled}

    def _sweep(self, pieces: Piecewise) -> tuple[Any, dict[str, Gradient]]:
        """Outputs on the samples of the next step, and its gradients, made at once."""
        if self._swept is None:
            self._swept = pieces.sweep(self.weights, self.batch, self.loss, self._curved, self._masks())
        return self._swept

    def _masks(self) -> Masks | None:
        return None if self.seeds is None else Masks(self.seeds, self.taken)

    def _leave_out(self, gradients: Mapping[str, Gradient]) -> None:
        """Mark the nets whose gradients, or their squares, are not finite; a device does so by their rates."""
        xp = self.arrays.xp
        largest = xp.stack([_square(gradient.slope, self.arrays) for gradient in gradients.values()]).max(axis=0)
        self._rates.clear()
        self.gone |= ~(largest < LARGEST_SQUARE[self.arrays.precision])
        if not self.arrays.on_device and self.gone.any():
            for weight in self.weights.values():
                weight[self.gone] = np.nan

    def _stepped(self, name: str, gradient: Gradient, share: float) -> Sequence[Direction]:
        weight, method = self.weights[name], self._methods[name]
        decay, epsilon = (self._settings[name][key] for key in ("weight_decay", "epsilon"))
        rate = share * self.rate(name)
        if not method.takes_stacks:
            return self._one_by_one(name, gradient.slope, rate, decay, epsilon)
        if isinstance(rate, np.ndarray) or self.arrays.on_device:
            rate = self._side_by_side(rate)
        direction, self.states[name] = method.step(self.states.get(name), gradient, Place(weight, rate, epsilon))
        _move(weight, direction, rate, decay)
        return NetByNet(direction)

    def _side_by_side(self, rate: Any) -> Any:
        """The rates of all nets, (D, 1, 1); on a device nan of those that are gone, so that nobody asks it who is.

        What is there once serves all weights of a step that have these rates.
        """
        rates = np.broadcast_to(rate, self.nets).reshape(-1, 1, 1)
        if not self.arrays.on_device:
            return self.arrays.moved(rates)
        if (key := rates.tobytes()) not in self._rates:
            gone = self.gone[:, None, None]
            self._rates[key] = self.arrays.xp.where(gone, np.nan, self.arrays.moved(rates))
        return self._rates[key]

    def _one_by_one(self, name: str, slope: Direction, rate: Any, decay: float, epsilon: float) -> Sequence[Direction]:
        """Net by net on the host, for optimizers that take no stacks; nets that are gone make no step."""
        states, directions = self.states.setdefault(name, [None] * self.nets), []
        weights, gone = on_host(self.weights[name]), on_host(self.gone)
        slope = brought(slope)
        for net, own_rate in enumerate(np.broadcast_to(rate, self.nets).tolist()):
            own, direction = weights[net], of_net(slope, net)
            if gone[net]:
                own[...] = np.nan
            else:
                place = Place(own, own_rate, epsilon)
                try:
                    direction, states[net] = self._methods[name].step(states[net], Gradient(direction), place)
                    _move(own, direction, own_rate, decay)
                except NoStep:
                    gone[net] = True
            directions.append(direction)
        if self.arrays.on_device:
            self.weights[name][...], self.gone = self.arrays.xp.asarray(weights), self.arrays.xp.asarray(gone)
        return directions


@dataclass(frozen=True)
class NetByNet(Sequence[Direction]):
    """The directions of all nets of one weight, each taken out of their stack when it is asked for."""

    stack: Direction

    def __len__(self) -> int:
        return self.stack.shape[0]

    def __getitem__(self, net: Any) -> Any:
        return of_net(self.stack, range(len(self))[net])


def _move(weights: Any, direction: Direction, rate: Any, decay: float) -> None:
    if decay:
        weights *= 1 - rate * decay
    move(weights, direction, rate)


def _square(slope: Direction, arrays: Arrays) -> Any:
    """The squared norm of every net's gradient, or a bound on it, (D,), in double precision."""
    if isinstance(slope, Factored):
        return _square(slope.left, arrays) * _square(slope.right, arrays)
    return arrays.squared_norms(slope.reshape(len(slope), -1))

"""The library's families once more, as a user of PyTorch writes them, with the same weights and layers."""

from itertools import count, pairwise

import torch
from torch import nn
from torch.nn import functional

from meanfield.simulation.training.data import drawn_weights


class Dense(nn.Module):
    """z <- W phi(z), or z + a W phi(z), ... over several weights; normalised behind each by what ``norm`` makes."""

    def __init__(self, weights, norm=nn.Identity, factor=None):
        super().__init__()
        self.weights, self.norms, self.factor = nn.ModuleList(weights), nn.ModuleList(norm() for _ in weights), factor

    def forward(self, stream):
        value = stream
        for weight, norm in zip(self.weights, self.norms, strict=True):
            value = norm(weight(functional.relu(value)))
        return value if self.factor is None else stream + self.factor * value


class Stack(nn.Module):
    """Layers one after the other, and a readout of the activated last one, averaged over sites."""

    def __init__(self, layers, readout):
        super().__init__()
        self.layers, self.readout = nn.ModuleList(layers), readout

    def forward(self, value):
        for layer in self.layers:
            value = layer(value)
        value = functional.relu(value)
        return self.readout(value.flatten(2).mean(2) if value.dim() > 2 else value)


def mlp(net, norm=False):
    widths = [net.first_channels, *[net.width] * net.depth]
    layers = [Dense([linear(*pair)], normalised(net.width, norm)) for pair in pairwise(widths)]
    return Stack(layers, linear(net.width, net.outputs))


def residual_mlp(net, norm=False):
    n, norms = net.width, normalised(net.width, norm)
    blocks = [Dense([linear(n, n) for _ in range(net.block_depth)], norms, 1.0) for _ in range(net.depth)]
    return Stack([Dense([linear(net.first_channels, n)], norms), *blocks], linear(n, net.outputs))


def conv_net(net, norm=False):
    channels = [net.first_channels, *[net.channels] * net.depth]
    pairs = pairwise(channels)
    layers = [Dense([convolution(net, *pair)], normalised(net.channels, norm, 2)) for pair in pairs]
    return Stack(layers, linear(net.channels, net.outputs))


def residual_conv_net(net, norm=False):
    n, norms = net.channels, normalised(net.channels, norm, 2)
    stem = Dense([convolution(net, net.first_channels, n)], norms)
    blocks = [Dense([convolution(net, n, n)], norms, 1.0) for _ in range(net.depth)]
    return Stack([stem, *blocks], linear(n, net.outputs))


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, bias=False)


def convolution(net, inputs, outputs):
    mode = {"zero": "zeros"}.get(net.padding, net.padding)
    return nn.Conv2d(inputs, outputs, net.kernel, padding="same", padding_mode=mode, bias=False)


def normalised(channels, norm, dims=1):
    kind = nn.BatchNorm2d if dims == 2 else nn.BatchNorm1d
    return (lambda: kind(channels, affine=False)) if norm else nn.Identity


class Attention(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.heads, self.causal = net.heads, net.causal
        self.query, self.key, self.value, self.out = (linear(net.width, net.width) for _ in range(4))

    def forward(self, stream):
        shape = (*stream.shape[:2], self.heads, -1)
        parts = [each(stream).view(shape).transpose(1, 2) for each in (self.query, self.key, self.value)]
        looked = functional.scaled_dot_product_attention(*parts, is_causal=self.causal)
        return self.out(looked.transpose(1, 2).reshape(stream.shape))


class Branch(nn.Module):
    """Adds to the stream, and normalises it before the branch or behind the sum."""

    def __init__(self, net, inner):
        super().__init__()
        self.inner, self.norm, self.is_pre = inner, plain_norm(net), net.norm == "pre"

    def forward(self, stream):
        if self.is_pre:
            return stream + self.inner(self.norm(stream))
        return self.norm(stream + self.inner(stream))


def plain_norm(net):
    return nn.LayerNorm(net.width, eps=0.0, elementwise_affine=False)


class Transformer(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.embedding = nn.Embedding(net.vocabulary, net.width) if net.vocabulary else None
        ffn = [
            nn.Sequential(linear(net.width, net.hidden_units), nn.ReLU(), linear(net.hidden_units, net.width))
            for _ in range(net.depth)
        ]
        self.layers = nn.ModuleList(
            Branch(net, inner) for feed_forward in ffn for inner in (Attention(net), feed_forward)
        )
        self.norm = plain_norm(net) if net.norm == "pre" else nn.Identity()
        self.readout, self.pools = linear(net.width, net.outputs), net.readout == "pooled"

    def forward(self, inputs):
        stream = inputs.transpose(1, 2) if self.embedding is None else self.embedding(inputs)
        for layer in self.layers:
            stream = layer(stream)
        stream = self.norm(stream)
        return self.readout(stream.mean(1)) if self.pools else self.readout(stream).transpose(1, 2)


class Loop(nn.Module):
    """One module that is called again and again."""

    def __init__(self, net):
        super().__init__()
        self.step, self.times = Dense([linear(net.width, net.width)], factor=net.step_size), net.depth

    def forward(self, stream):
        for _ in range(self.times):
            stream = self.step(stream)
        return stream


def factory(net, make, seed=0):
    """A function that makes the twin with the weights of draw 0, 1, ... of the net."""
    numbers = count()

    def made():
        model, draw = make(net).double(), next(numbers)
        loaded(model, [each[0] for each in drawn_weights(net, seed, range(draw, draw + 1)).values()])
        return model

    return made


def loaded(model, weights):
    """Matrices of the library's layout as the parameters of a twin."""
    tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    with torch.no_grad():
        for parameter, weight in zip(model.parameters(), weights, strict=True):
            matrix = weight.T if id(parameter) in tables else weight
            parameter.copy_(torch.as_tensor(matrix.reshape(parameter.shape)))

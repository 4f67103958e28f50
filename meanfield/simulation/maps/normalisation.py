"""Normalisation over the channels of every sample and site."""

from typing import Any

from meanfield.nets.maps import Normalisation
from meanfield.simulation.maps.base import Setting, SymmetricOperation


class NormalisationOperation(SymmetricOperation):
    """y = (x - m) / s ("layer") or x / s ("rms"), with the Jacobian (P - y y' / C) / s (Zhang et al. 2026).

    P takes the mean out ("layer") or nothing ("rms").
    """

    lends = True

    def degree(self, spec: Normalisation) -> int | None:
        return None if spec.epsilon else 0

    def kept(self, spec: Normalisation, below: int, sites: int) -> int:
        return 1

    def forward(self, spec: Normalisation, values: Any, setting: Setting) -> tuple[Any, tuple[Any, Any]]:
        xp = setting.arrays.xp
        centred = values - _mean(values) if spec.kind == "layer" else values
        square = _mean(centred * centred) + spec.epsilon
        asked = setting.arrays.normals is None and not setting.arrays.lenient  # a device would have to wait
        if asked and not square.all():
            raise ValueError(
                f"normalisation {spec.kind!r} divides by the size of values, which is 0 at some sample and site of "
                "some draw; give other inputs (or weights)"
            )
        inverse = 1 / xp.sqrt(square)
        normalised = centred * inverse
        return normalised, (normalised, inverse)

    def tangent(self, spec: Normalisation, values: Any, kept: Any, moved: Any, setting: Setting) -> Any:
        normalised, inverse = (side[:, :, None] for side in kept)
        columns = setting.by_sample(moved)
        along = normalised * columns
        setting.arrays.xp.multiply(normalised, _mean(along), out=along)
        along -= columns - _mean(columns) if spec.kind == "layer" else columns
        along *= -inverse
        return along.reshape(moved.shape)


def _mean(values: Any) -> Any:
    """Over channels, which keep their axis."""
    return values.mean(axis=1)[:, None]

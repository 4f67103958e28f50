"""Linear algebra of updates: matrices of low rank, polar factors, norms, and leading singular values.

A gradient of B samples is left @ right.T with B columns on each side, and so are momenta and preconditioners built
from it: after t steps their rank is t B at most. With factors an n x n update costs n (t B)^2 instead of n^3, and is
exact. Once factors have as many numbers as the matrix, they are multiplied out for good.

The polar factor U V^T of a gradient U S V^T comes by singular values or by Newton-Schulz iterations. Largest singular
values of W + L C R^T for one matrix W and many small C come out of one growing space of vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs
from scipy.linalg.lapack import dsyevd
from scipy.sparse.linalg import LinearOperator, eigsh

from meanfield.common.array_libraries import is_on_host, library_of, multiply_into, on_host
from meanfield.common.validation import Array

# Numbers that work in a cache takes at a time, few enough for its intermediate results to stay there. For elements of
# matrices of 1024 x 1024, fresh memory would cost more than the arithmetic.
AT_A_TIME = 1 << 15

# Columns that LAPACK's factorisations take together, for which they want room.
LAPACK_BLOCK = 32


def rounding(values: Array) -> float:
    """At this precision, singular values below this share of the largest are zeros up to rounding."""
    return 1e-10 if values.dtype == np.float64 else 1e-5


@dataclass(frozen=True)
class Factored:
    """The matrix left @ right.T, (n_out, n_in), by its factors (n_out, r) and (n_in, r); or a stack of such matrices,
    with one more axis in front.
    """

    left: Array
    right: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return *self.left.shape[:-1], self.right.shape[-2]

    @property
    def rank(self) -> int:
        """r, which the rank of the matrix is at most."""
        return self.left.shape[-1]

    def __getitem__(self, block: Any) -> Array:
        """A block of the matrices, multiplied out: (which of a stack, which rows), or (which rows,)."""
        *nets, rows = block
        return self.left[(*nets, rows)] @ self.right[tuple(nets)].swapaxes(-1, -2)

    def of_net(self, net: int) -> Factored:
        """One matrix of a stack."""
        return Factored(self.left[net], self.right[net])

    def dense(self) -> Array:
        return self.left @ self.right.swapaxes(-1, -2)

    def times(self, scale: float) -> Factored:
        return Factored(scale * self.left, self.right)

    def plus(self, other: Factored) -> Factored:
        """The sum, of rank at most both ranks together."""
        sides = (self.left, other.left), (self.right, other.right)
        return Factored(*(library_of(side[0]).concatenate(side, axis=-1) for side in sides))

    def core(self) -> tuple[Array, Array, Array]:
        """Orthonormal columns on the left, a small matrix, orthonormal columns on the right."""
        (left, above), (right, below) = thin_qr(self.left), thin_qr(self.right)
        return left, above @ below.swapaxes(-1, -2), right

    def spectral_norm(self) -> float:
        """Largest singular value, to rounding."""
        return float(np.linalg.norm(self.core()[1], 2))


Direction = Array | Factored


def is_worth_factors(shape: tuple[int, ...], rank: int) -> bool:
    """Whether factors of that many columns are fewer numbers than the matrix (n_out, n_in)."""
    outputs, inputs = shape[-2:]
    return rank * (outputs + inputs) < outputs * inputs


def scaled(direction: Direction, factor: float) -> Direction:
    """factor times a matrix, in the same form."""
    return direction.times(factor) if isinstance(direction, Factored) else factor * direction


def dense(direction: Direction) -> Array:
    return direction.dense() if isinstance(direction, Factored) else direction


def brought(direction: Direction) -> Direction:
    """The direction in NumPy's arrays, on the host."""
    if isinstance(direction, Factored):
        return Factored(on_host(direction.left), on_host(direction.right))
    return on_host(direction)


def of_net(direction: Direction, net: int) -> Direction:
    """The direction of one net of a stack."""
    return direction.of_net(net) if isinstance(direction, Factored) else direction[net]


def singular(matrix: Direction) -> tuple[Array, Array, Array]:
    """Compact singular value decomposition (U, s, V) with columns of U and V, s descending and not zero."""
    if isinstance(matrix, Factored):
        left, middle, right = matrix.core()
        u, s, v = np.linalg.svd(middle)
        kept = slice(_rank(s))
        return left @ u[:, kept], s[kept], right @ v[kept].T
    u, s, v = np.linalg.svd(matrix, full_matrices=False)
    kept = slice(_rank(s))
    return u[:, kept], s[kept], v[kept].T


def _rank(values: Array) -> int:
    return int(np.count_nonzero(values > rounding(values) * values[0])) if values.size else 0


def thin_qr(columns: Array) -> tuple[Array, Array]:
    """Orthonormal columns Q and the upper triangle R of a matrix Q R, or of every one of a stack.

    Of one matrix by LAPACK directly: for few columns NumPy's overhead takes longer than the work.
    """
    if columns.ndim > 2 or not is_on_host(columns):
        basis, triangle = library_of(columns).linalg.qr(columns)
        return basis, triangle
    factorise, form = _routines(columns.dtype.char)
    rank = min(columns.shape)
    packed, scales, _, _ = factorise(columns, lwork=LAPACK_BLOCK * max(1, columns.shape[1]))
    basis, _, _ = form(packed[:, :rank], scales, lwork=LAPACK_BLOCK * max(1, rank))
    return basis, packed[:rank] * _upper(rank, columns.shape[1], columns.dtype.char)


@lru_cache
def _routines(kind: str) -> tuple[Any, Any]:
    return tuple(get_lapack_funcs(("geqrf", "orgqr"), dtype=kind))


@lru_cache
def _upper(rows: int, columns: int, kind: str) -> Array:
    return np.triu(np.ones((rows, columns), kind))


def add_momentum(momentum: Direction | None, decay: float, gradient: Direction, share: float) -> Direction:
    """decay momentum + share gradient, as factors while these are worth it; a decay of zero forgets the momentum."""
    new = scaled(gradient, share)
    if momentum is None or decay == 0:
        return new
    kept = scaled(momentum, decay)
    if isinstance(kept, Factored) and isinstance(new, Factored) and is_worth_factors(new.shape, kept.rank + new.rank):
        return kept.plus(new)
    return dense(kept) + dense(new)


# Jordan's quintic: it brings singular values in (0.003, 1] to about 0.7 .. 1.2 in five steps, not to 1.
QUINTIC = (3.4445, -4.7750, 2.0315)


def polar_factor(matrix: Direction) -> Factored:
    """U V^T on the support of the matrix, exactly (Zheng et al. 2026, C.4); of a stack, each.

    Matrices of a stack may differ in rank, so that columns of zeros stand where one has singular values of zero. One
    that is not finite gives nan.
    """
    if isinstance(matrix, Factored):
        left, core, right = matrix.core()
        inner = polar_factor(core)
        return Factored(left @ inner.left, right @ inner.right)
    xp = library_of(matrix)
    finite = xp.isfinite(xp.abs(matrix).max(axis=(-2, -1)))[..., None]
    u, values, v = xp.linalg.svd(xp.where(finite[..., None], matrix, 0.0), full_matrices=False)
    kept = xp.where(finite, values > rounding(values) * values[..., :1], np.nan).astype(matrix.dtype)
    return Factored(u * kept[..., None, :], v.swapaxes(-1, -2))


def newton_schulz(matrix: Direction, steps: int) -> Direction:
    """X <- a X + b X X^T X + c (X X^T)^2 X from X = G / |G|_F, the polar factor as Muon computes it; of a stack, each.

    An odd polynomial acts on singular values alone, so that iterating the small core between orthonormal bases is
    iterating the whole matrix.
    """
    if isinstance(matrix, Factored):
        left, core, right = matrix.core()
        return Factored(left @ _iterated(core, steps), right)
    if matrix.shape[-2] > matrix.shape[-1]:
        return _iterated(matrix.swapaxes(-1, -2), steps).swapaxes(-1, -2)
    return _iterated(matrix, steps)


def _iterated(matrix: Array, steps: int) -> Array:
    """The iteration on a matrix or a stack, which is cheapest with no more rows than columns.

    As many matrices at a time as a core's cache holds with what is made of them, or all of them on a device.
    """
    rows, columns = matrix.shape[-2:]
    stack = matrix.reshape(-1, rows, columns)
    together = max(1, AT_A_TIME // (rows * columns)) if is_on_host(stack) else len(stack)
    made = library_of(stack).empty_like(stack, order="C")
    for first in range(0, len(stack), together):
        part = slice(first, first + together)
        made[part] = _quintic(stack[part], steps)
    return made.reshape(matrix.shape)


def _quintic(stack: Array, steps: int) -> Array:
    """The iteration on matrices (nets, rows, columns) that the cache holds, in arrays that all steps share."""
    (a, b, c), each, size, xp = QUINTIC, (-2, -1), stack.shape[1], library_of(stack)
    smallest = float(np.finfo(stack.dtype).tiny)
    # Squares of the smallest numbers would vanish.
    largest = xp.maximum(xp.abs(stack).max(axis=each, keepdims=True), smallest)
    x = xp.divide(stack, largest, out=xp.empty_like(stack, order="C"))
    x /= xp.maximum(xp.sqrt(xp.square(x).sum(axis=each, keepdims=True)), smallest)
    after, square = xp.empty_like(x), xp.empty((len(x), size, size), dtype=x.dtype)
    factor = xp.empty_like(square)
    diagonal = factor.reshape(len(x), -1)[:, :: size + 1]
    for _ in range(steps):
        multiply_into(square, x, x.swapaxes(-1, -2))
        multiply_into(factor, square, square)
        factor *= c
        factor += xp.multiply(square, b, out=square)
        diagonal += a
        multiply_into(after, factor, x)
        x, after = after, x
    return x


# Up to this size LAPACK is cheaper than Lanczos, whose steps each visit the whole matrix twice.
DIRECT = 112


def spectral_norm(matrix: Array | Factored, tolerance: float = 1e-7) -> float:
    """Largest singular value of a matrix, to the relative tolerance; of a factored one, to rounding.

    From the Gram matrix of the smaller side: all its eigenvalues by LAPACK, whose search for the largest alone may come
    back with none where several are as large, or, of large matrices, the largest by Lanczos iterations.
    """
    if isinstance(matrix, Factored):
        return matrix.spectral_norm()
    tall = (matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T).astype(float, copy=False)
    size = tall.shape[1]
    if size <= DIRECT:
        square = np.linalg.eigvalsh(tall.T @ tall)[-1]
    else:
        gram = LinearOperator((size, size), matvec=lambda x: tall.T @ (tall @ x), dtype=float)
        # A fixed start without symmetry: signs may add up to exactly zero against a vector of ones.
        start = np.cos(np.arange(size) ** 2 + 1.0)
        (square,) = eigsh(gram, k=1, which="LA", v0=start, tol=tolerance, return_eigenvectors=False)
    return float(np.sqrt(max(square, 0.0)))


def rms_operator_norm(matrix: Array | Factored, tolerance: float = 1e-7) -> float:
    """sqrt(n_in / n_out) times the spectral norm: by how much a root mean square over units can grow at most.

    Source: Zheng et al. 2026, section 2.1.
    """
    outputs, inputs = matrix.shape
    return float(np.sqrt(inputs / outputs)) * spectral_norm(matrix, tolerance)


def stable_rank(matrix: Array | Factored, tolerance: float = 1e-4) -> float:
    """|A|_F^2 / |A|_2^2, to the relative tolerance: at most the rank; nan of a matrix that is zero or not finite."""
    if isinstance(matrix, Factored):
        squares = float(np.sum((matrix.left.T @ matrix.left) * (matrix.right.T @ matrix.right)))
    else:
        squares = float(np.sum(np.square(matrix)))
    if not 0 < squares < np.inf:
        return np.nan
    return squares / spectral_norm(matrix, tolerance) ** 2


# Vectors that a space starts from and passes on: near the edge of a wide matrix several may take turns as the largest.
KEPT = 6
# Ritz vectors whose residuals join the space at a time, the largest and its nearest rival: of
# the largest alone the space could stop short of a singular value that a step has lifted above it.
JOINING = 2
# What is left of a vector once the space is taken out of it, relative to it, that is rounding.
DEPENDENT = 1e-10
# Vectors that a space has room for at first.
ROOM = 24
SMALLEST = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Top:
    """The largest singular value of W + L C R^T, its vectors u and v, and what L and R see of them, L^T u and R^T v."""

    value: float
    u: Array
    v: Array
    left: Array
    right: Array


class RitzSpace:
    """Right vectors V with W V, in which the top of W + L C R^T is sought for one small C after another.

    L C R^T adds algebra of small matrices only. The residual of a candidate takes a product with W; it joins the space
    as long as the top is not known to the tolerance. The next C, near the last, needs few vectors more. A guess must
    come close to every vector that may become the top: directions orthogonal to it, to L and to R are not searched.

    Attributes:
        left, right: L (n_out, a) and R (n_in, b), orthonormal columns; `admit` adds to them.
    """

    def __init__(self, matrix: Array, left: Array, right: Array, guess: Array | None = None) -> None:
        self.left, self.right, self._matrix = left, right, matrix
        outputs, inputs = matrix.shape
        # Rows of V^T and (W V)^T, with room for more; of small ones (W V)^T W V, L^T W V and R^T V.
        self._known, self._basis, self._images = 0, np.empty((ROOM, inputs)), np.empty((ROOM, outputs))
        self._squares = np.empty((0, 0))
        self._seen_left, self._seen_right = np.empty((left.shape[1], 0)), np.empty((right.shape[1], 0))
        # Without a guess, vectors without symmetry: signs may add up to exactly zero against a vector of ones.
        self._grow(np.cos(np.arange(inputs * KEPT) ** 2.0 + 1).reshape(inputs, KEPT).T if guess is None else guess)
        self._vectors = np.eye(self._known)[:, -KEPT:]

    @property
    def guess(self) -> Array:
        """What a space for a neighbouring matrix may start from: the Ritz vectors that were found last, as rows."""
        return self._vectors.T @ self._basis[: len(self._vectors)]

    def top(self, core: Array, tolerance: float) -> Top:
        """The largest singular triple for C = core, its square to the relative tolerance."""
        while True:
            turned = core @ self._seen_right
            cross = self._seen_left.T @ turned
            squares, vectors = eigen(self._squares + cross + cross.T + turned.T @ turned)
            top, residual = self._found(vectors[:, -1], squares[-1], turned, core)
            settled = _settled(squares, _length(residual), tolerance)
            if not settled:
                others = range(2, 1 + min(JOINING, len(squares)))
                rest = [self._found(vectors[:, -i], squares[-i], turned, core)[1] for i in others]
                settled = not self._grow(np.stack([residual, *rest]))
            if settled:
                self._vectors = vectors[:, -KEPT:]
                return top

    def _found(self, chosen: Array, square: float, turned: Array, core: Array) -> tuple[Top, Array]:
        """One Ritz vector, and its residual: (W + L C R^T)^T of its image minus the eigenvalue times the vector."""
        moved, known = turned @ chosen, slice(self._known)
        image, v = chosen @ self._images[known] + self.left @ moved, chosen @ self._basis[known]
        seen = self._seen_left @ chosen + moved
        residual = image @ self._matrix + self.right @ (seen @ core) - square * v
        value = _length(image)
        size = max(value, SMALLEST)
        return Top(value, image / size, v, seen / size, self._seen_right @ chosen), residual

    def admit(self, u: Array, v: Array, least: float) -> None:
        """Add to L and R what of these vectors is outside of them, as a column each, unless it is below ``least``."""
        new, known = (_outside(self.left.T, u), _outside(self.right.T, v)), slice(self._known)
        if _length(new[0]) > least:
            column = _unit(self.left.T, new[0])
            self.left = np.column_stack([self.left, column])
            self._seen_left = np.vstack([self._seen_left, self._images[known] @ column])
        if _length(new[1]) > least:
            column = _unit(self.right.T, new[1])
            self.right = np.column_stack([self.right, column])
            self._seen_right = np.vstack([self._seen_right, self._basis[known] @ column])

    def _grow(self, vectors: Array) -> bool:
        """Add vectors, as rows, the most important first, to the space; False if it holds them already."""
        vectors = vectors / np.maximum(np.sqrt(np.einsum("ij,ij->i", vectors, vectors)), SMALLEST)[:, None]
        held = self._basis[: self._known]
        columns, lengths = thin_qr(_outside(held, _outside(held, vectors)).T)
        rows = columns.T[np.abs(np.diagonal(lengths)) > DEPENDENT]
        if len(rows):
            self._keep(rows, rows @ self._matrix.T)
        return bool(len(rows))

    def _keep(self, rows: Array, images: Array) -> None:
        """Keep new vectors, their images and their products with what is known."""
        before, self._known = self._known, self._known + len(rows)
        if self._known > len(self._basis):
            self._basis, self._images = (np.vstack([rows, np.empty_like(rows)]) for rows in (self._basis, self._images))
        self._basis[before : self._known], self._images[before : self._known] = rows, images
        squares = np.empty((self._known, self._known))
        squares[:before, :before] = self._squares
        squares[before:] = images @ self._images[: self._known].T
        squares[:before, before:] = squares[before:, :before].T
        self._squares = squares
        self._seen_left = np.hstack([self._seen_left, self.left.T @ images.T])
        self._seen_right = np.hstack([self._seen_right, self.right.T @ rows.T])


def eigen(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of a small symmetric matrix."""
    values, vectors, failed = dsyevd(matrix)
    if failed:
        raise np.linalg.LinAlgError("eigenvalues of a small symmetric matrix did not converge")
    return values, vectors


def _settled(squares: Array, residual: float, tolerance: float) -> bool:
    """Whether the largest of these Ritz values is an eigenvalue to the relative tolerance.

    Its error is below the residual, and below the residual's square over the distance to the next eigenvalue (Kato and
    Temple); a quarter of the distance is granted, as the next Ritz value may still rise.
    """
    granted = tolerance * squares[-1]
    gap = squares[-1] - squares[-2] if len(squares) > 1 else 0.0
    return bool(residual <= max(granted, np.sqrt(granted * gap / 4)))


def _length(vector: Array) -> float:
    return float(np.sqrt(vector @ vector))


def _outside(basis: Array, vectors: Array) -> Array:
    """What of vectors, or of rows of them, is orthogonal to the rows of a basis."""
    return vectors - (vectors @ basis.T) @ basis


def _unit(basis: Array, vector: Array) -> Array:
    """A vector outside the basis to rounding, of length one."""
    again = _outside(basis, vector / _length(vector))
    return again / _length(again)

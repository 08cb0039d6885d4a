"""Products of two matrices that are kept apart: the circuits of a head, of the rank of its size."""

from typing import Optional, Tuple

import numpy as np

from .errors import InvalidArgument


class FactoredMatrix:
    """A (…, L, M) times B (…, M, R), with M the smaller (TransformerLens: ``FactoredMatrix``; Elhage
    et al. 2021). Its SVD costs what matrices of M rows cost.

        ov = model.OV[4, 2]                    # (C, C), of rank at most D
        ov.eigenvalues, ov.svd()[1][:5]
        (model.W_E @ ov @ model.W_U).AB        # computed only here

    As in TransformerLens, ``svd()`` is (U, S, V) with A·B = U·diag(S)·Vᵀ, and ``Vh`` is that V.
    """

    def __init__(self, A, B):
        self.A, self.B = np.asarray(A), np.asarray(B)
        if self.A.ndim < 2 or self.B.ndim < 2 or self.A.shape[-1] != self.B.shape[-2]:
            raise InvalidArgument(f"factors of the shapes {self.A.shape} and {self.B.shape} have no "
                                  "product")
        self.ldim, self.mdim = self.A.shape[-2:]
        self.rdim = self.B.shape[-1]
        leading = np.broadcast_shapes(self.A.shape[:-2], self.B.shape[:-2])
        self.A = np.broadcast_to(self.A, leading + self.A.shape[-2:])
        self.B = np.broadcast_to(self.B, leading + self.B.shape[-2:])
        self._svd: Optional[Tuple[np.ndarray, np.ndarray, np.ndarray]] = None

    @property
    def shape(self) -> Tuple[int, ...]:
        return self.A.shape[:-2] + (self.ldim, self.rdim)

    @property
    def ndim(self) -> int:
        return self.A.ndim

    @property
    def has_leading_dims(self) -> bool:
        return self.ndim > 2

    @property
    def pair(self) -> Tuple[np.ndarray, np.ndarray]:
        return self.A, self.B

    @property
    def AB(self) -> np.ndarray:
        """The product, (…, L, R)."""
        return self.A @ self.B

    @property
    def BA(self) -> np.ndarray:
        """(…, M, M), which has the eigenvalues of the product that are not 0."""
        if self.ldim != self.rdim:
            raise InvalidArgument(f"B·A needs a square product, not one of {self.ldim} x {self.rdim}")
        return self.B @ self.A

    @property
    def T(self) -> "FactoredMatrix":
        return FactoredMatrix(np.swapaxes(self.B, -1, -2), np.swapaxes(self.A, -1, -2))

    def __matmul__(self, other):
        if isinstance(other, FactoredMatrix):
            return (self @ other.A) @ other.B
        other = np.asarray(other)
        if other.ndim < 2:
            return (self.A @ (self.B @ other)[..., None])[..., 0]
        if other.shape[-1] > self.mdim:
            return FactoredMatrix(self.A, self.B @ other)
        return FactoredMatrix(self.AB, other)

    def __rmatmul__(self, other):
        other = np.asarray(other)
        if other.ndim < 2:
            return ((other @ self.A)[..., None, :] @ self.B)[..., 0, :]
        if other.shape[-2] > self.mdim:
            return FactoredMatrix(other @ self.A, self.B)
        return FactoredMatrix(other, self.AB)

    # NumPy's own products would take the factors for a number.
    __array_ufunc__ = None

    def __mul__(self, factor):
        if np.ndim(factor) > 0:
            raise InvalidArgument("a factored matrix is multiplied by a number, or with @")
        return FactoredMatrix(self.A * factor, self.B)

    __rmul__ = __mul__

    def __getitem__(self, index) -> "FactoredMatrix":
        """Of the leading dimensions, and of rows and columns after them."""
        index = index if isinstance(index, tuple) else (index,)
        leading = self.ndim - 2
        if len(index) <= leading:
            return FactoredMatrix(self.A[index], self.B[index])
        if len(index) > self.ndim or any(part is Ellipsis for part in index):
            raise InvalidArgument(f"{len(index)} indices of {self.ndim} dimensions")
        row = index[leading]
        column = index[leading + 1] if len(index) > leading + 1 else slice(None)
        row, column = (slice(part, part + 1 or None) if isinstance(part, (int, np.integer)) else part
                       for part in (row, column))
        return FactoredMatrix(self.A[index[:leading] + (row, slice(None))],
                              self.B[index[:leading] + (slice(None), column)])

    def unsqueeze(self, k: int) -> "FactoredMatrix":
        return FactoredMatrix(np.expand_dims(self.A, k), np.expand_dims(self.B, k))

    def svd(self) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        """U (…, L, M), S (…, M), V (…, R, M)."""
        if self._svd is None:
            left, of_a = np.linalg.qr(self.A)
            right, of_b = np.linalg.qr(np.swapaxes(self.B, -1, -2))
            u, s, vh = np.linalg.svd(of_a @ np.swapaxes(of_b, -1, -2), full_matrices=False)
            self._svd = (left @ u, s, right @ np.swapaxes(vh, -1, -2))
        return self._svd

    @property
    def U(self) -> np.ndarray:
        return self.svd()[0]

    @property
    def S(self) -> np.ndarray:
        return self.svd()[1]

    @property
    def Vh(self) -> np.ndarray:
        return self.svd()[2]

    @property
    def eigenvalues(self) -> np.ndarray:
        """(…, M), complex: those that are not 0 by rank alone."""
        return np.linalg.eigvals(self.BA)

    def norm(self) -> np.ndarray:
        """The Frobenius norm, (…)."""
        return np.sqrt((np.float64(self.S) ** 2).sum(-1))

    def make_even(self) -> "FactoredMatrix":
        """Factors of the same singular values."""
        root = np.sqrt(self.S)
        return FactoredMatrix(self.U * root[..., None, :],
                              root[..., :, None] * np.swapaxes(self.Vh, -1, -2))

    def collapse_l(self) -> np.ndarray:
        """(…, M, R): of the same singular values and right sides."""
        return self.S[..., :, None] * np.swapaxes(self.Vh, -1, -2)

    def collapse_r(self) -> np.ndarray:
        """(…, L, M): of the same singular values and left sides."""
        return self.U * self.S[..., None, :]

    def get_corner(self, k: int = 3) -> np.ndarray:
        return self.A[..., :k, :] @ self.B[..., :, :k]

    def __repr__(self):
        return f"FactoredMatrix of {self.shape}, of rank at most {self.mdim}"


def composition_scores(left: FactoredMatrix, right: FactoredMatrix) -> np.ndarray:
    """‖left·right‖ / (‖left‖·‖right‖), Frobenius norms, of every left one with every right one: the
    leading dimensions of ``left``, then those of ``right`` (Elhage et al. 2021)."""
    if left.rdim != right.ldim:
        raise InvalidArgument(f"{left.rdim} columns and {right.ldim} rows have no product")
    rows = left.collapse_l().reshape(-1, left.mdim, left.rdim)
    columns = right.collapse_r().reshape(-1, right.ldim, right.mdim)
    flat = np.concatenate(list(columns), axis=1)
    scores = np.empty((len(rows), len(columns)), rows.dtype)
    for i, row in enumerate(rows):
        products = (row @ flat).reshape(left.mdim, len(columns), right.mdim)
        scores[i] = np.sqrt((products ** 2).sum((0, 2)))
    scores /= np.linalg.norm(rows, axis=(1, 2))[:, None]
    scores /= np.linalg.norm(columns, axis=(1, 2))[None]
    return scores.reshape(left.shape[:-2] + right.shape[:-2])

"""Orientations of E bodies: quaternions w x y z, rotation matrices row by row [E, 9], roll pitch yaw [E, 3]."""

from collections.abc import Sequence

import numpy as np

# Entry by entry R = I + s_1 2 q_i q_j + s_2 2 q_k q_l; the products of w x y z are numbered 4 i + j.
_PRODUCTS = np.array([10, 6, 7, 6, 5, 11, 7, 11, 5] + [15, 3, 2, 3, 15, 1, 2, 1, 10])
_SIGNS = 2.0 * np.array([-1, 1, 1, 1, -1, 1, 1, 1, -1] + [-1, -1, 1, 1, -1, -1, -1, 1, -1])
_IDENTITY = np.eye(3).ravel()


def rotation_of(quaternion: np.ndarray, out: np.ndarray) -> None:
    """The rotation matrices of unit quaternions."""
    products = (quaternion[:, :, None] * quaternion[:, None, :]).reshape(-1, 16)
    parts = products.take(_PRODUCTS, 1)
    parts *= _SIGNS
    np.add(parts[:, :9], parts[:, 9:], out=out)
    out += _IDENTITY


def euler_of(rotation: Sequence[np.ndarray], out: Sequence[np.ndarray]) -> None:
    """Roll, pitch, yaw of R = Rz(yaw) Ry(pitch) Rx(roll); both arguments as their columns, [E] each."""
    r00, _, _, r10, _, _, r20, r21, r22 = rotation
    roll, pitch, yaw = out
    np.arctan2(r21, r22, out=roll)
    np.arctan2(-r20, np.hypot(r21, r22), out=pitch)
    np.arctan2(r10, r00, out=yaw)


def quaternion_of(roll: float, pitch: float, yaw: float) -> np.ndarray:
    """The quaternion of one orientation."""
    half = np.array([roll, pitch, yaw]) / 2
    (cr, cp, cy), (sr, sp, sy) = np.cos(half), np.sin(half)
    w, x = cr * cp * cy + sr * sp * sy, sr * cp * cy - cr * sp * sy
    return np.array([w, x, cr * sp * cy + sr * cp * sy, cr * cp * sy - sr * sp * cy])

"""Arrays of files that others may have written, cut or changed: what is wrong with one is a line with its name."""

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ZIP_MAGIC = b"PK\x03\x04"
SMALL = 256 * 2**20  # bytes; more than that is unpacked only
SWELLING = 20  # times the size of the archive


def read_npz(path: Path, needs: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """The arrays of an `.npz` by name, with at least those in `needs`; nothing is unpickled."""
    check_archive(path)
    arrays = {}
    with np.load(path, allow_pickle=False) as file:
        for name in file.files:
            try:
                arrays[name] = np.asarray(file[name])  # a member that is no array reads as bytes
            except Exception as error:  # zipfile, zlib and numpy raise almost anything on damage
                objects = "Object arrays" in str(error)
                got = "holds Python objects" if objects else f"cannot be read ({error})"
                raise ValueError(f"{path}: {name} {got}; expected an array of numbers") from None
    missing = [name for name in needs if name not in arrays]
    if missing:
        raise ValueError(f"{path}: there is no array {missing[0]!r} in it")
    return arrays


def check_archive(path: Path) -> None:
    """Refuse what is no zip archive, pickles above all, and what would unpack to far more than it is."""
    with open(path, "rb") as file:
        begins = file.read(len(ZIP_MAGIC))
    if begins != ZIP_MAGIC:
        raise ValueError(
            f"{path}: not an .npz file; expected one written by numpy.savez "
            "(pickles and other formats are never opened)"
        )
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except Exception as error:
        raise ValueError(f"{path}: not a readable .npz file: {error}") from error
    packed = Path(path).stat().st_size
    if size > max(SMALL, SWELLING * packed):
        raise ValueError(f"{path}: its {packed:,} bytes would unpack to {size:,}; it is not unpacked")

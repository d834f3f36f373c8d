"""Mistakes, which trying again repeats, and troubles of the machine, which may pass."""

import errno

MISTAKE, TROUBLE = 2, 75  # exit codes
NAMES = ("ENOSPC", "EDQUOT", "EIO", "EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "ESTALE", "ETIMEDOUT")
PASSING = {getattr(errno, name) for name in NAMES}


def exit_code(error: BaseException) -> int:
    """A full disk, a file server that does not answer, too little memory: 75; anything else: 2."""
    passing = isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in PASSING)
    return TROUBLE if passing else MISTAKE

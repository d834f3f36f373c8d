"""Mistakes, which trying again repeats, and troubles of the machine, which may pass."""

import errno

MISTAKE, TROUBLE = 2, 75  # exit codes
PASSING = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.EAGAIN,
    errno.ESTALE,
    errno.ETIMEDOUT,
}


def exit_code(error: BaseException) -> int:
    """A full disk, a file server that does not answer, too little memory: 75; anything else: 2."""
    passing = isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in PASSING)
    return TROUBLE if passing else MISTAKE

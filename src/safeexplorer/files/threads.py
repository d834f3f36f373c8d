"""How many threads a process computes with."""

import os

from threadpoolctl import threadpool_limits


def use_one_thread() -> None:
    """One thread per process, for repeatable sums and many runs side by side.

    JAX reads its flags when it is first imported; numpy is loaded by now, so its threads are limited in place.
    """
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    threadpool_limits(1)

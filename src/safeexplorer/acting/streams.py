"""Random generators, one per robot, and their state as plain numbers."""

import numpy as np

# Of 64 bits: a PCG64's state and increment (128 bits each), a buffered draw and whether there is one.
WORDS = 6


def spawn(seed: int | None, count: int) -> list[np.random.Generator]:
    """Independent generators; number i does not depend on how many there are."""
    return [
        np.random.Generator(np.random.PCG64(child)) for child in np.random.SeedSequence(seed).spawn(count)
    ]


def words_of(rng: np.random.Generator) -> list[int]:
    state = rng.bit_generator.state
    words = [part >> shift & (2**64 - 1) for part in state["state"].values() for shift in (0, 64)]
    return [*words, state["has_uint32"], state["uinteger"]]


def generator_of(words: np.ndarray) -> np.random.Generator:
    low, high, increment_low, increment_high, has_uint32, uinteger = (int(word) for word in words)
    generator = np.random.PCG64()
    generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": low | high << 64, "inc": increment_low | increment_high << 64},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
    return np.random.Generator(generator)

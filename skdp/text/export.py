"""Files of vectors."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["save_word2vec"]


def save_word2vec(
    path: str | PathLike[str], vocabulary: Mapping[str, int], vectors: NDArray[np.float32]
) -> None:
    """Write words and vectors as text, a line each, with the digits that float32 needs."""
    if not all(word and word.split() == [word] for word in vocabulary):
        raise ValueError("a word is empty or holds white space, which the format cannot say")
    lines = [f"{len(vocabulary)} {vectors.shape[1]}"]
    lines += [
        " ".join([word, *(f"{x:.9g}" for x in vectors[row].tolist())])
        for word, row in vocabulary.items()
    ]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")

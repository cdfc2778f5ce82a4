"""Files of vectors."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def save_word2vec(path: str | PathLike[str], vocabulary: Mapping[str, int], vectors: NDArray[np.float32]) -> None:
    """Write words and vectors as text, a line each, with the digits that float32 needs."""
    for word in vocabulary:  # public or released, so it may be named
        if word.split() != [word]:
            raise ValueError(
                f"the format cannot hold the word {word!r}, which is empty or has white space: fit with another "
                "form of it, such as 'New_York'"
            )
        try:
            word.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(
                f"the word {word!r} has half of a pair of surrogates, which UTF-8 cannot hold: fit with texts "
                "that were decoded in full"
            ) from None
    lines = [f"{len(vocabulary)} {vectors.shape[1]}"]
    lines += [" ".join([word, *(f"{x:.9g}" for x in vectors[row].tolist())]) for word, row in vocabulary.items()]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")

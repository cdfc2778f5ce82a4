"""Batch normalization, which private training cannot have."""


class BatchNorm:
    """Refused: batch normalization mixes records, so no record's gradient is a function of this record alone.

    Raises
    ------
    ValueError
        Always. `GroupNorm` and `LayerNorm` treat each record by itself.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise ValueError(
            "BatchNorm mixes the records of a batch, so the gradient of one record cannot be clipped; use "
            "GroupNorm, which treats each record by itself"
        )

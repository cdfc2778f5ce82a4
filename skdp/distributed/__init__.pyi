from .blocks import DaskBlocks as DaskBlocks
from .blocks import blocks_of as blocks_of
from .buckets import bucketed as bucketed

"""Links between several parties of one process, for tests of protocols."""

from skdp.multiparty.transport.memory import memory_pair


def memory_links(n, *, deadline=60.0, names=None):
    """Entry [i][j] is party i's link to party j, for every j but i."""
    called = [f"party {i}" for i in range(n)] if names is None else list(names)
    known = dict(enumerate(called))
    table = [{} for _ in range(n)]
    for i in range(n):
        for j in range(i + 1, n):
            table[i][j], table[j][i] = memory_pair((called[i], i), (called[j], j), deadline=deadline, names=known)
    return table

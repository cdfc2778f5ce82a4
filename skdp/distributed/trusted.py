"""What is checked before rows are placed in a cluster: encryption, private files, versions, sources of blocks."""

import ipaddress
from collections.abc import Iterable
from typing import Any

from distributed.comm.addressing import parse_address, parse_host_port

from skdp.distributed.worker_parts import Versions, prepared, scheduler_listening, versions
from skdp.exceptions import ClusterError

ENCRYPTED = ("tls", "wss", "inproc")  # inproc: threads of this process


def check_addresses(addresses: Iterable[str]) -> None:
    """Refuse connections over which rows and code would be sent in clear.

    Parameters
    ----------
    addresses : iterable of str
        Of the scheduler and the workers.

    Raises
    ------
    ClusterError
    """
    for address in addresses:
        scheme, rest = parse_address(address)
        if scheme in ENCRYPTED or _is_loopback(rest):
            continue
        raise ClusterError(
            f"the cluster listens at {scheme}://{rest} and sends rows in clear: whoever reaches its ports runs "
            "code on them. On one machine start the scheduler and the workers with --host 127.0.0.1. Otherwise "
            "use TLS, with LocalCluster(security=True), distributed.Security.temporary() or certificates of your "
            "own (distributed.comm.require-encryption: True)"
        )


def _is_loopback(location: str) -> bool:
    host = parse_host_port(location, 0)[0]
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return False


def check_workers(client: Any) -> None:
    """Check all workers of now, and make the files of each private; a new worker is checked by its first task.

    Raises
    ------
    ClusterError
    """
    check_addresses([client.scheduler.address, *client.nthreads()])
    answers = client.run(prepared, on_error="return").values()
    alive = [found for found in answers if not isinstance(found, OSError)]  # the others died just now
    of_scheduler = _scheduler_listening(client)
    if any(isinstance(found, Exception) for found in alive) or of_scheduler is None:
        raise ClusterError(
            "the scheduler or a worker cannot import skdp: install the same version, with its extra dask, for the "
            "client, the scheduler and all workers"
        )
    check_addresses(of_scheduler)
    for others, is_private, listens in alive:
        check_versions(others)
        check_addresses(listens)
        if not is_private:
            raise public_directory()


def _scheduler_listening(client: Any) -> tuple[str, ...] | None:
    """Where the scheduler listens; None if it cannot read tasks of skdp."""
    try:
        return tuple(client.run_on_scheduler(scheduler_listening))
    except ImportError:
        return None


def public_directory() -> ClusterError:
    """The error of a worker whose files others may read."""
    return ClusterError(
        "other users may read the directory of a worker, where Dask writes parts that do not fit into memory: its "
        "mode cannot be made 0700. Give the workers a directory of their own (temporary-directory, or "
        "local_directory=), or let them write nothing (distributed.worker.memory.spill: False and "
        "distributed.worker.memory.target: False)"
    )


def check_versions(others: Versions) -> None:
    """Refuse a worker whose sums may have other bits.

    Raises
    ------
    ClusterError
    """
    own = dict(versions())
    different = [f"{name} {value} (here {own.get(name)})" for name, value in others if own.get(name) != value]
    if different or len(others) != len(own):
        raise ClusterError(
            f"a worker has other versions, and the bits of sums may depend on them: {', '.join(different)}. "
            "Install the same ones everywhere, on machines of one kind"
        )


def check_sources(client: Any, keys: Iterable[Any]) -> None:
    """Refuse data that cannot be made again when a worker dies.

    Raises
    ------
    ClusterError
    """

    def has_lost(keys: list[Any], dask_scheduler: Any) -> bool:  # a closure: the scheduler gets its code
        seen, waiting = set(), list(keys)
        while waiting:
            key = waiting.pop()
            if key in seen:
                continue
            seen.add(key)
            task = dask_scheduler.tasks.get(key)
            if task is None or task.run_spec is None:
                return True
            waiting.extend(other.key for other in task.dependencies)
        return False

    if client.run_on_scheduler(has_lost, list(keys)):
        raise ClusterError(
            "blocks were sent into the cluster by scatter, or are lost, and would die with a worker in the middle "
            "of a fit: nothing makes them again. Load each block by a task, as client.submit(load, file), or "
            "persist a collection"
        )

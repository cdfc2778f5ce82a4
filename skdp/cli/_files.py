"""``skdp data`` and ``skdp ledger``: data sets and ledgers on this disk."""

import argparse

from skdp.cli._text import BadInput, Failed, dumps, rounded_down, rounded_up, table


def data(arguments: argparse.Namespace) -> None:
    """List, fetch or locate data sets."""
    if arguments.action != "fetch" and arguments.name is not None:
        raise BadInput(f"data {arguments.action} takes no NAME, got {arguments.name!r}")
    try:
        {"list": _list, "fetch": _fetch, "where": _where}[arguments.action](arguments)
    except BrokenPipeError:  # not the disk: the reader of this output has gone
        raise
    except OSError as error:
        raise Failed(str(error)) from error


def _list(arguments: argparse.Namespace) -> None:
    from skdp.datasets import list_datasets

    entries = list_datasets()
    if arguments.json:
        print(dumps(entries))
        return
    rows: list[list[object]] = [["name", "rows", "features", "here", "title"]]
    for entry in entries:
        features = "text" if entry["n_features"] is None else f"{entry['n_features']:,}"
        here = "yes" if entry["available"] else "no"
        rows.append([entry["name"], f"{sum(entry['n_rows'].values()):,}", features, here, entry["title"]])
    print(table(rows))
    print("\nLoad one with skdp.datasets.fetch_NAME(); rand_hie with load_rand_hie().")


def _where(arguments: argparse.Namespace) -> None:
    from skdp.datasets import get_data_home

    home = get_data_home()
    print(dumps({"data_home": home}) if arguments.json else home)


def _fetch(arguments: argparse.Namespace) -> None:
    import skdp.datasets

    known = {entry["name"]: entry for entry in skdp.datasets.list_datasets()}
    if arguments.name not in known:
        got = "nothing" if arguments.name is None else repr(arguments.name)
        raise BadInput(f"data fetch needs the NAME of a data set, got {got}; known: {', '.join(known)}")
    entry = known[arguments.name]
    if entry["function"].startswith("fetch_"):
        function = getattr(skdp.datasets, entry["function"])
        for subset in entry["n_rows"]:  # one at a time, so that only one is in memory
            try:
                function(subset=subset)
            except ValueError as error:  # a damaged file
                raise Failed(str(error)) from error
        entry = next(e for e in skdp.datasets.list_datasets() if e["name"] == arguments.name)
    found = [file["found"] for file in entry["files"] if file["found"] is not None]
    if arguments.json:
        print(dumps({"name": entry["name"], "function": entry["function"], "files": found}))
        return
    print(f"{entry['name']}: checked and ready for skdp.datasets.{entry['function']}()")
    print("\n".join(found))


def ledger(arguments: argparse.Namespace) -> None:
    """Print the charges of a ledger file."""
    from skdp.privacy import read_ledger

    try:
        book = read_ledger(arguments.file)
    except (OSError, ValueError) as error:
        raise BadInput(str(error)) from error
    if arguments.json:
        print(dumps(book))
        return
    print(f"ledger     {book['path']}" + ("" if book["kept"] else "  (temporary)"))
    print(f"ceiling    epsilon {book['epsilon']:g}, delta {book['delta']:g}")
    print(f"writes     {book['writes']}  (only grows: a smaller number than before is a restored copy)")
    spent, left = book["spent"], book["remaining"]
    print(
        f"spent      epsilon {rounded_up(spent[0])}, delta {spent[1]:g}  (claim the ceiling, unless number and "
        "cost of the fits were fixed beforehand)"
    )
    print(f"left       epsilon {rounded_down(left[0])}, delta {left[1]:g}  (the largest single fit)")
    for name, part in book["parts"].items():
        costs = [f"epsilon {rounded_up(part['spent'][0])}, delta {part['spent'][1]:g}"]
        costs += [f"epsilon {rounded_down(part['remaining'][0])}, delta {part['remaining'][1]:g}"]
        print(f"part       {name}: spent {costs[0]}; left {costs[1]}")
    if not book["fits"]:
        print("\nNo fit was charged.")
        return
    charged = [fit for fit in book["fits"] if fit["state"] != "returned"]
    kind = (charged or book["fits"])[0]
    print(f"protects   one {kind['unit']}, adjacency {kind['adjacency']}")
    rows: list[list[object]] = [["time", "user", "pid", "estimator", "epsilon", "delta", "state"]]
    for fit in book["fits"]:
        rows.append(
            [fit["time"], fit["user"], fit["pid"], fit["estimator"]]
            + [rounded_up(fit["epsilon"]), f"{fit['delta']:g}", fit["state"]]
        )
    if book["parts"]:
        shown = ["part", *("all" if fit["part"] is None else fit["part"] for fit in book["fits"])]
        rows = [[*row[:4], name, *row[4:]] for row, name in zip(rows, shown)]
    print("\n" + table(rows))
    print(
        '\n"reserved": running, or its process was killed; it stays charged. "returned": not charged.'
        "\nA plan of `skdp party` whose process was killed before its first share is handed back by the next."
    )

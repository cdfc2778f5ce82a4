"""``skdp plan``: preview of a fit from the shape of the data, without data and without a charge."""

import argparse
import difflib
import json
import re
from importlib import import_module

from skdp.cli._text import BadInput, dumps
from skdp.registry import ESTIMATORS, OTHERS


def plan(arguments: argparse.Namespace) -> None:
    """Print the plan of an estimator."""
    made = _class(arguments.estimator)
    given = _parameters(arguments, made)
    shape = {"n_groups": arguments.n_groups, "n_classes": arguments.n_classes, "sparse": arguments.sparse or None}
    more = {name: value for name, value in shape.items() if value is not None}
    try:
        found = made(**given).plan(arguments.n_records, arguments.n_features, **more)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{arguments.estimator}: {error}") from error
    print(dumps(found.to_dict()) if arguments.json else found)


def _class(name: str) -> type:
    known = ESTIMATORS | OTHERS
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3) or ["DPLogisticRegression"]
        raise BadInput(f"argument ESTIMATOR: no estimator {name!r}; did you mean {' or '.join(near)}?")
    found = getattr(import_module(known[name]), name)
    if not hasattr(found, "plan"):
        raise BadInput(f"argument ESTIMATOR: {name} spends no budget, so it has no plan")
    return found


def _parameters(arguments: argparse.Namespace, made: type) -> dict[str, object]:
    """The parameters of the estimator: values are JSON where they can be, or else text."""
    from skdp.base.declare import parameters_of

    given = {name: value for name in ("epsilon", "delta") if (value := getattr(arguments, name)) is not None}
    for text in arguments.param:
        name, equals, value = text.partition("=")
        if not equals:
            raise BadInput(f"argument --param: must be NAME=VALUE, got {text!r}")
        if name not in parameters_of(made):
            near = difflib.get_close_matches(name, parameters_of(made), n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise BadInput(f"argument --param: {made.__name__} has no parameter {name!r}{hint}")
        if name in given:
            raise BadInput(f"argument --param: {name} is given twice")
        given[name] = _value(value)
    classes = given.get("classes")
    texts = {"class_weight"} if isinstance(classes, tuple) and any(isinstance(x, str) for x in classes) else set()
    dicts = {k: _by_number(v) for k, v in given.items() if isinstance(v, dict) and k not in texts}
    return given | dicts


def _value(text: str) -> object:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return tuple(value) if isinstance(value, list) else value


def _by_number(given: dict[str, object]) -> dict[str | int, object]:
    """The dict with ints in place of keys that spell them: columns and labels are numbers, and JSON has texts."""
    return {int(key) if re.fullmatch("-?[0-9]{1,15}", key) else key: value for key, value in given.items()}

"""Which device a product is, what its usual servers are like, and its rent in a list of prices."""

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from planner.errors import SpecError
from planner.specs.files.finding import find, find_named
from planner.specs.files.ledger import Use
from planner.specs.files.places import Kind
from planner.specs.files.reading import read_named
from planner.specs.files.tables import Table, value_at
from planner.specs.files.texts import UnreadError, csv_of, read_text
from planner.specs.traffic.kinds import usual_servers
from planner.tools.importing.records import ClusterText, names

_PRICE = re.compile(r"(\d*\.?\d+) / ([1-9]\d*(?:\.0+)?)")
_MAKERS = re.compile(r"^((NVIDIA|AMD|INSTINCT|INTEL)-)+")


def spelt(product: str) -> str:
    """A product without its maker, in capitals.

    >>> spelt("NVIDIA H100 80GB HBM3")
    'H100-80GB-HBM3'
    """
    return _MAKERS.sub("", re.sub(r"[^A-Z0-9]+", "-", product.upper()).strip("-"))


def own_name(product: str) -> str:
    """What a file of the user's of a product is called: `nvidia-h100-nvl`."""
    return re.sub(r"[^a-z0-9.]+", "-", product.lower()).strip("-")


def device_of(product: str) -> str:
    """The device of a product: of a file of its name, or one that is known; empty of others."""
    own = own_name(product)
    if own and find_named(Kind.DEVICE, own, asked_by="") is not None:
        return own
    for row in names()["device"]:
        if is_any(spelt(product), row["products"]):
            return str(row["device"])
    return ""


def known(device: str, key: str) -> Any:  # noqa: ANN401 as the row has it
    """What names.toml says of a device; None where it says nothing."""
    return next((row.get(key) for row in names()["device"] if row["device"] == device), None)


def usual(device: str, fabric: str) -> tuple[str, Table]:
    """The topology of a device's usual servers, or of its torus, by name; empty where none is.

    Args:
        fabric: `nodes` or `torus`.
    """
    name = usual_servers(device, fabric=fabric)
    if name is None:
        return "", {}
    table, _ = read_named(find(Kind.CLUSTER, name, asked_by=""), "cluster", Kind.CLUSTER)
    return name, table


def usual_size(device: str) -> int:
    """Devices of a usual node."""
    return int(value_at(usual(device, "nodes")[1], "nodes", "n_devices_per_node", default=1))


def price_of(path: str, device: str) -> Table:
    """The least rent of a device in a CSV, as the value of a topology.

    Columns are those of SkyPilot's catalogues, AcceleratorName, AcceleratorCount, Price of the
    machine [USD/h]; or device, count and price.

    Raises:
        SpecError: the list cannot be read, has cells that are no prices, or not the device.
    """
    try:
        text = ClusterText(shown=path, text=read_text(Path(path), use=Use(kind="prices")))
        heads, *rows = csv_of(text.text)
    except UnreadError as error:
        raise SpecError([error.problem(path)]) from None
    called = (device.upper(), *(known(device, "catalogue") or ()))
    rents = list(_rents(text, heads, rows, called))
    if not rents:
        text.refuse(0, f"has no price of `{device}`", f"it is {' or '.join(called)} there")
    SpecError.raise_if_any(text.problems)
    usd, number, where = min(rents)
    note = f"the least of the list, {where}".removesuffix(", ")
    value = f"{usd:.6g} USD/h"
    return {"value": value, "date": "undated", "source": text.at(number), "note": note}


def _rents(
    text: ClusterText, heads: Sequence[str], rows: Sequence[Sequence[str]], called: Sequence[str]
) -> Iterator[tuple[float, int, str]]:
    """Rents of one device [USD/h], their lines, and of which machine where."""
    heads = [head.strip().lower().removeprefix("accelerator") for head in heads]
    for number, row in enumerate(rows, 2):
        cells = {
            "count": "1",
            **{head: cell for head, cell in zip(heads, row, strict=False) if cell},
        }
        name = spelt(cells.get("name", cells.get("device", "")))
        if "price" in cells and is_any(name, called):
            cell = f"{cells['price']} / {cells['count']}"
            rent = _PRICE.fullmatch(cell)
            where = ", ".join(cells[head] for head in ("instancetype", "region") if head in cells)
            if rent is None:
                text.refuse(number, "is no price of so many devices", "write `22.4` and `8`", cell)
            else:
                yield float(rent[1]) / float(rent[2]), number, where


def is_any(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)

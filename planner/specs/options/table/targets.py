"""Options that say what a plan has to keep."""

from planner.quantities.table import Quantity, limited
from planner.specs.options import counts, readers, readers as read
from planner.specs.options.option import ON_SERVERS, Option, in_digits
from planner.specs.traffic.percentiles import USUAL_TARGETS


def _limit(quantity: Quantity) -> Option:
    is_count = quantity.is_count
    return Option(
        f"{quantity.option} {quantity.metavar}",
        quantity.about,
        counts.count if is_count else read.quantity(quantity.dimension),
        sets=f"Targets.{quantity.target}" if quantity.target else "",
        example=quantity.example,
    )


LIMITS = tuple(_limit(quantity) for quantity in limited())

DEMANDS = (
    Option(
        "--rate RATE",
        "Requests that replicas serve together on average, like 8req/s: a `--demand` of so many "
        "times `--output`.",
        read.requests_per_s,
    ),
    Option(
        "--demand RATE",
        "Output tokens to serve: 20000tok/s, of several MODEL=RATE.",
        of=ON_SERVERS,
        gathers=readers.by_name(read.tokens_per_s, what="MODEL"),
    ),
    Option(
        "--rate RATE",
        "Requests to serve, on average: 8req/s, of several MODEL=RATE; in place of --demand.",
        of=ON_SERVERS,
        gathers=readers.by_name(read.requests_per_s, what="MODEL"),
    ),
    Option(
        "--replicas N",
        "Exactly so many replicas; of several models MODEL=N.",
        of=ON_SERVERS,
        gathers=readers.by_name(counts.count, what="MODEL"),
        example="4",
    ),
    Option(
        "--max-utilisation FRACTION",
        "Share of their capacity that replicas serve at most, like 80%; of a `--rate` 85%.",
        read.utilisation,
        sets="Targets.max_utilisation",
        example="85%",
    ),
    Option(
        "--max-quality-loss FRACTION",
        "Most quality that a number format may lose, like 1%.",
        read.few_percent,
        sets="Targets.quality_loss_fraction",
        example="1%",
    ),
    Option(
        "--confidence P",
        "Plan times that hold in so many cases, like 90%; 0: as predicted; default: as predicted "
        "inside the measured region, 90% outside.",
        read.most_cases,
        sets="confidence",
        writes=in_digits,
    ),
)

TARGETS = (
    *LIMITS,
    *DEMANDS,
    Option(
        "--loss FRACTION",
        "Most of the objective to lose for fewer bytes.",
        read.below_one("5%"),
        usual="0",
    ),
)

PERCENTILES = (
    *(
        Option(
            f"{name} TIME",
            f"{target.quantity.upper()} that {target.share * 100:g}% stay within.",
            read.seconds,
        )
        for name, target in USUAL_TARGETS.items()
    ),
    Option(
        "--goodput TEXT",
        "Share of requests within limits: '99% ttft<2s tpot<50ms'.",
        read.later("specs.traffic.target_texts.goodput_of"),
    ),
)

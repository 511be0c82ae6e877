"""Lengths, arrivals and cuts as the command and `traffic.toml` write them.

    1500                                    all alike
    uniform:100:2000                        evenly between the two
    exponential:300                         1 + an exponential, of that mean
    lognormal:1500:p99=8000                 of that mean and that percentile
    lognormal:1500:cv=1.2                   of that mean, and deviation over mean
    percentiles:p50=900:p90=3000:max=9000   evenly between each and the next
    cdf:FILE.json                           [[tokens, share], …], the last share 1
    cdf:FILE.json:NAME                      one of several, by name

`:max=32000` behind a mean or a table cuts what is longer to that. Without it nothing is longer than
what one request in a million would be.

    poisson    cv2:4    constant    trace
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from planner.quantities.units import UnitError, parse
from planner.specs.files.ledger import Use
from planner.specs.files.tables import literal
from planner.specs.files.texts import UnreadError, json_of, read_text
from planner.specs.options.counts import at_least
from planner.specs.traffic import distributions
from planner.specs.traffic.arrivals import CONSTANT, POISSON, REPLAYED, Arrivals, in_bursts
from planner.specs.traffic.records import FREE_CUTS

MOST_CV = 100.0
LARGEST_CV2 = 1e5

Point = tuple[float, float]
"""Tokens, and the share of requests that are no longer."""

_NEARLY = 1e-9

_EXAMPLE = "write `1500`, or `lognormal:1500:p99=8000`"
_ARRIVALS = "write `poisson`, `cv2:4`, `constant` or `trace`"


def tokens_of(text: str) -> distributions.AnyTokens:
    """Lengths of prompts, or of answers.

    Raises:
        UnitError: the text is none, with what is wrong and what to write instead.
    """
    word, *parts = text.strip().split(":")
    if not parts:
        return distributions.FixedTokens(n_tokens=_tokens(text, word))
    reader = _READERS.get(word.lower())
    if reader is None:
        from planner.specs.validation.problems import did_you_mean

        remedy = did_you_mean(word.lower(), _READERS, otherwise=_EXAMPLE)
        raise UnitError(text, f"has no distribution `{literal(word)}`", remedy)
    return reader(text, parts)


def arrivals_of(text: str) -> Arrivals:
    """How requests come; of a trace that is replayed, which trace is not known yet.

    Raises:
        UnitError: the text says nothing of the kind.
    """
    word, colon, rest = text.strip().lower().partition(":")
    if not colon and word == CONSTANT:
        return in_bursts(0.0)
    if not colon and word in (POISSON, REPLAYED):
        return Arrivals(pattern=word)
    if word != "cv2":
        raise UnitError(text, "is no pattern of arrivals", _ARRIVALS)
    value = parse(rest, "1", example="cv2:4", allow_zero=True)
    if value > LARGEST_CV2:
        raise UnitError(text, f"is above {LARGEST_CV2:g}", _ARRIVALS)
    return in_bursts(value)


def _uniform(text: str, parts: Sequence[str]) -> distributions.AnyTokens:
    (low, high), _ = _split(text, parts, (), n=2, example="uniform:100:2000")
    least, most = _tokens(text, low), _tokens(text, high)
    if least > most:
        raise UnitError(text, "has its longest first", f"write `uniform:{most}:{least}`")
    if least == most:
        return distributions.FixedTokens(n_tokens=least)
    return distributions.UniformTokens(least_tokens=least, most_tokens=most)


def _exponential(text: str, parts: Sequence[str]) -> distributions.AnyTokens:
    (mean,), named = _split(text, parts, ("max",), n=1, example="exponential:300")
    mean_tokens = _mean(text, mean)
    if mean_tokens <= 1.0:
        raise UnitError(text, "has a mean of one token", "write `1` for one token each")
    return distributions.ExponentialTokens(
        unbounded_mean_tokens=mean_tokens, longest_tokens=_longest(text, named)
    )


def _lognormal(text: str, parts: Sequence[str]) -> distributions.AnyTokens:
    example = "lognormal:1500:p99=8000"
    (mean,), named = _split(text, parts, ("max", "cv", "p"), n=1, example=example)
    mean_tokens, longest = _mean(text, mean), _longest(text, named)
    spread = {key: value for key, value in named.items() if key != "max"}
    if len(spread) != 1:
        fact = "says how wide it is twice" if spread else "does not say how wide it is"
        raise UnitError(text, fact, f"write `{example}`, or `lognormal:1500:cv=1.2`")
    ((key, value),) = spread.items()
    if key == "cv":
        cv = _number(text, value, "cv", most=MOST_CV)
        sigma = math.sqrt(math.log1p(cv * cv))
        return distributions.LognormalTokens(
            unbounded_mean_tokens=mean_tokens, sigma=sigma, longest_tokens=longest
        )
    share, n_tokens = _share(text, key), _tokens(text, value)
    try:
        return distributions.lognormal_by_percentile(mean_tokens, share, n_tokens, longest)
    except ValueError as error:
        raise UnitError(text, f"`{key}` {error}", "choose others, or write `cv=1.2`") from None


def _percentiles(text: str, parts: Sequence[str]) -> distributions.AnyTokens:
    example = "percentiles:p50=900:p90=3000:max=9000"
    _, named = _split(text, parts, ("max", "p"), n=0, example=example)
    longest = _longest(text, named)
    if longest is None:
        raise UnitError(text, "does not say what is longest", f"write `{example}`")
    points = [(_share(text, key), _tokens(text, named[key])) for key in named if key != "max"]
    return _tabled(text, [(tokens, share) for share, tokens in (*sorted(points), (1.0, longest))])


def _cdf(text: str, parts: Sequence[str]) -> distributions.AnyTokens:
    plain = [part for part in parts if not part.startswith("max=")]
    named = _named([part for part in parts if part.startswith("max=")])
    path, *names = plain or [""]
    try:
        value = json_of(read_text(path, use=Use(kind="lengths")))
    except UnreadError as error:
        raise UnitError(text, f"`{literal(path)}` {error}") from None
    points = _points_of(text, path, value, names)
    return replace(_tabled(text, points), longest_tokens=_longest(text, named))


def _points_of(text: str, path: str, value: object, names: Sequence[str]) -> list[Point]:
    """The points of a file of one distribution, or of several by name."""
    if isinstance(value, dict):
        known = [name for name, points in value.items() if isinstance(points, list)]
        if len(names) != 1 or names[0] not in known:
            said = ", ".join(f"`cdf:{path}:{name}`" for name in known[:5])
            raise UnitError(text, "names none of the distributions of the file", f"write {said}")
        value = value[names[0]]
    elif names:
        raise UnitError(text, "names a distribution, but the file has only one")
    if not isinstance(value, list) or not all(map(_is_point, value)):
        raise UnitError(text, "has a file that is no list of [tokens, share]")
    return [(float(tokens), float(share)) for tokens, share in value]


_READERS: Mapping[str, Callable[[str, Sequence[str]], distributions.AnyTokens]] = {
    "uniform": _uniform,
    "exponential": _exponential,
    "lognormal": _lognormal,
    "percentiles": _percentiles,
    "cdf": _cdf,
}


def _is_point(point: object) -> bool:
    is_pair = isinstance(point, list) and len(point) == 2
    return is_pair and all(type(one) in (int, float) for one in point)  # type: ignore[attr-defined]


def _tabled(text: str, points: Sequence[Point]) -> distributions.TabledTokens:
    """Points in ascending order of both, the last of share 1; of like shares the first counts."""
    before: Point = (1.0, 0.0)
    kept: list[Point] = []
    for point in points:
        rises = point[1] > before[1] or not kept
        if (
            not before[0] < point[0] <= distributions.MOST_TOKENS
            or not before[1] <= point[1] <= 1.0
        ):
            shown = f"{before[0]:g} of {before[1]:g}"
            fact = f"has {point[0]:g} tokens of share {point[1]:g} behind {shown}"
            raise UnitError(text, fact, "give both in ascending order, above one token")
        kept += [point] if rises else []
        before = point
    if before[1] < 1.0 - _NEARLY:
        raise UnitError(text, "does not end with a share of 1", "say what is longest")
    shares = (*(share for _, share in kept[:-1]), 1.0)
    return distributions.TabledTokens(tokens=tuple(tokens for tokens, _ in kept), shares=shares)


def _split(
    text: str, parts: Sequence[str], known: Sequence[str], *, n: int, example: str
) -> tuple[list[str], dict[str, str]]:
    """Parts that stand alone, and those that are named, by name."""
    plain = [part for part in parts if "=" not in part]
    named = _named(parts)
    strangers = [key for key in named if not _is_known(key, known)]
    fact = ""
    if strangers:
        fact = f"has an unknown `{literal(strangers[0])}`"
    elif len(named) + len(plain) < len(parts):
        fact = "says one thing twice"
    elif len(plain) != n:
        wanted = {0: "no number belongs", 1: "1 number belongs"}.get(n, f"{n} numbers belong")
        fact = f"has {len(plain)} behind its name, where {wanted}"
    if fact:
        raise UnitError(text, fact, f"write `{example}`")
    return plain, named


def _named(parts: Sequence[str]) -> dict[str, str]:
    pairs = (part.lower().split("=", 1) for part in parts if "=" in part)
    return {key.strip(): value.strip() for key, value in pairs}


def _is_known(key: str, known: Sequence[str]) -> bool:
    return key in known or ("p" in known and key[:1] == "p" and key[1:2].isdecimal())


def _longest(text: str, named: Mapping[str, str]) -> int | None:
    return _tokens(text, named["max"]) if "max" in named else None


def _share(text: str, key: str) -> float:
    try:
        share = float(key[1:]) / 100.0
    except ValueError:
        share = math.nan
    if not 0.0 < share < 1.0:
        raise UnitError(text, f"`{literal(key)}` is no percentile", "write `p99`, or `p99.9`")
    return share


def _mean(text: str, word: str) -> float:
    return _number(text, word, "mean", most=distributions.MOST_TOKENS)


def _number(text: str, word: str, what: str, *, most: float) -> float:
    try:
        number = float(word)
    except ValueError:
        raise UnitError(text, f"`{literal(word)}` is no number", _EXAMPLE) from None
    if not 0.0 < number <= most:
        raise UnitError(text, f"has a {what} that cannot be, `{literal(word)}`", _EXAMPLE)
    return number


def _tokens(text: str, word: str) -> int:
    """A whole number of tokens."""
    try:
        tokens = int(word.strip())
    except ValueError:
        raise UnitError(text, f"`{literal(word)}` is no whole number", _EXAMPLE) from None
    if not 1 <= tokens <= distributions.MOST_TOKENS:
        side = "is not positive" if tokens < 1 else "is beyond anything real"
        raise UnitError(text, f"`{literal(word)}` {side}", _EXAMPLE)
    return tokens


def cuts_of(text: str) -> tuple[int, ...] | str:
    """Lengths of prompts that part pools.

    >>> cuts_of("2048,8192"), cuts_of("free")
    ((2048, 8192), 'free')
    """
    if text.strip() == FREE_CUTS:
        return FREE_CUTS
    lengths = tuple(at_least(1, distributions.MOST_TOKENS)(part) for part in text.split(","))
    if list(lengths) != sorted(set(lengths)):
        raise UnitError(text, "is not in ascending order", "write `2048,8192`")
    return lengths

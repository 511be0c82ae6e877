"""What is wrong with classes of traffic, whatever serves them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from planner.errors import Problem
from planner.quantities.units import RANGES
from planner.specs.records.devices import AnyModel
from planner.specs.traffic import percentiles
from planner.specs.traffic.arrivals import REPLAYED
from planner.specs.traffic.distributions import MOST_TOKENS
from planner.specs.traffic.lengths import Lengths
from planner.specs.traffic.percentiles import target_problems
from planner.specs.traffic.reading import length_problems
from planner.specs.traffic.records import FREE_CUTS, TrafficClass
from planner.specs.traffic.texts import LARGEST_CV2

OPTIONS = ""
"""Where traffic comes from that options of the command say; else it is the name of a file."""

_QUANTITIES = tuple(f"{quantity}_p" for quantity in percentiles.DEFINITIONS)
_BETWEEN_TOKENS = (percentiles.TPOT, percentiles.ITL)
_NEARLY = 1.0 + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionNames:
    """Where something about one class is said.

    Args:
        shown: the file, or `OPTIONS`.
        index: of the class.
    """

    shown: str
    index: int

    def at(self, option: str) -> dict[str, str]:
        """Place of a problem: the option, or the key of a file that says the same."""
        if self.shown == OPTIONS:
            return {"where": option}
        name = option.removeprefix("--").replace("-", "_")
        if name == "goodput" or name.startswith(_QUANTITIES):
            name = f"targets.{name}"
        return {"where": self.shown, "key": f"class[{self.index}].{name}"}

    def asked_by(self, option: str) -> str:
        """The same as one text."""
        place = self.at(option)
        return ": ".join(place.values())


def traffic_problems(classes: Sequence[TrafficClass], shown: str) -> Iterator[Problem]:
    """Everything that is wrong with classes.

    Args:
        shown: the file that names them, or `OPTIONS`.
    """
    if not classes:
        yield Problem(where=shown or "traffic", fact="has no class", remedy="write `[[class]]`")
    yield from _name_problems([one.name for one in classes], shown)
    yield from _models_alike(model for one in classes for model in one.models)
    for index, traffic in enumerate(classes):
        said = OptionNames(shown=shown, index=index)
        yield from _class_problems(traffic, said)
        wrong = [*_impossible_lengths(traffic.lengths, said)]
        yield from wrong or _length_problems(traffic, said)


def _name_problems(names: Sequence[str], shown: str) -> Iterator[Problem]:
    """Classes without a name of their own."""
    for name, n in Counter(names).items():
        if n > 1 or not name.strip():
            fact = "is the name of several classes" if n > 1 else "has no name"
            where, remedy = shown or "--name", "give each a name of its own"
            yield Problem(where=where, key="class.name", value=name, fact=fact, remedy=remedy)


def _models_alike(models: Iterable[AnyModel]) -> Iterator[Problem]:
    """Different models by one name: recipes, and who serves whom, go by it."""
    known: dict[str, AnyModel] = {}
    for model in models:
        if known.setdefault(model.name, model) != model:
            fact, remedy = "is the name of two models that differ", "rename one of them"
            yield Problem(where="--model", value=model.name, fact=fact, remedy=remedy)


def _class_problems(traffic: TrafficClass, said: OptionNames) -> Iterator[Problem]:
    if not traffic.models:
        remedy = "name one, like `llama-3.1-70b`; of several any may serve it"
        yield Problem(**said.at("--model"), fact="names no model", remedy=remedy)
    low, high, words = RANGES["request/s"]
    if not low <= traffic.rate_per_s <= high:
        place, value = said.at("--rate"), f"{traffic.rate_per_s:g}"
        fact, remedy = f"is no rate of requests, {words}", "write `8 req/s`"
        yield Problem(**place, value=value, fact=fact, remedy=remedy)
    yield from _arrival_problems(traffic, said)
    for problem in target_problems(traffic.targets, "", ""):
        yield Problem(**said.at("--targets"), value=problem.value, fact=problem.fact)
    goal = traffic.goodput
    if goal is not None and goal == percentiles.GoodputTarget(share=goal.share):
        place, remedy = said.at("--goodput"), "add one, like `ttft<2s`"
        yield Problem(**place, fact="has no limits", remedy=remedy)


def _arrival_problems(traffic: TrafficClass, said: OptionNames) -> Iterator[Problem]:
    arrivals, place = traffic.arrivals, said.at("--arrivals")
    if arrivals.pattern == REPLAYED and (
        arrivals.trace is None or not arrivals.trace.duration_s > 0.0
    ):
        fact = "replays a trace, and there is none that takes time"
        yield Problem(**place, value=arrivals.pattern, fact=fact, remedy="write `poisson`")
    elif not 0.0 <= arrivals.cv2 <= LARGEST_CV2 and arrivals.pattern != REPLAYED:
        fact = f"is not between 0 and {LARGEST_CV2:g}"
        yield Problem(**place, value=f"cv2:{arrivals.cv2:g}", fact=fact)


def _impossible_lengths(lengths: Lengths, said: OptionNames) -> Iterator[Problem]:
    """Lengths of which nothing can be drawn."""
    for name in ("input", "output"):
        try:
            mean = float(getattr(lengths, f"mean_{name}_tokens"))
            most = int(getattr(lengths, f"most_{name}_tokens"))
            can_be = 0.0 < mean <= most * _NEARLY and most <= MOST_TOKENS
        except (ArithmeticError, ValueError, IndexError):  # of records that nobody checked
            can_be = False
        if not can_be:
            fact = "are no lengths of requests"
            place, remedy = said.at(f"--{name}"), "write `lognormal:1500:p99=8000`"
            yield Problem(**place, fact=fact, remedy=remedy)


def _length_problems(traffic: TrafficClass, said: OptionNames) -> Iterator[Problem]:
    """Lengths that models, targets or cuts do not go with."""
    yield from length_problems(traffic.models, traffic.lengths, asked_by=said.asked_by("--model"))
    if traffic.lengths.most_output_tokens < 2:
        fact = "is of tokens after the first, and no answer of this class has any"
        for target in traffic.targets:
            if target.quantity in _BETWEEN_TOKENS:
                place = said.at(target.option)
                yield Problem(**place, fact=fact, remedy="leave it out")
        if traffic.goodput is not None and traffic.goodput.tpot_s is not None:
            yield Problem(**said.at("--goodput"), value="tpot", fact=fact, remedy="leave it out")
    yield from _cut_problems(traffic, said)


def _cut_problems(traffic: TrafficClass, said: OptionNames) -> Iterator[Problem]:
    cuts, longest = traffic.cuts, traffic.lengths.most_input_tokens
    place = said.at("--cuts")
    value = cuts if isinstance(cuts, str) else ",".join(map(str, cuts))
    if isinstance(cuts, str):
        if cuts != FREE_CUTS:
            remedy = f"write `{FREE_CUTS}`, or tokens in ascending order"
            yield Problem(**place, value=value, fact="are no cuts", remedy=remedy)
    elif list(cuts) != sorted(set(cuts)) or any(cut < 1 for cut in cuts):
        remedy = "write tokens in ascending order, like `2048,8192`"
        yield Problem(**place, value=value, fact="are not in ascending order", remedy=remedy)
    elif cuts and cuts[-1] >= longest:
        fact = f"no prompt is longer than {longest:,} tokens, so that nothing is above"
        yield Problem(**place, value=value, fact=fact, remedy="leave that cut out")

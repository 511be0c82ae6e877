"""`plan` with a quantity that the planner does not have: kg of CO₂ an hour.

One row of the table, the coefficients of one runtime, and the judge's own word of both; run as a
module, in a process of its own, since options are made of the table as it is when the command
begins. The process answers one line of words after the other: in JSON, as what each of them said.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from functools import partial

from planner.quantities import table as quantities

KG_PER_WH = 0.4e-3
"""Of a grid with 400 g per kWh; `assumed`."""

CARBON = quantities.Quantity(
    name="carbon",
    dimension="1",
    label="kg CO2/h",
    program="carbon",
    option="--max-carbon",
    metavar="KG",
    about="Most CO2 of all devices, kg an hour.",
    reason="the plan of least CO2{within} takes {value} kg an hour on {where}",
    needs="tdp_w",
    lack="no TDP is known of {device}",
    counted=lambda deployment, device: deployment.n_devices * device.tdp_w * KG_PER_WH,
)


def said(words: list[str]) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of a command line."""
    from planner.commands.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return code, out.getvalue(), err.getvalue()


def judge() -> None:
    """Let the judge know it too, in its own words, which are of nothing that the finder says."""
    from planner.verifier import certificates, quantities as judged
    from planner.verifier.layouts import deployments

    carbon = judged.Measure(name=CARBON.name, dimension="1")
    judged.MEASURES[CARBON.name] = carbon
    certificates.OF_A_PLAN.reasons[CARBON.name] = "they break `carbon` by themselves"
    usual = deployments.further_of

    def with_carbon(limits, found, device):
        used = found.n_devices * device.tdp_w * KG_PER_WH
        return {**usual(limits, found, device), **({"carbon": used} if "carbon" in limits else {})}

    deployments.further_of = with_carbon


def main() -> None:
    quantities.QUANTITIES[CARBON.name] = CARBON
    from planner.programs import amounts, deployment

    def with_carbon(replica, device, targets, without):
        fleet = amounts.Fleet.asked(targets, without)
        each = partial(amounts.devices_of, replica, fleet)
        per_device = (device.tdp_w or 0.0) * KG_PER_WH
        return {
            **amounts.ways_of(replica, device, targets, without),
            "carbon": partial(amounts.times_devices, each, per_device),
        }

    deployment.ways_of = with_carbon
    judge()
    for line in sys.stdin:
        print(json.dumps(said(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()

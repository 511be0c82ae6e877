"""Waits that books know, against which simulations are tried. Source: [Allen1990] §5.3, §5.4."""

from __future__ import annotations


def one_server_s(rate_per_s: float, service_s: float) -> float:
    """Mean wait of M/D/1 [s]."""
    busy = rate_per_s * service_s
    return busy * service_s / (2.0 * (1.0 - busy))


def waiting_share(n_servers: int, offered: float) -> float:
    """Of M/M/c, who finds all servers taken: by Erlang's recursion over servers."""
    blocked = 1.0
    for k in range(1, n_servers + 1):
        blocked = offered * blocked / (k + offered * blocked)
    return blocked / (1.0 - offered / n_servers * (1.0 - blocked))


def several_servers_s(n_servers: int, rate_per_s: float, service_s: float) -> float:
    """Mean wait of M/M/c [s]."""
    offered = rate_per_s * service_s
    return waiting_share(n_servers, offered) * service_s / (n_servers - offered)

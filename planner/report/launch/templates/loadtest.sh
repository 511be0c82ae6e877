#!/usr/bin/env bash
# Measures what the plan predicts, and says whether it holds: bash loadtest.sh [URL]
set -euo pipefail
cd "$(dirname "$0")"
{%- for entrance in entrances if entrance.bands %}
{%- set bands, pool, url = entrance.bands, entrance.pools[0], "${1:-http://localhost:" ~ ports[entrance.name] ~ "}" %}

# {{ entrance.name }}: {{ bands.lengths[0] }} tokens in, {{ bands.lengths[1] }} out, {{ '%.4g requests a second' % bands.requests_per_s if bands.requests_per_s else '%d requests at a time' % bands.n_in_flight }}
{% include "bench.sh" %}
python3 - loadtest-{{ entrance.name }}.json <<'PYTHON'
import json, sys

measured = json.load(open(sys.argv[1]))
print("predicted: {{ bands.basis }}")
bands = {
{%- for band in bands.figures %}
    "{{ band.name }}": ({{ '%.6g' % (1000 * band.low_s) }}, {{ '%.6g' % (1000 * band.high_s) }}),
{%- endfor %}
}
for name, (low, high) in bands.items():
    value = measured[name]
    where = "below" if value < low else "ABOVE" if value > high else "within"
    print(f"{name} {value:.4g}: {where} {low:.4g} to {high:.4g}")
{%- if entrance.pools | length == 1 %}
{%- for line in readers(pool.command, 'loadtest-' ~ entrance.name ~ '.json') %}
print({{ ('then: ' ~ line ~ (' --replicas %d' % pool.n_replicas if pool.n_replicas > 1 else '')) | tojson }})
{%- endfor %}
{%- endif %}
PYTHON
{%- endfor %}

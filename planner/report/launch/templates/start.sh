{%- set every = servers.values() | sum(start=[]) -%}
#!/usr/bin/env bash
# Starts what the plan puts on a node, and waits for it: bash start.sh NODE
set -euo pipefail
cd "$(dirname "$0")"
source ./env.sh
if grep -ho '<[A-Z][A-Z0-9_]*>' env.sh start.sh; then
  echo "fill these in first: receipt.md says what they are" >&2
  exit 2
fi

case "${1:?which node? one of {{ every | map(attribute='seat.node') | unique | join(', ') }}}" in
{%- for node, here in every | groupby('seat.node') %}
{{ node }})
{%- for server in here %}
{%- set pool = server.pool %}
  # {{ server.name }}{{ ', node ' ~ server.rank ~ ' of ' ~ pool.launch.n_nodes if pool.launch.n_nodes > 1 }}: {{ pool.role }}, {{ server.seat.devices | length }} × {{ pool.kind }}
  (
    mkdir -p "run/{{ server.name }}" && cd "run/{{ server.name }}"
    export {{ vendor(pool).visible }}={{ server.seat.devices | join(',') }}
{%- if pool.launch.n_nodes > 1 %}
    export NODE_RANK={{ server.rank }} HEAD="${ADDRESS[{{ server.head }}]}"
{%- endif %}
{%- if pool.role != 'together' and pool.engine == 'vllm' %}
    export VLLM_NIXL_SIDE_CHANNEL_HOST="${ADDRESS[{{ node }}]}" VLLM_NIXL_SIDE_CHANNEL_PORT={{ server.channel }}
{%- endif %}
{%- for name, mark in pool.marks.items() %}
    export {{ name[1:] }}='{{ mark }}'
{%- endfor %}
    {{ ': # srun starts it from the first node' if server.rank and 'srun ' in server.line else server.line }}
  ) &
{%- endfor %}
  ;;
{%- endfor %}
*)
  echo "the plan has nothing on $1" >&2
  exit 2
  ;;
esac
wait

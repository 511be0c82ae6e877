#!/usr/bin/env bash
# Starts what hands requests to servers: bash router.sh [ENTRANCE]
set -euo pipefail
cd "$(dirname "$0")"
source ./env.sh

case "${1:-{{ entrances[0].name }}}" in
{%- for entrance in entrances %}
{%- set here = servers[entrance.name] | selectattr('rank', 'equalto', 0) | list %}
{%- set port = ports[entrance.name] %}
{%- set config = '$PWD/' ~ entrance.name ~ '.conf' %}
{{ entrance.name }}) # port {{ port }}{{ ': ' ~ entrance.requests if entrance.requests }}
{%- if here | length == 1 %}
  echo "one server, which needs no router: {{ here[0].address }}"
{%- else %}
{%- set router = entrance.engine if entrance.is_apart else 'nginx' %}
{%- if router in ('nginx', 'trtllm') %}
  cat > "{{ config }}" <<CONFIG
{% include 'routers/' ~ router ~ '.conf' %}
CONFIG
{%- endif %}
  {% include 'routers/' ~ router %}
{%- endif %}
  ;;
{%- endfor %}
*)
  echo "no such entrance: $1" >&2
  exit 2
  ;;
esac

# Where nodes are. Fill in what stands in <>.
declare -A ADDRESS=(
{%- for pool in pools %}{% set outer = loop %}
{%- for node in pool.nodes if node not in (pools[:outer.index0] | map(attribute='nodes') | sum(start=())) %}
  [{{ node }}]='{{ pool.hosts[node] }}'
{%- endfor %}
{%- endfor %}
)
export HF_TOKEN="${HF_TOKEN:-}"

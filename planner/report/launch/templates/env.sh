# Where nodes are. Fill in what stands in <>.
declare -A ADDRESS=(
{%- for pool in pools %}{% set outer = loop %}
{%- for node in pool.nodes if node not in (pools[:outer.index0] | map(attribute='nodes') | sum(start=())) %}
  [{{ node }}]='{{ node if pool.is_placed else '<ADDRESS_OF_' ~ (node | upper | replace('-', '_')) ~ '>' }}'
{%- endfor %}
{%- endfor %}
)
export HF_TOKEN="${HF_TOKEN:-}"

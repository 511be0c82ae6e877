{%- set bands, pool, shares = entrance.bands, entrance.pools[0], [] %}
{%- for band in bands.figures if band.name[0] == 'p' %}{% set _ = shares.append(band.name[1:].partition('_')[0]) %}{% endfor %}
{#- ten times the requests in flight, or those of five minutes #}
{%- set many = 10 * bands.n_in_flight or (300 * bands.requests_per_s) | int -%}
vllm bench serve --ignore-eos --save-result --backend openai --endpoint /v1/completions --model {{ pool.model | quote }} --tokenizer {{ pool.source | quote }} --dataset-name random --random-input-len {{ bands.lengths[0] }} --random-output-len {{ bands.lengths[1] }} --num-prompts {{ [100, [many, 5000] | min] | max }} {{ '--request-rate %.6g' % bands.requests_per_s if bands.requests_per_s else '--max-concurrency %d' % bands.n_in_flight }} --seed 0 --percentile-metrics ttft,tpot,itl,e2el --metric-percentiles {{ (shares or ['50', '99']) | unique | join(',') }} --result-filename loadtest-{{ entrance.name }}.json --base-url "{{ url }}"

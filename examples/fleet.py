"""How many GPUs for 20 requests a second of chat, within what people wait for?"""

from planner import fleet, load_architecture, load_pool, traffic_class

chat = traffic_class(
    "chat",
    load_architecture("llama-3.1-8b"),
    rate_per_s=20.0,
    input="lognormal:1500:p99=8000:max=32000",
    output="exponential:300",
    targets={"ttft_p95": "1 s", "tpot_p95": "40 ms"},
)

# larger replicas, other chunks and more requests in the simulation take longer
found = fleet(
    chat, load_pool("h100-nvl8-x1"), "vllm", most_devices=1, chunks=(2048,), n_simulated=4000
)

for pool in found.pools:
    most = pool.replica_rate_per_s
    print(f"{pool.n_replicas} replicas for {pool.rate_per_s:.1f} req/s, each of at most {most:.1f}")
for one in found.classes[0].percentiles:
    print(f"{one.quantity} p{one.share * 100:g}: {one.simulated_s:.3f} s")
print(f"${found.usd_per_hour:.2f}/h, and none costs less than ${found.certificate.bound:.2f}/h")

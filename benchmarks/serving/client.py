"""A client in its own process, independent of litebert: keeps connections busy and counts answers.

    python benchmarks/serving/client.py HOST PORT PATH BODIES.json CONNECTIONS SECONDS

Prints one JSON line: answers, answers per second, and latency percentiles in milliseconds.
"""

import asyncio
import json
import sys
import time
from itertools import cycle, islice
from pathlib import Path


async def keep_busy(host: str, port: int, requests: list[bytes], until: float, latencies: list[float]) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    for request in cycle(requests):
        started_at = time.perf_counter()
        if started_at >= until:
            break
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        status, _, fields = head.partition(b"\r\n")
        if b" 200 " not in status:
            raise SystemExit(f"the server answered {status.decode()}")
        length = next(line for line in fields.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.partition(b":")[2]))
        latencies.append(time.perf_counter() - started_at)
    writer.close()


async def main() -> None:
    host, port, path, bodies_file, connections, seconds = sys.argv[1:]
    bodies = [json.dumps(body).encode() for body in json.loads(Path(bodies_file).read_text("utf-8"))]
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: "
    requests = [f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies]
    num_connections, latencies = int(connections), list[float]()
    started_at = time.perf_counter()
    until = started_at + float(seconds)
    shares = [list(islice(cycle(requests), at, at + len(requests))) for at in range(num_connections)]
    await asyncio.gather(*[keep_busy(host, int(port), share, until, latencies) for share in shares])
    elapsed = time.perf_counter() - started_at
    ordered = sorted(latencies)
    percentiles = {f"p{p}": round(1000 * ordered[int(len(ordered) * p / 100)], 2) for p in (50, 95, 99)}
    print(json.dumps({"answers": len(latencies), "answers_per_second": len(latencies) / elapsed, **percentiles}))


asyncio.run(main())

#!/usr/bin/python3
"""A load client as they are usually written in Python: one asyncio task a request, aiohttp, lines of
the body read as they come, time.perf_counter-like stamps taken when the task gets to run. A peer for
`prony bench`: same server, same host, same schedule shape; see README.md here.

    aiohttp_client.py --base-url URL --requests N --output-len N (--rate R | --concurrency N) --out FILE

Writes one JSON object a request with the names of requests.jsonl that join.mjs reads. Its own work is
what such tools do and no more: parse each event's JSON, append a stamp. Exit code 77: no aiohttp here.
"""
import argparse
import asyncio
import json
import random
import sys
import time

try:
    import aiohttp
except ImportError:
    print("skipped: this python3 has no aiohttp (Debian: python3-aiohttp)")
    sys.exit(77)


async def one(session, url, index, intended_ns, tokens, rows):
    row = {"index": index, "id": f"aiohttp-{index}", "status": "ok", "t_intended_ns": intended_ns,
           "events": []}
    rows.append(row)
    body = {"model": "stamped", "stream": True, "max_tokens": tokens,
            "stream_options": {"include_usage": True},
            "messages": [{"role": "user", "content": "word " * 64}]}
    done = False
    try:
        row["t_send_ns"] = time.monotonic_ns()
        async with session.post(url, json=body, headers={"X-Request-Id": row["id"]}) as response:
            response.raise_for_status()
            async for line in response.content:
                line = line.strip()
                if not line.startswith(b"data:"):
                    continue
                data = line[5:].strip()
                if data == b"[DONE]":
                    done = True
                    continue
                now = time.monotonic_ns()
                choices = json.loads(data).get("choices")
                if choices and choices[0]["delta"].get("content"):
                    row["events"].append([now, now, 1])
    except (aiohttp.ClientError, asyncio.TimeoutError) as error:
        row["error"] = str(error)
    if not done:
        row["status"] = "failed"


async def main(options):
    url = options.base_url.rstrip("/") + "/v1/chat/completions"
    connector = aiohttp.TCPConnector(limit=0)  # the default of 100 would queue in silence
    timeout = aiohttp.ClientTimeout(total=600)
    rows = []
    rng = random.Random(1)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        start = time.monotonic_ns() + 100_000_000
        if options.rate:
            tasks, at = [], 0.0
            for index in range(options.requests):
                at += rng.expovariate(options.rate)
                intended = start + int(at * 1e9)
                await asyncio.sleep(max(0, (intended - time.monotonic_ns()) / 1e9))
                tasks.append(asyncio.create_task(
                    one(session, url, index, intended, options.output_len, rows)))
            await asyncio.gather(*tasks)
        else:
            todo = iter(range(options.requests))

            async def user():
                for index in todo:
                    await one(session, url, index, time.monotonic_ns(), options.output_len, rows)

            await asyncio.gather(*(user() for _ in range(options.concurrency)))
    with open(options.out, "w", encoding="utf-8") as file:
        for row in sorted(rows, key=lambda row: row["index"]):
            file.write(json.dumps(row) + "\n")


parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--base-url", required=True)
parser.add_argument("--requests", type=int, default=1000)
parser.add_argument("--output-len", type=int, default=100)
parser.add_argument("--rate", type=float, default=0)
parser.add_argument("--concurrency", type=int, default=1000)
parser.add_argument("--out", required=True)
asyncio.run(main(parser.parse_args()))

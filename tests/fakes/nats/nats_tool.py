# SPDX-License-Identifier: Apache-2.0
"""What another client of NATS sees: does one thing with nats-py, for a test.

    nats_tool.py URL object-get BUCKET NAME        prints sha256 and size
    nats_tool.py URL object-put BUCKET NAME SIZE   puts SIZE bytes, 0, 1, 2, ... 250, 0, ...
    nats_tool.py URL object-list BUCKET            prints the names
    nats_tool.py URL object-delete BUCKET NAME
    nats_tool.py URL kv-get BUCKET KEY             prints revision and value
    nats_tool.py URL kv-delete BUCKET KEY

Exits with 77 where nats-py is not installed.
"""
import asyncio
import hashlib
import sys

try:
    import nats
except ImportError:
    sys.exit(77)


async def objects(jetstream, command, bucket, *arguments):
    store = await jetstream.object_store(bucket)
    if command == "object-get":
        result = await store.get(arguments[0])
        print(hashlib.sha256(result.data).hexdigest(), result.info.size)
    elif command == "object-put":
        await store.put(arguments[0], bytes(i % 251 for i in range(int(arguments[1]))))
    elif command == "object-list":
        print(" ".join(sorted(info.name for info in await store.list())))
    elif command == "object-delete":
        await store.delete(arguments[0])


async def records(jetstream, command, bucket, key):
    bucket = await jetstream.key_value(bucket)
    if command == "kv-get":
        entry = await bucket.get(key)
        print(entry.revision, entry.value.decode())
    elif command == "kv-delete":
        await bucket.delete(key)


async def main(url, command, *arguments):
    connection = await nats.connect(url)
    act = objects if command.startswith("object-") else records
    await act(connection.jetstream(), command, *arguments)
    await connection.close()


asyncio.run(main(*sys.argv[1:]))

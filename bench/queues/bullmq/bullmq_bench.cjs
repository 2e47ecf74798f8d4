// SPDX-License-Identifier: Apache-2.0

// BullMQ's side of bench/mesh/mesh_bench.
//
//   node bullmq_bench.cjs work REDIS_URL         two workers, until SIGTERM
//   node bullmq_bench.cjs tiny REDIS_URL FILE    each line of FILE is an item, with nothing to do
//   node bullmq_bench.cjs retail REDIS_URL FILE  the retail job
//
// `tiny` and `retail` return when each item has been handled, and print a line of JSON.
'use strict';

const cluster = require('node:cluster');
const { readFileSync } = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');
const { Queue, Worker } = require('bullmq');
const Redis = require('ioredis');
const retail = require('./retail.cjs');

const HANDLED = 'handled'; // a hash: what was made of each item
const READY = 'ready'; // how many workers are
const WORKERS = 2;
const POLL_MS = 5;

// Each job has its own queue. A job says how to read its items, how many items to add at a time,
// and what to store for an item before it is acknowledged.
const JOBS = {
  tiny: { // does nothing but count the item
    items: lines,
    batch: 256,
    handle: (store, job) => store.hincrby(HANDLED, Number(job.data), 1),
  },
  retail: { // twice is once
    items: retail.items,
    batch: 32,
    handle: (store, job) => store.hset(HANDLED, job.id, retail.bill(job.data)),
  },
};

// Workers that only wait share this process. Billing keeps a core busy, so each billing worker has
// its own process.
async function work(connection) {
  const [name, concurrency] = cluster.isPrimary ? ['tiny', WORKERS] : ['retail', 1];
  const worker = new Worker(name, (job) => JOBS[name].handle(connection, job),
    { connection, concurrency });
  worker.on('error', (error) => console.error(error));
  process.once('SIGTERM', async () => {
    Object.values(cluster.workers ?? {}).forEach((child) => child.process.kill());
    await worker.close();
    process.exit(0);
  });
  await worker.waitUntilReady();
  if (cluster.isPrimary) {
    Array.from({ length: WORKERS }, () => cluster.fork());
  } else {
    await connection.incr(READY);
  }
}

async function produce(connection, name, path) {
  const { items, batch } = JOBS[name];
  const queue = new Queue(name, { connection, defaultJobOptions: { removeOnComplete: true } });
  const [first] = items(path);
  if (!first) {
    throw new Error('there are no items');
  }
  await queue.add(name, first);
  await awaitItems(connection, 1);
  await connection.del(HANDLED);

  const began = performance.now();
  const cpuBefore = process.cpuUsage();
  let count = 0;
  for (const some of batches(items(path), batch)) {
    await queue.addBulk(some.map((data) => ({ name, data })));
    count += some.length;
  }
  await awaitItems(connection, count);
  const seconds = (performance.now() - began) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  console.log(JSON.stringify({ items: count, seconds, cpu_seconds: (user + system) / 1e6 }));
  await queue.close();
  connection.disconnect();
}

function* lines(path) {
  yield* readFileSync(path, 'ascii').trim().split('\n');
}

function* batches(items, size) {
  let batch = [];
  for (const item of items) {
    if (batch.push(item) === size) {
      yield batch;
      batch = [];
    }
  }
  if (batch.length > 0) {
    yield batch;
  }
}

// Returns when that many different items are handled.
async function awaitItems(connection, items) {
  while (await connection.hlen(HANDLED) < items) {
    await sleep(POLL_MS);
  }
}

const [verb, url, file] = process.argv.slice(2);
const connection = new (Redis.Redis ?? Redis)(url, { maxRetriesPerRequest: null });
const done = verb === 'work' ? work(connection) : produce(connection, verb, file);
done.catch((error) => {
  console.error(error);
  process.exit(1);
});

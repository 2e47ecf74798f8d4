// BullMQ's side of the part `tiny` of bench/mesh/mesh_bench.
//
//   node bullmq_bench.cjs work REDIS_URL          two workers, until SIGTERM
//   node bullmq_bench.cjs produce REDIS_URL FILE  each line of FILE is an item; prints a line of JSON
'use strict';

const { readFileSync } = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');
const { Queue, Worker } = require('bullmq');
const Redis = require('ioredis');

const QUEUE = 'items';
const HANDLED = 'handled'; // a hash: how often each item was handled
const READY = 'ready'; // how many workers are
const WORKERS = 2;
const BATCH = 256;
const POLL_MS = 5;

// The handler does nothing but count the item before it is acknowledged.
async function work(connection) {
  const worker = new Worker(QUEUE, (job) => connection.hincrby(HANDLED, Number(job.data), 1),
    { connection, concurrency: WORKERS });
  worker.on('error', (error) => console.error(error));
  process.once('SIGTERM', async () => {
    await worker.close();
    process.exit(0);
  });
  await worker.waitUntilReady();
  await connection.incrby(READY, WORKERS);
}

async function produce(connection, lines) {
  const queue = new Queue(QUEUE, { connection, defaultJobOptions: { removeOnComplete: true } });
  await enqueue(queue, lines.slice(0, 1));
  await awaitItems(connection, 1);
  await connection.del(HANDLED);

  const began = performance.now();
  const cpuBefore = process.cpuUsage();
  await enqueue(queue, lines);
  await awaitItems(connection, lines.length);
  const seconds = (performance.now() - began) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  const times = await connection.hvals(HANDLED);
  console.log(JSON.stringify({
    items: lines.length,
    handled: times.map(Number).reduce((sum, count) => sum + count, 0),
    seconds,
    items_per_second: lines.length / seconds,
    cpu_seconds: (user + system) / 1e6,
  }));
  await queue.close();
  connection.disconnect();
}

async function enqueue(queue, lines) {
  for (let first = 0; first < lines.length; first += BATCH) {
    await queue.addBulk(lines.slice(first, first + BATCH).map((data) => ({ name: 'item', data })));
  }
}

// Returns when so many different items are counted.
async function awaitItems(connection, items) {
  while (await connection.hlen(HANDLED) < items) {
    await sleep(POLL_MS);
  }
}

const [verb, url, file] = process.argv.slice(2);
const connection = new (Redis.Redis ?? Redis)(url, { maxRetriesPerRequest: null });
const done = verb === 'work'
  ? work(connection)
  : produce(connection, readFileSync(file, 'ascii').trim().split('\n'));
done.catch((error) => {
  console.error(error);
  process.exit(1);
});

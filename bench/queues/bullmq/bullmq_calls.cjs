// SPDX-License-Identifier: Apache-2.0

// BullMQ's side of bench/calls/call_bench.
//
//   node bullmq_calls.cjs work REDIS_URL                two workers, until SIGTERM
//   node bullmq_calls.cjs call REDIS_URL CALLS CALLERS  prints what each call took, as a line of JSON
'use strict';

const { Queue, QueueEvents, Worker } = require('bullmq');
const Redis = require('ioredis');

const NAME = 'double';
const READY = 'ready'; // how many workers are
const WORKERS = 2;

async function work(connection) {
  const worker = new Worker(NAME, async (job) => 2 * job.data,
    { connection, concurrency: WORKERS });
  worker.on('error', (error) => console.error(error));
  process.once('SIGTERM', async () => {
    await worker.close();
    process.exit(0);
  });
  await worker.waitUntilReady();
  await connection.set(READY, WORKERS);
}

async function call(connection, calls, callers) {
  const queue = new Queue(NAME, { connection });
  queue.setMaxListeners(0);
  const events = new QueueEvents(NAME, { connection: connection.duplicate() });
  events.setMaxListeners(0);
  await events.waitUntilReady();
  const ask = async (number) => {
    const job = await queue.add(NAME, number);
    const doubled = await job.waitUntilFinished(events);
    if (doubled !== 2 * number) {
      throw new Error(`the double of ${number} is not ${doubled}`);
    }
  };
  await ask(0);
  const one = [];
  for (let number = 0; number < calls; ++number) {
    const began = performance.now();
    await ask(number);
    one.push((performance.now() - began) / 1000);
  }
  const began = performance.now();
  const at_once = await Promise.all(Array.from({ length: callers }, async (_, number) => {
    await ask(number);
    return (performance.now() - began) / 1000;
  }));
  console.log(JSON.stringify({ one, at_once }));
  await queue.close();
  await events.close();
  process.exit(0);
}

const [verb, url, calls, callers] = process.argv.slice(2);
const connection = new (Redis.Redis ?? Redis)(url, { maxRetriesPerRequest: null });
const done = verb === 'work' ? work(connection)
  : call(connection, Number(calls), Number(callers));
done.catch((error) => {
  console.error(error);
  process.exit(1);
});

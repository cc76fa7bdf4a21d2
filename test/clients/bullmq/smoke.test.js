'use strict';
// Checks that BullMQ, whose queues are Lua scripts, works with kevy. test/clients/run starts the server
// and sets KEVY_ADDR.
const test = require('node:test');
const assert = require('node:assert');
const { Queue, Worker, QueueEvents, FlowProducer } = require('bullmq');

const [host, port] = (process.env.KEVY_ADDR || '').split(':');
assert.ok(port, 'KEVY_ADDR is not set: run test/clients/run');
const connection = { host, port: Number(port) };

/** Runs f with a queue and its events; use() registers what is closed at the end. */
function withQueue(name, f) {
  test(name, { timeout: 15000 }, async () => {
    const open = [];
    const use = (thing) => open.unshift(thing) && thing;
    const queue = use(new Queue(name.replaceAll(' ', '-'), { connection }));
    const events = use(new QueueEvents(queue.name, { connection }));
    try {
      await Promise.all([queue.waitUntilReady(), events.waitUntilReady()]);
      await queue.obliterate({ force: true });
      await f(queue, events, use);
    } finally {
      await Promise.all(open.map((thing) => thing.close(true)));
    }
  });
}

withQueue('jobs and a delayed job', async (queue, events, use) => {
  const begin = Date.now();
  const jobs = await queue.addBulk(Array.from({ length: 30 }, (_, i) => ({ name: 'square', data: { n: i } })));
  const late = await queue.add('square', { n: 100 }, { delay: 400 });
  assert.equal(await late.getState(), 'delayed');
  use(new Worker(queue.name, async (job) => job.data.n ** 2, { connection, concurrency: 4 }));
  const results = await Promise.all(jobs.map((job) => job.waitUntilFinished(events, 8000)));
  assert.deepEqual(results, Array.from({ length: 30 }, (_, i) => i * i));
  assert.equal(await late.waitUntilFinished(events, 8000), 10000);
  assert.ok(Date.now() - begin >= 400, 'the delayed job came early');
  const counts = await queue.getJobCounts();
  assert.equal(counts.completed, 31);
  assert.equal(counts.waiting + counts.active + counts.delayed + counts.failed, 0);
});

withQueue('retries and priorities', async (queue, events, use) => {
  const order = [];
  await queue.pause();
  for (const priority of [3, 1, 2]) await queue.add(`p${priority}`, {}, { priority });
  const flaky = await queue.add('flaky', {}, { attempts: 3, backoff: { type: 'fixed', delay: 50 }, priority: 9 });
  const dead = await queue.add('dead', {}, { priority: 10 });
  use(new Worker(queue.name, async (job) => {
    order.push(job.name);
    if (job.name === 'dead' || (job.name === 'flaky' && job.attemptsMade < 2)) throw new Error('not yet');
  }, { connection }));
  await queue.resume();
  await flaky.waitUntilFinished(events, 8000);
  await assert.rejects(dead.waitUntilFinished(events, 8000), /not yet/);
  assert.deepEqual(order.slice(0, 3), ['p1', 'p2', 'p3']);
  assert.equal(order.filter((name) => name === 'flaky').length, 3);
  assert.equal((await queue.getFailed()).length, 1);
});

withQueue('flows and repeated jobs', async (queue, events, use) => {
  let ticks = 0;
  use(new Worker(queue.name, async (job) => {
    if (job.name === 'tick') ticks++;
    const children = Object.values(await job.getChildrenValues());
    return children.reduce((a, b) => a + b, job.data.n || 0);
  }, { connection, concurrency: 2 }));
  const flow = use(new FlowProducer({ connection }));
  const child = (n) => ({ name: 'child', queueName: queue.name, data: { n } });
  const { job } = await flow.add({ name: 'parent', queueName: queue.name, data: { n: 1 }, children: [child(2), child(3)] });
  assert.equal(await job.waitUntilFinished(events, 8000), 6);
  await queue.upsertJobScheduler('often', { every: 100 }, { name: 'tick' });
  for (let i = 0; i < 300 && ticks < 3; i++) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(ticks >= 3, `${ticks} ticks`);
  assert.equal(await queue.removeJobScheduler('often'), true);
});

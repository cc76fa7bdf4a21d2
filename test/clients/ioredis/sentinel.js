'use strict';
// Kills the primary; an ioredis client that asks sentinels for it goes on, and so does its subscriber. test/clients/run sets
// KEVY_SENTINELS (addresses) and KEVY_PIDS (port=pid pairs).
const test = require('node:test');
const assert = require('node:assert');
const Redis = require('ioredis');

const words = (name) => (process.env[name] || '').split(' ').filter(Boolean);
const sentinels = words('KEVY_SENTINELS').map((a) => ({ host: a.split(':')[0], port: Number(a.split(':')[1]) }));
const pids = new Map(words('KEVY_PIDS').map((p) => p.split('=')));
assert.ok(sentinels.length, 'KEVY_SENTINELS is not set: run test/clients/run ioredis-sentinel');

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Writes until 50 writes in a row were acknowledged, by another server than that on the port other, and returns the port. */
async function works(redis, other) {
  let port;
  for (let row = 0; row < 50; await sleep(2)) {
    try {
      await redis.incr('n');
      port = /tcp_port:(\d+)/.exec(await redis.info('server'))[1];
      row = port === other ? 0 : row + 1;
    } catch {
      row = 0; // the primary is not there, or no primary any more
    }
  }
  return port;
}

test('the primary is killed', { timeout: 50000 }, async () => {
  const options = { sentinels, name: 'kevy', maxRetriesPerRequest: 1 };
  const redis = new Redis(options);
  const subscriber = new Redis(options);
  redis.on('error', () => {});
  subscriber.on('error', () => {});
  try {
    const heard = new Set();
    subscriber.on('message', (_, text) => heard.add(text));
    await subscriber.subscribe('news');
    const first = await works(redis, '');
    assert.equal(await redis.wait(2, 10000), 2);
    const before = Number(await redis.get('n'));
    process.kill(Number(pids.get(first)), 'SIGKILL');
    const second = await works(redis, first);
    assert.ok(Number(await redis.get('n')) >= before + 50);
    while (!heard.has(second)) {
      await redis.publish('news', second);
      await sleep(100);
    }
  } finally {
    redis.disconnect();
    subscriber.disconnect();
  }
});

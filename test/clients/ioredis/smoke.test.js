'use strict';
// Checks that ioredis works with kevy. test/clients/run starts the server and sets KEVY_ADDR.
const test = require('node:test');
const assert = require('node:assert');
const Redis = require('ioredis');

const [host, port] = (process.env.KEVY_ADDR || '').split(':');
assert.ok(port, 'KEVY_ADDR is not set: run test/clients/run');

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs f with a connected client on an empty server. */
function withClient(name, options, f) {
  test(name, { timeout: 30000 }, async () => {
    const redis = new Redis({ host, port: Number(port), ...options });
    try {
      await redis.flushall();
      await f(redis);
    } finally {
      await redis.quit();
    }
  });
}

withClient('default handshake', { connectionName: 'smoke' }, async (redis) => {
  assert.equal(redis.status, 'ready'); // the ready check has parsed INFO
  assert.equal(await redis.ping(), 'PONG');
  assert.equal(await redis.client('GETNAME'), 'smoke');
  assert.match(await redis.client('INFO'), /name=smoke.*lib-name=ioredis/);
  assert.match(await redis.info('server'), /redis_version:/);
  assert.ok((await redis.command('COUNT')) > 50);
});

withClient('strings', {}, async (redis) => {
  assert.equal(await redis.set('k', 'v'), 'OK');
  assert.equal(await redis.get('k'), 'v');
  assert.equal(await redis.get('nosuch'), null);
  assert.equal(await redis.set('k', 'w', 'NX'), null);
  assert.equal(await redis.set('k', 'w', 'GET'), 'v');
  assert.equal(await redis.incrby('n', 41), 41);
  assert.equal(await redis.incrbyfloat('f', 1.5), '1.5');
  assert.equal(await redis.mset({ a: 1, b: 'two' }), 'OK');
  assert.deepEqual(await redis.mget('a', 'nosuch', 'b'), ['1', null, 'two']);
  await assert.rejects(redis.incr('b'), /not an integer/);
  const binary = Buffer.from([0, 1, 13, 10, 255]);
  await redis.set('binary', binary);
  assert.deepEqual(await redis.getBuffer('binary'), binary);
});

withClient('expiry', {}, async (redis) => {
  await redis.set('k', 'v', 'EX', 100);
  assert.equal(await redis.ttl('k'), 100);
  assert.equal(await redis.expire('k', 50, 'GT'), 0);
  assert.equal(await redis.persist('k'), 1);
  assert.equal(await redis.ttl('k'), -1);
  await redis.pexpire('k', 20);
  await sleep(60);
  assert.equal(await redis.exists('k'), 0);
});

withClient('pipeline', {}, async (redis) => {
  const pipeline = redis.pipeline();
  for (let i = 0; i < 2000; i++) pipeline.set(`key:${i}`, i);
  pipeline.incr('key:1999').get('nosuch').lpush('key:1').dbsize();
  const replies = await pipeline.exec();
  assert.equal(replies.length, 2004);
  assert.deepEqual(replies[2000], [null, 2000]);
  assert.deepEqual(replies[2001], [null, null]);
  assert.ok(replies[2002][0] instanceof Error);
  assert.deepEqual(replies[2003], [null, 2000]);
  const seen = new Set();
  for await (const keys of redis.scanStream({ match: 'key:*', count: 100 })) keys.forEach((k) => seen.add(k));
  assert.equal(seen.size, 2000);
});

withClient('auto pipelining', { enableAutoPipelining: true }, async (redis) => {
  await Promise.all(Array.from({ length: 500 }, (_, i) => redis.set(`k${i}`, i)));
  const vals = await Promise.all(Array.from({ length: 500 }, (_, i) => redis.get(`k${i}`)));
  assert.deepEqual(vals, Array.from({ length: 500 }, (_, i) => String(i)));
});

withClient('transaction', {}, async (redis) => {
  const replies = await redis.multi().set('a', 1).incrby('a', 5).get('a').exec();
  assert.deepEqual(replies, [[null, 'OK'], [null, 6], [null, '6']]);
  const other = redis.duplicate();
  await redis.watch('a');
  await other.set('a', 'changed');
  assert.equal(await redis.multi().set('a', 'lost').exec(), null);
  assert.equal(await other.get('a'), 'changed');
  await other.quit();
});

withClient('feed', {}, async (redis) => {
  const shards = await redis.call('FEED.SHARDS');
  assert.ok(shards >= 1);
  const tails = [];
  for (let i = 0; i < shards; i++) tails.push(await redis.call('FEED.TAIL', i));
  await redis.set('user:1', 'Ann');
  const frames = [];
  for (let i = 0; i < shards; i++) {
    const [gen, off] = tails[i];
    assert.ok(Number.isSafeInteger(gen));
    const reply = await redis.call('FEED.READ', i, gen, off, 'PREFIX', 'user:');
    assert.equal(reply[0], gen);
    frames.push(...reply[2]);
  }
  assert.deepEqual(frames, [[0, ['SET', 'user:1', 'Ann']]]);
  assert.deepEqual(await redis.call('PREFIX.STATS', 'user:'), ['keys', 1, 'expires', 0]);
  await assert.rejects(redis.call('FEED.READ', 0, 1, 0), /^ReplyError: FEEDRESYNC \d+ \d+$/);
});

'use strict';
// Checks that ioredis works with every type of kevy, its scripts and pub/sub.
const test = require('node:test');
const assert = require('node:assert');
const Redis = require('ioredis');

const [host, port] = (process.env.KEVY_ADDR || '').split(':');
assert.ok(port, 'KEVY_ADDR is not set: run test/clients/run');

/** Runs f with a connected client on an empty server. */
function withClient(name, f) {
  test(name, { timeout: 10000 }, async () => {
    const redis = new Redis({ host, port: Number(port), maxRetriesPerRequest: 1 });
    try {
      await redis.flushall();
      await f(redis);
    } finally {
      redis.disconnect();
    }
  });
}

withClient('hashes', async (redis) => {
  assert.equal(await redis.hset('h', { a: 1, b: 'two' }), 2);
  assert.deepEqual(await redis.hgetall('h'), { a: '1', b: 'two' });
  assert.equal(await redis.hincrby('h', 'a', 41), 42);
  assert.deepEqual(await redis.hmget('h', 'a', 'nosuch'), ['42', null]);
  assert.deepEqual(await redis.call('HPEXPIRE', 'h', 50000, 'FIELDS', 1, 'a'), [1]);
  const fields = [];
  for await (const part of redis.hscanStream('h')) fields.push(...part);
  assert.deepEqual(fields, ['a', '42', 'b', 'two']);
});

withClient('lists and blocking', async (redis) => {
  assert.equal(await redis.rpush('l', 'a', 'b', 'c'), 3);
  assert.deepEqual(await redis.lrange('l', 0, -1), ['a', 'b', 'c']);
  assert.equal(await redis.lmove('l', 'm', 'RIGHT', 'LEFT'), 'c');
  const other = redis.duplicate();
  const waiting = other.blpop('q1', 'q2', 5);
  await new Promise((resolve) => setTimeout(resolve, 50));
  await redis.rpush('q2', 'job');
  assert.deepEqual(await waiting, ['q2', 'job']);
  assert.equal(await other.brpop('q1', 0.1), null);
  other.disconnect();
});

withClient('sets and sorted sets', async (redis) => {
  assert.equal(await redis.sadd('s', 1, 2, 3), 3);
  await redis.sadd('r', 2, 3, 4);
  assert.deepEqual((await redis.sinter('s', 'r')).sort(), ['2', '3']);
  assert.deepEqual(await redis.smismember('s', 1, 9), [1, 0]);
  assert.equal(await redis.zadd('z', 1, 'a', 2.5, 'b'), 2);
  assert.deepEqual(await redis.zrange('z', 0, -1, 'WITHSCORES'), ['a', '1', 'b', '2.5']);
  assert.equal(await redis.zadd('z', 'INCR', 0.5, 'b'), '3');
  assert.equal(await redis.zrank('z', 'b'), 1);
  assert.deepEqual(await redis.bzpopmax('nosuch', 'z', 1), ['z', 'b', '3']);
});

withClient('streams', async (redis) => {
  assert.equal(await redis.xadd('s', '1-1', 'f', 'v'), '1-1');
  assert.match(await redis.xadd('s', 'MAXLEN', '~', 1000, '*', 'f', 'w'), /^\d{13}-0$/);
  assert.equal(await redis.xgroup('CREATE', 's', 'g', '0'), 'OK');
  const [[name, [first]]] = await redis.xreadgroup('GROUP', 'g', 'ann', 'COUNT', 1, 'STREAMS', 's', '>');
  assert.deepEqual([name, first], ['s', ['1-1', ['f', 'v']]]);
  assert.deepEqual(await redis.xpending('s', 'g'), [1, '1-1', '1-1', [['ann', '1']]]);
  assert.equal(await redis.xack('s', 'g', '1-1'), 1);
  await assert.rejects(redis.xreadgroup('GROUP', 'none', 'ann', 'STREAMS', 's', '>'), /NOGROUP/);
});

withClient('scripts', async (redis) => {
  redis.defineCommand('addTo', { numberOfKeys: 1, lua: "return {redis.call('INCRBY', KEYS[1], ARGV[1]), KEYS[1]}" });
  assert.deepEqual(await redis.addTo('n', 4), [4, 'n']);
  assert.deepEqual(await redis.pipeline().addTo('n', 5).get('n').exec(), [[null, [9, 'n']], [null, '9']]);
  assert.equal(await redis.eval("return cjson.encode({KEYS[1], tonumber(ARGV[1])})", 1, 'k', 7), '["k",7]');
  await assert.rejects(redis.evalsha('f'.repeat(40), 0), /NOSCRIPT/);
});

withClient('pub/sub', async (redis) => {
  const sub = redis.duplicate();
  assert.equal(await sub.subscribe('news'), 1);
  assert.equal(await sub.psubscribe('user.*'), 2);
  const got = [];
  const both = new Promise((resolve) => {
    const add = (...words) => got.push(words.join(' ')) === 2 && resolve();
    sub.on('message', add);
    sub.on('pmessage', add);
  });
  assert.equal(await redis.publish('news', 'hello'), 1);
  assert.equal(await redis.publish('user.1', 'hi'), 1);
  await both;
  assert.deepEqual(got, ['news hello', 'user.* user.1 hi']);
  assert.equal(await sub.unsubscribe('news'), 1);
  sub.disconnect();
});

'use strict';
// Checks that node-redis (client, pool, RESP3, client-side cache) works with kevy. test/clients/run
// starts the server and sets KEVY_ADDR.
const test = require('node:test');
const assert = require('node:assert');
const { createClient, createClientPool, BasicClientSideCache, defineScript } = require('redis');

assert.ok(process.env.KEVY_ADDR, 'KEVY_ADDR is not set: run test/clients/run');
const url = `redis://${process.env.KEVY_ADDR}`;

const until = async (what, ok) => {
  for (let i = 0; i < 300; i++) {
    if (await ok()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.fail(`not within 3 s: ${what}`);
};

/** Runs f with a connected client on an empty server, over both protocols. */
function withClient(name, f, options = {}) {
  for (const RESP of [2, 3]) {
    test(`${name}, RESP${RESP}`, { timeout: 10000 }, async () => {
      const client = createClient({ url, RESP, ...options });
      client.on('error', () => {});
      await client.connect();
      try {
        await client.flushAll();
        await f(client, RESP);
      } finally {
        client.destroy();
      }
    });
  }
}

const plain = (o) => JSON.parse(JSON.stringify(o));

withClient('strings, hashes, lists, sets', async (client) => {
  assert.equal(await client.set('k', 'v', { expiration: { type: 'EX', value: 100 }, condition: 'NX' }), 'OK');
  assert.equal(await client.get('nosuch'), null);
  assert.equal(await client.ttl('k'), 100);
  assert.equal(await client.hSet('h', { a: 1, b: 'two' }), 2);
  assert.deepEqual(plain(await client.hGetAll('h')), { a: '1', b: 'two' });
  assert.deepEqual(await client.hExpire('h', ['a', 'nosuch'], 100), [1, -2]);
  assert.equal(await client.rPush('l', ['a', 'b', 'c']), 3);
  assert.deepEqual(await client.lRange('l', 0, -1), ['a', 'b', 'c']);
  assert.deepEqual(plain(await client.blPop('l', 1)), { key: 'l', element: 'a' });
  assert.equal(await client.sAdd('s', ['1', '2', 'x']), 3);
  assert.deepEqual((await client.sMembers('s')).sort(), ['1', '2', 'x']);
  const keys = [];
  for await (const part of client.scanIterator()) keys.push(...part);
  assert.deepEqual(keys.sort(), ['h', 'k', 'l', 's']);
});

withClient('sorted sets, streams', async (client, RESP) => {
  assert.equal(await client.zAdd('z', [{ score: 1, value: 'a' }, { score: 2.5, value: 'b' }]), 2);
  assert.deepEqual(plain(await client.zRangeWithScores('z', 0, -1)), [{ value: 'a', score: 1 }, { value: 'b', score: 2.5 }]);
  assert.equal(await client.zIncrBy('z', 1, 'a'), 2);
  assert.deepEqual(plain(await client.zPopMax('z')), { value: 'b', score: 2.5 });
  assert.equal(await client.xAdd('s', '1-1', { f: 'v' }), '1-1');
  assert.equal(await client.xGroupCreate('s', 'g', '0'), 'OK');
  const read = plain(await client.xReadGroup('g', 'ann', { key: 's', id: '>' }, { COUNT: 1, BLOCK: 100 }));
  // over RESP3 the library hands on the reply as it is
  const want = RESP === 3 ? { s: [['1-1', ['f', 'v']]] } : [{ name: 's', messages: [{ id: '1-1', message: { f: 'v' } }] }];
  assert.deepEqual(read, want);
  assert.equal((await client.xPending('s', 'g')).pending, 1);
  assert.equal(await client.xAck('s', 'g', '1-1'), 1);
  assert.equal((await client.xInfoStream('s')).length, 1);
});

const scripts = {
  addTo: defineScript({
    SCRIPT: "return redis.call('INCRBY', KEYS[1], ARGV[1])",
    NUMBER_OF_KEYS: 1,
    parseCommand(parser, key, n) {
      parser.pushKey(key);
      parser.push(String(n));
    },
    transformReply: (reply) => reply,
  }),
};

withClient('transactions, scripts', async (client) => {
  assert.deepEqual(await client.multi().set('a', '1').incrBy('a', 5).exec(), ['OK', 6]);
  await client.watch('a');
  const other = await client.duplicate().connect();
  await other.set('a', 'changed');
  await assert.rejects(client.multi().set('a', 'lost').exec(), /watched/i);
  other.destroy();
  assert.equal(await client.addTo('n', 4), 4);
  assert.equal(await client.eval("return ARGV[1] .. '!'", { arguments: ['x'] }), 'x!');
}, { scripts });

withClient('pub/sub', async (client) => {
  const sub = await client.duplicate().connect();
  const got = [];
  await sub.subscribe('news', (message, channel) => got.push(`${channel} ${message}`));
  await sub.pSubscribe('user.*', (message, channel) => got.push(`${channel} ${message}`));
  assert.equal(await client.publish('news', 'hello'), 1);
  assert.equal(await client.publish('user.1', 'hi'), 1);
  await until('both messages', () => got.length === 2);
  assert.deepEqual(got, ['news hello', 'user.1 hi']);
  await sub.unsubscribe('news');
  sub.destroy();
});

test('client-side cache', { timeout: 10000 }, async () => {
  const clientSideCache = new BasicClientSideCache({ ttl: 0, maxEntries: 100 });
  const client = await createClient({ url, RESP: 3, clientSideCache }).connect();
  const other = await createClient({ url }).connect();
  try {
    await other.set('k', 'one');
    assert.equal(await client.get('k'), 'one');
    assert.equal(await client.get('k'), 'one');
    assert.equal(clientSideCache.stats().hitCount, 1);
    await other.set('k', 'two');
    await until('the invalidation', async () => (await client.get('k')) === 'two');
  } finally {
    client.destroy();
    other.destroy();
  }
});

test('pool', { timeout: 10000 }, async () => {
  const pool = await createClientPool({ url }, { maximum: 8 }).connect();
  await pool.flushAll();
  await Promise.all(Array.from({ length: 200 }, () => pool.incr('n')));
  assert.equal(await pool.get('n'), '200');
  await pool.close();
});

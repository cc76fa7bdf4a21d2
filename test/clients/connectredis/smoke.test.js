'use strict';
// Checks that connect-redis keeps Express's sessions in kevy. test/clients/run starts the server and
// sets KEVY_ADDR.
const test = require('node:test');
const assert = require('node:assert');
const express = require('express');
const session = require('express-session');
const { createClient } = require('redis');
const { RedisStore } = require('connect-redis');

assert.ok(process.env.KEVY_ADDR, 'KEVY_ADDR is not set: run test/clients/run');

/** Runs f with a store on an empty server. */
function withStore(name, f) {
  test(name, { timeout: 10000 }, async () => {
    const client = await createClient({ url: `redis://${process.env.KEVY_ADDR}` }).connect();
    try {
      await client.flushAll();
      await f(new RedisStore({ client, prefix: 'sess:', ttl: 60 }), client);
    } finally {
      client.destroy();
    }
  });
}

/** Listens with an app that counts a session's visits; returns the server. */
async function listen(store) {
  const app = express();
  app.use(session({ store, secret: 'smoke', resave: false, saveUninitialized: false }));
  app.get('/', (req, res) => {
    req.session.visits = (req.session.visits || 0) + 1;
    res.json(req.session.visits);
  });
  app.get('/leave', (req, res) => req.session.destroy(() => res.json(0)));
  return new Promise((resolve) => {
    const server = app.listen(0, '127.0.0.1', () => resolve(server));
  });
}

withStore('sessions of an app', async (store, client) => {
  const server = await listen(store);
  const url = `http://127.0.0.1:${server.address().port}`;
  try {
    const first = await fetch(url);
    assert.equal(await first.json(), 1);
    const headers = { cookie: first.headers.get('set-cookie').split(';')[0] };
    assert.equal(await (await fetch(url, { headers })).json(), 2);
    assert.equal(await (await fetch(url)).json(), 1); // a visitor without the cookie
    const keys = await client.keys('sess:*');
    assert.equal(keys.length, 2);
    const ttl = await client.ttl(keys[0]);
    assert.ok(ttl > 50 && ttl <= 60, `ttl ${ttl}`);
    await fetch(`${url}/leave`, { headers });
    assert.equal((await client.keys('sess:*')).length, 1);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

withStore('the store itself', async (store) => {
  const data = { cookie: { originalMaxAge: 5000 }, user: 'Ann' };
  await store.set('a', data);
  await store.set('b', data);
  assert.equal((await store.get('a')).user, 'Ann');
  assert.equal(await store.get('nosuch'), null);
  await store.touch('a', data);
  assert.equal(await store.length(), 2);
  assert.deepEqual((await store.ids()).sort(), ['a', 'b']);
  assert.deepEqual((await store.all()).map((s) => s.id).sort(), ['a', 'b']);
  await store.destroy('a');
  assert.equal(await store.length(), 1);
  await store.clear();
  assert.equal(await store.length(), 0);
});

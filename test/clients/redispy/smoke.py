"""Checks that redis-py, as Debian packages it (python3-redis), works with kevy.

test/clients/run starts the server and sets KEVY_ADDR.
"""
import os
import threading
import time
import unittest

import redis

HOST, _, PORT = os.environ.get("KEVY_ADDR", "").partition(":")


class Smoke(unittest.TestCase):
    """Each test has a client of its own and an empty server."""

    def setUp(self):
        self.r = redis.Redis(host=HOST, port=int(PORT), decode_responses=True, socket_timeout=5, client_name="smoke")
        self.r.flushall()

    def tearDown(self):
        self.r.close()

    def test_handshake(self):
        self.assertTrue(self.r.ping())
        self.assertEqual(self.r.client_getname(), "smoke")
        self.assertIn("redis_version", self.r.info("server"))
        self.assertEqual(self.r.config_get("maxmemory-policy"), {"maxmemory-policy": "noeviction"})
        self.assertTrue(any(c["name"] == "smoke" for c in self.r.client_list()))
        self.assertIn("get", self.r.command())

    def test_strings_and_expiry(self):
        r = self.r
        self.assertTrue(r.set("k", "v", ex=100))
        self.assertIsNone(r.set("k", "w", nx=True))
        self.assertEqual(r.ttl("k"), 100)
        self.assertEqual(r.set("k", "w", get=True, keepttl=True), "v")
        self.assertEqual(r.mget("k", "nosuch"), ["w", None])
        self.assertEqual(r.incrbyfloat("f", 1.5), 1.5)
        with self.assertRaises(redis.ResponseError):
            r.incr("k")
        self.assertEqual(sorted(r.scan_iter()), ["f", "k"])
        self.assertEqual(r.bitfield("b").set("u8", 0, 255).incrby("u8", 0, 1).execute(), [0, 0])
        self.assertEqual(r.pfadd("p", "a", "b"), 1)

    def test_hashes_and_lists(self):
        r = self.r
        self.assertEqual(r.hset("h", mapping={"a": 1, "b": "two"}), 2)
        self.assertEqual(r.hgetall("h"), {"a": "1", "b": "two"})
        self.assertEqual(dict(r.hscan_iter("h")), {"a": "1", "b": "two"})
        self.assertEqual(r.rpush("l", "a", "b", "c"), 3)
        self.assertEqual(r.lrange("l", 0, -1), ["a", "b", "c"])
        self.assertEqual(r.lmpop(1, "l", direction="LEFT", count=2), ["l", ["a", "b"]])
        self.assertEqual(r.sort("l", alpha=True), ["c"])

    def test_blocking(self):
        r, got = self.r, []
        other = threading.Thread(target=lambda: got.append(r.blpop(["q1", "q2"], timeout=4)))
        other.start()
        time.sleep(0.05)
        r.rpush("q2", "job")
        other.join()
        self.assertEqual(got, [("q2", "job")])
        self.assertIsNone(r.brpop("q1", timeout=0.1))

    def test_sets_and_sorted_sets(self):
        r = self.r
        self.assertEqual(r.sadd("s", 1, 2, 3), 3)
        r.sadd("t", 2, 3, 4)
        self.assertEqual(r.sinter("s", "t"), {"2", "3"})
        self.assertEqual(r.zadd("z", {"a": 1, "b": 2.5}), 2)
        self.assertEqual(r.zrange("z", 0, -1, withscores=True), [("a", 1.0), ("b", 2.5)])
        self.assertEqual(r.zadd("z", {"a": 0.5}, incr=True), 1.5)
        self.assertEqual(r.bzpopmax("z", timeout=1), ("z", "b", 2.5))
        self.assertEqual(r.geoadd("g", (13.361389, 38.115556, "Palermo")), 1)
        self.assertEqual(r.geosearch("g", longitude=13, latitude=38, radius=100, unit="km"), ["Palermo"])

    def test_streams(self):
        r = self.r
        self.assertEqual(r.xadd("s", {"f": "v"}, id="1-1"), "1-1")
        self.assertTrue(r.xgroup_create("s", "g", "0"))
        self.assertEqual(r.xreadgroup("g", "ann", {"s": ">"}), [["s", [("1-1", {"f": "v"})]]])
        pending = {"pending": 1, "min": "1-1", "max": "1-1", "consumers": [{"name": "ann", "pending": 1}]}
        self.assertEqual(r.xpending("s", "g"), pending)
        self.assertEqual(r.xclaim("s", "g", "bob", 0, ["1-1"]), [("1-1", {"f": "v"})])
        self.assertEqual(r.xinfo_groups("s")[0]["consumers"], 2)
        self.assertEqual(r.xack("s", "g", "1-1"), 1)
        self.assertEqual(r.xinfo_stream("s")["length"], 1)

    def test_pipeline_transaction_lock(self):
        r = self.r
        pipe = r.pipeline(transaction=False)
        for _ in range(1000):
            pipe.incr("n")
        self.assertEqual(pipe.execute()[-1], 1000)
        self.assertEqual(r.transaction(lambda p: (p.multi(), p.incr("n")), "n"), [1001])
        with r.pipeline() as p:
            p.watch("n")
            r.set("n", "changed")
            p.multi()
            p.set("n", "lost")
            self.assertRaises(redis.WatchError, p.execute)
        with r.lock("lock", timeout=5) as lock:
            self.assertFalse(r.lock("lock", timeout=5).acquire(blocking=False))
            self.assertTrue(lock.extend(5))
        self.assertEqual(r.exists("lock"), 0)

    def test_scripts(self):
        script = self.r.register_script("return {redis.call('INCRBY', KEYS[1], ARGV[1]), KEYS[1]}")
        self.assertEqual(script(keys=["n"], args=[4]), [4, "n"])
        self.assertEqual(self.r.script_exists(script.sha, "0" * 40), [True, False])
        lib = "#!lua name=py\nredis.register_function('one', function() return 1 end)"
        self.assertEqual(self.r.function_load(lib, replace=True), "py")
        self.assertEqual(self.r.fcall("one", 0), 1)

    def test_pubsub(self):
        sub = self.r.pubsub(ignore_subscribe_messages=False)
        sub.subscribe("news")
        sub.psubscribe("user.*")
        self.assertEqual([sub.get_message(timeout=2)["type"] for _ in range(2)], ["subscribe", "psubscribe"])
        self.assertEqual(self.r.publish("user.1", "hi"), 1)
        want = {"type": "pmessage", "pattern": "user.*", "channel": "user.1", "data": "hi"}
        self.assertEqual(sub.get_message(timeout=2), want)
        self.assertEqual(self.r.pubsub_numsub("news"), [("news", 1)])
        sub.close()


if __name__ == "__main__":
    if not PORT:
        raise SystemExit("KEVY_ADDR is not set: run test/clients/run")
    unittest.main()

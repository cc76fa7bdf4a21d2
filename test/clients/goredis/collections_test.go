package goredis

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// same compares replies that are not comparable.
func same[T any](t *testing.T, what string, got T, err error, want T) {
	t.Helper()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: got %v, %v; want %v", what, got, err, want)
	}
}

func TestHashes(t *testing.T) {
	both(t, func(t *testing.T, c *redis.Client) {
		ctx := t.Context()
		n, err := c.HSet(ctx, "h", "name", "Ann", "age", 30).Result()
		equal(t, "HSET", n, err, 2)
		var user struct {
			Name string `redis:"name"`
			Age  int    `redis:"age"`
		}
		err = c.HGetAll(ctx, "h").Scan(&user)
		equal(t, "HGETALL into a struct", user.Age, err, 30)
		n, err = c.HIncrBy(ctx, "h", "age", 2).Result()
		equal(t, "HINCRBY", n, err, 32)
		vals, err := c.HMGet(ctx, "h", "name", "nosuch").Result()
		same(t, "HMGET", vals, err, []any{"Ann", nil})
		all, err := c.HGetAll(ctx, "h").Result()
		same(t, "HGETALL", all, err, map[string]string{"name": "Ann", "age": "32"})
		states, err := c.HExpire(ctx, "h", time.Hour, "age", "nosuch").Result()
		same(t, "HEXPIRE", states, err, []int64{1, -2})
		ttls, err := c.HTTL(ctx, "h", "age", "name").Result()
		same(t, "HTTL", ttls, err, []int64{3600, -1})
		pairs, err := c.HRandFieldWithValues(ctx, "h", 2).Result()
		equal(t, "HRANDFIELD WITHVALUES", len(pairs), err, 2)
		keys, _, err := c.HScan(ctx, "h", 0, "n*", 10).Result()
		same(t, "HSCAN", keys, err, []string{"name", "Ann"})
		got, err := c.HGetDel(ctx, "h", "name").Result()
		same(t, "HGETDEL", got, err, []string{"Ann"})
	})
}

func TestLists(t *testing.T) {
	both(t, func(t *testing.T, c *redis.Client) {
		ctx := t.Context()
		n, err := c.RPush(ctx, "l", "a", "b", "c", "b").Result()
		equal(t, "RPUSH", n, err, 4)
		vals, err := c.LRange(ctx, "l", 0, -1).Result()
		same(t, "LRANGE", vals, err, []string{"a", "b", "c", "b"})
		at, err := c.LPosCount(ctx, "l", "b", 0, redis.LPosArgs{}).Result()
		same(t, "LPOS COUNT", at, err, []int64{1, 3})
		v, err := c.LMove(ctx, "l", "m", "LEFT", "RIGHT").Result()
		equal(t, "LMOVE", v, err, "a")
		key, vals, err := c.LMPop(ctx, "right", 2, "nosuch", "l").Result()
		equal(t, "LMPOP", key, err, "l")
		same(t, "LMPOP", vals, err, []string{"b", "c"})
		if err := c.LPop(ctx, "nosuch").Err(); !errors.Is(err, redis.Nil) {
			t.Fatalf("LPOP of nothing: %v", err)
		}
	})
}

func TestBlocking(t *testing.T) {
	both(t, func(t *testing.T, c *redis.Client) {
		ctx := t.Context()
		got := make(chan []string, 1)
		go func() {
			v, err := c.BLPop(ctx, 5*time.Second, "q1", "q2").Result()
			if err != nil {
				v = []string{err.Error()}
			}
			got <- v
		}()
		time.Sleep(50 * time.Millisecond)
		if err := c.RPush(ctx, "q2", "job").Err(); err != nil {
			t.Fatal(err)
		}
		same(t, "BLPOP", <-got, nil, []string{"q2", "job"})
		if err := c.BRPop(ctx, time.Second, "q1").Err(); !errors.Is(err, redis.Nil) {
			t.Fatalf("BRPOP after its timeout: %v", err)
		}
		c.ZAdd(ctx, "z", redis.Z{Score: 1, Member: "m"})
		z, err := c.BZPopMin(ctx, time.Second, "z").Result()
		equal(t, "BZPOPMIN", *z, err, redis.ZWithKey{Key: "z", Z: redis.Z{Score: 1, Member: "m"}})
	})
}

func TestSets(t *testing.T) {
	both(t, func(t *testing.T, c *redis.Client) {
		ctx := t.Context()
		n, err := c.SAdd(ctx, "s", 1, 2, 3, "x").Result()
		equal(t, "SADD", n, err, 4)
		c.SAdd(ctx, "r", 2, 3, 4)
		inter, err := c.SInter(ctx, "s", "r").Result()
		slices.Sort(inter)
		same(t, "SINTER", inter, err, []string{"2", "3"})
		n, err = c.SInterCard(ctx, 1, "s", "r").Result()
		equal(t, "SINTERCARD", n, err, 1)
		is, err := c.SMIsMember(ctx, "s", "x", "y").Result()
		same(t, "SMISMEMBER", is, err, []bool{true, false})
		m, err := c.SMembersMap(ctx, "r").Result()
		equal(t, "SMEMBERS", len(m), err, 3)
		n, err = c.SUnionStore(ctx, "u", "s", "r").Result()
		equal(t, "SUNIONSTORE", n, err, 5)
		popped, err := c.SPopN(ctx, "u", 9).Result()
		equal(t, "SPOP", len(popped), err, 5)
	})
}

func TestSortedSets(t *testing.T) {
	both(t, func(t *testing.T, c *redis.Client) {
		ctx := t.Context()
		n, err := c.ZAdd(ctx, "z", redis.Z{Score: 1, Member: "a"}, redis.Z{Score: 2.5, Member: "b"}, redis.Z{Score: 3, Member: "c"}).Result()
		equal(t, "ZADD", n, err, 3)
		f, err := c.ZIncrBy(ctx, "z", 1.5, "a").Result()
		equal(t, "ZINCRBY", f, err, 2.5)
		zs, err := c.ZRangeWithScores(ctx, "z", 0, -1).Result()
		same(t, "ZRANGE WITHSCORES", zs, err, []redis.Z{{Score: 2.5, Member: "a"}, {Score: 2.5, Member: "b"}, {Score: 3, Member: "c"}})
		vals, err := c.ZRangeArgs(ctx, redis.ZRangeArgs{Key: "z", Start: "(2.5", Stop: "+inf", ByScore: true, Count: 5}).Result()
		same(t, "ZRANGE BYSCORE", vals, err, []string{"c"})
		rank, err := c.ZRankWithScore(ctx, "z", "b").Result()
		equal(t, "ZRANK WITHSCORE", rank, err, redis.RankScore{Rank: 1, Score: 2.5})
		scores, err := c.ZMScore(ctx, "z", "c", "nosuch").Result()
		same(t, "ZMSCORE", scores, err, []float64{3, 0})
		union, err := c.ZUnionWithScores(ctx, redis.ZStore{Keys: []string{"z", "z"}, Weights: []float64{2, 1}}).Result()
		equal(t, "ZUNION", union[2], err, redis.Z{Score: 9, Member: "c"})
		key, popped, err := c.ZMPop(ctx, "max", 1, "nosuch", "z").Result()
		equal(t, "ZMPOP", key, err, "z")
		same(t, "ZMPOP", popped, err, []redis.Z{{Score: 3, Member: "c"}})
	})
}

func TestBitsAndGeo(t *testing.T) {
	both(t, func(t *testing.T, c *redis.Client) {
		ctx := t.Context()
		c.SetBit(ctx, "b", 7, 1)
		n, err := c.BitCount(ctx, "b", nil).Result()
		equal(t, "BITCOUNT", n, err, 1)
		fields, err := c.BitField(ctx, "b", "INCRBY", "u8", "#1", 3).Result()
		same(t, "BITFIELD", fields, err, []int64{3})
		c.PFAdd(ctx, "p", "a", "b", "a")
		n, err = c.PFCount(ctx, "p").Result()
		equal(t, "PFCOUNT", n, err, 2)
		c.GeoAdd(ctx, "g", &redis.GeoLocation{Name: "Palermo", Longitude: 13.361389, Latitude: 38.115556},
			&redis.GeoLocation{Name: "Catania", Longitude: 15.087269, Latitude: 37.502669})
		d, err := c.GeoDist(ctx, "g", "Palermo", "Catania", "km").Result()
		equal(t, "GEODIST", int(d), err, 166)
		names, err := c.GeoSearch(ctx, "g", &redis.GeoSearchQuery{Longitude: 15, Latitude: 37, Radius: 100, RadiusUnit: "km"}).Result()
		same(t, "GEOSEARCH", names, err, []string{"Catania"})
	})
}

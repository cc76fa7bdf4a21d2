package pitr

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

// forms are the commands of the workload. $k and $l are numbers of keys, $n is a number that is new each time, $r a
// small one, $t a time to live in ms, short or long. A line is one command, or several.
var forms = []string{
	"SET str:$k v$n", "SET str:$k v$n PX $t", "APPEND str:$k $n", "SETRANGE str:$k $r $n", "INCR ctr:$k", "INCRBYFLOAT flt:$k 0.5",
	"MSET str:$k $n str:$l $n ctr:$l 7", "GETDEL str:$k", "GETEX str:$k PX $t", "PEXPIRE str:$k $t", "PERSIST str:$k",
	"DEL str:$k list:$l", "UNLINK hash:$k set:$l", "RENAME str:$k str:$l", "COPY list:$k list:$l REPLACE", "PEXPIRE list:$k $t", "PEXPIRE set:$k $t",
	"LPUSH list:$k $n e$n", "RPUSH list:$k $n", "LPOP list:$k 2", "LMOVE list:$k list:$l LEFT RIGHT", "LINSERT list:$k BEFORE $r x$n", "LTRIM list:$k 0 30",
	"HSET hash:$k f$r $n g$n $n", "HDEL hash:$k f$r", "HINCRBY hash:$k n $r", "HPEXPIRE hash:$k $t FIELDS 2 f$r f$n", "HPERSIST hash:$k FIELDS 1 f$r",
	"SADD set:$k $n m$r", "SREM set:$k m$r", "SPOP set:$k 2", "SMOVE set:$k set:$l m$r", "SUNIONSTORE set:$k set:$l set:$r",
	"ZADD zset:$k $r m$n $r m$r", "ZINCRBY zset:$k $r m$r", "ZPOPMIN zset:$k", "ZREMRANGEBYRANK zset:$k 40 -1", "ZUNIONSTORE zset:$k 2 zset:$l zset:$r",
	"XADD st:$k MAXLEN ~ 100 * n $n", "XADD st:$k * n $n", "XGROUP CREATE st:$k g 0 MKSTREAM", "XREADGROUP GROUP g c COUNT 3 STREAMS st:$k >", "XTRIM st:$k MAXLEN 20",
	"SETBIT bits:$k 9$r 1", "BITFIELD bits:$k INCRBY u8 $r 3", "PFADD hll:$k $n $r", "PFMERGE hll:$k hll:$l",
	"EVAL 'redis.call(\"INCR\",KEYS[1]) redis.call(\"RPUSH\",KEYS[2],ARGV[1]) redis.call(\"SET\",KEYS[3],ARGV[1],\"PX\",ARGV[2])' 3 ctr:$k list:$l str:$r $n $t",
	"MULTI|INCR ctr:$k|SADD set:$l $n|HSET hash:$k f$r $n|EXEC", "MULTI|SET str:$k $n|DEL str:$l|LPUSH list:$r $n|ZADD zset:$l $r $n|EXEC",
}

// batch makes some commands.
func batch(rng *rand.Rand, n *int) (cmds [][][]byte) {
	for range 1 + rng.IntN(20) {
		*n++
		deadline := 5 + rng.IntN(300)
		if rng.IntN(3) == 0 {
			deadline = 1_000_000 + rng.IntN(1_000_000)
		}
		fill := strings.NewReplacer("$k", fmt.Sprint(rng.IntN(80)), "$l", fmt.Sprint(rng.IntN(80)), "$n", fmt.Sprint(*n),
			"$r", fmt.Sprint(rng.IntN(30)), "$t", fmt.Sprint(deadline))
		form := forms[rng.IntN(len(forms))]
		if rng.IntN(6000) == 0 {
			form = "FLUSHALL"
		}
		for line := range strings.SplitSeq(form, "|") {
			args := split(line)
			for i := range args {
				args[i] = fill.Replace(args[i])
			}
			cmds = append(cmds, wire.Bytes(args...))
		}
	}
	return cmds
}

// split splits a line at blanks, but not those within '...'.
func split(line string) (words []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}

// crew are workers that write to a server until they are stopped or it is gone.
type crew struct {
	turn sync.RWMutex // a batch holds it for reading, a pause for writing
	quit chan struct{}
	done sync.WaitGroup
}

func hire(srv *proc.Server, rng *rand.Rand, workers int, n *int) *crew {
	c := &crew{quit: make(chan struct{})}
	for i := range workers {
		r := rand.New(rand.NewPCG(rng.Uint64(), uint64(i)))
		first := *n + i*100_000_000
		c.done.Go(func() {
			conn, err := srv.Dial()
			if err != nil {
				return // killed already
			}
			defer conn.Close()
			for number := first; ; {
				select {
				case <-c.quit:
					return
				case <-time.After(time.Duration(r.IntN(8)) * time.Millisecond):
				}
				c.turn.RLock()
				_, err := conn.Pipeline(batch(r, &number))
				c.turn.RUnlock()
				if err != nil {
					return
				}
			}
		})
	}
	*n += 1_000_000
	return c
}

func (c *crew) stop() {
	close(c.quit)
	c.done.Wait()
}

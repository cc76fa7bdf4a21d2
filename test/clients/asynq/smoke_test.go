package asynq

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const tasks = 50

// queue empties the server and returns a client and an inspector of it.
func queue(t *testing.T) (asynq.RedisClientOpt, *asynq.Client, *asynq.Inspector) {
	t.Helper()
	opt := asynq.RedisClientOpt{Addr: os.Getenv("KEVY_ADDR")}
	if opt.Addr == "" {
		t.Fatal("KEVY_ADDR is not set: run test/clients/run")
	}
	r := opt.MakeRedisClient().(redis.UniversalClient)
	defer func() { _ = r.Close() }()
	if err := r.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	c, i := asynq.NewClient(opt), asynq.NewInspector(opt)
	t.Cleanup(func() { _, _ = c.Close(), i.Close() })
	return opt, c, i
}

// start runs a server until the test ends.
func start(t *testing.T, opt asynq.RedisClientOpt, h asynq.HandlerFunc) {
	t.Helper()
	s := asynq.NewServer(opt, asynq.Config{
		Concurrency: 4, LogLevel: asynq.ErrorLevel, ShutdownTimeout: time.Second,
		TaskCheckInterval: 100 * time.Millisecond, DelayedTaskCheckInterval: 200 * time.Millisecond,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return 100 * time.Millisecond },
	})
	if err := s.Start(h); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(12 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatal("not within 12 s: " + what)
}

func TestQueue(t *testing.T) {
	opt, c, inspector := queue(t)
	enqueue(t, c)
	info, err := inspector.GetQueueInfo("default")
	if err != nil || info.Pending != tasks || info.Scheduled != 1 {
		t.Fatalf("queue before: %+v, %v", info, err)
	}
	var plain, delayed, failed atomic.Int64
	start(t, opt, func(_ context.Context, task *asynq.Task) error {
		switch task.Type() {
		case "plain":
			plain.Add(1)
		case "delayed":
			delayed.Add(1)
		case "fails":
			if failed.Add(1) == 1 {
				return errors.New("not yet")
			}
		}
		return nil
	})
	if _, err := c.Enqueue(asynq.NewTask("fails", nil), asynq.MaxRetry(3)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all tasks are done", func() bool { return plain.Load() == tasks && delayed.Load() == 1 && failed.Load() == 2 })
	eventually(t, "the queue is empty", func() bool {
		info, err = inspector.GetQueueInfo("default")
		return err == nil && info.Size == info.Completed && info.Processed == tasks+3 && info.Failed == 1
	})
	done, err := inspector.ListCompletedTasks("default", asynq.PageSize(100))
	if err != nil || len(done) != tasks {
		t.Fatalf("completed tasks, kept by Retention: %d, %v", len(done), err)
	}
}

// enqueue adds plain tasks, a delayed one, and one twice.
func enqueue(t *testing.T, c *asynq.Client) {
	t.Helper()
	for i := range tasks {
		if _, err := c.Enqueue(asynq.NewTask("plain", []byte(fmt.Sprint(i))), asynq.TaskID(fmt.Sprint(i)), asynq.Retention(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Enqueue(asynq.NewTask("plain", nil), asynq.TaskID("0")); !errors.Is(err, asynq.ErrTaskIDConflict) {
		t.Fatalf("a task enqueued twice: %v", err)
	}
	if _, err := c.Enqueue(asynq.NewTask("delayed", nil), asynq.ProcessIn(300*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Enqueue(asynq.NewTask("other", nil), asynq.Unique(time.Hour), asynq.Queue("other")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Enqueue(asynq.NewTask("other", nil), asynq.Unique(time.Hour), asynq.Queue("other")); !errors.Is(err, asynq.ErrDuplicateTask) {
		t.Fatalf("a unique task enqueued twice: %v", err)
	}
}

package bench

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// clockTick is one unit of utime and stime: USER_HZ is 100 on Linux.
const clockTick = 10 * time.Millisecond

// CPU returns the CPU time that the process has used: utime + stime of /proc/PID/stat.
func CPU(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStat(b)
}

var errStat = errors.New("bench: unreadable /proc/PID/stat")

func parseStat(b []byte) (time.Duration, error) {
	_, rest, ok := bytes.Cut(b[bytes.LastIndexByte(b, ')')+1:], []byte(" ")) // the name may hold blanks
	fields := bytes.Fields(rest)
	if !ok || len(fields) < 13 {
		return 0, errStat
	}
	user, err := strconv.ParseUint(string(fields[11]), 10, 64)
	if err != nil {
		return 0, errStat
	}
	system, err := strconv.ParseUint(string(fields[12]), 10, 64)
	if err != nil {
		return 0, errStat
	}
	return time.Duration(user+system) * clockTick, nil
}

// RSS returns the resident bytes of the process.
func RSS(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(b)
	if len(fields) < 2 {
		return 0, errors.New("bench: unreadable /proc/PID/statm")
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// localPID returns the process behind addr when it runs on this machine, else 0.
func localPID(addr string) int {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || host != "localhost" && !net.ParseIP(host).IsLoopback() {
		return 0
	}
	c, err := dial(addr)
	if err != nil {
		return 0
	}
	defer c.close()
	text, err := c.info("server", "process_id")
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	if _, err := CPU(pid); err != nil {
		return 0
	}
	return pid
}

// cpuClock measures the CPU time of a server and of this process over a stretch of work.
type cpuClock struct {
	pid          int
	server, self time.Duration
}

func startCPU(pid int) cpuClock {
	c := cpuClock{pid: pid}
	c.server, c.self = c.read()
	return c
}

func (c cpuClock) read() (server, self time.Duration) {
	if c.pid != 0 {
		server, _ = CPU(c.pid) // a server that is gone shows up as failed commands
	}
	self, _ = CPU(os.Getpid())
	return server, self
}

// Usage is CPU time for each of n units, in microseconds. Server is 0 if it is not known: the server
// is on another machine.
type Usage struct {
	Server float64 `json:"server_cpu_us"`
	Client float64 `json:"client_cpu_us"`
}

// per returns what was used since startCPU, by n units of work.
func (c cpuClock) per(n uint64) Usage {
	server, self := c.read()
	n = max(n, 1)
	return Usage{
		Server: micros(server-c.server) / float64(n),
		Client: micros(self-c.self) / float64(n),
	}
}

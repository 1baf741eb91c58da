package gokit

import (
	"fmt"
	"math"
	"sort"
	"sync/atomic"
	"syscall"
	"time"
)

// Latency is in microseconds, by nearest rank over every operation.
type Latency struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

// Work counts what handlers did. One slot of latency for each job, so that recording never waits.
type Work struct {
	want    int64
	count   atomic.Int64
	sum     atomic.Uint64
	errors  atomic.Int64
	last    atomic.Int64 // ns, when the job number want was done
	done    chan struct{}
	Each    chan struct{}  // where one is set, it gets each run
	latency []atomic.Int64 // ns + 1; 0 is none
}

// NewWork waits for want handler runs and has room for as many latencies.
func NewWork(want, latencies int) *Work {
	return &Work{want: int64(want), done: make(chan struct{}), latency: make([]atomic.Int64, latencies)}
}

// Job is what a handler calls when it starts, with the number from the payload and the payload's T.
func (w *Work) Job(number uint64, t int64, slot int) {
	if t > 0 && slot >= 0 && slot < len(w.latency) {
		w.latency[slot].Store(time.Now().UnixNano() - t + 1)
	}
	w.sum.Add(number)
	if w.count.Add(1) == w.want {
		w.last.Store(time.Now().UnixNano())
		close(w.done)
	}
	if w.Each != nil {
		w.Each <- struct{}{}
	}
}

// Fail counts a failure: a payload that could not be read, an unexpected one.
func (w *Work) Fail() { w.errors.Add(1) }

// Wait returns after the last job's handler ran.
func (w *Work) Wait() error {
	select {
	case <-w.done:
		return nil
	case <-time.After(10 * time.Minute):
		return fmt.Errorf("%d of %d jobs ran within 10 minutes", w.count.Load(), w.want)
	}
}

// Save puts count, checksum, errors and latencies into the result.
func (w *Work) Save(r *Result) {
	r.Verified = Verified{Count: w.count.Load(), Checksum: w.sum.Load()}
	r.Errors += w.errors.Load()
	ns := make([]int64, 0, len(w.latency))
	for i := range w.latency {
		if v := w.latency[i].Load(); v != 0 {
			ns = append(ns, v-1)
		}
	}
	r.Latency = percentiles(ns)
}

func percentiles(ns []int64) *Latency {
	if len(ns) == 0 {
		return nil
	}
	sort.Slice(ns, func(i, j int) bool { return ns[i] < ns[j] })
	at := func(p float64) float64 {
		i := int(math.Ceil(p*float64(len(ns)))) - 1
		return float64(ns[min(max(i, 0), len(ns)-1)]) / 1000
	}
	return &Latency{Count: len(ns), P50: at(.5), P90: at(.9), P95: at(.95), P99: at(.99), P999: at(.999), Max: at(1)}
}

// Window is the measured time: the clock, the process's CPU, the server's CPU and commands.
type Window struct {
	server *Server
	begin  time.Time
	cpu    float64
	before serverUsage
}

// Open reads the figures and starts the clock, in this order.
func Open(s *Server) (*Window, error) {
	before, err := s.usage()
	if err != nil {
		return nil, err
	}
	return &Window{server: s, before: before, cpu: processCPU(), begin: time.Now()}, nil
}

// Close stops the clock and saves n, seconds and both rates (printed: n over the printed time, or the true rate for 0).
func (w *Window) Close(r *Result, n int, printed time.Duration) error {
	elapsed := time.Since(w.begin)
	cpu := processCPU() - w.cpu
	after, err := w.server.usage()
	if err != nil {
		return err
	}
	serverCPU, commands := after.cpu-w.before.cpu, after.commands-w.before.commands
	r.N, r.Seconds = n, elapsed.Seconds()
	rate := float64(n) / r.Seconds
	printedRate := rate
	if printed > 0 {
		printedRate = float64(n) / printed.Seconds()
	}
	r.Rate, r.PrintedRate = &rate, &printedRate
	r.ClientCPU, r.ServerCPU, r.ServerCommands = &cpu, &serverCPU, &commands
	return nil
}

// Printed is the time as the original takes it: it looks every 20 ms, first when the producers have ended.
func (w *Window) Printed(work *Work, produced time.Time) time.Duration {
	const look = 20 * time.Millisecond
	end := produced
	if late := time.Unix(0, work.last.Load()).Sub(produced); late > 0 {
		end = produced.Add((late + look - 1) / look * look)
	}
	return end.Sub(w.begin)
}

// Settled waits until empty says that the store has nothing ready and nothing leased.
func Settled(empty func() (bool, error)) error {
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(500 * time.Microsecond) {
		if done, err := empty(); done || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("all handlers ran, but the store still holds jobs after 2 minutes")
		}
	}
}

func usageSelf() syscall.Rusage {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail with a valid pointer
	return u
}

func processCPU() float64 {
	u := usageSelf()
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func peakRSS() int64 { return usageSelf().Maxrss * 1024 }

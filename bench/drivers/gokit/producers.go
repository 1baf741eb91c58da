package gokit

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Produce makes n calls from some producers at once, each waiting for its own before the next. The number of a job is its place
// in the order of the calls; the first warmup carry T = 0. Returns the sum of the numbers of the acknowledged calls.
func Produce(n, producers, warmup int, timed bool, add func(number uint64, t int64) error) (uint64, error) {
	if producers < 1 || n%producers != 0 {
		return 0, fmt.Errorf("%w: n=%d is not a multiple of producers=%d", ErrUsage, n, producers)
	}
	var next, sum atomic.Uint64
	var failed atomic.Value
	var all sync.WaitGroup
	for range producers {
		all.Go(func() {
			for range n / producers {
				number := next.Add(1) - 1
				var t int64
				if timed && number >= uint64(warmup) {
					t = time.Now().UnixNano()
				}
				if err := add(number, t); err != nil {
					failed.CompareAndSwap(nil, fmt.Errorf("add: %w", err))
					return
				}
				sum.Add(number)
			}
		})
	}
	all.Wait()
	err, _ := failed.Load().(error)
	return sum.Load(), err
}

// Idle is the scenario of that name once start has started a worker that reports to the given work, as often as the parameter
// workers says: a window of nothing, then single jobs with pauses.
func Idle(r *Run, s *Server, start func(*Work) (stop func(), err error), add func(number uint64, t int64) error) error {
	workers, seconds, wakes := r.Int("workers", 1), r.Int("seconds", 10), r.Int("wakes", 50)
	work := NewWork(wakes, wakes)
	work.Each = make(chan struct{}, wakes)
	for range workers {
		stop, err := start(work)
		if err != nil {
			return fmt.Errorf("start a worker: %w", err)
		}
		defer stop()
	}
	time.Sleep(2 * time.Second)
	w, err := Open(s)
	if err != nil {
		return err
	}
	time.Sleep(time.Duration(seconds) * time.Second)
	res := r.Result()
	if err := w.Close(res, wakes, 0); err != nil {
		return err
	}
	res.Rate, res.PrintedRate = nil, nil
	res.Extra["commands_per_s"] = float64(*res.ServerCommands) / res.Seconds
	res.Extra["client_cpu_ms_per_s"] = *res.ClientCPU * 1000 / res.Seconds
	res.Extra["server_cpu_ms_per_s"] = *res.ServerCPU * 1000 / res.Seconds
	for i := range wakes {
		time.Sleep(20*time.Millisecond + rand.N(100*time.Millisecond))
		if err := add(uint64(i), time.Now().UnixNano()); err != nil {
			return fmt.Errorf("add: %w", err)
		}
		select {
		case <-work.Each:
		case <-time.After(time.Minute):
			return fmt.Errorf("job %d did not run within a minute", i)
		}
	}
	work.Save(res)
	return nil
}

// Measure is the window of a scenario with a worker, which runs already: produce, wait for the last handler, wait for the store.
func Measure(r *Run, s *Server, work *Work, n int, empty func() (bool, error), produce func() error) error {
	w, err := Open(s)
	if err != nil {
		return err
	}
	if err := produce(); err != nil {
		return err
	}
	produced := time.Now()
	if err := work.Wait(); err != nil {
		return err
	}
	if err := Settled(empty); err != nil {
		return err
	}
	if err := w.Close(r.Result(), n, w.Printed(work, produced)); err != nil {
		return err
	}
	work.Save(r.Result())
	return nil
}

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/kenshin579/chronos-go"

	"lade/bench/gokit"
)

// parts checks that n jobs are whole workflows of size jobs.
func parts(n, size int) (int, error) {
	if size < 1 || n%size != 0 {
		return 0, fmt.Errorf("%w: n=%d is not a multiple of %d", gokit.ErrUsage, n, size)
	}
	return n / size, nil
}

// Latency of a chain: from when it was built to the start of its last link's handler.
func chain(r *gokit.Run) error {
	n, length := r.Int("n", 20000), r.Int("length", 10)
	chains, err := parts(n, length)
	if err != nil {
		return err
	}
	s, err := open(r)
	if err != nil {
		return err
	}
	defer s.close()
	work := gokit.NewWork(n, chains)
	mux := chronos.NewMux()
	chronos.AddHandler(mux, func(_ context.Context, task *chronos.Task[linkArgs]) error {
		count(work, task.Args.Pad, task.Args.TS, func(number uint64) int {
			if task.Args.Last {
				return int(number) / length
			}
			return -1
		})
		return nil
	})
	stop, err := start(s.redis, r.Int("concurrency", 16), mux)
	if err != nil {
		return err
	}
	defer stop()
	return gokit.Measure(r, s.server, work, n, s.empty, func() error {
		for c := range chains {
			built := time.Now().UnixNano()
			one := chronos.NewChain()
			for link := range length {
				one.Then(linkArgs{TS: built, Last: link == length-1, Pad: gokit.Pad(uint64(c*length+link), s.fill)})
			}
			if _, err := one.Enqueue(context.Background(), s.client); err != nil {
				return fmt.Errorf("add a chain: %w", err)
			}
		}
		return nil
	})
}

// Latency of a group: from when it was built to the start of the callback's handler. The callback adds nothing to the checksum.
func group(r *gokit.Run) error {
	n, size := r.Int("n", 20000), r.Int("size", 10)
	groups, err := parts(n, size)
	if err != nil {
		return err
	}
	s, err := open(r)
	if err != nil {
		return err
	}
	defer s.close()
	work := gokit.NewWork(n+groups, groups)
	mux := s.taskMux(work)
	chronos.AddHandler(mux, func(_ context.Context, task *chronos.Task[callbackArgs]) error {
		which, err := gokit.Number(task.Args.Pad)
		if err != nil {
			work.Fail()
			return nil
		}
		work.Job(0, task.Args.TS, int(which))
		return nil
	})
	stop, err := start(s.redis, r.Int("concurrency", 16), mux)
	if err != nil {
		return err
	}
	defer stop()
	return gokit.Measure(r, s.server, work, n+groups, s.empty, func() error {
		for g := range groups {
			one := chronos.NewGroup()
			for member := range size {
				one.Add(taskArgs{Pad: gokit.Pad(uint64(g*size+member), s.fill)})
			}
			one.OnComplete(callbackArgs{TS: time.Now().UnixNano(), Pad: gokit.Pad(uint64(g), s.fill)})
			if _, err := one.Enqueue(context.Background(), s.client); err != nil {
				return fmt.Errorf("add a group: %w", err)
			}
		}
		return nil
	})
}

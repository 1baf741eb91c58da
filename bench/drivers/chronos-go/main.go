// chronos-go in the tables chronos and idle.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/kenshin579/chronos-go"
	"github.com/redis/go-redis/v9"

	"lade/bench/gokit"
)

const (
	queue  = "default"
	stream = "chronos:{default}:stream"
)

type taskArgs struct {
	TS  int64  `json:"ts"`
	Pad string `json:"pad"`
}

func (taskArgs) Kind() string { return "bench:task" }

type linkArgs struct {
	TS   int64  `json:"ts"`
	Last bool   `json:"last"`
	Pad  string `json:"pad"`
}

func (linkArgs) Kind() string { return "bench:chainlink" }

type callbackArgs struct {
	TS  int64  `json:"ts"`
	Pad string `json:"pad"`
}

func (callbackArgs) Kind() string { return "bench:groupcb" }

func main() {
	gokit.Main(gokit.Driver{Name: "chronos-go", Module: "github.com/kenshin579/chronos-go",
		Scenarios: map[string]gokit.Scenario{
			"enqueue": enqueue, "e2e": endToEnd, "chain": chain, "group": group, "idle": idle,
		}})
}

// One go-redis client for producers and worker, as the original has it.
type session struct {
	server  *gokit.Server
	options redis.Options
	redis   *redis.Client
	client  *chronos.Client
	fill    string
}

func open(r *gokit.Run) (*session, error) {
	network, address, err := gokit.Address(r.URL)
	if err != nil {
		return nil, err
	}
	server, err := gokit.Dial(r.URL)
	if err != nil {
		return nil, err
	}
	s := &session{server: server, options: redis.Options{Network: network, Addr: address}}
	s.redis = s.connect()
	s.client = chronos.NewClient(s.redis)
	s.fill = gokit.Fill(r.Int("payload", 100))
	return s, nil
}

func (s *session) connect() *redis.Client {
	options := s.options
	return redis.NewClient(&options)
}

func (s *session) close() {
	s.client.Close()
	s.redis.Close()
	s.server.Close()
}

func (s *session) add(number uint64, t int64) error {
	_, err := chronos.Enqueue(context.Background(), s.client, taskArgs{TS: t, Pad: gokit.Pad(number, s.fill)})
	return err
}

func count(work *gokit.Work, pad string, t int64, slot func(number uint64) int) {
	number, err := gokit.Number(pad)
	if err != nil {
		work.Fail()
		return
	}
	work.Job(number, t, slot(number))
}

func (s *session) taskMux(work *gokit.Work) *chronos.Mux {
	mux := chronos.NewMux()
	chronos.AddHandler(mux, func(_ context.Context, task *chronos.Task[taskArgs]) error {
		count(work, task.Args.Pad, task.Args.TS, func(number uint64) int { return int(number) })
		return nil
	})
	return mux
}

func start(redis *redis.Client, concurrency int, mux *chronos.Mux) (func(), error) {
	server := chronos.NewServer(redis, chronos.ServerConfig{
		Queues: map[string]int{queue: 1}, Concurrency: concurrency,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	stop := func() {
		if err := server.Shutdown(context.Background()); err != nil {
			slog.Error("shutdown", "error", err)
		}
	}
	return stop, server.Start(context.Background(), mux)
}

// An acknowledged task is deleted from the stream, a running one is still in it.
func (s *session) empty() (bool, error) {
	left, err := s.server.Int("XLEN", stream)
	return left == 0, err
}

func enqueue(r *gokit.Run) error {
	n, producers := r.Int("n", 20000), r.Int("producers", 4)
	s, err := open(r)
	if err != nil {
		return err
	}
	defer s.close()
	w, err := gokit.Open(s.server)
	if err != nil {
		return err
	}
	sum, err := gokit.Produce(n, producers, 0, false, s.add)
	if err != nil {
		return err
	}
	res := r.Result()
	if err := w.Close(res, n, 0); err != nil {
		return err
	}
	held, err := s.server.Int("XLEN", stream)
	res.Verified = gokit.Verified{Count: held, Checksum: sum}
	return err
}

func endToEnd(r *gokit.Run) error {
	n, producers, warmup := r.Int("n", 20000), r.Int("producers", 4), r.Int("warmup", 2000)
	s, err := open(r)
	if err != nil {
		return err
	}
	defer s.close()
	work := gokit.NewWork(n, n)
	stop, err := start(s.redis, r.Int("concurrency", 16), s.taskMux(work))
	if err != nil {
		return err
	}
	defer stop()
	return gokit.Measure(r, s.server, work, n, s.empty, func() error {
		_, err := gokit.Produce(n, producers, warmup, true, s.add)
		return err
	})
}

func idle(r *gokit.Run) error {
	concurrency := r.Int("concurrency", 16)
	s, err := open(r)
	if err != nil {
		return err
	}
	defer s.close()
	return gokit.Idle(r, s.server, func(work *gokit.Work) (func(), error) {
		return start(s.connect(), concurrency, s.taskMux(work))
	}, s.add)
}

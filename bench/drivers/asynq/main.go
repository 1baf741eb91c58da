// asynq in the tables chronos, idle and growth (growth.go). It has no chains and no groups with a callback.
package main

import (
	"context"
	"encoding/json"

	"github.com/hibiken/asynq"

	"lade/bench/gokit"
)

const (
	kind    = "bench:task"
	pending = "asynq:{default}:pending"
	active  = "asynq:{default}:active"
)

type payload struct {
	TS  int64  `json:"ts"`
	Pad string `json:"pad"`
}

func main() {
	gokit.Main(gokit.Driver{Name: "asynq", Module: "github.com/hibiken/asynq", Scenarios: map[string]gokit.Scenario{
		"enqueue": enqueue, "e2e": endToEnd, "idle": idle, "growth": growth,
	}})
}

type session struct {
	server *gokit.Server
	redis  asynq.RedisClientOpt
	client *asynq.Client
	fill   string
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
	redis := asynq.RedisClientOpt{Network: network, Addr: address}
	return &session{server, redis, asynq.NewClient(redis), gokit.Fill(r.Int("payload", 100))}, nil
}

func (s *session) close() {
	s.client.Close()
	s.server.Close()
}

func (s *session) add(number uint64, t int64) error {
	body, err := json.Marshal(payload{TS: t, Pad: gokit.Pad(number, s.fill)})
	if err == nil {
		_, err = s.client.EnqueueContext(context.Background(), asynq.NewTask(kind, body))
	}
	return err
}

// A worker with a connection pool of its own, as asynq makes it.
func (s *session) start(concurrency int, work *gokit.Work) (func(), error) {
	mux := asynq.NewServeMux()
	mux.HandleFunc(kind, func(_ context.Context, task *asynq.Task) error {
		var p payload
		err := json.Unmarshal(task.Payload(), &p)
		if err == nil {
			var number uint64
			if number, err = gokit.Number(p.Pad); err == nil {
				work.Job(number, p.TS, int(number))
			}
		}
		if err != nil {
			work.Fail()
		}
		return nil
	})
	server := asynq.NewServer(s.redis, asynq.Config{Concurrency: concurrency, LogLevel: asynq.WarnLevel})
	return server.Shutdown, server.Start(mux)
}

func (s *session) empty() (bool, error) {
	waiting, err := s.server.Int("LLEN", pending)
	if err != nil || waiting > 0 {
		return false, err
	}
	running, err := s.server.Int("LLEN", active)
	return running == 0, err
}

// Adds n jobs and leaves the figures of it in the result; the sum of their numbers.
func (s *session) produce(r *gokit.Run, n, producers int, add func(uint64, int64) error) (uint64, error) {
	w, err := gokit.Open(s.server)
	if err != nil {
		return 0, err
	}
	sum, err := gokit.Produce(n, producers, 0, false, add)
	if err != nil {
		return 0, err
	}
	return sum, w.Close(r.Result(), n, 0)
}

func enqueue(r *gokit.Run) error {
	n, producers := r.Int("n", 20000), r.Int("producers", 4)
	s, err := open(r)
	if err != nil {
		return err
	}
	defer s.close()
	sum, err := s.produce(r, n, producers, s.add)
	if err != nil {
		return err
	}
	held, err := s.server.Int("LLEN", pending)
	r.Result().Verified = gokit.Verified{Count: held, Checksum: sum}
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
	stop, err := s.start(r.Int("concurrency", 16), work)
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
	return gokit.Idle(r, s.server, func(work *gokit.Work) (func(), error) { return s.start(concurrency, work) }, s.add)
}

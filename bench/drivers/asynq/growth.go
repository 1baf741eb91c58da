// asynq in table growth: a depth, then single operations on it, as bench/drivers/lade/drv_growth.c has them.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"time"

	"github.com/hibiken/asynq"

	"lade/bench/gokit"
)

const (
	fillers = 8       // asynq has no call for many jobs
	most    = 1000000 // so that a fill ends in a minute or two
	rounds  = 51
)

type depth struct {
	*session
	inspector *asynq.Inspector
	queues    int
	keys      bool
	scheduled bool
}

func (d *depth) queue(number uint64) string {
	if q := number % uint64(d.queues); q > 0 {
		return fmt.Sprintf("q%d", q)
	}
	return "default"
}

func (d *depth) add(number uint64, _ int64) error {
	body, err := json.Marshal(payload{Pad: gokit.Pad(number, d.fill)})
	if err != nil {
		return err
	}
	options := []asynq.Option{asynq.Queue(d.queue(number))}
	if d.keys {
		options = append(options, asynq.TaskID(fmt.Sprintf("k%d", number)))
	}
	if d.scheduled {
		options = append(options, asynq.ProcessIn(24*time.Hour+time.Duration(number%86400)*time.Second))
	}
	_, err = d.client.EnqueueContext(context.Background(), asynq.NewTask(kind, body), options...)
	return err
}

func (d *depth) count() (int64, error) {
	var sum int64
	for q := 0; q < d.queues; q++ {
		command, key := "LLEN", "asynq:{"+d.queue(uint64(q))+"}:pending"
		if d.scheduled {
			command, key = "ZCARD", "asynq:{"+d.queue(uint64(q))+"}:scheduled"
		}
		n, err := d.server.Int(command, key)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

func (d *depth) enqueueOne() (*asynq.TaskInfo, error) {
	return d.client.EnqueueContext(context.Background(), asynq.NewTask(kind, []byte("{}")))
}

// Medians; cancelling a job that waits is removing it, and a worker for one job is not asynq's to start.
func (d *depth) time(extra map[string]any) error {
	last, err := d.enqueueOne()
	if err != nil {
		return err
	}
	operations := map[string]func() error{
		"enqueue_us": func() error { _, err := d.enqueueOne(); return err },
		"show_us":    func() error { _, err := d.inspector.GetTaskInfo("default", last.ID); return err },
		"enqueue_remove_us": func() error {
			one, err := d.enqueueOne()
			if err == nil {
				err = d.inspector.DeleteTask("default", one.ID)
			}
			return err
		},
		"counts_us": func() error { _, err := d.inspector.GetQueueInfo("default"); return err },
		"list20_us": func() error { _, err := d.inspector.ListPendingTasks("default", asynq.PageSize(20)); return err },
		"pause_resume_us": func() error {
			err := d.inspector.PauseQueue("default")
			if err == nil {
				err = d.inspector.UnpauseQueue("default")
			}
			return err
		},
	}
	for name, operation := range operations {
		us := make([]float64, rounds)
		for i := range us {
			began := time.Now()
			if err := operation(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			us[i] = float64(time.Since(began).Nanoseconds()) / 1000
		}
		sort.Float64s(us)
		extra[name] = us[rounds/2]
	}
	return nil
}

func growth(r *gokit.Run) error {
	n, state := r.Int("n", 1000), r.Text("state", "ready")
	queues, keys := max(r.Int("queues", 1), 1), r.Int("keys", 0) > 0
	if state == "dead" {
		return gokit.Cannot("asynq keeps at most 10,000 archived jobs")
	}
	if n > most {
		return gokit.Cannot("asynq has no call for many jobs: more than %d take minutes to put", most)
	}
	s, err := open(r)
	if err != nil {
		return err
	}
	defer s.close()
	d := &depth{s, asynq.NewInspector(s.redis), queues, keys, state == "scheduled"}
	defer d.inspector.Close()
	before, err := s.server.Memory()
	if err != nil {
		return err
	}
	sum, err := s.produce(r, n, fillers, d.add)
	if err != nil {
		return err
	}
	after, err := s.server.Memory()
	if err != nil {
		return err
	}
	res := r.Result()
	res.Extra["bytes_per_job"] = (after - before) / float64(n)
	held, err := d.count()
	if err != nil {
		return err
	}
	res.Verified = gokit.Verified{Count: held, Checksum: sum}
	return d.time(res.Extra)
}

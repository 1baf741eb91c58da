// Table `currency` in Go: goroutines, buffered channels, select, sync.Mutex.
//
// `--scenario NAME --set k=v` and its line are lade-bench's contract; `--workload NAME --k v` and its line are those of the
// original benchmark.
package main

import (
	"bufio"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type params struct {
	Scenario, Workload                                                  string
	Threads                                                             int
	Size                                                                uint64
	Capacity, Producers, Consumers, Workers, Tasks, Rounds, SampleEvery int
	SettleMs                                                            int
}

type line struct {
	params
	Ops          uint64
	WallNs       int64
	Checksum     uint64
	Lat          []int64 // sorted, ns
	RssDeltaKb   int64
	BytesPerTask float64
}

func kb(path, key string) int64 {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var v int64
		if strings.HasPrefix(s.Text(), key) {
			fmt.Sscanf(strings.TrimPrefix(s.Text(), key), "%d", &v)
			return v
		}
	}
	return 0
}

func mix(z uint64) uint64 {
	z += 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

func channels(l *line) {
	producers, consumers := l.Producers, 1
	if l.Workload == "spsc" {
		producers = 1
	}
	if l.Workload == "mpmc" {
		consumers = l.Consumers
	}
	each := l.Size / uint64(producers)
	ch := make(chan uint64, l.Capacity)
	var sending, receiving sync.WaitGroup
	sums := make([]uint64, consumers)
	consume := func(i int) {
		var sum uint64
		for v := range ch {
			sum += v
		}
		sums[i] = sum
		receiving.Done()
	}
	produce := func(lo uint64) {
		for v := lo; v < lo+each; v++ {
			ch <- v
		}
		sending.Done()
	}
	receiving.Add(consumers)
	sending.Add(producers)
	t0 := time.Now()
	if l.Workload != "spsc" {
		for i := 0; i < consumers; i++ {
			go consume(i)
		}
	}
	for i := 0; i < producers; i++ {
		go produce(uint64(i) * each)
	}
	if l.Workload == "spsc" {
		go consume(0)
	}
	sending.Wait()
	close(ch)
	receiving.Wait()
	l.WallNs = time.Since(t0).Nanoseconds()
	l.Ops = each * uint64(producers)
	for _, s := range sums {
		l.Checksum += s
	}
}

func pingpong(l *line) {
	a, b := make(chan uint64, 1), make(chan uint64, 1)
	every := uint64(l.SampleEvery)
	lat := make([]int64, 0, l.Size/every+1)
	var wg sync.WaitGroup
	wg.Add(2)
	t0 := time.Now()
	go func() {
		for v := range a {
			b <- v + 1
		}
		wg.Done()
	}()
	go func() {
		var t uint64
		for i := uint64(0); i < l.Size; i++ {
			if i%every == 0 {
				s := time.Now()
				a <- t + 1
				t = <-b
				lat = append(lat, time.Since(s).Nanoseconds())
			} else {
				a <- t + 1
				t = <-b
			}
		}
		close(a)
		l.Checksum = t
		wg.Done()
	}()
	wg.Wait()
	l.WallNs = time.Since(t0).Nanoseconds()
	l.Ops = l.Size
	sort.Slice(lat, func(i, j int) bool { return lat[i] < lat[j] })
	l.Lat = lat
}

func selectTwo(l *line) {
	each := l.Size / 2
	a, b := make(chan uint64, l.Capacity), make(chan uint64, l.Capacity)
	done := make(chan uint64)
	produce := func(ch chan uint64, lo uint64) {
		for v := lo; v < lo+each; v++ {
			ch <- v
		}
		close(ch)
	}
	t0 := time.Now()
	go produce(a, 0)
	go produce(b, each)
	go func() {
		var sum uint64
		x, y := a, b
		for x != nil || y != nil {
			select {
			case v, ok := <-x:
				if !ok {
					x = nil
				}
				sum += v
			case v, ok := <-y:
				if !ok {
					y = nil
				}
				sum += v
			}
		}
		done <- sum
	}()
	l.Checksum = <-done
	l.WallNs = time.Since(t0).Nanoseconds()
	l.Ops = each * 2
}

func spawnOnce(n uint64) (int64, uint64) {
	results := make([]uint64, n)
	var wg sync.WaitGroup
	t0 := time.Now()
	wg.Add(int(n))
	for i := uint64(0); i < n; i++ {
		go func(i uint64) {
			results[i] = i
			wg.Done()
		}(i)
	}
	wg.Wait()
	var sum uint64
	for _, v := range results {
		sum += v
	}
	return time.Since(t0).Nanoseconds(), sum
}

func cpu(l *line) {
	tasks := uint64(l.Tasks)
	each := (l.Size + tasks - 1) / tasks
	sums := make([]uint64, tasks)
	var wg sync.WaitGroup
	wg.Add(int(tasks))
	t0 := time.Now()
	for t := uint64(0); t < tasks; t++ {
		go func(t uint64) {
			var sum uint64
			for i := t * each; i < (t+1)*each && i < l.Size; i++ {
				x := i
				for r := 0; r < l.Rounds; r++ {
					x = mix(x)
				}
				sum += x
			}
			sums[t] = sum
			wg.Done()
		}(t)
	}
	wg.Wait()
	l.WallNs = time.Since(t0).Nanoseconds()
	l.Ops = l.Size
	for _, s := range sums {
		l.Checksum += s
	}
}

func mutex(l *line) {
	workers := uint64(l.Workers)
	each := l.Size / workers
	var mu sync.Mutex
	var counter uint64
	var wg sync.WaitGroup
	wg.Add(int(workers))
	t0 := time.Now()
	for w := uint64(0); w < workers; w++ {
		go func() {
			for i := uint64(0); i < each; i++ {
				mu.Lock()
				counter++
				mu.Unlock()
			}
			wg.Done()
		}()
	}
	wg.Wait()
	l.WallNs = time.Since(t0).Nanoseconds()
	l.Ops, l.Checksum = each*workers, counter
}

func idle(l *line) {
	gate := make(chan struct{})
	var parked, finished uint64
	var wg sync.WaitGroup
	before := kb("/proc/self/smaps_rollup", "Rss:")
	t0 := time.Now()
	wg.Add(int(l.Size))
	for i := uint64(0); i < l.Size; i++ {
		go func() {
			atomic.AddUint64(&parked, 1)
			<-gate
			atomic.AddUint64(&finished, 1)
			wg.Done()
		}()
	}
	for atomic.LoadUint64(&parked) < l.Size {
		time.Sleep(time.Millisecond)
	}
	l.WallNs = time.Since(t0).Nanoseconds()
	time.Sleep(time.Duration(l.SettleMs) * time.Millisecond)
	l.RssDeltaKb = kb("/proc/self/smaps_rollup", "Rss:") - before
	l.BytesPerTask = float64(l.RssDeltaKb) * 1024 / float64(l.Size)
	close(gate)
	wg.Wait()
	l.Ops, l.Checksum = l.Size, finished
}

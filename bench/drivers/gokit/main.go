// Package gokit is what the Go drivers share: the driver's command line and result line (see ../README.md), the payload,
// the count and checksum of the work, latencies, and the figures of the process and of the server over the window.
package gokit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
)

// ErrUsage makes the driver exit with 2: a scenario or parameter that it does not understand.
var ErrUsage = errors.New("usage")

// Scenario runs once and leaves its figures in the run.
type Scenario func(*Run) error

// Driver is one contender.
type Driver struct {
	Name      string
	Module    string // its version is read from the build information
	Scenarios map[string]Scenario
}

// Run is one run of one scenario.
type Run struct {
	URL    string
	result Result
	params map[string]string
	used   map[string]any
}

// Result is the result line.
type Result struct {
	Driver         string         `json:"driver"`
	Version        string         `json:"version"`
	Scenario       string         `json:"scenario"`
	Params         map[string]any `json:"params"`
	N              int            `json:"n"`
	Seconds        float64        `json:"seconds"`
	Rate           *float64       `json:"rate"`
	PrintedRate    *float64       `json:"printed_rate"`
	Latency        *Latency       `json:"latency"`
	ClientCPU      *float64       `json:"client_cpu_s"`
	RSS            int64          `json:"rss_bytes"`
	ServerCPU      *float64       `json:"server_cpu_s"`
	ServerCommands *int64         `json:"server_commands"`
	Errors         int64          `json:"errors"`
	Verified       Verified       `json:"verified"`
	Extra          map[string]any `json:"extra"`
}

// The parameters that the tables list; one without a use in the scenario is ignored.
var known = map[string]bool{"url": true, "n": true, "producers": true, "payload": true, "concurrency": true, "warmup": true,
	"length": true, "size": true, "workers": true, "seconds": true, "wakes": true, "queues": true, "keys": true, "state": true}

type cannot string

func (c cannot) Error() string        { return string(c) }
func (c cannot) Is(target error) bool { return target == ErrUsage }

// Cannot is the reason why a scenario is not run with these parameters: the driver exits with 2, and the report says it.
func Cannot(format string, args ...any) error { return cannot(fmt.Sprintf(format, args...)) }

// Verified is the proof of the work: jobs counted, and the sum of their numbers.
type Verified struct {
	Count    int64  `json:"count"`
	Checksum uint64 `json:"checksum"`
}

// Int is a parameter of the scenario; it comes back in the result as it was passed.
func (r *Run) Int(name string, otherwise int) int {
	value := otherwise
	if text, ok := r.params[name]; ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			fail(2, fmt.Errorf("%s=%s is not a whole number", name, text))
		}
		value = n
	}
	r.used[name] = value
	return value
}

// Text is a parameter that is no number.
func (r *Run) Text(name, otherwise string) string {
	value, ok := r.params[name]
	if !ok {
		value = otherwise
	}
	r.used[name] = value
	return value
}

// Result is where the scenario leaves its figures.
func (r *Run) Result() *Result { return &r.result }

// Main is the whole program.
func Main(d Driver) {
	var scenario string
	params := map[string]string{}
	args := os.Args[1:]
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--list" && len(args) == 1:
			list(d)
			return
		case args[i] == "--scenario" && i+1 < len(args):
			i++
			scenario = args[i]
		case args[i] == "--set" && i+1 < len(args):
			i++
			key, value, ok := strings.Cut(args[i], "=")
			if !ok {
				fail(2, fmt.Errorf("--set wants KEY=VALUE, not %s", args[i]))
			}
			params[key] = value
		default:
			fail(2, fmt.Errorf("unknown argument %s; usage: --list | --scenario NAME [--set KEY=VALUE]...", args[i]))
		}
	}
	start, ok := d.Scenarios[scenario]
	if !ok {
		fail(2, fmt.Errorf("no scenario %q", scenario))
	}
	for key := range params {
		if !known[key] {
			fail(2, fmt.Errorf("no parameter %q", key))
		}
	}
	run := &Run{URL: params["url"], params: params, used: map[string]any{}}
	if run.URL == "" {
		fail(2, errors.New("url=... is missing"))
	}
	run.result = Result{Driver: d.Name, Version: version(d.Module), Scenario: scenario, Params: run.used,
		Extra: map[string]any{}}
	if err := start(run); err != nil {
		if errors.Is(err, ErrUsage) {
			fail(2, err)
		}
		fail(1, err)
	}
	run.result.RSS = peakRSS()
	line, err := json.Marshal(run.result)
	if err != nil {
		fail(1, err)
	}
	fmt.Println(string(line))
}

func list(d Driver) {
	names := make([]string, 0, len(d.Scenarios))
	for name := range d.Scenarios {
		names = append(names, name)
	}
	sort.Strings(names)
	line, _ := json.Marshal(map[string]any{"driver": d.Name, "version": version(d.Module), "scenarios": names})
	fmt.Println(string(line))
}

func version(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dep := range info.Deps {
		if dep.Path == module {
			if dep.Replace != nil {
				return strings.TrimPrefix(dep.Replace.Version, "v")
			}
			return strings.TrimPrefix(dep.Version, "v")
		}
	}
	return "unknown"
}

func fail(code int, err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(code)
}

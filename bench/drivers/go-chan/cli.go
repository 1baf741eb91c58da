package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

const list = `{"driver":"go","version":"%s","scenarios":["spsc","mpsc","mpmc","pingpong","select","spawn","cpu","mutex",` +
	`"idle-tasks","idle-stacks"]}` + "\n"

func version() string {
	return strings.TrimPrefix(runtime.Version(), "go")
}

func usage(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "error: "+format+"\n", args...)
	os.Exit(2)
}

func (p *params) set(key, value string) {
	field := map[string]*int{"threads": &p.Threads, "capacity": &p.Capacity, "producers": &p.Producers,
		"consumers": &p.Consumers, "workers": &p.Workers, "tasks": &p.Tasks, "rounds": &p.Rounds,
		"sample-every": &p.SampleEvery, "settle-ms": &p.SettleMs}
	n, err := strconv.ParseUint(value, 10, 62)
	at := field[key]
	switch {
	case key == "workload":
		p.Workload = value
	case key == "kernel": // lade's own; this driver has the shared kernel only
	case err != nil || n == 0 && key != "settle-ms":
		usage("bad value: %s=%s", key, value)
	case key == "size" || key == "n":
		p.Size = n
	case at != nil:
		*at = int(n)
	default:
		usage("no such parameter: %s", key)
	}
}

func parse(args []string) params {
	p := params{Threads: runtime.NumCPU(), Size: 1000000, Capacity: 1024, Producers: 4, Consumers: 4, Workers: 8, Tasks: 256,
		Rounds: 32, SampleEvery: 17, SettleMs: 200}
	for i := 0; i < len(args); i++ {
		if !strings.HasPrefix(args[i], "--") {
			usage("unexpected argument: %s", args[i])
		}
		flag := args[i][2:]
		if flag == "list" {
			fmt.Printf(list, version())
			os.Exit(0)
		}
		if !strings.Contains(flag, "=") {
			if i++; i == len(args) {
				usage("flag without a value: %s", flag)
			}
			flag += "=" + args[i]
		}
		flag = strings.TrimPrefix(flag, "set=")
		pair := strings.SplitN(flag, "=", 2)
		switch {
		case len(pair) < 2:
			usage("--set wants key=value: %s", flag)
		case pair[0] == "scenario":
			p.Scenario, p.Workload = pair[1], pair[1]
			if strings.HasPrefix(pair[1], "idle-") {
				p.Workload = "idle"
			}
		default:
			p.set(pair[0], pair[1])
		}
	}
	if p.Workload == "" {
		usage("--scenario or --workload is required")
	}
	return p
}

func (p *params) json() string {
	return fmt.Sprintf(`"capacity":%d,"producers":%d,"consumers":%d,"workers":%d,"tasks":%d,"rounds":%d,"sample-every":%d,`+
		`"settle-ms":%d`, p.Capacity, p.Producers, p.Consumers, p.Workers, p.Tasks, p.Rounds, p.SampleEvery, p.SettleMs)
}

func (l *line) percentile(q float64) int64 {
	i := int(float64(len(l.Lat)) * q)
	if i >= len(l.Lat) {
		i = len(l.Lat) - 1
	}
	return l.Lat[i]
}

func (l *line) latency() string {
	if len(l.Lat) == 0 {
		return "null"
	}
	us := func(q float64) float64 { return float64(l.percentile(q)) / 1000 }
	return fmt.Sprintf(`{"count":%d,"p50":%.3f,"p90":%.3f,"p95":%.3f,"p99":%.3f,"p999":%.3f,"max":%.3f}`, len(l.Lat), us(0.5),
		us(0.9), us(0.95), us(0.99), us(0.999), us(1))
}

func (l *line) printContract() {
	extra := ""
	if l.Workload == "idle" {
		extra = fmt.Sprintf(`"bytes_per_task":%.1f`, l.BytesPerTask)
	}
	seconds := float64(l.WallNs) / 1e9
	rate := float64(l.Ops) / seconds
	fmt.Printf(`{"driver":"go","version":"%s","scenario":"%s","params":{"n":%d,"threads":%d,%s},"n":%d,"seconds":%.9f,`+
		`"rate":%.1f,"printed_rate":%.1f,"latency":%s,"client_cpu_s":null,"rss_bytes":null,"server_cpu_s":null,`+
		`"server_commands":null,"errors":0,"verified":{"count":%d,"checksum":"%d"},"extra":{%s}}`+"\n", version(), l.Scenario,
		l.Size, l.Threads, l.json(), l.Ops, seconds, rate, rate, l.latency(), l.Ops, l.Checksum, extra)
}

func (l *line) printOriginal() {
	at := func(q float64) string {
		if len(l.Lat) == 0 {
			return "null"
		}
		return strconv.FormatInt(l.percentile(q), 10)
	}
	fmt.Printf(`{"impl":"go","workload":"%s","status":"ok","reason":"","threads":%d,"size":%d,"params":{%s},"ops":%d,`+
		`"wall_ns":%d,"ops_per_sec":%.1f,"checksum":%d,"lat_p50_ns":%s,"lat_p99_ns":%s,"lat_p999_ns":%s,"peak_rss_kb":%d,`+
		`"rss_delta_kb":%d,"bytes_per_task":%.1f}`+"\n", l.Workload, l.Threads, l.Size, l.json(), l.Ops, l.WallNs,
		float64(l.Ops)*1e9/float64(l.WallNs), l.Checksum, at(0.5), at(0.99), at(0.999), kb("/proc/self/status", "VmHWM:"),
		l.RssDeltaKb, l.BytesPerTask)
}

func main() {
	l := line{params: parse(os.Args[1:])}
	runtime.GOMAXPROCS(l.Threads)
	switch l.Workload {
	case "spsc", "mpsc", "mpmc":
		channels(&l)
	case "pingpong":
		pingpong(&l)
	case "select":
		selectTwo(&l)
	case "spawn":
		spawnOnce(l.Size)
		l.WallNs, l.Checksum = spawnOnce(l.Size)
		l.Ops = l.Size
	case "cpu":
		cpu(&l)
	case "mutex":
		mutex(&l)
	case "idle":
		idle(&l)
	default:
		usage("no such scenario: %s", l.Workload)
	}
	if l.WallNs <= 0 {
		fmt.Fprintln(os.Stderr, "error: the clock did not move")
		os.Exit(1)
	}
	if l.Scenario != "" {
		l.printContract()
	} else {
		l.printOriginal()
	}
}

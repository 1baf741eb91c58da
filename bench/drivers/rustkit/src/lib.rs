//! What the Rust drivers of table `currency` share: the command line in both forms, the result line in both forms, the hash
//! kernel, resident memory; with feature `tokio` also the workloads that plain and tuned Tokio have in common.
//!
//! `--scenario NAME --set k=v` is lade-bench's contract; `--workload NAME --k v` the original benchmark's.
use std::fmt::Write;
use std::time::Duration;

#[cfg(feature = "tokio")]
pub mod tokio_rows;

pub struct Driver {
    pub name: &'static str,
    pub version: &'static str,
    /// Words that `--set channels=` may have, the default first.
    pub channels: &'static [&'static str],
}

#[derive(Clone, Default)]
pub struct Params {
    pub workload: String,
    pub channels: String,
    pub threads: usize,
    pub size: u64,
    pub capacity: usize,
    pub producers: u64,
    pub consumers: u64,
    pub workers: u64,
    pub tasks: u64,
    pub rounds: u64,
    pub sample_every: u64,
    pub settle_ms: u64,
    contract: bool,
}

#[derive(Default)]
pub struct Outcome {
    pub ops: u64,
    pub wall: Duration,
    pub checksum: u64,
    /// Nanoseconds of every sampled operation.
    pub latencies: Vec<u64>,
    pub rss_delta_kb: i64,
}

impl Outcome {
    pub fn new(ops: u64, wall: Duration, checksum: u64) -> Self {
        Outcome { ops, wall, checksum, ..Default::default() }
    }
}

pub fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D049BB133111EB);
    z ^ (z >> 31)
}

/// Sum of the kernel over chunk `t` of `tasks`.
pub fn hash_chunk(size: u64, tasks: u64, rounds: u64, t: u64) -> u64 {
    let each = size.div_ceil(tasks);
    let mut sum = 0u64;
    for i in (t * each).min(size)..((t + 1) * each).min(size) {
        let mut x = i;
        for _ in 0..rounds {
            x = mix(x);
        }
        sum = sum.wrapping_add(x);
    }
    sum
}

fn proc_kb(path: &str, key: &str) -> Option<i64> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().find_map(|l| l.strip_prefix(key)?.split_whitespace().next()?.parse().ok())
}

pub fn resident_kb() -> i64 {
    proc_kb("/proc/self/smaps_rollup", "Rss:")
        .or_else(|| proc_kb("/proc/self/status", "VmRSS:"))
        .expect("resident memory")
}

pub fn usage(what: &str) -> ! {
    eprintln!("error: {what}");
    std::process::exit(2);
}

fn list(d: &Driver) -> ! {
    println!(
        "{{\"driver\":\"{}\",\"version\":\"{}\",\"scenarios\":[\"spsc\",\"mpsc\",\"mpmc\",\"pingpong\",\"select\",\
         \"spawn\",\"cpu\",\"mutex\",\"idle-tasks\"]}}",
        d.name, d.version
    );
    std::process::exit(0);
}

fn number(v: &str) -> u64 {
    match v.replace('_', "").parse() {
        Ok(n) => n,
        Err(_) => usage(&format!("bad number: {v}")),
    }
}

fn positive(v: &str) -> u64 {
    match number(v) {
        0 => usage("numbers must be positive"),
        n => n,
    }
}

impl Params {
    fn set(&mut self, d: &Driver, key: &str, v: &str) {
        match key {
            "workload" => self.workload = v.into(),
            "threads" => self.threads = positive(v) as usize,
            "size" | "n" => self.size = positive(v),
            "capacity" => self.capacity = positive(v) as usize,
            "producers" => self.producers = positive(v),
            "consumers" => self.consumers = positive(v),
            "workers" => self.workers = positive(v),
            "tasks" => self.tasks = positive(v),
            "rounds" => self.rounds = positive(v),
            "sample-every" => self.sample_every = positive(v),
            "settle-ms" => self.settle_ms = number(v),
            "channels" if d.channels.contains(&v) => self.channels = v.into(),
            "kernel" => {} // lade's own; this driver has the shared kernel only
            _ => usage(&format!("no such parameter, or bad value: {key}={v}")),
        }
    }

    fn params_json(&self) -> String {
        format!(
            "\"capacity\":{},\"producers\":{},\"consumers\":{},\"workers\":{},\"tasks\":{},\"rounds\":{},\
             \"sample-every\":{},\"settle-ms\":{}",
            self.capacity, self.producers, self.consumers, self.workers, self.tasks, self.rounds, self.sample_every,
            self.settle_ms
        )
    }
}

pub fn parse(d: &Driver) -> Params {
    let mut p = Params {
        channels: d.channels[0].into(),
        threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
        size: 1_000_000,
        capacity: 1024,
        producers: 4,
        consumers: 4,
        workers: 8,
        tasks: 256,
        rounds: 32,
        sample_every: 17,
        settle_ms: 200,
        ..Default::default()
    };
    let mut args = std::env::args().skip(1);
    while let Some(a) = args.next() {
        let Some(flag) = a.strip_prefix("--") else { usage(&format!("unexpected argument: {a}")) };
        if flag == "list" {
            list(d);
        }
        let (key, value) = match flag.split_once('=') {
            Some((k, v)) => (k.to_string(), v.to_string()),
            None => match args.next() {
                Some(v) => (flag.to_string(), v),
                None => usage(&format!("flag without a value: {flag}")),
            },
        };
        match key.as_str() {
            "scenario" => {
                p.contract = true;
                p.workload = if value == "idle-tasks" { "idle".into() } else { value };
            }
            "set" => match value.split_once('=') {
                Some((k, v)) => p.set(d, k, v),
                None => usage(&format!("--set wants key=value: {value}")),
            },
            k => p.set(d, k, &value),
        }
    }
    if p.workload.is_empty() {
        usage("--scenario or --workload is required");
    }
    p
}

fn percentile(sorted: &[u64], q: f64) -> Option<u64> {
    sorted.get(((sorted.len() as f64 * q) as usize).min(sorted.len().wrapping_sub(1))).copied()
}

fn latency_json(l: &[u64]) -> String {
    if l.is_empty() {
        return "null".into();
    }
    let mut out = format!("{{\"count\":{}", l.len());
    for (name, q) in [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)] {
        let ns = percentile(l, q).unwrap_or(0);
        write!(out, ",\"{name}\":{}.{:03}", ns / 1000, ns % 1000).expect("a string takes all");
    }
    out + "}"
}

fn print_contract(d: &Driver, p: &Params, o: &Outcome) {
    let scenario = if p.workload == "idle" { "idle-tasks" } else { &p.workload };
    let extra = if p.workload == "idle" {
        format!("\"bytes_per_task\":{:.1}", o.rss_delta_kb as f64 * 1024.0 / p.size as f64)
    } else {
        String::new()
    };
    let seconds = o.wall.as_nanos().max(1) as f64 / 1e9;
    let rate = o.ops as f64 / seconds;
    println!(
        "{{\"driver\":\"{}\",\"version\":\"{}\",\"scenario\":\"{}\",\"params\":{{\"n\":{},\"threads\":{},\
         \"channels\":\"{}\",{}}},\"n\":{},\"seconds\":{:.9},\"rate\":{:.1},\"printed_rate\":{:.1},\"latency\":{},\
         \"client_cpu_s\":null,\"rss_bytes\":null,\"server_cpu_s\":null,\"server_commands\":null,\"errors\":0,\
         \"verified\":{{\"count\":{},\"checksum\":\"{}\"}},\"extra\":{{{}}}}}",
        d.name, d.version, scenario, p.size, p.threads, p.channels, p.params_json(), o.ops, seconds, rate, rate,
        latency_json(&o.latencies), o.ops, o.checksum, extra
    );
}

fn print_original(d: &Driver, p: &Params, o: &Outcome) {
    let wall = o.wall.as_nanos().max(1);
    let at = |q| percentile(&o.latencies, q).map_or("null".into(), |v| v.to_string());
    println!(
        "{{\"impl\":\"{}\",\"workload\":\"{}\",\"status\":\"ok\",\"reason\":\"\",\"threads\":{},\"size\":{},\
         \"params\":{{{}}},\"ops\":{},\"wall_ns\":{},\"ops_per_sec\":{:.1},\"checksum\":{},\"lat_p50_ns\":{},\
         \"lat_p99_ns\":{},\"lat_p999_ns\":{},\"peak_rss_kb\":{},\"rss_delta_kb\":{},\"bytes_per_task\":{:.1}}}",
        d.name, p.workload, p.threads, p.size, p.params_json(), o.ops, wall, o.ops as f64 * 1e9 / wall as f64,
        o.checksum, at(0.50), at(0.99), at(0.999), proc_kb("/proc/self/status", "VmHWM:").unwrap_or(0),
        o.rss_delta_kb, o.rss_delta_kb as f64 * 1024.0 / p.size as f64
    );
}

pub fn print(d: &Driver, p: &Params, mut o: Outcome) {
    o.latencies.sort_unstable();
    if p.contract {
        print_contract(d, p, &o);
    } else {
        print_original(d, p, &o);
    }
}

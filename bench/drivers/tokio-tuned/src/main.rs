//! The concurrency benchmark on tuned Tokio: kanal channels with a drain loop, mimalloc, parking_lot, no join handles.
//! `--variant tokio-channels` uses Tokio's own mpsc where one receiver is enough (spsc, mpsc, pingpong).
//! Same flags, checksums and JSON line as the other drivers.
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, Notify, Semaphore};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BATCH: usize = 256;

#[derive(Clone)]
struct Params {
    workload: String,
    threads: usize,
    size: u64,
    capacity: usize,
    producers: u64,
    consumers: u64,
    workers: u64,
    tasks: u64,
    rounds: u64,
    sample_every: u64,
    settle_ms: u64,
    tokio_channels: bool,
}

#[derive(Default)]
struct Outcome {
    ops: u64,
    wall: Duration,
    checksum: u64,
    latencies: Vec<u64>,
    rss_delta_kb: i64,
}

fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D049BB133111EB);
    z ^ (z >> 31)
}

fn resident_kb(path: &str, key: &str) -> i64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .find_map(|l| l.strip_prefix(key)?.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

async fn drain(rx: kanal::AsyncReceiver<u64>) -> u64 {
    let mut sum = 0u64;
    while let Ok(v) = rx.recv().await {
        sum = sum.wrapping_add(v);
        for _ in 1..BATCH {
            match rx.try_recv() {
                Ok(Some(v)) => sum = sum.wrapping_add(v),
                _ => break,
            }
        }
    }
    sum
}

async fn drain_tokio(mut rx: mpsc::Receiver<u64>) -> u64 {
    let mut sum = 0u64;
    while let Some(v) = rx.recv().await {
        sum = sum.wrapping_add(v);
        for _ in 1..BATCH {
            match rx.try_recv() {
                Ok(v) => sum = sum.wrapping_add(v),
                Err(_) => break,
            }
        }
    }
    sum
}

async fn channels(p: &Params) -> Outcome {
    let producers = if p.workload == "spsc" { 1 } else { p.producers };
    let consumers = if p.workload == "mpmc" { p.consumers } else { 1 };
    let each = p.size / producers;
    let mut receivers = Vec::new();
    let mut senders = Vec::new();
    let t0;
    if p.tokio_channels && consumers == 1 {
        let (tx, rx) = mpsc::channel(p.capacity);
        t0 = Instant::now();
        receivers.push(tokio::spawn(drain_tokio(rx)));
        for i in 0..producers {
            let tx = tx.clone();
            senders.push(tokio::spawn(async move {
                for v in i * each..(i + 1) * each {
                    tx.send(v).await.unwrap();
                }
            }));
        }
    } else {
        let (tx, rx) = kanal::bounded_async(p.capacity);
        t0 = Instant::now();
        let spsc = p.workload == "spsc";
        if !spsc {
            for _ in 0..consumers {
                receivers.push(tokio::spawn(drain(rx.clone())));
            }
        }
        for i in 0..producers {
            let tx = tx.clone();
            senders.push(tokio::spawn(async move {
                for v in i * each..(i + 1) * each {
                    tx.send(v).await.unwrap();
                }
            }));
        }
        if spsc {
            receivers.push(tokio::spawn(drain(rx)));
        }
    }
    let mut checksum = 0u64;
    for s in senders {
        s.await.unwrap();
    }
    for r in receivers {
        checksum = checksum.wrapping_add(r.await.unwrap());
    }
    Outcome { ops: each * producers, wall: t0.elapsed(), checksum, ..Default::default() }
}

async fn pingpong(p: &Params) -> Outcome {
    let n = p.size;
    let every = p.sample_every;
    let mut latencies = Vec::with_capacity((n / every + 1) as usize);
    macro_rules! play {
        ($a_tx:ident, $a_rx:ident, $b_tx:ident, $b_rx:ident) => {{
            let t0 = Instant::now();
            let pong = tokio::spawn(async move {
                for _ in 0..n {
                    let v = $a_rx.recv().await.unwrap();
                    $b_tx.send(v + 1).await.unwrap();
                }
            });
            let ping = tokio::spawn(async move {
                let mut t = 0u64;
                for i in 0..n {
                    let start = (i % every == 0).then(Instant::now);
                    $a_tx.send(t + 1).await.unwrap();
                    t = $b_rx.recv().await.unwrap();
                    if let Some(s) = start {
                        latencies.push(s.elapsed().as_nanos() as u64);
                    }
                }
                (t, latencies)
            });
            let (sum, lat) = ping.await.unwrap();
            pong.await.unwrap();
            Outcome { ops: n, wall: t0.elapsed(), checksum: sum, latencies: lat, ..Default::default() }
        }};
    }
    if p.tokio_channels {
        let (a_tx, mut a_rx) = mpsc::channel::<u64>(1);
        let (b_tx, mut b_rx) = mpsc::channel::<u64>(1);
        play!(a_tx, a_rx, b_tx, b_rx)
    } else {
        let (a_tx, a_rx) = kanal::bounded_async::<u64>(1);
        let (b_tx, b_rx) = kanal::bounded_async::<u64>(1);
        play!(a_tx, a_rx, b_tx, b_rx)
    }
}

async fn select(p: &Params) -> Outcome {
    let each = p.size / 2;
    let (tx0, mut a) = mpsc::channel::<u64>(p.capacity);
    let (tx1, mut b) = mpsc::channel::<u64>(p.capacity);
    let t0 = Instant::now();
    for (i, tx) in [tx0, tx1].into_iter().enumerate() {
        let lo = i as u64 * each;
        tokio::spawn(async move {
            for v in lo..lo + each {
                tx.send(v).await.unwrap();
            }
        });
    }
    let consumer = tokio::spawn(async move {
        let (mut x, mut y) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        let (mut open_a, mut open_b) = (true, true);
        let mut sum = 0u64;
        while open_a || open_b {
            tokio::select! {
                n = a.recv_many(&mut x, BATCH), if open_a => {
                    open_a = n > 0;
                    sum = x.drain(..).fold(sum, u64::wrapping_add);
                }
                n = b.recv_many(&mut y, BATCH), if open_b => {
                    open_b = n > 0;
                    sum = y.drain(..).fold(sum, u64::wrapping_add);
                }
            }
        }
        sum
    });
    let checksum = consumer.await.unwrap();
    Outcome { ops: each * 2, wall: t0.elapsed(), checksum, ..Default::default() }
}

struct Slots {
    slot: Vec<AtomicU64>,
    left: AtomicU64,
    done: Notify,
}

async fn spawn_once(n: u64) -> (Duration, u64) {
    let shared: &'static Slots = Box::leak(Box::new(Slots {
        slot: (0..n).map(|_| AtomicU64::new(0)).collect(),
        left: AtomicU64::new(n),
        done: Notify::new(),
    }));
    let t0 = Instant::now();
    for i in 0..n {
        tokio::spawn(async move {
            shared.slot[i as usize].store(i, Relaxed);
            if shared.left.fetch_sub(1, SeqCst) == 1 {
                shared.done.notify_one();
            }
        });
    }
    shared.done.notified().await;
    let sum = shared.slot.iter().fold(0u64, |s, v| s.wrapping_add(v.load(Relaxed)));
    (t0.elapsed(), sum)
}

async fn spawn(p: &Params) -> Outcome {
    spawn_once(p.size).await;
    let (wall, checksum) = spawn_once(p.size).await;
    Outcome { ops: p.size, wall, checksum, ..Default::default() }
}

async fn cpu(p: &Params) -> Outcome {
    let each = p.size.div_ceil(p.tasks);
    let (size, rounds) = (p.size, p.rounds);
    let t0 = Instant::now();
    let handles: Vec<_> = (0..p.tasks)
        .map(|t| {
            tokio::spawn(async move {
                let mut sum = 0u64;
                for i in (t * each).min(size)..((t + 1) * each).min(size) {
                    let mut x = i;
                    for _ in 0..rounds {
                        x = mix(x);
                    }
                    sum = sum.wrapping_add(x);
                }
                sum
            })
        })
        .collect();
    let mut checksum = 0u64;
    for h in handles {
        checksum = checksum.wrapping_add(h.await.unwrap());
    }
    Outcome { ops: size, wall: t0.elapsed(), checksum, ..Default::default() }
}

async fn mutex(p: &Params) -> Outcome {
    let counter = Arc::new(parking_lot::Mutex::new(0u64));
    let each = p.size / p.workers;
    let t0 = Instant::now();
    let handles: Vec<_> = (0..p.workers)
        .map(|_| {
            let counter = counter.clone();
            tokio::spawn(async move {
                for _ in 0..each {
                    *counter.lock() += 1;
                }
            })
        })
        .collect();
    for h in handles {
        h.await.unwrap();
    }
    let checksum = *counter.lock();
    Outcome { ops: each * p.workers, wall: t0.elapsed(), checksum, ..Default::default() }
}

fn idle_task(
    gate: Arc<Semaphore>,
    parked: Arc<AtomicU64>,
    finished: Arc<AtomicU64>,
    done: Arc<Notify>,
    n: u64,
) -> impl std::future::Future<Output = ()> {
    async move {
        parked.fetch_add(1, Relaxed);
        let _ = gate.acquire().await;
        if finished.fetch_add(1, SeqCst) + 1 == n {
            done.notify_one();
        }
    }
}

async fn idle(p: &Params) -> Outcome {
    let gate = Arc::new(Semaphore::new(0));
    let parked = Arc::new(AtomicU64::new(0));
    let finished = Arc::new(AtomicU64::new(0));
    let done = Arc::new(Notify::new());
    let before = resident_kb("/proc/self/smaps_rollup", "Rss:");
    let t0 = Instant::now();
    for _ in 0..p.size {
        tokio::spawn(idle_task(gate.clone(), parked.clone(), finished.clone(), done.clone(), p.size));
    }
    while parked.load(Relaxed) < p.size {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let wall = t0.elapsed();
    tokio::time::sleep(Duration::from_millis(p.settle_ms)).await;
    let rss_delta_kb = resident_kb("/proc/self/smaps_rollup", "Rss:") - before;
    gate.close();
    done.notified().await;
    Outcome { ops: p.size, wall, checksum: finished.load(SeqCst), rss_delta_kb, ..Default::default() }
}

fn usage(what: &str) -> ! {
    eprintln!("error: {what}");
    std::process::exit(2);
}

fn parse() -> Params {
    let mut flags: HashMap<String, String> = HashMap::new();
    let mut args = std::env::args().skip(1);
    while let Some(a) = args.next() {
        let Some(a) = a.strip_prefix("--") else { usage("unexpected argument") };
        match a.split_once('=') {
            Some((k, v)) => flags.insert(k.into(), v.into()),
            None => flags.insert(a.into(), args.next().unwrap_or_else(|| usage("flag without a value"))),
        };
    }
    let mut number = |key: &str, default: u64| -> u64 {
        flags.remove(key).map_or(default, |v| {
            v.replace('_', "").parse().unwrap_or_else(|_| usage("bad number"))
        })
    };
    let p = Params {
        threads: number("threads", 2) as usize,
        size: number("size", 1_000_000),
        capacity: number("capacity", 1024) as usize,
        producers: number("producers", 4),
        consumers: number("consumers", 4),
        workers: number("workers", 8),
        tasks: number("tasks", 256),
        rounds: number("rounds", 32),
        sample_every: number("sample-every", 17),
        settle_ms: number("settle-ms", 200),
        workload: flags.remove("workload").unwrap_or_else(|| usage("--workload is required")),
        tokio_channels: flags.remove("variant").is_some_and(|v| v.contains("tokio-channels")),
    };
    if !flags.is_empty() {
        usage("unknown flag");
    }
    p
}

async fn run(p: Params) -> Outcome {
    match p.workload.as_str() {
        "spsc" | "mpsc" | "mpmc" => channels(&p).await,
        "pingpong" => pingpong(&p).await,
        "select" => select(&p).await,
        "spawn" => spawn(&p).await,
        "cpu" => cpu(&p).await,
        "mutex" => mutex(&p).await,
        "idle" => idle(&p).await,
        _ => usage("no such workload"),
    }
}

fn main() {
    let p = parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(p.threads)
        .enable_all()
        .build()
        .unwrap();
    let mut o = runtime.block_on(async { tokio::spawn(run(p.clone())).await.unwrap() });
    o.latencies.sort_unstable();
    let at = |q: f64| -> String {
        let n = o.latencies.len();
        if n == 0 {
            return "null".into();
        }
        o.latencies[((n as f64 * q) as usize).min(n - 1)].to_string()
    };
    let wall = o.wall.as_nanos().max(1);
    println!(
        "{{\"impl\":\"{}\",\"workload\":\"{}\",\"status\":\"ok\",\"reason\":\"\",\"threads\":{},\"size\":{},\
         \"params\":{{\"capacity\":{},\"producers\":{},\"consumers\":{},\"workers\":{},\"tasks\":{},\"rounds\":{},\
         \"sample-every\":{},\"settle-ms\":{}}},\"ops\":{},\"wall_ns\":{},\"ops_per_sec\":{:.1},\"checksum\":{},\
         \"lat_p50_ns\":{},\"lat_p99_ns\":{},\"lat_p999_ns\":{},\"peak_rss_kb\":{},\"rss_delta_kb\":{},\
         \"bytes_per_task\":{:.1}}}",
        if p.tokio_channels { "tokio-tuned-tokio-channels" } else { "tokio-tuned" },
        p.workload, p.threads, p.size, p.capacity, p.producers, p.consumers, p.workers, p.tasks, p.rounds,
        p.sample_every, p.settle_ms, o.ops, wall, o.ops as f64 * 1e9 / wall as f64, o.checksum,
        at(0.50), at(0.99), at(0.999), resident_kb("/proc/self/status", "VmHWM:"), o.rss_delta_kb,
        o.rss_delta_kb as f64 * 1024.0 / p.size as f64
    );
}

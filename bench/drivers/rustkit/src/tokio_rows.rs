//! What plain and tuned Tokio do alike.
use crate::{hash_chunk, resident_kb, Driver, Outcome, Params};
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, Semaphore};

/// The whole workload runs inside a task, so that nothing runs on the thread that drives the runtime.
pub fn main<F>(d: &Driver, work: impl FnOnce(Params) -> F)
where
    F: Future<Output = Outcome> + Send + 'static,
{
    let p = crate::parse(d);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(p.threads)
        .enable_all()
        .build()
        .expect("runtime");
    let work = work(p.clone());
    let outcome = runtime.block_on(async { tokio::spawn(work).await.expect("workload") });
    crate::print(d, &p, outcome);
}

/// spsc, mpsc, mpmc: one task for each end. The producer is spawned first in spsc, the consumers in the others.
pub async fn channels<S, R, P, C>(
    p: &Params,
    senders: Vec<S>,
    receivers: Vec<R>,
    produce: impl Fn(S, u64, u64) -> P,
    consume: impl Fn(R) -> C,
) -> Outcome
where
    P: Future<Output = ()> + Send + 'static,
    C: Future<Output = u64> + Send + 'static,
{
    let n = senders.len() as u64;
    let each = p.size / n;
    let mut producing = Vec::with_capacity(senders.len());
    let mut consuming = Vec::with_capacity(receivers.len());
    let mut receivers = Some(receivers);
    let t0 = Instant::now();
    if p.workload != "spsc" {
        consuming.extend(receivers.take().into_iter().flatten().map(|r| tokio::spawn(consume(r))));
    }
    for (s, i) in senders.into_iter().zip(0u64..) {
        producing.push(tokio::spawn(produce(s, i * each, (i + 1) * each)));
    }
    consuming.extend(receivers.into_iter().flatten().map(|r| tokio::spawn(consume(r))));
    for h in producing {
        h.await.expect("producer");
    }
    let mut checksum = 0u64;
    for h in consuming {
        checksum = checksum.wrapping_add(h.await.expect("consumer"));
    }
    Outcome::new(each * n, t0.elapsed(), checksum)
}

/// (producers, consumers) of a channel workload.
pub fn ends(p: &Params) -> (usize, usize) {
    match p.workload.as_str() {
        "spsc" => (1, 1),
        "mpsc" => (p.producers as usize, 1),
        _ => (p.producers as usize, p.consumers as usize),
    }
}

/// Two channels of capacity 1, given as (ping's sender, pong's receiver), (pong's sender, ping's receiver); mpsc's receivers
/// must be `mut`, kanal's need not be.
#[macro_export]
macro_rules! pingpong {
    ($p:ident, $make:expr) => {{
        let (n, every) = ($p.size, $p.sample_every);
        let mut latencies = Vec::with_capacity((n / every + 1) as usize);
        #[allow(unused_mut)]
        let (ping_tx, mut pong_rx) = $make;
        #[allow(unused_mut)]
        let (pong_tx, mut ping_rx) = $make;
        let t0 = std::time::Instant::now();
        let pong = tokio::spawn(async move {
            for _ in 0..n {
                let v: u64 = pong_rx.recv().await.unwrap();
                pong_tx.send(v + 1).await.unwrap();
            }
        });
        let ping = tokio::spawn(async move {
            let mut t = 0u64;
            for i in 0..n {
                let start = (i % every == 0).then(std::time::Instant::now);
                ping_tx.send(t + 1).await.unwrap();
                t = ping_rx.recv().await.unwrap();
                if let Some(s) = start {
                    latencies.push(s.elapsed().as_nanos() as u64);
                }
            }
            (t, latencies)
        });
        let (sum, latencies) = ping.await.unwrap();
        pong.await.unwrap();
        $crate::Outcome { latencies, ..$crate::Outcome::new(n, t0.elapsed(), sum) }
    }};
}

pub async fn cpu(p: &Params) -> Outcome {
    let (size, tasks, rounds) = (p.size, p.tasks, p.rounds);
    let mut handles = Vec::with_capacity(tasks as usize);
    let t0 = Instant::now();
    for t in 0..tasks {
        handles.push(tokio::spawn(async move { hash_chunk(size, tasks, rounds, t) }));
    }
    let mut checksum = 0u64;
    for h in handles {
        checksum = checksum.wrapping_add(h.await.expect("chunk"));
    }
    Outcome::new(size, t0.elapsed(), checksum)
}

/// A plain function that returns an async block: an `async fn` would store its arguments twice.
#[allow(clippy::manual_async_fn)]
fn idle_task(
    gate: Arc<Semaphore>,
    parked: Arc<AtomicU64>,
    finished: Arc<AtomicU64>,
    done: Arc<Notify>,
    n: u64,
) -> impl Future<Output = ()> {
    async move {
        parked.fetch_add(1, Relaxed);
        let _ = gate.acquire().await;
        if finished.fetch_add(1, SeqCst) + 1 == n {
            done.notify_one();
        }
    }
}

pub async fn idle(p: &Params) -> Outcome {
    let gate = Arc::new(Semaphore::new(0));
    let parked = Arc::new(AtomicU64::new(0));
    let finished = Arc::new(AtomicU64::new(0));
    let done = Arc::new(Notify::new());
    let before = resident_kb();
    let t0 = Instant::now();
    for _ in 0..p.size {
        tokio::spawn(idle_task(gate.clone(), parked.clone(), finished.clone(), done.clone(), p.size));
    }
    while parked.load(Relaxed) < p.size {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let wall = t0.elapsed();
    tokio::time::sleep(Duration::from_millis(p.settle_ms)).await;
    let rss_delta_kb = resident_kb() - before;
    gate.close();
    done.notified().await;
    Outcome { rss_delta_kb, ..Outcome::new(p.size, wall, finished.load(SeqCst)) }
}

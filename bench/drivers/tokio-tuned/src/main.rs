//! Table `currency` on tuned Tokio: mimalloc, kanal channels, a drain loop, no join handles, parking_lot, recv_many in select.
//! `--set channels=tokio` has Tokio's own channels (async-channel where several receive) with the same drain loop.
use rustkit::{pingpong, tokio_rows as rows, Driver, Outcome, Params};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, Notify};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const DRIVER: Driver =
    Driver { name: "tokio-tuned", version: "1.53.1, kanal 0.1.1", channels: &["kanal", "tokio"] };
const BATCH: usize = 256;

/// One awaited receive, then up to 255 that do not wait.
macro_rules! drain {
    ($rx:ident, $some:pat => $v:ident, $got:pat => $w:ident) => {{
        let mut sum = 0u64;
        while let $some = $rx.recv().await {
            sum = sum.wrapping_add($v);
            for _ in 1..BATCH {
                match $rx.try_recv() {
                    $got => sum = sum.wrapping_add($w),
                    _ => break,
                }
            }
        }
        sum
    }};
}

macro_rules! produce {
    () => {
        |tx, from, to| async move {
            for v in from..to {
                tx.send(v).await.unwrap();
            }
        }
    };
}

async fn channels(p: &Params) -> Outcome {
    let (producers, consumers) = rows::ends(p);
    if p.channels == "kanal" {
        let (tx, rx) = kanal::bounded_async::<u64>(p.capacity);
        let (senders, receivers) = (vec![tx.clone(); producers], vec![rx.clone(); consumers]);
        drop((tx, rx));
        let consume = |rx: kanal::AsyncReceiver<u64>| async move { drain!(rx, Ok(v) => v, Ok(Some(w)) => w) };
        return rows::channels(p, senders, receivers, produce!(), consume).await;
    }
    if p.workload == "mpmc" {
        let (tx, rx) = async_channel::bounded::<u64>(p.capacity);
        let (senders, receivers) = (vec![tx.clone(); producers], vec![rx.clone(); consumers]);
        drop((tx, rx));
        let consume = |rx: async_channel::Receiver<u64>| async move { drain!(rx, Ok(v) => v, Ok(w) => w) };
        return rows::channels(p, senders, receivers, produce!(), consume).await;
    }
    let (tx, rx) = mpsc::channel::<u64>(p.capacity);
    let senders = vec![tx.clone(); producers];
    drop(tx);
    let consume = |mut rx: mpsc::Receiver<u64>| async move { drain!(rx, Some(v) => v, Ok(w) => w) };
    rows::channels(p, senders, vec![rx], produce!(), consume).await
}

async fn select(p: &Params) -> Outcome {
    let each = p.size / 2;
    let (tx0, mut a) = mpsc::channel::<u64>(p.capacity);
    let (tx1, mut b) = mpsc::channel::<u64>(p.capacity);
    let t0 = Instant::now();
    for (tx, i) in [tx0, tx1].into_iter().zip(0u64..) {
        tokio::spawn(async move {
            for v in i * each..(i + 1) * each {
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
    Outcome::new(each * 2, t0.elapsed(), checksum)
}

struct Slots {
    slot: Vec<AtomicU64>,
    left: AtomicU64,
    done: Notify,
}

/// The shared block is leaked, so that tasks need no reference count.
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
    Outcome::new(p.size, wall, checksum)
}

/// parking_lot blocks the worker thread; the lock is never held across an await.
async fn mutex(p: &Params) -> Outcome {
    let counter = Arc::new(parking_lot::Mutex::new(0u64));
    let each = p.size / p.workers;
    let mut handles = Vec::with_capacity(p.workers as usize);
    let t0 = Instant::now();
    for _ in 0..p.workers {
        let counter = counter.clone();
        handles.push(tokio::spawn(async move {
            for _ in 0..each {
                *counter.lock() += 1;
            }
        }));
    }
    for h in handles {
        h.await.unwrap();
    }
    let wall = t0.elapsed();
    let checksum = *counter.lock();
    Outcome::new(each * p.workers, wall, checksum)
}

async fn run(p: Params) -> Outcome {
    match p.workload.as_str() {
        "spsc" | "mpsc" | "mpmc" => channels(&p).await,
        "pingpong" if p.channels == "kanal" => pingpong!(p, kanal::bounded_async::<u64>(1)),
        "pingpong" => pingpong!(p, mpsc::channel::<u64>(1)),
        "select" => select(&p).await,
        "spawn" => spawn(&p).await,
        "cpu" => rows::cpu(&p).await,
        "mutex" => mutex(&p).await,
        "idle" => rows::idle(&p).await,
        w => rustkit::usage(&format!("no such scenario: {w}")),
    }
}

fn main() {
    rows::main(&DRIVER, run);
}

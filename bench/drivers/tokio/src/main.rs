//! Table `currency` on plain Tokio: its own channels (async-channel where several receive), mutex, select, join handles.
use rustkit::{pingpong, tokio_rows as rows, Driver, Outcome, Params};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, Mutex};

const DRIVER: Driver = Driver { name: "tokio", version: "1.53.1", channels: &["tokio"] };

async fn channels(p: &Params) -> Outcome {
    let (producers, consumers) = rows::ends(p);
    if p.workload == "mpmc" {
        let (tx, rx) = async_channel::bounded::<u64>(p.capacity);
        let (senders, receivers) = (vec![tx.clone(); producers], vec![rx.clone(); consumers]);
        drop((tx, rx));
        return rows::channels(
            p,
            senders,
            receivers,
            |tx, from, to| async move {
                for v in from..to {
                    tx.send(v).await.unwrap();
                }
            },
            |rx| async move {
                let mut sum = 0u64;
                while let Ok(v) = rx.recv().await {
                    sum = sum.wrapping_add(v);
                }
                sum
            },
        )
        .await;
    }
    let (tx, rx) = mpsc::channel::<u64>(p.capacity);
    let senders = vec![tx.clone(); producers];
    drop(tx);
    rows::channels(
        p,
        senders,
        vec![rx],
        |tx, from, to| async move {
            for v in from..to {
                tx.send(v).await.unwrap();
            }
        },
        |mut rx: mpsc::Receiver<u64>| async move {
            let mut sum = 0u64;
            while let Some(v) = rx.recv().await {
                sum = sum.wrapping_add(v);
            }
            sum
        },
    )
    .await
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
        let (mut open_a, mut open_b) = (true, true);
        let mut sum = 0u64;
        while open_a || open_b {
            tokio::select! {
                v = a.recv(), if open_a => match v {
                    Some(v) => sum = sum.wrapping_add(v),
                    None => open_a = false,
                },
                v = b.recv(), if open_b => match v {
                    Some(v) => sum = sum.wrapping_add(v),
                    None => open_b = false,
                },
            }
        }
        sum
    });
    let checksum = consumer.await.unwrap();
    Outcome::new(each * 2, t0.elapsed(), checksum)
}

async fn spawn_once(n: u64) -> (Duration, u64) {
    let mut handles = Vec::with_capacity(n as usize);
    let t0 = Instant::now();
    for i in 0..n {
        handles.push(tokio::spawn(async move { i }));
    }
    let mut sum = 0u64;
    for h in handles {
        sum = sum.wrapping_add(h.await.unwrap());
    }
    (t0.elapsed(), sum)
}

async fn spawn(p: &Params) -> Outcome {
    spawn_once(p.size).await;
    let (wall, checksum) = spawn_once(p.size).await;
    Outcome::new(p.size, wall, checksum)
}

async fn mutex(p: &Params) -> Outcome {
    let counter = Arc::new(Mutex::new(0u64));
    let each = p.size / p.workers;
    let mut handles = Vec::with_capacity(p.workers as usize);
    let t0 = Instant::now();
    for _ in 0..p.workers {
        let counter = counter.clone();
        handles.push(tokio::spawn(async move {
            for _ in 0..each {
                *counter.lock().await += 1;
            }
        }));
    }
    for h in handles {
        h.await.unwrap();
    }
    let wall = t0.elapsed();
    let checksum = *counter.lock().await;
    Outcome::new(each * p.workers, wall, checksum)
}

async fn run(p: Params) -> Outcome {
    match p.workload.as_str() {
        "spsc" | "mpsc" | "mpmc" => channels(&p).await,
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

//! Table `currency` on Crossbeam: an OS thread for each role, crossbeam-channel, crossbeam-deque, std's mutex.
//!
//! The role threads meet at a barrier and the first one past it reads the clock, so that making threads is not in the time;
//! in spawn and idle it is.
use crossbeam_channel::{bounded, never, select, Receiver, Sender};
use crossbeam_deque::{Injector, Steal, Stealer, Worker};
use rustkit::{hash_chunk, resident_kb, Driver, Outcome, Params};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::thread::{scope, sleep, spawn, yield_now};
use std::time::{Duration, Instant};

const DRIVER: Driver =
    Driver { name: "crossbeam", version: "0.8.5 (channel 0.5.17, deque 0.8.8)", channels: &["crossbeam"] };
const THREADS_MAX: u64 = 20_000;

struct Start {
    barrier: Barrier,
    clock: OnceLock<Instant>,
}

impl Start {
    fn new(roles: usize) -> Self {
        Start { barrier: Barrier::new(roles), clock: OnceLock::new() }
    }

    fn wait(&self) {
        self.barrier.wait();
        self.clock.get_or_init(Instant::now);
    }

    fn elapsed(&self) -> Duration {
        self.clock.get().expect("all roles have started").elapsed()
    }
}

fn produce(tx: Sender<u64>, from: u64, to: u64) {
    for v in from..to {
        tx.send(v).unwrap();
    }
}

/// Borrows the receiver: owning it is slower.
fn consume(rx: &Receiver<u64>) -> u64 {
    rx.iter().fold(0u64, u64::wrapping_add)
}

fn channels(p: &Params) -> Outcome {
    let (producers, consumers) = match p.workload.as_str() {
        "spsc" => (1, 1),
        "mpsc" => (p.producers, 1),
        _ => (p.producers, p.consumers),
    };
    let each = p.size / producers;
    let start = &Start::new((producers + consumers) as usize);
    let (tx, rx) = bounded::<u64>(p.capacity);
    let rx = &rx;
    let checksum = scope(|s| {
        let receiving: Vec<_> = (0..consumers)
            .map(|_| {
                s.spawn(move || {
                    start.wait();
                    consume(rx)
                })
            })
            .collect();
        for i in 0..producers {
            let tx = tx.clone();
            s.spawn(move || {
                start.wait();
                produce(tx, i * each, (i + 1) * each)
            });
        }
        drop(tx);
        receiving.into_iter().fold(0u64, |sum, h| sum.wrapping_add(h.join().unwrap()))
    });
    Outcome::new(each * producers, start.elapsed(), checksum)
}

fn pingpong(p: &Params) -> Outcome {
    let (n, every) = (p.size, p.sample_every);
    let start = &Start::new(2);
    let (ping_tx, pong_rx) = bounded::<u64>(1);
    let (pong_tx, ping_rx) = bounded::<u64>(1);
    let mut latencies = Vec::with_capacity((n / every + 1) as usize);
    let mut t = 0u64;
    scope(|s| {
        s.spawn(move || {
            start.wait();
            for v in &pong_rx {
                pong_tx.send(v + 1).unwrap();
            }
        });
        s.spawn(|| {
            let ping_tx = ping_tx;
            start.wait();
            for i in 0..n {
                let begun = (i % every == 0).then(Instant::now);
                ping_tx.send(t + 1).unwrap();
                t = ping_rx.recv().unwrap();
                if let Some(b) = begun {
                    latencies.push(b.elapsed().as_nanos() as u64);
                }
            }
        });
    });
    Outcome { latencies, ..Outcome::new(n, start.elapsed(), t) }
}

/// A closed side is replaced by a channel that is never ready.
fn consume_two(mut a: Receiver<u64>, mut b: Receiver<u64>) -> u64 {
    let (mut open, mut sum) = (2, 0u64);
    while open > 0 {
        select! {
            recv(a) -> v => match v {
                Ok(v) => sum = sum.wrapping_add(v),
                Err(_) => { a = never(); open -= 1 }
            },
            recv(b) -> v => match v {
                Ok(v) => sum = sum.wrapping_add(v),
                Err(_) => { b = never(); open -= 1 }
            },
        }
    }
    sum
}

fn select_two(p: &Params) -> Outcome {
    let each = p.size / 2;
    let start = &Start::new(3);
    let (tx0, a) = bounded::<u64>(p.capacity);
    let (tx1, b) = bounded::<u64>(p.capacity);
    let checksum = scope(|s| {
        for (tx, i) in [tx0, tx1].into_iter().zip(0u64..) {
            s.spawn(move || {
                start.wait();
                produce(tx, i * each, (i + 1) * each)
            });
        }
        let consumer = s.spawn(move || {
            start.wait();
            consume_two(a, b)
        });
        consumer.join().unwrap()
    });
    Outcome::new(each * 2, start.elapsed(), checksum)
}

fn refuse_threads(n: u64) {
    if n > THREADS_MAX {
        eprintln!("an OS thread for each task, at most {THREADS_MAX}");
        std::process::exit(2);
    }
}

fn spawn_once(n: u64) -> (Duration, u64) {
    let t0 = Instant::now();
    let sum = scope(|s| {
        let handles: Vec<_> = (0..n).map(|i| s.spawn(move || i)).collect();
        handles.into_iter().fold(0u64, |sum, h| sum.wrapping_add(h.join().unwrap()))
    });
    (t0.elapsed(), sum)
}

fn spawn_all(p: &Params) -> Outcome {
    refuse_threads(p.size);
    spawn_once(p.size);
    let (wall, checksum) = spawn_once(p.size);
    Outcome::new(p.size, wall, checksum)
}

fn find_chunk(own: &Worker<u64>, all: &Injector<u64>, others: &[Stealer<u64>]) -> Option<u64> {
    own.pop().or_else(|| loop {
        let found = all
            .steal_batch_and_pop(own)
            .or_else(|| others.iter().map(|o| o.steal_batch_and_pop(own)).collect::<Steal<u64>>());
        if !found.is_retry() {
            break found.success();
        }
    })
}

/// All chunks are in the global queue before the clock starts; a counter of those left ends it.
fn cpu(p: &Params) -> Outcome {
    let (size, tasks, rounds) = (p.size, p.tasks, p.rounds);
    let all = &Injector::new();
    (0..tasks).for_each(|t| all.push(t));
    let left = &AtomicU64::new(tasks);
    let deques: Vec<Worker<u64>> = (0..p.threads).map(|_| Worker::new_fifo()).collect();
    let others: &Vec<Stealer<u64>> = &deques.iter().map(Worker::stealer).collect();
    let start = &Start::new(p.threads);
    let checksum = scope(|s| {
        let handles: Vec<_> = deques
            .into_iter()
            .map(|own| {
                s.spawn(move || {
                    start.wait();
                    let mut sum = 0u64;
                    while left.load(SeqCst) > 0 {
                        match find_chunk(&own, all, others) {
                            Some(t) => {
                                sum = sum.wrapping_add(hash_chunk(size, tasks, rounds, t));
                                left.fetch_sub(1, SeqCst);
                            }
                            None => yield_now(),
                        }
                    }
                    sum
                })
            })
            .collect();
        handles.into_iter().fold(0u64, |sum, h| sum.wrapping_add(h.join().unwrap()))
    });
    Outcome::new(size, start.elapsed(), checksum)
}

fn mutex(p: &Params) -> Outcome {
    let counter = &Mutex::new(0u64);
    let each = p.size / p.workers;
    let start = &Start::new(p.workers as usize);
    scope(|s| {
        for _ in 0..p.workers {
            s.spawn(move || {
                start.wait();
                for _ in 0..each {
                    *counter.lock().unwrap() += 1;
                }
            });
        }
    });
    let wall = start.elapsed();
    let checksum = *counter.lock().unwrap();
    Outcome::new(each * p.workers, wall, checksum)
}

fn idle(p: &Params) -> Outcome {
    refuse_threads(p.size);
    let (gate, closed) = bounded::<()>(0);
    let parked = Arc::new(AtomicU64::new(0));
    let finished = Arc::new(AtomicU64::new(0));
    let mut handles = Vec::with_capacity(p.size as usize);
    let before = resident_kb();
    let t0 = Instant::now();
    for _ in 0..p.size {
        let (closed, parked, finished) = (closed.clone(), parked.clone(), finished.clone());
        handles.push(spawn(move || {
            parked.fetch_add(1, Relaxed);
            let _ = closed.recv();
            finished.fetch_add(1, Relaxed);
        }));
    }
    while parked.load(Relaxed) < p.size {
        sleep(Duration::from_millis(1));
    }
    let wall = t0.elapsed();
    sleep(Duration::from_millis(p.settle_ms));
    let rss_delta_kb = resident_kb() - before;
    drop(gate);
    handles.into_iter().for_each(|h| h.join().unwrap());
    Outcome { rss_delta_kb, ..Outcome::new(p.size, wall, finished.load(SeqCst)) }
}

fn main() {
    let p = rustkit::parse(&DRIVER);
    let outcome = match p.workload.as_str() {
        "spsc" | "mpsc" | "mpmc" => channels(&p),
        "pingpong" => pingpong(&p),
        "select" => select_two(&p),
        "spawn" => spawn_all(&p),
        "cpu" => cpu(&p),
        "mutex" => mutex(&p),
        "idle" => idle(&p),
        w => rustkit::usage(&format!("no such scenario: {w}")),
    };
    rustkit::print(&DRIVER, &p, outcome);
}

//! Scenarios with a worker. Settings are those of the contender's own benchmark, scenario by scenario.

use crate::measure::{Latencies, Server, Window, Work};
use crate::payload::{self, Trees};
use crate::scenarios::{self, QUEUE};
use crate::{Failure, Outcome, Run, producers};
use bytes::Bytes;
use chasquimq::{Consumer, ConsumerConfig, HandlerError, Job, RetryConfig};
use serde_json::Value;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

type Handled = Result<Bytes, HandlerError>;

/// The settings of worker-concurrent; the others say what differs. Events are on by default, results are not kept by default.
fn config(run: &mut Run, concurrency: u64) -> Outcome<ConsumerConfig> {
    Ok(ConsumerConfig {
        queue_name: QUEUE.into(),
        concurrency: run.int("concurrency", concurrency)? as usize,
        batch: 256,
        block_ms: 100,
        ack_batch: 256,
        ack_idle_ms: 2,
        dlq_inflight: 64,
        max_attempts: 3,
        delayed_enabled: false,
        events_enabled: run.int("events", 1)? != 0,
        store_results: run.int("results", 0)? != 0,
        ..Default::default()
    })
}

struct Worker {
    stop: CancellationToken,
    task: JoinHandle<chasquimq::Result<()>>,
}

impl Worker {
    fn start<H>(url: &str, config: ConsumerConfig, handler: H) -> Self
    where
        H: Fn(Job<Value>) -> Ready<Handled> + Send + Sync + 'static,
    {
        let stop = CancellationToken::new();
        let consumer = Consumer::<Value>::new(url, config);
        let task = tokio::spawn(consumer.run(handler, stop.clone()));
        Worker { stop, task }
    }

    async fn end(self) -> Outcome<()> {
        self.stop.cancel();
        Ok(self.task.await??)
    }
}

struct Plan {
    bulk: usize,
    delay: Option<Duration>,
    config: ConsumerConfig,
    result: Bytes,
    fail_first: bool,
}

impl Plan {
    fn new(config: ConsumerConfig) -> Self {
        // With results=1 the handler returns what the other contender's does: a small object.
        let result = if config.store_results {
            Bytes::from_static(&[0x81, 0xa1, b'r', 0x80])
        } else {
            Bytes::new()
        };
        Plan {
            bulk: 100,
            delay: None,
            config,
            result,
            fail_first: false,
        }
    }
}

/// All jobs are in the store before the worker starts. The window opens at the handler start of number `warmup` in order of ticks.
async fn drain(run: &mut Run, bench: u64, plan: Plan) -> Outcome<()> {
    let (warmup, bench) = (run.int("warmup", 1000)?, run.int("bench", bench)?);
    let trees = Trees::new(run.int("width", 1)?, run.int("depth", 1)?);
    let jobs: Vec<Value> = (0..warmup + bench)
        .map(|number| trees.make(number))
        .collect();
    let producer = producers::connect(run, 4).await?;
    for some in jobs.chunks(plan.bulk) {
        match plan.delay {
            Some(delay) => producer.add_in_bulk(delay, some.to_vec()).await?,
            None => producer.add_bulk(some.to_vec()).await?,
        };
    }
    if plan.delay.is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let work = Arc::new(Work::new(warmup + bench));
    let window = Arc::new(Window::new(&run.url)?);
    let failed = Arc::new(AtomicU64::new(0));
    let seen: Arc<Vec<AtomicBool>> = Arc::new(
        (0..warmup + bench)
            .map(|_| AtomicBool::new(false))
            .collect(),
    );
    if warmup == 0 {
        window.open_quiet()?;
    }
    let (counted, clock, failures) = (work.clone(), window.clone(), failed.clone());
    let (result, fail_first) = (plan.result, plan.fail_first);
    let worker = Worker::start(&run.url, plan.config, move |job| {
        let Some(number) =
            payload::tree_number(&job.payload).filter(|n| (*n as usize) < seen.len())
        else {
            counted.fail();
            return ready(Ok(Bytes::new()));
        };
        if fail_first && !seen[number as usize].swap(true, Relaxed) {
            failures.fetch_add(1, Relaxed);
            return ready(Err(HandlerError::new(std::io::Error::other(
                "first attempt",
            ))));
        }
        if counted.job(number) == warmup {
            clock.open();
        }
        ready(Ok(result.clone()))
    });
    let last = work.wait().await?;
    let own = scenarios::settled(&mut Server::connect(&run.url)?)?;
    let begin = window.opened()?;
    window.close(run, bench, Some((warmup + bench, last)), own)?;
    work.save(run);
    run.extra.insert(
        "handled_rate".into(),
        (bench as f64 / (last - begin).as_secs_f64()).into(),
    );
    if fail_first {
        run.extra
            .insert("failed".into(), failed.load(Relaxed).into());
    }
    worker.end().await
}

pub async fn generic(run: &mut Run) -> Outcome<()> {
    let config = ConsumerConfig {
        batch: 64,
        ack_batch: 64,
        ack_idle_ms: 5,
        dlq_inflight: 32,
        ..config(run, 1)?
    };
    drain(run, 1000, Plan::new(config)).await
}

pub async fn concurrent(run: &mut Run) -> Outcome<()> {
    let plan = Plan::new(config(run, 100)?);
    drain(run, 10_000, plan).await
}

pub async fn store_results(run: &mut Run) -> Outcome<()> {
    let config = ConsumerConfig {
        store_results: true,
        ..config(run, 100)?
    };
    let result = Bytes::from(vec![b'r'; run.int("result_bytes", 64)? as usize]);
    drain(
        run,
        10_000,
        Plan {
            result,
            ..Plan::new(config)
        },
    )
    .await
}

pub async fn delayed(run: &mut Run) -> Outcome<()> {
    let config = ConsumerConfig {
        delayed_enabled: true,
        delayed_poll_interval_ms: 10,
        delayed_promote_batch: 1024,
        ..config(run, 100)?
    };
    let delay = Some(Duration::from_millis(run.int("delay_ms", 1)?));
    drain(
        run,
        1000,
        Plan {
            bulk: 500,
            delay,
            ..Plan::new(config)
        },
    )
    .await
}

pub async fn retry(run: &mut Run) -> Outcome<()> {
    let backoff = run.int("backoff_ms", 1)?;
    let config = ConsumerConfig {
        block_ms: 50,
        max_attempts: run.int("attempts", 5)? as u32,
        retry: RetryConfig {
            initial_backoff_ms: backoff,
            max_backoff_ms: 5 * backoff,
            multiplier: 2.0,
            jitter_ms: 0,
        },
        retry_inflight: 256,
        delayed_enabled: true,
        delayed_poll_interval_ms: 5,
        delayed_promote_batch: 1024,
        ..config(run, 100)?
    };
    drain(
        run,
        500,
        Plan {
            fail_first: true,
            ..Plan::new(config)
        },
    )
    .await
}

/// An open loop: job i is due at i * every_us, whether or not those before have been acknowledged. A thread keeps the time, since
/// the runtime's timers have 1 ms.
pub async fn latency(run: &mut Run) -> Outcome<()> {
    let (warmup, bench) = (run.int("warmup", 500)?, run.int("bench", 10_000)?);
    let every = Duration::from_micros(run.int("every_us", 1000)?);
    let trees = Trees::new(run.int("width", 1)?, run.int("depth", 1)?);
    let total = warmup + bench;
    let config = ConsumerConfig {
        batch: 64,
        ack_batch: 64,
        ..config(run, 100)?
    };
    let producer = Arc::new(producers::connect(run, 1).await?);
    let work = Arc::new(Work::new(total));
    let window = Arc::new(Window::new(&run.url)?);
    let latencies = Arc::new((Latencies::new(total), Latencies::new(total)));
    let called: Arc<Vec<AtomicU64>> = Arc::new((0..total).map(|_| AtomicU64::new(0)).collect());
    if warmup == 0 {
        window.open_quiet()?;
    }
    let start = Instant::now() + Duration::from_millis(200);
    let (counted, clock, recorded, calls) = (
        work.clone(),
        window.clone(),
        latencies.clone(),
        called.clone(),
    );
    let worker = Worker::start(&run.url, config, move |job| {
        let now = Instant::now();
        match payload::tree_number(&job.payload).filter(|n| *n < total) {
            None => counted.fail(),
            Some(number) => {
                if number >= warmup {
                    let since = now.saturating_duration_since(start);
                    recorded
                        .0
                        .record(number, since.saturating_sub(every * number as u32));
                    let call = Duration::from_nanos(calls[number as usize].load(Relaxed));
                    recorded.1.record(number, since.saturating_sub(call));
                }
                if counted.job(number) == warmup {
                    clock.open();
                }
            }
        }
        ready(Ok(Bytes::new()))
    });
    let (runtime, failing) = (tokio::runtime::Handle::current(), work.clone());
    let pace = std::thread::spawn(move || {
        for number in 0..total {
            std::thread::sleep(
                (start + every * number as u32).saturating_duration_since(Instant::now()),
            );
            let (producer, called, failing) = (producer.clone(), called.clone(), failing.clone());
            let payload = trees.make(number);
            runtime.spawn(async move {
                called[number as usize].store(start.elapsed().as_nanos() as u64, Relaxed);
                if producer.add(payload).await.is_err() {
                    failing.fail();
                }
            });
        }
    });
    let last = work.wait().await?;
    pace.join()
        .map_err(|_| Failure::Run("the producer's thread panicked".into()))?;
    let own = scenarios::settled(&mut Server::connect(&run.url)?)?;
    let begin = window.opened()?;
    window.close(run, bench, Some((total, last)), own)?;
    work.save(run);
    let calls = latencies.1.summary();
    run.set("latency", latencies.0.summary());
    run.extra.insert(
        "handled_rate".into(),
        (bench as f64 / (last - begin).as_secs_f64()).into(),
    );
    run.extra.insert("call_p50".into(), calls["p50"].clone());
    run.extra.insert("call_p99".into(), calls["p99"].clone());
    worker.end().await
}

fn wall_ns() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos() as u64)
}

/// Workers with all settings default on an empty queue, then single jobs with pauses.
pub async fn idle(run: &mut Run) -> Outcome<()> {
    let (workers, slots) = (run.int("workers", 1)?, run.int("concurrency", 16)?);
    let (seconds, wakes, size) = (
        run.int("seconds", 10)?,
        run.int("wakes", 50)?,
        run.int("payload", 100)?,
    );
    let events_enabled = run.int("events", 1)? != 0;
    let work = Arc::new(Work::new(wakes));
    let latencies = Arc::new(Latencies::new(wakes));
    let (ran, mut runs) = tokio::sync::mpsc::unbounded_channel();
    let mut started = Vec::new();
    for _ in 0..workers {
        let config = ConsumerConfig {
            queue_name: QUEUE.into(),
            concurrency: slots as usize,
            events_enabled,
            ..Default::default()
        };
        let (counted, recorded, ran) = (work.clone(), latencies.clone(), ran.clone());
        started.push(Worker::start(&run.url, config, move |job| {
            match (
                payload::pad_number(&job.payload),
                job.payload["ts"].as_u64(),
            ) {
                (Some(number), Some(ts)) => {
                    recorded.record(number, Duration::from_nanos(wall_ns().saturating_sub(ts)));
                    counted.job(number);
                }
                _ => counted.fail(),
            }
            let _ = ran.send(()); // after the last wake nobody listens
            ready(Ok(Bytes::new()))
        }));
    }
    let producer = producers::connect(run, 1).await?;
    let window = Window::new(&run.url)?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    window.open_quiet()?;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let length = window.close(run, wakes, None, 0)?;
    for (name, field, unit) in [
        ("commands_per_s", "server_commands", 1.0),
        ("client_cpu_ms_per_s", "client_cpu_s", 1000.0),
        ("server_cpu_ms_per_s", "server_cpu_s", 1000.0),
    ] {
        let value = run.result[field].as_f64().unwrap_or_default() * unit / length;
        run.extra.insert(name.into(), value.into());
    }
    run.set("rate", Value::Null);
    run.set("printed_rate", Value::Null);
    for number in 0..wakes {
        tokio::time::sleep(Duration::from_micros(
            20_000 + uuid::Uuid::new_v4().as_u128() as u64 % 100_000,
        ))
        .await;
        producer.add(payload::pad(number, wall_ns(), size)).await?;
        let late = tokio::time::timeout(Duration::from_secs(60), runs.recv()).await;
        late.map_err(|_| Failure::Run(format!("job {number} did not run within a minute")))?;
    }
    work.save(run);
    run.set("latency", latencies.summary());
    for worker in started {
        worker.end().await?;
    }
    Ok(())
}

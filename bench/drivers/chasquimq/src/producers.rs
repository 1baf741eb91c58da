//! Scenarios without a worker: one call in flight.

use crate::measure::{Server, Window};
use crate::payload::Trees;
use crate::scenarios::{self, QUEUE};
use crate::{Outcome, Run};
use chasquimq::{Producer, ProducerConfig};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

pub async fn connect(run: &Run, pool_size: usize) -> Outcome<Producer<Value>> {
    let config = ProducerConfig {
        queue_name: QUEUE.into(),
        pool_size,
        ..Default::default()
    };
    Ok(Producer::connect(&run.url, config).await?)
}

enum Call {
    One,
    Bulk,
    Later(Duration),
}

async fn produce(run: &mut Run, pool: usize, bulk: u64, call: Call) -> Outcome<()> {
    let (warmup, bench) = (run.int("warmup", 1000)?, run.int("bench", 1000)?);
    let trees = Trees::new(run.int("width", 1)?, run.int("depth", 1)?);
    let jobs: Vec<Value> = (0..warmup + bench)
        .map(|number| trees.make(number))
        .collect();
    let producer = connect(run, pool).await?;
    let window = Window::new(&run.url)?;
    let (mut done, mut sum) = (0, 0);
    if warmup == 0 {
        window.open_quiet()?;
    }
    for some in jobs.chunks(bulk as usize) {
        // The original clones one payload for each job too.
        let acknowledged = match call {
            Call::Bulk => producer.add_bulk(some.to_vec()).await?.len(),
            Call::One => producer.add(some[0].clone()).await.map(|_| 1)?,
            Call::Later(delay) => producer.add_in(delay, some[0].clone()).await.map(|_| 1)?,
        } as u64;
        sum += (done..done + acknowledged).sum::<u64>();
        if done < warmup && done + acknowledged >= warmup {
            window.open_quiet()?;
        }
        done += acknowledged;
    }
    window.close(run, bench, Some((warmup + bench, Instant::now())), 0)?;
    let mut server = Server::connect(&run.url)?;
    let held = match call {
        Call::Later(_) => scenarios::delayed(&mut server)?,
        _ => scenarios::ready(&mut server)?,
    };
    run.set("verified", json!({"count": held, "checksum": sum}));
    Ok(())
}

pub async fn queue_add(run: &mut Run) -> Outcome<()> {
    produce(run, 1, 1, Call::One).await
}

pub async fn queue_add_bulk(run: &mut Run) -> Outcome<()> {
    let bulk = run.int("bulk", 50)?.max(1);
    produce(run, 8, bulk, Call::Bulk).await
}

pub async fn queue_add_delayed(run: &mut Run) -> Outcome<()> {
    let delay = Duration::from_millis(run.int("delay_ms", 3_600_000)?);
    produce(run, 1, 1, Call::Later(delay)).await
}

//! The names of the scenarios, and what they share.

use crate::measure::Server;
use crate::{Failure, Outcome, Run, producers, workers};
use std::time::Duration;

pub const NAMES: [&str; 10] = [
    "queue-add",
    "queue-add-bulk",
    "queue-add-delayed",
    "worker-generic",
    "worker-concurrent",
    "worker-delayed-end-to-end",
    "worker-retry-throughput",
    "worker-concurrent-store-results",
    "worker-latency",
    "idle",
];

pub const QUEUE: &str = "bench";

pub async fn start(name: &str, run: &mut Run) -> Outcome<()> {
    match name {
        "queue-add" => producers::queue_add(run).await,
        "queue-add-bulk" => producers::queue_add_bulk(run).await,
        "queue-add-delayed" => producers::queue_add_delayed(run).await,
        "worker-generic" => workers::generic(run).await,
        "worker-concurrent" => workers::concurrent(run).await,
        "worker-delayed-end-to-end" => workers::delayed(run).await,
        "worker-retry-throughput" => workers::retry(run).await,
        "worker-concurrent-store-results" => workers::store_results(run).await,
        "worker-latency" => workers::latency(run).await,
        "idle" => workers::idle(run).await,
        _ => Err(Failure::Usage(format!("no scenario {name}"))),
    }
}

pub fn ready(server: &mut Server) -> Outcome<u64> {
    server.int(&format!("XLEN {{chasqui:{QUEUE}}}:stream"))
}

pub fn delayed(server: &mut Server) -> Outcome<u64> {
    server.int(&format!("ZCARD {{chasqui:{QUEUE}}}:delayed"))
}

/// Waits until the store has nothing: a job that is ready or running is in the stream, until its ack deletes it. Returns the
/// commands that this took.
pub fn settled(server: &mut Server) -> Outcome<i64> {
    for asked in 1..=300_000 {
        if ready(server)? + delayed(server)? == 0 {
            return Ok(2 * asked);
        }
        std::thread::sleep(Duration::from_micros(200)); // the runtime's timers have 1 ms; its threads are others
    }
    Err(Failure::Run(
        "all handlers ran, but the store still holds jobs after a minute".into(),
    ))
}

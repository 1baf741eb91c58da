//! ChasquiMQ in the tables chasqui and idle. Command line and result line: ../README.md.

mod measure;
mod payload;
mod producers;
mod scenarios;
mod workers;

use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::process::exit;

const DRIVER: &str = "chasquimq";
const VERSION: &str = "1.3.0"; // pinned with = in Cargo.toml

// What the tables list, and what only this driver knows: events=0 and results=1 switch what the contender has off and on.
const KNOWN: [&str; 20] = [
    "url",
    "n",
    "producers",
    "payload",
    "concurrency",
    "warmup",
    "bench",
    "width",
    "depth",
    "bulk",
    "delay_ms",
    "attempts",
    "backoff_ms",
    "result_bytes",
    "every_us",
    "workers",
    "seconds",
    "wakes",
    "events",
    "results",
];

pub enum Failure {
    Usage(String),
    Run(String),
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Run(error.to_string())
    }
}

pub type Outcome<T> = Result<T, Failure>;

/// One run: its parameters, and the fields of its result line.
pub struct Run {
    pub url: String,
    params: HashMap<String, String>,
    used: Map<String, Value>,
    pub result: Map<String, Value>,
    pub extra: Map<String, Value>,
}

impl Run {
    /// A parameter; it comes back in the result as it was passed.
    pub fn int(&mut self, name: &str, otherwise: u64) -> Outcome<u64> {
        let value = match self.params.get(name) {
            None => otherwise,
            Some(text) => text
                .parse()
                .map_err(|_| Failure::Usage(format!("{name}={text} is not a whole number")))?,
        };
        self.used.insert(name.into(), value.into());
        Ok(value)
    }

    pub fn set(&mut self, field: &str, value: impl Into<Value>) {
        self.result.insert(field.into(), value.into());
    }
}

fn parse(args: &[String]) -> Outcome<(String, Run)> {
    let usage = || Failure::Usage("usage: --list | --scenario NAME [--set KEY=VALUE]...".into());
    let mut scenario = String::new();
    let mut params = HashMap::new();
    for pair in args.chunks(2) {
        match pair {
            [option, name] if option == "--scenario" => scenario = name.clone(),
            [option, set] if option == "--set" => {
                let (key, value) = set.split_once('=').ok_or_else(usage)?;
                if !KNOWN.contains(&key) {
                    return Err(Failure::Usage(format!("no parameter {key}")));
                }
                params.insert(key.to_string(), value.to_string());
            }
            _ => return Err(usage()),
        }
    }
    let url = params.get("url").cloned().unwrap_or_default();
    if !url.starts_with("redis://") {
        return Err(Failure::Usage(
            "url=redis://HOST:PORT is missing; it has no Unix sockets".into(),
        ));
    }
    Ok((
        scenario,
        Run {
            url,
            params,
            used: Map::new(),
            result: Map::new(),
            extra: Map::new(),
        },
    ))
}

fn run(args: &[String]) -> Outcome<Value> {
    if args.len() == 1 && args[0] == "--list" {
        return Ok(json!({"driver": DRIVER, "version": VERSION, "scenarios": scenarios::NAMES}));
    }
    let (scenario, mut run) = parse(args)?;
    for field in [
        "rate",
        "printed_rate",
        "latency",
        "client_cpu_s",
        "server_cpu_s",
        "server_commands",
    ] {
        run.set(field, Value::Null);
    }
    run.set("errors", 0);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(scenarios::start(&scenario, &mut run))?;
    runtime.shutdown_timeout(std::time::Duration::from_secs(10));
    for (field, value) in [
        ("driver", DRIVER),
        ("version", VERSION),
        ("scenario", scenario.as_str()),
    ] {
        run.set(field, value);
    }
    run.set("params", run.used.clone());
    run.set("extra", run.extra.clone());
    run.set("rss_bytes", measure::peak_rss());
    Ok(run.result.into())
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(line) => println!("{line}"),
        Err(Failure::Usage(why)) => {
            eprintln!("{why}");
            exit(2);
        }
        Err(Failure::Run(why)) => {
            eprintln!("{why}");
            exit(1);
        }
    }
}

//! The figures of a run: the window's clock, the process's and the server's CPU and commands over it, latencies, and the proof.

use crate::{Failure, Outcome, Run};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

fn rusage() -> libc::rusage {
    let mut usage = std::mem::MaybeUninit::zeroed();
    // SAFETY: the kernel fills the structure that the pointer names; it cannot fail for RUSAGE_SELF.
    unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    }
}

fn cpu_seconds() -> f64 {
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    let usage = rusage();
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

pub fn peak_rss() -> u64 {
    rusage().ru_maxrss as u64 * 1024
}

/// A connection of the driver's own, beside the contender's. It counts its commands, so that they can be taken off.
pub struct Server {
    stream: BufReader<TcpStream>,
    sent: i64,
}

#[derive(Clone, Copy)]
pub struct Usage {
    cpu: f64,
    commands: i64,
}

impl Server {
    pub fn connect(url: &str) -> Outcome<Self> {
        let address = url.trim_start_matches("redis://").trim_end_matches('/');
        let address = if address.contains(':') {
            address.to_string()
        } else {
            format!("{address}:6379")
        };
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Server {
            stream: BufReader::new(stream),
            sent: 0,
        })
    }

    fn line(&mut self, command: &str) -> Outcome<String> {
        self.sent += 1;
        self.stream
            .get_mut()
            .write_all(format!("{command}\r\n").as_bytes())?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        if line.starts_with('-') || line.is_empty() {
            return Err(Failure::Run(format!("{command}: {}", line.trim())));
        }
        Ok(line.trim_end()[1..].to_string())
    }

    pub fn int(&mut self, command: &str) -> Outcome<u64> {
        Ok(self.line(command)?.parse()?)
    }

    // INFO does not count itself yet when it answers, so it is not taken off.
    fn usage(&mut self) -> Outcome<Usage> {
        let mut usage = Usage {
            cpu: 0.0,
            commands: -self.sent,
        };
        let length: usize = self.line("INFO all")?.parse()?;
        let mut text = vec![0; length + 2];
        self.stream.read_exact(&mut text)?;
        for line in String::from_utf8_lossy(&text).lines() {
            if let Some((_, value)) = line
                .split_once(':')
                .filter(|(k, _)| matches!(*k, "used_cpu_sys" | "used_cpu_user"))
            {
                usage.cpu += value.parse::<f64>()?;
            } else if line.starts_with("cmdstat_") {
                let calls = line
                    .split_once("calls=")
                    .and_then(|(_, rest)| rest.split(',').next())
                    .unwrap_or("");
                usage.commands += calls.parse::<i64>()?;
            }
        }
        Ok(usage)
    }
}

struct Edge {
    at: Instant,
    cpu: f64,
    server: mpsc::Receiver<Outcome<Usage>>,
}

/// Opened and closed from anywhere, also from a handler: another thread asks the server, at once.
pub struct Window {
    asks: mpsc::Sender<mpsc::Sender<Outcome<Usage>>>,
    begin: Mutex<Option<Edge>>,
}

impl Window {
    pub fn new(url: &str) -> Outcome<Self> {
        let mut server = Server::connect(url)?;
        let (asks, asked) = mpsc::channel::<mpsc::Sender<Outcome<Usage>>>();
        std::thread::spawn(move || {
            for answer in asked {
                let _ = answer.send(server.usage()); // a receiver that is gone has failed elsewhere
            }
        });
        Ok(Window {
            asks,
            begin: Mutex::new(None),
        })
    }

    fn edge(&self) -> Edge {
        let (answer, server) = mpsc::channel();
        let (at, cpu) = (Instant::now(), cpu_seconds());
        let _ = self.asks.send(answer); // without the thread the receiver below says so
        Edge { at, cpu, server }
    }

    pub fn open(&self) {
        *self.begin.lock().unwrap() = Some(self.edge());
    }

    /// Nothing else is going on: the server's answer is waited for before the clock starts.
    pub fn open_quiet(&self) -> Outcome<()> {
        let usage = self.edge().server.recv()?;
        let (answer, server) = mpsc::channel();
        answer
            .send(usage)
            .map_err(|_| Failure::Run("the window cannot open".into()))?;
        *self.begin.lock().unwrap() = Some(Edge {
            at: Instant::now(),
            cpu: cpu_seconds(),
            server,
        });
        Ok(())
    }

    pub fn opened(&self) -> Outcome<Instant> {
        let begin = self.begin.lock().unwrap();
        begin
            .as_ref()
            .map(|edge| edge.at)
            .ok_or_else(|| Failure::Run("the window did not open".into()))
    }

    /// Ends the window. printed: jobs and end of the time as the original takes them. `own` commands of other connections of the
    /// driver are taken off.
    pub fn close(
        &self,
        run: &mut Run,
        n: u64,
        printed: Option<(u64, Instant)>,
        own: i64,
    ) -> Outcome<f64> {
        let end = self.edge();
        let begin = self
            .begin
            .lock()
            .unwrap()
            .take()
            .ok_or_else(|| Failure::Run("the window did not open".into()))?;
        let (before, after) = (begin.server.recv()??, end.server.recv()??);
        let seconds = (end.at - begin.at).as_secs_f64();
        let rate = n as f64 / seconds;
        run.set("n", n);
        run.set("seconds", seconds);
        run.set("rate", rate);
        run.set(
            "printed_rate",
            printed.map_or(rate, |(jobs, last)| {
                jobs as f64 / (last - begin.at).as_secs_f64()
            }),
        );
        run.set("client_cpu_s", end.cpu - begin.cpu);
        run.set("server_cpu_s", after.cpu - before.cpu);
        run.set("server_commands", after.commands - before.commands - own);
        Ok(seconds)
    }
}

impl From<Failure> for String {
    fn from(failure: Failure) -> String {
        match failure {
            Failure::Usage(why) | Failure::Run(why) => why,
        }
    }
}

/// Jobs seen, and the sum of their numbers.
pub struct Work {
    want: u64,
    count: AtomicU64,
    sum: AtomicU64,
    errors: AtomicU64,
    last: Mutex<Option<Instant>>,
    over: AtomicBool,
    done: Notify,
}

impl Work {
    pub fn new(want: u64) -> Self {
        Work {
            want,
            count: AtomicU64::new(0),
            sum: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            last: Mutex::new(None),
            over: AtomicBool::new(false),
            done: Notify::new(),
        }
    }

    /// How many there are with this one.
    pub fn job(&self, number: u64) -> u64 {
        self.sum.fetch_add(number, Relaxed);
        let count = self.count.fetch_add(1, Relaxed) + 1;
        if count == self.want {
            *self.last.lock().unwrap() = Some(Instant::now());
            self.over.store(true, Relaxed);
            self.done.notify_one();
        }
        count
    }

    pub fn fail(&self) {
        self.errors.fetch_add(1, Relaxed);
    }

    /// When the last handler ran.
    pub async fn wait(&self) -> Outcome<Instant> {
        let late = tokio::time::timeout(Duration::from_secs(600), self.done.notified()).await;
        if late.is_err() && !self.over.load(Relaxed) {
            let count = self.count.load(Relaxed);
            return Err(Failure::Run(format!(
                "{count} of {} jobs ran within 10 minutes",
                self.want
            )));
        }
        Ok(self
            .last
            .lock()
            .unwrap()
            .expect("set before the notification"))
    }

    pub fn save(&self, run: &mut Run) {
        run.set("errors", self.errors.load(Relaxed));
        run.set(
            "verified",
            json!({"count": self.count.load(Relaxed), "checksum": self.sum.load(Relaxed)}),
        );
    }
}

/// One slot for each job, so that recording never waits. Nanoseconds come in, microseconds go out, by nearest rank.
pub struct Latencies(Vec<AtomicU64>);

impl Latencies {
    pub fn new(jobs: u64) -> Self {
        Latencies((0..jobs).map(|_| AtomicU64::new(0)).collect())
    }

    pub fn record(&self, slot: u64, time: Duration) {
        if let Some(cell) = self.0.get(slot as usize) {
            cell.store(time.as_nanos() as u64 + 1, Relaxed);
        }
    }

    pub fn summary(&self) -> serde_json::Value {
        let mut all: Vec<u64> = self
            .0
            .iter()
            .map(|c| c.load(Relaxed))
            .filter(|&v| v != 0)
            .map(|v| v - 1)
            .collect();
        if all.is_empty() {
            return serde_json::Value::Null;
        }
        all.sort_unstable();
        let at = |p: f64| {
            all[((p * all.len() as f64).ceil() as usize).clamp(1, all.len()) - 1] as f64 / 1000.0
        };
        json!({"count": all.len(), "p50": at(0.5), "p90": at(0.9), "p95": at(0.95), "p99": at(0.99), "p999": at(0.999),
            "max": at(1.0)})
    }
}

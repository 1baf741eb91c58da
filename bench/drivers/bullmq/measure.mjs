// The figures of a run: the window's clock, the process's and the server's CPU and commands over it, latencies, and the proof.
import { Redis } from 'ioredis';

const cpuSeconds = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

export const now = () => performance.now(); // ms

// The clock that goes into payloads: whole nanoseconds of the day's time, exact to a quarter of a microsecond in a double.
export const wallNs = () => Math.round((performance.timeOrigin + performance.now()) * 1e6);
export const sinceWall = (ns) => Math.max(0, performance.timeOrigin + performance.now() - ns / 1e6);

// A connection of the driver's own, beside BullMQ's. It counts its commands, so that they can be taken off.
export class Server {
  constructor(connection) {
    this.redis = new Redis({ ...connection, maxRetriesPerRequest: null, enableReadyCheck: false });
    this.redis.on('error', () => {}); // the command that fails says so
    this.sent = 0;
  }

  call(...args) {
    this.sent += 1;
    return this.redis.call(...args);
  }

  // INFO does not count itself yet when it answers, so it is not taken off.
  async usage() {
    const own = this.sent;
    const text = await this.call('INFO', 'all');
    let cpu = 0;
    let commands = -own;
    for (const line of text.split('\r\n')) {
      if (line.startsWith('used_cpu_sys:') || line.startsWith('used_cpu_user:')) cpu += Number(line.split(':')[1]);
      else if (line.startsWith('cmdstat_')) commands += Number(/calls=(\d+)/.exec(line)[1]);
    }
    return { cpu, commands };
  }

  close() {
    this.redis.disconnect();
  }
}

// Opened and closed from anywhere, also from a handler: INFO is sent at once and read later.
export class Window {
  constructor(server) {
    this.server = server;
  }

  open() {
    this.cpu = cpuSeconds();
    this.before = this.server.usage();
    this.begin = now();
  }

  // Nothing else is going on: the server's answer is waited for before the clock starts.
  async openQuiet() {
    this.before = Promise.resolve(await this.server.usage());
    this.cpu = cpuSeconds();
    this.begin = now();
  }

  close() {
    this.end = now();
    this.clientCpu = cpuSeconds() - this.cpu;
    this.after = this.server.usage();
  }

  // printed: what the original divides by what; the true rate where it has no other.
  async save(result, n, printedJobs, printedMs) {
    const [before, after] = await Promise.all([this.before, this.after]);
    result.n = n;
    result.seconds = (this.end - this.begin) / 1000;
    result.rate = n / result.seconds;
    result.printed_rate = printedMs > 0 ? (printedJobs * 1000) / printedMs : result.rate;
    result.client_cpu_s = this.clientCpu;
    result.server_cpu_s = after.cpu - before.cpu;
    result.server_commands = after.commands - before.commands;
  }
}

// Latencies in ms come in, microseconds go out, by nearest rank over every one.
export class Latencies {
  constructor() {
    this.all = [];
  }

  add(ms) {
    this.all.push(ms);
  }

  at(sorted, p) {
    return sorted[Math.max(0, Math.ceil(p * sorted.length) - 1)] * 1000;
  }

  summary() {
    if (this.all.length === 0) return null;
    const sorted = Float64Array.from(this.all).sort();
    const at = (p) => this.at(sorted, p);
    return {
      count: sorted.length, p50: at(0.5), p90: at(0.9), p95: at(0.95), p99: at(0.99), p999: at(0.999), max: at(1),
    };
  }
}

// Jobs seen and the sum of their numbers; resolves when all have been. Sums of numbers below 2^26 stay exact in a double.
export class Work {
  constructor(want) {
    this.want = want;
    this.count = 0;
    this.sum = 0;
    this.errors = 0;
    this.done = new Promise((resolve) => { this.resolve = resolve; });
  }

  job(number) {
    this.count += 1;
    this.sum += number;
    if (this.count === this.want) {
      this.last = now();
      this.resolve();
    }
  }

  async wait() {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`${this.count} of ${this.want} jobs ran within 10 minutes`)), 600_000);
    });
    await Promise.race([this.done, late]);
    clearTimeout(timer);
  }

  save(result) {
    result.verified = { count: this.count, checksum: this.sum };
    result.errors += this.errors;
  }
}

// The scenarios. BullMQ runs as its documentation recommends for Node: a queue and a worker with their own connections, defaults
// but for concurrency. Completed jobs and results are kept, as BullMQ does by default and as its own benchmark does.
import { Queue, Worker } from 'bullmq';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker as Thread } from 'node:worker_threads';
import { Latencies, Server, Window, Work, now, sinceWall, wallNs } from './measure.mjs';
import { padNumber, pads, treeNumber, trees } from './payload.mjs';

class Session {
  constructor(run) {
    this.run = run;
    this.connection = run.connection();
    this.name = randomUUID();
    this.server = new Server(this.connection);
    this.queue = new Queue(this.name, { connection: this.connection });
    this.workers = [];
    this.key = (what) => `bull:${this.name}:${what}`;
  }

  async ready() {
    await this.queue.waitUntilReady();
    await this.server.call('PING');
    return this;
  }

  async worker(handler, options) {
    const keep = this.run.int('keep', 1) ? {} : { removeOnComplete: { count: 0 } };
    const worker = new Worker(this.name, handler, { connection: this.connection, ...keep, ...options });
    worker.on('error', (error) => process.stderr.write(`worker: ${error.message}\n`));
    this.workers.push(worker);
    await worker.waitUntilReady();
    return worker;
  }

  // Nothing ready, delayed or running.
  async settled() {
    for (const deadline = now() + 120_000; ;) {
      const left = await Promise.all([
        this.server.call('LLEN', this.key('wait')), this.server.call('LLEN', this.key('active')),
        this.server.call('ZCARD', this.key('delayed')),
      ]);
      if (left.every((n) => n === 0)) return;
      if (now() > deadline) throw new Error('all handlers ran, but the store still holds jobs after 2 minutes');
      await sleep(1);
    }
  }

  async close() {
    await Promise.all(this.workers.map((w) => w.close()));
    await this.queue.close();
    this.server.close();
  }
}

async function session(run, body) {
  const s = await new Session(run).ready();
  await body(s);
  await s.close();
}

// Producers of table chasqui: `call` adds jobs number first to first + bulk - 1; held says what the store has.
async function produce(run, bulk, held, call) {
  const warmup = run.int('warmup', 1000);
  const bench = run.int('bench', 1000);
  const make = trees(run.int('width', 1), run.int('depth', 1));
  const jobs = Array.from({ length: warmup + bench }, (_, number) => make(number));
  await session(run, async (s) => {
    const w = new Window(s.server);
    let sum = 0;
    if (warmup === 0) await w.openQuiet();
    for (let first = 0; first < jobs.length; first += bulk) {
      const some = jobs.slice(first, first + bulk);
      await call(s, some);
      for (let i = 0; i < some.length; i += 1) sum += first + i;
      if (first < warmup && first + some.length >= warmup) await w.openQuiet();
    }
    w.close();
    await w.save(run.result, bench, warmup + bench, w.end - w.begin);
    run.result.verified = { count: await held(s), checksum: sum };
  });
}

const waiting = (s) => s.server.call('LLEN', s.key('wait'));
const delayed = (s) => s.server.call('ZCARD', s.key('delayed'));

function queueAdd(run) {
  return produce(run, 1, waiting, (s, [data]) => s.queue.add('test', data));
}

function queueAddBulk(run) {
  const bulk = Math.max(1, run.int('bulk', 50));
  return produce(run, bulk, waiting, (s, some) => s.queue.addBulk(some.map((data) => ({ name: 'test', data }))));
}

function queueAddDelayed(run) {
  const delay = run.int('delay_ms', 3_600_000);
  return produce(run, 1, delayed, (s, [data]) => s.queue.add('test', data, { delay }));
}

async function preload(s, jobs, bulk, opts) {
  for (let first = 0; first < jobs.length; first += bulk) {
    const some = jobs.slice(first, first + bulk);
    await s.queue.addBulk(some.map((data) => ({ name: 'test', data, opts })));
  }
}

// Workers of table chasqui: all jobs are in the store before the worker starts. The window opens at the handler start of number
// `warmup` in order of ticks. `attempt` may throw instead of a tick.
async function drain(run, { bulk = 100, opts, pause = 0, concurrency, answer, attempt }) {
  const warmup = run.int('warmup', 1000);
  const bench = run.int('bench', 10000);
  const make = trees(run.int('width', 1), run.int('depth', 1));
  const jobs = Array.from({ length: warmup + bench }, (_, number) => make(number));
  const slots = run.int('concurrency', concurrency);
  await session(run, async (s) => {
    await preload(s, jobs, bulk, opts);
    await sleep(pause);
    const work = new Work(warmup + bench);
    const w = new Window(s.server);
    if (warmup === 0) await w.openQuiet();
    await s.worker(async (job) => {
      const number = treeNumber(job.data);
      attempt?.(number);
      work.job(number);
      if (work.count === warmup) w.open();
      return answer;
    }, { concurrency: slots });
    await work.wait();
    await s.settled();
    w.close();
    await w.save(run.result, bench, warmup + bench, work.last - w.begin);
    work.save(run.result);
    run.result.extra.handled_rate = (bench * 1000) / (work.last - w.begin);
  });
}

// The original's handler returns an object of the same shape as the payload, which BullMQ stores.
const usual = (run) => (run.int('results', 1) ? trees(1, 1)(0) : undefined);

const workerGeneric = (run) => drain(run, { concurrency: 1, answer: usual(run) });
const workerConcurrent = (run) => drain(run, { concurrency: 100, answer: usual(run) });
const workerStoreResults = (run) => drain(run, { concurrency: 100, answer: 'r'.repeat(run.int('result_bytes', 64)) });

function workerDelayed(run) {
  return drain(run, {
    concurrency: 100, bulk: 500, pause: 5, opts: { delay: run.int('delay_ms', 1) }, answer: usual(run),
  });
}

async function workerRetry(run) {
  const seen = new Set();
  let failed = 0;
  await drain(run, {
    concurrency: 100,
    opts: { attempts: run.int('attempts', 5), backoff: { type: 'exponential', delay: run.int('backoff_ms', 1) } },
    answer: usual(run),
    attempt(number) {
      if (seen.has(number)) return;
      seen.add(number);
      failed += 1;
      throw new Error('first attempt');
    },
  });
  run.result.extra.failed = failed;
}

// Node's timers have 1 ms, so a thread of its own keeps the time and calls back with 0 to n - 1, each when it is due.
function ticks(n, first, every, call) {
  const code = `
    const { parentPort, workerData: { n, first, every } } = require('node:worker_threads');
    const cell = new Int32Array(new SharedArrayBuffer(4));
    for (let i = 0; i < n; i += 1) {
      const wait = first + i * every - performance.timeOrigin - performance.now();
      if (wait > 0) Atomics.wait(cell, 0, 0, wait);
      parentPort.postMessage(i);
    }`;
  const thread = new Thread(code, { eval: true, workerData: { n, first, every } });
  thread.on('message', call);
  return thread;
}

// An open loop: job i is due at i * every_us, whether or not those before have been acknowledged.
async function workerLatency(run) {
  const warmup = run.int('warmup', 500);
  const bench = run.int('bench', 10000);
  const every = run.int('every_us', 1000) / 1000;
  const make = trees(run.int('width', 1), run.int('depth', 1));
  const total = warmup + bench;
  const called = new Float64Array(total);
  const fromDue = new Latencies();
  const fromCall = new Latencies();
  const answer = usual(run);
  const slots = run.int('concurrency', 100);
  await session(run, async (s) => {
    const work = new Work(total);
    const w = new Window(s.server);
    let start = 0;
    if (warmup === 0) await w.openQuiet();
    await s.worker(async (job) => {
      const at = now();
      const number = treeNumber(job.data);
      if (number >= warmup) {
        fromDue.add(at - (start + number * every));
        fromCall.add(at - called[number]);
      }
      work.job(number);
      if (work.count === warmup) w.open();
      return answer;
    }, { concurrency: slots });
    start = now() + 200;
    const clock = ticks(total, performance.timeOrigin + start, every, (number) => {
      called[number] = now();
      s.queue.add('test', make(number)).catch(() => { work.errors += 1; });
    });
    await work.wait();
    await clock.terminate();
    await s.settled();
    w.close();
    await w.save(run.result, bench, total, work.last - w.begin);
    work.save(run.result);
    const calls = fromCall.summary();
    run.result.latency = fromDue.summary();
    Object.assign(run.result.extra, {
      handled_rate: (bench * 1000) / (work.last - w.begin), call_p50: calls.p50, call_p99: calls.p99,
    });
  });
}

// Table chronos: producers that wait for each call, T before the call.
async function addAll(n, producers, warmup, add) {
  if (producers < 1 || n % producers !== 0) throw new Error(`n=${n} is not a multiple of producers=${producers}`);
  let next = 0;
  let sum = 0;
  const one = async () => {
    for (let i = 0; i < n / producers; i += 1) {
      const number = next;
      next += 1;
      await add(number, number >= warmup ? wallNs() : 0);
      sum += number;
    }
  };
  await Promise.all(Array.from({ length: producers }, one));
  return sum;
}

async function enqueue(run) {
  const n = run.int('n', 20000);
  const make = pads(run.int('payload', 100));
  const producers = run.int('producers', 4);
  await session(run, async (s) => {
    const w = new Window(s.server);
    await w.openQuiet();
    const sum = await addAll(n, producers, n, (number, ts) => s.queue.add('task', make(number, ts)));
    w.close();
    await w.save(run.result, n, n, 0);
    run.result.verified = { count: await waiting(s), checksum: sum };
  });
}

async function endToEnd(run) {
  const n = run.int('n', 20000);
  const make = pads(run.int('payload', 100));
  const producers = run.int('producers', 4);
  const warmup = run.int('warmup', 2000);
  const slots = run.int('concurrency', 16);
  const latencies = new Latencies();
  const answer = usual(run);
  await session(run, async (s) => {
    const work = new Work(n);
    await s.worker(async (job) => {
      if (job.data.ts > 0) latencies.add(sinceWall(job.data.ts));
      work.job(padNumber(job.data));
      return answer;
    }, { concurrency: slots });
    const w = new Window(s.server);
    await w.openQuiet();
    await addAll(n, producers, warmup, (number, ts) => s.queue.add('task', make(number, ts)));
    const produced = now();
    await work.wait();
    await s.settled();
    w.close();
    const looks = Math.ceil(Math.max(0, work.last - produced) / 20); // the original looks every 20 ms
    await w.save(run.result, n, n, produced + looks * 20 - w.begin);
    work.save(run.result);
    run.result.latency = latencies.summary();
  });
}

async function idle(run) {
  const make = pads(run.int('payload', 100));
  const seconds = run.int('seconds', 10);
  const wakes = run.int('wakes', 50);
  const workers = run.int('workers', 1);
  const slots = run.int('concurrency', 16);
  const latencies = new Latencies();
  await session(run, async (s) => {
    const work = new Work(wakes);
    let ran = () => {};
    for (let i = 0; i < workers; i += 1) {
      await s.worker(async (job) => {
        latencies.add(sinceWall(job.data.ts));
        work.job(padNumber(job.data));
        ran();
      }, { concurrency: slots });
    }
    await sleep(2000);
    const w = new Window(s.server);
    await w.openQuiet();
    await sleep(seconds * 1000);
    w.close();
    await w.save(run.result, wakes, wakes, 0);
    const r = run.result;
    Object.assign(r, { rate: null, printed_rate: null });
    r.extra.commands_per_s = r.server_commands / r.seconds;
    r.extra.client_cpu_ms_per_s = (r.client_cpu_s * 1000) / r.seconds;
    r.extra.server_cpu_ms_per_s = (r.server_cpu_s * 1000) / r.seconds;
    for (let i = 0; i < wakes; i += 1) {
      await sleep(20 + Math.random() * 100);
      const handled = new Promise((resolve) => { ran = resolve; });
      await s.queue.add('task', make(i, wallNs()));
      const late = sleep(60_000, true, { ref: false });
      if (await Promise.race([handled, late])) throw new Error(`job ${i} did not run within a minute`);
    }
    await work.wait();
    work.save(r);
    r.latency = latencies.summary();
  });
}

export const scenarios = {
  'queue-add': queueAdd,
  'queue-add-bulk': queueAddBulk,
  'queue-add-delayed': queueAddDelayed,
  'worker-generic': workerGeneric,
  'worker-concurrent': workerConcurrent,
  'worker-delayed-end-to-end': workerDelayed,
  'worker-retry-throughput': workerRetry,
  'worker-concurrent-store-results': workerStoreResults,
  'worker-latency': workerLatency,
  enqueue,
  e2e: endToEnd,
  idle,
};

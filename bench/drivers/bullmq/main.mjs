// BullMQ in the tables chasqui, chronos (enqueue and e2e) and idle. Command line and result line: ../README.md.
import { createRequire } from 'node:module';
import { scenarios } from './scenarios.mjs';

const require = createRequire(import.meta.url);
const driver = require('./package.json').name.replace('lade-bench-', '');
const version = require('bullmq/package.json').version;

// What the tables list, and what only this driver knows: results=0 lets handlers return nothing, keep=0 removes completed jobs.
const known = new Set(['url', 'n', 'producers', 'payload', 'concurrency', 'warmup', 'bench', 'width', 'depth', 'bulk', 'delay_ms',
  'attempts', 'backoff_ms', 'result_bytes', 'every_us', 'workers', 'seconds', 'wakes', 'results', 'keep', 'events']);

class UsageError extends Error {}

class Run {
  constructor(params) {
    this.params = params;
    this.used = {};
    this.result = {
      driver, version, scenario: '', params: this.used, n: 0, seconds: 0, rate: null, printed_rate: null,
      latency: null, client_cpu_s: null, rss_bytes: null, server_cpu_s: null, server_commands: null, errors: 0,
      verified: { count: 0, checksum: 0 }, extra: {},
    };
  }

  int(name, otherwise) {
    const text = this.params.get(name);
    if (text !== undefined && !/^\d{1,15}$/.test(text)) throw new UsageError(`${name}=${text} is not a whole number`);
    return (this.used[name] = text === undefined ? otherwise : Number(text));
  }

  // A BullMQ connection option.
  connection() {
    const url = new URL(this.params.get('url') ?? 'none:');
    if (url.protocol === 'unix:') return { path: url.pathname };
    if (url.protocol === 'redis:') return { host: url.hostname, port: Number(url.port || 6379) };
    throw new UsageError('url=redis://HOST:PORT or url=unix:///PATH is missing');
  }
}

function parse(args) {
  const params = new Map();
  let scenario;
  for (let i = 0; i < args.length; i += 2) {
    const value = args[i + 1];
    const at = value?.indexOf('=');
    if (args[i] === '--scenario' && value) scenario = value;
    else if (args[i] === '--set' && at > 0) params.set(value.slice(0, at), value.slice(at + 1));
    else throw new UsageError(`cannot read ${args[i]}; usage: --list | --scenario NAME [--set KEY=VALUE]...`);
  }
  for (const key of params.keys()) if (!known.has(key)) throw new UsageError(`no parameter ${key}`);
  if (!Object.hasOwn(scenarios, scenario ?? '')) throw new UsageError(`no scenario ${scenario}`);
  return { scenario, run: new Run(params) };
}

async function main(args) {
  if (args.length === 1 && args[0] === '--list') {
    return { driver, version, scenarios: Object.keys(scenarios) };
  }
  const { scenario, run } = parse(args);
  run.result.scenario = scenario;
  if (run.int('events', 1) === 0) throw new UsageError('BullMQ cannot switch its events off');
  await scenarios[scenario](run);
  run.result.rss_bytes = process.resourceUsage().maxRSS * 1024;
  return run.result;
}

main(process.argv.slice(2)).then(
  (line) => process.stdout.write(`${JSON.stringify(line)}\n`, () => process.exit(0)),
  (error) => process.stderr.write(`${error.message}\n`, () => process.exit(error instanceof UsageError ? 2 : 1)),
);

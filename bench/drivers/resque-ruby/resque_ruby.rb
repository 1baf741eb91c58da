# The driver contract (../README.md) for Ruby Resque: the backlog is enqueued by Resque.enqueue, each worker is a process that works until
# the queue is empty (INTERVAL=0) and then says how many jobs it ran and the sum of their numbers.
ENV["FORK_PER_JOB"] = "false"
require "json"
require "multi_json"
MultiJson.use :json_gem
require "resque"

class LoadWorker
  @queue = :load
  @count = 0
  @sum = 0
  class << self
    attr_reader :count, :sum
    def perform(_text, number, _hash, _at)
      @count += 1
      @sum += number
    end
  end
end

MOST = 50 # processes: more would measure the machine's memory
opts = {}
scenario = nil
args = ARGV.dup
while (a = args.shift)
  case a
  when "--list"
    puts JSON.generate(driver: "resque-ruby", version: Resque::VERSION, scenarios: ["resque-drain"])
    exit 0
  when "--scenario" then scenario = args.shift
  when "--set"
    k, v = args.shift.split("=", 2)
    opts[k] = v
  end
end
workers = opts["workers"].to_i
n = opts["n"].to_i
if scenario != "resque-drain" || workers > MOST
  warn workers > MOST ? "more than #{MOST} processes of Ruby" : "resque-ruby has no #{scenario}"
  exit 2
end

def connect(url)
  Resque.redis = url.start_with?("unix:") ? Redis.new(path: url.sub(%r{\Aunix://}, "")) : url
end

def cpu_of_children
  t = Process.times
  t.cutime + t.cstime
end

def server
  i = Resque.redis.redis.info
  [i["used_cpu_sys"].to_f + i["used_cpu_user"].to_f, i["total_commands_processed"].to_i]
end

connect(opts["url"])
n.times { |i| Resque.enqueue(LoadWorker, "string", i, { mike: "bob" }, Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)) }
cpu0, commands0 = server
pipes = workers.times.map do
  r, w = IO.pipe
  fork do
    r.close
    connect(opts["url"])
    worker = Resque::Worker.new("load")
    worker.prepare
    worker.work(0)
    w.write("#{LoadWorker.count} #{LoadWorker.sum}")
    w.close
    exit!(0)
  end
  w.close
  r
end
start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
told = pipes.map { |r| r.read.split.map(&:to_i) }
seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
Process.waitall
cpu1, commands1 = server
count = told.sum { |t| t[0].to_i }
sum = told.sum { |t| t[1].to_i }
if count != n || sum != n * (n - 1) / 2 || Resque.size("load") != 0 || Resque::Stat["failed"] != 0
  warn "#{count} of #{n} jobs ran"
  exit 1
end
client = cpu_of_children
puts JSON.generate(
  driver: "resque-ruby", version: Resque::VERSION, scenario: scenario, params: { workers: workers, n: n }, n: n,
  seconds: seconds, rate: n / seconds, printed_rate: n / seconds, latency: nil, client_cpu_s: client, rss_bytes: nil,
  server_cpu_s: cpu1 - cpu0, server_commands: commands1 - commands0 - 1, errors: 0, verified: { count: count, checksum: sum },
  extra: { client_us_per_job: client * 1e6 / n, server_us_per_job: (cpu1 - cpu0) * 1e6 / n,
           server_commands_per_job: (commands1 - commands0 - 1).to_f / n }
)

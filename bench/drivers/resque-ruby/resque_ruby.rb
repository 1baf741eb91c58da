# The driver contract (../README.md) for Ruby Resque: the backlog is enqueued by Resque.enqueue, each worker is a process that works until
# the queue is empty (INTERVAL=0). Without fork it counts and adds up the numbers of its jobs itself; with fork each job's process tells
# its number through a pipe, 8 bytes, since what it counts goes with it.
require "json"
opts = {}
scenario = nil
args = ARGV.dup
list = false
while (a = args.shift)
  case a
  when "--list" then list = true
  when "--scenario" then scenario = args.shift
  when "--set"
    k, v = args.shift.split("=", 2)
    opts[k] = v
  end
end
FORK = opts["fork"] == "1"
ENV["FORK_PER_JOB"] = FORK.to_s
require "multi_json"
MultiJson.use :json_gem
require "resque"

class LoadWorker
  @queue = :load
  @count = 0
  @sum = 0
  class << self
    attr_reader :count, :sum
    attr_accessor :told # pipe; nil = without fork
    def perform(_text, number, _hash, _at)
      told&.syswrite([number].pack("Q"))
      @count += 1
      @sum += number
    end
  end
end

if list
  puts JSON.generate(driver: "resque-ruby", version: Resque::VERSION, scenarios: ["resque-work", "resque-enqueue"])
  exit 0
end
MOST = 50 # processes: more would measure the machine's memory
workers = opts["workers"].to_i
part = [opts["part"].to_i, 1].max
n = opts["n"].to_i / part
unless %w[resque-work resque-enqueue].include?(scenario) && workers <= MOST
  warn workers > MOST ? "more than #{MOST} processes of Ruby" : "resque-ruby has no #{scenario}"
  exit 2
end

def connect(url)
  Resque.redis = url.start_with?("unix:") ? Redis.new(path: url.sub(%r{\Aunix://}, "")) : url
end

def cpu
  t = Process.times
  [t.utime + t.stime, t.cutime + t.cstime]
end

def server
  i = Resque.redis.redis.info
  [i["used_cpu_sys"].to_f + i["used_cpu_user"].to_f, i["total_commands_processed"].to_i]
end

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

# The sum of the numbers that were taken.
def fill(count)
  count.times.sum { |i| Resque.enqueue(LoadWorker, "string", i, { mike: "bob" }, Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)) ? i : 0 }
end

def work(workers, url)
  numbers_r, numbers_w = IO.pipe
  pipes = workers.times.map do
    r, w = IO.pipe
    fork do
      r.close
      numbers_r.close
      LoadWorker.told = numbers_w if FORK
      connect(url)
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
  numbers_w.close
  if FORK
    count = sum = 0
    while (bytes = numbers_r.read(8))
      count += 1
      sum += bytes.unpack1("Q")
    end
    pipes.each(&:read)
    [count, sum]
  else
    told = pipes.map { |r| r.read.split.map(&:to_i) }
    [told.sum { |t| t[0].to_i }, told.sum { |t| t[1].to_i }]
  end
end

connect(opts["url"])
enqueues = scenario == "resque-enqueue"
fill(n) unless enqueues
server0, commands0 = server
own0, = cpu
start = now
if enqueues
  sum = fill(n)
  count = Resque.size("load")
else
  count, sum = work(workers, opts["url"])
end
seconds = now - start
Process.waitall
own1, children = cpu
server1, commands1 = server
left = enqueues ? 0 : Resque.size("load")
if count != n || sum != n * (n - 1) / 2 || left != 0 || Resque::Stat["failed"] != 0
  warn "#{count} of #{n} jobs"
  exit 1
end
client = enqueues ? own1 - own0 : children
commands = commands1 - commands0 - 1
puts JSON.generate(
  driver: "resque-ruby", version: Resque::VERSION, scenario: scenario, params: opts.reject { |k, _| k == "url" }, n: n,
  seconds: seconds, rate: n / seconds, printed_rate: n / seconds, latency: nil, client_cpu_s: client, rss_bytes: nil,
  server_cpu_s: server1 - server0, server_commands: commands, errors: 0, verified: { count: count, checksum: sum },
  extra: { client_us_per_job: client * 1e6 / n, server_us_per_job: (server1 - server0) * 1e6 / n,
           server_commands_per_job: commands.to_f / n }
)

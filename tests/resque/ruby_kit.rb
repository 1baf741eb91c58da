# What the scripts beside real Ruby Resque share: jobs, values, and how a check is run.
#   SCRIPT LADE SOCKET DIR
require 'multi_json'
MultiJson.use :json_gem
require 'json'
require 'resque'

LADE, SOCKET, DIR = ARGV
URL = "resque+unix://#{SOCKET}"
Resque.redis = Redis.new(path: SOCKET)
$failures = 0

class OkJob
  @queue = :default
  def self.perform(*args) = File.write("#{DIR}/args", JSON.generate(args))
end

class Count
  @queue = :default
  def self.perform(n)
    raise ArgumentError, "boom é #{n}" if n % 10 == 0
  end
end

VALUES = [1, 'two', 'zwölf €/<>&', { 'k' => nil, 'deep' => [[{ 'x' => [] }]] }, 1.5, 1e30, -0.0, 1e-7, 12345678901234567890123, true, false, nil,
          "quote \" back \\ tab \t nul \u0001"].freeze

def lade(*args) = system(LADE, *args, '-u', URL, '--quiet', exception: true, out: File::NULL)
def drain(command) = lade('work', '--drain', '-c', '4', '--exec', command)
def drain_kind(kind, command) = lade('work', '--drain', '-c', '4', '--kind', kind, '--exec', command)
def enqueue(klass, args) = lade('enqueue', '--kind', klass, '--payload', JSON.generate(args))

def ruby_worker
  w = Resque::Worker.new('default')
  w.fork_per_job = false
  w.work(0)
end

def skip(what, want)
  puts "NOT RUN, for want of #{want}: #{what}."
end

def wait
  600.times { return true if yield; sleep 0.05 }
  false
end

def check(name)
  Resque.redis.redis.flushall
  ok = begin
    yield
  rescue StandardError => e
    warn "#{name}: #{e.class}: #{e.message}\n  #{e.backtrace.first(3).join("\n  ")}"
    false
  end
  puts "#{ok ? 'ok' : 'FAILED'}: #{name}"
  $failures += 1 unless ok
end

# lade beside real Ruby Resque: run by ruby_test.sh, which says what is missing when it cannot be.
#   ruby_interop.rb LADE SOCKET DIR
require_relative 'ruby_kit'

check('resque W1: lade enqueues, a Ruby worker runs it with the same arguments') do
  enqueue('OkJob', VALUES)
  ruby_worker
  JSON.parse(File.read("#{DIR}/args")) == VALUES && Resque::Failure.count == 0
end

check('resque W2: Ruby enqueues, a lade worker runs it with the same arguments') do
  Resque.enqueue(OkJob, *VALUES)
  drain("cat >#{DIR}/payload")
  JSON.parse(File.read("#{DIR}/payload")) == VALUES && Resque.size(:default) == 0 && Resque.info[:processed] == 1
end

check('resque W5: Resque.dequeue finds what lade enqueued, so the bytes are equal') do
  enqueue('OkJob', VALUES)
  VALUES.each { |v| enqueue('OkJob', [v]) }
  Resque.dequeue(OkJob, *VALUES) == 1 && VALUES.all? { |v| Resque.dequeue(OkJob, v) == 1 } && Resque.size(:default) == 0
end

check('resque W4: another namespace sees nothing') do
  lade('enqueue', '--kind', 'OkJob', '--payload', '[]', '-n', 'other')
  Resque.size(:default) == 0 && Resque.redis.redis.llen('other:queue:default') == 1
end

check('resque W6 W7 W11 W13: a live lade worker is listed, shows its job, and outlives Ruby workers that start') do
  pid = spawn(LADE, 'work', '-u', URL, '-c', '2', '--exec', "while [ ! -e #{DIR}/go ]; do sleep 0.02; done", err: File::NULL, out: File::NULL)
  begin
    wait { Resque.workers.size == 2 } or raise 'not registered'
    Resque.enqueue(OkJob, 'a')
    wait { Resque.working.size == 1 } or raise 'not shown as working'
    job = Resque.working.first.job
    shown = job['queue'] == 'default' && Time.parse(job['run_at']) <= Time.now + 1 && job['payload'] == { 'class' => 'OkJob', 'args' => ['a'] }
    started = Resque.workers.all? { |w| Time.parse(w.started) <= Time.now + 1 }
    beats = Resque::Worker.all_heartbeats.values.all? { |t| Time.parse(t) }
    expired = Resque::Worker.all_workers_with_expired_heartbeats.empty?
    %w[default *].each do |queues|
      w = Resque::Worker.new(queues)
      Resque.redis.del('pruning_dead_workers_in_progress')
      w.prune_dead_workers
    end
    kept = Resque.workers.size == 2 && Resque::Failure.count == 0 && Resque.working.size == 1
    File.write("#{DIR}/go", '')
    wait { Resque.info[:processed] == 1 } or raise 'never finished'
    per_worker = Resque.workers.sum(&:processed) == 1 && Resque.workers.sum(&:failed) == 0
  ensure
    Process.kill('TERM', pid)
    Process.wait(pid)
  end
  shown && started && beats && expired && kept && per_worker && Resque.workers.empty? &&
    Resque.redis.del('pruning_dead_workers_in_progress') && Resque.redis.keys('*').reject { |k| k.start_with?('lade:') }.sort == %w[queues stat:processed]
end

check('resque W8: a failure is one that Resque reads, and a retry of it reaches lade') do
  Resque.enqueue(OkJob, 'x')
  drain('echo no good >&2; exit 1')
  f = Resque::Failure.all(0, 1)
  f = f.first if f.is_a?(Array)
  read = f['exception'] == 'Lade::JobFailed' && f['error'].include?('no good') && f['queue'] == 'default' &&
         f['payload'] == { 'class' => 'OkJob', 'args' => ['x'] } && f['backtrace'] == [] && DateTime.parse(f['failed_at'])
  Resque::Failure.requeue(0)
  drain("cat >#{DIR}/again")
  read && File.read("#{DIR}/again") == '["x"]' && Resque::Failure.all(0, 1).then { |a| a.is_a?(Array) ? a.first : a }['retried_at'] &&
    Resque::Failure.remove(0) && Resque::Failure.count == 0
end

check('resque W9: counts are exact after 1,000 mixed jobs of lade and Ruby workers') do
  1000.times { |i| Resque.enqueue(Count, i) }
  pid = spawn(LADE, 'work', '-u', URL, '-c', '2', '--drain', '--exec', 'n=$(cat | tr -d "[]"); [ $((n % 10)) -ne 0 ]', err: File::NULL,
                                                                                                              out: File::NULL)
  ruby_worker
  Process.wait(pid)
  Resque.info[:processed] == 1000 && Resque.redis.get('stat:failed').to_i == 100 && Resque::Failure.count == 100
end

check('resque W13: lade works beside a worker id and a heartbeat that stop Ruby workers') do
  Resque.redis.sadd('workers', 'abc')
  Resque.redis.hset('workers:heartbeat', 'vm:1:default', '1796032645')
  Resque.enqueue(OkJob, 1)
  drain('true')
  Resque.redis.smembers('workers') == ['abc'] && Resque.redis.get('stat:processed') == '1'
end

exit($failures.zero? ? 0 : 1)

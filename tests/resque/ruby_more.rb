# lade beside Ruby: patterns, ActiveJob, resque-scheduler, resque-web, failures by queue. Run by ruby_test.sh.
#   ruby_more.rb LADE SOCKET DIR
require_relative 'ruby_kit'

# What may be missing, and is said by name then.
def try(lib)
  require lib
  true
rescue LoadError
  false
end

HAS_WEB = try('rack/mock') && try('resque/server')
HAS_ACTIVE = try('active_job')
HAS_SCHEDULER = ENV['SCHEDULER_DIR'] && try('resque-scheduler')
skip('resque-web pages (W7 W8 W18 W24)', 'ruby-sinatra') unless HAS_WEB
skip('resque W3 beside ActiveJob', 'ruby-activejob') unless HAS_ACTIVE
skip('resque W25 beside resque-scheduler', 'a checkout of resque/resque-scheduler in SCHEDULER_DIR') unless HAS_SCHEDULER

QUEUES = %w[critical file_a file_b high low mid .hidden fileé a.b x/y].freeze

# The order in which a lade worker with one slot takes a job from each queue that its list names.
def order_of(list)
  QUEUES.shuffle(random: Random.new(7)).each { |q| Resque.push(q, class: 'OkJob', args: []) }
  File.write("#{DIR}/order", '')
  system(LADE, 'work', '-u', URL, '-q', list, '-c', '1', '--drain', '--exec', "echo $LADE_QUEUE >>#{DIR}/order", '--quiet', out: File::NULL, exception: true)
  File.read("#{DIR}/order", encoding: 'UTF-8').split("\n")
end

check('resque W10: a list of patterns names the queues that Ruby names, in its order') do
  lists = ['*', 'critical,*', 'high,*,low', '*,!low', '!file_*,*', 'file_?', 'file_[ab]', 'file_[!a]', '[a-h]*', '*_*,*', '?*', '.*', '{high,low}', 'f*[é]',
           '[^f]*,!*i*', 'x?y', 'm[a-i]d', '*i*,*o*', '[', '[a', 'a[.]b', '**', '*.*', ' high , l?w ']
  lists.all? do |list|
    Resque.redis.redis.flushall
    QUEUES.each { |q| Resque.push(q, class: 'OkJob', args: []) }
    wanted = Resque::Worker.new(*list.split(',')).queues
    Resque.redis.redis.flushall
    got = order_of(list)
    warn "#{list}: Ruby #{wanted}, lade #{got}" unless got == wanted
    got == wanted
  end
end

check('resque W15: a Ruby worker goes on with what lade gives back at TERM') do
  Resque.enqueue(OkJob, 'back')
  pid = spawn(LADE, 'work', '-u', URL, '--shutdown-timeout', '100ms', '--exec', "touch #{DIR}/begun; sleep 600", %i[out err] => File::NULL)
  wait { File.exist?("#{DIR}/begun") } or raise 'never begun'
  Process.kill('TERM', pid)
  Process.wait(pid)
  ruby_worker
  JSON.parse(File.read("#{DIR}/args")) == ['back'] && Resque::Failure.count == 0
end

if HAS_ACTIVE
  # Resque 3.0.0 brings the adapter itself, for Rails 7.2 and later; the one thing of it that an older ActiveJob lacks is this empty class.
  ActiveJob::QueueAdapters.const_set(:AbstractAdapter, Class.new) unless ActiveJob::QueueAdapters.const_defined?(:AbstractAdapter)
  ActiveJob::Base.queue_adapter = :resque
  ActiveJob::Base.logger = Logger.new(File::NULL)
  class Greet < ActiveJob::Base
    queue_as :default
    def perform(*args) = File.write("#{DIR}/active", JSON.generate(args))
  end

  check('resque W3: a job that Rails enqueues reaches the handler of its class, its arguments unwrapped') do
    job = Greet.perform_later(1, 'zwölf', { to: 'a', 'k' => [nil, 1.5] }, :sym)
    system(LADE, 'work', '-u', URL, '--drain', '--kind', 'Greet', '--exec', "cat >#{DIR}/payload; echo $LADE_HEADER_JOB_ID >#{DIR}/id", out: File::NULL)
    JSON.parse(File.read("#{DIR}/payload")) == job.serialize['arguments'] && File.read("#{DIR}/id").chomp == job.job_id &&
      Resque.info[:processed] == 1 && Resque::Failure.count == 0
  end

  check('resque W3: a job that lade enqueues for Rails is run by ActiveJob in a Ruby worker') do
    system(LADE, 'enqueue', '-u', "#{URL}?jobs=active_job", '--kind', 'Greet', '--payload', '[1,"zwölf",{"k":[null,1.5]}]', out: File::NULL, exception: true)
    hash = Resque.peek(:default)['args'].first
    same = hash.keys == Greet.new.serialize.keys
    ruby_worker
    same && JSON.parse(File.read("#{DIR}/active")) == [1, 'zwölf', { 'k' => [nil, 1.5] }] && Resque::Failure.count == 0
  end

  check('resque W3 W8: a job of Rails that fails in lade is retried by resque-web as one') do
    Greet.perform_later('again')
    drain('exit 3')
    Resque::Failure.requeue(0)
    ruby_worker
    JSON.parse(File.read("#{DIR}/active")) == ['again']
  end
end

if HAS_SCHEDULER
  Resque::Scheduler.quiet = true
  check('resque W25: Ruby finds, counts and removes what lade delays') do
    lade('enqueue', '--kind', 'OkJob', '--payload', '[1,"zwölf",{"k":null}]', '--in', '1h')
    lade('enqueue', '--kind', 'OkJob', '--payload', '[2]', '--in', '1h')
    at = Resque.scheduled_at(OkJob, 1, 'zwölf', { 'k' => nil }).first
    Resque.delayed?(OkJob, 1, 'zwölf', { 'k' => nil }) && (at - Time.now.to_i - 3600).abs <= 2 && Resque.count_all_scheduled_jobs == 2 &&
      Resque.remove_delayed(OkJob, 2) == 1 && Resque.count_all_scheduled_jobs == 1
  end

  check('resque W25: the Ruby scheduler fires what lade delays, and it runs with its arguments') do
    lade('enqueue', '--kind', 'OkJob', '--payload', JSON.generate(VALUES), '--in', '1h')
    Resque::Scheduler.handle_delayed_items(Time.now + 3700)
    ruby_worker
    JSON.parse(File.read("#{DIR}/args")) == VALUES && Resque.delayed_queue_schedule_size == 0 && Resque.redis.keys('timestamps:*').empty?
  end

  check('resque W25: lade fires what Ruby delays, with the same bytes, and nothing of it is left') do
    Resque.enqueue_in(1, OkJob, *VALUES)
    Resque.enqueue_in(1, OkJob, 'second')
    pid = spawn(LADE, 'work', '-u', URL, '--exec', "cat >>#{DIR}/fired; echo >>#{DIR}/fired", %i[out err] => File::NULL)
    ok = wait { Resque.info[:processed] == 2 }
    Process.kill('TERM', pid)
    Process.wait(pid)
    ok && File.readlines("#{DIR}/fired").map { |l| JSON.parse(l) } .sort_by(&:size) == [['second'], VALUES] && Resque.delayed_queue_schedule_size == 0 &&
      Resque.redis.keys('timestamps:*').empty? && Resque.redis.keys('delayed:*').empty?
  end

  check('resque W25: while a Ruby scheduler is master lade leaves the schedule to it') do
    Resque::Scheduler.master? or raise 'no master'
    Resque.enqueue_at(Time.now + 1, OkJob, 'x')
    pid = spawn(LADE, 'work', '-u', URL, '--exec', 'true', %i[out err] => File::NULL)
    wait { Resque.workers.size == 10 } or raise 'not registered'
    sleep 2.5
    left = Resque.info[:processed] == 0 && Resque.delayed_queue_schedule_size == 1
    Resque::Scheduler.handle_delayed_items
    ran = wait { Resque.info[:processed] == 1 }
    Process.kill('TERM', pid)
    Process.wait(pid)
    Resque::Scheduler.release_master_lock
    left && ran
  end
end

if HAS_WEB
  Resque::Server.set :environment, :test
  Resque::Server.set :raise_errors, true
  Resque::Server.set :show_exceptions, false
  WEB = Rack::MockRequest.new(Resque::Server.new)

  # The page, which must be there and hold all of the texts.
  def page(path, *texts)
    r = WEB.get(path)
    missing = texts.reject { |t| r.body.include?(Rack::Utils.escape_html(t)) || r.body.include?(t) }
    raise "#{path}: #{r.status}#{missing.empty? ? '' : ", without #{missing.inspect}"}" unless r.status == 200 && missing.empty?
    true
  end

  check('resque W6 W7: resque-web shows lade workers, what they run, and their counts') do
    pid = spawn(LADE, 'work', '-u', URL, '-q', 'default,*', '-c', '2', '--exec', "while [ ! -e #{DIR}/web ]; do sleep 0.02; done", %i[out err] => File::NULL)
    begin
      wait { Resque.workers.size == 2 } or raise 'not registered'
      Resque.enqueue(OkJob, 'shown')
      wait { Resque.working.size == 1 } or raise 'not working'
      id = Resque.working.first.to_s
      host, pid_slot, = id.split(':')
      page('/overview', 'OkJob') && page('/workers', host) && page('/workers/all', host, pid_slot) && page("/workers/#{host}", pid_slot) &&
        page("/workers/#{id}", host, 'OkJob') && page('/working', host, 'OkJob') && page("/working/#{id}", 'OkJob', 'shown') && page('/queues', 'default') &&
        page('/queues/default') && page('/stats/resque') && page('/stats/redis') && page('/stats/keys') && page('/stats.txt', 'resque.workers=2', 'resque.working=1')
    ensure
      File.write("#{DIR}/web", '')
      Process.kill('TERM', pid)
      Process.wait(pid)
    end
  end

  check('resque W8 W18: resque-web shows failures of lade, malformed ones too, retries and removes them') do
    Resque.enqueue(OkJob, 'fails')
    ['not json', '[1,2]', '1', '{}', '{"class":"Nope","args":[]}', "\xff\xfe", '{"class":"OkJob","args":"s"}'].each { |e| Resque.redis.rpush('queue:default', e) }
    Resque.redis.rpush('queue:default', '{"class":"ActiveJob::QueueAdapters::ResqueAdapter::JobWrapper","args":[{"job_class":7}]}')
    drain_kind('OkJob', 'exit 3')
    shown = page('/failed', 'Lade::JobFailed', 'not json', 'uninitialized constant Nope', 'args[0].job_class: must be a string', 'OkJob') && Resque::Failure.count == 9
    at = Resque::Failure.all(0, 20).index { |f| f['exception'] == 'Lade::JobFailed' }
    WEB.get("/failed/requeue/#{at}").status == 302 or raise 'not retried'
    retried = Resque.size(:default) == 1 && page('/failed', 'Retried')
    WEB.get("/failed/remove/#{at}")
    removed = Resque::Failure.count == 8 && page('/failed')
    drain("cat >#{DIR}/again")
    WEB.post('/failed/clear')
    shown && retried && removed && JSON.parse(File.read("#{DIR}/again")) == ['fails'] && Resque::Failure.count == 0
  end

  check('resque W24: with a list for each queue resque-web shows, retries and clears them') do
    require 'resque/failure/redis_multi_queue'
    Resque::Failure.backend = Resque::Failure::RedisMultiQueue
    begin
      %w[a b].each { |q| Resque.enqueue_to(q, OkJob, q) }
      system(LADE, 'work', '-u', "#{URL}?failures=redis_multi_queue", '-q', 'a,b', '--drain', '--exec', 'exit 3', %i[out err] => File::NULL)
      known = Resque::Failure.queues.sort == %w[a_failed b_failed] && Resque::Failure.count('a_failed') == 1
      page('/failed', 'a_failed', 'b_failed') && page('/failed/a_failed', 'Lade::JobFailed') && page('/overview', 'a_failed')
      WEB.get('/failed/a_failed/requeue/0').status == 302 or raise 'not retried'
      retried = Resque.size('a') == 1
      WEB.post('/failed/b_failed/requeue/all')
      WEB.post('/failed/b_failed/clear')
      known && retried && Resque.size('b') == 1 && Resque::Failure.count('b_failed') == 0
    ensure
      Resque::Failure.backend = Resque::Failure::Redis
    end
  end
end

exit($failures.zero? ? 0 : 1)

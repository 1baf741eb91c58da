module lade/bench/chronos-go

go 1.26

require (
	github.com/kenshin579/chronos-go v1.2.0
	github.com/redis/go-redis/v9 v9.21.0
	lade/bench/gokit v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	go.uber.org/atomic v1.11.0 // indirect
)

replace lade/bench/gokit => ../gokit

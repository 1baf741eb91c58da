module lade/bench/go-chan

go 1.19

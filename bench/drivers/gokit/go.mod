module lade/bench/gokit

go 1.25

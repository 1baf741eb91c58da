#!/bin/sh
# Builds the driver into $OUT; go says what it downloads. Where the module proxy does not serve chronos-go, LADE_CHRONOS_GO may name
# a clone of its public repository (a path or an address): the tag must still have the checksum in go.sum.
set -eu
cd "$(dirname "$0")"
module=github.com/kenshin579/chronos-go

if ! why=$(go mod download "$module" 2>&1); then
    if [ -z "${LADE_CHRONOS_GO-}" ]; then
        printf '%s\n' "$why" >&2
        echo "chronos-go: the module proxy does not serve it; set LADE_CHRONOS_GO to a clone of its repository" >&2
        exit 1
    fi
    export GOPRIVATE="$module" GIT_CONFIG_COUNT=1
    export GIT_CONFIG_KEY_0="url.$LADE_CHRONOS_GO.insteadOf" GIT_CONFIG_VALUE_0="https://$module"
    echo "chronos-go: from $LADE_CHRONOS_GO"
fi
CGO_ENABLED=0 go build -mod=readonly -trimpath -buildvcs=false -o "$OUT/chronos-go-bench" .

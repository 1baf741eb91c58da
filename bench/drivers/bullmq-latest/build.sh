#!/bin/sh
# The same program with the latest packages.
PACKAGE=$(cd "$(dirname "$0")" && pwd) exec sh "$(dirname "$0")/../bullmq/build.sh"

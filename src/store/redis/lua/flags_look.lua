#!lua flags=no-writes,allow-oom

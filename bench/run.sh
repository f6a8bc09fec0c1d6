#!/bin/sh
# run.sh [--reps N] [--clients a,b] [--out FILE.json] SCENARIO...   (A AP B C D E F S, or all)
# Builds what is out of date, runs the scenarios, prints the tables. See README.md.
set -eu
cd "$(dirname "$0")"
cargo build --release --quiet
# Scenario D holds 1000 connections open.
ulimit -n 8192
exec python3 run.py "$@"

#!/usr/bin/env python3
"""Runs scenarios over the clients, interleaved, and prints one table per scenario.

The server is pinned to core 1 and the client to core 0. Every client process runs alone. Each
figure is the median over the repetitions; a ratio is the median of the ratios taken within one
repetition, so that a machine whose speed drifts does not bend it.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.request

ROOT = os.path.dirname(os.path.abspath(__file__))
BIN = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "release")
SERVER_CORE, CLIENT_CORE = "1", "0"
TICK = os.sysconf("SC_CLK_TCK")

# unit: label, how many of it a conversation has, scale from seconds to the label's unit
SCENARIOS = {
    "A": dict(
        title="token streaming: 1 conversation at a time, 5 tool iterations + answer, 2000 deltas each",
        model="bench-i5-t2000-c1-a8", convs=20, warmup=2, conc=1,
        unit=("CPU us/delta", 12000, 1e6),
    ),
    "AP": dict(
        title="paced streaming: 4 conversations, 1000 deltas each, one delta per packet and millisecond",
        model="bench-i1-t500-c1-a8-g1-d1000", convs=4, warmup=1, conc=4,
        unit=("CPU us/delta", 1000, 1e6),
    ),
    "B": dict(
        title="many small loops: 3 tool iterations + answer, 20 deltas each, 64 at once",
        model="bench-i3-t20-c1-a8", convs=2000, warmup=50, conc=64,
        unit=("CPU us/loop", 1, 1e6),
    ),
    "C": dict(
        title="long history: 300 tool iterations, 2 KB results, 1 conversation at a time",
        model="bench-i300-t5-c1-a4", convs=4, warmup=1, conc=1, result_bytes=2048,
        marks=[75, 150, 300], unit=("CPU ms/conversation", 1, 1e3),
    ),
    "D": dict(
        title="memory: 1000 loops held in the middle of their last answer, 2 KB results",
        model="bench-i3-t20-c1-a8-h10", convs=1000, warmup=20, conc=1000, result_bytes=2048,
        hold=True, unit=("CPU us/loop", 1, 1e6),
    ),
    "E": dict(
        title="time to first event: one short answer, no tools called, 1 at a time",
        model="bench-i0-t5-c0-a0", convs=1000, warmup=50, conc=1, first_event=True,
        unit=("CPU us/request", 1, 1e6),
    ),
    "F": dict(
        title="wide: 1 iteration of 64 parallel tool calls of 8 fragments",
        model="bench-i1-t5-c64-a8", convs=200, warmup=5, conc=1,
        unit=("CPU us/call", 64, 1e6),
    ),
    "S": dict(
        title="torn stream: HTTP chunks of 7 bytes, across events and characters (is the text right?)",
        model="bench-i2-t300-c2-a8-s7", convs=20, warmup=1, conc=1,
        unit=("CPU us/delta", 900, 1e6),
    ),
}


class Server:
    def __init__(self):
        self.proc = subprocess.Popen(
            ["taskset", "-c", SERVER_CORE, os.path.join(BIN, "mockllm")],
            stdout=subprocess.PIPE, text=True,
        )
        self.addr = self.proc.stdout.readline().strip()

    def ctl(self, path, post=False):
        url = f"http://{self.addr}/ctl/{path}"
        req = urllib.request.Request(url, data=b"" if post else None)
        with urllib.request.urlopen(req, timeout=30) as r:
            return json.load(r)

    def cpu(self):
        with open(f"/proc/{self.proc.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def stop(self):
        self.proc.terminate()
        self.proc.wait()


def rss_kb(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def held_rss_kb(server, proc, convs):
    """Memory of the client once all its conversations are held; then lets them go on."""
    rss, deadline = None, time.time() + 300
    while proc.poll() is None and time.time() < deadline:
        if server.ctl("stats")["held"] >= convs:
            time.sleep(0.3)  # what arrived before the hold is still being read
            rss = rss_kb(proc.pid)
            break
        time.sleep(0.05)
    server.ctl("release", post=True)
    return rss


def run_once(server, scenario, client):
    convs, warmup, model = scenario["convs"], scenario["warmup"], scenario["model"]
    cmd = [part.format(bin=BIN) for part in client["cmd"]] + [
        "--base-url", f"http://{server.addr}/v1", "--model", model,
        "--convs", str(convs), "--conc", str(scenario["conc"]), "--warmup", str(warmup),
        "--result-bytes", str(scenario.get("result_bytes", 0)),
        "--marks", ",".join(map(str, scenario.get("marks", []))),
    ]
    server.ctl(f"reset/{warmup}", post=True)  # conversations of the warm-up are not held
    server_cpu = server.cpu()
    proc = subprocess.Popen(["taskset", "-c", CLIENT_CORE] + cmd, stdout=subprocess.PIPE, text=True)
    held_kb = held_rss_kb(server, proc, convs) if scenario.get("hold") else None
    try:
        out, _ = proc.communicate(timeout=600)
    except subprocess.TimeoutExpired:
        proc.kill()
        return None
    if proc.returncode != 0:
        return None
    r = json.loads(out)
    stats, want = server.ctl("stats"), server.ctl("expect/" + model)
    r["server_cpu_s"] = server.cpu() - server_cpu
    r["requests"], r["connections"] = stats["requests"], stats["connections"]
    r["cpu"] = r["cpu_s"] / convs / scenario["unit"][1] * scenario["unit"][2]
    if held_kb is not None:
        r["rss_per_loop_kb"] = (held_kb - r["base_rss_kb"]) / convs
    seen = ["text_bytes", "text_events", "tool_calls", "output_tokens"]
    checks = [] if client.get("no_text") else [(what, r[what], want[what] * convs) for what in seen]
    checks.append(("requests", r["requests"], want["requests"] * (convs + warmup)))
    r["bad"] = [f"{what} {got}/{due}" for what, got, due in checks if got != due]
    return r


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def fmt(v):
    if v is None:
        return "-"
    return f"{v:,.0f}" if abs(v) >= 1000 else f"{v:.3g}"


def table(name, scenario, clients, runs):
    marks = scenario.get("marks", [])
    head = ["client", scenario["unit"][0], "min..max", "x floor-parse", "x floor"]
    if marks:
        head += [f"CPU ms at {m}" for m in marks] + [f"growth {marks[0]}->{marks[-1]}"]
    if scenario.get("hold"):
        head += ["RSS KiB/loop", "x floor-parse (RSS)"]
    if scenario.get("first_event"):
        head += ["first event us p50", "over floor", "p90"]
    head += ["wall s", "peak RSS MiB", "conns/requests", "server CPU share", "checks"]
    print(f"\n### {name}: {scenario['title']}\n`{scenario['model']}`\n")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))

    def against(a, b, op, key):
        pairs = zip(runs.get(a, []), runs.get(b, []))
        return median([op(key(x), key(y)) for x, y in pairs if x and y and key(x) and key(y)])

    def ratio(a, b, key=lambda r: r["cpu"]):
        return against(a, b, lambda x, y: x / y, key)

    for client in clients:
        n = client["name"]
        rs = [r for r in runs[n] if r]
        if not rs:
            print(f"| {n} | failed |")
            continue
        cpus = [r["cpu"] for r in rs]
        row = [
            n, fmt(median(cpus)), f"{fmt(min(cpus))}..{fmt(max(cpus))}",
            fmt(ratio(n, "floor-parse")), fmt(ratio(n, "floor")),
        ]
        if marks:
            at = [1e3 * median([dict(r["marks"])[k] for r in rs]) for k in marks]
            row += [fmt(ms) for ms in at] + [f"x{at[-1] / at[0]:.1f}"]
        if scenario.get("hold"):
            key = lambda r: r.get("rss_per_loop_kb")
            row += [fmt(median([key(r) for r in rs])), fmt(ratio(n, "floor-parse", key))]
        if scenario.get("first_event"):
            key = lambda r: r["first_event_us"]["p50"]
            row += [
                fmt(median([key(r) for r in rs])),
                fmt(against(n, "floor", lambda x, y: x - y, key)),
                fmt(median([r["first_event_us"]["p90"] for r in rs])),
            ]
        share = median([r["server_cpu_s"] / (r["server_cpu_s"] + r["cpu_s"]) for r in rs])
        row += [
            fmt(median([r["wall_s"] for r in rs])),
            fmt(median([r["peak_rss_kb"] / 1024 for r in rs])),
            f"{rs[-1]['connections']}/{rs[-1]['requests']}",
            f"{100 * share:.0f}%",
            next(("BAD: " + "; ".join(r["bad"]) for r in rs if r["bad"]), "ok"),
        ]
        print("| " + " | ".join(row) + " |")
    sys.stdout.flush()


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--reps", type=int, default=3, help="repetitions (default 3)")
    p.add_argument("--clients", default="", help="only these, by name, with commas between")
    p.add_argument("--out", default="", help="keep every raw result in this JSON file")
    p.add_argument("scenarios", nargs="+", choices=[*SCENARIOS, "all"], metavar="SCENARIO")
    args = p.parse_args()
    with open(os.path.join(ROOT, "clients.json")) as f:
        clients = json.load(f)
    if args.clients:
        wanted = args.clients.split(",")
        unknown = set(wanted) - {c["name"] for c in clients}
        if unknown:
            p.error(f"unknown client: {', '.join(sorted(unknown))}")
        clients = [c for c in clients if c["name"] in wanted]
    names = list(SCENARIOS) if "all" in args.scenarios else args.scenarios
    results, failed = {}, False
    print(f"load average at start: {os.getloadavg()[0]:.1f}; {args.reps} repetitions")
    for name in names:
        scenario = SCENARIOS[name]
        server = Server()
        runs = {c["name"]: [] for c in clients}
        try:
            for rep in range(args.reps):
                for c in clients:
                    r = run_once(server, scenario, c)
                    runs[c["name"]].append(r)
                    failed |= r is None or bool(r["bad"])
                    shown = f"{fmt(r['cpu'])} {scenario['unit'][0]}" if r else "failed"
                    print(f"  {name} {rep + 1}/{args.reps} {c['name']}: {shown}", file=sys.stderr)
        finally:
            server.stop()
        results[name] = runs
        table(name, scenario, clients, runs)
        if args.out:
            with open(args.out, "w") as f:
                json.dump(results, f)
    print(f"\nload average at end: {os.getloadavg()[0]:.1f}")
    sys.exit(failed)


main()

#!/usr/bin/env python3
"""Runs the commands of `baton` against a cluster and reads what they print.

usage: cli_check.py --baton BINARY --model FILE
"""
import argparse
import json
import os
import signal
import subprocess
import tempfile
import time

from up_cluster import Cluster, find_model

QUESTION = "What is the capital of France, and what is it known for?"
NOBODY = "127.0.0.1:1"


class Checks:
    def __init__(self, baton, router):
        self.baton = baton
        self.router = router

    def baton_run(self, command, *flags, status=0, text=None, router=None):
        result = subprocess.run(
            [self.baton, command, f"--router={router or self.router}", *flags],
            input=text, capture_output=True, text=True, timeout=120)
        assert result.returncode == status, (command, result)
        return result

    def check_generate(self):
        result = self.baton_run("generate", "--temperature=0",
                                "--max-tokens=40", "--timings", QUESTION)
        assert "Paris" in result.stdout, result
        assert "prefill-0 -> decode-0" in result.stderr, result
        assert "phases     queue" in result.stderr, result
        assert "KV blocks" in result.stderr, result

    def check_generate_json(self):
        result = self.baton_run("generate", "--json", "--raw", "--n=2",
                                "--max-tokens=3", "--ignore-eos", "-",
                                text="Once upon")
        events = [json.loads(line) for line in result.stdout.splitlines()]
        tokens = {0: [], 1: []}
        for event in events:
            tokens[event.get("choice", 0)] += event.get("token_ids", [])
        assert len(tokens[0]) == len(tokens[1]) == 3, events
        assert events[-1]["usage"]["completion_tokens"] == 6, events

    def check_seed(self):
        answers = {self.baton_run("generate", f"--seed={seed}",
                                  "--max-tokens=12", "--ignore-eos",
                                  "The sea").stdout for seed in (1, 1, 2)}
        assert len(answers) == 2, answers

    def check_chat(self):
        result = self.baton_run("chat", "--temperature=0", "--max-tokens=40",
                                text=f"/help\n{QUESTION}\n/new\n/quit\nno\n")
        assert "/timings" in result.stdout, result
        assert "Paris" in result.stdout, result

    def check_tokenize(self):
        result = self.baton_run("tokenize", "Hello world")
        ids = [int(word) for word in result.stdout.split()]
        assert result.stderr == f"{len(ids)} tokens\n", result
        pieces = self.baton_run("tokenize", "--pieces", "Hello world").stdout
        assert '"Hello"' in pieces and '" world"' in pieces, pieces

    def check_status(self):
        model, processes, speeds = (
            [row.split() for row in table.splitlines()] for table in
            self.baton_run("status").stdout.split("\n\n"))
        assert model[0][:2] == ["MODEL", "Smollm2"], model
        assert processes[1][3] == "ready", processes
        assert [row[0] for row in processes] == [
            "ROLE", "router", "prefill", "decode"], processes
        assert [row[0] for row in speeds] == [
            "ID", "prefill-0", "decode-0"], speeds
        info = json.loads(self.baton_run("status", "--json").stdout)
        assert {w["state"] for w in info["workers"]} == {"ready"}, info

    def check_bench_closed_loop(self):
        report = json.loads(self.baton_run(
            "bench", "--json", "--num-prompts=6", "--concurrency=2",
            "--input-len=20", "--output-len=5").stdout)
        assert report["completed"] == 6 and report["failed"] == 0, report
        assert report["total_input_tokens"] == 120, report
        assert report["total_output_tokens"] == 30, report
        assert 0 < report["mean_ttft_ms"] < report["mean_e2el_ms"], report

    def check_bench_open_loop(self):
        text = self.baton_run("bench", "--num-prompts=5", "--request-rate=20",
                              "--input-len=20", "--output-len=5").stdout
        assert "5 of 5 requests" in text, text
        assert "time to first token" in text, text

    def check_interrupt(self):
        process = subprocess.Popen(
            [self.baton, "generate", f"--router={self.router}", "--ignore-eos",
             "--max-tokens=4000", "Once"], stdout=subprocess.PIPE, text=True,
            stderr=subprocess.PIPE)
        assert process.stdout.read(8)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130, (process.returncode, errors)

    def check_errors_say_what_to_do(self):
        result = self.baton_run("generate", "x", router=NOBODY, status=1)
        assert result.stderr == (f"baton: no router at {NOBODY}; start one "
                                 "with: baton up\n"), result
        result = self.baton_run("generate", "--top-p=0", "x", status=2)
        assert "top_p" in result.stderr, result
        result = self.baton_run("generate", "--temprature=0", "x", status=2)
        assert "did you mean temperature" in result.stderr, result
        result = self.baton_run("generate", "--model=no-such", "x", status=1)
        assert "baton status" in result.stderr, result

    def run(self):
        for name in sorted(dir(self)):
            if name.startswith("check_"):
                start = time.monotonic()
                getattr(self, name)()
                seconds = time.monotonic() - start
                print(f"ok  {name[6:]}  {seconds:.2f} s", flush=True)


def check_up_help(baton):
    text = subprocess.run([baton, "up", "--help"], capture_output=True,
                          text=True, timeout=60).stdout
    for word in ("SmolLM2-135M-Instruct.Q4_1.gguf", "--speculation",
                 "--draft-model", "--tpot-target"):
        assert word in text, text
    result = subprocess.run([baton, "up", "--speculation=draft"],
                            capture_output=True, text=True, timeout=60)
    assert result.returncode == 2, result
    assert "draft-model: wanted with --speculation=draft" in result.stderr
    print("ok  up_help", flush=True)


def check_port_in_use(baton, model, router):
    result = subprocess.run([baton, "up", f"--model={model}",
                             f"--listen={router}"], capture_output=True,
                            text=True, timeout=180)
    assert result.returncode == 1, result
    assert "Address already in use" in result.stderr, result
    print("ok  port_in_use", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--baton", required=True)
    parser.add_argument("--model", required=True)
    arguments = parser.parse_args()
    model = find_model(arguments.model)
    with tempfile.TemporaryDirectory() as work:
        os.environ["TMPDIR"] = os.path.join(work, "tmp")
        os.mkdir(os.environ["TMPDIR"])
        cluster = Cluster(arguments.baton, model, work)
        try:
            Checks(arguments.baton, cluster.address).run()
            check_up_help(arguments.baton)
            check_port_in_use(arguments.baton, model, cluster.address)
            status, left = cluster.stop()
            assert status == 0, f"baton up ended with {status}"
            assert not left, f"processes left: {left}"
            assert not os.listdir(os.environ["TMPDIR"]), "files left"
            print("ok  stop", flush=True)
        finally:
            cluster.close()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Uses a running cluster the way a client in another language would.

usage: client_check.py --baton BINARY --source DIR --model FILE

Starts `baton up`, generates grpcio stubs from proto/, and checks streaming,
determinism, chat, cancelling, deadlines, error details, health, request ids,
tokenising and a clean stop. Prints one line per check; exit code 1 at the
first that fails.
"""
import argparse
import os
import sys
import tempfile
import time

import grpc
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status
from grpc_tools import protoc

from up_cluster import Cluster, find_model, wait_until

SERVICE = "baton.v1.Generation"
CALL_TIMEOUT_S = 120


def generate_stubs(source, folder):
    for name in ("cluster", "sequence", "generation"):
        status = protoc.main(["protoc", f"-I{source}",
                              f"--python_out={folder}",
                              f"--grpc_python_out={folder}",
                              os.path.join(source, "proto", f"{name}.proto")])
        assert status == 0, f"protoc failed on {name}.proto"
    sys.path.insert(0, folder)


class Checks:
    def __init__(self, address, pb2, pb2_grpc):
        self.pb2 = pb2
        self.channel = grpc.insecure_channel(address)
        self.stub = pb2_grpc.GenerationStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)

    def text_request(self, text="Once upon a time", **fields):
        request = self.pb2.GenerateRequest(text=text, **fields)
        request.sampling.temperature = 0
        return request

    def read(self, request, **options):
        events = list(self.stub.Generate(request, timeout=CALL_TIMEOUT_S,
                                         **options))
        tokens = [t for event in events for t in event.token_ids]
        text = "".join(event.text for event in events)
        return events, tokens, text

    def error_of(self, request, **options):
        options.setdefault("timeout", CALL_TIMEOUT_S)
        try:
            list(self.stub.Generate(request, **options))
        except grpc.RpcError as error:
            return error
        raise AssertionError("the call succeeded")

    def check_streaming(self):
        events, tokens, text = self.read(self.text_request(
            max_tokens=16, ignore_eos=True, logprobs=2))
        assert len(events) >= 16, f"{len(events)} events for 16 tokens"
        assert len(tokens) == 16, tokens
        assert text.strip(), "no text"
        logprobs = [entry for event in events for entry in event.logprobs]
        assert [entry.token_id for entry in logprobs] == tokens
        for entry in logprobs:
            assert entry.logprob <= 0 and len(entry.top) == 2, entry
            assert entry.top[0].token_id == entry.token_id, "greedy is top 1"
        last = events[-1]
        assert last.usage.completion_tokens == 16, last
        assert last.usage.prompt_tokens > 0, last
        finished = [e.finish.reason for e in events if e.HasField("finish")]
        assert len(finished) == 1, finished

    def check_served_by_two_workers(self):
        served = self.read(self.text_request(max_tokens=8,
                                             ignore_eos=True))[0][-1].served
        assert served.prefill_worker == "prefill-0", served
        assert served.decode_worker == "decode-0", served
        assert served.kv_blocks_moved > 0, served
        assert served.kv_bytes_moved > 0, served
        assert served.transport, served
        assert served.prefill_ms > 0 and served.decode_ms > 0, served

    def check_seed(self):
        request = self.pb2.GenerateRequest(text="The sea", max_tokens=12,
                                           ignore_eos=True)
        request.sampling.temperature = 1
        request.sampling.seed = 7
        first = self.read(request)[1]
        assert first == self.read(request)[1], "same seed, other tokens"
        request.sampling.seed = 8
        assert first != self.read(request)[1], "other seed, same tokens"

    def check_chat(self):
        request = self.pb2.GenerateRequest(max_tokens=40)
        request.sampling.temperature = 0
        question = "What is the capital of France, and what is it known for?"
        request.chat.messages.add(role="user", content=question)
        text = self.read(request)[2]
        assert "Paris" in text, text

    def check_stop_string(self):
        request = self.text_request("1, 2, 3, 4, 5, 6,", max_tokens=40)
        request.stop.append(" 9")
        events, _, text = self.read(request)
        assert " 9" not in text, text
        finish = [e.finish for e in events if e.HasField("finish")][0]
        assert finish.stop_string == " 9", (finish, text)

    def check_cancel(self):
        call = self.stub.Generate(self.text_request(max_tokens=1500,
                                                    ignore_eos=True),
                                  timeout=CALL_TIMEOUT_S)
        for _ in range(3):
            next(call)
        call.cancel()
        try:
            for _ in call:
                pass
            raise AssertionError("the stream went on")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.CANCELLED, error
        wait_until(self._idle, 30, "the cancelled request is gone")

    def _idle(self):
        info = self.stub.GetClusterInfo(self.pb2.GetClusterInfoRequest())
        loads = [worker.load for worker in info.workers]
        return info.running_requests == 0 and all(
            load.running_sequences == 0 and load.running_blocks == 0
            and load.landing_blocks == 0 and load.sending_blocks == 0
            for load in loads)

    def check_deadline(self):
        error = self.error_of(self.text_request(max_tokens=1500,
                                                ignore_eos=True), timeout=0.3)
        assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error
        wait_until(self._idle, 30, "the late request is gone")

    def check_error_details(self):
        request = self.text_request(n=99)
        request.sampling.top_p = 2
        error = self.error_of(request)
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
        status = rpc_status.from_call(error)
        assert status is not None, "no google.rpc.Status in the trailers"
        violations = {}
        for detail in status.details:
            bad_request = error_details_pb2.BadRequest()
            if detail.Unpack(bad_request):
                for violation in bad_request.field_violations:
                    violations[violation.field] = violation.description
        assert "n" in violations, violations
        assert "sampling.top_p" in violations, violations
        assert "99" in violations["n"], violations

    def check_unknown_model(self):
        error = self.error_of(self.text_request(model="no-such-model"))
        assert error.code() == grpc.StatusCode.NOT_FOUND, error
        assert "model" in error.details(), error

    def check_health(self):
        serving = health_pb2.HealthCheckResponse.SERVING
        for name in ("", SERVICE):
            request = health_pb2.HealthCheckRequest(service=name)
            assert self.health.Check(request).status == serving, name
            watch = self.health.Watch(request, timeout=CALL_TIMEOUT_S)
            assert next(watch).status == serving, name
            watch.cancel()
        try:
            self.health.Check(health_pb2.HealthCheckRequest(service="other"))
            raise AssertionError("an unknown service is healthy")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.NOT_FOUND, error

    def check_request_id(self):
        call = self.stub.Generate(
            self.text_request(max_tokens=2), timeout=CALL_TIMEOUT_S,
            metadata=(("x-request-id", "python-check-1"),))
        metadata = dict(call.initial_metadata())
        events = list(call)
        assert metadata.get("x-request-id") == "python-check-1", metadata
        assert events[-1].served.request_id == "python-check-1", events[-1]

    def check_tokens(self):
        text = "Batons pass from hand to hand: caf\u00e9, \u65e5\u672c."
        tokens = self.stub.Tokenize(self.pb2.TokenizeRequest(text=text))
        assert tokens.token_ids, tokens
        back = self.stub.Detokenize(self.pb2.DetokenizeRequest(
            token_ids=tokens.token_ids, skip_special_tokens=True))
        assert back.text == text, back
        models = self.stub.ListModels(self.pb2.ListModelsRequest()).models
        assert len(models) == 1 and models[0].id, models
        assert max(tokens.token_ids) < models[0].vocabulary_size, models

    def run(self):
        for name in sorted(dir(self)):
            if name.startswith("check_"):
                start = time.monotonic()
                getattr(self, name)()
                seconds = time.monotonic() - start
                print(f"ok  {name[6:]}  {seconds:.2f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--baton", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--model", required=True)
    arguments = parser.parse_args()
    model = find_model(arguments.model)

    with tempfile.TemporaryDirectory() as work:
        generate_stubs(arguments.source, work)
        from proto import generation_pb2, generation_pb2_grpc
        cluster = Cluster(arguments.baton, model, work)
        try:
            Checks(cluster.address, generation_pb2, generation_pb2_grpc).run()
            status, left = cluster.stop()
            assert status == 0, f"baton up ended with {status}"
            assert not left, f"processes left: {left}"
            print("ok  stop", flush=True)
        finally:
            cluster.close()


if __name__ == "__main__":
    main()

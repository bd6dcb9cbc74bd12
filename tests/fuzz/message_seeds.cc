// Seeds made of protocol messages and of the operations around them.
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/strings.h"
#include "kv_transfer/wire.h"
#include "proto/cluster.pb.h"
#include "proto/decode.pb.h"
#include "proto/generation.pb.h"
#include "proto/kv_transfer.pb.h"
#include "proto/prefill.pb.h"
#include "tests/fuzz/seed_writer.h"
#include "tests/unit/common/worker/toy_worker.h"

namespace baton::fuzz {
namespace {

void AddRequests(Corpus* corpus) {
  v1::GenerateRequest text;
  text.set_text("hello <|im_start|> there");
  text.set_max_tokens(16);
  corpus->Add("generate_request", "text", text.SerializeAsString());

  v1::GenerateRequest full;
  full.set_model("tiny-llama");
  v1::ChatMessage* message = full.mutable_chat()->add_messages();
  message->set_role("system");
  message->set_content("Be short.");
  message = full.mutable_chat()->add_messages();
  message->set_role("user");
  message->set_content("Hi <|im_end|> \xc3\xa9");
  full.mutable_chat()->set_add_generation_prompt(true);
  v1::SamplingOptions* sampling = full.mutable_sampling();
  sampling->set_temperature(0.7f);
  sampling->set_top_k(40);
  sampling->set_top_p(0.9f);
  sampling->set_min_p(0.05f);
  sampling->set_repetition_penalty(1.1f);
  sampling->set_presence_penalty(-0.5f);
  sampling->set_frequency_penalty(0.5f);
  sampling->set_seed(7);
  (*sampling->mutable_logit_bias())[5] = -100;
  full.set_n(2);
  full.set_max_tokens(32);
  full.set_min_tokens(2);
  full.set_ignore_eos(true);
  full.add_stop("\n\n");
  full.add_stop_token_ids(2);
  full.set_logprobs(5);
  full.set_cache_salt("tenant-1");
  full.set_priority(0);
  full.set_skip_special_tokens(false);
  full.set_escape_special_tokens(true);
  corpus->Add("generate_request", "chat", full.SerializeAsString());

  v1::GenerateRequest ids;
  for (const uint32_t id : {1u, 70u, 260u, 271u}) {
    ids.mutable_token_ids()->add_ids(id);
  }
  ids.set_priority(2);
  corpus->Add("generate_request", "token_ids", ids.SerializeAsString());
}

v1::RouterHello Hello() {
  v1::RouterHello hello;
  hello.set_protocol_min(1);
  hello.set_protocol_max(1);
  hello.set_router_epoch(1);
  hello.set_session(2);
  hello.set_router_id("router");
  return hello;
}

// One step of a command fuzzer: milliseconds, kind, stream.
Seed& Step(Seed* seed, int kind, int stream = 0) {
  return seed->Byte(1).Byte(kind).Byte(stream);
}
// AnyHello, then what AnySpec reads.
void OpenSession(Seed* seed) { Step(seed, 0).Byte(0).Byte(0).Byte(1); }
void PlainSpec(Seed* seed, int prompt, int max_tokens, int choices) {
  seed->Byte(prompt - 1).Byte(max_tokens - 1).Byte(choices - 1).Byte(0);
}

void AddPrefillCommands(Corpus* corpus) {
  for (const int prompt : {5, 100}) {
    Seed seed;
    OpenSession(&seed);
    Step(&seed, 1).Byte(7);  // start attempt 7
    PlainSpec(&seed, prompt, 8, 2);
    seed.Byte(0).Number<uint16_t>(30000);
    for (int i = 0; i < 5; ++i) Step(&seed, 15).Byte(20).Byte(21).Byte(0);
    Step(&seed, 11).Byte(0).Byte(7);  // acknowledge
    Step(&seed, 4).Byte(7);           // a late cancel
    Step(&seed, 8).Number<uint16_t>(2000);
    corpus->Add("prefill_commands", StrCat("handed_over_", prompt), seed);
  }
  Seed push;
  OpenSession(&push);
  Step(&push, 1).Byte(7);
  PlainSpec(&push, 40, 8, 1);
  push.Byte(0).Number<uint16_t>(30000);
  Step(&push, 15).Byte(20).Byte(0);
  Step(&push, 15).Byte(20).Byte(0);
  Step(&push, 11).Byte(0).Byte(7);  // acknowledge
  for (const int landing : {1, 2}) {
    Step(&push, 3);  // of the first two blocks
    PlainSpec(&push, 40, 8, 1);
    push.Byte(7).Byte(landing).Byte(1).Byte(0).Number<uint16_t>(3000);
    if (landing == 1) Step(&push, 11).Byte(0).Byte(7);
  }
  corpus->Add("prefill_commands", "push", push);

  Seed cancel;
  OpenSession(&cancel);
  Step(&cancel, 1).Byte(3);
  PlainSpec(&cancel, 80, 8, 1);
  cancel.Byte(0).Number<uint16_t>(30000);
  Step(&cancel, 15).Byte(20).Byte(0);
  Step(&cancel, 4).Byte(3);
  Step(&cancel, 7);
  corpus->Add("prefill_commands", "cancel", cancel);

  Seed raw;
  v1::PrefillCommand command;
  *command.mutable_hello() = Hello();
  Step(&raw, 5).Chunk(command.SerializeAsString());
  v1::StartPrefill* start = command.mutable_start();
  start->set_attempt_id(9);
  *start->mutable_sequence() = toy::MakeSpec(20, 4, 1);
  start->mutable_ticket()->set_token_count(20);
  start->mutable_ticket()->set_timeout_ms(1000);
  start->set_deadline_ms(5000);
  Step(&raw, 5).Chunk(command.SerializeAsString());
  Step(&raw, 15).Byte(20).Byte(0);
  command.mutable_cancel()->set_attempt_id(9);
  Step(&raw, 5).Chunk(command.SerializeAsString());
  corpus->Add("prefill_commands", "raw", raw);
}

void AddDecodeCommands(Corpus* corpus) {
  Seed reserved;
  reserved.Byte(0);
  OpenSession(&reserved);
  Step(&reserved, 1).Byte(7);
  PlainSpec(&reserved, 40, 6, 2);
  reserved.Number<uint16_t>(30000);
  Step(&reserved, 11).Byte(0).Byte(7).Byte(1).Byte(0).Byte(9).Byte(9);
  for (int i = 0; i < 8; ++i) Step(&reserved, 15).Byte(20).Byte(21).Byte(0);
  corpus->Add("decode_commands", "reserved", reserved);

  // Preempted twice: pushed back, then refused.
  Seed pushed;
  pushed.Byte(4);
  OpenSession(&pushed);
  Step(&pushed, 1).Byte(7);
  PlainSpec(&pushed, 40, 6, 1);
  pushed.Number<uint16_t>(30000);
  Step(&pushed, 11).Byte(0).Byte(7).Byte(0).Byte(0).Byte(9);
  Step(&pushed, 15).Byte(20).Byte(0);
  Step(&pushed, 11).Byte(0).Byte(7);
  Step(&pushed, 15).Byte(0);  // rows without a draw
  Step(&pushed, 15).Byte(20).Byte(0);
  Step(&pushed, 2).Byte(7).Byte(0);
  Step(&pushed, 11).Byte(0).Byte(7);
  Step(&pushed, 15).Byte(0);
  for (int i = 0; i < 8; ++i) Step(&pushed, 15).Byte(20).Byte(0);
  corpus->Add("decode_commands", "pushed", pushed);

  Seed served;
  served.Byte(1);
  OpenSession(&served);
  Step(&served, 3).Byte(4);
  PlainSpec(&served, 70, 5, 1);
  served.Number<uint16_t>(30000);
  for (int i = 0; i < 8; ++i) Step(&served, 14).Byte(20).Byte(0);
  Step(&served, 4).Byte(4);
  corpus->Add("decode_commands", "served", served);

  Seed preempted;
  preempted.Byte(6);
  OpenSession(&preempted);
  for (const int attempt : {4, 5}) {
    Step(&preempted, 3).Byte(attempt);
    preempted.Byte(69).Byte(30).Byte(1).Byte(64).Byte(6 - attempt);
    preempted.Number<uint16_t>(30000);
  }
  for (int i = 0; i < 60; ++i) {
    Step(&preempted, 14).Byte(20).Byte(0).Byte(21).Byte(0);
  }
  corpus->Add("decode_commands", "preempted", preempted);

  Seed raw;
  raw.Byte(0);
  v1::DecodeCommand command;
  *command.mutable_hello() = Hello();
  Step(&raw, 5).Chunk(command.SerializeAsString());
  command.mutable_reserve()->set_attempt_id(9);
  *command.mutable_reserve()->mutable_sequence() = toy::MakeSpec(20, 4, 1);
  command.mutable_reserve()->set_deadline_ms(5000);
  Step(&raw, 5).Chunk(command.SerializeAsString());
  v1::SealContents seal;
  seal.add_first_tokens()->set_token_id(7);
  Step(&raw, 11).Byte(0).Byte(1).Chunk(seal.SerializeAsString());
  Step(&raw, 15).Byte(20).Byte(0);
  command.mutable_release()->set_attempt_id(9);
  Step(&raw, 5).Chunk(command.SerializeAsString());
  corpus->Add("decode_commands", "raw", raw);
}

// One step of the router's fuzzer: milliseconds, worker, kind.
Seed& RouterStep(Seed* seed, int worker, int kind) {
  return seed->Byte(1).Byte(worker).Byte(kind);
}
void ReadyWorker(Seed* seed, int worker) {
  RouterStep(seed, worker, 3).Byte(0).Byte(0).Byte(2).Byte(0);
  seed->Number<uint16_t>(5000).Byte(1).Byte(0);
}
void Ask(Seed* seed) {
  RouterStep(seed, 0, 0);
  PlainSpec(seed, 30, 4, 1);
  seed->Number<uint16_t>(30000).Byte(1);
}

void AddRouterEvents(Corpus* corpus) {
  Seed pair;
  pair.Byte(1);
  ReadyWorker(&pair, 0);
  ReadyWorker(&pair, 1);
  Ask(&pair);
  RouterStep(&pair, 1, 12).Byte(0).Byte(4);  // reserved
  RouterStep(&pair, 0, 12).Byte(0).Byte(2).Byte(1).Byte(0).Byte(1).Byte(9);
  RouterStep(&pair, 0, 12).Byte(0).Byte(1);  // handed over
  RouterStep(&pair, 1, 12).Byte(0).Byte(2);  // landed
  for (int i = 0; i < 3; ++i) {
    RouterStep(&pair, 1, 12)
        .Byte(0)
        .Byte(6)
        .Byte(1)
        .Byte(0)
        .Byte(i == 2 ? 16 : 1)
        .Byte(9);
  }
  RouterStep(&pair, 1, 12).Byte(0).Byte(3);  // done
  corpus->Add("router_events", "pair", pair);

  Seed raw;
  raw.Byte(0);
  v1::WorkerHello hello;
  hello.set_protocol(1);
  hello.set_worker_epoch(5);
  hello.set_worker_id("decode-0");
  hello.set_role(v1::WORKER_ROLE_DECODE);
  hello.set_fingerprint(std::string(32, 'f'));
  hello.set_block_tokens(16);
  hello.set_block_bytes(1024);
  hello.set_kv_blocks(100);
  hello.set_max_context_tokens(300);
  hello.set_vocabulary_size(100);
  hello.set_disaggregation(v1::DISAGGREGATION_NEVER);
  hello.add_transports("ucx");
  RouterStep(&raw, 1, 3).Byte(255).Chunk(hello.SerializeAsString());
  v1::DecodeEvent event;
  event.mutable_load()->set_granted_prefill_tokens(1000);
  event.mutable_load()->set_free_blocks(100);
  RouterStep(&raw, 1, 7).Byte(0).Chunk(event.SerializeAsString());
  Ask(&raw);
  v1::TokenDelta* token = event.mutable_tokens()->add_tokens();
  token->set_attempt_id(1);
  token->set_token_id(9);
  token->set_text("x");
  RouterStep(&raw, 1, 7).Byte(0).Chunk(event.SerializeAsString());
  v1::AttemptFailure* failed = event.mutable_failed();
  failed->set_attempt_id(1);
  failed->set_code(14);
  failed->set_message("gone");
  failed->set_retryable(true);
  RouterStep(&raw, 1, 7).Byte(0).Chunk(event.SerializeAsString());
  corpus->Add("router_events", "raw", raw);
}

transfer::Message SomeMessage(transfer::MessageBody body) {
  transfer::Message message;
  message.key.landing = LandingId(77);
  message.key.transfer = TransferId(3);
  message.key.nonce.fill(std::byte{'n'});
  const bool to_holder = std::holds_alternative<transfer::Ack>(body) ||
                         std::holds_alternative<transfer::Refusal>(body);
  message.recipient =
      to_holder ? transfer::Recipient::kHolder : transfer::Recipient::kReceiver;
  message.body = std::move(body);
  return message;
}

void AddWire(Corpus* corpus) {
  transfer::Begin begin;
  begin.epoch = WorkerEpoch(2);
  begin.token_count = 40;
  begin.block_count = 3;
  begin.block_bytes = 256;
  const std::vector<transfer::MessageBody> bodies = {
      begin,
      transfer::Frame{1, 2, 0, 2, 8},
      transfer::SealMark{3},
      transfer::Ack{3},
      transfer::AbortNotice{absl::StatusCode::kCancelled, "enough"},
      transfer::AbortAck{},
      transfer::Refusal{absl::StatusCode::kNotFound, "no such landing"}};
  for (size_t i = 0; i < bodies.size(); ++i) {
    const bool payload = i == 1 || i == 2;
    const std::string data = payload ? "payload" : "";
    const transfer::EncodedHeader header = transfer::EncodeHeader(
        SomeMessage(bodies[i]),
        {reinterpret_cast<const std::byte*>(data.data()), data.size()});
    corpus->Add("wire", StrCat("raw_", i),
                Seed()
                    .Byte(0)
                    .Byte(static_cast<int>(data.size()))
                    .Bytes(data)
                    .Bytes({reinterpret_cast<const char*>(header.bytes.data()),
                            header.size}));
    corpus->Add("wire", StrCat("encoded_", i),
                Seed()
                    .Byte(1)
                    .Number<uint64_t>(5)
                    .Number<uint64_t>(6)
                    .Byte(1)
                    .Byte(static_cast<int>(i))
                    .Bytes(std::string(60, '\x03')));
  }
  v1::Ticket ticket;
  ticket.set_landing_id(77);
  ticket.set_nonce(std::string(16, 'n'));
  ticket.set_worker_epoch(2);
  ticket.set_transport("fake");
  ticket.set_address("peer");
  ticket.set_fingerprint(std::string(32, 'f'));
  ticket.set_token_count(40);
  ticket.set_held_tokens(16);
  ticket.set_block_count(3);
  ticket.set_timeout_ms(1000);
  corpus->Add("wire", "ticket",
              Seed().Byte(2).Bytes(ticket.SerializeAsString()));
}

void AddTransfers(Corpus* corpus) {
  for (const int held : {0, 1}) {
    Seed receiving;
    receiving.Byte(0).Byte(held);
    // kind, link, landing, transfer, nonce, landing id, spoiled
    const auto speak = [&](int kind) -> Seed& {
      receiving.Byte(kind);
      if (kind != 10) receiving.Byte(0);  // a second link?
      return receiving.Byte(0).Byte(0).Byte(0).Byte(0).Byte(0).Byte(0);
    };
    speak(10).Byte(0).Byte(0).Byte(0).Byte(0).Byte(0);
    for (int ordinal = held; ordinal < 3; ++ordinal) {
      speak(11).Byte(ordinal).Byte(100 + ordinal).Byte(0).Byte(ordinal).Byte(0);
      receiving.Byte(0).Byte(0);
    }
    speak(14).Byte(7).Byte(0).Byte(0).Byte(0);
    for (int i = 0; i < 6; ++i) receiving.Byte(0).Byte(5).Byte(0);
    corpus->Add("transfer", StrCat("verified_held_", held), receiving);
  }
  Seed holding;
  holding.Byte(1);
  for (int i = 0; i < 4; ++i) holding.Byte(8).Byte(0);
  for (int i = 0; i < 5; ++i) holding.Byte(0).Byte(5).Byte(0);
  // kind, transfer, a second link?, link, nonce, landing id, ACK, blocks,
  // spoiled
  holding.Byte(15).Byte(0).Byte(0).Byte(0).Byte(0).Byte(0);
  holding.Byte(3).Byte(0).Byte(0).Byte(0);
  for (int i = 0; i < 3; ++i) holding.Byte(0).Byte(5).Byte(0);
  corpus->Add("transfer", "acknowledged", holding);
}

void AddPools(Corpus* corpus) {
  Seed seed;
  seed.Byte(8);
  seed.Byte(0).Byte(5).Byte(1);                                  // landing
  seed.Byte(6).Byte(3).Byte(0).Byte(1).Byte(2).Byte(1).Byte(3);  // running
  seed.Byte(2).Byte(2).Byte(0).Byte(1).Byte(4);                  // prefix too
  seed.Byte(4).Byte(2).Byte(0).Byte(1).Byte(3);                  // no longer
  seed.Byte(4).Byte(1).Byte(0).Byte(4);
  seed.Byte(0).Byte(3).Byte(3);
  seed.Byte(4).Byte(1).Byte(0).Byte(3);  // stale
  corpus->Add("block_pool", "lifecycle", seed);

  Seed cache;
  cache.Byte(11);                                 // blocks of the pool: 12
  cache.Byte(0).Byte(2).Byte(0).Byte(1).Byte(2);  // keep 0 1 2
  cache.Byte(0).Byte(1).Byte(0).Byte(2);          // and 0 2
  cache.Byte(3).Byte(1).Byte(0).Byte(1).Byte(0);  // find 0 1, and no longer
  cache.Byte(5).Byte(0).Byte(1).Byte(0).Byte(2);  // send 0 2
  cache.Byte(7).Byte(1).Byte(12);                 // all the room there is
  cache.Byte(6).Byte(0);                          // sent
  corpus->Add("prefix_cache", "lifecycle", cache);
}

}  // namespace

void WriteMessageSeeds(Corpus* corpus) {
  AddRequests(corpus);
  AddPrefillCommands(corpus);
  AddDecodeCommands(corpus);
  AddRouterEvents(corpus);
  AddWire(corpus);
  AddTransfers(corpus);
  AddPools(corpus);
}

}  // namespace baton::fuzz

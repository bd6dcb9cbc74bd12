// Seeds made of model files, templates, text and configuration.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/strings.h"
#include "tests/fuzz/seed_writer.h"
#include "tests/fuzz/tiny_tokenizer.h"
#include "tests/support/block_quantizer.h"
#include "tests/support/gguf_writer.h"

namespace baton::fuzz {
namespace {

// ---- gguf ----

// A complete model of about `width` values per row.
std::string SmallModel(uint32_t type, uint32_t width, bool extras) {
  const uint32_t heads = 2;
  const uint32_t head_dim = width / heads;
  const uint32_t vocabulary = 4;
  GgufWriter writer;
  writer.AddString("general.architecture", "llama");
  writer.AddString("general.name", "small");
  writer.AddUint32("llama.block_count", 1);
  writer.AddUint32("llama.context_length", 64);
  writer.AddUint32("llama.embedding_length", width);
  writer.AddUint32("llama.feed_forward_length", width);
  writer.AddUint32("llama.attention.head_count", heads);
  writer.AddUint32("llama.attention.head_count_kv", 1);
  writer.AddFloat32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  if (extras) {
    writer.AddFloat32("llama.rope.freq_base", 5000);
    writer.AddUint32("llama.rope.dimension_count", head_dim);
    writer.AddUint32("llama.attention.key_length", head_dim);
    writer.AddUint32("general.alignment", 32);
    writer.AddBool("flag", true);
    writer.AddUint64("big", uint64_t{1} << 40);
    writer.AddFloat32s("scores", {0.5f, -1.0f});
  }
  writer.AddUint32("llama.vocab_size", vocabulary);
  const std::vector<std::string> tokens = {"<s>", "a", "b", "ab"};
  writer.AddStrings("tokenizer.ggml.tokens", tokens);
  writer.AddInt32s("tokenizer.ggml.token_type", {3, 1, 1, 1});
  const auto values = [](uint32_t count) {
    std::vector<float> row(count);
    for (uint32_t i = 0; i < count; ++i) {
      row[i] = 0.01f * static_cast<float>((i * 7) % 41) - 0.2f;
    }
    return row;
  };
  const auto matrix = [&](const std::string& name, uint32_t rows) {
    writer.AddTensor(name, {width, rows}, type,
                     EncodeTensor(type, values(rows * width)));
  };
  const auto norm = [&](const std::string& name) {
    writer.AddTensor(name, {width}, kGgmlF32,
                     EncodeTensor(kGgmlF32, values(width)));
  };
  matrix("token_embd.weight", vocabulary);
  norm("blk.0.attn_norm.weight");
  matrix("blk.0.attn_q.weight", width);
  matrix("blk.0.attn_k.weight", head_dim);
  matrix("blk.0.attn_v.weight", head_dim);
  matrix("blk.0.attn_output.weight", width);
  norm("blk.0.ffn_norm.weight");
  matrix("blk.0.ffn_gate.weight", width);
  matrix("blk.0.ffn_up.weight", width);
  matrix("blk.0.ffn_down.weight", width);
  norm("output_norm.weight");
  if (extras) matrix("output.weight", vocabulary);
  return writer.Serialize();
}

void AddModels(Corpus* corpus) {
  corpus->Add("gguf", "f32", SmallModel(kGgmlF32, 4, false));
  corpus->Add("gguf", "f32_extras", SmallModel(kGgmlF32, 8, true));
  corpus->Add("gguf", "q4_1", SmallModel(kGgmlQ4_1, 32, false));
  corpus->Add("gguf", "q8_0", SmallModel(kGgmlQ8_0, 32, true));
  corpus->Add("gguf", "empty", GgufWriter().Serialize());
}

// ---- text ----

void AddTokenizers(Corpus* corpus) {
  corpus->Add(
      "tokenizer", "tiny",
      Seed().Byte(0).Number<uint16_t>(6).Number<uint16_t>(18).Bytes(
          "hello <|im_start|> the and\n\nthere 12 \xc3\xa9\xe2\x82\xac"));
  corpus->Add("tokenizer", "tiny_invalid",
              Seed().Byte(0).Number<uint16_t>(0).Number<uint16_t>(2).Bytes(
                  "hell\xff\xc3"));
  const std::string_view types("\x01\x01\x01\x03\x04", 5);
  for (int rules = 0; rules < 4; ++rules) {
    corpus->Add("tokenizer", StrCat("vocabulary_", rules),
                Seed()
                    .Byte(1)
                    .Byte(1 + 8 + 32)
                    .Chunk("he\nll\nhell\n<end>\n<user>\n")
                    .Chunk(types)
                    .Chunk("h e\nl l\nhe ll\n")
                    .Byte(rules)
                    .Number<uint16_t>(259)
                    .Number<uint16_t>(259)
                    .Number<uint16_t>(3)
                    .Number<uint16_t>(1)
                    .Number<uint16_t>(9)
                    .Bytes("hello <end> it's <user> 123 \t\n "));
  }
  corpus->Add("tokenizer", "few_tokens",
              Seed()
                  .Byte(1)
                  .Byte(0)
                  .Chunk("a\nb\nab\n")
                  .Chunk("\x01\x01\x01")
                  .Chunk("a b\n")
                  .Byte(0)
                  .Number<uint16_t>(0)
                  .Number<uint16_t>(3)
                  .Bytes("abcab"));
}

void AddTemplates(Corpus* corpus) {
  const std::vector<std::string> sources = {
      TinyChatTemplate(),
      "{{ bos_token }}{% for m in messages %}{% if loop.first and m.role != "
      "'system' %}{{ 'You help.' }}{% elif m['role'] == 'tool' %}{{ m.content "
      "| trim | upper }}{% else %}{{ loop.index0 ~ ': ' ~ m.content }}{% endif "
      "%}{% endfor %}",
      "{%- set ns = namespace(found=false) -%}{% for m in messages if "
      "m.content "
      "is string %}{% set ns.found = true %}{{ "
      "m.content.split('x')[-1].strip() "
      "}}{% endfor %}{{ ns.found | tojson }}{{ eos_token }}",
      "{% macro turn(m, n=2) %}[{{ m.role }}]{{ m.content[:n] }}{% endmacro "
      "%}{{ turn(messages[0], n=5) }}{{ messages | map(attribute='role') | "
      "join("
      "', ') }}{{ messages | selectattr('role', 'equalto', 'user') | list | "
      "length }}",
      "{% if not messages %}{{ raise_exception('no messages') }}{% endif %}{{ "
      "(1 + 2 * 3 // 4 % 5) ** 2 - 1.5 }}{{ messages | tojson(indent=2) }}{{ "
      "'a' in messages[0].content and none is none or {'k': [1, 2]}['k'][0] }}",
  };
  for (size_t i = 0; i < sources.size(); ++i) {
    corpus->Add("chat_template", StrCat("template_", i),
                Seed()
                    .Chunk(sources[i])
                    .Byte(7)
                    .Byte(3)
                    .Byte(0)
                    .Chunk("Be short.")
                    .Byte(1)
                    .Chunk("Hi <|im_end|> x \xc3\xa9")
                    .Byte(3)
                    .Chunk(" 42 "));
  }
}

void AddTextStreams(Corpus* corpus) {
  corpus->Add(
      "text_stream", "plain",
      Seed().Byte(0).Byte(5).Bytes("hello").Byte(3).Bytes("\xe2\x82\xac"));
  corpus->Add("text_stream", "split_code_point",
              Seed()
                  .Byte(0)
                  .Byte(2)
                  .Bytes("\xe2\x82")
                  .Byte(1)
                  .Bytes("\xac")
                  .Byte(2)
                  .Bytes("\xf0\x9f"));
  corpus->Add("text_stream", "stops",
              Seed()
                  .Byte(2)
                  .Byte(3)
                  .Bytes("end")
                  .Byte(4)
                  .Bytes("eend")
                  .Byte(4)
                  .Bytes("an e")
                  .Byte(224 + 3)
                  .Bytes("end")
                  .Byte(6)
                  .Bytes(" eend!"));
}

void AddConfigs(Corpus* corpus) {
  corpus->Add("config", "flags",
              Seed()
                  .Byte(2)
                  .Chunk("--threads\n8\n--kv-pool\n512MiB\n--insecure\nword\n"
                         "--worker\n127.0.0.1:1,[::1]:2\n-t\n3\n--timeout=1.5s")
                  .Chunk(""));
  corpus->Add("config", "variables",
              Seed().Byte(4).Chunk("").Chunk(
                  "BATON_NAME=a\nBATON_THREADS=3\nBATON_POLICY="
                  "round_robin\nBATON_GRACE=0\nBATON_INSECURE=true"));
  corpus->Add(
      "config", "file",
      Seed()
          .Byte(1)
          .Chunk("--policy\nround_robin")
          .Chunk("")
          .Bytes("name = \"x\"\nthreads = 4\npath = [\"a\", \"b\"]\n"
                 "fraction = 0.25\ninsecure = true\nlisten = \"[::1]:7\"\n"
                 "# comment\nworker = \"h:1\"\ntop_k = -1\n"));
  corpus->Add("config", "wrong",
              Seed()
                  .Byte(1)
                  .Chunk("--treads\n8\n--threads\n0\n--kv-pool\n10GBB")
                  .Chunk("BATON_LISTEN=:70000")
                  .Bytes("[section]\nkey = 1\nname = 1\nname = 2\n"));
  int number = 0;
  for (const std::string_view text :
       {"512MiB", "1.5GiB", "30s", "1.5s", "0", "127.0.0.1:7000",
        "[fe80::7]:4791", "ucx:10.0.0.7:4791", "ucx:[fe80::7]:4791",
        "a:1, b:2,[::1]:3", "a:1,[\vb]:2", "1281023.0h",
        "\xe2\x82\xac\xf0\x9f\x98\x80\xed\xa0\x80", "Bearer baton-x",
        "tenant-a "
        "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "{\"address\": \"127.0.0.1:4\", \"admin\": \"\\u0007\\\"\\n\"}"}) {
    corpus->Add("text_values", StrCat("text_", number++), text);
  }
}

}  // namespace

void WriteTextSeeds(Corpus* corpus) {
  AddModels(corpus);
  AddTokenizers(corpus);
  AddTemplates(corpus);
  AddTextStreams(corpus);
  AddConfigs(corpus);
}

}  // namespace baton::fuzz

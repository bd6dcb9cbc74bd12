#include "tests/fuzz/tiny_tokenizer.h"

#include "common/base/check.h"
#include "common/model_file/gguf.h"
#include "tests/support/tiny_model.h"

namespace baton::fuzz {
namespace {

const std::string& TinyFile() {
  static const std::string& bytes =
      *new std::string(TinyModel(TinyModelOptions{.layers = 1}).Serialize());
  return bytes;
}

std::unique_ptr<GgufFile> ParseTinyFile() {
  auto file =
      GgufFile::Parse({reinterpret_cast<const std::byte*>(TinyFile().data()),
                       TinyFile().size()},
                      "tiny");
  BATON_CHECK(file.ok());
  return *std::move(file);
}

}  // namespace

std::unique_ptr<Tokenizer> MakeTinyTokenizer() {
  auto tokenizer = Tokenizer::FromGguf(*ParseTinyFile());
  BATON_CHECK(tokenizer.ok());
  return *std::move(tokenizer);
}

const Tokenizer& TinyTokenizer() {
  static const Tokenizer& tokenizer = *MakeTinyTokenizer().release();
  return tokenizer;
}

std::string TinyChatTemplate() {
  return std::string(*ParseTinyFile()->String("tokenizer.chat_template"));
}

}  // namespace baton::fuzz

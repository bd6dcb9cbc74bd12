// Writes the seeds of every fuzzer, made from real files and messages.
//
// usage: make_fuzz_corpus tests/fuzz/corpus
//
// Inputs that once made a fuzzer fail lie beside them as crash_*; they stay.
#include <cstdio>

#include "tests/fuzz/seed_writer.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_fuzz_corpus FOLDER\n");
    return 2;
  }
  baton::fuzz::Corpus corpus(argv[1]);
  baton::fuzz::WriteTextSeeds(&corpus);
  baton::fuzz::WriteMessageSeeds(&corpus);
  return 0;
}

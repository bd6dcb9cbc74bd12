#include "tests/load/mixed_requests.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace baton::testing {
namespace {

constexpr const char* kQuestions[] = {
    "Why is the sky blue?",
    "Name three rivers in Europe.",
    "Write two sentences about autumn.",
    "What does a compiler do?",
    "How do I boil an egg?",
};
constexpr char kParagraph[] =
    "The lighthouse keeper counted the ships each evening. On clear days he "
    "saw twelve or more, and on foggy ones he listened for their horns. He "
    "wrote every name into a book with a blue cover, and at the end of the "
    "year he sent the book to the harbour office in the town.";

constexpr int32_t kStoryTokens = 320;
constexpr int kStorySeeds = 16;

v1::GenerateRequest Chat(int i, int32_t max_tokens) {
  v1::GenerateRequest request;
  v1::ChatMessage* message = request.mutable_chat()->add_messages();
  message->set_role("user");
  message->set_content(kQuestions[i % std::size(kQuestions)]);
  request.set_max_tokens(max_tokens);
  request.mutable_sampling()->set_temperature(0.7f);
  request.mutable_sampling()->set_top_p(0.9f);
  request.mutable_sampling()->set_seed(static_cast<uint64_t>(i) + 1);
  return request;
}

// Most of the answer stands in the prompt.
v1::GenerateRequest Copying(int i) {
  v1::GenerateRequest request;
  request.set_text(absl::StrCat("Text ", i, ": ", kParagraph,
                                "\n\nThe same text again: ", kParagraph,
                                "\n\nThe same text again:"));
  request.set_max_tokens(64);
  request.mutable_sampling()->set_temperature(0);
  return request;
}

// Goes on for long, though nobody knows that before.
v1::GenerateRequest Story(int i) {
  v1::GenerateRequest request;
  request.set_text(absl::StrCat("Chapter ", i + 1, ". ", kParagraph,
                                " One winter night the lamp went out, and"));
  request.set_max_tokens(kStoryTokens);
  request.mutable_sampling()->set_temperature(1);
  request.mutable_sampling()->set_top_p(0.95f);
  return request;
}

// Three letters from the middle of the text on.
std::string StopStringFrom(const std::string& text) {
  const auto letter = [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0;
  };
  for (size_t i = text.size() / 2; i + 3 <= text.size(); ++i) {
    if (std::all_of(text.begin() + static_cast<ptrdiff_t>(i),
                    text.begin() + static_cast<ptrdiff_t>(i) + 3, letter)) {
      return text.substr(i, 3);
    }
  }
  return "";
}

absl::Status Lacks(const PlannedRequest& planned, const char* what) {
  return absl::InternalError(absl::StrCat(planned.kind, ": no ", what));
}

class Planner {
 public:
  explicit Planner(ProcessCluster* cluster) : cluster_(cluster) {}

  absl::StatusOr<PlannedRequest> Plan(const char* kind,
                                      v1::GenerateRequest request) {
    PlannedRequest planned{kind, std::move(request), {}};
    planned.answer = cluster_->Generate(planned.request);
    if (!planned.answer.status.ok()) {
      return absl::InternalError(absl::StrCat(
          kind, ": ", planned.answer.status.ToString(), " when quiet"));
    }
    if (planned.answer.tokens.empty()) return Lacks(planned, "tokens");
    return planned;
  }

  // With the first seed whose story does not come to an end soon.
  absl::StatusOr<PlannedRequest> PlanStory(int i) {
    v1::GenerateRequest request = Story(i);
    absl::StatusOr<PlannedRequest> planned;
    for (int seed = 0; seed < kStorySeeds; ++seed) {
      request.mutable_sampling()->set_seed(
          static_cast<uint64_t>(kStorySeeds * i + seed));
      planned = Plan("long answer", request);
      if (!planned.ok()) return planned;
      if (planned->answer.tokens.at(0).size() > kStoryTokens / 2) {
        return planned;
      }
    }
    return Lacks(*planned, "answer that is long");
  }

  absl::StatusOr<PlannedRequest> PlanStop(int i) {
    v1::GenerateRequest request = Chat(i, 48);
    BATON_ASSIGN_OR_RETURN(const PlannedRequest whole,
                           Plan("stop string", request));
    const std::string stop = StopStringFrom(whole.answer.text.at(0));
    if (stop.empty()) return Lacks(whole, "letters in the middle");
    request.add_stop(stop);
    BATON_ASSIGN_OR_RETURN(PlannedRequest planned,
                           Plan("stop string", std::move(request)));
    if (planned.answer.finish.at(0).stop_string() != stop) {
      return Lacks(planned, "end at its stop string");
    }
    return planned;
  }

  // The one of three that has the highest mean logprob.
  absl::StatusOr<PlannedRequest> PlanBest(int i) {
    v1::GenerateRequest request = Chat(i, 24);
    request.set_n(3);
    request.set_logprobs(0);
    BATON_ASSIGN_OR_RETURN(const PlannedRequest all,
                           Plan("best of three", request));
    uint32_t best = 0;
    double highest = 0;
    for (const auto& [choice, logprobs] : all.answer.logprobs) {
      double mean = 0;
      for (const float logprob : logprobs) mean += logprob;
      mean /= static_cast<double>(logprobs.size());
      if (choice > 0 && mean <= highest) continue;
      best = choice;
      highest = mean;
    }
    request.set_n(1);
    request.set_best_of(3);
    request.clear_logprobs();
    BATON_ASSIGN_OR_RETURN(PlannedRequest planned,
                           Plan("best of three", std::move(request)));
    const Answer& answer = planned.answer;
    if (answer.tokens.size() != 1 ||
        answer.tokens.at(0) != all.answer.tokens.at(best) ||
        !answer.logprobs.empty()) {
      return Lacks(planned, "answer that is the best of three");
    }
    if (answer.usage.completion_tokens() !=
        all.answer.usage.completion_tokens()) {
      return Lacks(planned, "usage of all three");
    }
    return planned;
  }

 private:
  ProcessCluster* const cluster_;
};

}  // namespace

absl::StatusOr<std::vector<PlannedRequest>> PlanMixedRequests(
    ProcessCluster* cluster, int each) {
  Planner planner(cluster);
  std::vector<PlannedRequest> plans;
  const auto add = [&](absl::StatusOr<PlannedRequest> planned) {
    if (planned.ok()) plans.push_back(*std::move(planned));
    return planned.status();
  };
  // They make up much of what is decoded at any time.
  int stories = 0;
  const auto add_story = [&] { return add(planner.PlanStory(stories++)); };
  for (int i = 0; i < each; ++i) {
    const auto seed = static_cast<uint64_t>(i) + 11;
    BATON_RETURN_IF_ERROR(add(planner.Plan("chat", Chat(i, 64))));
    BATON_RETURN_IF_ERROR(add(planner.Plan(
        "long prompt", FixedRequest(900 + 400 * (i % 3), 24, seed))));
    BATON_RETURN_IF_ERROR(add_story());
    v1::GenerateRequest four = FixedRequest(70 + 30 * i, 32, seed);
    four.set_n(4);
    BATON_RETURN_IF_ERROR(add(planner.Plan("four choices", std::move(four))));
    if (plans.back().answer.tokens.size() != 4) {
      return Lacks(plans.back(), "four choices");
    }
    BATON_RETURN_IF_ERROR(add(planner.PlanStop(i)));
    BATON_RETURN_IF_ERROR(add_story());
    BATON_RETURN_IF_ERROR(add(planner.PlanBest(i)));
    v1::GenerateRequest logprobs = Chat(i + 1, 32);
    logprobs.set_logprobs(5);
    BATON_RETURN_IF_ERROR(add(planner.Plan("logprobs", std::move(logprobs))));
    if (plans.back().answer.logprobs.empty()) {
      return Lacks(plans.back(), "logprobs");
    }
    BATON_RETURN_IF_ERROR(add_story());
    BATON_RETURN_IF_ERROR(add(planner.Plan("copying", Copying(i))));
    BATON_RETURN_IF_ERROR(add(
        planner.Plan("sampled with penalties", FixedRequest(20, 100, seed))));
  }
  for (size_t i = 0; i < plans.size(); ++i) {
    plans[i].request.set_priority(static_cast<int32_t>(i % 3));
  }
  return plans;
}

}  // namespace baton::testing

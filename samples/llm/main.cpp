// Generates tokens by libllm, which aotc has built of model.py's program: no Python, no framework.
//
//   llm [--count N] [--temperature T] [--top-k K] [--seed S] PROMPT...
//
// A prompt is a list of tokens, 1,5,7. Each has a sequence of its own, with its own state: they
// take turns, token by token. Prints the N tokens that follow each prompt, and to stderr how many
// were computed in a second. A temperature of 0 (the default) takes the likeliest token.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "llm.h"
#include "sizes.h"

namespace {

struct Options {
  int count = 16;
  double temperature = 0;
  int top_k = 40;
  unsigned seed = 0;
  std::vector<std::vector<std::int64_t>> prompts;
};

// Chooses tokens by their logits.
class Sampler {
public:
  Sampler(const Options &options, unsigned number)
      : temperature_(options.temperature), top_k_(std::clamp(options.top_k, 1, kVocabulary)),
        random_(options.seed + number) {
  }

  std::int64_t choose(const std::vector<float> &logits) {
    if (temperature_ <= 0) {
      return std::max_element(logits.begin(), logits.end()) - logits.begin();
    }
    std::vector<std::int64_t> tokens(logits.size());
    std::iota(tokens.begin(), tokens.end(), 0);
    const auto logit = [&](std::int64_t token) { return logits[static_cast<std::size_t>(token)]; };
    std::partial_sort(tokens.begin(), tokens.begin() + top_k_, tokens.end(),
                      [&](auto a, auto b) { return logit(a) > logit(b); });
    tokens.resize(static_cast<std::size_t>(top_k_));
    std::vector<double> weights;
    for (const std::int64_t token : tokens) {
      const double difference = static_cast<double>(logit(token) - logit(tokens.front()));
      weights.push_back(std::exp(difference / temperature_));
    }
    std::discrete_distribution<std::size_t> choice(weights.begin(), weights.end());
    return tokens[choice(random_)];
  }

private:
  double temperature_;
  int top_k_;
  std::mt19937 random_;
};

// A prompt and what follows it. Keys and values of its tokens are in its state, on the device.
class Sequence {
public:
  Sequence(const Options &options, unsigned number)
      : tokens_(options.prompts[number]), prompt_(tokens_.size()), logits_(kVocabulary),
        sampler_(options, number) {
    llm_state *state = nullptr;
    check(llm_state_create(&state));
    state_.reset(state);
  }

  // Computes the next token's logits; behind the prompt, takes one for the next token.
  void advance() {
    check(llm(state_.get(), &tokens_[done_], &position_, logits_.data()));
    ++position_;
    if (++done_ == tokens_.size()) {
      tokens_.push_back(sampler_.choose(logits_));
    }
  }

  std::size_t generated() const {
    return tokens_.size() - prompt_;
  }

  void print() const {
    for (std::size_t i = prompt_; i < tokens_.size(); ++i) {
      std::printf("%s%lld", i == prompt_ ? "" : ",", static_cast<long long>(tokens_[i]));
    }
    std::printf("\n");
  }

private:
  struct Free {
    void operator()(llm_state *state) const {
      llm_state_free(state);
    }
  };

  static void check(std::int32_t status) {
    if (status != AOTC_OK) {
      throw std::runtime_error(llm_last_error());
    }
  }

  std::unique_ptr<llm_state, Free> state_;
  std::vector<std::int64_t> tokens_;
  std::size_t prompt_;
  std::size_t done_ = 0;
  std::int64_t position_ = 0;
  std::vector<float> logits_;
  Sampler sampler_;
};

std::vector<std::int64_t> parse_tokens(const std::string &text) {
  std::vector<std::int64_t> tokens;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    std::size_t length = 0;
    const long long token = word.empty() ? -1 : std::stoll(word, &length);
    if (length != word.size() || token < 0 || token >= kVocabulary) {
      throw std::runtime_error("'" + word + "' is no token: they are numbers from 0 to " +
                               std::to_string(kVocabulary - 1));
    }
    tokens.push_back(token);
    begin = end + 1;
  }
  return tokens;
}

Options parse(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--", 0) != 0) {
      options.prompts.push_back(parse_tokens(word));
      continue;
    }
    if (i + 1 == argc) {
      throw std::runtime_error(word + " needs a value");
    }
    const std::string value = argv[++i];
    if (word == "--count") {
      options.count = std::stoi(value);
    } else if (word == "--temperature") {
      options.temperature = std::stod(value);
    } else if (word == "--top-k") {
      options.top_k = std::stoi(value);
    } else if (word == "--seed") {
      options.seed = static_cast<unsigned>(std::stoul(value));
    } else {
      throw std::runtime_error("there is no option " + word);
    }
  }
  if (options.prompts.empty()) {
    throw std::runtime_error("usage: llm [--count N] [--temperature T] [--top-k K] [--seed S] "
                             "PROMPT...");
  }
  for (const auto &prompt : options.prompts) {
    if (static_cast<long>(prompt.size()) + options.count > kLength + 1L) {
      throw std::runtime_error("a sequence has at most " + std::to_string(kLength) + " tokens");
    }
  }
  return options;
}

void generate(const Options &options) {
  std::vector<Sequence> sequences;
  for (unsigned number = 0; number < options.prompts.size(); ++number) {
    sequences.emplace_back(options, number);
  }
  const auto begin = std::chrono::steady_clock::now();
  int computed = 0;
  for (bool is_done = false; !is_done;) {
    is_done = true;
    for (Sequence &sequence : sequences) {
      if (sequence.generated() < static_cast<std::size_t>(options.count)) {
        sequence.advance();
        ++computed;
        is_done = false;
      }
    }
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  for (const Sequence &sequence : sequences) {
    sequence.print();
  }
  std::fprintf(stderr, "%.1f tokens/s\n", computed / taken.count());
}

} // namespace

int main(int argc, char **argv) {
  try {
    generate(parse(argc, argv));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "llm: %s\n", error.what());
    return 1;
  }
  return 0;
}

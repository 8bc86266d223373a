#include "models/synth/vocabulary.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

namespace twill::models::synth {
namespace {

constexpr std::string_view letters = "etaoinshrdlucmfwygpbvkxjqz"; // by frequency in English
constexpr int n_letters = 26;
constexpr int n_pairs = n_letters * n_letters;

/// Calls `visit` with all (i, j), 0 <= i, j < n, by ascending i + j, until `visit` returns false.
template <class Visit>
bool diagonal(int n, const Visit& visit) {
  for (int sum = 0; sum <= 2 * (n - 1); ++sum)
    for (int i = std::max(0, sum - n + 1); i <= std::min(sum, n - 1); ++i)
      if (!visit(i, sum - i)) return false;
  return true;
}

/// Makes the first `count` merges; `space` is the spelling of a space in pieces.
std::vector<std::pair<std::string, std::string>> make_merges(std::size_t count,
                                                             const std::string& space) {
  std::vector<std::pair<std::string, std::string>> merges;
  merges.reserve(count);
  const auto add = [&](std::string left, std::string right) {
    if (merges.size() == count) return false;
    merges.emplace_back(std::move(left), std::move(right));
    return true;
  };
  const auto letter = [](int i) { return std::string(1, letters[static_cast<std::size_t>(i)]); };
  for (int i = 0; i < n_letters; ++i)
    if (!add(space, letter(i))) return merges;
  std::vector<std::string> pairs;
  pairs.reserve(n_pairs);
  diagonal(n_letters, [&](int i, int j) {
    pairs.push_back(letter(i) + letter(j));
    return add(letter(i), letter(j));
  });
  if (merges.size() == count) return merges;
  for (const std::string& pair : pairs)
    if (!add(space, pair)) return merges;
  diagonal(n_pairs, [&](int i, int j) {
    const std::string& a = pairs[static_cast<std::size_t>(i)];
    const std::string& b = pairs[static_cast<std::size_t>(j)];
    return add(a, b) && add(space, a + b);
  });
  return merges;
}

class builder {
public:
  explicit builder(const recipe& r) : r_(r), made_(special_ids(r)) {}

  vocabulary build() {
    switch (r_.text) {
    case text_kind::gpt2_files:
      return byte_level({"<s>", "<pad>", "</s>", "<unk>"}, {});
    case text_kind::smollm_json:
      return byte_level({"<|endoftext|>", "<|im_start|>", "<|im_end|>"}, {});
    case text_kind::qwen_json:
      return byte_level({}, {"<|endoftext|>", "<|im_start|>", "<|im_end|>"});
    case text_kind::llama3_json:
      return byte_level({}, llama3_specials());
    case text_kind::tiktoken:
      return byte_level({}, qwen_specials());
    case text_kind::sentence_piece:
      return sentence_piece(0, r_.chatml ? std::vector<std::string>{"<|im_end|>", "<|im_start|>"}
                                         : std::vector<std::string>{});
    case text_kind::chatglm:
      return sentence_piece(0, {"[MASK]", "[gMASK]", "[sMASK]", "sop", "eop", "<|system|>",
                                "<|user|>", "<|assistant|>", "<|observation|>"});
    case text_kind::baichuan:
      return sentence_piece(196, {});
    }
    return {};
  }

private:
  static std::vector<std::string> qwen_specials() {
    std::vector<std::string> all = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    for (int i = 0; i < 205; ++i)
      all.push_back("<|extra_" + std::to_string(i) + "|>");
    return all;
  }

  std::vector<std::string> llama3_specials() const {
    const std::int32_t n = r_.vocab_size - made_.n_base;
    std::vector<std::string> all;
    for (std::int32_t i = 0; i < n; ++i)
      all.push_back("<|reserved_special_token_" + std::to_string(i) + "|>");
    all[0] = "<|begin_of_text|>";
    all[1] = "<|end_of_text|>";
    all[6] = "<|start_header_id|>";
    all[7] = "<|end_header_id|>";
    all[9] = "<|eot_id|>";
    return all;
  }

  void add(std::string text, piece_type type = piece_type::normal) {
    made_.pieces.push_back({std::move(text), type});
  }

  void add_merges(const std::string& space) {
    made_.merges =
        make_merges(static_cast<std::size_t>(std::max<std::int64_t>(
                        0, made_.n_base - static_cast<std::int64_t>(made_.pieces.size()))),
                    space);
    for (const auto& [left, right] : made_.merges)
      add(left + right);
  }

  vocabulary byte_level(const std::vector<std::string>& before,
                        const std::vector<std::string>& after) {
    for (const std::string& text : before)
      add(text, piece_type::control);
    for (int b = 0; b < 256; ++b)
      add(std::string(1, static_cast<char>(b)));
    add_merges(" ");
    for (const std::string& text : after)
      add(text, piece_type::control);
    return std::move(made_);
  }

  /// Makes the pieces in the order of published models: control, reserved, bytes, the rest.
  vocabulary sentence_piece(int n_reserved, const std::vector<std::string>& after) {
    const std::string space = "\xe2\x96\x81"; // U+2581
    add("<unk>", piece_type::unknown);
    add("<s>", piece_type::control);
    add("</s>", piece_type::control);
    for (int i = 0; i < n_reserved; ++i)
      add(i < 86 ? "<fill_" + std::to_string(i) + ">" : "<reserved_" + std::to_string(i - 86) + ">",
          piece_type::user_defined);
    for (int b = 0; b < 256; ++b) {
      std::array<char, 8> text;
      std::snprintf(text.data(), text.size(), "<0x%02X>", static_cast<unsigned>(b));
      add(text.data(), piece_type::byte);
    }
    add(space);
    for (const char c : letters)
      add(std::string(1, c));
    for (char c = '!'; c <= '~' && room(); ++c)
      if (c < 'a' || c > 'z') add(std::string(1, c));
    add_merges(space);
    for (const std::string& text : after)
      add(text, piece_type::control);
    return std::move(made_);
  }

  bool room() const { return static_cast<std::int64_t>(made_.pieces.size()) < made_.n_base; }

  const recipe& r_;
  vocabulary made_;
};

} // namespace

bool is_byte_level(text_kind kind) {
  return kind != text_kind::sentence_piece && kind != text_kind::chatglm &&
         kind != text_kind::baichuan;
}

vocabulary make_vocabulary(const recipe& r) {
  return builder(r).build();
}

vocabulary special_ids(const recipe& r) {
  vocabulary v;
  const std::int32_t n = r.vocab_size;
  switch (r.text) {
  case text_kind::gpt2_files:
    v.n_base = n == 50272 ? 50265 : n; // OPT's embedding is padded
    v.bos = v.eos = 2;
    v.pad = 1;
    break;
  case text_kind::smollm_json:
    v.n_base = n;
    v.bos = 1;
    v.eos = v.pad = 2;
    break;
  case text_kind::qwen_json:
    v.n_base = n >= 151936 ? 151643 : n - 16;
    v.bos = v.pad = v.n_base;
    v.eos = v.n_base + 2;
    break;
  case text_kind::llama3_json:
    v.n_base = n - (n >= 4096 ? 256 : 16);
    v.bos = v.n_base;
    v.eos = v.n_base + 1;
    break;
  case text_kind::tiktoken:
    v.n_base = n >= 151936 ? 151643 : n - 240;
    v.eos = v.pad = v.n_base;
    break;
  case text_kind::sentence_piece:
    v.n_base = n - (r.chatml ? 2 : 0);
    v.bos = 1;
    v.eos = r.chatml ? v.n_base : 2;
    break;
  case text_kind::chatglm:
    v.n_base = n >= 65024 ? n - 235 : n - 16;
    v.eos = 2;
    v.pad = 0;
    break;
  case text_kind::baichuan:
    v.n_base = n;
    v.bos = 1;
    v.eos = 2;
    v.pad = 0;
    break;
  }
  return v;
}

} // namespace twill::models::synth

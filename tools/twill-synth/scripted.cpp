#include "tools/twill-synth/scripted.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>

#include "models/checkpoint/json.hpp"
#include "models/synth/tokenizer_files.hpp"
#include "tools/twill-synth/gguf_head.hpp"
#include "tools/twill-synth/gguf_kinds.hpp"
#include "tools/twill-synth/output_files.hpp"

namespace twill::synth {
namespace {

constexpr std::size_t most_pieces = 4096; // at 8192 tokens, each of the two matrices has 128 MiB
constexpr std::int64_t mlp_size = 32;
constexpr std::int64_t n_heads = 2;
/// The vocabulary starts with 256 tokens for the single bytes, followed by the tokens that begin
/// and end a turn.
constexpr std::int32_t begin_id = 256;
constexpr std::int32_t end_id = 257;
constexpr std::int32_t first_piece_id = 258;

// ---- the script --------------------------------------------------------------------------------

failure wrong(const std::string& where, const std::string& key, const std::string& rule) {
  return {errc::bad_metadata, where + ": `" + key + "` must be " + rule};
}

/// Returns the list of strings under `key`, an empty list when the key is absent, and nullopt when
/// the value is no list of strings.
std::optional<std::vector<std::string>> strings(const value& object, const char* key) {
  std::vector<std::string> found;
  const value* list = object.find(key);
  if (list == nullptr) return found;
  if (list->as_list() == nullptr) return std::nullopt;
  for (const value& item : *list->as_list()) {
    if (item.as_string() == nullptr || item.as_string()->empty()) return std::nullopt;
    found.push_back(*item.as_string());
  }
  return found;
}

result<nothing> read_templates(const value& object, const std::string& where, script& s) {
  if (const value* text = object.find("chat_template")) {
    if (text->as_string() == nullptr) return wrong(where, "chat_template", "a string");
    s.chat_template = *text->as_string();
  }
  if (const value* named = object.find("chat_templates")) {
    if (named->as_object() == nullptr)
      return wrong(where, "chat_templates", "an object of strings");
    for (const auto& [name, text] : *named->as_object()) {
      if (text.as_string() == nullptr) return wrong(where, "chat_templates." + name, "a string");
      s.named_templates.emplace_back(name, *text.as_string());
    }
  }
  return nothing{};
}

// ---- the model ---------------------------------------------------------------------------------

enum class token_type : std::uint32_t { normal = 1, control = 3, user_defined = 4, unused = 5 };

struct token {
  std::string text;
  token_type type;
};

/// All tokens in the order of their ids, spelled with GPT-2's byte-level characters.
std::vector<token> make_tokens(const script& s) {
  std::vector<token> tokens;
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back(
        {byte_level_spelling(std::string(1, static_cast<char>(byte))), token_type::normal});
  tokens.push_back({"<|im_start|>", token_type::control});
  tokens.push_back({"<|im_end|>", token_type::control});
  const auto among = [](const std::vector<std::string>& names, const std::string& piece) {
    return std::find(names.begin(), names.end(), piece) != names.end();
  };
  for (const std::string& piece : s.pieces)
    if (among(s.control, piece))
      tokens.push_back({piece, token_type::control});
    else if (among(s.added, piece))
      tokens.push_back({piece, token_type::user_defined});
    else
      tokens.push_back({byte_level_spelling(piece), token_type::normal});
  // The number of tokens is also the hidden size, because embeddings are one-hot. It is padded to a
  // multiple of 64, because heads need an even number of values and kernels take rows in multiples
  // of 64.
  while (tokens.size() % 64 != 0)
    tokens.push_back({"<unused" + std::to_string(tokens.size()) + ">", token_type::unused});
  return tokens;
}

gguf_pairs make_pairs(const script& s, const std::vector<token>& tokens) {
  gguf_pairs pairs;
  pairs.text("general.architecture", "llama");
  pairs.text("general.name", "scripted");
  pairs.integer("llama.block_count", 1);
  pairs.integer("llama.context_length", s.context);
  pairs.integer("llama.embedding_length", static_cast<std::int64_t>(tokens.size()));
  pairs.integer("llama.feed_forward_length", mlp_size);
  pairs.integer("llama.attention.head_count", n_heads);
  pairs.integer("llama.attention.head_count_kv", n_heads);
  pairs.number("llama.attention.layer_norm_rms_epsilon", 1e-5);
  pairs.text("tokenizer.ggml.model", "gpt2");
  pairs.text("tokenizer.ggml.pre", "gpt-2");
  pairs.list("tokenizer.ggml.tokens", gguf_type::string, tokens.size());
  for (const token& t : tokens)
    pairs.out().text(t.text);
  pairs.list("tokenizer.ggml.token_type", gguf_type::i32, tokens.size());
  for (const token& t : tokens)
    pairs.out().u32(static_cast<std::uint32_t>(t.type));
  pairs.list("tokenizer.ggml.merges", gguf_type::string, 0);
  pairs.integer("tokenizer.ggml.bos_token_id", begin_id);
  pairs.integer("tokenizer.ggml.eos_token_id", end_id);
  pairs.flag("tokenizer.ggml.add_bos_token", false);
  if (!s.chat_template.empty()) pairs.text("tokenizer.chat_template", s.chat_template);
  if (!s.named_templates.empty()) {
    pairs.list("tokenizer.chat_templates", gguf_type::string, s.named_templates.size());
    for (const auto& [name, text] : s.named_templates)
      pairs.out().text(name);
    for (const auto& [name, text] : s.named_templates)
      pairs.text("tokenizer.chat_template." + name, text);
  }
  return pairs;
}

/// One tensor. It is zero except for the values that are written into its rows.
struct scripted_tensor {
  std::string name;
  std::int64_t rows;
  std::int64_t columns; ///< 0: a vector of `rows` values in F32
  std::function<void(std::int64_t row, std::vector<float>& values)> fill;
};

std::vector<scripted_tensor> make_tensors(const script& s, std::int64_t n_tokens) {
  const auto nothing = [](std::int64_t, std::vector<float>&) {};
  const auto ones = [](std::int64_t, std::vector<float>& values) {
    std::fill(values.begin(), values.end(), 1.0F);
  };
  const auto one_hot = [](std::int64_t row, std::vector<float>& values) {
    values[static_cast<std::size_t>(row)] = 1;
  };
  const auto last_id = first_piece_id + static_cast<std::int64_t>(s.pieces.size()) - 1;
  const auto follows = [last_id](std::int64_t row, std::vector<float>& values) {
    if (row == first_piece_id) std::fill(values.begin(), values.end(), 1.0F);
    if (row > first_piece_id && row <= last_id) values[static_cast<std::size_t>(row - 1)] = 3;
    if (row == end_id) values[static_cast<std::size_t>(last_id)] = 3;
  };
  std::vector<scripted_tensor> tensors{{"token_embd.weight", n_tokens, n_tokens, one_hot},
                                       {"output_norm.weight", n_tokens, 0, ones},
                                       {"output.weight", n_tokens, n_tokens, follows},
                                       {"blk.0.attn_norm.weight", n_tokens, 0, ones},
                                       {"blk.0.ffn_norm.weight", n_tokens, 0, ones}};
  for (const char* name : {"q", "k", "v", "output"})
    tensors.push_back({std::string("blk.0.attn_") + name + ".weight", n_tokens, n_tokens, nothing});
  tensors.push_back({"blk.0.ffn_gate.weight", mlp_size, n_tokens, nothing});
  tensors.push_back({"blk.0.ffn_up.weight", mlp_size, n_tokens, nothing});
  tensors.push_back({"blk.0.ffn_down.weight", n_tokens, mlp_size, nothing});
  return tensors;
}

result<nothing> write_tensor(const scripted_tensor& t, output_file& out) {
  const gguf_kind& kind = *find_gguf_kind(t.columns == 0 ? "F32" : "F16");
  const std::int64_t rows = t.columns == 0 ? 1 : t.rows;
  std::vector<float> values(static_cast<std::size_t>(t.columns == 0 ? t.rows : t.columns));
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(kind.block_bytes));
  for (std::int64_t row = 0; row < rows; ++row) {
    std::fill(values.begin(), values.end(), 0.0F);
    t.fill(row, values);
    round_values(kind, values.data(), static_cast<std::int64_t>(values.size()), bytes.data());
    if (auto done = out.write(std::span<const std::byte>(bytes)); !done.ok()) return done;
  }
  return nothing{}; // every row is a multiple of 32 bytes, so no padding is needed
}

} // namespace

result<script> parse_script(std::string_view json, const std::string& where) {
  auto parsed = models::parse_json(json, where);
  if (!parsed.ok()) return parsed.error();
  const value& object = parsed.value();
  if (object.as_object() == nullptr)
    return failure{errc::bad_metadata, where + ": the script must be an object with `pieces`"};
  script s;
  for (const auto& [key, list] : {std::pair("pieces", &s.pieces), std::pair("control", &s.control),
                                  std::pair("added", &s.added)}) {
    auto found = strings(object, key);
    if (!found) return wrong(where, key, "a list of strings that are not empty");
    *list = *std::move(found);
  }
  if (s.pieces.empty() || s.pieces.size() > most_pieces)
    return wrong(where, "pieces",
                 "a list of 1 to " + std::to_string(most_pieces) + " strings, got " +
                     std::to_string(s.pieces.size()));
  if (auto done = read_templates(object, where, s); !done.ok()) return done.error();
  if (const value* context = object.find("context")) {
    if (context->as_int() == nullptr || *context->as_int() < 1 || *context->as_int() > 1 << 20)
      return wrong(where, "context", "a whole number of tokens between 1 and 1048576");
    s.context = static_cast<std::int32_t>(*context->as_int());
  }
  return s;
}

result<nothing> write_scripted(const script& s, const std::string& path) {
  const std::vector<token> tokens = make_tokens(s);
  const auto tensors = make_tensors(s, static_cast<std::int64_t>(tokens.size()));
  std::vector<gguf_tensor_entry> entries;
  for (const scripted_tensor& t : tensors) {
    const gguf_kind& kind = *find_gguf_kind(t.columns == 0 ? "F32" : "F16");
    entries.push_back({t.name,
                       t.columns == 0 ? std::vector{t.rows} : std::vector{t.columns, t.rows},
                       kind.id, t.rows * std::max<std::int64_t>(t.columns, 1) * kind.block_bytes});
  }
  auto folder = output_folder::around(path);
  if (!folder.ok()) return folder.error();
  auto file = folder.value().add(std::filesystem::path(path).filename().string());
  if (!file.ok()) return file.error();
  output_file& out = file.value();
  if (auto done = out.write(make_gguf_head(make_pairs(s, tokens), entries)); !done.ok())
    return done;
  for (const scripted_tensor& t : tensors)
    if (auto done = write_tensor(t, out); !done.ok()) return done;
  if (auto done = out.close(); !done.ok()) return done;
  folder.value().keep();
  return nothing{};
}

} // namespace twill::synth

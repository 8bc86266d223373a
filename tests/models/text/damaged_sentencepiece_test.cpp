// Damaged SentencePiece models give what a naive reader gets from their bytes, and are refused
// exactly if that reader finds a contradiction.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "models/open/folder_text.hpp"
#include "models/text/tokenizer/sentencepiece_file.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/ids_within.hpp"
#include "tests/models/support/naive_sentencepiece.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/models/support/text_parts.hpp"
#include "tests/paths.hpp"
#include "tests/support/damage.hpp"
#include "tests/support/json.hpp"
#include "tests/support/operations.hpp"

using namespace twill::models;
using namespace twill::test;

namespace {

using file_t = sentencepiece_file;
using piece_type = file_t::piece_type;

const std::vector<std::string> folders = {"llama-spm", "chatglm3-spm", "mistral-orca-spm",
                                          "baichuan2-spm"};

std::string model_of(const std::string& folder) {
  return read_file(golden_dir() + "/tokenizers/" + folder + "/tokenizer.model");
}

/// The first difference of two models; empty if they are equal.
std::string difference(const file_t& a, const file_t& b) {
  if (a.pieces.size() != b.pieces.size())
    return std::to_string(a.pieces.size()) + " pieces, not " + std::to_string(b.pieces.size());
  for (std::size_t i = 0; i < a.pieces.size(); ++i) {
    const auto &p = a.pieces[i], &q = b.pieces[i];
    if (p.text != q.text || p.score != q.score || p.type != q.type)
      return "piece " + std::to_string(i) + " is another";
  }
  if (a.kind != b.kind) return "the kind is another";
  if (a.charsmap != b.charsmap) return "the rules are others";
  if (a.unknown_text != b.unknown_text) return "the unknown text is another";
  const auto flags = [](const file_t& f) {
    return std::vector<bool>{f.byte_fallback, f.space_is_suffix, f.add_dummy_prefix,
                             f.remove_extra_spaces, f.escape_spaces};
  };
  return flags(a) == flags(b) ? "" : "a flag is another";
}

/// Describes what is wrong with the reading of these bytes; empty if nothing is.
std::string fault_of_reading(const std::string& bytes) {
  const auto expected = naive_sentencepiece(bytes);
  const auto is = file_t::parse(bytes);
  if (is.ok() != expected.has_value())
    return is.ok() ? "contradicts the format, and is read"
                   : "does not contradict the format, and is refused: " + is.detail();
  if (!is.ok()) return "";
  if (auto fault = difference(is.value(), *expected); !fault.empty()) return fault;
  // The library is given the bytes of write(), which must hold the same model without charsmap.
  const auto again = file_t::parse(is.value().write());
  if (!again.ok()) return "what was written again is refused: " + again.detail();
  file_t without_rules = is.value();
  without_rules.charsmap.clear();
  const auto fault = difference(again.value(), without_rules);
  return fault.empty() ? "" : "written again, " + fault;
}

/// The first and last pieces of the vocabulary, and the protobuf messages after the pieces, are cut
/// into parts of three bytes, each of which is damaged. Of the pieces in between, every 97th is a
/// part of its own.
std::vector<part> parts_of(const std::string& model) {
  std::vector<sized> sizes;
  const auto fields = *wire_fields(model);
  for (std::size_t n = 0; n < fields.size(); ++n) {
    const wire_field& f = fields[n];
    const std::string name = "field " + std::to_string(n);
    const std::size_t size = f.end - f.begin;
    const bool is_dense = n < 2 || n + 4 > fields.size() || f.number != 1;
    if (is_dense && size < 400) {
      for (std::size_t at = 0; at < size; at += 3)
        sizes.push_back({name, std::min<std::size_t>(3, size - at)});
    } else {
      if (is_dense || n % 97 < 2 || n == 2) sizes.push_back({"from " + name, 0});
      sizes.back().size += size;
    }
  }
  return parts_in_order(sizes);
}

/// Damage at both ends and in the middle of each part; with TWILL_LONG at more places.
damage_options as_long_as_wanted() {
  damage_options options;
  options.sparse = std::getenv("TWILL_LONG") == nullptr;
  return options;
}

} // namespace

TEST_CASE("damage to a SentencePiece model is refused or read as it is", "[damage]") {
  for (const std::string& folder : folders) {
    CAPTURE(folder);
    const std::string model = model_of(folder);
    REQUIRE(fault_of_reading(model) == "");
    CHECK(faults_after_damage(
              model, parts_of(model),
              [](const damage&, const std::string& damaged) { return fault_of_reading(damaged); },
              as_long_as_wanted()) == "");
  }
}

namespace {

/// Changes to whole fields, as a broken writer may omit, repeat or enlarge fields.
class field_changes {
public:
  explicit field_changes(const std::string& model) {
    const auto message = wire_fields(model);
    for (const wire_field& f : *message)
      fields_.push_back({f.number, f.bytes});
  }

  void change(const operation& op) {
    const std::size_t at = place(op.a);
    switch (op.kind % 8) {
    case 0: // a copy of the field at another place
      fields_.insert(fields_.begin() + static_cast<std::ptrdiff_t>(place(op.b)), fields_[at]);
      break;
    case 1:
      fields_.erase(fields_.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 2:
      std::swap(fields_[at], fields_[place(op.b)]);
      break;
    case 3:
      fields_.resize(at + 1);
      break;
    default:
      change_inside(fields_[at], op);
    }
  }

  std::string bytes() const {
    std::string out;
    for (const field& f : fields_)
      put(out, f.number, 2, f.bytes.size()).append(f.bytes);
    return out;
  }

  bool is_empty() const { return fields_.empty(); }

private:
  struct field {
    std::uint64_t number;
    std::string bytes;
  };

  /// Half of all numbers give the first or the last field, a quarter one of the last four.
  std::size_t place(std::uint32_t n) const {
    const std::size_t last = fields_.size() - 1;
    return n % 4 == 0   ? 0
           : n % 4 == 1 ? last
           : n % 4 == 2 ? last - std::min<std::size_t>(last, n / 4 % 4)
                        : n / 4 % fields_.size();
  }

  static std::string& put(std::string& out, std::uint64_t number, unsigned type,
                          std::uint64_t value) {
    for (std::uint64_t v : {number << 3 | type, value}) {
      for (; v >= 128; v >>= 7)
        out += static_cast<char>(v | 128);
      out += static_cast<char>(v);
    }
    return out;
  }

  /// Appends one field to the end of the inner message.
  static void change_inside(field& f, const operation& op) {
    static const std::uint64_t numbers[] = {1, 2, 3, 4, 5, 24, 35, 44};
    const std::uint64_t number = numbers[op.b % 8];
    const std::uint64_t value = op.c % 8;
    switch (op.kind % 4) {
    case 0:
      put(f.bytes, number, 0, value);
      break;
    case 1: {
      static const std::size_t sizes[] = {0, 1, 2, 5, 4095, 4096, 4097, 3};
      put(f.bytes, number, 2, sizes[value]).append(sizes[value], static_cast<char>('a' + op.c % 5));
      break;
    }
    case 2: {
      static const std::uint32_t floats[] = {0,          0x7f800000, 0x7fc00000, 0x7f7fffff,
                                             0xff800000, 0xbf800000, 1,          0xffffffff};
      f.bytes += static_cast<char>(number << 3 & 0x78 | 5);
      for (int shift = 0; shift < 32; shift += 8)
        f.bytes += static_cast<char>(floats[value] >> shift);
      break;
    }
    default:
      f.bytes.resize(f.bytes.size() - std::min<std::size_t>(f.bytes.size(), value + 1));
    }
  }

  std::vector<field> fields_;
};

} // namespace

TEST_CASE("a SentencePiece model whose fields are missing, repeated or others is read as it is",
          "[damage]") {
  const std::string model = model_of("llama-spm");
  sequences which;
  which.cases = 300;
  which.most_operations = 6;
  CHECK(first_failure(which, [&](const operations& sequence) {
          field_changes changed(model);
          for (const operation& op : sequence)
            if (!changed.is_empty()) changed.change(op);
          const auto fault = fault_of_reading(changed.bytes());
          demand(fault.empty(), fault);
        }) == "");
}

namespace {

std::string with_spaces(std::string text) {
  const std::string mark = "\xE2\x96\x81";
  for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; ++at)
    text.replace(at, mark.size(), " ");
  return text;
}

/// The tokens that ChatGLM3's own code appends, in its order.
const std::vector<std::string> chatglm_tokens = {"[MASK]",   "[gMASK]",       "[sMASK]",
                                                 "sop",      "eop",           "<|system|>",
                                                 "<|user|>", "<|assistant|>", "<|observation|>"};

struct piece_text {
  std::string bytes;
  bool special = false;
};

/// Texts by id, or nothing if the text of a byte piece is not that of a byte.
std::optional<std::vector<piece_text>> naive_texts(const file_t& file, bool is_chatglm) {
  std::vector<piece_text> all;
  for (const auto& p : file.pieces) {
    piece_text one{with_spaces(p.text), false};
    if (p.type == piece_type::control) one = {p.text, true};
    if (p.type == piece_type::unknown) one = {file.unknown_text, true};
    if (p.type == piece_type::byte) {
      bool found = false;
      for (int byte = 0; byte < 256 && !found; ++byte) {
        char spelled[8];
        std::snprintf(spelled, sizeof spelled, "<0x%02X>", static_cast<unsigned>(byte));
        found = p.text == spelled;
        one.bytes = std::string(1, static_cast<char>(byte));
      }
      if (!found) return std::nullopt;
    }
    all.push_back(one);
  }
  for (const std::string& token : chatglm_tokens)
    if (is_chatglm) all.push_back({token, true});
  return all;
}

std::string fault_of_folder(const temp_folder& copy, const std::string& damaged, bool is_chatglm) {
  copy.write("tokenizer.model", damaged);
  const auto opened = open_folder_tokenizer(copy.path());
  const auto file = naive_sentencepiece(damaged);
  const auto expected = file ? naive_texts(*file, is_chatglm) : std::nullopt;
  if (!opened.ok())
    return opened.detail().find("tokenizer.model") != std::string::npos
               ? ""
               : "refused without the file's name: " + opened.detail();
  if (!expected) return "contradicts the format, and is read";
  const tokenizer& t = *opened.value();
  if (t.vocab_size() != std::ssize(*expected))
    return std::to_string(t.vocab_size()) + " tokens, not " + std::to_string(expected->size());
  for (token_id id = 0; id < t.vocab_size(); ++id) {
    const piece_text& one = (*expected)[static_cast<std::size_t>(id)];
    if (t.token_bytes(id, true) != one.bytes) return "token " + std::to_string(id) + " is another";
    const auto type = static_cast<std::size_t>(id) < file->pieces.size()
                          ? file->pieces[static_cast<std::size_t>(id)].type
                          : piece_type::control;
    if (type != piece_type::user_defined && t.is_special(id) != one.special)
      return "token " + std::to_string(id) + " is special, or is not";
  }
  return fault_of_ids(t);
}

} // namespace

TEST_CASE("a folder with a damaged SentencePiece model is refused or has its pieces as tokens",
          "[damage]") {
  for (const std::string folder : {"llama-spm", "chatglm3-spm"}) {
    CAPTURE(folder);
    const bool is_chatglm = folder == "chatglm3-spm";
    const temp_folder copy;
    copy.write("config.json", is_chatglm ? R"({"architectures": ["ChatGLMModel"]})"
                                         : R"({"architectures": ["LlamaForCausalLM"]})");
    const std::string model = model_of(folder);
    REQUIRE(fault_of_folder(copy, model, is_chatglm) == "");
    CHECK(faults_after_damage(
              model, parts_of(model),
              [&](const damage&, const std::string& damaged) {
                return fault_of_folder(copy, damaged, is_chatglm);
              },
              as_long_as_wanted()) == "");
  }
}

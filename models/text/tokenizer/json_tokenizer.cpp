// Reads tokenizer.json of a folder (the format of Hugging Face's tokenizers library).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/checkpoint/json.hpp"
#include "models/text/tokenizer/folder_tokenizer.hpp"
#include "models/text/tokenizer/json_parts.hpp"

namespace twill::models {
namespace {

class json_builder {
public:
  json_builder(const folder_files& files, const value& file) : files_(files), file_(file) {}

  result<std::shared_ptr<const tokenizer>> build() {
    for (const auto stage :
         {&json_builder::read_parts, &json_builder::add_vocabulary, &json_builder::add_tokens,
          &json_builder::name_ids, &json_builder::frame_text})
      if (auto done = (this->*stage)(); !done.ok()) return done.error();
    return make_pipeline_tokenizer(std::move(parts_));
  }

private:
  result<nothing> read_parts() {
    auto normal = json::read_normalizer(file_.find("normalizer"));
    if (!normal.ok()) return normal.error();
    parts_.normal = std::move(normal).value();
    auto words = json::read_pretokenizer(file_.find("pre_tokenizer"));
    if (!words.ok()) return words.error();
    parts_.words_of = std::move(words.value().words_of);
    auto model = json::read_model(file_.find("model"), words.value().byte_level);
    if (!model.ok()) return model.error();
    parts_.kind = "tokenizer.json " + model.value().kind;
    parts_.model = std::move(model.value().model);
    ids_ = std::move(model.value().vocabulary);
    auto decoder = json::read_decoder(file_.find("decoder"));
    if (!decoder.ok()) return decoder.error();
    decoder_ = std::move(decoder).value();
    return nothing{};
  }

  result<nothing> add_vocabulary() {
    parts_.bytes.resize(ids_.size());
    parts_.special.resize(ids_.size());
    unique_ids unique;
    for (const auto& [text, id] : ids_) {
      if (auto room = make_room(parts_, id); !room.ok()) return room;
      if (auto added = unique.add(text, id); !added.ok())
        return json::malformed("`model.vocab`, " + added.detail());
      parts_.bytes[static_cast<std::size_t>(id)] = decoder_.bytes_of(text);
    }
    return nothing{};
  }

  result<nothing> add_tokens() {
    std::vector<added_token> tokens;
    const value* list = file_.find("added_tokens");
    if (!json::is_absent(list) && list->as_list() == nullptr)
      return json::malformed("`added_tokens`, must be a list");
    if (!json::is_absent(list))
      for (const value& entry : *list->as_list()) {
        const value* id = entry.find("id");
        if (id == nullptr || id->as_int() == nullptr)
          return json::malformed("`added_tokens`, each must have an id");
        auto token = to_added_token(entry, *id->as_int());
        if (!token.ok()) return json::malformed("`added_tokens`, " + token.detail());
        if (auto added = add_to_list(tokens, std::move(token).value()); !added.ok())
          return json::malformed("`added_tokens`, " + added.detail());
      }
    auto listed = read_added_tokens(files_);
    if (!listed.ok()) return listed.error();
    std::vector<std::int64_t> known;
    for (const added_token& token : tokens)
      known.push_back(token.id);
    std::sort(known.begin(), known.end());
    for (added_token& token : listed.value())
      if (!std::binary_search(known.begin(), known.end(), token.id))
        tokens.push_back(std::move(token));
    erase_tokens_without_rows(files_, tokens);
    for (const added_token& token : tokens)
      if (token.id >= 0 && token.id <= INT32_MAX)
        ids_.try_emplace(token.text, static_cast<token_id>(token.id));
    return place_added_tokens(tokens, parts_);
  }

  result<nothing> name_ids() {
    set_named_ids(
        files_,
        [this](std::string_view text) {
          const auto it = ids_.find(text);
          return it == ids_.end() ? token_id{-1} : it->second;
        },
        parts_);
    parts_.drops_space.resize(decoder_.drops_space ? parts_.bytes.size() : 0);
    for (std::size_t i = 0; i < parts_.drops_space.size(); ++i)
      parts_.drops_space[i] = parts_.bytes[i].starts_with(' ');
    return nothing{};
  }

  result<nothing> frame_text() {
    auto frame = json::read_post_processor(file_.find("post_processor"));
    if (!frame.ok()) return frame.error();
    parts_.prefix = std::move(frame.value().prefix);
    parts_.suffix = std::move(frame.value().suffix);
    for (const auto* ids : {&parts_.prefix, &parts_.suffix})
      for (const token_id id : *ids)
        if (id < 0 || static_cast<std::size_t>(id) >= parts_.bytes.size())
          return json::malformed("`post_processor`, its ids must be tokens");
    use_class_flags();
    return nothing{};
  }

  /// LlamaTokenizerFast replaces the post-processor by one that it makes from these flags.
  void use_class_flags() {
    if (files_.tokenizer_config == nullptr ||
        !json::text(*files_.tokenizer_config, "tokenizer_class").starts_with("LlamaTokenizer"))
      return;
    const auto use = [&](const char* name, token_id id, std::vector<token_id>& ids) {
      const value* given = files_.tokenizer_config->find(name);
      if (given == nullptr || given->as_bool() == nullptr || id < 0) return;
      ids.clear();
      if (*given->as_bool()) ids.push_back(id);
    };
    use("add_bos_token", parts_.bos, parts_.prefix);
    use("add_eos_token", parts_.eos, parts_.suffix);
  }

  const folder_files& files_;
  const value& file_;
  json::decoder_part decoder_;
  token_map ids_;
  pipeline_parts parts_;
};

} // namespace

result<std::shared_ptr<const tokenizer>> read_tokenizer_json(const folder_files& files) {
  constexpr std::int64_t max_bytes = 256 << 20;
  const std::string path = files.path + "/tokenizer.json";
  const auto file = read_json_file(path, max_bytes);
  if (!file.ok()) return file.error();
  auto built = json_builder(files, file.value()).build();
  if (!built.ok()) return in_file(path, built.error());
  return built;
}

} // namespace twill::models

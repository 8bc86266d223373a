// token_table: reads the tokens that the small JSON files of a folder add to its vocabulary, and
// the ids of special tokens.
//
// Reads added_tokens.json, special_tokens_map.json, tokenizer_config.json and the ids that
// generation_config.json and config.json name. A plain value, filled at load.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/value.hpp"
#include "models/text/tokenizer/byte_bpe.hpp"
#include "models/text/tokenizer/pipeline_tokenizer.hpp"
#include "models/text/tokenizer/tokenizer_hints.hpp"

namespace twill::models {

/// A model folder, the JSON files in it that tokenizers read (null where absent), and what the code
/// of the model's family adds to them.
struct folder_files {
  std::string path;
  tokenizer_hints hints;
  const value* config = nullptr;
  const value* tokenizer_config = nullptr;
  const value* generation_config = nullptr;
  const value* special_tokens_map = nullptr; ///< make_folder_tokenizer() reads it
  /// Rows of the model's embedding. Nothing can be computed for an added token beyond them.
  std::int64_t embedding_rows = std::numeric_limits<std::int64_t>::max();
};

struct added_token {
  std::string file; ///< the file that lists the token, for messages; empty for tokenizer.json
  std::int64_t id = -1;
  std::string text;
  bool special = true;
  bool normalized = false;
  special_rules rules;
};

/// The tokens of added_tokens.json and of added_tokens_decoder in tokenizer_config.json, sorted by
/// id. Fails with bad_format if a list is malformed or gives two texts for one id.
result<std::vector<added_token>> read_added_tokens(const folder_files& files);
/// Erases added tokens for which the embedding has no row, such as the pad token of a fine-tune,
/// and logs that their texts are treated as ordinary text. The tokens of the vocabulary itself must
/// all have rows.
void erase_tokens_without_rows(const folder_files& files, std::vector<added_token>& tokens);
/// Reads one entry of a list of added tokens, from tokenizer.json or another file. Fails with
/// bad_format if the entry has no text, or a flag that is neither true nor false.
result<added_token> to_added_token(const value& entry, std::int64_t id);
/// Appends `token` unless `tokens` already has its id. Fails with bad_format if `tokens` has the id
/// with another text.
result<nothing> add_to_list(std::vector<added_token>& tokens, added_token token);

/// The text of the special token that the folder calls `name`, such as "bos_token". It is read from
/// tokenizer_config.json or special_tokens_map.json.
std::optional<std::string> named_token(const folder_files& files, std::string_view name);

/// Fills bos, eos and end_ids of `parts` from the folder's files. Control tokens whose texts are
/// well-known end tokens are added to end_ids. `id_of` returns the id of a token's text, or -1.
void set_named_ids(const folder_files& files,
                   const std::function<token_id(std::string_view)>& id_of, pipeline_parts& parts);

/// The ids of a vocabulary, each of which stands for one text.
class unique_ids {
public:
  /// Fails with bad_format if the id already has a text. Call make_room() first, which refuses
  /// negative and too large ids: add() takes memory for all ids up to `id`. Only a pointer to the
  /// text is kept, so the text must outlive this object.
  result<nothing> add(const std::string& text, std::int64_t id);

private:
  std::vector<const std::string*> text_of_;
};

/// Makes room for token `id` in `parts`. Fails with bad_format if `id` is negative, or 65536 or
/// more above the number of tokens in `parts`, so that a small file cannot ask for much memory.
result<nothing> make_room(pipeline_parts& parts, std::int64_t id);
/// Adds tokens to the vocabulary and to the special tokens of `parts`. A token that is marked
/// special or looks like markup (special_matcher.hpp) becomes a control token, any other token a
/// plain one.
result<nothing> place_added_tokens(const std::vector<added_token>& tokens, pipeline_parts& parts);

/// Appends `id` to the end ids when it is new.
void add_end(pipeline_parts& parts, token_id id);
/// Adds ids of well-known end tokens that are control tokens of `parts`.
void add_known_ends(pipeline_parts& parts);

/// The flag `name` of tokenizer_config.json, or `otherwise` when it is absent.
bool config_flag(const folder_files& files, std::string_view name, bool otherwise);

/// Reads a file of at most 256 MiB; fails with file_unreadable.
result<std::string> read_text_file(const std::string& path);

} // namespace twill::models

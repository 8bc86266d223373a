// `twill tokenize`: prints the token ids of a text, computed by the daemon or from a model file.
#include <CLI/CLI.hpp>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "tools/common/http_client.hpp"
#include "tools/common/hub/model_argument.hpp"
#include "tools/twill/commands.hpp"
#include "tools/twill/refusal.hpp"
#include "tools/twill/request_flags.hpp"
#include "tools/twill/text_argument.hpp"

namespace twill::tools {
namespace {

namespace json = boost::json;

struct tokenize_options {
  std::string text;
  server_flags server;
  std::string file; ///< model file; empty: ask the daemon
  bool pieces = false;
  bool add_special = false;
  bool parse_special = false;
};

struct token {
  std::int64_t id = 0;
  std::string piece;
};

std::vector<token> tokenize_with_file(const tokenize_options& options) {
  const auto opened = models::open_model(hub::local_model(options.file));
  if (!opened.ok()) throw client_error(opened.detail());
  const auto& text = *opened.value()->text;
  models::encode_options how;
  how.add_special = options.add_special;
  how.parse_special = options.parse_special;
  const auto ids = text.encode(options.text, how);
  if (!ids.ok()) throw client_error(ids.detail());
  std::vector<token> tokens;
  for (const auto id : ids.value())
    tokens.push_back({id, text.token_bytes(id, true)});
  return tokens;
}

/// The bytes of a token's text. The daemon sends it as a string, or as a list of its bytes when the
/// bytes are not whole UTF-8 characters.
std::string bytes_of(const json::value& piece) {
  if (const auto* text = piece.if_string()) return {text->begin(), text->end()};
  std::string bytes;
  if (const auto* list = piece.if_array())
    for (const auto& byte : *list)
      bytes += static_cast<char>(byte.to_number<int>());
  return bytes;
}

std::vector<token> tokenize_with_daemon(const tokenize_options& options) {
  const json::object request{{"content", options.text},
                             {"add_special", options.add_special},
                             {"parse_special", options.parse_special},
                             {"with_pieces", true}};
  const auto reply = http_request(options.server.where(), "/tokenize", json::serialize(request),
                                  std::chrono::seconds(30));
  if (reply.status != 200)
    throw client_error(why_refused(options.server.where(), reply.status, reply.body));
  std::vector<token> tokens;
  try {
    const auto body = json::parse(reply.body);
    for (const auto& entry : body.at("tokens").as_array())
      tokens.push_back({entry.at("id").to_number<std::int64_t>(), bytes_of(entry.at("piece"))});
  } catch (const std::exception&) {
    throw client_error("the daemon's answer has no list `tokens` of ids and pieces");
  }
  return tokens;
}

/// Writes all bytes except printable ASCII as \xNN, because a piece may be part of a character.
std::string escaped_piece(const std::string& piece) {
  std::string out;
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    char hex[8];
    std::snprintf(hex, sizeof hex, "\\x%02x", byte);
    const bool plain = byte >= 0x20 && byte < 0x7f && c != '\\' && c != '"';
    out += plain ? std::string(1, c) : c == '\n' ? "\\n" : hex;
  }
  return out;
}

int run_tokenize(const tokenize_options& options) {
  const auto tokens =
      options.file.empty() ? tokenize_with_daemon(options) : tokenize_with_file(options);
  if (options.pieces) {
    for (const auto& t : tokens)
      std::printf("%8lld  \"%s\"\n", static_cast<long long>(t.id), escaped_piece(t.piece).c_str());
    return status_ok;
  }
  for (std::size_t i = 0; i < tokens.size(); ++i)
    std::printf("%s%lld", i > 0 ? " " : "", static_cast<long long>(tokens[i].id));
  std::printf("\n");
  return status_ok;
}

} // namespace

void add_tokenize(CLI::App& root, int& status) {
  auto* command = root.add_subcommand("tokenize", "print the token ids of a text");
  auto options = std::make_shared<tokenize_options>();
  command->add_option("text", options->text, "the text; - reads standard input, as it is")
      ->required()
      ->type_name("TEXT");
  add_daemon_flags(*command, options->server);
  command
      ->add_option("--model", options->file,
                   "GGUF file, Hugging Face folder, hf:ORG/NAME or dummy:PRESET instead of the "
                   "daemon's model")
      ->type_name("PATH");
  command->add_flag("--pieces", options->pieces, "one line per token, with its bytes");
  command->add_flag("--add-special", options->add_special, "with the model's prefix (BOS ...)");
  command->add_flag("--parse-special", options->parse_special,
                    "text of control tokens becomes the control token");
  command->callback([options, &status] {
    options->text = text_argument(options->text);
    status = run_tokenize(*options);
  });
}

} // namespace twill::tools

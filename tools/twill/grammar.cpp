// `twill grammar`: checks whether a JSON instance passes the token masks that a JSON Schema
// produces.
//
// The schema is processed like a request's `response_format`, and the instance like a model's
// output, by the same code that twilld uses to read, compile and enforce grammars.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "actors/executor/output_guard.hpp"
#include "models/model.hpp"
#include "models/text/grammar/compile.hpp"
#include "models/text/grammar/matcher.hpp"
#include "net/protocol/json/json_parse.hpp"
#include "net/protocol/output_form.hpp"
#include "tools/common/default_model.hpp"
#include "tools/common/endpoint.hpp"
#include "tools/common/hub/model_argument.hpp"
#include "tools/common/terminal.hpp"
#include "tools/twill/commands.hpp"

namespace twill::tools {
namespace {

namespace grammar = models::grammar;

constexpr int status_refused = 2;
constexpr int status_no_answer = 3; ///< the answer is unknown: a file, the model or the helper
                                    ///< process is missing

struct grammar_options {
  std::string schema;
  std::vector<std::string> instances;
  std::string model;
  bool strict = false;
  bool times = false;
  double timeout_s = 5;
};

struct mask_times {
  std::vector<double> us;

  void print() {
    if (us.empty()) return;
    std::sort(us.begin(), us.end());
    const auto at = [this](double share) {
      return us[static_cast<std::size_t>(share * static_cast<double>(us.size() - 1))];
    };
    std::printf("masks: %zu, median %.1f us, 99th percentile %.1f us, longest %.1f us\n", us.size(),
                at(0.5), at(0.99), us.back());
  }
};

std::optional<std::string> file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::stringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

/// Removes white space around the text: it belongs to the file and not to the JSON value.
std::string trimmed_text(const std::string& text) {
  const auto* const space = " \n\r\t";
  const auto from = text.find_first_not_of(space);
  return from == std::string::npos ? ""
                                   : text.substr(from, text.find_last_not_of(space) - from + 1);
}

/// Returns the grammar that a request with this schema as `response_format` would ask for.
net::result<config::grammar_spec> form_of(const std::string& schema, bool strict) {
  auto parsed = net::parse_json(schema);
  if (!parsed.ok()) {
    auto error = parsed.code();
    if (error.message.starts_with("body")) error.message.replace(0, 4, "it");
    return net::fail(std::move(error));
  }
  const value body = value_object{
      {"response_format", value_object{{"type", "json_schema"},
                                       {"json_schema", value_object{{"strict", strict},
                                                                    {"schema", parsed.value()}}}}}};
  net::fields members(body);
  actors::request asked;
  net::read_output_form(members, asked);
  if (!members.ok()) return net::fail(members.error());
  return *asked.grammar;
}

/// Returns why the instance is rejected, or an empty text when it passes.
std::string refused_at(const std::shared_ptr<const actors::output_rules>& rules,
                       const std::vector<models::token_id>& ids, mask_times& times) {
  const grammar::vocabulary& tokens = *rules->tokens;
  actors::output_guard at(rules);
  std::vector<std::uint32_t> mask(grammar::mask_words(tokens.size()));
  const auto allows = [&mask](models::token_id id) {
    return (mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1) != 0;
  };
  const auto fill = [&] {
    const auto began = std::chrono::steady_clock::now();
    at.fill_mask(mask);
    times.us.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began)
            .count());
  };
  std::string passed;
  for (const auto id : ids) {
    fill();
    const auto& bytes = tokens.bytes[static_cast<std::size_t>(id)];
    if (!allows(id) || !at.accept(id))
      return "after " + printable(passed) + " the mask excludes " + printable(bytes);
    passed += bytes;
  }
  fill();
  return std::any_of(tokens.end_ids.begin(), tokens.end_ids.end(), allows)
             ? ""
             : "the text ends too early";
}

int run_grammar(const grammar_options& options) {
  const auto say = [](const std::string& text) {
    std::fprintf(stderr, "twill: %s\n", text.c_str());
  };
  const auto schema = file_text(options.schema);
  if (!schema) return say(options.schema + " cannot be read"), status_no_answer;
  std::string path = options.model;
  if (path.empty()) {
    const auto found = fetch_default_model();
    if (!found.ok()) return say(found.detail()), status_no_answer;
    path = found.value();
  }
  try {
    path = hub::local_model(path);
  } catch (const client_error& error) {
    return say(error.what()), status_no_answer;
  }
  const auto opened = models::open_model(path);
  if (!opened.ok()) return say(opened.detail()), status_no_answer;
  const auto& text = *opened.value()->text;

  grammar::compile_limits limits;
  limits.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout_s * 1000));
  const auto form = form_of(*schema, options.strict);
  if (!form.ok()) return say("the schema is refused: " + form.code().message), status_refused;
  grammar::grammar_compiler compiler(
      grammar::make_vocabulary(text, static_cast<std::int32_t>(opened.value()->spec.vocab_size)),
      limits);
  const auto began = std::chrono::steady_clock::now();
  const auto compiled = compiler.compile(form.value());
  if (!compiled.ok()) {
    say("the schema is refused: " + compiled.detail());
    using enum grammar::errc;
    const auto code = compiled.code();
    const bool is_answer = code != helper_failed && code != overdue && code != no_resources;
    return is_answer ? status_refused : status_no_answer;
  }
  if (options.times)
    std::printf(
        "compiled in %.1f ms, %zu bytes\n",
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count(),
        grammar::memory_bytes(*compiled.value()));
  const auto rules = std::make_shared<const actors::output_rules>(actors::output_rules{
      .tokens = compiler.tokens(), .grammar = compiled.value(), .is_json = true});
  int status = status_ok;
  mask_times times;
  for (const auto& instance : options.instances) {
    const auto content = file_text(instance);
    if (!content) return say(instance + " cannot be read"), status_no_answer;
    const auto ids = text.encode(trimmed_text(*content), {});
    const auto why = ids.ok() ? refused_at(rules, ids.value(), times) : ids.detail();
    if (!why.empty()) status = status_failure;
    std::printf("%s: %s\n", instance.c_str(),
                why.empty() ? "accepted" : ("refused: " + why).c_str());
  }
  if (options.times) times.print();
  return status;
}

} // namespace

void add_grammar(CLI::App& root, int& status) {
  auto* command =
      root.add_subcommand("grammar", "check JSON values against the masks of a JSON Schema");
  auto options = std::make_shared<grammar_options>();
  command->add_option("schema", options->schema, "file with a JSON Schema")
      ->required()
      ->type_name("SCHEMA.json");
  command
      ->add_option("--accepts", options->instances,
                   "files with JSON values; without any, the schema alone is checked")
      ->type_name("INSTANCE.json");
  command
      ->add_option("--model", options->model,
                   "model whose tokens are used (the default model otherwise)")
      ->type_name("PATH");
  command->add_flag(
      "--strict", options->strict,
      "as a request whose `strict` is absent or true: objects have no properties but those that "
      "the schema names; without it, as one with \"strict\": false");
  command->add_flag("--times", options->times, "print how long compiling and the masks took");
  command
      ->add_option("--timeout", options->timeout_s,
                   "processor time that compiling may take, in seconds")
      ->type_name("SECONDS");
  command->footer("Exit status: 0 every value passes, 1 one does not, 2 the schema is refused (and "
                  "why), 3 a file or "
                  "the model is missing.");
  command->callback([options, &status] { status = run_grammar(*options); });
}

} // namespace twill::tools

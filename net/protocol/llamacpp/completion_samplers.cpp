#include "net/protocol/llamacpp/completion_samplers.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace twill::net {
namespace {

struct sampler_name {
  std::string_view name;
  std::string_view other_name;
  char letter;
};
/// The samplers in the order in which llama.cpp applies them.
constexpr std::array<sampler_name, 9> sampler_names{{{"penalties", "penalties", 'e'},
                                                     {"dry", "dry", 'd'},
                                                     {"top_n_sigma", "top_n_sigma", 's'},
                                                     {"top_k", "top-k", 'k'},
                                                     {"typ_p", "typical_p", 'y'},
                                                     {"top_p", "top-p", 'p'},
                                                     {"min_p", "min-p", 'm'},
                                                     {"xtc", "xtc", 'x'},
                                                     {"temperature", "temp", 't'}}};
/// Indices in `sampler_names` of the samplers that twill has.
constexpr std::size_t penalties = 0, top_k = 3, top_p = 5, min_p = 6, temperature = 8;
/// The samplers in the order in which twill applies them.
constexpr std::array own_order{penalties, temperature, min_p, top_k, top_p};

std::size_t place_of(const value& sampler) {
  const auto* name = sampler.as_string();
  for (std::size_t i = 0; name != nullptr && i < sampler_names.size(); ++i)
    if (*name == sampler_names[i].name || *name == sampler_names[i].other_name ||
        *name == std::string_view(&sampler_names[i].letter, 1))
      return i;
  return sampler_names.size();
}

/// Returns indices into `sampler_names`. `given` names samplers by a list of names or by a string
/// with one letter for each sampler. Refuses unknown names.
std::vector<std::size_t> read_sampler_places(fields& from, const value& given) {
  value_list names;
  if (const auto* letters = given.as_string())
    for (const char letter : letters->substr(0, 2 * sampler_names.size()))
      names.emplace_back(std::string(1, letter));
  else if (const auto* list = given.as_list())
    names = *list;
  else
    from.reject("samplers", "a list of names, or letters", given);
  std::vector<std::size_t> places;
  for (const auto& name : names) {
    places.push_back(place_of(name));
    if (places.back() == sampler_names.size())
      from.reject("samplers",
                  "of penalties, dry, top_n_sigma, top_k, typ_p, top_p, min_p, xtc and "
                  "temperature",
                  name);
    if (!from.ok()) return {};
  }
  return places;
}

} // namespace

void put_penalties_off(config::sampling_params& to) {
  to.repetition_penalty = 1;
  to.presence_penalty = 0;
  to.frequency_penalty = 0;
}

void read_samplers(fields& from, config::sampling_params& to) {
  const auto* given = from.find("samplers");
  if (given == nullptr) return;
  const auto places = read_sampler_places(from, *given);
  if (!from.ok()) return;
  const auto named = [&](std::size_t place) {
    return std::find(places.begin(), places.end(), place) != places.end();
  };
  std::vector<std::size_t> ours;
  for (const auto place : own_order)
    if (named(place)) ours.push_back(place);
  std::vector<std::size_t> asked;
  for (const auto place : places)
    if (std::find(own_order.begin(), own_order.end(), place) != own_order.end())
      asked.push_back(place);
  const bool in_their_order =
      std::adjacent_find(places.begin(), places.end(), std::greater_equal<>{}) == places.end();
  if (asked != ours && !in_their_order)
    return from.reject("samplers", "each once, in llama.cpp's order or this server's", *given);
  if (!named(penalties)) put_penalties_off(to);
  if (!named(top_k)) to.top_k = 0;
  if (!named(top_p)) to.top_p = 1;
  if (!named(min_p)) to.min_p = 0;
  if (!named(temperature)) to.temperature = 1;
}

} // namespace twill::net
